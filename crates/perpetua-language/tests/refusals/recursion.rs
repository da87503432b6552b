//! Refused: functions that call themselves.

#![allow(warnings)]

use perpetua::prelude::*;

#[device]
fn factorial(n: u32) -> u32 {
    if n == 0 { 1 } else { n * factorial(n - 1) }
}

#[kernel]
fn calls(x: &mut [u32]) {
    x[0] = factorial(x[1]);
}

fn main() {}
