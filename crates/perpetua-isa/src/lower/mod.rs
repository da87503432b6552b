//! From a verified program to a kernel of the IR: control flow is brought into loops, labelled blocks and conditions
//! (`structure`), which become statements (`emit`) as instructions do (`instruction`). Knows no device.

mod budget;
mod counted;
mod element;
mod emit;
mod emitter;
mod graph;
mod instruction;
mod operand;
mod pool;
mod reduce;
mod structure;
mod unread;
mod values;
mod webs;
mod words;

use perpetua_ir::ir::{Kernel, TypeError};
use perpetua_ir::verify as kernel;

use crate::error::{At, Error, Result};
use crate::program::Program;
use crate::verify::{Verified, place};

pub(crate) use reduce::MAX_LANES;
pub(crate) use structure::MAX_DEPTH as MAX_NESTING;

/// How a program is lowered.
///
/// ```
/// use perpetua_isa::lower::{Options, lower};
/// use perpetua_isa::{library, verify::verify};
/// let program = library("atlas_add_f32")?;
/// // For a device without 64-bit integers, such as one that takes plain WGSL.
/// let options = Options { pointer_width: 32, ..Options::default() };
/// let kernel = lower(&verify(&program)?, options)?;
/// assert_eq!(kernel.kernel().name, "atlas_add_f32");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// 64, or 32 for devices without 64-bit integers; in indices `%gid` is as wide.
    pub pointer_width: u32,
    /// For untrusted programs: how many instructions a lane may run in loops, about; a lane that goes on faults. Shared memory is
    /// zero at the start then.
    pub budget: Option<u32>,
    /// Whether the grid is launched in parts. Then the kernel has six parameters more, of `u32`: the numbers of the launch's first block
    /// along x, y and z, and the blocks of the whole grid.
    pub in_parts: bool,
    /// Whether the device has ordered atomics (`Capability::DeviceOrdering`), which pools use where they exist.
    pub is_ordered: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            pointer_width: 64,
            budget: None,
            in_parts: false,
            is_ordered: false,
        }
    }
}

/// Makes a kernel of a program. Buffers and parameters are its parameters, buffers first, each in the program's order.
///
/// # Errors
/// [`Error::Kernel`] where the program breaks a rule of kernels, such as a barrier to which not all lanes come.
pub fn lower(verified: &Verified, options: Options) -> Result<kernel::Verified> {
    let program = verified.program();
    let broken = |line: u32, message: String| Error::Kernel {
        program: program.name.clone(),
        at: Box::new(at(program, line)),
        message,
    };
    let kernel = kernel_of(verified, options).map_err(|error| broken(0, error.to_string()))?;
    kernel::verify(kernel).map_err(|errors| match errors.errors.first() {
        Some(first) => broken(first.line, words::in_words(program, &first.cause)),
        None => broken(0, errors.to_string()),
    })
}

// The first instruction of a line of the kernel: the program's, or its number from 1 on where the program has no lines.
fn at(program: &Program, line: u32) -> At {
    let found = program.routines.iter().enumerate().find_map(|(number, routine)| {
        let at = match routine.lines.is_empty() {
            true => (line as usize).checked_sub(1).filter(|i| *i < routine.code.len()),
            false => routine.lines.iter().position(|other| *other == line),
        };
        at.map(|i| (number, i))
    });
    place(program, found)
}

fn kernel_of(verified: &Verified, options: Options) -> std::result::Result<Kernel, TypeError> {
    let graph = graph::Graph::new(&verified.flow);
    let structure = structure::structure(&verified.flow, &graph);
    emit::emit(verified, &structure, options)
}
