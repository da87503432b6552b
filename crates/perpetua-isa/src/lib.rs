//! Programs as data: a portable instruction set. A program is assembled, verified, stored, sent over a wire, and run on every backend
//! with the same result.
//!
//! In the order in which a program passes: [`text`] and [`binary`] are its forms, [`builder`] writes it from Rust, [`capture()`] makes it of a
//! kernel, [`Program`] what they stand for, of
//! [`Instruction`]s whose kinds the [`Opcode`]s' table lists; [`verify`](verify::verify) lets through what is right,
//! [`lower`](lower::lower) makes a kernel of the IR of it, and the [`Executor`] runs that on a device.
//!
//! Programs need not be written: [`library()`] has one for each operator and type, and more.
//!
//! A lane has 256 registers, r0 to r255, which hold what was written last, of any type, and 16 predicates, p0 to p15. Before
//! the first instruction r252 is the lane's index in its block, r253 the block's index, r254 the size of a block (all `u32`, along x), and r255 the
//! lane's index in the grid (`u64`). What a program does wrong at run time (an index out of bounds, a division by zero) is a fault
//! that names the line, as with any kernel.

pub mod binary;
pub mod builder;
mod capture;
mod error;
mod executor;
mod fuse;
mod hologram;
pub mod instruction;
pub mod library;
pub mod lower;
mod opcode;
mod pool;
mod program;
pub mod serve;
pub mod specification;
pub mod text;
pub mod verify;

pub use binary::DecodeError;
pub use builder::ProgramBuilder;
pub use capture::{capture, capture_kernel};
pub use error::{At, BuildError, CaptureError, Error, Fault, FuseError, Result, VerifyError};
pub use executor::{
    Argument, Arguments, BackendType, Data, Executor, Launch, Limits, Operation, Prepared, Registers,
    new_executor, new_executor_auto, new_executor_with_backend,
};
pub use fuse::fuse;
pub use instruction::{Instruction, Operand};
pub use library::library;
pub use opcode::{Activation, Meaning, Opcode, Row, Slot, Space, Ty, Use};
pub use perpetua_device::{Graph, LaunchConfig, Stream};
pub use program::{Label, Memory, MemoryKind, Parameter, Program, Routine};
pub use text::{AssembleError, Assembler};
