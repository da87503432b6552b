//! What the front end's types become in the IR.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use perpetua_syntax::Scalar;

use crate::front::rust::describe::{StructDesc, TypeDesc, TypeKey, VariantDesc};
use crate::front::rust::infer::methods::{WIDE_NAMES, num};
use crate::front::rust::infer::ty::{Len, Ty, show};
use crate::ir::{StructType, Type};

/// The structs of a kernel.
#[derive(Default)]
pub(super) struct Types {
    structs: HashMap<TypeKey, Type>,
    names: HashSet<String>,
}

/// Cause and remedy.
type Refusal = (String, String);

impl Types {
    /// The IR's type.
    pub(super) fn convert(&mut self, ty: &Ty, width: u32) -> Result<Type, Refusal> {
        match ty {
            Ty::Scalar(s) => Ok(num(*s, width).into()),
            Ty::Enum(e) => Ok(num(e.repr, width).into()),
            Ty::Tag(of) => Ok(num(tag_scalar(of), width).into()),
            Ty::Array(element, Len::Known(len)) => {
                let element = self.convert(element, width)?;
                let bytes = u64::from(element.size()).saturating_mul(*len);
                match u32::try_from(*len) {
                    Ok(len) if len > 0 && bytes <= u64::from(u32::MAX) => Ok(Type::array(element, len)),
                    _ => Err((
                        format!("`{}` has {len} elements and {bytes} bytes", show(ty)),
                        "an array has at least one element and less than 4 GiB".into(),
                    )),
                }
            }
            Ty::Struct(desc) => self.structure(desc, width),
            Ty::Tuple(elements) if !elements.is_empty() => Ok(Type::tuple(
                elements
                    .iter()
                    .map(|e| match e.is_unit() {
                        // Nobody looks at it.
                        true => Ok(Type::BOOL),
                        false => self.convert(e, width),
                    })
                    .collect::<Result<_, _>>()?,
            )),
            Ty::Instance(of, _) if !show(ty).contains('_') => Err((
                format!("`{}` has no layout in memory", show(ty)),
                format!(
                    "the arguments of `{}` are scalars, arrays and structs of such",
                    of.name
                ),
            )),
            Ty::Var(_) | Ty::Array(_, Len::Var(_)) | Ty::Instance(..) => Err((
                "the type of a value is not known".into(),
                "annotate it: `let x: T = …`".into(),
            )),
            Ty::Ref(..) | Ty::Slice(_) => Err((
                format!("a reference `{}` is kept as a value", show(ty)),
                "references are bound once, or passed to functions: keep an index or a copy instead".into(),
            )),
            Ty::Tuple(_) | Ty::Never => Err(("`()` is kept as a value".into(), "leave it out".into())),
            // The emitter makes tuples of them: `plain`.
            Ty::Option(_) | Ty::Result(..) => {
                Err((format!("a `{}` is kept in memory", show(ty)), String::new()))
            }
            Ty::Closure(_) => Err((
                "a closure is kept as a value".into(),
                "call it, or pass it to a `#[device]` function".into(),
            )),
            Ty::GridPos => Err((
                "a `GridPos` is kept as a value".into(),
                "pass it to functions by value".into(),
            )),
        }
    }

    fn structure(&mut self, desc: &StructDesc, width: u32) -> Result<Type, Refusal> {
        if let Some(ty) = self.structs.get(&desc.key) {
            return Ok(ty.clone());
        }
        let mut fields = Vec::new();
        for field in &desc.fields {
            let ty = self.convert(&Ty::from_desc(&field.ty), width)?;
            fields.push((field_name(&field.name), ty));
        }
        if u32::try_from(desc.size).is_err() {
            return Err((
                format!("the struct `{}` has {} bytes", desc.name, desc.size),
                "make it smaller than 4 GiB".into(),
            ));
        }
        if fields.is_empty() {
            return Err((
                format!("the struct `{}` has no fields", desc.name),
                "give it one".into(),
            ));
        }
        let mut name = identifier(&desc.name);
        let mut n = 1;
        while WIDE_NAMES.contains(&&*name) || !self.names.insert(name.clone()) {
            n += 1;
            name = format!("{}_{n}", identifier(&desc.name));
        }
        // Such a struct is in no buffer (`check_shared`), so its layout is the device's own.
        if width == 32 && holds_usize(&TypeDesc::Struct(Arc::new(desc.clone()))) {
            let ty = Type::Struct(Arc::new(StructType::repr_c(name, fields, 1)));
            self.structs.insert(desc.key.clone(), ty.clone());
            return Ok(ty);
        }
        let laid = StructType::repr_c(name, fields, desc.align as u32);
        let same = laid.size as usize == desc.size
            && laid.align as usize == desc.align
            && laid
                .fields
                .iter()
                .zip(&desc.fields)
                .all(|(a, b)| a.offset as usize == b.offset);
        if !same {
            return Err((
                format!(
                    "the struct `{}` is not laid out as `repr(C)`: {} bytes instead of {}",
                    desc.name, desc.size, laid.size
                ),
                "write `#[repr(C)]` on it".into(),
            ));
        }
        let ty = Type::Struct(Arc::new(laid));
        self.structs.insert(desc.key.clone(), ty.clone());
        Ok(ty)
    }
}

/// Refuses structs that host and device would lay out differently, where both look at them.
pub(super) fn check_shared(ty: &Ty, width: u32) -> Result<(), Refusal> {
    match ty {
        Ty::Array(element, _) => check_shared(element, width),
        Ty::Struct(desc) if width == 32 => match desc.fields.iter().find(|f| holds_usize(&f.ty)) {
            Some(field) => Err((
                format!(
                    "the field `{}` of `{}` holds `usize` or `isize`, whose size differs between host and device",
                    field.name, desc.name
                ),
                "use u32 or u64".into(),
            )),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The type with each type that has variants as a tuple of its parts: which variant it is, and what each holds; and with
/// structs that no memory takes as tuples.
pub(super) fn plain(ty: &Ty) -> Ty {
    let parts = |of: &Arc<StructDesc>, parts: &mut dyn Iterator<Item = Ty>| {
        let tag = std::iter::once(Ty::Tag(of.clone()));
        Ty::Tuple(tag.chain(parts.map(|part| plain(&part))).collect())
    };
    match ty {
        Ty::Option(some) => parts(&OPTION, &mut std::iter::once((**some).clone())),
        Ty::Result(ok, err) => parts(&RESULT, &mut [(**ok).clone(), (**err).clone()].into_iter()),
        Ty::Struct(desc) if !desc.variants.is_empty() => {
            let fields = desc.fields.iter().skip(1);
            parts(desc, &mut fields.map(|field| Ty::from_desc(&field.ty)))
        }
        Ty::Struct(desc) if !desc.in_memory() => {
            let fields = desc.fields.iter().map(|field| Ty::from_desc(&field.ty));
            Ty::Tuple(fields.map(|field| plain(&field)).collect())
        }
        Ty::Tuple(elements) => Ty::Tuple(elements.iter().map(plain).collect()),
        Ty::Array(element, len) => Ty::Array(Rc::new(plain(element)), *len),
        Ty::Ref(mutable, target) => Ty::Ref(*mutable, Rc::new(plain(target))),
        Ty::Slice(element) => Ty::Slice(Rc::new(plain(element))),
        other => other.clone(),
    }
}

/// What an `Option` holds, of its parts as [`plain`] has them.
pub(super) fn held(parts: &[Ty]) -> Option<&Ty> {
    match parts {
        [Ty::Tag(of), some] if Arc::ptr_eq(of, &OPTION) => Some(some),
        _ => None,
    }
}

/// `Option` and `Result` as enums with data, of which the variant is a `bool`.
static OPTION: LazyLock<Arc<StructDesc>> =
    LazyLock::new(|| standard("Option", [("None", 1..1), ("Some", 1..2)]));
static RESULT: LazyLock<Arc<StructDesc>> =
    LazyLock::new(|| standard("Result", [("Err", 2..3), ("Ok", 1..2)]));

fn standard(name: &str, variants: [(&str, Range<usize>); 2]) -> Arc<StructDesc> {
    let variants = variants.map(|(name, fields)| VariantDesc {
        name: name.to_owned(),
        fields,
    });
    let tag = (String::new(), TypeDesc::Scalar(Scalar::Bool));
    let key = TypeKey::Source(name.into());
    let parts = (vec![tag], variants.to_vec());
    Arc::new(StructDesc::of_values(key, name.to_owned(), parts))
}

/// The scalar that says which variant a value is.
pub(super) fn tag_scalar(of: &StructDesc) -> Scalar {
    match of.fields.first().map(|tag| &tag.ty) {
        Some(TypeDesc::Scalar(scalar)) => *scalar,
        Some(TypeDesc::Enum(tag)) => tag.repr,
        _ => Scalar::U32,
    }
}

/// Whether a value of the type differs in size between pointer widths.
fn holds_usize(ty: &TypeDesc) -> bool {
    match ty {
        TypeDesc::Scalar(Scalar::Usize | Scalar::Isize) => true,
        TypeDesc::Scalar(_) => false,
        TypeDesc::Enum(e) => matches!(e.repr, Scalar::Usize | Scalar::Isize),
        TypeDesc::Array(element, _) => holds_usize(element),
        TypeDesc::Struct(desc) => desc.fields.iter().any(|field| holds_usize(&field.ty)),
        TypeDesc::Tuple(elements) => elements.iter().any(holds_usize),
        TypeDesc::Option(some) => holds_usize(some),
        TypeDesc::Result(both) => both.iter().any(holds_usize),
    }
}

/// A field's name. Tuple structs keep their numbers, as tuples do.
fn field_name(name: &str) -> String {
    if name.bytes().all(|b| b.is_ascii_digit()) {
        name.to_owned()
    } else {
        identifier(name)
    }
}

/// The name as an identifier of ASCII: other letters by their code points, so that different names stay different.
pub(super) fn identifier(name: &str) -> String {
    let name = name.strip_prefix("r#").unwrap_or(name);
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c);
        } else if c.is_ascii() {
            out.push('_');
        } else {
            out.push_str(&format!("u{:x}_", u32::from(c)));
        }
    }
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert(0, '_');
    }
    out
}
