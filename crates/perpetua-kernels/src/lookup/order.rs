//! The places of equal numbers side by side, in their order: a stable sort by eight bits at a time, in which a lane has all numbers of a digit. Must not know what the numbers are.

use perpetua::prelude::*;

/// Numbers of a block.
pub(super) const CHUNK: usize = 1024;

/// What is sorted at a place: the number, or of one that is none, or ignored, how many there are.
#[device]
fn key<const FIRST: bool>(keys: &[u32], at: usize, rows: u32, ignored: u32) -> u32 {
    let key = keys[at];
    if FIRST && (key >= rows || key == ignored) {
        rows
    } else {
        key
    }
}

/// The block's numbers, as what is sorted.
#[device]
fn load<const FIRST: bool>(held: &mut [u32; CHUNK], count: usize, rows: u32, ignored: u32, keys: &[u32]) {
    let lane = local_id_x() % 256;
    for i in 0..4 {
        let at = group_id_x() * 1024 + i * 256 + lane;
        if at < count {
            held[i * 256 + lane] = key::<FIRST>(keys, at, rows, ignored);
        }
    }
    sync_threads();
}

/// How many numbers of each block have each digit: by digit, then by block.
#[kernel(block_size = 256, interpret)]
pub(super) fn order_count<const FIRST: bool>(
    count: usize,
    shift: u32,
    rows: u32,
    ignored: u32,
    keys: &[u32],
    counts: &mut [u32],
) {
    let held = shared_array::<[u32; CHUNK]>();
    let lane = local_id_x() % 256;
    load::<FIRST>(held, count, rows, ignored, keys);
    let own = (count - group_id_x() * 1024).min(1024);
    let mut found = 0u32;
    for i in 0..own {
        if (held[i] >> shift) % 256 == lane as u32 {
            found += 1;
        }
    }
    counts[lane * grid_dim_x() as usize + group_id_x()] = found;
}

/// Of each digit, a block each, how many numbers the blocks before have, instead of how many a block has; and how many there are.
#[kernel(block_size = 256, interpret)]
pub(super) fn order_starts(blocks: usize, counts: &mut [u32], totals: &mut [u32]) {
    let sums = shared_array::<[u32; 256]>();
    let lane = local_id_x() % 256;
    let from = group_id_x() * blocks;
    let mut before = 0u32;
    let mut first = 0;
    while first < blocks {
        let mut own = 0u32;
        if first + lane < blocks {
            own = counts[from + first + lane];
        }
        sums[lane] = own;
        sync_threads();
        let mut far = 1;
        while far < 256 {
            let mut further = 0u32;
            if lane >= far {
                further = sums[lane - far];
            }
            sync_threads();
            sums[lane] += further;
            sync_threads();
            far *= 2;
        }
        if first + lane < blocks {
            counts[from + first + lane] = before + sums[lane] - own;
        }
        before += sums[255];
        sync_threads();
        first += 256;
    }
    if lane == 0 {
        totals[group_id_x()] = before;
    }
}

/// Puts each number, and where it was at first, where its digit comes.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn order_place<const FIRST: bool>(
    count: usize,
    shift: u32,
    rows: u32,
    ignored: u32,
    keys: &[u32],
    places: &[u32],
    counts: &[u32],
    totals: &[u32],
    keys_out: &mut [u32],
    places_out: &mut [u32],
) {
    let held = shared_array::<[u32; CHUNK]>();
    let all = shared_array::<[u32; 256]>();
    let lane = local_id_x() % 256;
    all[lane] = totals[lane];
    load::<FIRST>(held, count, rows, ignored, keys);
    let mut next = counts[lane * grid_dim_x() as usize + group_id_x()];
    for digit in 0..256 {
        if digit < lane {
            next += all[digit];
        }
    }
    let first = group_id_x() * 1024;
    let own = (count - first).min(1024);
    for i in 0..own {
        let key = held[i];
        if (key >> shift) % 256 == lane as u32 {
            keys_out[next as usize] = key;
            places_out[next as usize] = if FIRST {
                (first + i) as u32
            } else {
                places[first + i]
            };
            next += 1;
        }
    }
}

/// Where the places of each number begin and end among sorted ones. Of a number that does not occur nothing is written.
#[kernel(block_size = 256, interpret)]
pub(super) fn order_bounds(count: usize, rows: u32, keys: &[u32], bounds: &mut [u32]) {
    let at = global_id_x();
    if at < count && keys[at] < rows {
        let key = keys[at];
        if at == 0 || keys[at - 1] != key {
            bounds[2 * key as usize] = at as u32;
        }
        if at + 1 == count || keys[at + 1] != key {
            bounds[2 * key as usize + 1] = at as u32 + 1;
        }
    }
}
