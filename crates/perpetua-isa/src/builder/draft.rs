//! Code whose registers have no limit and no places yet; `allocate` gives them places. Knows no types of Rust.

use std::collections::{BTreeSet, HashMap};

use perpetua_ir::ir::Scalar;

use super::allocate::{Crowded, Places, allocate};
use crate::instruction::{Guard, Index, Instruction, Operand, PREDICATES, Place};
use crate::opcode::{Meaning, Opcode, Slot, Ty};
use crate::program::{Label, Routine};

/// An operand, whose registers are numbers of the draft.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arg {
    /// A register, or a predicate where its type is `bool`.
    Register(u32),
    /// A label.
    Label(u32),
    /// An element of a memory.
    Place {
        memory: u16,
        first: Option<Part>,
        second: Option<Part>,
        offset: i64,
    },
    /// What is no register and names none.
    Other(Operand),
}

/// A varying part of an index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Part {
    Register(u32),
    Other(Index),
}

/// One instruction.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) opcode: Opcode,
    pub(crate) ty: Option<Scalar>,
    pub(crate) from: Option<Scalar>,
    /// The register of the guard, and whether it acts where that is false.
    pub(crate) guard: Option<(u32, bool)>,
    pub(crate) args: Vec<Arg>,
    /// The line in the source.
    pub(crate) line: u32,
}

impl Line {
    /// Calls `visit` with each register, and whether it is written.
    pub(super) fn registers(&self, mut visit: impl FnMut(u32, bool)) {
        if let Some((register, _)) = self.guard {
            visit(register, false);
        }
        let row = self.opcode.row();
        let mut written = None;
        for (slot, arg) in row.operands.iter().zip(&self.args) {
            match (slot, *arg) {
                (Slot::Write(_), Arg::Register(register)) => {
                    // Where it does not act, or counts, what was there is needed.
                    if self.guard.is_some() || row.meaning == Meaning::Loop {
                        visit(register, false);
                    }
                    written = Some(register);
                }
                (_, Arg::Register(register)) => visit(register, false),
                (_, Arg::Place { first, second, .. }) => {
                    for part in [first, second].into_iter().flatten() {
                        if let Part::Register(register) = part {
                            visit(register, false);
                        }
                    }
                }
                _ => {}
            }
        }
        if let Some(register) = written {
            visit(register, true);
        }
    }

    pub(super) fn target(&self) -> Option<u32> {
        self.args.iter().find_map(|arg| match arg {
            Arg::Label(label) => Some(*label),
            _ => None,
        })
    }

    /// Whether the next line may follow.
    pub(super) fn falls_through(&self) -> bool {
        let ends = matches!(
            self.opcode.meaning(),
            Meaning::Branch | Meaning::Exit | Meaning::Return
        );
        !ends || self.guard.is_some()
    }
}

/// A routine that is being written.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// The type of each register; predicates are of `bool`.
    pub(crate) registers: Vec<Scalar>,
    /// Registers that have their places from the start, for they stand in a row.
    pub(super) fixed: HashMap<u32, u8>,
    pub(crate) lines: Vec<Line>,
    /// Where each label stands; `None` for nowhere yet.
    pub(crate) labels: Vec<Option<u32>>,
}

impl Draft {
    /// A new register.
    pub(crate) fn register(&mut self, ty: Scalar) -> u32 {
        self.registers.push(ty);
        self.registers.len() as u32 - 1
    }

    /// A new label that stands nowhere yet.
    pub(crate) fn label(&mut self) -> u32 {
        self.labels.push(None);
        self.labels.len() as u32 - 1
    }

    /// Puts a label here; whether it stood nowhere before.
    pub(crate) fn put(&mut self, label: u32) -> bool {
        let here = self.lines.len() as u32;
        match self.labels.get_mut(label as usize) {
            Some(at @ None) => {
                *at = Some(here);
                true
            }
            _ => false,
        }
    }

    /// The routine, each register in its place.
    ///
    /// # Errors
    /// If more registers hold values at once than a lane has.
    pub(crate) fn finish(&self) -> Result<Routine, Crowded> {
        let places = allocate(self)?;
        // In the order of the code, as the text form has them; without those that nothing leads to.
        let targets: BTreeSet<u32> = self.lines.iter().filter_map(Line::target).collect();
        let at = |label: u32| self.labels.get(label as usize).copied().flatten();
        let mut used: Vec<(u32, u32)> = targets
            .into_iter()
            .filter_map(|label| Some((at(label)?, label)))
            .collect();
        used.sort_unstable();
        let name = |(number, (at, _)): (usize, &(u32, u32))| Label {
            name: format!("l{number}"),
            at: *at,
        };
        let labels: Vec<Label> = used.iter().enumerate().map(name).collect();
        let numbers: HashMap<u32, u32> = used.iter().map(|(_, label)| *label).zip(0..).collect();
        let instruction = |line: &Line| self.instruction(line, &places, &numbers);
        Ok(Routine {
            name: String::new(),
            code: self.lines.iter().map(instruction).collect(),
            labels,
            lines: self.lines.iter().map(|line| line.line).collect(),
        })
    }

    fn instruction(&self, line: &Line, places: &Places, labels: &HashMap<u32, u32>) -> Instruction {
        let part = |part: Part| match part {
            Part::Register(register) => Index::Register(places.of(register)),
            Part::Other(index) => index,
        };
        let operand = |arg: &Arg| match *arg {
            Arg::Register(register) if self.is_predicate(register) => Operand::Predicate(places.of(register)),
            Arg::Register(register) => Operand::Register(places.of(register)),
            // The verifier refuses labels that stand nowhere.
            Arg::Label(label) => Operand::Label(labels.get(&label).copied().unwrap_or(u32::MAX)),
            Arg::Place {
                memory,
                first,
                second,
                offset,
            } => Operand::Place(Place {
                memory,
                first: first.map(part),
                second: second.map(part),
                offset,
            }),
            Arg::Other(operand) => operand,
        };
        Instruction {
            guard: line.guard.map(|(register, negated)| Guard {
                predicate: places.of(register) % PREDICATES as u8,
                negated,
            }),
            opcode: line.opcode,
            ty: line.ty,
            from: line.from,
            operands: line.args.iter().map(operand).collect(),
        }
    }

    pub(super) fn is_predicate(&self, register: u32) -> bool {
        self.registers.get(register as usize) == Some(&Scalar::Bool)
    }
}

/// What an opcode writes, at a type.
pub(crate) fn result(opcode: Opcode, ty: Scalar) -> Option<Scalar> {
    let mut slots = opcode.row().operands.iter();
    slots.find_map(|slot| match slot {
        Slot::Write(Ty::Own) => Some(ty),
        Slot::Write(written) => written.of(Some(ty), None),
        _ => None,
    })
}
