//! What a stream does: records launches, copies and fills, submits them, reads back. Must not know events and graphs.

use std::sync::{Arc, Mutex, MutexGuard};

use perpetua_ir::fault::record;

use super::memory::{Memory, Pool, Staging};
use super::recording::{Afterwards, Command, Recording, addresses};
use super::shared::{Shared, driver, lock};
use super::signal::Signal;
use super::transfer::Movers;
use crate::backend::failed;
use crate::error::{Error, Result};
use crate::fault::FaultRegistry;
use crate::future::BoxFuture;
use crate::ptr::DevicePtr;

/// Bytes of a fault record.
const FAULT_BYTES: u64 = record::WORDS as u64 * 4;

/// What streams, their events and futures share.
pub(super) struct StreamCore {
    pub(super) shared: Arc<Shared>,
    pool: Arc<Pool>,
    pub(super) staging: Arc<Staging>,
    movers: Arc<Movers>,
    pub(super) fault: wgpu::Buffer,
    recording: Mutex<Recording>,
    /// A fault that came with a read-back and has not been reported.
    found: Mutex<Option<Error>>,
}

/// A submitted read-back.
pub(super) struct ReadBack {
    /// The staging buffer, and where the data lies in it.
    buffer: wgpu::Buffer,
    data: std::ops::Range<u64>,
    done: Arc<Signal>,
    before: Vec<Afterwards>,
    submission: Option<wgpu::SubmissionIndex>,
}

impl StreamCore {
    pub(super) fn new(
        shared: &Arc<Shared>,
        pool: &Arc<Pool>,
        staging: &Arc<Staging>,
        movers: &Arc<Movers>,
    ) -> Result<Arc<StreamCore>> {
        let fault = shared.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("fault record"),
            size: FAULT_BYTES,
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let core = StreamCore {
            recording: Mutex::new(Recording::new(shared)),
            shared: Arc::clone(shared),
            pool: Arc::clone(pool),
            staging: Arc::clone(staging),
            movers: Arc::clone(movers),
            fault,
            found: Mutex::default(),
        };
        shared.check()?;
        Ok(Arc::new(core))
    }

    /// What is recorded.
    pub(super) fn recording(&self) -> MutexGuard<'_, Recording> {
        lock(&self.recording)
    }

    /// The same, unless a graph is being captured, which forbids `operation`.
    pub(super) fn running(&self, operation: &'static str) -> Result<MutexGuard<'_, Recording>> {
        self.shared.check()?;
        let rec = self.recording();
        if rec.capture.is_none() {
            return Ok(rec);
        }
        Err(Error::InvalidState {
            operation,
            cause: "the stream is capturing a graph",
            remedy: "end the capture first, or use another stream",
        })
    }

    /// Submits everything recorded, with a copy of `src` (if it is device memory) and of the fault record to memory
    /// that the host maps.
    pub(super) fn read_back(
        self: &Arc<Self>,
        src: Option<&DevicePtr>,
        operation: &'static str,
    ) -> Result<ReadBack> {
        let mut rec = self.running(operation)?;
        let before = rec.pending().to_vec();
        // Held until the record has been looked at: nobody else gets these numbers before.
        let sites = std::mem::take(&mut rec.may_fault);
        let may_fault = !sites.is_empty();
        let data_at = if may_fault { FAULT_BYTES } else { 0 };
        let device = src.and_then(|p| Some((p, p.downcast::<Memory>()?)));
        let (words, data) = device.map_or((0..0, data_at..data_at), |(p, _)| {
            let words = words_around(p);
            let skip = data_at + p.offset() - words.start;
            (words, skip..skip + p.len())
        });
        let len = words.end - words.start;
        let size = data_at + len;
        let buffer = self.staging.take(size);
        if let Some((p, memory)) = device.filter(|_| len != 0) {
            self.shared.count_read(p.len());
            rec.hold(p);
            rec.encoder(&self.shared).copy_buffer_to_buffer(
                &memory.buffer,
                words.start,
                &buffer,
                data_at,
                len,
            );
        }
        if may_fault {
            let encoder = rec.encoder(&self.shared);
            encoder.copy_buffer_to_buffer(&self.fault, 0, &buffer, 0, FAULT_BYTES);
            encoder.clear_buffer(&self.fault, 0, None);
        }
        rec.submit(&self.shared);
        let done = Arc::<Signal>::default();
        let signal = Arc::clone(&done);
        if size == 0 {
            self.shared.queue.on_submitted_work_done(move || signal.set(true));
        } else {
            let (core, source) = (Arc::downgrade(self), buffer.clone());
            buffer.map_async(wgpu::MapMode::Read, ..size, move |result| {
                // Here and not where the bytes are taken: that future may be dropped.
                if may_fault
                    && result.is_ok()
                    && let Some(core) = core.upgrade()
                {
                    core.note_fault(&source);
                }
                drop(sites);
                signal.set(result.is_ok());
            });
        }
        if may_fault {
            rec.afterwards.push(Afterwards {
                done: Arc::clone(&done),
                writes: 0..0,
            });
        }
        Ok(ReadBack {
            buffer,
            data,
            done,
            before,
            submission: rec.last.clone(),
        })
    }

    /// Keeps the fault in the record at the start of a mapped buffer, if there is one, to be reported.
    fn note_fault(&self, mapped: &wgpu::Buffer) {
        let Ok(view) = mapped.get_mapped_range(..FAULT_BYTES) else {
            return;
        };
        let mut words = [0u32; record::WORDS];
        for (word, bytes) in words.iter_mut().zip(view.chunks_exact(4)) {
            *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        if let Some(fault) = FaultRegistry::global().fault(&words) {
            lock(&self.found).get_or_insert(Error::from(fault));
        }
    }

    /// The first unreported fault that has been noted.
    pub(super) fn take_fault(&self) -> Result<()> {
        lock(&self.found).take().map_or(Ok(()), Err)
    }

    /// Takes the data of a read-back that has ended, unless a fault is to be reported.
    fn deliver<R>(&self, back: &ReadBack, ok: bool, take: impl FnOnce(&[u8]) -> R) -> Result<R> {
        self.shared.check()?;
        if !ok {
            return Err(driver("reading back", "the buffer could not be mapped"));
        }
        let fault = self.take_fault();
        let data = &back.data;
        if data.end == 0 {
            self.staging.give(back.buffer.clone());
            return fault.map(|()| take(&[]));
        }
        let taken = match fault {
            Ok(()) if data.is_empty() => Ok(take(&[])),
            Ok(()) => {
                // Mapped ranges start at multiples of 8 and are whole words.
                let start = data.start / 8 * 8;
                let range = start..data.end.next_multiple_of(4);
                back.buffer
                    .get_mapped_range(range)
                    .map(|view| take(&view[(data.start - start) as usize..(data.end - start) as usize]))
                    .map_err(|e| driver("reading back", e.to_string()))
            }
            Err(fault) => Err(fault),
        };
        back.buffer.unmap();
        self.staging.give(back.buffer.clone());
        taken
    }

    /// Waits for a read-back on this thread and takes its data.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn wait_for<R>(&self, back: &ReadBack, take: impl FnOnce(&[u8]) -> R) -> Result<R> {
        for earlier in &back.before {
            self.shared.wait_for(&earlier.done, back.submission.as_ref());
        }
        let ok = self.shared.wait_for(&back.done, back.submission.as_ref());
        self.deliver(back, ok, take)
    }

    /// The same as a future.
    pub(super) async fn ended<R>(&self, back: &ReadBack, take: impl FnOnce(&[u8]) -> R) -> Result<R> {
        for earlier in &back.before {
            self.shared.ended(&earlier.done, back.submission.as_ref()).await;
        }
        let ok = self.shared.ended(&back.done, back.submission.as_ref()).await;
        self.deliver(back, ok, take)
    }

    pub(super) fn synchronize(self: Arc<Self>) -> BoxFuture<'static, Result<()>> {
        match self.read_back(None, "synchronising") {
            Ok(back) => Box::pin(async move { self.ended(&back, |_| ()).await }),
            Err(error) => failed(error),
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn synchronize_blocking(self: &Arc<Self>) -> Result<()> {
        let back = self.read_back(None, "synchronising")?;
        self.wait_for(&back, |_| ())
    }

    #[cfg(target_arch = "wasm32")]
    pub(super) fn synchronize_blocking(self: &Arc<Self>) -> Result<()> {
        Err(Error::CannotBlock {
            operation: "synchronising",
        })
    }

    /// Records a command, or adds it to the graph being captured.
    pub(super) fn submit(&self, command: Command) -> Result<()> {
        self.shared.check()?;
        let mut rec = self.recording();
        match &mut rec.capture {
            Some(captured) => captured.push(command),
            None => self.record(&mut rec, &command),
        }
    }

    /// Records a command.
    pub(super) fn record(&self, rec: &mut Recording, command: &Command) -> Result<()> {
        match command {
            Command::Launch(dispatch) => dispatch.record(self, rec),
            Command::Copy(src, dst) => self.copy(rec, src, dst),
            Command::Fill(dst, pattern) => self.fill(rec, dst, pattern),
        }
    }

    fn copy(&self, rec: &mut Recording, src: &DevicePtr, dst: &DevicePtr) -> Result<()> {
        match (src.downcast::<Memory>(), dst.downcast::<Memory>()) {
            (Some(_), Some(_)) => self.movers.copy(rec, src, dst),
            (Some(from), None) => {
                self.fetch(rec, &from.buffer, src, dst);
                Ok(())
            }
            (None, Some(_)) => {
                self.settle(rec, src)?;
                self.write(rec, host_bytes(src), dst)
            }
            (None, None) => {
                self.settle(rec, src)?;
                self.settle(rec, dst)?;
                put(dst, host_bytes(src));
                Ok(())
            }
        }
    }

    fn fill(&self, rec: &mut Recording, dst: &DevicePtr, pattern: &[u8]) -> Result<()> {
        if dst.downcast::<Memory>().is_some() {
            return self.movers.fill(rec, dst, pattern);
        }
        self.settle(rec, dst)?;
        put(dst, &pattern.repeat(dst.len() as usize / pattern.len().max(1)));
        Ok(())
    }

    /// Submits a copy whose bytes the host puts into `dst` when the device is done.
    fn fetch(&self, rec: &mut Recording, from: &wgpu::Buffer, src: &DevicePtr, dst: &DevicePtr) {
        let words = words_around(src);
        let (skip, len) = ((src.offset() - words.start) as usize, words.end - words.start);
        let buffer = self.staging.take(len);
        self.shared.count_read(src.len());
        rec.hold(src);
        rec.encoder(&self.shared)
            .copy_buffer_to_buffer(from, words.start, &buffer, 0, len);
        rec.submit(&self.shared);
        let done = Arc::<Signal>::default();
        rec.afterwards.push(Afterwards {
            done: Arc::clone(&done),
            writes: addresses(dst),
        });
        let (staging, dst, source) = (Arc::clone(&self.staging), dst.clone(), buffer.clone());
        buffer.map_async(wgpu::MapMode::Read, ..len, move |result| {
            if result.is_ok() {
                if let Ok(view) = source.get_mapped_range(..len) {
                    put(&dst, &view[skip..skip + dst.len() as usize]);
                }
                source.unmap();
                staging.give(source);
            }
            // Whoever waits may rely on nobody holding the memory.
            drop(dst);
            done.set(result.is_ok());
        });
    }

    /// Copies host bytes to device memory.
    pub(super) fn write(&self, rec: &mut Recording, bytes: &[u8], dst: &DevicePtr) -> Result<()> {
        // The queue's writes come before the next submission's commands: so those recorded go first.
        rec.submit(&self.shared);
        self.movers.write(rec, bytes, dst, &self.pool)
    }

    /// Waits until no earlier copy is still to write `memory`, which is the host's: the next step touches it at once.
    fn settle(&self, rec: &mut Recording, memory: &DevicePtr) -> Result<()> {
        let own = addresses(memory);
        let overlap = |a: &&Afterwards| a.writes.start < own.end && own.start < a.writes.end;
        for earlier in rec.pending().iter().filter(overlap) {
            #[cfg(not(target_arch = "wasm32"))]
            self.shared.wait_for(&earlier.done, None);
            #[cfg(target_arch = "wasm32")]
            if earlier.done.get().is_none() {
                return Err(Error::CannotBlock {
                    operation: "using pinned memory that is being copied to",
                });
            }
        }
        Ok(())
    }
}

/// The whole words that a part of device memory lies in, as byte offsets.
fn words_around(ptr: &DevicePtr) -> std::ops::Range<u64> {
    ptr.offset() / 4 * 4..(ptr.offset() + ptr.len()).next_multiple_of(4)
}

/// The bytes of host memory; none of device memory.
pub(super) fn host_bytes(ptr: &DevicePtr) -> &[u8] {
    match ptr.host_ptr() {
        // SAFETY: host memory of this length, initialised (`DeviceMemory`'s promise), kept alive by `ptr`; the contract
        // leaves it to the stream until a wait that covers the copy has returned.
        Some(p) => unsafe { std::slice::from_raw_parts(p.as_ptr(), ptr.len() as usize) },
        None => &[],
    }
}

/// Puts bytes into host memory, as many as both have.
pub(super) fn put(dst: &DevicePtr, bytes: &[u8]) {
    if let Some(to) = dst.host_ptr() {
        let count = bytes.len().min(dst.len() as usize);
        // SAFETY: host memory of at least `count` bytes that `dst` keeps alive and that the contract leaves to the stream
        // until a wait that covers the copy has returned; `bytes` lie elsewhere: in wgpu's memory, in a vector, or in
        // another part of host memory (`check_copy` refuses overlaps).
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), count) };
    }
}
