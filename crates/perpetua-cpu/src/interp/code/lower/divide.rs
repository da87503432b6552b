//! Division and remainder of integers. Faults, and what is too large, are left to the call.

use super::operation::bits_of;
use super::*;
use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::BinaryOp;

impl Lower<'_> {
    /// Integer division by way of `f64`, which is exact below 2⁵²: of whole numbers that are not a multiple the quotient is farther
    /// from the next whole number than rounding takes it. What is larger, negative in 64 bits, or faults, the host divides.
    #[expect(clippy::too_many_arguments, reason = "the parts of one operation")]
    pub(super) fn quotient(
        &mut self,
        pc: u32,
        what: What,
        operator: BinaryOp,
        s: Scalar,
        [a, b]: [V; 2],
        out: V,
        skip: Option<Label>,
    ) -> Result<(), Refusal> {
        let wide = s.size() == 8;
        if wide && !(self.has(BinaryOp::Mul, s) && self.target.converts(Scalar::U64, Scalar::F64)) {
            return self.call(what, pc, &[a, b], &[out], skip);
        }
        let (signed, bits) = (s.is_signed_int(), bits_of(wide));
        // Where the processor converts numbers with a sign alone, others are taken for such.
        let unsigned = !signed && self.target.converts(Scalar::U32, Scalar::F64);
        let (x, y, to) = (self.x(a)?, self.x(b)?, self.vectors_for(out));
        let mut masks = [CURRENT; 2];
        for part in 0..self.parts(a) {
            let zero = self.splat(0);
            let m = self.compare(BinaryOp::Eq, bits, y[part], zero);
            if wide {
                let both = self.vector();
                self.two(BinaryOp::Or, bits, both, x[part], X::R(y[part]));
                let limit = self.splat(1 << 52);
                let large = self.compare(BinaryOp::Ge, bits, both, limit);
                self.logic(MOp::Or, m, m, large);
            } else if signed {
                let minus = self.splat(u64::from(u32::MAX));
                let minus = self.compare(BinaryOp::Eq, bits, y[part], minus);
                self.logic(MOp::Or, m, m, minus);
            } else if !unsigned {
                let both = self.vector();
                self.two(BinaryOp::Or, bits, both, x[part], X::R(y[part]));
                let limit = self.splat(1 << 31);
                let large = self.compare(BinaryOp::Ge, bits, both, limit);
                self.logic(MOp::Or, m, m, large);
            }
            masks[part] = m;
        }
        let suspect = self.mask();
        match (wide, masks) {
            (true, [low, high]) => self.put(I::MPair {
                d: suspect,
                low,
                high,
            }),
            (false, [m, _]) => self.put(I::MMov { d: suspect, s: m }),
        }
        self.logic(MOp::And, suspect, suspect, CURRENT);
        let (fast, done) = (self.label(), self.label());
        self.put(I::MJumpNone { m: suspect, to: fast });
        self.call(what, pc, &[a, b], &[out], skip)?;
        if let Some(site) = self.out.sites.last_mut() {
            site.always = false;
        }
        self.put(I::Jump(done));
        self.put(I::Label(fast));
        let narrow = if unsigned { Scalar::U32 } else { Scalar::I32 };
        let mut quotients = [R(0); 2];
        for half in 0..2u8 {
            let part = usize::from(half);
            let (p, q, r) = (self.vector(), self.vector(), self.vector());
            for (d, from) in [(p, x), (q, y)] {
                if wide {
                    let (from, to, a) = (Scalar::U64, Scalar::F64, from[part]);
                    self.put(I::XConvert { from, to, d, a });
                } else {
                    let (from, to, a) = (narrow, Scalar::F64, from[0]);
                    self.put(I::XWiden { from, to, d, a, half });
                }
            }
            self.two(BinaryOp::Div, Scalar::F64, r, p, X::R(q));
            quotients[part] = r;
        }
        let result = [self.vector(), self.vector()];
        let [low, high] = quotients;
        if wide {
            for part in 0..2 {
                let (from, to, d, a) = (Scalar::F64, Scalar::U64, result[part], quotients[part]);
                self.put(I::XConvert { from, to, d, a });
            }
        } else {
            let (from, to, d) = (Scalar::F64, narrow, result[0]);
            self.put(I::XNarrow {
                from,
                to,
                d,
                low,
                high,
            });
        }
        for part in 0..self.parts(out) {
            if operator == BinaryOp::Rem {
                let back = self.vector();
                self.two(BinaryOp::Mul, bits, back, result[part], X::R(y[part]));
                self.two(BinaryOp::Sub, bits, to[part], x[part], X::R(back));
            } else {
                let (d, s) = (to[part], result[part]);
                self.put(I::XMov { d, s, masked: false });
            }
        }
        self.put(I::Label(done));
        self.settle(out, to, false)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one operation")]
    pub(super) fn divide(
        &mut self,
        pc: u32,
        operator: BinaryOp,
        s: Scalar,
        [a, b]: [V; 2],
        first: u32,
        out: V,
        skip: Label,
    ) -> Result<(), Refusal> {
        let what = What::Divide(operator, s, first);
        if let Some(d) = self.scalar_for(out) {
            return self.divided(pc, what, operator, s, [a, b], d, skip);
        }
        if s.size() >= 4 {
            return self.quotient(pc, what, operator, s, [a, b], out, Some(skip));
        }
        self.call(what, pc, &[a, b], &[out], Some(skip))
    }

    /// A division of scalars.
    #[expect(clippy::too_many_arguments, reason = "the parts of one operation")]
    pub(super) fn divided(
        &mut self,
        pc: u32,
        what: What,
        operator: BinaryOp,
        s: Scalar,
        [a, b]: [V; 2],
        d: R,
        skip: Label,
    ) -> Result<(), Refusal> {
        let (a, b, size) = (self.g(a)?, self.g(b)?, s.size());
        let ins = [(Operand::One(a), size), (Operand::One(b), size)];
        let site = self.site(what, pc, &ins, &[(Operand::One(G::R(d)), size)]);
        self.put(I::GDivide {
            site,
            signed: s.is_signed_int(),
            w: size == 8,
            remainder: operator == BinaryOp::Rem,
            d,
            a,
            b,
            skip,
        });
        Ok(())
    }
}
