//! Where lanes part and meet. A gang's code stands there twice: once for when all its lanes are active, with no masks, and once for
//! when some are not. Registers lie in the same places at the same instruction of both, so code passes from one to the other
//! wherever lanes part, or all have come together.

use super::*;

impl Emitter<'_> {
    /// A label of the code in which this stands.
    pub(super) fn own(&self, l: Label) -> Label {
        if self.full { l } else { self.masked(l) }
    }

    /// The same label where masks count.
    pub(super) fn masked(&self, Label(number): Label) -> Label {
        Label(number + self.lowered.labels)
    }

    /// An instruction, where all lanes are active, or where masks count.
    pub(super) fn here(&self, full: bool, at: usize) -> Label {
        Label(self.heres + 2 * at as u32 + u32::from(!full))
    }

    /// Both forms of a gang's code, the first of which goes on with `next`.
    pub(super) fn bodies(&mut self, gang: usize, layout: &Layout) {
        let lowered = self.lowered;
        let last = lowered.code.len() - 1;
        for full in [true, false] {
            self.full = full;
            for (at, i) in lowered.code.iter().enumerate().take(last).skip(gang + 1) {
                self.asm.place(self.here(full, at));
                self.instruction(at, i, layout);
            }
            self.asm.place(self.here(full, last));
            match full {
                true => self.next(),
                false => self.asm.jmp(self.here(true, last)),
            }
        }
        self.some(self.here(false, gang + 1));
    }

    /// To `to` if all lanes of a gang are active. Zero flag: none is.
    pub(super) fn jump_if_all(&mut self, to: Label) {
        let (k, lanes) = (self.k, self.lanes);
        let [start, back] = [self.asm.label(), self.asm.label()];
        let goes = if self.proves { start } else { to };
        if self.proves {
            self.together.push([start, back, to]);
        }
        if self.avx2 {
            self.asm.kmov_to(RAX, k);
            self.asm.alu_imm(0x3B, false, Rm::Reg(RAX), (1 << lanes) - 1);
            self.asm.jcc(Cc::E, goes);
            self.asm.place(back);
            self.asm.test(false, RAX);
        } else {
            self.asm.kortest_all(k, lanes);
            self.asm.jcc(Cc::B, goes);
            self.asm.place(back);
        }
    }

    /// Goes on behind instruction `at`, with the lanes that are left.
    pub(super) fn go_on(&mut self, at: usize, skip: Option<Label>) {
        self.jump_if_all(self.here(true, at + 1));
        if let Some(skip) = skip {
            self.asm.jcc(Cc::E, self.masked(skip));
        }
        self.asm.jmp(self.here(false, at + 1));
    }

    fn clear(&mut self, m: R) {
        let to = self.m_to(m);
        self.asm.klogic(0x47, to, to, to);
        self.m_done(m, to);
    }

    pub(super) fn lanes(&mut self, at: usize, i: &I) {
        let k = self.k;
        match i {
            I::Part {
                c,
                below,
                rest,
                done,
                none,
                other,
            } => match self.full {
                true => self.part(at, *c, *below, [Some(*rest), *done], *other),
                false => {
                    let c = self.m_in(*c, self.k6);
                    let to = self.m_to(*rest);
                    // The scratch mask that `rest` may pass through is not that of `c`.
                    self.asm.klogic(0x42, to, c, k);
                    self.m_done(*rest, to);
                    self.asm.klogic(0x41, k, c, k);
                    self.asm.kortest(k);
                    self.asm.jcc(Cc::E, self.own(*none));
                }
            },
            I::Other { to, .. } | I::Leave { direct: to, .. } if self.full => self.asm.jmp(*to),
            I::Join { .. } | I::Turn { .. } if self.full => {}
            I::Masked if self.full => self.asm.jmp(self.here(false, at)),
            I::Other { done, rest, to } => {
                self.m_done(*done, k);
                let rest = self.m_in(*rest, self.k7);
                self.asm.kmov(k, Rm::Reg(rest));
                self.asm.kortest(k);
                self.asm.jcc(Cc::E, self.own(*to));
            }
            I::Join { waiting, skip } => {
                let waiting = self.m_in(*waiting, self.k7);
                self.asm.klogic(0x45, k, k, waiting);
                self.jump_if_all(self.here(true, at + 1));
                self.asm.jcc(Cc::E, self.own(*skip));
            }
            I::Turn { continued, exit } => {
                let from = self.m_in(*continued, self.k7);
                self.asm.klogic(0x45, k, k, from);
                self.clear(*continued);
                self.jump_if_all(self.here(true, at + 1));
                self.asm.jcc(Cc::E, self.own(*exit));
            }
            I::Leave { to, skip, .. } => {
                if let Some(to) = to {
                    let (old, new) = (self.m_in(*to, self.k7), self.m_to(*to));
                    self.asm.klogic(0x45, new, old, k);
                    self.m_done(*to, new);
                }
                self.asm.klogic(0x47, k, k, k);
                self.asm.jmp(self.own(*skip));
            }
            _ => {}
        }
    }

    /// The lanes that a comparison is true of, by one subtraction.
    pub(super) fn below(&mut self, below: Below, d: R) {
        let to = self.m_to(d);
        self.g_copy(below.n, RAX);
        if below.equal {
            self.g_alu(0x2B, below.w, RAX, below.base);
            let asm = &mut self.asm;
            asm.mov_imm(RCX, u64::from(self.lanes));
            asm.alu(0x3B, below.w, RAX, Rm::Reg(RCX));
            asm.cmov(Cc::A, RAX, Rm::Reg(RCX));
            // Bit `lanes` is none of a lane's.
            asm.mov_imm(RCX, 1);
            asm.shift(Pp::P66, false, RAX, Rm::Reg(RCX), RAX);
            asm.alu_imm(0x23, false, Rm::Reg(RAX), (1 << self.lanes) - 1);
        } else {
            let asm = &mut self.asm;
            asm.mov_imm(RCX, 0);
            self.g_alu(0x2B, true, RAX, below.base);
            let asm = &mut self.asm;
            asm.cmov(if below.signed { Cc::L } else { Cc::B }, RAX, Rm::Reg(RCX));
            asm.mov_imm(RCX, u64::from(self.lanes));
            asm.alu(0x3B, true, RAX, Rm::Reg(RCX));
            asm.cmov(Cc::A, RAX, Rm::Reg(RCX));
            asm.mov_imm(RCX, u64::from(u32::MAX));
            // bzhi: the low bits of all ones.
            asm.vex(Vop(Pp::None, 2, false, 0xF5), false, RAX, RAX, Rm::Reg(RCX));
        }
        self.asm.kmov_from(to, RAX);
        if below.not {
            self.asm.klogic(0x42, to, to, self.k);
        }
        self.m_done(d, to);
    }

    /// All lanes come to a branch: together they take one side of it, or part.
    fn part(&mut self, at: usize, c: R, below: Option<Below>, [rest, done]: [Option<R>; 2], other: Label) {
        let asm = &mut self.asm;
        let (all, none) = (asm.label(), asm.label());
        // What `below` would have computed is computed where masks count.
        let mixed = self.here(false, at - usize::from(below.is_some()));
        match below {
            None => {
                let c = self.m_in(c, self.k7);
                self.asm.ktest(c, self.k, self.lanes);
                self.asm.jcc(Cc::E, none);
                self.asm.jcc(Cc::Ae, mixed);
            }
            Some(below) if below.equal => {
                // No gang has one number in all lanes.
                self.g_copy(below.n, RAX);
                self.g_alu(0x2B, below.w, RAX, below.base);
                self.asm.alu_imm(0x3B, below.w, Rm::Reg(RAX), self.lanes as i32);
                self.asm.jcc(Cc::B, mixed);
                if !below.not {
                    self.asm.jmp(none);
                }
            }
            Some(Below {
                signed, base, n, not, ..
            }) => {
                let (yes, no) = if not { (none, all) } else { (all, none) };
                self.g_copy(n, RAX);
                self.g_alu(0x2B, true, RAX, base);
                let asm = &mut self.asm;
                asm.jcc(if signed { Cc::Le } else { Cc::Be }, no);
                asm.alu_imm(0x3B, true, Rm::Reg(RAX), self.lanes as i32);
                asm.jcc(Cc::B, mixed);
                if not {
                    asm.jmp(yes);
                }
            }
        }
        self.asm.place(all);
        rest.into_iter().for_each(|rest| self.clear(rest));
        self.nobody.push((none, done, other));
    }

    /// Where all lanes take the other side.
    pub(super) fn others(&mut self) {
        for (none, done, other) in std::mem::take(&mut self.nobody) {
            self.asm.place(none);
            done.into_iter().for_each(|done| self.clear(done));
            self.asm.jmp(other);
        }
    }
}
