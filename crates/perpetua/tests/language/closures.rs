//! Closures: passed to device functions, called where they stand, with captures of values and of places.

use perpetua::device::KernelSpec;
use perpetua::prelude::*;

use crate::harness::{check, floats};

#[device]
fn fold<T: Copy, A: Copy>(x: &[T], from: usize, first: A, each: impl Fn(A, T) -> A) -> A {
    let mut all = first;
    for k in 0..4 {
        all = each(all, x[from + k]);
    }
    all
}

#[device]
fn twice<F>(f: F, x: f32) -> f32
where
    F: Fn(f32) -> f32,
{
    f(f(x))
}

/// Passes on what it got, and makes a closure of it.
#[device]
fn four_times<F: Fn(f32) -> f32>(f: &F, x: f32) -> f32 {
    let more = |y: f32| f(y) + x;
    twice(&f, x) + twice(more, x)
}

#[device]
fn each(count: u32, mut act: impl FnMut(u32)) {
    let mut k = 0;
    while k < count {
        act(k);
        k += 1;
    }
}

#[device]
fn once(make: impl FnOnce() -> [f32; 3]) -> f32 {
    let parts = make();
    parts[0] * parts[1] + parts[2]
}

#[device]
trait Transform: Copy {
    fn value(self) -> f32;

    fn through(self, f: impl Fn(f32) -> f32) -> f32 {
        f(self.value()) + 1.0
    }
}

#[device]
impl Transform for f32 {
    fn value(self) -> f32 {
        self * 2.0
    }
}

#[kernel]
fn closures(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    let by = x[i] * 0.5;
    let sum = fold(x, i, 0.0, |all, v| all + v * by);
    let above = fold(x, i, 0u32, |count, v| if v > by { count + 1 } else { count });
    let mut largest = x[i];
    let mut seen = [0.0f32; 4];
    each(4, |k| {
        let v = x[i + k as usize];
        seen[k as usize] = v + by;
        if v > largest {
            largest = v;
        }
    });
    let clamp = |v: f32| {
        if v > 4.0 {
            return 4.0;
        }
        v.max(-4.0)
    };
    let pair = |(a, b): (f32, f32), scale| (a * scale, b - a);
    let (p, q) = pair((by, sum), 2.0);
    let mut n = 0;
    let mut next = || {
        n += 3;
        n
    };
    let first = next() * 10 + next();
    let kept = by;
    y[i] = sum
        + above as f32
        + largest
        + seen[3]
        + clamp(sum)
        + twice(clamp, by)
        + four_times(&|v| clamp(v) * 0.5, by)
        + p
        + q
        + first as f32
        + once(move || [kept, 2.0, by])
        + by.through(|v| clamp(v) - by);
}

#[test]
fn closures_are_called_where_they_are_passed() {
    let x = floats(68);
    check(closures::kernel(), closures, &x, &[0.0f32; 64]);
}

/// What a library takes in the place of a closure: a type with a function. A kernel's argument brings its values.
#[device]
trait Operation: Copy {
    fn apply(self, x: f32) -> f32;
}

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Scaled {
    by: f32,
}

#[device]
impl Operation for Scaled {
    fn apply(self, x: f32) -> f32 {
        x * self.by
    }
}

#[device]
fn map_all<O: Operation>(operation: O, x: &[f32], i: usize) -> f32 {
    twice(|v| operation.apply(v), x[i])
}

#[kernel]
fn mapped(x: &[f32], y: &mut [f32]) {
    let i = global_id_x();
    y[i] = map_all(Scaled { by: x[i + 1] }, x, i);
}

#[test]
fn operations_are_types() {
    let x = floats(65);
    check(mapped::kernel(), mapped, &x, &[0.0f32; 64]);
}

#[device]
fn soft(x: f32) -> f32 {
    x * (1.0 - 0.25 * x.abs())
}

#[device]
fn half(x: f32) -> f32 {
    x * 0.5
}

#[device]
fn ahead(x: &f32) -> bool {
    *x > 0.5
}

#[device]
fn larger(a: f32, b: f32) -> f32 {
    a.max(b * 0.5)
}

#[device]
fn parts(x: f32) -> [u32; 2] {
    [x.to_bits(), soft(x).to_bits()]
}

#[kernel]
fn chosen<F: Fn(f32) -> f32>(x: &[f32], y: &mut [f32], f: F) {
    let i = global_id_x();
    y[i] = x.get(i + 1).copied().map(&f).unwrap_or(0.0) + twice(&f, x[i]);
}

/// A library's kernel takes the user's function.
#[test]
fn kernels_take_functions() {
    use perpetua_test_library::{combine_kept, map};
    let x = floats(66);
    let out = [0.0f32; 64];
    check(map::kernel::<f32, f32, soft>(), |x, y| map(soft, x, y), &x, &out);
    check(
        map::kernel::<f32, [u32; 2], parts>(),
        |x, y| map(parts, x, y),
        &x,
        &[[0; 2]; 64],
    );
    check(
        combine_kept::kernel::<f32, ahead, larger>(),
        |x, y| combine_kept(ahead, larger, x, y),
        &x,
        &out,
    );
    check(chosen::kernel::<soft>(), |x, y| chosen(x, y, soft), &x, &out);
    assert_ne!(chosen::kernel::<soft>().id(), chosen::kernel::<half>().id());
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Pair {
    a: f32,
    b: f32,
}

#[device]
trait Joined: Copy {
    fn joined(self, other: Self) -> Self;
}

#[device]
impl Joined for f32 {
    fn joined(self, other: Self) -> Self {
        self.max(0.5) + other
    }
}

#[device]
impl Pair {
    fn of(a: f32, b: f32) -> Pair {
        Pair { a, b }
    }

    fn then(self, next: Pair) -> Pair {
        Pair::of(self.a * next.a, self.b.max(next.a) + next.b)
    }

    fn folded(self, f: impl Fn(f32, f32) -> f32) -> f32 {
        f(self.a, self.b)
    }
}

#[device]
fn pairwise<T: Copy, R>(a: T, b: T, f: impl Fn(T, T) -> R) -> R {
    f(a, b)
}

#[device]
fn joined_all<T: Joined>(x: [T; 3]) -> T {
    pairwise(x[0], pairwise(x[1], x[2], T::joined), Joined::joined)
}

#[kernel]
fn named(x: &[f32], y: &mut [[f32; 8]]) {
    let i = global_id_x();
    let (a, b) = (x[i], x[i + 1]);
    let pair = pairwise(a, b, Pair::of);
    y[i] = [
        pairwise(a, b, f32::max),
        pairwise(a, b, larger),
        pairwise(pair, Pair::of(b, a), Pair::then).b,
        pair.folded(f32::min),
        pair.folded(<f32 as Joined>::joined),
        joined_all([a, b, 0.25]),
        pairwise(a.to_bits(), 3, u32::wrapping_mul) as f32,
        (a > b)
            .then(f32::default)
            .or_else(|| Some(b))
            .map_or_else(f32::default, f32::abs),
    ];
}

/// Functions are named where closures are taken.
#[test]
fn functions_stand_for_closures() {
    check(named::kernel(), named, &floats(65), &[[0.0f32; 8]; 64]);
}
