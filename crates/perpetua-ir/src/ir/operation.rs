//! What statements do: operations that give values, effects, and the places in memory that they reach. Names are indices of
//! [`Body`](super::Body).

use std::sync::Arc;

use super::{LocalId, Scalar, Type, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

/// An axis of a grid or block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// Fastest varying.
    X,
    /// Second.
    Y,
    /// Third.
    Z,
}

impl Axis {
    /// All three.
    pub const ALL: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];
    /// `x`, `y` or `z`.
    pub const fn name(self) -> &'static str {
        match self {
            Axis::X => "x",
            Axis::Y => "y",
            Axis::Z => "z",
        }
    }
}

/// A value that the launch supplies; all are `u32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Builtin {
    /// Index of the lane in its block.
    ThreadIdx(Axis),
    /// Index of the block in the grid.
    BlockIdx(Axis),
    /// Lanes per block.
    BlockDim(Axis),
    /// Blocks in the grid.
    GridDim(Axis),
    /// Lanes per subgroup (warp, wave, SIMD-group).
    SubgroupSize,
    /// Index of the lane in its subgroup.
    SubgroupLane,
}

/// Memory ordering of an access, as in the C++20 and Rust memory models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemOrder {
    /// Atomic, orders nothing else.
    Relaxed,
    /// A load that later accesses stay behind.
    Acquire,
    /// A store that earlier accesses stay before.
    Release,
    /// Both, for a read-modify-write.
    AcqRel,
    /// In one total order with every other such access.
    SeqCst,
}

/// Whom an ordering or a fence is between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Lanes of one block.
    Block,
    /// All lanes on one device.
    Device,
    /// The device, other devices and the host.
    System,
}

impl Scope {
    /// All of them.
    pub const ALL: [Scope; 3] = [Scope::Block, Scope::Device, Scope::System];
    /// Name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Scope::Block => "block",
            Scope::Device => "device",
            Scope::System => "system",
        }
    }
}

/// An atomic access's order and scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sync {
    /// Ordering.
    pub order: MemOrder,
    /// Scope.
    pub scope: Scope,
}

impl Sync {
    /// Relaxed at device scope: what plain `atomic_*` calls mean.
    pub const RELAXED: Sync = Sync {
        order: MemOrder::Relaxed,
        scope: Scope::Device,
    };
}

/// Where a [`Place`] starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// Buffer parameter by its index in [`Kernel::params`](super::Kernel::params); the path must begin with [`Step::Index`].
    Buffer(u32),
    /// Shared variable by index; a dynamic one's path must begin with [`Step::Index`].
    Shared(u32),
    /// Local variable of this body.
    Local(LocalId),
    /// Constant table by index; exactly one [`Step::Index`]; only loads.
    Constant(u32),
}

/// One step into an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Element by a run-time index of any integer type, checked against the length; a negative one is out of
    /// bounds.
    Index(Value),
    /// Field, element or vector lane by a constant index.
    Field(u32),
}

/// A place in memory: a base and a path into it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Where it starts.
    pub base: Base,
    /// Steps, outermost first.
    pub path: Vec<Step>,
}

/// A read-modify-write on one scalar in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicOp {
    /// Wrapping or floating-point addition.
    Add,
    /// Wrapping or floating-point subtraction.
    Sub,
    /// Minimum (floats as `f32::min`).
    Min,
    /// Maximum (floats as `f32::max`).
    Max,
    /// Bitwise and; integers.
    And,
    /// Bitwise or; integers.
    Or,
    /// Bitwise exclusive or; integers.
    Xor,
    /// Replacement.
    Exchange,
}

impl AtomicOp {
    /// All operations.
    pub const ALL: [AtomicOp; 8] = [
        AtomicOp::Add,
        AtomicOp::Sub,
        AtomicOp::Min,
        AtomicOp::Max,
        AtomicOp::And,
        AtomicOp::Or,
        AtomicOp::Xor,
        AtomicOp::Exchange,
    ];
    /// Name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            AtomicOp::Add => "add",
            AtomicOp::Sub => "sub",
            AtomicOp::Min => "min",
            AtomicOp::Max => "max",
            AtomicOp::And => "and",
            AtomicOp::Or => "or",
            AtomicOp::Xor => "xor",
            AtomicOp::Exchange => "exchange",
        }
    }
    /// What combines the old value with the operand, as an operator of the table; `None` where the operand takes its place.
    pub const fn binary(self) -> Option<BinaryOp> {
        match self {
            AtomicOp::Add => Some(BinaryOp::Add),
            AtomicOp::Sub => Some(BinaryOp::Sub),
            AtomicOp::Min => Some(BinaryOp::Min),
            AtomicOp::Max => Some(BinaryOp::Max),
            AtomicOp::And => Some(BinaryOp::And),
            AtomicOp::Or => Some(BinaryOp::Or),
            AtomicOp::Xor => Some(BinaryOp::Xor),
            AtomicOp::Exchange => None,
        }
    }
}

/// A combining operation of a subgroup reduction or scan. And, Or, Xor take integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// Sum; wraps.
    Add,
    /// Product; wraps.
    Mul,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

impl ReduceOp {
    /// All operations.
    pub const ALL: [ReduceOp; 7] = [
        ReduceOp::Add,
        ReduceOp::Mul,
        ReduceOp::Min,
        ReduceOp::Max,
        ReduceOp::And,
        ReduceOp::Or,
        ReduceOp::Xor,
    ];
    /// Name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            ReduceOp::Add => "add",
            ReduceOp::Mul => "mul",
            ReduceOp::Min => "min",
            ReduceOp::Max => "max",
            ReduceOp::And => "and",
            ReduceOp::Or => "or",
            ReduceOp::Xor => "xor",
        }
    }
    /// The same combination of two values, as an operator of the table.
    pub const fn binary(self) -> BinaryOp {
        match self {
            ReduceOp::Add => BinaryOp::Add,
            ReduceOp::Mul => BinaryOp::Mul,
            ReduceOp::Min => BinaryOp::Min,
            ReduceOp::Max => BinaryOp::Max,
            ReduceOp::And => BinaryOp::And,
            ReduceOp::Or => BinaryOp::Or,
            ReduceOp::Xor => BinaryOp::Xor,
        }
    }
}

/// What the factors of a matrix product hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixElement {
    /// `f16`, two in a word.
    F16,
    /// `bf16`, two in a word.
    Bf16,
    /// `f32` of which the low 13 bits do not count.
    Tf32,
}

impl MatrixElement {
    /// All of them.
    pub const ALL: [MatrixElement; 3] = [MatrixElement::F16, MatrixElement::Bf16, MatrixElement::Tf32];
    /// Name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            MatrixElement::F16 => "f16",
            MatrixElement::Bf16 => "bf16",
            MatrixElement::Tf32 => "tf32",
        }
    }
    /// Elements in a word.
    pub const fn in_word(self) -> u32 {
        match self {
            MatrixElement::F16 | MatrixElement::Bf16 => 2,
            MatrixElement::Tf32 => 1,
        }
    }
}

/// An operation that gives a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A scalar constant: its bits, zero-extended (`bool`: 0 or 1).
    Const(Scalar, u64),
    /// All bits zero, of any type.
    Zero(Type),
    /// Parameter of value kind, by its index in [`Kernel::params`](super::Kernel::params).
    Param(u32),
    /// A value that the launch supplies.
    Builtin(Builtin),
    /// Operator of one operand.
    Unary(UnaryOp, Value),
    /// Operator of two operands.
    Binary(BinaryOp, Value, Value),
    /// Operator of three operands.
    Ternary(TernaryOp, Value, Value, Value),
    /// Rust's `as` between scalars.
    Cast(Scalar, Value),
    /// The same bits at another scalar type of the same width.
    Bitcast(Scalar, Value),
    /// Builds an aggregate from its components.
    Compose(Type, Vec<Value>),
    /// Component `index` of an aggregate.
    Extract(Value, u32),
    /// A copy of an aggregate with component `index` replaced: `(aggregate, index, component)`.
    Insert(Value, u32, Value),
    /// Reads memory; atomic if ordered (scalars, and aligned structs of four words, relaxed only).
    Load(Place, Option<Sync>),
    /// Number of elements of a buffer parameter or of dynamic shared memory, as an integer of this type (`u32` or `u64`).
    Len(Base, Scalar),
    /// Atomic read-modify-write: gives the old value. Scalars `i32 u32 i64 u64 f32 f64`.
    Atomic(AtomicOp, Place, Value, Sync),
    /// Atomic compare-and-exchange of integers (strong): gives the old value; equal to `expected` when it was
    /// replaced.
    CompareExchange {
        /// Where.
        place: Place,
        /// Expected old value.
        expected: Value,
        /// Value to put there.
        new: Value,
        /// Order (of success; failure loads with the matching load order) and scope.
        sync: Sync,
    },
    /// What the lane asks of its device, with the operands that its row ([`DeviceOp::row`]) says.
    Device(DeviceOp, Vec<Value>),
    /// Calls the function with this index.
    Call(u32, Vec<Value>),
}

/// What went wrong in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// Index (first operand) not below the length (second operand).
    IndexOutOfBounds,
    /// Integer division or remainder by zero; operand: the dividend.
    DivisionByZero,
    /// `MIN / -1` or `MIN % -1`; operands: dividend and divisor.
    DivisionOverflow,
    /// A `match` met an enum value that its type does not have; operand: the value.
    UnreachableEnum,
    /// `unreachable!()` was reached; no operands.
    Unreachable,
    /// A range was to be taken in steps of zero; no operands.
    ZeroStep,
    /// A loop ran on when its time was over; no operands.
    TimeLimit,
    /// A loop ran on when its budget was spent; operand: the budget, in instructions.
    BudgetSpent,
    /// The driver ended a loop before its time; operand: how many turns it allows (`pass::tell_cut_loops`).
    LoopCut,
    /// A pool has no room for a block; operand: its bytes.
    PoolExhausted,
    /// A pool has no block of a handle; operand: the handle.
    NoPoolBlock,
    /// The source gave up with a message ([`Effect::Panic`]); as an [`Effect::Fault`] it has none, and no operands.
    Panic,
}

impl FaultKind {
    /// All kinds, in the order of their codes in fault records.
    pub const ALL: [FaultKind; 12] = [
        FaultKind::IndexOutOfBounds,
        FaultKind::DivisionByZero,
        FaultKind::DivisionOverflow,
        FaultKind::UnreachableEnum,
        FaultKind::Unreachable,
        FaultKind::ZeroStep,
        FaultKind::TimeLimit,
        FaultKind::BudgetSpent,
        FaultKind::LoopCut,
        FaultKind::PoolExhausted,
        FaultKind::NoPoolBlock,
        FaultKind::Panic,
    ];
    /// Number of operands, all integers; the dividend of [`FaultKind::DivisionByZero`] may have two words.
    pub const fn operands(self) -> usize {
        match self {
            FaultKind::IndexOutOfBounds | FaultKind::DivisionOverflow => 2,
            FaultKind::DivisionByZero
            | FaultKind::UnreachableEnum
            | FaultKind::BudgetSpent
            | FaultKind::LoopCut
            | FaultKind::PoolExhausted
            | FaultKind::NoPoolBlock => 1,
            FaultKind::Unreachable | FaultKind::ZeroStep | FaultKind::TimeLimit | FaultKind::Panic => 0,
        }
    }
    /// Name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            FaultKind::IndexOutOfBounds => "index_out_of_bounds",
            FaultKind::DivisionByZero => "division_by_zero",
            FaultKind::DivisionOverflow => "division_overflow",
            FaultKind::UnreachableEnum => "unreachable_enum",
            FaultKind::Unreachable => "unreachable",
            FaultKind::ZeroStep => "zero_step",
            FaultKind::TimeLimit => "time_limit",
            FaultKind::BudgetSpent => "budget_spent",
            FaultKind::LoopCut => "loop_cut",
            FaultKind::PoolExhausted => "pool_exhausted",
            FaultKind::NoPoolBlock => "no_pool_block",
            FaultKind::Panic => "panic",
        }
    }
}

pub use crate::ops::{DeviceOp, MatrixOp, StageOp, SubgroupOp};
pub use perpetua_syntax::PrintFormat;

/// One piece of a printed line or of a panic's message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PrintPiece {
    /// Text as it stands.
    Text(String),
    /// The next argument.
    Arg(PrintFormat),
}

/// A statement's act that gives no value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Writes memory; atomic if ordered (scalars, and aligned structs of four words, relaxed only).
    Store(Place, Value, Option<Sync>),
    /// What the lane asks of its device, with the operands that its row ([`DeviceOp::row`]) says.
    Device(DeviceOp, Vec<Value>),
    /// Prints a line. A target without printing refuses it by capability.
    Print(Vec<PrintPiece>, Vec<Value>),
    /// Reports a fault and marks the lane dead (a lane that is dead already reports nothing more): of which kind, what it
    /// is about as the source calls it (perhaps nothing), and up to two integer operands.
    Fault(FaultKind, Arc<str>, Vec<Value>),
    /// As [`Effect::Fault`], with a message that the host formats. Up to [`OPERANDS`](crate::fault::record::OPERANDS) scalars.
    Panic(Vec<PrintPiece>, Vec<Value>),
}

impl Effect {
    /// A fault about nothing that has a name.
    pub fn fault(kind: FaultKind, operands: Vec<Value>) -> Effect {
        Effect::Fault(kind, "".into(), operands)
    }
}

impl Op {
    /// An exchange among the lanes of a subgroup; `arg`: the lane, where the operation takes one.
    pub fn subgroup(op: SubgroupOp, v: Value, arg: Option<Value>) -> Op {
        Op::Device(DeviceOp::Subgroup(op), [v].into_iter().chain(arg).collect())
    }
}

impl From<DeviceOp> for Effect {
    /// An operation of the device without operands.
    fn from(op: DeviceOp) -> Effect {
        Effect::Device(op, Vec::new())
    }
}

impl Place {
    /// The whole of a local variable.
    pub fn local(id: LocalId) -> Place {
        Place {
            base: Base::Local(id),
            path: Vec::new(),
        }
    }

    /// Element `index` of `base`.
    pub fn element(base: Base, index: Value) -> Place {
        Place {
            base,
            path: vec![Step::Index(index)],
        }
    }

    /// This place, one step further in.
    pub fn step(mut self, step: Step) -> Place {
        self.path.push(step);
        self
    }
}
