//! A running simulation: the buffers that it steps through, how its steps are submitted, and what can be read of it. Must
//! not know scenes by name, files, and pictures.

use std::collections::HashMap;

use half::f16;

mod changes;
mod launches;
mod series;

use self::launches::{Blocked, Family};
pub use self::series::Recording;
use self::series::Series;
use super::error::{Error, Result};
use super::kernels::DRIVEN;
use super::model::Model;
use perpetua_device::{
    BackendKind, BoxFuture, Buffer, Device, Graph, Kernel, KernelArg, LaunchConfig, Stream,
};

/// How the field is stored; it is always computed as f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Storage {
    /// 32 bits.
    #[default]
    F32,
    /// 16 bits: half the memory, and a relative error of 2⁻¹¹ a step.
    F16,
}

/// How steps are launched, where somebody knows better than the default. What is computed is the same to the bit.
///
/// ```
/// use perpetua::device::{BackendKind, Device};
/// use perpetua::wave::{Medium, Model, Simulation, Storage, Tuning};
/// let tuning = Tuning { graph: Some(64), ..Tuning::default() };
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let model = Model::empty([64, 64, 1], 0.01, Medium::of_speed(343.0));
/// let mut simulation = Simulation::tuned(&device, model, Storage::F32, tuning)?;
/// simulation.step(10)?;
/// # Ok::<(), perpetua::wave::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tuning {
    /// Cells that a lane does: 1 or, where one medium fills the grid, 4 in the plane, and 4, 8, 16 or 32 in space.
    pub cells_per_lane: Option<u32>,
    /// Lanes of a block in x, y and z.
    pub block: Option<[u32; 3]>,
    /// Steps in the longest graph.
    pub graph: Option<u64>,
    /// Steps that a launch does, 1, 2, 4 or 8; more than one only in the plane, with 512 probes at most.
    pub steps_per_launch: Option<u32>,
    /// With several steps a launch, whether in tiles of 64 x 32 cells instead of 64 x 64.
    pub low_tiles: Option<bool>,
    /// On the CPU, whether steps run as machine code that is generated from IR, and not as the native code that comes with them.
    pub generated: bool,
}

/// The field's two buffers.
enum Fields {
    F32([Buffer<f32>; 2]),
    F16([Buffer<f16>; 2]),
}

impl Fields {
    fn zeros(device: &Device, storage: Storage, cells: usize) -> perpetua_device::Result<Fields> {
        Ok(match storage {
            Storage::F32 => Fields::F32([device.zeros(cells)?, device.zeros(cells)?]),
            Storage::F16 => Fields::F16([device.zeros(cells)?, device.zeros(cells)?]),
        })
    }

    /// The field at a step with this parity, and the one that the step before left.
    fn args(&self, parity: usize) -> [KernelArg<'_>; 2] {
        match self {
            Fields::F32(f) => [f[parity].arg(), f[1 - parity].arg()],
            Fields::F16(f) => [f[parity].arg(), f[1 - parity].arg()],
        }
    }
}

/// The buffer that holds the field now, on the device.
#[derive(Clone, Debug)]
pub enum FieldBuffer {
    /// Stored in 32 bits.
    F32(Buffer<f32>),
    /// Stored in 16 bits.
    F16(Buffer<f16>),
}

/// Steps in the longest graph.
const LONGEST: u64 = 1024;
/// Most numbers that the probes record in a graph.
const MOST_RECORDED: usize = 1 << 20;
/// Steps in the shortest graph; fewer are launched one by one.
const SHORTEST: u64 = 16;

/// A running simulation.
pub struct Simulation {
    stream: Stream,
    device: Device,
    model: Model,
    storage: Storage,
    tuning: Tuning,
    fields: Fields,
    family: Family,
    kernel: Kernel,
    config: LaunchConfig,
    blocked: Option<Blocked>,
    edge: f32,
    drive: Buffer<f32>,
    positions: Buffer<u32>,
    record: Buffer<f32>,
    series: Series,
    step: u64,
    graphs: HashMap<u64, Graph>,
    longest: u64,
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulation")
            .field("device", &self.device)
            .field("size", &self.model.size)
            .field("step", &self.step)
            .finish_non_exhaustive()
    }
}

impl Simulation {
    /// A simulation of `model` at rest, stored as f32.
    ///
    /// # Errors
    /// What is wrong with the model, or what the device says.
    pub fn new(device: &Device, model: Model) -> Result<Simulation> {
        Simulation::with_storage(device, model, Storage::F32)
    }

    /// The same with a choice of storage.
    ///
    /// # Errors
    /// As [`Simulation::new`].
    pub fn with_storage(device: &Device, model: Model, storage: Storage) -> Result<Simulation> {
        Simulation::tuned(device, model, storage, Tuning::default())
    }

    /// The same with a choice of how steps are launched.
    ///
    /// # Errors
    /// As [`Simulation::new`].
    pub fn tuned(device: &Device, model: Model, storage: Storage, tuning: Tuning) -> Result<Simulation> {
        model.check()?;
        let cells = model.cells.len();
        let fields = Fields::zeros(device, storage, cells)?;
        let default = match device.backend() {
            // Its arguments lie in a block of bytes that a submission fills.
            BackendKind::Wgpu => 256,
            _ => LONGEST,
        };
        let positions: Vec<u32> = model.probes.iter().map(|p| model.index(p.at) as u32).collect();
        let probes = positions.len().max(1);
        let longest = tuning
            .graph
            .unwrap_or(default)
            .min((MOST_RECORDED / probes) as u64);
        let longest = longest.clamp(SHORTEST, LONGEST);
        let series = Series::new(Recording::All, model.probes.len(), longest, 0);
        let family = Simulation::family(device, &model, tuning)?;
        let (kernel, config) = Simulation::launcher(device, &family, &model, storage, tuning)?;
        let blocked = Blocked::new(device, &family, &model, storage, tuning)?;
        Ok(Simulation {
            stream: device.default_stream(),
            device: device.clone(),
            storage,
            tuning,
            fields,
            kernel,
            config,
            blocked,
            edge: Simulation::edge_of(&model),
            drive: device.zeros(longest as usize * DRIVEN)?,
            positions: device.upload(if positions.is_empty() { &[0] } else { &positions })?,
            record: device.zeros(longest as usize * probes)?,
            series,
            step: 0,
            graphs: HashMap::new(),
            longest,
            family,
            model,
        })
    }

    /// What is simulated.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Where it runs.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The stream that its work is submitted to: the device's default stream.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// How the field is stored.
    pub fn storage(&self) -> Storage {
        self.storage
    }

    /// Steps submitted.
    pub fn step_count(&self) -> u64 {
        self.step
    }

    /// Simulated time in seconds.
    pub fn time(&self) -> f64 {
        self.step as f64 * self.model.time_step
    }

    /// How the CPU runs the kernel: as native code, or interpreted; on other devices, as what.
    pub fn form(&self) -> &'static str {
        self.kernel.form()
    }

    /// Submits `steps` time steps, and does not wait for them; but once in so many that the probes' part of the device's memory is full
    /// (4 MiB), what they have recorded is taken to the host, which waits. [`Recording::Latest`] never does.
    ///
    /// # Errors
    /// What the device says.
    pub fn step(&mut self, steps: u64) -> Result<()> {
        let mut left = steps;
        while left > 0 {
            let turns = if left < SHORTEST {
                left
            } else if self.step % 2 == 1 {
                // A graph begins with the buffers as they stood when it was captured.
                1
            } else {
                1 << left.min(self.longest).ilog2()
            };
            self.batch(turns)?;
            left -= turns;
        }
        Ok(())
    }

    /// Submits up to `longest` steps.
    fn batch(&mut self, turns: u64) -> Result<()> {
        let rows: Vec<f32> = (self.step..self.step + turns)
            .flat_map(|step| self.drives(step))
            .collect();
        self.stream.write(&self.drive.slice(..rows.len())?, &rows)?;
        if turns >= SHORTEST && turns.is_power_of_two() && self.step.is_multiple_of(2) {
            if !self.graphs.contains_key(&turns) {
                let graph = self.stream.capture(|stream| match &self.blocked {
                    // An even number of launches: the field ends up in the buffers that it began in.
                    Some(blocked) => (0..turns / blocked.steps)
                        .try_for_each(|launch| self.launch_blocked(stream, blocked, launch)),
                    None => (0..turns).try_for_each(|turn| self.launch(stream, turn)),
                })?;
                self.graphs.insert(turns, graph);
            }
            if let Some(graph) = self.graphs.get(&turns) {
                graph.launch(&self.stream)?;
            }
        } else {
            for turn in 0..turns {
                self.launch(&self.stream, turn)?;
            }
        }
        self.series
            .append(&self.device, &self.stream, &self.record, self.step, turns)?;
        self.step += turns;
        Ok(())
    }

    /// Waits for the submitted steps.
    ///
    /// # Errors
    /// What went wrong in them.
    pub fn synchronize(&self) -> Result<()> {
        Ok(self.stream.synchronize()?)
    }

    /// The buffer with the field now: for kernels and drawing that follow on the same stream. The next step leaves it as
    /// it is, the one after overwrites it.
    pub fn field_buffer(&self) -> FieldBuffer {
        let parity = (self.step % 2) as usize;
        match &self.fields {
            Fields::F32(f) => FieldBuffer::F32(f[parity].clone()),
            Fields::F16(f) => FieldBuffer::F16(f[parity].clone()),
        }
    }

    /// The buffer of media, a byte a cell: 0 where waves are reflected. `None` where one medium fills the grid.
    pub fn cells_buffer(&self) -> Option<&Buffer<u8>> {
        match &self.family {
            Family::Open { .. } => None,
            Family::Media { cells, .. } => Some(cells),
        }
    }

    /// Waits for the field now, x fastest.
    ///
    /// # Errors
    /// What went wrong in the steps, or in reading.
    pub fn field(&self) -> Result<Vec<f32>> {
        Ok(match self.field_buffer() {
            FieldBuffer::F32(b) => b.read()?,
            FieldBuffer::F16(b) => b.read()?.into_iter().map(f16::to_f32).collect(),
        })
    }

    /// The same without blocking; the copy is submitted by this call.
    pub fn field_async(&self) -> BoxFuture<'static, Result<Vec<f32>>> {
        match self.field_buffer() {
            FieldBuffer::F32(b) => {
                let reading = b.read_async();
                Box::pin(async move { Ok(reading.await?) })
            }
            FieldBuffer::F16(b) => {
                let reading = b.read_async();
                Box::pin(async move { Ok(reading.await?.into_iter().map(f16::to_f32).collect()) })
            }
        }
    }

    /// One layer of the field, as [`Simulation::field`].
    ///
    /// # Errors
    /// As [`Simulation::field`], or there is no such layer.
    pub fn layer(&self, z: usize) -> Result<Vec<f32>> {
        let len = self.model.size[0] * self.model.size[1];
        let part = z * len..(z + 1) * len;
        Ok(match self.field_buffer() {
            FieldBuffer::F32(b) => b.slice(part)?.read()?,
            FieldBuffer::F16(b) => b.slice(part)?.read()?.into_iter().map(f16::to_f32).collect(),
        })
    }

    /// Waits for what the probes have recorded: for each probe a number a step.
    ///
    /// # Errors
    /// What went wrong in the steps, or in reading.
    pub fn probe_series(&self) -> Result<Vec<Vec<f32>>> {
        let probes = self.model.probes.len();
        let rows = self.probe_rows()?;
        let of = |p: usize| rows.iter().skip(p).step_by(probes).copied().collect();
        Ok((0..probes).map(of).collect())
    }

    /// The same row by row: for each step a number a probe.
    pub(crate) fn probe_rows(&self) -> Result<Vec<f32>> {
        self.series.rows(self.step)
    }

    /// The recording of the last steps, at most `most` of them, row by row, a number a probe; without blocking.
    pub fn latest_probes_async(&self, most: usize) -> BoxFuture<'static, Result<Vec<f32>>> {
        self.series.latest(self.step, most)
    }

    /// The step of the first row of [`Simulation::probe_series`]: 0, or where the probes were changed, or with [`Recording::Latest`] that
    /// of the oldest row that is kept.
    pub fn probes_from(&self) -> u64 {
        self.series.from()
    }

    /// Says how much of the probes' recording is kept from here on: all of it, if nobody says. In a browser, where nothing can wait for
    /// the device, a long run needs [`Recording::Latest`].
    pub fn set_recording(&mut self, recording: Recording) {
        self.series.set_recording(recording);
    }

    /// Waits, and sees whether the field is still finite.
    ///
    /// # Errors
    /// It is not, or what the device says.
    pub fn check_finite(&self) -> Result<()> {
        if self.field()?.iter().all(|v| v.is_finite()) {
            Ok(())
        } else {
            Err(Error::Diverged { step: self.step })
        }
    }

    /// Waits for the field at this step and at the one before.
    ///
    /// # Errors
    /// What went wrong in the steps, or in reading.
    pub fn fields(&self) -> Result<(Vec<f32>, Vec<f32>)> {
        let parity = (self.step % 2) as usize;
        let wide =
            |b: &Buffer<f16>| -> Result<Vec<f32>> { Ok(b.read()?.into_iter().map(f16::to_f32).collect()) };
        Ok(match &self.fields {
            Fields::F32(f) => (f[parity].read()?, f[1 - parity].read()?),
            Fields::F16(f) => (wide(&f[parity])?, wide(&f[1 - parity])?),
        })
    }
}
