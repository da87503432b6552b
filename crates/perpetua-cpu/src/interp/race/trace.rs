//! For tests: every access that the detector sees on this thread.

use std::cell::RefCell;

use super::Touch;

/// An access to memory that lanes share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Buffers count first, in the order of the parameters.
    pub(crate) region: u32,
    pub(crate) offset: u64,
    pub(crate) size: u32,
    pub(crate) writes: bool,
    /// The block's number.
    pub(crate) block: u32,
}

thread_local! {
    static SEEN: RefCell<Vec<Seen>> = const { RefCell::new(Vec::new()) };
}

pub(super) fn note(block: u32, touch: &Touch, writes: bool) {
    let Touch {
        region, offset, size, ..
    } = *touch;
    SEEN.with_borrow_mut(|seen| {
        seen.push(Seen {
            region,
            offset,
            size,
            writes,
            block,
        })
    });
}

/// What was accessed since the last call.
pub(crate) fn take() -> Vec<Seen> {
    SEEN.take()
}
