//! How a pool lies in memory: what kernels (`lower/pool.rs`) and the host agree on. Knows neither.
//!
//! A pool is two buffers of `u32` words: its storage, of which blocks are runs of units of 16 bytes, and its table of
//! rows of four words. Row 0 is the pool's own: units handed out for the first time, rows in use, blocks given back, and its secret. Each
//! other row is a block: state, first unit plus one, units, bytes.
//!
//! A handle is a row's number (20 bits), a tag (11 bits) and the highest bit. A row's state is 0 before its first block, the handle while
//! the block is in use, the handle without the highest bit after it was given back, and [`BUSY`] while a lane prepares the block anew. So one
//! comparison tells whether a handle is good. A row's tags take all 2,048 values in turn, in an order that the row and the pool's secret
//! decide (`Emitter::keys`), so a handle of a block that was given back stays bad for 2,047 blocks of its row, and of the handles that a program could
//! make up for a row one in 2,048 is good. The secret is no cipher: a program that has had one row several times can work out its next tags.
//!
//! A row's storage is its own for ever; a block of less than a half of it goes elsewhere.
//!
//! Why no two blocks share a byte: storage comes from the counter of units, in one atomic addition, so the units that additions return are
//! disjoint; what ends beyond the storage is refused. Of such additions the one that found the counter within the storage, and no other, sets it
//! back to what it found: from its addition on the counter is beyond the end, so that nobody else gets storage until it is set back, and what
//! lies behind is nobody's. (In between, requests that would fit are refused with it.) The counter does not wrap: an addition follows a look that
//! found room for it, at most 2^20 lanes are between the two at the same time, and above [`ADDED_UNITS`] units, of which 2^20 could wrap, a
//! compare-exchange takes the addition's place. A row's block that was given back is taken by compare-exchange from a state
//! that has the tag in it, and there is one state for each.
//!
//! # Memory ordering
//!
//! - The lane that makes a block stores the state last, with release; an access loads it with acquire. So whoever finds its handle there
//!   finds the row's other words and the zeros, too.
//! - A block is given back by a compare-exchange with release, and taken again by one with acquire. So what its last owner stored comes before
//!   the zeros.
//!
//! Devices without ordered atomics (wgpu: WGSL has relaxed ones alone) lack both. There a row's first unit and its number of units, which never
//! change, tell by being 0 that they have not arrived, which is a fault; and an access that finds an old number of bytes stays within its row's own storage.
//! What lanes of one launch leave in blocks for each other there is ordered by barriers within a block of lanes, and else by the launch's end, as all memory is.

/// Bytes of a unit of storage.
pub(crate) const UNIT: u32 = 16;
/// Words of a unit.
pub(crate) const UNIT_WORDS: u32 = UNIT / 4;
/// Words of a row.
pub(crate) const ROW: u32 = 4;
/// Most rows.
pub(crate) const MAX_ROWS: u32 = 1 << TAG_SHIFT;
/// Most bytes of a pool: 2^27 units.
pub(crate) const MAX_BYTES: usize = 1 << 31;
/// Blocks of up to so many units are handed out by an addition: 2^20 of them at once stay below 2^31.
pub(crate) const ADDED_UNITS: u32 = 1 << 11;

/// Row 0: units handed out.
pub(crate) const UNITS: u32 = 0;
/// Row 0: rows in use, without row 0.
pub(crate) const ROWS: u32 = 1;
/// Row 0: blocks given back, and not yet taken again.
pub(crate) const FREED: u32 = 2;
/// Row 0: the secret.
pub(crate) const SECRET: u32 = 3;

/// A block's row: state.
pub(crate) const STATE: u32 = 0;
/// A block's row: first unit, plus one.
pub(crate) const FIRST: u32 = 1;
/// A block's row: units.
pub(crate) const SIZE: u32 = 2;
/// A block's row: bytes that were asked for.
pub(crate) const BYTES: u32 = 3;

/// Handles: whether the block is in use.
pub(crate) const IN_USE: u32 = 1 << 31;
/// State of a row whose block a lane prepares. No handle has row 0.
pub(crate) const BUSY: u32 = IN_USE;
/// Handles: where the tag begins; below it is the row.
pub(crate) const TAG_SHIFT: u32 = 20;
/// Largest tag.
pub(crate) const TAG_MASK: u32 = (1 << 11) - 1;

/// Multipliers and shifts of the mixing of a row's number with the secret, in which kernels take the same steps: `lowbias32` of C. Wellons.
pub(crate) const SPREAD: u32 = 0x9e37_79b9;
pub(crate) const MIX: [(u32, Option<u32>); 3] =
    [(16, Some(0x7feb_352d)), (15, Some(0x846c_a68b)), (16, None)];
/// Of the mixed bits, the row's step of tags begins here; its first tag lies below.
pub(crate) const STEP_SHIFT: u32 = 11;

/// Rows of the table of a pool: a block for each 64 bytes.
pub(crate) fn rows(bytes: usize) -> usize {
    (bytes / 64).clamp(64, MAX_ROWS as usize - 1) + 1
}

/// A secret for a new pool.
pub(crate) fn secret() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    // The keys of its hashes are random.
    RandomState::new().hash_one(0u8) as u32
}
