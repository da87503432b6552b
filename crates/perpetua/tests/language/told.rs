//! What the book tells in a sentence: constants, closures by their names, fields and `contains` of ranges, comparisons, numbers on the left.

use std::cmp::Ordering;
use std::f32::consts::FRAC_PI_2;
use std::ops::{Mul, Range};

use perpetua::prelude::*;

use crate::harness::{check, on_devices, renders};

const TURN: f32 = std::f32::consts::TAU;

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(u32)]
enum Kind {
    Small = 1,
    Large = 7,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Pair {
    x: u32,
    y: u32,
}

#[device]
impl Mul<Pair> for u32 {
    type Output = Pair;

    fn mul(self, pair: Pair) -> Pair {
        Pair {
            x: self * pair.x,
            y: self * pair.y,
        }
    }
}

#[device]
fn ends(part: Range<usize>, at: usize) -> u32 {
    let inside = u32::from(part.contains(&at));
    (part.start * 100 + part.end) as u32 * 10 + inside
}

#[device]
fn kind(x: u32) -> Kind {
    if x > 40 { Kind::Large } else { Kind::Small }
}

#[kernel]
fn told(x: &[u32], y: &mut [[u32; 4]]) {
    let i = global_id_x();
    let width = 10;
    let at = |column: usize, row: usize| row * width + column;
    let mut sum = 0;
    let mut add = |n: u32| sum += n;
    add(x[at(1, 0)]);
    add(x[at(i % 10, 1)]);
    let mut equal = u32::from(x[i..i + 2] == x[2 * i..2 * i + 2]) + 2 * u32::from(x[..3] == [0, 37, 9]);
    equal += 4 * u32::from([x[0], x[i]] != [0, 0]) + 8 * u32::from(kind(x[i]) == Kind::Large);
    let order = match x[i].cmp(&x[i + 1]) {
        Ordering::Less => 1,
        Ordering::Equal => 2,
        std::cmp::Ordering::Greater => 3,
    };
    let product = 3 * Pair { x: x[i], y: 1 };
    let half = i as f32 * 0.5;
    y[i] = [
        ends(i..i + 3, 2)
            + u32::from((0.5..2.5).contains(&half)) * 10_000
            + u32::from((3..).contains(&i)) * 20_000,
        sum * 1000 + equal,
        product.x + product.y + order,
        u32::from(half < FRAC_PI_2)
            + u32::from(half < TURN) * 2
            + u32::from(half > f32::EPSILON) * 4
            + u32::BITS,
    ];
}

#[test]
fn what_the_book_tells_in_a_sentence() {
    let x: Vec<u32> = (0..100).map(|i| i * 37 % 65).collect();
    check(told::kernel(), told, &x, &[[0; 4]; 32]);
}

/// An iterator of one's own.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Steps {
    at: u32,
    by: u32,
}

#[device]
impl Iterator for Steps {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.at += self.by;
        (self.at < 100).then_some(self.at)
    }
}

#[kernel]
fn beside(x: &[u32], y: &mut [u32]) {
    let i = global_id_x();
    let steps = Steps { at: 0, by: x[i] + 20 };
    let mut going_on = steps;
    let (mut sum, mut all) = (0, 0);
    for (v, step) in x.iter().zip(steps) {
        sum += v * step;
    }
    for (v, step) in x[..2].iter().zip(&mut going_on) {
        all += v + step;
    }
    y[i] = sum * 1000 + all + going_on.at;
}

#[test]
fn iterators_of_ones_own_stand_in_zip() {
    let x: Vec<u32> = (0..32).map(|i| i * 37 % 65).collect();
    check(beside::kernel(), beside, &x, &[0; 32]);
}

/// Bytes beside each other, of which each lane stores one, and counts in a field behind a reference.
#[kernel]
fn parts(x: &[u32], y: &mut [[u8; 4]]) {
    let sums = shared_array::<[Pair; 2]>();
    let i = global_id_x();
    if local_id_x() < 2 {
        sums[local_id_x()] = Pair { x: 0, y: 0 };
    }
    sync_threads();
    let own = &mut sums[i % 2];
    let count = &mut own.x;
    atomic_add(count, 1);
    atomic_add(&mut own.y, x[i]);
    sync_threads();
    let first = i / 4 * 4;
    for k in 0..4 {
        y[first + k][i % 4] = (i + k) as u8;
    }
    sync_threads();
    if i % 4 == 0 {
        y[i][0] = sums[0].x as u8;
        y[i][1] = sums[1].y as u8;
    }
}

#[test]
fn lanes_store_bytes_beside_each_other() {
    let x: Vec<u32> = (0..32).map(|i| i % 7).collect();
    let odd: u32 = x.iter().skip(1).step_by(2).sum();
    let expected: Vec<[u8; 4]> = (0..32u8)
        .map(|i| match i % 4 {
            0 => [16, odd as u8, i + 2, i + 3],
            k => std::array::from_fn(|lane| i / 4 * 4 + lane as u8 + k),
        })
        .collect();
    on_devices(parts::kernel(), &x, &[[0; 4]; 32], |found, on| {
        assert_eq!(found.unwrap(), expected, "{on}");
    });
    renders(parts::kernel());
}
