//! The window's menu of scenes. Must not know how they are drawn.

use crate::wave::{Border, Medium, Model, Region, Result, Source, Waveform};

/// Names of the scenes, in the menu's order.
pub const NAMES: [&str; 4] = ["double slit", "lens", "room", "pool"];

/// A scene by its place in the menu, with so many cells a side.
///
/// # Errors
/// There are too few or too many cells.
pub fn model(index: usize, size: usize) -> Result<Model> {
    let mut model = Model::empty([size, size, 1], 0.01, Medium::of_speed(340.0));
    let sine = |cells: f64| Waveform::Sine {
        frequency: 340.0 / (cells * 0.01),
    };
    let n = |part: f64| (part * size as f64) as usize;
    let fill = |model: &mut Model, from: [usize; 2], to: [usize; 2], medium: u8| {
        for y in from[1]..to[1] {
            for x in from[0]..to[0] {
                let i = model.index([x, y, 0]);
                model.cells[i] = medium;
            }
        }
    };
    let cell = |x: f64, y: f64| Region::cell([n(x), n(y), 0]);
    let source = |region, waveform| Source {
        region,
        waveform,
        amplitude: 1.0,
    };
    match index {
        0 => {
            model.media.push(Medium::WALL);
            let thick = n(0.34) + (size / 96).max(2);
            for (from, to) in [(0.0, 0.40), (0.45, 0.55), (0.60, 1.0)] {
                fill(&mut model, [n(0.34), n(from)], [thick, n(to)], 1);
            }
            let region = Region {
                from: [n(0.15), 0, 0],
                to: [n(0.15) + 1, size, 1],
            };
            model.sources.push(source(region, sine(size as f64 / 24.0)));
        }
        1 => {
            model.media.push(Medium::of_speed(190.0));
            for y in 0..size {
                for x in 0..size {
                    let (a, b) = (x as f64 / size as f64, y as f64 / size as f64 - 0.5);
                    let left = (a - 0.66).hypot(b) < 0.34;
                    let right = (a - 0.14).hypot(b) < 0.34;
                    if left && right {
                        let i = model.index([x, y, 0]);
                        model.cells[i] = 1;
                    }
                }
            }
            let region = Region {
                from: [n(0.14), 0, 0],
                to: [n(0.14) + 1, size, 1],
            };
            model.sources.push(source(region, sine(size as f64 / 28.0)));
        }
        2 => {
            model.border = Border::Reflect;
            model.media.push(Medium::WALL);
            fill(&mut model, [n(0.6), 0], [n(0.6) + 3, n(0.62)], 1);
            model
                .sources
                .push(source(cell(0.25, 0.3), sine(size as f64 / 16.0)));
        }
        _ => model
            .sources
            .push(source(cell(0.5, 0.5), sine(size as f64 / 16.0))),
    }
    model.check()?;
    Ok(model)
}
