//! `derive(RingMessage)`: a message's words, on the host and in kernels. One with vectors gets a view of fixed layout, which
//! travels, and a struct that borrows.

use perpetua_syntax::actors::{Message, Role};
use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

pub(crate) fn expand(item: TokenStream) -> TokenStream {
    syn::parse2::<syn::DeriveInput>(item)
        .and_then(|input| Ok((Message::read(&input)?, input)))
        .map_or_else(
            |error| error.to_compile_error(),
            |(read, input)| {
                let (around, own) = (with_vectors(&input, &read), message(&read));
                quote!(#around #own)
            },
        )
}

fn message(message: &Message) -> TokenStream {
    let (layout, version) = (&message.layout, message.version);
    let path = match (&message.path, message.name.to_string()) {
        (Some(path), _) => quote!(#path),
        (None, own) => quote!(::core::concat!(::core::module_path!(), "::", #own)),
    };
    let number = quote!(::perpetua::actors::message::type_number(#path, #layout, #version));
    let [constants, functions] = message.functions(&number);
    let (name, roles) = (&message.view, &message.roles);
    let (text, at) = (message.name.to_string(), Literal::usize_suffixed(message.count));
    let actors = quote!(::perpetua::actors);
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
    quote! {
        #quiet
        #constants

        #quiet
        #functions

        #[automatically_derived]
        impl #actors::RingMessage for #name {
            const TYPE_ID: u32 = #name::__PERPETUA_TYPE_ID;
            const WORDS: usize = #at;
            const NAME: &'static str = #text;
            const PATH: &'static str = #path;
            const VERSION: u32 = #version;
            const LAYOUT: &'static str = #layout;

            fn to_payload(&self) -> [u32; 16] {
                self.__perpetua_words()
            }

            fn from_payload(words: &[u32; 16]) -> Self {
                #name::__perpetua_read(*words)
            }

            #(#methods)*
        }
    }
}

/// What a message with vectors has beside it: its view, the struct that borrows, and how the host writes and reads it.
fn with_vectors(input: &syn::DeriveInput, message: &Message) -> Option<TokenStream> {
    let (view_struct, syn::Data::Struct(data)) = (message.view_struct(input)?, &input.data) else {
        return None;
    };
    let (name, vis, view) = (&message.name, &input.vis, &message.view);
    let borrowed = format_ident!("{name}Ref", span = name.span());
    let (mut refs, mut lengths) = (Vec::new(), Vec::new());
    let (mut stores, mut borrows, mut loads) = (Vec::new(), Vec::new(), Vec::new());
    for (index, field) in data.fields.iter().enumerate() {
        let (ident, vis, ty) = (&field.ident, &field.vis, &field.ty);
        let docs = field.attrs.iter().filter(|attr| attr.path().is_ident("doc"));
        let docs = quote!(#(#docs)*);
        match message.vectors.iter().find(|(at, _)| *at == index) {
            Some((_, vector)) => {
                let element = vector.element();
                refs.push(quote!(#docs #vis #ident: &'a [#element]));
                lengths.push(quote!(self.#ident.len()));
                stores.push(quote!(#ident: block.put::<#element>(&self.#ident)));
                borrows.push(quote!(#ident: block.get::<#element>(view.#ident)?));
                loads.push(quote!(#ident: block.get::<#element>(view.#ident)?.to_vec()));
            }
            None => {
                refs.push(quote!(#docs #vis #ident: #ty));
                stores.push(quote!(#ident: self.#ident));
                borrows.push(quote!(#ident: view.#ident));
                loads.push(quote!(#ident: view.#ident));
            }
        }
    }
    let borrowed_doc = format!("[`{name}`] where it lies: its vectors are slices of the message's block.");
    let vectors = quote!(::perpetua::actors::vectors);
    let quiet = crate::output::quiet();
    Some(quote! {
        #view_struct

        #[doc = #borrowed_doc]
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[allow(dead_code)]
        #vis struct #borrowed<'a> {
            #(#refs,)*
        }

        #[automatically_derived]
        #quiet
        impl #vectors::Message for #name {
            type View = #view;
            type Ref<'a> = #borrowed<'a>;

            fn vector_words(&self) -> ::core::option::Option<usize> {
                ::core::option::Option::Some(0usize #(+ #lengths)*)
            }

            fn store(&self, block: &mut #vectors::BlockWriter<'_>) -> #view {
                #view { #(#stores),* }
            }

            fn borrow<'a>(
                view: &'a #view,
                block: #vectors::BlockReader<'a>,
            ) -> ::core::option::Option<#borrowed<'a>> {
                ::core::option::Option::Some(#borrowed { #(#borrows),* })
            }

            fn load(view: &#view, block: #vectors::BlockReader<'_>) -> ::core::option::Option<Self> {
                ::core::option::Option::Some(#name { #(#loads),* })
            }
        }
    })
}
