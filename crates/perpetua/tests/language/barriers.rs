//! Barriers behind variables that differed between lanes before: what all lanes store again is one value from there.

use perpetua::prelude::*;

use crate::harness::{on_devices, renders};

/// One counter for a loop of each lane's own and for one of the whole block.
#[kernel]
fn counted(x: &[u32], y: &mut [u32]) {
    let tile = shared_array::<[u32; 32]>();
    let t = thread_idx_x() as usize;
    let i = global_id_x();
    let (mut n, mut sum) = (x[i] as usize % 8, 0);
    while n > 0 {
        sum += n as u32;
        n -= 1;
    }
    tile[t] = sum;
    sync_threads();
    n = 16;
    while n > 0 {
        if t < n {
            tile[t] += tile[t + n];
        }
        sync_threads();
        n /= 2;
    }
    y[i] = tile[0];
}

/// A variable is the lane's own at the end of each turn, and the block's at its start.
#[kernel]
fn turned(x: &[u32], y: &mut [u32]) {
    let tile = shared_array::<[u32; 32]>();
    let t = thread_idx_x() as usize;
    let i = global_id_x();
    let mut at;
    let mut all = 0;
    for turn in 0..4u32 {
        at = turn;
        if at % 2 == 0 {
            tile[t] = x[i] + at;
            sync_threads();
            all += tile[31 - t];
            sync_threads();
        }
        at += t as u32;
        all += at;
    }
    y[i] = all;
}

fn each_block(kernel: KernelFn, expected: impl Fn(&[u32], usize) -> u32) {
    let x: Vec<u32> = (0..96).map(|i| i * 37 % 101).collect();
    let expected: Vec<u32> = (0..96)
        .map(|i| expected(&x[i / 32 * 32..][..32], i % 32))
        .collect();
    on_devices(kernel, &x, &[0; 96], |found, on| {
        assert_eq!(found.unwrap(), expected, "{on}")
    });
    renders(kernel);
}

#[test]
fn a_counter_serves_a_lane_and_then_its_block() {
    let triangle = |v: &u32| (v % 8) * (v % 8 + 1) / 2;
    each_block(counted::kernel(), |block, _| block.iter().map(triangle).sum());
    each_block(turned::kernel(), |block, t| {
        2 * block[31 - t] + 2 + 6 + 4 * t as u32
    });
}

/// Shared numbers that lanes count in, set and read all at once.
#[kernel]
fn bounds(x: &[u32], y: &mut [u32]) {
    let bounds = shared_array::<[[u32; 2]; 2]>();
    let i = global_id_x();
    if local_id_x() == 0 {
        *bounds = [[u32::MAX, 0], [3, 0]];
    }
    sync_threads();
    atomic_min(&mut bounds[0][0], x[i]);
    atomic_max(&mut bounds[0][1], x[i]);
    atomic_add(&mut bounds[1][1], x[i]);
    sync_threads();
    let [[least, greatest], last] = *bounds;
    let copy = *bounds;
    y[i] = least + 1000 * greatest + 1_000_000 * last[0] + last[1] + copy[local_id_x() % 2][1];
}

#[test]
fn atomics_of_a_shared_array_are_set_and_read_whole() {
    each_block(bounds::kernel(), |x, i| {
        let (least, greatest) = (x.iter().min().unwrap(), x.iter().max().unwrap());
        let sum: u32 = x.iter().sum();
        least + 1000 * greatest + 3_000_000 + sum + [*greatest, sum][i % 2]
    });
}
