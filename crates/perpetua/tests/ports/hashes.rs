//! Hashes.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 1: SHA-256

const ROUND_CONSTANTS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];
const SHA_START: [u32; 8] = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

#[device]
fn padded_byte(message: &[u8], total: usize, at: usize) -> u8 {
    if let Some(byte) = message.get(at) {
        *byte
    } else if at == message.len() {
        0x80
    } else if at >= total - 8 {
        (8 * message.len() as u64).to_be_bytes()[at + 8 - total]
    } else {
        0
    }
}

#[device]
fn sha_compress(state: &mut [u32; 8], block: [u32; 16]) {
    let mut w = [0u32; 64];
    w[..16].copy_from_slice(&block);
    for i in 16..64 {
        let s0 = w[i - 15].rotate_right(7) ^ w[i - 15].rotate_right(18) ^ (w[i - 15] >> 3);
        let s1 = w[i - 2].rotate_right(17) ^ w[i - 2].rotate_right(19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16].wrapping_add(s0).wrapping_add(w[i - 7]).wrapping_add(s1);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (w, k) in w.iter().zip(ROUND_CONSTANTS) {
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let t1 = h
            .wrapping_add(s1)
            .wrapping_add(choice)
            .wrapping_add(k)
            .wrapping_add(*w);
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        (h, g, f, e) = (g, f, e, d.wrapping_add(t1));
        (d, c, b, a) = (c, b, a, t1.wrapping_add(s0).wrapping_add(majority));
    }
    for (s, v) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *s = s.wrapping_add(v);
    }
}

#[kernel]
fn sha256(messages: &[u8], starts: &[u32], digests: &mut [[u8; 32]]) {
    let i = global_id_x();
    if i >= digests.len() {
        return;
    }
    let message = &messages[starts[i] as usize..starts[i + 1] as usize];
    let total = (message.len() + 9).next_multiple_of(64);
    let mut state = SHA_START;
    for base in (0..total).step_by(64) {
        let block: [u32; 16] = std::array::from_fn(|k| {
            let bytes: [u8; 4] = std::array::from_fn(|j| padded_byte(message, total, base + 4 * k + j));
            u32::from_be_bytes(bytes)
        });
        sha_compress(&mut state, block);
    }
    for (out, word) in digests[i].chunks_exact_mut(4).zip(state) {
        out.copy_from_slice(&word.to_be_bytes());
    }
}

/// The first 32 bits of the fractional parts of the cube roots (`n` is 3) or square roots of the primes.
fn root_bits(count: usize, n: u32) -> Vec<u32> {
    let primes = (2u128..).filter(|p| (2..*p).all(|d| p % d != 0));
    let root = |p: u128| {
        let (mut low, mut high) = (0u128, 1 << 40);
        while high - low > 1 {
            let mid = (low + high) / 2;
            if mid.pow(n) <= p << (32 * n) {
                low = mid;
            } else {
                high = mid;
            }
        }
        low as u32
    };
    primes.take(count).map(root).collect()
}

fn sha256_of(message: &[u8]) -> [u8; 32] {
    let (k, mut hash) = (root_bits(64, 3), root_bits(8, 2));
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks(64) {
        let mut w: Vec<u32> = block
            .chunks(4)
            .map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
            .collect();
        let rot = u32::rotate_right;
        for t in 16..64 {
            let (x, y) = (w[t - 15], w[t - 2]);
            let small = [
                rot(x, 7) ^ rot(x, 18) ^ (x >> 3),
                rot(y, 17) ^ rot(y, 19) ^ (y >> 10),
            ];
            let sum = u64::from(small[0]) + u64::from(small[1]) + u64::from(w[t - 16]) + u64::from(w[t - 7]);
            w.push(sum as u32);
        }
        let mut v = hash.clone();
        for t in 0..64 {
            let big = rot(v[4], 6) ^ rot(v[4], 11) ^ rot(v[4], 25);
            let pick = (v[4] & v[5]) | (!v[4] & v[6]);
            let one = [v[7], big, pick, k[t], w[t]]
                .iter()
                .fold(0u32, |a, b| a.wrapping_add(*b));
            let big = rot(v[0], 2) ^ rot(v[0], 13) ^ rot(v[0], 22);
            let most = (v[0] & v[1]) | (v[2] & (v[0] | v[1]));
            v.rotate_right(1);
            v[4] = v[4].wrapping_add(one);
            v[0] = one.wrapping_add(big).wrapping_add(most);
        }
        hash.iter_mut().zip(v).for_each(|(h, v)| *h = h.wrapping_add(v));
    }
    let bytes: Vec<u8> = hash.iter().flat_map(|h| h.to_be_bytes()).collect();
    bytes.try_into().unwrap()
}

#[test]
fn sha256_of_messages() {
    assert_eq!(sha256_of(b"abc")[..4], [0xba, 0x78, 0x16, 0xbf]);
    let mut random = Random(1);
    let messages: Vec<Vec<u8>> = (0..75)
        .map(|i| random.bytes([i, 55, 56, 63, 64, 119][i % 6]))
        .collect();
    let starts: Vec<u32> = (0..=75)
        .map(|i| messages[..i].iter().map(Vec::len).sum::<usize>() as u32)
        .collect();
    let expected: Vec<_> = messages.iter().map(|m| sha256_of(m)).collect();
    everywhere(|run| {
        let (bytes, starts) = (run.upload(&messages.concat()), run.upload(&starts));
        let digests = run.zeros::<[u8; 32]>(75);
        run.launch(
            sha256::kernel(),
            LaunchConfig::linear(75, 32),
            args![&bytes, &starts, &digests],
        );
        run.holds(&digests, &expected);
    });
}

// 2: BLAKE2b

const BLAKE_START: [u64; 8] = [
    0x6a09e667f3bcc908,
    0xbb67ae8584caa73b,
    0x3c6ef372fe94f82b,
    0xa54ff53a5f1d36f1,
    0x510e527fade682d1,
    0x9b05688c2b3e6c1f,
    0x1f83d9abfb41bd6b,
    0x5be0cd19137e2179,
];
const SIGMA: [[u8; 16]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];
/// The words that each of a round's eight mixes takes: columns, then diagonals.
const MIXES: [[usize; 4]; 8] = [
    [0, 4, 8, 12],
    [1, 5, 9, 13],
    [2, 6, 10, 14],
    [3, 7, 11, 15],
    [0, 5, 10, 15],
    [1, 6, 11, 12],
    [2, 7, 8, 13],
    [3, 4, 9, 14],
];

#[device]
fn blake_mix(v: &mut [u64; 16], words: [usize; 4], x: u64, y: u64) {
    let [a, b, c, d] = words;
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(x);
    v[d] = (v[d] ^ v[a]).rotate_right(32);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(24);
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(y);
    v[d] = (v[d] ^ v[a]).rotate_right(16);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(63);
}

#[kernel]
fn blake2b(messages: &[[u64; 16]], lengths: &[u8], digests: &mut [[u64; 8]]) {
    let i = global_id_x();
    let (Some(message), Some(length)) = (messages.get(i), lengths.get(i)) else {
        return;
    };
    let mut h = BLAKE_START;
    h[0] ^= 0x0101_0040;
    let mut v = [0u64; 16];
    v[..8].copy_from_slice(&h);
    v[8..].copy_from_slice(&BLAKE_START);
    v[12] ^= u64::from(*length);
    v[14] = !v[14];
    for round in 0..12 {
        let sigma = &SIGMA[round % 10];
        for (mix, pair) in MIXES.iter().zip(sigma.chunks_exact(2)) {
            blake_mix(&mut v, *mix, message[pair[0] as usize], message[pair[1] as usize]);
        }
    }
    for k in 0..8 {
        h[k] ^= v[k] ^ v[k + 8];
    }
    digests[i] = h;
}

fn blake2b_of(message: &[u8]) -> [u64; 8] {
    let mut block = message.to_vec();
    block.resize(128, 0);
    let m: Vec<u64> = block
        .chunks(8)
        .map(|b| u64::from_le_bytes(b.try_into().unwrap()))
        .collect();
    let mut start = BLAKE_START.to_vec();
    start[0] ^= 64 | 1 << 16 | 1 << 24;
    // Rows of a 4 x 4 matrix; diagonals become columns by turning the rows.
    let mut rows = [
        start[..4].to_vec(),
        start[4..].to_vec(),
        BLAKE_START[..4].to_vec(),
        BLAKE_START[4..].to_vec(),
    ];
    rows[3][0] ^= message.len() as u64;
    rows[3][2] ^= u64::MAX;
    for round in 0..12 {
        let words: Vec<u64> = SIGMA[round % 10].iter().map(|s| m[*s as usize]).collect();
        for half in 0..2 {
            for column in 0..4 {
                let [mut a, mut b, mut c, mut d] = [0, 1, 2, 3].map(|r| rows[r][column]);
                for (k, (first, second)) in [(32, 24), (16, 63)].into_iter().enumerate() {
                    a = a.wrapping_add(b).wrapping_add(words[8 * half + 2 * column + k]);
                    d = (d ^ a).rotate_right(first);
                    c = c.wrapping_add(d);
                    b = (b ^ c).rotate_right(second);
                }
                (rows[0][column], rows[1][column], rows[2][column], rows[3][column]) = (a, b, c, d);
            }
            for (r, row) in rows.iter_mut().enumerate() {
                row.rotate_left(if half == 0 { r } else { 4 - r });
            }
        }
    }
    std::array::from_fn(|i| start[i] ^ rows[i / 4][i % 4] ^ rows[2 + i / 4][i % 4])
}

#[test]
fn blake2b_of_messages() {
    let abc = blake2b_of(b"abc")[0].to_le_bytes();
    assert_eq!(abc, [0xba, 0x80, 0xa5, 0x3f, 0x98, 0x1c, 0x4d, 0x0d]);
    let mut random = Random(2);
    let messages: Vec<Vec<u8>> = (0..50).map(|i| random.bytes((i * 37) % 129)).collect();
    let words: Vec<[u64; 16]> = messages
        .iter()
        .map(|m| {
            let byte = |i: usize| u64::from(m.get(i).copied().unwrap_or(0));
            std::array::from_fn(|w| (0..8).map(|b| byte(8 * w + b) << (8 * b)).sum())
        })
        .collect();
    let lengths: Vec<u8> = messages.iter().map(|m| m.len() as u8).collect();
    let expected: Vec<_> = messages.iter().map(|m| blake2b_of(m)).collect();
    everywhere(|run| {
        let digests = run.zeros::<[u64; 8]>(50);
        let (words, lengths) = (run.upload(&words), run.upload(&lengths));
        run.launch(
            blake2b::kernel(),
            LaunchConfig::linear(50, 32),
            args![&words, &lengths, &digests],
        );
        run.holds(&digests, &expected);
    });
}

// 4: Keccak-f[1600]

const KECCAK_ROUNDS: [u64; 24] = [
    0x0000000000000001,
    0x0000000000008082,
    0x800000000000808a,
    0x8000000080008000,
    0x000000000000808b,
    0x0000000080000001,
    0x8000000080008081,
    0x8000000000008009,
    0x000000000000008a,
    0x0000000000000088,
    0x0000000080008009,
    0x000000008000000a,
    0x000000008000808b,
    0x800000000000008b,
    0x8000000000008089,
    0x8000000000008003,
    0x8000000000008002,
    0x8000000000000080,
    0x000000000000800a,
    0x800000008000000a,
    0x8000000080008081,
    0x8000000000008080,
    0x0000000080000001,
    0x8000000080008008,
];

#[device]
fn keccak_round(a: [[u64; 5]; 5], constant: u64) -> [[u64; 5]; 5] {
    const ROTATIONS: [[u32; 5]; 5] = [
        [0, 1, 62, 28, 27],
        [36, 44, 6, 55, 20],
        [3, 10, 43, 25, 39],
        [41, 45, 15, 21, 8],
        [18, 2, 61, 56, 14],
    ];
    let parity: [u64; 5] = std::array::from_fn(|x| a.iter().fold(0, |p, row| p ^ row[x]));
    let mut b = [[0u64; 5]; 5];
    for (y, row) in a.iter().enumerate() {
        for (x, word) in row.iter().enumerate() {
            let theta = parity[(x + 4) % 5] ^ parity[(x + 1) % 5].rotate_left(1);
            b[(2 * x + 3 * y) % 5][y] = (word ^ theta).rotate_left(ROTATIONS[y][x]);
        }
    }
    let mut out = b.map(|row| {
        let mixed: [u64; 5] = std::array::from_fn(|x| row[x] ^ (!row[(x + 1) % 5] & row[(x + 2) % 5]));
        mixed
    });
    out[0][0] ^= constant;
    out
}

#[kernel]
fn keccak(states: &mut [[[u64; 5]; 5]]) {
    if let Some(state) = states.get_mut(global_id_x()) {
        *state = KECCAK_ROUNDS
            .iter()
            .fold(*state, |state, constant| keccak_round(state, *constant));
    }
}

/// The standard's own description, lane by lane, with the constants from the shift register and the walk.
fn keccak_of(state: &mut [u64; 25]) {
    let mut lfsr = 1u8;
    for _ in 0..24 {
        let c: Vec<u64> = (0..5)
            .map(|x| (0..5).map(|y| state[x + 5 * y]).fold(0, |a, b| a ^ b))
            .collect();
        for i in 0..25 {
            state[i] ^= c[(i % 5 + 4) % 5] ^ c[(i % 5 + 1) % 5].rotate_left(1);
        }
        let (mut x, mut y, mut carried) = (1, 0, state[1]);
        for t in 0..24 {
            (x, y) = (y, (2 * x + 3 * y) % 5);
            let turned = carried.rotate_left((t + 1) * (t + 2) / 2 % 64);
            carried = std::mem::replace(&mut state[x + 5 * y], turned);
        }
        for row in state.chunks_mut(5) {
            let old = row.to_vec();
            for x in 0..5 {
                row[x] = old[x] ^ (!old[(x + 1) % 5] & old[(x + 2) % 5]);
            }
        }
        for j in 0..7 {
            state[0] ^= u64::from(lfsr & 1) << ((1 << j) - 1);
            lfsr = (lfsr << 1) ^ if lfsr & 0x80 != 0 { 0x71 } else { 0 };
        }
    }
}

#[test]
fn keccak_permutes() {
    // SHA3-256 of nothing.
    let mut empty = [0; 25];
    (empty[0], empty[16]) = (6, 1 << 63);
    keccak_of(&mut empty);
    assert_eq!(
        empty[0].to_be_bytes(),
        [0x66, 0xd7, 0x1e, 0xbf, 0xf8, 0xc6, 0xff, 0xa7]
    );
    let mut random = Random(4);
    let states: Vec<[u64; 25]> = (0..41).map(|_| std::array::from_fn(|_| random.bits())).collect();
    let matrix =
        |s: &[u64; 25]| -> [[u64; 5]; 5] { std::array::from_fn(|y| std::array::from_fn(|x| s[x + 5 * y])) };
    let expected: Vec<_> = states
        .iter()
        .map(|state| {
            let mut state = *state;
            keccak_of(&mut state);
            matrix(&state)
        })
        .collect();
    let states: Vec<_> = states.iter().map(matrix).collect();
    everywhere(|run| {
        let states = run.upload(&states);
        run.launch(keccak::kernel(), LaunchConfig::linear(41, 32), args![&states]);
        run.holds(&states, &expected);
    });
}
