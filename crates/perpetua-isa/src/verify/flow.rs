//! Blocks of steps, and what each register holds where a block begins.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use perpetua_ir::ir::Scalar;

use super::accesses::{Access, accesses};
use super::expand::{Action, Step, size};
use super::state::{Halves, Holds, REGISTER_SLOTS, State, Write, slot};
use super::{Where, Wrong};
use crate::cost::cost;
use crate::fault::Fault;
use crate::instruction::{Guard, Index, Instruction, Operand, PRESET};
use crate::program::Program;

/// A program as blocks.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Blocks; lanes begin at the first. All of them can be reached.
    pub(crate) blocks: Vec<Block>,
    /// Where each instruction of the blocks comes from.
    pub(crate) origins: Vec<Vec<Where>>,
}

/// Instructions without branches, and how they end.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) code: Vec<Instruction>,
    /// Types in the slots where the block begins.
    pub(crate) holds: Vec<Holds>,
    pub(crate) exit: Exit,
    /// Where the exit comes from.
    pub(crate) exit_at: Where,
    /// What is asked at the end although both ways go to one place.
    pub(crate) asks: Option<Guard>,
}

/// Where a block's lanes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    To(Goal),
    /// By a predicate: where it acts, where not.
    If(Guard, Goal, Goal),
    /// By a count that is taken down: where there was one, where not.
    Count(u8, Goal, Goal),
}

/// A block, or the end of the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    Block(usize),
    End,
}

impl Flow {
    /// Where a block comes from.
    pub(crate) fn block_at(&self, number: usize) -> Option<Where> {
        let first = self.origins.get(number).and_then(|origins| origins.first());
        first.copied().or_else(|| Some(self.blocks.get(number)?.exit_at))
    }

    /// The instruction with which there are more than so many with calls, tiles and runs of registers written out; the last one if there
    /// are not.
    pub(crate) fn instruction(&self, most: usize) -> Option<Where> {
        let code = self.blocks.iter().map(|block| &block.code).zip(&self.origins);
        let code = code.flat_map(|(code, origins)| code.iter().zip(origins));
        let mut sum = 0u64;
        let mut last = None;
        for (instruction, at) in code {
            sum = sum.saturating_add(size(instruction));
            last = Some(*at);
            if sum > most as u64 {
                break;
            }
        }
        last
    }
}

impl Block {
    /// What going through it weighs in a budget.
    pub(crate) fn cost(&self) -> u64 {
        self.code.iter().map(cost).fold(1, u64::saturating_add)
    }
}

impl Exit {
    pub(crate) fn goals(self) -> impl Iterator<Item = Goal> {
        let (a, b) = match self {
            Exit::To(goal) => (goal, None),
            Exit::If(_, a, b) | Exit::Count(_, a, b) => (a, Some(b)),
        };
        [Some(a), b].into_iter().flatten()
    }

    pub(crate) fn blocks(self) -> impl Iterator<Item = usize> {
        self.goals().filter_map(|goal| match goal {
            Goal::Block(block) => Some(block),
            Goal::End => None,
        })
    }
}

pub(super) fn flow(program: &Program, steps: &[Step<'_>]) -> Result<Flow, Wrong> {
    let mut flow = cut(steps);
    let mut start = vec![Holds::Nothing; REGISTER_SLOTS];
    for (register, ty, _) in PRESET {
        if let Some(slot) = start.get_mut(usize::from(register)) {
            *slot = Holds::Value(ty);
        }
    }
    let entries = entries(&flow, &start);
    keep_reached(&mut flow, entries);
    for (block, origins) in flow.blocks.iter().zip(&flow.origins) {
        check(program, block, origins)?;
    }
    Ok(flow)
}

// What each block's slots hold where it begins, of the blocks that can be reached. Slot by slot: what a slot holds changes twice at most on the
// way down from a value, so each block is looked at a few times for each slot that the program writes.
fn entries(flow: &Flow, start: &[Holds]) -> Vec<Option<Vec<Holds>>> {
    let mut entries: Vec<Option<Vec<Holds>>> = vec![None; flow.blocks.len()];
    let mut work = vec![0];
    while let Some(block) = work.pop() {
        if let (Some(entry @ None), Some(block)) = (entries.get_mut(block), flow.blocks.get(block)) {
            *entry = Some(start.to_vec());
            work.extend(block.exit.blocks());
        }
    }
    for (slot, writes) in writes(flow) {
        let mut found: Vec<Option<Holds>> = vec![None; flow.blocks.len()];
        if let (Some(found), Some(holds)) = (found.first_mut(), start.get(slot)) {
            *found = Some(*holds);
            work.push(0);
        }
        while let Some(at) = work.pop() {
            let (Some(Some(holds)), Some(block)) = (found.get(at), flow.blocks.get(at)) else {
                continue;
            };
            let own = writes.get(&at).into_iter().flatten();
            let after = own.fold(*holds, |holds, write| holds.after(*write));
            for next in block.exit.blocks() {
                let Some(known) = found.get_mut(next) else {
                    continue;
                };
                let both = known.map_or(after, |known| known.or(after));
                if *known != Some(both) {
                    *known = Some(both);
                    work.push(next);
                }
            }
        }
        for (entry, found) in entries.iter_mut().zip(found) {
            if let (Some(entry), Some(found)) = (entry, found)
                && let Some(place) = entry.get_mut(slot)
            {
                *place = found;
            }
        }
    }
    entries
}

/// Writes to a slot, by block and in order.
type Writes = HashMap<usize, Vec<Write>>;

fn writes(flow: &Flow) -> BTreeMap<usize, Writes> {
    let mut all: BTreeMap<usize, Writes> = BTreeMap::new();
    for (number, block) in flow.blocks.iter().enumerate() {
        let mut halves = Halves::default();
        for write in block
            .code
            .iter()
            .flat_map(|instruction| halves.writes(instruction))
        {
            let writes = all.entry(write.slot).or_default();
            writes.entry(number).or_default().push(write);
        }
    }
    all
}

/// The type that a part of an index has by itself.
pub(crate) fn index_type(program: &Program, part: Index, state: &[Holds]) -> Option<Scalar> {
    match part {
        Index::Register(r) => match state.get(usize::from(r)) {
            Some(Holds::Value(ty)) => Some(*ty),
            _ => None,
        },
        Index::Parameter(i) => {
            let parameter = program.parameters.get(usize::from(i));
            parameter.map(|parameter| parameter.ty)
        }
        // Of either width.
        Index::Special(_) => None,
    }
}

fn cut(steps: &[Step<'_>]) -> Flow {
    let mut leaders = BTreeSet::from([0]);
    for (i, step) in steps.iter().enumerate() {
        match step.action {
            Action::Do(_) => continue,
            Action::Branch(_, to) | Action::Loop(_, to) => leaders.insert(to),
            Action::Exit(_) => false,
        };
        leaders.insert(i + 1);
    }
    leaders.retain(|at| *at < steps.len());
    let leaders: Vec<usize> = leaders.into_iter().collect();
    // A goal that does nothing but end or go on is passed by.
    let goal = |mut at: usize| {
        for _ in 0..64 {
            match steps.get(at).map(|step| &step.action) {
                None | Some(Action::Exit(None)) => return Goal::End,
                Some(Action::Branch(None, to)) => at = *to,
                Some(_) => break,
            }
        }
        leaders.binary_search(&at).map_or(Goal::End, Goal::Block)
    };
    let mut flow = Flow {
        blocks: Vec::new(),
        origins: Vec::new(),
    };
    for (number, start) in leaders.iter().enumerate() {
        let end = leaders.get(number + 1).copied().unwrap_or(steps.len());
        let mut code = Vec::new();
        let mut origins = Vec::new();
        let mut exit = Exit::To(goal(end));
        let mut exit_at = Where::default();
        for step in steps.get(*start..end).unwrap_or_default() {
            exit_at = step.at;
            match &step.action {
                Action::Do(instruction) => {
                    code.push((*instruction).clone());
                    origins.push(step.at);
                }
                Action::Branch(None, to) => exit = Exit::To(goal(*to)),
                Action::Branch(Some(guard), to) => exit = Exit::If(*guard, goal(*to), goal(end)),
                Action::Exit(None) => exit = Exit::To(Goal::End),
                Action::Exit(Some(guard)) => exit = Exit::If(*guard, Goal::End, goal(end)),
                Action::Loop(count, to) => exit = Exit::Count(*count, goal(*to), goal(end)),
            }
        }
        let mut asks = None;
        if let Exit::If(guard, a, b) = exit
            && a == b
        {
            exit = Exit::To(a);
            asks = Some(guard);
        }
        flow.blocks.push(Block {
            code,
            holds: Vec::new(),
            exit,
            exit_at,
            asks,
        });
        flow.origins.push(origins);
    }
    flow
}

// Drops what no lane reaches.
fn keep_reached(flow: &mut Flow, entries: Vec<Option<Vec<Holds>>>) {
    let mut numbers = Vec::with_capacity(entries.len());
    let mut reached = 0;
    for entry in &entries {
        numbers.push(reached);
        reached += usize::from(entry.is_some());
    }
    let renumbered = |goal: Goal| match goal {
        Goal::Block(block) => numbers
            .get(block)
            .map_or(Goal::End, |number| Goal::Block(*number)),
        Goal::End => Goal::End,
    };
    let blocks = std::mem::take(&mut flow.blocks);
    let origins = std::mem::take(&mut flow.origins);
    for ((block, origin), entry) in blocks.into_iter().zip(origins).zip(entries) {
        let Some(holds) = entry else { continue };
        let exit = match block.exit {
            Exit::To(a) => Exit::To(renumbered(a)),
            Exit::If(guard, a, b) => Exit::If(guard, renumbered(a), renumbered(b)),
            Exit::Count(count, a, b) => Exit::Count(count, renumbered(a), renumbered(b)),
        };
        flow.blocks.push(Block { holds, exit, ..block });
        flow.origins.push(origin);
    }
}

// That each read finds what it needs.
fn check(program: &Program, block: &Block, origins: &[Where]) -> Result<(), Wrong> {
    let mut state = State::new(&block.holds);
    for (instruction, at) in block.code.iter().zip(origins) {
        for access in accesses(instruction) {
            let found = match access {
                Access::Read(register, ty) => reads_as(state.holds(), register, Some(ty)),
                Access::Index(register) => reads_as(state.holds(), register, None),
                Access::Write(..) => continue,
            };
            found.map_err(|fault| Wrong::at(*at, fault))?;
        }
        indices(program, instruction, state.holds()).map_err(|fault| Wrong::at(*at, fault))?;
        state.pass(instruction);
    }
    let read = match (block.exit, block.asks) {
        (Exit::To(_), None) => return Ok(()),
        (Exit::If(guard, ..), _) | (Exit::To(_), Some(guard)) => {
            reads_as(state.holds(), guard.predicate, Some(Scalar::Bool))
        }
        (Exit::Count(count, ..), _) => reads_as(state.holds(), count, Some(Scalar::U32)),
    };
    read.map(|_| ()).map_err(|fault| Wrong::at(block.exit_at, fault))
}

// The type that a register is read at; `None` asks for an integer.
fn reads_as(state: &[Holds], register: u8, ty: Option<Scalar>) -> Result<Scalar, Fault> {
    let at = slot(register, ty.unwrap_or(Scalar::U32));
    let name = || match ty {
        Some(Scalar::Bool) => format!("p{register}"),
        _ => format!("r{register}"),
    };
    match (state.get(at), ty) {
        (Some(Holds::Value(found)), Some(ty)) if *found == ty => Ok(ty),
        (Some(Holds::Value(found)), None) if found.is_int() => Ok(*found),
        (Some(Holds::Value(found)), _) => Err(Fault::Holds {
            register: name(),
            found: *found,
            expected: ty.map_or("an integer".into(), |ty| ty.to_string()),
        }),
        (Some(Holds::Mixed), _) => Err(Fault::Mixed { register: name() }),
        (Some(Holds::Nothing) | None, _) => Err(Fault::Unwritten { register: name() }),
    }
}

// Both parts of an index have one type.
fn indices(program: &Program, instruction: &Instruction, state: &[Holds]) -> Result<(), Fault> {
    let ty = |part| index_type(program, part, state);
    for (i, operand) in instruction.operands.iter().enumerate() {
        let Operand::Place(place) = operand else { continue };
        let (first, second) = (place.first.and_then(ty), place.second.and_then(ty));
        if let (Some(first), Some(second)) = (first, second)
            && first != second
        {
            let name = match place.second {
                Some(Index::Register(r)) => format!("r{r}"),
                _ => "the index's second part".into(),
            };
            return Err(Fault::Holds {
                register: name,
                found: second,
                expected: format!("{first}, as the first part of the index"),
            });
        }
        // What the launch supplies may have 32 bits.
        let width = first.or(second).map_or(32, Scalar::bits);
        if place.first.is_some() && width < 64 && place.offset.unsigned_abs() >> width != 0 {
            return Err(Fault::Operand {
                number: i + 1,
                expected: format!(
                    "an element at an offset of {width} bits, as the index has: {} is more",
                    place.offset
                ),
            });
        }
    }
    Ok(())
}
