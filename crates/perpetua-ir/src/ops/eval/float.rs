//! What operators mean on f32 and f64: IEEE 754 without contraction. f16 and bf16 are computed as f32 by the
//! caller and rounded after each operator.

use super::lanes::{Line, map1, map2, map3};
use super::library;
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
    ($unary:ident, $binary:ident, $ternary:ident, $t:ty, $unary_library:expr, $binary_library:expr) => {
        #[inline(always)]
        pub(super) fn $unary(op: UnaryOp, m: &[u64], a: &[Line], out: &mut [Line]) {
            match op {
                UnaryOp::Neg => map1::<$t, $t>(m, a, out, |x| -x),
                UnaryOp::Abs => map1::<$t, $t>(m, a, out, |x| x.abs()),
                UnaryOp::Signum => map1::<$t, $t>(m, a, out, |x| x.signum()),
                UnaryOp::Floor => map1::<$t, $t>(m, a, out, |x| x.floor()),
                UnaryOp::Ceil => map1::<$t, $t>(m, a, out, |x| x.ceil()),
                UnaryOp::Trunc => map1::<$t, $t>(m, a, out, |x| x.trunc()),
                UnaryOp::Round => map1::<$t, $t>(m, a, out, |x| x.round()),
                UnaryOp::RoundTiesEven => map1::<$t, $t>(m, a, out, |x| x.round_ties_even()),
                UnaryOp::Fract => map1::<$t, $t>(m, a, out, |x| x - x.trunc()),
                UnaryOp::Sqrt => map1::<$t, $t>(m, a, out, |x| x.sqrt()),
                UnaryOp::Rsqrt => map1::<$t, $t>(m, a, out, |x| 1.0 / x.sqrt()),
                UnaryOp::Recip => map1::<$t, $t>(m, a, out, |x| 1.0 / x),
                UnaryOp::ToDegrees => map1::<$t, $t>(m, a, out, |x| x.to_degrees()),
                UnaryOp::ToRadians => map1::<$t, $t>(m, a, out, |x| x.to_radians()),
                UnaryOp::IsNan => map1::<$t, u8>(m, a, out, |x| u8::from(x.is_nan())),
                UnaryOp::IsInfinite => map1::<$t, u8>(m, a, out, |x| u8::from(x.is_infinite())),
                UnaryOp::IsFinite => map1::<$t, u8>(m, a, out, |x| u8::from(x.is_finite())),
                UnaryOp::IsSignNegative => map1::<$t, u8>(m, a, out, |x| u8::from(x.is_sign_negative())),
                _ => $unary_library(op, m, a, out),
            }
        }

        #[inline(always)]
        pub(super) fn $binary(op: BinaryOp, m: &[u64], a: &[Line], b: &[Line], out: &mut [Line]) {
            match op {
                BinaryOp::Add => map2::<$t, $t, $t>(m, a, b, out, |x, y| x + y),
                BinaryOp::Sub => map2::<$t, $t, $t>(m, a, b, out, |x, y| x - y),
                BinaryOp::Mul => map2::<$t, $t, $t>(m, a, b, out, |x, y| x * y),
                BinaryOp::Div => map2::<$t, $t, $t>(m, a, b, out, |x, y| x / y),
                BinaryOp::Rem => map2::<$t, $t, $t>(m, a, b, out, |x, y| x % y),
                BinaryOp::Min => map2::<$t, $t, $t>(m, a, b, out, |x, y| min!(x, y)),
                BinaryOp::Max => map2::<$t, $t, $t>(m, a, b, out, |x, y| max!(x, y)),
                BinaryOp::Eq => map2::<$t, $t, u8>(m, a, b, out, |x, y| u8::from(x == y)),
                BinaryOp::Ne => map2::<$t, $t, u8>(m, a, b, out, |x, y| u8::from(x != y)),
                BinaryOp::Lt => map2::<$t, $t, u8>(m, a, b, out, |x, y| u8::from(x < y)),
                BinaryOp::Le => map2::<$t, $t, u8>(m, a, b, out, |x, y| u8::from(x <= y)),
                BinaryOp::Gt => map2::<$t, $t, u8>(m, a, b, out, |x, y| u8::from(x > y)),
                BinaryOp::Ge => map2::<$t, $t, u8>(m, a, b, out, |x, y| u8::from(x >= y)),
                BinaryOp::Copysign => map2::<$t, $t, $t>(m, a, b, out, |x, y| x.copysign(y)),
                _ => $binary_library(op, m, a, b, out),
            }
        }

        #[inline(always)]
        pub(super) fn $ternary(op: TernaryOp, m: &[u64], abc: (&[Line], &[Line], &[Line]), out: &mut [Line]) {
            match op {
                TernaryOp::Fma => map3::<$t, $t, $t, $t>(m, abc, out, |x, y, z| x.mul_add(y, z)),
                TernaryOp::Clamp => map3::<$t, $t, $t, $t>(m, abc, out, |x, y, z| {
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
    |_, _: &[u64], _: &[Line], _: &mut [Line]| {},
    |_, _: &[u64], _: &[Line], _: &[Line], _: &mut [Line]| {}
);
