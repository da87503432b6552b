//! Values of constant expressions: array lengths, const generic arguments, and constants that were read from
//! source. The operators mean what the operator table's evaluator says.

mod run;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use perpetua_syntax::{BinaryOp as SyntaxOp, Scalar};

use super::Program;
use super::methods::{Method, Num, Special, num};
use super::tree::{Expr, ExprKind, LocalId};
use super::ty::{Len, Ty, Unifier};
use crate::front::rust::describe::{ConstValue, TypeDesc};
use crate::ir::{self, FaultKind};
use crate::ops::eval::{eval_binary, eval_cast, eval_ternary, eval_unary};
use crate::ops::{BinaryOp, UnaryOp};

/// Why an expression is not a constant.
#[derive(Clone, Debug)]
pub(crate) struct ConstError {
    pub(crate) line: u32,
    pub(crate) cause: String,
    /// What it is instead of a mistake.
    leaves: Option<Box<run::Leave>>,
}

type Result<T> = std::result::Result<T, ConstError>;

/// The value of a typed expression that refers to no locals.
pub(crate) fn evaluate(program: &Program, expr: &Expr, types: &Unifier) -> Result<ConstValue> {
    let evaluator = Evaluator {
        types,
        width: program.width,
        program,
        locals: RefCell::default(),
        shared: Rc::default(),
        depth: 0,
    };
    evaluator.expr(expr)
}

/// The integer that an integer's or `bool`'s bits mean.
pub(crate) fn as_integer(s: Scalar, bits: u64) -> Option<i128> {
    Some(match s {
        Scalar::Bool | Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 | Scalar::Usize => {
            i128::from(bits)
        }
        Scalar::I8 => i128::from(bits as i8),
        Scalar::I16 => i128::from(bits as i16),
        Scalar::I32 => i128::from(bits as i32),
        Scalar::I64 | Scalar::Isize => i128::from(bits as i64),
        Scalar::I128 | Scalar::U128 | Scalar::F16 | Scalar::Bf16 | Scalar::F32 | Scalar::F64 => return None,
    })
}

/// Bits of a literal's digits at a float type; `None` where they do not parse.
pub(crate) fn float_bits(s: Scalar, digits: &str) -> Option<u64> {
    Some(match s {
        Scalar::F32 => u64::from(digits.parse::<f32>().ok()?.to_bits()),
        Scalar::F64 => digits.parse::<f64>().ok()?.to_bits(),
        Scalar::F16 | Scalar::Bf16 => crate::ops::eval::float_bits(num(s, 64).like(), digits.parse().ok()?),
        _ => return None,
    })
}

/// The operator of the table that a binary operator of the syntax means; `None` for `&&` and `||`.
pub(crate) fn table_op(op: SyntaxOp) -> Option<BinaryOp> {
    Some(match op {
        SyntaxOp::Add => BinaryOp::Add,
        SyntaxOp::Sub => BinaryOp::Sub,
        SyntaxOp::Mul => BinaryOp::Mul,
        SyntaxOp::Div => BinaryOp::Div,
        SyntaxOp::Rem => BinaryOp::Rem,
        SyntaxOp::BitAnd => BinaryOp::And,
        SyntaxOp::BitOr => BinaryOp::Or,
        SyntaxOp::BitXor => BinaryOp::Xor,
        SyntaxOp::Shl => BinaryOp::Shl,
        SyntaxOp::Shr => BinaryOp::Shr,
        SyntaxOp::Eq => BinaryOp::Eq,
        SyntaxOp::Ne => BinaryOp::Ne,
        SyntaxOp::Lt => BinaryOp::Lt,
        SyntaxOp::Le => BinaryOp::Le,
        SyntaxOp::Gt => BinaryOp::Gt,
        SyntaxOp::Ge => BinaryOp::Ge,
        SyntaxOp::And | SyntaxOp::Or => return None,
    })
}

/// An operator of two operands on a number's bits; `None` where it is not computed.
fn binary(op: BinaryOp, n: Num, a: u128, b: u128) -> Option<std::result::Result<u128, FaultKind>> {
    let Num::Word(s) = n else {
        return wide_binary(op, n.is_signed_int(), a, b);
    };
    Some(eval_binary(op, s, a as u64, b as u64).map(u128::from))
}

fn wide_binary(op: BinaryOp, signed: bool, a: u128, b: u128) -> Option<std::result::Result<u128, FaultKind>> {
    let (x, y) = (a as i128, b as i128);
    let less = |a: u128, b: u128| if signed { (a as i128) < b as i128 } else { a < b };
    let divided = match (op, signed) {
        (BinaryOp::Div, true) => x.checked_div(y).map(|value| value as u128),
        (BinaryOp::Rem, true) => x.checked_rem(y).map(|value| value as u128),
        (BinaryOp::Div, false) => a.checked_div(b),
        (BinaryOp::Rem, false) => a.checked_rem(b),
        _ => Some(0),
    };
    Some(Ok(match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div | BinaryOp::Rem => match divided {
            Some(value) => value,
            None if b == 0 => return Some(Err(FaultKind::DivisionByZero)),
            None => return Some(Err(FaultKind::DivisionOverflow)),
        },
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl => a.wrapping_shl(b as u32),
        BinaryOp::Shr if signed => x.wrapping_shr(b as u32) as u128,
        BinaryOp::Shr => a.wrapping_shr(b as u32),
        BinaryOp::Eq => u128::from(a == b),
        BinaryOp::Ne => u128::from(a != b),
        BinaryOp::Lt => u128::from(less(a, b)),
        BinaryOp::Gt => u128::from(less(b, a)),
        BinaryOp::Le => u128::from(!less(b, a)),
        BinaryOp::Ge => u128::from(!less(a, b)),
        BinaryOp::Min if less(a, b) => a,
        BinaryOp::Max if less(a, b) => b,
        BinaryOp::Max => a,
        BinaryOp::Min => b,
        BinaryOp::SaturatingAdd if signed => x.saturating_add(y) as u128,
        BinaryOp::SaturatingAdd => a.saturating_add(b),
        BinaryOp::SaturatingSub if signed => x.saturating_sub(y) as u128,
        BinaryOp::SaturatingSub => a.saturating_sub(b),
        BinaryOp::AbsDiff if signed => x.abs_diff(y),
        BinaryOp::AbsDiff => a.abs_diff(b),
        BinaryOp::RotateLeft => a.rotate_left(b as u32 % 128),
        BinaryOp::RotateRight => a.rotate_right(b as u32 % 128),
        _ => return None,
    }))
}

/// An operator of one operand on a number's bits; `None` where it is not computed.
fn unary(op: UnaryOp, n: Num, a: u128) -> Option<u128> {
    match (n, op) {
        (Num::Word(s), _) => Some(eval_unary(op, s, a as u64).into()),
        (_, UnaryOp::Neg) => Some(a.wrapping_neg()),
        (_, UnaryOp::Not) => Some(!a),
        _ => None,
    }
}

/// Rust's `as` between numbers.
fn cast(from: Num, to: Num, bits: u128) -> u128 {
    // What is an integer of two words on the way to what is none, or the other way.
    let signed = ((bits << (128 - from.bits())) as i128) >> (128 - from.bits());
    match (from, to) {
        (Num::Word(from), Num::Word(to)) => eval_cast(from, to, bits as u64).into(),
        (_, Num::Word(ir::Scalar::F32)) if from.is_signed_int() => (signed as f32).to_bits().into(),
        (_, Num::Word(ir::Scalar::F32)) => (bits as f32).to_bits().into(),
        (_, Num::Word(to)) if to.is_float() => {
            let wide = if from.is_signed_int() {
                signed as f64
            } else {
                bits as f64
            };
            eval_cast(ir::Scalar::F64, to, wide.to_bits()).into()
        }
        (Num::Word(from), _) if from.is_float() => {
            let wide = f64::from_bits(eval_cast(from, ir::Scalar::F64, bits as u64));
            if to.is_signed_int() {
                wide as i128 as u128
            } else {
                wide as u128
            }
        }
        _ if from.is_signed_int() => signed as u128 & to.all_bits(),
        _ => bits & to.all_bits(),
    }
}

struct Evaluator<'a> {
    types: &'a Unifier,
    width: u32,
    program: &'a Program,
    locals: RefCell<HashMap<LocalId, ConstValue>>,
    /// What all calls of one constant share.
    shared: Rc<run::Shared>,
    /// Of calls within each other.
    depth: u32,
}

impl Evaluator<'_> {
    fn fail<T>(&self, line: u32, cause: impl Into<String>) -> Result<T> {
        Err(ConstError {
            line,
            cause: cause.into(),
            leaves: None,
        })
    }

    fn scalar_type(&self, expr: &Expr) -> Result<Scalar> {
        match self.types.deep(&expr.ty, true) {
            Ty::Scalar(s) => Ok(s),
            other => self.fail(
                expr.line,
                format!("a constant of type `{}` is not a number", self.types.show(&other)),
            ),
        }
    }

    /// A scalar with its bits as the IR has them.
    fn scalar(&self, expr: &Expr) -> Result<(Scalar, u128)> {
        match self.expr(expr)? {
            ConstValue::Scalar(s, bits) => Ok((s, self.cut(s, bits.into()))),
            ConstValue::Wide(s, bits) => Ok((s, bits)),
            ConstValue::Enum(e, value) => Ok((e.repr, self.cut(e.repr, value as u128))),
            other => self.fail(
                expr.line,
                format!("a constant of type `{}` is not a number", other.type_desc()),
            ),
        }
    }

    /// Bits cut to the type's width, as the IR has them.
    fn cut(&self, s: Scalar, bits: u128) -> u128 {
        bits & self.num(s).all_bits()
    }

    fn num(&self, s: Scalar) -> Num {
        num(s, self.width)
    }

    /// A value from bits as the IR has them.
    fn value(&self, s: Scalar, bits: u128) -> ConstValue {
        let bits = match (s, self.width) {
            (Scalar::Isize, 32) => bits as u32 as i32 as u128,
            _ => bits,
        };
        ConstValue::of_bits(s, bits)
    }

    fn binary(&self, op: BinaryOp, a: &Expr, b: &Expr, result: Scalar) -> Result<ConstValue> {
        let ((s, a), (_, b)) = (self.scalar(a)?, (self.scalar(b)?));
        match binary(op, self.num(s), a, b) {
            None => self.fail(0, "this method is not computed in a constant"),
            Some(Ok(bits)) => Ok(self.value(result, bits)),
            Some(Err(fault)) => self.fail(0, format!("the constant has a fault: {}", fault.name())),
        }
    }

    fn all(&self, exprs: &[Expr]) -> Result<Vec<ConstValue>> {
        exprs.iter().map(|e| self.expr(e)).collect()
    }

    fn element_type(&self, ty: &Ty, line: u32) -> Result<TypeDesc> {
        match self.types.deep(ty, true) {
            Ty::Array(element, _) => element.to_desc(),
            _ => None,
        }
        .map_or_else(
            || self.fail(line, "the element type of a constant array is not known"),
            Ok,
        )
    }

    fn expr(&self, expr: &Expr) -> Result<ConstValue> {
        let line = expr.line;
        match &expr.kind {
            ExprKind::Int(value) => {
                let s = self.scalar_type(expr)?;
                Ok(self.value(s, self.cut(s, *value)))
            }
            ExprKind::Float(digits) => {
                let s = self.scalar_type(expr)?;
                match float_bits(s, digits) {
                    Some(bits) => Ok(ConstValue::Scalar(s, bits)),
                    None => self.fail(line, format!("`{digits}` is not a `{}`", s.name())),
                }
            }
            ExprKind::Bool(b) => Ok(ConstValue::Scalar(Scalar::Bool, u64::from(*b))),
            ExprKind::Constant(_, value) => Ok(ConstValue::clone(value)),
            ExprKind::Len(len) => match self.types.len(*len) {
                Len::Known(n) => Ok(ConstValue::Scalar(Scalar::Usize, n)),
                Len::Var(_) => self.fail(line, "a const parameter's value is not known here"),
            },
            ExprKind::Neg(operand) | ExprKind::Not(operand) => {
                let op = match &expr.kind {
                    ExprKind::Neg(_) => UnaryOp::Neg,
                    _ => UnaryOp::Not,
                };
                let (s, bits) = self.scalar(operand)?;
                match unary(op, self.num(s), bits) {
                    Some(bits) => Ok(self.value(s, bits)),
                    None => self.fail(line, "not a constant"),
                }
            }
            ExprKind::Binary(op, a, b) => match table_op(*op) {
                Some(op) => {
                    let result = self.scalar_type(expr)?;
                    self.binary(op, a, b, result)
                        .map_err(|e| ConstError { line, ..e })
                }
                None => self.fail(line, "not a constant"),
            },
            ExprKind::Logic(and, a, b) => {
                let (_, a) = self.scalar(a)?;
                if (a != 0) == *and {
                    self.expr(b)
                } else {
                    Ok(self.value(Scalar::Bool, a))
                }
            }
            ExprKind::Cast(value) | ExprKind::Convert(value, _) | ExprKind::Into(value, _) => {
                let to = self.scalar_type(expr)?;
                let (from, bits) = self.scalar(value)?;
                Ok(self.value(to, cast(self.num(from), self.num(to), bits)))
            }
            ExprKind::Condition(_, value) => self.expr(value),
            ExprKind::If(cond, then, otherwise) => {
                let (_, holds) = self.scalar(cond)?;
                match (holds != 0, otherwise) {
                    (true, _) => self.block(then),
                    (false, Some(otherwise)) => self.expr(otherwise),
                    (false, None) => Ok(ConstValue::Tuple(Vec::new())),
                }
            }
            ExprKind::Block(None, block) => self.block(block),
            ExprKind::Tuple(elements) => Ok(match self.types.deep(&expr.ty, true) {
                Ty::Struct(desc) => ConstValue::Struct(desc, self.all(elements)?),
                _ => ConstValue::Tuple(self.all(elements)?),
            }),
            ExprKind::Zero => match self.types.deep(&expr.ty, true).to_desc() {
                Some(desc) => Ok(desc.zero()),
                None => self.fail(line, "the type of a variant is not known"),
            },
            ExprKind::Array(elements) => Ok(ConstValue::Array(
                self.element_type(&expr.ty, line)?,
                self.all(elements)?,
            )),
            ExprKind::Repeat(value, n) => {
                let value = self.expr(value)?;
                let n = match self.types.len(*n) {
                    Len::Known(n) => usize::try_from(n).ok().filter(|n| *n <= 1 << 24),
                    Len::Var(_) => None,
                };
                let n = n.map_or_else(
                    || self.fail(line, "the number of elements is not known, or too large"),
                    Ok,
                )?;
                Ok(ConstValue::Array(
                    self.element_type(&expr.ty, line)?,
                    vec![value; n],
                ))
            }
            ExprKind::Struct(fields, None) => match self.types.deep(&expr.ty, true) {
                Ty::Struct(desc) => {
                    let mut values = Vec::new();
                    for i in 0..desc.fields.len() {
                        match fields.iter().find(|(f, _)| *f as usize == i) {
                            Some((_, value)) => values.push(self.expr(value)?),
                            None => return self.fail(line, "a field has no value"),
                        }
                    }
                    Ok(ConstValue::Struct(desc, values))
                }
                _ => self.fail(line, "not a struct"),
            },
            ExprKind::Field(..) | ExprKind::Index(..) | ExprKind::Element(..)
                if let Some(value) = self.read(expr)? =>
            {
                Ok(value)
            }
            ExprKind::Field(base, index) => {
                let (ConstValue::Struct(_, fields) | ConstValue::Tuple(fields)) = self.expr(base)? else {
                    return self.fail(line, "not a struct");
                };
                match fields.into_iter().nth(*index as usize) {
                    Some(value) => Ok(value),
                    None => self.fail(line, "no such field"),
                }
            }
            ExprKind::Index(base, index) => {
                let (_, index) = self.scalar(index)?;
                match self.expr(base)? {
                    ConstValue::Array(_, values) => {
                        let len = values.len();
                        match usize::try_from(index)
                            .ok()
                            .and_then(|i| values.into_iter().nth(i))
                        {
                            Some(value) => Ok(value),
                            None => self.fail(
                                line,
                                format!("index out of bounds: the length is {len} but the index is {index}"),
                            ),
                        }
                    }
                    _ => self.fail(line, "not an array"),
                }
            }
            ExprKind::LenOf(base) => match self.known_len(&base.ty) {
                Some(n) => Ok(ConstValue::Scalar(Scalar::Usize, n)),
                None => match self.expr(base)? {
                    ConstValue::Array(_, values) => {
                        Ok(ConstValue::Scalar(Scalar::Usize, values.len() as u64))
                    }
                    _ => self.fail(line, "not an array"),
                },
            },
            ExprKind::Ref(inner) | ExprKind::Deref(inner) | ExprKind::Reborrow(inner) => self.expr(inner),
            ExprKind::Method(method, args) => self.method(*method, args, expr),
            _ => self.run(expr),
        }
    }

    fn method(&self, method: Method, args: &[Expr], expr: &Expr) -> Result<ConstValue> {
        let line = expr.line;
        match (method, args) {
            (Method::Unary(op), [a]) => {
                let (s, a) = self.scalar(a)?;
                match unary(op, self.num(s), a) {
                    Some(bits) => Ok(self.value(self.scalar_type(expr)?, bits)),
                    None => self.fail(line, "this method is not computed in a constant"),
                }
            }
            (Method::Binary(op), [a, b]) => self
                .binary(op, a, b, self.scalar_type(expr)?)
                .map_err(|e| ConstError { line, ..e }),
            (Method::Ternary(op), [a, b, c]) => {
                let ((s, a), (_, b), (_, c)) = (self.scalar(a)?, self.scalar(b)?, self.scalar(c)?);
                match self.num(s) {
                    Num::Word(ir) => {
                        let bits = eval_ternary(op, ir, a as u64, b as u64, c as u64);
                        Ok(self.value(s, bits.into()))
                    }
                    _ => self.fail(line, "this method is not computed in a constant"),
                }
            }
            (Method::Special(Special::Pow), [a, n]) => {
                let ((s, a), (_, n)) = (self.scalar(a)?, self.scalar(n)?);
                let kind = self.num(s);
                let mut bits = self.cut(s, 1);
                let product = |a, b| {
                    binary(BinaryOp::Mul, kind, a, b)
                        .and_then(std::result::Result::ok)
                        .unwrap_or_default()
                };
                // By squaring, as the exponent may be large.
                let (mut base, mut n) = (a, n);
                while n > 0 {
                    if n & 1 == 1 {
                        bits = product(bits, base);
                    }
                    base = product(base, base);
                    n >>= 1;
                }
                Ok(self.value(s, bits))
            }
            (Method::Special(Special::ToBits), [a]) => {
                let (_, a) = self.scalar(a)?;
                Ok(self.value(self.scalar_type(expr)?, a))
            }
            (Method::Special(Special::FromF64), [a]) => {
                let ((_, a), s) = (self.scalar(a)?, self.scalar_type(expr)?);
                Ok(self.value(
                    s,
                    crate::ops::eval::float_bits(self.num(s).like(), f64::from_bits(a as u64)).into(),
                ))
            }
            (Method::Special(Special::WrappingNeg), [a]) => {
                let (s, a) = self.scalar(a)?;
                Ok(self.value(s, self.cut(s, a.wrapping_neg())))
            }
            (Method::Special(Special::Same), [a]) => self.expr(a),
            _ => self.fail(line, "this method is not computed in a constant"),
        }
    }
}

/// A constant as an expression of the typed tree.
pub(crate) fn constant_expr(name: &str, value: ConstValue, line: u32) -> Expr {
    Expr {
        line,
        ty: Ty::from_desc(&value.type_desc()),
        kind: ExprKind::Constant(Rc::from(name), Rc::new(value)),
    }
}
