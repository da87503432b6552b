//! Floating-point operators by simpler ones, and by the bits where that is exact. f16 and bf16 compute in f32 and
//! round: for sums, products, quotients and square roots that is the correctly rounded result, since 24 bits are
//! more than twice 11. Knows nothing of targets.

use super::code::Code;
use crate::ir::{Scalar, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

/// How a float type is made of bits.
#[derive(Clone, Copy)]
pub(super) struct Format {
    /// The unsigned integer of the same width.
    pub(super) bits: Scalar,
    /// The sign bit.
    pub(super) sign: u64,
    /// Infinity.
    pub(super) infinity: u64,
}

impl Format {
    pub(super) const fn of(s: Scalar) -> Format {
        let mantissa = match s {
            Scalar::F16 => 10,
            Scalar::BF16 => 7,
            Scalar::F64 => 52,
            _ => 23,
        };
        let sign = 1u64 << (s.bits() - 1);
        Format {
            bits: s.to_unsigned(),
            sign,
            infinity: sign - (1 << mantissa),
        }
    }
}

/// The bits without the sign.
pub(super) fn magnitude_bits(c: &mut Code, x: Value) -> Value {
    let f = Format::of(c.scalar(x));
    let bits = c.bitcast(f.bits, x);
    c.binary_bits(BinaryOp::And, bits, f.sign - 1)
}

fn compare_magnitude(c: &mut Code, op: BinaryOp, x: Value) -> Value {
    let infinity = Format::of(c.scalar(x)).infinity;
    let magnitude = magnitude_bits(c, x);
    c.binary_bits(op, magnitude, infinity)
}

fn is_nan(c: &mut Code, x: Value) -> Value {
    compare_magnitude(c, BinaryOp::Gt, x)
}

/// The operand as f32, for types that compute there.
fn as_single(c: &mut Code, x: Value) -> Option<Value> {
    matches!(c.scalar(x), Scalar::F16 | Scalar::BF16).then(|| c.cast(Scalar::F32, x))
}

pub(super) fn unary(c: &mut Code, op: UnaryOp, x: Value) -> Option<Value> {
    let s = c.scalar(x);
    let f = Format::of(s);
    // What the bits answer, for every width alike.
    match op {
        UnaryOp::Neg if s.size() == 2 => {
            let bits = c.bitcast(f.bits, x);
            let flipped = c.binary_bits(BinaryOp::Xor, bits, f.sign);
            return Some(c.bitcast(s, flipped));
        }
        UnaryOp::Abs => {
            let magnitude = magnitude_bits(c, x);
            return Some(c.bitcast(s, magnitude));
        }
        UnaryOp::IsNan => return Some(is_nan(c, x)),
        UnaryOp::IsInfinite => return Some(compare_magnitude(c, BinaryOp::Eq, x)),
        UnaryOp::IsFinite => return Some(compare_magnitude(c, BinaryOp::Lt, x)),
        UnaryOp::IsSignNegative => {
            let bits = c.bitcast(f.bits, x);
            let sign = c.binary_bits(BinaryOp::And, bits, f.sign);
            return Some(c.binary_bits(BinaryOp::Ne, sign, 0));
        }
        _ => {}
    }
    if let Some(x) = as_single(c, x) {
        let r = c.unary(op, x);
        return Some(c.cast(s, r));
    }
    Some(match op {
        UnaryOp::Signum => {
            let nan = is_nan(c, x);
            let one = c.number(s, 1.0);
            let signed = c.binary(BinaryOp::Copysign, one, x);
            c.select(nan, x, signed)
        }
        UnaryOp::Round => {
            // x - trunc(x) is exact.
            let whole = c.unary(UnaryOp::Trunc, x);
            let rest = c.binary(BinaryOp::Sub, x, whole);
            let rest = c.unary(UnaryOp::Abs, rest);
            let half = c.number(s, 0.5);
            let away = c.binary(BinaryOp::Ge, rest, half);
            let one = c.number(s, 1.0);
            let step = c.binary(BinaryOp::Copysign, one, x);
            let next = c.binary(BinaryOp::Add, whole, step);
            c.select(away, next, whole)
        }
        UnaryOp::Fract => {
            let whole = c.unary(UnaryOp::Trunc, x);
            c.binary(BinaryOp::Sub, x, whole)
        }
        UnaryOp::Rsqrt => {
            let root = c.unary(UnaryOp::Sqrt, x);
            let one = c.number(s, 1.0);
            c.binary(BinaryOp::Div, one, root)
        }
        UnaryOp::Recip => {
            let one = c.number(s, 1.0);
            c.binary(BinaryOp::Div, one, x)
        }
        UnaryOp::ToDegrees => {
            let factor = c.number(s, 57.295_779_513_082_32);
            c.binary(BinaryOp::Mul, x, factor)
        }
        UnaryOp::ToRadians => {
            let factor = c.number(s, 0.017_453_292_519_943_295);
            c.binary(BinaryOp::Mul, x, factor)
        }
        _ => return None,
    })
}

pub(super) fn binary(c: &mut Code, op: BinaryOp, x: Value, y: Value) -> Option<Value> {
    let s = c.scalar(x);
    if op == BinaryOp::Copysign {
        let f = Format::of(s);
        let magnitude = magnitude_bits(c, x);
        let sign = c.bitcast(f.bits, y);
        let sign = c.binary_bits(BinaryOp::And, sign, f.sign);
        let both = c.binary(BinaryOp::Or, magnitude, sign);
        return Some(c.bitcast(s, both));
    }
    if let Some(x) = as_single(c, x) {
        let y = c.cast(Scalar::F32, y);
        let r = c.binary(op, x, y);
        let to = if c.scalar(r) == Scalar::Bool {
            Scalar::Bool
        } else {
            s
        };
        return Some(c.cast(to, r));
    }
    Some(match op {
        BinaryOp::Min | BinaryOp::Max => {
            // The second where it is beyond the first, or the first is NaN.
            let compare = if op == BinaryOp::Min {
                BinaryOp::Lt
            } else {
                BinaryOp::Gt
            };
            let beyond = c.binary(compare, y, x);
            let nan = is_nan(c, x);
            let second = c.binary(BinaryOp::Or, beyond, nan);
            c.select(second, y, x)
        }
        _ => return None,
    })
}

pub(super) fn ternary(c: &mut Code, op: TernaryOp, x: Value, y: Value, z: Value) -> Option<Value> {
    let s = c.scalar(x);
    if op == TernaryOp::Clamp {
        let low = c.binary(BinaryOp::Max, x, y);
        return Some(c.binary(BinaryOp::Min, low, z));
    }
    let x = as_single(c, x)?;
    let (y, z) = (c.cast(Scalar::F32, y), c.cast(Scalar::F32, z));
    let r = c.fma(x, y, z);
    Some(c.cast(s, r))
}
