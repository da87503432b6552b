//! Refused: closures.

#![allow(warnings)]

use perpetua::prelude::*;

#[kernel]
fn passed<F: Fn(f32) -> f32 + Copy>(f: F, x: &mut [f32]) {
    x[0] = f(x[0]);
}

#[device]
fn returned() -> impl Fn(f32) -> f32 {
    |x: f32| x * 2.0
}

#[device]
fn boxed(f: &dyn Fn(f32) -> f32) -> f32 {
    f(1.0)
}

#[device]
fn pointed(f: fn(f32) -> f32) -> f32 {
    f(1.0)
}

#[kernel]
fn at_once(x: &mut [f32]) {
    x[0] = (|v: f32| v * 2.0)(x[0]);
}

fn main() {}
