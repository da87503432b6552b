//! Programs lane by lane, one instruction after the other: what an interpreter without a compiler does, for comparison. It knows the
//! control flow and the memory of simple element-wise programs, whose buffers have elements of 32 bits; what operators mean is the IR's.

use perpetua::isa::instruction::{Index, Place, Special};
use perpetua::isa::{Instruction, Meaning, MemoryKind, Operand, Program, Space};
use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::eval::{eval_binary, eval_cast, eval_ternary, eval_unary};

/// A program with its buffers and the bits of its parameters.
pub(super) struct Lanes<'a> {
    code: Vec<(Meaning, &'a Instruction)>,
    /// Where each label stands.
    labels: Vec<usize>,
    /// By the number of the memory.
    pub(super) buffers: Vec<Vec<u32>>,
    parameters: Vec<u64>,
    registers: [u64; 256],
    predicates: [bool; 16],
}

impl<'a> Lanes<'a> {
    /// Takes programs of one routine, with buffers alone.
    pub(super) fn new(
        program: &'a Program,
        buffers: Vec<Vec<u32>>,
        parameters: Vec<u64>,
    ) -> Result<Lanes<'a>, String> {
        let is_plain = program
            .memories
            .iter()
            .all(|memory| matches!(memory.kind, MemoryKind::Buffer { .. }) && memory.element.bits() == 32);
        let ([own], true) = (program.routines.as_slice(), is_plain) else {
            return Err(format!("{}: more than buffers of 32 bits", program.name));
        };
        Ok(Lanes {
            code: own.code.iter().map(|i| (i.opcode.meaning(), i)).collect(),
            labels: own.labels.iter().map(|label| label.at as usize).collect(),
            buffers,
            parameters,
            registers: [0; 256],
            predicates: [false; 16],
        })
    }

    /// Runs lanes one after the other.
    pub(super) fn run(&mut self, lanes: u64) -> Result<(), String> {
        (0..lanes).try_for_each(|lane| self.lane(lane))
    }

    fn lane(&mut self, lane: u64) -> Result<(), String> {
        self.registers[255] = lane;
        let mut at = 0;
        while let Some((meaning, instruction)) = self.code.get(at).copied() {
            at += 1;
            if let Some(guard) = instruction.guard
                && self.predicates[usize::from(guard.predicate)] == guard.negated
            {
                continue;
            }
            let ty = instruction.ty.unwrap_or(Scalar::U32);
            match (meaning, instruction.operands.as_slice()) {
                (Meaning::Exit, _) => return Ok(()),
                (Meaning::Branch, [Operand::Label(label)]) => {
                    at = self.labels.get(*label as usize).copied().unwrap_or(usize::MAX);
                }
                (Meaning::Load(Space::Global), [Operand::Register(to), Operand::Place(place)]) => {
                    let element = self.element(place, ty)?;
                    self.registers[usize::from(*to)] = u64::from(*element);
                }
                (Meaning::Store(Space::Global), [Operand::Place(place), value]) => {
                    let value = self.value(value)?;
                    *self.element(place, ty)? = value as u32;
                }
                (_, [to, operands @ ..]) => {
                    let bits = self.computed(meaning, instruction, operands)?;
                    match *to {
                        Operand::Register(to) => self.registers[usize::from(to)] = bits,
                        Operand::Predicate(to) => self.predicates[usize::from(to)] = bits != 0,
                        _ => return Err(unknown(instruction)),
                    }
                }
                _ => return Err(unknown(instruction)),
            }
        }
        Ok(())
    }

    // What an instruction gives that computes a value of values.
    fn computed(
        &self,
        meaning: Meaning,
        instruction: &Instruction,
        operands: &[Operand],
    ) -> Result<u64, String> {
        let ty = instruction.ty.unwrap_or(Scalar::U32);
        match (meaning, operands) {
            (Meaning::Move | Meaning::Bitcast, [a]) => self.value(a),
            (Meaning::Convert, [a]) => Ok(eval_cast(instruction.from.unwrap_or(ty), ty, self.value(a)?)),
            (Meaning::Unary(op), [a]) => Ok(eval_unary(op, ty, self.value(a)?)),
            (Meaning::Binary(op) | Meaning::Compare(op, false), [a, b]) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                eval_binary(op, ty, a, b).map_err(|fault| fault.name().to_owned())
            }
            (Meaning::Ternary(op), [a, b, c]) => {
                let (a, b, c) = (self.value(a)?, self.value(b)?, self.value(c)?);
                Ok(eval_ternary(op, ty, a, b, c))
            }
            _ => Err(unknown(instruction)),
        }
    }

    fn value(&self, operand: &Operand) -> Result<u64, String> {
        match *operand {
            Operand::Register(register) => Ok(self.registers[usize::from(register)]),
            Operand::Predicate(predicate) => Ok(self.predicates[usize::from(predicate)].into()),
            Operand::Immediate(bits) => Ok(bits),
            Operand::Special(Special::GlobalId) => Ok(self.registers[255]),
            Operand::Parameter(number) => self.parameter(number),
            Operand::Length(memory) => {
                let buffer = self.buffers.get(usize::from(memory));
                buffer
                    .map(|buffer| buffer.len() as u64)
                    .ok_or_else(|| format!("no memory {memory}"))
            }
            ref other => Err(format!("{other:?} is no value here")),
        }
    }

    fn parameter(&self, number: u16) -> Result<u64, String> {
        let value = self.parameters.get(usize::from(number)).copied();
        value.ok_or_else(|| format!("no parameter {number}"))
    }

    // An element of 32 bits; what lies outside is an error, as it is a fault elsewhere.
    fn element(&mut self, place: &Place, ty: Scalar) -> Result<&mut u32, String> {
        let mut at = place.offset as u64;
        for part in [place.first, place.second].into_iter().flatten() {
            let part = match part {
                Index::Register(register) => self.registers[usize::from(register)],
                Index::Special(Special::GlobalId) => self.registers[255],
                Index::Parameter(number) => self.parameter(number)?,
                Index::Special(other) => return Err(format!("%{} is not known here", other.name())),
            };
            at = at.wrapping_add(part);
        }
        if ty.bits() != 32 {
            return Err(format!("an element of {} bits", ty.bits()));
        }
        let buffer = self.buffers.get_mut(usize::from(place.memory));
        let element = buffer.and_then(|buffer| buffer.get_mut(usize::try_from(at).unwrap_or(usize::MAX)));
        element.ok_or_else(|| format!("element {at} is out of bounds"))
    }
}

fn unknown(instruction: &Instruction) -> String {
    format!("`{:?}` is not known here", instruction.opcode)
}

#[cfg(test)]
mod tests {
    use perpetua::isa::{Arguments, LaunchConfig, library, new_executor};

    use super::*;

    #[test]
    fn lanes_do_what_the_executor_does() {
        let executor = new_executor().expect("the CPU");
        for (name, parameters) in [
            ("atlas_add_f32", vec![]),
            ("atlas_sub_f32", vec![]),
            ("atlas_div_f32", vec![]),
            ("atlas_max_f32", vec![]),
            ("atlas_abs_f32", vec![]),
            ("atlas_mul_i32", vec![]),
            ("atlas_xor_i32", vec![]),
            ("saxpy", vec![0.75f32]),
        ] {
            let mut program = library(name).expect("in the library");
            let columns: Vec<Vec<u32>> = (1..=program.memories.len() as u32)
                .map(|seed| {
                    (0..100)
                        .map(|i| ((i * 37 + seed) as f32 / 8.0 - 9.0).to_bits())
                        .collect()
                })
                .collect();
            let mut handles = Vec::new();
            for (memory, column) in program.memories.clone().iter().zip(&columns) {
                let handle = executor.allocate_buffer(400).expect("memory");
                executor.write_buffer(handle, 0, column).expect("a write");
                program = program.with_buffer(&memory.name, handle).expect("its own name");
                handles.push(handle);
            }
            let bits = parameters
                .iter()
                .map(|value| u64::from(value.to_bits()))
                .collect();
            let mut lanes = Lanes::new(&program, columns, bits).expect("a simple program");
            lanes.run(128).expect("simple instructions");
            let arguments = program
                .parameters
                .iter()
                .zip(&parameters)
                .fold(Arguments::new(), |all, (parameter, value)| {
                    all.with(parameter.name.as_str(), *value)
                });
            executor
                .execute(&program, &LaunchConfig::linear(100, 64), &arguments)
                .expect("a launch");
            for (handle, found) in handles.iter().zip(&lanes.buffers) {
                assert_eq!(
                    &executor.read_buffer::<u32>(*handle, 0, 100).expect("a read"),
                    found,
                    "{name}"
                );
            }
        }
    }
}
