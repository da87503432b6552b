//! Text that is escaped, stemmed, aligned and read.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::texts::{column, string};

// 212: percent encoding

#[device]
fn is_kept(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~')
}

#[device]
fn digit(value: u8) -> u8 {
    match value {
        0..=9 => b'0' + value,
        _ => b'A' + value - 10,
    }
}

#[device]
fn digit_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

/// The first character of escaped text, and the text behind it.
#[device]
fn unescaped(text: &[u8]) -> Option<(u8, &[u8])> {
    match text {
        [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
            Some((digit_value(*high) << 4 | digit_value(*low), rest))
        }
        [byte, rest @ ..] => Some((*byte, rest)),
        [] => None,
    }
}

/// How long each string becomes.
#[kernel]
fn escaped_sizes(offsets: &[u32], bytes: &[u8], sizes: &mut [u32]) {
    let i = global_id_x();
    if i < sizes.len() {
        sizes[i] = string(offsets, bytes, i)
            .iter()
            .map(|b| if is_kept(*b) { 1 } else { 3 })
            .sum();
    }
}

#[kernel]
fn escape(offsets: &[u32], bytes: &[u8], out_offsets: &[u32], out: &mut [u8]) {
    let i = global_id_x();
    if i + 1 >= offsets.len() {
        return;
    }
    let mut at = out_offsets[i] as usize;
    for &byte in string(offsets, bytes, i) {
        if is_kept(byte) {
            out[at] = byte;
            at += 1;
        } else {
            out[at..at + 3].copy_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
            at += 3;
        }
    }
}

/// Each string at the place of its escaped one, and how long it is.
#[kernel]
fn unescape(offsets: &[u32], bytes: &[u8], out: &mut [u8], sizes: &mut [u32]) {
    let i = global_id_x();
    if i >= sizes.len() {
        return;
    }
    let mut text = string(offsets, bytes, i);
    let start = offsets[i] as usize;
    let mut size = 0;
    while let Some((byte, rest)) = unescaped(text) {
        out[start + size] = byte;
        size += 1;
        text = rest;
    }
    sizes[i] = size as u32;
}

#[test]
fn strings_are_escaped_and_back() {
    let mut random = Random(212);
    let mut strings: Vec<Vec<u8>> = (0..60).map(|i| random.bytes(i % 13)).collect();
    strings.push(b"https://a.b/c d?e=~f_g-h%41%zz%".to_vec());
    let escaped: Vec<Vec<u8>> = strings
        .iter()
        .map(|s| {
            let letters = s.iter().map(|b| match *b as char {
                c if c.is_ascii_alphanumeric() || "-_.~".contains(c) => c.to_string(),
                _ => format!("%{b:02X}"),
            });
            letters.collect::<String>().into_bytes()
        })
        .collect();
    // What is no escape stays as it is.
    let mut texts = escaped.clone();
    texts.push(b"a%4xb%%41%5".to_vec());
    let mut plain = strings.clone();
    plain.push(b"a%4xb%A%5".to_vec());
    let (offsets, bytes) = column(&strings);
    let (escaped_offsets, escaped_bytes) = column(&escaped);
    let (text_offsets, text_bytes) = column(&texts);
    everywhere(|run| {
        let (o, b, sizes) = (run.upload(&offsets), run.upload(&bytes), run.zeros::<u32>(61));
        let config = LaunchConfig::linear(61, 32);
        run.launch(escaped_sizes::kernel(), config, args![&o, &b, &sizes]);
        run.holds(
            &sizes,
            &escaped.iter().map(|e| e.len() as u32).collect::<Vec<_>>(),
        );
        let (eo, out) = (run.upload(&escaped_offsets), run.zeros::<u8>(escaped_bytes.len()));
        run.launch(escape::kernel(), config, args![&o, &b, &eo, &out]);
        run.holds(&out, &escaped_bytes);
        let (t, tb) = (run.upload(&text_offsets), run.upload(&text_bytes));
        let (out, sizes) = (run.zeros::<u8>(text_bytes.len()), run.zeros::<u32>(62));
        run.launch(
            unescape::kernel(),
            LaunchConfig::linear(62, 32),
            args![&t, &tb, &out, &sizes],
        );
        let (out, sizes) = (run.read(&out), run.read(&sizes));
        for (i, expected) in plain.iter().enumerate() {
            let found = &out[text_offsets[i] as usize..][..sizes[i] as usize];
            assert_eq!(found, expected, "on {}", run.place());
        }
    });
}

// 213: stems of words

const LONGEST: usize = 24;

/// How often a vowel comes before a consonant.
#[device]
fn measure(word: &[u8]) -> u32 {
    let vowels = word.iter().scan(true, |before, letter| {
        let vowel = match letter {
            b'a' | b'e' | b'i' | b'o' | b'u' => true,
            b'y' => !*before,
            _ => false,
        };
        *before = vowel;
        Some(vowel)
    });
    vowels
        .fold((0, false), |(count, before), vowel| {
            (count + u32::from(before && !vowel), vowel)
        })
        .0
}

#[device]
fn has_vowel(word: &[u8]) -> bool {
    word.iter().enumerate().any(|(k, letter)| match letter {
        b'a' | b'e' | b'i' | b'o' | b'u' => true,
        b'y' => k > 0,
        _ => false,
    })
}

/// Porter's first step: plurals, then -eed, -ed and -ing. How long the word is then.
#[device]
fn first_step(letters: &mut [u8; LONGEST], mut len: usize) -> usize {
    let word = &letters[..len];
    if word.ends_with(b"sses") || word.ends_with(b"ies") {
        len -= 2;
    } else if word.ends_with(b"s") && !word.ends_with(b"ss") {
        len -= 1;
    }
    let word = &letters[..len];
    if let Some(stem) = word.strip_suffix(b"eed") {
        return if measure(stem) > 0 { len - 1 } else { len };
    }
    let stem = word.strip_suffix(b"ed").or(word.strip_suffix(b"ing"));
    let Some(stem) = stem.filter(|stem| has_vowel(stem)) else {
        return len;
    };
    let len = stem.len();
    match *stem {
        [.., b'a', b't'] | [.., b'b', b'l'] | [.., b'i', b'z'] => {
            letters[len] = b'e';
            len + 1
        }
        [.., a, b] if a == b && !matches!(a, b'a' | b'e' | b'i' | b'o' | b'u' | b'l' | b's' | b'z') => {
            len - 1
        }
        _ => len,
    }
}

/// The measure of each word, and its stem at its place.
#[kernel]
fn stem(offsets: &[u32], bytes: &[u8], measures: &mut [u32], stems: &mut [u8], lengths: &mut [u32]) {
    let i = global_id_x();
    if i >= lengths.len() {
        return;
    }
    let word = string(offsets, bytes, i);
    measures[i] = measure(word);
    let mut letters = [0; LONGEST];
    letters[..word.len()].copy_from_slice(word);
    let len = first_step(&mut letters, word.len());
    stems[offsets[i] as usize..][..len].copy_from_slice(&letters[..len]);
    lengths[i] = len as u32;
}

#[test]
fn words_have_stems() {
    let cases = [
        ("tree", 0, "tree"),
        ("by", 0, "by"),
        ("trouble", 1, "trouble"),
        ("oats", 1, "oat"),
        ("ivy", 1, "ivy"),
        ("private", 2, "private"),
        ("oaten", 2, "oaten"),
        ("caresses", 3, "caress"),
        ("ponies", 2, "poni"),
        ("caress", 2, "caress"),
        ("feed", 1, "feed"),
        ("agreed", 2, "agree"),
        ("plastered", 3, "plaster"),
        ("bled", 1, "bled"),
        ("motoring", 3, "motor"),
        ("sing", 1, "sing"),
        ("conflated", 3, "conflate"),
        ("troubled", 2, "trouble"),
        ("sized", 2, "size"),
        ("hopping", 2, "hop"),
        ("falling", 2, "fall"),
        ("hissing", 2, "hiss"),
        ("fizzed", 2, "fizz"),
        ("syzygy", 2, "syzygy"),
        ("yes", 1, "ye"),
        ("a", 0, "a"),
    ];
    let words: Vec<&str> = cases.iter().map(|c| c.0).collect();
    let (offsets, bytes) = column(&words);
    let measures: Vec<u32> = cases.iter().map(|c| c.1).collect();
    everywhere(|run| {
        let (o, b) = (run.upload(&offsets), run.upload(&bytes));
        let (m, s, l) = (
            run.zeros::<u32>(cases.len()),
            run.zeros::<u8>(bytes.len()),
            run.zeros::<u32>(cases.len()),
        );
        run.launch(
            stem::kernel(),
            LaunchConfig::linear(cases.len(), 32),
            args![&o, &b, &m, &s, &l],
        );
        run.holds(&m, &measures);
        let (stems, lengths) = (run.read(&s), run.read(&l));
        for (i, case) in cases.iter().enumerate() {
            let found = &stems[offsets[i] as usize..][..lengths[i] as usize];
            assert_eq!(std::str::from_utf8(found).unwrap(), case.2, "on {}", run.place());
        }
    });
}

// 214: extension of seeds

const REACH: usize = 128;
const DEAD: i32 = i32::MIN / 2;

/// Where the two sequences agree.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Seed {
    query: u32,
    target: u32,
    len: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Scoring {
    equal: i32,
    other: i32,
    gap: i32,
    drop: i32,
}

/// Which cells of an anti-diagonal are alive, and the best score so far.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Front {
    first: u32,
    end: u32,
    best: i32,
}

/// A block a seed and a direction: x says the seed, y whether behind it or in front of it.
#[kernel(block_size = 32)]
fn extend(
    scoring: Scoring,
    seeds: &[Seed],
    query_offsets: &[u32],
    queries: &[u8],
    target_offsets: &[u32],
    targets: &[u8],
    scores: &mut [[i32; 2]],
) {
    let cells = shared_array::<[[i32; REACH]; 3]>();
    let front = shared_array::<[Front; 1]>();
    let (pair, backwards, lane) = (group_id_x(), group_id_y() == 1, local_id_x());
    let seed = seeds[pair];
    let (query, target) = (
        string(query_offsets, queries, pair),
        string(target_offsets, targets, pair),
    );
    let part = |text: &[u8], at: u32| {
        if backwards {
            at as usize
        } else {
            text.len() - (at + seed.len) as usize
        }
    };
    let (rows, columns) = (part(query, seed.query), part(target, seed.target));
    let letter = |text: &[u8], at: u32, k: usize| {
        if backwards {
            text[at as usize - 1 - k]
        } else {
            text[(at + seed.len) as usize + k]
        }
    };
    for row in cells.iter_mut() {
        for i in (lane..REACH).step_by(32) {
            row[i] = DEAD;
        }
    }
    sync_threads();
    if lane == 0 {
        cells[0][0] = 0;
    }
    let mut now = Front {
        first: 0,
        end: 1,
        best: 0,
    };
    for diagonal in 1..=rows + columns {
        if lane == 0 {
            front[0] = Front {
                first: u32::MAX,
                end: 0,
                best: now.best,
            };
        }
        sync_threads();
        let (new, old, older) = (diagonal % 3, (diagonal + 2) % 3, (diagonal + 1) % 3);
        let alive = diagonal.saturating_sub(columns).max(now.first as usize)
            ..(now.end as usize + 1).min(diagonal + 1).min(rows + 1);
        for i in (lane..=rows).step_by(32) {
            let mut score = DEAD;
            if alive.contains(&i) {
                if i < diagonal {
                    score = score.max(cells[old][i] + scoring.gap);
                }
                if i > 0 {
                    score = score.max(cells[old][i - 1] + scoring.gap);
                }
                if i > 0 && i < diagonal {
                    let same =
                        letter(query, seed.query, i - 1) == letter(target, seed.target, diagonal - i - 1);
                    let by = if same { scoring.equal } else { scoring.other };
                    score = score.max(cells[older][i - 1] + by);
                }
                if score < now.best - scoring.drop {
                    score = DEAD;
                } else {
                    atomic_min(&mut front[0].first, i as u32);
                    atomic_max(&mut front[0].end, i as u32 + 1);
                    atomic_max(&mut front[0].best, score);
                }
            }
            cells[new][i] = score;
        }
        sync_threads();
        let found = front[0];
        sync_threads();
        if found.end == 0 {
            break;
        }
        now = found;
    }
    if lane == 0 {
        scores[pair][group_id_y()] = now.best;
    }
}

#[test]
fn seeds_are_extended_both_ways() {
    let mut random = Random(214);
    let (mut queries, mut targets, mut seeds) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..40 {
        let query: Vec<u8> = (0..60 + random.below(60))
            .map(|_| b"ACGT"[random.below(4)])
            .collect();
        let at = random.below(query.len() - 10);
        let mut target: Vec<u8> = Vec::new();
        let mut place = 0;
        for (k, letter) in query.iter().enumerate() {
            if k == at {
                place = target.len();
            }
            match random.below(if (at..at + 10).contains(&k) { 1 } else { 3 + i }) {
                1 => target.push(b"ACGT"[random.below(4)]),
                2 if k % 2 == 0 => {}
                2 => target.extend([*letter, b'A']),
                _ => target.push(*letter),
            }
        }
        target.truncate(120.max(place + 10));
        seeds.push(Seed {
            query: at as u32,
            target: place as u32,
            len: 10,
        });
        queries.push(query);
        targets.push(target);
    }
    let scoring = Scoring {
        equal: 1,
        other: -2,
        gap: -2,
        drop: 9,
    };
    let extended = |a: &[u8], b: &[u8]| {
        let mut table = vec![vec![DEAD; b.len() + 1]; a.len() + 1];
        table[0][0] = 0;
        let mut best = 0;
        for d in 1..=a.len() + b.len() {
            let mut most = best;
            for i in d.saturating_sub(b.len())..=d.min(a.len()) {
                let j = d - i;
                let mut score = DEAD;
                if i > 0 {
                    score = score.max(table[i - 1][j] - 2);
                }
                if j > 0 {
                    score = score.max(table[i][j - 1] - 2);
                }
                if i > 0 && j > 0 {
                    score = score.max(table[i - 1][j - 1] + if a[i - 1] == b[j - 1] { 1 } else { -2 });
                }
                if score >= best - 9 {
                    table[i][j] = score;
                    most = most.max(score);
                }
            }
            best = most;
        }
        best
    };
    let reversed = |s: &[u8]| s.iter().rev().copied().collect::<Vec<u8>>();
    let expected: Vec<[i32; 2]> = (0..40)
        .map(|i| {
            let (q, t) = (seeds[i].query as usize, seeds[i].target as usize);
            [
                extended(&queries[i][q + 10..], &targets[i][t + 10..]),
                extended(&reversed(&queries[i][..q]), &reversed(&targets[i][..t])),
            ]
        })
        .collect();
    let ((qo, q), (to, t)) = (column(&queries), column(&targets));
    everywhere(|run| {
        let (s, scores) = (run.upload(&seeds), run.zeros::<[i32; 2]>(40));
        let (qo, q, to, t) = (run.upload(&qo), run.upload(&q), run.upload(&to), run.upload(&t));
        run.launch(
            extend::kernel(),
            LaunchConfig::new((40, 2), (32, 1)),
            args![scoring, &s, &qo, &q, &to, &t, &scores],
        );
        run.holds(&scores, &expected);
    });
}
