//! Which kernels have loops that nobody knows the turns of: those run as machine code, where lanes loop side by side.

#![allow(
    clippy::needless_range_loop,
    reason = "kernels are written as users write them"
)]

use perpetua::device::KernelSpec;
use perpetua::prelude::*;
use perpetua_ir::pass::has_open_loop;

#[kernel]
fn no_loop(x: &mut [f32]) {
    let i = global_id_x();
    if i < x.len() {
        x[i] *= 2.0;
    }
}

#[kernel]
fn leaves_a_block(x: &mut [f32]) {
    let i = global_id_x();
    'done: {
        if i >= x.len() {
            break 'done;
        }
        x[i] *= 2.0;
    }
}

#[kernel]
fn around(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    if i < y.len() {
        let mut sum = 0.0;
        for down in -1..=1i32 {
            for right in 0..3usize {
                let at = i + right + (down + 1) as usize;
                if at < x.len() {
                    sum += x[at];
                }
            }
        }
        let mut step = 8;
        while step > 0 {
            sum += step as f32;
            step /= 2;
        }
        y[i] = sum;
    }
}

#[kernel]
fn as_asked(x: &[f32], y: &mut [f32], n: usize) {
    let i = global_id_x();
    for k in 0..n {
        y[i] += x[k];
    }
}

#[kernel]
fn as_long(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    let mut k = 0;
    while k < x.len() {
        y[i] += x[k];
        k += 1;
    }
}

#[kernel]
fn until_far(y: &mut [f32]) {
    let i = global_id_x();
    let (mut z, mut turns) = (i as f32, 0);
    while turns < 100 && z < 50.0 {
        z *= 1.5;
        turns += 1;
    }
    y[i] = z;
}

#[kernel]
fn leaves_early(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    for k in 0..100usize {
        if x[k] > y[i] {
            break;
        }
        y[i] -= 1.0;
    }
}

#[kernel]
fn by_a_flag(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    let mut go = true;
    while go {
        if x[i] > y[i] {
            go = false;
        }
        y[i] -= 1.0;
    }
}

#[device]
fn digits(mut n: u32) -> u32 {
    let mut found = 0;
    while n > 0 {
        n /= 10;
        found += 1;
    }
    found
}

#[kernel]
fn inside_a_function(y: &mut [u32]) {
    let i = global_id_x();
    y[i] = digits(i as u32);
}

#[test]
fn loops_whose_turns_the_source_tells_are_not_open() {
    let open = |kernel: KernelFn| has_open_loop(kernel.verified(64).unwrap().kernel());
    assert!(!open(no_loop::kernel()));
    assert!(!open(leaves_a_block::kernel()), "no loop is left");
    assert!(!open(around::kernel()), "bounds are constants");
    assert!(open(as_asked::kernel()), "an argument");
    assert!(open(as_long::kernel()), "a length");
    assert!(open(until_far::kernel()), "a value beside the count");
    assert!(open(leaves_early::kernel()), "memory decides when");
    assert!(
        open(by_a_flag::kernel()),
        "a constant is stored where memory decides"
    );
    assert!(open(inside_a_function::kernel()), "a function's parameter");
}
