//! `#[device]`: free functions, `impl` blocks, traits, and what types derive.

use perpetua_syntax::FunctionKind;
use perpetua_syntax::parse::options::read_crate;
use perpetua_syntax::parse::{
    Member, derived_blocks, is_generic_block, read_default_method, read_function, read_member, read_method,
};
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;

use crate::native::sibling::{Sibling, stand_in};
use crate::{describe, output, resolver};

pub(crate) mod generic;

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let krate = match read_crate(options) {
        Ok(krate) => krate,
        Err(error) => return output::with_error(item, &error),
    };
    let facade = output::facade(krate.as_ref());
    if let Ok(block) = syn::parse2::<syn::ItemImpl>(item.clone()) {
        return expand_impl(block, &facade);
    }
    if let Ok(definition) = syn::parse2::<syn::ItemTrait>(item.clone()) {
        return expand_trait(definition, &facade);
    }
    if let Ok(input) = syn::parse2::<syn::DeriveInput>(item.clone()) {
        return expand_type(&input, &facade);
    }
    let message = match syn::parse2::<syn::ItemFn>(item.clone()) {
        Ok(function) if function.sig.receiver().is_none() => return free(&function, &facade),
        Ok(_) => {
            "`#[device]` on a single method is outside the kernel language: write it before the `impl` block, \
             and put functions that kernels do not call into a block of their own"
        }
        Err(_) => "`#[device]` stands before a function, a trait, an `impl` block, or the `derive` of a type",
    };
    output::with_error(item.clone(), &syn::Error::new_spanned(item, message))
}

/// What lets a kernel be given the function in the place of a closure; nothing where it has parameters that are open.
fn given(item: &syn::ItemFn, facade: &TokenStream) -> Option<TokenStream> {
    #[derive(Default)]
    struct Open(bool);
    impl syn::visit::Visit<'_> for Open {
        fn visit_type_impl_trait(&mut self, _: &syn::TypeImplTrait) {
            self.0 = true;
        }
    }
    let (name, generics) = (&item.sig.ident, &item.sig.generics);
    let mut open = Open::default();
    syn::visit::visit_signature(&mut open, &item.sig);
    let plain = generics.params.iter().all(
        |param| matches!(param, syn::GenericParam::Lifetime(of) if of.attrs.is_empty() && of.bounds.is_empty()),
    );
    if open.0 || !plain || generics.where_clause.is_some() {
        return None;
    }
    let inputs = item.sig.inputs.iter().filter_map(|input| match input {
        syn::FnArg::Typed(typed) => Some(&typed.ty),
        syn::FnArg::Receiver(_) => None,
    });
    let (lifetimes, output) = (generics.lifetimes(), &item.sig.output);
    let hidden = output::hidden(&item.attrs);
    Some(quote! {
        #hidden
        impl #facade::DeviceFunction<for<#(#lifetimes),*> fn(#(#inputs),*) #output> for #name {
            fn function() -> #facade::FunctionDef {
                #name::__perpetua_function()
            }
        }
    })
}

fn free(item: &syn::ItemFn, facade: &TokenStream) -> TokenStream {
    let read = read_function(item, FunctionKind::Device, &file_of(&item.sig));
    let native = Sibling {
        sig: &item.sig,
        block: &item.block,
        read: read.as_ref().ok(),
        name: &format_ident!("__perpetua_native"),
        flag: &format_ident!("{}", resolver::NATIVE),
    };
    let native = native.items(facade);
    match read {
        Ok(read) => {
            let definition = describe::definition(&read, &item.sig, &item.block, None, facade);
            let sibling = describe::sibling(item, &definition, &native, facade);
            let (allowed, given) = (output::unwarned(), given(item, facade));
            quote! { #allowed #item #sibling #given }
        }
        Err(error) => {
            let sibling = describe::sibling(item, &quote!(#facade::refused()), &native, facade);
            output::with_error(quote!(#item #sibling), &error)
        }
    }
}

/// The name by which a block says what it has.
fn block_name() -> syn::Ident {
    format_ident!("perpetua_block")
}

/// The hidden function of a trait that gives a block its defaults. Its name is what rustc shows where the trait of a block
/// has no attribute.
fn defaults_name(of_trait: &syn::Ident) -> syn::Ident {
    format_ident!(
        "__write_the_attribute_device_before_the_trait_{}",
        of_trait.unraw()
    )
}

/// An `impl` block with all its functions, constants and types.
fn expand_impl(mut block: syn::ItemImpl, facade: &TokenStream) -> TokenStream {
    let refused = |block: &syn::ItemImpl, at: &dyn ToTokens, message: &str| {
        output::with_error(block.to_token_stream(), &syn::Error::new_spanned(at, message))
    };
    if block.items.is_empty() && block.trait_.is_none() {
        let message = "this `impl` block is empty: put `#[device]` on one that has functions";
        return refused(&block, &block.self_ty, message);
    }
    let (beside, error) = members(&mut block, facade);
    let tokens = quote!(#block #beside);
    match error {
        Some(error) => output::with_error(tokens, &error),
        None => tokens,
    }
}

/// A struct or an enum: what derives write beside it, kernels have, too.
fn expand_type(input: &syn::DeriveInput, facade: &TokenStream) -> TokenStream {
    let blocks = match derived_blocks(input) {
        Ok(blocks) => blocks,
        Err(error) => return output::with_error(input.to_token_stream(), &error),
    };
    let mut tokens = input.to_token_stream();
    for mut block in blocks {
        let (beside, error) = members(&mut block, facade);
        tokens.extend(beside);
        tokens.extend(error.map(|error| error.to_compile_error()));
    }
    tokens
}

/// What says beside a block what it has, and why it cannot.
fn members(block: &mut syn::ItemImpl, facade: &TokenStream) -> (TokenStream, Option<syn::Error>) {
    if is_generic_block(block) {
        return generic::members(block, facade);
    }
    let of_trait = block.trait_.as_ref().map(|(_, path, _)| path.clone());
    let (ty, whole) = (block.self_ty.clone(), block.clone());
    let own = quote_spanned!(ty.span()=> #ty);
    let member = |name: &syn::Ident| match &of_trait {
        Some(of_trait) => quote_spanned!(name.span()=> <#ty as #of_trait>::#name),
        None => quote_spanned!(name.span()=> <#ty>::#name),
    };
    let (at, mut entries, mut native, mut marks) = (block_name(), Vec::new(), Vec::new(), Vec::new());
    let mut errors: Option<syn::Error> = None;
    for item in &mut block.items {
        match item {
            syn::ImplItem::Fn(function) => {
                function.attrs.retain(|attr| !is_device(attr));
                let read = read_method(function, &whole, &file_of(&function.sig));
                native.extend(stand_ins(function, &ty, of_trait.as_ref(), facade));
                match read {
                    Ok(read) => {
                        let (conditions, name) = (output::conditions(&function.attrs), &read.tree.name);
                        let definition =
                            describe::definition(&read, &function.sig, &function.block, Some(&own), facade);
                        entries.push(quote!(#conditions #at.function(#name, #definition);));
                        let (vis, mark) = (&function.vis, resolver::mark(&function.sig.ident));
                        marks.push(quote!(#conditions #[doc(hidden)] #vis const fn #mark() {}));
                    }
                    Err(error) => match &mut errors {
                        Some(errors) => errors.combine(error),
                        None => errors = Some(error),
                    },
                }
                function.attrs.push(output::unwarned());
            }
            // What is no constant of kernels is found by Rust, and refused where a kernel uses it.
            syn::ImplItem::Const(item) if of_trait.is_some() => {
                let (name, value) = (item.ident.unraw().to_string(), member(&item.ident));
                entries.push(quote_spanned!(item.ty.span()=> #at.constant(#name, &#value);));
            }
            syn::ImplItem::Type(item) => {
                let (name, value) = (item.ident.unraw().to_string(), member(&item.ident));
                entries.push(quote_spanned!(item.ty.span()=> #at.ty::<#value>(#name);));
            }
            _ => {}
        }
    }
    let name = of_trait.as_ref().and_then(|path| path.segments.last());
    if let (Some(path), Some(last)) = (&of_trait, name)
        && perpetua_syntax::operator_functions(&last.ident.unraw().to_string()).is_empty()
        && perpetua_syntax::parse::refused_trait(block).is_none()
    {
        let defaults = defaults_name(&last.ident);
        entries.push(quote_spanned!(last.ident.span()=> <#ty as #path>::#defaults(&mut #at);));
    }
    let name = match name.map(|last| last.ident.unraw().to_string()) {
        Some(name) => quote!(::core::option::Option::Some(#name)),
        None => quote!(::core::option::Option::None),
    };
    if of_trait.is_some() {
        // The trait has them.
        marks.clear();
    }
    let (conditions, quiet) = (output::conditions(&block.attrs), output::quiet());
    let compared = of_trait.as_ref().is_some_and(|of| compares(of, &ty)).then(|| {
        quote! {
            #conditions
            #quiet
            impl #ty {
                #[doc(hidden)]
                pub const __PERPETUA_COMPARED_BY_FUNCTION: bool = true;
            }
        }
    });
    let marks = (!marks.is_empty()).then(|| quote!(#conditions #quiet impl #ty { #(#marks)* }));
    let tokens = quote! {
        #conditions
        #quiet
        const _: () = {
            #facade::inventory::submit! {
                #facade::DeviceImpl::new(|members: &mut #facade::Members| {
                    let mut #at = members.block::<#ty>(#name);
                    #(#entries)*
                })
            }
        };

        #compared
        #marks
        #(#conditions #quiet impl #ty { #native })*
    };
    (tokens, errors)
}

/// Whether a trait is the `PartialEq` of values of one type.
fn compares(of_trait: &syn::Path, ty: &syn::Type) -> bool {
    let Some(last) = of_trait.segments.last().filter(|last| last.ident == "PartialEq") else {
        return false;
    };
    match &last.arguments {
        syn::PathArguments::AngleBracketed(args) => {
            let args = args.args.to_token_stream().to_string();
            args == "Self" || args == ty.to_token_stream().to_string()
        }
        _ => true,
    }
}

/// A trait: blocks that implement it get its default methods and constants.
fn expand_trait(mut definition: syn::ItemTrait, facade: &TokenStream) -> TokenStream {
    let (at, mut entries, mut marks) = (block_name(), Vec::new(), Vec::new());
    let mut generic_entries = Vec::new();
    let mut errors: Option<syn::Error> = None;
    for item in &mut definition.items {
        match item {
            syn::TraitItem::Fn(function) => {
                function.attrs.retain(|attr| !is_device(attr));
                marks.push(resolver::mark(&function.sig.ident));
                let read = read_default_method(function, &definition.ident, &file_of(&function.sig));
                match (read, &function.default) {
                    (Some(Ok(read)), Some(body)) => {
                        let name = &read.tree.name;
                        let function = describe::definition(&read, &function.sig, body, None, facade);
                        entries.push(quote!(#at.default(#name, #facade::Resolved::Device(#function));));
                        generic_entries
                            .push(quote!(#at.default(#name, #facade::MemberKind::Function, #function);));
                    }
                    (Some(Err(error)), _) => match &mut errors {
                        Some(errors) => errors.combine(error),
                        None => errors = Some(error),
                    },
                    _ => {}
                }
            }
            syn::TraitItem::Const(item) if item.default.is_some() => {
                let (name, value) = (item.ident.unraw().to_string(), &item.ident);
                entries.push(quote_spanned! {item.ty.span()=>
                    #at.default(#name, #facade::Resolved::Const(#facade::GpuConst::to_const(&Self::#value)));
                });
                let member = Member::Default(item, &definition.ident);
                // What kernels cannot compute, only blocks of one type give them.
                if let (Ok(read), Ok((sig, body))) = (
                    read_member(&member, &item.ident.span().file()),
                    member.as_function(),
                ) {
                    let constant = describe::definition(&read, &sig, &body, None, facade);
                    generic_entries
                        .push(quote!(#at.default(#name, #facade::MemberKind::Constant, #constant);));
                }
            }
            _ => {}
        }
    }
    let defaults = defaults_name(&definition.ident);
    let types = definition.generics.type_params().map(|param| &param.ident);
    let quiet = output::quiet();
    definition.items.push(syn::parse_quote! {
        #[doc(hidden)]
        #quiet
        fn #defaults(#at: &mut #facade::ImplBlock<'_>)
        where
            Self: ::core::marker::Sized + #facade::GpuValue,
            #(#types: #facade::GpuValue,)*
        {
            #(#entries)*
        }
    });
    for mark in marks {
        definition.items.push(syn::parse_quote! {
            #[doc(hidden)]
            #quiet
            fn #mark()
            where
                Self: ::core::marker::Sized,
            {
            }
        });
    }
    let beside = generic::defaults(&definition, &generic_entries, facade);
    match errors {
        Some(errors) => output::with_error(quote!(#definition #beside), &errors),
        None => quote!(#definition #beside),
    }
}

/// Whether a type is a scalar by name.
fn is_scalar(ty: &syn::Type) -> bool {
    let syn::Type::Path(path) = ty else { return false };
    let last = path.path.segments.last();
    last.is_some_and(|last| perpetua_syntax::Scalar::from_name(&last.ident.unraw().to_string()).is_some())
}

/// Stand-ins for native bodies, where the block's type is a struct or an enum and its trait has no arguments, of which there may be several.
fn stand_ins(
    item: &syn::ImplItemFn,
    ty: &syn::Type,
    of_trait: Option<&syn::Path>,
    facade: &TokenStream,
) -> Option<TokenStream> {
    let arguments = of_trait
        .and_then(|path| path.segments.last())
        .is_some_and(|last| !last.arguments.is_empty());
    let is_own = matches!(ty, syn::Type::Path(_)) && !is_scalar(ty) && !arguments;
    is_own.then(|| stand_in(item, of_trait, facade)).flatten()
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
