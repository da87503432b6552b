//! The kernel language as plain Rust, and what the macros' output calls.
//!
//! In the order in which one meets them: [`KernelFn`] is what `#[kernel]` makes of a function, [`index`] where a lane
//! stands in its launch, [`grid`] where in a stencil's grid, [`barrier`], [`shared`], [`subgroup`] and [`atomic`]
//! what lanes do together, [`resident`] what kernels need that stay on a device. A function with `#[kernel]` or `#[device]` that is called as plain Rust is the only lane
//! of a launch of one lane.

pub mod index;

pub mod element;
pub mod grid;

pub mod barrier;
pub mod shared;

pub mod subgroup;

pub mod atomic;

pub mod resident;

mod print;

pub mod entry;
mod identity;

#[doc(hidden)]
pub mod native;

#[doc(hidden)]
pub mod expand;

pub use crate::gpu_println;
pub use atomic::Scope;
pub use entry::KernelFn;
pub use grid::{GridPos, volume};
