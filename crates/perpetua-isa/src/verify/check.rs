//! Checks declarations, and each instruction by itself: operands, types, names that exist, constant indices.

use std::collections::HashSet;

use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::Domain;

use super::accesses::lengths;
use super::{MAX_DECLARATIONS, MAX_INSTRUCTIONS, Wrong};
use crate::error::Fault;
use crate::instruction::{Index, Instruction, Operand, PREDICATES, Place, REGISTERS};
use crate::opcode::{Meaning, Slot, Space, Ty, Use};
use crate::program::{MemoryKind, Program, Routine, is_name};

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

// Whether the text form takes a name for a register, a predicate or a constant.
pub(crate) fn is_reserved(name: &str) -> bool {
    let number = name
        .strip_prefix(['r', 'p'])
        .is_some_and(|rest| rest.parse::<u8>().is_ok());
    number || matches!(name, "true" | "false" | "inf" | "nan" | "NaN")
}

fn limit(what: &'static str, found: usize, most: usize) -> Result {
    if found <= most {
        return Ok(());
    }
    Err(Fault::Limit {
        what,
        found: found as u64,
        limit: most as u64,
    })
}

fn names<'a>(what: &'static str, names: impl Iterator<Item = &'a str>) -> Result {
    let mut seen = HashSet::new();
    for name in names {
        let why = match is_name(name) {
            false => "a name is made of ASCII letters, digits and `_`, no digit first, at most 255 of them",
            true if !seen.insert(name) => "that is the name of another",
            true => continue,
        };
        return Err(Fault::Name {
            what,
            name: name.chars().take(64).collect(),
            why,
        });
    }
    Ok(())
}

fn declarations(program: &Program) -> Result {
    names("a program", std::iter::once(program.name.as_str()))?;
    let routines = program.routines.len();
    if program.routines.first().is_none_or(|own| !own.name.is_empty()) {
        let own = program.routines.first();
        return Err(Fault::Name {
            what: "the program's own code, the first routine,",
            name: own
                .map(|own| own.name.chars().take(64).collect())
                .unwrap_or_default(),
            why: "it is there and has no name",
        });
    }
    if program.block.is_some_and(|block| block.contains(&0)) {
        return Err(Fault::Operand {
            number: 0,
            expected: "a block of at least one lane in each direction".into(),
        });
    }
    limit("memories", program.memories.len(), MAX_DECLARATIONS)?;
    limit("parameters", program.parameters.len(), MAX_DECLARATIONS)?;
    limit("routines", routines, MAX_DECLARATIONS)?;
    limit("instructions", program.len(), MAX_INSTRUCTIONS)?;
    let memories = program.memories.iter().map(|memory| memory.name.as_str());
    let parameters = program.parameters.iter().map(|parameter| parameter.name.as_str());
    names(
        "a memory or parameter",
        memories.clone().chain(parameters.clone()),
    )?;
    if let Some(name) = memories.chain(parameters).find(|name| is_reserved(name)) {
        return Err(Fault::Name {
            what: "a memory or parameter",
            name: name.into(),
            why: "that is a register, a predicate or a constant",
        });
    }
    names(
        "a routine",
        program
            .routines
            .iter()
            .skip(1)
            .map(|routine| routine.name.as_str()),
    )?;
    if program
        .parameters
        .iter()
        .any(|parameter| parameter.ty == Scalar::Bool)
    {
        return Err(Fault::Type {
            opcode: "a parameter".into(),
            expected: "an integer or a float".into(),
            found: "pred".into(),
        });
    }
    let mut shared = 0u64;
    for memory in &program.memories {
        if memory.element == Scalar::Bool {
            return Err(Fault::Type {
                opcode: memory.name.clone(),
                expected: "integers or floats".into(),
                found: "pred".into(),
            });
        }
        let size = u64::from(memory.element.size());
        match &memory.kind {
            MemoryKind::Pool { .. } if memory.element == Scalar::U32 => {}
            MemoryKind::Pool { .. } => {
                return Err(Fault::Type {
                    opcode: memory.name.clone(),
                    expected: "a pool of u32".into(),
                    found: memory.element.to_string(),
                });
            }
            MemoryKind::Buffer { .. } => {}
            MemoryKind::Shared { len: 0 } => limit_below(&memory.name)?,
            MemoryKind::Shared { len } => shared += u64::from(*len) * size,
            MemoryKind::Constants(data) if data.is_empty() => limit_below(&memory.name)?,
            MemoryKind::Constants(data) => {
                if let Some(bad) = data.iter().find(|bits| !fits(**bits, memory.element)) {
                    return Err(Fault::Type {
                        opcode: memory.name.clone(),
                        expected: format!("{} bits", memory.element.bits()),
                        found: format!("{bad:#x}"),
                    });
                }
            }
        }
    }
    limit(
        "bytes of shared memory",
        shared as usize,
        perpetua_ir::verify::MAX_SHARED_BYTES as usize,
    )?;
    for routine in &program.routines {
        limit("labels", routine.labels.len(), MAX_DECLARATIONS)?;
        names("a label", routine.labels.iter().map(|label| label.name.as_str()))?;
        if let Some(label) = routine
            .labels
            .iter()
            .find(|label| label.at as usize > routine.code.len())
        {
            return Err(Fault::Limit {
                what: "instruction of a label",
                found: label.at.into(),
                limit: routine.code.len() as u64,
            });
        }
    }
    Ok(())
}

fn limit_below(name: &str) -> Result {
    Err(Fault::Operand {
        number: 0,
        expected: format!("at least one element in `{name}`"),
    })
}

// Whether bits of a constant are those of a value of the type.
fn fits(bits: u64, ty: Scalar) -> bool {
    match ty.bits() {
        64 => true,
        width => bits >> width == 0,
    }
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
            (Some(domain), Some(ty)) if domain.contains(ty) => {}
            (domain, ty) => return wrong(domain.map_or("no type", Domain::describe).into(), ty),
        }
        if row.from != from.is_some() {
            return wrong("two types: to, from".into(), from.or(ty));
        }
        let wide = |ty: Scalar| ty.size() >= 4;
        match (row.meaning, ty) {
            (Meaning::Bitcast, Some(ty)) if from.is_some_and(|from| from.bits() != ty.bits()) => {
                wrong(format!("types of one width: {ty} has {} bits", ty.bits()), from)
            }
            (Meaning::Atomic(_) | Meaning::CompareExchange | Meaning::Grid(_), Some(ty)) if !wide(ty) => {
                wrong("types of 32 and 64 bits".into(), Some(ty))
            }
            _ => Ok(()),
        }
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
            Operand::Immediate(bits) if slot != Ty::From && fits(*bits, ty) => Ok(()),
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
            let what = match space {
                Space::Global => "a buffer",
                Space::Shared => "memory of the block",
                Space::Any => "a buffer or memory of the block",
                Space::Constant => "a table of constants",
                Space::Pool => "a pool",
            };
            return Err(self.operand(number, format!("an element of {what}; `{}` is none", memory.name)));
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
                len: len.unwrap_or(u64::MAX),
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
