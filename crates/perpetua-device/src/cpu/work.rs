//! Work as a CPU stream's queue holds it: whether it is small, what memory it touches, how it runs.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use super::batch::Batch;
use super::claims::{Claim, Span};
use super::device::Shared;
use super::event::Mark;
use super::floats::Floats;
use super::launch::Launch;
use super::threads;
use crate::error::Result;
use crate::host::{self, Transfer};
use crate::native::Sharing;
use crate::ptr::{ContextId, DevicePtr};

/// Transfers of up to this many bytes run at once on an idle stream (some 20 us).
const INLINE_BYTES: u64 = 256 << 10;

/// Submitted or captured work.
#[derive(Clone)]
pub(super) enum Work {
    Transfer(Transfer),
    Launch(Arc<Launch>),
    Batch(Arc<Batch>),
    Read(Arc<Reading>),
    // Never captured.
    Fetch(Arc<Fetching>),
    Mark(Arc<Mark>),
    Wait(Arc<Mark>),
}

impl Work {
    /// Whether it is done sooner than handed to another thread.
    pub(super) fn is_small(&self) -> bool {
        match self {
            // Without threads all work runs at once.
            _ if cfg!(target_arch = "wasm32") => true,
            Work::Transfer(t) => t.len() <= INLINE_BYTES,
            Work::Launch(launch) => launch.is_small(),
            Work::Batch(batch) => batch.is_small(),
            Work::Read(reading) => reading.src.len() <= INLINE_BYTES,
            Work::Fetch(_) => true,
            Work::Mark(_) => true,
            Work::Wait(mark) => mark.is_reached(),
        }
    }

    /// Whether this thread may run it.
    pub(super) fn may_run_here(&self) -> bool {
        match self {
            Work::Launch(launch) if launch.stays() => false,
            Work::Transfer(_) | Work::Read(_) | Work::Fetch(_) | Work::Mark(_) => true,
            _ => self.is_small() || threads::may_spread(),
        }
    }

    // What memory it touches.
    fn spans(&self, add: &mut dyn FnMut(Span)) {
        let atomic = |ptr: &DevicePtr, stores| Span::new(ptr, stores, false);
        match self {
            Work::Transfer(transfer) => transfer
                .touches()
                .filter_map(|(ptr, stores)| atomic(ptr, stores))
                .for_each(add),
            Work::Launch(launch) => launch.spans(add),
            Work::Batch(batch) => batch.spans().iter().cloned().for_each(add),
            Work::Read(reading) => atomic(&reading.src, false).into_iter().for_each(add),
            Work::Fetch(fetching) => atomic(&fetching.src, false).into_iter().for_each(add),
            Work::Mark(_) | Work::Wait(_) => {}
        }
    }

    /// Whether it ends whatever other work does, so that others may wait for it.
    pub(super) fn waits_for_nobody(&self) -> bool {
        match self {
            Work::Transfer(_) | Work::Read(_) | Work::Fetch(_) | Work::Mark(_) | Work::Batch(_) => true,
            Work::Launch(launch) => launch.is_native(),
            Work::Wait(_) => false,
        }
    }

    /// Claims the memory that it touches, if it `must`; unless `patient`, only where nobody has to be waited for. Gives the way in
    /// which that memory may be accessed while the claim lives.
    #[inline]
    pub(super) fn claim<'a>(
        &self,
        shared: &'a Shared,
        must: bool,
        patient: bool,
    ) -> Option<(Sharing, Option<Claim<'a>>)> {
        let plain = match self {
            // They touch none, and may wait for long.
            Work::Mark(_) | Work::Wait(_) => return Some((Sharing::ConflictFree, None)),
            Work::Launch(launch) => launch.make_ready(),
            Work::Batch(batch) => batch.make_ready(),
            Work::Transfer(_) | Work::Read(_) | Work::Fetch(_) => false,
        };
        match must {
            true => self.claim_spans(shared, plain, patient),
            false => Some((Sharing::ConflictFree, None)),
        }
    }

    // Apart, so that what need not claim does nothing more. `plain`: whether all of it is native code that ends by itself; else
    // no claim is plain, and what is native of it accesses nothing plainly.
    #[inline(never)]
    fn claim_spans<'a>(
        &self,
        shared: &'a Shared,
        plain: bool,
        patient: bool,
    ) -> Option<(Sharing, Option<Claim<'a>>)> {
        let spans = |add: &mut dyn FnMut(Span)| {
            self.spans(&mut |span| add(if plain { span } else { span.atomic() }));
        };
        let claim = match patient {
            true => Some(shared.claims.take(spans)),
            false => shared.claims.take_now(spans),
        }?;
        let sharing = if plain { claim.sharing() } else { Sharing::Shared };
        Some((sharing, Some(claim)))
    }

    /// Does it.
    pub(super) fn run(&self, own: ContextId, sharing: Sharing) -> Result<()> {
        let _floats = Floats::as_rust();
        match self {
            Work::Transfer(transfer) => transfer.run(),
            Work::Launch(launch) => launch.run(sharing)?,
            Work::Batch(batch) => batch.run(sharing)?,
            Work::Read(reading) => reading.run(own)?,
            Work::Fetch(fetching) => fetching.run(own)?,
            Work::Mark(mark) => mark.reach(),
            Work::Wait(mark) => mark.wait(),
        }
        Ok(())
    }
}

/// A copy to the host for a future to take.
pub(super) struct Reading {
    src: DevicePtr,
    bytes: Mutex<Vec<u8>>,
}

impl Reading {
    pub(super) fn new(src: &DevicePtr) -> Arc<Reading> {
        Arc::new(Reading {
            src: src.clone(),
            bytes: Mutex::default(),
        })
    }

    /// What it has read.
    pub(super) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.bytes.lock().unwrap_or_else(|e| e.into_inner()))
    }

    fn run(&self, own: ContextId) -> Result<()> {
        let mut bytes = vec![0; self.src.len() as usize];
        host::read(own, &self.src, &mut bytes)?;
        *self.bytes.lock().unwrap_or_else(|e| e.into_inner()) = bytes;
        Ok(())
    }
}

/// A copy to the host for a thread that waits for it.
pub(super) struct Fetching {
    src: DevicePtr,
    dst: NonNull<u8>,
}

// SAFETY: whoever runs it writes to `dst`, which is borrowed for it alone (`new`).
unsafe impl Send for Fetching {}
// SAFETY: as above; it is run once.
unsafe impl Sync for Fetching {}

impl Fetching {
    /// # Safety
    /// It is run once at most, and only while `dst` is borrowed.
    pub(super) unsafe fn new(src: &DevicePtr, dst: &mut [u8]) -> Arc<Fetching> {
        Arc::new(Fetching {
            src: src.clone(),
            dst: NonNull::from(dst).cast(),
        })
    }

    fn run(&self, own: ContextId) -> Result<()> {
        // SAFETY: `Queue::fetch` has checked that `dst` is as long as `src`; it is borrowed, and this runs once (`new`).
        let dst = unsafe { std::slice::from_raw_parts_mut(self.dst.as_ptr(), self.src.len() as usize) };
        host::read(own, &self.src, dst)
    }
}
