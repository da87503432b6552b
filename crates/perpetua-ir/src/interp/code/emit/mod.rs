//! From instructions over placed registers to bytes. What lies in the frame passes through scratch registers, which no
//! virtual register has: rax, rcx, rdx, two masks and four vectors.

mod access;
mod instruction;
mod masks;
mod operand;

use super::allocate::{AVX2_MASKS, Allocation, Home};
use super::assemble::table::{self, op};
use super::assemble::*;
use super::layout::*;
use super::lir::*;
use super::lower::Lowered;
use super::lower::scale;
use super::tree::{AccessKind, AtomicKind};
use super::{Isa, Refusal, Target};
use crate::interp::program::{Fill, Length, Program, RegionKind};
use crate::ir::{AtomicOp, Axis, Builtin, Scalar};
use crate::ops::BinaryOp;

/// Register of the state.
const STATE: Gpr = 15;
/// Register of the frame.
const LOCAL: Gpr = 14;
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
    polls: Vec<(usize, Label, Label, u32)>,
    /// Where gangs go on, by the number of the wait.
    resumes: Vec<Label>,
    leave: Label,
    /// On to the next gang.
    next: Label,
    meets: bool,
    slots: i32,
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
    layout.bytes = slots + SLOT * (most.unwrap_or(0) + 1);
    let length = if lanes == 16 { 2 } else { 1 };
    let constants = layout.constants as i32;
    let bits = avx2.then(|| Mem::at(STATE, constants));
    let [k, k6, k7] = if avx2 { AVX2_MASKS } else { [1, 6, 7] };
    let mut asm = Assembler::new(length, bits);
    for _ in 0..lowered.labels {
        asm.label();
    }
    let resumes = (0..=lowered.waits).map(|_| asm.label()).collect();
    let (leave, next) = (asm.label(), asm.label());
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
        polls: Vec::new(),
        resumes,
        leave,
        next,
        meets,
        slots: slots as i32,
        #[cfg(feature = "assembly")]
        marks: Vec::new(),
    };
    emitter.all(&layout);
    layout.frame = emitter.homes.frame.next_multiple_of(64);
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
        let asm = &mut self.asm;
        let (top, finished, dispatch) = (asm.label(), asm.label(), asm.label());
        for r in [RBX, RBP, 12, 13, 14, 15, RAX] {
            asm.push(r);
        }
        asm.mov(true, STATE, Rm::Reg(RDI));
        asm.place(top);
        asm.mov(true, RCX, Rm::Mem(Mem::at(STATE, GANG)));
        asm.alu(0x3B, true, RCX, Rm::Mem(Mem::at(STATE, GANG_END)));
        asm.jcc(Cc::Ae, finished);
        asm.mov(true, LOCAL, Rm::Mem(Mem::at(RCX, GANG_FRAME)));
        for (number, (_, fill)) in self.program.fills.iter().enumerate() {
            let at = match fill {
                Fill::Builtin(Builtin::ThreadIdx(Axis::X)) => 0,
                Fill::Builtin(Builtin::ThreadIdx(Axis::Y)) => 4,
                Fill::Builtin(Builtin::ThreadIdx(Axis::Z)) => 8,
                _ => continue,
            };
            asm.load(4, RAX, Mem::at(RCX, at));
            asm.store(8, Mem::at(STATE, (layout.fills + 8 * number) as i32), RAX);
        }
        asm.load(4, RAX, Mem::at(RCX, GANG_FIRST));
        asm.store(8, Mem::at(STATE, FIRST_LANE), RAX);
        asm.mov(true, RAX, Rm::Mem(Mem::at(STATE, BUDGET)));
        asm.store(8, Mem::at(STATE, BUDGET_BEFORE), RAX);
        asm.load(4, RAX, Mem::at(RCX, GANG_MASK));
        asm.kmov_from(self.k, RAX);
        if lowered.waits > 0 {
            asm.load(4, RAX, Mem::at(RCX, GANG_RESUME));
            asm.test(false, RAX);
            asm.jcc(Cc::Ne, dispatch);
        }
        #[cfg(feature = "assembly")]
        let mut marks = lowered.marks.iter().peekable();
        for (at, i) in lowered.code.iter().enumerate() {
            #[cfg(feature = "assembly")]
            while let Some((_, pc)) = marks.next_if(|(start, _)| *start <= at) {
                self.marks.push((self.asm.bytes.len() as u32, *pc));
            }
            self.instruction(at, i, layout);
        }
        if self.meets {
            self.resume_at(GANG_DONE);
        }
        let (next, asm) = (self.next, &mut self.asm);
        asm.place(next);
        asm.alu_imm(0x03, true, Rm::Mem(Mem::at(STATE, GANG)), GANG_BYTES);
        asm.jmp(top);
        asm.place(finished);
        asm.alu(0x33, false, RAX, Rm::Reg(RAX));
        asm.place(self.leave);
        asm.vzeroupper();
        asm.pop(RCX);
        for r in [15, 14, 13, 12, RBP, RBX] {
            asm.pop(r);
        }
        asm.ret();
        asm.place(dispatch);
        for (id, resume) in self.resumes.iter().enumerate().skip(1) {
            asm.alu_imm(0x3B, false, Rm::Reg(RAX), id as i32);
            asm.jcc(Cc::E, *resume);
        }
        // It is done.
        asm.jmp(next);
        for cold in std::mem::take(&mut self.cold) {
            self.asm.place(cold.start);
            self.call(cold.at, cold.site, &cold.ins, &cold.outs);
            if let Some(skip) = cold.skip {
                self.asm.kortest(self.k);
                self.asm.jcc(Cc::E, skip);
            }
            self.asm.jmp(cold.back);
        }
        for (at, start, back, id) in std::mem::take(&mut self.polls) {
            self.asm.place(start);
            self.suspend(at, id, layout);
            let asm = &mut self.asm;
            asm.mov(true, RDI, Rm::Reg(STATE));
            asm.vzeroupper();
            asm.call(Mem::at(STATE, POLL));
            asm.test(false, RAX);
            asm.jcc(Cc::Ne, self.leave);
            self.resume(at, id, layout);
            self.asm.jmp(back);
        }
    }

    fn save(&mut self, at: usize) {
        for r in self.homes.live(at) {
            let (slot, home) = (self.homes.save_slot(r), self.homes.home(r));
            let (Home::Register(reg), to) = (home, Mem::at(LOCAL, slot)) else {
                continue;
            };
            match self.homes.class(r) {
                Class::General => self.asm.store(8, to, reg),
                Class::Vector => self.evex(MOVAPS_STORE, reg, 0, Rm::Mem(to)),
                Class::Mask => self.asm.kstore(to, reg),
            }
        }
    }

    fn restore(&mut self, at: usize) {
        for r in self.homes.live(at) {
            let (slot, home) = (self.homes.save_slot(r), self.homes.home(r));
            let (Home::Register(reg), from) = (home, Rm::Mem(Mem::at(LOCAL, slot))) else {
                continue;
            };
            match self.homes.class(r) {
                Class::General => self.asm.mov(true, reg, from),
                Class::Vector => self.evex(MOVAPS, reg, 0, from),
                Class::Mask => self.asm.kmov(reg, from),
            }
        }
    }

    fn suspend(&mut self, at: usize, id: u32, layout: &Layout) {
        self.save(at);
        self.asm.kmov_to(RAX, self.k);
        self.asm.store(8, Mem::at(LOCAL, layout.waiting as i32), RAX);
        self.resume_at(id);
    }

    /// Where the gang goes on when it is its turn again.
    fn resume_at(&mut self, id: u32) {
        let asm = &mut self.asm;
        asm.mov(true, RCX, Rm::Mem(Mem::at(STATE, GANG)));
        asm.mov_imm(RAX, u64::from(id));
        asm.store(4, Mem::at(RCX, GANG_RESUME), RAX);
    }

    fn resume(&mut self, at: usize, id: u32, layout: &Layout) {
        self.asm.place(self.resumes[id as usize]);
        self.restore(at);
        self.asm.load(8, RAX, Mem::at(LOCAL, layout.waiting as i32));
        self.asm.kmov_from(self.k, RAX);
        self.resume_at(0);
    }

    fn slot(&self, number: usize) -> i32 {
        self.slots + (number * SLOT) as i32
    }

    /// Puts an operand where the host finds it.
    fn give(&mut self, base: Gpr, to: i32, operand: &Operand) {
        let bytes = self.lanes as i32 * 4;
        match operand {
            Operand::One(g) | Operand::Affine(g, _) => {
                let r = self.g_in(*g, RAX);
                self.asm.store(8, Mem::at(base, to), r);
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
    fn take(&mut self, base: Gpr, from: i32, operand: &Operand) {
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
            self.give(STATE, self.slot(number), operand);
        }
        self.save(at);
        let asm = &mut self.asm;
        asm.kmov_to(RAX, self.k);
        asm.store(8, Mem::at(STATE, MASK), RAX);
        asm.mov(true, RDI, Rm::Reg(STATE));
        asm.mov_imm(RSI, u64::from(site));
        asm.vzeroupper();
        asm.call(Mem::at(STATE, CALL));
        asm.kmov_from(self.k, RAX);
        self.restore(at);
        for (number, operand) in outs.iter().enumerate() {
            self.take(STATE, self.slot(ins.len() + number), operand);
        }
    }
}

/// No register.
const RSI_FREE: Gpr = 0xFF;
