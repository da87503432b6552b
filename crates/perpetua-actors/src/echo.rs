//! The handler of actors that are launched without one: it gives back what it gets. Must not know runtimes.

use perpetua::prelude::*;

use crate::{Context, RingMessage, ring_kernel};

/// What the echo handler takes and gives back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, GpuType, RingMessage)]
#[repr(C)]
pub struct Echo {
    /// Anything.
    pub words: [u32; 16],
}

/// Counts in its state how many messages it gave back.
#[ring_kernel]
pub fn echo(_ctx: &mut Context, state: &mut u64, message: Echo) -> Echo {
    *state += 1;
    message
}
