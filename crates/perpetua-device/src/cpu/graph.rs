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

    /// Rows of 512 numbers that move on by one row a step, from one buffer to the other.
    #[cfg(target_arch = "x86_64")]
    const MOVE: &str = "\
kernel move(x: buffer<u32, read>, y: buffer<u32, read_write>, height: u32) {
  %0: u32 = block_idx.y
  %1: u32 = param height
  %2: bool = lt %0, %1
  if %2 {
    %3: u32 = const 512
    %4: u32 = mul %0, %3
    %5: u32 = block_idx.x
    %6: u32 = block_dim.x
    %7: u32 = mul %5, %6
    %8: u32 = thread_idx.x
    %9: u32 = add %7, %8
    %10: u32 = add %4, %9
    %11: u32 = const 1
    %12: u32 = max %0, %11
    %13: u32 = sub %12, %11
    %14: u32 = mul %13, %3
    %15: u32 = add %14, %9
    %16: u32 = load x[%15]
    %17: u32 = add %16, %11
    store y[%10], %17
  }
}
";

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn machine_code_is_blocked_in_time() -> Result<()> {
        use crate::cpu::{CpuContext, threads};

        let device = Device::new(BackendKind::Cpu, 0)?;
        if let Some(cpu) = device.context().as_any().downcast_ref::<CpuContext>() {
            cpu.assume_cache(1 << 15);
        }
        let kernel = device.compile(&KernelSource::IrText(MOVE), &CompileOptions::default())?;
        let kernel = kernel.only()?;
        const HEIGHT: usize = 301;
        let first: Vec<u32> = (0..512 * HEIGHT as u32).collect();
        let fields = [device.upload(&first)?, device.zeros::<u32>(first.len())?];
        let stream = device.create_stream()?;
        device.synchronize()?;
        let config = LaunchConfig::new([8, HEIGHT as u32 + 3, 1], [64, 1, 1]);
        let graph = stream.capture(|stream| {
            (0..40).try_for_each(|i| {
                let (x, y) = (&fields[i % 2], &fields[(i + 1) % 2]);
                stream.launch(&kernel, config, args![x, y, HEIGHT as u32])
            })
        })?;
        graph.launch(&stream)?;
        stream.synchronize()?;
        let from = |i: usize| (i / 512).saturating_sub(40) * 512 + i % 512;
        let expect: Vec<u32> = (0..first.len()).map(|i| from(i) as u32 + 40).collect();
        assert!(fields[0].read()? == expect);
        let captured = graph.inner().as_any().downcast_ref::<CpuGraph>();
        let blocked = |work: &Work| matches!(work, Work::Batch(batch) if batch.is_wavefront());
        let all = captured.is_some_and(|graph| graph.work().iter().all(blocked));
        let has_code = !perpetua_cpu::interp::Width::detect().is_empty();
        assert_eq!(all, has_code && threads::count() > 1);
        Ok(())
    }
}
