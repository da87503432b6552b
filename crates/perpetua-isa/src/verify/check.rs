//! Checks each instruction by itself, behind the declarations: operands, types, names that exist, constant indices.

use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::Domain;

use super::Wrong;
use super::accesses::lengths;
use super::declarations::declarations;
use crate::declaration::fits;
use crate::fault::Fault;
use crate::instruction::{Index, Instruction, Operand, PREDICATES, Place, REGISTERS};
use crate::opcode::{Meaning, Row, Slot, Space, Ty, Use};
use crate::program::{MemoryKind, Program, Routine};
use crate::text::type_name;

type Result<T = ()> = std::result::Result<T, Fault>;

pub(super) fn check(program: &Program) -> std::result::Result<(), Wrong> {
    declarations(program)?;
    for (number, routine) in program.routines.iter().enumerate() {
        for (i, instruction) in routine.code.iter().enumerate() {
            let checker = Checker {
                program,
                routine,
                instruction,
            };
            checker.check().map_err(|fault| Wrong::at((number, i), fault))?;
        }
    }
    Ok(())
}

struct Checker<'a> {
    program: &'a Program,
    routine: &'a Routine,
    instruction: &'a Instruction,
}

impl Checker<'_> {
    fn check(&self) -> Result {
        let Instruction {
            guard,
            opcode,
            ty,
            from,
            operands,
        } = self.instruction;
        let row = opcode.row();
        if guard.is_some_and(|guard| usize::from(guard.predicate) >= PREDICATES) {
            return Err(self.operand(0, "guarded by one of p0 to p15"));
        }
        self.types(*ty, *from)?;
        if operands.len() != row.operands.len() {
            return Err(Fault::Operands {
                opcode: row.name.clone(),
                expected: row.operands.len(),
                found: operands.len(),
            });
        }
        for (i, (slot, operand)) in row.operands.iter().zip(operands).enumerate() {
            self.slot(i + 1, *slot, operand)?;
        }
        self.runs()
    }

    fn types(&self, ty: Option<Scalar>, from: Option<Scalar>) -> Result {
        let row = self.instruction.opcode.row();
        let wrong = |expected: String, found: Option<Scalar>| {
            Err(Fault::Type {
                opcode: row.name.clone(),
                expected,
                found: found.map_or("no type".into(), |ty| ty.to_string()),
            })
        };
        match (row.types, ty) {
            (None, None) => {}
            (None, Some(found)) => {
                return Err(Fault::Typed {
                    opcode: row.name.clone(),
                    found,
                });
            }
            (Some(domain), Some(ty)) if domain.contains(ty) => {}
            (domain, ty) => return wrong(domain.map_or("no type", Domain::describe).into(), ty),
        }
        if row.from != from.is_some() {
            return wrong("two types: to, from".into(), from.or(ty));
        }
        let wide = |ty: Scalar| ty.size() >= 4;
        if let (Some(to), Some(from)) = (ty, from) {
            return self.conversion(to, from);
        }
        match (row.meaning, ty) {
            (Meaning::Atomic(_) | Meaning::CompareExchange | Meaning::Grid(_), Some(ty)) if !wide(ty) => {
                wrong("types of 32 and 64 bits".into(), Some(ty))
            }
            _ => Ok(()),
        }
    }

    // As the IR's casts.
    fn conversion(&self, to: Scalar, from: Scalar) -> Result {
        let Row { name, meaning, .. } = self.instruction.opcode.row();
        let why = match (meaning, to, from) {
            _ if to == from => return Ok(()),
            (_, Scalar::Bool, _) => "a comparison makes a predicate, as `setne` of a number and 0",
            (Meaning::Convert, _, Scalar::Bool) if to.is_int() => return Ok(()),
            (_, _, Scalar::Bool) => "`select` takes one of two values by a predicate",
            (Meaning::Bitcast, ..) if to.bits() != from.bits() => {
                "they differ in their bits; `cvt` converts values"
            }
            _ => return Ok(()),
        };
        Err(Fault::Conversion {
            opcode: name.clone(),
            to: type_name(to),
            from: type_name(from),
            why,
        })
    }

    fn operand(&self, number: usize, expected: impl Into<String>) -> Fault {
        Fault::Operand {
            number,
            expected: expected.into(),
        }
    }

    fn slot(&self, number: usize, slot: Slot, operand: &Operand) -> Result {
        let (own, from) = (self.instruction.ty, self.instruction.from);
        match (slot, operand) {
            (Slot::Write(ty), _) => self.written(number, ty.of(own, from), operand),
            (Slot::Read(ty), _) => self.read(number, ty, ty.of(own, from), operand),
            (Slot::Place(space, access), Operand::Place(place)) => self.place(number, space, access, place),
            (Slot::Label, Operand::Label(label)) if (*label as usize) < self.routine.labels.len() => Ok(()),
            (Slot::Routine, Operand::Routine(routine))
                if *routine > 0 && usize::from(*routine) < self.program.routines.len() =>
            {
                Ok(())
            }
            (Slot::Run | Slot::Sums, Operand::Register(_)) => Ok(()),
            (Slot::Count, Operand::Count(1..)) => Ok(()),
            (Slot::Pool, Operand::Pool(memory)) if self.is_pool(*memory) => Ok(()),
            (Slot::Pool, _) => Err(self.operand(number, "a pool of this program")),
            (Slot::Place(..), _) => Err(self.operand(number, "an element of a memory, as `x[r0]`")),
            (Slot::Label, _) => Err(self.operand(number, "a label of this routine")),
            (Slot::Routine, _) => Err(self.operand(number, "a routine of this program")),
            (Slot::Run | Slot::Sums, _) => Err(self.operand(number, "a register")),
            (Slot::Count, _) => Err(self.operand(number, "a positive number")),
        }
    }

    fn is_pool(&self, memory: u16) -> bool {
        let memory = self.program.memories.get(usize::from(memory));
        memory.is_some_and(|memory| matches!(memory.kind, MemoryKind::Pool { .. }))
    }

    fn written(&self, number: usize, ty: Option<Scalar>, operand: &Operand) -> Result {
        match (ty, operand) {
            (Some(Scalar::Bool), Operand::Predicate(p)) if usize::from(*p) < PREDICATES => Ok(()),
            (Some(Scalar::Bool), _) => Err(self.operand(number, "a predicate, p0 to p15")),
            (_, Operand::Register(_)) => Ok(()),
            _ => Err(self.operand(number, "a register, r0 to r255")),
        }
    }

    fn read(&self, number: usize, slot: Ty, ty: Option<Scalar>, operand: &Operand) -> Result {
        let ty = ty.unwrap_or(Scalar::Bool);
        let counts = matches!(ty, Scalar::U32 | Scalar::U64);
        match operand {
            Operand::Register(_) if ty != Scalar::Bool => Ok(()),
            Operand::Predicate(p) if ty == Scalar::Bool && usize::from(*p) < PREDICATES => Ok(()),
            Operand::Immediate(_) if slot == Ty::From => Err(self.operand(
                number,
                "a register, special, parameter or length: `mov` takes a constant of the result's type",
            )),
            Operand::Immediate(bits) if fits(*bits, ty) => Ok(()),
            Operand::Special(_) if counts => Ok(()),
            Operand::Length(memory) if counts && usize::from(*memory) < self.program.memories.len() => Ok(()),
            Operand::Parameter(i) => match self.program.parameters.get(usize::from(*i)) {
                Some(parameter) if parameter.ty == ty => Ok(()),
                Some(parameter) => Err(self.operand(
                    number,
                    format!(
                        "a value of type {ty}; the parameter `{}` has type {}",
                        parameter.name, parameter.ty
                    ),
                )),
                None => Err(self.operand(number, "a parameter of this program")),
            },
            _ if ty == Scalar::Bool => Err(self.operand(number, "a predicate, p0 to p15, or a constant")),
            Operand::Special(_) | Operand::Length(_) => Err(self.operand(
                number,
                format!("a value of type {ty}: what counts is read as u32 or u64"),
            )),
            _ => Err(self.operand(number, format!("a value of type {ty}"))),
        }
    }

    fn place(&self, number: usize, space: Space, access: Use, place: &Place) -> Result {
        let Some(memory) = self.program.memories.get(usize::from(place.memory)) else {
            return Err(self.operand(number, "an element of a memory of this program"));
        };
        if space == Space::Pool {
            let unsigned = |part| match part {
                Index::Parameter(i) => {
                    let parameter = self.program.parameters.get(usize::from(i));
                    parameter.is_some_and(|parameter| parameter.ty == Scalar::U32)
                }
                Index::Register(_) | Index::Special(_) => true,
            };
            let offset = u32::try_from(place.offset).is_ok();
            return match (self.is_pool(place.memory), place.first) {
                (true, Some(handle)) if offset && unsigned(handle) && place.second.is_none_or(unsigned) => {
                    Ok(())
                }
                _ => Err(self.operand(
                    number,
                    "an element of a block of a pool, as `pool[r0 + r1 + 4]`: a handle and an index, all u32",
                )),
            };
        }
        let ty = self.instruction.ty;
        if ty != Some(memory.element) {
            return Err(self.operand(
                number,
                format!(
                    "an element of type {}: those of `{}` are {}",
                    ty.map_or("none".into(), |ty| ty.to_string()),
                    memory.name,
                    memory.element
                ),
            ));
        }
        let fits = match (&memory.kind, space) {
            (MemoryKind::Buffer { writable: false, .. }, Space::Global | Space::Any)
                if access == Use::Store =>
            {
                return Err(Fault::ReadOnly {
                    memory: memory.name.clone(),
                });
            }
            (MemoryKind::Buffer { .. }, Space::Global | Space::Any) => true,
            (MemoryKind::Shared { .. }, Space::Shared | Space::Any) => true,
            (MemoryKind::Constants(_), Space::Constant) => true,
            _ => false,
        };
        if !fits {
            return Err(self.operand(
                number,
                format!("an element of {}; `{}` is none", space.describe(), memory.name),
            ));
        }
        for part in [place.first, place.second].into_iter().flatten() {
            if let Index::Parameter(i) = part
                && !self
                    .program
                    .parameters
                    .get(usize::from(i))
                    .is_some_and(|p| p.ty.is_int())
            {
                return Err(self.operand(number, "indexed by integers"));
            }
        }
        if place.first.is_none() && place.second.is_some() {
            return Err(self.operand(number, "an index whose first part is there"));
        }
        let len = match &memory.kind {
            MemoryKind::Buffer { .. } | MemoryKind::Pool { .. } => None,
            MemoryKind::Shared { len } => Some(u64::from(*len)),
            MemoryKind::Constants(data) => Some(data.len() as u64),
        };
        let outside = |len: Option<u64>| match u64::try_from(place.offset) {
            Ok(offset) => len.is_some_and(|len| offset >= len),
            Err(_) => true,
        };
        if place.first.is_none() && outside(len) {
            return Err(Fault::OutOfBounds {
                index: place.offset,
                memory: memory.name.clone(),
                len,
            });
        }
        Ok(())
    }

    // Runs of registers end at the last register.
    fn runs(&self) -> Result {
        let firsts = self
            .instruction
            .operands
            .iter()
            .zip(&self.instruction.opcode.row().operands);
        let firsts = firsts
            .enumerate()
            .filter_map(|(i, (operand, slot))| match (operand, slot) {
                (Operand::Register(first), Slot::Run | Slot::Sums) => Some((i + 1, *first)),
                _ => None,
            });
        for ((number, first), len) in firsts.zip(lengths(self.instruction)) {
            if u64::from(first) + u64::from(len) > REGISTERS as u64 {
                return Err(self.operand(
                    number,
                    format!("the first of {len} registers: r{first} is too near to r255"),
                ));
            }
        }
        // Tiles that are written do not lie over those that are read.
        let lengths = lengths(self.instruction);
        let (Meaning::Tile, [sums, a, b]) = (self.instruction.opcode.meaning(), lengths.as_slice()) else {
            return Ok(());
        };
        let at = |i: usize| match self.instruction.operands.get(i) {
            Some(Operand::Register(r)) => u32::from(*r),
            _ => 0,
        };
        let apart = |other: u32, len: &u32| at(0) + sums <= other || other + len <= at(0);
        if apart(at(1), a) && apart(at(2), b) {
            return Ok(());
        }
        Err(self.operand(1, "apart from the tiles that are read"))
    }
}
