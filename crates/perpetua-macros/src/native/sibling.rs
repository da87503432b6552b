//! The native siblings of device functions: the same function, as native bodies call it, and whether it does what the
//! function does.

use perpetua_syntax::Function;
use perpetua_syntax::parse::{Conditions, Read, lacks_native};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::visit_mut::VisitMut;

use crate::resolver::called_flags;

use super::generics::bounded;
use super::hygiene;
use super::lane::{Lane, Setting, internal};
use super::language::{is_array_method, is_scalar_method};
use super::program::callees;
use super::scope::Name;

/// A native sibling.
pub(crate) struct Sibling<'a> {
    /// The function's signature.
    pub(crate) sig: &'a syn::Signature,
    /// Its body.
    pub(crate) block: &'a syn::Block,
    /// Its tree; `None` where the macro refused it.
    pub(crate) read: Option<&'a Read<Function>>,
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
            let syn::FnArg::Typed(typed) = input else {
                continue;
            };
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
        let available = if supported {
            callees(&lane.callees)
        } else {
            let called = self
                .read
                .map_or_else(Vec::new, |read| called_flags(read, self.block));
            quote!(false #(& #called)*)
        };
        let (flag, quiet) = (self.flag, crate::output::quiet());
        let constant = quote_spanned!(self.sig.ident.span()=> pub const #flag: bool = #available;);
        let sig = syn::Signature { generics, ..sig };
        let head = head(&sig, &self.sig.generics, self.name, &output, &native);
        quote! {
            #[doc(hidden)]
            #quiet
            #constant

            #[doc(hidden)]
            #quiet
            #[inline(always)]
            #head
            {
                use #native::methods::{Booleans as _, Elements as _, Floats as _, Halves as _, Integers as _, Ordered as _};
                use #native::operators::{AsWritten as _, Indexed as _};
                #body
            }
        }
    }
}

/// What native bodies call in the place of a user's method that has the name of a scalar's or an array's: they cannot tell them apart. No kernel
/// that calls one runs a native body, which lowering says (`lower_followed`).
pub(crate) fn stand_in(
    item: &syn::ImplItemFn,
    of_trait: Option<&syn::Path>,
    facade: &TokenStream,
) -> Option<TokenStream> {
    let name = item.sig.ident.unraw().to_string();
    if item.sig.receiver().is_none() || !is_scalar_method(&name) && !is_array_method(&name) {
        return None;
    }
    let mut sig = item.sig.clone();
    if let Some(of_trait) = of_trait {
        Associated(of_trait).visit_signature_mut(&mut sig);
    }
    let lifetimes = sig.generics.clone();
    sig.generics = super::generics::without_lifetimes(&sig.generics);
    let mut output = match &sig.output {
        syn::ReturnType::Default => syn::parse_quote!(()),
        syn::ReturnType::Type(_, ty) => (**ty).clone(),
    };
    elided(&mut output);
    let (native, quiet, at) = (quote!(#facade::native), crate::output::quiet(), internal("at"));
    let name = syn::Ident::new(&format!("__perpetua_native_{name}"), sig.ident.span());
    let head = head(&sig, &lifetimes, &name, &output, &native);
    let conditions = crate::output::conditions(&item.attrs);
    Some(quote! {
        #conditions
        #[doc(hidden)]
        #quiet
        #head
        {
            ::core::result::Result::Err(#native::Stop::unreachable(#at))
        }
    })
}

/// Writes `Self::Output` of a trait's block as an inherent block must.
struct Associated<'a>(&'a syn::Path);

impl VisitMut for Associated<'_> {
    fn visit_type_path_mut(&mut self, ty: &mut syn::TypePath) {
        if let (None, [own, name]) = (&ty.qself, &ty.path.segments.iter().collect::<Vec<_>>()[..])
            && own.ident == "Self"
        {
            let of_trait = self.0;
            *ty = syn::parse_quote!(<Self as #of_trait>::#name);
            return;
        }
        syn::visit_mut::visit_type_path_mut(self, ty);
    }
}

/// `pub fn name(…, mode, at) -> Result<output, Stop>`.
fn head(
    sig: &syn::Signature,
    written: &syn::Generics,
    name: &syn::Ident,
    output: &syn::Type,
    native: &TokenStream,
) -> TokenStream {
    let lifetimes = written.lifetimes();
    let (params, clause) = (sig.generics.params.iter(), &sig.generics.where_clause);
    let (mode, at) = (internal("m"), internal("at"));
    let mut inputs: Vec<TokenStream> = sig.inputs.iter().map(|input| quote!(#input)).collect();
    let receiver = usize::from(sig.receiver().is_some());
    inputs.insert(receiver, quote!(#mode: &impl #native::Mode));
    inputs.insert(receiver + 1, quote!(#at: &'static #native::Site));
    quote! {
        pub fn #name<#(#lifetimes,)* #(#params),*>(#(#inputs),*) -> ::core::result::Result<#output, #native::Stop>
        #clause
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
