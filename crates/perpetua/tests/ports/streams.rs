//! Streams of bits and bytes, unpacked.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 148: cuDF's inflate

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum Status {
    Done,
    InputEnded,
    OutputFull,
    BadBlock,
    BadCode,
    BadDistance,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Stream {
    first: u32,
    end: u32,
    output: u32,
    capacity: u32,
}

/// Bits of a stream, the lowest of each byte first.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Bits {
    buffer: u32,
    count: u32,
    next: u32,
}

#[device]
impl Bits {
    fn take(&mut self, input: &[u8], need: u32) -> Result<u32, Status> {
        while self.count < need {
            let byte = input.get(self.next as usize).ok_or(Status::InputEnded)?;
            self.buffer |= u32::from(*byte) << self.count;
            self.next += 1;
            self.count += 8;
        }
        let value = self.buffer & ((1 << need) - 1);
        self.buffer >>= need;
        self.count -= need;
        Ok(value)
    }
}

/// A canonical code: how many symbols have each length, and the symbols in the order of their codes.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Code<const N: usize> {
    counts: [u16; 16],
    symbols: [u16; N],
}

#[device]
impl<const N: usize> Code<N> {
    fn set(&mut self, lengths: &[u8]) {
        self.counts.fill(0);
        for length in lengths {
            self.counts[*length as usize] += 1;
        }
        self.counts[0] = 0;
        let mut offsets = [0u16; 16];
        for length in 1..15 {
            offsets[length + 1] = offsets[length] + self.counts[length];
        }
        for (symbol, length) in lengths.iter().enumerate().filter(|(_, length)| **length > 0) {
            let offset = &mut offsets[*length as usize];
            self.symbols[*offset as usize] = symbol as u16;
            *offset += 1;
        }
    }

    fn decode(&self, bits: &mut Bits, input: &[u8]) -> Result<usize, Status> {
        let (mut code, mut first, mut index) = (0i32, 0i32, 0i32);
        for count in self.counts[1..].iter().map(|c| i32::from(*c)) {
            code |= bits.take(input, 1)? as i32;
            if code - count < first {
                return Ok(usize::from(self.symbols[(index + code - first) as usize]));
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        Err(Status::BadCode)
    }
}

const LENGTHS: [u16; 29] = [
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195,
    227, 258,
];
const LENGTH_BITS: [u8; 29] = [
    0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0,
];
const DISTANCES: [u16; 30] = [
    1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073,
    4097, 6145, 8193, 12289, 16385, 24577,
];
const ORDER: [u8; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// The lengths of a block's codes, of which so many are of literals; where `fixed`, those that every stream knows.
#[device]
fn code_lengths(
    fixed: bool,
    bits: &mut Bits,
    input: &[u8],
    lengths: &mut [u8; 320],
) -> Result<[usize; 2], Status> {
    if fixed {
        for (symbol, length) in lengths.iter_mut().enumerate() {
            *length = match symbol {
                0..144 => 8,
                144..256 => 9,
                256..280 => 7,
                280..288 => 8,
                _ => 5,
            };
        }
        return Ok([288, 318]);
    }
    let header = bits.take(input, 14)? as usize;
    let (literals, count) = ((header & 31) + 257, (header >> 10) + 4);
    let all = literals + (header >> 5 & 31) + 1;
    let mut short = [0u8; 19];
    for symbol in &ORDER[..count] {
        short[*symbol as usize] = bits.take(input, 3)? as u8;
    }
    let mut code = Code {
        counts: [0; 16],
        symbols: [0; 19],
    };
    code.set(&short);
    let mut at = 0;
    while at < all {
        let symbol = code.decode(bits, input)?;
        let (value, least, extra) = match symbol {
            16 if at == 0 => return Err(Status::BadCode),
            16 => (lengths[at - 1], 3, 2),
            17 => (0, 3, 3),
            18 => (0, 11, 7),
            length => (length as u8, 1, 0),
        };
        let end = at + least + bits.take(input, extra)? as usize;
        if end > all {
            return Err(Status::BadCode);
        }
        lengths[at..end].fill(value);
        at = end;
    }
    Ok([literals, all])
}

#[device]
fn inflate_block(
    bits: &mut Bits,
    input: &[u8],
    output: &mut [u8],
    len: &mut usize,
    literals: &Code<288>,
    distances: &Code<32>,
) -> Result<(), Status> {
    loop {
        match literals.decode(bits, input)? {
            256 => return Ok(()),
            symbol @ 0..256 => {
                *output.get_mut(*len).ok_or(Status::OutputFull)? = symbol as u8;
                *len += 1;
            }
            symbol => {
                let k = symbol - 257;
                let extra = u32::from(*LENGTH_BITS.get(k).ok_or(Status::BadCode)?);
                let length = usize::from(LENGTHS[k]) + bits.take(input, extra)? as usize;
                let k = distances.decode(bits, input)?;
                let extra = (k as u32 / 2).saturating_sub(1);
                let first = usize::from(*DISTANCES.get(k).ok_or(Status::BadCode)?);
                let distance = first + bits.take(input, extra)? as usize;
                if distance > *len {
                    return Err(Status::BadDistance);
                }
                if *len + length > output.len() {
                    return Err(Status::OutputFull);
                }
                for _ in 0..length {
                    output[*len] = output[*len - distance];
                    *len += 1;
                }
            }
        }
    }
}

#[device]
fn inflate_stream(input: &[u8], output: &mut [u8], len: &mut usize) -> Result<(), Status> {
    let mut bits = Bits {
        buffer: 0,
        count: 0,
        next: 0,
    };
    let mut lengths = [0; 320];
    let mut literals = Code {
        counts: [0; 16],
        symbols: [0; 288],
    };
    let mut distances = Code {
        counts: [0; 16],
        symbols: [0; 32],
    };
    loop {
        let header = bits.take(input, 3)?;
        match header >> 1 {
            0 => {
                bits.take(input, bits.count % 8)?;
                let size = bits.take(input, 16)?;
                if bits.take(input, 16)? != !size & 0xffff {
                    return Err(Status::BadBlock);
                }
                for _ in 0..size {
                    let byte = bits.take(input, 8)? as u8;
                    *output.get_mut(*len).ok_or(Status::OutputFull)? = byte;
                    *len += 1;
                }
            }
            kind @ 1..=2 => {
                let [first, all] = code_lengths(kind == 1, &mut bits, input, &mut lengths)?;
                literals.set(&lengths[..first]);
                distances.set(&lengths[first..all]);
                inflate_block(&mut bits, input, output, len, &literals, &distances)?;
            }
            _ => return Err(Status::BadBlock),
        }
        if header & 1 == 1 {
            return Ok(());
        }
    }
}

#[kernel]
fn inflate(streams: &[Stream], input: &[u8], output: &mut [u8], sizes: &mut [u32], statuses: &mut [Status]) {
    let id = global_id_x();
    let Some(stream) = streams.get(id) else { return };
    let input = &input[stream.first as usize..stream.end as usize];
    let output = &mut output[stream.output as usize..][..stream.capacity as usize];
    let mut len = 0;
    statuses[id] = match inflate_stream(input, output, &mut len) {
        Ok(()) => Status::Done,
        Err(status) => status,
    };
    sizes[id] = len as u32;
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    used: u32,
}

impl Writer {
    fn bits(&mut self, value: u32, count: u32) {
        for k in 0..count {
            if self.used % 8 == 0 {
                self.bytes.push(0);
            }
            *self.bytes.last_mut().unwrap() |= ((value >> k & 1) as u8) << (self.used % 8);
            self.used += 1;
        }
    }

    fn code(&mut self, lengths: &[u8], symbol: usize) {
        // The codes of a length follow those of the shorter ones.
        let mut code = 0u32;
        for length in 1..=lengths[symbol] {
            code <<= 1;
            let upto = if length == lengths[symbol] {
                symbol
            } else {
                lengths.len()
            };
            code += lengths[..upto].iter().filter(|l| **l == length).count() as u32;
        }
        for k in (0..lengths[symbol]).rev() {
            self.bits(code >> k & 1, 1);
        }
    }

    fn tokens(&mut self, text: &[u8], literals: &[u8], distances: &[u8]) {
        let mut at = 0;
        while at < text.len() {
            let run = |d: usize| {
                (0..258)
                    .take_while(|k| at + k < text.len() && text[at + k] == text[at + k - d])
                    .count()
            };
            let best = (1..=at.min(300)).max_by_key(|d| (run(*d), usize::MAX - d));
            match best.map(|d| (d, run(d))).filter(|(_, length)| *length >= 3) {
                Some((distance, length)) => {
                    let k = LENGTHS.partition_point(|l| usize::from(*l) <= length) - 1;
                    self.code(literals, 257 + k);
                    self.bits(
                        (length - usize::from(LENGTHS[k])) as u32,
                        u32::from(LENGTH_BITS[k]),
                    );
                    let k = DISTANCES.partition_point(|d| usize::from(*d) <= distance) - 1;
                    self.code(distances, k);
                    self.bits(
                        (distance - usize::from(DISTANCES[k])) as u32,
                        (k as u32 / 2).max(1) - 1,
                    );
                    at += length;
                }
                None => {
                    self.code(literals, usize::from(text[at]));
                    at += 1;
                }
            }
        }
        self.code(literals, 256);
    }

    fn block(&mut self, text: &[u8], kind: u32, last: bool) {
        self.bits(u32::from(last), 1);
        self.bits(kind, 2);
        match kind {
            0 => {
                self.bits(0, (8 - self.used % 8) % 8);
                self.bits(text.len() as u32, 16);
                self.bits(!text.len() as u32 & 0xffff, 16);
                text.iter().for_each(|b| self.bits(u32::from(*b), 8));
            }
            1 => {
                let lengths: Vec<u8> = (0..288)
                    .map(|k| [8, 9, 7, 8][usize::from(k > 143) + usize::from(k > 255) + usize::from(k > 279)])
                    .collect();
                self.tokens(text, &lengths, &[5; 30]);
            }
            _ => {
                // Letters that the text has are short, others do not occur but for the end and the lengths.
                let literals: Vec<u8> = (0..286u16)
                    .map(|k| match k {
                        97..=104 => 4,
                        256.. => 6,
                        _ => 0,
                    })
                    .collect();
                let distances = [5u8; 30];
                self.bits(286 - 257, 5);
                self.bits(30 - 1, 5);
                let short: Vec<u8> = (0..19)
                    .map(|k| {
                        if [0, 4, 5, 6, 16, 17, 18].contains(&k) {
                            3
                        } else {
                            0
                        }
                    })
                    .collect();
                self.bits(19 - 4, 4);
                ORDER
                    .iter()
                    .for_each(|k| self.bits(u32::from(short[usize::from(*k)]), 3));
                let all = [&literals[..], &distances].concat();
                let mut at = 0;
                while at < all.len() {
                    let run = all[at..].iter().take_while(|l| **l == all[at]).count();
                    let previous = at > 0 && all[at - 1] == all[at];
                    let (symbol, extra, bits, taken) = match all[at] {
                        0 if run > 10 => (18, run.min(138) - 11, 7, run.min(138)),
                        0 if run > 2 => (17, run.min(10) - 3, 3, run.min(10)),
                        _ if previous && run > 2 => (16, run.min(6) - 3, 2, run.min(6)),
                        length => (usize::from(length), 0, 0, 1),
                    };
                    self.code(&short, symbol);
                    self.bits(extra as u32, bits);
                    at += taken;
                }
                self.tokens(text, &literals, &distances);
            }
        }
    }
}

#[test]
fn inflate_unpacks_all_kinds_of_blocks() {
    let mut random = Random(148);
    let (mut input, mut texts, mut streams) = (Vec::<u8>::new(), Vec::<Vec<u8>>::new(), Vec::new());
    for i in 0..40u32 {
        let mut writer = Writer::default();
        let mut text = Vec::new();
        let blocks = 1 + i % 4;
        for block in 0..blocks {
            let kind = (i + block) % 3;
            let letters = if kind == 2 { 8 } else { 26 };
            let piece: Vec<u8> = (0..random.below(60))
                .map(|_| b'a' + random.below(letters) as u8)
                .collect();
            let piece = piece.repeat(1 + random.below(3));
            writer.block(&piece, kind, block + 1 == blocks);
            text.extend(piece);
        }
        let first = input.len() as u32;
        input.extend(&writer.bytes);
        streams.push(Stream {
            first,
            // The last streams end too early.
            end: input.len() as u32 - if i >= 38 { 1 } else { 0 },
            output: 800 * i,
            capacity: if i == 20 { text.len() as u32 - 1 } else { 800 },
        });
        texts.push(text);
    }
    everywhere(|run| {
        let output = run.zeros::<u8>(800 * 40);
        let (sizes, statuses) = (run.zeros::<u32>(40), run.upload(&[Status::BadBlock; 40]));
        run.launch(
            inflate::kernel(),
            LaunchConfig::linear(40, 32),
            args![
                &run.upload(&streams),
                &run.upload(&input),
                &output,
                &sizes,
                &statuses
            ],
        );
        let (output, sizes, statuses) = (run.read(&output), run.read(&sizes), run.read(&statuses));
        for (i, text) in texts.iter().enumerate() {
            let wanted = match i {
                20 => Status::OutputFull,
                38.. => Status::InputEnded,
                _ => Status::Done,
            };
            assert_eq!(statuses[i], wanted, "{i} on {}", run.place());
            let len = sizes[i] as usize;
            assert!(i == 20 || i >= 38 || len == text.len(), "{i} on {}", run.place());
            assert_eq!(output[800 * i..][..len], text[..len], "{i} on {}", run.place());
        }
    });
}
