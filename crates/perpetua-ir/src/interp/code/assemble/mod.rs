//! Bytes of x86-64 instructions: prefixes, operands and jumps. Knows encodings, not what instructions are for.
//!
//! Displacements are always 32 bits wide (or absent), which spares EVEX its scaled bytes.
//!
//! Without AVX-512 the same instructions are written with VEX prefixes, and masks are vectors: all ones in lanes that are in.
//! What has no such form is written out in `emit::masks`, or not asked for ([`Vop::in_avx2`]).

mod jumps;
mod masks;
pub(super) mod table;

/// A general register by its number.
pub(super) type Gpr = u8;

pub(super) const RAX: Gpr = 0;
pub(super) const RCX: Gpr = 1;
pub(super) const RDX: Gpr = 2;
pub(super) const RBX: Gpr = 3;
pub(super) const RBP: Gpr = 5;
pub(super) const RSI: Gpr = 6;
pub(super) const RDI: Gpr = 7;

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
        Mem {
            base,
            index: None,
            disp,
        }
    }
}

/// The operand that may lie in memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rm {
    Reg(u8),
    Mem(Mem),
}

/// A place in the code that jumps name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Label(pub(super) u32);

/// Conditions of jumps, moves and sets, as the processor numbers them.
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
    pub(super) fn new(length: u8, bits: Option<Mem>) -> Assembler {
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

    /// There is no such instruction, which lowering should have known: so there is no code.
    pub(super) fn lacks(&mut self) {
        self.jumps.push((0, Label(u32::MAX)));
    }

    /// Resolves jumps; the code, or `None` where a jump leads to a label that stands nowhere.
    pub(super) fn finish(mut self) -> Option<Vec<u8>> {
        for (at, label) in &self.jumps {
            let target = self.labels.get(label.0 as usize).copied().flatten()?;
            let distance = (target as i64 - (*at as i64 + 4)) as i32;
            self.bytes
                .get_mut(*at..at + 4)?
                .copy_from_slice(&distance.to_le_bytes());
        }
        Some(self.bytes)
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
    pub(super) fn gpr(&mut self, prefix: &[u8], w: bool, byte: bool, opcode: &[u8], reg: u8, rm: Rm) {
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
    pub(super) fn evex(&mut self, op: Vop, reg: u8, second: u8, rm: Rm, ev: Ev) {
        self.evex_at(op, self.length, reg, second, rm, ev);
    }

    /// The same at a length of its own: 0, 1 or 2 for 128, 256 or 512 bits.
    pub(super) fn evex_at(
        &mut self,
        Vop(pp, map, w, opcode): Vop,
        length: u8,
        reg: u8,
        second: u8,
        rm: Rm,
        ev: Ev,
    ) {
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
    pub(super) fn vex(&mut self, Vop(pp, map, w, opcode): Vop, l: bool, reg: u8, second: u8, rm: Rm) {
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

    pub(super) fn immediate8(&mut self, v: u8) {
        self.byte(v);
    }

    // ---- general registers ----

    pub(super) fn mov(&mut self, w: bool, to: Gpr, from: Rm) {
        if matches!(from, Rm::Reg(r) if r == to) && w {
            return;
        }
        self.gpr(&[], w, false, &[0x8B], to, from);
    }

    /// Loads a number in the shortest way that keeps flags.
    pub(super) fn mov_imm(&mut self, to: Gpr, v: u64) {
        if let Ok(v) = u32::try_from(v) {
            if to >= 8 {
                self.byte(0x41);
            }
            self.byte(0xB8 | to & 7);
            self.word(v as i32);
        } else {
            self.byte(0x48 | to >> 3);
            self.byte(0xB8 | to & 7);
            self.bytes.extend(v.to_le_bytes());
        }
    }

    pub(super) fn store(&mut self, size: u32, to: Mem, from: Gpr) {
        match size {
            1 => self.gpr(&[], false, true, &[0x88], from, Rm::Mem(to)),
            2 => self.gpr(&[0x66], false, false, &[0x89], from, Rm::Mem(to)),
            4 => self.gpr(&[], false, false, &[0x89], from, Rm::Mem(to)),
            _ => self.gpr(&[], true, false, &[0x89], from, Rm::Mem(to)),
        }
    }

    /// Loads with zero extension.
    pub(super) fn load(&mut self, size: u32, to: Gpr, from: Mem) {
        match size {
            1 => self.gpr(&[], false, false, &[0x0F, 0xB6], to, Rm::Mem(from)),
            2 => self.gpr(&[], false, false, &[0x0F, 0xB7], to, Rm::Mem(from)),
            4 => self.mov(false, to, Rm::Mem(from)),
            _ => self.mov(true, to, Rm::Mem(from)),
        }
    }

    /// Opcodes of the eight operations that begin at 03 (add 03, or 0B, and 23, sub 2B, xor 33, cmp 3B).
    pub(super) fn alu(&mut self, opcode: u8, w: bool, a: Gpr, b: Rm) {
        self.gpr(&[], w, false, &[opcode], a, b);
    }

    /// The same with a number.
    pub(super) fn alu_imm(&mut self, opcode: u8, w: bool, a: Rm, v: i32) {
        self.gpr(&[], w, false, &[0x81], opcode >> 3, a);
        self.word(v);
    }

    pub(super) fn imul(&mut self, w: bool, a: Gpr, b: Rm) {
        self.gpr(&[], w, false, &[0x0F, 0xAF], a, b);
    }

    pub(super) fn imul_imm(&mut self, to: Gpr, a: Rm, v: i32) {
        self.gpr(&[], true, false, &[0x69], to, a);
        self.word(v);
    }

    pub(super) fn movsxd(&mut self, to: Gpr, from: Rm) {
        self.gpr(&[], true, false, &[0x63], to, from);
    }

    /// Shifts by a number: 4 left, 5 right, 7 right with the sign.
    pub(super) fn shift_imm(&mut self, which: u8, w: bool, a: Gpr, by: u8) {
        self.gpr(&[], w, false, &[0xC1], which, Rm::Reg(a));
        self.byte(by);
    }

    /// BMI2 shifts: `to = a shifted by the low bits of by`. Left 66, right F2, right with the sign F3.
    pub(super) fn shift(&mut self, pp: Pp, w: bool, to: Gpr, a: Rm, by: Gpr) {
        self.vex(Vop(pp, 2, w, 0xF7), false, to, by, a);
    }

    /// The number of the lowest bit.
    pub(super) fn tzcnt(&mut self, to: Gpr, from: Gpr) {
        self.gpr(&[0xF3], false, false, &[0x0F, 0xBC], to, Rm::Reg(from));
    }

    pub(super) fn test(&mut self, w: bool, a: Gpr) {
        self.gpr(&[], w, false, &[0x85], a, Rm::Reg(a));
    }

    pub(super) fn setcc(&mut self, cc: Cc, to: Gpr) {
        self.gpr(&[], false, true, &[0x0F, 0x90 | cc as u8], 0, Rm::Reg(to));
        self.gpr(&[], false, true, &[0x0F, 0xB6], to, Rm::Reg(to));
    }

    pub(super) fn cmov(&mut self, cc: Cc, to: Gpr, from: Rm) {
        self.gpr(&[], true, false, &[0x0F, 0x40 | cc as u8], to, from);
    }

    /// Negation (3), complement (2), multiplication of rax (4), division of rdx:rax (6, 7 signed).
    pub(super) fn unary(&mut self, which: u8, w: bool, a: Rm) {
        self.gpr(&[], w, false, &[0xF7], which, a);
    }

    /// Sign of rax into rdx.
    pub(super) fn cdq(&mut self, w: bool) {
        if w {
            self.byte(0x48);
        }
        self.byte(0x99);
    }

    pub(super) fn push(&mut self, r: Gpr) {
        if r >= 8 {
            self.byte(0x41);
        }
        self.byte(0x50 | r & 7);
    }

    pub(super) fn pop(&mut self, r: Gpr) {
        if r >= 8 {
            self.byte(0x41);
        }
        self.byte(0x58 | r & 7);
    }

    pub(super) fn ret(&mut self) {
        self.byte(0xC3);
    }

    pub(super) fn vzeroupper(&mut self) {
        self.bytes.extend([0xC5, 0xF8, 0x77]);
    }
}

/// AVX2 has sixteen registers: the emitter's scratch vectors, which are the last four of 32, are others there.
fn narrow(r: u8) -> u8 {
    if r >= 28 { r - 17 } else { r }
}
