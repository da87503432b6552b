//! The device layer: memory, streams, kernels and launches on any backend, chosen at run time.
//!
//! In the order in which a program meets them: [`select`] finds a backend, [`Device`] is what a program holds,
//! [`Buffer`] its memory ([`DynBuffer`] where types come at run time), [`Stream`] its order of work, [`Kernel`] what it launches with [`args!`], [`Error`] what
//! goes wrong. Below them stands the contract that every backend fulfils ([`backend`]), and the backends: [`null`]
//! proves the contract without hardware, `cpu` runs kernels on the host, `cuda` and `wgpu` on GPUs.
//!
//! ```
//! use perpetua_device::{BackendKind, CompileOptions, Device, KernelSource, LaunchConfig, args};
//! let device = Device::new(BackendKind::Cpu, 0)?; // or Auto, Cuda, Wgpu
//! let text = "\
//! kernel scale(x: buffer<f32, read_write>, a: f32) {
//!   %0: u32 = thread_idx.x
//!   %1: f32 = load x[%0]
//!   %2: f32 = param a
//!   %3: f32 = mul %1, %2
//!   store x[%0], %3
//! }
//! ";
//! let scale = device.compile(&KernelSource::IrText(text), &CompileOptions::default())?.only()?;
//! let x = device.upload(&[1.0f32, 2.0, 3.0])?;
//! device.launch(&scale, LaunchConfig::new(1, 3), args![&x, 2.0f32])?;
//! assert_eq!(x.read()?, [2.0, 4.0, 6.0]);
//!
//! // One lane too many: nothing is written beyond the end, and the next read says what happened.
//! device.launch(&scale, LaunchConfig::new(1, 4), args![&x, 2.0f32])?;
//! let error = x.read().expect_err("the fourth lane has no element");
//! assert!(error.to_string().starts_with("index out of bounds: the length of `x` is 3 but the index is 3"));
//! # Ok::<(), perpetua_device::Error>(())
//! ```
//!
//! The contract knows no backend, no front end and no tensor; nothing outside [`select`] names a backend by its type.

pub mod select;

pub mod device;
pub mod dim;
pub mod info;

mod adopt;
pub mod buffer;
pub mod dynamic;
pub mod host_buffer;
mod span;

pub mod kernel;
pub mod layout;
pub mod signature;
pub mod source;

pub mod stream;
pub mod value;

mod factors;
mod launch;
mod modules;
pub mod overlap;

pub mod error;
mod error_text;

#[cfg(not(target_arch = "wasm32"))]
#[cfg(any(feature = "cuda", feature = "wgpu", test))]
mod background;
mod lock;
mod lru;

pub mod asynchronous;
pub mod backend;
pub mod cache;
mod captured;
mod crossover;
pub mod fault;
pub mod future;
pub mod gate;
pub mod host;
pub mod native;
pub mod ptr;
mod way;

pub mod null;

#[cfg(feature = "cpu")]
pub mod cpu;

#[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
pub mod cuda;

#[cfg(feature = "wgpu")]
pub mod wgpu;

#[cfg(all(feature = "conformance", not(target_arch = "wasm32")))]
pub mod conformance;

pub use backend::{
    CompiledKernel, Content, GpuBackend, GpuContext, GpuEvent, GpuGraph, GpuStream, KernelFunction, Launch,
};
pub use buffer::Buffer;
#[cfg(feature = "cpu")]
pub use cpu::CpuBackend;
pub use crossover::{Crossover, CrossoverPoint, Data, Operation};
#[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
pub use cuda::CudaBackend;
pub use device::{Device, DeviceIndex};
pub use dim::{Dim3, LaunchConfig};
pub use dynamic::DynBuffer;
pub use error::{Error, Result};
pub use future::{BoxFuture, MaybeSend, MaybeSync};
pub use host_buffer::{MappedBuffer, PinnedBuffer, PinnedRead};
pub use info::{AdapterType, BackendKind, DeviceInfo, DeviceLimits, MemoryInfo, NumericProbe};
pub use kernel::{Kernel, Launchable, Module};
pub use modules::DEFAULT_MODULES;
pub use null::NullBackend;
pub use overlap::Overlap;
pub use perpetua_ir::front::rust::GpuType;
pub use ptr::{DeviceMemory, DevicePtr, HostBytes, MemoryKind, Owner, PoolStats};
pub use select::{
    BackendEntry, OpenBackend, backends, open_backend, register_backend, select_backend, select_backend_async,
};
pub use signature::{BufferArg, KernelArg, Signature};
pub use source::{CompileOptions, KernelId, KernelSource, KernelSpec};
pub use span::Span;
pub use stream::{Event, Graph, Stream};
pub use value::{ArgType, ValueArg};
pub use way::Way;
#[cfg(feature = "wgpu")]
pub use wgpu::WgpuBackend;
