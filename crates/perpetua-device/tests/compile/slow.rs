//! A backend of a crate outside, for tests: the null device under another name, whose compiler counts and can be slow.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use perpetua_device::*;

/// Kernels compiled on all devices of the backend so far.
pub(crate) static COMPILED: AtomicUsize = AtomicUsize::new(0);

/// What the backend is chosen by.
pub(crate) const KIND: BackendKind = BackendKind::Other("slow");

/// The backend as it is registered.
pub(crate) const ENTRY: BackendEntry = BackendEntry {
    kind: KIND,
    order: None,
    emulates: false,
    open: |_| future::ready(Ok(Box::new(SlowBackend) as Box<dyn GpuBackend>)),
};

struct SlowBackend;

impl GpuBackend for SlowBackend {
    fn kind(&self) -> BackendKind {
        KIND
    }

    fn device_count(&self) -> usize {
        1
    }

    fn device_info(&self, device_id: usize) -> Result<DeviceInfo> {
        let info = NullBackend::new().device_info(device_id)?;
        Ok(DeviceInfo {
            name: "slow device".into(),
            backend: KIND,
            ..info
        })
    }

    fn create_context(&self, device_id: usize) -> BoxFuture<'_, Result<Box<dyn GpuContext>>> {
        let opened = self.device_info(device_id).and_then(|info| {
            let null: Arc<dyn GpuContext> = Arc::from(NullBackend::new().create_context_blocking(device_id)?);
            Ok(Box::new(SlowContext { info, null }) as Box<dyn GpuContext>)
        });
        future::ready(opened)
    }
}

struct SlowContext {
    info: DeviceInfo,
    null: Arc<dyn GpuContext>,
}

impl GpuContext for SlowContext {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn id(&self) -> ptr::ContextId {
        self.null.id()
    }

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        self.null.memory_info()
    }

    fn allocate(&self, bytes: u64, kind: MemoryKind) -> Result<DevicePtr> {
        self.null.allocate(bytes, kind)
    }

    fn initialise(&self, dst: &DevicePtr, content: &Content<'_>) -> Result<()> {
        self.null.initialise(dst, content)
    }

    fn pool_stats(&self, kind: MemoryKind) -> PoolStats {
        self.null.pool_stats(kind)
    }

    fn trim(&self, keep: u64) -> Result<()> {
        self.null.trim(keep)
    }

    fn compile(
        &self,
        source: &KernelSource<'_>,
        options: &CompileOptions,
    ) -> Result<Arc<dyn CompiledKernel>> {
        COMPILED.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(50));
        self.null.compile(source, options)
    }

    fn compile_async(
        &self,
        source: &KernelSource<'_>,
        options: &CompileOptions,
    ) -> BoxFuture<'static, Result<Arc<dyn CompiledKernel>>> {
        COMPILED.fetch_add(1, Ordering::SeqCst);
        let (null, options) = (Arc::clone(&self.null), options.clone());
        let text = match source {
            KernelSource::Ir(kernel) => kernel.kernel().to_string(),
            other => return Box::pin(std::future::ready(self.null.compile(other, &options))),
        };
        let (sender, receiver) = std::sync::mpsc::channel::<std::task::Waker>();
        let done = Arc::new(std::sync::OnceLock::new());
        let told = Arc::clone(&done);
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            let kernel = text.parse().expect("a kernel's own text");
            let kernel = perpetua_ir::verify::verify(kernel).expect("sound as before");
            let _ = told.set(null.compile(&KernelSource::Ir(&kernel), &options));
            receiver.iter().for_each(std::task::Waker::wake);
        });
        Box::pin(std::future::poll_fn(move |cx| match done.get() {
            Some(compiled) => std::task::Poll::Ready(compiled.clone()),
            None => {
                // The thread wakes it, also when it has ended meanwhile.
                let _ = sender.send(cx.waker().clone());
                std::task::Poll::Pending
            }
        }))
    }

    fn default_stream(&self) -> &Arc<dyn GpuStream> {
        self.null.default_stream()
    }

    fn create_stream(&self) -> Result<Arc<dyn GpuStream>> {
        self.null.create_stream()
    }

    fn synchronize(&self) -> BoxFuture<'_, Result<()>> {
        self.null.synchronize()
    }

    fn synchronize_blocking(&self) -> Result<()> {
        self.null.synchronize_blocking()
    }
}
