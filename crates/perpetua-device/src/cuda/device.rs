//! Devices: finding them, their properties, and the context that opens one.

use std::any::Any;
use std::ffi::CStr;
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use perpetua_ir::back::Capability;

use super::compile::Compiler;
use super::core::StreamCore;
use super::driver::{Shared, call, lock};
use super::memory::{Pool, free_and_total};
use super::record::PrintRing;
use super::stream::Stream;
#[cfg(feature = "testing")]
use crate::backend::Launch;
use crate::backend::{CompiledKernel, Content, GpuContext, GpuStream};
#[cfg(feature = "testing")]
use crate::dim::LaunchConfig;
use crate::error::{Error, Result};
use crate::future::BoxFuture;
use crate::gate::Gate;
use crate::info::{AdapterType, BackendKind, DeviceInfo, DeviceLimits, MemoryInfo, NumericProbe};
use crate::ptr::{ContextId, DevicePtr, MemoryKind, Owner, PoolStats};
use crate::source::{CompileOptions, KernelSource};

/// The oldest compute capability that has independent thread scheduling and scoped memory order.
const OLDEST: (u32, u32) = (7, 0);

/// The oldest compute capability that has clusters of blocks.
const CLUSTERS: (u32, u32) = (9, 0);

/// Blocks per cluster that every device with clusters takes without being asked twice.
const PORTABLE_CLUSTER: u32 = 8;

fn attribute(device: sys::CUdevice, which: Attribute) -> Result<u32> {
    let mut value = 0;
    // SAFETY: the pointer is writable; a bad device gives an error code.
    let code = unsafe { sys::cuDeviceGetAttribute(&raw mut value, which, device) };
    call(code, || format!("cuDeviceGetAttribute {which:?}"))?;
    Ok(value.max(0) as u32)
}

/// The handle of the device that the driver lists at `index`.
pub(super) fn handle(index: usize) -> Result<sys::CUdevice> {
    let mut device = 0;
    // SAFETY: the pointer is writable.
    let code = unsafe { sys::cuDeviceGet(&raw mut device, index as i32) };
    call(code, || format!("cuDeviceGet of device {index}"))?;
    Ok(device)
}

/// The properties of the device that is to be known by `index`; [`Error::DeviceTooOld`] below compute capability 7.0.
pub(super) fn info(device: sys::CUdevice, index: usize, driver_version: i32) -> Result<DeviceInfo> {
    let get = |which| attribute(device, which);
    let mut name = [0 as std::ffi::c_char; 256];
    // SAFETY: the buffer has the length that is said; the driver ends the name in NUL.
    let code = unsafe { sys::cuDeviceGetName(name.as_mut_ptr(), name.len() as i32, device) };
    call(code, || "cuDeviceGetName".into())?;
    // SAFETY: written above, ends in NUL.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }
        .to_string_lossy()
        .into_owned();
    let capability = (
        get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        get(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    );
    if capability < OLDEST {
        return Err(Error::DeviceTooOld {
            backend: BackendKind::Cuda,
            device: name,
            found: format!("compute capability {}.{}", capability.0, capability.1),
            needed: format!("compute capability {}.{}", OLDEST.0, OLDEST.1),
        });
    }
    let clusters = capability >= CLUSTERS && get(Attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH)? != 0;
    let mut total = 0;
    // SAFETY: the pointer is writable.
    let code = unsafe { sys::cuDeviceTotalMem_v2(&raw mut total, device) };
    call(code, || "cuDeviceTotalMem".into())?;
    let integrated = get(Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED)? != 0;
    let limits = DeviceLimits {
        max_threads_per_block: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        max_block: [
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
        ],
        max_grid: [
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
            get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
        ],
        shared_bytes_per_block: get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        max_cluster: if clusters { PORTABLE_CLUSTER } else { 1 },
        cooperative: get(Attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)? != 0,
        // 4 KiB of parameters, two words a buffer.
        max_buffers: 250,
        max_buffer_bytes: total as u64,
        max_loop_turns: None,
    };
    let pci = (
        get(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?,
        get(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?,
        get(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?,
    );
    let kib = |which| Ok::<_, Error>(format!("{} KiB", get(which)? / 1024));
    let warp = get(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?;
    Ok(DeviceInfo {
        name,
        backend: BackendKind::Cuda,
        index,
        vendor: "NVIDIA".into(),
        driver: format!("CUDA {}.{}", driver_version / 1000, driver_version % 1000 / 10),
        adapter_type: if integrated {
            AdapterType::Integrated
        } else {
            AdapterType::Discrete
        },
        computes: true,
        on_host: false,
        compute_capability: Some(capability),
        multiprocessors: Some(get(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?),
        clock: Some(get(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)? / 1000),
        memory_total: Some(total as u64),
        // Needs a context, which listing devices does not open.
        memory_free: None,
        unified_memory: integrated,
        mapped_memory: get(Attribute::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY)? != 0,
        timestamps: true,
        pci_id: Some(format!("{:04x}:{:02x}:{:02x}.0", pci.0, pci.1, pci.2)),
        limits,
        subgroup_size: (warp, warp),
        capabilities: Capability::ALL
            .into_iter()
            .filter(|c| *c != Capability::Matrices || capability >= (8, 0))
            .filter(|c| *c != Capability::Stages || capability == (9, 0))
            .collect(),
        numeric_probe: Some(NumericProbe::EXACT),
        details: vec![
            (
                "L2 cache".into(),
                kib(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
            ),
            (
                "shared memory per multiprocessor".into(),
                kib(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
            ),
            (
                "memory bus".into(),
                format!(
                    "{} bits",
                    get(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?
                ),
            ),
        ],
    })
}

/// An opened device.
pub(super) struct Context {
    shared: Arc<Shared>,
    device: Arc<Pool>,
    pinned: Arc<Pool>,
    mapped: Arc<Pool>,
    prints: Arc<PrintRing>,
    compiler: Arc<Compiler>,
    all: Mutex<Vec<std::sync::Weak<Stream>>>,
    default: Arc<Stream>,
    default_stream: Arc<dyn GpuStream>,
}

impl Context {
    pub(super) fn open(device: sys::CUdevice, info: DeviceInfo) -> Result<Context> {
        let shared = Shared::open(device, info)?;
        let pool = |kind| Pool::new(&shared, kind);
        let (device, pinned, mapped) = (
            pool(MemoryKind::Device),
            pool(MemoryKind::Pinned),
            pool(MemoryKind::Mapped),
        );
        let prints = Arc::new(PrintRing::default());
        let core = StreamCore::new(&shared, &mapped)?;
        let stream = Arc::new(Stream::new(core, &pinned, &prints));
        Ok(Context {
            compiler: Arc::new(Compiler::new(&shared, &mapped, &prints)),
            all: Mutex::new(vec![Arc::downgrade(&stream)]),
            default_stream: Arc::clone(&stream) as Arc<dyn GpuStream>,
            default: stream,
            shared,
            device,
            pinned,
            mapped,
            prints,
        })
    }

    fn pool(&self, kind: MemoryKind) -> &Arc<Pool> {
        match kind {
            MemoryKind::Device => &self.device,
            MemoryKind::Pinned => &self.pinned,
            MemoryKind::Mapped => &self.mapped,
        }
    }

    /// A stream over a core, known to the context from here on.
    fn stream(&self, core: Arc<StreamCore>) -> Arc<dyn GpuStream> {
        let stream = Arc::new(Stream::new(core, &self.pinned, &self.prints));
        let mut all = lock(&self.all);
        all.retain(|s| s.strong_count() != 0);
        all.push(Arc::downgrade(&stream));
        stream
    }

    fn streams(&self) -> Vec<Arc<Stream>> {
        lock(&self.all)
            .iter()
            .filter_map(std::sync::Weak::upgrade)
            .collect()
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
        let (free, total) = free_and_total(&self.shared)?;
        Ok(MemoryInfo {
            free: Some(free),
            total: Some(total),
        })
    }

    fn allocate(&self, bytes: u64, kind: MemoryKind) -> Result<DevicePtr> {
        Ok(DevicePtr::new(Arc::new(self.pool(kind).allocate(bytes)?), bytes))
    }

    unsafe fn adopt(&self, address: u64, bytes: u64, owner: Box<dyn Owner>) -> Result<DevicePtr> {
        let memory = self.device.adopt(address, bytes, owner)?;
        Ok(DevicePtr::new(Arc::new(memory), bytes))
    }

    fn span(&self, contexts: &[&dyn GpuContext], bytes: u64) -> Result<(Vec<DevicePtr>, u64)> {
        let all = contexts
            .iter()
            .map(|context| context.as_any().downcast_ref::<Context>());
        let pools: Option<Vec<_>> = all.map(|own| Some(&own?.device)).collect();
        super::span::make(&pools.ok_or_else(|| Error::no_span(BackendKind::Cuda))?, bytes)
    }

    fn map_again(&self, memory: &DevicePtr) -> Result<DevicePtr> {
        super::span::map_again(&self.mapped, memory)
    }

    unsafe fn adopt_stream(&self, handle: u64, owner: Box<dyn Owner>) -> Result<Arc<dyn GpuStream>> {
        // SAFETY: the caller promises the same.
        let core = unsafe { StreamCore::adopt(&self.shared, &self.mapped, handle, owner)? };
        Ok(self.stream(core))
    }

    fn pool_stats(&self, kind: MemoryKind) -> PoolStats {
        self.pool(kind).stats()
    }

    fn trim(&self, keep: u64) -> Result<()> {
        self.shared.enter()?;
        self.compiler.unload()?;
        [&self.device, &self.pinned, &self.mapped]
            .into_iter()
            .try_for_each(|pool| pool.trim(keep))
    }

    fn compile(
        &self,
        source: &KernelSource<'_>,
        options: &CompileOptions,
    ) -> Result<Arc<dyn CompiledKernel>> {
        self.compiler.compile(source, options)
    }

    fn compile_async(
        &self,
        source: &KernelSource<'_>,
        options: &CompileOptions,
    ) -> BoxFuture<'static, Result<Arc<dyn CompiledKernel>>> {
        self.compiler.compile_async(source, options)
    }

    fn default_stream(&self) -> &Arc<dyn GpuStream> {
        &self.default_stream
    }

    fn initialise(&self, dst: &DevicePtr, content: &Content<'_>) -> Result<()> {
        self.default.initialise(dst, content)
    }

    fn create_stream(&self) -> Result<Arc<dyn GpuStream>> {
        Ok(self.stream(StreamCore::new(&self.shared, &self.mapped)?))
    }

    fn synchronize(&self) -> BoxFuture<'_, Result<()>> {
        let streams = self.streams();
        Box::pin(async move {
            let mut first = Ok(());
            for stream in streams {
                let ended = stream.synchronize().await;
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

    fn gate(&self) -> Option<&Gate> {
        Some(&self.shared.gate)
    }

    #[cfg(feature = "testing")]
    fn lose_device_for_test(&self) -> Result<()> {
        // A store to an address that belongs to nobody.
        const PTX: &str = ".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry lose()\n{\n\
            .reg .b64 %a;\nmov.b64 %a, 16;\nst.global.u32 [%a], 1;\nret;\n}\n";
        let module = self.compile(&KernelSource::Ptx(PTX), &CompileOptions::default())?;
        let function = module.get_function("lose")?;
        let launch = Launch {
            config: LaunchConfig::default(),
            overlaps: &[],
        };
        // SAFETY: the kernel takes no arguments; that it destroys the context is what the caller asks for.
        unsafe { function.launch(&launch, &*self.default_stream, &[])? };
        match self.default_stream.synchronize_blocking() {
            Err(error) if error.is_device_lost() => Ok(()),
            Err(error) => Err(error),
            Ok(()) => Err(Error::InvalidState {
                operation: "losing the device for a test",
                cause: "the device survived a store to a bad address",
                remedy: "report this",
            }),
        }
    }

    #[cfg(feature = "testing")]
    fn widen_all_for_test(&self) {
        let widens = &self.shared.widens_all;
        widens.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    #[cfg(feature = "testing")]
    unsafe fn rewrite_kernels_for_test(&self, rewrite: crate::backend::TextRewrite) -> Result<()> {
        self.compiler
            .rewrite
            .set(rewrite)
            .map_err(|_| Error::InvalidState {
                operation: "rewriting the text of kernels for a test",
                cause: "this context rewrites them already",
                remedy: "open the device again",
            })
    }
}
