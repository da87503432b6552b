//! What the rows of the operator table mean: on one scalar's bits ([`eval_unary`] and its kin) and, by the same
//! code, on whatever is a [`Map`], such as an interpreter's lanes side by side. Knows nothing of kernels, memory or control flow.
//!
//! f16 and bf16 are computed as f32 and rounded after each operator. Operators of the math library go through
//! `library`.

mod cast;
mod float;
mod int;
mod library;
mod map;

#[cfg(test)]
mod tests;

pub use cast::{cast_of, copy_of, takes_two};
pub use map::Map;
use map::One;

use super::table::{BinaryOp, Result as OpResult, TernaryOp, UnaryOp};
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

/// Whether a type is computed as f32.
pub fn is_half(s: Scalar) -> bool {
    matches!(s, Scalar::F16 | Scalar::BF16)
}

/// An operator of one operand, but of f16 and bf16.
#[inline(always)]
pub fn unary_of(op: UnaryOp, s: Scalar, x: impl Map) {
    match s {
        Scalar::F32 => float::unary_f32(op, x),
        Scalar::F64 => float::unary_f64(op, x),
        _ if is_half(s) => {}
        _ => int::unary(op, s, x),
    }
}

/// An operator of two operands, likewise.
#[inline(always)]
pub fn binary_of(op: BinaryOp, s: Scalar, x: impl Map) {
    match s {
        Scalar::F32 => float::binary_f32(op, x),
        Scalar::F64 => float::binary_f64(op, x),
        _ if is_half(s) => {}
        _ => int::binary(op, s, x),
    }
}

/// An operator of three operands, likewise; `select` of all types.
#[inline(always)]
pub fn ternary_of(op: TernaryOp, s: Scalar, x: impl Map) {
    match s {
        _ if op == TernaryOp::Select => cast::select(s.size(), x),
        Scalar::F32 => float::ternary_f32(op, x),
        Scalar::F64 => float::ternary_f64(op, x),
        _ if is_half(s) => {}
        _ => int::ternary(op, s, x),
    }
}

/// An operator of one operand on `bits` of type `s`; the result's bits, zero-extended. Operands that the
/// operator's row does not allow give a value without meaning.
pub fn eval_unary(op: UnaryOp, s: Scalar, bits: u64) -> u64 {
    let mut out = 0;
    if is_half(s) {
        let single = eval_unary(op, Scalar::F32, eval_cast(s, Scalar::F32, bits));
        return narrowed(op.row().result, s, single);
    }
    unary_of(
        op,
        s,
        One {
            operands: [bits],
            out: &mut out,
        },
    );
    out
}

/// What an operator on f16 or bf16 gives, once computed on f32.
fn narrowed(result: OpResult, s: Scalar, bits: u64) -> u64 {
    match result_scalar(result, s) {
        r if is_half(r) => eval_cast(Scalar::F32, r, bits),
        _ => bits,
    }
}

/// An operator of two operands of type `s` (shift and rotation amounts: the low bits of `b`, of any type).
///
/// # Errors
/// The fault of a division by zero or of `MIN / -1`.
pub fn eval_binary(op: BinaryOp, s: Scalar, a: u64, b: u64) -> Result<u64, FaultKind> {
    if let Some(fault) = division_fault(op, s, a, b) {
        return Err(fault);
    }
    Ok(combine(op, s, a, b))
}

/// As [`eval_binary`] for operands that do not fault; of those that do, it gives 0.
pub fn combine(op: BinaryOp, s: Scalar, a: u64, b: u64) -> u64 {
    let mut out = 0;
    if is_half(s) {
        let [a, b] = [a, b].map(|bits| eval_cast(s, Scalar::F32, bits));
        return narrowed(op.row().result, s, combine(op, Scalar::F32, a, b));
    }
    binary_of(
        op,
        s,
        One {
            operands: [a, b],
            out: &mut out,
        },
    );
    out
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
    let mut out = 0;
    if is_half(s) && op != TernaryOp::Select {
        let [a, b, c] = [a, b, c].map(|bits| eval_cast(s, Scalar::F32, bits));
        return eval_cast(Scalar::F32, s, eval_ternary(op, Scalar::F32, a, b, c));
    }
    ternary_of(
        op,
        s,
        One {
            operands: [a, b, c],
            out: &mut out,
        },
    );
    out
}

/// The bits of the float next to a number, rounded once. `half`'s own conversion goes by way of f32 and rounds twice on processors
/// that convert no f64.
pub fn float_bits(s: Scalar, value: f64) -> u64 {
    let near = value as f32;
    match s {
        Scalar::F64 => return value.to_bits(),
        Scalar::F32 => return near.to_bits().into(),
        _ => {}
    }
    let back = f64::from(near);
    let mut bits = near.to_bits();
    // To the odd neighbour, which keeps the side on which the number lies.
    if back != value && !value.is_nan() {
        bits = (bits - u32::from(back.abs() > value.abs())) | 1;
    }
    eval_cast(Scalar::F32, s, bits.into())
}

/// Rust's `as`. Casts to f16 and bf16 round to f32 first.
pub fn eval_cast(from: Scalar, to: Scalar, bits: u64) -> u64 {
    cast::one(from, to, bits)
}

/// The value that an atomic read-modify-write puts in place of `old`.
pub fn eval_atomic(op: AtomicOp, s: Scalar, old: u64, operand: u64) -> u64 {
    op.binary().map_or(operand, |op| combine(op, s, old, operand))
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
