//! Numbers of a strided tensor combined: by lanes that go along them, or across. Must not know which axes they were.

use perpetua::prelude::*;

use crate::element::{Piece, Storage};
use crate::lanes::across;

/// How two numbers become one.
#[device]
pub(super) trait Combine: GpuType {
    /// What changes no number.
    const START: f32;
    fn combine(a: f32, b: f32) -> f32;
}

macro_rules! combine {
    ($($name:ident $doc:literal $start:expr, $combine:expr;)*) => {$(
        #[doc = $doc]
        #[derive(Clone, Copy, GpuType)]
        #[repr(C)]
        pub(super) struct $name {
            unit: u8,
        }

        #[device]
        impl Combine for $name {
            const START: f32 = $start;

            fn combine(a: f32, b: f32) -> f32 {
                $combine(a, b)
            }
        }
    )*};
}

#[device]
fn sum(a: f32, b: f32) -> f32 {
    a + b
}

#[device]
fn product(a: f32, b: f32) -> f32 {
    a * b
}

/// NaN where there is one.
#[device]
fn greatest(a: f32, b: f32) -> f32 {
    if b > a || b.is_nan() { b } else { a }
}

/// NaN where there is one.
#[device]
fn least(a: f32, b: f32) -> f32 {
    if b < a || b.is_nan() { b } else { a }
}

combine! {
    Sum "Of a sum." 0.0, sum;
    Product "Of a product." 1.0, product;
    Greatest "Of the greatest." f32::NEG_INFINITY, greatest;
    Least "Of the least." f32::INFINITY, least;
}

/// Most axes of what stays, and of what is combined, after those that lie as one are.
pub(super) const AXES: usize = 4;

/// Where the number of an index lies, the last axis being the innermost one. Of one axis only the last counts.
#[device]
fn place<const MANY: bool>(index: usize, sizes: [usize; AXES], steps: [usize; AXES]) -> usize {
    if MANY {
        let mut rest = index;
        let mut at = 0;
        for i in 0..4 {
            let axis = 3 - i;
            at += rest % sizes[axis] * steps[axis];
            rest /= sizes[axis];
        }
        at
    } else {
        index * steps[3]
    }
}

/// `LANES` lanes a result, which go along what it is made of; `each`: how much of it a slice has. Sizes and steps of what is combined count pieces.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn reduce_along<
    M: Piece,
    const N: usize,
    T: Storage,
    C: Combine,
    const LANES: usize,
    const KEPT: bool,
    const MANY: bool,
>(
    results: usize,
    count: usize,
    each: usize,
    kept_sizes: [usize; AXES],
    kept_steps: [usize; AXES],
    sizes: [usize; AXES],
    steps: [usize; AXES],
    factor: f32,
    x: &[M],
    y: &mut [T],
    parts: &mut [f32],
) {
    let part = shared_array::<[f32; 512]>();
    let lane = local_id_x() % 256;
    let result = group_id_x() * (256 / LANES) + lane / LANES;
    let slice = group_id_y();
    let mut all = [C::START; 8];
    if result < results {
        let from = place::<KEPT>(result, kept_sizes, kept_steps);
        let end = (slice * each + each).min(count);
        let mut at = slice * each + lane % LANES;
        while at < end {
            // Several are on their way at a time.
            let mut numbers = [[C::START; 8]; 4];
            for i in 0..4 {
                if at + i * LANES < end {
                    numbers[i] = x[from + place::<MANY>(at + i * LANES, sizes, steps)].spread();
                }
            }
            for i in 0..4 {
                for j in 0..N {
                    all[j] = C::combine(all[j], numbers[i][j]);
                }
            }
            at += 4 * LANES;
        }
    }
    let mut own = all[0];
    for j in 1..N {
        own = C::combine(own, all[j]);
    }
    let total = across::<f32, LANES, false>(part, lane, own, |a, b| C::combine(a, b));
    if result < results && lane.is_multiple_of(LANES) {
        if grid_dim_y() > 1 {
            parts[slice * results + result] = total;
        } else {
            y[result] = T::narrow(total * factor);
        }
    }
}

/// Lanes side by side have results side by side, a piece each; eight of them at a time share what each is made of. Sizes and steps of results count pieces.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn reduce_across<
    M: Piece,
    const N: usize,
    T: Storage,
    C: Combine,
    const KEPT: bool,
    const MANY: bool,
>(
    results: usize,
    count: usize,
    each: usize,
    kept_sizes: [usize; AXES],
    kept_steps: [usize; AXES],
    sizes: [usize; AXES],
    steps: [usize; AXES],
    factor: f32,
    x: &[M],
    y: &mut [T],
    parts: &mut [f32],
) {
    let part = shared_array::<[[f32; 256]; 8]>();
    let lane = local_id_x() % 256;
    let (within, team) = (lane % 32, lane / 32);
    let piece = group_id_x() * 32 + within;
    let slice = group_id_y();
    let mut all = [C::START; 8];
    if piece * N < results {
        let from = place::<KEPT>(piece, kept_sizes, kept_steps);
        let end = (slice * each + each).min(count);
        let mut at = slice * each + team;
        while at < end {
            // Several are on their way at a time.
            let mut numbers = [[C::START; 8]; 4];
            for i in 0..4 {
                if at + i * 8 < end {
                    numbers[i] = x[from + place::<MANY>(at + i * 8, sizes, steps)].spread();
                }
            }
            for i in 0..4 {
                for j in 0..N {
                    all[j] = C::combine(all[j], numbers[i][j]);
                }
            }
            at += 32;
        }
    }
    for j in 0..N {
        part[team][j * 32 + within] = all[j];
    }
    sync_threads();
    if lane < 32 * N {
        let mut total = part[0][lane];
        for i in 1..8 {
            total = C::combine(total, part[i][lane]);
        }
        let result = (group_id_x() * 32 + lane % 32) * N + lane / 32;
        if result < results {
            if grid_dim_y() > 1 {
                parts[slice * results + result] = total;
            } else {
                y[result] = T::narrow(total * factor);
            }
        }
    }
}
