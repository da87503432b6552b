//! Draws: quasi-random numbers, samples of any distribution, and filters of noisy series.

use std::ops::{Add, Mul};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 119: Sobol's numbers

/// Joe and Kuo's: the degree of a primitive polynomial, its inner coefficients, the first direction numbers.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Dimension {
    degree: u8,
    inner: u8,
    first: [u8; 5],
}

#[device]
impl Dimension {
    const BITS: usize = 32;

    fn directions(self) -> [u32; Self::BITS] {
        let s = self.degree as usize;
        let mut v = [0; Self::BITS];
        if s == 0 {
            return std::array::from_fn(|k| 1 << (31 - k));
        }
        for k in 0..Self::BITS {
            v[k] = match self.first.get(k).filter(|_| k < s) {
                Some(m) => u32::from(*m) << (31 - k),
                None => (1..s)
                    .filter(|j| self.inner >> (s - 1 - j) & 1 == 1)
                    .fold(v[k - s] ^ (v[k - s] >> s), |x, j| x ^ v[k - j]),
            };
        }
        v
    }
}

/// Each row of blocks has a dimension; a lane goes on in steps of a power of two.
#[kernel(block_size = 64)]
fn sobol(count: usize, dimensions: &[Dimension], out: &mut [f32]) {
    let directions = shared_array::<[u32; Dimension::BITS]>();
    let dimension = group_id_y();
    if local_id_x() == 0 {
        *directions = dimensions[dimension].directions();
    }
    sync_threads();
    let out = &mut out[dimension * count..][..count];
    let (mut i, stride) = (global_id_x(), global_size_x());
    let gray = i ^ (i >> 1);
    let mut x = directions
        .iter()
        .enumerate()
        .filter(|(k, _)| (gray >> k) & 1 == 1)
        .fold(0, |x, (_, v)| x ^ v);
    let jump = directions[stride.ilog2() as usize - 1];
    while i < count {
        out[i] = x as f32 * 2f32.powi(-32);
        // Two bits of the Gray code change: the one of the stride, and one above it.
        let above = (!(i | (stride - 1))).trailing_zeros() as usize;
        x ^= jump ^ directions.get(above).copied().unwrap_or(0);
        i += stride;
    }
}

#[test]
fn sobol_numbers_are_those_of_their_direction_numbers() {
    let known = [
        (0, 0, [0, 0, 0, 0, 0]),
        (1, 0, [1, 0, 0, 0, 0]),
        (2, 1, [1, 3, 0, 0, 0]),
        (3, 1, [1, 3, 1, 0, 0]),
        (3, 2, [1, 1, 1, 0, 0]),
        (4, 1, [1, 1, 3, 3, 0]),
        (4, 4, [1, 3, 5, 13, 0]),
        (5, 2, [1, 1, 5, 5, 17]),
    ];
    let count = 1000usize;
    let mut expected = Vec::new();
    for (s, a, m) in known {
        // In whole numbers m, as published.
        let mut m: Vec<u64> = if s == 0 { vec![1; 32] } else { m[..s].iter().map(|m| u64::from(*m)).collect::<Vec<_>>() };
        for k in m.len()..32 {
            let mut next = m[k - s] ^ (m[k - s] << s);
            for j in 1..s {
                if a >> (s - 1 - j) & 1 == 1 {
                    next ^= m[k - j] << j;
                }
            }
            m.push(next);
        }
        for i in 0..count {
            let gray = i ^ (i / 2);
            let x = (0..32).filter(|k| gray >> k & 1 == 1).fold(0, |x, k| x ^ (m[k] << (31 - k)));
            expected.push(x as u32 as f32 / 2f32.powi(32));
        }
    }
    // The second dimension is van der Corput's in another order.
    assert_eq!(expected[count..count + 4], [0.0, 0.5, 0.25, 0.75]);
    let dimensions = known.map(|(s, inner, first)| Dimension { degree: s as u8, inner, first });
    everywhere(|run| {
        let (d, y) = (run.upload(&dimensions), run.zeros::<f32>(expected.len()));
        run.launch(sobol::kernel(), LaunchConfig::new((2, 8), 64), args![count, &d, &y]);
        run.holds(&y, &expected);
    });
}

// 120: alias tables

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Bin {
    threshold: f32,
    alias: u16,
}

/// Vose's: a bin that is too small is filled up by one that is too large. Both lists are in one array, from its two ends.
#[device]
fn build<const N: usize>(weights: &[f32; N]) -> [Bin; N] {
    let total: f32 = weights.iter().sum();
    let mut left = weights.map(|w| w * N as f32 / total);
    let mut bins = [Bin::default(); N];
    let mut worklist = [0u16; N];
    let (mut small, mut large) = (0, N);
    for (i, part) in left.iter().enumerate() {
        if *part < 1.0 {
            worklist[small] = i as u16;
            small += 1;
        } else {
            large -= 1;
            worklist[large] = i as u16;
        }
    }
    while small > 0 && large < N {
        small -= 1;
        let (low, high) = (worklist[small] as usize, worklist[large] as usize);
        bins[low] = Bin { threshold: left[low], alias: high as u16 };
        left[high] -= 1.0 - left[low];
        if left[high] < 1.0 {
            worklist[small] = worklist[large];
            large += 1;
            small += 1;
        }
    }
    for &full in worklist[..small].iter().chain(&worklist[large..]) {
        bins[full as usize] = Bin { threshold: 1.0, alias: full };
    }
    bins
}

#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
struct Pcg {
    state: u64,
    stream: u64,
}

#[device]
impl Pcg {
    fn new(seed: u64, stream: u64) -> Self {
        let mut own = Self { state: 0, stream: stream << 1 | 1 };
        own.draw();
        own.state = own.state.wrapping_add(seed);
        own.draw();
        own
    }

    fn draw(&mut self) -> u32 {
        let old = self.state;
        self.state = old.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(self.stream);
        let xored = (((old >> 18) ^ old) >> 27) as u32;
        xored.rotate_right((old >> 59) as u32)
    }

    fn below(&mut self, end: u32) -> u32 {
        ((u64::from(self.draw()) * u64::from(end)) >> 32) as u32
    }
}

#[kernel]
fn tables<const N: usize>(weights: &[[f32; N]], out: &mut [[Bin; N]]) {
    let i = global_id_x();
    if let (Some(weights), Some(out)) = (weights.get(i), out.get_mut(i)) {
        *out = build(weights);
    }
}

#[kernel]
fn samples<const N: usize>(seed: u64, draws: u32, tables: &[[Bin; N]], counts: &mut [[u32; N]]) {
    let i = global_id_x();
    if i >= counts.len() {
        return;
    }
    let mut random = Pcg::new(seed, i as u64);
    for _ in 0..draws {
        let slot = random.below(N as u32) as usize;
        let Bin { threshold, alias } = tables[i % tables.len()][slot];
        let toss = (random.draw() >> 8) as f32 / 16_777_216.0;
        counts[i][if toss < threshold { slot } else { alias.into() }] += 1;
    }
}

#[test]
fn alias_tables_have_the_weights_and_are_sampled() {
    const N: usize = 12;
    let mut random = Random(120);
    let weights: Vec<[f32; N]> = (0..70)
        .map(|_| std::array::from_fn(|_| if random.below(5) == 0 { 0.0 } else { random.between(0.1, 3.0) as f32 }))
        .collect();
    let shares = |bins: &[Bin; N]| {
        let mut shares = [0.0; N];
        for (i, bin) in bins.iter().enumerate() {
            shares[i] += f64::from(bin.threshold) / N as f64;
            shares[bin.alias as usize] += (1.0 - f64::from(bin.threshold)) / N as f64;
        }
        shares
    };
    // A table whose thresholds are eighths, so that every device tosses alike.
    let coarse: Vec<[Bin; N]> = (0..7)
        .map(|_| {
            std::array::from_fn(|_| Bin { threshold: random.below(9) as f32 / 8.0, alias: random.below(N) as u16 })
        })
        .collect();
    let (lanes, draws) = (100usize, 200u32);
    let mut expected = Vec::new();
    for lane in 0..lanes {
        let stream = 2 * lane as u128 + 1;
        // The first state is the stream's step of nothing, the seed added.
        let modulus = 1u128 << 64;
        let state = (stream + 120) * 6_364_136_223_846_793_005 + stream;
        let mut current = (state % modulus) as u64;
        let mut next = || {
            let old = current;
            current = ((u128::from(old) * 6_364_136_223_846_793_005 + stream) % modulus) as u64;
            ((((old >> 18) ^ old) >> 27) as u32).rotate_right((old >> 59) as u32)
        };
        let mut counts = [0u32; N];
        for _ in 0..draws {
            let slot = (f64::from(next()) * N as f64 / 2f64.powi(32)) as usize;
            let bin = coarse[lane % 7][slot];
            let toss = f64::from(next() >> 8) / f64::from(1 << 24);
            counts[if toss < f64::from(bin.threshold) { slot } else { bin.alias as usize }] += 1;
        }
        expected.push(counts);
    }
    everywhere(|run| {
        let (w, t) = (run.upload(&weights), run.zeros::<[Bin; N]>(weights.len()));
        run.launch(tables::kernel::<N>(), LaunchConfig::linear(weights.len(), 64), args![&w, &t]);
        for (weights, bins) in weights.iter().zip(run.read(&t)) {
            let total: f64 = weights.iter().map(|w| f64::from(*w)).sum();
            for (share, weight) in shares(&bins).iter().zip(weights) {
                assert!((share - f64::from(*weight) / total).abs() < 1e-6, "on {}", run.place());
            }
        }
        let (t, y) = (run.upload(&coarse), run.zeros::<[u32; N]>(lanes));
        run.launch(samples::kernel::<N>(), LaunchConfig::linear(lanes, 64), args![120u64, draws, &t, &y]);
        run.holds(&y, &expected);
    });
}

// 105: Kalman filters

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Matrix<const N: usize> {
    rows: [[f64; N]; N],
}

#[device]
impl<const N: usize> Matrix<N> {
    fn from_fn(entry: impl Fn(usize, usize) -> f64) -> Self {
        Self { rows: std::array::from_fn(|r| std::array::from_fn(|c| entry(r, c))) }
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
        (dot(self.state, model.design), dot(self.spread * model.design, model.design))
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
    let Model { transition, noise, design, intercept } = model;
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
                    let x = if r == c { middle } else { random.between(-scale, scale) };
                    (m.rows[r][c], m.rows[c][r]) = (x, x);
                }
            }
            m
        };
        let (transition, noise, spread) = (matrix(0.3, 0.5), matrix(0.1, 1.0), matrix(0.1, 2.0));
        let mut vector = || std::array::from_fn(|_| random.between(-1.0, 1.0));
        let (design, state) = (vector(), vector());
        models.push(Model { transition, noise, design, intercept: random.between(-0.1, 0.1) });
        beliefs.push(Belief { state, spread });
    }
    let series: Vec<f64> = (0..count * observed).map(|_| random.between(-2.0, 2.0)).collect();
    let (mut residuals, mut variances, mut likelihoods) = (Vec::new(), Vec::new(), Vec::new());
    for id in 0..count {
        let Model { transition, noise, design: z, intercept } = models[id];
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
        let (series, models, beliefs) = (run.upload(&series), run.upload(&models), run.upload(&beliefs));
        let (r, f) = (run.zeros::<f64>(residuals.len()), run.zeros::<f64>(residuals.len()));
        let l = run.zeros::<f64>(count);
        let config = LaunchConfig::linear(count, 32);
        run.launch(kalman::kernel::<N>(), config, args![steps, &series, &models, &beliefs, &r, &f, &l]);
        run.near(&r, &residuals, 1e-9);
        run.near(&f, &variances, 1e-9);
        run.near(&l, &likelihoods, 1e-9);
    });
}
