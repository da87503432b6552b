//! Methods of scalars that devices have and Rust's library lacks: the prelude brings them.

/// A float's further methods.
pub trait FurtherFloat: Sized {
    /// `1 / sqrt(x)`, rounded twice.
    #[must_use]
    fn rsqrt(self) -> Self;
}

macro_rules! floats {
    ($($ty:ty)*) => { $(
        impl FurtherFloat for $ty {
            fn rsqrt(self) -> $ty {
                1.0 / self.sqrt()
            }
        }
    )* };
}

floats!(f32 f64);

/// An integer's further methods.
pub trait FurtherInteger: Sized {
    /// The upper half of the product, which is twice as wide.
    #[must_use]
    fn mul_high(self, other: Self) -> Self;
}

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
