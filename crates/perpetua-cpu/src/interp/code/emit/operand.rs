//! Operands: registers where virtual ones lie, scratch registers for what lies in the frame. Knows no instruction's meaning.

use super::*;

impl<M: Lanes> Emitter<'_, M> {
    /// A place in the gang's frame: its own, or the only one.
    pub(super) fn frame(&self, at: i32) -> Mem {
        match self.meets {
            true => Mem::at(M::KEPT, at),
            false => Mem::at(M::STATE, self.spills + at),
        }
    }

    /// Where what lies in memory does.
    pub(super) fn memory(&self, home: Home) -> Option<Mem> {
        match home {
            Home::Frame(at) => Some(self.frame(at)),
            Home::Common(at) => Some(Mem::at(M::STATE, self.spills + at)),
            Home::State(at) => Some(Mem::at(M::STATE, at)),
            Home::Entry(at) => Some(Mem::at(M::KEPT, at)),
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
                self.asm.mov(true, scratch, Rm::Mem(Mem::at(M::STATE, at)));
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
            G::State(at) => Rm::Mem(Mem::at(M::STATE, at)),
            G::R(r) => match (self.homes.home(r), self.spilled(r)) {
                (Home::Register(r), _) => Rm::Reg(r),
                (_, at) => at.map_or(Rm::Reg(scratch), Rm::Mem),
            },
            G::Imm(_) => Rm::Reg(self.g_in(g, scratch)),
        }
    }

    pub(super) fn g_alu(&mut self, op: Alu, w: bool, a: Gpr, b: G) {
        match b {
            G::Imm(v) => self.asm.alu_imm(op, w, Rm::Reg(a), v),
            _ => {
                let b = self.g_rm(b, D);
                self.asm.alu(op, w, a, b);
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
                self.asm.vload(scratch, at);
                scratch
            }
            _ => scratch,
        }
    }

    pub(super) fn source(&mut self, x: X) -> Source {
        match x {
            X::R(r) => match (self.homes.home(r), self.spilled(r)) {
                (Home::Register(r), _) => Source::Reg(r),
                (_, at) => at.map_or(Source::Reg(X3), Source::Mem),
            },
            X::Splat(at) => Source::Splat(Mem::at(M::STATE, at)),
            X::State(at) => Source::Mem(Mem::at(M::STATE, at)),
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
            (Home::Register(r), _) => self.asm.vmov(r, from),
            (_, Some(at)) => self.asm.vstore(at, from),
            _ => {}
        }
    }

    pub(super) fn m_in(&mut self, m: R, scratch: u8) -> u8 {
        match (self.homes.home(m), self.spilled(m)) {
            (Home::Register(k), _) => k,
            (_, Some(at)) => {
                self.asm.kload(scratch, at);
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
            (Home::Register(r), _) => self.asm.kmov(r, k),
            (_, Some(at)) => self.asm.kstore(at, k),
            _ => {}
        }
    }
}
