//! What integers of two words become, and what becomes one: other integers, and floats, which round once.

use super::super::{Emitter, Result};
use super::Words;
use crate::front::rust::infer::methods::Num;
use crate::ir::{Scalar, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

impl Emitter<'_> {
    /// Rust's `as` to or from an integer of two words.
    pub(in super::super) fn wide_cast(&mut self, from: Num, to: Num, v: Value, line: u32) -> Result<Value> {
        let words = match (from, to) {
            (Num::Word(from), _) if from.is_float() => self.wide_of_float(from, to, v, line)?,
            (Num::Word(from), _) => {
                let zero = self.constant(Scalar::U64, 0);
                if from.is_signed_int() {
                    let word = self.cast(Scalar::I64, v, line)?;
                    let last = self.constant(Scalar::U32, 63);
                    let sign = self.binary(BinaryOp::Shr, word, last, line)?;
                    [
                        self.bitcast(Scalar::U64, word, line)?,
                        self.bitcast(Scalar::U64, sign, line)?,
                    ]
                } else {
                    [self.cast(Scalar::U64, v, line)?, zero]
                }
            }
            (_, Num::Word(to)) if to.is_float() => return self.float_of_wide(from, to, v, line),
            (_, Num::Word(to)) => {
                let [low, _] = self.words(v, line)?;
                return self.cast(to, low, line);
            }
            _ => self.words(v, line)?,
        };
        self.wide(to, words, line)
    }

    /// Two to the power, of a float type.
    fn power_of_two(&mut self, s: Scalar, exponent: i32) -> Value {
        self.float_constant(s, 2f64.powi(exponent))
    }

    fn wide_of_float(&mut self, s: Scalar, to: Num, v: Value, line: u32) -> Result<Words> {
        if s.size() < 4 {
            let v = self.cast(Scalar::F32, v, line)?;
            return self.wide_of_float(Scalar::F32, to, v, line);
        }
        let zero = self.float_constant(s, 0.0);
        let x = match to.is_signed_int() {
            true => self.unary(UnaryOp::Abs, v, line)?,
            false => v,
        };
        // Each step is exact: a float's digits lie in less than two words.
        let (up, down) = (self.power_of_two(s, 64), self.power_of_two(s, -64));
        let scaled = self.binary(BinaryOp::Mul, x, down, line)?;
        let high = self.cast(Scalar::U64, scaled, line)?;
        let whole = self.cast(s, high, line)?;
        let whole = self.binary(BinaryOp::Mul, whole, up, line)?;
        let rest = self.binary(BinaryOp::Sub, x, whole, line)?;
        let low = self.cast(Scalar::U64, rest, line)?;
        let beyond = match to.is_signed_int() {
            true => self.power_of_two(s, 63),
            false => up,
        };
        let over = self.binary(BinaryOp::Ge, scaled, beyond, line)?;
        let most = self.constant_words(to.greatest());
        let positive = self.choose(over, most, [low, high], line)?;
        if !to.is_signed_int() {
            return Ok(positive);
        }
        let least = self.constant_words(to.least());
        let other = self.negated([low, high], line)?;
        let negative = self.choose(over, least, other, line)?;
        let below = self.binary(BinaryOp::Lt, v, zero, line)?;
        self.choose(below, negative, positive, line)
    }

    /// Rounded once: all bits below the highest 64 count as one, far below the last digit.
    fn float_of_wide(&mut self, from: Num, s: Scalar, v: Value, line: u32) -> Result<Value> {
        if s.size() < 4 {
            let v = self.float_of_wide(from, Scalar::F32, v, line)?;
            return self.cast(s, v, line);
        }
        let a = self.words(v, line)?;
        let a = match from.is_signed_int() {
            true => self.magnitude_of(a, line)?,
            false => a,
        };
        let (zero, last) = (self.constant(Scalar::U64, 0), self.constant(Scalar::U32, 63));
        let zeros = self.unary(UnaryOp::LeadingZeros, a[1], line)?;
        let shift = self.binary(BinaryOp::And, zeros, last, line)?;
        let [below, top] = self.shift_left(a, shift, line)?;
        let some = self.binary(BinaryOp::Ne, below, zero, line)?;
        let some = self.cast(Scalar::U64, some, line)?;
        let top = self.binary(BinaryOp::Or, top, some, line)?;
        let small = self.binary(BinaryOp::Eq, a[1], zero, line)?;
        let digits = self.ternary(TernaryOp::Select, small, a[0], top, line)?;
        let digits = self.cast(s, digits, line)?;
        // 2^(64 - zeros), which is 1 for one word, by its exponent.
        let (bias, fraction) = if s == Scalar::F64 { (1023, 52) } else { (127, 23) };
        let bits = s.to_unsigned();
        let exponent = self.constant(Scalar::U32, bias + 64);
        let exponent = self.binary(BinaryOp::Sub, exponent, zeros, line)?;
        let exponent = self.cast(bits, exponent, line)?;
        let fraction = self.constant(Scalar::U32, fraction);
        let scale = self.binary(BinaryOp::Shl, exponent, fraction, line)?;
        let scale = self.bitcast(s, scale, line)?;
        let value = self.binary(BinaryOp::Mul, digits, scale, line)?;
        if !from.is_signed_int() {
            return Ok(value);
        }
        let words = self.words(v, line)?;
        let negative = self.is_negative(words, line)?;
        let other = self.unary(UnaryOp::Neg, value, line)?;
        self.ternary(TernaryOp::Select, negative, other, value, line)
    }
}
