//! x86-64: instructions on vectors, and memory by lanes. What differs by how masks lie stands in `masks`.

use super::*;

const MOVAPS: Vop = Vop(Pp::P66, 1, false, 0x6F);
const MOVUPS: Vop = Vop(Pp::PF3, 1, false, 0x6F);
const MOVUPS_STORE: Vop = Vop(Pp::PF3, 1, false, 0x7F);

impl Assembler {
    /// An instruction whose last operand may be a scalar in memory, for all lanes.
    pub(super) fn with_source(&mut self, op: Vop, to: u8, second: u8, source: Source) {
        match source {
            Source::Reg(r) => self.evex(op, to, second, Rm::Reg(r)),
            Source::Mem(m) => self.evex(op, to, second, Rm::Mem(m)),
            Source::Splat(m) if self.bits.is_some() => {
                self.splat(op.2, X1, Rm::Mem(m));
                self.evex(op, to, second, Rm::Reg(X1));
            }
            Source::Splat(m) => {
                let ev = Ev {
                    b: true,
                    ..Ev::default()
                };
                self.evex_at(op, self.length, to, second, Rm::Mem(m), ev);
            }
        }
    }

    /// The upper half of a vector.
    fn extract(&mut self, to: u8, from: u8) {
        let op = match self.length {
            2 => Vop(Pp::P66, 3, true, 0x3B),
            _ => Vop(Pp::P66, 3, false, 0x39),
        };
        self.evex(op, from, 0, Rm::Reg(to));
        self.immediate8(1);
    }

    fn insert(&mut self, d: u8, low: u8, high: u8) {
        let op = match self.length {
            2 => Vop(Pp::P66, 3, true, 0x3A),
            _ => Vop(Pp::P66, 3, false, 0x38),
        };
        self.evex(op, d, low, Rm::Reg(high));
        self.immediate8(1);
    }

    /// The part of an access by offsets: the address, and the mask of its lanes in the second scratch mask, which such accesses use up.
    fn indexed(&mut self, size: u32, mut at: Mem, k: u8, part: usize) -> Mem {
        if let (1, Some((index, scale))) = (part, at.index) {
            self.extract(X2, index);
            at.index = Some((X2, scale));
        }
        let k = self.half_mask(k, part, size == 8);
        let [.., k7] = self.masks();
        self.kmov(k7, k);
        at
    }
}

impl Lanes for Assembler {
    fn masks(&self) -> [u8; 3] {
        if self.bits.is_some() {
            AVX2_MASKS
        } else {
            OWN_MASKS
        }
    }

    fn vmov(&mut self, to: u8, from: u8) {
        if to != from {
            self.evex(MOVAPS, to, 0, Rm::Reg(from));
        }
    }

    fn vload(&mut self, to: u8, from: Mem) {
        self.evex(MOVUPS, to, 0, Rm::Mem(from));
    }

    fn vstore(&mut self, to: Mem, from: u8) {
        self.evex(MOVUPS_STORE, from, 0, Rm::Mem(to));
    }

    fn zero(&mut self, to: u8) {
        self.evex(op::PXOR, to, to, Rm::Reg(to));
    }

    fn splat(&mut self, wide: bool, to: u8, from: Rm) {
        match from {
            Rm::Mem(_) => self.broadcast(to, from, wide),
            Rm::Reg(_) if self.bits.is_some() => {
                self.low(Vop(Pp::P66, 1, wide, 0x6E), to, 0, from);
                self.broadcast(to, Rm::Reg(to), wide);
            }
            Rm::Reg(_) => self.evex(Vop(Pp::P66, 2, wide, 0x7C), to, 0, from),
        }
    }

    fn binary(&mut self, op: BinaryOp, s: Scalar, to: u8, a: u8, b: Source) {
        match table::binary(op, s) {
            Some(op) => self.with_source(op, to, a, b),
            None => self.lacks(),
        }
    }

    fn unary(&mut self, op: UnaryOp, s: Scalar, to: u8, a: u8) {
        let Some((op, imm)) = table::unary(op, s) else {
            return self.lacks();
        };
        self.evex(op, to, 0, Rm::Reg(a));
        if let Some(imm) = imm {
            self.immediate8(imm);
        }
    }

    fn vshift(&mut self, op: BinaryOp, s: Scalar, to: u8, a: u8, by: u8) {
        let (op, which) = table::shift(op, s);
        self.evex(op, which, to, Rm::Reg(a));
        self.immediate8(by);
    }

    fn convert(&mut self, from: Scalar, to: Scalar, d: u8, a: u8) {
        match (from, to) {
            (Scalar::F16, Scalar::F32) => {
                self.evex(Vop(Pp::PF3, 2, false, 0x33), a, 0, Rm::Reg(X1));
                self.evex(Vop(Pp::P66, 2, false, 0x13), d, 0, Rm::Reg(X1));
            }
            (Scalar::F32, Scalar::F16) => {
                self.evex(Vop(Pp::P66, 3, false, 0x1D), a, 0, Rm::Reg(X1));
                // To the nearest, of two the even one.
                self.immediate8(0);
                self.evex(Vop(Pp::P66, 2, false, 0x33), d, 0, Rm::Reg(X1));
            }
            _ => match table::convert(from, to) {
                Some(op) => self.evex(op, d, 0, Rm::Reg(a)),
                None => self.lacks(),
            },
        }
    }

    fn widen(&mut self, from: Scalar, to: Scalar, d: u8, mut a: u8, half: u8) {
        if half == 1 {
            self.extract(X1, a);
            a = X1;
        }
        self.convert(from, to, d, a);
    }

    fn narrow(&mut self, from: Scalar, to: Scalar, d: u8, low: u8, high: u8) {
        let Some(op) = table::convert(from, to) else {
            return self.lacks();
        };
        let moves = !from.is_float() && !to.is_float();
        if moves && self.bits.is_some() {
            return self.even(d, low, high);
        }
        for (from, to) in [(low, X0), (high, X1)] {
            // A move has its source in the other field.
            if moves {
                self.evex(op, from, 0, Rm::Reg(to));
            } else {
                self.evex(op, to, 0, Rm::Reg(from));
            }
        }
        self.insert(d, X0, X1);
    }

    fn fma(&mut self, wide: bool, to: u8, a: u8, b: u8, c: u8) {
        let (form213, form231) = (Vop(Pp::P66, 2, wide, 0xA8), Vop(Pp::P66, 2, wide, 0xB8));
        if to == a {
            self.evex(form213, to, b, Rm::Reg(c));
        } else if to == b {
            self.evex(form213, to, a, Rm::Reg(c));
        } else {
            self.vmov(to, c);
            self.evex(form231, to, a, Rm::Reg(b));
        }
    }

    fn kmov(&mut self, to: u8, from: u8) {
        if to != from {
            self.kmov_rm(to, Rm::Reg(from));
        }
    }

    fn kload(&mut self, to: u8, from: Mem) {
        self.kmov_rm(to, Rm::Mem(from));
    }

    fn kstore(&mut self, to: Mem, from: u8) {
        match self.bits {
            None => self.vex(Vop(Pp::None, 1, false, 0x91), false, from, 0, Rm::Mem(to)),
            Some(_) => self.vex(Vop(Pp::P66, 1, false, 0x7F), true, from, 0, Rm::Mem(to)),
        }
    }

    fn mask_of_bits(&mut self, k: u8, r: Gpr) {
        let Some(bits) = self.bits else {
            return self.vex(Vop(Pp::None, 1, false, 0x92), false, k, 0, Rm::Reg(r));
        };
        self.vex(Vop(Pp::P66, 1, false, 0x6E), false, k, 0, Rm::Reg(r));
        self.vex(Vop(Pp::P66, 2, false, 0x58), true, k, 0, Rm::Reg(k));
        self.vex(Vop(Pp::P66, 1, false, 0xDB), true, k, k, Rm::Mem(bits));
        self.vex(Vop(Pp::P66, 1, false, 0x76), true, k, k, Rm::Mem(bits));
    }

    fn bits_of_mask(&mut self, r: Gpr, k: u8) {
        match self.bits {
            None => self.vex(Vop(Pp::None, 1, false, 0x93), false, r, 0, Rm::Reg(k)),
            Some(_) => self.vex(Vop(Pp::None, 1, false, 0x50), true, r, 0, Rm::Reg(k)),
        }
    }

    fn kset(&mut self, k: u8, ones: bool) {
        self.logic(if ones { 0x46 } else { 0x47 }, k, k, k);
    }

    fn klogic(&mut self, op: MOp, to: u8, a: u8, b: u8) {
        self.logic(op as u8, to, a, b);
    }

    fn kjump(&mut self, none: bool, k: u8, to: Label) {
        match self.bits {
            None => self.vex(Vop(Pp::None, 1, false, 0x98), false, k, 0, Rm::Reg(k)),
            Some(_) => self.vex(Vop(Pp::P66, 2, false, 0x17), true, k, 0, Rm::Reg(k)),
        }
        self.jcc(if none { Cc::E } else { Cc::Ne }, to);
    }

    fn kall(&mut self, k: u8) {
        match self.bits {
            Some(_) => self.logic(0x46, k, k, k),
            None => self.vex(Vop(self.half_prefix(), 1, false, 0x46), true, k, k, Rm::Reg(k)),
        }
    }

    fn kjump_all(&mut self, k: u8, all: Label, none: Option<Label>) {
        if self.bits.is_some() {
            self.bits_of_mask(RAX, k);
            self.alu_imm(Alu::Compare, false, Rm::Reg(RAX), 0xFF);
            self.jcc(Cc::E, all);
            if none.is_some() {
                self.test(false, RAX);
            }
        } else {
            // Carry: all are in.
            self.vex(Vop(self.half_prefix(), 1, false, 0x98), false, k, 0, Rm::Reg(k));
            self.jcc(Cc::B, all);
        }
        if let Some(none) = none {
            self.jcc(Cc::E, none);
        }
    }

    fn kinside(&mut self, k: u8, active: u8, none: Option<Label>, some: Label) {
        // Zero: none of the active ones is in; carry: all are.
        match self.bits {
            None => self.vex(
                Vop(self.half_prefix(), 1, false, 0x99),
                false,
                k,
                0,
                Rm::Reg(active),
            ),
            Some(_) => self.vex(Vop(Pp::P66, 2, false, 0x17), true, k, 0, Rm::Reg(active)),
        }
        if let Some(none) = none {
            self.jcc(Cc::E, none);
        }
        self.jcc(Cc::Ae, some);
    }

    fn several(&mut self, x: u8, to: Label) {
        self.broadcast(X1, Rm::Reg(x), false);
        if self.bits.is_some() {
            self.evex(Vop(Pp::P66, 1, false, 0x76), X1, X1, Rm::Reg(x));
            self.evex(Vop(Pp::None, 1, false, 0x50), RAX, 0, Rm::Reg(X1));
            self.alu_imm(Alu::Compare, false, Rm::Reg(RAX), 0xFF);
            self.jcc(Cc::Ne, to);
        } else {
            let [.., k7] = self.masks();
            self.compare(BinaryOp::Eq, Scalar::U32, k7, X1, Source::Reg(x));
            self.vex(Vop(self.half_prefix(), 1, false, 0x98), false, k7, 0, Rm::Reg(k7));
            self.jcc(Cc::Ae, to);
        }
        self.low(Vop(Pp::P66, 1, false, 0x7E), x, 0, Rm::Reg(RCX));
    }

    fn first_lanes(&mut self, k: u8) {
        self.mov_imm(RCX, u64::from(u32::MAX));
        // bzhi: the low bits of all ones.
        self.vex(Vop(Pp::None, 2, false, 0xF5), false, RAX, RAX, Rm::Reg(RCX));
        self.mask_of_bits(k, RAX);
    }

    fn half_mask(&mut self, k: u8, part: usize, wide: bool) -> u8 {
        let [.., to] = self.masks();
        match (self.bits.is_some(), part) {
            (true, _) if wide => {
                let mut from = k;
                if part == 1 {
                    self.extract(to, k);
                    from = to;
                }
                self.evex(op::PMOVSXDQ, to, 0, Rm::Reg(from));
                to
            }
            (false, 1) => {
                self.kshift(0x30, to, k);
                to
            }
            _ => k,
        }
    }

    fn pair(&mut self, to: u8, low: u8, high: u8) {
        if self.bits.is_some() {
            return self.even(to, low, high);
        }
        let [.., k7] = self.masks();
        self.kshift(0x32, k7, high);
        self.logic(0x45, to, low, k7);
    }

    fn compare(&mut self, op: BinaryOp, s: Scalar, to: u8, a: u8, b: Source) {
        let (op, number) = table::compare(op, s);
        if self.bits.is_none() || s.is_float() {
            self.with_source(op, to, a, b);
            return self.immediate8(number);
        }
        let b = match b {
            Source::Reg(r) => r,
            Source::Splat(m) => {
                self.splat(op.2, X1, Rm::Mem(m));
                X1
            }
            Source::Mem(m) => {
                self.vload(X1, m);
                X1
            }
        };
        self.compare_integers(op, to, a, b, number);
    }

    fn not_zero(&mut self, to: u8, a: u8) {
        if self.bits.is_some() {
            self.zero(X1);
            self.compare(BinaryOp::Ne, Scalar::U32, to, a, Source::Reg(X1));
        } else {
            self.evex(Vop(Pp::P66, 2, false, 0x27), to, a, Rm::Reg(a));
        }
    }

    fn ones(&mut self, to: u8, k: u8, one: Mem) {
        if self.bits.is_some() {
            self.splat(false, X1, Rm::Mem(one));
            self.evex(op::PAND, to, k, Rm::Reg(X1));
        } else {
            self.evex_k(Vop(Pp::P66, 2, false, 0x58), to, 0, Rm::Mem(one), k, true);
        }
    }

    fn blend(&mut self, wide: bool, to: u8, a: u8, b: u8, k: u8) {
        if self.bits.is_some() {
            self.evex(Vop(Pp::P66, 3, false, 0x4A), to, a, Rm::Reg(b));
            self.immediate8(k << 4);
        } else {
            self.evex_k(Vop(Pp::P66, 2, wide, 0x64), to, a, Rm::Reg(b), k, false);
        }
    }

    fn load_run(&mut self, size: u32, to: u8, at: Mem, k: Option<u8>, part: usize) {
        // Mask register 0 stands for all lanes.
        let k = k.map_or(0, |k| self.half_mask(k, part, size == 8));
        let at = Rm::Mem(at);
        match size {
            1 => self.evex_k(Vop(Pp::P66, 2, false, 0x31), to, 0, at, k, k != 0),
            2 => self.evex_k(Vop(Pp::P66, 2, false, 0x33), to, 0, at, k, k != 0),
            _ if k == 0 => self.evex(MOVUPS, to, 0, at),
            _ if self.bits.is_some() => self.evex(Vop(Pp::P66, 2, size == 8, 0x8C), to, k, at),
            _ => self.evex_k(Vop(Pp::PF3, 1, size == 8, 0x6F), to, 0, at, k, true),
        }
    }

    fn store_run(&mut self, size: u32, at: Mem, from: u8, k: Option<u8>, part: usize) {
        let k = k.map_or(0, |k| self.half_mask(k, part, size == 8));
        let at = Rm::Mem(at);
        match size {
            1 => self.evex_k(Vop(Pp::PF3, 2, false, 0x31), from, 0, at, k, false),
            2 => self.evex_k(Vop(Pp::PF3, 2, false, 0x33), from, 0, at, k, false),
            _ if k == 0 => self.evex(MOVUPS_STORE, from, 0, at),
            _ if self.bits.is_some() => self.evex(Vop(Pp::P66, 2, size == 8, 0x8E), from, k, at),
            _ => self.evex_k(Vop(Pp::PF3, 1, size == 8, 0x7F), from, 0, at, k, false),
        }
    }

    fn store_own(&mut self, size: u32, at: Mem, from: u8, k: u8, part: usize) {
        self.store_run(size, at, from, Some(k), part);
    }

    fn gather(&mut self, size: u32, to: u8, at: Mem, k: u8, part: usize) {
        let at = Rm::Mem(self.indexed(size, at, k, part));
        let ([.., k7], gather) = (self.masks(), Vop(Pp::P66, 2, size == 8, 0x90));
        self.zero(to);
        match self.bits {
            Some(_) => self.evex(gather, to, k7, at),
            None => self.evex_k(gather, to, 0, at, k7, false),
        }
    }

    /// AVX2 has none: see `Target::scatters`.
    fn scatter(&mut self, size: u32, at: Mem, from: u8, k: u8, part: usize) {
        if self.bits.is_some() {
            return self.lacks();
        }
        let at = Rm::Mem(self.indexed(size, at, k, part));
        let [.., k7] = self.masks();
        self.evex_k(Vop(Pp::P66, 2, size == 8, 0xA0), from, 0, at, k7, false);
    }
}
