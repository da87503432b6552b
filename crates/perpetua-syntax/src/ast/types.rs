//! Types as written, and the scalar types by name.
//!
//! Nothing is inferred: sizes, layouts and what a name stands for belong to the lowering.

use super::{Expr, PathId};
use crate::nesting::guarded_serde;
use serde::{Deserialize, Serialize};

/// A scalar type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "each is the Rust type of the same name; f16 and bf16 are the crate half's"
)]
pub enum Scalar {
    Bool,
    I8,
    I16,
    I32,
    I64,
    I128,
    Isize,
    U8,
    U16,
    U32,
    U64,
    U128,
    Usize,
    F16,
    Bf16,
    F32,
    F64,
}

impl Scalar {
    /// Every scalar type.
    pub const ALL: [Self; 17] = [
        Self::Bool,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::I128,
        Self::Isize,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::U128,
        Self::Usize,
        Self::F16,
        Self::Bf16,
        Self::F32,
        Self::F64,
    ];

    /// The type's name in Rust.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::I128 => "i128",
            Self::Isize => "isize",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::U128 => "u128",
            Self::Usize => "usize",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// The type of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scalar| scalar.name() == name)
    }

    /// Whether it is one of the twelve integer types.
    #[must_use]
    pub fn is_integer(self) -> bool {
        !self.is_float() && self != Self::Bool
    }

    /// Whether it is one of the four floating-point types.
    #[must_use]
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }
}

/// A type as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum Type {
    /// `()`.
    Unit,
    /// `_`: to be inferred.
    Infer,
    /// A scalar.
    Scalar(Scalar),
    /// `&T`, `&mut T`, `&[T]`, `&mut [T]`.
    Ref {
        /// Whether it is `&mut`.
        mutable: bool,
        /// What it refers to.
        target: Box<Type>,
    },
    /// `[T]`; only behind a reference.
    Slice(Box<Type>),
    /// `[T; N]`.
    Array {
        /// The element type.
        element: Box<Type>,
        /// The length: a constant expression of type `usize`.
        len: Box<Expr>,
    },
    /// `(A, B)`, at least one element.
    Tuple(Vec<Type>),
    /// A struct, enum or type alias: [`PathUsage::Type`](super::PathUsage::Type).
    Named(PathId),
    /// The type parameter of this index in [`Function::generics`](super::Function::generics).
    Generic(u32),
    /// `Self`.
    SelfType,
    /// `T::Output`, `Self::Output`, `<T as Trait>::Output`: a type that belongs to a type.
    Assoc(Box<TypeMember>),
    /// `Option<T>`.
    Option(Box<Type>),
    /// `Result<T, E>`.
    Result(Box<(Type, Type)>),
    /// `Range<T>`, or `RangeInclusive<T>` where it has its end.
    Range(Box<Type>, bool),
    /// `GridPos`, the position of a stencil's cell.
    GridPos,
}

/// How the names of lengths begin that call functions. rustc computes them; whoever resolves a function's names knows their values.
pub const COMPUTED_LENGTH: &str = "__PERPETUA_LENGTH_";

/// A member of a type: `T::name`, `<T as Trait>::name`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeMember {
    /// The type before `::`; [`Type::Infer`] where the path says the trait alone.
    pub ty: Type,
    /// The trait's name, where the path says it.
    pub via: Option<String>,
    /// The member.
    pub name: String,
}

/// A generic argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GenericArg {
    /// A type.
    Type(Type),
    /// A constant: a literal, a const parameter, a name of capitals only (`foo::<WIDTH>`, since syntax alone
    /// cannot tell it from a type), or a block `{ N + 1 }`.
    Const(Expr),
}

guarded_serde!(Type);
