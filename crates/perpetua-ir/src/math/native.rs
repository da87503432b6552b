//! The math library's arithmetic on Rust's own numbers.

use super::real::{Condition, Real, Word};

impl Real for f32 {
    type Int = i32;
    type Cond = bool;

    fn lit(self, v: f32) -> f32 {
        v
    }
    fn int(self, v: i32) -> i32 {
        v
    }
    fn fma(self, a: f32, b: f32) -> f32 {
        self.mul_add(a, b)
    }
    fn abs(self) -> f32 {
        f32::abs(self)
    }
    fn sqrt(self) -> f32 {
        f32::sqrt(self)
    }
    fn nearest(self) -> f32 {
        self.round_ties_even()
    }
    fn trunc(self) -> f32 {
        f32::trunc(self)
    }
    fn copysign(self, sign: f32) -> f32 {
        f32::copysign(self, sign)
    }
    fn bits(self) -> i32 {
        f32::to_bits(self) as i32
    }
    fn to_int(self) -> i32 {
        self as i32
    }
    fn lt(self, other: f32) -> bool {
        self < other
    }
    fn eq(self, other: f32) -> bool {
        self == other
    }
}

impl Word for i32 {
    type Real = f32;
    fn add(self, other: i32) -> i32 {
        self.wrapping_add(other)
    }
    fn sub(self, other: i32) -> i32 {
        self.wrapping_sub(other)
    }
    fn mul(self, other: i32) -> i32 {
        self.wrapping_mul(other)
    }
    fn mul_high_unsigned(self, other: i32) -> i32 {
        ((u64::from(self as u32) * u64::from(other as u32)) >> 32) as i32
    }
    fn and(self, other: i32) -> i32 {
        self & other
    }
    fn or(self, other: i32) -> i32 {
        self | other
    }
    fn xor(self, other: i32) -> i32 {
        self ^ other
    }
    fn shl(self, amount: i32) -> i32 {
        self.wrapping_shl(amount as u32)
    }
    fn shr(self, amount: i32) -> i32 {
        self.wrapping_shr(amount as u32)
    }
    fn shr_unsigned(self, amount: i32) -> i32 {
        (self as u32).wrapping_shr(amount as u32) as i32
    }
    fn lt(self, other: i32) -> bool {
        self < other
    }
    fn lt_unsigned(self, other: i32) -> bool {
        (self as u32) < other as u32
    }
    fn eq(self, other: i32) -> bool {
        self == other
    }
    fn to_real(self) -> f32 {
        self as f32
    }
    fn to_real_unsigned(self) -> f32 {
        self as u32 as f32
    }
    fn to_bits(self) -> f32 {
        f32::from_bits(self as u32)
    }
}

impl Condition for bool {
    type Real = f32;
    fn not(self) -> bool {
        !self
    }
    fn and(self, other: bool) -> bool {
        self & other
    }
    fn or(self, other: bool) -> bool {
        self | other
    }
    fn select(self, a: f32, b: f32) -> f32 {
        if self { a } else { b }
    }
    fn select_int(self, a: i32, b: i32) -> i32 {
        if self { a } else { b }
    }
    fn branch(self, then: impl FnOnce() -> (f32, i32), otherwise: impl FnOnce() -> (f32, i32)) -> (f32, i32) {
        if self { then() } else { otherwise() }
    }
}
