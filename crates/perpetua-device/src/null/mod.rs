//! The null backend: the whole contract without hardware. Memory is the host's ([`crate::host`]) and copies move it; launches
//! are checked, written to a log, and compute nothing. It proves that the contract needs no device, and lets tests see what a
//! program would do.

mod compile;
mod device;
mod launch;
mod stream;

pub use device::{NullBackend, NullContext};
pub use launch::NullLaunch;
