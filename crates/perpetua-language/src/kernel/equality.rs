//! How a type's values are compared: by their fields, which kernels do by themselves, or by a function, which they must be
//! given. `derive(GpuType)` asks, and what is written by hand without `#[device]` does not compile.
//!
//! Only patterns see the difference: a constant may stand in one where its type derives `PartialEq`, all the way down. So the
//! derive writes a `match` that is never run against a constant of the type, where it has `PartialEq` at all, none of its fields
//! is compared by a function, and it has no `#[device] impl PartialEq`.

use std::marker::PhantomData;

use perpetua_ir::front::rust::{ConstValue, GpuConst, GpuValue};

/// Says of every type that it is compared by no function; what `#[device] impl PartialEq` adds to a type comes before it.
pub trait ByFields: Sized {
    /// Whether the type is compared by a function that kernels have.
    const __PERPETUA_COMPARED_BY_FUNCTION: bool = false;
}

impl<T> ByFields for T {}

/// Asks about `T`; `ASKS`: whether there is something to find out.
pub struct Comparison<T, const ASKS: bool>(PhantomData<T>);

impl<T, const ASKS: bool> Comparison<T, ASKS> {
    /// A question.
    pub const fn of() -> Self {
        Comparison(PhantomData)
    }
}

/// What is compared in the place of a type that need not be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Nothing;

/// Found before [`WithoutEquality`] on `&&Comparison`.
pub trait WithEquality<T> {
    /// A value that stands for all.
    fn sample(&self) -> T;
}

impl<T: GpuValue + PartialEq> WithEquality<T> for &Comparison<T, true> {
    fn sample(&self) -> T {
        T::ZEROED
    }
}

/// Found where the type has no `PartialEq`, or nothing is asked.
pub trait WithoutEquality {
    /// Nothing.
    fn sample(&self) -> Nothing {
        Nothing
    }
}

impl<T, const ASKS: bool> WithoutEquality for Comparison<T, ASKS> {}

/// Found before [`WithoutOrder`] on `&&Comparison`.
pub trait WithOrder<T> {
    /// Whether the order of these values is that of their numbers.
    fn in_order(&self, values: &[(T, i128)]) -> bool;
}

impl<T: PartialOrd, const ASKS: bool> WithOrder<T> for &Comparison<T, ASKS> {
    fn in_order(&self, values: &[(T, i128)]) -> bool {
        values.iter().all(|(a, x)| {
            let alike = |(b, y): &(T, i128)| a.partial_cmp(b) == Some(x.cmp(y));
            values.iter().all(alike)
        })
    }
}

/// Found where the type has no `PartialOrd`: then nothing compares it.
pub trait WithoutOrder<T> {
    /// Whether the order of these values is that of their numbers.
    fn in_order(&self, _: &[(T, i128)]) -> bool {
        true
    }
}

impl<T, const ASKS: bool> WithoutOrder<T> for Comparison<T, ASKS> {}

/// Found before [`WithoutDefault`] on `&&Comparison`.
pub trait WithDefault {
    /// The type's `Default`.
    fn default_value(&self) -> Option<ConstValue>;
}

impl<T: Default + GpuConst, const ASKS: bool> WithDefault for &Comparison<T, ASKS> {
    fn default_value(&self) -> Option<ConstValue> {
        Some(T::default().to_const())
    }
}

/// Found where the type has no `Default`.
pub trait WithoutDefault {
    /// None.
    fn default_value(&self) -> Option<ConstValue> {
        None
    }
}

impl<T, const ASKS: bool> WithoutDefault for Comparison<T, ASKS> {}

/// A type of which there is a constant.
pub trait Sampled: Sized {
    /// A value.
    const SAMPLE: Self;
}

impl<T: GpuValue> Sampled for T {
    const SAMPLE: T = T::ZEROED;
}

impl Sampled for Nothing {
    const SAMPLE: Nothing = Nothing;
}

/// The constants of the patterns.
pub struct Compared<T>(PhantomData<T>);

impl<T: Sampled> Compared<T> {
    /// A value; rustc shows the name.
    pub const WRITE_DEVICE_BEFORE_THE_IMPL_OF_PARTIAL_EQ_OR_DERIVE_IT: T = T::SAMPLE;
}
