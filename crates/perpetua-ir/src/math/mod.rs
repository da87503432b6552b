//! The math library: what the operator table spells `Library`. Written once, over a small trait of arithmetic; computed
//! natively by the interpreter and the CPU, appended as IR for every other target. So a sine has the same bits
//! everywhere that add, multiply and fused multiply-add have.

// Coefficients are printed with the digits that make their f32 unique; some lie near well-known constants.
#![allow(clippy::excessive_precision, clippy::approx_constant)]

#[cfg(feature = "pass")]
mod emit;
mod exponential;
mod logarithm;
#[cfg(test)]
mod models;
mod native;
mod power;
mod real;
#[cfg(feature = "pass")]
mod remainder;
mod trigonometric;

#[cfg(feature = "pass")]
use crate::ir::{Inst, Kernel, KernelBuilder, Scalar, Value};
use crate::ops::{BinaryOp, UnaryOp};
use real::{Condition, Real};

#[inline(always)]
fn unary<R: Real>(op: UnaryOp, x: R) -> Option<R> {
    let y = match op {
        UnaryOp::Exp => exponential::exp(x),
        UnaryOp::Exp2 => exponential::exp2(x),
        UnaryOp::ExpM1 => exponential::exp_m1(x),
        UnaryOp::Ln => logarithm::ln(x),
        UnaryOp::Ln1p => logarithm::ln_1p(x),
        UnaryOp::Log2 => logarithm::log2(x),
        UnaryOp::Log10 => logarithm::log10(x),
        UnaryOp::Sin => trigonometric::sin(x),
        UnaryOp::Cos => trigonometric::cos(x),
        UnaryOp::Tan => trigonometric::tan(x),
        UnaryOp::Asin => trigonometric::asin(x),
        UnaryOp::Acos => trigonometric::acos(x),
        UnaryOp::Atan => trigonometric::atan(x),
        UnaryOp::Sinh => exponential::sinh(x),
        UnaryOp::Cosh => exponential::cosh(x),
        UnaryOp::Tanh => exponential::tanh(x),
        UnaryOp::Asinh => exponential::asinh(x),
        UnaryOp::Acosh => exponential::acosh(x),
        UnaryOp::Atanh => exponential::atanh(x),
        UnaryOp::Cbrt => power::cbrt(x),
        _ => return None,
    };
    // Not left to the steps: a compiler may make a maximum of a comparison and a choice, and lose the NaN there.
    Some(x.is_nan().select(x.lit(f32::NAN), y))
}

#[inline(always)]
fn binary<R: Real>(op: BinaryOp, x: R, y: R) -> Option<R> {
    Some(match op {
        BinaryOp::Pow => power::pow(x, y),
        BinaryOp::Atan2 => trigonometric::atan2(x, y),
        BinaryOp::Hypot => power::hypot(x, y),
        _ => return None,
    })
}

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

/// A library operator.
#[cfg(feature = "pass")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LibraryOp {
    /// Of one operand.
    Unary(UnaryOp),
    /// Of two operands.
    Binary(BinaryOp),
    /// The remainder of this type (f32 or f64).
    Remainder(Scalar),
}

#[cfg(feature = "pass")]
impl LibraryOp {
    /// The operator's name.
    pub fn name(self) -> &'static str {
        match self {
            LibraryOp::Unary(op) => op.name(),
            LibraryOp::Binary(op) => op.name(),
            LibraryOp::Remainder(_) => BinaryOp::Rem.name(),
        }
    }
}

/// The operator as an IR function named `perpetua_NAME`, of f32s but for [`LibraryOp::Remainder`]; `None` for an operator that is not in the library.
#[cfg(feature = "pass")]
pub fn function(op: LibraryOp) -> Option<crate::ir::Function> {
    let names: &[&str] = match op {
        LibraryOp::Unary(_) => &["x"],
        LibraryOp::Binary(_) => &["x", "y"],
        LibraryOp::Remainder(s) => return remainder::function(s),
    };
    let params = names
        .iter()
        .map(|n| ((*n).to_owned(), Scalar::F32.into()))
        .collect();
    let mut builder = KernelBuilder::new("library");
    let built = builder.function(
        format!("perpetua_{}", op.name()),
        params,
        Some(Scalar::F32.into()),
        |b| {
            let cell = std::cell::RefCell::new(std::mem::replace(b, KernelBuilder::new("")));
            let arg = |i| emit::Emitted::<emit::F>::new(&cell, Value(i));
            let result = match op {
                LibraryOp::Unary(op) => unary(op, arg(0)),
                LibraryOp::Binary(op) => binary(op, arg(0), arg(1)),
                LibraryOp::Remainder(_) => None,
            }
            .map(emit::Emitted::value);
            *b = cell.into_inner();
            match result {
                Some(v) => {
                    b.push(Inst::Return(Some(v)));
                    Ok(())
                }
                None => Err(()),
            }
        },
    );
    built.ok()?;
    let kernel: Kernel = builder.finish();
    kernel.functions.into_iter().next()
}

#[cfg(test)]
mod tests;
