//! The language in which kernels are written, as plain Rust functions, and what the macros' output calls. Programs reach it
//! through `perpetua`, which has all of this under its own name. Must not know what kernels are used for.

// What the macros write names the facade; so it can be written here, too.
extern crate self as perpetua;

pub mod prelude;

pub mod kernel;

pub use kernel::{GridPos, KernelFn, Scope, volume};
pub use perpetua_device::args;
pub use perpetua_ir::front::rust::{Edge, GpuType, StencilConfig};
pub use perpetua_macros::{GpuType, device, kernel};
