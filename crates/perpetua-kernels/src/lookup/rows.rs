//! Rows that numbers name: copied, and added up. Must not know how many lanes a row has.

use perpetua::prelude::*;

use crate::element::Piece;

/// Copies the row of the table that each index names, `LANES` lanes a row; of an index that names none `absent` everywhere.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn gather<T: GpuType, const LANES: usize>(
    rows: usize,
    words: usize,
    count: usize,
    x_pitch: usize,
    y_pitch: usize,
    absent: T,
    table: &[T],
    indices: &[u32],
    y: &mut [T],
) {
    let lane = local_id_x() % 256;
    let row = group_id_x() * (256 / LANES) + lane / LANES;
    if row < count {
        let index = indices[row] as usize;
        let (from, to) = (index * x_pitch, row * y_pitch);
        let mut at = lane % LANES;
        while at < words {
            // Several are on their way at a time.
            let mut held = [absent; 4];
            for i in 0..4 {
                if index < rows && at + i * LANES < words {
                    held[i] = table[from + at + i * LANES];
                }
            }
            for i in 0..4 {
                if at + i * LANES < words {
                    y[to + at + i * LANES] = held[i];
                }
            }
            at += 4 * LANES;
        }
    }
}

/// Adds up, for each row of the table, the rows of `dy` whose index names it, in their order: `places` has the numbers of those rows, one after the other for each row of the table, `bounds` where they begin and end.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn embedding_backward<M: Piece, const N: usize, const LANES: usize>(
    rows: usize,
    pieces: usize,
    dy_pitch: usize,
    table_pitch: usize,
    dy: &[M],
    places: &[u32],
    bounds: &[u32],
    table: &mut [M],
) {
    let lane = local_id_x() % 256;
    let row = group_id_x() * (256 / LANES) + lane / LANES;
    if row < rows {
        let (first, end) = (bounds[2 * row] as usize, bounds[2 * row + 1] as usize);
        let mut piece = lane % LANES;
        while piece < pieces {
            let mut sums = [0.0f32; 8];
            let mut at = first;
            while at < end {
                // Several are on their way at a time.
                let mut numbers = [[0.0f32; 8]; 4];
                for i in 0..4 {
                    if at + i < end {
                        numbers[i] = dy[places[at + i] as usize * dy_pitch + piece].spread();
                    }
                }
                for i in 0..4 {
                    for j in 0..N {
                        sums[j] += numbers[i][j];
                    }
                }
                at += 4;
            }
            table[row * table_pitch + piece] = M::gather(sums);
            piece += LANES;
        }
    }
}
