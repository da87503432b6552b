//! Runs one block, or one subgroup of it, or several blocks side by side: all lanes execute each operation together, under masks.
//! Here: the lanes' state and the loop over operations. Knows nothing of launches beyond their shape, and of races only where to ask.
//!
//! What lanes share is computed once, and what grows evenly along them (`affine`) not at all: such values are followed while a
//! kernel runs, so it needs no analysis, and a variable is shared for as long as its lanes go together.

mod affine;
mod atomic;
mod begin;
mod control;
mod device;
mod locate;
mod matrix;
mod message;
mod private;
mod register;
mod stages;
mod subgroup;
pub(super) mod team;
mod transfer;

use std::sync::Arc;

#[cfg(machine_code)]
pub(super) use atomic::perform_access;
#[cfg(machine_code)]
pub(super) use matrix::Lanes;
#[cfg(machine_code)]
pub(super) use subgroup::exchange;

use super::error::InterpError;
use super::launch::{Launch, Shape};
use super::mask;
use super::program::{Code, Pc, Program, Reg};
use super::race::Detector;
use crate::eval::{self, Level, Line, WORD, division_fault};
use affine::{Form, Sides, extended};
use locate::Located;
use perpetua_ir::fault::{Fault, record};
use perpetua_ir::ir::{Checks, FaultKind, Scalar};
use perpetua_ir::ops::{BinaryOp, TernaryOp};
use register::Register;
use team::Team;

/// Whether a block has run to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// All its lanes are done.
    Done,
    /// It has used its turn up and can go on.
    Paused,
    /// It has left the rest of its turn to others, and can go on.
    Napped,
}

/// A region as this block sees it.
#[derive(Clone, Copy)]
pub(super) struct View {
    pub(super) ptr: *mut u8,
    /// Elements of an indexable run.
    pub(super) elements: u64,
}

/// Which lanes a machine runs: of a block, or of several blocks side by side.
pub(super) struct Part {
    /// The first lane's index.
    pub(super) first: usize,
    /// How many.
    pub(super) lanes: usize,
    /// Blocks along x that run as one.
    pub(super) blocks: u32,
    /// What it shares with the machines of the others.
    pub(super) team: Option<Arc<Team>>,
}

impl Part {
    /// All of so many blocks.
    pub(super) fn whole(launch: &Launch<'_>, blocks: u32) -> Part {
        Part {
            first: 0,
            lanes: launch.shape.lanes() * blocks as usize,
            blocks,
            team: None,
        }
    }
}

/// One block, or a part of it.
pub(super) struct Machine {
    pub(super) part: Part,
    /// The barrier where it waits for its team.
    waits: Option<u64>,
    level: Level,
    regs: Vec<Register>,
    /// How the lanes lie: as those of the block, or all along x where they are part of a block and no box.
    sides: Sides,
    /// Words that registers have.
    words: usize,
    /// All lanes of the machine.
    all: Vec<u64>,
    /// Lanes that execute the current operation.
    active: Vec<u64>,
    /// Whether they are all lanes.
    whole: bool,
    /// Lanes that have faulted.
    dead: Vec<u64>,
    /// All masks of the program, one after another.
    masks: Vec<u64>,
    /// Where functions return to.
    calls: Vec<Pc>,
    pc: Pc,
    /// Index of the block, or of the first one.
    block: [u32; 3],
    /// Its number in the grid.
    number: u64,
    views: Vec<View>,
    shared: Vec<Line>,
    /// Keeps the copies that views of constant tables point to.
    _constants: Vec<Line>,
    located: Located,
    /// The first lanes of rows.
    row_heads: Vec<u64>,
    /// The first fault of the lowest block that has one, with its number.
    pub(super) fault: Option<(u64, Box<Fault>)>,
    /// For each lane, the number of the fault statement that it has met, plus one; empty while no lane has met any.
    caught: Vec<u32>,
    /// A lane has asked for its group's turn to end.
    naps: bool,
    shape: Shape,
}

/// What an operation does with the order of operations.
enum Next {
    /// On with the next one.
    On,
    /// To another one.
    To(Pc),
    /// Lanes may have gone: on with the next one if any is left.
    Check,
    /// Back to the start of a loop.
    Back(Pc),
    /// On with the next one when the team has met at this barrier.
    Wait(u64),
    /// The same again, when others have had their turn.
    Again,
    Done,
}

/// Operations between two looks at the budget.
const CHARGE: u64 = 1024;

/// How much of a turn an atomic access takes, in operations: whoever loops over atomics is likely to wait for others.
const ATOMIC_TURN: u64 = 64;

/// The same in kernels that stay, which wait for most of their lives.
const WAITING_TURN: u64 = 4096;

impl Machine {
    /// Number of the block in the grid.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Memory that it takes, about.
    pub(super) fn bytes(&self) -> usize {
        let lines =
            self.regs.iter().map(Register::room).sum::<usize>() + self.shared.len() + self._constants.len();
        lines * size_of::<Line>() + self.masks.len() * size_of::<u64>()
    }

    /// Runs until all lanes are done, or a loop starts again after `turn` operations.
    pub(super) fn run(
        &mut self,
        launch: &Launch<'_>,
        mut races: Option<&mut Detector>,
        turn: u64,
    ) -> Result<Turn, InterpError> {
        let program = launch.program;
        let (mut taken, mut charged, mut waited) = (0u64, 0u64, 0u64);
        if let (Some(barrier), Some(team)) = (self.waits, &self.part.team) {
            if !team.has_met(barrier) {
                return Ok(Turn::Napped);
            }
            self.waits = None;
            self.pc += 1;
        }
        while let Some(code) = program.code.get(self.pc as usize) {
            taken += 1;
            waited += u64::from(matches!(code, Code::Atomic { .. } | Code::LoadWords { .. }));
            match self
                .execute(launch, code, races.as_deref_mut())
                .map_err(|error| *error)?
            {
                Next::On => self.pc += 1,
                Next::To(pc) => self.pc = pc,
                Next::Check if mask::none(&self.active) => self.pc = program.skips[self.pc as usize],
                Next::Check => self.pc += 1,
                Next::Back(start) => {
                    self.pc = start;
                    if std::mem::take(&mut self.naps) {
                        launch.charge(taken - charged)?;
                        return Ok(Turn::Napped);
                    }
                    // Whatever runs for long comes here again and again.
                    if program.stays && waited * WAITING_TURN >= turn {
                        launch.charge(taken - charged)?;
                        return Ok(Turn::Paused);
                    }
                    if taken - charged >= CHARGE {
                        launch.charge(taken - charged)?;
                        charged = taken;
                        if taken + waited * ATOMIC_TURN >= turn {
                            return Ok(Turn::Paused);
                        }
                    }
                }
                Next::Wait(barrier) => {
                    self.waits = Some(barrier);
                    launch.charge(taken - charged)?;
                    return Ok(Turn::Napped);
                }
                Next::Again => {
                    launch.charge(taken - charged)?;
                    return Ok(Turn::Napped);
                }
                Next::Done => break,
            }
        }
        launch.charge(taken - charged)?;
        Ok(Turn::Done)
    }

    fn execute(
        &mut self,
        launch: &Launch<'_>,
        code: &Code,
        races: Option<&mut Detector>,
    ) -> Result<Next, Box<InterpError>> {
        let program = launch.program;
        match code {
            Code::Unary { op, s, a, out } => match affine::unary(*op, *s, self.form(*a), self.sides) {
                Some(form) => self.set(*out, form),
                None => {
                    self.operate([*a], *out, |m, level, [a], out| {
                        eval::unary(level, *op, *s, m, a, out)
                    });
                }
            },
            Code::Binary { op, s, a, b, out } => self.binary(*op, *s, *a, *b, *out),
            Code::Divide {
                op,
                s,
                a,
                b,
                out,
                site,
            } => {
                let killed = self.divisions(program, *op, *s, [*a, *b], *site);
                self.binary(*op, *s, *a, *b, *out);
                if killed {
                    return Ok(Next::Check);
                }
            }
            Code::Ternary { op, s, a, b, c, out } => {
                let forms = [*a, *b, *c].map(|reg| self.form(reg));
                match (forms, affine::ternary(*op, *s, forms[0], forms[1], forms[2])) {
                    (_, Some(form)) => self.set(*out, form),
                    ([Form::Uniform(condition), ..], None) if *op == TernaryOp::Select => {
                        self.copy(s.size(), if condition == 0 { *c } else { *b }, *out);
                    }
                    _ => {
                        self.operate([*a, *b, *c], *out, |m, level, [a, b, c], out| {
                            eval::ternary(level, *op, *s, m, (a, b, c), out);
                        });
                    }
                }
            }
            Code::Cast { from, to, a, out } => match affine::cast(*from, *to, self.form(*a), self.sides) {
                Some(form) => self.set(*out, form),
                None => {
                    self.operate([*a], *out, |m, level, [a], out| {
                        eval::cast(level, *from, *to, m, a, out)
                    });
                }
            },
            Code::Copy { size, from, to } => self.copy(*size, *from, *to),
            Code::Assign { size, from, to, last } => self.assign(*size, *from, *to, *last),
            Code::Load { access } => return self.load(launch, *access, races),
            Code::Store { access } => return self.store(launch, *access, races),
            Code::Atomic {
                access,
                s,
                act,
                sync,
                out,
            } => return self.atomic(launch, *access, *s, act, *sync, *out, races),
            Code::LoadWords { access, sync } => return self.words(launch, *access, *sync, false, races),
            Code::StoreWords { access, sync } => return self.words(launch, *access, *sync, true, races),
            Code::PrivateLoad { place } => return Ok(self.private_load(program, *place)),
            Code::PrivateStore { place } => return Ok(self.private_store(program, *place)),
            Code::Device { op, s, args, out } => {
                return self.device(launch, *op, *s, args, out, races);
            }
            Code::Print { site, args } => self.print(launch, *site, args),
            Code::Fault {
                site,
                number,
                operands,
            } => {
                let lanes: Vec<usize> = mask::lanes(&self.active).collect();
                let types = &program.sites[*site as usize].operands;
                for lane in lanes {
                    let mut values = [0; record::OPERANDS];
                    for ((value, reg), s) in values.iter_mut().zip(operands).zip(types) {
                        *value = extended(*s, self.value(*reg, lane));
                    }
                    if !mask::has(&self.dead, lane) {
                        self.caught.resize(self.part.lanes, 0);
                        if let Some(caught) = self.caught.get_mut(lane) {
                            *caught = number + 1;
                        }
                    }
                    self.raise(program, *site, lane, values);
                    // Explicit code says itself what a dead lane does next.
                    if program.checks == Checks::Explicit {
                        mask::insert(&mut self.active, lane);
                    }
                }
                self.whole = self.active == self.all;
                return Ok(Next::Check);
            }
            Code::End => return Ok(Next::Done),
            code => return Ok(self.control(code)),
        }
        Ok(Next::On)
    }

    /// Indices of the active lanes in the block.
    fn numbers(&self) -> impl Iterator<Item = u32> {
        mask::lanes(&self.active).map(|lane| (self.part.first + lane) as u32)
    }

    fn form(&self, reg: Reg) -> Form {
        self.regs[reg as usize].form()
    }

    fn set(&mut self, reg: Reg, form: Form) {
        self.regs[reg as usize].set(form);
    }

    /// A lane's bits of a register.
    fn value(&self, reg: Reg, lane: usize) -> u64 {
        self.regs[reg as usize].value(lane, self.sides)
    }

    /// Calls `f` with the active lanes, operands, and room for the result of each lane.
    #[inline(always)]
    fn operate<const N: usize>(
        &mut self,
        operands: [Reg; N],
        out: Reg,
        f: impl FnOnce(&[u64], Level, [&[Line]; N], &mut [Line]),
    ) {
        let (active, level) = (&self.active, self.level);
        let regs = &mut self.regs;
        register::operate(regs, operands, out, (self.sides, self.words), |operands, out| {
            f(active, level, operands, out);
        });
    }

    /// A register's storage, to be changed while others are read; [`Machine::put`] puts it back.
    fn take(&mut self, reg: Reg) -> Vec<Line> {
        self.regs[reg as usize].take(self.words)
    }

    fn put(&mut self, reg: Reg, storage: Vec<Line>) {
        self.regs[reg as usize].put(storage, self.words);
    }

    fn binary(&mut self, op: BinaryOp, s: Scalar, a: Reg, b: Reg, out: Reg) {
        let (x, y) = (&self.regs[a as usize], &self.regs[b as usize]);
        if !x.is_lanes()
            && !y.is_lanes()
            && let Some(form) = affine::binary(op, s, x.form(), y.form(), self.sides)
        {
            return self.set(out, form);
        }
        self.operate([a, b], out, |m, level, [a, b], out| {
            eval::binary(level, op, s, m, a, b, out)
        });
    }

    /// Copies to a register that no inactive lane needs.
    fn copy(&mut self, size: u32, from: Reg, to: Reg) {
        match self.form(from) {
            Form::Lanes => {
                self.operate([from], to, |m, _, [from], to| eval::copy(size, m, from, to));
            }
            form => self.set(to, form),
        }
    }

    /// Copies in the active lanes alone.
    fn assign(&mut self, size: u32, from: Reg, to: Reg, last: bool) {
        if self.whole {
            if last {
                self.regs.swap(from as usize, to as usize);
            } else {
                self.copy(size, from, to);
            }
            return;
        }
        let form = self.form(from);
        if form != Form::Lanes && form == self.form(to) {
            return;
        }
        self.regs[to as usize].lanes_mut(self.sides, self.words);
        self.operate([from], to, |m, level, [from], to| {
            eval::assign(level, size, m, from, to)
        });
    }

    /// Looks at the active lanes' divisions for faults; whether there was one.
    fn divisions(&mut self, program: &Program, op: BinaryOp, s: Scalar, ab: [Reg; 2], site: u32) -> bool {
        let [a, b] = ab.map(|reg| self.form(reg));
        let suspect = match (a, b) {
            (Form::Uniform(a), Form::Uniform(b)) => division_fault(op, s, a, b).is_some(),
            // The least integer stands for all dividends.
            (_, Form::Uniform(b)) if division_fault(op, s, 1 << (s.bits() - 1), b).is_none() => false,
            _ => {
                for reg in ab {
                    self.regs[reg as usize].prepare(self.sides, self.words);
                }
                let [a, b] = ab.map(|reg| self.regs[reg as usize].operand());
                eval::division_suspect(self.level, s, &self.active, a, b)
            }
        };
        if !suspect {
            return false;
        }
        let mut killed = false;
        for w in 0..self.active.len() {
            for i in mask::bits(self.active[w]) {
                let lane = w * WORD + i;
                let [a, b] = ab.map(|reg| self.value(reg, lane));
                if let Some(kind) = division_fault(op, s, a, b) {
                    let (site, second) = match kind {
                        FaultKind::DivisionByZero => (site, 0),
                        _ => (site + 1, extended(s, b)),
                    };
                    self.raise(program, site, lane, [extended(s, a), second, 0, 0]);
                    killed = true;
                }
            }
        }
        killed
    }

    /// A lane faults: it is reported if it is the first, and executes nothing more. A lane that is dead already
    /// reports nothing.
    fn raise(&mut self, program: &Program, site: u32, lane: usize, operands: [u64; record::OPERANDS]) {
        mask::remove(&mut self.active, lane);
        self.whole = false;
        if mask::has(&self.dead, lane) {
            return;
        }
        mask::insert(&mut self.dead, lane);
        let (after, thread) = self.place(lane);
        let number = self.number + u64::from(after);
        if self.fault.as_ref().is_none_or(|(first, _)| number < *first)
            && let Some(site) = program.sites.get(site as usize)
        {
            let [x, y, z] = self.block;
            let fault = Fault {
                kernel: program.name.clone(),
                source: program.source.clone(),
                site: site.clone(),
                block: [x + after, y, z],
                thread,
                operands,
            };
            self.fault = Some((number, Box::new(fault)));
        }
    }

    /// How many blocks after the first one a lane is, and its index in its block.
    fn place(&self, lane: usize) -> (u32, [u32; 3]) {
        if self.part.blocks == 1 {
            return (0, self.shape.thread(self.part.first + lane));
        }
        let [width, height, _] = self.shape.block;
        let (row, x) = (lane as u32 / self.sides[0], lane as u32 % self.sides[0]);
        (x / width, [x % width, row % height, row / height])
    }
}
