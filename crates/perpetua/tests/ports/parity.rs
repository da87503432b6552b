//! Checks of parity, and regions of pictures that are connected.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 209: low-density parity checks

/// From bits to checks and back, in place: each edge's message becomes what the check's other bits say. Words whose
/// checks all held stay as they are.
#[kernel]
fn check_messages(words: usize, starts: &[u32], failed: &[u32], messages: &mut [i8]) {
    let (word, check) = (global_id_x(), global_id_y());
    if word >= words || check + 1 >= starts.len() || failed[word] == 0 {
        return;
    }
    let edges = starts[check] as usize..starts[check + 1] as usize;
    let (mut least, mut second, mut place) = (i8::MAX, i8::MAX, 0);
    let mut negative = false;
    for edge in edges.clone() {
        let message = messages[edge * words + word];
        negative ^= message < 0;
        let magnitude = message.saturating_abs();
        if magnitude < least {
            (least, second, place) = (magnitude, least, edge);
        } else {
            second = second.min(magnitude);
        }
    }
    for edge in edges {
        let message = &mut messages[edge * words + word];
        let other = if edge == place { second } else { least };
        let damped = (i16::from(other) * 3 / 4) as i8;
        *message = if negative != (*message < 0) {
            -damped
        } else {
            damped
        };
    }
}

#[kernel]
fn bit_messages(
    words: usize,
    starts: &[u32],
    edges: &[u32],
    received: &[i8],
    failed: &[u32],
    messages: &mut [i8],
    bits: &mut [u8],
) {
    let (word, bit) = (global_id_x(), global_id_y());
    if word >= words || bit + 1 >= starts.len() || failed[word] == 0 {
        return;
    }
    let own = &edges[starts[bit] as usize..starts[bit + 1] as usize];
    let heard: i16 = own
        .iter()
        .map(|e| i16::from(messages[*e as usize * words + word]))
        .sum();
    let total = heard + i16::from(received[bit * words + word]);
    for edge in own {
        let message = &mut messages[*edge as usize * words + word];
        *message = (total - i16::from(*message)).clamp(-127, 127) as i8;
    }
    bits[bit * words + word] = u8::from(total < 0);
}

#[kernel]
fn syndromes(words: usize, starts: &[u32], ends: &[u32], bits: &[u8], failed: &mut [u32]) {
    let (word, check) = (global_id_x(), global_id_y());
    if word >= words || check + 1 >= starts.len() {
        return;
    }
    let parity = ends[starts[check] as usize..starts[check + 1] as usize]
        .iter()
        .map(|bit| bits[*bit as usize * words + word])
        .fold(0, |parity, bit| parity ^ bit);
    if parity == 1 {
        atomic_or(&mut failed[word], 1);
    }
}

#[test]
fn words_are_corrected() {
    let mut random = Random(209);
    let (words, checks, bits) = (20usize, 48usize, 96usize);
    // Three checks a bit, six bits a check.
    let mut sockets: Vec<u32> = (0..bits as u32 * 3).map(|i| i % bits as u32).collect();
    for i in (1..sockets.len()).rev() {
        sockets.swap(i, random.below(i + 1));
    }
    let check_starts: Vec<u32> = (0..=checks as u32).map(|c| 6 * c).collect();
    let bit_starts: Vec<u32> = (0..=bits as u32).map(|b| 3 * b).collect();
    let bit_edges: Vec<u32> = (0..bits as u32)
        .flat_map(|b| {
            (0..sockets.len())
                .filter(|e| sockets[*e] == b)
                .map(|e| e as u32)
                .collect::<Vec<_>>()
        })
        .collect();
    let received: Vec<i8> = (0..bits * words)
        .map(|i| random.between(-10.0, 40.0 - (i % words) as f64) as i8)
        .collect();
    let rounds = 10;
    let mut expected = vec![0u8; bits * words];
    let mut unsolved = vec![0u32; words];
    for w in 0..words {
        let llr: Vec<i32> = (0..bits).map(|b| i32::from(received[b * words + w])).collect();
        let mut to_checks: Vec<i32> = sockets.iter().map(|b| llr[*b as usize]).collect();
        for _ in 0..rounds {
            let to_bits: Vec<i32> = (0..sockets.len())
                .map(|e| {
                    let others = (e / 6 * 6..e / 6 * 6 + 6)
                        .filter(|o| *o != e)
                        .map(|o| to_checks[o]);
                    let sign: i32 = others.clone().map(|m| if m < 0 { -1 } else { 1 }).product();
                    sign * (others.map(|m| m.abs().min(127)).min().unwrap() * 3 / 4)
                })
                .collect();
            let total: Vec<i32> = (0..bits)
                .map(|b| {
                    let heard = (0..sockets.len())
                        .filter(|e| sockets[*e] as usize == b)
                        .map(|e| to_bits[e]);
                    llr[b] + heard.sum::<i32>()
                })
                .collect();
            to_checks = (0..sockets.len())
                .map(|e| (total[sockets[e] as usize] - to_bits[e]).clamp(-127, 127))
                .collect();
            let hard: Vec<u8> = total.iter().map(|t| u8::from(*t < 0)).collect();
            let fails = sockets
                .chunks(6)
                .any(|c| c.iter().map(|b| hard[*b as usize]).sum::<u8>() % 2 == 1);
            for b in 0..bits {
                expected[b * words + w] = hard[b];
            }
            unsolved[w] = u32::from(fails);
            if !fails {
                break;
            }
        }
    }
    assert!(unsolved.contains(&0));
    let first: Vec<i8> = sockets
        .iter()
        .flat_map(|b| received[*b as usize * words..][..words].to_vec())
        .collect();
    everywhere(|run| {
        let (cs, bs) = (run.upload(&check_starts), run.upload(&bit_starts));
        let (ends, edges) = (run.upload(&sockets), run.upload(&bit_edges));
        let (r, messages) = (run.upload(&received), run.upload(&first));
        let hard = run.zeros::<u8>(bits * words);
        let mut failed = run.upload(&vec![1u32; words]);
        let (per_check, per_bit) = (
            LaunchConfig::tiled(words, checks, (8, 8)),
            LaunchConfig::tiled(words, bits, (8, 8)),
        );
        for _ in 0..rounds {
            run.launch(
                check_messages::kernel(),
                per_check,
                args![words, &cs, &failed, &messages],
            );
            run.launch(
                bit_messages::kernel(),
                per_bit,
                args![words, &bs, &edges, &r, &failed, &messages, &hard],
            );
            failed = run.zeros::<u32>(words);
            run.launch(
                syndromes::kernel(),
                per_check,
                args![words, &cs, &ends, &hard, &failed],
            );
        }
        run.holds(&failed, &unsolved);
        run.holds(&hard, &expected);
    });
}

// 210: connected regions

#[device]
fn root(labels: &[u32], mut label: u32) -> u32 {
    loop {
        let parent = atomic_load(&labels[label as usize]);
        if parent == label {
            return label;
        }
        label = parent;
    }
}

/// Makes two trees one, under the lesser root.
#[device]
fn unite(labels: &mut [u32], mut a: u32, mut b: u32) {
    loop {
        a = root(labels, a);
        b = root(labels, b);
        if a == b {
            break;
        }
        let (low, high) = (a.min(b), a.max(b));
        let before = atomic_min(&mut labels[high as usize], low);
        if before == high {
            break;
        }
        (a, b) = (low, before);
    }
}

#[kernel]
fn start_labels(labels: &mut [u32]) {
    if let Some(label) = labels.get_mut(global_id_x()) {
        *label = global_id_x() as u32;
    }
}

/// Unites a block of 2 x 2 pixels with those to the left and above; pixels touch at corners, too.
#[kernel]
fn unite_blocks(width: usize, picture: &[u8], labels: &mut [u32]) {
    let (bx, by) = (global_id_x(), global_id_y());
    let (height, across) = (picture.len() / width, width.div_ceil(2));
    if bx >= across || by >= height.div_ceil(2) {
        return;
    }
    let set = |dx: isize, dy: isize| {
        let (x, y) = ((2 * bx).wrapping_add_signed(dx), (2 * by).wrapping_add_signed(dy));
        x < width && y < height && picture[y * width + x] > 0
    };
    let own = (by * across + bx) as u32;
    if (set(0, 0) || set(0, 1)) && (set(-1, 0) || set(-1, 1)) {
        unite(labels, own, own - 1);
    }
    let above = own.wrapping_sub(across as u32);
    let joins = [
        (set(0, 0) && set(-1, -1), above.wrapping_sub(1)),
        ((set(0, 0) || set(1, 0)) && (set(0, -1) || set(1, -1)), above),
        (set(1, 0) && set(2, -1), above.wrapping_add(1)),
    ];
    for (_, other) in joins.iter().filter(|(joined, _)| *joined) {
        unite(labels, own, *other);
    }
}

#[kernel]
fn label_pixels(width: usize, picture: &[u8], labels: &[u32], out: &mut [u32]) {
    let (x, y) = (global_id_x(), global_id_y());
    if x < width && y < picture.len() / width {
        let i = y * width + x;
        let block = y / 2 * width.div_ceil(2) + x / 2;
        out[i] = if picture[i] > 0 {
            root(labels, block as u32) + 1
        } else {
            0
        };
    }
}

#[test]
fn regions_are_labelled() {
    let mut random = Random(210);
    for (width, height, part) in [(40usize, 30usize, 4), (33, 21, 5), (21, 40, 3)] {
        let picture: Vec<u8> = (0..width * height)
            .map(|_| if random.below(10) < part { 200 } else { 0 })
            .collect();
        let mut expected = vec![0u32; width * height];
        let block = |i: usize| (i / width / 2 * width.div_ceil(2) + i % width / 2) as u32;
        for start in 0..width * height {
            if picture[start] == 0 || expected[start] > 0 {
                continue;
            }
            let mut region = vec![start];
            expected[start] = u32::MAX;
            let mut next = 0;
            while let Some(&i) = region.get(next) {
                next += 1;
                let (x, y) = (i % width, i / width);
                for ny in y.saturating_sub(1)..=(y + 1).min(height - 1) {
                    for nx in x.saturating_sub(1)..=(x + 1).min(width - 1) {
                        let n = ny * width + nx;
                        if picture[n] > 0 && expected[n] == 0 {
                            expected[n] = u32::MAX;
                            region.push(n);
                        }
                    }
                }
            }
            let least = region.iter().map(|i| block(*i)).min().unwrap();
            for i in region {
                expected[i] = least + 1;
            }
        }
        everywhere(|run| {
            let count = width.div_ceil(2) * height.div_ceil(2);
            let (p, labels) = (run.upload(&picture), run.zeros::<u32>(count));
            let out = run.zeros::<u32>(width * height);
            run.launch(
                start_labels::kernel(),
                LaunchConfig::linear(count, 64),
                args![&labels],
            );
            run.launch(
                unite_blocks::kernel(),
                LaunchConfig::tiled(width.div_ceil(2), height.div_ceil(2), (8, 8)),
                args![width, &p, &labels],
            );
            run.launch(
                label_pixels::kernel(),
                LaunchConfig::tiled(width, height, (8, 8)),
                args![width, &p, &labels, &out],
            );
            run.holds(&out, &expected);
        });
    }
}
