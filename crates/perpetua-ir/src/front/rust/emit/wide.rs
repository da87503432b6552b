//! Integers of two words: each operator on `i128` and `u128` as operators on `u64`s.

use super::value::Val;
use super::{Emitter, Result};
use crate::front::rust::infer::methods::Num;
use crate::ir::{Block, Effect, FaultKind, Inst, Op, Scalar, Value};
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

    /// Quotient and remainder.
    fn divide(&mut self, n: Num, a: Words, b: Words, subject: &str, line: u32) -> Result<(Words, Words)> {
        let zero = self.constant_words(0);
        let by_zero = self.same(b, zero, line)?;
        let high = match n.is_signed_int() {
            true => self.bitcast(Scalar::I64, a[1], line)?,
            false => a[1],
        };
        let dividend = vec![a[0], high];
        let fault = Effect::Fault(FaultKind::DivisionByZero, subject.into(), dividend.clone());
        self.refuse_division(by_zero, fault, line)?;
        if !n.is_signed_int() {
            return self.divide_unsigned(a, b, line);
        }
        let (least, minus_one) = (self.constant_words(n.least()), self.constant_words(n.all_bits()));
        let (least, minus_one) = (self.same(a, least, line)?, self.same(b, minus_one, line)?);
        let over = self.binary(BinaryOp::And, least, minus_one, line)?;
        let fault = Effect::Fault(FaultKind::DivisionOverflow, subject.into(), dividend);
        self.refuse_division(over, fault, line)?;
        let (x, y) = (self.magnitude_of(a, line)?, self.magnitude_of(b, line)?);
        let (quotient, rest) = self.divide_unsigned(x, y, line)?;
        let (first, second) = (self.is_negative(a, line)?, self.is_negative(b, line)?);
        let differ = self.binary(BinaryOp::Xor, first, second, line)?;
        let (other_quotient, other_rest) = (self.negated(quotient, line)?, self.negated(rest, line)?);
        Ok((
            self.choose(differ, other_quotient, quotient, line)?,
            self.choose(first, other_rest, rest, line)?,
        ))
    }

    /// The fault of a division without a result: its operands are the dividend's words.
    fn refuse_division(&mut self, is: Value, fault: Effect, line: u32) -> Result<()> {
        if self.unchecked || self.is(is, false) {
            return Ok(());
        }
        let fault = self.branch(|this| {
            let done = this.k.effect(fault);
            this.typed(line, done)?;
            Ok(Val::unit())
        })?;
        self.k.push(Inst::If(is, fault.block, Block::default()));
        Ok(())
    }

    /// By a divisor of one word digit by digit; by one of two words the quotient of the upper digits, which is right or one too
    /// large (Hacker's Delight, 9-5).
    fn divide_unsigned(&mut self, a: Words, b: Words, line: u32) -> Result<(Words, Words)> {
        let (zero, one) = (self.constant(Scalar::U64, 0), self.constant(Scalar::U64, 1));
        let one_word = self.binary(BinaryOp::Eq, b[1], zero, line)?;
        let top = self.ternary(TernaryOp::Select, one_word, b[0], b[1], line)?;
        // It is not zero already, but of a division that has faulted.
        let word = self.ternary(TernaryOp::Select, one_word, b[0], one, line)?;
        let word = self.binary(BinaryOp::Max, word, one, line)?;
        let upper = self.binary(BinaryOp::Div, a[1], word, line)?;
        let back = self.binary(BinaryOp::Mul, upper, word, line)?;
        let rest = self.binary(BinaryOp::Sub, a[1], back, line)?;

        let shift = self.unary(UnaryOp::LeadingZeros, top, line)?;
        let last = self.constant(Scalar::U32, 63);
        let shift = self.binary(BinaryOp::And, shift, last, line)?;
        let below = self.shifted_in(b[0], shift, line)?;
        let below = self.ternary(TernaryOp::Select, one_word, zero, below, line)?;
        let divisor = self.binary(BinaryOp::Shl, top, shift, line)?;
        let divisor = self.binary(BinaryOp::Or, divisor, below, line)?;

        let by_word = self.shift_left([a[0], rest], shift, line)?;
        let single = self.constant(Scalar::U32, 1);
        let halved = self.shift_right(Num::U128, a, single, line)?;
        let dividend = self.choose(one_word, by_word, halved, line)?;
        let digits = self.divide_by_word(dividend, divisor, line)?;

        let away = self.binary(BinaryOp::Sub, last, shift, line)?;
        let guess = self.binary(BinaryOp::Shr, digits, away, line)?;
        let some = self.binary(BinaryOp::Ne, guess, zero, line)?;
        let some = self.cast(Scalar::U64, some, line)?;
        let guess = self.binary(BinaryOp::Sub, guess, some, line)?;
        let quotient = self.choose(one_word, [digits, upper], [guess, zero], line)?;
        let back = self.wide_product(quotient, b, line)?;
        let rest = self.difference(a, back, line)?;
        let less = self.less(Num::U128, rest, b, line)?;
        let nearer = self.difference(rest, b, line)?;
        let (next, _) = self.sum(quotient, [one, zero], line)?;
        Ok((
            self.choose(less, quotient, next, line)?,
            self.choose(less, rest, nearer, line)?,
        ))
    }

    /// The quotient of two words by a word whose highest bit is set and that is greater than the upper word.
    fn divide_by_word(&mut self, a: Words, divisor: Value, line: u32) -> Result<Value> {
        let half = self.constant(Scalar::U32, 32);
        let mask = self.constant(Scalar::U64, 0xffff_ffff);
        let base = self.constant(Scalar::U64, 1 << 32);
        // It has the bit already, but of a division that has faulted.
        let bit = self.constant(Scalar::U64, 1 << 31);
        let upper = self.binary(BinaryOp::Shr, divisor, half, line)?;
        let upper = self.binary(BinaryOp::Max, upper, bit, line)?;
        let lower = self.binary(BinaryOp::And, divisor, mask, line)?;
        let digits = [
            self.binary(BinaryOp::Shr, a[0], half, line)?,
            self.binary(BinaryOp::And, a[0], mask, line)?,
        ];
        let zero = self.constant(Scalar::U64, 0);
        let (mut rest, mut quotient) = (a[1], zero);
        for digit in digits {
            let mut guess = self.binary(BinaryOp::Div, rest, upper, line)?;
            let back = self.binary(BinaryOp::Mul, guess, upper, line)?;
            let mut left = self.binary(BinaryOp::Sub, rest, back, line)?;
            // The guess is at most two too large.
            let mut again = self.bool(true);
            for _ in 0..2 {
                let beyond = self.binary(BinaryOp::Ge, guess, base, line)?;
                let part = self.binary(BinaryOp::Mul, guess, lower, line)?;
                let room = self.binary(BinaryOp::Shl, left, half, line)?;
                let room = self.binary(BinaryOp::Or, room, digit, line)?;
                let more = self.binary(BinaryOp::Gt, part, room, line)?;
                let over = self.binary(BinaryOp::Or, beyond, more, line)?;
                let over = self.binary(BinaryOp::And, over, again, line)?;
                let one = self.cast(Scalar::U64, over, line)?;
                guess = self.binary(BinaryOp::Sub, guess, one, line)?;
                let add = self.ternary(TernaryOp::Select, over, upper, zero, line)?;
                left = self.binary(BinaryOp::Add, left, add, line)?;
                let small = self.binary(BinaryOp::Lt, left, base, line)?;
                again = self.binary(BinaryOp::And, over, small, line)?;
            }
            let next = self.binary(BinaryOp::Shl, rest, half, line)?;
            let next = self.binary(BinaryOp::Or, next, digit, line)?;
            let back = self.binary(BinaryOp::Mul, guess, divisor, line)?;
            rest = self.binary(BinaryOp::Sub, next, back, line)?;
            quotient = self.binary(BinaryOp::Shl, quotient, half, line)?;
            quotient = self.binary(BinaryOp::Or, quotient, guess, line)?;
        }
        Ok(quotient)
    }

    /// Rust's `as` to or from an integer of two words.
    pub(super) fn wide_cast(&mut self, from: Num, to: Num, v: Value, line: u32) -> Result<Value> {
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
