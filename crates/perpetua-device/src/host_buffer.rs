//! Typed buffers in page-locked host memory: pinned for fast copies, mapped for host and kernels at once. Must not know
//! backends.

use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use perpetua_ir::front::rust::GpuType;

use crate::backend::GpuEvent;
use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::layout;
use crate::ptr::{DevicePtr, MemoryKind};
use crate::signature::KernelArg;
use crate::stream::Stream;

impl Device {
    /// `values` in pinned host memory.
    pub fn pin<T: GpuType>(&self, values: &[T]) -> Result<PinnedBuffer<T>> {
        let ptr = self.allocate::<T>(values.len(), MemoryKind::Pinned)?;
        let base = host_base::<T>(&ptr, values.len())?;
        // SAFETY: `host_base` checked that there is room for `values.len()` aligned elements, and nobody else has the memory yet.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), base.as_ptr(), values.len()) };
        Ok(PinnedBuffer {
            ptr,
            base,
            len: values.len(),
            device: self.clone(),
        })
    }

    /// `len` elements of mapped host memory, all bytes zero. An error on devices without such memory
    /// ([`DeviceInfo::mapped_memory`](crate::DeviceInfo::mapped_memory)).
    pub fn mapped<T: GpuType>(&self, len: usize) -> Result<MappedBuffer<T>> {
        layout::check_values::<T>(&vec![0; size_of::<T>()])?;
        let ptr = self.allocate::<T>(len, MemoryKind::Mapped)?;
        let base = host_base::<T>(&ptr, len)?;
        // SAFETY: `host_base` checked that there is room for `len` elements, and nobody else has the memory yet.
        unsafe { std::ptr::write_bytes(base.as_ptr().cast::<u8>(), 0, len * size_of::<T>()) };
        Ok(MappedBuffer {
            buffer: Buffer::from_ptr(ptr, len, self.clone()),
            base,
        })
    }
}

impl<T: GpuType> MappedBuffer<T> {
    /// The same elements as another device's, of the same backend: its kernels reach them, too.
    ///
    /// ```
    /// use perpetua_device::{BackendKind, Device};
    /// let [first, second] = [Device::new(BackendKind::Cpu, 0)?, Device::new(BackendKind::Cpu, 0)?];
    /// let here = first.mapped::<u32>(4)?;
    /// let there = here.on(&second)?;
    /// here.store(2, 9)?;
    /// assert_eq!(there.load(2)?, 9);
    /// # Ok::<(), perpetua_device::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`] on backends whose devices share no host memory, [`Error::WrongDevice`] for a device of another backend.
    pub fn on(&self, device: &Device) -> Result<MappedBuffer<T>> {
        let ptr = device.context().map_again(self.buffer.ptr())?;
        let base = host_base::<T>(&ptr, self.buffer.len())?;
        Ok(MappedBuffer {
            buffer: Buffer::from_ptr(ptr, self.buffer.len(), device.clone()),
            base,
        })
    }
}

// Where `len` elements of `T` lie for the host. The trait `DeviceMemory` promises alignment and validity; room is checked.
fn host_base<T>(ptr: &DevicePtr, len: usize) -> Result<NonNull<T>> {
    let base = ptr.host_ptr().ok_or(Error::InvalidState {
        operation: "allocation of host memory",
        cause: "the backend gave memory that the host does not reach",
        remedy: "use device memory on this backend",
    })?;
    let fits = ptr.len() >= (len * size_of::<T>()) as u64 && base.cast::<T>().is_aligned();
    if !fits {
        return Err(Error::AddressAlignment {
            operation: "allocation of host memory",
            address: base.addr().get() as u64,
            needed: align_of::<T>() as u64,
            element: std::any::type_name::<T>(),
        });
    }
    Ok(base.cast())
}

/// Elements in page-locked host memory: a slice to the host, and the fast end of a copy.
pub struct PinnedBuffer<T> {
    ptr: DevicePtr,
    base: NonNull<T>,
    len: usize,
    device: Device,
}

// SAFETY: it owns plain values (`GpuType`s are Send and Sync); the pointer is into memory that `ptr` keeps alive, and only
// `&mut self` gives write access.
#[cfg(not(target_arch = "wasm32"))]
unsafe impl<T: GpuType> Send for PinnedBuffer<T> {}
// SAFETY: as above: `&PinnedBuffer` only reads.
#[cfg(not(target_arch = "wasm32"))]
unsafe impl<T: GpuType> Sync for PinnedBuffer<T> {}

impl<T: GpuType> PinnedBuffer<T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements, to change them. While a copy from here is in flight this is an error: synchronise its stream first.
    pub fn as_mut_slice(&mut self) -> Result<&mut [T]> {
        if !self.ptr.is_unique() {
            return Err(Error::InvalidState {
                operation: "write to a pinned buffer",
                cause: "a copy from it is in flight",
                remedy: "synchronise the stream of the copy first",
            });
        }
        // SAFETY: `base` points to `len` initialised, aligned elements (`host_base`); the memory is unique, so no copy reads
        // it, and `&mut self` excludes other references on the host.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) })
    }

    /// Copies the elements to `buffer`, of equal length, on `stream`, without copying them on the host first.
    pub fn copy_to(&self, stream: &Stream, buffer: &Buffer<T>) -> Result<()> {
        stream.inner().copy(&self.ptr, buffer.ptr())
    }

    /// Copies `buffer`, of equal length, here on `stream`. The buffer comes back from [`PinnedRead::wait`].
    pub fn read_from(self, stream: &Stream, buffer: &Buffer<T>) -> Result<PinnedRead<T>> {
        if self.device.id() != stream.device().id() {
            return Err(Error::WrongDevice {
                operation: "read into a pinned buffer",
                subject: "the pinned buffer".into(),
            });
        }
        // An earlier copy from here may still be in flight: on another stream it would race with this one.
        let mut unique = self;
        unique.as_mut_slice()?;
        stream.inner().copy(buffer.ptr(), &unique.ptr)?;
        Ok(PinnedRead {
            done: stream.inner().record()?,
            stream: stream.clone(),
            buffer: unique,
        })
    }
}

impl<T: GpuType> Deref for PinnedBuffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `base` points to `len` initialised, aligned elements (`host_base`) that are valid values (`pin` copied
        // values, `PinnedRead` checks what it brings); copies in flight only read, for `read_from` takes the buffer away.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

impl<T: GpuType + fmt::Debug> fmt::Debug for PinnedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A copy into a [`PinnedBuffer`] in flight.
pub struct PinnedRead<T> {
    done: Arc<dyn GpuEvent>,
    stream: Stream,
    buffer: PinnedBuffer<T>,
}

impl<T: GpuType> PinnedRead<T> {
    /// Whether the copy has ended.
    pub fn is_complete(&self) -> Result<bool> {
        self.done.is_complete()
    }

    /// Waits for the copy, not for later work of the stream. A fault of the work before it is an error.
    pub fn wait(self) -> Result<PinnedBuffer<T>> {
        self.done.synchronize_blocking()?;
        self.finish()
    }

    /// The same without blocking.
    pub async fn wait_async(self) -> Result<PinnedBuffer<T>> {
        self.done.synchronize().await?;
        self.finish()
    }

    fn finish(self) -> Result<PinnedBuffer<T>> {
        self.stream.inner().take_fault()?;
        let bytes = self.buffer.len * size_of::<T>();
        // SAFETY: `host_base` checked that `base` has room for `len` elements, the memory is initialised
        // (`DeviceMemory::host_ptr`), and the copy into it has ended.
        let bytes = unsafe { std::slice::from_raw_parts(self.buffer.base.as_ptr().cast::<u8>(), bytes) };
        layout::check_values::<T>(bytes)?;
        Ok(self.buffer)
    }
}

impl<T> fmt::Debug for PinnedRead<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read of {} elements in flight", self.buffer.len)
    }
}

/// Elements that host and kernels reach at the same time. It is a [`Buffer`] too (by `Deref`).
///
/// Single loads and stores of naturally aligned 1-, 2-, 4- and 8-byte elements are not torn; order between host and kernel is what
/// atomics with system scope give ([`MappedBuffer::atomics`]). Cheap to clone.
pub struct MappedBuffer<T> {
    buffer: Buffer<T>,
    base: NonNull<T>,
}

// SAFETY: a handle to memory that all accesses reach through atomics only; the `Buffer` keeps it alive.
#[cfg(not(target_arch = "wasm32"))]
unsafe impl<T: GpuType> Send for MappedBuffer<T> {}
// SAFETY: as above.
#[cfg(not(target_arch = "wasm32"))]
unsafe impl<T: GpuType> Sync for MappedBuffer<T> {}

impl<T: GpuType> MappedBuffer<T> {
    fn element(&self, index: usize) -> Result<*mut u8> {
        if index >= self.buffer.len() {
            return Err(Error::OutOfRange {
                operation: "access to a mapped buffer",
                start: index as u64,
                end: index as u64 + 1,
                len: self.buffer.len() as u64,
                unit: "elements",
            });
        }
        // SAFETY: the index is below the number of elements that `base` has room for (`host_base`).
        Ok(unsafe { self.base.as_ptr().add(index) }.cast())
    }

    /// Reads one element.
    pub fn load(&self, index: usize) -> Result<T> {
        let from = self.element(index)?;
        let value = layout::collect::<T>(1, |bytes| {
            // SAFETY: `from` points to one element, and `bytes` is as long.
            unsafe { racing_load(from, bytes) };
            Ok(())
        })?;
        value.first().copied().ok_or(Error::InvalidState {
            operation: "access to a mapped buffer",
            cause: "the element has no bytes",
            remedy: "use a type of at least one byte",
        })
    }

    /// Writes one element.
    pub fn store(&self, index: usize, value: T) -> Result<()> {
        let to = self.element(index)?;
        // SAFETY: `to` points to one element, and the value's bytes are as long.
        layout::with_bytes(&[value], |bytes| unsafe { racing_store(bytes, to) });
        Ok(())
    }

    /// The host's address of the first element, for protocols that order their own accesses.
    pub fn host_ptr(&self) -> NonNull<T> {
        self.base
    }
}

impl MappedBuffer<u32> {
    /// The elements as atomics: what kernels access with atomics of system scope.
    pub fn atomics(&self) -> &[AtomicU32] {
        // SAFETY: `len` aligned, initialised words (`host_base`); an AtomicU32 has a u32's layout, and every other access
        // from the host is atomic too.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().cast(), self.buffer.len()) }
    }
}

impl MappedBuffer<u64> {
    /// The elements as atomics: what kernels access with atomics of system scope.
    pub fn atomics(&self) -> &[AtomicU64] {
        // SAFETY: as for `MappedBuffer<u32>`, with 64-bit words.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().cast(), self.buffer.len()) }
    }
}

// Chooses the widest word that address and length are multiples of, and does `$each` for each word.
macro_rules! by_words {
    ($address:expr, $len:expr, $word:ident, $atomic:ident => $each:expr) => {{
        let at = $address as usize | $len;
        if at.is_multiple_of(8) {
            type $word = u64;
            type $atomic = AtomicU64;
            $each
        } else if at.is_multiple_of(4) {
            type $word = u32;
            type $atomic = AtomicU32;
            $each
        } else if at.is_multiple_of(2) {
            type $word = u16;
            type $atomic = AtomicU16;
            $each
        } else {
            type $word = u8;
            type $atomic = AtomicU8;
            $each
        }
    }};
}

/// # Safety
/// `from` points to `bytes.len()` readable bytes, which others access atomically only.
unsafe fn racing_load(from: *mut u8, bytes: &mut [u8]) {
    by_words!(from, bytes.len(), Word, Atomic => {
        for (i, out) in bytes.chunks_exact_mut(size_of::<Word>()).enumerate() {
            // SAFETY: inside the bytes that the caller vouches for; address and length are multiples of the word's size.
            let word = unsafe { &*from.cast::<Atomic>().add(i) };
            // Relaxed: orders nothing; `atomics` is for protocols.
            out.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
    });
}

/// # Safety
/// `to` points to `bytes.len()` writable bytes, which others access atomically only.
unsafe fn racing_store(bytes: &[u8], to: *mut u8) {
    by_words!(to, bytes.len(), Word, Atomic => {
        for (i, from) in bytes.chunks_exact(size_of::<Word>()).enumerate() {
            let mut word = [0; size_of::<Word>()];
            word.copy_from_slice(from);
            // SAFETY: inside the bytes that the caller vouches for; address and length are multiples of the word's size.
            let at = unsafe { &*to.cast::<Atomic>().add(i) };
            // Relaxed: orders nothing; `atomics` is for protocols.
            at.store(Word::from_ne_bytes(word), Ordering::Relaxed);
        }
    });
}

impl<T> Clone for MappedBuffer<T> {
    fn clone(&self) -> Self {
        MappedBuffer {
            buffer: self.buffer.clone(),
            base: self.base,
        }
    }
}

impl<T> Deref for MappedBuffer<T> {
    type Target = Buffer<T>;
    fn deref(&self) -> &Buffer<T> {
        &self.buffer
    }
}

impl<T: GpuType> fmt::Debug for MappedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mapped {:?}", self.buffer)
    }
}

impl<'a, T: GpuType> From<&'a MappedBuffer<T>> for KernelArg<'a> {
    fn from(buffer: &'a MappedBuffer<T>) -> Self {
        buffer.buffer.arg()
    }
}
