//! Codes of different lengths.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::transformers::inclusive_scan;

// 88: Huffman codes

#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Code {
    bits: u32,
    length: u32,
}

/// Puts a code into words whose first bit is the highest.
#[device]
fn put(words: &mut [u32], at: u32, code: Code) {
    let Code { bits, length } = code;
    if length == 0 {
        return;
    }
    let wide = u64::from(bits) << (64 - length - at % 32);
    let word = (at / 32) as usize;
    atomic_or(&mut words[word], (wide >> 32) as u32);
    if at % 32 + length > 32 {
        atomic_or(&mut words[word + 1], wide as u32);
    }
}

const CHUNK: usize = 64;
const WORDS: usize = 32;

/// A chunk of symbols a block.
#[kernel(block_size = 64)]
fn encode(symbols: &[u16], book: &[Code], words: &mut [[u32; WORDS]], lengths: &mut [u32]) {
    let packed = shared_array::<[u32; WORDS]>();
    let cells = shared_array::<[u32; CHUNK]>();
    let (chunk, lane) = (group_id_x(), local_id_x());
    if lane < WORDS {
        packed[lane] = 0;
    }
    sync_threads();
    let code = symbols
        .get(chunk * CHUNK + lane)
        .map(|s| book[usize::from(*s)])
        .unwrap_or_default();
    let end = inclusive_scan(cells, code.length, |a, b| a + b);
    put(packed, end - code.length, code);
    sync_threads();
    if lane < WORDS {
        words[chunk][lane] = packed[lane];
    }
    if lane == CHUNK - 1 {
        lengths[chunk] = end;
    }
}

/// For each length of codes the first code, and how many symbols have shorter ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Level {
    first: u32,
    count: u32,
    before: u32,
}

#[device]
fn next_symbol(levels: &[Level], symbols: &[u16], mut bit: impl FnMut() -> Option<u32>) -> Option<u16> {
    let mut code = 0;
    for level in levels.iter().skip(1) {
        code = code << 1 | bit()?;
        if let Some(index) = code.checked_sub(level.first).filter(|i| *i < level.count) {
            return Some(symbols[(level.before + index) as usize]);
        }
    }
    None
}

#[kernel]
fn decode(levels: &[Level], ranked: &[u16], words: &[[u32; WORDS]], lengths: &[u32], out: &mut [u16]) {
    let chunk = global_id_x();
    let Some(&length) = lengths.get(chunk) else {
        return;
    };
    let mut at = 0;
    let mut bit = || {
        let word = words[chunk][at / 32] >> (31 - at % 32);
        at += 1;
        (at <= length as usize).then_some(word & 1)
    };
    for place in out.iter_mut().skip(chunk * CHUNK).take(CHUNK) {
        match next_symbol(levels, ranked, &mut bit) {
            Some(symbol) => *place = symbol,
            None => break,
        }
    }
}

#[test]
fn huffman_codes_there_and_back() {
    let mut random = Random(88);
    let symbols: Vec<u16> = (0..1000)
        .map(|_| (random.bits().leading_zeros() * 3 + random.bits() as u32 % 3) as u16)
        .collect();
    let mut weights = vec![0usize; 64];
    symbols.iter().for_each(|s| weights[usize::from(*s)] += 1);
    // Two lightest trees become one until one is left; each symbol of them is then a bit deeper.
    let mut trees: Vec<(usize, Vec<usize>)> = (0..64)
        .filter(|s| weights[*s] > 0)
        .map(|s| (weights[s], vec![s]))
        .collect();
    let mut depths = vec![0u32; 64];
    while trees.len() > 1 {
        trees.sort_by(|a, b| b.0.cmp(&a.0));
        let (a, b) = (trees.pop().unwrap(), trees.pop().unwrap());
        let both = [a.1, b.1].concat();
        both.iter().for_each(|s| depths[*s] += 1);
        trees.push((a.0 + b.0, both));
    }
    let mut ranked: Vec<usize> = (0..64).filter(|s| depths[*s] > 0).collect();
    ranked.sort_by_key(|s| (depths[*s], *s));
    let (mut book, mut levels) = (vec![Code::default(); 64], vec![Level::default(); 17]);
    let mut next = 0u32;
    for length in 1..17u32 {
        next <<= 1;
        let own = ranked.iter().filter(|s| depths[**s] == length);
        let before = ranked.iter().filter(|s| depths[**s] < length).count() as u32;
        levels[length as usize] = Level {
            first: next,
            count: own.clone().count() as u32,
            before,
        };
        for s in own {
            book[*s] = Code { bits: next, length };
            next += 1;
        }
    }
    let ranked: Vec<u16> = ranked.iter().map(|s| *s as u16).collect();
    let (mut packed, mut lengths) = (Vec::new(), Vec::new());
    for chunk in symbols.chunks(CHUNK) {
        let code = |s: &u16| {
            let Code { bits, length } = book[usize::from(*s)];
            format!("{bits:0width$b}", width = length as usize)
        };
        let text: String = chunk.iter().map(code).collect();
        lengths.push(text.len() as u32);
        let padded = format!("{text:0<1024}");
        packed.push(std::array::from_fn::<u32, WORDS, _>(|w| {
            u32::from_str_radix(&padded[w * 32..(w + 1) * 32], 2).unwrap()
        }));
    }
    everywhere(|run| {
        let (s, b) = (run.upload(&symbols), run.upload(&book));
        let words = run.zeros::<[u32; WORDS]>(packed.len());
        let ends = run.zeros::<u32>(packed.len());
        let config = LaunchConfig::new(packed.len() as u32, 64);
        run.launch(encode::kernel(), config, args![&s, &b, &words, &ends]);
        run.holds(&ends, &lengths);
        run.holds(&words, &packed);
        let out = run.zeros::<u16>(symbols.len());
        let (l, r) = (run.upload(&levels), run.upload(&ranked));
        let config = LaunchConfig::linear(packed.len(), 32);
        run.launch(decode::kernel(), config, args![&l, &r, &words, &ends, &out]);
        run.holds(&out, &symbols);
    });
}
