//! Refused: names that mean something else to rustc than to the reader, which knows them by how they are written.

#![allow(warnings)]

use perpetua::prelude::*;

const five: u32 = 5;

#[kernel]
fn lower(out: &mut [u32], x: u32) {
    let i = global_id_x();
    let k = match x {
        five => 0,
        _ => 1_000_000usize,
    };
    if i < out.len() {
        out[i + k] = 1;
    }
}

#[kernel]
fn parameter<u16: Copy>(out: &mut [u16], x: u16) {
    out[global_id_x()] = x;
}

fn main() {}
