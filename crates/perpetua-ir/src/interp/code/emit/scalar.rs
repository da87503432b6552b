//! Scalar instructions: results go to their own register where the second operand does not lie there.

use super::*;

impl Emitter<'_> {
    /// Whether the host has put it where it lies.
    pub(super) fn is_given(&self, d: R) -> bool {
        self.homes
            .origin(d)
            .is_some_and(|origin| origin == self.homes.home(d))
    }

    /// The register for a result whose first operand is copied there before the second is read.
    fn g_to(&self, d: R, b: G) -> Gpr {
        match (self.homes.home(d), b) {
            (Home::Register(to), G::R(b)) if self.homes.home(b) == Home::Register(to) => RAX,
            (Home::Register(to), _) => to,
            _ => RAX,
        }
    }

    pub(super) fn g_bin(&mut self, op: GOp, w: bool, d: R, a: G, b: G) {
        match op {
            GOp::Add | GOp::Sub | GOp::And | GOp::Or | GOp::Xor => {
                let opcode = match op {
                    GOp::Add => 0x03,
                    GOp::Sub => 0x2B,
                    GOp::And => 0x23,
                    GOp::Or => 0x0B,
                    _ => 0x33,
                };
                let to = self.g_to(d, b);
                self.g_copy(a, to);
                self.g_alu(opcode, w, to, b);
                return self.g_out(d, to);
            }
            GOp::Mul => {
                let to = self.g_to(d, b);
                self.g_copy(a, to);
                let b = self.g_rm(b, RCX);
                self.asm.imul(w, to, b);
                return self.g_out(d, to);
            }
            GOp::Shl | GOp::Shr | GOp::Sar => {
                let (pp, which) = match op {
                    GOp::Shl => (Pp::P66, 4),
                    GOp::Shr => (Pp::PF2, 5),
                    _ => (Pp::PF3, 7),
                };
                if let G::Imm(by) = b {
                    self.g_copy(a, RAX);
                    let by = by as u8 & if w { 63 } else { 31 };
                    self.asm.shift_imm(which, w, RAX, by);
                } else {
                    let b = self.g_in(b, RCX);
                    let a = self.g_rm(a, RAX);
                    self.asm.shift(pp, w, RAX, a, b);
                }
            }
            GOp::Choose(cc) => {
                let not = match cc {
                    Cc::L => Cc::Ge,
                    Cc::B => Cc::Ae,
                    Cc::G => Cc::Le,
                    _ => Cc::Be,
                };
                self.g_copy(a, RAX);
                self.g_copy(b, RCX);
                self.asm.alu(0x3B, w, RAX, Rm::Reg(RCX));
                self.asm.cmov(not, RAX, Rm::Reg(RCX));
            }
        }
        self.g_out(d, RAX);
    }
}
