//! Memory that kernels write to through raw pointers: a program's static threadgroup variables, and buffers with
//! guard bytes on both sides.

use super::compile::MslProgram;
use std::ffi::c_void;
use std::ptr;

/// What uninitialised threadgroup memory and guard bytes hold.
pub(super) const POISON: u8 = 0xA5;
/// Guard bytes on each side of a buffer, and the alignment of its start.
const GUARD: usize = 256;

/// The static threadgroup variables of a program.
pub(super) struct StaticMemory {
    start: *mut u8,
    pub(super) length: usize,
}

impl StaticMemory {
    pub(super) fn of(program: &MslProgram) -> Self {
        let (mut start, mut length) = (ptr::null_mut(), 0);
        // SAFETY: the driver writes the section's start and length, both zero where there is none.
        unsafe { (program.entries.threadgroup_memory)(&mut start, &mut length) };
        Self { start, length }
    }

    pub(super) fn poison(&self) {
        if self.length > 0 {
            // SAFETY: the section is writable memory of the loaded object with that length, and no lane runs now.
            unsafe { ptr::write_bytes(self.start, POISON, self.length) };
        }
    }
}

/// Memory for a kernel: aligned, with guard bytes before and after. Kernels write to it through raw pointers, so it
/// is never borrowed while lanes run.
pub(super) struct Guarded {
    blocks: *mut [Block],
    pub(super) length: usize,
}

/// A unit of guarded memory with its alignment.
#[derive(Clone, Copy)]
#[repr(C, align(256))]
struct Block([u8; GUARD]);

impl Guarded {
    pub(super) fn holding(bytes: &[u8]) -> Self {
        let blocks = vec![Block([POISON; GUARD]); bytes.len().div_ceil(GUARD) + 2].into_boxed_slice();
        let guarded = Self {
            blocks: Box::into_raw(blocks),
            length: bytes.len(),
        };
        // SAFETY: the blocks between the guards have room for `bytes`, and are fresh, so nothing overlaps.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), guarded.start().cast(), bytes.len()) };
        guarded
    }

    /// Where the kernel's bytes begin: behind the first guard.
    pub(super) fn start(&self) -> *mut c_void {
        // SAFETY: there are at least two blocks, so one block on is inside the allocation.
        unsafe { self.blocks.cast::<Block>().add(1) }.cast()
    }

    /// Everything, guards included.
    fn bytes(&self) -> &[u8] {
        let blocks = self.blocks.len();
        // SAFETY: the blocks are one live allocation of initialised bytes, and no lane runs while this is borrowed.
        unsafe { std::slice::from_raw_parts(self.blocks.cast::<u8>(), blocks * GUARD) }
    }

    pub(super) fn contents(&self) -> &[u8] {
        &self.bytes()[GUARD..GUARD + self.length]
    }

    pub(super) fn poison(&self) {
        // SAFETY: the allocation has `length` bytes from there, and no lane runs now.
        unsafe { ptr::write_bytes(self.start().cast::<u8>(), POISON, self.length) };
    }

    pub(super) fn broken_guard(&self) -> Option<&'static str> {
        let bytes = self.bytes();
        let whole = |guard: &[u8]| guard.iter().all(|byte| *byte == POISON);
        if !whole(&bytes[..GUARD]) {
            Some("before the start")
        } else if !whole(&bytes[GUARD + self.length..]) {
            Some("past the end")
        } else {
            None
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `Box::into_raw` and is given back once.
        drop(unsafe { Box::from_raw(self.blocks) });
    }
}
