//! From instructions over placed registers to bytes. What lies in the frame passes through scratch registers, which no
//! virtual register has: three general ones, two masks and four vectors. Knows what machines have in common, no instructions.

mod access;
mod instruction;
mod lanes;
mod nest;
mod operand;
mod scalar;

use super::allocate::{Allocation, Home};
use super::layout::*;
use super::lir::*;
use super::lower::Lowered;
use super::lower::scale;
use super::machine::*;
use super::tree::{AccessKind, AtomicKind};
use super::{Refusal, Target};
use crate::interp::program::{Length, Program, RegionKind};
use nest::Nest;
use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::BinaryOp;

/// A call that stands behind the rest of the code.
struct Cold {
    at: usize,
    /// Whether all lanes are active when it is called.
    full: bool,
    start: Label,
    back: Label,
    site: u32,
    ins: Vec<Operand>,
    outs: Vec<Operand>,
    skip: Option<Label>,
}

struct Emitter<'a, M> {
    asm: M,
    program: &'a Program,
    lowered: &'a Lowered,
    homes: Allocation,
    lanes: u32,
    scatters: bool,
    /// Mask of the active lanes.
    k: u8,
    /// Scratch masks.
    k6: u8,
    k7: u8,
    cold: Vec<Cold>,
    /// By the numbers of waits: which instruction waits, and where the host is asked.
    asks: Vec<(usize, Option<Label>)>,
    /// Branches that no lane takes: masks to be emptied, and where all lanes go.
    nobody: Vec<(Label, Option<R>, Label)>,
    /// Whether all lanes of the gang are active.
    full: bool,
    /// The first label of instructions.
    heres: u32,
    /// Where gangs go on, by the number of the wait.
    resumes: Vec<Label>,
    nest: Nest,
    meets: bool,
    /// Whether there are loops.
    turns: bool,
    slots: i32,
    /// Where in the state spilled registers begin.
    spills: i32,
    #[cfg(feature = "assembly")]
    marks: Vec<(u32, u32)>,
}

/// What emission gives.
pub(super) struct Emitted {
    pub(super) bytes: Vec<u8>,
    #[cfg(feature = "assembly")]
    pub(super) marks: Vec<(u32, u32)>,
    #[cfg(all(test, feature = "assembly"))]
    pub(super) meant: Box<dyn std::any::Any + Send + Sync>,
}

/// Gives the code, and completes the layout.
pub(super) fn emit<M: Lanes>(
    mut asm: M,
    program: &Program,
    lowered: &mut Lowered,
    homes: Allocation,
    target: Target,
) -> Result<Emitted, Refusal> {
    let mut layout = std::mem::take(&mut lowered.layout);
    let slots = (layout.constants + layout.data.len()).next_multiple_of(64);
    let most = lowered.sites.iter().map(|s| s.ins.len() + s.outs.len()).max();
    layout.slots = slots;
    // What is done lane by lane needs one more, for the places.
    layout.spills = slots + SLOT * (most.unwrap_or(0) + 1);
    let [k, k6, k7] = asm.masks();
    let heres = 2 * lowered.labels;
    for _ in 0..heres + 2 * lowered.code.len() as u32 {
        asm.label();
    }
    let resumes = (0..=lowered.waits).map(|_| asm.label()).collect();
    let nest = Nest::new(&mut asm);
    let meets = lowered.code.iter().any(|i| matches!(i, I::Meet { .. }));
    let mut emitter = Emitter {
        asm,
        program,
        lowered,
        homes,
        lanes: target.lanes,
        scatters: target.scatters(),
        k,
        k6,
        k7,
        cold: Vec::new(),
        asks: vec![(0, None); lowered.waits as usize + 1],
        nobody: Vec::new(),
        full: true,
        heres,
        resumes,
        nest,
        meets,
        turns: lowered.code.iter().any(|i| matches!(i, I::Poll { .. })),
        slots: slots as i32,
        spills: layout.spills as i32,
        #[cfg(feature = "assembly")]
        marks: Vec::new(),
    };
    emitter.all(&layout);
    layout.frame = emitter.homes.frame.next_multiple_of(64);
    let common = if meets { emitter.homes.common } else { layout.frame };
    layout.bytes = layout.spills + common.next_multiple_of(64);
    #[cfg(feature = "assembly")]
    let marks = emitter.marks;
    let finished = emitter.asm.finish();
    let finished = finished.ok_or(Refusal::Unknown("a jump to nowhere"))?;
    lowered.layout = layout;
    Ok(Emitted {
        bytes: finished.bytes,
        #[cfg(feature = "assembly")]
        marks,
        #[cfg(all(test, feature = "assembly"))]
        meant: finished.meant,
    })
}

impl<M: Lanes> Emitter<'_, M> {
    fn all(&mut self, layout: &Layout) {
        let lowered = self.lowered;
        self.begin();
        let gang = lowered
            .code
            .iter()
            .position(|i| matches!(i, I::Gang))
            .unwrap_or(0);
        for (at, i) in lowered.code.iter().enumerate().take(gang + 1) {
            self.instruction(at, i, layout);
        }
        self.bodies(gang, layout);
        self.dispatch();
        self.others();
        for cold in std::mem::take(&mut self.cold) {
            self.asm.place(cold.start);
            self.call(cold.at, cold.site, &cold.ins, &cold.outs);
            match (cold.full, cold.skip) {
                (true, Some(_)) => self.go_on(cold.at, cold.skip),
                (_, skip) => {
                    if let Some(skip) = skip {
                        let to = self.masked(skip);
                        self.asm.kjump(true, self.k, to);
                    }
                    self.asm.jmp(cold.back);
                }
            }
        }
        for (id, (at, ask)) in std::mem::take(&mut self.asks).into_iter().enumerate().skip(1) {
            let Some(i) = lowered.code.get(at) else { continue };
            if let Some(start) = ask {
                self.ask(at, id as u32, start, layout);
            }
            self.resume(at, id as u32, i, layout);
        }
    }

    /// Asks the host whether to go on.
    fn ask(&mut self, at: usize, id: u32, start: Label, layout: &Layout) {
        self.asm.place(start);
        self.suspend(at, id, layout, true);
        let asm = &mut self.asm;
        asm.store(8, Mem::at(M::STATE, GANG), M::KEPT);
        asm.call(POLL, 0);
        asm.test(false, A);
        asm.jcc(Cc::Ne, self.nest.leave);
    }

    /// The code of an operation of the flat program begins.
    fn mark(&mut self, pc: u32) {
        #[cfg(feature = "assembly")]
        self.marks.push((self.asm.here() as u32, pc));
        #[cfg(not(feature = "assembly"))]
        let _ = pc;
    }

    /// A register to its place in memory, or back.
    fn transfer(&mut self, r: R, reg: u8, slot: Home, stores: bool) {
        let Some(mem) = self.memory(slot) else { return };
        match (self.homes.class(r), stores) {
            (Class::General, true) => self.asm.store(8, mem, reg),
            (Class::General, false) => self.asm.mov(true, reg, Rm::Mem(mem)),
            (Class::Vector, true) => self.asm.vstore(mem, reg),
            (Class::Vector, false) => self.asm.vload(reg, mem),
            (Class::Mask, true) => self.asm.kstore(mem, reg),
            (Class::Mask, false) => self.asm.kload(reg, mem),
        }
    }

    /// What registers hold over a call, or while other gangs run, who leave alone what all share.
    fn keep(&mut self, at: usize, shared: bool, stores: bool) {
        for r in self.homes.live(at) {
            let Home::Register(reg) = self.homes.home(r) else {
                continue;
            };
            if !shared && self.homes.is_common(r) || stores && self.homes.origin(r).is_some() {
                continue;
            }
            let slot = self.homes.save_slot(r);
            self.transfer(r, reg, slot, stores);
        }
    }

    fn suspend(&mut self, at: usize, id: u32, layout: &Layout, shared: bool) {
        self.keep(at, shared, true);
        self.asm.bits_of_mask(A, self.k);
        let waiting = self.frame(layout.waiting as i32);
        self.asm.store(8, waiting, A);
        // Where the gang goes on when it is its turn again.
        self.asm.mov_imm(A, u64::from(id));
        self.asm.store(8, Mem::at(M::KEPT, GANG_RESUME), A);
    }

    /// Where a gang goes on that has waited at an instruction.
    fn resume(&mut self, at: usize, id: u32, i: &I, layout: &Layout) {
        self.asm.place(self.resumes[id as usize]);
        let meets = matches!(i, I::Meet { .. });
        if meets {
            self.gang_budget();
        }
        self.keep(at, !meets, false);
        let waiting = self.frame(layout.waiting as i32);
        self.asm.load(8, A, waiting);
        self.asm.mask_of_bits(self.k, A);
        if let I::Meet { ins, outs, .. } = i {
            for (number, operand) in outs.iter().enumerate() {
                let slot = self.frame((layout.exchange + (ins.len() + number) * SLOT) as i32);
                self.take(slot, operand);
            }
        }
        self.go_on(at, None);
    }

    fn slot(&self, number: usize) -> i32 {
        self.slots + (number * SLOT) as i32
    }

    /// Puts an operand where the host finds it.
    fn give(&mut self, Mem { base, disp: to, .. }: Mem, operand: &Operand) {
        let bytes = self.lanes as i32 * 4;
        match operand {
            Operand::One(g) | Operand::Affine(g, _) => {
                let r = self.g_in(*g, A);
                self.asm.store(8, Mem::at(base, to), r);
            }
            Operand::Lanes(regs, parts) => {
                for (part, r) in regs.iter().enumerate().take(*parts as usize) {
                    let x = self.x_in(*r, X0);
                    let to = Mem::at(base, to + part as i32 * bytes);
                    self.asm.vstore(to, x);
                }
            }
            Operand::Mask(m) => {
                let k = self.m_in(*m, self.k7);
                self.asm.bits_of_mask(A, k);
                self.asm.store(8, Mem::at(base, to), A);
            }
        }
    }

    /// Takes a result from where the host has put it.
    fn take(&mut self, Mem { base, disp: from, .. }: Mem, operand: &Operand) {
        let bytes = self.lanes as i32 * 4;
        match operand {
            Operand::One(G::R(r)) => {
                self.asm.load(8, A, Mem::at(base, from));
                self.g_out(*r, A);
            }
            Operand::Lanes(regs, parts) => {
                for (part, r) in regs.iter().enumerate().take(*parts as usize) {
                    let from = Mem::at(base, from + part as i32 * bytes);
                    let x = self.x_to(*r, X0);
                    self.asm.vload(x, from);
                    self.x_done(*r, x);
                }
            }
            Operand::Mask(m) => {
                self.asm.load(8, A, Mem::at(base, from));
                self.asm.mask_of_bits(self.k7, A);
                self.m_done(*m, self.k7);
            }
            _ => {}
        }
    }

    fn call(&mut self, at: usize, site: u32, ins: &[Operand], outs: &[Operand]) {
        for (number, operand) in ins.iter().enumerate() {
            self.give(Mem::at(M::STATE, self.slot(number)), operand);
        }
        self.keep(at, true, true);
        let asm = &mut self.asm;
        asm.bits_of_mask(A, self.k);
        asm.store(8, Mem::at(M::STATE, MASK), A);
        asm.store(8, Mem::at(M::STATE, GANG), M::KEPT);
        asm.call(CALL, site);
        asm.mask_of_bits(self.k, A);
        self.keep(at, true, false);
        for (number, operand) in outs.iter().enumerate() {
            self.take(Mem::at(M::STATE, self.slot(ins.len() + number)), operand);
        }
    }
}
