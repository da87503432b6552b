//! What stands in a text before: matches for compression, and words of a dictionary.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 181: LZSS

const PACKET: usize = 1024;
const WINDOW: usize = 128;
const LONGEST: usize = 18;
const SHORTEST: usize = 3;
/// A flag for each of eight tokens, and all bytes as they are.
const MOST: usize = PACKET + PACKET / 8;

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Match {
    distance: u8,
    length: u8,
}

#[device]
fn longest_match(packet: &[u8], at: usize) -> Match {
    (at.saturating_sub(WINDOW)..at)
        .map(|from| {
            let length = packet[from..]
                .iter()
                .zip(&packet[at..])
                .take(LONGEST)
                .take_while(|(a, b)| a == b)
                .count();
            Match {
                distance: (at - from) as u8,
                length: length as u8,
            }
        })
        .filter(|m| usize::from(m.length) >= SHORTEST)
        .max_by_key(|m| m.length)
        .unwrap_or_default()
}

/// Eight tokens behind a byte of flags: a byte as it is, or a distance and a length.
#[kernel(block_size = 128)]
fn compress(input: &[u8], output: &mut [u8], lengths: &mut [u32]) {
    let packet = shared_array::<[u8; PACKET]>();
    let matches = shared_array::<[Match; PACKET]>();
    let (lane, number) = (local_id_x(), group_id_x());
    let start = number * PACKET;
    let own = &input[start..(start + PACKET).min(input.len())];
    for i in (lane..own.len()).step_by(128) {
        packet[i] = own[i];
    }
    sync_threads();
    let packet = &packet[..own.len()];
    for i in (lane..packet.len()).step_by(128) {
        matches[i] = longest_match(packet, i);
    }
    sync_threads();
    if lane > 0 {
        return;
    }
    let out = &mut output[number * MOST..(number + 1) * MOST];
    let (mut end, mut flags, mut token) = (0, 0, 0);
    let mut at = 0;
    while at < packet.len() {
        if token % 8 == 0 {
            flags = end;
            out[flags] = 0;
            end += 1;
        }
        match matches[at] {
            Match { length: 0, .. } => {
                out[end] = packet[at];
                end += 1;
                at += 1;
            }
            Match { distance, length } => {
                out[flags] |= 1 << (token % 8);
                out[end..end + 2].copy_from_slice(&[distance, length]);
                end += 2;
                at += usize::from(length);
            }
        }
        token += 1;
    }
    lengths[number] = end as u32;
}

fn decompressed(mut code: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    while let Some((flags, rest)) = code.split_first() {
        code = rest;
        for k in 0..8 {
            if code.is_empty() {
                break;
            }
            if flags >> k & 1 == 0 {
                text.push(code[0]);
                code = &code[1..];
            } else {
                for _ in 0..code[1] {
                    text.push(text[text.len() - usize::from(code[0])]);
                }
                code = &code[2..];
            }
        }
    }
    text
}

#[test]
fn packets_are_shorter_and_come_back() {
    let mut random = Random(181);
    let words: Vec<Vec<u8>> = (0..40)
        .map(|_| {
            (0..2 + random.below(9))
                .map(|_| b'a' + random.below(26) as u8)
                .collect()
        })
        .collect();
    let mut text = Vec::new();
    while text.len() < 3 * PACKET + 300 {
        text.extend(&words[random.below(40)]);
        text.push(b' ');
    }
    text.truncate(3 * PACKET + 300);
    text.splice(100..400, std::iter::repeat_n(b'x', 300));
    // How many bytes the greedy choice takes, by itself.
    let expected: Vec<u32> = text
        .chunks(PACKET)
        .map(|packet| {
            let (mut at, mut bytes, mut tokens) = (0, 0, 0u32);
            while at < packet.len() {
                let most = (1..=WINDOW.min(at))
                    .map(|d| {
                        (at..packet.len())
                            .take_while(|i| packet[*i] == packet[*i - d])
                            .count()
                    })
                    .max();
                match most.map(|m| m.min(LONGEST)) {
                    Some(length) if length >= SHORTEST => {
                        bytes += 2;
                        at += length;
                    }
                    _ => {
                        bytes += 1;
                        at += 1;
                    }
                }
                tokens += 1;
            }
            bytes + tokens.div_ceil(8)
        })
        .collect();
    everywhere(|run| {
        let input = run.upload(&text);
        let (output, lengths) = (run.zeros::<u8>(4 * MOST), run.zeros::<u32>(4));
        run.launch(
            compress::kernel(),
            LaunchConfig::new(4, 128),
            args![&input, &output, &lengths],
        );
        run.holds(&lengths, &expected);
        let output = run.read(&output);
        let mut back = Vec::new();
        for (packet, length) in output.chunks(MOST).zip(&expected) {
            back.extend(decompressed(&packet[..*length as usize]));
        }
        assert!(back == text, "on {}", run.place());
    });
}

// 182: Aho and Corasick's automaton without failure links

const LANES: usize = 128;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, GpuType)]
#[repr(C)]
struct Hit {
    position: u32,
    word: u32,
}

/// The longest word that begins here. State `n` says that word `n` ends, if there is one; the first state is behind all words.
#[device]
fn word_at(text: &[u8], start: usize, words: i16, table: &[[i16; 256]]) -> Option<Hit> {
    let mut state = words;
    let mut hit = None;
    for byte in text.iter().skip(start) {
        state = table[state as usize][*byte as usize];
        if state < 0 {
            break;
        }
        if state < words {
            hit = Some(Hit {
                position: start as u32,
                word: state as u32,
            });
        }
    }
    hit
}

#[kernel(block_size = 128)]
fn find_words(words: i16, table: &[[i16; 256]], text: &[u8], hits: &mut [Hit], count: &mut u32) {
    let ranks = shared_array::<[u16; LANES]>();
    let base = shared_array::<[u32; 1]>();
    let (lane, i) = (local_id_x(), global_id_x());
    let hit = if i < text.len() {
        word_at(text, i, words, table)
    } else {
        None
    };
    ranks[lane] = hit.is_some().into();
    sync_threads();
    for step in [1, 2, 4, 8, 16, 32, 64] {
        let before = lane.checked_sub(step).map_or(0, |l| ranks[l]);
        sync_threads();
        ranks[lane] += before;
        sync_threads();
    }
    if lane == LANES - 1 {
        base[0] = atomic_add(count, u32::from(ranks[lane]));
    }
    sync_threads();
    if let Some(hit) = hit {
        hits[base[0] as usize + usize::from(ranks[lane]) - 1] = hit;
    }
}

#[test]
fn words_are_found_where_they_begin() {
    let mut random = Random(182);
    let mut words: Vec<Vec<u8>> = vec![
        b"he".into(),
        b"hers".into(),
        b"she".into(),
        b"ss".into(),
        b"s".into(),
    ];
    for _ in 0..40 {
        let length = 2 + random.below(6);
        let word: Vec<u8> = (0..length).map(|_| b"hers"[random.below(4)]).collect();
        if !words.contains(&word) {
            words.push(word);
        }
    }
    let text: Vec<u8> = (0..1000).map(|_| b"hersx"[random.below(5)]).collect();
    // A tree of letters whose first states are the ends of words.
    let mut table = vec![[-1i16; 256]; words.len() + 1];
    let mut prefixes: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    prefixes.push(&[]);
    let mut k = 0;
    while k < prefixes.len() {
        for letter in 0..=255u8 {
            let longer = [prefixes[k], &[letter]].concat();
            let Some(word) = words.iter().find(|w| w.starts_with(&longer)) else {
                continue;
            };
            let state = prefixes.iter().position(|p| *p == longer).unwrap_or_else(|| {
                prefixes.push(&word[..longer.len()]);
                table.push([-1; 256]);
                prefixes.len() - 1
            });
            table[k][usize::from(letter)] = state as i16;
        }
        k += 1;
    }
    let mut expected = Vec::new();
    for position in 0..text.len() {
        let found = (0..words.len()).filter(|w| text[position..].starts_with(&words[*w]));
        if let Some(word) = found.max_by_key(|w| words[*w].len()) {
            expected.push(Hit {
                position: position as u32,
                word: word as u32,
            });
        }
    }
    everywhere(|run| {
        let (t, b) = (run.upload(&table), run.upload(&text));
        let (hits, count) = (run.zeros::<Hit>(1000), run.zeros::<u32>(1));
        let config = LaunchConfig::linear(1000, 128);
        run.launch(
            find_words::kernel(),
            config,
            args![words.len() as i16, &t, &b, &hits, &count],
        );
        run.holds(&count, &[expected.len() as u32]);
        let mut found = run.read(&hits);
        found.truncate(expected.len());
        found.sort();
        assert!(found == expected, "on {}", run.place());
    });
}
