//! The operators: a row of [`primitives`] is one that kernels compute, a row of [`composed()`] one that is recorded as others. Methods, free
//! functions, the book's page, gradients and tests come from the rows.

#[cfg(feature = "linalg")]
mod algebra;
mod along;
mod arranging;
mod composed;
mod elementwise;
mod indexing;
mod losses;
mod norms;
mod reading;
mod reductions;
mod spectral;
mod standard;
mod structure;
mod windows;

use perpetua_ir::ops::{BinaryOp, Exactness, UnaryOp};

use crate::dtype::DType;
use crate::node::{Node, Op};

/// The operators as functions.
pub mod functions {
    #[cfg(feature = "linalg")]
    pub use super::algebra::functions::*;
    pub use super::along::functions::*;
    pub use super::arranging::functions::*;
    pub use super::composed::functions::*;
    pub use super::elementwise::functions::*;
    pub use super::indexing::functions::*;
    pub use super::losses::functions::*;
    pub use super::norms::functions::*;
    pub use super::reading::functions::*;
    pub use super::reductions::functions::*;
    pub use super::spectral::functions::*;
    pub use super::standard::functions::*;
    pub use super::windows::functions::*;
}

/// One primitive.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name, which is its method's and function's.
    pub name: &'static str,
    /// What it computes with.
    pub meaning: Meaning,
    /// The result's shape.
    pub shape: &'static str,
    /// The result's type.
    pub types: &'static str,
    /// What it is for.
    pub doc: &'static str,
}

/// How a primitive computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Each element by itself, by the IR's operator of one operand.
    Unary(UnaryOp),
    /// Each pair of elements by itself, by the IR's operator of two operands.
    Binary(BinaryOp),
    /// As its documentation says; with the derivative in words, if there is one.
    Own(&'static [&'static str]),
}

impl Row {
    /// Derivatives by the operands, as expressions of the operands `x`, `y`, the result `r` and the IR's operators; or one sentence. Empty where
    /// there are none, and asking for a gradient is an error.
    pub fn gradient(&self) -> &'static [&'static str] {
        match self.meaning {
            Meaning::Unary(op) => op.row().gradient,
            Meaning::Binary(op) => op.row().gradient,
            Meaning::Own(sentences) => sentences,
        }
    }

    /// How exact it is on floats, if it computes with one operator of the IR; else the bits follow from its documentation.
    pub fn exactness(&self) -> Exactness {
        match self.meaning {
            Meaning::Unary(op) => op.row().exactness,
            Meaning::Binary(op) => op.row().exactness,
            Meaning::Own(_) => Exactness::Exact,
        }
    }
}

/// One composed operator.
#[derive(Clone, Copy, Debug)]
pub struct Composed {
    /// Its name, which is its method's and function's.
    pub name: &'static str,
    /// What it is made of.
    pub formula: &'static str,
    /// What it is for.
    pub doc: &'static str,
}

/// All primitives.
pub fn primitives() -> impl Iterator<Item = &'static Row> {
    let parts = [
        elementwise::UNARY,
        elementwise::BINARY,
        reductions::ROWS,
        structure::ROWS,
    ];
    parts.into_iter().flatten()
}

/// All composed operators.
pub fn composed() -> impl Iterator<Item = &'static Composed> {
    let parts = [
        composed::ROWS,
        along::ROWS,
        arranging::ROWS,
        indexing::ROWS,
        losses::ROWS,
        norms::ROWS,
        spectral::ROWS,
        standard::ROWS,
        windows::ROWS,
        #[cfg(feature = "linalg")]
        algebra::ROWS,
    ];
    parts.into_iter().flatten()
}

/// All operators whose shape depends on values: they wait for the device, and have no gradient of their own.
pub fn reading() -> impl Iterator<Item = &'static Composed> {
    reading::ROWS.iter()
}

#[cfg(feature = "linalg")]
pub use algebra::MatrixNorm;
pub use reading::Unique;

/// Whether a primitive combines elements.
pub(crate) fn is_reduction(name: &str) -> bool {
    name == "segments" || reductions::ROWS.iter().any(|row| row.name == name)
}

/// The name of an operator of the IR.
pub(crate) fn name_of_unary(op: UnaryOp) -> &'static str {
    let row = primitives().find(|row| row.meaning == Meaning::Unary(op));
    row.map_or(op.name(), |row| row.name)
}

/// The name of an operator of the IR on operands of a type.
pub(crate) fn name_of_binary(op: BinaryOp, dtype: DType) -> &'static str {
    let mut rows = primitives().filter(|row| row.meaning == Meaning::Binary(op));
    // Of two rows, the second is that of truth values, and of division that of integers.
    let is_second = match op {
        BinaryOp::Div => !dtype.is_float(),
        _ => dtype == DType::Bool,
    };
    let first = rows.next();
    let row = if is_second { rows.next().or(first) } else { first };
    row.map_or(op.name(), |row| row.name)
}

/// The name of a recorded operation.
pub(crate) fn name_of(node: &Node) -> &'static str {
    match &node.op {
        Op::Leaf(name) => name,
        Op::Failed(_) => "error",
        Op::Example => "example",
        Op::Scalar { .. } => "full",
        Op::Coordinate { .. } => "coordinates",
        Op::Random { .. } => "random",
        Op::Unary(op) => name_of_unary(*op),
        Op::Binary(op) => name_of_binary(*op, node.dtype),
        Op::Select => "where",
        Op::Cast => "cast",
        Op::Same => "detach",
        Op::Variable => "tracked",
        Op::Reshape => "reshape",
        Op::Permute { .. } => "permute",
        Op::Expand => "expand",
        Op::Slice { .. } => "slice",
        Op::Flip { .. } => "flip",
        Op::Pad { .. } => "pad",
        Op::Gather { .. } => "gather",
        Op::Segments { .. } => "segments",
        Op::Reduce { how, .. } | Op::Joined { how, .. } => how.name(),
        Op::Product => "matmul",
        Op::Function(function) => function.name(),
        Op::Hook(_) => "with_hook",
        Op::Checkpoint(_) => "checkpoint",
    }
}
