//! Rows of the operator table and the types of its columns. Says what operators are called, on what they work,
//! how exact they are and how targets spell them; knows nothing of how code is laid out around them.

use crate::ir::Scalar;

/// Which scalars an operand may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// `bool`.
    Bool,
    /// All integers.
    Int,
    /// Signed integers.
    Signed,
    /// Floats.
    Float,
    /// Floats of up to 32 bits.
    Single,
    /// Integers and floats.
    Number,
    /// Signed integers and floats.
    SignedNumber,
    /// Integers and `bool`.
    Bits,
    /// Everything.
    Any,
}

impl Domain {
    /// Whether `s` belongs to the domain.
    pub const fn contains(self, s: Scalar) -> bool {
        match self {
            Domain::Bool => matches!(s, Scalar::Bool),
            Domain::Int => s.is_int(),
            Domain::Signed => s.is_signed_int(),
            Domain::Float => s.is_float(),
            Domain::Single => s.is_float() && s.size() <= 4,
            Domain::Number => s.is_int() || s.is_float(),
            Domain::SignedNumber => s.is_signed_int() || s.is_float(),
            Domain::Bits => s.is_int() || matches!(s, Scalar::Bool),
            Domain::Any => true,
        }
    }

    /// The domain in words, for messages.
    pub const fn describe(self) -> &'static str {
        match self {
            Domain::Bool => "bool",
            Domain::Int => "an integer",
            Domain::Signed => "a signed integer",
            Domain::Float => "a float",
            Domain::Single => "a float of at most 32 bits",
            Domain::Number => "an integer or a float",
            Domain::SignedNumber => "a signed integer or a float",
            Domain::Bits => "an integer or bool",
            Domain::Any => "a scalar",
        }
    }
}

/// Type of an operator's result, given its first operand's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Result {
    /// The first operand's type.
    Same,
    /// `bool`.
    Bool,
    /// `u32`.
    U32,
    /// The unsigned integer of the same width.
    Unsigned,
    /// The second operand's type (`select`, whose first operand is the condition).
    Second,
}

/// Type of an operator's second operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Second {
    /// The first operand's type.
    Same,
    /// Any integer type; only its low bits count (shift and rotation amounts).
    Amount,
}

/// How exact an operator is on floats, against the correctly rounded result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exactness {
    /// Bit for bit (NaN payloads and signs aside).
    Exact,
    /// Within this many units in the last place at f32 (for f16 and bf16: the f32 result, rounded); at f64 within one.
    Ulp(u32),
}

impl Exactness {
    /// The most units in the last place that a result of this type may be off.
    pub const fn ulps(self, s: Scalar) -> u32 {
        match (self, s) {
            (Exactness::Exact, _) => 0,
            (Exactness::Ulp(_), Scalar::F64) => 1,
            (Exactness::Ulp(n), _) => n,
        }
    }

    /// The bound at f32 in words; empty where results are exact.
    pub fn words(self) -> String {
        match self {
            Exactness::Exact => String::new(),
            Exactness::Ulp(n) => format!("{n} ulp"),
        }
    }
}

/// How a C-like target writes an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spelling {
    /// `a OP b`.
    Infix(&'static str),
    /// `NAME(a, …)`; CUDA C appends `f` for f32.
    Call(&'static str),
    /// The renderer has code for it (wrapping, checks, widths).
    Special,
    /// Not written: the math library's function of the same name is called, so that every target computes the
    /// same bits.
    Library,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Name in the text form, and as a Rust method where Rust has one of that meaning.
    pub name: &'static str,
    /// Operands it works on.
    pub domain: Domain,
    /// Result type.
    pub result: Result,
    /// Second operand's type (ignored by unary operators).
    pub second: Second,
    /// Exactness on floats.
    pub exactness: Exactness,
    /// CUDA C.
    pub cuda: Spelling,
    /// WGSL.
    pub wgsl: Spelling,
    /// Metal.
    pub msl: Spelling,
    /// PTX instruction stem for the plain case, empty where the renderer has code for it.
    pub ptx: &'static str,
    /// Derivatives with respect to each operand, as expressions over the operands `x`, `y`, `z`, the result `r` and operators
    /// of this table; empty where there is none.
    pub gradient: &'static [&'static str],
    /// Meaning.
    pub doc: &'static str,
}

macro_rules! operators {
    ($(#[$meta:meta])* $enum:ident { $(
        $variant:ident $name:literal $domain:ident $result:ident $second:ident $exact:expr,
        $cuda:expr, $wgsl:expr, $msl:expr, $ptx:literal, [$($grad:literal),*], $doc:literal;
    )* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $enum { $( #[doc = $doc] $variant, )* }

        impl $enum {
            /// Every operator of this arity.
            pub const ALL: &'static [$enum] = &[$($enum::$variant),*];

            /// This operator's row of the table.
            pub const fn row(self) -> &'static Row {
                match self { $( $enum::$variant => {
                    const ROW: Row = Row {
                        name: $name, domain: Domain::$domain, result: Result::$result, second: Second::$second,
                        exactness: $exact, cuda: $cuda, wgsl: $wgsl, msl: $msl, ptx: $ptx,
                        gradient: &[$($grad),*], doc: $doc,
                    };
                    &ROW
                } )* }
            }

            /// The name in the text form.
            pub const fn name(self) -> &'static str { self.row().name }

            /// The operator called `name`, if there is one.
            pub fn from_name(name: &str) -> Option<$enum> {
                $enum::ALL.iter().copied().find(|op| op.name() == name)
            }
        }
    };
}

use Exactness::{Exact, Ulp};
use Spelling::{Call, Infix, Library, Special};

operators! {
    /// Operators of one operand.
    UnaryOp {
        Neg "neg" SignedNumber Same Same Exact, Special, Special, Special, "neg", ["-1"], "Negation; wraps at MIN.";
        Not "not" Bits Same Same Exact, Special, Special, Special, "not", [], "Complement of bits; logical not of `bool`.";
        Abs "abs" SignedNumber Same Same Exact, Special, Special, Special, "abs", ["signum(x)"], "Magnitude; wraps at MIN.";
        Signum "signum" SignedNumber Same Same Exact, Special, Special, Special, "", ["0"], "As Rust: -1, 0 or 1 for integers; for floats 1 or -1 by the sign bit, NaN for NaN.";
        Floor "floor" Float Same Same Exact, Call("floor"), Call("floor"), Call("floor"), "cvt.rmi", ["0"], "Largest integer not above.";
        Ceil "ceil" Float Same Same Exact, Call("ceil"), Call("ceil"), Call("ceil"), "cvt.rpi", ["0"], "Smallest integer not below.";
        Trunc "trunc" Float Same Same Exact, Call("trunc"), Call("trunc"), Call("trunc"), "cvt.rzi", ["0"], "Integer part.";
        Round "round" Float Same Same Exact, Call("round"), Special, Call("round"), "", ["0"], "Nearest integer, halves away from zero.";
        RoundTiesEven "round_ties_even" Float Same Same Exact, Call("rint"), Call("round"), Call("rint"), "cvt.rni", ["0"], "Nearest integer, halves to even.";
        Fract "fract" Float Same Same Exact, Special, Special, Special, "", ["1"], "x - trunc(x), as Rust (negative for negative x).";
        Sqrt "sqrt" Float Same Same Exact, Call("sqrt"), Call("sqrt"), Special, "sqrt.rn", ["div(0.5, r)"], "Square root, correctly rounded.";
        Rsqrt "rsqrt" Float Same Same Exact, Special, Special, Special, "", ["div(mul(-0.5, r), x)"], "1 / sqrt(x): two correctly rounded steps.";
        Recip "recip" Float Same Same Exact, Special, Special, Special, "", ["neg(mul(r, r))"], "1 / x, correctly rounded.";
        Exp "exp" Float Same Same Ulp(2), Library, Library, Library, "", ["r"], "e to the x.";
        Exp2 "exp2" Float Same Same Ulp(2), Library, Library, Library, "", ["mul(r, 0.6931471805599453)"], "2 to the x.";
        ExpM1 "exp_m1" Float Same Same Ulp(3), Library, Library, Library, "", ["add(r, 1)"], "exp(x) - 1 without cancellation.";
        Ln "ln" Float Same Same Ulp(2), Library, Library, Library, "", ["recip(x)"], "Natural logarithm.";
        Ln1p "ln_1p" Float Same Same Ulp(3), Library, Library, Library, "", ["recip(add(x, 1))"], "ln(1 + x) without cancellation.";
        Log2 "log2" Float Same Same Ulp(3), Library, Library, Library, "", ["div(1.4426950408889634, x)"], "Logarithm to base 2.";
        Log10 "log10" Float Same Same Ulp(3), Library, Library, Library, "", ["div(0.4342944819032518, x)"], "Logarithm to base 10.";
        Sin "sin" Float Same Same Ulp(2), Library, Library, Library, "", ["cos(x)"], "Sine of radians.";
        Cos "cos" Float Same Same Ulp(2), Library, Library, Library, "", ["neg(sin(x))"], "Cosine of radians.";
        Tan "tan" Float Same Same Ulp(4), Library, Library, Library, "", ["add(mul(r, r), 1)"], "Tangent of radians.";
        Asin "asin" Float Same Same Ulp(4), Library, Library, Library, "", ["rsqrt(sub(1, mul(x, x)))"], "Arc sine, in radians; NaN outside [-1, 1].";
        Acos "acos" Float Same Same Ulp(4), Library, Library, Library, "", ["neg(rsqrt(sub(1, mul(x, x))))"], "Arc cosine, in radians; NaN outside [-1, 1].";
        Atan "atan" Float Same Same Ulp(4), Library, Library, Library, "", ["recip(add(mul(x, x), 1))"], "Arc tangent, in radians.";
        Sinh "sinh" Float Same Same Ulp(4), Library, Library, Library, "", ["cosh(x)"], "Hyperbolic sine.";
        Cosh "cosh" Float Same Same Ulp(4), Library, Library, Library, "", ["sinh(x)"], "Hyperbolic cosine.";
        Tanh "tanh" Float Same Same Ulp(4), Library, Library, Library, "", ["sub(1, mul(r, r))"], "Hyperbolic tangent.";
        Asinh "asinh" Float Same Same Ulp(4), Library, Library, Library, "", ["rsqrt(add(mul(x, x), 1))"], "Inverse hyperbolic sine.";
        Acosh "acosh" Float Same Same Ulp(4), Library, Library, Library, "", ["rsqrt(sub(mul(x, x), 1))"], "Inverse hyperbolic cosine; NaN below 1.";
        Atanh "atanh" Float Same Same Ulp(4), Library, Library, Library, "", ["recip(sub(1, mul(x, x)))"], "Inverse hyperbolic tangent; NaN outside [-1, 1].";
        Cbrt "cbrt" Float Same Same Ulp(4), Library, Library, Library, "", ["recip(mul(3, mul(r, r)))"], "Cube root.";
        Erf "erf" Float Same Same Ulp(2), Library, Library, Library, "", ["mul(1.1283791670955126, exp(neg(mul(x, x))))"], "Error function.";
        Erfc "erfc" Float Same Same Ulp(4), Library, Library, Library, "", ["mul(-1.1283791670955126, exp(neg(mul(x, x))))"], "1 - erf(x) without cancellation.";
        Lgamma "lgamma" Float Same Same Ulp(4), Library, Library, Library, "", [], "Logarithm of the magnitude of the gamma function. Below zero, where it has zeros, the error is at most twice as many last places of the larger of the result and lgamma(1 - x).";
        ToDegrees "to_degrees" Float Same Same Ulp(1), Special, Special, Special, "", ["57.29577951308232"], "Radians to degrees: one multiplication.";
        ToRadians "to_radians" Float Same Same Ulp(1), Special, Special, Special, "", ["0.017453292519943295"], "Degrees to radians: one multiplication.";
        IsNan "is_nan" Float Bool Same Exact, Special, Special, Special, "", [], "Whether NaN.";
        IsInfinite "is_infinite" Float Bool Same Exact, Special, Special, Special, "", [], "Whether infinite.";
        IsFinite "is_finite" Float Bool Same Exact, Special, Special, Special, "", [], "Whether neither infinite nor NaN.";
        IsSignNegative "is_sign_negative" Float Bool Same Exact, Special, Special, Special, "", [], "Whether the sign bit is set.";
        CountOnes "count_ones" Int U32 Same Exact, Special, Special, Special, "popc", [], "Number of one bits.";
        LeadingZeros "leading_zeros" Int U32 Same Exact, Special, Special, Special, "clz", [], "Zero bits above the highest one; the width for 0.";
        TrailingZeros "trailing_zeros" Int U32 Same Exact, Special, Special, Special, "", [], "Zero bits below the lowest one; the width for 0.";
        ReverseBits "reverse_bits" Int Same Same Exact, Special, Special, Special, "brev", [], "Bits in reverse order.";
        SwapBytes "swap_bytes" Int Same Same Exact, Special, Special, Special, "", [], "Bytes in reverse order.";
    }
}

operators! {
    /// Operators of two operands.
    BinaryOp {
        Add "add" Number Same Same Exact, Special, Special, Special, "add", ["1", "1"], "Sum; wraps.";
        Sub "sub" Number Same Same Exact, Special, Special, Special, "sub", ["1", "-1"], "Difference; wraps.";
        Mul "mul" Number Same Same Exact, Special, Special, Special, "mul", ["y", "x"], "Product; wraps.";
        Div "div" Number Same Same Exact, Special, Special, Special, "div", ["recip(y)", "neg(div(r, y))"], "Quotient: truncated for integers (faults at zero and MIN / -1), correctly rounded for floats.";
        Rem "rem" Number Same Same Exact, Special, Special, Special, "rem", ["1", "neg(trunc(div(x, y)))"], "Remainder with the dividend's sign: x - trunc(x / y) * y, exact for floats (fmod); integers fault at zero and MIN % -1.";
        Min "min" Number Same Same Exact, Special, Special, Special, "min", ["select(le(x, y), 1, 0)", "select(le(x, y), 0, 1)"], "Smaller; the other one if one is NaN; either zero of a pair of zeros.";
        Max "max" Number Same Same Exact, Special, Special, Special, "max", ["select(ge(x, y), 1, 0)", "select(ge(x, y), 0, 1)"], "Larger; the other one if one is NaN; either zero of a pair of zeros.";
        And "and" Bits Same Same Exact, Infix("&"), Infix("&"), Infix("&"), "and", [], "Bitwise and; of `bool`s without short circuit.";
        Or "or" Bits Same Same Exact, Infix("|"), Infix("|"), Infix("|"), "or", [], "Bitwise or; of `bool`s without short circuit.";
        Xor "xor" Bits Same Same Exact, Infix("^"), Special, Infix("^"), "xor", [], "Bitwise exclusive or.";
        Shl "shl" Int Same Amount Exact, Special, Special, Special, "shl", [], "Left shift; the amount is taken modulo the width.";
        Shr "shr" Int Same Amount Exact, Special, Special, Special, "shr", [], "Right shift, arithmetic for signed types; the amount is taken modulo the width.";
        RotateLeft "rotate_left" Int Same Amount Exact, Special, Special, Special, "", [], "Left rotation; the amount is taken modulo the width.";
        RotateRight "rotate_right" Int Same Amount Exact, Special, Special, Special, "", [], "Right rotation; the amount is taken modulo the width.";
        Eq "eq" Any Bool Same Exact, Infix("=="), Infix("=="), Infix("=="), "eq", [], "Equal; false with NaN.";
        Ne "ne" Any Bool Same Exact, Infix("!="), Infix("!="), Infix("!="), "ne", [], "Not equal; true with NaN.";
        Lt "lt" Number Bool Same Exact, Infix("<"), Infix("<"), Infix("<"), "lt", [], "Less; false with NaN.";
        Le "le" Number Bool Same Exact, Infix("<="), Infix("<="), Infix("<="), "le", [], "Less or equal; false with NaN.";
        Gt "gt" Number Bool Same Exact, Infix(">"), Infix(">"), Infix(">"), "gt", [], "Greater; false with NaN.";
        Ge "ge" Number Bool Same Exact, Infix(">="), Infix(">="), Infix(">="), "ge", [], "Greater or equal; false with NaN.";
        MulHigh "mul_high" Int Same Same Exact, Special, Special, Special, "mul.hi", [], "Upper half of the double-width product.";
        SaturatingAdd "saturating_add" Int Same Same Exact, Special, Special, Special, "", [], "Sum, clamped to the type's range.";
        SaturatingSub "saturating_sub" Int Same Same Exact, Special, Special, Special, "", [], "Difference, clamped to the type's range.";
        AbsDiff "abs_diff" Int Unsigned Same Exact, Special, Special, Special, "", [], "Magnitude of the difference, unsigned.";
        Copysign "copysign" Float Same Same Exact, Special, Special, Special, "", ["mul(signum(x), signum(y))", "0"], "Magnitude of the first, sign of the second.";
        Pow "pow" Float Same Same Ulp(4), Library, Library, Library, "", ["mul(y, pow(x, sub(y, 1)))", "mul(r, ln(x))"], "x to the y (`powf` in Rust).";
        Atan2 "atan2" Float Same Same Ulp(6), Library, Library, Library, "", ["div(y, add(mul(x, x), mul(y, y)))", "neg(div(x, add(mul(x, x), mul(y, y))))"], "Angle of the point (y, x): first operand over second, in radians.";
        Hypot "hypot" Float Same Same Ulp(4), Library, Library, Library, "", ["div(x, r)", "div(y, r)"], "sqrt(x² + y²) without overflow between.";
    }
}

operators! {
    /// Operators of three operands.
    TernaryOp {
        Fma "fma" Float Same Same Exact, Special, Special, Special, "fma.rn", ["y", "x", "1"], "x * y + z, rounded once (f16 and bf16: the f32 fma, rounded).";
        Select "select" Bool Second Same Exact, Special, Special, Special, "selp", [], "Second operand where the first is true, else the third; of any one type.";
        Clamp "clamp" Number Same Same Exact, Special, Special, Special, "", [], "min(max(x, y), z): x limited to [y, z].";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        let mut seen = std::collections::HashSet::new();
        for &op in UnaryOp::ALL {
            assert!(seen.insert(op.name()));
            assert_eq!(UnaryOp::from_name(op.name()), Some(op));
        }
        for &op in BinaryOp::ALL {
            assert!(seen.insert(op.name()));
            assert_eq!(BinaryOp::from_name(op.name()), Some(op));
        }
        for &op in TernaryOp::ALL {
            assert!(seen.insert(op.name()));
            assert_eq!(TernaryOp::from_name(op.name()), Some(op));
        }
    }
}
