//! What untrusted programs are held to before they run; `lower` holds them to the rest.

use perpetua_ir::ir::Scope;

use crate::error::{Error, Result};
use crate::instruction::Operand;
use crate::opcode::Meaning;
use crate::program::{Memory, MemoryKind};
use crate::verify::{Verified, Where, place};

/// Most straight parts of a program: drivers take time for each that grows with their number.
pub(crate) const MAX_BLOCKS: usize = 512;

/// Most elements of all tables of constants of a program, and most with each table counted for each instruction that reads it: drivers'
/// compilers take minutes for more.
pub(crate) const MAX_CONSTANTS: usize = 256;
pub(crate) const MAX_CONSTANTS_READ: usize = 2048;

/// What untrusted programs may use.
///
/// ```
/// use perpetua_isa::{BackendType, Error, Executor, LaunchConfig, Limits, Program};
/// let limits = Limits { instructions: 10_000, memory: 1 << 20, ..Limits::default() };
/// let executor = Executor::new_with_backend(BackendType::Cpu)?.untrusted(limits);
/// assert!(matches!(executor.allocate_buffer(2 << 20), Err(Error::Limit { .. })));
///
/// let endless: Program = ".program endless\ntop:\n  bra top\n".parse()?;
/// executor.execute_program(&endless, &LaunchConfig::linear(1, 1))?;
/// let error = executor.synchronize().expect_err("the budget is spent");
/// println!("{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many instructions a lane may run in loops, about: by their weights in the specification's table.
    pub instructions: u32,
    /// How many bytes all buffers and pools of the executor may have.
    pub memory: usize,
    /// How many instructions a program may have with its calls, tiles and runs of registers written out: drivers' compilers are not made
    /// for large ones. Of its straight parts, which branches and labels divide, it may have 512, and 256 elements of tables of constants.
    pub size: usize,
}

impl Default for Limits {
    /// A hundred million instructions, a GiB, four thousand instructions of code.
    fn default() -> Limits {
        Limits {
            instructions: 100_000_000,
            memory: 1 << 30,
            size: 4096,
        }
    }
}

impl Limits {
    /// Whether a program is one that these limits let run.
    ///
    /// # Errors
    /// [`Error::Large`]; [`Error::Untrusted`] for an instruction that reaches beyond the program.
    pub fn check(&self, verified: &Verified) -> Result<()> {
        let program = verified.program();
        let within = |what, found: usize, limit: usize, at: &dyn Fn() -> Option<Where>| match found <= limit {
            true => Ok(()),
            false => Err(Error::Large {
                program: program.name.clone(),
                at: Box::new(place(program, at())),
                what,
                found: found as u64,
                limit: limit as u64,
            }),
        };
        let flow = &verified.flow;
        within(
            "instructions with calls and tiles written out",
            verified.size,
            self.size,
            &|| flow.instruction(self.size),
        )?;
        within(
            "straight parts, between branches and labels",
            flow.blocks.len(),
            MAX_BLOCKS,
            &|| flow.block_at(MAX_BLOCKS),
        )?;
        let elements = |memory: &Memory| match &memory.kind {
            MemoryKind::Constants(data) => data.len(),
            _ => 0,
        };
        let all = program.memories.iter().map(elements).sum();
        within("elements of tables of constants", all, MAX_CONSTANTS, &|| None)?;
        let mut read = 0;
        for (block, origins) in flow.blocks.iter().zip(&flow.origins) {
            for (instruction, at) in block.code.iter().zip(origins) {
                let tables = instruction.operands.iter().filter_map(|operand| match operand {
                    Operand::Place(place) => program.memories.get(usize::from(place.memory)),
                    _ => None,
                });
                read += tables.map(elements).sum::<usize>();
                within(
                    "elements of tables of constants, once for each instruction that reads one",
                    read,
                    MAX_CONSTANTS_READ,
                    &|| Some(*at),
                )?;
            }
        }
        let system = Meaning::Fence(Some(Scope::System));
        for (number, routine) in program.routines.iter().enumerate() {
            let mut code = routine.code.iter();
            if let Some(i) = code.position(|instruction| instruction.opcode.meaning() == system) {
                return Err(Error::Untrusted {
                    program: program.name.clone(),
                    at: Box::new(place(program, Some((number, i)))),
                    why: "it orders memory of the whole system",
                });
            }
        }
        Ok(())
    }

    pub(super) fn check_memory(&self, bytes: usize) -> Result<()> {
        match bytes <= self.memory {
            true => Ok(()),
            false => Err(Error::Limit {
                what: "bytes of buffers and pools",
                found: bytes as u64,
                limit: self.memory as u64,
            }),
        }
    }
}
