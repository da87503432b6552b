//! Mutexes whose values are valid between any two statements, so that a panic elsewhere leaves them usable.

use std::sync::{Mutex, MutexGuard};

/// Locks, also after a panic elsewhere.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// Held while a driver looks for devices or opens one, and while CUDA closes one. NVIDIA's Vulkan and CUDA drivers share state in a
/// process that they do not guard: used by two threads at once there, they corrupt the heap (see docs/driver-workarounds.md). Taken last: whoever
/// holds it takes no other lock of ours.
#[cfg(any(feature = "cuda", all(feature = "wgpu", not(target_arch = "wasm32"))))]
pub(crate) fn opening() -> MutexGuard<'static, ()> {
    static OPENING: Mutex<()> = Mutex::new(());
    lock(&OPENING)
}
