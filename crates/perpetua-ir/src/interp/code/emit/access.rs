//! Accesses to memory that lanes share, in their fast shapes: each index is compared with its length first, and where one is not below
//! it, all is left to the call.

use super::*;

impl Emitter<'_> {
    /// An index as 64 bits in rcx.
    pub(super) fn index(&mut self, operand: Operand, ty: Scalar) {
        let (Operand::One(g) | Operand::Affine(g, _)) = operand else {
            return;
        };
        let r = self.g_in(g, RCX);
        match ty {
            Scalar::I32 => self.asm.movsxd(RCX, Rm::Reg(r)),
            Scalar::U32 => self.asm.mov(false, RCX, Rm::Reg(r)),
            _ => self.asm.mov(true, RCX, Rm::Reg(r)),
        }
    }

    pub(super) fn access(
        &mut self,
        site: u32,
        shape: Shape,
        ins: &[Operand],
        outs: &[Operand],
        steps: usize,
        cold: Label,
    ) {
        let lowered = self.lowered;
        let What::Access(access, kind) = lowered.sites[site as usize].what else {
            return;
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
            self.index(*operand, step.ty);
            let whole = shape == Shape::Run(number);
            match step.length {
                Length::Fixed(n) => {
                    let n = if whole { n - (self.lanes - 1) } else { n };
                    self.asm.alu_imm(0x3B, true, Rm::Reg(RCX), n as i32);
                }
                Length::Region => {
                    let at = Mem::at(STATE, view + if whole { 16 } else { 8 });
                    self.asm.alu(0x3B, true, RCX, Rm::Mem(at));
                }
            }
            self.asm.jcc(Cc::Ae, cold);
            if place.steps.len() == 1 && matches!(step.stride, 1 | 2 | 4 | 8) {
                scaled = Some(step.stride.trailing_zeros() as u8);
                continue;
            }
            self.asm.imul_imm(RCX, Rm::Reg(RCX), step.stride as i32);
            if sum {
                self.asm.alu(0x03, true, RAX, Rm::Reg(RCX));
            } else {
                self.asm.mov(true, RAX, Rm::Reg(RCX));
            }
            sum = true;
        }
        self.asm.mov(true, RDX, Rm::Mem(Mem::at(STATE, view)));
        if lanes && sum {
            self.asm.alu(0x03, true, RDX, Rm::Reg(RAX));
        }
        if let AccessKind::Atomic(s, act, _) = kind {
            if !lanes {
                self.evex(op::PXOR, X3, X3, Rm::Reg(X3));
            }
            let own = matches!(
                program.regions[place.region as usize].kind,
                RegionKind::Shared { .. } | RegionKind::Dynamic
            );
            let disp = (place.offset + place.leaves.first().map_or(0, |l| l.1)) as i32;
            let scale = scale.trailing_zeros() as u8;
            return self.atomic(s.size(), act, own, (view, scale, disp), values, outs);
        }
        let loads = kind == AccessKind::Load;
        for (number, (s, offset, _)) in place.leaves.iter().enumerate() {
            let disp = (place.offset + offset) as i32;
            let index = match scaled {
                Some(by) => Some((RCX, by)),
                None if lanes => Some((X3, scale.trailing_zeros() as u8)),
                None if sum => Some((RAX, 0)),
                None => None,
            };
            let at = Mem {
                base: RDX,
                index,
                disp,
            };
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
                    let scratch = if scaled.is_some() { RAX } else { RCX };
                    let r = self.g_in(g, scratch);
                    self.asm.store(s.size(), at, r);
                }
                (Shape::Run(_), _) => self.run(at, s.size(), operand, loads),
                (Shape::Each, _) => self.each(at, s.size(), operand, loads),
            }
        }
    }

    /// Lane by lane, lowest first; offsets lie in X3. Shared memory is one thread's (`own`), and needs no lock.
    pub(super) fn atomic(
        &mut self,
        size: u32,
        act: AtomicKind,
        own: bool,
        (view, scale, disp): (i32, u8, i32),
        values: &[Operand],
        outs: &[Operand],
    ) {
        let bytes = self.lanes as i32 * 4;
        // The operands' own places are free: no call is under way.
        let (offsets, given, taken) = (self.slot(0), self.slot(1), self.slot(1 + values.len()));
        self.evex(MOVUPS_STORE, X3, 0, Rm::Mem(Mem::at(STATE, offsets)));
        if let Some(Operand::Lanes(regs, parts)) = values.first() {
            for (part, r) in regs.iter().enumerate().take(*parts as usize) {
                let x = self.x_in(*r, X0);
                let to = Mem::at(STATE, given + part as i32 * bytes);
                self.evex(MOVUPS_STORE, x, 0, Rm::Mem(to));
            }
        }
        let wide = size == 8;
        let lane = |index: Gpr, disp: i32, log: u8| Mem {
            base: STATE,
            index: Some((index, log)),
            disp,
        };
        let log = size.trailing_zeros() as u8;
        let asm = &mut self.asm;
        let again = asm.label();
        asm.kmov_to(RAX, K);
        asm.place(again);
        asm.tzcnt(RCX, RAX);
        asm.load(4, RDX, lane(RCX, offsets, 2));
        if scale > 0 {
            asm.shift_imm(4, true, RDX, scale);
        }
        asm.alu(0x03, true, RDX, Rm::Mem(Mem::at(STATE, view)));
        let at = Mem::at(RDX, disp);
        if act != AtomicKind::Load {
            asm.load(size, RCX, lane(RCX, given, log));
        }
        let lock: &[u8] = if own { &[] } else { &[0xF0] };
        match act {
            AtomicKind::Load => asm.load(size, RCX, at),
            AtomicKind::Update(AtomicOp::Add | AtomicOp::Sub) => {
                if act == AtomicKind::Update(AtomicOp::Sub) {
                    asm.unary(3, wide, Rm::Reg(RCX));
                }
                asm.gpr(lock, wide, false, &[0x0F, 0xC1], RCX, Rm::Mem(at));
            }
            // An exchange is locked by itself.
            _ => asm.gpr(&[], wide, false, &[0x87], RCX, Rm::Mem(at)),
        }
        if !outs.is_empty() {
            asm.tzcnt(RDX, RAX);
            asm.store(size, lane(RDX, taken, log), RCX);
        }
        // blsr: without the lowest bit.
        asm.vex(Vop(Pp::None, 2, false, 0xF3), false, 1, RAX, Rm::Reg(RAX));
        asm.jcc(Cc::Ne, again);
        if let Some(Operand::Lanes(regs, parts)) = outs.first() {
            for (part, r) in regs.iter().enumerate().take(*parts as usize) {
                let from = Mem::at(STATE, taken + part as i32 * bytes);
                let x = self.x_to(*r, X0);
                self.evex(MOVUPS, x, 0, Rm::Mem(from));
                self.x_done(*r, x);
            }
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
                    self.asm.evex_at(op, 0, X0, 0, Rm::Mem(at), Ev::default());
                    if let Home::Frame(to) = self.homes.home(d) {
                        let op = Vop(Pp::P66, 1, true, 0xD6);
                        self.asm
                            .evex_at(op, 0, X0, 0, Rm::Mem(Mem::at(LOCAL, to)), Ev::default());
                    }
                } else {
                    self.asm.load(size, r, at);
                }
            }
            Operand::Lanes(regs, parts) => {
                let x = self.x_to(regs[0], X0);
                self.splat(x, Rm::Mem(at), size == 8);
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
        let (load, store) = match size {
            1 => (Vop(Pp::P66, 2, false, 0x31), Vop(Pp::PF3, 2, false, 0x31)),
            2 => (Vop(Pp::P66, 2, false, 0x33), Vop(Pp::PF3, 2, false, 0x33)),
            4 => (MOVUPS, MOVUPS_STORE),
            _ => (MOVUPD, MOVUPD_STORE),
        };
        let bytes = self.lanes as i32 * 4;
        for (part, r) in regs.into_iter().enumerate().take(parts as usize) {
            let at = Mem {
                disp: at.disp + part as i32 * bytes,
                ..at
            };
            let mut k = K;
            if part == 1 {
                self.high(K7, K);
                k = K7;
            }
            if loads {
                let to = self.x_to(r, X0);
                self.evex_k(load, to, 0, Rm::Mem(at), k, true);
                self.x_done(r, to);
            } else {
                let from = self.x_in(r, X0);
                self.evex_k(store, from, 0, Rm::Mem(at), k, false);
            }
        }
    }

    /// To `cold` if an active lane's index is not below the length.
    pub(super) fn beyond(&mut self, regs: [R; 2], parts: u32, length: Length, view: i32, cold: Label) {
        let wide = parts > 1;
        let (rm, b) = match length {
            Length::Fixed(n) => {
                self.asm.mov_imm(RCX, u64::from(n));
                self.evex(Vop(Pp::P66, 2, wide, 0x7C), X1, 0, Rm::Reg(RCX));
                (Rm::Reg(X1), false)
            }
            Length::Region => (Rm::Mem(Mem::at(STATE, view + 8)), true),
        };
        let compare = if wide { op::PCMPUQ } else { op::PCMPUD };
        let x = self.x_in(regs[0], X0);
        let (first, k) = if wide { (K6, 0) } else { (K7, K) };
        self.asm.evex(compare, first, x, rm, Ev { k, z: false, b });
        self.asm.immediate8(1);
        if wide {
            let x = self.x_in(regs[1], X0);
            self.asm.evex(compare, K7, x, rm, Ev { k: 0, z: false, b });
            self.asm.immediate8(1);
            let half = self.half();
            self.asm.kshift(0x32, K7, K7, half);
            self.asm.klogic(0x45, K7, K6, K7);
            self.asm.klogic(0x41, K7, K7, K);
        }
        self.asm.klogic(0x47, K7, K7, K);
        self.asm.kortest(K7);
        self.asm.jcc(Cc::Ne, cold);
    }

    /// Adds indices times a stride to X3.
    pub(super) fn offsets(&mut self, regs: [R; 2], parts: u32, stride: u32, adds: bool) {
        let mut x = self.x_in(regs[0], X0);
        if parts > 1 {
            self.evex(op::PMOVQD, x, 0, Rm::Reg(X1));
            let high = self.x_in(regs[1], X0);
            self.evex(op::PMOVQD, high, 0, Rm::Reg(X2));
            self.insert(X1, X1, X2);
            x = X1;
        }
        if stride.is_power_of_two() && stride > 1 {
            self.evex(Vop(Pp::P66, 1, false, 0x72), 6, X1, Rm::Reg(x));
            self.asm.immediate8(stride.trailing_zeros() as u8);
            x = X1;
        } else if stride != 1 {
            self.asm.mov_imm(RCX, u64::from(stride));
            self.evex(Vop(Pp::P66, 2, false, 0x7C), X2, 0, Rm::Reg(RCX));
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
                self.high(K7, K);
            } else {
                self.asm.kmov(K7, Rm::Reg(K));
            }
            if loads {
                self.evex(op::PXOR, X0, X0, Rm::Reg(X0));
                self.evex_k(Vop(Pp::P66, 2, wide, 0x90), X0, 0, Rm::Mem(at), K7, false);
                self.x_done(r, X0);
            } else {
                let from = self.x_in(r, X0);
                self.evex_k(Vop(Pp::P66, 2, wide, 0xA0), from, 0, Rm::Mem(at), K7, false);
            }
        }
    }
}
