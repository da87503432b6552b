//! More methods of numbers: bytes, classes of floats, powers that saturate, sums and products with a carry.

use super::value::Val;
use super::{Emitter, Result};
use crate::front::rust::infer::methods::{Num, Special, num};
use crate::front::rust::infer::tree::Expr;
use crate::front::rust::infer::ty::{Len, Ty};
use crate::ir::{self, Effect, Inst, Place, PrintPiece, Scalar, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

/// How many bits of a float are its fraction.
fn fraction_bits(s: Num) -> u32 {
    match s.like() {
        Scalar::F16 => 10,
        Scalar::BF16 => 7,
        Scalar::F32 => 23,
        _ => 52,
    }
}

/// The bits of a float's infinity.
fn infinity(s: Num) -> u64 {
    (s.all_bits() as u64 >> 1) >> fraction_bits(s) << fraction_bits(s)
}

/// What Rust says of an integer that has no logarithm.
pub(super) const NO_LOGARITHM: &str = "argument of integer logarithm must be positive";

impl Emitter<'_> {
    /// Panics with the text unless the integer is greater than zero, or by `op` zero, too.
    pub(super) fn at_least(&mut self, op: BinaryOp, a: Value, s: Num, text: &str, line: u32) -> Result<()> {
        let zero = self.constant(s, 0);
        let some = self.binary(op, a, zero, line)?;
        let fault = self.branch(|this| {
            let text = PrintPiece::Text(text.to_owned());
            let done = this.k.effect(Effect::Panic(vec![text], Vec::new()));
            this.typed(line, done)?;
            Ok(Val::unit())
        })?;
        self.k.push(Inst::If(some, ir::Block::default(), fault.block));
        Ok(())
    }

    /// A float's bits without its sign, as an unsigned integer.
    fn magnitude(&mut self, a: Value, s: Num, line: u32) -> Result<Value> {
        let bits = self.bitcast(s.to_unsigned(), a, line)?;
        let most = self.integer(s.to_unsigned(), s.all_bits() >> 1);
        self.binary(BinaryOp::And, bits, most, line)
    }

    pub(super) fn number_unary(&mut self, special: Special, a: Value, s: Num, e: &Expr) -> Result<Val> {
        let line = e.line;
        let value = match special {
            Special::ToLeBytes | Special::ToBeBytes => {
                let Ty::Array(_, Len::Known(count)) = self.ty(&e.ty) else {
                    return Err(self.error(line, "the result's type is not known", "annotate it"));
                };
                if count != u64::from(s.size()) {
                    return Err(self.error(
                        line,
                        "the bytes of a `usize` are taken where it has four",
                        "convert it with `as u32` or `as u64` before",
                    ));
                }
                let bits = if s.is_float() {
                    self.bitcast(s.to_unsigned(), a, line)?
                } else {
                    a
                };
                let mut parts = Vec::new();
                for i in 0..s.size() {
                    let amount = self.constant(Scalar::U32, u64::from(8 * i));
                    let byte = self.binary(BinaryOp::Shr, bits, amount, line)?;
                    parts.push(self.cast(Scalar::U8, byte, line)?);
                }
                if special == Special::ToBeBytes {
                    parts.reverse();
                }
                let ty = self.ir_type(&e.ty, line)?;
                self.compose(ty, parts, line)?
            }
            Special::FromF64 => {
                // By way of the odd one of the two f32s beside it, which keeps the side on which it lies.
                let Ty::Scalar(to) = self.ty(&e.ty) else {
                    return Err(self.error(line, "the result's type is not known", "annotate it"));
                };
                let near = self.cast(Scalar::F32, a, line)?;
                let back = self.cast(s, near, line)?;
                let (below, above) = (
                    self.binary(BinaryOp::Lt, back, a, line)?,
                    self.binary(BinaryOp::Gt, back, a, line)?,
                );
                let inexact = self.binary(BinaryOp::Or, below, above, line)?;
                let (x, y) = (
                    self.unary(UnaryOp::Abs, back, line)?,
                    self.unary(UnaryOp::Abs, a, line)?,
                );
                let away = self.binary(BinaryOp::Gt, x, y, line)?;
                let (away, odd) = (
                    self.cast(Scalar::U32, away, line)?,
                    self.cast(Scalar::U32, inexact, line)?,
                );
                let bits = self.bitcast(Scalar::U32, near, line)?;
                let bits = self.binary(BinaryOp::Sub, bits, away, line)?;
                let bits = self.binary(BinaryOp::Or, bits, odd, line)?;
                let near = self.bitcast(Scalar::F32, bits, line)?;
                self.cast(num(to, self.program.width), near, line)?
            }
            Special::TotalOrder => {
                // Of negative numbers all bits but the sign are flipped.
                let Ty::Scalar(to) = self.ty(&e.ty) else {
                    return Err(self.error(line, "the result's type is not known", "annotate it"));
                };
                let to = num(to, self.program.width);
                let bits = self.bitcast(to, a, line)?;
                let last = self.constant(Scalar::U32, u64::from(s.bits() - 1));
                let sign = self.binary(BinaryOp::Shr, bits, last, line)?;
                let most = self.integer(to, s.all_bits() >> 1);
                let flip = self.binary(BinaryOp::And, sign, most, line)?;
                self.binary(BinaryOp::Xor, bits, flip, line)?
            }
            Special::IsNormal | Special::IsSubnormal => {
                let unsigned = s.to_unsigned();
                let magnitude = self.magnitude(a, s, line)?;
                let least = self.constant(unsigned, 1 << fraction_bits(s));
                let infinity = self.constant(unsigned, infinity(s));
                let zero = self.constant(unsigned, 0);
                let (from, to) = match special {
                    Special::IsNormal => (self.binary(BinaryOp::Ge, magnitude, least, line)?, infinity),
                    _ => (self.binary(BinaryOp::Gt, magnitude, zero, line)?, least),
                };
                let below = self.binary(BinaryOp::Lt, magnitude, to, line)?;
                self.binary(BinaryOp::And, from, below, line)?
            }
            Special::Ilog10 => {
                self.at_least(BinaryOp::Gt, a, s, NO_LOGARITHM, line)?;
                let mut digits = self.constant(Scalar::U32, 0);
                let mut power = 10u128;
                while power <= s.greatest() {
                    let bound = self.integer(s, power);
                    let more = self.binary(BinaryOp::Ge, a, bound, line)?;
                    let more = self.cast(Scalar::U32, more, line)?;
                    digits = self.binary(BinaryOp::Add, digits, more, line)?;
                    let Some(next) = power.checked_mul(10) else { break };
                    power = next;
                }
                digits
            }
            Special::OverflowingNeg => {
                let zero = self.constant(s, 0);
                let value = self.binary(BinaryOp::Sub, zero, a, line)?;
                // Signed integers wrap at MIN, unsigned ones everywhere but at zero.
                let least = self.integer(s, s.least());
                let over = match s.is_signed_int() {
                    true => self.binary(BinaryOp::Eq, a, least, line)?,
                    false => self.binary(BinaryOp::Ne, a, zero, line)?,
                };
                return Ok(Val::Tuple(vec![Val::Value(value), Val::Value(over)]));
            }
            _ => return Err(self.error(line, "a method has a wrong number of arguments", "")),
        };
        Ok(Val::Value(value))
    }

    pub(super) fn number_binary(
        &mut self,
        special: Special,
        a: Value,
        b: Value,
        s: Num,
        line: u32,
    ) -> Result<Val> {
        let pair = |value, over| Ok(Val::Tuple(vec![Val::Value(value), Val::Value(over)]));
        let value = match special {
            Special::Midpoint if s.is_float() => self.midpoint(a, b, s, line)?,
            Special::Midpoint => {
                let common = self.binary(BinaryOp::And, a, b, line)?;
                let differ = self.binary(BinaryOp::Xor, a, b, line)?;
                let one = self.constant(Scalar::U32, 1);
                let half = self.binary(BinaryOp::Shr, differ, one, line)?;
                let below = self.binary(BinaryOp::Add, common, half, line)?;
                if s.is_signed_int() {
                    // Towards zero, not down.
                    let (zero, one) = (self.constant(s, 0), self.constant(s, 1));
                    let odd = self.binary(BinaryOp::And, differ, one, line)?;
                    let up = self.binary(BinaryOp::Add, below, odd, line)?;
                    let negative = self.binary(BinaryOp::Lt, below, zero, line)?;
                    self.ternary(TernaryOp::Select, negative, up, below, line)?
                } else {
                    below
                }
            }
            Special::IsMultipleOf => {
                let (zero, one) = (self.constant(s, 0), self.constant(s, 1));
                let none = self.binary(BinaryOp::Eq, b, zero, line)?;
                let divisor = self.ternary(TernaryOp::Select, none, one, b, line)?;
                let rest = self.binary(BinaryOp::Rem, a, divisor, line)?;
                let rest = self.ternary(TernaryOp::Select, none, a, rest, line)?;
                self.binary(BinaryOp::Eq, rest, zero, line)?
            }
            Special::UnboundedShl | Special::UnboundedShr => {
                let bits = self.constant(Scalar::U32, s.bits().into());
                let within = self.binary(BinaryOp::Lt, b, bits, line)?;
                let op = match special {
                    Special::UnboundedShl => BinaryOp::Shl,
                    _ => BinaryOp::Shr,
                };
                let shifted = self.binary(op, a, b, line)?;
                let beyond = if s.is_signed_int() && op == BinaryOp::Shr {
                    let last = self.constant(Scalar::U32, u64::from(s.bits() - 1));
                    self.binary(op, a, last, line)?
                } else {
                    self.constant(s, 0)
                };
                self.ternary(TernaryOp::Select, within, shifted, beyond, line)?
            }
            Special::AddOther | Special::SubOther => {
                let b = self.bitcast(s, b, line)?;
                let op = match special {
                    Special::AddOther => BinaryOp::Add,
                    _ => BinaryOp::Sub,
                };
                self.binary(op, a, b, line)?
            }
            Special::OverflowingAddSigned | Special::SaturatingAddSigned => {
                let added = self.bitcast(s, b, line)?;
                let sum = self.binary(BinaryOp::Add, a, added, line)?;
                let carried = self.binary(BinaryOp::Lt, sum, a, line)?;
                let signed = self.num_of(b, line)?;
                let zero = self.constant(signed, 0);
                let negative = self.binary(BinaryOp::Lt, b, zero, line)?;
                let over = self.binary(BinaryOp::Xor, carried, negative, line)?;
                if special == Special::OverflowingAddSigned {
                    return pair(sum, over);
                }
                let (least, most) = (self.constant(s, 0), self.integer(s, s.greatest()));
                let bound = self.ternary(TernaryOp::Select, negative, least, most, line)?;
                self.ternary(TernaryOp::Select, over, bound, sum, line)?
            }
            Special::OverflowingPow => {
                let (value, over) = self.counted_power(a, b, s, line)?;
                return pair(value, over);
            }
            Special::SaturatingPow => {
                let (value, over) = self.counted_power(a, b, s, line)?;
                let bound = if s.is_signed_int() {
                    let (most, least) = (self.integer(s, s.greatest()), self.integer(s, s.least()));
                    let (zero, one) = (self.constant(s, 0), self.constant(Scalar::U32, 1));
                    let negative = self.binary(BinaryOp::Lt, a, zero, line)?;
                    let bit = self.binary(BinaryOp::And, b, one, line)?;
                    let odd = self.binary(BinaryOp::Eq, bit, one, line)?;
                    let below = self.binary(BinaryOp::And, negative, odd, line)?;
                    self.ternary(TernaryOp::Select, below, least, most, line)?
                } else {
                    self.integer(s, s.greatest())
                };
                self.ternary(TernaryOp::Select, over, bound, value, line)?
            }
            _ => return Err(self.error(line, "a method has a wrong number of arguments", "")),
        };
        Ok(Val::Value(value))
    }

    /// As core: half of the sum, or where that might overflow the sum of halves. Those are made by their bits: drivers make half of the sum
    /// of a sum of products with a half.
    fn midpoint(&mut self, a: Value, b: Value, s: Num, line: u32) -> Result<Value> {
        let half = self.float_constant(s, 0.5);
        let least = self.constant(s.to_unsigned(), 2 << fraction_bits(s));
        let most = infinity(s);
        let (large, most) = (
            self.constant(s.to_unsigned(), most - (1 << fraction_bits(s)) - 1),
            self.constant(s.to_unsigned(), most),
        );
        let one = self.constant(s.to_unsigned(), 1 << fraction_bits(s));
        let sum = self.binary(BinaryOp::Add, a, b, line)?;
        let near = self.binary(BinaryOp::Mul, sum, half, line)?;
        let (mut over, mut finite) = (self.constant(Scalar::Bool, 0), self.constant(Scalar::Bool, 1));
        let mut halves = Vec::new();
        for v in [a, b] {
            let magnitude = self.magnitude(v, s, line)?;
            let beyond = self.binary(BinaryOp::Gt, magnitude, large, line)?;
            over = self.binary(BinaryOp::Or, over, beyond, line)?;
            let within = self.binary(BinaryOp::Lt, magnitude, most, line)?;
            finite = self.binary(BinaryOp::And, finite, within, line)?;
            let bits = self.bitcast(s.to_unsigned(), v, line)?;
            let bits = self.binary(BinaryOp::Sub, bits, one, line)?;
            let exact = self.bitcast(s, bits, line)?;
            let product = self.binary(BinaryOp::Mul, v, half, line)?;
            let normal = self.binary(BinaryOp::Ge, magnitude, least, line)?;
            halves.push(self.ternary(TernaryOp::Select, normal, exact, product, line)?);
        }
        let far = self.binary(BinaryOp::Add, halves[0], halves[1], line)?;
        let apart = self.binary(BinaryOp::And, over, finite, line)?;
        self.ternary(TernaryOp::Select, apart, far, near, line)
    }

    /// The power, wrapped, and whether a product on the way to it wrapped.
    fn counted_power(&mut self, a: Value, n: Value, s: Num, line: u32) -> Result<(Value, Value)> {
        let (one, none) = (self.constant(s, 1), self.constant(Scalar::Bool, 0));
        let place = |this: &mut Self, name: &str, value: Value, s: Num| {
            let place = Place::local(this.k.local(name, s.into()));
            this.store(&place, value, line).map(|()| place)
        };
        let product = place(self, "product", one, s)?;
        let square = place(self, "square", a, s)?;
        let left = place(self, "exponent", n, Scalar::U32.into())?;
        let over = place(self, "over", none, Scalar::Bool.into())?;
        let wide = place(self, "wide", none, Scalar::Bool.into())?;
        let (start, end) = (self.constant(Scalar::U32, 0), self.constant(Scalar::U32, 32));
        self.counted(start, end, line, |this, _| {
            let (zero, one) = (this.constant(Scalar::U32, 0), this.constant(Scalar::U32, 1));
            let n = this.read(&left, line)?;
            let bit = this.binary(BinaryOp::And, n, one, line)?;
            let odd = this.binary(BinaryOp::Eq, bit, one, line)?;
            let (p, q) = (this.read(&product, line)?, this.read(&square, line)?);
            let (next, wrapped) = this.multiply(p, q, s, line)?;
            let of_square = this.read(&wide, line)?;
            let wrapped = this.binary(BinaryOp::Or, wrapped, of_square, line)?;
            let wrapped = this.binary(BinaryOp::And, wrapped, odd, line)?;
            let before = this.read(&over, line)?;
            let before = this.binary(BinaryOp::Or, before, wrapped, line)?;
            this.store(&over, before, line)?;
            let p = this.ternary(TernaryOp::Select, odd, next, p, line)?;
            this.store(&product, p, line)?;
            let rest = this.binary(BinaryOp::Shr, n, one, line)?;
            this.store(&left, rest, line)?;
            let (q, wrapped) = this.multiply(q, q, s, line)?;
            this.store(&square, q, line)?;
            let more = this.binary(BinaryOp::Ne, rest, zero, line)?;
            let wrapped = this.binary(BinaryOp::And, wrapped, more, line)?;
            let wrapped = this.binary(BinaryOp::Or, wrapped, of_square, line)?;
            this.store(&wide, wrapped, line)
        })?;
        Ok((self.read(&product, line)?, self.read(&over, line)?))
    }

    /// `carrying_add`, `borrowing_sub` and `carrying_mul`.
    pub(super) fn carrying(
        &mut self,
        special: Special,
        a: Value,
        b: Value,
        c: Value,
        line: u32,
    ) -> Result<Val> {
        let s = self.num_of(a, line)?;
        let (first, second) = match special {
            Special::CarryingAdd | Special::BorrowingSub => {
                let c = self.cast(s, c, line)?;
                let add = special == Special::CarryingAdd;
                let op = if add { BinaryOp::Add } else { BinaryOp::Sub };
                let once = self.binary(op, a, b, line)?;
                let twice = self.binary(op, once, c, line)?;
                let (first, second) = match add {
                    true => (
                        self.binary(BinaryOp::Lt, once, a, line)?,
                        self.binary(BinaryOp::Lt, twice, once, line)?,
                    ),
                    false => (
                        self.binary(BinaryOp::Lt, a, b, line)?,
                        self.binary(BinaryOp::Lt, once, c, line)?,
                    ),
                };
                (twice, self.binary(BinaryOp::Or, first, second, line)?)
            }
            Special::CarryingMul => {
                let product = self.binary(BinaryOp::Mul, a, b, line)?;
                let low = self.binary(BinaryOp::Add, product, c, line)?;
                let carried = self.binary(BinaryOp::Lt, low, c, line)?;
                let carried = self.cast(s, carried, line)?;
                let high = self.binary(BinaryOp::MulHigh, a, b, line)?;
                (low, self.binary(BinaryOp::Add, high, carried, line)?)
            }
            _ => return Err(self.error(line, "a method has a wrong number of arguments", "")),
        };
        Ok(Val::Tuple(vec![Val::Value(first), Val::Value(second)]))
    }
}
