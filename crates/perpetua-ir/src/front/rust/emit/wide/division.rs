//! Quotients and remainders of integers of two words, without a loop.

use super::super::value::Val;
use super::super::{Emitter, Result};
use super::Words;
use crate::front::rust::infer::methods::Num;
use crate::ir::{Block, Effect, FaultKind, Inst, Scalar, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

impl Emitter<'_> {
    /// Quotient and remainder.
    pub(super) fn divide(
        &mut self,
        n: Num,
        a: Words,
        b: Words,
        subject: &str,
        line: u32,
    ) -> Result<(Words, Words)> {
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
}
