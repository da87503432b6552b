//! The language's functions for programs that run as ordinary Rust, one lane after another in blocks of
//! [`BLOCK`] lanes.

use std::cell::Cell;

/// Lanes per block.
pub(crate) const BLOCK: usize = 32;

thread_local! {
    static LANE: Cell<usize> = const { Cell::new(0) };
}

/// Makes `lane` the one that runs.
pub(crate) fn set_lane(lane: usize) {
    LANE.with(|l| l.set(lane));
}

pub(crate) fn global_id_x() -> usize {
    LANE.with(Cell::get)
}
