//! Scenes as pictures: the colours of a PNG are materials. Must not know files.

use std::io::Cursor;

use super::error::{Error, Result};
use super::model::Medium;
use super::scene::{Bitmap, Emitter, Listener, Material, Scene};
use super::scene_text::standard_materials;
use super::waveform::Waveform;

/// Cells along the longer side of the largest picture.
pub const LARGEST_SIDE: u32 = 16_384;

/// What a colour stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meaning {
    /// A material, by its name.
    Material(&'static str),
    /// A sine source in air.
    Source,
    /// A probe in air.
    Probe,
}

/// The colours: of a pixel the nearest one counts, so that smoothed edges do no harm.
const COLORS: [([u8; 3], Meaning); 7] = [
    ([255, 255, 255], Meaning::Material("air")),
    ([0, 0, 0], Meaning::Material("wall")),
    ([0, 0, 255], Meaning::Material("slow")),
    ([255, 0, 255], Meaning::Material("fast")),
    ([0, 255, 0], Meaning::Material("absorber")),
    ([255, 0, 0], Meaning::Source),
    ([255, 255, 0], Meaning::Probe),
];

/// Wavelength of sources in cells of the picture.
const WAVELENGTH: f64 = 12.0;

fn wrong<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::Picture(message.into()))
}

impl Scene {
    /// Reads a scene from a PNG, a cell a pixel, in air, a millimetre a pixel: white is air, black wall, blue a slower and
    /// magenta a faster medium, green an absorber, red a sine source (each run of red in a row, or a column if it is one pixel
    /// wide, is one), yellow a probe.
    ///
    /// # Errors
    /// It is no PNG, or too large, or has too many sources or probes.
    pub fn from_png(bytes: &[u8]) -> Result<Scene> {
        let mut decoder = png::Decoder::new(Cursor::new(bytes));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let info = match decoder.read_header_info() {
            Ok(info) => info,
            Err(error) => return wrong(format!("cannot be read as PNG: {error}")),
        };
        let (width, height) = (info.width, info.height);
        if width.max(height) > LARGEST_SIDE || width.min(height) < 8 {
            return wrong(format!(
                "has {width} x {height} pixels; 8 x 8 to {LARGEST_SIDE} x {LARGEST_SIDE} are possible"
            ));
        }
        // Header and limits are known to be sound; what follows is as large as they say.
        let pixels = decoder.read_info().and_then(|mut reader| {
            let mut pixels = vec![0; reader.output_buffer_size().unwrap_or(0)];
            let frame = reader.next_frame(&mut pixels)?;
            pixels.truncate(frame.buffer_size());
            Ok((pixels, frame.color_type.samples()))
        });
        let (pixels, samples) = match pixels {
            Ok(read) => read,
            Err(error) => return wrong(format!("is damaged: {error}")),
        };
        let (width, height) = (width as usize, height as usize);
        let speed = 343.0;
        let mut materials = standard_materials(speed);
        materials.push(Material {
            name: "absorber".into(),
            medium: Medium {
                speed,
                damping: 20_000.0,
                reflects: false,
            },
            color: [0, 255, 0],
        });
        let meanings: Vec<Meaning> = pixels.chunks_exact(samples).map(meaning).collect();
        // One that is not used must not make the time step shorter.
        materials.retain(|m| {
            let fixed = m.name == "air" || m.name == "wall";
            fixed
                || meanings
                    .iter()
                    .any(|found| matches!(found, Meaning::Material(name) if *name == m.name))
        });
        let index = |name: &str| materials.iter().position(|m| m.name == name).unwrap_or(0) as u8;
        let cells = meanings
            .iter()
            .map(|m| match m {
                Meaning::Material(name) => index(name),
                Meaning::Source | Meaning::Probe => 0,
            })
            .collect();
        let spacing = 1e-3;
        let size = [width as f64 * spacing, height as f64 * spacing, 0.0];
        let middle = |x: usize, y: usize| [(x as f64 + 0.5) * spacing, (y as f64 + 0.5) * spacing, 0.0];
        let mut scene = Scene {
            name: "picture".into(),
            size,
            cells: width,
            time_step: None,
            duration: 2.0 * size[0].max(size[1]) / speed,
            absorbs: true,
            border_width: size[0].min(size[1]) / 12.0,
            materials,
            shapes: Vec::new(),
            bitmap: Some(Bitmap {
                width,
                height,
                materials: cells,
            }),
            emitters: Vec::new(),
            listeners: Vec::new(),
        };
        for (from, to) in boxes(&meanings, width, height, Meaning::Source) {
            scene.emitters.push(Emitter {
                from: middle(from[0], from[1]),
                to: middle(to[0], to[1]),
                waveform: Waveform::Sine {
                    frequency: speed / (WAVELENGTH * spacing),
                },
                amplitude: 1.0,
            });
        }
        for (from, to) in boxes(&meanings, width, height, Meaning::Probe) {
            scene.listeners.push(Listener {
                name: format!("probe {}", scene.listeners.len() + 1),
                at: middle((from[0] + to[0]) / 2, (from[1] + to[1]) / 2),
            });
        }
        if scene.emitters.len() > 16 {
            return wrong(format!(
                "has {} separate red areas; up to 16 are possible",
                scene.emitters.len()
            ));
        }
        Ok(scene)
    }
}

/// The nearest colour's meaning.
fn meaning(pixel: &[u8]) -> Meaning {
    let rgb = match *pixel {
        [r, g, b, ..] => [r, g, b],
        [grey, ..] => [grey; 3],
        [] => [255; 3],
    };
    // What is mostly transparent is air.
    let clear = matches!(*pixel, [.., alpha] if pixel.len().is_multiple_of(2) && alpha < 128);
    let distance = |color: &[u8; 3]| -> u32 {
        let parts = color.iter().zip(rgb);
        parts.map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum()
    };
    let nearest = COLORS.iter().min_by_key(|(color, _)| distance(color));
    nearest
        .filter(|_| !clear)
        .map_or(Meaning::Material("air"), |(_, m)| *m)
}

/// Bounding boxes (first and last pixel) of the connected areas of a meaning.
fn boxes(
    meanings: &[Meaning],
    width: usize,
    height: usize,
    wanted: Meaning,
) -> Vec<([usize; 2], [usize; 2])> {
    let mut seen = vec![false; meanings.len()];
    let mut found = Vec::new();
    for start in 0..meanings.len() {
        if seen[start] || meanings[start] != wanted {
            continue;
        }
        let (mut from, mut to) = ([start % width, start / width], [start % width, start / width]);
        let mut open = vec![start];
        seen[start] = true;
        while let Some(i) = open.pop() {
            let (x, y) = (i % width, i / width);
            (from, to) = ([from[0].min(x), from[1].min(y)], [to[0].max(x), to[1].max(y)]);
            let near = [
                (x > 0).then(|| i - 1),
                (x + 1 < width).then(|| i + 1),
                (y > 0).then(|| i - width),
                (y + 1 < height).then(|| i + width),
            ];
            for next in near.into_iter().flatten() {
                if !seen[next] && meanings[next] == wanted {
                    seen[next] = true;
                    open.push(next);
                }
            }
        }
        found.push((from, to));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::encode_png;

    #[test]
    fn colours_become_materials_sources_and_probes() {
        let (width, height) = (20usize, 10usize);
        let mut rgb = vec![250u8; width * height * 3];
        let mut set = |x: usize, y: usize, color: [u8; 3]| {
            rgb[(y * width + x) * 3..][..3].copy_from_slice(&color);
        };
        (0..height).for_each(|y| set(2, y, [255, 10, 0]));
        (0..height).for_each(|y| set(10, y, [20, 20, 20]));
        set(15, 5, [255, 255, 0]);
        set(16, 6, [0, 240, 0]);
        let png = encode_png(&rgb, width as u32, height as u32).unwrap();
        let scene = Scene::from_png(&png).unwrap();
        let model = scene.model(None, None).unwrap();
        assert_eq!(model.size, [20, 10, 1]);
        assert_eq!(model.cells.iter().filter(|c| **c == 1).count(), 10);
        assert_eq!(model.cells[6 * 20 + 16], 2);
        assert_eq!(model.sources.len(), 1);
        assert_eq!(
            (model.sources[0].region.from, model.sources[0].region.to),
            ([2, 0, 0], [3, 10, 1])
        );
        assert_eq!(model.probes[0].at, [15, 5, 0]);
    }

    #[test]
    fn what_is_no_picture_or_too_large_is_refused() {
        let check = |bytes: &[u8], expect: &str| {
            let error = Scene::from_png(bytes).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        };
        check(b"not a picture", "cannot be read as PNG");
        check(b"", "cannot be read as PNG");
        let png = encode_png(&[0; 3 * 64], 8, 8).unwrap();
        check(&png[..png.len() - 30], "is damaged");
        check(&encode_png(&[0; 12], 2, 2).unwrap(), "has 2 x 2 pixels");
        // A header that promises 100,000 x 100,000 pixels: refused before anything of that size is allocated.
        let mut huge = png.clone();
        huge[16..24].copy_from_slice(&[0, 1, 0x86, 0xa0, 0, 1, 0x86, 0xa0]);
        let error = Scene::from_png(&huge).unwrap_err().to_string();
        assert!(error.contains("the picture"), "{error}");
    }
}
