//! What a stream is made of: the driver's handle, and what is kept alive until the work that uses it has ended.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use cudarc::driver::sys;

use super::driver::{Event, Shared, lock};
use super::launch::Module;
use super::memory::{Memory, Pool};
use super::record::FaultRecord;
use crate::error::{Error, Result};
use crate::ptr::{DevicePtr, MemoryKind, Owner};
use crate::signature::KernelArg;

/// Host memory held for submitted work beyond this many pieces makes the stream look for work that has ended.
const HELD: usize = 64;

/// The number that means the calling thread's default stream (`CU_STREAM_PER_THREAD`).
const PER_THREAD: u64 = 2;

/// The stream itself, and what it keeps alive.
pub(super) struct StreamCore {
    pub(super) handle: sys::CUstream,
    pub(super) slot: u32,
    pub(super) shared: Arc<Shared>,
    /// Marks made when memory was dropped, to be used again.
    held: Mutex<VecDeque<(Event, Vec<DevicePtr>)>>,
    /// Held for work submitted since the last mark.
    recent: Mutex<Vec<DevicePtr>>,
    /// The record that this stream's launches write, and those of graphs launched on it.
    pub(super) fault: Arc<FaultRecord>,
    /// What was launched since the last wait.
    launched: Mutex<Launched>,
    /// What was launched before it: has ended, but its faults may not have been looked for.
    ended: Mutex<Vec<Launched>>,
    pub(super) capture: Mutex<Option<Capture>>,
    pub(super) capturing: AtomicBool,
    /// Who owns the handle, where it is somebody else's.
    owner: Option<Box<dyn Owner>>,
}

/// What a capture gathers.
pub(super) struct Capture {
    pub(super) replay: Replay,
    pub(super) kept: Vec<DevicePtr>,
}

/// What launches of a graph need beyond memory, also after the graph was dropped.
pub(super) struct Replay {
    /// The record that its launches write.
    pub(super) fault: Arc<FaultRecord>,
    /// The code that they run.
    modules: Modules,
}

impl Replay {
    pub(super) fn new(fault: Arc<FaultRecord>) -> Replay {
        Replay {
            fault,
            modules: Modules::default(),
        }
    }
}

/// Different modules, by address.
#[derive(Default)]
struct Modules {
    all: HashMap<usize, Arc<Module>>,
    last: usize,
}

impl Modules {
    /// Adds one. Programs mostly launch the same few, and often one again and again.
    #[inline]
    fn add(&mut self, module: &Arc<Module>) {
        let address = Arc::as_ptr(module).addr();
        if self.last != address {
            self.all.entry(address).or_insert_with(|| Arc::clone(module));
            self.last = address;
        }
    }
}

/// Code that work of a stream runs, and records that it may have left a fault in.
#[derive(Default)]
struct Launched {
    // Held and not read: while they are, nobody unloads the code or gives its fault sites' numbers to others.
    modules: Modules,
    replays: Vec<Arc<Replay>>,
}

impl Launched {
    /// Adds what other launches need.
    fn join(&mut self, other: Launched) {
        self.modules.all.extend(other.modules.all);
        self.replays.extend(other.replays);
    }

    fn is_empty(&self) -> bool {
        self.modules.all.is_empty() && self.replays.is_empty()
    }
}

// SAFETY: a CUstream may be used from any thread; the driver synchronises its own calls; the rest is Send and Sync.
unsafe impl Send for StreamCore {}
// SAFETY: as above.
unsafe impl Sync for StreamCore {}

impl StreamCore {
    pub(super) fn new(shared: &Arc<Shared>, pinned: &Arc<Pool>) -> Result<Arc<StreamCore>> {
        shared.enter()?;
        let mut handle = std::ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the context is current; the pointer is writable.
        let code = unsafe { sys::cuStreamCreate(&raw mut handle, flags) };
        shared.check(code, || "cuStreamCreate".into())?;
        StreamCore::of(shared, pinned, handle, None)
    }

    /// A stream of somebody else's.
    ///
    /// # Safety
    /// The handle is a stream until `owner` is dropped.
    pub(super) unsafe fn adopt(
        shared: &Arc<Shared>,
        pinned: &Arc<Pool>,
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
        StreamCore::of(shared, pinned, handle, Some(owner))
    }

    fn of(
        shared: &Arc<Shared>,
        pinned: &Arc<Pool>,
        handle: sys::CUstream,
        owner: Option<Box<dyn Owner>>,
    ) -> Result<Arc<StreamCore>> {
        Ok(Arc::new(StreamCore {
            handle,
            slot: shared.take_slot(),
            shared: Arc::clone(shared),
            held: Mutex::default(),
            recent: Mutex::default(),
            fault: FaultRecord::new(pinned)?,
            launched: Mutex::default(),
            ended: Mutex::default(),
            capture: Mutex::default(),
            capturing: AtomicBool::new(false),
            owner,
        }))
    }

    pub(super) fn slot(&self) -> u32 {
        self.slot
    }

    pub(super) fn handle(&self) -> sys::CUstream {
        self.handle
    }

    /// An event behind all work submitted so far.
    pub(super) fn mark(&self) -> Result<Event> {
        if self.capturing.load(Ordering::Acquire) {
            // Recording would become part of the capture. What it uses, the graph keeps.
            return Err(capture_forbids("marking a stream"));
        }
        let event = Event::new(&self.shared, false)?;
        event.record(self.handle)?;
        Ok(event)
    }

    /// Orders work that is about to be submitted behind earlier users of `ptr`. Gives whether [`hold`](StreamCore::hold) must follow
    /// the submission, which keeps memory alive that the host reaches or somebody else owns.
    #[inline]
    pub(super) fn use_memory(&self, ptr: &DevicePtr) -> Result<bool> {
        let adopted = self.use_held(ptr)?;
        // Acquire: pairs with the Release in `begin_capture`.
        Ok(adopted || ptr.kind() != MemoryKind::Device || self.capturing.load(Ordering::Acquire))
    }

    /// A launch was submitted: holds its code, and what [`use_memory`](StreamCore::use_memory) asked for.
    #[inline]
    pub(super) fn submitted(&self, module: &Arc<Module>, args: &[KernelArg<'_>], holds: bool) -> Result<()> {
        self.launched(module);
        if holds {
            for arg in args {
                if let KernelArg::Buffer(buffer) = arg {
                    self.hold(buffer.ptr)?;
                }
            }
        }
        Ok(())
    }

    /// The same for memory that something else keeps alive. Gives whether it is somebody else's, who must not have it back
    /// before the work has ended.
    #[inline]
    pub(super) fn use_held(&self, ptr: &DevicePtr) -> Result<bool> {
        let Some(memory) = ptr.downcast::<Memory>() else {
            return Ok(false);
        };
        memory.use_on(self.slot, self.handle)?;
        Ok(memory.is_adopted())
    }

    /// Keeps `ptr` alive until the work submitted so far has ended. Behind the submission, so that no mark of before covers it; the
    /// caller holds it until then.
    #[cold]
    pub(super) fn hold(&self, ptr: &DevicePtr) -> Result<()> {
        if let Some(capture) = lock(&self.capture).as_mut() {
            capture.kept.push(ptr.clone());
            return Ok(());
        }
        let mut recent = lock(&self.recent);
        recent.push(ptr.clone());
        if recent.len() < HELD {
            return Ok(());
        }
        drop(recent);
        self.seal()?;
        self.release();
        Ok(())
    }

    /// [`hold`](StreamCore::hold)s where [`use_memory`](StreamCore::use_memory) asked for it.
    #[inline]
    pub(super) fn hold_if(&self, holds: bool, memory: &[&DevicePtr]) -> Result<()> {
        match holds {
            true => memory.iter().try_for_each(|ptr| self.hold(ptr)),
            false => Ok(()),
        }
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
        let mut held = lock(&self.held);
        while held
            .front()
            .is_some_and(|(mark, _)| mark.is_complete().unwrap_or(true))
        {
            held.pop_front();
        }
    }

    /// The fault record's address for a launch submitted now.
    #[inline]
    pub(super) fn fault_address(&self) -> u64 {
        if self.capturing.load(Ordering::Acquire)
            && let Some(capture) = lock(&self.capture).as_ref()
        {
            return capture.replay.fault.address();
        }
        self.fault.address()
    }

    /// Holds the code of a launch that was just submitted. Behind the submission, since a wait that begins meanwhile need not cover it; the
    /// caller holds the module until then.
    #[inline]
    pub(super) fn launched(&self, module: &Arc<Module>) {
        if self.capturing.load(Ordering::Acquire)
            && let Some(capture) = lock(&self.capture).as_mut()
        {
            return capture.replay.modules.add(module);
        }
        lock(&self.launched).modules.add(module);
    }

    /// The same of a graph's launch.
    pub(super) fn replayed(&self, replay: &Arc<Replay>) {
        let mut launched = lock(&self.launched);
        if !launched.replays.iter().any(|known| Arc::ptr_eq(known, replay)) {
            launched.replays.push(Arc::clone(replay));
        }
    }

    /// Waits for all submitted work.
    pub(super) fn wait(&self) -> Result<()> {
        self.shared.enter()?;
        // Work submitted while waiting must keep what it uses.
        let (recent, held, launched) = (
            std::mem::take(&mut *lock(&self.recent)),
            std::mem::take(&mut *lock(&self.held)),
            std::mem::take(&mut *lock(&self.launched)),
        );
        // SAFETY: the handle is alive.
        let code = unsafe { sys::cuStreamSynchronize(self.handle) };
        let waited = self.shared.check(code, || "cuStreamSynchronize".into());
        if waited.is_err() && !self.shared.is_lost() {
            // The work may still run (a capture forbids waiting): it keeps what it uses.
            lock(&self.recent).extend(recent);
            let mut now = lock(&self.held);
            held.into_iter().rev().for_each(|batch| now.push_front(batch));
            drop(now);
            lock(&self.launched).join(launched);
            return waited;
        }
        drop((recent, held));
        if !launched.is_empty() {
            lock(&self.ended).push(launched);
        }
        waited
    }

    /// The first fault not reported yet, of work that has ended.
    pub(super) fn fault(&self) -> Result<()> {
        // Taken before the records are read: whatever these have left in them is there.
        let ended = std::mem::take(&mut *lock(&self.ended));
        let running = lock(&self.launched).replays.clone();
        let mut found = self.fault.take();
        for replay in ended
            .iter()
            .flat_map(|launched| &launched.replays)
            .chain(&running)
        {
            if found.is_err() {
                break;
            }
            found = replay.fault.take();
        }
        if found.is_err() {
            // The other records are for the next call.
            lock(&self.ended).extend(ended);
        }
        found
    }

    pub(super) fn not_capturing(&self, operation: &'static str) -> Result<()> {
        if self.capturing.load(Ordering::Acquire) {
            Err(capture_forbids(operation))
        } else {
            Ok(())
        }
    }
}

fn capture_forbids(operation: &'static str) -> Error {
    Error::InvalidState {
        operation,
        cause: "the stream is capturing a graph",
        remedy: "end the capture first, or use another stream",
    }
}

impl Drop for StreamCore {
    fn drop(&mut self) {
        if self.shared.enter().is_ok() {
            // SAFETY: created in `new`, destroyed once; the driver finishes submitted work first. What that work uses is
            // held until here, so wait before letting go of it. An adopted one lives until `owner` is dropped.
            unsafe {
                let _ = sys::cuStreamSynchronize(self.handle);
                if self.owner.is_none() {
                    let _ = sys::cuStreamDestroy_v2(self.handle);
                }
            }
        }
        self.shared.return_slot(self.slot);
    }
}
