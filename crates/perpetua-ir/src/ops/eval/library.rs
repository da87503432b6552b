//! The one door to the math library: operators whose spelling is [`Spelling::Library`](crate::ops::Spelling).
//!
//! At present these are std's f32 functions: within the table's bounds, but their last bits are the platform's own.

use crate::ops::{BinaryOp, UnaryOp};

/// A transcendental of one operand; NaN for operators that are not of the library.
pub(super) fn math_unary(op: UnaryOp, x: f32) -> f32 {
    match op {
        UnaryOp::Exp => x.exp(),
        UnaryOp::Exp2 => x.exp2(),
        UnaryOp::ExpM1 => x.exp_m1(),
        UnaryOp::Ln => x.ln(),
        UnaryOp::Ln1p => x.ln_1p(),
        UnaryOp::Log2 => x.log2(),
        UnaryOp::Log10 => x.log10(),
        UnaryOp::Sin => x.sin(),
        UnaryOp::Cos => x.cos(),
        UnaryOp::Tan => x.tan(),
        UnaryOp::Asin => x.asin(),
        UnaryOp::Acos => x.acos(),
        UnaryOp::Atan => x.atan(),
        UnaryOp::Sinh => x.sinh(),
        UnaryOp::Cosh => x.cosh(),
        UnaryOp::Tanh => x.tanh(),
        UnaryOp::Asinh => x.asinh(),
        UnaryOp::Acosh => x.acosh(),
        UnaryOp::Atanh => x.atanh(),
        UnaryOp::Cbrt => x.cbrt(),
        _ => f32::NAN,
    }
}

/// A transcendental of two operands; NaN for operators that are not of the library.
pub(super) fn math_binary(op: BinaryOp, x: f32, y: f32) -> f32 {
    match op {
        BinaryOp::Pow => x.powf(y),
        BinaryOp::Atan2 => x.atan2(y),
        BinaryOp::Hypot => x.hypot(y),
        _ => f32::NAN,
    }
}
