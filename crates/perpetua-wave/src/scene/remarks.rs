//! What of a scene its model does not show, because its cells are too large or something covers it. Must not know who says it.

use super::{Form, Scene, Shape};
use crate::model::{Medium, Model, Region, Source};

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
    /// Slanted polygons that are there and thinner than a cell, counted from 0, with their thickness in cells, along the axis that they are
    /// steeper to: some rows or columns have no cell of theirs, and waves go through.
    pub thin_shapes: Vec<(usize, f64)>,
    /// Probes that lie in walls, counted from 0: they record nothing but zeros.
    pub walled_probes: Vec<usize>,
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
            thin_shapes: (0..self.shapes.len())
                .filter(|shape| seen.shapes[*shape])
                .filter_map(|shape| {
                    Some((
                        shape,
                        self.shapes[shape].form.slanted_thickness()? / model.spacing,
                    ))
                })
                .filter(|(_, thickness)| *thickness < 1.0)
                .collect(),
            walled_probes: (0..model.probes.len())
                .filter(|probe| is_wall(model, model.probes[*probe].at))
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

impl Form {
    /// How thin a slanted polygon is, along the axis that its longest edge is steeper to: from the short side of the rectangle with its
    /// area and its outline's length. `None` for all others, whose thin parts fill rows or columns of cells, and for what is about as
    /// wide as long.
    fn slanted_thickness(&self) -> Option<f64> {
        let Form::Polygon(points) = self else {
            return None;
        };
        let edges = || points.iter().zip(points.iter().cycle().skip(1));
        if edges().all(|(a, b)| a[0] == b[0] || a[1] == b[1]) {
            return None;
        }
        let area = 0.5 * edges().map(|(a, b)| a[0] * b[1] - a[1] * b[0]).sum::<f64>().abs();
        let length = |(a, b): &(&[f64; 2], &[f64; 2])| (a[0] - b[0]).hypot(a[1] - b[1]);
        let half = 0.5 * edges().map(|edge| length(&edge)).sum::<f64>();
        // Of the sides a and b: a + b is half the outline, a b the area.
        let root = (half * half - 4.0 * area).max(0.0).sqrt();
        let (a, b) = edges().max_by(|one, other| length(one).total_cmp(&length(other)))?;
        let steep = (a[0] - b[0]).abs().max((a[1] - b[1]).abs()) / length(&(a, b));
        (root > 0.0).then(|| 2.0 * area / (half + root) / steep)
    }
}

/// Whether some cell of a source is no wall.
fn moves(model: &Model, source: &Source) -> bool {
    let Region { from, to } = source.region;
    (from[2]..to[2]).any(|z| {
        (from[1]..to[1]).any(|y| {
            (from[0]..to[0]).any(|x| medium_at(model, [x, y, z]).is_some_and(|medium| !medium.reflects))
        })
    })
}

fn medium_at(model: &Model, at: [usize; 3]) -> Option<&Medium> {
    model.media.get(usize::from(model.cells[model.index(at)]))
}

fn is_wall(model: &Model, at: [usize; 3]) -> bool {
    medium_at(model, at).is_some_and(|medium| medium.reflects)
}

fn cells_per_wavelength(model: &Model, seen: &Seen) -> Option<f64> {
    let frequencies = model.sources.iter().filter_map(|s| s.waveform.frequency());
    let fastest = frequencies.fold(0.0, f64::max);
    let media = model.media.iter().enumerate();
    let media = media.filter(|(i, m)| seen.media[*i] && !m.reflects);
    let slowest = media.map(|(_, m)| m.speed).fold(f64::INFINITY, f64::min);
    (fastest > 0.0 && slowest.is_finite()).then(|| slowest / fastest / model.spacing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slanted_polygon_is_as_thin_as_its_rectangle() {
        let strip = |angle: f64, length: f64, width: f64| {
            let (s, c) = angle.sin_cos();
            let corners = [[0.0, 0.0], [length, 0.0], [length, width], [0.0, width]];
            Form::Polygon(corners.map(|[x, y]| [x * c - y * s, x * s + y * c]).to_vec())
        };
        for (angle, width) in [(0.3, 0.002), (0.8, 0.02), (2.0, 0.1)] {
            let thickness = strip(angle, 0.7, width).slanted_thickness().unwrap();
            let steep = angle.sin().abs().max(angle.cos().abs());
            assert!((thickness - width / steep).abs() < 1e-9, "{thickness}");
        }
        assert_eq!(strip(0.0, 0.7, 0.002).slanted_thickness(), None);
        let disc = Form::Disc {
            center: [0.0; 3],
            radius: 1e-3,
        };
        assert_eq!(disc.slanted_thickness(), None);
    }
}
