//! What the rows of the operator table mean: on one scalar's bits ([`eval_unary`] and its kin) and, by the same
//! code, on many lanes side by side. Knows nothing of kernels, memory or control flow.
//!
//! f16 and bf16 are computed as f32 and rounded after each operator. Operators of the math library go through
//! `library`.

mod cast;
mod combine;
mod float;
mod int;
mod lanes;
mod library;
mod wide;

#[cfg(test)]
mod tests;

pub(crate) use combine::combine;
pub(crate) use lanes::*;
pub(crate) use wide::*;

use super::table::{BinaryOp, Result as OpResult, Second, TernaryOp, UnaryOp};
use crate::ir::{AtomicOp, FaultKind, ReduceOp, Scalar};

/// Scalar type of an operator's result, given its first operand's (for `select`: the type selected).
pub const fn result_scalar(result: OpResult, operand: Scalar) -> Scalar {
    match result {
        OpResult::Same | OpResult::Second => operand,
        OpResult::Bool => Scalar::Bool,
        OpResult::U32 => Scalar::U32,
        OpResult::Unsigned => operand.to_unsigned(),
    }
}

fn word(s: Scalar, bits: u64) -> WordLines {
    let mut lines = [Line::ZERO; 8];
    put(&mut lines, s.size(), 0, bits);
    lines
}

fn lines(word: &WordLines, s: Scalar) -> &[Line] {
    word.get(..s.size() as usize).unwrap_or(word)
}

fn lines_mut(word: &mut WordLines, s: Scalar) -> &mut [Line] {
    &mut word[..s.size() as usize]
}

/// An operator of one operand on `bits` of type `s`; the result's bits, zero-extended. Operands that the
/// operator's row does not allow give a value without meaning.
pub fn eval_unary(op: UnaryOp, s: Scalar, bits: u64) -> u64 {
    let r = result_scalar(op.row().result, s);
    let mut out = [Line::ZERO; 8];
    let a = word(s, bits);
    unary(Level::detect(), op, s, &[1], lines(&a, s), lines_mut(&mut out, r));
    get(&out, r.size(), 0)
}

/// An operator of two operands of type `s` (shift and rotation amounts: the low bits of `b`, of any type).
///
/// # Errors
/// The fault of a division by zero or of `MIN / -1`.
pub fn eval_binary(op: BinaryOp, s: Scalar, a: u64, b: u64) -> Result<u64, FaultKind> {
    if let Some(fault) = division_fault(op, s, a, b) {
        return Err(fault);
    }
    let r = result_scalar(op.row().result, s);
    let second = match op.row().second {
        Second::Same => s,
        Second::Amount => s.to_unsigned(),
    };
    let mut out = [Line::ZERO; 8];
    let (a, b) = (word(s, a), word(second, b));
    let out_lines = lines_mut(&mut out, r);
    binary(
        Level::detect(),
        op,
        s,
        &[1],
        lines(&a, s),
        lines(&b, second),
        out_lines,
    );
    Ok(get(&out, r.size(), 0))
}

/// The fault of an integer division or remainder with these operands, if it has one.
pub fn division_fault(op: BinaryOp, s: Scalar, a: u64, b: u64) -> Option<FaultKind> {
    if !matches!(op, BinaryOp::Div | BinaryOp::Rem) || !s.is_int() {
        return None;
    }
    let all = u64::MAX >> (64 - s.bits());
    let min = 1u64 << (s.bits() - 1);
    if b & all == 0 {
        Some(FaultKind::DivisionByZero)
    } else if s.is_signed_int() && a & all == min && b & all == all {
        Some(FaultKind::DivisionOverflow)
    } else {
        None
    }
}

/// An operator of three operands. For `select`, `s` is the type of the second and third operand and `a` a
/// `bool`; else all have type `s`.
pub fn eval_ternary(op: TernaryOp, s: Scalar, a: u64, b: u64, c: u64) -> u64 {
    let mut out = [Line::ZERO; 8];
    let first = if op == TernaryOp::Select { Scalar::Bool } else { s };
    let (a, b, c) = (word(first, a), word(s, b), word(s, c));
    let operands = (lines(&a, first), lines(&b, s), lines(&c, s));
    ternary(Level::detect(), op, s, &[1], operands, lines_mut(&mut out, s));
    get(&out, s.size(), 0)
}

/// Rust's `as`. Casts to f16 and bf16 round to f32 first.
pub fn eval_cast(from: Scalar, to: Scalar, bits: u64) -> u64 {
    let mut out = [Line::ZERO; 8];
    let a = word(from, bits);
    cast(
        Level::detect(),
        from,
        to,
        &[1],
        lines(&a, from),
        lines_mut(&mut out, to),
    );
    get(&out, to.size(), 0)
}

/// The value that an atomic read-modify-write puts in place of `old`.
pub fn eval_atomic(op: AtomicOp, s: Scalar, old: u64, operand: u64) -> u64 {
    let op = match op {
        AtomicOp::Exchange => return operand,
        AtomicOp::Add => BinaryOp::Add,
        AtomicOp::Sub => BinaryOp::Sub,
        AtomicOp::Min => BinaryOp::Min,
        AtomicOp::Max => BinaryOp::Max,
        AtomicOp::And => BinaryOp::And,
        AtomicOp::Or => BinaryOp::Or,
        AtomicOp::Xor => BinaryOp::Xor,
    };
    combine(op, s, old, operand)
}

/// The value that leaves the other operand of a combination as it is (floats: +0 for sums; infinities for minimum
/// and maximum).
pub fn reduce_identity(op: ReduceOp, s: Scalar) -> u64 {
    let all = u64::MAX >> (64 - s.bits());
    let min = 1u64 << (s.bits() - 1);
    match op {
        ReduceOp::Add | ReduceOp::Or | ReduceOp::Xor => 0,
        ReduceOp::Mul => eval_cast(Scalar::U8, s, 1),
        ReduceOp::And => all,
        ReduceOp::Min if s.is_float() => infinity(s),
        ReduceOp::Max if s.is_float() => infinity(s) | min,
        ReduceOp::Min if s.is_signed_int() => all ^ min,
        ReduceOp::Max if s.is_signed_int() => min,
        ReduceOp::Min => all,
        ReduceOp::Max => 0,
    }
}

fn infinity(s: Scalar) -> u64 {
    eval_cast(Scalar::F32, s, u64::from(f32::INFINITY.to_bits()))
}
