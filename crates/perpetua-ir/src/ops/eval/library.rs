//! The one door to the math library: operators whose spelling is [`Spelling::Library`](crate::ops::Spelling). A loop
//! for each operator, with the operator's code inside it: by functions, for closures cannot be told to be inlined.

use super::lanes::Map;
use crate::math;
use crate::ops::{BinaryOp, UnaryOp};

/// An operator of one operand on lanes.
#[inline(always)]
pub(super) fn unary(op: UnaryOp, lanes: impl Map) {
    macro_rules! each {
        ($($variant:ident)*) => {
            match op {
                $(UnaryOp::$variant => {
                    #[inline(always)]
                    fn one(x: f32) -> f32 {
                        math::eval_unary(UnaryOp::$variant, x).unwrap_or(f32::NAN)
                    }
                    lanes.map1(one)
                })*
                _ => {}
            }
        };
    }
    each!(Exp Exp2 ExpM1 Ln Ln1p Log2 Log10 Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Cbrt);
}

/// An operator of two operands on lanes.
#[inline(always)]
pub(super) fn binary(op: BinaryOp, lanes: impl Map) {
    macro_rules! each {
        ($($variant:ident)*) => {
            match op {
                $(BinaryOp::$variant => {
                    #[inline(always)]
                    fn one(x: f32, y: f32) -> f32 {
                        math::eval_binary(BinaryOp::$variant, x, y).unwrap_or(f32::NAN)
                    }
                    lanes.map2(one)
                })*
                _ => {}
            }
        };
    }
    each!(Pow Atan2 Hypot);
}
