//! What types derive, in kernels.

use std::cmp::Ordering;

use perpetua::prelude::*;

use crate::harness::{check, floats};

/// Ordered and made as derived.
#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, GpuType)]
#[repr(C)]
struct Reading {
    level: Level,
    values: [f32; 3],
    at: Place,
}

#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, GpuType)]
#[repr(C)]
struct Place(i32, u32);

#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, GpuType)]
#[repr(i8)]
enum Level {
    High = 3,
    #[default]
    Plain = -2,
    Low = -7,
}

#[kernel]
fn derived(x: &[f32], y: &mut [Reading]) {
    let i = global_id_x();
    if i >= y.len() {
        return;
    }
    let n = x[i] as i32;
    let level = if n % 3 == 0 { Level::Low } else { Level::default() };
    let a = Reading {
        level,
        values: [1.0, x[i % 7], x[i]],
        ..Default::default()
    };
    let b = Reading {
        level: Level::Plain.min(level),
        values: [1.0, x[i % 5], if i % 11 == 5 { f32::NAN } else { 2.0 }],
        at: Place(n, 3).max(Place(-n, 4)),
    };
    let mut best = if a < b { a } else { b };
    if a >= b {
        best.values[0] = 4.0;
    }
    let order = match a.partial_cmp(&b) {
        Some(Ordering::Less) => -1,
        Some(Ordering::Equal) => 0,
        Some(Ordering::Greater) => 1,
        None => 7,
    };
    best.values[2] = order as f32;
    best.at = match Place(n, 1).cmp(&best.at) {
        Ordering::Less => Place(order, 1),
        Ordering::Equal => Place::default(),
        Ordering::Greater => Place(order, 2),
    };
    y[i] = best;
}

#[test]
fn types_that_derive_their_order() {
    check(
        derived::kernel(),
        derived,
        &floats(100),
        &[Reading::default(); 100],
    );
}
