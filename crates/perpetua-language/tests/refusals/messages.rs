//! Refused: messages of actors, and handlers of vectors.

#![allow(warnings)]

use perpetua::actors::{Context, RingMessage, ring_kernel};
use perpetua::prelude::*;

#[derive(RingMessage)]
struct Wide {
    values: Vec<f64>,
}

#[derive(RingMessage)]
struct Longer {
    values: Vec<u64>,
}

#[derive(RingMessage)]
struct Bytes {
    values: Vec<u8>,
}

#[derive(RingMessage)]
struct Nested {
    values: Vec<Vec<f32>>,
}

#[derive(RingMessage)]
struct Text {
    text: String,
}

#[derive(RingMessage)]
struct Tuple(Vec<f32>);

#[derive(RingMessage)]
struct Large {
    head: [u32; 13],
    values: Vec<f32>,
}

#[derive(RingMessage)]
struct Fine {
    values: Vec<f32>,
}

#[ring_kernel]
fn allocates(ctx: &mut Context, state: &mut u32, message: FineView) -> FineView {
    let values = ctx.alloc(message.values.len());
    FineView { values }
}

#[ring_kernel(rooms = 3)]
fn options(ctx: &mut Context, state: &mut u32, message: FineView) {}

#[derive(Clone, Copy, GpuType, RingMessage)]
#[repr(C)]
struct Plain {
    number: u32,
}

#[ring_kernel]
fn reaches(ctx: &mut Context, state: &mut u32, message: FineView) {
    *state += message.values.len();
}

#[ring_kernel(also(reaches))]
fn plain(ctx: &mut Context, state: &mut u32, message: Plain) {
    *state += message.number;
}

type Renamed = FineView;

#[ring_kernel]
fn renamed(ctx: &mut Context, state: &mut u32, message: Renamed) {
    *state += 1;
}

fn main() {}
