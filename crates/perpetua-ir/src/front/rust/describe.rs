//! Descriptions of Rust types and constants, as the lowering sees them: what the host's compiler knows about a type
//! (its layout, its variants) and a constant (its value), without the type itself.

use std::any::TypeId;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use perpetua_syntax::Scalar;

mod asked;
mod generic;

pub(crate) use generic::MOST_PARTS;
#[cfg(feature = "transpile")]
pub(crate) use generic::parts;
pub use generic::{FieldType, GenericStruct, TypeArg, TypeParam};

/// Tells types apart: two types are the same type if and only if their keys are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TypeKey {
    /// A type of the running program.
    Program(TypeId),
    /// A type that was read from source text, by its name there.
    Source(Arc<str>),
    /// An instance of a generic struct, wherever it was described.
    Instance(Arc<(TypeKey, Vec<TypeArg>)>),
}

/// A type that kernels can hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TypeDesc {
    /// A scalar; `usize` and `isize` take their width at instantiation.
    Scalar(Scalar),
    /// `[T; N]`.
    Array(Arc<TypeDesc>, usize),
    /// A `#[repr(C)]` struct, or an enum with data.
    Struct(Arc<StructDesc>),
    /// An enum without data.
    Enum(Arc<EnumDesc>),
    /// A tuple; of constants and of fields of an enum, for it has no layout in memory.
    Tuple(Vec<TypeDesc>),
    /// An `Option`; as a tuple of constants and fields of an enum.
    Option(Arc<TypeDesc>),
    /// A `Result`; as a tuple of constants and fields of an enum.
    Result(Arc<[TypeDesc; 2]>),
}

/// The description of a struct, or of an enum with data. Equality is that of the keys.
#[derive(Clone, Debug)]
pub struct StructDesc {
    /// Which type it is.
    pub key: TypeKey,
    /// Its name, without its module.
    pub name: String,
    /// Whether it is a tuple struct; its fields are then called `0`, `1`, ….
    pub tuple: bool,
    /// Its fields in order; of an enum the number of the variant, and then those of one variant after another.
    pub fields: Vec<FieldDesc>,
    /// The variants of an enum, by their numbers; a struct has none. An enum's values live in kernels only: it has no layout.
    pub variants: Vec<VariantDesc>,
    /// Size in bytes on the host.
    pub size: usize,
    /// Alignment in bytes on the host; 0 of a struct that no memory takes.
    pub align: usize,
    /// The generic struct of which it is an instance, with its arguments.
    pub of: Option<(Arc<GenericStruct>, Vec<TypeArg>)>,
    /// Gives its `Default`, where somebody can say it.
    pub default: Option<fn() -> Option<ConstValue>>,
}

/// A variant of an enum with data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantDesc {
    /// Its name.
    pub name: String,
    /// Which of the enum's fields are its own. They are zero in values of other variants.
    pub fields: Range<usize>,
}

/// A struct's field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldDesc {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: TypeDesc,
    /// Offset from the start of the struct on the host, in bytes (`offset_of!`).
    pub offset: usize,
}

/// The description of an enum without data. Equality is that of the keys.
#[derive(Clone, Debug)]
pub struct EnumDesc {
    /// Which type it is.
    pub key: TypeKey,
    /// Its name, without its module.
    pub name: String,
    /// The integer that stores it.
    pub repr: Scalar,
    /// Variants and their values.
    pub variants: Vec<(String, i128)>,
    /// Whether Rust orders its variants as the numbers that store them, where somebody can say so.
    pub in_order: Option<fn() -> bool>,
    /// Gives its `Default`, where somebody can say it.
    pub default: Option<fn() -> Option<ConstValue>>,
}

impl PartialEq for StructDesc {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl Eq for StructDesc {}
impl std::hash::Hash for StructDesc {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl PartialEq for EnumDesc {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl Eq for EnumDesc {}
impl std::hash::Hash for EnumDesc {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl TypeDesc {
    /// The description of the struct `T`: its fields with their offsets in `T`, in order. For `derive(GpuType)`.
    pub fn of_struct<T: 'static>(name: &str, tuple: bool, fields: Vec<FieldDesc>) -> TypeDesc {
        TypeDesc::Struct(Arc::new(StructDesc {
            key: TypeKey::Program(TypeId::of::<T>()),
            name: name.to_owned(),
            tuple,
            fields,
            variants: Vec::new(),
            size: size_of::<T>(),
            align: align_of::<T>(),
            of: None,
            default: None,
        }))
    }

    /// The description of the enum `T`: its variants with the names and types of their fields. For `derive(GpuType)`.
    pub fn of_variants<T: 'static>(name: &str, variants: Vec<(&str, Vec<(&str, TypeDesc)>)>) -> TypeDesc {
        let key = TypeKey::Program(TypeId::of::<T>());
        let parts = generic::parts(&key, name, variants, |ty| ty);
        TypeDesc::Struct(Arc::new(StructDesc::of_values(key, name.to_owned(), parts)))
    }

    /// The value of which all bits are zero.
    pub fn zero(&self) -> ConstValue {
        match self {
            TypeDesc::Scalar(s) => ConstValue::of_bits(*s, 0),
            TypeDesc::Enum(e) => ConstValue::Enum(e.clone(), 0),
            TypeDesc::Array(element, len) => {
                ConstValue::Array((**element).clone(), vec![element.zero(); *len])
            }
            TypeDesc::Tuple(parts) => ConstValue::Tuple(parts.iter().map(TypeDesc::zero).collect()),
            TypeDesc::Option(_) | TypeDesc::Result(_) => self.of_standard(false, &[]),
            TypeDesc::Struct(s) => {
                ConstValue::Struct(s.clone(), s.fields.iter().map(|field| field.ty.zero()).collect())
            }
        }
    }

    /// A value of an `Option` or a `Result` of this description: whether it is `Some` or `Ok`, and what it holds.
    pub(crate) fn of_standard(&self, good: bool, held: &[ConstValue]) -> ConstValue {
        let tag = ConstValue::Scalar(Scalar::Bool, good.into());
        let held = held.first().cloned();
        let parts = match self {
            TypeDesc::Option(some) => vec![held.unwrap_or_else(|| some.zero())],
            TypeDesc::Result(both) => {
                let [ok, err] = &**both;
                match (good, held) {
                    (true, Some(held)) => vec![held, err.zero()],
                    (false, Some(held)) => vec![ok.zero(), held],
                    (_, None) => vec![ok.zero(), err.zero()],
                }
            }
            _ => Vec::new(),
        };
        ConstValue::Standard(self.clone(), std::iter::once(tag).chain(parts).collect())
    }

    /// The description of the enum `T`, stored as `repr`. For `derive(GpuType)`.
    pub fn of_enum<T: 'static>(name: &str, repr: Scalar, variants: &[(&str, i128)]) -> TypeDesc {
        TypeDesc::Enum(Arc::new(EnumDesc {
            key: TypeKey::Program(TypeId::of::<T>()),
            name: name.to_owned(),
            repr,
            variants: variants.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect(),
            in_order: None,
            default: None,
        }))
    }

    /// Whether each pattern of bits is a value, so that what a device wrote can be read back unseen. `bool` and
    /// enums are not such types.
    pub fn any_bits(&self) -> bool {
        match self {
            TypeDesc::Scalar(s) => *s != Scalar::Bool,
            TypeDesc::Array(element, _) => element.any_bits(),
            TypeDesc::Struct(s) => s.fields.iter().all(|f| f.ty.any_bits()),
            TypeDesc::Enum(_) => false,
            TypeDesc::Tuple(elements) => elements.iter().all(TypeDesc::any_bits),
            TypeDesc::Option(_) | TypeDesc::Result(_) => false,
        }
    }

    /// Checks that `bytes`, in the host's layout and byte order, are a value of this type.
    ///
    /// # Errors
    /// [`InvalidValue`] for the first `bool` that is neither 0 nor 1, the first enum value without a variant, or
    /// too few bytes.
    pub fn check_bytes(&self, bytes: &[u8]) -> Result<(), InvalidValue> {
        self.check_at(bytes, 0)
    }

    fn check_at(&self, bytes: &[u8], at: usize) -> Result<(), InvalidValue> {
        let scalar = |s: Scalar| -> Result<u128, InvalidValue> {
            let size = host_size(s);
            let raw = bytes.get(at..at + size).ok_or_else(|| InvalidValue {
                ty: s.name().to_owned(),
                offset: at,
                value: 0,
                short: true,
            })?;
            let mut wide = [0u8; 16];
            if cfg!(target_endian = "little") {
                wide[..size].copy_from_slice(raw);
                Ok(u128::from_le_bytes(wide))
            } else {
                wide[16 - size..].copy_from_slice(raw);
                Ok(u128::from_be_bytes(wide))
            }
        };
        match self {
            TypeDesc::Scalar(Scalar::Bool) => match scalar(Scalar::Bool)? {
                0 | 1 => Ok(()),
                value => Err(InvalidValue {
                    ty: "bool".into(),
                    offset: at,
                    value: value as i128,
                    short: false,
                }),
            },
            TypeDesc::Scalar(s) => scalar(*s).map(|_| ()),
            TypeDesc::Enum(e) => {
                let unused = 128 - 8 * host_size(e.repr) as u32;
                let raw = scalar(e.repr)?;
                let value = match e.repr {
                    Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 | Scalar::Isize => {
                        ((raw << unused) as i128) >> unused
                    }
                    _ => raw as i128,
                };
                if e.variants.iter().any(|(_, v)| *v == value) {
                    return Ok(());
                }
                Err(InvalidValue {
                    ty: e.name.clone(),
                    offset: at,
                    value,
                    short: false,
                })
            }
            TypeDesc::Array(element, len) if !element.any_bits() => {
                let size = element.host_layout().map_or(0, |(size, _)| size);
                (0..*len).try_for_each(|i| element.check_at(bytes, at + i * size))
            }
            TypeDesc::Struct(s) => s
                .fields
                .iter()
                .try_for_each(|f| f.ty.check_at(bytes, at + f.offset)),
            TypeDesc::Array(..) | TypeDesc::Tuple(_) | TypeDesc::Option(_) | TypeDesc::Result(_) => Ok(()),
        }
    }

    /// Makes bytes that are all zero a value: an enum that has no variant of that number becomes its first one.
    ///
    /// `bytes` are those of one value of this type; what lies beyond their end stays as it is.
    pub fn make_valid(&self, bytes: &mut [u8]) {
        match self {
            TypeDesc::Enum(e) if e.variants.iter().all(|(_, number)| *number != 0) => {
                let first = e.variants.first().map_or(0, |(_, number)| *number);
                let size = host_size(e.repr);
                let number = if cfg!(target_endian = "little") {
                    first.to_le_bytes().get(..size).map(<[u8]>::to_vec)
                } else {
                    first
                        .to_be_bytes()
                        .get(size_of::<i128>() - size..)
                        .map(<[u8]>::to_vec)
                };
                for (byte, value) in bytes.iter_mut().zip(number.unwrap_or_default()) {
                    *byte = value;
                }
            }
            TypeDesc::Array(element, _) => {
                let size = element.host_layout().map_or(0, |(size, _)| size);
                bytes
                    .chunks_mut(size.max(1))
                    .for_each(|bytes| element.make_valid(bytes));
            }
            TypeDesc::Struct(s) => {
                for field in &s.fields {
                    let size = field.ty.host_layout().map_or(0, |(size, _)| size);
                    if let Some(bytes) = bytes.get_mut(field.offset..field.offset + size) {
                        field.ty.make_valid(bytes);
                    }
                }
            }
            TypeDesc::Scalar(_)
            | TypeDesc::Enum(_)
            | TypeDesc::Tuple(_)
            | TypeDesc::Option(_)
            | TypeDesc::Result(_) => {}
        }
    }

    /// Size and alignment in the host's memory, in bytes; `None` for tuples and what has variants with data, which have no fixed layout.
    pub fn host_layout(&self) -> Option<(usize, usize)> {
        match self {
            TypeDesc::Scalar(s) => Some((host_size(*s), host_size(*s))),
            TypeDesc::Array(element, len) => {
                let (size, align) = element.host_layout()?;
                Some((size.saturating_mul(*len), align))
            }
            TypeDesc::Struct(s) => s.in_memory().then_some((s.size, s.align)),
            TypeDesc::Enum(e) => Some((host_size(e.repr), host_size(e.repr))),
            TypeDesc::Tuple(_) | TypeDesc::Option(_) | TypeDesc::Result(_) => None,
        }
    }
}

/// Size of a scalar in the host's memory, in bytes.
fn host_size(s: Scalar) -> usize {
    match s {
        Scalar::Bool | Scalar::I8 | Scalar::U8 => 1,
        Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::Bf16 => 2,
        Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
        Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
        Scalar::I128 | Scalar::U128 => 16,
        Scalar::Isize | Scalar::Usize => size_of::<usize>(),
    }
}

impl fmt::Display for TypeDesc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypeDesc::Scalar(s) => f.write_str(s.name()),
            TypeDesc::Array(element, len) => write!(f, "[{element}; {len}]"),
            TypeDesc::Struct(s) => f.write_str(&s.name),
            TypeDesc::Enum(e) => f.write_str(&e.name),
            TypeDesc::Option(some) => write!(f, "Option<{some}>"),
            TypeDesc::Result(both) => write!(f, "Result<{}, {}>", both[0], both[1]),
            TypeDesc::Tuple(elements) => {
                f.write_str("(")?;
                for (i, e) in elements.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{e}")?;
                }
                if elements.len() == 1 {
                    f.write_str(",")?;
                }
                f.write_str(")")
            }
        }
    }
}

/// Bytes that are not a value of the type that they should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidValue {
    /// The scalar or enum.
    pub ty: String,
    /// Where it stands, in bytes from the start.
    pub offset: usize,
    /// What was found there.
    pub value: i128,
    /// Whether the bytes end before it.
    pub short: bool,
}

impl fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.short {
            write!(
                f,
                "the bytes end before the `{}` at byte {}",
                self.ty, self.offset
            )
        } else {
            write!(
                f,
                "{} at byte {} is not a value of `{}`: read the memory as its integer type, or write only valid values",
                self.value, self.offset, self.ty
            )
        }
    }
}

impl std::error::Error for InvalidValue {}

/// A constant's value.
#[derive(Clone, Debug, PartialEq)]
pub enum ConstValue {
    /// A scalar: its bits, zero-extended from its width (`usize` and `isize`: sign- or zero-extended to 64 bits,
    /// cut to the pointer width at instantiation).
    Scalar(Scalar, u64),
    /// The bits of an `i128` or a `u128`.
    Wide(Scalar, u128),
    /// An enum's value.
    Enum(Arc<EnumDesc>, i128),
    /// An array: element type and elements. A reference to a slice arrives as the array that it refers to.
    Array(TypeDesc, Vec<ConstValue>),
    /// A tuple.
    Tuple(Vec<ConstValue>),
    /// A struct, or an enum with data: its fields in order.
    Struct(Arc<StructDesc>, Vec<ConstValue>),
    /// An `Option` or a `Result`: whether it is `Some` or `Ok`, and what each variant holds.
    Standard(TypeDesc, Vec<ConstValue>),
}

impl ConstValue {
    /// The constant's type.
    pub fn type_desc(&self) -> TypeDesc {
        match self {
            ConstValue::Scalar(s, _) | ConstValue::Wide(s, _) => TypeDesc::Scalar(*s),
            ConstValue::Enum(e, _) => TypeDesc::Enum(e.clone()),
            ConstValue::Array(element, values) => TypeDesc::Array(Arc::new(element.clone()), values.len()),
            ConstValue::Tuple(values) => TypeDesc::Tuple(values.iter().map(ConstValue::type_desc).collect()),
            ConstValue::Struct(s, _) => TypeDesc::Struct(s.clone()),
            ConstValue::Standard(ty, _) => ty.clone(),
        }
    }

    /// The scalar with these bits.
    pub(crate) fn of_bits(s: Scalar, bits: u128) -> ConstValue {
        match s {
            Scalar::I128 | Scalar::U128 => ConstValue::Wide(s, bits),
            _ => ConstValue::Scalar(s, bits as u64),
        }
    }

    /// The struct `T` with these fields. For `derive(GpuType)`.
    pub fn of_struct(ty: &TypeDesc, fields: Vec<ConstValue>) -> ConstValue {
        match ty {
            TypeDesc::Struct(s) => ConstValue::Struct(s.clone(), fields),
            _ => ConstValue::Tuple(fields),
        }
    }

    /// The variant of this number with these fields. For `derive(GpuType)`.
    pub fn of_variant(ty: &TypeDesc, number: usize, fields: Vec<ConstValue>) -> ConstValue {
        let (ConstValue::Struct(desc, mut parts), TypeDesc::Struct(_)) = (ty.zero(), ty) else {
            return ConstValue::Tuple(fields);
        };
        let own = desc
            .variants
            .get(number)
            .map_or(0..0, |variant| variant.fields.clone());
        for (part, field) in parts.iter_mut().skip(own.start).zip(fields) {
            *part = field;
        }
        if let Some(ConstValue::Enum(_, tag)) = parts.first_mut() {
            *tag = number as i128;
        }
        ConstValue::Struct(desc, parts)
    }

    /// The enum `T` with this value. For `derive(GpuType)`.
    pub fn of_enum(ty: &TypeDesc, value: i128) -> ConstValue {
        match ty {
            TypeDesc::Enum(e) => ConstValue::Enum(e.clone(), value),
            _ => ConstValue::Scalar(Scalar::I64, value as u64),
        }
    }
}
