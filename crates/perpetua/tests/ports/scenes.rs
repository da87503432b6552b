//! Frames of a game: brightness that adapts, and flocks.

use std::ops::{Add, AddAssign, Div, Mul, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::transformers::reals;

// 83: boids

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Vec2 {
    x: f32,
    y: f32,
}

#[device]
impl Vec2 {
    fn length(self) -> f32 {
        self.x.hypot(self.y)
    }

    fn map(self, f: impl Fn(f32) -> f32) -> Vec2 {
        Vec2 {
            x: f(self.x),
            y: f(self.y),
        }
    }
}

#[device]
impl Add for Vec2 {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            x: self.x + other.x,
            y: self.y + other.y,
        }
    }
}

#[device]
impl Sub for Vec2 {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            x: self.x - other.x,
            y: self.y - other.y,
        }
    }
}

#[device]
impl AddAssign for Vec2 {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

#[device]
impl Mul<f32> for Vec2 {
    type Output = Self;

    fn mul(self, by: f32) -> Self {
        self.map(|v| v * by)
    }
}

#[device]
impl Div<f32> for Vec2 {
    type Output = Self;

    fn div(self, by: f32) -> Self {
        self.map(|v| v / by)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Boid {
    position: Vec2,
    velocity: Vec2,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Rule {
    distance: f32,
    scale: f32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Rules {
    step: f32,
    cohesion: Rule,
    separation: Rule,
    alignment: Rule,
}

/// The mean of what `each` makes of the flock's others within reach.
#[device]
fn mean(own: usize, flock: &[Boid], reach: f32, each: impl Fn(&Boid) -> Vec2) -> Option<Vec2> {
    let (sum, count) = flock
        .iter()
        .enumerate()
        .filter(|(i, other)| *i != own && (other.position - flock[own].position).length() < reach)
        .fold((Vec2 { x: 0.0, y: 0.0 }, 0), |(sum, count), (_, other)| {
            (sum + each(other), count + 1)
        });
    (count > 0).then(|| sum / count as f32)
}

#[kernel]
fn boids(rules: Rules, from: &[Boid], to: &mut [Boid]) {
    let i = global_id_x();
    if i >= from.len() {
        return;
    }
    let Boid {
        mut position,
        mut velocity,
    } = from[i];
    if let Some(center) = mean(i, from, rules.cohesion.distance, |b| b.position) {
        velocity += (center - position) * rules.cohesion.scale;
    }
    for other in from.iter().enumerate().filter(|(k, _)| *k != i).map(|(_, b)| b) {
        let away = position - other.position;
        if away.length() < rules.separation.distance {
            velocity += away * rules.separation.scale;
        }
    }
    if let Some(course) = mean(i, from, rules.alignment.distance, |b| b.velocity) {
        velocity += course * rules.alignment.scale;
    }
    let speed = velocity.length();
    if speed > 0.1 {
        velocity = velocity * (0.1 / speed);
    }
    position += velocity * rules.step;
    let wrap = |v: f32| match v {
        v if v < -1.0 => 1.0,
        v if v > 1.0 => -1.0,
        v => v,
    };
    to[i] = Boid {
        position: position.map(wrap),
        velocity,
    };
}

#[test]
fn boids_flock() {
    let flock: Vec<Boid> = reals(300 * 4, 83)
        .chunks(4)
        .map(|c| Boid {
            position: Vec2 {
                x: (c[0] * 64.0).round() / 64.0,
                y: (c[1] * 64.0).round() / 64.0,
            },
            velocity: Vec2 {
                x: 0.1 * c[2],
                y: 0.1 * c[3],
            },
        })
        .collect();
    let rule = |distance, scale| Rule { distance, scale };
    let rules = Rules {
        step: 0.5,
        cohesion: rule(0.1, 0.02),
        separation: rule(0.0251, 0.05),
        alignment: rule(0.0252, 0.005),
    };
    let mut expected = Vec::new();
    for own in &flock {
        let far = |b: &&Boid, reach: f32| {
            let (x, y) = (b.position.x - own.position.x, b.position.y - own.position.y);
            f64::from(x * x + y * y).sqrt() < f64::from(reach)
        };
        let near = |reach: f32| {
            flock
                .iter()
                .filter(move |b| !std::ptr::eq(*b, own) && far(b, reach))
        };
        for k in [0, 1] {
            let of = |v: Vec2| f64::from(if k == 0 { v.x } else { v.y });
            let p = of(own.position);
            let mut v = of(own.velocity);
            let n = near(0.1).count().max(1) as f64;
            v += near(0.1).map(|b| of(b.position) - p).sum::<f64>() / n * 0.02;
            v += near(0.0251).map(|b| p - of(b.position)).sum::<f64>() * 0.05;
            let n = near(0.0252).count().max(1) as f64;
            v += near(0.0252).map(|b| of(b.velocity)).sum::<f64>() / n * 0.005;
            expected.push((p, v));
        }
    }
    let expected: Vec<f64> = expected
        .chunks(2)
        .flat_map(|pair| {
            let [(x, vx), (y, vy)] = [pair[0], pair[1]];
            let slow = (0.1 / vx.hypot(vy)).min(1.0);
            let place = |p: f64, v: f64| match p + v * slow * 0.5 {
                p if p.abs() > 1.0 => -p.signum(),
                p => p,
            };
            [place(x, vx), place(y, vy), vx * slow, vy * slow]
        })
        .collect();
    everywhere(|run| {
        let (from, to) = (run.upload(&flock), run.upload(&flock));
        run.launch(
            boids::kernel(),
            LaunchConfig::linear(flock.len(), 64),
            args![rules, &from, &to],
        );
        run.near(&to.cast::<f32>().unwrap(), &expected, 1e-5);
    });
}

// 84: automatic exposure

const BINS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Exposure {
    darkest: f32,
    range: f32,
    /// The middle part of the histogram that counts.
    low: f32,
    high: f32,
    speed: [f32; 2],
    time: f32,
}

#[device]
fn bin(exposure: &Exposure, [r, g, b]: [f32; 3]) -> usize {
    let luma = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    if luma < exposure.darkest.exp2() {
        return 0;
    }
    let part = ((luma.log2() - exposure.darkest) / exposure.range).clamp(0.0, 1.0);
    (part * (BINS as f32 - 2.0) + 1.0) as usize
}

/// Weights say how much the middle of the picture counts.
#[kernel(block_size = (16, 16))]
fn histogram(exposure: Exposure, width: usize, pixels: &[[f32; 3]], weights: [[u8; 4]; 4], bins: &mut [u32]) {
    let counts = shared_array::<[u32; BINS]>();
    let (x, y) = (global_id_x(), global_id_y());
    let height = pixels.len() / width;
    let lane = local_id_y() * 16 + local_id_x();
    if let Some(count) = counts.get_mut(lane) {
        *count = 0;
    }
    sync_threads();
    if x < width && y < height {
        let weight = weights[y * 4 / height][x * 4 / width];
        atomic_add(&mut counts[bin(&exposure, pixels[y * width + x])], weight.into());
    }
    sync_threads();
    if lane < BINS && counts[lane] > 0 {
        atomic_add(&mut bins[lane], counts[lane]);
    }
}

#[kernel]
fn adapt(exposure: Exposure, bins: &[u32], now: &mut [f32]) {
    let total = bins.iter().sum::<u32>() as f32;
    let (first, last) = ((total * exposure.low) as u32, (total * exposure.high) as u32);
    let (mut count, mut sum) = (0, 0.0);
    let sums = |sum: &mut u32, n: &u32| {
        *sum += *n;
        Some((*sum, *n))
    };
    for (i, (end, n)) in bins.iter().scan(0, sums).enumerate() {
        let inside = end.min(last).saturating_sub((end - n).max(first));
        let value = i as f32 / (BINS as f32 - 2.0) * exposure.range + exposure.darkest;
        count += inside;
        sum += inside as f32 * value;
    }
    let target = if count > 0 {
        sum / count as f32
    } else {
        exposure.darkest
    };
    let change = target - now[0];
    let [up, down] = exposure.speed.map(|s| s * exposure.time);
    now[0] += match change {
        c if c > up => up,
        c if c < -down => -down,
        c => c,
    };
}

#[test]
fn exposure_adapts() {
    let (width, height) = (45usize, 37usize);
    let exposure = Exposure {
        darkest: -6.0,
        range: 12.0,
        low: 0.25,
        high: 0.75,
        speed: [3.0, 1.0],
        time: 0.5,
    };
    let weights: [[u8; 4]; 4] = [[0, 1, 1, 0], [1, 4, 4, 1], [1, 4, 4, 2], [0, 1, 2, 0]];
    let mut random = Random(84);
    let luma = |p: &[f32; 3]| 0.2126 * f64::from(p[0]) + 0.7152 * f64::from(p[1]) + 0.0722 * f64::from(p[2]);
    let place = |p: &[f32; 3]| (luma(p).log2() + 6.0) / 12.0 * 62.0 + 1.0;
    let mut pixels = Vec::new();
    while pixels.len() < width * height {
        let pixel: [f32; 3] = std::array::from_fn(|_| ((random.bits() % 1000) as f32 / 60.0 - 8.0).exp2());
        // None so near to the edge of a bin that rounding decides.
        if (0.01..0.99).contains(&place(&pixel).rem_euclid(1.0)) {
            pixels.push(pixel);
        }
    }
    let mut bins = vec![0u32; BINS];
    let mut all = Vec::new();
    for (i, p) in pixels.iter().enumerate() {
        let (x, y) = (i % width, i / width);
        let at = if place(p) < 1.0 {
            0
        } else {
            (place(p) as usize).min(BINS - 1)
        };
        let weight = weights[y * 4 / height][x * 4 / width];
        bins[at] += u32::from(weight);
        all.extend(vec![at; usize::from(weight)]);
    }
    all.sort_unstable();
    let part = &all[(all.len() as f64 * 0.25) as usize..(all.len() as f64 * 0.75) as usize];
    let mean = part.iter().map(|b| *b as f64 / 62.0 * 12.0 - 6.0).sum::<f64>() / part.len() as f64;
    for start in [mean - 5.0, mean + 5.0, mean + 0.25] {
        let start = start as f32;
        let next = f64::from(start) + (mean - f64::from(start)).clamp(-0.5, 1.5);
        everywhere(|run| {
            let (pixels, now) = (run.upload(&pixels), run.upload(&[start]));
            let found = run.zeros::<u32>(BINS);
            let args = args![exposure, width, &pixels, weights, &found];
            let config = LaunchConfig::tiled(width as u32, height as u32, (16, 16));
            run.launch(histogram::kernel(), config, args);
            run.holds(&found, &bins);
            run.launch(
                adapt::kernel(),
                LaunchConfig::new(1, 1),
                args![exposure, &found, &now],
            );
            run.near(&now, &[next], 1e-5);
        });
    }
}
