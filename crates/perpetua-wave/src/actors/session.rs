//! Tiles at work, as a program holds them: commands in, steps, fields and probes out. Must not know how orders travel.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use super::super::error::Result;
use super::super::model::Model;
use super::super::simulation::Simulation;
use super::super::slots::Slots;
use super::command::{Command, Reading, Receipt, TileTuning};
use super::core::{Core, cannot, check, cut, drives, lock};
use super::engine::{DRIVES, Engine};
use super::feeder::Feeder;
use super::grid::{DeviceTiles, Pace, Start};
use super::order::{BEGIN, SAVE};
use super::strip::{Grid, Strip};
use super::threads::Threads;
use perpetua_device::Device;

/// A wave simulation whose tiles are actors. See the [module](super).
///
/// Dropping it ends its tiles; [`WaveActors::stop`] tells what went wrong with that.
pub struct WaveActors {
    core: Arc<Mutex<Core>>,
    feeder: Option<Feeder>,
}

impl WaveActors {
    /// Puts the tiles of `model`, at rest, on a device: on CUDA as resident blocks, on the CPU as threads.
    ///
    /// # Errors
    /// What is wrong with the model; what tile actors cannot do: volumes, more than four sources, sources that overlap, grids
    /// that do not fit; backends where nothing can stay; what the device says.
    pub fn start(device: &Device, model: Model) -> Result<WaveActors> {
        WaveActors::tuned(device, model, TileTuning::default())
    }

    /// The same with a choice of how the grid is cut.
    ///
    /// # Errors
    /// As [`WaveActors::start`].
    pub fn tuned(device: &Device, model: Model, tuning: TileTuning) -> Result<WaveActors> {
        check(&model)?;
        let mut unsourced = model.clone();
        unsourced.sources.clear();
        let mut kinds = Slots::default();
        let slots = (0..model.size[1])
            .map(|y| kinds.row(&unsourced, [0, y, 0], model.size[0]))
            .collect::<Result<Vec<_>>>()?
            .concat();
        let (table, edge) = (kinds.table(&unsourced), Simulation::edge_of(&model));
        let drives = drives(&model, 0, DRIVES);
        let info = device.info();
        let mut engine: Box<dyn Engine> = match device.backend() {
            _ if info.can_stay() && (tuning.resident || !info.on_host) => {
                let start = Start {
                    cut: cut(device, &model, tuning)?,
                    pace: Pace {
                        chunk: tuning.chunk.unwrap_or(2).max(1),
                        ahead: tuning.ahead.unwrap_or(1).clamp(1, 1024),
                    },
                    slots: &slots,
                    table,
                    edge,
                    drives: &drives,
                };
                Box::new(DeviceTiles::start(device, start)?)
            }
            _ if info.computes && info.on_host => {
                let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
                let span = tuning.span.unwrap_or(8).clamp(1, 64) as usize;
                let height = model.size[1];
                let most = (height / span).max(1);
                let count = tuning.threads.map_or(processors, |n| n as usize).clamp(1, most);
                let grid = Grid {
                    width: model.size[0],
                    height,
                    span,
                    edge,
                    table,
                    count,
                };
                let strips = (0..count).map(|n| Strip::new(&grid, n, &slots)).collect();
                let chunk = tuning.chunk.unwrap_or(8).max(1);
                Box::new(Threads::start(
                    strips,
                    model.cells.len(),
                    2 * span * model.size[0],
                    chunk,
                )?)
            }
            other => {
                return Err(cannot(
                    format!(
                        "stay on the {} backend, which runs no kernel for ever",
                        other.name()
                    ),
                    "launch the steps there (`Simulation`, --mode launch), or take CUDA or the CPU",
                ));
            }
        };
        if info.on_host && !tuning.resident {
            engine.supply(0, &drives)?;
        }
        let mut core = Core {
            engine,
            media: model.media.clone(),
            model,
            step: 0,
            free: false,
            supplied: DRIVES,
            running: VecDeque::new(),
            done: 0,
            last: None,
        };
        core.push(BEGIN, &[])?;
        for index in 0..core.model.sources.len() {
            core.place(index)?;
        }
        Ok(WaveActors {
            core: Arc::new(Mutex::new(core)),
            feeder: None,
        })
    }

    fn core(&self) -> MutexGuard<'_, Core> {
        lock(&self.core)
    }

    /// What is simulated, as far as it has been changed by now; speeds as at the start.
    pub fn model(&self) -> Model {
        self.core().model.clone()
    }

    /// Steps that tiles have been told to do; while they run freely, as of the last order.
    pub fn step_count(&self) -> u64 {
        self.core().step
    }

    /// Whether tiles stay where they run, between two orders too.
    pub fn stays(&self) -> bool {
        self.core().engine.stays()
    }

    /// How the grid is cut, for people.
    pub fn form(&self) -> String {
        self.core().engine.form()
    }

    /// Tells tiles to do so many steps, and does not wait for them. Commands that follow take effect behind them. Tiles that run
    /// freely pause first.
    ///
    /// # Errors
    /// What the engine says.
    pub fn step(&mut self, steps: u64) -> Result<Receipt> {
        self.core().steps(steps)
    }

    /// Lets tiles step until they are told otherwise; commands take effect as soon as they can.
    ///
    /// # Errors
    /// What the engine says.
    pub fn run(&mut self) -> Result<()> {
        {
            let mut core = self.core();
            // What sources add must not be overwritten before it is used.
            core.synchronize()?;
            core.free = true;
            core.feed()?;
        }
        if self.feeder.is_none() {
            self.feeder = Some(Feeder::start(Arc::clone(&self.core))?);
        }
        Ok(())
    }

    /// Lets tiles that run freely do what they have been given, and then wait.
    ///
    /// # Errors
    /// What the engine says.
    pub fn pause(&mut self) -> Result<Receipt> {
        self.core().pause()
    }

    /// Tells all tiles of a change; says behind which step it takes effect. Does not wait for that.
    ///
    /// # Errors
    /// What is wrong with the command: nothing has changed then; what the engine says.
    pub fn inject(&mut self, command: &Command) -> Result<Receipt> {
        self.core().inject(command)
    }

    /// Waits until all tiles are through with what a receipt is of.
    ///
    /// # Errors
    /// What the engine says.
    pub fn wait(&mut self, receipt: Receipt) -> Result<()> {
        self.core().engine.wait(receipt.number)
    }

    /// Waits until all tiles are through with all that they were told; not for those that run freely to pause.
    ///
    /// # Errors
    /// What the engine says.
    pub fn synchronize(&mut self) -> Result<()> {
        self.core().synchronize()
    }

    /// Asks for the field of a cell behind what tiles were told so far, and waits for it; not for other tiles.
    ///
    /// # Errors
    /// The cell lies outside the grid; what the engine says.
    pub fn probe(&mut self, at: [usize; 2]) -> Result<Reading> {
        let asked = self.ask(at)?;
        self.answer(asked)
    }

    /// Asks for the field of a cell behind what tiles were told so far, and does not wait.
    ///
    /// # Errors
    /// As [`WaveActors::probe`].
    pub fn ask(&mut self, at: [usize; 2]) -> Result<Receipt> {
        self.core().ask(at)
    }

    /// Waits for what [`WaveActors::ask`] asked for: of the last thousand orders only.
    ///
    /// # Errors
    /// What the engine says.
    pub fn answer(&mut self, asked: Receipt) -> Result<Reading> {
        let mut core = self.core();
        let (value, step) = core.engine.answer(asked.number)?;
        Ok(Reading {
            step: core.widen(step),
            value,
        })
    }

    /// The field behind what tiles were told so far, row by row.
    ///
    /// # Errors
    /// What the engine says.
    pub fn field(&mut self) -> Result<Vec<f32>> {
        Ok(self.fields()?.0)
    }

    /// The fields at this step and at the one before.
    ///
    /// # Errors
    /// What the engine says.
    pub fn fields(&mut self) -> Result<(Vec<f32>, Vec<f32>)> {
        let mut core = self.core();
        let saved = core.push(SAVE, &[])?;
        core.engine.wait(saved)?;
        core.engine.saved()
    }

    /// Ends all tiles.
    ///
    /// # Errors
    /// What the engine says.
    pub fn stop(mut self) -> Result<()> {
        self.feeder = None;
        self.core().engine.stop()
    }
}

impl std::fmt::Debug for WaveActors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let core = self.core();
        f.debug_struct("WaveActors")
            .field("size", &core.model.size)
            .field("step", &core.step)
            .field("form", &core.engine.form())
            .finish_non_exhaustive()
    }
}
