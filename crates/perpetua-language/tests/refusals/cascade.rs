//! Refused: one form, with one message, although others use what was refused.

#![allow(warnings)]

use perpetua::prelude::*;

#[device]
fn refused<T: Copy, const N: usize>(x: [T; N]) -> Option<T> {
    let text = "refused";
    Some(x[0])
}

#[kernel]
fn calls_the_refused(x: &mut [f32]) {
    let first = refused::<f32, 2>([x[0], x[1]]);
    if let Some(first) = first {
        x[0] = first + 1.0 as f32;
    }
}

fn main() {}
