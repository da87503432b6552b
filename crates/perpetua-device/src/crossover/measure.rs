//! Measures the kernels beside this file on the host's processor and on a device.

use std::time::{Duration, Instant};

use super::{Crossover, CrossoverPoint, Data, Operation};
use crate::buffer::Buffer;
use crate::device::Device;
use crate::dim::LaunchConfig;
use crate::error::Result;
use crate::host_buffer::PinnedBuffer;
use crate::info::{AdapterType, BackendKind};
use crate::kernel::Kernel;
use crate::signature::KernelArg;
use crate::source::{CompileOptions, KernelSource};

/// Sizes that are measured where nobody says which, in elements.
const SIZES: [usize; 7] = [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22];
/// Larger ones of these are left out where one run takes longer.
const LONGEST: Duration = Duration::from_millis(50);
/// Which set of operations and kernels the kept tables have.
const VERSION: &str = "3";

impl Crossover {
    /// The host's processor or the first GPU: where work of this kind and size is done sooner. At first use on a machine times are
    /// measured, within a second or two, and kept beside the other caches ([`crate::cache`]). Without a GPU it is the host's processor.
    ///
    /// ```
    /// use perpetua_device::{Crossover, Data, Operation};
    /// let device = Crossover::best(Operation::MatrixProduct, 100 * 100, Data::OnHost)?;
    /// # Ok::<(), perpetua_device::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the devices say while they are measured.
    pub fn best(operation: Operation, elements: u64, data: Data) -> Result<Device> {
        let host = Device::new(BackendKind::Cpu, 0)?;
        match gpu() {
            None => Ok(host),
            Some(device) => Crossover::faster_of(host, device, operation, elements, data),
        }
    }

    /// The same for a host and a device of the caller's choice.
    ///
    /// # Errors
    /// As [`Crossover::best`].
    pub fn faster_of(
        host: Device,
        device: Device,
        operation: Operation,
        elements: u64,
        data: Data,
    ) -> Result<Device> {
        let table = Crossover::between(&host, &device)?;
        match table.is_device_faster(operation.name(), elements, data) {
            Some(true) => Ok(device),
            Some(false) | None => Ok(host),
        }
    }

    /// The times kept for a host and a device, measured where there are none.
    ///
    /// # Errors
    /// As [`Crossover::best`].
    pub fn between(host: &Device, device: &Device) -> Result<Crossover> {
        let key = super::key(host.info(), device.info(), VERSION);
        if let Some(kept) = Crossover::kept(key) {
            return Ok(kept);
        }
        let table = Crossover::new(times(host, device, &SIZES, Some(LONGEST))?);
        table.keep(key);
        Ok(table)
    }

    /// Measures the times anew, at these sizes however long that takes, or at the usual ones. They are kept beside what is kept of
    /// other sizes; given is what was measured now.
    ///
    /// # Errors
    /// As [`Crossover::best`].
    pub fn measure(host: &Device, device: &Device, sizes: &[usize]) -> Result<Crossover> {
        let key = super::key(host.info(), device.info(), VERSION);
        let points = match sizes {
            [] => times(host, device, &SIZES, Some(LONGEST))?,
            sizes => times(host, device, sizes, None)?,
        };
        let found = Crossover::new(points);
        let mut all = found.points.clone();
        if let Some(kept) = Crossover::kept(key) {
            let is_new = |point: &CrossoverPoint| {
                let same = |new: &CrossoverPoint| new.size == point.size && new.operation == point.operation;
                found.points.iter().any(same)
            };
            all.extend(kept.points.into_iter().filter(|point| !is_new(point)));
        }
        Crossover::new(all).keep(key);
        Ok(found)
    }
}

// The first that there is: on Apple's machines wgpu's is Metal's.
fn gpu() -> Option<Device> {
    let mut found = [BackendKind::Cuda, BackendKind::Wgpu]
        .into_iter()
        .filter_map(|kind| Device::new(kind, 0).ok());
    found.find(|device| device.info().adapter_type != AdapterType::Cpu)
}

fn times(
    host: &Device,
    device: &Device,
    sizes: &[usize],
    longest: Option<Duration>,
) -> Result<Vec<CrossoverPoint>> {
    let mut points = Vec::new();
    for operation in Operation::ALL {
        for &size in sizes {
            let point = {
                let on_device = Case::new(device, operation, size)?;
                CrossoverPoint {
                    operation: operation.name().into(),
                    size: size as u64,
                    host: Case::new(host, operation, size)?.time(Data::There)?,
                    device: on_device.time(Data::There)?,
                    transfers: on_device.time(Data::OnHost)?,
                }
            };
            let is_long = longest.is_some_and(|longest| point.host.max(point.transfers) > longest);
            points.push(point);
            if is_long {
                break;
            }
        }
    }
    Ok(points)
}

/// A kernel at one size, ready to run.
struct Case<'a> {
    device: &'a Device,
    kernel: Kernel,
    config: LaunchConfig,
    // The two that are read, and what is written where that is none of them.
    buffers: Vec<Buffer<f32>>,
    value: Option<KernelArg<'static>>,
    content: Vec<f32>,
}

impl<'a> Case<'a> {
    fn new(device: &'a Device, operation: Operation, size: usize) -> Result<Case<'a>> {
        let side = size.isqrt();
        let lanes = match device.info().on_host {
            // A dot product is a loop: as many lanes as keep the device busy.
            true => 1 << 13,
            false => 1 << 16,
        };
        let blocks = size.min(lanes).div_ceil(256) as u32;
        let (text, config, elements, results, value) = match operation {
            Operation::ElementWise => (
                include_str!("element_wise.ir"),
                LaunchConfig::linear(size, 256),
                size,
                0,
                Some(KernelArg::from(0.5f32)),
            ),
            Operation::Reduction => (
                include_str!("reduction.ir"),
                LaunchConfig::new(blocks, 256),
                size,
                1,
                None,
            ),
            Operation::MatrixProduct => (
                include_str!("matrix_product.ir"),
                LaunchConfig::tiled(side as u32, side as u32, (16, 16)),
                side * side,
                side * side,
                Some(KernelArg::from(side as u32)),
            ),
        };
        let content = vec![1.0f32; elements];
        let mut buffers = vec![device.upload(&content)?, device.upload(&content)?];
        if results > 0 {
            buffers.push(device.zeros(results)?);
        }
        let options = CompileOptions::default();
        Ok(Case {
            device,
            kernel: device.compile(&KernelSource::IrText(text), &options)?.only()?,
            config,
            buffers,
            value,
            content,
        })
    }

    fn launch(&self) -> Result<()> {
        let mut args: Vec<KernelArg<'_>> = self.buffers.iter().map(Buffer::arg).collect();
        args.extend(self.value.clone());
        let stream = self.device.default_stream();
        stream.launch(&self.kernel, self.config, &args)
    }

    fn run(&self, host: Option<&mut Host>) -> Result<()> {
        let Some(host) = host else {
            self.launch()?;
            return self.device.synchronize();
        };
        let stream = self.device.default_stream();
        for buffer in self.buffers.iter().take(2) {
            host.content.copy_to(&stream, buffer)?;
        }
        self.launch()?;
        if let (Some(result), Some(output)) = (host.result.take(), self.buffers.last()) {
            host.result = Some(result.read_from(&stream, output)?.wait()?);
        }
        Ok(())
    }

    // The shortest of some runs, of which the first only warms up; with the data's way there and back, by pinned memory.
    fn time(&self, data: Data) -> Result<Duration> {
        let results = self.buffers.last().map_or(0, Buffer::len);
        let mut host = match data {
            Data::OnHost => Some(Host {
                content: self.device.pin(&self.content)?,
                result: Some(self.device.pin(&vec![0.0; results])?),
            }),
            Data::There => None,
        };
        self.run(host.as_mut())?;
        let begun = Instant::now();
        let mut best = Duration::MAX;
        for _ in 0..20 {
            let start = Instant::now();
            self.run(host.as_mut())?;
            best = best.min(start.elapsed());
            if begun.elapsed() > Duration::from_millis(20) {
                break;
            }
        }
        Ok(best)
    }
}

/// What the host sends and gets back, in memory from which devices copy at full speed.
struct Host {
    content: PinnedBuffer<f32>,
    // Away while it is written.
    result: Option<PinnedBuffer<f32>>,
}

#[cfg(all(test, feature = "cpu"))]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_compute_what_is_measured() {
        let device = Device::new(BackendKind::Cpu, 0).expect("the CPU");
        let size = 45 * 45;
        for (operation, expected) in [
            (Operation::ElementWise, 1.5),
            (Operation::Reduction, size as f32),
            (Operation::MatrixProduct, 45.0),
        ] {
            let case = Case::new(&device, operation, size).expect("a kernel");
            case.launch().expect("a launch");
            let found = case.buffers.last().expect("a result").read().expect("a read");
            assert!(found.iter().all(|x| *x == expected), "{operation:?}: {found:?}");
        }
    }
}
