//! Searches: by backtracking, in tables, in texts.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 25: queens

#[kernel]
fn queens(n: u32, solutions: &mut [u32]) {
    let lane = global_id_x();
    let Some(count) = solutions.get_mut(lane) else {
        return;
    };
    let all = (1u32 << n) - 1;
    let (first, second) = (1u32 << (lane as u32 / n), 1u32 << (lane as u32 % n));
    *count = 0;
    if second & (first | first << 1 | first >> 1) != 0 {
        return;
    }
    // Columns, both diagonals, and places to try, a row each.
    let mut rows = [(0u32, 0u32, 0u32, 0u32); 16];
    let columns = first | second;
    let (left, right) = ((first << 1 | second) << 1, (first >> 1 | second) >> 1);
    rows[2] = (columns, left, right, all & !(columns | left | right));
    let mut row = 2;
    while row >= 2 {
        let (columns, left, right, free) = rows[row];
        if free == 0 {
            row -= 1;
            continue;
        }
        let place = free & free.wrapping_neg();
        rows[row].3 = free ^ place;
        if row as u32 == n - 1 {
            *count += 1;
            continue;
        }
        row += 1;
        let (columns, left, right) = (columns | place, (left | place) << 1, (right | place) >> 1);
        rows[row] = (columns, left, right, all & !(columns | left | right));
    }
}

#[test]
fn queens_are_counted() {
    for (n, expected) in [(6u32, 4u32), (8, 92), (9, 352)] {
        everywhere(|run| {
            let lanes = (n * n) as usize;
            let solutions = run.zeros::<u32>(lanes);
            let config = LaunchConfig::linear(lanes, 64);
            run.launch(queens::kernel(), config, args![n, &solutions]);
            assert_eq!(run.read(&solutions).iter().sum::<u32>(), expected, "{n}");
        });
    }
}

// 26: linear probing

const EMPTY: u32 = u32::MAX;

#[device]
fn slot(key: u32, size: usize) -> usize {
    let mut k = key;
    k ^= k >> 16;
    k = k.wrapping_mul(0x85eb_ca6b);
    k ^= k >> 13;
    k = k.wrapping_mul(0xc2b2_ae35);
    k ^= k >> 16;
    k as usize & (size - 1)
}

#[kernel]
fn insert(pairs: &[[u32; 2]], keys: &mut [u32], values: &mut [u32]) {
    let Some(&[key, value]) = pairs.get(global_id_x()) else {
        return;
    };
    let mut at = slot(key, keys.len());
    loop {
        let before = atomic_compare_exchange(&mut keys[at], EMPTY, key);
        if before == EMPTY || before == key {
            atomic_store(&mut values[at], value);
            return;
        }
        at = (at + 1) & (keys.len() - 1);
    }
}

#[device]
fn find(keys: &[u32], values: &[u32], key: u32) -> Option<u32> {
    let mut at = slot(key, keys.len());
    loop {
        match keys[at] {
            k if k == key => return Some(values[at]),
            EMPTY => return None,
            _ => at = (at + 1) & (keys.len() - 1),
        }
    }
}

#[kernel]
fn look_up(wanted: &[u32], keys: &[u32], values: &[u32], found: &mut [u32]) {
    let i = global_id_x();
    if i < wanted.len() {
        found[i] = find(keys, values, wanted[i]).unwrap_or(EMPTY);
    }
}

#[test]
fn probing_finds_what_was_inserted() {
    let mut random = Random(26);
    let map: std::collections::HashMap<u32, u32> = (0..700)
        .map(|_| (random.bits() as u32 % 5000, random.bits() as u32 >> 1))
        .collect();
    let pairs: Vec<[u32; 2]> = map.iter().map(|(k, v)| [*k, *v]).collect();
    let wanted: Vec<u32> = (0..5000).collect();
    let expected: Vec<u32> = wanted
        .iter()
        .map(|k| map.get(k).copied().unwrap_or(EMPTY))
        .collect();
    everywhere(|run| {
        let (pairs, wanted) = (run.upload(&pairs), run.upload(&wanted));
        let (keys, values) = (run.upload(&[EMPTY; 1024]), run.zeros::<u32>(1024));
        let found = run.zeros::<u32>(wanted.len());
        let config = |n| LaunchConfig::linear(n, 64);
        run.launch(
            insert::kernel(),
            config(pairs.len()),
            args![&pairs, &keys, &values],
        );
        run.launch(
            look_up::kernel(),
            config(wanted.len()),
            args![&wanted, &keys, &values, &found],
        );
        run.holds(&found, &expected);
    });
}

// 27: Boyer-Moore-Horspool

#[kernel]
fn horspool(text: &[u8], pattern: &[u8], skips: &[u8], part: usize, found: &mut [u32]) {
    let i = global_id_x();
    let first = i * part;
    if first >= text.len() {
        return;
    }
    let end = (first + part + pattern.len() - 1).min(text.len());
    let text = &text[first..end];
    let mut at = 0;
    let mut count = 0;
    while at + pattern.len() <= text.len() {
        let window = &text[at..at + pattern.len()];
        if window == pattern {
            count += 1;
        }
        at += skips[window[pattern.len() - 1] as usize] as usize;
    }
    found[i] = count;
}

#[test]
fn horspool_finds_all() {
    let mut random = Random(27);
    let text: Vec<u8> = (0..3000).map(|_| b"abc"[random.bits() as usize % 3]).collect();
    let (pattern, part) = (*b"abcab", 100usize);
    let mut skips = [pattern.len() as u8; 256];
    for (i, byte) in pattern[..pattern.len() - 1].iter().enumerate() {
        skips[*byte as usize] = (pattern.len() - 1 - i) as u8;
    }
    let parts = text.len() / part;
    let mut expected = vec![0u32; parts];
    for (i, window) in text.windows(pattern.len()).enumerate() {
        expected[i / part] += u32::from(window == pattern);
    }
    everywhere(|run| {
        let (text, pattern, skips) = (run.upload(&text), run.upload(&pattern), run.upload(&skips));
        let found = run.zeros::<u32>(parts);
        run.launch(
            horspool::kernel(),
            LaunchConfig::linear(parts, 64),
            args![&text, &pattern, &skips, part, &found],
        );
        run.holds(&found, &expected);
    });
}

// 28: Smith-Waterman

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Best {
    score: i32,
    row: u32,
    column: u32,
}

const MATCH: i32 = 3;
const MISMATCH: i32 = -2;
const OPEN: i32 = -5;
const EXTEND: i32 = -1;
const LENGTH: usize = 40;

#[kernel]
fn align(a: &[u8], b: &[u8], best: &mut [Best]) {
    let i = global_id_x();
    if i >= best.len() {
        return;
    }
    let a = &a[i * LENGTH..(i + 1) * LENGTH];
    let b = &b[i * LENGTH..(i + 1) * LENGTH];
    let mut above = [0i32; LENGTH + 1];
    let mut down = [i32::MIN / 2; LENGTH + 1];
    let mut found = Best {
        score: 0,
        row: 0,
        column: 0,
    };
    for (r, x) in a.iter().enumerate() {
        let (mut diagonal, mut left, mut right) = (0, 0, i32::MIN / 2);
        for (c, y) in b.iter().enumerate() {
            down[c + 1] = (above[c + 1] + OPEN).max(down[c + 1] + EXTEND);
            right = (left + OPEN).max(right + EXTEND);
            let step = if x == y { MATCH } else { MISMATCH };
            let score = [diagonal + step, down[c + 1], right]
                .into_iter()
                .fold(0, i32::max);
            diagonal = above[c + 1];
            above[c + 1] = score;
            left = score;
            if score > found.score {
                found = Best {
                    score,
                    row: r as u32,
                    column: c as u32,
                };
            }
        }
    }
    best[i] = found;
}

#[test]
fn smith_waterman_finds_the_best() {
    let mut random = Random(28);
    let pairs = 70;
    let a: Vec<u8> = (0..pairs * LENGTH).map(|_| random.bits() as u8 & 3).collect();
    let b: Vec<u8> = a
        .iter()
        .enumerate()
        .map(|(i, v)| match random.bits() % 8 {
            0 => random.bits() as u8 & 3,
            1 if i > 0 => a[i - 1],
            _ => *v,
        })
        .collect();
    let expected: Vec<Best> = (0..pairs)
        .map(|p| {
            let (a, b) = (&a[p * LENGTH..][..LENGTH], &b[p * LENGTH..][..LENGTH]);
            // By the definition: gaps of every length.
            let mut h = vec![vec![0i32; LENGTH + 1]; LENGTH + 1];
            let mut best = Best::default();
            for r in 1..=LENGTH {
                for c in 1..=LENGTH {
                    let step = if a[r - 1] == b[c - 1] { MATCH } else { MISMATCH };
                    let gap = |k: usize| OPEN + EXTEND * (k as i32 - 1);
                    let up = (1..=r).map(|k| h[r - k][c] + gap(k)).max().unwrap();
                    let left = (1..=c).map(|k| h[r][c - k] + gap(k)).max().unwrap();
                    h[r][c] = 0.max(h[r - 1][c - 1] + step).max(up).max(left);
                    if h[r][c] > best.score {
                        best = Best {
                            score: h[r][c],
                            row: r as u32 - 1,
                            column: c as u32 - 1,
                        };
                    }
                }
            }
            best
        })
        .collect();
    everywhere(|run| {
        let (a, b, best) = (run.upload(&a), run.upload(&b), run.zeros::<Best>(pairs));
        let config = LaunchConfig::linear(pairs, 64);
        run.launch(align::kernel(), config, args![&a, &b, &best]);
        run.holds(&best, &expected);
    });
}
