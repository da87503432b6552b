//! Refused: macros.

#![allow(warnings)]

use perpetua::prelude::*;

#[kernel]
fn prints(x: &[f32]) {
    println!("{}", x[0]);
    gpu_println!("{name}", name = x[0]);
}

#[kernel]
fn asserts(x: &[f32]) {
    assert!(x[0] > 0.0);
}

#[kernel]
fn panics(x: &[f32]) {
    if x[0] > 0.0 {
        panic!("no");
    }
}

#[kernel]
fn formats(x: &[f32]) {
    let _ = vec![x[0]];
    let _ = format!("{}", x[0]);
}

fn main() {}
