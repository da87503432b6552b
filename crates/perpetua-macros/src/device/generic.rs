//! `#[device]` on `impl` blocks of generic types, or of several types: what they have, by trees alone, since nobody names the types
//! before the lowering meets them.

use perpetua_syntax::parse::{Member, Read, read_member, read_method};
use perpetua_syntax::{Function, Scalar, operator_functions};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;

use super::{block_name, compares, file_of, is_device};
use crate::{describe, output, resolver};

/// What says beside a block what it has, and why it cannot.
pub(super) fn members(block: &mut syn::ItemImpl, facade: &TokenStream) -> (TokenStream, Option<syn::Error>) {
    let whole = block.clone();
    let of_trait = whole.trait_.as_ref().map(|(_, path, _)| path);
    let mut entries = Entries {
        facade,
        tokens: Vec::new(),
        errors: None,
    };
    let own = entries.member(&Member::Block(&whole), &whole.impl_token.span.file());
    let (mut marks, mut native) = (Vec::new(), Vec::new());
    // A block of several types says nothing of each.
    let is_struct = is_own_struct(&whole.self_ty) && sample_of(&whole.self_ty, &whole.generics).is_some();
    for item in &mut block.items {
        match item {
            syn::ImplItem::Fn(function) => {
                function.attrs.retain(|attr| !is_device(attr));
                if is_struct {
                    native.extend(super::stand_ins(function, &whole.self_ty, of_trait, facade));
                }
                let read = read_method(function, &whole, &file_of(&function.sig));
                let name = &function.sig.ident;
                let definition = entries.keep(read, &function.sig, &function.block);
                entries.add(name, &quote!(Function), definition, &function.attrs);
                marks.push(resolver::mark(name));
                function.attrs.push(output::unwarned());
            }
            syn::ImplItem::Const(item) => {
                let definition = entries.member(&Member::Constant(item, &whole), &item.ident.span().file());
                entries.add(&item.ident, &quote!(Constant), definition, &item.attrs);
            }
            syn::ImplItem::Type(item) => {
                let definition = entries.member(&Member::Type(item, &whole), &item.ident.span().file());
                entries.add(&item.ident, &quote!(Type), definition, &item.attrs);
            }
            _ => {}
        }
    }
    let Entries { tokens, errors, .. } = entries;
    let last = of_trait.and_then(|path| path.segments.last());
    let name = match last.map(|last| last.ident.unraw().to_string()) {
        Some(name) => quote!(::core::option::Option::Some(#name)),
        None => quote!(::core::option::Option::None),
    };
    let of_user = |last: &&syn::PathSegment| operator_functions(&last.ident.unraw().to_string()).is_empty();
    let at = block_name();
    let defaults = last.filter(of_user).zip(of_trait).map(|(last, path)| {
        let marked = super::defaults_name(&last.ident);
        let plain = resolver::Plain::of(path).whole(None);
        quote_spanned!(last.ident.span()=> { use #plain as #marked; #marked(&mut #at); })
    });
    let (conditions, quiet) = (output::conditions(&block.attrs), output::quiet());
    let (before, _, clause) = block.generics.split_for_impl();
    let ty = &block.self_ty;
    let compared = of_trait.is_some_and(|of| compares(of, ty)).then(|| {
        quote! {
            #conditions
            #quiet
            impl #before #ty #clause {
                #[doc(hidden)]
                pub const __PERPETUA_COMPARED_BY_FUNCTION: bool = true;
            }
        }
    });
    // Calls name the struct without arguments: any will do, and those of the marks are the same for all blocks.
    let marks = (of_trait.is_none() && !block.generics.params.is_empty())
        .then(|| sample_of(ty, &block.generics))
        .flatten()
        .map(
            |sample| quote!(#conditions #quiet impl #sample { #(#[doc(hidden)] pub const fn #marks() {})* }),
        );
    let submitted = own.map(|own| {
        quote! {
            #conditions
            #quiet
            const _: () = {
                #facade::inventory::submit! {
                    #facade::DeviceImpl::new(|members: &mut #facade::Members| {
                        let mut #at = members.generic_block(#name, #own);
                        #(#tokens)*
                        #defaults
                    })
                }
            };
        }
    });
    let native =
        (!native.is_empty()).then(|| quote!(#conditions #quiet impl #before #ty #clause { #(#native)* }));
    (quote!(#submitted #compared #marks #native), errors)
}

/// What a block says it has.
struct Entries<'a> {
    facade: &'a TokenStream,
    tokens: Vec<TokenStream>,
    errors: Option<syn::Error>,
}

impl Entries<'_> {
    /// The definition of what was read.
    fn keep(
        &mut self,
        read: syn::Result<Read<Function>>,
        sig: &syn::Signature,
        body: &syn::Block,
    ) -> Option<TokenStream> {
        match read {
            Ok(read) => Some(describe::definition(&read, sig, body, None, self.facade)),
            Err(error) => {
                match &mut self.errors {
                    Some(errors) => errors.combine(error),
                    None => self.errors = Some(error),
                }
                None
            }
        }
    }

    fn member(&mut self, member: &Member<'_>, file: &str) -> Option<TokenStream> {
        match member.as_function() {
            Ok((sig, body)) => self.keep(read_member(member, file), &sig, &body),
            Err(error) => self.keep(Err(error), &syn::parse_quote!(fn own()), &syn::parse_quote!({})),
        }
    }

    fn add(
        &mut self,
        name: &syn::Ident,
        kind: &TokenStream,
        definition: Option<TokenStream>,
        attrs: &[syn::Attribute],
    ) {
        let Some(definition) = definition else { return };
        let (at, facade, name) = (block_name(), self.facade, name.unraw().to_string());
        let conditions = output::conditions(attrs);
        self.tokens
            .push(quote!(#conditions #at.add(#name, #facade::MemberKind::#kind, #definition);));
    }
}

/// What gives generic blocks a trait's defaults: a function by the trait's own name, since nobody knows a type that has the trait.
pub(super) fn defaults(
    definition: &syn::ItemTrait,
    entries: &[TokenStream],
    facade: &TokenStream,
) -> Option<TokenStream> {
    // What they mean may depend on the trait's arguments.
    if definition.generics.type_params().next().is_some() && !entries.is_empty() {
        return None;
    }
    let (name, vis, at) = (&definition.ident, &definition.vis, block_name());
    let hidden = output::hidden(&definition.attrs);
    Some(quote! {
        #hidden
        #vis fn #name(#at: &mut #facade::GenericBlock<'_>) {
            #(#entries)*
        }
    })
}

/// Whether a type may be a struct of this crate, whose inherent blocks stand here: not one of the standard library's.
fn is_own_struct(ty: &syn::Type) -> bool {
    let syn::Type::Path(path) = ty else { return false };
    let last = path
        .path
        .segments
        .last()
        .map(|last| last.ident.unraw().to_string());
    last.is_some_and(|last| {
        !matches!(
            last.as_str(),
            "Option" | "Result" | "Wrapping" | "Reverse" | "NonZero"
        )
    })
}

/// A generic struct with some arguments, all scalars; `None` of other types. `generics` are those of what names it.
fn sample_of(ty: &syn::Type, generics: &syn::Generics) -> Option<TokenStream> {
    let syn::Type::Path(path) = ty else { return None };
    let mut path = path.path.clone();
    let last = path.segments.last_mut()?;
    let syn::PathArguments::AngleBracketed(args) = &mut last.arguments else {
        return None;
    };
    let constant = |name: &syn::Ident| generics.const_params().find(|param| param.ident == *name);
    for arg in &mut args.args {
        *arg = match &*arg {
            syn::GenericArgument::Type(syn::Type::Path(inner)) => {
                match inner.path.get_ident().and_then(constant) {
                    Some(param) => sample_constant(&param.ty),
                    None => sample_type(),
                }
            }
            syn::GenericArgument::Type(_) => sample_type(),
            other => other.clone(),
        };
    }
    Some(quote!(#path))
}

/// The type in the place of a parameter: it has what all scalars have.
fn sample_type() -> syn::GenericArgument {
    syn::parse_quote!(i32)
}

fn sample_constant(ty: &syn::Type) -> syn::GenericArgument {
    match ty {
        syn::Type::Path(path) if path.path.is_ident(Scalar::Bool.name()) => syn::parse_quote!(false),
        _ => syn::parse_quote!(0),
    }
}

/// A struct's name with an argument in the place of each parameter.
pub(crate) fn sample(name: &syn::Ident, generics: &syn::Generics) -> TokenStream {
    let args = generics.params.iter().filter_map(|param| match param {
        syn::GenericParam::Type(_) => Some(sample_type()),
        syn::GenericParam::Const(param) => Some(sample_constant(&param.ty)),
        syn::GenericParam::Lifetime(_) => None,
    });
    let name = format_ident!("{}", name);
    quote!(#name<#(#args),*>)
}
