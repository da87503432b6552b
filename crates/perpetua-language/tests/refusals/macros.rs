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
    assert!(x[0] > 0.0, "{} {} {} {} {}", x[0], x[1], x[2], x[3], x[4]);
    assert_eq!(x[0], x[1], "{} {} {}", x[2], x[3], x[4]);
    assert_eq!(x[0]);
}

#[kernel]
fn panics(x: &[f32]) {
    if x[0] > 0.0 {
        panic!("{}");
        panic!(x[0]);
    }
}

#[kernel]
fn formats(x: &[f32]) {
    let _ = vec![x[0]];
    let _ = format!("{}", x[0]);
}

fn main() {}
