//! Vectors in space, for the ports that move in it.

use std::ops::{Add, AddAssign, Mul, Neg, Sub, SubAssign};

use perpetua::prelude::*;

use crate::harness::Random;

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
pub(crate) struct Vec3 {
    pub(crate) x: f32,
    pub(crate) y: f32,
    pub(crate) z: f32,
}

#[device]
impl Vec3 {
    pub(crate) const ZERO: Self = Self::new(0.0, 0.0, 0.0);

    pub(crate) const fn new(x: f32, y: f32, z: f32) -> Self {
        Self { x, y, z }
    }

    pub(crate) fn dot(self, other: Self) -> f32 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    pub(crate) fn cross(self, other: Self) -> Self {
        Self::new(
            self.y * other.z - self.z * other.y,
            self.z * other.x - self.x * other.z,
            self.x * other.y - self.y * other.x,
        )
    }

    pub(crate) fn length_squared(self) -> f32 {
        self.dot(self)
    }

    pub(crate) fn length(self) -> f32 {
        self.length_squared().sqrt()
    }

    pub(crate) fn map(self, each: impl Fn(f32) -> f32) -> Self {
        Self::new(each(self.x), each(self.y), each(self.z))
    }

    pub(crate) fn zip(self, other: Self, each: impl Fn(f32, f32) -> f32) -> Self {
        Self::new(
            each(self.x, other.x),
            each(self.y, other.y),
            each(self.z, other.z),
        )
    }
}

#[device]
impl From<[f32; 3]> for Vec3 {
    fn from([x, y, z]: [f32; 3]) -> Self {
        Self { x, y, z }
    }
}

#[device]
impl Add for Vec3 {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
}

#[device]
impl Sub for Vec3 {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }
}

#[device]
impl Mul<f32> for Vec3 {
    type Output = Self;

    fn mul(self, by: f32) -> Self {
        self.map(|x| x * by)
    }
}

#[device]
impl Neg for Vec3 {
    type Output = Self;

    fn neg(self) -> Self {
        self.map(|x| -x)
    }
}

#[device]
impl AddAssign for Vec3 {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

#[device]
impl SubAssign for Vec3 {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

/// Plain arithmetic of 64 bits, for the references.
pub(crate) type Wide = [f64; 3];

pub(crate) fn wide(v: Vec3) -> Wide {
    [f64::from(v.x), f64::from(v.y), f64::from(v.z)]
}

pub(crate) fn minus(a: Wide, b: Wide) -> Wide {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub(crate) fn inner(a: Wide, b: Wide) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(crate) fn outer(a: Wide, b: Wide) -> Wide {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

impl Random {
    /// From 0 to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }

    /// In a cube about the middle.
    pub(crate) fn place(&mut self, reach: f64) -> Vec3 {
        let [x, y, z] = std::array::from_fn(|_| self.between(-reach, reach) as f32);
        Vec3::new(x, y, z)
    }
}
