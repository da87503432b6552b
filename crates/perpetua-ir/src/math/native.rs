//! The math library's arithmetic on Rust's own numbers.

use super::real::{Condition, Real, Word};

/// What holds of an f32.
#[derive(Clone, Copy)]
pub(super) struct Holds(pub(super) bool);
/// What holds of an f64.
#[derive(Clone, Copy)]
pub(super) struct HoldsWide(pub(super) bool);

macro_rules! native {
    ($float:ident $int:ident $unsigned:ident $double:ident $cond:ident) => {
        impl Real for $float {
            type Int = $int;
            type Cond = $cond;

            #[inline(always)]
            fn lit(self, v: f32) -> $float {
                $float::from(v)
            }
            #[inline(always)]
            fn wide(self, v: f64) -> $float {
                v as $float
            }
            #[inline(always)]
            fn int(self, v: i32) -> $int {
                $int::from(v)
            }
            #[inline(always)]
            fn word(self, v: i64) -> $int {
                v as $int
            }
            #[inline(always)]
            fn fma(self, a: $float, b: $float) -> $float {
                self.mul_add(a, b)
            }
            #[inline(always)]
            fn abs(self) -> $float {
                $float::abs(self)
            }
            #[inline(always)]
            fn sqrt(self) -> $float {
                $float::sqrt(self)
            }
            #[inline(always)]
            fn nearest(self) -> $float {
                self.round_ties_even()
            }
            #[inline(always)]
            fn trunc(self) -> $float {
                $float::trunc(self)
            }
            #[inline(always)]
            fn copysign(self, sign: $float) -> $float {
                $float::copysign(self, sign)
            }
            #[inline(always)]
            fn bits(self) -> $int {
                $float::to_bits(self) as $int
            }
            #[inline(always)]
            fn to_int(self) -> $int {
                self as $int
            }
            #[inline(always)]
            fn lt(self, other: $float) -> $cond {
                $cond(self < other)
            }
            #[inline(always)]
            fn eq(self, other: $float) -> $cond {
                $cond(self == other)
            }
            #[inline(always)]
            fn is_nan(self) -> $cond {
                $cond($float::is_nan(self))
            }
        }

        impl Word for $int {
            type Real = $float;
            #[inline(always)]
            fn add(self, other: $int) -> $int {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn sub(self, other: $int) -> $int {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn mul(self, other: $int) -> $int {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn mul_high_unsigned(self, other: $int) -> $int {
                (((self as $unsigned as $double) * (other as $unsigned as $double)) >> <$int>::BITS) as $int
            }
            #[inline(always)]
            fn and(self, other: $int) -> $int {
                self & other
            }
            #[inline(always)]
            fn or(self, other: $int) -> $int {
                self | other
            }
            #[inline(always)]
            fn xor(self, other: $int) -> $int {
                self ^ other
            }
            #[inline(always)]
            fn shl(self, amount: $int) -> $int {
                self.wrapping_shl(amount as u32)
            }
            #[inline(always)]
            fn shr(self, amount: $int) -> $int {
                self.wrapping_shr(amount as u32)
            }
            #[inline(always)]
            fn shr_unsigned(self, amount: $int) -> $int {
                (self as $unsigned).wrapping_shr(amount as u32) as $int
            }
            #[inline(always)]
            fn lt(self, other: $int) -> $cond {
                $cond(self < other)
            }
            #[inline(always)]
            fn lt_unsigned(self, other: $int) -> $cond {
                $cond((self as $unsigned) < other as $unsigned)
            }
            #[inline(always)]
            fn eq(self, other: $int) -> $cond {
                $cond(self == other)
            }
            #[inline(always)]
            fn to_real(self) -> $float {
                self as $float
            }
            #[inline(always)]
            fn to_real_unsigned(self) -> $float {
                self as $unsigned as $float
            }
            #[inline(always)]
            fn to_bits(self) -> $float {
                $float::from_bits(self as $unsigned)
            }
        }

        impl Condition for $cond {
            type Real = $float;
            #[inline(always)]
            fn not(self) -> $cond {
                $cond(!self.0)
            }
            #[inline(always)]
            fn and(self, other: $cond) -> $cond {
                $cond(self.0 & other.0)
            }
            #[inline(always)]
            fn or(self, other: $cond) -> $cond {
                $cond(self.0 | other.0)
            }
            #[inline(always)]
            fn select(self, a: $float, b: $float) -> $float {
                if self.0 { a } else { b }
            }
            #[inline(always)]
            fn select_int(self, a: $int, b: $int) -> $int {
                if self.0 { a } else { b }
            }
            #[inline(always)]
            fn branch(
                self,
                then: impl FnOnce() -> ($float, $int),
                otherwise: impl FnOnce() -> ($float, $int),
            ) -> ($float, $int) {
                if self.0 { then() } else { otherwise() }
            }
        }
    };
}

native!(f32 i32 u32 u64 Holds);
native!(f64 i64 u64 u128 HoldsWide);
