//! The arithmetic that the host combines elements with, in the bits of kernels. Must not know tensors.

use std::hint::select_unpredictable;

/// Elements of a type that the host combines.
pub(crate) trait Number: bytemuck::Pod + Send + Sync {
    fn from_bits_of(bits: u64) -> Self;
    fn sum(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
    /// The greater one; this one of equal ones; NaN if one is.
    fn high(self, other: Self) -> Self;
    /// The smaller one, likewise.
    fn low(self, other: Self) -> Self;
    /// As `high`, of what is no NaN: one instruction of vectors.
    fn above(self, other: Self) -> Self;
    /// As `low`, likewise.
    fn below(self, other: Self) -> Self;
    fn is_no_number(self) -> bool;
}

macro_rules! integers {
    ($($ty:ty)*) => { $(
        impl Number for $ty {
            #[inline(always)]
            fn from_bits_of(bits: u64) -> $ty {
                bits as $ty
            }
            #[inline(always)]
            fn sum(self, other: $ty) -> $ty {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn product(self, other: $ty) -> $ty {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn high(self, other: $ty) -> $ty {
                self.max(other)
            }
            #[inline(always)]
            fn low(self, other: $ty) -> $ty {
                self.min(other)
            }
            #[inline(always)]
            fn above(self, other: $ty) -> $ty {
                self.max(other)
            }
            #[inline(always)]
            fn below(self, other: $ty) -> $ty {
                self.min(other)
            }
            #[inline(always)]
            fn is_no_number(self) -> bool {
                false
            }
        }
    )* };
}
integers!(i32 u32 i64 u64);

macro_rules! floats {
    ($($ty:ident $bits:ident)*) => { $(
        impl Number for $ty {
            #[inline(always)]
            fn from_bits_of(bits: u64) -> $ty {
                $ty::from_bits(bits as $bits)
            }
            #[inline(always)]
            fn sum(self, other: $ty) -> $ty {
                self + other
            }
            #[inline(always)]
            fn product(self, other: $ty) -> $ty {
                self * other
            }
            #[inline(always)]
            fn high(self, other: $ty) -> $ty {
                select_unpredictable((self >= other) | self.is_nan(), self, other)
            }
            #[inline(always)]
            fn low(self, other: $ty) -> $ty {
                select_unpredictable((self <= other) | self.is_nan(), self, other)
            }
            #[inline(always)]
            fn above(self, other: $ty) -> $ty {
                if other > self { other } else { self }
            }
            #[inline(always)]
            fn below(self, other: $ty) -> $ty {
                if other < self { other } else { self }
            }
            #[inline(always)]
            fn is_no_number(self) -> bool {
                self.is_nan()
            }
        }
    )* };
}
floats!(f32 u32 f64 u64);
