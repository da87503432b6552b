//! A kernel reduced to what decides which bytes it accesses: indices, conditions, and the integers behind them. Made once for
//! each kernel. Knows no launch.
//!
//! Values lie in *slots*, one for each integer or `bool` that they are made of; slot 0 stands for all others, and is anything.

use perpetua_ir::ir::{Builtin, Scalar};
use perpetua_ir::ops::{BinaryOp, TernaryOp, UnaryOp};

pub(super) type Slot = u32;

/// What nothing is known of.
pub(super) const UNKNOWN: Slot = 0;

/// A value that a launch knows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fill {
    Constant(i64),
    /// The scalar at this byte of a parameter.
    Param(u32, u32),
    Builtin(Builtin),
    /// Elements of a buffer parameter.
    Len(u32),
    /// Elements of this size in dynamic shared memory.
    DynamicLen(u32),
}

/// How a slot's value comes about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// As memory or other lanes have it, between these.
    Between(i64, i64),
    Copy(Slot),
    Unary(UnaryOp, Scalar, Slot),
    Binary(BinaryOp, Scalar, Slot, Scalar, Slot),
    Ternary(TernaryOp, Scalar, [Slot; 3]),
    Cast(Scalar, Scalar, Slot),
}

/// How many elements an index chooses from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Length {
    Buffer,
    Fixed(u32),
}

/// An index of an access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Index {
    pub(super) slot: Slot,
    pub(super) ty: Scalar,
    pub(super) length: Length,
    /// Bytes of an element.
    pub(super) size: u32,
}

/// An access to a buffer.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) param: u32,
    pub(super) stores: bool,
    pub(super) indices: Vec<Index>,
    /// Bytes from where the indices lead to the first one.
    pub(super) offset: u32,
    /// Bytes.
    pub(super) size: u32,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    Let(Slot, Act),
    /// A slot that is written to several times.
    Assign(Slot, Slot),
    Access(Access),
    /// The value of the condition with this number.
    Condition(u32, Slot),
    /// Something beside accesses of buffers that may fault, last or be seen.
    Stops,
    If(Slot, Vec<Node>, Vec<Node>),
    Switch(Slot, Scalar, Vec<(Vec<u64>, Vec<Node>)>, Vec<Node>),
    Loop(Vec<Node>),
    Labeled(Vec<Node>),
    Break(u32),
    Continue(u32),
    Return,
}

#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) nodes: Vec<Node>,
    /// By slot.
    pub(super) types: Vec<Scalar>,
    /// How each slot is defined that is written once in the text.
    pub(super) acts: Vec<Option<Act>>,
    pub(super) fills: Vec<(Slot, Fill)>,
    /// By parameter; 0 of values.
    pub(super) elements: Vec<u32>,
}
