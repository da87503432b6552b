//! Operators on floats. f32 and f64 round to nearest even without contraction or flushing; f16 and bf16 are computed
//! in f32 and rounded, which for these operators is the correctly rounded result.

use super::Renderer;
use super::emit::{Leaf, emit};
use super::integer::arithmetic;
use crate::ir::Scalar;
use crate::ops::eval::float_bits;
use crate::ops::{BinaryOp, Result as OpResult, TernaryOp, UnaryOp};

/// The bits of a value at a float type.
fn constant(s: Scalar, v: f64) -> Leaf {
    Leaf::Imm(float_bits(s, v))
}

/// The integer type of a float's bits.
fn bits_type(s: Scalar) -> Scalar {
    if s == Scalar::F64 {
        Scalar::U64
    } else {
        Scalar::U32
    }
}

impl Renderer<'_> {
    pub(super) fn float_unary(&mut self, op: UnaryOp, s: Scalar, a: Leaf) -> Leaf {
        let sign = 1u64 << (s.bits() - 1);
        let bits = bits_type(s);
        let suffix = super::integer::bits(bits);
        match (op, s.size()) {
            // On the bits, which narrow floats need no conversion for.
            (UnaryOp::Neg, 2) => return self.three(&format!("xor.{suffix}"), bits, a, Leaf::Imm(sign)),
            (UnaryOp::Abs, 2) => return self.three(&format!("and.{suffix}"), bits, a, Leaf::Imm(sign - 1)),
            (UnaryOp::IsSignNegative, _) => {
                let d = self.three(&format!("and.{suffix}"), bits, a, Leaf::Imm(sign));
                return self.compare("ne", arithmetic(bits), bits, d, Leaf::Imm(0));
            }
            (UnaryOp::Signum, 2) => {
                let wide = self.widened(s, a);
                let d = self.float_unary(op, Scalar::F32, wide);
                return self.rounded(s, d);
            }
            (_, 2) => {
                let wide = self.widened(s, a);
                let d = self.float_unary(op, Scalar::F32, wide);
                return match op.row().result {
                    OpResult::Same => self.rounded(s, d),
                    _ => d,
                };
            }
            _ => {}
        }
        let ty = arithmetic(s);
        match op {
            UnaryOp::Neg => self.two(&format!("neg.{ty}"), s, a),
            UnaryOp::Abs => self.two(&format!("abs.{ty}"), s, a),
            UnaryOp::Signum => {
                let one = self.with_sign_of(s, constant(s, 1.0), a);
                let nan = self.compare("nan", ty, s, a, a);
                self.choose(nan, s, a, one)
            }
            UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc | UnaryOp::RoundTiesEven => {
                self.two(&format!("{}.{ty}.{ty}", op.row().ptx), s, a)
            }
            UnaryOp::Round => {
                // The integer part, one further from zero where half or more is left; both steps are exact.
                let whole = self.two(&format!("cvt.rzi.{ty}.{ty}"), s, a);
                let rest = self.three(&format!("sub.rn.{ty}"), s, a, whole);
                let rest = self.two(&format!("abs.{ty}"), s, rest);
                let away = self.compare("ge", ty, s, rest, constant(s, 0.5));
                let one = self.with_sign_of(s, constant(s, 1.0), a);
                let next = self.three(&format!("add.rn.{ty}"), s, whole, one);
                self.choose(away, s, next, whole)
            }
            UnaryOp::Fract => {
                let whole = self.two(&format!("cvt.rzi.{ty}.{ty}"), s, a);
                self.three(&format!("sub.rn.{ty}"), s, a, whole)
            }
            UnaryOp::Sqrt => self.two(&format!("sqrt.rn.{ty}"), s, a),
            UnaryOp::Recip => self.two(&format!("rcp.rn.{ty}"), s, a),
            UnaryOp::Rsqrt => {
                let root = self.two(&format!("sqrt.rn.{ty}"), s, a);
                self.two(&format!("rcp.rn.{ty}"), s, root)
            }
            UnaryOp::ToDegrees => self.three(
                &format!("mul.rn.{ty}"),
                s,
                a,
                constant(s, 180.0 / std::f64::consts::PI),
            ),
            UnaryOp::ToRadians => {
                // Rust divides pi by 180 in the type itself.
                let factor = if s == Scalar::F64 {
                    std::f64::consts::PI / 180.0
                } else {
                    f64::from(std::f32::consts::PI / 180.0)
                };
                self.three(&format!("mul.rn.{ty}"), s, a, constant(s, factor))
            }
            UnaryOp::IsNan => self.compare("nan", ty, s, a, a),
            UnaryOp::IsInfinite | UnaryOp::IsFinite => {
                let m = self.two(&format!("abs.{ty}"), s, a);
                let test = if op == UnaryOp::IsFinite { "lt" } else { "eq" };
                self.compare(test, ty, s, m, constant(s, f64::INFINITY))
            }
            // The library's operators were expanded into calls; the verifier admits no other.
            _ => a,
        }
    }

    /// The magnitude of `a` with the sign of `b`.
    fn with_sign_of(&mut self, s: Scalar, a: Leaf, b: Leaf) -> Leaf {
        let sign = 1u64 << (s.bits() - 1);
        let bits = bits_type(s);
        let suffix = super::integer::bits(bits);
        let magnitude = match a {
            Leaf::Imm(v) => Leaf::Imm(v & (sign - 1)),
            _ => self.three(&format!("and.{suffix}"), bits, a, Leaf::Imm(sign - 1)),
        };
        let sign = self.three(&format!("and.{suffix}"), bits, b, Leaf::Imm(sign));
        self.three(&format!("or.{suffix}"), bits, magnitude, sign)
    }

    pub(super) fn float_binary(&mut self, op: BinaryOp, s: Scalar, a: Leaf, b: Leaf) -> Leaf {
        if op == BinaryOp::Copysign {
            return self.with_sign_of(s, a, b);
        }
        if s.size() == 2 {
            let (a, b) = (self.widened(s, a), self.widened(s, b));
            let d = self.float_binary(op, Scalar::F32, a, b);
            return match op.row().result {
                OpResult::Same => self.rounded(s, d),
                _ => d,
            };
        }
        let ty = arithmetic(s);
        match op {
            // Without a rounding mode the assembler may contract them into a fused operation.
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul if self.kernel.contract => {
                self.three(&format!("{}.{ty}", op.row().ptx), s, a, b)
            }
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div => {
                self.three(&format!("{}.rn.{ty}", op.row().ptx), s, a, b)
            }
            BinaryOp::Min | BinaryOp::Max => self.three(&format!("{}.{ty}", op.row().ptx), s, a, b),
            // Unordered: true with NaN.
            BinaryOp::Ne => self.compare("neu", ty, s, a, b),
            BinaryOp::Eq | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
                self.compare(op.row().ptx, ty, s, a, b)
            }
            // The library's operators were expanded into calls; the verifier admits no other.
            _ => a,
        }
    }

    pub(super) fn ternary(&mut self, op: TernaryOp, s: Scalar, [a, b, c]: [Leaf; 3]) -> Leaf {
        match op {
            TernaryOp::Select => self.choose(a, s, b, c),
            TernaryOp::Clamp => {
                let low = self.binary(BinaryOp::Max, s, a, b, s);
                self.binary(BinaryOp::Min, s, low, c, s)
            }
            TernaryOp::Fma if s.size() == 2 => {
                let wide = [a, b, c].map(|x| self.widened(s, x));
                let d = self.ternary(op, Scalar::F32, wide);
                self.rounded(s, d)
            }
            TernaryOp::Fma => {
                let a = self.in_register(a, s);
                let d = self.out.register(s);
                let ty = arithmetic(s);
                emit!(self, "fma.rn.{ty} {d}, {a}, {}, {}", b.at(s), c.at(s));
                d
            }
        }
    }

    pub(super) fn unary(&mut self, op: UnaryOp, s: Scalar, a: Leaf) -> Leaf {
        if s.is_float() {
            self.float_unary(op, s, a)
        } else {
            self.integer_unary(op, s, a)
        }
    }

    pub(super) fn binary(&mut self, op: BinaryOp, s: Scalar, a: Leaf, b: Leaf, amount: Scalar) -> Leaf {
        if s.is_float() {
            self.float_binary(op, s, a, b)
        } else {
            self.integer_binary(op, s, a, b, amount)
        }
    }
}
