//! The native siblings of device functions: the same function, as native bodies call it, and whether it does what the
//! function does.

use perpetua_syntax::Function;
use perpetua_syntax::parse::{Conditions, Read, lacks_native};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use crate::resolver::called_flags;

use super::generics::bounded;
use super::hygiene;
use super::lane::{Lane, Setting, internal};
use super::program::{called_methods, callees, named_types};
use super::scope::Name;

/// A native sibling.
pub(crate) struct Sibling<'a> {
    /// The function's signature.
    pub(crate) sig: &'a syn::Signature,
    /// Its body.
    pub(crate) block: &'a syn::Block,
    /// Its tree; `None` where the macro refused it.
    pub(crate) read: Option<&'a Read<Function>>,
    /// What `Self` is, for methods and associated functions.
    pub(crate) own: Option<&'a TokenStream>,
    /// The sibling's name.
    pub(crate) name: &'a syn::Ident,
    /// Name of the constant that says whether the sibling can be called.
    pub(crate) flag: &'a syn::Ident,
}

impl Sibling<'_> {
    /// The function and the constant, as associated items.
    pub(crate) fn items(&self, facade: &TokenStream) -> TokenStream {
        let (generics, understood) = bounded(&self.sig.generics, facade);
        let setting = Setting {
            facade,
            file: self.read.map_or("", |read| &read.tree.file),
            types: generics
                .type_params()
                .map(|param| param.ident.to_string())
                .collect(),
        };
        let native = setting.native();
        let (sig, block) = hygiene::unified(self.sig, self.block);
        let none = Conditions::new();
        let mut lane = Lane::new(&setting, &none);
        let mut names = 0;
        for input in &sig.inputs {
            match input {
                syn::FnArg::Receiver(_) => {
                    let own = syn::Ident::new("self", proc_macro2::Span::call_site());
                    lane.scope.declare(&own, Name::Value);
                }
                syn::FnArg::Typed(typed) => {
                    let kind = match &*typed.ty {
                        syn::Type::Path(path)
                            if path
                                .path
                                .segments
                                .last()
                                .is_some_and(|last| last.ident == "GridPos") =>
                        {
                            Name::Position
                        }
                        _ => Name::Value,
                    };
                    lane.scope.declare_pattern(&typed.pat, kind);
                    names += usize::from(kind == Name::Position);
                }
            }
        }
        let body = lane.block(&block);
        let local = lane.local;
        let mut output = match &self.sig.output {
            syn::ReturnType::Default => syn::parse_quote!(()),
            syn::ReturnType::Type(_, ty) => (**ty).clone(),
        };
        let supported = !elided(&mut output)
            && lacks_native(self.sig, self.block).is_none()
            && self.read.is_some()
            && understood
            && !lane.unsupported
            && !local
            && names == 0;
        let (body, generics) = if supported {
            (quote!(::core::result::Result::Ok(#body)), generics)
        } else {
            // Nobody calls it: the constant says so.
            let site = lane.site(self.sig.ident.span(), "");
            (
                quote!(::core::result::Result::Err(#native::Stop::unreachable(#site))),
                super::generics::without_lifetimes(&self.sig.generics),
            )
        };
        let types = self
            .read
            .map_or_else(Vec::new, |read| named_types(read, self.own));
        let available = if supported {
            let own = self.own.map(|own| (own, &self.sig.ident));
            callees(&lane.callees, &called_methods(self.block), &types, own)
        } else {
            let called = self
                .read
                .map_or_else(Vec::new, |read| called_flags(read, self.block));
            quote!(false #(& #called)*)
        };
        let (name, flag, quiet) = (self.name, self.flag, crate::output::quiet());
        let lifetimes = self.sig.generics.lifetimes();
        let (params, clause) = (generics.params.iter(), &generics.where_clause);
        let (mode, at) = (internal("m"), internal("at"));
        let constant = quote_spanned!(self.sig.ident.span()=> pub const #flag: bool = #available;);
        let mut inputs: Vec<TokenStream> = sig.inputs.iter().map(|input| quote!(#input)).collect();
        let receiver = usize::from(self.sig.receiver().is_some());
        inputs.insert(receiver, quote!(#mode: &impl #native::Mode));
        inputs.insert(receiver + 1, quote!(#at: &'static #native::Site));
        quote! {
            #[doc(hidden)]
            #quiet
            #constant

            #[doc(hidden)]
            #quiet
            #[inline(always)]
            pub fn #name<#(#lifetimes,)* #(#params),*>(#(#inputs),*) -> ::core::result::Result<#output, #native::Stop>
            #clause
            {
                use #native::methods::{Booleans as _, Elements as _, Floats as _, Halves as _, Integers as _, Ordered as _};
                use #native::operators::{AsWritten as _, Indexed as _};
                #body
            }
        }
    }
}

/// Names the lifetimes that a result's references leave out, since the sibling has more parameters than the function, and takes
/// an `impl Trait` out. Whether there are any; nobody calls the sibling then.
fn elided(ty: &mut syn::Type) -> bool {
    match ty {
        syn::Type::Reference(reference) => {
            let found = reference.lifetime.is_none();
            if found {
                reference.lifetime = Some(syn::parse_quote!('static));
            }
            elided(&mut reference.elem) | found
        }
        syn::Type::ImplTrait(_) => {
            *ty = syn::parse_quote!(());
            true
        }
        syn::Type::Path(path) => {
            let mut found = false;
            for segment in &mut path.path.segments {
                if let syn::PathArguments::AngleBracketed(args) = &mut segment.arguments {
                    for arg in &mut args.args {
                        if let syn::GenericArgument::Type(ty) = arg {
                            found |= elided(ty);
                        }
                    }
                }
            }
            found
        }
        syn::Type::Array(array) => elided(&mut array.elem),
        syn::Type::Slice(slice) => elided(&mut slice.elem),
        syn::Type::Tuple(tuple) => tuple.elems.iter_mut().fold(false, |found, ty| elided(ty) | found),
        _ => false,
    }
}
