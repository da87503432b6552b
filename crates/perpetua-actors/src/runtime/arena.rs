//! The memory in which messages' vectors lie: blocks, each of which belongs to one message at a time. Must not know types of
//! messages, nor engines.
//!
//! # Who frees a block
//! A message that brings a block says so in its header, and names it by its place and its generation (the payload's last two words).
//! A packet can be copied; the block's right to be touched cannot: [`Arena::claim`] gives it to one at a time, as a [`Lease`], and to
//! none whose generation has passed. So who runs a handler, or reads an answer, is alone with the block, whatever copies of the
//! packet there are; and a block is freed once.
//! - A handler has run: the block goes on with the first message that takes spans along, else its lease is dropped, which frees it. A
//!   handler that runs on a device by itself says in the block's head that nobody wants it any more; [`Arena::sweep`] finds it.
//! - The host got it: the [`Lease`] is in the answer or in what was received, and ends with that.
//! - It became a dead letter: the store of these frees it when the letter leaves, unless it is sent again.
//! - It was not taken (mailbox full, actor gone): whoever tried to send it frees it.

use std::collections::{BTreeMap, HashMap};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use perpetua_device::MappedBuffer;

use crate::error::{ActorError, Result};
use crate::lock::lock;
use crate::message::Packet;
use crate::span::{BLOCK_FLAG, BLOCK_WORD, HEAD_LENT, HEAD_WORDS};

/// Words that blocks are made of: a cache line.
const GRAIN: u32 = 16;

/// Memory of words, for as long as its owner lives.
pub(crate) struct Memory {
    pub(crate) base: NonNull<u32>,
    pub(crate) words: usize,
    /// Keeps the memory. Devices reach it, too, where it is `from_device`.
    #[expect(dead_code, reason = "it is there to be dropped")]
    pub(crate) owner: Box<dyn Send + Sync>,
    pub(crate) from_device: bool,
}

// SAFETY: plain memory that its owner keeps; who reaches it is settled by leases.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// Names a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BlockId {
    pub(crate) at: u32,
    pub(crate) generation: u32,
}

impl BlockId {
    /// The block that a packet brings.
    #[inline]
    pub(crate) fn of(packet: &Packet) -> Option<BlockId> {
        (u32::from(packet.header.words) & BLOCK_FLAG != 0).then(|| BlockId {
            generation: packet.payload[BLOCK_WORD],
            at: packet.payload[BLOCK_WORD + 1],
        })
    }

    /// The packet brings this block.
    pub(crate) fn attach(self, packet: &mut Packet) {
        packet.header.words |= BLOCK_FLAG as u8;
        packet.payload[BLOCK_WORD] = self.generation;
        packet.payload[BLOCK_WORD + 1] = self.at;
    }

    /// The packet brings no block.
    pub(crate) fn detach(packet: &mut Packet) {
        if u32::from(packet.header.words) & BLOCK_FLAG != 0 {
            packet.header.words &= !(BLOCK_FLAG as u8);
            packet.payload[BLOCK_WORD..].fill(0);
        }
    }
}

/// How much of the arena is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArenaUsage {
    /// Blocks that messages, or those who read them, have.
    pub blocks: usize,
    /// Their bytes.
    pub bytes: usize,
    /// The arena's bytes; 0 before its first use.
    pub capacity: usize,
}

#[derive(Default)]
struct Table {
    // Grains, by their first.
    free: BTreeMap<u32, u32>,
    live: HashMap<u32, Live>,
    generation: u32,
}

struct Live {
    grains: u32,
    generation: u32,
    claimed: bool,
}

type Source = Box<dyn Fn(usize) -> Result<Memory> + Send + Sync>;

/// The arena of a runtime. Its memory is there from the first block on.
pub(crate) struct Arena {
    bytes: usize,
    source: OnceLock<Source>,
    memory: OnceLock<Memory>,
    opening: Mutex<()>,
    table: Mutex<Table>,
}

impl Arena {
    pub(crate) fn new(bytes: usize) -> Arena {
        Arena {
            bytes,
            source: OnceLock::new(),
            memory: OnceLock::new(),
            opening: Mutex::new(()),
            table: Mutex::default(),
        }
    }

    /// Where the memory comes from, of at least so many bytes; from the heap unless said before its first use.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        allow(dead_code, reason = "no device keeps actors there")
    )]
    pub(crate) fn set_source(
        &self,
        source: impl Fn(usize) -> Result<Memory> + Send + Sync + 'static,
    ) -> bool {
        self.source.set(Box::new(source)).is_ok()
    }

    /// The memory.
    pub(crate) fn memory(&self) -> Result<&Memory> {
        if let Some(memory) = self.memory.get() {
            return Ok(memory);
        }
        let _opening = lock(&self.opening);
        if let Some(memory) = self.memory.get() {
            return Ok(memory);
        }
        let bytes = self.bytes.next_multiple_of(GRAIN as usize * 4);
        let memory = match self.source.get() {
            Some(source) => source(bytes)?,
            None => Memory::on_heap(bytes / 4),
        };
        let grains = u32::try_from(memory.words / GRAIN as usize).unwrap_or(u32::MAX / GRAIN);
        lock(&self.table).free.insert(0, grains);
        Ok(self.memory.get_or_init(|| memory))
    }

    /// A block with room for so many words behind its head.
    pub(crate) fn alloc(self: &Arc<Arena>, words: usize) -> Result<Lease> {
        let memory = self.memory()?;
        let grains = u32::try_from((HEAD_WORDS + words).div_ceil(GRAIN as usize));
        let mut table = lock(&self.table);
        let mut found = grains.ok().and_then(|grains| table.take(grains));
        if found.is_none() {
            table.sweep(memory);
            found = grains.ok().and_then(|grains| table.take(grains));
        }
        let Some((first, grains)) = found else {
            let free: u64 = table.free.values().map(|grains| u64::from(*grains)).sum();
            return Err(ActorError::ArenaFull {
                asked: (HEAD_WORDS + words) * 4,
                free: free as usize * GRAIN as usize * 4,
                bytes: memory.words * 4,
            });
        };
        table.generation = table.generation.wrapping_add(1);
        let generation = table.generation;
        let at = first * GRAIN;
        table.live.insert(
            at,
            Live {
                grains,
                generation,
                claimed: true,
            },
        );
        drop(table);
        let id = BlockId { at, generation };
        let mut lease = self.lease(memory, id, grains);
        let limit = words as u32;
        if let [capacity, used, lent, mark, ..] = lease.words_mut() {
            (*capacity, *used, *lent, *mark) = (limit, 0, 1, generation);
        }
        Ok(lease)
    }

    /// A block with room for so many words, of which these are in use.
    pub(crate) fn alloc_with(self: &Arc<Arena>, limit: usize, words: &[u32]) -> Result<Lease> {
        let mut lease = self.alloc(limit.max(words.len()))?;
        let data = lease.data_mut();
        let (used, free) = data.split_at_mut(words.len());
        used.copy_from_slice(words);
        free.fill(0);
        lease.set_used(words.len());
        Ok(lease)
    }

    fn lease(self: &Arc<Arena>, memory: &Memory, id: BlockId, grains: u32) -> Lease {
        // SAFETY: the table gives out grains inside the memory only.
        let base = unsafe { memory.base.add(id.at as usize) };
        Lease {
            arena: Arc::clone(self),
            id,
            base,
            words: (grains * GRAIN) as usize,
        }
    }

    /// The right to touch the block that a packet brings; `None` where it brings none, or another has the block.
    #[inline]
    pub(crate) fn claim(self: &Arc<Arena>, packet: &Packet) -> Option<Lease> {
        BlockId::of(packet).and_then(|id| self.claim_block(id))
    }

    fn claim_block(self: &Arc<Arena>, id: BlockId) -> Option<Lease> {
        let memory = self.memory.get()?;
        let mut table = lock(&self.table);
        let live = table.live.get_mut(&id.at)?;
        if live.generation != id.generation || live.claimed {
            return None;
        }
        live.claimed = true;
        let grains = live.grains;
        drop(table);
        Some(self.lease(memory, id, grains))
    }

    /// What a block holds that nobody touches: its room, and the words in use. Nobody can claim it meanwhile.
    pub(crate) fn copy_of(&self, id: BlockId) -> Option<(u32, Vec<u32>)> {
        let memory = self.memory.get()?;
        let table = lock(&self.table);
        let live = table.live.get(&id.at)?;
        if live.generation != id.generation || live.claimed {
            return None;
        }
        let len = (live.grains * GRAIN) as usize;
        // SAFETY: the block lies in the memory. It is not claimed, and cannot be while the table is locked; who calls this has stopped the
        // devices that might hold it.
        let words = unsafe { std::slice::from_raw_parts(memory.base.add(id.at as usize).as_ptr(), len) };
        let (limit, used) = extent(words);
        Some((limit as u32, words.get(HEAD_WORDS..HEAD_WORDS + used)?.to_vec()))
    }

    /// The packet is nowhere any more: frees its block, if nobody touches it.
    #[inline]
    pub(crate) fn release(self: &Arc<Arena>, packet: &Packet) {
        drop(self.claim(packet));
    }

    /// How much is in use.
    pub(crate) fn usage(&self) -> ArenaUsage {
        let Some(memory) = self.memory.get() else {
            return ArenaUsage::default();
        };
        let mut table = lock(&self.table);
        table.sweep(memory);
        let grains: u64 = table.live.values().map(|live| u64::from(live.grains)).sum();
        ArenaUsage {
            blocks: table.live.len(),
            bytes: grains as usize * GRAIN as usize * 4,
            capacity: memory.words * 4,
        }
    }
}

impl Table {
    /// So many free grains in a row.
    fn take(&mut self, grains: u32) -> Option<(u32, u32)> {
        let (first, there) = self
            .free
            .iter()
            .find(|(_, there)| **there >= grains)
            .map(|(first, there)| (*first, *there))?;
        self.free.remove(&first);
        if there > grains {
            self.free.insert(first + grains, there - grains);
        }
        Some((first, grains))
    }

    /// Frees a block.
    fn give(&mut self, at: u32) {
        let Some(live) = self.live.remove(&at) else {
            return;
        };
        let (mut first, mut grains) = (at / GRAIN, live.grains);
        if let Some((before, there)) = self.free.range(..first).next_back()
            && before + there == first
        {
            (first, grains) = (*before, there + grains);
        }
        if let Some(there) = self.free.remove(&(first + grains)) {
            grains += there;
        }
        self.free.insert(first, grains);
    }

    /// Frees the blocks that a device has done with.
    fn sweep(&mut self, memory: &Memory) {
        if !memory.from_device {
            return;
        }
        let done = |at: u32| {
            // SAFETY: a live block's head lies inside the memory. Whoever might write the word plainly has claimed the block; of others a
            // device alone stores to it, atomically.
            let lent = unsafe { AtomicU32::from_ptr(memory.base.as_ptr().add(at as usize + HEAD_LENT)) };
            lent.load(Ordering::Acquire) == 0
        };
        let all: Vec<u32> = self
            .live
            .iter()
            .filter(|(at, live)| !live.claimed && done(**at))
            .map(|(at, _)| *at)
            .collect();
        all.into_iter().for_each(|at| self.give(at));
    }
}

/// The right to touch a block, alone. The block is freed with it, unless it is given on.
pub(crate) struct Lease {
    arena: Arc<Arena>,
    id: BlockId,
    base: NonNull<u32>,
    words: usize,
}

// SAFETY: it stands for memory that nobody else touches, and that its arena keeps.
unsafe impl Send for Lease {}
// SAFETY: through a shared reference the memory can only be read.
unsafe impl Sync for Lease {}

impl Lease {
    /// The whole block.
    pub(crate) fn words(&self) -> &[u32] {
        // SAFETY: the block lies in the arena's memory; it is claimed, so nobody writes it but through this lease, borrowed here.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.words) }
    }

    /// The whole block.
    pub(crate) fn words_mut(&mut self) -> &mut [u32] {
        // SAFETY: the block lies in the arena's memory; it is claimed, so nobody reaches it but through this lease, borrowed here.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.words) }
    }

    /// What lies behind the head.
    pub(crate) fn data(&self) -> &[u32] {
        self.words().get(HEAD_WORDS..).unwrap_or_default()
    }

    /// What lies behind the head.
    pub(crate) fn data_mut(&mut self) -> &mut [u32] {
        self.words_mut().get_mut(HEAD_WORDS..).unwrap_or_default()
    }

    /// How many words behind the head the block was asked for, and how many are in use.
    pub(crate) fn extent(&self) -> (usize, usize) {
        extent(self.words())
    }

    /// So many words are in use.
    pub(crate) fn set_used(&mut self, used: usize) {
        if let [_, word, ..] = self.words_mut() {
            *word = used as u32;
        }
    }

    /// What was taken of it since `used` words were in use is free and zeros again.
    pub(crate) fn take_back(&mut self, used: usize) {
        let (_, now) = self.extent();
        if let Some(taken) = self.data_mut().get_mut(used..now) {
            taken.fill(0);
        }
        self.set_used(used);
    }

    /// Gives the block to the message that names it.
    pub(crate) fn keep(self) -> BlockId {
        let lease = std::mem::ManuallyDrop::new(self);
        let id = lease.id;
        {
            let mut table = lock(&lease.arena.table);
            if let Some(live) = table.live.get_mut(&id.at) {
                live.claimed = false;
            }
        }
        // SAFETY: the lease is not dropped, so its count of the arena is given back here, once; it is not used behind this.
        drop(unsafe { std::ptr::read(&raw const lease.arena) });
        id
    }
}

// What a block's head says, as far as it can be.
fn extent(block: &[u32]) -> (usize, usize) {
    match block {
        [limit, used, ..] => {
            let limit = (block.len() - HEAD_WORDS).min(*limit as usize);
            (limit, limit.min(*used as usize))
        }
        _ => (0, 0),
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        lock(&self.arena.table).give(self.id.at);
    }
}

impl Memory {
    /// Words that devices reach, too.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        allow(dead_code, reason = "no device keeps actors there")
    )]
    pub(crate) fn mapped(buffer: &MappedBuffer<u32>) -> Memory {
        Memory {
            base: buffer.host_ptr(),
            words: buffer.len(),
            owner: Box::new(buffer.clone()),
            from_device: true,
        }
    }

    /// Zeroed words of the process.
    fn on_heap(words: usize) -> Memory {
        let owner = HeapWords(NonNull::from(Box::leak(vec![0u32; words].into_boxed_slice())));
        Memory {
            base: owner.0.cast(),
            words,
            owner: Box::new(owner),
            from_device: false,
        }
    }
}

/// Words that are reached through pointers only.
struct HeapWords(NonNull<[u32]>);

// SAFETY: it owns plain memory and reaches it only to free it.
unsafe impl Send for HeapWords {}
// SAFETY: as above.
unsafe impl Sync for HeapWords {}

impl Drop for HeapWords {
    fn drop(&mut self) {
        // SAFETY: the pointer is that of a leaked box (`on_heap`), which is freed here only; leases keep the arena, and so this.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_alone_are_freed_once_and_join_again() {
        let arena = Arc::new(Arena::new(16 * 64));
        assert_eq!(arena.usage(), ArenaUsage::default());
        let mut blocks: Vec<Lease> = (0..4).map(|_| arena.alloc(60).unwrap()).collect();
        let usage = arena.usage();
        assert_eq!((usage.blocks, usage.bytes, usage.capacity), (4, 1024, 1024));
        let full = arena.alloc(1).err().unwrap();
        assert!(full.to_string().contains(" 20 bytes (0 of 1024 bytes are free)"));
        for (i, block) in blocks.iter_mut().enumerate() {
            block.data_mut().fill(i as u32);
        }
        assert!(
            blocks
                .iter()
                .enumerate()
                .all(|(i, block)| block.data().iter().all(|word| *word == i as u32))
        );
        drop(blocks.remove(1));
        let third = blocks.remove(1).keep();
        let first = arena.claim_block(third).unwrap();
        assert!(arena.claim_block(third).is_none());
        drop(first);
        assert!(arena.claim_block(third).is_none());
        // The two that are free lie beside each other.
        let large = arena.alloc(120).unwrap().keep();
        assert_eq!(large.at, 64);
        drop(arena.claim_block(large));
        drop(blocks);
        assert_eq!(arena.usage().blocks, 0);
        assert_eq!(arena.alloc(252).unwrap().keep().at, 0);
    }
}
