//! A launch as slabs of lanes, which a batch runs in an order of its own: the native code's, or rows of blocks of machine code.

use std::ops::Range;
use std::sync::Arc;

use perpetua_cpu::footprint::{BlockRows, Footprint as Reaches, Reach};
use perpetua_cpu::interp::{self, Interpreter};

use super::super::ready::{KEPT, Ready};
use super::{Arg, Launch, start};
use crate::error::{Error, Result};
use crate::native::{Footprint, NativeArg, NativeKernel, NativeLaunch, PreparedLaunch, Sharing};

/// A launch as slabs.
#[derive(Clone, Copy)]
pub(in crate::cpu) enum Slabs<'a> {
    Native(&'a dyn PreparedLaunch),
    Code(&'a Launch, BlockRows),
}

impl<'a> Slabs<'a> {
    /// How many there are.
    pub(in crate::cpu) fn count(self) -> u64 {
        match self {
            Slabs::Native(prepared) => prepared.slabs(),
            Slabs::Code(_, rows) => rows.count,
        }
    }

    /// What they access; `None` where that is not known.
    pub(in crate::cpu) fn footprints(self) -> Option<&'a [Footprint]> {
        match self {
            Slabs::Native(prepared) => prepared.footprints(),
            Slabs::Code(launch, _) => launch.footprints(),
        }
    }

    /// Runs some of them on this thread.
    ///
    /// # Safety
    /// As [`PreparedLaunch::run`] says. Machine code asks nothing more than that the launch passed the signature's check.
    pub(in crate::cpu) unsafe fn run(self, slabs: Range<u64>, sharing: Sharing) -> Result<()> {
        match self {
            // SAFETY: the caller's promise.
            Slabs::Native(prepared) => unsafe { prepared.run(slabs, sharing) }.map_err(Error::Fault),
            Slabs::Code(launch, _) => launch.run_rows(slabs),
        }
    }
}

impl Launch {
    /// Whether it may be part of a batch: what prints nothing, whose order would be another, and is native code, or machine code that waits for nobody.
    pub(in crate::cpu) fn joins_others(&self) -> bool {
        let inner = &*self.function.0;
        let prints = || {
            inner
                .verified
                .as_ref()
                .is_some_and(|kernel| kernel.facts().prints())
        };
        let waits_for_nobody = || self.function.has_code() && !self.stays() && !self.may_wait();
        (self.is_native() || waits_for_nobody()) && !prints()
    }

    // Whether its blocks may wait for each other, or for other work.
    fn may_wait(&self) -> bool {
        let made = self
            .function
            .0
            .interpreter
            .get()
            .and_then(|made| made.as_ref().ok());
        made.is_none_or(Interpreter::may_wait)
    }

    /// Makes it ready as native code, where it has such and none else is asked for. Whether it runs as such.
    pub(in crate::cpu) fn make_ready(&self) -> bool {
        match &self.function.0.native {
            Some(native) if !self.is_watched() => self.ready.get_or_init(|| self.prepare(native)).is_some(),
            _ => false,
        }
    }

    fn prepare(&self, native: &NativeKernel) -> Option<Arc<dyn PreparedLaunch>> {
        let kept = || self.function.0.ready.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(known) = kept().iter().rev().find(|known| known.is_for(self)) {
            return Some(Arc::clone(&known.prepared));
        }
        let args: Vec<NativeArg<'_>> = self.args.iter().map(Arg::native).collect();
        let launch = NativeLaunch {
            grid: self.shape.grid,
            block: self.shape.block,
            shared_bytes: self.shape.shared_bytes,
            overlaps: &self.overlaps,
        };
        let prepared = (native.prepare)(&launch, &args)?;
        let mut kept = kept();
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push(Ready::of(self, Arc::clone(&prepared)));
        Some(prepared)
    }

    /// The launch in slabs that can run one after the other, or beside each other; `None` where it runs as a whole.
    pub(in crate::cpu) fn in_slabs(&self) -> Option<Slabs<'_>> {
        let rows =
            || (self.function.has_code() && self.joins_others() && !self.is_watched()).then(|| self.rows());
        match self.prepared() {
            Some(prepared) => Some(Slabs::Native(&**prepared)),
            None => rows().map(|rows| Slabs::Code(self, rows)),
        }
    }

    fn rows(&self) -> BlockRows {
        BlockRows::of(self.shape.grid.to_array())
    }

    /// What its rows of blocks access; `None` where that is not known.
    pub(in crate::cpu) fn footprints(&self) -> Option<&[Footprint]> {
        let known = self.footprints.get_or_init(|| {
            let inner = &*self.function.0;
            let all = inner
                .footprint
                .get_or_init(|| Reaches::of(inner.verified.as_ref()?));
            let reaches = self.configured(|config| all.as_ref()?.reaches(config))?;
            reaches.iter().map(|reach| self.footprint(reach)).collect()
        });
        known.as_deref()
    }

    // A buffer's bytes by their addresses.
    fn footprint(&self, reach: &Reach) -> Option<Footprint> {
        let Some(Arg::Buffer(ptr, _)) = self.args.get(reach.param as usize) else {
            return None;
        };
        let start = i64::try_from(start(ptr).addr()).ok()?;
        Some(Footprint {
            stores: reach.stores,
            slabs: reach.rows.clone(),
            low: start.checked_add(reach.low)?,
            high: start.checked_add(reach.high)?,
            stride: reach.stride,
        })
    }

    /// Runs rows of blocks as machine code, on this thread.
    pub(in crate::cpu) fn run_rows(&self, rows: Range<u64>) -> Result<()> {
        let inner = &*self.function.0;
        let blocks = self.rows().blocks;
        self.configured(|config| {
            let config = interp::LaunchConfig {
                blocks: Some((rows.start * blocks, (rows.end - rows.start) * blocks)),
                ..*config
            };
            inner.interpreter()?.launch(&config).map_err(|e| inner.error(e))
        })
    }
}
