//! Refused: patterns.

#![allow(warnings)]

use perpetua::prelude::*;

enum Shape {
    Circle(u32),
    Square { side: u32 },
}

#[kernel]
fn names(x: &[u32], y: &mut [u32]) {
    match x[0] {
        ref n @ 0..=3 => y[0] = *n,
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
fn refutable(x: &[u32], y: &mut [u32]) {
    let 3 = x.len();
}

#[kernel]
fn optional(x: &[u32], last: Option<u32>, y: &mut [u32]) {
    if let Some(n) = last {
        y[0] = n;
    }
}

fn main() {}
