//! Loops. A `for` becomes `next = start; loop { if !(next < end) break; i = next; next += 1; body }`, so that
//! `continue` is a plain jump. Ranges that this form cannot count (inclusive to the type's end, steps, both
//! directions) become an arithmetic progression with a flag for its end, exact at every bound.

use super::value::{Slot, Src, Val};
use super::{Emitter, Result};
use crate::front::rust::infer::methods::Num;
use crate::front::rust::infer::tree::{Adaptor, Block, Expr, LocalId, Range, TargetId};
use crate::front::rust::infer::ty::{Ty, show};
use crate::ir::{self, Effect, FaultKind, Inst, Place, Scalar, Value};
use crate::ops::BinaryOp;

/// What a range counts: from `first`, `delta` further each time, in arithmetic that wraps.
struct Progression {
    first: Value,
    /// Number of turns less one, unsigned; without meaning where there are none.
    last: Value,
    /// `bool`: whether there is a turn.
    any: Value,
    delta: Value,
}

impl Emitter<'_> {
    /// `loop`.
    pub(super) fn loop_expr(&mut self, target: TargetId, body: &Block, ty: &Ty, line: u32) -> Result<Val> {
        let slot = self.slot(ty, "result", line)?;
        let branch = self.framed(Some((target, slot.clone())), |this, _| {
            this.block(body)?;
            Ok(())
        })?;
        self.at(line);
        self.k.push(Inst::Loop(branch.block));
        if matches!(self.ty(ty), Ty::Never) {
            self.body.ended = true;
        }
        self.get(&slot, line)
    }

    /// `while`.
    pub(super) fn while_expr(
        &mut self,
        target: TargetId,
        cond: &Expr,
        body: &Block,
        line: u32,
    ) -> Result<()> {
        let branch = self.framed(Some((target, Slot::Tuple(Vec::new()))), |this, level| {
            let cond = this.value(cond)?;
            this.at(line);
            this.leave_unless(cond, level, line)?;
            this.block(body)?;
            Ok(())
        })?;
        self.at(line);
        self.k.push(Inst::Loop(branch.block));
        Ok(())
    }

    /// Leaves the loop at this level unless the condition holds.
    fn leave_unless(&mut self, cond: Value, level: u32, line: u32) -> Result<()> {
        if self.is(cond, true) {
            return Ok(());
        }
        let done = self.not(cond, line)?;
        let leave = self.branch(|this| {
            this.k.push(Inst::Break(this.depth(level)));
            this.body.ended = true;
            Ok(Val::unit())
        })?;
        self.k.push(Inst::If(done, leave.block, ir::Block::default()));
        Ok(())
    }

    /// Counts from `start` up to `end`, which have one type; `body` gets each value.
    pub(super) fn counted(
        &mut self,
        start: Value,
        end: Value,
        line: u32,
        body: impl FnOnce(&mut Self, Value) -> Result<()>,
    ) -> Result<()> {
        let s = self.num_of(start, line)?;
        let next = Place::local(self.k.local("next", s.into()));
        self.store(&next, start, line)?;
        let branch = self.framed(None, |this, level| {
            let i = this.read(&next, line)?;
            let inside = this.binary(BinaryOp::Lt, i, end, line)?;
            this.leave_unless(inside, level, line)?;
            let one = this.constant(s, 1);
            let after = this.binary(BinaryOp::Add, i, one, line)?;
            this.store(&next, after, line)?;
            body(this, i)
        })?;
        self.at(line);
        self.k.push(Inst::Loop(branch.block));
        Ok(())
    }

    pub(super) fn read(&mut self, place: &Place, line: u32) -> Result<Value> {
        let val = self.load(&Src::Place(place.clone()), line)?;
        self.value_of(&val, line)
    }

    /// `for`.
    pub(super) fn for_expr(
        &mut self,
        target: TargetId,
        local: Option<LocalId>,
        range: &Range,
        body: &Block,
        line: u32,
    ) -> Result<()> {
        let ty = self.ty(&range.start.ty);
        if !matches!(&ty, Ty::Scalar(s) if s.is_integer()) {
            return Err(self.error(
                line,
                format!("a range counts `{}`", show(&ty)),
                "ranges count integers",
            ));
        }
        let start = self.value(&range.start)?;
        let end = self.value(&range.end)?;
        self.at(line);
        let s = self.num_of(start, line)?;
        let (end, inclusive) = self.exclusive_end(end, range.inclusive, s);
        match (&range.adaptors[..], inclusive) {
            ([], false) => self.for_up(target, local, (start, end), None, body, line),
            ([Adaptor::StepBy(step)], false) => {
                let step = self.value(step)?;
                self.at(line);
                // A step that the type holds: adding it with saturation passes the end, never the type.
                let fits = self
                    .known(step)
                    .filter(|n| *n > 0 && u128::from(*n) <= s.greatest());
                match fits {
                    Some(n) => {
                        let step = self.constant(s, n);
                        self.for_up(target, local, (start, end), Some(step), body, line)
                    }
                    None => {
                        let all = self.progression(start, end, false, line)?;
                        let (some, all) = self.step_by(all, step, s, line)?;
                        self.for_progression(target, local, &all, some, body, line)
                    }
                }
            }
            ([Adaptor::Rev], false) => self.for_down(target, local, (start, end), body, line),
            _ => {
                let mut all = self.progression(start, end, inclusive, line)?;
                let mut some = None;
                for adaptor in &range.adaptors {
                    match adaptor {
                        Adaptor::Rev => all = self.rev(all, s, line)?,
                        Adaptor::StepBy(step) => {
                            let step = self.value(step)?;
                            self.at(line);
                            let (fine, stepped) = self.step_by(all, step, s, line)?;
                            all = stepped;
                            some = match (some, fine) {
                                (Some(a), Some(b)) => Some(self.binary(BinaryOp::And, a, b, line)?),
                                (one, None) | (None, one) => one,
                            };
                        }
                    }
                }
                self.for_progression(target, local, &all, some, body, line)
            }
        }
    }

    /// `..=end` as `..end + 1` where that is known not to overflow.
    fn exclusive_end(&mut self, end: Value, inclusive: bool, s: Num) -> (Value, bool) {
        if !inclusive {
            return (end, false);
        }
        match self.known(end) {
            Some(bits) if u128::from(bits) != s.greatest() => (self.constant(s, bits.wrapping_add(1)), false),
            _ => (end, true),
        }
    }

    fn bind_counter(&mut self, local: Option<LocalId>, i: Value, line: u32) -> Result<()> {
        match local {
            Some(local) => self.bind(local, Val::Value(i), line),
            None => Ok(()),
        }
    }

    fn for_up(
        &mut self,
        target: TargetId,
        local: Option<LocalId>,
        (start, end): (Value, Value),
        step: Option<Value>,
        body: &Block,
        line: u32,
    ) -> Result<()> {
        let s = self.num_of(start, line)?;
        let next = Place::local(self.k.local("next", s.into()));
        self.store(&next, start, line)?;
        let branch = self.framed(Some((target, Slot::Tuple(Vec::new()))), |this, level| {
            let i = this.read(&next, line)?;
            let inside = this.binary(BinaryOp::Lt, i, end, line)?;
            this.leave_unless(inside, level, line)?;
            let after = match step {
                Some(step) => this.binary(BinaryOp::SaturatingAdd, i, step, line)?,
                None => {
                    let one = this.constant(s, 1);
                    this.binary(BinaryOp::Add, i, one, line)?
                }
            };
            this.store(&next, after, line)?;
            this.bind_counter(local, i, line)?;
            this.block(body)?;
            Ok(())
        })?;
        self.at(line);
        self.k.push(Inst::Loop(branch.block));
        Ok(())
    }

    fn for_down(
        &mut self,
        target: TargetId,
        local: Option<LocalId>,
        (start, end): (Value, Value),
        body: &Block,
        line: u32,
    ) -> Result<()> {
        let s = self.num_of(start, line)?;
        let next = Place::local(self.k.local("next", s.into()));
        self.store(&next, end, line)?;
        let branch = self.framed(Some((target, Slot::Tuple(Vec::new()))), |this, level| {
            let before = this.read(&next, line)?;
            let inside = this.binary(BinaryOp::Lt, start, before, line)?;
            this.leave_unless(inside, level, line)?;
            let one = this.constant(s, 1);
            let i = this.binary(BinaryOp::Sub, before, one, line)?;
            this.store(&next, i, line)?;
            this.bind_counter(local, i, line)?;
            this.block(body)?;
            Ok(())
        })?;
        self.at(line);
        self.k.push(Inst::Loop(branch.block));
        Ok(())
    }

    fn progression(&mut self, start: Value, end: Value, inclusive: bool, line: u32) -> Result<Progression> {
        let s = self.num_of(start, line)?;
        let compare = if inclusive { BinaryOp::Le } else { BinaryOp::Lt };
        let any = self.binary(compare, start, end, line)?;
        let mut last = self.binary(BinaryOp::Sub, end, start, line)?;
        let one = self.constant(s, 1);
        if !inclusive {
            last = self.binary(BinaryOp::Sub, last, one, line)?;
        }
        let last = self.bitcast(s.to_unsigned(), last, line)?;
        Ok(Progression {
            first: start,
            last,
            any,
            delta: one,
        })
    }

    fn rev(&mut self, all: Progression, s: Num, line: u32) -> Result<Progression> {
        let turns = self.bitcast(s, all.last, line)?;
        let way = self.binary(BinaryOp::Mul, turns, all.delta, line)?;
        let zero = self.constant(s, 0);
        Ok(Progression {
            first: self.binary(BinaryOp::Add, all.first, way, line)?,
            delta: self.binary(BinaryOp::Sub, zero, all.delta, line)?,
            ..all
        })
    }

    /// Takes every `step`-th. A step of zero is a fault: then the first of the result, where there is one, is false.
    fn step_by(
        &mut self,
        all: Progression,
        step: Value,
        s: Num,
        line: u32,
    ) -> Result<(Option<Value>, Progression)> {
        let unsigned = s.to_unsigned();
        let wide = self.num_of(step, line)?;
        // A step past the type takes the first alone, as its greatest value does.
        let mut step = step;
        let mut fine = None;
        if !self.unchecked && self.known(step).is_none_or(|n| n == 0) {
            let zero = self.constant(wide, 0);
            let ok = self.binary(BinaryOp::Ne, step, zero, line)?;
            let fault = self.branch(|this| {
                let done = this.k.effect(Effect::fault(FaultKind::ZeroStep, Vec::new()));
                this.typed(line, done)?;
                Ok(Val::unit())
            })?;
            self.k.push(Inst::If(ok, ir::Block::default(), fault.block));
            let one = self.constant(wide, 1);
            step = self.binary(BinaryOp::Max, step, one, line)?;
            fine = Some(ok);
        }
        if unsigned.bits() < wide.bits() {
            let most = self.constant(wide, unsigned.greatest() as u64);
            step = self.binary(BinaryOp::Min, step, most, line)?;
        }
        let step = self.cast(unsigned, step, line)?;
        let last = self.binary(BinaryOp::Div, all.last, step, line)?;
        let step = self.bitcast(s, step, line)?;
        Ok((
            fine,
            Progression {
                last,
                delta: self.binary(BinaryOp::Mul, all.delta, step, line)?,
                ..all
            },
        ))
    }

    fn for_progression(
        &mut self,
        target: TargetId,
        local: Option<LocalId>,
        all: &Progression,
        fine: Option<Value>,
        body: &Block,
        line: u32,
    ) -> Result<()> {
        let s = self.num_of(all.first, line)?;
        let unsigned = s.to_unsigned();
        let next = Place::local(self.k.local("next", s.into()));
        let left = Place::local(self.k.local("left", unsigned.into()));
        let more = Place::local(self.k.local("more", Scalar::Bool.into()));
        self.store(&next, all.first, line)?;
        self.store(&left, all.last, line)?;
        let any = match fine {
            Some(fine) => self.binary(BinaryOp::And, all.any, fine, line)?,
            None => all.any,
        };
        self.store(&more, any, line)?;
        let branch = self.framed(Some((target, Slot::Tuple(Vec::new()))), |this, level| {
            let go = this.read(&more, line)?;
            this.leave_unless(go, level, line)?;
            let i = this.read(&next, line)?;
            let after = this.binary(BinaryOp::Add, i, all.delta, line)?;
            this.store(&next, after, line)?;
            let turns = this.read(&left, line)?;
            let zero = this.constant(unsigned, 0);
            let another = this.binary(BinaryOp::Ne, turns, zero, line)?;
            this.store(&more, another, line)?;
            let one = this.constant(unsigned, 1);
            let turns = this.binary(BinaryOp::Sub, turns, one, line)?;
            this.store(&left, turns, line)?;
            this.bind_counter(local, i, line)?;
            this.block(body)?;
            Ok(())
        })?;
        self.at(line);
        self.k.push(Inst::Loop(branch.block));
        Ok(())
    }
}
