//! The lockstep interpreter: the meaning of the IR, which every target is measured against, and the CPU's way to run what
//! has neither native Rust nor machine code. A block's lanes execute each operation together, over arrays of lanes, under masks.
//!
//! In the order in which a kernel passes through: `program` is the flat form in which it runs, `flatten` makes it, `launch`
//! checks arguments, `turns` hands out blocks, `machine` runs one, through `memory`, watched by `race`; `gangs` runs them
//! by machine code where there is some, which `code` generates.
//!
//! ```
//! use perpetua_cpu::interp::{Arg, BufferRef, Interpreter, LaunchConfig};
//! use perpetua_ir::ir::*;
//! use perpetua_ir::ops::BinaryOp;
//! use perpetua_ir::verify::verify;
//! let mut k = KernelBuilder::new("double");
//! let x = k.buffer("x", Type::F32, Access::ReadWrite);
//! let i = k.global_id(Axis::X)?;
//! let v = k.load(Place::element(x, i))?;
//! let v = k.binary(BinaryOp::Add, v, v)?;
//! k.store(Place::element(x, i), v)?;
//! let kernel = verify(k.finish())?;
//!
//! let mut data: Vec<f32> = (0..256).map(|i| i as f32).collect();
//! let interpreter = Interpreter::new(&kernel)?;
//! let args = [Arg::Buffer(BufferRef::from_slice(&mut data))];
//! interpreter.launch(&LaunchConfig::new([4, 1, 1], [64, 1, 1], &args))?;
//! assert_eq!(data[100], 200.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Numbers.** Every operator means what [`ops::eval`](perpetua_ir::ops::eval) says, on every processor the same. Nothing is
//! contracted, also where a kernel would allow it.
//!
//! **Faults.** A faulting load gives zero, a faulting store or atomic does not happen, and the lane goes dead: it executes
//! nothing more and counts as arrived at barriers. The other lanes and blocks run on; the launch then gives the
//! first fault of the lowest block that had one. Where what lanes have written to the block's memory decides how often they come to
//! barriers, all lanes of a block end at the first barrier behind a fault. A kernel whose checks are off is checked all the same: what is
//! undefined elsewhere is a fault here. One whose checks are explicit does what its statements say.
//! Machine code, which runs a block's lanes in gangs one after another, tells "first" by barriers passed and turns of loops made.
//!
//! **Progress.** Blocks run one after another, but one that loops for long gives others their turn, so
//! blocks that wait for each other by atomics make progress. Lanes of one block run in lockstep: one that
//! waits in a loop for another lane of its group may wait for ever. A step budget ends that.

#[cfg(machine_code)]
mod code;
mod error;
mod flatten;
#[cfg(machine_code)]
mod gangs;
mod launch;
mod machine;
mod mask;
mod memory;
mod program;
#[cfg(test)]
pub(crate) use race::trace;
mod race;
mod turns;

#[cfg(test)]
mod tests;

use std::fmt;

pub use error::{AccessKind, InterpError, Race, RacingAccess, Space};
pub use launch::{Arg, FaultSink, LaunchConfig, MAX_LANES, Parallel, PrintSink, Printed, RaceMode, Spread};
pub use memory::BufferRef;

#[cfg(machine_code)]
pub use code::notes::{Apart, Done, Note, Noted};
#[cfg(machine_code)]
pub use code::{Refusal, Width};
#[cfg(machine_code)]
pub use gangs::MachineCode;
use perpetua_ir::fault::FaultSite;
use perpetua_ir::verify::Verified;
use program::Program;

/// A kernel made ready to run. May be launched many times, from several threads at once.
pub struct Interpreter {
    program: Program,
    #[cfg(machine_code)]
    code: Option<gangs::Installed>,
}

impl Interpreter {
    /// Prepares a kernel: some microseconds for each hundred statements.
    ///
    /// # Errors
    /// [`InterpError::Malformed`] for a kernel that the verifier should not have passed.
    pub fn new(kernel: &Verified) -> Result<Interpreter, InterpError> {
        let (kernel, facts) = (kernel.kernel(), kernel.facts());
        let mut program = flatten::flatten(kernel).map_err(|cause| InterpError::Malformed {
            kernel: kernel.name.clone(),
            cause,
        })?;
        program.ends_together = facts.relies_on_shared();
        Ok(Interpreter {
            program,
            #[cfg(machine_code)]
            code: None,
        })
    }

    /// Takes machine code, which launches then run instead; those that look for races, and those whose sizes the code does not
    /// allow for (2³¹ lanes along an axis, buffers whose offsets do not fit), are interpreted as before.
    ///
    /// # Safety
    /// `entry` must be the address of a copy of the code's bytes in memory that stays executable and unchanged while `keep`
    /// lives, and the code must have been made of the same kernel on a processor that has its width.
    #[cfg(machine_code)]
    pub unsafe fn install(
        &mut self,
        code: MachineCode,
        entry: *const u8,
        keep: Box<dyn std::any::Any + Send + Sync>,
    ) {
        self.code = Some(gangs::Installed::new(code, entry, keep));
    }

    /// Whether launches run machine code.
    pub fn has_code(&self) -> bool {
        #[cfg(machine_code)]
        return self.code.is_some();
        #[cfg(not(machine_code))]
        false
    }

    /// Whether blocks of a launch may wait for each other, or for other launches.
    pub fn may_wait(&self) -> bool {
        #[cfg(machine_code)]
        if let Some(code) = &self.code {
            return code.may_wait();
        }
        true
    }

    /// Prepares a kernel whose checks have been made explicit, with the names of its fault sites: those of its fault
    /// statements, in order, functions first ([`Explicit::faults`](perpetua_ir::pass::checks::Explicit::faults)).
    ///
    /// # Errors
    /// As [`Interpreter::new`].
    pub fn with_sites(kernel: &Verified, sites: &[FaultSite]) -> Result<Interpreter, InterpError> {
        let mut interpreter = Interpreter::new(kernel)?;
        let statements = interpreter.program.statement_sites.clone();
        for (at, site) in statements.into_iter().zip(sites) {
            if let Some(slot) = interpreter.program.sites.get_mut(at as usize) {
                slot.clone_from(site);
            }
        }
        Ok(interpreter)
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.program.name
    }

    /// Runs the kernel over a grid; returns when all its blocks are done.
    ///
    /// # Errors
    /// Bad arguments or an impossible shape (nothing has run then); a fault, a race where races are looked for, a
    /// barrier that lanes did not all reach, a spent budget, or cancellation (buffers have been written to then).
    pub fn launch(&self, config: &LaunchConfig<'_>) -> Result<(), InterpError> {
        #[cfg(machine_code)]
        if let Some(code) = &self.code
            && code.allows(config)
        {
            return code.launch(config);
        }
        turns::launch(&self.program, config)
    }
}

impl fmt::Debug for Interpreter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interpreter")
            .field("kernel", &self.program.name)
            .field("operations", &self.program.code.len())
            .finish_non_exhaustive()
    }
}
