//! A scene in metres, seconds and names, of no particular resolution, and how it becomes cells. Must not know how it is
//! written down, nor devices.

use super::error::{Error, Part, Result, range};
use super::model::{Border, MOST_CELLS, Medium, Model, Probe, Region, Source};
use super::waveform::Waveform;

mod remarks;

pub use remarks::Remarks;
use remarks::Seen;

/// A named medium.
#[derive(Clone, Debug, PartialEq)]
pub struct Material {
    /// Its name.
    pub name: String,
    /// What it does to waves.
    pub medium: Medium,
    /// How it is drawn.
    pub color: [u8; 3],
}

/// A form, in metres from the upper left corner (of the first layer).
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// A box with edges along the axes.
    Box {
        /// Its corner nearest to the origin.
        from: [f64; 3],
        /// The opposite corner.
        to: [f64; 3],
    },
    /// A disc; a ball in space.
    Disc {
        /// Its middle.
        center: [f64; 3],
        /// Its radius.
        radius: f64,
    },
    /// What two equal discs (balls) have in common, one to the left and one to the right.
    Lens {
        /// Its middle.
        center: [f64; 3],
        /// Its extent across.
        height: f64,
        /// Its extent in x, in the middle.
        thickness: f64,
    },
    /// A polygon in x and y, through all layers.
    Polygon(Vec<[f64; 2]>),
}

impl Form {
    /// Whether a point lies in it.
    pub fn contains(&self, p: [f64; 3], deep: bool) -> bool {
        let axes = if deep { 3 } else { 2 };
        let within = |center: &[f64; 3], radius: f64| {
            (0..axes).map(|a| (p[a] - center[a]).powi(2)).sum::<f64>() <= radius * radius
        };
        match self {
            Form::Box { from, to } => (0..axes).all(|a| from[a] <= p[a] && p[a] < to[a]),
            Form::Disc { center, radius } => within(center, *radius),
            Form::Lens {
                center,
                height,
                thickness,
            } => {
                let sagitta = 0.5 * thickness;
                let radius = height * height / (8.0 * sagitta) + 0.5 * sagitta;
                let shifted = |by: f64| [center[0] + by, center[1], center[2]];
                within(&shifted(radius - sagitta), radius) && within(&shifted(sagitta - radius), radius)
            }
            Form::Polygon(points) => {
                // A ray to the right crosses the outline an odd number of times.
                let mut inside = false;
                for (i, a) in points.iter().enumerate() {
                    let b = points[(i + 1) % points.len()];
                    if (a[1] > p[1]) != (b[1] > p[1]) {
                        let x = a[0] + (p[1] - a[1]) / (b[1] - a[1]) * (b[0] - a[0]);
                        inside ^= p[0] < x;
                    }
                }
                inside
            }
        }
    }
}

/// A form of a material.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Index of its material.
    pub material: usize,
    /// Where.
    pub form: Form,
}

/// A source in metres.
#[derive(Clone, Debug, PartialEq)]
pub struct Emitter {
    /// One corner.
    pub from: [f64; 3],
    /// The opposite one; the same for a point.
    pub to: [f64; 3],
    /// The signal.
    pub waveform: Waveform,
    /// As in [`Source`].
    pub amplitude: f64,
}

/// A place to record at, in metres.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// Its name.
    pub name: String,
    /// Where.
    pub at: [f64; 3],
}

/// A picture whose cells are materials.
#[derive(Clone, Debug, PartialEq)]
pub struct Bitmap {
    /// Cells in x.
    pub width: usize,
    /// Cells in y.
    pub height: usize,
    /// Index of the material of each, row by row.
    pub materials: Vec<u8>,
}

/// A scene.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Its name.
    pub name: String,
    /// Extents in x, y and z in metres; 0 in z for a plane.
    pub size: [f64; 3],
    /// Cells along x, unless somebody wants others.
    pub cells: usize,
    /// In seconds; a little less than the largest stable one if left out.
    pub time_step: Option<f64>,
    /// How long it is worth looking at, in seconds.
    pub duration: f64,
    /// Whether the borders absorb.
    pub absorbs: bool,
    /// Width of absorbing borders in metres.
    pub border_width: f64,
    /// The materials; the first fills what nothing else does.
    pub materials: Vec<Material>,
    /// What stands where; later ones over earlier ones.
    pub shapes: Vec<Shape>,
    /// A picture below the shapes.
    pub bitmap: Option<Bitmap>,
    /// What drives it.
    pub emitters: Vec<Emitter>,
    /// What is recorded.
    pub listeners: Vec<Listener>,
}

impl Scene {
    /// Whether it is a volume.
    pub fn is_deep(&self) -> bool {
        self.size[2] > 0.0
    }

    /// How many cells the scene has along each axis, with `cells` along x (by default as many as it says).
    ///
    /// # Errors
    /// These are too few or too many.
    pub fn grid(&self, cells: Option<usize>) -> Result<[usize; 3]> {
        let width = cells.unwrap_or(self.cells);
        if !Model::SIDE.contains(&width) {
            return Err(range("the size", width, "8 to 1,048,576 cells are possible").about(Part::Cells));
        }
        if !(0..3).all(|a| self.size[a].is_finite() && (self.size[a] > 0.0 || a == 2)) {
            return Err(range(
                "the scene's size",
                format!("{:?} m", self.size),
                "it must be above 0",
            )
            .about(Part::Size));
        }
        let size = |width: usize| {
            let spacing = self.size[0] / width as f64;
            let count = |extent: f64| ((extent / spacing).round() as usize).max(1);
            [width, count(self.size[1]), count(self.size[2])]
        };
        let mut counted = Model::count(size(width));
        if let Err(Error::Range {
            needed,
            part: Some(Part::Cells),
            ..
        }) = &mut counted
        {
            // The more along x, the more in all.
            let (mut fits, mut least) = (0, width);
            while fits + 1 < least {
                let middle = fits.midpoint(least);
                let is_too_many = size(middle).iter().map(|n| *n as u128).product::<u128>() > MOST_CELLS;
                *(if is_too_many { &mut least } else { &mut fits }) = middle;
            }
            *needed += &format!(": {fits} along x or less");
        }
        counted.map(|_| size(width))
    }

    /// The scene with `cells` cells along x (by default as many as it says), and with this time step instead of its own.
    ///
    /// # Errors
    /// What is wrong with the scene, or with these numbers.
    pub fn model(&self, cells: Option<usize>, time_step: Option<f64>) -> Result<Model> {
        Ok(self.made(cells, time_step)?.0)
    }

    /// The same, with what of the scene the model does not show.
    ///
    /// # Errors
    /// As [`Scene::model`].
    pub fn model_with_remarks(
        &self,
        cells: Option<usize>,
        time_step: Option<f64>,
    ) -> Result<(Model, Remarks)> {
        let (model, seen) = self.made(cells, time_step)?;
        let remarks = self.remarks(&model, &seen);
        Ok((model, remarks))
    }

    /// The model, and what was seen of the scene when its cells were filled.
    fn made(&self, cells: Option<usize>, time_step: Option<f64>) -> Result<(Model, Seen)> {
        let size = self.grid(cells)?;
        let spacing = self.size[0] / size[0] as f64;
        let (cells, seen) = self.fill(size, spacing)?;
        let mut model = Model {
            size,
            spacing,
            time_step: 0.0,
            media: self.materials.iter().map(|m| m.medium).collect(),
            cells,
            border: if self.absorbs {
                Border::Absorb(((self.border_width / spacing).round() as usize).max(8))
            } else {
                Border::Reflect
            },
            sources: Vec::new(),
            probes: Vec::new(),
        };
        model.time_step = time_step
            .or(self.time_step)
            .unwrap_or_else(|| model.default_time_step());
        let cell = |p: [f64; 3]| {
            let mut at = [0; 3];
            for axis in 0..3 {
                at[axis] = ((p[axis] / spacing).floor().max(0.0) as usize).min(size[axis] - 1);
            }
            at
        };
        for e in &self.emitters {
            let (a, b) = (cell(e.from), cell(e.to));
            let mut region = Region::cell(a);
            for axis in 0..3 {
                region.from[axis] = a[axis].min(b[axis]);
                region.to[axis] = a[axis].max(b[axis]) + 1;
            }
            model.sources.push(Source {
                region,
                waveform: e.waveform,
                amplitude: e.amplitude,
            });
        }
        model.probes = self
            .listeners
            .iter()
            .map(|l| Probe {
                name: l.name.clone(),
                at: cell(l.at),
            })
            .collect();
        model.check()?;
        Ok((model, seen))
    }

    /// The medium of each cell: that of the last shape with the cell's middle in it.
    fn fill(&self, [width, height, depth]: [usize; 3], spacing: f64) -> Result<(Vec<u8>, Seen)> {
        let mut seen = Seen {
            shapes: vec![false; self.shapes.len()],
            media: vec![false; 256],
        };
        let deep = self.is_deep();
        let total = width * height * depth;
        let mut cells = Vec::new();
        cells.try_reserve_exact(total).map_err(|_| {
            range(
                "the grid",
                format!("{total} cells"),
                "there is no memory for so many: choose a smaller size",
            )
        })?;
        for z in 0..depth {
            for y in 0..height {
                for x in 0..width {
                    let p = [x, y, z].map(|i| (i as f64 + 0.5) * spacing);
                    let shape = self.shapes.iter().rposition(|s| s.form.contains(p, deep));
                    let below = || {
                        let b = self.bitmap.as_ref()?;
                        let (column, row) = (x * b.width / width, y * b.height / height);
                        b.materials.get(row * b.width + column).copied()
                    };
                    let medium = match shape {
                        Some(shape) => {
                            seen.shapes[shape] = true;
                            self.shapes[shape].material as u8
                        }
                        None => below().unwrap_or(0),
                    };
                    seen.media[usize::from(medium)] = true;
                    cells.push(medium);
                }
            }
        }
        Ok((cells, seen))
    }

    /// Steps that the scene's duration takes.
    pub fn steps(&self, model: &Model) -> u64 {
        (self.duration / model.time_step).ceil().max(1.0) as u64
    }

    /// The index of a material.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn material(&self, name: &str) -> Result<usize> {
        self.materials
            .iter()
            .position(|m| m.name == name)
            .ok_or_else(|| Error::Unknown {
                kind: "material",
                name: name.to_owned(),
                known: self
                    .materials
                    .iter()
                    .map(|m| m.name.as_str())
                    .collect::<Vec<_>>()
                    .join(", "),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_contain_what_lies_in_them() {
        let check = |form: Form, inside: &[[f64; 2]], outside: &[[f64; 2]]| {
            for (points, expect) in [(inside, true), (outside, false)] {
                for [x, y] in points {
                    assert_eq!(form.contains([*x, *y, 0.0], false), expect, "{form:?} {x} {y}");
                }
            }
        };
        let corners = Form::Box {
            from: [1.0, 2.0, 0.0],
            to: [3.0, 4.0, 0.0],
        };
        check(corners, &[[1.0, 2.0], [2.9, 3.9]], &[[3.0, 3.0], [0.9, 3.0]]);
        let disc = Form::Disc {
            center: [1.0, 1.0, 0.0],
            radius: 1.0,
        };
        check(disc, &[[1.9, 1.0], [1.0, 0.1]], &[[1.8, 1.8]]);
        let lens = Form::Lens {
            center: [0.0, 0.0, 0.0],
            height: 6.0,
            thickness: 2.0,
        };
        check(
            lens,
            &[[0.99, 0.0], [-0.99, 0.0], [0.0, 2.99], [0.0, -2.99]],
            &[[1.01, 0.0], [0.0, 3.01], [0.5, 2.5]],
        );
        let triangle = Form::Polygon(vec![[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]);
        check(triangle, &[[0.5, 0.5], [0.9, 0.9]], &[[1.5, 1.5], [-0.1, 0.5]]);
    }
}
