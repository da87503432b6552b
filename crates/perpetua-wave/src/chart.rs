//! Curves as SVG and as PNG. Must not know what they mean.

mod letters;
mod paint;
mod shape;

use std::path::Path;

use perpetua_ir::plain::plain;

use crate::Result;
use crate::picture::encode_png;
use paint::Paper;
use shape::{Anchor, Drawing, Line, Shape};

/// A named curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Its points.
    pub points: Vec<[f64; 2]>,
}

/// A chart of curves.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// On top.
    pub title: String,
    /// Under the axes: what x and y are, with units.
    pub labels: [String; 2],
    /// Whether x and y are drawn by their logarithms; what is not above 0 is left out then.
    pub logarithmic: [bool; 2],
    /// What is drawn.
    pub curves: Vec<Curve>,
}

/// Beside the curves: their names, each letter about so wide.
const LETTER: f64 = 7.2;
const HEIGHT: f64 = 460.0;
/// Rows of names that fit into it, and how high each is.
const NAMES: usize = 17;
const NAME: f64 = 22.0;
/// Most curves that are named.
const MOST_NAMES: usize = 40;
/// Left, top, right and bottom of the area of the curves.
const AREA: [f64; 4] = [86.0, 44.0, 690.0, 396.0];
/// Okabe and Ito's colours, told apart by everybody.
const COLORS: [u32; 7] = [
    0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0x000000,
];
/// How a line is broken, where there are more curves than colours: so much of it is drawn, so much left out.
const DASHES: [Option<[u32; 2]>; 3] = [None, Some([7, 4]), Some([2, 3])];
/// Most points that have a mark each.
const MOST_MARKS: usize = 24;
/// Points drawn of a curve; of longer ones the extremes of each stretch.
const MOST_POINTS: usize = 4000;

impl Chart {
    /// The chart as an SVG document.
    pub fn svg(&self) -> String {
        self.drawing().svg()
    }

    /// The same as a picture in PNG, two pixels for each unit of the SVG. Letters are those of ASCII; another one is a box.
    ///
    /// # Errors
    /// The picture cannot be encoded.
    pub fn png(&self) -> Result<Vec<u8>> {
        let (rgb, [width, height]) = Paper::painted(&self.drawing());
        encode_png(&rgb, width, height)
    }

    /// As a file of this name has it: PNG where that ends in `.png`, else SVG.
    ///
    /// # Errors
    /// The picture cannot be encoded.
    pub fn file(&self, path: &Path) -> Result<Vec<u8>> {
        match path.extension() {
            Some(ending) if ending.eq_ignore_ascii_case("png") => self.png(),
            _ => Ok(self.svg().into_bytes()),
        }
    }

    fn drawing(&self) -> Drawing {
        let shown = |p: &&[f64; 2]| (0..2).all(|a| p[a].is_finite() && (p[a] > 0.0 || !self.logarithmic[a]));
        let axes = [0, 1].map(|axis| {
            let values = self
                .curves
                .iter()
                .flat_map(|c| c.points.iter().filter(shown).map(|p| p[axis]));
            Axis::new(values, self.logarithmic[axis], axis == 0)
        });
        let place = |p: &[f64; 2]| {
            [
                AREA[0] + axes[0].part(p[0]) * (AREA[2] - AREA[0]),
                AREA[3] - axes[1].part(p[1]) * (AREA[3] - AREA[1]),
            ]
        };
        let longest = self.curves.iter().map(|c| plain(&c.name).chars().count()).max();
        let width = AREA[2] + 56.0 + (LETTER * longest.unwrap_or(0) as f64).max(114.0).ceil();
        // One row for how many more there are.
        let rows = self.curves.len().min(MOST_NAMES + 1);
        let height = HEIGHT + NAME * rows.saturating_sub(NAMES) as f64;
        let text = |at: [f64; 2], anchor: Anchor, content: &str| Shape::Text {
            at,
            anchor,
            turned: false,
            content: content.to_owned(),
        };
        let [left, top, right, bottom] = AREA;
        let middle = [0.5 * (left + right), 0.5 * (top + bottom)];
        let mut shapes = vec![
            text([middle[0], 26.0], Anchor::Middle, &self.title),
            text([middle[0], bottom + 44.0], Anchor::Middle, &self.labels[0]),
            Shape::Text {
                at: [22.0, middle[1]],
                anchor: Anchor::Middle,
                turned: true,
                content: self.labels[1].clone(),
            },
        ];
        for (axis, ticks) in axes.iter().map(Axis::ticks).enumerate() {
            for tick in ticks {
                let mut at = [axes[0].low, axes[1].low];
                at[axis] = tick;
                let [x, y] = place(&at);
                let to = if axis == 0 { [x, top] } else { [right, y] };
                shapes.push(Shape::Line([[x, y], to], Line::thin(0xdddddd)));
                // Sizes are what somebody has chosen.
                let label = match axes[axis].sizes.is_empty() {
                    true => number(tick),
                    false => tick.to_string(),
                };
                shapes.push(if axis == 0 {
                    text([x, bottom + 20.0], Anchor::Middle, &label)
                } else {
                    text([left - 8.0, y + 4.5], Anchor::End, &label)
                });
            }
        }
        shapes.push(Shape::Frame(AREA, Line::thin(0x444444)));
        if axes.iter().any(|axis| axis.is_empty) {
            shapes.push(text(middle, Anchor::Middle, "nothing was recorded"));
        }
        for (i, curve) in self.curves.iter().enumerate() {
            let line = |width| Line {
                color: COLORS[i % COLORS.len()],
                width,
                dashes: DASHES[i / COLORS.len() % DASHES.len()],
            };
            let points: Vec<[f64; 2]> = curve.points.iter().filter(shown).map(place).collect();
            let has_marks = points.len() <= MOST_MARKS;
            shapes.push(Shape::Curve(thinned(&points), line(1.6)));
            if has_marks {
                shapes.extend(points.iter().map(|at| mark(i, *at)));
            }
            if i > MOST_NAMES {
                continue;
            }
            let y = top + 14.0 + NAME * i as f64;
            if i == MOST_NAMES {
                let more = format!("and {} more", self.curves.len() - MOST_NAMES);
                shapes.push(text([right + 14.0, y + 4.5], Anchor::Start, &more));
                continue;
            }
            if points.len() != 1 {
                shapes.push(Shape::Line([[right + 14.0, y], [right + 36.0, y]], line(2.0)));
            }
            if has_marks && !points.is_empty() {
                shapes.push(mark(i, [right + 25.0, y]));
            }
            shapes.push(text([right + 42.0, y + 4.5], Anchor::Start, &curve.name));
        }
        Drawing {
            size: [width, height],
            shapes,
        }
    }
}

/// The mark of a point: with the colours, which are seven, 28 kinds.
fn mark(curve: usize, [x, y]: [f64; 2]) -> Shape {
    let color = COLORS[curve % COLORS.len()];
    let corners: &[[f64; 2]] = match curve % 4 {
        0 => return Shape::Dot([x, y], 3.5, color),
        1 => &[[-3.2, -3.2], [3.2, -3.2], [3.2, 3.2], [-3.2, 3.2]],
        2 => &[[0.0, -4.5], [4.2, 3.0], [-4.2, 3.0]],
        _ => &[[0.0, -4.8], [4.8, 0.0], [0.0, 4.8], [-4.8, 0.0]],
    };
    let corners = corners.iter().map(|[right, down]| [x + right, y + down]);
    Shape::Area(corners.collect(), color)
}

/// The lowest and the highest point of each stretch, where there are more points than can be seen.
fn thinned(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    if points.len() <= MOST_POINTS {
        return points.to_vec();
    }
    let stretch = points.len().div_ceil(MOST_POINTS / 2);
    let extremes = points.chunks(stretch).flat_map(|part| {
        let by = |a: &&[f64; 2], b: &&[f64; 2]| a[1].total_cmp(&b[1]);
        let (low, high) = (part.iter().min_by(by), part.iter().max_by(by));
        let mut both: Vec<[f64; 2]> = low.into_iter().chain(high).copied().collect();
        both.sort_by(|a, b| a[0].total_cmp(&b[0]));
        both
    });
    extremes.collect()
}

/// A number as an axis shows it.
fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".into()
    } else if size >= 1e9 {
        format!("{}G", round(value / 1e9))
    } else if size >= 1e6 {
        format!("{}M", round(value / 1e6))
    } else if size >= 1e4 {
        format!("{}k", round(value / 1e3))
    } else if size >= 1e-3 {
        round(value)
    } else {
        // Ticks are one, two or five of a power of ten apart: what is left behind two digits is rounding.
        let text = format!("{value:.1e}");
        text.replace(".0e", "e")
    }
}

fn round(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// Nothing lies along it.
    is_empty: bool,
    /// Where all points are, where that is at few places which are far enough apart: its ticks.
    sizes: Vec<f64>,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64> + Clone, logarithmic: bool, is_across: bool) -> Axis {
        let (low, high) = values
            .clone()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
                (l.min(v), h.max(v))
            });
        let is_empty = low > high;
        let (low, high) = match (is_empty, logarithmic) {
            (true, _) => (1.0, 10.0),
            (false, true) => (low / 1.2, high * 1.2),
            (false, false) if low == high => (low - 1.0, high + 1.0),
            (false, false) if is_across => (low, high),
            // Curves do not run along the frame.
            (false, false) => (low - 0.05 * (high - low), high + 0.05 * (high - low)),
        };
        let mut axis = Axis {
            low,
            high,
            logarithmic,
            is_empty,
            sizes: Vec::new(),
        };
        if logarithmic && is_across {
            let mut sizes: Vec<f64> = values.collect();
            sizes.sort_by(f64::total_cmp);
            sizes.dedup();
            // Room for a number of seven digits.
            let has_room = |pair: &[f64]| axis.part(pair[1]) - axis.part(pair[0]) >= 0.08;
            // What is no whole number is measured, and has round ticks.
            if sizes.windows(2).all(has_room) && sizes.iter().all(|size| size.fract() == 0.0) {
                axis.sizes = sizes;
            }
        }
        axis
    }

    /// Where a value lies between the ends, from 0 to 1.
    fn part(&self, value: f64) -> f64 {
        if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }

    fn ticks(&self) -> Vec<f64> {
        if self.is_empty || !self.sizes.is_empty() {
            return self.sizes.clone();
        }
        if self.logarithmic {
            let wide = self.high / self.low > 300.0;
            let steps: &[f64] = if wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
            let decades = (self.low.log10().floor() as i32)..=(self.high.log10().ceil() as i32);
            let all = decades.flat_map(|d| steps.iter().map(move |s| s * 10f64.powi(d)));
            return all.filter(|t| (self.low..=self.high).contains(t)).collect();
        }
        let rough = (self.high - self.low) / 6.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .iter()
            .map(|s| s * power)
            .find(|s| *s >= rough)
            .unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).map(|i| i as f64 * step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_its_curves_ticks_and_names() {
        let mut chart = Chart {
            title: "a < b\u{1b}\u{202e}\u{fffe}".into(),
            labels: ["x (s)".into(), "y".into()],
            logarithmic: [false, false],
            curves: vec![Curve {
                name: "one".into(),
                points: (0..10_000).map(|i| [f64::from(i), f64::from(i % 100)]).collect(),
            }],
        };
        let svg = chart.svg();
        for part in [
            "a &lt; b\\u{1b}\\u{202e}\u{fffd}<",
            ">one</text>",
            ">2000</text>",
            "<polyline",
        ] {
            assert!(svg.contains(part), "{part}: {svg:.300}");
        }
        assert!(svg.len() < 100_000, "{}", svg.len());
        chart.logarithmic = [true, true];
        chart.curves[0].points = vec![[0.0, 5.0], [64.0, 1e6], [4096.0, 1e3]];
        let svg = chart.svg();
        // Two points, and the mark beside the name.
        assert_eq!(svg.matches("<circle").count(), 3);
        // Few sizes are ticks themselves; what is measured has round numbers.
        assert!(svg.contains(">10k</text>") && svg.contains(">64</text>") && svg.contains(">4096</text>"));
        assert!(!svg.contains(">100</text>"));
        // What is no whole number has round ticks.
        chart.curves[0].points[1][0] = 64.5;
        assert!(!chart.svg().contains(">64.5"));
        // Sizes without room for their numbers are not.
        chart.curves[0].points[1][0] = 4095.0;
        assert!(!chart.svg().contains(">4096</text>"));
        chart.curves[0].points.push([64.0, 1e4]);
        assert!(chart.svg().contains(">100</text>"));
        // More curves than colours and rows are told apart and named, too.
        chart.curves = (0..21)
            .map(|i| Curve {
                name: format!("curve {i}"),
                points: vec![[1.0, 1.0], [2.0, f64::from(i) + 2.0]],
            })
            .collect();
        let svg = chart.svg();
        assert!(svg.contains("height=\"548\"") && svg.contains(">curve 20</text>"));
        assert!(svg.contains("y=\"502.5\""));
        let styles = svg
            .lines()
            .filter_map(|line| line.split_once("<polyline")?.1.split_once(" fill"));
        let styles: std::collections::BTreeSet<&str> = styles.map(|(_, style)| style).collect();
        assert_eq!(styles.len(), 21);
        // Of very many the first are named.
        let named = chart.curves[0].clone();
        chart.curves.resize(600, named);
        let svg = chart.svg();
        assert!(svg.contains("height=\"988\"") && svg.contains(">and 560 more</text>"));
        assert_eq!(svg.matches("<polyline").count(), 600);
        // Without a point no axis has numbers.
        chart.curves.truncate(1);
        chart.curves[0].points.clear();
        let svg = chart.svg();
        assert!(svg.contains(">nothing was recorded</text>") && !svg.contains(">10</text>"));
        assert!(svg.ends_with("</svg>\n"));
    }

    #[test]
    fn single_points_are_told_apart_and_curves_keep_off_the_frame() {
        let curve = |i: usize, y: f64| Curve {
            name: format!("curve {i}"),
            points: vec![[256.0, y]],
        };
        let mut chart = Chart {
            title: String::new(),
            labels: [String::new(), String::new()],
            logarithmic: [false, false],
            curves: (0..28).map(|i| curve(i, 1.0)).collect(),
        };
        // Each mark is there twice: at the point and beside the name, where no line is.
        let svg = chart.svg();
        let kinds = svg
            .lines()
            .filter(|line| line.starts_with("<circle") || line.starts_with("<polygon"));
        let kind = |line: &str| Some(format!("{} {}", &line[..8], line.split_once("fill=")?.1));
        let corners = |line: &str| line.matches(',').count();
        let kinds: Vec<_> = kinds.map(|line| (kind(line), corners(line))).collect();
        assert_eq!(kinds.len(), 56);
        assert!(!svg.contains("stroke-width=\"2\""));
        // Squares and diamonds have four corners each.
        assert_eq!(kinds.iter().collect::<std::collections::BTreeSet<_>>().len(), 21);
        chart.curves = vec![curve(0, -1.0), curve(1, 1.0)];
        let svg = chart.svg();
        let heights = svg.lines().filter(|line| line.starts_with("<circle"));
        let height = heights
            .filter_map(|line| line.split('"').nth(3)?.parse::<f64>().ok())
            .next();
        assert_eq!(height, Some(380.0), "{svg}");
    }

    #[test]
    fn a_picture_has_the_same_shapes_in_the_same_places() {
        let curve = |name: &str, points: &[[f64; 2]]| Curve {
            name: name.into(),
            points: points.to_vec(),
        };
        let mut chart = Chart {
            title: String::new(),
            labels: [String::new(), String::new()],
            logarithmic: [false; 2],
            curves: vec![curve("", &[[0.0, 0.0], [10.0, 0.0]]), curve("", &[[5.0, 1.0]])],
        };
        let pixels = |chart: &Chart| {
            let (rgb, [width, height]) = Paper::painted(&chart.drawing());
            assert_eq!(rgb.len(), 3 * (width * height) as usize);
            let mut reader = png::Decoder::new(std::io::Cursor::new(chart.png().unwrap()))
                .read_info()
                .unwrap();
            let mut read = vec![0; reader.output_buffer_size().unwrap()];
            reader.next_frame(&mut read).unwrap();
            assert!(read == rgb);
            move |[x, y]: [f64; 2]| {
                let at = 3 * ((2.0 * y) as usize * width as usize + (2.0 * x) as usize);
                u32::from(rgb[at]) << 16 | u32::from(rgb[at + 1]) << 8 | u32::from(rgb[at + 2])
            }
        };
        let [left, top, right, bottom] = AREA;
        let (low, high) = (bottom - (bottom - top) / 22.0, top + (bottom - top) / 22.0);
        let at = pixels(&chart);
        // A quarter along the line, a third above it, the square in the middle, the frame, and the margin.
        assert_eq!(at([left + 0.25 * (right - left) + 7.0, low]), COLORS[0]);
        assert_eq!(at([left + 0.25 * (right - left) + 7.0, low - 40.0]), 0xffffff);
        assert_eq!(at([0.5 * (left + right) + 2.0, high + 2.0]), COLORS[1]);
        assert_eq!(at([0.5 * (left + right) + 6.0, high + 6.0]), 0xffffff);
        assert_eq!(at([left, 0.5 * (top + bottom) + 9.0]), 0x444444);
        assert_eq!(at([3.0, 3.0]), 0xffffff);
        // The eighth curve is broken: seven units of it are drawn, four are not.
        chart.curves = vec![curve("", &[]); 7];
        chart.curves.push(curve("", &[[0.0, 0.0], [10.0, 0.0]]));
        chart.curves.push(curve("", &[[0.0, 1.0]]));
        let at = pixels(&chart);
        assert_eq!(at([left + 11.0 * 20.0 + 3.0, low]), COLORS[0]);
        assert_eq!(at([left + 11.0 * 20.0 + 9.0, low]), 0xdddddd, "a tick");
        // A title is black on white where it was white.
        let row = |chart: &Chart| {
            let at = pixels(chart);
            (0..600)
                .filter(|x| at([left + f64::from(*x), 20.0]) != 0xffffff)
                .count()
        };
        assert_eq!(row(&chart), 0);
        chart.title = "H".repeat(20);
        assert!(row(&chart) > 20);
        assert_eq!(chart.file(Path::new("a.PNG")).unwrap(), chart.png().unwrap());
        assert_eq!(chart.file(Path::new("a.svg")).unwrap(), chart.svg().into_bytes());
    }

    #[test]
    fn numbers_are_short() {
        let check = |value: f64, expect: &str| assert_eq!(number(value), expect);
        check(0.0, "0");
        check(0.25, "0.25");
        check(4096.0, "4096");
        check(100_000.0, "100k");
        check(-2.5e6, "-2.5M");
        check(5e-6, "5e-6");
        check(-1.5e-4, "-1.5e-4");
    }
}
