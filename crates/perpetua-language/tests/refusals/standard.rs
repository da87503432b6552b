//! Refused: types and traits of the standard library that kernels do without, each with what to write instead.

#![allow(warnings)]

use std::iter::Sum;
use std::marker::PhantomData;
use std::num::{NonZeroU32, Wrapping};
use std::ops::{Add, Deref, Range};

use perpetua::prelude::*;

#[device]
fn total(x: &[u32], part: Range<usize>) -> u32 {
    x[part].iter().sum()
}

#[kernel]
fn wraps(x: &mut [u32], n: u32) {
    let mut sum = Wrapping(n);
    let divisor: Option<NonZeroU32> = None;
    x[0] = sum.0;
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Four {
    parts: [u32; 4],
}

#[device]
impl Deref for Four {
    type Target = [u32; 4];

    fn deref(&self) -> &[u32; 4] {
        &self.parts
    }
}

#[device]
impl Sum for Four {
    fn sum<I: Iterator<Item = Four>>(items: I) -> Four {
        items.fold(Four { parts: [0; 4] }, |a, _| a)
    }
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Length<U> {
    meters: f32,
    unit: PhantomData<U>,
}

#[device]
trait Total {
    fn total(&self) -> u32;
}

#[device]
impl Total for [u32] {
    fn total(&self) -> u32 {
        self[0]
    }
}

fn main() {}
