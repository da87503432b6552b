//! Barriers and fences. The only lane of a launch waits for nobody; fences order its memory as on a device.

use std::sync::atomic::{Ordering, fence};

/// Waits until all lanes of the block are here; orders their accesses to shared and global memory.
///
/// All lanes must come here, or none: conditions around it are the same for all of them. They may depend on what a `&[T]`
/// parameter holds; then a launch whose arguments bind that memory to a `&mut [T]`, too, is refused.
pub fn sync_threads() {
    fence(Ordering::SeqCst);
}

/// An acquire and release fence between the lanes of the device.
pub fn thread_fence() {
    fence(Ordering::SeqCst);
}

/// An acquire and release fence between the lanes of the block.
pub fn thread_fence_block() {
    fence(Ordering::SeqCst);
}

/// An acquire and release fence between the device, its peers and the host.
pub fn thread_fence_system() {
    fence(Ordering::SeqCst);
}
