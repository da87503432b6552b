//! Refused: `#[device]` behind what it should see.

#![allow(warnings)]

use perpetua::prelude::*;

#[derive(Clone, Copy, PartialEq, PartialOrd, GpuType)]
#[device]
#[repr(C)]
struct Behind {
    x: f32,
}

fn main() {}
