//! Methods of scalars that devices have and Rust's library lacks: the prelude brings them.

use perpetua_ir::math::{eval_unary, eval_unary_wide};
use perpetua_ir::ops::UnaryOp;

/// A float's further methods.
pub trait FurtherFloat: Sized {
    /// `1 / sqrt(x)`, rounded twice.
    #[must_use]
    fn rsqrt(self) -> Self;
    /// The error function, `2/√π` times the integral of `exp(-t²)` from 0 to `x`.
    #[must_use]
    fn erf(self) -> Self;
    /// `1 - erf(x)`, without cancellation.
    #[must_use]
    fn erfc(self) -> Self;
    /// The logarithm of the magnitude of the gamma function.
    #[must_use]
    fn lgamma(self) -> Self;
}

macro_rules! floats {
    ($($ty:ident $library:ident)*) => { $(
        impl FurtherFloat for $ty {
            fn rsqrt(self) -> $ty {
                1.0 / self.sqrt()
            }
            fn erf(self) -> $ty {
                $library(UnaryOp::Erf, self).unwrap_or($ty::NAN)
            }
            fn erfc(self) -> $ty {
                $library(UnaryOp::Erfc, self).unwrap_or($ty::NAN)
            }
            fn lgamma(self) -> $ty {
                $library(UnaryOp::Lgamma, self).unwrap_or($ty::NAN)
            }
        }
    )* };
}

floats!(f32 eval_unary f64 eval_unary_wide);

/// An integer's further methods.
pub trait FurtherInteger: Sized {
    /// The upper half of the product, which is twice as wide.
    #[must_use]
    fn mul_high(self, other: Self) -> Self;
}

/// An unsigned integer's further methods.
pub trait FurtherUnsigned: Sized {
    /// The product, which is twice as wide: its lower half and its upper half.
    #[must_use]
    fn widening_mul(self, other: Self) -> (Self, Self);
}

macro_rules! unsigned {
    ($($ty:ty)*) => { $(
        impl FurtherUnsigned for $ty {
            fn widening_mul(self, other: $ty) -> ($ty, $ty) {
                self.carrying_mul(other, 0)
            }
        }
    )* };
}

unsigned!(u8 u16 u32 u64 usize);

macro_rules! integers {
    ($($ty:ty, $wide:ty;)*) => { $(
        impl FurtherInteger for $ty {
            fn mul_high(self, other: $ty) -> $ty {
                ((<$wide>::from(self) * <$wide>::from(other)) >> <$ty>::BITS) as $ty
            }
        }
    )* };
}

integers! {
    i8, i16; i16, i32; i32, i64; i64, i128;
    u8, u16; u16, u32; u32, u64; u64, u128;
}

macro_rules! sizes {
    ($($ty:ty, $wide:ty;)*) => { $(
        impl FurtherInteger for $ty {
            fn mul_high(self, other: $ty) -> $ty {
                ((self as $wide * other as $wide) >> <$ty>::BITS) as $ty
            }
        }
    )* };
}

sizes! {
    isize, i128;
    usize, u128;
}
