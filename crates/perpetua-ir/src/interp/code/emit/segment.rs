//! Segments of a row: where they end, and whether their gangs need checks. See `lower::segment`.

use super::nest::state;
use super::*;

/// More lanes than a row has.
const MANY: u64 = i32::MAX as u64;

impl Emitter<'_> {
    pub(super) fn segment(&mut self) {
        self.asm.place(self.nest.segment);
        self.all_lanes();
        self.asm.mov(true, RAX, state(ROW_END));
        self.asm.store(8, Mem::at(STATE, SEGMENT_END), RAX);
    }

    /// Bytes of entries, of a number of lanes: so many bits more.
    fn entry_bits(&self) -> u8 {
        (GANG_BYTES as u32 / self.lanes).trailing_zeros() as u8
    }

    /// The segment ends before the first gang for which a comparison has another result: one that begins with a gang whose lanes
    /// differ has that gang alone.
    pub(super) fn bound(&mut self, below: Below) {
        let lanes = self.lanes;
        self.g_copy(below.n, RAX);
        self.g_alu(0x2B, below.w || !below.equal, RAX, below.base);
        let asm = &mut self.asm;
        asm.mov_imm(RCX, MANY);
        if !below.equal {
            // All later lanes are beyond it, too.
            asm.cmov(if below.signed { Cc::Le } else { Cc::Be }, RAX, Rm::Reg(RCX));
        }
        asm.alu(0x3B, true, RAX, Rm::Reg(RCX));
        asm.cmov(Cc::A, RAX, Rm::Reg(RCX));
        asm.alu_imm(0x23, true, Rm::Reg(RAX), -(lanes as i32));
        asm.mov_imm(RCX, lanes.into());
        asm.alu(0x3B, true, RAX, Rm::Reg(RCX));
        asm.cmov(Cc::B, RAX, Rm::Reg(RCX));
        let bits = self.entry_bits();
        let asm = &mut self.asm;
        asm.shift_imm(4, true, RAX, bits);
        asm.alu(0x03, true, RAX, Rm::Reg(GANG_AT));
        let later = asm.label();
        asm.alu(0x3B, true, RAX, state(SEGMENT_END));
        asm.jcc(Cc::Ae, later);
        asm.store(8, Mem::at(STATE, SEGMENT_END), RAX);
        asm.place(later);
    }

    /// Lanes from the segment's first gang to its last one, in rdx, which stays until the proofs are done.
    pub(super) fn ends(&mut self) {
        let (bits, lanes) = (self.entry_bits(), self.lanes as i32);
        let asm = &mut self.asm;
        asm.mov(true, RDX, state(SEGMENT_END));
        asm.alu(0x2B, true, RDX, Rm::Reg(GANG_AT));
        asm.shift_imm(5, true, RDX, bits);
        asm.alu_imm(0x2B, true, Rm::Reg(RDX), lanes);
    }

    /// Both ends are compared: between them no sum passes the greatest number, for it would have come by the limit.
    pub(super) fn prove(&mut self, index: Rooted, more: i32, limit: i32) {
        self.sum(index, RAX);
        let unproven = self.nest.unproven;
        self.asm.alu(0x3B, true, RAX, state(limit));
        self.asm.jcc(Cc::Ae, unproven);
        if index.lane.is_some() {
            self.asm.alu(0x03, true, RAX, Rm::Reg(RDX));
        }
        if more > 0 {
            self.asm.alu_imm(0x03, true, Rm::Reg(RAX), more);
        }
        if index.lane.is_some() || more > 0 {
            self.asm.alu(0x3B, true, RAX, state(limit));
            self.asm.jcc(Cc::Ae, unproven);
        }
    }

    /// Gangs with this mask run without checks, or none.
    pub(super) fn proven(&mut self, all: u64) {
        let unproven = self.nest.unproven;
        let asm = &mut self.asm;
        let known = asm.label();
        asm.mov_imm(RAX, all);
        asm.jmp(known);
        asm.place(unproven);
        asm.mov_imm(RAX, 0);
        asm.place(known);
        asm.store(8, Mem::at(STATE, FULL), RAX);
    }

    /// A sum, in this register.
    pub(super) fn sum(&mut self, index: Rooted, to: Gpr) {
        let parts = [index.lane, index.sum].into_iter().flatten();
        let mut first = true;
        for r in parts {
            match first {
                true => self.g_copy(G::R(r), to),
                false => self.g_alu(0x03, true, to, G::R(r)),
            }
            first = false;
        }
        if first {
            self.asm.mov_imm(to, i64::from(index.constant) as u64);
        } else if index.constant != 0 {
            self.asm.alu_imm(0x03, true, Rm::Reg(to), index.constant);
        }
    }

    pub(super) fn jump_if_whole(&mut self, m: R, to: Label) {
        let lanes = self.lanes;
        let k = self.m_in(m, self.k7);
        if self.avx2 {
            self.asm.kmov_to(RAX, k);
            self.asm.alu_imm(0x3B, false, Rm::Reg(RAX), (1 << lanes) - 1);
            self.asm.jcc(Cc::E, to);
        } else {
            self.asm.kortest_all(k, lanes);
            self.asm.jcc(Cc::B, to);
        }
    }

    /// Gangs that have all their lanes again go on without masks, unless checks may fail.
    pub(super) fn come_together(&mut self) {
        for [start, back, to] in std::mem::take(&mut self.together) {
            let (k, lanes, avx2) = (self.k, self.lanes, self.avx2);
            let asm = &mut self.asm;
            asm.place(start);
            asm.alu_imm(0x3B, true, state(FULL), 0);
            asm.jcc(Cc::Ne, to);
            if !avx2 {
                // What stands behind asks whether there are lanes.
                asm.kortest_all(k, lanes);
            }
            asm.jmp(back);
        }
    }
}
