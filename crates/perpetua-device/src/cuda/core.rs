//! What a stream is made of: the driver's handle, and what is kept alive until the work that uses it has ended.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use cudarc::driver::sys;

use super::capture::{Capture, Replay};
use super::driver::{Event, Shared, lock};
use super::memory::{Memory, Pool};
use super::module::Module;
use super::record::Faults;
use super::streams::{Guard, Slot};
use crate::error::{Error, Result};
use crate::ptr::{DevicePtr, Owner};
use crate::signature::KernelArg;

/// Host memory held for submitted work beyond this many pieces makes the stream look for work that has ended.
const HELD: usize = 64;

/// The number that means the calling thread's default stream (`CU_STREAM_PER_THREAD`).
const PER_THREAD: u64 = 2;

/// The stream itself, and what it keeps alive.
///
/// The driver never captures its handle: a capture has a stream of its own (`capture`), to which its thread's submissions go. So
/// marks and fills of new memory go on meanwhile, and a submission of another thread is never half captured.
pub(super) struct StreamCore {
    pub(super) handle: sys::CUstream,
    slot: Slot,
    pub(super) shared: Arc<Shared>,
    /// Marks behind work, and what it uses.
    held: Mutex<VecDeque<(Event, Vec<Kept>)>>,
    /// Held for work submitted since the last mark.
    recent: Mutex<Vec<Kept>>,
    faults: Arc<Faults>,
    /// The record that its launches write.
    fault_address: u64,
    pub(super) capture: Mutex<Option<Capture>>,
    /// Whether there is a capture.
    pub(super) capturing: AtomicBool,
    /// Who owns the handle, where it is somebody else's.
    owner: Option<Box<dyn Owner>>,
}

/// What work uses, beside memory of ours, which comes back behind it in any case, and modules, which do as well.
enum Kept {
    Memory(DevicePtr),
    Replay(Arc<Replay>),
}

// SAFETY: a CUstream may be used from any thread; the driver synchronises its own calls; the rest is Send and Sync.
unsafe impl Send for StreamCore {}
// SAFETY: as above.
unsafe impl Sync for StreamCore {}

/// Where the work goes that a thread submits: to a stream, or to its capture.
pub(super) struct Target<'a> {
    pub(super) core: &'a StreamCore,
    pub(super) handle: sys::CUstream,
    /// The record that launches write.
    pub(super) fault_address: u64,
    /// Whether nothing runs now, and the graph keeps what is used. The thread whose capture it is holds the target, so it does not end meanwhile.
    pub(super) captured: bool,
}

impl Target<'_> {
    /// Orders work that is about to be submitted behind earlier users of `ptr`. Gives whether [`hold`](Target::hold) must follow
    /// the submission, which keeps memory alive that the host reaches or somebody else owns.
    #[inline]
    pub(super) fn use_memory(&self, ptr: &DevicePtr) -> Result<bool> {
        ptr.downcast::<Memory>()
            .map_or(Ok(false), |memory| self.use_of(memory))
    }

    /// The same of what `ptr` points into.
    #[inline]
    pub(super) fn use_of(&self, memory: &Memory) -> Result<bool> {
        // Captured work waits when it is launched (`StreamCore::replay`).
        if !self.captured {
            memory.use_on(self.core.slot, self.handle)?;
        }
        Ok(self.captured || memory.is_held())
    }

    /// Keeps `ptr` alive until the work submitted so far has ended. Behind the submission, so that no mark of before covers it; the
    /// caller holds it until then.
    #[cold]
    pub(super) fn hold(&self, ptr: &DevicePtr) -> Result<()> {
        if self.captured {
            if let Some(capture) = lock(&self.core.capture).as_mut() {
                capture.kept.push(ptr.clone());
            }
            return Ok(());
        }
        self.core.keep(Kept::Memory(ptr.clone()))
    }

    /// [`hold`](Target::hold)s where [`use_memory`](Target::use_memory) asked for it.
    #[inline]
    pub(super) fn hold_if(&self, holds: bool, ptr: &DevicePtr) -> Result<()> {
        if holds { self.hold(ptr) } else { Ok(()) }
    }

    /// Notes that a launch of `module` is about to be submitted.
    #[inline]
    pub(super) fn use_module(&self, module: &Arc<Module>) {
        if !self.captured {
            return module.use_on(self.core.slot);
        }
        if let Some(capture) = lock(&self.core.capture).as_mut() {
            capture.add(module);
        }
    }

    /// [`hold`](Target::hold)s a launch's memory.
    #[cold]
    pub(super) fn hold_all(&self, args: &[KernelArg<'_>]) -> Result<()> {
        for arg in args {
            if let KernelArg::Buffer(buffer) = arg
                && (self.captured || buffer.ptr.downcast::<Memory>().is_some_and(Memory::is_held))
            {
                self.hold(buffer.ptr)?;
            }
        }
        Ok(())
    }
}

impl StreamCore {
    pub(super) fn new(shared: &Arc<Shared>, mapped: &Arc<Pool>) -> Result<Arc<StreamCore>> {
        let faults = Faults::new(mapped)?;
        Ok(StreamCore::of(shared, faults, create(shared)?, None))
    }

    /// A stream of somebody else's.
    ///
    /// # Safety
    /// The handle is a stream until `owner` is dropped.
    pub(super) unsafe fn adopt(
        shared: &Arc<Shared>,
        mapped: &Arc<Pool>,
        handle: u64,
        owner: Box<dyn Owner>,
    ) -> Result<Arc<StreamCore>> {
        const OPERATION: &str = "adoption of a stream";
        if handle == PER_THREAD {
            return Err(Error::InvalidState {
                operation: OPERATION,
                cause: "the per-thread default stream is a different one on each thread",
                remedy: "give a stream that was created, or the legacy default stream",
            });
        }
        shared.enter()?;
        let handle = std::ptr::with_exposed_provenance_mut(handle as usize);
        let mut context = std::ptr::null_mut();
        // SAFETY: the caller vouches for the handle; the context is current, for the legacy stream; the pointer is writable.
        let code = unsafe { sys::cuStreamGetCtx(handle, &raw mut context) };
        shared.check(code, || "cuStreamGetCtx".into())?;
        if context != shared.context {
            return Err(Error::WrongDevice {
                operation: OPERATION,
                subject: "the stream".into(),
            });
        }
        let faults = Faults::new(mapped)?;
        Ok(StreamCore::of(shared, faults, handle, Some(owner)))
    }

    fn of(
        shared: &Arc<Shared>,
        faults: Arc<Faults>,
        handle: sys::CUstream,
        owner: Option<Box<dyn Owner>>,
    ) -> Arc<StreamCore> {
        Arc::new(StreamCore {
            handle,
            slot: shared.streams.open(handle, &faults),
            shared: Arc::clone(shared),
            held: Mutex::default(),
            recent: Mutex::default(),
            fault_address: faults.record().address(),
            faults,
            capture: Mutex::default(),
            capturing: AtomicBool::new(false),
            owner,
        })
    }

    /// Where the pool of fault records is.
    pub(super) fn records(&self) -> &Arc<Pool> {
        self.faults.record().pool()
    }

    /// Where the calling thread's work goes now; an error while another thread captures.
    #[inline]
    pub(super) fn target(&self) -> Result<Target<'_>> {
        // Relaxed: a thread knows what it began itself, and for others it only matters that a capture's work is its own: what they submit
        // beside it goes to the stream, or is refused.
        if self.capturing.load(Ordering::Relaxed) {
            return self.capture_target();
        }
        Ok(self.uncaptured())
    }

    /// The stream, whether or not it captures.
    #[inline]
    pub(super) fn uncaptured(&self) -> Target<'_> {
        Target {
            core: self,
            handle: self.handle,
            fault_address: self.fault_address,
            captured: false,
        }
    }

    #[cold]
    fn capture_target(&self) -> Result<Target<'_>> {
        match lock(&self.capture).as_ref() {
            None => Ok(self.uncaptured()),
            Some(capture) => Ok(Target {
                core: self,
                handle: capture.stream()?,
                fault_address: capture.fault_address(),
                captured: true,
            }),
        }
    }

    /// An event behind all work submitted so far.
    pub(super) fn mark(&self) -> Result<Event> {
        Event::behind(&self.shared, self.handle)
    }

    /// Makes first users of `ptr`, new memory that work of this stream gives its content, wait for that work.
    pub(super) fn guard(&self, ptr: &DevicePtr) -> Result<()> {
        if let Some(memory) = ptr.downcast::<Memory>() {
            memory.guard(Guard::new(self.slot, self.mark()?));
        }
        Ok(())
    }

    /// Keeps something until the work submitted so far has ended.
    fn keep(&self, kept: Kept) -> Result<()> {
        let mut recent = lock(&self.recent);
        recent.push(kept);
        if recent.len() < HELD {
            return Ok(());
        }
        drop(recent);
        self.seal()?;
        self.release();
        Ok(())
    }

    /// Puts a mark behind what is held for the work submitted so far.
    pub(super) fn seal(&self) -> Result<()> {
        let batch = std::mem::take(&mut *lock(&self.recent));
        if !batch.is_empty() {
            let mark = self.mark()?;
            lock(&self.held).push_back((mark, batch));
        }
        Ok(())
    }

    /// Lets go of what is held for work that has ended.
    pub(super) fn release(&self) {
        let mut ended = Vec::new();
        let mut held = lock(&self.held);
        while let Some((_, batch)) = held.pop_front_if(|(mark, _)| mark.is_complete().unwrap_or(true)) {
            ended.push(batch);
        }
        drop(held);
        // Outside the lock: owners may do anything when they are dropped.
        ended.into_iter().flatten().for_each(|kept| self.let_go(kept));
    }

    /// Drops what work used that has ended.
    fn let_go(&self, kept: Kept) {
        match kept {
            Kept::Memory(mut ptr) => self.unused(&mut ptr),
            Kept::Replay(replay) => self.faults.keep(replay.fault.take()),
        }
    }

    /// Tells memory that nobody else has that this stream's work with it has ended, so that nothing waits for that when it is dropped.
    pub(super) fn unused(&self, ptr: &mut DevicePtr) {
        if ptr.is_unique()
            && let Some(memory) = ptr.downcast::<Memory>()
        {
            memory.unused_by(self.slot);
        }
    }

    /// A graph is about to be launched whose work uses this memory: orders it behind earlier users. Gives which of it must be held.
    pub(super) fn replay<'a>(&self, memory: &'a [DevicePtr]) -> Result<Vec<&'a DevicePtr>> {
        let target = self.uncaptured();
        let mut adopted = Vec::new();
        for ptr in memory {
            if let Some(memory) = ptr.downcast::<Memory>() {
                target.use_of(memory)?;
                // The graph keeps what is ours, which comes back behind the work in any case.
                if memory.is_adopted() {
                    adopted.push(ptr);
                }
            }
        }
        Ok(adopted)
    }

    /// A graph's launch was submitted.
    pub(super) fn replayed(&self, replay: &Arc<Replay>, adopted: &[&DevicePtr]) -> Result<()> {
        let is_last =
            |kept: Option<&Kept>| matches!(kept, Some(Kept::Replay(last)) if Arc::ptr_eq(last, replay));
        // Mostly it is one graph again and again: what is in `recent` is kept for all that was submitted so far.
        if !is_last(lock(&self.recent).last()) {
            self.keep(Kept::Replay(Arc::clone(replay)))?;
        }
        adopted
            .iter()
            .try_for_each(|ptr| self.keep(Kept::Memory((*ptr).clone())))
    }

    /// Waits for all submitted work.
    pub(super) fn wait(&self) -> Result<()> {
        self.shared.enter()?;
        // Work submitted while waiting must keep what it uses.
        let recent = std::mem::take(&mut *lock(&self.recent));
        let held = std::mem::take(&mut *lock(&self.held));
        // SAFETY: the handle is alive.
        let code = unsafe { sys::cuStreamSynchronize(self.handle) };
        let waited = self.shared.check(code, || "cuStreamSynchronize".into());
        if waited.is_err() && !self.shared.is_lost() {
            // The work may still run: it keeps what it uses.
            lock(&self.recent).extend(recent);
            let mut now = lock(&self.held);
            held.into_iter().rev().for_each(|batch| now.push_front(batch));
            return waited;
        }
        let held = held.into_iter().flat_map(|(_, batch)| batch);
        held.chain(recent).for_each(|kept| self.let_go(kept));
        waited
    }

    /// The first fault not reported yet, of work that has ended.
    pub(super) fn fault(&self) -> Result<()> {
        self.faults.take()?;
        let held = lock(&self.held);
        let recent = lock(&self.recent);
        let kept = held.iter().flat_map(|(_, batch)| batch).chain(&*recent);
        kept.filter_map(|kept| match kept {
            Kept::Replay(replay) => Some(replay),
            Kept::Memory(_) => None,
        })
        .try_for_each(|replay| replay.fault.take())
    }

    pub(super) fn not_capturing(&self, operation: &'static str) -> Result<()> {
        // Relaxed: as in `target`.
        if self.capturing.load(Ordering::Relaxed) {
            return Err(Error::InvalidState {
                operation,
                cause: "the stream is capturing a graph",
                remedy: "end the capture first, or use another stream",
            });
        }
        Ok(())
    }
}

/// A new stream of the driver's. Where that needs another of its channels, it waits for all that runs, and for residents for ever: those are
/// parked meanwhile.
pub(super) fn create(shared: &Arc<Shared>) -> Result<sys::CUstream> {
    shared.gate.parked(|| {
        shared.enter()?;
        let mut handle = std::ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the context is current; the pointer is writable.
        let code = unsafe { sys::cuStreamCreate(&raw mut handle, flags) };
        shared.check(code, || "cuStreamCreate".into())?;
        Ok(handle)
    })?
}

impl Drop for StreamCore {
    fn drop(&mut self) {
        let entered = self.shared.enter().is_ok();
        if entered {
            // SAFETY: the handle is alive: one of ours is destroyed below and nowhere else, an adopted one lives until `owner`, a field, is
            // dropped. `held` and `recent` keep what the work uses until it has ended, which is here.
            let _ = unsafe { sys::cuStreamSynchronize(self.handle) };
        }
        // Behind the wait, so that a mark for memory or a module that goes meanwhile is still made; before the end of the handle, for that mark.
        self.shared.streams.close(&self.faults);
        if entered && self.owner.is_none() {
            // SAFETY: made by `create` for this value alone, whose last user this is: who submits has a reference to it, events and graphs
            // that have the handle from it do too, and `streams` has just forgotten it.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.handle) };
        }
    }
}
