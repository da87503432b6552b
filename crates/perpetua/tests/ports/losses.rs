//! What training compares: sequences with sequences, logits with labels.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::transformers::reals;

// 66: connectionist temporal classification

/// Label `i` of the target with blanks around each of its labels.
#[device]
fn label(target: &[u32], i: usize, blank: u32) -> u32 {
    if i % 2 == 0 { blank } else { target[i / 2] }
}

#[device]
fn log_sum_exp<const N: usize>(terms: [f32; N]) -> f32 {
    let most = terms.into_iter().fold(f32::NEG_INFINITY, f32::max);
    if most == f32::NEG_INFINITY {
        return most;
    }
    most + terms.iter().map(|t| (t - most).exp()).sum::<f32>().ln()
}

#[kernel(block_size = 64)]
fn ctc(
    shape: [usize; 2],
    blank: u32,
    logs: &[f32],
    targets: &[u32],
    target_ends: &[u32],
    lengths: &[u32],
    losses: &mut [f32],
) {
    let [classes, batch] = shape;
    let item = group_id_x();
    let start = if item == 0 { 0 } else { target_ends[item - 1] };
    let target = &targets[start as usize..target_ends[item] as usize];
    let steps = lengths[item] as usize;
    let places = 2 * target.len() + 1;
    let place = local_id_x();
    let alphas = shared_array::<[[f32; 64]; 2]>();
    let own = (place < places).then(|| label(target, place, blank));
    let leaps = match own {
        Some(own) if place >= 2 && own != blank => label(target, place - 2, blank) != own,
        _ => false,
    };
    for time in 0..steps {
        let row = &logs[(time * batch + item) * classes..][..classes];
        let last = &alphas[(time + 1) % 2];
        let alpha = match own {
            None => f32::NEG_INFINITY,
            Some(own) if time == 0 => {
                if place < 2 {
                    row[own as usize]
                } else {
                    f32::NEG_INFINITY
                }
            }
            Some(own) => {
                let before = |back: usize| {
                    if place >= back {
                        last[place - back]
                    } else {
                        f32::NEG_INFINITY
                    }
                };
                let leap = if leaps { before(2) } else { f32::NEG_INFINITY };
                log_sum_exp([before(0), before(1), leap]) + row[own as usize]
            }
        };
        alphas[time % 2][place] = alpha;
        sync_threads();
    }
    if place == 0 {
        let last = &alphas[(steps + 1) % 2];
        let without = if places > 1 {
            last[places - 2]
        } else {
            f32::NEG_INFINITY
        };
        losses[item] = -log_sum_exp([last[places - 1], without]);
    }
}

#[test]
fn ctc_sums_all_paths() {
    let (classes, batch, time, blank) = (4usize, 4usize, 6usize, 0u32);
    let targets: [&[u32]; 4] = [&[1, 2], &[3, 3], &[2], &[]];
    let lengths = [6u32, 5, 3, 4];
    let mut logs = reals(time * batch * classes, 66);
    for row in logs.chunks_mut(classes) {
        let total = row.iter().map(|x| x.exp()).sum::<f32>().ln();
        row.iter_mut().for_each(|x| *x -= total);
    }
    // Each path of labels over time, folded.
    let expected: Vec<f64> = (0..batch)
        .map(|item| {
            let mut sum = 0.0;
            for path in 0..classes.pow(lengths[item]) {
                let labels: Vec<u32> = (0..lengths[item])
                    .map(|t| (path / classes.pow(t) % classes) as u32)
                    .collect();
                let mut folded = labels.clone();
                folded.dedup();
                folded.retain(|l| *l != blank);
                if folded == targets[item] {
                    let log =
                        |(t, l): (usize, &u32)| f64::from(logs[(t * batch + item) * classes + *l as usize]);
                    sum += labels.iter().enumerate().map(log).sum::<f64>().exp();
                }
            }
            -sum.ln()
        })
        .collect();
    let ends: Vec<u32> = targets
        .iter()
        .scan(0, |end, t| {
            *end += t.len() as u32;
            Some(*end)
        })
        .collect();
    everywhere(|run| {
        let losses = run.zeros::<f32>(batch);
        let (logs, targets) = (run.upload(&logs), run.upload(&targets.concat()));
        let (ends, lengths) = (run.upload(&ends), run.upload(&lengths));
        run.launch(
            ctc::kernel(),
            LaunchConfig::new(batch as u32, 64),
            args![[classes, batch], blank, &logs, &targets, &ends, &lengths, &losses],
        );
        run.near(&losses, &expected, 1e-5);
    });
}

// 70: edit distance

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u8)]
enum Edit {
    End,
    Keep,
    Insert,
    Delete,
    Replace,
}

const LONGEST: usize = 12;

/// The table of distances of all beginnings: a row for each of the first sequence.
#[device]
fn distances(from: &[i32], to: &[i32]) -> [[u8; LONGEST + 1]; LONGEST + 1] {
    let mut table = [[0; LONGEST + 1]; LONGEST + 1];
    for i in 0..=from.len() {
        for j in 0..=to.len() {
            table[i][j] = match (i, j) {
                (0, n) | (n, 0) => n as u8,
                _ if from[i - 1] == to[j - 1] => table[i - 1][j - 1],
                _ => 1 + table[i - 1][j - 1].min(table[i - 1][j]).min(table[i][j - 1]),
            };
        }
    }
    table
}

#[kernel]
fn edit_distance(
    from: &[[i32; LONGEST]],
    to: &[[i32; LONGEST]],
    lengths: &[[u32; 2]],
    distance: &mut [u32],
    edits: &mut [Edit],
) {
    let pair = global_id_x();
    if pair >= lengths.len() {
        return;
    }
    let [mut i, mut j] = lengths[pair].map(|n| n as usize);
    let (from, to) = (&from[pair][..i], &to[pair][..j]);
    let table = distances(from, to);
    distance[pair] = table[i][j].into();
    let edits = &mut edits[pair * 2 * LONGEST..][..2 * LONGEST];
    let mut count = 0;
    while (i, j) != (0, 0) {
        let here = table[i][j];
        let edit = if i > 0 && j > 0 && from[i - 1] == to[j - 1] {
            Edit::Keep
        } else if i > 0 && j > 0 && here == table[i - 1][j - 1] + 1 {
            Edit::Replace
        } else if i > 0 && here == table[i - 1][j] + 1 {
            Edit::Delete
        } else {
            Edit::Insert
        };
        if edit != Edit::Insert {
            i -= 1;
        }
        if edit != Edit::Delete {
            j -= 1;
        }
        edits[count] = edit;
        count += 1;
    }
    edits[..count].reverse();
}

/// By trying, from the front.
fn shortest(from: &[i32], to: &[i32]) -> u32 {
    match (from, to) {
        ([], rest) | (rest, []) => rest.len() as u32,
        ([a, x @ ..], [b, y @ ..]) if a == b => shortest(x, y),
        ([_, x @ ..], [_, y @ ..]) => 1 + shortest(x, y).min(shortest(x, to)).min(shortest(from, y)),
    }
}

#[test]
fn edits_lead_from_one_to_the_other() {
    let pairs = 70;
    let mut random = Random(70);
    let mut sequence = || -> ([i32; LONGEST], usize) {
        let values = std::array::from_fn(|_| (random.bits() % 4) as i32 - 1);
        (values, random.bits() as usize % 8)
    };
    let (from, from_lengths): (Vec<_>, Vec<_>) = (0..pairs).map(|_| sequence()).unzip();
    let (to, to_lengths): (Vec<_>, Vec<_>) = (0..pairs).map(|_| sequence()).unzip();
    let lengths: Vec<[u32; 2]> = (0..pairs)
        .map(|k| [from_lengths[k] as u32, to_lengths[k] as u32])
        .collect();
    let expected: Vec<u32> = (0..pairs)
        .map(|k| shortest(&from[k][..from_lengths[k]], &to[k][..to_lengths[k]]))
        .collect();
    everywhere(|run| {
        let distance = run.zeros::<u32>(pairs);
        let edits = run.upload(&vec![Edit::End; pairs * 2 * LONGEST]);
        run.launch(
            edit_distance::kernel(),
            LaunchConfig::linear(pairs, 32),
            args![
                &run.upload(&from),
                &run.upload(&to),
                &run.upload(&lengths),
                &distance,
                &edits
            ],
        );
        run.holds(&distance, &expected);
        let edits = run.read(&edits);
        for k in 0..pairs {
            let (mut i, mut made, mut cost) = (0, Vec::new(), 0);
            for edit in edits[k * 2 * LONGEST..].iter().take_while(|e| **e != Edit::End) {
                match edit {
                    Edit::Keep => made.push(from[k][i]),
                    Edit::Delete => {}
                    _ => made.push(to[k][made.len()]),
                }
                i += usize::from(*edit != Edit::Insert);
                cost += u32::from(*edit != Edit::Keep);
            }
            assert_eq!(
                (made.as_slice(), i),
                (&to[k][..to_lengths[k]], from_lengths[k]),
                "pair {k}"
            );
            assert_eq!(cost, expected[k]);
        }
    });
}

// 71: cross entropy

#[device]
trait Real: GpuType {
    fn widen(self) -> f32;
    fn narrow(value: f32) -> Self;
}

#[device]
impl Real for f16 {
    fn widen(self) -> f32 {
        self.to_f32()
    }

    fn narrow(value: f32) -> Self {
        f16::from_f32(value)
    }
}

#[device]
impl Real for f32 {
    fn widen(self) -> f32 {
        self
    }

    fn narrow(value: f32) -> Self {
        value
    }
}

const THREADS: usize = 64;

/// All lanes' values, combined; every lane gets the result.
#[device]
fn block_reduce(part: &mut [f32; THREADS], value: f32, combine: impl Fn(f32, f32) -> f32) -> f32 {
    let lane = local_id_x();
    part[lane] = value;
    sync_threads();
    let mut half = THREADS / 2;
    while half > 0 {
        if lane < half {
            part[lane] = combine(part[lane], part[lane + half]);
        }
        sync_threads();
        half /= 2;
    }
    let all = part[0];
    sync_threads();
    all
}

#[kernel(block_size = 64)]
fn cross_entropy<T: Real>(
    smoothing: f32,
    labels: &[i64],
    logits: &[T],
    losses: &mut [f32],
    gradient: &mut [T],
) {
    let part = shared_array::<[f32; THREADS]>();
    let row = group_id_x();
    let classes = logits.len() / labels.len();
    let own = row * classes..(row + 1) * classes;
    let x = &logits[own.clone()];
    let label = labels[row] as usize;
    let lane = local_id_x();
    let values = x.iter().skip(lane).step_by(THREADS);
    let most = values
        .clone()
        .map(|v| v.widen())
        .fold(f32::NEG_INFINITY, f32::max);
    let most = block_reduce(part, most, f32::max);
    let sum = block_reduce(part, values.clone().map(|v| v.widen()).sum(), |a, b| a + b);
    let total = block_reduce(part, values.map(|v| (v.widen() - most).exp()).sum(), |a, b| a + b);
    let log = most + total.ln();
    if lane == 0 {
        let mean = sum / classes as f32;
        losses[row] = smoothing * (log - mean) + (1.0 - smoothing) * (log - x[label].widen());
    }
    let rest = smoothing / classes as f32;
    for (c, (g, x)) in gradient[own]
        .iter_mut()
        .zip(x)
        .enumerate()
        .skip(lane)
        .step_by(THREADS)
    {
        let wanted = if c == label { 1.0 - smoothing + rest } else { rest };
        *g = T::narrow((x.widen() - log).exp() - wanted);
    }
}

fn entropies<T: Real + Into<f64>>(rows: usize, classes: usize, kernel: KernelFn, part: f64) {
    let mut random = Random(71);
    let labels: Vec<i64> = (0..rows)
        .map(|_| (random.bits() % classes as u64) as i64)
        .collect();
    let logits: Vec<T> = reals(rows * classes, 72)
        .iter()
        .map(|x| T::narrow(4.0 * x))
        .collect();
    let smoothing = 0.125;
    let (mut losses, mut gradient) = (Vec::new(), Vec::new());
    for (x, label) in logits.chunks(classes).zip(&labels) {
        let x: Vec<f64> = x.iter().map(|x| (*x).into()).collect();
        let total: f64 = x.iter().map(|x| x.exp()).sum();
        let wanted = |c: usize| {
            let rest = smoothing / classes as f64;
            rest + if c as i64 == *label { 1.0 - smoothing } else { 0.0 }
        };
        losses.push(
            -(0..classes)
                .map(|c| wanted(c) * (x[c].exp() / total).ln())
                .sum::<f64>(),
        );
        gradient.extend((0..classes).map(|c| x[c].exp() / total - wanted(c)));
    }
    everywhere(|run| {
        let loss = run.zeros::<f32>(rows);
        let grad = run.upload(&vec![T::narrow(0.0); rows * classes]);
        let (labels, logits) = (run.upload(&labels), run.upload(&logits));
        let args = args![smoothing as f32, &labels, &logits, &loss, &grad];
        run.launch(kernel, LaunchConfig::new(rows as u32, 64), args);
        run.near(&loss, &losses, 1e-5);
        for (found, expected) in run.read(&grad).iter().zip(&gradient) {
            assert!(((*found).into() - expected).abs() < part, "on {}", run.place());
        }
    });
}

#[test]
fn cross_entropy_and_its_gradient() {
    entropies::<f32>(5, 150, cross_entropy::kernel::<f32>(), 1e-5);
    entropies::<f16>(3, 33, cross_entropy::kernel::<f16>(), 1e-3);
}
