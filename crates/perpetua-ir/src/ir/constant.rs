//! Constants as people and programs of the instruction set write them; reading what was printed gives the same bits. Must not know the
//! IR's text form, which has its own.

use super::Scalar;
use crate::ops::eval::{eval_cast, float_bits};
use half::{bf16, f16};

/// A constant's text: `bits` are its own, zero-extended.
pub fn print_constant(ty: Scalar, bits: u64) -> String {
    let float = |value: f64, text: String, digits: usize| match value.is_nan() {
        true => format!("0f{bits:0digits$X}"),
        false => text,
    };
    match ty {
        Scalar::Bool => (bits != 0).to_string(),
        Scalar::F16 => {
            let value = f16::from_bits(bits as u16).to_f32();
            float(value.into(), format!("{value:?}"), 4)
        }
        Scalar::BF16 => {
            let value = bf16::from_bits(bits as u16).to_f32();
            float(value.into(), format!("{value:?}"), 4)
        }
        Scalar::F32 => {
            let value = f32::from_bits(bits as u32);
            float(value.into(), format!("{value:?}"), 8)
        }
        Scalar::F64 => {
            let value = f64::from_bits(bits);
            float(value, format!("{value:?}"), 16)
        }
        _ if ty.is_signed_int() => {
            let unused = 64 - ty.bits();
            ((bits << unused) as i64 >> unused).to_string()
        }
        _ => bits.to_string(),
    }
}

/// A constant's bits, zero-extended; or what is wrong with the text.
pub fn parse_constant(ty: Scalar, text: &str) -> Result<u64, String> {
    if ty == Scalar::Bool {
        return match text {
            "true" | "1" => Ok(1),
            "false" | "0" => Ok(0),
            _ => Err("a predicate is `true` or `false`".into()),
        };
    }
    if let Some(digits) = text.strip_prefix("0f") {
        if !ty.is_float() {
            return Err(format!(
                "`{text}` has the bits of a float, and {ty} is none: `0x{digits}` is an integer"
            ));
        }
        // Fewer digits would be a small number's bits where somebody has left zeros out behind.
        let wanted = ty.bits() as usize / 4;
        let is_whole = digits.len() == wanted && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let bits = u64::from_str_radix(digits, 16).ok().filter(|_| is_whole);
        return bits.ok_or_else(|| {
            format!("`0f` is followed by all bits of a float in hexadecimal: {wanted} digits for {ty}, not `{digits}`")
        });
    }
    if ty.is_float() {
        if let Some(value) = integer(text).filter(|_| text.contains(['x', 'o', 'b'])) {
            return Err(format!(
                "`{text}` is an integer's form: write {value}, or all bits of {ty} behind `0f`"
            ));
        }
        // An integer's form is a float, too.
        let plain = text.replace('_', "");
        let value = |wrong: std::num::ParseFloatError| format!("`{text}` is not a float: {wrong}");
        let (value, bits): (f64, u64) = match ty {
            Scalar::F16 | Scalar::BF16 => {
                let bits = float_bits(ty, plain.parse().map_err(value)?);
                (f64::from_bits(eval_cast(ty, Scalar::F64, bits)), bits)
            }
            Scalar::F64 => {
                let value: f64 = plain.parse().map_err(value)?;
                (value, value.to_bits())
            }
            _ => {
                let value: f32 = plain.parse().map_err(value)?;
                (value.into(), value.to_bits().into())
            }
        };
        return match value.is_infinite() && text.contains(|c: char| c.is_ascii_digit()) {
            true => Err(format!(
                "`{text}` is more than {ty} holds: write `inf` for infinity"
            )),
            false => Ok(bits),
        };
    }
    let value = integer(text).ok_or_else(|| format!("`{text}` is not an integer"))?;
    let width = ty.bits();
    let (low, high) = match ty.is_signed_int() {
        true => (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1),
        false => (0, (1i128 << width) - 1),
    };
    match (low..=high).contains(&value) {
        true => Ok(value as u64 & (u64::MAX >> (64 - width))),
        false => Err(format!("{value} does not fit {ty}, which holds {low} to {high}")),
    }
}

/// An integer in decimal, hexadecimal (`0x`), octal (`0o`) or binary (`0b`), with `_` between digits.
pub fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.replace('_', "");
    let radix = |prefix, radix| Some((digits.strip_prefix(prefix)?, radix));
    let (digits, radix) = radix("0x", 16)
        .or_else(|| radix("0o", 8))
        .or_else(|| radix("0b", 2))
        .unwrap_or((&digits, 10));
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let value = i128::from_str_radix(digits, radix).ok()?;
    (value <= u64::MAX.into()).then_some(if negative { -value } else { value })
}
