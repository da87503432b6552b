//! Writes the binary form.

use std::collections::HashMap;

use perpetua_ir::ir::Scalar;

use crate::instruction::{Guard, Index, Instruction, Operand, Special};
use crate::opcode::Opcode;
use crate::program::{MemoryKind, Program, Routine};

/// Bytes being written.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) bytes: Vec<u8>,
    opcodes: HashMap<Opcode, u64>,
}

impl Writer {
    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes.extend(text.as_bytes());
    }

    fn scalar(&mut self, ty: Option<Scalar>) {
        let code = ty.and_then(|ty| Scalar::ALL.iter().position(|other| *other == ty));
        self.bytes.push(code.map_or(0, |code| code as u8 + 1));
    }

    pub(super) fn program(&mut self, program: &Program) {
        let mut used: Vec<Opcode> = program
            .routines
            .iter()
            .flat_map(|r| r.code.iter().map(|i| i.opcode))
            .collect();
        used.sort();
        used.dedup();
        self.number(used.len() as u64);
        for (i, opcode) in used.into_iter().enumerate() {
            self.text(&opcode.row().name);
            self.opcodes.insert(opcode, i as u64);
        }
        self.text(&program.name);
        self.text(&program.source);
        self.number(program.block.is_some().into());
        for extent in program.block.into_iter().flatten() {
            self.number(extent.into());
        }
        self.number(program.memories.len() as u64);
        for memory in &program.memories {
            self.text(&memory.name);
            self.scalar(Some(memory.element));
            match &memory.kind {
                MemoryKind::Buffer { writable, handle } => {
                    self.number(u64::from(*writable) + 2 * u64::from(handle.is_some()));
                    if let Some(handle) = handle {
                        self.number(*handle);
                    }
                }
                MemoryKind::Shared { len } => {
                    self.number(4);
                    self.number((*len).into());
                }
                MemoryKind::Constants(data) => {
                    self.number(5);
                    self.number(data.len() as u64);
                    data.iter().for_each(|bits| self.number(*bits));
                }
                MemoryKind::Pool { handle } => {
                    self.number(6 + u64::from(handle.is_some()));
                    if let Some(handle) = handle {
                        self.number(*handle);
                    }
                }
            }
        }
        self.number(program.parameters.len() as u64);
        for parameter in &program.parameters {
            self.text(&parameter.name);
            self.scalar(Some(parameter.ty));
        }
        self.number(program.routines.len() as u64);
        for routine in &program.routines {
            self.routine(routine);
        }
    }

    fn routine(&mut self, routine: &Routine) {
        self.text(&routine.name);
        self.number(routine.labels.len() as u64);
        for label in &routine.labels {
            self.text(&label.name);
            self.number(label.at.into());
        }
        self.number(routine.code.len() as u64);
        for instruction in &routine.code {
            self.instruction(instruction);
        }
        self.number(routine.lines.len() as u64);
        for line in &routine.lines {
            self.number((*line).into());
        }
    }

    fn instruction(&mut self, instruction: &Instruction) {
        let guard = match instruction.guard {
            None => 0,
            Some(Guard { predicate, negated }) => 1 + u64::from(negated) + 2 * u64::from(predicate),
        };
        self.number(guard);
        self.number(self.opcodes.get(&instruction.opcode).copied().unwrap_or_default());
        self.scalar(instruction.ty);
        self.scalar(instruction.from);
        self.number(instruction.operands.len() as u64);
        for operand in &instruction.operands {
            self.operand(operand);
        }
    }

    fn operand(&mut self, operand: &Operand) {
        let special = |special| {
            Special::all()
                .position(|other| other == special)
                .unwrap_or_default() as u64
        };
        let (code, value) = match *operand {
            Operand::Register(r) => (0, r.into()),
            Operand::Predicate(p) => (1, p.into()),
            Operand::Immediate(bits) => (2, bits),
            Operand::Special(which) => (3, special(which)),
            Operand::Parameter(i) => (4, i.into()),
            Operand::Length(memory) => (5, memory.into()),
            Operand::Place(place) => (6, place.memory.into()),
            Operand::Label(label) => (7, label.into()),
            Operand::Routine(routine) => (8, routine.into()),
            Operand::Count(count) => (9, count.into()),
            Operand::Pool(memory) => (10, memory.into()),
        };
        self.bytes.push(code);
        self.number(value);
        let Operand::Place(place) = *operand else { return };
        for part in [place.first, place.second] {
            let (code, value) = match part {
                None => (0, None),
                Some(Index::Register(r)) => (1, Some(r.into())),
                Some(Index::Special(which)) => (2, Some(special(which))),
                Some(Index::Parameter(i)) => (3, Some(i.into())),
            };
            self.bytes.push(code);
            if let Some(value) = value {
                self.number(value);
            }
        }
        // The sign in the lowest bit.
        self.number((place.offset << 1 ^ place.offset >> 63) as u64);
    }
}
