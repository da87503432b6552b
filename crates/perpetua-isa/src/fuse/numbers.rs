//! A program's instructions in the numbers of the fused one: memories, parameters, registers.

use perpetua_ir::ir::Scalar;

use super::follow::One;
use super::{ELEMENT, Fusion, Step};
use crate::builder::draft::{Arg, Line, Part};
use crate::instruction::{Index, Instruction, Operand, PRESET, Place, Special};
use crate::opcode::{Opcode, Slot, Ty};

impl Fusion {
    /// The instruction in the fused program's numbers.
    pub(super) fn translated(&mut self, one: &mut One<'_>, instruction: &Instruction) -> Step<Line> {
        let guard = instruction
            .guard
            .map(|guard| (self.register(one, true, guard.predicate), guard.negated));
        let slots = &instruction.opcode.row().operands;
        let mut args = Vec::with_capacity(slots.len());
        for (slot, operand) in slots.iter().zip(&instruction.operands) {
            args.push(match operand {
                Operand::Register(r) if matches!(slot, Slot::Read(Ty::Own)) && one.holds_own(*r) => {
                    Arg::Other(Operand::Special(Special::GlobalId))
                }
                Operand::Register(r) => {
                    let preset = PRESET.iter().find(|(register, ..)| register == r);
                    match (preset, slot) {
                        // A conversion starts from a register.
                        (Some((_, ty, special)), Slot::Read(Ty::From)) => {
                            Arg::Register(self.preset(*ty, *special))
                        }
                        (Some((_, _, special)), _) => Arg::Other(Operand::Special(*special)),
                        (None, _) => Arg::Register(self.register(one, false, *r)),
                    }
                }
                Operand::Predicate(p) => Arg::Register(self.register(one, true, *p)),
                Operand::Parameter(i) => {
                    let number = one.parameters.get(usize::from(*i)).copied();
                    Arg::Other(Operand::Parameter(number.ok_or(ELEMENT)?))
                }
                Operand::Length(memory) => {
                    let number = one.memories.get(usize::from(*memory)).copied();
                    Arg::Other(Operand::Length(number.ok_or(ELEMENT)?))
                }
                Operand::Place(place) => {
                    let memory = one.memories.get(usize::from(place.memory)).copied();
                    let mut part = |index: Index| match index {
                        index if one.is_own(index) => Part::Other(Index::Special(Special::GlobalId)),
                        Index::Register(r) => match PRESET.iter().find(|(register, ..)| *register == r) {
                            Some((_, _, special)) => Part::Other(Index::Special(*special)),
                            None => Part::Register(self.register(one, false, r)),
                        },
                        Index::Special(special) => Part::Other(Index::Special(special)),
                        Index::Parameter(i) => Part::Other(Index::Parameter(
                            one.parameters.get(usize::from(i)).copied().unwrap_or(u16::MAX),
                        )),
                    };
                    Arg::Place {
                        memory: memory.ok_or(ELEMENT)?,
                        first: place.first.map(&mut part),
                        second: place.second.map(&mut part),
                        offset: place.offset,
                    }
                }
                other => Arg::Other(*other),
            });
        }
        Ok(Line {
            opcode: instruction.opcode,
            ty: instruction.ty,
            from: instruction.from,
            guard,
            args,
            line: 0,
        })
    }

    fn preset(&mut self, ty: Scalar, special: Special) -> u32 {
        let register = self.draft.register(ty);
        if let Some(mov) = Opcode::from_name("mov") {
            self.draft.lines.push(Line {
                opcode: mov,
                ty: Some(ty),
                from: None,
                guard: None,
                args: vec![Arg::Register(register), Arg::Other(Operand::Special(special))],
                line: 0,
            });
        }
        register
    }

    pub(super) fn register(&mut self, one: &mut One<'_>, predicate: bool, number: u8) -> u32 {
        let draft = &mut self.draft;
        // What a general register holds changes; its place does not ask.
        let ty = if predicate { Scalar::Bool } else { Scalar::U32 };
        *one.registers
            .entry((predicate, number))
            .or_insert_with(|| draft.register(ty))
    }
}

/// Whether an instruction's first operand is written.
pub(super) fn writes(instruction: &Instruction) -> bool {
    matches!(instruction.opcode.row().operands.first(), Some(Slot::Write(_)))
}

/// The memory of a place that is the lane's own element.
pub(super) fn own_element(one: &One<'_>, place: &Place) -> Step<u16> {
    let is_own = place.first.is_some_and(|index| one.is_own(index));
    match one.memories.get(usize::from(place.memory)) {
        Some(memory) if is_own && place.second.is_none() && place.offset == 0 => Ok(*memory),
        _ => Err(ELEMENT),
    }
}
