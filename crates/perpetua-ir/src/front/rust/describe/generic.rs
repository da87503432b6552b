//! Descriptions of generic structs and enums with data: what all instances have in common, and how one is made of it. The lowering meets instances
//! that no code of the host names (`Pair<f32>` inside a generic function), so a description says how fields follow from arguments.

use std::any::TypeId;
use std::fmt;
use std::iter::StepBy;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use perpetua_syntax::Scalar;

use super::{ConstValue, EnumDesc, FieldDesc, StructDesc, TypeDesc, TypeKey, VariantDesc};

/// A generic struct, or a generic enum with data.
#[derive(Clone, Debug)]
pub struct GenericStruct {
    /// Which struct it is.
    pub key: TypeKey,
    /// Its name, without its module and parameters.
    pub name: String,
    /// Whether it is a tuple struct.
    pub tuple: bool,
    /// Its parameters in order, lifetimes left out.
    pub params: Vec<TypeParam>,
    /// Its fields in order, with their names; of an enum as [`StructDesc`] has them.
    pub fields: Vec<(String, FieldType)>,
    /// The variants of an enum.
    pub variants: Vec<VariantDesc>,
    /// Gives the `Default` of one instance, where whatever has a `Default` may be an argument. Code that knows no more of its arguments
    /// makes the same of all: where each field has its own `Default` in this one, it has it in every instance.
    pub default: Option<fn() -> Option<ConstValue>>,
}

impl PartialEq for GenericStruct {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl Eq for GenericStruct {}
impl std::hash::Hash for GenericStruct {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

/// A parameter of a generic struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeParam {
    /// `T`.
    Type,
    /// `const N: usize`: an integer or `bool`.
    Const(Scalar),
}

/// An argument of a generic struct.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TypeArg {
    /// A type.
    Type(TypeDesc),
    /// The bits of a const parameter's value, sign- or zero-extended.
    Const(u64),
}

/// The type of a generic struct's field, or an argument within it.
#[derive(Clone, Debug)]
pub enum FieldType {
    /// A type without parameters.
    Known(TypeDesc),
    /// A constant that is known, as in [`TypeArg::Const`].
    Const(u64),
    /// The parameter of this index: a type or a constant.
    Param(usize),
    /// `[T; N]`: the element, and how many there are.
    Array(Box<(FieldType, FieldType)>),
    /// A tuple.
    Tuple(Vec<FieldType>),
    /// `Option<T>`.
    Option(Box<FieldType>),
    /// `Result<T, E>`.
    Result(Box<[FieldType; 2]>),
    /// Another generic struct with arguments.
    Instance(Arc<GenericStruct>, Vec<FieldType>),
}

/// How many types one is made of at most, arguments within arguments included. Each may be named, compared and laid out by itself, and
/// functions that call themselves, or values that hold each other twice, double them at every step.
pub(crate) const MOST_PARTS: usize = 1024;

impl TypeArg {
    /// Whether it is made of at most `left` types, which it takes off. Parts that are shared count each time: a walk ends soon.
    pub(crate) fn is_within(&self, left: &mut usize) -> bool {
        match self {
            TypeArg::Type(ty) => ty.is_within(left),
            TypeArg::Const(_) => true,
        }
    }
}

impl TypeDesc {
    /// The description of the struct `T` whose values live in kernels only: its fields in order. For `derive(GpuType)`.
    pub fn of_value<T: 'static>(name: &str, tuple: bool, fields: Vec<(&str, TypeDesc)>) -> TypeDesc {
        let fields = fields
            .into_iter()
            .map(|(name, ty)| (name.to_owned(), ty))
            .collect();
        let key = TypeKey::Program(TypeId::of::<T>());
        TypeDesc::Struct(Arc::new(StructDesc::of_fields(
            key,
            name.to_owned(),
            tuple,
            fields,
        )))
    }

    fn is_within(&self, left: &mut usize) -> bool {
        let Some(rest) = left.checked_sub(1) else {
            return false;
        };
        *left = rest;
        match self {
            TypeDesc::Array(element, _) => element.is_within(left),
            TypeDesc::Struct(desc) => desc.is_within(left),
            TypeDesc::Tuple(parts) => parts.iter().all(|part| part.is_within(left)),
            TypeDesc::Option(some) => some.is_within(left),
            TypeDesc::Result(either) => either.iter().all(|part| part.is_within(left)),
            TypeDesc::Scalar(_) | TypeDesc::Enum(_) => true,
        }
    }
}

impl TypeDesc {
    /// The type's `Default`, where its parts say theirs.
    pub(crate) fn default(&self) -> Option<ConstValue> {
        let of = |ty: &TypeDesc| ty.default();
        Some(match self {
            TypeDesc::Scalar(_) | TypeDesc::Option(_) => self.zero(),
            TypeDesc::Array(element, len) => ConstValue::Array((**element).clone(), vec![of(element)?; *len]),
            TypeDesc::Tuple(parts) => ConstValue::Tuple(parts.iter().map(of).collect::<Option<_>>()?),
            TypeDesc::Enum(desc) => desc.default?()?,
            TypeDesc::Struct(desc) => match (desc.default, &desc.of) {
                (Some(default), _) => default()?,
                (None, Some((generic, _))) if generic.defaults_by_fields() => {
                    let fields = desc.fields.iter().map(|field| of(&field.ty));
                    ConstValue::Struct(desc.clone(), fields.collect::<Option<_>>()?)
                }
                _ => return None,
            },
            TypeDesc::Result(_) => return None,
        })
    }
}

impl StructDesc {
    /// Whether its generic arguments are made of at most `left` types, which they take off.
    pub(crate) fn is_within(&self, left: &mut usize) -> bool {
        let mut args = self.of.iter().flat_map(|(_, args)| args);
        args.all(|arg| arg.is_within(left))
    }
}

impl GenericStruct {
    /// The description of a generic struct of the running program; `Key` is a type of its own. For `derive(GpuType)`.
    pub fn of<Key: 'static>(
        name: &str,
        tuple: bool,
        params: Vec<TypeParam>,
        fields: Vec<(&str, FieldType)>,
    ) -> Arc<GenericStruct> {
        Arc::new(GenericStruct {
            key: TypeKey::Program(TypeId::of::<Key>()),
            name: name.to_owned(),
            tuple,
            params,
            fields: fields
                .into_iter()
                .map(|(name, ty)| (name.to_owned(), ty))
                .collect(),
            variants: Vec::new(),
            default: None,
        })
    }

    /// The same with what gives the `Default` of one instance. For `derive(GpuType)`.
    #[must_use]
    pub fn with_default(mut self: Arc<Self>, default: fn() -> Option<ConstValue>) -> Arc<Self> {
        if let Some(of) = Arc::get_mut(&mut self) {
            of.default = Some(default);
        }
        self
    }

    /// Whether each field of an instance's `Default` is its own.
    pub(crate) fn defaults_by_fields(&self) -> bool {
        let Some(ConstValue::Struct(of, values)) = self.default.and_then(|default| default()) else {
            return false;
        };
        let mut fields = of.fields.iter().zip(&values);
        fields.all(|(field, value)| field.ty.default().as_ref() == Some(value))
    }

    /// `Range`, or `RangeInclusive` where it has its end: both are their ends.
    pub(crate) fn range(closed: bool) -> Arc<GenericStruct> {
        let fields = vec![("start", FieldType::Param(0)), ("end", FieldType::Param(0))];
        let params = vec![TypeParam::Type];
        match closed {
            false => GenericStruct::of::<Range<()>>("Range", false, params, fields),
            true => GenericStruct::of::<RangeInclusive<()>>("RangeInclusive", false, params, fields),
        }
    }

    /// The numbers of a range in steps: the first one, what is added for the next, and how many there are, which is a `usize`.
    pub(crate) fn steps() -> Arc<GenericStruct> {
        let fields = vec![
            ("first", FieldType::Param(0)),
            ("step", FieldType::Param(0)),
            ("count", FieldType::Param(1)),
        ];
        let params = vec![TypeParam::Type, TypeParam::Type];
        GenericStruct::of::<StepBy<Range<()>>>("StepBy", false, params, fields)
    }

    /// The description of a generic enum with data of the running program; `Key` is a type of its own. For `derive(GpuType)`.
    pub fn of_variants<Key: 'static>(
        name: &str,
        params: Vec<TypeParam>,
        variants: Vec<(&str, Vec<(&str, FieldType)>)>,
    ) -> Arc<GenericStruct> {
        let key = TypeKey::Program(TypeId::of::<Key>());
        let (fields, variants) = parts(&key, name, variants, FieldType::Known);
        Arc::new(GenericStruct {
            key,
            name: name.to_owned(),
            tuple: false,
            params,
            fields,
            variants,
            default: None,
        })
    }

    /// The instance with these arguments, a struct laid out as `repr(C)` says; `None` where they do not fit, or are made of too many types.
    pub fn instance(self: &Arc<Self>, args: Vec<TypeArg>) -> Option<TypeDesc> {
        let mut left = MOST_PARTS;
        if !args.iter().all(|arg| arg.is_within(&mut left)) {
            return None;
        }
        let fields = self.fields.iter().map(|(name, ty)| match ty.with(&args)? {
            TypeArg::Type(ty) => Some((name.clone(), ty)),
            TypeArg::Const(_) => None,
        });
        let fields: Vec<(String, TypeDesc)> = fields.collect::<Option<_>>()?;
        let key = TypeKey::Instance(Arc::new((self.key.clone(), args.clone())));
        let name = self.shown(&args);
        let mut desc = match self.variants.is_empty() {
            true => StructDesc::laid_out(key, name, self.tuple, fields).ok()?,
            false => StructDesc::of_values(key, name, (fields, self.variants.clone())),
        };
        desc.of = Some((self.clone(), args));
        Some(TypeDesc::Struct(Arc::new(desc)))
    }

    fn shown(&self, args: &[TypeArg]) -> String {
        let args: Vec<String> = args.iter().map(TypeArg::to_string).collect();
        format!("{}<{}>", self.name, args.join(", "))
    }
}

impl FieldType {
    /// What it is with these arguments; `None` where they do not fit.
    fn with(&self, args: &[TypeArg]) -> Option<TypeArg> {
        let ty = |field: &FieldType| match field.with(args)? {
            TypeArg::Type(ty) => Some(ty),
            TypeArg::Const(_) => None,
        };
        Some(match self {
            FieldType::Known(ty) => TypeArg::Type(ty.clone()),
            FieldType::Const(value) => TypeArg::Const(*value),
            FieldType::Param(index) => args.get(*index)?.clone(),
            FieldType::Array(parts) => match (parts.0.with(args)?, parts.1.with(args)?) {
                (TypeArg::Type(element), TypeArg::Const(len)) => {
                    TypeArg::Type(TypeDesc::Array(Arc::new(element), usize::try_from(len).ok()?))
                }
                _ => return None,
            },
            FieldType::Tuple(parts) => {
                TypeArg::Type(TypeDesc::Tuple(parts.iter().map(ty).collect::<Option<_>>()?))
            }
            FieldType::Option(some) => TypeArg::Type(TypeDesc::Option(Arc::new(ty(some)?))),
            FieldType::Result(both) => {
                TypeArg::Type(TypeDesc::Result(Arc::new([ty(&both[0])?, ty(&both[1])?])))
            }
            FieldType::Instance(of, inner) => {
                let inner = inner.iter().map(|arg| arg.with(args));
                TypeArg::Type(of.instance(inner.collect::<Option<_>>()?)?)
            }
        })
    }
}

/// The fields of an enum with data, one variant's after another's behind the number of the variant, and which belong to which.
pub(crate) fn parts<N: Into<String>, F>(
    key: &TypeKey,
    name: &str,
    variants: Vec<(N, Vec<(N, F)>)>,
    known: impl FnOnce(TypeDesc) -> F,
) -> (Vec<(String, F)>, Vec<VariantDesc>) {
    let (mut tags, mut fields, mut own) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (variant, of_variant)) in (0..).zip(variants) {
        let variant = variant.into();
        let first = 1 + fields.len();
        fields.extend(of_variant.into_iter().map(|(name, ty)| (name.into(), ty)));
        tags.push((variant.clone(), number));
        own.push(VariantDesc {
            name: variant,
            fields: first..1 + fields.len(),
        });
    }
    let tag = TypeDesc::Enum(Arc::new(EnumDesc {
        key: key.clone(),
        name: name.to_owned(),
        repr: Scalar::U32,
        variants: tags,
        in_order: None,
        default: None,
    }));
    fields.insert(0, (String::new(), known(tag)));
    (fields, own)
}

impl StructDesc {
    /// An enum with data, of what [`parts`] gives.
    pub(crate) fn of_values(
        key: TypeKey,
        name: String,
        (fields, variants): (Vec<(String, TypeDesc)>, Vec<VariantDesc>),
    ) -> StructDesc {
        let fields = fields
            .into_iter()
            .map(|(name, ty)| FieldDesc { name, ty, offset: 0 });
        StructDesc {
            key,
            name,
            tuple: false,
            fields: fields.collect(),
            variants,
            size: 0,
            align: 1,
            of: None,
            default: None,
        }
    }

    /// A struct with these fields that no memory takes.
    pub(crate) fn of_fields(
        key: TypeKey,
        name: String,
        tuple: bool,
        fields: Vec<(String, TypeDesc)>,
    ) -> StructDesc {
        let fields = StructDesc::of_values(key, name, (fields, Vec::new()));
        StructDesc {
            tuple,
            align: 0,
            ..fields
        }
    }

    /// Whether memory takes it.
    pub(crate) fn in_memory(&self) -> bool {
        self.variants.is_empty() && self.align != 0
    }

    /// A struct with these fields, laid out as `repr(C)` says. Where memory has no room for that, places and sizes are the largest that
    /// there are.
    ///
    /// # Errors
    /// The name of the first field whose type has no layout.
    pub fn laid_out(
        key: TypeKey,
        name: String,
        tuple: bool,
        types: Vec<(String, TypeDesc)>,
    ) -> Result<StructDesc, String> {
        let (mut size, mut align) = (0usize, 1usize);
        let mut fields = Vec::with_capacity(types.len());
        for (name, ty) in types {
            let Some((bytes, own)) = ty.host_layout() else {
                return Err(name);
            };
            let offset = aligned(size, own);
            size = offset.saturating_add(bytes);
            align = align.max(own);
            fields.push(FieldDesc { name, ty, offset });
        }
        Ok(StructDesc {
            key,
            name,
            tuple,
            fields,
            variants: Vec::new(),
            size: aligned(size, align),
            align,
            of: None,
            default: None,
        })
    }
}

/// The next place that is aligned so, or the last one.
fn aligned(place: usize, align: usize) -> usize {
    place
        .checked_next_multiple_of(align)
        .unwrap_or(usize::MAX - align + 1)
}

impl TypeDesc {
    /// The description of the struct `T`, the instance of `of` with these arguments, whose fields stand at these offsets. For
    /// `derive(GpuType)`.
    pub fn of_instance<T: 'static>(
        of: &Arc<GenericStruct>,
        args: Vec<TypeArg>,
        offsets: &[usize],
    ) -> TypeDesc {
        let Some(TypeDesc::Struct(mut desc)) = of.instance(args) else {
            // It has no layout, so no memory takes it.
            return TypeDesc::Tuple(Vec::new());
        };
        if let Some(desc) = Arc::get_mut(&mut desc) {
            // What the compiler says, so that a layout that is not C's is found.
            (desc.size, desc.align) = (size_of::<T>(), align_of::<T>());
            for (field, offset) in desc.fields.iter_mut().zip(offsets) {
                field.offset = *offset;
            }
        }
        TypeDesc::Struct(desc)
    }
}

impl fmt::Display for TypeArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypeArg::Type(ty) => ty.fmt(f),
            TypeArg::Const(value) => value.fmt(f),
        }
    }
}
