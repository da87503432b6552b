//! Code whose registers have no limit and no places yet; `finish` gives them places. Knows no types of Rust.

use std::collections::HashMap;

use perpetua_ir::ir::Scalar;

use crate::instruction::{Index, Operand};
use crate::opcode::{Meaning, Opcode, Slot, Ty};

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
    pub(crate) fn registers(&self, mut visit: impl FnMut(u32, bool)) {
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
