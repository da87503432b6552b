//! Writes routines out where they are called: one run of steps, in which labels are steps' numbers.

use super::{MAX_CALL_DEPTH, MAX_INSTRUCTIONS, Where, Wrong};
use crate::fault::Fault;
use crate::instruction::{Guard, Instruction, Operand};
use crate::opcode::{Meaning, Space};
use crate::program::Program;

/// A step of the expanded program.
#[derive(Clone, Debug)]
pub(crate) struct Step<'a> {
    /// Where it comes from.
    pub(crate) at: Where,
    /// What it is.
    pub(crate) action: Action<'a>,
}

/// What a step does.
#[derive(Clone, Debug)]
pub(crate) enum Action<'a> {
    /// The instruction itself.
    Do(&'a Instruction),
    /// Goes on elsewhere: everybody, or where the guard says.
    Branch(Option<Guard>, usize),
    /// Counts a register down and goes on elsewhere.
    Loop(u8, usize),
    /// Ends the lane.
    Exit(Option<Guard>),
}

/// That no routine calls itself, whether anybody calls it or not.
pub(super) fn calls(program: &Program) -> Result<(), Wrong> {
    let mut seen = vec![false; program.routines.len()];
    for root in 0..seen.len() {
        // The routines that call one another, each with the instruction to look at next.
        let mut open = vec![(root, 0)];
        while let Some((number, next)) = open.last_mut() {
            let at = (*number, *next);
            *next += 1;
            let routine = program.routines.get(at.0);
            let instruction = routine.and_then(|routine| routine.code.get(at.1));
            let Some(instruction) = instruction.filter(|_| !seen[at.0]) else {
                seen[at.0] = true;
                open.pop();
                continue;
            };
            let (Meaning::Call, Some(Operand::Routine(called))) =
                (instruction.opcode.meaning(), instruction.operands.first())
            else {
                continue;
            };
            let called = usize::from(*called);
            let name = |number: usize| {
                let routine = program.routines.get(number);
                routine.map_or(String::new(), |routine| routine.name.clone())
            };
            match open.iter().position(|(number, _)| *number == called) {
                Some(first) => {
                    let through = open.iter().skip(first + 1).map(|(number, _)| name(*number));
                    let fault = Fault::Recursion {
                        routine: name(called),
                        through: through.collect(),
                    };
                    return Err(Wrong::at(at, fault));
                }
                None if called < seen.len() => open.push((called, 0)),
                None => {}
            }
        }
    }
    Ok(())
}

/// The steps, and how many instructions they come to. The program has no recursion.
pub(super) fn expand(program: &Program) -> Result<(Vec<Step<'_>>, usize), Wrong> {
    let mut expansion = Expansion {
        program,
        steps: Vec::new(),
        open: 0,
        size: 0,
    };
    if !program.routines.is_empty() {
        expansion.routine(0, None)?;
    }
    Ok((expansion.steps, expansion.size as usize))
}

struct Expansion<'a> {
    program: &'a Program,
    steps: Vec<Step<'a>>,
    // How many routines are being written out, within each other.
    open: usize,
    // What the steps come to in the end: one operator each, tiles and runs of registers more.
    size: u64,
}

impl<'a> Expansion<'a> {
    // What the program comes to in the end is bounded, whatever writes it out.
    fn count(&mut self, at: Where, size: u64) -> Result<(), Wrong> {
        self.size = self.size.saturating_add(size);
        if self.size <= MAX_INSTRUCTIONS as u64 {
            return Ok(());
        }
        Err(Wrong::at(
            at,
            Fault::Limit {
                what: "instructions with all calls and tiles written out",
                found: self.size,
                limit: MAX_INSTRUCTIONS as u64,
            },
        ))
    }

    fn push(&mut self, at: Where, action: Action<'a>) -> usize {
        self.steps.push(Step { at, action });
        self.steps.len() - 1
    }

    // `caller`: where the call stands.
    fn routine(&mut self, number: usize, caller: Option<Where>) -> Result<(), Wrong> {
        let program = self.program;
        let Some(routine) = program.routines.get(number) else {
            return Ok(());
        };
        // The program's own code is open, too.
        if self.open > MAX_CALL_DEPTH {
            return Err(Wrong::at(
                caller.unwrap_or_default(),
                Fault::Limit {
                    what: "calls within each other",
                    found: self.open as u64,
                    limit: MAX_CALL_DEPTH as u64,
                },
            ));
        }
        self.open += 1;
        // Each instruction's first step; the end's last of all.
        let mut starts = Vec::with_capacity(routine.code.len() + 1);
        // Steps whose goal is a label, or the routine's end.
        let mut labels: Vec<(usize, u32)> = Vec::new();
        let mut ends: Vec<usize> = Vec::new();
        for (i, instruction) in routine.code.iter().enumerate() {
            starts.push(self.steps.len());
            let at = (number, i);
            self.count(at, size(instruction))?;
            let guard = instruction.guard;
            let label = instruction.operands.iter().find_map(|operand| match operand {
                Operand::Label(label) => Some(*label),
                _ => None,
            });
            match (instruction.opcode.meaning(), label) {
                (Meaning::Branch, Some(label)) => {
                    labels.push((self.push(at, Action::Branch(guard, 0)), label));
                }
                (Meaning::Exit, _) => {
                    self.push(at, Action::Exit(guard));
                }
                (Meaning::Return, _) if caller.is_none() => {
                    self.push(at, Action::Exit(guard));
                }
                (Meaning::Return, _) => ends.push(self.push(at, Action::Branch(guard, 0))),
                (Meaning::Loop, Some(label)) => {
                    let Some(Operand::Register(count)) = instruction.operands.first() else {
                        continue;
                    };
                    let over = self.over(at, guard);
                    labels.push((self.push(at, Action::Loop(*count, 0)), label));
                    self.land(over);
                }
                (Meaning::Call, _) => {
                    let Some(Operand::Routine(called)) = instruction.operands.first() else {
                        continue;
                    };
                    let over = self.over(at, guard);
                    self.routine(usize::from(*called), Some(at))?;
                    self.land(over);
                }
                // It asks, and goes on either way.
                (Meaning::Nop, _) => {
                    let over = self.over(at, guard);
                    self.land(over);
                }
                _ => {
                    self.push(at, Action::Do(instruction));
                }
            }
        }
        starts.push(self.steps.len());
        self.open -= 1;
        for (step, label) in labels {
            let at = routine
                .labels
                .get(label as usize)
                .map_or(0, |label| label.at as usize);
            self.aim(step, starts.get(at).copied().unwrap_or(self.steps.len()));
        }
        let end = self.steps.len();
        for step in ends {
            self.aim(step, end);
        }
        Ok(())
    }

    // A branch over what is not to be done; `None` where it always is.
    fn over(&mut self, at: Where, guard: Option<Guard>) -> Option<usize> {
        let guard = guard?;
        let not = Guard {
            negated: !guard.negated,
            ..guard
        };
        Some(self.push(at, Action::Branch(Some(not), 0)))
    }

    fn land(&mut self, over: Option<usize>) {
        let here = self.steps.len();
        if let Some(over) = over {
            self.aim(over, here);
        }
    }

    fn aim(&mut self, step: usize, goal: usize) {
        let action = self.steps.get_mut(step).map(|step| &mut step.action);
        if let Some(Action::Branch(_, to) | Action::Loop(_, to)) = action {
            *to = goal;
        }
    }
}

// How many operators an instruction becomes, about.
pub(crate) fn size(instruction: &Instruction) -> u64 {
    let counts = instruction.operands.iter().filter_map(|operand| match operand {
        Operand::Count(count) => Some(u64::from(*count)),
        _ => None,
    });
    let pools = match instruction.opcode.meaning() {
        Meaning::PoolAlloc => 64,
        Meaning::PoolFree | Meaning::Load(Space::Pool) | Meaning::Store(Space::Pool) => 16,
        _ => 1,
    };
    counts.fold(pools, u64::saturating_mul)
}
