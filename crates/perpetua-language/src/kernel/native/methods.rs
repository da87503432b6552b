//! Methods of scalars, slices and arrays, under names of their own (`x.sqrt()` is `x.__perpetua_native_sqrt(…)?` in a
//! native body), so that method resolution finds them beside the native siblings of the user's `#[device]` methods.
//! They compute what the operator table says, bit for bit; the transcendental ones come from the math library, as
//! on every device.

use half::{bf16, f16};
use perpetua_ir::math::{eval_binary, eval_binary_wide, eval_unary, eval_unary_wide};
use perpetua_ir::ops::{BinaryOp, UnaryOp};

use super::halves::{narrow, widen};
use super::mode::Mode;
use super::number::Number;
use super::stop::{Site, Stop};

/// What a method gives.
type Done<T> = Result<T, Stop>;

/// Types that go with a scalar type.
pub trait Related {
    /// The unsigned integer of the same width.
    type Unsigned;
}

macro_rules! related {
    ($($ty:ident $unsigned:ident;)*) => { $(
        impl Related for $ty {
            type Unsigned = $unsigned;
        }
    )* };
}

related! {
    i8 u8; i16 u16; i32 u32; i64 u64; i128 u128; isize usize;
    u8 u8; u16 u16; u32 u32; u64 u64; u128 u128; usize usize;
    f16 u16; bf16 u16; f32 u32; f64 u64;
}

/// Declares a trait of methods, and implements it. In a body, `at` is the place that faults are reported at.
macro_rules! methods {
    ($(#[$doc:meta])* $trait:ident for [$($ty:ident)*] $methods:tt) => {
        methods!(@declare $(#[$doc])* $trait $methods);
        $(methods!(@implement $trait $ty $methods);)*
    };
    (@declare $(#[$doc:meta])* $trait:ident { $(
        $name:ident($x:ident $m:ident $at:ident $(, $arg:ident: $arg_ty:ty)*) -> $ret:ty = $value:expr;
    )* }) => {
        $(#[$doc])*
        #[allow(missing_docs, reason = "each is the Rust method whose name follows the prefix")]
        pub trait $trait: Related + Sized {
            $(fn $name<M: Mode>(self, $m: &M, $at: &'static Site $(, $arg: $arg_ty)*) -> Done<$ret>;)*
        }
    };
    (@implement $trait:ident $ty:ident { $(
        $name:ident($x:ident $m:ident $at:ident $(, $arg:ident: $arg_ty:ty)*) -> $ret:ty = $value:expr;
    )* }) => {
        #[allow(
            unused_variables,
            unused_comparisons,
            clippy::unnecessary_cast,
            clippy::absurd_extreme_comparisons,
            reason = "one text for signed and unsigned types"
        )]
        impl $trait for $ty {
            $(
                #[inline(always)]
                fn $name<M: Mode>(self, $m: &M, $at: &'static Site $(, $arg: $arg_ty)*) -> Done<$ret> {
                    let $x = self;
                    $value
                }
            )*
        }
    };
}

methods! {
    /// Methods of integers.
    Integers for [i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize] {
        __perpetua_native_abs(x m at) -> Self = Ok(x.magnitude());
        __perpetua_native_wrapping_abs(x m at) -> Self = Ok(x.magnitude());
        __perpetua_native_unsigned_abs(x m at) -> Self::Unsigned = Ok(x.magnitude() as Self::Unsigned);
        __perpetua_native_signum(x m at) -> Self = Ok((x > Self::ZERO) as Self - ((x < Self::ZERO) as Self));
        __perpetua_native_is_positive(x m at) -> bool = Ok(x > Self::ZERO);
        __perpetua_native_is_negative(x m at) -> bool = Ok(x < Self::ZERO);
        __perpetua_native_reverse_bits(x m at) -> Self = Ok(x.reverse_bits());
        __perpetua_native_swap_bytes(x m at) -> Self = Ok(x.swap_bytes());
        __perpetua_native_wrapping_neg(x m at) -> Self = Ok(x.wrapping_neg());
        __perpetua_native_count_ones(x m at) -> u32 = Ok(x.count_ones());
        __perpetua_native_count_zeros(x m at) -> u32 = Ok(x.count_zeros());
        __perpetua_native_leading_zeros(x m at) -> u32 = Ok(x.leading_zeros());
        __perpetua_native_leading_ones(x m at) -> u32 = Ok(x.leading_ones());
        __perpetua_native_trailing_zeros(x m at) -> u32 = Ok(x.trailing_zeros());
        __perpetua_native_trailing_ones(x m at) -> u32 = Ok(x.trailing_ones());
        __perpetua_native_is_power_of_two(x m at) -> bool = Ok(x.count_ones() == 1);
        __perpetua_native_saturating_add(x m at, y: Self) -> Self = Ok(x.saturating_add(y));
        __perpetua_native_saturating_sub(x m at, y: Self) -> Self = Ok(x.saturating_sub(y));
        __perpetua_native_saturating_mul(x m at, y: Self) -> Self = Ok(x.saturating_mul(y));
        __perpetua_native_wrapping_add(x m at, y: Self) -> Self = Ok(x.wrapping_add(y));
        __perpetua_native_wrapping_sub(x m at, y: Self) -> Self = Ok(x.wrapping_sub(y));
        __perpetua_native_wrapping_mul(x m at, y: Self) -> Self = Ok(x.wrapping_mul(y));
        __perpetua_native_min(x m at, y: Self) -> Self = Ok(x.min(y));
        __perpetua_native_max(x m at, y: Self) -> Self = Ok(x.max(y));
        __perpetua_native_bitand(x m at, y: Self) -> Self = Ok(x & y);
        __perpetua_native_bitor(x m at, y: Self) -> Self = Ok(x | y);
        __perpetua_native_bitxor(x m at, y: Self) -> Self = Ok(x ^ y);
        __perpetua_native_overflowing_add(x m at, y: Self) -> (Self, bool) = Ok(x.overflowing_add(y));
        __perpetua_native_overflowing_sub(x m at, y: Self) -> (Self, bool) = Ok(x.overflowing_sub(y));
        __perpetua_native_overflowing_mul(x m at, y: Self) -> (Self, bool) = Ok(x.overflowing_mul(y));
        __perpetua_native_abs_diff(x m at, y: Self) -> Self::Unsigned = Ok(x.abs_diff(y));
        __perpetua_native_rotate_left(x m at, n: u32) -> Self = Ok(x.rotate_left(n));
        __perpetua_native_rotate_right(x m at, n: u32) -> Self = Ok(x.rotate_right(n));
        __perpetua_native_wrapping_shl(x m at, n: u32) -> Self = Ok(x.wrapping_shl(n));
        __perpetua_native_wrapping_shr(x m at, n: u32) -> Self = Ok(x.wrapping_shr(n));
        __perpetua_native_wrapping_pow(x m at, n: u32) -> Self = Ok(x.wrapping_pow(n));
        __perpetua_native_pow(x m at, n: u32) -> Self = Ok(x.wrapping_pow(n));
        __perpetua_native_wrapping_div(x m at, y: Self) -> Self = if y == Self::ZERO { x.quotient(y, at) } else { Ok(x.wrapping_div(y)) };
        __perpetua_native_wrapping_rem(x m at, y: Self) -> Self = if y == Self::ZERO { x.rest(y, at) } else { Ok(x.wrapping_rem(y)) };
        __perpetua_native_rem_euclid(x m at, y: Self) -> Self = rem_euclid(x, y, at);
        __perpetua_native_div_euclid(x m at, y: Self) -> Self = div_euclid(x, y, at);
        __perpetua_native_div_ceil(x m at, y: Self) -> Self = {
            let quotient = x.quotient(y, at)?;
            Ok(quotient.plus((x.rest(y, at)? != Self::ZERO) as Self))
        };
        __perpetua_native_next_multiple_of(x m at, y: Self) -> Self = {
            let rest = x.rest(y, at)?;
            Ok(if rest == Self::ZERO { x } else { x.plus(y.minus(rest)) })
        };
        __perpetua_native_clamp(x m at, low: Self, high: Self) -> Self = Ok(x.max(low).min(high));
    }
}

methods! {
    /// Methods of f32 and f64.
    Floats for [f32 f64] {
        __perpetua_native_abs(x m at) -> Self = Ok(x.magnitude());
        __perpetua_native_fract(x m at) -> Self = Ok(x - x.trunc());
        __perpetua_native_signum(x m at) -> Self = Ok(x.signum());
        __perpetua_native_floor(x m at) -> Self = Ok(x.floor());
        __perpetua_native_ceil(x m at) -> Self = Ok(x.ceil());
        __perpetua_native_trunc(x m at) -> Self = Ok(x.trunc());
        __perpetua_native_round(x m at) -> Self = Ok(x.round());
        __perpetua_native_round_ties_even(x m at) -> Self = Ok(x.round_ties_even());
        __perpetua_native_sqrt(x m at) -> Self = Ok(x.sqrt());
        __perpetua_native_recip(x m at) -> Self = Ok(x.recip());
        __perpetua_native_to_degrees(x m at) -> Self = Ok(x.to_degrees());
        __perpetua_native_to_radians(x m at) -> Self = Ok(x.to_radians());
        __perpetua_native_exp(x m at) -> Self = Ok(x.unary(UnaryOp::Exp));
        __perpetua_native_exp2(x m at) -> Self = Ok(x.unary(UnaryOp::Exp2));
        __perpetua_native_exp_m1(x m at) -> Self = Ok(x.unary(UnaryOp::ExpM1));
        __perpetua_native_ln(x m at) -> Self = Ok(x.unary(UnaryOp::Ln));
        __perpetua_native_ln_1p(x m at) -> Self = Ok(x.unary(UnaryOp::Ln1p));
        __perpetua_native_log2(x m at) -> Self = Ok(x.unary(UnaryOp::Log2));
        __perpetua_native_log10(x m at) -> Self = Ok(x.unary(UnaryOp::Log10));
        __perpetua_native_sin(x m at) -> Self = Ok(x.unary(UnaryOp::Sin));
        __perpetua_native_cos(x m at) -> Self = Ok(x.unary(UnaryOp::Cos));
        __perpetua_native_tan(x m at) -> Self = Ok(x.unary(UnaryOp::Tan));
        __perpetua_native_asin(x m at) -> Self = Ok(x.unary(UnaryOp::Asin));
        __perpetua_native_acos(x m at) -> Self = Ok(x.unary(UnaryOp::Acos));
        __perpetua_native_atan(x m at) -> Self = Ok(x.unary(UnaryOp::Atan));
        __perpetua_native_sinh(x m at) -> Self = Ok(x.unary(UnaryOp::Sinh));
        __perpetua_native_cosh(x m at) -> Self = Ok(x.unary(UnaryOp::Cosh));
        __perpetua_native_tanh(x m at) -> Self = Ok(x.unary(UnaryOp::Tanh));
        __perpetua_native_asinh(x m at) -> Self = Ok(x.unary(UnaryOp::Asinh));
        __perpetua_native_acosh(x m at) -> Self = Ok(x.unary(UnaryOp::Acosh));
        __perpetua_native_atanh(x m at) -> Self = Ok(x.unary(UnaryOp::Atanh));
        __perpetua_native_cbrt(x m at) -> Self = Ok(x.unary(UnaryOp::Cbrt));
        __perpetua_native_is_nan(x m at) -> bool = Ok(x.is_nan());
        __perpetua_native_is_infinite(x m at) -> bool = Ok(x.is_infinite());
        __perpetua_native_is_finite(x m at) -> bool = Ok(x.is_finite());
        __perpetua_native_is_sign_negative(x m at) -> bool = Ok(x.is_sign_negative());
        __perpetua_native_is_sign_positive(x m at) -> bool = Ok(x.is_sign_positive());
        __perpetua_native_to_bits(x m at) -> Self::Unsigned = Ok(x.to_bits());
        __perpetua_native_min(x m at, y: Self) -> Self = Ok(if x < y || y.is_nan() { x } else { y });
        __perpetua_native_max(x m at, y: Self) -> Self = Ok(if x > y || y.is_nan() { x } else { y });
        __perpetua_native_copysign(x m at, y: Self) -> Self = Ok(x.copysign(y));
        __perpetua_native_powf(x m at, y: Self) -> Self = Ok(x.binary(BinaryOp::Pow, y));
        __perpetua_native_atan2(x m at, y: Self) -> Self = Ok(x.binary(BinaryOp::Atan2, y));
        __perpetua_native_hypot(x m at, y: Self) -> Self = Ok(x.binary(BinaryOp::Hypot, y));
        __perpetua_native_log(x m at, y: Self) -> Self = Ok(x.unary(UnaryOp::Ln) / y.unary(UnaryOp::Ln));
        __perpetua_native_rem_euclid(x m at, y: Self) -> Self = rem_euclid(x, y, at);
        __perpetua_native_div_euclid(x m at, y: Self) -> Self = div_euclid(x, y, at);
        __perpetua_native_mul_add(x m at, y: Self, z: Self) -> Self = Ok(x.mul_add(y, z));
        __perpetua_native_clamp(x m at, low: Self, high: Self) -> Self = Ok(clamp(x, low, high));
        __perpetua_native_powi(x m at, n: i32) -> Self = powi(x, n, at);
        __perpetua_native_sin_cos(x m at) -> (Self, Self) = Ok((x.unary(UnaryOp::Sin), x.unary(UnaryOp::Cos)));
    }
}

methods! {
    /// Methods of f16 and bf16: computed as f32 and rounded.
    Halves for [f16 bf16] {
        __perpetua_native_fract(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_fract(m, at));
        __perpetua_native_signum(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_signum(m, at));
        __perpetua_native_floor(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_floor(m, at));
        __perpetua_native_ceil(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_ceil(m, at));
        __perpetua_native_trunc(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_trunc(m, at));
        __perpetua_native_round(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_round(m, at));
        __perpetua_native_round_ties_even(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_round_ties_even(m, at));
        __perpetua_native_sqrt(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_sqrt(m, at));
        __perpetua_native_recip(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_recip(m, at));
        __perpetua_native_to_degrees(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_to_degrees(m, at));
        __perpetua_native_to_radians(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_to_radians(m, at));
        __perpetua_native_abs(x m at) -> Self = Ok(x.magnitude());
        __perpetua_native_exp(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_exp(m, at));
        __perpetua_native_exp2(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_exp2(m, at));
        __perpetua_native_exp_m1(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_exp_m1(m, at));
        __perpetua_native_ln(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_ln(m, at));
        __perpetua_native_ln_1p(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_ln_1p(m, at));
        __perpetua_native_log2(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_log2(m, at));
        __perpetua_native_log10(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_log10(m, at));
        __perpetua_native_sin(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_sin(m, at));
        __perpetua_native_cos(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_cos(m, at));
        __perpetua_native_tan(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_tan(m, at));
        __perpetua_native_asin(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_asin(m, at));
        __perpetua_native_acos(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_acos(m, at));
        __perpetua_native_atan(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_atan(m, at));
        __perpetua_native_sinh(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_sinh(m, at));
        __perpetua_native_cosh(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_cosh(m, at));
        __perpetua_native_tanh(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_tanh(m, at));
        __perpetua_native_asinh(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_asinh(m, at));
        __perpetua_native_acosh(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_acosh(m, at));
        __perpetua_native_atanh(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_atanh(m, at));
        __perpetua_native_cbrt(x m at) -> Self = through(x, m, |x, m| x.__perpetua_native_cbrt(m, at));
        __perpetua_native_is_nan(x m at) -> bool = Ok(x.is_nan());
        __perpetua_native_is_infinite(x m at) -> bool = Ok(x.is_infinite());
        __perpetua_native_is_finite(x m at) -> bool = Ok(x.is_finite());
        __perpetua_native_is_sign_negative(x m at) -> bool = Ok(x.is_sign_negative());
        __perpetua_native_is_sign_positive(x m at) -> bool = Ok(x.is_sign_positive());
        __perpetua_native_to_bits(x m at) -> Self::Unsigned = Ok(x.to_bits());
        __perpetua_native_to_f32(x m at) -> f32 = Ok(x.wide());
        __perpetua_native_to_f64(x m at) -> f64 = Ok(x.to_f64());
        __perpetua_native_min(x m at, y: Self) -> Self = Ok(if x < y || y.is_nan() { x } else { y });
        __perpetua_native_max(x m at, y: Self) -> Self = Ok(if x > y || y.is_nan() { x } else { y });
        __perpetua_native_copysign(x m at, y: Self) -> Self = through(x, m, |x, m| x.__perpetua_native_copysign(m, at, y.wide()));
        __perpetua_native_powf(x m at, y: Self) -> Self = through(x, m, |x, m| x.__perpetua_native_powf(m, at, y.wide()));
        __perpetua_native_atan2(x m at, y: Self) -> Self = through(x, m, |x, m| x.__perpetua_native_atan2(m, at, y.wide()));
        __perpetua_native_hypot(x m at, y: Self) -> Self = through(x, m, |x, m| x.__perpetua_native_hypot(m, at, y.wide()));
        __perpetua_native_log(x m at, y: Self) -> Self = Ok(x.__perpetua_native_ln(m, at)? / y.__perpetua_native_ln(m, at)?);
        __perpetua_native_rem_euclid(x m at, y: Self) -> Self = rem_euclid(x, y, at);
        __perpetua_native_div_euclid(x m at, y: Self) -> Self = div_euclid(x, y, at);
        __perpetua_native_mul_add(x m at, y: Self, z: Self) -> Self = through(x, m, |x, _| Ok(x.mul_add(y.wide(), z.wide())));
        __perpetua_native_clamp(x m at, low: Self, high: Self) -> Self = Ok(clamp(x, low, high));
        __perpetua_native_powi(x m at, n: i32) -> Self = powi(x, n, at);
        __perpetua_native_sin_cos(x m at) -> (Self, Self) = Ok((x.__perpetua_native_sin(m, at)?, x.__perpetua_native_cos(m, at)?));
    }
}

/// Floats that the math library reaches.
trait Library: Sized {
    fn unary(self, op: UnaryOp) -> Self;
    fn binary(self, op: BinaryOp, other: Self) -> Self;
}

macro_rules! library {
    ($ty:ident $unary:ident $binary:ident) => {
        impl Library for $ty {
            #[inline(always)]
            fn unary(self, op: UnaryOp) -> $ty {
                $unary(op, self).unwrap_or($ty::NAN)
            }

            #[inline(always)]
            fn binary(self, op: BinaryOp, other: $ty) -> $ty {
                $binary(op, self, other).unwrap_or($ty::NAN)
            }
        }
    };
}
library!(f32 eval_unary eval_binary);
library!(f64 eval_unary_wide eval_binary_wide);

/// f16 and bf16.
trait Half: Copy {
    fn wide(self) -> f32;
    fn rounded(x: f32) -> Self;
}

impl Half for f16 {
    #[inline(always)]
    fn wide(self) -> f32 {
        widen(self)
    }

    #[inline(always)]
    fn rounded(x: f32) -> f16 {
        narrow(x)
    }
}

impl Half for bf16 {
    #[inline(always)]
    fn wide(self) -> f32 {
        self.to_f32()
    }

    #[inline(always)]
    fn rounded(x: f32) -> bf16 {
        bf16::from_f32(x)
    }
}

/// Computes as f32 and rounds.
#[inline(always)]
fn through<T: Half, M: Mode>(x: T, m: &M, f: impl FnOnce(f32, &M) -> Done<f32>) -> Done<T> {
    Ok(T::rounded(f(x.wide(), m)?))
}

/// The remainder, plus the divisor's magnitude where it is negative.
#[inline(always)]
fn rem_euclid<T: Number>(x: T, y: T, at: &'static Site) -> Done<T> {
    let rest = x.rest(y, at)?;
    Ok(if rest < T::ZERO {
        rest.plus(y.magnitude())
    } else {
        rest
    })
}

/// The truncated quotient, one away from it where the remainder is negative.
#[inline(always)]
fn div_euclid<T: Number>(x: T, y: T, at: &'static Site) -> Done<T> {
    let quotient = x.quotient(y, at)?.truncated();
    Ok(match (x.rest(y, at)? < T::ZERO, y > T::ZERO) {
        (false, _) => quotient,
        (true, true) => quotient.minus(T::ONE),
        (true, false) => quotient.plus(T::ONE),
    })
}

/// As Rust's, NaN kept; limits that are in the wrong order are no fault.
#[inline(always)]
fn clamp<T: Number>(x: T, low: T, high: T) -> T {
    if x < low {
        low
    } else if x > high {
        high
    } else {
        x
    }
}

/// A power by squaring; of a negative exponent the reciprocal.
#[inline(always)]
fn powi<T: Number>(x: T, n: i32, at: &'static Site) -> Done<T> {
    let (mut product, mut square) = (T::ONE, x);
    let mut left = n.unsigned_abs();
    while left != 0 {
        if left & 1 == 1 {
            product = product.times(square);
        }
        left >>= 1;
        if left != 0 {
            square = square.times(square);
        }
    }
    if n < 0 {
        T::ONE.quotient(product, at)
    } else {
        Ok(product)
    }
}

/// Methods of `bool`.
#[allow(
    missing_docs,
    reason = "each is the Rust method whose name follows the prefix"
)]
pub trait Booleans: Sized {
    fn __perpetua_native_bitand<M: Mode>(self, m: &M, at: &'static Site, y: bool) -> Done<bool>;
    fn __perpetua_native_bitor<M: Mode>(self, m: &M, at: &'static Site, y: bool) -> Done<bool>;
    fn __perpetua_native_bitxor<M: Mode>(self, m: &M, at: &'static Site, y: bool) -> Done<bool>;
}

impl Booleans for bool {
    #[inline(always)]
    fn __perpetua_native_bitand<M: Mode>(self, _: &M, _: &'static Site, y: bool) -> Done<bool> {
        Ok(self & y)
    }

    #[inline(always)]
    fn __perpetua_native_bitor<M: Mode>(self, _: &M, _: &'static Site, y: bool) -> Done<bool> {
        Ok(self | y)
    }

    #[inline(always)]
    fn __perpetua_native_bitxor<M: Mode>(self, _: &M, _: &'static Site, y: bool) -> Done<bool> {
        Ok(self ^ y)
    }
}

/// Methods of a lane's own arrays, and their elements.
#[allow(
    missing_docs,
    reason = "each is the Rust method whose name follows the prefix, or the index operator"
)]
pub trait Elements<T> {
    fn __perpetua_native_len<M: Mode>(&self, m: &M, at: &'static Site) -> Done<usize>;
    fn __perpetua_native_is_empty<M: Mode>(&self, m: &M, at: &'static Site) -> Done<bool>;
    fn __perpetua_native_swap<M: Mode>(&mut self, m: &M, at: &'static Site, a: usize, b: usize) -> Done<()>;
    fn __perpetua_native_fill<M: Mode>(&mut self, m: &M, at: &'static Site, value: T) -> Done<()>;
    fn __perpetua_native_rotate_left<M: Mode>(&mut self, m: &M, at: &'static Site, by: usize) -> Done<()>;
    fn __perpetua_native_rotate_right<M: Mode>(&mut self, m: &M, at: &'static Site, by: usize) -> Done<()>;
    fn __perpetua_native_at(&self, index: usize, at: &'static Site) -> Done<&T>;
    fn __perpetua_native_at_mut(&mut self, index: usize, at: &'static Site) -> Done<&mut T>;
}

impl<T: Copy> Elements<T> for [T] {
    #[inline(always)]
    fn __perpetua_native_len<M: Mode>(&self, _: &M, _: &'static Site) -> Done<usize> {
        Ok(self.len())
    }

    #[inline(always)]
    fn __perpetua_native_is_empty<M: Mode>(&self, _: &M, _: &'static Site) -> Done<bool> {
        Ok(self.is_empty())
    }

    #[inline(always)]
    fn __perpetua_native_swap<M: Mode>(&mut self, _: &M, at: &'static Site, a: usize, b: usize) -> Done<()> {
        let first = *self.__perpetua_native_at(a, at)?;
        let second = std::mem::replace(self.__perpetua_native_at_mut(b, at)?, first);
        *self.__perpetua_native_at_mut(a, at)? = second;
        Ok(())
    }

    #[inline(always)]
    fn __perpetua_native_fill<M: Mode>(&mut self, _: &M, _: &'static Site, value: T) -> Done<()> {
        self.fill(value);
        Ok(())
    }

    #[inline(always)]
    fn __perpetua_native_rotate_left<M: Mode>(&mut self, _: &M, at: &'static Site, by: usize) -> Done<()> {
        if by > self.len() {
            return Err(Stop::index(at, by, self.len()));
        }
        self.rotate_left(by);
        Ok(())
    }

    #[inline(always)]
    fn __perpetua_native_rotate_right<M: Mode>(&mut self, _: &M, at: &'static Site, by: usize) -> Done<()> {
        if by > self.len() {
            return Err(Stop::index(at, by, self.len()));
        }
        self.rotate_right(by);
        Ok(())
    }

    #[inline(always)]
    fn __perpetua_native_at(&self, index: usize, at: &'static Site) -> Done<&T> {
        match self.get(index) {
            Some(element) => Ok(element),
            None => Err(Stop::index(at, index, self.len())),
        }
    }

    #[inline(always)]
    fn __perpetua_native_at_mut(&mut self, index: usize, at: &'static Site) -> Done<&mut T> {
        let len = self.len();
        match self.get_mut(index) {
            Some(element) => Ok(element),
            None => Err(Stop::index(at, index, len)),
        }
    }
}

/// Methods of tuples and arrays, which Rust orders by their parts.
#[allow(
    missing_docs,
    reason = "each is the Rust method whose name follows the prefix"
)]
pub trait Ordered: Sized {
    fn __perpetua_native_min<M: Mode>(self, m: &M, at: &'static Site, other: Self) -> Done<Self>;
    fn __perpetua_native_max<M: Mode>(self, m: &M, at: &'static Site, other: Self) -> Done<Self>;
}

macro_rules! ordered {
    ($([$($bounds:tt)*] $ty:ty;)*) => { $(
        impl<$($bounds)*> Ordered for $ty {
            #[inline(always)]
            fn __perpetua_native_min<M: Mode>(self, _: &M, _: &'static Site, other: Self) -> Done<Self> {
                Ok(Ord::min(self, other))
            }

            #[inline(always)]
            fn __perpetua_native_max<M: Mode>(self, _: &M, _: &'static Site, other: Self) -> Done<Self> {
                Ok(Ord::max(self, other))
            }
        }
    )* };
}

ordered! {
    [T: Ord, const N: usize] [T; N];
    [A: Ord] (A,);
    [A: Ord, B: Ord] (A, B);
    [A: Ord, B: Ord, C: Ord] (A, B, C);
    [A: Ord, B: Ord, C: Ord, D: Ord] (A, B, C, D);
}
