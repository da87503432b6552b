//! Refused: constants.

#![allow(warnings)]

use perpetua::prelude::*;

struct Host {
    x: f32,
}

const HOST: Host = Host { x: 1.0 };

#[kernel]
fn uses(x: &mut [f32]) {
    x[0] = HOST.x;
}

#[kernel]
fn holds(x: &mut [f32]) {
    let h = Host { x: 1.0 };
    x[0] = h.x;
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Outer {
    inner: Inner,
}

#[derive(Clone, Copy)]
struct Inner {
    x: f32,
}

fn main() {}
