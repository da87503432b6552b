//! Tiles that end with their orders: each is there before the launch, and there are no more steps among them than a tile's halo
//! is wide. So any device that runs kernels runs them, the interpreter too, which tests what tiles compute.

use perpetua::kernel::resident::U32x4;
use perpetua::prelude::*;

// One text for both ways in which orders come.
#[allow(clippy::duplicate_mod)]
#[path = "tile.rs"]
mod tile;

pub(in crate::wave) use tile::{eight, four, two};

#[device]
#[inline(always)]
fn is_conductor(_tile: u32, _count: u32) -> bool {
    false
}

#[device]
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "as that of tiles that stay")]
fn conduct(
    _orders: &[U32x4],
    _log: &mut [U32x4],
    _progress: &mut [u32],
    _reports: &mut [U32x4],
    _receipts: &mut [U32x4],
    _desk: &mut [u32; 208],
    _strip: u32,
    _lane: u32,
    _count: u32,
    _first_step: u32,
    _first_entry: u32,
    _first_order: u32,
    _log_mask: u32,
    _ring_mask: u32,
    _chunk: u32,
    _ahead: u32,
    _patience: u32,
) {
}

#[device]
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "as that of tiles that stay")]
fn await_orders(
    _log: &mut [U32x4],
    _desk: &mut [u32; 208],
    _strip: u32,
    _lane: u32,
    entry: u32,
    _half: u32,
    _log_mask: u32,
    _patience: u32,
) -> u32 {
    entry + 1
}

/// A word of an order: three lie in a vector, four vectors are an order.
#[device]
#[inline(always)]
fn order_word(orders: &[U32x4], _desk: &mut [u32; 208], entry: u32, word: u32) -> u32 {
    let vector = orders[(entry * 4 + word / 3) as usize];
    let part = word % 3;
    if part == 0 {
        vector.x
    } else if part == 1 {
        vector.y
    } else {
        vector.z
    }
}

#[device]
#[inline(always)]
fn get(board: &mut [U32x4], at: usize) -> U32x4 {
    board[at]
}

#[device]
#[inline(always)]
fn put(board: &mut [U32x4], at: usize, vector: U32x4) {
    board[at] = vector;
}

#[device]
#[inline(always)]
fn tell(to: &mut [U32x4], at: usize, vector: U32x4) {
    to[at] = vector;
}

#[device]
#[inline(always)]
fn load_number(drive: &[u32], at: usize) -> u32 {
    drive[at]
}

#[device]
#[inline(always)]
fn meet_all() {
    sync_threads();
}
