//! Which backends there are and which one to take. The only file outside the backends' folders that names them.

use crate::backend::GpuBackend;
use crate::device::{Device, DeviceIndex};
use crate::error::{Error, Result};
use crate::info::{AdapterType, BackendKind};

/// The backend `kind`, or for [`BackendKind::Auto`] the best one: see [`select_backend`]. An explicit choice that cannot be had is an
/// error that says what was looked for.
pub async fn open_backend(kind: BackendKind) -> Result<Box<dyn GpuBackend>> {
    match kind {
        BackendKind::Auto => select_backend_async().await,
        #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
        BackendKind::Cuda => Ok(Box::new(crate::cuda::CudaBackend::new()?)),
        #[cfg(not(all(feature = "cuda", not(target_arch = "wasm32"))))]
        BackendKind::Cuda => Err(Error::FeatureNotBuilt {
            backend: kind,
            feature: "cuda",
        }),
        BackendKind::Metal if cfg!(target_vendor = "apple") => Err(Error::Unsupported {
            backend: kind,
            operation: "run kernels natively",
            remedy: "use wgpu, which drives Apple GPUs",
        }),
        BackendKind::Metal => Err(Error::PlatformUnsupported {
            backend: kind,
            available_on: "Apple platforms",
            platform: format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH),
        }),
        #[cfg(feature = "wgpu")]
        BackendKind::Wgpu => Ok(Box::new(crate::wgpu::WgpuBackend::new().await?)),
        #[cfg(not(feature = "wgpu"))]
        BackendKind::Wgpu => Err(Error::FeatureNotBuilt {
            backend: kind,
            feature: "wgpu",
        }),
        #[cfg(feature = "cpu")]
        BackendKind::Cpu => Ok(Box::new(crate::cpu::CpuBackend::new())),
        #[cfg(not(feature = "cpu"))]
        BackendKind::Cpu => Err(Error::FeatureNotBuilt {
            backend: kind,
            feature: "cpu",
        }),
        BackendKind::Null => Ok(Box::new(crate::null::NullBackend::new())),
    }
}

/// The best backend that has a device: CUDA, Metal, wgpu, CPU, in this order. wgpu with nothing but software adapters
/// comes after the CPU.
pub async fn select_backend_async() -> Result<Box<dyn GpuBackend>> {
    let mut tried = Tried::default();
    for kind in CANDIDATES {
        match tried.open(kind).await {
            Some(backend) if is_software(&*backend) => tried.software = Some(backend),
            Some(backend) => return Ok(backend),
            None => {}
        }
    }
    tried.software.take().ok_or_else(|| tried.none())
}

// What automatic choice considers, in its order: not the null backend.
const CANDIDATES: [BackendKind; 4] = [
    BackendKind::Cuda,
    BackendKind::Metal,
    BackendKind::Wgpu,
    BackendKind::Cpu,
];

// What automatic choice has seen so far.
#[derive(Default)]
struct Tried {
    // Why each backend was not taken.
    reasons: Vec<(BackendKind, String)>,
    // A GPU API with a software adapter only: slower than the CPU backend, better than nothing.
    software: Option<Box<dyn GpuBackend>>,
}

impl Tried {
    // The backend, if it can be had and has a device.
    async fn open(&mut self, kind: BackendKind) -> Option<Box<dyn GpuBackend>> {
        // Boxed because `open_backend` may choose automatically in turn; for these kinds it does not.
        match Box::pin(open_backend(kind)).await {
            Ok(backend) if backend.device_count() > 0 => return Some(backend),
            Ok(_) => self.reasons.push((kind, "it has no device".into())),
            Err(error) => self.reasons.push((kind, error.to_string())),
        }
        None
    }

    fn none(self) -> Error {
        Error::NoBackendAvailable { tried: self.reasons }
    }
}

fn is_software(backend: &dyn GpuBackend) -> bool {
    let adapter = backend.device_info(0).map(|i| i.adapter_type);
    backend.kind() == BackendKind::Wgpu && adapter == Ok(AdapterType::Cpu)
}

/// [`select_backend_async`], waiting on this thread.
pub fn select_backend() -> Result<Box<dyn GpuBackend>> {
    #[cfg(not(target_arch = "wasm32"))]
    return crate::future::block_on(select_backend_async());
    #[cfg(target_arch = "wasm32")]
    crate::future::now_or_cannot_block(select_backend_async(), "choosing a backend")
}

/// Opens a device: of the given backend, or for [`BackendKind::Auto`] of the first candidate that opens.
pub(crate) async fn open(kind: BackendKind, DeviceIndex(index): DeviceIndex) -> Result<Device> {
    if kind != BackendKind::Auto {
        let backend = open_backend(kind).await?;
        return Ok(Device::from_context(backend.create_context(index).await?));
    }
    let mut tried = Tried::default();
    for kind in CANDIDATES {
        match tried.open(kind).await {
            Some(backend) if is_software(&*backend) => tried.software = Some(backend),
            Some(backend) => match backend.create_context(index).await {
                Ok(context) => return Ok(Device::from_context(context)),
                Err(error) => tried.reasons.push((kind, error.to_string())),
            },
            None => {}
        }
    }
    if let Some(backend) = tried.software.take() {
        return Ok(Device::from_context(backend.create_context(index).await?));
    }
    Err(tried.none())
}
