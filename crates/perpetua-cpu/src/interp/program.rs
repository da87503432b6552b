//! The form in which kernels run: a flat list of operations over registers and masks. Made by `flatten`, run by
//! `machine`; knows nothing of how either works.
//!
//! A *register* holds one scalar of every lane. Values are lists of registers, one for each scalar they are made of,
//! so taking values apart and putting them together costs nothing. A *mask* holds a set of lanes. Control flow is
//! structured and nothing recurses, so every construct has masks of its own, known beforehand.
//!
//! Operations write the active lanes of their result and may write others: a value is only read where it was
//! computed. Only [`Code::Assign`] leaves inactive lanes alone.

use std::sync::Arc;

use perpetua_ir::fault::FaultSite;
use perpetua_ir::ir::{AtomicOp, Builtin, Checks, DeviceOp, Scalar, Stages, Sync};
use perpetua_ir::ops::{BinaryOp, TernaryOp, UnaryOp};
use perpetua_ir::print::PrintSite;

/// A register, by index into [`Program::registers`].
pub(super) type Reg = u32;

/// A mask, by index.
pub(super) type Mask = u32;

/// Index of an operation in [`Program::code`].
pub(super) type Pc = u32;

/// What a kernel is, ready to run.
pub(super) struct Program {
    pub(super) name: String,
    pub(super) source: Arc<str>,
    pub(super) checks: Checks,
    pub(super) block_size: Option<[u32; 3]>,
    pub(super) params: Vec<Parameter>,
    pub(super) code: Vec<Code>,
    /// For each operation, where to go on when it leaves no lane active: the end of the construct around it.
    pub(super) skips: Vec<Pc>,
    /// Source line of each operation.
    pub(super) lines: Vec<u32>,
    /// First operation of the kernel's own code.
    pub(super) entry: Pc,
    /// Size in bytes of each register's scalar.
    pub(super) registers: Vec<u32>,
    /// Registers that a launch fills in and no operation writes.
    pub(super) fills: Vec<(Reg, Fill)>,
    pub(super) masks: u32,
    pub(super) regions: Vec<Region>,
    /// Bytes of the constant tables, laid out as their regions say.
    pub(super) constants: Vec<u8>,
    /// Bytes of shared memory of fixed size.
    pub(super) shared_bytes: u32,
    /// Alignment of dynamic shared memory.
    pub(super) dynamic_align: u32,
    pub(super) accesses: Vec<SharedPlace>,
    pub(super) privates: Vec<PrivatePlace>,
    pub(super) sites: Vec<FaultSite>,
    /// Those of fault statements, by their indices into `sites`, in order of the text.
    pub(super) statement_sites: Vec<u32>,
    pub(super) prints: Vec<PrintSite>,
    /// Whether lanes of different blocks, or of one between barriers, may be ordered by atomics or fences.
    pub(super) synchronises: bool,
    /// Whether it may stay: then subgroups go their own ways, for they wait for each other by what they write.
    pub(super) stays: bool,
    /// Matrices that it multiplies in stages: then teams of lanes go their own ways.
    pub(super) stages: Option<Stages>,
    /// Whether lanes that come to a barrier end when one of their block has faulted: what it would have written decides how often
    /// they come there.
    pub(super) ends_together: bool,
    /// Whether blocks can run side by side as one.
    pub(super) mergeable: bool,
}

impl Program {
    /// Whether blocks may wait for each other.
    pub(super) fn may_wait(&self) -> bool {
        let waits = |code: &Code| matches!(code, Code::Atomic { .. } | Code::LoadWords { .. });
        self.synchronises || self.code.iter().any(waits)
    }
}

/// A parameter as launches check it.
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) kind: ParameterKind,
}

pub(super) enum ParameterKind {
    /// Alignment of its elements.
    Buffer { align: u32 },
    /// Size in bytes.
    Value { size: u32 },
}

/// What a launch puts into a register, the same for all lanes but for `ThreadIdx` and `SubgroupLane`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fill {
    /// Bits.
    Constant(u64),
    /// The scalar at this byte of a parameter.
    Param {
        param: u32,
        offset: u32,
    },
    /// The `bool` at this byte of a parameter: any byte but zero is true.
    Bool {
        param: u32,
        offset: u32,
    },
    Builtin(Builtin),
    /// Number of elements of a region.
    Len(u32),
}

/// A piece of memory that lanes share.
pub(super) struct Region {
    pub(super) kind: RegionKind,
    /// Name in the source.
    pub(super) name: String,
    /// Size of an element in bytes: what an index steps over (a shared variable that is no array: its size).
    pub(super) element: u32,
    /// Greatest power of two that divides sizes and offsets of all scalars in an element: what the race detector
    /// watches as one.
    pub(super) grain: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegionKind {
    /// Buffer parameter; whether the kernel may write it.
    Buffer { param: u32, writable: bool },
    /// Shared variable of fixed size: offset and size.
    Shared { offset: u32, size: u32 },
    /// Dynamic shared memory: all of it, after the rest.
    Dynamic,
    /// Constant table: offset and size in [`Program::constants`].
    Constant { offset: u32, size: u32 },
}

/// How an index is checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Fixed(u32),
    /// As many elements as the region has.
    Region,
}

impl Length {
    /// The length, where the region has `run` elements.
    pub(super) fn of(self, run: u64) -> u64 {
        match self {
            Length::Fixed(n) => n.into(),
            Length::Region => run,
        }
    }
}

/// One index of a place.
pub(super) struct IndexStep {
    pub(super) index: Reg,
    pub(super) ty: Scalar,
    pub(super) length: Length,
    /// What one step adds: bytes in a region, registers in a private array.
    pub(super) stride: u32,
    /// The site of its fault.
    pub(super) site: u32,
}

/// A place in a region.
pub(super) struct SharedPlace {
    pub(super) region: u32,
    pub(super) steps: Vec<IndexStep>,
    /// Bytes beyond what the steps add.
    pub(super) offset: u32,
    /// Scalars that are moved, each with its offset from the place and its register.
    pub(super) leaves: Vec<(Scalar, u32, Reg)>,
}

/// A place in a local variable that depends on run-time indices.
pub(super) struct PrivatePlace {
    /// Registers of the variable.
    pub(super) registers: Vec<Reg>,
    pub(super) steps: Vec<IndexStep>,
    /// Number of the first register beyond what the steps add.
    pub(super) start: u32,
    /// Registers that are moved, in order, with the sizes of their scalars.
    pub(super) values: Vec<(u32, Reg)>,
}

/// One operation.
pub(super) enum Code {
    Unary {
        op: UnaryOp,
        s: Scalar,
        a: Reg,
        out: Reg,
    },
    Binary {
        op: BinaryOp,
        s: Scalar,
        a: Reg,
        b: Reg,
        out: Reg,
    },
    /// An integer division or remainder; its faults are sites `site` (by zero) and `site + 1` (overflow).
    Divide {
        op: BinaryOp,
        s: Scalar,
        a: Reg,
        b: Reg,
        out: Reg,
        site: u32,
    },
    Ternary {
        op: TernaryOp,
        s: Scalar,
        a: Reg,
        b: Reg,
        c: Reg,
        out: Reg,
    },
    Cast {
        from: Scalar,
        to: Scalar,
        a: Reg,
        out: Reg,
    },
    /// Copies to a register that no inactive lane needs.
    Copy {
        size: u32,
        from: Reg,
        to: Reg,
    },
    /// Copies in the active lanes alone. `last`: nobody reads `from` afterwards.
    Assign {
        size: u32,
        from: Reg,
        to: Reg,
        last: bool,
    },
    Load {
        access: u32,
    },
    Store {
        access: u32,
    },
    /// An access to the scalar of `access` in lane order; the old value goes to `out`.
    Atomic {
        access: u32,
        s: Scalar,
        act: AtomicAct,
        sync: Sync,
        out: Reg,
    },
    /// Reads four words at once, each lane its own, in lane order.
    LoadWords {
        access: u32,
        sync: Sync,
    },
    /// Writes four words at once, likewise.
    StoreWords {
        access: u32,
        sync: Sync,
    },
    PrivateLoad {
        place: u32,
    },
    PrivateStore {
        place: u32,
    },
    /// What lanes ask of the device.
    Device {
        op: DeviceOp,
        /// Type of the first operand's scalars.
        s: Scalar,
        /// The scalars of the operands.
        args: Vec<Reg>,
        /// Those of the result.
        out: Vec<Reg>,
    },
    Print {
        site: u32,
        args: Vec<Reg>,
    },
    /// `number` counts the fault statements.
    Fault {
        site: u32,
        number: u32,
        operands: Vec<Reg>,
    },

    /// `if` without `else`: lanes with a false condition wait in `rest`; when no lane is left, to `end` (past the
    /// `Join`).
    IfThen {
        condition: Reg,
        rest: Mask,
        end: Pc,
    },
    /// `if` with `else`: lanes with a false condition wait in `rest`, those that finish the first block in
    /// `done`; when no lane has a true condition, to `otherwise` (past the `Else`).
    IfElse {
        condition: Reg,
        rest: Mask,
        done: Mask,
        otherwise: Pc,
    },
    /// Between the blocks of an `if`: when no lane waits in `rest`, to `end` (past the `Join`).
    Else {
        rest: Mask,
        done: Mask,
        end: Pc,
    },
    /// Lanes in `of` join the active ones.
    Join {
        of: Mask,
    },
    /// Empties a mask.
    Clear {
        mask: Mask,
    },
    /// Starts a switch: all active lanes wait in `rest`.
    Switch {
        rest: Mask,
        done: Mask,
    },
    /// Lanes of `rest` whose selector has one of the labels become active; if there are none, to `next`.
    Case {
        selector: Reg,
        size: u32,
        labels: Vec<u64>,
        rest: Mask,
        next: Pc,
    },
    /// The lanes that are left in `rest` become active; if there are none, to `next`.
    Default {
        rest: Mask,
        next: Pc,
    },
    /// The active lanes wait in `done`; none is active.
    EndCase {
        done: Mask,
    },
    /// The active lanes wait in `into`; on to the end of the construct around.
    Leave {
        into: Mask,
    },
    /// End of a loop's body: with the lanes in `continued` to `start`; if there are none, on with those in `broken`.
    Repeat {
        continued: Mask,
        broken: Mask,
        start: Pc,
    },
    /// Calls the function at `entry`.
    Call {
        entry: Pc,
        returned: Mask,
    },
    /// End of a function: on at the call with the lanes that have returned.
    Return {
        returned: Mask,
    },
    /// End of the kernel.
    End,
}

/// What an atomic access does with the place.
pub(super) enum AtomicAct {
    Load,
    Store { value: Reg },
    Update { op: AtomicOp, value: Reg },
    CompareExchange { expected: Reg, new: Reg },
}
