//! Structs, enums and constants that functions refer to.

use super::{Expr, Generic, Line, PathRef, Scalar, Type};
use serde::{Deserialize, Serialize};

/// What `derive(GpuType)` accepted: a struct with `#[repr(C)]`, or an enum with data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StructDef {
    /// Its name.
    pub name: String,
    /// Whether its fields have no names: they are called `0`, `1`, …
    pub tuple: bool,
    /// Its generic parameters.
    pub generics: Vec<Generic>,
    /// The fields in order; of an enum those of its variants, one variant after another.
    pub fields: Vec<FieldDef>,
    /// An enum's variants in order, and how many fields each has; a struct has none.
    pub variants: Vec<(String, u32)>,
    /// What the fields' types refer to.
    pub paths: Vec<PathRef>,
}

impl StructDef {
    /// Whether memory takes the struct: not where a field is a tuple, an `Option` or a `Result`, whose layout Rust leaves open, and not
    /// where there is none.
    pub fn in_memory(&self) -> bool {
        fn laid_out(ty: &Type) -> bool {
            match ty {
                Type::Array { element, .. } => laid_out(element),
                ty => !matches!(ty, Type::Tuple(_) | Type::Option(_) | Type::Result(_)),
            }
        }
        !self.fields.is_empty()
            && self.variants.is_empty()
            && self.fields.iter().all(|field| laid_out(&field.ty))
    }

    /// What belongs to each field, by the variant that has the field; of a struct nothing.
    pub fn by_variant<T>(&self, fields: Vec<T>) -> Vec<(String, Vec<T>)> {
        let mut fields = fields.into_iter();
        let variants = self.variants.iter();
        variants
            .map(|(name, count)| (name.clone(), fields.by_ref().take(*count as usize).collect()))
            .collect()
    }
}

/// A field of a struct.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldDef {
    /// Its name.
    pub name: String,
    /// Its type: a scalar, an array, a struct or enum, or an array of these.
    pub ty: Type,
    /// Where it stands.
    pub line: Line,
}

/// An enum that `derive(GpuType)` accepted: no data, an integer `repr`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnumDef {
    /// Its name.
    pub name: String,
    /// The integer type that stores it.
    pub repr: Scalar,
    /// Variants and their discriminants, in order.
    pub variants: Vec<(String, i128)>,
}

/// A variant of `Option` or `Result`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each is Rust's variant of the same name")]
pub enum Variant {
    Some,
    None,
    Ok,
    Err,
}

impl Variant {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Some => "Some",
            Self::None => "None",
            Self::Ok => "Ok",
            Self::Err => "Err",
        }
    }

    /// The variant of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Some, Self::None, Self::Ok, Self::Err]
            .into_iter()
            .find(|variant| variant.name() == name)
    }
}

/// A constant: `const NAME: ty = value;`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConstDef {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Its value.
    pub value: Expr,
    /// What type and value refer to.
    pub paths: Vec<PathRef>,
}
