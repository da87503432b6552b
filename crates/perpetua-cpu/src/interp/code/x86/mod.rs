//! Bytes of x86-64 instructions: prefixes, operands and jumps. Knows encodings, not what instructions are for.
//!
//! Displacements are always 32 bits wide (or absent), which spares EVEX its scaled bytes.
//!
//! Without AVX-512 the same instructions are written with VEX prefixes, and masks are vectors: all ones in lanes that are in.
//! What has no such form is written out in `masks`, or not asked for ([`Vop::in_avx2`]).

mod general;
mod lanes;
mod masks;
pub(super) mod table;

#[cfg(test)]
#[cfg(all(feature = "assembly", feature = "testing"))]
mod tests;

use super::machine::*;
use super::tree::AtomicKind;
use perpetua_ir::ir::{AtomicOp, Scalar};
use perpetua_ir::ops::{BinaryOp, UnaryOp};
use table::op;

const RAX: Gpr = A;
const RCX: Gpr = C;
const RDX: Gpr = D;
const RBX: Gpr = 3;
const RBP: Gpr = 5;
const RSI: Gpr = 6;
const RDI: Gpr = 7;

/// The general registers that are handed out.
pub(super) const GENERAL: [Gpr; 10] = [3, 5, 12, 13, 6, 7, 8, 9, 10, 11];
/// With AVX-512: those of vectors, those of masks, and of these the active lanes' and two that are scratch.
pub(super) const VECTORS: u8 = 28;
pub(super) const MASKS: [u8; 4] = [2, 3, 4, 5];
pub(super) const OWN_MASKS: [u8; 3] = [1, 6, 7];
/// With AVX2, where vectors and masks share registers: those that are handed out; four more are scratch vectors.
pub(super) const AVX2_VECTORS: u8 = 9;
pub(super) const AVX2_MASKS: [u8; 3] = [15, 9, 10];

/// What stands before an opcode: the mandatory prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Pp {
    None = 0,
    P66 = 1,
    PF3 = 2,
    PF2 = 3,
}

/// A vector instruction: prefix, opcode map (1: 0F, 2: 0F38, 3: 0F3A), W, opcode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vop(pub(super) Pp, pub(super) u8, pub(super) bool, pub(super) u8);

impl Vop {
    /// Whether AVX2 has it, with the same operands.
    pub(super) fn in_avx2(self) -> bool {
        !matches!(
            self,
            // 64-bit products, minima, maxima and magnitudes.
            Vop(_, 2, true, 0x40 | 0x39 | 0x3B | 0x3D | 0x3F | 0x1F)
            // Leading zeros, rotations, arithmetic shifts of 64 bits.
            | Vop(_, 2, _, 0x44 | 0x14 | 0x15)
            | Vop(_, 2, true, 0x46)
            // Conversions of unsigned and of 64-bit integers.
            | Vop(_, 1, _, 0x78 | 0x7A)
            | Vop(_, 1, true, 0x5B)
            | Vop(Pp::PF3, 1, true, 0xE6)
        )
    }

    /// As VEX writes it: W is set where it says something there.
    fn narrow(self) -> Vop {
        let Vop(pp, map, w, opcode) = self;
        let means = match map {
            1 => matches!(opcode, 0x6E | 0x7E) && pp == Pp::P66,
            2 => matches!(opcode, 0x45..=0x47 | 0x8C | 0x8E | 0x90 | 0x96..=0xBF),
            _ => opcode == 0,
        };
        Vop(pp, map, w && means, opcode)
    }
}

/// What an EVEX instruction has beside its operands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ev {
    /// Mask register; 0: none.
    pub(super) k: u8,
    /// Lanes outside the mask become zero.
    pub(super) z: bool,
    /// Broadcast of a memory operand, or embedded rounding of a register one.
    pub(super) b: bool,
}

/// An instruction as it was asked for.
#[cfg(all(test, feature = "assembly"))]
#[derive(Clone, Copy, Debug)]
pub(super) struct Meant {
    pub(super) at: usize,
    /// Of instructions on vectors and masks, and of some of BMI.
    pub(super) op: Option<Vop>,
    pub(super) opcode: u8,
    pub(super) reg: u8,
    pub(super) second: u8,
    pub(super) rm: Rm,
    pub(super) ev: Ev,
    /// 0, 1 or 2 for 128, 256 or 512 bits.
    pub(super) length: u8,
}

/// Code under construction.
pub(super) struct Assembler {
    pub(super) bytes: Vec<u8>,
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
    /// EVEX.L'L: 2 for 512 bits, 1 for 256.
    length: u8,
    /// Without AVX-512: where the bit of each lane's number lies, as 32 bits.
    bits: Option<Mem>,
    #[cfg(all(test, feature = "assembly"))]
    pub(super) meant: Vec<Meant>,
}

impl Assembler {
    /// For so many lanes; without AVX-512 what masks need lies there in the state.
    pub(super) fn new(lanes: u32, masks: Option<i32>) -> Assembler {
        let length = if lanes == 16 { 2 } else { 1 };
        let bits = masks.map(|at| Mem::at(Self::STATE, at));
        Assembler {
            bytes: Vec::with_capacity(4096),
            labels: Vec::new(),
            jumps: Vec::new(),
            length,
            bits,
            #[cfg(all(test, feature = "assembly"))]
            meant: Vec::new(),
        }
    }

    /// There is no such instruction, which lowering should have known: so there is no code.
    fn lacks(&mut self) {
        self.jumps.push((0, Label(u32::MAX)));
    }

    fn byte(&mut self, b: u8) {
        self.bytes.push(b);
    }

    fn word(&mut self, v: i32) {
        self.bytes.extend(v.to_le_bytes());
    }

    /// ModRM, SIB and displacement; `reg` by its low three bits.
    fn operand(&mut self, reg: u8, rm: Rm) {
        let reg = (reg & 7) << 3;
        match rm {
            Rm::Reg(r) => self.byte(0xC0 | reg | r & 7),
            Rm::Mem(Mem { base, index, disp }) => {
                let wide = disp != 0 || base & 7 == 5;
                let mode = if wide { 0x80 } else { 0 };
                match index {
                    Some((i, scale)) => {
                        self.byte(mode | reg | 4);
                        self.byte(scale << 6 | (i & 7) << 3 | base & 7);
                    }
                    None if base & 7 == 4 => {
                        self.byte(mode | reg | 4);
                        self.byte(0x24);
                    }
                    None => self.byte(mode | reg | base & 7),
                }
                if wide {
                    self.word(disp);
                }
            }
        }
    }

    /// The high bits of an operand: X and B as REX has them.
    fn high(rm: Rm) -> (u8, u8) {
        match rm {
            Rm::Reg(r) => (r >> 4 & 1, r >> 3 & 1),
            Rm::Mem(m) => (m.index.map_or(0, |(i, _)| i >> 3 & 1), m.base >> 3 & 1),
        }
    }

    /// A general instruction. `byte`: operands are bytes, so that registers 4 to 7 need a REX prefix.
    fn gpr(&mut self, prefix: &[u8], w: bool, byte: bool, opcode: &[u8], reg: u8, rm: Rm) {
        #[cfg(all(test, feature = "assembly"))]
        self.meant.push(Meant {
            at: self.bytes.len(),
            op: None,
            opcode: opcode.last().copied().unwrap_or(0),
            reg,
            second: 0,
            rm,
            ev: Ev::default(),
            length: 0,
        });
        self.bytes.extend(prefix);
        let (x, b) = Self::high(rm);
        let rex = 0x40 | u8::from(w) << 3 | (reg >> 3 & 1) << 2 | x << 1 | b;
        let low = byte && (reg >= 4 || matches!(rm, Rm::Reg(r) if r >= 4));
        if rex != 0x40 || low {
            self.byte(rex);
        }
        self.bytes.extend(opcode);
        self.operand(reg, rm);
    }

    /// An instruction on vectors, in the form that the processor has.
    fn evex(&mut self, op: Vop, reg: u8, second: u8, rm: Rm) {
        self.evex_at(op, self.length, reg, second, rm, Ev::default());
    }

    fn evex_k(&mut self, op: Vop, reg: u8, second: u8, rm: Rm, k: u8, z: bool) {
        let ev = Ev { k, z, b: false };
        self.evex_at(op, self.length, reg, second, rm, ev);
    }

    /// An instruction on the lowest scalar of vector registers.
    fn low(&mut self, op: Vop, reg: u8, second: u8, rm: Rm) {
        self.evex_at(op, 0, reg, second, rm, Ev::default());
    }

    /// The same at a length of its own: 0, 1 or 2 for 128, 256 or 512 bits.
    fn evex_at(&mut self, Vop(pp, map, w, opcode): Vop, length: u8, reg: u8, second: u8, rm: Rm, ev: Ev) {
        if self.bits.is_some() {
            let rm = match rm {
                Rm::Reg(r) => Rm::Reg(narrow(r)),
                Rm::Mem(m) => Rm::Mem(Mem {
                    index: m.index.map(|(i, scale)| (narrow(i), scale)),
                    ..m
                }),
            };
            let op = Vop(pp, map, w, opcode).narrow();
            return self.vex(op, length > 0, narrow(reg), narrow(second), rm);
        }
        #[cfg(all(test, feature = "assembly"))]
        self.meant.push(Meant {
            at: self.bytes.len(),
            op: Some(Vop(pp, map, w, opcode)),
            opcode,
            reg,
            second,
            rm,
            ev,
            length,
        });
        let (x, b) = Self::high(rm);
        // The index of a gather has its fifth bit in V'.
        let second_high = match rm {
            Rm::Mem(Mem {
                index: Some((i, _)), ..
            }) if i >= 16 => 1,
            _ => second >> 4 & 1,
        };
        self.byte(0x62);
        self.byte((!reg >> 3 & 1) << 7 | (x ^ 1) << 6 | (b ^ 1) << 5 | (!reg >> 4 & 1) << 4 | map);
        self.byte(u8::from(w) << 7 | (!second & 15) << 3 | 4 | pp as u8);
        let flags = u8::from(ev.z) << 7 | length << 5 | u8::from(ev.b) << 4;
        self.byte(flags | (second_high ^ 1) << 3 | ev.k);
        self.byte(opcode);
        self.operand(reg, rm);
    }

    /// A VEX instruction: on mask registers, and on vectors of 128 bits.
    fn vex(&mut self, Vop(pp, map, w, opcode): Vop, l: bool, reg: u8, second: u8, rm: Rm) {
        #[cfg(all(test, feature = "assembly"))]
        self.meant.push(Meant {
            at: self.bytes.len(),
            op: Some(Vop(pp, map, w, opcode)),
            opcode,
            reg,
            second,
            rm,
            ev: Ev::default(),
            length: u8::from(l),
        });
        let (x, b) = Self::high(rm);
        self.byte(0xC4);
        self.byte((!reg >> 3 & 1) << 7 | (x ^ 1) << 6 | (b ^ 1) << 5 | map);
        self.byte(u8::from(w) << 7 | (!second & 15) << 3 | u8::from(l) << 2 | pp as u8);
        self.byte(opcode);
        self.operand(reg, rm);
    }

    fn immediate8(&mut self, v: u8) {
        self.byte(v);
    }

    fn push(&mut self, r: Gpr) {
        if r >= 8 {
            self.byte(0x41);
        }
        self.byte(0x50 | r & 7);
    }

    fn pop(&mut self, r: Gpr) {
        if r >= 8 {
            self.byte(0x41);
        }
        self.byte(0x58 | r & 7);
    }

    /// Negation (3), complement (2), multiplication of rax (4), division of rdx:rax (6, 7 signed).
    fn group3(&mut self, which: u8, w: bool, a: Rm) {
        self.gpr(&[], w, false, &[0xF7], which, a);
    }

    fn vzeroupper(&mut self) {
        self.bytes.extend([0xC5, 0xF8, 0x77]);
    }
}

/// AVX2 has sixteen registers: the emitter's scratch vectors, which are the last four of 32, are others there.
fn narrow(r: u8) -> u8 {
    if r >= 28 { r - 17 } else { r }
}
