//! Products with at most 16 rows, which take as long as the other factor takes to read: a block has few columns and all of the depth, or a slice of it. Must not know which of both factors
//! has few rows.

use perpetua::prelude::*;
use perpetua_language::kernel::resident::U32x4;

use super::naive::scaled;
use crate::element::{Factor, Piece, Storage};

/// Most rows.
pub(super) const ROWS: usize = 16;

/// Where a sum goes: into the result, or, of a slice, into memory of its own.
#[device]
#[allow(clippy::too_many_arguments, reason = "an element, and where it goes")]
fn store<T: Storage>(
    sum: f32,
    row: usize,
    column: usize,
    size: [usize; 2],
    steps: [usize; 2],
    alpha: f32,
    beta: f32,
    out: &mut [T],
    sums: &mut [f32],
) {
    let [rows, columns] = size;
    if row < rows && column < columns {
        if grid_dim_y() > 1 {
            sums[(group_id_y() * rows + row) * columns + column] = sum;
        } else {
            let at = row * steps[0] + column * steps[1];
            let before = if beta == 0.0 { None } else { Some(out[at].wide()) };
            out[at] = T::narrow(scaled(sum, before, alpha, beta));
        }
    }
}

/// For any device and type, `N` numbers of the factor with many columns at a time: of four columns, where depth goes `ALONG` its rows, else of one row, and 32 lanes side by side. `each`: how deep a slice
/// is. Of the other factor a row begins `left_row` after the one before, and depth goes on by `left_deep`.
#[kernel(block_size = 256, interpret, contract)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn gemm_thin<T: Storage, M: Piece, const N: usize, const HIGH: usize, const ALONG: bool>(
    rows: usize,
    columns: usize,
    k: usize,
    each: usize,
    left_row: usize,
    left_deep: usize,
    right_pitch: usize,
    out_row: usize,
    out_column: usize,
    alpha: f32,
    beta: f32,
    left: &[T],
    right: &[M],
    out: &mut [T],
    sums: &mut [f32],
) {
    let part = shared_array::<[[f32; 256]; 8]>();
    let lane = local_id_x() % 256;
    let from = group_id_y() * each;
    let to = (from + each).min(k);
    if ALONG {
        let first = group_id_x() * 4;
        let mut all = [[0.0f32; 4]; HIGH];
        let mut at = from / N + lane;
        while at * N < to {
            let mut numbers = [[0.0f32; 8]; 4];
            for c in 0..4 {
                if first + c < columns {
                    numbers[c] = right[(first + c) * right_pitch + at].spread();
                }
            }
            for row in 0..HIGH {
                if row < rows {
                    for j in 0..N {
                        let factor = left[row * left_row + (at * N + j) * left_deep].wide();
                        for c in 0..4 {
                            all[row][c] += factor * numbers[c][j];
                        }
                    }
                }
            }
            at += 256;
        }
        // Two rows of four columns at a time: 32 lanes add up what 256 have of a sum.
        for pair in 0..HIGH.div_ceil(2) {
            for i in 0..8 {
                let row = pair * 2 + i / 4;
                if row < HIGH {
                    part[i][lane] = all[row][i % 4];
                }
            }
            sync_threads();
            let (which, within) = (lane / 32, lane % 32);
            let mut sum = 0.0f32;
            for i in 0..8 {
                sum += part[which][i * 32 + within];
            }
            sync_threads();
            part[which][within] = sum;
            sync_threads();
            if within == 0 && pair * 2 + which / 4 < HIGH {
                let mut sum = 0.0f32;
                for i in 0..32 {
                    sum += part[which][i];
                }
                let (row, column) = (pair * 2 + which / 4, first + which % 4);
                let (size, steps) = ([rows, columns], [out_row, out_column]);
                store::<T>(sum, row, column, size, steps, alpha, beta, out, sums);
            }
            sync_threads();
        }
    } else {
        let (within, team) = (lane % 32, lane / 32);
        let piece = group_id_x() * 32 + within;
        let mut all = [[0.0f32; 8]; HIGH];
        if piece * N < columns {
            let mut deep = from + team;
            while deep < to {
                // Several rows are on their way at a time.
                let mut numbers = [[0.0f32; 8]; 4];
                for i in 0..4 {
                    if deep + 8 * i < to {
                        numbers[i] = right[(deep + 8 * i) * right_pitch + piece].spread();
                    }
                }
                for i in 0..4 {
                    for row in 0..HIGH {
                        if row < rows && deep + 8 * i < to {
                            let factor = left[row * left_row + (deep + 8 * i) * left_deep].wide();
                            for j in 0..N {
                                all[row][j] += factor * numbers[i][j];
                            }
                        }
                    }
                }
                deep += 32;
            }
        }
        for row in 0..HIGH {
            for j in 0..N {
                part[team][j * 32 + within] = all[row][j];
            }
            sync_threads();
            if lane < 32 * N {
                let mut sum = 0.0f32;
                for i in 0..8 {
                    sum += part[i][lane];
                }
                let column = (group_id_x() * 32 + lane % 32) * N + lane / 32;
                let (size, steps) = ([rows, columns], [out_row, out_column]);
                store::<T>(sum, row, column, size, steps, alpha, beta, out, sums);
            }
            sync_threads();
        }
    }
}

/// A piece of 16 bytes, zeros where there is none.
#[device]
fn piece(x: &[U32x4], at: usize, is_there: bool) -> [u32; 4] {
    let mut words = [0u32; 4];
    if is_there {
        let U32x4 { x, y, z, w } = x[at];
        words = [x, y, z, w];
    }
    words
}

/// By tensor cores, 16 bytes of both factors at a time, whose depth goes along the rows of the one with few. Which place in the depth is which of a product does not matter, as long as it is the same for
/// both factors: so a lane has eight that lie side by side. A block has 16 columns, 32 x 4 deep at a time for each of its eight subgroups, where depth goes `ALONG` the rows of the other factor,
/// too; else 64 columns, 32 deep. `TALL`: more than eight rows. Pitches count pieces.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn gemm_thin_tensor_core<T: Factor, const TALL: bool, const ALONG: bool>(
    rows: usize,
    columns: usize,
    k: usize,
    each: usize,
    left_pitch: usize,
    right_pitch: usize,
    out_row: usize,
    out_column: usize,
    alpha: f32,
    beta: f32,
    left: &[U32x4],
    right: &[U32x4],
    out: &mut [T],
    sums: &mut [f32],
) {
    let part = shared_array::<[[f32; 256]; 8]>();
    let lane = local_id_x() % 256;
    let team = lane / 32;
    let (own, within) = (lane % 32 / 4, lane % 4);
    let from = group_id_y() * each;
    let to = (from + each).min(k);
    let (size, steps) = ([rows, columns], [out_row, out_column]);
    if ALONG {
        let first = group_id_x() * 16;
        let mut all = [[0.0f32; 4]; 2];
        let mut deep = from;
        while deep < to {
            let mut upper = [[0u32; 4]; 4];
            let mut lower = [[0u32; 4]; 4];
            let mut numbers = [[[0u32; 4]; 2]; 4];
            for i in 0..4 {
                // 32 deep, side by side with those of the other subgroups.
                let at = deep / 8 + (i * 8 + team) * 4 + within;
                let inside = at * 8 < to;
                for half in 0..2 {
                    let column = first + half * 8 + own;
                    numbers[i][half] = piece(right, column * right_pitch + at, inside && column < columns);
                }
                upper[i] = piece(left, own * left_pitch + at, inside && own < rows);
                if TALL {
                    lower[i] = piece(left, (own + 8) * left_pitch + at, inside && own + 8 < rows);
                }
            }
            for i in 0..4 {
                let ([a, b, c, d], [e, f, g, h]) = (upper[i], lower[i]);
                for half in 0..2 {
                    let [p, q, r, s] = numbers[i][half];
                    all[half] = T::multiply([a, e, b, f], [p, q], all[half]);
                    all[half] = T::multiply([c, g, d, h], [r, s], all[half]);
                }
            }
            deep += 1024;
        }
        for i in 0..4 {
            // Rows from 0 or 8 on, and the first or second of two columns.
            for half in 0..2 {
                part[team][half * 32 + lane % 32] = all[half][i];
            }
            sync_threads();
            if lane < 64 {
                let mut sum = 0.0f32;
                for other in 0..8 {
                    sum += part[other][lane];
                }
                let row = lane % 32 / 4 + i / 2 * 8;
                let column = first + lane / 32 * 8 + lane % 4 * 2 + i % 2;
                store::<T>(sum, row, column, size, steps, alpha, beta, out, sums);
            }
            sync_threads();
        }
    } else {
        let first = group_id_x() * 64;
        let mut all = [[[0.0f32; 4]; 2]; 4];
        let mut deep = from;
        while deep < to {
            let chunk = deep + team * 32;
            let mine = chunk + within * 8;
            let inside = first + own * 8 < columns;
            let mut numbers = [[0u32; 4]; 8];
            for i in 0..8 {
                let at = (mine + i) * right_pitch + first / 8 + own;
                numbers[i] = piece(right, at, inside && mine + i < to);
            }
            let upper = piece(left, own * left_pitch + mine / 8, mine < to && own < rows);
            let mut lower = [0u32; 4];
            if TALL {
                lower = piece(
                    left,
                    (own + 8) * left_pitch + mine / 8,
                    mine < to && own + 8 < rows,
                );
            }
            for turn in 0..2 {
                for w in 0..4 {
                    let near = [numbers[turn * 4][w], numbers[turn * 4 + 1][w]];
                    let far = [numbers[turn * 4 + 2][w], numbers[turn * 4 + 3][w]];
                    let columns = [
                        near[0] & 0xffff | near[1] << 16,
                        near[0] >> 16 | near[1] & 0xffff_0000,
                        far[0] & 0xffff | far[1] << 16,
                        far[0] >> 16 | far[1] & 0xffff_0000,
                    ];
                    all[w][0] = T::multiply(columns, [upper[turn * 2], upper[turn * 2 + 1]], all[w][0]);
                    if TALL {
                        all[w][1] = T::multiply(columns, [lower[turn * 2], lower[turn * 2 + 1]], all[w][1]);
                    }
                }
            }
            deep += 256;
        }
        for w in 0..4 {
            for high in 0..if TALL { 2 } else { 1 } {
                for i in 0..4 {
                    part[team][i * 32 + lane % 32] = all[w][high][i];
                }
                sync_threads();
                if lane < 128 {
                    let mut sum = 0.0f32;
                    for other in 0..8 {
                        sum += part[other][lane];
                    }
                    let i = lane / 32;
                    let row = high * 8 + lane % 4 * 2 + i % 2;
                    let column = first + lane % 32 / 4 * 8 + w * 2 + i / 2;
                    store::<T>(sum, row, column, size, steps, alpha, beta, out, sums);
                }
                sync_threads();
            }
        }
    }
}

/// Adds up what slices of the depth have, in their order.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
pub(super) fn gemm_thin_total<T: Storage>(
    rows: usize,
    columns: usize,
    slices: usize,
    out_row: usize,
    out_column: usize,
    alpha: f32,
    beta: f32,
    sums: &[f32],
    out: &mut [T],
) {
    let (column, row) = (global_id_x(), group_id_y());
    if column < columns {
        let mut sum = 0.0f32;
        for slice in 0..slices {
            sum += sums[(slice * rows + row) * columns + column];
        }
        let at = row * out_row + column * out_column;
        let before = if beta == 0.0 { None } else { Some(out[at].wide()) };
        out[at] = T::narrow(scaled(sum, before, alpha, beta));
    }
}
