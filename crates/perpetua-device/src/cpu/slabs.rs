//! A launch as slabs of lanes, which a batch runs in an order of its own: the native code's, or rows of blocks of machine code.

use std::ops::Range;

use perpetua_ir::pass::footprint::BlockRows;

use super::launch::Launch;
use crate::error::{Error, Result};
use crate::native::{Footprint, PreparedLaunch, Sharing};

/// A launch as slabs.
#[derive(Clone, Copy)]
pub(super) enum Slabs<'a> {
    Native(&'a dyn PreparedLaunch),
    Code(&'a Launch, BlockRows),
}

impl<'a> Slabs<'a> {
    /// How many there are.
    pub(super) fn count(self) -> u64 {
        match self {
            Slabs::Native(prepared) => prepared.slabs(),
            Slabs::Code(_, rows) => rows.count,
        }
    }

    /// What they access; `None` where that is not known.
    pub(super) fn footprints(self) -> Option<&'a [Footprint]> {
        match self {
            Slabs::Native(prepared) => prepared.footprints(),
            Slabs::Code(launch, _) => launch.footprints(),
        }
    }

    /// Runs some of them on this thread.
    ///
    /// # Safety
    /// As [`PreparedLaunch::run`] says. Machine code asks nothing more than that the launch passed the signature's check.
    pub(super) unsafe fn run(self, slabs: Range<u64>, sharing: Sharing) -> Result<()> {
        match self {
            // SAFETY: the caller's promise.
            Slabs::Native(prepared) => unsafe { prepared.run(slabs, sharing) }.map_err(Error::Fault),
            Slabs::Code(launch, _) => launch.run_rows(slabs),
        }
    }
}
