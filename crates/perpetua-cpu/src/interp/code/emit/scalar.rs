//! Scalar instructions: results go to their own register where the second operand does not lie there.

use super::*;

impl<M: Lanes> Emitter<'_, M> {
    /// Whether the host has put it where it lies.
    pub(super) fn is_given(&self, d: R) -> bool {
        self.homes
            .origin(d)
            .is_some_and(|origin| origin == self.homes.home(d))
    }

    /// The register for a result whose first operand is copied there before the second is read.
    fn g_to(&self, d: R, b: G) -> Gpr {
        match (self.homes.home(d), b) {
            (Home::Register(to), G::R(b)) if self.homes.home(b) == Home::Register(to) => A,
            (Home::Register(to), _) => to,
            _ => A,
        }
    }

    pub(super) fn g_bin(&mut self, op: GOp, w: bool, d: R, a: G, b: G) {
        match op {
            GOp::Add | GOp::Sub | GOp::And | GOp::Or | GOp::Xor => {
                let alu = match op {
                    GOp::Add => Alu::Add,
                    GOp::Sub => Alu::Sub,
                    GOp::And => Alu::And,
                    GOp::Or => Alu::Or,
                    _ => Alu::Xor,
                };
                let to = self.g_to(d, b);
                self.g_copy(a, to);
                self.g_alu(alu, w, to, b);
                return self.g_out(d, to);
            }
            GOp::Mul => {
                let to = self.g_to(d, b);
                self.g_copy(a, to);
                let b = self.g_rm(b, C);
                self.asm.imul(w, to, b);
                return self.g_out(d, to);
            }
            GOp::Shl | GOp::Shr | GOp::Sar => {
                let shift = match op {
                    GOp::Shl => Shift::Left,
                    GOp::Shr => Shift::Right,
                    _ => Shift::Arithmetic,
                };
                if let G::Imm(by) = b {
                    self.g_copy(a, A);
                    let by = by as u8 & if w { 63 } else { 31 };
                    self.asm.shift_imm(shift, w, A, by);
                } else {
                    let b = self.g_in(b, C);
                    let a = self.g_rm(a, A);
                    self.asm.shift(shift, w, A, a, b);
                }
            }
            GOp::Choose(cc) => {
                let not = match cc {
                    Cc::L => Cc::Ge,
                    Cc::B => Cc::Ae,
                    Cc::G => Cc::Le,
                    _ => Cc::Be,
                };
                self.g_copy(a, A);
                self.g_copy(b, C);
                self.asm.alu(Alu::Compare, w, A, Rm::Reg(C));
                self.asm.cmov(not, A, Rm::Reg(C));
            }
        }
        self.g_out(d, A);
    }
}
