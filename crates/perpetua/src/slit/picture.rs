//! A field as a picture: a perceptually uniform diverging colour map and a PNG writer. Knows nothing of physics.

use std::io;
use std::path::Path;

/// Colour of a value in `[-1, 1]`: dark at zero, blue for negative and orange for positive values; equal steps of
/// the value are equal steps of lightness (OKLCh: B. Ottosson, "A perceptual color space for image processing", 2020).
pub(crate) fn diverging(value: f32) -> [u8; 3] {
    let v = if value.is_nan() {
        0.0
    } else {
        value.clamp(-1.0, 1.0)
    };
    let strength = v.abs();
    let lightness = 0.16 + 0.74 * strength;
    let chroma = 0.16 * (strength * (1.6 - 0.6 * strength)).sqrt();
    let hue = if v < 0.0 { 245.0f32 } else { 62.0 }.to_radians();
    oklab_to_srgb(lightness, chroma * hue.cos(), chroma * hue.sin())
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

/// Draws `field` (`width` × `height`, row by row), with cells where `solid` holds in grey. The colour range is the
/// 99.5th percentile of magnitudes, so that a few strong cells near a source do not darken the rest.
pub(crate) fn draw(field: &[f32], solid: &[bool], width: usize) -> Vec<u8> {
    let mut magnitudes: Vec<f32> = field.iter().map(|v| v.abs()).filter(|v| v.is_finite()).collect();
    let rank = magnitudes.len().saturating_sub(1) * 995 / 1000;
    let range = if magnitudes.is_empty() {
        0.0
    } else {
        *magnitudes.select_nth_unstable_by(rank, f32::total_cmp).1
    };
    let scale = if range > 0.0 { 1.0 / range } else { 0.0 };
    debug_assert!(width == 0 || field.len().is_multiple_of(width));
    field
        .iter()
        .zip(solid)
        .flat_map(|(v, solid)| {
            if *solid {
                [128, 128, 128]
            } else {
                diverging(v * scale)
            }
        })
        .collect()
}

/// Writes 8-bit RGB pixels as a PNG: to a temporary file beside `path` first, so that a failure leaves nothing half-written.
///
/// # Errors
/// What the file system or the encoder says.
pub(crate) fn write_png(path: &Path, rgb: &[u8], width: u32, height: u32) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let partial = path.with_file_name(name);
    let written = encode(&partial, rgb, width, height).and_then(|()| std::fs::rename(&partial, path));
    if written.is_err() {
        // Nothing more can be done if this fails too; the first error is the one to report.
        let _ = std::fs::remove_file(&partial);
    }
    written
}

fn encode(path: &Path, rgb: &[u8], width: u32, height: u32) -> io::Result<()> {
    let file = io::BufWriter::new(std::fs::File::create(path)?);
    let mut encoder = png::Encoder::new(file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(rgb)?;
    writer.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lightness_grows_with_magnitude_on_both_sides() {
        let luma = |v: f32| {
            let [r, g, b] = diverging(v).map(f32::from);
            0.2126 * r + 0.7152 * g + 0.0722 * b
        };
        for side in [-1.0f32, 1.0] {
            for i in 0..20 {
                let (a, b) = (i as f32 / 20.0, (i + 1) as f32 / 20.0);
                assert!(luma(side * a) < luma(side * b), "{side} {a}");
            }
        }
        assert_eq!(diverging(f32::NAN), diverging(0.0));
    }

    #[test]
    fn a_picture_is_read_back_as_it_was_written() {
        let path = std::env::temp_dir().join(format!("perpetua-picture-{}.png", std::process::id()));
        let rgb = draw(&[0.0, 1.0, -1.0, 0.5], &[false, false, false, true], 2);
        write_png(&path, &rgb, 2, 2).unwrap();
        let decoder = png::Decoder::new(io::BufReader::new(std::fs::File::open(&path).unwrap()));
        let mut reader = decoder.read_info().unwrap();
        let mut back = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut back).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(back, rgb);
        assert_eq!(&back[9..], [128, 128, 128]);
    }
}
