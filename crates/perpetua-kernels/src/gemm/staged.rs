//! 128 x 256 sums a block at a time, multiplied in stages: while two teams of 128 lanes multiply, a third one has the next parts of A and B copied. Blocks
//! stay for several such tiles. Must not know which schedule suits a shape.

use perpetua::prelude::*;

use super::naive::scaled;
use super::tensor_core::Factors;
use crate::element::Storage;

/// Rows and columns of a tile of sums.
pub(super) const TILE: [usize; 2] = [128, 256];
/// Lanes of a block.
pub(super) const LANES: u32 = 384;
/// Most tiles of a product.
pub(super) const MOST_TILES: usize = 1 << 30;

/// The kernel for what is multiplied, and for which of A and B are transposed.
pub(super) fn function(factors: Factors, transposed: [bool; 2]) -> KernelFn {
    macro_rules! of_factor {
        ($factor:ty) => {
            match transposed {
                [false, false] => of_factor!($factor, [[[$factor; 64]; 128]; 4], [[[[$factor; 64]; 64]; 4]; 4]),
                [false, true] => of_factor!($factor, [[[$factor; 64]; 128]; 4], [[[$factor; 64]; 256]; 4]),
                [true, false] => of_factor!($factor, [[[[$factor; 64]; 64]; 2]; 4], [[[[$factor; 64]; 64]; 4]; 4]),
                [true, true] => of_factor!($factor, [[[[$factor; 64]; 64]; 2]; 4], [[[$factor; 64]; 256]; 4]),
            }
        };
        ($($argument:ty),*) => {
            gemm_staged::kernel::<$($argument),*>()
        };
    }
    match factors {
        Factors::F16 => of_factor!(f16),
        Factors::Bf16 => of_factor!(bf16),
    }
}

/// A type of which two numbers lie in a word.
#[device]
trait Paired: Storage {
    /// The bits of one.
    fn bits(self) -> u32;
    /// The number of these bits.
    fn of(bits: u32) -> Self;
}

#[device]
impl Paired for f16 {
    fn bits(self) -> u32 {
        self.to_bits() as u32
    }

    fn of(bits: u32) -> f16 {
        f16::from_bits(bits as u16)
    }
}

#[device]
impl Paired for bf16 {
    fn bits(self) -> u32 {
        self.to_bits() as u32
    }

    fn of(bits: u32) -> bf16 {
        bf16::from_bits(bits as u16)
    }
}

/// Tiles whose rows of A, and columns of B, are read at about the same time, so that they are still in the cache.
const GROUP: u32 = 8;

/// The first row and column of sums of a tile: eight rows of tiles are gone through column by column.
#[device]
fn corner(tile: u32, rows: u32, columns: u32) -> [u32; 2] {
    let group = GROUP * columns;
    let first = tile / group * GROUP;
    let high = if rows - first < GROUP { rows - first } else { GROUP };
    let within = tile % group;
    [(first + within % high) * 128, within / high * 256]
}

/// `A` and `B` say how their parts lie in the block's memory, and with that which way they are stored. C is written two elements at a time.
#[kernel(block_size = 384, interpret)]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
fn gemm_staged<T: Paired, A: GpuType, B: GpuType>(
    m: usize,
    n: usize,
    k: usize,
    a_rows: usize,
    a_columns: usize,
    a_pitch: usize,
    b_rows: usize,
    b_columns: usize,
    b_pitch: usize,
    c_pitch: usize,
    alpha: f32,
    beta: f32,
    a: &[T],
    b: &[T],
    c: &mut [u32],
) {
    stage_factors::<A, B>(a, a_rows, a_columns, a_pitch, b, b_rows, b_columns, b_pitch);
    let (rows, columns) = (m.div_ceil(128) as u32, n.div_ceil(256) as u32);
    let turns = k.div_ceil(64) as u32;
    let (first, blocks) = (group_id_x() as u32, grid_dim_x() as u32);
    if is_producer() {
        let mut tile = first;
        while tile < rows * columns {
            let [top, left] = corner(tile, rows, columns);
            for i in 0..turns {
                fill_stage(top, left, i * 64);
            }
            tile += blocks;
        }
    } else {
        let lane = local_id_x() as u32;
        // Where this lane's sums are in its tile.
        let (down, over) = (
            lane % 128 / 4 + lane % 128 / 32 * 8 + (lane / 128 - 1) * 64,
            lane % 4 * 2,
        );
        let mut tile = first;
        while tile < rows * columns {
            let mut sums = [[[0.0f32; 2]; 2]; 32];
            for _i in 0..turns {
                sums = multiply_stage(sums);
            }
            let [top, left] = corner(tile, rows, columns);
            let (y, x) = ((top + down) as usize, (left + over) as usize);
            for j in 0..2 {
                let line = (y + j * 8) * c_pitch + x;
                for i in 0..32 {
                    if y + j * 8 < m && x + i * 8 < n {
                        let at = (line + i * 8) / 2;
                        let [low, high] = sums[i][j];
                        let (mut low_before, mut high_before) = (None, None);
                        if beta != 0.0 {
                            low_before = Some(T::of(c[at] & 0xffff).wide());
                            high_before = Some(T::of(c[at] >> 16).wide());
                        }
                        let low = T::narrow(scaled(low, low_before, alpha, beta));
                        let high = T::narrow(scaled(high, high_before, alpha, beta));
                        c[at] = low.bits() | high.bits() << 16;
                    }
                }
            }
            tile += blocks;
        }
    }
}
