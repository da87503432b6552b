//! Masks as registers of 16 bits (AVX-512), or as vectors whose lanes are all ones or zero (AVX2), and what AVX2 needs written out.

use super::*;

/// Comparisons as AVX-512 numbers them.
const EQUAL: u8 = 0;
const BELOW: u8 = 1;
const NOT_ABOVE: u8 = 2;
const UNEQUAL: u8 = 4;
const NOT_BELOW: u8 = 5;

impl Assembler {
    pub(super) fn kmov_rm(&mut self, to: u8, from: Rm) {
        match self.bits {
            None => self.vex(Vop(Pp::None, 1, false, 0x90), false, to, 0, from),
            Some(_) => self.vex(Vop(Pp::P66, 1, false, 0x6F), true, to, 0, from),
        }
    }

    /// What stands before an operation on masks of as many lanes as a gang has.
    pub(super) fn half_prefix(&self) -> Pp {
        if self.length == 2 { Pp::None } else { Pp::P66 }
    }

    /// Logic on masks: and 41, andn 42 (not the first, and the second), or 45, xnor 46, xor 47.
    pub(super) fn logic(&mut self, opcode: u8, to: u8, a: u8, b: u8) {
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
            self.flip(to);
        }
    }

    /// A mask of AVX2's becomes its complement.
    fn flip(&mut self, k: u8) {
        let ones = narrow(X0);
        self.vex(Vop(Pp::P66, 1, false, 0x76), true, ones, ones, Rm::Reg(ones));
        self.vex(Vop(Pp::P66, 1, false, 0xEF), true, k, k, Rm::Reg(ones));
    }

    /// Shifts a mask register by half the lanes: 30 right, 32 left.
    pub(super) fn kshift(&mut self, opcode: u8, to: u8, from: u8) {
        self.vex(Vop(Pp::P66, 3, true, opcode), false, to, 0, Rm::Reg(from));
        self.byte(4 * self.length);
    }

    /// The low halves of 64-bit lanes of two vectors, in order (AVX2).
    pub(super) fn even(&mut self, to: u8, low: u8, high: u8) {
        self.evex(Vop(Pp::None, 1, false, 0xC6), X0, low, Rm::Reg(high));
        self.immediate8(0x88);
        self.evex(Vop(Pp::P66, 3, true, 0x00), to, 0, Rm::Reg(X0));
        self.immediate8(0xD8);
    }

    /// A scalar in memory, or the lowest of a vector, in all lanes.
    pub(super) fn broadcast(&mut self, to: u8, from: Rm, wide: bool) {
        let opcode = if wide { 0x59 } else { 0x58 };
        self.evex(Vop(Pp::P66, 2, wide, opcode), to, 0, from);
    }

    /// AVX2 has equal and greater, of numbers with a sign: of others the highest bit is flipped first.
    pub(super) fn compare_integers(&mut self, op: Vop, to: u8, mut a: u8, mut b: u8, predicate: u8) {
        let Vop(_, _, wide, opcode) = op;
        if let (0x1E, false, Some(bits)) = (opcode, matches!(predicate, EQUAL | UNEQUAL), self.bits) {
            let signs = Rm::Mem(bits.plus(if wide { 64 } else { 32 }));
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
            self.flip(to);
        }
    }
}
