//! The math library's arithmetic on Rust's own numbers.

use super::real::{Condition, Real, Word};

impl Real for f32 {
    type Int = i32;
    type Cond = bool;

    #[inline(always)]
    fn lit(self, v: f32) -> f32 {
        v
    }
    #[inline(always)]
    fn int(self, v: i32) -> i32 {
        v
    }
    #[inline(always)]
    fn fma(self, a: f32, b: f32) -> f32 {
        self.mul_add(a, b)
    }
    #[inline(always)]
    fn abs(self) -> f32 {
        f32::abs(self)
    }
    #[inline(always)]
    fn sqrt(self) -> f32 {
        f32::sqrt(self)
    }
    #[inline(always)]
    fn nearest(self) -> f32 {
        self.round_ties_even()
    }
    #[inline(always)]
    fn trunc(self) -> f32 {
        f32::trunc(self)
    }
    #[inline(always)]
    fn copysign(self, sign: f32) -> f32 {
        f32::copysign(self, sign)
    }
    #[inline(always)]
    fn bits(self) -> i32 {
        f32::to_bits(self) as i32
    }
    #[inline(always)]
    fn to_int(self) -> i32 {
        self as i32
    }
    #[inline(always)]
    fn lt(self, other: f32) -> bool {
        self < other
    }
    #[inline(always)]
    fn eq(self, other: f32) -> bool {
        self == other
    }
}

impl Word for i32 {
    type Real = f32;
    #[inline(always)]
    fn add(self, other: i32) -> i32 {
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn sub(self, other: i32) -> i32 {
        self.wrapping_sub(other)
    }
    #[inline(always)]
    fn mul(self, other: i32) -> i32 {
        self.wrapping_mul(other)
    }
    #[inline(always)]
    fn mul_high_unsigned(self, other: i32) -> i32 {
        ((u64::from(self as u32) * u64::from(other as u32)) >> 32) as i32
    }
    #[inline(always)]
    fn and(self, other: i32) -> i32 {
        self & other
    }
    #[inline(always)]
    fn or(self, other: i32) -> i32 {
        self | other
    }
    #[inline(always)]
    fn xor(self, other: i32) -> i32 {
        self ^ other
    }
    #[inline(always)]
    fn shl(self, amount: i32) -> i32 {
        self.wrapping_shl(amount as u32)
    }
    #[inline(always)]
    fn shr(self, amount: i32) -> i32 {
        self.wrapping_shr(amount as u32)
    }
    #[inline(always)]
    fn shr_unsigned(self, amount: i32) -> i32 {
        (self as u32).wrapping_shr(amount as u32) as i32
    }
    #[inline(always)]
    fn lt(self, other: i32) -> bool {
        self < other
    }
    #[inline(always)]
    fn lt_unsigned(self, other: i32) -> bool {
        (self as u32) < other as u32
    }
    #[inline(always)]
    fn eq(self, other: i32) -> bool {
        self == other
    }
    #[inline(always)]
    fn to_real(self) -> f32 {
        self as f32
    }
    #[inline(always)]
    fn to_real_unsigned(self) -> f32 {
        self as u32 as f32
    }
    #[inline(always)]
    fn to_bits(self) -> f32 {
        f32::from_bits(self as u32)
    }
}

impl Condition for bool {
    type Real = f32;
    #[inline(always)]
    fn not(self) -> bool {
        !self
    }
    #[inline(always)]
    fn and(self, other: bool) -> bool {
        self & other
    }
    #[inline(always)]
    fn or(self, other: bool) -> bool {
        self | other
    }
    #[inline(always)]
    fn select(self, a: f32, b: f32) -> f32 {
        if self { a } else { b }
    }
    #[inline(always)]
    fn select_int(self, a: i32, b: i32) -> i32 {
        if self { a } else { b }
    }
    #[inline(always)]
    fn branch(self, then: impl FnOnce() -> (f32, i32), otherwise: impl FnOnce() -> (f32, i32)) -> (f32, i32) {
        if self { then() } else { otherwise() }
    }
}
