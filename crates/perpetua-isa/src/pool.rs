//! How a pool lies in memory: what kernels (`lower/pool.rs`) and the host agree on. Knows neither.
//!
//! A pool is two buffers of `u32` words: its storage, of which blocks are runs of units of 16 bytes, and its table of
//! rows of four words. Row 0 is the pool's own: units handed out for the first time, rows in use, blocks given back. Each other row
//! is a block: state, first unit, units, bytes.
//!
//! A handle is a row's number (20 bits), its generation (11 bits, from 1 on) and the highest bit. A row's state is 0 before its first
//! block, the handle while the block is in use, and the handle without the highest bit after it was given back. So one comparison tells whether
//! a handle is good, and a handle of a block that was given back stays bad when its storage is used again. A row's storage is its own for
//! ever; a block of less than a half of it goes elsewhere.
//!
//! Why no two blocks share a byte: storage comes from the counter of units, in one atomic addition that nobody takes back, so the units that
//! additions return are disjoint; what ends beyond the storage is refused. The counter does not wrap: an addition follows a look that
//! found room for it, at most 2^20 lanes are between the two at the same time, and above [`ADDED_UNITS`] units, of which 2^20 could wrap, a
//! compare-exchange takes the addition's place. A row's block that was given back is taken by compare-exchange from a state
//! that has the generation in it, and there is one state for each.

/// Bytes of a unit of storage.
pub(crate) const UNIT: u32 = 16;
/// Words of a unit.
pub(crate) const UNIT_WORDS: u32 = UNIT / 4;
/// Words of a row.
pub(crate) const ROW: u32 = 4;
/// Most rows.
pub(crate) const MAX_ROWS: u32 = 1 << GENERATION_SHIFT;
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

/// A block's row: state.
pub(crate) const STATE: u32 = 0;
/// A block's row: first unit.
pub(crate) const FIRST: u32 = 1;
/// A block's row: units.
pub(crate) const SIZE: u32 = 2;
/// A block's row: bytes that were asked for.
pub(crate) const BYTES: u32 = 3;

/// Handles: whether the block is in use.
pub(crate) const IN_USE: u32 = 1 << 31;
/// Handles: where the generation begins; below it is the row.
pub(crate) const GENERATION_SHIFT: u32 = 20;
/// Last generation; the first one follows.
pub(crate) const LAST_GENERATION: u32 = (1 << 11) - 1;

/// Rows of the table of a pool: a block for each 64 bytes.
pub(crate) fn rows(bytes: usize) -> usize {
    (bytes / 64).clamp(64, MAX_ROWS as usize - 1) + 1
}
