//! Strings: MinHash, and WordPiece.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 271: MinHash

const MERSENNE: u64 = (1 << 61) - 1;

/// MurmurHash3 of 32 bits.
#[device]
fn murmur32(bytes: &[u8], seed: u32) -> u32 {
    let scrambled = |k: u32| {
        k.wrapping_mul(0xcc9e_2d51)
            .rotate_left(15)
            .wrapping_mul(0x1b87_3593)
    };
    let blocks = bytes.chunks_exact(4);
    let tail = blocks.remainder();
    let mut hash = seed;
    for block in blocks {
        let k = u32::from_le_bytes(block.try_into().unwrap());
        hash = (hash ^ scrambled(k))
            .rotate_left(13)
            .wrapping_mul(5)
            .wrapping_add(0xe654_6b64);
    }
    hash ^= scrambled(tail.iter().rev().fold(0u32, |k, byte| k << 8 | u32::from(*byte)));
    hash ^= bytes.len() as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

/// The first `width` characters, where a character begins here and that many follow. A short string is one window.
#[device]
fn window(part: &[u8], width: usize, is_whole: bool) -> Option<&[u8]> {
    let begins = |byte: u8| byte & 0xc0 != 0x80;
    if !begins(part[0]) {
        return None;
    }
    let mut characters = 0;
    for (at, byte) in part.iter().enumerate() {
        if begins(*byte) {
            if characters == width {
                return Some(&part[..at]);
            }
            characters += 1;
        }
    }
    (is_whole || characters == width).then_some(part)
}

#[kernel(block_size = 64)]
fn minhash<const K: usize>(
    width: usize,
    seed: u32,
    text: &[u8],
    starts: &[u32],
    permutations: &[[u32; 2]; K],
    signatures: &mut [[u32; K]],
) {
    let least = shared_array::<[u32; K]>();
    let (lane, group) = (local_id_x(), group_id_x());
    for k in (lane..K).step_by(64) {
        least[k] = u32::MAX;
    }
    sync_threads();
    let string = &text[starts[group] as usize..starts[group + 1] as usize];
    for at in (lane..string.len()).step_by(64) {
        let Some(part) = window(&string[at..], width, at == 0) else {
            continue;
        };
        let hash = u64::from(murmur32(part, seed));
        for (k, [a, b]) in permutations.iter().enumerate() {
            let value = (hash * u64::from(*a) + u64::from(*b)) % MERSENNE;
            atomic_min(&mut least[k], value as u32);
        }
    }
    sync_threads();
    for k in (lane..K).step_by(64) {
        signatures[group][k] = if string.is_empty() { 0 } else { least[k] };
    }
}

#[test]
fn signatures_of_strings() {
    let mut random = Random(271);
    let letters: Vec<char> = "abcdeé ßñ日本🦀".chars().collect();
    let strings: Vec<String> = [0usize, 1, 3, 4, 5, 70, 133]
        .iter()
        .map(|len| {
            (0..*len)
                .map(|_| letters[random.bits() as usize % letters.len()])
                .collect()
        })
        .collect();
    let permutations: [[u32; 2]; 21] = std::array::from_fn(|_| [random.bits() as u32, random.bits() as u32]);
    let (width, seed) = (4usize, 42u32);
    let hash = |bytes: &[u8]| -> u32 {
        let mut h = seed;
        let mix = |mut k: u32| {
            k = k.wrapping_mul(0xcc9e2d51);
            k = (k << 15) | (k >> 17);
            k.wrapping_mul(0x1b873593)
        };
        let mut at = 0;
        while at + 4 <= bytes.len() {
            h ^= mix(u32::from_le_bytes([
                bytes[at],
                bytes[at + 1],
                bytes[at + 2],
                bytes[at + 3],
            ]));
            h = (h << 13) | (h >> 19);
            h = h.wrapping_mul(5).wrapping_add(0xe6546b64);
            at += 4;
        }
        let mut rest = 0u32;
        for (k, byte) in bytes[at..].iter().enumerate() {
            rest |= (*byte as u32) << (8 * k);
        }
        if at < bytes.len() {
            h ^= mix(rest);
        }
        h ^= bytes.len() as u32;
        h = (h ^ (h >> 16)).wrapping_mul(0x85ebca6b);
        h = (h ^ (h >> 13)).wrapping_mul(0xc2b2ae35);
        h ^ (h >> 16)
    };
    let expected: Vec<[u32; 21]> = strings
        .iter()
        .map(|string| {
            let characters: Vec<char> = string.chars().collect();
            let windows: Vec<String> = match characters.len() {
                0 => vec![],
                1..=4 => vec![string.clone()],
                _ => characters.windows(width).map(|w| w.iter().collect()).collect(),
            };
            permutations.map(|[a, b]| {
                let prime = (1u128 << 61) - 1;
                let value =
                    |w: &String| ((hash(w.as_bytes()) as u128 * a as u128 + b as u128) % prime) as u32;
                windows.iter().map(value).min().unwrap_or(0)
            })
        })
        .collect();
    let mut starts = vec![0u32];
    for string in &strings {
        starts.push(starts.last().unwrap() + string.len() as u32);
    }
    everywhere(|run| {
        let (text, starts) = (run.upload(strings.concat().as_bytes()), run.upload(&starts));
        let parameters = run.upload(&[permutations]);
        let signatures = run.zeros::<[u32; 21]>(strings.len());
        run.launch(
            minhash::kernel::<21>(),
            LaunchConfig::new(strings.len() as u32, 64),
            args![width, seed, &text, &starts, &parameters, &signatures],
        );
        run.holds(&signatures, &expected);
    });
}

// 272: WordPiece

/// A place of the vocabulary's hash table. Where the length is zero it is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Slot {
    hash: u32,
    start: u32,
    len: u32,
    /// Whether the piece goes on with a word.
    inner: u32,
    id: u32,
}

const UNKNOWN: u32 = 1;

#[device]
fn fnv(piece: &[u8], inner: bool) -> u32 {
    let basis = if inner {
        0x811c_9dc5 ^ 0xffff
    } else {
        0x811c_9dc5u32
    };
    piece.iter().fold(basis, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

#[device]
fn look_up(slots: &[Slot], pieces: &[u8], piece: &[u8], inner: bool) -> Option<u32> {
    let hash = fnv(piece, inner);
    let mut at = hash as usize % slots.len();
    while slots[at].len > 0 {
        let slot = slots[at];
        let text = &pieces[slot.start as usize..(slot.start + slot.len) as usize];
        if slot.hash == hash && (slot.inner == 1) == inner && text == piece {
            return Some(slot.id);
        }
        at = (at + 1) % slots.len();
    }
    None
}

#[kernel]
fn wordpiece(
    longest: usize,
    slots: &[Slot],
    pieces: &[u8],
    words: &[u8],
    starts: &[u32],
    tokens: &mut [u32],
    counts: &mut [u32],
) {
    let i = global_id_x();
    if i >= counts.len() {
        return;
    }
    let own = starts[i] as usize..starts[i + 1] as usize;
    let word = &words[own.clone()];
    let out = &mut tokens[own];
    let mut rest = word;
    let mut count = 0;
    while !rest.is_empty() {
        let inner = rest.len() < word.len();
        let found = (1..=rest.len().min(longest))
            .rev()
            .find_map(|len| look_up(slots, pieces, &rest[..len], inner).map(|id| (len, id)));
        let Some((len, id)) = found else {
            // A word with a part that no piece has is one unknown token.
            out.fill(0);
            out[0] = UNKNOWN;
            count = 1;
            break;
        };
        out[count] = id;
        count += 1;
        rest = &rest[len..];
    }
    counts[i] = count as u32;
}

#[test]
fn words_to_pieces() {
    use std::collections::HashMap;
    let mut random = Random(272);
    let mut vocabulary: Vec<String> = [
        "a", "b", "c", "##a", "##b", "##ab", "abc", "##cab", "bca", "##bcab",
    ]
    .map(String::from)
    .into();
    for k in 0..60 {
        let mut piece = if k % 2 == 0 {
            String::new()
        } else {
            "##".to_string()
        };
        piece.extend((0..2 + random.bits() % 5).map(|_| (b'a' + (random.bits() % 3) as u8) as char));
        if !vocabulary.contains(&piece) {
            vocabulary.push(piece);
        }
    }
    // "##c" is not there, so some words are unknown.
    let ids: HashMap<&str, u32> = vocabulary
        .iter()
        .enumerate()
        .map(|(k, v)| (v.as_str(), k as u32 + 2))
        .collect();
    let mut slots = vec![Slot::default(); 257];
    let mut pieces: Vec<u8> = Vec::new();
    for piece in &vocabulary {
        let (bytes, inner) = match piece.strip_prefix("##") {
            Some(rest) => (rest.as_bytes(), true),
            None => (piece.as_bytes(), false),
        };
        let hash = fnv(bytes, inner);
        let mut at = hash as usize % slots.len();
        while slots[at].len > 0 {
            at = (at + 1) % slots.len();
        }
        slots[at] = Slot {
            hash,
            start: pieces.len() as u32,
            len: bytes.len() as u32,
            inner: inner as u32,
            id: ids[piece.as_str()],
        };
        pieces.extend(bytes);
    }
    let words: Vec<String> = (0..203)
        .map(|k| {
            (0..k % 17)
                .map(|_| (b'a' + (random.bits() % 7 / 2).min(2) as u8) as char)
                .collect()
        })
        .collect();
    let mut starts = vec![0u32];
    let (mut tokens, mut counts): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    for word in &words {
        starts.push(starts.last().unwrap() + word.len() as u32);
        let mut own = Vec::new();
        let mut from = 0;
        while from < word.len() {
            let prefix = if from > 0 { "##" } else { "" };
            let to = (from + 1..=word.len())
                .rev()
                .find(|to| ids.contains_key(format!("{prefix}{}", &word[from..*to]).as_str()));
            let Some(to) = to else {
                own = vec![UNKNOWN];
                break;
            };
            own.push(ids[format!("{prefix}{}", &word[from..to]).as_str()]);
            from = to;
        }
        counts.push(own.len() as u32);
        own.resize(word.len(), 0);
        tokens.extend(own);
    }
    let unknown = tokens.iter().filter(|t| **t == UNKNOWN).count();
    assert!(unknown > 5 && unknown < 180, "{unknown}");
    everywhere(|run| {
        let (table, text) = (run.upload(&slots), run.upload(&pieces));
        let (x, ends) = (run.upload(words.concat().as_bytes()), run.upload(&starts));
        let (out, sizes) = (run.zeros::<u32>(tokens.len()), run.zeros::<u32>(words.len()));
        run.launch(
            wordpiece::kernel(),
            LaunchConfig::linear(words.len(), 64),
            args![6usize, &table, &text, &x, &ends, &out, &sizes],
        );
        run.holds(&sizes, &counts);
        run.holds(&out, &tokens);
    });
}
