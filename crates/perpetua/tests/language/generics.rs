//! Generic structs and generic blocks, a library's too.

use std::ops::{Add, Index, IndexMut, Mul};

use perpetua::prelude::*;
use perpetua_test_library::{Combine, Pair, reduce};

use crate::harness::{check, floats};

/// A short vector of any length.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Small<T, const N: usize> {
    a: [T; N],
}

#[device]
impl<T: Copy, const N: usize> Small<T, N> {
    const LEN: usize = N;

    fn splat(value: T) -> Self {
        Self { a: [value; N] }
    }

    fn map<U: Copy>(self, f: impl Fn(T) -> U) -> Small<U, N> {
        Small { a: self.a.map(f) }
    }

    fn len(&self) -> usize {
        Self::LEN
    }
}

#[device]
impl<T: Copy + Add<Output = T>, const N: usize> Add for Small<T, N> {
    type Output = Small<T, N>;

    fn add(self, other: Self) -> Self::Output {
        let mut sum = self;
        for i in 0..N {
            sum.a[i] = self.a[i] + other.a[i];
        }
        sum
    }
}

#[device]
impl<T: Copy + Mul<Output = T>, const N: usize> Mul<T> for Small<T, N> {
    type Output = Self;

    fn mul(self, by: T) -> Self {
        self.map(|x| x * by)
    }
}

#[device]
impl<T, const N: usize> Index<usize> for Small<T, N> {
    type Output = T;

    fn index(&self, i: usize) -> &T {
        &self.a[i]
    }
}

#[device]
impl<T, const N: usize> IndexMut<usize> for Small<T, N> {
    fn index_mut(&mut self, i: usize) -> &mut T {
        &mut self.a[i]
    }
}

/// What only vectors of three floats have.
#[device]
impl Small<f32, 3> {
    const UP: Self = Small { a: [0.0, 0.0, 1.0] };

    fn cross(self, other: Self) -> Self {
        Small {
            a: [
                self[1] * other[2] - self[2] * other[1],
                self[2] * other[0] - self[0] * other[2],
                self[0] * other[1] - self[1] * other[0],
            ],
        }
    }
}

#[kernel]
fn vectors(x: &[f32], y: &mut [Small<f32, 3>]) {
    let i = global_id_x();
    if i + 3 < x.len() && i < y.len() {
        let v = Small {
            a: [x[i], x[i + 1], x[i + 2]],
        };
        let mut sum = v + Small::splat(0.5) * 2.0;
        sum[1] += x[i + 3];
        let up = Small::<f32, 3>::UP;
        y[i] = sum.cross(up)
            + v.map(|x| if x > 0.0 { 1u32 } else { 0 })
                .map(|n| n as f32 + v.len() as f32);
    }
}

#[test]
fn short_vectors_of_any_length() {
    let zero = Small { a: [0.0f32; 3] };
    check(vectors::kernel(), vectors, &floats(100), &[zero; 90]);
}

/// A structure in structures, with a parameter that is no length and no type.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Fixed<const FRACTION: u32> {
    bits: i32,
}

#[device]
impl<const FRACTION: u32> Fixed<FRACTION> {
    const ONE: Fixed<FRACTION> = Fixed { bits: 1 << FRACTION };

    fn of(x: f32) -> Self {
        Fixed {
            bits: (x * Self::ONE.bits as f32) as i32,
        }
    }
}

#[device]
impl<const FRACTION: u32> Mul for Fixed<FRACTION> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Fixed {
            bits: (self.bits * other.bits) >> FRACTION,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Both<T, const F: u32> {
    values: [Pair<T, Fixed<F>>; 2],
    last: Small<T, 2>,
}

#[device]
fn doubled<T: Copy + Add<Output = T>, const F: u32>(of: Both<T, F>) -> Both<T, F> {
    let Both { values: [p, q], last } = of;
    let twice = |p: Pair<T, Fixed<F>>| Pair {
        a: p.a + p.a,
        b: p.b * Fixed::of(2.0),
    };
    Both {
        values: [twice(q), twice(p)],
        last: last + last,
    }
}

#[kernel]
fn nested(x: &[f32], y: &mut [Both<f32, 8>]) {
    let i = global_id_x();
    if i < y.len() {
        let (a, b) = (x[2 * i], x[2 * i + 1]);
        let both = Both {
            values: [Pair::new(a, Fixed::of(b)), Pair::new(b, Fixed::<8>::ONE)],
            last: Small { a: [a, b] },
        };
        y[i] = doubled(both);
    }
}

#[test]
fn structures_in_structures() {
    let pair = Pair::new(0.0f32, Fixed::<8> { bits: 0 });
    let zero = Both {
        values: [pair; 2],
        last: Small::splat(0.0),
    };
    check(nested::kernel(), nested, &floats(128), &[zero; 64]);
}

#[kernel]
fn sums(x: &[f32], y: &mut [Pair<u32, f32>]) {
    let i = global_id_x();
    if i < y.len() {
        let p = Pair::new(x[i], x[i] as u32 | 1);
        let q = Pair { a: 1.5f32, b: 3 }.combine(p);
        y[i] = q.swapped().twice().combine(Pair::<u32, f32>::IDENTITY);
    }
}

#[test]
fn a_librarys_generic_type_and_its_trait() {
    check(sums::kernel(), sums, &floats(64), &[Pair::new(0u32, 0.0f32); 64]);
}

#[test]
fn a_library_reduces_its_own_generic_type() {
    let input: Vec<Pair<f32, Pair<u32, f32>>> = floats(120)
        .iter()
        .map(|&x| Pair::new(x, Pair::new(x as u32 | 1, 2.0 * x)))
        .collect();
    let zero = Pair::new(0.0, Pair::new(0, 0.0));
    check(
        reduce::kernel::<Pair<f32, Pair<u32, f32>>>(),
        reduce,
        &input,
        &[zero; 12],
    );
}

/// For all types that have another trait.
#[device]
trait Norm {
    fn norm(self) -> f32;

    fn is_long(self) -> bool
    where
        Self: Sized,
    {
        self.norm() > 4.0
    }
}

#[device]
trait Real: Copy {
    fn real(self) -> f32;
}

#[device]
impl Real for f32 {
    fn real(self) -> f32 {
        self
    }
}

#[device]
impl Real for i32 {
    fn real(self) -> f32 {
        self as f32
    }
}

#[device]
impl<T: Real> Norm for T {
    fn norm(self) -> f32 {
        self.real().abs()
    }
}

#[device]
impl<T: Real, const N: usize> Norm for Small<T, N> {
    fn norm(self) -> f32 {
        let mut sum = 0.0;
        for x in self.a {
            sum += x.norm();
        }
        sum
    }
}

#[kernel]
fn norms(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    if i < y.len() {
        let v = Small { a: [x[i], -1.0] };
        let w = Small { a: [x[i] as i32; 4] };
        y[i] = v.norm() + w.norm();
        if w.is_long() || x[i].is_long() {
            y[i] += 100.0;
        }
    }
}

#[test]
fn a_trait_for_all_types_of_another() {
    check(norms::kernel(), norms, &floats(64), &[0.0; 64]);
}

/// What derives write for a generic struct.
#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, GpuType)]
#[repr(C)]
struct Keyed<K, V> {
    key: K,
    value: V,
}

#[kernel]
fn largest(x: &[Keyed<u32, f32>], y: &mut [Keyed<u32, f32>]) {
    let mut best = Keyed::default();
    for item in x {
        if *item > best {
            best = *item;
        }
    }
    if let Some(out) = y.get_mut(global_id_x()) {
        *out = best;
    }
}

#[test]
fn what_derives_write_for_a_generic_struct() {
    let x: Vec<Keyed<u32, f32>> = floats(40)
        .iter()
        .map(|&value| Keyed {
            key: (value.abs() as u32) % 3,
            value,
        })
        .collect();
    check(largest::kernel(), largest, &x, &[Keyed::default(); 4]);
}
