//! A square a block, through shared memory, a lane a square of it in registers. Must not know which tile suits a shape.

use perpetua::prelude::*;

use super::naive::scaled;
use crate::element::{Element, Storage, instance};

/// Columns of A and rows of B that are in shared memory at the same time.
const DEPTH: usize = 16;

/// The kernel for a tile, for which of A and B are transposed, and for what the matrices hold.
pub(super) fn function(tile: usize, transposed: [bool; 2], element: Element) -> KernelFn {
    macro_rules! of_tile {
        ($width:tt, $runs:tt, $room:tt) => {
            match transposed {
                [false, false] => instance!(
                    element,
                    self::gemm_tiled,
                    $width,
                    $runs,
                    $room,
                    false,
                    false
                ),
                [false, true] => instance!(element, self::gemm_tiled, $width, $runs, $room, false, true),
                [true, false] => instance!(element, self::gemm_tiled, $width, $runs, $room, true, false),
                [true, true] => instance!(element, self::gemm_tiled, $width, $runs, $room, true, true),
            }
        };
    }
    match tile {
        128 => of_tile!(4, 2, 36),
        64 => of_tile!(4, 1, 18),
        32 => of_tile!(2, 1, 17),
        _ => of_tile!(1, 1, 17),
    }
}

/// An element of a matrix, or 0 outside of it.
#[device]
fn element<T: Storage>(x: &[T], inside: bool, at: usize) -> f32 {
    if inside { x[at].wide() } else { 0.0 }
}

/// A block's square has a side of `16 * WIDTH * RUNS`, a lane's `RUNS` x `RUNS` squares of `WIDTH` x `WIDTH`, 16 lanes apart, so that
/// neighbouring lanes read neighbouring runs of shared memory. `ROOM`: runs that a row of shared memory has room for, more than are
/// in it, so that what lanes store in a column falls into different banks.
#[kernel(block_size = 256, interpret, contract)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
fn gemm_tiled<
    T: Storage,
    const WIDTH: usize,
    const RUNS: usize,
    const ROOM: usize,
    const A_T: bool,
    const B_T: bool,
>(
    m: usize,
    n: usize,
    k: usize,
    a_pitch: usize,
    b_pitch: usize,
    c_pitch: usize,
    alpha: f32,
    beta: f32,
    a: &[T],
    b: &[T],
    c: &mut [T],
) {
    let left = shared_array::<[[[f32; WIDTH]; ROOM]; DEPTH]>();
    let right = shared_array::<[[[f32; WIDTH]; ROOM]; DEPTH]>();
    let tile = 16 * WIDTH * RUNS;
    let lane = local_id_x() % 256;
    let (x, y) = (lane % 16, lane / 16);
    let top = group_id_x() * tile;
    let first = group_id_y() * tile;
    let mut sums = [[[[0.0f32; WIDTH]; WIDTH]; RUNS]; RUNS];
    let mut from = 0;
    while from < k {
        for turn in 0..WIDTH * RUNS {
            let at = turn * 256 + lane;
            // Neighbouring lanes read neighbouring elements, whichever way the matrix lies.
            let (row, depth) = if A_T {
                (at % tile, at / tile % DEPTH)
            } else {
                (at / 16 % tile, at % DEPTH)
            };
            let (i, j) = (top + row, from + depth);
            let place = if A_T { j * a_pitch + i } else { i * a_pitch + j };
            left[depth][row / WIDTH][row % WIDTH] = element(a, i < m && j < k, place);
            let (column, depth) = if B_T {
                (at / 16 % tile, at % DEPTH)
            } else {
                (at % tile, at / tile % DEPTH)
            };
            let (i, j) = (from + depth, first + column);
            let place = if B_T { j * b_pitch + i } else { i * b_pitch + j };
            right[depth][column / WIDTH][column % WIDTH] = element(b, i < k && j < n, place);
        }
        sync_threads();
        for depth in 0..DEPTH {
            let mut l = [[0.0f32; WIDTH]; RUNS];
            let mut r = [[0.0f32; WIDTH]; RUNS];
            for run in 0..RUNS {
                l[run] = left[depth][run * 16 + y];
                r[run] = right[depth][run * 16 + x];
            }
            for i in 0..RUNS {
                for j in 0..RUNS {
                    for p in 0..WIDTH {
                        for q in 0..WIDTH {
                            sums[i][j][p][q] += l[i][p] * r[j][q];
                        }
                    }
                }
            }
        }
        sync_threads();
        from += DEPTH;
    }
    for i in 0..RUNS {
        for p in 0..WIDTH {
            let row = top + (i * 16 + y) * WIDTH + p;
            for j in 0..RUNS {
                for q in 0..WIDTH {
                    let column = first + (j * 16 + x) * WIDTH + q;
                    if row < m && column < n {
                        let at = row * c_pitch + column;
                        let before = if beta == 0.0 { None } else { Some(c[at].wide()) };
                        c[at] = T::narrow(scaled(sums[i][j][p][q], before, alpha, beta));
                    }
                }
            }
        }
    }
}
