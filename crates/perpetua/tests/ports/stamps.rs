//! Proofs of work and addresses: Cuckatoo's trimming, and base 58.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

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
            run.launch(
                mark_nodes::kernel(),
                config(),
                args![hash, side, mask, &alive, &seen],
            );
            run.launch(
                trim_edges::kernel(),
                config(),
                args![hash, side, mask, &seen, &alive, &left],
            );
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
    let letters: Vec<char> = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
        .chars()
        .collect();
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
        run.launch(
            to_base58::kernel(),
            LaunchConfig::linear(n, 32),
            args![&bytes, &starts, &out, &sizes],
        );
        run.holds(&out, &expected);
        run.holds(&sizes, &lengths);
        let (texts, sizes) = (run.upload(&all_texts), run.upload(&all_lengths));
        let (out, counts) = (run.zeros::<[u8; 48]>(n + 1), run.zeros::<i32>(n + 1));
        let config = LaunchConfig::linear(n + 1, 32);
        run.launch(
            from_base58::kernel(),
            config,
            args![&texts, &sizes, &out, &counts],
        );
        run.holds(&counts, &found);
        run.holds(&out, &back);
    });
}
