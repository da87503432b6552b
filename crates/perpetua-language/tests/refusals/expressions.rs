//! Refused: expressions.

#![allow(warnings)]

use perpetua::prelude::*;

#[kernel]
fn iterators(x: &mut [f32]) {
    let mut k = 0; let mut items = x.chunks(4).flat_map(|part| { k += 1; part });
    let all = x.iter().copied().collect::<Vec<f32>>();
    let sum = x.iter().filter(|v| **v > 2.0).chain(x.iter()).count();
    let moved: f32 = x.iter().map(move |v| v * 2.0).sum();
}

#[kernel]
fn chars(y: &mut [u32]) {
    y[0] = 'a' as u32;
}

#[kernel]
fn allocates(y: &mut [u32]) {
    let mut v = Vec::new();
    v.push(y[0]);
}

#[kernel]
fn library(y: &mut [u32]) {
    y[0] = std::convert::identity(y[1]);
}

#[kernel]
fn shares(y: &mut [u32]) {
    atomic_add(y[0], 1);
}

#[kernel]
fn shuffles(y: &mut [u32]) {
    y[0] = subgroup_shuffle(y[0]);
}

fn main() {}
