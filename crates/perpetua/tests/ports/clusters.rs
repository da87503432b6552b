//! Density clusters, and penalties of a sampler's logits.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};

// 226: density clusters

#[device]
fn apart<const D: usize>(p: [f32; D], q: [f32; D]) -> f32 {
    p.iter().zip(q).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// A point with enough neighbours, itself among them, is a core and its own cluster at first.
#[kernel(block_size = 64)]
fn dbscan_cores<const D: usize>(reach: f32, least: u32, points: &[[f32; D]], labels: &mut [u32]) {
    let tile = shared_array::<[[f32; D]; 64]>();
    let (lane, i) = (local_id_x(), global_id_x());
    let own = points.get(i).copied();
    let mut near = 0;
    for start in (0..points.len()).step_by(64) {
        let len = (points.len() - start).min(64);
        if lane < len {
            tile[lane] = points[start + lane];
        }
        sync_threads();
        if let Some(p) = own {
            near += tile[..len]
                .iter()
                .filter(|q| apart(p, **q) <= reach * reach)
                .count() as u32;
        }
        sync_threads();
    }
    if own.is_some() {
        labels[i] = if near >= least { i as u32 } else { u32::MAX };
    }
}

/// Cores take the least label in reach.
#[kernel]
fn dbscan_spread<const D: usize>(reach: f32, points: &[[f32; D]], labels: &mut [u32], changed: &mut u32) {
    let i = global_id_x();
    let Some(p) = points.get(i).copied() else {
        return;
    };
    let own = atomic_load(&labels[i]);
    if own == u32::MAX {
        return;
    }
    let near = points
        .iter()
        .enumerate()
        .filter(|(_, q)| apart(p, **q) <= reach * reach);
    let least = near.map(|(j, _)| atomic_load(&labels[j])).min();
    if let Some(least) = least
        && least < own
    {
        atomic_min(&mut labels[i], least);
        atomic_max(changed, 1);
    }
}

/// Other points take the least label of the cores in reach, if there are any.
#[kernel]
fn dbscan_borders<const D: usize>(reach: f32, points: &[[f32; D]], labels: &[u32], out: &mut [u32]) {
    let i = global_id_x();
    if i < out.len() {
        out[i] = match labels[i] {
            u32::MAX => {
                let near = points
                    .iter()
                    .zip(labels)
                    .filter(|(q, _)| apart(points[i], **q) <= reach * reach);
                near.map(|(_, label)| *label).min().unwrap_or(u32::MAX)
            }
            label => label,
        };
    }
}

#[test]
fn clusters_are_what_a_search_finds() {
    let mut random = Random(226);
    let (count, reach, least) = (101, 2.5f32, 4u32);
    // Whole numbers: distances are exact.
    let points: Vec<[f32; 2]> = (0..count)
        .map(|i| {
            let wide = if i % 5 == 0 { 40 } else { 9 };
            let middle = [0.0, 15.0, 26.0][i % 3];
            [0, 1].map(|_| middle + (random.bits() % wide) as f32)
        })
        .collect();
    let close = |i: usize, j: usize| {
        let [x, y] = [0, 1].map(|k| (points[i][k] - points[j][k]) as i32);
        4 * (x * x + y * y) <= 25
    };
    let is_core: Vec<bool> = (0..count)
        .map(|i| (0..count).filter(|j| close(i, *j)).count() >= least as usize)
        .collect();
    let mut expected = vec![u32::MAX; count];
    for first in 0..count {
        if is_core[first] && expected[first] == u32::MAX {
            let mut open = vec![first];
            expected[first] = first as u32;
            while let Some(i) = open.pop() {
                for j in 0..count {
                    if is_core[j] && close(i, j) && expected[j] == u32::MAX {
                        expected[j] = first as u32;
                        open.push(j);
                    }
                }
            }
        }
    }
    for i in 0..count {
        if !is_core[i] {
            let near = (0..count)
                .filter(|j| is_core[*j] && close(i, *j))
                .map(|j| expected[j])
                .min();
            expected[i] = near.unwrap_or(u32::MAX);
        }
    }
    assert!(expected.contains(&u32::MAX));
    everywhere(|run| {
        let points = run.upload(&points);
        let (labels, out) = (run.zeros::<u32>(count), run.zeros::<u32>(count));
        let config = LaunchConfig::linear(count, 64);
        run.launch(
            dbscan_cores::kernel::<2>(),
            config,
            args![reach, least, &points, &labels],
        );
        loop {
            let changed = run.zeros::<u32>(1);
            let config = LaunchConfig::linear(count, 64);
            run.launch(
                dbscan_spread::kernel::<2>(),
                config,
                args![reach, &points, &labels, &changed],
            );
            if run.read(&changed) == [0] {
                break;
            }
        }
        let config = LaunchConfig::linear(count, 64);
        run.launch(
            dbscan_borders::kernel::<2>(),
            config,
            args![reach, &points, &labels, &out],
        );
        run.holds(&out, &expected);
    });
}

// 227: penalties of logits

#[derive(Clone, Copy, PartialEq, GpuType)]
#[repr(u32)]
enum Repeated {
    Divided,
    Lowered,
    LoweredEachTime,
}

/// What a sequence asks of its sampler.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Taste {
    temperature: f32,
    penalty: f32,
    repeated: Repeated,
    least_len: u32,
    end: u32,
}

#[device]
impl Taste {
    fn logit(self, x: f32, times: u32) -> f32 {
        match (times, self.repeated) {
            (0, _) => x,
            (_, Repeated::Divided) if x < 0.0 => x * self.penalty,
            (_, Repeated::Divided) => x / self.penalty,
            (_, Repeated::Lowered) => x - self.penalty,
            (n, Repeated::LoweredEachTime) => x - self.penalty * n as f32,
        }
    }
}

/// A block a sequence; `width` is the vocabulary with its padding, which nothing may be drawn from.
#[kernel(block_size = 64)]
fn penalties(
    vocabulary: usize,
    width: usize,
    longest: usize,
    tastes: &[Taste],
    bias: &[f32],
    history: &[u32],
    lengths: &[u32],
    logits: &mut [f32],
) {
    const LEAST: f32 = -1e20;
    let times = shared_array::<[u32; 512]>();
    let (sequence, lane) = (group_id_x(), local_id_x());
    let taste = tastes[sequence];
    let length = lengths[sequence];
    let history = &history[sequence * longest..][..length as usize];
    for token in (lane..width).step_by(64) {
        times[token] = 0;
    }
    sync_threads();
    for token in history.iter().skip(lane).step_by(64) {
        atomic_add(&mut times[*token as usize], 1);
    }
    sync_threads();
    let row = &mut logits[sequence * width..(sequence + 1) * width];
    for (token, x) in row.iter_mut().enumerate().skip(lane).step_by(64) {
        let too_early = token == taste.end as usize && length < taste.least_len;
        *x = match bias.get(token) {
            Some(bias) if token < vocabulary && !too_early => {
                taste.logit((*x + bias) / taste.temperature, times[token])
            }
            _ => LEAST,
        };
    }
}

#[test]
fn repeated_tokens_are_less_likely() {
    let mut random = Random(227);
    let (sequences, vocabulary, width, longest) = (7usize, 301usize, 320usize, 90usize);
    let mut number = |n: u64| random.bits() % n;
    let logits: Vec<f32> = (0..sequences * width)
        .map(|_| number(2001) as f32 / 100.0 - 10.0)
        .collect();
    let bias: Vec<f32> = (0..vocabulary).map(|_| number(100) as f32 / 100.0).collect();
    let history: Vec<u32> = (0..sequences * longest)
        .map(|_| number(vocabulary as u64) as u32)
        .collect();
    let lengths: Vec<u32> = (0..sequences).map(|s| (s * 15) as u32).collect();
    let tastes: Vec<Taste> = (0..sequences)
        .map(|s| Taste {
            temperature: 0.5 + s as f32 / 4.0,
            penalty: 1.25,
            repeated: [Repeated::Divided, Repeated::Lowered, Repeated::LoweredEachTime][s % 3],
            least_len: 40,
            end: 2,
        })
        .collect();
    let mut expected = vec![-1e20f64; sequences * width];
    for s in 0..sequences {
        for token in 0..vocabulary {
            if token == 2 && lengths[s] < 40 {
                continue;
            }
            let said = &history[s * longest..s * longest + lengths[s] as usize];
            let n = said.iter().filter(|t| **t as usize == token).count();
            let x = (f64::from(logits[s * width + token]) + f64::from(bias[token])) / (0.5 + s as f64 / 4.0);
            expected[s * width + token] = match s % 3 {
                _ if n == 0 => x,
                0 => {
                    if x < 0.0 {
                        x * 1.25
                    } else {
                        x / 1.25
                    }
                }
                1 => x - 1.25,
                _ => x - 1.25 * n as f64,
            };
        }
    }
    everywhere(|run| {
        let (tastes, bias, history) = (run.upload(&tastes), run.upload(&bias), run.upload(&history));
        let (lengths, logits) = (run.upload(&lengths), run.upload(&logits));
        run.launch(
            penalties::kernel(),
            LaunchConfig::new(sequences as u32, 64),
            args![
                vocabulary, width, longest, &tastes, &bias, &history, &lengths, &logits
            ],
        );
        // A sum, two quotients and a difference of numbers up to 22.
        run.near(&logits, &expected, 1e-5);
    });
}
