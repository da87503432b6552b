//! Operators of one operand.

use super::super::assemble::Pp;
use super::operation::widened;
use super::*;
use crate::ir::Scalar;
use crate::ops::UnaryOp;

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
        let pp = if wide { Pp::P66 } else { Pp::None };
        let sign = 1u64 << (s.bits() - 1);
        let all = u64::MAX >> (64 - s.bits());
        let with = |vop: Vop, bits: u64| Some((vop, bits));
        // One operand and a constant.
        let bitwise = match operator {
            UnaryOp::Neg if float => with(op::PXOR, sign),
            UnaryOp::Abs if float => with(op::PAND, sign - 1),
            UnaryOp::Not if s.is_int() => with(op::PXOR, all),
            _ => None,
        };
        if let Some((vop, bits)) = bitwise {
            let (x, to) = (self.x(a)?, self.vectors_for(out));
            for part in 0..self.parts(out) {
                let b = self.splat(bits);
                self.put(I::XBin {
                    op: widened(vop, wide),
                    d: to[part],
                    a: x[part],
                    b,
                    imm: None,
                });
            }
            return self.settle(out, to, false);
        }
        let round = |way: u8| {
            let op = Vop(Pp::P66, 3, wide, if wide { 0x09 } else { 0x08 });
            Some((op, Some(8 | way)))
        };
        let one = match operator {
            UnaryOp::Sqrt if float => Some((Vop(pp, 1, wide, 0x51), None)),
            UnaryOp::RoundTiesEven if float => round(0),
            UnaryOp::Floor if float => round(1),
            UnaryOp::Ceil if float => round(2),
            UnaryOp::Trunc if float => round(3),
            UnaryOp::LeadingZeros if s.is_int() && s.size() == 4 => {
                Some((Vop(Pp::P66, 2, false, 0x44), None))
            }
            UnaryOp::Abs if int => Some((Vop(Pp::P66, 2, wide, if wide { 0x1F } else { 0x1E }), None)),
            _ => None,
        };
        if let Some((op, imm)) = one.filter(|(op, _)| self.has(*op)) {
            let to = self.vectors_for(out);
            let x = self.x(a)?;
            for (d, a) in to.into_iter().zip(x).take(self.parts(out)) {
                let a = X::R(a);
                self.put(I::XUnary { op, d, a, imm });
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
                    self.put(I::XBin {
                        op: if wide { op::PSUBQ } else { op::PSUBD },
                        d: to[part],
                        a: zero,
                        b: X::R(x[part]),
                        imm: None,
                    });
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
                        self.put(I::XUnary {
                            op: Vop(pp, 1, wide, 0x51),
                            d: by,
                            a: X::R(x[part]),
                            imm: None,
                        });
                    }
                    self.put(I::XBin {
                        op: Vop(pp, 1, wide, 0x5E),
                        d: to[part],
                        a: ones,
                        b: X::R(by),
                        imm: None,
                    });
                }
                self.settle(out, to, false)
            }
            UnaryOp::IsNan if float => {
                let (x, mut masks) = (self.x(a)?, [CURRENT; 2]);
                for part in 0..self.parts(a) {
                    let compare = if wide { op::CMPPD } else { op::CMPPS };
                    masks[part] = self.compare(compare, x[part], X::R(x[part]), 3);
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
