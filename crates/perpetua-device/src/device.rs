//! The device that a program holds: memory, kernels, launches and streams of any backend. Must not know backends
//! ([`select`] does).

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use perpetua_ir::front::rust::GpuType;
use perpetua_ir::ir::Kernel as IrKernel;
use perpetua_ir::ir::text::ParseError;
use perpetua_ir::verify::{Verified, verify};

use crate::backend::{Content, GpuContext, failed};
use crate::buffer::Buffer;
use crate::dim::LaunchConfig;
use crate::error::{Error, Result};
use crate::future::{BoxFuture, MaybeSend, MaybeSync};
use crate::info::{BackendKind, DeviceInfo, MemoryInfo};
use crate::kernel::{Kernel, Launchable, Module};
use crate::launch::{check_shape, launch};
use crate::layout;
use crate::lock::lock;
use crate::modules::{ModuleKey, Modules};
use crate::ptr::{ContextId, DevicePtr, MemoryKind, PoolStats};
use crate::select;
use crate::signature::KernelArg;
use crate::source::{CompileOptions, KernelId, KernelSource, KernelSpec, SafeSpec, require_safe};
use crate::stream::Stream;

/// A device's index within its backend; 0 is the one that automatic choice takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct DeviceIndex(pub usize);

impl From<usize> for DeviceIndex {
    fn from(index: usize) -> DeviceIndex {
        DeviceIndex(index)
    }
}

/// An opened device. Cheap to clone; clones are the same device. What was made from it keeps it open.
///
/// ```
/// use perpetua_device::{BackendKind, Device};
/// let device = Device::new(BackendKind::Cpu, 0)?; // Auto takes a GPU where there is one, Cuda and Wgpu take theirs or are an error
/// let squares = device.upload(&[1.0f32, 4.0, 9.0])?;
/// let zeros = device.zeros::<f32>(3)?;
/// zeros.copy_from(&squares)?;
/// assert_eq!(zeros.read()?, [1.0, 4.0, 9.0]);
/// println!("{} on {}", device.backend(), device.info().name);
/// # Ok::<(), perpetua_device::Error>(())
/// ```
/// [`Device::launch`] runs kernels.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    context: Arc<dyn GpuContext>,
    modules: Modules,
    attachments: Mutex<HashMap<TypeId, Attachment>>,
}

#[cfg(any(not(target_arch = "wasm32"), feature = "wasm-send"))]
type Attachment = Arc<dyn Any + Send + Sync>;
#[cfg(all(target_arch = "wasm32", not(feature = "wasm-send")))]
type Attachment = Arc<dyn Any>;

/// What a source is known by, if it is safe. `None` for native kernels: their identity is their code, which has no bytes to hash.
fn module_key(source: &KernelSource<'_>, options: &CompileOptions) -> Result<Option<ModuleKey>> {
    let id = match source {
        KernelSource::Ir(verified) => {
            require_safe(verified)?;
            KernelId::of_ir(verified)
        }
        KernelSource::IrText(t) | KernelSource::CudaC(t) | KernelSource::Ptx(t) | KernelSource::Wgsl(t) => {
            KernelId::of(&[t.as_bytes()])
        }
        KernelSource::Spec(spec) => spec.id(),
        KernelSource::Native(_, ir) => {
            ir.map_or(Ok(()), require_safe)?;
            return Ok(None);
        }
    };
    Ok(Some(ModuleKey {
        form: source.kind(),
        id,
        options: options.clone(),
    }))
}

impl Device {
    /// Opens a device. [`BackendKind::Auto`] takes the first backend that works; any other choice is kept or is an error.
    pub fn new(kind: BackendKind, index: impl Into<DeviceIndex>) -> Result<Device> {
        let opening = select::open(kind, index.into());
        #[cfg(not(target_arch = "wasm32"))]
        return crate::future::block_on(opening);
        #[cfg(target_arch = "wasm32")]
        crate::future::now_or_cannot_block(opening, "opening a device")
    }

    /// The same without blocking, for browsers.
    pub async fn new_async(kind: BackendKind, index: impl Into<DeviceIndex>) -> Result<Device> {
        select::open(kind, index.into()).await
    }

    /// Wraps an opened context.
    pub fn from_context(context: Box<dyn GpuContext>) -> Device {
        Device(Arc::new(Inner {
            context: Arc::from(context),
            modules: Modules::default(),
            attachments: Mutex::default(),
        }))
    }

    /// What a layer above keeps with this device: one value of each type, made when it is first asked for, and dropped with the device. It
    /// must not hold the device itself.
    ///
    /// ```
    /// use perpetua_device::{BackendKind, Device};
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// let device = Device::new(BackendKind::Cpu, 0)?;
    /// device.attachment::<AtomicU32>().fetch_add(1, Ordering::Relaxed);
    /// assert_eq!(device.clone().attachment::<AtomicU32>().load(Ordering::Relaxed), 1);
    /// # Ok::<(), perpetua_device::Error>(())
    /// ```
    pub fn attachment<T: Default + MaybeSend + MaybeSync + 'static>(&self) -> Arc<T> {
        let mut all = lock(&self.0.attachments);
        let held = all
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Arc::<T>::default());
        // It is entered under its own type.
        Arc::clone(held).downcast().unwrap_or_default()
    }

    /// The backend's context.
    pub fn context(&self) -> &Arc<dyn GpuContext> {
        &self.0.context
    }

    /// Names the opened device.
    pub fn id(&self) -> ContextId {
        self.0.context.id()
    }

    /// Its properties.
    pub fn info(&self) -> &DeviceInfo {
        self.0.context.info()
    }

    /// Its backend.
    pub fn backend(&self) -> BackendKind {
        self.info().backend
    }

    /// Its memory now.
    pub fn memory_info(&self) -> Result<MemoryInfo> {
        self.0.context.memory_info()
    }

    /// What its pool of `kind` has done so far.
    pub fn pool_stats(&self, kind: MemoryKind) -> PoolStats {
        self.0.context.pool_stats(kind)
    }

    /// Returns unused pool memory to the driver, but for `keep` bytes of each kind.
    pub fn trim(&self, keep: u64) -> Result<()> {
        self.0.context.trim(keep)
    }

    /// The stream that operations without a stream go to.
    pub fn default_stream(&self) -> Stream {
        Stream::new(Arc::clone(self.0.context.default_stream()), self.clone())
    }

    /// A new stream, independent of all others.
    pub fn create_stream(&self) -> Result<Stream> {
        Ok(Stream::new(self.0.context.create_stream()?, self.clone()))
    }

    /// Takes `len * size_of::<T>()` bytes of `kind`.
    pub(crate) fn allocate<T: GpuType>(&self, len: usize, kind: MemoryKind) -> Result<DevicePtr> {
        let limit = self.info().limits.max_buffer_bytes;
        let bytes = (len as u64).checked_mul(size_of::<T>() as u64);
        let bytes = bytes.filter(|b| *b <= limit).ok_or(Error::Limit {
            what: "bytes in one buffer",
            found: bytes.unwrap_or(u64::MAX),
            limit,
            remedy: "use several buffers",
        })?;
        self.0.context.allocate(bytes, kind)
    }

    // A buffer whose content is `content`, for all work that follows; or unspecified.
    fn buffer<T: GpuType>(&self, len: usize, content: Option<Content<'_>>) -> Result<Buffer<T>> {
        let ptr = self.allocate::<T>(len, MemoryKind::Device)?;
        if let Some(content) = content {
            self.0.context.initialise(&ptr, &content)?;
        }
        Ok(Buffer::from_ptr(ptr, len, self.clone()))
    }

    /// A buffer of `len` elements. Its content is unspecified; for types that have invalid bit patterns (`bool`, enums) it is
    /// zeros, and an error where that is no value.
    pub fn alloc<T: GpuType>(&self, len: usize) -> Result<Buffer<T>> {
        match T::describe().any_bits() {
            true => self.buffer(len, None),
            false => self.zeros(len),
        }
    }

    /// A buffer of `len` elements whose bytes are all zero. As for [`Device::full`] and [`Device::upload`], all work that is submitted
    /// afterwards sees that, whatever its stream. Where streams run beside each other on the device, the default stream fills the
    /// buffer, and others that use it wait for that, but not for the default stream's later work. It is never part of a graph.
    pub fn zeros<T: GpuType>(&self, len: usize) -> Result<Buffer<T>> {
        layout::check_values::<T>(&vec![0; size_of::<T>()])?;
        self.buffer(len, Some(Content::Pattern(&[0])))
    }

    /// A buffer of `len` elements equal to `value`.
    pub fn full<T: GpuType>(&self, len: usize, value: T) -> Result<Buffer<T>> {
        layout::with_repeated(value, len, |content| self.buffer(len, content))
    }

    /// A buffer that holds a copy of `values`.
    pub fn upload<T: GpuType>(&self, values: &[T]) -> Result<Buffer<T>> {
        layout::with_bytes(values, |bytes| {
            self.buffer(values.len(), Some(Content::Bytes(bytes)))
        })
    }

    /// Compiles a source, or finds it among those compiled on this device before. IR without fault checks is
    /// [`Error::ChecksLeftOut`], unless somebody answers for it: [`Verified::trust`]. The device keeps up to
    /// [`DEFAULT_MODULES`](crate::DEFAULT_MODULES) modules ([`Device::set_module_limit`]).
    pub fn compile(&self, source: &KernelSource<'_>, options: &CompileOptions) -> Result<Module> {
        if let KernelSource::IrText(text) = source {
            return self.compile(&KernelSource::Ir(&read_ir(text)?), options);
        }
        let make = || {
            let compiled = match source {
                KernelSource::Spec(spec) => {
                    let safe = SafeSpec(*spec);
                    self.0.context.compile(&KernelSource::Spec(&safe), options)?
                }
                _ => self.0.context.compile(source, options)?,
            };
            Ok(Module::new(compiled, source.kind()))
        };
        match module_key(source, options)? {
            Some(key) => self.0.modules.get(key, make),
            None => make(),
        }
    }

    /// The same without holding the calling thread while the driver's compiler runs: see
    /// [`GpuContext::compile_async`]. Begun by the call. Tasks and threads that want one kernel
    /// wait for one compilation, each may be dropped, and all are told its error. Where the block is part of the machine code (wgpu), name
    /// it ([`CompileOptions::block`]), or the first launch compiles the rest; for a kernel of fixed block size that is done.
    ///
    /// ```
    /// # use perpetua_device::{BackendKind, CompileOptions, Device, KernelSource};
    /// # fn main() -> perpetua_device::Result<()> {
    /// let device = Device::new(BackendKind::Cpu, 0)?;
    /// let text = "kernel count(x: buffer<u32, read_write>) {\n  %0: u32 = thread_idx.x\n  store x[%0], %0\n}\n";
    /// let compiling = device.compile_async(&KernelSource::IrText(text), &CompileOptions::default());
    /// // Other work here, and other kernels begun. Any executor will do; this one needs none:
    /// let kernel = perpetua_device::future::block_on(compiling)?.only()?;
    /// # Ok(())
    /// # }
    /// ```
    /// A `#[kernel]` is `KernelSource::Spec(&saxpy::kernel())`, or shorter [`Device::kernel_async`].
    pub fn compile_async(
        &self,
        source: &KernelSource<'_>,
        options: &CompileOptions,
    ) -> BoxFuture<'static, Result<Module>> {
        if let KernelSource::IrText(text) = source {
            return match read_ir(text) {
                Ok(verified) => self.compile_async(&KernelSource::Ir(&verified), options),
                Err(error) => failed(error),
            };
        }
        let begin = || {
            let compiling = match source {
                KernelSource::Spec(spec) => {
                    let safe = SafeSpec(*spec);
                    self.0.context.compile_async(&KernelSource::Spec(&safe), options)
                }
                _ => self.0.context.compile_async(source, options),
            };
            let form = source.kind();
            let module: BoxFuture<'static, _> =
                Box::pin(async move { Ok(Module::new(compiling.await?, form)) });
            module
        };
        match module_key(source, options) {
            Ok(Some(key)) => self.0.modules.get_async(key, begin),
            Ok(None) => begin(),
            Err(error) => failed(error),
        }
    }

    /// [`Device::kernel`] without holding the calling thread: see [`Device::compile_async`].
    pub fn kernel_async(&self, spec: &impl KernelSpec) -> BoxFuture<'static, Result<Kernel>> {
        let module = self.compile_async(&KernelSource::Spec(spec), &CompileOptions::default());
        Box::pin(async move { module.await?.only() })
    }

    /// [`Device::compile_ir`] without holding the calling thread: see [`Device::compile_async`].
    pub fn compile_ir_async(&self, kernel: &Verified) -> BoxFuture<'static, Result<Kernel>> {
        let module = self.compile_async(&KernelSource::Ir(kernel), &CompileOptions::default());
        Box::pin(async move { module.await?.only() })
    }

    /// Keeps at most `most` compiled modules from now on (at least one). When there are more, the one used longest ago goes: it is compiled,
    /// or found on disk, when it is wanted again. What somebody holds stays usable.
    pub fn set_module_limit(&self, most: usize) {
        self.0.modules.set_most(most);
    }

    /// How many compiled modules the device keeps.
    pub fn module_count(&self) -> usize {
        self.0.modules.len()
    }

    /// A kernel of the program, compiled for this device at first use.
    pub fn kernel(&self, spec: &impl KernelSpec) -> Result<Kernel> {
        self.compile(&KernelSource::Spec(spec), &CompileOptions::default())?
            .only()
    }

    /// A kernel in IR, compiled for this device.
    pub fn compile_ir(&self, kernel: &Verified) -> Result<Kernel> {
        self.compile(&KernelSource::Ir(kernel), &CompileOptions::default())?
            .only()
    }

    /// Whether a launch of this shape would be refused for it: by the device's limits, or by what the kernel needs.
    ///
    /// # Errors
    /// As [`Stream::launch`] would give.
    pub fn check_launch(&self, kernel: &Kernel, config: &LaunchConfig) -> Result<()> {
        check_shape(self, kernel, kernel.signature(), config)
    }

    /// Submits a launch to the default stream: see [`Stream::launch`].
    pub fn launch<K: Launchable + ?Sized>(
        &self,
        kernel: &K,
        config: LaunchConfig,
        args: &[KernelArg<'_>],
    ) -> Result<()> {
        launch(
            self,
            &**self.0.context.default_stream(),
            &kernel.kernel(self)?,
            &config,
            args,
        )
    }

    /// Waits for all work on all streams. The first unreported fault is an error.
    pub fn synchronize(&self) -> Result<()> {
        self.0.context.synchronize_blocking()
    }

    /// The same without blocking.
    pub fn synchronize_async(&self) -> BoxFuture<'_, Result<()>> {
        self.0.context.synchronize()
    }

    /// Loses the device on purpose, so that tests can see what becomes of it.
    #[cfg(feature = "testing")]
    pub fn lose_device_for_test(&self) -> Result<()> {
        self.0.context.lose_device_for_test()
    }

    /// Launches kernels that have an entry point for large grids by it, however small the grid: so of functions taken from now on.
    #[cfg(feature = "testing")]
    pub fn widen_all_for_test(&self) {
        self.0.context.widen_all_for_test();
    }

    /// Changes the text of every kernel that this device renders from now on, so that tests can plant a bug in a
    /// renderer. Kernels compiled before stay; the caches on disk must be off
    /// ([`CompileOptions::no_disk_cache`]).
    ///
    /// # Safety
    /// The changed kernels access memory only as the unchanged ones do.
    #[cfg(feature = "testing")]
    pub unsafe fn rewrite_kernels_for_test(&self, rewrite: crate::backend::TextRewrite) -> Result<()> {
        // SAFETY: the caller answers for the kernels.
        unsafe { self.0.context.rewrite_kernels_for_test(rewrite) }
    }
}

// Reads and verifies a kernel in the IR's text form.
fn read_ir(text: &str) -> Result<Verified> {
    let kernel: IrKernel = text.parse().map_err(|e: ParseError| Error::Frontend {
        kernel: "(IR text)".into(),
        message: e.to_string(),
    })?;
    let name = kernel.name.clone();
    verify(kernel).map_err(|e| Error::Frontend {
        kernel: name,
        message: e.to_string(),
    })
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = self.info();
        write!(f, "{} device {}: {}", info.backend, info.index, info.name)
    }
}
