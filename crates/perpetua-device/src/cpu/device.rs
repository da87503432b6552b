//! The CPU as a device: its properties, and its context.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use perpetua_ir::back::Capability;

use super::claims::Claims;
use super::stream::{CpuStream, Queue};
use super::{compile, simd, threads};
use crate::backend::{CompiledKernel, Content, GpuBackend, GpuContext, GpuStream};
use crate::error::{Error, Result};
use crate::future::{BoxFuture, ready};
use crate::gate::Gate;
use crate::host::{self, HostPools, Transfer};
use crate::info::{AdapterType, BackendKind, DeviceInfo, DeviceLimits, MemoryInfo, NumericProbe};
use crate::ptr::{ContextId, DevicePtr, MemoryKind, Owner, PoolStats};
use crate::source::{CompileOptions, KernelSource};

/// Lanes in a subgroup of the interpreter.
pub(super) const SUBGROUP: u32 = 32;

/// The CPU backend. It has one device: the whole processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuBackend;

impl CpuBackend {
    /// The backend.
    pub fn new() -> CpuBackend {
        CpuBackend
    }
}

impl GpuBackend for CpuBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Cpu
    }

    fn device_count(&self) -> usize {
        1
    }

    fn device_info(&self, device_id: usize) -> Result<DeviceInfo> {
        if device_id != 0 {
            return Err(Error::DeviceNotFound {
                backend: BackendKind::Cpu,
                index: device_id,
                count: 1,
                looked_for: "the host's processor, which is one device".into(),
                remedy: "use device 0; RAYON_NUM_THREADS chooses the number of threads".into(),
            });
        }
        let memory = host::memory_info();
        Ok(DeviceInfo {
            name: simd::name(),
            backend: BackendKind::Cpu,
            index: 0,
            vendor: simd::vendor(),
            driver: String::new(),
            adapter_type: AdapterType::Cpu,
            computes: true,
            on_host: true,
            compute_capability: None,
            multiprocessors: u32::try_from(threads::count()).ok(),
            clock: None,
            memory_total: memory.total,
            memory_free: memory.free,
            unified_memory: true,
            mapped_memory: true,
            timestamps: cfg!(not(target_arch = "wasm32")),
            pci_id: None,
            limits: DeviceLimits {
                max_threads_per_block: 1024,
                max_block: [1024; 3],
                max_grid: [i32::MAX as u32, u32::MAX, u32::MAX],
                shared_bytes_per_block: 256 << 10,
                max_cluster: 1,
                cooperative: false,
                max_buffers: u32::MAX,
                max_buffer_bytes: isize::MAX as u64,
                max_loop_turns: None,
            },
            subgroup_size: (SUBGROUP, SUBGROUP),
            capabilities: Capability::ALL.into(),
            numeric_probe: Some(NumericProbe::EXACT),
            details: vec![
                ("SIMD".into(), simd::features().join(" ")),
                ("threads".into(), threads::count().to_string()),
            ],
        })
    }

    fn create_context(&self, device_id: usize) -> BoxFuture<'_, Result<Box<dyn GpuContext>>> {
        ready(self.device_info(device_id).map(|info| {
            let context: Box<dyn GpuContext> = Box::new(CpuContext::new(info));
            context
        }))
    }
}

/// The opened processor.
pub struct CpuContext {
    shared: Arc<Shared>,
    pools: HostPools,
    gate: Gate,
    default_stream: Arc<dyn GpuStream>,
}

/// What context, streams, events and kernels have in common.
pub(super) struct Shared {
    pub(super) id: ContextId,
    pub(super) info: DeviceInfo,
    lost: AtomicBool,
    races: AtomicBool,
    cache: AtomicU64,
    widths: AtomicUsize,
    queues: Mutex<Vec<Weak<Queue>>>,
    pub(super) claims: Claims,
    // Whether there were ever two streams at the same time.
    several: AtomicBool,
}

impl Shared {
    /// Fails when the device was lost.
    pub(super) fn alive(&self) -> Result<()> {
        // Relaxed: a flag that is set once; nothing is published through it.
        if !self.lost.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(Error::DeviceLost {
            backend: BackendKind::Cpu,
            device: self.info.name.clone(),
            reason: "a test asked for it".into(),
        })
    }

    /// Whether launches look for races.
    pub(super) fn detects_races(&self) -> bool {
        // Relaxed: nothing is published through it.
        self.races.load(Ordering::Relaxed)
    }

    /// Bytes that a core has in its cache.
    pub(super) fn cache(&self) -> u64 {
        // Relaxed: as in `detects_races`.
        self.cache.load(Ordering::Relaxed)
    }

    /// How many of the processor's widths of vectors kernels may be compiled for.
    pub(super) fn widths(&self) -> usize {
        // Relaxed: as in `detects_races`.
        self.widths.load(Ordering::Relaxed)
    }

    /// Whether work of several streams may meet, so that it must claim its memory. Asked under a queue's lock.
    pub(super) fn must_claim(&self) -> bool {
        // Relaxed: the queue's lock orders it, as `new_stream` says.
        self.several.load(Ordering::Relaxed)
    }

    fn queues(&self) -> Vec<Arc<Queue>> {
        let mut queues = self.queues.lock().unwrap_or_else(|e| e.into_inner());
        queues.retain(|q| q.strong_count() != 0);
        queues.iter().filter_map(Weak::upgrade).collect()
    }

    fn new_stream(self: &Arc<Self>) -> Arc<dyn GpuStream> {
        let stream = CpuStream::new(Arc::clone(self));
        let mut queues = self.queues.lock().unwrap_or_else(|e| e.into_inner());
        queues.retain(|q| q.strong_count() != 0);
        // Relaxed: what a queue begins from here on is claimed, for it asks under its lock, which `finish_unclaimed` takes
        // after this. What has begun before ends first.
        if !queues.is_empty() && !self.several.swap(true, Ordering::Relaxed) {
            let before = queues.iter().filter_map(Weak::upgrade);
            before.for_each(|queue| queue.finish_unclaimed());
        }
        queues.push(Arc::downgrade(stream.queue()));
        Arc::new(stream)
    }
}

impl CpuContext {
    /// From now on, launches look for races, or no longer do. Kernels whose IR is known then run in the interpreter, on
    /// one thread; two lanes that access one place, one of them writing, without an order between them are an error of
    /// the launch that names kernel, line and lanes.
    ///
    /// ```
    /// use perpetua_device::{BackendKind, CompileOptions, Device, KernelSource, LaunchConfig, args, cpu::CpuContext};
    /// let device = Device::new(BackendKind::Cpu, 0)?;
    /// if let Some(cpu) = device.context().as_any().downcast_ref::<CpuContext>() {
    ///     cpu.detect_races(true);
    /// }
    /// let text = "kernel k(x: buffer<u32, read_write>) {\n  %0: u32 = thread_idx.x\n  %1: u32 = const 0\n  store x[%1], %0\n}\n";
    /// let kernel = device.compile(&KernelSource::IrText(text), &CompileOptions::default())?.only()?;
    /// let x = device.zeros::<u32>(1)?;
    /// device.launch(&kernel, LaunchConfig::new(1, 2), args![&x])?;
    /// assert!(x.read().is_err_and(|e| e.to_string().contains("race")));
    /// # Ok::<(), perpetua_device::Error>(())
    /// ```
    pub fn detect_races(&self, on: bool) {
        self.shared.races.store(on, Ordering::Relaxed);
    }

    /// Takes each core's own cache to have `bytes` bytes, where the system does not tell or tells wrongly. Of graphs that
    /// reach more memory than all caches hold, captured from now on, several launches run together, so that memory is passed
    /// over fewer times. What they compute stays the same.
    pub fn assume_cache(&self, bytes: u64) {
        self.shared.cache.store(bytes, Ordering::Relaxed);
    }

    /// Takes the processor to have only the first `count` of the widths of vectors that it has (`perpetua_cpu::interp::Width::detect`),
    /// for kernels compiled from now on: with 0 those without a native body run in the interpreter. What they compute stays the same.
    pub fn assume_widths(&self, count: usize) {
        self.shared.widths.store(count, Ordering::Relaxed);
    }

    fn new(info: DeviceInfo) -> CpuContext {
        let id = ContextId::unique();
        let shared = Arc::new(Shared {
            id,
            info,
            lost: AtomicBool::new(false),
            races: AtomicBool::new(false),
            cache: AtomicU64::new(simd::cache()),
            widths: AtomicUsize::new(usize::MAX),
            queues: Mutex::default(),
            claims: Claims::default(),
            several: AtomicBool::new(false),
        });
        CpuContext {
            pools: HostPools::new(id, BackendKind::Cpu),
            gate: Gate::default(),
            default_stream: shared.new_stream(),
            shared,
        }
    }
}

impl GpuContext for CpuContext {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn id(&self) -> ContextId {
        self.shared.id
    }

    fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        self.shared.alive()?;
        Ok(host::memory_info())
    }

    fn allocate(&self, bytes: u64, kind: MemoryKind) -> Result<DevicePtr> {
        self.shared.alive()?;
        self.pools.of(kind).allocate(bytes)
    }

    fn initialise(&self, dst: &DevicePtr, content: &Content<'_>) -> Result<()> {
        self.shared.alive()?;
        // At once: streams hold memory until its work has ended, so nobody uses what the pool gives.
        Transfer::now(self.shared.id, dst, content)
    }

    unsafe fn adopt(&self, address: u64, bytes: u64, owner: Box<dyn Owner>) -> Result<DevicePtr> {
        self.shared.alive()?;
        // SAFETY: the caller promises the same.
        unsafe { self.pools.of(MemoryKind::Device).adopt(address, bytes, owner) }
    }

    fn span(&self, contexts: &[&dyn GpuContext], bytes: u64) -> Result<(Vec<DevicePtr>, u64)> {
        self.shared.alive()?;
        let total = bytes.saturating_mul(contexts.len() as u64);
        // As the host's: each context orders its own work alone, so none may take another's accesses for its own.
        let memory = self.pools.of(MemoryKind::Mapped).allocate(total)?;
        let as_of = |context: &&dyn GpuContext| match context.as_any().downcast_ref::<CpuContext>() {
            Some(context) => context.pools.of(MemoryKind::Mapped).share(&memory),
            None => Err(Error::no_span(BackendKind::Cpu)),
        };
        Ok((contexts.iter().map(as_of).collect::<Result<_>>()?, bytes))
    }

    fn map_again(&self, memory: &DevicePtr) -> Result<DevicePtr> {
        self.shared.alive()?;
        self.pools.of(MemoryKind::Mapped).share(memory)
    }

    fn pool_stats(&self, kind: MemoryKind) -> PoolStats {
        self.pools.of(kind).stats()
    }

    fn trim(&self, keep: u64) -> Result<()> {
        self.shared.alive()?;
        self.pools.trim(keep);
        Ok(())
    }

    fn compile(
        &self,
        source: &KernelSource<'_>,
        options: &CompileOptions,
    ) -> Result<Arc<dyn CompiledKernel>> {
        self.shared.alive()?;
        compile::compile(&self.shared, source, options)
    }

    fn default_stream(&self) -> &Arc<dyn GpuStream> {
        &self.default_stream
    }

    fn create_stream(&self) -> Result<Arc<dyn GpuStream>> {
        self.shared.alive()?;
        Ok(self.shared.new_stream())
    }

    fn synchronize(&self) -> BoxFuture<'_, Result<()>> {
        let queues = self.shared.queues();
        Box::pin(async move {
            // Each stream is waited for before any fault is reported; the others keep theirs.
            for queue in &queues {
                queue.finished().await?;
            }
            queues.iter().try_for_each(|queue| queue.take_error())
        })
    }

    fn synchronize_blocking(&self) -> Result<()> {
        let queues = self.shared.queues();
        queues.iter().try_for_each(|queue| queue.wait())?;
        queues.iter().try_for_each(|queue| queue.take_error())
    }

    fn gate(&self) -> Option<&Gate> {
        Some(&self.gate)
    }

    #[cfg(feature = "testing")]
    fn lose_device_for_test(&self) -> Result<()> {
        // Relaxed: as in `alive`.
        self.shared.lost.store(true, Ordering::Relaxed);
        Ok(())
    }
}
