//! Where a program is faster by its size: measures a few programs on the host and on a device; the device layer keeps what
//! was found.

use std::time::{Duration, Instant};

use perpetua_device::{
    AdapterType, BackendKind, Crossover, CrossoverPoint, Device, LaunchConfig, PinnedBuffer,
};

use super::{Arguments, BackendType, Executor, Launch, Prepared, new_executor};
use crate::error::Result;
use crate::program::Program;

/// What kind of work a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Each element by itself: `y = a x + y`.
    ElementWise,
    /// All elements into one: a dot product.
    Reduction,
    /// A product of square matrices, in tiles; its size is the elements of one.
    MatrixProduct,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 3] = [
        Operation::ElementWise,
        Operation::Reduction,
        Operation::MatrixProduct,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Operation::ElementWise => "element-wise",
            Operation::Reduction => "reduction",
            Operation::MatrixProduct => "matrix product",
        }
    }
}

/// Where a program's data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Data {
    /// With the executor: it stays there over many programs.
    There,
    /// With the host, which also wants the result: transfers count.
    OnHost,
}

/// Sizes that are measured, in elements.
const SIZES: [usize; 7] = [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22];
/// Larger sizes are left out where one run takes longer.
const LONGEST: Duration = Duration::from_millis(50);
/// Which set of operations and sizes the kept tables have.
const VERSION: &str = "isa 2";

impl Executor {
    /// An executor on the host's processor or on a GPU: where work of this kind and size is done sooner. At first use on a
    /// machine times are measured, within a second or two, and kept beside the other caches ([`perpetua_device::cache`]). Without a GPU it is
    /// the host's processor.
    ///
    /// ```
    /// use perpetua_isa::{Data, Executor, Operation};
    /// let executor = Executor::for_size(Operation::ElementWise, 100, Data::OnHost)?;
    /// # Ok::<(), perpetua_isa::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the devices say while they are measured.
    pub fn for_size(operation: Operation, elements: usize, data: Data) -> Result<Executor> {
        let host = new_executor()?;
        match gpu() {
            None => Ok(host),
            Some(device) => Executor::faster_of(host, device, operation, elements, data),
        }
    }

    /// The same for a host and a device of the caller's choice.
    ///
    /// # Errors
    /// As [`Executor::for_size`].
    pub fn faster_of(
        host: Executor,
        device: Executor,
        operation: Operation,
        elements: usize,
        data: Data,
    ) -> Result<Executor> {
        let table = Executor::crossover(&host, &device)?;
        let with_transfers = data == Data::OnHost;
        match table.is_device_faster(operation.name(), elements as u64, with_transfers) {
            Some(true) => Ok(device),
            Some(false) | None => Ok(host),
        }
    }

    /// The times kept for a host and a device, measured where there are none.
    ///
    /// # Errors
    /// As [`Executor::for_size`].
    pub fn crossover(host: &Executor, device: &Executor) -> Result<Crossover> {
        let infos = (host.device.info(), device.device.info());
        Crossover::of(infos.0, infos.1, VERSION, || times(host, device, &SIZES))
    }

    /// Measures the times anew, at these sizes or at the usual ones, and keeps them.
    ///
    /// # Errors
    /// As [`Executor::for_size`].
    pub fn measure_crossover(host: &Executor, device: &Executor, sizes: &[usize]) -> Result<Crossover> {
        let table = times(host, device, if sizes.is_empty() { &SIZES } else { sizes })?;
        table.keep(host.device.info(), device.device.info(), VERSION);
        Ok(table)
    }
}

// The first backend's device that is a GPU: in `new_auto`'s order, then wgpu.
fn gpu() -> Option<Executor> {
    let backends = [BackendType::Metal, BackendType::Cuda, BackendType::Wgpu];
    let mut found = backends
        .into_iter()
        .filter_map(|backend| Executor::new_with_backend(backend).ok());
    found.find(|executor| executor.device.info().adapter_type != AdapterType::Cpu)
}

fn times(host: &Executor, device: &Executor, sizes: &[usize]) -> Result<Crossover> {
    let mut points = Vec::new();
    for operation in Operation::ALL {
        for &size in sizes {
            let point = {
                let on_device = Case::new(device, operation, size)?;
                CrossoverPoint {
                    operation: operation.name().into(),
                    size: size as u64,
                    host: Case::new(host, operation, size)?.time(false)?,
                    device: on_device.time(false)?,
                    transfers: on_device.time(true)?,
                }
            };
            let is_long = point.host.max(point.transfers) > LONGEST;
            points.push(point);
            if is_long {
                break;
            }
        }
    }
    Ok(Crossover::new(points))
}

/// A program at one size, ready to run.
struct Case<'a> {
    executor: &'a Executor,
    prepared: Prepared,
    inputs: Vec<u64>,
    content: Vec<f32>,
    output: (u64, usize),
}

impl<'a> Case<'a> {
    fn new(executor: &'a Executor, operation: Operation, size: usize) -> Result<Case<'a>> {
        let side = size.isqrt();
        let lanes = |device: &Device| match device.backend() {
            // A dot product is a loop: as many lanes as keep the device busy.
            BackendKind::Cpu => 1 << 13,
            _ => 1 << 16,
        };
        let blocks = size.min(lanes(&executor.device)).div_ceil(256) as u32;
        let (text, config, elements, results) = match operation {
            Operation::ElementWise => (
                include_str!("../../programs/saxpy.pasm"),
                LaunchConfig::linear(size, 256),
                size,
                size,
            ),
            Operation::Reduction => (
                include_str!("../../programs/dot.pasm"),
                LaunchConfig::new(blocks, 256),
                size,
                1,
            ),
            Operation::MatrixProduct => (
                include_str!("../../programs/matmul.pasm"),
                LaunchConfig::tiled(side as u32, side as u32, (16, 16)),
                side * side,
                side * side,
            ),
        };
        let mut program: Program = text.parse()?;
        let content = vec![1.0f32; elements];
        let mut handles = Vec::new();
        let names: Vec<String> = program.buffers().map(|buffer| buffer.name.clone()).collect();
        for name in names {
            let is_result = matches!(name.as_str(), "c" | "out");
            let len = if is_result { results } else { elements };
            let handle = executor.allocate_buffer(4 * len)?;
            if !is_result {
                executor.write_buffer(handle, 0, &content)?;
            }
            program = program.with_buffer(&name, handle)?;
            handles.push(handle);
        }
        let arguments = Arguments::new().with("a", 0.5f32).with("n", side as u32);
        let launch = Launch {
            program: &program,
            config,
            arguments: &arguments,
        };
        let last = handles.last().copied().unwrap_or_default();
        Ok(Case {
            executor,
            prepared: executor.prepare(&launch)?,
            inputs: handles[..2.min(handles.len())].to_vec(),
            content,
            output: (last, results),
        })
    }

    fn run(&self, host: Option<&mut Host>) -> Result<()> {
        let stream = self.executor.device.default_stream();
        let Some(host) = host else {
            self.prepared.submit(&stream)?;
            return self.executor.synchronize();
        };
        for handle in &self.inputs {
            host.content
                .copy_to(&stream, &self.executor.buffer(*handle)?.cast()?)?;
        }
        self.prepared.submit(&stream)?;
        if let Some(result) = host.result.take() {
            let output = self.executor.buffer(self.output.0)?.cast()?;
            host.result = Some(result.read_from(&stream, &output)?.wait()?);
        }
        Ok(())
    }

    // The shortest of some runs, of which the first only warms up; with the data's way there and back, by pinned memory.
    fn time(&self, transfers: bool) -> Result<Duration> {
        let device = &self.executor.device;
        let mut host = match transfers {
            true => Some(Host {
                content: device.pin(&self.content)?,
                result: Some(device.pin(&vec![0.0; self.output.1])?),
            }),
            false => None,
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

impl Drop for Case<'_> {
    fn drop(&mut self) {
        for handle in self.inputs.iter().chain([&self.output.0]) {
            // The last input may be the output, and gone already.
            let _ = self.executor.free_buffer(*handle);
        }
    }
}
