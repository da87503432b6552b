//! Paths and generic arguments: locals, parameters, constants of scalars, and the table of all others.

use super::Refusal;
use super::reader::{Reader, line_of, name_of};
use crate::ast::{
    Expr, ExprKind, GenericArg, InScope, PathId, PathRef, PathSegment, PathUsage, Scalar, Type, TypeMember,
    Variant,
};
use quote::quote_spanned;
use syn::spanned::Spanned;

/// What stands between the parentheses of a call.
type Arguments = syn::punctuated::Punctuated<syn::Expr, syn::Token![,]>;

/// The names of a path's segments.
pub(super) fn segment_names(path: &syn::Path) -> Vec<String> {
    path.segments
        .iter()
        .map(|segment| name_of(&segment.ident))
        .collect()
}

/// The path's name where it is a single name without arguments.
pub(super) fn single_name(path: &syn::Path) -> Option<String> {
    path.get_ident().map(name_of)
}

/// The variant of `Option` or `Result` that a path names.
pub(super) fn variant_of(path: &syn::Path) -> Option<Variant> {
    let names = segment_names(path);
    let (last, before) = names.split_last()?;
    before
        .last()
        .is_none_or(|before| before == "Option" || before == "Result")
        .then(|| Variant::from_name(last))
        .flatten()
}

/// `Ok::<u32, E>(value)` and `Option::<u32>::None` as a variable of the type that they say; `None` of others.
pub(super) fn typed_variant(path: &syn::Path, payload: Option<&Arguments>) -> Option<syn::Expr> {
    let variant = variant_of(path)?;
    let args = path
        .segments
        .iter()
        .rev()
        .take(2)
        .find_map(|segment| match &segment.arguments {
            syn::PathArguments::AngleBracketed(args) => Some(&args.args),
            _ => None,
        })?;
    let of = match variant {
        Variant::Some | Variant::None => "Option",
        Variant::Ok | Variant::Err => "Result",
    };
    let (span, name) = (path.span(), &path.segments.last()?.ident);
    let of = syn::Ident::new(of, span);
    let value = match payload {
        Some(payload) => quote_spanned!(span=> #name(#payload)),
        None => quote_spanned!(span=> #name),
    };
    syn::parse2(quote_spanned!(span=> { let __typed: #of<#args> = #value; __typed })).ok()
}

/// `|value| value.is_none()` for `Option::is_none`, a method by its name.
pub(super) fn closure_of_method(function: &syn::ExprPath) -> Option<syn::Expr> {
    if function.qself.is_some() {
        return None;
    }
    let mut segments = function.path.segments.iter().rev();
    let (name, of) = (&segments.next()?.ident, &segments.next()?.ident);
    let is_method = (of == "Option" || of == "Result") && !starts_upper(&name_of(name));
    is_method.then(|| syn::parse_quote_spanned!(name.span()=> |__value| __value.#name()))
}

/// Whether a name starts like a type, a variant or a constant.
pub(super) fn starts_upper(name: &str) -> bool {
    name.chars().find(|&c| c != '_').is_some_and(char::is_uppercase)
}

/// Whether a name is written like a constant, and not like a type or a type parameter.
fn is_shouting(name: &str) -> bool {
    name.chars().filter(|c| c.is_uppercase()).count() > 1 && !name.chars().any(char::is_lowercase)
}

/// Whether a path names a variant: `Shape::Circle`.
pub(super) fn is_variant(path: &syn::Path) -> bool {
    match &segment_names(path)[..] {
        [.., before, last] => starts_upper(before) && starts_upper(last),
        _ => false,
    }
}

impl Reader {
    /// A path as an expression, not called.
    pub(super) fn read_path_value(&mut self, path: &syn::ExprPath) -> ExprKind {
        if let Some(qself) = &path.qself {
            return ExprKind::TypeConst(Box::new(self.qualified_member(qself, &path.path)));
        }
        let path = &path.path;
        if let Some(name) = single_name(path) {
            if let Some(function) = self.named_function(path) {
                return self.read_path_value(&function);
            }
            if let Some(range) = self.named_range(&name, line_of(path.segments[0].ident.span())) {
                return range;
            }
            if self.iterator(&name).is_some() {
                self.refuse_named(path, Refusal::IteratorValue, &name);
                return ExprKind::Tuple(Vec::new());
            }
            if self.is_local(&name) || name == "self" {
                return ExprKind::Local(name);
            }
            if let Some(index) = self.const_param(&name) {
                return ExprKind::ConstParam(index);
            }
        }
        if let Some(typed) = typed_variant(path, None) {
            return self.read_expr(&typed).kind;
        }
        if let Some(variant @ Variant::None) = variant_of(path) {
            return ExprKind::Variant {
                variant,
                payload: None,
            };
        }
        let member = self.type_member(path).or_else(|| self.member_with_args(path));
        match member.or_else(|| self.unit_variant(path)) {
            Some(member) => ExprKind::TypeConst(Box::new(member)),
            None => ExprKind::Path(self.path(path, PathUsage::Value)),
        }
    }

    /// The enum and the variant of `Shape::Circle`, `Self::Circle` and `Maybe::<f32>::Just`; the path is one of a variant.
    pub(super) fn variant(&mut self, path: &syn::Path) -> Option<TypeMember> {
        if let Some(member) = self.member_with_args(path) {
            return Some(member);
        }
        let mut head = path.clone();
        let name = name_of(&head.segments.pop()?.into_value().ident);
        head.segments.pop_punct();
        let ty = match single_name(&head) {
            Some(own) if own == "Self" => Type::SelfType,
            _ => Type::Named(self.path(&head, PathUsage::StructLiteral)),
        };
        let via = None;
        Some(TypeMember { ty, via, name })
    }

    /// The enum and the variant without data that a path names. Without a small letter it is taken for a constant.
    pub(super) fn unit_variant(&mut self, path: &syn::Path) -> Option<TypeMember> {
        let name = name_of(&path.segments.last()?.ident);
        if !is_variant(path) || !name.contains(char::is_lowercase) {
            return None;
        }
        self.variant(path)
    }

    /// The type and the member of `Pair::<f32>::ZERO`.
    fn member_with_args(&mut self, path: &syn::Path) -> Option<TypeMember> {
        let mut ty = path.clone();
        let name = ty.segments.pop()?.into_value().ident;
        ty.segments.pop_punct();
        if ty.segments.last()?.arguments.is_none() {
            return None;
        }
        let ty = syn::Type::Path(syn::TypePath {
            qself: None,
            path: ty,
        });
        Some(TypeMember {
            ty: self.read_type(&ty),
            via: None,
            name: name_of(&name),
        })
    }

    /// The table's entry of a path.
    pub(super) fn path(&mut self, path: &syn::Path, usage: PathUsage) -> PathId {
        self.intern(path, usage, |reader| PathRef {
            leading_colon: path.leading_colon.is_some(),
            segments: path
                .segments
                .iter()
                .map(|segment| PathSegment {
                    name: name_of(&segment.ident),
                    args: reader.read_path_args(&segment.arguments),
                })
                .collect(),
            usage,
            line: line_of(path.span()),
            // A macro's spans have no bytes; there rustc says what is not in scope.
            locals: match path.get_ident() {
                Some(name) if !name.span().byte_range().is_empty() => InScope(reader.locals_in_scope()),
                _ => InScope::default(),
            },
        })
    }

    /// The type and the member of `f32::MAX`, `half::f16::ZERO`, `T::BITS`, `T::Output::ZERO` and `std::f32::consts::PI`; in
    /// default methods of `Self::ZERO`, too.
    pub(super) fn type_member(&mut self, path: &syn::Path) -> Option<TypeMember> {
        let names = segment_names(path);
        if path.segments.iter().any(|segment| !segment.arguments.is_empty()) {
            return None;
        }
        if let [_, _, name] = &names[..]
            && let Some(ty) = self.own_type(&names)
        {
            let (via, name) = (None, name.clone());
            return Some(TypeMember { ty, via, name });
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (ty, name) = match names[..] {
            ["std" | "core", ty @ ("f32" | "f64"), "consts", name] => (ty, name),
            [ty, name] | ["half", ty @ ("f16" | "bf16"), name] => (ty, name),
            ["Self", ..] if !self.any_self => return None,
            [ty, .., name] if ty == "Self" || self.type_param(ty).is_some() => (ty, name),
            _ => return None,
        };
        let mut ty = match self.type_param(ty) {
            Some(index) => Type::Generic(index),
            None if ty == "Self" && self.any_self => Type::SelfType,
            None => Type::Scalar(Scalar::from_name(ty)?),
        };
        if matches!(ty, Type::Generic(_) | Type::SelfType) {
            for inner in names.get(1..names.len() - 1).into_iter().flatten() {
                ty = Type::Assoc(Box::new(TypeMember {
                    ty,
                    via: None,
                    name: (*inner).to_owned(),
                }));
            }
        }
        Some(TypeMember {
            ty,
            via: None,
            name: name.to_owned(),
        })
    }

    /// The type and the member that a called path names, where the type is no path of its own: as
    /// [`type_member`](Self::type_member), of `Self::new`, and of `Trait::function`.
    pub(super) fn called_member(&mut self, path: &syn::Path) -> Option<TypeMember> {
        if let Some(member) = self.type_member(path).or_else(|| self.member_with_args(path)) {
            return Some(member);
        }
        let names = segment_names(path);
        let [.., head, name] = &names[..] else {
            return None;
        };
        let own = head == "Self" && names.len() == 2;
        let ty = match own {
            true => Type::SelfType,
            false if self.is_trait(head, name) => Type::Infer,
            false => return None,
        };
        Some(TypeMember {
            ty,
            via: (!own).then(|| head.clone()),
            name: name.clone(),
        })
    }

    /// The type and the member of `<T as Trait>::name` and `<T>::name`.
    pub(super) fn qualified_member(&mut self, qself: &syn::QSelf, path: &syn::Path) -> TypeMember {
        let mut ty = self.read_type(&qself.ty);
        let mut names = segment_names(path);
        let mut via = (qself.position > 0)
            .then(|| names.get(qself.position - 1).cloned())
            .flatten();
        let name = names.pop().unwrap_or_default();
        for inner in names.into_iter().skip(qself.position) {
            ty = Type::Assoc(Box::new(TypeMember {
                ty,
                via: via.take(),
                name: inner,
            }));
        }
        TypeMember { ty, via, name }
    }

    /// The generic arguments of a segment; lifetimes are left out.
    pub(super) fn read_path_args(&mut self, args: &syn::PathArguments) -> Vec<GenericArg> {
        match args {
            syn::PathArguments::None => Vec::new(),
            syn::PathArguments::AngleBracketed(args) => self.read_generic_args(args),
            syn::PathArguments::Parenthesized(args) => {
                self.refuse(args, Refusal::AssocArg);
                Vec::new()
            }
        }
    }

    /// The generic arguments of a turbofish; lifetimes are left out.
    pub(super) fn read_generic_args(
        &mut self,
        args: &syn::AngleBracketedGenericArguments,
    ) -> Vec<GenericArg> {
        let mut read = Vec::new();
        for arg in &args.args {
            match arg {
                syn::GenericArgument::Lifetime(_) => {}
                syn::GenericArgument::Type(ty) => read.push(self.read_type_arg(ty)),
                syn::GenericArgument::Const(value) => {
                    read.push(GenericArg::Const(self.read_const_arg(value)))
                }
                other => self.refuse(other, Refusal::AssocArg),
            }
        }
        read
    }

    /// A constant as a generic argument, without the braces that an expression needs there.
    fn read_const_arg(&mut self, value: &syn::Expr) -> Expr {
        if let syn::Expr::Block(block) = value
            && let [syn::Stmt::Expr(inner, None)] = &block.block.stmts[..]
        {
            return self.read_expr(inner);
        }
        self.read_expr(value)
    }

    /// A generic argument that parses as a type, and may be the name of a constant.
    fn read_type_arg(&mut self, ty: &syn::Type) -> GenericArg {
        if let syn::Type::Path(path) = ty
            && path.qself.is_none()
            && let Some(name) = single_name(&path.path)
            && self.type_param(&name).is_none()
            && (self.const_param(&name).is_some() || is_shouting(&name))
        {
            let value = syn::ExprPath {
                attrs: Vec::new(),
                qself: None,
                path: path.path.clone(),
            };
            return GenericArg::Const(self.read_expr(&syn::Expr::Path(value)));
        }
        GenericArg::Type(self.read_type(ty))
    }
}
