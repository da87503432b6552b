//! Bits that are packed, hashed, copied, checked and connected.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::texts::{column, string};

// 211: ndzip

const SIDE: usize = 32;
/// Words of a packed tile at most: which words of each row are there, then these.
const ROOM: usize = SIDE + SIDE * SIDE;

/// Bit `i` of word `j` becomes bit `j` of word `i`.
#[device]
fn transposed_bits(mut words: [u32; 32]) -> [u32; 32] {
    let (mut half, mut mask) = (16, 0x0000_ffffu32);
    while half > 0 {
        for k in (0..32).filter(|k| k & half == 0) {
            let swapped = (words[k] >> half ^ words[k + half]) & mask;
            words[k] ^= swapped << half;
            words[k + half] ^= swapped;
        }
        half /= 2;
        mask ^= mask << half;
    }
    words
}

/// Negative numbers with their other bits turned over, so that small ones begin with zeros.
#[device]
fn folded(v: u32) -> u32 {
    v ^ ((v.cast_signed() >> 31).cast_unsigned() >> 1)
}

/// A block a tile of 32 x 32 numbers, a lane a row.
#[kernel(block_size = 32)]
fn pack(width: usize, picture: &[f32], packed: &mut [u32], lengths: &mut [u32]) {
    let tile = shared_array::<[[u32; SIDE]; SIDE]>();
    let counts = shared_array::<[u32; SIDE]>();
    let lane = local_id_x();
    let number = group_id_y() * (width / SIDE) + group_id_x();
    let start = (group_id_y() * SIDE + lane) * width + group_id_x() * SIDE;
    let mut row: [u32; SIDE] = std::array::from_fn(|k| picture[start + k].to_bits().rotate_left(1));
    for k in (1..SIDE).rev() {
        row[k] = row[k].wrapping_sub(row[k - 1]);
    }
    tile[lane] = row;
    sync_threads();
    for k in (1..SIDE).rev() {
        tile[k][lane] = tile[k][lane].wrapping_sub(tile[k - 1][lane]);
    }
    sync_threads();
    let planes = transposed_bits(tile[lane].map(folded));
    let heads = planes
        .iter()
        .enumerate()
        .fold(0, |heads, (k, p)| heads | u32::from(*p != 0) << k);
    counts[lane] = heads.count_ones();
    sync_threads();
    let before: u32 = counts[..lane].iter().sum();
    let out = &mut packed[number * ROOM..(number + 1) * ROOM];
    out[lane] = heads;
    let words = &mut out[SIDE + before as usize..];
    for (word, plane) in words.iter_mut().zip(planes.iter().filter(|p| **p != 0)) {
        *word = *plane;
    }
    if lane == SIDE - 1 {
        lengths[number] = SIDE as u32 + before + heads.count_ones();
    }
}

#[kernel(block_size = 32)]
fn unpack(width: usize, packed: &[u32], picture: &mut [f32]) {
    let tile = shared_array::<[[u32; SIDE]; SIDE]>();
    let lane = local_id_x();
    let number = group_id_y() * (width / SIDE) + group_id_x();
    let (heads, words) = packed[number * ROOM..][..ROOM].split_at(SIDE);
    let before: u32 = heads.iter().take(lane).map(|h| h.count_ones()).sum();
    let mut left = words[before as usize..].iter();
    let planes = std::array::from_fn(|k| {
        if heads[lane] >> k & 1 == 1 {
            left.next().copied().unwrap_or_default()
        } else {
            0
        }
    });
    tile[lane] = transposed_bits(planes).map(folded);
    sync_threads();
    for k in 1..SIDE {
        tile[k][lane] = tile[k][lane].wrapping_add(tile[k - 1][lane]);
    }
    sync_threads();
    let start = (group_id_y() * SIDE + lane) * width + group_id_x() * SIDE;
    let sums = tile[lane].iter().scan(0u32, |sum, v| {
        *sum = sum.wrapping_add(*v);
        Some(*sum)
    });
    for (out, bits) in picture[start..start + SIDE].iter_mut().zip(sums) {
        *out = f32::from_bits(bits.rotate_right(1));
    }
}

#[test]
fn floats_are_packed_and_unpacked() {
    let (width, height) = (96usize, 64usize);
    let mut random = Random(211);
    let picture: Vec<f32> = (0..width * height)
        .map(|i| {
            let (x, y) = ((i % width) as f32, (i / width) as f32);
            if x < 32.0 {
                0.25
            } else {
                (x * 0.05).sin() + y * 0.01 + (random.below(3) as f32) * 1e-5
            }
        })
        .collect();
    let mut expected = Vec::new();
    for tile in 0..6 {
        let bits = |x: usize, y: usize| {
            let i = (tile / 3 * 32 + y) * width + tile % 3 * 32 + x;
            picture[i].to_bits().rotate_left(1)
        };
        let (mut heads, mut words) = (Vec::new(), Vec::new());
        for y in 0..32 {
            let residuals: Vec<u32> = (0..32)
                .map(|x| {
                    let above = |x: usize| if y > 0 { bits(x, y - 1) } else { 0 };
                    let (left, corner) = if x > 0 {
                        (bits(x - 1, y), above(x - 1))
                    } else {
                        (0, 0)
                    };
                    let r = bits(x, y)
                        .wrapping_sub(left)
                        .wrapping_sub(above(x))
                        .wrapping_add(corner);
                    if r >> 31 == 1 { r ^ 0x7fff_ffff } else { r }
                })
                .collect();
            let planes = (0..32).map(|b| (0..32).fold(0u32, |w, x| w | (residuals[x] >> b & 1) << x));
            heads.push(0u32);
            for (b, plane) in planes.enumerate().filter(|(_, p)| *p != 0) {
                *heads.last_mut().unwrap() |= 1 << b;
                words.push(plane);
            }
        }
        heads.extend(words);
        expected.push(heads);
    }
    everywhere(|run| {
        let (p, lengths) = (run.upload(&picture), run.zeros::<u32>(6));
        let (packed, back) = (run.zeros::<u32>(6 * ROOM), run.zeros::<f32>(width * height));
        let config = LaunchConfig::new((3, 2), 32);
        run.launch(pack::kernel(), config, args![width, &p, &packed, &lengths]);
        let (words, found) = (run.read(&packed), run.read(&lengths));
        for (tile, expected) in expected.iter().enumerate() {
            assert_eq!(found[tile] as usize, expected.len(), "on {}", run.place());
            assert_eq!(
                &words[tile * ROOM..][..expected.len()],
                expected,
                "on {}",
                run.place()
            );
        }
        run.launch(unpack::kernel(), config, args![width, &packed, &back]);
        run.holds(&back, &picture);
    });
}

// 216: GHASH

/// What the bit beyond the last one becomes.
const REDUCTION: u128 = 0xe1 << 120;

/// Times x, where the highest bit stands for 1.
#[device]
fn times_x(v: u128) -> u128 {
    if v & 1 == 1 { v >> 1 ^ REDUCTION } else { v >> 1 }
}

/// Multiplies by a key.
#[device]
trait Multiplier: Copy {
    fn of(key: u128) -> Self;
    fn times(&self, x: u128) -> u128;
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Bitwise {
    key: u128,
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Tabled {
    multiples: [u128; 16],
}

#[device]
impl Multiplier for Bitwise {
    fn of(key: u128) -> Self {
        Bitwise { key }
    }

    fn times(&self, x: u128) -> u128 {
        let powers = std::iter::successors(Some(self.key), |v| Some(times_x(*v)));
        (0..128)
            .rev()
            .zip(powers)
            .filter(|(bit, _)| x >> bit & 1 == 1)
            .fold(0, |sum, (_, power)| sum ^ power)
    }
}

#[device]
impl Multiplier for Tabled {
    fn of(key: u128) -> Self {
        let mut multiples = [0; 16];
        multiples[8] = key;
        for i in [4, 2, 1] {
            multiples[i] = times_x(multiples[2 * i]);
        }
        for i in [2usize, 4, 8] {
            for j in 1..i {
                multiples[i + j] = multiples[i] ^ multiples[j];
            }
        }
        Tabled { multiples }
    }

    fn times(&self, x: u128) -> u128 {
        let mut product = 0u128;
        for k in 0..32 {
            for _ in 0..4 {
                product = times_x(product);
            }
            product ^= self.multiples[(x >> (4 * k)) as usize % 16];
        }
        product
    }
}

/// A message a lane: its blocks, the last one filled up with zeros, then its length in bits.
#[kernel]
fn ghash<M: Multiplier>(keys: &[u128], offsets: &[u32], bytes: &[u8], hashes: &mut [u128]) {
    let i = global_id_x();
    if i >= hashes.len() {
        return;
    }
    let key = M::of(keys[i]);
    let message = string(offsets, bytes, i);
    let blocks = message.chunks(16).map(|chunk| {
        let mut block = [0; 16];
        block[..chunk.len()].copy_from_slice(chunk);
        u128::from_be_bytes(block)
    });
    let hash = blocks.fold(0, |hash, block| key.times(hash ^ block));
    hashes[i] = key.times(hash ^ message.len() as u128 * 8);
}

#[test]
fn messages_are_hashed_over_a_field() {
    let mut random = Random(216);
    let mut messages: Vec<Vec<u8>> = (0..40).map(|i| random.bytes(i * 3)).collect();
    let mut keys: Vec<u128> = (0..40)
        .map(|_| u128::from(random.bits()) << 64 | u128::from(random.bits()))
        .collect();
    messages.push(
        0x0388_dace_60b6_a392_f328_c2b9_71b2_fe78u128
            .to_be_bytes()
            .to_vec(),
    );
    keys.push(0x66e9_4bd4_ef8a_2c3b_884c_fa59_ca34_2b2e);
    // A product of polynomials whose lowest bit stands for 1, then what is left of a division.
    let product = |a: u128, b: u128| {
        let (a, b) = (a.reverse_bits(), b.reverse_bits());
        let mut bits = [false; 255];
        for i in 0..128 {
            for j in 0..128 {
                bits[i + j] ^= a >> i & 1 == 1 && b >> j & 1 == 1;
            }
        }
        for i in (128..255).rev() {
            if bits[i] {
                for j in [0, 1, 2, 7, 128] {
                    bits[i - 128 + j] ^= true;
                }
            }
        }
        (0..128).fold(0u128, |v, i| v | u128::from(bits[i]) << (127 - i))
    };
    let expected: Vec<u128> = messages
        .iter()
        .zip(&keys)
        .map(|(message, key)| {
            let mut padded = message.clone();
            padded.resize(message.len().next_multiple_of(16), 0);
            padded.extend((message.len() as u128 * 8).to_be_bytes());
            padded.chunks(16).fold(0, |hash, block| {
                product(hash ^ u128::from_be_bytes(block.try_into().unwrap()), *key)
            })
        })
        .collect();
    assert_eq!(expected[40], 0xf38c_bb1a_d692_23dc_c345_7ae5_b6b0_f885);
    let (offsets, bytes) = column(&messages);
    everywhere(|run| {
        let (k, o, b) = (run.upload(&keys), run.upload(&offsets), run.upload(&bytes));
        for kernel in [ghash::kernel::<Bitwise>(), ghash::kernel::<Tabled>()] {
            let hashes = run.zeros::<u128>(41);
            run.launch(kernel, LaunchConfig::linear(41, 32), args![&k, &o, &b, &hashes]);
            run.holds(&hashes, &expected);
        }
    });
}

// 217: masks of nulls

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum Combined {
    All,
    Any,
}

/// A mask's words among those of others, and the bit at which it begins.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Mask {
    start: u32,
    end: u32,
    bit: u32,
}

/// The 32 bits from one on; zeros behind the end.
#[device]
fn bits_from(words: &[u32], bit: usize) -> u32 {
    let word = |i: usize| words.get(i).copied().unwrap_or(0);
    let shift = (bit % 32) as u32;
    word(bit / 32) >> shift | word(bit / 32 + 1).checked_shl(32 - shift).unwrap_or(0)
}

/// Masks that begin anywhere, made into one, and how many of its bits are set.
#[kernel(block_size = 64)]
fn combine(how: Combined, len: usize, masks: &[Mask], words: &[u32], out: &mut [u32], count: &mut u32) {
    let sums = shared_array::<[u32; 1]>();
    let (i, lane) = (global_id_x(), local_id_x());
    if lane == 0 {
        sums[0] = 0;
    }
    sync_threads();
    if i < len.div_ceil(32) {
        let combined = masks
            .iter()
            .map(|m| bits_from(&words[m.start as usize..m.end as usize], m.bit as usize + 32 * i))
            .reduce(|a, b| match how {
                Combined::All => a & b,
                Combined::Any => a | b,
            })
            .unwrap_or(u32::MAX);
        let kept = match len - 32 * i {
            left @ 0..32 => combined & ((1 << left) - 1),
            _ => combined,
        };
        out[i] = kept;
        atomic_add(&mut sums[0], kept.count_ones());
    }
    sync_threads();
    if lane == 0 {
        atomic_add(count, sums[0]);
    }
}

#[kernel]
fn count_ranges(words: &[u32], ranges: &[[u32; 2]], counts: &mut [u32]) {
    let i = global_id_x();
    let Some(&[first, last]) = ranges.get(i) else {
        return;
    };
    counts[i] = (first / 32..last.div_ceil(32))
        .map(|w| {
            let low = first.saturating_sub(32 * w);
            let high = (last - 32 * w).min(32);
            let kept = (u32::MAX << low) & (u32::MAX >> (32 - high));
            (words[w as usize] & kept).count_ones()
        })
        .sum();
}

#[test]
fn masks_are_combined_and_counted() {
    let mut random = Random(217);
    let words: Vec<u32> = (0..64).map(|_| (random.bits() | random.bits()) as u32).collect();
    let masks = [
        Mask {
            start: 0,
            end: 20,
            bit: 5,
        },
        Mask {
            start: 20,
            end: 40,
            bit: 32,
        },
        Mask {
            start: 40,
            end: 59,
            bit: 0,
        },
    ];
    let len = 587;
    let set = |i: usize| words[i / 32] >> (i % 32) & 1 == 1;
    let bit = |m: &Mask, i: usize| set(32 * m.start as usize + m.bit as usize + i);
    let ranges: Vec<[u32; 2]> = (0..50)
        .map(|_| {
            let first = random.below(2000);
            [first as u32, (first + random.below(2048 - first)) as u32]
        })
        .filter(|r| r[0] < r[1])
        .collect();
    let counted: Vec<u32> = ranges
        .iter()
        .map(|r| (r[0]..r[1]).filter(|i| set(*i as usize)).count() as u32)
        .collect();
    everywhere(|run| {
        let (m, w) = (run.upload(&masks), run.upload(&words));
        for how in [Combined::All, Combined::Any] {
            let (out, count) = (run.zeros::<u32>(19), run.zeros::<u32>(1));
            let config = LaunchConfig::linear(19, 64);
            run.launch(combine::kernel(), config, args![how, len, &m, &w, &out, &count]);
            let mut expected = vec![0u32; 19];
            for i in 0..len {
                let holds = match how {
                    Combined::All => masks.iter().all(|m| bit(m, i)),
                    Combined::Any => masks.iter().any(|m| bit(m, i)),
                };
                expected[i / 32] |= u32::from(holds) << (i % 32);
            }
            run.holds(&out, &expected);
            run.holds(&count, &[expected.iter().map(|w| w.count_ones()).sum()]);
        }
        let (r, counts) = (run.upload(&ranges), run.zeros::<u32>(ranges.len()));
        run.launch(
            count_ranges::kernel(),
            LaunchConfig::linear(ranges.len(), 32),
            args![&w, &r, &counts],
        );
        run.holds(&counts, &counted);
    });
}
