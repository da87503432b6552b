//! Refused: what once led to messages about something else.

#![allow(warnings)]

use perpetua::prelude::*;

#[derive(Clone, Copy, Default, GpuType)]
#[repr(C)]
struct Pair {
    a: f32,
    b: f32,
}

mod host {
    pub fn half(x: f32) -> f32 {
        x / 2.0
    }
}

#[kernel]
fn calls_the_host(x: &mut [f32]) {
    x[0] = host::half(x[1]);
}

#[kernel]
fn calls_what_is_not_there(x: &mut [f32]) {
    x[0] = x[1].squared();
    x[2] = missing(x[1]);
}

#[device]
trait Doubled {
    fn doubled(self) -> Self;
}

#[device]
impl Doubled for u32 {
    fn doubled(self) -> u32 {
        self.twice()
    }
}

#[kernel]
fn defaults(x: &mut [f32]) {
    let pair: Pair = Default::default();
    x[0] = Default::default();
    x[1] = pair.a;
}

fn main() {}
