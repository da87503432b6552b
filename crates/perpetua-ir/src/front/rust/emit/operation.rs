//! Literals, operators, conversions.

use perpetua_syntax::{BinaryOp as SyntaxOp, Scalar as SyntaxScalar};

use super::{Emitter, Result};
use crate::front::rust::error::LowerError;
use crate::front::rust::infer::methods::{Num, num};
use crate::front::rust::infer::tree::{Expr, ExprKind};
use crate::front::rust::infer::ty::{Len, Ty, show};
use crate::front::rust::infer::{float_bits, table_op};
use crate::ir::{Builtin, Scalar, Value};
use crate::ops::{BinaryOp, UnaryOp};

impl Emitter<'_> {
    /// The scalar of the IR that an expression's type is.
    fn scalar_type(&self, e: &Expr) -> Result<Num> {
        match self.ty(&e.ty) {
            Ty::Scalar(s) => Ok(num(s, self.program.width)),
            Ty::Enum(en) => Ok(num(en.repr, self.program.width)),
            other => Err(self.error(
                e.line,
                format!("a scalar is needed here, not `{}`", show(&other)),
                "",
            )),
        }
    }

    /// A literal, or a const parameter.
    pub(super) fn literal(&mut self, e: &Expr) -> Result<Value> {
        let line = e.line;
        match &e.kind {
            ExprKind::Int(value) => self.int_literal(*value, false, e),
            ExprKind::Float(digits) => self.float(&self.ty(&e.ty), digits, line),
            ExprKind::Bool(b) => Ok(self.bool(*b)),
            ExprKind::Len(len) => match self.scope.f.types.len(*len) {
                Len::Known(n) => {
                    let usize_scalar = self.usize_scalar();
                    Ok(self.constant(usize_scalar, n))
                }
                Len::Var(_) => Err(self.error(line, "a const parameter is not known", "")),
            },
            _ => Err(self.error(line, "this expression is not of the kernel language", "")),
        }
    }

    /// The float of these digits.
    pub(super) fn float(&mut self, ty: &Ty, digits: &str, line: u32) -> Result<Value> {
        let Ty::Scalar(s) = ty else {
            return Err(self.error(line, "the type of a float is not known", "annotate it"));
        };
        match float_bits(*s, digits) {
            Some(bits) => Ok(self.constant(num(*s, self.program.width), bits)),
            None => Err(self.error(line, format!("`{digits}` is not a `{}`", s.name()), "")),
        }
    }

    fn int_literal(&mut self, value: u128, negative: bool, e: &Expr) -> Result<Value> {
        let s = self.scalar_type(e)?;
        if !s.is_int() {
            return Err(self.error(e.line, format!("an integer literal has type `{s}`"), ""));
        }
        let max = if negative { s.least() } else { s.greatest() };
        if value > max {
            let sign = if negative { "-" } else { "" };
            return Err(self.error(
                e.line,
                format!("the literal `{sign}{value}` is out of range for `{s}`"),
                "use a wider type",
            ));
        }
        let value = if negative { value.wrapping_neg() } else { value };
        Ok(self.integer(s, value & s.all_bits()))
    }

    pub(super) fn negate(&mut self, operand: &Expr, line: u32) -> Result<Value> {
        self.check_negated(operand, line)?;
        if let ExprKind::Int(value) = &operand.kind {
            return self.int_literal(*value, true, operand);
        }
        let operand = self.value(operand)?;
        self.at(line);
        self.unary(UnaryOp::Neg, operand, line)
    }

    fn check_negated(&self, operand: &Expr, line: u32) -> Result<()> {
        let s = self.scalar_type(operand)?;
        if s.is_signed_int() || s.is_float() {
            return Ok(());
        }
        Err(self.error(
            line,
            format!("`-` does not work on `{}`", show(&self.ty(&operand.ty))),
            "it needs a signed integer or a float",
        ))
    }

    pub(super) fn not_expr(&mut self, operand: &Expr, line: u32) -> Result<Value> {
        let operand = self.value(operand)?;
        self.at(line);
        self.unary(UnaryOp::Not, operand, line)
    }

    pub(super) fn binary_expr(&mut self, op: SyntaxOp, a: &Expr, b: &Expr, line: u32) -> Result<Value> {
        if !matches!(self.ty(&a.ty), Ty::Scalar(_) | Ty::Enum(_)) {
            return self.aggregate_operator(op, a, b, line);
        }
        let a = self.value(a)?;
        let b = self.value(b)?;
        self.at(line);
        self.operator(op, a, b, line)
    }

    /// `==` and `!=` of aggregates; other operators do not work on them.
    fn aggregate_operator(&mut self, op: SyntaxOp, a: &Expr, b: &Expr, line: u32) -> Result<Value> {
        let ty = self.ty(&a.ty);
        if !matches!(op, SyntaxOp::Eq | SyntaxOp::Ne) {
            return Err(self.error(
                line,
                format!("`{}` does not work on `{}`", op.symbol(), show(&ty)),
                "write a `#[device]` function",
            ));
        }
        let (x, y) = (self.expr(a)?, self.expr(b)?);
        self.at(line);
        let same = self.equal(&x, &y, &ty, line)?;
        if op == SyntaxOp::Eq {
            Ok(same)
        } else {
            self.not(same, line)
        }
    }

    /// An operator of the source on two scalars.
    pub(super) fn operator(&mut self, op: SyntaxOp, a: Value, b: Value, line: u32) -> Result<Value> {
        let s = self.num_of(a, line)?;
        let Some(table) = table_op(op) else {
            return Err(self.error(line, format!("`{}` is no operator on values", op.symbol()), ""));
        };
        if s == Scalar::Bool && matches!(table, BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge) {
            let (a, b) = (self.cast(Scalar::U8, a, line)?, self.cast(Scalar::U8, b, line)?);
            return self.binary(table, a, b, line);
        }
        if !table.row().domain.contains(s.like()) {
            return Err(self.error(
                line,
                format!("`{}` does not work on `{s}`", op.symbol()),
                "convert with `as`",
            ));
        }
        let mut b = b;
        if matches!(table, BinaryOp::Shl | BinaryOp::Shr) {
            match self.num_of(b, line)? {
                amount if !amount.is_int() => {
                    return Err(self.error(
                        line,
                        "a shift amount is not an integer",
                        "convert with `as u32`",
                    ));
                }
                Num::Word(_) => {}
                // Amounts are masked.
                _ => b = self.cast(Scalar::U32, b, line)?,
            }
        }
        self.binary(table, a, b, line)
    }

    pub(super) fn cast_expr(&mut self, value: &Expr, to: &Ty, line: u32) -> Result<Value> {
        let to = self.cast_target(&self.ty(&value.ty), &self.ty(to), line)?;
        let value = self.value(value)?;
        self.at(line);
        self.cast(to, value, line)
    }

    /// The scalar that `as` gives, if Rust has that cast.
    fn cast_target(&self, from: &Ty, to: &Ty, line: u32) -> Result<Num> {
        let remedy = match (from, to) {
            (Ty::Scalar(SyntaxScalar::Bool), Ty::Scalar(s)) if s.is_float() => "cast to an integer first",
            (from, Ty::Scalar(SyntaxScalar::Bool)) if *from != Ty::BOOL => "compare with `!= 0`",
            (Ty::Scalar(_) | Ty::Enum(_), Ty::Scalar(s)) => return Ok(num(*s, self.program.width)),
            _ => "`as` converts between numbers",
        };
        Err(self.error(
            line,
            format!("`{}` cannot be cast to `{}`", show(from), show(to)),
            remedy,
        ))
    }

    /// `From` and `Into`.
    pub(super) fn convert_expr(&mut self, value: &Expr, to: &Ty, lossless: bool, line: u32) -> Result<Value> {
        let (from, to) = (self.ty(&value.ty), self.ty(to));
        if from == to {
            return self.value(value);
        }
        let (from, to) = self.conversion(&from, &to, lossless, line)?;
        let mut value = self.value(value)?;
        self.at(line);
        if from == Scalar::Bool && to.is_float() {
            value = self.cast(Scalar::U8, value, line)?;
        }
        self.cast(to, value, line)
    }

    /// The scalars between which a conversion is, if Rust has it.
    fn conversion(&self, from: &Ty, to: &Ty, lossless: bool, line: u32) -> Result<(Num, Num)> {
        let refuse = |cause: &str, remedy: String| -> LowerError {
            let cause = format!("`{}` is not converted to `{}`{cause}", show(from), show(to));
            self.error(line, cause, remedy)
        };
        match (from, to) {
            (Ty::Scalar(f), Ty::Scalar(t)) if lossless && !is_lossless(*f, *t) => {
                Err(refuse(" without loss", format!("use `as {}`", t.name())))
            }
            (Ty::Scalar(f), Ty::Scalar(t)) => Ok((num(*f, self.program.width), num(*t, self.program.width))),
            (_, Ty::Var(_)) => Err(refuse("", "annotate the type that it becomes".into())),
            _ => Err(refuse("", "convert it field by field".into())),
        }
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
    let (f, t) = (num(from, 64), num(to, 64));
    match (from, to) {
        _ if from == to => true,
        (Bool, _) => !matches!(to, F16 | Bf16),
        (F32, F64) | (F16 | Bf16, F32 | F64) => true,
        (U8 | U16, Usize) | (U8 | I8 | I16, Isize) => true,
        (_, Usize | Isize) | (Usize | Isize, _) => false,
        (I8 | U8, F16 | Bf16) => true,
        (_, F32 | F64) if f.is_int() => f.bits() <= if to == F32 { 16 } else { 32 },
        _ if f.is_int() && t.is_int() => t.bits() > f.bits() && (f.is_unsigned_int() || t.is_signed_int()),
        _ => false,
    }
}
