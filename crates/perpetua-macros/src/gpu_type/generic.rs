//! What `derive(GpuType)` says of generic structs and enums: how fields follow from arguments.

use perpetua_syntax::FieldDef;
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit::Visit;

use crate::output;
use crate::resolver::Plain;

/// The parameters, each type bound by this, too.
pub(super) fn bounded(generics: &syn::Generics, bound: &TokenStream) -> syn::Generics {
    let mut generics = generics.clone();
    for param in generics.type_params_mut() {
        let bound: syn::TypeParamBound = syn::parse_quote!(#bound);
        param.bounds.push(bound);
    }
    generics
}

/// The parameters' names, lifetimes left out.
pub(super) fn names(generics: &syn::Generics) -> Vec<&syn::Ident> {
    let params = generics.params.iter().filter_map(|param| match param {
        syn::GenericParam::Type(param) => Some(&param.ident),
        syn::GenericParam::Const(param) => Some(&param.ident),
        syn::GenericParam::Lifetime(_) => None,
    });
    params.collect()
}

/// What finds the `Default` of an instance, where it is one for all arguments that have their own, and what says so in the description.
/// Of constants it may make anything.
pub(super) fn default(input: &syn::DeriveInput, facade: &TokenStream) -> Option<(TokenStream, TokenStream)> {
    // What bounds a parameter may give values of it, too.
    let bounded_by_user = input.generics.where_clause.is_some()
        || input.generics.type_params().any(|param| !param.bounds.is_empty());
    if bounded_by_user || input.generics.const_params().next().is_some() {
        return None;
    }
    let generics = bounded(&input.generics, &quote!(#facade::GpuType));
    let generics = bounded(&generics, &quote!(::core::default::Default));
    let ((before, args, clause), name) = (generics.split_for_impl(), &input.ident);
    let quiet = output::quiet();
    let found = quote! {
        #quiet
        impl #before #name #args #clause {
            #[doc(hidden)]
            pub fn __perpetua_default() -> ::core::option::Option<#facade::ConstValue> {
                use #facade::equality::{WithDefault as _, WithoutDefault as _};
                (&&#facade::equality::Comparison::<Self, true>::of()).default_value()
            }
        }
    };
    Some((found, quote!(.with_default(Self::__perpetua_default))))
}

/// The description of an instance.
pub(super) fn description(
    input: &syn::DeriveInput,
    members: &[syn::Member],
    facade: &TokenStream,
) -> TokenStream {
    let args = input.generics.params.iter().filter_map(|param| match param {
        syn::GenericParam::Type(param) => {
            let name = &param.ident;
            Some(quote!(#facade::TypeArg::Type(<#name as #facade::GpuValue>::value_type())))
        }
        syn::GenericParam::Const(param) => {
            let name = &param.ident;
            Some(quote!(#facade::TypeArg::Const(#name as u64)))
        }
        syn::GenericParam::Lifetime(_) => None,
    });
    let sample = super::sample(&input.ident, &input.generics);
    quote! {
        #facade::TypeDesc::of_instance::<Self>(
            &<#sample>::__perpetua_struct(),
            ::std::vec![#(#args),*],
            &[#(::core::mem::offset_of!(Self, #members)),*],
        )
    }
}

/// A generic struct's fields with their names, and how their types follow from the parameters.
pub(super) fn described(
    fields: &[FieldDef],
    types: &[&syn::Type],
    input: &syn::DeriveInput,
    facade: &TokenStream,
) -> TokenStream {
    let params = names(&input.generics);
    let fields = fields.iter().zip(types).map(|(field, ty)| {
        let (name, ty) = (&field.name, field_type(ty, &params, facade));
        quote!((#name, #ty))
    });
    quote!(::std::vec![#(#fields),*])
}

/// What paths without arguments reach: the only items of these names stand on one instance, so rustc takes that. `described` is the
/// call that describes the type of `Key` and `params`.
pub(super) fn sample_items(
    input: &syn::DeriveInput,
    sample: &TokenStream,
    described: &TokenStream,
    facade: &TokenStream,
) -> TokenStream {
    let (quiet, name) = (output::quiet(), input.ident.unraw().to_string());
    let params = input.generics.params.iter().filter_map(|param| match param {
        syn::GenericParam::Type(_) => Some(quote!(#facade::TypeParam::Type)),
        syn::GenericParam::Const(param) => {
            let text = param.ty.span().source_text();
            let scalar = match &param.ty {
                syn::Type::Path(path) => path.path.get_ident().map(ToString::to_string).or(text),
                _ => text,
            };
            let scalar = scalar.and_then(|name| perpetua_syntax::Scalar::from_name(&name));
            let scalar = format_ident!(
                "{}",
                format!("{:?}", scalar.unwrap_or(perpetua_syntax::Scalar::Usize))
            );
            Some(quote!(#facade::TypeParam::Const(#facade::Scalar::#scalar)))
        }
        syn::GenericParam::Lifetime(_) => None,
    });
    quote! {
        #quiet
        impl #sample {
            #[doc(hidden)]
            pub const __PERPETUA_NAME: &'static str = #name;

            #[doc(hidden)]
            pub fn __perpetua_struct() -> ::std::sync::Arc<#facade::GenericStruct> {
                struct Key;
                let params = ::std::vec![#(#params),*];
                #facade::GenericStruct::#described
            }

            #[doc(hidden)]
            pub fn __perpetua_type(r: &mut #facade::Resolver, path: u32) {
                r.generic_struct(path, Self::__perpetua_struct());
            }

            #[doc(hidden)]
            pub fn __perpetua_value(r: &mut #facade::Resolver, path: u32, _: &Self) {
                r.generic_struct(path, Self::__perpetua_struct());
            }
        }
    }
}

/// How a field's type follows from the parameters.
pub(super) fn field_type(ty: &syn::Type, params: &[&syn::Ident], facade: &TokenStream) -> TokenStream {
    let span = ty.span();
    let again = |ty: &syn::Type| field_type(ty, params, facade);
    let param = |path: &syn::Path| params.iter().position(|param| path.is_ident(*param));
    let constant = |value: &syn::Expr| match value {
        syn::Expr::Path(path) if param(&path.path).is_some() => {
            let index = param(&path.path);
            quote!(#facade::FieldType::Param(#index))
        }
        value => quote!(#facade::FieldType::Const((#value) as u64)),
    };
    match ty {
        syn::Type::Paren(inner) => again(&inner.elem),
        syn::Type::Group(inner) => again(&inner.elem),
        syn::Type::Path(path) if param(&path.path).is_some() => {
            let index = param(&path.path);
            quote!(#facade::FieldType::Param(#index))
        }
        syn::Type::Array(array) if mentions(ty, params) => {
            let (element, len) = (again(&array.elem), constant(&array.len));
            quote!(#facade::FieldType::Array(::std::boxed::Box::new((#element, #len))))
        }
        syn::Type::Tuple(tuple) if mentions(ty, params) => {
            let parts = tuple.elems.iter().map(again);
            quote!(#facade::FieldType::Tuple(::std::vec![#(#parts),*]))
        }
        syn::Type::Path(path) if mentions(ty, params) => {
            let standard = standard(path).map(|(name, args)| {
                let args = args.into_iter().map(again);
                match name {
                    "Option" => quote!(#facade::FieldType::Option(::std::boxed::Box::new(#(#args)*))),
                    _ => quote!(#facade::FieldType::Result(::std::boxed::Box::new([#(#args),*]))),
                }
            });
            if let Some(standard) = standard {
                return standard;
            }
            let plain = Plain::of(&path.path);
            let whole = plain.whole(None);
            let named = plain.is_named(&whole, facade);
            let args = match path.path.segments.last().map(|last| &last.arguments) {
                Some(syn::PathArguments::AngleBracketed(args)) => args.args.iter().collect(),
                _ => Vec::new(),
            };
            let args = args.into_iter().filter_map(|arg| match arg {
                syn::GenericArgument::Type(ty) => Some(again(ty)),
                syn::GenericArgument::Const(value) => Some(constant(value)),
                _ => None,
            });
            quote_spanned! {span=> {
                #named
                #facade::FieldType::Instance(#whole::__perpetua_struct(), ::std::vec![#(#args),*])
            }}
        }
        ty => quote_spanned!(span=> #facade::FieldType::Known(<#ty as #facade::GpuValue>::value_type())),
    }
}

/// The arguments of `Option<T>` or `Result<T, E>`, which kernels know by name.
fn standard(path: &syn::TypePath) -> Option<(&'static str, Vec<&syn::Type>)> {
    let last = path.path.segments.last()?;
    let syn::PathArguments::AngleBracketed(args) = &last.arguments else {
        return None;
    };
    let args = args.args.iter().map(|arg| match arg {
        syn::GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    let args: Vec<&syn::Type> = args.collect::<Option<_>>()?;
    match (last.ident.to_string().as_str(), args.len()) {
        ("Option", 1) => Some(("Option", args)),
        ("Result", 2) => Some(("Result", args)),
        _ => None,
    }
}

/// Whether a type has a parameter in it.
fn mentions(ty: &syn::Type, params: &[&syn::Ident]) -> bool {
    struct Found<'a>(&'a [&'a syn::Ident], bool);
    impl Visit<'_> for Found<'_> {
        fn visit_path(&mut self, path: &syn::Path) {
            self.1 |= self.0.iter().any(|param| path.is_ident(*param));
            syn::visit::visit_path(self, path);
        }
    }
    let mut found = Found(params, false);
    found.visit_type(ty);
    found.1
}
