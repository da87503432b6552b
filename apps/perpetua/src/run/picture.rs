//! A buffer as a picture. Must not know what computed it.

use perpetua::wave::ColorMap;
use perpetua::wave::picture::encode_png;
use perpetua_ir::ir::Scalar;

use super::plan::Buffer;
use crate::say::{self, say};
use crate::values::number;

/// `512x512`: width and height.
pub(super) fn size(text: &str) -> Result<[usize; 2], String> {
    let wrong = || {
        format!(
            "`{}` is no size: write WIDTHxHEIGHT, as 512x512",
            say::short(text)
        )
    };
    let (width, height) = text.split_once('x').ok_or_else(wrong)?;
    match (width.parse(), height.parse()) {
        (Ok(width), Ok(height)) if width > 0 && height > 0 => Ok([width, height]),
        _ => Err(wrong()),
    }
}

/// Longest side of a picture.
const LONGEST: usize = 1 << 15;

/// What numbers a buffer has.
pub(crate) struct Numbers<'a> {
    pub(crate) scalar: Scalar,
    /// How many of an element.
    pub(crate) each: usize,
    pub(crate) shape: &'a [usize],
}

impl<'a> Numbers<'a> {
    /// Of a buffer; or why it is no picture.
    pub(super) fn of(buffer: &'a Buffer) -> Result<Numbers<'a>, String> {
        let Some(scalar) = buffer.numbers.scalar() else {
            return Err(format!(
                "--picture {}: its elements `{}` mix types of numbers, which are no colours",
                buffer.name, buffer.element
            ));
        };
        Ok(Numbers {
            scalar,
            each: buffer.numbers.each(),
            shape: &buffer.shape,
        })
    }
}

/// Pixels and how many numbers each has.
struct Layout {
    width: usize,
    height: usize,
    channels: usize,
}

/// Whether a buffer can be drawn, known before it is computed.
pub(crate) fn judge(buffer: &Numbers<'_>, size: Option<[usize; 2]>) -> Result<(), String> {
    layout(buffer, size).map(drop)
}

fn layout(buffer: &Numbers<'_>, size: Option<[usize; 2]>) -> Result<Layout, String> {
    let (rows_and_columns, channels) = match buffer.shape {
        [rows, columns] if buffer.each == 1 => (Some([*columns, *rows]), 1),
        [rows, columns, n @ (3 | 4)] => (Some([*columns, *rows]), *n),
        _ => (None, buffer.each),
    };
    if !matches!(channels, 1 | 3 | 4) {
        return Err(format!(
            "{channels} numbers for each pixel are no colour: one, three or four are"
        ));
    }
    let pixels = buffer.shape.iter().product::<usize>() / channels;
    let [width, height] = size.or(rows_and_columns).ok_or_else(|| {
        format!("{pixels} pixels have no rows and columns: give the buffer a content with both, as zeros:512x512 (`perpetua run` has --size, too)")
    })?;
    if pixels == 0 {
        return Err("the buffer is empty, and a picture has a pixel at least".into());
    }
    if width.checked_mul(height) != Some(pixels) {
        return Err(format!(
            "{width} x {height} are not the {pixels} pixels that the buffer has"
        ));
    }
    if width.max(height) > LONGEST {
        return Err(format!(
            "{width} x {height}: a side of a picture has {LONGEST} pixels at most"
        ));
    }
    Ok(Layout {
        width,
        height,
        channels,
    })
}

/// A PNG of numbers: three or four for each pixel are red, green, blue and what is left out, from 0 to 1 or as bytes; of one the
/// largest is brightest.
pub(crate) fn draw(buffer: &Numbers<'_>, bytes: &[u8], size: Option<[usize; 2]>) -> Result<Vec<u8>, String> {
    let Layout {
        width,
        height,
        channels,
    } = layout(buffer, size)?;
    let numbers: Vec<f64> = bytes
        .chunks_exact(buffer.scalar.size() as usize)
        .map(|bytes| number(buffer.scalar, bytes))
        .collect();
    let strange = numbers.iter().filter(|number| !number.is_finite()).count();
    if strange == numbers.len() {
        return Err(format!(
            "none of its {strange} numbers is finite: there is nothing to draw"
        ));
    }
    if strange > 0 {
        let numbers = numbers.len();
        say(format!(
            "not finite: {strange} of the picture's {numbers} numbers"
        ));
    }
    let rgb: Vec<u8> = match channels {
        1 => one(&numbers, buffer.scalar),
        _ => {
            let scale = if buffer.scalar.is_float() { 255.0 } else { 1.0 };
            let channel = |value: f64| (value * scale).round() as u8;
            numbers
                .chunks_exact(channels)
                .flat_map(|p| [p[0], p[1], p[2]].map(channel))
                .collect()
        }
    };
    encode_png(&rgb, width as u32, height as u32).map_err(|error| error.to_string())
}

/// One number a pixel: bytes are grey as they are; else the strongest is brightest, in two colours where some are below zero.
fn one(numbers: &[f64], scalar: Scalar) -> Vec<u8> {
    if scalar == Scalar::U8 {
        return numbers.iter().flat_map(|value| [*value as u8; 3]).collect();
    }
    let finite = numbers.iter().copied().filter(|value| value.is_finite());
    let (least, most) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    let strongest = least.abs().max(most.abs());
    say(format!("the picture's numbers go from {least} to {most}"));
    let (map, zero, range) = match least < 0.0 {
        true => (ColorMap::Night, 0.0, strongest),
        false => (ColorMap::Heat, least, most - least),
    };
    let color = |value: &f64| match range > 0.0 {
        true => map.color(((value - zero) / range) as f32),
        false => map.color(0.0),
    };
    numbers.iter().flat_map(color).collect()
}
