//! What Rust programmers write first: defaults as derived, chains of two iterators, `Option`s as iterators, `into` whose type is
//! said later, functions by the names of modules, references in arrays.

use std::ops::{Add, Sub};

use perpetua::prelude::*;

use crate::harness::{check, floats};

const SIZE: usize = 64;

fn run(kernel: KernelFn, host: fn(&[f32], &mut [f32])) {
    check(kernel, host, &floats(SIZE), &[0.0; SIZE]);
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Sum {
    total: f32,
    parts: [u32; 2],
    kind: Kind,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, GpuType)]
#[repr(u32)]
enum Kind {
    First = 4,
    #[default]
    Second = 9,
}

/// Made by hand, without an attribute.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Scale(f32);

impl Default for Scale {
    fn default() -> Self {
        Scale(2.5)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
enum Shape {
    Circle(f32),
    #[default]
    Nothing,
}

#[kernel]
fn made(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    let mut sum = Sum {
        total: x[i],
        ..Default::default()
    };
    sum.parts[1] += 3;
    let kinds = [Kind::default(); 2];
    let shape = if x[i] > 0.5 {
        Shape::Circle(x[i])
    } else {
        Shape::default()
    };
    let none = x.get(i + SIZE).map(|v| Scale(*v)).unwrap_or_default();
    y[i] = sum.total * none.0 + sum.parts.iter().sum::<u32>() as f32;
    y[i] += match shape {
        Shape::Circle(r) => r,
        Shape::Nothing => kinds[1] as u32 as f32 + Sum::default().kind as u32 as f32,
    };
}

#[test]
fn defaults_need_no_attribute() {
    run(made::kernel(), made);
}

#[kernel]
fn chained(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    let own = [1.5, x[i], -2.0];
    let mut sum = 0.0;
    for (k, v) in x[..i % 5].iter().chain(&own).chain(&x[60..]).enumerate() {
        if k == 6 {
            break;
        }
        sum += *v * k as f32;
    }
    for (a, b) in own.into_iter().chain(own).rev().zip(x) {
        sum -= a * b;
    }
    sum += (0..i % 3).chain(7..9).map(|k| x[k]).fold(0.0, |a, b| a * 0.5 + b);
    let above = x[..0]
        .iter()
        .map(|v| v + 1.0)
        .chain([3.0, 4.0])
        .filter(|v| *v > x[i])
        .count();
    let position = own[1..].iter().chain(x).position(|v| *v == x[7]);
    y[i] = sum + above as f32 + position.map_or(0.25, |p| p as f32);
}

#[test]
fn iterators_go_on_with_others() {
    run(chained::kernel(), chained);
}

#[kernel]
fn flattened(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    let mut slots = [None; 4];
    for (k, slot) in slots.iter_mut().enumerate() {
        if x[(i + k) % SIZE] > 0.0 {
            *slot = Some((k, x[(i + k) % SIZE]));
        }
    }
    for (k, v) in slots.iter_mut().flatten() {
        *k += 1;
        *v *= 2.0;
    }
    let mut sum = 0.0;
    for (k, v) in slots.into_iter().flatten() {
        sum += v * k as f32;
    }
    let count = slots.iter().flatten().count();
    for (_, v) in slots[1].iter().chain(&slots[3]) {
        sum += v;
    }
    slots[2].iter_mut().for_each(|(_, v)| *v = 8.0);
    let checked = [Ok(1.0), Err(i), Ok(x[i])];
    sum += checked.iter().flatten().sum::<f32>();
    let doubled = x
        .iter()
        .flat_map(|v| (*v > 1.0).then_some(v * 2.0))
        .take(3)
        .sum::<f32>();
    y[i] = sum + count as f32 + slots[2].map_or(0.0, |s| s.1) + doubled;
}

#[test]
fn options_are_iterators() {
    run(flattened::kernel(), flattened);
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Complex {
    re: f32,
    im: f32,
}

#[device]
impl From<f32> for Complex {
    fn from(re: f32) -> Self {
        Complex { re, im: 1.0 }
    }
}

#[device]
impl From<[f32; 2]> for Complex {
    fn from([re, im]: [f32; 2]) -> Self {
        Complex { re, im }
    }
}

#[device]
impl Add for Complex {
    type Output = Complex;

    fn add(self, other: Complex) -> Complex {
        Complex {
            re: self.re + other.re,
            im: self.im + other.im,
        }
    }
}

#[device]
impl Sub for Complex {
    type Output = Complex;

    fn sub(self, other: Complex) -> Complex {
        self + Complex {
            re: -other.re,
            im: -other.im,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
enum Side {
    Cell(u32),
    Wall,
}

#[device]
impl From<i32> for Side {
    fn from(code: i32) -> Side {
        match code {
            -1 => Side::Wall,
            cell => Side::Cell(cell as u32),
        }
    }
}

#[kernel]
fn converted(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    let start = Complex { re: x[i], im: 0.5 };
    let mut z = start - x[i].into() + [x[0], x[1]].into();
    let other = x[3].into();
    if i % 2 == 0 {
        z = other;
    }
    let code = i as i32 % 3 - 1;
    let side = match code.into() {
        Side::Cell(k) => k as f32,
        Side::Wall => -4.0,
    };
    let wide: i32 = (i as u8).into();
    y[i] = z.re + z.im * side + wide as f32;
}

#[test]
fn into_takes_its_type_from_what_follows() {
    run(converted::kernel(), converted);
}

/// Called like a module of the prelude.
#[device]
fn volume(sides: [f32; 3]) -> f32 {
    sides.into_iter().product()
}

#[kernel]
fn referred(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    let [first, second, last] = [x.get(i), x.get(i + 1), x.last()];
    let (Some(first), Some(last)) = (first, last) else {
        return;
    };
    let [low, high] = [&x[0], &x[i]];
    let mut sorted = [*first, *last, second.copied().unwrap_or(0.5)];
    sorted.sort_unstable_by(f32::total_cmp);
    let least = x.iter().copied().min_by(f32::total_cmp).unwrap();
    let order = f32::total_cmp(low, high) as i32 as f32;
    y[i] = volume(sorted) + sorted[0] * 2.0 + least + order;
}

#[test]
fn functions_have_any_name_and_arrays_hold_references() {
    run(referred::kernel(), referred);
}

/// A value of kernels: its fields have no layout.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
struct Hit {
    at: Option<(u32, f32)>,
    normal: (f32, f32),
    tries: Result<u32, f32>,
}

#[device]
impl Hit {
    const NONE: Hit = Hit {
        at: None,
        normal: (0.5, 1.0),
        tries: Err(2.0),
    };

    fn nearer(self, other: Hit) -> Hit {
        match (self.at, other.at) {
            (Some((_, a)), Some((_, b))) if b < a => other,
            (None, Some(_)) => other,
            _ => self,
        }
    }
}

#[kernel]
fn held(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    let mut hits = [Hit::NONE; 3];
    for (k, hit) in hits.iter_mut().enumerate() {
        let v = x[(i + 5 * k) % SIZE];
        if v > 0.25 {
            hit.at = Some((k as u32, v));
            hit.tries = Ok(k as u32);
        }
        hit.normal.0 += v;
    }
    let best = hits.into_iter().fold(
        Hit {
            normal: (2.0, 3.0),
            ..Hit::NONE
        },
        Hit::nearer,
    );
    let Hit {
        at,
        normal: (a, b),
        tries,
    } = best;
    y[i] = at.map_or(-1.0, |(k, v)| v + k as f32) + a * b + tries.map_or_else(|e| e, |k| k as f32);
    if best == hits[1] {
        y[i] += 100.0;
    }
}

#[test]
fn structs_hold_what_has_no_layout() {
    run(held::kernel(), held);
}

#[kernel]
#[rustfmt::skip]
#[allow(redundant_semicolons, reason = "what a deleted line leaves behind")]
fn separated(x: &[f32], y: &mut [f32]) {
    ;
    let i = global_id_x();
    if x[i] > 0.5 {
        y[i] = x[i];
    };
    ;
}

#[test]
fn semicolons_by_themselves_are_nothing() {
    run(separated::kernel(), separated);
}
