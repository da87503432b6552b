//! Staged products of matrices: what the lanes of a block need to multiply parts of two matrices by whole groups of subgroups, while the
//! next parts are on their way. Knows no target.

use super::types::{Scalar, Type};
use crate::ops::StageOp;

/// What is multiplied in stages: how the elements of factors are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StageElement {
    /// `f16`.
    F16,
    /// `bf16`.
    Bf16,
    /// `f32` of which the low 13 bits do not count.
    Tf32,
    /// Bytes that are floats of four bits for the exponent and three for digits, up to 448; without infinities.
    E4m3,
    /// Bytes that are the upper halves of `f16`.
    E5m2,
    /// `i8`.
    I8,
    /// `u8`.
    U8,
}

impl StageElement {
    /// All of them.
    pub const ALL: [StageElement; 7] = [
        StageElement::F16,
        StageElement::Bf16,
        StageElement::Tf32,
        StageElement::E4m3,
        StageElement::E5m2,
        StageElement::I8,
        StageElement::U8,
    ];

    /// Name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            StageElement::F16 => "f16",
            StageElement::Bf16 => "bf16",
            StageElement::Tf32 => "tf32",
            StageElement::E4m3 => "e4m3",
            StageElement::E5m2 => "e5m2",
            StageElement::I8 => "i8",
            StageElement::U8 => "u8",
        }
    }

    /// What buffers of such elements hold.
    pub const fn memory(self) -> Scalar {
        match self {
            StageElement::F16 => Scalar::F16,
            StageElement::Bf16 => Scalar::BF16,
            StageElement::Tf32 => Scalar::F32,
            StageElement::E4m3 | StageElement::E5m2 | StageElement::U8 => Scalar::U8,
            StageElement::I8 => Scalar::I8,
        }
    }

    /// What values of a type are: bytes are integers, unless they are in a struct whose name says which floats they are.
    pub fn of(ty: &Type) -> Option<StageElement> {
        match ty {
            Type::Scalar(Scalar::F16) => Some(StageElement::F16),
            Type::Scalar(Scalar::BF16) => Some(StageElement::Bf16),
            Type::Scalar(Scalar::F32) => Some(StageElement::Tf32),
            Type::Scalar(Scalar::I8) => Some(StageElement::I8),
            Type::Scalar(Scalar::U8) => Some(StageElement::U8),
            Type::Struct(of) if of.size == 1 => match &*of.name {
                "E4m3" => Some(StageElement::E4m3),
                "E5m2" => Some(StageElement::E5m2),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether buffers of a type may hold them.
    pub fn is_held_by(self, ty: &Type) -> bool {
        *ty == self.memory().into() || StageElement::of(ty) == Some(self)
    }

    /// In what products are added up.
    pub const fn sums(self) -> Scalar {
        match self {
            StageElement::I8 | StageElement::U8 => Scalar::I32,
            _ => Scalar::F32,
        }
    }

    /// How many of them are copied side by side, 128 bytes, which is how deep a stage is, unless a chain says more: up to four times as deep.
    pub const fn depth(self) -> u32 {
        128 / self.memory().size()
    }

    /// Whether depth may go from row to row: hardware transposes 16 bits at a time.
    pub const fn transposes(self) -> bool {
        self.memory().size() == 2
    }
}

impl std::fmt::Display for StageElement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Two matrices of which parts lie in the block's memory, filled and multiplied in turns; or three, as a chain; or four, as twins.
///
/// In a chain the left factor's part is copied once, with the first stage, and stays; a stage has a part of the right factor, whose product with it gives
/// a lane sums, and one of the third factor, with which the lane's weights are multiplied that it made of these sums: attention, with queries,
/// keys and values.
///
/// Twins are two products of the same extents and depth, whose left factors' parts stay. Weights that a lane makes of its sums are multiplied with a right
/// factor's part once more, along the other way: its extent is their depth then. So gradients of attention are computed, of keys and values with queries and the
/// result's gradient in the stages, or the other way round.
///
/// A block has `1 + left.extent / 64` teams of [`Stages::TEAM`] lanes. The first one fills stages, in turns, one after the other; each of the
/// others multiplies 64 rows of each, in the same order. A stage is filled again when all of them have multiplied it.
/// ([`StageOp`](crate::ops::StageOp) has the operations.) The memory is reached by nothing else, so how it is laid out is each target's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stages {
    /// How many there are.
    pub count: u32,
    /// What all matrices hold.
    pub element: StageElement,
    /// What stands left in the product.
    pub left: Factor,
    /// What stands right in the product.
    pub right: Factor,
    /// What weights made of the product are multiplied with.
    pub third: Option<Factor>,
    /// What stands left and right in a second product; then there is no third factor.
    pub twins: Option<[Factor; 2]>,
    /// How deep the parts of left and right factor are, in elements. The third factor's is as deep as the right one has columns.
    pub depth: u32,
    /// Whether blocks `2 i` and `2 i + 1` of the grid, side by side along x, fill their stages together: with the same columns and depths, as
    /// often as each other. Then a device may have each of them bring half of what stands right, for both.
    pub pairs: bool,
}

/// One of the matrices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Factor {
    /// The buffer parameter that holds it; it is only read.
    pub buffer: u32,
    /// The value parameters that say how many rows and columns it has as it is stored, and how many elements a row is from the next.
    pub shape: [u32; 3],
    /// The value parameters that say how many such matrices the buffer holds, and how many elements one is from the next; without them it holds one.
    pub layers: Option<[u32; 2]>,
    /// How many rows (of the left one; of the right one columns) of sums a stage is for.
    pub extent: u32,
    /// Whether the depth, along which products are added up, goes from row to row; else it goes along rows.
    pub across: bool,
}

/// What an operation multiplies: numbers of [`Stages::factors`], and how the right one is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What stands left: a factor, or else the lane's weights.
    pub left: Option<usize>,
    /// What stands right.
    pub right: usize,
    /// Columns of sums.
    pub columns: u32,
    /// How deep it is.
    pub depth: u32,
    /// Whether the depth of what stands right goes from row to row of its part as it lies there.
    pub across: bool,
    /// Whether the stage may be filled again.
    pub frees: bool,
}

impl Factor {
    /// The value parameters that describe it.
    pub fn described(&self) -> impl Iterator<Item = u32> {
        self.shape.into_iter().chain(self.layers.into_iter().flatten())
    }
}

impl Stages {
    /// Lanes that do something together.
    pub const TEAM: u32 = 128;
    /// Rows of sums that a team has.
    pub const ROWS: u32 = 64;
    /// What the depth of a product with weights is a multiple of.
    const DEPTH_OF_WEIGHTS: u32 = 16;
    /// The greatest number of stages.
    pub const MOST: u32 = 16;
    /// The greatest extents of the factors: more teams would not have registers for their sums.
    pub const EXTENTS: [u32; 3] = [128, 256, 256];

    /// The factors, the left one first.
    pub fn factors(&self) -> impl Iterator<Item = &Factor> {
        let twins = self.twins.iter().flatten();
        [&self.left, &self.right]
            .into_iter()
            .chain(&self.third)
            .chain(twins)
    }

    /// What the extent of a factor is a multiple of, by its number. In a chain the right one's is also a depth, that of the third one.
    pub fn extent_unit(&self, factor: usize) -> u32 {
        match (factor, &self.third) {
            (1, Some(_)) if !self.right.across => Stages::DEPTH_OF_WEIGHTS,
            _ => Stages::ROWS,
        }
    }

    /// How deep a part of a factor is, by its number.
    pub fn depth_of(&self, factor: usize) -> u32 {
        match (factor, &self.third) {
            (2, Some(_)) => self.right.extent,
            _ => self.depth,
        }
    }

    /// Whether a factor's part is copied once, with the first stage, and stays.
    pub fn keeps(&self, factor: usize) -> bool {
        match factor {
            0 => self.third.is_some() || self.twins.is_some(),
            2 => self.twins.is_some(),
            _ => false,
        }
    }

    /// What an operation multiplies, where the declaration has it.
    pub fn read_by(&self, op: StageOp) -> Option<Reading> {
        let product = |left, right: usize, frees| {
            let factor = self.factors().nth(right)?;
            Some(Reading {
                left: Some(left),
                right,
                columns: factor.extent,
                depth: self.depth,
                across: factor.across,
                frees,
            })
        };
        let of_weights = |right, columns, across, frees| {
            Some(Reading {
                left: None,
                right,
                columns,
                depth: self.right.extent,
                across,
                frees,
            })
        };
        match (op, &self.third, &self.twins) {
            (StageOp::Multiply, None, None) => product(0, 1, true),
            (StageOp::Multiply, ..) => product(0, 1, false),
            (StageOp::MultiplyTwin, _, Some(_)) => product(2, 3, false),
            (StageOp::Weigh, Some(third), _) => of_weights(2, third.extent, third.across, true),
            // Its rows are the columns of sums that weights were made of.
            (StageOp::Weigh, _, Some(_)) => of_weights(1, self.depth, true, true),
            (StageOp::WeighTwin, _, Some(_)) => of_weights(3, self.depth, true, false),
            _ => None,
        }
    }

    /// How many rows and columns of a factor's matrix a block copies at a time, and how often for a stage.
    pub fn copies(&self, number: usize) -> ([u32; 2], u32) {
        let Some(factor) = self.factors().nth(number) else {
            return ([0; 2], 0);
        };
        let depth = self.depth_of(number);
        let extent = factor.extent / if number == 1 && self.pairs { 2 } else { 1 };
        let (rows, columns) = match factor.across {
            true => (depth, extent),
            false => (extent, depth),
        };
        let panel = self.element.depth();
        ([rows, panel], columns / panel)
    }

    /// Teams that multiply.
    pub fn consumers(&self) -> u32 {
        self.left.extent / Stages::ROWS
    }

    /// Lanes of a block.
    pub fn lanes(&self) -> u32 {
        Stages::TEAM * (1 + self.consumers())
    }

    /// What a lane's sums are, of so many columns.
    pub fn sums(&self, columns: u32) -> Type {
        let two = Type::array(self.element.sums().into(), 2);
        Type::array(Type::array(two, 2), columns / 8)
    }

    /// Bytes of the block's memory that they take: with two words of 64 bits for each, by which lanes wait for it.
    pub fn bytes(&self) -> u32 {
        self.kept_bytes() + self.count * (self.stage_bytes() + 16)
    }

    /// Bytes of a factor's part, by its number.
    pub fn part_bytes(&self, number: usize) -> u32 {
        let extent = self.factors().nth(number).map_or(0, |factor| factor.extent);
        extent * self.depth_of(number) * self.element.memory().size()
    }

    /// Where a factor's part begins, by its number: among those that stay, or in a stage.
    pub fn part_start(&self, number: usize) -> u32 {
        let before = (0..number).filter(|before| self.keeps(*before) == self.keeps(number));
        before.map(|before| self.part_bytes(before)).sum()
    }

    /// Bytes of what stays in front of all stages.
    pub fn kept_bytes(&self) -> u32 {
        self.all_bytes(true)
    }

    /// Bytes of one stage.
    pub fn stage_bytes(&self) -> u32 {
        self.all_bytes(false)
    }

    fn all_bytes(&self, kept: bool) -> u32 {
        let numbers = (0..self.factors().count()).filter(|number| self.keeps(*number) == kept);
        numbers.map(|number| self.part_bytes(number)).sum()
    }
}
