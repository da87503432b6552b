//! Kernels as native code do what the interpreter does: the same bytes, the same faults.

#![expect(clippy::panic, reason = "a launch that fails here is the report")]

mod adversary;
mod aliases;
mod arithmetic;
mod batches;
#[cfg(all(debug_assertions, feature = "compare"))]
mod compared;
mod evaluation;
mod faults;
mod harness;
mod indices;
mod loops;
mod names;
mod overlaps;
mod structs;
