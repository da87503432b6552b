//! Hashes and ciphers: RIPEMD-160, and RC4.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 261: RIPEMD-160

const LEFT_WORDS: [[u8; 16]; 5] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [7, 4, 13, 1, 10, 6, 15, 3, 12, 0, 9, 5, 2, 14, 11, 8],
    [3, 10, 14, 4, 9, 15, 8, 1, 2, 7, 0, 6, 13, 11, 5, 12],
    [1, 9, 11, 10, 0, 8, 12, 4, 13, 3, 7, 15, 14, 5, 6, 2],
    [4, 0, 5, 9, 7, 12, 2, 10, 14, 1, 3, 8, 11, 6, 15, 13],
];

const RIGHT_WORDS: [[u8; 16]; 5] = [
    [5, 14, 7, 0, 9, 2, 11, 4, 13, 6, 15, 8, 1, 10, 3, 12],
    [6, 11, 3, 7, 0, 13, 5, 10, 14, 15, 8, 12, 4, 9, 1, 2],
    [15, 5, 1, 3, 7, 14, 6, 9, 11, 8, 12, 2, 10, 0, 4, 13],
    [8, 6, 4, 1, 3, 11, 15, 0, 5, 12, 2, 13, 9, 7, 10, 14],
    [12, 15, 10, 4, 1, 5, 8, 7, 6, 2, 13, 14, 0, 3, 9, 11],
];

const LEFT_SHIFTS: [[u8; 16]; 5] = [
    [11, 14, 15, 12, 5, 8, 7, 9, 11, 13, 14, 15, 6, 7, 9, 8],
    [7, 6, 8, 13, 11, 9, 7, 15, 7, 12, 15, 9, 11, 7, 13, 12],
    [11, 13, 6, 7, 14, 9, 13, 15, 14, 8, 13, 6, 5, 12, 7, 5],
    [11, 12, 14, 15, 14, 15, 9, 8, 9, 14, 5, 6, 8, 6, 5, 12],
    [9, 15, 5, 11, 6, 8, 13, 12, 5, 12, 13, 14, 11, 8, 5, 6],
];

const RIGHT_SHIFTS: [[u8; 16]; 5] = [
    [8, 9, 9, 11, 13, 15, 15, 5, 7, 7, 8, 11, 14, 14, 12, 6],
    [9, 13, 15, 7, 12, 8, 9, 11, 7, 7, 12, 7, 6, 15, 13, 11],
    [9, 7, 15, 11, 8, 6, 6, 14, 12, 13, 5, 14, 13, 13, 7, 5],
    [15, 5, 8, 11, 14, 14, 6, 14, 6, 9, 12, 9, 12, 5, 15, 8],
    [8, 5, 12, 9, 12, 5, 14, 6, 8, 13, 6, 5, 15, 13, 11, 11],
];

const LEFT_KEYS: [u32; 5] = [0, 0x5a82_7999, 0x6ed9_eba1, 0x8f1b_bcdc, 0xa953_fd4e];
const RIGHT_KEYS: [u32; 5] = [0x50a2_8be6, 0x5c4d_d124, 0x6d70_3ef3, 0x7a6d_76e9, 0];

#[device]
fn mixed(kind: usize, x: u32, y: u32, z: u32) -> u32 {
    match kind {
        0 => x ^ y ^ z,
        1 => (x & y) | (!x & z),
        2 => (x | !y) ^ z,
        3 => (x & z) | (y & !z),
        _ => x ^ (y | !z),
    }
}

/// One of the two lines: what its five rounds of sixteen steps make of the state.
#[device]
fn line(
    state: [u32; 5],
    words: &[u32; 16],
    order: &[[u8; 16]; 5],
    shifts: &[[u8; 16]; 5],
    key: impl Fn(usize) -> (usize, u32),
) -> [u32; 5] {
    let [mut a, mut b, mut c, mut d, mut e] = state;
    for round in 0..5 {
        let (kind, constant) = key(round);
        for (word, shift) in order[round].iter().zip(&shifts[round]) {
            let sum = a
                .wrapping_add(mixed(kind, b, c, d))
                .wrapping_add(words[usize::from(*word)])
                .wrapping_add(constant);
            let next = sum.rotate_left(u32::from(*shift)).wrapping_add(e);
            (a, b, c, d, e) = (e, next, b, c.rotate_left(10), d);
        }
    }
    [a, b, c, d, e]
}

#[kernel]
fn ripemd(messages: &[u8], starts: &[u32], digests: &mut [[u32; 5]]) {
    let i = global_id_x();
    if i >= digests.len() {
        return;
    }
    let message = &messages[starts[i] as usize..starts[i + 1] as usize];
    let blocks = (message.len() + 9).div_ceil(64);
    let bits = (message.len() as u64 * 8).to_le_bytes();
    let byte = |at: usize| match message.get(at) {
        Some(byte) => *byte,
        None if at == message.len() => 0x80,
        None => at.checked_sub(blocks * 64 - 8).map_or(0, |k| bits[k]),
    };
    let mut state = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in 0..blocks {
        let words: [u32; 16] = std::array::from_fn(|w| {
            let at = block * 64 + w * 4;
            u32::from_le_bytes([byte(at), byte(at + 1), byte(at + 2), byte(at + 3)])
        });
        let left = line(state, &words, &LEFT_WORDS, &LEFT_SHIFTS, |k| (k, LEFT_KEYS[k]));
        let right = line(state, &words, &RIGHT_WORDS, &RIGHT_SHIFTS, |k| {
            (4 - k, RIGHT_KEYS[k])
        });
        state = std::array::from_fn(|k| {
            state[(k + 1) % 5]
                .wrapping_add(left[(k + 2) % 5])
                .wrapping_add(right[(k + 3) % 5])
        });
    }
    digests[i] = state;
}

/// The same, with the order of words by the permutations of the definition, and the shifts by words.
fn ripemd_on_host(message: &[u8]) -> [u32; 5] {
    let shifts = [
        [11, 14, 15, 12, 5, 8, 7, 9, 11, 13, 14, 15, 6, 7, 9, 8],
        [12, 13, 11, 15, 6, 9, 9, 7, 12, 15, 11, 13, 7, 8, 7, 7],
        [13, 15, 14, 11, 7, 7, 6, 8, 13, 14, 13, 12, 5, 5, 6, 9],
        [14, 11, 12, 14, 8, 6, 5, 5, 15, 12, 15, 14, 9, 9, 8, 6],
        [15, 12, 13, 13, 9, 5, 8, 6, 14, 11, 12, 11, 8, 6, 5, 5u32],
    ];
    let rho = [7usize, 4, 13, 1, 10, 6, 15, 3, 12, 0, 9, 5, 2, 14, 11, 8];
    let root = |x: f64, cube: bool| ((if cube { x.cbrt() } else { x.sqrt() }) * (1u64 << 30) as f64) as u32;
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((message.len() as u64 * 8).to_le_bytes());
    let mut h = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in padded.chunks(64) {
        let x: Vec<u32> = block
            .chunks(4)
            .map(|c| u32::from_le_bytes(c.try_into().unwrap()))
            .collect();
        let mut lines = [h; 2];
        for (side, s) in lines.iter_mut().enumerate() {
            for j in 0..80 {
                let round = j / 16;
                let mut word = if side == 0 {
                    j % 16
                } else {
                    (9 * (j % 16) + 5) % 16
                };
                for _ in 0..round {
                    word = rho[word];
                }
                let (b, c, d) = (s[1], s[2], s[3]);
                let f = [
                    b ^ c ^ d,
                    (b & c) | (!b & d),
                    (b | !c) ^ d,
                    (b & d) | (c & !d),
                    b ^ (c | !d),
                ];
                let k = match (side, round) {
                    (0, 0) | (1, 4) => 0,
                    (0, r) => root([2.0, 3.0, 5.0, 7.0][r - 1], false),
                    (_, r) => root([2.0, 3.0, 5.0, 7.0][r], true),
                };
                let f = if side == 0 { f[round] } else { f[4 - round] };
                let t = s[0].wrapping_add(f).wrapping_add(x[word]).wrapping_add(k);
                let t = t.rotate_left(shifts[round][word]).wrapping_add(s[4]);
                *s = [s[4], t, b, c.rotate_left(10), d];
            }
        }
        let [l, r] = lines;
        h = [
            h[1].wrapping_add(l[2]).wrapping_add(r[3]),
            h[2].wrapping_add(l[3]).wrapping_add(r[4]),
            h[3].wrapping_add(l[4]).wrapping_add(r[0]),
            h[4].wrapping_add(l[0]).wrapping_add(r[1]),
            h[0].wrapping_add(l[1]).wrapping_add(r[2]),
        ];
    }
    h
}

#[test]
fn ripemd_of_messages_of_all_lengths() {
    let mut random = Random(261);
    let mut messages: Vec<Vec<u8>> = vec![b"".to_vec(), b"a".to_vec(), b"abc".to_vec()];
    for len in [54, 55, 56, 57, 63, 64, 65, 119, 120, 128, 7, 31, 100] {
        messages.push(random.bytes(len));
    }
    let mut starts = vec![0u32];
    for message in &messages {
        starts.push(starts.last().unwrap() + message.len() as u32);
    }
    let expected: Vec<[u32; 5]> = messages.iter().map(|m| ripemd_on_host(m)).collect();
    let hex = |digest: [u32; 5]| -> String {
        digest
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .map(|b| format!("{b:02x}"))
            .collect()
    };
    assert_eq!(hex(expected[0]), "9c1185a5c5e9fc54612808977ee8f548b2258d31");
    assert_eq!(hex(expected[2]), "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc");
    everywhere(|run| {
        let (text, starts) = (run.upload(&messages.concat()), run.upload(&starts));
        let digests = run.zeros::<[u32; 5]>(messages.len());
        let config = LaunchConfig::linear(messages.len(), 32);
        run.launch(ripemd::kernel(), config, args![&text, &starts, &digests]);
        run.holds(&digests, &expected);
    });
}

// 262: RC4

#[kernel(block_size = 16)]
fn rc4(skip: usize, keys: &[u8], starts: &[u32], streams: &mut [[u8; 40]]) {
    // The lanes' permutations side by side: a column each.
    let state = shared_array::<[[u8; 16]; 256]>();
    let (i, lane) = (global_id_x(), local_id_x());
    let Some(stream) = streams.get_mut(i) else {
        return;
    };
    let key = &keys[starts[i] as usize..starts[i + 1] as usize];
    for (value, row) in state.iter_mut().enumerate() {
        row[lane] = value as u8;
    }
    let mut j = 0u8;
    for (k, byte) in key.iter().cycle().take(256).enumerate() {
        let value = state[k][lane];
        j = j.wrapping_add(value).wrapping_add(*byte);
        state[k][lane] = state[usize::from(j)][lane];
        state[usize::from(j)][lane] = value;
    }
    j = 0;
    for k in 0..skip + stream.len() {
        let i = (k + 1) % 256;
        let a = state[i][lane];
        j = j.wrapping_add(a);
        let b = state[usize::from(j)][lane];
        state[i][lane] = b;
        state[usize::from(j)][lane] = a;
        if let Some(at) = k.checked_sub(skip) {
            stream[at] = state[usize::from(a.wrapping_add(b))][lane];
        }
    }
}

fn rc4_on_host(key: &[u8], skip: usize) -> [u8; 40] {
    let mut s: Vec<u8> = (0..=255).collect();
    let mut j = 0;
    for i in 0..256 {
        j = (j + s[i] as usize + key[i % key.len()] as usize) % 256;
        s.swap(i, j);
    }
    let (mut i, mut j) = (0, 0);
    let mut out = Vec::new();
    while out.len() < skip + 40 {
        i = (i + 1) % 256;
        j = (j + s[i] as usize) % 256;
        s.swap(i, j);
        out.push(s[(s[i] as usize + s[j] as usize) % 256]);
    }
    out[skip..].try_into().unwrap()
}

#[test]
fn rc4_streams_of_keys() {
    let mut random = Random(262);
    let mut keys: Vec<Vec<u8>> = vec![b"Key".to_vec(), b"Wiki".to_vec()];
    for len in (0..35).map(|k| 1 + k * 7 % 32) {
        keys.push(random.bytes(len));
    }
    let mut starts = vec![0u32];
    for key in &keys {
        starts.push(starts.last().unwrap() + key.len() as u32);
    }
    assert_eq!(rc4_on_host(b"Key", 0)[..5], [0xeb, 0x9f, 0x77, 0x81, 0xb7]);
    for skip in [0, 300] {
        let expected: Vec<[u8; 40]> = keys.iter().map(|key| rc4_on_host(key, skip)).collect();
        everywhere(|run| {
            let (text, starts) = (run.upload(&keys.concat()), run.upload(&starts));
            let streams = run.zeros::<[u8; 40]>(keys.len());
            let config = LaunchConfig::linear(keys.len(), 16);
            run.launch(rc4::kernel(), config, args![skip, &text, &starts, &streams]);
            run.holds(&streams, &expected);
        });
    }
}
