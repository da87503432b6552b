//! Integer operators by simpler ones, at any width. Knows nothing of targets.

use super::code::Code;
use crate::ir::{Scalar, Value};
use crate::ops::{BinaryOp, UnaryOp};

/// The sign bit of an integer type.
const fn sign(s: Scalar) -> u64 {
    1 << (s.bits() - 1)
}

pub(super) fn unary(c: &mut Code, op: UnaryOp, x: Value) -> Option<Value> {
    let s = c.scalar(x);
    let (u, bits) = (s.to_unsigned(), s.bits());
    Some(match op {
        UnaryOp::Abs => {
            let negative = c.binary_bits(BinaryOp::Lt, x, 0);
            let negated = c.unary(UnaryOp::Neg, x);
            c.select(negative, negated, x)
        }
        UnaryOp::Signum => {
            let positive = c.binary_bits(BinaryOp::Gt, x, 0);
            let negative = c.binary_bits(BinaryOp::Lt, x, 0);
            let (one, minus_one, zero) = (c.bits(s, 1), c.bits(s, u64::MAX), c.bits(s, 0));
            let not_positive = c.select(negative, minus_one, zero);
            c.select(positive, one, not_positive)
        }
        UnaryOp::CountOnes if bits == 64 => {
            let (low, high) = halves(c, x);
            let (low, high) = (
                c.unary(UnaryOp::CountOnes, low),
                c.unary(UnaryOp::CountOnes, high),
            );
            c.binary(BinaryOp::Add, low, high)
        }
        UnaryOp::CountOnes if bits < 32 => {
            let wide = widened(c, x);
            c.unary(UnaryOp::CountOnes, wide)
        }
        UnaryOp::LeadingZeros if bits == 64 => {
            let (low, high) = halves(c, x);
            let (low, above) = (
                c.unary(UnaryOp::LeadingZeros, low),
                c.unary(UnaryOp::LeadingZeros, high),
            );
            let all = c.binary_bits(BinaryOp::Add, low, 32);
            let none_above = c.binary_bits(BinaryOp::Eq, high, 0);
            c.select(none_above, all, above)
        }
        UnaryOp::LeadingZeros if bits < 32 => {
            let wide = widened(c, x);
            let zeros = c.unary(UnaryOp::LeadingZeros, wide);
            c.binary_bits(BinaryOp::Sub, zeros, u64::from(32 - bits))
        }
        UnaryOp::TrailingZeros => {
            // The ones of `!x & (x - 1)` are the zeros below the lowest one of `x`.
            let x = c.cast(u, x);
            let (not, below) = (c.unary(UnaryOp::Not, x), c.binary_bits(BinaryOp::Sub, x, 1));
            let zeros = c.binary(BinaryOp::And, not, below);
            c.unary(UnaryOp::CountOnes, zeros)
        }
        UnaryOp::ReverseBits if bits == 64 => {
            let (low, high) = halves(c, x);
            let (low, high) = (
                c.unary(UnaryOp::ReverseBits, low),
                c.unary(UnaryOp::ReverseBits, high),
            );
            joined(c, s, low, high)
        }
        UnaryOp::ReverseBits if bits < 32 => {
            let wide = widened(c, x);
            let reversed = c.unary(UnaryOp::ReverseBits, wide);
            let reversed = c.shift(BinaryOp::Shr, reversed, 32 - bits);
            c.cast(s, reversed)
        }
        UnaryOp::SwapBytes if bits == 64 => {
            let (low, high) = halves(c, x);
            let (low, high) = (
                c.unary(UnaryOp::SwapBytes, low),
                c.unary(UnaryOp::SwapBytes, high),
            );
            joined(c, s, low, high)
        }
        UnaryOp::SwapBytes if bits == 8 => x,
        UnaryOp::SwapBytes => {
            let x = c.cast(u, x);
            let rotated = |c: &mut Code, by: u32, mask: u64| {
                let up = c.shift(BinaryOp::Shl, x, by);
                let down = c.shift(BinaryOp::Shr, x, bits - by);
                let both = c.binary(BinaryOp::Or, up, down);
                c.binary_bits(BinaryOp::And, both, mask)
            };
            let swapped = if bits == 16 {
                rotated(c, 8, 0xffff)
            } else {
                let (outer, inner) = (rotated(c, 8, 0x00ff_00ff), rotated(c, 24, 0xff00_ff00));
                c.binary(BinaryOp::Or, outer, inner)
            };
            c.cast(s, swapped)
        }
        _ => return None,
    })
}

pub(super) fn binary(c: &mut Code, op: BinaryOp, x: Value, y: Value) -> Option<Value> {
    let s = c.scalar(x);
    let u = s.to_unsigned();
    Some(match op {
        BinaryOp::Min | BinaryOp::Max => {
            let compare = if op == BinaryOp::Min {
                BinaryOp::Lt
            } else {
                BinaryOp::Gt
            };
            let first = c.binary(compare, x, y);
            c.select(first, x, y)
        }
        BinaryOp::RotateLeft | BinaryOp::RotateRight => {
            let (there, back) = if op == BinaryOp::RotateLeft {
                (BinaryOp::Shl, BinaryOp::Shr)
            } else {
                (BinaryOp::Shr, BinaryOp::Shl)
            };
            let x = c.cast(u, x);
            let width = c.bits(Scalar::U32, u64::from(s.bits()));
            // Amounts are taken modulo the width. Of 0 - n, which would do, llvmpipe takes the wrong bits where n is 32.
            let rest = c.binary(BinaryOp::Sub, width, y);
            let (moved, wrapped) = (c.binary(there, x, y), c.binary(back, x, rest));
            let rotated = c.binary(BinaryOp::Or, moved, wrapped);
            c.cast(s, rotated)
        }
        BinaryOp::MulHigh => mul_high(c, x, y),
        // By a minimum: some drivers take a comparison beside the sum for its carry, and other operators' results for both.
        BinaryOp::SaturatingAdd if s.is_unsigned_int() => {
            let room = c.unary(UnaryOp::Not, x);
            let fits = c.binary(BinaryOp::Min, y, room);
            c.binary(BinaryOp::Add, x, fits)
        }
        BinaryOp::SaturatingSub if s.is_unsigned_int() => {
            let there = c.binary(BinaryOp::Min, x, y);
            c.binary(BinaryOp::Sub, x, there)
        }
        BinaryOp::SaturatingAdd | BinaryOp::SaturatingSub => {
            let adds = op == BinaryOp::SaturatingAdd;
            let r = c.binary(if adds { BinaryOp::Add } else { BinaryOp::Sub }, x, y);
            // The sign came out wrong: a sum differs in sign from both operands, a difference from `x` while
            // `x` and `y` differ.
            let from_x = c.binary(BinaryOp::Xor, x, r);
            let other = c.binary(BinaryOp::Xor, if adds { r } else { x }, y);
            let wrong = c.binary(BinaryOp::And, from_x, other);
            let overflows = c.binary_bits(BinaryOp::Lt, wrong, 0);
            let negative = c.binary_bits(BinaryOp::Lt, x, 0);
            let (least, most) = (c.bits(s, sign(s)), c.bits(s, sign(s) - 1));
            let limit = c.select(negative, least, most);
            c.select(overflows, limit, r)
        }
        BinaryOp::AbsDiff => {
            let (less, more) = (c.binary(BinaryOp::Min, x, y), c.binary(BinaryOp::Max, x, y));
            let difference = c.binary(BinaryOp::Sub, more, less);
            c.cast(u, difference)
        }
        _ => return None,
    })
}

/// The value in a `u32`, zero-extended from its own width.
fn widened(c: &mut Code, x: Value) -> Value {
    let u = c.scalar(x).to_unsigned();
    let x = c.cast(u, x);
    c.cast(Scalar::U32, x)
}

/// Low and high 32 bits.
fn halves(c: &mut Code, x: Value) -> (Value, Value) {
    let x = c.cast(Scalar::U64, x);
    let high = c.shift(BinaryOp::Shr, x, 32);
    (c.cast(Scalar::U32, x), c.cast(Scalar::U32, high))
}

/// A 64-bit integer of type `s` from its halves.
fn joined(c: &mut Code, s: Scalar, high: Value, low: Value) -> Value {
    let (high, low) = (c.cast(Scalar::U64, high), c.cast(Scalar::U64, low));
    let high = c.shift(BinaryOp::Shl, high, 32);
    let both = c.binary(BinaryOp::Or, high, low);
    c.cast(s, both)
}

fn mul_high(c: &mut Code, x: Value, y: Value) -> Value {
    let s = c.scalar(x);
    let (u, bits) = (s.to_unsigned(), s.bits());
    if bits < 32 {
        let wide = if s.is_signed_int() {
            Scalar::I32
        } else {
            Scalar::U32
        };
        let (x, y) = (c.cast(wide, x), c.cast(wide, y));
        let product = c.binary(BinaryOp::Mul, x, y);
        let high = c.shift(BinaryOp::Shr, product, bits);
        return c.cast(s, high);
    }
    if s.is_signed_int() {
        // As unsigned, a negative factor is too large by 2^bits: take the other factor off the upper half.
        let (ux, uy) = (c.cast(u, x), c.cast(u, y));
        let mut high = c.binary(BinaryOp::MulHigh, ux, uy);
        let zero = c.bits(u, 0);
        for (factor, other) in [(x, uy), (y, ux)] {
            let negative = c.binary_bits(BinaryOp::Lt, factor, 0);
            let excess = c.select(negative, other, zero);
            high = c.binary(BinaryOp::Sub, high, excess);
        }
        return c.cast(s, high);
    }
    // Long multiplication by halves.
    let half = bits / 2;
    let low_mask = (1u64 << half) - 1;
    let split = |c: &mut Code, v| {
        let low = c.binary_bits(BinaryOp::And, v, low_mask);
        (low, c.shift(BinaryOp::Shr, v, half))
    };
    let ((xl, xh), (yl, yh)) = (split(c, x), split(c, y));
    let ll = c.binary(BinaryOp::Mul, xl, yl);
    let lh = c.binary(BinaryOp::Mul, xl, yh);
    let hl = c.binary(BinaryOp::Mul, xh, yl);
    let hh = c.binary(BinaryOp::Mul, xh, yh);
    let carried = c.shift(BinaryOp::Shr, ll, half);
    let middle = c.binary(BinaryOp::Add, hl, carried);
    let middle_low = c.binary_bits(BinaryOp::And, middle, low_mask);
    let middle_high = c.shift(BinaryOp::Shr, middle, half);
    let lower = c.binary(BinaryOp::Add, lh, middle_low);
    let lower_high = c.shift(BinaryOp::Shr, lower, half);
    let high = c.binary(BinaryOp::Add, hh, middle_high);
    c.binary(BinaryOp::Add, high, lower_high)
}
