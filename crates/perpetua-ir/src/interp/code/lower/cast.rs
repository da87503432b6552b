//! Casts: between widths of integers by sign or zeros, to and from floats as Rust's `as`.

use super::super::assemble::Pp;
use super::*;
use crate::ir::Scalar;

impl Lower<'_> {
    pub(super) fn cast(&mut self, pc: u32, from: Scalar, to: Scalar, a: V, out: V) -> Result<(), Refusal> {
        let default = What::Cast(from, to);
        if let Some(d) = self.scalar_for(out) {
            let a = self.g(a)?;
            if to.size() > from.size() {
                let signed = from.is_signed_int();
                self.put(I::GExtend { signed, d, a });
            } else {
                self.put(I::GMov {
                    w: to.size() == 8,
                    d,
                    s: a,
                });
            }
            return Ok(());
        }
        let small = |s: Scalar| s.is_int() && s.size() < 4;
        let int = |s: Scalar| s.is_int() || s == Scalar::Bool;
        if !int(from) && !matches!(from, Scalar::F32 | Scalar::F64) || to == Scalar::Bool {
            return self.call(default, pc, &[a], &[out], None);
        }
        let unsigned = from == Scalar::U32 || from.is_int() && from.size() == 8;
        if self.avx2 && (unsigned && to.is_float() || from.is_float() && to == Scalar::U32) {
            return self.call(default, pc, &[a], &[out], None);
        }
        let mut x = self.x(a)?;
        // With its sign, as 32 bits.
        if small(from) && from.is_signed_int() && to.size() > from.size() {
            let by = 32 - from.bits() as u8;
            let d = self.vector();
            for (which, a) in [(6, x[0]), (4, d)] {
                let op = Vop(Pp::P66, 1, false, 0x72);
                self.put(I::XShift { op, which, d, a, by });
            }
            x = [d, d];
        }
        let signed = from.is_signed_int();
        let target = self.vectors_for(out);
        let halves = |lower: &mut Self, op: Vop, reversed: bool| {
            let [low, high] = x;
            let d = target[0];
            lower.put(I::XNarrow {
                op,
                reversed,
                d,
                low,
                high,
            });
        };
        let widen = |lower: &mut Self, op: Vop| {
            for half in 0..2u8 {
                let (d, a) = (target[usize::from(half)], x[0]);
                lower.put(I::XWiden { op, d, a, half });
            }
        };
        let each = |lower: &mut Self, op: Vop, parts: usize| {
            for part in 0..parts {
                let (d, a) = (target[part], X::R(x[part]));
                let imm = None;
                lower.put(I::XUnary { op, d, a, imm });
            }
        };
        match (from, to) {
            _ if int(from) && to.is_int() => match (from.size() == 8, to.size() == 8) {
                (true, true) => return self.settle(out, x, false),
                (false, true) if signed => widen(self, op::PMOVSXDQ),
                (false, true) => widen(self, op::PMOVZXDQ),
                (true, false) => {
                    halves(self, op::PMOVQD, true);
                    if to.size() < 4 {
                        self.cut(target[0], to.size());
                    }
                }
                (false, false) => {
                    if to.size() >= 4 || to.size() > from.size() && !signed {
                        return self.settle(out, x, false);
                    }
                    let d = target[0];
                    self.put(I::XMov {
                        d,
                        s: x[0],
                        masked: false,
                    });
                    self.cut(d, to.size());
                }
            },
            (_, Scalar::F32) if int(from) && from.size() <= 4 => {
                let unsigned = from == Scalar::U32;
                each(self, if unsigned { op::CVTUDQ2PS } else { op::CVTDQ2PS }, 1);
            }
            (_, Scalar::F64) if int(from) && from.size() <= 4 => {
                let unsigned = from == Scalar::U32;
                widen(self, if unsigned { op::CVTUDQ2PD } else { op::CVTDQ2PD });
            }
            (_, Scalar::F32) if int(from) => {
                halves(self, if signed { op::CVTQQ2PS } else { op::CVTUQQ2PS }, false);
            }
            (_, Scalar::F64) if int(from) => {
                each(self, if signed { op::CVTQQ2PD } else { op::CVTUQQ2PD }, 2);
            }
            (Scalar::F32, Scalar::F64) => widen(self, op::CVTPS2PD),
            (Scalar::F64, Scalar::F32) => halves(self, op::CVTPD2PS, false),
            (Scalar::F32, Scalar::U32) => {
                // The greater of NaN and zero is the second, zero; what is too great gives all ones.
                let d = target[0];
                let b = self.splat(0);
                self.put(I::XBin {
                    op: Vop(Pp::None, 1, false, 0x5F),
                    d,
                    a: x[0],
                    b,
                    imm: None,
                });
                let (op, a, imm) = (op::CVTTPS2UDQ, X::R(d), None);
                self.put(I::XUnary { op, d, a, imm });
            }
            (Scalar::F32, Scalar::I32) => {
                // What does not fit gives the least number: right where it is too small.
                let raw = self.vector();
                let imm = None;
                let (op, a) = (op::CVTTPS2DQ, X::R(x[0]));
                self.put(I::XUnary { op, d: raw, a, imm });
                let limit = self.splat(u64::from(2_147_483_648f32.to_bits()));
                let great = self.compare(op::CMPPS, x[0], limit, 0x0D);
                let nan = self.compare(op::CMPPS, x[0], X::R(x[0]), 3);
                let (most, zero, held) = (self.vector(), self.vector(), self.vector());
                let a = self.splat(i32::MAX as u64);
                self.put(I::XLoad {
                    d: most,
                    a,
                    wide: false,
                });
                let a = self.splat(0);
                self.put(I::XLoad {
                    d: zero,
                    a,
                    wide: false,
                });
                for (d, m, a, b) in [(held, great, raw, most), (target[0], nan, held, zero)] {
                    let (wide, part) = (false, None);
                    self.put(I::XBlend {
                        wide,
                        part,
                        d,
                        m,
                        a,
                        b,
                    });
                }
            }
            _ => return self.call(default, pc, &[a], &[out], None),
        }
        self.settle(out, target, false)
    }
}
