//! Finds the fastest tiles and slices of a product by measuring, and finds again what was kept. Must not know files.

use std::time::Duration;

use perpetua_device::{BackendKind, Device, KernelArg, Stream};
use perpetua_ir::back::Capability;

use super::choices::{self, Choice, Choices};
use super::tile::{MOST_TILES, Tile};
use super::{Factors, GemmKernel, Schedule, tensor_core};
use crate::error::{Error, Result};
use crate::kernel::Kernel as _;
use crate::measure::seconds_a_call;

/// Numbers of slices that are measured with a tile, at most, and how many times as long as with the best one a product may be expected to take.
const OF_A_TILE: usize = 3;
const HOPEFUL: usize = 3;
/// What is measured faster by less than this may be faster by chance.
const GAIN: f64 = 1.02;

/// What [`GemmKernel::tune`] has found.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tuned {
    /// What is fastest, or what the library chooses by itself where nothing is faster by at least 2%.
    pub choice: Choice,
    /// Seconds that a launch takes with it.
    pub seconds: f64,
    /// Seconds that a launch takes with what the library chooses by itself.
    pub untuned_seconds: f64,
}

/// What a choice is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    /// Tiles and slices of a product in stages.
    Stages,
    /// Columns of a block of a product by tensor cores.
    Columns,
}

impl GemmKernel {
    /// Measures this product with the tiles and slices that may suit it, `long` for each of some five to fifteen, and keeps the fastest ones in a file, for this device. Takes the buffers of a launch; C then holds what one of these
    /// launches made of it. Nothing else should run meanwhile.
    ///
    /// For products that leave their tiles and slices open: [`GemmKernel::staged`] and [`GemmKernel::tensor_core`], with more than 16 rows and columns. What is kept applies to launches of the same size, factors, element,
    /// transpositions and number of products, whatever their data, pitches, scales and epilogue. Sums are then made in another order where slices are others, and tensor cores may round them otherwise where tiles are: results keep their bounds, and not
    /// their bits.
    ///
    /// ```
    /// use std::time::Duration;
    /// use perpetua::device::{BackendKind, Device};
    /// use perpetua::kernels::{Choices, GemmKernel, Kernel};
    /// use perpetua::prelude::*;
    ///
    /// let device = Device::new(BackendKind::Cpu, 0)?;
    /// let stream = device.default_stream();
    /// let (a, b) = (device.full(32 * 64, f16::ONE)?, device.full(64 * 40, f16::ONE)?);
    /// let c = device.zeros::<f16>(32 * 40)?;
    /// # let folder = std::env::temp_dir().join(format!("perpetua-doc-tune-{}", std::process::id()));
    /// # let file = folder.join("choices.txt");
    /// let choices = Choices::at(file); // or `Choices::of_user()`, whose choices all launches take
    /// let product = GemmKernel::staged(32, 40, 64);
    /// let tuned = product.tune(&stream, args![&a, &b, &c], Duration::from_millis(1), &choices)?;
    /// assert!(tuned.seconds <= tuned.untuned_seconds);
    /// product.with_choices(&device, &choices)?.launch(&stream, args![&a, &b, &c])?;
    /// assert_eq!(c.read()?[0], f16::from_f32(64.0));
    /// # std::fs::remove_dir_all(folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NothingToChoose`]; [`Error::Choices`] where the file cannot be read or written, which then stays as it was; what a launch says.
    pub fn tune(
        &self,
        stream: &Stream,
        args: &[KernelArg<'_>],
        long: Duration,
        choices: &Choices,
    ) -> Result<Tuned> {
        // Before anything is measured.
        choices.read()?;
        self.launch(stream, args)?;
        let device = stream.device();
        let open = self.open_of(stream, args).ok_or_else(|| Error::NothingToChoose {
            kernel: self.function().name(),
        })?;
        let mut best: Option<Tuned> = None;
        for choice in self.candidates(device, open) {
            let kernel = GemmKernel {
                choice: Some(choice),
                ..*self
            };
            let seconds = seconds_a_call(stream, long, || kernel.launch(stream, args))?;
            best = Some(match best {
                Some(best) if seconds * GAIN < best.untuned_seconds && seconds < best.seconds => Tuned {
                    choice,
                    seconds,
                    ..best
                },
                Some(best) => best,
                // The first one is the library's own.
                None => Tuned {
                    choice,
                    seconds,
                    untuned_seconds: seconds,
                },
            });
        }
        let best = best.ok_or_else(|| Error::NothingToChoose {
            kernel: self.function().name(),
        })?;
        choices.keep(&self.key(device, open), best.choice)?;
        Ok(best)
    }

    /// With the tiles and slices that a file has for this product on this device; where it has none, as before. A launch passes over what does not suit the product.
    ///
    /// # Errors
    /// [`Error::Choices`]: the file cannot be read.
    pub fn with_choices(mut self, device: &Device, choices: &Choices) -> Result<GemmKernel> {
        let has_stages =
            device.backend() == BackendKind::Cuda && device.info().capabilities.contains(&Capability::Stages);
        let open = match self.schedule {
            Schedule::TensorCore(_) if !has_stages => Open::Columns,
            _ => Open::Stages,
        };
        self.choice = choices.get(&self.key(device, open))?.or(self.choice);
        Ok(self)
    }

    /// Whether all that may be chosen is left to the library.
    fn is_open(&self) -> bool {
        match self.schedule {
            Schedule::Staged(tile) => tile.is_none() && self.slices.is_none(),
            Schedule::TensorCore(_) => self.stages && self.slices.is_none(),
            Schedule::Naive | Schedule::Tiled(_) | Schedule::Thin => false,
        }
    }

    /// What a launch with these arguments, which were checked, leaves open.
    fn open_of(&self, stream: &Stream, args: &[KernelArg<'_>]) -> Option<Open> {
        let ([a, b, .., c], true) = (args, self.is_open()) else {
            return None;
        };
        let operands = self.operands();
        match self.schedule {
            _ if self.batch == 0 || self.size.contains(&0) => None,
            Schedule::Staged(_) => Some(Open::Stages),
            _ if self.suits_thin(stream, &operands, [a, b]) => None,
            _ if self.suits_stages(stream, &operands, [a, b, c]) => Some(Open::Stages),
            _ => Some(Open::Columns),
        }
    }

    /// What is to be measured; first what the library chooses by itself.
    fn candidates(&self, device: &Device, open: Open) -> Vec<Choice> {
        let [m, n, _] = self.size;
        if open == Open::Columns {
            let own = self.tile().unwrap_or(128);
            return [own, 384 - own].map(Choice::of_columns).to_vec();
        }
        let multiprocessors = multiprocessors(device);
        let factors = self.factors().unwrap_or(Factors::F16);
        let stages = self.stages_of(factors);
        let (tile, slices) = self.own_plan(multiprocessors);
        let mut all = vec![(0, Choice::of(tile, slices))];
        for tile in Tile::possible(factors, self.promotes()) {
            let most = self.most_slices(tile, multiprocessors);
            let mut of_tile: Vec<(usize, Choice)> = (1..=most)
                .map(|slices| {
                    let time = tile.time([m, n], stages, multiprocessors, slices);
                    (time, Choice::of(tile, slices))
                })
                .collect();
            of_tile.sort_by_key(|(time, _)| *time);
            all.extend(of_tile.into_iter().take(OF_A_TILE));
        }
        let own = all[0].1;
        let bound = all[1..]
            .iter()
            .map(|(time, _)| time.saturating_mul(HOPEFUL))
            .min();
        all.into_iter()
            .enumerate()
            .filter(|(at, (time, choice))| *at == 0 || *choice != own && Some(*time) <= bound)
            .map(|(_, (_, choice))| choice)
            .filter(|choice| self.plan_of(*choice, multiprocessors).is_some())
            .collect()
    }

    /// The tile and the slices of a product in stages on this device: those asked for, those kept, or those that suit it.
    pub(super) fn plan(&self, device: &Device) -> (Tile, usize) {
        let multiprocessors = multiprocessors(device);
        self.chosen(device, Open::Stages)
            .and_then(|choice| self.plan_of(choice, multiprocessors))
            .unwrap_or_else(|| self.own_plan(multiprocessors))
    }

    /// The columns of a block of a product by tensor cores, if they were kept.
    pub(super) fn chosen_columns(&self, device: &Device) -> Option<usize> {
        let choice = self.chosen(device, Open::Columns)?;
        [128, 256]
            .into_iter()
            .find(|columns| choice == Choice::of_columns(*columns))
    }

    /// What was kept for this product.
    fn chosen(&self, device: &Device, open: Open) -> Option<Choice> {
        match self.is_open() {
            true => self
                .choice
                .or_else(|| choices::of_user(|| self.key(device, open))),
            false => None,
        }
    }

    /// What the library chooses by itself.
    fn own_plan(&self, multiprocessors: usize) -> (Tile, usize) {
        let [m, n, _] = self.size;
        let stages = self.stages_of(self.factors().unwrap_or(Factors::F16));
        let tile = self.staged_tile(multiprocessors);
        let slices = match self.slices {
            _ if self.batch > 1 => 1,
            Some(slices) => slices.clamp(1, stages.max(1)),
            None => tile.slices([m, n], stages, multiprocessors).0,
        };
        (tile, slices)
    }

    /// A choice as a launch takes it; `None` for one that does not suit the product: a file may say anything.
    fn plan_of(&self, choice: Choice, multiprocessors: usize) -> Option<(Tile, usize)> {
        let [m, n, _] = self.size;
        let factors = self.factors().unwrap_or(Factors::F16);
        let mut possible = Tile::possible(factors, self.promotes());
        let tile = possible.find(|tile| Choice::of(*tile, choice.slices) == choice)?;
        let fits = (1..=self.most_slices(tile, multiprocessors)).contains(&choice.slices)
            && tile.count(m, n).saturating_mul(self.batch) <= MOST_TILES / choice.slices;
        fits.then_some((tile, choice.slices))
    }

    /// Most slices that may be worth their memory.
    fn most_slices(&self, tile: Tile, multiprocessors: usize) -> usize {
        let [m, n, _] = self.size;
        let stages = self.stages_of(self.factors().unwrap_or(Factors::F16));
        match self.batch {
            0 | 1 => tile.most_slices([m, n], stages, multiprocessors),
            _ => 1,
        }
    }

    fn key(&self, device: &Device, open: Open) -> String {
        let [m, n, k] = self.size;
        let [a, b] = self.transposed.map(|turned| if turned { "T" } else { "N" });
        let way = match open {
            Open::Stages => "stages",
            Open::Columns => "columns",
        };
        let sums = match (self.promotes(), self.split) {
            (true, _) => " promoted",
            (_, true) => " split",
            _ => "",
        };
        let factors = self.factors().unwrap_or(Factors::F16);
        let product = format!(
            "{way} {factors:?} {:?}{sums} {a}{b} {m}x{n}x{k} {}",
            self.element, self.batch
        );
        choices::key(device, &product)
    }
}

impl Choice {
    fn of(tile: Tile, slices: usize) -> Choice {
        let ([rows, columns], together) = (tile.size(), tile.together());
        Choice {
            tile: [rows * together, columns],
            slices,
        }
    }

    fn of_columns(columns: usize) -> Choice {
        Choice {
            tile: [tensor_core::ROWS, columns],
            slices: 1,
        }
    }
}

/// How many blocks a device runs at a time, one each.
pub(super) fn multiprocessors(device: &Device) -> usize {
    device.info().multiprocessors.unwrap_or(1).max(1) as usize
}
