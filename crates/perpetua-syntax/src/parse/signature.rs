//! A function as a whole: qualifiers, generics, parameters, return type.

use super::chain::Bound;
use super::ranges::is_used;
use super::reader::{Bounds, Reader, line_of, name_of};
use super::sugar::local;
use super::types::range_of;
use super::{Read, Refusal};
use crate::ast::{Function, FunctionKind, Generic, Own, Param, Scalar, Stmt, StmtKind, Type};
use crate::intrinsic::Intrinsic;
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit::Visit;

/// What a function belongs to.
pub(super) enum Belongs<'a> {
    /// It is a free function.
    Nothing,
    /// An `impl` block.
    Block(&'a syn::ItemImpl),
    /// A trait of this name, whose default it is.
    Trait(String),
}

/// Reads a function from its two parts.
pub(super) fn read(
    sig: &syn::Signature,
    block: &syn::Block,
    kind: FunctionKind,
    belongs: &Belongs<'_>,
    file: &str,
) -> syn::Result<Read<Function>> {
    let expanded = super::by_example::expanded_body(block)?;
    let block = expanded.as_ref().unwrap_or(block);
    let mut reader = Reader::default();
    let own = reader.read_own(belongs);
    match belongs {
        Belongs::Nothing => reader.function = Some(name_of(&sig.ident)),
        Belongs::Block(block) if block.trait_.is_none() => reader.method = Some(name_of(&sig.ident)),
        Belongs::Block(_) | Belongs::Trait(_) => {}
    }
    reader.check_qualifiers(sig);
    reader.check_inner_items(sig, block);
    if let (FunctionKind::Device, Belongs::Nothing) = (kind, belongs)
        && Intrinsic::lookup(&name_of(&sig.ident)).is_some()
    {
        reader.refuse_named(&sig.ident, Refusal::IntrinsicName, &name_of(&sig.ident));
    }
    reader.read_generics(&sig.generics);
    let implicit = kind == FunctionKind::Device;
    let params: Vec<Param> = (sig.inputs.iter().enumerate())
        .map(|(index, input)| reader.read_param(input, index, implicit, &block.stmts))
        .collect();
    let ret = match &sig.output {
        syn::ReturnType::Default => None,
        syn::ReturnType::Type(_, ty) => Some(reader.read_type(ty)),
    };
    let kind = reader.check_kind(sig, kind, &params, ret.as_ref());
    if kind != FunctionKind::Device {
        reader.conditions = super::conditions(block);
    }
    for param in &params {
        let own = match &param.ty {
            Type::Ref {
                mutable: true,
                target,
            } => target,
            ty => ty,
        };
        if let Type::Generic(index) = own
            && reader.is_iterator_param(*index)
        {
            reader.declare_iterator(&param.name, Bound::called(&param.name, param.line));
        } else {
            reader.declare(&param.name);
        }
        if param.mutable {
            reader.declare_mutable(&param.name);
        }
        if matches!(&param.ty, Type::Ref { mutable: true, .. }) {
            reader.declare_mutable_ref(&param.name);
        }
    }
    let mut parts = Vec::new();
    for (param, input) in params.iter().zip(&sig.inputs) {
        parts.extend(reader.read_param_parts(param, input));
    }
    let mut body = reader.read_block(block);
    body.stmts.splice(0..0, parts);
    let mut attributes = Attributes(&mut reader);
    sig.inputs.iter().for_each(|input| attributes.visit_fn_arg(input));
    attributes.visit_block(block);
    let name = name_of(&sig.ident);
    let (line, file) = (line_of(sig.ident.span()), file.to_owned());
    let generics = std::mem::take(&mut reader.generics);
    reader.finish(|paths| Function {
        name,
        kind,
        file,
        line,
        own,
        generics,
        params,
        ret,
        body,
        paths,
    })
}

/// Whether a bound is `Iterator` or one of its kin.
fn is_iterator(path: &syn::Path) -> bool {
    let last = path.segments.last().map(|last| name_of(&last.ident));
    matches!(
        last.as_deref(),
        Some("Iterator" | "ExactSizeIterator" | "DoubleEndedIterator")
    )
}

impl Reader {
    fn check_qualifiers(&mut self, sig: &syn::Signature) {
        if let Some(token) = &sig.asyncness {
            self.refuse(token, Refusal::AsyncFn);
        }
        if let Some(token) = &sig.unsafety {
            self.refuse(token, Refusal::UnsafeFn);
        }
        if let Some(abi) = &sig.abi {
            self.refuse(abi, Refusal::ExternFn);
        }
        if let Some(variadic) = &sig.variadic {
            self.refuse(variadic, Refusal::Variadic);
        }
    }

    /// The kind that the parameters make of the kind asked for, and what it forbids.
    fn check_kind(
        &mut self,
        sig: &syn::Signature,
        kind: FunctionKind,
        params: &[Param],
        ret: Option<&Type>,
    ) -> FunctionKind {
        if kind == FunctionKind::Device {
            return kind;
        }
        if let Some(receiver) = sig.receiver() {
            self.refuse(receiver, Refusal::KernelReceiver);
        }
        if let Some(ty) = ret
            && *ty != Type::Unit
        {
            self.refuse(&sig.output, Refusal::KernelReturn);
        }
        for (param, input) in params.iter().zip(&sig.inputs) {
            if matches!(param.ty, Type::Option(_) | Type::Result(_)) {
                self.refuse(input, Refusal::OptionParam);
            }
            if holds_tuple(&param.ty) {
                self.refuse(input, Refusal::TupleParam);
            }
            if let Type::Range(_, closed) = param.ty {
                let name = if closed { "RangeInclusive" } else { "Range" };
                self.refuse_named(input, Refusal::RangeType, name);
            }
        }
        let mut positions = params
            .iter()
            .zip(&sig.inputs)
            .filter(|(param, _)| param.ty == Type::GridPos);
        match (positions.next(), positions.next()) {
            (None, _) if kind == FunctionKind::Stencil => self.refuse(&sig.ident, Refusal::NoGridPos),
            (None, _) => return kind,
            (Some(_), None) => {}
            (Some(_), Some((_, second))) => self.refuse(second, Refusal::TwoGridPos),
        }
        FunctionKind::Stencil
    }

    /// What `Self` is and how many parameters it brings, where it has any.
    pub(super) fn read_own(&mut self, belongs: &Belongs<'_>) -> Option<Own> {
        if let Belongs::Block(block) = belongs {
            self.own_types = (block.items.iter())
                .filter_map(|item| match item {
                    syn::ImplItem::Type(item) => Some((name_of(&item.ident), item.ty.clone())),
                    _ => None,
                })
                .collect();
        }
        let ty = match belongs {
            Belongs::Block(block) if is_generic_block(block) => {
                self.read_generics(&block.generics);
                match &*block.self_ty {
                    syn::Type::Slice(slice) => {
                        self.refuse(slice, Refusal::SliceImpl);
                        Type::Infer
                    }
                    own => self.read_type(own),
                }
            }
            Belongs::Trait(name) => {
                self.generics.push(Generic::Type {
                    name: "Self".to_owned(),
                    bounds: vec![name.clone()],
                    call: None,
                });
                Type::Generic(0)
            }
            _ => return None,
        };
        self.any_self = true;
        let generics = u32::try_from(self.generics.len()).unwrap_or(u32::MAX);
        Some(Own { ty, generics })
    }

    pub(super) fn read_generics(&mut self, generics: &syn::Generics) {
        // All names first: a bound may name any parameter.
        for param in &generics.params {
            match param {
                syn::GenericParam::Lifetime(_) => {}
                syn::GenericParam::Type(param) => {
                    let name = name_of(&param.ident);
                    if Scalar::from_name(&name).is_some() {
                        let message = format!(
                            "kernels take `{name}` for the type of that name: call the parameter something else"
                        );
                        self.error(&param.ident, message);
                    }
                    self.generics.push(Generic::Type {
                        name,
                        bounds: Vec::new(),
                        call: None,
                    });
                }
                syn::GenericParam::Const(param) => {
                    let ty = match self.read_type(&param.ty) {
                        Type::Scalar(scalar) if !scalar.is_float() => scalar,
                        _ => {
                            self.refuse(&param.ty, Refusal::ConstParamType);
                            Scalar::Usize
                        }
                    };
                    self.generics.push(Generic::Const {
                        name: name_of(&param.ident),
                        ty,
                    });
                }
            }
        }
        for param in generics.type_params() {
            let read = self.read_bounds(&param.bounds);
            self.bound(&name_of(&param.ident), read);
        }
        for predicate in generics.where_clause.iter().flat_map(|clause| &clause.predicates) {
            let syn::WherePredicate::Type(predicate) = predicate else {
                continue;
            };
            let read = self.read_bounds(&predicate.bounds);
            // What other types are bound by is rustc's to check.
            if let syn::Type::Path(path) = &predicate.bounded_ty
                && path.qself.is_none()
                && let Some(name) = path.path.get_ident().map(name_of)
            {
                self.bound(&name, read);
            }
        }
    }

    /// Adds to the bounds of a type parameter.
    fn bound(&mut self, name: &str, read: Bounds) {
        for generic in &mut self.generics {
            if let Generic::Type {
                name: param,
                bounds,
                call,
            } = generic
                && param == name
            {
                bounds.extend(read.text);
                *call = call.take().or(read.call);
                return;
            }
        }
    }

    fn read_bounds<'a>(&mut self, bounds: impl IntoIterator<Item = &'a syn::TypeParamBound>) -> Bounds {
        let mut read = Bounds::default();
        for bound in bounds {
            match bound {
                syn::TypeParamBound::Lifetime(_) => {}
                syn::TypeParamBound::Trait(bound)
                    if matches!(bound.modifier, syn::TraitBoundModifier::None) =>
                {
                    read.text.push(bound.path.to_token_stream().to_string());
                    read.call = read.call.or_else(|| self.read_call_bound(&bound.path));
                }
                other => self.refuse(other, Refusal::Bound),
            }
        }
        read
    }

    /// `Fn(A, B) -> C`; of `Iterator<Item = T>`, which stands for what gives its next item, `FnMut() -> Option<T>`.
    fn read_call_bound(&mut self, path: &syn::Path) -> Option<(Vec<Type>, Option<Type>)> {
        let last = path.segments.last()?;
        if let (true, syn::PathArguments::AngleBracketed(args)) = (is_iterator(path), &last.arguments) {
            return args.args.iter().find_map(|arg| match arg {
                syn::GenericArgument::AssocType(item) if item.ident == "Item" => {
                    let item = self.read_target(&item.ty);
                    Some((Vec::new(), Some(Type::Option(Box::new(item)))))
                }
                _ => None,
            });
        }
        let syn::PathArguments::Parenthesized(args) = &last.arguments else {
            return None;
        };
        let params = args.inputs.iter().map(|ty| self.read_target(ty)).collect();
        let ret = match &args.output {
            syn::ReturnType::Default => None,
            syn::ReturnType::Type(_, ty) => Some(self.read_type(ty)),
        };
        Some((params, ret))
    }

    /// The type of a parameter. `implicit`: whether `impl Trait` may stand there, by itself or behind a reference.
    fn read_param_type(&mut self, ty: &syn::Type, implicit: bool) -> Type {
        match ty {
            syn::Type::ImplTrait(bound) if implicit => {
                let bounds = self.read_bounds(&bound.bounds);
                Type::Generic(self.implicit_param(bounds))
            }
            syn::Type::Paren(paren) => self.read_param_type(&paren.elem, implicit),
            syn::Type::Group(group) => self.read_param_type(&group.elem, implicit),
            syn::Type::Reference(reference) if !matches!(&*reference.elem, syn::Type::Slice(_)) => {
                Type::Ref {
                    mutable: reference.mutability.is_some(),
                    target: Box::new(self.read_param_type(&reference.elem, implicit)),
                }
            }
            other => self.read_type(other),
        }
    }

    /// A parameter; of a device function one that is a pattern has a name of the reader's own.
    fn read_param(&mut self, input: &syn::FnArg, index: usize, implicit: bool, body: &[syn::Stmt]) -> Param {
        match input {
            syn::FnArg::Receiver(receiver) => self.read_receiver(receiver),
            syn::FnArg::Typed(typed) => {
                let line = line_of(typed.pat.span());
                if let (Some((of, closed)), true, syn::Pat::Ident(ident)) =
                    (range_of(&typed.ty), implicit, &*typed.pat)
                    && (ident.mutability.is_none() || !is_used(&ident.ident, body))
                {
                    return Param {
                        name: format!("__range{index}"),
                        mutable: false,
                        ty: Type::Range(Box::new(self.read_type(of)), closed),
                        line,
                    };
                }
                let ty = self.read_param_type(&typed.ty, implicit);
                match &*typed.pat {
                    syn::Pat::Ident(ident) if ident.by_ref.is_none() && ident.subpat.is_none() => Param {
                        name: name_of(&ident.ident),
                        mutable: ident.mutability.is_some(),
                        ty,
                        line,
                    },
                    other => {
                        if !implicit {
                            self.refuse(other, Refusal::ParamPattern);
                        }
                        Param {
                            name: format!("__parameter{index}"),
                            mutable: false,
                            ty,
                            line,
                        }
                    }
                }
            }
        }
    }

    /// What takes a parameter apart that is a pattern, or a range.
    fn read_param_parts(&mut self, param: &Param, input: &syn::FnArg) -> Vec<Stmt> {
        let syn::FnArg::Typed(typed) = input else {
            return Vec::new();
        };
        if let (syn::Pat::Ident(ident), Some((_, closed))) = (&*typed.pat, range_of(&typed.ty))
            && *ident.ident.to_string() != param.name
        {
            let name = syn::Ident::new(&param.name, ident.ident.span());
            return self.read_ends_of(&typed.pat, &name, closed);
        }
        if matches!(&*typed.pat, syn::Pat::Ident(ident) if ident.by_ref.is_none() && ident.subpat.is_none()) {
            return Vec::new();
        }
        let pattern = self.read_let_pattern(&typed.pat);
        vec![Stmt {
            line: param.line,
            kind: StmtKind::Let {
                pattern,
                ty: None,
                init: Some(local(&param.name, param.line)),
            },
        }]
    }

    fn read_receiver(&mut self, receiver: &syn::Receiver) -> Param {
        let target = match &*receiver.ty {
            syn::Type::Reference(reference) => &*reference.elem,
            ty => ty,
        };
        let ty = if matches!(target, syn::Type::Path(path) if path.path.is_ident("Self")) {
            self.read_type(&receiver.ty)
        } else {
            self.refuse(receiver, Refusal::ReceiverType);
            Type::SelfType
        };
        let mutable = receiver.reference.is_none() && receiver.mutability.is_some();
        Param {
            name: "self".to_owned(),
            mutable,
            ty,
            line: line_of(receiver.self_token.span),
        }
    }
}

/// Whether there are parameters that are no lifetimes.
pub(super) fn is_generic(generics: &syn::Generics) -> bool {
    let mut params = generics.params.iter();
    params.any(|param| !matches!(param, syn::GenericParam::Lifetime(_)))
}

/// Whether an `impl` block is of a generic type, of several types, or of a type without a name.
pub(super) fn is_generic_block(block: &syn::ItemImpl) -> bool {
    let is_found = match &*block.self_ty {
        syn::Type::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|last| !last.arguments.is_empty()),
        syn::Type::Array(_) | syn::Type::Slice(_) | syn::Type::Tuple(_) | syn::Type::Reference(_) => true,
        _ => false,
    };
    is_found || is_generic(&block.generics)
}

/// Whether the type of an argument has a tuple in it.
fn holds_tuple(ty: &Type) -> bool {
    match ty {
        Type::Tuple(_) => true,
        Type::Ref { target, .. } => holds_tuple(target),
        Type::Slice(element) | Type::Array { element, .. } => holds_tuple(element),
        _ => false,
    }
}

/// Refuses attributes inside a function, but for those that only concern lints, docs and formatting.
struct Attributes<'a>(&'a mut Reader);

impl<'ast> Visit<'ast> for Attributes<'_> {
    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        let path = attribute.path();
        let first = path
            .segments
            .first()
            .map(|segment| name_of(&segment.ident))
            .unwrap_or_default();
        if !matches!(
            first.as_str(),
            "allow" | "expect" | "warn" | "deny" | "forbid" | "doc" | "rustfmt" | "clippy"
        ) {
            self.0.refuse_named(attribute, Refusal::Attribute, &first);
        }
    }

    /// Inner items are refused whole.
    fn visit_item(&mut self, _: &'ast syn::Item) {}
}
