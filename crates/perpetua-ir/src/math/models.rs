//! Arithmetic as targets may do it: `fma` with two roundings, products fused with the sums that they go into. The
//! library is run on it by the tests.

use std::marker::PhantomData;
use std::ops::{Add, Div, Mul, Neg, Sub};

use super::real::{Condition, Real, Word};

/// A liberty that a target takes.
pub(super) trait Liberty: Copy {
    const NAME: &'static str;
    /// `fma` rounds once.
    const FMA: bool;
    /// Sums take the unrounded product of one operand, if one is a product: the left one's first, or the right one's.
    const FUSES: Option<Side>;
    /// `(a + b) - a` is `b`.
    const CANCELS: bool;
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Side {
    Left,
    Right,
}

macro_rules! liberties {
    ($($name:ident $text:literal $fma:literal $fuses:ident $(($side:expr))? $cancels:literal;)*) => {$(
        #[derive(Clone, Copy)]
        pub(super) struct $name;
        impl Liberty for $name {
            const NAME: &'static str = $text;
            const FMA: bool = $fma;
            const FUSES: Option<Side> = $fuses $(($side))?;
            const CANCELS: bool = $cancels;
        }
    )*};
}
liberties! {
    TwoRoundings "fma in two roundings" false None false;
    FusedLeft "left products fused" true Some(Side::Left) false;
    FusedRight "right products fused" true Some(Side::Right) false;
    Mixed "fma in two roundings, products fused" false Some(Side::Left) false;
    Cancels "sums cancelled" false None true;
}

/// An f32, and the factors whose product it is or the terms whose sum.
#[derive(Clone, Copy)]
pub(super) struct Num<L> {
    value: f32,
    factors: Option<(f32, f32)>,
    terms: Option<(f32, f32)>,
    liberty: PhantomData<L>,
}

impl<L: Liberty> Num<L> {
    pub(super) fn new(value: f32) -> Num<L> {
        Num {
            value,
            factors: None,
            terms: None,
            liberty: PhantomData,
        }
    }

    pub(super) fn value(self) -> f32 {
        self.value
    }

    fn product(a: f32, b: f32) -> Num<L> {
        Num {
            factors: Some((a, b)),
            ..Num::new(a * b)
        }
    }
}

impl<L: Liberty> Add for Num<L> {
    type Output = Num<L>;
    fn add(self, other: Num<L>) -> Num<L> {
        let left = self.factors.map(|(a, b)| a.mul_add(b, other.value));
        let right = other.factors.map(|(a, b)| a.mul_add(b, self.value));
        let fused = match L::FUSES {
            None => None,
            Some(Side::Left) => left.or(right),
            Some(Side::Right) => right.or(left),
        };
        let (a, b) = (self.value, other.value);
        let left_term = |(c, d): (f32, f32)| (c == -b).then_some(d).or((d == -b).then_some(c));
        let right_term = |(c, d): (f32, f32)| (c == -a).then_some(d).or((d == -a).then_some(c));
        let left = self.terms.and_then(left_term);
        let cancelled = left.or(other.terms.and_then(right_term)).filter(|_| L::CANCELS);
        Num {
            terms: Some((a, b)),
            ..Num::new(cancelled.or(fused).unwrap_or(a + b))
        }
    }
}

impl<L: Liberty> Sub for Num<L> {
    type Output = Num<L>;
    fn sub(self, other: Num<L>) -> Num<L> {
        self + -other
    }
}

impl<L: Liberty> Mul for Num<L> {
    type Output = Num<L>;
    fn mul(self, other: Num<L>) -> Num<L> {
        Num::product(self.value, other.value)
    }
}

impl<L: Liberty> Div for Num<L> {
    type Output = Num<L>;
    fn div(self, other: Num<L>) -> Num<L> {
        Num::new(self.value / other.value)
    }
}

impl<L: Liberty> Neg for Num<L> {
    type Output = Num<L>;
    fn neg(self) -> Num<L> {
        Num {
            value: -self.value,
            factors: self.factors.map(|(a, b)| (-a, b)),
            terms: self.terms.map(|(a, b)| (-a, -b)),
            liberty: PhantomData,
        }
    }
}

impl<L: Liberty> Real for Num<L> {
    type Int = Integer<L>;
    type Cond = Truth<L>;

    fn lit(self, v: f32) -> Self {
        Num::new(v)
    }
    fn wide(self, v: f64) -> Self {
        Num::new(v as f32)
    }
    fn int(self, v: i32) -> Integer<L> {
        Integer(v, PhantomData)
    }
    fn word(self, v: i64) -> Integer<L> {
        Integer(v as i32, PhantomData)
    }
    fn fma(self, a: Self, b: Self) -> Self {
        if L::FMA {
            Num::new(self.value.mul_add(a.value, b.value))
        } else {
            Num::new(self.value * a.value + b.value)
        }
    }
    fn abs(self) -> Self {
        Num::new(self.value.abs())
    }
    fn sqrt(self) -> Self {
        Num::new(self.value.sqrt())
    }
    fn nearest(self) -> Self {
        Num::new(self.value.round_ties_even())
    }
    fn trunc(self) -> Self {
        Num::new(self.value.trunc())
    }
    fn copysign(self, sign: Self) -> Self {
        Num::new(self.value.copysign(sign.value))
    }
    fn bits(self) -> Integer<L> {
        self.int(self.value.to_bits() as i32)
    }
    fn to_int(self) -> Integer<L> {
        self.int(self.value as i32)
    }
    fn lt(self, other: Self) -> Truth<L> {
        Truth(self.value < other.value, PhantomData)
    }
    fn eq(self, other: Self) -> Truth<L> {
        Truth(self.value == other.value, PhantomData)
    }
    fn is_nan(self) -> Truth<L> {
        Truth(self.value.is_nan(), PhantomData)
    }
}

/// An i32 beside [`Num`].
#[derive(Clone, Copy)]
pub(super) struct Integer<L>(i32, PhantomData<L>);

macro_rules! forwarded {
    ($($name:ident)*) => {
        $(fn $name(self, other: Self) -> Self {
            Integer(Word::$name(self.0, other.0), PhantomData)
        })*
    };
}
macro_rules! compared {
    ($($name:ident)*) => {
        $(fn $name(self, other: Self) -> Truth<L> {
            Truth(Word::$name(self.0, other.0).0, PhantomData)
        })*
    };
}

impl<L: Liberty> Word for Integer<L> {
    type Real = Num<L>;
    forwarded! { add sub mul mul_high_unsigned and or xor shl shr shr_unsigned }
    compared! { lt lt_unsigned eq }
    fn to_real(self) -> Num<L> {
        Num::new(self.0.to_real())
    }
    fn to_real_unsigned(self) -> Num<L> {
        Num::new(self.0.to_real_unsigned())
    }
    fn to_bits(self) -> Num<L> {
        Num::new(self.0.to_bits())
    }
}

/// A condition beside [`Num`].
#[derive(Clone, Copy)]
pub(super) struct Truth<L>(bool, PhantomData<L>);

impl<L: Liberty> Condition for Truth<L> {
    type Real = Num<L>;
    fn not(self) -> Self {
        Truth(!self.0, PhantomData)
    }
    fn and(self, other: Self) -> Self {
        Truth(self.0 & other.0, PhantomData)
    }
    fn or(self, other: Self) -> Self {
        Truth(self.0 | other.0, PhantomData)
    }
    // A choice between products may be fused too.
    fn select(self, a: Num<L>, b: Num<L>) -> Num<L> {
        if self.0 { a } else { b }
    }
    fn select_int(self, a: Integer<L>, b: Integer<L>) -> Integer<L> {
        if self.0 { a } else { b }
    }
    fn branch(
        self,
        then: impl FnOnce() -> (Num<L>, Integer<L>),
        otherwise: impl FnOnce() -> (Num<L>, Integer<L>),
    ) -> (Num<L>, Integer<L>) {
        if self.0 { then() } else { otherwise() }
    }
}
