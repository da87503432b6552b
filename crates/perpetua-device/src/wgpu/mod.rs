//! Vulkan, Metal, DX12, GL and WebGPU through wgpu.
//!
//! `device` finds and opens adapters, `shared` is what everything of one device shares, `memory` pools buffers, `recording`
//! gathers work, `core` submits it and reads back, `stream` and `event` are what the contract asks for, `signal` lets
//! futures wait, `transfer` moves bytes at any offset, `compile` makes pipelines, `launch` binds and dispatches,
//! `probe` measures the device's arithmetic, `interop` shares a device with a program that draws, `vulkan` asks a driver past wgpu.
//!
//! One queue serves all streams: what is submitted runs in order of submission. A stream records commands until
//! something needs them done (a read-back, an event, a full argument block) and submits them at once.

mod compile;
mod core;
mod device;
mod event;
pub mod interop;
mod kept;
mod launch;
mod memory;
mod probe;
mod recording;
mod shared;
mod signal;
mod stream;
mod transfer;
mod vulkan;

use crate::backend::GpuBackend;
use crate::info::BackendKind;
use crate::select::BackendEntry;

pub use device::WgpuBackend;

/// Its place in the choice: behind the APIs of one vendor.
pub(crate) const ENTRY: BackendEntry = BackendEntry {
    kind: BackendKind::Wgpu,
    order: Some(30),
    emulates: true,
    open: |_| {
        Box::pin(async {
            let backend: Box<dyn GpuBackend> = Box::new(WgpuBackend::new().await?);
            Ok(backend)
        })
    },
};
