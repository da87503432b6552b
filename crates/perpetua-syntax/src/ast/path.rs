//! Non-local names: what code in the user's own scope has to resolve.

use super::{GenericArg, Line};
use serde::{Deserialize, Serialize};

/// An index into [`Function::paths`](super::Function::paths) (or of the other definitions' `paths`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PathId(pub u32);

impl PathId {
    /// The index as a `usize`.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A non-local name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathRef {
    /// Whether it starts with `::`.
    pub leading_colon: bool,
    /// Its segments as written, at least one.
    pub segments: Vec<PathSegment>,
    /// How it is used.
    pub usage: PathUsage,
    /// The line of its first use.
    pub line: Line,
    /// The locals in scope there, for messages; none where the tree was encoded.
    #[serde(skip)]
    pub locals: Vec<String>,
}

impl PathRef {
    /// The names joined with `::`, without generic arguments.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (index, segment) in self.segments.iter().enumerate() {
            if index > 0 || self.leading_colon {
                text.push_str("::");
            }
            text.push_str(&segment.name);
        }
        text
    }

    /// The generic arguments of the last segment.
    #[must_use]
    pub fn args(&self) -> &[GenericArg] {
        self.segments.last().map_or(&[], |segment| &segment.args)
    }
}

/// A segment of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSegment {
    /// The name (`crate`, `self`, `super` and `Self` included).
    pub name: String,
    /// Its generic arguments.
    pub args: Vec<GenericArg>,
}

/// How a path is used: what the resolver has to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PathUsage {
    /// As a value: a constant, or a variant of an enum without data.
    Value,
    /// Called: a device function, or the type of one (`S::new`).
    Call,
    /// As a type: a struct, an enum, or an alias of any type of the language.
    Type,
    /// The struct of a literal `S { x: 1 }` or `S(1)`.
    StructLiteral,
    /// In a pattern: a constant or a variant of an enum without data.
    Pattern,
}
