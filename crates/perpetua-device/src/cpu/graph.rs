//! The CPU backend's graphs: captured work, launches that follow one another put together.

use std::any::Any;
use std::sync::Arc;

use super::batch::Batch;
use super::launch::Launch;
use super::work::Work;
use crate::backend::GpuGraph;
use crate::ptr::ContextId;

// The same work with launches that follow one another put together.
fn batches(work: Vec<Work>, cache: u64) -> Vec<Work> {
    let (mut all, mut launches) = (Vec::new(), Vec::new());
    let put = |launches: &mut Vec<Arc<Launch>>, all: &mut Vec<Work>| {
        let mut launches = std::mem::take(launches);
        match launches.len() {
            0 => {}
            1 => all.extend(launches.pop().map(Work::Launch)),
            _ => all.push(Work::Batch(Arc::new(Batch::new(launches, cache)))),
        }
    };
    for work in work {
        match work {
            Work::Launch(launch) => launches.push(launch),
            other => {
                put(&mut launches, &mut all);
                all.push(other);
            }
        }
    }
    put(&mut launches, &mut all);
    all
}

/// Captured work: submitted piece by piece at each launch.
pub(super) struct CpuGraph {
    context: ContextId,
    work: Vec<Work>,
}

impl CpuGraph {
    /// `cache`: bytes that a core has in its cache.
    pub(super) fn new(context: ContextId, work: Vec<Work>, cache: u64) -> CpuGraph {
        CpuGraph {
            context,
            work: batches(work, cache),
        }
    }

    pub(super) fn work(&self) -> &[Work] {
        &self.work
    }
}

impl GpuGraph for CpuGraph {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn context_id(&self) -> ContextId {
        self.context
    }

    fn node_count(&self) -> usize {
        let count = |w: &Work| match w {
            Work::Transfer(_) | Work::Launch(_) => 1,
            Work::Batch(batch) => batch.len(),
            Work::Read(_) | Work::Fetch(_) | Work::Mark(_) | Work::Wait(_) => 0,
        };
        self.work.iter().map(count).sum()
    }
}
