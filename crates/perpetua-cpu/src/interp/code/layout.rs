//! What machine code and host share: the state that code reaches through one register, the table of gangs, and the sites where
//! code calls the host. The only file that both sides read.

use super::tree::{AccessKind, V};
use perpetua_ir::ir::{DeviceOp, Scalar};
use perpetua_ir::ops::{BinaryOp, TernaryOp, UnaryOp};

/// The beginning of the state, at fixed offsets. Behind it lie views, fills, constants and the operands of calls.
///
/// Code runs the blocks from `x_first` to `x_end` of `rows` rows of the grid, beginning with `block`; and of each block the gangs
/// of the table. Those of kernels whose gangs do not know of each other it runs row by row: one row of all the blocks, then the next.
/// Where blocks can run side by side, the table has the gangs of several of them, which code takes for one.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Header {
    /// The function that code calls: with this state and a site's number; gives the lanes that are left.
    pub(crate) call: usize,
    /// Asked when the count is used up: zero to go on, one to pause, two to stop.
    pub(crate) poll: usize,
    /// How code begins: one of [`START`], [`MET`], [`NEXT_BLOCK`] and [`GO_ON`].
    pub(crate) entering: u64,
    /// The gang that runs, at a call and where code has paused.
    pub(crate) gang: usize,
    /// The table of gangs, and the part of it that is the row that runs.
    pub(crate) gangs: usize,
    pub(crate) gangs_end: usize,
    pub(crate) row: usize,
    pub(crate) row_end: usize,
    pub(crate) row_bytes: usize,
    /// The part of a row that has gangs in this run.
    pub(crate) row_used: usize,
    /// Bytes from a gang to the next.
    pub(crate) stride: usize,
    pub(crate) block: [u64; 3],
    pub(crate) x_first: u64,
    pub(crate) x_end: u64,
    /// Blocks that code takes for one.
    pub(crate) x_step: u64,
    /// Rows of the grid that are left, this one among them, and how many a layer has.
    pub(crate) rows: u64,
    pub(crate) grid_y: u64,
    pub(crate) shared: usize,
    pub(crate) shared_end: usize,
    /// Turns of loops until somebody asks.
    pub(crate) budget: i64,
    /// The budget when the gang started, or went on.
    pub(crate) budget_before: i64,
    /// Lanes that are active at a call.
    pub(crate) mask: u64,
    /// The host's own: what it needs in a call.
    pub(crate) host: usize,
    /// Lanes of a subgroup less one.
    pub(crate) subgroup_mask: u64,
    /// Gangs of a block.
    pub(crate) count: u64,
    /// Of them those that are done, and those that wait at one barrier with all their lanes.
    pub(crate) done: u64,
    pub(crate) arrived: u64,
    /// Where in the code gangs begin this time, and where behind that barrier.
    pub(crate) pass: usize,
    pub(crate) behind: usize,
    /// Meetings that the block has passed.
    pub(crate) phase: u64,
}

/// A run of blocks from its start.
pub(crate) const START: u64 = 0;
/// Gangs have met, and go on from where they wait.
pub(crate) const MET: u64 = 1;
/// The block is done.
pub(crate) const NEXT_BLOCK: u64 = 2;
/// The gang that has paused.
pub(crate) const GO_ON: u64 = 3;

macro_rules! offsets {
    ($($name:ident $field:ident;)*) => {
        $(pub(super) const $name: i32 = std::mem::offset_of!(Header, $field) as i32;)*
    };
}

offsets! {
    CALL call;
    POLL poll;
    ENTERING entering;
    GANG gang;
    GANGS gangs;
    GANGS_END gangs_end;
    ROW row;
    ROW_END row_end;
    ROW_BYTES row_bytes;
    ROW_USED row_used;
    STRIDE stride;
    BLOCK_X block;
    X_FIRST x_first;
    X_END x_end;
    X_STEP x_step;
    ROWS rows;
    GRID_Y grid_y;
    SHARED shared;
    SHARED_END shared_end;
    BUDGET budget;
    BUDGET_BEFORE budget_before;
    MASK mask;
    SUBGROUP_MASK subgroup_mask;
    COUNT count;
    DONE done;
    ARRIVED arrived;
    PASS pass;
    BEHIND behind;
    PHASE phase;
}

pub(super) const BLOCK_Y: i32 = BLOCK_X + 8;
pub(super) const BLOCK_Z: i32 = BLOCK_X + 16;

/// Where views begin.
pub(crate) const VIEWS: usize = size_of::<Header>().next_multiple_of(64);

/// A region as code sees it.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct CodeView {
    pub(crate) ptr: usize,
    /// Elements of an indexable run.
    pub(crate) elements: u64,
    /// From which index on a whole gang no longer fits.
    pub(crate) whole: u64,
    pub(crate) unused: u64,
}

pub(crate) const VIEW_BYTES: usize = size_of::<CodeView>();

/// A run of lanes of one row of a block. Gangs that meet have frames of their own, which begin with this.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Gang {
    pub(crate) x: u64,
    pub(crate) y: u64,
    pub(crate) z: u64,
    /// Index of the first lane in the block.
    pub(crate) first: u64,
    /// Lanes that there are.
    pub(crate) mask: u64,
    /// Where it goes on: the number of a wait, or [`GANG_DONE`]: nowhere.
    pub(crate) resume: u64,
    pub(crate) unused: [u64; 2],
}

/// A gang of a kernel whose gangs meet that is done.
pub(crate) const GANG_DONE: u64 = u32::MAX as u64;

/// Set where it goes on while others that are behind it run: code passes over it.
pub(crate) const GANG_HELD: u64 = 1 << 31;

/// Where things lie in a gang's entry.
pub(super) const GANG_X: i32 = std::mem::offset_of!(Gang, x) as i32;
pub(super) const GANG_FIRST: i32 = std::mem::offset_of!(Gang, first) as i32;
pub(super) const GANG_MASK: i32 = std::mem::offset_of!(Gang, mask) as i32;
pub(crate) const GANG_RESUME: i32 = std::mem::offset_of!(Gang, resume) as i32;

pub(crate) const GANG_BYTES: usize = size_of::<Gang>();

/// Bytes of one operand of a call: sixteen lanes of 64 bits.
pub(crate) const SLOT: usize = 128;

/// How an operand of a call is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// One value.
    One,
    /// The first lane's, and the step.
    Affine(i32),
    /// Each lane's: 32 bits wide, or 64.
    Lanes,
    /// A bit for each lane.
    Mask,
}

/// What a call is about.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Unary(UnaryOp, Scalar),
    Binary(BinaryOp, Scalar),
    Divide(BinaryOp, Scalar, u32),
    Ternary(TernaryOp, Scalar),
    Cast(Scalar, Scalar),
    Access(u32, AccessKind),
    /// A lane's array: the place, where the array lies in the frame, bytes of an element there.
    PrivateLoad(u32, u32, u32),
    PrivateStore(u32, u32, u32),
    Clock,
    Print(u32),
    Fault(u32),
}

/// A place in the code that calls the host.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) what: What,
    /// Index of the operation in the flat program.
    pub(crate) pc: u32,
    /// Whether code always calls, and not in rare cases alone.
    pub(crate) always: bool,
    /// Operands, with the size of their scalars, in order of their slots.
    pub(crate) ins: Vec<(Given, u32)>,
    /// Results, in the slots behind them.
    pub(crate) outs: Vec<(Given, u32)>,
}

/// A point at which gangs wait for each other.
#[derive(Clone, Debug)]
pub(crate) struct Meeting {
    /// Place in the text, as lanes that run side by side reach them.
    pub(crate) at: u32,
    /// Index of the operation in the flat program.
    pub(crate) pc: u32,
    /// Loops around it, outermost first, whose turns are counted.
    pub(crate) loops: Vec<u32>,
    /// What lanes exchange there; `None`: it is a barrier.
    pub(crate) exchange: Option<Exchange>,
}

/// An exchange among the lanes of a subgroup.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) op: DeviceOp,
    pub(crate) s: Scalar,
    pub(crate) ins: Vec<(Given, u32)>,
    pub(crate) outs: Vec<(Given, u32)>,
}

/// Where things lie in the state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// Of each fill, eight bytes.
    pub(crate) fills: usize,
    /// Constants that code brings: their place, and what they are.
    pub(crate) constants: usize,
    pub(crate) data: Vec<u8>,
    /// Operands of calls.
    pub(crate) slots: usize,
    /// Spilled registers: of what all gangs share, and of the only frame where gangs do not meet.
    pub(crate) spills: usize,
    /// Size of the state.
    pub(crate) bytes: usize,
    /// Bytes of a gang's frame.
    pub(crate) frame: usize,
    /// Where the mask of a gang that waits lies in its frame.
    pub(crate) waiting: usize,
    /// Turns of the loops around the meeting where a gang waits, in its frame.
    pub(crate) turns: usize,
    /// Operands and results of an exchange, in a gang's frame.
    pub(crate) exchange: usize,
}

impl V {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}
