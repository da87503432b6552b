//! The contract of a backend: what each trait promises, in what order work runs, who checks what. A new backend is one
//! folder that implements these traits and passes the conformance suite. Must not know any backend.
//!
//! # Contract
//! **Life cycle.** A [`GpuBackend`] lists devices; [`create_context`](GpuBackend::create_context) opens one. Everything
//! made from a context (memory, streams, events, kernels, graphs) keeps what it needs of it alive by reference counting, so
//! values may be dropped in any order.
//!
//! **Order.** Work submitted to one stream runs in order of submission. Streams run independently, but for
//! [`GpuStream::wait`]. Memory may be used on any stream as soon as it is allocated, and as soon as
//! [`GpuContext::initialise`] has given it its content.
//!
//! **Blocking.** Submission never waits for the device and needs no executor. Only what returns a future waits; such a
//! future may be polled by any executor, is woken by the backend, and may be dropped at any time. Work is submitted by the call, not by
//! the first poll. `*_blocking` twins sleep on the calling thread; where a thread may not sleep (browsers) they
//! return [`Error::CannotBlock`] if they would have to.
//! The CPU and null backends may do work within the submitting call.
//!
//! **Memory in flight.** A stream keeps what submitted work uses usable until that work has ended, whatever is dropped
//! meanwhile. For pinned, mapped and [adopted](GpuContext::adopt) memory it holds clones of the [`DevicePtr`]s, and has
//! dropped them when a synchronisation that covers the work returns.
//!
//! **Checks.** Copies, fills and reads check sizes and ownership themselves ([`check_copy`], [`check_owner`]) and are
//! safe. [`KernelFunction::launch`] is unsafe: its caller ([`Device::launch`](crate::Device::launch)) has checked
//! arguments, limits and ownership once in front of all backends.
//!
//! **Faults.** A kernel's fault does not stop the stream. The first one since the last report is returned, as
//! [`Error::Fault`], by the next of: [`GpuStream::synchronize`], [`GpuStream::read`], their blocking
//! twins and [`GpuStream::take_fault`] on the stream that ran the kernel, or [`GpuContext::synchronize`]; and is then cleared. A read that
//! reports a fault gives no bytes.
//!
//! **Loss.** Once a device is lost, every operation gives [`Error::DeviceLost`]; drops do nothing.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

pub use crate::captured::{Captured, capture_of_another};
use crate::dim::LaunchConfig;
use crate::error::{Error, Result};
use crate::future::{BoxFuture, MaybeSend, MaybeSync, ready};
use crate::gate::Gate;
use crate::info::{BackendKind, DeviceInfo, MemoryInfo};
use crate::overlap::Overlap;
use crate::ptr::{ContextId, DevicePtr, HostBytes, MemoryKind, Owner, PoolStats};
use crate::signature::{KernelArg, Signature};
use crate::source::{CompileOptions, KernelSource};
use crate::way::Way;

/// A family of devices.
pub trait GpuBackend: MaybeSend + MaybeSync + 'static {
    /// Identifier: `cuda`, `metal`, `wgpu`, `cpu`, `null`.
    fn name(&self) -> &'static str {
        self.kind().name()
    }

    /// Which backend this is.
    fn kind(&self) -> BackendKind;

    /// Number of usable devices. Index 0 is the one that automatic choice takes (high-performance GPUs come first).
    fn device_count(&self) -> usize;

    /// Properties of a device. [`Error::DeviceNotFound`] for an index not below
    /// [`GpuBackend::device_count`].
    fn device_info(&self, device_id: usize) -> Result<DeviceInfo>;

    /// Opens a device.
    fn create_context(&self, device_id: usize) -> BoxFuture<'_, Result<Box<dyn GpuContext>>>;

    /// Opens a device, waiting on this thread.
    fn create_context_blocking(&self, device_id: usize) -> Result<Box<dyn GpuContext>> {
        #[cfg(not(target_arch = "wasm32"))]
        return crate::future::block_on(self.create_context(device_id));
        #[cfg(target_arch = "wasm32")]
        crate::future::now_or_cannot_block(self.create_context(device_id), "opening a device")
    }
}

/// What memory is to hold.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// These bytes, of which there are as many as the memory has.
    Bytes(&'a [u8]),
    /// A pattern of 1, 2, 4, 8 or 16 bytes, again and again.
    Pattern(&'a [u8]),
}

impl Content<'_> {
    /// Submits the copy or fill that makes `dst` hold it.
    pub fn submit(&self, stream: &dyn GpuStream, dst: &DevicePtr) -> Result<()> {
        match self {
            Content::Bytes(bytes) => stream.copy_to_device(bytes, dst),
            Content::Pattern(pattern) => stream.fill(dst, pattern),
        }
    }
}

/// An opened device.
pub trait GpuContext: MaybeSend + MaybeSync + 'static {
    /// For the backend to find its own type again.
    fn as_any(&self) -> &dyn Any;

    /// Names this context.
    fn id(&self) -> ContextId;

    /// The device's properties, as they were when it was opened.
    fn info(&self) -> &DeviceInfo;

    /// The device's memory now.
    fn memory_info(&self) -> Result<MemoryInfo>;

    /// Takes memory from the pool of `kind`. Addresses are aligned to at least 256 bytes (host memory: 64). Zero bytes are
    /// allowed. The content is unspecified, but memory that the host reaches is initialised. Kinds that the device
    /// lacks are [`Error::Unsupported`]. Device memory that other work
    /// used before is handed out only so that that work's accesses come first.
    fn allocate(&self, bytes: u64, kind: MemoryKind) -> Result<DevicePtr>;

    /// Gives memory that was just allocated, and that no work uses yet, its content. Work that is submitted afterwards comes behind
    /// that, whatever its stream; no capture records it. Fails as the copy or fill does.
    fn initialise(&self, dst: &DevicePtr, content: &Content<'_>) -> Result<()>;

    /// Takes `bytes` bytes at `address`, in kernels' address space, that `owner` owns, as device memory. No pool ever has them;
    /// `owner` is dropped when the last clone is gone and submitted work no longer uses them, by whatever thread finds
    /// that, or at once on an error: [`Error::WrongDevice`] for another device's memory, [`Error::InvalidState`] for what
    /// cannot be memory, [`Error::Unsupported`] where kernels know no addresses.
    ///
    /// # Safety
    /// As [`Device::adopt`](crate::Device::adopt).
    unsafe fn adopt(&self, address: u64, bytes: u64, owner: Box<dyn Owner>) -> Result<DevicePtr> {
        let _ = (address, bytes, owner);
        Err(Error::Unsupported {
            backend: self.info().backend,
            operation: "adopt memory by its address",
            remedy: "copy the data into memory of the device's own",
        })
    }

    /// Makes memory of `contexts.len()` parts, one in the memory of each of `contexts`, the first of which is this one, that all of them reach as one
    /// piece: at least `bytes` in each, in the order of `contexts`. Gives it as each context's, and how many bytes a part has. The content is
    /// unspecified, and initialised. [`Error::Unsupported`] where one does not reach another's memory.
    fn span(&self, contexts: &[&dyn GpuContext], bytes: u64) -> Result<(Vec<DevicePtr>, u64)> {
        let _ = (contexts, bytes);
        Err(Error::no_span(self.info().backend))
    }

    /// Mapped memory of another context of this backend, as this one's: the same bytes, which the host goes on reaching. [`Error::Unsupported`] where
    /// drivers map host memory for one device alone.
    fn map_again(&self, memory: &DevicePtr) -> Result<DevicePtr> {
        let _ = memory;
        Err(Error::Unsupported {
            backend: self.info().backend,
            operation: "map another device's host memory",
            remedy: "copy the data into memory of the device's own",
        })
    }

    /// Takes the driver's stream `handle`, which `owner` owns, as a stream, so that work here and work of others is
    /// ordered. `owner` is dropped when the last clone is gone and work submitted here has ended, or at once on an error:
    /// [`Error::WrongDevice`] for another device's stream, [`Error::Unsupported`] where the driver has no streams.
    ///
    /// # Safety
    /// As [`Device::adopt_stream`](crate::Device::adopt_stream).
    unsafe fn adopt_stream(&self, handle: u64, owner: Box<dyn Owner>) -> Result<Arc<dyn GpuStream>> {
        let _ = (handle, owner);
        Err(Error::Unsupported {
            backend: self.info().backend,
            operation: "use another program part's stream",
            remedy: "use a stream of the device's own, and wait where the two meet",
        })
    }

    /// Gives memory back, once every clone is gone: the same as dropping it.
    fn free(&self, ptr: DevicePtr) -> Result<()> {
        drop(ptr);
        Ok(())
    }

    /// What the pool of `kind` has done so far.
    fn pool_stats(&self, kind: MemoryKind) -> PoolStats;

    /// Returns unused pool memory of every kind to the driver, until at most `keep` bytes of each kind are reserved beyond
    /// what is in use. Memory still used by submitted work may stay.
    fn trim(&self, keep: u64) -> Result<()>;

    /// Compiles a kernel. [`Device`](crate::Device) keeps what it compiled, so a context needs no cache in memory; one on disk is
    /// [`DiskCache`](crate::cache::DiskCache). May take long (the driver's compiler), but does not wait for work on the device.
    fn compile(&self, source: &KernelSource<'_>, options: &CompileOptions)
    -> Result<Arc<dyn CompiledKernel>>;

    /// The same without holding the calling thread while the driver's compiler runs: it is begun by this call, on a thread of the
    /// backend's where it may take long, and goes on when the future is dropped. What the future needs of the source has been
    /// taken (and a [`KernelSource::Spec`] lowered) when this returns. Backends that compile nothing that takes long, and browsers, whose
    /// pipelines wgpu offers no asynchronous way to make, have compiled when this returns.
    fn compile_async(
        &self,
        source: &KernelSource<'_>,
        options: &CompileOptions,
    ) -> BoxFuture<'static, Result<Arc<dyn CompiledKernel>>> {
        ready(self.compile(source, options))
    }

    /// The stream that operations without a stream go to.
    fn default_stream(&self) -> &Arc<dyn GpuStream>;

    /// Copies host bytes to `dst` on the default stream: see [`GpuStream::copy_to_device`].
    fn copy_to_device(&self, src: &[u8], dst: &DevicePtr) -> Result<()> {
        self.default_stream().copy_to_device(src, dst)
    }

    /// Copies `src` to the host, after all earlier work of the default stream: see [`GpuStream::read`].
    fn copy_to_host<'a>(&self, src: &DevicePtr, dst: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        let reading = self.default_stream().read(src);
        Box::pin(async move {
            let bytes = reading.await?;
            check_sizes("read", bytes.len() as u64, dst.len() as u64)?;
            dst.copy_from_slice(&bytes);
            Ok(())
        })
    }

    /// Copies between two places on the default stream: see [`GpuStream::copy`].
    fn copy_device_to_device(&self, src: &DevicePtr, dst: &DevicePtr) -> Result<()> {
        self.default_stream().copy(src, dst)
    }

    /// A new stream, independent of all others.
    fn create_stream(&self) -> Result<Arc<dyn GpuStream>>;

    /// Waits for all work submitted so far, on every stream.
    fn synchronize(&self) -> BoxFuture<'_, Result<()>>;

    /// The same, on this thread.
    fn synchronize_blocking(&self) -> Result<()>;

    /// The gate around calls that would wait for resident kernels, where the device can have such; `None` elsewhere.
    fn gate(&self) -> Option<&Gate> {
        None
    }

    /// Loses the device on purpose, so that tests can see what becomes of it.
    #[cfg(feature = "testing")]
    fn lose_device_for_test(&self) -> Result<()> {
        Err(Error::Unsupported {
            backend: self.info().backend,
            operation: "lose a device for a test",
            remedy: "test device loss on another backend",
        })
    }

    /// Launches kernels that have an entry point for large grids by it, however small the grid, where a backend has such.
    #[cfg(feature = "testing")]
    fn widen_all_for_test(&self) {}

    /// Changes the text of every kernel rendered from now on, so that tests can plant a bug in a renderer. Can be said
    /// once for each context.
    ///
    /// # Safety
    /// The changed kernels access memory only as the unchanged ones do.
    #[cfg(feature = "testing")]
    unsafe fn rewrite_kernels_for_test(&self, _rewrite: TextRewrite) -> Result<()> {
        Err(Error::Unsupported {
            backend: self.info().backend,
            operation: "rewrite the text of kernels for a test",
            remedy: "plant the bug on a backend that renders kernels as text",
        })
    }
}

/// Gives another text for a kernel's. Must keep its entry point and parameters.
#[cfg(feature = "testing")]
pub type TextRewrite = fn(&str) -> String;

/// A compiled module: one kernel from IR or native code, or all entry points of a text.
pub trait CompiledKernel: MaybeSend + MaybeSync + 'static {
    /// For the backend to find its own type again.
    fn as_any(&self) -> &dyn Any;

    /// Entry points' names; empty when the backend cannot list them.
    fn function_names(&self) -> Vec<String>;

    /// The entry point called `name`; [`Error::FunctionNotFound`] otherwise.
    fn get_function(&self, name: &str) -> Result<Arc<dyn KernelFunction>>;
}

/// What a launch is, beside its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// Its shape.
    pub config: LaunchConfig,
    /// Which of its arguments share bytes: all pairs.
    pub overlaps: &'a [Overlap],
}

/// An entry point that can be launched.
pub trait KernelFunction: MaybeSend + MaybeSync + 'static {
    /// For the backend to find its own type again.
    fn as_any(&self) -> &dyn Any;

    /// Its name.
    fn name(&self) -> &str;

    /// The context it was compiled in.
    fn context_id(&self) -> ContextId;

    /// Its parameters, for kernels from IR and native code; `None` for text, whose arguments nobody can check.
    fn signature(&self) -> Option<&Signature>;

    /// The largest block that this kernel can be launched with (registers may make it smaller than the device's).
    fn max_threads_per_block(&self) -> u32;

    /// Blocks of so many lanes and so much dynamic shared memory that a multiprocessor has room for at the same time, where the device tells.
    fn blocks_per_multiprocessor(&self, lanes: u32, shared_bytes: u32) -> Result<Option<u32>> {
        let _ = (lanes, shared_bytes);
        Ok(None)
    }

    /// How its launches run. Those that look for races, and on the CPU those of machine code with buffers of 2 GiB or more, run in the interpreter all the same.
    fn way(&self) -> Way {
        Way::Driver
    }

    /// Submits a launch to `stream`. A grid with no blocks is legal and does nothing.
    ///
    /// # Safety
    /// - With a signature: `args` have passed [`Signature::check`]. Without: they are what the kernel's text expects, and the
    ///   text accesses memory only inside the buffers given to it.
    /// - Buffers, function and `stream` belong to one context.
    /// - The configuration is inside the limits of device and kernel; `block` has no zero, and equals the signature's block
    ///   size if there is one; `cluster` divides the grid, and is one block where the device has no clusters;
    ///   `cooperative` is asked of devices only that say they can. The backend itself checks that all blocks of a
    ///   cooperative launch have room.
    /// - `overlaps` has every pair of buffers in `args` that share bytes, and
    ///   [`Signature::check_overlaps`] has passed.
    /// - The IR it was compiled from, if any, is safe (`perpetua_ir::verify::Verified::is_safe`).
    unsafe fn launch(
        &self,
        launch: &Launch<'_>,
        stream: &dyn GpuStream,
        args: &[KernelArg<'_>],
    ) -> Result<()>;
}

/// A queue of work on one device, run in order of submission.
pub trait GpuStream: MaybeSend + MaybeSync + 'static {
    /// For the backend to find its own type again.
    fn as_any(&self) -> &dyn Any;

    /// The context it belongs to.
    fn context_id(&self) -> ContextId;

    /// Copies host bytes to `dst`, of equal length, at any offset. `src` has been read when this returns.
    fn copy_to_device(&self, src: &[u8], dst: &DevicePtr) -> Result<()>;

    /// Copies between two places of equal length, at any offsets, of any kinds of memory of this context. Overlapping
    /// places in one allocation are an error.
    fn copy(&self, src: &DevicePtr, dst: &DevicePtr) -> Result<()>;

    /// Fills `dst` with a repeated pattern of 1, 2, 4, 8 or 16 bytes; the length of `dst` is a multiple of the pattern's.
    fn fill(&self, dst: &DevicePtr, pattern: &[u8]) -> Result<()>;

    /// Submits a copy of `src` to the host and waits for it: all earlier work of this stream has ended when the bytes come.
    fn read(&self, src: &DevicePtr) -> BoxFuture<'static, Result<HostBytes>>;

    /// The same into `dst`, of equal length, waiting on this thread.
    fn read_blocking(&self, src: &DevicePtr, dst: &mut [u8]) -> Result<()>;

    /// Marks this point of the stream.
    fn record(&self) -> Result<Arc<dyn GpuEvent>>;

    /// Makes later work of this stream wait for a mark, which may be another stream's.
    fn wait(&self, event: &dyn GpuEvent) -> Result<()>;

    /// Hands work that the backend has gathered to the driver. Never needed for progress of anything waited for.
    fn flush(&self) -> Result<()>;

    /// Whether all work submitted so far has ended. Reports no fault.
    fn is_idle(&self) -> Result<bool>;

    /// Waits for all work submitted so far to this stream.
    fn synchronize(&self) -> BoxFuture<'_, Result<()>>;

    /// The same, on this thread.
    fn synchronize_blocking(&self) -> Result<()>;

    /// The first unreported fault of work that is known to have ended, as an error; without waiting. A backend that learns
    /// of faults only with a read-back reports what came with the last one.
    fn take_fault(&self) -> Result<()>;

    /// From here on, records launches, copies and fills that this thread submits to this stream instead of running them. Reading back,
    /// synchronising and recording events while capturing are [`Error::InvalidState`], and so is what other threads submit.
    fn begin_capture(&self) -> Result<()>;

    /// Ends the capture, on the thread that began it. Bytes from the host are part of the graph; device memory is used where it lies, and kept alive.
    fn end_capture(&self) -> Result<Arc<dyn GpuGraph>>;

    /// Submits all work of a graph, as often as wanted, on any stream of its context.
    fn launch_graph(&self, graph: &dyn GpuGraph) -> Result<()>;
}

/// A point in a stream's work.
pub trait GpuEvent: MaybeSend + MaybeSync + 'static {
    /// For the backend to find its own type again.
    fn as_any(&self) -> &dyn Any;

    /// The context it belongs to.
    fn context_id(&self) -> ContextId;

    /// Whether the work before it has ended.
    fn is_complete(&self) -> Result<bool>;

    /// Waits until the work before it has ended. Reports loss of the device, but no fault.
    fn synchronize(&self) -> BoxFuture<'_, Result<()>>;

    /// The same, on this thread.
    fn synchronize_blocking(&self) -> Result<()>;

    /// Time on the device from `earlier` to this event. Both must be complete, else
    /// [`Error::InvalidState`]. Devices without timestamps say
    /// [`Error::Unsupported`].
    fn elapsed_since(&self, earlier: &dyn GpuEvent) -> Result<Duration>;
}

/// Work captured for replay.
pub trait GpuGraph: MaybeSend + MaybeSync + 'static {
    /// For the backend to find its own type again.
    fn as_any(&self) -> &dyn Any;

    /// The context it belongs to.
    fn context_id(&self) -> ContextId;

    /// Number of launches, copies and fills in it.
    fn node_count(&self) -> usize;
}

/// Checks that `subject` belongs to the context `own`.
pub fn check_owner(own: ContextId, other: ContextId, operation: &'static str, subject: &str) -> Result<()> {
    if own == other {
        return Ok(());
    }
    Err(Error::WrongDevice {
        operation,
        subject: subject.to_owned(),
    })
}

/// Checks that source and destination are equally long.
pub fn check_sizes(operation: &'static str, source_len: u64, destination_len: u64) -> Result<()> {
    if source_len == destination_len {
        return Ok(());
    }
    Err(Error::SizeMismatch {
        operation,
        source_len,
        destination_len,
        unit: "bytes",
    })
}

/// Checks what [`GpuStream::copy`] demands, but for the backend's own part.
pub fn check_copy(own: ContextId, src: &DevicePtr, dst: &DevicePtr) -> Result<()> {
    check_owner(own, src.context_id(), "copy", "the source buffer")?;
    check_owner(own, dst.context_id(), "copy", "the destination buffer")?;
    check_sizes("copy", src.len(), dst.len())?;
    if src.overlaps(dst) {
        return Err(Error::InvalidState {
            operation: "copy",
            cause: "source and destination overlap",
            remedy: "copy through another buffer",
        });
    }
    Ok(())
}

/// Checks what [`GpuStream::fill`] demands, but for the backend's own part.
pub fn check_fill(own: ContextId, dst: &DevicePtr, pattern: &[u8]) -> Result<()> {
    check_owner(own, dst.context_id(), "fill", "the buffer")?;
    if !matches!(pattern.len(), 1 | 2 | 4 | 8 | 16) {
        return Err(Error::Limit {
            what: "bytes in a fill pattern",
            found: pattern.len() as u64,
            limit: 16,
            remedy: "use a pattern of 1, 2, 4, 8 or 16 bytes",
        });
    }
    if !dst.len().is_multiple_of(pattern.len() as u64) {
        return Err(Error::Alignment {
            operation: "fill",
            subject: "the end of the buffer".into(),
            found: dst.len(),
            needed: pattern.len() as u64,
        });
    }
    Ok(())
}

/// A future that has failed already.
pub fn failed<'a, T: MaybeSend + 'a>(error: Error) -> BoxFuture<'a, Result<T>> {
    ready(Err(error))
}
