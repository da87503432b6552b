//! Compressed data, unpacked and packed.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::transformers::inclusive_scan;

// 86: Snappy

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum Status {
    Good,
    BadLength,
    Truncated,
    BadOffset,
    TooLong,
}

/// A number of seven bits a byte, and what follows it.
#[device]
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (k, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * k);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[k + 1..]));
        }
    }
    None
}

#[device]
fn little_endian(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | usize::from(*byte))
}

/// How many bytes were written.
#[device]
fn unsnap(packed: &[u8], out: &mut [u8]) -> Result<usize, Status> {
    let (length, mut input) = varint(packed).ok_or(Status::BadLength)?;
    if length > out.len() as u64 {
        return Err(Status::BadLength);
    }
    let out = &mut out[..length as usize];
    let mut at = 0;
    while let [tag, rest @ ..] = input {
        let kind = tag & 3;
        let (extra, mut length) = match kind {
            0 if tag >> 2 < 60 => (0, usize::from(tag >> 2) + 1),
            0 => (usize::from(tag >> 2) - 59, 0),
            1 => (1, usize::from(tag >> 2 & 7) + 4),
            2 => (2, usize::from(tag >> 2) + 1),
            _ => (4, usize::from(tag >> 2) + 1),
        };
        if rest.len() < extra {
            return Err(Status::Truncated);
        }
        let (number, rest) = rest.split_at(extra);
        let mut number = little_endian(number);
        if kind == 0 {
            if extra > 0 {
                length = number + 1;
            }
            if rest.len() < length {
                return Err(Status::Truncated);
            }
            let target = out.get_mut(at..at + length).ok_or(Status::TooLong)?;
            let (literal, rest) = rest.split_at(length);
            target.copy_from_slice(literal);
            input = rest;
        } else {
            if kind == 1 {
                number |= usize::from(tag >> 5) << 8;
            }
            if number == 0 || number > at {
                return Err(Status::BadOffset);
            }
            if at + length > out.len() {
                return Err(Status::TooLong);
            }
            for i in at..at + length {
                out[i] = out[i - number];
            }
            input = rest;
        }
        at += length;
    }
    if at == out.len() {
        Ok(at)
    } else {
        Err(Status::Truncated)
    }
}

#[kernel]
fn decompress(
    room: usize,
    ends: &[u32],
    packed: &[u8],
    out: &mut [u8],
    sizes: &mut [u32],
    status: &mut [Status],
) {
    let chunk = global_id_x();
    if chunk >= ends.len() {
        return;
    }
    let start = match chunk {
        0 => 0,
        _ => ends[chunk - 1] as usize,
    };
    let bytes = &packed[start..ends[chunk] as usize];
    match unsnap(bytes, &mut out[chunk * room..(chunk + 1) * room]) {
        Ok(size) => sizes[chunk] = size as u32,
        Err(error) => status[chunk] = error,
    }
}

/// Snappy's format, by the longest match of those of four bytes and more.
fn snap(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    let (mut at, mut literal) = (0, 0);
    let flush = |out: &mut Vec<u8>, part: &[u8]| {
        match part.len() {
            0 => return,
            n if n <= 60 => out.push((n as u8 - 1) << 2),
            n if n <= 256 => out.extend([60 << 2, (n - 1) as u8]),
            n => out.extend([61 << 2, (n - 1) as u8, ((n - 1) >> 8) as u8]),
        }
        out.extend_from_slice(part);
    };
    while at < bytes.len() {
        let agree = |from: usize| {
            (0..60)
                .take_while(|k| at + k < bytes.len() && bytes[from + k] == bytes[at + k])
                .count()
        };
        let best = (0..at).map(|from| (agree(from), from)).max().unwrap_or((0, 0));
        if best.0 < 4 {
            at += 1;
            continue;
        }
        flush(&mut out, &bytes[literal..at]);
        let offset = at - best.1;
        match best.0 {
            n @ 4..12 if offset < 2048 => {
                out.extend([1 | (n as u8 - 4) << 2 | (offset >> 8 << 5) as u8, offset as u8]);
            }
            n if at % 3 == 0 => {
                out.push(3 | (n as u8 - 1) << 2);
                out.extend((offset as u32).to_le_bytes());
            }
            n => {
                out.push(2 | (n as u8 - 1) << 2);
                out.extend((offset as u16).to_le_bytes());
            }
        }
        at += best.0;
        literal = at;
    }
    flush(&mut out, &bytes[literal..]);
    out
}

#[test]
fn snappy_unpacks() {
    let (chunks, room) = (40usize, 700usize);
    let mut random = Random(86);
    let texts: Vec<Vec<u8>> = (0..chunks)
        .map(|c| {
            let letters = [2, 5, 40, 256][c % 4];
            (0..c * 17).map(|_| (random.bits() % letters) as u8).collect()
        })
        .collect();
    let mut packed: Vec<Vec<u8>> = texts.iter().map(|t| snap(t)).collect();
    packed[11].pop();
    packed[12] = vec![0xff; 10];
    packed[13] = vec![20, 0, 7, 0x15, 9];
    packed[14][0] -= 1;
    let faults = [
        (11, Status::Truncated),
        (12, Status::BadLength),
        (13, Status::BadOffset),
        (14, Status::TooLong),
    ];
    let ends: Vec<u32> = packed
        .iter()
        .scan(0, |end, p| {
            *end += p.len() as u32;
            Some(*end)
        })
        .collect();
    let mut status = vec![Status::Good; chunks];
    let mut sizes: Vec<u32> = texts.iter().map(|t| t.len() as u32).collect();
    for (chunk, error) in faults {
        (status[chunk], sizes[chunk]) = (error, 0);
    }
    everywhere(|run| {
        let (e, p) = (run.upload(&ends), run.upload(&packed.concat()));
        let (out, size) = (run.zeros::<u8>(chunks * room), run.zeros::<u32>(chunks));
        let state = run.upload(&vec![Status::Good; chunks]);
        let args = args![room, &e, &p, &out, &size, &state];
        run.launch(decompress::kernel(), LaunchConfig::linear(chunks, 32), args);
        run.holds(&state, &status);
        run.holds(&size, &sizes);
        let found = run.read(&out);
        for (c, text) in texts.iter().enumerate().filter(|(c, _)| sizes[*c] > 0) {
            assert_eq!(
                &found[c * room..][..text.len()],
                &text[..],
                "chunk {c} on {}",
                run.place()
            );
        }
    });
}

// 87: deltas

#[device]
fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// The bits `at..at + width` of the bytes.
#[device]
fn bits(bytes: &[u8], at: usize, width: u32) -> u64 {
    let word = (0..9).rev().fold(0u128, |word, k| {
        word << 8 | u128::from(bytes.get(at / 8 + k).copied().unwrap_or(0))
    });
    let mask = (1u128 << width) - 1;
    ((word >> (at % 8)) & mask) as u64
}

const MINI: usize = 32;

/// A page a block, a value of a miniblock a lane.
#[kernel(block_size = 32)]
fn undelta(starts: &[u32], bytes: &[u8], room: usize, out: &mut [i64], counts: &mut [u32]) {
    let cells = shared_array::<[i64; MINI]>();
    let carry = shared_array::<[i64; 1]>();
    let (page, lane) = (group_id_x(), local_id_x());
    let page_bytes = &bytes[starts[page] as usize..starts[page + 1] as usize];
    let out = &mut out[page * room..(page + 1) * room];
    let (block, rest) = varint(page_bytes).unwrap();
    let (minis, rest) = varint(rest).unwrap();
    let (total, rest) = varint(rest).unwrap();
    let (first, mut rest) = varint(rest).unwrap();
    assert_eq!(block / minis, MINI as u64, "miniblocks of 32 values");
    let (minis, total) = (minis as usize, total as usize);
    if lane == 0 {
        carry[0] = zigzag(first);
        counts[page] = total as u32;
        if total > 0 {
            out[0] = carry[0];
        }
    }
    sync_threads();
    let mut done = 1;
    while done < total {
        let (least, after) = varint(rest).unwrap();
        let least = zigzag(least);
        let (widths, mut data) = after.split_at(minis);
        for width in widths {
            if done >= total {
                break;
            }
            let (mini, after) = data.split_at(usize::from(*width) * MINI / 8);
            let delta = bits(mini, lane * usize::from(*width), u32::from(*width)) as i64;
            let sum = inclusive_scan(cells, delta.wrapping_add(least), i64::wrapping_add);
            let value = carry[0].wrapping_add(sum);
            if let Some(place) = out[..total].get_mut(done + lane) {
                *place = value;
            }
            sync_threads();
            if lane == MINI - 1 {
                carry[0] = value;
            }
            sync_threads();
            done += MINI;
            data = after;
        }
        rest = data;
    }
}

fn leb(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn pack_deltas(values: &[i64]) -> Vec<u8> {
    let fold = |v: i64| {
        if v < 0 {
            !(v as u64) << 1 | 1
        } else {
            (v as u64) << 1
        }
    };
    let mut out = Vec::new();
    for head in [
        128,
        4,
        values.len() as u64,
        values.first().map_or(0, |v| fold(*v)),
    ] {
        leb(&mut out, head);
    }
    let deltas: Vec<i64> = values.windows(2).map(|w| w[1].wrapping_sub(w[0])).collect();
    for block in deltas.chunks(128) {
        let least = *block.iter().min().unwrap();
        leb(&mut out, fold(least));
        let above: Vec<u64> = block.iter().map(|d| d.wrapping_sub(least) as u64).collect();
        let width = |mini: &[u64]| 64 - mini.iter().fold(0, |all, v| all | v).leading_zeros() as usize;
        let mut widths = [0u8; 4];
        for (w, mini) in widths.iter_mut().zip(above.chunks(MINI)) {
            *w = width(mini) as u8;
        }
        out.extend(widths);
        for mini in above.chunks(MINI) {
            let start = out.len();
            out.resize(start + width(mini) * MINI / 8, 0);
            for (i, v) in mini.iter().enumerate() {
                for b in (0..width(mini)).filter(|b| v >> b & 1 == 1) {
                    let at = i * width(mini) + b;
                    out[start + at / 8] |= 1 << (at % 8);
                }
            }
        }
    }
    out
}

#[test]
fn deltas_add_up() {
    let room = 500usize;
    let mut random = Random(87);
    let mut pages: Vec<Vec<i64>> = [1u64, 33, 129, 470, 256]
        .iter()
        .enumerate()
        .map(|(k, n)| {
            (0..*n)
                .map(|i| (i * 1000) as i64 - (random.bits() >> (8 * k + 20)) as i64)
                .collect()
        })
        .collect();
    pages.push(vec![i64::MIN, i64::MAX, -1, i64::MIN, 5]);
    pages.push(vec![7; 100]);
    let packed: Vec<Vec<u8>> = pages.iter().map(|p| pack_deltas(p)).collect();
    let mut starts = vec![0u32];
    starts.extend(packed.iter().scan(0, |end, p| {
        *end += p.len() as u32;
        Some(*end)
    }));
    let mut expected = vec![0i64; room * pages.len()];
    for (out, page) in expected.chunks_mut(room).zip(&pages) {
        out[..page.len()].copy_from_slice(page);
    }
    let lengths: Vec<u32> = pages.iter().map(|p| p.len() as u32).collect();
    everywhere(|run| {
        let (s, b) = (run.upload(&starts), run.upload(&packed.concat()));
        let (out, counts) = (run.zeros::<i64>(expected.len()), run.zeros::<u32>(pages.len()));
        let config = LaunchConfig::new(pages.len() as u32, 32);
        run.launch(undelta::kernel(), config, args![&s, &b, room, &out, &counts]);
        run.holds(&counts, &lengths);
        run.holds(&out, &expected);
    });
}
