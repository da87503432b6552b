//! Memory: a pool of storage buffers, and staging buffers that the host maps.
//!
//! A storage buffer goes back to the pool when its last user drops it; streams hold what commands use until those are
//! submitted, and one queue runs submissions in order, so reuse is ordered behind earlier use.

use std::any::Any;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use super::shared::{Shared, lock, out_of_memory};
use crate::error::{Error, Result};
use crate::host::HostPool;
use crate::info::BackendKind;
use crate::ptr::{ContextId, DeviceMemory, DevicePtr, MemoryKind, PoolStats};

/// Sizes that are kept apart: multiples of 256 up to 4 KiB, then eighths of a power of two.
fn class(bytes: u64) -> u64 {
    if bytes <= 4096 {
        return bytes.max(1).next_multiple_of(256);
    }
    let step = 1u64 << (bytes.ilog2() - 3);
    bytes.checked_next_multiple_of(step).unwrap_or(bytes)
}

/// What storage buffers are created for.
const USAGES: wgpu::BufferUsages = wgpu::BufferUsages::STORAGE
    .union(wgpu::BufferUsages::COPY_SRC)
    .union(wgpu::BufferUsages::COPY_DST);

/// The pool of device memory.
pub(super) struct Pool {
    shared: Arc<Shared>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    idle: BTreeMap<u64, Vec<wgpu::Buffer>>,
    stats: PoolStats,
}

impl Pool {
    pub(super) fn new(shared: &Arc<Shared>) -> Arc<Pool> {
        Arc::new(Pool {
            shared: Arc::clone(shared),
            state: Mutex::default(),
        })
    }

    pub(super) fn stats(&self) -> PoolStats {
        lock(&self.state).stats
    }

    pub(super) fn allocate(self: &Arc<Self>, bytes: u64) -> Result<DevicePtr> {
        let limits = &self.shared.limits;
        let most = limits.max_buffer_size.min(limits.max_storage_buffer_binding_size) / 4 * 4;
        if bytes > most {
            return Err(Error::Limit {
                what: "bytes in one buffer",
                found: bytes,
                limit: most,
                remedy: "split the data over several buffers",
            });
        }
        let size = class(bytes).min(most);
        let reused = {
            let mut state = lock(&self.state);
            let buffer = state.idle.get_mut(&size).and_then(Vec::pop);
            state.stats.allocations += 1;
            state.stats.hits += u64::from(buffer.is_some());
            buffer
        };
        let fresh = reused.is_none();
        let buffer = match reused {
            Some(buffer) => buffer,
            None => self
                .create(size)
                .or_else(|| {
                    self.trim(0);
                    self.create(size)
                })
                .ok_or_else(|| out_of_memory(bytes))?,
        };
        let mut state = lock(&self.state);
        state.stats.reserved += if fresh { size } else { 0 };
        state.stats.in_use += size;
        state.stats.peak = state.stats.peak.max(state.stats.in_use);
        drop(state);
        let memory = Memory {
            buffer,
            size,
            pool: Arc::clone(self),
            adopted: false,
        };
        Ok(DevicePtr::new(Arc::new(memory), bytes))
    }

    /// A buffer of somebody else's, which the pool never has.
    pub(super) fn adopt(self: &Arc<Self>, buffer: wgpu::Buffer) -> Result<DevicePtr> {
        const OPERATION: &str = "adoption of a wgpu buffer";
        let size = buffer.size();
        if !buffer.usage().contains(USAGES) {
            return Err(Error::InvalidState {
                operation: OPERATION,
                cause: "it was created without STORAGE, COPY_SRC or COPY_DST",
                remedy: "create it with these usages",
            });
        }
        if !size.is_multiple_of(4) {
            return Err(Error::Alignment {
                operation: OPERATION,
                subject: "its end".into(),
                found: size,
                needed: 4,
            });
        }
        let limit = self.shared.limits.max_storage_buffer_binding_size;
        if size > limit {
            return Err(Error::Limit {
                what: "bytes in one buffer",
                found: size,
                limit,
                remedy: "split the data over several buffers",
            });
        }
        // wgpu tells of a buffer's device only by refusing those of others. What is recorded here is never submitted.
        let (_, error) = self.shared.scoped(wgpu::ErrorFilter::Validation, || {
            let mut encoder = self
                .shared
                .device
                .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.clear_buffer(&buffer, 0, None);
            encoder.finish()
        });
        if error.is_some() {
            return Err(Error::WrongDevice {
                operation: OPERATION,
                subject: "the buffer".into(),
            });
        }
        let memory = Memory {
            buffer,
            size,
            pool: Arc::clone(self),
            adopted: true,
        };
        Ok(DevicePtr::new(Arc::new(memory), size))
    }

    /// A new buffer, unless memory is short.
    fn create(&self, size: u64) -> Option<wgpu::Buffer> {
        let (buffer, error) = self.shared.scoped(wgpu::ErrorFilter::OutOfMemory, || {
            self.shared.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size,
                usage: USAGES,
                mapped_at_creation: false,
            })
        });
        error.is_none().then_some(buffer)
    }

    /// Lets go of unused buffers until at most `keep` bytes of them are left.
    pub(super) fn trim(&self, keep: u64) {
        let mut state = lock(&self.state);
        while state.stats.reserved - state.stats.in_use > keep {
            let Some(mut entry) = state.idle.last_entry() else {
                return;
            };
            let (size, popped) = (*entry.key(), entry.get_mut().pop());
            match popped {
                // The driver keeps it until submitted work has ended.
                Some(_) => state.stats.reserved -= size,
                None => drop(state.idle.pop_last()),
            }
        }
    }
}

/// One storage buffer.
pub(super) struct Memory {
    pub(super) buffer: wgpu::Buffer,
    size: u64,
    pool: Arc<Pool>,
    /// Whether it is somebody else's.
    adopted: bool,
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.adopted {
            return;
        }
        let mut state = lock(&self.pool.state);
        state.stats.in_use -= self.size;
        state.idle.entry(self.size).or_default().push(self.buffer.clone());
    }
}

// SAFETY: the host reaches none of it, so there is no pointer whose promise could be broken.
unsafe impl DeviceMemory for Memory {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn context_id(&self) -> ContextId {
        self.pool.shared.id
    }
    fn kind(&self) -> MemoryKind {
        MemoryKind::Device
    }
    fn bytes(&self) -> u64 {
        self.size
    }
    fn address(&self) -> Option<u64> {
        None
    }
    fn is_same(&self, other: &dyn DeviceMemory) -> bool {
        let other = other.as_any().downcast_ref::<Memory>();
        other.is_some_and(|other| other.buffer == self.buffer)
    }
    fn host_ptr(&self) -> Option<NonNull<u8>> {
        None
    }
}

/// Buffers that the host maps to read, and plain host memory that stands for pinned memory: wgpu has no page-locked
/// memory that stays mapped, so copies from and to it go through buffers of wgpu's own.
pub(super) struct Staging {
    shared: Arc<Shared>,
    idle: Mutex<Vec<wgpu::Buffer>>,
    host: HostPool,
}

/// Staging buffers kept for reuse.
const KEPT: usize = 32;

impl Staging {
    pub(super) fn new(shared: &Arc<Shared>) -> Staging {
        Staging {
            shared: Arc::clone(shared),
            idle: Mutex::default(),
            host: HostPool::new(shared.id, BackendKind::Wgpu, MemoryKind::Pinned),
        }
    }

    pub(super) fn pinned(&self, bytes: u64) -> Result<DevicePtr> {
        self.host.allocate(bytes)
    }

    pub(super) fn stats(&self) -> PoolStats {
        self.host.stats()
    }

    pub(super) fn trim(&self, keep: u64) {
        self.host.trim(keep);
        lock(&self.idle).clear();
    }

    /// A buffer of at least `bytes` to read back through.
    pub(super) fn take(&self, bytes: u64) -> wgpu::Buffer {
        let mut idle = lock(&self.idle);
        let fits = |b: &wgpu::Buffer| b.size() >= bytes && b.size() <= bytes.saturating_mul(4).max(4096);
        if let Some(i) = idle.iter().rposition(fits) {
            return idle.swap_remove(i);
        }
        drop(idle);
        self.shared.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: class(bytes),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        })
    }

    /// Gives an unmapped buffer back.
    pub(super) fn give(&self, buffer: wgpu::Buffer) {
        let mut idle = lock(&self.idle);
        if idle.len() < KEPT {
            idle.push(buffer);
        }
    }
}
