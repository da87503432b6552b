//! Operands: registers where virtual ones lie, scratch registers for what lies in the frame. Knows no instruction's meaning.

use super::*;

impl Emitter<'_> {
    /// A place in the gang's frame: its own, or the only one.
    pub(super) fn frame(&self, at: i32) -> Mem {
        match self.meets {
            true => Mem::at(GANG_AT, at),
            false => Mem::at(STATE, self.spills + at),
        }
    }

    /// Where what lies in memory does.
    pub(super) fn memory(&self, home: Home) -> Option<Mem> {
        match home {
            Home::Frame(at) => Some(self.frame(at)),
            Home::Common(at) => Some(Mem::at(STATE, self.spills + at)),
            Home::State(at) => Some(Mem::at(STATE, at)),
            Home::Entry(at) => Some(Mem::at(GANG_AT, at)),
            Home::Nowhere | Home::Register(_) => None,
        }
    }

    /// The place in memory where a register lies.
    fn spilled(&self, r: R) -> Option<Mem> {
        self.memory(self.homes.home(r))
    }

    pub(super) fn g_in(&mut self, g: G, scratch: Gpr) -> Gpr {
        match g {
            G::R(r) => match (self.homes.home(r), self.spilled(r)) {
                (Home::Register(r), _) => r,
                (_, Some(at)) => {
                    self.asm.mov(true, scratch, Rm::Mem(at));
                    scratch
                }
                _ => scratch,
            },
            G::Imm(v) => {
                self.asm.mov_imm(scratch, i64::from(v) as u64);
                scratch
            }
            G::State(at) => {
                self.asm.mov(true, scratch, Rm::Mem(Mem::at(STATE, at)));
                scratch
            }
        }
    }

    /// Into a register that may be changed.
    pub(super) fn g_copy(&mut self, g: G, to: Gpr) {
        let from = self.g_in(g, to);
        self.asm.mov(true, to, Rm::Reg(from));
    }

    /// As the second operand of an operation, where it is no number.
    pub(super) fn g_rm(&mut self, g: G, scratch: Gpr) -> Rm {
        match g {
            G::State(at) => Rm::Mem(Mem::at(STATE, at)),
            G::R(r) => match (self.homes.home(r), self.spilled(r)) {
                (Home::Register(r), _) => Rm::Reg(r),
                (_, at) => at.map_or(Rm::Reg(scratch), Rm::Mem),
            },
            G::Imm(_) => Rm::Reg(self.g_in(g, scratch)),
        }
    }

    pub(super) fn g_alu(&mut self, opcode: u8, w: bool, a: Gpr, b: G) {
        match b {
            G::Imm(v) => self.asm.alu_imm(opcode, w, Rm::Reg(a), v),
            _ => {
                let b = self.g_rm(b, RDX);
                self.asm.alu(opcode, w, a, b);
            }
        }
    }

    pub(super) fn g_out(&mut self, d: R, from: Gpr) {
        match (self.homes.home(d), self.spilled(d)) {
            (Home::Register(r), _) => self.asm.mov(true, r, Rm::Reg(from)),
            (_, Some(at)) => self.asm.store(8, at, from),
            _ => {}
        }
    }

    pub(super) fn x_in(&mut self, r: R, scratch: u8) -> u8 {
        match (self.homes.home(r), self.spilled(r)) {
            (Home::Register(r), _) => r,
            (_, Some(at)) => {
                self.evex(MOVAPS, scratch, 0, Rm::Mem(at));
                scratch
            }
            _ => scratch,
        }
    }

    pub(super) fn x_rm(&mut self, x: X) -> (Rm, bool) {
        match x {
            X::R(r) => match (self.homes.home(r), self.spilled(r)) {
                (Home::Register(r), _) => (Rm::Reg(r), false),
                (_, at) => (at.map_or(Rm::Reg(X3), Rm::Mem), false),
            },
            X::Splat(at) => (Rm::Mem(Mem::at(STATE, at)), true),
            X::State(at) => (Rm::Mem(Mem::at(STATE, at)), false),
        }
    }

    /// The register that a vector is to be written to.
    pub(super) fn x_to(&self, d: R, scratch: u8) -> u8 {
        match self.homes.home(d) {
            Home::Register(r) => r,
            _ => scratch,
        }
    }

    pub(super) fn x_done(&mut self, d: R, from: u8) {
        match (self.homes.home(d), self.spilled(d)) {
            (Home::Register(r), _) if r == from => {}
            (Home::Register(r), _) => self.evex(MOVAPS, r, 0, Rm::Reg(from)),
            (_, Some(at)) => self.evex(MOVAPS_STORE, from, 0, Rm::Mem(at)),
            _ => {}
        }
    }

    pub(super) fn m_in(&mut self, m: R, scratch: u8) -> u8 {
        match (self.homes.home(m), self.spilled(m)) {
            (Home::Register(k), _) => k,
            (_, Some(at)) => {
                self.asm.kmov(scratch, Rm::Mem(at));
                scratch
            }
            _ => scratch,
        }
    }

    pub(super) fn m_to(&self, d: R) -> u8 {
        match self.homes.home(d) {
            Home::Register(k) => k,
            _ => self.k7,
        }
    }

    pub(super) fn m_done(&mut self, d: R, k: u8) {
        match (self.homes.home(d), self.spilled(d)) {
            (Home::Register(r), _) => self.asm.kmov(r, Rm::Reg(k)),
            (_, Some(at)) => self.asm.kstore(at, k),
            _ => {}
        }
    }

    pub(super) fn evex(&mut self, op: Vop, reg: u8, second: u8, rm: Rm) {
        self.asm.evex(op, reg, second, rm, Ev::default());
    }

    pub(super) fn evex_k(&mut self, op: Vop, reg: u8, second: u8, rm: Rm, k: u8, z: bool) {
        self.asm.evex(op, reg, second, rm, Ev { k, z, b: false });
    }

    /// An instruction on the lowest scalar of vector registers.
    pub(super) fn one(&mut self, op: Vop, reg: u8, second: u8, rm: Rm) {
        self.asm.evex_at(op, 0, reg, second, rm, Ev::default());
    }

    pub(super) fn half(&self) -> u8 {
        (self.lanes / 2) as u8
    }

    /// The upper half of a vector.
    pub(super) fn extract(&mut self, to: u8, from: u8) {
        let op = match self.length {
            2 => Vop(Pp::P66, 3, true, 0x3B),
            _ => Vop(Pp::P66, 3, false, 0x39),
        };
        self.evex(op, from, 0, Rm::Reg(to));
        self.asm.immediate8(1);
    }

    pub(super) fn insert(&mut self, d: u8, low: u8, high: u8) {
        let op = match self.length {
            2 => Vop(Pp::P66, 3, true, 0x3A),
            _ => Vop(Pp::P66, 3, false, 0x38),
        };
        self.evex(op, d, low, Rm::Reg(high));
        self.asm.immediate8(1);
    }
}
