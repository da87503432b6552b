//! Differential equations and fits of curves.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 127: MPGOS' Cash-Karp

/// A system of `N` equations, and what marks an event: a sign that turns positive.
#[device]
trait System<const N: usize>: GpuType {
    fn rates(&self, t: f32, x: &[f32; N]) -> [f32; N];
    fn event(&self, x: &[f32; N]) -> f32;
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Duffing {
    damping: f32,
    force: f32,
    omega: f32,
}

#[device]
impl System<2> for Duffing {
    fn rates(&self, t: f32, &[x, v]: &[f32; 2]) -> [f32; 2] {
        [
            v,
            x - x * x * x - self.damping * v + self.force * (self.omega * t).cos(),
        ]
    }

    fn event(&self, x: &[f32; 2]) -> f32 {
        x[0]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Lorenz {
    rho: f32,
}

#[device]
impl System<3> for Lorenz {
    fn rates(&self, _t: f32, x: &[f32; 3]) -> [f32; 3] {
        [
            10.0 * (x[1] - x[0]),
            x[0] * (self.rho - x[2]) - x[1],
            x[0] * x[1] - 8.0 / 3.0 * x[2],
        ]
    }

    fn event(&self, x: &[f32; 3]) -> f32 {
        x[2] - self.rho + 1.0
    }
}

const NODES: [f32; 6] = [0.0, 0.2, 0.3, 0.6, 1.0, 0.875];
const STAGES: [[f32; 5]; 6] = [
    [0.0; 5],
    [0.2, 0.0, 0.0, 0.0, 0.0],
    [3.0 / 40.0, 9.0 / 40.0, 0.0, 0.0, 0.0],
    [0.3, -0.9, 1.2, 0.0, 0.0],
    [-11.0 / 54.0, 2.5, -70.0 / 27.0, 35.0 / 27.0, 0.0],
    [
        1631.0 / 55296.0,
        175.0 / 512.0,
        575.0 / 13824.0,
        44275.0 / 110592.0,
        253.0 / 4096.0,
    ],
];
const FIFTH: [f32; 6] = [
    37.0 / 378.0,
    0.0,
    250.0 / 621.0,
    125.0 / 594.0,
    0.0,
    512.0 / 1771.0,
];
const FOURTH: [f32; 6] = [
    2825.0 / 27648.0,
    0.0,
    18575.0 / 48384.0,
    13525.0 / 55296.0,
    277.0 / 14336.0,
    0.25,
];

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Outcome {
    steps: u32,
    rejected: u32,
    events: u32,
    last_event: f32,
}

#[device]
fn stepped<const N: usize>(x: &[f32; N], rates: &[[f32; N]], weights: &[f32], h: f32) -> [f32; N] {
    std::array::from_fn(|i| {
        let slope: f32 = rates
            .iter()
            .zip(weights)
            .map(|(rate, weight)| rate[i] * weight)
            .sum();
        x[i] + h * slope
    })
}

#[kernel]
fn cash_karp<S: System<N>, const N: usize>(
    end: f32,
    tolerance: f32,
    systems: &[S],
    states: &mut [[f32; N]],
    outcomes: &mut [Outcome],
) {
    let id = global_id_x();
    let (Some(system), Some(state)) = (systems.get(id), states.get_mut(id)) else {
        return;
    };
    let mut outcome = Outcome::default();
    let mut x = *state;
    let (mut t, mut h) = (0.0f32, 0.01f32);
    while t < end {
        h = h.min(end - t);
        let mut rates = [[0.0; N]; 6];
        for stage in 0..6 {
            let at = stepped(&x, &rates[..stage], &STAGES[stage][..stage], h);
            rates[stage] = system.rates(t + NODES[stage] * h, &at);
        }
        let next = stepped(&x, &rates, &FIFTH, h);
        let low = stepped(&x, &rates, &FOURTH, h);
        let error = next
            .iter()
            .zip(&low)
            .map(|(a, b)| (a - b).abs() / (tolerance * a.abs().max(1.0)))
            .fold(f32::MIN_POSITIVE, f32::max);
        let factor = (0.9 * error.powf(-0.2)).clamp(0.2, 5.0);
        if error <= 1.0 {
            let (before, after) = (system.event(&x), system.event(&next));
            if before < 0.0 && after >= 0.0 {
                outcome.events += 1;
                outcome.last_event = t + h * before / (before - after);
            }
            (t, x) = (t + h, next);
            outcome.steps += 1;
        } else {
            outcome.rejected += 1;
        }
        h *= factor;
    }
    *state = x;
    outcomes[id] = outcome;
}

/// Classic Runge and Kutta with small steps.
fn integrate<const N: usize>(
    end: f64,
    mut x: [f64; N],
    rates: impl Fn(f64, [f64; N]) -> [f64; N],
    event: impl Fn([f64; N]) -> f64,
) -> ([f64; N], u32, f64) {
    let (mut events, mut last) = (0, 0.0);
    let steps = 20_000;
    let h = end / f64::from(steps);
    for step in 0..steps {
        let t = f64::from(step) * h;
        let add = |k: [f64; N], by: f64| std::array::from_fn(|i| x[i] + by * k[i]);
        let a = rates(t, x);
        let b = rates(t + h / 2.0, add(a, h / 2.0));
        let c = rates(t + h / 2.0, add(b, h / 2.0));
        let d = rates(t + h, add(c, h));
        let next = std::array::from_fn(|i| x[i] + h / 6.0 * (a[i] + 2.0 * b[i] + 2.0 * c[i] + d[i]));
        if event(x) < 0.0 && event(next) >= 0.0 {
            events += 1;
            last = t;
        }
        x = next;
    }
    (x, events, last)
}

#[test]
fn cash_karp_follows_any_system() {
    let mut random = Random(127);
    let count = 70;
    let duffings: Vec<Duffing> = (0..count)
        .map(|_| Duffing {
            damping: random.between(0.2, 0.4) as f32,
            force: random.between(0.1, 0.25) as f32,
            omega: random.between(0.8, 1.4) as f32,
        })
        .collect();
    let start: Vec<[f32; 2]> = (0..count).map(|i| [i as f32 / 50.0 - 0.4, 0.1]).collect();
    let expected: Vec<_> = duffings
        .iter()
        .zip(&start)
        .map(|(s, x)| {
            let [d, f, w] = [s.damping, s.force, s.omega].map(f64::from);
            let rates = |t: f64, [x, v]: [f64; 2]| [v, x - x.powi(3) - d * v + f * (w * t).cos()];
            integrate(4.0, x.map(f64::from), rates, |x| x[0])
        })
        .collect();
    let places: Vec<f64> = expected.iter().flat_map(|e| e.0).collect();
    let lorenz: Vec<Lorenz> = (0..count)
        .map(|i| Lorenz {
            rho: 10.0 + i as f32 / 10.0,
        })
        .collect();
    let thrown = vec![[1.0f32, 2.0, 20.0]; count];
    let attracted: Vec<f64> = lorenz
        .iter()
        .flat_map(|s| {
            let rho = f64::from(s.rho);
            let rates = |_, [x, y, z]: [f64; 3]| [10.0 * (y - x), x * (rho - z) - y, x * y - 8.0 / 3.0 * z];
            integrate(1.0, [1.0, 2.0, 20.0], rates, |_| 1.0).0
        })
        .collect();
    everywhere(|run| {
        let (states, outcomes) = (run.upload(&start), run.zeros::<Outcome>(count));
        let config = LaunchConfig::linear(count, 32);
        run.launch(
            cash_karp::kernel::<Duffing, 2>(),
            config,
            args![4.0f32, 1e-5f32, &run.upload(&duffings), &states, &outcomes],
        );
        run.near(&states.cast::<f32>().unwrap(), &places, 1e-3);
        for (found, (_, events, last)) in run.read(&outcomes).iter().zip(&expected) {
            assert!(found.steps > 5, "on {}", run.place());
            if found.events == *events && *events > 0 {
                assert!(
                    (f64::from(found.last_event) - last).abs() < 0.3,
                    "on {}",
                    run.place()
                );
            }
        }
        let states = run.upload(&thrown);
        run.launch(
            cash_karp::kernel::<Lorenz, 3>(),
            config,
            args![1.0f32, 1e-5f32, &run.upload(&lorenz), &states, &outcomes],
        );
        run.near(&states.cast::<f32>().unwrap(), &attracted, 2e-3);
    });
}

// 132: Gpufit

#[device]
trait Model<const N: usize> {
    /// The curve at a place, and its derivatives by the parameters.
    fn evaluate(parameters: &[f32; N], x: f32) -> (f32, [f32; N]);
}

#[derive(Clone, Copy, GpuType)]
struct Gauss;

#[device]
impl Model<4> for Gauss {
    fn evaluate(&[height, center, width, offset]: &[f32; 4], x: f32) -> (f32, [f32; 4]) {
        let z = (x - center) / width;
        let bell = (-0.5 * z * z).exp();
        let slope = height * bell * z / width;
        (height * bell + offset, [bell, slope, slope * z, 1.0])
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum State {
    Converged = 1,
    Exhausted,
    Singular,
}

/// Gauss and Jordan with partial pivoting.
#[device]
fn solve<const N: usize>(mut a: [[f32; N]; N], mut b: [f32; N]) -> Option<[f32; N]> {
    for k in 0..N {
        let pivot = (k..N).max_by(|i, j| a[*i][k].abs().total_cmp(&a[*j][k].abs()))?;
        if a[pivot][k] == 0.0 {
            return None;
        }
        a.swap(k, pivot);
        b.swap(k, pivot);
        let inverse = a[k][k].recip();
        a[k] = a[k].map(|x| x * inverse);
        b[k] *= inverse;
        let top = a[k];
        for i in (0..N).filter(|i| *i != k) {
            let factor = a[i][k];
            for (x, t) in a[i].iter_mut().zip(top) {
                *x -= factor * t;
            }
            b[i] -= factor * b[k];
        }
    }
    Some(b)
}

#[device]
fn chi_square<M: Model<N>, const N: usize>(parameters: &[f32; N], data: &[f32]) -> f32 {
    data.iter()
        .enumerate()
        .map(|(x, y)| (M::evaluate(parameters, x as f32).0 - y).powi(2))
        .sum()
}

#[kernel]
fn levenberg<M: Model<N>, const N: usize>(
    points: usize,
    data: &[f32],
    fits: &mut [[f32; N]],
    states: &mut [State],
    chi: &mut [f32],
) {
    let id = global_id_x();
    if id >= fits.len() {
        return;
    }
    let data = &data[id * points..][..points];
    let mut best = fits[id];
    let mut error = chi_square::<M, N>(&best, data);
    let mut lambda = 1e-3f32;
    let mut state = State::Exhausted;
    for _ in 0..60 {
        let mut hessian = [[0.0; N]; N];
        let mut gradient = [0.0; N];
        for (x, y) in data.iter().enumerate() {
            let (value, slopes) = M::evaluate(&best, x as f32);
            for i in 0..N {
                gradient[i] += (y - value) * slopes[i];
                for j in 0..N {
                    hessian[i][j] += slopes[i] * slopes[j];
                }
            }
        }
        for i in 0..N {
            hessian[i][i] *= 1.0 + lambda;
        }
        let Some(step) = solve(hessian, gradient) else {
            state = State::Singular;
            break;
        };
        let tried: [f32; N] = std::array::from_fn(|i| best[i] + step[i]);
        let next = chi_square::<M, N>(&tried, data);
        if next < error {
            let converged = error - next < 1e-6 * error.max(1e-6);
            (best, error) = (tried, next);
            lambda *= 0.1;
            if converged {
                state = State::Converged;
                break;
            }
        } else {
            lambda *= 10.0;
            if lambda > 1e8 {
                state = State::Converged;
                break;
            }
        }
    }
    fits[id] = best;
    states[id] = state;
    chi[id] = error;
}

#[test]
fn levenberg_finds_peaks() {
    let mut random = Random(132);
    let (count, points) = (60, 40usize);
    let truth: Vec<[f64; 4]> = (0..count)
        .map(|_| {
            [
                random.between(5.0, 9.0),
                random.between(15.0, 25.0),
                random.between(2.0, 4.0),
                random.between(0.5, 1.5),
            ]
        })
        .collect();
    let data: Vec<f32> = truth
        .iter()
        .flat_map(|[h, c, w, o]| {
            (0..points).map(move |x| (h * (-0.5 * ((x as f64 - c) / w).powi(2)).exp() + o) as f32)
        })
        .collect();
    let mut start: Vec<[f32; 4]> = truth
        .iter()
        .map(|[h, c, w, o]| [h * 0.8, c + 1.5, w * 1.2, o * 0.9].map(|x| x as f32))
        .collect();
    // A width without end has no slope.
    start[4] = [1.0, 2.0, f32::INFINITY, 1.0];
    let expected: Vec<f64> = truth.concat();
    everywhere(|run| {
        let (fits, states, chi) = (
            run.upload(&start),
            run.upload(&vec![State::Exhausted; count]),
            run.zeros::<f32>(count),
        );
        run.launch(
            levenberg::kernel::<Gauss, 4>(),
            LaunchConfig::linear(count, 32),
            args![points, &run.upload(&data), &fits, &states, &chi],
        );
        let (fits, states) = (run.read(&fits), run.read(&states));
        for (i, (fit, state)) in fits.iter().zip(states).enumerate() {
            let wanted = if i == 4 { State::Singular } else { State::Converged };
            assert_eq!(state, wanted, "{i} on {}", run.place());
            let off = (0..4).map(|k| (f64::from(fit[k]) - expected[4 * i + k]).abs());
            assert!(i == 4 || off.fold(0.0, f64::max) < 0.01, "{i} on {}", run.place());
        }
    });
}
