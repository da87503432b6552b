//! Numerical methods.

use std::f32::consts::TAU;
use std::ops::{Add, Mul, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 57: a fast Fourier transform

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Complex {
    re: f32,
    im: f32,
}

#[device]
impl Complex {
    fn turn(angle: f32) -> Complex {
        let (im, re) = angle.sin_cos();
        Complex { re, im }
    }
}

#[device]
impl Add for Complex {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            re: self.re + other.re,
            im: self.im + other.im,
        }
    }
}

#[device]
impl Sub for Complex {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            re: self.re - other.re,
            im: self.im - other.im,
        }
    }
}

#[device]
impl Mul for Complex {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}

const POINTS: usize = 256;

#[kernel(block_size = 128)]
fn fft(x: &mut [Complex]) {
    let points = shared_array::<[Complex; POINTS]>();
    let lane = local_id_x();
    let block = &mut x[group_id_x() * POINTS..][..POINTS];
    for i in [lane, lane + POINTS / 2] {
        let from = (i as u8).reverse_bits();
        points[i] = block[from as usize];
    }
    sync_threads();
    let mut half = 1;
    while half < POINTS {
        let k = lane % half;
        let low = 2 * (lane - k) + k;
        let factor = Complex::turn(-TAU * k as f32 / (2 * half) as f32);
        let (a, b) = (points[low], factor * points[low + half]);
        points[low] = a + b;
        points[low + half] = a - b;
        sync_threads();
        half *= 2;
    }
    for i in [lane, lane + POINTS / 2] {
        block[i] = points[i];
    }
}

#[test]
fn fft_transforms() {
    let mut random = Random(57);
    let blocks = 3usize;
    let x: Vec<Complex> = (0..blocks * POINTS)
        .map(|_| Complex {
            re: (random.bits() % 2001) as f32 / 1000.0 - 1.0,
            im: (random.bits() % 2001) as f32 / 1000.0 - 1.0,
        })
        .collect();
    let mut expected = Vec::new();
    for block in x.chunks(POINTS) {
        for k in 0..POINTS {
            let (mut re, mut im) = (0.0, 0.0);
            for (i, v) in block.iter().enumerate() {
                let angle = -std::f64::consts::TAU * (i * k % POINTS) as f64 / POINTS as f64;
                re += f64::from(v.re) * angle.cos() - f64::from(v.im) * angle.sin();
                im += f64::from(v.re) * angle.sin() + f64::from(v.im) * angle.cos();
            }
            expected.extend([re, im]);
        }
    }
    everywhere(|run| {
        let there = run.upload(&x);
        let config = LaunchConfig::new(blocks as u32, 128);
        run.launch(fft::kernel(), config, args![&there]);
        let found: Vec<f32> = run.read(&there).iter().flat_map(|v| [v.re, v.im]).collect();
        run.near(&run.upload(&found), &expected, 2e-5);
    });
}

// 58: eigenvalues by bisection

/// How many eigenvalues are less than `x`.
#[device]
fn below(diagonal: &[f64], beside: &[f64], x: f64) -> usize {
    let mut ratio = diagonal[0] - x;
    let mut count = usize::from(ratio < 0.0);
    for (d, e) in diagonal[1..].iter().zip(beside) {
        ratio = d - x - e * e / if ratio == 0.0 { 1e-300 } else { ratio };
        count += usize::from(ratio < 0.0);
    }
    count
}

#[kernel]
fn eigenvalues(diagonal: &[f64], beside: &[f64], tolerance: f64, values: &mut [f64]) {
    let k = global_id_x();
    if k >= values.len() {
        return;
    }
    // Gershgorin's discs hold all.
    let n = diagonal.len();
    let reach = |i: usize| {
        let left = if i > 0 { beside[i - 1].abs() } else { 0.0 };
        let right = beside.get(i).map_or(0.0, |e| e.abs());
        left + right
    };
    let mut low = (0..n)
        .map(|i| diagonal[i] - reach(i))
        .fold(f64::INFINITY, f64::min);
    let mut high = (0..n)
        .map(|i| diagonal[i] + reach(i))
        .fold(f64::NEG_INFINITY, f64::max);
    while high - low > tolerance {
        let middle = 0.5 * (low + high);
        if below(diagonal, beside, middle) > k {
            high = middle;
        } else {
            low = middle;
        }
    }
    values[k] = 0.5 * (low + high);
}

#[test]
fn eigenvalues_are_found() {
    // Of the second difference, whose eigenvalues are known.
    let n = 70usize;
    let (diagonal, beside) = (vec![2.0f64; n], vec![-1.0f64; n - 1]);
    let exact: Vec<f64> = (1..=n)
        .map(|k| 2.0 - 2.0 * (std::f64::consts::PI * k as f64 / (n + 1) as f64).cos())
        .collect();
    everywhere(|run| {
        let (diagonal, beside) = (run.upload(&diagonal), run.upload(&beside));
        let values = run.zeros::<f64>(n);
        let config = LaunchConfig::linear(n, 64);
        run.launch(
            eigenvalues::kernel(),
            config,
            args![&diagonal, &beside, 1e-12f64, &values],
        );
        for (found, exact) in run.read(&values).iter().zip(&exact) {
            assert!((found - exact).abs() < 1e-11, "{found} {exact}");
        }
    });
}

// 59: binomial options

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum Style {
    European,
    American,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Put {
    spot: f32,
    strike: f32,
    years: f32,
    rate: f32,
    volatility: f32,
    style: Style,
}

const LEVELS: usize = 128;

#[kernel(block_size = 128)]
fn binomial(options: &[Put], prices: &mut [f32]) {
    let values = shared_array::<[f32; LEVELS + 1]>();
    let (option, lane) = (options[group_id_x()], local_id_x());
    let step = option.years / LEVELS as f32;
    let up = (option.volatility * step.sqrt()).exp();
    let down = up.recip();
    let grown = (option.rate * step).exp();
    let (p, discount) = ((grown - down) / (up - down), 1.0 / grown);
    let spot = |ups: usize, level: usize| option.spot * up.powi(2 * ups as i32 - level as i32);
    let exercise = |ups: usize, level: usize| (option.strike - spot(ups, level)).max(0.0);
    values[lane] = exercise(lane, LEVELS);
    if lane == 0 {
        values[LEVELS] = exercise(LEVELS, LEVELS);
    }
    sync_threads();
    for level in (0..LEVELS).rev() {
        let held = discount * (p * values[lane + 1] + (1.0 - p) * values[lane]);
        sync_threads();
        if lane <= level {
            values[lane] = match option.style {
                Style::European => held,
                Style::American => held.max(exercise(lane, level)),
            };
        }
        sync_threads();
    }
    if lane == 0 {
        prices[group_id_x()] = values[0];
    }
}

#[test]
fn binomial_prices_puts() {
    let options: Vec<Put> = (0..12)
        .map(|i| Put {
            spot: 90.0 + 4.0 * i as f32,
            strike: 100.0,
            years: 0.5 + 0.25 * (i % 4) as f32,
            rate: 0.05,
            volatility: 0.2 + 0.05 * (i % 3) as f32,
            style: [Style::European, Style::American][i % 2],
        })
        .collect();
    let expected: Vec<f64> = options
        .iter()
        .map(|o| {
            let [spot, strike, years, rate, volatility] =
                [o.spot, o.strike, o.years, o.rate, o.volatility].map(f64::from);
            let dt = years / LEVELS as f64;
            let up = (volatility * dt.sqrt()).exp();
            let p = ((rate * dt).exp() - 1.0 / up) / (up - 1.0 / up);
            let payoff = |level: usize, ups: usize| {
                (strike - spot * up.powf(2.0 * ups as f64 - level as f64)).max(0.0)
            };
            let mut level: Vec<f64> = (0..=LEVELS).map(|ups| payoff(LEVELS, ups)).collect();
            while level.len() > 1 {
                let at = level.len() - 2;
                level = level
                    .windows(2)
                    .enumerate()
                    .map(|(ups, w)| {
                        let held = (-rate * dt).exp() * (p * w[1] + (1.0 - p) * w[0]);
                        if o.style == Style::American {
                            held.max(payoff(at, ups))
                        } else {
                            held
                        }
                    })
                    .collect();
            }
            level[0]
        })
        .collect();
    everywhere(|run| {
        let (there, prices) = (run.upload(&options), run.zeros::<f32>(options.len()));
        let config = LaunchConfig::new(options.len() as u32, 128);
        run.launch(binomial::kernel(), config, args![&there, &prices]);
        run.near(&prices, &expected, 1e-3);
    });
}
