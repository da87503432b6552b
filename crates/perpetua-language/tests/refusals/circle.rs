//! Refused: functions that call each other in a circle.

#![allow(warnings)]

use perpetua::prelude::*;

#[device]
fn even(n: u32) -> bool {
    if n == 0 { true } else { odd(n - 1) }
}

#[device]
fn odd(n: u32) -> bool {
    if n == 0 { false } else { even(n - 1) }
}

fn main() {}
