//! x86-64: general instructions, jumps, and atomic operations.

use super::*;

impl Assembler {
    /// Replaces what is at `at` by what an operator makes of it and of rcx, which gets what was there.
    fn update(&mut self, op: AtomicOp, s: Scalar, at: Mem, lock: &[u8]) {
        let (size, wide) = (s.size(), s.size() == 8);
        let again = self.label();
        self.push(RAX);
        self.push(RBX);
        self.load(size, RAX, at);
        self.place(again);
        self.mov(true, RBX, Rm::Reg(RAX));
        let with = Rm::Reg(RCX);
        match op {
            AtomicOp::And => self.alu(Alu::And, wide, RBX, with),
            AtomicOp::Or => self.alu(Alu::Or, wide, RBX, with),
            AtomicOp::Xor => self.alu(Alu::Xor, wide, RBX, with),
            AtomicOp::Min | AtomicOp::Max => {
                self.alu(Alu::Compare, wide, RBX, with);
                let cc = match (op == AtomicOp::Min, s.is_signed_int()) {
                    (true, true) => Cc::G,
                    (true, false) => Cc::A,
                    (false, true) => Cc::L,
                    (false, false) => Cc::B,
                };
                self.cmov(cc, RBX, with);
            }
            // Of floats: integers have an instruction.
            AtomicOp::Add | AtomicOp::Sub | AtomicOp::Exchange => {
                let sum = Vop(if wide { Pp::PF2 } else { Pp::PF3 }, 1, wide, 0x58);
                self.low(Vop(Pp::P66, 1, wide, 0x6E), X0, 0, Rm::Reg(RBX));
                self.low(Vop(Pp::P66, 1, wide, 0x6E), X1, 0, Rm::Reg(RCX));
                self.low(sum, X0, X0, Rm::Reg(X1));
                self.low(Vop(Pp::P66, 1, wide, 0x7E), X0, 0, Rm::Reg(RBX));
            }
        }
        self.gpr(lock, wide, false, &[0x0F, 0xB1], RBX, Rm::Mem(at));
        self.jcc(Cc::Ne, again);
        self.mov(true, RCX, Rm::Reg(RAX));
        self.pop(RBX);
        self.pop(RAX);
    }
}

impl Machine for Assembler {
    const STATE: Gpr = 15;
    const KEPT: Gpr = 14;

    fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() as u32 - 1)
    }

    fn place(&mut self, label: Label) {
        let here = self.bytes.len();
        if let Some(at) = self.labels.get_mut(label.0 as usize) {
            *at = Some(here);
        }
    }

    #[cfg(feature = "assembly")]
    fn here(&self) -> usize {
        self.bytes.len()
    }

    fn finish(mut self) -> Option<Finished> {
        for (at, label) in &self.jumps {
            let target = self.labels.get(label.0 as usize).copied().flatten()?;
            let distance = (target as i64 - (*at as i64 + 4)) as i32;
            self.bytes
                .get_mut(*at..at + 4)?
                .copy_from_slice(&distance.to_le_bytes());
        }
        Some(Finished {
            bytes: self.bytes,
            #[cfg(all(test, feature = "assembly"))]
            meant: Box::new(self.meant),
        })
    }

    fn enter(&mut self) {
        for r in [RBX, RBP, 12, 13, 14, 15, RAX] {
            self.push(r);
        }
        self.mov(true, Self::STATE, Rm::Reg(RDI));
    }

    fn leave(&mut self) {
        self.vzeroupper();
        self.pop(RCX);
        for r in [15, 14, 13, 12, RBP, RBX] {
            self.pop(r);
        }
        // ret
        self.byte(0xC3);
    }

    fn call(&mut self, at: i32, number: u32) {
        self.mov(true, RDI, Rm::Reg(Self::STATE));
        self.mov_imm(RSI, number.into());
        self.vzeroupper();
        self.gpr(&[], false, false, &[0xFF], 2, Rm::Mem(Mem::at(Self::STATE, at)));
    }

    fn mov(&mut self, w: bool, to: Gpr, from: Rm) {
        if matches!(from, Rm::Reg(r) if r == to) && w {
            return;
        }
        self.gpr(&[], w, false, &[0x8B], to, from);
    }

    /// In the shortest way that keeps flags.
    fn mov_imm(&mut self, to: Gpr, v: u64) {
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

    fn store(&mut self, size: u32, to: Mem, from: Gpr) {
        match size {
            1 => self.gpr(&[], false, true, &[0x88], from, Rm::Mem(to)),
            2 => self.gpr(&[0x66], false, false, &[0x89], from, Rm::Mem(to)),
            4 => self.gpr(&[], false, false, &[0x89], from, Rm::Mem(to)),
            _ => self.gpr(&[], true, false, &[0x89], from, Rm::Mem(to)),
        }
    }

    fn load(&mut self, size: u32, to: Gpr, from: Mem) {
        match size {
            1 => self.gpr(&[], false, false, &[0x0F, 0xB6], to, Rm::Mem(from)),
            2 => self.gpr(&[], false, false, &[0x0F, 0xB7], to, Rm::Mem(from)),
            4 => self.mov(false, to, Rm::Mem(from)),
            _ => self.mov(true, to, Rm::Mem(from)),
        }
    }

    /// Through a vector register: no general one is free beside those of the address.
    fn transfer(&mut self, size: u32, to: Mem, from: Mem) {
        self.low(Vop(Pp::P66, 1, size == 8, 0x6E), X0, 0, Rm::Mem(from));
        self.low(Vop(Pp::P66, 1, true, 0xD6), X0, 0, Rm::Mem(to));
    }

    fn alu(&mut self, op: Alu, w: bool, a: Gpr, b: Rm) {
        self.gpr(&[], w, false, &[op as u8], a, b);
    }

    fn alu_imm(&mut self, op: Alu, w: bool, a: Rm, v: i32) {
        self.gpr(&[], w, false, &[0x81], op as u8 >> 3, a);
        self.word(v);
    }

    fn imul(&mut self, w: bool, a: Gpr, b: Rm) {
        self.gpr(&[], w, false, &[0x0F, 0xAF], a, b);
    }

    fn imul_imm(&mut self, to: Gpr, a: Gpr, v: i32) {
        self.gpr(&[], true, false, &[0x69], to, Rm::Reg(a));
        self.word(v);
    }

    fn movsxd(&mut self, to: Gpr, from: Gpr) {
        self.gpr(&[], true, false, &[0x63], to, Rm::Reg(from));
    }

    fn shift_imm(&mut self, op: Shift, w: bool, a: Gpr, by: u8) {
        let which = match op {
            Shift::Left => 4,
            Shift::Right => 5,
            Shift::Arithmetic => 7,
        };
        self.gpr(&[], w, false, &[0xC1], which, Rm::Reg(a));
        self.byte(by);
    }

    /// By BMI2.
    fn shift(&mut self, op: Shift, w: bool, to: Gpr, a: Rm, by: Gpr) {
        let pp = match op {
            Shift::Left => Pp::P66,
            Shift::Right => Pp::PF2,
            Shift::Arithmetic => Pp::PF3,
        };
        self.vex(Vop(pp, 2, w, 0xF7), false, to, by, a);
    }

    fn negate(&mut self, w: bool, a: Gpr) {
        self.group3(3, w, Rm::Reg(a));
    }

    fn complement(&mut self, w: bool, a: Gpr) {
        self.group3(2, w, Rm::Reg(a));
    }

    fn divide(&mut self, signed: bool, w: bool, remainder: bool) {
        if signed {
            // The sign of rax into rdx.
            if w {
                self.byte(0x48);
            }
            self.byte(0x99);
        } else {
            self.alu(Alu::Xor, false, RDX, Rm::Reg(RDX));
        }
        self.group3(if signed { 7 } else { 6 }, w, Rm::Reg(RCX));
        if remainder {
            self.mov(true, RAX, Rm::Reg(RDX));
        }
    }

    fn lowest(&mut self, to: Gpr, from: Gpr) {
        self.gpr(&[0xF3], false, false, &[0x0F, 0xBC], to, Rm::Reg(from));
    }

    fn drop_lowest(&mut self, a: Gpr, more: Label) {
        // blsr
        self.vex(Vop(Pp::None, 2, false, 0xF3), false, 1, a, Rm::Reg(a));
        self.jcc(Cc::Ne, more);
    }

    fn test(&mut self, w: bool, a: Gpr) {
        self.gpr(&[], w, false, &[0x85], a, Rm::Reg(a));
    }

    fn setcc(&mut self, cc: Cc, to: Gpr) {
        self.gpr(&[], false, true, &[0x0F, 0x90 | cc as u8], 0, Rm::Reg(to));
        self.gpr(&[], false, true, &[0x0F, 0xB6], to, Rm::Reg(to));
    }

    fn cmov(&mut self, cc: Cc, to: Gpr, from: Rm) {
        self.gpr(&[], true, false, &[0x0F, 0x40 | cc as u8], to, from);
    }

    fn jmp(&mut self, to: Label) {
        self.byte(0xE9);
        self.jumps.push((self.bytes.len(), to));
        self.word(0);
    }

    fn jcc(&mut self, cc: Cc, to: Label) {
        self.byte(0x0F);
        self.byte(0x80 | cc as u8);
        self.jumps.push((self.bytes.len(), to));
        self.word(0);
    }

    fn jmp_to(&mut self, m: Mem) {
        self.gpr(&[], false, false, &[0xFF], 4, Rm::Mem(m));
    }

    fn lea(&mut self, of: Label) {
        self.bytes.extend([0x48, 0x8D, 0x05]);
        self.jumps.push((self.bytes.len(), of));
        self.word(0);
    }

    /// Other accesses are not reordered but for loads before earlier stores, which acquire and release allow.
    fn fence(&mut self) {}

    fn atomic(&mut self, act: AtomicKind, s: Scalar, own: bool, at: Mem, others: i32) {
        let (size, wide) = (s.size(), s.size() == 8);
        let lock: &[u8] = if own { &[] } else { &[0xF0] };
        match act {
            AtomicKind::Load => self.load(size, RCX, at),
            AtomicKind::Store if own => self.store(size, at, RCX),
            AtomicKind::Update(op @ (AtomicOp::Add | AtomicOp::Sub)) if s.is_int() => {
                if op == AtomicOp::Sub {
                    self.negate(wide, RCX);
                }
                self.gpr(lock, wide, false, &[0x0F, 0xC1], RCX, Rm::Mem(at));
            }
            AtomicKind::CompareExchange => {
                self.push(RAX);
                self.push(RBX);
                self.lowest(RBX, RAX);
                let index = Some((RBX, size.trailing_zeros() as u8));
                let (base, disp) = (Self::STATE, others);
                self.load(size, RBX, Mem { base, index, disp });
                self.mov(true, RAX, Rm::Reg(RCX));
                self.gpr(lock, wide, false, &[0x0F, 0xB1], RBX, Rm::Mem(at));
                self.mov(true, RCX, Rm::Reg(RAX));
                self.pop(RBX);
                self.pop(RAX);
            }
            AtomicKind::Update(op) if op != AtomicOp::Exchange => self.update(op, s, at, lock),
            // An exchange is locked by itself.
            AtomicKind::Store | AtomicKind::Update(_) => {
                self.gpr(&[], wide, false, &[0x87], RCX, Rm::Mem(at));
            }
        }
    }
}
