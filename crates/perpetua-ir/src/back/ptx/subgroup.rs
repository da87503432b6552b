//! Exchanges among the lanes of a warp, and which lanes those are.
//!
//! A statement's active lanes are those that control flow brought there together. The hardware does not promise to
//! keep them together, so a mask of them is carried along: all lanes of a mask name it in `shfl.sync` and `vote.sync`
//! and so wait for each other. The mask starts with the lanes of the warp that exist; a condition divides it by a
//! vote, unless it is known to be the same in all of them. Where that would need lanes to learn of each other's `break`s from
//! nested conditions, the mask is unknown until the construct that they left ends, and `activemask` answers.

use super::Renderer;
use super::emit::{Leaf, emit, emit_once};
use super::integer::arithmetic;
use crate::ir::{Block, Builtin, Inst, Op, ReduceOp, Scalar, SubgroupOp, Value};
use crate::ops::{Meeting, Same};

/// The lanes that run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mask {
    /// This register holds them.
    Known(Leaf),
    Unknown,
}

/// Masks of a branch.
#[derive(Clone, Copy)]
pub(super) struct Split {
    pub(super) then: Mask,
    pub(super) otherwise: Mask,
    pub(super) after: Mask,
}

const FULL: u64 = 0xffff_ffff;
const LANES: u32 = 32;

/// Whether control can leave a block for somewhere beyond `depth` constructs around it, by `break`, `continue` or
/// `return`.
fn escapes(block: &Block, depth: u32) -> bool {
    block.0.iter().any(|stmt| {
        let inside = depth + u32::from(matches!(stmt.inst, Inst::Loop(_) | Inst::Labeled(_)));
        match &stmt.inst {
            Inst::Break(d) | Inst::Continue(d) => *d >= depth,
            Inst::Return(_) => true,
            other => other.blocks().into_iter().any(|b| escapes(b, inside)),
        }
    })
}

/// Whether some `continue` goes to the loop around `depth` inner constructs.
fn continues(block: &Block, depth: u32) -> bool {
    block.0.iter().any(|stmt| {
        let inside = depth + u32::from(matches!(stmt.inst, Inst::Loop(_) | Inst::Labeled(_)));
        match &stmt.inst {
            Inst::Continue(d) => *d == depth,
            other => other.blocks().into_iter().any(|b| continues(b, inside)),
        }
    })
}

/// Whether control never comes to the block's end.
fn ends(block: &Block) -> bool {
    block.0.last().is_some_and(|stmt| match &stmt.inst {
        Inst::If(_, a, b) => ends(a) && ends(b),
        inst => inst.is_terminator(),
    })
}

impl<'k> Renderer<'k> {
    /// Whether a block brings these lanes together, in functions that it calls too.
    fn meets(&self, block: &Block, whom: Meeting) -> bool {
        let mut found = false;
        block.walk(&mut |stmt| match &stmt.inst {
            Inst::Let(_, Op::Call(f, _)) => {
                let called = self.kernel.functions.get(*f as usize);
                found |= called.is_some_and(|f| self.meets(&f.body.block, whom));
            }
            inst => found |= inst.meets(whom),
        });
        found
    }

    /// The mask with which a kernel begins.
    pub(super) fn enter_warp(&mut self) {
        let size = self.kernel.block_size.map(|size| size.iter().product::<u32>());
        let all = match size {
            Some(lanes) if lanes.is_multiple_of(LANES) => Leaf::Imm(FULL),
            _ => {
                let all = self.out.word();
                emit_once!(self, "activemask.b32 {all}");
                all
            }
        };
        self.mask = Some(Mask::Known(all));
    }

    /// Whether this is known to be the same in all lanes that run together.
    fn is_uniform(&self, leaf: Leaf) -> bool {
        matches!(leaf, Leaf::Imm(_)) || self.uniform.contains(&leaf)
    }

    /// Notes of what an operation gave whether it is the same in all lanes that run together. Variables never are: only what is
    /// computed once from what is.
    pub(super) fn note_uniform(&mut self, v: Value, op: &Op) {
        let together = matches!(self.mask, Some(Mask::Known(_)));
        let uniform = match op {
            Op::Param(_) | Op::Builtin(Builtin::BlockIdx(_) | Builtin::BlockDim(_) | Builtin::GridDim(_)) => {
                true
            }
            Op::Device(op, _) => together && matches!(op.row().same, Same::InSubgroup(_)),
            Op::Unary(..) | Op::Binary(..) | Op::Ternary(..) | Op::Cast(..) | Op::Bitcast(..) => {
                let mut all = true;
                op.operands(&mut |v| {
                    all &= self
                        .leaves_of(self.value(v))
                        .into_iter()
                        .all(|leaf| self.is_uniform(leaf))
                });
                all
            }
            _ => false,
        };
        if uniform && self.mask.is_some() {
            let leaves = self.leaves_of(self.value(v));
            self.uniform.extend(leaves);
        }
    }

    /// Divides the lanes by a condition.
    pub(super) fn split(&mut self, p: Leaf, then: &Block, otherwise: &Block) -> Option<Split> {
        let mask = self.mask?;
        let exchange = [then, otherwise].iter().any(|b| self.meets(b, Meeting::Subgroup));
        let (then_leaves, other_leaves) = (escapes(then, 0), escapes(otherwise, 0));
        let all = Split {
            then: Mask::Unknown,
            otherwise: Mask::Unknown,
            after: mask,
        };
        let Mask::Known(lanes) = mask else {
            return Some(all);
        };
        if !exchange && !then_leaves && !other_leaves {
            return Some(all);
        }
        if self.is_uniform(p) {
            // All go the same way.
            return Some(Split {
                then: mask,
                otherwise: mask,
                after: mask,
            });
        }
        let (taken, rest) = (self.out.word(), self.out.word());
        emit!(self, "vote.sync.ballot.b32 {taken}, {p}, {lanes}");
        emit!(self, "xor.b32 {rest}, {taken}, {lanes}");
        let after = match (then_leaves, other_leaves) {
            (false, false) => mask,
            (true, false) if ends(then) => Mask::Known(rest),
            (false, true) if ends(otherwise) => Mask::Known(taken),
            _ => Mask::Unknown,
        };
        Some(Split {
            then: Mask::Known(taken),
            otherwise: Mask::Known(rest),
            after,
        })
    }

    /// Masks inside and after branches chosen by a selector.
    pub(super) fn divide<'b>(&self, mut blocks: impl Iterator<Item = &'b Block>) -> Option<(Mask, Mask)> {
        let mask = self.mask?;
        let after = if blocks.any(|b| escapes(b, 0)) {
            Mask::Unknown
        } else {
            mask
        };
        Some((Mask::Unknown, after))
    }

    /// Waits for all lanes of the warp that have not ended: from here on they run together.
    pub(super) fn converge(&mut self) {
        emit!(self, "bar.warp.sync {FULL:#x}");
        self.met();
    }

    /// All lanes of the warp have come here.
    pub(super) fn met(&mut self) {
        if self.mask.is_some() {
            self.widen();
            self.mask = Some(Mask::Known(Leaf::Imm(FULL)));
        }
    }

    /// More lanes will be here than now: what is the same in these may differ in those.
    fn widen(&mut self) {
        if self.mask != Some(Mask::Known(Leaf::Imm(FULL))) {
            self.uniform.clear();
        }
    }

    /// From here on these lanes run together.
    pub(super) fn enter(&mut self, mask: Option<Mask>) {
        if mask.is_some() {
            self.mask = mask;
        }
    }

    /// Sets the mask for a loop's body, and keeps its register for [`Renderer::next_turn`]; gives the mask after the
    /// loop.
    pub(super) fn enter_loop(&mut self, body: &Block) -> (Option<Mask>, Option<Leaf>) {
        let Some(mask) = self.mask else {
            return (None, None);
        };
        let after = if escapes(body, 1) { Mask::Unknown } else { mask };
        if self.meets(body, Meeting::Unproven) {
            self.widen();
        }
        let mut turn = None;
        self.mask = Some(Mask::Unknown);
        if let (Mask::Known(lanes), true, false) =
            (mask, self.meets(body, Meeting::Subgroup), continues(body, 0))
        {
            let register = self.out.word();
            self.copy(register, lanes, Scalar::U32);
            self.mask = Some(Mask::Known(register));
            turn = Some(register);
        }
        (Some(after), turn)
    }

    /// At the end of a loop's body: the lanes that are still there take the next turn.
    pub(super) fn next_turn(&mut self, turn: Option<Leaf>) {
        match (turn, self.mask) {
            (Some(register), Some(Mask::Known(lanes))) if register != lanes => {
                self.copy(register, lanes, Scalar::U32);
            }
            (Some(register), Some(Mask::Unknown)) => emit!(self, "activemask.b32 {register}"),
            _ => {}
        }
    }

    /// The mask after a labelled block.
    pub(super) fn enter_labelled(&mut self, body: &Block) -> Option<Mask> {
        let mask = self.mask?;
        if !self.meets(body, Meeting::Subgroup) {
            self.mask = Some(Mask::Unknown);
        }
        Some(if escapes(body, 1) { Mask::Unknown } else { mask })
    }

    /// The lanes that run together here.
    pub(super) fn lanes(&mut self) -> Leaf {
        if let Some(Mask::Known(lanes)) = self.mask {
            return lanes;
        }
        let d = self.out.word();
        emit!(self, "activemask.b32 {d}");
        d
    }

    /// `a` of lane `from` (its low five bits count).
    fn shuffled(&mut self, s: Scalar, a: Leaf, from: Leaf, lanes: Leaf) -> Leaf {
        if s.size() == 8 {
            let (low, high) = self.halves(a);
            let low = self.shuffled(Scalar::U32, low, from, lanes);
            let high = self.shuffled(Scalar::U32, high, from, lanes);
            return self.joined(low, high);
        }
        let a = self.in_register(a, s);
        let d = self.out.word();
        emit!(self, "shfl.sync.idx.b32 {d}, {a}, {from}, {}, {lanes}", LANES - 1);
        d
    }

    /// `a` of lane `from` where that is an active lane and `within` holds, else this lane's.
    fn shuffled_or_own(&mut self, s: Scalar, a: Leaf, from: Leaf, within: Leaf, lanes: Leaf) -> Leaf {
        let got = self.shuffled(s, a, from, lanes);
        let low = self.words("and.b32", from, LANES - 1);
        let bit = self.three("shr.u32", Scalar::U32, lanes, low);
        let bit = self.words("and.b32", bit, 1u32);
        let active = self.compare("ne", "u32", Scalar::U32, bit, Leaf::Imm(0));
        let p = self.three("and.pred", Scalar::Bool, active, within);
        self.choose(p, s, got, a)
    }

    pub(super) fn subgroup(&mut self, op: SubgroupOp, s: Scalar, a: Leaf, lane: Option<Leaf>) -> Vec<Leaf> {
        let lanes = self.lanes();
        let own = self.builtin(Builtin::SubgroupLane);
        let a = self.in_register(a, s);
        let arg = lane.unwrap_or(Leaf::Imm(0));
        let vote = |this: &mut Self, how: &str| {
            let p = this.out.pred();
            emit!(this, "vote.sync.{how}.pred {p}, {a}, {lanes}");
            p
        };
        let result = match op {
            SubgroupOp::Shuffle => self.shuffled(s, a, arg, lanes),
            SubgroupOp::ShuffleXor => {
                let from = self.three("xor.b32", Scalar::U32, own, arg);
                self.shuffled(s, a, from, lanes)
            }
            SubgroupOp::ShuffleUp => {
                let from = self.three("sub.u32", Scalar::U32, own, arg);
                let within = self.compare("le", "u32", Scalar::U32, arg, own);
                self.shuffled_or_own(s, a, from, within, lanes)
            }
            SubgroupOp::ShuffleDown => {
                let from = self.three("add.u32", Scalar::U32, own, arg);
                // In two steps, for the sum may wrap.
                let left = self.three("sub.u32", Scalar::U32, Leaf::Imm((LANES - 1).into()), own);
                let within = self.compare("le", "u32", Scalar::U32, arg, left);
                self.shuffled_or_own(s, a, from, within, lanes)
            }
            SubgroupOp::BroadcastFirst => {
                let first = self.lowest(lanes);
                self.shuffled(s, a, first, lanes)
            }
            SubgroupOp::Any => vote(self, "any"),
            SubgroupOp::All => vote(self, "all"),
            SubgroupOp::Ballot => {
                let d = self.out.word();
                emit!(self, "vote.sync.ballot.b32 {d}, {a}, {lanes}");
                return vec![d, Leaf::Imm(0), Leaf::Imm(0), Leaf::Imm(0)];
            }
            SubgroupOp::Reduce(op) => self.reduce(op, s, a, lanes),
            SubgroupOp::InclusiveScan(op) => {
                let below = self.below(lanes, own);
                self.scan(op, s, a, below, lanes)
            }
            SubgroupOp::ExclusiveScan(op) => {
                let below = self.below(lanes, own);
                let all = self.scan(op, s, a, below, lanes);
                let before = self.shuffled(s, all, below.lane, lanes);
                self.choose(below.exists, s, before, Leaf::Imm(identity(op, s)))
            }
        };
        vec![result]
    }

    /// Index of the lowest lane of a mask.
    fn lowest(&mut self, lanes: Leaf) -> Leaf {
        let (reversed, d) = (self.out.word(), self.out.word());
        emit!(self, "brev.b32 {reversed}, {lanes}");
        emit!(self, "clz.b32 {d}, {reversed}");
        d
    }

    /// Index of the highest lane of a mask; all ones for none.
    fn highest(&mut self, lanes: Leaf) -> Leaf {
        let d = self.out.word();
        emit!(self, "bfind.u32 {d}, {lanes}");
        d
    }

    /// The next active lane below this one.
    fn below(&mut self, lanes: Leaf, own: Leaf) -> Below {
        let (lower, rest) = (self.out.word(), self.out.word());
        emit!(self, "mov.u32 {lower}, %lanemask_lt");
        emit!(self, "and.b32 {rest}, {lower}, {lanes}");
        let found = self.highest(rest);
        let exists = self.compare("ne", "u32", Scalar::U32, rest, Leaf::Imm(0));
        let lane = self.choose(exists, Scalar::U32, found, own);
        Below { lane, exists }
    }

    /// The combination of all active lanes.
    fn reduce(&mut self, op: ReduceOp, s: Scalar, a: Leaf, lanes: Leaf) -> Leaf {
        if self.sm.number >= 80 && matches!(s, Scalar::I32 | Scalar::U32) && op != ReduceOp::Mul {
            let ty = match op {
                ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => "b32",
                _ => arithmetic(s),
            };
            let d = self.out.word();
            emit!(self, "redux.sync.{}.{ty} {d}, {a}, {lanes}", op.name());
            return d;
        }
        // All lanes: halves exchange. Some: the highest lane's inclusive scan is the whole.
        let d = self.out.register(s);
        let (some, done) = (self.out.label(), self.out.label());
        let full = self.compare("eq", "u32", Scalar::U32, lanes, Leaf::Imm(FULL));
        emit!(self, "@!{full} bra {some}");
        let own = self.builtin(Builtin::SubgroupLane);
        let mut sum = a;
        for step in [16u32, 8, 4, 2, 1] {
            let from = self.words("xor.b32", own, step);
            let other = self.shuffled(s, sum, from, lanes);
            sum = self.binary(op.binary(), s, sum, other, s);
        }
        self.copy(d, sum, s);
        emit!(self, "bra {done}");
        self.out.place(some);
        let below = self.below(lanes, own);
        let all = self.scan(op, s, a, below, lanes);
        let last = self.highest(lanes);
        let whole = self.shuffled(s, all, last, lanes);
        self.copy(d, whole, s);
        self.out.place(done);
        d
    }

    /// The combination of this lane and the active ones below. Each lane follows a pointer to an active lane below
    /// and doubles its reach by taking over that lane's pointer, so gaps in the mask do not matter.
    fn scan(&mut self, op: ReduceOp, s: Scalar, a: Leaf, below: Below, lanes: Leaf) -> Leaf {
        let mut sum = a;
        let Below { mut lane, mut exists } = below;
        let steps = LANES.ilog2();
        for step in 0..steps {
            let other = self.shuffled(s, sum, lane, lanes);
            let more = self.binary(op.binary(), s, other, sum, s);
            sum = self.choose(exists, s, more, sum);
            if step + 1 < steps {
                // Whether that lane has one below it travels in the bit above its pointer.
                let flag = self.choose(exists, Scalar::U32, Leaf::Imm(LANES.into()), Leaf::Imm(0));
                let packed = self.three("or.b32", Scalar::U32, lane, flag);
                let theirs = self.shuffled(Scalar::U32, packed, lane, lanes);
                let bit = self.words("and.b32", theirs, LANES);
                let has = self.compare("ne", "u32", Scalar::U32, bit, Leaf::Imm(0));
                exists = self.three("and.pred", Scalar::Bool, exists, has);
                lane = self.words("and.b32", theirs, LANES - 1);
            }
        }
        sum
    }
}

/// The next active lane below: its index (this lane's where there is none), and whether there is one.
#[derive(Clone, Copy)]
struct Below {
    lane: Leaf,
    exists: Leaf,
}

/// The bits of an operation's neutral element.
fn identity(op: ReduceOp, s: Scalar) -> u64 {
    let ones = u64::MAX >> (64 - s.bits());
    let sign = 1u64 << (s.bits() - 1);
    let (one, infinity) = match s {
        Scalar::F32 => (1f32.to_bits().into(), f32::INFINITY.to_bits().into()),
        Scalar::F64 => (1f64.to_bits(), f64::INFINITY.to_bits()),
        _ => (1, 0),
    };
    match op {
        ReduceOp::Add | ReduceOp::Or | ReduceOp::Xor => 0,
        ReduceOp::Mul => one,
        ReduceOp::And => ones,
        ReduceOp::Min if s.is_float() => infinity,
        ReduceOp::Max if s.is_float() => infinity | sign,
        ReduceOp::Min if s.is_signed_int() => ones >> 1,
        ReduceOp::Max if s.is_signed_int() => sign,
        ReduceOp::Min => ones,
        ReduceOp::Max => 0,
    }
}
