//! Branches and jumps: `if`, `&&` and `||`, labelled blocks, `break`, `continue`, `return`.
//!
//! Branches that only compute, and cheaply, become a `select`; what control flow joins otherwise goes through a
//! variable.

use super::part::holds_reference;
use super::tidy::WHICH;
use super::types::held;
use super::value::{Slot, Src, Val};
use super::{Emitter, Result, Return};
use crate::front::rust::infer::tree::{Block, Expr, TargetId};
use crate::front::rust::infer::ty::{Len, Ty};
use crate::ir::{self, Base, Inst, LocalId, Op, Place, Scalar, Step, Value};
use crate::ops::{BinaryOp, Exactness, TernaryOp};

/// Statements up to which a branch is computed without need.
const CHEAP_STATEMENTS: usize = 6;

/// A branch that was emitted.
pub(super) struct Branch {
    pub(super) block: ir::Block,
    /// Whether its end cannot be reached.
    pub(super) ended: bool,
    pub(super) val: Val,
}

impl Emitter<'_> {
    /// Emits a branch as a block of its own.
    pub(super) fn branch(&mut self, f: impl FnOnce(&mut Self) -> Result<Val>) -> Result<Branch> {
        let before = std::mem::replace(&mut self.body.ended, false);
        self.k.open_block();
        let val = f(self);
        let block = self.close();
        let ended = std::mem::replace(&mut self.body.ended, before);
        Ok(Branch {
            block,
            ended,
            val: val?,
        })
    }

    /// A slot for values of this type.
    pub(super) fn slot(&mut self, ty: &Ty, name: &str, line: u32) -> Result<Slot> {
        let ty = self.ty(ty);
        if let Ty::Tuple(parts) = &ty
            && let Some(some) = held(parts).filter(|some| holds_reference(some))
        {
            let there = self.slot(&Ty::BOOL, name, line)?;
            let value = self.slot(some, name, line)?;
            return Ok(Slot::There(Box::new(there), Box::new(value)));
        }
        match ty {
            Ty::Never => Ok(Slot::Tuple(Vec::new())),
            Ty::Tuple(elements) => Ok(Slot::Tuple(
                elements
                    .iter()
                    .map(|e| self.slot(e, name, line))
                    .collect::<Result<_>>()?,
            )),
            Ty::Array(element, Len::Known(n)) if holds_reference(&element) => {
                let slots = (0..n).map(|_| self.slot(&element, name, line));
                slots.collect::<Result<_>>().map(Slot::Tuple)
            }
            Ty::Ref(false, target) if !matches!(*target, Ty::Slice(_)) => {
                let copy = Box::new(self.slot(&target, name, line)?);
                let usize_scalar = self.usize_scalar();
                let [first, second] = [WHICH; 2].map(|name| self.k.local(name, usize_scalar.into()));
                let locals = [first, second, self.k.local(WHICH, Scalar::U32.into())];
                let slot = Slot::Shared(copy, self.meant(), locals);
                self.clear(&slot, line)?;
                Ok(slot)
            }
            Ty::Ref(_, target) => self.chosen_slot(matches!(*target, Ty::Slice(_)), line),
            ty => {
                let ty = self.ir_type(&ty, line)?;
                Ok(Slot::Var(self.k.local(name, ty)))
            }
        }
    }

    /// Puts a value into a slot. `()` into a slot that wants more is what an unreachable end gives: zero.
    pub(super) fn put(&mut self, slot: &Slot, val: &Val, line: u32) -> Result<()> {
        match slot {
            Slot::Var(local) => {
                let place = Place::local(*local);
                let value = match val {
                    Val::Tuple(elements) if elements.is_empty() => self.zero_of(*local, line)?,
                    val => self.value_of(val, line)?,
                };
                self.store(&place, value, line)
            }
            Slot::Tuple(slots) => {
                for (i, slot) in slots.iter().enumerate() {
                    let element = match val {
                        Val::Tuple(elements) if elements.is_empty() => Val::unit(),
                        val => self.component(val, i as u32, line)?,
                    };
                    self.put(slot, &element, line)?;
                }
                Ok(())
            }
            Slot::Shared(copy, meant, locals) => self.put_shared(copy, meant, *locals, val, line),
            Slot::There(there, value) => {
                self.clear(value, line)?;
                if matches!(val, Val::Tuple(none) if none.is_empty()) {
                    return self.clear(there, line);
                }
                let is = self.component(val, 0, line)?;
                self.put(there, &is, line)?;
                let is = self.value_of(&is, line)?;
                match self.known(is) {
                    Some(0) => Ok(()),
                    Some(_) => {
                        let held = self.component(val, 1, line)?;
                        self.put(value, &held, line)
                    }
                    None => {
                        let put = self.branch(|this| {
                            let held = this.component(val, 1, line)?;
                            this.put(value, &held, line)?;
                            Ok(Val::unit())
                        })?;
                        self.k.push(Inst::If(is, put.block, ir::Block::default()));
                        Ok(())
                    }
                }
            }
            Slot::Part(..) | Slot::Place(..) if let Val::Ref(Src::OneOf(which, all)) = val => {
                let put = self.over(*which, all, line, &mut |this, src| {
                    this.put(slot, &Val::Ref(src.clone()), line)?;
                    Ok(Val::unit())
                });
                put.map(|_| ())
            }
            Slot::Part(meant, locals) => self.move_part(meant, *locals, val, line),
            Slot::Place(meant, locals) => self.move_place(meant, *locals, val, line),
        }
    }

    /// Puts zeros into a slot.
    pub(super) fn clear(&mut self, slot: &Slot, line: u32) -> Result<()> {
        match slot {
            Slot::Var(local) => {
                let zero = self.zero_of(*local, line)?;
                self.store(&Place::local(*local), zero, line)
            }
            Slot::Tuple(slots) => slots.iter().try_for_each(|slot| self.clear(slot, line)),
            Slot::Shared(slot, _, locals) => {
                self.clear(slot, line)?;
                let mut locals = locals.iter();
                locals.try_for_each(|local| self.clear(&Slot::Var(*local), line))
            }
            Slot::There(there, value) => {
                self.clear(there, line)?;
                self.clear(value, line)
            }
            Slot::Part(_, locals) | Slot::Place(_, locals) => locals
                .iter()
                .try_for_each(|local| self.clear(&Slot::Var(*local), line)),
        }
    }

    fn zero_of(&mut self, local: LocalId, line: u32) -> Result<Value> {
        let ty = self.typed(line, self.k.place_type(&Place::local(local)))?;
        let done = self.k.op(Op::Zero(ty));
        self.typed(line, done)
    }

    /// Reads a slot.
    pub(super) fn get(&mut self, slot: &Slot, line: u32) -> Result<Val> {
        match slot {
            Slot::Var(local) => self.load(&Src::Place(Place::local(*local)), line),
            Slot::Tuple(slots) => Ok(Val::Tuple(
                slots.iter().map(|s| self.get(s, line)).collect::<Result<_>>()?,
            )),
            Slot::Shared(copy, meant, locals) => self.kept_shared(copy, meant, *locals, line),
            Slot::There(there, value) => {
                let there = self.get(there, line)?;
                Ok(Val::Tuple(vec![there, self.get(value, line)?]))
            }
            Slot::Part(meant, locals) => self.kept_part(meant, *locals, line),
            Slot::Place(meant, locals) => self.kept_place(meant, *locals, line),
        }
    }

    /// Appends a block's statements to the open one.
    fn splice(&mut self, block: ir::Block) {
        for stmt in block.0 {
            self.k.set_line(stmt.line);
            self.k.push(stmt.inst);
        }
    }

    /// Ends two branches on a condition, whose common type is `ty`.
    pub(super) fn join(
        &mut self,
        cond: Value,
        then: Branch,
        otherwise: Branch,
        ty: &Ty,
        line: u32,
    ) -> Result<Val> {
        self.at(line);
        match (then.ended, otherwise.ended) {
            (true, true) => {
                self.k.push(Inst::If(cond, then.block, otherwise.block));
                self.body.ended = true;
                Ok(Val::unit())
            }
            // What is left goes on behind the `if`.
            (true, false) => {
                self.k.push(Inst::If(cond, then.block, ir::Block::default()));
                self.splice(otherwise.block);
                Ok(otherwise.val)
            }
            (false, true) => {
                self.k.push(Inst::If(cond, ir::Block::default(), otherwise.block));
                self.splice(then.block);
                Ok(then.val)
            }
            (false, false) => {
                let ty = self.ty(ty);
                let cheap = is_cheap(&then.block) && is_cheap(&otherwise.block);
                if cheap && is_selectable(&ty) {
                    self.splice(then.block);
                    self.splice(otherwise.block);
                    self.at(line);
                    return self.select(cond, &then.val, &otherwise.val, &ty, line);
                }
                let slot = self.slot(&ty, "chosen", line)?;
                let then = self.finish_branch(then, &slot, line)?;
                let otherwise = self.finish_branch(otherwise, &slot, line)?;
                self.k.push(Inst::If(cond, then, otherwise));
                self.get(&slot, line)
            }
        }
    }

    /// A branch's block, with its value put into the slot.
    pub(super) fn finish_branch(&mut self, branch: Branch, slot: &Slot, line: u32) -> Result<ir::Block> {
        if branch.ended {
            return Ok(branch.block);
        }
        self.k.reopen_block(branch.block);
        let done = self.put(slot, &branch.val, line);
        let block = self.k.close_block();
        done.map(|()| block)
    }

    fn select(&mut self, cond: Value, a: &Val, b: &Val, ty: &Ty, line: u32) -> Result<Val> {
        match ty {
            Ty::Tuple(elements) => {
                let mut parts = Vec::new();
                for (i, element) in elements.iter().enumerate() {
                    let x = self.component(a, i as u32, line)?;
                    let y = self.component(b, i as u32, line)?;
                    parts.push(self.select(cond, &x, &y, element, line)?);
                }
                Ok(Val::Tuple(parts))
            }
            _ => {
                let (a, b) = (self.value_of(a, line)?, self.value_of(b, line)?);
                if a == b {
                    return Ok(Val::Value(a));
                }
                Ok(Val::Value(self.ternary(TernaryOp::Select, cond, a, b, line)?))
            }
        }
    }

    /// `if`.
    pub(super) fn if_expr(
        &mut self,
        cond: &Expr,
        then: &Block,
        otherwise: Option<&Expr>,
        ty: &Ty,
        line: u32,
    ) -> Result<Val> {
        let cond = self.value(cond)?;
        match self.known(cond).filter(|_| self.noted.is_none()) {
            _ if self.body.ended => return Ok(Val::unit()),
            Some(0) => {
                return match otherwise {
                    Some(otherwise) => self.expr(otherwise),
                    None => Ok(Val::unit()),
                };
            }
            Some(_) => return self.block(then),
            None => {}
        }
        let then = self.branch(|this| this.block(then))?;
        let otherwise = self.branch(|this| match otherwise {
            Some(otherwise) => this.expr(otherwise),
            None => Ok(Val::unit()),
        })?;
        self.join(cond, then, otherwise, ty, line)
    }

    /// `a && b` or `a || b`.
    pub(super) fn logic(&mut self, and: bool, a: &Expr, b: &Expr, line: u32) -> Result<Value> {
        let a = self.value(a)?;
        self.logic_with(and, a, line, |this| this.value(b))
    }

    /// `a && b` or `a || b`, `b` emitted only where it counts.
    pub(super) fn logic_with(
        &mut self,
        and: bool,
        a: Value,
        line: u32,
        b: impl FnOnce(&mut Self) -> Result<Value>,
    ) -> Result<Value> {
        if self.body.ended || self.is(a, !and) {
            return Ok(a);
        }
        if self.is(a, and) {
            return b(self);
        }
        let right = self.branch(|this| b(this).map(Val::Value))?;
        self.at(line);
        let op = if and { BinaryOp::And } else { BinaryOp::Or };
        if is_cheap(&right.block) && !right.ended {
            self.splice(right.block);
            self.at(line);
            let right = self.value_of(&right.val, line)?;
            return self.binary(op, a, right, line);
        }
        let local = self
            .k
            .local(if and { "both" } else { "either" }, Scalar::Bool.into());
        let slot = Slot::Var(local);
        self.store(&Place::local(local), a, line)?;
        let right = self.finish_branch(right, &slot, line)?;
        let (then, otherwise) = if and {
            (right, ir::Block::default())
        } else {
            (ir::Block::default(), right)
        };
        self.k.push(Inst::If(a, then, otherwise));
        let val = self.get(&slot, line)?;
        self.value_of(&val, line)
    }

    /// Opens a loop's or labelled block's body: what `f` emits. Gives its block.
    pub(super) fn framed(
        &mut self,
        target: Option<(TargetId, Slot)>,
        f: impl FnOnce(&mut Self, u32) -> Result<()>,
    ) -> Result<Branch> {
        let level = self.body.depth;
        if let Some((target, slot)) = target {
            self.scope.targets.insert(target, (level, slot));
        }
        self.body.depth += 1;
        let branch = self.branch(|this| f(this, level).map(|()| Val::unit()));
        self.body.depth = level;
        branch
    }

    /// The depth of the loop or block at this level, as jumps count it.
    pub(super) fn depth(&self, level: u32) -> u32 {
        (self.body.depth - 1).saturating_sub(level)
    }

    /// A labelled block.
    pub(super) fn labelled(&mut self, target: TargetId, block: &Block, ty: &Ty, line: u32) -> Result<Val> {
        let slot = self.slot(ty, "result", line)?;
        let done = slot.clone();
        let branch = self.framed(Some((target, slot.clone())), |this, _| {
            let val = this.block(block)?;
            if !this.body.ended {
                this.put(&done, &val, line)?;
            }
            Ok(())
        })?;
        self.at(line);
        self.k.push(Inst::Labeled(branch.block));
        if matches!(self.ty(ty), Ty::Never) {
            self.body.ended = true;
        }
        self.get(&slot, line)
    }

    fn target(&self, target: TargetId, line: u32) -> Result<(u32, Slot)> {
        match self.scope.targets.get(&target) {
            Some(found) => Ok(found.clone()),
            None => Err(self.error(line, "a jump leads out of its function", "")),
        }
    }

    pub(super) fn break_expr(&mut self, target: TargetId, value: Option<&Expr>, line: u32) -> Result<()> {
        let (level, slot) = self.target(target, line)?;
        if let Some(value) = value {
            let val = self.expr(value)?;
            self.at(line);
            if self.body.ended {
                return Ok(());
            }
            self.put(&slot, &val, line)?;
        }
        self.k.push(Inst::Break(self.depth(level)));
        self.body.ended = true;
        Ok(())
    }

    pub(super) fn continue_expr(&mut self, target: TargetId, line: u32) -> Result<()> {
        let (level, _) = self.target(target, line)?;
        self.k.push(Inst::Continue(self.depth(level)));
        self.body.ended = true;
        Ok(())
    }

    pub(super) fn return_expr(&mut self, value: Option<&Expr>, line: u32) -> Result<()> {
        let val = match value {
            Some(value) => self.expr(value)?,
            None => Val::unit(),
        };
        self.at(line);
        if self.body.ended {
            return Ok(());
        }
        self.leave(&val, line)
    }

    /// Leaves the function with this value.
    pub(super) fn leave(&mut self, val: &Val, line: u32) -> Result<()> {
        match &self.scope.ret {
            Return::Kernel => self.k.push(Inst::Return(None)),
            Return::Function => {
                let value = match val {
                    Val::Tuple(elements) if elements.is_empty() => None,
                    val => Some(self.value_of(val, line)?),
                };
                self.k.push(Inst::Return(value));
            }
            Return::Inline(level, slot) => {
                let (level, slot) = (*level, slot.clone());
                self.put(&slot, val, line)?;
                self.k.push(Inst::Break(self.depth(level)));
            }
        }
        self.body.ended = true;
        Ok(())
    }
}

/// Whether values of the type may be chosen by `select`: scalars, and tuples of them.
fn is_selectable(ty: &Ty) -> bool {
    match ty {
        Ty::Scalar(_) | Ty::Enum(_) | Ty::Tag(_) => true,
        Ty::Tuple(elements) => elements.len() <= 4 && elements.iter().all(is_selectable),
        _ => false,
    }
}

/// Whether a block only computes a few values, cannot fault, and so may run without need.
pub(super) fn is_cheap(block: &ir::Block) -> bool {
    block.0.len() <= CHEAP_STATEMENTS
        && block.0.iter().all(|stmt| match &stmt.inst {
            Inst::Let(_, op) => match op {
                Op::Const(..)
                | Op::Param(_)
                | Op::Builtin(_)
                | Op::Extract(..)
                | Op::Cast(..)
                | Op::Bitcast(..)
                | Op::Len(..) => true,
                Op::Unary(op, _) => op.row().exactness == Exactness::Exact,
                Op::Binary(op, ..) => {
                    !matches!(op, BinaryOp::Div | BinaryOp::Rem) && op.row().exactness == Exactness::Exact
                }
                Op::Ternary(..) => true,
                Op::Load(place, None) => {
                    matches!(place.base, Base::Local(_))
                        && place.path.iter().all(|step| matches!(step, Step::Field(_)))
                }
                _ => false,
            },
            _ => false,
        })
}
