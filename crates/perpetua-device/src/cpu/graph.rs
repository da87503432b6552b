//! The CPU backend's graphs: captured work, launches that follow one another put together.

use std::any::Any;
use std::sync::Arc;

use super::batch::Batch;
use super::launch::Launch;
use super::work::Work;
use crate::backend::GpuGraph;
use crate::ptr::ContextId;

// The same work with launches that follow one another, and wait for no other work, put together. Others may wait for other streams'
// work, and meanwhile must hold no claim of a native one's.
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
            Work::Launch(launch) if launch.joins_others() => launches.push(launch),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BackendKind, CompileOptions, Device, KernelSource, LaunchConfig, Result, args};

    #[test]
    fn no_waiting_thread_runs_a_captured_kernel_that_stays() -> Result<()> {
        let device = Device::new(BackendKind::Cpu, 0)?;
        let text = "kernel stays(x: buffer<u32, read_write>) {\n  %0: u32 = const 1\n  nap %0\n}\n";
        let kernel = device.compile(&KernelSource::IrText(text), &CompileOptions::default())?;
        let (kernel, x) = (kernel.only()?, device.zeros::<u32>(1)?);
        let stream = device.create_stream()?;
        let graph = stream.capture(|stream| {
            (0..2).try_for_each(|_| stream.launch(&kernel, LaunchConfig::new(1, 1), args![&x]))
        })?;
        assert_eq!(graph.node_count(), 2);
        let captured = graph.inner().as_any().downcast_ref::<CpuGraph>();
        let work = captured.map_or(&[][..], CpuGraph::work);
        assert!(!work.is_empty() && work.iter().all(|work| !work.may_run_here()));
        Ok(())
    }
}
