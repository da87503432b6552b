//! The CPU backend's streams: a queue of work for each, run in order by whoever is there first.
//!
//! A queue is *running* while one thread executes its front; nobody else takes work from it meanwhile, so work runs in
//! order. That thread is the submitter (idle queue, small work), the queue's own thread (started when work is first
//! deferred), or a thread that waits for the queue. Each notifies the condition variable when it stops running, so a waiter
//! either helps or sleeps until there is something to see. Work can be counted, not found: number `n` has ended
//! when `finished >= n`.
//!
//! Queues run beside each other. What work of several accesses at the same time is claimed (`claims`).

use std::any::Any;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Poll, Waker};

use super::device::Shared;
use super::event::{CpuEvent, Mark};
use super::graph::CpuGraph;
use super::work::{Fetching, Reading, Work};
use crate::backend::{Captured, GpuEvent, GpuGraph, GpuStream, check_owner, check_sizes};
use crate::error::{Error, Result};
use crate::future::{BoxFuture, wake_all};
use crate::host::Transfer;
use crate::info::BackendKind;
use crate::ptr::{ContextId, DevicePtr, HostBytes};

/// A stream's work.
pub(super) struct Queue {
    shared: Arc<Shared>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    pending: VecDeque<Work>,
    running: bool,
    // Whether what runs has claimed no memory.
    unclaimed: bool,
    submitted: u64,
    finished: u64,
    // The first unreported error of finished work.
    error: Option<Error>,
    wakers: Vec<Waker>,
    capture: Option<Captured<Work>>,
    has_thread: bool,
    // Threads asleep on the condition variable: waking nobody costs a system call, too.
    sleepers: usize,
    // How often threads have gone to sleep there.
    slept: u64,
    // The stream was dropped: its thread ends when the work has.
    closed: bool,
}

type Guard<'a> = MutexGuard<'a, State>;

impl Queue {
    fn lock(&self) -> Guard<'_> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn sleep<'a>(&self, mut guard: Guard<'a>) -> Guard<'a> {
        guard.sleepers += 1;
        guard.slept += 1;
        let mut guard = self.changed.wait(guard).unwrap_or_else(|e| e.into_inner());
        guard.sleepers -= 1;
        guard
    }

    // Runs one piece of work, already taken off the queue, with `running` set and the lock open meanwhile.
    fn execute<'a>(&'a self, state: Guard<'a>, work: &Work) -> Guard<'a> {
        self.try_execute(state, work, true, None).0
    }

    // The same; unless `patient`, it is not run (and the second part is false) where other streams' work has to be waited for. `idle`:
    // how often threads have slept when the queue had nothing to do and got this; who sleeps since before then does not wait for it.
    fn try_execute<'a>(
        &'a self,
        mut state: Guard<'a>,
        work: &Work,
        patient: bool,
        idle: Option<u64>,
    ) -> (Guard<'a>, bool) {
        let must_claim = !work.waits_for_nobody() || self.shared.must_claim();
        (state.running, state.unclaimed) = (true, !must_claim);
        drop(state);
        let mut has_run = true;
        let run = || match work.claim(&self.shared, must_claim, patient) {
            Some((sharing, _claim)) => work.run(self.shared.id, sharing),
            None => {
                has_run = false;
                Ok(())
            }
        };
        // A panic here is a kernel's (native code that breaks its contract): it must not leave the queue running for ever.
        let result = self.shared.alive().and_then(|()| {
            catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|cause| {
                Err(Error::Driver {
                    backend: BackendKind::Cpu,
                    operation: "running a kernel".into(),
                    message: format!("it panicked: {}", panic_text(&*cause)),
                })
            })
        });
        if !has_run {
            let mut state = self.lock();
            state.running = false;
            return (state, false);
        }
        if let (Err(_), Work::Mark(mark)) = (&result, work) {
            // A lost device reaches no mark by running, but nobody may wait for it for ever.
            mark.reach();
        }
        let mut state = self.lock();
        state.running = false;
        state.finished += 1;
        if let Err(error) = result {
            state.error.get_or_insert(error);
        }
        if state.sleepers != 0 && (idle != Some(state.slept) || !state.pending.is_empty()) {
            self.changed.notify_all();
        }
        if state.wakers.is_empty() {
            return (state, true);
        }
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wake_all(wakers);
        (self.lock(), true)
    }

    fn submit(self: &Arc<Self>, work: Work) -> Result<u64> {
        self.shared.alive()?;
        let mut state = self.lock();
        if let Some(captured) = &mut state.capture {
            captured.push(work)?;
            return Ok(state.submitted);
        }
        state.submitted += 1;
        let number = state.submitted;
        if !state.running && state.pending.is_empty() && work.is_small() {
            // Submitting does not wait for other streams' work.
            let idle = Some(state.slept);
            let (guard, has_run) = self.try_execute(state, &work, false, idle);
            if has_run {
                return Ok(number);
            }
            state = guard;
            // Others' may have come behind it meanwhile.
            state.pending.push_front(work);
        } else {
            state.pending.push_back(work);
        }
        if state.sleepers != 0 {
            self.changed.notify_all();
        }
        let has_thread = state.has_thread || self.start_thread();
        state.has_thread = has_thread;
        drop(state);
        // Work must not depend on somebody waiting for it: where no thread can be had, this one does it.
        while !has_thread && self.help() {}
        Ok(number)
    }

    /// Waits until nothing runs that has claimed no memory.
    pub(super) fn finish_unclaimed(&self) {
        let mut state = self.lock();
        while state.running && state.unclaimed {
            state = self.sleep(state);
        }
    }

    // Copies `src` to `dst`, of equal length, after all work submitted so far; waits for it.
    fn fetch(&self, src: &DevicePtr, dst: &mut [u8]) -> Result<()> {
        check_owner(self.shared.id, src.context_id(), "read", "the buffer")?;
        check_sizes("read", src.len(), dst.len() as u64)?;
        self.shared.alive()?;
        // SAFETY: the queue runs each piece of work once, and this returns when it has: `dst` is borrowed until then.
        let work = Work::Fetch(unsafe { Fetching::new(src, dst) });
        let mut state = self.lock();
        Queue::refuse_capture(&state, "read")?;
        state.submitted += 1;
        let number = state.submitted;
        if !state.running && state.pending.is_empty() {
            let idle = Some(state.slept);
            drop(self.try_execute(state, &work, true, idle));
        } else {
            // What this thread may not run has started the queue's when it was submitted.
            state.pending.push_back(work);
            drop(self.wait_for(state, number));
        }
        self.take_error()
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn start_thread(self: &Arc<Self>) -> bool {
        let queue = Arc::clone(self);
        let thread = std::thread::Builder::new().name("perpetua-stream".into());
        thread.spawn(move || queue.work_until_closed()).is_ok()
    }

    #[cfg(target_arch = "wasm32")]
    fn start_thread(self: &Arc<Self>) -> bool {
        false
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn work_until_closed(&self) {
        let mut state = self.lock();
        loop {
            if state.running {
                state = self.sleep(state);
            } else if let Some(work) = state.pending.pop_front() {
                state = self.execute(state, &work);
            } else if state.closed {
                return;
            } else {
                state = self.sleep(state);
            }
        }
    }

    // The next piece of work, if nobody is at one and this thread may run it.
    fn take(state: &mut State) -> Option<Work> {
        if state.running || !state.pending.front()?.may_run_here() {
            return None;
        }
        state.pending.pop_front()
    }

    /// Runs one piece of pending work, if there is one that this thread may run.
    pub(super) fn help(&self) -> bool {
        let mut state = self.lock();
        let Some(work) = Queue::take(&mut state) else {
            return false;
        };
        drop(self.execute(state, &work));
        true
    }

    // Waits, helping, until work number `number` has ended.
    fn wait_for<'a>(&'a self, mut state: Guard<'a>, number: u64) -> Guard<'a> {
        while state.finished < number {
            state = match Queue::take(&mut state) {
                Some(work) => self.execute(state, &work),
                // Somebody else is at it, or the queue's thread will be.
                None => self.sleep(state),
            };
        }
        state
    }

    fn refuse_capture(state: &State, operation: &'static str) -> Result<()> {
        if state.capture.is_none() {
            return Ok(());
        }
        Err(Error::InvalidState {
            operation,
            cause: "the stream is capturing a graph",
            remedy: "end the capture first",
        })
    }

    /// Waits for all work submitted so far. Reports no error of that work.
    pub(super) fn wait(&self) -> Result<()> {
        self.shared.alive()?;
        let state = self.lock();
        Queue::refuse_capture(&state, "synchronise")?;
        let number = state.submitted;
        drop(self.wait_for(state, number));
        self.shared.alive()
    }

    /// The same without blocking.
    pub(super) async fn finished(&self) -> Result<()> {
        self.shared.alive()?;
        let number = {
            let state = self.lock();
            Queue::refuse_capture(&state, "synchronise")?;
            state.submitted
        };
        self.finished_number(number).await;
        self.shared.alive()
    }

    /// Wakes `waker` when the next piece of work has ended, and holds nothing meanwhile.
    pub(super) fn wake_later(&self, waker: &Waker) {
        let mut state = self.lock();
        if !state.wakers.iter().any(|w| w.will_wake(waker)) {
            state.wakers.push(waker.clone());
        }
    }

    async fn finished_number(&self, number: u64) {
        poll_fn(|cx| {
            let mut state = self.lock();
            if state.finished >= number {
                return Poll::Ready(());
            }
            state.wakers.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// An error of work that goes on.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn tell(&self, error: Error) {
        self.lock().error.get_or_insert(error);
    }

    /// The first unreported error of finished work; clears it.
    pub(super) fn take_error(&self) -> Result<()> {
        self.shared.alive()?;
        self.lock().error.take().map_or(Ok(()), Err)
    }
}

fn panic_text(cause: &(dyn Any + Send)) -> String {
    let text = cause.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| cause.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

pub(super) struct CpuStream(Arc<Queue>);

impl CpuStream {
    pub(super) fn new(shared: Arc<Shared>) -> CpuStream {
        CpuStream(Arc::new(Queue {
            shared,
            state: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    pub(super) fn queue(&self) -> &Arc<Queue> {
        &self.0
    }

    pub(super) fn submit(&self, work: Work) -> Result<()> {
        self.0.submit(work).map(drop)
    }
}

impl Drop for CpuStream {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_all();
    }
}

impl GpuStream for CpuStream {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn context_id(&self) -> ContextId {
        self.0.shared.id
    }

    fn copy_to_device(&self, src: &[u8], dst: &DevicePtr) -> Result<()> {
        self.submit(Work::Transfer(Transfer::write(self.0.shared.id, src, dst)?))
    }

    fn copy(&self, src: &DevicePtr, dst: &DevicePtr) -> Result<()> {
        self.submit(Work::Transfer(Transfer::copy(self.0.shared.id, src, dst)?))
    }

    fn fill(&self, dst: &DevicePtr, pattern: &[u8]) -> Result<()> {
        self.submit(Work::Transfer(Transfer::fill(self.0.shared.id, dst, pattern)?))
    }

    fn read(&self, src: &DevicePtr) -> BoxFuture<'static, Result<HostBytes>> {
        let queue = Arc::clone(&self.0);
        let reading = Reading::new(src);
        let submitted = check_owner(queue.shared.id, src.context_id(), "read", "the buffer")
            .and_then(|()| Queue::refuse_capture(&queue.lock(), "read"))
            .and_then(|()| queue.submit(Work::Read(Arc::clone(&reading))));
        Box::pin(async move {
            queue.finished_number(submitted?).await;
            queue.take_error()?;
            Ok(HostBytes::new(reading.take()))
        })
    }

    fn read_blocking(&self, src: &DevicePtr, dst: &mut [u8]) -> Result<()> {
        self.0.fetch(src, dst)
    }

    fn record(&self) -> Result<Arc<dyn GpuEvent>> {
        Queue::refuse_capture(&self.0.lock(), "record an event")?;
        let mark = Mark::new(&self.0);
        self.submit(Work::Mark(Arc::clone(&mark)))?;
        Ok(Arc::new(CpuEvent {
            shared: Arc::clone(&self.0.shared),
            mark,
        }))
    }

    fn wait(&self, event: &dyn GpuEvent) -> Result<()> {
        check_owner(self.0.shared.id, event.context_id(), "wait", "the event")?;
        let event: &CpuEvent = event.as_any().downcast_ref().ok_or_else(|| Error::WrongDevice {
            operation: "wait",
            subject: "the event".into(),
        })?;
        self.submit(Work::Wait(Arc::clone(&event.mark)))
    }

    fn flush(&self) -> Result<()> {
        self.0.shared.alive()
    }

    fn is_idle(&self) -> Result<bool> {
        self.0.shared.alive()?;
        let state = self.0.lock();
        Ok(state.finished == state.submitted)
    }

    fn synchronize(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            self.0.finished().await?;
            self.0.take_error()
        })
    }

    fn synchronize_blocking(&self) -> Result<()> {
        self.0.wait()?;
        self.0.take_error()
    }

    fn take_fault(&self) -> Result<()> {
        self.0.take_error()
    }

    fn begin_capture(&self) -> Result<()> {
        self.0.shared.alive()?;
        let mut state = self.0.lock();
        Queue::refuse_capture(&state, "begin a capture")?;
        state.capture = Some(Captured::default());
        Ok(())
    }

    fn end_capture(&self) -> Result<Arc<dyn GpuGraph>> {
        self.0.shared.alive()?;
        let work = Captured::end(&mut self.0.lock().capture)?;
        let shared = &self.0.shared;
        Ok(Arc::new(CpuGraph::new(shared.id, work, shared.cache())))
    }

    fn launch_graph(&self, graph: &dyn GpuGraph) -> Result<()> {
        check_owner(
            self.0.shared.id,
            graph.context_id(),
            "launch a graph",
            "the graph",
        )?;
        let graph: &CpuGraph = graph.as_any().downcast_ref().ok_or_else(|| Error::WrongDevice {
            operation: "launch a graph",
            subject: "the graph".into(),
        })?;
        graph.work().iter().try_for_each(|work| self.submit(work.clone()))
    }
}
