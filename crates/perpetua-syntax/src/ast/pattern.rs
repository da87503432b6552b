//! Patterns of `match`, `let` and `for`.

use super::{Expr, Line, PathId, Scalar, StructName, TypeMember, Variant};
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

/// What a pattern is. In `let` only those that always match occur, in `for` only the first two.
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
    /// `(a, b)`, and `()`; at most one element is [`PatternKind::Rest`].
    Tuple(Vec<Pattern>),
    /// `[a, b]`; at most one element is [`PatternKind::Rest`].
    Array(Vec<Pattern>),
    /// `..` among the elements of a tuple or an array.
    Rest,
    /// `S { x: 0, y, .. }`.
    Struct {
        /// As of a literal.
        name: StructName,
        /// Fields in the order written.
        fields: Vec<(String, Pattern)>,
        /// Whether `..` stands for the others.
        rest: bool,
    },
    /// `S(0, y)`; at most one part is [`PatternKind::Rest`].
    TupleStruct {
        /// As of a literal.
        name: StructName,
        /// The fields.
        parts: Vec<Pattern>,
    },
    /// `name @ pattern`.
    At {
        /// The new local.
        name: String,
        /// Whether it is `mut`.
        mutable: bool,
        /// What must match.
        pattern: Box<Pattern>,
    },
    /// `Some(x)`, `None`, `Ok(x)`, `Err(x)`.
    Variant {
        /// Which.
        variant: Variant,
        /// What it holds.
        payload: Option<Box<Pattern>>,
    },
    /// `&pattern`, `&mut pattern`.
    Ref(Box<Pattern>),
}

impl Pattern {
    /// The names that it binds, in order, and whether each is `mut`.
    #[must_use]
    pub fn names(&self) -> Vec<(String, bool)> {
        let mut names = Vec::new();
        self.add_names(&mut names);
        names
    }

    fn add_names(&self, names: &mut Vec<(String, bool)>) {
        match &self.kind {
            PatternKind::Binding { name, mutable } => names.push((name.clone(), *mutable)),
            PatternKind::At {
                name,
                mutable,
                pattern,
            } => {
                names.push((name.clone(), *mutable));
                pattern.add_names(names);
            }
            PatternKind::Ref(pattern) => pattern.add_names(names),
            PatternKind::Variant { payload, .. } => {
                payload.iter().for_each(|payload| payload.add_names(names));
            }
            PatternKind::Tuple(parts)
            | PatternKind::Array(parts)
            | PatternKind::TupleStruct { parts, .. } => {
                parts.iter().for_each(|part| part.add_names(names));
            }
            PatternKind::Struct { fields, .. } => {
                fields.iter().for_each(|(_, part)| part.add_names(names));
            }
            // The alternatives bind the same names.
            PatternKind::Or(cases) => cases.iter().take(1).for_each(|case| case.add_names(names)),
            PatternKind::Wild | PatternKind::Rest | PatternKind::Const(_) | PatternKind::Range { .. } => {}
        }
    }
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
    /// A float.
    Float {
        /// Its digits, with a minus before them where it is negative.
        text: String,
        /// Its type, where written.
        suffix: Option<Scalar>,
    },
    /// A constant or an enum's variant: [`PathUsage::Pattern`](super::PathUsage::Pattern).
    Path(PathId),
    /// `i32::MAX`, `T::MIN`, `Mode::Fast`.
    TypeConst(Box<TypeMember>),
}

guarded_serde!(Pattern);
