//! Markets and statistics: implied volatilities, Heston's paths, Holt and Winters' smoothing, Shapley values of trees.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

/// From `low` to `high`.
fn between(random: &mut Random, low: f32, high: f32) -> f32 {
    low + (high - low) * ((random.bits() >> 40) as f32 / 16_777_216.0)
}

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
            let next = if low <= newton && newton <= high { newton } else { 0.5 * (low + high) };
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
        let volatility = f64::from(between(&mut random, 0.15, 0.8));
        let (strike, expiry) = (between(&mut random, 0.9, 1.1), between(&mut random, 0.5, 2.0));
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
        quotes.push(Quote { forward: 1.0, strike, expiry, price, side });
        volatilities.push(volatility);
        failures.push(failure);
    }
    let n = quotes.len();
    everywhere(|run| {
        let (input, out, codes) = (run.upload(&quotes), run.zeros::<f32>(n), run.zeros::<u32>(n));
        run.launch(implied::kernel(), LaunchConfig::linear(n, 64), args![&input, &out, &codes]);
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
            Draw::Quadratic { a: mean / (1.0 + b2), b: b2.sqrt() }
        } else {
            let p = (psi - 1.0) / (psi + 1.0);
            Draw::Exponential { p, beta: (1.0 - p) / mean }
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
        let Heston { kappa, theta, sigma, .. } = *self;
        let decay = (-kappa * dt).exp();
        let grown = -(-kappa * dt).exp_m1();
        let mean = theta + (v - theta) * decay;
        let square = sigma * sigma * grown / kappa * (v * decay + 0.5 * theta * grown);
        Draw::new(mean, square).take(normal, uniform)
    }

    /// What the logarithm of the price gains.
    fn gain(&self, v: f32, next: f32, dt: f32, normal: f32) -> f32 {
        let Heston { kappa, theta, sigma, rho, rate, .. } = *self;
        let drift = (rate - rho * kappa * theta / sigma) * dt;
        let slope = 0.5 * dt * (kappa * rho / sigma - 0.5);
        let spread = 0.5 * dt * (1.0 - rho * rho) * (v + next);
        drift + (slope - rho / sigma) * v + (slope + rho / sigma) * next + spread.sqrt() * normal
    }
}

/// Draws are a normal number for the variance, a uniform one, a normal one for the price.
#[kernel(block_size = 64)]
fn heston(model: Heston, strike: f32, dt: f32, paths: usize, draws: &[[f32; 3]], means: &mut [f32], total: &mut f32) {
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
    let model = Heston { kappa: 1.5, theta: 0.06, sigma: 0.9, rho: -0.6, rate: 0.02, variance: 0.05 };
    let draws: Vec<[f32; 3]> = (0..paths * steps)
        .map(|_| {
            let mut normal = || (0..12).map(|_| between(&mut random, 0.0, 1.0)).sum::<f32>() - 6.0;
            let (a, b) = (normal(), normal());
            [a, between(&mut random, 0.001, 0.999), b]
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
                if u <= p { 0.0 } else { m / (1.0 - p) * ((1.0 - p) / (1.0 - u)).ln() }
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
        run.launch(heston::kernel(), config, args![model, strike, dt, paths, &input, &out, &total]);
        // Nine steps, each off by some 1e-6; roots of variances near zero are off by more.
        run.near(&out, &means, 1e-4);
        run.near(&total, &[payoffs], 1e-3);
    });
}

// 247: Holt and Winters' exponential smoothing

#[device]
trait Season: Copy {
    fn joined(level: f32, season: f32) -> f32;
    fn parted(value: f32, other: f32) -> f32;
}

#[derive(Clone, Copy, GpuType)]
struct Additive;

#[derive(Clone, Copy, GpuType)]
struct Multiplicative;

#[device]
impl Season for Additive {
    fn joined(level: f32, season: f32) -> f32 {
        level + season
    }

    fn parted(value: f32, other: f32) -> f32 {
        value - other
    }
}

#[device]
impl Season for Multiplicative {
    fn joined(level: f32, season: f32) -> f32 {
        level * season
    }

    fn parted(value: f32, other: f32) -> f32 {
        value / other
    }
}

/// Series stand side by side; each is smoothed by each of the weights (of level, trend and season).
#[kernel]
fn holt_winters<S: Season>(
    period: usize,
    batch: usize,
    horizon: usize,
    x: &[f32],
    weights: &[[f32; 3]],
    seasons: &mut [f32],
    forecasts: &mut [f32],
    errors: &mut [f32],
) {
    let (series, choice) = (global_id_x(), global_id_y());
    if series >= batch || choice >= weights.len() {
        return;
    }
    let [alpha, beta, gamma] = weights[choice];
    let value = |t: usize| x[t * batch + series];
    let season_at = |t: usize| (choice * period + t % period) * batch + series;
    let first = (0..period).map(value).sum::<f32>() / period as f32;
    let second = (period..2 * period).map(value).sum::<f32>() / period as f32;
    for t in 0..period {
        seasons[season_at(t)] = S::parted(value(t), first);
    }
    let (mut level, mut trend, mut error) = (first, (second - first) / period as f32, 0.0);
    let len = x.len() / batch;
    for t in period..len {
        let season = seasons[season_at(t)];
        error += (value(t) - S::joined(level + trend, season)).powi(2);
        let before = level;
        level = alpha * S::parted(value(t), season) + (1.0 - alpha) * (level + trend);
        trend = beta * (level - before) + (1.0 - beta) * trend;
        seasons[season_at(t)] = gamma * S::parted(value(t), level) + (1.0 - gamma) * season;
    }
    errors[choice * batch + series] = error;
    for h in 0..horizon {
        let ahead = level + (h + 1) as f32 * trend;
        forecasts[(choice * horizon + h) * batch + series] = S::joined(ahead, seasons[season_at(len + h)]);
    }
}

#[test]
fn holt_winters_smooths_series() {
    let mut random = Random(247);
    let (period, batch, horizon, len) = (7usize, 19usize, 10usize, 45usize);
    let weights = [[0.3f32, 0.1, 0.2], [0.6, 0.05, 0.5], [0.15, 0.4, 0.05]];
    let x: Vec<f32> = (0..len * batch)
        .map(|i| {
            let (t, j) = ((i / batch) as f32, (i % batch) as f32);
            8.0 + 0.05 * t + 0.1 * j + (t * 0.897).sin() + between(&mut random, -0.3, 0.3)
        })
        .collect();
    for multiplied in [false, true] {
        let join = |a: f64, b: f64| if multiplied { a * b } else { a + b };
        let part = |a: f64, b: f64| if multiplied { a / b } else { a - b };
        let mut forecasts = vec![0.0; weights.len() * horizon * batch];
        let mut errors = vec![0.0; weights.len() * batch];
        for (w, [alpha, beta, gamma]) in weights.iter().map(|w| w.map(f64::from)).enumerate() {
            for j in 0..batch {
                let y: Vec<f64> = (0..len).map(|t| f64::from(x[t * batch + j])).collect();
                let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
                let mut l = mean(&y[..period]);
                let mut b = (mean(&y[period..2 * period]) - l) / period as f64;
                // All seasons there ever were, one after the other.
                let mut s: Vec<f64> = y[..period].iter().map(|v| part(*v, l)).collect();
                for t in period..len {
                    let old = s[t - period];
                    errors[w * batch + j] += (y[t] - join(l + b, old)).powi(2);
                    let new = alpha * part(y[t], old) + (1.0 - alpha) * (l + b);
                    b = beta * (new - l) + (1.0 - beta) * b;
                    l = new;
                    s.push(gamma * part(y[t], l) + (1.0 - gamma) * old);
                }
                for h in 0..horizon {
                    let season = s[len - period + h % period];
                    forecasts[(w * horizon + h) * batch + j] = join(l + (h as f64 + 1.0) * b, season);
                }
            }
        }
        everywhere(|run| {
            let (input, choices) = (run.upload(&x), run.upload(&weights));
            let seasons = run.zeros::<f32>(weights.len() * period * batch);
            let (ahead, squares) = (run.zeros::<f32>(forecasts.len()), run.zeros::<f32>(errors.len()));
            let kernel = if multiplied {
                holt_winters::kernel::<Multiplicative>()
            } else {
                holt_winters::kernel::<Additive>()
            };
            let config = LaunchConfig::tiled(batch as u32, weights.len() as u32, (16, 2));
            run.launch(kernel, config, args![period, batch, horizon, &input, &choices, &seasons, &ahead, &squares]);
            // Values of about ten, off by 1e-6; trends take up to ten of that.
            run.near(&ahead, &forecasts, 5e-5);
            run.near(&squares, &errors, 1e-4);
        });
    }
}

// 248: Shapley values of trees

/// A path asks whether a feature is in a range. Of the rows that train the tree a part `zero` of those that come here pass.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Split {
    feature: u32,
    lower: f32,
    upper: f32,
    zero: f32,
}

#[device]
fn extend(weights: &mut [f32], zero: f32, one: f32) {
    let depth = weights.len() - 1;
    let all = weights.len() as f32;
    for i in (0..depth).rev() {
        weights[i + 1] += one * weights[i] * (i + 1) as f32 / all;
        weights[i] *= zero * (depth - i) as f32 / all;
    }
}

/// The sum of the weights without one split.
#[device]
fn unwound(weights: &[f32], zero: f32, passes: bool) -> f32 {
    let all = weights.len() as f32;
    let Some((last, others)) = weights.split_last() else {
        return 0.0;
    };
    let (mut next, mut total) = (*last, 0.0);
    for (i, weight) in others.iter().enumerate().rev() {
        let below = (others.len() - i) as f32;
        if passes {
            let part = next * all / (i + 1) as f32;
            total += part;
            next = weight - part * zero * below / all;
        } else {
            total += weight * all / (zero * below);
        }
    }
    total
}

#[kernel]
fn shap(features: usize, rows: &[f32], starts: &[u32], splits: &[Split], leaves: &[f32], values: &mut [f32]) {
    let (row, path) = (global_id_x(), global_id_y());
    let Some(x) = rows.chunks_exact(features).nth(row) else {
        return;
    };
    let Some(leaf) = leaves.get(path) else {
        return;
    };
    let splits = &splits[starts[path] as usize..starts[path + 1] as usize];
    let passes = |split: &Split| {
        let v = x[split.feature as usize];
        split.lower <= v && v < split.upper
    };
    let mut weights = [0.0; 9];
    weights[0] = 1.0;
    for (i, split) in splits.iter().enumerate() {
        let one = if passes(split) { 1.0 } else { 0.0 };
        extend(&mut weights[..i + 2], split.zero, one);
    }
    for split in splits {
        let one = passes(split);
        let sum = unwound(&weights[..=splits.len()], split.zero, one);
        let share = if one { 1.0 - split.zero } else { -split.zero };
        atomic_add(&mut values[row * features + split.feature as usize], sum * share * leaf);
    }
}

#[test]
fn shap_shares_out_the_leaves() {
    let mut random = Random(248);
    let (features, count, paths) = (5usize, 67usize, 11usize);
    let rows: Vec<f32> = (0..count * features).map(|_| between(&mut random, 0.0, 1.0)).collect();
    let (mut starts, mut splits, mut leaves) = (vec![0u32], vec![], vec![]);
    for _ in 0..paths {
        let first = random.bits() as usize;
        for k in 0..1 + random.bits() as usize % features {
            let lower = between(&mut random, -0.2, 0.5);
            splits.push(Split {
                feature: ((first % features + 2 * k) % features) as u32,
                lower,
                upper: lower + between(&mut random, 0.3, 0.9),
                zero: between(&mut random, 0.1, 0.9),
            });
        }
        starts.push(splits.len() as u32);
        leaves.push(between(&mut random, -2.0, 2.0));
    }
    // Shapley's definition, over all sets of features.
    let mut expected = vec![];
    for x in rows.chunks(features) {
        let worth = |set: usize| -> f64 {
            let mut sum = 0.0;
            for path in 0..paths {
                let mut product = f64::from(leaves[path]);
                for s in &splits[starts[path] as usize..starts[path + 1] as usize] {
                    let v = x[s.feature as usize];
                    let inside = if v >= s.lower && v < s.upper { 1.0 } else { 0.0 };
                    product *= if set >> s.feature & 1 == 1 { inside } else { f64::from(s.zero) };
                }
                sum += product;
            }
            sum
        };
        let worths: Vec<f64> = (0..1 << features).map(worth).collect();
        // How many orders have this many features before one of five.
        let orders = [24.0, 6.0, 4.0, 6.0, 24.0];
        for f in 0..features {
            let without = (0..1usize << features).filter(|set| set >> f & 1 == 0);
            let value: f64 = without
                .map(|set| orders[set.count_ones() as usize] / 120.0 * (worths[set | 1 << f] - worths[set]))
                .sum();
            expected.push(value);
        }
    }
    everywhere(|run| {
        let (x, first, tests, ends) = (run.upload(&rows), run.upload(&starts), run.upload(&splits), run.upload(&leaves));
        let values = run.zeros::<f32>(count * features);
        let config = LaunchConfig::tiled(count as u32, paths as u32, (16, 4));
        run.launch(shap::kernel(), config, args![features, &x, &first, &tests, &ends, &values]);
        // Leaves of up to 2, eleven of them; unwinding divides by parts of 0.1 and more.
        run.near(&values, &expected, 1e-4);
    });
}
