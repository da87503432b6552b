//! Accesses to memory that lanes share, in their fast shapes: each index is compared with its length first, and where one is not below
//! it, all is left to the call.

use super::*;

impl Emitter<'_> {
    /// An index as 64 bits: in its register, or in rcx.
    pub(super) fn index(&mut self, operand: Operand, ty: Scalar) -> Gpr {
        let g = match operand {
            Operand::One(g) | Operand::Affine(g, _) => g,
            Operand::Rooted(index) => {
                self.sum(index, RCX);
                return RCX;
            }
            _ => return RCX,
        };
        let r = self.g_in(g, RCX);
        match ty {
            Scalar::I32 => self.asm.movsxd(RCX, Rm::Reg(r)),
            Scalar::U32 => self.asm.mov(false, RCX, Rm::Reg(r)),
            _ => return r,
        }
        RCX
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
                    self.asm.alu_imm(0x3B, true, Rm::Reg(index), n as i32);
                }
                Length::Region => self.g_alu(0x3B, true, index, limit),
            }
            self.asm.jcc(Cc::Ae, cold);
            if place.steps.len() == 1 && matches!(step.stride, 1 | 2 | 4 | 8) {
                scaled = Some((index, step.stride.trailing_zeros() as u8));
                continue;
            }
            if sum {
                self.asm.imul_imm(RCX, Rm::Reg(index), step.stride as i32);
                self.asm.alu(0x03, true, RAX, Rm::Reg(RCX));
            } else {
                self.asm.imul_imm(RAX, Rm::Reg(index), step.stride as i32);
            }
            sum = true;
        }
        let start = base;
        let mut base = self.g_in(start, RDX);
        if lanes && sum {
            self.asm.mov(true, RDX, Rm::Reg(base));
            self.asm.alu(0x03, true, RDX, Rm::Reg(RAX));
            base = RDX;
        }
        if shape == Shape::Each && !lanes {
            self.evex(op::PXOR, X3, X3, Rm::Reg(X3));
            lanes = true;
        }
        if let AccessKind::Atomic(s, act, _) = kind {
            let own = matches!(
                program.regions[place.region as usize].kind,
                RegionKind::Shared { .. } | RegionKind::Dynamic
            );
            let disp = (place.offset + place.leaves.first().map_or(0, |l| l.1)) as i32;
            let scale = scale.trailing_zeros() as u8;
            let base = Rm::Mem(Mem::at(STATE, view));
            return self.lane_by_lane(s, act, own, (base, scale, disp), values, outs);
        }
        let loads = kind == AccessKind::Load;
        let done = self.asm.label();
        if shape == Shape::Each && self.full && loads {
            // Lanes often want one element: a table's entry of their common material.
            let several = self.asm.label();
            self.jump_if_several(several);
            let index = Some((RCX, scale.trailing_zeros() as u8));
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
                None if sum => Some((RAX, 0)),
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
                    // The index has been used up where it is not part of the address.
                    let scratch = if scaled.is_some() { RAX } else { RCX };
                    self.store_one(at, s.size(), operand, scratch);
                }
                (Shape::Run(_), _) => self.run(at, s.size(), operand, loads),
                // There are no gathers of less than 32 bits, and in AVX2 no scatters.
                (_, _) if s.size() < 4 || self.avx2 && !loads => {
                    let region = Rm::Mem(Mem::at(STATE, view));
                    let at = (region, scale.trailing_zeros() as u8, disp);
                    let operand = [operand];
                    let (act, values, outs): (_, &[_], &[_]) = match loads {
                        true => (AtomicKind::Load, &[], &operand),
                        false => (AtomicKind::Store, &operand, &[]),
                    };
                    self.lane_by_lane(*s, act, true, at, values, outs);
                    base = self.g_in(start, RDX);
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
        self.evex(MOVUPS_STORE, X3, 0, Rm::Mem(Mem::at(STATE, offsets)));
        for (number, value) in values.iter().enumerate() {
            self.give(Mem::at(STATE, self.slot(1 + number)), value);
        }
        let wide = size == 8;
        let lane = |index: Gpr, disp: i32, log: u8| Mem {
            base: STATE,
            index: Some((index, log)),
            disp,
        };
        // In vectors, no scalar has less than four bytes.
        let kept = size.max(4);
        let log = kept.trailing_zeros() as u8;
        let asm = &mut self.asm;
        let again = asm.label();
        asm.kmov_to(RAX, self.k);
        asm.place(again);
        asm.tzcnt(RCX, RAX);
        asm.load(4, RDX, lane(RCX, offsets, 2));
        if scale > 0 {
            asm.shift_imm(4, true, RDX, scale);
        }
        asm.alu(0x03, true, RDX, base);
        let at = Mem::at(RDX, disp);
        if act != AtomicKind::Load {
            asm.load(kept, RCX, lane(RCX, given, log));
        }
        let lock: &[u8] = if own { &[] } else { &[0xF0] };
        match act {
            AtomicKind::Load => asm.load(size, RCX, at),
            AtomicKind::Store if own => asm.store(size, at, RCX),
            AtomicKind::Update(AtomicOp::Add | AtomicOp::Sub) if s.is_int() => {
                if act == AtomicKind::Update(AtomicOp::Sub) {
                    asm.unary(3, wide, Rm::Reg(RCX));
                }
                asm.gpr(lock, wide, false, &[0x0F, 0xC1], RCX, Rm::Mem(at));
            }
            AtomicKind::CompareExchange => {
                asm.push(RAX);
                asm.push(RBX);
                asm.tzcnt(RBX, RAX);
                asm.load(kept, RBX, lane(RBX, given + SLOT as i32, log));
                asm.mov(true, RAX, Rm::Reg(RCX));
                asm.gpr(lock, wide, false, &[0x0F, 0xB1], RBX, Rm::Mem(at));
                asm.mov(true, RCX, Rm::Reg(RAX));
                asm.pop(RBX);
                asm.pop(RAX);
            }
            AtomicKind::Update(op) if op != AtomicOp::Exchange => self.update(op, s, at, lock),
            // An exchange is locked by itself.
            AtomicKind::Store | AtomicKind::Update(_) => asm.gpr(&[], wide, false, &[0x87], RCX, Rm::Mem(at)),
        }
        let asm = &mut self.asm;
        if !outs.is_empty() {
            asm.tzcnt(RDX, RAX);
            asm.store(kept, lane(RDX, taken, log), RCX);
        }
        // blsr: without the lowest bit.
        asm.vex(Vop(Pp::None, 2, false, 0xF3), false, 1, RAX, Rm::Reg(RAX));
        asm.jcc(Cc::Ne, again);
        if let Some(out) = outs.first() {
            self.take(Mem::at(STATE, taken), out);
        }
    }

    /// Replaces what is at `at` by what an operator makes of it and of rcx, which gets what was there.
    fn update(&mut self, op: AtomicOp, s: Scalar, at: Mem, lock: &[u8]) {
        let (size, wide) = (s.size(), s.size() == 8);
        let asm = &mut self.asm;
        let again = asm.label();
        asm.push(RAX);
        asm.push(RBX);
        asm.load(size, RAX, at);
        asm.place(again);
        asm.mov(true, RBX, Rm::Reg(RAX));
        let with = Rm::Reg(RCX);
        match op {
            AtomicOp::And => asm.alu(0x23, wide, RBX, with),
            AtomicOp::Or => asm.alu(0x0B, wide, RBX, with),
            AtomicOp::Xor => asm.alu(0x33, wide, RBX, with),
            AtomicOp::Min | AtomicOp::Max => {
                asm.alu(0x3B, wide, RBX, with);
                let cc = match (op == AtomicOp::Min, s.is_signed_int()) {
                    (true, true) => Cc::G,
                    (true, false) => Cc::A,
                    (false, true) => Cc::L,
                    (false, false) => Cc::B,
                };
                asm.cmov(cc, RBX, with);
            }
            // Of floats: integers have an instruction.
            AtomicOp::Add | AtomicOp::Sub | AtomicOp::Exchange => {
                let sum = Vop(if wide { Pp::PF2 } else { Pp::PF3 }, 1, wide, 0x58);
                self.one(Vop(Pp::P66, 1, wide, 0x6E), X0, 0, Rm::Reg(RBX));
                self.one(Vop(Pp::P66, 1, wide, 0x6E), X1, 0, Rm::Reg(RCX));
                self.one(sum, X0, X0, Rm::Reg(X1));
                self.one(Vop(Pp::P66, 1, wide, 0x7E), X0, 0, Rm::Reg(RBX));
            }
        }
        let asm = &mut self.asm;
        asm.gpr(lock, wide, false, &[0x0F, 0xB1], RBX, Rm::Mem(at));
        asm.jcc(Cc::Ne, again);
        asm.mov(true, RCX, Rm::Reg(RAX));
        asm.pop(RBX);
        asm.pop(RAX);
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
            self.asm.alu_imm(0x3B, true, Rm::Reg(index), n as i32);
            self.asm.jcc(Cc::Ae, cold);
            self.asm.imul_imm(RCX, Rm::Reg(index), stride as i32);
            match sum {
                true => self.asm.alu(0x03, true, RAX, Rm::Reg(RCX)),
                false => self.asm.mov(true, RAX, Rm::Reg(RCX)),
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
            self.asm.alu(0x03, true, RAX, Rm::Reg(local));
        }
        // How many bytes a lane's number counts for in X3.
        let mut counted = 0;
        for (number, ((size, _), operand)) in place.values.iter().zip(operands).enumerate() {
            let size = (*size).max(4);
            let disp = start + (base + (place.start + number as u32) * bytes) as i32;
            if !lanes {
                let index = sum.then_some((RAX, 0));
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
                let op = if counted < size { op::PADDD } else { op::PSUBD };
                self.evex(op, X3, X3, Rm::Mem(Mem::at(STATE, numbers)));
                counted = if counted < size { counted + 4 } else { counted - 4 };
            }
            if self.avx2 && !loads {
                let s = if size == 8 { Scalar::U64 } else { Scalar::U32 };
                let at = (Rm::Reg(local), 0, disp);
                self.lane_by_lane(s, AtomicKind::Store, true, at, &[*operand], &[]);
                continue;
            }
            let base = if sum { RAX } else { local };
            let index = Some((X3, 0));
            self.each(Mem { base, index, disp }, size, *operand, loads);
        }
    }

    /// An access in a segment where its index is below its limit.
    pub(super) fn proven_access(
        &mut self,
        site: u32,
        shape: Shape,
        proven: Proven,
        values: &[Operand],
        outs: &[Operand],
    ) {
        let (lowered, program) = (self.lowered, self.program);
        let What::Access(access, kind) = lowered.sites[site as usize].what else {
            return;
        };
        let (place, loads) = (&program.accesses[access as usize], kind == AccessKind::Load);
        let base = self.g_in(G::R(proven.base), RDX);
        let index = proven.lane.map(|lane| (self.g_in(G::R(lane), RCX), proven.scale));
        for ((s, offset, _), operand) in place.leaves.iter().zip(if loads { outs } else { values }) {
            let disp = proven.disp + (place.offset + offset) as i32;
            let at = Mem { base, index, disp };
            match (shape, loads) {
                (Shape::One, true) => self.load_one(at, s.size(), *operand),
                (Shape::One, false) => self.store_one(at, s.size(), *operand, RAX),
                _ => self.run(at, s.size(), *operand, loads),
            }
        }
    }

    fn store_one(&mut self, at: Mem, size: u32, operand: Operand, scratch: Gpr) {
        if let Operand::One(g) | Operand::Affine(g, _) = operand {
            let r = self.g_in(g, scratch);
            self.asm.store(size, at, r);
        }
    }

    pub(super) fn load_one(&mut self, at: Mem, size: u32, operand: Operand) {
        match operand {
            Operand::One(G::R(d)) => {
                let r = match self.homes.home(d) {
                    Home::Register(r) => r,
                    _ => RSI_FREE,
                };
                if r == RSI_FREE {
                    // No register is free beside those of the address: through a vector register.
                    let op = Vop(Pp::P66, 1, size == 8, 0x6E);
                    self.one(op, X0, 0, Rm::Mem(at));
                    if let Some(to) = self.memory(self.homes.home(d)) {
                        let op = Vop(Pp::P66, 1, true, 0xD6);
                        self.one(op, X0, 0, Rm::Mem(to));
                    }
                } else {
                    self.asm.load(size, r, at);
                }
            }
            Operand::Lanes(regs, parts) => {
                let x = self.x_to(regs[0], X0);
                if size < 4 {
                    self.asm.load(size, RAX, at);
                    self.splat_general(x, RAX, false);
                } else {
                    self.splat(x, Rm::Mem(at), size == 8);
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
        // From and to 32-bit lanes.
        let small = match size {
            1 => Some(0x31),
            2 => Some(0x33),
            _ => None,
        };
        let wide = size == 8;
        let bytes = self.lanes as i32 * 4;
        for (part, r) in regs.into_iter().enumerate().take(parts as usize) {
            let at = Mem {
                disp: at.disp + part as i32 * bytes,
                ..at
            };
            let k = if self.full {
                0
            } else {
                self.half_mask(self.k, part, wide)
            };
            if loads {
                let to = self.x_to(r, X0);
                match small {
                    Some(opcode) => {
                        self.evex_k(Vop(Pp::P66, 2, false, opcode), to, 0, Rm::Mem(at), k, k != 0)
                    }
                    None => self.load_masked(to, at, k, wide),
                }
                self.x_done(r, to);
            } else {
                let from = self.x_in(r, X0);
                match small {
                    Some(opcode) => {
                        self.evex_k(Vop(Pp::PF3, 2, false, opcode), from, 0, Rm::Mem(at), k, false)
                    }
                    None => self.store_masked(at, from, k, wide),
                }
            }
        }
    }

    /// Adds indices times a stride to X3.
    pub(super) fn offsets(&mut self, regs: [R; 2], parts: u32, stride: u32, adds: bool) {
        let mut x = self.x_in(regs[0], X0);
        if parts > 1 {
            if self.avx2 {
                let high = self.x_in(regs[1], X1);
                self.even(X1, x, high);
            } else {
                self.evex(op::PMOVQD, x, 0, Rm::Reg(X1));
                let high = self.x_in(regs[1], X0);
                self.evex(op::PMOVQD, high, 0, Rm::Reg(X2));
                self.insert(X1, X1, X2);
            }
            x = X1;
        }
        if stride.is_power_of_two() && stride > 1 {
            self.evex(Vop(Pp::P66, 1, false, 0x72), 6, X1, Rm::Reg(x));
            self.asm.immediate8(stride.trailing_zeros() as u8);
            x = X1;
        } else if stride != 1 {
            self.asm.mov_imm(RCX, u64::from(stride));
            self.splat_general(X2, RCX, false);
            self.evex(op::PMULLD, X1, x, Rm::Reg(X2));
            x = X1;
        }
        if adds {
            self.evex(op::PADDD, X3, X3, Rm::Reg(x));
        } else {
            self.evex(MOVAPS, X3, 0, Rm::Reg(x));
        }
    }

    pub(super) fn each(&mut self, at: Mem, size: u32, operand: Operand, loads: bool) {
        let Operand::Lanes(regs, parts) = operand else {
            return;
        };
        let wide = size == 8;
        for (part, r) in regs.into_iter().enumerate().take(parts as usize) {
            let mut at = at;
            if part == 1 {
                self.extract(X2, X3);
                at.index = at.index.map(|(_, scale)| (X2, scale));
            }
            let k = self.half_mask(self.k, part, wide);
            // Gathers and scatters use it up.
            self.asm.kmov(self.k7, Rm::Reg(k));
            if loads {
                self.gather(X0, at, wide);
                self.x_done(r, X0);
            } else {
                let from = self.x_in(r, X0);
                self.evex_k(Vop(Pp::P66, 2, wide, 0xA0), from, 0, Rm::Mem(at), self.k7, false);
            }
        }
    }
}
