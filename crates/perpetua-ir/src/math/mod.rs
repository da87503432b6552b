//! The math library: what the operator table spells `Library`. Written once, over a small trait of arithmetic; computed
//! natively by the interpreter and the CPU, appended as IR for every other target. So a sine has the same bits
//! everywhere that add, multiply and fused multiply-add have.

// Coefficients are printed with the digits that make their f32 unique; some lie near well-known constants.
#![allow(clippy::excessive_precision, clippy::approx_constant)]

mod double;
#[cfg(feature = "pass")]
mod emit;
mod exponential;
mod logarithm;
#[cfg(test)]
mod models;
mod native;
pub mod philox;
mod power;
mod real;
#[cfg(feature = "pass")]
mod remainder;
mod special;
mod trigonometric;

#[cfg(feature = "pass")]
use crate::ir::{Inst, Kernel, KernelBuilder, Scalar, Value};
use crate::ops::{BinaryOp, UnaryOp};
use real::{Condition, Real};

/// The functions of f32, as [`double`] has those of f64.
mod single {
    pub(super) use super::exponential::{acosh, asinh, atanh, cosh, exp, exp_m1, exp2, sinh, tanh};
    pub(super) use super::logarithm::{ln, ln_1p, log2, log10};
    pub(super) use super::power::{cbrt, hypot, pow};
    pub(super) use super::special::{erf, erfc, lgamma};
    pub(super) use super::trigonometric::{acos, asin, atan, atan2, cos, sin, tan};
}

macro_rules! functions {
    ($unary:ident $binary:ident $of:ident) => {
        #[inline(always)]
        fn $unary<R: Real>(op: UnaryOp, x: R) -> Option<R> {
            let y = match op {
                UnaryOp::Exp => $of::exp(x),
                UnaryOp::Exp2 => $of::exp2(x),
                UnaryOp::ExpM1 => $of::exp_m1(x),
                UnaryOp::Ln => $of::ln(x),
                UnaryOp::Ln1p => $of::ln_1p(x),
                UnaryOp::Log2 => $of::log2(x),
                UnaryOp::Log10 => $of::log10(x),
                UnaryOp::Sin => $of::sin(x),
                UnaryOp::Cos => $of::cos(x),
                UnaryOp::Tan => $of::tan(x),
                UnaryOp::Asin => $of::asin(x),
                UnaryOp::Acos => $of::acos(x),
                UnaryOp::Atan => $of::atan(x),
                UnaryOp::Sinh => $of::sinh(x),
                UnaryOp::Cosh => $of::cosh(x),
                UnaryOp::Tanh => $of::tanh(x),
                UnaryOp::Asinh => $of::asinh(x),
                UnaryOp::Acosh => $of::acosh(x),
                UnaryOp::Atanh => $of::atanh(x),
                UnaryOp::Cbrt => $of::cbrt(x),
                UnaryOp::Erf => $of::erf(x),
                UnaryOp::Erfc => $of::erfc(x),
                UnaryOp::Lgamma => $of::lgamma(x),
                _ => return None,
            };
            // Not left to the steps: a compiler may make a maximum of a comparison and a choice, and lose the NaN there.
            Some(x.is_nan().select(x.lit(f32::NAN), y))
        }

        #[inline(always)]
        fn $binary<R: Real>(op: BinaryOp, x: R, y: R) -> Option<R> {
            Some(match op {
                BinaryOp::Pow => $of::pow(x, y),
                BinaryOp::Atan2 => $of::atan2(x, y),
                BinaryOp::Hypot => $of::hypot(x, y),
                _ => return None,
            })
        }
    };
}
functions!(unary binary single);
functions!(unary_wide binary_wide double);

/// Computes a library operator of one operand; `None` for an operator that is not in the library.
#[inline(always)]
pub fn eval_unary(op: UnaryOp, x: f32) -> Option<f32> {
    unary(op, x)
}

/// Computes a library operator of two operands; `None` for an operator that is not in the library.
#[inline(always)]
pub fn eval_binary(op: BinaryOp, x: f32, y: f32) -> Option<f32> {
    binary(op, x, y)
}

/// As [`eval_unary`], of f64.
#[inline(always)]
pub fn eval_unary_wide(op: UnaryOp, x: f64) -> Option<f64> {
    unary_wide(op, x)
}

/// As [`eval_binary`], of f64.
#[inline(always)]
pub fn eval_binary_wide(op: BinaryOp, x: f64, y: f64) -> Option<f64> {
    binary_wide(op, x, y)
}

/// A library operator, and its type: f32 or f64.
#[cfg(feature = "pass")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LibraryOp {
    /// Of one operand.
    Unary(UnaryOp, Scalar),
    /// Of two operands.
    Binary(BinaryOp, Scalar),
    /// The remainder.
    Remainder(Scalar),
}

#[cfg(feature = "pass")]
impl LibraryOp {
    /// The operator's name.
    pub fn name(self) -> &'static str {
        match self {
            LibraryOp::Unary(op, _) => op.name(),
            LibraryOp::Binary(op, _) => op.name(),
            LibraryOp::Remainder(_) => BinaryOp::Rem.name(),
        }
    }
}

/// What a target makes of floating-point sums.
#[cfg(feature = "pass")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    /// It computes what is written, and knows NaN: fewer steps do.
    AsWritten,
    /// Its compilers take `(a + b) - a` for `b`, and may promise nothing of NaN.
    Rearranged,
}

/// The operator as an IR function named `perpetua_NAME`, with `_f64` behind it where it is of f64s; `None` for an operator that is not in
/// the library.
#[cfg(feature = "pass")]
pub fn function(op: LibraryOp, sums: Sums) -> Option<crate::ir::Function> {
    let (names, s): (&[&str], _) = match op {
        LibraryOp::Unary(_, s) => (&["x"], s),
        LibraryOp::Binary(_, s) => (&["x", "y"], s),
        LibraryOp::Remainder(s) => return remainder::function(s),
    };
    let params = names.iter().map(|n| ((*n).to_owned(), s.into())).collect();
    let mut builder = KernelBuilder::new("library");
    let end = if s == Scalar::F64 { "_f64" } else { "" };
    let name = format!("perpetua_{}{end}", op.name());
    let built = builder.function(name, params, Some(s.into()), |b| {
        let cell = std::cell::RefCell::new(std::mem::replace(b, KernelBuilder::new("")));
        let arg = |i| emit::Emitted::<emit::F>::new(&cell, Value(i), sums);
        let wide = |i| emit::Emitted::<emit::Wide>::new(&cell, Value(i), sums);
        let result = match op {
            LibraryOp::Unary(op, Scalar::F64) => unary_wide(op, wide(0)).map(emit::Emitted::value),
            LibraryOp::Unary(op, _) => unary(op, arg(0)).map(emit::Emitted::value),
            LibraryOp::Binary(op, Scalar::F64) => binary_wide(op, wide(0), wide(1)).map(emit::Emitted::value),
            LibraryOp::Binary(op, _) => binary(op, arg(0), arg(1)).map(emit::Emitted::value),
            LibraryOp::Remainder(_) => None,
        };
        *b = cell.into_inner();
        match result {
            Some(v) => {
                b.push(Inst::Return(Some(v)));
                Ok(())
            }
            None => Err(()),
        }
    });
    built.ok()?;
    let kernel: Kernel = builder.finish();
    kernel.functions.into_iter().next()
}

#[cfg(test)]
mod tests;
