//! The contract of backends with each call asynchronous and nothing but names, bytes and sizes: a thin layer over [`Device`], for programs
//! written against such traits. What it adds is no more than their shape. Must not know any backend.
//!
//! ```
//! use perpetua_device::asynchronous::{GpuBackend, select_backend};
//! use perpetua_device::{CompileOptions, Dim3, args, future::block_on};
//!
//! # fn main() -> perpetua_device::Result<()> {
//! block_on(async {
//!     let backend = select_backend().await?;
//!     let context = backend.create_context(0).await?;
//!     let (a, b) = (context.allocate(4).await?, context.allocate(4).await?);
//!     context.copy_to_device(&[1, 2, 3, 4], a.clone()).await?;
//!     context.copy_device_to_device(a.clone(), b.clone(), 4).await?;
//!     let mut bytes = [0; 4];
//!     context.copy_to_host(b, &mut bytes).await?;
//!     assert_eq!(bytes, [1, 2, 3, 4]);
//!
//!     let text = "kernel nothing(n: u32) {\n}\n";
//!     let kernel = context.compile(text, &CompileOptions::default()).await?.get_function("nothing")?;
//!     let stream = context.create_stream()?;
//!     kernel.launch(Dim3::ONE, Dim3::ONE, 0, &*stream, args![7u32]).await?;
//!     context.synchronize().await?;
//!     context.free(a).await
//! })
//! # }
//! ```

use std::sync::Arc;

use crate::backend::{self, GpuStream};
use crate::device::Device;
use crate::dim::{Dim3, LaunchConfig};
use crate::error::{Error, Result};
use crate::future::{BoxFuture, MaybeSend, MaybeSync, ready};
use crate::info::{BackendKind, DeviceInfo};
use crate::kernel::{Kernel, Module};
use crate::launch::launch;
use crate::ptr::{DevicePtr, MemoryKind};
use crate::signature::KernelArg;
use crate::source::{CompileOptions, KernelSource};

/// The best backend that has a device: [`crate::select::select_backend_async`].
pub async fn select_backend() -> Result<Box<dyn GpuBackend>> {
    Ok(Box::new(crate::select::select_backend_async().await?))
}

/// A family of devices. Every [`backend::GpuBackend`] is one.
pub trait GpuBackend: MaybeSend + MaybeSync + 'static {
    /// Identifier: `cuda`, `wgpu`, `cpu`, `null`.
    fn name(&self) -> &'static str;

    /// Number of usable devices.
    fn device_count(&self) -> usize;

    /// Properties of a device.
    fn device_info(&self, device_id: usize) -> Result<DeviceInfo>;

    /// Opens a device.
    fn create_context(&self, device_id: usize) -> BoxFuture<'_, Result<Box<dyn GpuContext>>>;
}

impl GpuBackend for Box<dyn backend::GpuBackend> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn device_count(&self) -> usize {
        (**self).device_count()
    }

    fn device_info(&self, device_id: usize) -> Result<DeviceInfo> {
        (**self).device_info(device_id)
    }

    fn create_context(&self, device_id: usize) -> BoxFuture<'_, Result<Box<dyn GpuContext>>> {
        let opening = (**self).create_context(device_id);
        Box::pin(async move {
            let context: Box<dyn GpuContext> = Box::new(Device::from_context(opening.await?));
            Ok(context)
        })
    }
}

/// An opened device. Work is submitted by the call, not by the first poll; what a future waits for has ended on the device.
pub trait GpuContext: MaybeSend + MaybeSync + 'static {
    /// Takes device memory; its content is unspecified.
    fn allocate(&self, size: usize) -> BoxFuture<'_, Result<DevicePtr>>;

    /// Gives it back, once every clone is gone: the same as dropping it.
    fn free(&self, ptr: DevicePtr) -> BoxFuture<'_, Result<()>>;

    /// Copies host bytes to as many of the device.
    fn copy_to_device(&self, src: &[u8], dst: DevicePtr) -> BoxFuture<'_, Result<()>>;

    /// Copies all bytes of `src` to as many of the host.
    fn copy_to_host<'a>(&self, src: DevicePtr, dst: &'a mut [u8]) -> BoxFuture<'a, Result<()>>;

    /// Copies the first `size` bytes.
    fn copy_device_to_device(&self, src: DevicePtr, dst: DevicePtr, size: usize)
    -> BoxFuture<'_, Result<()>>;

    /// Compiles a text: the IR's on every backend, PTX and CUDA C on CUDA, WGSL on wgpu.
    fn compile<'a>(
        &'a self,
        source: &'a str,
        options: &'a CompileOptions,
    ) -> BoxFuture<'a, Result<Box<dyn CompiledKernel>>>;

    /// A new stream, independent of all others.
    fn create_stream(&self) -> Result<Arc<dyn GpuStream>>;

    /// Waits for all work of all streams. The first unreported fault is an error.
    fn synchronize(&self) -> BoxFuture<'_, Result<()>>;
}

impl GpuContext for Device {
    fn allocate(&self, size: usize) -> BoxFuture<'_, Result<DevicePtr>> {
        ready(self.context().allocate(size as u64, MemoryKind::Device))
    }

    fn free(&self, ptr: DevicePtr) -> BoxFuture<'_, Result<()>> {
        ready(self.context().free(ptr))
    }

    fn copy_to_device(&self, src: &[u8], dst: DevicePtr) -> BoxFuture<'_, Result<()>> {
        after(self, self.context().copy_to_device(src, &dst))
    }

    fn copy_to_host<'a>(&self, src: DevicePtr, dst: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        self.context().copy_to_host(&src, dst)
    }

    fn copy_device_to_device(
        &self,
        src: DevicePtr,
        dst: DevicePtr,
        size: usize,
    ) -> BoxFuture<'_, Result<()>> {
        let first = |ptr: DevicePtr| ptr.slice(0..size as u64);
        let copied = first(src)
            .and_then(|src| Ok((src, first(dst)?)))
            .and_then(|(src, dst)| self.context().copy_device_to_device(&src, &dst));
        after(self, copied)
    }

    fn compile<'a>(
        &'a self,
        source: &'a str,
        options: &'a CompileOptions,
    ) -> BoxFuture<'a, Result<Box<dyn CompiledKernel>>> {
        let compiling = self.compile_async(&form_of(source, self.backend()), options);
        Box::pin(async move {
            let (device, module) = (self.clone(), compiling.await?);
            let compiled: Box<dyn CompiledKernel> = Box::new(Compiled { device, module });
            Ok(compiled)
        })
    }

    fn create_stream(&self) -> Result<Arc<dyn GpuStream>> {
        self.context().create_stream()
    }

    fn synchronize(&self) -> BoxFuture<'_, Result<()>> {
        self.synchronize_async()
    }
}

// Submitted to the default stream: there when that has come so far.
fn after<'a>(device: &'a Device, submitted: Result<()>) -> BoxFuture<'a, Result<()>> {
    match submitted {
        Ok(()) => device.context().default_stream().synchronize(),
        Err(error) => ready(Err(error)),
    }
}

// What language a text is in. Comments may stand in front of it.
fn form_of(source: &str, backend: BackendKind) -> KernelSource<'_> {
    let is_comment = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with("//");
    let first = source.lines().find(|line| !is_comment(line)).unwrap_or_default();
    match (first.split_whitespace().next(), backend) {
        (Some("kernel"), _) => KernelSource::IrText(source),
        (Some(".version"), _) => KernelSource::Ptx(source),
        (_, BackendKind::Cuda) => KernelSource::CudaC(source),
        (_, BackendKind::Wgpu) => KernelSource::Wgsl(source),
        _ => KernelSource::IrText(source),
    }
}

/// A compiled text.
pub trait CompiledKernel: MaybeSend + MaybeSync + 'static {
    /// The entry point called `name`; [`Error::FunctionNotFound`] otherwise.
    fn get_function(&self, name: &str) -> Result<Box<dyn KernelFunction>>;
}

struct Compiled {
    device: Device,
    module: Module,
}

impl CompiledKernel for Compiled {
    fn get_function(&self, name: &str) -> Result<Box<dyn KernelFunction>> {
        let (device, kernel) = (self.device.clone(), self.module.kernel(name)?);
        Ok(Box::new(Function { device, kernel }))
    }
}

/// An entry point that can be launched.
pub trait KernelFunction: MaybeSend + MaybeSync + 'static {
    /// Submits a launch with `shared_mem` bytes of dynamic shared memory; the future waits for nothing more.
    ///
    /// # Errors
    /// As [`Stream::launch`](crate::Stream::launch). [`Error::Unchecked`] for text other than the IR's: nobody can check its arguments, so
    /// launching it is `unsafe`.
    fn launch(
        &self,
        grid: Dim3,
        block: Dim3,
        shared_mem: usize,
        stream: &dyn GpuStream,
        args: &[KernelArg<'_>],
    ) -> BoxFuture<'_, Result<()>>;
}

struct Function {
    device: Device,
    kernel: Kernel,
}

impl KernelFunction for Function {
    fn launch(
        &self,
        grid: Dim3,
        block: Dim3,
        shared_mem: usize,
        stream: &dyn GpuStream,
        args: &[KernelArg<'_>],
    ) -> BoxFuture<'_, Result<()>> {
        let shared = u32::try_from(shared_mem).map_err(|_| Error::LaunchLimit {
            backend: self.device.backend(),
            kernel: self.kernel.name().to_owned(),
            what: "dynamic shared memory in bytes",
            found: shared_mem as u64,
            limit: self.device.info().limits.shared_bytes_per_block.into(),
        });
        ready(shared.and_then(|bytes| {
            let config = LaunchConfig::new(grid, block).with_shared_bytes(bytes);
            launch(&self.device, stream, &self.kernel, &config, args)
        }))
    }
}
