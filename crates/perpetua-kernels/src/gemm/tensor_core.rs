//! 128 x 128 or 128 x 256 sums a block, by tensor cores: products of 16 x 16 with 16 x 8 elements that the lanes of a subgroup hold together.
//! Must not know which schedule suits a shape.

use perpetua::prelude::*;

use super::naive::scaled;
use crate::element::Factor;

/// Rows of a block's sums.
pub(super) const ROWS: usize = 128;

/// What tensor cores multiply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Halves {
    F16,
    Bf16,
}

/// Which instance of the kernel runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Instance {
    pub(super) factors: Halves,
    pub(super) transposed: [bool; 2],
    /// Whether a block has 256 columns of sums instead of 128.
    pub(super) wide: bool,
    /// Whether A and B are read in pieces of 16 bytes, as [`U32x4`].
    pub(super) pieces: bool,
    /// Whether rows belong to several products.
    pub(super) grouped: bool,
}

impl Instance {
    /// The kernel, with all its checks.
    pub(super) fn function(self) -> KernelFn {
        macro_rules! of_source {
            ($factor:ty, $source:ty) => {
                match (self.wide, self.transposed) {
                    (false, [false, false]) => of_source!($factor, $source, 2, false, false, 128, 4, 32, 16),
                    (false, [false, true]) => of_source!($factor, $source, 2, false, true, 128, 4, 128, 4),
                    (false, [true, false]) => of_source!($factor, $source, 2, true, false, 32, 16, 32, 16),
                    (false, [true, true]) => of_source!($factor, $source, 2, true, true, 32, 16, 128, 4),
                    (true, [false, false]) => of_source!($factor, $source, 4, false, false, 128, 4, 32, 32),
                    (true, [false, true]) => of_source!($factor, $source, 4, false, true, 128, 4, 256, 4),
                    (true, [true, false]) => of_source!($factor, $source, 4, true, false, 32, 16, 32, 32),
                    (true, [true, true]) => of_source!($factor, $source, 4, true, true, 32, 16, 256, 4),
                }
            };
            ($($argument:tt),*) => {
                match self.grouped {
                    false => gemm_tensor_core::kernel::<$($argument),*, false>(),
                    true => gemm_tensor_core::kernel::<$($argument),*, true>(),
                }
            };
        }
        match (self.factors, self.pieces) {
            (Halves::F16, false) => of_source!(f16, f16),
            (Halves::F16, true) => of_source!(f16, U32x4),
            (Halves::Bf16, false) => of_source!(bf16, bf16),
            (Halves::Bf16, true) => of_source!(bf16, U32x4),
        }
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
        at: (i * pitch + j) / S::unit(),
        limit: if inside { (columns - j) as u32 } else { 0 },
        width: 0,
    }
}

/// Reads a tile whose turns go from row to row.
#[device]
fn across<S: Source>(i: usize, rows: usize, j: usize, columns: usize, pitch: usize) -> Reader {
    let inside = i < rows && j < columns;
    Reader {
        at: (i * pitch + j) / S::unit(),
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

/// What the number of a piece in a row of shared memory is turned by: eight rows of four pieces fill the banks twice over, and longer ones begin in
/// the same bank each.
#[device]
fn turned(row: usize, is_long: bool) -> usize {
    if is_long { row % 8 } else { row / 2 % 4 }
}

/// Which rows a block of rows in groups has, up to the end of its group, and which group that is; no rows where there are no more.
#[device]
fn group_of(offsets: &[u32], groups: usize, rows: usize) -> (usize, usize, usize) {
    let (mut tile, mut group) = (group_id_x(), 0);
    let (mut top, mut bottom, mut found) = (0, 0, 0);
    while group < groups {
        let from = (offsets[group] as usize).min(rows);
        let to = (offsets[group + 1] as usize).min(rows).max(from);
        let tiles = (to - from).div_ceil(128);
        if tile < tiles {
            (top, bottom, found) = (from + tile * 128, to, group);
            group = groups;
        } else {
            tile -= tiles;
            group += 1;
        }
    }
    (top, bottom, found)
}

/// Eight subgroups, two above each other and four side by side; each has 64 x 16 `WIDE` sums. 32 columns of A and rows of B are in shared
/// memory at the same time, as they lie in memory; while one such part is multiplied, the next is on its way. `ROWS` and `PIECES`: rows of it, and
/// pieces of 16 bytes in a row. Where a piece lies in its row depends on the row, so that lanes which read eight rows read from all banks.
/// `GROUPED`: rows belong to several products, from `offsets` on, whose matrices B are so far `apart`; a block has rows of one of them.
#[kernel(block_size = 256, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
fn gemm_tensor_core<
    T: Factor,
    S: Source,
    const WIDE: usize,
    const A_T: bool,
    const B_T: bool,
    const A_ROWS: usize,
    const A_PIECES: usize,
    const B_ROWS: usize,
    const B_PIECES: usize,
    const GROUPED: bool,
>(
    m: usize,
    n: usize,
    k: usize,
    a_pitch: usize,
    b_pitch: usize,
    c_pitch: usize,
    alpha: f32,
    beta: f32,
    groups: usize,
    apart: usize,
    a: &[S],
    b: &[S],
    offsets: &[u32],
    c: &mut [T],
) {
    let left = shared_array::<[[[[u32; 4]; A_PIECES]; A_ROWS]; 2]>();
    let right = shared_array::<[[[[u32; 4]; B_PIECES]; B_ROWS]; 2]>();
    let lane = local_id_x() % 256;
    // Rows of C, and which B they are multiplied with.
    let (top, bottom, group) = if GROUPED {
        group_of(offsets, groups, m)
    } else {
        (group_id_x() * 128, m, 0)
    };
    let first = group_id_y() * (64 * WIDE);
    // Where this subgroup's sums begin, and the row of an 8 x 8 matrix that this lane brings, and of which of four.
    let (above, aside) = (lane / 32 % 2 * 64, lane / 64 * (16 * WIDE));
    let (row, part) = (lane % 8, lane / 8 % 4);
    let mut sums = [[[[0.0f32; 4]; 2]; WIDE]; 4];
    let none = Reader {
        at: 0,
        limit: 0,
        width: 0,
    };
    // How far readers move in a turn; those outside of the matrix read nothing wherever they are.
    let a_step = (if A_T { 32 * a_pitch } else { 32 }) / S::unit();
    let b_step = (if B_T { 32 } else { 32 * b_pitch }) / S::unit();
    let mut a_reader = [none; 2];
    let mut b_reader = [none; WIDE];
    let mut a_next = [[0u32; 4]; 2];
    let mut b_next = [[0u32; 4]; WIDE];
    for i in 0..2 {
        let at = i * 256 + lane;
        let (x, y) = (at % A_PIECES, at / A_PIECES);
        a_reader[i] = if A_T {
            across::<S>(y, k, top + x * 8, bottom, a_pitch)
        } else {
            along::<S>(top + y, bottom, x * 8, k, a_pitch)
        };
        a_next[i] = fetch::<S>(a, a_reader[i], A_T, 0);
    }
    for i in 0..WIDE {
        let at = i * 256 + lane;
        let (x, y) = (at % B_PIECES, at / B_PIECES);
        b_reader[i] = if B_T {
            along::<S>(first + y, n, x * 8, k, b_pitch)
        } else {
            across::<S>(y, k, first + x * 8, n, b_pitch)
        };
        if GROUPED {
            b_reader[i].at += group * apart / S::unit();
        }
        b_next[i] = fetch::<S>(b, b_reader[i], !B_T, 0);
    }
    let depth = if !GROUPED || top < bottom { k as u32 } else { 0 };
    let mut stage = 0;
    let mut from = 0;
    for i in 0..2 {
        let (x, y) = ((i * 256 + lane) % A_PIECES, (i * 256 + lane) / A_PIECES);
        left[stage][y][x ^ turned(y, A_T)] = a_next[i];
    }
    for i in 0..WIDE {
        let (x, y) = ((i * 256 + lane) % B_PIECES, (i * 256 + lane) / B_PIECES);
        right[stage][y][x ^ turned(y, !B_T)] = b_next[i];
    }
    while from < depth {
        from += 32;
        for i in 0..2 {
            a_reader[i].at += a_step;
            a_next[i] = fetch::<S>(a, a_reader[i], A_T, from);
        }
        for i in 0..WIDE {
            b_reader[i].at += b_step;
            b_next[i] = fetch::<S>(b, b_reader[i], !B_T, from);
        }
        // What has been stored can be read; and what was read before may be overwritten. The loads above are under way meanwhile: behind the
        // barrier compilers would put them last.
        sync_threads();
        let mut l = [[0u32; 4]; 4];
        let mut r = [[0u32; 4]; WIDE];
        for step in 0..2 {
            for i in 0..4 {
                l[i] = if A_T {
                    let piece = (above / 8 + i * 2 + part % 2) ^ turned(row, A_T);
                    let brought = left[stage][step * 16 + part / 2 * 8 + row][piece];
                    matrix_columns(brought)
                } else {
                    let piece = (step * 2 + part / 2) ^ turned(row, A_T);
                    let brought = left[stage][above + i * 16 + part % 2 * 8 + row][piece];
                    matrix_rows(brought)
                };
            }
            for j in 0..WIDE {
                r[j] = if B_T {
                    let piece = (step * 2 + part % 2) ^ turned(row, !B_T);
                    let brought = right[stage][aside + j * 16 + part / 2 * 8 + row][piece];
                    matrix_rows(brought)
                } else {
                    let piece = (aside / 8 + j * 2 + part / 2) ^ turned(row, !B_T);
                    let brought = right[stage][step * 16 + part % 2 * 8 + row][piece];
                    matrix_columns(brought)
                };
            }
            for i in 0..4 {
                for j in 0..WIDE {
                    let [near, near_below, far, far_below] = r[j];
                    sums[i][j][0] = T::multiply(l[i], [near, near_below], sums[i][j][0]);
                    sums[i][j][1] = T::multiply(l[i], [far, far_below], sums[i][j][1]);
                }
            }
        }
        stage = 1 - stage;
        for i in 0..2 {
            let (x, y) = ((i * 256 + lane) % A_PIECES, (i * 256 + lane) / A_PIECES);
            left[stage][y][x ^ turned(y, A_T)] = a_next[i];
        }
        for i in 0..WIDE {
            let (x, y) = ((i * 256 + lane) % B_PIECES, (i * 256 + lane) / B_PIECES);
            right[stage][y][x ^ turned(y, !B_T)] = b_next[i];
        }
    }
    // This lane's first sum, and how many rows and columns of C there are from it on.
    let (down, over) = (top + above + lane % 32 / 4, first + aside + lane % 4 * 2);
    let rows = if down < bottom { (bottom - down) as u32 } else { 0 };
    let columns = if over < n { (n - over) as u32 } else { 0 };
    let mut line = down * c_pitch + over;
    for i in 0..4 {
        let below = line + 8 * c_pitch;
        for j in 0..WIDE {
            for side in 0..2 {
                for p in 0..4 {
                    let y = i as u32 * 16 + p as u32 / 2 * 8;
                    let x = j as u32 * 16 + side as u32 * 8 + p as u32 % 2;
                    if y < rows && x < columns {
                        let start = if p < 2 { line } else { below };
                        let at = start + (j * 16 + side * 8 + p % 2);
                        let before = if beta == 0.0 { None } else { Some(c[at].wide()) };
                        c[at] = T::narrow(scaled(sums[i][j][side][p], before, alpha, beta));
                    }
                }
            }
        }
        line += 16 * c_pitch;
    }
}
