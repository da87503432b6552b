//! Frames of a game: brightness that adapts, flocks, rays through a sparse volume.

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
        Vec2 { x: f(self.x), y: f(self.y) }
    }
}

#[device]
impl Add for Vec2 {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { x: self.x + other.x, y: self.y + other.y }
    }
}

#[device]
impl Sub for Vec2 {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { x: self.x - other.x, y: self.y - other.y }
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
        .fold((Vec2 { x: 0.0, y: 0.0 }, 0), |(sum, count), (_, other)| (sum + each(other), count + 1));
    (count > 0).then(|| sum / count as f32)
}

#[kernel]
fn boids(rules: Rules, from: &[Boid], to: &mut [Boid]) {
    let i = global_id_x();
    if i >= from.len() {
        return;
    }
    let Boid { mut position, mut velocity } = from[i];
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
    to[i] = Boid { position: position.map(wrap), velocity };
}

#[test]
fn boids_flock() {
    let flock: Vec<Boid> = reals(300 * 4, 83)
        .chunks(4)
        .map(|c| Boid {
            position: Vec2 { x: (c[0] * 64.0).round() / 64.0, y: (c[1] * 64.0).round() / 64.0 },
            velocity: Vec2 { x: 0.1 * c[2], y: 0.1 * c[3] },
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
        let near = |reach: f32| flock.iter().filter(move |b| !std::ptr::eq(*b, own) && far(b, reach));
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
        run.launch(boids::kernel(), LaunchConfig::linear(flock.len(), 64), args![rules, &from, &to]);
        run.near(&to.cast().unwrap(), &expected, 1e-5);
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
    let target = if count > 0 { sum / count as f32 } else { exposure.darkest };
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
    let exposure = Exposure { darkest: -6.0, range: 12.0, low: 0.25, high: 0.75, speed: [3.0, 1.0], time: 0.5 };
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
        let at = if place(p) < 1.0 { 0 } else { (place(p) as usize).min(BINS - 1) };
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
            run.launch(adapt::kernel(), LaunchConfig::new(1, 1), args![exposure, &found, &now]);
            run.near(&now, &[next], 1e-5);
        });
    }
}

// 85: rays through an occupancy field

const SIDE: u32 = 16;
const CASCADES: u32 = 3;
const STEP: f32 = 1.0 / 32.0;

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Ray {
    origin: [f32; 3],
    direction: [f32; 3],
    near: f32,
    far: f32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Sample {
    position: [f32; 3],
    time: f32,
}

/// The bits of a 10-bit number with two zeros between them.
#[device]
const fn spread(v: u32) -> u32 {
    let v = (v | v << 16) & 0x0300_00ff;
    let v = (v | v << 8) & 0x0300_f00f;
    let v = (v | v << 4) & 0x030c_30c3;
    (v | v << 2) & 0x0924_9249
}

#[device]
fn morton([x, y, z]: [u32; 3]) -> u32 {
    spread(x) | spread(y) << 1 | spread(z) << 2
}

/// The smallest cascade that holds the position: cascade `c` reaches from `-2^(c-1)` to `2^(c-1)`.
#[device]
fn cascade_of(position: [f32; 3]) -> u32 {
    let most = position.iter().fold(0.0f32, |most, v| most.max(v.abs()));
    let exponent = (most.to_bits() >> 23) as i32 - 126;
    (exponent + 1).clamp(0, CASCADES as i32 - 1) as u32
}

#[device]
fn occupied(field: &[u8], cascade: u32, cell: [u32; 3]) -> bool {
    let index = cascade * SIDE.pow(3) + morton(cell);
    field[(index / 8) as usize] & (1 << (index % 8)) != 0
}

#[kernel]
fn march(rays: &[Ray], field: &[u8], room: usize, samples: &mut [Sample], counts: &mut [u16]) {
    let n = global_id_x();
    let Some(ray) = rays.get(n) else {
        return;
    };
    let along = |t: f32| -> [f32; 3] { std::array::from_fn(|k| ray.origin[k] + t * ray.direction[k]) };
    let mut slots = samples[n * room..(n + 1) * room].iter_mut();
    let mut time = ray.near;
    let mut count = 0;
    while time < ray.far && usize::from(count) < room {
        let position = along(time);
        let cascade = cascade_of(position);
        let bound = 0.5 * (1 << cascade) as f32;
        let cell = position.map(|v| {
            let place = (v / bound + 1.0) * 0.5 * SIDE as f32;
            place.clamp(0.0, SIDE as f32 - 1.0) as u32
        });
        if occupied(field, cascade, cell) {
            if let Some(slot) = slots.next() {
                *slot = Sample { position, time };
            }
            count += 1;
            time += STEP;
            continue;
        }
        // To the wall of the cell, in whole steps.
        let wall = (0..3)
            .filter(|&k| ray.direction[k] != 0.0)
            .map(|k| {
                let d = ray.direction[k];
                let edge = cell[k] as f32 + if d > 0.0 { 1.0 } else { 0.0 };
                ((edge / SIDE as f32 * 2.0 - 1.0) * bound - position[k]) / d
            })
            .fold(f32::INFINITY, f32::min);
        let target = time + wall.max(0.0);
        loop {
            time += STEP;
            if time >= target {
                break;
            }
        }
    }
    counts[n] = count;
}

#[test]
fn rays_sample_what_is_occupied() {
    let (rays, room) = (150usize, 24usize);
    let mut random = Random(85);
    let field: Vec<bool> = (0..CASCADES * SIDE.pow(3)).map(|_| random.bits() % 5 == 0).collect();
    // Powers of two, so that all arithmetic is exact.
    let rays: Vec<Ray> = (0..rays)
        .map(|_| Ray {
            origin: std::array::from_fn(|_| (random.bits() % 512) as f32 / 128.0 - 2.0 + 1.0 / 512.0),
            direction: std::array::from_fn(|axis| {
                let sizes = if axis == 0 { [0.25, 0.5, 1.0] } else { [0.0, 0.5, 1.0] };
                let size: f32 = sizes[random.bits() as usize % 3];
                if random.bits() % 2 == 0 { size } else { -size }
            }),
            near: (random.bits() % 8) as f32 / 64.0,
            far: 3.0,
        })
        .collect();
    let mut packed = vec![0u8; field.len() / 8];
    let side = SIDE as usize;
    for (i, full) in field.iter().enumerate() {
        let (c, x, y, z) = (i / side.pow(3), i % side, i / side % side, i / side / side % side);
        let place: usize = (0..4).map(|b| (x >> b & 1) << (3 * b) | (y >> b & 1) << (3 * b + 1) | (z >> b & 1) << (3 * b + 2)).sum();
        let at = c * side.pow(3) + place;
        packed[at / 8] |= u8::from(*full) << (at % 8);
    }
    let mut samples = vec![Sample::default(); rays.len() * room];
    let mut counts = Vec::new();
    for (n, ray) in rays.iter().enumerate() {
        let mut count = 0;
        let mut k = 0;
        // The step at which the ray leaves an empty cell, or goes on.
        while count < room {
            let time = ray.near + k as f32 / 32.0;
            if time >= ray.far {
                break;
            }
            let at = |k: u32| -> [f64; 3] {
                let t = f64::from(ray.near) + f64::from(k) / 32.0;
                std::array::from_fn(|a| f64::from(ray.origin[a]) + t * f64::from(ray.direction[a]))
            };
            let cascade = |p: [f64; 3]| (0..2).find(|c| p.iter().all(|v| v.abs() < 0.5 * f64::from(1 << c))).unwrap_or(2);
            let c = cascade(at(k));
            let scale = 8.0 / (0.5 * f64::from(1 << c));
            let cell = |k: u32| at(k).map(|v| (v * scale + 8.0).clamp(0.0, 15.0) as usize);
            let [x, y, z] = cell(k);
            if field[c as usize * 4096 + x + 16 * y + 256 * z] {
                samples[n * room + count] = Sample { position: at(k).map(|v| v as f32), time };
                count += 1;
                k += 1;
            } else {
                let inside = |k: u32| {
                    (0..3).all(|a| {
                        let (v, low) = (at(k)[a] * scale + 8.0, [x, y, z][a] as f64);
                        // A ray meets the wall ahead of it; outside the field it may be behind.
                        match ray.direction[a] {
                            d if d > 0.0 => v < low + 1.0,
                            d if d < 0.0 => v > low,
                            _ => true,
                        }
                    })
                };
                k += 1;
                while inside(k) {
                    k += 1;
                }
            }
        }
        counts.push(count as u16);
    }
    everywhere(|run| {
        let (all, bits) = (run.upload(&rays), run.upload(&packed));
        let (out, found) = (run.zeros::<Sample>(samples.len()), run.zeros::<u16>(rays.len()));
        run.launch(march::kernel(), LaunchConfig::linear(rays.len(), 64), args![&all, &bits, room, &out, &found]);
        run.holds(&found, &counts);
        run.holds(&out, &samples);
    });
}
