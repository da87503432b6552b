//! Refused: signatures.

#![allow(warnings)]

use perpetua::prelude::*;

#[kernel]
async fn waits(x: &mut [f32]) {}

#[kernel]
unsafe fn trusts(x: &mut [f32]) {}

#[kernel]
fn answers(x: &[f32]) -> f32 {
    x[0]
}

#[kernel]
fn pattern([a, b]: [f32; 2], x: &mut [f32]) {}

#[kernel]
fn tuple(pair: (f32, f32), x: &mut [f32]) {}

#[kernel]
fn tuples(ranges: &[(u32, u32)], x: &mut [(f32, [u32; 2])]) {}

#[kernel]
fn one_value(n: &(u32, u32), x: &mut [f32]) {}

#[kernel]
fn two_positions(x: &mut [f32], a: GridPos, b: GridPos) {}

#[kernel]
fn implied(x: &mut [f32], f: impl Copy) {}

#[device]
fn bounded<T>(x: T) -> T
where
    [T; 2]: Copy,
{
    x
}

#[device]
fn floating<const X: char>() {}

fn main() {}
