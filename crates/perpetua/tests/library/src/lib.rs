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

/// Two values: of monoids, a monoid.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
pub struct Pair<A, B> {
    /// The first.
    pub a: A,
    /// The second.
    pub b: B,
}

#[device]
impl<A: Combine, B: Combine> Combine for Pair<A, B> {
    const IDENTITY: Self = Pair {
        a: A::IDENTITY,
        b: B::IDENTITY,
    };

    fn combine(self, other: Self) -> Self {
        Pair {
            a: self.a.combine(other.a),
            b: self.b.combine(other.b),
        }
    }
}

#[device]
impl<A: Copy, B: Copy> Pair<A, B> {
    /// A pair.
    pub fn new(a: A, b: B) -> Self {
        Self { a, b }
    }

    /// The other way round.
    pub fn swapped(self) -> Pair<B, A> {
        let Pair { a, b } = self;
        Pair::new(b, a)
    }
}

/// Each element through the user's function.
#[kernel]
pub fn map<A: Copy, B: Copy, F: Fn(A) -> B>(each: F, x: &[A], y: &mut [B]) {
    let i = global_id_x();
    if i < y.len() {
        y[i] = each(x[i]);
    }
}

/// What the first function leaves of the three elements from `from` on, combined by the second.
#[device]
fn kept<T: Copy>(x: &[T], from: usize, keeps: impl Fn(&T) -> bool, with: &impl Fn(T, T) -> T) -> T {
    let mut all = x[from];
    for v in &x[from..from + 3] {
        if keeps(v) {
            all = with(all, *v);
        }
    }
    all
}

/// Hands the user's functions on to a device function and to closures.
#[kernel]
pub fn combine_kept<T, K, W>(keeps: K, with: W, x: &[T], y: &mut [T])
where
    T: Copy,
    for<'a> K: Fn(&'a T) -> bool + Copy,
    W: Fn(T, T) -> T,
{
    let i = global_id_x();
    if i < y.len() {
        let first = kept(x, i, keeps, &with);
        y[i] = kept(x, i, |v| !keeps(v), &|a, b| with(with(a, b), first));
    }
}
