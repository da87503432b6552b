//! A drawing as pixels, with smooth edges. Must not know charts.

use perpetua_ir::plain::plain;

use super::letters::{ADVANCE, BASE, strokes};
use super::shape::{Anchor, Drawing, Line, Shape};

/// Pixels for each unit.
const SCALE: f64 = 2.0;
/// Units for each column and row of a letter, and how wide its strokes are.
const LETTER: [f64; 2] = [1.15, 1.5];
const STROKE: f64 = 1.15;

/// Pixels, row by row, in three bytes each.
pub(super) struct Paper {
    width: usize,
    height: usize,
    rgb: Vec<u8>,
}

impl Paper {
    /// A drawing's pixels, and how many there are across and down.
    pub(super) fn painted(drawing: &Drawing) -> (Vec<u8>, [u32; 2]) {
        let size = drawing
            .size
            .map(|extent| (extent * SCALE).ceil().clamp(1.0, 16_384.0) as u32);
        let [width, height] = size.map(|extent| extent as usize);
        let mut paper = Paper {
            width,
            height,
            rgb: vec![255; 3 * width * height],
        };
        for shape in &drawing.shapes {
            paper.paint(shape);
        }
        (paper.rgb, size)
    }

    fn paint(&mut self, shape: &Shape) {
        match shape {
            Shape::Line(ends, line) => self.line(ends, line),
            Shape::Curve(points, line) => self.line(points, line),
            Shape::Frame([left, top, right, bottom], line) => self.line(
                &[
                    [*left, *top],
                    [*right, *top],
                    [*right, *bottom],
                    [*left, *bottom],
                    [*left, *top],
                ],
                line,
            ),
            Shape::Dot(middle, radius, color) => self.strokes(&[[*middle, *middle]], 2.0 * radius, *color),
            Shape::Area(corners, color) => self.area(corners, *color),
            Shape::Text {
                at,
                anchor,
                turned,
                content,
            } => self.text(*at, *anchor, *turned, content),
        }
    }

    fn line(&mut self, points: &[[f64; 2]], line: &Line) {
        let whole = points.windows(2).map(|pair| [pair[0], pair[1]]);
        let pieces: Vec<[[f64; 2]; 2]> = match line.dashes {
            None => whole.collect(),
            Some(dashes) => broken(whole, dashes.map(f64::from)),
        };
        self.strokes(&pieces, line.width, line.color);
    }

    /// What lies within half a width of these pieces, each pixel once.
    fn strokes(&mut self, pieces: &[[[f64; 2]; 2]], width: f64, color: u32) {
        // Rows of pixels that pieces reach, so that long curves do not ask each pixel for each piece.
        let reach = 0.5 * width * SCALE + 0.5;
        let pieces: Vec<[[f64; 2]; 2]> = pieces
            .iter()
            .map(|piece| piece.map(|point| point.map(|x| x * SCALE)))
            .collect();
        let mut covered = std::collections::BTreeMap::new();
        for [from, to] in pieces {
            let rows = span(from[1], to[1], reach, self.height);
            for y in rows {
                for x in span(from[0], to[0], reach, self.width) {
                    let away = distance([x as f64 + 0.5, y as f64 + 0.5], from, to);
                    let share = (reach - away).clamp(0.0, 1.0);
                    if share > 0.0 {
                        let most: &mut f64 = covered.entry((y, x)).or_insert(0.0);
                        *most = most.max(share);
                    }
                }
            }
        }
        for ((y, x), share) in covered {
            self.blend(x, y, color, share);
        }
    }

    /// What lies on the inner side of each edge.
    fn area(&mut self, corners: &[[f64; 2]], color: u32) {
        let corners: Vec<[f64; 2]> = corners.iter().map(|point| point.map(|x| x * SCALE)).collect();
        let extremes = |axis: usize| {
            let all = corners.iter().map(|corner| corner[axis]);
            all.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| {
                (l.min(x), h.max(x))
            })
        };
        let ((left, right), (top, bottom)) = (extremes(0), extremes(1));
        for y in span(top, bottom, 1.0, self.height) {
            for x in span(left, right, 1.0, self.width) {
                let [px, py] = [x as f64 + 0.5, y as f64 + 0.5];
                let edges = corners.iter().zip(corners.iter().cycle().skip(1));
                let inside = edges.map(|([ax, ay], [bx, by])| {
                    // How far the pixel is on the right of an edge: corners go round clockwise.
                    ((bx - ax) * (py - ay) - (by - ay) * (px - ax)) / (bx - ax).hypot(by - ay).max(1e-9)
                });
                let least = inside.fold(f64::INFINITY, f64::min);
                self.blend(x, y, color, (least + 0.5).clamp(0.0, 1.0));
            }
        }
    }

    fn text(&mut self, [x, y]: [f64; 2], anchor: Anchor, turned: bool, content: &str) {
        let content = plain(content);
        let long = ADVANCE * LETTER[0] * content.chars().count() as f64;
        let before = match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => 0.5 * long,
            Anchor::End => long,
        };
        let mut pieces = Vec::new();
        for (at, character) in content.chars().enumerate() {
            for stroke in strokes(character) {
                let place = |[column, row]: [f64; 2]| {
                    let along = (at as f64 * ADVANCE + column + 0.5) * LETTER[0] - before;
                    let down = (row - BASE) * LETTER[1];
                    match turned {
                        true => [x + down, y - along],
                        false => [x + along, y + down],
                    }
                };
                pieces.extend(stroke.windows(2).map(|pair| [place(pair[0]), place(pair[1])]));
            }
        }
        self.strokes(&pieces, STROKE, 0);
    }

    fn blend(&mut self, x: usize, y: usize, color: u32, share: f64) {
        let at = 3 * (y * self.width + x);
        if let Some(pixel) = self.rgb.get_mut(at..at + 3) {
            for (byte, shift) in pixel.iter_mut().zip([16, 8, 0]) {
                let to = f64::from(color >> shift & 255);
                *byte = (f64::from(*byte) * (1.0 - share) + to * share).round() as u8;
            }
        }
    }
}

/// Pixels that are within reach of what lies between two places.
fn span(a: f64, b: f64, reach: f64, most: usize) -> std::ops::Range<usize> {
    // A cast takes what lies outside for the nearest number.
    let (low, high) = (a.min(b) - reach, a.max(b) + reach);
    (low.floor() as usize).min(most)..(high.ceil() as usize).min(most)
}

/// How far a point is from a piece of a line.
fn distance([x, y]: [f64; 2], [ax, ay]: [f64; 2], [bx, by]: [f64; 2]) -> f64 {
    let (along, down) = (bx - ax, by - ay);
    let length = along * along + down * down;
    let part = match length > 0.0 {
        true => (((x - ax) * along + (y - ay) * down) / length).clamp(0.0, 1.0),
        false => 0.0,
    };
    (x - ax - part * along).hypot(y - ay - part * down)
}

/// A line with gaps: so much of it, and so much left out.
fn broken(whole: impl Iterator<Item = [[f64; 2]; 2]>, [drawn, left_out]: [f64; 2]) -> Vec<[[f64; 2]; 2]> {
    let mut pieces = Vec::new();
    // How far it is from the start of the last gap's end.
    let mut at = 0.0;
    for [from, to] in whole {
        let length = (to[0] - from[0]).hypot(to[1] - from[1]);
        let place = |part: f64| [0, 1].map(|i| from[i] + (to[i] - from[i]) * part / length);
        let mut done = 0.0;
        while done < length {
            let until = if at < drawn { drawn } else { drawn + left_out };
            let next = (done + until - at).min(length);
            if at < drawn {
                pieces.push([place(done), place(next)]);
            }
            at += next - done;
            if at >= until - 1e-9 {
                at = if until == drawn { drawn } else { 0.0 };
            }
            // A step is never lost to rounding.
            done = if next > done { next } else { length };
        }
    }
    pieces
}
