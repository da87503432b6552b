//! Refused: closures.

#![allow(warnings)]

use perpetua::prelude::*;

#[kernel]
fn passed<F: Fn(f32) -> f32 + Copy>(f: F, x: &mut [f32]) {
    x[0] = f(x[0]);
}

#[device]
fn of_two(a: f32, b: f32) -> f32 {
    a + b
}

fn given() {
    let _ = passed::kernel::<of_two>();
    let _ = passed::kernel::<f32>();
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
    x[0] = ([f32::abs][0])(x[0]);
}

fn main() {}
