//! Values that a launch passes: of parameters, and of registers before the first instruction.

use perpetua_ir::ir::Scalar;

use crate::instruction::{Instruction, Operand};
use crate::opcode::Opcode;
use crate::program::{Parameter, Program, Routine};

/// Values of a program's parameters, by name.
#[derive(Clone, Debug, Default)]
pub struct Arguments(pub(super) Vec<(String, Scalar, [u8; 8])>);

/// A type that a parameter can have.
pub trait Argument: Copy {
    /// As the programs' type.
    const TYPE: Scalar;
    /// Its bytes, little-endian, the rest zero.
    fn bytes(self) -> [u8; 8];
}

macro_rules! arguments {
    ($($ty:ty: $scalar:ident,)*) => { $(
        impl Argument for $ty {
            const TYPE: Scalar = Scalar::$scalar;
            fn bytes(self) -> [u8; 8] {
                let mut all = [0; 8];
                let own = self.to_le_bytes();
                all[..own.len()].copy_from_slice(&own);
                all
            }
        }
    )* };
}

arguments! {
    i8: I8, i16: I16, i32: I32, i64: I64, u8: U8, u16: U16, u32: U32, u64: U64, f32: F32, f64: F64,
    half::f16: F16, half::bf16: BF16,
}

impl Arguments {
    /// None yet.
    pub fn new() -> Arguments {
        Arguments::default()
    }

    /// The same, and a parameter's value.
    pub fn with<T: Argument>(self, name: impl Into<String>, value: T) -> Arguments {
        self.with_bytes(name, T::TYPE, value.bytes())
    }

    /// The same, and a parameter's value of a type that is known at run time: its bytes, little-endian, the rest zero.
    pub fn with_bytes(mut self, name: impl Into<String>, ty: Scalar, bytes: [u8; 8]) -> Arguments {
        self.0.push((name.into(), ty, bytes));
        self
    }

    /// A parameter's type and value: the last one that was given.
    pub(crate) fn get(&self, name: &str) -> Option<(Scalar, [u8; 8])> {
        let given = self.0.iter().rev().find(|(known, ..)| known == name);
        given.map(|(_, ty, bytes)| (*ty, *bytes))
    }
}

/// What registers hold before the first instruction, beside the presets.
#[derive(Clone, Debug, Default)]
pub struct Registers(Vec<(u8, Scalar, [u8; 8])>);

impl Registers {
    /// None yet.
    pub fn new() -> Registers {
        Registers::default()
    }

    /// The same, and a register's value; the last one given to a register counts.
    pub fn with<T: Argument>(mut self, register: u8, value: T) -> Registers {
        self.0.retain(|(other, ..)| *other != register);
        self.0.push((register, T::TYPE, value.bytes()));
        self
    }

    /// A program that takes the registers' values as parameters and begins by moving them there; and those values.
    pub(super) fn bind(&self, program: &Program) -> (Program, Arguments) {
        let mut program = program.clone();
        let mut arguments = Arguments::new();
        let Some(mov) = Opcode::from_name("mov") else {
            return (program, arguments);
        };
        if program.routines.is_empty() {
            program.routines.push(Routine::default());
        }
        let mut moves = Vec::new();
        for (register, ty, bytes) in &self.0 {
            let name = program.unused_name(&format!("initial_r{register}"));
            // A program with more is refused.
            let parameter = u16::try_from(program.parameters.len()).unwrap_or(u16::MAX);
            arguments = arguments.with_bytes(name.as_str(), *ty, *bytes);
            program.parameters.push(Parameter { name, ty: *ty });
            moves.push(Instruction {
                guard: None,
                opcode: mov,
                ty: Some(*ty),
                from: None,
                operands: vec![Operand::Register(*register), Operand::Parameter(parameter)],
            });
        }
        let count = moves.len() as u32;
        if let Some(own) = program.routines.first_mut() {
            // Instructions keep their lines, or their numbers where they have none.
            if own.lines.is_empty() {
                own.lines = (1..=own.code.len() as u32).collect();
            }
            own.lines.splice(..0, moves.iter().map(|_| 0));
            own.code.splice(..0, moves);
            let labels = own.labels.iter_mut();
            labels.for_each(|label| label.at = label.at.saturating_add(count));
        }
        (program, arguments)
    }
}
