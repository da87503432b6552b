//! The vendors' own tools as test oracles: what a renderer writes is assembled, compiled or run by
//! them on a machine without a GPU.
//!
//! A development dependency only; it is never published and knows nothing of the IR: it takes text and answers
//! whether the tool accepts it. `cargo xtask setup` installs the tools, [`locate`] finds them again.
//!
//! In the order a test meets them:
//! - [`locate`]: where programs and libraries are looked for.
//! - [`ToolResult`], [`Missing`], [`ToolError`]: accepted, rejected or not there; [`ToolResult::required`] is the
//!   one rule for tools that are missing.
//! - [`ptxas`], [`nvdisasm`]: PTX to machine code, machine code to text.
//! - [`nvrtc`]: CUDA C to machine code.
//! - [`naga`], [`tint`]: WGSL.
//! - [`msl`]: MSL compiled by a C++ compiler against a shim of `metal_stdlib`, and run.

mod cuda_assembler;
mod cuda_compiler;
pub mod locate;
pub mod msl;
mod program;
mod result;
mod wgsl;

pub use cuda_assembler::{Assembled, FunctionUsage, nvdisasm, ptxas};
pub use cuda_compiler::{CompiledCuda, nvrtc, nvrtc_with};
pub use msl::MslProgram;
pub use result::{Missing, Need, ToolError, ToolResult};
pub use wgsl::{naga, tint};
