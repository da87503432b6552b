//! The open streams of a context: a slot for each, so that a word says which of them have used something, and marks behind
//! their work. Must not know what is used.

use std::sync::{Arc, Mutex};

use cudarc::driver::sys;

use super::driver::{Event, Shared, lock};
use super::record::Faults;
use crate::error::Result;

/// The slot that all streams share for which no other is left.
const SHARED_SLOT: u32 = 63;

/// Streams that used something: a bit for each slot.
pub(super) type Users = u64;

/// A stream's place among those of its context.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(u32);

impl Slot {
    /// Its bit among [`Users`].
    #[inline]
    pub(super) fn bit(self) -> Users {
        1 << self.0
    }

    /// Whether several streams may have it, so that its bit does not say which.
    #[inline]
    pub(super) fn is_shared(self) -> bool {
        self.0 == SHARED_SLOT
    }
}

/// An event that must have happened before something is touched again, and the slot of the stream it was recorded on.
pub(super) struct Guard {
    slot: Slot,
    event: Event,
}

impl Guard {
    pub(super) fn new(slot: Slot, event: Event) -> Guard {
        Guard { slot, event }
    }

    /// Whether it has happened, or never will.
    pub(super) fn is_over(&self) -> bool {
        self.event.is_complete().unwrap_or(true)
    }

    /// Waits for it on this thread.
    pub(super) fn wait(&self) -> Result<()> {
        self.event.wait()
    }

    /// Makes the stream in `slot` wait for it, unless it is that stream's own.
    pub(super) fn hold(&self, slot: Slot, stream: sys::CUstream) -> Result<()> {
        match self.slot == slot && !slot.is_shared() || self.event.is_complete()? {
            true => Ok(()),
            false => self.event.hold(stream),
        }
    }
}

struct Open {
    slot: Slot,
    handle: sys::CUstream,
    faults: Arc<Faults>,
}

// SAFETY: a CUstream may be used from any thread; the rest is Send.
unsafe impl Send for Open {}

/// The open streams of a context.
#[derive(Default)]
pub(super) struct Streams(Mutex<Vec<Open>>);

impl Streams {
    /// Gives a stream its slot: one of its own, as long as there are any.
    pub(super) fn open(&self, handle: sys::CUstream, faults: &Arc<Faults>) -> Slot {
        let mut open = lock(&self.0);
        let taken = open
            .iter()
            .fold(0, |taken: Users, stream| taken | stream.slot.bit());
        let slot = Slot(taken.trailing_ones().min(SHARED_SLOT));
        open.push(Open {
            slot,
            handle,
            faults: Arc::clone(faults),
        });
        slot
    }

    /// Forgets a stream whose work has ended. Afterwards nobody here uses its handle.
    pub(super) fn close(&self, faults: &Arc<Faults>) {
        lock(&self.0).retain(|stream| !Arc::ptr_eq(&stream.faults, faults));
    }

    /// Marks behind all work submitted so far to the streams among `users`.
    pub(super) fn marks(&self, shared: &Arc<Shared>, users: Users) -> Result<Vec<Guard>> {
        if users == 0 {
            return Ok(Vec::new());
        }
        // Under the lock, so that no stream is destroyed meanwhile.
        let open = lock(&self.0);
        let used = open.iter().filter(|stream| users & stream.slot.bit() != 0);
        used.map(|stream| Ok(Guard::new(stream.slot, Event::behind(shared, stream.handle)?)))
            .collect()
    }

    /// Where the streams among `users` look for faults.
    pub(super) fn faults(&self, users: Users) -> Vec<Arc<Faults>> {
        let open = lock(&self.0);
        let used = open.iter().filter(|stream| users & stream.slot.bit() != 0);
        used.map(|stream| Arc::clone(&stream.faults)).collect()
    }
}
