//! The arithmetic that the math library is written in, as traits: IEEE f32 and wrapping 32-bit integers, or f64 and 64-bit
//! ones. One implementation computes, another appends IR; so every target runs the very same steps.
//!
//! **What a target may change.** On some, `fma` rounds twice, and a product that is added to something may be fused with
//! that sum; drivers also take `(a + b) - a` for `b`. So where a second part matters, it is made of products that are exact,
//! fused or not, and of differences to numbers cut off by their bits ([`Real::halves`]), which no compiler sees through. A result
//! may then differ in its last bits from target to target, but not lose its second part. `tests` runs every function with
//! such arithmetic.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// An f32 or f64, or the promise of one.
pub(super) trait Real:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// Integers of its width.
    type Int: Word<Real = Self>;
    /// Conditions beside it.
    type Cond: Condition<Real = Self>;

    /// A constant.
    fn lit(self, v: f32) -> Self;
    /// A constant with all digits that the type has.
    fn wide(self, v: f64) -> Self;
    /// An integer constant.
    fn int(self, v: i32) -> Self::Int;
    /// An integer constant of the type's width.
    fn word(self, v: i64) -> Self::Int;
    /// `self * a + b`, rounded once.
    fn fma(self, a: Self, b: Self) -> Self;
    fn abs(self) -> Self;
    fn sqrt(self) -> Self;
    /// Nearest integer, ties to even.
    fn nearest(self) -> Self;
    fn trunc(self) -> Self;
    /// This magnitude with `sign`'s sign.
    fn copysign(self, sign: Self) -> Self;
    /// The bits, as an integer.
    fn bits(self) -> Self::Int;
    /// Rust's `as`, to the integer.
    fn to_int(self) -> Self::Int;
    fn lt(self, other: Self) -> Self::Cond;
    fn eq(self, other: Self) -> Self::Cond;

    /// `self > other`.
    #[inline(always)]
    fn gt(self, other: Self) -> Self::Cond {
        other.lt(self)
    }
    /// This number as a sum of two with 12 significant bits each, so that products of halves are exact. By the bits, which no
    /// compiler takes apart. Finite f32s only.
    #[inline(always)]
    fn halves(self) -> (Self, Self) {
        let high = self.bits().and(self.int(-4096)).to_bits();
        (high, self - high)
    }
    /// Whether NaN, by the bits: compilers that promise nothing about NaN take `x == x` for true.
    fn is_nan(self) -> Self::Cond;
    /// `self` limited to `[low, high]`; NaN, or any number of these, where it is NaN.
    #[inline(always)]
    fn limit(self, low: f32, high: f32) -> Self {
        let (low, high) = (self.lit(low), self.lit(high));
        let x = self.lt(low).select(low, self);
        x.gt(high).select(high, x)
    }
    /// The nearest integer, ties to even, as both; of magnitudes below 2^22, or 2^51 of f64s, and of NaN anything.
    #[inline(always)]
    fn nearest_int(self) -> (Self, Self::Int) {
        let k = self.nearest();
        (k, k.to_int())
    }
}

/// An integer; arithmetic wraps.
pub(super) trait Word: Copy {
    /// The float beside it.
    type Real: Real<Int = Self>;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// Upper half of the product of both as unsigned numbers.
    fn mul_high_unsigned(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// Left shift by an amount below the width.
    fn shl(self, amount: Self) -> Self;
    /// Arithmetic right shift by an amount below the width.
    fn shr(self, amount: Self) -> Self;
    /// Logical right shift by an amount below the width.
    fn shr_unsigned(self, amount: Self) -> Self;
    fn lt(self, other: Self) -> <Self::Real as Real>::Cond;
    fn lt_unsigned(self, other: Self) -> <Self::Real as Real>::Cond;
    fn eq(self, other: Self) -> <Self::Real as Real>::Cond;
    /// Nearest float of the signed value.
    fn to_real(self) -> Self::Real;
    /// Nearest float of the unsigned value.
    fn to_real_unsigned(self) -> Self::Real;
    /// The float with these bits.
    fn to_bits(self) -> Self::Real;
}

/// A condition.
pub(super) trait Condition: Copy {
    /// The float beside it.
    type Real: Real<Cond = Self>;
    fn not(self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    /// `a` where this holds, else `b`.
    fn select(self, a: Self::Real, b: Self::Real) -> Self::Real;
    /// `a` where this holds, else `b`.
    fn select_int(
        self,
        a: <Self::Real as Real>::Int,
        b: <Self::Real as Real>::Int,
    ) -> <Self::Real as Real>::Int;
    /// Runs one of two pieces of code that give a float and an integer.
    fn branch(
        self,
        then: impl FnOnce() -> (Self::Real, <Self::Real as Real>::Int),
        otherwise: impl FnOnce() -> (Self::Real, <Self::Real as Real>::Int),
    ) -> (Self::Real, <Self::Real as Real>::Int);
}

/// `c[0] + x c[1] + x² c[2] + …`, by Horner's rule with fused steps.
#[inline(always)]
pub(super) fn polynomial<R: Real>(x: R, c: &[f32]) -> R {
    let mut rest = c.iter().rev();
    let last = x.lit(rest.next().copied().unwrap_or(0.0));
    rest.fold(last, |sum, c| sum.fma(x, x.lit(*c)))
}

/// `x * 2^k` for `k` in -252 ..= 254, rounded once where `x` is normal.
#[inline(always)]
pub(super) fn scale<R: Real>(x: R, k: R::Int) -> R {
    let half = k.shr(x.int(1));
    let rest = k.sub(half);
    let power = |e: R::Int| e.add(x.int(127)).shl(x.int(23)).to_bits();
    x * power(half) * power(rest)
}
