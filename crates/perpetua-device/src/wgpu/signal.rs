//! Something that will be known later, and who waits for it: futures, threads, and the thread that drives the device for
//! futures. Must not know what it is.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use super::shared::lock;

/// Whether something has ended, and well.
#[derive(Default)]
pub(super) struct Signal(Mutex<State>);

#[derive(Default)]
struct State {
    ended: Option<bool>,
    wakers: Vec<Waker>,
}

impl Signal {
    /// Ends it, once, and wakes all who wait.
    pub(super) fn set(&self, ok: bool) {
        let wakers = {
            let mut state = lock(&self.0);
            state.ended.get_or_insert(ok);
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether it ended well; `None` while it has not ended.
    pub(super) fn get(&self) -> Option<bool> {
        lock(&self.0).ended
    }

    /// Waits for it; something else must drive the device.
    pub(super) fn ended(self: &Arc<Self>) -> Ended {
        Ended(Arc::clone(self))
    }
}

/// Ready when a signal has ended, with whether it ended well.
pub(super) struct Ended(Arc<Signal>);

impl Future for Ended {
    type Output = bool;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let mut state = lock(&self.0.0);
        if let Some(ok) = state.ended {
            return Poll::Ready(ok);
        }
        if !state.wakers.iter().any(|w| w.will_wake(cx.waker())) {
            state.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

#[cfg(not(target_arch = "wasm32"))]
pub(super) use driver::Driver;

#[cfg(not(target_arch = "wasm32"))]
mod driver {
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    use super::Signal;
    use crate::wgpu::shared::{Shared, lock};

    type Awaited = (Arc<Signal>, Option<wgpu::SubmissionIndex>);

    /// What futures wait for. One thread waits with the device while there is any, so that any executor will do; it ends
    /// with the last.
    #[derive(Default)]
    pub(in crate::wgpu) struct Driver(Mutex<State>);

    #[derive(Default)]
    struct State {
        awaited: VecDeque<Awaited>,
        running: bool,
    }

    impl Driver {
        /// Sees to it that `signal`, which comes with a submission, ends.
        pub(in crate::wgpu) fn drive(
            shared: &Arc<Shared>,
            signal: &Arc<Signal>,
            submission: Option<wgpu::SubmissionIndex>,
        ) {
            if signal.get().is_some() {
                return;
            }
            let mut state = lock(&shared.driver.0);
            state.awaited.push_back((Arc::clone(signal), submission));
            if state.running {
                return;
            }
            state.running = true;
            drop(state);
            let own = Arc::clone(shared);
            let thread = std::thread::Builder::new().name("perpetua-wgpu".into());
            if thread.spawn(move || run(&own)).is_err() {
                // No thread to be had: this one waits.
                run(shared);
            }
        }
    }

    fn run(shared: &Shared) {
        loop {
            let (signal, submission) = {
                let mut state = lock(&shared.driver.0);
                match state.awaited.pop_front() {
                    Some(next) => next,
                    None => {
                        state.running = false;
                        return;
                    }
                }
            };
            shared.wait_for(&signal, submission.as_ref());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_who_waits_is_woken_and_the_first_end_counts() {
        let signal = Arc::<Signal>::default();
        let mut cx = Context::from_waker(Waker::noop());
        let (mut a, mut b) = (signal.ended(), signal.ended());
        assert!(Pin::new(&mut a).poll(&mut cx).is_pending());
        signal.set(false);
        signal.set(true);
        assert_eq!(Pin::new(&mut a).poll(&mut cx), Poll::Ready(false));
        assert_eq!(Pin::new(&mut b).poll(&mut cx), Poll::Ready(false));
        assert_eq!(signal.get(), Some(false));
    }
}
