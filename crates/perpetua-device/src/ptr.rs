//! Device memory as backends hand it out: reference-counted allocations and pointers into them. Must not know
//! element types ([`Buffer`](crate::Buffer) does) or any backend.

use std::any::Any;
use std::fmt;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::future::{MaybeSend, MaybeSync};

/// Names a context (an opened device) within this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContextId(u64);

impl ContextId {
    /// A name that no other context of this process has.
    pub fn unique() -> ContextId {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: only uniqueness matters, nothing else is published through the counter.
        ContextId(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// As a number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Where memory lives and who reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// The device's memory: kernels and copies reach it, the host does not.
    Device,
    /// Page-locked, cacheable host memory: the host and copies reach it, at the bus's full speed. Kernels do not.
    Pinned,
    /// Page-locked, cacheable host memory that host and kernels reach at the same time.
    Mapped,
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MemoryKind::Device => "device",
            MemoryKind::Pinned => "pinned",
            MemoryKind::Mapped => "mapped",
        })
    }
}

/// One allocation, implemented by each backend.
///
/// Dropping it gives the memory back to the context's pool, also while submitted work still uses it: the backend
/// reuses or releases it only after that work (stream-ordered), and the drop does not block.
///
/// # Safety
/// When [`DeviceMemory::host_ptr`] is `Some`, it points to [`DeviceMemory::bytes`] initialised bytes, aligned to at
/// least 64, that stay valid, and do not move, until the value is dropped.
pub unsafe trait DeviceMemory: MaybeSend + MaybeSync + 'static {
    /// For the backend to find its own type again.
    fn as_any(&self) -> &dyn Any;
    /// The context it belongs to.
    fn context_id(&self) -> ContextId;
    /// Where it lives.
    fn kind(&self) -> MemoryKind;
    /// Usable size in bytes: at least what was asked for.
    fn bytes(&self) -> u64;
    /// Address in kernels' address space, where devices have one (CUDA, CPU).
    fn address(&self) -> Option<u64>;
    /// Whether `other` is the same memory under another handle. Asked where memory has no address.
    fn is_same(&self, _other: &dyn DeviceMemory) -> bool {
        false
    }
    /// Address in the host's address space, for memory that the host reaches.
    fn host_ptr(&self) -> Option<NonNull<u8>>;
}

/// Who owns memory or a stream that a device has [adopted](crate::Device::adopt): dropping it gives that back.
pub trait Owner: MaybeSend + MaybeSync + 'static {}

impl<T: MaybeSend + MaybeSync + 'static> Owner for T {}

/// A run of bytes in device memory, which it keeps alive. Cheap to clone.
#[derive(Clone)]
pub struct DevicePtr {
    memory: Arc<dyn DeviceMemory>,
    offset: u64,
    len: u64,
}

impl DevicePtr {
    /// The first `len` bytes of an allocation; all of it when it is smaller.
    pub fn new(memory: Arc<dyn DeviceMemory>, len: u64) -> DevicePtr {
        let len = len.min(memory.bytes());
        DevicePtr {
            memory,
            offset: 0,
            len,
        }
    }

    /// The allocation.
    pub fn memory(&self) -> &dyn DeviceMemory {
        &*self.memory
    }

    /// The allocation as a backend's own type; `None` when it is another backend's.
    pub fn downcast<M: DeviceMemory>(&self) -> Option<&M> {
        self.memory.as_any().downcast_ref()
    }

    /// Byte offset in the allocation.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the memory lives.
    pub fn kind(&self) -> MemoryKind {
        self.memory.kind()
    }

    /// The context that the memory belongs to.
    pub fn context_id(&self) -> ContextId {
        self.memory.context_id()
    }

    /// Address of the first byte in kernels' address space, where devices have one.
    pub fn address(&self) -> Option<u64> {
        self.memory.address().map(|a| a + self.offset)
    }

    /// Address of the first byte for the host, if it reaches this memory.
    pub fn host_ptr(&self) -> Option<NonNull<u8>> {
        let base = self.memory.host_ptr()?;
        // SAFETY: `offset` is at most the allocation's size (`new` starts at 0 and `slice` checks its range against
        // `len`, which `new` cut to the size), so the result stays inside the allocation or one past its end.
        Some(unsafe { base.add(self.offset as usize) })
    }

    /// The bytes `range` of these. Fails when the range is not inside.
    pub fn slice(&self, range: Range<u64>) -> Result<DevicePtr> {
        if range.start > range.end || range.end > self.len {
            return Err(Error::OutOfRange {
                operation: "slice of a buffer",
                start: range.start,
                end: range.end,
                len: self.len,
                unit: "bytes",
            });
        }
        Ok(DevicePtr {
            memory: Arc::clone(&self.memory),
            offset: self.offset + range.start,
            len: range.end - range.start,
        })
    }

    /// What the alignment of the first byte can be told from: its address, or, where devices have none, its offset in the
    /// allocation, which is aligned to 256.
    pub fn place(&self) -> u64 {
        self.address().unwrap_or(self.offset)
    }

    /// Whether the two share bytes. Memory that was adopted twice, or that is part of other memory, is found by its address.
    pub fn overlaps(&self, other: &DevicePtr) -> bool {
        let Some((own, others)) = self.places(other) else {
            return false;
        };
        self.len != 0 && other.len != 0 && own < others + other.len && others < own + self.len
    }

    /// Whether both begin at the same byte.
    pub fn starts_with(&self, other: &DevicePtr) -> bool {
        self.places(other).is_some_and(|(own, others)| own == others)
    }

    /// Where the two begin, counted from one place; `None` where they lie in different memory. Two allocations may be one
    /// memory that was adopted twice: then their addresses tell.
    fn places(&self, other: &DevicePtr) -> Option<(u64, u64)> {
        if !Arc::ptr_eq(&self.memory, &other.memory) {
            if let (Some(own), Some(others)) = (self.address(), other.address()) {
                return Some((own, others));
            }
            if !self.memory.is_same(&*other.memory) {
                return None;
            }
        }
        Some((self.offset, other.offset))
    }

    /// Whether nobody else holds the allocation: no clone, no sub-buffer, no submitted copy.
    pub fn is_unique(&mut self) -> bool {
        Arc::get_mut(&mut self.memory).is_some()
    }
}

impl fmt::Debug for DevicePtr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of {} memory", self.len, self.kind())?;
        if self.offset != 0 {
            write!(f, " at offset {}", self.offset)?;
        }
        Ok(())
    }
}

/// Bytes that came back from a device. The memory behind them (often page-locked) returns to its pool on drop.
pub struct HostBytes(Box<dyn HostBytesOwner>);

/// What keeps [`HostBytes`] alive: a staging buffer, a mapped view, a `Vec<u8>`.
pub trait HostBytesOwner: MaybeSend + 'static {
    /// The bytes.
    fn bytes(&self) -> &[u8];
}

impl HostBytesOwner for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl HostBytes {
    /// Wraps what holds the bytes.
    pub fn new(owner: impl HostBytesOwner) -> HostBytes {
        HostBytes(Box::new(owner))
    }
}

impl Deref for HostBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl fmt::Debug for HostBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

/// What a context's pool of one kind of memory has done so far. Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PoolStats {
    /// Held by live buffers.
    pub in_use: u64,
    /// Taken from the driver: in use, and kept for reuse.
    pub reserved: u64,
    /// The largest `in_use` so far.
    pub peak: u64,
    /// Allocations asked for so far.
    pub allocations: u64,
    /// Allocations served without asking the driver.
    pub hits: u64,
}
