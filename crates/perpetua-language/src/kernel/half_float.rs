//! Methods of floats that `f16` and `bf16` lack in plain Rust: the prelude brings them. They compute in `f32` and round, as
//! devices do.

use half::{bf16, f16};

use super::scalar::FurtherFloat;

macro_rules! halves {
    ($types:tt [$($name:ident)*] [$($with:ident)*]) => {
        /// The methods of `f32`, each rounded.
        #[allow(missing_docs, reason = "each is `f32`'s method of that name")]
        pub trait HalfFloat: Sized {
            $(#[must_use] fn $name(self) -> Self;)*
            $(#[must_use] fn $with(self, other: Self) -> Self;)*
            #[must_use]
            fn mul_add(self, a: Self, b: Self) -> Self;
            #[must_use]
            fn powi(self, n: i32) -> Self;
            #[must_use]
            fn sin_cos(self) -> (Self, Self);
        }
        halves!(@each $types [$($name)*] [$($with)*]);
    };
    (@each [$($ty:ident)*] $names:tt $with:tt) => { $(halves!(@one $ty $names $with);)* };
    (@one $ty:ident [$($name:ident)*] [$($with:ident)*]) => {
        impl HalfFloat for $ty {
            $(fn $name(self) -> $ty {
                $ty::from_f32(self.to_f32().$name())
            })*
            $(fn $with(self, other: $ty) -> $ty {
                $ty::from_f32(self.to_f32().$with(other.to_f32()))
            })*
            fn mul_add(self, a: $ty, b: $ty) -> $ty {
                $ty::from_f32(self.to_f32().mul_add(a.to_f32(), b.to_f32()))
            }
            fn powi(self, n: i32) -> $ty {
                $ty::from_f32(self.to_f32().powi(n))
            }
            fn sin_cos(self) -> ($ty, $ty) {
                let (sin, cos) = self.to_f32().sin_cos();
                ($ty::from_f32(sin), $ty::from_f32(cos))
            }
        }

        impl FurtherFloat for $ty {
            fn rsqrt(self) -> $ty {
                $ty::from_f32(FurtherFloat::rsqrt(self.to_f32()))
            }
            fn erf(self) -> $ty {
                $ty::from_f32(FurtherFloat::erf(self.to_f32()))
            }
            fn erfc(self) -> $ty {
                $ty::from_f32(FurtherFloat::erfc(self.to_f32()))
            }
            fn lgamma(self) -> $ty {
                $ty::from_f32(FurtherFloat::lgamma(self.to_f32()))
            }
        }
    };
}

halves! {
    [f16 bf16]
    [
        abs floor ceil trunc round round_ties_even fract sqrt recip to_degrees to_radians
        exp exp2 exp_m1 ln ln_1p log2 log10 cbrt
        sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
    ]
    [powf atan2 hypot log rem_euclid]
}
