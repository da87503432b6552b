//! Roots by intervals, and integrals.

use std::ops::{Add, Div, Mul, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 167: interval Newton

#[device]
fn above(x: f32) -> f32 {
    if x == 0.0 {
        f32::MIN_POSITIVE
    } else if x > 0.0 {
        f32::from_bits(x.to_bits() + 1)
    } else {
        f32::from_bits(x.to_bits() - 1)
    }
}

#[device]
fn below(x: f32) -> f32 {
    -above(-x)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Interval {
    low: f32,
    high: f32,
}

#[device]
impl Interval {
    /// Rounded outwards.
    fn of(low: f32, high: f32) -> Self {
        Interval {
            low: below(low),
            high: above(high),
        }
    }

    fn width(self) -> f32 {
        self.high - self.low
    }

    fn middle(self) -> f32 {
        self.low + 0.5 * self.width()
    }

    fn contains(self, x: f32) -> bool {
        (self.low..=self.high).contains(&x)
    }

    fn intersection(self, other: Self) -> Option<Self> {
        let low = self.low.max(other.low);
        let high = self.high.min(other.high);
        (low <= high).then_some(Interval { low, high })
    }

    fn halves(self) -> [Self; 2] {
        let middle = self.middle();
        [
            Interval { high: middle, ..self },
            Interval { low: middle, ..self },
        ]
    }
}

#[device]
impl From<f32> for Interval {
    fn from(x: f32) -> Self {
        Interval { low: x, high: x }
    }
}

#[device]
impl Add for Interval {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::of(self.low + other.low, self.high + other.high)
    }
}

#[device]
impl Sub for Interval {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self::of(self.low - other.high, self.high - other.low)
    }
}

#[device]
impl Mul for Interval {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let products = [
            self.low * other.low,
            self.low * other.high,
            self.high * other.low,
            self.high * other.high,
        ];
        Self::of(
            products.into_iter().fold(f32::INFINITY, f32::min),
            products.into_iter().fold(f32::NEG_INFINITY, f32::max),
        )
    }
}

/// By an interval without 0.
#[device]
impl Div for Interval {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        self * Self::of(1.0 / other.high, 1.0 / other.low)
    }
}

#[device]
trait Function {
    fn value(x: Interval) -> Interval;
    fn slope(x: Interval) -> Interval;
}

/// `(x - 0.5) (x - 1.25) (x - 3)`, in Horner's form.
#[derive(Clone, Copy, GpuType)]
struct Cubic;

#[device]
impl Function for Cubic {
    fn value(x: Interval) -> Interval {
        ((x - 4.75.into()) * x + Interval::from(5.875)) * x - Interval::from(1.875)
    }

    fn slope(x: Interval) -> Interval {
        (Interval::from(3.0) * x - Interval::from(9.5)) * x + Interval::from(5.875)
    }
}

#[derive(Clone, Copy, PartialEq, GpuType)]
enum Step {
    Empty,
    Narrowed(Interval),
    Split([Interval; 2]),
}

#[device]
fn newton<F: Function>(x: Interval) -> Step {
    let slope = F::slope(x);
    if slope.contains(0.0) {
        return Step::Split(x.halves());
    }
    let middle = Interval::from(x.middle());
    match x.intersection(middle - F::value(middle) / slope) {
        None => Step::Empty,
        Some(part) if part.width() < 0.75 * x.width() => Step::Narrowed(part),
        Some(part) => Step::Split(part.halves()),
    }
}

const DEPTH: usize = 32;
const FOUND: usize = 16;

#[kernel]
fn find_roots<F: Function>(
    starts: &[Interval],
    tolerance: f32,
    found: &mut [[Interval; FOUND]],
    counts: &mut [u32],
) {
    let i = global_id_x();
    if i >= starts.len() {
        return;
    }
    let mut stack = [Interval::default(); DEPTH];
    stack[0] = starts[i];
    let (mut depth, mut count) = (1, 0);
    while depth > 0 {
        depth -= 1;
        let x = stack[depth];
        if !F::value(x).contains(0.0) {
            continue;
        }
        if x.width() < tolerance {
            found[i][count] = x;
            count += 1;
            continue;
        }
        match newton::<F>(x) {
            Step::Empty => {}
            Step::Narrowed(part) => {
                stack[depth] = part;
                depth += 1;
            }
            Step::Split([left, right]) => {
                stack[depth] = right;
                stack[depth + 1] = left;
                depth += 2;
            }
        }
    }
    counts[i] = count as u32;
}

#[test]
fn intervals_hold_all_roots() {
    let edges: Vec<f32> = (0..=40).map(|i| -0.9 + 0.1234 * i as f32).collect();
    let starts: Vec<Interval> = edges
        .windows(2)
        .map(|e| Interval {
            low: e[0],
            high: e[1],
        })
        .chain([Interval { low: -1.0, high: 4.0 }])
        .collect();
    everywhere(|run| {
        let count = starts.len();
        let (found, counts) = (run.zeros::<[Interval; FOUND]>(count), run.zeros::<u32>(count));
        let uploaded = run.upload(&starts);
        let args = args![&uploaded, 1e-4f32, &found, &counts];
        run.launch(
            find_roots::kernel::<Cubic>(),
            LaunchConfig::linear(count, 16),
            args,
        );
        let (found, counts) = (run.read(&found), run.read(&counts));
        for (i, start) in starts.iter().enumerate() {
            let found = &found[i][..counts[i] as usize];
            for root in [0.5, 1.25, 3.0] {
                let has = found.iter().any(|x| x.low <= root && root <= x.high);
                let should = start.low <= root && root <= start.high;
                assert_eq!(has, should, "on {}: {start:?} {root}", run.place());
            }
            for x in found {
                let near = [0.5, 1.25, 3.0].iter().any(|r| (x.low - r).abs() < 1e-3);
                assert!(near && x.high - x.low < 1e-4, "on {}: {x:?}", run.place());
            }
        }
    });
}

// 168: Romberg's integration

const LEVELS: usize = 9;

#[device]
fn total<const N: usize>(part: &mut [f64; N], own: f64) -> f64 {
    let lane = local_id_x();
    part[lane] = own;
    sync_threads();
    let mut half = N / 2;
    while half > 0 {
        if lane < half {
            part[lane] += part[lane + half];
        }
        sync_threads();
        half /= 2;
    }
    let sum = part[0];
    sync_threads();
    sum
}

#[kernel(block_size = 64)]
fn romberg<F: Fn(f64) -> f64>(f: F, bounds: &[[f64; 2]], integrals: &mut [f64]) {
    let part = shared_array::<[f64; 64]>();
    let lane = local_id_x();
    let [low, high] = bounds[group_id_x()];
    let mut row = [0.0; LEVELS];
    row[0] = 0.5 * (high - low) * (f(low) + f(high));
    for level in 1..LEVELS {
        let intervals = 1usize << level;
        let h = (high - low) / intervals as f64;
        let own: f64 = (2 * lane + 1..intervals)
            .step_by(128)
            .map(|k| f(low + k as f64 * h))
            .sum();
        let mut better = 0.5 * row[0] + h * total(part, own);
        // What the level before had, from the trapezium rule to the best.
        let mut weight = 1.0;
        for before in &mut row[..level] {
            weight *= 4.0;
            let next = better + (better - *before) / (weight - 1.0);
            *before = better;
            better = next;
        }
        row[level] = better;
    }
    if lane == 0 {
        integrals[group_id_x()] = row[LEVELS - 1];
    }
}

#[device]
fn witch(x: f64) -> f64 {
    1.0 / (1.0 + x * x)
}

#[device]
fn root_of(x: f64) -> f64 {
    x.sqrt()
}

#[test]
fn integrals_are_those_of_the_antiderivative() {
    let mut random = Random(168);
    let bounds: Vec<[f64; 2]> = (0..20)
        .map(|_| [random.between(0.1, 2.0), random.between(2.0, 3.0)])
        .collect();
    let arcs: Vec<f64> = bounds.iter().map(|[a, b]| b.atan() - a.atan()).collect();
    let powers: Vec<f64> = bounds
        .iter()
        .map(|[a, b]| (b.powf(1.5) - a.powf(1.5)) / 1.5)
        .collect();
    everywhere(|run| {
        let uploaded = run.upload(&bounds);
        let integrals = run.zeros::<f64>(bounds.len());
        let config = LaunchConfig::new(bounds.len() as u32, 64);
        run.launch(romberg::kernel::<witch>(), config, args![&uploaded, &integrals]);
        run.near(&integrals, &arcs, 1e-10);
        run.launch(romberg::kernel::<root_of>(), config, args![&uploaded, &integrals]);
        run.near(&integrals, &powers, 1e-7);
    });
}
