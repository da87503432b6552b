//! Hashes, ciphers, proofs of work and addresses: RIPEMD-160, RC4, Cuckatoo's trimming, base 58.

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
        let right = line(state, &words, &RIGHT_WORDS, &RIGHT_SHIFTS, |k| (4 - k, RIGHT_KEYS[k]));
        state = std::array::from_fn(|k| {
            state[(k + 1) % 5].wrapping_add(left[(k + 2) % 5]).wrapping_add(right[(k + 3) % 5])
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
        let x: Vec<u32> = block.chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect();
        let mut lines = [h; 2];
        for (side, s) in lines.iter_mut().enumerate() {
            for j in 0..80 {
                let round = j / 16;
                let mut word = if side == 0 { j % 16 } else { (9 * (j % 16) + 5) % 16 };
                for _ in 0..round {
                    word = rho[word];
                }
                let (b, c, d) = (s[1], s[2], s[3]);
                let f = [b ^ c ^ d, (b & c) | (!b & d), (b | !c) ^ d, (b & d) | (c & !d), b ^ (c | !d)];
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
        digest.iter().flat_map(|w| w.to_le_bytes()).map(|b| format!("{b:02x}")).collect()
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

// 263: Cuckatoo's trimming

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct SipHash {
    lanes: [u64; 4],
}

#[device]
impl SipHash {
    fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.lanes;
        a = a.wrapping_add(b);
        c = c.wrapping_add(d);
        b = b.rotate_left(13) ^ a;
        d = d.rotate_left(16) ^ c;
        a = a.rotate_left(32).wrapping_add(d);
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        d = d.rotate_left(21) ^ a;
        self.lanes = [a, b, c.rotate_left(32), d];
    }

    /// SipHash-2-4 of one word, from a state that already holds the key.
    fn of(mut self, word: u64) -> u64 {
        self.lanes[3] ^= word;
        for _ in 0..2 {
            self.round();
        }
        self.lanes[0] ^= word;
        self.lanes[2] ^= 0xff;
        for _ in 0..4 {
            self.round();
        }
        self.lanes.iter().fold(0u64, |all, lane| all ^ lane)
    }

    /// The node at which an edge ends on a side of the graph.
    fn node(self, edge: usize, side: u32, mask: u32) -> u32 {
        self.of(edge as u64 * 2 + u64::from(side)) as u32 & mask
    }
}

#[kernel]
fn mark_nodes(hash: SipHash, side: u32, mask: u32, alive: &[u32], seen: &mut [u32]) {
    let w = global_id_x();
    let Some(&word) = alive.get(w) else {
        return;
    };
    for bit in (0..32usize).filter(|bit| word >> bit & 1 == 1) {
        let node = hash.node(w * 32 + bit, side, mask);
        atomic_or(&mut seen[node as usize / 32], 1 << (node % 32));
    }
}

/// An edge stays where another one ends at its node's partner, which differs in the lowest bit.
#[kernel]
fn trim_edges(hash: SipHash, side: u32, mask: u32, seen: &[u32], alive: &mut [u32], left: &mut u32) {
    let w = global_id_x();
    if let Some(word) = alive.get_mut(w) {
        let kept = (0..32usize)
            .filter(|bit| *word >> bit & 1 == 1)
            .filter(|bit| {
                let partner = hash.node(w * 32 + bit, side, mask) ^ 1;
                seen[partner as usize / 32] >> (partner % 32) & 1 == 1
            })
            .fold(0u32, |kept, bit| kept | 1 << bit);
        *word = kept;
        atomic_add(left, kept.count_ones());
    }
}

#[test]
fn trimming_leaves_edges_with_partners() {
    let mut random = Random(263);
    let keys: [u64; 4] = std::array::from_fn(|_| random.bits());
    let (edges, mask, rounds) = (1024usize, 1023u32, 5);
    let node = |edge: usize, side: u64| -> u32 {
        let nonce = 2 * edge as u64 + side;
        let mut v = keys;
        let sip = |v: &mut [u64; 4]| {
            v[0] = v[0].wrapping_add(v[1]);
            v[1] = v[1].rotate_left(13);
            v[1] ^= v[0];
            v[0] = v[0].rotate_left(32);
            v[2] = v[2].wrapping_add(v[3]);
            v[3] = v[3].rotate_left(16);
            v[3] ^= v[2];
            v[0] = v[0].wrapping_add(v[3]);
            v[3] = v[3].rotate_left(21);
            v[3] ^= v[0];
            v[2] = v[2].wrapping_add(v[1]);
            v[1] = v[1].rotate_left(17);
            v[1] ^= v[2];
            v[2] = v[2].rotate_left(32);
        };
        v[3] ^= nonce;
        (0..2).for_each(|_| sip(&mut v));
        v[0] ^= nonce;
        v[2] ^= 0xff;
        (0..4).for_each(|_| sip(&mut v));
        (v[0] ^ v[1] ^ v[2] ^ v[3]) as u32 & mask
    };
    let mut survivors: Vec<usize> = (0..edges).collect();
    let mut counts = Vec::new();
    for round in 0..rounds {
        let side = round % 2;
        let nodes: std::collections::HashSet<u32> = survivors.iter().map(|e| node(*e, side)).collect();
        survivors.retain(|e| nodes.contains(&(node(*e, side) ^ 1)));
        counts.push(survivors.len() as u32);
    }
    let mut expected = vec![0u32; edges / 32];
    for edge in &survivors {
        expected[edge / 32] |= 1 << (edge % 32);
    }
    assert!(survivors.len() > 5 && survivors.len() < edges / 2);
    everywhere(|run| {
        let hash = SipHash { lanes: keys };
        let alive = run.upload(&vec![u32::MAX; edges / 32]);
        let config = || LaunchConfig::linear(edges / 32, 16);
        for (round, count) in counts.iter().enumerate() {
            let side = round as u32 % 2;
            let (seen, left) = (run.zeros::<u32>(mask as usize / 32 + 1), run.zeros::<u32>(1));
            run.launch(mark_nodes::kernel(), config(), args![hash, side, mask, &alive, &seen]);
            run.launch(trim_edges::kernel(), config(), args![hash, side, mask, &seen, &alive, &left]);
            run.holds(&left, &[*count]);
        }
        run.holds(&alive, &expected);
    });
}

// 264: base 58

const ALPHABET: [u8; 58] = *b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// Writes digits of `TO` for those of `FROM`, the highest first, and says how many; the zeros in front are kept.
#[device]
fn convert<const FROM: u32, const TO: u32>(
    text: &[u8],
    digits: &mut [u8],
    value: impl Fn(u8) -> Option<u32>,
) -> Option<usize> {
    let mut zeros = 0;
    let mut len = 0;
    for letter in text {
        let mut carry = value(*letter)?;
        if carry == 0 && len == 0 {
            zeros += 1;
        }
        for digit in &mut digits[..len] {
            carry += u32::from(*digit) * FROM;
            *digit = (carry % TO) as u8;
            carry /= TO;
        }
        while carry > 0 {
            digits[len] = (carry % TO) as u8;
            carry /= TO;
            len += 1;
        }
    }
    digits[..len].reverse();
    digits[..len + zeros].rotate_right(zeros);
    Some(len + zeros)
}

#[kernel]
fn to_base58(bytes: &[u8], starts: &[u32], texts: &mut [[u8; 48]], lengths: &mut [u32]) {
    let i = global_id_x();
    if i < texts.len() {
        let own = &bytes[starts[i] as usize..starts[i + 1] as usize];
        let mut text = [0; 48];
        let len = convert::<256, 58>(own, &mut text, |byte| Some(u32::from(byte))).unwrap();
        for digit in &mut text[..len] {
            *digit = ALPHABET[usize::from(*digit)];
        }
        texts[i] = text;
        lengths[i] = len as u32;
    }
}

#[kernel]
fn from_base58(texts: &[[u8; 48]], lengths: &[u32], bytes: &mut [[u8; 48]], found: &mut [i32]) {
    let i = global_id_x();
    let Some(text) = texts.get(i) else {
        return;
    };
    let text = &text[..lengths[i] as usize];
    let digit = |letter: u8| ALPHABET.iter().position(|a| *a == letter).map(|at| at as u32);
    found[i] = match convert::<58, 256>(text, &mut bytes[i], digit) {
        Some(len) => len as i32,
        None => -1,
    };
}

#[test]
fn base58_there_and_back() {
    let mut random = Random(264);
    let mut payloads: Vec<Vec<u8>> = vec![
        b"Hello World!".to_vec(),
        vec![0, 0, 0x28, 0x7f, 0xb4, 0xcd],
        vec![],
        vec![0; 5],
    ];
    for k in 0..33usize {
        let mut bytes = random.bytes(1 + k * 5 % 32);
        let zeros = (k % 4).min(bytes.len());
        bytes[..zeros].fill(0);
        payloads.push(bytes);
    }
    let letters: Vec<char> = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz".chars().collect();
    let encode = |bytes: &[u8]| -> String {
        // The number is divided by 58 until nothing is left of it.
        let mut number = bytes.to_vec();
        let mut text = Vec::new();
        while number.iter().any(|b| *b != 0) {
            let mut rest = 0u32;
            for byte in &mut number {
                let value = rest * 256 + u32::from(*byte);
                *byte = (value / 58) as u8;
                rest = value % 58;
            }
            text.push(letters[rest as usize]);
        }
        text.extend(bytes.iter().take_while(|b| **b == 0).map(|_| '1'));
        text.iter().rev().collect()
    };
    assert_eq!(encode(&payloads[0]), "2NEpo7TZRRrLZSi2U");
    assert_eq!(encode(&payloads[1]), "11233QC4");
    let padded = |bytes: &[u8]| -> [u8; 48] {
        let mut all = [0; 48];
        all[..bytes.len()].copy_from_slice(bytes);
        all
    };
    let texts: Vec<String> = payloads.iter().map(|p| encode(p)).collect();
    let expected: Vec<[u8; 48]> = texts.iter().map(|t| padded(t.as_bytes())).collect();
    let lengths: Vec<u32> = texts.iter().map(|t| t.len() as u32).collect();
    let mut starts = vec![0u32];
    for payload in &payloads {
        starts.push(starts.last().unwrap() + payload.len() as u32);
    }
    // A text with a letter that the alphabet lacks comes last.
    let mut back: Vec<[u8; 48]> = payloads.iter().map(|p| padded(p)).collect();
    back.push([0; 48]);
    let mut found: Vec<i32> = payloads.iter().map(|p| p.len() as i32).collect();
    found.push(-1);
    let mut all_texts = expected.clone();
    all_texts.push(padded(b"O11"));
    let mut all_lengths = lengths.clone();
    all_lengths.push(3);
    everywhere(|run| {
        let n = payloads.len();
        let (bytes, starts) = (run.upload(&payloads.concat()), run.upload(&starts));
        let (out, sizes) = (run.zeros::<[u8; 48]>(n), run.zeros::<u32>(n));
        run.launch(to_base58::kernel(), LaunchConfig::linear(n, 32), args![&bytes, &starts, &out, &sizes]);
        run.holds(&out, &expected);
        run.holds(&sizes, &lengths);
        let (texts, sizes) = (run.upload(&all_texts), run.upload(&all_lengths));
        let (out, counts) = (run.zeros::<[u8; 48]>(n + 1), run.zeros::<i32>(n + 1));
        let config = LaunchConfig::linear(n + 1, 32);
        run.launch(from_base58::kernel(), config, args![&texts, &sizes, &out, &counts]);
        run.holds(&counts, &found);
        run.holds(&out, &back);
    });
}
