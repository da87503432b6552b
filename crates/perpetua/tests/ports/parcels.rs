//! Compression: LZ4, runs with differences and packed bits, and the move-to-front transform.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 265: LZ4

#[device]
fn put_length(out: &mut [u8], mut at: usize, length: usize) -> usize {
    if let Some(mut rest) = length.checked_sub(15) {
        while rest >= 255 {
            out[at] = 255;
            at += 1;
            rest -= 255;
        }
        out[at] = rest as u8;
        at += 1;
    }
    at
}

/// Writes literals and the match behind them, its distance and its length; says where the next sequence begins.
#[device]
fn put_sequence(out: &mut [u8], at: usize, literals: &[u8], found: Option<(usize, usize)>) -> usize {
    let nibble = |n: usize| n.min(15) as u8;
    let low = found.map_or(0, |(_, length)| nibble(length - 4));
    out[at] = nibble(literals.len()) << 4 | low;
    let mut end = put_length(out, at + 1, literals.len());
    out[end..end + literals.len()].copy_from_slice(literals);
    end += literals.len();
    if let Some((distance, length)) = found {
        out[end..end + 2].copy_from_slice(&(distance as u16).to_le_bytes());
        end = put_length(out, end + 2, length - 4);
    }
    end
}

#[kernel(block_size = 8)]
fn lz4_compress(chunk: usize, room: usize, text: &[u8], packed: &mut [u8], sizes: &mut [u32]) {
    // Where a hash was seen last: a column for each lane.
    let seen = shared_array::<[[u16; 8]; 256]>();
    let (i, lane) = (global_id_x(), local_id_x());
    if i >= sizes.len() {
        return;
    }
    for row in seen.iter_mut() {
        row[lane] = u16::MAX;
    }
    let own = &text[i * chunk..((i + 1) * chunk).min(text.len())];
    let out = &mut packed[i * room..(i + 1) * room];
    let (mut at, mut literals, mut end) = (0, 0, 0);
    // A match begins at least twelve bytes before the end, and the last five bytes are literals.
    while at + 12 <= own.len() {
        let word = u32::from_le_bytes(own[at..at + 4].try_into().unwrap());
        let hash = word.wrapping_mul(2_654_435_761) >> 24;
        let before = usize::from(std::mem::replace(&mut seen[hash as usize][lane], at as u16));
        let length = if before < at {
            let ahead = own[at..own.len() - 5].iter();
            ahead.zip(&own[before..]).take_while(|(a, b)| a == b).count()
        } else {
            0
        };
        if length >= 4 {
            end = put_sequence(out, end, &own[literals..at], Some((at - before, length)));
            at += length;
            literals = at;
        } else {
            at += 1;
        }
    }
    sizes[i] = put_sequence(out, end, &own[literals..], None) as u32;
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum Flaw {
    Truncated = 1,
    Distance = 2,
    Room = 3,
}

#[device]
fn take_length(packed: &[u8], at: &mut usize, nibble: u8) -> Result<usize, Flaw> {
    let mut length = usize::from(nibble);
    if nibble == 15 {
        loop {
            let more = *packed.get(*at).ok_or(Flaw::Truncated)?;
            *at += 1;
            length += usize::from(more);
            if more < 255 {
                break;
            }
        }
    }
    Ok(length)
}

#[device]
fn unpack(packed: &[u8], out: &mut [u8]) -> Result<usize, Flaw> {
    let (mut at, mut end) = (0, 0);
    while let Some(&token) = packed.get(at) {
        at += 1;
        let count = take_length(packed, &mut at, token >> 4)?;
        let literals = packed.get(at..at + count).ok_or(Flaw::Truncated)?;
        if out.len() - end < count {
            return Err(Flaw::Room);
        }
        out[end..end + count].copy_from_slice(literals);
        at += count;
        end += count;
        if at == packed.len() {
            return Ok(end);
        }
        let Some(distance) = packed[at..].first_chunk::<2>() else {
            return Err(Flaw::Truncated);
        };
        let distance = usize::from(u16::from_le_bytes(*distance));
        at += 2;
        if distance == 0 || distance > end {
            return Err(Flaw::Distance);
        }
        let length = take_length(packed, &mut at, token & 15)? + 4;
        if out.len() - end < length {
            return Err(Flaw::Room);
        }
        for k in end..end + length {
            out[k] = out[k - distance];
        }
        end += length;
    }
    Err(Flaw::Truncated)
}

#[kernel]
fn lz4_decompress(
    room: usize,
    chunk: usize,
    packed: &[u8],
    sizes: &[u32],
    text: &mut [u8],
    found: &mut [i32],
) {
    let i = global_id_x();
    if i >= sizes.len() {
        return;
    }
    let own = &packed[i * room..i * room + sizes[i] as usize];
    found[i] = match unpack(own, &mut text[i * chunk..(i + 1) * chunk]) {
        Ok(len) => len as i32,
        Err(flaw) => -(flaw as i32),
    };
}

#[test]
fn lz4_there_and_back() {
    let mut random = Random(265);
    let mut text: Vec<u8> = Vec::new();
    while text.len() < 2900 {
        match random.bits() % 8 {
            0 => text.extend(random.bytes(9)),
            1 => text.extend(vec![random.bits() as u8; 40]),
            2 if text.len() > 1500 && text.len() < 1800 => text.extend(vec![b'x'; 400]),
            k => text.extend([b"the chunk".as_slice(), b" of ", b"literals, ", b"repeated"][k as usize % 4]),
        }
    }
    let (chunk, room) = (700usize, 724usize);
    let n = text.len().div_ceil(chunk);
    let mut restored = text.clone();
    restored.resize(n * chunk, 0);
    let lengths: Vec<i32> = text.chunks(chunk).map(|c| c.len() as i32).collect();
    // The format read by its definition, of what is known to be right.
    let read = |packed: &[u8]| -> Vec<u8> {
        let mut bytes = packed.iter().copied();
        let mut out: Vec<u8> = Vec::new();
        let long = |nibble: u8, bytes: &mut dyn Iterator<Item = u8>| -> usize {
            let mut sum = nibble as usize;
            let mut last = if nibble == 15 { 255 } else { 0 };
            while last == 255 {
                last = bytes.next().unwrap();
                sum += last as usize;
            }
            sum
        };
        loop {
            let token = bytes.next().unwrap();
            let literals = long(token / 16, &mut bytes);
            out.extend(bytes.by_ref().take(literals));
            let Some(low) = bytes.next() else {
                return out;
            };
            let distance = low as usize + 256 * bytes.next().unwrap() as usize;
            for _ in 0..long(token % 16, &mut bytes) + 4 {
                out.push(out[out.len() - distance]);
            }
        }
    };
    let flawed: [&[u8]; 6] = [
        &[0x10, b'a', 5, 0],
        &[0x1f, b'a', 1, 0, 255, 255, 255, 0],
        &[0x30, b'a', b'b'],
        &[0x10, b'a', 1],
        &[0xf0, 255],
        &[0x20, b'a', b'b'],
    ];
    let mut pieces = vec![0u8; flawed.len() * 16];
    for (piece, flaw) in pieces.chunks_mut(16).zip(flawed) {
        piece[..flaw.len()].copy_from_slice(flaw);
    }
    let piece_sizes: Vec<u32> = flawed.iter().map(|f| f.len() as u32).collect();
    everywhere(|run| {
        let (x, packed, sizes) = (run.upload(&text), run.zeros::<u8>(n * room), run.zeros::<u32>(n));
        run.launch(lz4_compress::kernel(), LaunchConfig::linear(n, 8), args![chunk, room, &x, &packed, &sizes]);
        let (bytes, ends) = (run.read(&packed), run.read(&sizes));
        for (k, part) in text.chunks(chunk).enumerate() {
            let packed = &bytes[k * room..k * room + ends[k] as usize];
            assert!(read(packed) == part, "chunk {k} on {}", run.place());
            assert!(packed.len() < part.len() * 3 / 4, "chunk {k} on {}", run.place());
        }
        let (back, found) = (run.zeros::<u8>(n * chunk), run.zeros::<i32>(n));
        let config = LaunchConfig::linear(n, 8);
        run.launch(lz4_decompress::kernel(), config, args![room, chunk, &packed, &sizes, &back, &found]);
        run.holds(&found, &lengths);
        run.holds(&back, &restored);

        let (packed, sizes) = (run.upload(&pieces), run.upload(&piece_sizes));
        let (back, found) = (run.zeros::<u8>(6 * 100), run.zeros::<i32>(6));
        let config = LaunchConfig::linear(6, 8);
        run.launch(lz4_decompress::kernel(), config, args![16usize, 100usize, &packed, &sizes, &back, &found]);
        run.holds(&found, &[-2, -3, -1, -1, -1, 2]);
    });
}

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
            200..384 => (random.bits() as u32, (1 + random.bits() as usize % 2).min(384 - x.len())),
            384..512 => (7, 512 - x.len()),
            _ => (u32::MAX - random.bits() as u32 % 3, 1 + random.bits() as usize % 9),
        };
        x.extend(vec![value; count]);
    }
    x.truncate(n);
    let width = |v: u64| (0u32..).find(|k| v >> k == 0).unwrap();
    let (mut headers, mut packed) = (Vec::new(), Vec::new());
    for part in x.chunks(128) {
        let runs: Vec<&[u32]> = part.chunk_by(|a, b| a == b).collect();
        let steps: Vec<i64> = runs.windows(2).map(|w| w[1][0].wrapping_sub(w[0][0]) as i32 as i64).collect();
        let least = steps.iter().min().copied().unwrap_or(0);
        let value_bits = steps.iter().max().map_or(0, |greatest| width((greatest - least) as u64));
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
        run.launch(cascade::kernel(), LaunchConfig::linear(n, 128), args![&values, &heads, &words]);
        run.holds(&heads, &headers);
        run.holds(&words, &packed);
        let back = run.zeros::<u32>(n);
        run.launch(restore::kernel(), LaunchConfig::linear(n, 128), args![&heads, &words, &back]);
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
        Recent { len: 0, symbols: [0; N] }
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
    let mut recent = if lane > 0 { lists[lane - 1] } else { Recent::empty() };
    for symbol in 0..N {
        recent.add(symbol as u8);
    }
    for i in own {
        let rank = recent.symbols.iter().position(|symbol| *symbol == texts[i]).unwrap();
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
        let (x, ends, ranks) = (run.upload(&texts), run.upload(&starts), run.zeros::<u8>(texts.len()));
        let config = LaunchConfig::new(lengths.len() as u32, 32);
        run.launch(move_to_front::kernel::<32>(), config, args![&x, &ends, &ranks]);
        run.holds(&ranks, &expected);
    });
}
