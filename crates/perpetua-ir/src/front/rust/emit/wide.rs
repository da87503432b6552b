//! Integers of two words: each operator on `i128` and `u128` as operators on `u64`s.

mod cast;
mod division;

use super::{Emitter, Result};
use crate::front::rust::infer::methods::Num;
use crate::ir::{Op, Scalar, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

/// The lower and the upper word.
type Words = [Value; 2];

impl Emitter<'_> {
    /// The words of an integer of two.
    fn words(&mut self, v: Value, line: u32) -> Result<Words> {
        if let Some(words) = self.body.words.get(&v) {
            return Ok(*words);
        }
        let mut word = |index| {
            let done = self.k.op(Op::Extract(v, index));
            self.typed(line, done)
        };
        Ok([word(0)?, word(1)?])
    }

    /// The lower word, or the upper one.
    pub(super) fn wide_word(&mut self, v: Value, index: usize, line: u32) -> Result<Value> {
        Ok(self.words(v, line)?[index & 1])
    }

    /// An integer of two words.
    fn wide(&mut self, n: Num, words: Words, line: u32) -> Result<Value> {
        let done = self.k.op(Op::Compose(n.into(), words.into()));
        let value = self.typed(line, done)?;
        self.body.words.insert(value, words);
        Ok(value)
    }

    /// An integer constant with these bits.
    pub(super) fn integer(&mut self, n: Num, bits: u128) -> Value {
        if let Some(s) = n.word() {
            return self.constant(s, bits as u64);
        }
        let words = self.constant_words(bits);
        let done = self.k.op(Op::Compose(n.into(), words.into()));
        // Two words are what the struct is made of.
        let value = done.unwrap_or(words[0]);
        self.body.words.insert(value, words);
        value
    }

    fn constant_words(&mut self, bits: u128) -> Words {
        [bits as u64, (bits >> 64) as u64].map(|word| self.constant(Scalar::U64, word))
    }

    fn each(&mut self, op: BinaryOp, a: Words, b: Words, line: u32) -> Result<Words> {
        Ok([
            self.binary(op, a[0], b[0], line)?,
            self.binary(op, a[1], b[1], line)?,
        ])
    }

    fn choose(&mut self, cond: Value, a: Words, b: Words, line: u32) -> Result<Words> {
        Ok([
            self.ternary(TernaryOp::Select, cond, a[0], b[0], line)?,
            self.ternary(TernaryOp::Select, cond, a[1], b[1], line)?,
        ])
    }

    /// The sum, and what is carried out of it.
    fn sum(&mut self, a: Words, b: Words, line: u32) -> Result<(Words, Value)> {
        let low = self.binary(BinaryOp::Add, a[0], b[0], line)?;
        let carry = self.binary(BinaryOp::Lt, low, a[0], line)?;
        let carry = self.cast(Scalar::U64, carry, line)?;
        let upper = self.binary(BinaryOp::Add, a[1], b[1], line)?;
        let over = self.binary(BinaryOp::Lt, upper, a[1], line)?;
        let high = self.binary(BinaryOp::Add, upper, carry, line)?;
        let more = self.binary(BinaryOp::Lt, high, carry, line)?;
        Ok(([low, high], self.binary(BinaryOp::Or, over, more, line)?))
    }

    fn difference(&mut self, a: Words, b: Words, line: u32) -> Result<Words> {
        let low = self.binary(BinaryOp::Sub, a[0], b[0], line)?;
        let borrow = self.binary(BinaryOp::Lt, a[0], b[0], line)?;
        let borrow = self.cast(Scalar::U64, borrow, line)?;
        let high = self.binary(BinaryOp::Sub, a[1], b[1], line)?;
        Ok([low, self.binary(BinaryOp::Sub, high, borrow, line)?])
    }

    fn wide_product(&mut self, a: Words, b: Words, line: u32) -> Result<Words> {
        let low = self.binary(BinaryOp::Mul, a[0], b[0], line)?;
        let mut high = self.binary(BinaryOp::MulHigh, a[0], b[0], line)?;
        for (x, y) in [(a[0], b[1]), (a[1], b[0])] {
            let part = self.binary(BinaryOp::Mul, x, y, line)?;
            high = self.binary(BinaryOp::Add, high, part, line)?;
        }
        Ok([low, high])
    }

    /// The upper half of the product of unsigned integers.
    fn upper_product(&mut self, a: Words, b: Words, line: u32) -> Result<Words> {
        let zero = self.constant(Scalar::U64, 0);
        let part = |this: &mut Self, x, y| -> Result<Words> {
            Ok([
                this.binary(BinaryOp::Mul, x, y, line)?,
                this.binary(BinaryOp::MulHigh, x, y, line)?,
            ])
        };
        let lowest = self.binary(BinaryOp::MulHigh, a[0], b[0], line)?;
        let (first, second) = (part(self, a[0], b[1])?, part(self, a[1], b[0])?);
        let highest = part(self, a[1], b[1])?;
        // None of the two sums overflows: (2^64 - 1)^2 leaves room for two words.
        let (middle, _) = self.sum(first, [lowest, zero], line)?;
        let (below, carry) = self.sum(middle, second, line)?;
        let carry = self.cast(Scalar::U64, carry, line)?;
        let (sum, _) = self.sum(highest, [below[1], carry], line)?;
        Ok(sum)
    }

    /// Whether one integer is less than the other.
    fn less(&mut self, n: Num, a: Words, b: Words, line: u32) -> Result<Value> {
        let (mut x, mut y) = (a[1], b[1]);
        if n.is_signed_int() {
            x = self.bitcast(Scalar::I64, x, line)?;
            y = self.bitcast(Scalar::I64, y, line)?;
        }
        let above = self.binary(BinaryOp::Lt, x, y, line)?;
        let same = self.binary(BinaryOp::Eq, a[1], b[1], line)?;
        let below = self.binary(BinaryOp::Lt, a[0], b[0], line)?;
        let below = self.binary(BinaryOp::And, same, below, line)?;
        self.binary(BinaryOp::Or, above, below, line)
    }

    /// Whether all bits are those of the other.
    fn same(&mut self, a: Words, b: Words, line: u32) -> Result<Value> {
        let [low, high] = self.each(BinaryOp::Xor, a, b, line)?;
        let differ = self.binary(BinaryOp::Or, low, high, line)?;
        let zero = self.constant(Scalar::U64, 0);
        self.binary(BinaryOp::Eq, differ, zero, line)
    }

    fn is_negative(&mut self, a: Words, line: u32) -> Result<Value> {
        let high = self.bitcast(Scalar::I64, a[1], line)?;
        let zero = self.constant(Scalar::I64, 0);
        self.binary(BinaryOp::Lt, high, zero, line)
    }

    fn negated(&mut self, a: Words, line: u32) -> Result<Words> {
        let zero = self.constant(Scalar::U64, 0);
        self.difference([zero, zero], a, line)
    }

    fn magnitude_of(&mut self, a: Words, line: u32) -> Result<Words> {
        let (negative, other) = (self.is_negative(a, line)?, self.negated(a, line)?);
        self.choose(negative, other, a, line)
    }

    /// What is left of the lower word's bits in the upper one where both are shifted to the left by less than 64.
    fn shifted_in(&mut self, low: Value, amount: Value, line: u32) -> Result<Value> {
        let (one, last) = (self.constant(Scalar::U32, 1), self.constant(Scalar::U32, 63));
        let half = self.binary(BinaryOp::Shr, low, one, line)?;
        let rest = self.binary(BinaryOp::Sub, last, amount, line)?;
        self.binary(BinaryOp::Shr, half, rest, line)
    }

    fn shift_left(&mut self, a: Words, amount: Value, line: u32) -> Result<Words> {
        let (word, last) = (self.constant(Scalar::U32, 64), self.constant(Scalar::U32, 63));
        let zero = self.constant(Scalar::U64, 0);
        let within = self.binary(BinaryOp::And, amount, last, line)?;
        let low = self.binary(BinaryOp::Shl, a[0], within, line)?;
        let high = self.binary(BinaryOp::Shl, a[1], within, line)?;
        let moved = self.shifted_in(a[0], within, line)?;
        let high = self.binary(BinaryOp::Or, high, moved, line)?;
        let beyond = self.binary(BinaryOp::And, amount, word, line)?;
        let beyond = self.binary(BinaryOp::Eq, beyond, word, line)?;
        self.choose(beyond, [zero, low], [low, high], line)
    }

    fn shift_right(&mut self, n: Num, a: Words, amount: Value, line: u32) -> Result<Words> {
        let (one, word, last) = (
            self.constant(Scalar::U32, 1),
            self.constant(Scalar::U32, 64),
            self.constant(Scalar::U32, 63),
        );
        let within = self.binary(BinaryOp::And, amount, last, line)?;
        let low = self.binary(BinaryOp::Shr, a[0], within, line)?;
        let double = self.binary(BinaryOp::Shl, a[1], one, line)?;
        let rest = self.binary(BinaryOp::Sub, last, within, line)?;
        let moved = self.binary(BinaryOp::Shl, double, rest, line)?;
        let low = self.binary(BinaryOp::Or, low, moved, line)?;
        let (high, fill) = if n.is_signed_int() {
            let signed = self.bitcast(Scalar::I64, a[1], line)?;
            let high = self.binary(BinaryOp::Shr, signed, within, line)?;
            let fill = self.binary(BinaryOp::Shr, signed, last, line)?;
            (
                self.bitcast(Scalar::U64, high, line)?,
                self.bitcast(Scalar::U64, fill, line)?,
            )
        } else {
            let high = self.binary(BinaryOp::Shr, a[1], within, line)?;
            (high, self.constant(Scalar::U64, 0))
        };
        let beyond = self.binary(BinaryOp::And, amount, word, line)?;
        let beyond = self.binary(BinaryOp::Eq, beyond, word, line)?;
        self.choose(beyond, [high, fill], [low, high], line)
    }

    /// An operator of one operand.
    pub(super) fn wide_unary(&mut self, op: UnaryOp, n: Num, v: Value, line: u32) -> Result<Value> {
        let a = self.words(v, line)?;
        let words = match op {
            UnaryOp::Neg => self.negated(a, line)?,
            UnaryOp::Not => [self.unary(op, a[0], line)?, self.unary(op, a[1], line)?],
            UnaryOp::Abs => self.magnitude_of(a, line)?,
            UnaryOp::Signum => {
                let zero = self.constant(Scalar::U64, 0);
                let (negative, other) = (self.is_negative(a, line)?, self.negated(a, line)?);
                let positive = self.is_negative(other, line)?;
                // Of MIN both hold.
                let ones = self.constant(Scalar::U64, u64::MAX);
                let one = self.cast(Scalar::U64, positive, line)?;
                self.choose(negative, [ones, ones], [one, zero], line)?
            }
            UnaryOp::ReverseBits | UnaryOp::SwapBytes => {
                [self.unary(op, a[1], line)?, self.unary(op, a[0], line)?]
            }
            UnaryOp::CountOnes => {
                let (low, high) = (self.unary(op, a[0], line)?, self.unary(op, a[1], line)?);
                return self.binary(BinaryOp::Add, low, high, line);
            }
            UnaryOp::LeadingZeros | UnaryOp::TrailingZeros => {
                let [first, second] = match op {
                    UnaryOp::LeadingZeros => [a[1], a[0]],
                    _ => a,
                };
                let (zero, word) = (self.constant(Scalar::U64, 0), self.constant(Scalar::U32, 64));
                let none = self.binary(BinaryOp::Eq, first, zero, line)?;
                let (near, far) = (self.unary(op, first, line)?, self.unary(op, second, line)?);
                let far = self.binary(BinaryOp::Add, far, word, line)?;
                return self.ternary(TernaryOp::Select, none, far, near, line);
            }
            _ => return Err(self.no_wide(op.name(), n, line)),
        };
        self.wide(n, words, line)
    }

    fn no_wide(&self, operator: &str, n: Num, line: u32) -> crate::front::rust::error::LowerError {
        self.error(line, format!("`{operator}` of a `{n}`"), "use two `u64`s")
    }

    /// An operator of two operands.
    pub(super) fn wide_binary(
        &mut self,
        op: BinaryOp,
        n: Num,
        v: Value,
        w: Value,
        line: u32,
    ) -> Result<Value> {
        let a = self.words(v, line)?;
        if let BinaryOp::Shl | BinaryOp::Shr | BinaryOp::RotateLeft | BinaryOp::RotateRight = op {
            let words = self.wide_shift(op, n, a, w, line)?;
            return self.wide(n, words, line);
        }
        let b = self.words(w, line)?;
        let words = match op {
            BinaryOp::Add => self.sum(a, b, line)?.0,
            BinaryOp::Sub => self.difference(a, b, line)?,
            BinaryOp::Mul => self.wide_product(a, b, line)?,
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => self.each(op, a, b, line)?,
            BinaryOp::Eq => return self.same(a, b, line),
            BinaryOp::Ne => {
                let same = self.same(a, b, line)?;
                return self.not(same, line);
            }
            BinaryOp::Lt => return self.less(n, a, b, line),
            BinaryOp::Gt => return self.less(n, b, a, line),
            BinaryOp::Le => {
                let more = self.less(n, b, a, line)?;
                return self.not(more, line);
            }
            BinaryOp::Ge => {
                let less = self.less(n, a, b, line)?;
                return self.not(less, line);
            }
            BinaryOp::Min | BinaryOp::Max => {
                let [x, y] = if op == BinaryOp::Min { [a, b] } else { [b, a] };
                let less = self.less(n, x, y, line)?;
                self.choose(less, a, b, line)?
            }
            BinaryOp::AbsDiff => {
                let less = self.less(n, a, b, line)?;
                let (up, down) = (self.difference(b, a, line)?, self.difference(a, b, line)?);
                let words = self.choose(less, up, down, line)?;
                return self.wide(Num::U128, words, line);
            }
            BinaryOp::MulHigh => {
                let mut high = self.upper_product(a, b, line)?;
                if n.is_signed_int() {
                    let zero = self.constant(Scalar::U64, 0);
                    for (x, y) in [(a, b), (b, a)] {
                        let negative = self.is_negative(x, line)?;
                        let more = self.choose(negative, y, [zero, zero], line)?;
                        high = self.difference(high, more, line)?;
                    }
                }
                high
            }
            BinaryOp::SaturatingAdd | BinaryOp::SaturatingSub => self.saturating(op, n, a, b, line)?,
            BinaryOp::Div | BinaryOp::Rem => {
                let subject = if op == BinaryOp::Div {
                    "division"
                } else {
                    "remainder"
                };
                let (quotient, rest) = self.divide(n, a, b, subject, line)?;
                if op == BinaryOp::Div { quotient } else { rest }
            }
            _ => return Err(self.no_wide(op.name(), n, line)),
        };
        self.wide(n, words, line)
    }

    fn wide_shift(&mut self, op: BinaryOp, n: Num, a: Words, amount: Value, line: u32) -> Result<Words> {
        let amount = self.cast(Scalar::U32, amount, line)?;
        match op {
            BinaryOp::Shl => self.shift_left(a, amount, line),
            BinaryOp::Shr => self.shift_right(n, a, amount, line),
            _ => {
                let zero = self.constant(Scalar::U32, 0);
                let other = self.binary(BinaryOp::Sub, zero, amount, line)?;
                let (left, right) = match op {
                    BinaryOp::RotateLeft => (amount, other),
                    _ => (other, amount),
                };
                let left = self.shift_left(a, left, line)?;
                let right = self.shift_right(Num::U128, a, right, line)?;
                self.each(BinaryOp::Or, left, right, line)
            }
        }
    }

    fn saturating(&mut self, op: BinaryOp, n: Num, a: Words, b: Words, line: u32) -> Result<Words> {
        let (least, most) = (self.constant_words(n.least()), self.constant_words(n.greatest()));
        let add = op == BinaryOp::SaturatingAdd;
        let (value, carry) = match add {
            true => self.sum(a, b, line)?,
            false => (self.difference(a, b, line)?, self.less(n, a, b, line)?),
        };
        if !n.is_signed_int() {
            return self.choose(carry, if add { most } else { least }, value, line);
        }
        // The result's sign is wrong: for a sum, other than both operands'; for a difference, other than a's where the
        // operands' differ.
        let x = self.binary(BinaryOp::Xor, a[1], value[1], line)?;
        let y = match add {
            true => self.binary(BinaryOp::Xor, b[1], value[1], line)?,
            false => self.binary(BinaryOp::Xor, a[1], b[1], line)?,
        };
        let wrong = self.binary(BinaryOp::And, x, y, line)?;
        let over = self.is_negative([wrong, wrong], line)?;
        let negative = self.is_negative(a, line)?;
        let bound = self.choose(negative, least, most, line)?;
        self.choose(over, bound, value, line)
    }
}
