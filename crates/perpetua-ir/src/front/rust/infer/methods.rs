//! Methods of scalars: which there are, for which types, with which arguments and results. Most are rows of the
//! operator table; the rest are combinations of rows.

use std::rc::Rc;

use perpetua_syntax::Scalar;

use super::method_rows::{Arg, OTHERS, Res};
pub(crate) use super::method_rows::{Method, Special, Written};
use super::ty::{ClosureTy, Len, Ty, ordering};
use super::widths::signed;
pub(crate) use super::widths::{Num, WIDE_NAMES, num, num_of, unsigned};
use crate::ops::{BinaryOp, Domain, Result as OpResult, Second, TernaryOp, UnaryOp};

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

/// The array of a scalar's bytes.
pub(crate) fn bytes(s: Scalar) -> Ty {
    // `usize` has eight bytes on hosts; where it has four, nothing of it has a layout.
    Ty::Array(
        Ty::Scalar(Scalar::U8).into(),
        Len::Known(num(s, 64).size().into()),
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
    let ir = num(s, 64).like();
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
                    | Special::WideningMul
            )
        ) || matches!(
            *name,
            "cast_signed"
                | "wrapping_add_signed"
                | "checked_add_signed"
                | "checked_next_power_of_two"
                | "checked_signed_diff"
                | "checked_next_multiple_of"
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
            Res::OptionSigned => Ty::Option(Ty::Scalar(signed(s)).into()),
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

/// What to write instead of a method of slices that is not in the language.
pub(super) fn instead(name: &str) -> Option<&'static str> {
    Some(match name {
        "as_chunks" | "as_chunks_mut" | "as_rchunks" => {
            "go over `chunks_exact(N)`, whose items `first_chunk::<N>()` turns into arrays; its `remainder()` has the rest"
        }
        "array_windows" | "array_chunks" => {
            "go over `windows(N)` or `chunks_exact(N)`, whose items patterns take apart"
        }
        "split" | "split_mut" | "split_inclusive" | "rsplit" | "splitn" | "rsplitn" | "chunk_by" => {
            "find where a part ends with `position`, and go on behind it in a loop"
        }
        "concat" | "join" | "repeat" | "into_vec" => "write into a buffer: kernels allocate nothing",
        _ => return None,
    })
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
