//! Shifts and rotations of 32 and 64 bits.

use super::operation::bits_of;
use super::*;
use perpetua_ir::ops::BinaryOp;

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
        for part in 0..self.parts(out) {
            let (d, a) = (to[part], x[part]);
            if let Some(by) = by {
                let (op, by) = (operator, by as u8);
                self.put(I::XShift { op, s, d, a, by });
                continue;
            }
            let (amount, low) = (self.x(b)?[part], self.vector());
            let bits = self.splat(u64::from(s.bits() - 1));
            self.two(BinaryOp::And, bits_of(wide), low, amount, bits);
            self.two(operator, s, d, a, X::R(low));
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
        let s = bits_of(wide);
        for part in 0..self.parts(out) {
            if self.has(operator, s) {
                self.two(operator, s, to[part], x[part], X::R(y[part]));
                continue;
            }
            // There and back: by the amount, and by what is left of the bits.
            let regs: [R; 6] = std::array::from_fn(|_| self.vector());
            let [zero, less, there, back, left, right] = regs;
            let (none, bits) = (self.splat(0), self.splat(u64::from(s.bits() - 1)));
            self.put(I::XLoad {
                d: zero,
                a: none,
                wide,
            });
            self.two(BinaryOp::Sub, s, less, zero, X::R(y[part]));
            self.two(BinaryOp::And, s, there, y[part], bits);
            self.two(BinaryOp::And, s, back, less, bits);
            let (one, other) = match operator {
                BinaryOp::RotateLeft => (BinaryOp::Shl, BinaryOp::Shr),
                _ => (BinaryOp::Shr, BinaryOp::Shl),
            };
            self.two(one, s, left, x[part], X::R(there));
            self.two(other, s, right, x[part], X::R(back));
            self.two(BinaryOp::Or, s, to[part], left, X::R(right));
        }
        self.settle(out, to, false)
    }
}
