//! `derive(GpuType)` on enums with data: values of kernels, which have no layout.

use perpetua_syntax::StructDef;
use perpetua_syntax::parse::Read;
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use super::{Values, compared, default, generic, implement, types_of, zeros};
use crate::device::generic::sample;

pub(super) fn expand(input: &syn::DeriveInput, read: &Read<StructDef>, facade: &TokenStream) -> TokenStream {
    let (name, text) = (&input.ident, &read.tree.name);
    let variants: Vec<&syn::Variant> = match &input.data {
        syn::Data::Enum(data) => data.variants.iter().collect(),
        _ => Vec::new(),
    };
    let fields: Vec<&syn::Field> = variants.iter().flat_map(|variant| &variant.fields).collect();
    let is_generic = !read.tree.generics.is_empty();
    let constants = variants.iter().enumerate().map(|(number, variant)| {
        let (variant, members): (_, Vec<_>) = (&variant.ident, variant.fields.members().collect());
        let names: Vec<_> = (0..members.len()).map(|i| format_ident!("field_{i}")).collect();
        quote! {
            Self::#variant { #(#members: #names),* } => #facade::ConstValue::of_variant(
                &<Self as #facade::GpuValue>::value_type(),
                #number,
                ::std::vec![#(#facade::GpuConst::to_const(#names)),*],
            )
        }
    });
    let zeroed = variants.first().map(|variant| {
        let members = variant.fields.members();
        let fields: Vec<&syn::Field> = variant.fields.iter().collect();
        let zeros = zeros(&types_of(&fields), facade);
        let variant = &variant.ident;
        quote!(Self::#variant { #(#members: #zeros),* })
    });
    let description = match is_generic {
        true => generic::description(input, &[], facade),
        false => {
            let ty = |field: &syn::Field| {
                let ty = &field.ty;
                quote_spanned!(ty.span()=> <#ty as #facade::GpuValue>::value_type())
            };
            let variants = listed(read, &fields, ty);
            let default = default(facade);
            quote!(#facade::TypeDesc::of_variants::<Self>(#text, #variants)#default)
        }
    };
    let implementation = implement(
        input,
        &Values {
            description,
            constant: quote!(match self { #(#constants),* }),
            zeroed: quote!(#zeroed),
            types: types_of(&fields),
            in_memory: false,
        },
        facade,
    );
    let (compared, generic) = match is_generic {
        true => {
            let sample = sample(name, &input.generics);
            let names = generic::names(&input.generics);
            let variants = listed(read, &fields, |field| {
                generic::field_type(&field.ty, &names, facade)
            });
            let described = quote!(of_variants::<Key>(#text, params, #variants));
            let generic = generic::sample_items(input, &sample, &described, facade);
            (compared(&sample, name, facade), Some(generic))
        }
        false => (compared(&quote!(#name), name, facade), None),
    };
    quote! { #implementation #compared #generic }
}

/// The variants with their names, their fields' names, and what `ty` says of each field.
fn listed(
    read: &Read<StructDef>,
    fields: &[&syn::Field],
    ty: impl Fn(&syn::Field) -> TokenStream,
) -> TokenStream {
    let fields = read.tree.fields.iter().zip(fields).map(|(field, tokens)| {
        let (name, ty) = (&field.name, ty(tokens));
        quote!((#name, #ty))
    });
    let variants = read.tree.by_variant(fields.collect());
    let variants = variants
        .into_iter()
        .map(|(name, fields)| quote!((#name, ::std::vec![#(#fields),*])));
    quote!(::std::vec![#(#variants),*])
}
