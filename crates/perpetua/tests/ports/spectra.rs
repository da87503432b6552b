//! Neurons that fire, periods of uneven series, and gates on qubits.

use std::f32::consts::PI;
use std::ops::{Add, AddAssign, Mul};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 121: HeCBench's COBAHH

/// In millivolts.
const THRESHOLD: f32 = -63.0;

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Neuron {
    v: f32,
    m: f32,
    n: f32,
    h: f32,
    excitation: f32,
    inhibition: f32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Spike {
    neuron: u32,
    step: u32,
}

/// `(exp(x) - 1) / x`.
#[device]
fn exprel(x: f32) -> f32 {
    if x.abs() < 1e-4 {
        1.0 + 0.5 * x
    } else {
        x.exp_m1() / x
    }
}

/// A gate after a step of the exponential Euler method.
#[device]
fn gate(x: f32, opens: f32, closes: f32, dt: f32) -> f32 {
    let rest = opens / (opens + closes);
    rest + (x - rest) * (-(opens + closes) * dt).exp()
}

#[device]
impl Neuron {
    fn step(&mut self, drive: f32, dt: f32) -> bool {
        let u = self.v - THRESHOLD;
        let sodium = 20_000.0 * self.m.powi(3) * self.h;
        let potassium = 6_000.0 * self.n.powi(4);
        let total = 10.0 + self.excitation + self.inhibition + sodium + potassium;
        let pull = 10.0 * -65.0 + self.inhibition * -80.0 + sodium * 50.0 + potassium * -90.0 + drive;
        let before = self.v;
        let rest = pull / total;
        self.v = rest + (self.v - rest) * (-total / 200.0 * dt).exp();
        self.m = gate(
            self.m,
            0.32 * 4.0 / exprel((13.0 - u) / 4.0),
            0.28 * 5.0 / exprel((u - 40.0) / 5.0),
            dt,
        );
        self.h = gate(
            self.h,
            0.128 * ((17.0 - u) / 18.0).exp(),
            4.0 / (1.0 + ((40.0 - u) / 5.0).exp()),
            dt,
        );
        self.n = gate(
            self.n,
            0.032 * 5.0 / exprel((15.0 - u) / 5.0),
            0.5 * ((10.0 - u) / 40.0).exp(),
            dt,
        );
        self.excitation *= (-dt / 5.0).exp();
        self.inhibition *= (-dt / 10.0).exp();
        before <= 0.0 && self.v > 0.0
    }
}

#[kernel]
fn neurons(
    steps: u32,
    dt: f32,
    drive: &[f32],
    neurons: &mut [Neuron],
    count: &mut u32,
    spikes: &mut [Spike],
) {
    let id = global_id_x();
    let Some(neuron) = neurons.get_mut(id) else { return };
    for step in 0..steps {
        if neuron.step(drive[id], dt) {
            let slot = atomic_add(count, 1) as usize;
            if let Some(spike) = spikes.get_mut(slot) {
                *spike = Spike {
                    neuron: id as u32,
                    step,
                };
            }
        }
    }
}

#[test]
fn neurons_fire_as_in_64_bits() {
    let mut random = Random(121);
    let count = 150;
    let steps = 200u32;
    let start: Vec<Neuron> = (0..count)
        .map(|_| Neuron {
            v: random.between(-70.0, -60.0) as f32,
            m: 0.05,
            n: 0.3,
            h: 0.6,
            excitation: random.between(0.0, 40.0) as f32,
            inhibition: random.between(0.0, 60.0) as f32,
        })
        .collect();
    let drive: Vec<f32> = (0..count)
        .map(|_| random.between(-200.0, 1500.0) as f32)
        .collect();
    let (mut voltages, mut fired) = (Vec::new(), Vec::new());
    for (id, (s, drive)) in start.iter().zip(&drive).enumerate() {
        let wide = |x: f32| f64::from(x);
        let (mut v, mut m, mut n, mut h) = (wide(s.v), wide(s.m), wide(s.n), wide(s.h));
        let (mut ge, mut gi) = (wide(s.excitation), wide(s.inhibition));
        let dt = wide(0.05f32);
        for step in 0..steps {
            let rel = |x: f64| if x == 0.0 { 1.0 } else { (x.exp() - 1.0) / x };
            let (gna, gk) = (20_000.0 * m * m * m * h, 6_000.0 * n * n * n * n);
            let rates = [
                (1.28 / rel((-50.0 - v) / 4.0), 1.4 / rel((v + 23.0) / 5.0)),
                (
                    0.128 * ((-46.0 - v) / 18.0).exp(),
                    4.0 / (1.0 + ((-23.0 - v) / 5.0).exp()),
                ),
                (0.16 / rel((-48.0 - v) / 5.0), 0.5 * ((-53.0 - v) / 40.0).exp()),
            ];
            let sum = 10.0 + ge + gi + gna + gk;
            let to = (-650.0 - 80.0 * gi + 50.0 * gna - 90.0 * gk + wide(*drive)) / sum;
            let next = to + (v - to) * (-sum * dt / 200.0).exp();
            if v <= 0.0 && next > 0.0 {
                fired.push((id as u32, step));
            }
            v = next;
            for (gate, (a, b)) in [&mut m, &mut h, &mut n].into_iter().zip(rates) {
                *gate = a / (a + b) + (*gate - a / (a + b)) * (-(a + b) * dt).exp();
            }
            ge *= (-dt / 5.0).exp();
            gi *= (-dt / 10.0).exp();
        }
        voltages.push(v);
    }
    assert!(fired.len() > 20, "{}", fired.len());
    everywhere(|run| {
        let (states, drive) = (run.upload(&start), run.upload(&drive));
        let (number, spikes) = (run.zeros::<u32>(1), run.zeros::<Spike>(1000));
        run.launch(
            neurons::kernel(),
            LaunchConfig::linear(count, 64),
            args![steps, 0.05f32, &drive, &states, &number, &spikes],
        );
        let number = run.read(&number)[0] as usize;
        assert_eq!(number, fired.len(), "on {}", run.place());
        let mut found = run.read(&spikes)[..number].to_vec();
        found.sort_by_key(|s| (s.neuron, s.step));
        for (spike, (id, step)) in found.iter().zip(&fired) {
            assert_eq!(spike.neuron, *id, "on {}", run.place());
            assert!(spike.step.abs_diff(*step) <= 1, "on {}", run.place());
        }
        let states = run.read(&states);
        let close = states.iter().zip(&voltages);
        let close = close.filter(|(s, v)| (f64::from(s.v) - **v).abs() < 0.5).count();
        assert!(close > count - 5, "{close} on {}", run.place());
    });
}

// 122: CuPy's lombscargle

#[derive(Clone, Copy, Default, GpuType)]
#[repr(C)]
struct Sums {
    xc: f32,
    xs: f32,
    cc: f32,
    ss: f32,
    cs: f32,
}

#[device]
impl AddAssign for Sums {
    fn add_assign(&mut self, other: Self) {
        self.xc += other.xc;
        self.xs += other.xs;
        self.cc += other.cc;
        self.ss += other.ss;
        self.cs += other.cs;
    }
}

#[kernel]
fn lombscargle(times: &[f32], values: &[f32], weights: &[f32], frequencies: &[f32], power: &mut [f32]) {
    let id = global_id_x();
    let Some(&frequency) = frequencies.get(id) else {
        return;
    };
    let omega = 2.0 * PI * frequency;
    let mut sums = Sums::default();
    for ((&t, &x), &w) in times.iter().zip(values).zip(weights) {
        let (s, c) = (omega * t).sin_cos();
        sums += Sums {
            xc: w * x * c,
            xs: w * x * s,
            cc: w * c * c,
            ss: w * s * s,
            cs: w * c * s,
        };
    }
    let Sums { xc, xs, cc, ss, cs } = sums;
    let tau = (2.0 * cs).atan2(cc - ss) / (2.0 * omega);
    let (s, c) = (omega * tau).sin_cos();
    let (c2, s2, both) = (c * c, s * s, 2.0 * c * s * cs);
    let cosines = (c * xc + s * xs).powi(2) / (c2 * cc + both + s2 * ss);
    let sines = (c * xs - s * xc).powi(2) / (c2 * ss - both + s2 * cc);
    power[id] = 0.5 * (cosines + sines);
}

#[test]
fn lombscargle_is_a_fit_of_a_sine() {
    let mut random = Random(122);
    let (samples, count) = (120, 90);
    let mut times: Vec<f32> = (0..samples).map(|_| random.between(0.0, 10.0) as f32).collect();
    times.sort_by(f32::total_cmp);
    let values: Vec<f32> = times
        .iter()
        .map(|t| (2.0 * PI * 1.3 * t).sin() + random.between(-0.3, 0.3) as f32)
        .collect();
    let weights: Vec<f32> = times.iter().map(|_| random.between(0.5, 1.5) as f32).collect();
    let frequencies: Vec<f32> = (0..count).map(|i| 0.2 + 0.03 * i as f32).collect();
    // Half of what a weighted fit of a sine and a cosine takes from the squares.
    let expected: Vec<f64> = frequencies
        .iter()
        .map(|f| {
            let (mut a, mut b, mut d, mut p, mut q) = (0.0, 0.0, 0.0, 0.0, 0.0);
            for k in 0..samples {
                let (t, x, w) = (f64::from(times[k]), f64::from(values[k]), f64::from(weights[k]));
                let (s, c) = (std::f64::consts::TAU * f64::from(*f) * t).sin_cos();
                a += w * c * c;
                b += w * c * s;
                d += w * s * s;
                p += w * x * c;
                q += w * x * s;
            }
            0.5 * (p * (d * p - b * q) + q * (a * q - b * p)) / (a * d - b * b)
        })
        .collect();
    everywhere(|run| {
        let power = run.zeros::<f32>(count);
        run.launch(
            lombscargle::kernel(),
            LaunchConfig::linear(count, 32),
            args![
                &run.upload(&times),
                &run.upload(&values),
                &run.upload(&weights),
                &run.upload(&frequencies),
                &power
            ],
        );
        run.near(&power, &expected, 2e-3);
    });
}

// 130: QuEST's gates

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Amplitude {
    re: f64,
    im: f64,
}

#[device]
impl Amplitude {
    const ZERO: Self = Self { re: 0.0, im: 0.0 };

    fn probability(self) -> f64 {
        self.re * self.re + self.im * self.im
    }
}

#[device]
impl Add for Amplitude {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            re: self.re + other.re,
            im: self.im + other.im,
        }
    }
}

#[device]
impl Mul for Amplitude {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}

#[device]
fn product<const N: usize>(matrix: &[[Amplitude; N]; N], vector: [Amplitude; N]) -> [Amplitude; N] {
    matrix.map(|row| {
        row.into_iter()
            .zip(vector)
            .fold(Amplitude::ZERO, |sum, (m, v)| sum + m * v)
    })
}

/// Opens a gap for a zero bit.
#[device]
fn insert_zero(index: usize, bit: u32) -> usize {
    let low = index & ((1 << bit) - 1);
    (index ^ low) << 1 | low
}

#[kernel]
fn one_qubit(target: u32, controls: usize, matrix: [[Amplitude; 2]; 2], state: &mut [Amplitude]) {
    let task = global_id_x();
    if task >= state.len() / 2 {
        return;
    }
    let zero = insert_zero(task, target);
    let one = zero | 1 << target;
    if zero & controls != controls {
        return;
    }
    [state[zero], state[one]] = product(&matrix, [state[zero], state[one]]);
}

#[kernel]
fn two_qubits(targets: [u32; 2], matrix: [[Amplitude; 4]; 4], state: &mut [Amplitude]) {
    let task = global_id_x();
    if task >= state.len() / 4 {
        return;
    }
    let [a, b] = targets;
    let base = insert_zero(insert_zero(task, a.min(b)), a.max(b));
    let places: [usize; 4] = std::array::from_fn(|k| base | (k & 1) << a | (k >> 1) << b);
    let next = product(&matrix, places.map(|place| state[place]));
    for (place, amplitude) in places.into_iter().zip(next) {
        state[place] = amplitude;
    }
}

#[kernel(block_size = 64)]
fn probability_of_zero(target: u32, state: &[Amplitude], parts: &mut [f64]) {
    let shared = shared_array::<[f64; 64]>();
    let lane = local_id_x();
    shared[lane] = state
        .iter()
        .enumerate()
        .skip(global_id_x())
        .step_by(global_size_x())
        .filter(|(index, _)| index >> target & 1 == 0)
        .map(|(_, amplitude)| amplitude.probability())
        .sum();
    sync_threads();
    for round in (0..6).rev() {
        let half = 1 << round;
        if lane < half {
            shared[lane] += shared[lane + half];
        }
        sync_threads();
    }
    if lane == 0 {
        parts[group_id_x()] = shared[0];
    }
}

#[test]
fn gates_are_products_of_matrices() {
    let mut random = Random(130);
    let qubits = 9;
    let size = 1usize << qubits;
    let mut amplitude = || Amplitude {
        re: random.between(-1.0, 1.0),
        im: random.between(-1.0, 1.0),
    };
    let start: Vec<Amplitude> = (0..size).map(|_| amplitude()).collect();
    let small: [[Amplitude; 2]; 2] = std::array::from_fn(|_| std::array::from_fn(|_| amplitude()));
    let large: [[Amplitude; 4]; 4] = std::array::from_fn(|_| std::array::from_fn(|_| amplitude()));
    // Row by row: which column of the full matrix is not zero.
    let apply =
        |old: &[Amplitude], targets: &[usize], controls: usize, entry: &dyn Fn(usize, usize) -> Amplitude| {
            let mask: usize = targets.iter().map(|t| 1 << t).sum();
            let part = |i: usize| {
                targets
                    .iter()
                    .enumerate()
                    .map(|(k, t)| (i >> t & 1) << k)
                    .sum::<usize>()
            };
            (0..size)
                .map(|row| {
                    if row & controls != controls {
                        return old[row];
                    }
                    let (mut re, mut im) = (0.0, 0.0);
                    for column in (0..size).filter(|c| c & !mask == row & !mask) {
                        let (m, v) = (entry(part(row), part(column)), old[column]);
                        re += m.re * v.re - m.im * v.im;
                        im += m.re * v.im + m.im * v.re;
                    }
                    Amplitude { re, im }
                })
                .collect::<Vec<_>>()
        };
    let controls = 1 << 1 | 1 << 7;
    let middle = apply(&start, &[4], controls, &|r, c| small[r][c]);
    let end = apply(&middle, &[6, 2], 0, &|r, c| large[r][c]);
    let flat: Vec<f64> = end.iter().flat_map(|a| [a.re, a.im]).collect();
    let zero: f64 = (0..size)
        .filter(|i| i & 8 == 0)
        .map(|i| end[i].re.powi(2) + end[i].im.powi(2))
        .sum();
    everywhere(|run| {
        let state = run.upload(&start);
        run.launch(
            one_qubit::kernel(),
            LaunchConfig::linear(size / 2, 64),
            args![4u32, controls, small, &state],
        );
        run.launch(
            two_qubits::kernel(),
            LaunchConfig::linear(size / 4, 64),
            args![[6u32, 2], large, &state],
        );
        run.near(&state.cast::<f64>().unwrap(), &flat, 1e-12);
        let parts = run.zeros::<f64>(3);
        run.launch(
            probability_of_zero::kernel(),
            LaunchConfig::new(3, 64),
            args![3u32, &state, &parts],
        );
        let sum: f64 = run.read(&parts).iter().sum();
        assert!((sum - zero).abs() < 1e-9 * zero, "on {}", run.place());
    });
}
