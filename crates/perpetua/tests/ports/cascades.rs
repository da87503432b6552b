//! Compression: runs with differences and packed bits, and the move-to-front transform.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 266: runs, differences and packed bits

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Header {
    runs: u32,
    first: u32,
    least: i32,
    value_bits: u32,
    length_bits: u32,
}

/// The sum of what this lane and those before it bring. At the end `sums` holds those of all lanes.
#[device]
fn scan_block(sums: &mut [u32; 128], lane: usize, value: u32) -> u32 {
    sums[lane] = value;
    sync_threads();
    let mut step = 1;
    while step < 128 {
        let before = if lane >= step { sums[lane - step] } else { 0 };
        sync_threads();
        sums[lane] = sums[lane].wrapping_add(before);
        sync_threads();
        step *= 2;
    }
    sums[lane]
}

#[device]
fn put_bits(words: &mut [u32; 160], at: usize, bits: u32, value: u32) {
    let (word, shift) = (at / 32, at as u32 % 32);
    if bits > 0 {
        atomic_or(&mut words[word], value << shift);
    }
    if shift + bits > 32 {
        atomic_or(&mut words[word + 1], value >> (32 - shift));
    }
}

#[device]
fn take_bits(words: &[u32; 160], at: usize, bits: u32) -> u32 {
    let (word, shift) = (at / 32, at as u32 % 32);
    let mut value = words[word] >> shift;
    if shift + bits > 32 {
        value |= words[word + 1] << (32 - shift);
    }
    value & 1u32.unbounded_shl(bits).wrapping_sub(1)
}

#[kernel(block_size = 128)]
fn cascade(x: &[u32], headers: &mut [Header], packed: &mut [[u32; 160]]) {
    let sums = shared_array::<[u32; 128]>();
    let values = shared_array::<[u32; 128]>();
    let starts = shared_array::<[u32; 129]>();
    let bounds = shared_array::<[i32; 3]>();
    let (i, lane, group) = (global_id_x(), local_id_x(), group_id_x());
    let begins = i < x.len() && (lane == 0 || x[i] != x[i - 1]);
    let run = scan_block(sums, lane, u32::from(begins)) as usize;
    let runs = sums[127] as usize;
    if begins {
        values[run - 1] = x[i];
        starts[run - 1] = lane as u32;
    }
    if lane == 0 {
        starts[runs] = (x.len() - group * 128).min(128) as u32;
        *bounds = [i32::MAX, i32::MIN, 0];
    }
    sync_threads();
    let difference = (1..runs)
        .contains(&lane)
        .then(|| values[lane].wrapping_sub(values[lane - 1]) as i32);
    let length = (lane < runs).then(|| starts[lane + 1] - starts[lane]);
    if let Some(difference) = difference {
        atomic_min(&mut bounds[0], difference);
        atomic_max(&mut bounds[1], difference);
    }
    if let Some(length) = length {
        atomic_max(&mut bounds[2], length as i32);
    }
    sync_threads();
    let [least, greatest, longest] = *bounds;
    let (least, value_bits) = if runs > 1 {
        (least, 32 - (greatest.wrapping_sub(least) as u32).leading_zeros())
    } else {
        (0, 0)
    };
    let header = Header {
        runs: runs as u32,
        first: values[0],
        least,
        value_bits,
        length_bits: 32 - longest.leading_zeros(),
    };
    if lane == 0 {
        headers[group] = header;
    }
    let words = &mut packed[group];
    if let Some(difference) = difference {
        let bits = header.value_bits;
        let value = difference.wrapping_sub(least) as u32;
        put_bits(words, (lane - 1) * bits as usize, bits, value);
    }
    if let Some(length) = length {
        let bits = header.length_bits;
        let at = (runs - 1) * header.value_bits as usize + lane * bits as usize;
        put_bits(words, at, bits, length);
    }
}

#[kernel(block_size = 128)]
fn restore(headers: &[Header], packed: &[[u32; 160]], x: &mut [u32]) {
    let sums = shared_array::<[u32; 128]>();
    let values = shared_array::<[u32; 128]>();
    let lane = local_id_x();
    let (header, words) = (headers[group_id_x()], &packed[group_id_x()]);
    let runs = header.runs as usize;
    let mut difference = 0;
    if lane > 0 && lane < runs {
        let bits = header.value_bits;
        difference = take_bits(words, (lane - 1) * bits as usize, bits).wrapping_add(header.least as u32);
    }
    values[lane] = header.first.wrapping_add(scan_block(sums, lane, difference));
    sync_threads();
    let mut length = 0;
    if lane < runs {
        let bits = header.length_bits;
        let at = (runs - 1) * header.value_bits as usize + lane * bits as usize;
        length = take_bits(words, at, bits);
    }
    scan_block(sums, lane, length);
    if let Some(out) = x.get_mut(global_id_x()) {
        *out = values[sums[..runs].partition_point(|end| *end as usize <= lane)];
    }
}

#[test]
fn cascades_are_packed_and_restored() {
    let mut random = Random(266);
    let n = 128 * 5 + 37;
    let mut x: Vec<u32> = Vec::new();
    while x.len() < n {
        // A part of long runs of like numbers, a part of short ones of any, and a block of one number.
        let (value, count) = match x.len() {
            0..200 => (1000 + random.bits() as u32 % 50, 1 + random.bits() as usize % 20),
            200..384 => (
                random.bits() as u32,
                (1 + random.bits() as usize % 2).min(384 - x.len()),
            ),
            384..512 => (7, 512 - x.len()),
            _ => (
                u32::MAX - random.bits() as u32 % 3,
                1 + random.bits() as usize % 9,
            ),
        };
        x.extend(vec![value; count]);
    }
    x.truncate(n);
    let width = |v: u64| (0u32..).find(|k| v >> k == 0).unwrap();
    let (mut headers, mut packed) = (Vec::new(), Vec::new());
    for part in x.chunks(128) {
        let runs: Vec<&[u32]> = part.chunk_by(|a, b| a == b).collect();
        let steps: Vec<i64> = runs
            .windows(2)
            .map(|w| w[1][0].wrapping_sub(w[0][0]) as i32 as i64)
            .collect();
        let least = steps.iter().min().copied().unwrap_or(0);
        let value_bits = steps
            .iter()
            .max()
            .map_or(0, |greatest| width((greatest - least) as u64));
        let length_bits = width(runs.iter().map(|r| r.len() as u64).max().unwrap());
        let mut bits: Vec<bool> = Vec::new();
        for step in &steps {
            bits.extend((0..value_bits).map(|k| (step - least) >> k & 1 == 1));
        }
        for run in &runs {
            bits.extend((0..length_bits).map(|k| run.len() >> k & 1 == 1));
        }
        let mut words = [0u32; 160];
        for (k, _) in bits.iter().enumerate().filter(|(_, bit)| **bit) {
            words[k / 32] += 1 << (k % 32);
        }
        packed.push(words);
        headers.push(Header {
            runs: runs.len() as u32,
            first: part[0],
            least: least as i32,
            value_bits,
            length_bits,
        });
    }
    assert_eq!(headers[3].runs, 1);
    everywhere(|run| {
        let values = run.upload(&x);
        let (heads, words) = (run.zeros::<Header>(6), run.zeros::<[u32; 160]>(6));
        run.launch(
            cascade::kernel(),
            LaunchConfig::linear(n, 128),
            args![&values, &heads, &words],
        );
        run.holds(&heads, &headers);
        run.holds(&words, &packed);
        let back = run.zeros::<u32>(n);
        run.launch(
            restore::kernel(),
            LaunchConfig::linear(n, 128),
            args![&heads, &words, &back],
        );
        run.holds(&back, &x);
    });
}

// 267: move to front

/// Different symbols, the one seen last first.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Recent<const N: usize> {
    len: u32,
    symbols: [u8; N],
}

#[device]
impl<const N: usize> Recent<N> {
    fn empty() -> Self {
        Recent {
            len: 0,
            symbols: [0; N],
        }
    }

    fn as_slice(&self) -> &[u8] {
        &self.symbols[..self.len as usize]
    }

    fn add(&mut self, symbol: u8) {
        if !self.as_slice().contains(&symbol) {
            self.symbols[self.len as usize] = symbol;
            self.len += 1;
        }
    }

    /// What both have seen, where `earlier` came before.
    fn after(mut self, earlier: &Self) -> Self {
        for symbol in earlier.as_slice() {
            self.add(*symbol);
        }
        self
    }
}

#[kernel(block_size = 32)]
fn move_to_front<const N: usize>(texts: &[u8], starts: &[u32], ranks: &mut [u8]) {
    let lists = shared_array::<[Recent<N>; 32]>();
    let (lane, group) = (local_id_x(), group_id_x());
    let (from, to) = (starts[group] as usize, starts[group + 1] as usize);
    let part = (to - from).div_ceil(32);
    let begin = (from + lane * part).min(to);
    let own = begin..(begin + part).min(to);
    let mut list = Recent::<N>::empty();
    for symbol in texts[own.clone()].iter().rev() {
        list.add(*symbol);
    }
    lists[lane] = list;
    sync_threads();
    let mut step = 1;
    while step < 32 {
        if lane >= step {
            list = list.after(&lists[lane - step]);
        }
        sync_threads();
        lists[lane] = list;
        sync_threads();
        step *= 2;
    }
    let mut recent = if lane > 0 {
        lists[lane - 1]
    } else {
        Recent::empty()
    };
    for symbol in 0..N {
        recent.add(symbol as u8);
    }
    for i in own {
        let rank = recent
            .symbols
            .iter()
            .position(|symbol| *symbol == texts[i])
            .unwrap();
        recent.symbols[..=rank].rotate_right(1);
        ranks[i] = rank as u8;
    }
}

#[test]
fn symbols_move_to_the_front() {
    let mut random = Random(267);
    let lengths = [301usize, 0, 77, 5];
    let mut texts: Vec<u8> = Vec::new();
    let mut starts = vec![0u32];
    for len in lengths {
        // Few symbols at a time, which change slowly.
        texts.extend((0..len).map(|k| ((random.bits() % 6) as usize * (1 + k / 90) % 32) as u8));
        starts.push(texts.len() as u32);
    }
    let mut expected = Vec::new();
    for ends in starts.windows(2) {
        let mut order: Vec<u8> = (0..32).collect();
        for symbol in &texts[ends[0] as usize..ends[1] as usize] {
            let at = order.iter().position(|s| s == symbol).unwrap();
            order.remove(at);
            order.insert(0, *symbol);
            expected.push(at as u8);
        }
    }
    everywhere(|run| {
        let (x, ends, ranks) = (
            run.upload(&texts),
            run.upload(&starts),
            run.zeros::<u8>(texts.len()),
        );
        let config = LaunchConfig::new(lengths.len() as u32, 32);
        run.launch(move_to_front::kernel::<32>(), config, args![&x, &ends, &ranks]);
        run.holds(&ranks, &expected);
    });
}
