//! Refused: options.

#![allow(warnings)]

use perpetua::prelude::*;

#[kernel(blocks = 4)]
fn unknown(x: &mut [f32]) {}

#[kernel(block_size = (1, 2, 3, 4))]
fn four(x: &mut [f32]) {}

#[kernel(block_size = (0, 1))]
fn none(x: &mut [f32]) {}

#[kernel(halo = 2)]
fn no_stencil(x: &mut [f32]) {}

#[kernel(edge = mirror)]
fn mirrors(x: &mut [f32], pos: GridPos) {}

#[kernel(tile = (16, 16), block_size = (8, 8))]
fn both(x: &mut [f32], pos: GridPos) {}

#[kernel]
struct NotAFunction;

#[device(contract)]
fn contracted(x: f32) -> f32 {
    x
}

#[device]
const NOT_A_FUNCTION_EITHER: u32 = 1;

struct Generic<T>(T);

#[device]
impl<T: Copy> Generic<T> {
    fn get(self) -> T {
        self.0
    }
}

#[kernel(contract, contract)]
fn twice(x: &mut [f32]) {}

fn main() {}
