//! Operators of one operand.

use super::operation::bits_of;
use super::*;
use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::{BinaryOp, UnaryOp};

impl Lower<'_> {
    pub(super) fn unary(
        &mut self,
        pc: u32,
        operator: UnaryOp,
        s: Scalar,
        a: V,
        out: V,
    ) -> Result<(), Refusal> {
        let wide = s.size() == 8;
        if let Some(d) = self.scalar_for(out) {
            let a = self.g(a)?;
            if s == Scalar::Bool {
                let (op, b) = (GOp::Xor, G::Imm(1));
                self.put(I::GBin {
                    op,
                    w: false,
                    d,
                    a,
                    b,
                });
            } else {
                let which = if operator == UnaryOp::Neg { 3 } else { 2 };
                self.put(I::GUnary { which, w: wide, d, a });
            }
            return Ok(());
        }
        let float = matches!(s, Scalar::F32 | Scalar::F64);
        let int = s.is_int() && s.size() >= 4;
        let sign = 1u64 << (s.bits() - 1);
        let all = u64::MAX >> (64 - s.bits());
        // One operand and a constant.
        let bitwise = match operator {
            UnaryOp::Neg if float => Some((BinaryOp::Xor, sign)),
            UnaryOp::Abs if float => Some((BinaryOp::And, sign - 1)),
            UnaryOp::Not if s.is_int() => Some((BinaryOp::Xor, all)),
            _ => None,
        };
        if let Some((op, bits)) = bitwise {
            let (x, to) = (self.x(a)?, self.vectors_for(out));
            for part in 0..self.parts(out) {
                let b = self.splat(bits);
                self.two(op, bits_of(wide), to[part], x[part], b);
            }
            return self.settle(out, to, false);
        }
        use UnaryOp::*;
        let one = match operator {
            Sqrt | RoundTiesEven | Floor | Ceil | Trunc => float,
            LeadingZeros => s.is_int() && s.size() == 4,
            Abs => int,
            _ => false,
        };
        if one && self.target.has_unary(operator, s) {
            let to = self.vectors_for(out);
            let x = self.x(a)?;
            for (d, a) in to.into_iter().zip(x).take(self.parts(out)) {
                self.put(I::XUnary {
                    op: operator,
                    s,
                    d,
                    a,
                });
            }
            return self.settle(out, to, false);
        }
        match operator {
            UnaryOp::Not if s == Scalar::Bool => {
                let m = self.m(a)?;
                self.mask_for(out, |lower, d| lower.logic(MOp::AndNot, d, m, CURRENT))
            }
            UnaryOp::Neg if int => {
                let (x, to) = (self.x(a)?, self.vectors_for(out));
                for part in 0..self.parts(out) {
                    let zero = self.vector();
                    let a = self.splat(0);
                    self.put(I::XLoad { d: zero, a, wide });
                    self.two(BinaryOp::Sub, s, to[part], zero, X::R(x[part]));
                }
                self.settle(out, to, false)
            }
            UnaryOp::Recip | UnaryOp::Rsqrt if float => {
                let (x, to) = (self.x(a)?, self.vectors_for(out));
                let one = match wide {
                    true => 1f64.to_bits(),
                    false => u64::from(1f32.to_bits()),
                };
                for part in 0..self.parts(out) {
                    let ones = self.vector();
                    let a = self.splat(one);
                    self.put(I::XLoad { d: ones, a, wide });
                    let mut by = x[part];
                    if operator == UnaryOp::Rsqrt {
                        by = self.vector();
                        let (op, d, a) = (Sqrt, by, x[part]);
                        self.put(I::XUnary { op, s, d, a });
                    }
                    self.two(BinaryOp::Div, s, to[part], ones, X::R(by));
                }
                self.settle(out, to, false)
            }
            UnaryOp::IsNan if float => {
                let (x, mut masks) = (self.x(a)?, [CURRENT; 2]);
                for part in 0..self.parts(a) {
                    masks[part] = self.compare(BinaryOp::Ne, s, x[part], X::R(x[part]));
                }
                let [low, high] = masks;
                self.mask_for(out, |lower, d| match wide {
                    true => lower.put(I::MPair { d, low, high }),
                    false => lower.put(I::MMov { d, s: low }),
                })
            }
            _ => self.call(What::Unary(operator, s), pc, &[a], &[out], None),
        }
    }
}
