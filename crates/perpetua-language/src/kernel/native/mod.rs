//! Kernels as native code on the CPU.
//!
//! `#[kernel]` writes a function's body a second time, over a [`Mode`] of access to memory and in terms of functions
//! that mean on the host what they mean on every device: arithmetic wraps, what Rust panics at is a [`Stop`]. That
//! body runs lane after lane, in one of two modes:
//!
//! - **checked**: every index is compared with its length, every access is a relaxed atomic one. It accepts every
//!   launch; lanes that race see unspecified values and nothing worse.
//! - **fast**: no access is checked, all are plain, and a row of lanes is one loop, which LLVM turns into vector
//!   instructions. It takes a proof. Where the plan knows the kernel's conditions and its buffers lie apart, a loop runs that
//!   is told both: conditions that do not change in a loop are decided in front of it (LLVM writes a loop for each way, of
//!   which those that do nothing cost nothing), and there is no doubt about what memory a store changes.
//!
//! The proof is the IR's (`perpetua_cpu::footprint`): the function is lowered once more, so that it tells its accesses and
//! conditions as native code meets them (`lower_followed`), and its control flow walked once for a whole box of lanes. Where a
//! condition holds in a part of the box only, the box is cut there. A box whose indices all lie inside their buffers runs fast. That
//! no two lanes touch an element that one of them stores to is proven for the launch as a whole, of all boxes together: else all
//! of them run checked. A body with an access or a condition that the IR does not have is not taken for proven.
//!
//! In the order of the data: [`stop`] is what a lane ends with, [`number`], [`operators`], [`methods`] and [`halves`] compute, [`view`] is memory,
//! [`mode`] accesses it, `decide` knows conditions, `plan` says of a launch's boxes how they run, `rows` runs them, `launch` puts it together for the CPU
//! backend; [`program`] is what the macros write.
//!
//! Only the macros' output implements [`Program`]; a wrong body there would be undefined behaviour here.

pub mod stop;

pub mod halves;
pub mod methods;
pub mod number;
pub mod operators;

pub mod view;

mod decide;
pub mod mode;

pub mod stencil;

mod plan;

#[cfg(debug_assertions)]
mod audit;
mod launch;
pub mod program;
mod rows;

pub use mode::Mode;
pub use program::{Native, PLACES, Program, available};
pub use stencil::Grid;
pub use stop::{Site, Stop};
pub use view::{Arguments, View};
