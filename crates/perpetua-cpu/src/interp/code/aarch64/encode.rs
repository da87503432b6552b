//! Words of AArch64 instructions: fields and jumps. Knows encodings, not what instructions are for.

use super::super::machine::{Cc, Label};

/// A general instruction's word for 32-bit registers; 64-bit ones have the top bit besides.
pub(super) mod general {
    pub(in super::super) const ADD: u32 = 0x0B00_0000;
    pub(in super::super) const ADDS: u32 = 0x2B00_0000;
    pub(in super::super) const SUB: u32 = 0x4B00_0000;
    pub(in super::super) const SUBS: u32 = 0x6B00_0000;
    pub(in super::super) const AND: u32 = 0x0A00_0000;
    pub(in super::super) const ANDS: u32 = 0x6A00_0000;
    pub(in super::super) const ORR: u32 = 0x2A00_0000;
    pub(in super::super) const ORN: u32 = 0x2A20_0000;
    pub(in super::super) const EOR: u32 = 0x4A00_0000;
    /// Numbers of twelve bits, of the operations above.
    pub(in super::super) const ADD_IMM: u32 = 0x1100_0000;
    pub(in super::super) const SUB_IMM: u32 = 0x5100_0000;
    /// With nothing (register 31) to add, a product.
    pub(in super::super) const MADD: u32 = 0x1B00_0000;
    pub(in super::super) const MSUB: u32 = 0x1B00_8000;
    pub(in super::super) const UDIV: u32 = 0x1AC0_0800;
    pub(in super::super) const SDIV: u32 = 0x1AC0_0C00;
    pub(in super::super) const LSLV: u32 = 0x1AC0_2000;
    pub(in super::super) const LSRV: u32 = 0x1AC0_2400;
    pub(in super::super) const ASRV: u32 = 0x1AC0_2800;
    pub(in super::super) const RBIT: u32 = 0x5AC0_0000;
    pub(in super::super) const CLZ: u32 = 0x5AC0_1000;
    pub(in super::super) const CSEL: u32 = 0x1A80_0000;
    pub(in super::super) const CSINC: u32 = 0x1A80_0400;
    pub(in super::super) const UBFM: u32 = 0x5300_0000;
    pub(in super::super) const SBFM: u32 = 0x1300_0000;
    pub(in super::super) const MOVN: u32 = 0x1280_0000;
    pub(in super::super) const MOVZ: u32 = 0x5280_0000;
    pub(in super::super) const MOVK: u32 = 0x7280_0000;
}

/// Loads and stores of one register, with an offset that counts the size; bits 30 and 31 are the size.
pub(super) mod memory {
    pub(in super::super) const STORE: u32 = 0x3900_0000;
    pub(in super::super) const LOAD: u32 = 0x3940_0000;
    /// A scalar of a vector register.
    pub(in super::super) const STORE_V: u32 = 0x3D00_0000;
    pub(in super::super) const LOAD_V: u32 = 0x3D40_0000;
    /// All 128 bits of it.
    pub(in super::super) const STORE_Q: u32 = 0x3D80_0000;
    pub(in super::super) const LOAD_Q: u32 = 0x3DC0_0000;
    /// Ordered ones, which have no offset.
    pub(in super::super) const LDAR: u32 = 0x08DF_FC00;
    pub(in super::super) const STLR: u32 = 0x089F_FC00;
    pub(in super::super) const LDAXR: u32 = 0x085F_FC00;
    pub(in super::super) const STLXR: u32 = 0x0800_FC00;
    /// Pairs of 64-bit registers, with an offset in eights.
    pub(in super::super) const STP: u32 = 0xA900_0000;
    pub(in super::super) const LDP: u32 = 0xA940_0000;
    pub(in super::super) const STP_D: u32 = 0x6D00_0000;
    pub(in super::super) const LDP_D: u32 = 0x6D40_0000;
}

/// Vector instructions on 128 bits, as they are for 32-bit lanes; [`wide`](super::wide) makes those for 64-bit ones.
pub(super) mod vector {
    pub(in super::super) const ADD: u32 = 0x4EA0_8400;
    pub(in super::super) const SUB: u32 = 0x6EA0_8400;
    pub(in super::super) const MUL: u32 = 0x4EA0_9C00;
    pub(in super::super) const SMAX: u32 = 0x4EA0_6400;
    pub(in super::super) const SMIN: u32 = 0x4EA0_6C00;
    pub(in super::super) const UMAX: u32 = 0x6EA0_6400;
    pub(in super::super) const UMIN: u32 = 0x6EA0_6C00;
    /// Shifts to the left by what each lane says; to the right by what is negative.
    pub(in super::super) const SSHL: u32 = 0x4EA0_4400;
    pub(in super::super) const USHL: u32 = 0x6EA0_4400;
    pub(in super::super) const CMGT: u32 = 0x4EA0_3400;
    pub(in super::super) const CMGE: u32 = 0x4EA0_3C00;
    pub(in super::super) const CMHI: u32 = 0x6EA0_3400;
    pub(in super::super) const CMHS: u32 = 0x6EA0_3C00;
    pub(in super::super) const CMEQ: u32 = 0x6EA0_8C00;
    /// Lanes that have bits in common.
    pub(in super::super) const CMTST: u32 = 0x4EA0_8C00;
    pub(in super::super) const UZP1: u32 = 0x4E80_1800;
    pub(in super::super) const NEG: u32 = 0x6EA0_B800;
    pub(in super::super) const ABS: u32 = 0x4EA0_B800;
    /// Of 32-bit lanes alone.
    pub(in super::super) const CLZ: u32 = 0x6EA0_4800;
    /// Bitwise: no lanes.
    pub(in super::super) const AND: u32 = 0x4E20_1C00;
    pub(in super::super) const BIC: u32 = 0x4E60_1C00;
    pub(in super::super) const ORR: u32 = 0x4EA0_1C00;
    pub(in super::super) const EOR: u32 = 0x6E20_1C00;
    /// What is written to says where the first operand counts, and where the second.
    pub(in super::super) const BSL: u32 = 0x6E60_1C00;
    /// The second operand says where the first replaces what is written to.
    pub(in super::super) const BIT: u32 = 0x6EA0_1C00;
    pub(in super::super) const NOT: u32 = 0x6E20_5800;
    pub(in super::super) const FADD: u32 = 0x4E20_D400;
    pub(in super::super) const FSUB: u32 = 0x4EA0_D400;
    pub(in super::super) const FMUL: u32 = 0x6E20_DC00;
    pub(in super::super) const FDIV: u32 = 0x6E20_FC00;
    /// Adds the product to what is written to.
    pub(in super::super) const FMLA: u32 = 0x4E20_CC00;
    pub(in super::super) const FCMEQ: u32 = 0x4E20_E400;
    pub(in super::super) const FCMGE: u32 = 0x6E20_E400;
    pub(in super::super) const FCMGT: u32 = 0x6EA0_E400;
    pub(in super::super) const FSQRT: u32 = 0x6EA1_F800;
    pub(in super::super) const FRINTN: u32 = 0x4E21_8800;
    pub(in super::super) const FRINTM: u32 = 0x4E21_9800;
    pub(in super::super) const FRINTP: u32 = 0x4EA1_8800;
    pub(in super::super) const FRINTZ: u32 = 0x4EA1_9800;
    pub(in super::super) const SCVTF: u32 = 0x4E21_D800;
    pub(in super::super) const UCVTF: u32 = 0x6E21_D800;
    pub(in super::super) const FCVTZS: u32 = 0x4EA1_B800;
    pub(in super::super) const FCVTZU: u32 = 0x6EA1_B800;
    /// From 32-bit lanes of the low half to 64-bit ones; with bit 30 of the high half.
    pub(in super::super) const SXTL: u32 = 0x0F20_A400;
    pub(in super::super) const UXTL: u32 = 0x2F20_A400;
    pub(in super::super) const FCVTL: u32 = 0x0E61_7800;
    /// From 64-bit lanes to the low half; with bit 30 to the high one.
    pub(in super::super) const FCVTN: u32 = 0x0E61_6800;
    /// Between 32-bit lanes and 16-bit ones in the low half.
    pub(in super::super) const XTN: u32 = 0x0E61_2800;
    pub(in super::super) const UXTL_HALF: u32 = 0x2F10_A400;
    pub(in super::super) const FCVTN_HALF: u32 = 0x0E21_6800;
    pub(in super::super) const FCVTL_HALF: u32 = 0x0E21_7800;
    /// The least and the greatest lane, of 32 bits, and the sum.
    pub(in super::super) const UMINV: u32 = 0x6EB1_A800;
    pub(in super::super) const UMAXV: u32 = 0x6EB0_A800;
    pub(in super::super) const ADDV: u32 = 0x4EB1_B800;
    /// Shifts by a number, which has a field of its own.
    pub(in super::super) const SHL: u32 = 0x4F00_5400;
    pub(in super::super) const USHR: u32 = 0x6F00_0400;
    pub(in super::super) const SSHR: u32 = 0x4F00_0400;
    /// Between a general register and lanes, which have a field of their own.
    pub(in super::super) const DUP: u32 = 0x4E00_0C00;
    /// A lane in all lanes.
    pub(in super::super) const DUP_LANE: u32 = 0x4E00_0400;
    pub(in super::super) const UMOV: u32 = 0x0E00_3C00;
    /// One scalar in all lanes.
    pub(in super::super) const LD1R: u32 = 0x4D40_C800;
    pub(in super::super) const ZERO: u32 = 0x6F00_E400;
    pub(in super::super) const ONES: u32 = 0x4F07_E7E0;
    /// Lanes to memory, and from it.
    pub(in super::super) const ST1: u32 = 0x0D00_0000;
    pub(in super::super) const LD1: u32 = 0x0D40_0000;
    /// On the lowest scalar.
    pub(in super::super) const FADD_ONE: u32 = 0x1E20_2800;
    pub(in super::super) const FMOV_FROM: u32 = 0x1E27_0000;
    pub(in super::super) const FMOV_TO: u32 = 0x1E26_0000;
}

/// A vector instruction for 64-bit lanes. Those on floats tell them by one bit, those on integers by two, of which one is set already.
pub(super) fn wide(op: u32, wide: bool) -> u32 {
    op | u32::from(wide) << 22
}

/// Jumps, with room for the distance.
const B: u32 = 0x1400_0000;
const B_COND: u32 = 0x5400_0000;
const CBZ: u32 = 0x3400_0000;
const CBNZ: u32 = 0x3500_0000;
const ADR: u32 = 0x1000_0000;

/// Registers that are not there, and the stack's, by the instruction.
pub(super) const NONE: u8 = 31;

/// Code under construction.
pub(super) struct Words {
    pub(super) bytes: Vec<u8>,
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

/// A condition as AArch64 numbers it.
pub(super) fn condition(cc: Cc) -> u32 {
    match cc {
        Cc::E => 0,
        Cc::Ne => 1,
        Cc::Ae => 2,
        Cc::B => 3,
        Cc::S => 4,
        Cc::A => 8,
        Cc::Be => 9,
        Cc::Ge => 10,
        Cc::L => 11,
        Cc::G => 12,
        Cc::Le => 13,
    }
}

impl Words {
    pub(super) fn new() -> Words {
        Words {
            bytes: Vec::with_capacity(4096),
            labels: Vec::new(),
            jumps: Vec::new(),
        }
    }

    pub(super) fn word(&mut self, word: u32) {
        self.bytes.extend(word.to_le_bytes());
    }

    /// `d`, and two operands.
    pub(super) fn three(&mut self, op: u32, d: u8, n: u8, m: u8) {
        self.word(op | u32::from(m) << 16 | u32::from(n) << 5 | u32::from(d));
    }

    pub(super) fn two(&mut self, op: u32, d: u8, n: u8) {
        self.three(op, d, n, 0);
    }

    /// A general instruction: on 64 bits, or on 32.
    pub(super) fn general(&mut self, op: u32, w: bool, d: u8, n: u8, m: u8) {
        self.three(op | u32::from(w) << 31, d, n, m);
    }

    /// The same with a number in bits 10 to 21.
    pub(super) fn number(&mut self, op: u32, w: bool, d: u8, n: u8, number: u32) {
        self.general(op | number << 10, w, d, n, 0);
    }

    /// `UBFM` and `SBFM`: bits from `r` on, up to `s`.
    pub(super) fn field(&mut self, op: u32, w: bool, d: u8, n: u8, [r, s]: [u32; 2]) {
        self.number(op | u32::from(w) << 22 | r << 16, w, d, n, s);
    }

    /// Lane `lane` of `1 << log` bytes, as `DUP`, `UMOV` and `INS` say it.
    pub(super) fn lane(&mut self, op: u32, log: u32, lane: u32, d: u8, n: u8) {
        let field = (lane << 1 | 1) << log;
        self.two(op | field << 16, d, n);
    }

    /// One lane from or to memory at the address in `n`.
    pub(super) fn lane_memory(&mut self, op: u32, log: u32, lane: u32, t: u8, n: u8) {
        // The lane's first byte, as four bits: Q, S and size.
        let byte = lane << log;
        let size = match log {
            3 => 0x8400,
            2 => 0x8000,
            1 => 0x4000,
            _ => 0,
        };
        self.two(op | size | (byte & 8) << 27 | (byte & 7) << 10, t, n);
    }

    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() as u32 - 1)
    }

    pub(super) fn place(&mut self, label: Label) {
        let here = self.bytes.len();
        if let Some(at) = self.labels.get_mut(label.0 as usize) {
            *at = Some(here);
        }
    }

    fn distant(&mut self, word: u32, to: Label) {
        self.jumps.push((self.bytes.len(), to));
        self.word(word);
    }

    pub(super) fn jump(&mut self, to: Label) {
        self.distant(B, to);
    }

    pub(super) fn jump_if(&mut self, cc: Cc, to: Label) {
        self.distant(B_COND | condition(cc), to);
    }

    /// Where 32 bits are zero, or are not.
    pub(super) fn jump_zero(&mut self, zero: bool, r: u8, to: Label) {
        self.distant(if zero { CBZ } else { CBNZ } | u32::from(r), to);
    }

    pub(super) fn address(&mut self, d: u8, of: Label) {
        self.distant(ADR | u32::from(d), of);
    }

    /// There is no such instruction, which lowering should have known: so there is no code.
    pub(super) fn lacks(&mut self) {
        self.jumps.push((0, Label(u32::MAX)));
    }

    /// Resolves jumps; the code, or `None` where a jump leads to a label that stands nowhere, or too far away.
    pub(super) fn finish(mut self) -> Option<Vec<u8>> {
        for (at, label) in &self.jumps {
            let target = self.labels.get(label.0 as usize).copied().flatten()?;
            let distance = i32::try_from(target as i64 - *at as i64).ok()?;
            let place = self.bytes.get_mut(*at..at + 4)?;
            let word = u32::from_le_bytes(place.try_into().ok()?);
            let fits = |bits: u32| distance >> (bits - 1) == distance >> 31;
            let field = match word & 0x7C00_0000 {
                B if fits(28) => distance as u32 >> 2 & 0x03FF_FFFF,
                ADR if fits(21) => (distance as u32 & 3) << 29 | (distance as u32 >> 2 & 0x7_FFFF) << 5,
                // Conditional ones.
                0x5400_0000 | 0x3400_0000 if fits(21) => (distance as u32 >> 2 & 0x7_FFFF) << 5,
                _ => return None,
            };
            place.copy_from_slice(&(word | field).to_le_bytes());
        }
        Some(self.bytes)
    }
}
