//! Methods of scalars that are combinations of the operator table's rows.

use super::number::NO_LOGARITHM;
use super::value::Val;
use super::{Emitter, Result};
use crate::front::rust::infer::methods::{Method, Num, Special, num};
use crate::front::rust::infer::tree::Expr;
use crate::front::rust::infer::ty::Ty;
use crate::ir::{Inst, Place, Scalar, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

/// Exponents up to which a power is multiplied out.
const UNROLLED_POWER: u64 = 64;

impl Emitter<'_> {
    /// A method of a scalar: the receiver is the first argument.
    pub(super) fn method(&mut self, method: Method, args: &[Expr], e: &Expr) -> Result<Val> {
        let values = args.iter().map(|a| self.value(a)).collect::<Result<Vec<_>>>()?;
        let line = e.line;
        self.at(line);
        let one = |value| Ok(Val::Value(value));
        match (method, &values[..]) {
            (Method::Unary(op), [a]) => one(self.unary(op, *a, line)?),
            (Method::Binary(op), [a, b]) => one(self.binary(op, *a, *b, line)?),
            (Method::Ternary(TernaryOp::Clamp), [a, b, c]) if self.num_of(*a, line)?.is_float() => {
                one(self.clamp(*a, *b, *c, line)?)
            }
            (Method::Ternary(op), [a, b, c]) => one(self.ternary(op, *a, *b, *c, line)?),
            (Method::Special(Special::WideningMul), [a, b]) => {
                let low = self.binary(BinaryOp::Mul, *a, *b, line)?;
                let high = self.binary(BinaryOp::MulHigh, *a, *b, line)?;
                Ok(Val::Tuple(vec![Val::Value(low), Val::Value(high)]))
            }
            (Method::Special(special), [a]) => self.special_unary(special, *a, e),
            (Method::Special(special), [a, b]) => self.special_binary(special, *a, *b, line),
            (Method::Special(special), [a, b, c]) => self.carrying(special, *a, *b, *c, line),
            _ => Err(self.error(line, "a method has a wrong number of arguments", "")),
        }
    }

    /// Rust's `clamp` of floats, which keeps NaN, as the table's does not.
    fn clamp(&mut self, x: Value, low: Value, high: Value, line: u32) -> Result<Value> {
        let under = self.binary(BinaryOp::Lt, x, low, line)?;
        let over = self.binary(BinaryOp::Gt, x, high, line)?;
        let inner = self.ternary(TernaryOp::Select, over, high, x, line)?;
        self.ternary(TernaryOp::Select, under, low, inner, line)
    }

    /// The root of an integer, bit by bit from the highest.
    fn isqrt(&mut self, x: Value, s: Num, line: u32) -> Result<Value> {
        if s.is_signed_int() {
            let text = "argument of integer square root cannot be negative";
            self.at_least(BinaryOp::Ge, x, s, text, line)?;
            let bits = self.bitcast(s.to_unsigned(), x, line)?;
            let root = self.isqrt(bits, s.to_unsigned(), line)?;
            return self.bitcast(s, root, line);
        }
        let half = u64::from(s.bits() / 2);
        let root = Place::local(self.k.local("root", s.into()));
        let (zero, one) = (self.constant(s, 0), self.constant(s, 1));
        self.store(&root, zero, line)?;
        let (start, end) = (self.constant(Scalar::U32, 0), self.constant(Scalar::U32, half));
        let last = self.constant(Scalar::U32, half - 1);
        self.counted(start, end, line, |this, i| {
            let at = this.binary(BinaryOp::Sub, last, i, line)?;
            let bit = this.binary(BinaryOp::Shl, one, at, line)?;
            let old = this.read(&root, line)?;
            let new = this.binary(BinaryOp::Or, old, bit, line)?;
            let square = this.binary(BinaryOp::Mul, new, new, line)?;
            let fits = this.binary(BinaryOp::Le, square, x, line)?;
            let kept = this.ternary(TernaryOp::Select, fits, new, old, line)?;
            this.store(&root, kept, line)
        })?;
        self.read(&root, line)
    }

    fn special_unary(&mut self, special: Special, a: Value, e: &Expr) -> Result<Val> {
        let line = e.line;
        let s = self.num_of(a, line)?;
        let zero = |this: &mut Self| this.constant(s, 0);
        let value = match special {
            Special::Same => a,
            Special::ToBits | Special::ToFloat | Special::UnsignedAbs => {
                let Ty::Scalar(to) = self.ty(&e.ty) else {
                    return Err(self.error(line, "the result's type is not known", "annotate it"));
                };
                let to = num(to, self.program.width);
                match special {
                    Special::ToFloat => self.cast(to, a, line)?,
                    Special::UnsignedAbs => {
                        let abs = self.unary(UnaryOp::Abs, a, line)?;
                        self.bitcast(to, abs, line)?
                    }
                    _ => self.bitcast(to, a, line)?,
                }
            }
            Special::WrappingNeg => {
                let zero = zero(self);
                self.binary(BinaryOp::Sub, zero, a, line)?
            }
            Special::IsPositive => {
                let zero = zero(self);
                self.binary(BinaryOp::Gt, a, zero, line)?
            }
            Special::IsNegative => {
                let zero = zero(self);
                self.binary(BinaryOp::Lt, a, zero, line)?
            }
            Special::IsSignPositive => {
                let negative = self.unary(UnaryOp::IsSignNegative, a, line)?;
                self.not(negative, line)?
            }
            Special::CountZeros | Special::LeadingOnes | Special::TrailingOnes => {
                let flipped = self.unary(UnaryOp::Not, a, line)?;
                let op = match special {
                    Special::CountZeros => UnaryOp::CountOnes,
                    Special::LeadingOnes => UnaryOp::LeadingZeros,
                    _ => UnaryOp::TrailingZeros,
                };
                self.unary(op, flipped, line)?
            }
            Special::IsPowerOfTwo => {
                let ones = self.unary(UnaryOp::CountOnes, a, line)?;
                let one = self.constant(Scalar::U32, 1);
                self.binary(BinaryOp::Eq, ones, one, line)?
            }
            Special::NextPowerOfTwo => {
                // Of what is less than two the shift wraps, and nobody looks.
                let (one, most) = (self.constant(s, 1), self.integer(s, s.all_bits()));
                let less = self.binary(BinaryOp::Sub, a, one, line)?;
                let zeros = self.unary(UnaryOp::LeadingZeros, less, line)?;
                let below = self.binary(BinaryOp::Shr, most, zeros, line)?;
                let power = self.binary(BinaryOp::Add, below, one, line)?;
                let small = self.binary(BinaryOp::Le, a, one, line)?;
                self.ternary(TernaryOp::Select, small, one, power, line)?
            }
            Special::Ilog2 => {
                self.at_least(BinaryOp::Gt, a, s, NO_LOGARITHM, line)?;
                let zeros = self.unary(UnaryOp::LeadingZeros, a, line)?;
                let last = self.constant(Scalar::U32, u64::from(s.bits() - 1));
                self.binary(BinaryOp::Sub, last, zeros, line)?
            }
            Special::Isqrt => self.isqrt(a, s, line)?,
            Special::SinCos => {
                let sin = self.unary(UnaryOp::Sin, a, line)?;
                let cos = self.unary(UnaryOp::Cos, a, line)?;
                return Ok(Val::Tuple(vec![Val::Value(sin), Val::Value(cos)]));
            }
            other => return self.number_unary(other, a, s, e),
        };
        Ok(Val::Value(value))
    }

    fn special_binary(&mut self, special: Special, a: Value, b: Value, line: u32) -> Result<Val> {
        let s = self.num_of(a, line)?;
        let value = match special {
            Special::WrappingDiv | Special::WrappingRem => self.wrapping_div(special, a, b, s, line)?,
            Special::SaturatingMul => {
                let (product, over) = self.multiply(a, b, s, line)?;
                let most = self.bound(a, b, s, line)?;
                self.ternary(TernaryOp::Select, over, most, product, line)?
            }
            Special::OverflowingMul => {
                let (product, over) = self.multiply(a, b, s, line)?;
                return Ok(Val::Tuple(vec![Val::Value(product), Val::Value(over)]));
            }
            Special::OverflowingAdd | Special::OverflowingSub => {
                return self.overflowing(special, a, b, s, line);
            }
            Special::RemEuclid => self.rem_euclid(a, b, s, line)?,
            Special::DivEuclid => self.div_euclid(a, b, s, line)?,
            Special::DivCeil => {
                let quotient = self.binary(BinaryOp::Div, a, b, line)?;
                let rest = self.binary(BinaryOp::Rem, a, b, line)?;
                let zero = self.constant(s, 0);
                let more = self.binary(BinaryOp::Ne, rest, zero, line)?;
                let more = self.cast(s, more, line)?;
                self.binary(BinaryOp::Add, quotient, more, line)?
            }
            Special::NextMultipleOf => {
                let rest = self.binary(BinaryOp::Rem, a, b, line)?;
                let zero = self.constant(s, 0);
                let exact = self.binary(BinaryOp::Eq, rest, zero, line)?;
                let missing = self.binary(BinaryOp::Sub, b, rest, line)?;
                let next = self.binary(BinaryOp::Add, a, missing, line)?;
                self.ternary(TernaryOp::Select, exact, a, next, line)?
            }
            Special::Pow => self.power(a, b, s, line)?,
            Special::Powi => self.powi(a, b, s, line)?,
            Special::Log => {
                let (x, base) = (
                    self.unary(UnaryOp::Ln, a, line)?,
                    self.unary(UnaryOp::Ln, b, line)?,
                );
                self.binary(BinaryOp::Div, x, base, line)?
            }
            other => return self.number_binary(other, a, b, s, line),
        };
        Ok(Val::Value(value))
    }

    /// `wrapping_div` and `wrapping_rem`: MIN / -1 is MIN and 0; zero still faults.
    fn wrapping_div(&mut self, special: Special, a: Value, b: Value, s: Num, line: u32) -> Result<Value> {
        let op = if special == Special::WrappingDiv {
            BinaryOp::Div
        } else {
            BinaryOp::Rem
        };
        if !s.is_signed_int() {
            return self.binary(op, a, b, line);
        }
        // By 1 instead of -1, and then what -1 would have given.
        let minus_one = self.integer(s, s.all_bits());
        let one = self.constant(s, 1);
        let negate = self.binary(BinaryOp::Eq, b, minus_one, line)?;
        let divisor = self.ternary(TernaryOp::Select, negate, one, b, line)?;
        let plain = self.binary(op, a, divisor, line)?;
        if op == BinaryOp::Rem {
            return Ok(plain);
        }
        let negated = self.unary(UnaryOp::Neg, plain, line)?;
        self.ternary(TernaryOp::Select, negate, negated, plain, line)
    }

    /// The product, wrapped, and whether it wrapped.
    pub(super) fn multiply(&mut self, a: Value, b: Value, s: Num, line: u32) -> Result<(Value, Value)> {
        let low = self.binary(BinaryOp::Mul, a, b, line)?;
        let high = self.binary(BinaryOp::MulHigh, a, b, line)?;
        let expected = if s.is_signed_int() {
            let bits = self.constant(Scalar::U32, u64::from(s.bits() - 1));
            self.binary(BinaryOp::Shr, low, bits, line)?
        } else {
            self.constant(s, 0)
        };
        Ok((low, self.binary(BinaryOp::Ne, high, expected, line)?))
    }

    /// Where a product of these saturates: at MIN if the signs differ.
    pub(super) fn bound(&mut self, a: Value, b: Value, s: Num, line: u32) -> Result<Value> {
        if !s.is_signed_int() {
            return Ok(self.integer(s, s.greatest()));
        }
        let (max, min) = (self.integer(s, s.greatest()), self.integer(s, s.least()));
        let zero = self.constant(s, 0);
        let signs = self.binary(BinaryOp::Xor, a, b, line)?;
        let negative = self.binary(BinaryOp::Lt, signs, zero, line)?;
        self.ternary(TernaryOp::Select, negative, min, max, line)
    }

    fn overflowing(&mut self, special: Special, a: Value, b: Value, s: Num, line: u32) -> Result<Val> {
        let add = special == Special::OverflowingAdd;
        let op = if add { BinaryOp::Add } else { BinaryOp::Sub };
        let result = self.binary(op, a, b, line)?;
        let over = if s.is_signed_int() {
            // The result's sign is wrong: for a sum, other than both operands'; for a difference, other than a's
            // where the operands' differ.
            let x = self.binary(BinaryOp::Xor, a, result, line)?;
            let y = if add {
                self.binary(BinaryOp::Xor, b, result, line)?
            } else {
                self.binary(BinaryOp::Xor, a, b, line)?
            };
            let both = self.binary(BinaryOp::And, x, y, line)?;
            let zero = self.constant(s, 0);
            self.binary(BinaryOp::Lt, both, zero, line)?
        } else if add {
            self.binary(BinaryOp::Lt, result, a, line)?
        } else {
            self.binary(BinaryOp::Lt, a, b, line)?
        };
        Ok(Val::Tuple(vec![Val::Value(result), Val::Value(over)]))
    }

    /// As core: the remainder, plus the divisor's magnitude where it is negative.
    fn rem_euclid(&mut self, a: Value, b: Value, s: Num, line: u32) -> Result<Value> {
        let rest = self.binary(BinaryOp::Rem, a, b, line)?;
        if s.is_unsigned_int() {
            return Ok(rest);
        }
        let zero = self.constant(s, 0);
        let negative = self.binary(BinaryOp::Lt, rest, zero, line)?;
        let magnitude = self.unary(UnaryOp::Abs, b, line)?;
        let moved = self.binary(BinaryOp::Add, rest, magnitude, line)?;
        self.ternary(TernaryOp::Select, negative, moved, rest, line)
    }

    /// As core: the truncated quotient, one away from it where the remainder is negative.
    fn div_euclid(&mut self, a: Value, b: Value, s: Num, line: u32) -> Result<Value> {
        let quotient = self.binary(BinaryOp::Div, a, b, line)?;
        if s.is_unsigned_int() {
            return Ok(quotient);
        }
        let quotient = if s.is_float() {
            self.unary(UnaryOp::Trunc, quotient, line)?
        } else {
            quotient
        };
        let rest = self.binary(BinaryOp::Rem, a, b, line)?;
        let zero = self.constant(s, 0);
        let one = if s.is_float() {
            self.float_constant(s, 1.0)
        } else {
            self.constant(s, 1)
        };
        let negative = self.binary(BinaryOp::Lt, rest, zero, line)?;
        let upwards = self.binary(BinaryOp::Gt, b, zero, line)?;
        let below = self.binary(BinaryOp::Sub, quotient, one, line)?;
        let above = self.binary(BinaryOp::Add, quotient, one, line)?;
        let moved = self.ternary(TernaryOp::Select, upwards, below, above, line)?;
        self.ternary(TernaryOp::Select, negative, moved, quotient, line)
    }

    /// A constant of any float type.
    pub(super) fn float_constant(&mut self, s: impl Into<Num>, x: f64) -> Value {
        let s = s.into().like();
        let bits = crate::ops::eval::eval_cast(Scalar::F64, s, x.to_bits());
        self.constant(s, bits)
    }

    /// `a` to the power of the unsigned `n`, by squaring.
    fn power(&mut self, a: Value, n: Value, s: Num, line: u32) -> Result<Value> {
        let one = if s.is_float() {
            self.float_constant(s, 1.0)
        } else {
            self.constant(s, 1)
        };
        if let Some(mut n) = self.known(n).filter(|n| *n <= UNROLLED_POWER) {
            let (mut product, mut square) = (None, a);
            while n > 0 {
                if n & 1 == 1 {
                    product = Some(match product {
                        Some(product) => self.binary(BinaryOp::Mul, product, square, line)?,
                        None => square,
                    });
                }
                n >>= 1;
                if n > 0 {
                    square = self.binary(BinaryOp::Mul, square, square, line)?;
                }
            }
            return Ok(product.unwrap_or(one));
        }
        let product = Place::local(self.k.local("product", s.into()));
        let square = Place::local(self.k.local("square", s.into()));
        let left = Place::local(self.k.local("exponent", Scalar::U32.into()));
        self.store(&product, one, line)?;
        self.store(&square, a, line)?;
        self.store(&left, n, line)?;
        let branch = self.framed(None, |this, level| {
            let n = this.read(&left, line)?;
            let zero = this.constant(Scalar::U32, 0);
            let one = this.constant(Scalar::U32, 1);
            let over = this.binary(BinaryOp::Eq, n, zero, line)?;
            let leave = this.branch(|this| {
                this.k.push(Inst::Break(this.depth(level)));
                this.body.ended = true;
                Ok(Val::unit())
            })?;
            this.k
                .push(Inst::If(over, leave.block, crate::ir::Block::default()));
            let bit = this.binary(BinaryOp::And, n, one, line)?;
            let odd = this.binary(BinaryOp::Ne, bit, zero, line)?;
            let (p, q) = (this.read(&product, line)?, this.read(&square, line)?);
            let times = this.binary(BinaryOp::Mul, p, q, line)?;
            let p = this.ternary(TernaryOp::Select, odd, times, p, line)?;
            this.store(&product, p, line)?;
            let q = this.binary(BinaryOp::Mul, q, q, line)?;
            this.store(&square, q, line)?;
            let n = this.binary(BinaryOp::Shr, n, one, line)?;
            this.store(&left, n, line)
        })?;
        self.k.push(Inst::Loop(branch.block));
        self.read(&product, line)
    }

    /// `powi`: by squaring; of a negative exponent the reciprocal.
    fn powi(&mut self, a: Value, n: Value, s: Num, line: u32) -> Result<Value> {
        let zero = self.constant(Scalar::I32, 0);
        let magnitude = self.unary(UnaryOp::Abs, n, line)?;
        let magnitude = self.bitcast(Scalar::U32, magnitude, line)?;
        let power = self.power(a, magnitude, s, line)?;
        let negative = self.binary(BinaryOp::Lt, n, zero, line)?;
        if self.is(negative, false) {
            return Ok(power);
        }
        let reciprocal = self.unary(UnaryOp::Recip, power, line)?;
        self.ternary(TernaryOp::Select, negative, reciprocal, power, line)
    }
}
