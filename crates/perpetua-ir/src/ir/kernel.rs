//! The IR itself: kernels, device functions, code and statements. What statements do is in `operation`.
//!
//! A kernel is a tree of [`Block`]s. Each statement defines at most one immutable [`Value`], visible in the rest
//! of its block and in nested blocks. What control flow joins goes through [`Local`] variables; there are no phis.
//! Control flow is structured: `if`, `switch`, `loop`, labelled block, `break`/`continue` by depth, `return`.
//! Nothing follows a `break`, `continue` or `return` in its block. Memory is reached only through a [`Place`] (a base
//! and a path), so no target needs pointers. Parameters, shared variables and constant tables have different
//! names, all of them ASCII identifiers; the verifier (`crate::verify`) has the complete list of rules.
//!
//! Meaning, as in Rust: integer arithmetic wraps, shift amounts are masked, float-to-integer casts saturate (NaN
//! to 0), floats are IEEE without contraction. What Rust panics at is a [`FaultKind`](super::FaultKind); see [`Checks`].

use std::sync::Arc;

use super::stages::Stages;
use super::types::{Scalar, Type};
use super::{DeviceOp, Effect, Op};
use crate::ops::Meeting;

/// Names an immutable value: an index into [`Body::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u32);

/// Names a mutable local variable: an index into [`Body::locals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalId(pub u32);

/// Whether the four faults are checked for. See [`Kernel::checks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Checks {
    /// Every index, division and enum `match` is checked: memory-safe. The default.
    On,
    /// The checks have been made explicit by `pass::checks`: accesses are unchecked, faults are
    /// [`Effect::Fault`] statements. Devices treat it as [`Checks::Off`], for nobody knows that none was left out.
    Explicit,
    /// Only labelled blocks whose faults are caught ([`DeviceOp::CatchFault`]) are checked: for kernels that run other people's code
    /// in such a block. They exchange nothing among lanes there. Outside as [`Checks::Off`].
    Caught,
    /// Nothing is checked: a bad index is undefined behaviour. Devices compile such a kernel only when somebody answers for
    /// it ([`Verified::trust`](crate::verify::Verified::trust), which is `unsafe`).
    Off,
}

/// A kernel: one entry point and the device functions that it calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// Entry point's name: an identifier, unique in its module.
    pub name: String,
    /// The source file that statements' line numbers refer to; empty when there is none.
    pub source: Arc<str>,
    /// Parameters, in order.
    pub params: Vec<Param>,
    /// Shared variables.
    pub shared: Vec<SharedVar>,
    /// Constant tables: read-only data known at compile time.
    pub constants: Vec<ConstTable>,
    /// Matrices that are multiplied in stages.
    pub stages: Option<Stages>,
    /// Device functions; a function may call only those before it, so there is no recursion.
    pub functions: Vec<Function>,
    /// The code of the entry point.
    pub body: Body,
    /// Fixed block size, if the kernel needs one; else the launch chooses.
    pub block_size: Option<[u32; 3]>,
    /// Whether faults are checked.
    pub checks: Checks,
    /// Whether multiplications and additions may be contracted into fused ones.
    pub contract: bool,
    /// Width of `usize` in bits at lowering: 64, or 32 for targets without 64-bit integers.
    pub pointer_width: u32,
}

/// How a kernel uses a buffer parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Only loaded from (`&[T]`).
    Read,
    /// Loaded from and stored to (`&mut [T]`).
    ReadWrite,
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Param {
    /// Name in the source.
    pub name: String,
    /// What is passed.
    pub kind: ParamKind,
}

/// What a kernel parameter is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ParamKind {
    /// A run of `element`s in device memory (or host memory mapped into the device); its length travels with it.
    Buffer {
        /// Element type.
        element: Type,
        /// How the kernel uses it.
        access: Access,
    },
    /// A value: scalar, vector, struct or array.
    Value(Type),
}

/// A shared variable, shared by the lanes of one block; its content at the start is unspecified
/// (the interpreter and WGSL give zeros).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SharedVar {
    /// Name in the source.
    pub name: String,
    /// Type of the variable; for dynamic shared memory, of one element.
    pub ty: Type,
    /// Dynamic shared memory: the launch says how many bytes. At most one per kernel.
    pub dynamic: bool,
}

/// A constant array, indexed at run time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConstTable {
    /// Name in the source.
    pub name: String,
    /// Element type: a scalar.
    pub element: Scalar,
    /// The elements' bits, zero-extended to 64 bits.
    pub data: Vec<u64>,
}

/// A device function: takes and returns values; buffers and references are resolved by the front end. Its code
/// reaches no parameter of the kernel, buffer or shared variable; constant tables, builtins and barriers it may.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Name: an identifier, unique in the kernel.
    pub name: String,
    /// Parameter names and types; parameter `i` is [`Value`]`(i)` of the body.
    pub params: Vec<(String, Type)>,
    /// Result type, `None` for a function that returns nothing.
    pub result: Option<Type>,
    /// The code.
    pub body: Body,
}

/// Code with its values and variables.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Body {
    /// Type of each value, by [`Value`] index.
    pub values: Vec<Type>,
    /// Mutable variables.
    pub locals: Vec<Local>,
    /// The statements.
    pub block: Block,
}

/// A mutable variable private to a lane. Reading it, or storing to a part of it, before every path has written the
/// whole is a verifier error.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Local {
    /// Name in the source; need not be unique.
    pub name: String,
    /// Type.
    pub ty: Type,
}

/// A sequence of statements.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Block(pub Vec<Stmt>);

/// A statement with the source line it came from (0: unknown).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stmt {
    /// Line in [`Kernel::source`].
    pub line: u32,
    /// What it does.
    pub inst: Inst,
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Inst {
    /// Defines a value.
    Let(Value, Op),
    /// Acts without giving a value.
    Do(Effect),
    /// Chooses by a `bool` value.
    If(Value, Block, Block),
    /// Chooses by an integer value; no fall-through. Case labels are the selector's bits, zero-extended; each
    /// label stands once.
    Switch {
        /// An integer value.
        selector: Value,
        /// Labels and code.
        cases: Vec<(Vec<u64>, Block)>,
        /// Code when no label matches.
        default: Block,
    },
    /// Repeats until left by `break` or `return`.
    Loop(Block),
    /// Runs once; `break` leaves it.
    Labeled(Block),
    /// Leaves the enclosing loop or labelled block number `depth` (0: the innermost).
    Break(u32),
    /// Starts the next turn of the enclosing loop; `depth` counts loops and labelled blocks together and must
    /// name a loop.
    Continue(u32),
    /// Ends the function (in a kernel: this lane).
    Return(Option<Value>),
}

impl Inst {
    /// What the statement asks of the device, if it does.
    pub fn device(&self) -> Option<DeviceOp> {
        match self {
            Inst::Let(_, Op::Device(op, _)) | Inst::Do(Effect::Device(op, _)) => Some(*op),
            _ => None,
        }
    }

    /// Whether the statement reports a fault.
    pub fn faults(&self) -> bool {
        matches!(self, Inst::Do(Effect::Fault(..) | Effect::Panic(..)))
    }

    /// Whether the statement itself brings these lanes together.
    pub fn meets(&self, whom: Meeting) -> bool {
        self.device().is_some_and(|op| op.row().meeting == whom)
    }
}

impl Block {
    /// Calls `visit` on every statement of this block and of the blocks inside it, in order.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Stmt)) {
        for stmt in &self.0 {
            visit(stmt);
            stmt.inst.blocks().into_iter().for_each(|b| b.walk(visit));
        }
    }
}

impl Inst {
    /// The blocks directly inside this statement.
    pub fn blocks(&self) -> Vec<&Block> {
        match self {
            Inst::If(_, a, b) => vec![a, b],
            Inst::Switch { cases, default, .. } => cases.iter().map(|(_, b)| b).chain([default]).collect(),
            Inst::Loop(b) | Inst::Labeled(b) => vec![b],
            _ => Vec::new(),
        }
    }

    /// The blocks directly inside this statement, to change them.
    pub fn blocks_mut(&mut self) -> Vec<&mut Block> {
        match self {
            Inst::If(_, a, b) => vec![a, b],
            Inst::Switch { cases, default, .. } => {
                cases.iter_mut().map(|(_, b)| b).chain([default]).collect()
            }
            Inst::Loop(b) | Inst::Labeled(b) => vec![b],
            _ => Vec::new(),
        }
    }
}

impl Kernel {
    /// An empty kernel with default checks.
    pub fn new(name: impl Into<String>) -> Kernel {
        Kernel {
            name: name.into(),
            source: Arc::from(""),
            params: Vec::new(),
            shared: Vec::new(),
            constants: Vec::new(),
            stages: None,
            functions: Vec::new(),
            body: Body::default(),
            block_size: None,
            checks: Checks::On,
            contract: false,
            pointer_width: 64,
        }
    }

    /// Bytes of statically sized shared memory, each variable aligned.
    pub fn shared_bytes(&self) -> u32 {
        self.shared
            .iter()
            .filter(|s| !s.dynamic)
            .fold(0, |at, s| at.next_multiple_of(s.ty.align()) + s.ty.size())
    }
}
