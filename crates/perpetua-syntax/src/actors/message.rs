//! A message: its words, and the functions that take it apart and put it together. One with vectors has a view of fixed layout,
//! which travels.

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, format_ident, quote};

use super::vector::Vector;

/// Words of payload that a packet has room for.
pub(super) const ROOM: usize = 16;
/// Words of payload beside those that tell of a block.
const ROOM_WITH_VECTORS: usize = 14;

/// How a message's attribute is written.
const USAGE: &str = "a message takes `#[message(type_id = 1)]`, `#[message(version = 2)]`, and `#[message(path = \"bank::Pay\")]` where it stands for another type's older version";

/// What a field is for, beyond being carried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The message's number.
    Id,
    /// What an answer repeats.
    Correlation,
    /// How soon it goes.
    Priority,
}

/// A struct that derives `RingMessage`.
#[derive(Clone)]
pub struct Message {
    /// Its name.
    pub name: syn::Ident,
    /// What travels: itself, or its view, where it has vectors.
    pub view: syn::Ident,
    /// The fields that are vectors, by their place.
    pub vectors: Vec<(usize, Vector)>,
    /// Fields that are for more than being carried, with their types.
    pub roles: Vec<(Role, syn::Member, syn::Type)>,
    /// The words that it takes.
    pub count: usize,
    /// Its fields' names and types.
    pub layout: String,
    /// Which of its layouts and meanings this is, as `#[message(version = 2)]` says; else 1.
    pub version: u32,
    /// Another type's path, which it stands for, as `#[message(path = "bank::Pay")]` says.
    pub path: Option<syn::LitStr>,
    type_id: Option<u32>,
    words: Vec<TokenStream>,
    reads: Vec<TokenStream>,
}

impl Message {
    /// Reads a struct.
    ///
    /// # Errors
    /// It is no struct of scalars and arrays of these, has no fixed layout, or takes more words than a packet has.
    pub fn read(input: &syn::DeriveInput) -> syn::Result<Message> {
        let name = input.ident.clone();
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
        let (mut type_id, mut version, mut path) = (None, 1, None);
        for attr in input.attrs.iter().filter(|attr| attr.path().is_ident("message")) {
            attr.parse_nested_meta(|meta| {
                if meta.path.is_ident("path") {
                    path = Some(meta.value()?.parse()?);
                    return Ok(());
                }
                let is_id = meta.path.is_ident("type_id");
                if !is_id && !meta.path.is_ident("version") {
                    return Err(meta.error(USAGE));
                }
                let number: syn::LitInt = meta.value()?.parse()?;
                let number: u32 = number.base10_parse()?;
                match is_id {
                    true => type_id = Some(number),
                    false => version = number,
                }
                Ok(())
            })?;
        }
        let (mut words, mut reads, mut at) = (Vec::new(), Vec::new(), 0usize);
        let (mut roles, mut vectors) = (Vec::new(), Vec::new());
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
            let value = match Vector::of(&field.ty)? {
                Some(vector) => {
                    vectors.push((index, vector));
                    vector.read(&quote!(self.#member), &mut words, &mut at)
                }
                None => read(&field.ty, &quote!(self.#member), &mut words, &mut at)?,
            };
            reads.push(quote!(#member: #value));
        }
        let (room, view) = match &vectors[..] {
            [] => (ROOM, name.clone()),
            _ => (ROOM_WITH_VECTORS, format_ident!("{name}View", span = name.span())),
        };
        if at > room {
            return Err(syn::Error::new_spanned(
                &name,
                format!("`{name}` takes {at} words of 32 bits, a packet has room for {room}: split it"),
            ));
        }
        if !vectors.is_empty() && !matches!(data.fields, syn::Fields::Named(_)) {
            return Err(syn::Error::new_spanned(
                name,
                "a message with vectors has named fields: write `struct Name { values: Vec<f32> }`",
            ));
        }
        Ok(Message {
            name,
            view,
            vectors,
            roles,
            count: at,
            layout: layout(&data.fields),
            version,
            path,
            type_id,
            words,
            reads,
        })
    }

    /// The struct that travels, where the message has vectors: these are spans there.
    #[must_use]
    pub fn view_struct(&self, input: &syn::DeriveInput) -> Option<TokenStream> {
        let (syn::Data::Struct(data), false) = (&input.data, self.vectors.is_empty()) else {
            return None;
        };
        let fields = data.fields.iter().enumerate().map(|(index, field)| {
            let (ident, vis, ty) = (&field.ident, &field.vis, &field.ty);
            let docs = field.attrs.iter().filter(|attr| attr.path().is_ident("doc"));
            let ty = match self.vectors.iter().find(|(at, _)| *at == index) {
                Some((_, vector)) => vector.span(),
                None => quote!(#ty),
            };
            quote!(#(#docs)* #vis #ident: #ty)
        });
        let (vis, view) = (&input.vis, &self.view);
        let doc = format!(
            "[`{}`] as it travels and as handlers see it: its vectors are spans of the message's block.",
            self.name
        );
        Some(quote! {
            #[doc = #doc]
            #[derive(Clone, Copy, Debug, PartialEq, ::perpetua::prelude::GpuType)]
            #[allow(dead_code)]
            #[repr(C)]
            #vis struct #view {
                #(#fields,)*
            }
        })
    }

    /// A number for its type, where nobody knows the modules and the crate that it stands in: by its name alone.
    #[must_use]
    pub fn number_by_name(&self) -> TokenStream {
        let number = hash(&format!("{}{}{}", self.name, self.layout, self.version));
        Literal::u32_suffixed(number).into_token_stream()
    }

    /// Two `impl` blocks: its constants, and the functions that kernels call. `number`: its type's, unless it says one itself.
    #[must_use]
    pub fn functions(&self, number: &TokenStream) -> [TokenStream; 2] {
        let Message {
            view: name,
            words,
            reads,
            ..
        } = self;
        let zeros = (self.count..ROOM).map(|_| quote!(0u32));
        let type_id = match self.type_id {
            Some(number) => quote!(#number),
            None => number.clone(),
        };
        let spans = Literal::u32_suffixed(self.vectors.len() as u32);
        let count = Literal::u32_suffixed(self.count as u32);
        let constants = quote! {
            impl #name {
                #[doc(hidden)]
                pub const __PERPETUA_TYPE_ID: u32 = #type_id;
                #[doc(hidden)]
                pub const __PERPETUA_WORDS: u32 = #count;
                #[doc(hidden)]
                pub const __PERPETUA_SPANS: u32 = #spans;
            }
        };
        let functions = quote! {
            #[::perpetua::device]
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
                pub fn __perpetua_spans(&self) -> u32 {
                    #name::__PERPETUA_SPANS
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
        };
        [constants, functions]
    }
}

/// A message's fields with their types, alike whoever prints their tokens.
fn layout(fields: &syn::Fields) -> String {
    let fields = fields.iter().enumerate().map(|(index, field)| {
        let ty = field.ty.to_token_stream().to_string();
        let ty: String = ty.split_whitespace().collect();
        match &field.ident {
            Some(ident) => format!("{ident}: {ty}"),
            None => format!("{index}: {ty}"),
        }
    });
    format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
}

/// A number for a type's name and fields (FNV-1a; the lower numbers are left to be chosen).
fn hash(text: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    text.bytes().fold(0x811c_9dc5, step) | 0x8000_0000
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
        "String" => {
            let message = "a message has numbers only: carry a text's bytes in a `Vec<u32>`";
            return Err(syn::Error::new_spanned(ty, message));
        }
        _ => {
            let message = "a message's fields are scalars, arrays of them, `MessageId`, and vectors (`Vec<f32>`, `Vec<u32>`, `Vec<i32>`): send an enum as its number (`kind as u32`), and a struct's fields one by one";
            return Err(syn::Error::new_spanned(ty, message));
        }
    })
}
