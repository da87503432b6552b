//! Casts: between widths of integers by sign or zeros, to and from floats as Rust's `as`.

use super::*;
use perpetua_ir::ir::Scalar;

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
        let halves = matches!(
            (from, to),
            (Scalar::F16, Scalar::F32) | (Scalar::F32, Scalar::F16)
        );
        if halves && self.target.converts_halves() {
            let (x, target) = (self.x(a)?, self.vectors_for(out));
            let (d, a) = (target[0], x[0]);
            self.put(I::XConvert { from, to, d, a });
            return self.settle(out, target, false);
        }
        let small = |s: Scalar| s.is_int() && s.size() < 4;
        let int = |s: Scalar| s.is_int() || s == Scalar::Bool;
        let float = |s: Scalar| matches!(s, Scalar::F32 | Scalar::F64);
        if !int(from) && !float(from) || !int(to) && !float(to) || to == Scalar::Bool {
            return self.call(default, pc, &[a], &[out], None);
        }
        // Small numbers have 32 bits by now, with their signs.
        let signed = from.is_signed_int();
        let source = match from {
            _ if int(from) && from.size() < 4 => Scalar::I32,
            _ => from,
        };
        let converts = match (float(from), float(to)) {
            (false, false) => true,
            (_, true) => self.target.converts(source, to),
            (true, false) => from == Scalar::F32 && to.size() == 4 && self.target.converts(from, to),
        };
        if !converts {
            return self.call(default, pc, &[a], &[out], None);
        }
        let mut x = self.x(a)?;
        if small(from) && signed && to.size() > from.size() {
            let (s, by) = (Scalar::I32, 32 - from.bits() as u8);
            let d = self.vector();
            for (op, a) in [(BinaryOp::Shl, x[0]), (BinaryOp::Shr, d)] {
                self.put(I::XShift { op, s, d, a, by });
            }
            x = [d, d];
        }
        let target = self.vectors_for(out);
        match (int(from), int(to)) {
            (true, true) => match (from.size() == 8, to.size() == 8) {
                (true, true) => return self.settle(out, x, false),
                (false, true) => {
                    let (from, to) = match signed {
                        true => (Scalar::I32, Scalar::I64),
                        false => (Scalar::U32, Scalar::U64),
                    };
                    self.resize(from, to, x, target);
                }
                (true, false) => {
                    self.resize(Scalar::U64, Scalar::U32, x, target);
                    if to.size() < 4 {
                        self.cut(target[0], to.size());
                    }
                }
                (false, false) => {
                    if to.size() >= 4 || to.size() > from.size() && !signed {
                        return self.settle(out, x, false);
                    }
                    let (d, s, masked) = (target[0], x[0], false);
                    self.put(I::XMov { d, s, masked });
                    self.cut(d, to.size());
                }
            },
            (false, true) if !self.target.saturates() => self.saturated(to, x[0], target[0]),
            _ => self.resize(source, to, x, target),
        }
        self.settle(out, target, false)
    }

    /// A conversion by instructions, whatever the sizes.
    fn resize(&mut self, from: Scalar, to: Scalar, x: [R; 2], target: [R; 2]) {
        match (from.size() == 8, to.size() == 8) {
            (false, true) => {
                for half in 0..2u8 {
                    let (d, a) = (target[usize::from(half)], x[0]);
                    self.put(I::XWiden { from, to, d, a, half });
                }
            }
            (true, false) => {
                let ([low, high], d) = (x, target[0]);
                self.put(I::XNarrow {
                    from,
                    to,
                    d,
                    low,
                    high,
                });
            }
            (both, _) => {
                for (d, a) in target.into_iter().zip(x).take(1 + usize::from(both)) {
                    self.put(I::XConvert { from, to, d, a });
                }
            }
        }
    }

    /// From `f32`, where the processor has one number for all that does not fit: all ones, or the least one.
    fn saturated(&mut self, to: Scalar, x: R, target: R) {
        let from = Scalar::F32;
        if to == Scalar::U32 {
            // The greater of NaN and zero is the second, zero; what is too great gives all ones.
            let zero = self.splat(0);
            self.two(BinaryOp::Max, from, target, x, zero);
            let (d, a) = (target, target);
            return self.put(I::XConvert { from, to, d, a });
        }
        // What does not fit gives the least number: right where it is too small.
        let raw = self.vector();
        self.put(I::XConvert {
            from,
            to,
            d: raw,
            a: x,
        });
        let limit = self.splat(u64::from(2_147_483_648f32.to_bits()));
        let great = self.compare(BinaryOp::Ge, from, x, limit);
        let nan = self.compare(BinaryOp::Ne, from, x, X::R(x));
        let (most, zero, held) = (self.vector(), self.vector(), self.vector());
        for (d, bits) in [(most, i32::MAX as u64), (zero, 0)] {
            let (a, wide) = (self.splat(bits), false);
            self.put(I::XLoad { d, a, wide });
        }
        for (d, m, a, b) in [(held, great, raw, most), (target, nan, held, zero)] {
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
}
