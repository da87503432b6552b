//! What operators mean on f32 and f64: IEEE 754 without contraction. f16 and bf16 are computed as f32 by the
//! caller and rounded after each operator.

use super::library;
use super::map::Map;
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

/// The smaller; the other one if one is NaN; of two zeros the second.
macro_rules! min {
    ($x:expr, $y:expr) => {
        if $x < $y || $y.is_nan() { $x } else { $y }
    };
}

/// The larger; the other one if one is NaN; of two zeros the second.
macro_rules! max {
    ($x:expr, $y:expr) => {
        if $x > $y || $y.is_nan() { $x } else { $y }
    };
}

macro_rules! float {
    ($unary:ident, $binary:ident, $ternary:ident, $t:ty, $unary_library:path, $binary_library:path) => {
        #[inline(always)]
        pub(super) fn $unary(op: UnaryOp, x: impl Map) {
            match op {
                UnaryOp::Neg => x.map1::<$t, $t>(|x| -x),
                UnaryOp::Abs => x.map1::<$t, $t>(|x| x.abs()),
                UnaryOp::Signum => x.map1::<$t, $t>(|x| x.signum()),
                UnaryOp::Floor => x.map1::<$t, $t>(|x| x.floor()),
                UnaryOp::Ceil => x.map1::<$t, $t>(|x| x.ceil()),
                UnaryOp::Trunc => x.map1::<$t, $t>(|x| x.trunc()),
                UnaryOp::Round => x.map1::<$t, $t>(|x| x.round()),
                UnaryOp::RoundTiesEven => x.map1::<$t, $t>(|x| x.round_ties_even()),
                UnaryOp::Fract => x.map1::<$t, $t>(|x| x - x.trunc()),
                UnaryOp::Sqrt => x.map1::<$t, $t>(|x| x.sqrt()),
                UnaryOp::Rsqrt => x.map1::<$t, $t>(|x| 1.0 / x.sqrt()),
                UnaryOp::Recip => x.map1::<$t, $t>(|x| 1.0 / x),
                UnaryOp::ToDegrees => x.map1::<$t, $t>(|x| x.to_degrees()),
                UnaryOp::ToRadians => x.map1::<$t, $t>(|x| x.to_radians()),
                UnaryOp::IsNan => x.map1::<$t, u8>(|x| u8::from(x.is_nan())),
                UnaryOp::IsInfinite => x.map1::<$t, u8>(|x| u8::from(x.is_infinite())),
                UnaryOp::IsFinite => x.map1::<$t, u8>(|x| u8::from(x.is_finite())),
                UnaryOp::IsSignNegative => x.map1::<$t, u8>(|x| u8::from(x.is_sign_negative())),
                _ => $unary_library(op, x),
            }
        }

        #[inline(always)]
        pub(super) fn $binary(op: BinaryOp, x: impl Map) {
            match op {
                BinaryOp::Add => x.map2::<$t, $t, $t>(|x, y| x + y),
                BinaryOp::Sub => x.map2::<$t, $t, $t>(|x, y| x - y),
                BinaryOp::Mul => x.map2::<$t, $t, $t>(|x, y| x * y),
                BinaryOp::Div => x.map2::<$t, $t, $t>(|x, y| x / y),
                BinaryOp::Rem => x.map2::<$t, $t, $t>(|x, y| x % y),
                BinaryOp::Min => x.map2::<$t, $t, $t>(|x, y| min!(x, y)),
                BinaryOp::Max => x.map2::<$t, $t, $t>(|x, y| max!(x, y)),
                BinaryOp::Eq => x.map2::<$t, $t, u8>(|x, y| u8::from(x == y)),
                BinaryOp::Ne => x.map2::<$t, $t, u8>(|x, y| u8::from(x != y)),
                BinaryOp::Lt => x.map2::<$t, $t, u8>(|x, y| u8::from(x < y)),
                BinaryOp::Le => x.map2::<$t, $t, u8>(|x, y| u8::from(x <= y)),
                BinaryOp::Gt => x.map2::<$t, $t, u8>(|x, y| u8::from(x > y)),
                BinaryOp::Ge => x.map2::<$t, $t, u8>(|x, y| u8::from(x >= y)),
                BinaryOp::Copysign => x.map2::<$t, $t, $t>(|x, y| x.copysign(y)),
                _ => $binary_library(op, x),
            }
        }

        #[inline(always)]
        pub(super) fn $ternary(op: TernaryOp, x: impl Map) {
            match op {
                TernaryOp::Fma => x.map3::<$t, $t, $t, $t>(|x, y, z| x.mul_add(y, z)),
                TernaryOp::Clamp => x.map3::<$t, $t, $t, $t>(|x, y, z| {
                    let low = max!(x, y);
                    min!(low, z)
                }),
                TernaryOp::Select => {}
            }
        }
    };
}

float!(
    unary_f32,
    binary_f32,
    ternary_f32,
    f32,
    library::unary,
    library::binary
);
float!(
    unary_f64,
    binary_f64,
    ternary_f64,
    f64,
    library::unary_wide,
    library::binary_wide
);
