//! Refused: traits and their blocks.

#![allow(warnings)]

use perpetua::prelude::*;

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Pair {
    a: f32,
    b: f32,
}

impl Pair {
    #[device]
    fn sum(self) -> f32 {
        self.a + self.b
    }
}

trait Plain {
    fn plain(self) -> f32;
}

#[device]
impl Plain for Pair {
    fn plain(self) -> f32 {
        self.a
    }
}

#[device]
trait Marked {
    fn name(&self) -> u32 {
        let text = "name";
        0
    }
}

#[device]
impl<T> Marked for [T; 2] {}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Wrapped<T> {
    value: T,
}

#[device]
impl<T> Plain for Wrapped<T> {
    fn plain(self) -> f32 {
        1.0
    }
}

#[device]
impl<T: Copy> Wrapped<T> {
    fn refused(self) -> T {
        let _ = "text";
        self.value
    }
}

#[device]
impl Pair {}

#[kernel]
fn anything(x: impl Marked + Copy, y: &mut [f32]) {}

#[device]
fn open(x: &dyn Marked) {}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Add {
    by: f32,
}

#[device]
impl Add {
    fn add(self, to: f32) -> f32 {
        self.by + to
    }
}

#[kernel]
fn calls(y: &mut [f32]) {
    y[0] = Add::add(Add { by: 1.0 }, 2.0);
}

fn main() {}
