//! Arithmetic as every device does it: integers wrap, shift amounts are masked, division by zero and `MIN / -1` stop the
//! lane. f16 and bf16 are computed as f32 and rounded after each operator, which is what the crate `half` does.

use std::convert::identity;

use half::{bf16, f16};
use perpetua_ir::ir::Scalar;

use super::halves::{narrow, widen};
use super::stop::{Site, Stop};

/// Integers and floats.
pub trait Number: Copy + PartialOrd {
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// The sum.
    fn plus(self, other: Self) -> Self;
    /// The difference.
    fn minus(self, other: Self) -> Self;
    /// The product.
    fn times(self, other: Self) -> Self;
    /// The number with the other sign.
    fn negated(self) -> Self;
    /// The magnitude; wraps at MIN.
    fn magnitude(self) -> Self;
    /// The quotient, truncated for integers.
    ///
    /// # Errors
    /// Of integers: by zero, or `MIN / -1`.
    fn quotient(self, other: Self, at: &'static Site) -> Result<Self, Stop>;
    /// The remainder, with the dividend's sign.
    ///
    /// # Errors
    /// As [`Number::quotient`].
    fn rest(self, other: Self, at: &'static Site) -> Result<Self, Stop>;
    /// The next whole number towards zero.
    fn truncated(self) -> Self;
}

/// Integers.
#[diagnostic::on_unimplemented(
    message = "a function of the standard library that has this name takes no `{Self}`",
    label = "what is called so with `{Self}` is another function",
    note = "if the function is this crate's own, write the attribute `device` before it"
)]
pub trait Integer: Number + Eq + Ord {
    /// The type in the IR, on this host; of an integer of two words those of the lower and the upper one.
    const SCALARS: [Option<Scalar>; 2];
    /// The value sign- or zero-extended, in two words.
    fn words(self) -> [u64; 2];
    /// Left shift; the amount is masked.
    fn left(self, amount: impl Integer) -> Self;
    /// Right shift, arithmetic for signed types; the amount is masked.
    fn right(self, amount: impl Integer) -> Self;
    /// The low 32 bits.
    fn low(self) -> u32;
}

macro_rules! integers {
    ($($ty:ident $scalars:expr;)*) => { $(
        impl Number for $ty {
            const ZERO: $ty = 0;
            const ONE: $ty = 1;
            #[inline(always)]
            fn plus(self, other: $ty) -> $ty {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: $ty) -> $ty {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn times(self, other: $ty) -> $ty {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn negated(self) -> $ty {
                self.wrapping_neg()
            }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn magnitude(self) -> $ty {
                if self < 0 { self.wrapping_neg() } else { self }
            }
            #[inline(always)]
            fn quotient(self, other: $ty, at: &'static Site) -> Result<$ty, Stop> {
                match self.checked_div(other) {
                    Some(quotient) => Ok(quotient),
                    None => Err(divided(self, other, at)),
                }
            }
            #[inline(always)]
            fn rest(self, other: $ty, at: &'static Site) -> Result<$ty, Stop> {
                match self.checked_rem(other) {
                    Some(rest) => Ok(rest),
                    None => Err(divided(self, other, at)),
                }
            }
            #[inline(always)]
            fn truncated(self) -> $ty {
                self
            }
        }

        impl Integer for $ty {
            const SCALARS: [Option<Scalar>; 2] = $scalars;
            #[inline(always)]
            fn words(self) -> [u64; 2] {
                let wide = self as i128;
                [wide as u64, (wide >> 64) as u64]
            }
            #[inline(always)]
            fn left(self, amount: impl Integer) -> $ty {
                self.wrapping_shl(amount.low())
            }
            #[inline(always)]
            fn right(self, amount: impl Integer) -> $ty {
                self.wrapping_shr(amount.low())
            }
            #[inline(always)]
            fn low(self) -> u32 {
                self as u32
            }
        }
    )* };
}

integers! {
    i8 [Some(Scalar::I8), None];
    i16 [Some(Scalar::I16), None];
    i32 [Some(Scalar::I32), None];
    i64 [Some(Scalar::I64), None];
    i128 [Some(Scalar::U64), Some(Scalar::I64)];
    isize [Some(if size_of::<isize>() == 8 { Scalar::I64 } else { Scalar::I32 }), None];
    u8 [Some(Scalar::U8), None];
    u16 [Some(Scalar::U16), None];
    u32 [Some(Scalar::U32), None];
    u64 [Some(Scalar::U64), None];
    u128 [Some(Scalar::U64), Some(Scalar::U64)];
    usize [Some(if size_of::<usize>() == 8 { Scalar::U64 } else { Scalar::U32 }), None];
}

/// The fault of a division that has no result.
#[cold]
fn divided<T: Integer>(dividend: T, divisor: T, at: &'static Site) -> Stop {
    if divisor == T::ZERO {
        Stop::zero(at, T::SCALARS, dividend.words())
    } else {
        Stop::overflow(at, T::SCALARS, dividend.words())
    }
}

macro_rules! floats {
    ($($ty:ident, $up:path, $down:path, $zero:expr, $one:expr, $x:ident => $magnitude:expr, $truncated:expr;)*) => { $(
        impl Number for $ty {
            const ZERO: $ty = $zero;
            const ONE: $ty = $one;
            #[inline(always)]
            fn plus(self, other: $ty) -> $ty {
                $down($up(self) + $up(other))
            }
            #[inline(always)]
            fn minus(self, other: $ty) -> $ty {
                $down($up(self) - $up(other))
            }
            #[inline(always)]
            fn times(self, other: $ty) -> $ty {
                $down($up(self) * $up(other))
            }
            #[inline(always)]
            fn negated(self) -> $ty {
                -self
            }
            #[inline(always)]
            fn magnitude(self) -> $ty {
                let $x = self;
                $magnitude
            }
            #[inline(always)]
            fn quotient(self, other: $ty, _: &'static Site) -> Result<$ty, Stop> {
                Ok($down($up(self) / $up(other)))
            }
            #[inline(always)]
            fn rest(self, other: $ty, _: &'static Site) -> Result<$ty, Stop> {
                Ok($down($up(self) % $up(other)))
            }
            #[inline(always)]
            fn truncated(self) -> $ty {
                let $x = self;
                $truncated
            }
        }
    )* };
}

floats! {
    f32, identity, identity, 0.0, 1.0, x => x.abs(), x.trunc();
    f64, identity, identity, 0.0, 1.0, x => x.abs(), x.trunc();
    f16, widen, narrow, f16::ZERO, f16::ONE, x => f16::from_bits(x.to_bits() & 0x7fff), narrow(widen(x).trunc());
    bf16, bf16::to_f32, bf16::from_f32, bf16::ZERO, bf16::ONE, x => bf16::from_bits(x.to_bits() & 0x7fff), bf16::from_f32(x.to_f32().trunc());
}

/// The step of a range that ends at `end`.
///
/// # Errors
/// It is zero.
#[inline(always)]
pub fn step(step: usize, at: &'static Site) -> Result<usize, Stop> {
    if step == 0 {
        return Err(Stop::zero_step(at));
    }
    Ok(step)
}
