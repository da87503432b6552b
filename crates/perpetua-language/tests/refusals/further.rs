//! Refused: forms that few write.

#![allow(warnings)]

use perpetua::prelude::*;

#[kernel]
extern "C" fn foreign(x: &mut [f32]) {
    x[0] = 1.0;
}

#[kernel(tile = (8, 8))]
fn unplaced(x: &[f32], y: &mut [f32]) {
    y[0] = x[0];
}

#[kernel]
fn waits(x: &mut [f32]) {
    let later = async { 3.0 };
}

#[kernel]
fn ranges(x: &mut [f32]) {
    let all = x[0]..x[1];
}

#[kernel]
fn numbers(x: &mut [f32]) {
    let raw = &raw mut x[0];
    let one = &mut 1.0;
    let y = x[0] as fn(f32) -> f32;
    x[0] + 1.0 = 2.0;
}

#[device]
fn never() -> ! {
    loop {}
}

#[device]
fn unsized_slice(x: [f32]) {}

#[device]
fn named(x: concat!("f", "32")) {}

#[kernel]
fn allocates(x: &mut [f32]) {
    let all = x.to_vec();
}

#[kernel]
fn patterns(x: &mut [f32], n: u32) {
    let 3 = n else {
        return;
    };
    for (a, b) in 0..3u32 {
        x[0] = 1.0;
    }
    let c = match "text" {
        "other" => 1.0,
        _ => 2.0,
    };
}

#[kernel]
fn underscore(x: &mut [f32]) {
    x[0] = _;
}

#[derive(Clone, Copy, GpuType)]
enum Nothing {}

#[derive(Clone, Copy, GpuType)]
#[repr(u32)]
enum Kind<T> {
    One,
    Two,
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Borrowed<'a> {
    x: &'a f32,
}

#[derive(Clone, Copy, GpuType)]
#[repr(u32)]
enum Computed {
    One = u32::MAX.count_ones(),
}

fn main() {}
