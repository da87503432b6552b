//! Genomes: alignment by wavefronts, and pairs of markers.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

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
    let Penalties {
        mismatch,
        open,
        extend,
    } = penalties;
    assert!(
        mismatch.max(open + extend) < ROWS as u32,
        "the wavefronts before are kept"
    );
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
    let inside = |at: i32| {
        if at <= width && at - diagonal <= height {
            at
        } else {
            NOWHERE
        }
    };
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
        let pattern: Vec<u8> = (0..40 + 9 * k)
            .map(|_| b"ACGT"[random.bits() as usize % 4])
            .collect();
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
        expected.push(if best[m][n] <= limit as i32 {
            best[m][n]
        } else {
            -1
        });
        let start = bytes.len() as u32;
        places.push([start, start + m as u32, start + m as u32, start + (m + n) as u32]);
        bytes.extend(pattern);
        bytes.extend(text);
    }
    assert_eq!((expected[0], expected[5]), (0, -1));
    everywhere(|run| {
        let (x, ends, scores) = (run.upload(&bytes), run.upload(&places), run.zeros::<i32>(7));
        let penalties = Penalties {
            mismatch: 4,
            open: 6,
            extend: 2,
        };
        run.launch(
            wavefronts::kernel(),
            LaunchConfig::new(7, 64),
            args![penalties, limit, &x, &ends, &scores],
        );
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
    let genotypes: Vec<Vec<usize>> = (0..people)
        .map(|_| (0..markers).map(|_| random.bits() as usize % 3).collect())
        .collect();
    let ill: Vec<bool> = genotypes
        .iter()
        .map(|g| ((g[4] + g[13]) % 2 == 1) ^ (random.bits() % 15 == 0))
        .collect();
    let planes = |class: bool| -> (Vec<[u32; 2]>, usize) {
        let members: Vec<&Vec<usize>> = genotypes
            .iter()
            .zip(&ill)
            .filter(|(_, ill)| **ill == class)
            .map(|(g, _)| g)
            .collect();
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
        run.launch(
            best_pair::kernel(),
            LaunchConfig::linear(markers * markers, 64),
            args![&scores, &best, &found],
        );
        run.holds(&found, &[4 * markers as u32 + 13]);
    });
}
