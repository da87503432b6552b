//! Steps of neural networks.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

fn values(count: usize, seed: u64) -> Vec<f32> {
    let mut random = Random(seed);
    (0..count)
        .map(|_| (random.bits() % 2001) as f32 / 1000.0 - 1.0)
        .collect()
}

// 54: attention

const DEPTH: usize = 64;

/// The largest score so far, the sum of exponentials, and the weighted sum.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Online {
    most: f32,
    total: f32,
    sum: f32,
}

#[device]
impl Online {
    const EMPTY: Online = Online {
        most: f32::NEG_INFINITY,
        total: 0.0,
        sum: 0.0,
    };

    fn add(&mut self, score: f32, value: f32) {
        let most = self.most.max(score);
        let shrink = (self.most - most).exp();
        let weight = (score - most).exp();
        *self = Online {
            most,
            total: self.total * shrink + weight,
            sum: self.sum * shrink + weight * value,
        };
    }
}

#[kernel(block_size = 64)]
fn attention(
    queries: &[[f32; DEPTH]],
    keys: &[[f32; DEPTH]],
    values: &[[f32; DEPTH]],
    out: &mut [[f32; DEPTH]],
) {
    let scores = shared_array::<[f32; 64]>();
    let query = shared_array::<[f32; DEPTH]>();
    let (row, lane) = (group_id_x(), local_id_x());
    query[lane] = queries[row][lane];
    sync_threads();
    let scale = 1.0 / (DEPTH as f32).sqrt();
    let mut online = Online::EMPTY;
    for first in (0..keys.len()).step_by(64) {
        if let Some(key) = keys.get(first + lane) {
            scores[lane] = scale * query.iter().zip(key).map(|(q, k)| q * k).sum::<f32>();
        }
        sync_threads();
        let count = (keys.len() - first).min(64);
        for (k, score) in scores[..count].iter().enumerate() {
            online.add(*score, values[first + k][lane]);
        }
        sync_threads();
    }
    out[row][lane] = online.sum / online.total;
}

#[test]
fn attention_weighs_values() {
    let (rows, length) = (5usize, 150usize);
    let rows_of =
        |v: Vec<f32>| -> Vec<[f32; DEPTH]> { v.chunks(DEPTH).map(|c| c.try_into().unwrap()).collect() };
    let queries = rows_of(values(rows * DEPTH, 54).iter().map(|v| 4.0 * v).collect());
    let (keys, held) = (
        rows_of(values(length * DEPTH, 540)),
        rows_of(values(length * DEPTH, 541)),
    );
    let mut expected = Vec::new();
    for query in &queries {
        let dot = |key: &[f32; DEPTH]| -> f64 {
            query
                .iter()
                .zip(key)
                .map(|(q, k)| f64::from(*q) * f64::from(*k))
                .sum()
        };
        let weights: Vec<f64> = keys.iter().map(|key| (dot(key) / 8.0).exp()).collect();
        let total: f64 = weights.iter().sum();
        expected.extend((0..DEPTH).map(|d| {
            let sum: f64 = weights.iter().zip(&held).map(|(w, v)| w * f64::from(v[d])).sum();
            sum / total
        }));
    }
    everywhere(|run| {
        let (queries, keys, held) = (run.upload(&queries), run.upload(&keys), run.upload(&held));
        let out = run.zeros::<[f32; DEPTH]>(rows);
        run.launch(
            attention::kernel(),
            LaunchConfig::new(rows as u32, 64),
            args![&queries, &keys, &held, &out],
        );
        let found = run.upload(&run.read(&out).concat());
        run.near(&found, &expected, 1e-5);
    });
}

// 55: layer normalisation

/// How many, their mean, and the sum of squares about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Moments {
    count: f32,
    mean: f32,
    squares: f32,
}

#[device]
impl Moments {
    fn with(self, value: f32) -> Moments {
        let count = self.count + 1.0;
        let away = value - self.mean;
        let mean = self.mean + away / count;
        Moments {
            count,
            mean,
            squares: self.squares + away * (value - mean),
        }
    }

    fn merge(self, other: Moments) -> Moments {
        if other.count == 0.0 {
            return self;
        }
        let count = self.count + other.count;
        let away = other.mean - self.mean;
        let part = other.count / count;
        Moments {
            count,
            mean: self.mean + away * part,
            squares: self.squares + other.squares + away * away * self.count * part,
        }
    }

    fn shuffled(self, mask: u32) -> Moments {
        Moments {
            count: subgroup_shuffle_xor(self.count, mask),
            mean: subgroup_shuffle_xor(self.mean, mask),
            squares: subgroup_shuffle_xor(self.squares, mask),
        }
    }
}

#[kernel(block_size = 128)]
fn layer_norm(width: usize, epsilon: f32, x: &[f32], gamma: &[f32], beta: &[f32], out: &mut [f32]) {
    let parts = shared_array::<[Moments; 128]>();
    let (row, lane) = (group_id_x(), local_id_x());
    let own = row * width..(row + 1) * width;
    let values = &x[own.clone()];
    let nothing = Moments {
        count: 0.0,
        mean: 0.0,
        squares: 0.0,
    };
    let mut moments = values
        .iter()
        .skip(lane)
        .step_by(128)
        .fold(nothing, |moments, value| moments.with(*value));
    let mut mask = subgroup_size() / 2;
    while mask > 0 {
        moments = moments.merge(moments.shuffled(mask));
        mask /= 2;
    }
    if subgroup_lane() == 0 {
        parts[subgroup_id() as usize] = moments;
    }
    sync_threads();
    let subgroups = 128usize.div_ceil(subgroup_size() as usize);
    let all = parts[..subgroups].iter().fold(nothing, |a, b| a.merge(*b));
    let scale = (all.squares / width as f32 + epsilon).rsqrt();
    for i in (lane..width).step_by(128) {
        out[own.start + i] = (values[i] - all.mean) * scale * gamma[i] + beta[i];
    }
}

#[test]
fn layer_norm_normalises() {
    let (rows, width) = (4usize, 300usize);
    let (x, gamma, beta) = (values(rows * width, 55), values(width, 550), values(width, 551));
    let x: Vec<f32> = x
        .iter()
        .enumerate()
        .map(|(i, v)| v * 3.0 + (i / width) as f32)
        .collect();
    let mut expected = Vec::new();
    for row in x.chunks(width) {
        let mean = row.iter().map(|v| f64::from(*v)).sum::<f64>() / width as f64;
        let variance = row.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>() / width as f64;
        for (i, v) in row.iter().enumerate() {
            let normal = (f64::from(*v) - mean) / (variance + 1e-5).sqrt();
            expected.push(normal * f64::from(gamma[i]) + f64::from(beta[i]));
        }
    }
    everywhere(|run| {
        let (x, gamma, beta) = (run.upload(&x), run.upload(&gamma), run.upload(&beta));
        let out = run.zeros::<f32>(rows * width);
        run.launch(
            layer_norm::kernel(),
            LaunchConfig::new(rows as u32, 128),
            args![width, 1e-5f32, &x, &gamma, &beta, &out],
        );
        run.near(&out, &expected, 2e-5);
    });
}

// 56: gating of experts

const EXPERTS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Choice<const K: usize> {
    experts: [u32; K],
    weights: [f32; K],
}

#[kernel]
fn gate<const K: usize>(scores: &[[f32; EXPERTS]], choices: &mut [Choice<K>]) {
    let token = global_id_x();
    let Some(scores) = scores.get(token) else {
        return;
    };
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut weights = scores.map(|s| (s - most).exp());
    let total: f32 = weights.iter().sum();
    for weight in &mut weights {
        *weight /= total;
    }
    let mut choice = Choice {
        experts: [0; K],
        weights: [0.0; K],
    };
    for k in 0..K {
        let (best, weight) = weights
            .iter()
            .enumerate()
            .max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)))
            .unwrap();
        choice.experts[k] = best as u32;
        choice.weights[k] = *weight;
        weights[best] = -1.0;
    }
    let kept: f32 = choice.weights.iter().sum();
    choice.weights.iter_mut().for_each(|w| *w /= kept);
    choices[token] = choice;
}

#[test]
fn gating_takes_the_best() {
    let tokens = 130usize;
    let scores: Vec<[f32; EXPERTS]> = values(tokens * EXPERTS, 56)
        .chunks(EXPERTS)
        .map(|c| c.try_into().unwrap())
        .collect();
    everywhere(|run| {
        let (there, choices) = (run.upload(&scores), run.zeros::<Choice<3>>(tokens));
        let config = LaunchConfig::linear(tokens, 64);
        run.launch(gate::kernel::<3>(), config, args![&there, &choices]);
        for (scores, choice) in scores.iter().zip(run.read(&choices)) {
            let mut order: Vec<usize> = (0..EXPERTS).collect();
            order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
            let total: f64 = order[..3].iter().map(|e| f64::from(scores[*e]).exp()).sum();
            for (k, e) in order[..3].iter().enumerate() {
                assert_eq!(choice.experts[k] as usize, *e);
                assert!((f64::from(choice.weights[k]) - f64::from(scores[*e]).exp() / total).abs() < 1e-6);
            }
        }
    });
}

// 60: AdamW

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct AdamW {
    rate: f32,
    beta1: f32,
    beta2: f32,
    epsilon: f32,
    decay: f32,
    step: u32,
}

#[kernel]
fn adamw(how: AdamW, gradients: &[f16], parameters: &mut [f16], first: &mut [f32], second: &mut [f32]) {
    let i = global_id_x();
    if i >= parameters.len() {
        return;
    }
    let AdamW {
        rate,
        beta1,
        beta2,
        epsilon,
        decay,
        step,
    } = how;
    let gradient = f32::from(gradients[i]);
    let m = beta1 * first[i] + (1.0 - beta1) * gradient;
    let v = beta2 * second[i] + (1.0 - beta2) * gradient * gradient;
    (first[i], second[i]) = (m, v);
    let m = m / (1.0 - beta1.powi(step as i32));
    let v = v / (1.0 - beta2.powi(step as i32));
    let parameter = f32::from(parameters[i]);
    let next = parameter - rate * (m / (v.sqrt() + epsilon) + decay * parameter);
    parameters[i] = f16::from_f32(next);
}

#[test]
fn adamw_steps() {
    let n = 500usize;
    let gradients: Vec<Vec<f16>> = (0..3u64)
        .map(|s| values(n, 600 + s).into_iter().map(f16::from_f32).collect())
        .collect();
    let start: Vec<f16> = values(n, 60).into_iter().map(f16::from_f32).collect();
    let how = |step: u32| AdamW {
        rate: 0.01,
        beta1: 0.9,
        beta2: 0.99,
        epsilon: 1e-8,
        decay: 0.1,
        step,
    };
    everywhere(|run| {
        let (mut m, mut v) = (vec![0f64; n], vec![0f64; n]);
        let mut before = start.clone();
        let parameters = run.upload(&start);
        let (first, second) = (run.zeros::<f32>(n), run.zeros::<f32>(n));
        for (step, gradients) in (1u32..).zip(&gradients) {
            let there = run.upload(gradients);
            run.launch(
                adamw::kernel(),
                LaunchConfig::linear(n, 64),
                args![how(step), &there, &parameters, &first, &second],
            );
            let found = run.read(&parameters);
            for i in 0..n {
                let (g, p) = (f64::from(gradients[i]), f64::from(before[i]));
                m[i] = 0.9 * m[i] + 0.1 * g;
                v[i] = 0.99 * v[i] + 0.01 * g * g;
                let (mean, square) = (
                    m[i] / (1.0 - 0.9f64.powi(step as i32)),
                    v[i] / (1.0 - 0.99f64.powi(step as i32)),
                );
                let exact = p - 0.01 * (mean / (square.sqrt() + 1e-8) + 0.1 * p);
                // Half a unit of f16, and what f32 errs before it is rounded.
                let unit = 2f64.powi(exact.abs().max(6.2e-5).log2().floor() as i32 - 10);
                assert!(
                    (f64::from(found[i]) - exact).abs() <= 0.51 * unit + 1e-6,
                    "{i}: {} {exact}",
                    found[i]
                );
            }
            run.near(&first, &m, 1e-6);
            before = found;
        }
    });
}
