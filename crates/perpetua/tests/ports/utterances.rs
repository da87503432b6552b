//! What speech models say: the transducer loss, and 4-bit weights.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 221: the transducer loss

/// The sizes of a padded batch: frames, marks with the one in front, words of the vocabulary.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Lattice {
    frames: u32,
    marks: u32,
    words: u32,
}

#[device]
impl Lattice {
    fn at(self, batch: usize, t: usize, u: usize) -> usize {
        (batch * self.frames as usize + t) * self.marks as usize + u
    }

    fn blank(self, x: &[f32], place: usize) -> f32 {
        x[place * self.words as usize]
    }

    fn emit(self, x: &[f32], place: usize, label: u32) -> f32 {
        x[place * self.words as usize + label as usize]
    }
}

#[device]
fn log_add(a: f32, b: f32) -> f32 {
    a.max(b) + (-(a - b).abs()).exp().ln_1p()
}

#[device]
fn joined(waited: Option<f32>, emitted: Option<f32>) -> Option<f32> {
    match (waited, emitted) {
        (Some(a), Some(b)) => Some(log_add(a, b)),
        (one, other) => one.or(other),
    }
}

/// Forward variables by the blocks of the first row, backward ones by those of the second.
#[kernel(block_size = 32)]
fn transducer(
    shape: Lattice,
    x: &[f32],
    labels: &[u32],
    frames: &[u32],
    marks: &[u32],
    alpha: &mut [f32],
    beta: &mut [f32],
    losses: &mut [f32],
) {
    let (batch, lane) = (group_id_x(), local_id_x());
    let (t_end, u_end) = (frames[batch] as usize, marks[batch] as usize);
    let labels = &labels[batch * (shape.marks as usize - 1)..][..u_end - 1];
    let diagonals = t_end + u_end - 1;
    if group_id_y() == 0 {
        for diagonal in 0..diagonals {
            for u in (lane..u_end.min(diagonal + 1)).step_by(32) {
                let t = diagonal - u;
                if t < t_end {
                    let waited = t.checked_sub(1).map(|t| {
                        let place = shape.at(batch, t, u);
                        alpha[place] + shape.blank(x, place)
                    });
                    let emitted = u.checked_sub(1).map(|u| {
                        let place = shape.at(batch, t, u);
                        alpha[place] + shape.emit(x, place, labels[u])
                    });
                    alpha[shape.at(batch, t, u)] = joined(waited, emitted).unwrap_or(0.0);
                }
            }
            sync_threads();
        }
    } else {
        for diagonal in (0..diagonals).rev() {
            for u in (lane..u_end.min(diagonal + 1)).step_by(32) {
                let t = diagonal - u;
                if t < t_end {
                    let place = shape.at(batch, t, u);
                    let blank = shape.blank(x, place);
                    let waited = (t + 1 < t_end).then(|| beta[shape.at(batch, t + 1, u)] + blank);
                    let emitted = labels
                        .get(u)
                        .map(|label| beta[shape.at(batch, t, u + 1)] + shape.emit(x, place, *label));
                    beta[place] = joined(waited, emitted).unwrap_or(blank);
                }
            }
            sync_threads();
        }
        if lane == 0 {
            losses[batch] = -beta[shape.at(batch, 0, 0)];
        }
    }
}

/// The gradient by the logarithms of the probabilities.
#[kernel]
fn transducer_gradient(
    shape: Lattice,
    x: &[f32],
    labels: &[u32],
    frames: &[u32],
    marks: &[u32],
    alpha: &[f32],
    beta: &[f32],
    losses: &[f32],
    gradient: &mut [f32],
) {
    let (u, t, batch) = (global_id_x(), global_id_y(), global_id_z());
    let (t_end, u_end) = (frames[batch] as usize, marks[batch] as usize);
    if t >= t_end || u >= u_end {
        return;
    }
    let place = shape.at(batch, t, u);
    let words = shape.words as usize;
    let common = alpha[place] + losses[batch];
    let after = match (t + 1 < t_end, u + 1 < u_end) {
        (true, _) => Some(beta[shape.at(batch, t + 1, u)]),
        (false, true) => None,
        (false, false) => Some(0.0),
    };
    if let Some(after) = after {
        gradient[place * words] = -(common + shape.blank(x, place) + after).exp();
    }
    if u + 1 < u_end {
        let label = labels[batch * (shape.marks as usize - 1) + u];
        let after = beta[shape.at(batch, t, u + 1)];
        gradient[place * words + label as usize] = -(common + shape.emit(x, place, label) + after).exp();
    }
}

#[test]
fn transducers_sum_over_all_paths() {
    let mut random = Random(221);
    let (batches, frames, marks, words) = (3, 13, 7, 5);
    let t_ends = [13u32, 9, 1];
    let u_ends = [5u32, 7, 1];
    let count = batches * frames * marks;
    let x: Vec<f32> = (0..count * words)
        .map(|_| -0.1 - (random.bits() % 3000) as f32 / 1000.0)
        .collect();
    let labels: Vec<u32> = (0..batches * (marks - 1))
        .map(|_| 1 + (random.bits() % 4) as u32)
        .collect();

    let at = |b: usize, t: usize, u: usize| (b * frames + t) * marks + u;
    let log_sum = |terms: [f64; 2]| {
        let top = terms[0].max(terms[1]);
        if top.is_infinite() {
            top
        } else {
            top + terms.iter().map(|v| (v - top).exp()).sum::<f64>().ln()
        }
    };
    let mut losses = vec![0.0f64; batches];
    let mut gradient = vec![0.0f64; count * words];
    let none = f64::NEG_INFINITY;
    for b in 0..batches {
        let (te, ue) = (t_ends[b] as usize, u_ends[b] as usize);
        let blank = |t: usize, u: usize| f64::from(x[at(b, t, u) * words]);
        let emit =
            |t: usize, u: usize| f64::from(x[at(b, t, u) * words + labels[b * (marks - 1) + u] as usize]);
        let mut forward = vec![vec![none; ue]; te];
        let mut backward = vec![vec![none; ue + 1]; te + 1];
        backward[te][ue - 1] = 0.0;
        for t in 0..te {
            for u in 0..ue {
                let left = if t > 0 {
                    forward[t - 1][u] + blank(t - 1, u)
                } else {
                    none
                };
                let below = if u > 0 {
                    forward[t][u - 1] + emit(t, u - 1)
                } else {
                    none
                };
                forward[t][u] = if t + u == 0 { 0.0 } else { log_sum([left, below]) };
            }
        }
        for t in (0..te).rev() {
            for u in (0..ue).rev() {
                let right = backward[t + 1][u] + blank(t, u);
                let above = if u + 1 < ue {
                    backward[t][u + 1] + emit(t, u)
                } else {
                    none
                };
                backward[t][u] = log_sum([right, above]);
            }
        }
        losses[b] = -backward[0][0];
        for t in 0..te {
            for u in 0..ue {
                let from = at(b, t, u) * words;
                gradient[from] = -(forward[t][u] + blank(t, u) + backward[t + 1][u] - backward[0][0]).exp();
                if u + 1 < ue {
                    let label = labels[b * (marks - 1) + u] as usize;
                    gradient[from + label] =
                        -(forward[t][u] + emit(t, u) + backward[t][u + 1] - backward[0][0]).exp();
                }
            }
        }
    }
    everywhere(|run| {
        let shape = Lattice {
            frames: frames as u32,
            marks: marks as u32,
            words: words as u32,
        };
        let (x, labels) = (run.upload(&x), run.upload(&labels));
        let (t_ends, u_ends) = (run.upload(&t_ends), run.upload(&u_ends));
        let (alpha, beta) = (run.zeros::<f32>(count), run.zeros::<f32>(count));
        let found = run.zeros::<f32>(batches);
        let config = LaunchConfig::new((batches as u32, 2), 32);
        run.launch(
            transducer::kernel(),
            config,
            args![shape, &x, &labels, &t_ends, &u_ends, &alpha, &beta, &found],
        );
        run.near(&found, &losses, 1e-5);
        let slopes = run.zeros::<f32>(count * words);
        let config = LaunchConfig::new((1, 4, batches as u32), (8, 4, 1));
        run.launch(
            transducer_gradient::kernel(),
            config,
            args![
                shape, &x, &labels, &t_ends, &u_ends, &alpha, &beta, &found, &slopes
            ],
        );
        // Sums of up to 60 in f32 are off by some 1e-5, and so is what `exp` makes of them, which is at most 1.
        run.near(&slopes, &gradient, 1e-4);
    });
}

// 222: 4-bit weights in interleaved order

/// The column of each of a word's eight numbers: even ones in front.
const AWQ_ORDER: [usize; 8] = [0, 2, 4, 6, 1, 3, 5, 7];

#[device]
fn nibbles(word: u32) -> [u32; 8] {
    let mut sorted = [0; 8];
    for (place, column) in AWQ_ORDER.iter().enumerate() {
        sorted[*column] = (word >> (4 * place)) & 15;
    }
    sorted
}

#[device]
fn offsets(words: [u32; 2]) -> [f32; 8] {
    let [q, z] = words.map(nibbles);
    std::array::from_fn(|k| q[k] as f32 - z[k] as f32)
}

#[kernel]
fn awq_unpack(group: usize, columns: usize, weights: &[u32], zeros: &[u32], scales: &[f16], out: &mut [f16]) {
    let (word, row) = (global_id_x(), global_id_y());
    let words = columns / 8;
    if word >= words || row >= out.len() / columns {
        return;
    }
    let offsets = offsets([weights[row * words + word], zeros[row / group * words + word]]);
    let scales = &scales[row / group * columns + word * 8..][..8];
    let out = &mut out[row * columns + word * 8..][..8];
    for ((out, offset), scale) in out.iter_mut().zip(offsets).zip(scales) {
        *out = f16::from_f32(offset) * *scale;
    }
}

/// A vector times the weights, a block for eight columns.
#[kernel(block_size = 64)]
fn awq_product(
    group: usize,
    columns: usize,
    x: &[f16],
    weights: &[u32],
    zeros: &[u32],
    scales: &[f16],
    y: &mut [f32],
) {
    let part = shared_array::<[[f32; 8]; 64]>();
    let (lane, word) = (local_id_x(), group_id_x());
    let words = columns / 8;
    let mut sums = [0.0f32; 8];
    for (row, x) in x.iter().enumerate().skip(lane).step_by(64) {
        let offsets = offsets([weights[row * words + word], zeros[row / group * words + word]]);
        let scales = &scales[row / group * columns + word * 8..][..8];
        for ((sum, offset), scale) in sums.iter_mut().zip(offsets).zip(scales) {
            *sum += x.to_f32() * offset * scale.to_f32();
        }
    }
    part[lane] = sums;
    sync_threads();
    let mut half = 32;
    while half > 0 {
        if lane < half {
            let others = part[lane + half];
            for (sum, other) in part[lane].iter_mut().zip(others) {
                *sum += other;
            }
        }
        sync_threads();
        half /= 2;
    }
    if lane < 8 {
        y[word * 8 + lane] = part[0][lane];
    }
}

#[test]
fn interleaved_weights_are_unpacked_and_multiplied() {
    let mut random = Random(222);
    let (rows, group, columns) = (195, 65, 40);
    let words = columns / 8;
    let mut number = |n: u64| random.bits() % n;
    let weights: Vec<u32> = (0..rows * words).map(|_| number(1 << 32) as u32).collect();
    let zeros: Vec<u32> = (0..rows / group * words)
        .map(|_| number(1 << 32) as u32)
        .collect();
    let scales: Vec<f16> = (0..rows / group * columns)
        .map(|_| f16::from_f32(number(1000) as f32 / 20000.0))
        .collect();
    let x: Vec<f16> = (0..rows)
        .map(|_| f16::from_f32(number(2001) as f32 / 1000.0 - 1.0))
        .collect();

    let mut full = vec![f16::from_f32(0.0); rows * columns];
    let mut product = vec![0.0f64; columns];
    for row in 0..rows {
        for column in 0..columns {
            // Column 0 is the lowest number, column 1 the fifth, column 2 the second.
            let k = column % 8;
            let shift = 4 * (k / 2 + k % 2 * 4);
            let q = weights[row * words + column / 8] >> shift & 15;
            let z = zeros[row / group * words + column / 8] >> shift & 15;
            let scale = scales[row / group * columns + column];
            full[row * columns + column] = f16::from_f32((q as i32 - z as i32) as f32 * scale.to_f32());
            product[column] +=
                f64::from(x[row].to_f32()) * f64::from(q as i32 - z as i32) * f64::from(scale.to_f32());
        }
    }
    everywhere(|run| {
        let (weights, zeros, scales) = (run.upload(&weights), run.upload(&zeros), run.upload(&scales));
        let out = run.zeros::<f16>(rows * columns);
        let config = LaunchConfig::tiled(words as u32, rows as u32, (8, 8));
        run.launch(
            awq_unpack::kernel(),
            config,
            args![group, columns, &weights, &zeros, &scales, &out],
        );
        run.holds(&out, &full);
        let (x, y) = (run.upload(&x), run.zeros::<f32>(columns));
        let config = LaunchConfig::new(words as u32, 64);
        run.launch(
            awq_product::kernel(),
            config,
            args![group, columns, &x, &weights, &zeros, &scales, &y],
        );
        // 195 terms below 0.75, each rounded a few times.
        run.near(&y, &product, 1e-4);
    });
}
