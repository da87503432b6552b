//! Refused: operators and methods of traits that no block with `#[device]` has.

#![allow(warnings)]

use std::ops::Add;

use perpetua::prelude::*;

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Pair {
    a: u32,
    b: u32,
}

impl Add for Pair {
    type Output = Pair;

    fn add(self, other: Pair) -> Pair {
        Pair { a: self.a + other.a, b: self.b + other.b }
    }
}

trait Scaled {
    fn scaled(self, by: u32) -> Self;
}

impl Scaled for Pair {
    fn scaled(self, by: u32) -> Pair {
        Pair { a: self.a * by, b: self.b * by }
    }
}

#[kernel]
fn adds(x: &mut [Pair]) {
    x[0] = x[1] + x[2];
}

#[kernel]
fn scales<T: Scaled + GpuType>(x: &mut [T]) {
    x[0] = x[1].scaled(2);
}

#[kernel]
fn subtracts(x: &mut [Pair]) {
    x[0] = x[1] - x[2];
}

fn main() {
    scales::kernel::<Pair>();
}
