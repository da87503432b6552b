//! Ciphers.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 3: ChaCha20

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct ChaChaKey {
    key: [u32; 8],
    counter: u32,
    nonce: [u32; 3],
}

#[device]
fn quarter(s: &mut [u32; 16], a: usize, b: usize, c: usize, d: usize) {
    for (turn, other) in [(16, 12), (8, 7)] {
        s[a] = s[a].wrapping_add(s[b]);
        s[d] = (s[d] ^ s[a]).rotate_left(turn);
        s[c] = s[c].wrapping_add(s[d]);
        s[b] = (s[b] ^ s[c]).rotate_left(other);
    }
}

#[kernel]
fn chacha20(key: ChaChaKey, data: &mut [u8]) {
    let block = global_id_x();
    let from = 64 * block;
    if from >= data.len() {
        return;
    }
    let mut start = [0u32; 16];
    start[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
    start[4..12].copy_from_slice(&key.key);
    start[12] = key.counter.wrapping_add(block as u32);
    start[13..].copy_from_slice(&key.nonce);
    let mut state = start;
    for _ in 0..10 {
        for i in 0..4 {
            quarter(&mut state, i, 4 + i, 8 + i, 12 + i);
        }
        for i in 0..4 {
            quarter(&mut state, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
        }
    }
    let to = data.len().min(from + 64);
    for (i, byte) in data[from..to].iter_mut().enumerate() {
        let word = state[i / 4].wrapping_add(start[i / 4]);
        *byte ^= word.to_le_bytes()[i % 4];
    }
}

fn chacha_block(key: &ChaChaKey, counter: u32) -> Vec<u8> {
    let mut s = [0u32; 16];
    let sigma = b"expand 32-byte k";
    for i in 0..16 {
        s[i] = match i {
            0..4 => u32::from_le_bytes(sigma[4 * i..4 * i + 4].try_into().unwrap()),
            4..12 => key.key[i - 4],
            12 => counter,
            _ => key.nonce[i - 13],
        };
    }
    let first = s;
    let orders = [
        [0, 4, 8, 12],
        [1, 5, 9, 13],
        [2, 6, 10, 14],
        [3, 7, 11, 15],
        [0, 5, 10, 15],
        [1, 6, 11, 12],
        [2, 7, 8, 13],
        [3, 4, 9, 14],
    ];
    for [a, b, c, d] in orders.iter().cycle().take(80) {
        let step = |s: &mut [u32; 16], x: usize, y: usize, z: usize, by| {
            s[x] = s[x].wrapping_add(s[y]);
            s[z] = (s[z] ^ s[x]).rotate_left(by);
        };
        step(&mut s, *a, *b, *d, 16);
        step(&mut s, *c, *d, *b, 12);
        step(&mut s, *a, *b, *d, 8);
        step(&mut s, *c, *d, *b, 7);
    }
    s.iter()
        .zip(first)
        .flat_map(|(a, b)| a.wrapping_add(b).to_le_bytes())
        .collect()
}

#[test]
fn chacha20_encrypts() {
    let key = ChaChaKey {
        key: std::array::from_fn(|i| 0x0302_0100 + 0x0404_0404 * i as u32),
        counter: 1,
        nonce: [0x0900_0000, 0x4a00_0000, 0],
    };
    assert_eq!(chacha_block(&key, 1)[..4], [0x10, 0xf1, 0xe7, 0xe4]);
    let plain = Random(3).bytes(64 * 37 + 21);
    let stream = (0..38).flat_map(|block| chacha_block(&key, 1 + block));
    let expected: Vec<u8> = plain.iter().zip(stream).map(|(p, s)| p ^ s).collect();
    everywhere(|run| {
        let data = run.upload(&plain);
        run.launch(
            chacha20::kernel(),
            LaunchConfig::linear(38, 32),
            args![key, &data],
        );
        run.holds(&data, &expected);
    });
}

// 8: AES-128 in counter mode

const S_BOX: [u8; 256] = s_box();

const fn twice(x: u8) -> u8 {
    (x << 1) ^ if x & 0x80 != 0 { 0x1b } else { 0 }
}

/// By the generator 3 and its inverse: p runs through all numbers, q through their inverses.
const fn s_box() -> [u8; 256] {
    let mut table = [0; 256];
    let (mut p, mut q) = (1u8, 1u8);
    loop {
        p ^= twice(p);
        q ^= q << 1;
        q ^= q << 2;
        q ^= q << 4;
        if q & 0x80 != 0 {
            q ^= 0x09;
        }
        let turned = q ^ q.rotate_left(1) ^ q.rotate_left(2) ^ q.rotate_left(3) ^ q.rotate_left(4);
        table[p as usize] = turned ^ 0x63;
        if p == 1 {
            break;
        }
    }
    table[0] = 0x63;
    table
}

#[device]
fn doubled(x: u8) -> u8 {
    (x << 1) ^ ((x >> 7) * 0x1b)
}

#[device]
fn aes_block(round_keys: &[[u8; 16]], block: [u8; 16]) -> [u8; 16] {
    let mut state: [u8; 16] = std::array::from_fn(|i| block[i] ^ round_keys[0][i]);
    let last = round_keys.len() - 1;
    for (round, key) in round_keys.iter().enumerate().skip(1) {
        let shifted: [u8; 16] = std::array::from_fn(|i| S_BOX[state[(i + 4 * (i % 4)) % 16] as usize]);
        state = shifted;
        if round < last {
            for column in state.chunks_exact_mut(4) {
                let all = column.iter().fold(0, |a, b| a ^ b);
                let first = column[0];
                for i in 0..4 {
                    let next = if i == 3 { first } else { column[i + 1] };
                    column[i] ^= all ^ doubled(column[i] ^ next);
                }
            }
        }
        for (s, k) in state.iter_mut().zip(key) {
            *s ^= k;
        }
    }
    state
}

#[kernel]
fn aes(round_keys: &[[u8; 16]], nonce: [u8; 12], data: &mut [u8]) {
    let i = global_id_x();
    let mut counter = [0; 16];
    counter[..12].copy_from_slice(&nonce);
    counter[12..].copy_from_slice(&(i as u32).to_be_bytes());
    let key_stream = aes_block(round_keys, counter);
    for (byte, key) in data.iter_mut().skip(16 * i).zip(key_stream) {
        *byte ^= key;
    }
}

/// Multiplication in GF(2^8).
fn gf(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        product ^= if b & 1 == 1 { a } else { 0 };
        a = if a & 0x80 == 0 { a << 1 } else { a << 1 ^ 0x1b };
        b >>= 1;
    }
    product
}

fn sub_byte(x: u8) -> u8 {
    let inverse = (0..=255).find(|y| gf(x, *y) == 1).unwrap_or(0);
    (0..5).fold(0x63, |s, k| s ^ inverse.rotate_left(k))
}

fn aes_keys(key: [u8; 16], s: &[u8; 256]) -> Vec<[u8; 16]> {
    let mut words: Vec<[u8; 4]> = key.chunks(4).map(|w| w.try_into().unwrap()).collect();
    let mut constant = 1;
    for i in 4..44 {
        let mut w = words[i - 1];
        if i % 4 == 0 {
            w.rotate_left(1);
            w = w.map(|b| s[b as usize]);
            w[0] ^= constant;
            constant = gf(constant, 2);
        }
        words.push(std::array::from_fn(|k| w[k] ^ words[i - 4][k]));
    }
    words.chunks(4).map(|w| w.concat().try_into().unwrap()).collect()
}

fn aes_reference(keys: &[[u8; 16]], block: [u8; 16], s: &[u8; 256]) -> [u8; 16] {
    let mut m = block;
    for (round, key) in keys.iter().enumerate() {
        if round > 0 {
            let old = m.map(|b| s[b as usize]);
            for c in 0..4 {
                for r in 0..4 {
                    let at = |k: usize| old[4 * ((c + (r + k) % 4) % 4) + (r + k) % 4];
                    let mixed = gf(at(0), 2) ^ gf(at(1), 3) ^ at(2) ^ at(3);
                    m[4 * c + r] = if round < 10 { mixed } else { at(0) };
                }
            }
        }
        m.iter_mut().zip(key).for_each(|(m, k)| *m ^= k);
    }
    m
}

#[test]
fn aes_encrypts() {
    let s: [u8; 256] = std::array::from_fn(|x| sub_byte(x as u8));
    let keys = aes_keys(std::array::from_fn(|i| i as u8), &s);
    let known = aes_reference(&keys, std::array::from_fn(|i| 0x11 * i as u8), &s);
    assert_eq!(known[..4], [0x69, 0xc4, 0xe0, 0xd8]);
    let mut random = Random(8);
    let nonce: [u8; 12] = std::array::from_fn(|_| random.bits() as u8);
    let plain = random.bytes(45 * 16 + 5);
    let stream = (0..46u32).flat_map(|i| {
        let counter = [&nonce[..], &i.to_be_bytes()].concat();
        aes_reference(&keys, counter.try_into().unwrap(), &s)
    });
    let expected: Vec<u8> = plain.iter().zip(stream).map(|(p, k)| p ^ k).collect();
    everywhere(|run| {
        let (keys, data) = (run.upload(&keys), run.upload(&plain));
        run.launch(
            aes::kernel(),
            LaunchConfig::linear(46, 32),
            args![&keys, nonce, &data],
        );
        run.holds(&data, &expected);
    });
}

// 10: PRESENT

const PRESENT_BOX: [u8; 16] = [0xc, 5, 6, 0xb, 9, 0, 0xa, 0xd, 3, 0xe, 0xf, 8, 4, 7, 1, 2];

/// A key of 80 bits.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct PresentKey {
    high: u64,
    low: u16,
}

#[device]
impl PresentKey {
    /// Turned left by 61, the top nibble substituted, the round added.
    fn next(self, round: u64) -> Self {
        let low = u64::from(self.low);
        // Turned right by 19.
        let high = (self.high >> 19) | (low << 45) | (self.high << 61);
        let turned = (self.high >> 3) as u16;
        let top = PRESENT_BOX[(high >> 60) as usize];
        let high = (high & !(0xf << 60)) | (u64::from(top) << 60);
        PresentKey {
            high: high ^ (round >> 1),
            low: turned ^ ((round as u16 & 1) << 15),
        }
    }
}

#[device]
fn substituted(state: u64) -> u64 {
    (0..16).fold(0, |out, nibble| {
        let value = (state >> (4 * nibble)) & 0xf;
        out | u64::from(PRESENT_BOX[value as usize]) << (4 * nibble)
    })
}

#[device]
fn permuted(state: u64) -> u64 {
    let mut out = state & (1 << 63);
    for bit in 0..63 {
        out |= (state >> bit & 1) << (16 * bit % 63);
    }
    out
}

#[kernel]
fn present(keys: &[PresentKey], blocks: &mut [u64]) {
    let i = global_id_x();
    if i >= blocks.len() {
        return;
    }
    let (mut key, mut state) = (keys[i], blocks[i]);
    for round in 1..32 {
        state = permuted(substituted(state ^ key.high));
        key = key.next(round);
    }
    blocks[i] = state ^ key.high;
}

fn present_of(mut key: u128, mut state: u64) -> u64 {
    for round in 1..=31u128 {
        state ^= (key >> 16) as u64;
        let mut next = 0u64;
        for bit in 0..64 {
            let nibble = PRESENT_BOX[(state >> (bit / 4 * 4) & 15) as usize];
            let to = bit / 4 + 16 * (bit % 4);
            next |= u64::from(nibble >> (bit % 4) & 1) << to;
        }
        state = next;
        key = (key << 61 | key >> 19) & ((1 << 80) - 1);
        let top = PRESENT_BOX[(key >> 76) as usize];
        key = key & ((1 << 76) - 1) | u128::from(top) << 76;
        key ^= round << 15;
    }
    state ^ (key >> 16) as u64
}

#[test]
fn present_encrypts() {
    assert_eq!(present_of(0, 0), 0x5579_c138_7b22_8445);
    let mut random = Random(10);
    let blocks: Vec<u64> = (0..77).map(|_| random.bits()).collect();
    let keys: Vec<PresentKey> = blocks
        .iter()
        .map(|_| PresentKey {
            high: random.bits(),
            low: random.bits() as u16,
        })
        .collect();
    let wide = |key: &PresentKey| u128::from(key.high) << 16 | u128::from(key.low);
    let expected: Vec<u64> = keys
        .iter()
        .zip(&blocks)
        .map(|(k, b)| present_of(wide(k), *b))
        .collect();
    everywhere(|run| {
        let (keys, blocks) = (run.upload(&keys), run.upload(&blocks));
        run.launch(
            present::kernel(),
            LaunchConfig::linear(77, 32),
            args![&keys, &blocks],
        );
        run.holds(&blocks, &expected);
    });
}
