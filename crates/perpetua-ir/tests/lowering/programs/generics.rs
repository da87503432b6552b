//! Generic structs and generic blocks.

use super::super::lanes::*;

#[derive(Clone, Copy)]
#[cfg_attr(any(), derive(GpuType))]
#[repr(C)]
pub struct Small<T, const N: usize> {
    a: [T; N],
}

#[derive(Clone, Copy)]
#[cfg_attr(any(), derive(GpuType))]
#[repr(C)]
pub struct Pair<A, B>(A, B);

#[derive(Clone, Copy)]
#[cfg_attr(any(), derive(GpuType))]
#[repr(C)]
pub struct Both<T> {
    inner: Pair<u8, Small<T, 2>>,
    last: [Pair<T, T>; 1 + 1],
}

#[cfg_attr(any(), device)]
pub trait Combine: Copy {
    const IDENTITY: Self;
    const TWO: u32 = 2;

    fn combine(self, other: Self) -> Self;

    fn times(self, n: u32) -> Self {
        let mut sum = Self::IDENTITY;
        for _ in 0..n * Self::TWO / 2 {
            sum = sum.combine(self);
        }
        sum
    }
}

#[cfg_attr(any(), device)]
impl Combine for f32 {
    const IDENTITY: f32 = 0.0;

    fn combine(self, other: f32) -> f32 {
        self + other
    }
}

#[cfg_attr(any(), device)]
impl Combine for u32 {
    const IDENTITY: u32 = 1;

    fn combine(self, other: u32) -> u32 {
        self.wrapping_mul(other)
    }
}

#[cfg_attr(any(), device)]
impl<A: Combine, B: Combine> Combine for Pair<A, B> {
    const IDENTITY: Self = Pair(A::IDENTITY, B::IDENTITY);

    fn combine(self, other: Self) -> Self {
        let Pair(a, b) = other;
        Self(self.0.combine(a), self.1.combine(b))
    }
}

#[cfg_attr(any(), device)]
impl<T: Combine, const N: usize> Combine for Small<T, N> {
    const IDENTITY: Self = Small { a: [T::IDENTITY; N] };
    const TWO: u32 = 4;

    fn combine(mut self, other: Self) -> Self {
        for k in 0..N {
            self.a[k] = self.a[k].combine(other.a[k]);
        }
        self
    }
}

#[cfg_attr(any(), device)]
impl<T: Copy, const N: usize> Small<T, N> {
    const LEN: usize = N;

    fn splat(value: T) -> Self {
        Small { a: [value; N] }
    }

    fn first(&self) -> T {
        self.a[0]
    }
}

#[cfg_attr(any(), device)]
impl<T: Copy> Both<T> {
    fn new(a: T, b: T) -> Self {
        Self {
            inner: Pair(3, Small { a: [a, b] }),
            last: [Pair(b, a); 2],
        }
    }
}

#[cfg_attr(any(), device)]
fn fold<T: Combine>(x: &[T], last: T) -> T {
    let mut all = T::IDENTITY;
    for v in x {
        all = all.combine(*v);
    }
    all.combine(last)
}

#[cfg_attr(any(), kernel)]
pub fn generic_types(x: &[f32], out: &mut [f32]) {
    let i = global_id_x();
    let v = x[i];
    let pair = Pair(v, i as u32);
    let thrice = pair.times(3);
    let vector = Small::<_, 2>::splat(thrice).times(2);
    let both = Both::new(v, vector.first().0);
    let folded = fold(&both.last, Pair(1.0, 0.5));
    let plain = fold(&[v, 2.0], 1.0);
    let words = Small::<Pair<u32, f32>, 3>::IDENTITY;
    let bits = words.a[2].0 + Small::<u8, 5>::LEN as u32 + u32::from(both.inner.0);
    out[i] =
        plain + folded.0 + folded.1 * 2.0 + both.inner.1.a[1] + bits as f32 + (vector.a[1].1 % 1000) as f32;
}
