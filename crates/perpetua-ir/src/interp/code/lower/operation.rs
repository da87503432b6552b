//! Operators: those that have instructions of their own, as a table by type; the host evaluates all others.

use super::super::Refusal;
use super::super::assemble::Cc;
use super::super::layout::What;
use super::super::lir::*;
use super::super::spread::Kind;
use super::super::tree::V;
use super::{Lower, Place};
use crate::ir::Scalar;
use crate::ops::{BinaryOp, TernaryOp};

/// Instructions on vectors.
pub(in super::super) mod op {
    use super::super::super::assemble::{Pp, Vop};

    pub(in super::super::super) const PADDD: Vop = Vop(Pp::P66, 1, false, 0xFE);
    pub(in super::super::super) const PADDQ: Vop = Vop(Pp::P66, 1, true, 0xD4);
    pub(in super::super::super) const PSUBD: Vop = Vop(Pp::P66, 1, false, 0xFA);
    pub(in super::super::super) const PSUBQ: Vop = Vop(Pp::P66, 1, true, 0xFB);
    pub(in super::super::super) const PMULLD: Vop = Vop(Pp::P66, 2, false, 0x40);
    pub(in super::super::super) const PMULLQ: Vop = Vop(Pp::P66, 2, true, 0x40);
    pub(in super::super::super) const PAND: Vop = Vop(Pp::P66, 1, false, 0xDB);
    pub(in super::super::super) const POR: Vop = Vop(Pp::P66, 1, false, 0xEB);
    pub(in super::super::super) const PXOR: Vop = Vop(Pp::P66, 1, false, 0xEF);
    pub(in super::super::super) const PANDQ: Vop = Vop(Pp::P66, 1, true, 0xDB);
    pub(in super::super::super) const PCMPD: Vop = Vop(Pp::P66, 3, false, 0x1F);
    pub(in super::super::super) const PCMPQ: Vop = Vop(Pp::P66, 3, true, 0x1F);
    pub(in super::super::super) const PCMPUD: Vop = Vop(Pp::P66, 3, false, 0x1E);
    pub(in super::super::super) const PCMPUQ: Vop = Vop(Pp::P66, 3, true, 0x1E);
    pub(in super::super::super) const CMPPS: Vop = Vop(Pp::None, 1, false, 0xC2);
    pub(in super::super::super) const CMPPD: Vop = Vop(Pp::P66, 1, true, 0xC2);
    /// From one vector of 64-bit lanes to half a vector of 32-bit ones.
    pub(in super::super::super) const PMOVQD: Vop = Vop(Pp::PF3, 2, false, 0x35);
    pub(in super::super::super) const PMOVSXDQ: Vop = Vop(Pp::P66, 2, false, 0x25);
    pub(in super::super::super) const PMOVZXDQ: Vop = Vop(Pp::P66, 2, false, 0x35);
    pub(in super::super::super) const CVTPS2PD: Vop = Vop(Pp::None, 1, false, 0x5A);
    pub(in super::super::super) const CVTDQ2PD: Vop = Vop(Pp::PF3, 1, false, 0xE6);
    pub(in super::super::super) const CVTUDQ2PD: Vop = Vop(Pp::PF3, 1, false, 0x7A);
    pub(in super::super::super) const CVTPD2PS: Vop = Vop(Pp::P66, 1, true, 0x5A);
    pub(in super::super::super) const CVTQQ2PS: Vop = Vop(Pp::None, 1, true, 0x5B);
    pub(in super::super::super) const CVTUQQ2PS: Vop = Vop(Pp::PF2, 1, true, 0x7A);
    pub(in super::super::super) const CVTQQ2PD: Vop = Vop(Pp::PF3, 1, true, 0xE6);
    pub(in super::super::super) const CVTUQQ2PD: Vop = Vop(Pp::PF3, 1, true, 0x7A);
    pub(in super::super::super) const CVTDQ2PS: Vop = Vop(Pp::None, 1, false, 0x5B);
    pub(in super::super::super) const CVTUDQ2PS: Vop = Vop(Pp::PF2, 1, false, 0x7A);
    pub(in super::super::super) const CVTTPS2DQ: Vop = Vop(Pp::PF3, 1, false, 0x5B);
    pub(in super::super::super) const CVTTPD2DQ: Vop = Vop(Pp::P66, 1, true, 0xE6);
    pub(in super::super::super) const CVTTPD2UDQ: Vop = Vop(Pp::None, 1, true, 0x78);
    pub(in super::super::super) const CVTTPD2UQQ: Vop = Vop(Pp::P66, 1, true, 0x78);
    pub(in super::super::super) const DIVPD: Vop = Vop(Pp::P66, 1, true, 0x5E);
    pub(in super::super::super) const PORQ: Vop = Vop(Pp::P66, 1, true, 0xEB);
    pub(in super::super::super) const CVTTPS2UDQ: Vop = Vop(Pp::None, 1, false, 0x78);
}

use super::super::assemble::{Pp, Vop};

/// The instruction of a binary operator that one instruction does, on 32- and 64-bit scalars.
fn plain(operator: BinaryOp, s: Scalar) -> Option<Vop> {
    use BinaryOp::*;
    let wide = s.size() == 8;
    Some(match s {
        Scalar::F32 | Scalar::F64 => {
            let opcode = match operator {
                Add => 0x58,
                Mul => 0x59,
                Sub => 0x5C,
                Div => 0x5E,
                _ => return None,
            };
            Vop(if wide { Pp::P66 } else { Pp::None }, 1, wide, opcode)
        }
        _ if s.is_int() && s.size() >= 4 => match operator {
            Add if wide => op::PADDQ,
            Add => op::PADDD,
            Sub if wide => op::PSUBQ,
            Sub => op::PSUBD,
            Mul if wide => op::PMULLQ,
            Mul => op::PMULLD,
            And => op::PAND,
            Or => op::POR,
            Xor => op::PXOR,
            Min if s.is_signed_int() => Vop(Pp::P66, 2, wide, 0x39),
            Min => Vop(Pp::P66, 2, wide, 0x3B),
            Max if s.is_signed_int() => Vop(Pp::P66, 2, wide, 0x3D),
            Max => Vop(Pp::P66, 2, wide, 0x3F),
            _ => return None,
        },
        // Kept in 32-bit lanes, with zeros above: what carries into them is cut off.
        _ if s.is_int() => match operator {
            Add => op::PADDD,
            Sub => op::PSUBD,
            Mul => op::PMULLD,
            And => op::PAND,
            Or => op::POR,
            Xor => op::PXOR,
            Min if s.is_unsigned_int() => Vop(Pp::P66, 2, false, 0x3B),
            Max if s.is_unsigned_int() => Vop(Pp::P66, 2, false, 0x3F),
            _ => return None,
        },
        _ => return None,
    })
}

/// The 64-bit form of a bitwise operation, so that a splatted operand has 64 bits.
pub(super) fn widened(vop: Vop, wide: bool) -> Vop {
    match vop {
        Vop(pp, 1, false, opcode @ (0xDB | 0xEB | 0xEF)) if wide => Vop(pp, 1, true, opcode),
        other => other,
    }
}

/// A comparison: instruction and its number.
fn comparison(operator: BinaryOp, s: Scalar) -> Option<(Vop, u8)> {
    use BinaryOp::*;
    let number = [Eq, Lt, Le, Ne, Ge, Gt].iter().position(|o| *o == operator)?;
    let wide = s.size() == 8;
    Some(match s {
        Scalar::F32 | Scalar::F64 => {
            let predicate = [0x00, 0x01, 0x02, 0x04, 0x0D, 0x0E][number];
            (if wide { op::CMPPD } else { op::CMPPS }, predicate)
        }
        Scalar::Bool | Scalar::F16 | Scalar::BF16 => return None,
        // Only equality is the same for numbers with a sign that lie there without.
        _ if s.is_signed_int() && s.size() < 4 && !matches!(operator, Eq | Ne) => return None,
        _ => {
            let predicate = [0, 1, 2, 4, 5, 6][number];
            let vop = match (s.is_signed_int() && s.size() >= 4, wide) {
                (true, true) => op::PCMPQ,
                (true, false) => op::PCMPD,
                (false, true) => op::PCMPUQ,
                (false, false) => op::PCMPUD,
            };
            (vop, predicate)
        }
    })
}

fn condition(operator: BinaryOp, signed: bool) -> Option<Cc> {
    Some(match operator {
        BinaryOp::Eq => Cc::E,
        BinaryOp::Ne => Cc::Ne,
        BinaryOp::Lt if signed => Cc::L,
        BinaryOp::Lt => Cc::B,
        BinaryOp::Le if signed => Cc::Le,
        BinaryOp::Le => Cc::Be,
        BinaryOp::Gt if signed => Cc::G,
        BinaryOp::Gt => Cc::A,
        BinaryOp::Ge if signed => Cc::Ge,
        BinaryOp::Ge => Cc::Ae,
        _ => return None,
    })
}

fn scalar_operation(operator: BinaryOp, signed: bool) -> Option<GOp> {
    Some(match operator {
        BinaryOp::Add => GOp::Add,
        BinaryOp::Sub => GOp::Sub,
        BinaryOp::Mul => GOp::Mul,
        BinaryOp::And => GOp::And,
        BinaryOp::Or => GOp::Or,
        BinaryOp::Xor => GOp::Xor,
        BinaryOp::Shl => GOp::Shl,
        BinaryOp::Shr if signed => GOp::Sar,
        BinaryOp::Shr => GOp::Shr,
        BinaryOp::Min => GOp::Choose(if signed { Cc::L } else { Cc::B }),
        BinaryOp::Max => GOp::Choose(if signed { Cc::G } else { Cc::A }),
        _ => return None,
    })
}

impl Lower<'_> {
    pub(super) fn binary(
        &mut self,
        pc: u32,
        operator: BinaryOp,
        s: Scalar,
        [a, b]: [V; 2],
        out: V,
    ) -> Result<(), Refusal> {
        let wide = s.size() == 8;
        if let Some(d) = self.scalar_for(out) {
            if matches!(operator, BinaryOp::Div | BinaryOp::Rem) {
                let end = self.out.end;
                return self.divided(pc, What::Binary(operator, s), operator, s, [a, b], d, end);
            }
            let (a, b) = (self.g(a)?, self.g(b)?);
            let signed = s.is_signed_int();
            if let Some(cc) = condition(operator, signed) {
                self.put(I::GCompare { w: wide, cc, d, a, b });
                return Ok(());
            }
            let op = scalar_operation(operator, signed);
            let op = op.ok_or(Refusal::Unknown("a scalar operator"))?;
            self.put(I::GBin { op, w: wide, d, a, b });
            return Ok(());
        }
        if s == Scalar::Bool {
            let (x, y) = (self.m(a)?, self.m(b)?);
            let op = match operator {
                BinaryOp::And => MOp::And,
                BinaryOp::Or => MOp::Or,
                BinaryOp::Xor | BinaryOp::Ne => MOp::Xor,
                BinaryOp::Eq => MOp::Xnor,
                _ => return self.call(What::Binary(operator, s), pc, &[a, b], &[out], None),
            };
            return self.mask_for(out, |lower, d| lower.logic(op, d, x, y));
        }
        if let Some((vop, predicate)) = comparison(operator, s) {
            if self.below(operator, s, a, b, out)? {
                return Ok(());
            }
            let x = self.x(a)?;
            let mut masks = [CURRENT; 2];
            for part in 0..self.parts(a) {
                let y = self.xo(b, part)?;
                masks[part] = self.compare(vop, x[part], y, predicate);
            }
            let [low, high] = masks;
            return self.mask_for(out, |lower, d| match wide {
                true => lower.put(I::MPair { d, low, high }),
                false => lower.put(I::MMov { d, s: low }),
            });
        }
        if let Some(vop) = plain(operator, s).filter(|op| self.has(*op)) {
            let vop = widened(vop, wide);
            let (x, to) = (self.x(a)?, self.vectors_for(out));
            for part in 0..self.parts(a) {
                let b = self.xo(b, part)?;
                let (d, a) = (to[part], x[part]);
                self.put(I::XBin {
                    op: vop,
                    d,
                    a,
                    b,
                    imm: None,
                });
            }
            if s.size() < 4 && matches!(operator, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul) {
                self.cut(to[0], s.size());
            }
            return self.settle(out, to, false);
        }
        match operator {
            BinaryOp::Shr if self.avx2 && s == Scalar::I64 => {
                self.call(What::Binary(operator, s), pc, &[a, b], &[out], None)
            }
            BinaryOp::Shl | BinaryOp::Shr if s.size() >= 4 => self.shift(operator, s, [a, b], out),
            BinaryOp::Min | BinaryOp::Max if matches!(s, Scalar::F32 | Scalar::F64) => {
                // The processor gives the second operand where one is NaN; Rust the one that is not.
                let (x, y) = (self.x(a)?, self.x(b)?);
                let to = self.vectors_for(out);
                let pp = if wide { Pp::P66 } else { Pp::None };
                let opcode = if operator == BinaryOp::Min { 0x5D } else { 0x5F };
                for part in 0..self.parts(out) {
                    let least = self.vector();
                    self.put(I::XBin {
                        op: Vop(pp, 1, wide, opcode),
                        d: least,
                        a: y[part],
                        b: X::R(x[part]),
                        imm: None,
                    });
                    let compare = if wide { op::CMPPD } else { op::CMPPS };
                    let m = self.compare(compare, x[part], X::R(x[part]), 3);
                    self.put(I::XBlend {
                        wide,
                        part: None,
                        d: to[part],
                        m,
                        a: least,
                        b: y[part],
                    });
                }
                self.settle(out, to, false)
            }
            BinaryOp::RotateLeft | BinaryOp::RotateRight if s.size() >= 4 => {
                self.rotation(operator, s, [a, b], out)
            }
            BinaryOp::Copysign if matches!(s, Scalar::F32 | Scalar::F64) => {
                let (x, y, to) = (self.x(a)?, self.x(b)?, self.vectors_for(out));
                let sign = 1u64 << (s.bits() - 1);
                let (and, or) = (widened(op::PAND, wide), widened(op::POR, wide));
                for part in 0..self.parts(out) {
                    let (magnitude, bit) = (self.vector(), self.vector());
                    let (rest, top) = (self.splat(sign - 1), self.splat(sign));
                    self.two(and, magnitude, x[part], rest);
                    self.two(and, bit, y[part], top);
                    self.two(or, to[part], magnitude, X::R(bit));
                }
                self.settle(out, to, false)
            }
            BinaryOp::Div | BinaryOp::Rem if s.is_int() && s.size() >= 4 => {
                let what = What::Binary(operator, s);
                self.quotient(pc, what, operator, s, [a, b], out, None)
            }
            _ => self.call(What::Binary(operator, s), pc, &[a, b], &[out], None),
        }
    }

    pub(super) fn two(&mut self, op: Vop, d: R, a: R, b: X) {
        let imm = None;
        self.put(I::XBin { op, d, a, b, imm });
    }

    /// Comparisons of the lane's index with a number that all lanes share.
    fn below(&mut self, operator: BinaryOp, s: Scalar, a: V, b: V, out: V) -> Result<bool, Refusal> {
        let not = match operator {
            BinaryOp::Lt => false,
            BinaryOp::Ge => true,
            _ => return Ok(false),
        };
        if self.spreads.kind(a) != Kind::Affine(1)
            || self.spreads.kind(b) != Kind::Uniform
            || !self.spreads.is_small(a)
        {
            return Ok(false);
        }
        let (mut base, mut n) = (self.g(a)?, self.g(b)?);
        let signed = s.is_signed_int();
        if s.size() == 4 {
            for g in [&mut base, &mut n] {
                let d = self.general();
                self.put(I::GExtend { signed, d, a: *g });
                *g = G::R(d);
            }
        }
        self.mask_for(out, |lower, d| {
            lower.put(I::MBelow { signed, d, base, n });
            if not {
                lower.logic(MOp::AndNot, d, d, CURRENT);
            }
        })?;
        Ok(true)
    }

    /// A result that is a mask, put where it belongs.
    pub(super) fn mask_for(&mut self, out: V, make: impl FnOnce(&mut Self, R)) -> Result<(), Refusal> {
        match self.place(out) {
            Place::Mask(d) => make(self, d),
            _ => return Err(Refusal::Unknown("a `bool` that is no mask")),
        }
        Ok(())
    }

    /// Zeros above a scalar of one or two bytes.
    pub(super) fn cut(&mut self, d: R, size: u32) {
        let b = self.splat(u64::MAX >> (64 - 8 * size));
        self.put(I::XBin {
            op: op::PAND,
            d,
            a: d,
            b,
            imm: None,
        });
    }

    pub(super) fn ternary(
        &mut self,
        pc: u32,
        operator: TernaryOp,
        s: Scalar,
        [a, b, c]: [V; 3],
        out: V,
    ) -> Result<(), Refusal> {
        let wide = s.size() == 8;
        match operator {
            TernaryOp::Select => {
                if let Some(d) = self.scalar_for(out) {
                    let (c, a, b) = (self.g(a)?, self.g(b)?, self.g(c)?);
                    self.put(I::GSelect { d, c, a, b });
                    return Ok(());
                }
                let m = self.m(a)?;
                if s == Scalar::Bool {
                    let (yes, no) = (self.m(b)?, self.m(c)?);
                    let (one, other) = (self.mask(), self.mask());
                    self.logic(MOp::And, one, m, yes);
                    self.logic(MOp::AndNot, other, m, no);
                    return self.mask_for(out, |lower, d| lower.logic(MOp::Or, d, one, other));
                }
                let (yes, no, to) = (self.x(b)?, self.x(c)?, self.vectors_for(out));
                for part in 0..self.parts(out) {
                    self.put(I::XBlend {
                        wide,
                        part: Some(part as u8),
                        d: to[part],
                        m,
                        a: no[part],
                        b: yes[part],
                    });
                }
                self.settle(out, to, false)
            }
            TernaryOp::Clamp if s.is_int() && (s.size() == 4 || s.size() == 8 && !self.avx2) => {
                let (least, most) = match s.is_signed_int() {
                    true => (0x3D, 0x39),
                    false => (0x3F, 0x3B),
                };
                let (x, y, z) = (self.x(a)?, self.x(b)?, self.x(c)?);
                let to = self.vectors_for(out);
                for part in 0..self.parts(out) {
                    let t = self.vector();
                    self.two(Vop(Pp::P66, 2, wide, least), t, x[part], X::R(y[part]));
                    self.two(Vop(Pp::P66, 2, wide, most), to[part], t, X::R(z[part]));
                }
                self.settle(out, to, false)
            }
            TernaryOp::Fma if matches!(s, Scalar::F32 | Scalar::F64) => {
                let (x, y, z) = (self.x(a)?, self.x(b)?, self.x(c)?);
                let to = self.vectors_for(out);
                for part in 0..self.parts(out) {
                    let (d, a, b, c) = (to[part], x[part], y[part], z[part]);
                    self.put(I::XFma { wide, d, a, b, c });
                }
                self.settle(out, to, false)
            }
            _ => self.call(What::Ternary(operator, s), pc, &[a, b, c], &[out], None),
        }
    }
}
