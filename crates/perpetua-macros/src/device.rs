//! `#[device]`: free functions, methods, and whole `impl` blocks.

use perpetua_syntax::FunctionKind;
use perpetua_syntax::parse::{read_function, read_method};
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit::Visit;

use crate::native::sibling::Sibling;
use crate::options::{Options, Takes};
use crate::{describe, output, resolver};

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let options = match Options::read(options, Takes::Crate) {
        Ok(options) => options,
        Err(error) => return output::with_error(item, &error),
    };
    let facade = output::facade(options.krate.as_ref());
    if let Ok(block) = syn::parse2::<syn::ItemImpl>(item.clone()) {
        return expand_impl(block, &facade);
    }
    let function = match syn::parse2::<syn::ImplItemFn>(item.clone()) {
        Ok(function) => function,
        Err(_) => {
            let message = "`#[device]` stands before a function or an `impl` block with functions";
            return output::with_error(item.clone(), &syn::Error::new_spanned(item, message));
        }
    };
    if is_member(&function) {
        let sibling = method(&function, &quote!(Self), &facade);
        return quote! { #[allow(dead_code)] #function #sibling };
    }
    free(
        &syn::ItemFn {
            attrs: function.attrs,
            vis: function.vis,
            sig: function.sig,
            block: Box::new(function.block),
        },
        &facade,
    )
}

/// Whether a function says of itself that it stands in an `impl` block.
fn is_member(function: &syn::ImplItemFn) -> bool {
    struct Mentions(bool);
    impl Visit<'_> for Mentions {
        fn visit_ident(&mut self, ident: &proc_macro2::Ident) {
            self.0 |= ident == "Self" || ident == "self";
        }
    }
    let mut mentions = Mentions(false);
    mentions.visit_signature(&function.sig);
    // In a body, `self::f` means a module.
    struct Types(bool);
    impl Visit<'_> for Types {
        fn visit_ident(&mut self, ident: &proc_macro2::Ident) {
            self.0 |= ident == "Self";
        }
    }
    let mut types = Types(mentions.0);
    types.visit_block(&function.block);
    types.0
}

fn free(item: &syn::ItemFn, facade: &TokenStream) -> TokenStream {
    let read = read_function(item, FunctionKind::Device, &file_of(&item.sig));
    let native = Sibling {
        sig: &item.sig,
        block: &item.block,
        read: read.as_ref().ok(),
        own: None,
        name: &format_ident!("__perpetua_native"),
        flag: &format_ident!("__PERPETUA_NATIVE"),
    };
    let native = native.items(facade);
    match read {
        Ok(read) => {
            let definition = describe::definition(&read, &item.sig, &item.block, None, facade);
            let sibling = describe::sibling(item, &definition, &native, facade);
            quote! { #[allow(dead_code)] #item #sibling }
        }
        Err(error) => {
            let sibling = describe::sibling(item, &quote!(#facade::refused()), &native, facade);
            output::with_error(quote!(#item #sibling), &error)
        }
    }
}

/// The sibling of a method or associated function; an error where the function is outside the language.
fn method(item: &syn::ImplItemFn, own: &TokenStream, facade: &TokenStream) -> TokenStream {
    let name = resolver::method_name(&item.sig.ident);
    let hidden = output::hidden(&item.attrs);
    let read = read_method(item, FunctionKind::Device, &file_of(&item.sig));
    let native = Sibling {
        sig: &item.sig,
        block: &item.block,
        read: read.as_ref().ok(),
        own: Some(own),
        name: &format_ident!("__perpetua_native_{}", item.sig.ident.unraw()),
        flag: &format_ident!("__PERPETUA_NATIVE_{}", item.sig.ident.unraw()),
    };
    let native = native.items(facade);
    let (definition, error) = match read {
        Ok(read) => (
            describe::definition(&read, &item.sig, &item.block, Some(own), facade),
            None,
        ),
        Err(error) => (quote!(#facade::refused()), Some(error)),
    };
    let sibling = quote! {
        #native

        #hidden
        pub const fn #name() -> ::core::option::Option<#facade::FunctionDef> {
            ::core::option::Option::Some(#definition)
        }
    };
    match error {
        Some(error) => output::with_error(sibling, &error),
        None => sibling,
    }
}

/// All functions of an `impl` block. Those of a trait's `impl` get their siblings in an inherent one.
fn expand_impl(mut block: syn::ItemImpl, facade: &TokenStream) -> TokenStream {
    if !block.generics.params.is_empty() {
        let message =
            "`#[device]` on a generic `impl` is outside the kernel language: write one `impl` for each type";
        return output::with_error(
            block.to_token_stream(),
            &syn::Error::new_spanned(&block.generics, message),
        );
    }
    let own = quote!(Self);
    let mut siblings = Vec::new();
    for item in &mut block.items {
        if let syn::ImplItem::Fn(function) = item {
            function.attrs.retain(|attr| !is_device(attr));
            siblings.push(method(function, &own, facade));
            function.attrs.push(syn::parse_quote!(#[allow(dead_code)]));
        }
    }
    if siblings.is_empty() {
        let message = "this `impl` block has no functions: put `#[device]` on one that has";
        return output::with_error(
            block.to_token_stream(),
            &syn::Error::new(block.impl_token.span(), message),
        );
    }
    let (conditions, ty) = (output::conditions(&block.attrs), &block.self_ty);
    quote! { #block #conditions impl #ty { #(#siblings)* } }
}

fn is_device(attr: &syn::Attribute) -> bool {
    attr.path()
        .segments
        .last()
        .is_some_and(|segment| segment.ident == "device")
}

/// The source file, as the compiler names it.
pub(crate) fn file_of(sig: &syn::Signature) -> String {
    sig.ident.span().file()
}
