//! `derive(GpuType)`: structs with C's layout, enums without data, and those with data, which no memory takes.

use perpetua_syntax::parse::options::read_crate;
use perpetua_syntax::parse::{GpuType, Read, read_gpu_type};
use perpetua_syntax::{EnumDef, StructDef};
use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use crate::device::generic::sample;
use crate::output;

mod generic;
mod variants;

pub(crate) fn expand(item: TokenStream) -> TokenStream {
    let result = syn::parse2::<syn::DeriveInput>(item).and_then(|input| {
        let facade = output::facade(krate(&input.attrs)?.as_ref());
        Ok(match read_gpu_type(&input)? {
            GpuType::Struct(read) if !read.tree.variants.is_empty() => {
                variants::expand(&input, &read, &facade)
            }
            GpuType::Struct(read) => expand_struct(&input, &read, &facade),
            GpuType::Enum(definition) => expand_enum(&input, &definition, &facade),
        })
    });
    result.unwrap_or_else(|error| error.to_compile_error())
}

/// The path in `#[gpu(crate = path)]`.
fn krate(attrs: &[syn::Attribute]) -> syn::Result<Option<syn::Path>> {
    let mut found = None;
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("gpu")) {
        found = found.or(attr.parse_args().and_then(read_crate)?);
    }
    Ok(found)
}

fn expand_struct(input: &syn::DeriveInput, read: &Read<StructDef>, facade: &TokenStream) -> TokenStream {
    let name = &input.ident;
    let (text, tuple, is_generic) = (&read.tree.name, read.tree.tuple, !read.tree.generics.is_empty());
    let fields: Vec<&syn::Field> = match &input.data {
        syn::Data::Struct(data) => data.fields.iter().collect(),
        _ => Vec::new(),
    };
    let members: Vec<syn::Member> = (0u32..)
        .zip(&fields)
        .map(|(index, field)| match &field.ident {
            Some(ident) => ident.clone().into(),
            None => syn::Index {
                index,
                span: field.ty.span(),
            }
            .into(),
        })
        .collect();
    let descriptions = read
        .tree
        .fields
        .iter()
        .zip(&fields)
        .zip(&members)
        .map(|((field, tokens), member)| {
            let (text, ty) = (&field.name, &tokens.ty);
            quote_spanned! {ty.span()=>
                #facade::FieldDesc {
                    name: #text.into(),
                    ty: <#ty as #facade::GpuType>::describe(),
                    offset: ::core::mem::offset_of!(#name, #member),
                }
            }
        });
    let constants = members
        .iter()
        .zip(&fields)
        .map(|(member, field)| quote_spanned!(field.ty.span()=> #facade::GpuConst::to_const(&self.#member)));
    let (default, in_memory) = (default(facade), read.tree.in_memory());
    let values = read.tree.fields.iter().zip(&fields).map(|(field, tokens)| {
        let (text, ty) = (&field.name, &tokens.ty);
        quote_spanned!(ty.span()=> (#text, <#ty as #facade::GpuValue>::value_type()))
    });
    let description = match is_generic {
        true => generic::description(input, &members, facade),
        false if !in_memory => quote! {
            #facade::TypeDesc::of_value::<Self>(#text, #tuple, ::std::vec![#(#values),*])#default
        },
        false => quote! {
            #facade::TypeDesc::of_struct::<Self>(#text, #tuple, ::std::vec![#(#descriptions),*])#default
        },
    };
    let constant = quote! {
        #facade::ConstValue::of_struct(
            &<Self as #facade::GpuValue>::value_type(),
            ::std::vec![#(#constants),*],
        )
    };
    let access = in_memory.then(|| struct_access(input, &members, &fields, facade));
    let types = types_of(&fields);
    let zeros = zeros(&types, facade);
    let implementation = implement(
        input,
        &Values {
            description,
            constant,
            zeroed: quote!(Self { #(#members: #zeros),* }),
            types,
            in_memory,
        },
        facade,
    );
    let (compared, generic) = match is_generic {
        true => {
            let sample = sample(name, &input.generics);
            let fields = generic::described(&read.tree.fields, &types_of(&fields), input, facade);
            let described = quote!(of::<Key>(#text, #tuple, params, #fields));
            let (default, given) = generic::default(input, facade).unzip();
            let described = quote!(#described #given);
            let generic = generic::sample_items(input, &sample, &described, facade);
            (compared(&sample, name, facade), Some(quote!(#generic #default)))
        }
        false => (compared(&quote!(#name), name, facade), None),
    };
    quote! { #implementation #access #compared #generic }
}

/// What does not compile where `PartialEq` is written by hand and kernels do not have it: they would compare by fields.
fn compared(ty: &TokenStream, name: &syn::Ident, facade: &TokenStream) -> TokenStream {
    let quiet = output::quiet();
    // Where the type's name stands, rustc shows the error.
    quote_spanned! {name.span()=>
        #quiet
        const _: fn() = || {
            use #facade::equality::{WithEquality as _, WithoutEquality as _};
            let asked = #facade::equality::Comparison::<#ty, { <#ty as #facade::GpuValue>::STRUCTURAL }>::of();
            match (&&asked).sample() {
                #facade::equality::Compared::<_>::WRITE_DEVICE_BEFORE_THE_IMPL_OF_PARTIAL_EQ_OR_DERIVE_IT => {}
                _ => {}
            }
        };
    }
}

/// Says what the type's `Default` is, where it has one: kernels that are not given its function take the host's value.
fn default(facade: &TokenStream) -> TokenStream {
    quote! {
        .with_default(|| {
            use #facade::equality::{WithDefault as _, WithoutDefault as _};
            (&&#facade::equality::Comparison::<Self, true>::of()).default_value()
        })
    }
}

/// Zeros of these types.
fn zeros(types: &[&syn::Type], facade: &TokenStream) -> Vec<TokenStream> {
    let zero = |ty: &&syn::Type| quote_spanned!(ty.span()=> <#ty as #facade::GpuValue>::ZEROED);
    types.iter().map(zero).collect()
}

fn types_of<'f>(fields: &[&'f syn::Field]) -> Vec<&'f syn::Type> {
    fields.iter().map(|field| &field.ty).collect()
}

/// `Element` of a struct: field by field.
fn struct_access(
    input: &syn::DeriveInput,
    members: &[syn::Member],
    fields: &[&syn::Field],
    facade: &TokenStream,
) -> TokenStream {
    let element = |ty: &syn::Type| quote_spanned!(ty.span()=> <#ty as #facade::Element>);
    let loads = |load: &str| {
        let load = format_ident!("{load}");
        let fields = members.iter().zip(fields).map(|(member, field)| {
            let element = element(&field.ty);
            quote!(#member: #element::#load(&raw const (*place).#member)?)
        });
        quote! {
            #[inline(always)]
            unsafe fn #load(place: *const Self) -> ::core::result::Result<Self, #facade::Invalid> {
                // SAFETY: the fields at `place` are as the caller promises the struct to be.
                unsafe { ::core::result::Result::Ok(Self { #(#fields),* }) }
            }
        }
    };
    let stores = |store: &str| {
        let store = format_ident!("{store}");
        let fields = members.iter().zip(fields).map(|(member, field)| {
            let element = element(&field.ty);
            quote!(#element::#store(&raw mut (*place).#member, value.#member);)
        });
        quote! {
            #[inline(always)]
            unsafe fn #store(place: *mut Self, value: Self) {
                // SAFETY: the fields at `place` are as the caller promises the struct to be.
                unsafe { #(#fields)* }
            }
        }
    };
    let (load, read) = (loads("load"), loads("read"));
    let (store, write) = (stores("store"), stores("write"));
    let name = &input.ident;
    let generics = generic::bounded(&input.generics, &quote!(#facade::Element));
    let (before, args, clause) = generics.split_for_impl();
    quote! {
        // SAFETY: field by field, by the fields' own promise; a field lies inside its struct.
        #[automatically_derived]
        unsafe impl #before #facade::Element for #name #args #clause {
            #load
            #store
            #read
            #write
        }
    }
}

fn expand_enum(input: &syn::DeriveInput, definition: &EnumDef, facade: &TokenStream) -> TokenStream {
    let name = &input.ident;
    let text = &definition.name;
    let repr = format_ident!("{}", variant_of(definition.repr));
    let variants = definition.variants.iter().map(|(name, value)| {
        let value = Literal::i128_unsuffixed(*value);
        quote!((#name, #value))
    });
    let idents = definition.variants.iter().map(|(name, value)| {
        let (name, value) = (ident(name), Literal::i128_unsuffixed(*value));
        quote!((Self::#name, #value))
    });
    let default = default(facade);
    let description = quote! {
        #facade::TypeDesc::of_enum::<Self>(#text, #facade::Scalar::#repr, &[#(#variants),*]).ordered(|| {
            use #facade::equality::{WithOrder as _, WithoutOrder as _};
            (&&#facade::equality::Comparison::<Self, true>::of()).in_order(&[#(#idents),*])
        })#default
    };
    let constant = quote! {
        #facade::ConstValue::of_enum(&<Self as #facade::GpuType>::describe(), *self as i128)
    };
    let access = enum_access(name, definition, facade);
    let zero = definition.variants.iter().find(|(_, value)| *value == 0);
    let zero = zero.or(definition.variants.first()).map(|(name, _)| ident(name));
    let implementation = implement(
        input,
        &Values {
            description,
            constant,
            zeroed: quote!(Self::#zero),
            types: Vec::new(),
            in_memory: true,
        },
        facade,
    );
    let compared = compared(&quote!(#name), name, facade);
    quote! { #implementation #access #compared }
}

/// `Element` of an enum: its integer, which must be a variant's.
fn enum_access(name: &syn::Ident, definition: &EnumDef, facade: &TokenStream) -> TokenStream {
    let text = &definition.name;
    let repr = format_ident!("{}", definition.repr.name());
    let variants: Vec<syn::Ident> = definition.variants.iter().map(|(name, _)| ident(name)).collect();
    let loads = |load: &str| {
        let load = format_ident!("{load}");
        quote! {
            #[inline(always)]
            unsafe fn #load(place: *const Self) -> ::core::result::Result<Self, #facade::Invalid> {
                // SAFETY: the enum is stored as this integer, so its memory is the integer's.
                let value = unsafe { <#repr as #facade::Element>::#load(place.cast::<#repr>())? };
                #(if value == Self::#variants as #repr {
                    return ::core::result::Result::Ok(Self::#variants);
                })*
                ::core::result::Result::Err(#facade::Invalid { ty: #text, value: value as u64 })
            }
        }
    };
    let stores = |store: &str| {
        let store = format_ident!("{store}");
        quote! {
            #[inline(always)]
            unsafe fn #store(place: *mut Self, value: Self) {
                // SAFETY: as in `load`.
                unsafe { <#repr as #facade::Element>::#store(place.cast::<#repr>(), value as #repr) }
            }
        }
    };
    let (load, read) = (loads("load"), loads("read"));
    let (store, write) = (stores("store"), stores("write"));
    quote! {
        // SAFETY: the integer that stores the enum, by its own promise; only variants are given back.
        #[automatically_derived]
        unsafe impl #facade::Element for #name {
            #load
            #store
            #read
            #write
        }
    }
}

/// A name as an identifier.
fn ident(name: &str) -> syn::Ident {
    syn::parse_str(name).unwrap_or_else(|_| syn::Ident::new_raw(name, proc_macro2::Span::call_site()))
}

/// The name of a scalar's variant in `Scalar`.
fn variant_of(scalar: perpetua_syntax::Scalar) -> String {
    format!("{scalar:?}")
}

/// What kernels know of a type.
struct Values<'a> {
    /// Its description.
    description: TokenStream,
    /// `self` as a constant.
    constant: TokenStream,
    /// All zeros.
    zeroed: TokenStream,
    /// The types of its fields.
    types: Vec<&'a syn::Type>,
    /// Whether memory takes its values.
    in_memory: bool,
}

fn implement(input: &syn::DeriveInput, values: &Values<'_>, facade: &TokenStream) -> TokenStream {
    let Values {
        description,
        constant,
        zeroed,
        types,
        in_memory,
    } = values;
    let name = &input.ident;
    let bound = if *in_memory {
        quote!(GpuType)
    } else {
        quote!(GpuValue)
    };
    let generics = generic::bounded(&input.generics, &quote!(#facade::#bound));
    let (before, args, clause) = generics.split_for_impl();
    let memory = in_memory.then(|| {
        quote! {
            // SAFETY: the derive accepted a `#[repr(C)]` struct or an enum without data: offsets come from the compiler,
            // field types are described by themselves, each variant is listed, and no such field is a reference or a cell.
            #[automatically_derived]
            unsafe impl #before #facade::GpuType for #name #args #clause {
                fn describe() -> #facade::TypeDesc {
                    #description
                }
            }
        }
    });
    let ty = match in_memory {
        true => quote!(<Self as #facade::GpuType>::describe()),
        false => description.clone(),
    };
    quote! {
        #memory

        #[automatically_derived]
        impl #before #facade::GpuValue for #name #args #clause {
            const ZEROED: Self = #zeroed;
            const STRUCTURAL: bool = {
                use #facade::equality::ByFields as _;
                !<Self>::__PERPETUA_COMPARED_BY_FUNCTION #(&& <#types as #facade::GpuValue>::STRUCTURAL)*
            };
        }

        #[automatically_derived]
        impl #before #facade::native::operators::Own for #name #args #clause {}

        #[automatically_derived]
        impl #before #facade::GpuConst for #name #args #clause {
            fn to_const(&self) -> #facade::ConstValue {
                #constant
            }

            fn const_type() -> ::core::option::Option<#facade::TypeDesc> {
                ::core::option::Option::Some(#ty)
            }
        }
    }
}
