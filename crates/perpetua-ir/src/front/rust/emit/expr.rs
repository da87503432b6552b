//! Statements, and which expression is emitted where. Each arm only calls, so that deep nesting needs little stack.

use std::rc::Rc;

use perpetua_syntax::Scalar;

use super::aggregate::COMPOSED_ELEMENTS;
use super::part::holds_reference;
use super::shown::Message;
use super::value::{Src, Val, is_stored};
use super::{Emitter, Result};
use crate::front::rust::describe::{ConstValue, TypeDesc};
use crate::front::rust::infer::tree::{Block, Expr, ExprKind, Pat, StmtKind};
use crate::front::rust::infer::ty::Ty;
use crate::ir::{Op, Type, Value};

/// How deep expressions may nest.
const MAX_NESTING: u32 = 256;

impl Emitter<'_> {
    /// Emits a block's statements and its value.
    pub(super) fn block(&mut self, block: &Block) -> Result<Val> {
        for stmt in &block.stmts {
            if self.body.ended {
                return Ok(Val::unit());
            }
            self.at(stmt.line);
            match &stmt.kind {
                StmtKind::Expr(e) => {
                    self.expr(e)?;
                }
                StmtKind::Let(pat, init) => self.let_stmt(pat, init.as_ref(), stmt.line)?,
            }
        }
        match &block.value {
            Some(value) if !self.body.ended => self.expr(value),
            _ => Ok(Val::unit()),
        }
    }

    fn let_stmt(&mut self, pat: &Pat, init: Option<&Expr>, line: u32) -> Result<()> {
        match (pat, init) {
            // Into its place at once: a large array is never one value.
            (
                Pat::Binding(id),
                Some(
                    init @ Expr {
                        kind: ExprKind::Repeat(value, n),
                        ..
                    },
                ),
            ) if self.repeats(*n, line)? > COMPOSED_ELEMENTS => {
                let n = self.repeats(*n, line)?;
                let value = self.value(value)?;
                self.at(line);
                if self.known(value) == Some(0) {
                    let val = self.repeat(value, init)?;
                    return self.bind(*id, val, line);
                }
                match self.declare(*id, line)? {
                    Some(place) => {
                        self.zero(&place, line)?;
                        self.fill(&place, n, value, line)
                    }
                    None => {
                        let place = self.filled(value, init)?;
                        let val = self.load(&Src::Place(place), line)?;
                        self.bind(*id, val, line)
                    }
                }
            }
            (_, Some(init)) => {
                if let (Pat::Binding(id), ExprKind::Intrinsic(..)) = (pat, &init.kind) {
                    let locals = &self.scope.f.locals;
                    self.declared = locals.get(id.0 as usize).map(|l| l.name.clone());
                }
                let val = self.matched(init, false)?;
                self.declared = None;
                self.at(line);
                if self.body.ended {
                    return Ok(());
                }
                if let Some(missing) = self.missing(&[pat], &self.ty(&init.ty)) {
                    return Err(self.error(
                        line,
                        format!("the pattern of a `let` does not cover {missing}"),
                        "use `let … else` or `match`",
                    ));
                }
                self.bind_pattern(pat, val, line)
            }
            (pat, None) => self.declare_pattern(pat, line),
        }
    }

    fn declare_pattern(&mut self, pat: &Pat, line: u32) -> Result<()> {
        match pat {
            Pat::Binding(id) => {
                if self.declare(*id, line)?.is_none() {
                    self.bind(*id, Val::unit(), line)?;
                }
                Ok(())
            }
            Pat::Tuple(parts) => parts.iter().try_for_each(|p| self.declare_pattern(p, line)),
            _ => Ok(()),
        }
    }

    /// Binds an irrefutable pattern's names.
    pub(super) fn bind_pattern(&mut self, pat: &Pat, val: Val, line: u32) -> Result<()> {
        match pat {
            Pat::Binding(id) => {
                let val = self.value_met(&val, &self.local_type(*id), line)?;
                self.bind(*id, val, line)
            }
            Pat::BorrowMut(id) => self.bind(*id, val, line),
            Pat::Tuple(parts) => {
                for (i, part) in parts.iter().enumerate() {
                    if !binds(part) {
                        continue;
                    }
                    let element = self.part_met(&val, i as u32, line)?;
                    self.bind_pattern(part, element, line)?;
                }
                Ok(())
            }
            Pat::At(name, inner) => {
                self.bind_pattern(inner, val.clone(), line)?;
                self.bind_pattern(name, val, line)
            }
            Pat::Borrow(id) => {
                // A slice is met as a reference, and so is what another name changes.
                let twice =
                    matches!(self.local_type(*id), Ty::Ref(_, target) if matches!(*target, Ty::Ref(..)));
                let val = match val {
                    val @ Val::Ref(_) if !twice => val,
                    val => Val::Ref(Src::Val(Box::new(val))),
                };
                self.bind(*id, val, line)
            }
            Pat::Deref(inner) if binds(inner) => {
                let val = self.behind(&val, inner, line)?;
                self.bind_pattern(inner, val, line)
            }
            Pat::Slice {
                front,
                rest,
                back,
                of,
            } => self.bind_elements((front, rest.as_deref(), back), *of, &val, line),
            Pat::Wild | Pat::Range(..) | Pat::Floats(_) | Pat::Or(_) | Pat::Deref(_) => Ok(()),
        }
    }

    /// What a reference refers to.
    pub(super) fn dereferenced(&mut self, val: &Val, line: u32) -> Result<Val> {
        match val {
            Val::Ref(src) => self.load(src, line),
            other => Ok(other.clone()),
        }
    }

    /// Emits an expression that gives one value of the IR.
    pub(super) fn value(&mut self, e: &Expr) -> Result<Value> {
        let val = self.expr(e)?;
        self.at(e.line);
        if self.body.ended {
            // Nobody reads it: a stand-in of the right type, dropped with the unreachable code.
            let ty = self.ir_type(&e.ty, e.line).unwrap_or(Type::BOOL);
            let done = self.k.op(Op::Zero(ty));
            return self.typed(e.line, done);
        }
        self.value_of(&val, e.line)
    }

    /// Emits an expression.
    pub(super) fn expr(&mut self, e: &Expr) -> Result<Val> {
        if self.nesting >= MAX_NESTING {
            return Err(self.error(
                e.line,
                format!("expressions nest more than {MAX_NESTING} deep, those of inlined functions counted"),
                "split the expression, or the function that it calls",
            ));
        }
        self.nesting += 1;
        let done = self.dispatch(e);
        self.nesting -= 1;
        match done? {
            Val::Tuple(none) if none.is_empty() => self.stand_in(&e.ty, e.line),
            val => Ok(val),
        }
    }

    /// What stands for a value where a jump or a fault comes before it: zeros, which nobody reads; `()` for what is no value of the IR.
    fn stand_in(&mut self, ty: &Ty, line: u32) -> Result<Val> {
        match self.ty(ty) {
            Ty::Tuple(elements) => {
                let parts = elements.iter().map(|ty| self.stand_in(ty, line));
                parts.collect::<Result<_>>().map(Val::Tuple)
            }
            Ty::Ref(_, target) if !matches!(*target, Ty::Slice(_)) => {
                let target = self.stand_in(&target, line)?;
                Ok(Val::Ref(Src::Val(Box::new(target))))
            }
            Ty::Never | Ty::Ref(..) => Ok(Val::unit()),
            ty => match self.ir_type(&ty, line) {
                Ok(ty) => {
                    let done = self.k.op(Op::Zero(ty));
                    self.typed(line, done).map(Val::Value)
                }
                Err(_) => Ok(Val::unit()),
            },
        }
    }

    fn dispatch(&mut self, e: &Expr) -> Result<Val> {
        self.at(e.line);
        match &e.kind {
            ExprKind::Local(_) if matches!(self.ty(&e.ty), Ty::GridPos) => Ok(Val::Grid),
            ExprKind::Constant(..)
            | ExprKind::Local(_)
            | ExprKind::Field(..)
            | ExprKind::Index(..)
            | ExprKind::Element(..)
            | ExprKind::Part(..)
            | ExprKind::Deref(_) => self.read_expr(e),
            // Of references, which a pattern takes apart.
            ExprKind::Array(elements) if self.ir_type(&self.ty(&e.ty), e.line).is_err() => {
                self.tuple_expr(elements)
            }
            ExprKind::Struct(..) if self.ty(&e.ty).is_unit() => Ok(Val::unit()),
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::Len(_)
            | ExprKind::Neg(_)
            | ExprKind::Not(_)
            | ExprKind::Binary(..)
            | ExprKind::Logic(..)
            | ExprKind::Cast(_)
            | ExprKind::Convert(..)
            | ExprKind::LenOf(_)
            | ExprKind::Grid(..)
            | ExprKind::Struct(..) => self.computed(e),
            ExprKind::Array(_) if !holds_reference(&self.ty(&e.ty)) => self.computed(e),
            ExprKind::Array(elements) => self.tuple_expr(elements),
            ExprKind::Ref(inner) => {
                if !matches!(e.ty, Ty::Ref(true, _)) {
                    return match constant_array(inner, &self.ty(&inner.ty)) {
                        Some(ConstValue::Array(of, none)) if none.is_empty() => {
                            self.empty_part(&of, e.line).map(|part| Val::Ref(Src::Part(part)))
                        }
                        Some(array) => Ok(Val::Ref(Src::Constant("literal".into(), Rc::new(array)))),
                        None => self.ref_expr(inner),
                    };
                }
                // Of an array of references nobody but `not_kept` could change which these are.
                if !matches!(self.ty(&inner.ty), Ty::Array(element, _) if matches!(*element, Ty::Ref(..))) {
                    self.not_kept(inner)?;
                }
                match self.ref_expr(inner)? {
                    // What is stored through the reference is read through it, too: a place of its own.
                    Val::Ref(Src::Val(val)) if is_stored(&val) => {
                        let place = self.spill(&val, e.line)?;
                        Ok(Val::Ref(Src::Place(place)))
                    }
                    val => Ok(val),
                }
            }
            ExprKind::Reborrow(inner) => self.expr(inner),
            ExprKind::Into(value, by) => match by.get() {
                None => self.convert_expr(value, &e.ty, true, e.line).map(Val::Value),
                Some((local, call)) => {
                    let val = self.matched(value, false)?;
                    self.bind_pattern(&Pat::Binding(*local), val, e.line)?;
                    self.expr(call)
                }
            },
            ExprKind::Call(callee, generics, args) => self.call(callee, generics, args, e.line),
            ExprKind::Zero => self.zero_expr(e),
            ExprKind::Identity(product) => self.identity(*product, e),
            ExprKind::Default => self.default_value(e),
            ExprKind::Closure(body) => self.closure(body, e.line),
            ExprKind::CallClosure(function, args) => self.call_closure(function, args, e.line),
            ExprKind::Method(method, args) => self.method(*method, args, e),
            ExprKind::Intrinsic(intrinsic, args, sync) => self.intrinsic(*intrinsic, args, *sync, e),
            ExprKind::Condition(number, value) => {
                let value = self.value(value)?;
                self.note(*number, value, e.line)?;
                Ok(Val::Value(value))
            }
            ExprKind::If(cond, then, otherwise) => {
                self.if_expr(cond, then, otherwise.as_deref(), &e.ty, e.line)
            }
            ExprKind::Match(scrutinee, arms) => self.match_expr(scrutinee, arms, &e.ty, e.line),
            ExprKind::Loop(target, body) => self.loop_expr(*target, body, &e.ty, e.line),
            ExprKind::Block(None, block) => self.block(block),
            ExprKind::Block(Some(target), block) => self.labelled(*target, block, &e.ty, e.line),
            ExprKind::Tuple(elements) => self.tuple_expr(elements),
            ExprKind::Repeat(value, n) => {
                let n = self.repeats(*n, e.line)?;
                if holds_reference(&self.ty(&e.ty)) {
                    let val = self.expr(value)?;
                    return Ok(Val::Tuple(vec![val; n as usize]));
                }
                self.repeat_expr(value, n, e)
            }
            _ => self.act(e),
        }
    }

    /// An expression that gives one value of the IR.
    fn computed(&mut self, e: &Expr) -> Result<Val> {
        let value = match &e.kind {
            ExprKind::Neg(operand) => self.negate(operand, e.line),
            ExprKind::Not(operand) => self.not_expr(operand, e.line),
            ExprKind::Binary(op, a, b) => self.binary_expr(*op, a, b, e.line),
            ExprKind::Logic(and, a, b) => self.logic(*and, a, b, e.line),
            ExprKind::Cast(value) => self.cast_expr(value, &e.ty, e.line),
            ExprKind::Convert(value, lossless) => self.convert_expr(value, &e.ty, *lossless, e.line),
            ExprKind::LenOf(place) => self.len_expr(place, e.line),
            ExprKind::Grid(method, args) => self.grid_method(*method, args, e),
            ExprKind::Array(elements) => self.array_expr(elements, e),
            ExprKind::Struct(fields, base) => self.struct_expr(fields, base.as_deref(), e),
            _ => self.literal(e),
        };
        value.map(Val::Value)
    }

    /// An expression that acts and gives `()` or nothing.
    fn act(&mut self, e: &Expr) -> Result<Val> {
        let line = e.line;
        let done = match &e.kind {
            ExprKind::Assign(place, value) => self.assign(place, value, line),
            ExprKind::CompoundAssign(op, place, value) => self.compound_assign(*op, place, value, line),
            ExprKind::Swap(place, a, b) => self.swap(place, a, b, line),
            ExprKind::Fill(place, value) => self.fill_expr(place, value, line),
            ExprKind::While(target, cond, body) => self.while_expr(*target, cond, body, line),
            ExprKind::For(target, local, range, body) => self.for_expr(*target, *local, range, body, line),
            ExprKind::Break(target, value) => self.break_expr(*target, value.as_deref(), line),
            ExprKind::Continue(target) => self.continue_expr(*target, line),
            ExprKind::Return(value) => self.return_expr(value.as_deref(), line),
            ExprKind::Print(pieces, args) => self.formatted(pieces, args, line, Message::Print),
            ExprKind::Panic(pieces, args) => self.formatted(pieces, args, line, Message::Panic),
            ExprKind::Unreachable => self.unreachable(line),
            _ => Err(self.error(line, "this expression is not of the kernel language", "")),
        };
        done.map(|()| Val::unit())
    }

    fn read_expr(&mut self, e: &Expr) -> Result<Val> {
        let src = self.src(e)?;
        self.at(e.line);
        self.load(&src, e.line)
    }

    fn ref_expr(&mut self, inner: &Expr) -> Result<Val> {
        self.src(inner).map(Val::Ref)
    }

    fn tuple_expr(&mut self, elements: &[Expr]) -> Result<Val> {
        let vals = elements.iter().map(|e| self.expr(e)).collect::<Result<_>>();
        vals.map(Val::Tuple)
    }
}

/// `b"text"` and `&[]`, of elements of this type, as a constant, which Rust makes of them, too.
fn constant_array(literal: &Expr, ty: &Ty) -> Option<ConstValue> {
    let (ExprKind::Array(elements), Ty::Array(of, _)) = (&literal.kind, ty) else {
        return None;
    };
    let byte = |element: &Expr| match (&element.kind, &element.ty) {
        (ExprKind::Int(value), Ty::Scalar(Scalar::U8)) => {
            Some(ConstValue::Scalar(Scalar::U8, u64::try_from(*value).ok()?))
        }
        _ => None,
    };
    let elements = elements.iter().map(byte).collect::<Option<Vec<_>>>()?;
    match **of {
        Ty::Scalar(of) => Some(ConstValue::Array(TypeDesc::Scalar(of), elements)),
        _ => None,
    }
}

/// Whether a pattern binds a name.
pub(super) fn binds(pat: &Pat) -> bool {
    match pat {
        Pat::Binding(_) | Pat::Borrow(_) | Pat::BorrowMut(_) | Pat::At(..) => true,
        Pat::Tuple(parts) => parts.iter().any(binds),
        Pat::Slice {
            front, rest, back, ..
        } => front.iter().chain(rest.as_deref()).chain(back).any(binds),
        Pat::Deref(inner) => binds(inner),
        Pat::Wild | Pat::Range(..) | Pat::Floats(_) | Pat::Or(_) => false,
    }
}
