//! Streams and graphs as the contract sees them.

use std::any::Any;
use std::sync::Arc;

use super::core::{StreamCore, host_bytes, put};
use super::event::Event;
use super::memory::{Memory, Pool, Staging};
use super::recording::Command;
use super::shared::Shared;
use super::signal::Signal;
use super::transfer::Movers;
use crate::backend::{
    Captured, GpuEvent, GpuGraph, GpuStream, check_copy, check_fill, check_owner, check_sizes, failed,
};
use crate::error::{Error, Result};
use crate::future::BoxFuture;
use crate::ptr::{ContextId, DevicePtr, HostBytes};

/// A stream.
pub(super) struct Stream(Arc<StreamCore>);

impl Stream {
    pub(super) fn new(
        shared: &Arc<Shared>,
        pool: &Arc<Pool>,
        staging: &Arc<Staging>,
        movers: &Arc<Movers>,
    ) -> Result<Stream> {
        StreamCore::new(shared, pool, staging, movers).map(Stream)
    }

    pub(super) fn core(&self) -> &Arc<StreamCore> {
        &self.0
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // Work outlives its stream; a capture that nobody can end does not.
        let mut rec = self.0.recording();
        rec.capture = None;
        rec.submit(&self.0.shared);
    }
}

impl GpuStream for Stream {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn context_id(&self) -> ContextId {
        self.0.shared.id
    }

    fn copy_to_device(&self, src: &[u8], dst: &DevicePtr) -> Result<()> {
        let core = &self.0;
        core.shared.check()?;
        check_owner(core.shared.id, dst.context_id(), "copy", "the destination buffer")?;
        check_sizes("copy", src.len() as u64, dst.len())?;
        if src.is_empty() {
            return Ok(());
        }
        let mut rec = core.recording();
        if rec.capture.is_none() && dst.downcast::<Memory>().is_some() {
            return core.write(&mut rec, src, dst);
        }
        drop(rec);
        // Host memory of ours keeps the bytes: for the graph, or until the copy's turn has come.
        let kept = core.staging.pinned(src.len() as u64)?;
        put(&kept, src);
        core.submit(Command::Copy(kept, dst.clone()))
    }

    fn copy(&self, src: &DevicePtr, dst: &DevicePtr) -> Result<()> {
        self.0.shared.check()?;
        check_copy(self.0.shared.id, src, dst)?;
        if src.is_empty() {
            return Ok(());
        }
        self.0.submit(Command::Copy(src.clone(), dst.clone()))
    }

    fn fill(&self, dst: &DevicePtr, pattern: &[u8]) -> Result<()> {
        self.0.shared.check()?;
        check_fill(self.0.shared.id, dst, pattern)?;
        if dst.is_empty() {
            return Ok(());
        }
        self.0.submit(Command::Fill(dst.clone(), pattern.to_vec()))
    }

    fn read(&self, src: &DevicePtr) -> BoxFuture<'static, Result<HostBytes>> {
        let (core, src) = (Arc::clone(&self.0), src.clone());
        let back = check_owner(core.shared.id, src.context_id(), "read", "the buffer")
            .and_then(|()| core.read_back(Some(&src), "reading back"));
        match back {
            Ok(back) => Box::pin(async move {
                let bytes = core
                    .ended(&back, |bytes| read_bytes(&src, bytes).to_vec())
                    .await?;
                Ok(HostBytes::new(bytes))
            }),
            Err(error) => failed(error),
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn read_blocking(&self, src: &DevicePtr, dst: &mut [u8]) -> Result<()> {
        let core = &self.0;
        check_owner(core.shared.id, src.context_id(), "read", "the buffer")?;
        check_sizes("read", src.len(), dst.len() as u64)?;
        let back = core.read_back(Some(src), "reading back")?;
        core.wait_for(&back, |bytes| dst.copy_from_slice(read_bytes(src, bytes)))
    }

    #[cfg(target_arch = "wasm32")]
    fn read_blocking(&self, _: &DevicePtr, _: &mut [u8]) -> Result<()> {
        Err(Error::CannotBlock {
            operation: "reading back",
        })
    }

    fn record(&self) -> Result<Arc<dyn GpuEvent>> {
        Ok(Arc::new(Event::record(&self.0)?))
    }

    fn wait(&self, event: &dyn GpuEvent) -> Result<()> {
        let core = &self.0;
        core.shared.check()?;
        check_owner(core.shared.id, event.context_id(), "wait", "the event")?;
        // The event's work has been submitted to the one queue; what is recorded here comes behind it, but for what the
        // host does.
        if let Some(event) = event.as_any().downcast_ref::<Event>() {
            core.recording().afterwards.extend_from_slice(&event.before);
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.0.shared.check()?;
        let mut rec = self.0.recording();
        if rec.capture.is_none() {
            rec.submit(&self.0.shared);
        }
        Ok(())
    }

    fn is_idle(&self) -> Result<bool> {
        let shared = &self.0.shared;
        self.flush()?;
        let done = Arc::<Signal>::default();
        let signal = Arc::clone(&done);
        shared.queue.on_submitted_work_done(move || signal.set(true));
        // Whatever goes wrong here is seen by `check`.
        let _ = shared.device.poll(wgpu::PollType::Poll);
        shared.check()?;
        Ok(done.get().is_some() && self.0.recording().pending().is_empty())
    }

    fn synchronize(&self) -> BoxFuture<'_, Result<()>> {
        Arc::clone(&self.0).synchronize()
    }

    fn synchronize_blocking(&self) -> Result<()> {
        self.0.synchronize_blocking()
    }

    fn take_fault(&self) -> Result<()> {
        self.0.shared.check()?;
        self.0.take_fault()
    }

    fn begin_capture(&self) -> Result<()> {
        let mut rec = self.0.running("beginning a capture")?;
        rec.submit(&self.0.shared);
        rec.capture = Some(Captured::default());
        Ok(())
    }

    fn end_capture(&self) -> Result<Arc<dyn GpuGraph>> {
        self.0.shared.check()?;
        let commands = Captured::end(&mut self.0.recording().capture)?;
        Ok(Arc::new(Graph {
            commands,
            id: self.0.shared.id,
        }))
    }

    fn launch_graph(&self, graph: &dyn GpuGraph) -> Result<()> {
        let core = &self.0;
        check_owner(core.shared.id, graph.context_id(), "launch a graph", "the graph")?;
        let Some(graph) = graph.as_any().downcast_ref::<Graph>() else {
            return Err(Error::WrongDevice {
                operation: "launch a graph",
                subject: "the graph".into(),
            });
        };
        let mut rec = core.running("launching a graph")?;
        graph
            .commands
            .iter()
            .try_for_each(|command| core.record(&mut rec, command))
    }
}

/// What a read gives: the bytes that came back from the device, or those of host memory.
fn read_bytes<'a>(src: &'a DevicePtr, back: &'a [u8]) -> &'a [u8] {
    if src.downcast::<Memory>().is_some() {
        back
    } else {
        host_bytes(src)
    }
}

/// Commands to be recorded again.
struct Graph {
    commands: Vec<Command>,
    id: ContextId,
}

impl GpuGraph for Graph {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn context_id(&self) -> ContextId {
        self.id
    }
    fn node_count(&self) -> usize {
        self.commands.len()
    }
}
