//! `#[ring_kernel]`: a handler, as Rust and as the kernels that run it on devices.

use perpetua_syntax::FunctionKind;
use perpetua_syntax::actors::{Handler, USAGE};
use perpetua_syntax::parse::read_function;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use crate::device::file_of;
use crate::native::sibling::Sibling;
use crate::{describe, output};

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let function = match syn::parse2::<syn::ItemFn>(item.clone()) {
        Ok(function) => function,
        Err(_) => return output::with_error(item.clone(), &syn::Error::new_spanned(item, USAGE)),
    };
    match Handler::read(options, function.clone()).and_then(|read| handler(&read)) {
        Ok(tokens) => tokens,
        Err(error) => output::with_error(quote!(#function), &error),
    }
}

fn handler(handler: &Handler) -> syn::Result<TokenStream> {
    let Handler {
        function,
        also,
        state,
        message,
        reply,
        vectors,
        room,
        group,
        version,
    } = handler;
    let facade = output::facade(None);
    let read = read_function(function, FunctionKind::Device, &file_of(&function.sig))?;
    let native = Sibling {
        sig: &function.sig,
        block: &function.block,
        // Vectors are for kernels that host actors, which are not called from others.
        read: (!vectors).then_some(&read),
        name: &format_ident!("__perpetua_native"),
        flag: &format_ident!("{}", crate::resolver::NATIVE),
    };
    let native = native.items(&facade);
    let definition = describe::definition(&read, &function.sig, &function.block, None, &facade);
    let (own, visibility) = (&function.sig.ident, &function.vis);
    let text = own.to_string();
    let state_text = quote!(#state).to_string();
    let actors = quote!(::perpetua::actors);
    let [resident, batched] = ["resident", "batched"].map(|part| Handler::part(own, part));
    let (program, arena) = handler.program();
    let further = vectors.then(|| quote!(, block, &mut brought));
    let brought = vectors.then(|| {
        quote! {
            let flags = if block.is_empty() { 0 } else { #actors::span::BLOCK_FLAG << 16 };
            let mut brought = #actors::span::Block::of(block, flags, payload[#actors::span::BLOCK_WORD], 0);
        }
    });
    let spans = reply
        .iter()
        .chain([message])
        .map(|ty| quote!(#ty::__PERPETUA_SPANS == 0));
    let (check, brings) = match (vectors, room) {
        (false, _) => (
            quote! {
                const _: () = assert!(true #(&& #spans)*, "this handler's messages have vectors: write `#[ring_kernel(room = 0)]`");
                #(const _: () = assert!(!#also::__PERPETUA_VECTORS, "a handler named in `also` takes vectors: write `room = 0` before it");)*
            },
            TokenStream::new(),
        ),
        (true, Some(room)) => (
            quote! {
                const _: () = assert!(#room == 0 || #message::__PERPETUA_WORDS <= 14, "a message that brings room has at most 14 words of 32 bits: split it, or leave `room` out");
            },
            quote!(.with_room(#room)),
        ),
        (true, None) => (TokenStream::new(), quote!(.with_room(0))),
    };
    let reply_id = match reply {
        Some(reply) => quote!(::core::option::Option::Some(<#reply as #actors::RingMessage>::TYPE_ID)),
        None => quote!(::core::option::Option::None),
    };
    let members = quote! {
        #native

        #[doc(hidden)]
        pub const __PERPETUA_VECTORS: bool = #vectors;

        /// Whether several lanes run it together.
        pub const GROUP: bool = #group;

        /// What runs this handler on each backend.
        pub fn handler() -> #actors::Handler {
            #[allow(unused_variables)]
            unsafe fn native(
                ctx: &mut #actors::Context,
                state: *mut u8,
                type_id: u32,
                payload: &[u32; 16],
                block: &mut [u32],
            ) -> bool {
                // SAFETY: the caller's promise is that of `NativeHandler`.
                let state = unsafe { &mut *state.cast::<#state>() };
                #brought
                let answer = #program(ctx, state, type_id, *payload, &mut [0; 32] #further);
                ctx.answer(answer)
            }
            #actors::Handler {
                name: #text,
                path: ::core::concat!(::core::module_path!(), "::", #text),
                version: #version,
                group: Self::GROUP,
                takes: Self::takes,
                state_size: ::core::mem::size_of::<#state>(),
                state_align: ::core::mem::align_of::<#state>(),
                state_name: #state_text,
                state_type: <#state as #facade::GpuType>::describe,
                native,
                resident: #resident::kernel,
                batched: #batched::kernel,
            }
        }

        /// The types of message that it takes.
        pub fn takes() -> ::std::vec::Vec<#actors::handler::Takes> {
            #[allow(unused_mut)]
            let mut all = ::std::vec![#actors::handler::Takes::of::<#message>(#reply_id) #brings];
            #(all.extend(#also::takes());)*
            all
        }
    };
    let sibling = describe::sibling(function, &definition, &members, &facade);
    let (quiet, dispatching) = (output::quiet(), handler.dispatch());
    Ok(quote! {
        #[allow(dead_code, unused_variables)]
        #function
        #sibling

        #(
            #[doc(hidden)]
            #quiet
            #dispatching
        )*

        #check

        #(const _: () = ::core::assert!(
            #also::GROUP == #group,
            "handlers of one state are all run by a group of lanes (`#[ring_kernel(group)]`), or none is"
        );)*

        #actors::__resident_kernel!([#visibility] #resident, [#state], #program, #group, [#arena]);
        #actors::__batched_kernel!([#visibility] #batched, [#state], #program, [#arena]);
    })
}
