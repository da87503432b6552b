//! Methods of scalars: which there are, for which types, with which arguments and results. Most are rows of the
//! operator table; the rest are combinations of rows.

use std::rc::Rc;

use perpetua_syntax::Scalar;

use super::order::ordering;
use super::ty::{ClosureTy, Len, Ty};
use super::widths::signed;
pub(crate) use super::widths::{ir_scalar, unsigned};
use crate::ops::{BinaryOp, Domain, Result as OpResult, Second, TernaryOp, UnaryOp};

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

/// A method's signature for one receiver type.
pub(crate) struct Signature {
    pub(crate) method: Method,
    /// Types of the arguments after the receiver.
    pub(crate) args: Vec<Ty>,
    pub(crate) result: Ty,
}

/// Why there is no signature.
pub(crate) enum NoMethod {
    /// No scalar has it.
    Unknown,
    /// Others have it: says which.
    Domain(&'static str),
}

#[derive(Clone, Copy)]
enum Arg {
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

#[derive(Clone, Copy)]
enum Res {
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

/// Rows whose names are operators in Rust, or that Rust spells otherwise.
fn is_operator(name: &str) -> bool {
    matches!(
        name,
        "neg"
            | "not"
            | "add"
            | "sub"
            | "mul"
            | "div"
            | "rem"
            | "and"
            | "or"
            | "xor"
            | "shl"
            | "shr"
            | "eq"
            | "ne"
            | "lt"
            | "le"
            | "gt"
            | "ge"
            | "pow"
            | "fma"
            | "select"
    )
}

fn row_of(name: &str) -> Option<Method> {
    match name {
        "powf" => Some(Method::Binary(BinaryOp::Pow)),
        "mul_add" => Some(Method::Ternary(TernaryOp::Fma)),
        _ if is_operator(name) => None,
        _ => UnaryOp::from_name(name)
            .map(Method::Unary)
            .or_else(|| BinaryOp::from_name(name).map(Method::Binary))
            .or_else(|| TernaryOp::from_name(name).map(Method::Ternary)),
    }
}

/// Methods that Rust has beside the table's: name, receiver, arguments, result, meaning.
const OTHERS: &[(&str, Domain, &[Arg], Res, Method)] = {
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
        ("bitand", Bits, &[Same], Res::Same, Binary(BinaryOp::And)),
        ("bitor", Bits, &[Same], Res::Same, Binary(BinaryOp::Or)),
        ("bitxor", Bits, &[Same], Res::Same, Binary(BinaryOp::Xor)),
    ]
};

/// The array of a scalar's bytes.
pub(crate) fn bytes(s: Scalar) -> Ty {
    // `usize` has eight bytes on hosts; where it has four, nothing of it has a layout.
    Ty::Array(
        Ty::Scalar(Scalar::U8).into(),
        Len::Known(ir_scalar(s, 64).size().into()),
    )
}

/// What a domain is called in a message.
fn domain_text(domain: Domain) -> &'static str {
    match domain {
        Domain::Bool => "bool",
        Domain::Int => "the integer types",
        Domain::Signed => "the signed integer types",
        Domain::Float => "the float types",
        Domain::Single => "f32, f16 and bf16",
        Domain::Number => "the integer and float types",
        Domain::SignedNumber => "the signed integer and the float types",
        Domain::Bits => "the integer types and bool",
        Domain::Any => "all scalar types",
    }
}

/// The method `name` of the scalar `s`.
pub(crate) fn lookup(s: Scalar, name: &str) -> Result<Signature, NoMethod> {
    let ir = ir_scalar(s, 64);
    let same = Ty::Scalar(s);
    if let Some((name, domain, args, result, method)) = OTHERS.iter().find(|row| row.0 == name) {
        let unsigned_only = matches!(
            method,
            Method::Special(
                Special::DivCeil
                    | Special::NextMultipleOf
                    | Special::IsPowerOfTwo
                    | Special::NextPowerOfTwo
                    | Special::IsMultipleOf
                    | Special::OverflowingAddSigned
                    | Special::SaturatingAddSigned
                    | Special::CarryingAdd
                    | Special::BorrowingSub
                    | Special::CarryingMul
            )
        ) || matches!(
            *name,
            "cast_signed" | "wrapping_add_signed" | "checked_add_signed" | "checked_next_power_of_two"
        );
        if *method == Method::Written(Written::Ascii) && s != Scalar::U8 {
            return Err(NoMethod::Domain("`u8` alone"));
        }
        if unsigned_only && !ir.is_unsigned_int() {
            return Err(NoMethod::Domain("the unsigned integer types"));
        }
        if !domain.contains(ir) {
            return Err(NoMethod::Domain(domain_text(*domain)));
        }
        let args = args.iter().map(|a| match a {
            Arg::Same => same.clone(),
            Arg::U32 => Ty::U32,
            Arg::I32 => Ty::I32,
            Arg::Bool => Ty::BOOL,
            Arg::Signed => Ty::Scalar(signed(s)),
            Arg::Unsigned => Ty::Scalar(unsigned(s)),
            Arg::Ref => Ty::Ref(false, same.clone().into()),
            Arg::Closure => Ty::Closure(Rc::new(ClosureTy {
                id: 0,
                params: Vec::new(),
                ret: Ty::unit(),
            })),
            Arg::Other => Ty::Var(0),
        });
        let result = match result {
            Res::Same => same.clone(),
            Res::Bool => Ty::BOOL,
            Res::U32 => Ty::U32,
            Res::Unsigned => Ty::Scalar(unsigned(s)),
            Res::Signed => Ty::Scalar(signed(s)),
            Res::Bytes => bytes(s),
            Res::F32 => Ty::Scalar(Scalar::F32),
            Res::F64 => Ty::Scalar(Scalar::F64),
            Res::Pair => Ty::Tuple([same.clone(), same.clone()].into()),
            Res::WithBool => Ty::Tuple([same.clone(), Ty::BOOL].into()),
            Res::Ordering => ordering(),
            Res::Option => Ty::Option(same.clone().into()),
            Res::OptionU32 => Ty::Option(Ty::U32.into()),
            Res::OptionOrdering => Ty::Option(ordering().into()),
            Res::OptionOther => Ty::Option(Ty::Var(0).into()),
        };
        return Ok(Signature {
            method: *method,
            args: args.collect(),
            result,
        });
    }
    let method = row_of(name).ok_or(NoMethod::Unknown)?;
    let (row, extra) = match method {
        Method::Unary(op) => (op.row(), 0),
        Method::Binary(op) => (op.row(), 1),
        Method::Ternary(op) => (op.row(), 2),
        Method::Special(_) | Method::Written(_) => return Err(NoMethod::Unknown),
    };
    if !row.domain.contains(ir) {
        return Err(NoMethod::Domain(domain_text(row.domain)));
    }
    let arg = match row.second {
        Second::Same => same.clone(),
        Second::Amount => Ty::U32,
    };
    Ok(Signature {
        method,
        args: vec![arg; extra],
        result: match row.result {
            OpResult::Same | OpResult::Second => same,
            OpResult::Bool => Ty::BOOL,
            OpResult::U32 => Ty::U32,
            OpResult::Unsigned => Ty::Scalar(unsigned(s)),
        },
    })
}

/// How the method is code in the language, where it is and takes so many arguments.
pub(crate) fn written(s: Scalar, name: &str, args: usize) -> Option<Written> {
    let signature = lookup(s, name).ok().filter(|known| known.args.len() == args)?;
    match signature.method {
        Method::Written(how) => Some(how),
        _ => None,
    }
}

/// Every method's name, in the tables' order.
#[cfg(test)]
pub(crate) fn names() -> Vec<&'static str> {
    let rows = UnaryOp::ALL.iter().map(|op| op.name());
    let rows = rows.chain(BinaryOp::ALL.iter().map(|op| op.name()));
    let rows = rows.chain(TernaryOp::ALL.iter().map(|op| op.name()));
    let rows = rows.filter(|name| !is_operator(name)).chain(["powf", "mul_add"]);
    rows.chain(OTHERS.iter().map(|row| row.0)).collect()
}
