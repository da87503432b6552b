//! From a verified program to a kernel of the IR: control flow is brought into loops, labelled blocks and conditions
//! (`structure`), which become statements (`emit`) as instructions do (`instruction`). Knows no device.

mod emit;
mod emitter;
mod graph;
mod instruction;
mod operand;
mod reduce;
mod structure;
mod values;

use perpetua_ir::ir::{Kernel, TypeError};
use perpetua_ir::verify as kernel;

use crate::error::{Error, Result};
use crate::verify::Verified;

/// Makes a kernel of a program. Buffers and parameters are its parameters, buffers first, each in the program's order.
/// `pointer_width`: 64, or 32 for devices without 64-bit integers; in indices `%gid` is as wide.
///
/// # Errors
/// [`Error::Kernel`] where the program breaks a rule of kernels, such as a barrier to which not all lanes come.
pub fn lower(verified: &Verified, pointer_width: u32) -> Result<kernel::Verified> {
    let program = verified.program();
    let broken = |message: String| Error::Kernel {
        program: program.name.clone(),
        message,
    };
    let kernel = kernel_of(verified, pointer_width).map_err(|error| broken(error.to_string()))?;
    kernel::verify(kernel).map_err(|errors| broken(errors.to_string()))
}

fn kernel_of(verified: &Verified, pointer_width: u32) -> std::result::Result<Kernel, TypeError> {
    let graph = graph::Graph::new(&verified.flow);
    let structure = structure::structure(&verified.flow, &graph);
    // What crosses the borders of straight code lies in variables; the first pass finds out what does.
    let crossing = emit::emit(verified, &structure, pointer_width, None)?.1;
    Ok(emit::emit(verified, &structure, pointer_width, Some(&crossing))?.0)
}
