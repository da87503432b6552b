//! A program that is taken in, and what is known of it: which registers hold the lane's number in the grid, and which predicates say that
//! it is beyond a length. With at most 2^32 lanes the number is the same in 32 bits and in 64.

use std::collections::HashMap;

use perpetua_ir::ir::{Axis, Scalar};
use perpetua_ir::ops::BinaryOp;

use crate::error::{Error, FuseError};
use crate::instruction::{Guard, Index, Instruction, Operand, PRESET, Special};
use crate::opcode::Meaning;
use crate::program::Program;
use crate::text::instruction_text;
use crate::verify::{Access, accesses};

/// The program that is taken in.
pub(super) struct One<'a> {
    pub(super) program: &'a Program,
    pub(super) instruction: Option<&'a Instruction>,
    // Its memories and parameters, as numbers of the fused program.
    pub(super) memories: Vec<u16>,
    pub(super) parameters: Vec<u16>,
    // Its registers and predicates (by whether they are), as those of the draft.
    pub(super) registers: HashMap<(bool, u8), u32>,
    // What registers hold of the lane's number, and what predicates say of it.
    symbols: HashMap<u8, Symbol>,
    ends: HashMap<u8, End>,
}

impl<'a> One<'a> {
    /// A program of which nothing has been taken in.
    pub(super) fn new(program: &'a Program) -> One<'a> {
        One {
            program,
            instruction: None,
            memories: Vec::new(),
            parameters: Vec::new(),
            registers: HashMap::new(),
            symbols: HashMap::new(),
            ends: HashMap::new(),
        }
    }

    /// What stands against it, and where.
    pub(super) fn error(&self, why: &'static str) -> Error {
        let place = match (self.instruction, self.program.routines.first()) {
            (Some(instruction), Some(routine)) => {
                format!("`{}`: ", instruction_text(self.program, routine, instruction))
            }
            _ => String::new(),
        };
        Error::from(FuseError {
            program: self.program.name.clone(),
            place,
            why,
        })
    }
}

/// A part of the lane's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Symbol {
    /// The lane's number in its block.
    Lane,
    /// The block's number.
    Block,
    /// The block's size.
    Size,
    /// The number of the block's first lane.
    First,
    /// The lane's number in the grid.
    Own,
}

/// What a predicate says: whether it is true beyond the end, or before it; compared at which type; the memory in the fused program's numbers.
#[derive(Clone, Copy, Debug)]
struct End {
    is_beyond: bool,
    ty: Scalar,
    memory: u16,
}

impl One<'_> {
    /// Whether a register holds the lane's number in the grid.
    pub(super) fn holds_own(&self, register: u8) -> bool {
        self.symbol(&Operand::Register(register)) == Some(Symbol::Own)
    }

    /// Whether an index is the lane's number in the grid.
    pub(super) fn is_own(&self, index: Index) -> bool {
        match index {
            Index::Register(register) => self.holds_own(register),
            Index::Special(special) => special == Special::GlobalId,
            Index::Parameter(_) => false,
        }
    }

    /// Whether an instruction ends lanes, by its guard or all of them.
    pub(super) fn is_end(&self, instruction: &Instruction) -> bool {
        match (instruction.opcode.meaning(), instruction.operands.as_slice()) {
            (Meaning::Exit | Meaning::Return, _) => true,
            (Meaning::Branch, [Operand::Label(label)]) => self.program.routines.first().is_some_and(|own| {
                let label = own.labels.get(*label as usize);
                label.is_some_and(|label| label.at as usize == own.code.len())
            }),
            _ => false,
        }
    }

    /// Beyond which memory's length a guard acts, and at which type it is compared.
    pub(super) fn end(&self, guard: Guard) -> Option<(Scalar, u16)> {
        let end = self.ends.get(&guard.predicate)?;
        (end.is_beyond != guard.negated).then_some((end.ty, end.memory))
    }

    /// Goes on behind an instruction.
    pub(super) fn follow(&mut self, instruction: &Instruction) {
        let symbol = self.computed(instruction);
        let end = self.compared(instruction);
        for access in accesses(instruction) {
            match access {
                Access::Write(predicate, Scalar::Bool) => {
                    self.ends.remove(&predicate);
                    self.ends.extend(end.map(|end| (predicate, end)));
                }
                Access::Write(register, _) => {
                    self.symbols.remove(&register);
                    self.symbols.extend(symbol.map(|symbol| (register, symbol)));
                }
                Access::Read(..) | Access::Index(_) => {}
            }
        }
    }

    fn symbol(&self, operand: &Operand) -> Option<Symbol> {
        let special = match operand {
            Operand::Special(special) => *special,
            Operand::Register(register) => match PRESET.iter().find(|(preset, ..)| preset == register) {
                Some((.., special)) => *special,
                None => return self.symbols.get(register).copied(),
            },
            _ => return None,
        };
        Some(match special {
            Special::ThreadIdx(Axis::X) => Symbol::Lane,
            Special::BlockIdx(Axis::X) => Symbol::Block,
            Special::BlockDim(Axis::X) => Symbol::Size,
            Special::GlobalId => Symbol::Own,
            _ => return None,
        })
    }

    // What an instruction computes of the lane's number.
    fn computed(&self, instruction: &Instruction) -> Option<Symbol> {
        let counts = |ty: Option<Scalar>| matches!(ty, Some(Scalar::U32 | Scalar::U64));
        let is_kept = instruction.guard.is_none() && counts(instruction.ty);
        let [_, operands @ ..] = instruction.operands.as_slice() else {
            return None;
        };
        let symbols: Vec<Symbol> = operands
            .iter()
            .filter_map(|operand| self.symbol(operand))
            .collect();
        match (
            is_kept && symbols.len() == operands.len(),
            instruction.opcode.meaning(),
            symbols.as_slice(),
        ) {
            (true, Meaning::Move, [symbol]) => Some(*symbol),
            (true, Meaning::Convert, [symbol]) if counts(instruction.from) => Some(*symbol),
            (
                true,
                Meaning::Binary(BinaryOp::Mul),
                [Symbol::Block, Symbol::Size] | [Symbol::Size, Symbol::Block],
            ) => Some(Symbol::First),
            (
                true,
                Meaning::Binary(BinaryOp::Add),
                [Symbol::First, Symbol::Lane] | [Symbol::Lane, Symbol::First],
            ) => Some(Symbol::Own),
            (
                true,
                Meaning::MultiplyAdd,
                [Symbol::Block, Symbol::Size, Symbol::Lane] | [Symbol::Size, Symbol::Block, Symbol::Lane],
            ) => Some(Symbol::Own),
            _ => None,
        }
    }

    // What a comparison of the lane's number with a length says.
    fn compared(&self, instruction: &Instruction) -> Option<End> {
        let (Meaning::Compare(op, false), None, [_, a, b]) = (
            instruction.opcode.meaning(),
            instruction.guard,
            instruction.operands.as_slice(),
        ) else {
            return None;
        };
        let is_own = |operand| self.symbol(operand) == Some(Symbol::Own);
        let (is_beyond, memory) = match (op, a, b) {
            (BinaryOp::Ge, a, Operand::Length(memory)) if is_own(a) => (true, memory),
            (BinaryOp::Lt, a, Operand::Length(memory)) if is_own(a) => (false, memory),
            (BinaryOp::Le, Operand::Length(memory), b) if is_own(b) => (true, memory),
            (BinaryOp::Gt, Operand::Length(memory), b) if is_own(b) => (false, memory),
            _ => return None,
        };
        Some(End {
            is_beyond,
            ty: instruction.ty?,
            memory: *self.memories.get(usize::from(*memory))?,
        })
    }
}
