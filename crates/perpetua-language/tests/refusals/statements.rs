//! Refused: statements.

#![allow(warnings)]

use perpetua::prelude::*;

#[kernel]
fn items(x: &mut [f32]) {
    static TABLE: [f32; 2] = [1.0, 2.0];
    trait Inner {}
    x[0] = TABLE[0];
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
