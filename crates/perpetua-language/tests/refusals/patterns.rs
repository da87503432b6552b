//! Refused: patterns.

#![allow(warnings)]

use perpetua::prelude::*;

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Pair(u32, u32, u32);

enum Shape {
    Circle(u32),
    Square { side: u32 },
}

#[kernel]
fn names(x: &[u32], y: &mut [u32]) {
    match x[0] {
        ref n => y[0] = *n,
    }
}

#[kernel]
fn floats(x: &[f32], y: &mut [u32]) {
    match x[0] {
        1.0 => y[0] = 1,
        _ => {}
    }
}

#[kernel]
fn data(x: &[u32], y: &mut [u32]) {
    match Shape::Circle(x[0]) {
        Shape::Circle(n) => y[0] = n,
        Shape::Square { side } => y[0] = side,
    }
}

#[kernel]
fn rests(x: &[u32], y: &mut [u32]) {
    let Pair(a, .., b) = Pair(x[0], x[1], x[2]);
    let 3 = x.len();
}

#[kernel]
fn optional(x: &[u32], last: Option<u32>, y: &mut [u32]) {
    if let Some(n) = last {
        y[0] = n;
    }
}

fn main() {}
