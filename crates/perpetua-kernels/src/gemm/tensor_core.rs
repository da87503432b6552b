//! A square of 128 x 128 a block, by tensor cores: products of 16 x 16 with 16 x 8 elements that the lanes of a subgroup hold together.
//! Must not know which schedule suits a shape.

use std::sync::OnceLock;

use perpetua::prelude::*;

use super::naive::scaled;
use crate::element::Storage;

/// The side of a block's square.
pub(super) const TILE: usize = 128;

/// What tensor cores multiply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Factors {
    F16,
    Bf16,
}

/// Which instance of the kernel runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Instance {
    pub(super) factors: Factors,
    pub(super) transposed: [bool; 2],
    /// Whether A and B are read in pieces of 16 bytes, as [`U32x4`].
    pub(super) pieces: bool,
}

impl Instance {
    /// The kernel, with all its checks.
    pub(super) fn function(self) -> KernelFn {
        macro_rules! of_source {
            ($factor:ty, $source:ty) => {
                match self.transposed {
                    [false, false] => {
                        gemm_tensor_core::kernel::<$factor, $source, false, false, 128, 5, 32, 17>()
                    }
                    [false, true] => {
                        gemm_tensor_core::kernel::<$factor, $source, false, true, 128, 5, 128, 5>()
                    }
                    [true, false] => {
                        gemm_tensor_core::kernel::<$factor, $source, true, false, 32, 17, 32, 17>()
                    }
                    [true, true] => {
                        gemm_tensor_core::kernel::<$factor, $source, true, true, 32, 17, 128, 5>()
                    }
                }
            };
        }
        match (self.factors, self.pieces) {
            (Factors::F16, false) => of_source!(f16, f16),
            (Factors::F16, true) => of_source!(f16, U32x4),
            (Factors::Bf16, false) => of_source!(bf16, bf16),
            (Factors::Bf16, true) => of_source!(bf16, U32x4),
        }
    }

    /// The kernel without fault checks, for GPUs.
    ///
    /// # Safety
    /// In every launch A, B and C hold what the shape and the pitches say, and the block size is the kernel's own.
    pub(super) unsafe fn unchecked(self) -> KernelFn {
        static KNOWN: [OnceLock<KernelFn>; 16] = [const { OnceLock::new() }; 16];
        let bits = [
            self.factors == Factors::Bf16,
            self.transposed[0],
            self.transposed[1],
            self.pieces,
        ];
        let number = bits.into_iter().fold(0, |n, bit| 2 * n + usize::from(bit));
        let make = || {
            // SAFETY: rows and columns of A, B and C are compared with the shape before each access, and the caller promises that all of
            // the shape is there. Indices into shared memory and variables are made of the lane's number, which is below 256, and of
            // constants, so that they are the same in every launch: the checked kernel, which the CPU runs, faults at none of them. Nothing
            // divides by a number that is not a constant, and no enum is loaded.
            unsafe { self.function().unchecked() }
        };
        KNOWN
            .get(number)
            .map_or_else(make, |known| *known.get_or_init(make))
    }
}

/// A factor's type.
#[device]
trait Factor: Storage {
    /// A lane's part of `A B + C`.
    fn multiply(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4];
}

#[device]
impl Factor for f16 {
    fn multiply(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
        matrix_multiply_f16(a, b, c)
    }
}

#[device]
impl Factor for bf16 {
    fn multiply(a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
        matrix_multiply_bf16(a, b, c)
    }
}

/// Memory that holds a matrix.
#[device]
trait Source: GpuType {
    /// How many elements of the matrix are one of the memory.
    fn unit() -> usize;
    /// The eight elements from number `at` of the memory on, two in a word; zeros from the one on that has the number `count` among them.
    /// Whoever reads several at a time has all eight.
    fn eight(x: &[Self], at: usize, count: u32) -> [u32; 4];
}

#[device]
impl Source for U32x4 {
    fn unit() -> usize {
        8
    }

    fn eight(x: &[U32x4], at: usize, _count: u32) -> [u32; 4] {
        let piece = x[at];
        [piece.x, piece.y, piece.z, piece.w]
    }
}

#[device]
impl Source for f16 {
    fn unit() -> usize {
        1
    }

    fn eight(x: &[f16], at: usize, count: u32) -> [u32; 4] {
        let mut words = [0u32; 4];
        for i in 0..4 {
            if 2 * (i as u32) < count {
                words[i] = x[at + 2 * i].to_bits() as u32;
            }
            if 2 * (i as u32) + 1 < count {
                words[i] |= (x[at + 2 * i + 1].to_bits() as u32) << 16;
            }
        }
        words
    }
}

#[device]
impl Source for bf16 {
    fn unit() -> usize {
        1
    }

    fn eight(x: &[bf16], at: usize, count: u32) -> [u32; 4] {
        let mut words = [0u32; 4];
        for i in 0..4 {
            if 2 * (i as u32) < count {
                words[i] = x[at + 2 * i].to_bits() as u32;
            }
            if 2 * (i as u32) + 1 < count {
                words[i] |= (x[at + 2 * i + 1].to_bits() as u32) << 16;
            }
        }
        words
    }
}

/// What a lane reads of a matrix turn by turn, a part that is 32 wide or high at a time: eight elements of a row as it is stored.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Reader {
    /// Where the next ones are.
    at: usize,
    /// How far they move in a turn.
    step: usize,
    /// They are inside of the matrix while this is more than what has been multiplied.
    limit: u32,
    /// How many there are, where turns go from row to row.
    width: u32,
}

/// Reads a tile whose turns go along rows: `i` counts its rows, `j` the columns, from the first turn's.
#[device]
fn along<S: Source>(i: usize, rows: usize, j: usize, columns: usize, pitch: usize) -> Reader {
    let inside = i < rows && j < columns;
    Reader {
        at: if inside { (i * pitch + j) / S::unit() } else { 0 },
        step: if inside { 32 / S::unit() } else { 0 },
        limit: if inside { (columns - j) as u32 } else { 0 },
        width: 0,
    }
}

/// Reads a tile whose turns go from row to row.
#[device]
fn across<S: Source>(i: usize, rows: usize, j: usize, columns: usize, pitch: usize) -> Reader {
    let inside = i < rows && j < columns;
    Reader {
        at: if inside { (i * pitch + j) / S::unit() } else { 0 },
        step: if inside { 32 * pitch / S::unit() } else { 0 },
        limit: if inside { (rows - i) as u32 } else { 0 },
        width: if inside { (columns - j) as u32 } else { 0 },
    }
}

/// What is there after so much has been multiplied, zeros outside of the matrix.
#[device]
fn fetch<S: Source>(x: &[S], reader: Reader, across: bool, from: u32) -> [u32; 4] {
    if reader.limit > from {
        let count = if across { reader.width } else { reader.limit - from };
        S::eight(x, reader.at, count)
    } else {
        [0; 4]
    }
}

/// Eight subgroups, two above each other and four side by side; each has 64 x 32 sums. 32 columns of A and rows of B are in shared
/// memory at the same time, as they lie in memory; while one such part is multiplied, the next is on its way. `ROWS` and `ROOM`: rows of it, and
/// pieces of 16 bytes that a row has room for, more than are in it so that lanes which read eight rows read from all banks.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
fn gemm_tensor_core<
    T: Factor,
    S: Source,
    const A_T: bool,
    const B_T: bool,
    const A_ROWS: usize,
    const A_ROOM: usize,
    const B_ROWS: usize,
    const B_ROOM: usize,
>(
    m: usize,
    n: usize,
    k: usize,
    a_pitch: usize,
    b_pitch: usize,
    c_pitch: usize,
    alpha: f32,
    beta: f32,
    a: &[S],
    b: &[S],
    c: &mut [T],
) {
    let left = shared_array::<[[[[u32; 4]; A_ROOM]; A_ROWS]; 2]>();
    let right = shared_array::<[[[[u32; 4]; B_ROOM]; B_ROWS]; 2]>();
    let lane = local_id_x() % 256;
    let top = group_id_x() * 128;
    let first = group_id_y() * 128;
    // Where this subgroup's sums begin, and the row of an 8 x 8 matrix that this lane brings, and of which of four.
    let (above, aside) = (lane / 32 % 2 * 64, lane / 64 * 32);
    let (row, part) = (lane % 8, lane / 8 % 4);
    let mut sums = [[[[0.0f32; 4]; 2]; 2]; 4];
    let none = Reader {
        at: 0,
        step: 0,
        limit: 0,
        width: 0,
    };
    let mut a_reader = [none; 2];
    let mut b_reader = [none; 2];
    let mut a_next = [[0u32; 4]; 2];
    let mut b_next = [[0u32; 4]; 2];
    for i in 0..2 {
        let at = i * 256 + lane;
        a_reader[i] = if A_T {
            across::<S>(at / 16, k, top + at % 16 * 8, m, a_pitch)
        } else {
            along::<S>(top + at / 4, m, at % 4 * 8, k, a_pitch)
        };
        b_reader[i] = if B_T {
            along::<S>(first + at / 4, n, at % 4 * 8, k, b_pitch)
        } else {
            across::<S>(at / 16, k, first + at % 16 * 8, n, b_pitch)
        };
        a_next[i] = fetch::<S>(a, a_reader[i], A_T, 0);
        b_next[i] = fetch::<S>(b, b_reader[i], !B_T, 0);
    }
    let depth = k as u32;
    let mut stage = 0;
    let mut from = 0;
    for i in 0..2 {
        let at = i * 256 + lane;
        if A_T {
            left[stage][at / 16][at % 16] = a_next[i];
        } else {
            left[stage][at / 4][at % 4] = a_next[i];
        }
        if B_T {
            right[stage][at / 4][at % 4] = b_next[i];
        } else {
            right[stage][at / 16][at % 16] = b_next[i];
        }
    }
    while from < depth {
        from += 32;
        for i in 0..2 {
            a_reader[i].at += a_reader[i].step;
            b_reader[i].at += b_reader[i].step;
            a_next[i] = fetch::<S>(a, a_reader[i], A_T, from);
            b_next[i] = fetch::<S>(b, b_reader[i], !B_T, from);
        }
        // What has been stored can be read; and what was read before may be overwritten. The loads above are under way meanwhile: behind the
        // barrier compilers would put them last.
        sync_threads();
        let mut l = [[[0u32; 4]; 4]; 2];
        let mut r = [[[0u32; 4]; 2]; 2];
        for step in 0..2 {
            for i in 0..4 {
                l[step][i] = if A_T {
                    let brought = left[stage][step * 16 + part / 2 * 8 + row][above / 8 + i * 2 + part % 2];
                    matrix_columns(brought)
                } else {
                    let brought = left[stage][above + i * 16 + part % 2 * 8 + row][step * 2 + part / 2];
                    matrix_rows(brought)
                };
            }
            for j in 0..2 {
                r[step][j] = if B_T {
                    let brought = right[stage][aside + j * 16 + part / 2 * 8 + row][step * 2 + part % 2];
                    matrix_rows(brought)
                } else {
                    let brought = right[stage][step * 16 + part % 2 * 8 + row][aside / 8 + j * 2 + part / 2];
                    matrix_columns(brought)
                };
            }
            for i in 0..4 {
                for j in 0..2 {
                    let [near, near_below, far, far_below] = r[step][j];
                    sums[i][j][0] = T::multiply(l[step][i], [near, near_below], sums[i][j][0]);
                    sums[i][j][1] = T::multiply(l[step][i], [far, far_below], sums[i][j][1]);
                }
            }
        }
        stage = 1 - stage;
        for i in 0..2 {
            let at = i * 256 + lane;
            if A_T {
                left[stage][at / 16][at % 16] = a_next[i];
            } else {
                left[stage][at / 4][at % 4] = a_next[i];
            }
            if B_T {
                right[stage][at / 4][at % 4] = b_next[i];
            } else {
                right[stage][at / 16][at % 16] = b_next[i];
            }
        }
    }
    for i in 0..4 {
        for j in 0..2 {
            for side in 0..2 {
                for p in 0..4 {
                    let i_row = top + above + i * 16 + p / 2 * 8 + lane % 32 / 4;
                    let column = first + aside + j * 16 + side * 8 + lane % 4 * 2 + p % 2;
                    if i_row < m && column < n {
                        let at = i_row * c_pitch + column;
                        let before = if beta == 0.0 { None } else { Some(c[at].wide()) };
                        c[at] = T::narrow(scaled(sums[i][j][side][p], before, alpha, beta));
                    }
                }
            }
        }
    }
}
