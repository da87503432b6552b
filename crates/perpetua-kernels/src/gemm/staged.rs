//! Up to 128 x 256 sums a block at a time, multiplied in stages: while one or two teams of 128 lanes multiply, another one has the next parts of A and B
//! copied. Blocks stay for several such tiles. Must not know who asks for a product.

use perpetua::prelude::*;

use super::naive::scaled;
use super::tensor_core::Factors;
use crate::element::{Paired, pair, turned};

/// Most tiles of a product.
pub(super) const MOST_TILES: usize = 1 << 30;

/// Rows and columns of a block's sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tile {
    /// As the next one, side by side with another block below it, which has the same columns.
    Pair,
    Large,
    Square,
    Small,
}

impl Tile {
    pub(super) const ALL: [Tile; 4] = [Tile::Pair, Tile::Large, Tile::Square, Tile::Small];

    /// Its rows and columns.
    pub(super) const fn size(self) -> [usize; 2] {
        match self {
            Tile::Pair | Tile::Large => [128, 256],
            Tile::Square => [128, 128],
            Tile::Small => [64, 128],
        }
    }

    /// Lanes of a block.
    pub(super) const fn lanes(self) -> u32 {
        match self {
            Tile::Pair | Tile::Large | Tile::Square => 384,
            Tile::Small => 256,
        }
    }

    /// Blocks that have the same columns at a time.
    pub(super) const fn together(self) -> usize {
        match self {
            Tile::Pair => 2,
            Tile::Large | Tile::Square | Tile::Small => 1,
        }
    }

    /// How many of them a product has.
    pub(super) fn count(self, m: usize, n: usize) -> usize {
        let ([rows, columns], together) = (self.size(), self.together());
        m.div_ceil(rows * together)
            .saturating_mul(n.div_ceil(columns))
            .saturating_mul(together)
    }

    /// How many blocks compute a product on so many multiprocessors.
    pub(super) fn blocks(self, m: usize, n: usize, multiprocessors: usize) -> usize {
        let together = self.together();
        (multiprocessors / together * together)
            .max(together)
            .min(self.count(m, n))
    }

    /// The one with which a product takes the least time on so many multiprocessors.
    pub(super) fn of(m: usize, n: usize, k: usize, multiprocessors: usize) -> Tile {
        let time = |tile: &Tile| {
            // In units of 10 ns on an H100: for 64 of depth, and for the rest of a tile.
            let (stage, rest) = match tile {
                Tile::Pair => (68, 100),
                Tile::Large => (72, 100),
                Tile::Square => (50, 75),
                Tile::Small => (33, 50),
            };
            let rounds = tile.count(m, n).div_ceil(multiprocessors.max(1));
            rounds.saturating_mul(k.div_ceil(64).saturating_mul(stage) + rest)
        };
        Tile::ALL.into_iter().min_by_key(time).unwrap_or(Tile::Large)
    }
}

/// Which instance of the kernel runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Instance {
    pub(super) factors: Factors,
    pub(super) transposed: [bool; 2],
    pub(super) tile: Tile,
    /// Whether C is written 16 bytes at a time, as [`U32x4`], and never read; else two elements at a time, as `u32`.
    pub(super) lines: bool,
}

impl Instance {
    /// The kernel, with all its checks.
    pub(super) fn function(self) -> KernelFn {
        macro_rules! of_tile {
            ($factor:ty, $kernel:ident, $high:tt, $panels:tt, $wide:tt, $columns:tt, $eighths:tt, $stages:tt) => {
                match self.transposed {
                    [false, false] => of_tile!(
                        $factor,
                        [[[$factor; 64]; $high]; $stages],
                        [[[[$factor; 64]; 64]; $wide]; $stages],
                        $kernel,
                        $eighths
                    ),
                    [false, true] => of_tile!(
                        $factor,
                        [[[$factor; 64]; $high]; $stages],
                        [[[$factor; 64]; $columns]; $stages],
                        $kernel,
                        $eighths
                    ),
                    [true, false] => of_tile!(
                        $factor,
                        [[[[$factor; 64]; 64]; $panels]; $stages],
                        [[[[$factor; 64]; 64]; $wide]; $stages],
                        $kernel,
                        $eighths
                    ),
                    [true, true] => of_tile!(
                        $factor,
                        [[[[$factor; 64]; 64]; $panels]; $stages],
                        [[[$factor; 64]; $columns]; $stages],
                        $kernel,
                        $eighths
                    ),
                }
            };
            ($factor:ty, $a:ty, $b:ty, $kernel:ident, $eighths:tt) => {
                match self.lines {
                    true => $kernel::kernel::<$factor, $a, $b, U32x4, $eighths>(),
                    false => $kernel::kernel::<$factor, $a, $b, u32, $eighths>(),
                }
            };
        }
        match (self.factors, self.tile) {
            (Factors::F16, Tile::Pair) => of_tile!(f16, gemm_staged_pair, 128, 2, 4, 256, 32, 4),
            (Factors::F16, Tile::Large) => of_tile!(f16, gemm_staged, 128, 2, 4, 256, 32, 4),
            (Factors::F16, Tile::Square) => of_tile!(f16, gemm_staged, 128, 2, 2, 128, 16, 6),
            (Factors::F16, Tile::Small) => of_tile!(f16, gemm_staged_low, 64, 1, 2, 128, 16, 8),
            (Factors::Bf16, Tile::Pair) => of_tile!(bf16, gemm_staged_pair, 128, 2, 4, 256, 32, 4),
            (Factors::Bf16, Tile::Large) => of_tile!(bf16, gemm_staged, 128, 2, 4, 256, 32, 4),
            (Factors::Bf16, Tile::Square) => of_tile!(bf16, gemm_staged, 128, 2, 2, 128, 16, 6),
            (Factors::Bf16, Tile::Small) => of_tile!(bf16, gemm_staged_low, 64, 1, 2, 128, 16, 8),
        }
    }
}

/// Memory that C is written to.
#[device]
trait Sink: GpuType {
    /// Whether it is written four words at a time, else word by word.
    fn is_line() -> bool;
    /// What four words are there.
    fn line(words: [u32; 4]) -> Self;
    /// What a word is there.
    fn word(word: u32) -> Self;
    /// The word that is there.
    fn bits(self) -> u32;
}

#[device]
impl Sink for u32 {
    fn is_line() -> bool {
        false
    }

    fn line(words: [u32; 4]) -> u32 {
        words[0]
    }

    fn word(word: u32) -> u32 {
        word
    }

    fn bits(self) -> u32 {
        self
    }
}

#[device]
impl Sink for U32x4 {
    fn is_line() -> bool {
        true
    }

    fn line(words: [u32; 4]) -> U32x4 {
        U32x4 {
            x: words[0],
            y: words[1],
            z: words[2],
            w: words[3],
        }
    }

    fn word(word: u32) -> U32x4 {
        U32x4 {
            x: word,
            y: word,
            z: word,
            w: word,
        }
    }

    fn bits(self) -> u32 {
        self.x
    }
}

/// Rows of tiles that are gone through column by column, so that what they read of A and B is still in the cache.
const GROUP: u32 = 8;

/// The first row and column of sums of a tile.
#[device]
fn corner(tile: u32, rows: u32, columns: u32, high: u32, wide: u32) -> [u32; 2] {
    let group = GROUP * columns;
    let first = tile / group * GROUP;
    let high_group = if rows - first < GROUP { rows - first } else { GROUP };
    let within = tile % group;
    [(first + within % high_group) * high, within / high_group * wide]
}

/// A block whose teams have `HIGH` rows of sums together, and `EIGHTHS` times eight columns; `TOGETHER` blocks have them below each other. `A` and `B` say how their parts lie in the block's
/// memory, and with that which way they are stored.
#[device]
#[allow(
    clippy::too_many_arguments,
    reason = "a kernel's arguments are its buffers and its shapes"
)]
fn product<
    T: Paired,
    A: GpuType,
    B: GpuType,
    C: Sink,
    const HIGH: usize,
    const EIGHTHS: usize,
    const TOGETHER: usize,
>(
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
    c: &mut [C],
) {
    stage_factors::<A, B>(a, a_rows, a_columns, a_pitch, b, b_rows, b_columns, b_pitch);
    let wide = EIGHTHS * 8;
    let (rows, columns) = (m.div_ceil(HIGH * TOGETHER) as u32, n.div_ceil(wide) as u32);
    let turns = k.div_ceil(64) as u32;
    let (first, blocks) = (
        group_id_x() as u32 / TOGETHER as u32,
        grid_dim_x() as u32 / TOGETHER as u32,
    );
    // Rows that this block is further down than the first of those together.
    let below = group_id_x() as u32 % TOGETHER as u32 * HIGH as u32;
    if is_producer() {
        let mut tile = first;
        while tile < rows * columns {
            let [top, left] = corner(tile, rows, columns, (HIGH * TOGETHER) as u32, wide as u32);
            for i in 0..turns {
                fill_stage(top + below, left, i * 64);
            }
            tile += blocks;
        }
    } else {
        let lane = local_id_x() as u32;
        // Where this lane's sums are in its tile: the row, and the column of the first ones.
        let down = lane % 128 / 4 + lane % 128 / 32 * 8 + (lane / 128 - 1) * 64;
        let over = lane % 4 * 2;
        let mut tile = first;
        while tile < rows * columns {
            let mut sums = [[[0.0f32; 2]; 2]; EIGHTHS];
            for _i in 0..turns {
                sums = multiply_stage(sums);
            }
            let [top, left] = corner(tile, rows, columns, (HIGH * TOGETHER) as u32, wide as u32);
            let (y, x) = ((top + below + down) as usize, left as usize);
            for j in 0..2 {
                let line = (y + j * 8) * c_pitch + x;
                let is_row = y + j * 8 < m;
                if C::is_line() {
                    // Four lanes that have two columns of each eight come to have all of every fourth eight.
                    for i in 0..EIGHTHS / 4 {
                        let four = [
                            pair::<T>(sums[i * 4][j], alpha),
                            pair::<T>(sums[i * 4 + 1][j], alpha),
                            pair::<T>(sums[i * 4 + 2][j], alpha),
                            pair::<T>(sums[i * 4 + 3][j], alpha),
                        ];
                        let four = turned(four, lane);
                        let eighth = i * 4 + (lane % 4) as usize;
                        if is_row && x + eighth * 8 < n {
                            c[line / 8 + eighth] = C::line(four);
                        }
                    }
                } else {
                    for i in 0..EIGHTHS {
                        let column = over as usize + i * 8;
                        if is_row && x + column < n {
                            let at = (line + column) / 2;
                            let [low, high] = sums[i][j];
                            let (mut low_before, mut high_before) = (None, None);
                            if beta != 0.0 {
                                low_before = Some(T::of(c[at].bits() & 0xffff).wide());
                                high_before = Some(T::of(c[at].bits() >> 16).wide());
                            }
                            let low = T::narrow(scaled(low, low_before, alpha, beta));
                            let high = T::narrow(scaled(high, high_before, alpha, beta));
                            c[at] = C::word(low.bits() | high.bits() << 16);
                        }
                    }
                }
            }
            tile += blocks;
        }
    }
}

/// A kernel of so many lanes a block, whose teams have so many rows, of so many blocks together; with what else it declares.
macro_rules! staged {
    ($(#[$doc:meta])* $name:ident, $lanes:tt, $high:tt, $together:tt, { $($declares:tt)* }) => {
        $(#[$doc])*
        #[kernel(block_size = $lanes, interpret)]
        #[allow(
            clippy::too_many_arguments,
            reason = "a kernel's arguments are its buffers and its shapes"
        )]
        fn $name<T: Paired, A: GpuType, B: GpuType, C: Sink, const EIGHTHS: usize>(
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
            c: &mut [C],
        ) {
            $($declares)*
            product::<T, A, B, C, $high, EIGHTHS, $together>(
                m, n, k, a_rows, a_columns, a_pitch, b_rows, b_columns, b_pitch, c_pitch, alpha, beta, a, b, c,
            );
        }
    };
}

staged! {
    /// Two teams multiply, and so do those of the block beside this one.
    gemm_staged_pair, 384, 128, 2, { stage_pairs(); }
}
staged! {
    /// Two teams multiply.
    gemm_staged, 384, 128, 1, {}
}
staged! {
    /// One team multiplies.
    gemm_staged_low, 256, 64, 1, {}
}
