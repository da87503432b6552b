//! What the emitter asks of a processor: moves, sums, jumps, operations on vectors and on masks, and ways to memory. Each processor
//! has one implementation, which knows its instructions; nothing here does.
//!
//! Registers are numbers. General ones 0, 1 and 2 are scratch ([`A`], [`C`], [`D`]), as are the vectors [`X0`] to [`X3`]; all may be
//! lost where a method says so. Where a mask is a vector, its number is one of theirs.

use super::tree::AtomicKind;
use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::{BinaryOp, UnaryOp};

/// A general register by its number.
pub(super) type Gpr = u8;

/// Scratch registers. What the host gives back lies in the first.
pub(super) const A: Gpr = 0;
pub(super) const C: Gpr = 1;
pub(super) const D: Gpr = 2;

/// Scratch vectors.
pub(super) const X0: u8 = 28;
pub(super) const X1: u8 = 29;
pub(super) const X2: u8 = 30;
pub(super) const X3: u8 = 31;

/// An address: base, index times a power of two, displacement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mem {
    pub(super) base: Gpr,
    /// Register number (a vector's for gathers) and the power of two.
    pub(super) index: Option<(u8, u8)>,
    pub(super) disp: i32,
}

impl Mem {
    pub(super) fn at(base: Gpr, disp: i32) -> Mem {
        let index = None;
        Mem { base, index, disp }
    }

    /// So many bytes further on.
    pub(super) fn plus(self, bytes: i32) -> Mem {
        let disp = self.disp + bytes;
        Mem { disp, ..self }
    }
}

/// The operand that may lie in memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rm {
    Reg(u8),
    Mem(Mem),
}

/// The last operand of an instruction on vectors.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    Reg(u8),
    /// A vector in memory.
    Mem(Mem),
    /// A scalar in memory, for all lanes.
    Splat(Mem),
}

/// A place in the code that jumps name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Label(pub(super) u32);

/// Conditions of jumps, moves and sets, as x86-64 numbers them. Those of order are about the last comparison or difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Cc {
    B = 2,
    Ae = 3,
    E = 4,
    Ne = 5,
    Be = 6,
    A = 7,
    S = 8,
    L = 12,
    Ge = 13,
    Le = 14,
    G = 15,
}

/// Operations of two general operands, as x86-64 numbers them. Sums, differences and comparisons leave conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Alu {
    Add = 0x03,
    Or = 0x0B,
    And = 0x23,
    Sub = 0x2B,
    Xor = 0x33,
    Compare = 0x3B,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shift {
    Left,
    Right,
    /// To the right, with the sign.
    Arithmetic,
}

/// Operations on masks, as x86-64 numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MOp {
    And = 0x41,
    /// The second without the first.
    AndNot = 0x42,
    Or = 0x45,
    Xnor = 0x46,
    Xor = 0x47,
}

/// Code whose jumps lead somewhere.
pub(super) struct Finished {
    pub(super) bytes: Vec<u8>,
    /// What was asked of the assembler, for its own tests.
    #[cfg(all(test, feature = "assembly"))]
    pub(super) meant: Box<dyn std::any::Any + Send + Sync>,
}

/// A processor's instructions on general registers, and its jumps.
pub(super) trait Machine {
    /// Registers that calls leave alone: of the state, and one more.
    const STATE: Gpr;
    const KEPT: Gpr;

    fn label(&mut self) -> Label;
    fn place(&mut self, label: Label);
    /// Bytes written.
    #[cfg(feature = "assembly")]
    fn here(&self) -> usize;
    /// Resolves jumps; the code, or `None` where a jump leads nowhere.
    fn finish(self) -> Option<Finished>;

    /// The function begins: the state is its argument.
    fn enter(&mut self);
    /// The function ends; the result lies in [`A`].
    fn leave(&mut self);
    /// Calls the function whose address lies there in the state, with the state and a number. All registers but two are lost.
    fn call(&mut self, at: i32, number: u32);

    // ---- general registers: 64 bits of them (`w`), or 32, which leave zeros above ----

    fn mov(&mut self, w: bool, to: Gpr, from: Rm);
    fn mov_imm(&mut self, to: Gpr, v: u64);
    /// Loads with zero extension.
    fn load(&mut self, size: u32, to: Gpr, from: Mem);
    fn store(&mut self, size: u32, to: Mem, from: Gpr);
    /// From memory to memory; keeps all registers but scratch vectors.
    fn transfer(&mut self, size: u32, to: Mem, from: Mem);
    fn alu(&mut self, op: Alu, w: bool, a: Gpr, b: Rm);
    fn alu_imm(&mut self, op: Alu, w: bool, a: Rm, v: i32);
    fn imul(&mut self, w: bool, a: Gpr, b: Rm);
    fn imul_imm(&mut self, to: Gpr, a: Gpr, v: i32);
    /// Sign extension of 32 bits.
    fn movsxd(&mut self, to: Gpr, from: Gpr);
    fn shift_imm(&mut self, op: Shift, w: bool, a: Gpr, by: u8);
    /// By the low bits of a register.
    fn shift(&mut self, op: Shift, w: bool, to: Gpr, a: Rm, by: Gpr);
    fn negate(&mut self, w: bool, a: Gpr);
    fn complement(&mut self, w: bool, a: Gpr);
    /// Quotient or remainder of [`A`] by [`C`], in [`A`]; nothing of these faults.
    fn divide(&mut self, signed: bool, w: bool, remainder: bool);
    /// The number of the lowest bit that is set.
    fn lowest(&mut self, to: Gpr, from: Gpr);
    /// Jumps if bits are left without the lowest one.
    fn drop_lowest(&mut self, a: Gpr, more: Label);
    /// Compares with zero.
    fn test(&mut self, w: bool, a: Gpr);
    fn setcc(&mut self, cc: Cc, to: Gpr);
    fn cmov(&mut self, cc: Cc, to: Gpr, from: Rm);
    fn jmp(&mut self, to: Label);
    fn jcc(&mut self, cc: Cc, to: Label);
    /// To the address that lies there.
    fn jmp_to(&mut self, m: Mem);
    /// The address of a place in the code, in [`A`].
    fn lea(&mut self, of: Label);

    /// Orders what is before it and what is behind it, as far as the processor does not by itself.
    fn fence(&mut self);
    /// An atomic operation on the scalar at `at` with that in [`C`], which gets what was there; [`A`] is kept. What only this thread
    /// sees (`own`) needs no lock. A compare-exchange puts there what lies at `others` in the state, by the lowest bit of [`A`].
    fn atomic(&mut self, act: AtomicKind, s: Scalar, own: bool, at: Mem, others: i32);
}

/// A processor's instructions on lanes side by side, and on masks of them.
pub(super) trait Lanes: Machine {
    /// The active lanes' mask, and two that are scratch.
    fn masks(&self) -> [u8; 3];

    fn vmov(&mut self, to: u8, from: u8);
    fn vload(&mut self, to: u8, from: Mem);
    fn vstore(&mut self, to: Mem, from: u8);
    fn zero(&mut self, to: u8);
    /// A scalar of 32 bits or 64 (`wide`), from memory or a general register, in all lanes.
    fn splat(&mut self, wide: bool, to: u8, from: Rm);
    /// Operations as the intermediate form between lowering and here has them, on scalars that lowering has found the machine to know.
    fn binary(&mut self, op: BinaryOp, s: Scalar, to: u8, a: u8, b: Source);
    fn unary(&mut self, op: UnaryOp, s: Scalar, to: u8, a: u8);
    fn vshift(&mut self, op: BinaryOp, s: Scalar, to: u8, a: u8, by: u8);
    /// Halves lie in lanes of 32 bits; the second scratch vector is lost.
    fn convert(&mut self, from: Scalar, to: Scalar, d: u8, a: u8);
    /// Lanes of `a`, of its low or high half, in twice the width.
    fn widen(&mut self, from: Scalar, to: Scalar, d: u8, a: u8, half: u8);
    /// Two vectors in one of half the width; the first two scratch vectors are lost.
    fn narrow(&mut self, from: Scalar, to: Scalar, d: u8, low: u8, high: u8);
    /// `to = a * b + c`.
    fn fma(&mut self, wide: bool, to: u8, a: u8, b: u8, c: u8);

    // ---- masks ----

    fn kmov(&mut self, to: u8, from: u8);
    fn kload(&mut self, to: u8, from: Mem);
    fn kstore(&mut self, to: Mem, from: u8);
    /// From bits, and to bits.
    fn mask_of_bits(&mut self, k: u8, r: Gpr);
    fn bits_of_mask(&mut self, r: Gpr, k: u8);
    fn kset(&mut self, k: u8, ones: bool);
    fn klogic(&mut self, op: MOp, to: u8, a: u8, b: u8);
    /// Jumps where no lane is in (`none`), or one is.
    fn kjump(&mut self, none: bool, k: u8, to: Label);
    /// As many lanes as a gang has, and no more.
    fn kall(&mut self, k: u8);
    /// Jumps where all lanes of a gang are in, or none is; [`A`] is lost.
    fn kjump_all(&mut self, k: u8, all: Label, none: Option<Label>);
    /// Jumps where none of the active lanes is in, or only some are.
    fn kinside(&mut self, k: u8, active: u8, none: Option<Label>, some: Label);
    /// Jumps where the 32-bit lanes of `x` are not all the same; else that of all goes to [`C`]. [`A`] and [`X1`] are lost.
    fn several(&mut self, x: u8, to: Label);
    /// The first lanes, as many as [`A`] says; [`C`] is lost.
    fn first_lanes(&mut self, k: u8);
    /// The mask `k` for one of the two vectors that scalars of 64 bits take; where it must be made, in the second scratch mask.
    fn half_mask(&mut self, k: u8, part: usize, wide: bool) -> u8;
    /// Puts the masks of the two halves of the lanes together; the first scratch vector and the second scratch mask are lost.
    fn pair(&mut self, to: u8, low: u8, high: u8);
    /// The first three scratch vectors are lost.
    fn compare(&mut self, op: BinaryOp, s: Scalar, to: u8, a: u8, b: Source);
    /// The lanes of `a` that are not zero.
    fn not_zero(&mut self, to: u8, a: u8);
    /// One, as 32 bits lie at `one`, in lanes of a mask, zero elsewhere.
    fn ones(&mut self, to: u8, k: u8, one: Mem);
    /// `to = k ? b : a`.
    fn blend(&mut self, wide: bool, to: u8, a: u8, b: u8, k: u8);

    // ---- memory by lanes; scalars of one or two bytes have zeros above them in vectors ----

    /// Consecutive scalars: those of the mask at least (`None`: of all lanes); where they have 64 bits, of the half `part` of its lanes.
    fn load_run(&mut self, size: u32, to: u8, at: Mem, k: Option<u8>, part: usize);
    fn store_run(&mut self, size: u32, at: Mem, from: u8, k: Option<u8>, part: usize);
    /// The same where only this thread looks.
    fn store_own(&mut self, size: u32, at: Mem, from: u8, k: u8, part: usize);
    /// Each lane's, by offsets of 32 bits in the vector that is the index of `at`; zero in lanes outside the mask.
    fn gather(&mut self, size: u32, to: u8, at: Mem, k: u8, part: usize);
    fn scatter(&mut self, size: u32, at: Mem, from: u8, k: u8, part: usize);
}
