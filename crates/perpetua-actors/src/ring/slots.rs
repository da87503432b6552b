//! Memory for a ring's messages: as many cells as it has room, aligned to cache lines. Must not know which cells hold a message:
//! the rings do.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use crate::sync::UnsafeCell;

/// A cell, which may hold a message.
pub(super) type Cell<T> = UnsafeCell<MaybeUninit<T>>;

/// `capacity` values of `S`, the first at the beginning of a cache line. Messages of 64 bytes so take a line each.
pub(super) struct Slots<S> {
    first: NonNull<S>,
    mask: u64,
}

// SAFETY: it owns its values as a `Box<[S]>` does, and gives out shared references only.
unsafe impl<S: Send> Send for Slots<S> {}
// SAFETY: as above; whoever reaches into a cell through them argues there.
unsafe impl<S: Sync> Sync for Slots<S> {}

impl<S> Slots<S> {
    /// `capacity` (a power of two) values, made by `value`.
    pub(super) fn new(capacity: usize, mut value: impl FnMut(u64) -> S) -> Slots<S> {
        debug_assert!(capacity.is_power_of_two());
        let layout = Self::layout(capacity);
        let first = if layout.size() == 0 {
            NonNull::dangling()
        } else {
            // SAFETY: the layout's size is not zero.
            let bytes = unsafe { alloc(layout) };
            NonNull::new(bytes.cast::<S>()).unwrap_or_else(|| handle_alloc_error(layout))
        };
        for at in 0..capacity {
            // SAFETY: `at` is inside the allocation, or `S` has no size.
            unsafe { first.add(at).write(value(at as u64)) };
        }
        Slots {
            first,
            mask: capacity as u64 - 1,
        }
    }

    fn layout(capacity: usize) -> Layout {
        let array = Layout::array::<S>(capacity).and_then(|array| array.align_to(128));
        // A ring has at most 2^24 slots: of less than 2^39 bytes each the layout always exists.
        array.unwrap_or_else(|_| handle_alloc_error(Layout::new::<S>()))
    }

    #[inline(always)]
    pub(super) fn capacity(&self) -> usize {
        self.mask as usize + 1
    }

    /// Where position `position` lies.
    #[inline(always)]
    pub(super) fn index(&self, position: u64) -> usize {
        (position & self.mask) as usize
    }

    /// The slot of position `position`.
    #[inline(always)]
    pub(super) fn at(&self, position: u64) -> &S {
        // SAFETY: the index is masked to the allocation, whose values live as long as `self`.
        unsafe { self.first.add(self.index(position)).as_ref() }
    }

    /// The slots of `count` positions from `position` on: a run to the memory's end, and one from its beginning.
    pub(super) fn runs(&self, position: u64, count: usize) -> (&[S], &[S]) {
        debug_assert!(count <= self.capacity());
        let at = self.index(position);
        let before_end = count.min(self.capacity() - at);
        // SAFETY: both runs lie inside the allocation, for `count` is at most the capacity; its values live as long as `self`.
        unsafe {
            let first = std::slice::from_raw_parts(self.first.as_ptr().add(at), before_end);
            let second = std::slice::from_raw_parts(self.first.as_ptr(), count - before_end);
            (first, second)
        }
    }
}

impl<S> Drop for Slots<S> {
    fn drop(&mut self) {
        let capacity = self.capacity();
        if std::mem::needs_drop::<S>() {
            for at in 0..capacity {
                // SAFETY: `new` has written every value; each is dropped once, here.
                unsafe { self.first.add(at).drop_in_place() };
            }
        }
        let layout = Self::layout(capacity);
        if layout.size() != 0 {
            // SAFETY: allocated in `new` with the same layout.
            unsafe { dealloc(self.first.as_ptr().cast(), layout) };
        }
    }
}
