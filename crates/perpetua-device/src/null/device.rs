//! The null backend's device: what it claims to be, and the log of what it was asked to do.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard};

use perpetua_ir::back::Capability;
use perpetua_ir::fault::Fault;

use super::compile;
use super::launch::NullLaunch;
use super::stream::NullStream;
use crate::backend::{CompiledKernel, Content, GpuBackend, GpuContext, GpuStream};
use crate::error::{Error, Result};
use crate::future::{BoxFuture, ready};
use crate::host::{HostPools, Transfer};
use crate::info::{AdapterType, BackendKind, DeviceInfo, DeviceLimits, MemoryInfo};
use crate::ptr::{ContextId, DevicePtr, MemoryKind, Owner, PoolStats};
use crate::source::{CompileOptions, KernelSource};

/// The null backend. It has one device.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullBackend;

impl NullBackend {
    /// The backend.
    pub fn new() -> NullBackend {
        NullBackend
    }
}

impl GpuBackend for NullBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Null
    }

    fn device_count(&self) -> usize {
        1
    }

    fn device_info(&self, device_id: usize) -> Result<DeviceInfo> {
        if device_id != 0 {
            return Err(Error::DeviceNotFound {
                backend: BackendKind::Null,
                index: device_id,
                count: 1,
                looked_for: "the null device".into(),
                remedy: "use device 0".into(),
            });
        }
        Ok(DeviceInfo {
            name: "null device".into(),
            backend: BackendKind::Null,
            index: 0,
            vendor: "Perpetua".into(),
            driver: String::new(),
            adapter_type: AdapterType::Other,
            computes: false,
            on_host: true,
            compute_capability: None,
            multiprocessors: None,
            clock: None,
            memory_total: None,
            memory_free: None,
            unified_memory: true,
            mapped_memory: true,
            timestamps: true,
            pci_id: None,
            limits: DeviceLimits {
                max_threads_per_block: 1024,
                max_block: [1024; 3],
                max_grid: [i32::MAX as u32, u32::MAX, u32::MAX],
                shared_bytes_per_block: 48 << 10,
                max_cluster: 8,
                cooperative: true,
                max_buffers: u32::MAX,
                max_buffer_bytes: isize::MAX as u64,
                max_loop_turns: None,
            },
            subgroup_size: (32, 32),
            capabilities: Capability::ALL.into(),
            numeric_probe: None,
            details: Vec::new(),
        })
    }

    fn create_context(&self, device_id: usize) -> BoxFuture<'_, Result<Box<dyn GpuContext>>> {
        ready(self.device_info(device_id).map(|info| {
            let context: Box<dyn GpuContext> = Box::new(NullContext::new(info));
            context
        }))
    }
}

/// An opened null device.
pub struct NullContext {
    shared: Arc<Shared>,
    pools: HostPools,
    default_stream: Arc<dyn GpuStream>,
}

/// What context, streams and kernels have in common.
pub(super) struct Shared {
    pub(super) id: ContextId,
    pub(super) info: DeviceInfo,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    log: Vec<NullLaunch>,
    fault: Option<Fault>,
    lost: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Fails when the device was lost.
    pub(super) fn alive(&self) -> Result<()> {
        if !self.lock().lost {
            return Ok(());
        }
        Err(Error::DeviceLost {
            backend: BackendKind::Null,
            device: self.info.name.clone(),
            reason: "a test asked for it".into(),
        })
    }

    pub(super) fn record(&self, launch: NullLaunch) {
        self.lock().log.push(launch);
    }

    /// The fault that the next launch shall have.
    pub(super) fn take_planned_fault(&self) -> Option<Fault> {
        self.lock().fault.take()
    }
}

impl NullContext {
    fn new(info: DeviceInfo) -> NullContext {
        let id = ContextId::unique();
        let shared = Arc::new(Shared {
            id,
            info,
            state: Mutex::default(),
        });
        NullContext {
            pools: HostPools::new(id, BackendKind::Null),
            default_stream: Arc::new(NullStream::new(Arc::clone(&shared))),
            shared,
        }
    }

    /// The launches submitted so far, in order; graphs' launches count at each replay.
    pub fn launches(&self) -> Vec<NullLaunch> {
        self.shared.lock().log.clone()
    }

    /// Makes the next launch fault.
    pub fn plan_fault(&self, fault: Fault) {
        self.shared.lock().fault = Some(fault);
    }
}

impl GpuContext for NullContext {
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
        Ok(MemoryInfo::default())
    }

    fn allocate(&self, bytes: u64, kind: MemoryKind) -> Result<DevicePtr> {
        self.shared.alive()?;
        self.pools.of(kind).allocate(bytes)
    }

    fn initialise(&self, dst: &DevicePtr, content: &Content<'_>) -> Result<()> {
        self.shared.alive()?;
        // At once: all work has ended when it is submitted.
        Transfer::now(self.shared.id, dst, content)
    }

    unsafe fn adopt(&self, address: u64, bytes: u64, owner: Box<dyn Owner>) -> Result<DevicePtr> {
        self.shared.alive()?;
        // SAFETY: the caller promises the same.
        unsafe { self.pools.of(MemoryKind::Device).adopt(address, bytes, owner) }
    }

    fn pool_stats(&self, kind: MemoryKind) -> PoolStats {
        self.pools.of(kind).stats()
    }

    fn trim(&self, keep: u64) -> Result<()> {
        self.shared.alive()?;
        self.pools.trim(keep);
        Ok(())
    }

    fn compile(&self, source: &KernelSource<'_>, _: &CompileOptions) -> Result<Arc<dyn CompiledKernel>> {
        self.shared.alive()?;
        compile::compile(&self.shared, source)
    }

    fn default_stream(&self) -> &Arc<dyn GpuStream> {
        &self.default_stream
    }

    fn create_stream(&self) -> Result<Arc<dyn GpuStream>> {
        self.shared.alive()?;
        Ok(Arc::new(NullStream::new(Arc::clone(&self.shared))))
    }

    fn synchronize(&self) -> BoxFuture<'_, Result<()>> {
        ready(self.synchronize_blocking())
    }

    fn synchronize_blocking(&self) -> Result<()> {
        // Work has ended when it is submitted; a fault planned for a launch is its stream's to report.
        self.default_stream.synchronize_blocking()
    }

    #[cfg(feature = "testing")]
    fn lose_device_for_test(&self) -> Result<()> {
        self.shared.lock().lost = true;
        Ok(())
    }
}
