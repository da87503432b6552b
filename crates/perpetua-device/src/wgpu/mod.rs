//! Vulkan, Metal, DX12, GL and WebGPU through wgpu.
//!
//! `device` finds and opens adapters, `memory` pools buffers, `stream` records work and submits it, `transfer` moves bytes
//! at any offset, `compile` makes pipelines, `launch` binds and dispatches, `probe` measures the device's arithmetic.
//!
//! One queue serves all streams: what is submitted runs in order of submission. A stream records commands until
//! something needs them done (a read-back, an event, a full argument block) and submits them at once.

mod compile;
mod device;
mod launch;
mod memory;
mod probe;
mod stream;
mod transfer;

pub use device::WgpuBackend;
