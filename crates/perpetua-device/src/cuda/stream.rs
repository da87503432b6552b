//! A stream as the contract sees it: copies, fills, reads, waiting, and what is captured.

use std::any::Any;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use cudarc::driver::sys::{self, CUresult};

use super::core::{Capture, Replay, StreamCore};
use super::driver::{Event, host, lock};
use super::event::{Ended, TimedEvent};
use super::graph::Graph;
use super::memory::Pool;
use super::record::{FaultRecord, PrintRing};
use crate::backend::{
    GpuEvent, GpuGraph, GpuStream, check_copy, check_fill, check_owner, check_sizes, failed,
};
use crate::error::{Error, Result};
use crate::future::BoxFuture;
use crate::info::BackendKind;
use crate::ptr::{ContextId, DevicePtr, HostBytes, HostBytesOwner};

/// Host bytes up to this size are staged in pinned memory of ours, so that a copy never waits; larger ones go through the
/// driver's own staging, which reads them within the call.
const STAGED: usize = 32 << 20;
/// A stream as the contract sees it.
pub(super) struct Stream {
    core: Arc<StreamCore>,
    pinned: Arc<Pool>,
    prints: Arc<PrintRing>,
}

impl Stream {
    pub(super) fn new(
        core: Arc<StreamCore>,
        pinned: &Arc<Pool>,
        prints: &Arc<PrintRing>,
        streams: &Mutex<Vec<Weak<StreamCore>>>,
    ) -> Stream {
        let mut streams: MutexGuard<'_, _> = lock(streams);
        streams.retain(|s| s.strong_count() != 0);
        streams.push(Arc::downgrade(&core));
        Stream {
            core,
            pinned: Arc::clone(pinned),
            prints: Arc::clone(prints),
        }
    }

    pub(super) fn core(&self) -> &StreamCore {
        &self.core
    }

    fn check(&self, code: CUresult, operation: &'static str, bytes: u64) -> Result<()> {
        self.core
            .shared
            .check(code, || format!("{operation} of {bytes} bytes"))
    }

    fn staging(&self, len: usize) -> Result<DevicePtr> {
        Ok(DevicePtr::new(
            Arc::new(self.pinned.allocate(len as u64)?),
            len as u64,
        ))
    }

    /// Submits a copy of `src` into pinned memory.
    fn fetch(&self, src: &DevicePtr) -> Result<DevicePtr> {
        self.core.not_capturing("reading back")?;
        check_owner(self.core.shared.id, src.context_id(), "read", "the buffer")?;
        let staging = self.staging(src.len() as usize)?;
        self.copy(src, &staging)?;
        Ok(staging)
    }

    /// What a wait for this stream ends with.
    fn report(&self) -> Result<()> {
        self.prints.drain(true);
        self.core.fault()
    }
}

struct Staged(DevicePtr);

impl HostBytesOwner for Staged {
    fn bytes(&self) -> &[u8] {
        match self.0.host_ptr() {
            // SAFETY: pinned memory of at least this length (`DeviceMemory`'s promise); the copy into it has ended and
            // nobody else knows it.
            Some(p) => unsafe { std::slice::from_raw_parts(p.as_ptr(), self.0.len() as usize) },
            None => &[],
        }
    }
}

impl GpuStream for Stream {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn context_id(&self) -> ContextId {
        self.core.shared.id
    }

    fn copy_to_device(&self, src: &[u8], dst: &DevicePtr) -> Result<()> {
        check_owner(
            self.core.shared.id,
            dst.context_id(),
            "copy",
            "the destination buffer",
        )?;
        check_sizes("copy", src.len() as u64, dst.len())?;
        let Some(address) = dst.address().filter(|_| !src.is_empty()) else {
            return Ok(());
        };
        let capturing = self.core.capturing.load(Ordering::Acquire);
        if src.len() <= STAGED || capturing {
            let staging = self.staging(src.len())?;
            if let Some(to) = staging.host_ptr() {
                // SAFETY: fresh pinned memory of `src.len()` bytes that nobody else knows.
                unsafe { std::ptr::copy_nonoverlapping(src.as_ptr(), to.as_ptr(), src.len()) };
            }
            return self.copy(&staging, dst);
        }
        self.core.shared.enter()?;
        let holds = self.core.use_memory(dst)?;
        // SAFETY: `dst` is alive and `src.len()` bytes long; pageable memory has been read when the call returns.
        let code =
            unsafe { sys::cuMemcpyHtoDAsync_v2(address, src.as_ptr().cast(), src.len(), self.core.handle) };
        self.check(code, "copying to the device", dst.len())?;
        self.core.hold_if(holds, &[dst])
    }

    fn copy(&self, src: &DevicePtr, dst: &DevicePtr) -> Result<()> {
        let core = &self.core;
        check_copy(core.shared.id, src, dst)?;
        if src.is_empty() {
            return Ok(());
        }
        core.shared.enter()?;
        let holds = core.use_memory(src)? | core.use_memory(dst)?;
        let len = src.len() as usize;
        // The driver's unified addresses tell which side is which.
        let side = |p: &DevicePtr| {
            p.host_ptr()
                .map_or_else(|| p.address(), |h| Some(h.as_ptr() as u64))
        };
        let (Some(from), Some(to)) = (side(src), side(dst)) else {
            return Ok(());
        };
        // SAFETY: both ranges are alive (held by the stream or freed behind it), `len` bytes long, and do not overlap.
        let code = unsafe {
            match (src.host_ptr(), dst.host_ptr()) {
                (Some(p), None) => sys::cuMemcpyHtoDAsync_v2(to, host(p.as_ptr()), len, core.handle),
                (None, Some(p)) => sys::cuMemcpyDtoHAsync_v2(host(p.as_ptr()), from, len, core.handle),
                (None, None) => sys::cuMemcpyDtoDAsync_v2(to, from, len, core.handle),
                (Some(_), Some(_)) => sys::cuMemcpyAsync(to, from, len, core.handle),
            }
        };
        self.check(code, "copying", src.len())?;
        core.hold_if(holds, &[src, dst])
    }

    fn fill(&self, dst: &DevicePtr, pattern: &[u8]) -> Result<()> {
        let core = &self.core;
        check_fill(core.shared.id, dst, pattern)?;
        let Some(address) = dst.address().filter(|_| !dst.is_empty()) else {
            return Ok(());
        };
        core.shared.enter()?;
        // The shortest pattern that says the same: most fills are zeros.
        let mut unit = pattern;
        while unit.len() > 1 && unit[..unit.len() / 2] == unit[unit.len() / 2..] {
            unit = &unit[..unit.len() / 2];
        }
        let len = dst.len() as usize;
        let aligned = address.is_multiple_of(unit.len() as u64);
        let holds = core.use_memory(dst)?;
        // SAFETY: `dst` is alive and `len` bytes long; the address is a multiple of the element where that is needed.
        let code = unsafe {
            match (unit, aligned) {
                (&[b], _) => sys::cuMemsetD8Async(address, b, len, core.handle),
                (&[a, b], true) => {
                    sys::cuMemsetD16Async(address, u16::from_le_bytes([a, b]), len / 2, core.handle)
                }
                (&[a, b, c, d], true) => {
                    sys::cuMemsetD32Async(address, u32::from_le_bytes([a, b, c, d]), len / 4, core.handle)
                }
                _ => {
                    // A column of words, or of bytes, at a time: row `i` of a pitch of one pattern.
                    let piece = if unit.len() >= 4 && address.is_multiple_of(4) {
                        4
                    } else {
                        1
                    };
                    let rows = len / unit.len();
                    let mut code = CUresult::CUDA_SUCCESS;
                    for (i, p) in unit.chunks_exact(piece).enumerate() {
                        let at = address + (i * piece) as u64;
                        let next = if let &[a, b, c, d] = p {
                            let word = u32::from_le_bytes([a, b, c, d]);
                            sys::cuMemsetD2D32Async(at, unit.len(), word, 1, rows, core.handle)
                        } else {
                            sys::cuMemsetD2D8Async(at, unit.len(), p[0], 1, rows, core.handle)
                        };
                        if next != CUresult::CUDA_SUCCESS {
                            code = next;
                        }
                    }
                    code
                }
            }
        };
        self.check(code, "filling", dst.len())?;
        core.hold_if(holds, &[dst])
    }

    fn read(&self, src: &DevicePtr) -> BoxFuture<'static, Result<HostBytes>> {
        let submitted = self
            .fetch(src)
            .and_then(|staging| Ok((staging, Ended::behind(&self.core)?)));
        let (staging, ended) = match submitted {
            Ok(submitted) => submitted,
            Err(error) => return failed(error),
        };
        let stream = Stream {
            core: Arc::clone(&self.core),
            pinned: Arc::clone(&self.pinned),
            prints: Arc::clone(&self.prints),
        };
        Box::pin(async move {
            ended.await;
            stream.core.wait()?;
            stream.report()?;
            Ok(HostBytes::new(Staged(staging)))
        })
    }

    fn read_blocking(&self, src: &DevicePtr, dst: &mut [u8]) -> Result<()> {
        check_sizes("read", src.len(), dst.len() as u64)?;
        if dst.len() <= STAGED {
            let staging = self.fetch(src)?;
            self.core.wait()?;
            self.report()?;
            dst.copy_from_slice(Staged(staging).bytes());
            return Ok(());
        }
        // Large: the driver's own staging is as fast, and needs no pinned memory of that size.
        self.core.not_capturing("reading back")?;
        check_owner(self.core.shared.id, src.context_id(), "read", "the buffer")?;
        self.core.shared.enter()?;
        // The wait below holds what the copy uses: the caller's.
        self.core.use_memory(src)?;
        let from = src
            .host_ptr()
            .map_or_else(|| src.address(), |h| Some(h.as_ptr() as u64))
            .unwrap_or(0);
        // SAFETY: `src` is alive and as long as `dst`, which is borrowed until the wait below has ended.
        let code = unsafe { sys::cuMemcpyAsync(dst.as_mut_ptr() as u64, from, dst.len(), self.core.handle) };
        self.check(code, "reading back", src.len())?;
        self.core.wait()?;
        self.report()
    }

    fn record(&self) -> Result<Arc<dyn GpuEvent>> {
        self.core.not_capturing("recording an event")?;
        self.core.seal()?;
        let event = Event::new(&self.core.shared, true)?;
        event.record(self.core.handle)?;
        Ok(Arc::new(TimedEvent {
            event,
            core: Arc::clone(&self.core),
        }))
    }

    fn wait(&self, event: &dyn GpuEvent) -> Result<()> {
        check_owner(self.core.shared.id, event.context_id(), "wait", "the event")?;
        self.core.shared.enter()?;
        match event.as_any().downcast_ref::<TimedEvent>() {
            Some(event) => event.event.hold(self.core.handle),
            None => Err(foreign("wait", "the event")),
        }
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn is_idle(&self) -> Result<bool> {
        self.core.shared.enter()?;
        // SAFETY: the handle is alive.
        match unsafe { sys::cuStreamQuery(self.core.handle) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => self
                .core
                .shared
                .check(code, || "cuStreamQuery".into())
                .map(|()| true),
        }
    }

    fn synchronize(&self) -> BoxFuture<'_, Result<()>> {
        if let Err(error) = self.core.not_capturing("synchronising") {
            return failed(error);
        }
        let ended = match Ended::behind(&self.core) {
            Ok(ended) => ended,
            Err(error) => return failed(error),
        };
        Box::pin(async move {
            ended.await;
            self.core.wait()?;
            self.report()
        })
    }

    fn synchronize_blocking(&self) -> Result<()> {
        self.core.not_capturing("synchronising")?;
        self.core.wait()?;
        self.report()
    }

    fn take_fault(&self) -> Result<()> {
        self.core.shared.enter()?;
        self.core.fault()
    }

    fn begin_capture(&self) -> Result<()> {
        let core = &self.core;
        core.not_capturing("beginning a capture")?;
        core.shared.enter()?;
        let fault = FaultRecord::new(core.fault.pool())?;
        // Relaxed mode: other threads' allocations go on meanwhile.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the handle is alive and not capturing.
        let code = unsafe { sys::cuStreamBeginCapture_v2(core.handle, mode) };
        core.shared.check(code, || "cuStreamBeginCapture".into())?;
        *lock(&core.capture) = Some(Capture {
            replay: Replay::new(fault),
            kept: Vec::new(),
        });
        // Release: pairs with the Acquire in `use_memory` and `fault_address`.
        core.capturing.store(true, Ordering::Release);
        Ok(())
    }

    fn end_capture(&self) -> Result<Arc<dyn GpuGraph>> {
        let core = &self.core;
        core.shared.enter()?;
        let Some(capture) = lock(&core.capture).take() else {
            return Err(Error::InvalidState {
                operation: "ending a capture",
                cause: "the stream is not capturing",
                remedy: "begin a capture first",
            });
        };
        core.capturing.store(false, Ordering::Release);
        let mut graph = std::ptr::null_mut();
        // SAFETY: the handle is alive and capturing; the pointer is writable.
        let code = unsafe { sys::cuStreamEndCapture(core.handle, &raw mut graph) };
        core.shared.check(code, || "cuStreamEndCapture".into())?;
        let (mut nodes, mut exec) = (0, std::ptr::null_mut());
        // SAFETY: `graph` is the captured graph, destroyed here after the executable form is made of it.
        let code = unsafe {
            let counted = sys::cuGraphGetNodes(graph, std::ptr::null_mut(), &raw mut nodes);
            let made = sys::cuGraphInstantiateWithFlags(&raw mut exec, graph, 0);
            let _ = sys::cuGraphDestroy(graph);
            if counted == CUresult::CUDA_SUCCESS {
                made
            } else {
                counted
            }
        };
        core.shared.check(code, || "cuGraphInstantiate".into())?;
        Ok(Arc::new(Graph {
            exec,
            nodes,
            replay: Arc::new(capture.replay),
            kept: capture.kept,
            shared: Arc::clone(&core.shared),
        }))
    }

    fn launch_graph(&self, graph: &dyn GpuGraph) -> Result<()> {
        let core = &self.core;
        core.not_capturing("launching a graph")?;
        check_owner(core.shared.id, graph.context_id(), "launch a graph", "the graph")?;
        let Some(graph) = graph.as_any().downcast_ref::<Graph>() else {
            return Err(foreign("launch a graph", "the graph"));
        };
        core.shared.enter()?;
        // The graph keeps what is ours, which comes back behind the work in any case.
        let mut adopted = Vec::new();
        for ptr in &graph.kept {
            if core.use_held(ptr)? {
                adopted.push(ptr);
            }
        }
        // SAFETY: both handles are alive and of this context; the graph keeps what its nodes use.
        let code = unsafe { sys::cuGraphLaunch(graph.exec, core.handle) };
        core.shared.check(code, || "cuGraphLaunch".into())?;
        core.replayed(&graph.replay);
        core.hold_if(true, &adopted)
    }
}

pub(super) fn foreign(operation: &'static str, subject: &str) -> Error {
    Error::WrongDevice {
        operation,
        subject: subject.to_owned(),
    }
}

/// Says that this backend cannot do something.
pub(super) fn unsupported(operation: &'static str, remedy: &'static str) -> Error {
    Error::Unsupported {
        backend: BackendKind::Cuda,
        operation,
        remedy,
    }
}
