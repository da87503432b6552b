//! A builder of programs in Rust: a method an instruction, under its name; registers without a limit, typed as in Rust. What is wrong is
//! told when the program is finished, with the call's place in the source. In the order in which code passes: `value` is what programs
//! are built of, `operators` and `control` write a `draft`, `allocate` gives its registers places, `finish` makes a routine of it.

mod allocate;
mod control;
pub(crate) mod draft;
mod finish;
mod operators;
mod value;

use std::panic::Location;

use perpetua_ir::ir::{AtomicOp, ReduceOp, Scalar, Scope};

use self::draft::{Arg, Draft, Line, Part};
use crate::error::{At as VerifiedAt, BuildError, Error};
use crate::fault::Fault;
use crate::instruction::{Index, Operand, PRESET};
use crate::opcode::Opcode;
use crate::program::{Memory as Declared, MemoryKind, Parameter, Program};
use crate::text::stored;
use crate::verify::verify;

pub use self::value::{
    At, Bits, Count, Element, Float, Int, Label, Memory, Number, Place, Predicate, Register, Run,
    SignedNumber, Value, block_dim, block_idx, global_id, grid_dim, special, thread_idx,
};

/// Builds one program.
///
/// ```
/// use perpetua_isa::builder::{ProgramBuilder, global_id};
/// let mut b = ProgramBuilder::new("saxpy");
/// let (x, y) = (b.buffer::<f32>("x"), b.buffer::<f32>("y"));
/// let a = b.param::<f32>("a");
/// let i = global_id::<u64>();
/// let outside = b.setge(i, x.len());
/// b.exit_if(outside);
/// let (from, to) = (b.load(x.at(i)), b.load(y.at(i)));
/// let sum = b.fma(a, from, to);
/// b.store(y.at(i), sum);
/// let program = b.finish()?;
/// assert_eq!(program.len(), 6);
///
/// let mut b = ProgramBuilder::new("wrong");
/// let table = b.constants("table", &[1i32, 2, 3]);
/// b.load(table.at(3));
/// let error = b.finish().unwrap_err();
/// assert_eq!((error.call.as_str(), error.message.as_str()), ("ldc", "index 3 is out of bounds: `table` has 3 elements"));
/// # Ok::<(), perpetua_isa::BuildError>(())
/// ```
///
/// Values belong to the builder that made them: another takes their numbers for its own.
pub struct ProgramBuilder {
    program: Program,
    draft: Draft,
    // Where each line of the draft was asked for.
    calls: Vec<&'static Location<'static>>,
    // Where each memory and parameter was declared.
    declared: Vec<(String, &'static str, &'static Location<'static>)>,
    start: &'static Location<'static>,
    // The lowest register that stands in a row with others.
    lowest_fixed: u8,
    wrong: Option<BuildError>,
}

impl ProgramBuilder {
    /// Starts a program.
    #[track_caller]
    pub fn new(name: impl Into<String>) -> ProgramBuilder {
        let start = Location::caller();
        ProgramBuilder {
            program: Program {
                name: name.into(),
                source: start.file().into(),
                ..Program::default()
            },
            draft: Draft::default(),
            calls: Vec::new(),
            declared: Vec::new(),
            start,
            lowest_fixed: PRESET[0].0,
            wrong: None,
        }
    }

    /// Fixes the size of a block.
    pub fn block(&mut self, x: u32, y: u32, z: u32) {
        self.program.block = Some([x, y, z]);
    }

    /// Declares a buffer; it can be stored to where something does.
    #[track_caller]
    pub fn buffer<T: Number>(&mut self, name: impl Into<String>) -> Memory<T> {
        let kind = MemoryKind::Buffer {
            writable: false,
            handle: None,
        };
        self.memory("buffer", name.into(), kind)
    }

    /// Declares memory of a block.
    #[track_caller]
    pub fn shared<T: Number>(&mut self, name: impl Into<String>, len: u32) -> Memory<T> {
        self.memory("shared", name.into(), MemoryKind::Shared { len })
    }

    /// Declares a table of constants.
    #[track_caller]
    pub fn constants<T: Number>(&mut self, name: impl Into<String>, values: &[T]) -> Memory<T> {
        let bits = values.iter().map(|value| value.bits()).collect();
        self.memory("constants", name.into(), MemoryKind::Constants(bits))
    }

    #[track_caller]
    fn memory<T: Element>(&mut self, call: &'static str, name: String, kind: MemoryKind) -> Memory<T> {
        self.declared.push((name.clone(), call, Location::caller()));
        let number = self.program.memories.len();
        self.program.memories.push(Declared {
            name,
            element: T::TYPE,
            kind,
        });
        // The verifier refuses as many as would wrap.
        Memory::new(number as u16)
    }

    /// Declares a value that a launch passes.
    #[track_caller]
    pub fn param<T: Number>(&mut self, name: impl Into<String>) -> Value<T> {
        let name = name.into();
        self.declared.push((name.clone(), "param", Location::caller()));
        self.program.parameters.push(Parameter { name, ty: T::TYPE });
        let number = self.program.parameters.len() - 1;
        Value::new(Arg::Other(Operand::Parameter(number as u16)))
    }

    /// A register of its own that holds a value; [`ProgramBuilder::set`] changes it.
    #[track_caller]
    pub fn var<T: Element>(&mut self, value: impl Into<Value<T>>) -> Register<T> {
        self.computed("mov", T::TYPE, None, vec![value.into().0])
    }

    /// `mov` to a register that is there.
    #[track_caller]
    pub fn set<T: Element>(&mut self, register: Register<T>, value: impl Into<Value<T>>) {
        let args = vec![Arg::Register(register.0), value.into().0];
        self.line("mov", Some(T::TYPE), None, args);
    }

    /// Registers in a row; their places are theirs for the whole program.
    #[track_caller]
    pub fn registers<T: Number>(&mut self, count: u32) -> Run<T> {
        let first = self.draft.registers.len() as u32;
        match u8::try_from(count)
            .ok()
            .and_then(|count| self.lowest_fixed.checked_sub(count))
        {
            Some(lowest) => {
                self.lowest_fixed = lowest;
                for i in 0..count {
                    let register = self.draft.register(T::TYPE);
                    // `lowest + count` is at most the lowest before, a `u8`.
                    self.draft.fixed.insert(register, lowest + i as u8);
                }
            }
            None => self.fail(
                "registers",
                format!(
                    "{count} registers in a row, of which {} are left",
                    self.lowest_fixed
                ),
            ),
        }
        Run::new(first, count)
    }

    /// Loads an element: `ldg`, `lds` or `ldc`, by its memory.
    #[track_caller]
    pub fn load<T: Number>(&mut self, place: Place<T>) -> Register<T> {
        let call = match self.kind(place.memory) {
            Some(MemoryKind::Shared { .. }) => "lds",
            Some(MemoryKind::Constants(_)) => "ldc",
            _ => "ldg",
        };
        let place = self.place_arg(place);
        self.computed(call, T::TYPE, None, vec![place])
    }

    /// Stores to an element: `stg` or `sts`, by its memory.
    #[track_caller]
    pub fn store<T: Number>(&mut self, place: Place<T>, value: impl Into<Value<T>>) {
        let call = match self.kind(place.memory) {
            Some(MemoryKind::Shared { .. }) => "sts",
            _ => "stg",
        };
        let place = self.place_arg(place);
        self.line(call, Some(T::TYPE), None, vec![place, value.into().0]);
    }

    /// `atom_…`: changes an element in one step; gives what it was.
    #[track_caller]
    pub fn atom<T: Number>(
        &mut self,
        op: AtomicOp,
        place: Place<T>,
        value: impl Into<Value<T>>,
    ) -> Register<T> {
        let place = self.place_arg(place);
        self.computed(
            &format!("atom_{}", op.name()),
            T::TYPE,
            None,
            vec![place, value.into().0],
        )
    }

    /// `atom_cas`: replaces the element where it is as expected; gives what it was.
    #[track_caller]
    pub fn atom_cas<T: Int>(
        &mut self,
        place: Place<T>,
        expected: impl Into<Value<T>>,
        new: impl Into<Value<T>>,
    ) -> Register<T> {
        let args = vec![self.place_arg(place), expected.into().0, new.into().0];
        self.computed("atom_cas", T::TYPE, None, args)
    }

    /// `copy`: the lane copies elements.
    #[track_caller]
    pub fn copy<T: Number>(&mut self, to: Place<T>, from: Place<T>, count: impl Into<Value<u32>>) {
        let args = vec![self.place_arg(to), self.place_arg(from), count.into().0];
        self.line("copy", Some(T::TYPE), None, args);
    }

    /// `fill`: the lane sets elements.
    #[track_caller]
    pub fn fill<T: Number>(
        &mut self,
        to: Place<T>,
        value: impl Into<Value<T>>,
        count: impl Into<Value<u32>>,
    ) {
        let args = vec![self.place_arg(to), value.into().0, count.into().0];
        self.line("fill", Some(T::TYPE), None, args);
    }

    /// `reduce_…`: combines registers in a row, in their order.
    #[track_caller]
    pub fn reduce<T: Number>(&mut self, op: ReduceOp, run: Run<T>) -> Register<T> {
        let args = vec![Arg::Register(run.first), Arg::Other(Operand::Count(run.len))];
        self.computed(&format!("reduce_{}", op.name()), T::TYPE, None, args)
    }

    /// `grid_…`: combines a value of each lane of the grid into an element of a buffer.
    #[track_caller]
    pub fn grid<T: Number>(&mut self, op: ReduceOp, place: Place<T>, value: impl Into<Value<T>>) {
        let args = vec![self.place_arg(place), value.into().0];
        self.line(&format!("grid_{}", op.name()), Some(T::TYPE), None, args);
    }

    /// `tile_mma`: the m x n sums grow by the product of the m x k tile and the k x n tile, rows first.
    #[track_caller]
    pub fn tile_mma<T: Number>(&mut self, sums: Run<T>, a: Run<T>, b: Run<T>, [m, n, k]: [u32; 3]) {
        let area = |x: u32, y: u32| x.checked_mul(y);
        let sizes = [Some(sums.len), Some(a.len), Some(b.len)];
        if sizes != [area(m, n), area(m, k), area(k, n)] {
            let message = format!(
                "tiles of {m} x {n}, {m} x {k} and {k} x {n} do not fit rows of {}, {} and {} registers",
                sums.len, a.len, b.len
            );
            return self.fail("tile_mma", message);
        }
        let runs = [sums, a, b].map(|run| Arg::Register(run.first));
        let counts = [m, n, k].map(|count| Arg::Other(Operand::Count(count)));
        self.line(
            "tile_mma",
            Some(T::TYPE),
            None,
            runs.into_iter().chain(counts).collect(),
        );
    }

    /// `bar`: waits for all lanes of the block.
    #[track_caller]
    pub fn bar(&mut self) {
        self.line("bar", None, None, Vec::new());
    }

    /// `fence_…`: orders memory.
    #[track_caller]
    pub fn fence(&mut self, scope: Scope) {
        self.line(&format!("fence_{}", scope.name()), None, None, Vec::new());
    }

    fn kind(&self, memory: u16) -> Option<&MemoryKind> {
        let memory = self.program.memories.get(usize::from(memory));
        memory.map(|memory| &memory.kind)
    }

    // A place, of which what no index can be goes to registers.
    #[track_caller]
    fn place_arg<T>(&mut self, place: Place<T>) -> Arg {
        let [first, second] = place.parts.map(|part| {
            let (arg, ty) = part?;
            Some(match arg {
                Arg::Register(register) => Part::Register(register),
                Arg::Other(Operand::Special(special)) => Part::Other(Index::Special(special)),
                Arg::Other(Operand::Parameter(number)) => Part::Other(Index::Parameter(number)),
                other => {
                    let register = self.draft.register(ty);
                    self.line("mov", Some(ty), None, vec![Arg::Register(register), other]);
                    Part::Register(register)
                }
            })
        });
        Arg::Place {
            memory: place.memory,
            first,
            second,
            offset: place.offset,
        }
    }

    // A value in a register, where an instruction takes no other.
    #[track_caller]
    fn in_register<T: Element>(&mut self, call: &str, value: Value<T>) -> Arg {
        match value.0 {
            Arg::Register(_) => value.0,
            other => {
                let register: Register<T> = self.computed(call, T::TYPE, None, vec![other]);
                Arg::Register(register.0)
            }
        }
    }

    // An instruction whose first operand is a new register.
    #[track_caller]
    fn computed<T: Element>(
        &mut self,
        call: &str,
        ty: Scalar,
        from: Option<Scalar>,
        mut args: Vec<Arg>,
    ) -> Register<T> {
        let register = self.draft.register(T::TYPE);
        args.insert(0, Arg::Register(register));
        self.line(call, Some(ty), from, args);
        Register::new(register)
    }

    #[track_caller]
    fn line(&mut self, call: &str, ty: Option<Scalar>, from: Option<Scalar>, args: Vec<Arg>) {
        self.guarded(call, None, ty, from, args);
    }

    #[track_caller]
    fn guarded(
        &mut self,
        call: &str,
        guard: Option<(u32, bool)>,
        ty: Option<Scalar>,
        from: Option<Scalar>,
        args: Vec<Arg>,
    ) {
        let Some(opcode) = Opcode::from_name(call) else {
            return self.fail(call, "the instruction set has no such instruction".into());
        };
        let at = Location::caller();
        self.calls.push(at);
        self.draft.lines.push(Line {
            opcode,
            ty,
            from,
            guard,
            args,
            line: at.line(),
        });
    }

    // Keeps the first thing that is wrong.
    #[track_caller]
    fn fail(&mut self, call: &str, message: String) {
        let at = Location::caller();
        self.wrong.get_or_insert_with(|| wrong(call, at, message));
    }

    /// The program, verified. Faults name the lines of the calls.
    ///
    /// # Errors
    /// The first thing that is wrong, with its call.
    pub fn finish(mut self) -> Result<Program, BuildError> {
        if let Some(wrong) = self.wrong.take() {
            return Err(wrong);
        }
        if let Some((line, _)) = self.draft.lines.iter().enumerate().find(|(_, line)| {
            let target = line.target();
            target.is_some_and(|label| self.draft.labels.get(label as usize) == Some(&None))
        }) {
            return Err(self.wrong_at(line, "its label stands nowhere: call `place` with it".into()));
        }
        let routine = self.draft.finish();
        let routine = routine.map_err(|crowded| self.wrong_at(crowded.line, crowded.to_string()))?;
        self.program.routines = vec![routine];
        let stored: Vec<usize> = stored(&self.program).collect();
        for (i, memory) in self.program.memories.iter_mut().enumerate() {
            if let MemoryKind::Buffer { writable, .. } = &mut memory.kind {
                *writable = stored.contains(&i);
            }
        }
        match verify(&self.program) {
            Ok(_) => Ok(self.program),
            Err(Error::Verify(error)) => Err(self.wrong_verified(&error.at, &error.fault)),
            Err(other) => Err(wrong("finish", self.start, other.to_string())),
        }
    }

    fn wrong_at(&self, line: usize, message: String) -> BuildError {
        let name = self.draft.lines.get(line).map(|line| &line.opcode.row().name);
        let at = self.calls.get(line).copied().unwrap_or(self.start);
        wrong(name.map_or("finish", String::as_str), at, message)
    }

    fn wrong_verified(&self, at: &VerifiedAt, fault: &Fault) -> BuildError {
        match (at.instruction, fault) {
            (Some(line), _) => self.wrong_at(line, fault.to_string()),
            (None, Fault::Name { name, .. }) => {
                // The one that is wrong, or the last of those with the name.
                let declared = self.declared.iter().rev().find(|(known, ..)| known == name);
                let (call, at) = declared.map_or(("new", self.start), |(_, call, at)| (*call, *at));
                wrong(call, at, fault.to_string())
            }
            (None, _) => wrong("new", self.start, fault.to_string()),
        }
    }
}

fn wrong(call: &str, at: &Location<'_>, message: String) -> BuildError {
    BuildError {
        call: call.into(),
        file: at.file().into(),
        line: at.line(),
        column: at.column(),
        message,
    }
}
