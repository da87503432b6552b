//! Sharing a wgpu device with a program that draws: opening ours on its device, and reaching a buffer from its shaders.
//! Whoever submits to the same queue sees the work in order, so a picture needs no copy and no waiting. Must not know
//! windows.

use super::device::Context;
use super::memory::Memory;
use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::ptr::DevicePtr;
use perpetua_ir::front::rust::GpuType;

/// What to ask of an adapter so that [`adopt`] finds all that kernels can use.
pub fn device_descriptor(adapter: &wgpu::Adapter) -> wgpu::DeviceDescriptor<'static> {
    wgpu::DeviceDescriptor {
        label: Some("perpetua"),
        required_features: adapter.features() & super::device::wanted(),
        required_limits: adapter.limits(),
        memory_hints: wgpu::MemoryHints::Performance,
        ..wgpu::DeviceDescriptor::default()
    }
}

/// Whether an adapter can run kernels. A browser without WebGPU has one that only draws.
pub fn can_compute(adapter: &wgpu::Adapter) -> bool {
    let flags = adapter.get_downlevel_capabilities().flags;
    flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS)
}

/// Opens a device on one that somebody else has opened, best with [`device_descriptor`]. Its callbacks for loss and for
/// errors become ours.
///
/// # Errors
/// [`Error::Unsupported`] when the adapter only draws; what wgpu says.
pub async fn adopt(adapter: &wgpu::Adapter, device: &wgpu::Device, queue: &wgpu::Queue) -> Result<Device> {
    if !can_compute(adapter) {
        return Err(Error::Unsupported {
            backend: crate::BackendKind::Wgpu,
            operation: "run kernels on an adapter without compute shaders",
            remedy: "choose another backend",
        });
    }
    let context = Context::adopt(adapter, 0, device.clone(), queue.clone()).await?;
    Ok(Device::from_context(Box::new(context)))
}

/// The wgpu buffer behind device memory and the byte in it where the memory begins; `None` when it is another backend's.
///
/// Work that a stream has recorded and not submitted ([`Stream::flush`](crate::Stream::flush)) is not in the buffer yet.
pub fn buffer(ptr: &DevicePtr) -> Option<(&wgpu::Buffer, u64)> {
    ptr.downcast::<Memory>()
        .map(|memory| (&memory.buffer, ptr.offset()))
}

/// The elements of a wgpu buffer as a buffer of a device that was [adopted](adopt) from the same wgpu device, without a copy.
/// It was created for `STORAGE`, `COPY_SRC` and `COPY_DST`, and is not mapped while submitted work uses it. It keeps the
/// wgpu buffer alive, and gives it to no pool.
///
/// # Errors
/// [`Error::WrongDevice`] when the device is another backend's or the buffer another device's, [`Error::InvalidState`] for a buffer without these usages,
/// [`Error::Alignment`] when its size is no multiple of 4 or of the element's, [`Error::Limit`] when it is too large to
/// be bound.
///
/// # Panics
/// wgpu may panic for a buffer of another instance, which it cannot tell from its own.
pub fn adopt_buffer<T: GpuType>(device: &Device, buffer: &wgpu::Buffer) -> Result<Buffer<T>> {
    let context = device.context().as_any().downcast_ref::<Context>();
    let context = context.ok_or_else(|| Error::WrongDevice {
        operation: "adoption of a wgpu buffer",
        subject: "the device".into(),
    })?;
    let ptr = context.adopt_buffer(buffer.clone())?;
    let len = ptr.len() as usize;
    Buffer::<u8>::from_ptr(ptr, len, device.clone()).cast()
}

/// Bytes of buffers that a device has copied to the host so far; `None` when it is another backend's.
pub fn bytes_read(device: &Device) -> Option<u64> {
    let context = device.context().as_any().downcast_ref::<Context>()?;
    Some(context.shared().bytes_read())
}
