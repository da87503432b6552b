//! One instruction after the other. What reaches memory that lanes share stands in `access`.

use super::*;

impl Emitter<'_> {
    pub(super) fn instruction(&mut self, at: usize, i: &I, layout: &Layout) {
        match i {
            I::Row => self.row(),
            I::Block => self.block(),
            I::Segment => self.segment(),
            I::Bound { below } => self.bound(*below),
            I::Ends => self.ends(),
            I::Prove { index, more, limit } => self.prove(*index, *more, *limit),
            I::MJumpAll { m, to } => self.jump_if_whole(*m, *to),
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
                    _ => RAX,
                };
                self.asm.load(8, to, Mem::at(GANG_AT, *at));
            }
            I::GMov { w, d, s } => {
                let s = self.g_in(*s, RAX);
                if *w {
                    self.g_out(*d, s);
                } else {
                    self.asm.mov(false, RAX, Rm::Reg(s));
                    self.g_out(*d, RAX);
                }
            }
            I::GBin { op, w, d, a, b } => self.g_bin(*op, *w, *d, *a, *b),
            I::GUnary { which, w, d, a } => {
                self.g_copy(*a, RAX);
                self.asm.unary(*which, *w, Rm::Reg(RAX));
                self.g_out(*d, RAX);
            }
            I::GCompare { w, cc, d, a, b } => {
                let a = self.g_in(*a, RAX);
                self.g_alu(0x3B, *w, a, *b);
                self.asm.setcc(*cc, RAX);
                self.g_out(*d, RAX);
            }
            I::GSelect { d, c, a, b } => {
                self.g_copy(*b, RAX);
                let a = self.g_rm(*a, RCX);
                let c = self.g_in(*c, RDX);
                self.asm.test(false, c);
                self.asm.cmov(Cc::Ne, RAX, a);
                self.g_out(*d, RAX);
            }
            I::GExtend { signed, d, a } => {
                let a = self.g_in(*a, RAX);
                if *signed {
                    self.asm.movsxd(RAX, Rm::Reg(a));
                } else {
                    self.asm.mov(false, RAX, Rm::Reg(a));
                }
                self.g_out(*d, RAX);
            }
            I::GJump { cc, a, to } => {
                let a = self.g_in(*a, RAX);
                self.asm.test(false, a);
                self.asm.jcc(*cc, self.own(*to));
            }
            I::GCompareJump { w, cc, a, b, to } => {
                let a = self.g_in(*a, RAX);
                self.g_alu(0x3B, *w, a, *b);
                self.asm.jcc(*cc, self.own(*to));
            }
            I::MLogic { op, d, a, b } => {
                let (a, b) = (self.m_in(*a, self.k6), self.m_in(*b, self.k7));
                let to = self.m_to(*d);
                self.asm.klogic(*op as u8, to, a, b);
                self.m_done(*d, to);
            }
            I::MMov { d, s } => {
                let s = self.m_in(*s, self.k7);
                self.m_done(*d, s);
            }
            I::MConst { d, ones } => {
                let to = self.m_to(*d);
                self.asm.klogic(if *ones { 0x46 } else { 0x47 }, to, to, to);
                self.m_done(*d, to);
            }
            I::MFromG { d, a } => {
                self.g_copy(*a, RAX);
                self.asm.alu_imm(0x23, false, Rm::Reg(RAX), 1);
                self.asm.unary(3, false, Rm::Reg(RAX));
                let to = self.m_to(*d);
                self.asm.kmov_from(to, RAX);
                self.m_done(*d, to);
            }
            I::MFromX { d, a } => {
                let (a, to) = (self.x_in(*a, X0), self.m_to(*d));
                self.not_zero(to, a);
                self.m_done(*d, to);
            }
            I::MPair { d, low, high } => {
                let (low, high) = (self.m_in(*low, self.k6), self.m_in(*high, self.k7));
                let to = self.m_to(*d);
                self.pair(to, low, high);
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
                self.asm.klogic(0x41, self.k7, m, self.k);
                let (old, to) = (self.m_in(*d, self.k6), self.m_to(*d));
                self.asm.klogic(0x42, self.k6, self.k, old);
                self.asm.klogic(0x45, to, self.k6, self.k7);
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
                self.asm.kortest(m);
                self.asm.jcc(Cc::E, self.own(*to));
            }
            I::XBin { op, s, d, a, b } => {
                let Some(op) = table::binary(*op, *s) else {
                    return self.asm.lacks();
                };
                let a = self.x_in(*a, X0);
                let (rm, b) = self.x_rm(*b);
                let to = self.x_to(*d, X0);
                self.broadcast(op, to, a, rm, b);
                self.x_done(*d, to);
            }
            I::XUnary { op, s, d, a } => {
                let Some((op, imm)) = table::unary(*op, *s) else {
                    return;
                };
                let (a, to) = (self.x_in(*a, X0), self.x_to(*d, X0));
                self.evex(op, to, 0, Rm::Reg(a));
                if let Some(imm) = imm {
                    self.asm.immediate8(imm);
                }
                self.x_done(*d, to);
            }
            I::XShift { op, s, d, a, by } => {
                let (op, which) = table::shift(*op, *s);
                let (a, to) = (self.x_in(*a, X0), self.x_to(*d, X0));
                self.evex(op, which, to, Rm::Reg(a));
                self.asm.immediate8(*by);
                self.x_done(*d, to);
            }
            I::XConvert {
                from: from @ (Scalar::F16 | Scalar::F32),
                to: Scalar::F16 | Scalar::F32,
                d,
                a,
            } => {
                // Halves lie in lanes of 32 bits, and are converted where they lie side by side.
                let (a, to) = (self.x_in(*a, X0), self.x_to(*d, X0));
                if *from == Scalar::F16 {
                    self.evex(Vop(Pp::PF3, 2, false, 0x33), a, 0, Rm::Reg(X1));
                    self.evex(Vop(Pp::P66, 2, false, 0x13), to, 0, Rm::Reg(X1));
                } else {
                    self.evex(Vop(Pp::P66, 3, false, 0x1D), a, 0, Rm::Reg(X1));
                    // To the nearest, of two the even one.
                    self.asm.immediate8(0);
                    self.evex(Vop(Pp::P66, 2, false, 0x33), to, 0, Rm::Reg(X1));
                }
                self.x_done(*d, to);
            }
            I::XConvert { from, to, d, a } => {
                let Some(op) = table::convert(*from, *to) else {
                    return;
                };
                let (a, to) = (self.x_in(*a, X0), self.x_to(*d, X0));
                self.evex(op, to, 0, Rm::Reg(a));
                self.x_done(*d, to);
            }
            I::XWiden { from, to, d, a, half } => {
                let Some(op) = table::convert(*from, *to) else {
                    return;
                };
                let mut a = self.x_in(*a, X0);
                if *half == 1 {
                    self.extract(X1, a);
                    a = X1;
                }
                let to = self.x_to(*d, X0);
                self.evex(op, to, 0, Rm::Reg(a));
                self.x_done(*d, to);
            }
            I::XNarrow {
                from,
                to,
                d,
                low,
                high,
            } => {
                let Some(op) = table::convert(*from, *to) else {
                    return;
                };
                // A move has the source in the other field.
                let moves = *from == Scalar::U64 && *to == Scalar::U32;
                if moves && self.avx2 {
                    let (low, high) = (self.x_in(*low, X0), self.x_in(*high, X1));
                    let to = self.x_to(*d, X0);
                    self.even(to, low, high);
                    return self.x_done(*d, to);
                }
                for (from, to) in [(*low, X0), (*high, X1)] {
                    let from = self.x_in(from, to);
                    if moves {
                        self.evex(op, from, 0, Rm::Reg(to));
                    } else {
                        self.evex(op, to, 0, Rm::Reg(from));
                    }
                }
                let to = self.x_to(*d, X0);
                self.insert(to, X0, X1);
                self.x_done(*d, to);
            }
            I::XMov { d, s, masked } => {
                let s = self.x_in(*s, X0);
                match (*masked && !self.full, self.homes.home(*d)) {
                    (false, _) => self.x_done(*d, s),
                    (true, Home::Register(d)) if self.avx2 => self.blend(d, d, s, self.k, false),
                    (true, Home::Register(d)) => self.evex_k(MOVAPS, d, 0, Rm::Reg(s), self.k, false),
                    (true, home) => {
                        if let Some(to) = self.memory(home) {
                            self.store_masked(to, s, self.k, false);
                        }
                    }
                }
            }
            I::XSplat { wide, d, a } => {
                let (a, to) = (self.g_in(*a, RAX), self.x_to(*d, X0));
                self.splat_general(to, a, *wide);
                self.x_done(*d, to);
            }
            I::XLoad { d, a, wide } => {
                let to = self.x_to(*d, X0);
                let (rm, splat) = self.x_rm(*a);
                if splat {
                    self.splat(to, rm, *wide);
                } else {
                    self.evex(MOVUPS, to, 0, rm);
                }
                self.x_done(*d, to);
            }
            I::XCompare { op, s, d, a, b } => {
                let a = self.x_in(*a, X0);
                let to = self.m_to(*d);
                self.compare(*op, *s, to, a, *b);
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
                    k = self.half_mask(k, usize::from(*part), *wide);
                }
                let (a, b) = (self.x_in(*a, X0), self.x_in(*b, X1));
                let to = self.x_to(*d, X0);
                self.blend(to, a, b, k, *wide);
                self.x_done(*d, to);
            }
            I::XFma { wide, d, a, b, c } => {
                let (a, b, c) = (self.x_in(*a, X0), self.x_in(*b, X1), self.x_in(*c, X2));
                let to = self.x_to(*d, X2);
                let (form213, form231) = (Vop(Pp::P66, 2, *wide, 0xA8), Vop(Pp::P66, 2, *wide, 0xB8));
                if to == a {
                    self.evex(form213, to, b, Rm::Reg(c));
                } else if to == b {
                    self.evex(form213, to, a, Rm::Reg(c));
                } else {
                    if to != c {
                        self.evex(MOVAPS, to, 0, Rm::Reg(c));
                    }
                    self.evex(form231, to, a, Rm::Reg(b));
                }
                self.x_done(*d, to);
            }
            I::XFromM { d, m, one } => {
                let (k, to) = (self.m_in(*m, self.k7), self.x_to(*d, X0));
                self.ones(to, k, *one);
                self.x_done(*d, to);
            }
            I::XFrameLoad { d, at } => {
                let to = self.x_to(*d, X0);
                self.evex(MOVUPS, to, 0, Rm::Mem(self.frame(*at)));
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
                    let k = self.half_mask(self.k, usize::from(*high), *wide);
                    self.store_masked(to, s, k, *wide);
                } else {
                    self.evex(MOVUPS_STORE, s, 0, Rm::Mem(to));
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
                        self.asm.kortest(self.k);
                        self.asm.jcc(Cc::E, self.own(*skip));
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
                proven,
                skip,
            } => {
                if let Some(proven) = proven.filter(|_| self.full) {
                    return self.proven_access(*site, *shape, proven, &ins[*steps..], outs);
                }
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
                self.g_copy(*b, RCX);
                self.g_copy(*a, RAX);
                let asm = &mut self.asm;
                asm.test(*w, RCX);
                asm.jcc(Cc::E, start);
                if *signed {
                    asm.alu_imm(0x3B, *w, Rm::Reg(RCX), -1);
                    asm.jcc(Cc::E, start);
                    asm.cdq(*w);
                } else {
                    asm.alu(0x33, false, RDX, Rm::Reg(RDX));
                }
                asm.unary(if *signed { 7 } else { 6 }, *w, Rm::Reg(RCX));
                self.g_out(*d, if *remainder { RDX } else { RAX });
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
                    let r = self.g_in(G::R(*r), RAX);
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
            I::Poll { id } => {
                let start = self.asks[*id as usize].1.unwrap_or_else(|| self.asm.label());
                self.asks[*id as usize] = (at, Some(start));
                self.asm.alu_imm(0x2B, true, Rm::Mem(Mem::at(STATE, BUDGET)), 1);
                self.asm.jcc(Cc::S, start);
            }
        }
    }

    /// An instruction whose last operand may be a scalar in memory, for all lanes.
    fn broadcast(&mut self, op: Vop, to: u8, second: u8, rm: Rm, b: bool) {
        if b && self.avx2 {
            self.splat(X1, rm, op.2);
            self.evex(op, to, second, Rm::Reg(X1));
        } else {
            self.asm.evex(op, to, second, rm, Ev { b, ..Ev::default() });
        }
    }

    pub(super) fn splat(&mut self, to: u8, rm: Rm, wide: bool) {
        let op = if wide {
            Vop(Pp::P66, 2, true, 0x59)
        } else {
            Vop(Pp::P66, 2, false, 0x58)
        };
        self.evex(op, to, 0, rm);
    }
}
