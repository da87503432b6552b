//! What `derive` of the standard library's traits writes, as source: kernels read it like blocks that stand there.

use super::Refusal;
use super::path::segment_names;
use crate::ast::Scalar;
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

/// The blocks of the traits that a struct or an enum with `#[device]` derives: `Default`, `PartialEq`, `PartialOrd`, `Ord`. Other
/// derives need none, since kernels copy all types.
///
/// # Errors
/// The attribute stands behind `derive`, which rustc then has taken away, or there is none.
pub fn derived_blocks(input: &syn::DeriveInput) -> syn::Result<Vec<syn::ItemImpl>> {
    let mut names = Vec::new();
    for attr in input.attrs.iter().filter(|attr| attr.path().is_ident("derive")) {
        attr.parse_nested_meta(|meta| {
            names.extend(segment_names(&meta.path).pop());
            Ok(())
        })?;
    }
    if names.is_empty() {
        let message = Refusal::DeriveBehind.message(&input.ident.to_string());
        return Err(syn::Error::new_spanned(&input.ident, message));
    }
    let parts = Parts::of(input);
    let (name, (before, args, clause)) = (&input.ident, input.generics.split_for_impl());
    let mut blocks = Vec::new();
    for derived in names {
        let (of_trait, functions) = match derived.as_str() {
            "Default" => (quote!(::core::default::Default), parts.default()),
            "PartialEq" => (quote!(::core::cmp::PartialEq), parts.equality()),
            "PartialOrd" => (quote!(::core::cmp::PartialOrd), parts.order(true)),
            "Ord" => (quote!(::core::cmp::Ord), parts.order(false)),
            _ => continue,
        };
        blocks.push(syn::parse2(
            quote!(impl #before #of_trait for #name #args #clause { #functions }),
        )?);
    }
    Ok(blocks)
}

/// What a type consists of.
enum Parts<'a> {
    Fields(Vec<(syn::Member, &'a syn::Type)>),
    /// The integer that stores the enum, and the variant with `#[default]`.
    Enum(TokenStream, Option<&'a syn::Ident>),
    /// The variants, and the one with `#[default]`.
    Data(Vec<&'a syn::Variant>, Option<&'a syn::Ident>),
}

impl Parts<'_> {
    fn of(input: &syn::DeriveInput) -> Parts<'_> {
        match &input.data {
            syn::Data::Enum(data) => {
                let is_default = |variant: &&syn::Variant| {
                    variant.attrs.iter().any(|attr| attr.path().is_ident("default"))
                };
                let default = data
                    .variants
                    .iter()
                    .find(is_default)
                    .map(|variant| &variant.ident);
                match data.variants.iter().all(|variant| variant.fields.is_empty()) {
                    true => Parts::Enum(repr(&input.attrs), default),
                    false => Parts::Data(data.variants.iter().collect(), default),
                }
            }
            syn::Data::Struct(data) => {
                let fields = data.fields.members().zip(&data.fields);
                Parts::Fields(fields.map(|(member, field)| (member, &field.ty)).collect())
            }
            // `derive(GpuType)` refuses it.
            syn::Data::Union(_) => Parts::Fields(Vec::new()),
        }
    }

    fn default(&self) -> TokenStream {
        let value = match self {
            Parts::Fields(fields) => {
                let fields = fields.iter().map(|(member, ty)| {
                    quote_spanned!(ty.span()=> #member: <#ty as ::core::default::Default>::default())
                });
                quote!(Self { #(#fields),* })
            }
            Parts::Enum(_, variant) | Parts::Data(_, variant) => quote!(Self::#variant),
        };
        quote!(fn default() -> Self { #value })
    }

    fn equality(&self) -> TokenStream {
        let body = match self {
            Parts::Fields(fields) => {
                let fields = fields
                    .iter()
                    .map(|(member, ty)| quote_spanned!(ty.span()=> self.#member == other.#member));
                quote!(#(#fields)&&*)
            }
            Parts::Enum(repr, _) => quote!((*self as #repr) == (*other as #repr)),
            Parts::Data(variants, _) => {
                let same = variants.iter().map(|variant| {
                    let (own, other, fields) = both(variant);
                    let fields = fields.iter().map(|(a, b, _)| quote!(#a == #b));
                    quote!((#own, #other) => true #(&& #fields)*)
                });
                quote!(match (*self, *other) { #(#same,)* _ => false })
            }
        };
        quote!(fn eq(&self, other: &Self) -> bool { #body })
    }

    /// `partial_cmp`, or `cmp` with what else `Ord` has.
    fn order(&self, partial: bool) -> TokenStream {
        let compare = Compare { partial };
        let body = match self {
            Parts::Fields(fields) => {
                let fields = fields.iter().map(|(member, ty)| {
                    let compared = compare.values(&quote!(self.#member), &quote!(other.#member), ty, 0);
                    (compared, ty.span())
                });
                compare.in_turn(fields.collect())
            }
            Parts::Enum(repr, _) => {
                let method = compare.method();
                quote!((*self as #repr).#method(&(*other as #repr)))
            }
            Parts::Data(variants, _) => {
                let same = variants.iter().map(|variant| {
                    let (own, other, fields) = both(variant);
                    let fields = fields.iter().map(|(a, b, ty)| {
                        let compared = compare.values(&quote!(#a), &quote!(#b), ty, 0);
                        (compared, ty.span())
                    });
                    let order = compare.in_turn(fields.collect());
                    quote!((#own, #other) => #order)
                });
                let numbers = (0u32..).zip(variants).map(|(number, variant)| {
                    let name = &variant.ident;
                    quote!(Self::#name { .. } => #number)
                });
                let (numbers, method): (Vec<_>, _) = (numbers.collect(), compare.method());
                quote! {
                    match (*self, *other) {
                        #(#same,)*
                        _ => {
                            let own = match *self { #(#numbers),* };
                            let other = match *other { #(#numbers),* };
                            own.#method(&other)
                        }
                    }
                }
            }
        };
        let (method, order, ordering) = (compare.method(), compare.order(), ordering());
        let further = (!partial).then(|| {
            quote! {
                fn max(self, other: Self) -> Self {
                    match other.cmp(&self) { #ordering::Less => self, _ => other }
                }
                fn min(self, other: Self) -> Self {
                    match other.cmp(&self) { #ordering::Less => other, _ => self }
                }
            }
        });
        quote! {
            fn #method(&self, other: &Self) -> #order { #body }
            #further
        }
    }
}

/// The patterns of two values of a variant, and the names of each field in both with its type.
fn both(
    variant: &syn::Variant,
) -> (
    TokenStream,
    TokenStream,
    Vec<(syn::Ident, syn::Ident, &syn::Type)>,
) {
    let name = &variant.ident;
    let names = variant.fields.iter().enumerate().map(|(i, field)| {
        let (own, other) = (format_ident!("own_{i}"), format_ident!("other_{i}"));
        (own, other, &field.ty)
    });
    let names: Vec<_> = names.collect();
    let members: Vec<syn::Member> = variant.fields.members().collect();
    let (own, other) = (
        names.iter().map(|(own, ..)| own),
        names.iter().map(|(_, other, _)| other),
    );
    let own = quote!(Self::#name { #(#members: #own),* });
    let other = quote!(Self::#name { #(#members: #other),* });
    (own, other, names)
}

fn ordering() -> TokenStream {
    quote!(::core::cmp::Ordering)
}

/// Writes comparisons of one of the two kinds.
struct Compare {
    partial: bool,
}

impl Compare {
    fn method(&self) -> syn::Ident {
        format_ident!("{}", if self.partial { "partial_cmp" } else { "cmp" })
    }

    fn order(&self) -> TokenStream {
        let ordering = ordering();
        match self.partial {
            true => quote!(::core::option::Option<#ordering>),
            false => ordering,
        }
    }

    fn equal(&self) -> TokenStream {
        let ordering = ordering();
        match self.partial {
            true => quote!(::core::option::Option::Some(#ordering::Equal)),
            false => quote!(#ordering::Equal),
        }
    }

    /// The first of these orders that is not `Equal`.
    fn in_turn(&self, orders: Vec<(TokenStream, Span)>) -> TokenStream {
        let equal = self.equal();
        let mut orders = orders.into_iter().rev();
        let last = orders.next().map_or_else(|| equal.clone(), |(order, _)| order);
        orders.fold(
            last,
            |rest, (order, span)| quote_spanned!(span=> match #order { #equal => #rest, decided => decided }),
        )
    }

    /// Two values of a type; an array's elements in turn.
    fn values(&self, a: &TokenStream, b: &TokenStream, ty: &syn::Type, depth: usize) -> TokenStream {
        let syn::Type::Array(array) = ty else {
            let method = self.method();
            return quote_spanned!(ty.span()=> #a.#method(&#b));
        };
        let (order, at) = (format_ident!("order_{depth}"), format_ident!("at_{depth}"));
        let element = self.values(&quote!(#a[#at]), &quote!(#b[#at]), &array.elem, depth + 1);
        let equal = self.equal();
        quote_spanned! {ty.span()=> {
            let mut #order = #equal;
            for #at in 0..#a.len() {
                #order = #element;
                match #order { #equal => {} _ => break }
            }
            #order
        }}
    }
}

/// The integer type that `#[repr]` names.
fn repr(attrs: &[syn::Attribute]) -> TokenStream {
    let mut found = quote!(i32);
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("repr")) {
        // What is no integer is refused by `derive(GpuType)`.
        let _ = attr.parse_nested_meta(|meta| {
            if let Some(ident) = meta.path.get_ident()
                && Scalar::from_name(&ident.to_string()).is_some()
            {
                found = quote!(#ident);
            }
            Ok(())
        });
    }
    found
}

/// A type inside a function as kernels know it: with `GpuType`, by this path, and what that asks for, where it does not say so itself.
#[must_use]
pub fn as_local(item: &syn::Item, gpu: &syn::Path) -> syn::Item {
    let mut item = item.clone();
    let plain = |fields: &syn::Fields| matches!(fields, syn::Fields::Unit);
    let (attrs, generics, numbered) = match &mut item {
        syn::Item::Struct(item) => (&mut item.attrs, &item.generics, false),
        syn::Item::Enum(of) => {
            let numbered = of.variants.iter().all(|variant| plain(&variant.fields));
            (&mut of.attrs, &of.generics, numbered)
        }
        _ => return item,
    };
    let mut derived = Vec::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("derive")) {
        // What cannot be read is rustc's to tell.
        let _ = attr.parse_nested_meta(|meta| {
            derived.extend(meta.path.segments.last().map(|last| last.ident.to_string()));
            Ok(())
        });
    }
    if !generics.params.is_empty() || derived.iter().any(|name| name == "GpuType") {
        return item;
    }
    let missing = ["Clone", "Copy"]
        .into_iter()
        .filter(|name| !derived.iter().any(|known| known == name));
    let missing = missing.map(|name| syn::Ident::new(name, proc_macro2::Span::call_site()));
    attrs.push(syn::parse_quote!(#[derive(#(#missing,)* #gpu)]));
    if !attrs.iter().any(|attr| attr.path().is_ident("repr")) {
        if numbered {
            attrs.push(syn::parse_quote!(#[repr(u32)]));
        } else if let syn::Item::Struct(of) = &mut item
            && super::data::read(&of.clone().into()).is_err()
        {
            of.attrs.push(syn::parse_quote!(#[repr(C)]));
        }
    }
    item
}
