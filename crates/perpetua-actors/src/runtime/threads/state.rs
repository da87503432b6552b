//! The memory of an actor's state. Must not know what it means: the handler's type description tells which bytes belong to values.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use perpetua_device::layout::leaves;
use perpetua_ir::front::rust::TypeDesc;

use crate::handler::Handler;

/// Zeroed memory of a handler's state's size and alignment, which it owns.
pub(super) struct StateMemory {
    memory: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns plain memory and hands out a pointer; who uses the pointer answers for exclusion.
unsafe impl Send for StateMemory {}
// SAFETY: as above; nothing can be read through a shared reference alone.
unsafe impl Sync for StateMemory {}

impl StateMemory {
    /// For states of this handler; `None` where its size and alignment are no layout.
    pub(super) fn new(handler: &Handler) -> Option<StateMemory> {
        let layout = Layout::from_size_align(handler.state_size, handler.state_align).ok()?;
        if layout.size() == 0 {
            let memory = NonNull::new(std::ptr::without_provenance_mut(layout.align()))?;
            return Some(StateMemory { memory, layout });
        }
        // SAFETY: the layout's size is not zero (checked above).
        let memory = unsafe { alloc_zeroed(layout) };
        let memory = NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout));
        Some(StateMemory { memory, layout })
    }

    /// Where it is.
    pub(super) fn pointer(&self) -> *mut u8 {
        self.memory.as_ptr()
    }

    /// Overwrites it with `bytes`, as many as it has.
    ///
    /// # Safety
    /// Nobody else reaches the memory meanwhile.
    pub(super) unsafe fn write(&mut self, bytes: &[u8]) {
        let len = bytes.len().min(self.layout.size());
        // SAFETY: both have `len` bytes; they are apart, since `bytes` is borrowed and this is owned; the caller excludes others.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.pointer(), len) };
    }

    /// Keeps what it holds now.
    ///
    /// # Safety
    /// Nobody else writes the memory meanwhile.
    pub(super) unsafe fn keep(&self) -> Before {
        let size = self.layout.size();
        let mut bytes = SPARE.take();
        bytes.clear();
        bytes.reserve(size);
        // SAFETY: there is room for `size` bytes, which the state has; the two are apart. Bytes that may be uninitialised stay so: the
        // elements are `MaybeUninit`, which is always a value. The caller excludes writers.
        unsafe {
            std::ptr::copy_nonoverlapping(self.pointer().cast(), bytes.as_mut_ptr(), size);
            bytes.set_len(size);
        }
        Before(bytes)
    }

    /// Makes it what it was.
    ///
    /// # Safety
    /// Nobody else reaches the memory meanwhile; `before` is of a state of the same handler.
    pub(super) unsafe fn put_back(&mut self, before: &Before) {
        let len = before.0.len().min(self.layout.size());
        // SAFETY: both have `len` bytes, and are apart: `before` owns its own. The caller excludes others.
        unsafe { std::ptr::copy_nonoverlapping(before.0.as_ptr(), self.pointer().cast(), len) };
    }

    /// Its bytes, zeros where they belong to no value of the type.
    ///
    /// # Safety
    /// Nobody else writes the memory meanwhile; it holds a value of `ty`, whose size it has.
    pub(super) unsafe fn bytes(&self, ty: &TypeDesc) -> Vec<u8> {
        let mut bytes = vec![0; self.layout.size()];
        for leaf in leaves(ty) {
            let end = leaf.offset + leaf.scalar.size() as usize;
            let Some(out) = bytes.get_mut(leaf.offset..end) else {
                continue;
            };
            // SAFETY: `out` was found inside the memory's size; scalars of a valid value are initialised; the caller excludes writers.
            unsafe {
                let from = self.pointer().add(leaf.offset);
                std::ptr::copy_nonoverlapping(from, out.as_mut_ptr(), out.len());
            }
        }
        bytes
    }
}

/// Bytes that a thread keeps for the next state, at most: larger ones pay for their memory each time.
const SPARE_BYTES: usize = 64 << 10;

thread_local! {
    /// Memory for the next state that this thread keeps.
    static SPARE: Cell<Vec<MaybeUninit<u8>>> = const { Cell::new(Vec::new()) };
}

/// What a state held before a message, padding included.
#[derive(Clone)]
pub(super) struct Before(Vec<MaybeUninit<u8>>);

impl Drop for Before {
    fn drop(&mut self) {
        // A handler that waits for another one keeps two.
        if self.0.capacity() <= SPARE_BYTES {
            SPARE.set(std::mem::take(&mut self.0));
        }
    }
}

impl Drop for StateMemory {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            // SAFETY: allocated in `new` with this layout, and freed only here.
            unsafe { dealloc(self.memory.as_ptr(), self.layout) };
        }
    }
}
