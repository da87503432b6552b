//! Refused: patterns.

#![allow(warnings)]

use perpetua::prelude::*;

#[kernel]
fn slices(x: &[u32], y: &mut [u32]) {
    match x {
        [a, b] => y[0] = *a + *b,
        _ => {}
    }
}

#[kernel]
fn bindings(x: &[u32], y: &mut [u32]) {
    match x[0] {
        n @ 1..=9 => y[0] = n,
        _ => {}
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
    match (x[0], x[1]) {
        Some(n) => y[0] = n,
        (.., n) => y[0] = n,
    }
}

fn main() {}
