//! Where lanes part and meet. A gang's code stands there twice: once for when all its lanes are active, with no masks, and once for
//! when some are not. Registers lie in the same places at the same instruction of both, so code passes from one to the other
//! wherever lanes part, or all have come together.

use super::*;

impl<M: Lanes> Emitter<'_, M> {
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

    /// Goes on behind instruction `at`, with the lanes that are left.
    pub(super) fn go_on(&mut self, at: usize, skip: Option<Label>) {
        let (all, none) = (self.here(true, at + 1), skip.map(|skip| self.masked(skip)));
        self.asm.kjump_all(self.k, all, none);
        self.asm.jmp(self.here(false, at + 1));
    }

    fn clear(&mut self, m: R) {
        let to = self.m_to(m);
        self.asm.kset(to, false);
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
                    self.asm.klogic(MOp::AndNot, to, c, k);
                    self.m_done(*rest, to);
                    self.asm.klogic(MOp::And, k, c, k);
                    let to = self.own(*none);
                    self.asm.kjump(true, k, to);
                }
            },
            I::Other { to, .. } | I::Leave { direct: to, .. } if self.full => self.asm.jmp(*to),
            I::Join { .. } | I::Turn { .. } if self.full => {}
            I::Masked if self.full => self.asm.jmp(self.here(false, at)),
            I::Other { done, rest, to } => {
                self.m_done(*done, k);
                let rest = self.m_in(*rest, self.k7);
                self.asm.kmov(k, rest);
                let to = self.own(*to);
                self.asm.kjump(true, k, to);
            }
            I::Join { waiting, skip } => {
                let waiting = self.m_in(*waiting, self.k7);
                self.asm.klogic(MOp::Or, k, k, waiting);
                let none = self.own(*skip);
                self.asm.kjump_all(k, self.here(true, at + 1), Some(none));
            }
            I::Turn { continued, exit } => {
                let from = self.m_in(*continued, self.k7);
                self.asm.klogic(MOp::Or, k, k, from);
                self.clear(*continued);
                let none = self.own(*exit);
                self.asm.kjump_all(k, self.here(true, at + 1), Some(none));
            }
            I::Leave { to, skip, .. } => {
                if let Some(to) = to {
                    let (old, new) = (self.m_in(*to, self.k7), self.m_to(*to));
                    self.asm.klogic(MOp::Or, new, old, k);
                    self.m_done(*to, new);
                }
                self.asm.kset(k, false);
                self.asm.jmp(self.own(*skip));
            }
            _ => {}
        }
    }

    /// The lanes that a comparison is true of, by one subtraction.
    pub(super) fn below(&mut self, below: Below, d: R) {
        let to = self.m_to(d);
        self.g_copy(below.n, A);
        if below.equal {
            self.g_alu(Alu::Sub, below.w, A, below.base);
            let asm = &mut self.asm;
            asm.mov_imm(C, u64::from(self.lanes));
            asm.alu(Alu::Compare, below.w, A, Rm::Reg(C));
            asm.cmov(Cc::A, A, Rm::Reg(C));
            // Bit `lanes` is none of a lane's.
            asm.mov_imm(C, 1);
            asm.shift(Shift::Left, false, A, Rm::Reg(C), A);
            asm.alu_imm(Alu::And, false, Rm::Reg(A), (1 << self.lanes) - 1);
            self.asm.mask_of_bits(to, A);
        } else {
            let asm = &mut self.asm;
            asm.mov_imm(C, 0);
            self.g_alu(Alu::Sub, true, A, below.base);
            let asm = &mut self.asm;
            asm.cmov(if below.signed { Cc::L } else { Cc::B }, A, Rm::Reg(C));
            asm.mov_imm(C, u64::from(self.lanes));
            asm.alu(Alu::Compare, true, A, Rm::Reg(C));
            asm.cmov(Cc::A, A, Rm::Reg(C));
            asm.first_lanes(to);
        }
        if below.not {
            self.asm.klogic(MOp::AndNot, to, to, self.k);
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
                self.asm.kinside(c, self.k, Some(none), mixed);
            }
            Some(below) if below.equal => {
                // No gang has one number in all lanes.
                self.g_copy(below.n, A);
                self.g_alu(Alu::Sub, below.w, A, below.base);
                self.asm
                    .alu_imm(Alu::Compare, below.w, Rm::Reg(A), self.lanes as i32);
                self.asm.jcc(Cc::B, mixed);
                if !below.not {
                    self.asm.jmp(none);
                }
            }
            Some(Below {
                signed, base, n, not, ..
            }) => {
                let (yes, no) = if not { (none, all) } else { (all, none) };
                self.g_copy(n, A);
                self.g_alu(Alu::Sub, true, A, base);
                let asm = &mut self.asm;
                asm.jcc(if signed { Cc::Le } else { Cc::Be }, no);
                asm.alu_imm(Alu::Compare, true, Rm::Reg(A), self.lanes as i32);
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
