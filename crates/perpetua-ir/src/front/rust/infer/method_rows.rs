//! The methods of scalars that Rust has beside the rows of the operator table.

use crate::ops::{BinaryOp, Domain, TernaryOp, UnaryOp};

/// A method of scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// A row of the operator table.
    Unary(UnaryOp),
    /// A row of the operator table.
    Binary(BinaryOp),
    /// A row of the operator table.
    Ternary(TernaryOp),
    /// A combination of rows.
    Special(Special),
    /// Code in the language.
    Written(Written),
}

/// A method of scalars that is code in the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// `checked_add` and its kin: `Some` where the method of the rest of the name has a result.
    Checked,
    /// `cmp`, `partial_cmp`.
    Order,
    /// `total_cmp`.
    TotalOrder,
    /// A method of a byte as a character.
    Ascii,
    /// `then`, `then_some`.
    Then,
}

/// A method that is a combination of rows; each is the Rust method of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Same,
    ToBits,
    ToFloat,
    /// A f16 or bf16 of an f64, rounded once.
    FromF64,
    ToLeBytes,
    ToBeBytes,
    /// The signed integer whose order is the total order of floats.
    TotalOrder,
    IsNormal,
    IsSubnormal,
    Ilog10,
    Midpoint,
    IsMultipleOf,
    UnboundedShl,
    UnboundedShr,
    /// With an operand of the other signedness, which is added by its bits.
    AddOther,
    SubOther,
    OverflowingAddSigned,
    SaturatingAddSigned,
    OverflowingNeg,
    OverflowingPow,
    SaturatingPow,
    CarryingAdd,
    BorrowingSub,
    CarryingMul,
    WideningMul,
    WrappingNeg,
    WrappingDiv,
    WrappingRem,
    SaturatingMul,
    OverflowingAdd,
    OverflowingSub,
    OverflowingMul,
    UnsignedAbs,
    IsPositive,
    IsNegative,
    IsSignPositive,
    CountZeros,
    LeadingOnes,
    TrailingOnes,
    IsPowerOfTwo,
    NextPowerOfTwo,
    Ilog2,
    Isqrt,
    RemEuclid,
    DivEuclid,
    DivCeil,
    NextMultipleOf,
    Pow,
    Powi,
    SinCos,
    Log,
}

/// The type of an argument, for a receiver's.
#[derive(Clone, Copy)]
pub(super) enum Arg {
    Same,
    U32,
    I32,
    Bool,
    Signed,
    Unsigned,
    /// A reference to one of the receiver's type.
    Ref,
    Closure,
    /// Of any type.
    Other,
}

/// The type of the result.
#[derive(Clone, Copy)]
pub(super) enum Res {
    Same,
    Bool,
    U32,
    Unsigned,
    Signed,
    F32,
    F64,
    Pair,
    WithBool,
    Bytes,
    Ordering,
    /// `Option` of the receiver's type.
    Option,
    OptionU32,
    OptionOrdering,
    OptionOther,
}

/// Methods that Rust has beside the table's: name, receiver, arguments, result, meaning.
pub(super) const OTHERS: &[(&str, Domain, &[Arg], Res, Method)] = {
    use Arg::{Bool, I32, Same, U32, Unsigned as AsUnsigned};
    use Domain::{Any, Bits, Float, Int, Number, Signed};
    use Method::{Binary, Special as S, Unary, Written as W};
    use Res::OptionU32;
    use Written::{Ascii, Checked};
    &[
        ("cmp", Bits, &[Arg::Ref], Res::Ordering, W(Written::Order)),
        (
            "partial_cmp",
            Any,
            &[Arg::Ref],
            Res::OptionOrdering,
            W(Written::Order),
        ),
        (
            "total_cmp",
            Float,
            &[Arg::Ref],
            Res::Ordering,
            W(Written::TotalOrder),
        ),
        (
            "then",
            Domain::Bool,
            &[Arg::Closure],
            Res::OptionOther,
            W(Written::Then),
        ),
        (
            "then_some",
            Domain::Bool,
            &[Arg::Other],
            Res::OptionOther,
            W(Written::Then),
        ),
        ("checked_add", Int, &[Same], Res::Option, W(Checked)),
        ("checked_sub", Int, &[Same], Res::Option, W(Checked)),
        ("checked_mul", Int, &[Same], Res::Option, W(Checked)),
        ("checked_div", Int, &[Same], Res::Option, W(Checked)),
        ("checked_rem", Int, &[Same], Res::Option, W(Checked)),
        ("checked_div_euclid", Int, &[Same], Res::Option, W(Checked)),
        ("checked_rem_euclid", Int, &[Same], Res::Option, W(Checked)),
        ("checked_neg", Int, &[], Res::Option, W(Checked)),
        ("checked_abs", Signed, &[], Res::Option, W(Checked)),
        ("checked_pow", Int, &[U32], Res::Option, W(Checked)),
        ("checked_shl", Int, &[U32], Res::Option, W(Checked)),
        ("checked_shr", Int, &[U32], Res::Option, W(Checked)),
        ("checked_add_signed", Int, &[Arg::Signed], Res::Option, W(Checked)),
        ("checked_next_power_of_two", Int, &[], Res::Option, W(Checked)),
        ("checked_ilog2", Int, &[], OptionU32, W(Checked)),
        ("checked_ilog10", Int, &[], OptionU32, W(Checked)),
        ("is_ascii", Int, &[], Res::Bool, W(Ascii)),
        ("is_ascii_alphabetic", Int, &[], Res::Bool, W(Ascii)),
        ("is_ascii_uppercase", Int, &[], Res::Bool, W(Ascii)),
        ("is_ascii_lowercase", Int, &[], Res::Bool, W(Ascii)),
        ("is_ascii_digit", Int, &[], Res::Bool, W(Ascii)),
        ("is_ascii_alphanumeric", Int, &[], Res::Bool, W(Ascii)),
        ("is_ascii_hexdigit", Int, &[], Res::Bool, W(Ascii)),
        ("is_ascii_whitespace", Int, &[], Res::Bool, W(Ascii)),
        ("is_ascii_graphic", Int, &[], Res::Bool, W(Ascii)),
        ("is_ascii_control", Int, &[], Res::Bool, W(Ascii)),
        ("is_ascii_punctuation", Int, &[], Res::Bool, W(Ascii)),
        ("to_ascii_lowercase", Int, &[], Res::Same, W(Ascii)),
        ("to_ascii_uppercase", Int, &[], Res::Same, W(Ascii)),
        ("eq_ignore_ascii_case", Int, &[Arg::Ref], Res::Bool, W(Ascii)),
        ("clone", Any, &[], Res::Same, S(Special::Same)),
        ("to_bits", Float, &[], Res::Unsigned, S(Special::ToBits)),
        ("to_f32", Float, &[], Res::F32, S(Special::ToFloat)),
        ("to_f64", Float, &[], Res::F64, S(Special::ToFloat)),
        ("wrapping_add", Int, &[Same], Res::Same, Binary(BinaryOp::Add)),
        ("wrapping_sub", Int, &[Same], Res::Same, Binary(BinaryOp::Sub)),
        ("wrapping_mul", Int, &[Same], Res::Same, Binary(BinaryOp::Mul)),
        ("wrapping_shl", Int, &[U32], Res::Same, Binary(BinaryOp::Shl)),
        ("wrapping_shr", Int, &[U32], Res::Same, Binary(BinaryOp::Shr)),
        ("wrapping_abs", Signed, &[], Res::Same, Unary(UnaryOp::Abs)),
        ("wrapping_neg", Int, &[], Res::Same, S(Special::WrappingNeg)),
        ("wrapping_div", Int, &[Same], Res::Same, S(Special::WrappingDiv)),
        ("wrapping_rem", Int, &[Same], Res::Same, S(Special::WrappingRem)),
        ("wrapping_pow", Int, &[U32], Res::Same, S(Special::Pow)),
        (
            "saturating_mul",
            Int,
            &[Same],
            Res::Same,
            S(Special::SaturatingMul),
        ),
        (
            "overflowing_add",
            Int,
            &[Same],
            Res::WithBool,
            S(Special::OverflowingAdd),
        ),
        (
            "overflowing_sub",
            Int,
            &[Same],
            Res::WithBool,
            S(Special::OverflowingSub),
        ),
        (
            "overflowing_mul",
            Int,
            &[Same],
            Res::WithBool,
            S(Special::OverflowingMul),
        ),
        (
            "unsigned_abs",
            Signed,
            &[],
            Res::Unsigned,
            S(Special::UnsignedAbs),
        ),
        ("is_positive", Signed, &[], Res::Bool, S(Special::IsPositive)),
        ("is_negative", Signed, &[], Res::Bool, S(Special::IsNegative)),
        (
            "is_sign_positive",
            Float,
            &[],
            Res::Bool,
            S(Special::IsSignPositive),
        ),
        ("count_zeros", Int, &[], Res::U32, S(Special::CountZeros)),
        ("leading_ones", Int, &[], Res::U32, S(Special::LeadingOnes)),
        ("trailing_ones", Int, &[], Res::U32, S(Special::TrailingOnes)),
        ("is_power_of_two", Int, &[], Res::Bool, S(Special::IsPowerOfTwo)),
        (
            "next_power_of_two",
            Int,
            &[],
            Res::Same,
            S(Special::NextPowerOfTwo),
        ),
        ("ilog2", Int, &[], Res::U32, S(Special::Ilog2)),
        ("isqrt", Int, &[], Res::Same, S(Special::Isqrt)),
        ("rem_euclid", Number, &[Same], Res::Same, S(Special::RemEuclid)),
        ("div_euclid", Number, &[Same], Res::Same, S(Special::DivEuclid)),
        ("div_ceil", Int, &[Same], Res::Same, S(Special::DivCeil)),
        (
            "next_multiple_of",
            Int,
            &[Same],
            Res::Same,
            S(Special::NextMultipleOf),
        ),
        ("pow", Int, &[U32], Res::Same, S(Special::Pow)),
        ("powi", Float, &[I32], Res::Same, S(Special::Powi)),
        ("sin_cos", Float, &[], Res::Pair, S(Special::SinCos)),
        ("log", Float, &[Same], Res::Same, S(Special::Log)),
        ("to_le_bytes", Number, &[], Res::Bytes, S(Special::ToLeBytes)),
        ("to_ne_bytes", Number, &[], Res::Bytes, S(Special::ToLeBytes)),
        ("to_be_bytes", Number, &[], Res::Bytes, S(Special::ToBeBytes)),
        ("total order", Float, &[], Res::Signed, S(Special::TotalOrder)),
        ("is_normal", Float, &[], Res::Bool, S(Special::IsNormal)),
        ("is_subnormal", Float, &[], Res::Bool, S(Special::IsSubnormal)),
        ("ilog10", Int, &[], Res::U32, S(Special::Ilog10)),
        ("midpoint", Number, &[Same], Res::Same, S(Special::Midpoint)),
        (
            "is_multiple_of",
            Int,
            &[Same],
            Res::Bool,
            S(Special::IsMultipleOf),
        ),
        ("unbounded_shl", Int, &[U32], Res::Same, S(Special::UnboundedShl)),
        ("unbounded_shr", Int, &[U32], Res::Same, S(Special::UnboundedShr)),
        ("cast_signed", Int, &[], Res::Signed, S(Special::ToBits)),
        ("cast_unsigned", Signed, &[], Res::Unsigned, S(Special::ToBits)),
        (
            "wrapping_add_signed",
            Int,
            &[Arg::Signed],
            Res::Same,
            S(Special::AddOther),
        ),
        (
            "overflowing_add_signed",
            Int,
            &[Arg::Signed],
            Res::WithBool,
            S(Special::OverflowingAddSigned),
        ),
        (
            "saturating_add_signed",
            Int,
            &[Arg::Signed],
            Res::Same,
            S(Special::SaturatingAddSigned),
        ),
        (
            "wrapping_add_unsigned",
            Signed,
            &[AsUnsigned],
            Res::Same,
            S(Special::AddOther),
        ),
        (
            "wrapping_sub_unsigned",
            Signed,
            &[AsUnsigned],
            Res::Same,
            S(Special::SubOther),
        ),
        (
            "overflowing_neg",
            Int,
            &[],
            Res::WithBool,
            S(Special::OverflowingNeg),
        ),
        (
            "overflowing_pow",
            Int,
            &[U32],
            Res::WithBool,
            S(Special::OverflowingPow),
        ),
        (
            "saturating_pow",
            Int,
            &[U32],
            Res::Same,
            S(Special::SaturatingPow),
        ),
        (
            "carrying_add",
            Int,
            &[Same, Bool],
            Res::WithBool,
            S(Special::CarryingAdd),
        ),
        (
            "borrowing_sub",
            Int,
            &[Same, Bool],
            Res::WithBool,
            S(Special::BorrowingSub),
        ),
        (
            "carrying_mul",
            Int,
            &[Same, Same],
            Res::Pair,
            S(Special::CarryingMul),
        ),
        ("widening_mul", Int, &[Same], Res::Pair, S(Special::WideningMul)),
        ("bitand", Bits, &[Same], Res::Same, Binary(BinaryOp::And)),
        ("bitor", Bits, &[Same], Res::Same, Binary(BinaryOp::Or)),
        ("bitxor", Bits, &[Same], Res::Same, Binary(BinaryOp::Xor)),
    ]
};
