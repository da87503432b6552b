//! AArch64 with NEON: general instructions. Of ARMv8.0 alone, so that atomic operations are loops of exclusive loads and stores.
//!
//! Gangs have four lanes: a vector for 32-bit scalars, two for 64-bit ones. Masks are vectors whose lanes are all ones or zero.
//! Registers 16 and 17, 3 and 4, and vectors 23 and 24 are the assembler's own; 18 is the system's.

mod encode;
mod lanes;
pub(super) mod table;

#[cfg(test)]
#[cfg(feature = "assembly")]
mod tests;

use super::machine::*;
use super::tree::AtomicKind;
use encode::{NONE, Words, condition, general, memory, vector, wide};
use perpetua_ir::ir::{AtomicOp, Scalar};
use perpetua_ir::ops::{BinaryOp, UnaryOp};

/// The registers that are handed out: general ones, and vectors.
pub(super) const GENERAL: [Gpr; 19] = [
    5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 19, 20, 21, 22, 23, 24, 25, 26,
];
pub(super) const VECTORS: u8 = 23;
/// The active lanes, and two scratch masks.
pub(super) const MASKS: [u8; 3] = [27, 26, 25];

/// Addresses, and what lies there.
const T0: Gpr = 16;
const T1: Gpr = 17;
const T2: Gpr = 3;
const T3: Gpr = 4;
/// Vectors of the assembler's own.
const V0: u8 = 23;
const V1: u8 = 24;

/// What callees keep: pairs of general registers and of vectors' low halves, one behind the other on the stack.
const PAIRS: [(u32, u32, u8, u8); 10] = [
    (memory::STP, memory::LDP, 29, 30),
    (memory::STP, memory::LDP, 19, 20),
    (memory::STP, memory::LDP, 21, 22),
    (memory::STP, memory::LDP, 23, 24),
    (memory::STP, memory::LDP, 25, 26),
    (memory::STP, memory::LDP, 27, 28),
    (memory::STP_D, memory::LDP_D, 8, 9),
    (memory::STP_D, memory::LDP_D, 10, 11),
    (memory::STP_D, memory::LDP_D, 12, 13),
    (memory::STP_D, memory::LDP_D, 14, 15),
];

const STACK: Gpr = NONE;

/// Code under construction.
pub(super) struct Assembler {
    words: Words,
    /// Where the bit of each lane's number lies, as 32 bits.
    bits: Mem,
}

fn log(size: u32) -> u32 {
    size.trailing_zeros()
}

impl Assembler {
    /// `bits`: where the bit of each lane's number lies in the state, as 32 bits.
    pub(super) fn new(bits: i32) -> Assembler {
        Assembler {
            words: Words::new(),
            bits: Mem::at(Self::STATE, bits),
        }
    }

    /// A register that holds the address; the first of the assembler's own if it is no other's.
    fn address(
        &mut self,
        Mem {
            mut base,
            index,
            disp,
        }: Mem,
    ) -> Gpr {
        if let Some((index, scale)) = index {
            let add = general::ADD | u32::from(scale) << 10;
            self.words.general(add, true, T0, base, index);
            base = T0;
        }
        match disp {
            0 => return base,
            1..=4095 => self.words.number(general::ADD_IMM, true, T0, base, disp as u32),
            _ => {
                self.mov_imm(T1, i64::from(disp) as u64);
                self.words.general(general::ADD, true, T0, base, T1);
            }
        }
        T0
    }

    /// A load or store of `1 << log` bytes.
    fn access(&mut self, op: u32, log: u32, t: u8, at: Mem) {
        let counts = at.disp >= 0 && at.disp % (1 << log) == 0 && at.disp >> log < 4096;
        let (disp, rest) = if counts { (at.disp, 0) } else { (0, at.disp) };
        let base = self.address(Mem { disp: rest, ..at });
        self.words.number(op, false, t, base, disp as u32 >> log);
    }

    /// The second operand of an operation, in a register.
    fn operand(&mut self, w: bool, rm: Rm) -> Gpr {
        match rm {
            Rm::Reg(r) => r,
            Rm::Mem(m) => {
                self.load(if w { 8 } else { 4 }, T1, m);
                T1
            }
        }
    }

    /// A load or store with order, or one that is exclusive, at the address in a register.
    fn ordered(&mut self, op: u32, size: u32, t: u8, at: Gpr) {
        self.words.two(op | log(size) << 30, t, at);
    }

    /// Replaces what is at the address in [`T0`] by what is made of it ([`T2`]) and of [`C`] in [`T3`].
    fn update(&mut self, op: AtomicOp, s: Scalar, own: bool) {
        let (size, w) = (s.size(), s.size() == 8);
        let again = self.label();
        self.place(again);
        match own {
            true => self.load(size, T2, Mem::at(T0, 0)),
            false => self.ordered(memory::LDAXR, size, T2, T0),
        }
        let words = &mut self.words;
        match op {
            AtomicOp::Exchange => words.general(general::ORR, true, T3, NONE, C),
            AtomicOp::And => words.general(general::AND, w, T3, T2, C),
            AtomicOp::Or => words.general(general::ORR, w, T3, T2, C),
            AtomicOp::Xor => words.general(general::EOR, w, T3, T2, C),
            AtomicOp::Min | AtomicOp::Max => {
                words.general(general::SUBS, w, NONE, T2, C);
                let cc = match (op == AtomicOp::Min, s.is_signed_int()) {
                    (true, true) => Cc::G,
                    (true, false) => Cc::A,
                    (false, true) => Cc::L,
                    (false, false) => Cc::B,
                };
                words.general(general::CSEL | condition(cc) << 12, w, T3, C, T2);
            }
            AtomicOp::Add if s.is_int() => words.general(general::ADD, w, T3, T2, C),
            AtomicOp::Sub if s.is_int() => words.general(general::SUB, w, T3, T2, C),
            AtomicOp::Add | AtomicOp::Sub => {
                words.general(wide(vector::FMOV_FROM, w), w, V0, T2, 0);
                words.general(wide(vector::FMOV_FROM, w), w, V1, C, 0);
                words.three(wide(vector::FADD_ONE, w), V0, V0, V1);
                words.general(wide(vector::FMOV_TO, w), w, T3, V0, 0);
            }
        }
        if own {
            return self.store(size, Mem::at(T0, 0), T3);
        }
        self.store_exclusive(size, again);
    }

    /// Stores [`T3`] at the address in [`T0`]; `again` where somebody else did.
    fn store_exclusive(&mut self, size: u32, again: Label) {
        let store = memory::STLXR | u32::from(T1) << 16;
        self.ordered(store, size, T3, T0);
        self.words.jump_zero(false, T1, again);
    }

    /// Puts [`T3`] in place of what is at the address in [`T0`] if that is [`C`]; it lies in [`T2`].
    fn compare_exchange(&mut self, size: u32, own: bool) {
        let w = size == 8;
        let (again, differs) = (self.label(), self.label());
        self.place(again);
        match own {
            true => self.load(size, T2, Mem::at(T0, 0)),
            false => self.ordered(memory::LDAXR, size, T2, T0),
        }
        self.words.general(general::SUBS, w, NONE, T2, C);
        self.jcc(Cc::Ne, differs);
        match own {
            true => self.store(size, Mem::at(T0, 0), T3),
            false => self.store_exclusive(size, again),
        }
        self.place(differs);
    }

    fn alu_reg(&mut self, op: Alu, w: bool, a: Gpr, b: Gpr) {
        let (op, d) = match op {
            Alu::Add => (general::ADDS, a),
            Alu::Or => (general::ORR, a),
            Alu::And => (general::ANDS, a),
            Alu::Sub => (general::SUBS, a),
            Alu::Xor => (general::EOR, a),
            Alu::Compare => (general::SUBS, NONE),
        };
        self.words.general(op, w, d, a, b);
    }
}

impl Machine for Assembler {
    const STATE: Gpr = 28;
    const KEPT: Gpr = 27;

    fn label(&mut self) -> Label {
        self.words.label()
    }

    fn place(&mut self, label: Label) {
        self.words.place(label);
    }

    #[cfg(feature = "assembly")]
    fn here(&self) -> usize {
        self.words.bytes.len()
    }

    fn finish(self) -> Option<Finished> {
        Some(Finished {
            bytes: self.words.finish()?,
            #[cfg(all(test, feature = "assembly"))]
            meant: Box::new(()),
        })
    }

    fn enter(&mut self) {
        let bytes = 16 * PAIRS.len() as u32;
        self.words.number(general::SUB_IMM, true, STACK, STACK, bytes);
        for (i, (store, _, first, second)) in PAIRS.iter().enumerate() {
            let fields = (2 * i as u32) << 15 | u32::from(*second) << 10;
            self.words.two(store | fields, *first, STACK);
        }
        self.mov(true, Self::STATE, Rm::Reg(A));
    }

    fn leave(&mut self) {
        for (i, (_, load, first, second)) in PAIRS.iter().enumerate() {
            let fields = (2 * i as u32) << 15 | u32::from(*second) << 10;
            self.words.two(load | fields, *first, STACK);
        }
        let bytes = 16 * PAIRS.len() as u32;
        self.words.number(general::ADD_IMM, true, STACK, STACK, bytes);
        // ret
        self.words.word(0xD65F_03C0);
    }

    fn call(&mut self, at: i32, number: u32) {
        self.mov(true, 0, Rm::Reg(Self::STATE));
        self.mov_imm(1, number.into());
        self.load(8, T0, Mem::at(Self::STATE, at));
        // blr
        self.words.two(0xD63F_0000, 0, T0);
    }

    fn mov(&mut self, w: bool, to: Gpr, from: Rm) {
        match from {
            Rm::Reg(r) if r == to && w => {}
            Rm::Reg(r) => self.words.general(general::ORR, w, to, NONE, r),
            Rm::Mem(m) => self.load(if w { 8 } else { 4 }, to, m),
        }
    }

    fn mov_imm(&mut self, to: Gpr, v: u64) {
        let part = |i: u32| (v >> (16 * i)) as u16;
        // What most parts are need not be written.
        let minus =
            (0..4).filter(|i| part(*i) == u16::MAX).count() > (0..4).filter(|i| part(*i) == 0).count();
        let rest = if minus { u16::MAX } else { 0 };
        let mut first = true;
        for i in (0..4).filter(|i| part(*i) != rest) {
            let (op, bits) = match (first, minus) {
                (true, true) => (general::MOVN, !part(i)),
                (true, false) => (general::MOVZ, part(i)),
                _ => (general::MOVK, part(i)),
            };
            let fields = i << 21 | u32::from(bits) << 5;
            self.words.general(op | fields, true, to, 0, 0);
            first = false;
        }
        if first {
            let op = if minus { general::MOVN } else { general::MOVZ };
            self.words.general(op, true, to, 0, 0);
        }
    }

    fn load(&mut self, size: u32, to: Gpr, from: Mem) {
        self.access(memory::LOAD | log(size) << 30, log(size), to, from);
    }

    fn store(&mut self, size: u32, to: Mem, from: Gpr) {
        self.access(memory::STORE | log(size) << 30, log(size), from, to);
    }

    fn transfer(&mut self, size: u32, to: Mem, from: Mem) {
        self.load(size, T2, from);
        self.store(8, to, T2);
    }

    fn alu(&mut self, op: Alu, w: bool, a: Gpr, b: Rm) {
        let b = self.operand(w, b);
        self.alu_reg(op, w, a, b);
    }

    fn alu_imm(&mut self, op: Alu, w: bool, a: Rm, v: i32) {
        let r = match a {
            Rm::Reg(r) => r,
            Rm::Mem(m) => {
                self.load(if w { 8 } else { 4 }, T2, m);
                T2
            }
        };
        let flags = 1 << 29;
        match (op, v) {
            (Alu::Add | Alu::Sub | Alu::Compare, -4095..=4095) => {
                let adds = (op == Alu::Add) == (v >= 0);
                let word = if adds { general::ADD_IMM } else { general::SUB_IMM };
                let d = if op == Alu::Compare { NONE } else { r };
                self.words.number(word | flags, w, d, r, v.unsigned_abs());
            }
            _ => {
                self.mov_imm(T1, i64::from(v) as u64);
                self.alu_reg(op, w, r, T1);
            }
        }
        if let (Rm::Mem(m), true) = (a, op != Alu::Compare) {
            self.store(if w { 8 } else { 4 }, m, r);
        }
    }

    fn imul(&mut self, w: bool, a: Gpr, b: Rm) {
        let b = self.operand(w, b);
        self.words
            .general(general::MADD | u32::from(NONE) << 10, w, a, a, b);
    }

    fn imul_imm(&mut self, to: Gpr, a: Gpr, v: i32) {
        self.mov_imm(T1, i64::from(v) as u64);
        self.words
            .general(general::MADD | u32::from(NONE) << 10, true, to, a, T1);
    }

    fn movsxd(&mut self, to: Gpr, from: Gpr) {
        self.words.field(general::SBFM, true, to, from, [0, 31]);
    }

    fn shift_imm(&mut self, op: Shift, w: bool, a: Gpr, by: u8) {
        let (bits, by) = (if w { 64 } else { 32 }, u32::from(by));
        let (word, fields) = match op {
            Shift::Left => (general::UBFM, [(bits - by) % bits, bits - 1 - by]),
            Shift::Right => (general::UBFM, [by, bits - 1]),
            Shift::Arithmetic => (general::SBFM, [by, bits - 1]),
        };
        self.words.field(word, w, a, a, fields);
    }

    fn shift(&mut self, op: Shift, w: bool, to: Gpr, a: Rm, by: Gpr) {
        let a = self.operand(w, a);
        let word = match op {
            Shift::Left => general::LSLV,
            Shift::Right => general::LSRV,
            Shift::Arithmetic => general::ASRV,
        };
        self.words.general(word, w, to, a, by);
    }

    fn negate(&mut self, w: bool, a: Gpr) {
        self.words.general(general::SUB, w, a, NONE, a);
    }

    fn complement(&mut self, w: bool, a: Gpr) {
        self.words.general(general::ORN, w, a, NONE, a);
    }

    fn divide(&mut self, signed: bool, w: bool, remainder: bool) {
        let op = if signed { general::SDIV } else { general::UDIV };
        self.words.general(op, w, T0, A, C);
        match remainder {
            true => self
                .words
                .general(general::MSUB | u32::from(A) << 10, w, A, T0, C),
            false => self.mov(w, A, Rm::Reg(T0)),
        }
    }

    fn lowest(&mut self, to: Gpr, from: Gpr) {
        self.words.general(general::RBIT, false, to, from, 0);
        self.words.general(general::CLZ, false, to, to, 0);
    }

    fn drop_lowest(&mut self, a: Gpr, more: Label) {
        self.words.number(general::SUB_IMM, true, T0, a, 1);
        self.words.general(general::ANDS, true, a, a, T0);
        self.jcc(Cc::Ne, more);
    }

    fn test(&mut self, w: bool, a: Gpr) {
        self.words.general(general::ANDS, w, NONE, a, a);
    }

    fn setcc(&mut self, cc: Cc, to: Gpr) {
        // One more than nothing where the opposite does not hold.
        let word = general::CSINC | (condition(cc) ^ 1) << 12;
        self.words.general(word, true, to, NONE, NONE);
    }

    fn cmov(&mut self, cc: Cc, to: Gpr, from: Rm) {
        let from = self.operand(true, from);
        let word = general::CSEL | condition(cc) << 12;
        self.words.general(word, true, to, from, to);
    }

    fn jmp(&mut self, to: Label) {
        self.words.jump(to);
    }

    fn jcc(&mut self, cc: Cc, to: Label) {
        self.words.jump_if(cc, to);
    }

    fn jmp_to(&mut self, m: Mem) {
        self.load(8, T0, m);
        // br
        self.words.two(0xD61F_0000, 0, T0);
    }

    fn lea(&mut self, of: Label) {
        self.words.address(A, of);
    }

    fn fence(&mut self) {
        // dmb ish
        self.words.word(0xD503_3BBF);
    }

    fn atomic(&mut self, act: AtomicKind, s: Scalar, own: bool, at: Mem, others: i32) {
        let size = s.size();
        if act == AtomicKind::CompareExchange {
            self.lowest(T2, A);
            let index = Some((T2, log(size) as u8));
            let (base, disp) = (Self::STATE, others);
            self.load(size, T3, Mem { base, index, disp });
        }
        let at = self.address(at);
        self.mov(true, T0, Rm::Reg(at));
        match act {
            AtomicKind::Load if own => return self.load(size, C, Mem::at(T0, 0)),
            AtomicKind::Load => return self.ordered(memory::LDAR, size, C, T0),
            AtomicKind::Store if own => return self.store(size, Mem::at(T0, 0), C),
            AtomicKind::Store => return self.ordered(memory::STLR, size, C, T0),
            AtomicKind::Update(op) => self.update(op, s, own),
            AtomicKind::CompareExchange => self.compare_exchange(size, own),
        }
        self.mov(true, C, Rm::Reg(T2));
    }
}
