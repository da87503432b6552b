//! Rows of operators that compute each element by itself with one operator of the IR, and the methods and functions that they are.

use perpetua_ir::ops::{BinaryOp, UnaryOp};

use super::{Meaning, Row};
use crate::node::Tensor;
use crate::operand::Operand;

const SHAPE: &str = "the operand's";
const BROADCAST: &str = "both operands', repeated to meet";

/// What types a row takes and gives.
macro_rules! types {
    (Same) => {
        "the operand's"
    };
    (Real) => {
        "the operand's; `f32` for integers and bool"
    };
    (Truth) => {
        "bool"
    };
    (Promoted) => {
        "the common type"
    };
    (Quotient) => {
        "the common type; `f32` for integers and bool"
    };
    (Logic) => {
        "bool, of operands compared with zero"
    };
}

/// Brings operands to the type in which a row computes.
macro_rules! brought {
    (Same $x:ident $at:ident) => {
        $x.clone()
    };
    (Truth $x:ident $at:ident) => {
        $x.real($at)
    };
    (Real $x:ident $at:ident) => {
        $x.real($at)
    };
    (Quotient $x:ident $at:ident) => {
        $x.real($at)
    };
    (Promoted $x:ident $at:ident) => {
        $x.clone()
    };
    (Logic $x:ident $at:ident) => {
        $x.cast_at(crate::DType::Bool, $at)
    };
}

macro_rules! unary {
    ($($name:ident $op:ident $rule:ident $doc:literal;)*) => {
        pub(super) const UNARY: &[Row] = &[$(Row {
            name: stringify!($name),
            meaning: Meaning::Unary(UnaryOp::$op),
            shape: SHAPE,
            types: types!($rule),
            doc: $doc,
        }),*];

        impl Tensor { $(
            #[doc = $doc]
            #[track_caller]
            pub fn $name(&self) -> Tensor {
                let at = here!();
                brought!($rule self at).unary(UnaryOp::$op, at)
            }
        )* }

        mod unary_functions {
            use crate::node::Tensor;
            $(
                #[doc = $doc]
                #[track_caller]
                pub fn $name(x: &Tensor) -> Tensor {
                    x.$name()
                }
            )*
        }
    };
}

macro_rules! binary {
    ($($name:ident $op:ident $rule:ident $doc:literal;)*) => {
        pub(super) const BINARY: &[Row] = &[$(Row {
            name: stringify!($name),
            meaning: Meaning::Binary(BinaryOp::$op),
            shape: BROADCAST,
            types: types!($rule),
            doc: $doc,
        }),*];

        impl Tensor { $(
            #[doc = $doc]
            #[track_caller]
            pub fn $name(&self, other: impl Into<Operand>) -> Tensor {
                let at = here!();
                let (x, y) = self.meet(stringify!($name), &other.into(), at);
                let (x, y) = (brought!($rule x at), brought!($rule y at));
                x.binary(BinaryOp::$op, &y, at)
            }
        )* }

        mod binary_functions {
            use crate::operand::Operand;
            use crate::node::Tensor;
            $(
                #[doc = $doc]
                #[track_caller]
                pub fn $name(x: &Tensor, y: impl Into<Operand>) -> Tensor {
                    x.$name(y)
                }
            )*
        }
    };
}

unary! {
    negative Neg Same "The operand with the other sign; wraps at the smallest integer.";
    invert Not Same "The complement of bits; of bool, not.";
    abs Abs Same "The magnitude; wraps at the smallest integer.";
    floor Floor Real "The largest integer not above.";
    ceil Ceil Real "The smallest integer not below.";
    trunc Trunc Real "The integer part.";
    round RoundTiesEven Real "The nearest integer; halves go to the even one.";
    sqrt Sqrt Real "The square root, correctly rounded.";
    rsqrt Rsqrt Real "1 over the square root, in two correctly rounded steps.";
    reciprocal Recip Real "1 over the operand.";
    exp Exp Real "e to the power of the operand.";
    exp2 Exp2 Real "2 to the power of the operand.";
    expm1 ExpM1 Real "exp(x) - 1 without cancellation.";
    log Ln Real "The natural logarithm.";
    log1p Ln1p Real "log(1 + x) without cancellation.";
    log2 Log2 Real "The logarithm to base 2.";
    log10 Log10 Real "The logarithm to base 10.";
    sin Sin Real "The sine of radians.";
    cos Cos Real "The cosine of radians.";
    tan Tan Real "The tangent of radians.";
    asin Asin Real "The arc sine, in radians; NaN outside of -1 to 1.";
    acos Acos Real "The arc cosine, in radians; NaN outside of -1 to 1.";
    atan Atan Real "The arc tangent, in radians.";
    sinh Sinh Real "The hyperbolic sine.";
    cosh Cosh Real "The hyperbolic cosine.";
    tanh Tanh Real "The hyperbolic tangent.";
    asinh Asinh Real "The inverse of the hyperbolic sine.";
    acosh Acosh Real "The inverse of the hyperbolic cosine; NaN below 1.";
    atanh Atanh Real "The inverse of the hyperbolic tangent; NaN outside of -1 to 1.";
    cbrt Cbrt Real "The cube root.";
    erf Erf Real "The error function.";
    erfc Erfc Real "1 - erf(x) without cancellation.";
    lgamma Lgamma Real "The logarithm of the gamma function's magnitude.";
    isnan IsNan Truth "Whether it is not a number.";
    isinf IsInfinite Truth "Whether it is infinite.";
    isfinite IsFinite Truth "Whether it is neither infinite nor NaN.";
    signbit IsSignNegative Truth "Whether the sign bit of the float is set.";
}

binary! {
    add Add Promoted "The sum; integers wrap.";
    subtract Sub Promoted "The difference; integers wrap.";
    multiply Mul Promoted "The product; integers wrap.";
    divide Div Quotient "The quotient of floats, correctly rounded.";
    divide_toward_zero Div Promoted "The quotient; of integers without its fraction. An integer divided by zero is a fault, as is the smallest by -1.";
    fmod Rem Promoted "The remainder with the dividend's sign, exact. An integer divided by zero is a fault.";
    fmin Min Promoted "The smaller; the other one if one is NaN.";
    fmax Max Promoted "The larger; the other one if one is NaN.";
    bitwise_and And Promoted "Bits set in both.";
    bitwise_or Or Promoted "Bits set in one or both.";
    bitwise_xor Xor Promoted "Bits set in one alone.";
    logical_and And Logic "Whether both are true.";
    logical_or Or Logic "Whether one or both are true.";
    logical_xor Xor Logic "Whether one alone is true.";
    left_shift Shl Promoted "Bits moved up; the amount is taken modulo the width.";
    right_shift Shr Promoted "Bits moved down, of signed integers with the sign; the amount is taken modulo the width.";
    equal Eq Promoted "Whether they are equal; NaN equals nothing.";
    not_equal Ne Promoted "Whether they differ; NaN differs from all.";
    less Lt Promoted "Whether the first is less.";
    less_equal Le Promoted "Whether the first is less or equal.";
    greater Gt Promoted "Whether the first is greater.";
    greater_equal Ge Promoted "Whether the first is greater or equal.";
    copysign Copysign Quotient "The magnitude of the first with the sign of the second.";
    pow Pow Quotient "The first to the power of the second, in floats.";
    atan2 Atan2 Quotient "The angle of the point (second, first), in radians.";
    hypot Hypot Quotient "The length of the hypotenuse, without overflow between.";
}

pub(super) mod functions {
    pub use super::binary_functions::*;
    pub use super::unary_functions::*;
}

macro_rules! operators {
    ($($trait:ident $method:ident $name:ident;)*) => { $(
        impl<T: Into<Operand>> std::ops::$trait<T> for &Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: T) -> Tensor {
                Tensor::$name(self, other)
            }
        }
        impl<T: Into<Operand>> std::ops::$trait<T> for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: T) -> Tensor {
                Tensor::$name(&self, other)
            }
        }
        operators!(number $trait $method $name f64);
        operators!(number $trait $method $name i32);
    )* };
    (number $trait:ident $method:ident $name:ident $number:ty) => {
        impl std::ops::$trait<&Tensor> for $number {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: &Tensor) -> Tensor {
                let at = here!();
                let (own, number) = other.meet(stringify!($name), &self.into(), at);
                crate::place::inside(at, || Tensor::$name(&number, own))
            }
        }
        impl std::ops::$trait<Tensor> for $number {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: Tensor) -> Tensor {
                std::ops::$trait::$method(self, &other)
            }
        }
    };
}

operators! {
    Add add add;
    Sub sub subtract;
    Mul mul multiply;
    Div div divide;
}

impl std::ops::Neg for &Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        self.negative()
    }
}

impl std::ops::Neg for Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        self.negative()
    }
}
