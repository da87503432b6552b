//! Traits: the user's own for own and primitive types, operators of own types, generic functions over both.

use std::cmp::Ordering;
use std::ops::{Add, AddAssign, Index, IndexMut, Mul, Neg, Sub};

use perpetua::prelude::*;
use perpetua_test_library::{Combine, reduce};

use crate::harness::{check, floats};

#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
struct Vec3 {
    x: f32,
    y: f32,
    z: f32,
}

#[device]
impl Vec3 {
    fn new(x: f32, y: f32, z: f32) -> Self {
        Self { x, y, z }
    }

    fn dot(self, other: Self) -> f32 {
        self.x * other.x + self.y * other.y + self.z * other.z
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
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

#[device]
impl Neg for Vec3 {
    type Output = Vec3;

    fn neg(self) -> Vec3 {
        Self {
            x: -self.x,
            y: -self.y,
            z: -self.z,
        }
    }
}

#[device]
impl Mul<f32> for Vec3 {
    type Output = Vec3;

    fn mul(self, by: f32) -> Vec3 {
        Vec3::new(self.x * by, self.y * by, self.z * by)
    }
}

#[device]
impl Mul<Vec3> for Vec3 {
    type Output = f32;

    fn mul(self, other: Vec3) -> f32 {
        self.dot(other)
    }
}

#[device]
impl Mul<Vec3> for f32 {
    type Output = Vec3;

    fn mul(self, vector: Vec3) -> Vec3 {
        vector * self
    }
}

#[device]
impl AddAssign for Vec3 {
    fn add_assign(&mut self, other: Vec3) {
        *self = *self + other;
    }
}

#[device]
impl Index<usize> for Vec3 {
    type Output = f32;

    fn index(&self, axis: usize) -> &f32 {
        match axis {
            0 => &self.x,
            1 => &self.y,
            _ => &self.z,
        }
    }
}

#[device]
impl IndexMut<usize> for Vec3 {
    fn index_mut(&mut self, axis: usize) -> &mut f32 {
        match axis {
            0 => &mut self.x,
            1 => &mut self.y,
            _ => &mut self.z,
        }
    }
}

#[device]
impl PartialEq for Vec3 {
    fn eq(&self, other: &Vec3) -> bool {
        self.x == other.x && self.y.abs() == other.y.abs()
    }
}

#[device]
impl Default for Vec3 {
    fn default() -> Self {
        Vec3::new(1.0, 2.0, 4.0)
    }
}

#[device]
impl From<f32> for Vec3 {
    fn from(x: f32) -> Vec3 {
        Vec3::new(x, x, x)
    }
}

#[device]
impl From<[f32; 3]> for Vec3 {
    fn from(parts: [f32; 3]) -> Vec3 {
        Vec3::new(parts[0], parts[1], parts[2])
    }
}

#[device]
impl Combine for Vec3 {
    const IDENTITY: Vec3 = Vec3 {
        x: 0.0,
        y: 0.0,
        z: 1.0,
    };

    fn combine(self, other: Vec3) -> Vec3 {
        Vec3::new(self.x + other.x, self.y.max(other.y), self.z + other.z)
    }
}

fn make(x: f32) -> Vec3 {
    Vec3::from(x)
}

#[device]
fn device_make(x: f32) -> Vec3 {
    Vec3::new(x, x + 1.0, -x)
}

#[kernel]
fn operators(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    let a = device_make(x[i]);
    let mut b = a * 2.0 - Vec3::from([x[i], 1.0, 0.5]);
    b += 0.5 * a;
    b += x[i] * -a;
    let c: Vec3 = x[i].into();
    let mut sum = a * b + c[0] + b[i % 3] + device_make(x[i] + 3.0).dot(a);
    b[1] = sum;
    b[2] += 1.5;
    if a == c || a != b {
        sum += b[1] * b[2];
    }
    let d: Vec3 = Default::default();
    y[i] = sum + (d + Vec3::default()) * Vec3::new(1.0, -1.0, 0.0);
}

#[test]
fn operators_of_own_types() {
    let x = floats(64);
    check(operators::kernel(), operators, &x, &[0.0f32; 64]);
    assert_eq!(make(2.0).z, 2.0);
}

#[test]
fn a_library_reduces_a_users_type() {
    let x = floats(256);
    check(reduce::kernel::<f32>(), reduce::<f32>, &x, &[0.0; 32]);
    let n: Vec<u32> = (0..128).map(|i| i * 3 + 1).collect();
    check(reduce::kernel::<u32>(), reduce::<u32>, &n, &[0; 32]);
    let v: Vec<Vec3> = x.chunks(2).map(|p| Vec3::new(p[0], p[1], 0.5)).collect();
    let nothing = [Vec3::new(0.0, 0.0, 0.0); 16];
    check(reduce::kernel::<Vec3>(), reduce::<Vec3>, &v, &nothing);
}

/// A curve, by its derivative: associated types, constants with defaults, a method that another trait brings too.
#[device]
trait Curve {
    type Slope;
    const STEP: f32 = 0.125;
    const NAME: u32;

    fn slope(self, at: f32) -> Self::Slope;

    fn size(&self) -> f32;

    fn abs(self) -> f32
    where
        Self: Sized,
    {
        Self::STEP * self.size() + Self::NAME as f32
    }
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Line {
    by: f32,
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Bend {
    towards: Vec3,
}

#[device]
impl Curve for Line {
    type Slope = f32;
    const NAME: u32 = 1;

    fn slope(self, _at: f32) -> f32 {
        self.by
    }

    fn size(&self) -> f32 {
        self.by * 3.0
    }
}

#[device]
impl Curve for Bend {
    type Slope = Vec3;
    const STEP: f32 = 0.5;
    const NAME: u32 = 2;

    fn slope(self, at: f32) -> Self::Slope {
        self.towards * at
    }

    fn size(&self) -> f32 {
        self.towards * self.towards
    }
}

#[device]
impl Curve for f32 {
    type Slope = f32;
    const NAME: u32 = 3;

    fn slope(self, at: f32) -> f32 {
        self * at
    }

    fn size(&self) -> f32 {
        self.abs()
    }
}

#[device]
trait Measure {
    fn measure(self) -> f32;
}

#[device]
impl Measure for f32 {
    fn measure(self) -> f32 {
        self * 0.5
    }
}

#[device]
impl Measure for Vec3 {
    fn measure(self) -> f32 {
        self.dot(self)
    }
}

#[device]
fn slope_of<C>(curve: C, at: f32) -> C::Slope
where
    C: Curve + Copy,
    C::Slope: Measure,
{
    curve.slope(at)
}

#[device]
fn measured<C: Curve + Copy>(curve: C, at: f32) -> f32
where
    C::Slope: Measure,
{
    let slope: <C as Curve>::Slope = slope_of(curve, at);
    slope.measure() + curve.abs() + C::STEP
}

#[device]
fn both(first: impl Measure, second: &impl Curve, by: f32) -> f32 {
    first.measure() * by + second.size()
}

#[kernel]
fn curves(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    let line = Line { by: x[i] };
    let bend = Bend {
        towards: device_make(x[i]),
    };
    let mut sum = measured(line, 0.5) + measured(bend, 2.0) + measured(x[i], 4.0);
    // The bound's `abs` is the trait's, the plain one is the number's.
    sum += x[i].abs() + <f32 as Curve>::abs(x[i]);
    y[i] = sum + both(x[i], &line, 2.0) + both(bend.towards, &x[i], 3.0) + <f32 as Curve>::STEP;
}

#[test]
fn associated_items_and_bounds() {
    let x = floats(64);
    check(curves::kernel(), curves, &x, &[0.0f32; 64]);
}

#[device]
fn total<T>(x: &[T], from: usize, count: usize) -> T
where
    T: Copy + Default + Add<Output = T> + Mul<f32, Output = T>,
{
    let mut sum = T::default();
    for k in 0..count {
        sum = sum + x[from + k] * 0.5;
    }
    sum
}

#[kernel]
fn totals<T: Copy + Default + Add<Output = T> + Mul<f32, Output = T>>(x: &[T], y: &mut [T]) {
    let i = global_id_x();
    y[i] = total(x, i, 3);
}

#[test]
fn operators_as_bounds() {
    let x = floats(66);
    check(totals::kernel::<f32>(), totals::<f32>, &x, &[0.0; 64]);
    let v: Vec<Vec3> = x.iter().map(|x| Vec3::new(*x, 1.0, -x)).collect();
    check(
        totals::kernel::<Vec3>(),
        totals::<Vec3>,
        &v,
        &[Vec3::default(); 64],
    );
}

/// Ordered by its key alone.
#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
struct Entry {
    key: f32,
    value: f32,
}

#[device]
impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.key == other.key
    }
}

#[device]
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        self.key.partial_cmp(&other.key)
    }
}

#[kernel]
fn ordered(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    if i >= y.len() {
        return;
    }
    let a = Entry {
        key: x[i],
        value: 1.0,
    };
    let b = Entry {
        key: x[(i + 1) % x.len()],
        value: 2.0,
    };
    let nan = Entry {
        key: f32::NAN,
        value: 4.0,
    };
    let mut all = if a < b { a.value } else { b.value };
    all += if a >= b { 8.0 } else { 16.0 };
    all += if a <= nan || nan > b { 32.0 } else { 64.0 };
    all += match (i as u32 % 7).cmp(&3) {
        Ordering::Less => 100.0,
        Ordering::Equal => 200.0,
        Ordering::Greater => 300.0,
    };
    let order = (i % 4).cmp(&1).reverse().then((i % 5).cmp(&2));
    all += if order.is_ge() { 1000.0 } else { 2000.0 };
    let least = x
        .iter()
        .copied()
        .min_by(|a, b| a.abs().partial_cmp(&b.abs()).unwrap());
    let greatest = x
        .iter()
        .map(|v| v * 2.0)
        .max_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    y[i] = all + least.unwrap() - greatest.unwrap();
}

#[test]
fn types_with_an_order() {
    check(ordered::kernel(), ordered, &floats(100), &[0.0; 100]);
}

#[device]
trait Total {
    fn total(&self) -> i32;

    fn twice(&self) -> i32 {
        self.total() * 2
    }
}

#[device]
impl Total for [i32; 3] {
    fn total(&self) -> i32 {
        self[0] + self[1] + self[2]
    }
}

#[device]
impl Total for (i32, u32) {
    fn total(&self) -> i32 {
        self.0 + self.1 as i32
    }
}

#[kernel]
fn sides(x: &[i32], y: &mut [i32]) {
    let i = global_id_x();
    let (a, t) = ([x[i], 2, 3], (x[i], 5u32));
    y[i] = a.total() * 100 + t.total() + a.twice() * 10_000 + t.twice();
}

#[test]
fn arrays_and_tuples_have_traits() {
    let x: Vec<i32> = (0..32).collect();
    check(sides::kernel(), sides, &x, &[0; 32]);
}
