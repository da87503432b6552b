//! Programs lane by lane, one instruction after the other, by a program counter: what compiled programs are held against, and compared with. Knows
//! nothing of structure, and the memory of buffers of 32 bits alone; what operators mean is the IR's.

use std::rc::Rc;

use perpetua_ir::ir::{Axis, Scalar};
use perpetua_ir::ops::eval::{eval_binary, eval_cast, eval_ternary, eval_unary};

use crate::instruction::{Index, Instruction, Operand, PREDICATES, Place, REGISTERS, Special};
use crate::opcode::{Meaning, Space};
use crate::program::{MemoryKind, Program};
use crate::verify::MAX_CALL_DEPTH;

/// A program with its buffers and the bits of its parameters.
///
/// ```
/// use perpetua_isa::{lanes::Lanes, library};
/// let [a, b] = [[1.0f32, 2.0], [10.0, 20.0]].map(|values| values.map(f32::to_bits).to_vec());
/// let add = library("atlas_add_f32")?;
/// let mut lanes = Lanes::new(&add, vec![a, b, vec![0; 2]], Vec::new())?;
/// lanes.run(1, 2)?;
/// assert_eq!(lanes.buffers[2], [11.0f32, 22.0].map(f32::to_bits));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Lanes<'a> {
    program: &'a Program,
    code: Vec<Rc<[(Meaning, &'a Instruction)]>>,
    /// By the number of the memory.
    pub buffers: Vec<Vec<u32>>,
    parameters: Vec<u64>,
    // Lane in the block, block, lanes of a block, lane in the grid.
    position: [u64; 4],
    registers: [u64; REGISTERS],
    predicates: [bool; PREDICATES],
}

/// Why a program cannot go on lane by lane.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Stop {
    /// Something that is not done here.
    #[error("{program}: {what} is not done lane by lane: an executor runs the program")]
    Unknown {
        /// The program.
        program: String,
        /// What it is.
        what: String,
    },
    /// An index outside a buffer.
    #[error("{program}: element {index} of {memory}, which has {len}: the index must be below")]
    Bounds {
        /// The program.
        program: String,
        /// The memory's name.
        memory: String,
        /// The index.
        index: u64,
        /// The elements that there are.
        len: usize,
    },
    /// An operator's fault.
    #[error("{program}: {fault}: check the operands in front of it")]
    Fault {
        /// The program.
        program: String,
        /// Its name.
        fault: &'static str,
    },
}

type Result<T> = std::result::Result<T, Stop>;

impl<'a> Lanes<'a> {
    /// Takes programs with buffers of 32 bits alone.
    ///
    /// # Errors
    /// [`Stop::Unknown`] for others.
    pub fn new(program: &'a Program, buffers: Vec<Vec<u32>>, parameters: Vec<u64>) -> Result<Lanes<'a>> {
        let lanes = Lanes {
            program,
            code: program
                .routines
                .iter()
                .map(|routine| routine.code.iter().map(|i| (i.opcode.meaning(), i)).collect())
                .collect(),
            buffers,
            parameters,
            position: [0; 4],
            registers: [0; REGISTERS],
            predicates: [false; PREDICATES],
        };
        let is_plain = program
            .memories
            .iter()
            .all(|memory| matches!(memory.kind, MemoryKind::Buffer { .. }) && memory.element.bits() == 32);
        match is_plain && lanes.buffers.len() == program.memories.len() {
            true => Ok(lanes),
            false => Err(lanes.unknown("memory beside buffers of 32 bits")),
        }
    }

    /// Runs blocks of so many lanes, one lane after the other.
    ///
    /// # Errors
    /// [`Stop`], at the first lane that cannot go on.
    pub fn run(&mut self, blocks: u32, lanes: u32) -> Result<()> {
        for block in 0..blocks {
            for lane in 0..lanes {
                let number = u64::from(block) * u64::from(lanes) + u64::from(lane);
                self.position = [lane.into(), block.into(), lanes.into(), number];
                self.registers[252..].copy_from_slice(&self.position);
                self.routine(0, 0)?;
            }
        }
        Ok(())
    }

    // Whether the lane goes on behind the routine.
    fn routine(&mut self, number: usize, depth: usize) -> Result<bool> {
        if depth > MAX_CALL_DEPTH {
            return Err(self.unknown("a call that deep"));
        }
        let program = self.program;
        let (Some(routine), Some(code)) = (program.routines.get(number), self.code.get(number)) else {
            return Ok(true);
        };
        let code = Rc::clone(code);
        let goal = |label: u32| {
            let label = routine.labels.get(label as usize);
            label.map_or(usize::MAX, |label| label.at as usize)
        };
        let mut at = 0;
        while let Some((meaning, instruction)) = code.get(at).copied() {
            at += 1;
            if let Some(guard) = instruction.guard
                && self.predicates[usize::from(guard.predicate)] == guard.negated
            {
                continue;
            }
            let ty = instruction.ty.unwrap_or(Scalar::U32);
            match (meaning, instruction.operands.as_slice()) {
                (Meaning::Exit, _) => return Ok(false),
                (Meaning::Return, _) => return Ok(true),
                (Meaning::Nop, _) => {}
                (Meaning::Branch, [Operand::Label(label)]) => at = goal(*label),
                (Meaning::Loop, [Operand::Register(count), Operand::Label(label)]) => {
                    let count = &mut self.registers[usize::from(*count)];
                    if *count > 0 {
                        *count -= 1;
                        at = goal(*label);
                    }
                }
                (Meaning::Call, [Operand::Routine(called)]) => {
                    if !self.routine(usize::from(*called), depth + 1)? {
                        return Ok(false);
                    }
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
                        _ => return Err(self.unknown(format!("`{:?}`", instruction.opcode))),
                    }
                }
                _ => return Err(self.unknown(format!("`{:?}`", instruction.opcode))),
            }
        }
        Ok(true)
    }

    // What an instruction gives that computes a value of values.
    fn computed(&self, meaning: Meaning, instruction: &Instruction, operands: &[Operand]) -> Result<u64> {
        let ty = instruction.ty.unwrap_or(Scalar::U32);
        match (meaning, operands) {
            (Meaning::Move | Meaning::Bitcast, [a]) => self.value(a),
            (Meaning::Convert, [a]) => Ok(eval_cast(instruction.from.unwrap_or(ty), ty, self.value(a)?)),
            (Meaning::Unary(op), [a]) => Ok(eval_unary(op, ty, self.value(a)?)),
            (Meaning::Binary(op) | Meaning::Compare(op, false), [a, b]) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                eval_binary(op, ty, a, b).map_err(|fault| Stop::Fault {
                    program: self.program.name.clone(),
                    fault: fault.name(),
                })
            }
            (Meaning::Ternary(op), [a, b, c]) => {
                let (a, b, c) = (self.value(a)?, self.value(b)?, self.value(c)?);
                Ok(eval_ternary(op, ty, a, b, c))
            }
            _ => Err(self.unknown(format!("`{:?}`", instruction.opcode))),
        }
    }

    fn value(&self, operand: &Operand) -> Result<u64> {
        match *operand {
            Operand::Register(register) => Ok(self.registers[usize::from(register)]),
            Operand::Predicate(predicate) => Ok(self.predicates[usize::from(predicate)].into()),
            Operand::Immediate(bits) => Ok(bits),
            Operand::Special(special) => self.special(special),
            Operand::Parameter(number) => self.parameter(number),
            Operand::Length(memory) => {
                let buffer = self.buffers.get(usize::from(memory));
                let len = buffer.map(|buffer| buffer.len() as u64);
                len.ok_or_else(|| self.unknown(format!("the length of memory {memory}")))
            }
            ref other => Err(self.unknown(format!("the operand {other:?}"))),
        }
    }

    fn special(&self, special: Special) -> Result<u64> {
        let [lane, block, lanes, number] = self.position;
        match special {
            Special::ThreadIdx(Axis::X) => Ok(lane),
            Special::BlockIdx(Axis::X) => Ok(block),
            Special::BlockDim(Axis::X) => Ok(lanes),
            Special::GlobalId => Ok(number),
            other => Err(self.unknown(format!("%{}", other.name()))),
        }
    }

    fn parameter(&self, number: u16) -> Result<u64> {
        let value = self.parameters.get(usize::from(number)).copied();
        value.ok_or_else(|| self.unknown(format!("parameter {number}, which has no value,")))
    }

    // An element of 32 bits; what lies outside is an error, as it is a fault elsewhere.
    fn element(&mut self, place: &Place, ty: Scalar) -> Result<&mut u32> {
        let mut index = place.offset as u64;
        for part in [place.first, place.second].into_iter().flatten() {
            let part = match part {
                Index::Register(register) => self.registers[usize::from(register)],
                Index::Special(special) => self.special(special)?,
                Index::Parameter(number) => self.parameter(number)?,
            };
            index = index.wrapping_add(part);
        }
        if ty.bits() != 32 {
            return Err(self.unknown(format!("an element of {} bits", ty.bits())));
        }
        let memory = usize::from(place.memory);
        let len = self.buffers.get(memory).map_or(0, Vec::len);
        let program = self.program;
        let element = self.buffers.get_mut(memory);
        let element = element.and_then(|buffer| buffer.get_mut(usize::try_from(index).unwrap_or(usize::MAX)));
        element.ok_or_else(|| Stop::Bounds {
            program: program.name.clone(),
            memory: program
                .memories
                .get(memory)
                .map_or_else(String::new, |memory| memory.name.clone()),
            index,
            len,
        })
    }

    fn unknown(&self, what: impl Into<String>) -> Stop {
        Stop::Unknown {
            program: self.program.name.clone(),
            what: what.into(),
        }
    }
}
