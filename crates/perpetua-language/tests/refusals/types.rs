//! Refused: types.

#![allow(warnings)]

use perpetua::prelude::*;

#[kernel]
fn text(x: &str, y: &mut [char]) {}

#[kernel]
fn heap(x: Vec<f32>) {}

#[kernel]
fn optional(x: Option<f32>) {}

#[kernel]
fn shared(x: std::sync::Arc<f32>, y: &[std::sync::atomic::AtomicU32]) {}

#[kernel]
fn pointers(x: *const f32, f: fn(f32) -> f32) {}

#[device]
fn dynamic(x: &dyn Fn(f32) -> f32) {}

fn main() {}
