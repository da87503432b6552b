//! The loops around a gang's code: rows, blocks and gangs, and barriers, at which all gangs go on from where they wait. Knows the
//! state's header and the table of gangs, no operations.

use super::*;

/// Places of the loops.
#[derive(Clone, Copy)]
pub(super) struct Nest {
    row: Label,
    block: Label,
    pub(super) segment: Label,
    /// Checks may fail in this segment.
    pub(super) unproven: Label,
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
    pub(super) fn new(asm: &mut Assembler) -> Nest {
        let mut label = || asm.label();
        Nest {
            row: label(),
            block: label(),
            segment: label(),
            unproven: label(),
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

pub(super) fn state(at: i32) -> Rm {
    Rm::Mem(Mem::at(STATE, at))
}

impl Emitter<'_> {
    pub(super) fn begin(&mut self) {
        let asm = &mut self.asm;
        for r in [RBX, RBP, 12, 13, 14, 15, RAX] {
            asm.push(r);
        }
        asm.mov(true, STATE, Rm::Reg(RDI));
        self.all_lanes();
        let asm = &mut self.asm;
        if self.lowered.waits > 0 {
            let start = asm.label();
            asm.mov(true, RCX, state(ENTERING));
            asm.test(false, RCX);
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
        asm.alu_imm(0x3B, false, Rm::Reg(RCX), MET as i32);
        asm.jcc(Cc::E, met);
        asm.alu_imm(0x3B, false, Rm::Reg(RCX), NEXT_BLOCK as i32);
        asm.jcc(Cc::E, nest.next_block);
        asm.mov(true, GANG_AT, state(GANG));
        asm.jmp(nest.dispatch);
        asm.place(met);
        asm.lea(nest.dispatch);
        asm.store(8, Mem::at(STATE, PASS), RAX);
        asm.mov(true, GANG_AT, state(GANGS));
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
        self.asm.mov(true, GANG_AT, state(ROW));
        self.all_lanes();
    }

    pub(super) fn block(&mut self) {
        let asm = &mut self.asm;
        asm.place(self.nest.block);
        if self.lowered.by_rows {
            asm.mov(true, GANG_AT, state(ROW));
        }
        self.all_lanes();
        let asm = &mut self.asm;
        let shared = |kind| matches!(kind, RegionKind::Shared { .. } | RegionKind::Dynamic);
        if !self.program.regions.iter().any(|region| shared(region.kind)) {
            return;
        }
        // Shared memory begins as zeros, in lines of 64 bytes.
        let (again, done) = (asm.label(), asm.label());
        asm.mov(true, RAX, state(SHARED));
        self.evex(op::PXOR, X0, X0, Rm::Reg(X0));
        let asm = &mut self.asm;
        asm.place(again);
        asm.alu(0x3B, true, RAX, state(SHARED_END));
        asm.jcc(Cc::Ae, done);
        let bytes = self.lanes as i32 * 4;
        for at in (0..64).step_by(bytes as usize) {
            self.evex(MOVUPS_STORE, X0, 0, Rm::Mem(Mem::at(RAX, at)));
        }
        let asm = &mut self.asm;
        asm.alu_imm(0x03, true, Rm::Reg(RAX), 64);
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
            asm.store(8, Mem::at(STATE, PASS), RAX);
            asm.alu(0x33, false, RAX, Rm::Reg(RAX));
            for at in [DONE, ARRIVED, PHASE] {
                asm.store(8, Mem::at(STATE, at), RAX);
            }
        }
        if !self.lowered.by_rows {
            asm.mov(true, GANG_AT, state(if meets { GANGS } else { ROW }));
        }
        let (some, all) = (self.nest.some, (1 << self.lanes) - 1);
        let mask = Mem::at(GANG_AT, GANG_MASK);
        if self.proves {
            self.proven(all as u64);
        }
        self.asm.place(nest.gang);
        self.gang_budget();
        if self.proves {
            self.asm.load(8, RAX, mask);
            self.asm.alu(0x3B, true, RAX, state(FULL));
        } else {
            self.asm.alu_imm(0x3B, false, Rm::Mem(mask), all);
        }
        self.asm.jcc(Cc::Ne, some);
        self.all_lanes();
    }

    /// The beginning of a gang that has not as many lanes as others.
    pub(super) fn some(&mut self, begin: Label) {
        self.asm.place(self.nest.some);
        self.asm.load(8, RAX, Mem::at(GANG_AT, GANG_MASK));
        self.asm.kmov_from(self.k, RAX);
        self.asm.jmp(begin);
    }

    /// From now on turns count for the gang.
    pub(super) fn gang_budget(&mut self) {
        if self.turns {
            self.asm.mov(true, RAX, state(BUDGET));
            self.asm.store(8, Mem::at(STATE, BUDGET_BEFORE), RAX);
        }
    }

    /// The end of a gang's code.
    pub(super) fn next(&mut self) {
        let nest = self.nest;
        let asm = &mut self.asm;
        if self.meets {
            asm.mov_imm(RAX, GANG_DONE);
            asm.store(8, Mem::at(GANG_AT, GANG_RESUME), RAX);
            asm.alu_imm(0x03, true, state(DONE), 1);
            asm.place(nest.next);
            self.next_of_meeting();
        } else {
            asm.place(nest.next);
            asm.alu_imm(0x03, true, Rm::Reg(GANG_AT), GANG_BYTES as i32);
            if self.lowered.by_rows {
                asm.alu(0x3B, true, GANG_AT, state(SEGMENT_END));
                asm.jcc(Cc::B, nest.gang);
            }
            asm.alu(0x3B, true, GANG_AT, state(ROW_END));
            asm.jcc(
                Cc::B,
                if self.lowered.by_rows {
                    nest.segment
                } else {
                    nest.gang
                },
            );
        }
        let asm = &mut self.asm;
        let grid_row = asm.label();
        asm.place(nest.next_block);
        asm.mov(true, RAX, state(BLOCK_X));
        asm.alu(0x03, true, RAX, state(X_STEP));
        asm.store(8, Mem::at(STATE, BLOCK_X), RAX);
        asm.alu(0x3B, true, RAX, state(X_END));
        asm.jcc(Cc::B, nest.block);
        asm.mov(true, RAX, state(X_FIRST));
        asm.store(8, Mem::at(STATE, BLOCK_X), RAX);
        asm.mov(true, RAX, state(ROW));
        asm.alu(0x03, true, RAX, state(ROW_BYTES));
        asm.alu(0x3B, true, RAX, state(GANGS_END));
        asm.jcc(Cc::Ae, grid_row);
        asm.store(8, Mem::at(STATE, ROW), RAX);
        asm.alu(0x03, true, RAX, state(ROW_USED));
        asm.store(8, Mem::at(STATE, ROW_END), RAX);
        asm.jmp(nest.row);
        asm.place(grid_row);
        self.next_of_grid();
    }

    /// On to the next row of the grid, or to the end.
    fn next_of_grid(&mut self) {
        let asm = &mut self.asm;
        let (finished, same) = (asm.label(), asm.label());
        asm.alu_imm(0x2B, true, state(ROWS), 1);
        asm.jcc(Cc::E, finished);
        asm.mov(true, RAX, state(BLOCK_Y));
        asm.alu_imm(0x03, true, Rm::Reg(RAX), 1);
        asm.alu(0x3B, true, RAX, state(GRID_Y));
        asm.jcc(Cc::B, same);
        asm.alu(0x33, false, RAX, Rm::Reg(RAX));
        asm.alu_imm(0x03, true, state(BLOCK_Z), 1);
        asm.place(same);
        asm.store(8, Mem::at(STATE, BLOCK_Y), RAX);
        asm.mov(true, RAX, state(GANGS));
        asm.store(8, Mem::at(STATE, ROW), RAX);
        asm.alu(0x03, true, RAX, state(ROW_USED));
        asm.store(8, Mem::at(STATE, ROW_END), RAX);
        asm.jmp(self.nest.row);
        asm.place(finished);
        asm.alu(0x33, false, RAX, Rm::Reg(RAX));
        asm.place(self.nest.leave);
        asm.vzeroupper();
        asm.pop(RCX);
        for r in [15, 14, 13, 12, RBP, RBX] {
            asm.pop(r);
        }
        asm.ret();
    }

    /// The next gang of a pass; after the last one on behind the barrier, to the next block, or to the host.
    fn next_of_meeting(&mut self) {
        let nest = self.nest;
        let asm = &mut self.asm;
        let (all, host) = (asm.label(), asm.label());
        asm.alu(0x03, true, GANG_AT, state(STRIDE));
        asm.alu(0x3B, true, GANG_AT, state(GANGS_END));
        asm.jcc(Cc::Ae, all);
        asm.jmp_to(Mem::at(STATE, PASS));
        asm.place(all);
        asm.mov(true, RAX, state(COUNT));
        asm.alu(0x3B, true, RAX, state(DONE));
        asm.jcc(Cc::E, nest.next_block);
        asm.alu(0x3B, true, RAX, state(ARRIVED));
        asm.jcc(Cc::Ne, host);
        asm.alu(0x33, false, RAX, Rm::Reg(RAX));
        asm.store(8, Mem::at(STATE, ARRIVED), RAX);
        asm.alu_imm(0x03, true, state(PHASE), 1);
        asm.mov(true, RAX, state(BEHIND));
        asm.store(8, Mem::at(STATE, PASS), RAX);
        asm.mov(true, GANG_AT, state(GANGS));
        asm.jmp_to(Mem::at(STATE, BEHIND));
        asm.place(host);
        asm.mov_imm(RAX, MEETING);
        asm.jmp(nest.leave);
    }

    /// A gang has come to a barrier: it is counted if it has all its lanes, and waits where those before it do.
    pub(super) fn arrive(&mut self, resume: Label) {
        let next = self.nest.next;
        let asm = &mut self.asm;
        let same = asm.label();
        if !self.full {
            asm.kmov_to(RAX, self.k);
            asm.alu(0x3B, true, RAX, Rm::Mem(Mem::at(GANG_AT, GANG_MASK)));
            asm.jcc(Cc::Ne, next);
        }
        asm.lea(resume);
        asm.alu(0x3B, true, RAX, state(BEHIND));
        asm.jcc(Cc::E, same);
        asm.alu_imm(0x3B, true, state(ARRIVED), 0);
        asm.jcc(Cc::Ne, next);
        asm.store(8, Mem::at(STATE, BEHIND), RAX);
        asm.place(same);
        asm.alu_imm(0x03, true, state(ARRIVED), 1);
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
        asm.load(8, RAX, Mem::at(GANG_AT, GANG_RESUME));
        for (id, resume) in self.resumes.iter().enumerate().skip(1) {
            asm.alu_imm(0x3B, true, Rm::Reg(RAX), id as i32);
            asm.jcc(Cc::E, *resume);
        }
        if self.meets {
            asm.mov_imm(RCX, GANG_DONE);
            asm.alu(0x3B, true, RAX, Rm::Reg(RCX));
            asm.jcc(Cc::Ne, nest.next);
            asm.alu_imm(0x03, true, state(DONE), 1);
        }
        asm.jmp(nest.next);
    }
}
