//! Programs as data: a portable instruction set. A program is assembled, verified, stored, sent over a wire, and run on every backend
//! with the same result.
//!
//! A [`Program`] is [`Instruction`]s, whose kinds are the rows of the [`Opcode`]s' table. It is written as [`text`], stored in [`binary`] form,
//! built from Rust ([`builder`]), or captured from a kernel ([`capture()`]). [`verify`](verify::verify) checks it, [`lower`](lower::lower)
//! makes a kernel of the IR of it, and the [`Executor`] runs that on a device.
//!
//! [`lanes`] runs simple ones instruction by instruction, as what compiled ones are held against.
//!
//! Programs need not be written: [`library()`] has one for each operator and type, and more.
//!
//! A lane has 256 registers, r0 to r255, which hold what was written last, of any type, and 16 predicates, p0 to p15. Before
//! the first instruction r252 is the lane's index in its block, r253 the block's index, r254 the size of a block (all `u32`, along x), and r255 the
//! lane's index in the grid (`u64`). An index out of bounds or a division by zero is a fault that names the program's line, as in any kernel.
//! [`specification`] has all rules.

pub mod binary;
pub mod builder;
mod capture;
mod cost;
mod declaration;
mod diagnostic;
mod error;
mod executor;
mod fault;
mod fuse;
mod hologram;
pub mod instruction;
pub mod lanes;
pub mod library;
pub mod lower;
mod names;
mod opcode;
mod pool;
mod program;
pub mod serve;
pub mod specification;
pub mod text;
pub mod verify;

pub use builder::ProgramBuilder;
pub use capture::{capture, capture_kernel};
pub use diagnostic::AssembleError;
pub use error::{At, BuildError, CaptureError, DecodeError, Error, FuseError, Result, VerifyError};
pub use executor::{
    Argument, Arguments, BackendType, Executor, Launch, Limits, Prepared, Registers, new_executor,
    new_executor_auto, new_executor_with_backend,
};
pub use fault::Fault;
pub use fuse::{Length, fuse, fuse_for};
pub use instruction::{Instruction, Operand};
pub use library::library;
pub use opcode::{Activation, Meaning, Opcode, Row, Slot, Space, Ty, Use};
pub use perpetua_device::{Data, Graph, LaunchConfig, Operation, Stream};
pub use program::{Label, Memory, MemoryKind, Parameter, Program, Routine};
pub use text::Assembler;
