//! A captured graph, ready to be launched.

use std::any::Any;
use std::sync::Arc;

use cudarc::driver::sys;

use super::capture::Replay;
use super::driver::Shared;
use crate::backend::GpuGraph;
use crate::ptr::{ContextId, DevicePtr};

/// What a capture became, and what its nodes use.
pub(super) struct Graph {
    pub(super) exec: sys::CUgraphExec,
    pub(super) nodes: usize,
    pub(super) replay: Arc<Replay>,
    pub(super) kept: Vec<DevicePtr>,
    pub(super) shared: Arc<Shared>,
}

// SAFETY: the driver's handle may be used from any thread; launches of one graph are serialised by the driver.
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Sync for Graph {}

impl GpuGraph for Graph {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn context_id(&self) -> ContextId {
        self.shared.id
    }
    fn node_count(&self) -> usize {
        self.nodes
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.shared.enter().is_ok() {
            // SAFETY: made in `Stream::end_capture`, destroyed once; the driver lets running launches end.
            let _ = unsafe { sys::cuGraphExecDestroy(self.exec) };
        }
    }
}
