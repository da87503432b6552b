//! Hashes and codes of bytes.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 5: the key of an MD5 digest

const SINES: [u32; 64] = [
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
];
const KEY_BYTES: usize = 7;

#[device]
fn md5_of_block(words: &[u32; 16]) -> [u32; 4] {
    const START: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    let [mut a, mut b, mut c, mut d] = START;
    for i in 0..64 {
        let (f, word) = match i / 16 {
            0 => ((b & c) | (!b & d), i),
            1 => ((d & b) | (!d & c), (5 * i + 1) % 16),
            2 => (b ^ c ^ d, (3 * i + 5) % 16),
            _ => (c ^ (b | !d), 7 * i % 16),
        };
        let sum = a.wrapping_add(f).wrapping_add(SINES[i]).wrapping_add(words[word]);
        let turned = sum.rotate_left(SHIFTS[i / 16][i % 4]);
        (a, d, c, b) = (d, c, b, b.wrapping_add(turned));
    }
    let mut digest = START;
    for (sum, v) in digest.iter_mut().zip([a, b, c, d]) {
        *sum = sum.wrapping_add(v);
    }
    digest
}

/// The key with this number: its digits in base `values`, one a byte.
#[device]
fn key_bytes(mut number: usize, values: usize) -> [u8; KEY_BYTES] {
    let mut bytes = [0; KEY_BYTES];
    for byte in &mut bytes {
        *byte = (number % values) as u8;
        number /= values;
    }
    bytes
}

#[kernel]
fn md5(values: u32, keys: u32, target: [u32; 4], found: &mut [u32]) {
    let stride = global_size_x();
    for number in (global_id_x()..keys as usize).step_by(stride) {
        let key = key_bytes(number, values as usize);
        let mut message = [0u8; 64];
        message[..KEY_BYTES].copy_from_slice(&key);
        message[KEY_BYTES] = 0x80;
        message[56] = 8 * KEY_BYTES as u8;
        let words: [u32; 16] = std::array::from_fn(|k| {
            u32::from_le_bytes([
                message[4 * k],
                message[4 * k + 1],
                message[4 * k + 2],
                message[4 * k + 3],
            ])
        });
        if md5_of_block(&words) == target {
            atomic_min(&mut found[0], number as u32);
        }
    }
}

fn md5_of(message: &[u8]) -> [u32; 4] {
    let mut bytes = message.to_vec();
    bytes.push(0x80);
    bytes.resize(56, 0);
    bytes.extend((8 * message.len() as u64).to_le_bytes());
    let m: Vec<u32> = bytes
        .chunks(4)
        .map(|b| u32::from_le_bytes(b.try_into().unwrap()))
        .collect();
    let sine = |i: u32| (f64::from(i + 1).sin().abs() * 4_294_967_296.0) as u32;
    let (mut a, mut b, mut c, mut d) = (0x6745_2301u32, 0xefcd_ab89u32, 0x98ba_dcfeu32, 0x1032_5476u32);
    let start = [a, b, c, d];
    for i in 0..64u32 {
        let (f, g, s) = if i < 16 {
            (d ^ (b & (c ^ d)), i, [7, 12, 17, 22])
        } else if i < 32 {
            (c ^ (d & (b ^ c)), 5 * i + 1, [5, 9, 14, 20])
        } else if i < 48 {
            (b ^ c ^ d, 3 * i + 5, [4, 11, 16, 23])
        } else {
            (c ^ (b | !d), 7 * i, [6, 10, 15, 21])
        };
        let t = f
            .wrapping_add(a)
            .wrapping_add(sine(i))
            .wrapping_add(m[g as usize % 16]);
        a = d;
        d = c;
        c = b;
        b = b.wrapping_add(t.rotate_left(s[i as usize % 4]));
    }
    let end = [a, b, c, d];
    std::array::from_fn(|i| start[i].wrapping_add(end[i]))
}

#[test]
fn md5_finds_its_key() {
    assert_eq!(md5_of(b"")[0].to_le_bytes(), [0xd4, 0x1d, 0x8c, 0xd9]);
    // 4077 in base 8.
    let target = md5_of(&[5, 5, 7, 7, 0, 0, 0]);
    everywhere(|run| {
        let found = run.upload(&[u32::MAX]);
        let args = args![8u32, 5000u32, target, &found];
        run.launch(md5::kernel(), LaunchConfig::new(3, 64), args);
        run.holds(&found, &[5 + 5 * 8 + 7 * 64 + 7 * 512]);
    });
}

// 6: MurmurHash3

#[device]
fn finish(mut k: u64) -> u64 {
    k ^= k >> 33;
    k = k.wrapping_mul(0xff51_afd7_ed55_8ccd);
    k ^= k >> 33;
    k = k.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}

#[device]
fn murmur_of(key: &[u8], seed: u64) -> [u64; 2] {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let (mut h1, mut h2) = (seed, seed);
    let tail = &key[key.len() / 16 * 16..];
    for block in key.chunks_exact(16) {
        let k1 = u64::from_le_bytes(std::array::from_fn::<u8, 8, _>(|i| block[i]));
        let k2 = u64::from_le_bytes(std::array::from_fn::<u8, 8, _>(|i| block[8 + i]));
        h1 ^= k1.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
        h1 = h1
            .rotate_left(27)
            .wrapping_add(h2)
            .wrapping_mul(5)
            .wrapping_add(0x52dc_e729);
        h2 ^= k2.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
        h2 = h2
            .rotate_left(31)
            .wrapping_add(h1)
            .wrapping_mul(5)
            .wrapping_add(0x3849_5ab5);
    }
    let (mut k1, mut k2) = (0u64, 0u64);
    for (i, byte) in tail.iter().enumerate() {
        if i < 8 {
            k1 |= u64::from(*byte) << (8 * i);
        } else {
            k2 |= u64::from(*byte) << (8 * (i - 8));
        }
    }
    h2 ^= k2.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    h1 ^= k1.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    h1 ^= key.len() as u64;
    h2 ^= key.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = finish(h1);
    h2 = finish(h2);
    h1 = h1.wrapping_add(h2);
    [h1, h2.wrapping_add(h1)]
}

#[kernel]
fn murmur(seed: u32, keys: &[u8], ranges: &[[u32; 2]], hashes: &mut [[u64; 2]]) {
    let i = global_id_x();
    if let Some([from, to]) = ranges.get(i) {
        hashes[i] = murmur_of(&keys[*from as usize..*to as usize], u64::from(seed));
    }
}

fn murmur_reference(key: &[u8], seed: u64) -> [u64; 2] {
    let (c1, c2) = (0x87c3_7b91_1142_53d5_u64, 0x4cf5_ad43_2745_937f_u64);
    let mut h = [seed; 2];
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |w, b| w << 8 | u64::from(*b));
    let first = |k: u64| k.wrapping_mul(c1).rotate_left(31).wrapping_mul(c2);
    let second = |k: u64| k.wrapping_mul(c2).rotate_left(33).wrapping_mul(c1);
    for chunk in key.chunks(16) {
        h[0] ^= first(word(&chunk[..chunk.len().min(8)]));
        if chunk.len() == 16 {
            h[0] = h[0].rotate_left(27).wrapping_add(h[1]);
            h[0] = h[0].wrapping_mul(5).wrapping_add(0x52dc_e729);
        }
        h[1] ^= second(word(&chunk[chunk.len().min(8)..]));
        if chunk.len() == 16 {
            h[1] = h[1].rotate_left(31).wrapping_add(h[0]);
            h[1] = h[1].wrapping_mul(5).wrapping_add(0x3849_5ab5);
        }
    }
    let mix = |h: [u64; 2]| {
        let a = h[0].wrapping_add(h[1]);
        [a, h[1].wrapping_add(a)]
    };
    let avalanche = |k: u64| {
        let k = (k ^ k >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let k = (k ^ k >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        k ^ k >> 33
    };
    mix(mix(h.map(|h| h ^ key.len() as u64)).map(avalanche))
}

#[test]
fn murmur_of_keys() {
    let mut random = Random(6);
    let keys: Vec<Vec<u8>> = (0..70).map(|i| random.bytes(i)).collect();
    let starts: Vec<u32> = (0..=70)
        .map(|i| keys[..i].iter().map(Vec::len).sum::<usize>() as u32)
        .collect();
    let ranges: Vec<[u32; 2]> = starts.windows(2).map(|w| [w[0], w[1]]).collect();
    let expected: Vec<_> = keys.iter().map(|key| murmur_reference(key, 77)).collect();
    everywhere(|run| {
        let (bytes, ranges) = (run.upload(&keys.concat()), run.upload(&ranges));
        let hashes = run.zeros::<[u64; 2]>(70);
        run.launch(
            murmur::kernel(),
            LaunchConfig::linear(70, 32),
            args![77u32, &bytes, &ranges, &hashes],
        );
        run.holds(&hashes, &expected);
    });
}

// 7: CRC-64

const CRC_TABLE: [u64; 256] = crc_table();

const fn crc_table() -> [u64; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (0xc96c_5795_d787_0f42 & (crc & 1).wrapping_neg());
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
}

#[kernel]
fn crc64(segment: usize, data: &[u8], crcs: &mut [u64]) {
    let i = global_id_x();
    if i < crcs.len() {
        let part = &data[segment * i..data.len().min(segment * i + segment)];
        crcs[i] = !part.iter().fold(!0u64, |crc, byte| {
            CRC_TABLE[(crc as u8 ^ byte) as usize] ^ (crc >> 8)
        });
    }
}

fn crc64_of(data: &[u8]) -> u64 {
    let mut crc = u64::MAX;
    for bit in data.iter().flat_map(|byte| (0..8).map(move |b| byte >> b & 1)) {
        let out = crc & 1 ^ u64::from(bit);
        crc >>= 1;
        if out == 1 {
            crc ^= 0xc96c_5795_d787_0f42;
        }
    }
    !crc
}

#[test]
fn crc64_of_segments() {
    assert_eq!(crc64_of(b"123456789"), 0x995d_c9bb_df19_39fa);
    let data = Random(7).bytes(1000);
    let expected: Vec<u64> = data.chunks(37).map(crc64_of).collect();
    everywhere(|run| {
        let (data, crcs) = (run.upload(&data), run.zeros::<u64>(expected.len()));
        run.launch(
            crc64::kernel(),
            LaunchConfig::linear(expected.len(), 32),
            args![37usize, &data, &crcs],
        );
        run.holds(&crcs, &expected);
    });
}

// 9: base64

#[kernel]
fn base64(bytes: &[u8], letters: &mut [[u8; 4]]) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let i = global_id_x();
    if i >= letters.len() {
        return;
    }
    let group = &bytes[3 * i..bytes.len().min(3 * i + 3)];
    let byte = |k: usize| u32::from(group.get(k).copied().unwrap_or(0));
    let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    let count = group.len() + 1;
    letters[i] = std::array::from_fn(|k| {
        if k < count {
            ALPHABET[(bits >> (18 - 6 * k) & 63) as usize]
        } else {
            b'='
        }
    });
}

fn base64_of(bytes: &[u8]) -> String {
    let letters: Vec<char> = ('A'..='Z')
        .chain('a'..='z')
        .chain('0'..='9')
        .chain(['+', '/'])
        .collect();
    let mut bits: String = bytes.iter().map(|b| format!("{b:08b}")).collect();
    while !bits.len().is_multiple_of(6) {
        bits.push('0');
    }
    let six = |s: &[u8]| usize::from_str_radix(std::str::from_utf8(s).unwrap(), 2).unwrap();
    let mut text: String = bits.as_bytes().chunks(6).map(|s| letters[six(s)]).collect();
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

#[test]
fn base64_encodes() {
    assert_eq!(base64_of(b"light w"), "bGlnaHQgdw==");
    for len in [97, 98, 99] {
        let bytes = Random(9).bytes(len);
        everywhere(|run| {
            let (bytes_in, letters) = (run.upload(&bytes), run.zeros::<[u8; 4]>(33));
            run.launch(
                base64::kernel(),
                LaunchConfig::linear(33, 32),
                args![&bytes_in, &letters],
            );
            let text = String::from_utf8(run.read(&letters).concat()).unwrap();
            assert_eq!(text, base64_of(&bytes));
        });
    }
}
