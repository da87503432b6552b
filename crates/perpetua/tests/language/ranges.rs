//! Ranges as values: parameters of device functions, variables with a type, their ends and methods.

use std::ops::{Range, RangeInclusive};

use perpetua::prelude::*;

use crate::harness::check;

const SIZE: usize = 64;

fn numbers() -> Vec<u32> {
    (0..SIZE + 24).map(|i| (i * 37 % 101) as u32).collect()
}

#[device]
fn sum(x: &[u32], part: Range<usize>) -> u32 {
    let mut all = part.len() as u32;
    for v in &x[part.clone()] {
        all = all.wrapping_mul(3) ^ v;
    }
    for k in part.start..part.end {
        all ^= x[k] << (k % 5);
    }
    all
}

#[device]
fn halves(x: &[u32], part: Range<usize>) -> u32 {
    let middle = part.start.midpoint(part.end);
    sum(x, part.start..middle) ^ sum(x, middle..part.end).rotate_left(7) ^ sum(x, part)
}

#[device]
fn within(range: RangeInclusive<u32>, v: u32) -> bool {
    range.contains(&v) && *range.start() < 90 && !range.is_empty() && *range.end() > 3
}

#[device]
fn taken(mut left: Range<u32>, count: u32) -> u32 {
    let mut all = 0;
    for _ in 0..count {
        match left.next() {
            Some(v) => all = all * 10 + v,
            None => all += 1,
        }
    }
    all + left.sum::<u32>()
}

#[device]
fn through(items: impl Iterator<Item = usize>, x: &[u32]) -> u32 {
    items.fold(0, |all: u32, k| all.wrapping_mul(5) ^ x[k])
}

#[kernel]
fn ranges(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let part = i % 7..i % 11 + 7;
    let mut n = 3;
    let counted = sum(
        x,
        {
            n += 1;
            n
        }..n + 2,
    );
    let small: Range<u8> = 250..(x[i] % 6) as u8 + 250;
    let mut all =
        halves(x, part.clone()) ^ through(part.clone(), x) ^ counted.rotate_left(9) ^ through(0..i % 5, x);
    all ^= u32::from(within(5..=60, x[i])) << 4 | u32::from(within(x[i]..=x[i + 1], 50)) << 5;
    all ^= taken(1..x[i] % 9, 4) << 8;
    for v in small.clone() {
        all = all.wrapping_mul(7) ^ u32::from(v);
    }
    all ^= x.get(part.clone()).map_or(0, |found| found.len() as u32) << 9;
    all ^= x[..9].get(part.clone()).map_or(5, |found| found[0]) << 11;
    y[i] = all ^ small.len() as u32 ^ u32::from(small.start.wrapping_mul(3)) ^ sum(x, part);
}

#[test]
fn ranges_are_parameters_and_variables() {
    check(ranges::kernel(), ranges, &numbers(), &[0; SIZE]);
}
