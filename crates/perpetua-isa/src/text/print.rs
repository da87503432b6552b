//! The disassembler.

use std::fmt::{self, Write};

use perpetua_ir::ir::{Scalar, constant};

use crate::instruction::{Guard, Index, Instruction, Operand, Place};
use crate::opcode::Slot;
use crate::program::{Label, MemoryKind, Program, Routine};

/// A type's name in the text form.
pub(crate) fn type_name(ty: Scalar) -> &'static str {
    match ty {
        Scalar::Bool => "pred",
        _ => ty.name(),
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, ".program {}", self.name)?;
        if let Some([x, y, z]) = self.block {
            writeln!(f, ".block {x}, {y}, {z}")?;
        }
        for memory in &self.memories {
            let (name, ty) = (&memory.name, type_name(memory.element));
            match &memory.kind {
                MemoryKind::Buffer { writable, handle } => {
                    let access = if *writable { "readwrite" } else { "read" };
                    write!(f, ".buffer {name}: {ty} {access}")?;
                    match handle {
                        Some(handle) => writeln!(f, " = {handle}")?,
                        None => writeln!(f)?,
                    }
                }
                MemoryKind::Shared { len } => writeln!(f, ".shared {name}: {ty}[{len}]")?,
                MemoryKind::Constants(data) => {
                    write!(f, ".const {name}: {ty} = ")?;
                    for (i, bits) in data.iter().enumerate() {
                        let comma = if i > 0 { ", " } else { "" };
                        write!(f, "{comma}{}", constant::print_constant(memory.element, *bits))?;
                    }
                    writeln!(f)?;
                }
                MemoryKind::Pool { handle: Some(handle) } => writeln!(f, ".pool {name} = {handle}")?,
                MemoryKind::Pool { handle: None } => writeln!(f, ".pool {name}")?,
            }
        }
        for parameter in &self.parameters {
            writeln!(f, ".param {}: {}", parameter.name, type_name(parameter.ty))?;
        }
        for (number, routine) in self.routines.iter().enumerate() {
            if number > 0 {
                writeln!(f, ".func {}", routine.name)?;
            }
            let mut labels: Vec<&Label> = routine.labels.iter().collect();
            labels.sort_by_key(|label| label.at);
            let mut labels = labels.into_iter().peekable();
            for i in 0..=routine.code.len() {
                while let Some(label) = labels.next_if(|label| label.at as usize <= i) {
                    writeln!(f, "{}:", label.name)?;
                }
                if let Some(instruction) = routine.code.get(i) {
                    writeln!(f, "    {}", instruction_text(self, routine, instruction))?;
                }
            }
        }
        Ok(())
    }
}

/// An instruction's text.
pub(crate) fn instruction_text(program: &Program, routine: &Routine, instruction: &Instruction) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_instruction(&mut text, program, routine, instruction);
    text
}

fn write_instruction(
    f: &mut String,
    program: &Program,
    routine: &Routine,
    instruction: &Instruction,
) -> fmt::Result {
    if let Some(Guard { predicate, negated }) = instruction.guard {
        write!(f, "@{}p{predicate} ", if negated { "!" } else { "" })?;
    }
    let row = instruction.opcode.row();
    f.write_str(&row.name)?;
    for ty in [instruction.ty, instruction.from].into_iter().flatten() {
        write!(f, ".{}", type_name(ty))?;
    }
    for (i, operand) in instruction.operands.iter().enumerate() {
        f.write_str(if i > 0 { ", " } else { " " })?;
        let ty = match row.operands.get(i) {
            Some(Slot::Read(ty)) => ty.of(instruction.ty, instruction.from),
            _ => None,
        };
        match operand {
            Operand::Register(r) => write!(f, "r{r}")?,
            Operand::Predicate(p) => write!(f, "p{p}")?,
            Operand::Immediate(bits) => {
                f.write_str(&constant::print_constant(ty.unwrap_or(Scalar::U64), *bits))?
            }
            Operand::Special(special) => write!(f, "%{}", special.name())?,
            Operand::Parameter(i) => f.write_str(parameter(program, *i))?,
            Operand::Length(memory) => write!(f, "len({})", self::memory(program, *memory))?,
            Operand::Place(place) => write_place(f, program, place)?,
            Operand::Label(label) => {
                f.write_str(
                    routine
                        .labels
                        .get(*label as usize)
                        .map_or("?", |label| &label.name),
                )?;
            }
            Operand::Routine(routine) => {
                f.write_str(
                    program
                        .routines
                        .get(usize::from(*routine))
                        .map_or("?", |routine| &routine.name),
                )?;
            }
            Operand::Count(count) => write!(f, "{count}")?,
            Operand::Pool(pool) => f.write_str(self::memory(program, *pool))?,
        }
    }
    Ok(())
}

fn memory(program: &Program, number: u16) -> &str {
    program
        .memories
        .get(usize::from(number))
        .map_or("?", |memory| &memory.name)
}

fn parameter(program: &Program, number: u16) -> &str {
    program
        .parameters
        .get(usize::from(number))
        .map_or("?", |parameter| &parameter.name)
}

fn write_place(f: &mut String, program: &Program, place: &Place) -> fmt::Result {
    write!(f, "{}[", memory(program, place.memory))?;
    let mut plus = "";
    for part in [place.first, place.second].into_iter().flatten() {
        f.write_str(plus)?;
        match part {
            Index::Register(r) => write!(f, "r{r}")?,
            Index::Special(special) => write!(f, "%{}", special.name())?,
            Index::Parameter(i) => f.write_str(parameter(program, i))?,
        }
        plus = " + ";
    }
    match place.offset {
        0 if !plus.is_empty() => {}
        offset if plus.is_empty() => write!(f, "{offset}")?,
        offset if offset < 0 => write!(f, " - {}", offset.unsigned_abs())?,
        offset => write!(f, " + {offset}")?,
    }
    f.write_str("]")
}
