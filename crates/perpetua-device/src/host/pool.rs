//! Memory of the host behind [`DeviceMemory`], and its pool: what the CPU and null backends allocate, and what GPU backends
//! without page-locked memory of their own use for it. Must not know any backend.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::any::Any;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::error::{Error, Result};
use crate::info::{BackendKind, MemoryInfo};
use crate::ptr::{ContextId, DeviceMemory, DevicePtr, MemoryKind, Owner, PoolStats};

const ALIGN: usize = 256;

/// Unused memory that a pool keeps without being asked to trim.
const KEEP: u64 = 1 << 30;

/// Bytes from which on it is asked whether there are as many.
const LARGE: u64 = 1 << 30;

// A block from the allocator: `layout.size()` initialised bytes at `ptr`, owned.
struct Block {
    ptr: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a block is owned memory; the pointer may be used from any thread. Accesses go through raw pointers whose users
// state their own case.
unsafe impl Send for Block {}
// SAFETY: as above; a shared block only gives its address.
unsafe impl Sync for Block {}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `ptr` came from `alloc_zeroed` with this layout (`HostPool::allocate`) and is freed only here.
        unsafe { dealloc(self.ptr.as_ptr(), self.layout) };
    }
}

/// A pool of host memory in size classes. Memory returns to it when its last user drops it; a backend whose streams hold
/// [`DevicePtr`]s until work has ended therefore gets stream-ordered reuse.
#[derive(Clone)]
pub struct HostPool(Arc<Inner>);

struct Inner {
    context: ContextId,
    backend: BackendKind,
    kind: MemoryKind,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    stats: PoolStats,
    // Unused blocks by size.
    idle: BTreeMap<usize, Vec<Block>>,
}

impl State {
    fn trim(&mut self, keep: u64) {
        while self.stats.reserved - self.stats.in_use > keep {
            // The largest first: fewest calls.
            let Some(mut entry) = self.idle.last_entry() else {
                return;
            };
            match entry.get_mut().pop() {
                Some(block) => self.stats.reserved -= block.layout.size() as u64,
                None => drop(entry.remove()),
            }
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl HostPool {
    /// An empty pool of a context.
    pub fn new(context: ContextId, backend: BackendKind, kind: MemoryKind) -> HostPool {
        HostPool(Arc::new(Inner {
            context,
            backend,
            kind,
            state: Mutex::default(),
        }))
    }

    /// Takes `bytes` bytes, initialised, aligned to 256.
    pub fn allocate(&self, bytes: u64) -> Result<DevicePtr> {
        let exhausted = || {
            let MemoryInfo { free, total } = memory_info();
            Error::OutOfMemory {
                backend: self.0.backend,
                memory: self.0.kind,
                requested: bytes,
                free,
                total,
            }
        };
        let size = size_class(bytes).ok_or_else(exhausted)?;
        let layout = Layout::from_size_align(size, ALIGN).map_err(|_| exhausted())?;
        let reused = {
            let mut state = self.0.lock();
            state.stats.allocations += 1;
            let block = state.idle.get_mut(&size).and_then(Vec::pop);
            state.stats.hits += u64::from(block.is_some());
            block
        };
        let fresh = reused.is_none();
        let block = match reused {
            Some(block) => block,
            None => {
                // Systems give more than they have, and end who uses it.
                if bytes >= LARGE && memory_info().free.is_some_and(|free| bytes > free) {
                    return Err(exhausted());
                }
                // SAFETY: `size_class` gives at least 256, so the layout's size is not zero.
                let ptr = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(exhausted)?;
                Block { ptr, layout }
            }
        };
        let mut state = self.0.lock();
        state.stats.reserved += if fresh { size as u64 } else { 0 };
        state.stats.in_use += size as u64;
        state.stats.peak = state.stats.peak.max(state.stats.in_use);
        drop(state);
        let memory = HostMemory {
            at: block.ptr,
            held: Held::Pooled(Some(block)),
            pool: Arc::clone(&self.0),
            bytes: size as u64,
        };
        Ok(DevicePtr::new(Arc::new(memory), bytes))
    }

    /// Takes memory of somebody else's, which never comes into the pool: see
    /// [`GpuContext::adopt`](crate::backend::GpuContext::adopt).
    ///
    /// # Safety
    /// As [`Device::adopt`](crate::Device::adopt).
    pub unsafe fn adopt(&self, address: u64, bytes: u64, owner: Box<dyn Owner>) -> Result<DevicePtr> {
        let refused = |cause| Error::InvalidState {
            operation: "adoption of memory",
            cause,
            remedy: "give the address of its first byte in this process",
        };
        let place = usize::try_from(address).map_err(|_| refused("the address is not the host's"))?;
        let at = NonNull::new(std::ptr::with_exposed_provenance_mut(place))
            .ok_or_else(|| refused("the address is null"))?;
        let memory = HostMemory {
            at,
            held: Held::Adopted(owner),
            pool: Arc::clone(&self.0),
            bytes,
        };
        Ok(DevicePtr::new(Arc::new(memory), bytes))
    }

    /// Memory of another context's pool as this one's, without a copy; the kinds may differ.
    pub fn share(&self, memory: &DevicePtr) -> Result<DevicePtr> {
        let (whole, len) = (memory.memory(), memory.len());
        let Some(at) = whole.as_any().downcast_ref::<HostMemory>().map(HostMemory::raw) else {
            return Err(Error::WrongDevice {
                operation: "sharing host memory",
                subject: "the memory".into(),
            });
        };
        let shared = HostMemory {
            at,
            held: Held::Adopted(Box::new(memory.clone())),
            pool: Arc::clone(&self.0),
            bytes: whole.bytes(),
        };
        let offset = memory.offset();
        DevicePtr::new(Arc::new(shared), offset + len).slice(offset..offset + len)
    }

    /// What the pool has done so far.
    pub fn stats(&self) -> PoolStats {
        self.0.lock().stats
    }

    /// Frees unused memory until at most `keep` bytes of it are left.
    pub fn trim(&self, keep: u64) {
        self.0.lock().trim(keep);
    }
}

// Sizes that are kept apart: multiples of 256 up to 4 KiB, then four to each power of two, so that at most a fifth of an
// allocation is waste. `None` when it does not fit the address space.
fn size_class(bytes: u64) -> Option<usize> {
    let bytes = usize::try_from(bytes).ok()?.max(1);
    let step = match bytes {
        0..=4096 => ALIGN,
        _ => (1 << bytes.ilog2()) / 4,
    };
    let size = bytes.checked_next_multiple_of(step)?;
    (size <= isize::MAX as usize - ALIGN).then_some(size)
}

/// A context's pools, one for each kind of memory.
pub struct HostPools {
    device: HostPool,
    pinned: HostPool,
    mapped: HostPool,
}

impl HostPools {
    /// Empty pools of a context.
    pub fn new(context: ContextId, backend: BackendKind) -> HostPools {
        let pool = |kind| HostPool::new(context, backend, kind);
        HostPools {
            device: pool(MemoryKind::Device),
            pinned: pool(MemoryKind::Pinned),
            mapped: pool(MemoryKind::Mapped),
        }
    }

    /// The pool of a kind.
    pub fn of(&self, kind: MemoryKind) -> &HostPool {
        match kind {
            MemoryKind::Device => &self.device,
            MemoryKind::Pinned => &self.pinned,
            MemoryKind::Mapped => &self.mapped,
        }
    }

    /// Trims each pool to `keep` unused bytes.
    pub fn trim(&self, keep: u64) {
        for pool in [&self.device, &self.pinned, &self.mapped] {
            pool.trim(keep);
        }
    }
}

/// A run of host memory from a [`HostPool`], or adopted by it.
pub struct HostMemory {
    at: NonNull<u8>,
    held: Held,
    pool: Arc<Inner>,
    bytes: u64,
}

// Whose the memory is.
enum Held {
    // `None` only during drop.
    Pooled(Option<Block>),
    Adopted(#[expect(dead_code, reason = "dropping it gives the memory back")] Box<dyn Owner>),
}

// SAFETY: all but the address is Send, and the address may be used from any thread, as a block's.
#[cfg(any(not(target_arch = "wasm32"), feature = "wasm-send"))]
unsafe impl Send for HostMemory {}
// SAFETY: as above.
#[cfg(any(not(target_arch = "wasm32"), feature = "wasm-send"))]
unsafe impl Sync for HostMemory {}

impl Drop for HostMemory {
    fn drop(&mut self) {
        let Held::Pooled(Some(block)) = std::mem::replace(&mut self.held, Held::Pooled(None)) else {
            return;
        };
        let mut state = self.pool.lock();
        state.stats.in_use -= self.bytes;
        state.idle.entry(block.layout.size()).or_default().push(block);
        state.trim(KEEP);
    }
}

// SAFETY: memory that the host reaches is a block: `bytes` initialised bytes (zeroed by the allocator, only ever overwritten
// since), aligned to 256, at an address that stays until the value is dropped, or such memory of another context's, which is kept as long. What
// else is adopted is device memory.
unsafe impl DeviceMemory for HostMemory {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn context_id(&self) -> ContextId {
        self.pool.context
    }

    fn kind(&self) -> MemoryKind {
        self.pool.kind
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn address(&self) -> Option<u64> {
        Some(self.at.addr().get() as u64)
    }

    fn host_ptr(&self) -> Option<NonNull<u8>> {
        // The host may not reach memory that stands for a device's, though it could.
        match self.pool.kind {
            MemoryKind::Device => None,
            MemoryKind::Pinned | MemoryKind::Mapped => Some(self.at),
        }
    }
}

impl HostMemory {
    /// Address of the first byte, of device memory too: for the backend itself.
    pub fn raw(&self) -> NonNull<u8> {
        self.at
    }
}

/// Address of a pointer's first byte, when its memory is a [`HostMemory`].
pub fn raw(ptr: &DevicePtr) -> Option<NonNull<u8>> {
    let base = ptr.downcast::<HostMemory>()?.raw();
    // SAFETY: a `DevicePtr`'s offset is at most its allocation's size.
    Some(unsafe { base.add(ptr.offset() as usize) })
}

/// The host's memory, where the system tells (Linux): what is free for this process, by the machine, by its limit of addresses and by
/// its control group.
pub fn memory_info() -> MemoryInfo {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let machine = read("/proc/meminfo");
    let field = |text: &str, name: &str| -> Option<u64> {
        let line = text
            .lines()
            .find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib * 1024)
    };
    let limits = read("/proc/self/limits");
    let addresses: Option<u64> = limits
        .lines()
        .find_map(|l| l.strip_prefix("Max address space"))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    let used = || field(&read("/proc/self/status"), "VmSize");
    let group = |name: &str| -> Option<u64> {
        let text = read(&format!("/sys/fs/cgroup/memory.{name}"));
        text.trim().parse().ok()
    };
    let left = [
        field(&machine, "MemAvailable"),
        addresses.and_then(|most| Some(most.saturating_sub(used()?))),
        group("max").and_then(|most| Some(most.saturating_sub(group("current")?))),
    ];
    MemoryInfo {
        free: left.into_iter().flatten().min(),
        total: field(&machine, "MemTotal"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_returns_to_the_pool_and_is_reused() -> Result<()> {
        let pool = HostPool::new(ContextId::unique(), BackendKind::Null, MemoryKind::Device);
        let a = pool.allocate(1000)?;
        let half = a.slice(500..1000)?;
        drop(a);
        assert_eq!(pool.stats().in_use, 1024, "a part keeps the whole alive");
        drop(half);
        let expect = PoolStats {
            in_use: 0,
            reserved: 1024,
            peak: 1024,
            allocations: 1,
            hits: 0,
        };
        assert_eq!(pool.stats(), expect);
        drop(pool.allocate(900)?);
        assert_eq!(pool.stats().hits, 1);
        pool.trim(0);
        assert_eq!(pool.stats().reserved, 0);
        Ok(())
    }

    #[test]
    fn size_classes_waste_at_most_a_fifth() {
        let check = |bytes: u64, class: Option<usize>| assert_eq!(size_class(bytes), class, "{bytes}");
        check(0, Some(256));
        check(257, Some(512));
        check(4097, Some(5120));
        check(1 << 20, Some(1 << 20));
        check((1 << 20) + 1, Some((1 << 20) + (1 << 18)));
        check(u64::MAX, None);
    }

    #[test]
    fn too_much_is_out_of_memory() {
        let pool = HostPool::new(ContextId::unique(), BackendKind::Null, MemoryKind::Device);
        let error = pool.allocate(1 << 62).err();
        assert!(matches!(error, Some(Error::OutOfMemory { requested, .. }) if requested == 1 << 62));
    }
}
