//! A running simulation: the buffers that it steps through, and how its steps are submitted. Must not know scenes by
//! name, files, and pictures.

use std::collections::HashMap;

use half::f16;

use super::error::{Error, Result, range};
use super::kernels::{self, DRIVEN};
use super::model::{Border, Medium, Model, Probe, Region, Source};
use super::slots::Slots;
use crate::device::{BackendKind, BoxFuture, Buffer, Device, Graph, Kernel, KernelArg, LaunchConfig, Stream};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tuning {
    /// Cells that a lane does: 1 or, where one medium fills the grid, 4 in the plane, and 4, 8, 16 or 32 in space.
    pub cells_per_lane: Option<u32>,
    /// Lanes of a work-group in x, y and z.
    pub block: Option<[u32; 3]>,
    /// Steps in the longest graph.
    pub graph: Option<u64>,
    /// Steps that a launch does, 1, 2, 4 or 8; more than one only in the plane, where one medium fills the grid and there
    /// are no probes.
    pub steps_per_launch: Option<u32>,
}

/// The field's two buffers.
enum Fields {
    F32([Buffer<f32>; 2]),
    F16([Buffer<f16>; 2]),
}

impl Fields {
    fn zeros(device: &Device, storage: Storage, cells: usize) -> crate::device::Result<Fields> {
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

/// Launches that do several steps, from one pair of buffers to the other.
struct Blocked {
    kernel: Kernel,
    config: LaunchConfig,
    steps: u64,
    scratch: Fields,
}

/// The buffer that holds the field now, on the device.
#[derive(Clone, Debug)]
pub enum FieldBuffer {
    /// Stored in 32 bits.
    F32(Buffer<f32>),
    /// Stored in 16 bits.
    F16(Buffer<f16>),
}

/// What only one of the two families of kernels needs.
enum Family {
    /// One medium; sources in one box.
    Open {
        profile: Buffer<f32>,
        stiffness: f32,
        source: Region,
    },
    /// A byte a cell.
    Media {
        cells: Buffer<u8>,
        table: Buffer<f32>,
        slots: Slots,
    },
}

/// Steps in the longest graph.
const LONGEST: u64 = 1024;
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
    series: Option<Buffer<f32>>,
    /// The step of the series' first row.
    series_from: u64,
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

/// Whether a model needs no byte a cell: one medium, and sources that are one.
fn is_open(model: &Model) -> bool {
    let first = model.cells.first().copied().unwrap_or(0);
    let calm = |m: &Medium| !m.reflects && m.damping == 0.0;
    model.sources.len() <= 1
        && model.media.get(usize::from(first)).is_some_and(calm)
        && model.cells.iter().all(|m| *m == first)
}

impl Blocked {
    /// `None` where steps are done one by one.
    fn new(
        device: &Device,
        family: &Family,
        model: &Model,
        storage: Storage,
        tuning: Tuning,
    ) -> Result<Option<Blocked>> {
        let on_gpu = matches!(device.backend(), BackendKind::Cuda | BackendKind::Wgpu);
        let open = matches!(family, Family::Open { .. }) && !model.is_deep() && model.probes.is_empty();
        let limits = &device.info().limits;
        let fits = limits.max_threads_per_block >= 512
            && limits.shared_bytes_per_block >= 32_768
            && limits.max_buffers >= 6;
        // Native code on the CPU has no use for tiles: asked for, they are interpreted.
        let steps = tuning.steps_per_launch.unwrap_or(if on_gpu { 8 } else { 1 });
        if !(open && fits) || steps == 1 {
            return Ok(None);
        }
        use kernels::{full, half};
        let kernel = match (storage, steps) {
            (Storage::F32, 2) => full::blocked::open_2d::kernel::<2>(),
            (Storage::F32, 4) => full::blocked::open_2d::kernel::<4>(),
            (Storage::F32, 8) => full::blocked::open_2d::kernel::<8>(),
            (Storage::F16, 2) => half::blocked::open_2d::kernel::<2>(),
            (Storage::F16, 4) => half::blocked::open_2d::kernel::<4>(),
            (Storage::F16, 8) => half::blocked::open_2d::kernel::<8>(),
            _ => return Err(range("steps a launch", steps, "1, 2, 4 or 8 are possible")),
        };
        // SAFETY: as in `Simulation::launcher`; the second pair of buffers is as long as the first, cells are clamped into
        // the grid before they are loaded and stored only where they lie in it, and the tile's indices are sums of numbers
        // whose greatest is below its length: the launch is of work-groups of 64 x 8 lanes.
        let kernel = if on_gpu {
            unsafe { kernel.unchecked() }
        } else {
            kernel
        };
        let each = 64 - 2 * steps;
        let groups = [0, 1].map(|axis: usize| (model.size[axis] as u32).div_ceil(each));
        Ok(Some(Blocked {
            kernel: device.kernel(&kernel)?,
            config: LaunchConfig::new([groups[0], groups[1], 1], [64, 8, 1]),
            steps: steps.into(),
            scratch: Fields::zeros(device, storage, model.cells.len())?,
        }))
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
        let longest = tuning.graph.unwrap_or(default).clamp(SHORTEST, LONGEST);
        let positions: Vec<u32> = model.probes.iter().map(|p| model.index(p.at) as u32).collect();
        let probes = positions.len().max(1);
        let family = Simulation::family(device, &model)?;
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
            series: None,
            series_from: 0,
            step: 0,
            graphs: HashMap::new(),
            longest,
            family,
            model,
        })
    }

    fn family(device: &Device, model: &Model) -> Result<Family> {
        if is_open(model) {
            let medium = model.media[usize::from(model.cells[0])];
            let courant = medium.speed * model.time_step / model.spacing;
            let nowhere = Region {
                from: [0; 3],
                to: [0; 3],
            };
            return Ok(Family::Open {
                profile: device.upload(&model.profile())?,
                stiffness: (courant * courant) as f32,
                source: model.sources.first().map_or(nowhere, |s| s.region),
            });
        }
        let mut slots = Slots::default();
        let [width, height, depth] = model.size;
        let mut bytes = Vec::with_capacity(model.cells.len());
        for z in 0..depth {
            for y in 0..height {
                bytes.extend(slots.row(model, [0, y, z], width)?);
            }
        }
        Ok(Family::Media {
            cells: device.upload(&bytes)?,
            table: device.upload(&slots.table(model))?,
            slots,
        })
    }

    /// The kernel and the shape of its launches.
    fn launcher(
        device: &Device,
        family: &Family,
        model: &Model,
        storage: Storage,
        tuning: Tuning,
    ) -> Result<(Kernel, LaunchConfig)> {
        use Storage::{F16, F32};
        let (deep, open) = (model.is_deep(), matches!(family, Family::Open { .. }));
        let on_gpu = matches!(device.backend(), BackendKind::Cuda | BackendKind::Wgpu);
        // A small grid has lanes enough to keep a GPU busy only if each does one cell.
        let large = on_gpu && model.cells.len() >= 1 << 19;
        let each = match tuning.cells_per_lane {
            _ if !open => 1,
            Some(cells) => cells,
            None if !large => 1,
            None if deep => 16,
            None => 4,
        };
        let kernel = match (deep, open, storage, each) {
            (false, true, F32, 1) => kernels::full::open_2d::kernel(),
            (false, true, F32, 4) => kernels::full::four::open_2d::kernel(),
            (false, false, F32, _) => kernels::full::media_2d::kernel(),
            (true, true, F32, 1) => kernels::full::open_3d::kernel(),
            (true, true, F32, 4) => kernels::full::column::open_3d::kernel::<4>(),
            (true, true, F32, 8) => kernels::full::column::open_3d::kernel::<8>(),
            (true, true, F32, 16) => kernels::full::column::open_3d::kernel::<16>(),
            (true, true, F32, 32) => kernels::full::column::open_3d::kernel::<32>(),
            (true, false, F32, _) => kernels::full::media_3d::kernel(),
            (false, true, F16, 1) => kernels::half::open_2d::kernel(),
            (false, true, F16, 4) => kernels::half::four::open_2d::kernel(),
            (false, false, F16, _) => kernels::half::media_2d::kernel(),
            (true, true, F16, 1) => kernels::half::open_3d::kernel(),
            (true, true, F16, 4) => kernels::half::column::open_3d::kernel::<4>(),
            (true, true, F16, 8) => kernels::half::column::open_3d::kernel::<8>(),
            (true, true, F16, 16) => kernels::half::column::open_3d::kernel::<16>(),
            (true, true, F16, 32) => kernels::half::column::open_3d::kernel::<32>(),
            (true, false, F16, _) => kernels::half::media_3d::kernel(),
            (deep, ..) => {
                let possible = if deep {
                    "1, 4, 8, 16 or 32 are possible"
                } else {
                    "1 or 4 are possible"
                };
                return Err(range("cells a lane", each, possible));
            }
        };
        let kernel = if on_gpu {
            // SAFETY: every launch comes from `launch`, with buffers as long as the model's sizes say: the fields and the
            // bytes have a cell each, the profile a number a column, row and layer, the table that and 256 slots of two
            // numbers, the drives 16 numbers a turn and the record one a probe and turn for `longest` turns, which no
            // batch exceeds. Lanes outside the grid touch nothing; a lane on the border reads inwards, every other one
            // has its neighbours inside; bytes are below 256; `Model::check` has seen that probes lie in the grid. The
            // kernels divide no integers.
            unsafe { kernel.unchecked() }
        } else {
            kernel
        };
        let [width, height, depth] = model.size.map(|n| n as u32);
        let (extent, block) = if deep {
            ([width, height, depth.div_ceil(each) + 1], [32, 8, 1])
        } else {
            ([width, height.div_ceil(each) + 1, 1], [64, 4, 1])
        };
        let config = LaunchConfig::volume(extent.into(), tuning.block.unwrap_or(block).into());
        Ok((device.kernel(&kernel)?, config))
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

    /// Submits `steps` time steps, and does not wait for them.
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
        let probes = self.model.probes.len();
        if probes > 0 {
            let from = (self.step - self.series_from) as usize * probes;
            let rows = turns as usize * probes;
            let series = self.series_of(from + rows)?;
            self.stream
                .copy(&self.record.slice(..rows)?, &series.slice(from..from + rows)?)?;
        }
        self.step += turns;
        Ok(())
    }

    /// The buffer of the series with room for so many numbers; grows by doubling.
    fn series_of(&mut self, len: usize) -> Result<Buffer<f32>> {
        if let Some(series) = self.series.as_ref().filter(|s| s.len() >= len) {
            return Ok(series.clone());
        }
        let grown = self.device.zeros::<f32>(len.next_power_of_two().max(4096))?;
        if let Some(old) = &self.series {
            self.stream.copy(old, &grown.slice(..old.len())?)?;
        }
        self.series = Some(grown.clone());
        Ok(grown)
    }

    fn drives(&self, step: u64) -> [f32; DRIVEN] {
        match &self.family {
            Family::Open { .. } => {
                let mut row = [0.0; DRIVEN];
                if let Some(source) = self.model.sources.first() {
                    row[0] = self.model.drive(source, step) as f32;
                }
                row
            }
            Family::Media { slots, .. } => slots.drives(&self.model, step),
        }
    }

    /// Submits the step that is `turn` after the present one.
    fn launch(&self, stream: &Stream, turn: u64) -> crate::device::Result<()> {
        let parity = ((self.step + turn) % 2) as usize;
        let [w, h, d] = self.model.size.map(|n| n as u32);
        let (deep, probes, turn) = (self.model.is_deep(), self.model.probes.len() as u32, turn as u32);
        let mut args: Vec<KernelArg<'_>> = Vec::with_capacity(20);
        args.extend(self.fields.args(parity));
        match &self.family {
            Family::Open { profile, .. } => args.push(profile.arg()),
            Family::Media { cells, table, .. } => args.extend([cells.arg(), table.arg()]),
        }
        args.extend([
            self.drive.arg(),
            self.positions.arg(),
            self.record.arg(),
            w.into(),
            h.into(),
        ]);
        if deep {
            args.push(d.into());
        }
        if let Family::Open { stiffness, .. } = self.family {
            args.push(stiffness.into());
        }
        args.extend([self.edge.into(), turn.into(), probes.into()]);
        if let Family::Open { source, .. } = self.family {
            for axis in 0..if deep { 3 } else { 2 } {
                args.extend([(source.from[axis] as u32).into(), (source.to[axis] as u32).into()]);
            }
        }
        stream.launch(&self.kernel, self.config, &args)
    }

    /// Submits the `launch`th launch of several steps after the present one; the step is even.
    fn launch_blocked(&self, stream: &Stream, blocked: &Blocked, launch: u64) -> crate::device::Result<()> {
        let Family::Open {
            profile,
            stiffness,
            source,
        } = &self.family
        else {
            return Ok(());
        };
        let pairs = [&self.fields, &blocked.scratch];
        let [from, to] = if launch % 2 == 0 { [0, 1] } else { [1, 0] };
        let [w, h, _] = self.model.size.map(|n| n as u32);
        let mut args: Vec<KernelArg<'_>> = Vec::with_capacity(15);
        args.extend(pairs[from].args(0));
        args.extend(pairs[to].args(0));
        args.extend([profile.arg(), self.drive.arg(), w.into(), h.into()]);
        args.extend([(*stiffness).into(), self.edge.into()]);
        args.push(((launch * blocked.steps) as u32).into());
        for axis in 0..2 {
            args.extend([(source.from[axis] as u32).into(), (source.to[axis] as u32).into()]);
        }
        stream.launch(&blocked.kernel, blocked.config, &args)
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
    pub(super) fn probe_rows(&self) -> Result<Vec<f32>> {
        let len = (self.step - self.series_from) as usize * self.model.probes.len();
        match self.series.as_ref().filter(|_| len > 0) {
            Some(series) => Ok(series.slice(..len)?.read()?),
            None => Ok(Vec::new()),
        }
    }

    /// The recording of the last steps, at most `most` of them, row by row, a number a probe; without blocking.
    pub fn latest_probes_async(&self, most: usize) -> BoxFuture<'static, Result<Vec<f32>>> {
        let probes = self.model.probes.len();
        let steps = (self.step - self.series_from) as usize;
        let part = steps.saturating_sub(most) * probes..steps * probes;
        let reading = match &self.series {
            Some(series) if !part.is_empty() => series.slice(part).map(|s| s.read_async()),
            _ => return Box::pin(async { Ok(Vec::new()) }),
        };
        Box::pin(async move { Ok(reading?.await?) })
    }

    /// The step of the first row of [`Simulation::probe_series`]: 0, or where the probes were changed.
    pub fn probes_from(&self) -> u64 {
        self.series_from
    }

    /// Sets the field to zero and the time to the beginning; media and sources stay.
    ///
    /// # Errors
    /// What the device says.
    pub fn reset(&mut self) -> Result<()> {
        match &self.fields {
            Fields::F32(f) => f.iter().try_for_each(|b| b.fill(0.0))?,
            Fields::F16(f) => f.iter().try_for_each(|b| b.fill(f16::ZERO))?,
        }
        (self.step, self.series_from) = (0, 0);
        Ok(())
    }

    /// Fills a box of cells with a medium, by its index; what of the box lies outside the grid is left out.
    ///
    /// # Errors
    /// There is no such medium, or what the device says.
    pub fn set_material(&mut self, region: Region, medium: u8) -> Result<()> {
        let region = region.within(self.model.size);
        self.change(region, |_, cell| *cell = medium, medium)
    }

    /// Fills the cells whose middle lies within `radius` of `center` (both in cells) with a medium.
    ///
    /// # Errors
    /// As [`Simulation::set_material`].
    pub fn paint(&mut self, center: [f64; 3], radius: f64, medium: u8) -> Result<()> {
        let clip = |v: f64| v.max(0.0) as usize;
        let region = Region {
            from: center.map(|c| clip((c - radius).floor())),
            to: center.map(|c| clip((c + radius).floor() + 1.0)),
        };
        let deep = self.model.is_deep();
        let mut region = region.within(self.model.size);
        if !deep {
            (region.from[2], region.to[2]) = (0, 1);
        }
        let near = move |at: [usize; 3]| {
            let axes = if deep { 3 } else { 2 };
            let square = (0..axes).map(|a| (at[a] as f64 - center[a]).powi(2)).sum::<f64>();
            square <= radius * radius
        };
        self.change(
            region,
            |at, cell| {
                if near(at) {
                    *cell = medium;
                }
            },
            medium,
        )
    }

    fn change(&mut self, region: Region, mut set: impl FnMut([usize; 3], &mut u8), medium: u8) -> Result<()> {
        if usize::from(medium) >= self.model.media.len() {
            return Err(range(
                "a medium",
                medium,
                format!("there are {}", self.model.media.len()),
            ));
        }
        for z in region.from[2]..region.to[2] {
            for y in region.from[1]..region.to[1] {
                for x in region.from[0]..region.to[0] {
                    let i = self.model.index([x, y, z]);
                    set([x, y, z], &mut self.model.cells[i]);
                }
            }
        }
        self.refresh(region)
    }

    /// Brings the device's bytes up to date in a box of cells.
    fn refresh(&mut self, region: Region) -> Result<()> {
        if matches!(self.family, Family::Open { .. }) {
            return self.rebuild();
        }
        let Family::Media { cells, table, slots } = &mut self.family else {
            return Ok(());
        };
        let before = slots.clone();
        let len = region.to[0] - region.from[0];
        if len == 0 {
            return Ok(());
        }
        for z in region.from[2]..region.to[2] {
            for y in region.from[1]..region.to[1] {
                let at = [region.from[0], y, z];
                let start = self.model.index(at);
                let bytes = slots.row(&self.model, at, len)?;
                self.stream.write(&cells.slice(start..start + len)?, &bytes)?;
            }
        }
        if before != *slots {
            self.stream.write(table, &slots.table(&self.model))?;
        }
        Ok(())
    }

    /// Makes the device's side of media and sources anew. Graphs stay where the buffers do.
    fn rebuild(&mut self) -> Result<()> {
        let mut family = Simulation::family(&self.device, &self.model)?;
        let (kernel, config) =
            Simulation::launcher(&self.device, &family, &self.model, self.storage, self.tuning)?;
        let blocked = Blocked::new(&self.device, &family, &self.model, self.storage, self.tuning)?;
        let edge = Simulation::edge_of(&self.model);
        let stays = match (&mut family, &self.family) {
            (
                Family::Media { cells, table, .. },
                Family::Media {
                    cells: old_cells,
                    table: old_table,
                    ..
                },
            ) => {
                self.stream.copy(cells, old_cells)?;
                self.stream.copy(table, old_table)?;
                (*cells, *table) = (old_cells.clone(), old_table.clone());
                edge == self.edge
            }
            _ => false,
        };
        (self.family, self.kernel, self.config, self.edge) = (family, kernel, config, edge);
        self.blocked = blocked;
        if !stays {
            self.graphs.clear();
        }
        Ok(())
    }

    /// How much of what comes from inside leaves at the border in a step.
    fn edge_of(model: &Model) -> f32 {
        match model.border {
            Border::Reflect => 0.0,
            Border::Absorb(_) => (model.fastest() * model.time_step / model.spacing) as f32,
        }
    }

    /// Adds a medium; gives its index.
    ///
    /// # Errors
    /// It is wrong, or too fast for the time step, or what the device says. Nothing has changed then.
    pub fn add_medium(&mut self, medium: Medium) -> Result<u8> {
        self.model.media.push(medium);
        // The time step stays: the field's past depends on it.
        if let Err(error) = self.model.check() {
            self.model.media.pop();
            return Err(error);
        }
        self.rebuild()?;
        Ok((self.model.media.len() - 1) as u8)
    }

    /// Replaces all sources: to add one, to move it, to take it away.
    ///
    /// # Errors
    /// One is wrong, or what the device says. Nothing has changed then.
    pub fn set_sources(&mut self, sources: Vec<Source>) -> Result<()> {
        let before = std::mem::replace(&mut self.model.sources, sources);
        let changed = self.model.check().and_then(|()| self.rebuild());
        if changed.is_err() {
            self.model.sources = before;
        }
        changed
    }

    /// Replaces the probes; recording starts anew.
    ///
    /// # Errors
    /// One is wrong, or what the device says.
    pub fn set_probes(&mut self, probes: Vec<Probe>) -> Result<()> {
        let before = std::mem::replace(&mut self.model.probes, probes);
        if let Err(error) = self.model.check() {
            self.model.probes = before;
            return Err(error);
        }
        let positions: Vec<u32> = self
            .model
            .probes
            .iter()
            .map(|p| self.model.index(p.at) as u32)
            .collect();
        self.blocked = Blocked::new(&self.device, &self.family, &self.model, self.storage, self.tuning)?;
        self.record = self
            .device
            .zeros(self.longest as usize * positions.len().max(1))?;
        self.positions = self
            .device
            .upload(if positions.is_empty() { &[0] } else { &positions })?;
        (self.series, self.series_from) = (None, self.step);
        self.graphs.clear();
        Ok(())
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

    /// Replaces the field at this step and at the one before.
    ///
    /// # Errors
    /// There are not as many numbers as cells, or what the device says.
    pub fn set_fields(&mut self, now: &[f32], before: &[f32]) -> Result<()> {
        let parity = (self.step % 2) as usize;
        let narrow = |v: &[f32]| -> Vec<f16> { v.iter().map(|x| f16::from_f32(*x)).collect() };
        match &self.fields {
            Fields::F32(f) => {
                f[parity].write(now)?;
                f[1 - parity].write(before)?;
            }
            Fields::F16(f) => {
                f[parity].write(&narrow(now))?;
                f[1 - parity].write(&narrow(before))?;
            }
        }
        Ok(())
    }

    /// Replaces the media of all cells.
    pub(super) fn set_cells(&mut self, cells: &[u8]) -> Result<()> {
        if self.model.cells != cells {
            self.model.cells.copy_from_slice(cells);
            self.rebuild()?;
        }
        Ok(())
    }

    /// Goes to a step, with what the probes had recorded from step `from` on, row by row. The field stays.
    pub(super) fn set_step(&mut self, step: u64, series: &[f32], from: u64) -> Result<()> {
        if !series.is_empty() {
            let buffer = self.series_of(series.len())?;
            buffer.slice(..series.len())?.write(series)?;
        }
        (self.step, self.series_from) = (step, from);
        Ok(())
    }
}
