//! What types derive, in kernels.

use std::cmp::Ordering;

use perpetua::prelude::*;
use perpetua_ir::front::rust::TypeDesc;

use crate::harness::{check, floats};

/// Ordered and made as derived.
#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, GpuType)]
#[repr(C)]
struct Reading {
    level: Level,
    values: [f32; 3],
    at: Place,
}

#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, GpuType)]
#[repr(C)]
struct Place(i32, u32);

#[device]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, GpuType)]
#[repr(i8)]
enum Level {
    High = 3,
    #[default]
    Plain = -2,
    Low = -7,
}

#[kernel]
fn derived(x: &[f32], y: &mut [Reading]) {
    let i = global_id_x();
    if i >= y.len() {
        return;
    }
    let n = x[i] as i32;
    let level = if n % 3 == 0 { Level::Low } else { Level::default() };
    let a = Reading {
        level,
        values: [1.0, x[i % 7], x[i]],
        ..Default::default()
    };
    let b = Reading {
        level: Level::Plain.min(level),
        values: [1.0, x[i % 5], if i % 11 == 5 { f32::NAN } else { 2.0 }],
        at: Place(n, 3).max(Place(-n, 4)),
    };
    let mut best = if a < b { a } else { b };
    if a >= b {
        best.values[0] = 4.0;
    }
    let order = match a.partial_cmp(&b) {
        Some(Ordering::Less) => -1,
        Some(Ordering::Equal) => 0,
        Some(Ordering::Greater) => 1,
        None => 7,
    };
    best.values[2] = order as f32;
    best.at = match Place(n, 1).cmp(&best.at) {
        Ordering::Less => Place(order, 1),
        Ordering::Equal => Place::default(),
        Ordering::Greater => Place(order, 2),
    };
    y[i] = best;
}

#[test]
fn types_that_derive_their_order() {
    check(
        derived::kernel(),
        derived,
        &floats(100),
        &[Reading::default(); 100],
    );
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Pair<T> {
    a: T,
    b: T,
}

/// Written by hand, which no kernel sees: it holds for all arguments, and gives each field its own.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Nested<T, U> {
    pair: Pair<T>,
    level: Level,
    values: [U; 3],
}

impl<T: Default, U: Default + Copy> Default for Nested<T, U> {
    fn default() -> Self {
        Nested {
            pair: Pair::default(),
            level: Level::default(),
            values: [U::default(); 3],
        }
    }
}

/// Its default is none of zeros.
#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Seven(i32);

impl Default for Seven {
    fn default() -> Self {
        Seven(7)
    }
}

#[device]
fn total<T: Copy + Default + std::ops::Add<Output = T>>(x: &[T]) -> Pair<T> {
    x.iter().fold(Pair::default(), |all, v| Pair {
        a: all.a + *v,
        b: all.a,
    })
}

#[kernel]
fn generic_defaults(x: &[i32], y: &mut [i32]) {
    let i = global_id_x();
    let mut sum = Pair::<i32>::default();
    for v in &x[i % 5..i % 11 + 5] {
        sum.a += v;
        sum.b = (sum.b * 3) ^ v;
    }
    let sevens = Pair::<Seven>::default();
    let nested = Nested::<Seven, i32>::default();
    let other = total(&x[..i % 7]);
    y[i] = sum.a ^ sum.b << 3 ^ sevens.a.0 << 5 ^ sevens.b.0 << 8;
    y[i] ^= nested.pair.b.0 << 12 ^ nested.values[2] ^ (nested.level as i32) << 15 ^ other.a << 2 ^ other.b;
}

#[test]
fn generic_types_have_the_defaults_of_their_fields() {
    let x: Vec<i32> = (0..100).map(|i| i * 37 % 101 - 50).collect();
    check(generic_defaults::kernel(), generic_defaults, &x, &[0; 64]);
}

/// What holds for some arguments alone, or gives a field something else, kernels do not take for the fields' own.
#[allow(dead_code, reason = "types alone are looked at")]
mod others {
    use super::*;

    #[derive(Clone, Copy, GpuType)]
    #[repr(C)]
    pub(super) struct Ones<T> {
        value: T,
        count: u32,
    }

    impl<T: Default> Default for Ones<T> {
        fn default() -> Self {
            Ones {
                value: T::default(),
                count: 1,
            }
        }
    }

    #[derive(Clone, Copy, GpuType)]
    #[repr(C)]
    pub(super) struct Some<T> {
        value: T,
    }

    impl Default for Some<i32> {
        fn default() -> Self {
            Some { value: 0 }
        }
    }

    impl Default for Some<u32> {
        fn default() -> Self {
            Some { value: 5 }
        }
    }

    #[derive(Clone, Copy, GpuType)]
    #[repr(C)]
    pub(super) struct Sized<T, const N: u32> {
        value: T,
        count: u32,
    }

    impl<T: Default, const N: u32> Default for Sized<T, N> {
        fn default() -> Self {
            Sized {
                value: T::default(),
                count: N,
            }
        }
    }
}

/// The `Default` that the generic type of an instance gives, as text.
fn given<T: GpuType>() -> Option<String> {
    let TypeDesc::Struct(desc) = T::describe() else {
        return None;
    };
    let (of, _) = desc.of.as_ref()?;
    of.default?().map(|value| format!("{value:?}"))
}

#[test]
fn other_defaults_need_device() {
    assert!(given::<Pair<f32>>().is_some_and(|zeros| !zeros.contains(", 1)")));
    assert!(given::<others::Ones<u32>>().is_some_and(|one| one.contains("Scalar(U32, 1)")));
    assert_eq!(given::<others::Some<u32>>(), None);
    assert_eq!(given::<others::Sized<u32, 3>>(), None);
}
