//! What can be changed while a simulation runs: media, sources, probes, the field itself.

use half::f16;

use super::super::error::{Result, range};
use super::super::model::{Medium, Probe, Region, Source};
use super::super::slots::Slots;
use super::launches::{Blocked, Family};
use super::series::Series;
use super::{Fields, Simulation};

impl Simulation {
    /// Sets the field to zero and the time to the beginning; media and sources stay.
    ///
    /// # Errors
    /// What the device says.
    pub fn reset(&mut self) -> Result<()> {
        match &self.fields {
            Fields::F32(f) => f.iter().try_for_each(|b| b.fill(0.0))?,
            Fields::F16(f) => f.iter().try_for_each(|b| b.fill(f16::ZERO))?,
        }
        self.step = 0;
        self.series.restart(0);
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
        let Family::Media {
            cells,
            table,
            slots,
            coefficients,
        } = &mut self.family
        else {
            return Ok(());
        };
        let before = slots.clone();
        let len = region.to[0] - region.from[0];
        if len == 0 {
            return Ok(());
        }
        let rows = (region.from[2]..region.to[2])
            .flat_map(|z| (region.from[1]..region.to[1]).map(move |y| [region.from[0], y, z]));
        let rows: Vec<([usize; 3], Vec<u8>)> = rows
            .map(|at| Ok((at, slots.row(&self.model, at, len)?)))
            .collect::<Result<_>>()?;
        let numbers = slots.table(&self.model);
        for (at, bytes) in rows {
            let start = self.model.index(at);
            let part = start..start + len;
            self.stream.write(&cells.slice(part.clone())?, &bytes)?;
            if let Some(buffers) = coefficients {
                let rows = Slots::coefficients(&numbers, &self.model, at, &bytes);
                for (buffer, row) in buffers.iter().zip(rows) {
                    self.stream.write(&buffer.slice(part.clone())?, &row)?;
                }
            }
        }
        if before != *slots {
            self.stream.write(table, &numbers)?;
        }
        Ok(())
    }

    /// Makes the device's side of media and sources anew. Graphs stay where the buffers do.
    fn rebuild(&mut self) -> Result<()> {
        let mut family = Simulation::family(&self.device, &self.model, self.tuning)?;
        let (kernel, config) =
            Simulation::launcher(&self.device, &family, &self.model, self.storage, self.tuning)?;
        let blocked = Blocked::new(&self.device, &family, &self.model, self.storage, self.tuning)?;
        let edge = Simulation::edge_of(&self.model);
        let stays = match (&mut family, &self.family) {
            (
                Family::Media {
                    cells,
                    table,
                    coefficients,
                    ..
                },
                Family::Media {
                    cells: old_cells,
                    table: old_table,
                    coefficients: old_coefficients,
                    ..
                },
            ) => {
                self.stream.copy(cells, old_cells)?;
                self.stream.copy(table, old_table)?;
                for (new, old) in coefficients
                    .iter()
                    .flatten()
                    .zip(old_coefficients.iter().flatten())
                {
                    self.stream.copy(new, old)?;
                }
                (*cells, *table) = (old_cells.clone(), old_table.clone());
                coefficients.clone_from(old_coefficients);
                // Where sources lie is part of a launch on the CPU.
                edge == self.edge && coefficients.is_none()
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
        (self.kernel, self.config) =
            Simulation::launcher(&self.device, &self.family, &self.model, self.storage, self.tuning)?;
        self.record = self
            .device
            .zeros(self.longest as usize * positions.len().max(1))?;
        self.positions = self
            .device
            .upload(if positions.is_empty() { &[0] } else { &positions })?;
        self.series = Series::new(self.series.recording(), positions.len(), self.longest, self.step);
        self.graphs.clear();
        Ok(())
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
    pub(crate) fn set_cells(&mut self, cells: &[u8]) -> Result<()> {
        if self.model.cells != cells {
            self.model.cells.copy_from_slice(cells);
            self.rebuild()?;
        }
        Ok(())
    }

    /// Goes to a step, with what the probes had recorded from step `from` on, row by row. The field stays.
    pub(crate) fn set_step(&mut self, step: u64, series: Vec<f32>, from: u64) {
        self.series.replace(series, from, step);
        self.step = step;
    }
}
