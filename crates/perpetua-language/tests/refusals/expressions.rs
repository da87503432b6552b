//! Refused: expressions.

#![allow(warnings)]

use perpetua::prelude::*;

#[kernel]
fn iterators(x: &mut [f32]) {
    for v in x.iter_mut() {
        *v = 0.0;
    }
    let sum: f32 = x.iter().sum();
}

#[kernel]
fn for_over(x: &[f32], y: &mut [f32]) {
    for v in x {
        y[0] += *v;
    }
}

#[kernel]
fn slicing(x: &[f32], y: &mut [f32]) {
    y[0] = x[1..3][0];
}

#[kernel]
fn contains(y: &mut [f32]) {
    if (0..4).contains(&y.len()) {
        y[0] = 1.0;
    }
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
    y[0] = std::cmp::max(y[1], y[2]);
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
