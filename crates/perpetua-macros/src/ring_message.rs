//! `derive(RingMessage)`: a message's words, on the host and in kernels.

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

/// Words of payload that a packet has room for.
const ROOM: usize = 16;

pub(crate) fn expand(item: TokenStream) -> TokenStream {
    syn::parse2::<syn::DeriveInput>(item)
        .and_then(|input| message(&input))
        .unwrap_or_else(|error| error.to_compile_error())
}

/// What a field is for, beyond being carried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Id,
    Correlation,
    Priority,
}

fn message(input: &syn::DeriveInput) -> syn::Result<TokenStream> {
    let name = &input.ident;
    let syn::Data::Struct(data) = &input.data else {
        return Err(syn::Error::new_spanned(
            name,
            "a message is a struct: put an enum's number in a field, or write one message for each variant",
        ));
    };
    if !input.generics.params.is_empty() {
        return Err(syn::Error::new_spanned(
            &input.generics,
            "a message has no generic parameters: write one struct for each type",
        ));
    }
    let mut type_id = quote!(#name::__PERPETUA_NAME_HASH);
    for attr in input.attrs.iter().filter(|attr| attr.path().is_ident("message")) {
        attr.parse_nested_meta(|meta| {
            if !meta.path.is_ident("type_id") {
                return Err(meta.error("a message takes `#[message(type_id = 1)]`"));
            }
            let number: syn::LitInt = meta.value()?.parse()?;
            let number: u32 = number.base10_parse()?;
            type_id = quote!(#number);
            Ok(())
        })?;
    }
    let actors = quote!(::perpetua::actors);
    let (mut words, mut reads, mut at) = (Vec::new(), Vec::new(), 0usize);
    let mut roles = Vec::new();
    for (index, field) in data.fields.iter().enumerate() {
        let member: syn::Member = match &field.ident {
            Some(ident) => ident.clone().into(),
            None => syn::Index::from(index).into(),
        };
        for attr in field.attrs.iter().filter(|attr| attr.path().is_ident("message")) {
            attr.parse_nested_meta(|meta| {
                let role = if meta.path.is_ident("id") {
                    Role::Id
                } else if meta.path.is_ident("correlation") {
                    Role::Correlation
                } else if meta.path.is_ident("priority") {
                    Role::Priority
                } else {
                    return Err(meta.error("a field is marked `#[message(id)]`, `#[message(correlation)]` or `#[message(priority)]`"));
                };
                roles.push((role, member.clone(), field.ty.clone()));
                Ok(())
            })?;
        }
        let value = read(&field.ty, &quote!(self.#member), &mut words, &mut at)?;
        reads.push(quote!(#member: #value));
    }
    if at > ROOM {
        return Err(syn::Error::new_spanned(
            name,
            format!("`{name}` takes {at} words of 32 bits, a packet has room for {ROOM}: split it"),
        ));
    }
    let zeros = (at..ROOM).map(|_| quote!(0u32));
    let text = name.to_string();
    let hash = Literal::u32_suffixed(hash(&text));
    let at = Literal::usize_suffixed(at);
    let methods = roles.iter().map(|(role, member, ty)| match role {
        Role::Id => quote_spanned! {ty.span()=>
            fn message_id(&self) -> ::core::option::Option<#actors::MessageId> {
                ::core::option::Option::Some(::core::convert::Into::into(self.#member))
            }
        },
        Role::Correlation => quote_spanned! {ty.span()=>
            fn correlation(&self) -> ::core::option::Option<u64> {
                ::core::option::Option::Some(::core::convert::Into::into(self.#member))
            }
        },
        Role::Priority => quote_spanned! {ty.span()=>
            fn priority(&self) -> ::core::option::Option<u8> {
                ::core::option::Option::Some(self.#member)
            }
        },
    });
    let quiet = crate::output::quiet();
    Ok(quote! {
        #quiet
        impl #name {
            #[doc(hidden)]
            pub const __PERPETUA_NAME_HASH: u32 = #hash;
            #[doc(hidden)]
            pub const __PERPETUA_TYPE_ID: u32 = #type_id;
            #[doc(hidden)]
            pub const __PERPETUA_WORDS: u32 = #at as u32;
        }

        #[::perpetua::device]
        #quiet
        impl #name {
            #[doc(hidden)]
            pub fn __perpetua_type_id(&self) -> u32 {
                #name::__PERPETUA_TYPE_ID
            }

            #[doc(hidden)]
            pub fn __perpetua_word_count(&self) -> u32 {
                #name::__PERPETUA_WORDS
            }

            #[doc(hidden)]
            pub fn __perpetua_words(&self) -> [u32; 16] {
                [#(#words,)* #(#zeros),*]
            }

            #[doc(hidden)]
            pub fn __perpetua_read(w: [u32; 16]) -> #name {
                #name { #(#reads),* }
            }
        }

        #[automatically_derived]
        impl #actors::RingMessage for #name {
            const TYPE_ID: u32 = #name::__PERPETUA_TYPE_ID;
            const WORDS: usize = #at;
            const NAME: &'static str = #text;

            fn to_payload(&self) -> [u32; 16] {
                self.__perpetua_words()
            }

            fn from_payload(words: &[u32; 16]) -> Self {
                #name::__perpetua_read(*words)
            }

            #(#methods)*
        }
    })
}

/// A number for a message's type that depends on its name alone (FNV-1a; the lower numbers are left to be chosen).
fn hash(name: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    name.bytes().fold(0x811c_9dc5, step) | 0x8000_0000
}

/// Appends the words of a value of type `ty`; gives the expression that reads it back.
fn read(
    ty: &syn::Type,
    value: &TokenStream,
    words: &mut Vec<TokenStream>,
    at: &mut usize,
) -> syn::Result<TokenStream> {
    let next = |at: &mut usize| {
        let index = Literal::usize_unsuffixed((*at).min(ROOM - 1));
        *at += 1;
        quote!(w[#index])
    };
    if let syn::Type::Array(array) = ty {
        let syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Int(len),
            ..
        }) = &array.len
        else {
            return Err(syn::Error::new_spanned(
                &array.len,
                "an array in a message has its length as a number: `[f32; 4]`",
            ));
        };
        let len: usize = len.base10_parse()?;
        if len > ROOM {
            return Err(syn::Error::new_spanned(
                ty,
                format!("a packet has room for {ROOM} words of 32 bits: split the message"),
            ));
        }
        let elements = (0..len)
            .map(|i| {
                let i = Literal::usize_unsuffixed(i);
                read(&array.elem, &quote!(#value[#i]), words, at)
            })
            .collect::<syn::Result<Vec<_>>>()?;
        return Ok(quote!([#(#elements),*]));
    }
    let name = match ty {
        syn::Type::Path(path) => path
            .path
            .segments
            .last()
            .map(|s| s.ident.to_string())
            .unwrap_or_default(),
        _ => String::new(),
    };
    Ok(match name.as_str() {
        "u32" => {
            words.push(value.clone());
            next(at)
        }
        "f32" => {
            words.push(quote!(#value.to_bits()));
            let w = next(at);
            quote!(f32::from_bits(#w))
        }
        "i32" | "u8" | "i8" | "u16" | "i16" => {
            let ty = format_ident!("{name}");
            words.push(quote!(#value as u32));
            let w = next(at);
            quote!(#w as #ty)
        }
        "bool" => {
            words.push(quote!(#value as u32));
            let w = next(at);
            quote!((#w != 0))
        }
        "u64" | "i64" => {
            let ty = format_ident!("{name}");
            words.push(quote!(#value as u32));
            words.push(quote!((#value >> 32) as u32));
            let (low, high) = (next(at), next(at));
            quote!((#low as u64 | ((#high as u64) << 32)) as #ty)
        }
        "f64" => {
            words.push(quote!(#value.to_bits() as u32));
            words.push(quote!((#value.to_bits() >> 32) as u32));
            let (low, high) = (next(at), next(at));
            quote!(f64::from_bits(#low as u64 | ((#high as u64) << 32)))
        }
        "MessageId" => {
            words.push(quote!(#value.0 as u32));
            words.push(quote!((#value.0 >> 32) as u32));
            let (low, high) = (next(at), next(at));
            quote!(#ty(#low as u64 | ((#high as u64) << 32)))
        }
        "Vec" | "String" => {
            let message =
                "a message has a fixed layout: carry what varies in a buffer, and its offset and length here";
            return Err(syn::Error::new_spanned(ty, message));
        }
        _ => {
            let message =
                "a message's fields are scalars, arrays of them, and `MessageId`: take a struct apart";
            return Err(syn::Error::new_spanned(ty, message));
        }
    })
}
