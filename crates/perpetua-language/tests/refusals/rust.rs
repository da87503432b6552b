//! Refused: rust.

#![allow(warnings)]

use perpetua::prelude::*;

#[kernel]
fn mixes(n: u32, x: &mut [f32]) {
    let i = global_id_x();
    x[i] = n;
}

#[kernel]
fn stores(x: &[f32]) {
    x[0] = 1.0;
}

fn main() {}
