//! Kernels over types that another crate brings.

use perpetua::prelude::*;

/// A monoid.
#[device]
pub trait Combine: Copy {
    /// What changes nothing.
    const IDENTITY: Self;

    /// Two in one.
    fn combine(self, other: Self) -> Self;

    /// Two of the same in one.
    fn twice(self) -> Self {
        self.combine(self)
    }
}

#[device]
impl Combine for f32 {
    const IDENTITY: f32 = 0.0;

    fn combine(self, other: f32) -> f32 {
        self + other
    }
}

#[device]
impl Combine for u32 {
    const IDENTITY: u32 = 1;

    fn combine(self, other: u32) -> u32 {
        self.wrapping_mul(other)
    }

    fn twice(self) -> u32 {
        self.wrapping_mul(self)
    }
}

/// Each lane combines a run of `x`, which is as long as the ratio of the lengths.
#[kernel]
pub fn reduce<T: Combine>(x: &[T], out: &mut [T]) {
    let i = global_id_x();
    if i < out.len() {
        let run = x.len() / out.len();
        let mut sum = T::IDENTITY;
        for k in 0..run {
            sum = sum.combine(x[i * run + k]);
        }
        out[i] = sum.twice();
    }
}
