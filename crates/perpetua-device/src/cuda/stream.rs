//! A stream as the contract sees it: copies, fills, reads, waiting, and what is captured.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cudarc::driver::sys::{self, CUresult};

use super::capture::Capture;
use super::core::{StreamCore, Target};
use super::driver::{Event, host, lock};
use super::event::{Ended, TimedEvent};
use super::graph::Graph;
use super::memory::Pool;
use super::record::PrintRing;
use crate::backend::{
    Content, GpuEvent, GpuGraph, GpuStream, check_copy, check_fill, check_owner, check_sizes, failed,
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
    pub(super) fn new(core: Arc<StreamCore>, pinned: &Arc<Pool>, prints: &Arc<PrintRing>) -> Stream {
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

    /// Submits a copy of `src` into pinned memory, which comes back to its pool behind the copy. Gives whether `src` must be held.
    fn fetch(&self, target: &Target<'_>, src: &DevicePtr) -> Result<(DevicePtr, bool)> {
        check_owner(self.core.shared.id, src.context_id(), "read", "the buffer")?;
        let staging = self.staging(src.len() as usize)?;
        let [holds, _] = self.copy_to(target, src, &staging)?;
        Ok((staging, holds))
    }

    /// Submits a copy. Gives which of the two must be held.
    fn copy_to(&self, target: &Target<'_>, src: &DevicePtr, dst: &DevicePtr) -> Result<[bool; 2]> {
        check_copy(self.core.shared.id, src, dst)?;
        if src.is_empty() {
            return Ok([false; 2]);
        }
        self.core.shared.enter()?;
        let holds = [target.use_memory(src)?, target.use_memory(dst)?];
        let len = src.len() as usize;
        // The driver's unified addresses tell which side is which.
        let side = |p: &DevicePtr| {
            p.host_ptr()
                .map_or_else(|| p.address(), |h| Some(h.as_ptr() as u64))
        };
        let (Some(from), Some(to)) = (side(src), side(dst)) else {
            return Ok([false; 2]);
        };
        // SAFETY: both ranges are alive (held by the stream or freed behind it), `len` bytes long, and do not overlap.
        let code = unsafe {
            match (src.host_ptr(), dst.host_ptr()) {
                (Some(p), None) => sys::cuMemcpyHtoDAsync_v2(to, host(p.as_ptr()), len, target.handle),
                (None, Some(p)) => sys::cuMemcpyDtoHAsync_v2(host(p.as_ptr()), from, len, target.handle),
                (None, None) => sys::cuMemcpyDtoDAsync_v2(to, from, len, target.handle),
                (Some(_), Some(_)) => sys::cuMemcpyAsync(to, from, len, target.handle),
            }
        };
        self.check(code, "copying", src.len())?;
        Ok(holds)
    }

    /// Submits a copy of bytes of the host, which have been read when this returns.
    fn write_to(&self, target: &Target<'_>, src: &[u8], dst: &DevicePtr) -> Result<()> {
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
        if src.len() <= STAGED || target.captured {
            let staging = self.staging(src.len())?;
            if let Some(to) = staging.host_ptr() {
                // SAFETY: fresh pinned memory of `src.len()` bytes that nobody else knows.
                unsafe { std::ptr::copy_nonoverlapping(src.as_ptr(), to.as_ptr(), src.len()) };
            }
            let holds = self.copy_to(target, &staging, dst)?;
            // For the graph, or until a wait, which spares it a mark.
            target.hold(&staging)?;
            return target.hold_if(holds[1], dst);
        }
        self.core.shared.enter()?;
        let holds = target.use_memory(dst)?;
        // SAFETY: `dst` is alive and `src.len()` bytes long; pageable memory has been read when the call returns.
        let code =
            unsafe { sys::cuMemcpyHtoDAsync_v2(address, src.as_ptr().cast(), src.len(), target.handle) };
        self.check(code, "copying to the device", dst.len())?;
        target.hold_if(holds, dst)
    }

    /// Submits a fill.
    fn fill_to(&self, target: &Target<'_>, dst: &DevicePtr, pattern: &[u8]) -> Result<()> {
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
        let holds = target.use_memory(dst)?;
        // SAFETY: `dst` is alive and `len` bytes long; the address is a multiple of the element where that is needed.
        let code = unsafe {
            match (unit, aligned) {
                (&[b], _) => sys::cuMemsetD8Async(address, b, len, target.handle),
                (&[a, b], true) => {
                    sys::cuMemsetD16Async(address, u16::from_le_bytes([a, b]), len / 2, target.handle)
                }
                (&[a, b, c, d], true) => {
                    sys::cuMemsetD32Async(address, u32::from_le_bytes([a, b, c, d]), len / 4, target.handle)
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
                            sys::cuMemsetD2D32Async(at, unit.len(), word, 1, rows, target.handle)
                        } else {
                            sys::cuMemsetD2D8Async(at, unit.len(), p[0], 1, rows, target.handle)
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
        target.hold_if(holds, dst)
    }

    /// Gives new memory its content, behind this stream's work so far, and before all other work that uses it. Captures have no part in it.
    pub(super) fn initialise(&self, dst: &DevicePtr, content: &Content<'_>) -> Result<()> {
        let target = self.core.uncaptured();
        match content {
            Content::Bytes(bytes) => self.write_to(&target, bytes, dst)?,
            Content::Pattern(pattern) => self.fill_to(&target, dst, pattern)?,
        }
        self.core.guard(dst)
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
        self.write_to(&self.core.target()?, src, dst)
    }

    fn copy(&self, src: &DevicePtr, dst: &DevicePtr) -> Result<()> {
        let target = self.core.target()?;
        let holds = self.copy_to(&target, src, dst)?;
        target.hold_if(holds[0], src)?;
        target.hold_if(holds[1], dst)
    }

    fn fill(&self, dst: &DevicePtr, pattern: &[u8]) -> Result<()> {
        self.fill_to(&self.core.target()?, dst, pattern)
    }

    fn read(&self, src: &DevicePtr) -> BoxFuture<'static, Result<HostBytes>> {
        let submit = || {
            self.core.not_capturing("reading back")?;
            let target = self.core.target()?;
            let (staging, holds) = self.fetch(&target, src)?;
            target.hold_if(holds, src)?;
            Ok((staging, Ended::behind(&self.core)?))
        };
        let (mut staging, ended) = match submit() {
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
            stream.core.unused(&mut staging);
            stream.report()?;
            Ok(HostBytes::new(Staged(staging)))
        })
    }

    fn read_blocking(&self, src: &DevicePtr, dst: &mut [u8]) -> Result<()> {
        check_sizes("read", src.len(), dst.len() as u64)?;
        self.core.not_capturing("reading back")?;
        let target = self.core.target()?;
        // The waits below hold what the copies use: the caller's.
        if dst.len() <= STAGED {
            let (mut staging, _) = self.fetch(&target, src)?;
            self.core.wait()?;
            self.core.unused(&mut staging);
            self.report()?;
            dst.copy_from_slice(Staged(staging).bytes());
            return Ok(());
        }
        // Large: the driver's own staging is as fast, and needs no pinned memory of that size.
        check_owner(self.core.shared.id, src.context_id(), "read", "the buffer")?;
        self.core.shared.enter()?;
        target.use_memory(src)?;
        let from = src
            .host_ptr()
            .map_or_else(|| src.address(), |h| Some(h.as_ptr() as u64))
            .unwrap_or(0);
        // SAFETY: `src` is alive and as long as `dst`, which is borrowed until the wait below has ended.
        let code = unsafe { sys::cuMemcpyAsync(dst.as_mut_ptr() as u64, from, dst.len(), target.handle) };
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
        // An event of outside a capture orders nothing within it.
        self.core.not_capturing("waiting for an event")?;
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
        let mut current = lock(&core.capture);
        core.not_capturing("beginning a capture")?;
        *current = Some(Capture::begin(&core.shared, core.records())?);
        // Relaxed: as in `StreamCore::target`.
        core.capturing.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn end_capture(&self) -> Result<Arc<dyn GpuGraph>> {
        let core = &self.core;
        core.shared.enter()?;
        let mut current = lock(&core.capture);
        // Another thread's is not taken.
        let of_this = current
            .as_ref()
            .map_or(Ok(()), |capture| capture.stream().map(drop));
        of_this?;
        let Some(capture) = current.take() else {
            return Err(Error::InvalidState {
                operation: "ending a capture",
                cause: "the stream is not capturing",
                remedy: "begin a capture first",
            });
        };
        // Relaxed: as above.
        core.capturing.store(false, Ordering::Relaxed);
        drop(current);
        let (graph, replay, kept) = capture.end()?;
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
            replay: Arc::new(replay),
            kept,
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
        let adopted = core.replay(&graph.kept)?;
        // SAFETY: both handles are alive and of this context; the graph keeps what its nodes use.
        let code = unsafe { sys::cuGraphLaunch(graph.exec, core.handle) };
        core.shared.check(code, || "cuGraphLaunch".into())?;
        core.replayed(&graph.replay, &adopted)
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
