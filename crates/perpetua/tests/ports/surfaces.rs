//! Light on rough materials.

use perpetua::prelude::*;

use crate::harness::{Random, everywhere};
use crate::shading::Vec3;
use crate::transformers::reals;

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
        let stretched = Vec3 {
            x: self.alpha * from.x,
            y: self.alpha * from.y,
            ..from
        }
        .normalized();
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
        Reflection {
            to,
            value: 0.0,
            density: 0.0,
        }
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
    let s = [
        w[1] * t[2] - w[2] * t[1],
        w[2] * t[0] - w[0] * t[2],
        w[0] * t[1] - w[1] * t[0],
    ];
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
        if a < 1.6 {
            (1.0 - 1.259 * a + 0.396 * a * a) / (a * (3.535 + 2.181 * a))
        } else {
            0.0
        }
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
        true => {
            1.0 / (std::f64::consts::PI * alpha.powi(2) * cos4 * (1.0 + tan2(normal) / alpha.powi(2)).powi(2))
        }
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
            let nothing = Reflection {
                to: Vec3::new(0.0, 0.0, 0.0),
                value: 0.0,
                density: 0.0,
            };
            let out = run.upload(&vec![nothing; count]);
            let (from, random) = (run.upload(&from), run.upload(&pairs));
            let config = LaunchConfig::linear(count, 64);
            if ggx {
                run.launch(
                    reflect::kernel::<Ggx>(),
                    config,
                    args![Ggx { alpha }, &from, &random, &out],
                );
            } else {
                let surface = Beckmann { alpha };
                run.launch(
                    reflect::kernel::<Beckmann>(),
                    config,
                    args![surface, &from, &random, &out],
                );
            }
            run.near(&out.cast::<f32>().unwrap(), &expected, 1e-3);
        });
    }
}
