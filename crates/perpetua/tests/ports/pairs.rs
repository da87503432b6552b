//! Pairs of bytes that become tokens.

use std::collections::HashMap;

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::texts::{column, string};

// 185: byte-pair encoding

/// Two tokens that become token `256 + rank`; sorted by the two.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Merge {
    left: u32,
    right: u32,
    rank: u32,
}

#[device]
fn rank(merges: &[Merge], left: u32, right: u32) -> Option<u32> {
    let at = merges.partition_point(|m| (m.left, m.right) < (left, right));
    merges
        .get(at)
        .filter(|m| m.left == left && m.right == right)
        .map(|m| m.rank)
}

const LONGEST: usize = 32;

/// The tokens of a word at its own place, and how many there are; none of a word that is too long.
#[kernel]
fn encode(offsets: &[u32], bytes: &[u8], merges: &[Merge], tokens: &mut [u32], counts: &mut [u32]) {
    let i = global_id_x();
    if i >= counts.len() {
        return;
    }
    let word = string(offsets, bytes, i);
    if word.len() > LONGEST {
        counts[i] = u32::MAX;
        return;
    }
    let mut parts = [0u32; LONGEST];
    for (part, byte) in parts.iter_mut().zip(word) {
        *part = u32::from(*byte);
    }
    let mut count = word.len();
    loop {
        let best = parts[..count]
            .windows(2)
            .enumerate()
            .filter_map(|(k, pair)| rank(merges, pair[0], pair[1]).map(|rank| (rank, k)))
            .min();
        let Some((rank, at)) = best else {
            break;
        };
        parts[at] = 256 + rank;
        parts.copy_within(at + 2..count, at + 1);
        count -= 1;
    }
    let start = offsets[i] as usize;
    tokens[start..start + count].copy_from_slice(&parts[..count]);
    counts[i] = count as u32;
}

#[test]
fn words_become_tokens_pair_by_pair() {
    let mut random = Random(185);
    let letters = b"aabcde";
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    while pairs.len() < 60 {
        let token = |k: usize| {
            if k < 8 {
                u32::from(letters[k % 6])
            } else {
                248 + k as u32
            }
        };
        let pair = (
            token(random.below(8 + pairs.len())),
            token(random.below(8 + pairs.len())),
        );
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    let ranks: HashMap<(u32, u32), u32> = pairs.iter().copied().zip(0..).collect();
    let mut merges: Vec<Merge> = ranks
        .iter()
        .map(|(&(left, right), &rank)| Merge { left, right, rank })
        .collect();
    merges.sort_by_key(|m| (m.left, m.right));
    let words: Vec<Vec<u8>> = (0..100)
        .map(|i| {
            let length = if i == 50 { 40 } else { random.below(33) };
            (0..length).map(|_| letters[random.below(6)]).collect()
        })
        .collect();
    let expected: Vec<Option<Vec<u32>>> = words
        .iter()
        .map(|w| {
            let mut tokens: Vec<u32> = w.iter().map(|b| u32::from(*b)).collect();
            // All pairs of the best rank at once, from left to right.
            while let Some(best) = tokens.windows(2).filter_map(|p| ranks.get(&(p[0], p[1]))).min() {
                let mut next = Vec::new();
                let mut k = 0;
                while k < tokens.len() {
                    let pair = tokens.get(k + 1).map(|right| (tokens[k], *right));
                    if pair.is_some_and(|p| ranks.get(&p) == Some(best)) {
                        next.push(256 + best);
                        k += 2;
                    } else {
                        next.push(tokens[k]);
                        k += 1;
                    }
                }
                tokens = next;
            }
            (w.len() <= LONGEST).then_some(tokens)
        })
        .collect();
    let (offsets, bytes) = column(&words);
    everywhere(|run| {
        let (o, b, m) = (run.upload(&offsets), run.upload(&bytes), run.upload(&merges));
        let (tokens, counts) = (run.zeros::<u32>(bytes.len()), run.zeros::<u32>(100));
        run.launch(
            encode::kernel(),
            LaunchConfig::linear(100, 32),
            args![&o, &b, &m, &tokens, &counts],
        );
        let (tokens, counts) = (run.read(&tokens), run.read(&counts));
        for (i, expected) in expected.iter().enumerate() {
            let Some(expected) = expected else {
                assert_eq!(counts[i], u32::MAX, "on {}", run.place());
                continue;
            };
            let found = &tokens[offsets[i] as usize..][..counts[i] as usize];
            assert_eq!(found, expected, "on {}: {i}", run.place());
        }
    });
}
