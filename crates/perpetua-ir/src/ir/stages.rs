//! Staged products of matrices: what the lanes of a block need to multiply parts of two matrices by whole groups of subgroups, while the
//! next parts are on their way. Knows no target.

use super::types::{Scalar, Type};

/// Two matrices of 16-bit elements of which parts lie in the block's memory, filled and multiplied in turns.
///
/// A block has `1 + left.extent / 64` teams of [`Stages::TEAM`] lanes. The first one fills stages, in turns, one after the other; each of the
/// others multiplies 64 rows of each, in the same order. A stage is filled again when all of them have multiplied it.
/// ([`StageOp`](crate::ops::StageOp) has the operations.) The memory is reached by nothing else, so how it is laid out is each target's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stages {
    /// How many there are.
    pub count: u32,
    /// `f16` or `bf16`: what both matrices hold.
    pub element: Scalar,
    /// What stands left in the product.
    pub left: Factor,
    /// What stands right in the product.
    pub right: Factor,
    /// Whether blocks `2 i` and `2 i + 1` of the grid, side by side along x, fill their stages together: with the same columns and depths, as
    /// often as each other. Then a device may have each of them bring half of what stands right, for both.
    pub pairs: bool,
}

/// One of the two matrices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Factor {
    /// The buffer parameter that holds it; it is only read.
    pub buffer: u32,
    /// The value parameters that say how many rows and columns it has as it is stored, and how many elements a row is from the next.
    pub shape: [u32; 3],
    /// How many rows (of the left one; of the right one columns) of sums a stage is for.
    pub extent: u32,
    /// Whether the depth, along which products are added up, goes from row to row; else it goes along rows.
    pub across: bool,
}

impl Stages {
    /// Lanes that do something together.
    pub const TEAM: u32 = 128;
    /// Rows of sums that a team has.
    pub const ROWS: u32 = 64;
    /// How deep a stage is, in elements.
    pub const DEPTH: u32 = 64;
    /// The greatest number of stages.
    pub const MOST: u32 = 16;
    /// The greatest extents of the factors: more teams would not have registers for their sums.
    pub const EXTENTS: [u32; 2] = [128, 256];

    /// Both factors, the left one first.
    pub fn factors(&self) -> [&Factor; 2] {
        [&self.left, &self.right]
    }

    /// How many rows and columns of a factor's matrix a block copies at a time, and how often for a stage.
    pub fn copies(&self, is_right: bool) -> ([u32; 2], u32) {
        let factor = if is_right { &self.right } else { &self.left };
        let extent = factor.extent / if is_right && self.pairs { 2 } else { 1 };
        match factor.across {
            true => ([Stages::DEPTH; 2], extent / Stages::DEPTH),
            false => ([extent, Stages::DEPTH], 1),
        }
    }

    /// Teams that multiply.
    pub fn consumers(&self) -> u32 {
        self.left.extent / Stages::ROWS
    }

    /// Lanes of a block.
    pub fn lanes(&self) -> u32 {
        Stages::TEAM * (1 + self.consumers())
    }

    /// What a lane's sums are.
    pub fn sums(&self) -> Type {
        Type::array(Type::array(Type::array(Type::F32, 2), 2), self.right.extent / 8)
    }

    /// Bytes of the block's memory that they take: with two words of 64 bits for each, by which lanes wait for it.
    pub fn bytes(&self) -> u32 {
        self.count * (self.stage_bytes() + 16)
    }

    /// Bytes of one stage.
    pub fn stage_bytes(&self) -> u32 {
        (self.left.extent + self.right.extent) * Stages::DEPTH * self.element.size()
    }
}

impl Factor {
    /// Bytes of its part of a stage.
    pub fn bytes(&self, element: Scalar) -> u32 {
        self.extent * Stages::DEPTH * element.size()
    }
}
