//! Memory: one caching pool for each kind. A dropped allocation is reused only behind the work that used it: for
//! device memory, streams that touch it next wait for that work's events; memory that the host reaches waits in the pool.

use std::any::Any;
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{self, CUresult};

use super::driver::{Shared, lock};
use super::streams::{Guard, Slot, Users};
use crate::error::{Error, Result};
use crate::info::BackendKind;
use crate::ptr::{ContextId, DeviceMemory, MemoryKind, Owner, PoolStats};

const ADOPTION: &str = "adoption of memory";

/// A piece of memory from the driver.
struct Block {
    address: u64,
    host: Option<NonNull<u8>>,
    size: u64,
    guards: Vec<Guard>,
}

// SAFETY: a block is addresses and events; nothing is accessed through it but under the pool's rules.
unsafe impl Send for Block {}

/// The pool of one kind of memory in one context.
pub(super) struct Pool {
    shared: Arc<Shared>,
    kind: MemoryKind,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    free: HashMap<u64, Vec<Block>>,
    stats: PoolStats,
}

/// Rounds a size up so that few distinct sizes exist: multiples of 512 bytes up to 4 KiB, then eighths of a power of two.
fn class(bytes: u64) -> u64 {
    if bytes <= 4096 {
        return bytes.max(1).next_multiple_of(512);
    }
    let step = 1u64 << (bytes.ilog2() - 3);
    bytes.checked_next_multiple_of(step).unwrap_or(bytes)
}

impl Pool {
    pub(super) fn new(shared: &Arc<Shared>, kind: MemoryKind) -> Arc<Pool> {
        Arc::new(Pool {
            shared: Arc::clone(shared),
            kind,
            state: Mutex::default(),
        })
    }

    /// The context that it belongs to.
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) fn stats(&self) -> PoolStats {
        lock(&self.state).stats
    }

    /// Memory of at least `bytes`.
    pub(super) fn allocate(self: &Arc<Self>, bytes: u64) -> Result<Memory> {
        let size = class(bytes);
        let reused = {
            let mut state = lock(&self.state);
            state.stats.allocations += 1;
            let found = state.free.get_mut(&size).and_then(|blocks| self.pick(blocks));
            if found.is_some() {
                state.stats.hits += 1;
            }
            found
        };
        let block = match reused {
            Some(block) => block,
            None => self.take_new(size, bytes)?,
        };
        let mut state = lock(&self.state);
        state.stats.in_use += size;
        state.stats.peak = state.stats.peak.max(state.stats.in_use);
        drop(state);
        Ok(Memory {
            pool: Arc::clone(self),
            address: block.address,
            host: block.host,
            size: block.size,
            guards: Mutex::new(block.guards),
            users: AtomicU64::new(0),
            is_held: self.kind != MemoryKind::Device,
            owner: None,
        })
    }

    /// Memory of somebody else's: streams hold it while work uses it, and the pool never has it.
    pub(super) fn adopt(self: &Arc<Self>, address: u64, size: u64, owner: Box<dyn Owner>) -> Result<Memory> {
        self.shared.enter()?;
        let mut ordinal: sys::CUdevice = -1;
        let which = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
        // SAFETY: the context is current; the attribute is an int, as `ordinal` is; a bad address gives an error code.
        let code = unsafe { sys::cuPointerGetAttribute((&raw mut ordinal).cast(), which, address) };
        if code == CUresult::CUDA_ERROR_INVALID_VALUE {
            return Err(Error::InvalidState {
                operation: ADOPTION,
                cause: "the driver knows no memory at its address",
                remedy: "give the device's address of memory that the driver has allocated or registered",
            });
        }
        self.shared.check(code, || "cuPointerGetAttribute".into())?;
        if ordinal != self.shared.device {
            return Err(Error::WrongDevice {
                operation: ADOPTION,
                subject: "the memory".into(),
            });
        }
        Ok(self.of_another(address, None, size, owner))
    }

    /// Memory that `owner` keeps, as adopted memory is kept, without a question to the driver.
    pub(super) fn of_another(
        self: &Arc<Self>,
        address: u64,
        host: Option<NonNull<u8>>,
        size: u64,
        owner: Box<dyn Owner>,
    ) -> Memory {
        Memory {
            pool: Arc::clone(self),
            address,
            host,
            size,
            guards: Mutex::default(),
            users: AtomicU64::new(0),
            is_held: true,
            owner: Some(owner),
        }
    }

    /// A block that may be handed out now.
    fn pick(&self, blocks: &mut Vec<Block>) -> Option<Block> {
        if self.kind == MemoryKind::Device {
            return blocks.pop();
        }
        // The host may touch it at once: only blocks whose work has ended.
        let ready = blocks.iter_mut().position(|b| {
            b.guards.retain(|g| !g.is_over());
            b.guards.is_empty()
        })?;
        Some(blocks.swap_remove(ready))
    }

    fn take_new(&self, size: u64, requested: u64) -> Result<Block> {
        self.shared.enter()?;
        let mut code = CUresult::CUDA_SUCCESS;
        for attempt in 0..2 {
            if attempt == 1 {
                // Give back what the pool holds, and what the device still works on.
                self.trim(0)?;
            }
            let (result, block) = self.ask(size);
            match result {
                CUresult::CUDA_SUCCESS => {
                    lock(&self.state).stats.reserved += size;
                    return Ok(block);
                }
                CUresult::CUDA_ERROR_OUT_OF_MEMORY => code = result,
                other => {
                    self.shared.check(other, || {
                        format!("allocating {size} bytes of {} memory", self.kind)
                    })?;
                }
            }
        }
        debug_assert_eq!(code, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        let (free, total) = free_and_total(&self.shared)?;
        let known = self.kind == MemoryKind::Device;
        Err(Error::OutOfMemory {
            backend: BackendKind::Cuda,
            memory: self.kind,
            requested,
            free: known.then_some(free),
            total: known.then_some(total),
        })
    }

    fn ask(&self, size: u64) -> (CUresult, Block) {
        let mut block = Block {
            address: 0,
            host: None,
            size,
            guards: Vec::new(),
        };
        if self.kind == MemoryKind::Device {
            // SAFETY: the context is current; the pointer is writable.
            let code = unsafe { sys::cuMemAlloc_v2(&raw mut block.address, size as usize) };
            return (code, block);
        }
        let flags = if self.kind == MemoryKind::Mapped {
            // Other devices may map it, too (`span.rs`).
            sys::CU_MEMHOSTALLOC_DEVICEMAP | sys::CU_MEMHOSTALLOC_PORTABLE
        } else {
            0
        };
        let mut pointer = std::ptr::null_mut();
        // SAFETY: as above. Without the write-combined flag the memory is cacheable.
        let mut code = unsafe { sys::cuMemHostAlloc(&raw mut pointer, size as usize, flags) };
        if code == CUresult::CUDA_SUCCESS {
            // SAFETY: fresh memory of `size` bytes that nobody else knows; the contract asks for initialised bytes.
            unsafe { pointer.cast::<u8>().write_bytes(0, size as usize) };
            block.host = NonNull::new(pointer.cast());
            block.address = pointer as u64;
            if self.kind == MemoryKind::Mapped {
                // SAFETY: `pointer` came from cuMemHostAlloc with the device-map flag.
                code = unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut block.address, pointer, 0) };
            }
        }
        (code, block)
    }

    /// Releases free blocks until at most `keep` bytes stay reserved beyond what is in use.
    pub(super) fn trim(&self, keep: u64) -> Result<()> {
        let mut released = Vec::new();
        {
            let mut state = lock(&self.state);
            let mut spare = state.stats.reserved - state.stats.in_use;
            let mut sizes: Vec<u64> = state.free.keys().copied().collect();
            sizes.sort_unstable_by(|a, b| b.cmp(a));
            for size in sizes {
                while spare > keep {
                    let Some(block) = state.free.get_mut(&size).and_then(Vec::pop) else {
                        break;
                    };
                    spare -= size;
                    state.stats.reserved -= size;
                    released.push(block);
                }
            }
        }
        if released.is_empty() {
            return Ok(());
        }
        // Freeing waits for the device, and for resident kernels for ever: those are parked meanwhile.
        self.shared
            .gate
            .parked(|| released.into_iter().try_for_each(|block| self.release(&block)))?
    }

    fn release(&self, block: &Block) -> Result<()> {
        self.shared.enter()?;
        for guard in &block.guards {
            guard.wait()?;
        }
        let code = match block.host {
            // SAFETY: allocated by `ask` with cuMemHostAlloc; its work has ended; nobody holds it.
            Some(host) => unsafe { sys::cuMemFreeHost(host.as_ptr().cast()) },
            // SAFETY: allocated by `ask` with cuMemAlloc; its work has ended; nobody holds it.
            None => unsafe { sys::cuMemFree_v2(block.address) },
        };
        self.shared.check(code, || {
            format!("freeing {} bytes of {} memory", block.size, self.kind)
        })
    }

    /// Takes a block back behind the work of the streams in `users`.
    fn take_back(&self, mut block: Block, users: Users) {
        if self.shared.is_lost() {
            return;
        }
        match self.shared.streams.marks(&self.shared, users) {
            // A user has waited for the guards: its mark is behind them.
            Ok(marks) if !marks.is_empty() => block.guards = marks,
            Ok(_) => {}
            // Without a mark nobody knows when it is safe: the block is left to the driver until the end.
            Err(_) => return,
        }
        let mut state = lock(&self.state);
        state.stats.in_use -= block.size;
        state.free.entry(block.size).or_default().push(block);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // A lost context, or one in use by a capture, frees nothing; the process's end does.
        let _ = self.trim(0);
    }
}

/// Free and total device memory in bytes.
pub(super) fn free_and_total(shared: &Shared) -> Result<(u64, u64)> {
    shared.enter()?;
    let (mut free, mut total) = (0, 0);
    // SAFETY: the context is current; both pointers are writable.
    let code = unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) };
    shared.check(code, || "cuMemGetInfo".into())?;
    Ok((free as u64, total as u64))
}

/// One allocation.
pub(super) struct Memory {
    pool: Arc<Pool>,
    address: u64,
    host: Option<NonNull<u8>>,
    size: u64,
    /// What streams that have not used it yet wait for: earlier users of its block, then whoever gives it its first content.
    guards: Mutex<Vec<Guard>>,
    /// The streams that have waited for the guards, and use it.
    users: AtomicU64,
    /// Whether streams hold it while work uses it, since the host reaches it or somebody else owns it.
    is_held: bool,
    /// Who owns it, where the pool does not.
    owner: Option<Box<dyn Owner>>,
}

// SAFETY: the addresses are used only by submitted work and, for host memory, by whoever the contract of
// `DeviceMemory::host_ptr` allows; the rest is Send and Sync.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Whether it is somebody else's, who must not have it back before work that uses it has ended.
    pub(super) fn is_adopted(&self) -> bool {
        self.owner.is_some()
    }

    /// Whether streams hold it while work uses it.
    #[inline]
    pub(super) fn is_held(&self) -> bool {
        self.is_held
    }

    /// Where it lies for the host, which reaches it.
    pub(super) fn host(&self) -> Option<NonNull<u8>> {
        self.host
    }

    /// Its bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Where it lies, in kernels' address space.
    #[inline]
    pub(super) fn start(&self) -> u64 {
        self.address
    }

    /// Notes that `stream` is about to use this memory, and makes it wait for the work that used it before.
    #[inline]
    pub(super) fn use_on(&self, slot: Slot, stream: sys::CUstream) -> Result<()> {
        // Acquire: pairs with the Release in `first_use`: what another thread has made the stream wait for comes before what this one submits.
        if self.users.load(Ordering::Acquire) & slot.bit() == 0 || slot.is_shared() {
            return self.first_use(slot, stream);
        }
        Ok(())
    }

    #[cold]
    fn first_use(&self, slot: Slot, stream: sys::CUstream) -> Result<()> {
        lock(&self.guards)
            .iter()
            .try_for_each(|guard| guard.hold(slot, stream))?;
        // Release: pairs with the Acquire in `use_on`. A stream's slot is given to another when its work has ended, and that had waited.
        self.users.fetch_or(slot.bit(), Ordering::Release);
        Ok(())
    }

    /// Makes streams that use it first wait for this mark, behind work of a stream that has waited for all others.
    pub(super) fn guard(&self, mark: Guard) {
        *lock(&self.guards) = vec![mark];
    }

    /// The work of the stream in `slot` has ended, and nobody can submit other.
    pub(super) fn unused_by(&self, slot: Slot) {
        if !slot.is_shared() {
            // Relaxed: the caller has the only reference.
            self.users.fetch_and(!slot.bit(), Ordering::Relaxed);
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // Its owner's drop, which follows, is all: streams have held it until now, as `is_adopted` asks.
        if self.is_adopted() {
            return;
        }
        let guards = std::mem::take(&mut *lock(&self.guards));
        let block = Block {
            address: self.address,
            host: self.host,
            size: self.size,
            guards,
        };
        self.pool.take_back(block, self.users.load(Ordering::Relaxed));
    }
}

// SAFETY: what is adopted is not the host's, but for another context's host memory, which is kept as long. Host memory comes from cuMemHostAlloc (page-aligned), is zeroed when taken from the driver, holds `size`
// bytes, and goes back to the pool only when this value is dropped.
unsafe impl DeviceMemory for Memory {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn context_id(&self) -> ContextId {
        self.pool.shared.id
    }
    fn kind(&self) -> MemoryKind {
        self.pool.kind
    }
    fn bytes(&self) -> u64 {
        self.size
    }
    fn address(&self) -> Option<u64> {
        Some(self.address)
    }
    fn host_ptr(&self) -> Option<NonNull<u8>> {
        self.host
    }
}

#[cfg(test)]
mod tests {
    use super::class;

    #[test]
    fn size_classes_are_few_and_never_too_small() {
        let check = |bytes: u64, expect: u64| assert_eq!(class(bytes), expect, "{bytes}");
        check(0, 512);
        check(512, 512);
        check(4097, 4608);
        check(1 << 30, 1 << 30);
        check((1 << 30) + 1, (1 << 30) + (1 << 27));
        check(u64::MAX, u64::MAX);
    }
}
