//! Casts by simpler casts, and by the bits: f16 and bf16 against everything (by way of f32, as the operator table's
//! evaluation does), and floats to narrow integers. Knows nothing of targets.

use super::code::Code;
use crate::ir::{Scalar, Value};
use crate::ops::BinaryOp;

pub(super) fn cast(c: &mut Code, to: Scalar, x: Value) -> Option<Value> {
    let from = c.scalar(x);
    Some(match (from, to) {
        (Scalar::F16, Scalar::F32) => half_to_single(c, x),
        (Scalar::BF16, Scalar::F32) => {
            let bits = c.bitcast(Scalar::U16, x);
            let bits = c.cast(Scalar::U32, bits);
            let bits = c.shift(BinaryOp::Shl, bits, 16);
            c.bitcast(Scalar::F32, bits)
        }
        (Scalar::F16 | Scalar::BF16, _) => {
            let single = c.cast(Scalar::F32, x);
            c.cast(to, single)
        }
        (Scalar::F32, Scalar::F16) => single_to_half(c, x),
        (Scalar::F32, Scalar::BF16) => single_to_bfloat(c, x),
        (_, Scalar::F16 | Scalar::BF16) => {
            let single = c.cast(Scalar::F32, x);
            c.cast(to, single)
        }
        (Scalar::F32 | Scalar::F64, _) if to.is_int() && to.size() < 4 => {
            let wide = c.cast(Scalar::I32, x);
            let (least, most) = if to.is_signed_int() {
                (-(1i64 << (to.bits() - 1)), (1i64 << (to.bits() - 1)) - 1)
            } else {
                (0, (1i64 << to.bits()) - 1)
            };
            let (least, most) = (
                c.bits(Scalar::I32, least as u64),
                c.bits(Scalar::I32, most as u64),
            );
            let low = c.binary(BinaryOp::Max, wide, least);
            let limited = c.binary(BinaryOp::Min, low, most);
            c.cast(to, limited)
        }
        _ => return None,
    })
}

fn half_to_single(c: &mut Code, x: Value) -> Value {
    let bits = c.bitcast(Scalar::U16, x);
    let bits = c.cast(Scalar::U32, bits);
    let sign = c.binary_bits(BinaryOp::And, bits, 0x8000);
    let sign = c.shift(BinaryOp::Shl, sign, 16);
    let magnitude = c.binary_bits(BinaryOp::And, bits, 0x7fff);
    // Exponent and mantissa in place; the bias differs by 112.
    let moved = c.shift(BinaryOp::Shl, magnitude, 13);
    let normal = c.binary_bits(BinaryOp::Add, moved, 112 << 23);
    let special = c.binary_bits(BinaryOp::Add, moved, 224 << 23);
    // A subnormal is its mantissa times 2^-24: exact.
    let count = c.cast(Scalar::F32, magnitude);
    let unit = c.number(Scalar::F32, 2f64.powi(-24));
    let subnormal = c.binary(BinaryOp::Mul, count, unit);
    let subnormal = c.bitcast(Scalar::U32, subnormal);
    let is_special = c.binary_bits(BinaryOp::Ge, magnitude, 0x7c00);
    let is_subnormal = c.binary_bits(BinaryOp::Lt, magnitude, 0x0400);
    let finite = c.select(is_subnormal, subnormal, normal);
    let absolute = c.select(is_special, special, finite);
    let bits = c.binary(BinaryOp::Or, absolute, sign);
    c.bitcast(Scalar::F32, bits)
}

/// An unsigned word, of which the lowest `dropped` bits go, rounded to nearest with ties to even. `dropped`, a u32, is below the word's width
/// and not 0.
pub(super) fn rounded(c: &mut Code, bits: Value, dropped: Value) -> Value {
    let word = c.scalar(bits);
    let one = c.bits(word, 1);
    let kept = c.binary(BinaryOp::Shr, bits, dropped);
    let unit = c.binary(BinaryOp::Shl, one, dropped);
    let mask = c.binary(BinaryOp::Sub, unit, one);
    let rest = c.binary(BinaryOp::And, bits, mask);
    let half = c.shift(BinaryOp::Shr, unit, 1);
    // Up if the rest, and the kept lowest bit as tie-breaker, are above one half.
    let lowest = c.binary(BinaryOp::And, kept, one);
    let weighed = c.binary(BinaryOp::Or, rest, lowest);
    let above = c.binary(BinaryOp::Gt, weighed, half);
    let at_least = c.binary(BinaryOp::Ge, rest, half);
    let up = c.binary(BinaryOp::And, above, at_least);
    let next = c.binary(BinaryOp::Add, kept, one);
    c.select(up, next, kept)
}

fn single_to_half(c: &mut Code, x: Value) -> Value {
    let bits = c.bitcast(Scalar::U32, x);
    let sign = c.shift(BinaryOp::Shr, bits, 16);
    let sign = c.binary_bits(BinaryOp::And, sign, 0x8000);
    let magnitude = c.binary_bits(BinaryOp::And, bits, 0x7fff_ffff);
    // Normal results: drop 13 bits, and the bias by 112; a carry runs on into the exponent, up to infinity.
    let thirteen = c.bits(Scalar::U32, 13);
    let normal = rounded(c, magnitude, thirteen);
    let normal = c.binary_bits(BinaryOp::Sub, normal, 112 << 10);
    // Subnormal results: the mantissa with its leading one, in units of 2^-24.
    let mantissa = c.binary_bits(BinaryOp::And, magnitude, 0x007f_ffff);
    let mantissa = c.binary_bits(BinaryOp::Or, mantissa, 0x0080_0000);
    let exponent = c.shift(BinaryOp::Shr, magnitude, 23);
    let most = c.bits(Scalar::U32, 126);
    let dropped = c.binary(BinaryOp::Sub, most, exponent);
    let limit = c.bits(Scalar::U32, 31);
    // Beyond 24 dropped bits the result is 0 whatever is dropped.
    let dropped = c.binary(BinaryOp::Min, dropped, limit);
    let subnormal = rounded(c, mantissa, dropped);
    let is_subnormal = c.binary_bits(BinaryOp::Lt, magnitude, 0x3880_0000);
    let finite = c.select(is_subnormal, subnormal, normal);
    // From 65520 on, infinity; NaN stays NaN.
    let overflows = c.binary_bits(BinaryOp::Ge, magnitude, 0x477f_f000);
    let infinity = c.bits(Scalar::U32, 0x7c00);
    let limited = c.select(overflows, infinity, finite);
    let is_nan = c.binary_bits(BinaryOp::Gt, magnitude, 0x7f80_0000);
    let nan = c.bits(Scalar::U32, 0x7e00);
    let absolute = c.select(is_nan, nan, limited);
    let bits = c.binary(BinaryOp::Or, absolute, sign);
    let bits = c.cast(Scalar::U16, bits);
    c.bitcast(Scalar::F16, bits)
}

fn single_to_bfloat(c: &mut Code, x: Value) -> Value {
    let bits = c.bitcast(Scalar::U32, x);
    let high = c.shift(BinaryOp::Shr, bits, 16);
    // Half of the last place, less one unless that place is odd: ties go to even. The carry runs into the exponent.
    let odd = c.binary_bits(BinaryOp::And, high, 1);
    let half = c.binary_bits(BinaryOp::Add, odd, 0x7fff);
    let sum = c.binary(BinaryOp::Add, bits, half);
    let nearest = c.shift(BinaryOp::Shr, sum, 16);
    let quiet = c.binary_bits(BinaryOp::Or, high, 0x0040);
    let magnitude = c.binary_bits(BinaryOp::And, bits, 0x7fff_ffff);
    let is_nan = c.binary_bits(BinaryOp::Gt, magnitude, 0x7f80_0000);
    let bits = c.select(is_nan, quiet, nearest);
    let bits = c.cast(Scalar::U16, bits);
    c.bitcast(Scalar::BF16, bits)
}
