//! Operators: those that have instructions of their own, as a table by type; the host evaluates all others.

use super::super::Refusal;
use super::super::layout::What;
use super::super::lir::*;
use super::super::machine::{Cc, MOp};
use super::super::spread::Kind;
use super::super::tree::V;
use super::{Lower, Place};
use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::{BinaryOp, TernaryOp};

/// As which scalars lanes hold a type: small integers have 32 bits, of which those above theirs are zero.
pub(super) fn held(s: Scalar) -> Scalar {
    if s.size() < 4 { Scalar::U32 } else { s }
}

/// Bits of 32 or 64.
pub(super) fn bits_of(wide: bool) -> Scalar {
    if wide { Scalar::U64 } else { Scalar::U32 }
}

/// Whether an operator is one instruction on numbers as lanes hold them; what carries into the bits above small ones is cut off.
fn is_plain(operator: BinaryOp, s: Scalar) -> bool {
    use BinaryOp::*;
    match operator {
        Add | Sub | Mul => s.is_int() || matches!(s, Scalar::F32 | Scalar::F64),
        Div => matches!(s, Scalar::F32 | Scalar::F64),
        And | Or | Xor => s.is_int(),
        Min | Max => s.is_int() && (s.size() >= 4 || s.is_unsigned_int()),
        _ => false,
    }
}

/// Whether an operator compares numbers as lanes hold them.
fn compares(operator: BinaryOp, s: Scalar) -> bool {
    use BinaryOp::*;
    match operator {
        Eq | Ne => s.is_int() || matches!(s, Scalar::F32 | Scalar::F64),
        // Small numbers with a sign lie there without.
        Lt | Le | Gt | Ge => is_plain(Add, s) && (s.size() >= 4 || s.is_unsigned_int()),
        _ => false,
    }
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

/// The comparison of the same numbers in the other order.
fn turned(operator: BinaryOp) -> BinaryOp {
    match operator {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Ge => BinaryOp::Le,
        same => same,
    }
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
        if compares(operator, s) {
            if self.below(operator, s, a, b, out)? {
                return Ok(());
            }
            let x = self.x(a)?;
            let mut masks = [CURRENT; 2];
            for part in 0..self.parts(a) {
                let y = self.xo(b, part)?;
                masks[part] = self.compare(operator, held(s), x[part], y);
            }
            let [low, high] = masks;
            return self.mask_for(out, |lower, d| match wide {
                true => lower.put(I::MPair { d, low, high }),
                false => lower.put(I::MMov { d, s: low }),
            });
        }
        if is_plain(operator, s) && self.has(operator, held(s)) {
            let (x, to) = (self.x(a)?, self.vectors_for(out));
            for part in 0..self.parts(a) {
                let b = self.xo(b, part)?;
                self.two(operator, held(s), to[part], x[part], b);
            }
            if s.size() < 4 && matches!(operator, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul) {
                self.cut(to[0], s.size());
            }
            return self.settle(out, to, false);
        }
        match operator {
            BinaryOp::Shl | BinaryOp::Shr if s.size() >= 4 && self.has(operator, s) => {
                self.shift(operator, s, [a, b], out)
            }
            BinaryOp::Min | BinaryOp::Max if matches!(s, Scalar::F32 | Scalar::F64) => {
                // The processor gives the second operand where one is NaN; Rust the one that is not.
                let (x, y) = (self.x(a)?, self.x(b)?);
                let to = self.vectors_for(out);
                for part in 0..self.parts(out) {
                    let least = self.vector();
                    self.two(operator, s, least, y[part], X::R(x[part]));
                    let m = self.compare(BinaryOp::Ne, s, x[part], X::R(x[part]));
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
                let bits = bits_of(wide);
                for part in 0..self.parts(out) {
                    let (magnitude, bit) = (self.vector(), self.vector());
                    let (rest, top) = (self.splat(sign - 1), self.splat(sign));
                    self.two(BinaryOp::And, bits, magnitude, x[part], rest);
                    self.two(BinaryOp::And, bits, bit, y[part], top);
                    self.two(BinaryOp::Or, bits, to[part], magnitude, X::R(bit));
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

    pub(super) fn two(&mut self, op: BinaryOp, s: Scalar, d: R, a: R, b: X) {
        self.put(I::XBin { op, s, d, a, b });
    }

    /// Comparisons of what ascends from lane to lane with a number that all share.
    fn below(&mut self, operator: BinaryOp, s: Scalar, a: V, b: V, out: V) -> Result<bool, Refusal> {
        let (operator, a, b) = match self.spreads.kind(a) {
            Kind::Uniform => (turned(operator), b, a),
            _ => (operator, a, b),
        };
        // The last two ask whether it is not above the number: whether it is below the next one.
        let (equal, not, next) = match operator {
            BinaryOp::Lt => (false, false, false),
            BinaryOp::Ge => (false, true, false),
            BinaryOp::Eq => (true, false, false),
            BinaryOp::Ne => (true, true, false),
            BinaryOp::Le => (false, false, true),
            BinaryOp::Gt => (false, true, true),
            _ => return Ok(false),
        };
        if self.spreads.kind(a) != Kind::Affine(1)
            || self.spreads.kind(b) != Kind::Uniform
            || !s.is_int()
            || !equal && !self.spreads.is_small(a)
        {
            return Ok(false);
        }
        let (mut base, mut n) = (self.g(a)?, self.g(b)?);
        let (signed, w) = (s.is_signed_int(), !equal || s.size() == 8);
        if s.size() == 4 && w {
            for g in [&mut base, &mut n] {
                let d = self.general();
                self.put(I::GExtend { signed, d, a: *g });
                *g = G::R(d);
            }
        }
        if next {
            n = match n {
                G::Imm(n) if (0..i32::MAX).contains(&n) => G::Imm(n + 1),
                // In 64 bits there is a next one.
                _ if s.size() == 4 => {
                    let (op, d) = (GOp::Add, self.general());
                    self.put(I::GBin {
                        op,
                        w,
                        d,
                        a: n,
                        b: G::Imm(1),
                    });
                    G::R(d)
                }
                _ => return Ok(false),
            };
        }
        let below = Below {
            signed,
            base,
            n,
            equal,
            w,
            not,
        };
        let lazy = false;
        self.mask_for(out, |lower, d| lower.put(I::MBelow { below, d, lazy }))?;
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
        self.two(BinaryOp::And, Scalar::U32, d, d, b);
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
            TernaryOp::Clamp if s.is_int() && s.size() >= 4 && self.has(BinaryOp::Min, s) => {
                let (x, y, z) = (self.x(a)?, self.x(b)?, self.x(c)?);
                let to = self.vectors_for(out);
                for part in 0..self.parts(out) {
                    let t = self.vector();
                    self.two(BinaryOp::Max, s, t, x[part], X::R(y[part]));
                    self.two(BinaryOp::Min, s, to[part], t, X::R(z[part]));
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
