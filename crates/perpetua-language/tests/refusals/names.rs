//! Refused: names.

#![allow(warnings)]

use perpetua::prelude::*;

fn not_a_device_function(x: f32) -> f32 {
    x
}

#[kernel]
fn calls(x: &mut [f32]) {
    x[0] = not_a_device_function(x[1]);
}

#[kernel]
fn mistypes(x: &mut [f32]) {
    x[0] = MISSING;
}

fn main() {}
