//! The code that tells the lowering what a function's names mean. It is ordinary Rust in the user's own scope, so that
//! rustc's name resolution does the work; what it must look like is the contract of the lowering's module `resolve`.

use std::collections::BTreeMap;

use perpetua_syntax::parse::Read;
use perpetua_syntax::{Function, PathUsage};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit::Visit;

/// A closure that tells a `Resolver` what the paths of `read` mean, and which methods the types that they name have.
/// `own` is what `Self` is, where it is anything; `also` are further types whose methods it may call.
pub(crate) fn closure(
    read: &Read<Function>,
    sig: &syn::Signature,
    body: &syn::Block,
    own: Option<&TokenStream>,
    also: &[TokenStream],
    facade: &TokenStream,
) -> TokenStream {
    let (r, mut types) = (resolver(), named_types(read, own));
    types.extend_from_slice(also);
    let mut entries = Vec::with_capacity(read.paths.len());
    for (id, (tokens, entry)) in (0u32..).zip(read.paths.iter().zip(&read.tree.paths)) {
        let path = Plain::of(tokens);
        let whole = path.whole();
        let span = tokens.span();
        entries.push(match entry.usage {
            PathUsage::Type | PathUsage::StructLiteral => {
                quote_spanned!(span=> #r.ty::<#whole>(#id);)
            }
            PathUsage::Value | PathUsage::Pattern => {
                quote_spanned!(span=> #r.constant(#id, &#whole);)
            }
            PathUsage::Call => match path.member() {
                Some((ty, name)) => {
                    let function = method_name(&name);
                    quote_spanned!(span=> #r.device(#id, <#ty>::#function());)
                }
                None => quote_spanned!(span=> #r.device(#id, #whole::__perpetua_function());),
            },
        });
    }
    entries.extend(primitives(sig, body, facade));
    let own = own.map(|own| quote!(#r.self_type::<#own>();));
    let methods = methods(body, &types, facade);
    quote!(|#r: &mut #facade::Resolver| { #own #(#entries)* #methods })
}

/// Statements that compile only where the primitive types that a function names are what they are called: the reader knows
/// them by name.
fn primitives(
    sig: &syn::Signature,
    body: &syn::Block,
    facade: &TokenStream,
) -> impl Iterator<Item = TokenStream> {
    #[derive(Default)]
    struct Named(BTreeMap<String, syn::Ident>);
    impl Visit<'_> for Named {
        fn visit_path(&mut self, path: &syn::Path) {
            const PRIMITIVES: [&str; 13] = [
                "bool", "i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize", "f32", "f64",
            ];
            let first = path.segments.first().map(|segment| &segment.ident);
            if let Some(name) = first.filter(|name| PRIMITIVES.iter().any(|known| name == known)) {
                self.0.entry(name.to_string()).or_insert_with(|| name.clone());
            }
            syn::visit::visit_path(self, path);
        }
    }
    let mut named = Named::default();
    sig.inputs.iter().for_each(|input| named.visit_fn_arg(input));
    named.visit_return_type(&sig.output);
    named.visit_block(body);
    named.0.into_values().map(move |name| {
        let span = name.span();
        quote_spanned!(span=> #facade::primitive::<#name, ::core::primitive::#name>();)
    })
}

/// The types that a function names, and its own: those whose methods it may call.
pub(crate) fn named_types(read: &Read<Function>, own: Option<&TokenStream>) -> Vec<TokenStream> {
    let mut types = BTreeMap::new();
    if let Some(own) = own {
        types.insert(own.to_string(), own.clone());
    }
    for (tokens, entry) in read.paths.iter().zip(&read.tree.paths) {
        let path = Plain::of(tokens);
        let ty = match entry.usage {
            PathUsage::Type | PathUsage::StructLiteral => Some(path.whole()),
            _ => path.member().map(|(ty, _)| ty),
        };
        if let Some(ty) = ty {
            types.insert(ty.to_string(), ty);
        }
    }
    types.into_values().collect()
}

/// The methods that a body calls.
pub(crate) fn called_methods(body: &syn::Block) -> Vec<syn::Ident> {
    let mut called = Called::default();
    called.visit_block(body);
    called.0.into_values().collect()
}

/// The sibling of the method or associated function `name`.
pub(crate) fn method_name(name: &syn::Ident) -> syn::Ident {
    format_ident!("__perpetua_method_{}", name.unraw(), span = name.span())
}

/// The closure's parameter, by one name: spans of the user's tokens would make several of it where a macro wrote them.
fn resolver() -> syn::Ident {
    format_ident!("r")
}

/// Asks each type for each method called: one that lacks it falls through to a trait.
fn methods(body: &syn::Block, types: &[TokenStream], facade: &TokenStream) -> TokenStream {
    let called = called_methods(body);
    if called.is_empty() || types.is_empty() {
        return TokenStream::new();
    }
    let r = &resolver();
    let fallbacks = called.iter().map(|name| {
        let function = method_name(name);
        quote!(fn #function() -> Option<#facade::FunctionDef> { None })
    });
    let entries = called.iter().flat_map(|name| {
        types.iter().map(move |ty| {
            let (function, text) = (method_name(name), name.unraw().to_string());
            quote_spanned!(ty.span()=> #r.method::<#ty>(#text, <#ty>::#function());)
        })
    });
    quote! {
        trait Fallback { #(#fallbacks)* }
        impl<T: ?Sized> Fallback for T {}
        #(#entries)*
    }
}

/// The methods that a body calls, by name.
#[derive(Default)]
struct Called(BTreeMap<String, syn::Ident>);

impl<'ast> Visit<'ast> for Called {
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.0
            .insert(call.method.unraw().to_string(), call.method.clone());
        syn::visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        // Arguments of `gpu_println!` after the format string; another macro was refused.
        let parser = syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
        if let Ok(args) = mac.parse_body_with(parser) {
            args.iter().for_each(|arg| self.visit_expr(arg));
        }
    }
}

/// A path without generic arguments.
pub(crate) struct Plain {
    leading: Option<syn::Token![::]>,
    idents: Vec<syn::Ident>,
}

impl Plain {
    pub(crate) fn of(path: &syn::Path) -> Plain {
        Plain {
            leading: path.leading_colon,
            idents: path
                .segments
                .iter()
                .map(|segment| segment.ident.clone())
                .collect(),
        }
    }

    fn prefix(&self, len: usize) -> TokenStream {
        let (leading, idents) = (self.leading, &self.idents[..len]);
        quote!(#leading #(#idents)::*)
    }

    pub(crate) fn whole(&self) -> TokenStream {
        self.prefix(self.idents.len())
    }

    /// The type and the member, where the segment before the last is written like a type.
    pub(crate) fn member(&self) -> Option<(TokenStream, syn::Ident)> {
        let [.., ty, name] = &self.idents[..] else {
            return None;
        };
        is_type(ty).then(|| (self.prefix(self.idents.len() - 1), name.clone()))
    }

    /// Whether it is written like a type.
    pub(crate) fn is_type(&self) -> bool {
        self.idents.last().is_some_and(is_type)
    }
}

/// Whether a name is written like a type's.
fn is_type(name: &syn::Ident) -> bool {
    let name = name.unraw().to_string();
    name.chars().find(|&c| c != '_').is_some_and(char::is_uppercase)
}
