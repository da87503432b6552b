//! Expressions and statements.

use perpetua_syntax::{BinaryOp as SyntaxOp, Scalar as SyntaxScalar};

use super::value::{Src, Val};
use super::{Emitter, Result};
use crate::front::rust::infer::methods::ir_scalar;
use crate::front::rust::infer::tree::{Block, Expr, ExprKind, Pat, StmtKind};
use crate::front::rust::infer::ty::{Len, Ty, show};
use crate::front::rust::infer::{float_bits, table_op};
use crate::ir::{Builtin, Effect, FaultKind, Op, Place, PrintPiece, Scalar, Step, Type, Value};
use crate::ops::{BinaryOp, UnaryOp};

/// Elements up to which a repeated value is composed rather than stored by a loop.
const COMPOSED_ELEMENTS: u64 = 16;

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
            ) if *n > COMPOSED_ELEMENTS => {
                let value = self.value(value)?;
                self.at(line);
                if self.known(value) == Some(0) {
                    let val = self.repeat(value, init)?;
                    return self.bind(*id, val, line);
                }
                match self.declare(*id, line)? {
                    Some(place) => {
                        self.zero(&place, line)?;
                        self.fill(&place, *n, value, line)
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
                let val = self.expr(init)?;
                self.declared = None;
                self.at(line);
                if self.body.ended {
                    return Ok(());
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
            Pat::Binding(id) => self.bind(*id, val, line),
            Pat::Tuple(parts) => {
                for (i, part) in parts.iter().enumerate() {
                    if matches!(part, Pat::Wild | Pat::Range(..)) {
                        continue;
                    }
                    let element = self.component(&val, i as u32, line)?;
                    self.bind_pattern(part, element, line)?;
                }
                Ok(())
            }
            Pat::Wild | Pat::Range(..) | Pat::Or(_) => Ok(()),
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

    fn scalar_type(&self, e: &Expr) -> Result<Scalar> {
        match self.ty(&e.ty) {
            Ty::Scalar(s) => Ok(ir_scalar(s, self.program.width)),
            Ty::Enum(en) => Ok(ir_scalar(en.repr, self.program.width)),
            other => Err(self.error(
                e.line,
                format!("a scalar is needed here, not `{}`", show(&other)),
                "",
            )),
        }
    }

    /// Emits an expression.
    pub(super) fn expr(&mut self, e: &Expr) -> Result<Val> {
        let line = e.line;
        self.at(line);
        Ok(match &e.kind {
            ExprKind::Int(value) => Val::Value(self.int_literal(*value, false, e)?),
            ExprKind::Float(digits) => {
                let Ty::Scalar(s) = self.ty(&e.ty) else {
                    return Err(self.error(line, "the type of a float is not known", "annotate it"));
                };
                match float_bits(s, digits) {
                    Some(bits) => Val::Value(self.constant(ir_scalar(s, self.program.width), bits)),
                    None => {
                        return Err(self.error(line, format!("`{digits}` is not a `{}`", s.name()), ""));
                    }
                }
            }
            ExprKind::Bool(b) => Val::Value(self.bool(*b)),
            ExprKind::Len(len) => match self.scope.f.types.len(*len) {
                Len::Known(n) => {
                    let usize_scalar = self.usize_scalar();
                    Val::Value(self.constant(usize_scalar, n))
                }
                Len::Var(_) => return Err(self.error(line, "a const parameter is not known", "")),
            },
            ExprKind::Local(_) if matches!(self.ty(&e.ty), Ty::GridPos) => Val::Grid,
            ExprKind::Constant(..)
            | ExprKind::Local(_)
            | ExprKind::Field(..)
            | ExprKind::Index(..)
            | ExprKind::Deref(_) => {
                let src = self.src(e)?;
                self.at(line);
                self.load(&src, line)?
            }
            ExprKind::Neg(operand) => Val::Value(self.negate(operand, line)?),
            ExprKind::Not(operand) => {
                let operand = self.value(operand)?;
                self.at(line);
                Val::Value(self.unary(UnaryOp::Not, operand, line)?)
            }
            ExprKind::Binary(op, a, b) => self.binary_expr(*op, a, b, line)?,
            ExprKind::Logic(and, a, b) => Val::Value(self.logic(*and, a, b, line)?),
            ExprKind::Assign(place, value) => {
                self.assign(place, value, line)?;
                Val::unit()
            }
            ExprKind::CompoundAssign(op, place, value) => {
                // Of scalars, Rust computes the right side first.
                let value = self.value(value)?;
                let place = self.place(place)?;
                self.at(line);
                let old = self.load(&Src::Place(place.clone()), line)?;
                let old = self.value_of(&old, line)?;
                let new = self.operator(*op, old, value, line)?;
                self.store(&place, new, line)?;
                Val::unit()
            }
            ExprKind::Cast(value) => Val::Value(self.cast_expr(value, &e.ty, line)?),
            ExprKind::Convert(value, lossless) => {
                Val::Value(self.convert_expr(value, &e.ty, *lossless, line)?)
            }
            ExprKind::Ref(inner) => {
                let src = self.src(inner)?;
                Val::Ref(src)
            }
            ExprKind::Reborrow(inner) => self.expr(inner)?,
            ExprKind::Call(callee, generics, args) => self.call(callee, generics, args, line)?,
            ExprKind::Method(method, args) => self.method(*method, args, e)?,
            ExprKind::LenOf(place) => {
                let src = self.src(place)?;
                self.at(line);
                let ty = self.ty(&place.ty);
                Val::Value(self.length(&src, &ty, line)?)
            }
            ExprKind::Swap(place, a, b) => {
                self.swap(place, a, b, line)?;
                Val::unit()
            }
            ExprKind::Fill(place, value) => {
                self.fill_expr(place, value, line)?;
                Val::unit()
            }
            ExprKind::Intrinsic(intrinsic, args, sync) => self.intrinsic(*intrinsic, args, *sync, e)?,
            ExprKind::Grid(method, args) => Val::Value(self.grid_method(*method, args, e)?),
            ExprKind::If(cond, then, otherwise) => {
                self.if_expr(cond, then, otherwise.as_deref(), &e.ty, line)?
            }
            ExprKind::Match(scrutinee, arms) => self.match_expr(scrutinee, arms, &e.ty, line)?,
            ExprKind::Loop(target, body) => self.loop_expr(*target, body, &e.ty, line)?,
            ExprKind::While(target, cond, body) => {
                self.while_expr(*target, cond, body, line)?;
                Val::unit()
            }
            ExprKind::For(target, local, range, body) => {
                self.for_expr(*target, *local, range, body, line)?;
                Val::unit()
            }
            ExprKind::Block(None, block) => self.block(block)?,
            ExprKind::Block(Some(target), block) => self.labelled(*target, block, &e.ty, line)?,
            ExprKind::Break(target, value) => {
                self.break_expr(*target, value.as_deref(), line)?;
                Val::unit()
            }
            ExprKind::Continue(target) => {
                self.continue_expr(*target, line)?;
                Val::unit()
            }
            ExprKind::Return(value) => {
                self.return_expr(value.as_deref(), line)?;
                Val::unit()
            }
            ExprKind::Tuple(elements) => {
                Val::Tuple(elements.iter().map(|e| self.expr(e)).collect::<Result<_>>()?)
            }
            ExprKind::Array(elements) => {
                let parts = elements
                    .iter()
                    .map(|e| self.value(e))
                    .collect::<Result<Vec<_>>>()?;
                self.at(line);
                let ty = self.ir_type(&e.ty, line)?;
                Val::Value(self.compose(ty, parts, line)?)
            }
            ExprKind::Repeat(value, n) => {
                let value = self.value(value)?;
                self.at(line);
                if *n <= COMPOSED_ELEMENTS || self.known(value) == Some(0) {
                    self.repeat(value, e)?
                } else {
                    let place = self.filled(value, e)?;
                    self.load(&Src::Place(place), line)?
                }
            }
            ExprKind::Struct(fields, base) => Val::Value(self.struct_expr(fields, base.as_deref(), e)?),
            ExprKind::Print(pieces, args) => {
                self.print(pieces, args, line)?;
                Val::unit()
            }
            ExprKind::Unreachable => {
                // There is no value that is wrong; the fault has an operand all the same.
                let none = self.constant(Scalar::U32, 0);
                let done = self
                    .k
                    .effect(Effect::Fault(FaultKind::UnreachableEnum, vec![none]));
                self.typed(line, done)?;
                Val::unit()
            }
        })
    }

    /// An aggregate from its parts; of zeros alone it is a zero.
    pub(super) fn compose(&mut self, ty: Type, parts: Vec<Value>, line: u32) -> Result<Value> {
        let zero = !parts.is_empty() && parts.iter().all(|p| self.known(*p) == Some(0));
        let done = self.k.op(if zero {
            Op::Zero(ty)
        } else {
            Op::Compose(ty, parts)
        });
        self.typed(line, done)
    }

    fn repeat(&mut self, value: Value, e: &Expr) -> Result<Val> {
        let ty = self.ir_type(&e.ty, e.line)?;
        if self.known(value) == Some(0) {
            let done = self.k.op(Op::Zero(ty));
            return Ok(Val::Value(self.typed(e.line, done)?));
        }
        let n = ty.component_count() as usize;
        Ok(Val::Value(self.compose(ty, vec![value; n], e.line)?))
    }

    /// A new variable of an array type, each element the value.
    fn filled(&mut self, value: Value, e: &Expr) -> Result<Place> {
        let ty = self.ir_type(&e.ty, e.line)?;
        let n = u64::from(ty.component_count());
        let place = Place::local(self.k.local("filled", ty));
        self.zero(&place, e.line)?;
        self.fill(&place, n, value, e.line)?;
        Ok(place)
    }

    /// Stores zero in the whole of a variable: its parts may only be stored to after that.
    fn zero(&mut self, place: &Place, line: u32) -> Result<()> {
        let ty = self.typed(line, self.k.place_type(place))?;
        let done = self.k.op(Op::Zero(ty));
        let zero = self.typed(line, done)?;
        self.store(place, zero, line)
    }

    /// Stores the value in each of an array's elements.
    pub(super) fn fill(&mut self, array: &Place, n: u64, value: Value, line: u32) -> Result<()> {
        let zero = self.constant(Scalar::U32, 0);
        let end = self.constant(Scalar::U32, n);
        self.counted(zero, end, line, |this, i| {
            this.store(&array.clone().step(Step::Index(i)), value, line)
        })
    }

    fn int_literal(&mut self, value: u128, negative: bool, e: &Expr) -> Result<Value> {
        let s = self.scalar_type(e)?;
        if !s.is_int() {
            return Err(self.error(e.line, format!("an integer literal has type `{s}`"), ""));
        }
        let bits = s.bits();
        let max = if s.is_signed_int() {
            (1u128 << (bits - 1)) - u128::from(!negative)
        } else {
            (1u128 << bits) - 1
        };
        if value > max {
            let sign = if negative { "-" } else { "" };
            return Err(self.error(
                e.line,
                format!("the literal `{sign}{value}` is out of range for `{s}`"),
                "use a wider type",
            ));
        }
        let value = value as u64;
        let value = if negative { value.wrapping_neg() } else { value };
        Ok(self.constant(s, value))
    }

    fn negate(&mut self, operand: &Expr, line: u32) -> Result<Value> {
        let s = self.scalar_type(operand)?;
        if !s.is_signed_int() && !s.is_float() {
            return Err(self.error(
                line,
                format!("`-` does not work on `{}`", show(&self.ty(&operand.ty))),
                "it needs a signed integer or a float",
            ));
        }
        if let ExprKind::Int(value) = &operand.kind {
            return self.int_literal(*value, true, operand);
        }
        let operand = self.value(operand)?;
        self.at(line);
        self.unary(UnaryOp::Neg, operand, line)
    }

    fn binary_expr(&mut self, op: SyntaxOp, a: &Expr, b: &Expr, line: u32) -> Result<Val> {
        let ty = self.ty(&a.ty);
        let scalar = matches!(ty, Ty::Scalar(_) | Ty::Enum(_));
        if !scalar && matches!(op, SyntaxOp::Eq | SyntaxOp::Ne) {
            let (x, y) = (self.expr(a)?, self.expr(b)?);
            self.at(line);
            let same = self.equal(&x, &y, &ty, line)?;
            return Ok(Val::Value(if op == SyntaxOp::Eq {
                same
            } else {
                self.not(same, line)?
            }));
        }
        if !scalar {
            return Err(self.error(
                line,
                format!("`{}` does not work on `{}`", op.symbol(), show(&ty)),
                "write a `#[device]` function",
            ));
        }
        let a = self.value(a)?;
        let b = self.value(b)?;
        self.at(line);
        Ok(Val::Value(self.operator(op, a, b, line)?))
    }

    /// An operator of the source on two scalars.
    pub(super) fn operator(&mut self, op: SyntaxOp, a: Value, b: Value, line: u32) -> Result<Value> {
        let s = self.scalar_of(a, line)?;
        let Some(table) = table_op(op) else {
            return Err(self.error(line, format!("`{}` is no operator on values", op.symbol()), ""));
        };
        if s == Scalar::Bool && matches!(table, BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge) {
            let (a, b) = (self.cast(Scalar::U8, a, line)?, self.cast(Scalar::U8, b, line)?);
            return self.binary(table, a, b, line);
        }
        if !table.row().domain.contains(s) {
            return Err(self.error(
                line,
                format!("`{}` does not work on `{s}`", op.symbol()),
                "convert with `as`",
            ));
        }
        if matches!(table, BinaryOp::Shl | BinaryOp::Shr) && !self.scalar_of(b, line)?.is_int() {
            return Err(self.error(line, "a shift amount is not an integer", "convert with `as u32`"));
        }
        self.binary(table, a, b, line)
    }

    fn assign(&mut self, place: &Expr, value: &Expr, line: u32) -> Result<()> {
        if self.ty(&place.ty).is_unit() {
            self.expr(value)?;
            return Ok(());
        }
        let value = self.value(value)?;
        let place = self.place(place)?;
        self.at(line);
        self.store(&place, value, line)
    }

    fn cast_expr(&mut self, value: &Expr, to: &Ty, line: u32) -> Result<Value> {
        let from = self.ty(&value.ty);
        let to = self.ty(to);
        let (Ty::Scalar(_) | Ty::Enum(_), Ty::Scalar(target)) = (&from, &to) else {
            return Err(self.error(
                line,
                format!("`{}` cannot be cast to `{}`", show(&from), show(&to)),
                "`as` converts between numbers",
            ));
        };
        let target = *target;
        let bool_to_float = from == Ty::BOOL && target.is_float();
        let to_bool = target == SyntaxScalar::Bool && from != Ty::BOOL;
        if bool_to_float || to_bool {
            let remedy = if to_bool {
                "compare with `!= 0`"
            } else {
                "cast to an integer first"
            };
            return Err(self.error(
                line,
                format!("`{}` cannot be cast to `{}`", show(&from), show(&to)),
                remedy,
            ));
        }
        let value = self.value(value)?;
        self.at(line);
        self.cast(ir_scalar(target, self.program.width), value, line)
    }

    /// `From` and `Into`.
    fn convert_expr(&mut self, value: &Expr, to: &Ty, lossless: bool, line: u32) -> Result<Value> {
        let (from, to) = (self.ty(&value.ty), self.ty(to));
        if from == to {
            return self.value(value);
        }
        let (Ty::Scalar(f), Ty::Scalar(t)) = (&from, &to) else {
            let remedy = if matches!(to, Ty::Var(_)) {
                "annotate the type that it becomes"
            } else {
                "convert it field by field"
            };
            return Err(self.error(
                line,
                format!("`{}` is not converted to `{}`", show(&from), show(&to)),
                remedy,
            ));
        };
        if lossless && !is_lossless(*f, *t) {
            return Err(self.error(
                line,
                format!("`{}` is not converted to `{}` without loss", f.name(), t.name()),
                format!("use `as {}`", t.name()),
            ));
        }
        let (f, t) = (*f, ir_scalar(*t, self.program.width));
        let mut value = self.value(value)?;
        self.at(line);
        if f == SyntaxScalar::Bool && t.is_float() {
            value = self.cast(Scalar::U8, value, line)?;
        }
        self.cast(t, value, line)
    }

    fn struct_expr(&mut self, fields: &[(u32, Expr)], base: Option<&Expr>, e: &Expr) -> Result<Value> {
        let ty = self.ir_type(&e.ty, e.line)?;
        let mut given = Vec::with_capacity(fields.len());
        for (index, field) in fields {
            given.push((*index, self.value(field)?));
        }
        let base = match base {
            Some(base) => Some(self.expr(base)?),
            None => None,
        };
        self.at(e.line);
        let mut parts = Vec::new();
        for i in 0..ty.component_count() {
            let part = match (given.iter().find(|(index, _)| *index == i), &base) {
                (Some((_, value)), _) => *value,
                (None, Some(base)) => {
                    let part = self.component(base, i, e.line)?;
                    self.value_of(&part, e.line)?
                }
                (None, None) => return Err(self.error(e.line, "a field has no value", "")),
            };
            parts.push(part);
        }
        self.compose(ty, parts, e.line)
    }

    fn swap(&mut self, place: &Expr, a: &Expr, b: &Expr, line: u32) -> Result<()> {
        let array = match self.src(place)? {
            Src::Place(place) => place,
            _ => return Err(self.error(line, "`swap` works on memory", "")),
        };
        let a = self.value(a)?;
        let b = self.value(b)?;
        self.at(line);
        let (a, b) = (array.clone().step(Step::Index(a)), array.step(Step::Index(b)));
        let x = self.load(&Src::Place(a.clone()), line)?;
        let y = self.load(&Src::Place(b.clone()), line)?;
        let (x, y) = (self.value_of(&x, line)?, self.value_of(&y, line)?);
        self.store(&a, y, line)?;
        self.store(&b, x, line)
    }

    fn fill_expr(&mut self, place: &Expr, value: &Expr, line: u32) -> Result<()> {
        let src = self.src(place)?;
        let value = self.value(value)?;
        self.at(line);
        let ty = self.ty(&place.ty);
        let end = self.length(&src, &ty, line)?;
        let Src::Place(array) = src else {
            return Err(self.error(line, "`fill` works on memory", ""));
        };
        let s = self.scalar_of(end, line)?;
        let zero = self.constant(s, 0);
        self.counted(zero, end, line, |this, i| {
            this.store(&array.clone().step(Step::Index(i)), value, line)
        })
    }

    fn print(&mut self, pieces: &[perpetua_syntax::PrintPiece], args: &[Expr], line: u32) -> Result<()> {
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            let ty = self.ty(&arg.ty);
            if !matches!(ty, Ty::Scalar(_)) {
                return Err(self.error(
                    arg.line,
                    format!("`{}` is printed", show(&ty)),
                    "print its scalars one by one",
                ));
            }
            values.push((self.value(arg)?, ty));
        }
        self.at(line);
        let (mut out, mut printed) = (Vec::new(), Vec::new());
        for piece in pieces {
            match piece {
                perpetua_syntax::PrintPiece::Text(text) => out.push(PrintPiece::Text(text.clone())),
                perpetua_syntax::PrintPiece::Arg { index, format } => {
                    let Some((value, ty)) = values.get(*index as usize) else {
                        return Err(self.error(line, "the format names an argument that is not there", ""));
                    };
                    let float = matches!(ty, Ty::Scalar(s) if s.is_float());
                    let plain = perpetua_syntax::PrintFormat::default();
                    let debug = perpetua_syntax::PrintFormat {
                        notation: perpetua_syntax::PrintNotation::Debug,
                        ..plain
                    };
                    if *format != plain && (*format != debug || float) {
                        return Err(self.error(
                            line,
                            "devices print with `{}` only",
                            "leave the format out, or convert the value before",
                        ));
                    }
                    out.push(PrintPiece::Arg);
                    printed.push(*value);
                }
            }
        }
        let done = self.k.effect(Effect::Print(out, printed));
        self.typed(line, done)
    }

    /// A value that the launch supplies, as the `i32` that CUDA's names have.
    pub(super) fn builtin_i32(&mut self, b: Builtin, line: u32) -> Result<Value> {
        let value = self.k.builtin(b);
        self.cast(Scalar::I32, value, line)
    }
}

/// Whether Rust has `From` between the two.
fn is_lossless(from: SyntaxScalar, to: SyntaxScalar) -> bool {
    use SyntaxScalar::{Bf16, Bool, F16, F32, F64, I8, I16, Isize, U8, U16, Usize};
    let (f, t) = (ir_scalar(from, 64), ir_scalar(to, 64));
    match (from, to) {
        _ if from == to => true,
        (Bool, _) => to != Bf16,
        (F32, F64) | (F16 | Bf16, F32 | F64) => true,
        (U8 | U16, Usize) | (U8 | I8 | I16, Isize) => true,
        (_, Usize | Isize) | (Usize | Isize, _) => false,
        (I8 | U8, F16 | Bf16) => true,
        (_, F32 | F64) if f.is_int() => f.bits() <= if to == F32 { 16 } else { 32 },
        _ if f.is_int() && t.is_int() => t.bits() > f.bits() && (f.is_unsigned_int() || t.is_signed_int()),
        _ => false,
    }
}
