//! Arguments of a type that may be none of kernels: the kernel itself then does not compile, and says why, so nothing else has to.

use std::marker::PhantomData;

use super::Arguments;
use crate::kernel::expand::GpuType;

/// Makes arguments of a type. Its methods are those of [`Known`] where the type has `GpuType`, and of [`Unknown`] else: a method found
/// without a further reference comes first.
#[derive(Debug)]
pub struct Of<T>(PhantomData<fn() -> T>);

impl<T> Of<T> {
    /// For this type.
    pub const NEW: Of<T> = Of(PhantomData);
}

/// Arguments of a type of kernels.
pub trait Known<T> {
    /// For a slice.
    fn slice(&self, args: &mut Arguments<'_>) -> Vec<T>;
    /// For a reference to one value.
    fn one(&self, args: &mut Arguments<'_>) -> [T; 1];
    /// For a value.
    fn value(&self, args: &mut Arguments<'_>) -> T;
    /// Takes back what the function has left of a slice.
    fn left(&self, args: &mut Arguments<'_>, values: &[T]);
}

impl<T: GpuType> Known<T> for Of<T> {
    fn slice(&self, args: &mut Arguments<'_>) -> Vec<T> {
        args.slice()
    }

    fn one(&self, args: &mut Arguments<'_>) -> [T; 1] {
        args.one()
    }

    fn value(&self, args: &mut Arguments<'_>) -> T {
        args.value()
    }

    fn left(&self, args: &mut Arguments<'_>, values: &[T]) {
        args.left(values);
    }
}

/// Arguments of another type: declared, since a program with them does not compile.
pub trait Unknown<T> {
    /// For a slice.
    fn slice(&self, _: &mut Arguments<'_>) -> Vec<T> {
        Vec::new()
    }

    /// For a reference to one value.
    fn one(&self, _: &mut Arguments<'_>) -> [T; 1] {
        unreachable!("the kernel does not compile")
    }

    /// For a value.
    fn value(&self, _: &mut Arguments<'_>) -> T {
        unreachable!("the kernel does not compile")
    }

    /// Takes back what the function has left of a slice.
    fn left(&self, _: &mut Arguments<'_>, _: &[T]) {}
}

impl<T> Unknown<T> for &Of<T> {}
