//! What a chart is made of, and the same as SVG. Must not know curves.

use std::fmt::Write;

use perpetua_ir::plain::plain;

/// How a line is drawn.
pub(super) struct Line {
    /// Red, green and blue, as 0xrrggbb.
    pub(super) color: u32,
    pub(super) width: f64,
    /// So much of it is drawn, so much left out.
    pub(super) dashes: Option<[u32; 2]>,
}

impl Line {
    pub(super) fn thin(color: u32) -> Line {
        Line {
            color,
            width: 1.0,
            dashes: None,
        }
    }
}

/// Which part of a text its place is.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A part of a chart, in units of the SVG, x to the right and y downwards.
pub(super) enum Shape {
    Line([[f64; 2]; 2], Line),
    /// From point to point.
    Curve(Vec<[f64; 2]>, Line),
    /// The border of a rectangle: left, top, right and bottom.
    Frame([f64; 4], Line),
    /// A filled circle: its middle and radius.
    Dot([f64; 2], f64, u32),
    /// What these corners surround, filled; it has no bays.
    Area(Vec<[f64; 2]>, u32),
    /// A text whose line begins, ends or has its middle at this place, 13 units high; turned, it goes upwards.
    Text {
        at: [f64; 2],
        anchor: Anchor,
        turned: bool,
        content: String,
    },
}

/// Shapes on white, in the order in which they cover each other.
pub(super) struct Drawing {
    pub(super) size: [f64; 2],
    pub(super) shapes: Vec<Shape>,
}

impl Drawing {
    pub(super) fn svg(&self) -> String {
        let [width, height] = self.size;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        );
        for shape in &self.shapes {
            // Writing to a string cannot fail.
            let _ = shape.svg(&mut out);
        }
        out + "</svg>\n"
    }
}

impl Shape {
    fn svg(&self, out: &mut String) -> std::fmt::Result {
        match self {
            Shape::Line([[x, y], [to_x, to_y]], line) => writeln!(
                out,
                "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{to_x:.1}\" y2=\"{to_y:.1}\"{}/>",
                stroke(line)
            ),
            Shape::Curve(points, line) => writeln!(
                out,
                "<polyline points=\"{}\" fill=\"none\"{}/>",
                places(points),
                stroke(line)
            ),
            Shape::Frame([left, top, right, bottom], line) => writeln!(
                out,
                "<rect x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{}\" fill=\"none\"{}/>",
                right - left,
                bottom - top,
                stroke(line)
            ),
            Shape::Dot([x, y], radius, color) => {
                writeln!(
                    out,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"#{color:06x}\"/>"
                )
            }
            Shape::Area(corners, color) => {
                writeln!(
                    out,
                    "<polygon points=\"{}\" fill=\"#{color:06x}\"/>",
                    places(corners)
                )
            }
            Shape::Text {
                at: [x, y],
                anchor,
                turned,
                content,
            } => {
                let turn = match turned {
                    true => format!(" transform=\"rotate(-90 {x:.1} {y:.1})\""),
                    false => String::new(),
                };
                let anchor = match anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                let content = escape(content);
                writeln!(
                    out,
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{turn}>{content}</text>"
                )
            }
        }
    }
}

fn stroke(line: &Line) -> String {
    let mut out = format!(" stroke=\"#{:06x}\"", line.color);
    if line.width != 1.0 {
        out += &format!(" stroke-width=\"{}\"", line.width);
    }
    if let Some([drawn, left_out]) = line.dashes {
        out += &format!(" stroke-dasharray=\"{drawn} {left_out}\"");
    }
    out
}

fn places(points: &[[f64; 2]]) -> String {
    let places: Vec<String> = points.iter().map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
    places.join(" ")
}

fn escape(text: &str) -> String {
    // XML has neither control characters, however they are written, nor these two.
    plain(text)
        .replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
