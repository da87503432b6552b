//! Copies of matrices that lie as hardware takes them: whose rows begin at multiples of 16 bytes, or whose rows are the columns. Must not know products.

use perpetua::prelude::*;

/// Rows and columns that a block copies.
pub(super) const SIDE: usize = 64;
/// Lanes of a block.
pub(super) const LANES: u32 = 256;

/// Copies rows from one place to another; both pitches are in elements, and so is how far matrices are apart, of which each has its blocks along z.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn gemm_padded<T: GpuType>(
    rows: usize,
    columns: usize,
    from_pitch: usize,
    to_pitch: usize,
    from_apart: usize,
    to_apart: usize,
    from: &[T],
    to: &mut [T],
) {
    let column = group_id_y() * 64 + local_id_x() % 64;
    let (there, here) = (group_id_z() * from_apart, group_id_z() * to_apart);
    for i in 0..16 {
        let row = group_id_x() * 64 + local_id_x() / 64 + i * 4;
        if row < rows && column < columns {
            to[here + row * to_pitch + column] = from[there + row * from_pitch + column];
        }
    }
}

/// Copies a matrix of so many rows and columns as its transpose.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn gemm_transposed<T: GpuType>(
    rows: usize,
    columns: usize,
    from_pitch: usize,
    to_pitch: usize,
    from_apart: usize,
    to_apart: usize,
    from: &[T],
    to: &mut [T],
) {
    // A row more than 64 words keeps lanes that read a column in different banks.
    let square = shared_array::<[[T; 65]; 64]>();
    let (across, down) = (local_id_x() % 64, local_id_x() / 64);
    let (top, left) = (group_id_x() * 64, group_id_y() * 64);
    let (there, here) = (group_id_z() * from_apart, group_id_z() * to_apart);
    for i in 0..16 {
        let (row, column) = (top + down + i * 4, left + across);
        if row < rows && column < columns {
            square[down + i * 4][across] = from[there + row * from_pitch + column];
        }
    }
    sync_threads();
    for i in 0..16 {
        let (row, column) = (left + down + i * 4, top + across);
        if row < columns && column < rows {
            to[here + row * to_pitch + column] = square[across][down + i * 4];
        }
    }
}
