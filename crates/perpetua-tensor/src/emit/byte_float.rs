//! Floats of one byte to others and back, by operations on bits that every device has.

use perpetua_ir::ops::{BinaryOp, UnaryOp};

use super::recipe::{Id, Step, Steps};
use crate::byte_float::{ByteFloat, NAN, SIGN};
use crate::dtype::DType;

/// Bits of an `f32` for digits, what its exponents have been raised by, and infinity.
const DIGITS: u32 = 23;
const BIAS: u32 = 127;
const INFINITY: u32 = 0xff << DIGITS;

impl Steps {
    fn word(&mut self, word: u32) -> Id {
        self.push(Step::Fixed(word.into()), DType::U32)
    }

    fn with_word(&mut self, op: BinaryOp, a: Id, word: u32) -> Id {
        let word = self.word(word);
        self.binary(op, a, word)
    }

    /// The number of a byte as an `f32`, which has them all.
    pub(super) fn widened(&mut self, float: ByteFloat, byte: Id) -> Id {
        let moved = DIGITS - float.digits;
        let byte = self.push(Step::Cast(byte), DType::U32);
        let sign = self.with_word(BinaryOp::And, byte, SIGN.into());
        let sign = self.with_word(BinaryOp::Shl, sign, 24);
        let rest = self.with_word(BinaryOp::And, byte, NAN.into());
        let digits = self.with_word(BinaryOp::Shl, rest, moved);
        let normal = self.with_word(BinaryOp::Add, digits, (BIAS - float.bias) << DIGITS);
        // Below the least normal number: so many units.
        let units = self.push(Step::Cast(rest), DType::F32);
        let unit = self.push(Step::Fixed((float.unit() as f32).to_bits().into()), DType::F32);
        let small = self.binary(BinaryOp::Mul, units, unit);
        let small = self.push(Step::Bits(small), DType::U32);
        let is_small = self.with_word(BinaryOp::Lt, rest, 1 << float.digits);
        let size = self.select(is_small, small, normal);
        // Infinity, where digits are zeros.
        let beyond = self.with_word(BinaryOp::Or, digits, INFINITY);
        let is_beyond = self.with_word(BinaryOp::Ge, rest, float.beyond.into());
        let size = self.select(is_beyond, beyond, size);
        let bits = self.binary(BinaryOp::Or, sign, size);
        self.push(Step::Bits(bits), DType::F32)
    }

    /// The byte of the number that is nearest to an `f32`, of two the even one.
    pub(super) fn narrowed(&mut self, float: ByteFloat, wide: Id, ty: DType) -> Id {
        let (moved, less) = (DIGITS - float.digits, BIAS - float.bias);
        let bits = self.push(Step::Bits(wide), DType::U32);
        let sign = self.with_word(BinaryOp::Shr, bits, 24);
        let sign = self.with_word(BinaryOp::And, sign, SIGN.into());
        let size = self.with_word(BinaryOp::And, bits, u32::MAX >> 1);
        let last = self.with_word(BinaryOp::Shr, size, moved);
        let is_odd = self.with_word(BinaryOp::And, last, 1);
        let raised = self.with_word(BinaryOp::Add, size, (1 << (moved - 1)) - 1);
        let raised = self.binary(BinaryOp::Add, raised, is_odd);
        let rounded = self.with_word(BinaryOp::Shr, raised, moved);
        let normal = self.with_word(BinaryOp::Sub, rounded, less << float.digits);
        // Below the least normal number: a sum whose last digit is a unit.
        let large = (float.unit() * f64::from(1 << DIGITS)) as f32;
        let with = self.push(Step::Fixed(large.to_bits().into()), DType::F32);
        let own = self.push(Step::Bits(size), DType::F32);
        let sum = self.binary(BinaryOp::Add, own, with);
        let sum = self.push(Step::Bits(sum), DType::U32);
        let small = self.with_word(BinaryOp::Sub, sum, large.to_bits());
        let is_small = self.with_word(BinaryOp::Lt, size, (less + 1) << DIGITS);
        let code = self.select(is_small, small, normal);
        let code = self.with_word(BinaryOp::Min, code, float.beyond.into());
        let is_nan = self.with_word(BinaryOp::Gt, size, INFINITY);
        let nan = self.word(NAN.into());
        let code = self.select(is_nan, nan, code);
        let byte = self.binary(BinaryOp::Or, sign, code);
        self.push(Step::Cast(byte), ty)
    }

    /// As an `f32`. Of two that an `f64` lies between the one with an odd last digit, so that what is rounded once more is as if it was rounded once.
    pub(super) fn cast_to_odd(&mut self, a: Id) -> Id {
        let near = self.cast(a, DType::F32);
        if self.ty(a) != DType::F64 {
            return near;
        }
        let back = self.cast(near, DType::F64);
        let is_other = self.binary(BinaryOp::Ne, back, a);
        let [size, own] = [back, a].map(|x| self.unary(UnaryOp::Abs, x));
        let is_above = self.binary(BinaryOp::Gt, size, own);
        let bits = self.push(Step::Bits(near), DType::U32);
        let [is_other, is_above] = [is_other, is_above].map(|is| self.push(Step::Cast(is), DType::U32));
        let below = self.binary(BinaryOp::Sub, bits, is_above);
        let odd = self.binary(BinaryOp::Or, below, is_other);
        self.push(Step::Bits(odd), DType::F32)
    }
}
