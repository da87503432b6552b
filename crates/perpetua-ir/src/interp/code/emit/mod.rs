//! From instructions over placed registers to bytes. What lies in the frame passes through scratch registers, which no
//! virtual register has: rax, rcx, rdx, two masks and four vectors.

mod access;
mod instruction;
mod lanes;
mod masks;
mod nest;
mod operand;
mod scalar;
mod segment;

use super::allocate::{AVX2_MASKS, Allocation, Home};
use super::assemble::table::{self, op};
use super::assemble::*;
use super::layout::*;
use super::lir::*;
use super::lower::Lowered;
use super::lower::scale;
use super::tree::{AccessKind, AtomicKind};
use super::{Isa, Refusal, Target};
use crate::interp::program::{Length, Program, RegionKind};
use crate::ir::{AtomicOp, Scalar};
use crate::ops::BinaryOp;
use nest::Nest;

/// Register of the state.
const STATE: Gpr = 15;
/// Register of the entry of the gang that runs, with which its frame begins where it has one of its own.
const GANG_AT: Gpr = 14;
/// Scratch vectors; the assembler has others for AVX2.
const X0: u8 = 28;
const X1: u8 = 29;
const X2: u8 = 30;
const X3: u8 = 31;

const MOVAPS: Vop = Vop(Pp::P66, 1, false, 0x6F);
const MOVAPS_STORE: Vop = Vop(Pp::P66, 1, false, 0x7F);
const MOVUPS: Vop = Vop(Pp::PF3, 1, false, 0x6F);
const MOVUPS_STORE: Vop = Vop(Pp::PF3, 1, false, 0x7F);
const MOVUPD: Vop = Vop(Pp::PF3, 1, true, 0x6F);
const MOVUPD_STORE: Vop = Vop(Pp::PF3, 1, true, 0x7F);

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

struct Emitter<'a> {
    asm: Assembler,
    program: &'a Program,
    lowered: &'a Lowered,
    homes: Allocation,
    lanes: u32,
    /// 2 for 512 bits, 1 for 256.
    length: u8,
    /// No mask registers, and sixteen vectors.
    avx2: bool,
    /// Mask of the active lanes.
    k: u8,
    /// Scratch masks.
    k6: u8,
    k7: u8,
    /// Where constants begin in the state.
    constants: i32,
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
    /// Where all lanes of a gang have come together: what stands there, where that goes on if checks may fail, and else.
    together: Vec<[Label; 3]>,
    meets: bool,
    /// Whether segments tell if checks may fail.
    proves: bool,
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
    pub(super) meant: Vec<Meant>,
}

/// Gives the code, and completes the layout.
pub(super) fn emit(
    program: &Program,
    lowered: &mut Lowered,
    homes: Allocation,
    Target { lanes, isa }: Target,
) -> Result<Emitted, Refusal> {
    let avx2 = isa == Isa::Avx2;
    let mut layout = std::mem::take(&mut lowered.layout);
    let slots = (layout.constants + layout.data.len()).next_multiple_of(64);
    let most = lowered.sites.iter().map(|s| s.ins.len() + s.outs.len()).max();
    layout.slots = slots;
    // What is done lane by lane needs one more, for the places.
    layout.spills = slots + SLOT * (most.unwrap_or(0) + 1);
    let length = if lanes == 16 { 2 } else { 1 };
    let constants = layout.constants as i32;
    let bits = avx2.then(|| Mem::at(STATE, constants));
    let [k, k6, k7] = if avx2 { AVX2_MASKS } else { [1, 6, 7] };
    let mut asm = Assembler::new(length, bits);
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
        lanes,
        length,
        avx2,
        k,
        k6,
        k7,
        constants,
        cold: Vec::new(),
        asks: vec![(0, None); lowered.waits as usize + 1],
        nobody: Vec::new(),
        full: true,
        heres,
        resumes,
        nest,
        together: Vec::new(),
        meets,
        proves: lowered.code.iter().any(|i| matches!(i, I::Prove { .. })),
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
    #[cfg(all(test, feature = "assembly"))]
    let meant = std::mem::take(&mut emitter.asm.meant);
    let bytes = emitter
        .asm
        .finish()
        .ok_or(Refusal::Unknown("a jump to nowhere"))?;
    lowered.layout = layout;
    Ok(Emitted {
        bytes,
        #[cfg(feature = "assembly")]
        marks,
        #[cfg(all(test, feature = "assembly"))]
        meant,
    })
}

impl Emitter<'_> {
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
                        self.asm.kortest(self.k);
                        self.asm.jcc(Cc::E, self.masked(skip));
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
        self.come_together();
    }

    /// Asks the host whether to go on.
    fn ask(&mut self, at: usize, id: u32, start: Label, layout: &Layout) {
        self.asm.place(start);
        self.suspend(at, id, layout, true);
        let asm = &mut self.asm;
        asm.store(8, Mem::at(STATE, GANG), GANG_AT);
        asm.mov(true, RDI, Rm::Reg(STATE));
        asm.vzeroupper();
        asm.call(Mem::at(STATE, POLL));
        asm.test(false, RAX);
        asm.jcc(Cc::Ne, self.nest.leave);
    }

    /// The code of an operation of the flat program begins.
    fn mark(&mut self, pc: u32) {
        #[cfg(feature = "assembly")]
        self.marks.push((self.asm.bytes.len() as u32, pc));
        #[cfg(not(feature = "assembly"))]
        let _ = pc;
    }

    /// A register to its place in memory, or back.
    fn transfer(&mut self, r: R, reg: u8, slot: Home, stores: bool) {
        let Some(mem) = self.memory(slot) else { return };
        match (self.homes.class(r), stores) {
            (Class::General, true) => self.asm.store(8, mem, reg),
            (Class::General, false) => self.asm.mov(true, reg, Rm::Mem(mem)),
            (Class::Vector, true) => self.evex(MOVAPS_STORE, reg, 0, Rm::Mem(mem)),
            (Class::Vector, false) => self.evex(MOVAPS, reg, 0, Rm::Mem(mem)),
            (Class::Mask, true) => self.asm.kstore(mem, reg),
            (Class::Mask, false) => self.asm.kmov(reg, Rm::Mem(mem)),
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
        self.asm.kmov_to(RAX, self.k);
        let waiting = self.frame(layout.waiting as i32);
        self.asm.store(8, waiting, RAX);
        // Where the gang goes on when it is its turn again.
        self.asm.mov_imm(RAX, u64::from(id));
        self.asm.store(8, Mem::at(GANG_AT, GANG_RESUME), RAX);
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
        self.asm.load(8, RAX, waiting);
        self.asm.kmov_from(self.k, RAX);
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
                let r = self.g_in(*g, RAX);
                self.asm.store(8, Mem::at(base, to), r);
            }
            Operand::Rooted(index) => {
                self.sum(*index, RAX);
                self.asm.store(8, Mem::at(base, to), RAX);
            }
            Operand::Lanes(regs, parts) => {
                for (part, r) in regs.iter().enumerate().take(*parts as usize) {
                    let x = self.x_in(*r, X0);
                    let to = Mem::at(base, to + part as i32 * bytes);
                    self.evex(MOVUPS_STORE, x, 0, Rm::Mem(to));
                }
            }
            Operand::Mask(m) => {
                let k = self.m_in(*m, self.k7);
                self.asm.kmov_to(RAX, k);
                self.asm.store(8, Mem::at(base, to), RAX);
            }
        }
    }

    /// Takes a result from where the host has put it.
    fn take(&mut self, Mem { base, disp: from, .. }: Mem, operand: &Operand) {
        let bytes = self.lanes as i32 * 4;
        match operand {
            Operand::One(G::R(r)) => {
                self.asm.load(8, RAX, Mem::at(base, from));
                self.g_out(*r, RAX);
            }
            Operand::Lanes(regs, parts) => {
                for (part, r) in regs.iter().enumerate().take(*parts as usize) {
                    let from = Mem::at(base, from + part as i32 * bytes);
                    let x = self.x_to(*r, X0);
                    self.evex(MOVUPS, x, 0, Rm::Mem(from));
                    self.x_done(*r, x);
                }
            }
            Operand::Mask(m) => {
                self.asm.load(8, RAX, Mem::at(base, from));
                self.asm.kmov_from(self.k7, RAX);
                self.m_done(*m, self.k7);
            }
            _ => {}
        }
    }

    fn call(&mut self, at: usize, site: u32, ins: &[Operand], outs: &[Operand]) {
        for (number, operand) in ins.iter().enumerate() {
            self.give(Mem::at(STATE, self.slot(number)), operand);
        }
        self.keep(at, true, true);
        let asm = &mut self.asm;
        asm.kmov_to(RAX, self.k);
        asm.store(8, Mem::at(STATE, MASK), RAX);
        asm.store(8, Mem::at(STATE, GANG), GANG_AT);
        asm.mov(true, RDI, Rm::Reg(STATE));
        asm.mov_imm(RSI, u64::from(site));
        asm.vzeroupper();
        asm.call(Mem::at(STATE, CALL));
        asm.kmov_from(self.k, RAX);
        self.keep(at, true, false);
        for (number, operand) in outs.iter().enumerate() {
            self.take(Mem::at(STATE, self.slot(ins.len() + number)), operand);
        }
    }
}

/// No register.
const RSI_FREE: Gpr = 0xFF;
