//! Write a kernel once in Rust; run it on any GPU or on the CPU.
//!
//! A program writes functions with [`macro@kernel`], opens a [`Device`](mod@device), and launches the one on the other;
//! [`prelude`] has all that this needs. [`mod@kernel`] is the language in which kernels are written, as plain Rust.

// What the macros write names this crate; so it can be written here, too.
extern crate self as perpetua;

/// Actors: handlers in Rust, on threads or resident on a GPU.
#[cfg(feature = "actors")]
pub use perpetua_actors as actors;

/// Programs in a portable instruction set: assembled, verified, run on any backend.
#[cfg(feature = "isa")]
pub use perpetua_isa as isa;

/// Waves in the plane and in space, by finite differences, on any backend.
#[cfg(feature = "wave")]
pub use perpetua_wave as wave;

/// The device layer: backends, memory, streams, launches.
pub use perpetua_device as device;

pub use perpetua_language::{
    Edge, GpuType, GridPos, KernelFn, Scope, StencilConfig, args, device, gpu_println, kernel, prelude,
    volume,
};
