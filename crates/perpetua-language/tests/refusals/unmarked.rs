//! Refused: functions of types that have no `#[device]`.

#![allow(warnings)]

use perpetua::prelude::*;

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Pair {
    a: f32,
    b: f32,
}

impl Pair {
    fn new(a: f32) -> Pair {
        Pair { a, b: a }
    }
}

#[device]
trait Norm {
    fn norm(x: f32) -> f32;
}

#[device]
impl Norm for Pair {
    fn norm(x: f32) -> f32 {
        x.abs()
    }
}

#[kernel]
fn calls(y: &mut [f32]) {
    y[0] = Pair::new(1.0).a;
    y[1] = Pair::norm(y[0]);
}

fn main() {}
