//! Mutexes whose values are valid between any two statements, so that a panic elsewhere leaves them usable.

use std::sync::{Mutex, MutexGuard};

/// Locks, also after a panic elsewhere.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
