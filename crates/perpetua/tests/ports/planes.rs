//! Integers and floats in few bits: ORC's runs, interleaved states, planes of bits.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 149: ORC's run lengths, version 2

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Reader {
    next: u32,
    bit: u32,
}

#[device]
impl Reader {
    fn byte(&mut self, data: &[u8]) -> u8 {
        let byte = data[self.next as usize];
        self.next += 1;
        byte
    }

    fn big_endian(&mut self, data: &[u8], bytes: u32) -> u64 {
        (0..bytes).fold(0, |value, _| value << 8 | u64::from(self.byte(data)))
    }

    fn varint(&mut self, data: &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = self.byte(data);
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    /// Numbers packed with the highest bit first.
    fn packed(&mut self, data: &[u8], width: u32) -> u64 {
        let mut value = 0;
        let mut left = width;
        while left > 0 {
            let free = 8 - self.bit;
            let taken = free.min(left);
            let byte = u64::from(data[self.next as usize]);
            value = value << taken | (byte >> (free - taken)) & ((1 << taken) - 1);
            left -= taken;
            self.bit += taken;
            if self.bit == 8 {
                self.bit = 0;
                self.next += 1;
            }
        }
        value
    }

    fn align(&mut self) {
        if self.bit > 0 {
            self.bit = 0;
            self.next += 1;
        }
    }
}

#[device]
fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[device]
fn width_of(code: u8) -> u32 {
    match code {
        0..=23 => u32::from(code) + 1,
        24..=27 => 26 + 2 * u32::from(code - 24),
        28..=31 => 40 + 8 * u32::from(code - 28),
        _ => unreachable!(),
    }
}

#[kernel]
fn rle_v2(starts: &[u32], data: &[u8], counts: &[u32], values: &mut [i64]) {
    let id = global_id_x();
    if id + 1 >= starts.len() {
        return;
    }
    let data = &data[starts[id] as usize..starts[id + 1] as usize];
    let first = counts[id] as usize;
    let out = &mut values[first..counts[id + 1] as usize];
    let mut reader = Reader { next: 0, bit: 0 };
    let mut len = 0;
    while len < out.len() {
        let head = reader.byte(data);
        match head >> 6 {
            0 => {
                let value = zigzag(reader.big_endian(data, u32::from(head >> 3 & 7) + 1));
                let count = usize::from(head & 7) + 3;
                out[len..len + count].fill(value);
                len += count;
            }
            mode @ 1..=2 => {
                let width = width_of(head >> 1 & 0x1f);
                let count = (usize::from(head & 1) << 8 | usize::from(reader.byte(data))) + 1;
                if mode == 1 {
                    for value in &mut out[len..len + count] {
                        *value = zigzag(reader.packed(data, width));
                    }
                } else {
                    let third = reader.byte(data);
                    let fourth = reader.byte(data);
                    let base_bytes = u32::from(third >> 5) + 1;
                    let patch_width = width_of(third & 0x1f);
                    let gap_width = u32::from(fourth >> 5) + 1;
                    let patches = fourth & 0x1f;
                    let raw = reader.big_endian(data, base_bytes);
                    let sign = 1u64 << (8 * base_bytes - 1);
                    let base = if raw & sign != 0 {
                        -((raw & !sign) as i64)
                    } else {
                        raw as i64
                    };
                    for value in &mut out[len..len + count] {
                        *value = reader.packed(data, width) as i64;
                    }
                    reader.align();
                    let entry_width = match gap_width + patch_width {
                        bits @ ..=24 => bits,
                        bits @ 25..=32 => bits.next_multiple_of(2),
                        bits => bits.next_multiple_of(8),
                    };
                    let mut at = 0;
                    for _ in 0..patches {
                        let entry = reader.packed(data, entry_width);
                        at += (entry >> patch_width) as usize;
                        let patch = entry & ((1 << patch_width) - 1);
                        if patch != 0 {
                            out[len + at] |= (patch << width) as i64;
                        }
                    }
                    for value in &mut out[len..len + count] {
                        *value += base;
                    }
                }
                reader.align();
                len += count;
            }
            _ => {
                let code = head >> 1 & 0x1f;
                let count = (usize::from(head & 1) << 8 | usize::from(reader.byte(data))) + 1;
                let base = zigzag(reader.varint(data));
                let delta = zigzag(reader.varint(data));
                let run = &mut out[len..len + count];
                run[0] = base;
                let mut last = base + delta;
                if count > 1 {
                    run[1] = last;
                }
                for value in run.iter_mut().skip(2) {
                    let step = if code == 0 {
                        delta.abs()
                    } else {
                        reader.packed(data, width_of(code)) as i64
                    };
                    last += step * delta.signum();
                    *value = last;
                }
                reader.align();
                len += count;
            }
        }
    }
}

/// Bits, the highest of each byte first.
fn pack(out: &mut Vec<u8>, values: &[u64], width: u32) {
    let bits: Vec<u8> = values
        .iter()
        .flat_map(|v| (0..width).rev().map(move |k| (v >> k & 1) as u8))
        .collect();
    for byte in bits.chunks(8) {
        out.push((0..8).fold(0, |b, k| b << 1 | byte.get(k).copied().unwrap_or(0)));
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn folded(value: i64) -> u64 {
    if value < 0 {
        (-(value + 1)) as u64 * 2 + 1
    } else {
        value as u64 * 2
    }
}

#[test]
fn rle_v2_reads_all_four_kinds() {
    let mut random = Random(149);
    let (mut data, mut values) = (Vec::new(), Vec::<i64>::new());
    let (mut starts, mut counts) = (vec![0u32], vec![0u32]);
    for i in 0..50 {
        for run in 0..1 + i % 5 {
            let count = 8 + random.below(300);
            let head = |kind: u8, code: u8| {
                [
                    kind << 6 | code << 1 | ((count - 1) >> 8) as u8,
                    (count - 1) as u8,
                ]
            };
            match (i + run) % 4 {
                0 => {
                    let value = random.bits() as i64 >> 20;
                    let bytes = folded(value).to_be_bytes();
                    let used = 8 - bytes.iter().take(7).take_while(|b| **b == 0).count();
                    let times = 3 + count % 8;
                    data.push(((used - 1) << 3 | (times - 3)) as u8);
                    data.extend(&bytes[8 - used..]);
                    values.extend(vec![value; times]);
                }
                1 => {
                    let (code, width) = [(9u8, 10u32), (24, 26), (27, 32), (31, 64)][random.below(4)];
                    let some: Vec<u64> = (0..count).map(|_| random.bits() >> (64 - width)).collect();
                    data.extend(head(1, code));
                    pack(&mut data, &some, width);
                    values.extend(some.iter().map(|v| {
                        if v % 2 == 0 {
                            (v / 2) as i64
                        } else {
                            -((v / 2) as i64) - 1
                        }
                    }));
                }
                2 => {
                    // 12 bits a number, and patches of 20 bits above them.
                    let mut some: Vec<u64> = (0..count).map(|_| random.bits() & 0xfff).collect();
                    let base = -5000 - run as i64;
                    data.extend(head(2, 11));
                    let places = [2usize, count / 2, count - 1];
                    data.extend([1 << 5 | 19, 7 << 5 | 3]);
                    data.extend((0x8000 | base.unsigned_abs() as u16).to_be_bytes());
                    pack(&mut data, &some, 12);
                    let mut before = 0;
                    let patches = places.map(|place| {
                        let patch = 1 + random.bits() % 0xfffff;
                        some[place] |= patch << 12;
                        let gap = (place - before) as u64;
                        before = place;
                        gap << 20 | patch
                    });
                    // 8 and 20 bits make 28.
                    pack(&mut data, &patches, 28);
                    values.extend(some.iter().map(|v| *v as i64 + base));
                }
                _ => {
                    let (base, sign) = (random.bits() as i64 >> 30, if run % 2 == 0 { 1 } else { -1 });
                    let fixed = count % 2 == 0;
                    let steps: Vec<u64> = (1..count)
                        .map(|_| if fixed { 77 } else { 1 + random.bits() % 255 })
                        .collect();
                    data.extend(head(3, if fixed { 0 } else { 7 }));
                    varint(&mut data, folded(base));
                    varint(&mut data, folded(sign * steps[0] as i64));
                    if !fixed {
                        pack(&mut data, &steps[1..], 8);
                    }
                    let mut at = base;
                    values.push(at);
                    values.extend(steps.iter().map(|s| {
                        at += sign * *s as i64;
                        at
                    }));
                }
            }
        }
        starts.push(data.len() as u32);
        counts.push(values.len() as u32);
    }
    everywhere(|run| {
        let out = run.zeros::<i64>(values.len());
        run.launch(
            rle_v2::kernel(),
            LaunchConfig::linear(50, 32),
            args![
                &run.upload(&starts),
                &run.upload(&data),
                &run.upload(&counts),
                &out
            ],
        );
        run.holds(&out, &values);
    });
}

// 150: DietGPU's rANS

const LANES: usize = 32;
const PROBABILITY_BITS: u32 = 10;
const LOWEST: u32 = 1 << 15;

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Symbol {
    frequency: u16,
    start: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Block {
    states: [u32; LANES],
    first_word: u32,
    words: u32,
    output: u32,
    len: u32,
}

#[kernel(block_size = 32)]
fn rans_decode(symbols: &[Symbol; 256], blocks: &[Block], words: &[u16], out: &mut [u8]) {
    let lookup = shared_array::<[u8; 1 << PROBABILITY_BITS]>();
    let reads = shared_array::<[bool; LANES]>();
    let lane = local_id_x();
    for (value, symbol) in symbols.iter().enumerate().skip(lane).step_by(LANES) {
        let start = usize::from(symbol.start);
        lookup[start..start + usize::from(symbol.frequency)].fill(value as u8);
    }
    sync_threads();
    let block = &blocks[group_id_x()];
    let mut state = block.states[lane];
    let mut end = (block.first_word + block.words) as usize;
    let rounds = block.len.div_ceil(LANES as u32) as usize;
    for round in 0..rounds {
        let position = round * LANES + lane;
        let active = position < block.len as usize;
        if active {
            let slot = state & ((1 << PROBABILITY_BITS) - 1);
            let value = lookup[slot as usize];
            let Symbol { frequency, start } = symbols[usize::from(value)];
            state = u32::from(frequency) * (state >> PROBABILITY_BITS) + slot - u32::from(start);
            out[block.output as usize + position] = value;
        }
        let short = active && state < LOWEST;
        reads[lane] = short;
        sync_threads();
        if short {
            let before = reads[..lane].iter().filter(|read| **read).count();
            state = state << 16 | u32::from(words[end - 1 - before]);
        }
        end -= reads.iter().filter(|read| **read).count();
        sync_threads();
    }
}

#[test]
fn rans_gives_the_bytes_back() {
    let mut random = Random(150);
    let lens = [1usize, 31, 32, 700, 1000, 4096];
    let texts: Vec<Vec<u8>> = lens
        .iter()
        .map(|len| {
            (0..*len)
                .map(|_| (random.below(16) * random.below(16)) as u8)
                .collect()
        })
        .collect();
    let mut counts = [0usize; 256];
    texts.iter().flatten().for_each(|b| counts[usize::from(*b)] += 1);
    let total: usize = counts.iter().sum();
    let mut frequencies: Vec<usize> = counts
        .iter()
        .map(|c| if *c == 0 { 0 } else { (c * 1024 / total).max(1) })
        .collect();
    // The commonest takes what is missing or too much.
    let most = (0..256).max_by_key(|k| counts[*k]).unwrap();
    frequencies[most] = frequencies[most] + 1024 - frequencies.iter().sum::<usize>();
    let mut start = 0;
    let symbols: Vec<Symbol> = frequencies
        .iter()
        .map(|f| {
            start += f;
            Symbol {
                frequency: *f as u16,
                start: (start - f) as u16,
            }
        })
        .collect();
    let (mut words, mut blocks, mut output) = (Vec::<u16>::new(), Vec::new(), 0);
    for text in &texts {
        let first_word = words.len() as u32;
        let mut states = [LOWEST; LANES];
        // Backwards, so that the decoder goes forwards.
        for round in (0..text.len().div_ceil(LANES)).rev() {
            for lane in (0..LANES).rev().filter(|lane| round * LANES + lane < text.len()) {
                let symbol = symbols[usize::from(text[round * LANES + lane])];
                let (f, state) = (u32::from(symbol.frequency), &mut states[lane]);
                if u64::from(*state) >= u64::from(f) << 21 {
                    words.push(*state as u16);
                    *state >>= 16;
                }
                *state = (*state / f) << 10 | (*state % f + u32::from(symbol.start));
            }
        }
        blocks.push(Block {
            states,
            first_word,
            words: words.len() as u32 - first_word,
            output,
            len: text.len() as u32,
        });
        output += text.len() as u32;
    }
    let expected = texts.concat();
    let table: [Symbol; 256] = symbols.try_into().unwrap();
    everywhere(|run| {
        let out = run.zeros::<u8>(expected.len());
        run.launch(
            rans_decode::kernel(),
            LaunchConfig::new(blocks.len() as u32, 32),
            args![
                &run.upload(&[table]),
                &run.upload(&blocks),
                &run.upload(&words),
                &out
            ],
        );
        run.holds(&out, &expected);
    });
}
