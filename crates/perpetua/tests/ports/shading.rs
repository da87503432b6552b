//! Surfaces: textures in space, light on rough materials, brightness, and flocks.

use std::ops::{Add, Mul, Sub};

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::transformers::reals;

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

    fn map(self, f: impl Fn(f32) -> f32) -> Self {
        Self::new(f(self.x), f(self.y), f(self.z))
    }

    fn dot(self, other: Self) -> f32 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    fn length(self) -> f32 {
        self.dot(self).sqrt()
    }

    fn normalized(self) -> Self {
        self * self.length().recip()
    }

    fn cross(self, other: Self) -> Self {
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
                let cell: [i64; 3] = std::array::from_fn(|k| point[k].floor() as i64 + n / 3i64.pow(k as u32) % 3 - 1);
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
            run.launch(voronoi::kernel(), config, args![metric, exponent, randomness, scale, &out]);
            run.near(&out.cast().unwrap(), &expected, 1e-4);
        });
    }
}

// 82: microfacets

const PI: f32 = std::f32::consts::PI;

#[device]
trait Microfacets: GpuType {
    /// How densely normals point here.
    fn density(self, normal: Vec3) -> f32;

    /// Smith's function of shadowing.
    fn lambda(self, direction: Vec3) -> f32;

    /// A normal and its density for light that comes from `from`.
    fn draw(self, from: Vec3, random: [f32; 2]) -> (Vec3, f32);

    fn masking(self, direction: Vec3) -> f32 {
        1.0 / (1.0 + self.lambda(direction))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Ggx {
    alpha: f32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Beckmann {
    alpha: f32,
}

#[device]
fn tan_squared(w: Vec3) -> f32 {
    (w.x * w.x + w.y * w.y) / (w.z * w.z)
}

#[device]
impl Microfacets for Ggx {
    fn density(self, normal: Vec3) -> f32 {
        let alpha2 = self.alpha.powi(2);
        let t = 1.0 + (alpha2 - 1.0) * normal.z.powi(2);
        alpha2 / (PI * t * t)
    }

    fn lambda(self, direction: Vec3) -> f32 {
        ((1.0 + self.alpha.powi(2) * tan_squared(direction)).sqrt() - 1.0) / 2.0
    }

    fn draw(self, from: Vec3, [u, v]: [f32; 2]) -> (Vec3, f32) {
        let stretched = Vec3 { x: self.alpha * from.x, y: self.alpha * from.y, ..from }.normalized();
        let flat = stretched.x.hypot(stretched.y);
        let first = if flat > 0.0 {
            Vec3::new(-stretched.y, stretched.x, 0.0) * (1.0 / flat)
        } else {
            Vec3::new(1.0, 0.0, 0.0)
        };
        let second = stretched.cross(first);
        let (sin, cos) = (2.0 * PI * v).sin_cos();
        let radius = u.sqrt();
        let a = radius * cos;
        let share = 0.5 * (1.0 + stretched.z);
        let b = (1.0 - share) * (1.0 - a * a).sqrt() + share * radius * sin;
        let c = (1.0 - a * a - b * b).max(0.0).sqrt();
        let h = first * a + second * b + stretched * c;
        let normal = Vec3::new(self.alpha * h.x, self.alpha * h.y, h.z.max(1e-6)).normalized();
        let visible = self.masking(from) * from.dot(normal).max(0.0) / from.z;
        (normal, visible * self.density(normal))
    }
}

#[device]
impl Microfacets for Beckmann {
    fn density(self, normal: Vec3) -> f32 {
        let alpha2 = self.alpha.powi(2);
        (-tan_squared(normal) / alpha2).exp() / (PI * alpha2 * normal.z.powi(4))
    }

    fn lambda(self, direction: Vec3) -> f32 {
        let a = 1.0 / (self.alpha * tan_squared(direction).sqrt());
        if a >= 1.6 {
            return 0.0;
        }
        (1.0 - 1.259 * a + 0.396 * a * a) / (3.535 * a + 2.181 * a * a)
    }

    fn draw(self, _from: Vec3, [u, v]: [f32; 2]) -> (Vec3, f32) {
        let tan = (-self.alpha.powi(2) * (-u).ln_1p()).sqrt();
        let z = (1.0 + tan * tan).sqrt().recip();
        let (sin, cos) = (2.0 * PI * v).sin_cos();
        let normal = Vec3::new(cos * tan * z, sin * tan * z, z);
        (normal, self.density(normal) * z)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Reflection {
    to: Vec3,
    value: f32,
    density: f32,
}

#[kernel]
fn reflect<M: Microfacets>(surface: M, from: &[Vec3], random: &[[f32; 2]], out: &mut [Reflection]) {
    let i = global_id_x();
    let (Some(&from), Some(out)) = (from.get(i), out.get_mut(i)) else {
        return;
    };
    let (normal, density) = surface.draw(from, random[i]);
    let cos = from.dot(normal);
    let to = normal * (2.0 * cos) - from;
    *out = if to.z <= 0.0 || cos <= 0.0 {
        Reflection { to, value: 0.0, density: 0.0 }
    } else {
        let shadows = 1.0 / (1.0 + surface.lambda(from) + surface.lambda(to));
        Reflection {
            to,
            value: surface.density(normal) * shadows / (4.0 * from.z),
            density: density / (4.0 * cos),
        }
    };
}

type V = [f64; 3];

fn inner(a: V, b: V) -> f64 {
    a.iter().zip(&b).map(|(a, b)| a * b).sum()
}

fn unit(a: V) -> V {
    a.map(|v| v / inner(a, a).sqrt())
}

/// A normal that faces `from`, for GGX on a hemisphere that is stretched, after Heitz.
fn visible_normal(alpha: f64, from: V, [u, v]: [f64; 2]) -> V {
    let w = unit([alpha * from[0], alpha * from[1], from[2]]);
    let flat = (w[0] * w[0] + w[1] * w[1]).sqrt();
    let t = [-w[1] / flat, w[0] / flat, 0.0];
    let s = [w[1] * t[2] - w[2] * t[1], w[2] * t[0] - w[0] * t[2], w[0] * t[1] - w[1] * t[0]];
    let (r, phi) = (u.sqrt(), std::f64::consts::TAU * v);
    let p = r * phi.cos();
    let q = (1.0 - w[2]) / 2.0 * (1.0 - p * p).sqrt() + (1.0 + w[2]) / 2.0 * r * phi.sin();
    let n = (1.0 - p * p - q * q).max(0.0).sqrt();
    let h: V = std::array::from_fn(|k| p * t[k] + q * s[k] + n * w[k]);
    unit([alpha * h[0], alpha * h[1], h[2].max(1e-6)])
}

fn reflections(alpha: f64, ggx: bool, from: V, random: [f64; 2]) -> [f64; 5] {
    let tan2 = |w: V| 1.0 / (w[2] * w[2]) - 1.0;
    let lambda = |w: V| {
        if ggx {
            return ((1.0 + alpha * alpha * tan2(w)).sqrt() - 1.0) / 2.0;
        }
        let a = 1.0 / (alpha * tan2(w).sqrt());
        if a < 1.6 { (1.0 - 1.259 * a + 0.396 * a * a) / (a * (3.535 + 2.181 * a)) } else { 0.0 }
    };
    let normal = if ggx {
        visible_normal(alpha, from, random)
    } else {
        let theta = (alpha * (-(1.0 - random[0]).ln()).sqrt()).atan();
        let phi = std::f64::consts::TAU * random[1];
        [theta.sin() * phi.cos(), theta.sin() * phi.sin(), theta.cos()]
    };
    let cos4 = normal[2].powi(4);
    let d = match ggx {
        true => 1.0 / (std::f64::consts::PI * alpha.powi(2) * cos4 * (1.0 + tan2(normal) / alpha.powi(2)).powi(2)),
        false => (-tan2(normal) / alpha.powi(2)).exp() / (std::f64::consts::PI * alpha.powi(2) * cos4),
    };
    let cos = inner(from, normal);
    let to: V = std::array::from_fn(|k| 2.0 * cos * normal[k] - from[k]);
    if to[2] <= 0.0 || cos <= 0.0 {
        return [to[0], to[1], to[2], 0.0, 0.0];
    }
    let drawn = match ggx {
        true => d * cos / (from[2] * (1.0 + lambda(from))),
        false => d * normal[2],
    };
    let value = d / (1.0 + lambda(from) + lambda(to)) / (4.0 * from[2]);
    [to[0], to[1], to[2], value, drawn / (4.0 * cos)]
}

#[test]
fn microfacets_reflect() {
    let count = 300;
    let values = reals(count * 4, 82);
    let from: Vec<Vec3> = values
        .chunks(4)
        .map(|c| Vec3::new(c[0], c[1], 0.2 + c[2].abs()).normalized())
        .collect();
    let mut random = Random(82);
    let pairs: Vec<[f32; 2]> = (0..count)
        .map(|_| std::array::from_fn(|_| (random.bits() % 999) as f32 / 1000.0))
        .collect();
    let alpha = 0.4f32;
    for ggx in [true, false] {
        let all = from.iter().zip(&pairs).map(|(f, r)| {
            let from = unit([f.x, f.y, f.z].map(f64::from));
            reflections(f64::from(alpha), ggx, from, r.map(f64::from))
        });
        let expected: Vec<f64> = all.flatten().collect();
        everywhere(|run| {
            let nothing = Reflection { to: Vec3::new(0.0, 0.0, 0.0), value: 0.0, density: 0.0 };
            let out = run.upload(&vec![nothing; count]);
            let (from, random) = (run.upload(&from), run.upload(&pairs));
            let config = LaunchConfig::linear(count, 64);
            if ggx {
                run.launch(reflect::kernel::<Ggx>(), config, args![Ggx { alpha }, &from, &random, &out]);
            } else {
                let surface = Beckmann { alpha };
                run.launch(reflect::kernel::<Beckmann>(), config, args![surface, &from, &random, &out]);
            }
            run.near(&out.cast().unwrap(), &expected, 1e-3);
        });
    }
}
