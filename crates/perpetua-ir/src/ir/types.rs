//! Types of the IR and their memory layout. Knows nothing of targets.

use std::fmt;
use std::sync::Arc;

/// A scalar type. Integers are two's complement, floats IEEE 754 (bf16: the upper half of an f32).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scalar {
    /// One bit; occupies one byte in memory (0 or 1, as in Rust).
    Bool,
    /// Signed 8-bit integer.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 8-bit integer.
    U8,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 64-bit integer.
    U64,
    /// IEEE binary16.
    F16,
    /// bfloat16: 8 exponent bits, 7 mantissa bits.
    BF16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

impl Scalar {
    /// Every scalar type, in declaration order.
    pub const ALL: [Scalar; 13] = [
        Scalar::Bool,
        Scalar::I8,
        Scalar::I16,
        Scalar::I32,
        Scalar::I64,
        Scalar::U8,
        Scalar::U16,
        Scalar::U32,
        Scalar::U64,
        Scalar::F16,
        Scalar::BF16,
        Scalar::F32,
        Scalar::F64,
    ];

    /// Size in memory, in bytes; also the alignment.
    pub const fn size(self) -> u32 {
        match self {
            Scalar::Bool | Scalar::I8 | Scalar::U8 => 1,
            Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::BF16 => 2,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
        }
    }

    /// Width of the value in bits (1 for `bool`).
    pub const fn bits(self) -> u32 {
        match self {
            Scalar::Bool => 1,
            other => other.size() * 8,
        }
    }

    /// The name in Rust and in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::I8 => "i8",
            Scalar::I16 => "i16",
            Scalar::I32 => "i32",
            Scalar::I64 => "i64",
            Scalar::U8 => "u8",
            Scalar::U16 => "u16",
            Scalar::U32 => "u32",
            Scalar::U64 => "u64",
            Scalar::F16 => "f16",
            Scalar::BF16 => "bf16",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
        }
    }

    /// The scalar called `name`, if there is one.
    pub fn from_name(name: &str) -> Option<Scalar> {
        Scalar::ALL.into_iter().find(|s| s.name() == name)
    }

    /// Whether this is an integer type (`bool` is not).
    pub const fn is_int(self) -> bool {
        self.is_signed_int() || self.is_unsigned_int()
    }

    /// Whether this is a signed integer type.
    pub const fn is_signed_int(self) -> bool {
        matches!(self, Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64)
    }

    /// Whether this is an unsigned integer type.
    pub const fn is_unsigned_int(self) -> bool {
        matches!(self, Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64)
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64)
    }

    /// The unsigned integer type of the same width; `self` for `bool`.
    pub const fn to_unsigned(self) -> Scalar {
        match self {
            Scalar::Bool => Scalar::Bool,
            Scalar::I8 | Scalar::U8 => Scalar::U8,
            Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::BF16 => Scalar::U16,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => Scalar::U32,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => Scalar::U64,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One field of a [`StructType`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// Name in the source; `0`, `1`, … for tuples.
    pub name: String,
    /// Type of the field.
    pub ty: Type,
    /// Offset from the start of the struct, in bytes.
    pub offset: u32,
}

/// A structure laid out as Rust's `#[repr(C)]`. Tuples are structs whose fields are numbered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StructType {
    /// Name for generated code; two structs in one kernel with the same name are the same type.
    pub name: String,
    /// Fields in order of declaration.
    pub fields: Vec<Field>,
    /// Size in bytes, trailing padding included.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
}

impl StructType {
    /// Lays `fields` out by the rules of `#[repr(C)]`, with at least `min_align` bytes of alignment. Offsets and size
    /// saturate; the verifier refuses types that large.
    pub fn repr_c(name: impl Into<String>, fields: Vec<(String, Type)>, min_align: u32) -> StructType {
        let mut offset = 0u32;
        let mut align = min_align.max(1);
        let mut laid = Vec::with_capacity(fields.len());
        for (name, ty) in fields {
            let field_align = ty.align();
            align = align.max(field_align);
            offset = offset.checked_next_multiple_of(field_align).unwrap_or(u32::MAX);
            let size = ty.size();
            laid.push(Field { name, ty, offset });
            offset = offset.saturating_add(size);
        }
        StructType {
            name: name.into(),
            fields: laid,
            size: offset.checked_next_multiple_of(align).unwrap_or(u32::MAX),
            align,
        }
    }
}

/// A type of the IR. Structural: two equal trees are the same type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A scalar.
    Scalar(Scalar),
    /// 2, 3 or 4 scalars moved together; aligned to its size (3 as 4). Elements are not `bool`.
    Vector(Scalar, u8),
    /// A fixed number of elements, at least one.
    Array(Arc<Type>, u32),
    /// A struct or tuple.
    Struct(Arc<StructType>),
}

impl From<Scalar> for Type {
    fn from(s: Scalar) -> Type {
        Type::Scalar(s)
    }
}

impl Type {
    /// `bool`.
    pub const BOOL: Type = Type::Scalar(Scalar::Bool);
    /// `i32`.
    pub const I32: Type = Type::Scalar(Scalar::I32);
    /// `u32`.
    pub const U32: Type = Type::Scalar(Scalar::U32);
    /// `u64`.
    pub const U64: Type = Type::Scalar(Scalar::U64);
    /// `f32`.
    pub const F32: Type = Type::Scalar(Scalar::F32);

    /// `[element; len]`.
    pub fn array(element: Type, len: u32) -> Type {
        Type::Array(Arc::new(element), len)
    }

    /// A tuple: a struct with fields `0`, `1`, …, named after their number and types (the empty one is `tuple`).
    pub fn tuple(elements: Vec<Type>) -> Type {
        // The number tells `((u8,), u16)` from `((u8, u16),)`.
        let name = match elements.len() {
            0 => String::from("tuple"),
            n => format!("tuple{n}"),
        };
        let name = elements.iter().fold(name, |mut name, ty| {
            name.push('_');
            name.extend(
                ty.to_string()
                    .chars()
                    .map(|c| if c.is_alphanumeric() { c } else { '_' }),
            );
            name
        });
        let fields = elements
            .into_iter()
            .enumerate()
            .map(|(i, ty)| (i.to_string(), ty))
            .collect();
        Type::Struct(Arc::new(StructType::repr_c(name, fields, 1)))
    }

    /// The scalar, if this is one.
    pub fn as_scalar(&self) -> Option<Scalar> {
        match self {
            Type::Scalar(s) => Some(*s),
            _ => None,
        }
    }

    /// Size in memory in bytes, padding included.
    pub fn size(&self) -> u32 {
        match self {
            Type::Scalar(s) => s.size(),
            Type::Vector(s, n) => s.size() * u32::from(if *n == 3 { 4 } else { *n }),
            Type::Array(element, n) => element.size().saturating_mul(*n),
            Type::Struct(s) => s.size,
        }
    }

    /// Alignment in memory in bytes.
    pub fn align(&self) -> u32 {
        match self {
            Type::Scalar(s) => s.size(),
            Type::Vector(..) => self.size(),
            Type::Array(element, _) => element.align(),
            Type::Struct(s) => s.align,
        }
    }

    /// Type of component `index` (field, element or lane), or `None` when there is no such component.
    pub fn component(&self, index: u32) -> Option<Type> {
        match self {
            Type::Scalar(_) => None,
            Type::Vector(s, n) => (index < u32::from(*n)).then_some(Type::Scalar(*s)),
            Type::Array(element, n) => (index < *n).then(|| (**element).clone()),
            Type::Struct(s) => s.fields.get(index as usize).map(|f| f.ty.clone()),
        }
    }

    /// Number of components: 0 for a scalar.
    pub fn component_count(&self) -> u32 {
        match self {
            Type::Scalar(_) => 0,
            Type::Vector(_, n) => u32::from(*n),
            Type::Array(_, n) => *n,
            Type::Struct(s) => s.fields.len() as u32,
        }
    }

    /// Byte offset of component `index` inside a value of this type; `None` when there is no such component.
    pub fn component_offset(&self, index: u32) -> Option<u32> {
        match self {
            Type::Scalar(_) => None,
            Type::Vector(s, n) => (index < u32::from(*n)).then_some(s.size() * index),
            Type::Array(element, n) => (index < *n).then(|| element.size() * index),
            Type::Struct(s) => s.fields.get(index as usize).map(|f| f.offset),
        }
    }

    /// The scalars that make up a value, depth first, each with its byte offset in memory.
    pub fn leaves(&self) -> Vec<(Scalar, u32)> {
        fn walk(ty: &Type, base: u32, out: &mut Vec<(Scalar, u32)>) {
            match ty {
                Type::Scalar(s) => out.push((*s, base)),
                _ => {
                    for i in 0..ty.component_count() {
                        if let (Some(c), Some(o)) = (ty.component(i), ty.component_offset(i)) {
                            walk(&c, base + o, out);
                        }
                    }
                }
            }
        }
        let mut out = Vec::new();
        walk(self, 0, &mut out);
        out
    }

    /// Number of scalars that make up a value: `self.leaves().len()`, without building the list.
    pub fn leaf_count(&self) -> usize {
        match self {
            Type::Scalar(_) => 1,
            Type::Vector(_, n) => usize::from(*n),
            Type::Array(element, n) => element.leaf_count() * *n as usize,
            Type::Struct(s) => s.fields.iter().map(|f| f.ty.leaf_count()).sum(),
        }
    }

    /// Index of the first leaf of component `index` among [`Type::leaves`].
    pub fn leaf_start(&self, index: u32) -> usize {
        match self {
            Type::Scalar(_) => 0,
            Type::Vector(..) => index as usize,
            Type::Array(element, _) => element.leaf_count() * index as usize,
            Type::Struct(s) => s
                .fields
                .iter()
                .take(index as usize)
                .map(|f| f.ty.leaf_count())
                .sum(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Scalar(s) => write!(f, "{s}"),
            Type::Vector(s, n) => write!(f, "{s}x{n}"),
            Type::Array(element, n) => write!(f, "[{element}; {n}]"),
            Type::Struct(s) => write!(f, "{}", s.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_are_laid_out_as_repr_c() {
        let s = StructType::repr_c(
            "Mixed",
            vec![
                ("a".into(), Scalar::U8.into()),
                ("b".into(), Scalar::F64.into()),
                ("c".into(), Type::array(Scalar::U16.into(), 3)),
            ],
            1,
        );
        assert_eq!((s.size, s.align), (24, 8));
        assert_eq!(s.fields.iter().map(|f| f.offset).collect::<Vec<_>>(), [0, 8, 16]);
        let ty = Type::Struct(Arc::new(s));
        assert_eq!(
            ty.leaves(),
            [
                (Scalar::U8, 0),
                (Scalar::F64, 8),
                (Scalar::U16, 16),
                (Scalar::U16, 18),
                (Scalar::U16, 20)
            ]
        );
        assert_eq!(ty.leaf_start(2), 2);
        assert_eq!(Type::Vector(Scalar::F32, 3).size(), 16);
    }
}
