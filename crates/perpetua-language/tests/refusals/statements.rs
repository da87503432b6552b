//! Refused: statements.

#![allow(warnings)]

use perpetua::prelude::*;

#[kernel]
fn items(x: &mut [f32]) {
    const N: usize = 4;
    x[N] = 1.0;
}

#[kernel]
fn attributes(x: &mut [f32]) {
    #[inline]
    {
        x[0] = 1.0;
    }
}

#[kernel]
fn unsafety(x: &mut [f32]) {
    // SAFETY: none is needed: the block itself is what is refused.
    unsafe {
        x[0] = 1.0;
    }
}

fn main() {}
