//! Curves as SVG. Must not know what they mean.

use std::fmt::Write;

use perpetua_ir::plain::plain;

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
const COLORS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000",
];
/// How a line is broken, where there are more curves than colours.
const DASHES: [&str; 3] = ["", " stroke-dasharray=\"7 4\"", " stroke-dasharray=\"2 3\""];
/// Most points that have a mark each.
const MOST_MARKS: usize = 24;
/// Points drawn of a curve; of longer ones the extremes of each stretch.
const MOST_POINTS: usize = 4000;

impl Chart {
    /// The chart as an SVG document.
    pub fn svg(&self) -> String {
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
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        );
        let text = |x: f64, y: f64, anchor: &str, turn: bool, content: &str| {
            let turn = if turn {
                format!(" transform=\"rotate(-90 {x:.1} {y:.1})\"")
            } else {
                String::new()
            };
            format!(
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{turn}>{}</text>\n",
                escape(content)
            )
        };
        let [left, top, right, bottom] = AREA;
        let middle = [0.5 * (left + right), 0.5 * (top + bottom)];
        out += &text(middle[0], 26.0, "middle", false, &self.title);
        out += &text(middle[0], bottom + 44.0, "middle", false, &self.labels[0]);
        out += &text(22.0, middle[1], "middle", true, &self.labels[1]);
        for (axis, ticks) in axes.iter().map(Axis::ticks).enumerate() {
            for tick in ticks {
                let mut at = [axes[0].low, axes[1].low];
                at[axis] = tick;
                let [x, y] = place(&at);
                let (to_x, to_y) = if axis == 0 { (x, top) } else { (right, y) };
                // Writing to a string cannot fail.
                let _ = writeln!(
                    out,
                    "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{to_x:.1}\" y2=\"{to_y:.1}\" stroke=\"#dddddd\"/>"
                );
                // Sizes are what somebody has chosen.
                let label = match axes[axis].sizes.is_empty() {
                    true => number(tick),
                    false => tick.to_string(),
                };
                out += &if axis == 0 {
                    text(x, bottom + 20.0, "middle", false, &label)
                } else {
                    text(left - 8.0, y + 4.5, "end", false, &label)
                };
            }
        }
        let _ = writeln!(
            out,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#444444\"/>",
            right - left,
            bottom - top
        );
        if axes.iter().any(|axis| axis.is_empty) {
            out += &text(middle[0], middle[1], "middle", false, "nothing was recorded");
        }
        for (i, curve) in self.curves.iter().enumerate() {
            let color = COLORS[i % COLORS.len()];
            let dashes = DASHES[i / COLORS.len() % DASHES.len()];
            let points: Vec<[f64; 2]> = curve.points.iter().filter(shown).map(place).collect();
            let path: String = thinned(&points)
                .iter()
                .map(|[x, y]| format!("{x:.1},{y:.1} "))
                .collect();
            let has_marks = points.len() <= MOST_MARKS;
            let _ = writeln!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.6\"{dashes}/>",
                path.trim_end()
            );
            if has_marks {
                out.extend(points.iter().map(|at| mark(i, *at, color)));
            }
            if i > MOST_NAMES {
                continue;
            }
            let y = top + 14.0 + NAME * i as f64;
            if i == MOST_NAMES {
                let more = format!("and {} more", self.curves.len() - MOST_NAMES);
                out += &text(right + 14.0, y + 4.5, "start", false, &more);
                continue;
            }
            if points.len() != 1 {
                let _ = writeln!(
                    out,
                    "<line x1=\"{}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"{color}\" stroke-width=\"2\"{dashes}/>",
                    right + 14.0,
                    right + 36.0
                );
            }
            if has_marks && !points.is_empty() {
                out += &mark(i, [right + 25.0, y], color);
            }
            out += &text(right + 42.0, y + 4.5, "start", false, &curve.name);
        }
        out + "</svg>\n"
    }
}

/// The mark of a point: with the colours, which are seven, 28 kinds.
fn mark(curve: usize, [x, y]: [f64; 2], color: &str) -> String {
    let corners: &[[f64; 2]] = match curve % 4 {
        0 => return format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{color}\"/>\n"),
        1 => &[[-3.2, -3.2], [3.2, -3.2], [3.2, 3.2], [-3.2, 3.2]],
        2 => &[[0.0, -4.5], [4.2, 3.0], [-4.2, 3.0]],
        _ => &[[0.0, -4.8], [4.8, 0.0], [0.0, 4.8], [-4.8, 0.0]],
    };
    let places: Vec<String> = corners
        .iter()
        .map(|[right, down]| format!("{:.1},{:.1}", x + right, y + down))
        .collect();
    format!("<polygon points=\"{}\" fill=\"{color}\"/>\n", places.join(" "))
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

fn escape(text: &str) -> String {
    // XML has neither control characters, however they are written, nor these two.
    plain(text)
        .replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
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
