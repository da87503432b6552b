//! Rows of combinations along axes, and the methods and functions that they are.

use super::{Meaning, Row};
use crate::node::Tensor;
use crate::order::Reduction;
use crate::shape::Axes;

macro_rules! reductions {
    ($($name:ident $keep:ident $how:ident $types:literal $gradient:literal $doc:literal;)*) => {
        pub(super) const ROWS: &[Row] = &[$(Row {
            name: stringify!($name),
            meaning: Meaning::Own(&[$gradient]),
            shape: "the operand's without the axes, or with 1 in their places",
            types: $types,
            doc: $doc,
        }),*];

        impl Tensor { $(
            #[doc = $doc]
            #[track_caller]
            pub fn $name(&self, axes: impl Into<Axes>) -> Tensor {
                self.reduce(Reduction::$how, &axes.into(), false, here!())
            }

            #[doc = $doc]
            ///
            /// The axes stay, with extent 1.
            #[track_caller]
            pub fn $keep(&self, axes: impl Into<Axes>) -> Tensor {
                self.reduce(Reduction::$how, &axes.into(), true, here!())
            }
        )* }

        pub(super) mod functions {
            use crate::shape::Axes;
            use crate::node::Tensor;
            $(
                #[doc = $doc]
                #[track_caller]
                pub fn $name(x: &Tensor, axes: impl Into<Axes>) -> Tensor {
                    x.$name(axes)
                }
            )*
        }
    };
}

reductions! {
    sum sum_keep Sum "the operand's; integers of fewer than 32 bits and bool become `i32` or `u32`" "the gradient, repeated" "The sum along axes. Half floats are summed in f32.";
    prod prod_keep Product "the operand's; integers of fewer than 32 bits and bool become `i32` or `u32`" "the product of the other elements" "The product along axes. Half floats are multiplied in f32.";
    max max_keep Max "the operand's, not bool" "the gradient, shared evenly by the elements that are the maximum" "The largest along axes; NaN if one is NaN.";
    min min_keep Min "the operand's, not bool" "the gradient, shared evenly by the elements that are the minimum" "The smallest along axes; NaN if one is NaN.";
}
