//! Points in a CPU stream's work, with the time at which they were reached.

use std::any::Any;
use std::future::poll_fn;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::task::Poll;
use std::time::Duration;

use super::device::Shared;
use super::stream::Queue;
use crate::backend::{GpuEvent, check_owner};
use crate::error::{Error, Result};
use crate::future::BoxFuture;
use crate::ptr::ContextId;

// Browsers' `Instant` does not work on wasm32-unknown-unknown.
#[cfg(not(target_arch = "wasm32"))]
type Reached = std::time::Instant;
#[cfg(target_arch = "wasm32")]
type Reached = ();

fn now() -> Reached {
    #[cfg(not(target_arch = "wasm32"))]
    return std::time::Instant::now();
}

/// A point in a stream's work.
pub(super) struct Mark {
    reached: Mutex<Option<Reached>>,
    changed: Condvar,
    // Whose work reaches it; gone when the stream has ended, and then it was reached.
    queue: Weak<Queue>,
}

impl Mark {
    pub(super) fn new(queue: &Arc<Queue>) -> Arc<Mark> {
        Arc::new(Mark {
            reached: Mutex::default(),
            changed: Condvar::new(),
            queue: Arc::downgrade(queue),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Reached>> {
        self.reached.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Tells threads that wait. Futures are woken by the queue, when it no longer runs: an executor may do anything when
    /// woken, and may wait for this queue.
    pub(super) fn reach(&self) {
        *self.lock() = Some(now());
        self.changed.notify_all();
    }

    pub(super) fn is_reached(&self) -> bool {
        self.lock().is_some()
    }

    /// Waits until it is reached, and helps with the work before it.
    pub(super) fn wait(&self) {
        while !self.is_reached() {
            if self.queue.upgrade().is_some_and(|q| q.help()) {
                continue;
            }
            let state = self.lock();
            if state.is_none() {
                // The stream's thread, or another that helps, is at it, and notifies when done.
                drop(self.changed.wait(state));
            }
        }
    }
}

pub(super) struct CpuEvent {
    pub(super) shared: Arc<Shared>,
    pub(super) mark: Arc<Mark>,
}

impl GpuEvent for CpuEvent {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn context_id(&self) -> ContextId {
        self.shared.id
    }

    fn is_complete(&self) -> Result<bool> {
        self.shared.alive()?;
        Ok(self.mark.is_reached())
    }

    fn synchronize(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(poll_fn(|cx| {
            if !self.mark.is_reached()
                && let Some(queue) = self.mark.queue.upgrade()
            {
                queue.wake_later(cx.waker());
            }
            // Looked at once more: the queue wakes those that it knew of when the mark was reached.
            match self.mark.is_reached() {
                true => Poll::Ready(self.shared.alive()),
                false => Poll::Pending,
            }
        }))
    }

    fn synchronize_blocking(&self) -> Result<()> {
        self.mark.wait();
        self.shared.alive()
    }

    fn elapsed_since(&self, earlier: &dyn GpuEvent) -> Result<Duration> {
        self.shared.alive()?;
        check_owner(self.shared.id, earlier.context_id(), "elapsed time", "the event")?;
        let earlier: &CpuEvent = earlier
            .as_any()
            .downcast_ref()
            .ok_or_else(|| Error::WrongDevice {
                operation: "elapsed time",
                subject: "the event".into(),
            })?;
        let reached = |event: &CpuEvent| {
            event.mark.lock().ok_or(Error::InvalidState {
                operation: "elapsed time",
                cause: "an event is not complete",
                remedy: "synchronise it first",
            })
        };
        between(reached(earlier)?, reached(self)?)
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn between(earlier: Reached, later: Reached) -> Result<Duration> {
    Ok(later.saturating_duration_since(earlier))
}

#[cfg(target_arch = "wasm32")]
fn between((): Reached, (): Reached) -> Result<Duration> {
    Err(Error::Unsupported {
        backend: crate::BackendKind::Cpu,
        operation: "measure time in a browser",
        remedy: "measure with the page's clock",
    })
}
