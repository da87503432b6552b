//! The null backend's streams: work ends within the call that submits it, so streams, events and graphs are simple.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::device::Shared;
use super::launch::NullLaunch;
use crate::backend::{Captured, GpuEvent, GpuGraph, GpuStream, check_owner};
use crate::error::{Error, Result};
use crate::future::{BoxFuture, ready};
use crate::host::{self, Transfer};
use crate::ptr::{ContextId, DevicePtr, HostBytes};

/// Submitted or captured work.
#[derive(Clone)]
pub(super) enum Work {
    Transfer(Transfer),
    Launch(
        NullLaunch,
        #[expect(dead_code, reason = "keeps a graph's memory alive")] Vec<DevicePtr>,
    ),
}

pub(super) struct NullStream {
    shared: Arc<Shared>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    capture: Option<Captured<Work>>,
    fault: Option<Error>,
}

impl NullStream {
    pub(super) fn new(shared: Arc<Shared>) -> NullStream {
        NullStream {
            shared,
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(super) fn submit(&self, work: Work) -> Result<()> {
        self.shared.alive()?;
        let mut state = self.lock();
        match &mut state.capture {
            Some(captured) => captured.push(work),
            None => {
                self.run(&mut state, &work);
                Ok(())
            }
        }
    }

    fn run(&self, state: &mut State, work: &Work) {
        match work {
            Work::Transfer(transfer) => transfer.run(),
            Work::Launch(launch, _) => {
                self.shared.record(launch.clone());
                if let Some(fault) = self.shared.take_planned_fault() {
                    state.fault.get_or_insert(fault.into());
                }
            }
        }
    }

    // Fails while capturing, and with the unreported fault, which it clears.
    fn settle(&self, operation: &'static str) -> Result<()> {
        self.shared.alive()?;
        let mut state = self.lock();
        if state.capture.is_some() {
            return Err(capturing(operation));
        }
        state.fault.take().map_or(Ok(()), Err)
    }
}

fn capturing(operation: &'static str) -> Error {
    Error::InvalidState {
        operation,
        cause: "the stream is capturing a graph",
        remedy: "end the capture first",
    }
}

impl GpuStream for NullStream {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn context_id(&self) -> ContextId {
        self.shared.id
    }

    fn copy_to_device(&self, src: &[u8], dst: &DevicePtr) -> Result<()> {
        self.submit(Work::Transfer(Transfer::write(self.shared.id, src, dst)?))
    }

    fn copy(&self, src: &DevicePtr, dst: &DevicePtr) -> Result<()> {
        self.submit(Work::Transfer(Transfer::copy(self.shared.id, src, dst)?))
    }

    fn fill(&self, dst: &DevicePtr, pattern: &[u8]) -> Result<()> {
        self.submit(Work::Transfer(Transfer::fill(self.shared.id, dst, pattern)?))
    }

    fn read(&self, src: &DevicePtr) -> BoxFuture<'static, Result<HostBytes>> {
        let mut bytes = vec![0; src.len() as usize];
        ready(
            self.read_blocking(src, &mut bytes)
                .map(|()| HostBytes::new(bytes)),
        )
    }

    fn read_blocking(&self, src: &DevicePtr, dst: &mut [u8]) -> Result<()> {
        self.settle("read")?;
        host::read(self.shared.id, src, dst)
    }

    fn record(&self) -> Result<Arc<dyn GpuEvent>> {
        self.shared.alive()?;
        if self.lock().capture.is_some() {
            return Err(capturing("record an event"));
        }
        Ok(Arc::new(NullEvent(Arc::clone(&self.shared))))
    }

    fn wait(&self, event: &dyn GpuEvent) -> Result<()> {
        self.shared.alive()?;
        check_owner(self.shared.id, event.context_id(), "wait", "the event")
    }

    fn flush(&self) -> Result<()> {
        self.shared.alive()
    }

    fn is_idle(&self) -> Result<bool> {
        self.shared.alive().map(|()| true)
    }

    fn synchronize(&self) -> BoxFuture<'_, Result<()>> {
        ready(self.synchronize_blocking())
    }

    fn synchronize_blocking(&self) -> Result<()> {
        self.settle("synchronise")
    }

    fn take_fault(&self) -> Result<()> {
        self.shared.alive()?;
        self.lock().fault.take().map_or(Ok(()), Err)
    }

    fn begin_capture(&self) -> Result<()> {
        self.shared.alive()?;
        let mut state = self.lock();
        if state.capture.is_some() {
            return Err(capturing("begin a capture"));
        }
        state.capture = Some(Captured::default());
        Ok(())
    }

    fn end_capture(&self) -> Result<Arc<dyn GpuGraph>> {
        self.shared.alive()?;
        let work = Captured::end(&mut self.lock().capture)?;
        Ok(Arc::new(NullGraph {
            context: self.shared.id,
            work,
        }))
    }

    fn launch_graph(&self, graph: &dyn GpuGraph) -> Result<()> {
        check_owner(self.shared.id, graph.context_id(), "launch a graph", "the graph")?;
        let graph: &NullGraph = graph.as_any().downcast_ref().ok_or_else(|| Error::WrongDevice {
            operation: "launch a graph",
            subject: "the graph".into(),
        })?;
        graph.work.iter().try_for_each(|work| self.submit(work.clone()))
    }
}

struct NullEvent(Arc<Shared>);

impl GpuEvent for NullEvent {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn context_id(&self) -> ContextId {
        self.0.id
    }

    fn is_complete(&self) -> Result<bool> {
        self.0.alive().map(|()| true)
    }

    fn synchronize(&self) -> BoxFuture<'_, Result<()>> {
        ready(self.0.alive())
    }

    fn synchronize_blocking(&self) -> Result<()> {
        self.0.alive()
    }

    fn elapsed_since(&self, earlier: &dyn GpuEvent) -> Result<Duration> {
        self.0.alive()?;
        check_owner(self.0.id, earlier.context_id(), "elapsed time", "the event")?;
        // Nothing runs, so it takes no time.
        Ok(Duration::ZERO)
    }
}

struct NullGraph {
    context: ContextId,
    work: Vec<Work>,
}

impl GpuGraph for NullGraph {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn context_id(&self) -> ContextId {
        self.context
    }

    fn node_count(&self) -> usize {
        self.work.len()
    }
}
