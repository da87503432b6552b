//! Statistics: Holt and Winters' smoothing, and Shapley values of trees.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

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
            8.0 + 0.05 * t + 0.1 * j + (t * 0.897).sin() + random.within(-0.3, 0.3)
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
            run.launch(
                kernel,
                config,
                args![
                    period, batch, horizon, &input, &choices, &seasons, &ahead, &squares
                ],
            );
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
        atomic_add(
            &mut values[row * features + split.feature as usize],
            sum * share * leaf,
        );
    }
}

#[test]
fn shap_shares_out_the_leaves() {
    let mut random = Random(248);
    let (features, count, paths) = (5usize, 67usize, 11usize);
    let rows: Vec<f32> = (0..count * features).map(|_| random.within(0.0, 1.0)).collect();
    let (mut starts, mut splits, mut leaves) = (vec![0u32], vec![], vec![]);
    for _ in 0..paths {
        let first = random.bits() as usize;
        for k in 0..1 + random.bits() as usize % features {
            let lower = random.within(-0.2, 0.5);
            splits.push(Split {
                feature: ((first % features + 2 * k) % features) as u32,
                lower,
                upper: lower + random.within(0.3, 0.9),
                zero: random.within(0.1, 0.9),
            });
        }
        starts.push(splits.len() as u32);
        leaves.push(random.within(-2.0, 2.0));
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
                    product *= if set >> s.feature & 1 == 1 {
                        inside
                    } else {
                        f64::from(s.zero)
                    };
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
        let (x, first, tests, ends) = (
            run.upload(&rows),
            run.upload(&starts),
            run.upload(&splits),
            run.upload(&leaves),
        );
        let values = run.zeros::<f32>(count * features);
        let config = LaunchConfig::tiled(count as u32, paths as u32, (16, 4));
        run.launch(
            shap::kernel(),
            config,
            args![features, &x, &first, &tests, &ends, &values],
        );
        // Leaves of up to 2, eleven of them; unwinding divides by parts of 0.1 and more.
        run.near(&values, &expected, 1e-4);
    });
}
