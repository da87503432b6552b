//! Memory in parts that lie on several devices, one behind the other, where each device reaches all of it. Must not know backends.

use std::ops::Range;

use perpetua_ir::front::rust::GpuType;

use crate::backend::GpuContext;
use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::layout;

/// Elements in as many parts as there are devices: the first part lies in the first device's memory, the second behind it in the second's, and so
/// on. Kernels of each of these devices reach all of them by one buffer, over the link between devices where they are another's (CUDA: peer
/// access), so atomic operations on them need the scope of the system.
///
/// Nothing orders the devices' accesses: work on two of them that meets in one place is ordered by waiting for one of them on the host, or by
/// atomic operations.
///
/// ```
/// use perpetua_device::{BackendKind, Device, Span};
/// let devices = [Device::new(BackendKind::Cpu, 0)?, Device::new(BackendKind::Cpu, 0)?];
/// let span = Span::<u32>::zeros(&devices, 100)?;
/// let (first, second) = (span.on(0)?, span.on(1)?);
/// assert!(span.part(0).len() >= 100);
/// first.slice(span.part(1).start..)?.slice(..1)?.write(&[7])?;
/// devices[0].default_stream().synchronize()?;
/// assert_eq!(second.slice(span.part(1))?.read()?[0], 7);
/// # Ok::<(), perpetua_device::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Span<T: GpuType> {
    views: Vec<Buffer<T>>,
    each: usize,
}

impl<T: GpuType> Span<T> {
    /// At least `least` elements on each device (a driver gives them in pages), all of them zero bytes.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where a device does not reach another one's memory, or on backends whose devices reach none but their own;
    /// [`Error::OutOfMemory`]; [`Error::InvalidState`] without a device.
    pub fn zeros(devices: &[Device], least: usize) -> Result<Span<T>> {
        layout::check_values::<T>(&vec![0; size_of::<T>()])?;
        let Some(first) = devices.first() else {
            return Err(Error::InvalidState {
                operation: "making memory that spans devices",
                cause: "there is no device",
                remedy: "name at least one",
            });
        };
        let contexts: Vec<&dyn GpuContext> = devices.iter().map(|device| &**device.context()).collect();
        let size = (size_of::<T>() as u64).max(1);
        let bytes = (least.max(1) as u64).checked_mul(size).ok_or(Error::Limit {
            what: "bytes in one buffer",
            found: u64::MAX,
            limit: first.info().limits.max_buffer_bytes,
            remedy: "use several buffers",
        })?;
        let (pieces, stride) = first.context().span(&contexts, bytes)?;
        let each = (stride / size) as usize;
        if !stride.is_multiple_of(size) {
            return Err(Error::InvalidState {
                operation: "making memory that spans devices",
                cause: "its pages hold no whole number of elements",
                remedy: "use elements whose size is a power of two",
            });
        }
        let views = pieces.into_iter().zip(devices);
        let span = Span {
            views: views
                .map(|(piece, device)| Buffer::from_ptr(piece, each * devices.len(), device.clone()))
                .collect(),
            each,
        };
        for (at, view) in span.views.iter().enumerate() {
            let part = view.slice(span.part(at))?.cast::<u8>()?;
            part.fill(0)?;
            part.device().default_stream().synchronize()?;
        }
        Ok(span)
    }

    /// All of the elements, as the device of this number has them.
    ///
    /// # Errors
    /// [`Error::InvalidState`] where there is no such device.
    pub fn on(&self, device: usize) -> Result<&Buffer<T>> {
        self.views.get(device).ok_or(Error::InvalidState {
            operation: "reaching memory that spans devices",
            cause: "it has no part on a device of this number",
            remedy: "count the devices from 0, in the order in which they were given",
        })
    }

    /// Which of the elements lie on the device of this number.
    pub fn part(&self, device: usize) -> Range<usize> {
        device * self.each..(device + 1) * self.each
    }

    /// How many elements lie on each device.
    pub fn each(&self) -> usize {
        self.each
    }
}
