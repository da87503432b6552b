//! What an instruction is: an opcode, its types, its operands. Knows no text and no bytes.

use perpetua_ir::ir::{Axis, Builtin, Scalar};

use crate::opcode::Opcode;

/// Number of general registers of a lane.
pub const REGISTERS: usize = 256;
/// Number of predicates of a lane.
pub const PREDICATES: usize = 16;

/// Registers that hold something before the first instruction: index, type, what.
pub const PRESET: [(u8, Scalar, Special); 4] = [
    (252, Scalar::U32, Special::ThreadIdx(Axis::X)),
    (253, Scalar::U32, Special::BlockIdx(Axis::X)),
    (254, Scalar::U32, Special::BlockDim(Axis::X)),
    (255, Scalar::U64, Special::GlobalId),
];

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// Lanes in which it does nothing.
    pub guard: Option<Guard>,
    /// What it does.
    pub opcode: Opcode,
    /// The type it works on, where it has one; [`Scalar::Bool`] stands for predicates.
    pub ty: Option<Scalar>,
    /// The type a conversion starts from.
    pub from: Option<Scalar>,
    /// What it works on, as the opcode's row says.
    pub operands: Vec<Operand>,
}

/// A condition on an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    /// The predicate's number.
    pub predicate: u8,
    /// Whether it acts where the predicate is false.
    pub negated: bool,
}

/// What an instruction works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A general register.
    Register(u8),
    /// A predicate.
    Predicate(u8),
    /// A constant: its bits, zero-extended. The instruction says of what type.
    Immediate(u64),
    /// What the launch supplies.
    Special(Special),
    /// A parameter of the program by its number.
    Parameter(u16),
    /// Number of elements of a memory.
    Length(u16),
    /// An element of a memory.
    Place(Place),
    /// A label of the routine by its number.
    Label(u32),
    /// A routine of the program by its number.
    Routine(u16),
    /// A number of registers, or an extent of a tile.
    Count(u32),
    /// A pool by the number of the memory.
    Pool(u16),
}

/// An element of a memory: `memory[first + second + offset]`, computed in the type of `first`, with wrapping. In a pool the first part
/// is a block's handle, and the others are added up to the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Number of the memory.
    pub memory: u16,
    /// What varies.
    pub first: Option<Index>,
    /// What is added to it; of the same type.
    pub second: Option<Index>,
    /// A constant, added last.
    pub offset: i64,
}

/// A varying part of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Index {
    /// A register of any integer type.
    Register(u8),
    /// What the launch supplies.
    Special(Special),
    /// A parameter of an integer type.
    Parameter(u16),
}

/// A value that the launch supplies. Each can be read as `u32` and as `u64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Special {
    /// Index of the lane in its block.
    ThreadIdx(Axis),
    /// Index of the block in the grid.
    BlockIdx(Axis),
    /// Lanes per block.
    BlockDim(Axis),
    /// Blocks in the grid.
    GridDim(Axis),
    /// Index of the lane along x in the whole grid.
    GlobalId,
    /// Index of the lane in its subgroup.
    SubgroupLane,
    /// Lanes per subgroup.
    SubgroupSize,
}

impl Special {
    /// All of them, in the order of their codes.
    pub fn all() -> impl Iterator<Item = Special> {
        let axes = |make: fn(Axis) -> Special| Axis::ALL.into_iter().map(make);
        axes(Special::ThreadIdx)
            .chain(axes(Special::BlockIdx))
            .chain(axes(Special::BlockDim))
            .chain(axes(Special::GridDim))
            .chain([Special::GlobalId, Special::SubgroupLane, Special::SubgroupSize])
    }

    /// Name in the text form, without the `%`.
    pub fn name(self) -> String {
        let (stem, axis) = match self {
            Special::ThreadIdx(axis) => ("tid.", axis.name()),
            Special::BlockIdx(axis) => ("ctaid.", axis.name()),
            Special::BlockDim(axis) => ("ntid.", axis.name()),
            Special::GridDim(axis) => ("nctaid.", axis.name()),
            Special::GlobalId => ("gid", ""),
            Special::SubgroupLane => ("laneid", ""),
            Special::SubgroupSize => ("warpsize", ""),
        };
        format!("{stem}{axis}")
    }

    /// What it is, in words.
    pub(crate) fn meaning(self) -> String {
        match self {
            Special::ThreadIdx(axis) => format!("The lane's index in its block, along {}.", axis.name()),
            Special::BlockIdx(axis) => format!("The block's index in the grid, along {}.", axis.name()),
            Special::BlockDim(axis) => format!("Lanes of a block, along {}.", axis.name()),
            Special::GridDim(axis) => format!("Blocks of the grid, along {}.", axis.name()),
            Special::GlobalId => "The lane's index in the grid, along x alone: `%ctaid.x * %ntid.x + %tid.x`. Along y it is what \
                 `mad.u64 r0, %ctaid.y, %ntid.y, %tid.y` gives, along z likewise."
                .into(),
            Special::SubgroupLane => "The lane's index in its subgroup: the lanes of a block that the hardware runs in step (CUDA calls it a \
                 warp)."
                .into(),
            Special::SubgroupSize => "Lanes of a subgroup: 32 on CUDA and the CPU; on wgpu the driver says.".into(),
        }
    }

    /// The value's meaning in the IR; `None` for what is computed of several.
    pub(crate) fn builtin(self) -> Option<Builtin> {
        Some(match self {
            Special::ThreadIdx(axis) => Builtin::ThreadIdx(axis),
            Special::BlockIdx(axis) => Builtin::BlockIdx(axis),
            Special::BlockDim(axis) => Builtin::BlockDim(axis),
            Special::GridDim(axis) => Builtin::GridDim(axis),
            Special::SubgroupLane => Builtin::SubgroupLane,
            Special::SubgroupSize => Builtin::SubgroupSize,
            Special::GlobalId => return None,
        })
    }
}
