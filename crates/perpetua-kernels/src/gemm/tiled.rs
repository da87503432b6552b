//! A square a block, through shared memory, a lane a square of it in registers. Must not know which tile suits a shape.

use perpetua::prelude::*;

use super::naive::scaled;
use crate::element::{Element, Storage, instance};

/// Columns of A and rows of B that are in shared memory at the same time.
const DEPTH: usize = 16;

/// The kernel for a tile, for which of A and B are transposed, and for what the matrices hold.
pub(super) fn function(tile: usize, transposed: [bool; 2], element: Element) -> KernelFn {
    macro_rules! of_tile {
        ($width:tt, $runs:tt, $each:tt, $room:tt) => {
            match transposed {
                [false, false] => instance!(
                    element,
                    self::gemm_tiled,
                    $width,
                    $runs,
                    $each,
                    $room,
                    false,
                    false
                ),
                [false, true] => instance!(
                    element,
                    self::gemm_tiled,
                    $width,
                    $runs,
                    $each,
                    $room,
                    false,
                    true
                ),
                [true, false] => instance!(
                    element,
                    self::gemm_tiled,
                    $width,
                    $runs,
                    $each,
                    $room,
                    true,
                    false
                ),
                [true, true] => instance!(
                    element,
                    self::gemm_tiled,
                    $width,
                    $runs,
                    $each,
                    $room,
                    true,
                    true
                ),
            }
        };
    }
    match tile {
        128 => of_tile!(4, 2, 8, 32),
        64 => of_tile!(4, 1, 4, 16),
        32 => of_tile!(2, 1, 2, 16),
        _ => of_tile!(1, 1, 1, 16),
    }
}

/// What a lane reads of a matrix turn by turn: some elements of a tile, as it is stored.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Reader {
    /// Where the first element of the first turn is.
    at: usize,
    /// From an element to the next one of the same turn, and from one turn to the next.
    skip: usize,
    step: usize,
    /// How many rows or columns of sums, and how much depth, there are from the first element on.
    across: u32,
    along: u32,
    /// How much further an element is than the one before: across, and along.
    further: [u32; 2],
}

/// An element of the turn that begins at this depth, or 0 outside of the matrix.
#[device]
fn element<T: Storage>(x: &[T], reader: Reader, at: usize, i: usize, from: u32) -> f32 {
    let (across, along) = (i as u32 * reader.further[0], from + i as u32 * reader.further[1]);
    if across < reader.across && along < reader.along {
        x[at + i * reader.skip].wide()
    } else {
        0.0
    }
}

/// A lane's reader of a tile that is `tile` wide and [`DEPTH`] deep, of a matrix that begins `first` of `extent` from the tile, and is
/// `k` deep. Neighbouring lanes read neighbouring elements, whichever way the matrix lies.
#[device]
fn reader(
    lane: usize,
    tile: usize,
    first: usize,
    extent: usize,
    k: usize,
    pitch: usize,
    is_deep: bool,
) -> Reader {
    // Rows of a deep one go along the depth.
    let (over, depth) = if is_deep {
        (lane / DEPTH, lane % DEPTH)
    } else {
        (lane % tile, lane / tile)
    };
    let across = if first + over < extent {
        (extent - first - over) as u32
    } else {
        0
    };
    let along = if depth < k { (k - depth) as u32 } else { 0 };
    if is_deep {
        Reader {
            at: (first + over) * pitch + depth,
            skip: 256 / DEPTH * pitch,
            step: DEPTH,
            across,
            along,
            further: [256 / DEPTH as u32, 0],
        }
    } else {
        Reader {
            at: depth * pitch + first + over,
            skip: 256 / tile * pitch,
            step: DEPTH * pitch,
            across,
            along,
            further: [0, (256 / tile) as u32],
        }
    }
}

/// A block's square has a side of `16 * WIDTH * RUNS`, a lane's `RUNS` x `RUNS` squares of `WIDTH` x `WIDTH`, 16 lanes apart, so that
/// neighbouring lanes read neighbouring runs of shared memory. `ROOM`: runs in a row of shared memory; where a run lies in it depends on the row, so
/// that what lanes store in a column falls into different banks. `PER_LANE`: elements of a matrix that a lane brings in a turn.
/// While one half of shared memory is multiplied, what goes into the other one is on its way.
#[kernel(block_size = 256, interpret, contract)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
fn gemm_tiled<
    T: Storage,
    const WIDTH: usize,
    const RUNS: usize,
    const PER_LANE: usize,
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
    let left = shared_array::<[[[[f32; WIDTH]; ROOM]; DEPTH]; 2]>();
    let right = shared_array::<[[[[f32; WIDTH]; ROOM]; DEPTH]; 2]>();
    let tile = 16 * WIDTH * RUNS;
    let lane = local_id_x() % 256;
    let (x, y) = (lane % 16, lane / 16);
    let top = group_id_x() * tile;
    let first = group_id_y() * tile;
    let mut sums = [[[[0.0f32; WIDTH]; WIDTH]; RUNS]; RUNS];
    let a_reader = reader(lane, tile, top, m, k, a_pitch, !A_T);
    let b_reader = reader(lane, tile, first, n, k, b_pitch, B_T);
    let (mut a_at, mut b_at) = (a_reader.at, b_reader.at);
    let depth_of_all = k as u32;
    let mut from = 0;
    let mut stage = 0;
    let mut a_next = [0.0f32; PER_LANE];
    let mut b_next = [0.0f32; PER_LANE];
    for i in 0..PER_LANE {
        a_next[i] = element(a, a_reader, a_at, i, 0);
        b_next[i] = element(b, b_reader, b_at, i, 0);
    }
    while from < depth_of_all {
        // Nobody reads this half any more: all have come to the barrier of the turn before.
        for i in 0..PER_LANE {
            let at = i * 256 + lane;
            let (row, depth) = if A_T {
                (at % tile, at / tile % DEPTH)
            } else {
                (at / DEPTH % tile, at % DEPTH)
            };
            left[stage][depth][(row / WIDTH) ^ (depth % 8)][row % WIDTH] = a_next[i];
            let (column, depth) = if B_T {
                (at / DEPTH % tile, at % DEPTH)
            } else {
                (at % tile, at / tile % DEPTH)
            };
            right[stage][depth][(column / WIDTH) ^ (depth % 8)][column % WIDTH] = b_next[i];
        }
        from += DEPTH as u32;
        a_at += a_reader.step;
        b_at += b_reader.step;
        // On their way while this turn's products are added up; behind the barrier compilers would put them last.
        for i in 0..PER_LANE {
            a_next[i] = element(a, a_reader, a_at, i, from);
            b_next[i] = element(b, b_reader, b_at, i, from);
        }
        sync_threads();
        for depth in 0..DEPTH {
            let mut l = [[0.0f32; WIDTH]; RUNS];
            let mut r = [[0.0f32; WIDTH]; RUNS];
            for run in 0..RUNS {
                l[run] = left[stage][depth][(run * 16 + y) ^ (depth % 8)];
                r[run] = right[stage][depth][(run * 16 + x) ^ (depth % 8)];
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
        stage = 1 - stage;
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
