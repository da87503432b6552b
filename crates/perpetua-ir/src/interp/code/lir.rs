//! Instructions over virtual registers, between `lower`, which writes them, `allocate`, which places the registers, and `emit`,
//! which turns them into bytes. Says what each reads and writes; knows neither kernels nor encodings' bytes.

use super::assemble::{Cc, Label};
use crate::ir::Scalar;
use crate::ops::{BinaryOp, UnaryOp};

/// A virtual register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct R(pub(super) u32);

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MOp {
    And = 0x41,
    /// The second without the first.
    AndNot = 0x42,
    Or = 0x45,
    Xnor = 0x46,
    Xor = 0x47,
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
    Label(Label),
    Jump(Label),
    GMov {
        w: bool,
        d: R,
        s: G,
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
    /// The lanes whose number, added to `base`, is below `n`: 64 bits, and no sum wraps.
    MBelow {
        signed: bool,
        d: R,
        base: G,
        n: G,
    },
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
    /// Counts down, and asks the host now and then whether to go on.
    Poll {
        id: u32,
    },
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

impl G {
    pub(super) fn reg(self) -> Option<R> {
        match self {
            G::R(r) => Some(r),
            _ => None,
        }
    }
}

impl X {
    pub(super) fn reg(self) -> Option<R> {
        match self {
            X::R(r) => Some(r),
            _ => None,
        }
    }
}

impl Operand {
    pub(super) fn regs(self) -> impl Iterator<Item = R> {
        let regs = match self {
            Operand::One(g) | Operand::Affine(g, _) => [g.reg(), None],
            Operand::Lanes([a, b], n) => [Some(a), (n > 1).then_some(b)],
            Operand::Mask(m) => [Some(m), None],
        };
        regs.into_iter().flatten()
    }
}

impl I {
    /// Calls `visit` with each register read (`false`) or written (`true`).
    pub(super) fn registers(&self, visit: &mut dyn FnMut(R, bool)) {
        let mut g = |g: &G| {
            if let G::R(r) = g {
                visit(*r, false);
            }
        };
        match self {
            I::Label(_) | I::Jump(_) => {}
            I::GMov { d, s, .. } => {
                g(s);
                visit(*d, true);
            }
            I::MBelow { d, base: a, n: b, .. }
            | I::GBin { d, a, b, .. }
            | I::GCompare { d, a, b, .. }
            | I::GDivide { d, a, b, .. } => {
                g(a);
                g(b);
                visit(*d, true);
            }
            I::GUnary { d, a, .. }
            | I::GExtend { d, a, .. }
            | I::MFromG { d, a }
            | I::XSplat { d, a, .. } => {
                g(a);
                visit(*d, true);
            }
            I::GSelect { d, c, a, b } => {
                g(c);
                g(a);
                g(b);
                visit(*d, true);
            }
            I::GJump { a, .. } => g(a),
            I::GCompareJump { a, b, .. } => {
                g(a);
                g(b);
            }
            I::MLogic { d, a, b, .. } => {
                visit(*a, false);
                visit(*b, false);
                visit(*d, true);
            }
            I::MMov { d, s } => {
                visit(*s, false);
                visit(*d, true);
            }
            I::MConst { d, .. } | I::XFrameLoad { d, .. } => visit(*d, true),
            I::MFromX { d, a }
            | I::XUnary { d, a, .. }
            | I::XConvert { d, a, .. }
            | I::XWiden { d, a, .. }
            | I::XShift { d, a, .. } => {
                visit(*a, false);
                visit(*d, true);
            }
            I::MPair { d, low, high } | I::XNarrow { d, low, high, .. } => {
                visit(*low, false);
                visit(*high, false);
                visit(*d, true);
            }
            I::MJumpNone { m, .. } => visit(*m, false),
            I::XBin { d, a, b, .. } | I::XCompare { d, a, b, .. } => {
                visit(*a, false);
                if let Some(b) = b.reg() {
                    visit(b, false);
                }
                visit(*d, true);
            }
            I::XLoad { d, a, .. } => {
                if let Some(a) = a.reg() {
                    visit(a, false);
                }
                visit(*d, true);
            }
            I::XMov { d, s, masked } => {
                visit(*s, false);
                if *masked {
                    visit(*d, false);
                }
                visit(*d, true);
            }
            I::XBlend { d, m, a, b, .. } => {
                visit(*m, false);
                visit(*a, false);
                visit(*b, false);
                visit(*d, true);
            }
            I::XFma { d, a, b, c, .. } => {
                visit(*a, false);
                visit(*b, false);
                visit(*c, false);
                visit(*d, true);
            }
            I::XFromM { d, m, .. } => {
                visit(*m, false);
                visit(*d, true);
            }
            I::XFrameStore { s, .. } => visit(*s, false),
            I::Call { ins, outs, .. } | I::Access { ins, outs, .. } => {
                ins.iter().flat_map(|o| o.regs()).for_each(|r| visit(r, false));
                outs.iter().flat_map(|o| o.regs()).for_each(|r| visit(r, true));
            }
            I::Meet { turns, ins, outs, .. } => {
                turns.iter().for_each(|r| visit(*r, false));
                ins.iter().flat_map(|o| o.regs()).for_each(|r| visit(r, false));
                outs.iter().flat_map(|o| o.regs()).for_each(|r| visit(r, true));
            }
            I::Poll { .. } => {}
        }
    }
}
