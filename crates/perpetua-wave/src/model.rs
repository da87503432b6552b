//! A scene as cells and time steps: what a simulation computes. Must not know devices, files and pictures.

use std::ops::RangeInclusive;

use super::error::{Error, Part, Result, range};
use super::waveform::Waveform;

/// What fills a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Medium {
    /// Of waves, in m/s.
    pub speed: f64,
    /// Rate at which amplitudes decay, in 1/s.
    pub damping: f64,
    /// Whether the field is held at zero, so that waves come back from it; speed and damping mean nothing then.
    pub reflects: bool,
}

impl Medium {
    /// A medium without losses.
    pub const fn of_speed(speed: f64) -> Medium {
        Medium {
            speed,
            damping: 0.0,
            reflects: false,
        }
    }

    /// A wall.
    pub const WALL: Medium = Medium {
        speed: 0.0,
        damping: 0.0,
        reflects: true,
    };
}

/// What happens at the grid's borders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Border {
    /// Waves come back.
    Reflect,
    /// Waves fade over so many cells along each border, and what is left goes out.
    Absorb(usize),
}

/// A box of cells: from `from` up to, and without, `to`, in x, y, z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// First cell.
    pub from: [usize; 3],
    /// First cell beyond.
    pub to: [usize; 3],
}

impl Region {
    /// One cell.
    pub fn cell(at: [usize; 3]) -> Region {
        Region {
            from: at,
            to: at.map(|c| c + 1),
        }
    }

    /// Whether `at` lies in it.
    pub fn contains(&self, at: [usize; 3]) -> bool {
        (0..3).all(|axis| (self.from[axis]..self.to[axis]).contains(&at[axis]))
    }

    /// What both have; it may be empty.
    pub(super) fn within(&self, size: [usize; 3]) -> Region {
        let mut cut = *self;
        for (axis, end) in size.into_iter().enumerate() {
            cut.to[axis] = cut.to[axis].min(end);
            cut.from[axis] = cut.from[axis].min(cut.to[axis]);
        }
        cut
    }
}

/// Cells that are driven.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Source {
    /// Where. A plane across the grid makes a plane wave, a cell a circular or spherical one.
    pub region: Region,
    /// The signal.
    pub waveform: Waveform,
    /// The wave's amplitude: of a plane wave anywhere, else a wavelength away. Of an impulse: what is added at once.
    pub amplitude: f64,
}

/// A place where the field is recorded at every step.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// Its name in tables and plots.
    pub name: String,
    /// The cell.
    pub at: [usize; 3],
}

/// A grid of cells, and what happens in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Cells in x, y, z; one in z is a plane.
    pub size: [usize; 3],
    /// Width of a cell in metres.
    pub spacing: f64,
    /// In seconds.
    pub time_step: f64,
    /// The media, at most 200.
    pub media: Vec<Medium>,
    /// Which medium fills each cell, x fastest.
    pub cells: Vec<u8>,
    /// At the borders.
    pub border: Border,
    /// What drives it.
    pub sources: Vec<Source>,
    /// What is recorded.
    pub probes: Vec<Probe>,
}

/// Most media of a model.
pub const MOST_MEDIA: usize = 200;

/// Cells of a grid in all: their indices are 32-bit numbers with a sign.
pub(super) const MOST_CELLS: u128 = i32::MAX as u128;

impl Model {
    /// How many cells a grid may have along an axis.
    pub const SIDE: RangeInclusive<usize> = 8..=1 << 20;

    /// An empty grid of one medium that absorbs at its borders and steps as fast as is wise.
    pub fn empty(size: [usize; 3], spacing: f64, medium: Medium) -> Model {
        let mut model = Model {
            size,
            spacing,
            time_step: 0.0,
            media: vec![medium],
            cells: vec![0; size.iter().product()],
            border: Border::Absorb(32),
            sources: Vec::new(),
            probes: Vec::new(),
        };
        model.time_step = model.default_time_step();
        model
    }

    /// Whether it is a volume.
    pub fn is_deep(&self) -> bool {
        self.size[2] > 1
    }

    /// The index of a cell.
    pub fn index(&self, [x, y, z]: [usize; 3]) -> usize {
        (z * self.size[1] + y) * self.size[0] + x
    }

    /// The fastest medium's speed in m/s; 0 where there are walls only.
    pub fn fastest(&self) -> f64 {
        let moving = self.media.iter().filter(|m| !m.reflects);
        moving.map(|m| m.speed).fold(0.0, f64::max)
    }

    /// The largest time step with which the scheme is stable: `spacing / (speed · √dimensions)`.
    pub fn largest_time_step(&self) -> f64 {
        let dimensions = if self.is_deep() { 3.0f64 } else { 2.0 };
        self.spacing / (self.fastest() * dimensions.sqrt())
    }

    /// A little less than the largest: the closer to it, the less waves of different lengths drift apart.
    pub fn default_time_step(&self) -> f64 {
        0.95 * self.largest_time_step()
    }

    /// The smallest box with all sources in it.
    pub(super) fn driven(&self) -> Region {
        let hull = |a: Region, b: Region| Region {
            from: [0, 1, 2].map(|axis| a.from[axis].min(b.from[axis])),
            to: [0, 1, 2].map(|axis| a.to[axis].max(b.to[axis])),
        };
        let regions = self.sources.iter().map(|source| source.region);
        regions.reduce(hull).unwrap_or_default()
    }

    /// What a source adds to its cells at a step.
    pub fn drive(&self, source: &Source, step: u64) -> f64 {
        let (t, dt) = (step as f64 * self.time_step, self.time_step);
        let courant = self.fastest() * dt / self.spacing;
        let flat = if self.is_deep() { 3 } else { 2 };
        let extents = (0..flat).map(|axis| source.region.to[axis] - source.region.from[axis]);
        let long = extents.filter(|n| *n > 4).count();
        let shape = |t: f64| source.waveform.at(t, dt);
        let gain = match source.waveform.frequency() {
            None => return source.amplitude * shape(t),
            // A line in the plane, a plane in space: u_tt = c² u_xx + 2 c A g'(t) δ(x) sends A g(t) both ways.
            Some(_) if long + 1 >= flat => {
                return 2.0 * courant * source.amplitude * (shape(t + 0.5 * dt) - shape(t - 0.5 * dt));
            }
            // A point: the far field of Green's function, a wavelength away; for a longer one shared by its cells.
            Some(frequency) if flat == 3 => {
                2.0 * std::f64::consts::TAU * courant * courant * self.fastest() / (frequency * self.spacing)
            }
            Some(_) => 12.5 * courant * courant,
        };
        let cells = (0..flat).map(|axis| (source.region.to[axis] - source.region.from[axis]).max(1));
        gain * source.amplitude * shape(t) / cells.product::<usize>() as f64
    }

    /// How many cells a grid of this size has, if a simulation can have it.
    ///
    /// # Errors
    /// It has too few cells along an axis, or too many.
    pub fn count(size: [usize; 3]) -> Result<usize> {
        let axes = if size[2] > 1 { 3 } else { 2 };
        for (axis, name) in ["x", "y", "z"].into_iter().enumerate().take(axes) {
            if !Model::SIDE.contains(&size[axis]) {
                return Err(range(
                    format!("the grid's size in {name}"),
                    size[axis],
                    "8 to 1,048,576 cells are possible",
                )
                .about(Part::Size));
            }
        }
        let total = size.iter().try_fold(1usize, |a, b| a.checked_mul(*b));
        total
            .filter(|n| *n as u128 <= MOST_CELLS && size[2] > 0)
            .ok_or_else(|| {
                range(
                    "the grid",
                    format!("{size:?} cells"),
                    "at most 2,147,483,647 are possible",
                )
                .about(Part::Cells)
            })
    }

    /// Checks all that a simulation relies on.
    ///
    /// # Errors
    /// What is wrong, with what is allowed.
    pub fn check(&self) -> Result<()> {
        let total = Model::count(self.size)?;
        if self.cells.len() != total {
            return Err(range(
                "the number of cells",
                self.cells.len(),
                format!("the grid has {total}"),
            ));
        }
        if self.media.is_empty() || self.media.len() > MOST_MEDIA {
            return Err(range(
                "the number of media",
                self.media.len(),
                format!("1 to {MOST_MEDIA} are possible"),
            ));
        }
        if let Some(wrong) = self.cells.iter().find(|m| usize::from(**m) >= self.media.len()) {
            return Err(range(
                "a cell's medium",
                wrong,
                format!("there are {}", self.media.len()),
            ));
        }
        for (i, medium) in self.media.iter().enumerate() {
            let right = medium.speed.is_finite() && medium.speed > 0.0;
            let calm = medium.damping.is_finite() && medium.damping >= 0.0;
            if !(medium.reflects || right && calm) {
                return Err(range(
                    format!("medium {i}"),
                    format!("{medium:?}"),
                    "its speed must be above 0, its damping 0 or more",
                ));
            }
        }
        if !(self.spacing.is_finite() && self.spacing > 0.0) {
            return Err(range("a cell's width", self.spacing, "it must be above 0 m"));
        }
        if !(self.time_step.is_finite() && self.time_step > 0.0) {
            return Err(range(
                "the time step",
                format!("{} s", self.time_step),
                "it must be a number above 0",
            ));
        }
        let largest = self.largest_time_step();
        if self.time_step > largest * (1.0 + 1e-9) {
            return Err(Error::Unstable {
                time_step: self.time_step,
                largest,
                spacing: self.spacing,
                speed: self.fastest(),
            });
        }
        for (i, source) in self.sources.iter().enumerate() {
            let region = source.region;
            let empty = (0..3).any(|a| region.from[a] >= region.to[a] || region.to[a] > self.size[a]);
            if empty {
                return Err(range(
                    format!("source {i}"),
                    format!("{region:?}"),
                    format!("it must lie in the grid, {:?}", self.size),
                )
                .about(Part::Source(i)));
            }
            let frequency = source.waveform.frequency();
            if frequency.is_some_and(|f| !(f.is_finite() && f > 0.0)) || !source.amplitude.is_finite() {
                return Err(range(
                    format!("source {i}"),
                    format!("{:?} of amplitude {}", source.waveform, source.amplitude),
                    "the frequency must be above 0, the amplitude finite",
                ));
            }
        }
        if self.probes.len() > self.size[0] {
            return Err(range(
                "the number of probes",
                self.probes.len(),
                format!("a grid of this width takes up to {}", self.size[0]),
            )
            .about(Part::Probe(self.size[0])));
        }
        for probe in &self.probes {
            if (0..3).any(|a| probe.at[a] >= self.size[a]) {
                return Err(range(
                    format!("probe {}", probe.name),
                    format!("at {:?}", probe.at),
                    format!("it must lie in the grid, {:?}", self.size),
                ));
            }
        }
        Ok(())
    }

    /// The factor by which each column, row and layer keeps the field's change over a step, one list after the other.
    pub(super) fn profile(&self) -> Vec<f32> {
        let courant = self.fastest() * self.time_step / self.spacing;
        let of = |n: usize| {
            (0..n).map(move |i| {
                let Border::Absorb(width) = self.border else {
                    return 1.0;
                };
                let width = width.min(n / 3).max(1) as f64;
                let depth = (width - i.min(n - 1 - i) as f64).max(0.0) / width;
                // Grows with the square; there and back at right angles leaves `RESIDUE` of the amplitude.
                let most = 3.0 * courant * (1.0 / RESIDUE).ln() / (2.0 * width);
                let d = most * depth * depth;
                ((1.0 - d) / (1.0 + d)) as f32
            })
        };
        self.size.into_iter().flat_map(of).collect()
    }
}

/// Amplitude that an absorbing border lets back in theory; less would be bought with reflection where it begins.
const RESIDUE: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Model {
        Model::empty([64, 64, 1], 0.01, Medium::of_speed(340.0))
    }

    #[test]
    fn a_step_too_long_is_refused_with_the_largest_stable_one() {
        let mut model = model();
        assert_eq!(model.check(), Ok(()));
        model.time_step = 3e-5;
        let message = model.check().unwrap_err().to_string();
        assert_eq!(
            message,
            "a time step of 3e-5 s is unstable with cells of 1e-2 m and waves of 340 m/s; \
             the largest stable one is 2.0797e-5 s: leave it out, or take finer steps"
        );
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let check = |change: fn(&mut Model), expect: &str| {
            let mut model = model();
            change(&mut model);
            let message = model.check().map_err(|e| e.to_string()).unwrap_err();
            assert!(message.contains(expect), "{message}");
        };
        check(|m| m.size[1] = 3, "the grid's size in y is 3");
        check(
            |m| m.cells.push(0),
            "the number of cells is 4097; the grid has 4096",
        );
        check(|m| m.cells[7] = 9, "a cell's medium is 9; there are 1");
        check(|m| m.media.clear(), "the number of media is 0");
        check(|m| m.spacing = f64::NAN, "a cell's width is NaN");
        check(
            |m| m.time_step = 0.0,
            "the time step is 0 s; it must be a number above 0",
        );
        check(|m| m.time_step = 1.0, "unstable");
        check(
            |m| {
                m.probes.push(Probe {
                    name: "ear".into(),
                    at: [64, 0, 0],
                });
            },
            "probe ear is at [64, 0, 0]",
        );
    }
}
