//! MSL on a machine without Metal: MSL is C++14 with attributes and address spaces, so a C++ compiler compiles it
//! against a shim of `metal_stdlib` (`metal_stdlib.h`, strict where that finds mistakes), and the lanes of a
//! threadgroup take turns on one thread.
//!
//! In the order of processing:
//! - `tokens`: the source as words and punctuation with their places.
//! - `signature`: the kernel's parameters, and what the shim's compiler cannot judge (attributes, address spaces).
//! - `compile`: source and shim to a shared object.
//! - `launch`: what is run, and every way in which that can fail.
//! - `memory`: buffers with guards, threadgroup memory that starts out as garbage.
//! - `runner`: the schedule of lanes, barriers and SIMD-group operations.
//!
//! What passes here is not proven for Metal: address spaces are qualifiers without a check, except where a kernel's
//! parameters are read. What fails here is wrong there.

mod compile;
mod launch;
mod memory;
mod runner;
mod signature;
mod tokens;

pub use compile::MslProgram;
pub use launch::{LaneOrder, MslLaunch, MslRunError};
