//! Where a shorter reading would mean something else than Rust does: which of equals is taken, how often functions are called, what ends
//! a loop in a loop, which name a closure means.

use perpetua::prelude::*;

use crate::harness::{check, near, panics};
use crate::sweep::{SIZE, numbers};

/// Ordered by the key alone.
#[derive(Clone, Copy, Debug, GpuType)]
#[repr(C)]
struct Keyed {
    key: u32,
    tag: u32,
}

#[device]
impl PartialEq for Keyed {
    fn eq(&self, other: &Keyed) -> bool {
        self.key == other.key
    }
}

impl Eq for Keyed {}

#[device]
impl PartialOrd for Keyed {
    fn partial_cmp(&self, other: &Keyed) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[device]
impl Ord for Keyed {
    fn cmp(&self, other: &Keyed) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

#[kernel]
fn equals(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let mut all = [Keyed { key: 0, tag: 0 }; 6];
    for (tag, keyed) in all.iter_mut().enumerate() {
        *keyed = Keyed {
            key: x[i + tag] % 3,
            tag: tag as u32,
        };
    }
    let least = all.iter().min().map_or(9, |keyed| keyed.tag);
    let most = all.iter().max().map_or(9, |keyed| keyed.tag);
    let least_value = all.into_iter().min().map_or(9, |keyed| keyed.tag);
    let most_value = all.into_iter().max().map_or(9, |keyed| keyed.tag);
    y[i] = least + 10 * most + 100 * least_value + 1000 * most_value;
}

#[test]
fn of_equals_the_first_is_the_least_and_the_last_the_greatest() {
    check(equals::kernel(), equals, &numbers(), &[0; SIZE]);
}

#[kernel]
fn inside_a_closure(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let (inside, wanted) = (50u32, 3u32);
    let mut o = Some(x[i] % 101);
    let taken = o.take_if(|v| *v > inside + wanted);
    y[i] = taken.unwrap_or(1000) * 3 + o.unwrap_or(2000);
}

#[test]
fn a_closure_means_the_names_around_it() {
    check(
        inside_a_closure::kernel(),
        inside_a_closure,
        &numbers(),
        &[0; SIZE],
    );
}

#[kernel]
fn skipped(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let part = &x[i..i + 5];
    let (mut calls, mut sum) = (0u32, 0u32);
    for (at, v) in part
        .iter()
        .map(|v| {
            calls += 1;
            v % 7
        })
        .enumerate()
        .skip(2)
    {
        sum += v * at as u32;
    }
    let mut more = 0u32;
    sum += part
        .iter()
        .map(|v| {
            more += 1;
            v % 5
        })
        .enumerate()
        .step_by(2)
        .fold(0, |all, (at, v)| all + v + at as u32);
    y[i] = calls * 10_000 + more * 1000 + sum;
}

#[test]
fn functions_are_called_for_what_is_skipped() {
    check(skipped::kernel(), skipped, &numbers(), &[0; SIZE]);
}

#[kernel]
fn looked_at(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let mut sum = 0u32;
    // The inner iterators are empty from the fourth on.
    for v in (0u32..).flat_map(|k| 0..3u32.saturating_sub(k)).take(6) {
        sum = (sum * 5 + v + 1) % 1009;
    }
    let mut made = 0u32;
    for v in (0u32..).inspect(|_| made += 1).flat_map(|k| k..k + 2).take(4) {
        sum = sum.wrapping_mul(3) + v;
    }
    y[i] = sum.wrapping_mul(31) ^ made ^ x[i];
}

#[test]
fn a_loop_in_a_loop_ends_when_all_are_taken() {
    check(looked_at::kernel(), looked_at, &numbers(), &[0; SIZE]);
}

#[kernel]
fn no_window(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let width = if i == 41 { 0 } else { 2 };
    for pair in x.windows(width) {
        y[i] = y[i].max(pair[0] + pair[1]);
    }
}

#[kernel]
fn no_step(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let step = if i == 17 { 0 } else { 3 };
    // Also where no item comes.
    for v in x.iter().filter(|v| **v > 1_000_000).step_by(step) {
        y[i] = y[i].max(*v);
    }
}

#[kernel]
fn no_step_of_a_slice(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let step = if i == 18 { 0 } else { 3 };
    for v in x.iter().step_by(step) {
        y[i] = y[i].max(*v);
    }
}

#[test]
fn windows_and_steps_of_nothing_are_faults() {
    let few = [3u32, 4, 5];
    panics(no_window::kernel(), no_window, &few, &[0u32; SIZE], 41);
    panics(no_step::kernel(), no_step, &few, &[0u32; SIZE], 17);
    panics(
        no_step_of_a_slice::kernel(),
        no_step_of_a_slice,
        &few,
        &[0u32; SIZE],
        18,
    );
}

/// With methods that scalars have, too, and slices.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Complex {
    re: f32,
    im: f32,
}

#[device]
impl Complex {
    fn exp(self) -> Self {
        let r = self.re.exp();
        Complex {
            re: r * self.im.cos(),
            im: r * self.im.sin(),
        }
    }

    fn sin(self) -> Self {
        Complex {
            re: self.re.sin() * self.im.cosh(),
            im: self.re.cos() * self.im.sinh(),
        }
    }

    fn cosh(self) -> Self {
        Complex {
            re: self.re.cosh() * self.im.cos(),
            im: self.re.sinh() * self.im.sin(),
        }
    }

    fn len(self) -> usize {
        3
    }

    fn swap(self) -> Self {
        Complex {
            re: self.im,
            im: self.re,
        }
    }

    fn fill(&mut self, value: f32) {
        self.re = value;
    }
}

#[device]
trait Sized2 {
    fn abs(self) -> f32;
}

#[device]
impl Sized2 for Complex {
    fn abs(self) -> f32 {
        (self.re.abs().powi(2) + self.im.abs().powi(2)).sqrt()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Modular<const N: u32>(u32);

#[device]
impl<const N: u32> Modular<N> {
    fn pow(self, n: u32) -> Self {
        let mut all = Modular(1);
        for _ in 0..n {
            all = Modular((all.0 * self.0) % N);
        }
        all
    }

    fn max(self, other: Self) -> Self {
        if self.0 < other.0 { other } else { self }
    }

    fn abs(self) -> u32 {
        self.0 ^ 5
    }
}

#[device]
fn made(x: f32) -> Complex {
    Complex { re: x, im: 0.5 }
}

#[kernel]
fn called_like_numbers(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    // Nothing here names the type.
    let mut c = made(x[i]);
    let len = c.len() as f32;
    let turned = c.swap();
    let parts = [c.exp().abs(), c.sin().re, c.cosh().im, turned.re, turned.im, len];
    c.fill(4.0);
    y[i] = parts.iter().sum::<f32>() + c.re;
}

#[kernel]
fn called_like_integers(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let m = Modular::<17>(x[i] % 17);
    y[i] = m.pow(5).max(Modular(3)).abs();
}

#[test]
fn methods_may_have_the_names_of_numbers_methods() {
    let x: Vec<f32> = (0..SIZE).map(|i| i as f32 * 0.03 - 1.0).collect();
    near(
        called_like_numbers::kernel(),
        called_like_numbers,
        &x,
        &[0.0f32; SIZE],
        |found, expected| {
            let differ = found.iter().zip(expected).find(|(a, b)| (*a - *b).abs() > 1e-4);
            assert_eq!(differ, None);
        },
    );
    check(
        called_like_integers::kernel(),
        called_like_integers,
        &numbers(),
        &[0; SIZE],
    );
}

#[device]
trait Start {
    fn zero() -> Self;
}

#[device]
impl Start for u8 {
    fn zero() -> u8 {
        9
    }
}

#[kernel]
fn of_the_users(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    y[i] = u32::from(u8::zero()) + x.get(2..4).map_or(7, |part| part[1] % 5);
    y[i] += x.get(i..i + 3).map_or(0, |part| part.len() as u32);
}

#[test]
fn functions_of_a_users_trait_come_first() {
    check(of_the_users::kernel(), of_the_users, &numbers(), &[0; SIZE]);
}

#[kernel]
fn called_for_all(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let part = &x[i..i + 6];
    let (mut all, mut some) = (0u32, 0u32);
    let last = part
        .iter()
        .map(|v| {
            all += 1;
            v % 11
        })
        .last();
    let fourth = part
        .iter()
        .map(|v| {
            some += 1;
            v % 13
        })
        .nth(3);
    y[i] = all * 1000 + some * 100 + last.unwrap_or(50) + fourth.unwrap_or(70);
}

#[test]
fn functions_are_called_for_all_before_the_one_that_is_picked() {
    check(called_for_all::kernel(), called_for_all, &numbers(), &[0; SIZE]);
}
