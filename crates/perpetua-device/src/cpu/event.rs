//! Points in a CPU stream's work, with the time at which they were reached.

use std::any::Any;
use std::future::poll_fn;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;

use super::device::Shared;
use super::stream::Queue;
use crate::backend::{GpuEvent, check_owner};
use crate::error::{Error, Result};
use crate::future::{BoxFuture, wake_all};
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
    state: Mutex<State>,
    changed: Condvar,
    // Whose work reaches it; gone when the stream has ended, and then it was reached.
    queue: Weak<Queue>,
}

#[derive(Default)]
struct State {
    reached: Option<Reached>,
    wakers: Vec<Waker>,
}

impl Mark {
    pub(super) fn new(queue: &Arc<Queue>) -> Arc<Mark> {
        Arc::new(Mark {
            state: Mutex::default(),
            changed: Condvar::new(),
            queue: Arc::downgrade(queue),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(super) fn reach(&self) {
        let mut state = self.lock();
        state.reached = Some(now());
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        self.changed.notify_all();
        wake_all(wakers);
    }

    pub(super) fn is_reached(&self) -> bool {
        self.lock().reached.is_some()
    }

    /// Waits until it is reached, and helps with the work before it.
    pub(super) fn wait(&self) {
        while !self.is_reached() {
            if self.queue.upgrade().is_some_and(|q| q.help()) {
                continue;
            }
            let state = self.lock();
            if state.reached.is_none() {
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
            let mut state = self.mark.lock();
            if state.reached.is_some() {
                return Poll::Ready(self.shared.alive());
            }
            state.wakers.push(cx.waker().clone());
            Poll::Pending
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
            event.mark.lock().reached.ok_or(Error::InvalidState {
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
