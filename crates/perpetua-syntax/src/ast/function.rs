//! A function's signature: name, generics, parameters.
//!
//! Parameters are plain names; their types are as written.

use super::{Block, Line, PathId, PathRef, Scalar, Type};
use serde::{Deserialize, Serialize};

/// A function of the kernel language.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// The function's name.
    pub name: String,
    /// What it is compiled to.
    pub kind: FunctionKind,
    /// The source file, as the compiler names it; empty where unknown.
    pub file: String,
    /// The line of the name.
    pub line: Line,
    /// What it belongs to, where that has generic parameters.
    pub own: Option<Own>,
    /// Type and const parameters: first those of what it belongs to, then its own in the order written, then one for each `impl
    /// Trait`; lifetimes are left out.
    pub generics: Vec<Generic>,
    /// Parameters; a receiver comes first, under the name `self`.
    pub params: Vec<Param>,
    /// The type after `->`.
    pub ret: Option<Type>,
    /// The body; its value is what the function returns.
    pub body: Block,
    /// Everything non-local that the signature and the body refer to, each once per usage.
    pub paths: Vec<PathRef>,
}

impl Function {
    /// The parameters that a call may name.
    #[must_use]
    pub fn written_generics(&self) -> &[Generic] {
        let outer = self.own.as_ref().map_or(0, |own| own.generics as usize);
        let end = self
            .generics
            .iter()
            .take_while(|generic| !generic.is_implicit())
            .count();
        self.generics.get(outer..end).unwrap_or_default()
    }

    /// The entry that `id` stands for; `None` where the tree is inconsistent.
    #[must_use]
    pub fn path(&self, id: PathId) -> Option<&PathRef> {
        self.paths.get(id.index())
    }
}

/// What a function belongs to: a generic `impl` block, or a trait, whose one parameter is then `Self`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Own {
    /// What `Self` is.
    pub ty: Type,
    /// How many of the function's parameters come from there.
    pub generics: u32,
}

/// What a function is compiled to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FunctionKind {
    /// Launched over a grid; returns nothing.
    Kernel,
    /// Called from kernels and other device functions; may have a receiver.
    Device,
    /// Launched over a grid of cells, one `GridPos` each; returns nothing.
    Stencil,
}

/// A generic parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Generic {
    /// `T: Bound + Bound`, with bounds from the parameter list and from the where clause; each as written. An argument
    /// of type `impl Bound` has one whose name is that text.
    Type {
        /// The parameter's name.
        name: String,
        /// The bounds' text.
        bounds: Vec<String>,
        /// Parameters and result of a bound `Fn(A, B) -> C`, `FnMut` or `FnOnce`.
        call: Option<(Vec<Type>, Option<Type>)>,
    },
    /// `const N: usize`.
    Const {
        /// The parameter's name.
        name: String,
        /// Its type: an integer or `bool`.
        ty: Scalar,
    },
}

impl Generic {
    /// The parameter's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Type { name, .. } | Self::Const { name, .. } => name,
        }
    }

    /// Whether it is an argument's `impl Trait`, which a call never names.
    #[must_use]
    pub fn is_implicit(&self) -> bool {
        self.name().starts_with("impl ")
    }

    /// The names of the traits that bound it, without modules and arguments.
    pub fn traits(&self) -> impl Iterator<Item = &str> {
        let bounds = match self {
            Self::Type { bounds, .. } => &bounds[..],
            Self::Const { .. } => &[],
        };
        bounds.iter().map(|bound| {
            let path = bound.split(['<', '(']).next().unwrap_or_default();
            path.rsplit("::").next().unwrap_or_default().trim()
        })
    }
}

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// Its name; `self` for a receiver.
    pub name: String,
    /// Whether the binding is `mut`.
    pub mutable: bool,
    /// Its type; for a receiver [`Type::SelfType`], or a [`Type::Ref`] to it.
    pub ty: Type,
    /// Where it stands.
    pub line: Line,
}
