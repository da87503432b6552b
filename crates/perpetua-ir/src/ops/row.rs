//! The columns of the table of device operations: what can be said of one. Knows no operation.

use super::Capability;
use crate::ir::{Scalar, Type};

/// What an operand may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// A scalar of this type.
    Exactly(Scalar),
    /// An integer or float of 32 or 64 bits.
    Number,
    /// An integer of 32 or 64 bits.
    Integer,
    /// An array of so many of these.
    Array(Scalar, u32),
    /// A lane's sums of a staged product: an array of any number of `[[f32; 2]; 2]`, or of `[[i32; 2]; 2]`.
    Sums,
}

impl Takes {
    /// Whether a value of this type may be the operand.
    pub fn contains(self, ty: &Type) -> bool {
        match (self, ty) {
            (Takes::Exactly(t), Type::Scalar(s)) => t == *s,
            (Takes::Number, Type::Scalar(s)) => s.size() >= 4,
            (Takes::Integer, Type::Scalar(s)) => s.size() >= 4 && s.is_int(),
            (Takes::Array(t, n), Type::Array(element, len)) => n == *len && **element == Type::Scalar(t),
            (Takes::Sums, Type::Array(element, _)) => [Type::F32, Type::I32]
                .into_iter()
                .any(|sum| **element == Type::array(Type::array(sum, 2), 2)),
            _ => false,
        }
    }

    /// In words, for errors.
    pub fn describe(self) -> String {
        match self {
            Takes::Exactly(s) => s.name().into(),
            Takes::Number => "a 32- or 64-bit number".into(),
            Takes::Integer => "a 32- or 64-bit integer".into(),
            Takes::Array(s, n) => format!("[{s}; {n}]"),
            Takes::Sums => "an array of [[f32; 2]; 2] or [[i32; 2]; 2]".into(),
        }
    }
}

/// What an operation gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// No value: it is an effect.
    Nothing,
    /// A scalar of this type.
    Exactly(Scalar),
    /// A value of the first operand's type.
    First,
    /// An array of so many of these.
    Array(Scalar, u32),
}

impl Gives {
    /// The value's type for a first operand of type `first`; `None` for no value.
    pub fn ty(self, first: &Type) -> Option<Type> {
        Some(match self {
            Gives::Nothing => return None,
            Gives::Exactly(s) => s.into(),
            Gives::First => first.clone(),
            Gives::Array(s, n) => Type::array(s.into(), n),
        })
    }
}

/// For which lanes the result is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Same {
    /// For those for which the operands are.
    AsOperands,
    /// For the lanes of a subgroup that run it together; why not for others.
    InSubgroup(&'static str),
    /// For none; why.
    Nowhere(&'static str),
}

impl Same {
    /// Why lanes of a block may get different results from the same operands; `None` if they do not.
    pub const fn apart(self) -> Option<&'static str> {
        match self {
            Same::AsOperands => None,
            Same::InSubgroup(why) | Same::Nowhere(why) => Some(why),
        }
    }
}

/// Which lanes an operation brings together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// None: each lane does it by itself.
    Alone,
    /// The lanes of a subgroup that are active there.
    Subgroup,
    /// All lanes of the block, and the verifier proves that they all come.
    Block,
    /// All of a subgroup or block, which nothing proves.
    Unproven,
}

/// What must not be moved past an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orders {
    /// Anything may.
    Nothing,
    /// Accesses to memory that lanes share.
    Memory,
    /// It reads whether the lane has faulted.
    ReadsFault,
    /// It reads that and changes it.
    TakesFault,
}

/// Where an operation may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    /// Anywhere.
    Anywhere,
    /// Directly behind a labelled block, in the kernel's own code.
    BehindBlock,
    /// In kernels whose checks have been made explicit.
    ExplicitChecks,
}

/// An operand: what it may be, and what it is called in errors (followed by the operation's attribute, if it has one).
pub type Operand = (Takes, &'static str);

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct DeviceRow {
    /// Name in the text form, and the attribute that follows it at once.
    pub name: (&'static str, &'static str),
    /// Functions of the kernel language that mean it; the attribute follows where a name ends in `_`.
    pub language: &'static [&'static str],
    /// Its operands.
    pub operands: &'static [Operand],
    /// Its result.
    pub gives: Gives,
    /// What the target must have.
    pub needs: Option<Capability>,
    /// For which lanes the result is the same.
    pub same: Same,
    /// Which lanes it brings together.
    pub meeting: Meeting,
    /// What must not be moved past it.
    pub orders: Orders,
    /// Whether it does nothing but give its value, so that it may be left out or repeated.
    pub pure: bool,
    /// Whether a lane that does it may be waiting for what others write.
    pub waits: bool,
    /// Where it may stand.
    pub stands: Stands,
    /// What generated code calls its value; empty where the type says enough.
    pub hint: &'static str,
    /// The kind that a kernel's histogram counts it as; empty for one of its own.
    pub kind: &'static str,
    /// What it is in CUDA C, where `$0`, `$1`, … are the operands; `None` where the dialect has code for it, or the target lacks
    /// the capability.
    pub cuda: Option<&'static str>,
    /// In WGSL.
    pub wgsl: Option<&'static str>,
    /// In Metal.
    pub msl: Option<&'static str>,
}

impl DeviceRow {
    /// Its name without the attribute.
    pub fn word(&self) -> &'static str {
        self.name.0.trim_end()
    }

    /// The kind that a histogram counts it as.
    pub fn counted_as(&self) -> &'static str {
        if self.kind.is_empty() {
            self.word()
        } else {
            self.kind
        }
    }

    /// Whether a function of the kernel language means it.
    pub(super) fn is_called(&self, function: &str) -> bool {
        self.language.iter().any(|name| {
            if name.ends_with('_') {
                function.strip_prefix(name) == Some(self.name.1)
            } else {
                *name == function
            }
        })
    }
}
