//! What is known of tiles that are at work: commands become orders, sources' signals are said ahead, steps counted. Must not know who
//! asks.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use super::super::error::{Error, Part, Result, range};
use super::super::model::{Medium, Model};
use super::super::slots::Slots;
use super::command::{Command, Receipt, TileTuning};
use super::cut::{Cut, MOST_SPAN};
use super::engine::{DRIVES, Engine, SOURCES};
use super::order::{FILL, FREE, MEDIUM, PAINT, PAUSE, PROBE, RUN, SOURCE, order, words};
use perpetua_device::Device;

/// Steps of one order at most: so that what sources add can be said ahead while tiles step.
const LONGEST: u64 = DRIVES / 4;
/// What sources add is said so many steps ahead of what is ordered.
const SPARE: u64 = 2 * MOST_SPAN as u64;
/// Steps whose drives are said at once.
const PORTION: u64 = DRIVES / 4;

/// What the program and the feeder share.
pub(super) struct Core {
    pub(super) engine: Box<dyn Engine>,
    /// As it is now, but for the media's speeds.
    pub(super) model: Model,
    pub(super) media: Vec<Medium>,
    /// Steps ordered, as far as is known.
    pub(super) step: u64,
    /// Whether tiles go on by themselves.
    pub(super) free: bool,
    /// Steps whose drives have been said.
    pub(super) supplied: u64,
    /// Orders to step whose end has not been waited for, and the step behind each.
    pub(super) running: VecDeque<(u32, u64)>,
    /// Steps that are known to be done.
    pub(super) done: u64,
    pub(super) last: Option<u32>,
}

pub(super) fn cannot(what: impl Into<String>, instead: &'static str) -> Error {
    Error::Actors {
        cannot: what.into(),
        instead,
    }
}

pub(super) fn lock(core: &Mutex<Core>) -> MutexGuard<'_, Core> {
    core.lock().unwrap_or_else(|e| e.into_inner())
}

/// What sources add in so many steps from one on.
pub(super) fn drives(model: &Model, from: u64, steps: u64) -> Vec<[f32; SOURCES]> {
    let row = |step| {
        let mut row = [0.0; SOURCES];
        for (to, source) in row.iter_mut().zip(&model.sources) {
            *to = model.drive(source, step) as f32;
        }
        row
    };
    (from..from + steps).map(row).collect()
}

/// What tile actors ask of a model beyond what a simulation does.
pub(super) fn check(model: &Model) -> Result<()> {
    model.check()?;
    if model.is_deep() {
        return Err(cannot(
            "simulate volumes",
            "launch the steps (`Simulation`, --mode launch)",
        ));
    }
    if model.sources.len() > SOURCES {
        return Err(range(
            "the number of sources",
            model.sources.len(),
            format!("tile actors drive up to {SOURCES}"),
        )
        .about(Part::Source(SOURCES)));
    }
    check_apart(model)?;
    Ok(())
}

/// No cell may have two sources: the device keeps one a cell.
fn check_apart(model: &Model) -> Result<()> {
    let overlap = |a: usize, b: usize| {
        let (a, b) = (model.sources[a].region, model.sources[b].region);
        (0..2).all(|axis| a.from[axis] < b.to[axis] && b.from[axis] < a.to[axis])
    };
    let sources = model.sources.len();
    if (0..sources).any(|a| (a + 1..sources).any(|b| overlap(a, b))) {
        return Err(cannot("drive cells from two sources", "let sources not overlap"));
    }
    Ok(())
}

/// Tiles in the interpreter, at most.
const INTERPRETED: u32 = 64;

/// The cut of a model's grid for a device, which must have room for all tiles at once.
pub(super) fn cut(device: &Device, model: &Model, tuning: TileTuning) -> Result<Cut> {
    let info = device.info();
    if info.compute_capability.is_some_and(|have| have < (7, 5)) || !info.mapped_memory {
        return Err(cannot(
            "stay on this device",
            "it takes compute capability 7.5 or higher; launch the steps (--mode launch)",
        ));
    }
    let size = [model.size[0] as u32, model.size[1] as u32];
    // One is the conductor's.
    let room = match info.compute_capability {
        Some(_) => info.multiprocessors.unwrap_or(1).saturating_sub(1),
        // In the interpreter they take turns.
        None => INTERPRETED,
    };
    let fits = |cut: &Cut| cut.is_possible() && cut.count() <= room;
    let asked = |cut: &Cut| {
        tuning.rows.is_none_or(|n| n == cut.rows)
            && tuning.strips.is_none_or(|n| n == cut.strips)
            && tuning.span.is_none_or(|n| n == cut.span)
    };
    let all = [2u32, 4, 8].into_iter().flat_map(|rows| {
        (3..=16).flat_map(move |strips| {
            [2, 4, 8].into_iter().map(move |span| Cut {
                size,
                rows,
                strips,
                span,
            })
        })
    });
    let best = all.filter(asked).filter(fits).min_by_key(Cut::cost);
    best.ok_or_else(|| {
        let largest = Cut {
            size,
            rows: 8,
            strips: 16,
            span: 4,
        };
        let side = f64::from(room * (64 - 8) * (largest.high() - 8)).sqrt() as u32;
        let tiles = if tuning == TileTuning::default() {
            "blocks"
        } else {
            "blocks of the shape asked for"
        };
        range(
            "the grid",
            format!("{} x {} cells", size[0], size[1]),
            format!(
                "as tile actors it needs more resident {tiles} than the {room} that fit on {} beside their conductor: \
                 up to about {side} x {side} cells fit; launch the steps (--mode launch) of larger ones",
                info.name
            ),
        )
    })
}

impl Core {
    pub(super) fn push(&mut self, kind: u32, words: &[u32]) -> Result<u32> {
        let number = self.engine.push(&order(kind, words))?;
        self.last = Some(number);
        Ok(number)
    }

    /// The step whose number's low half is known, near what is known of it.
    pub(super) fn widen(&self, step: u32) -> u64 {
        let off = step.wrapping_sub(self.step as u32) as i32;
        self.step.saturating_add_signed(off.into())
    }

    /// The receipt of an order that is in its place.
    fn receipt(&mut self, number: u32) -> Result<Receipt> {
        if self.free {
            let taken = self.engine.taken(number)?;
            self.step = self.widen(taken.step);
        }
        Ok(Receipt {
            step: self.step,
            number,
        })
    }

    pub(super) fn place(&mut self, index: usize) -> Result<u32> {
        let Some(source) = self.model.sources.get(index) else {
            return Err(range(
                "a source",
                index,
                format!("there are {}", self.model.sources.len()),
            ));
        };
        let region = source.region;
        let words = [index, region.from[0], region.to[0], region.from[1], region.to[1]];
        self.push(SOURCE, &words.map(|n| n as u32))
    }

    /// Says what sources add in the next steps that nobody has said it of.
    fn supply(&mut self) -> Result<()> {
        let from = self.supplied;
        let rows = drives(&self.model, from, PORTION);
        self.engine.supply(from, &rows)?;
        self.supplied += PORTION;
        Ok(())
    }

    /// Says what sources add up to a step, waiting for steps whose places in the ring it takes.
    fn supply_until(&mut self, step: u64) -> Result<()> {
        while self.supplied < step + SPARE {
            let free = self.supplied + PORTION + SPARE;
            while self.done + DRIVES < free {
                let Some((number, behind)) = self.running.pop_front() else {
                    // Nothing is under way.
                    self.done = self.step;
                    break;
                };
                self.engine.wait(number)?;
                self.done = behind;
            }
            self.supply()?;
        }
        Ok(())
    }

    pub(super) fn steps(&mut self, steps: u64) -> Result<Receipt> {
        if self.free {
            let paused = self.pause()?;
            self.engine.wait(paused.number)?;
        }
        let mut left = steps;
        let mut number = self.last.unwrap_or(0);
        while left > 0 {
            let turns = left.min(LONGEST);
            self.supply_until(self.step + turns)?;
            number = self.push(RUN, &[turns as u32])?;
            self.step += turns;
            self.running.push_back((number, self.step));
            if self.running.len() > 512 {
                // Receipts are kept of the last thousand orders.
                self.running.pop_front();
            }
            left -= turns;
        }
        Ok(Receipt {
            step: self.step,
            number,
        })
    }

    pub(super) fn pause(&mut self) -> Result<Receipt> {
        let number = self.push(PAUSE, &[])?;
        let receipt = self.receipt(number)?;
        self.free = false;
        self.running.push_back((number, self.step));
        Ok(receipt)
    }

    /// Lets tiles that run freely go on as far as sources are known.
    pub(super) fn feed(&mut self) -> Result<()> {
        if !self.free {
            return Ok(());
        }
        let target = (self.supplied - SPARE) as u32;
        let number = self.push(FREE, &[target])?;
        self.receipt(number)?;
        // Behind what has been given out are at least these steps done.
        let ahead = u64::from(self.engine.ahead());
        self.done = self.done.max(self.step.saturating_sub(ahead));
        while self.supplied + PORTION + SPARE <= self.done + DRIVES {
            self.supply()?;
        }
        let further = (self.supplied - SPARE) as u32;
        if further != target {
            self.push(FREE, &[further])?;
        }
        Ok(())
    }

    pub(super) fn ask(&mut self, at: [usize; 2]) -> Result<Receipt> {
        let [w, h, _] = self.model.size;
        if at[0] >= w || at[1] >= h {
            return Err(range(
                "a probe",
                format!("at {at:?}"),
                format!("the grid has {w} x {h} cells"),
            ));
        }
        let number = self.push(PROBE, &[at[0] as u32, at[1] as u32])?;
        Ok(Receipt {
            step: self.step,
            number,
        })
    }

    pub(super) fn synchronize(&mut self) -> Result<()> {
        if let Some(number) = self.last {
            self.engine.wait(number)?;
        }
        if !self.free {
            self.running.clear();
            self.done = self.step;
        }
        Ok(())
    }

    fn slot(&self, medium: u8) -> Result<u32> {
        match self.media.get(usize::from(medium)) {
            Some(m) if m.reflects => Ok(0),
            Some(_) => Ok(u32::from(medium) + 1),
            None => Err(range(
                "a medium",
                medium,
                format!("there are {}", self.media.len()),
            )),
        }
    }

    pub(super) fn inject(&mut self, command: &Command) -> Result<Receipt> {
        let number = match command {
            Command::MoveSource { index, to } => self.move_source(*index, *to)?,
            Command::Paint {
                center,
                radius,
                medium,
            } => {
                let slot = self.slot(*medium)?;
                if !(center.iter().all(|c| c.is_finite()) && *radius >= 0.0 && radius.is_finite()) {
                    return Err(range(
                        "a disc",
                        format!("at {center:?} of radius {radius}"),
                        "its centre must be finite, its radius 0 or more",
                    ));
                }
                let square = radius * radius;
                let [w, h, _] = self.model.size;
                let clip = |c: f64, n: usize| {
                    (
                        (c - radius).max(0.0) as usize,
                        (c + radius + 1.0).max(0.0) as usize,
                        n,
                    )
                };
                let ((x0, x1, w), (y0, y1, h)) = (clip(center[0], w), clip(center[1], h));
                for y in y0..y1.min(h) {
                    for x in x0..x1.min(w) {
                        let (across, down) = (x as f64 - center[0], y as f64 - center[1]);
                        if across * across + down * down <= square {
                            self.model.cells[y * w + x] = *medium;
                        }
                    }
                }
                let ([x0, x1], [y0, y1], [r0, r1]) = (words(center[0]), words(center[1]), words(square));
                self.push(PAINT, &[slot, x0, x1, y0, y1, r0, r1])?
            }
            Command::Fill { region, medium } => {
                let slot = self.slot(*medium)?;
                let region = region.within(self.model.size);
                let w = self.model.size[0];
                if region.from[2] < region.to[2] {
                    for y in region.from[1]..region.to[1] {
                        self.model.cells[y * w + region.from[0]..y * w + region.to[0]].fill(*medium);
                    }
                }
                let empty = region.from[2] == region.to[2];
                let to_y = if empty { region.from[1] } else { region.to[1] };
                let place = [region.from[0], region.to[0], region.from[1], to_y].map(|n| n as u32);
                self.push(FILL, &[slot, place[0], place[1], place[2], place[3]])?
            }
            Command::SetSpeed { medium, speed } => self.set_speed(*medium, *speed)?,
        };
        self.receipt(number)
    }

    fn move_source(&mut self, index: usize, to: [usize; 2]) -> Result<u32> {
        let size = self.model.size;
        let sources = self.model.sources.len();
        let Some(source) = self.model.sources.get_mut(index) else {
            return Err(range("a source", index, format!("there are {sources}")));
        };
        let before = source.region;
        for (axis, to) in to.into_iter().enumerate() {
            let extent = before.to[axis] - before.from[axis];
            source.region.from[axis] = to;
            source.region.to[axis] = to.saturating_add(extent);
        }
        let after = source.region;
        let inside = (0..2).all(|axis| after.to[axis] <= size[axis]);
        let checked = match inside {
            true => check_apart(&self.model),
            false => Err(range(
                format!("source {index}"),
                format!("{after:?}"),
                format!("it must lie in the grid, {size:?}"),
            )),
        };
        if let Err(error) = checked {
            self.model.sources[index].region = before;
            return Err(error);
        }
        self.place(index)
    }

    fn set_speed(&mut self, medium: u8, speed: f64) -> Result<u32> {
        let slot = self.slot(medium)?;
        let fastest = self.model.fastest();
        if slot == 0 {
            return Err(cannot("give a wall a speed", "paint another medium"));
        }
        if !(speed > 0.0 && speed <= fastest) {
            return Err(range(
                format!("the speed of medium {medium}"),
                speed,
                format!(
                    "above 0 and at most {fastest} m/s, by which time step and borders are made, is possible"
                ),
            ));
        }
        let m = &mut self.media[usize::from(medium)];
        m.speed = speed;
        let mut changed = self.model.clone();
        changed.media.clone_from(&self.media);
        let table = Slots::default().table(&changed);
        let number = slot as usize;
        let (stiffness, keep) = (table[number], table[256 + number]);
        self.push(MEDIUM, &[slot, stiffness.to_bits(), keep.to_bits()])
    }
}
