//! The device layer: memory, streams, kernels and launches on any backend, chosen at run time.
//!
//! In the order in which a program meets them: [`select`] finds a backend, [`Device`] is what a program holds,
//! [`Buffer`] its memory, [`Stream`] its order of work, [`Kernel`] what it launches with [`args!`], [`Error`] what
//! goes wrong. Below them stands the contract that every backend fulfils ([`backend`]), and the backends: [`null`]
//! proves the contract without hardware, `cpu` runs kernels on the host, `cuda` and `wgpu` on GPUs.
//!
//! The contract knows no backend, no front end and no tensor; nothing outside [`select`] names a backend by its type.

pub mod error;
pub mod future;

pub mod dim;
pub mod info;
pub mod layout;

pub mod backend;
pub mod native;
pub mod ptr;
pub mod signature;
pub mod source;

pub mod fault;
pub mod residency;

pub use backend::{CompiledKernel, GpuBackend, GpuContext, GpuEvent, GpuGraph, GpuStream, KernelFunction};
pub use dim::{Dim3, LaunchConfig};
pub use error::{Error, Result};
pub use future::{BoxFuture, MaybeSend, MaybeSync};
pub use info::{AdapterType, BackendKind, DeviceInfo, DeviceLimits, MemoryInfo, NumericProbe};
pub use perpetua_ir::front::rust::GpuType;
pub use ptr::{DeviceMemory, DevicePtr, HostBytes, MemoryKind, PoolStats};
pub use signature::{BufferArg, KernelArg, Signature, ValueArg};
pub use source::{CompileOptions, KernelId, KernelSource, KernelSpec};
