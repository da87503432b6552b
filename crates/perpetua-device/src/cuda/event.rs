//! Marks in a stream: events with times, and futures that the driver wakes.

use std::any::Any;
use std::ffi::c_void;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use cudarc::driver::sys::{self, CUresult};

use super::core::StreamCore;
use super::driver::{Event, lock};
use super::stream::foreign;
use crate::backend::{GpuEvent, check_owner};
use crate::error::{Error, Result};
use crate::future::{BoxFuture, ready, wake_all};
use crate::ptr::ContextId;

/// An event that carries a time.
pub(super) struct TimedEvent {
    pub(super) event: Event,
    pub(super) core: Arc<StreamCore>,
}

impl TimedEvent {
    /// Whether it has happened; what was held for the work before it is then let go.
    fn happened(&self) -> Result<bool> {
        let complete = self.event.is_complete()?;
        if complete {
            self.core.release();
        }
        Ok(complete)
    }
}

impl GpuEvent for TimedEvent {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn context_id(&self) -> ContextId {
        self.core.shared.id
    }
    fn is_complete(&self) -> Result<bool> {
        self.happened()
    }
    fn synchronize(&self) -> BoxFuture<'_, Result<()>> {
        match self.happened() {
            Ok(false) => Box::pin(async {
                // An event wakes nobody: look again each time the executor comes round.
                std::future::poll_fn(|cx| match self.happened() {
                    Ok(false) => {
                        cx.waker().wake_by_ref();
                        std::thread::yield_now();
                        Poll::Pending
                    }
                    done => Poll::Ready(done.map(|_| ())),
                })
                .await
            }),
            done => ready(done.map(|_| ())),
        }
    }
    fn synchronize_blocking(&self) -> Result<()> {
        self.event.wait()?;
        self.core.release();
        Ok(())
    }
    fn elapsed_since(&self, earlier: &dyn GpuEvent) -> Result<Duration> {
        let Some(earlier) = earlier.as_any().downcast_ref::<TimedEvent>() else {
            return Err(foreign("elapsed time", "the earlier event"));
        };
        check_owner(
            self.context_id(),
            earlier.context_id(),
            "elapsed time",
            "the earlier event",
        )?;
        if !earlier.event.is_complete()? || !self.event.is_complete()? {
            return Err(Error::InvalidState {
                operation: "elapsed time",
                cause: "an event has not happened yet",
                remedy: "synchronise with the later event first",
            });
        }
        let milliseconds = self.event.elapsed(&earlier.event)?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3))
    }
}

#[derive(Default)]
struct Signal {
    state: Mutex<(bool, Option<Waker>)>,
}

/// Called by the driver's thread when a stream reaches a mark, also when the context is lost.
unsafe extern "C" fn on_ended(data: *mut c_void) {
    // SAFETY: `data` is the reference that `Ended::behind` made with `Arc::into_raw` for this one call, and takes back where the driver
    // refused to make it.
    let signal = unsafe { Arc::from_raw(data.cast_const().cast::<Signal>()) };
    let waker = {
        let mut state = lock(&signal.state);
        state.0 = true;
        state.1.take()
    };
    wake_all(waker);
}

/// Ready when the work submitted before it was made has ended.
pub(super) struct Ended(Arc<Signal>);

impl Ended {
    /// A future that is ready when the work submitted so far has ended.
    pub(super) fn behind(core: &StreamCore) -> Result<Ended> {
        core.shared.enter()?;
        let signal: Arc<Signal> = Arc::default();
        let raw = Arc::into_raw(Arc::clone(&signal)).cast_mut().cast::<c_void>();
        // SAFETY: `on_ended` takes the reference that `raw` stands for; the driver calls it exactly once.
        let code = unsafe { sys::cuLaunchHostFunc(core.handle, Some(on_ended), raw) };
        if code != CUresult::CUDA_SUCCESS {
            // SAFETY: not submitted, so the reference is still ours.
            drop(unsafe { Arc::from_raw(raw.cast_const().cast::<Signal>()) });
        }
        core.shared.check(code, || "cuLaunchHostFunc".into())?;
        Ok(Ended(signal))
    }
}

impl Future for Ended {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<()> {
        let mut state = lock(&self.0.state);
        if state.0 {
            return Poll::Ready(());
        }
        state.1 = Some(cx.waker().clone());
        Poll::Pending
    }
}
