//! Masks, and what lanes outside them keep: in registers of their own (AVX-512), or as vectors whose lanes are all ones (AVX2).
//! The only part of the emitter in which the two differ by more than an instruction's form.

use super::*;

/// Comparisons as AVX-512 numbers them.
const EQUAL: u8 = 0;
const BELOW: u8 = 1;
const NOT_ABOVE: u8 = 2;
const UNEQUAL: u8 = 4;
const NOT_BELOW: u8 = 5;

impl Emitter<'_> {
    /// The mask `k` for one of the two vectors that scalars of 64 bits take; where it must be made, in the second scratch mask.
    pub(super) fn half_mask(&mut self, k: u8, part: usize, wide: bool) -> u8 {
        let to = self.k7;
        match (self.avx2, part) {
            (true, _) if wide => {
                let mut from = k;
                if part == 1 {
                    self.evex(Vop(Pp::P66, 3, false, 0x39), k, 0, Rm::Reg(to));
                    self.asm.immediate8(1);
                    from = to;
                }
                self.evex(op::PMOVSXDQ, to, 0, Rm::Reg(from));
                to
            }
            (false, 1) => {
                let half = self.half();
                self.asm.kshift(0x30, to, k, half);
                to
            }
            _ => k,
        }
    }

    /// All lanes of a gang are active.
    pub(super) fn all_lanes(&mut self) {
        let k = self.k;
        self.asm.kones(k, self.lanes);
    }

    /// Puts the masks of the two halves of the lanes together.
    pub(super) fn pair(&mut self, to: u8, low: u8, high: u8) {
        if self.avx2 {
            return self.even(to, low, high);
        }
        let (k7, half) = (self.k7, self.half());
        self.asm.kshift(0x32, k7, high, half);
        self.asm.klogic(0x45, to, low, k7);
    }

    /// The low halves of 64-bit lanes of two vectors, in order (AVX2).
    pub(super) fn even(&mut self, to: u8, low: u8, high: u8) {
        self.evex(Vop(Pp::None, 1, false, 0xC6), X0, low, Rm::Reg(high));
        self.asm.immediate8(0x88);
        self.evex(Vop(Pp::P66, 3, true, 0x00), to, 0, Rm::Reg(X0));
        self.asm.immediate8(0xD8);
    }

    /// A comparison, as AVX-512 has them; the first two scratch vectors are lost.
    pub(super) fn compare(&mut self, op: BinaryOp, s: Scalar, to: u8, a: u8, b: X) {
        let (op, predicate) = table::compare(op, s);
        if !self.avx2 {
            let (rm, b) = self.x_rm(b);
            self.asm.evex(op, to, a, rm, Ev { b, ..Ev::default() });
            return self.asm.immediate8(predicate);
        }
        let b = match b {
            X::R(r) => self.x_in(r, X1),
            X::Splat(at) => {
                self.splat(X1, Rm::Mem(Mem::at(STATE, at)), op.2);
                X1
            }
            X::State(at) => {
                self.evex(MOVUPS, X1, 0, Rm::Mem(Mem::at(STATE, at)));
                X1
            }
        };
        if op.3 == 0xC2 {
            self.evex(op, to, a, Rm::Reg(b));
            return self.asm.immediate8(predicate);
        }
        self.compare_integers(op, to, a, b, predicate);
    }

    /// AVX2 has equal and greater, of numbers with a sign: of others the highest bit is flipped first.
    fn compare_integers(&mut self, op: Vop, to: u8, mut a: u8, mut b: u8, predicate: u8) {
        let Vop(_, _, wide, opcode) = op;
        if opcode == 0x1E && !matches!(predicate, EQUAL | UNEQUAL) {
            let signs = self.constants + if wide { 64 } else { 32 };
            let signs = Rm::Mem(Mem::at(STATE, signs));
            self.evex(op::PXOR, X2, a, signs);
            self.evex(op::PXOR, X1, b, signs);
            (a, b) = (X2, X1);
        }
        let (equal, greater) = match wide {
            true => (Vop(Pp::P66, 2, false, 0x29), Vop(Pp::P66, 2, false, 0x37)),
            false => (Vop(Pp::P66, 1, false, 0x76), Vop(Pp::P66, 1, false, 0x66)),
        };
        match predicate {
            EQUAL | UNEQUAL => self.evex(equal, to, a, Rm::Reg(b)),
            BELOW | NOT_BELOW => self.evex(greater, to, b, Rm::Reg(a)),
            _ => self.evex(greater, to, a, Rm::Reg(b)),
        }
        if matches!(predicate, NOT_ABOVE | UNEQUAL | NOT_BELOW) {
            self.asm.complement(to);
        }
    }

    /// The lanes of `a` that are not zero.
    pub(super) fn not_zero(&mut self, to: u8, a: u8) {
        if self.avx2 {
            self.evex(op::PXOR, X1, X1, Rm::Reg(X1));
            self.compare_integers(op::PCMPD, to, a, X1, UNEQUAL);
        } else {
            self.evex(Vop(Pp::P66, 2, false, 0x27), to, a, Rm::Reg(a));
        }
    }

    /// To `cold` if an active lane's index is not below the length.
    pub(super) fn beyond(&mut self, regs: [R; 2], parts: u32, length: Length, view: i32, cold: Label) {
        let wide = parts > 1;
        let (k, k6, k7) = (self.k, self.k6, self.k7);
        let compare = if wide { op::PCMPUQ } else { op::PCMPUD };
        for (part, to) in [k6, k7].into_iter().enumerate().take(parts as usize) {
            // Comparisons may have used it up.
            match length {
                Length::Fixed(n) if part == 0 || self.avx2 => {
                    self.asm.mov_imm(RCX, u64::from(n));
                    self.splat_general(X1, RCX, wide);
                }
                Length::Fixed(_) => {}
                Length::Region => self.splat(X1, Rm::Mem(Mem::at(STATE, view + 8)), wide),
            }
            let a = self.x_in(regs[part], X0);
            if self.avx2 {
                self.compare_integers(compare, to, a, X1, BELOW);
            } else {
                self.evex(compare, to, a, Rm::Reg(X1));
                self.asm.immediate8(BELOW);
            }
        }
        if wide {
            self.pair(k7, k6, k7);
        }
        let inside = if wide { k7 } else { k6 };
        self.asm.ktest(inside, k, self.lanes);
        self.asm.jcc(Cc::Ae, cold);
    }

    /// To `to` if offsets in X3 differ from lane to lane, else that of all lanes into rcx. All lanes are active.
    pub(super) fn jump_if_several(&mut self, to: Label) {
        self.splat(X1, Rm::Reg(X3), false);
        if self.avx2 {
            self.evex(Vop(Pp::P66, 1, false, 0x76), X1, X1, Rm::Reg(X3));
            self.evex(Vop(Pp::None, 1, false, 0x50), RAX, 0, Rm::Reg(X1));
            self.asm.alu_imm(0x3B, false, Rm::Reg(RAX), (1 << self.lanes) - 1);
            self.asm.jcc(Cc::Ne, to);
        } else {
            let k7 = self.k7;
            self.evex(op::PCMPUD, k7, X1, Rm::Reg(X3));
            self.asm.immediate8(EQUAL);
            self.asm.kortest_all(k7, self.lanes);
            self.asm.jcc(Cc::Ae, to);
        }
        self.one(Vop(Pp::P66, 1, false, 0x7E), X3, 0, Rm::Reg(RCX));
    }

    /// A general register's value in all lanes.
    pub(super) fn splat_general(&mut self, to: u8, r: Gpr, wide: bool) {
        if self.avx2 {
            self.one(Vop(Pp::P66, 1, wide, 0x6E), to, 0, Rm::Reg(r));
            self.splat(to, Rm::Reg(to), wide);
        } else {
            self.evex(Vop(Pp::P66, 2, wide, 0x7C), to, 0, Rm::Reg(r));
        }
    }

    /// `to = k ? b : a`.
    pub(super) fn blend(&mut self, to: u8, a: u8, b: u8, k: u8, wide: bool) {
        if self.avx2 {
            self.evex(Vop(Pp::P66, 3, false, 0x4A), to, a, Rm::Reg(b));
            self.asm.immediate8(k << 4);
        } else {
            self.evex_k(Vop(Pp::P66, 2, wide, 0x64), to, a, Rm::Reg(b), k, false);
        }
    }

    /// Loads the lanes of a mask; zero elsewhere.
    pub(super) fn load_masked(&mut self, to: u8, at: Mem, k: u8, wide: bool) {
        if self.full {
            self.evex(MOVUPS, to, 0, Rm::Mem(at));
        } else if self.avx2 {
            self.evex(Vop(Pp::P66, 2, wide, 0x8C), to, k, Rm::Mem(at));
        } else {
            let op = if wide { MOVUPD } else { MOVUPS };
            self.evex_k(op, to, 0, Rm::Mem(at), k, true);
        }
    }

    /// Stores the lanes of a mask.
    pub(super) fn store_masked(&mut self, at: Mem, from: u8, k: u8, wide: bool) {
        if self.full {
            self.evex(MOVUPS_STORE, from, 0, Rm::Mem(at));
        } else if self.avx2 {
            self.evex(Vop(Pp::P66, 2, wide, 0x8E), from, k, Rm::Mem(at));
        } else {
            let op = if wide { MOVUPD_STORE } else { MOVUPS_STORE };
            self.evex_k(op, from, 0, Rm::Mem(at), k, false);
        }
    }

    /// Gathers the lanes of the second scratch mask, which is used up; zero elsewhere.
    pub(super) fn gather(&mut self, to: u8, at: Mem, wide: bool) {
        let k7 = self.k7;
        self.evex(op::PXOR, to, to, Rm::Reg(to));
        let gather = Vop(Pp::P66, 2, wide, 0x90);
        if self.avx2 {
            self.evex(gather, to, k7, Rm::Mem(at));
        } else {
            self.evex_k(gather, to, 0, Rm::Mem(at), k7, false);
        }
    }

    /// One in lanes of a mask, zero elsewhere.
    pub(super) fn ones(&mut self, to: u8, k: u8, one: i32) {
        let one = Rm::Mem(Mem::at(STATE, one));
        if self.avx2 {
            self.splat(X1, one, false);
            self.evex(op::PAND, to, k, Rm::Reg(X1));
        } else {
            self.evex_k(Vop(Pp::P66, 2, false, 0x58), to, 0, one, k, true);
        }
    }
}
