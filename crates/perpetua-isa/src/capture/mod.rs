//! Capture: a kernel of the IR as a program. Values of several components become a register a component; what programs have no
//! instruction for is an error that names it. `statements` writes control flow and effects, `values` what gives values.

mod statements;
mod values;

use std::collections::{HashMap, HashSet};

use perpetua_device::KernelSpec;
use perpetua_ir::ir::{Access, Checks, Kernel, ParamKind, Scalar, Type};
use perpetua_ir::pass::inline_functions;
use perpetua_ir::verify::Verified;

use crate::builder::draft::{Arg, Draft};
use crate::error::{CaptureError, Error, Result};
use crate::instruction::Operand;
use crate::names::is_reserved;
use crate::program::{Memory, MemoryKind, Parameter, Program};
use crate::verify::verify;

/// A program that does what a kernel does: buffers and parameters under the kernel's names (with `_` behind those that are registers). A
/// parameter of several numbers becomes one for each, under the names of fields or, of arrays and vectors, numbers behind `_`: `view_zoom`,
/// `at_0`. One of `bool` becomes a `u8`, which is true where it is not 0.
///
/// ```
/// use perpetua_ir::ir::*;
/// let mut k = KernelBuilder::new("twice");
/// let x = k.buffer("x", Type::F32, Access::ReadWrite);
/// let i = k.global_id(Axis::X)?;
/// let v = k.load(Place::element(x, i))?;
/// let v = k.binary(perpetua_ir::ops::BinaryOp::Add, v, v)?;
/// k.store(Place::element(x, i), v)?;
/// let program = perpetua_isa::capture(&perpetua_ir::verify::verify(k.finish())?)?;
/// assert!(program.to_string().contains("add.f32"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error::Capture`] where the kernel uses what programs have nothing equal to; [`Error::Verify`] where it has more instructions or declarations
/// than a program may.
pub fn capture(kernel: &Verified) -> Result<Program> {
    let kernel = inline_functions(kernel.kernel());
    let mut capture = Capture::new(&kernel);
    capture.kernel()?;
    let crowded = |crowded: &dyn std::fmt::Display| format!("code in which {crowded}");
    let routine = capture.draft.finish().map_err(|error| {
        let lines = capture.draft.lines.get(error.line);
        capture.error(
            lines.map_or(0, |line| line.line),
            crowded(&error),
            "a lane of a program has so many",
        )
    })?;
    let mut program = capture.program;
    program.routines = vec![routine];
    verify(&program)?;
    Ok(program)
}

/// What a function marked `#[kernel]` does, as a program, with `usize` of 64 bits.
///
/// # Errors
/// As [`capture`].
pub fn capture_kernel(kernel: &dyn KernelSpec) -> Result<Program> {
    capture(&*kernel.verified(64)?)
}

const SCALARS_ONLY: &str = "memories of programs hold integers and floats";

pub(super) struct Capture<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) program: Program,
    pub(super) draft: Draft,
    // The memory of each buffer parameter, shared variable and constant table.
    pub(super) buffers: HashMap<u32, u16>,
    pub(super) shared: HashMap<u32, u16>,
    pub(super) constants: HashMap<u32, u16>,
    // The first parameter of each value parameter.
    pub(super) parameters: HashMap<u32, u16>,
    // The components of each value.
    pub(super) values: HashMap<u32, Vec<Arg>>,
    // The registers of each variable.
    pub(super) locals: HashMap<u32, Vec<u32>>,
    pub(super) frames: Vec<Frame>,
    pub(super) line: u32,
}

/// What can be left: where its end is, and the head of a loop.
pub(super) struct Frame {
    pub(super) head: Option<u32>,
    pub(super) end: u32,
}

impl<'a> Capture<'a> {
    fn new(kernel: &'a Kernel) -> Capture<'a> {
        Capture {
            kernel,
            program: Program {
                name: kernel.name.clone(),
                source: kernel.source.to_string(),
                block: kernel.block_size,
                ..Program::default()
            },
            draft: Draft::default(),
            buffers: HashMap::new(),
            shared: HashMap::new(),
            constants: HashMap::new(),
            parameters: HashMap::new(),
            values: HashMap::new(),
            locals: HashMap::new(),
            frames: Vec::new(),
            line: 0,
        }
    }

    pub(super) fn error(&self, line: u32, what: impl Into<String>, why: &'static str) -> Error {
        Error::from(CaptureError {
            kernel: self.kernel.name.clone(),
            line,
            what: what.into(),
            why,
        })
    }

    pub(super) fn refuse<T>(&self, what: impl Into<String>, why: &'static str) -> Result<T> {
        Err(self.error(self.line, what, why))
    }

    fn kernel(&mut self) -> Result<()> {
        if self.kernel.checks != Checks::On {
            return self.refuse(
                "a kernel without checks",
                "programs always check: capture it before checks are made explicit, or with them on",
            );
        }
        if self.kernel.contract {
            return self.refuse(
                "a contracted kernel",
                "programs round each operation: use `mul_add` where one rounding is wanted",
            );
        }
        self.declarations()?;
        for (i, local) in self.kernel.body.locals.iter().enumerate() {
            let leaves = local.ty.leaves().into_iter();
            let registers = leaves.map(|(ty, _)| self.draft.register(ty)).collect();
            self.locals.insert(i as u32, registers);
        }
        self.block(&self.kernel.body.block)
    }

    fn declarations(&mut self) -> Result<()> {
        let mut taken = HashSet::new();
        let mut name = |name: &str| {
            let mut name = name.to_owned();
            while is_reserved(&name) || !taken.insert(name.clone()) {
                name.push('_');
            }
            name
        };
        let mut memories = Vec::new();
        for (i, param) in self.kernel.params.iter().enumerate() {
            let i = i as u32;
            match &param.kind {
                ParamKind::Buffer { element, access } => {
                    let element = self.scalar(element, || format!("the buffer `{}`", param.name))?;
                    self.buffers.insert(i, memories.len() as u16);
                    let kind = MemoryKind::Buffer {
                        writable: *access == Access::ReadWrite,
                        handle: None,
                    };
                    memories.push((name(&param.name), element, kind));
                }
                ParamKind::Value(ty) => {
                    let number = self.program.parameters.len() as u16;
                    self.parameters.insert(i, number);
                    let mut numbers = Vec::new();
                    numbers_of(&param.name, ty, &mut numbers);
                    for (of, ty) in numbers {
                        let name = name(&of);
                        self.program.parameters.push(Parameter { name, ty });
                    }
                }
            }
        }
        for (i, shared) in self.kernel.shared.iter().enumerate() {
            let what = || format!("the shared variable `{}`", shared.name);
            if shared.dynamic {
                return self.refuse(
                    what(),
                    "programs say how long memory of a block is: declare an array",
                );
            }
            let (element, len) = match &shared.ty {
                Type::Array(element, len) => (&**element, *len),
                other => (other, 1),
            };
            let element = self.scalar(element, what)?;
            self.shared.insert(i as u32, memories.len() as u16);
            memories.push((name(&shared.name), element, MemoryKind::Shared { len }));
        }
        for (i, table) in self.kernel.constants.iter().enumerate() {
            let element = self.scalar(&table.element.into(), || {
                format!("the table of constants `{}`", table.name)
            })?;
            self.constants.insert(i as u32, memories.len() as u16);
            let kind = MemoryKind::Constants(table.data.clone());
            memories.push((name(&table.name), element, kind));
        }
        let memory = |(name, element, kind)| Memory { name, element, kind };
        self.program.memories = memories.into_iter().map(memory).collect();
        Ok(())
    }

    fn scalar(&self, ty: &Type, what: impl Fn() -> String) -> Result<Scalar> {
        match ty.as_scalar() {
            Some(ty) if ty != Scalar::Bool => Ok(ty),
            _ => self.refuse(format!("{} of {ty}", what()), SCALARS_ONLY),
        }
    }

    /// The numbers of a value parameter.
    pub(super) fn parameter(&mut self, i: u32) -> Result<Vec<Arg>> {
        let ty = self.kernel.params.get(i as usize).map(|param| &param.kind);
        let (Some(first), Some(ParamKind::Value(ty))) = (self.parameters.get(&i).copied(), ty) else {
            return self.refuse("a parameter", "it is no value");
        };
        let mut all = Vec::new();
        for ((ty, _), number) in ty.leaves().into_iter().zip(first..) {
            let number = Arg::Other(Operand::Parameter(number));
            match ty {
                Scalar::Bool => {
                    let args = vec![number, Self::immediate(0)];
                    all.extend(self.computed("setne", Scalar::U8, None, args)?);
                }
                _ => all.push(number),
            }
        }
        Ok(all)
    }

    pub(super) fn immediate(bits: u64) -> Arg {
        Arg::Other(Operand::Immediate(bits))
    }
}

/// The numbers of a value, in the order of [`Type::leaves`], each with its name and the type of its parameter.
fn numbers_of(name: &str, ty: &Type, all: &mut Vec<(String, Scalar)>) {
    match ty {
        Type::Scalar(Scalar::Bool) => all.push((name.to_owned(), Scalar::U8)),
        Type::Scalar(ty) => all.push((name.to_owned(), *ty)),
        Type::Struct(of) => {
            for field in &of.fields {
                numbers_of(&format!("{name}_{}", field.name), &field.ty, all);
            }
        }
        Type::Vector(..) | Type::Array(..) => {
            for i in 0..ty.component_count() {
                if let Some(component) = ty.component(i) {
                    numbers_of(&format!("{name}_{i}"), &component, all);
                }
            }
        }
    }
}
