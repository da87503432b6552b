//! Markets: implied volatilities, and Heston's paths.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 245: implied volatilities

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum Side {
    Call,
    Put,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Quote {
    forward: f32,
    strike: f32,
    expiry: f32,
    price: f32,
    side: Side,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum Failure {
    Below = 1,
    Above = 2,
    Slow = 3,
}

const HALF_ROOT: f32 = std::f32::consts::FRAC_1_SQRT_2;

#[device]
fn cumulative(x: f32) -> f32 {
    0.5 * (-x * HALF_ROOT).erfc()
}

#[device]
impl Quote {
    /// The price at a volatility, and how it grows with that.
    fn at(&self, volatility: f32) -> (f32, f32) {
        let deviation = volatility * self.expiry.sqrt();
        let d1 = (self.forward / self.strike).ln() / deviation + 0.5 * deviation;
        let d2 = d1 - deviation;
        let price = match self.side {
            Side::Call => self.forward * cumulative(d1) - self.strike * cumulative(d2),
            Side::Put => self.strike * cumulative(-d2) - self.forward * cumulative(-d1),
        };
        let density = (-0.5 * d1 * d1).exp() * 0.398_942_3;
        (price, self.forward * density * self.expiry.sqrt())
    }

    fn bounds(&self) -> (f32, f32) {
        let Quote { forward, strike, .. } = *self;
        match self.side {
            Side::Call => ((forward - strike).max(0.0), forward),
            Side::Put => ((strike - forward).max(0.0), strike),
        }
    }

    fn implied(&self) -> Result<f32, Failure> {
        let (floor, ceiling) = self.bounds();
        if self.price < floor {
            return Err(Failure::Below);
        }
        if self.price >= ceiling {
            return Err(Failure::Above);
        }
        let (mut low, mut high) = (1e-4f32, 8.0f32);
        // Where the price bends.
        let bend = (2.0 * (self.forward / self.strike).ln().abs() / self.expiry).sqrt();
        let mut volatility = bend.clamp(0.05, 2.0);
        for _ in 0..60 {
            let (price, vega) = self.at(volatility);
            let error = price - self.price;
            if error > 0.0 {
                high = volatility;
            } else {
                low = volatility;
            }
            let newton = volatility - error / vega;
            let next = if low <= newton && newton <= high {
                newton
            } else {
                0.5 * (low + high)
            };
            if (next - volatility).abs() < 1e-5 {
                return Ok(next);
            }
            volatility = next;
        }
        Err(Failure::Slow)
    }
}

#[kernel]
fn implied(quotes: &[Quote], volatilities: &mut [f32], failures: &mut [u32]) {
    let i = global_id_x();
    let Some(quote) = quotes.get(i) else {
        return;
    };
    match quote.implied() {
        Ok(volatility) => volatilities[i] = volatility,
        Err(failure) => failures[i] = failure as u32,
    }
}

/// The normal distribution by its series.
fn normal_below(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..120 {
        term *= -x * x / (2.0 * f64::from(n));
        sum += term / f64::from(2 * n + 1);
    }
    0.5 + sum / std::f64::consts::TAU.sqrt()
}

#[test]
fn implied_volatilities_are_those_of_the_prices() {
    let mut random = Random(245);
    let (mut quotes, mut volatilities, mut failures) = (vec![], vec![], vec![]);
    for i in 0..1003 {
        let volatility = f64::from(random.within(0.15, 0.8));
        let (strike, expiry) = (random.within(0.9, 1.1), random.within(0.5, 2.0));
        let side = if i % 3 == 0 { Side::Put } else { Side::Call };
        let (k, s) = (f64::from(strike), volatility * f64::from(expiry).sqrt());
        let d = -k.ln() / s;
        let call = normal_below(d + s / 2.0) - k * normal_below(d - s / 2.0);
        // Puts by parity.
        let price = if side == Side::Put { call + k - 1.0 } else { call };
        let (price, volatility, failure) = match i % 50 {
            7 => (-0.01, 0.0, 1),
            23 => (1.25, 0.0, 2),
            _ => (price as f32, volatility, 0),
        };
        quotes.push(Quote {
            forward: 1.0,
            strike,
            expiry,
            price,
            side,
        });
        volatilities.push(volatility);
        failures.push(failure);
    }
    let n = quotes.len();
    everywhere(|run| {
        let (input, out, codes) = (run.upload(&quotes), run.zeros::<f32>(n), run.zeros::<u32>(n));
        run.launch(
            implied::kernel(),
            LaunchConfig::linear(n, 64),
            args![&input, &out, &codes],
        );
        run.holds(&codes, &failures);
        // A price is off by 2e-7 at most, and grows by 0.19 or more a unit of volatility.
        run.near(&out, &volatilities, 1e-5);
    });
}

// 246: Heston's paths

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Heston {
    kappa: f32,
    theta: f32,
    sigma: f32,
    rho: f32,
    rate: f32,
    variance: f32,
}

/// How the next variance is drawn.
#[derive(Clone, Copy, GpuType)]
enum Draw {
    Quadratic { a: f32, b: f32 },
    Exponential { p: f32, beta: f32 },
}

#[device]
impl Draw {
    fn new(mean: f32, square: f32) -> Draw {
        let psi = square / (mean * mean);
        if psi <= 1.5 {
            let r = 2.0 / psi;
            let b2 = r - 1.0 + r.sqrt() * (r - 1.0).sqrt();
            Draw::Quadratic {
                a: mean / (1.0 + b2),
                b: b2.sqrt(),
            }
        } else {
            let p = (psi - 1.0) / (psi + 1.0);
            Draw::Exponential {
                p,
                beta: (1.0 - p) / mean,
            }
        }
    }

    fn take(self, normal: f32, uniform: f32) -> f32 {
        match self {
            Draw::Quadratic { a, b } => a * (b + normal).powi(2),
            Draw::Exponential { p, .. } if uniform <= p => 0.0,
            Draw::Exponential { p, beta } => ((1.0 - p) / (1.0 - uniform)).ln() / beta,
        }
    }
}

#[device]
impl Heston {
    fn next_variance(&self, v: f32, dt: f32, normal: f32, uniform: f32) -> f32 {
        let Heston {
            kappa, theta, sigma, ..
        } = *self;
        let decay = (-kappa * dt).exp();
        let grown = -(-kappa * dt).exp_m1();
        let mean = theta + (v - theta) * decay;
        let square = sigma * sigma * grown / kappa * (v * decay + 0.5 * theta * grown);
        Draw::new(mean, square).take(normal, uniform)
    }

    /// What the logarithm of the price gains.
    fn gain(&self, v: f32, next: f32, dt: f32, normal: f32) -> f32 {
        let Heston {
            kappa,
            theta,
            sigma,
            rho,
            rate,
            ..
        } = *self;
        let drift = (rate - rho * kappa * theta / sigma) * dt;
        let slope = 0.5 * dt * (kappa * rho / sigma - 0.5);
        let spread = 0.5 * dt * (1.0 - rho * rho) * (v + next);
        drift + (slope - rho / sigma) * v + (slope + rho / sigma) * next + spread.sqrt() * normal
    }
}

/// Draws are a normal number for the variance, a uniform one, a normal one for the price.
#[kernel(block_size = 64)]
fn heston(
    model: Heston,
    strike: f32,
    dt: f32,
    paths: usize,
    draws: &[[f32; 3]],
    means: &mut [f32],
    total: &mut f32,
) {
    let sums = shared_array::<[f32; 64]>();
    let (i, lane) = (global_id_x(), local_id_x());
    let mut payoff = 0.0;
    if i < paths {
        let (mut price, mut v, mut sum) = (0.0f32, model.variance, 0.0);
        let steps = draws.len() / paths;
        for [zv, u, zs] in draws.iter().skip(i).step_by(paths).copied() {
            let next = model.next_variance(v, dt, zv, u);
            price += model.gain(v, next, dt, zs);
            v = next;
            sum += price.exp();
        }
        means[i] = sum / steps as f32;
        payoff = (means[i] - strike).max(0.0);
    }
    sums[lane] = payoff;
    sync_threads();
    let mut half = 32;
    while half > 0 {
        if lane < half {
            sums[lane] += sums[lane + half];
        }
        sync_threads();
        half /= 2;
    }
    if lane == 0 {
        atomic_add(total, sums[0]);
    }
}

#[test]
fn heston_paths_follow_their_draws() {
    let mut random = Random(246);
    let (paths, steps, dt, strike) = (203usize, 9usize, 0.25f32, 0.95f32);
    let model = Heston {
        kappa: 1.5,
        theta: 0.06,
        sigma: 0.9,
        rho: -0.6,
        rate: 0.02,
        variance: 0.05,
    };
    let draws: Vec<[f32; 3]> = (0..paths * steps)
        .map(|_| {
            let mut normal = || (0..12).map(|_| random.within(0.0, 1.0)).sum::<f32>() - 6.0;
            let (a, b) = (normal(), normal());
            [a, random.within(0.001, 0.999), b]
        })
        .collect();
    let (k, th, sg, rh) = (1.5f64, f64::from(0.06f32), f64::from(0.9f32), f64::from(-0.6f32));
    let (rate, dt64) = (f64::from(0.02f32), 0.25f64);
    let (mut means, mut payoffs, mut kinds) = (vec![], 0.0, [0; 3]);
    for path in 0..paths {
        let (mut v, mut x, mut sum) = (f64::from(0.05f32), 0.0f64, 0.0f64);
        for step in 0..steps {
            let [zv, u, zs] = draws[step * paths + path].map(f64::from);
            let e = (-k * dt64).exp();
            let m = th + (v - th) * e;
            let s2 = v * sg * sg * e / k * (1.0 - e) + th * sg * sg / (2.0 * k) * (1.0 - e) * (1.0 - e);
            let psi = s2 / (m * m);
            let next = if psi <= 1.5 {
                kinds[0] += 1;
                let b2 = 2.0 / psi - 1.0 + (2.0 / psi * (2.0 / psi - 1.0)).sqrt();
                m / (1.0 + b2) * (b2.sqrt() + zv) * (b2.sqrt() + zv)
            } else {
                let p = (psi - 1.0) / (psi + 1.0);
                kinds[if u <= p { 1 } else { 2 }] += 1;
                if u <= p {
                    0.0
                } else {
                    m / (1.0 - p) * ((1.0 - p) / (1.0 - u)).ln()
                }
            };
            let k0 = -rh * k * th / sg * dt64;
            let k1 = 0.5 * dt64 * (k * rh / sg - 0.5) - rh / sg;
            let k2 = 0.5 * dt64 * (k * rh / sg - 0.5) + rh / sg;
            let k3 = 0.5 * dt64 * (1.0 - rh * rh);
            x += rate * dt64 + k0 + k1 * v + k2 * next + (k3 * v + k3 * next).sqrt() * zs;
            v = next;
            sum += x.exp();
        }
        let mean = sum / steps as f64;
        payoffs += (mean - f64::from(strike)).max(0.0);
        means.push(mean);
    }
    assert!(kinds.iter().all(|count| *count > 20), "{kinds:?}");
    everywhere(|run| {
        let (input, out, total) = (run.upload(&draws), run.zeros::<f32>(paths), run.zeros::<f32>(1));
        let config = LaunchConfig::linear(paths, 64);
        run.launch(
            heston::kernel(),
            config,
            args![model, strike, dt, paths, &input, &out, &total],
        );
        // Nine steps, each off by some 1e-6; roots of variances near zero are off by more.
        run.near(&out, &means, 1e-4);
        run.near(&total, &[payoffs], 1e-3);
    });
}
