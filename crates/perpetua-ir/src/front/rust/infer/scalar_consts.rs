//! Associated constants of the scalar types: `f32::MAX`, `u8::BITS`, `core::f32::consts::PI`. Each is the host's own
//! constant, as are the sizes of types.

use half::{bf16, f16};
use perpetua_syntax::Scalar;

use super::call::member::Reach;
use super::consteval::constant_expr;
use super::methods;
use super::tree::Expr;
use super::ty::Ty;
use super::{Checker, Result};
use crate::front::rust::describe::ConstValue;
use crate::front::rust::gpu_type::GpuConst;

macro_rules! pick {
    ($name:ident; $($constant:literal => $value:expr,)*) => {
        match $name { $($constant => Some(GpuConst::to_const(&$value)),)* _ => None }
    };
}

macro_rules! int {
    ($name:ident, $ty:ty) => {
        pick!($name; "MAX" => <$ty>::MAX, "MIN" => <$ty>::MIN, "BITS" => <$ty>::BITS, "ZERO" => 0 as $ty, "ONE" => 1 as $ty,)
    };
}

macro_rules! float {
    ($name:ident, $ty:ident) => {
        pick!($name;
            "MAX" => $ty::MAX, "MIN" => $ty::MIN, "MIN_POSITIVE" => $ty::MIN_POSITIVE, "EPSILON" => $ty::EPSILON,
            "INFINITY" => $ty::INFINITY, "NEG_INFINITY" => $ty::NEG_INFINITY, "NAN" => $ty::NAN,
            "RADIX" => $ty::RADIX, "DIGITS" => $ty::DIGITS, "MANTISSA_DIGITS" => $ty::MANTISSA_DIGITS,
            "MIN_EXP" => $ty::MIN_EXP, "MAX_EXP" => $ty::MAX_EXP, "MIN_10_EXP" => $ty::MIN_10_EXP,
            "MAX_10_EXP" => $ty::MAX_10_EXP, "ZERO" => 0.0 as $ty, "ONE" => 1.0 as $ty,
            "PI" => std::$ty::consts::PI, "TAU" => std::$ty::consts::TAU, "E" => std::$ty::consts::E,
            "SQRT_2" => std::$ty::consts::SQRT_2, "LN_2" => std::$ty::consts::LN_2,
            "LN_10" => std::$ty::consts::LN_10, "LOG2_E" => std::$ty::consts::LOG2_E,
            "LOG2_10" => std::$ty::consts::LOG2_10, "LOG10_E" => std::$ty::consts::LOG10_E,
            "LOG10_2" => std::$ty::consts::LOG10_2, "FRAC_PI_2" => std::$ty::consts::FRAC_PI_2,
            "FRAC_PI_3" => std::$ty::consts::FRAC_PI_3, "FRAC_PI_4" => std::$ty::consts::FRAC_PI_4,
            "FRAC_PI_6" => std::$ty::consts::FRAC_PI_6, "FRAC_PI_8" => std::$ty::consts::FRAC_PI_8,
            "FRAC_1_PI" => std::$ty::consts::FRAC_1_PI, "FRAC_2_PI" => std::$ty::consts::FRAC_2_PI,
            "FRAC_1_SQRT_2" => std::$ty::consts::FRAC_1_SQRT_2,
            "FRAC_2_SQRT_PI" => std::$ty::consts::FRAC_2_SQRT_PI,
        )
    };
}

macro_rules! half {
    ($name:ident, $ty:ident) => {
        pick!($name;
            "MAX" => $ty::MAX, "MIN" => $ty::MIN, "MIN_POSITIVE" => $ty::MIN_POSITIVE, "EPSILON" => $ty::EPSILON,
            "INFINITY" => $ty::INFINITY, "NEG_INFINITY" => $ty::NEG_INFINITY, "NAN" => $ty::NAN,
            "RADIX" => $ty::RADIX, "DIGITS" => $ty::DIGITS, "MANTISSA_DIGITS" => $ty::MANTISSA_DIGITS,
            "MIN_EXP" => $ty::MIN_EXP, "MAX_EXP" => $ty::MAX_EXP, "MIN_10_EXP" => $ty::MIN_10_EXP,
            "MAX_10_EXP" => $ty::MAX_10_EXP, "ZERO" => $ty::ZERO, "ONE" => $ty::ONE,
            "NEG_ZERO" => $ty::NEG_ZERO, "NEG_ONE" => $ty::NEG_ONE,
            "MIN_POSITIVE_SUBNORMAL" => $ty::MIN_POSITIVE_SUBNORMAL, "MAX_SUBNORMAL" => $ty::MAX_SUBNORMAL,
            "PI" => $ty::PI, "E" => $ty::E, "SQRT_2" => $ty::SQRT_2, "LN_2" => $ty::LN_2, "LN_10" => $ty::LN_10,
            "LOG2_E" => $ty::LOG2_E, "LOG2_10" => $ty::LOG2_10, "LOG10_E" => $ty::LOG10_E, "LOG10_2" => $ty::LOG10_2,
            "FRAC_PI_2" => $ty::FRAC_PI_2, "FRAC_PI_3" => $ty::FRAC_PI_3, "FRAC_PI_4" => $ty::FRAC_PI_4,
            "FRAC_PI_6" => $ty::FRAC_PI_6, "FRAC_PI_8" => $ty::FRAC_PI_8, "FRAC_1_PI" => $ty::FRAC_1_PI,
            "FRAC_2_PI" => $ty::FRAC_2_PI, "FRAC_1_SQRT_2" => $ty::FRAC_1_SQRT_2,
            "FRAC_2_SQRT_PI" => $ty::FRAC_2_SQRT_PI,
        )
    };
}

/// The constant `name` of the scalar `s`; `usize` and `isize` have this pointer width in bits.
pub(crate) fn lookup(s: Scalar, name: &str, width: u32) -> Option<ConstValue> {
    match s {
        Scalar::Bool => None,
        Scalar::I8 => int!(name, i8),
        Scalar::I16 => int!(name, i16),
        Scalar::I32 => int!(name, i32),
        Scalar::I64 => int!(name, i64),
        Scalar::I128 => int!(name, i128),
        Scalar::U8 => int!(name, u8),
        Scalar::U16 => int!(name, u16),
        Scalar::U32 => int!(name, u32),
        Scalar::U64 => int!(name, u64),
        Scalar::U128 => int!(name, u128),
        Scalar::Usize | Scalar::Isize => {
            let value = match (s, width) {
                (Scalar::Usize, 32) => int!(name, u32),
                (Scalar::Usize, _) => int!(name, u64),
                (_, 32) => int!(name, i32),
                _ => int!(name, i64),
            }?;
            Some(match value {
                ConstValue::Scalar(Scalar::U32, bits) if name == "BITS" => {
                    ConstValue::Scalar(Scalar::U32, bits)
                }
                ConstValue::Scalar(Scalar::I32, bits) => {
                    ConstValue::Scalar(s, i64::from(bits as u32 as i32) as u64)
                }
                ConstValue::Scalar(_, bits) => ConstValue::Scalar(s, bits),
                other => other,
            })
        }
        Scalar::F16 => half!(name, f16),
        Scalar::Bf16 => half!(name, bf16),
        Scalar::F32 => float!(name, f32),
        Scalar::F64 => float!(name, f64),
    }
}

impl Checker<'_> {
    /// The constant `name` of a type, or a variant without data.
    pub(super) fn constant_in(
        &mut self,
        ty: Ty,
        via: Option<&str>,
        name: &str,
        line: u32,
    ) -> Result<ConstValue> {
        let known = match self.types.shallow(&ty) {
            Ty::Scalar(s) => lookup(s, name, self.program.width),
            Ty::Enum(desc) if via.is_none() => {
                let variant = desc.variants.iter().find(|(variant, _)| variant == name);
                variant.map(|(_, number)| ConstValue::Enum(desc.clone(), *number))
            }
            _ => None,
        };
        let reach = if known.is_some() {
            Reach::Bounds
        } else {
            Reach::All
        };
        let found = self.constant_of(&ty, via, name, reach, line)?.or(known);
        found.ok_or_else(|| {
            let shown = self.show(&ty);
            let remedy = match self.types.shallow(&ty) {
                Ty::Scalar(s) if methods::lookup(s, name).is_ok() => {
                    "a function is no value; one of several has a type and branches that name them: `let f: fn(f32) -> f32 = match … { … };`"
                }
                Ty::Scalar(_) => "",
                _ => "write `#[device]` before the `impl` block that has it",
            };
            self.error(line, format!("`{shown}` has no constant `{name}`"), remedy)
        })
    }

    /// `size_of::<T>()` and `align_of::<T>()`, as the host has them.
    pub(super) fn measured(&mut self, ty: &Ty, name: &str, line: u32) -> Result<Expr> {
        let layout = self
            .types
            .deep(ty, false)
            .to_desc()
            .and_then(|desc| desc.host_layout());
        let Some((size, align)) = layout else {
            let shown = self.show(ty);
            return Err(self.error(
                line,
                format!("`{name}::<{shown}>()` has no fixed value: Rust leaves the layout of this type open"),
                "measure scalars, arrays and `#[repr(C)]` structs",
            ));
        };
        let bytes = if name == "size_of" { size } else { align };
        let value = ConstValue::Scalar(Scalar::Usize, bytes as u64);
        Ok(constant_expr(name, value, line))
    }
}
