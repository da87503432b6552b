//! How steps are launched: which kernel, in which shape, with which arguments.

use super::super::error::{Result, range};
use super::super::kernels::{self, DRIVEN};
use super::super::model::{Border, Medium, Model, Region};
use super::super::slots::Slots;
use super::{Fields, Simulation, Storage, Tuning};
use perpetua_device::{Buffer, Device, Kernel, KernelArg, LaunchConfig, Stream};

/// What only one of the two families of kernels needs.
pub(super) enum Family {
    /// One medium; sources in one box.
    Open {
        profile: Buffer<f32>,
        /// What stands for the bytes of cells that there are none of.
        none: Buffer<u8>,
        stiffness: f32,
        source: Region,
    },
    /// A byte a cell.
    Media {
        cells: Buffer<u8>,
        table: Buffer<f32>,
        slots: Slots,
        /// Where the CPU steps it: what each cell keeps, and how its neighbours pull.
        coefficients: Option<[Buffer<f32>; 2]>,
    },
}

/// Launches that do several steps, from one pair of buffers to the other.
pub(super) struct Blocked {
    pub(super) kernel: Kernel,
    pub(super) config: LaunchConfig,
    pub(super) steps: u64,
    pub(super) scratch: Fields,
}

/// Whether a model needs no byte a cell: one medium, and sources that are one.
fn is_open(model: &Model) -> bool {
    let first = model.cells.first().copied().unwrap_or(0);
    let calm = |m: &Medium| !m.reflects && m.damping == 0.0;
    model.sources.len() <= 1
        && model.media.get(usize::from(first)).is_some_and(calm)
        && model.cells.iter().all(|m| *m == first)
}

/// Cells of a grid below which it is cut into low tiles.
const LOW_TILES_BELOW: usize = 1 << 17;

/// A lane of a block listens to one probe.
const MOST_PROBES: usize = 512;

/// Probes that a step on the CPU records where they lie.
const NEAR_PROBES: usize = 4;

impl Blocked {
    /// `None` where steps are done one by one.
    pub(super) fn new(
        device: &Device,
        family: &Family,
        model: &Model,
        storage: Storage,
        tuning: Tuning,
    ) -> Result<Option<Blocked>> {
        let on_gpu = device.info().computes && !device.info().on_host;
        let limits = &device.info().limits;
        let fits = limits.max_threads_per_block >= 512
            && limits.shared_bytes_per_block >= 32_768
            && limits.max_buffers >= 9;
        // The CPU has no use for tiles.
        let steps = tuning.steps_per_launch.unwrap_or(if on_gpu { 8 } else { 1 });
        if model.is_deep() || model.probes.len() > MOST_PROBES || !fits || steps == 1 {
            return Ok(None);
        }
        // Tall tiles lose less; of low ones a small grid has enough to keep a GPU busy.
        let low = tuning.low_tiles.unwrap_or(model.cells.len() < LOW_TILES_BELOW);
        let tiles = match (family, model.probes.is_empty()) {
            (Family::Open { .. }, true) => kernels::tiles::<false, false>,
            (Family::Open { .. }, false) => kernels::tiles::<false, true>,
            (Family::Media { .. }, true) => kernels::tiles::<true, false>,
            (Family::Media { .. }, false) => kernels::tiles::<true, true>,
        };
        let kernel = tiles(storage == Storage::F16, low, steps);
        let kernel = kernel.ok_or_else(|| range("steps a launch", steps, "1, 2, 4 or 8 are possible"))?;
        let kernel = if on_gpu {
            // SAFETY: as in `Simulation::launcher`; the second pair of buffers is as long as the first, cells are clamped into
            // the grid before they are loaded and stored only where they lie in it, and the tile's indices are sums of numbers
            // whose greatest is below its length, or lie within the tile's margins: the launch is of blocks of 64 x 8 lanes.
            // The width that positions are divided by is not zero, or there would be no lanes.
            unsafe { kernel.unchecked() }
        } else {
            kernel
        };
        let tile = [64, if low { 32 } else { 64 }];
        let groups = [0, 1].map(|axis: usize| (model.size[axis] as u32).div_ceil(tile[axis] - 2 * steps));
        Ok(Some(Blocked {
            kernel: device.kernel(&kernel)?,
            config: LaunchConfig::new([groups[0], groups[1], 1], [64, 8, 1]),
            steps: steps.into(),
            scratch: Fields::zeros(device, storage, model.cells.len())?,
        }))
    }
}

impl Simulation {
    pub(super) fn family(device: &Device, model: &Model, tuning: Tuning) -> Result<Family> {
        if is_open(model) {
            let medium = model.media[usize::from(model.cells[0])];
            let courant = medium.speed * model.time_step / model.spacing;
            return Ok(Family::Open {
                profile: device.upload(&model.profile())?,
                none: device.zeros(1)?,
                stiffness: (courant * courant) as f32,
                source: model.sources.first().map_or_else(Region::default, |s| s.region),
            });
        }
        let mut slots = Slots::default();
        let [width, height, depth] = model.size;
        let mut bytes = Vec::with_capacity(model.cells.len());
        let rows = (0..depth).flat_map(|z| (0..height).map(move |y| [0, y, z]));
        for row in rows.clone() {
            bytes.extend(slots.row(model, row, width)?);
        }
        let table = slots.table(model);
        let coefficients = if device.info().on_host && !tuning.generated {
            let mut all = [const { Vec::new() }; 2];
            for (row, slots) in rows.zip(bytes.chunks(width)) {
                let [keeps, pulls] = Slots::coefficients(&table, model, row, slots);
                all[0].extend(keeps);
                all[1].extend(pulls);
            }
            let [keeps, pulls] = all;
            Some([device.upload(&keeps)?, device.upload(&pulls)?])
        } else {
            None
        };
        Ok(Family::Media {
            cells: device.upload(&bytes)?,
            table: device.upload(&table)?,
            slots,
            coefficients,
        })
    }

    /// The kernel and the shape of its launches.
    pub(super) fn launcher(
        device: &Device,
        family: &Family,
        model: &Model,
        storage: Storage,
        tuning: Tuning,
    ) -> Result<(Kernel, LaunchConfig)> {
        use Storage::{F16, F32};
        let (deep, open) = (model.is_deep(), matches!(family, Family::Open { .. }));
        let varies = matches!(
            family,
            Family::Media {
                coefficients: Some(_),
                ..
            }
        );
        let on_gpu = device.info().computes && !device.info().on_host;
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
            (false, false, F32, _) if varies => kernels::full::variable_2d::kernel(),
            (false, false, F32, _) => kernels::full::media_2d::kernel(),
            (true, true, F32, 1) => kernels::full::open_3d::kernel(),
            (true, true, F32, 4) => kernels::full::column::open_3d::kernel::<4>(),
            (true, true, F32, 8) => kernels::full::column::open_3d::kernel::<8>(),
            (true, true, F32, 16) => kernels::full::column::open_3d::kernel::<16>(),
            (true, true, F32, 32) => kernels::full::column::open_3d::kernel::<32>(),
            (true, false, F32, _) if varies => kernels::full::variable_3d::kernel(),
            (true, false, F32, _) => kernels::full::media_3d::kernel(),
            (false, true, F16, 1) => kernels::half::open_2d::kernel(),
            (false, true, F16, 4) => kernels::half::four::open_2d::kernel(),
            (false, false, F16, _) if varies => kernels::half::variable_2d::kernel(),
            (false, false, F16, _) => kernels::half::media_2d::kernel(),
            (true, true, F16, 1) => kernels::half::open_3d::kernel(),
            (true, true, F16, 4) => kernels::half::column::open_3d::kernel::<4>(),
            (true, true, F16, 8) => kernels::half::column::open_3d::kernel::<8>(),
            (true, true, F16, 16) => kernels::half::column::open_3d::kernel::<16>(),
            (true, true, F16, 32) => kernels::half::column::open_3d::kernel::<32>(),
            (true, false, F16, _) if varies => kernels::half::variable_3d::kernel(),
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
        } else if tuning.generated {
            kernel.interpreted()
        } else {
            kernel
        };
        let [width, height, depth] = model.size.map(|n| n as u32);
        // Probes are recorded beyond the rows, or beyond the last of them.
        let (beside, below) = match model.probes.len() {
            probes if varies => (u32::from(probes > 0), u32::from(probes > NEAR_PROBES)),
            _ => (0, 1),
        };
        let (extent, block) = if deep {
            ([width + beside, height, depth.div_ceil(each) + below], [32, 8, 1])
        } else {
            ([width + beside, height.div_ceil(each) + below, 1], [64, 4, 1])
        };
        let config = LaunchConfig::volume(extent.into(), tuning.block.unwrap_or(block).into());
        Ok((device.kernel(&kernel)?, config))
    }

    /// How much of what comes from inside leaves at the border in a step.
    pub(crate) fn edge_of(model: &Model) -> f32 {
        match model.border {
            Border::Reflect => 0.0,
            Border::Absorb(_) => (model.fastest() * model.time_step / model.spacing) as f32,
        }
    }

    pub(super) fn drives(&self, step: u64) -> [f32; DRIVEN] {
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
    pub(super) fn launch(&self, stream: &Stream, turn: u64) -> perpetua_device::Result<()> {
        let parity = ((self.step + turn) % 2) as usize;
        let [w, h, d] = self.model.size.map(|n| n as u32);
        let (deep, probes, turn) = (self.model.is_deep(), self.model.probes.len() as u32, turn as u32);
        let mut args: Vec<KernelArg<'_>> = Vec::with_capacity(32);
        args.extend(self.fields.args(parity));
        match &self.family {
            Family::Open { profile, .. } => args.push(profile.arg()),
            Family::Media {
                cells,
                coefficients: Some([keeps, pulls]),
                ..
            } => args.extend([keeps.arg(), pulls.arg(), cells.arg()]),
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
        let mut boxed = |region: Region| {
            for axis in 0..if deep { 3 } else { 2 } {
                args.extend([(region.from[axis] as u32).into(), (region.to[axis] as u32).into()]);
            }
        };
        match &self.family {
            Family::Open { source, .. } => boxed(*source),
            Family::Media {
                coefficients: Some(_),
                ..
            } => {
                boxed(self.model.driven());
                for probe in 0..NEAR_PROBES {
                    let [cell, row] = match self.model.probes.get(probe) {
                        Some(p) => [self.model.index(p.at), p.at[if deep { 2 } else { 1 }]],
                        None => [0, u32::MAX as usize],
                    };
                    args.extend([(cell as u32).into(), (row as u32).into()]);
                }
            }
            Family::Media { .. } => {}
        }
        stream.launch(&self.kernel, self.config, &args)
    }

    /// Submits the `launch`th launch of several steps after the present one; the step is even.
    pub(super) fn launch_blocked(
        &self,
        stream: &Stream,
        blocked: &Blocked,
        launch: u64,
    ) -> perpetua_device::Result<()> {
        let pairs = [&self.fields, &blocked.scratch];
        let [from, to] = if launch.is_multiple_of(2) { [0, 1] } else { [1, 0] };
        let [w, h, _] = self.model.size.map(|n| n as u32);
        let mut args: Vec<KernelArg<'_>> = Vec::with_capacity(19);
        args.extend(pairs[from].args(0));
        args.extend(pairs[to].args(0));
        let nowhere = Region::default();
        let (stiffness, source) = match &self.family {
            Family::Open {
                profile,
                none,
                stiffness,
                source,
            } => {
                args.extend([profile.arg(), none.arg()]);
                (*stiffness, source)
            }
            Family::Media { cells, table, .. } => {
                args.extend([table.arg(), cells.arg()]);
                (0.0, &nowhere)
            }
        };
        args.extend([self.drive.arg(), self.positions.arg(), self.record.arg()]);
        let (turn, probes) = ((launch * blocked.steps) as u32, self.model.probes.len() as u32);
        args.extend([
            w.into(),
            h.into(),
            stiffness.into(),
            self.edge.into(),
            turn.into(),
            probes.into(),
        ]);
        for axis in 0..2 {
            args.extend([(source.from[axis] as u32).into(), (source.to[axis] as u32).into()]);
        }
        stream.launch(&blocked.kernel, blocked.config, &args)
    }
}
