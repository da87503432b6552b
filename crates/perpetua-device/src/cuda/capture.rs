//! Captures: what a stream's thread submits between the beginning and the end of one, on a stream of the driver's that nobody else
//! has. Must not know what is submitted.

use std::sync::Arc;
use std::thread::ThreadId;

use cudarc::driver::sys;

use super::core::create;
use super::driver::Shared;
use super::memory::Pool;
use super::module::Module;
use super::record::FaultRecord;
use crate::backend::capture_of_another;
use crate::error::Result;
use crate::ptr::DevicePtr;

/// What launches of a graph need beyond memory, also after the graph was dropped.
pub(super) struct Replay {
    /// The record that its launches write.
    pub(super) fault: FaultRecord,
    /// The code that they run, each piece once.
    modules: Vec<Arc<Module>>,
}

/// A capture on its way.
pub(super) struct Capture {
    /// Whose submissions it takes.
    thread: ThreadId,
    stream: Capturing,
    replay: Replay,
    pub(super) kept: Vec<DevicePtr>,
}

/// The driver's stream that captures.
struct Capturing {
    handle: sys::CUstream,
    shared: Arc<Shared>,
}

// SAFETY: a CUstream may be used from any thread; the rest is Send.
unsafe impl Send for Capturing {}

impl Capture {
    /// Begins one, of the calling thread.
    pub(super) fn begin(shared: &Arc<Shared>, records: &Arc<Pool>) -> Result<Capture> {
        let replay = Replay {
            fault: FaultRecord::new(records)?,
            modules: Vec::new(),
        };
        let stream = Capturing {
            handle: create(shared)?,
            shared: Arc::clone(shared),
        };
        // Relaxed mode: this thread's and others' allocations go on meanwhile.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the handle is new.
        let code = unsafe { sys::cuStreamBeginCapture_v2(stream.handle, mode) };
        shared.check(code, || "cuStreamBeginCapture".into())?;
        Ok(Capture {
            thread: std::thread::current().id(),
            stream,
            replay,
            kept: Vec::new(),
        })
    }

    /// Where the calling thread's submissions go; an error for any other thread than the one that began.
    pub(super) fn stream(&self) -> Result<sys::CUstream> {
        match std::thread::current().id() == self.thread {
            true => Ok(self.stream.handle),
            false => Err(capture_of_another()),
        }
    }

    /// The record that captured launches write.
    pub(super) fn fault_address(&self) -> u64 {
        self.replay.fault.address()
    }

    /// Keeps the code of a launch.
    pub(super) fn add(&mut self, module: &Arc<Module>) {
        let modules = &mut self.replay.modules;
        if !modules.iter().any(|known| Arc::ptr_eq(known, module)) {
            modules.push(Arc::clone(module));
        }
    }

    /// Ends it. The graph is the caller's.
    pub(super) fn end(self) -> Result<(sys::CUgraph, Replay, Vec<DevicePtr>)> {
        let mut graph = std::ptr::null_mut();
        // SAFETY: the handle is alive and capturing; the pointer is writable.
        let code = unsafe { sys::cuStreamEndCapture(self.stream.handle, &raw mut graph) };
        self.stream.shared.check(code, || "cuStreamEndCapture".into())?;
        Ok((graph, self.replay, self.kept))
    }
}

impl Drop for Capturing {
    fn drop(&mut self) {
        if self.shared.enter().is_ok() {
            let mut graph = std::ptr::null_mut();
            // SAFETY: the handle was made for this value and is destroyed once; nothing runs on it. A capture that nobody has ended ends
            // here, and its graph, which nobody else has, goes; of another the first call says so, and gives none.
            unsafe {
                let _ = sys::cuStreamEndCapture(self.handle, &raw mut graph);
                if !graph.is_null() {
                    let _ = sys::cuGraphDestroy(graph);
                }
                let _ = sys::cuStreamDestroy_v2(self.handle);
            }
        }
    }
}
