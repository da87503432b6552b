//! Streams: recorded work, its submission, read-backs, events and graphs.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use perpetua_ir::fault::record;

use super::device::{Shared, driver, lock};
use super::launch::Dispatch;
use super::memory::{Memory, Pool, Staging};
use super::transfer::Movers;
use crate::backend::{
    GpuEvent, GpuGraph, GpuStream, check_copy, check_fill, check_owner, check_sizes, failed,
};
use crate::error::{Error, Result};
use crate::fault::FaultRegistry;
use crate::future::BoxFuture;
use crate::info::BackendKind;
use crate::ptr::{ContextId, DevicePtr, HostBytes, MemoryKind};

/// Bytes of kernel arguments in one submission; a full block is submitted.
const ARGS_BYTES: u64 = 256 << 10;
/// Bytes of a fault record.
const FAULT_BYTES: u64 = record::WORDS as u64 * 4;

/// Work recorded and not submitted yet.
pub(super) struct Recording {
    encoder: Option<wgpu::CommandEncoder>,
    pass: Option<wgpu::ComputePass<'static>>,
    args: Vec<u8>,
    args_buffer: wgpu::Buffer,
    held: Vec<DevicePtr>,
    /// A launch that can fault was recorded since faults were last looked for.
    may_fault: bool,
    last: Option<wgpu::SubmissionIndex>,
    capture: Option<Vec<Command>>,
}

/// One step of a graph.
#[derive(Clone)]
enum Command {
    Launch(Dispatch),
    Copy(DevicePtr, DevicePtr),
    Fill(DevicePtr, Vec<u8>),
}

impl Recording {
    fn new(shared: &Shared) -> Recording {
        Recording {
            encoder: None,
            pass: None,
            args: Vec::new(),
            args_buffer: shared.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("arguments"),
                size: ARGS_BYTES,
                usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            }),
            held: Vec::new(),
            may_fault: false,
            last: None,
            capture: None,
        }
    }

    /// Keeps memory from being used for something else until the work recorded here is submitted.
    pub(super) fn hold(&mut self, ptr: &DevicePtr) {
        self.held.push(ptr.clone());
    }

    /// The encoder, outside any pass.
    pub(super) fn encoder(&mut self, shared: &Shared) -> &mut wgpu::CommandEncoder {
        self.pass = None;
        self.open(shared)
    }

    fn open(&mut self, shared: &Shared) -> &mut wgpu::CommandEncoder {
        let make = || {
            shared
                .device
                .create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
        };
        self.encoder.get_or_insert_with(make)
    }

    /// The open compute pass.
    pub(super) fn pass(&mut self, shared: &Shared) -> &mut wgpu::ComputePass<'static> {
        if self.pass.is_none() {
            let pass = self
                .open(shared)
                .begin_compute_pass(&wgpu::ComputePassDescriptor::default())
                .forget_lifetime();
            self.pass = Some(pass);
        }
        // Just made.
        self.pass.get_or_insert_with(|| unreachable_pass(shared))
    }

    pub(super) fn args_buffer(&self) -> &wgpu::Buffer {
        &self.args_buffer
    }

    /// Adds an argument block and gives its offset. Submits what is recorded when there is no room.
    pub(super) fn push_args(&mut self, shared: &Shared, bytes: &[u8]) -> Result<u32> {
        let alignment = shared.limits.min_uniform_buffer_offset_alignment.max(16) as usize;
        if bytes.len() as u64 > ARGS_BYTES {
            return Err(Error::Limit {
                what: "bytes of kernel arguments",
                found: bytes.len() as u64,
                limit: ARGS_BYTES,
                remedy: "pass large values in a buffer",
            });
        }
        let mut start = self.args.len().next_multiple_of(alignment);
        if (start + bytes.len()) as u64 > ARGS_BYTES {
            self.submit(shared);
            start = 0;
        }
        self.args.resize(start, 0);
        self.args.extend_from_slice(bytes);
        Ok(start as u32)
    }

    /// Notes that a launch may write the fault record.
    pub(super) fn may_fault(&mut self) {
        self.may_fault = true;
    }

    /// Submits what is recorded.
    pub(super) fn submit(&mut self, shared: &Shared) {
        self.pass = None;
        let Some(encoder) = self.encoder.take() else {
            return;
        };
        if !self.args.is_empty() {
            self.args.resize(self.args.len().next_multiple_of(4), 0);
            shared.queue.write_buffer(&self.args_buffer, 0, &self.args);
            self.args.clear();
        }
        self.last = Some(shared.queue.submit([encoder.finish()]));
        self.held.clear();
    }
}

fn unreachable_pass(shared: &Shared) -> wgpu::ComputePass<'static> {
    let mut encoder = shared
        .device
        .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder
        .begin_compute_pass(&wgpu::ComputePassDescriptor::default())
        .forget_lifetime()
}

/// What streams, their events and futures share.
pub(super) struct StreamCore {
    pub(super) shared: Arc<Shared>,
    pool: Arc<Pool>,
    staging: Arc<Staging>,
    movers: Arc<Movers>,
    pub(super) fault: wgpu::Buffer,
    pub(super) recording: Mutex<Recording>,
    /// A fault that came with a read-back and has not been reported.
    found: Mutex<Option<Error>>,
}

/// Something that will be known later.
#[derive(Default)]
struct Signal(Mutex<(Option<bool>, Option<Waker>)>);

impl Signal {
    fn set(&self, ok: bool) {
        let waker = {
            let mut state = lock(&self.0);
            state.0 = Some(ok);
            state.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn get(&self) -> Option<bool> {
        lock(&self.0).0
    }
}

struct Signalled(Arc<Signal>);

impl Future for Signalled {
    type Output = bool;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let mut state = lock(&self.0.0);
        match state.0 {
            Some(ok) => Poll::Ready(ok),
            None => {
                state.1 = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// A submitted read-back: the data's staging buffer, where the data lies in it, and where the fault record lies.
struct ReadBack {
    buffer: wgpu::Buffer,
    data: std::ops::Range<usize>,
    fault: Option<usize>,
    mapped: Arc<Signal>,
    submission: Option<wgpu::SubmissionIndex>,
}

impl StreamCore {
    fn not_capturing(rec: &Recording, operation: &'static str) -> Result<()> {
        if rec.capture.is_none() {
            return Ok(());
        }
        Err(Error::InvalidState {
            operation,
            cause: "the stream is capturing a graph",
            remedy: "end the capture first, or use another stream",
        })
    }

    /// Submits everything recorded, with a copy of `src` (if any) and of the fault record to memory that the host maps.
    fn read_back(&self, src: Option<&DevicePtr>, operation: &'static str) -> Result<ReadBack> {
        self.shared.check()?;
        let mut guard = lock(&self.recording);
        let rec = &mut *guard;
        Self::not_capturing(rec, operation)?;
        let memory = src.and_then(|p| Some((p, p.downcast::<Memory>()?)));
        // Copies are of whole words: take the words around the range.
        let (start, len) = memory.map_or((0, 0), |(p, _)| {
            let start = p.offset() / 4 * 4;
            (start, (p.offset() + p.len() - start).next_multiple_of(4))
        });
        let fault = rec.may_fault.then_some(len);
        let size = len + if fault.is_some() { FAULT_BYTES } else { 0 };
        let buffer = self.staging.take(size.max(4));
        if let Some((p, memory)) = memory.filter(|_| len != 0) {
            rec.hold(p);
            rec.encoder(&self.shared)
                .copy_buffer_to_buffer(&memory.buffer, start, &buffer, 0, len);
        }
        if let Some(at) = fault {
            let encoder = rec.encoder(&self.shared);
            encoder.copy_buffer_to_buffer(&self.fault, 0, &buffer, at, FAULT_BYTES);
            encoder.clear_buffer(&self.fault, 0, None);
            rec.may_fault = false;
        }
        rec.submit(&self.shared);
        let submission = rec.last.clone();
        drop(guard);
        let mapped = Arc::<Signal>::default();
        let signal = Arc::clone(&mapped);
        if size == 0 {
            self.shared.queue.on_submitted_work_done(move || signal.set(true));
        } else {
            buffer.map_async(wgpu::MapMode::Read, ..size, move |result| {
                signal.set(result.is_ok())
            });
        }
        let skip = src.map_or(0, |p| p.offset() - start) as usize;
        let data = skip..skip + src.map_or(0, |p| p.len() as usize);
        Ok(ReadBack {
            buffer,
            data,
            fault: fault.map(|at| at as usize),
            mapped,
            submission,
        })
    }

    /// Takes the data of a read-back that has been mapped, or the fault that came with it.
    fn deliver<R>(&self, back: &ReadBack, ok: bool, take: impl FnOnce(&[u8]) -> R) -> Result<R> {
        self.shared.check()?;
        if !ok {
            return Err(driver("reading back", "the buffer could not be mapped"));
        }
        if back.data.is_empty() && back.fault.is_none() {
            self.take_found()?;
            return Ok(take(&[]));
        }
        let view = back
            .buffer
            .get_mapped_range(..)
            .or_else(|_| {
                back.buffer.get_mapped_range(
                    ..(back
                        .fault
                        .map_or(back.data.end.next_multiple_of(4), |at| at + FAULT_BYTES as usize))
                        as u64,
                )
            })
            .map_err(|e| driver("reading back", format!("{e:?}")))?;
        if let Some(at) = back.fault {
            let bytes = &view[at..at + FAULT_BYTES as usize];
            let words: [u32; record::WORDS] = std::array::from_fn(|i| {
                let b = &bytes[4 * i..4 * i + 4];
                u32::from_le_bytes([b[0], b[1], b[2], b[3]])
            });
            if let Some(fault) = FaultRegistry::global().fault(&words) {
                lock(&self.found).get_or_insert(Error::from(fault));
            }
        }
        let result = self.take_found().map(|()| take(&view[back.data.clone()]));
        drop(view);
        back.buffer.unmap();
        self.staging.give(back.buffer.clone());
        result
    }

    fn take_found(&self) -> Result<()> {
        lock(&self.found).take().map_or(Ok(()), Err)
    }

    /// Waits for a read-back on this thread.
    #[cfg(not(target_arch = "wasm32"))]
    fn wait_for(&self, back: &ReadBack) -> Result<bool> {
        while back.mapped.get().is_none() {
            self.shared.wait(back.submission.clone())?;
        }
        Ok(back.mapped.get().unwrap_or(false))
    }

    /// Waits for a read-back as a future. A thread of its own drives the device, so that any executor will do.
    async fn wait_for_async(self: &Arc<Self>, back: &ReadBack) -> bool {
        #[cfg(not(target_arch = "wasm32"))]
        {
            let core = Arc::clone(self);
            let (mapped, submission) = (Arc::clone(&back.mapped), back.submission.clone());
            let drive = move || {
                while mapped.get().is_none() {
                    if core.shared.wait(submission.clone()).is_err() {
                        mapped.set(false);
                    }
                }
            };
            if back.mapped.get().is_none() {
                let started = std::thread::Builder::new()
                    .name("perpetua-wgpu".into())
                    .spawn(drive);
                if started.is_err() {
                    return self.wait_for(back).unwrap_or(false);
                }
            }
        }
        Signalled(Arc::clone(&back.mapped)).await
    }

    pub(super) fn synchronize(self: Arc<Self>) -> BoxFuture<'static, Result<()>> {
        let back = match self.read_back(None, "synchronising") {
            Ok(back) => back,
            Err(error) => return failed(error),
        };
        Box::pin(async move {
            let ok = self.wait_for_async(&back).await;
            self.deliver(&back, ok, |_| ())
        })
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn synchronize_blocking(&self) -> Result<()> {
        let back = self.read_back(None, "synchronising")?;
        let ok = self.wait_for(&back)?;
        self.deliver(&back, ok, |_| ())
    }

    #[cfg(target_arch = "wasm32")]
    pub(super) fn synchronize_blocking(&self) -> Result<()> {
        Err(Error::CannotBlock {
            operation: "synchronising",
        })
    }

    /// Records a launch, or adds it to the graph being captured.
    pub(super) fn launch(&self, dispatch: Dispatch) -> Result<()> {
        self.shared.check()?;
        let mut rec = lock(&self.recording);
        if let Some(commands) = &mut rec.capture {
            commands.push(Command::Launch(dispatch));
            return Ok(());
        }
        dispatch.record(self, &mut rec)
    }

    fn copy(&self, src: &DevicePtr, dst: &DevicePtr) -> Result<()> {
        let mut rec = lock(&self.recording);
        if let Some(commands) = &mut rec.capture {
            commands.push(Command::Copy(src.clone(), dst.clone()));
            return Ok(());
        }
        self.copy_now(&mut rec, src, dst)
    }

    fn copy_now(&self, rec: &mut Recording, src: &DevicePtr, dst: &DevicePtr) -> Result<()> {
        match (src.kind(), dst.kind()) {
            (MemoryKind::Device, MemoryKind::Device) => self.movers.copy(rec, src, dst),
            (MemoryKind::Device, _) => {
                self.fetch_into(rec, src, dst);
                Ok(())
            }
            (_, MemoryKind::Device) => {
                let Some(bytes) = host_bytes(src) else {
                    return Ok(());
                };
                self.write_now(rec, bytes, dst)
            }
            _ => {
                if let (Some(from), Some(to)) = (src.host_ptr(), dst.host_ptr()) {
                    // SAFETY: both are host memory of this length that their owners keep alive, and do not overlap
                    // (checked by `check_copy`).
                    unsafe {
                        std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), src.len() as usize);
                    }
                }
                Ok(())
            }
        }
    }

    /// Submits a copy whose bytes are put into pinned memory when the device is done.
    fn fetch_into(&self, rec: &mut Recording, src: &DevicePtr, dst: &DevicePtr) {
        let Some(memory) = src.downcast::<Memory>() else {
            return;
        };
        let start = src.offset() / 4 * 4;
        let len = (src.offset() + src.len() - start).next_multiple_of(4);
        let (skip, count) = ((src.offset() - start) as usize, src.len() as usize);
        let buffer = self.staging.take(len);
        rec.hold(src);
        rec.encoder(&self.shared)
            .copy_buffer_to_buffer(&memory.buffer, start, &buffer, 0, len);
        rec.submit(&self.shared);
        let (staging, dst, source) = (Arc::clone(&self.staging), dst.clone(), buffer.clone());
        buffer.map_async(wgpu::MapMode::Read, ..len, move |result| {
            if result.is_err() {
                return;
            }
            if let (Ok(view), Some(to)) = (source.get_mapped_range(..len), dst.host_ptr()) {
                // SAFETY: pinned memory of at least `count` bytes, which the stream's contract leaves to this copy until
                // a wait that covers it has returned.
                unsafe { std::ptr::copy_nonoverlapping(view[skip..].as_ptr(), to.as_ptr(), count) };
            }
            source.unmap();
            staging.give(source);
        });
    }

    fn write_now(&self, rec: &mut Recording, bytes: &[u8], dst: &DevicePtr) -> Result<()> {
        // The queue's writes come before the next submission's commands: so those recorded go first.
        rec.submit(&self.shared);
        rec.hold(dst);
        if let Some(staging) = self.movers.write(dst, bytes, &self.pool)? {
            let staging = staging.slice(0..bytes.len() as u64)?;
            self.movers.copy(rec, &staging, dst)?;
        }
        Ok(())
    }
}

fn host_bytes(ptr: &DevicePtr) -> Option<&[u8]> {
    // SAFETY: host memory of at least this length, initialised (`DeviceMemory`'s promise), kept alive by `ptr`.
    ptr.host_ptr()
        .map(|p| unsafe { std::slice::from_raw_parts(p.as_ptr(), ptr.len() as usize) })
}

/// A stream as the contract sees it.
pub(super) struct Stream(Arc<StreamCore>);

impl Stream {
    pub(super) fn new(
        shared: &Arc<Shared>,
        pool: &Arc<Pool>,
        staging: &Arc<Staging>,
        movers: &Arc<Movers>,
    ) -> Result<Stream> {
        let fault = shared.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("fault record"),
            size: 256,
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        shared.check()?;
        Ok(Stream(Arc::new(StreamCore {
            recording: Mutex::new(Recording::new(shared)),
            shared: Arc::clone(shared),
            pool: Arc::clone(pool),
            staging: Arc::clone(staging),
            movers: Arc::clone(movers),
            fault,
            found: Mutex::default(),
        })))
    }

    pub(super) fn core(&self) -> &Arc<StreamCore> {
        &self.0
    }
}

impl GpuStream for Stream {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn context_id(&self) -> ContextId {
        self.0.shared.id
    }

    fn copy_to_device(&self, src: &[u8], dst: &DevicePtr) -> Result<()> {
        let core = &self.0;
        core.shared.check()?;
        check_owner(core.shared.id, dst.context_id(), "copy", "the destination buffer")?;
        check_sizes("copy", src.len() as u64, dst.len())?;
        if src.is_empty() {
            return Ok(());
        }
        let mut rec = lock(&core.recording);
        if dst.kind() != MemoryKind::Device || rec.capture.is_some() {
            drop(rec);
            // Host memory of ours keeps the bytes: for the graph, or until the copy's turn has come.
            let kept = core.staging.pinned(src.len() as u64)?;
            if let Some(to) = kept.host_ptr() {
                // SAFETY: fresh memory of this length that nobody else knows.
                unsafe { std::ptr::copy_nonoverlapping(src.as_ptr(), to.as_ptr(), src.len()) };
            }
            return core.copy(&kept, dst);
        }
        core.write_now(&mut rec, src, dst)
    }

    fn copy(&self, src: &DevicePtr, dst: &DevicePtr) -> Result<()> {
        self.0.shared.check()?;
        check_copy(self.0.shared.id, src, dst)?;
        if src.is_empty() {
            Ok(())
        } else {
            self.0.copy(src, dst)
        }
    }

    fn fill(&self, dst: &DevicePtr, pattern: &[u8]) -> Result<()> {
        let core = &self.0;
        core.shared.check()?;
        check_fill(core.shared.id, dst, pattern)?;
        if dst.is_empty() {
            return Ok(());
        }
        let mut rec = lock(&core.recording);
        if let Some(commands) = &mut rec.capture {
            commands.push(Command::Fill(dst.clone(), pattern.to_vec()));
            return Ok(());
        }
        fill_now(core, &mut rec, dst, pattern)
    }

    fn read(&self, src: &DevicePtr) -> BoxFuture<'static, Result<HostBytes>> {
        let core = Arc::clone(&self.0);
        if let Err(error) = check_owner(core.shared.id, src.context_id(), "read", "the buffer") {
            return failed(error);
        }
        let device = src.kind() == MemoryKind::Device;
        let back = match core.read_back(device.then_some(src), "reading back") {
            Ok(back) => back,
            Err(error) => return failed(error),
        };
        let host = (!device).then(|| src.clone());
        Box::pin(async move {
            let ok = core.wait_for_async(&back).await;
            let bytes = core.deliver(&back, ok, <[u8]>::to_vec)?;
            Ok(HostBytes::new(match host.as_ref().and_then(host_bytes) {
                Some(bytes) => bytes.to_vec(),
                None => bytes,
            }))
        })
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn read_blocking(&self, src: &DevicePtr, dst: &mut [u8]) -> Result<()> {
        let core = &self.0;
        check_owner(core.shared.id, src.context_id(), "read", "the buffer")?;
        check_sizes("read", src.len(), dst.len() as u64)?;
        let device = src.kind() == MemoryKind::Device;
        let back = core.read_back(device.then_some(src), "reading back")?;
        let ok = core.wait_for(&back)?;
        core.deliver(&back, ok, |bytes| {
            if device {
                dst.copy_from_slice(bytes);
            } else if let Some(bytes) = host_bytes(src) {
                dst.copy_from_slice(bytes);
            }
        })
    }

    #[cfg(target_arch = "wasm32")]
    fn read_blocking(&self, _: &DevicePtr, _: &mut [u8]) -> Result<()> {
        Err(Error::CannotBlock {
            operation: "reading back",
        })
    }

    fn record(&self) -> Result<Arc<dyn GpuEvent>> {
        let core = &self.0;
        core.shared.check()?;
        let mut guard = lock(&core.recording);
        let rec = &mut *guard;
        StreamCore::not_capturing(rec, "recording an event")?;
        let timing = core
            .shared
            .features
            .contains(wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS);
        let stamp = timing.then(|| stamp(core, rec));
        // Even without commands: an event stands behind what was submitted before.
        rec.encoder(&core.shared);
        rec.submit(&core.shared);
        let submission = rec.last.clone();
        drop(guard);
        let done = Arc::<Signal>::default();
        let signal = Arc::clone(&done);
        core.shared.queue.on_submitted_work_done(move || signal.set(true));
        let time = Arc::<Mutex<Option<u64>>>::default();
        if let Some(buffer) = stamp {
            let (time, source, staging) = (Arc::clone(&time), buffer.clone(), Arc::clone(&core.staging));
            buffer.map_async(wgpu::MapMode::Read, ..8, move |result| {
                if result.is_err() {
                    return;
                }
                if let Ok(view) = source.get_mapped_range(..8) {
                    let bytes: [u8; 8] = std::array::from_fn(|i| view[i]);
                    *lock(&time) = Some(u64::from_le_bytes(bytes));
                }
                source.unmap();
                staging.give(source);
            });
        }
        Ok(Arc::new(Event {
            core: Arc::clone(core),
            done,
            time,
            submission,
        }))
    }

    fn wait(&self, event: &dyn GpuEvent) -> Result<()> {
        check_owner(self.0.shared.id, event.context_id(), "wait", "the event")?;
        // The event's work has been submitted to the one queue; what is recorded here comes behind it.
        self.0.shared.check()
    }

    fn flush(&self) -> Result<()> {
        let mut rec = lock(&self.0.recording);
        if rec.capture.is_none() {
            rec.submit(&self.0.shared);
        }
        self.0.shared.check()
    }

    fn is_idle(&self) -> Result<bool> {
        let core = &self.0;
        core.shared.check()?;
        self.flush()?;
        let done = Arc::<Signal>::default();
        let signal = Arc::clone(&done);
        core.shared.queue.on_submitted_work_done(move || signal.set(true));
        let _ = core.shared.device.poll(wgpu::PollType::Poll);
        Ok(done.get().is_some())
    }

    fn synchronize(&self) -> BoxFuture<'_, Result<()>> {
        Arc::clone(&self.0).synchronize()
    }

    fn synchronize_blocking(&self) -> Result<()> {
        self.0.synchronize_blocking()
    }

    fn take_fault(&self) -> Result<()> {
        self.0.shared.check()?;
        self.0.take_found()
    }

    fn begin_capture(&self) -> Result<()> {
        let mut rec = lock(&self.0.recording);
        StreamCore::not_capturing(&rec, "beginning a capture")?;
        rec.submit(&self.0.shared);
        rec.capture = Some(Vec::new());
        self.0.shared.check()
    }

    fn end_capture(&self) -> Result<Arc<dyn GpuGraph>> {
        let commands = lock(&self.0.recording)
            .capture
            .take()
            .ok_or(Error::InvalidState {
                operation: "ending a capture",
                cause: "the stream is not capturing",
                remedy: "begin a capture first",
            })?;
        Ok(Arc::new(Graph {
            commands,
            id: self.0.shared.id,
        }))
    }

    fn launch_graph(&self, graph: &dyn GpuGraph) -> Result<()> {
        let core = &self.0;
        core.shared.check()?;
        check_owner(core.shared.id, graph.context_id(), "launch a graph", "the graph")?;
        let Some(graph) = graph.as_any().downcast_ref::<Graph>() else {
            return Err(Error::WrongDevice {
                operation: "launch a graph",
                subject: "the graph".into(),
            });
        };
        let mut guard = lock(&core.recording);
        let rec = &mut *guard;
        StreamCore::not_capturing(rec, "launching a graph")?;
        for command in &graph.commands {
            match command {
                Command::Launch(dispatch) => dispatch.record(core, rec)?,
                Command::Copy(src, dst) => core.copy_now(rec, src, dst)?,
                Command::Fill(dst, pattern) => fill_now(core, rec, dst, pattern)?,
            }
        }
        Ok(())
    }
}

fn fill_now(core: &StreamCore, rec: &mut Recording, dst: &DevicePtr, pattern: &[u8]) -> Result<()> {
    if dst.kind() == MemoryKind::Device {
        return core.movers.fill(rec, dst, pattern);
    }
    let bytes: Vec<u8> = pattern.iter().copied().cycle().take(dst.len() as usize).collect();
    if let Some(to) = dst.host_ptr() {
        // SAFETY: host memory of this length that `dst` keeps alive.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
    }
    Ok(())
}

/// Records a time stamp and its copy to a buffer that the host maps.
fn stamp(core: &StreamCore, rec: &mut Recording) -> wgpu::Buffer {
    let device = &core.shared.device;
    let queries = device.create_query_set(&wgpu::QuerySetDescriptor {
        label: None,
        ty: wgpu::QueryType::Timestamp,
        count: 1,
    });
    let resolved = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 256,
        usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
        mapped_at_creation: false,
    });
    let buffer = core.staging.take(8);
    let encoder = rec.encoder(&core.shared);
    encoder.write_timestamp(&queries, 0);
    encoder.resolve_query_set(&queries, 0..1, &resolved, 0);
    encoder.copy_buffer_to_buffer(&resolved, 0, &buffer, 0, 8);
    buffer
}

struct Event {
    core: Arc<StreamCore>,
    done: Arc<Signal>,
    /// Ticks of the device's clock, once known.
    time: Arc<Mutex<Option<u64>>>,
    submission: Option<wgpu::SubmissionIndex>,
}

impl GpuEvent for Event {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn context_id(&self) -> ContextId {
        self.core.shared.id
    }

    fn is_complete(&self) -> Result<bool> {
        if self.done.get().is_none() {
            let _ = self.core.shared.device.poll(wgpu::PollType::Poll);
            self.core.shared.check()?;
        }
        Ok(self.done.get().is_some())
    }

    fn synchronize(&self) -> BoxFuture<'_, Result<()>> {
        let back = ReadBack {
            buffer: self.core.fault.clone(),
            data: 0..0,
            fault: None,
            mapped: Arc::clone(&self.done),
            submission: self.submission.clone(),
        };
        Box::pin(async move {
            self.core.wait_for_async(&back).await;
            self.core.shared.check()
        })
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn synchronize_blocking(&self) -> Result<()> {
        while self.done.get().is_none() {
            self.core.shared.wait(self.submission.clone())?;
        }
        Ok(())
    }

    #[cfg(target_arch = "wasm32")]
    fn synchronize_blocking(&self) -> Result<()> {
        Err(Error::CannotBlock {
            operation: "waiting for an event",
        })
    }

    fn elapsed_since(&self, earlier: &dyn GpuEvent) -> Result<Duration> {
        let Some(earlier) = earlier.as_any().downcast_ref::<Event>() else {
            return Err(Error::WrongDevice {
                operation: "elapsed time",
                subject: "the earlier event".into(),
            });
        };
        check_owner(
            self.core.shared.id,
            earlier.core.shared.id,
            "elapsed time",
            "the earlier event",
        )?;
        if !self
            .core
            .shared
            .features
            .contains(wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS)
        {
            return Err(Error::Unsupported {
                backend: BackendKind::Wgpu,
                operation: "tell the time between events",
                remedy: "use a device with timestamp queries",
            });
        }
        if !earlier.is_complete()? || !self.is_complete()? {
            return Err(Error::InvalidState {
                operation: "elapsed time",
                cause: "an event has not happened yet",
                remedy: "synchronise with the later event first",
            });
        }
        let ticks = |event: &Event| {
            lock(&event.time).ok_or_else(|| driver("elapsed time", "the time stamp did not come back"))
        };
        let period = f64::from(self.core.shared.queue.get_timestamp_period());
        let elapsed = ticks(self)?.saturating_sub(ticks(earlier)?);
        Ok(Duration::from_secs_f64(elapsed as f64 * period * 1e-9))
    }
}

struct Graph {
    commands: Vec<Command>,
    id: ContextId,
}

impl GpuGraph for Graph {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn context_id(&self) -> ContextId {
        self.id
    }
    fn node_count(&self) -> usize {
        self.commands.len()
    }
}
