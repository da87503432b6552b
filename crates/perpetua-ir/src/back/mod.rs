//! Targets: what each can do, how kernels are called there, and the renderers. Renderers are pure functions of a
//! verified kernel; they know nothing of front ends or devices.

mod abi;
pub mod ptx;
mod target;

pub use abi::*;
pub use target::*;
