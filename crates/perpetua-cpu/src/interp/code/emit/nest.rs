//! The loops around a gang's code: rows, blocks and gangs, and barriers, at which all gangs go on from where they wait. Knows the
//! state's header and the table of gangs, no operations.

use super::*;

/// Places of the loops.
#[derive(Clone, Copy)]
pub(super) struct Nest {
    row: Label,
    block: Label,
    /// A gang begins.
    gang: Label,
    /// It has not all lanes.
    some: Label,
    /// On to the next gang.
    pub(super) next: Label,
    next_block: Label,
    /// The gang goes on where it waits.
    dispatch: Label,
    pub(super) leave: Label,
}

impl Nest {
    pub(super) fn new<M: Lanes>(asm: &mut M) -> Nest {
        let mut label = || asm.label();
        Nest {
            row: label(),
            block: label(),
            gang: label(),
            some: label(),
            next: label(),
            next_block: label(),
            dispatch: label(),
            leave: label(),
        }
    }
}

/// Gangs have met where only the host can tell what comes of it.
const MEETING: u64 = 1;

fn state<M: Lanes>(at: i32) -> Rm {
    Rm::Mem(Mem::at(M::STATE, at))
}

impl<M: Lanes> Emitter<'_, M> {
    pub(super) fn begin(&mut self) {
        let asm = &mut self.asm;
        asm.enter();
        self.asm.kall(self.k);
        let asm = &mut self.asm;
        if self.lowered.waits > 0 {
            let start = asm.label();
            asm.mov(true, C, state::<M>(ENTERING));
            asm.test(false, C);
            asm.jcc(Cc::E, start);
            self.enter_again();
            self.asm.place(start);
        }
    }

    /// Goes on with what has been entered before.
    fn enter_again(&mut self) {
        self.commons(false);
        let nest = self.nest;
        let asm = &mut self.asm;
        let met = asm.label();
        asm.alu_imm(Alu::Compare, false, Rm::Reg(C), MET as i32);
        asm.jcc(Cc::E, met);
        asm.alu_imm(Alu::Compare, false, Rm::Reg(C), NEXT_BLOCK as i32);
        asm.jcc(Cc::E, nest.next_block);
        asm.mov(true, M::KEPT, state::<M>(GANG));
        asm.jmp(nest.dispatch);
        asm.place(met);
        asm.lea(nest.dispatch);
        asm.store(8, Mem::at(M::STATE, PASS), A);
        asm.mov(true, M::KEPT, state::<M>(GANGS));
        asm.jmp(nest.dispatch);
    }

    /// Registers that all gangs share, to memory or back, where gangs have frames of their own.
    fn commons(&mut self, stores: bool) {
        if !self.meets {
            return;
        }
        let gang = self.lowered.code.iter().position(|i| matches!(i, I::Gang));
        for r in self.homes.live(gang.unwrap_or(0)) {
            let Home::Register(reg) = self.homes.home(r) else {
                continue;
            };
            if stores && self.homes.origin(r).is_some() {
                continue;
            }
            let slot = self.homes.save_slot(r);
            self.transfer(r, reg, slot, stores);
        }
    }

    pub(super) fn row(&mut self) {
        self.asm.place(self.nest.row);
        self.asm.mov(true, M::KEPT, state::<M>(ROW));
        self.asm.kall(self.k);
    }

    pub(super) fn block(&mut self) {
        let asm = &mut self.asm;
        asm.place(self.nest.block);
        self.asm.kall(self.k);
        let asm = &mut self.asm;
        let shared = |kind| matches!(kind, RegionKind::Shared { .. } | RegionKind::Dynamic);
        if !self.program.regions.iter().any(|region| shared(region.kind)) {
            return;
        }
        // Shared memory begins as zeros, in lines of 64 bytes.
        let (again, done) = (asm.label(), asm.label());
        asm.mov(true, A, state::<M>(SHARED));
        self.asm.zero(X0);
        let asm = &mut self.asm;
        asm.place(again);
        asm.alu(Alu::Compare, true, A, state::<M>(SHARED_END));
        asm.jcc(Cc::Ae, done);
        let bytes = self.lanes as i32 * 4;
        for at in (0..64).step_by(bytes as usize) {
            self.asm.vstore(Mem::at(A, at), X0);
        }
        let asm = &mut self.asm;
        asm.alu_imm(Alu::Add, true, Rm::Reg(A), 64);
        asm.jmp(again);
        asm.place(done);
    }

    pub(super) fn gang(&mut self) {
        self.commons(true);
        let nest = self.nest;
        let meets = self.meets;
        let asm = &mut self.asm;
        if meets {
            asm.lea(nest.gang);
            asm.store(8, Mem::at(M::STATE, PASS), A);
            asm.alu(Alu::Xor, false, A, Rm::Reg(A));
            for at in [DONE, ARRIVED, PHASE] {
                asm.store(8, Mem::at(M::STATE, at), A);
            }
        }
        asm.mov(true, M::KEPT, state::<M>(if meets { GANGS } else { ROW }));
        asm.place(nest.gang);
        self.gang_budget();
        let (some, all) = (self.nest.some, (1 << self.lanes) - 1);
        let mask = Mem::at(M::KEPT, GANG_MASK);
        self.asm.alu_imm(Alu::Compare, false, Rm::Mem(mask), all);
        self.asm.jcc(Cc::Ne, some);
        self.asm.kall(self.k);
    }

    /// The beginning of a gang that has not as many lanes as others.
    pub(super) fn some(&mut self, begin: Label) {
        self.asm.place(self.nest.some);
        self.asm.load(8, A, Mem::at(M::KEPT, GANG_MASK));
        self.asm.mask_of_bits(self.k, A);
        self.asm.jmp(begin);
    }

    /// From now on turns count for the gang.
    pub(super) fn gang_budget(&mut self) {
        if self.turns {
            self.asm.mov(true, A, state::<M>(BUDGET));
            self.asm.store(8, Mem::at(M::STATE, BUDGET_BEFORE), A);
        }
    }

    /// The end of a gang's code.
    pub(super) fn next(&mut self) {
        let nest = self.nest;
        let asm = &mut self.asm;
        if self.meets {
            asm.mov_imm(A, GANG_DONE);
            asm.store(8, Mem::at(M::KEPT, GANG_RESUME), A);
            asm.alu_imm(Alu::Add, true, state::<M>(DONE), 1);
            asm.place(nest.next);
            self.next_of_meeting();
        } else {
            asm.place(nest.next);
            asm.alu_imm(Alu::Add, true, Rm::Reg(M::KEPT), GANG_BYTES as i32);
            asm.alu(Alu::Compare, true, M::KEPT, state::<M>(ROW_END));
            asm.jcc(Cc::B, nest.gang);
        }
        let asm = &mut self.asm;
        let grid_row = asm.label();
        asm.place(nest.next_block);
        asm.mov(true, A, state::<M>(BLOCK_X));
        asm.alu(Alu::Add, true, A, state::<M>(X_STEP));
        asm.store(8, Mem::at(M::STATE, BLOCK_X), A);
        asm.alu(Alu::Compare, true, A, state::<M>(X_END));
        asm.jcc(Cc::B, nest.block);
        asm.mov(true, A, state::<M>(X_FIRST));
        asm.store(8, Mem::at(M::STATE, BLOCK_X), A);
        asm.mov(true, A, state::<M>(ROW));
        asm.alu(Alu::Add, true, A, state::<M>(ROW_BYTES));
        asm.alu(Alu::Compare, true, A, state::<M>(GANGS_END));
        asm.jcc(Cc::Ae, grid_row);
        asm.store(8, Mem::at(M::STATE, ROW), A);
        asm.alu(Alu::Add, true, A, state::<M>(ROW_USED));
        asm.store(8, Mem::at(M::STATE, ROW_END), A);
        asm.jmp(nest.row);
        asm.place(grid_row);
        self.next_of_grid();
    }

    /// On to the next row of the grid, or to the end.
    fn next_of_grid(&mut self) {
        let asm = &mut self.asm;
        let (finished, same) = (asm.label(), asm.label());
        asm.alu_imm(Alu::Sub, true, state::<M>(ROWS), 1);
        asm.jcc(Cc::E, finished);
        asm.mov(true, A, state::<M>(BLOCK_Y));
        asm.alu_imm(Alu::Add, true, Rm::Reg(A), 1);
        asm.alu(Alu::Compare, true, A, state::<M>(GRID_Y));
        asm.jcc(Cc::B, same);
        asm.alu(Alu::Xor, false, A, Rm::Reg(A));
        asm.alu_imm(Alu::Add, true, state::<M>(BLOCK_Z), 1);
        asm.place(same);
        asm.store(8, Mem::at(M::STATE, BLOCK_Y), A);
        asm.mov(true, A, state::<M>(GANGS));
        asm.store(8, Mem::at(M::STATE, ROW), A);
        asm.alu(Alu::Add, true, A, state::<M>(ROW_USED));
        asm.store(8, Mem::at(M::STATE, ROW_END), A);
        asm.jmp(self.nest.row);
        asm.place(finished);
        asm.alu(Alu::Xor, false, A, Rm::Reg(A));
        asm.place(self.nest.leave);
        asm.leave();
    }

    /// The next gang of a pass; after the last one on behind the barrier, to the next block, or to the host.
    fn next_of_meeting(&mut self) {
        let nest = self.nest;
        let asm = &mut self.asm;
        let (all, host) = (asm.label(), asm.label());
        asm.alu(Alu::Add, true, M::KEPT, state::<M>(STRIDE));
        asm.alu(Alu::Compare, true, M::KEPT, state::<M>(GANGS_END));
        asm.jcc(Cc::Ae, all);
        asm.jmp_to(Mem::at(M::STATE, PASS));
        asm.place(all);
        asm.mov(true, A, state::<M>(COUNT));
        asm.alu(Alu::Compare, true, A, state::<M>(DONE));
        asm.jcc(Cc::E, nest.next_block);
        asm.alu(Alu::Compare, true, A, state::<M>(ARRIVED));
        asm.jcc(Cc::Ne, host);
        asm.alu(Alu::Xor, false, A, Rm::Reg(A));
        asm.store(8, Mem::at(M::STATE, ARRIVED), A);
        asm.alu_imm(Alu::Add, true, state::<M>(PHASE), 1);
        asm.mov(true, A, state::<M>(BEHIND));
        asm.store(8, Mem::at(M::STATE, PASS), A);
        asm.mov(true, M::KEPT, state::<M>(GANGS));
        asm.jmp_to(Mem::at(M::STATE, BEHIND));
        asm.place(host);
        asm.mov_imm(A, MEETING);
        asm.jmp(nest.leave);
    }

    /// A gang has come to a barrier: it is counted if it has all its lanes, and waits where those before it do.
    pub(super) fn arrive(&mut self, resume: Label) {
        let next = self.nest.next;
        let asm = &mut self.asm;
        let same = asm.label();
        // What a lane read atomically may be another block's word that its data is there.
        asm.fence();
        if !self.full {
            asm.bits_of_mask(A, self.k);
            asm.alu(Alu::Compare, true, A, Rm::Mem(Mem::at(M::KEPT, GANG_MASK)));
            asm.jcc(Cc::Ne, next);
        }
        asm.lea(resume);
        asm.alu(Alu::Compare, true, A, state::<M>(BEHIND));
        asm.jcc(Cc::E, same);
        asm.alu_imm(Alu::Compare, true, state::<M>(ARRIVED), 0);
        asm.jcc(Cc::Ne, next);
        asm.store(8, Mem::at(M::STATE, BEHIND), A);
        asm.place(same);
        asm.alu_imm(Alu::Add, true, state::<M>(ARRIVED), 1);
        asm.jmp(next);
    }

    /// To where the gang waits, by its number.
    pub(super) fn dispatch(&mut self) {
        if self.lowered.waits == 0 {
            return;
        }
        let nest = self.nest;
        self.asm.place(nest.dispatch);
        self.gang_budget();
        let asm = &mut self.asm;
        asm.load(8, A, Mem::at(M::KEPT, GANG_RESUME));
        for (id, resume) in self.resumes.iter().enumerate().skip(1) {
            asm.alu_imm(Alu::Compare, true, Rm::Reg(A), id as i32);
            asm.jcc(Cc::E, *resume);
        }
        if self.meets {
            asm.mov_imm(C, GANG_DONE);
            asm.alu(Alu::Compare, true, A, Rm::Reg(C));
            asm.jcc(Cc::Ne, nest.next);
            asm.alu_imm(Alu::Add, true, state::<M>(DONE), 1);
        }
        asm.jmp(nest.next);
    }
}
