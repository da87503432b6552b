//! The one door to the math library: operators whose spelling is [`Spelling::Library`](crate::ops::Spelling). A loop
//! for each operator, with the operator's code inside it: by functions, for closures cannot be told to be inlined.

use super::map::Map;
use crate::math;
use crate::ops::{BinaryOp, UnaryOp};

macro_rules! unary {
    ($name:ident $eval:ident $t:ident #[$inline:meta] $($variant:ident)*) => {
        /// An operator of one operand on lanes.
        #[inline(always)]
        pub(super) fn $name(op: UnaryOp, lanes: impl Map) {
            match op {
                $(UnaryOp::$variant => {
                    #[$inline]
                    fn one(x: $t) -> $t {
                        math::$eval(UnaryOp::$variant, x).unwrap_or($t::NAN)
                    }
                    lanes.map1(one)
                })*
                _ => {}
            }
        }
    };
}

macro_rules! binary {
    ($name:ident $eval:ident $t:ident #[$inline:meta] $($variant:ident)*) => {
        /// An operator of two operands on lanes.
        #[inline(always)]
        pub(super) fn $name(op: BinaryOp, lanes: impl Map) {
            match op {
                $(BinaryOp::$variant => {
                    #[$inline]
                    fn one(x: $t, y: $t) -> $t {
                        math::$eval(BinaryOp::$variant, x, y).unwrap_or($t::NAN)
                    }
                    lanes.map2(one)
                })*
                _ => {}
            }
        }
    };
}

unary!(unary eval_unary f32 #[inline(always)]
    Exp Exp2 ExpM1 Ln Ln1p Log2 Log10 Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Cbrt Erf Erfc Lgamma);
binary!(binary eval_binary f32 #[inline(always)] Pow Atan2 Hypot);
// Lane by lane: as vectors, for each level of SIMD, they would be a tenth of the crate's code.
unary!(unary_wide eval_unary_wide f64 #[inline(never)]
    Exp Exp2 ExpM1 Ln Ln1p Log2 Log10 Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Cbrt Erf Erfc Lgamma);
binary!(binary_wide eval_binary_wide f64 #[inline(never)] Pow Atan2 Hypot);
