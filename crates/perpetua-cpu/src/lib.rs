//! Kernels on the host's processor, from the IR alone: no device, no threads, no memory of its own.
//!
//! [`interp`] runs a verified kernel, lane by lane together, and is the reference that every target is measured against; where the
//! processor is known it generates machine code, which runs in the same frame. [`footprint`] finds out what a launch accesses, which lets
//! graphs be blocked in time and rows be run as loops. The backend on top (threads, streams, executable memory, the choice
//! between native code, machine code and the interpreter) is `perpetua-device`'s `cpu`.

mod eval;
pub mod footprint;
pub mod interp;

#[cfg(feature = "testing")]
pub mod testing;
