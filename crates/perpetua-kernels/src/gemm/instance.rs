//! Which kernel computes a product in stages: by what A, B and C hold, how they lie, and the tile. Must not know launches.

use perpetua::prelude::*;

use super::Factors;
use super::epilogue::Epilogue;
use super::staged::{gemm_staged, gemm_staged_low, gemm_staged_pair};
use super::tile::Tile;
use crate::byte_floats::{E4m3, E5m2};
use crate::element::Element;

/// Which instance of the kernel runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Instance {
    pub(super) factors: Factors,
    pub(super) transposed: [bool; 2],
    pub(super) tile: Tile,
    /// Whether sums of a stage are made by themselves, and added to the others.
    pub(super) promoted: bool,
    /// What C holds, where that is a choice.
    pub(super) result: Element,
    /// Whether it holds sums of integers as they are.
    pub(super) is_int: bool,
    pub(super) lines: Lines,
}

/// How C is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Lines {
    /// 16 bytes at a time, as [`U32x4`], and never read.
    Whole,
    /// A word at a time: an element, or two.
    Words,
    /// Half a word at a time.
    Halves,
}

impl Instance {
    /// The kernel, with all its checks.
    pub(super) fn function<E: Epilogue>(self) -> KernelFn {
        // By how A and B lie in stages, of factors of 16 bits.
        macro_rules! halves {
            ($factor:ty, $result:ty, $kernel:ident, $high:tt, $panels:tt, $wide:tt, $columns:tt, $eighths:tt, $stages:tt) => {
                match self.transposed {
                    [false, false] => written!(
                        $kernel,
                        $factor,
                        [[[$factor; 64]; $high]; $stages],
                        [[[[$factor; 64]; 64]; $wide]; $stages],
                        f32,
                        $result,
                        $eighths,
                        0
                    ),
                    [false, true] => written!(
                        $kernel,
                        $factor,
                        [[[$factor; 64]; $high]; $stages],
                        [[[$factor; 64]; $columns]; $stages],
                        f32,
                        $result,
                        $eighths,
                        0
                    ),
                    [true, false] => written!(
                        $kernel,
                        $factor,
                        [[[[$factor; 64]; 64]; $panels]; $stages],
                        [[[[$factor; 64]; 64]; $wide]; $stages],
                        f32,
                        $result,
                        $eighths,
                        0
                    ),
                    [true, true] => written!(
                        $kernel,
                        $factor,
                        [[[[$factor; 64]; 64]; $panels]; $stages],
                        [[[$factor; 64]; $columns]; $stages],
                        f32,
                        $result,
                        $eighths,
                        0
                    ),
                }
            };
            ($factor:ty, $result:ty) => {
                match self.tile {
                    Tile::Pair => halves!($factor, $result, gemm_staged_pair, 128, 2, 4, 256, 32, 4),
                    Tile::Large => halves!($factor, $result, gemm_staged, 128, 2, 4, 256, 32, 4),
                    Tile::Small => halves!($factor, $result, gemm_staged_low, 64, 1, 2, 128, 16, 8),
                    Tile::Thin => halves!($factor, $result, gemm_staged, 128, 2, 1, 64, 8, 8),
                    _ => halves!($factor, $result, gemm_staged, 128, 2, 2, 128, 16, 6),
                }
            };
            ($factor:ty) => {
                match self.result {
                    Element::F32 => halves!($factor, f32),
                    _ => halves!($factor, $factor),
                }
            };
        }
        // Of others, whose depth goes along rows.
        macro_rules! along {
            ($factor:ty, $depth:tt, $sum:ty, $result:ty) => {
                match self.tile {
                    Tile::Pair => along!(
                        $factor,
                        $depth,
                        $sum,
                        $result,
                        gemm_staged_pair,
                        128,
                        256,
                        32,
                        4,
                        0
                    ),
                    Tile::Large => along!(
                        $factor,
                        $depth,
                        $sum,
                        $result,
                        gemm_staged,
                        128,
                        256,
                        32,
                        4,
                        0
                    ),
                    Tile::Small => along!(
                        $factor,
                        $depth,
                        $sum,
                        $result,
                        gemm_staged_low,
                        64,
                        128,
                        16,
                        8,
                        0
                    ),
                    Tile::Thin => along!(
                        $factor,
                        $depth,
                        $sum,
                        $result,
                        gemm_staged,
                        128,
                        64,
                        8,
                        8,
                        0
                    ),
                    _ => along!(
                        $factor,
                        $depth,
                        $sum,
                        $result,
                        gemm_staged,
                        128,
                        128,
                        16,
                        6,
                        0
                    ),
                }
            };
            ($factor:ty, $depth:tt, $sum:ty, $result:ty, $kernel:ident, $high:tt, $columns:tt, $eighths:tt, $stages:tt, $promoted:tt) => {
                written!(
                    $kernel,
                    $factor,
                    [[[$factor; $depth]; $high]; $stages],
                    [[[$factor; $depth]; $columns]; $stages],
                    $sum,
                    $result,
                    $eighths,
                    $promoted
                )
            };
        }
        macro_rules! bytes {
            ($factor:ty) => {
                match self.result {
                    Element::F32 => bytes!($factor, f32),
                    Element::F16 => bytes!($factor, f16),
                    Element::Bf16 => bytes!($factor, bf16),
                }
            };
            ($factor:ty, $result:ty) => {
                match (self.promoted, self.tile) {
                    (false, _) => along!($factor, 128, f32, $result),
                    (true, Tile::SquarePair) => {
                        along!(
                            $factor,
                            128,
                            f32,
                            $result,
                            gemm_staged_pair,
                            128,
                            128,
                            16,
                            6,
                            1
                        )
                    }
                    (true, Tile::Small) => {
                        along!(
                            $factor,
                            128,
                            f32,
                            $result,
                            gemm_staged_low,
                            64,
                            128,
                            16,
                            8,
                            1
                        )
                    }
                    (true, Tile::Thin) => along!($factor, 128, f32, $result, gemm_staged, 128, 64, 8, 8, 1),
                    (true, _) => along!($factor, 128, f32, $result, gemm_staged, 128, 128, 16, 6, 1),
                }
            };
        }
        macro_rules! written {
            ($kernel:ident, $factor:ty, $a:ty, $b:ty, $sum:ty, $result:ty, $eighths:tt, $promoted:tt) => {
                match self.lines {
                    Lines::Whole => {
                        $kernel::kernel::<E, $factor, $a, $b, $sum, $result, U32x4, $eighths, $promoted>()
                    }
                    Lines::Words => {
                        $kernel::kernel::<E, $factor, $a, $b, $sum, $result, u32, $eighths, $promoted>()
                    }
                    Lines::Halves => {
                        $kernel::kernel::<E, $factor, $a, $b, $sum, $result, u16, $eighths, $promoted>()
                    }
                }
            };
        }
        match self.factors {
            Factors::F16 => halves!(f16),
            Factors::Bf16 => halves!(bf16),
            Factors::Tf32 => along!(f32, 32, f32, f32),
            Factors::I8 => match (self.is_int, self.result) {
                (true, _) => along!(i8, 128, i32, i32),
                (false, Element::F32) => along!(i8, 128, i32, f32),
                (false, Element::F16) => along!(i8, 128, i32, f16),
                (false, Element::Bf16) => along!(i8, 128, i32, bf16),
            },
            Factors::E4m3 => bytes!(E4m3),
            Factors::E5m2 => bytes!(E5m2),
        }
    }
}
