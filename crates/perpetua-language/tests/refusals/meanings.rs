//! Refused: names that a kernel would take for something else than Rust does.

#![allow(warnings)]

use perpetua::prelude::*;

// The language has these names, or the reader takes them for the standard library's.
#[device]
fn subgroup_lane() -> u32 {
    7
}

fn max(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

#[kernel]
fn of_the_host(y: &mut [f32]) {
    y[0] = max(y[0], 2.0);
}

mod cmp {
    pub fn min(a: u32, _b: u32) -> u32 {
        a
    }
}

#[kernel]
fn of_another_module(y: &mut [u32]) {
    y[0] = cmp::min(3, 2);
}

const K: u32 = 1;

#[kernel]
fn of_a_block(y: &mut [u32]) {
    y[0] = K;
    {
        const K: u32 = 2;
        y[1] = K;
    }
}
fn main() {}
