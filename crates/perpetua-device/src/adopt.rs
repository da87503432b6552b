//! Memory and streams that somebody else owns, used here as they are. Must not know backends.

use perpetua_ir::front::rust::GpuType;

use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::ptr::{MemoryKind, Owner};
use crate::stream::Stream;

const OPERATION: &str = "adoption of memory";

impl Device {
    /// `len` elements at `address` as a buffer, without a copy: a host address on the CPU, a device address on CUDA (both
    /// as kernels see them: [`DevicePtr::address`](crate::DevicePtr::address)). `owner` keeps the memory: it is dropped when no
    /// handle to the buffer is left and submitted work no longer uses it, by whatever thread finds that; on an error at once.
    /// No pool ever has the memory, and no statistics count it. Where `len` is 0, nothing lies at the address, which may be
    /// any, null too; `owner` is dropped at once.
    ///
    /// ```
    /// use perpetua_device::{BackendKind, Device};
    /// let device = Device::new(BackendKind::Cpu, 0)?;
    /// let mut numbers = vec![1.0f32, 2.0, 3.0];
    /// let (address, len) = (numbers.as_mut_ptr().expose_provenance() as u64, numbers.len());
    /// // SAFETY: the vector's elements stay where they are and nobody touches them until the buffer drops the vector.
    /// let buffer = unsafe { device.adopt::<f32>(address, len, numbers)? };
    /// buffer.slice(1..)?.fill(5.0)?;
    /// assert_eq!(buffer.read()?, [1.0, 5.0, 5.0]);
    /// # Ok::<(), perpetua_device::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidState`] for an address that is null or that no memory of this length can begin at,
    /// [`Error::AddressAlignment`] when it is no multiple of the alignment of `T`, [`Error::Limit`] for more bytes than a buffer can
    /// have, [`Error::WrongDevice`] when the driver says that the memory is another device's, [`Error::Unsupported`]
    /// on backends whose kernels know no addresses.
    ///
    /// # Safety
    /// Until `owner` is dropped,
    /// - the memory is valid for reads and writes by the device (on the CPU: by any thread, through a pointer made of the
    ///   address, whose provenance is exposed), and initialised;
    /// - everybody else's accesses come before or after those of work submitted here, by a stream that both use or by waiting,
    ///   or race with them in ways that the device allows (on the CPU: relaxed atomic accesses of equal size; work
    ///   of a stream here that makes plain ones excludes only other streams of this device);
    /// - nobody makes references to it that such accesses would break.
    pub unsafe fn adopt<T: GpuType>(&self, address: u64, len: usize, owner: impl Owner) -> Result<Buffer<T>> {
        let limit = self.info().limits.max_buffer_bytes;
        let bytes = (len as u64).checked_mul(size_of::<T>() as u64);
        let bytes = bytes.filter(|bytes| *bytes <= limit).ok_or(Error::Limit {
            what: "bytes in one buffer",
            found: bytes.unwrap_or(u64::MAX),
            limit,
            remedy: "use several buffers",
        })?;
        if bytes == 0 {
            drop(owner);
            let ptr = self.context().allocate(0, MemoryKind::Device)?;
            return Ok(Buffer::from_ptr(ptr, len, self.clone()));
        }
        let align = align_of::<T>() as u64;
        if !address.is_multiple_of(align) {
            return Err(Error::AddressAlignment {
                operation: OPERATION,
                address,
                needed: align,
                element: std::any::type_name::<T>(),
            });
        }
        if address == 0 || address.checked_add(bytes).is_none() {
            return Err(Error::InvalidState {
                operation: OPERATION,
                cause: "no memory of this length lies at its address",
                remedy: "give the address of its first byte, as kernels see it",
            });
        }
        // SAFETY: the caller promises the same.
        let ptr = unsafe { self.context().adopt(address, bytes, Box::new(owner))? };
        Ok(Buffer::from_ptr(ptr, len, self.clone()))
    }

    /// A stream that the driver knows as `handle` (CUDA: a `CUstream` as a number; 0 is the legacy default stream), as a
    /// stream of this device: work submitted here and work that others submit to it run in order. It is never destroyed
    /// here; `owner` is dropped when no handle to the stream is left and what was submitted here has ended.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] when it is a stream of another context, [`Error::InvalidState`] for CUDA's per-thread default
    /// stream, which is a different one on each thread, [`Error::Unsupported`] on backends whose drivers have no
    /// streams.
    ///
    /// # Safety
    /// The handle is a stream of the driver's until `owner` is dropped, and nobody captures it into a graph while
    /// work is submitted to it here.
    pub unsafe fn adopt_stream(&self, handle: u64, owner: impl Owner) -> Result<Stream> {
        // SAFETY: the caller promises the same.
        let stream = unsafe { self.context().adopt_stream(handle, Box::new(owner))? };
        Ok(Stream::new(stream, self.clone()))
    }
}
