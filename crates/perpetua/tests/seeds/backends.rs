//! RingKernel's page on backends: what a host does. Its traits are `perpetua::device::asynchronous`.

use std::sync::Arc;

use perpetua::args;
use perpetua::device::asynchronous::{self, GpuBackend, GpuContext};
use perpetua::device::future::{BoxFuture, block_on, ready};
use perpetua::device::{
    BackendKind, CompileOptions, CpuBackend, CudaBackend, Device, DeviceInfo, Dim3, Error, Result,
    WgpuBackend, open_backend,
};

// Changed: `Device` in the place of cudarc's `CudaDevice`, which cudarc no longer has; `#[async_trait]` written out.
pub(crate) struct CudaLike {
    devices: Vec<Arc<Device>>,
}

impl CudaLike {
    pub(crate) fn new(kind: BackendKind, device_count: usize) -> Result<Self> {
        let devices = (0..device_count)
            .map(|i| Device::new(kind, i))
            .collect::<Result<Vec<_>, _>>()?;

        Ok(Self {
            devices: devices.into_iter().map(Arc::new).collect(),
        })
    }
}

impl GpuBackend for CudaLike {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn device_count(&self) -> usize {
        self.devices.len()
    }

    fn device_info(&self, device_id: usize) -> Result<DeviceInfo> {
        let dev = &self.devices[device_id];
        Ok(dev.info().clone())
    }

    fn create_context(&self, device_id: usize) -> BoxFuture<'_, Result<Box<dyn GpuContext>>> {
        let device: Device = (*self.devices[device_id]).clone();
        ready(Ok(Box::new(device) as Box<dyn GpuContext>))
    }
}

// Changed: likewise, for metal-rs.
pub(crate) struct MetalLike {
    device: Device,
}

impl MetalLike {
    pub(crate) fn new(kind: BackendKind) -> Result<Self> {
        let device = Device::new(kind, 0).ok().ok_or(Error::NoDevice)?;

        Ok(Self { device })
    }
}

impl GpuBackend for MetalLike {
    fn name(&self) -> &'static str {
        "metal"
    }

    fn device_count(&self) -> usize {
        1
    } // Metal typically has one GPU

    // Added: the document leaves it out.
    fn device_info(&self, _device_id: usize) -> Result<DeviceInfo> {
        Ok(self.device.info().clone())
    }

    fn create_context(&self, _device_id: usize) -> BoxFuture<'_, Result<Box<dyn GpuContext>>> {
        ready(Ok(Box::new(self.device.clone()) as Box<dyn GpuContext>))
    }
}

// Changed: likewise, for wgpu's adapters and devices, whose own types have changed since.
pub(crate) struct WgpuLike {
    adapters: Vec<Device>,
}

impl WgpuLike {
    pub(crate) async fn new(kind: BackendKind) -> Result<Self> {
        let instance = open_backend(kind).await?;

        let adapters = (0..instance.device_count())
            .map(|i| Device::new(kind, i))
            .collect::<Result<_, _>>()?;

        Ok(Self { adapters })
    }
}

impl GpuBackend for WgpuLike {
    fn name(&self) -> &'static str {
        "wgpu"
    }

    fn device_count(&self) -> usize {
        self.adapters.len()
    }

    // Added: the document leaves it out.
    fn device_info(&self, device_id: usize) -> Result<DeviceInfo> {
        Ok(self.adapters[device_id].info().clone())
    }

    fn create_context(&self, device_id: usize) -> BoxFuture<'_, Result<Box<dyn GpuContext>>> {
        Box::pin(async move {
            let adapter = &self.adapters[device_id];
            Ok(Box::new(adapter.clone()) as Box<dyn GpuContext>)
        })
    }
}

/// Automatic backend selection based on platform.
// Changed: `async`, for it awaits; the CPU, which every program here has, without a feature.
pub(crate) async fn select_backend() -> Result<Box<dyn GpuBackend>> {
    type Ours = Box<dyn perpetua::device::GpuBackend>;

    #[cfg(feature = "cuda")]
    if let Ok(backend) = CudaBackend::new() {
        let backend: Ours = Box::new(backend);
        if backend.device_count() > 0 {
            return Ok(Box::new(backend));
        }
    }

    #[cfg(feature = "wgpu")]
    if let Ok(backend) = WgpuBackend::new().await {
        let backend: Ours = Box::new(backend);
        if backend.device_count() > 0 {
            return Ok(Box::new(backend));
        }
    }

    let backend: Ours = Box::new(CpuBackend::new());
    Ok(Box::new(backend))
}

const COUNT: &str =
    "kernel count(x: buffer<u32, read_write>) {\n  %0: u32 = thread_idx.x\n  store x[%0], %0\n}\n";

/// Everything that the traits have, awaited.
async fn use_it(backend: &dyn GpuBackend) -> Result<()> {
    let context = backend.create_context(0).await?;
    let a = context.allocate(16).await?;
    let b = context.allocate(16).await?;
    let bytes: Vec<u8> = (0..16).collect();
    context.copy_to_device(&bytes, a.clone()).await?;
    context.copy_device_to_device(a.clone(), b.clone(), 16).await?;
    let mut back = [0; 16];
    context.copy_to_host(b.clone(), &mut back).await?;
    assert_eq!(back[..], bytes);

    let too_many = context.copy_device_to_device(a.clone(), b, 17).await;
    assert!(matches!(too_many, Err(Error::OutOfRange { .. })), "{too_many:?}");

    let kernel = context.compile(COUNT, &CompileOptions::default()).await?;
    let missing = kernel.get_function("other").map(drop);
    assert!(
        matches!(missing, Err(Error::FunctionNotFound { .. })),
        "{missing:?}"
    );
    let stream = context.create_stream()?;
    let function = kernel.get_function("count")?;
    // What an argument is not, is said before anything runs.
    let refused = function
        .launch(Dim3::ONE, Dim3::from(4), 0, &*stream, args![1u32])
        .await;
    assert!(
        matches!(refused, Err(Error::ArgumentMismatch { .. })),
        "{refused:?}"
    );
    context.synchronize().await?;
    context.free(a).await
}

#[test]
fn backends_of_ones_own_are_used_by_the_documents_traits() {
    let outcome = block_on(async {
        use_it(&CudaLike::new(BackendKind::Cpu, 1)?).await?;
        use_it(&MetalLike::new(BackendKind::Cpu)?).await?;
        use_it(&WgpuLike::new(BackendKind::Cpu).await?).await?;
        use_it(&*select_backend().await?).await?;
        use_it(&*asynchronous::select_backend().await?).await
    });
    assert_eq!(outcome, Ok(()));
    let none = MetalLike::new(BackendKind::Metal).map(drop);
    assert_eq!(none, Err(Error::NoDevice));
}

#[test]
fn a_launch_by_the_documents_traits_computes() {
    let computed = block_on(async {
        let device = Device::new(BackendKind::Cpu, 0)?;
        let context: &dyn GpuContext = &device;
        let kernel = context.compile(COUNT, &CompileOptions::default()).await?;
        let (x, stream) = (device.zeros::<u32>(4)?, context.create_stream()?);
        let function = kernel.get_function("count")?;
        function
            .launch(Dim3::ONE, Dim3::from(4), 0, &*stream, args![&x])
            .await?;
        context.synchronize().await?;
        x.read()
    });
    assert_eq!(computed, Ok(vec![0, 1, 2, 3]));
}

/// The document's block, 128 bytes, of a kernel as it stands.
#[test]
fn control_block() {
    use perpetua::actors::ControlBlock;
    use perpetua::prelude::*;

    super::ringkernel::run(async {
        let runtime = CpuRuntime::new().await?;
        let kernel = runtime.launch("kernel", LaunchOptions::default()).await?;
        let active = kernel.control_block();
        kernel.terminate().await?;
        let ended = kernel.control_block();
        assert_eq!(
            (size_of::<ControlBlock>(), align_of::<ControlBlock>()),
            (128, 128)
        );
        assert_eq!(
            [active.is_active, active.should_terminate, active.has_terminated],
            [1, 0, 0]
        );
        assert_eq!(
            [ended.is_active, ended.has_terminated, ended.errors_encountered],
            [0, 1, 0]
        );
        Ok(())
    });
}
