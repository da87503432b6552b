//! Typed buffers in device memory. Must not know backends.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use perpetua_ir::front::rust::GpuType;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::future::BoxFuture;
use crate::layout;
use crate::ptr::DevicePtr;
use crate::signature::{BufferArg, KernelArg};
use crate::value::ArgType;

/// Elements of `T` in device memory, or a part of such. Cheap to clone: clones and parts are handles to the same memory,
/// which is given back when the last one is dropped, safely also while work in flight uses it.
///
/// The methods here go to the device's default stream; [`Stream`](crate::Stream) has the same for others.
///
/// ```
/// use perpetua_device::{BackendKind, Device};
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let x = device.zeros::<u32>(6)?;
/// let middle = x.slice(2..4)?; // the same memory
/// middle.fill(7)?;
/// x.slice(..2)?.write(&[1, 2])?;
/// assert_eq!(x.read()?, [1, 2, 7, 7, 0, 0]);
/// # Ok::<(), perpetua_device::Error>(())
/// ```
pub struct Buffer<T> {
    ptr: DevicePtr,
    len: usize,
    device: Device,
    element: PhantomData<fn(T) -> T>,
}

impl<T: GpuType> Buffer<T> {
    pub(crate) fn from_ptr(ptr: DevicePtr, len: usize, device: Device) -> Buffer<T> {
        Buffer {
            ptr,
            len,
            device,
            element: PhantomData,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.ptr.len()
    }

    /// The memory.
    pub fn ptr(&self) -> &DevicePtr {
        &self.ptr
    }

    /// The device that it lives on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The elements `range` of these: a handle to the same memory.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Buffer<T>> {
        let (start, end) = resolve(range, self.len)?;
        let size = size_of::<T>() as u64;
        let ptr = self.ptr.slice(start as u64 * size..end as u64 * size)?;
        Ok(Buffer::from_ptr(ptr, end - start, self.device.clone()))
    }

    /// The same bytes as elements of another type, whose every bit pattern is a value. Length and position must fit it.
    pub fn cast<U: GpuType>(&self) -> Result<Buffer<U>> {
        let len = elements_in::<U>(&self.ptr)? as usize;
        Ok(Buffer::from_ptr(self.ptr.clone(), len, self.device.clone()))
    }

    /// Copies `values` here, of equal length. They have been read when this returns.
    pub fn write(&self, values: &[T]) -> Result<()> {
        let stream = self.device.context().default_stream();
        layout::with_bytes(values, |bytes| stream.copy_to_device(bytes, &self.ptr))
    }

    /// Waits for the content.
    pub fn read(&self) -> Result<Vec<T>> {
        self.device.default_stream().read(self)
    }

    /// The same without blocking; the copy is submitted by this call.
    pub fn read_async(&self) -> BoxFuture<'static, Result<Vec<T>>> {
        self.device.default_stream().read_async(self)
    }

    /// Sets every element.
    pub fn fill(&self, value: T) -> Result<()> {
        self.device.default_stream().fill(self, value)
    }

    /// Copies `source` here, of equal length.
    pub fn copy_from(&self, source: &Buffer<T>) -> Result<()> {
        self.device.default_stream().copy(source, self)
    }

    /// As an argument of a launch.
    pub fn arg(&self) -> KernelArg<'_> {
        KernelArg::Buffer(BufferArg {
            ptr: &self.ptr,
            len: self.len as u64,
            element: ArgType::of::<T>(),
        })
    }
}

fn resolve(range: impl RangeBounds<usize>, len: usize) -> Result<(usize, usize)> {
    let start = match range.start_bound() {
        Bound::Included(s) => *s,
        Bound::Excluded(s) => s.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(e) => e.saturating_add(1),
        Bound::Excluded(e) => *e,
        Bound::Unbounded => len,
    };
    if start > end || end > len {
        return Err(Error::OutOfRange {
            operation: "slice of a buffer",
            start: start as u64,
            end: end as u64,
            len: len as u64,
            unit: "elements",
        });
    }
    Ok((start, end))
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Buffer<T> {
        Buffer {
            ptr: self.ptr.clone(),
            len: self.len,
            device: self.device.clone(),
            element: PhantomData,
        }
    }
}

impl<T: GpuType> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}; {}] on {:?}", T::describe(), self.len, self.device)
    }
}

/// How many elements of a type memory holds whose every bit pattern is one. Length and position must fit it.
pub(crate) fn elements_in<U: GpuType>(ptr: &DevicePtr) -> Result<u64> {
    let size = size_of::<U>().max(1) as u64;
    let count = whole_elements_in::<U>(ptr)?;
    match count * size == ptr.len() {
        true => Ok(count),
        false => Err(unfit("its end, counted from its start,", ptr.len(), size)),
    }
}

/// The same of memory behind whose last whole element there may be a part of one. Its position must fit.
pub(crate) fn whole_elements_in<U: GpuType>(ptr: &DevicePtr) -> Result<u64> {
    if !U::describe().any_bits() {
        return Err(Error::InvalidState {
            operation: "cast of a buffer",
            cause: "not every bit pattern is a value of the new type",
            remedy: "cast to its integer type",
        });
    }
    if !ptr.place().is_multiple_of(align_of::<U>() as u64) {
        return Err(unfit("its start", ptr.place(), align_of::<U>() as u64));
    }
    Ok(ptr.len() / size_of::<U>().max(1) as u64)
}

fn unfit(subject: &str, found: u64, needed: u64) -> Error {
    Error::Alignment {
        operation: "cast of a buffer",
        subject: subject.to_owned(),
        found,
        needed,
    }
}

impl<'a, T: GpuType> From<&'a Buffer<T>> for KernelArg<'a> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        buffer.arg()
    }
}

impl<'a, T: GpuType> From<&'a mut Buffer<T>> for KernelArg<'a> {
    fn from(buffer: &'a mut Buffer<T>) -> Self {
        buffer.arg()
    }
}
