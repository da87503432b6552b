//! What a case leaves in its buffers by the interpreter's account.

use super::Case;
use crate::interp::{Arg, BufferRef, InterpError, Interpreter, LaunchConfig, RaceMode};
use perpetua_ir::ir::ParamKind;
use perpetua_ir::verify::Verified;

/// Alignment of the widest type.
const ALIGN: usize = 32;

/// Operations after which a kernel counts as one that never ends.
const STEPS: u64 = 1 << 22;

/// Bytes that start at a multiple of [`ALIGN`].
struct Memory {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Memory {
    fn of(content: &[u8]) -> Memory {
        let bytes = vec![0; content.len() + ALIGN];
        let start = bytes.as_ptr().align_offset(ALIGN).min(ALIGN);
        let mut memory = Memory {
            bytes,
            start,
            len: content.len(),
        };
        memory.content().copy_from_slice(content);
        memory
    }

    fn content(&mut self) -> &mut [u8] {
        self.bytes
            .get_mut(self.start..self.start + self.len)
            .unwrap_or_default()
    }
}

/// Runs a case in the interpreter; `kernel` is the case's, verified. Gives the arguments' bytes as they are then.
pub fn interpret(
    kernel: &Verified,
    case: &Case,
    subgroup_size: u32,
    races: RaceMode,
) -> Result<Vec<Vec<u8>>, InterpError> {
    run_case(&Interpreter::new(kernel)?, case, subgroup_size, races)
}

/// Runs a case in an interpreter of its kernel, as [`interpret`] does.
pub fn run_case(
    interpreter: &Interpreter,
    case: &Case,
    subgroup_size: u32,
    races: RaceMode,
) -> Result<Vec<Vec<u8>>, InterpError> {
    let mut memories: Vec<Memory> = case.args.iter().map(|bytes| Memory::of(bytes)).collect();
    let args: Vec<Arg<'_>> = memories
        .iter_mut()
        .zip(&case.args)
        .zip(&case.kernel.params)
        .map(|((memory, bytes), param)| match param.kind {
            ParamKind::Buffer { .. } => Arg::Buffer(BufferRef::from_slice(memory.content())),
            ParamKind::Value(_) => Arg::Value(bytes),
        })
        .collect();
    interpreter.launch(&LaunchConfig {
        dynamic_shared_bytes: case.dynamic_shared,
        subgroup_size,
        races,
        step_budget: Some(STEPS),
        ..LaunchConfig::new(case.grid, case.block, &args)
    })?;
    Ok(memories.iter_mut().map(|m| m.content().to_vec()).collect())
}
