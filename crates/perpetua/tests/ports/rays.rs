//! Rays.

use std::ops::{Add, Mul, Sub};

use perpetua::prelude::*;

use crate::harness::everywhere;

// 44: ambient occlusion

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Vec3 {
    x: f32,
    y: f32,
    z: f32,
}

#[device]
impl Vec3 {
    const fn new(x: f32, y: f32, z: f32) -> Vec3 {
        Vec3 { x, y, z }
    }

    fn dot(self, other: Vec3) -> f32 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    fn cross(self, o: Vec3) -> Vec3 {
        Vec3::new(
            self.y * o.z - self.z * o.y,
            self.z * o.x - self.x * o.z,
            self.x * o.y - self.y * o.x,
        )
    }

    fn normalize(self) -> Vec3 {
        self * self.dot(self).sqrt().recip()
    }
}

#[device]
impl Add for Vec3 {
    type Output = Vec3;

    fn add(self, o: Vec3) -> Vec3 {
        Vec3::new(self.x + o.x, self.y + o.y, self.z + o.z)
    }
}

#[device]
impl Sub for Vec3 {
    type Output = Vec3;

    fn sub(self, o: Vec3) -> Vec3 {
        Vec3::new(self.x - o.x, self.y - o.y, self.z - o.z)
    }
}

#[device]
impl Mul<f32> for Vec3 {
    type Output = Vec3;

    fn mul(self, s: f32) -> Vec3 {
        Vec3::new(self.x * s, self.y * s, self.z * s)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Ray {
    from: Vec3,
    to: Vec3,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Sphere {
    center: Vec3,
    radius: f32,
}

#[device]
trait Surface {
    /// How far along the ray it is met.
    fn meets(&self, ray: &Ray) -> Option<f32>;
    fn normal(&self, at: Vec3) -> Vec3;
}

#[device]
impl Surface for Sphere {
    fn meets(&self, ray: &Ray) -> Option<f32> {
        let away = ray.from - self.center;
        let b = away.dot(ray.to);
        let d = b * b - (away.dot(away) - self.radius * self.radius);
        (d > 0.0).then(|| -b - d.sqrt()).filter(|t| *t > 1e-4)
    }

    fn normal(&self, at: Vec3) -> Vec3 {
        (at - self.center).normalize()
    }
}

/// Level, at this height.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Plane {
    height: f32,
}

#[device]
impl Surface for Plane {
    fn meets(&self, ray: &Ray) -> Option<f32> {
        if ray.to.y.abs() < 1e-6 {
            return None;
        }
        Some((self.height - ray.from.y) / ray.to.y).filter(|t| *t > 1e-4)
    }

    fn normal(&self, _: Vec3) -> Vec3 {
        Vec3::new(0.0, 1.0, 0.0)
    }
}

/// The nearest point and its normal.
#[device]
fn nearest(spheres: &[Sphere], plane: &Plane, ray: &Ray) -> Option<(Vec3, Vec3)> {
    let mut best = plane.meets(ray).map(|t| (t, plane.normal(ray.from)));
    for sphere in spheres {
        if let Some(t) = sphere.meets(ray) {
            if best.is_none_or(|(least, _)| t < least) {
                best = Some((t, sphere.normal(ray.from + ray.to * t)));
            }
        }
    }
    let (t, normal) = best?;
    Some((ray.from + ray.to * t, normal))
}

#[device]
fn uniform(state: &mut u32) -> f32 {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    (*state >> 8) as f32 / 16_777_216.0
}

#[kernel(block_size = (8, 8))]
fn ambient(size: u32, samples: u32, spheres: &[Sphere], plane: Plane, out: &mut [f32]) {
    let (x, y) = (global_id_x() as u32, global_id_y() as u32);
    if x >= size || y >= size {
        return;
    }
    let place = |v: u32| 2.0 * (v as f32 + 0.5) / size as f32 - 1.0;
    let ray = Ray {
        from: Vec3::new(0.0, 0.0, 0.0),
        to: Vec3::new(place(x), -place(y), -1.0).normalize(),
    };
    let lit = match nearest(spheres, &plane, &ray) {
        None => 0.0,
        Some((point, normal)) => {
            let side = if normal.x.abs() < 0.6 {
                Vec3::new(1.0, 0.0, 0.0)
            } else {
                Vec3::new(0.0, 1.0, 0.0)
            };
            let u = side.cross(normal).normalize();
            let v = normal.cross(u);
            let mut state = (y * size + x) * 747_796_405 + 1;
            let mut open = 0;
            for _ in 0..samples {
                let (height, angle) = (uniform(&mut state).sqrt(), 6.2831855 * uniform(&mut state));
                let flat = (1.0 - height * height).sqrt();
                let to = u * (flat * angle.cos()) + v * (flat * angle.sin()) + normal * height;
                let ray = Ray {
                    from: point + normal * 1e-3,
                    to,
                };
                if nearest(spheres, &plane, &ray).is_none() {
                    open += 1;
                }
            }
            open as f32 / samples as f32
        }
    };
    out[(y * size + x) as usize] = lit;
}

#[test]
fn ambient_light_is_occluded() {
    let size = 24usize;
    let sphere = |x: f32, z: f32| Sphere {
        center: Vec3::new(x, 0.0, z),
        radius: 0.5,
    };
    let spheres = [sphere(-2.0, -3.5), sphere(-0.5, -3.0), sphere(1.0, -2.2)];
    let plane = Plane { height: -0.5 };
    // What is met, in f64, by the quadratic equation; light of a plane alone, and of the sky.
    let seen = |x: usize, y: usize| {
        let place = |v: usize| 2.0 * (v as f64 + 0.5) / size as f64 - 1.0;
        let to = [place(x), -place(y), -1.0];
        let mut least: Option<(f64, usize)> = (to[1] < 0.0).then(|| (-0.5 / to[1], 3));
        for (k, s) in spheres.iter().enumerate() {
            let c = [f64::from(s.center.x), 0.0, f64::from(s.center.z)];
            let (a, b) = (
                to.iter().map(|v| v * v).sum::<f64>(),
                (0..3).map(|i| to[i] * c[i]).sum::<f64>(),
            );
            let d = b * b - a * (c.iter().map(|v| v * v).sum::<f64>() - 0.25);
            if d > 0.0 && least.is_none_or(|(t, _)| (b - d.sqrt()) / a < t) {
                least = Some(((b - d.sqrt()) / a, k));
            }
        }
        least.map(|(_, k)| k)
    };
    everywhere(|run| {
        let (there, out) = (run.upload(&spheres), run.zeros::<f32>(size * size));
        run.launch(
            ambient::kernel(),
            LaunchConfig::tiled(size as u32, size as u32, (8, 8)),
            args![size as u32, 32u32, &there, plane, &out],
        );
        let found = run.read(&out);
        let (mut far, mut near) = (Vec::new(), Vec::new());
        for y in 0..size {
            for x in 0..size {
                let light = found[y * size + x];
                match seen(x, y) {
                    None => assert_eq!(light, 0.0, "sky at {x}, {y}"),
                    Some(k) => {
                        assert!((0.0..=1.0).contains(&light));
                        if k < 3 && y < 11 {
                            far.push(light)
                        } else if k < 3 && y > 13 {
                            near.push(light)
                        }
                    }
                }
            }
        }
        // The upper halves of the spheres see the sky, the lower ones the plane.
        let mean = |v: &[f32]| v.iter().sum::<f32>() / v.len() as f32;
        assert!(
            mean(&far) > 0.8 && mean(&near) < 0.6,
            "{} {}",
            mean(&far),
            mean(&near)
        );
    });
}
