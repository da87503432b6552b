//! Iterators that are known for ones by their types alone: what calls give, parts of values, and types of one's own.

use std::ops::{Range, RangeInclusive};

use perpetua::prelude::*;

use crate::harness::{check, panics};
use crate::sweep::SIZE;

#[device]
fn mix(all: u32, v: u32) -> u32 {
    all.wrapping_mul(5) ^ v.wrapping_mul(0x9e37_79b9).rotate_left(7)
}

fn run(kernel: KernelFn, host: fn(&[u32], &mut [u32])) {
    let x: Vec<u32> = (0..SIZE as u32).collect();
    check(kernel, host, &x, &[0; SIZE]);
}

#[device]
fn part(i: usize) -> Range<usize> {
    i / 2..i
}

#[device]
fn bytes(i: u8) -> RangeInclusive<u8> {
    i..=255
}

#[device]
fn signed(i: i32) -> Range<i32> {
    -i..i / 2
}

#[device]
fn two(i: usize) -> (Range<usize>, RangeInclusive<usize>) {
    (0..i / 2, i / 2..=i)
}

#[kernel]
fn stepped(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let mut all = 1u32;
    for j in part(i).rev().step_by(3) {
        all = mix(all, x[j]);
    }
    for j in part(i).step_by(3).rev() {
        all = mix(all, x[j]);
    }
    for j in part(i).skip(3).take(i % 5) {
        all = mix(all, x[j]);
    }
    for j in part(i).step_by(2).skip(1).step_by(2).rev().take(3) {
        all = mix(all, x[j]);
    }
    for b in bytes((i % 64) as u8 * 3).rev().step_by(7) {
        all = mix(all, b as u32);
    }
    for b in bytes(0).step_by(100) {
        all = mix(all, b as u32);
    }
    for b in bytes(3).step_by(300) {
        all = mix(all, b as u32);
    }
    for s in signed(i as i32).rev() {
        all = mix(all, s as u32);
    }
    for s in signed(i as i32).step_by(5) {
        all = mix(all, s as u32);
    }
    let back = part(i).rev();
    for j in back {
        all = mix(all, x[j]);
    }
    y[i] = all;
}

#[kernel]
fn ended(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let mut all = part(i).map(|j| x[j]).sum::<u32>();
    all = part(i).rev().fold(all, |all, j| mix(all, x[j]));
    all = mix(
        all,
        part(i).any(|j| x[j] == 9) as u32 + part(i).all(|j| x[j] < 30) as u32 * 2,
    );
    all = mix(all, part(i).position(|j| x[j] % 7 == 6).map_or(99, |p| p as u32));
    all = mix(all, part(i).find(|j| x[*j] % 7 == 6).map_or(99, |p| p as u32));
    // Behind a `let`, the reader has to see it.
    let odd = part(i).into_iter().enumerate().filter(|(k, j)| k * j % 3 == 1);
    all = odd.map(|(k, j)| (k + j) as u32).fold(all, mix);
    // In the closure of one, another.
    let most = part(i).map(|j| part(j).map(|l| x[l]).sum::<u32>()).max();
    all = mix(all, most.unwrap_or(5));
    part(i).for_each(|j| all = mix(all, x[j]));
    all = mix(all, signed(i as i32).min().unwrap_or(4) as u32);
    all = mix(all, bytes(9).max().unwrap() as u32);
    all = mix(all, part(i).min_by_key(|j| (x[*j] * 7) % 11).unwrap_or(3) as u32);
    let (a, b) = two(i);
    for j in b.clone().rev() {
        all = mix(all, x[j]);
    }
    all = mix(all, a.clone().map(|j| x[j]).sum::<u32>());
    all = mix(all, b.clone().filter(|j| j % 3 == 1).count() as u32);
    let parts = [0..i / 3, i / 3..i];
    for p in parts.iter() {
        all = mix(all, p.clone().map(|j| x[j]).max().unwrap_or(4));
    }
    y[i] = mix(all, parts[1].clone().map(|j| x[j]).sum());
}

#[kernel]
fn looped(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let mut all = 1u32;
    for (a, b) in part(i).zip(x) {
        all = mix(all, a as u32 * b);
    }
    for (a, b) in part(i).rev().enumerate().filter(|(a, b)| (a + b) % 3 != 0) {
        all = mix(all, (a * b) as u32);
    }
    'outer: for v in part(i).map(|j| x[j] * 2).take_while(|v| *v < 50) {
        for w in part(v as usize).flat_map(|j| part(j).map(|l| l as u32)) {
            if w > 20 {
                continue 'outer;
            }
            all = mix(all, w);
        }
        if v == 40 {
            break;
        }
        all = mix(all, v);
    }
    for (a, b) in x[..i].iter().filter(|v| **v % 2 == 1).zip(part(i).rev()) {
        all = mix(all, a * b as u32);
    }
    for (a, b) in x[..i].iter().zip(part(i).map(|j| j * 3)) {
        all = mix(all, a * b as u32);
    }
    let either = if i % 2 == 0 { part(i) } else { 0..3 };
    for j in either.clone().map(|j| j * 2).chain(0..4) {
        all = mix(all, j as u32);
    }
    for j in (0..4).chain(either.clone().rev()) {
        all = mix(all, j as u32);
    }
    y[i] = all;
}

#[kernel]
fn got(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let (a, b) = two(i);
    let mut all = x.get(a).map_or(7, |p| p.len() as u32);
    all = mix(all, x.get(b).map_or(7, |p| p.len() as u32));
    all = mix(all, x.get(two(i + 40).0).map_or(7, |p| p.iter().sum::<u32>()));
    all = mix(all, x.get(two(i + 40).1).map_or(7, |p| p.iter().sum::<u32>()));
    let mut some = [1u32, 2, 3, 4];
    if let Some(p) = some.get_mut(two(i).0) {
        for v in p {
            *v += 10;
        }
    }
    y[i] = some.iter().fold(all, |all, v| mix(all, *v));
}

/// Methods with the names of iterators'.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Own {
    a: u32,
}

#[device]
impl Own {
    fn map(self, f: impl Fn(u32) -> u32) -> Own {
        Own { a: f(self.a) }
    }
    fn sum(self) -> u32 {
        self.a + 100
    }
    fn count(&self) -> u32 {
        self.a * 3
    }
    fn fold(self, a: u32, f: impl Fn(u32, u32) -> u32) -> u32 {
        f(a, self.a)
    }
    fn any(&self, f: impl Fn(u32) -> bool) -> bool {
        f(self.a)
    }
    fn rev(self) -> [u32; 2] {
        [self.a, 3]
    }
    fn zip(self, b: u32) -> [u32; 2] {
        [self.a, b]
    }
    fn enumerate(self) -> Option<u32> {
        if self.a > 4 { Some(self.a) } else { None }
    }
}

#[device]
fn own(a: u32) -> Own {
    Own { a }
}

/// An iterator with a method of its own.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Count {
    at: u32,
    end: u32,
}

#[device]
impl Iterator for Count {
    type Item = u32;
    fn next(&mut self) -> Option<u32> {
        if self.at < self.end {
            self.at += 2;
            Some(self.at)
        } else {
            None
        }
    }
}

#[device]
impl Count {
    fn skip(self, n: u32) -> [u32; 2] {
        [n, self.end]
    }
}

#[device]
fn counts(end: u32) -> Count {
    Count { at: 0, end }
}

#[device]
fn maybe(a: u32) -> Option<u32> {
    if a % 3 == 1 { Some(a) } else { None }
}

#[kernel]
fn owned(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let o = own(x[i]);
    let mut all = o.map(|v| v * 3).sum() + own(3).sum() + o.count() * 5;
    all += own(x[i]).fold(4, |a, b| a * b) + o.any(|v| v > 4) as u32;
    for v in own(x[i]).rev() {
        all = mix(all, v);
    }
    for v in o.zip(4) {
        all = mix(all, v);
    }
    for v in o.enumerate() {
        all = mix(all, v);
    }
    let c = counts(x[i]);
    all = c.map(|v| v * 3).filter(|v| v % 2 == 0).fold(all, mix);
    all = mix(all, c.take(3).count() as u32);
    all = mix(all, counts(x[i]).any(|v| v == 10) as u32);
    for v in c.skip(1) {
        all = mix(all, v);
    }
    for (a, v) in counts(x[i]).enumerate().step_by(2) {
        all = mix(all, v * a as u32);
    }
    for (a, v) in c.zip(x[..i].iter().filter(|v| **v % 3 == 1)) {
        all = mix(all, v * a);
    }
    for v in maybe(x[i]).map(|v| v * 3) {
        all = mix(all, v);
    }
    for (v, w) in maybe(x[i]).zip(maybe(4)) {
        all = mix(all, v * w);
    }
    let mut n = 0;
    for v in [x[i], 2, 3].map(|v| {
        n += 1;
        v * n
    }) {
        all = mix(all, v + n);
    }
    let mut left = c;
    all = mix(all, left.next().unwrap_or(9));
    y[i] = mix(all, left.max().unwrap_or(5));
}

#[kernel]
fn unmoving(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let step = if i == 5 { 0 } else { 2 };
    for j in part(i).step_by(step) {
        y[i] += x[j];
    }
}

#[test]
fn ranges_go_in_steps() {
    run(stepped::kernel(), stepped);
}

#[test]
fn what_calls_give_is_gone_over() {
    run(ended::kernel(), ended);
    run(looped::kernel(), looped);
}

#[test]
fn parts_of_slices_are_got_by_ranges() {
    run(got::kernel(), got);
}

#[test]
fn methods_of_other_types_are_theirs() {
    run(owned::kernel(), owned);
}

#[test]
fn steps_of_nothing_panic() {
    let x: Vec<u32> = (0..SIZE as u32).collect();
    panics(unmoving::kernel(), unmoving, &x, &[0; SIZE], 5);
}
