//! What is chosen when a function becomes a kernel: its generic arguments, the pointer width, the checks.

use super::describe::{ConstValue, TypeDesc};
use super::resolve::FunctionDef;
use super::stencil::StencilConfig;
use crate::ir::Checks;
use perpetua_syntax::{Generic, Scalar};

/// The choices under which a function is lowered.
#[derive(Clone, Debug, PartialEq)]
pub struct Instantiation {
    /// Generic arguments in the order of the parameters (lifetimes left out).
    pub generics: Vec<GenericValue>,
    /// Width of `usize` and `isize` in bits: 64, or 32 for targets without 64-bit integers. Parameters and buffers
    /// of `usize` and `isize` then hold 32-bit integers; structs with such fields are refused.
    pub pointer_width: u32,
    /// Whether multiplications and additions may be contracted into fused ones.
    pub contract: bool,
    /// Whether faults are checked for.
    pub checks: Checks,
    /// The block size that the kernel requires, where it requires one. A stencil's tile sets it too.
    pub block_size: Option<[u32; 3]>,
    /// How a stencil runs; ignored for other kernels.
    pub stencil: StencilConfig,
}

impl Default for Instantiation {
    fn default() -> Self {
        Instantiation {
            generics: Vec::new(),
            pointer_width: 64,
            contract: false,
            checks: Checks::On,
            block_size: None,
            stencil: StencilConfig::default(),
        }
    }
}

/// A generic argument.
#[derive(Clone, Debug, PartialEq)]
pub enum GenericValue {
    /// A type.
    Type(TypeDesc),
    /// The value of a const parameter: an integer or `bool`.
    Const(ConstValue),
    /// The device function that a parameter with a bound such as `Fn(f32) -> f32` stands for. It has no generic parameters.
    Function(FunctionDef),
}

impl GenericValue {
    /// Reads an argument of `param` as it stands in Rust: the name of a scalar type (`f32`) for a type, `true`,
    /// `false` or an integer (`-1`, `0x40`, `1_024`) for a constant.
    ///
    /// # Errors
    /// What the parameter takes, where `text` is something else or does not fit.
    pub fn parse(param: &Generic, text: &str) -> Result<GenericValue, String> {
        match param {
            Generic::Type {
                name, call: Some(_), ..
            } => Err(format!(
                "`{name}` takes a device function of the file, without generic parameters, found `{text}`"
            )),
            Generic::Type { name, .. } => Scalar::from_name(text)
                .map(|scalar| GenericValue::Type(TypeDesc::Scalar(scalar)))
                .ok_or_else(|| format!("`{name}` takes a type such as f32, found `{text}`")),
            Generic::Const { name, ty } => constant(*ty, text)
                .map(|bits| GenericValue::Const(ConstValue::Scalar(*ty, bits)))
                .ok_or_else(|| {
                    format!(
                        "`{name}` takes a constant of type `{}`, found `{text}`",
                        ty.name()
                    )
                }),
        }
    }
}

/// The bits of a constant, as [`ConstValue::Scalar`] has them.
fn constant(ty: Scalar, text: &str) -> Option<u64> {
    if ty == Scalar::Bool {
        return text.parse::<bool>().ok().map(u64::from);
    }
    let (bits, signed) = match ty {
        Scalar::I8 => (8, true),
        Scalar::I16 => (16, true),
        Scalar::I32 => (32, true),
        Scalar::I64 | Scalar::Isize => (64, true),
        Scalar::U8 => (8, false),
        Scalar::U16 => (16, false),
        Scalar::U32 => (32, false),
        Scalar::U64 | Scalar::Usize => (64, false),
        _ => return None,
    };
    let digits = text.replace('_', "");
    let (negative, digits) = match digits.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, &*digits),
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let magnitude = match digits.get(..2) {
        Some("0x") => i128::from_str_radix(&digits[2..], 16),
        Some("0o") => i128::from_str_radix(&digits[2..], 8),
        Some("0b") => i128::from_str_radix(&digits[2..], 2),
        _ => digits.parse(),
    };
    let magnitude: i128 = magnitude.ok().filter(|m| *m >= 0)?;
    let value = if negative { -magnitude } else { magnitude };
    let range = if signed {
        -(1i128 << (bits - 1))..1i128 << (bits - 1)
    } else {
        0..1i128 << bits
    };
    let mask = u64::MAX >> (64 - bits);
    range.contains(&value).then_some(value as u64 & mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generic_arguments_are_read_as_rust_writes_them() {
        let check = |ty: Scalar, text: &str, expect: Option<u64>| {
            let name = "N".to_owned();
            let found = GenericValue::parse(&Generic::Const { name, ty }, text);
            let expect = expect.map(|bits| GenericValue::Const(ConstValue::Scalar(ty, bits)));
            assert_eq!(found.ok(), expect, "{text}");
        };
        check(Scalar::Usize, "1_024", Some(1024));
        check(Scalar::U8, "0xff", Some(255));
        check(Scalar::U8, "256", None);
        check(Scalar::U8, "-1", None);
        check(Scalar::I8, "-128", Some(128));
        check(Scalar::I8, "128", None);
        check(Scalar::U64, "18446744073709551615", Some(u64::MAX));
        check(Scalar::I64, "-1", Some(u64::MAX));
        check(Scalar::Bool, "true", Some(1));
        check(Scalar::Bool, "1", None);
        check(Scalar::I32, "--1", None);
        check(Scalar::I32, "+1", None);
        check(Scalar::I32, "0x-1", None);
        check(Scalar::I32, "", None);
        check(Scalar::F32, "1", None);
        let param = Generic::Type {
            name: "T".into(),
            bounds: Vec::new(),
            call: None,
        };
        let float = GenericValue::Type(TypeDesc::Scalar(Scalar::F32));
        assert_eq!(GenericValue::parse(&param, "f32"), Ok(float));
        assert_eq!(
            GenericValue::parse(&param, "Vec").unwrap_err(),
            "`T` takes a type such as f32, found `Vec`"
        );
    }
}
