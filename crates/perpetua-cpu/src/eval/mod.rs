//! What operators mean, on one scalar's bits (`perpetua-ir`'s evaluator) and on many lanes side by side. Knows nothing of kernels, memory or
//! control flow.

mod assign;
mod division;
mod lanes;
mod wide;

#[cfg(all(test, feature = "testing"))]
mod tests;

pub(crate) use lanes::*;
pub(crate) use perpetua_ir::ops::eval::*;
pub(crate) use wide::{Level, assign, binary, cast, copy, division_suspect, ternary, unary};
