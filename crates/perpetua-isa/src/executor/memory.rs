//! Buffers and pools by handle: allocated, freed, written, read and copied by the host.

use std::ops::Range;

use bytemuck::Pod;
use perpetua_device::{Buffer, LaunchConfig};

use super::{Arguments, Executor};
use crate::error::{Error, Result};
use crate::pool;
use crate::program::Program;

/// What a handle stands for.
pub(super) enum Stored {
    Buffer(Buffer<u8>),
    Pool(Pool),
}

/// A pool's memory.
#[derive(Clone)]
pub(super) struct Pool {
    pub(super) storage: Buffer<u8>,
    pub(super) table: Buffer<u8>,
}

impl Stored {
    // What the host reads and writes.
    fn bytes(&self) -> &Buffer<u8> {
        match self {
            Stored::Buffer(bytes) | Stored::Pool(Pool { storage: bytes, .. }) => bytes,
        }
    }

    fn size(&self) -> usize {
        match self {
            Stored::Buffer(bytes) => bytes.len(),
            Stored::Pool(pool) => pool.storage.len() + pool.table.len(),
        }
    }
}

impl Executor {
    // Memory that `make` allocates, of so many bytes, which count from before that on.
    fn store(&self, bytes: usize, make: impl FnOnce() -> Result<Stored>) -> Result<u64> {
        let mut state = self.state();
        let used = state.bytes.saturating_add(bytes);
        if let Some(limits) = &self.limits {
            limits.check_memory(used)?;
        }
        state.bytes = used;
        drop(state);
        let made = make();
        let mut state = self.state();
        match made {
            Ok(stored) => {
                state.next += 1;
                let handle = state.next;
                state.memory.insert(handle, stored);
                Ok(handle)
            }
            Err(error) => {
                state.bytes = state.bytes.saturating_sub(bytes);
                Err(error)
            }
        }
    }

    /// Allocates a buffer of bytes, all zero; gives its handle.
    pub fn allocate_buffer(&self, bytes: usize) -> Result<u64> {
        self.store(bytes, || Ok(Stored::Buffer(self.device.zeros(bytes)?)))
    }

    /// Allocates a pool of so many bytes of storage, rounded up to 16, all zero; gives its handle. Programs take blocks out of it
    /// (`pool_alloc`), at most one for each 64 bytes, and [`Executor::allocate_block`] does. What they leave there stays for the programs that follow.
    /// Beside its storage it takes a quarter of that for its table.
    ///
    /// ```
    /// use perpetua_isa::{BackendType, Executor, LaunchConfig, Program};
    /// let executor = Executor::new_with_backend(BackendType::Cpu)?;
    /// let (heap, handles) = (executor.allocate_pool(1 << 16)?, executor.allocate_buffer(4 * 8)?);
    /// let make: Program = "\
    /// .pool heap
    /// .buffer handles: u32
    ///   pool_alloc r0, heap, 64
    ///   cvt.f32.u32 r1, r252
    ///   pool_store.f32 heap[r0 + 3], r1
    ///   stg.u32 handles[r252], r0
    /// ".parse()?;
    /// let make = make.with_buffer("heap", heap)?.with_buffer("handles", handles)?;
    /// executor.execute_program(&make, &LaunchConfig::new(1, 8))?;
    /// let block = executor.read_buffer::<u32>(handles, 0, 8)?[5];
    /// let place = executor.block(heap, block)?;
    /// assert_eq!(executor.read_pool::<f32>(heap, place.start, 4)?, [0.0, 0.0, 0.0, 5.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn allocate_pool(&self, bytes: usize) -> Result<u64> {
        let unit = pool::UNIT as usize;
        let size = bytes.checked_next_multiple_of(unit).unwrap_or(usize::MAX);
        if size > pool::MAX_BYTES {
            return Err(Error::Limit {
                what: "bytes of a pool",
                found: bytes as u64,
                limit: pool::MAX_BYTES as u64,
            });
        }
        let size = size.max(unit);
        let table = pool::rows(size) * 4 * pool::ROW as usize;
        self.store(size + table, || {
            let (storage, table) = (self.device.zeros(size)?, self.device.zeros(table)?);
            let at = 4 * pool::SECRET as usize;
            table.slice(at..at + 4)?.write(&pool::secret().to_le_bytes())?;
            Ok(Stored::Pool(Pool { storage, table }))
        })
    }

    fn free(&self, handle: u64, is_pool: bool) -> Result<()> {
        let mut state = self.state();
        match state.memory.get(&handle) {
            Some(stored) if matches!(stored, Stored::Pool(_)) == is_pool => {
                let freed = state.memory.remove(&handle);
                let bytes = freed.as_ref().map_or(0, Stored::size);
                state.bytes = state.bytes.saturating_sub(bytes);
                drop(state);
                drop(freed);
                Ok(())
            }
            _ if is_pool => Err(Error::NoPool { handle }),
            _ => Err(Error::NoBuffer { handle }),
        }
    }

    /// Frees a buffer. Work that uses it ends first.
    ///
    /// # Errors
    /// [`Error::NoBuffer`].
    pub fn free_buffer(&self, handle: u64) -> Result<()> {
        self.free(handle, false)
    }

    /// Frees a pool with all its blocks. Work that uses it ends first.
    ///
    /// # Errors
    /// [`Error::NoPool`].
    pub fn free_pool(&self, handle: u64) -> Result<()> {
        self.free(handle, true)
    }

    /// A buffer's bytes.
    pub fn buffer(&self, handle: u64) -> Result<Buffer<u8>> {
        match self.state().memory.get(&handle) {
            Some(Stored::Buffer(buffer)) => Ok(buffer.clone()),
            _ => Err(Error::NoBuffer { handle }),
        }
    }

    pub(super) fn pool(&self, handle: u64) -> Result<Pool> {
        match self.state().memory.get(&handle) {
            Some(Stored::Pool(pool)) => Ok(pool.clone()),
            _ => Err(Error::NoPool { handle }),
        }
    }

    /// A buffer's size in bytes.
    pub fn buffer_size(&self, handle: u64) -> Result<usize> {
        Ok(self.buffer(handle)?.len())
    }

    /// The size of a pool's storage in bytes.
    pub fn pool_size(&self, handle: u64) -> Result<usize> {
        Ok(self.pool(handle)?.storage.len())
    }

    // A part of a buffer's or a pool's bytes.
    fn part(&self, operation: &'static str, handle: u64, offset: usize, len: usize) -> Result<Buffer<u8>> {
        let bytes = match self.state().memory.get(&handle) {
            Some(stored) => stored.bytes().clone(),
            None => return Err(Error::NoBuffer { handle }),
        };
        match offset.checked_add(len) {
            Some(end) if end <= bytes.len() => Ok(bytes.slice(offset..end)?),
            _ => Err(Error::Range {
                operation,
                handle,
                offset: offset as u64,
                len: len as u64,
                size: bytes.len() as u64,
            }),
        }
    }

    fn write<T: Pod>(&self, handle: u64, offset: usize, values: &[T]) -> Result<()> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let part = self.part("a write", handle, offset, bytes.len())?;
        match bytes.is_empty() {
            true => Ok(()),
            false => Ok(part.write(bytes)?),
        }
    }

    fn read<T: Pod>(&self, handle: u64, offset: usize, len: usize) -> Result<Vec<T>> {
        let size = len.saturating_mul(size_of::<T>());
        let part = self.part("a read", handle, offset, size)?;
        if size == 0 {
            return Ok(Vec::new());
        }
        let bytes = part.read()?;
        let mut values = vec![T::zeroed(); len];
        bytemuck::cast_slice_mut(&mut values).copy_from_slice(&bytes);
        Ok(values)
    }

    /// Copies values into a buffer, from a byte on.
    pub fn write_buffer<T: Pod>(&self, handle: u64, offset: usize, values: &[T]) -> Result<()> {
        self.buffer(handle)?;
        self.write(handle, offset, values)
    }

    /// Waits for values of a buffer: `len` of them, from a byte on.
    pub fn read_buffer<T: Pod>(&self, handle: u64, offset: usize, len: usize) -> Result<Vec<T>> {
        self.buffer(handle)?;
        self.read(handle, offset, len)
    }

    /// Copies values into a pool's storage, from a byte on: [`Executor::block`] says where a block lies.
    pub fn write_pool<T: Pod>(&self, handle: u64, offset: usize, values: &[T]) -> Result<()> {
        self.pool(handle)?;
        self.write(handle, offset, values)
    }

    /// Waits for values in a pool's storage: `len` of them, from a byte on.
    pub fn read_pool<T: Pod>(&self, handle: u64, offset: usize, len: usize) -> Result<Vec<T>> {
        self.pool(handle)?;
        self.read(handle, offset, len)
    }

    /// Copies bytes from one handle to another, each from a byte on: of buffers, and of pools' storage.
    pub fn copy(&self, from: (u64, usize), to: (u64, usize), len: usize) -> Result<()> {
        let source = self.part("a copy", from.0, from.1, len)?;
        let destination = self.part("a copy", to.0, to.1, len)?;
        match len {
            0 => Ok(()),
            _ => Ok(self.device.default_stream().copy(&source, &destination)?),
        }
    }

    /// Where a block lies in its pool's storage, in bytes.
    ///
    /// # Errors
    /// [`Error::NoBlock`].
    pub fn block(&self, pool: u64, block: u32) -> Result<Range<usize>> {
        let table = self.pool(pool)?.table;
        let missing = Error::NoBlock { pool, block };
        let row = 4 * pool::ROW as usize;
        let at = (block & (pool::MAX_ROWS - 1)) as usize * row;
        if at == 0 || at + row > table.len() {
            return Err(missing);
        }
        let bytes = table.slice(at..at + row)?.read()?;
        let word = |i: u32| {
            let at = 4 * i as usize;
            let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
            word.map_or(0, u32::from_le_bytes)
        };
        let first = word(pool::FIRST) as usize;
        if block & pool::IN_USE == 0 || word(pool::STATE) != block || first == 0 {
            return Err(missing);
        }
        let start = (first - 1) * pool::UNIT as usize;
        Ok(start..start + word(pool::BYTES) as usize)
    }

    /// Takes a block of a pool, all zero, as a program does; gives its handle.
    ///
    /// # Errors
    /// If the pool has no room, or something that was launched before met a fault.
    pub fn allocate_block(&self, pool: u64, bytes: u32) -> Result<u32> {
        let made = self.allocate_buffer(4)?;
        let program = ".pool heap\n.buffer made: u32\n.param bytes: u32\npool_alloc r0, heap, bytes\nstg.u32 made[0], r0\n";
        let taken = bound(program, &[("heap", pool), ("made", made)]).and_then(|program| {
            let arguments = Arguments::new().with("bytes", bytes);
            self.execute(&program, &LaunchConfig::new(1, 1), &arguments)?;
            self.read_buffer(made, 0, 1)
        });
        self.free_buffer(made)?;
        Ok(taken?.first().copied().unwrap_or_default())
    }

    /// Gives a block back to its pool, as a program does.
    ///
    /// # Errors
    /// If there is no such pool. That there is no such block is told by the next read.
    pub fn free_block(&self, pool: u64, block: u32) -> Result<()> {
        let program = bound(
            ".pool heap\n.param block: u32\npool_free heap, block\n",
            &[("heap", pool)],
        )?;
        let arguments = Arguments::new().with("block", block);
        self.execute(&program, &LaunchConfig::new(1, 1), &arguments)
    }
}

// A program of our own, on handles.
fn bound(text: &str, handles: &[(&str, u64)]) -> Result<Program> {
    let mut program: Program = text.parse()?;
    for (name, handle) in handles {
        program = program.with_buffer(name, *handle)?;
    }
    Ok(program)
}
