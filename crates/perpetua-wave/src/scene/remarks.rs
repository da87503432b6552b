//! What of a scene its model does not show, because its cells are too large or something covers it. Must not know who says it.

use super::{Form, Scene, Shape};
use crate::model::{Model, Region, Source};

/// What was seen of a scene while its cells were filled.
pub(super) struct Seen {
    /// Of each shape whether it is on top somewhere.
    pub(super) shapes: Vec<bool>,
    /// Of each medium whether a cell has it.
    pub(super) media: Vec<bool>,
}

/// What may be meant, and is seldom.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remarks {
    /// Shapes that hold no cell's middle, counted from 0: too thin for the cells, or outside.
    pub absent_shapes: Vec<usize>,
    /// Sources that lie in walls wholly, counted from 0: they move nothing.
    pub walled_sources: Vec<usize>,
    /// Media that no cell has, counted from 0.
    pub unused_media: Vec<usize>,
    /// Cells in the shortest wavelength that a source makes in the slowest medium; `None` without a frequency. Below about 8 waves run
    /// visibly too slow.
    pub cells_per_wavelength: Option<f64>,
}

impl Scene {
    pub(super) fn remarks(&self, model: &Model, seen: &Seen) -> Remarks {
        // What is on top somewhere is there.
        let hidden = (0..self.shapes.len()).filter(|shape| !seen.shapes[*shape]);
        let sources = model.sources.iter().enumerate();
        Remarks {
            absent_shapes: hidden
                .filter(|shape| self.is_absent(&self.shapes[*shape], model))
                .collect(),
            walled_sources: sources
                .filter(|(_, source)| !moves(model, source))
                .map(|(i, _)| i)
                .collect(),
            unused_media: (0..model.media.len()).filter(|i| !seen.media[*i]).collect(),
            cells_per_wavelength: cells_per_wavelength(model, seen),
        }
    }

    /// Whether a shape holds no cell's middle.
    fn is_absent(&self, shape: &Shape, model: &Model) -> bool {
        let deep = self.is_deep();
        let middle = |i: usize| (i as f64 + 0.5) * model.spacing;
        let hull = shape.form.hull();
        // Of an axis: the cells whose middles may lie in it.
        let [xs, ys, zs] = [0, 1, 2].map(|axis| {
            let [low, high] = hull[axis].map(|end| (end / model.spacing).clamp(0.0, model.size[axis] as f64));
            match axis < 2 || deep {
                true => low.floor() as usize..high.ceil() as usize,
                false => 0..1,
            }
        });
        !zs.into_iter().any(|z| {
            ys.clone().any(|y| {
                let mut row = xs.clone();
                row.any(|x| shape.form.contains([x, y, z].map(middle), deep))
            })
        })
    }
}

impl Form {
    /// The smallest box around it, in x, y and z.
    fn hull(&self) -> [[f64; 2]; 3] {
        match self {
            Form::Box { from, to } => [0, 1, 2].map(|a| [from[a], to[a]]),
            Form::Disc { center, radius } => center.map(|c| [c - radius, c + radius]),
            Form::Lens {
                center: [x, y, z],
                height,
                thickness,
            } => [(x, thickness), (y, height), (z, height)]
                .map(|(c, width)| [c - 0.5 * width, c + 0.5 * width]),
            Form::Polygon(points) => {
                let axis = |axis: usize| {
                    points
                        .iter()
                        .fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], p| {
                            [low.min(p[axis]), high.max(p[axis])]
                        })
                };
                [axis(0), axis(1), [0.0, f64::INFINITY]]
            }
        }
    }
}

/// Whether some cell of a source is no wall.
fn moves(model: &Model, source: &Source) -> bool {
    let Region { from, to } = source.region;
    (from[2]..to[2]).any(|z| {
        (from[1]..to[1]).any(|y| {
            (from[0]..to[0]).any(|x| {
                let medium = model.media.get(usize::from(model.cells[model.index([x, y, z])]));
                medium.is_some_and(|medium| !medium.reflects)
            })
        })
    })
}

fn cells_per_wavelength(model: &Model, seen: &Seen) -> Option<f64> {
    let frequencies = model.sources.iter().filter_map(|s| s.waveform.frequency());
    let fastest = frequencies.fold(0.0, f64::max);
    let media = model.media.iter().enumerate();
    let media = media.filter(|(i, m)| seen.media[*i] && !m.reflects);
    let slowest = media.map(|(_, m)| m.speed).fold(f64::INFINITY, f64::min);
    (fastest > 0.0 && slowest.is_finite()).then(|| slowest / fastest / model.spacing)
}
