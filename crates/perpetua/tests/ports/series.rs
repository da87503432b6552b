//! Filters of noisy series.

use std::ops::{Add, Mul};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 105: Kalman filters

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Matrix<const N: usize> {
    rows: [[f64; N]; N],
}

#[device]
impl<const N: usize> Matrix<N> {
    fn from_fn(entry: impl Fn(usize, usize) -> f64) -> Self {
        Self {
            rows: std::array::from_fn(|r| std::array::from_fn(|c| entry(r, c))),
        }
    }

    fn transposed(&self) -> Self {
        Self::from_fn(|r, c| self.rows[c][r])
    }
}

#[device]
impl<const N: usize> Mul for Matrix<N> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self::from_fn(|r, c| (0..N).map(|k| self.rows[r][k] * other.rows[k][c]).sum())
    }
}

#[device]
impl<const N: usize> Mul<[f64; N]> for Matrix<N> {
    type Output = [f64; N];

    fn mul(self, v: [f64; N]) -> [f64; N] {
        self.rows.map(|row| dot(row, v))
    }
}

#[device]
impl<const N: usize> Add for Matrix<N> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::from_fn(|r, c| self.rows[r][c] + other.rows[r][c])
    }
}

#[device]
fn dot<const N: usize>(a: [f64; N], b: [f64; N]) -> f64 {
    a.iter().zip(&b).map(|(x, y)| x * y).sum()
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Model<const N: usize> {
    transition: Matrix<N>,
    noise: Matrix<N>,
    design: [f64; N],
    intercept: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Belief<const N: usize> {
    state: [f64; N],
    spread: Matrix<N>,
}

#[device]
impl<const N: usize> Belief<N> {
    /// The expected observation, and its variance.
    fn outlook(&self, model: &Model<N>) -> (f64, f64) {
        (
            dot(self.state, model.design),
            dot(self.spread * model.design, model.design),
        )
    }
}

/// Residuals and variances of what was observed, then forecasts and theirs.
#[kernel]
fn kalman<const N: usize>(
    steps: usize,
    observed: &[f64],
    models: &[Model<N>],
    beliefs: &[Belief<N>],
    residuals: &mut [f64],
    variances: &mut [f64],
    likelihoods: &mut [f64],
) {
    let id = global_id_x();
    if id >= models.len() {
        return;
    }
    let (model, mut belief) = (models[id], beliefs[id]);
    let Model {
        transition,
        noise,
        design,
        intercept,
    } = model;
    let length = residuals.len() / models.len();
    let own = id * length..(id + 1) * length;
    let (residuals, variances) = (&mut residuals[own.clone()], &mut variances[own]);
    let mut series = observed[id * (length - steps)..][..length - steps].iter();
    let mut sum = 0.0;
    for (residual, variance) in residuals.iter_mut().zip(variances) {
        let (expected, f) = belief.outlook(&model);
        *variance = f;
        let through = transition * belief.spread;
        let ahead = transition * belief.state;
        if let Some(y) = series.next() {
            *residual = y - expected;
            sum += f.ln();
            let gain = (through * design).map(|k| k / f);
            belief.state = std::array::from_fn(|k| ahead[k] + gain[k] * *residual);
            let kept = Matrix::from_fn(|r, c| transition.rows[r][c] - gain[r] * design[c]);
            belief.spread = through * kept.transposed() + noise;
        } else {
            *residual = expected;
            belief.state = ahead;
            belief.spread = through * transition.transposed() + noise;
        }
        belief.state[0] += intercept;
    }
    likelihoods[id] = sum;
}

#[test]
fn kalman_filters_a_batch_and_looks_ahead() {
    const N: usize = 4;
    let mut random = Random(105);
    let (count, observed, steps) = (70usize, 12usize, 3usize);
    let mut models: Vec<Model<N>> = Vec::new();
    let mut beliefs: Vec<Belief<N>> = Vec::new();
    for _ in 0..count {
        let mut matrix = |scale: f64, middle: f64| {
            let mut m = Matrix { rows: [[0.0; N]; N] };
            for r in 0..N {
                for c in 0..=r {
                    let x = if r == c {
                        middle
                    } else {
                        random.between(-scale, scale)
                    };
                    (m.rows[r][c], m.rows[c][r]) = (x, x);
                }
            }
            m
        };
        let (transition, noise, spread) = (matrix(0.3, 0.5), matrix(0.1, 1.0), matrix(0.1, 2.0));
        let mut vector = || std::array::from_fn(|_| random.between(-1.0, 1.0));
        let (design, state) = (vector(), vector());
        models.push(Model {
            transition,
            noise,
            design,
            intercept: random.between(-0.1, 0.1),
        });
        beliefs.push(Belief { state, spread });
    }
    let series: Vec<f64> = (0..count * observed).map(|_| random.between(-2.0, 2.0)).collect();
    let (mut residuals, mut variances, mut likelihoods) = (Vec::new(), Vec::new(), Vec::new());
    for id in 0..count {
        let Model {
            transition,
            noise,
            design: z,
            intercept,
        } = models[id];
        let (t, q) = (transition.rows, noise.rows);
        let Belief { state: mut a, spread } = beliefs[id];
        let mut p = spread.rows;
        let mut sum = 0.0;
        for step in 0..observed + steps {
            let expected: f64 = (0..N).map(|k| z[k] * a[k]).sum();
            let mut pz = [0.0; N];
            (0..N).for_each(|r| pz[r] = (0..N).map(|c| p[r][c] * z[c]).sum());
            let f: f64 = (0..N).map(|k| z[k] * pz[k]).sum();
            variances.push(f);
            // The update of what was seen, then the step of time, as textbooks have it.
            if step < observed {
                let v = series[id * observed + step] - expected;
                residuals.push(v);
                sum += f.ln();
                for r in 0..N {
                    a[r] += pz[r] * v / f;
                    (0..N).for_each(|c| p[r][c] -= pz[r] * pz[c] / f);
                }
            } else {
                residuals.push(expected);
            }
            let mut next = (a, p);
            for r in 0..N {
                next.0[r] = (0..N).map(|k| t[r][k] * a[k]).sum();
                for c in 0..N {
                    next.1[r][c] = q[r][c];
                    (0..N).for_each(|k| (0..N).for_each(|l| next.1[r][c] += t[r][k] * p[k][l] * t[c][l]));
                }
            }
            (a, p) = next;
            a[0] += intercept;
        }
        likelihoods.push(sum);
    }
    everywhere(|run| {
        // WGSL has no logarithm of f64.
        if run.is_wgpu() {
            return;
        }
        let (series, models, beliefs) = (run.upload(&series), run.upload(&models), run.upload(&beliefs));
        let (r, f) = (
            run.zeros::<f64>(residuals.len()),
            run.zeros::<f64>(residuals.len()),
        );
        let l = run.zeros::<f64>(count);
        let config = LaunchConfig::linear(count, 32);
        run.launch(
            kalman::kernel::<N>(),
            config,
            args![steps, &series, &models, &beliefs, &r, &f, &l],
        );
        run.near(&r, &residuals, 1e-9);
        run.near(&f, &variances, 1e-9);
        run.near(&l, &likelihoods, 1e-9);
    });
}
