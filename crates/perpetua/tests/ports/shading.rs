//! Textures in space.

use std::ops::{Add, Mul, Sub};

use perpetua::prelude::*;

use crate::harness::everywhere;

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
pub(crate) struct Vec3 {
    pub(crate) x: f32,
    pub(crate) y: f32,
    pub(crate) z: f32,
}

#[device]
impl Vec3 {
    pub(crate) const fn new(x: f32, y: f32, z: f32) -> Self {
        Self { x, y, z }
    }

    pub(crate) fn map(self, f: impl Fn(f32) -> f32) -> Self {
        Self::new(f(self.x), f(self.y), f(self.z))
    }

    pub(crate) fn dot(self, other: Self) -> f32 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    pub(crate) fn length(self) -> f32 {
        self.dot(self).sqrt()
    }

    pub(crate) fn normalized(self) -> Self {
        self * self.length().recip()
    }

    pub(crate) fn cross(self, other: Self) -> Self {
        Self::new(
            self.y * other.z - self.z * other.y,
            self.z * other.x - self.x * other.z,
            self.x * other.y - self.y * other.x,
        )
    }
}

#[device]
impl Add for Vec3 {
    type Output = Vec3;

    fn add(self, other: Vec3) -> Vec3 {
        Vec3::new(self.x + other.x, self.y + other.y, self.z + other.z)
    }
}

#[device]
impl Sub for Vec3 {
    type Output = Vec3;

    fn sub(self, other: Vec3) -> Vec3 {
        Vec3::new(self.x - other.x, self.y - other.y, self.z - other.z)
    }
}

#[device]
impl Mul<f32> for Vec3 {
    type Output = Vec3;

    fn mul(self, by: f32) -> Vec3 {
        self.map(|v| v * by)
    }
}

// 81: a Voronoi texture

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u8)]
enum Metric {
    Euclidean,
    Manhattan,
    Chebyshev,
    Minkowski,
}

#[device]
impl Metric {
    fn distance(self, a: Vec3, b: Vec3, exponent: f32) -> f32 {
        let Vec3 { x, y, z } = (a - b).map(f32::abs);
        match self {
            Metric::Euclidean => (a - b).length(),
            Metric::Manhattan => x + y + z,
            Metric::Chebyshev => x.max(y).max(z),
            Metric::Minkowski => [x, y, z]
                .map(|v| v.powf(exponent))
                .iter()
                .sum::<f32>()
                .powf(1.0 / exponent),
        }
    }
}

/// Jenkins' hash of four words.
#[device]
fn hash(words: [u32; 4]) -> u32 {
    let seed = 0xdead_beef + (4 << 2) + 13;
    let [kx, ky, kz, kw] = words;
    let [mut a, mut b, mut c] = [kx, ky, kz].map(|k| k.wrapping_add(seed));
    a = a.wrapping_sub(c) ^ c.rotate_left(4);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(6);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(8);
    b = b.wrapping_add(a);
    a = a.wrapping_sub(c) ^ c.rotate_left(16);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(19);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(4);
    b = b.wrapping_add(a);
    a = a.wrapping_add(kw);
    let mix = |to: &mut u32, from: u32, by: u32| *to = (*to ^ from).wrapping_sub(from.rotate_left(by));
    mix(&mut c, b, 14);
    mix(&mut a, c, 11);
    mix(&mut b, a, 25);
    mix(&mut c, b, 16);
    mix(&mut a, c, 4);
    mix(&mut b, a, 14);
    mix(&mut c, b, 24);
    c
}

/// Three numbers in [0, 1) of a cell.
#[device]
fn jitter(cell: [i32; 3]) -> Vec3 {
    let [x, y, z] = cell.map(|v| v as u32);
    let [a, b, c] = [0, 1, 2].map(|k| (hash([x, y, z, k]) >> 8) as f32 / (1 << 24) as f32);
    Vec3 { x: a, y: b, z: c }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Nearest {
    distances: [f32; 2],
    color: Vec3,
    position: Vec3,
}

#[kernel(block_size = (4, 4, 4))]
fn voronoi(metric: Metric, exponent: f32, randomness: f32, scale: f32, out: &mut [Nearest]) {
    let place = [global_id_x(), global_id_y(), global_id_z()];
    let (width, height) = (global_size_x(), global_size_y());
    let [x, y, z] = place.map(|v| v as f32 * scale - 2.0);
    let point = Vec3::new(x, y, z);
    let base = point.map(f32::floor);
    let local = point - base;
    let cell = [base.x as i32, base.y as i32, base.z as i32];
    let mut found = Nearest {
        distances: [f32::MAX; 2],
        color: Vec3::new(0.0, 0.0, 0.0),
        position: Vec3::new(0.0, 0.0, 0.0),
    };
    for k in -1..=1 {
        for j in -1..=1 {
            for i in -1..=1 {
                let offset = Vec3::new(i as f32, j as f32, k as f32);
                let neighbour = [cell[0] + i, cell[1] + j, cell[2] + k];
                let position = offset + jitter(neighbour) * randomness;
                let distance = metric.distance(position, local, exponent);
                let [first, second] = &mut found.distances;
                if distance < *first {
                    *second = *first;
                    *first = distance;
                    found.color = jitter(neighbour.map(|v| v ^ 0x5555));
                    found.position = position + base;
                } else if distance < *second {
                    *second = distance;
                }
            }
        }
    }
    out[(place[2] * height + place[1]) * width + place[0]] = found;
}

/// The hash as it was published: steps of mixing, then of finishing, in 64 bits.
fn published(words: [u32; 4]) -> u32 {
    let wrap = |v: u64| v & 0xffff_ffff;
    let turn = |v: u64, by: u32| wrap(v << by) | v >> (32 - by);
    let minus = |a: u64, b: u64| wrap(a + (1 << 32) - b);
    let mut s: [u64; 3] = std::array::from_fn(|k| 0xdead_beef + 16 + 13 + u64::from(words[k]));
    s = s.map(wrap);
    for (k, by) in [4, 6, 8, 16, 19, 4].into_iter().enumerate() {
        let (a, b, c) = ([0, 1, 2][k % 3], [2, 0, 1][k % 3], [1, 2, 0][k % 3]);
        s[a] = minus(s[a], s[b]) ^ turn(s[b], by);
        s[b] = wrap(s[b] + s[c]);
    }
    s[0] = wrap(s[0] + u64::from(words[3]));
    for (k, by) in [14, 11, 25, 16, 4, 14, 24].into_iter().enumerate() {
        let (to, from) = ([2, 0, 1][k % 3], [1, 2, 0][k % 3]);
        s[to] = minus(s[to] ^ s[from], turn(s[from], by));
    }
    s[2] as u32
}

#[test]
fn voronoi_finds_the_nearest_point() {
    let (side, scale, randomness) = (8usize, 0.437f32, 0.75f32);
    for (metric, exponent) in [
        (Metric::Euclidean, 1.0f32),
        (Metric::Manhattan, 1.0),
        (Metric::Chebyshev, 1.0),
        (Metric::Minkowski, 0.5),
    ] {
        let mut expected = Vec::new();
        for i in 0..side.pow(3) {
            let place = [i % side, i / side % side, i / side / side];
            let point = place.map(|v| f64::from(v as f32 * scale) - 2.0);
            let random = |cell: [i64; 3], k: u32| {
                let [x, y, z] = cell.map(|v| v as u32);
                f64::from(published([x, y, z, k]) >> 8) / 16_777_216.0
            };
            let mut all: Vec<(f64, [i64; 3])> = Vec::new();
            for n in 0..27 {
                let cell: [i64; 3] =
                    std::array::from_fn(|k| point[k].floor() as i64 + n / 3i64.pow(k as u32) % 3 - 1);
                let d: [f64; 3] = std::array::from_fn(|k| {
                    (cell[k] as f64 + random(cell, k as u32) * f64::from(randomness) - point[k]).abs()
                });
                let distance = match metric {
                    Metric::Euclidean => d.iter().map(|v| v * v).sum::<f64>().sqrt(),
                    Metric::Manhattan => d.iter().sum(),
                    Metric::Chebyshev => d.iter().copied().fold(0.0, f64::max),
                    Metric::Minkowski => d.iter().map(|v| v.sqrt()).sum::<f64>().powi(2),
                };
                all.push((distance, cell));
            }
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
            let cell = all[0].1;
            expected.extend([all[0].0, all[1].0]);
            expected.extend((0..3).map(|k| random(cell.map(|v| v ^ 0x5555), k)));
            expected.extend((0..3).map(|k| cell[k] as f64 + random(cell, k as u32) * f64::from(randomness)));
        }
        everywhere(|run| {
            let out = run.upload(&vec![
                Nearest {
                    distances: [0.0; 2],
                    color: Vec3::new(0.0, 0.0, 0.0),
                    position: Vec3::new(0.0, 0.0, 0.0),
                };
                side.pow(3)
            ]);
            let config = LaunchConfig::new((2, 2, 2), (4, 4, 4));
            run.launch(
                voronoi::kernel(),
                config,
                args![metric, exponent, randomness, scale, &out],
            );
            run.near(&out.cast::<f32>().unwrap(), &expected, 1e-4);
        });
    }
}
