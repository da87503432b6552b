//! Compression: LZ4.

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
        run.launch(
            lz4_compress::kernel(),
            LaunchConfig::linear(n, 8),
            args![chunk, room, &x, &packed, &sizes],
        );
        let (bytes, ends) = (run.read(&packed), run.read(&sizes));
        for (k, part) in text.chunks(chunk).enumerate() {
            let packed = &bytes[k * room..k * room + ends[k] as usize];
            assert!(read(packed) == part, "chunk {k} on {}", run.place());
            assert!(packed.len() < part.len() * 3 / 4, "chunk {k} on {}", run.place());
        }
        let (back, found) = (run.zeros::<u8>(n * chunk), run.zeros::<i32>(n));
        let config = LaunchConfig::linear(n, 8);
        run.launch(
            lz4_decompress::kernel(),
            config,
            args![room, chunk, &packed, &sizes, &back, &found],
        );
        run.holds(&found, &lengths);
        run.holds(&back, &restored);

        let (packed, sizes) = (run.upload(&pieces), run.upload(&piece_sizes));
        let (back, found) = (run.zeros::<u8>(6 * 100), run.zeros::<i32>(6));
        let config = LaunchConfig::linear(6, 8);
        run.launch(
            lz4_decompress::kernel(),
            config,
            args![16usize, 100usize, &packed, &sizes, &back, &found],
        );
        run.holds(&found, &[-2, -3, -1, -1, -1, 2]);
    });
}
