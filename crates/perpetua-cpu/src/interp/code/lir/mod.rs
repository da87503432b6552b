//! Instructions over virtual registers, between `lower`, which writes them, `allocate`, which places the registers, and `emit`,
//! which turns them into bytes. Says what each reads and writes; knows neither kernels nor encodings' bytes.

mod registers;

use super::machine::{Cc, Label, MOp};
use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::{BinaryOp, UnaryOp};

/// A virtual register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct R(pub(super) u32);

/// Where what the host gives lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// In the state, at this offset.
    State(i32),
    /// In the entry of the gang that runs.
    Gang(i32),
}

/// The lanes that are active here: it has a mask register of its own.
pub(super) const CURRENT: R = R(0);

/// Which registers of the machine hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    General,
    Vector,
    Mask,
}

/// An operand of a scalar instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum G {
    R(R),
    Imm(i32),
    /// 64 bits of the state, at this offset.
    State(i32),
}

/// An operand of a vector instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum X {
    R(R),
    /// A scalar of the state, in all lanes.
    Splat(i32),
    /// A vector of the state.
    State(i32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GOp {
    Add,
    Sub,
    And,
    Or,
    Xor,
    Mul,
    Shl,
    Shr,
    Sar,
    /// The first where the condition holds of both, else the second.
    Choose(Cc),
}

/// A value as an operand or result of a call, a lane's part being as wide as its scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operand {
    /// One for all lanes.
    One(G),
    /// That of the first lane, and the step to the next.
    Affine(G, i32),
    /// One or two vectors.
    Lanes([R; 2], u32),
    Mask(R),
}

/// A condition on which a branch goes.
#[derive(Clone, Debug)]
pub(super) enum I {
    /// What follows runs for each row of each row of blocks, for each block, for each gang; up to `Next`.
    Row,
    Block,
    Gang,
    Next,
    /// A loop of the kernel begins, and ends.
    Head,
    Tail,
    /// What follows is about an operation of the flat program.
    At(u32),
    Label(Label),
    Jump(Label),
    GMov {
        w: bool,
        d: R,
        s: G,
    },
    /// 64 bits of the entry of the gang that runs.
    GGang {
        d: R,
        at: i32,
    },
    GBin {
        op: GOp,
        w: bool,
        d: R,
        a: G,
        b: G,
    },
    /// Negation (3) or complement (2).
    GUnary {
        which: u8,
        w: bool,
        d: R,
        a: G,
    },
    /// Zero or one.
    GCompare {
        w: bool,
        cc: Cc,
        d: R,
        a: G,
        b: G,
    },
    GSelect {
        d: R,
        c: G,
        a: G,
        b: G,
    },
    /// 32 bits to 64.
    GExtend {
        signed: bool,
        d: R,
        a: G,
    },
    /// To `to` if `a` is zero (`Cc::E`) or not (`Cc::Ne`).
    GJump {
        cc: Cc,
        a: G,
        to: Label,
    },
    /// To `to` if the comparison holds.
    GCompareJump {
        w: bool,
        cc: Cc,
        a: G,
        b: G,
        to: Label,
    },
    MLogic {
        op: MOp,
        d: R,
        a: R,
        b: R,
    },
    MMov {
        d: R,
        s: R,
    },
    MConst {
        d: R,
        ones: bool,
    },
    /// All lanes or none, by the low bit.
    MFromG {
        d: R,
        a: G,
    },
    /// Lanes that are not zero.
    MFromX {
        d: R,
        a: R,
    },
    /// The low and the high half of the lanes.
    MPair {
        d: R,
        low: R,
        high: R,
    },
    /// The lanes whose number, added to `base`, is below `n`: 64 bits, and no sum wraps. `not`: those that are active and are not.
    MBelow {
        below: Below,
        d: R,
        /// Only the instruction behind it wants it, which knows an answer for all lanes by itself.
        lazy: bool,
    },
    /// Active lanes of `d` get what `m` has.
    MKeep {
        d: R,
        m: R,
    },
    /// Lanes of `c` go on, and those that are active besides wait in `rest`; if there are none in `c`, to `none`. Where all lanes
    /// were active and none is in `c`, all go to `other`, and none is in `done`.
    Part {
        c: R,
        below: Option<Below>,
        rest: R,
        done: Option<R>,
        none: Label,
        other: Label,
    },
    /// The active lanes wait in `done`, those of `rest` go on; if there are none, to `to`.
    Other {
        done: R,
        rest: R,
        to: Label,
    },
    /// Lanes of `waiting` go on beside those that are active; if there are none, to `skip`.
    Join {
        waiting: R,
        skip: Label,
    },
    /// The active lanes wait in `to`, or are done; on at `skip` for the others. Where all were active, all go on at `direct`.
    Leave {
        to: Option<R>,
        direct: Label,
        skip: Label,
    },
    /// The end of a loop's turn: lanes of `continued`, which is empty then, go on too; if there are none, to `exit`.
    Turn {
        continued: R,
        exit: Label,
    },
    /// What follows changes the mask by itself.
    Masked,
    /// To `to` if no lane is in `m`.
    MJumpNone {
        m: R,
        to: Label,
    },
    /// `d = a op b`, as scalars `s` of 32 or 64 bits. Amounts of shifts are below the width; of floats that are not ordered, or equal,
    /// the second is the least and the greatest.
    XBin {
        op: BinaryOp,
        s: Scalar,
        d: R,
        a: R,
        b: X,
    },
    XUnary {
        op: UnaryOp,
        s: Scalar,
        d: R,
        a: R,
    },
    /// A shift by a number.
    XShift {
        op: BinaryOp,
        s: Scalar,
        d: R,
        a: R,
        by: u8,
    },
    /// To another kind of scalar of the same size.
    XConvert {
        from: Scalar,
        to: Scalar,
        d: R,
        a: R,
    },
    /// From half a vector to a whole one: of the low (0) or the high (1) half of `a`.
    XWiden {
        from: Scalar,
        to: Scalar,
        d: R,
        a: R,
        half: u8,
    },
    /// Two whole vectors to halves of one.
    XNarrow {
        from: Scalar,
        to: Scalar,
        d: R,
        low: R,
        high: R,
    },
    XMov {
        d: R,
        s: R,
        /// Only lanes that are active.
        masked: bool,
    },
    /// A scalar register's value in all lanes.
    XSplat {
        wide: bool,
        d: R,
        a: G,
    },
    XLoad {
        d: R,
        a: X,
        wide: bool,
    },
    XCompare {
        op: BinaryOp,
        s: Scalar,
        d: R,
        a: R,
        b: X,
    },
    /// `d = m ? b : a`.
    XBlend {
        wide: bool,
        /// Which half of the lanes `d` has; `None`: the mask is made for `d`.
        part: Option<u8>,
        d: R,
        m: R,
        a: R,
        b: R,
    },
    /// `d = a * b + c`.
    XFma {
        wide: bool,
        d: R,
        a: R,
        b: R,
        c: R,
    },
    /// One in lanes of the mask, zero elsewhere (`one`: a 32-bit one in the state).
    XFromM {
        d: R,
        m: R,
        one: i32,
    },
    /// A vector of a lane's array: in the frame, at this offset.
    XFrameLoad {
        d: R,
        at: i32,
    },
    XFrameStore {
        at: i32,
        s: R,
        masked: bool,
        /// The lanes' second half, of 64-bit scalars.
        high: bool,
        wide: bool,
    },
    /// Calls a function of the host's about `site`; the mask may shrink.
    Call {
        site: u32,
        ins: Vec<Operand>,
        outs: Vec<Operand>,
        /// Where to go on if no lane is left; `None`: none is lost.
        skip: Option<Label>,
    },
    /// An access to memory in one of the fast shapes, with the call for all else.
    Access {
        site: u32,
        shape: Shape,
        /// Where the region begins, and what an index into it must be below.
        base: G,
        limit: G,
        ins: Vec<Operand>,
        outs: Vec<Operand>,
        /// How many of `ins` are indices.
        steps: usize,
        skip: Label,
    },
    /// Division or remainder of scalars: faults are left to the call.
    GDivide {
        site: u32,
        signed: bool,
        w: bool,
        remainder: bool,
        d: R,
        a: G,
        b: G,
        skip: Label,
    },
    /// Waits for the other gangs of the block, which may give something in exchange.
    Meet {
        id: u32,
        turns: Vec<R>,
        ins: Vec<Operand>,
        outs: Vec<Operand>,
    },
    /// Orders accesses.
    Fence,
    /// Counts down, and asks the host now and then whether to go on.
    Poll {
        id: u32,
    },
}

/// A comparison of numbers that ascend by one from lane to lane with one that all share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Below {
    pub(super) signed: bool,
    pub(super) base: G,
    pub(super) n: G,
    /// Whether it asks which lane has the number, and not which are below it: then modulo 2⁶⁴, or 2³² (`w` is not set).
    pub(super) equal: bool,
    pub(super) w: bool,
    pub(super) not: bool,
}

/// How an access finds its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// All lanes at one place.
    One,
    /// Consecutive elements; the index of this step is affine with step one.
    Run(usize),
    /// Each lane for itself.
    Each,
    /// In arrays of the lanes' own; four times each lane's number lies there in the state.
    Own { numbers: i32 },
}
