//! Strings and genomes: MinHash, WordPiece, alignment by wavefronts, pairs of markers.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 271: MinHash

const MERSENNE: u64 = (1 << 61) - 1;

/// MurmurHash3 of 32 bits.
#[device]
fn murmur32(bytes: &[u8], seed: u32) -> u32 {
    let scrambled = |k: u32| k.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let blocks = bytes.chunks_exact(4);
    let tail = blocks.remainder();
    let mut hash = seed;
    for block in blocks {
        let k = u32::from_le_bytes(block.try_into().unwrap());
        hash = (hash ^ scrambled(k)).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
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
        .map(|len| (0..*len).map(|_| letters[random.bits() as usize % letters.len()]).collect())
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
            h ^= mix(u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
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
                let value = |w: &String| ((hash(w.as_bytes()) as u128 * a as u128 + b as u128) % prime) as u32;
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
    let basis = if inner { 0x811c_9dc5 ^ 0xffff } else { 0x811c_9dc5u32 };
    piece.iter().fold(basis, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
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
    let mut vocabulary: Vec<String> = ["a", "b", "c", "##a", "##b", "##ab", "abc", "##cab", "bca", "##bcab"].map(String::from).into();
    for k in 0..60 {
        let mut piece = if k % 2 == 0 { String::new() } else { "##".to_string() };
        piece.extend((0..2 + random.bits() % 5).map(|_| (b'a' + (random.bits() % 3) as u8) as char));
        if !vocabulary.contains(&piece) {
            vocabulary.push(piece);
        }
    }
    // "##c" is not there, so some words are unknown.
    let ids: HashMap<&str, u32> = vocabulary.iter().enumerate().map(|(k, v)| (v.as_str(), k as u32 + 2)).collect();
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
        .map(|k| (0..k % 17).map(|_| (b'a' + (random.bits() % 7 / 2).min(2) as u8) as char).collect())
        .collect();
    let mut starts = vec![0u32];
    let (mut tokens, mut counts): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    for word in &words {
        starts.push(starts.last().unwrap() + word.len() as u32);
        let mut own = Vec::new();
        let mut from = 0;
        while from < word.len() {
            let prefix = if from > 0 { "##" } else { "" };
            let to = (from + 1..=word.len()).rev().find(|to| ids.contains_key(format!("{prefix}{}", &word[from..*to]).as_str()));
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

// 273: alignment by wavefronts

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Penalties {
    mismatch: u32,
    open: u32,
    extend: u32,
}

const ROWS: usize = 12;
const NOWHERE: i32 = -1_000_000;

/// How far the wavefront of `back` less came on a neighbouring diagonal.
#[device]
fn reached(rows: &[[i32; 64]; ROWS], score: u32, back: u32, lane: usize, beside: isize) -> i32 {
    match (score.checked_sub(back), lane.checked_add_signed(beside)) {
        (Some(score), Some(lane)) if lane < 64 => rows[score as usize % ROWS][lane],
        _ => NOWHERE,
    }
}

#[kernel(block_size = 64)]
fn wavefronts(penalties: Penalties, limit: u32, bytes: &[u8], places: &[[u32; 4]], scores: &mut [i32]) {
    let matches = shared_array::<[[i32; 64]; ROWS]>();
    let inserts = shared_array::<[[i32; 64]; ROWS]>();
    let deletes = shared_array::<[[i32; 64]; ROWS]>();
    let done = shared_array::<[u32; 1]>();
    let (lane, group) = (local_id_x(), group_id_x());
    let Penalties { mismatch, open, extend } = penalties;
    assert!(mismatch.max(open + extend) < ROWS as u32, "the wavefronts before are kept");
    let [a, b, c, d] = places[group].map(|place| place as usize);
    let (pattern, text) = (&bytes[a..b], &bytes[c..d]);
    let (height, width) = (pattern.len() as i32, text.len() as i32);
    let diagonal = lane as i32 - 32;
    for rows in [&mut *matches, &mut *inserts, &mut *deletes] {
        for row in rows {
            row[lane] = NOWHERE;
        }
    }
    if lane == 0 {
        done[0] = 0;
    }
    sync_threads();
    let inside = |at: i32| if at <= width && at - diagonal <= height { at } else { NOWHERE };
    let mut result = -1;
    for score in 0..=limit {
        let opened = |beside: isize| reached(matches, score, open + extend, lane, beside);
        let insert = inside(opened(-1).max(reached(inserts, score, extend, lane, -1)) + 1);
        let delete = inside(opened(1).max(reached(deletes, score, extend, lane, 1)));
        let begin = if score == 0 && diagonal == 0 { 0 } else { NOWHERE };
        let replace = inside(reached(matches, score, mismatch, lane, 0) + 1);
        let mut at = begin.max(replace).max(insert).max(delete);
        if at >= 0 {
            let (ahead, below) = (&text[at as usize..], &pattern[(at - diagonal) as usize..]);
            at += ahead.iter().zip(below).take_while(|(a, b)| a == b).count() as i32;
        }
        let row = score as usize % ROWS;
        matches[row][lane] = at;
        inserts[row][lane] = insert;
        deletes[row][lane] = delete;
        if diagonal == width - height && at == width {
            done[0] = 1;
        }
        sync_threads();
        let is_done = done[0];
        sync_threads();
        if is_done == 1 {
            result = score as i32;
            break;
        }
    }
    if lane == 0 {
        scores[group] = result;
    }
}

#[test]
fn distances_by_wavefronts() {
    let mut random = Random(273);
    let limit = 36u32;
    let (mut bytes, mut places, mut expected) = (Vec::<u8>::new(), Vec::<[u32; 4]>::new(), Vec::<i32>::new());
    for k in 0..7usize {
        let pattern: Vec<u8> = (0..40 + 9 * k).map(|_| b"ACGT"[random.bits() as usize % 4]).collect();
        let mut text = pattern.clone();
        // Pair 5 has too many errors.
        let errors = if k == 5 { 30 } else { k };
        for _ in 0..errors {
            let at = random.bits() as usize % text.len();
            match random.bits() % 3 {
                0 => text[at] = b"ACGT"[random.bits() as usize % 4],
                1 => text.insert(at, b'T'),
                _ => drop(text.remove(at)),
            }
        }
        if k == 6 {
            text.drain(20..24);
        }
        // Gotoh's three tables, costs instead of scores.
        let far = 1_000_000;
        let (n, m) = (text.len(), pattern.len());
        let mut best = vec![vec![far; n + 1]; m + 1];
        let (mut right, mut down) = (best.clone(), best.clone());
        best[0][0] = 0;
        for i in 0..=m {
            for j in 0..=n {
                if j > 0 {
                    right[i][j] = (best[i][j - 1] + 8).min(right[i][j - 1] + 2);
                }
                if i > 0 {
                    down[i][j] = (best[i - 1][j] + 8).min(down[i - 1][j] + 2);
                }
                if i > 0 && j > 0 {
                    let step = if pattern[i - 1] == text[j - 1] { 0 } else { 4 };
                    best[i][j] = best[i][j].min(best[i - 1][j - 1] + step);
                }
                best[i][j] = best[i][j].min(right[i][j]).min(down[i][j]);
            }
        }
        expected.push(if best[m][n] <= limit as i32 { best[m][n] } else { -1 });
        let start = bytes.len() as u32;
        places.push([start, start + m as u32, start + m as u32, start + (m + n) as u32]);
        bytes.extend(pattern);
        bytes.extend(text);
    }
    assert_eq!((expected[0], expected[5]), (0, -1));
    everywhere(|run| {
        let (x, ends, scores) = (run.upload(&bytes), run.upload(&places), run.zeros::<i32>(7));
        let penalties = Penalties { mismatch: 4, open: 6, extend: 2 };
        run.launch(wavefronts::kernel(), LaunchConfig::new(7, 64), args![penalties, limit, &x, &ends, &scores]);
        run.holds(&scores, &expected);
    });
}

// 274: pairs of markers

/// How many people have each pair of genotypes, of 0, 1 and 2. Each word has the bits of 32 people, those of the
/// first two genotypes a plane.
#[device]
fn tally(planes: &[[u32; 2]], markers: usize, people: usize, i: usize, j: usize) -> [[u32; 3]; 3] {
    let mut table = [[0; 3]; 3];
    for (w, row) in planes.chunks(markers).enumerate() {
        let mask = match people - w * 32 {
            left if left >= 32 => u32::MAX,
            left => (1 << left) - 1,
        };
        let genotypes = |marker: usize| {
            let [zero, one] = row[marker];
            [zero, one, !(zero | one) & mask]
        };
        for (counts, x) in table.iter_mut().zip(genotypes(i)) {
            for (count, y) in counts.iter_mut().zip(genotypes(j)) {
                *count += (x & y).count_ones();
            }
        }
    }
    table
}

#[device]
fn log_factorial(n: u32) -> f32 {
    (n as f32 + 1.0).lgamma()
}

#[kernel]
fn epistasis(
    markers: usize,
    people: [usize; 2],
    healthy: &[[u32; 2]],
    ill: &[[u32; 2]],
    scores: &mut [f32],
    best: &mut u32,
) {
    let (j, i) = (global_id_x(), global_id_y());
    if i >= j || j >= markers {
        return;
    }
    let [controls, cases] = people;
    let without = tally(healthy, markers, controls, i, j);
    let with = tally(ill, markers, cases, i, j);
    let mut score = 0.0;
    for (row, other) in without.iter().zip(&with) {
        for (a, b) in row.iter().zip(other) {
            score += log_factorial(a + b + 1) - log_factorial(*a) - log_factorial(*b);
        }
    }
    scores[i * markers + j] = score;
    // Of numbers that are not negative the bits have the same order.
    atomic_min(best, score.to_bits());
}

#[kernel]
fn best_pair(scores: &[f32], best: &u32, found: &mut u32) {
    let i = global_id_x();
    if scores.get(i).is_some_and(|score| score.to_bits() == *best) {
        atomic_min(found, i as u32);
    }
}

#[test]
fn the_pair_that_makes_ill() {
    let mut random = Random(274);
    let (markers, people) = (21usize, 167usize);
    let genotypes: Vec<Vec<usize>> = (0..people).map(|_| (0..markers).map(|_| random.bits() as usize % 3).collect()).collect();
    let ill: Vec<bool> = genotypes.iter().map(|g| ((g[4] + g[13]) % 2 == 1) ^ (random.bits() % 15 == 0)).collect();
    let planes = |class: bool| -> (Vec<[u32; 2]>, usize) {
        let members: Vec<&Vec<usize>> = genotypes.iter().zip(&ill).filter(|(_, ill)| **ill == class).map(|(g, _)| g).collect();
        let mut planes = vec![[0u32; 2]; members.len().div_ceil(32) * markers];
        for (k, person) in members.iter().enumerate() {
            for (marker, genotype) in person.iter().enumerate().filter(|(_, g)| **g < 2) {
                planes[k / 32 * markers + marker][*genotype] |= 1 << (k % 32);
            }
        }
        (planes, members.len())
    };
    let ((healthy, controls), (sick, cases)) = (planes(false), planes(true));
    let ln = |n: usize| (1..=n).map(|k| (k as f64).ln()).sum::<f64>();
    let mut expected = vec![0.0; markers * markers];
    for i in 0..markers {
        for j in i + 1..markers {
            let mut counts = [[0usize; 2]; 9];
            for (g, ill) in genotypes.iter().zip(&ill) {
                counts[g[i] * 3 + g[j]][*ill as usize] += 1;
            }
            expected[i * markers + j] = counts.iter().map(|[a, b]| ln(a + b + 1) - ln(*a) - ln(*b)).sum();
        }
    }
    everywhere(|run| {
        let (x, y) = (run.upload(&healthy), run.upload(&sick));
        let (scores, best) = (run.zeros::<f32>(markers * markers), run.upload(&[u32::MAX]));
        run.launch(
            epistasis::kernel(),
            LaunchConfig::tiled(markers as u32, markers as u32, (8, 8)),
            args![markers, [controls, cases], &x, &y, &scores, &best],
        );
        // Logarithms of some 90 at most, 27 of them, each right to four last places: 8e-4 of sums of about 100.
        run.near(&scores, &expected, 2e-5);
        let found = run.upload(&[u32::MAX]);
        run.launch(best_pair::kernel(), LaunchConfig::linear(markers * markers, 64), args![&scores, &best, &found]);
        run.holds(&found, &[4 * markers as u32 + 13]);
    });
}
