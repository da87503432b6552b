//! What training asks for: a cell's gates and their gradients, and where a tree divides its rows.

use std::ops::{Add, AddAssign, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 179: PyTorch's fused GRU cell

#[device]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

#[kernel]
fn gru_forward(
    hidden: usize,
    input_gates: &[f16],
    hidden_gates: &[f16],
    biases: &[[f16; 2]],
    states: &[f16],
    next: &mut [f16],
    workspace: &mut [f16],
) {
    let i = global_id_x();
    let Some(state) = states.get(i) else {
        return;
    };
    let (row, column) = (i / hidden, i % hidden);
    let gates = |k: usize| {
        let at = k * hidden + column;
        let [input_bias, hidden_bias] = biases[at].map(f32::from);
        let place = row * 3 * hidden + at;
        (
            f32::from(input_gates[place]) + input_bias,
            f32::from(hidden_gates[place]) + hidden_bias,
        )
    };
    let [reset, update] = [0, 1].map(|k| {
        let (input, hidden) = gates(k);
        sigmoid(input + hidden)
    });
    let (input, inner) = gates(2);
    let new = (input + reset * inner).tanh();
    let state = f32::from(*state);
    next[i] = f16::from_f32(new + update * (state - new));
    for (k, value) in [reset, update, new, state, inner].into_iter().enumerate() {
        workspace[(row * 5 + k) * hidden + column] = f16::from_f32(value);
    }
}

#[kernel]
fn gru_backward(
    hidden: usize,
    gradients: &[f16],
    workspace: &[f16],
    input_gradients: &mut [f16],
    hidden_gradients: &mut [f16],
    state_gradients: &mut [f16],
) {
    let i = global_id_x();
    if i >= gradients.len() {
        return;
    }
    let (row, column) = (i / hidden, i % hidden);
    let [reset, update, new, state, inner]: [f32; 5] =
        std::array::from_fn(|k| workspace[(row * 5 + k) * hidden + column].to_f32());
    let gradient = gradients[i].to_f32();
    let of_update = gradient * (state - new) * (1.0 - update) * update;
    let of_new = gradient * (1.0 - update) * (1.0 - new * new);
    let of_reset = of_new * inner * (1.0 - reset) * reset;
    let place = |k: usize| (row * 3 + k) * hidden + column;
    for (k, value) in [of_reset, of_update, of_new].into_iter().enumerate() {
        input_gradients[place(k)] = f16::from_f32(value);
        hidden_gradients[place(k)] = f16::from_f32(if k == 2 { of_new * reset } else { value });
    }
    state_gradients[i] = f16::from_f32(gradient * update);
}

#[test]
fn cells_have_gates_and_their_gradients() {
    let mut random = Random(179);
    let (rows, hidden) = (5usize, 20usize);
    let mut half = |count: usize| -> Vec<f16> {
        (0..count)
            .map(|_| f16::from_f32(random.between(-1.5, 1.5) as f32))
            .collect()
    };
    let (input, inner) = (half(rows * 3 * hidden), half(rows * 3 * hidden));
    let (state, gradient) = (half(rows * hidden), half(rows * hidden));
    let biases: Vec<[f16; 2]> = half(6 * hidden).chunks(2).map(|b| [b[0], b[1]]).collect();
    let wide = |v: f16| v.to_f64();
    // The new state of one element from its six gates and the old one.
    let cell = |gates: [f64; 6], h: f64| {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let (r, z) = (sigmoid(gates[0] + gates[3]), sigmoid(gates[1] + gates[4]));
        let n = (gates[2] + r * gates[5]).tanh();
        (1.0 - z) * n + z * h
    };
    let (mut next, mut by_input, mut by_hidden) =
        (vec![], vec![0.0; rows * 3 * hidden], vec![0.0; rows * 3 * hidden]);
    let mut by_state = vec![];
    for row in 0..rows {
        for c in 0..hidden {
            let gates: [f64; 6] = std::array::from_fn(|k| {
                let at = k % 3 * hidden + c;
                let from = if k < 3 { &input } else { &inner };
                wide(from[row * 3 * hidden + at]) + wide(biases[at][k / 3])
            });
            let (h, g) = (wide(state[row * hidden + c]), wide(gradient[row * hidden + c]));
            next.push(cell(gates, h));
            // Derivatives by differences.
            let e = 1e-5;
            for k in 0..6 {
                let (mut more, mut less) = (gates, gates);
                more[k] += e;
                less[k] -= e;
                let by = g * (cell(more, h) - cell(less, h)) / (2.0 * e);
                let of = if k < 3 { &mut by_input } else { &mut by_hidden };
                of[(row * 3 + k % 3) * hidden + c] = by;
            }
            by_state.push(g * (cell(gates, h + e) - cell(gates, h - e)) / (2.0 * e));
        }
    }
    everywhere(|run| {
        let (gi, gh, b) = (run.upload(&input), run.upload(&inner), run.upload(&biases));
        let (h, new) = (run.upload(&state), run.zeros::<f16>(rows * hidden));
        let workspace = run.zeros::<f16>(rows * 5 * hidden);
        let config = LaunchConfig::linear(rows * hidden, 32);
        run.launch(
            gru_forward::kernel(),
            config,
            args![hidden, &gi, &gh, &b, &h, &new, &workspace],
        );
        run.near(&new, &next, 2e-3);
        let (gy, dh) = (run.upload(&gradient), run.zeros::<f16>(rows * hidden));
        let (di, dg) = (
            run.zeros::<f16>(rows * 3 * hidden),
            run.zeros::<f16>(rows * 3 * hidden),
        );
        run.launch(
            gru_backward::kernel(),
            config,
            args![hidden, &gy, &workspace, &di, &dg, &dh],
        );
        run.near(&di, &by_input, 4e-3);
        run.near(&dg, &by_hidden, 4e-3);
        run.near(&dh, &by_state, 4e-3);
    });
}

// 180: XGBoost's splits

const LANES: usize = 64;

/// Sums of gradients in steps that add up exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Pair {
    gradient: i64,
    hessian: i64,
}

#[device]
impl Add for Pair {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Pair {
            gradient: self.gradient + other.gradient,
            hessian: self.hessian + other.hessian,
        }
    }
}

#[device]
impl AddAssign for Pair {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

#[device]
impl Sub for Pair {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Pair {
            gradient: self.gradient - other.gradient,
            hessian: self.hessian - other.hessian,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Training {
    scale: f64,
    lambda: f64,
    alpha: f64,
    least_hessian: f64,
}

#[device]
impl Training {
    /// What a leaf of these rows gains; too few rows make none.
    fn gain(&self, sum: Pair) -> Option<f64> {
        let (g, h) = (sum.gradient as f64 * self.scale, sum.hessian as f64 * self.scale);
        if h < self.least_hessian {
            return None;
        }
        let shrunk = (g.abs() - self.alpha).max(0.0);
        Some(shrunk * shrunk / (h + self.lambda))
    }

    fn gain_of(&self, left: Pair, all: Pair) -> Option<f64> {
        Some(self.gain(left)? + self.gain(all - left)?)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Split {
    gain: f64,
    left: Pair,
    bin: u32,
    missing_left: bool,
}

#[device]
impl Split {
    const NONE: Self = Split {
        gain: f64::NEG_INFINITY,
        left: Pair {
            gradient: 0,
            hessian: 0,
        },
        bin: 0,
        missing_left: false,
    };

    fn better(self, other: Self) -> Self {
        let wins = other.gain > self.gain || (other.gain == self.gain && other.bin < self.bin);
        if wins { other } else { self }
    }
}

/// A block finds a feature's best split: the rows below a bin go to the left, those without a value either way.
#[kernel(block_size = 64)]
fn evaluate(training: Training, parent: Pair, segments: &[u32], histogram: &[Pair], best: &mut [Split]) {
    let scan = shared_array::<[Pair; LANES]>();
    let found = shared_array::<[Split; LANES]>();
    let (lane, feature) = (local_id_x(), group_id_x());
    let (first, last) = (segments[feature] as usize, segments[feature + 1] as usize);
    let present = histogram[first..last]
        .iter()
        .fold(Pair::default(), |sum, p| sum + *p);
    let missing = parent - present;
    let mut own = Split::NONE;
    let mut before = Pair::default();
    for begin in (first..last).step_by(LANES) {
        let bin = begin + lane;
        let value = if bin < last {
            histogram[bin]
        } else {
            Pair::default()
        };
        scan[lane] = value;
        sync_threads();
        let mut step = 1;
        while step < LANES {
            let added = if lane >= step {
                scan[lane - step]
            } else {
                Pair::default()
            };
            sync_threads();
            scan[lane] += added;
            sync_threads();
            step *= 2;
        }
        let below = before + scan[lane] - value;
        if bin < last {
            for (missing_left, left) in [(true, below + missing), (false, below)] {
                if let Some(gain) = training.gain_of(left, parent) {
                    own = own.better(Split {
                        gain,
                        left,
                        bin: bin as u32,
                        missing_left,
                    });
                }
            }
        }
        before += scan[LANES - 1];
        sync_threads();
    }
    found[lane] = own;
    sync_threads();
    let mut half = LANES / 2;
    while half > 0 {
        if lane < half {
            found[lane] = found[lane].better(found[lane + half]);
        }
        sync_threads();
        half /= 2;
    }
    if lane == 0 {
        best[feature] = found[0];
    }
}

#[test]
fn features_are_split_where_it_gains_most() {
    let mut random = Random(180);
    let training = Training {
        scale: 1.0 / 1024.0,
        lambda: 1.0,
        alpha: 0.1,
        least_hessian: 2.0,
    };
    let sizes = [3u32, 64, 150, 1, 97];
    let mut segments = vec![0u32];
    segments.extend(sizes.iter().scan(0, |end, n| {
        *end += n;
        Some(*end)
    }));
    let histogram: Vec<Pair> = (0..segments[5])
        .map(|_| Pair {
            gradient: random.below(4000) as i64 - 2000,
            hessian: random.below(1000) as i64,
        })
        .collect();
    let parent = Pair {
        gradient: 30_000,
        hessian: 100_000,
    };
    let mut expected = Vec::new();
    for f in 0..5 {
        let bins = &histogram[segments[f] as usize..segments[f + 1] as usize];
        let sum = |bins: &[Pair]| {
            bins.iter()
                .fold((0, 0), |(g, h), p| (g + p.gradient, h + p.hessian))
        };
        let all = sum(bins);
        let missing = (parent.gradient - all.0, parent.hessian - all.1);
        let gain = |(g, h): (i64, i64)| {
            let (g, h) = (g as f64 / 1024.0, h as f64 / 1024.0);
            let shrunk = if g.abs() > 0.1 { g.abs() - 0.1 } else { 0.0 };
            (h >= 2.0).then(|| shrunk * shrunk / (h + 1.0))
        };
        let mut best: Option<(f64, u32, bool)> = None;
        for k in 0..bins.len() {
            let below = sum(&bins[..k]);
            for with in [true, false] {
                let left = if with {
                    (below.0 + missing.0, below.1 + missing.1)
                } else {
                    below
                };
                let right = (parent.gradient - left.0, parent.hessian - left.1);
                if let (Some(l), Some(r)) = (gain(left), gain(right)) {
                    if best.is_none_or(|(b, ..)| l + r > b) {
                        best = Some((l + r, segments[f] + k as u32, with));
                    }
                }
            }
        }
        expected.push(best);
    }
    everywhere(|run| {
        let (s, h) = (run.upload(&segments), run.upload(&histogram));
        let best = run.upload(&[Split::NONE; 5]);
        run.launch(
            evaluate::kernel(),
            LaunchConfig::new(5, 64),
            args![training, parent, &s, &h, &best],
        );
        for (found, expected) in run.read(&best).iter().zip(&expected) {
            let Some((gain, bin, missing_left)) = *expected else {
                assert_eq!(*found, Split::NONE, "on {}", run.place());
                continue;
            };
            assert!(
                (found.gain - gain).abs() < 1e-9 * gain,
                "on {}: {found:?} {gain}",
                run.place()
            );
            assert_eq!(
                (found.bin, found.missing_left),
                (bin, missing_left),
                "on {}",
                run.place()
            );
        }
    });
}
