//! Accesses to memory that lanes share, in their fast shapes: each index is compared with its length first, and where one is not below
//! it, all is left to the call.

use super::super::by_lane;
use super::*;

impl<M: Lanes> Emitter<'_, M> {
    /// An index as 64 bits: in its register, or in rcx.
    pub(super) fn index(&mut self, operand: Operand, ty: Scalar) -> Gpr {
        let (Operand::One(g) | Operand::Affine(g, _)) = operand else {
            return C;
        };
        let r = self.g_in(g, C);
        match ty {
            Scalar::I32 => self.asm.movsxd(C, r),
            Scalar::U32 => self.asm.mov(false, C, Rm::Reg(r)),
            _ => return r,
        }
        C
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one access")]
    pub(super) fn access(
        &mut self,
        site: u32,
        shape: Shape,
        [base, limit]: [G; 2],
        ins: &[Operand],
        outs: &[Operand],
        steps: usize,
        cold: Label,
    ) {
        let lowered = self.lowered;
        let What::Access(access, kind) = lowered.sites[site as usize].what else {
            return self.private(site, shape, ins, outs, steps, cold);
        };
        let program = self.program;
        let place = &program.accesses[access as usize];
        let view = (VIEWS + VIEW_BYTES * place.region as usize) as i32;
        let values = &ins[steps..];
        // The sum of what scalar indices add lies in rax, that of vectors in X3.
        let (mut sum, mut lanes) = (false, false);
        let varying = place
            .steps
            .iter()
            .zip(ins)
            .filter(|(_, o)| matches!(o, Operand::Lanes(..)));
        let scale = scale(varying.map(|(s, _)| s.stride));
        let mut scaled = None;
        for (number, (step, operand)) in place.steps.iter().zip(ins).enumerate() {
            if let Operand::Lanes(regs, parts) = operand {
                self.beyond(*regs, *parts, step.length, view, cold);
                self.offsets(*regs, *parts, step.stride / scale, lanes);
                lanes = true;
                continue;
            }
            let index = self.index(*operand, step.ty);
            let whole = shape == Shape::Run(number);
            match step.length {
                Length::Fixed(n) => {
                    let n = if whole { n - (self.lanes - 1) } else { n };
                    self.asm.alu_imm(Alu::Compare, true, Rm::Reg(index), n as i32);
                }
                Length::Region => self.g_alu(Alu::Compare, true, index, limit),
            }
            self.asm.jcc(Cc::Ae, cold);
            if place.steps.len() == 1 && matches!(step.stride, 1 | 2 | 4 | 8) {
                scaled = Some((index, step.stride.trailing_zeros() as u8));
                continue;
            }
            if sum {
                self.asm.imul_imm(C, index, step.stride as i32);
                self.asm.alu(Alu::Add, true, A, Rm::Reg(C));
            } else {
                self.asm.imul_imm(A, index, step.stride as i32);
            }
            sum = true;
        }
        let start = base;
        let mut base = self.g_in(start, D);
        if lanes && sum {
            self.asm.mov(true, D, Rm::Reg(base));
            self.asm.alu(Alu::Add, true, D, Rm::Reg(A));
            base = D;
        }
        if shape == Shape::Each && !lanes {
            self.asm.zero(X3);
            lanes = true;
        }
        if let AccessKind::Atomic(s, act, _) = kind {
            let own = matches!(
                program.regions[place.region as usize].kind,
                RegionKind::Shared { .. } | RegionKind::Dynamic
            );
            let disp = (place.offset + place.leaves.first().map_or(0, |l| l.1)) as i32;
            let scale = scale.trailing_zeros() as u8;
            let base = Rm::Mem(Mem::at(M::STATE, view));
            return self.lane_by_lane(s, act, own, (base, scale, disp), values, outs);
        }
        let loads = kind == AccessKind::Load;
        let done = self.asm.label();
        if shape == Shape::Each && self.full && loads {
            // Lanes often want one element: a table's entry of their common material.
            let several = self.asm.label();
            self.asm.several(X3, several);
            let index = Some((C, scale.trailing_zeros() as u8));
            for ((s, offset, _), out) in place.leaves.iter().zip(outs) {
                let disp = (place.offset + offset) as i32;
                self.load_one(Mem { base, index, disp }, s.size(), *out);
            }
            self.asm.jmp(done);
            self.asm.place(several);
        }
        for (number, (s, offset, _)) in place.leaves.iter().enumerate() {
            let disp = (place.offset + offset) as i32;
            let index = match scaled {
                Some(index) => Some(index),
                None if lanes => Some((X3, scale.trailing_zeros() as u8)),
                None if sum => Some((A, 0)),
                None => None,
            };
            let at = Mem { base, index, disp };
            let operand = if loads {
                outs.get(number)
            } else {
                values.get(number)
            };
            let Some(operand) = operand.copied() else { continue };
            match (shape, loads) {
                (Shape::One, true) => self.load_one(at, s.size(), operand),
                (Shape::One, false) => {
                    let (Operand::One(g) | Operand::Affine(g, _)) = operand else {
                        continue;
                    };
                    // The index has been used up where it is not part of the address.
                    let scratch = if scaled.is_some() { A } else { C };
                    let r = self.g_in(g, scratch);
                    self.asm.store(s.size(), at, r);
                }
                (Shape::Run(_), _) => self.run(at, s.size(), operand, loads),
                (_, _) if by_lane(*s, loads, self.scatters) => {
                    let region = Rm::Mem(Mem::at(M::STATE, view));
                    let at = (region, scale.trailing_zeros() as u8, disp);
                    let operand = [operand];
                    let (act, values, outs): (_, &[_], &[_]) = match loads {
                        true => (AtomicKind::Load, &[], &operand),
                        false => (AtomicKind::Store, &operand, &[]),
                    };
                    self.lane_by_lane(*s, act, true, at, values, outs);
                    base = self.g_in(start, D);
                }
                (_, _) => self.each(at, s.size(), operand, loads),
            }
        }
        self.asm.place(done);
    }

    /// Lane by lane, lowest first; offsets lie in X3. What is one thread's (`own`), as shared memory is, needs no lock.
    pub(super) fn lane_by_lane(
        &mut self,
        s: Scalar,
        act: AtomicKind,
        own: bool,
        (base, scale, disp): (Rm, u8, i32),
        values: &[Operand],
        outs: &[Operand],
    ) {
        let size = s.size();
        // The operands' own places are free: no call is under way.
        let (offsets, given, taken) = (self.slot(0), self.slot(1), self.slot(1 + values.len()));
        self.asm.vstore(Mem::at(M::STATE, offsets), X3);
        for (number, value) in values.iter().enumerate() {
            self.give(Mem::at(M::STATE, self.slot(1 + number)), value);
        }
        let lane = |index: Gpr, disp: i32, log: u8| Mem {
            base: M::STATE,
            index: Some((index, log)),
            disp,
        };
        // In vectors, no scalar has less than four bytes.
        let kept = size.max(4);
        let log = kept.trailing_zeros() as u8;
        let asm = &mut self.asm;
        let again = asm.label();
        asm.bits_of_mask(A, self.k);
        asm.place(again);
        asm.lowest(C, A);
        asm.load(4, D, lane(C, offsets, 2));
        if scale > 0 {
            asm.shift_imm(Shift::Left, true, D, scale);
        }
        asm.alu(Alu::Add, true, D, base);
        let at = Mem::at(D, disp);
        if act != AtomicKind::Load {
            asm.load(kept, C, lane(C, given, log));
        }
        asm.atomic(act, s, own, at, given + SLOT as i32);
        if !outs.is_empty() {
            asm.lowest(D, A);
            asm.store(kept, lane(D, taken, log), C);
        }
        asm.drop_lowest(A, again);
        if let Some(out) = outs.first() {
            self.take(Mem::at(M::STATE, taken), out);
        }
    }

    /// An access to arrays in the frame: elements of all lanes, one behind the other.
    fn private(
        &mut self,
        site: u32,
        shape: Shape,
        ins: &[Operand],
        outs: &[Operand],
        steps: usize,
        cold: Label,
    ) {
        let (What::PrivateLoad(place, base, bytes) | What::PrivateStore(place, base, bytes)) =
            self.lowered.sites[site as usize].what
        else {
            return;
        };
        let Shape::Own { numbers } = shape else { return };
        let place = &self.program.privates[place as usize];
        let (mut sum, mut lanes) = (false, false);
        for (step, operand) in place.steps.iter().zip(ins) {
            let stride = step.stride * bytes;
            if let Operand::Lanes(regs, parts) = operand {
                self.beyond(*regs, *parts, step.length, 0, cold);
                self.offsets(*regs, *parts, stride, lanes);
                lanes = true;
                continue;
            }
            let index = self.index(*operand, step.ty);
            let Length::Fixed(n) = step.length else { return };
            self.asm.alu_imm(Alu::Compare, true, Rm::Reg(index), n as i32);
            self.asm.jcc(Cc::Ae, cold);
            self.asm.imul_imm(C, index, stride as i32);
            match sum {
                true => self.asm.alu(Alu::Add, true, A, Rm::Reg(C)),
                false => self.asm.mov(true, A, Rm::Reg(C)),
            }
            sum = true;
        }
        let loads = !outs.is_empty();
        let operands = if loads { outs } else { &ins[steps..] };
        let Mem {
            base: local,
            disp: start,
            ..
        } = self.frame(0);
        if sum && lanes {
            self.asm.alu(Alu::Add, true, A, Rm::Reg(local));
        }
        // How many bytes a lane's number counts for in X3.
        let mut counted = 0;
        for (number, ((size, _), operand)) in place.values.iter().zip(operands).enumerate() {
            let size = (*size).max(4);
            let disp = start + (base + (place.start + number as u32) * bytes) as i32;
            if !lanes {
                let index = sum.then_some((A, 0));
                self.run(
                    Mem {
                        base: local,
                        index,
                        disp,
                    },
                    size,
                    *operand,
                    loads,
                );
                continue;
            }
            while counted != size {
                let op = if counted < size {
                    BinaryOp::Add
                } else {
                    BinaryOp::Sub
                };
                let numbers = Source::Mem(Mem::at(M::STATE, numbers));
                self.asm.binary(op, Scalar::U32, X3, X3, numbers);
                counted = if counted < size { counted + 4 } else { counted - 4 };
            }
            if !self.scatters && !loads {
                let s = if size == 8 { Scalar::U64 } else { Scalar::U32 };
                let at = (Rm::Reg(local), 0, disp);
                self.lane_by_lane(s, AtomicKind::Store, true, at, &[*operand], &[]);
                continue;
            }
            let base = if sum { A } else { local };
            let index = Some((X3, 0));
            self.each(Mem { base, index, disp }, size, *operand, loads);
        }
    }

    pub(super) fn load_one(&mut self, at: Mem, size: u32, operand: Operand) {
        match operand {
            Operand::One(G::R(d)) => {
                let home = self.homes.home(d);
                if let Home::Register(r) = home {
                    self.asm.load(size, r, at);
                } else if let Some(to) = self.memory(home) {
                    self.asm.transfer(size, to, at);
                }
            }
            Operand::Lanes(regs, parts) => {
                let x = self.x_to(regs[0], X0);
                if size < 4 {
                    self.asm.load(size, A, at);
                    self.asm.splat(false, x, Rm::Reg(A));
                } else {
                    self.asm.splat(size == 8, x, Rm::Mem(at));
                }
                self.x_done(regs[0], x);
                if parts > 1 {
                    self.x_done(regs[1], x);
                }
            }
            _ => {}
        }
    }

    pub(super) fn run(&mut self, at: Mem, size: u32, operand: Operand, loads: bool) {
        let Operand::Lanes(regs, parts) = operand else {
            return;
        };
        let bytes = self.lanes as i32 * 4;
        let k = (!self.full).then_some(self.k);
        for (part, r) in regs.into_iter().enumerate().take(parts as usize) {
            let at = at.plus(part as i32 * bytes);
            if loads {
                let to = self.x_to(r, X0);
                self.asm.load_run(size, to, at, k, part);
                self.x_done(r, to);
            } else {
                let from = self.x_in(r, X0);
                self.asm.store_run(size, at, from, k, part);
            }
        }
    }

    /// To `cold` if an active lane's index is not below the length.
    pub(super) fn beyond(&mut self, regs: [R; 2], parts: u32, length: Length, view: i32, cold: Label) {
        let wide = parts > 1;
        let s = if wide { Scalar::U64 } else { Scalar::U32 };
        let (k, k6, k7) = (self.k, self.k6, self.k7);
        for (part, to) in [k6, k7].into_iter().enumerate().take(parts as usize) {
            match length {
                Length::Fixed(n) => {
                    self.asm.mov_imm(C, u64::from(n));
                    self.asm.splat(wide, X1, Rm::Reg(C));
                }
                Length::Region => self.asm.splat(wide, X1, Rm::Mem(Mem::at(M::STATE, view + 8))),
            }
            let a = self.x_in(regs[part], X0);
            self.asm.compare(BinaryOp::Lt, s, to, a, Source::Reg(X1));
        }
        if wide {
            self.asm.pair(k7, k6, k7);
        }
        let inside = if wide { k7 } else { k6 };
        self.asm.kinside(inside, k, None, cold);
    }

    /// Adds indices times a stride to X3.
    pub(super) fn offsets(&mut self, regs: [R; 2], parts: u32, stride: u32, adds: bool) {
        let s = Scalar::U32;
        let mut x = self.x_in(regs[0], X0);
        if parts > 1 {
            let high = self.x_in(regs[1], X1);
            self.asm.narrow(Scalar::U64, s, X1, x, high);
            x = X1;
        }
        if stride.is_power_of_two() && stride > 1 {
            let by = stride.trailing_zeros() as u8;
            self.asm.vshift(BinaryOp::Shl, s, X1, x, by);
            x = X1;
        } else if stride != 1 {
            self.asm.mov_imm(C, u64::from(stride));
            self.asm.splat(false, X2, Rm::Reg(C));
            self.asm.binary(BinaryOp::Mul, s, X1, x, Source::Reg(X2));
            x = X1;
        }
        if adds {
            self.asm.binary(BinaryOp::Add, s, X3, X3, Source::Reg(x));
        } else {
            self.asm.vmov(X3, x);
        }
    }

    pub(super) fn each(&mut self, at: Mem, size: u32, operand: Operand, loads: bool) {
        let Operand::Lanes(regs, parts) = operand else {
            return;
        };
        for (part, r) in regs.into_iter().enumerate().take(parts as usize) {
            if loads {
                self.asm.gather(size, X0, at, self.k, part);
                self.x_done(r, X0);
            } else {
                let from = self.x_in(r, X0);
                self.asm.scatter(size, at, from, self.k, part);
            }
        }
    }
}
