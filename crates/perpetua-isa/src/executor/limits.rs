//! What programs that nobody trusts are held to before they run; `lower` holds them to the rest.

use perpetua_ir::ir::Scope;

use crate::error::{Error, Result};
use crate::opcode::Meaning;
use crate::program::Program;

/// What programs that nobody trusts may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many instructions a lane may run in loops, about.
    pub instructions: u32,
    /// How many bytes all buffers and pools of the executor may have.
    pub memory: usize,
    /// How many instructions a program may have: drivers' compilers are not made for large ones.
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
    pub(super) fn check(&self, program: &Program) -> Result<()> {
        let within = |what, found: usize, limit: usize| match found <= limit {
            true => Ok(()),
            false => Err(Error::Limit {
                what,
                found: found as u64,
                limit: limit as u64,
            }),
        };
        within("instructions", program.len(), self.size)?;
        let system = Meaning::Fence(Some(Scope::System));
        let mut code = program.routines.iter().flat_map(|routine| &routine.code);
        match code.any(|instruction| instruction.opcode.meaning() == system) {
            true => Err(Error::Backend(
                "a program that nobody trusts orders no memory of the system: `fence_system`".into(),
            )),
            false => Ok(()),
        }
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
