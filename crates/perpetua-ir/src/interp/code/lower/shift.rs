//! Shifts and rotations of 32 and 64 bits.

use super::super::assemble::Pp;
use super::operation::widened;
use super::*;
use crate::ops::BinaryOp;

impl Lower<'_> {
    pub(super) fn shift(
        &mut self,
        operator: BinaryOp,
        s: Scalar,
        [a, b]: [V; 2],
        out: V,
    ) -> Result<(), Refusal> {
        let wide = s.size() == 8;
        let (x, to) = (self.x(a)?, self.vectors_for(out));
        let by = self.spreads.constant(b).map(|n| n & u64::from(s.bits() - 1));
        let left = operator == BinaryOp::Shl;
        let arithmetic = !left && s.is_signed_int();
        for part in 0..self.parts(out) {
            let (d, a) = (to[part], x[part]);
            if let Some(by) = by {
                let (opcode, which) = match (arithmetic, left, wide) {
                    (true, ..) => (0x72, 4),
                    (_, true, false) => (0x72, 6),
                    (_, false, false) => (0x72, 2),
                    (_, true, true) => (0x73, 6),
                    (_, false, true) => (0x73, 2),
                };
                let op = Vop(Pp::P66, 1, wide, opcode);
                let by = by as u8;
                self.put(I::XShift { op, which, d, a, by });
                continue;
            }
            let amount = self.x(b)?[part];
            let low = self.vector();
            let bits = self.splat(u64::from(s.bits() - 1));
            let and = if wide { op::PANDQ } else { op::PAND };
            self.put(I::XBin {
                op: and,
                d: low,
                a: amount,
                b: bits,
                imm: None,
            });
            let opcode = match (arithmetic, left) {
                (true, _) => 0x46,
                (_, true) => 0x47,
                _ => 0x45,
            };
            self.put(I::XBin {
                op: Vop(Pp::P66, 2, wide, opcode),
                d,
                a,
                b: X::R(low),
                imm: None,
            });
        }
        self.settle(out, to, false)
    }

    pub(super) fn rotation(
        &mut self,
        operator: BinaryOp,
        s: Scalar,
        [a, b]: [V; 2],
        out: V,
    ) -> Result<(), Refusal> {
        let wide = s.size() == 8;
        let (x, y, to) = (self.x(a)?, self.x(b)?, self.vectors_for(out));
        let opcode = if operator == BinaryOp::RotateLeft {
            0x15
        } else {
            0x14
        };
        let op = Vop(Pp::P66, 2, wide, opcode);
        for part in 0..self.parts(out) {
            if self.has(op) {
                self.two(op, to[part], x[part], X::R(y[part]));
                continue;
            }
            // There and back: by the amount, and by what is left of the bits.
            let regs: [R; 6] = std::array::from_fn(|_| self.vector());
            let [zero, less, there, back, left, right] = regs;
            let (and, or) = (widened(op::PAND, wide), widened(op::POR, wide));
            let sub = if wide { op::PSUBQ } else { op::PSUBD };
            let (none, bits) = (self.splat(0), self.splat(u64::from(s.bits() - 1)));
            self.put(I::XLoad {
                d: zero,
                a: none,
                wide,
            });
            self.two(sub, less, zero, X::R(y[part]));
            self.two(and, there, y[part], bits);
            self.two(and, back, less, bits);
            let (shl, shr) = (Vop(Pp::P66, 2, wide, 0x47), Vop(Pp::P66, 2, wide, 0x45));
            let (one, other) = match operator {
                BinaryOp::RotateLeft => (shl, shr),
                _ => (shr, shl),
            };
            self.two(one, left, x[part], X::R(there));
            self.two(other, right, x[part], X::R(back));
            self.two(or, to[part], left, X::R(right));
        }
        self.settle(out, to, false)
    }
}
