//! One instruction after the other. What reaches memory that lanes share stands in `access`.

use super::*;

impl<M: Lanes> Emitter<'_, M> {
    pub(super) fn instruction(&mut self, at: usize, i: &I, layout: &Layout) {
        match i {
            I::Row => self.row(),
            I::Block => self.block(),
            I::Gang => self.gang(),
            I::Next => self.next(),
            I::Head | I::Tail => {}
            I::At(pc) => self.mark(*pc),
            I::Label(l) => self.asm.place(self.own(*l)),
            I::Jump(l) => self.asm.jmp(self.own(*l)),
            // It lies there already.
            I::GMov { d, .. } | I::GGang { d, .. } if self.is_given(*d) => {}
            I::GGang { d, at } => {
                let to = match self.homes.home(*d) {
                    Home::Register(r) => r,
                    _ => A,
                };
                self.asm.load(8, to, Mem::at(M::KEPT, *at));
            }
            I::GMov { w, d, s } => {
                let s = self.g_in(*s, A);
                if *w {
                    self.g_out(*d, s);
                } else {
                    self.asm.mov(false, A, Rm::Reg(s));
                    self.g_out(*d, A);
                }
            }
            I::GBin { op, w, d, a, b } => self.g_bin(*op, *w, *d, *a, *b),
            I::GUnary { which, w, d, a } => {
                self.g_copy(*a, A);
                match which {
                    3 => self.asm.negate(*w, A),
                    _ => self.asm.complement(*w, A),
                }
                self.g_out(*d, A);
            }
            I::GCompare { w, cc, d, a, b } => {
                let a = self.g_in(*a, A);
                self.g_alu(Alu::Compare, *w, a, *b);
                self.asm.setcc(*cc, A);
                self.g_out(*d, A);
            }
            I::GSelect { d, c, a, b } => {
                self.g_copy(*b, A);
                let a = self.g_rm(*a, C);
                let c = self.g_in(*c, D);
                self.asm.test(false, c);
                self.asm.cmov(Cc::Ne, A, a);
                self.g_out(*d, A);
            }
            I::GExtend { signed, d, a } => {
                let a = self.g_in(*a, A);
                if *signed {
                    self.asm.movsxd(A, a);
                } else {
                    self.asm.mov(false, A, Rm::Reg(a));
                }
                self.g_out(*d, A);
            }
            I::GJump { cc, a, to } => {
                let a = self.g_in(*a, A);
                self.asm.test(false, a);
                self.asm.jcc(*cc, self.own(*to));
            }
            I::GCompareJump { w, cc, a, b, to } => {
                let a = self.g_in(*a, A);
                self.g_alu(Alu::Compare, *w, a, *b);
                self.asm.jcc(*cc, self.own(*to));
            }
            I::MLogic { op, d, a, b } => {
                let (a, b) = (self.m_in(*a, self.k6), self.m_in(*b, self.k7));
                let to = self.m_to(*d);
                self.asm.klogic(*op, to, a, b);
                self.m_done(*d, to);
            }
            I::MMov { d, s } => {
                let s = self.m_in(*s, self.k7);
                self.m_done(*d, s);
            }
            I::MConst { d, ones } => {
                let to = self.m_to(*d);
                self.asm.kset(to, *ones);
                self.m_done(*d, to);
            }
            I::MFromG { d, a } => {
                self.g_copy(*a, A);
                self.asm.alu_imm(Alu::And, false, Rm::Reg(A), 1);
                self.asm.negate(false, A);
                let to = self.m_to(*d);
                self.asm.mask_of_bits(to, A);
                self.m_done(*d, to);
            }
            I::MFromX { d, a } => {
                let (a, to) = (self.x_in(*a, X0), self.m_to(*d));
                self.asm.not_zero(to, a);
                self.m_done(*d, to);
            }
            I::MPair { d, low, high } => {
                let (low, high) = (self.m_in(*low, self.k6), self.m_in(*high, self.k7));
                let to = self.m_to(*d);
                self.asm.pair(to, low, high);
                self.m_done(*d, to);
            }
            I::MBelow { lazy, .. } if *lazy && self.full => {}
            I::MBelow { below, d, .. } => self.below(*below, *d),
            I::MKeep { d, m } => {
                let m = self.m_in(*m, self.k7);
                if self.full {
                    return self.m_done(*d, m);
                }
                // What others have, and what the active lanes get.
                self.asm.klogic(MOp::And, self.k7, m, self.k);
                let (old, to) = (self.m_in(*d, self.k6), self.m_to(*d));
                self.asm.klogic(MOp::AndNot, self.k6, self.k, old);
                self.asm.klogic(MOp::Or, to, self.k6, self.k7);
                self.m_done(*d, to);
            }
            I::Part { .. }
            | I::Other { .. }
            | I::Join { .. }
            | I::Leave { .. }
            | I::Turn { .. }
            | I::Masked => self.lanes(at, i),
            I::MJumpNone { m, to } => {
                let m = self.m_in(*m, self.k7);
                let to = self.own(*to);
                self.asm.kjump(true, m, to);
            }
            I::XBin { op, s, d, a, b } => {
                let (a, b) = (self.x_in(*a, X0), self.source(*b));
                let to = self.x_to(*d, X0);
                self.asm.binary(*op, *s, to, a, b);
                self.x_done(*d, to);
            }
            I::XUnary { op, s, d, a } => {
                let (a, to) = (self.x_in(*a, X0), self.x_to(*d, X0));
                self.asm.unary(*op, *s, to, a);
                self.x_done(*d, to);
            }
            I::XShift { op, s, d, a, by } => {
                let (a, to) = (self.x_in(*a, X0), self.x_to(*d, X0));
                self.asm.vshift(*op, *s, to, a, *by);
                self.x_done(*d, to);
            }
            I::XConvert { from, to, d, a } => {
                let (a, x) = (self.x_in(*a, X0), self.x_to(*d, X0));
                self.asm.convert(*from, *to, x, a);
                self.x_done(*d, x);
            }
            I::XWiden { from, to, d, a, half } => {
                let (a, x) = (self.x_in(*a, X0), self.x_to(*d, X0));
                self.asm.widen(*from, *to, x, a, *half);
                self.x_done(*d, x);
            }
            I::XNarrow {
                from,
                to,
                d,
                low,
                high,
            } => {
                let (low, high) = (self.x_in(*low, X0), self.x_in(*high, X1));
                let x = self.x_to(*d, X0);
                self.asm.narrow(*from, *to, x, low, high);
                self.x_done(*d, x);
            }
            I::XMov { d, s, masked } => {
                let s = self.x_in(*s, X0);
                match (*masked && !self.full, self.homes.home(*d)) {
                    (false, _) => self.x_done(*d, s),
                    (true, Home::Register(d)) => self.asm.blend(false, d, d, s, self.k),
                    (true, home) => {
                        if let Some(to) = self.memory(home) {
                            self.asm.store_own(4, to, s, self.k, 0);
                        }
                    }
                }
            }
            I::XSplat { wide, d, a } => {
                let (a, to) = (self.g_in(*a, A), self.x_to(*d, X0));
                self.asm.splat(*wide, to, Rm::Reg(a));
                self.x_done(*d, to);
            }
            I::XLoad { d, a, wide } => {
                let to = self.x_to(*d, X0);
                match self.source(*a) {
                    Source::Reg(r) => self.asm.vmov(to, r),
                    Source::Mem(m) => self.asm.vload(to, m),
                    Source::Splat(m) => self.asm.splat(*wide, to, Rm::Mem(m)),
                }
                self.x_done(*d, to);
            }
            I::XCompare { op, s, d, a, b } => {
                let (a, b) = (self.x_in(*a, X0), self.source(*b));
                let to = self.m_to(*d);
                self.asm.compare(*op, *s, to, a, b);
                self.m_done(*d, to);
            }
            I::XBlend { d, m, b, .. } if *m == CURRENT && self.full => {
                let b = self.x_in(*b, X1);
                self.x_done(*d, b);
            }
            I::XBlend {
                wide,
                part,
                d,
                m,
                a,
                b,
            } => {
                let mut k = self.m_in(*m, self.k7);
                if let Some(part) = part {
                    k = self.asm.half_mask(k, usize::from(*part), *wide);
                }
                let (a, b) = (self.x_in(*a, X0), self.x_in(*b, X1));
                let to = self.x_to(*d, X0);
                self.asm.blend(*wide, to, a, b, k);
                self.x_done(*d, to);
            }
            I::XFma { wide, d, a, b, c } => {
                let (a, b, c) = (self.x_in(*a, X0), self.x_in(*b, X1), self.x_in(*c, X2));
                let to = self.x_to(*d, X2);
                self.asm.fma(*wide, to, a, b, c);
                self.x_done(*d, to);
            }
            I::XFromM { d, m, one } => {
                let (k, to) = (self.m_in(*m, self.k7), self.x_to(*d, X0));
                self.asm.ones(to, k, Mem::at(M::STATE, *one));
                self.x_done(*d, to);
            }
            I::XFrameLoad { d, at } => {
                let to = self.x_to(*d, X0);
                self.asm.vload(to, self.frame(*at));
                self.x_done(*d, to);
            }
            I::XFrameStore {
                at,
                s,
                masked,
                high,
                wide,
            } => {
                let s = self.x_in(*s, X0);
                let to = self.frame(*at);
                if *masked && !self.full {
                    let size = if *wide { 8 } else { 4 };
                    self.asm.store_own(size, to, s, self.k, usize::from(*high));
                } else {
                    self.asm.vstore(to, s);
                }
            }
            I::Call {
                site,
                ins,
                outs,
                skip,
            } => {
                self.call(at, *site, ins, outs);
                match skip {
                    Some(_) if self.full => self.go_on(at, *skip),
                    Some(skip) => {
                        let to = self.own(*skip);
                        self.asm.kjump(true, self.k, to);
                    }
                    None => {}
                }
            }
            I::Access {
                site,
                shape,
                base,
                limit,
                ins,
                outs,
                steps,
                skip,
            } => {
                let (start, back) = (self.asm.label(), self.asm.label());
                self.access(*site, *shape, [*base, *limit], ins, outs, *steps, start);
                self.asm.place(back);
                self.cold.push(Cold {
                    at,
                    full: self.full,
                    start,
                    back,
                    site: *site,
                    ins: ins.clone(),
                    outs: outs.clone(),
                    skip: Some(*skip),
                });
            }
            I::GDivide {
                site,
                signed,
                w,
                remainder,
                d,
                a,
                b,
                skip,
            } => {
                let (start, back) = (self.asm.label(), self.asm.label());
                self.g_copy(*b, C);
                self.g_copy(*a, A);
                let asm = &mut self.asm;
                asm.test(*w, C);
                asm.jcc(Cc::E, start);
                if *signed {
                    asm.alu_imm(Alu::Compare, *w, Rm::Reg(C), -1);
                    asm.jcc(Cc::E, start);
                }
                asm.divide(*signed, *w, *remainder);
                self.g_out(*d, A);
                self.asm.place(back);
                self.cold.push(Cold {
                    at,
                    full: self.full,
                    start,
                    back,
                    site: *site,
                    ins: vec![Operand::One(*a), Operand::One(*b)],
                    outs: vec![Operand::One(G::R(*d))],
                    skip: Some(*skip),
                });
            }
            I::Meet { id, turns, ins, .. } => {
                for (number, r) in turns.iter().enumerate() {
                    let r = self.g_in(G::R(*r), A);
                    let to = self.frame((layout.turns + 8 * number) as i32);
                    self.asm.store(8, to, r);
                }
                for (number, operand) in ins.iter().enumerate() {
                    let slot = self.frame((layout.exchange + number * SLOT) as i32);
                    self.give(slot, operand);
                }
                self.suspend(at, *id, layout, false);
                self.asks[*id as usize].0 = at;
                let meeting = self.lowered.meetings.get(*id as usize).and_then(Option::as_ref);
                if meeting.is_some_and(|m| m.exchange.is_none()) {
                    self.arrive(self.resumes[*id as usize]);
                } else {
                    self.asm.jmp(self.nest.next);
                }
            }
            I::Fence => self.asm.fence(),
            I::Poll { id } => {
                let start = self.asks[*id as usize].1.unwrap_or_else(|| self.asm.label());
                self.asks[*id as usize] = (at, Some(start));
                self.asm
                    .alu_imm(Alu::Sub, true, Rm::Mem(Mem::at(M::STATE, BUDGET)), 1);
                self.asm.jcc(Cc::S, start);
            }
        }
    }
}
