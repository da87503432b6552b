//! NVIDIA GPUs through the CUDA driver, which is loaded at run time: nothing of CUDA is needed to build, and only the
//! driver to run.
//!
//! `driver` turns codes into errors and owns handles, `device` finds and opens devices, `memory` pools, `stream` orders, `capture` makes graphs, `streams`
//! knows all that are open, `record` is what kernels write for the host, `compile` makes machine code, `entry` is how the disk keeps it,
//! `module` loads it, `launch` runs it, `maps` describes matrices to it.

mod capture;
mod compile;
mod core;
mod device;
mod driver;
mod entry;
mod event;
mod graph;
mod launch;
mod maps;
mod memory;
mod module;
mod record;
mod span;
mod stream;
mod streams;

use cudarc::driver::sys;

use crate::backend::{GpuBackend, GpuContext, failed};
use crate::error::{Error, Result};
use crate::future::{BoxFuture, ready};
use crate::info::{BackendKind, DeviceInfo};
use crate::select::BackendEntry;

/// The oldest driver interface that has everything used here (CUDA 12.0: stream-ordered pools, graphs by flags).
const OLDEST_DRIVER: i32 = 12_000;

/// The CUDA backend.
#[derive(Debug)]
pub struct CudaBackend {
    /// The driver's handles of the devices that are not too old, and what they are.
    devices: Vec<(sys::CUdevice, DeviceInfo)>,
}

impl CudaBackend {
    /// Loads the driver and lists its devices. Devices that are too old are left out, unless there are no others.
    ///
    /// # Errors
    /// [`Error::DriverNotFound`], [`Error::DriverTooOld`], [`Error::DeviceNotFound`] when there is no GPU,
    /// [`Error::DeviceTooOld`] when there is no other.
    pub fn new() -> Result<CudaBackend> {
        let looked_for = "libcuda.so.1 (Linux), nvcuda.dll (Windows)";
        // SAFETY: looks for the library by name; loading it runs its initialisers only.
        if !unsafe { sys::is_culib_present() } {
            return Err(Error::DriverNotFound {
                backend: BackendKind::Cuda,
                looked_for: looked_for.into(),
                remedy: "install NVIDIA's driver, or choose another backend".into(),
            });
        }
        let _opening = crate::lock::opening();
        // SAFETY: the first call of the driver; takes no pointers.
        let code = unsafe { sys::cuInit(0) };
        if code == sys::CUresult::CUDA_ERROR_NO_DEVICE {
            return Err(no_device(0, 0));
        }
        driver::call(code, || "cuInit".into())?;
        let mut version = 0;
        // SAFETY: the pointer is writable.
        driver::call(unsafe { sys::cuDriverGetVersion(&raw mut version) }, || {
            "cuDriverGetVersion".into()
        })?;
        if version < OLDEST_DRIVER {
            let text = |v: i32| format!("for CUDA {}.{}", v / 1000, v % 1000 / 10);
            return Err(Error::DriverTooOld {
                backend: BackendKind::Cuda,
                found: text(version),
                needed: text(OLDEST_DRIVER),
            });
        }
        let mut count = 0;
        // SAFETY: the pointer is writable.
        driver::call(unsafe { sys::cuDeviceGetCount(&raw mut count) }, || {
            "cuDeviceGetCount".into()
        })?;
        let (mut devices, mut too_old) = (Vec::new(), None);
        for ordinal in 0..count.max(0) as usize {
            let handle = device::handle(ordinal)?;
            match device::info(handle, devices.len(), version) {
                Ok(info) => devices.push((handle, info)),
                Err(error @ Error::DeviceTooOld { .. }) => too_old = Some(error),
                Err(error) => return Err(error),
            }
        }
        match (devices.is_empty(), too_old) {
            (true, Some(error)) => Err(error),
            (true, None) => Err(no_device(0, 0)),
            (false, _) => Ok(CudaBackend { devices }),
        }
    }
}

fn no_device(index: usize, count: usize) -> Error {
    Error::DeviceNotFound {
        backend: BackendKind::Cuda,
        index,
        count,
        looked_for: "NVIDIA GPUs that the driver lists (CUDA_VISIBLE_DEVICES may hide some)".into(),
        remedy: "choose a lower index, or another backend".into(),
    }
}

/// Its place in the choice: the first.
pub(crate) const ENTRY: BackendEntry = BackendEntry {
    kind: BackendKind::Cuda,
    order: Some(10),
    emulates: false,
    open: |_| match CudaBackend::new() {
        Ok(backend) => ready(Ok(Box::new(backend) as Box<dyn GpuBackend>)),
        Err(error) => failed(error),
    },
};

impl GpuBackend for CudaBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Cuda
    }

    fn device_count(&self) -> usize {
        self.devices.len()
    }

    fn device_info(&self, device_id: usize) -> Result<DeviceInfo> {
        self.devices
            .get(device_id)
            .map(|(_, info)| info.clone())
            .ok_or_else(|| no_device(device_id, self.devices.len()))
    }

    fn create_context(&self, device_id: usize) -> BoxFuture<'_, Result<Box<dyn GpuContext>>> {
        let opened = match self.devices.get(device_id) {
            Some((handle, info)) => device::Context::open(*handle, info.clone()),
            None => Err(no_device(device_id, self.devices.len())),
        };
        ready(opened.map(|context| Box::new(context) as Box<dyn GpuContext>))
    }
}
