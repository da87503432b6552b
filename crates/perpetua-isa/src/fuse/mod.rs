//! Fusion: adjacent element-wise programs as one. Each lane of such a program reads and writes its own element alone, so a lane can go on
//! with the next program at once, and what one program stores the next need not load. In the order of their work: `follow` knows which
//! registers hold the lane's number, `numbers` translates instructions, `tidy` takes out what nothing needs any more.

mod follow;
mod numbers;
mod tidy;

use std::collections::{HashMap, HashSet};

use perpetua_device::LaunchConfig;
use perpetua_ir::ir::Scalar;

use self::follow::One;
use self::numbers::{own_element, writes};
use crate::builder::draft::{Arg, Draft, Line};
use crate::error::{Error, FuseError, Result};
use crate::executor::{Arguments, Executor};
use crate::instruction::{Guard, Instruction, Operand, PRESET};
use crate::opcode::{Meaning, Opcode, Space};
use crate::program::{Memory, MemoryKind, Parameter, Program};
use crate::verify::verify;

const ELEMENT: &str = "a lane of an element-wise program reads and writes its own element, at its number in the grid, as `x[%gid]`";

/// Most lanes of a launch of fused programs: numbers of 32 bits tell so many apart.
const MAX_LANES: u64 = 1 << 32;

/// How many elements a buffer has, where that is known.
pub type Length<'a> = &'a dyn Fn(&Memory) -> Option<u64>;

/// One program that does what several do one after the other, launched alike, and its arguments. Where none of them faults, all
/// buffers are the same in the end, to the bit.
///
/// A program is element-wise where it runs straight on, each lane with its own elements (at `[%gid]`, or a register that holds this number,
/// however it was computed), and ends lanes beyond a buffer's length in front of that, if at all. Memories of different programs are one
/// where they have one handle, or, without handles, one name. `length` says how many elements a buffer has, where that is known.
/// The launch has at most 2^32 lanes.
///
/// # Errors
/// [`Error::Fuse`] names the program and the instruction that stands against it; [`Error::Verify`] where a program is wrong.
pub fn fuse(programs: &[(&Program, &Arguments)], length: Length<'_>) -> Result<(Program, Arguments)> {
    let mut fusion = Fusion::default();
    let names: Vec<&str> = programs
        .iter()
        .map(|(program, _)| program.name.as_str())
        .collect();
    fusion.out.name = format!("fused_{}", names.join("_")).chars().take(200).collect();
    for (i, (program, arguments)) in programs.iter().enumerate() {
        verify(program)?;
        let mut one = One::new(program);
        let done = fusion.declare(&mut one, arguments, i == 0);
        let done = done.and_then(|()| fusion.code(&mut one, length, i == 0));
        done.map_err(|why| one.error(why))?;
    }
    fusion.finish()
}

/// [`fuse`] for launches of this shape.
///
/// # Errors
/// As [`fuse`]; and [`Error::Fuse`] where lanes of the launch share elements, or are too many.
pub fn fuse_for(
    programs: &[(&Program, &Arguments)],
    config: &LaunchConfig,
    length: Length<'_>,
) -> Result<(Program, Arguments)> {
    // Lanes of one number would share an element, and run apart.
    let rows = [config.grid.y, config.grid.z, config.block.y, config.block.z];
    let lanes = u64::from(config.grid.x) * u64::from(config.block.x);
    let why = match (rows == [1; 4], lanes <= MAX_LANES) {
        (true, true) => return fuse(programs, length),
        (false, _) => "lanes that differ along y or z have the same element: launch along x alone",
        (true, false) => "numbers of 32 bits do not tell more than 2^32 lanes apart",
    };
    let names = programs.iter().map(|(program, _)| program.name.as_str());
    Err(Error::from(FuseError {
        program: names.collect::<Vec<_>>().join(", "),
        place: String::new(),
        why,
    }))
}

impl Executor {
    /// One program that does on this executor what several do one after the other with this shape of launch: [`fuse`], of which
    /// this knows how long buffers are.
    ///
    /// # Errors
    /// As [`fuse`]; and [`Error::NoBuffer`], or [`Error::Unbound`] for a buffer without a handle.
    pub fn fuse(
        &self,
        programs: &[(&Program, &Arguments)],
        config: &LaunchConfig,
    ) -> Result<(Program, Arguments)> {
        let mut sizes = HashMap::new();
        for (program, _) in programs {
            for memory in program.buffers() {
                let MemoryKind::Buffer {
                    handle: Some(handle), ..
                } = memory.kind
                else {
                    return Err(Error::Unbound {
                        program: program.name.clone(),
                        name: memory.name.clone(),
                    });
                };
                sizes.insert(
                    handle,
                    (self.buffer_size(handle)? / memory.element.size() as usize) as u64,
                );
            }
        }
        let length = |memory: &Memory| match memory.kind {
            MemoryKind::Buffer { handle, .. } => handle.and_then(|handle| sizes.get(&handle).copied()),
            _ => None,
        };
        fuse_for(programs, config, &length)
    }
}

/// Which memory a buffer is.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Handle(u64),
    Name(String),
}

/// Beyond which length lanes end: the comparison's type, and the buffer.
type Bound = Option<(Scalar, u16)>;

#[derive(Default)]
struct Fusion {
    out: Program,
    arguments: Arguments,
    draft: Draft,
    keys: HashMap<Key, u16>,
    // What each lane's element of a buffer is known to be.
    known: HashMap<u16, Arg>,
    // The line of the last store to a buffer that nothing has needed since.
    stored: HashMap<u16, usize>,
    // Lines of stores that a later one overwrites.
    dropped: HashSet<usize>,
    bound: Option<Bound>,
}

type Step<T = ()> = std::result::Result<T, &'static str>;

impl Fusion {
    fn declare(&mut self, one: &mut One<'_>, arguments: &Arguments, first: bool) -> Step {
        match (first, self.out.block, one.program.block) {
            (true, _, block) => self.out.block = block,
            (false, a, b) if a == b => {}
            _ => return Err("its blocks have another size"),
        }
        for memory in &one.program.memories {
            let number = match &memory.kind {
                MemoryKind::Buffer { writable, handle } => self.buffer(memory, *writable, *handle)?,
                MemoryKind::Constants(_) => self.add(memory),
                MemoryKind::Shared { .. } | MemoryKind::Pool { .. } => {
                    return Err("it has memory that lanes share");
                }
            };
            one.memories.push(number);
        }
        for parameter in &one.program.parameters {
            let name = self.out.unused_name(&parameter.name);
            if let Some((ty, bytes)) = arguments.get(&parameter.name) {
                self.arguments = std::mem::take(&mut self.arguments).with_bytes(name.as_str(), ty, bytes);
            }
            one.parameters.push(self.out.parameters.len() as u16);
            let ty = parameter.ty;
            self.out.parameters.push(Parameter { name, ty });
        }
        Ok(())
    }

    fn add(&mut self, memory: &Memory) -> u16 {
        let name = self.out.unused_name(&memory.name);
        self.out.memories.push(Memory {
            name,
            ..memory.clone()
        });
        self.out.memories.len() as u16 - 1
    }

    fn buffer(&mut self, memory: &Memory, writes: bool, handle: Option<u64>) -> Step<u16> {
        let key = handle.map_or_else(|| Key::Name(memory.name.clone()), Key::Handle);
        let Some(number) = self.keys.get(&key).copied() else {
            let number = self.add(memory);
            self.keys.insert(key, number);
            return Ok(number);
        };
        let Some(known) = self.out.memories.get_mut(usize::from(number)) else {
            return Ok(number);
        };
        if known.element != memory.element {
            return Err("another program has elements of another type in the same buffer");
        }
        if let MemoryKind::Buffer { writable, .. } = &mut known.kind {
            *writable |= writes;
        }
        Ok(number)
    }

    fn code<'a>(&mut self, one: &mut One<'a>, length: Length<'_>, first: bool) -> Step {
        let [own] = one.program.routines.as_slice() else {
            return Err("it has routines");
        };
        let written = |preset: u8| {
            own.code
                .iter()
                .any(|i| i.operands.first() == Some(&Operand::Register(preset)) && writes(i))
        };
        if PRESET.iter().any(|(register, ..)| written(*register)) {
            return Err("it writes to a register that holds something at the start");
        }
        let mut bound: Bound = None;
        let mut accessed = false;
        for (i, instruction) in own.code.iter().enumerate() {
            one.instruction = Some(instruction);
            if one.is_end(instruction) {
                let Some(guard) = instruction.guard else {
                    match i + 1 == own.code.len() {
                        true => break,
                        false => return Err("lanes end in the middle of it"),
                    }
                };
                let Some((ty, memory)) = one.end(guard) else {
                    return Err("lanes end where their number is not compared with a length");
                };
                if accessed || bound.is_some() {
                    return Err("lanes end behind an access to memory");
                }
                bound = Some((ty, memory));
                if first {
                    self.exit(one, guard);
                }
                continue;
            }
            accessed |= matches!(instruction.opcode.meaning(), Meaning::Load(_) | Meaning::Store(_));
            self.instruction(one, instruction)?;
            one.follow(instruction);
        }
        one.instruction = None;
        match (self.bound, bound) {
            (None, _) => {
                self.bound = Some(bound);
                Ok(())
            }
            (Some(a), b) if a == b => Ok(()),
            (Some(Some(a)), Some(b)) if self.equal([a, b], length) => Ok(()),
            _ => Err("its lanes end beyond another length"),
        }
    }

    // Whether lanes end alike. Numbers of 32 and of 64 bits do where the length is one of 32.
    fn equal(&self, [(a, m), (b, n)]: [(Scalar, u16); 2], length: Length<'_>) -> bool {
        let of = |number: u16| self.out.memories.get(usize::from(number)).and_then(length);
        let len = of(m);
        len.is_some_and(|len| a == b || len < 1 << 32) && len == of(n)
    }

    fn instruction(&mut self, one: &mut One<'_>, instruction: &Instruction) -> Step {
        match instruction.opcode.meaning() {
            Meaning::Load(Space::Global) => self.load(one, instruction),
            Meaning::Store(Space::Global) => self.store(one, instruction),
            Meaning::Load(Space::Constant) => self.line(one, instruction),
            value if value.is_value() => self.line(one, instruction),
            Meaning::Nop => Ok(()),
            Meaning::Branch | Meaning::Loop | Meaning::Call => {
                Err("an element-wise program runs straight on")
            }
            _ => Err(ELEMENT),
        }
    }

    fn load(&mut self, one: &mut One<'_>, instruction: &Instruction) -> Step {
        let [Operand::Register(_), Operand::Place(place)] = instruction.operands.as_slice() else {
            return Err(ELEMENT);
        };
        let memory = own_element(one, place)?;
        let mut line = self.translated(one, instruction)?;
        match (self.known.get(&memory).copied(), instruction.guard) {
            (Some(value), _) => self.moved(line, value),
            (None, Some(_)) => self.draft.lines.push(line),
            (None, None) => {
                let ty = instruction.ty.unwrap_or(Scalar::U32);
                let value = Arg::Register(self.draft.register(ty));
                let to = std::mem::replace(&mut line.args[0], value);
                self.draft.lines.push(line.clone());
                line.args[0] = to;
                self.known.insert(memory, value);
                self.moved(line, value);
            }
        }
        Ok(())
    }

    // `line`, a load, as a move.
    fn moved(&mut self, mut line: Line, value: Arg) {
        if let Some(mov) = Opcode::from_name("mov") {
            line.opcode = mov;
            line.args.truncate(1);
            line.args.push(value);
            self.draft.lines.push(line);
        }
    }

    fn store(&mut self, one: &mut One<'_>, instruction: &Instruction) -> Step {
        let [Operand::Place(place), _] = instruction.operands.as_slice() else {
            return Err(ELEMENT);
        };
        let memory = own_element(one, place)?;
        let mut line = self.translated(one, instruction)?;
        if instruction.guard.is_some() {
            self.known.remove(&memory);
            self.stored.remove(&memory);
            self.draft.lines.push(line);
            return Ok(());
        }
        // The register may hold something else when the next program asks.
        if let (Arg::Register(_), Some(mov)) = (line.args[1], Opcode::from_name("mov")) {
            let ty = instruction.ty.unwrap_or(Scalar::U32);
            let kept = Arg::Register(self.draft.register(ty));
            self.draft.lines.push(Line {
                opcode: mov,
                args: vec![kept, line.args[1]],
                ..line.clone()
            });
            line.args[1] = kept;
        }
        self.known.insert(memory, line.args[1]);
        self.dropped
            .extend(self.stored.insert(memory, self.draft.lines.len()));
        self.draft.lines.push(line);
        Ok(())
    }

    // Ends lanes where a guard says.
    fn exit(&mut self, one: &mut One<'_>, guard: Guard) {
        let guard = Some((self.register(one, true, guard.predicate), guard.negated));
        self.draft
            .lines
            .extend(Opcode::from_name("exit").map(|opcode| Line {
                opcode,
                ty: None,
                from: None,
                guard,
                args: Vec::new(),
                line: 0,
            }));
    }

    fn line(&mut self, one: &mut One<'_>, instruction: &Instruction) -> Step {
        let line = self.translated(one, instruction)?;
        self.draft.lines.push(line);
        Ok(())
    }

    fn finish(mut self) -> Result<(Program, Arguments)> {
        let mut number = 0;
        self.draft.lines.retain(|_| {
            number += 1;
            !self.dropped.contains(&(number - 1))
        });
        tidy::tidy(&mut self.draft);
        let mut routine = self.draft.finish().map_err(|crowded| {
            Error::from(FuseError {
                program: self.out.name.clone(),
                place: String::new(),
                why: match crowded.what() {
                    "predicates" => "together they need more predicates at once than a lane has",
                    _ => "together they need more registers at once than a lane has",
                },
            })
        })?;
        routine.lines.clear();
        // What the allocation has made a copy to itself.
        let is_copy =
            |i: &Instruction| i.opcode.meaning() == Meaning::Move && i.operands[..1] == i.operands[1..];
        routine.code.retain(|instruction| !is_copy(instruction));
        self.out.routines = vec![routine];
        verify(&self.out)?;
        Ok((self.out, self.arguments))
    }
}
