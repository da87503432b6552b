//! The fused multiply-add of f32 and f64 by integers, for targets whose own rounds twice: the exact product and the exact sum, rounded
//! once. Integers give the same on every device, whatever its compiler makes of sums and products of floats. Knows nothing of targets.

use super::code::Code;
use super::convert::rounded;
use super::float::Format;
use crate::ir::{Scalar, Value};
use crate::ops::{BinaryOp, UnaryOp};

/// An integer of two words.
#[derive(Clone, Copy)]
struct Wide {
    high: Value,
    low: Value,
}

/// A sign (the top bit of a word), an exponent (an `i32`), and a mantissa whose two top bits are free, the next one its leading one.
#[derive(Clone, Copy)]
struct Term {
    sign: Value,
    exponent: Value,
    mantissa: Wide,
}

/// Of f32 and f64: their words are u32 and u64.
struct Words {
    word: Scalar,
    width: u32,
    /// The top bit.
    top: u64,
    /// Bits of a float's mantissa, without the hidden one.
    mantissa: u32,
    infinity: u64,
}

impl Words {
    fn of(s: Scalar) -> Words {
        let Format { bits, sign, infinity } = Format::of(s);
        Words {
            word: bits,
            width: s.bits(),
            top: sign,
            mantissa: if s == Scalar::F64 { 52 } else { 23 },
            infinity,
        }
    }

    /// Bits of a word below a mantissa with its hidden bit on top.
    fn spare(&self) -> u32 {
        self.width - self.mantissa - 1
    }

    fn bias(&self) -> i64 {
        (self.infinity >> self.mantissa) as i64 / 2
    }
}

fn count(c: &mut Code, n: i64) -> Value {
    c.bits(Scalar::I32, n as u64)
}

fn amount(c: &mut Code, n: u32) -> Value {
    c.bits(Scalar::U32, n.into())
}

pub(super) fn fma(c: &mut Code, x: Value, y: Value, z: Value) -> Value {
    let s = c.scalar(x);
    let w = Words::of(s);
    let [x_bits, y_bits, z_bits] = [x, y, z].map(|v| c.bitcast(w.word, v));
    let signs = c.binary(BinaryOp::Xor, x_bits, y_bits);
    let [product_sign, z_sign] = [signs, z_bits].map(|bits| c.binary_bits(BinaryOp::And, bits, w.top));
    let [(x_exponent, x_word), (y_exponent, y_word), (z_exponent, z_word)] =
        [x_bits, y_bits, z_bits].map(|bits| parts(c, &w, bits));

    let product = product(c, &w, (x_exponent, x_word), (y_exponent, y_word), product_sign);
    let z_is_zero = c.binary_bits(BinaryOp::Eq, z_word, 0);
    // Below all others: it leaves the product as it is.
    let lowest = count(c, -100_000);
    let addend = Term {
        sign: z_sign,
        exponent: c.select(z_is_zero, lowest, z_exponent),
        mantissa: Wide {
            high: c.shift(BinaryOp::Shr, z_word, 2),
            low: c.shift(BinaryOp::Shl, z_word, w.width - 2),
        },
    };
    let (sign, exponent, total) = sum(c, &w, product, addend);
    let finite = packed(c, &w, sign, exponent, total);

    // A product that is zero leaves z, and of two zeros the sign that both have.
    let x_is_zero = c.binary_bits(BinaryOp::Eq, x_word, 0);
    let y_is_zero = c.binary_bits(BinaryOp::Eq, y_word, 0);
    let is_nothing = c.binary(BinaryOp::Or, x_is_zero, y_is_zero);
    let both = c.binary(BinaryOp::And, product_sign, z_sign);
    let left = c.select(z_is_zero, both, z_bits);
    let result = c.select(is_nothing, left, finite);
    // What is infinite or NaN has no mantissa: z stands, or the operators' own rules give the result.
    let [x_ends, y_ends, z_ends] = [x_bits, y_bits, z_bits].map(|bits| {
        let magnitude = c.binary_bits(BinaryOp::And, bits, w.top - 1);
        c.binary_bits(BinaryOp::Ge, magnitude, w.infinity)
    });
    let result = c.select(z_ends, z_bits, result);
    let factor_ends = c.binary(BinaryOp::Or, x_ends, y_ends);
    let special = c.binary(BinaryOp::Mul, x, y);
    let special = c.binary(BinaryOp::Add, special, z);
    let special = c.bitcast(w.word, special);
    let result = c.select(factor_ends, special, result);
    c.bitcast(s, result)
}

/// A float's exponent as if it were normal, and its mantissa with the leading one on top; 0 for zero.
fn parts(c: &mut Code, w: &Words, bits: Value) -> (Value, Value) {
    let magnitude = c.binary_bits(BinaryOp::And, bits, w.top - 1);
    let field = c.shift(BinaryOp::Shr, magnitude, w.mantissa);
    let fraction = c.binary_bits(BinaryOp::And, magnitude, (1 << w.mantissa) - 1);
    let with_hidden = c.binary_bits(BinaryOp::Or, fraction, 1 << w.mantissa);
    let is_subnormal = c.binary_bits(BinaryOp::Eq, field, 0);
    let mantissa = c.select(is_subnormal, fraction, with_hidden);
    let zeros = c.unary(UnaryOp::LeadingZeros, mantissa);
    let word = c.binary(BinaryOp::Shl, mantissa, zeros);
    let field = c.binary_bits(BinaryOp::Max, field, 1);
    let field = c.cast(Scalar::I32, field);
    let zeros = c.cast(Scalar::I32, zeros);
    let zeros = c.binary_bits(BinaryOp::Sub, zeros, w.spare().into());
    (c.binary(BinaryOp::Sub, field, zeros), word)
}

/// The exact product: its lowest bits are zero, so that the two free ones on top cost nothing.
fn product(c: &mut Code, w: &Words, x: (Value, Value), y: (Value, Value), sign: Value) -> Term {
    let high = c.binary(BinaryOp::MulHigh, x.1, y.1);
    let low = c.binary(BinaryOp::Mul, x.1, y.1);
    let exponent = c.binary(BinaryOp::Add, x.0, y.0);
    let exponent = c.binary_bits(BinaryOp::Sub, exponent, (w.bias() - 1) as u64);
    // Its leading one is in one of the two topmost places.
    let is_low = c.binary_bits(BinaryOp::Lt, high, w.top);
    let places = |c: &mut Code, by: u32| {
        let upper = c.shift(BinaryOp::Shr, high, by);
        let lower = c.shift(BinaryOp::Shr, low, by);
        let moved = c.shift(BinaryOp::Shl, high, w.width - by);
        (upper, c.binary(BinaryOp::Or, lower, moved))
    };
    let (by_one, by_two) = (places(c, 1), places(c, 2));
    let less = c.binary_bits(BinaryOp::Sub, exponent, 1);
    Term {
        sign,
        exponent: c.select(is_low, less, exponent),
        mantissa: Wide {
            high: c.select(is_low, by_one.0, by_two.0),
            low: c.select(is_low, by_one.1, by_two.1),
        },
    }
}

/// Sign, exponent and magnitude of a sum; the magnitude is exact, or its lowest bit says that something lies below it.
fn sum(c: &mut Code, w: &Words, a: Term, b: Term) -> (Value, Value, Wide) {
    let a_is_big = c.binary(BinaryOp::Ge, a.exponent, b.exponent);
    let mut pair = |x: Value, y: Value| (c.select(a_is_big, x, y), c.select(a_is_big, y, x));
    let (exponent, small_exponent) = pair(a.exponent, b.exponent);
    let (sign, _) = pair(a.sign, b.sign);
    let (big_high, small_high) = pair(a.mantissa.high, b.mantissa.high);
    let (big_low, small_low) = pair(a.mantissa.low, b.mantissa.low);
    let distance = c.binary(BinaryOp::Sub, exponent, small_exponent);
    let small = Wide {
        high: small_high,
        low: small_low,
    };
    let small = shifted(c, w, small, distance);

    let low = c.binary(BinaryOp::Add, big_low, small.low);
    let carries = c.binary(BinaryOp::Lt, low, big_low);
    let high = c.binary(BinaryOp::Add, big_high, small.high);
    let next = c.binary_bits(BinaryOp::Add, high, 1);
    let added = Wide {
        high: c.select(carries, next, high),
        low,
    };
    let low = c.binary(BinaryOp::Sub, big_low, small.low);
    let borrows = c.binary(BinaryOp::Lt, big_low, small.low);
    let high = c.binary(BinaryOp::Sub, big_high, small.high);
    let previous = c.binary_bits(BinaryOp::Sub, high, 1);
    let rest = Wide {
        high: c.select(borrows, previous, high),
        low,
    };
    // Of equal exponents the other one may be the larger.
    let is_negative = c.binary_bits(BinaryOp::Ge, rest.high, w.top);
    let zero = c.bits(w.word, 0);
    let opposite_low = c.binary(BinaryOp::Sub, zero, rest.low);
    let inverted = c.unary(UnaryOp::Not, rest.high);
    let carried = c.binary_bits(BinaryOp::Add, inverted, 1);
    let low_is_zero = c.binary_bits(BinaryOp::Eq, rest.low, 0);
    let opposite_high = c.select(low_is_zero, carried, inverted);
    let rest = Wide {
        high: c.select(is_negative, opposite_high, rest.high),
        low: c.select(is_negative, opposite_low, rest.low),
    };
    let other_sign = c.binary_bits(BinaryOp::Xor, sign, w.top);
    let rest_sign = c.select(is_negative, other_sign, sign);

    let is_alike = c.binary(BinaryOp::Eq, a.sign, b.sign);
    let total = Wide {
        high: c.select(is_alike, added.high, rest.high),
        low: c.select(is_alike, added.low, rest.low),
    };
    (c.select(is_alike, sign, rest_sign), exponent, total)
}

/// Shifted right by an `i32` that is not negative; the lowest bit is one where a one was lost.
fn shifted(c: &mut Code, w: &Words, v: Wide, by: Value) -> Wide {
    let by = c.binary_bits(BinaryOp::Min, by, u64::from(2 * w.width - 1));
    let by = c.cast(Scalar::U32, by);
    let is_far = c.binary_bits(BinaryOp::Ge, by, w.width.into());
    let zero = c.bits(w.word, 0);
    let high = c.select(is_far, zero, v.high);
    let low = c.select(is_far, v.high, v.low);
    let lost = c.select(is_far, v.low, zero);
    // Shifts take their amounts modulo the width.
    let by = c.binary_bits(BinaryOp::And, by, u64::from(w.width - 1));
    let rest = amount(c, w.width - 1);
    let rest = c.binary(BinaryOp::Sub, rest, by);
    let out = |c: &mut Code, word: Value| {
        let word = c.shift(BinaryOp::Shl, word, 1);
        c.binary(BinaryOp::Shl, word, rest)
    };
    let (from_high, from_low) = (out(c, high), out(c, low));
    let low = c.binary(BinaryOp::Shr, low, by);
    let low = c.binary(BinaryOp::Or, low, from_high);
    let lost = c.binary(BinaryOp::Or, lost, from_low);
    Wide {
        high: c.binary(BinaryOp::Shr, high, by),
        low: marked(c, low, lost),
    }
}

/// A word whose lowest bit is one where another word is not zero.
fn marked(c: &mut Code, word: Value, lost: Value) -> Value {
    let is_lost = c.binary_bits(BinaryOp::Ne, lost, 0);
    let odd = c.binary_bits(BinaryOp::Or, word, 1);
    c.select(is_lost, odd, word)
}

/// The float nearest to a sum, as a word; of zero, the positive one.
fn packed(c: &mut Code, w: &Words, sign: Value, exponent: Value, v: Wide) -> Value {
    // The leading one goes to the top.
    let is_low = c.binary_bits(BinaryOp::Eq, v.high, 0);
    let zero = c.bits(w.word, 0);
    let high = c.select(is_low, v.low, v.high);
    let low = c.select(is_low, zero, v.low);
    let is_zero = c.binary_bits(BinaryOp::Eq, high, 0);
    let zeros = c.unary(UnaryOp::LeadingZeros, high);
    let rest = amount(c, w.width - 1);
    let rest = c.binary(BinaryOp::Sub, rest, zeros);
    let moved = c.shift(BinaryOp::Shr, low, 1);
    let moved = c.binary(BinaryOp::Shr, moved, rest);
    let high = c.binary(BinaryOp::Shl, high, zeros);
    let top = Wide {
        high: c.binary(BinaryOp::Or, high, moved),
        low: c.binary(BinaryOp::Shl, low, zeros),
    };
    let zeros = c.cast(Scalar::I32, zeros);
    let exponent = c.binary(BinaryOp::Sub, exponent, zeros);
    let (near, far) = (count(c, 2), count(c, 2 - i64::from(w.width)));
    let step = c.select(is_low, far, near);
    let exponent = c.binary(BinaryOp::Add, exponent, step);
    // Below the normal numbers the exponent stays, and the mantissa goes down.
    let one = count(c, 1);
    let down = c.binary(BinaryOp::Sub, one, exponent);
    let none = count(c, 0);
    let down = c.binary(BinaryOp::Max, down, none);
    let v = shifted(c, w, top, down);
    let exponent = c.binary(BinaryOp::Max, exponent, one);
    let word = marked(c, v.high, v.low);
    let spare = amount(c, w.spare());
    let kept = rounded(c, word, spare);
    // The hidden bit, and a carry, count up the exponent; beyond the largest number is infinity.
    let field = c.binary_bits(BinaryOp::Sub, exponent, 1);
    let field = c.cast(w.word, field);
    let field = c.shift(BinaryOp::Shl, field, w.mantissa);
    let magnitude = c.binary(BinaryOp::Add, field, kept);
    let magnitude = c.binary_bits(BinaryOp::Min, magnitude, w.infinity);
    let signed = c.binary(BinaryOp::Or, magnitude, sign);
    c.select(is_zero, zero, signed)
}
