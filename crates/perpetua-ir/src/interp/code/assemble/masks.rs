//! Instructions on masks: registers of 16 bits (AVX-512), or vectors whose lanes are all ones or zero (AVX2).

use super::{Assembler, Gpr, Mem, Pp, Rm, Vop, narrow};

impl Assembler {
    /// From bits.
    pub(in super::super) fn kmov_from(&mut self, k: u8, r: Gpr) {
        let Some(bits) = self.bits else {
            return self.vex(Vop(Pp::None, 1, false, 0x92), false, k, 0, Rm::Reg(r));
        };
        self.vex(Vop(Pp::P66, 1, false, 0x6E), false, k, 0, Rm::Reg(r));
        self.vex(Vop(Pp::P66, 2, false, 0x58), true, k, 0, Rm::Reg(k));
        self.vex(Vop(Pp::P66, 1, false, 0xDB), true, k, k, Rm::Mem(bits));
        self.vex(Vop(Pp::P66, 1, false, 0x76), true, k, k, Rm::Mem(bits));
    }

    /// To bits.
    pub(in super::super) fn kmov_to(&mut self, r: Gpr, k: u8) {
        match self.bits {
            None => self.vex(Vop(Pp::None, 1, false, 0x93), false, r, 0, Rm::Reg(k)),
            Some(_) => self.vex(Vop(Pp::None, 1, false, 0x50), true, r, 0, Rm::Reg(k)),
        }
    }

    pub(in super::super) fn kmov(&mut self, to: u8, from: Rm) {
        if matches!(from, Rm::Reg(k) if k == to) {
            return;
        }
        match self.bits {
            None => self.vex(Vop(Pp::None, 1, false, 0x90), false, to, 0, from),
            Some(_) => self.vex(Vop(Pp::P66, 1, false, 0x6F), true, to, 0, from),
        }
    }

    pub(in super::super) fn kstore(&mut self, to: Mem, k: u8) {
        match self.bits {
            None => self.vex(Vop(Pp::None, 1, false, 0x91), false, k, 0, Rm::Mem(to)),
            Some(_) => self.vex(Vop(Pp::P66, 1, false, 0x7F), true, k, 0, Rm::Mem(to)),
        }
    }

    /// Logic on masks: and 41, andn 42 (not the first, and the second), or 45, xnor 46, xor 47.
    pub(in super::super) fn klogic(&mut self, opcode: u8, to: u8, a: u8, b: u8) {
        if self.bits.is_none() {
            return self.vex(Vop(Pp::None, 1, false, opcode), true, to, a, Rm::Reg(b));
        }
        let bitwise = match opcode {
            0x41 => 0xDB,
            0x42 => 0xDF,
            0x45 => 0xEB,
            _ => 0xEF,
        };
        self.vex(Vop(Pp::P66, 1, false, bitwise), true, to, a, Rm::Reg(b));
        if opcode == 0x46 {
            self.complement(to);
        }
    }

    /// As many lanes as a gang has, and no more.
    pub(in super::super) fn kones(&mut self, k: u8, lanes: u32) {
        if self.bits.is_some() {
            return self.klogic(0x46, k, k, k);
        }
        let pp = if lanes == 8 { Pp::P66 } else { Pp::None };
        self.vex(Vop(pp, 1, false, 0x46), true, k, k, Rm::Reg(k));
    }

    /// Compares a mask with that of the lanes that are active. Zero flag: none of these is in; carry: all are.
    pub(in super::super) fn ktest(&mut self, k: u8, active: u8, lanes: u32) {
        match self.bits {
            None => {
                let pp = if lanes == 8 { Pp::P66 } else { Pp::None };
                self.vex(Vop(pp, 1, false, 0x99), false, k, 0, Rm::Reg(active));
            }
            Some(_) => self.vex(Vop(Pp::P66, 2, false, 0x17), true, k, 0, Rm::Reg(active)),
        }
    }

    /// A mask of AVX2's becomes its complement.
    pub(in super::super) fn complement(&mut self, k: u8) {
        let ones = narrow(28);
        self.vex(Vop(Pp::P66, 1, false, 0x76), true, ones, ones, Rm::Reg(ones));
        self.vex(Vop(Pp::P66, 1, false, 0xEF), true, k, k, Rm::Reg(ones));
    }

    /// Zero flag: no lane is in.
    pub(in super::super) fn kortest(&mut self, k: u8) {
        match self.bits {
            None => self.vex(Vop(Pp::None, 1, false, 0x98), false, k, 0, Rm::Reg(k)),
            Some(_) => self.vex(Vop(Pp::P66, 2, false, 0x17), true, k, 0, Rm::Reg(k)),
        }
    }

    /// Zero flag: no lane is in; carry: all of a gang's are. (Not without mask registers.)
    pub(in super::super) fn kortest_all(&mut self, k: u8, lanes: u32) {
        let pp = if lanes == 8 { Pp::P66 } else { Pp::None };
        self.vex(Vop(pp, 1, false, 0x98), false, k, 0, Rm::Reg(k));
    }

    /// Shifts a mask register: 30 right, 32 left.
    pub(in super::super) fn kshift(&mut self, opcode: u8, to: u8, from: u8, by: u8) {
        self.vex(Vop(Pp::P66, 3, true, opcode), false, to, 0, Rm::Reg(from));
        self.byte(by);
    }
}
