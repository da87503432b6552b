//! A field as a picture: colour maps, and PNG in memory, still and animated. Must not know files, nor how a field came to be.

use super::error::{Error, Result, range};
use super::model::Model;

/// From a field's value to a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ColorMap {
    /// Dark at zero, blue for negative and orange for positive values.
    #[default]
    Night,
    /// White at zero, blue for negative and red for positive values.
    Day,
    /// Grey at zero, black to white.
    Grey,
    /// The magnitude, from black over red and yellow to white.
    Heat,
}

impl ColorMap {
    /// All of them, with their names.
    pub const ALL: [(&'static str, ColorMap); 4] = [
        ("night", ColorMap::Night),
        ("day", ColorMap::Day),
        ("grey", ColorMap::Grey),
        ("heat", ColorMap::Heat),
    ];

    /// The colour of a value in `[-1, 1]`: equal steps of the value are equal steps of lightness (OKLCh: B. Ottosson,
    /// "A perceptual color space for image processing", 2020). What is not a number has the colour of zero.
    pub fn color(self, value: f32) -> [u8; 3] {
        let v = if value.is_nan() {
            0.0
        } else {
            value.clamp(-1.0, 1.0)
        };
        let strength = v.abs();
        let polar = |lightness: f32, chroma: f32, degrees: f32| {
            let hue = degrees.to_radians();
            oklab_to_srgb(lightness, chroma * hue.cos(), chroma * hue.sin())
        };
        match self {
            ColorMap::Night => {
                let chroma = 0.16 * (strength * (1.6 - 0.6 * strength)).sqrt();
                polar(0.16 + 0.74 * strength, chroma, if v < 0.0 { 245.0 } else { 62.0 })
            }
            ColorMap::Day => polar(
                0.98 - 0.55 * strength,
                0.19 * strength.sqrt(),
                if v < 0.0 { 255.0 } else { 28.0 },
            ),
            ColorMap::Grey => polar(0.5 + 0.5 * v, 0.0, 0.0),
            ColorMap::Heat => polar(
                0.05 + 0.93 * strength,
                0.2 * (strength * (1.0 - strength)).sqrt(),
                25.0 + 80.0 * strength,
            ),
        }
    }

    /// The colours of `2 n + 1` values from -1 to 1, as a table for drawing.
    pub fn table(self, n: usize) -> Vec<[u8; 3]> {
        let steps = n.max(1) as f32;
        (0..=2 * n.max(1))
            .map(|i| self.color(i as f32 / steps - 1.0))
            .collect()
    }
}

/// Converts OKLab to 8-bit sRGB, clipping what lies outside the gamut.
fn oklab_to_srgb(lightness: f32, a: f32, b: f32) -> [u8; 3] {
    let cube = |l: f32| l * l * l;
    let l = cube(lightness + 0.396_337_78 * a + 0.215_803_76 * b);
    let m = cube(lightness - 0.105_561_346 * a - 0.063_854_17 * b);
    let s = cube(lightness - 0.089_484_18 * a - 1.291_485_5 * b);
    let linear = [
        4.076_741_7 * l - 3.307_711_6 * m + 0.230_969_94 * s,
        -1.268_438 * l + 2.609_757_4 * m - 0.341_319_38 * s,
        -0.004_196_086_3 * l - 0.703_418_6 * m + 1.707_614_7 * s,
    ];
    linear.map(|c| {
        let c = c.clamp(0.0, 1.0);
        let encoded = if c <= 0.003_130_8 {
            12.92 * c
        } else {
            1.055 * c.powf(1.0 / 2.4) - 0.055
        };
        (encoded * 255.0).round() as u8
    })
}

/// The 99.5th percentile of a field's magnitudes: a range of colours that few strong cells near a source do not spoil.
pub fn percentile(field: &[f32]) -> f32 {
    let mut magnitudes: Vec<f32> = field.iter().map(|v| v.abs()).filter(|v| v.is_finite()).collect();
    let rank = magnitudes.len().saturating_sub(1) * 995 / 1000;
    if magnitudes.is_empty() {
        return 0.0;
    }
    *magnitudes.select_nth_unstable_by(rank, f32::total_cmp).1
}

/// Draws fields of one model, always with the same colours.
#[derive(Clone, Debug)]
pub struct Painter {
    table: Vec<[u8; 3]>,
    /// By medium: a colour, and how much of it covers the field's.
    tints: Vec<([u8; 3], f32)>,
    width: usize,
}

/// Entries of a painter's table on each side of zero.
const STEPS: usize = 1024;

impl Painter {
    /// A painter for a model whose media have these colours. The first medium is left as it is; reflectors are grey, and brown where grey
    /// is the field's.
    pub fn new(model: &Model, map: ColorMap, colors: &[[u8; 3]]) -> Painter {
        let tints = model
            .media
            .iter()
            .enumerate()
            .map(|(i, medium)| match colors.get(i) {
                _ if medium.reflects && map == ColorMap::Grey => ([150, 90, 40], 1.0),
                _ if medium.reflects => ([128; 3], 1.0),
                Some(color) if i > 0 => (*color, 0.22),
                _ => ([0; 3], 0.0),
            });
        Painter {
            table: map.table(STEPS),
            tints: tints.collect(),
            width: model.size[0],
        }
    }

    /// Draws a layer of the field as 8-bit RGB, row by row; `cells` are its media, `range` is the value with the
    /// strongest colour.
    pub fn draw(&self, field: &[f32], cells: &[u8], range: f32) -> Vec<u8> {
        debug_assert!(self.width == 0 || field.len().is_multiple_of(self.width));
        let scale = if range > 0.0 { STEPS as f32 / range } else { 0.0 };
        let pixels = field.iter().zip(cells).flat_map(|(value, medium)| {
            // The conversion takes what is no number for zero.
            let at = (value * scale).clamp(-(STEPS as f32), STEPS as f32) as isize;
            let color = self.table[at.saturating_add_unsigned(STEPS) as usize];
            match self.tints.get(usize::from(*medium)) {
                Some((tint, part)) if *part > 0.0 => {
                    let mut mixed = color;
                    for (c, t) in mixed.iter_mut().zip(tint) {
                        *c = (f32::from(*c) * (1.0 - part) + f32::from(*t) * part) as u8;
                    }
                    mixed
                }
                _ => color,
            }
        });
        pixels.collect()
    }
}

/// An 8-bit RGB picture as PNG.
///
/// # Errors
/// The sizes do not fit each other.
pub fn encode_png(rgb: &[u8], width: u32, height: u32) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write_png(&mut bytes, rgb, width, height)
        .map_err(|e| Error::Picture(format!("cannot be encoded: {e}")))?;
    Ok(bytes)
}

fn write_png(
    out: &mut Vec<u8>,
    rgb: &[u8],
    width: u32,
    height: u32,
) -> std::result::Result<(), png::EncodingError> {
    let mut encoder = png::Encoder::new(out, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(rgb)?;
    writer.finish()
}

/// An animated PNG on its way to `out`: its frames shown 25 a second, for ever.
pub struct Animation<W: std::io::Write> {
    writer: png::Writer<W>,
    left: u32,
}

impl<W: std::io::Write> Animation<W> {
    /// An animation of exactly `frames` frames.
    ///
    /// # Errors
    /// There are none, or what `out` says.
    pub fn new(out: W, width: u32, height: u32, frames: u32) -> Result<Animation<W>> {
        if frames == 0 {
            return Err(range("the number of frames", 0, "at least one is needed"));
        }
        let start = || {
            let mut encoder = png::Encoder::new(out, width, height);
            encoder.set_color(png::ColorType::Rgb);
            encoder.set_depth(png::BitDepth::Eight);
            encoder.set_compression(png::Compression::Balanced);
            encoder.set_animated(frames, 0)?;
            encoder.set_frame_delay(1, 25)?;
            encoder.write_header()
        };
        let writer =
            start().map_err(|e: png::EncodingError| Error::Picture(format!("cannot be written: {e}")))?;
        Ok(Animation { writer, left: frames })
    }

    /// Adds a frame, 8-bit RGB.
    ///
    /// # Errors
    /// It is one too many, or what `out` says.
    pub fn frame(&mut self, rgb: &[u8]) -> Result<()> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| range("the number of frames", "too large", "end here"))?;
        self.writer
            .write_image_data(rgb)
            .map_err(|e| Error::Picture(format!("cannot be written: {e}")))
    }

    /// Ends the animation.
    ///
    /// # Errors
    /// Frames are missing, or what `out` says.
    pub fn finish(self) -> Result<()> {
        self.writer
            .finish()
            .map_err(|e| Error::Picture(format!("cannot be written: {e}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Medium;

    #[test]
    fn lightness_grows_with_magnitude_on_both_sides() {
        let luma = |v: f32| {
            let [r, g, b] = ColorMap::Night.color(v).map(f32::from);
            0.2126 * r + 0.7152 * g + 0.0722 * b
        };
        for side in [-1.0f32, 1.0] {
            for i in 0..20 {
                let (a, b) = (i as f32 / 20.0, (i + 1) as f32 / 20.0);
                assert!(luma(side * a) < luma(side * b), "{side} {a}");
            }
        }
        for (_, map) in ColorMap::ALL {
            assert_eq!(map.color(f32::NAN), map.color(0.0));
        }
    }

    #[test]
    fn a_picture_is_read_back_as_it_was_drawn() {
        let mut model = Model::empty([8, 8, 1], 1.0, Medium::of_speed(1.0));
        model.media.push(Medium::WALL);
        model.cells[3] = 1;
        let painter = Painter::new(&model, ColorMap::Night, &[]);
        let mut field = vec![0.0; 64];
        (field[1], field[2], field[4]) = (1.0, -1.0, f32::NAN);
        let rgb = painter.draw(&field, &model.cells, 1.0);
        let color = |i: usize| [rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]];
        let night = |v| ColorMap::Night.color(v);
        assert_eq!(
            [color(0), color(1), color(2), color(3), color(4)],
            [night(0.0), night(1.0), night(-1.0), [128; 3], night(0.0)]
        );
        let png = encode_png(&rgb, 8, 8).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        let mut back = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut back).unwrap();
        assert_eq!(back, rgb);
    }

    #[test]
    fn an_animation_has_the_frames_that_it_was_given() {
        let mut bytes = Vec::new();
        let mut animation = Animation::new(&mut bytes, 2, 2, 2).unwrap();
        animation.frame(&[10; 12]).unwrap();
        animation.frame(&[20; 12]).unwrap();
        assert!(animation.frame(&[30; 12]).is_err());
        animation.finish().unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes))
            .read_info()
            .unwrap();
        assert_eq!(reader.info().animation_control().unwrap().num_frames, 2);
        let mut frame = vec![0; 12];
        reader.next_frame(&mut frame).unwrap();
        reader.next_frame(&mut frame).unwrap();
        assert_eq!(frame, [20; 12]);
    }
}
