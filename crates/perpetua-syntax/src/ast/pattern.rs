//! Patterns of `match`, `let` and `for`.

use super::{Expr, Line, PathId, Scalar, TypeMember};
use crate::nesting::guarded_serde;
use serde::{Deserialize, Serialize};

/// An arm of a `match`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    /// Where its pattern stands.
    pub line: Line,
    /// What it matches.
    pub pattern: Pattern,
    /// The condition after `if`.
    pub guard: Option<Expr>,
    /// Its value.
    pub body: Expr,
}

/// A pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Pattern {
    /// Where it stands.
    pub line: Line,
    /// What it is.
    pub kind: PatternKind,
}

/// What a pattern is. In `let` only `Wild`, `Binding` and `Tuple` occur, in `for` only the first two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PatternKind {
    /// `_`.
    Wild,
    /// A new local.
    Binding {
        /// Its name.
        name: String,
        /// Whether it is `mut`.
        mutable: bool,
    },
    /// A constant that must be equal.
    Const(PatternConst),
    /// `a..=b`, `a..b`, `a..`, `..=b`, `..b`.
    Range {
        /// The first value.
        start: Option<PatternConst>,
        /// The bound.
        end: Option<PatternConst>,
        /// Whether the bound matches.
        inclusive: bool,
    },
    /// `a | b`, at least two.
    Or(Vec<Pattern>),
    /// `(a, b)`, and `()`.
    Tuple(Vec<Pattern>),
}

/// A constant in a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PatternConst {
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int {
        /// Whether a minus stands before it.
        negative: bool,
        /// Its magnitude.
        value: u128,
        /// Its type, where written.
        suffix: Option<Scalar>,
    },
    /// A constant or an enum's variant: [`PathUsage::Pattern`](super::PathUsage::Pattern).
    Path(PathId),
    /// `i32::MAX`, `T::MIN`.
    TypeConst(Box<TypeMember>),
}

guarded_serde!(Pattern);
