//! The description of a function that other code finds it by: the encoded tree and the closure that resolves it.

use perpetua_syntax::parse::Read;
use perpetua_syntax::{Function, encode};
use proc_macro2::TokenStream;
use quote::quote;

use crate::{output, resolver};

/// The value `FunctionDef::new(…)` of a function.
pub(crate) fn definition(
    read: &Read<Function>,
    sig: &syn::Signature,
    body: &syn::Block,
    own: Option<&TokenStream>,
    facade: &TokenStream,
) -> TokenStream {
    let tree = output::bytes(&encode(&read.tree));
    let closure = resolver::closure(read, sig, body, own, facade);
    quote!(#facade::FunctionDef::new(#tree, #closure))
}

/// The struct that stands for a free function in the type namespace, with its description; `members` are further
/// associated functions.
pub(crate) fn sibling(
    item: &syn::ItemFn,
    definition: &TokenStream,
    members: &TokenStream,
    facade: &TokenStream,
) -> TokenStream {
    let (name, visibility) = (&item.sig.ident, &item.vis);
    let (hidden, quiet, conditions) = (
        output::hidden(&item.attrs),
        output::quiet(),
        output::conditions(&item.attrs),
    );
    quote! {
        #hidden
        #visibility struct #name {}

        #conditions
        #quiet
        impl #name {
            #[doc(hidden)]
            pub const fn __perpetua_function() -> #facade::FunctionDef {
                #definition
            }
            #members
        }
    }
}
