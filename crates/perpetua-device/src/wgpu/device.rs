//! Adapters and opened devices.

use std::any::Any;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, Weak};

use perpetua_ir::back::{Capabilities, Capability};

use super::compile::Compiler;
use super::core::StreamCore;
use super::memory::{Pool, Staging};
use super::probe::Probe;
use super::shared::{Health, Shared, driver, lock};
use super::stream::Stream;
use super::transfer::Movers;
use crate::backend::{CompiledKernel, Content, GpuBackend, GpuContext, GpuStream};
use crate::error::{Error, Result};
use crate::future::BoxFuture;
use crate::info::{AdapterType, BackendKind, DeviceInfo, DeviceLimits, MemoryInfo};
use crate::ptr::{ContextId, DevicePtr, MemoryKind, Owner, PoolStats};
use crate::source::{CompileOptions, KernelSource};

/// The wgpu backend.
pub struct WgpuBackend {
    adapters: Vec<wgpu::Adapter>,
}

impl std::fmt::Debug for WgpuBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.adapters.iter().map(|a| a.get_info().name);
        f.debug_list().entries(names).finish()
    }
}

impl WgpuBackend {
    /// Looks for adapters: high-performance ones first. Software adapters count, last.
    ///
    /// # Errors
    /// [`Error::DeviceNotFound`] when there is none that can compute.
    pub async fn new() -> Result<WgpuBackend> {
        let mut adapters = find(wgpu::Backends::PRIMARY).await;
        if adapters.is_empty() {
            adapters = find(wgpu::Backends::GL).await;
        }
        // High-performance devices first, in the interface's own order else.
        adapters.sort_by_key(|a| match a.get_info().device_type {
            wgpu::DeviceType::DiscreteGpu => 0,
            wgpu::DeviceType::IntegratedGpu => 1,
            wgpu::DeviceType::VirtualGpu => 2,
            wgpu::DeviceType::Other => 3,
            wgpu::DeviceType::Cpu => 4,
        });
        if adapters.is_empty() {
            return Err(not_found(0, 0));
        }
        Ok(WgpuBackend { adapters })
    }

    /// The same, waiting on this thread.
    ///
    /// # Errors
    /// As [`WgpuBackend::new`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn new_blocking() -> Result<WgpuBackend> {
        crate::future::block_on(WgpuBackend::new())
    }
}

/// The adapters of some interfaces that can compute.
async fn find(backends: wgpu::Backends) -> Vec<wgpu::Adapter> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = backends;
    // Kernels are verified before they are rendered, and validation layers are the developer's to switch on.
    descriptor.flags = wgpu::InstanceFlags::empty().with_env();
    let instance = instance(backends, descriptor);
    #[cfg(not(target_arch = "wasm32"))]
    let mut adapters = {
        let _opening = crate::lock::opening();
        // As in `request`.
        crate::future::block_on(instance.enumerate_adapters(backends))
    };
    #[cfg(target_arch = "wasm32")]
    let mut adapters = instance.enumerate_adapters(backends).await;
    #[cfg(target_arch = "wasm32")]
    if adapters.is_empty() {
        // Browsers enumerate nothing and give one adapter when asked.
        let options = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            ..wgpu::RequestAdapterOptions::default()
        };
        adapters.extend(instance.request_adapter(&options).await);
    }
    adapters.retain(|a| {
        let flags = a.get_downlevel_capabilities().flags;
        flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS)
    });
    adapters
}

/// The process's one instance for some interfaces, which is never destroyed: drivers do not guard that.
#[cfg(not(target_arch = "wasm32"))]
fn instance(backends: wgpu::Backends, descriptor: wgpu::InstanceDescriptor) -> wgpu::Instance {
    static INSTANCES: Mutex<Vec<(wgpu::Backends, wgpu::Instance)>> = Mutex::new(Vec::new());
    let mut instances = lock(&INSTANCES);
    if let Some((_, instance)) = instances.iter().find(|(of, _)| *of == backends) {
        return instance.clone();
    }
    let _opening = crate::lock::opening();
    let quiet = super::vulkan::instance_without_displays(&descriptor);
    let instance = quiet.unwrap_or_else(|| wgpu::Instance::new(descriptor));
    instances.push((backends, instance.clone()));
    instance
}

#[cfg(target_arch = "wasm32")]
fn instance(_: wgpu::Backends, descriptor: wgpu::InstanceDescriptor) -> wgpu::Instance {
    wgpu::Instance::new(descriptor)
}

/// Opens the device behind an adapter.
#[cfg(not(target_arch = "wasm32"))]
async fn request(
    adapter: &wgpu::Adapter,
) -> std::result::Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError> {
    let _opening = crate::lock::opening();
    // Native wgpu opens it within the call: the lock is not held across a wait.
    crate::future::block_on(adapter.request_device(&super::interop::device_descriptor(adapter)))
}

#[cfg(target_arch = "wasm32")]
async fn request(
    adapter: &wgpu::Adapter,
) -> std::result::Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError> {
    adapter
        .request_device(&super::interop::device_descriptor(adapter))
        .await
}

fn not_found(index: usize, count: usize) -> Error {
    Error::DeviceNotFound {
        backend: BackendKind::Wgpu,
        index,
        count,
        looked_for: "Vulkan, Metal, DX12, GL and WebGPU adapters with compute shaders".into(),
        remedy: if count == 0 {
            "install a Vulkan driver (software: the package mesa-vulkan-drivers), or choose another backend"
                .into()
        } else {
            format!("choose an index below {count}")
        },
    }
}

/// What this backend asks of a device if the adapter has it.
pub(super) fn wanted() -> wgpu::Features {
    wgpu::Features::SUBGROUP
        | wgpu::Features::SHADER_INT64
        | wgpu::Features::SHADER_F64
        | wgpu::Features::SHADER_INT64_ATOMIC_ALL_OPS
        | wgpu::Features::TIMESTAMP_QUERY
        | wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS
        | wgpu::Features::PIPELINE_CACHE
}

fn capabilities(features: wgpu::Features) -> Capabilities {
    let has = [
        (wgpu::Features::SHADER_INT64, Capability::Int64),
        (wgpu::Features::SHADER_F64, Capability::Float64),
        (wgpu::Features::SUBGROUP, Capability::Subgroups),
        (wgpu::Features::SHADER_INT64_ATOMIC_ALL_OPS, Capability::Atomic64),
    ];
    let found = has
        .into_iter()
        .filter(|(f, _)| features.contains(*f))
        .map(|(_, c)| c);
    found.chain([Capability::DynamicShared]).collect()
}

/// The properties of an adapter's device that has, or would be opened with, these limits and features.
fn describe(
    index: usize,
    adapter: &wgpu::Adapter,
    limits: &wgpu::Limits,
    features: wgpu::Features,
    probe: Option<Probe>,
) -> DeviceInfo {
    let info = adapter.get_info();
    let adapter_type = match info.device_type {
        wgpu::DeviceType::DiscreteGpu => AdapterType::Discrete,
        wgpu::DeviceType::IntegratedGpu => AdapterType::Integrated,
        wgpu::DeviceType::VirtualGpu => AdapterType::Virtual,
        wgpu::DeviceType::Cpu => AdapterType::Cpu,
        wgpu::DeviceType::Other => AdapterType::Other,
    };
    let vendor = match info.vendor {
        0x10de => "NVIDIA".into(),
        0x1002 => "AMD".into(),
        0x8086 => "Intel".into(),
        0x106b => "Apple".into(),
        0x13b5 => "Arm".into(),
        0x5143 => "Qualcomm".into(),
        0x10005 => "Mesa".into(),
        0 => String::new(),
        other => format!("vendor {other:#x}"),
    };
    // A dispatch has at most this many groups a dimension; larger grids are folded over two.
    let per_dimension = u64::from(limits.max_compute_workgroups_per_dimension);
    let folded = u32::try_from(per_dimension * per_dimension).unwrap_or(u32::MAX);
    DeviceInfo {
        // Browsers keep the name to themselves.
        name: Some(info.name)
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "the browser's adapter".to_owned()),
        backend: BackendKind::Wgpu,
        index,
        vendor,
        driver: format!("{} {}", info.driver, info.driver_info).trim().to_owned(),
        adapter_type,
        computes: true,
        on_host: false,
        compute_capability: None,
        multiprocessors: super::vulkan::multiprocessors(adapter),
        clock: None,
        memory_total: None,
        memory_free: None,
        unified_memory: matches!(adapter_type, AdapterType::Integrated | AdapterType::Cpu),
        mapped_memory: false,
        timestamps: features.contains(wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS),
        pci_id: Some(info.device_pci_bus_id).filter(|id| !id.is_empty()),
        limits: DeviceLimits {
            max_threads_per_block: limits.max_compute_invocations_per_workgroup,
            max_block: [
                limits.max_compute_workgroup_size_x,
                limits.max_compute_workgroup_size_y,
                limits.max_compute_workgroup_size_z,
            ],
            max_grid: [folded; 3],
            shared_bytes_per_block: limits.max_compute_workgroup_storage_size,
            max_cluster: 1,
            cooperative: false,
            // One binding is the fault record's.
            max_buffers: limits.max_storage_buffers_per_shader_stage.saturating_sub(1),
            max_buffer_bytes: limits.max_buffer_size.min(limits.max_storage_buffer_binding_size),
            max_loop_turns: probe.and_then(|probe| probe.loop_turns),
        },
        subgroup_size: (info.subgroup_min_size, info.subgroup_max_size),
        capabilities: capabilities(features),
        numeric_probe: probe.map(|probe| probe.numeric),
        details: vec![("interface".into(), info.backend.to_string())],
    }
}

impl GpuBackend for WgpuBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Wgpu
    }

    fn device_count(&self) -> usize {
        self.adapters.len()
    }

    fn device_info(&self, device_id: usize) -> Result<DeviceInfo> {
        let adapter = self
            .adapters
            .get(device_id)
            .ok_or_else(|| not_found(device_id, self.adapters.len()))?;
        let features = adapter.features() & wanted();
        Ok(describe(device_id, adapter, &adapter.limits(), features, None))
    }

    fn create_context(&self, device_id: usize) -> BoxFuture<'_, Result<Box<dyn GpuContext>>> {
        Box::pin(async move {
            let adapter = self
                .adapters
                .get(device_id)
                .ok_or_else(|| not_found(device_id, self.adapters.len()))?;
            let context = Context::open(adapter, device_id).await?;
            Ok(Box::new(context) as Box<dyn GpuContext>)
        })
    }
}

/// An opened device.
pub(super) struct Context {
    shared: Arc<Shared>,
    pool: Arc<Pool>,
    staging: Arc<Staging>,
    movers: Arc<Movers>,
    compiler: Arc<Compiler>,
    streams: Mutex<Vec<Weak<StreamCore>>>,
    default_stream: Arc<dyn GpuStream>,
    /// Gives new memory its content: no program captures it.
    first: Stream,
}

impl Context {
    async fn open(adapter: &wgpu::Adapter, index: usize) -> Result<Context> {
        let (device, queue) = request(adapter)
            .await
            .map_err(|e| driver(format!("opening `{}`", adapter.get_info().name), e.to_string()))?;
        Context::adopt(adapter, index, device, queue).await
    }

    /// A context on a device that is open.
    pub(super) async fn adopt(
        adapter: &wgpu::Adapter,
        index: usize,
        device: wgpu::Device,
        queue: wgpu::Queue,
    ) -> Result<Context> {
        let (features, limits) = (device.features() & wanted(), device.limits());
        let health = Health::watch(&device, adapter.get_info().name);
        let probe = super::probe::run(&device, &queue, &health).await?;
        let shared = Arc::new(Shared {
            id: ContextId::unique(),
            device,
            queue,
            info: describe(index, adapter, &limits, features, Some(probe)),
            limits,
            features,
            health,
            read: AtomicU64::new(0),
            #[cfg(feature = "testing")]
            rewrite: std::sync::OnceLock::new(),
            #[cfg(not(target_arch = "wasm32"))]
            driver: super::signal::Driver::default(),
        });
        let pool = Pool::new(&shared);
        let staging = Arc::new(Staging::new(&shared));
        let movers = Arc::new(Movers::new(&shared)?);
        let stream = || Stream::new(&shared, &pool, &staging, &movers);
        let (first, stream) = (stream()?, Arc::new(stream()?));
        Ok(Context {
            first,
            compiler: Arc::new(Compiler::new(&shared, adapter)),
            streams: Mutex::new(vec![Arc::downgrade(stream.core())]),
            default_stream: stream,
            shared,
            pool,
            staging,
            movers,
        })
    }

    /// A buffer of somebody else's as memory.
    pub(super) fn adopt_buffer(&self, buffer: wgpu::Buffer) -> Result<DevicePtr> {
        self.shared.check()?;
        self.pool.adopt(buffer)
    }

    /// What its streams and buffers share.
    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    fn streams(&self) -> Vec<Arc<StreamCore>> {
        lock(&self.streams).iter().filter_map(Weak::upgrade).collect()
    }
}

impl GpuContext for Context {
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
        self.shared.check()?;
        Ok(MemoryInfo::default())
    }

    fn allocate(&self, bytes: u64, kind: MemoryKind) -> Result<DevicePtr> {
        self.shared.check()?;
        match kind {
            MemoryKind::Device => self.pool.allocate(bytes),
            MemoryKind::Pinned => self.staging.pinned(bytes),
            MemoryKind::Mapped => Err(Error::Unsupported {
                backend: BackendKind::Wgpu,
                operation: "map host memory into kernels",
                remedy: "copy between host and device, or use CUDA or the CPU",
            }),
        }
    }

    unsafe fn adopt(&self, _: u64, _: u64, _: Box<dyn Owner>) -> Result<DevicePtr> {
        Err(Error::Unsupported {
            backend: BackendKind::Wgpu,
            operation: "adopt memory by its address",
            remedy: "adopt a wgpu buffer: `wgpu::interop::adopt_buffer`",
        })
    }

    fn pool_stats(&self, kind: MemoryKind) -> PoolStats {
        match kind {
            MemoryKind::Device => self.pool.stats(),
            MemoryKind::Pinned => self.staging.stats(),
            MemoryKind::Mapped => PoolStats::default(),
        }
    }

    fn trim(&self, keep: u64) -> Result<()> {
        self.compiler.forget_bindings();
        self.pool.trim(keep);
        self.staging.trim(keep);
        self.shared.check()
    }

    fn compile(
        &self,
        source: &KernelSource<'_>,
        options: &CompileOptions,
    ) -> Result<Arc<dyn CompiledKernel>> {
        self.shared.check()?;
        self.compiler.compile(source, options)
    }

    // A browser's device belongs to one thread, and wgpu has no asynchronous way to make a pipeline: at once there.
    #[cfg(not(target_arch = "wasm32"))]
    fn compile_async(
        &self,
        source: &KernelSource<'_>,
        options: &CompileOptions,
    ) -> BoxFuture<'static, Result<Arc<dyn CompiledKernel>>> {
        if let Err(error) = self.shared.check() {
            return crate::backend::failed(error);
        }
        self.compiler.compile_async(source, options)
    }

    fn default_stream(&self) -> &Arc<dyn GpuStream> {
        &self.default_stream
    }

    fn initialise(&self, dst: &DevicePtr, content: &Content<'_>) -> Result<()> {
        content.submit(&self.first, dst)?;
        // The order among streams is the order of submission.
        self.first.flush()
    }

    fn create_stream(&self) -> Result<Arc<dyn GpuStream>> {
        let stream = Arc::new(Stream::new(
            &self.shared,
            &self.pool,
            &self.staging,
            &self.movers,
        )?);
        let mut streams = lock(&self.streams);
        streams.retain(|s| s.strong_count() != 0);
        streams.push(Arc::downgrade(stream.core()));
        Ok(stream)
    }

    fn synchronize(&self) -> BoxFuture<'_, Result<()>> {
        let waits: Vec<_> = self.streams().into_iter().map(|s| s.synchronize()).collect();
        Box::pin(async move {
            let mut first = Ok(());
            for wait in waits {
                let ended = wait.await;
                first = first.and(ended);
            }
            first
        })
    }

    fn synchronize_blocking(&self) -> Result<()> {
        let mut first = Ok(());
        for stream in self.streams() {
            let ended = stream.synchronize_blocking();
            first = first.and(ended);
        }
        first
    }

    #[cfg(feature = "testing")]
    fn lose_device_for_test(&self) -> Result<()> {
        self.shared.device.destroy();
        self.shared.health.lose("destroyed for a test".into());
        Ok(())
    }

    #[cfg(feature = "testing")]
    unsafe fn rewrite_kernels_for_test(&self, rewrite: crate::backend::TextRewrite) -> Result<()> {
        self.shared.rewrite.set(rewrite).map_err(|_| Error::InvalidState {
            operation: "rewriting the text of kernels for a test",
            cause: "this context rewrites them already",
            remedy: "open the device again",
        })
    }
}
