//! What all expansions share: the way to the facade, attributes of generated items, and errors beside the item.

use perpetua_syntax::parse::options::EdgeOption;
use proc_macro2::{Literal, TokenStream};
use quote::quote;

/// The module of the facade that generated code goes through.
pub(crate) fn facade(krate: Option<&syn::Path>) -> TokenStream {
    match krate {
        Some(path) => quote!(#path::kernel::expand),
        None => quote!(::perpetua::kernel::expand),
    }
}

/// The `cfg` attributes of an item, which its siblings share.
pub(crate) fn conditions(attrs: &[syn::Attribute]) -> TokenStream {
    let conditions = attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
    quote!(#(#conditions)*)
}

/// Attributes of a generated item: out of the documentation, and no concern of the user's lints.
pub(crate) fn hidden(attrs: &[syn::Attribute]) -> TokenStream {
    let conditions = conditions(attrs);
    let quiet = quiet();
    quote! { #conditions #[doc(hidden)] #quiet }
}

/// Keeps lints away from generated code.
pub(crate) fn quiet() -> TokenStream {
    quote! {
        #[allow(warnings, missing_docs, unreachable_pub, clippy::all, clippy::pedantic, clippy::nursery)]
    }
}

/// Stands before the user's own function: kernels alone may use it, methods that the prelude adds to numbers may come to Rust's library, with
/// the same meaning, and `into_iter` tells kernels that a range which a call gives is an iterator.
pub(crate) fn unwarned() -> syn::Attribute {
    syn::parse_quote!(#[allow(dead_code, unstable_name_collisions, clippy::useless_conversion)])
}

/// Bytes as a literal.
pub(crate) fn bytes(bytes: &[u8]) -> Literal {
    Literal::byte_string(bytes)
}

/// The item with its error beside it: a second error about a missing item would hide the first.
pub(crate) fn with_error(item: TokenStream, error: &syn::Error) -> TokenStream {
    let error = error.to_compile_error();
    quote! { #item #error }
}

/// The variant of `Edge` that an option means.
pub(crate) fn edge(edge: EdgeOption) -> TokenStream {
    match edge {
        EdgeOption::Interior => quote!(Interior),
        EdgeOption::Clamp => quote!(Clamp),
        EdgeOption::Wrap => quote!(Wrap),
        EdgeOption::Constant(value) => {
            let value = Literal::f64_suffixed(value);
            quote!(Constant(#value))
        }
    }
}
