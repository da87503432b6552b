//! Types.

use super::Refusal;
use super::path::{segment_names, single_name};
use super::reader::{Reader, name_of};
use crate::Intrinsic;
use crate::ast::{GenericArg, PathUsage, Scalar, Type, TypeMember};
use crate::nesting::Level;

/// Why a well-known type of the standard library is not in the language.
fn refused_type(name: &str) -> Option<Refusal> {
    Some(match name {
        "char" => Refusal::CharType,
        "str" | "String" | "CStr" | "CString" | "OsStr" | "OsString" => Refusal::StrType,
        "PhantomData" => Refusal::PhantomType,
        "Wrapping" => Refusal::WrappingType,
        "Saturating" => Refusal::SaturatingType,
        "NonZero" | "NonZeroU8" | "NonZeroU16" | "NonZeroU32" | "NonZeroU64" | "NonZeroU128"
        | "NonZeroUsize" | "NonZeroI8" | "NonZeroI16" | "NonZeroI32" | "NonZeroI64" | "NonZeroI128"
        | "NonZeroIsize" => Refusal::NonZeroType,
        "Vec" | "Box" | "VecDeque" | "HashMap" | "HashSet" | "BTreeMap" | "BTreeSet" | "BinaryHeap"
        | "Cow" => Refusal::HeapType,
        "Rc" | "Arc" | "RefCell" | "UnsafeCell" | "Mutex" | "RwLock" | "OnceCell" | "OnceLock" => {
            Refusal::SharedType
        }
        "AtomicBool" | "AtomicI8" | "AtomicI16" | "AtomicI32" | "AtomicI64" | "AtomicIsize" | "AtomicU8"
        | "AtomicU16" | "AtomicU32" | "AtomicU64" | "AtomicUsize" | "AtomicPtr" => Refusal::AtomicType,
        _ => return None,
    })
}

/// The refused type among a path's segments: `Vec` of `Vec::new`.
pub(super) fn refused_segment(path: &syn::Path) -> Option<(Refusal, String)> {
    segment_names(path)
        .into_iter()
        .find_map(|name| Some((refused_type(&name)?, name)))
}

/// Of what `Range<T>` or `RangeInclusive<T>` is a range, and whether it has its end.
pub(super) fn range_of(ty: &syn::Type) -> Option<(&syn::Type, bool)> {
    let syn::Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let closed = match name_of(&last.ident).as_str() {
        "Range" => false,
        "RangeInclusive" => true,
        _ => return None,
    };
    match &last.arguments {
        syn::PathArguments::AngleBracketed(args) => match args.args.first()? {
            syn::GenericArgument::Type(of) => Some((of, closed)),
            _ => None,
        },
        _ => None,
    }
}

impl Reader {
    /// There is one dynamic shared memory, of one type: two scalars differ in every instance.
    pub(super) fn check_dynamic(&mut self, of: Intrinsic, generics: &[GenericArg], call: &syn::ExprCall) {
        let (Intrinsic::SharedSlice, [GenericArg::Type(Type::Scalar(scalar))]) = (of, generics) else {
            return;
        };
        let before = *self.dynamic.get_or_insert(*scalar);
        if before != *scalar {
            let (before, now) = (before.name(), scalar.name());
            let cause = format!("the dynamic shared memory is used as `{before}` and as `{now}`");
            let remedy = "use one element type, and `to_bits` and `from_bits`";
            self.error(&call.func, format!("{cause}: {remedy}"));
        }
    }

    /// A type anywhere.
    pub(super) fn read_type(&mut self, ty: &syn::Type) -> Type {
        let Some(_level) = Level::enter() else {
            self.refuse(ty, Refusal::TooDeep);
            return Type::Infer;
        };
        match ty {
            syn::Type::Paren(paren) => self.read_type(&paren.elem),
            syn::Type::Group(group) => self.read_type(&group.elem),
            syn::Type::Infer(_) => Type::Infer,
            syn::Type::Tuple(tuple) if tuple.elems.is_empty() => Type::Unit,
            syn::Type::Tuple(tuple) => Type::Tuple(
                tuple
                    .elems
                    .iter()
                    .map(|element| self.read_type(element))
                    .collect(),
            ),
            syn::Type::Array(array) => Type::Array {
                element: Box::new(self.read_type(&array.elem)),
                len: Box::new(self.read_length(&array.len)),
            },
            syn::Type::Reference(reference) => Type::Ref {
                mutable: reference.mutability.is_some(),
                target: Box::new(self.read_target(&reference.elem)),
            },
            syn::Type::Path(path) => self.read_type_path(path, ty),
            other => {
                self.refuse(other, refusal_of(other));
                Type::Infer
            }
        }
    }

    /// The type behind a reference, which alone may be a slice.
    pub(super) fn read_target(&mut self, ty: &syn::Type) -> Type {
        match ty {
            syn::Type::Slice(slice) => Type::Slice(Box::new(self.read_type(&slice.elem))),
            syn::Type::Paren(paren) => self.read_target(&paren.elem),
            syn::Type::Group(group) => self.read_target(&group.elem),
            other => self.read_type(other),
        }
    }

    /// `Option<T>`, `Result<T, E>`.
    fn read_option(&mut self, path: &syn::Path, name: &str) -> Type {
        let args = match path.segments.last().map(|last| &last.arguments) {
            Some(syn::PathArguments::AngleBracketed(args)) => args.args.iter().collect(),
            _ => Vec::new(),
        };
        match (name, &args[..]) {
            ("Option", [syn::GenericArgument::Type(some)]) => Type::Option(Box::new(self.read_type(some))),
            ("Result", [syn::GenericArgument::Type(ok), syn::GenericArgument::Type(err)]) => {
                Type::Result(Box::new((self.read_type(ok), self.read_type(err))))
            }
            _ => {
                self.refuse_named(path, Refusal::OptionType, name);
                Type::Infer
            }
        }
    }

    /// The type that a path starts with, where its types are associated ones.
    fn head_type(&self, name: &str) -> Option<Type> {
        match self.type_param(name) {
            Some(index) => Some(Type::Generic(index)),
            None => (name == "Self").then_some(Type::SelfType),
        }
    }

    /// What `Self::Output` is where the block that is read says it.
    pub(super) fn own_type(&mut self, names: &[String]) -> Option<Type> {
        let ["Self", name] = [names.first()?.as_str(), names.get(1)?.as_str()] else {
            return None;
        };
        // Out of reach meanwhile, so that a type that is itself ends.
        let (name, ty) = self.own_types.remove_entry(name)?;
        let read = self.read_type(&ty);
        self.own_types.insert(name, ty);
        Some(read)
    }

    fn read_type_path(&mut self, path: &syn::TypePath, whole: &syn::Type) -> Type {
        if let Some(qself) = &path.qself {
            return Type::Assoc(Box::new(self.qualified_member(qself, &path.path)));
        }
        let path = &path.path;
        let names = segment_names(path);
        let known = match &names[..] {
            [first, rest @ ..] if !rest.is_empty() => match self.own_type(&names) {
                Some(own) => Some((own, &rest[1..])),
                None => self.head_type(first).map(|head| (head, rest)),
            },
            _ => None,
        };
        if let Some((head, rest)) = known {
            return rest.iter().fold(head, |ty, name| {
                let member = TypeMember {
                    ty,
                    via: None,
                    name: name.clone(),
                };
                Type::Assoc(Box::new(member))
            });
        }
        if let Some(name) = single_name(path) {
            if name == "Self" {
                return Type::SelfType;
            }
            if let Some(index) = self.type_param(&name) {
                return Type::Generic(index);
            }
            if let Some(scalar) = Scalar::from_name(&name) {
                return Type::Scalar(scalar);
            }
        }
        let last = segment_names(path).pop().unwrap_or_default();
        if let Some(refusal) = refused_type(&last) {
            self.refuse_named(path, refusal, &last);
            return Type::Infer;
        }
        // A type of the user's own with such a name has no argument.
        if let Some((of, closed)) = range_of(whole) {
            return Type::Range(Box::new(self.read_type(of)), closed);
        }
        match last.as_str() {
            "f16" => Type::Scalar(Scalar::F16),
            "bf16" => Type::Scalar(Scalar::Bf16),
            "GridPos" => Type::GridPos,
            "Option" | "Result" => self.read_option(path, &last),
            _ => Type::Named(self.path(path, PathUsage::Type)),
        }
    }
}

/// Why a form of type is not in the language.
fn refusal_of(ty: &syn::Type) -> Refusal {
    match ty {
        syn::Type::Ptr(_) => Refusal::RawPointer,
        syn::Type::BareFn(_) => Refusal::FnPointer,
        syn::Type::TraitObject(_) => Refusal::TraitObject,
        syn::Type::ImplTrait(_) => Refusal::ImplTrait,
        syn::Type::Slice(_) => Refusal::BareSlice,
        syn::Type::Never(_) => Refusal::NeverType,
        syn::Type::Macro(_) => Refusal::TypeMacro,
        _ => Refusal::OtherType,
    }
}
