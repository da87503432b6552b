//! `#[ring_kernel]`: a handler, as Rust and as the kernels that run it on devices.

use perpetua_syntax::FunctionKind;
use perpetua_syntax::parse::read_function;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;

use crate::device::file_of;
use crate::native::sibling::Sibling;
use crate::{describe, output};

const USAGE: &str = "a handler is written `fn name(ctx: &mut Context, state: &mut State, message: Message) -> Reply`, or without a reply";

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let function = match syn::parse2::<syn::ItemFn>(item.clone()) {
        Ok(function) => function,
        Err(_) => return output::with_error(item.clone(), &syn::Error::new_spanned(item, USAGE)),
    };
    let also = match further(options) {
        Ok(also) => also,
        Err(error) => return output::with_error(quote!(#function), &error),
    };
    match handler(function.clone(), &also) {
        Ok(tokens) => tokens,
        Err(error) => output::with_error(quote!(#function), &error),
    }
}

/// The handlers of further types of message that `also(f, g)` names.
fn further(options: TokenStream) -> syn::Result<Vec<syn::Path>> {
    let mut also = Vec::new();
    let entries = Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated.parse2(options)?;
    for entry in entries {
        match &entry {
            syn::Meta::List(list) if list.path.is_ident("also") => {
                let paths = Punctuated::<syn::Path, syn::Token![,]>::parse_terminated;
                also.extend(list.parse_args_with(paths)?);
            }
            other => {
                let message = "`#[ring_kernel]` takes `also(f, g)`: further handlers of the same state, for other messages";
                return Err(syn::Error::new_spanned(other, message));
            }
        }
    }
    Ok(also)
}

/// The parts of a handler's signature.
struct Parts {
    context: syn::Ident,
    state: syn::Type,
    message: syn::Type,
    reply: Option<syn::Type>,
}

fn parts(sig: &syn::Signature) -> syn::Result<Parts> {
    let wrong = |at: &dyn quote::ToTokens| syn::Error::new_spanned(at, USAGE);
    let typed: Vec<&syn::PatType> = sig
        .inputs
        .iter()
        .filter_map(|input| match input {
            syn::FnArg::Typed(typed) => Some(typed),
            syn::FnArg::Receiver(_) => None,
        })
        .collect();
    let [context, state, message] = typed[..] else {
        return Err(wrong(&sig.inputs));
    };
    let referred = |typed: &syn::PatType| match &*typed.ty {
        syn::Type::Reference(reference) if reference.mutability.is_some() => Ok((*reference.elem).clone()),
        other => Err(wrong(other)),
    };
    referred(context)?;
    let syn::Pat::Ident(name) = &*context.pat else {
        return Err(wrong(&context.pat));
    };
    if !sig.generics.params.is_empty() {
        return Err(syn::Error::new_spanned(
            &sig.generics,
            "a handler has no generic parameters: write one for each type",
        ));
    }
    Ok(Parts {
        context: name.ident.clone(),
        state: referred(state)?,
        message: (*message.ty).clone(),
        reply: match &sig.output {
            syn::ReturnType::Default => None,
            syn::ReturnType::Type(_, ty) => match &**ty {
                syn::Type::Tuple(tuple) if tuple.elems.is_empty() => None,
                ty => Some(ty.clone()),
            },
        },
    })
}

/// Writes `ctx.send(to, message)`, `ctx.reply(message)` and `ctx.publish(topic, message)` as what a kernel can do: the message
/// as words.
struct Sends<'a>(&'a syn::Ident);

impl VisitMut for Sends<'_> {
    fn visit_expr_mut(&mut self, expr: &mut syn::Expr) {
        syn::visit_mut::visit_expr_mut(self, expr);
        let syn::Expr::MethodCall(call) = expr else { return };
        let on_context = matches!(&*call.receiver, syn::Expr::Path(path) if path.path.is_ident(self.0));
        if !on_context {
            return;
        }
        let context = self.0;
        let args: Vec<&syn::Expr> = call.args.iter().collect();
        let span = call.span();
        let words = quote::quote_spanned!(span=>
            sent.__perpetua_type_id(), sent.__perpetua_word_count(), sent.__perpetua_words());
        let written = match (call.method.to_string().as_str(), &args[..]) {
            ("send", [to, message]) => {
                quote::quote_spanned!(span=> { let sent_to = #to; let sent = #message; #context.send_words(sent_to, #words) })
            }
            ("publish", [topic, message]) => {
                quote::quote_spanned!(span=> { let sent_to = #topic; let sent = #message; #context.publish_words(sent_to, #words) })
            }
            ("reply", [message]) => {
                quote::quote_spanned!(span=> { let sent = #message; #context.reply_words(#words) })
            }
            _ => return,
        };
        if let Ok(written) = syn::parse2(written) {
            *expr = written;
        }
    }
}

fn handler(mut function: syn::ItemFn, also: &[syn::Path]) -> syn::Result<TokenStream> {
    let Parts {
        context,
        state,
        message,
        reply,
    } = parts(&function.sig)?;
    Sends(&context).visit_block_mut(&mut function.block);
    let facade = output::facade(None);
    let read = read_function(&function, FunctionKind::Device, &file_of(&function.sig))?;
    let native = Sibling {
        sig: &function.sig,
        block: &function.block,
        read: Some(&read),
        own: None,
        name: &format_ident!("__perpetua_native"),
        flag: &format_ident!("__PERPETUA_NATIVE"),
    };
    let native = native.items(&facade);
    let definition = describe::definition(&read, &function.block, None, &facade);
    let (own, visibility) = (&function.sig.ident, &function.vis);
    let text = own.to_string();
    let state_text = quote!(#state).to_string();
    let actors = quote!(::perpetua::actors);
    let [dispatch, resident, batched] =
        ["dispatch", "resident", "batched"].map(|part| format_ident!("__perpetua_{part}_{own}"));
    let others: Vec<syn::Path> = also
        .iter()
        .map(|path| {
            let mut path = path.clone();
            if let Some(last) = path.segments.last_mut() {
                last.ident = format_ident!("__perpetua_dispatch_{}", last.ident);
            }
            path
        })
        .collect();
    let call = match &reply {
        Some(reply) => quote! {
            let answer: #reply = #own(ctx, state, #message::__perpetua_read(payload));
            return #actors::context::Answer::of(
                #reply::__PERPETUA_TYPE_ID,
                #reply::__PERPETUA_WORDS,
                answer.__perpetua_words(),
            );
        },
        None => quote! {
            #own(ctx, state, #message::__perpetua_read(payload));
            return #actors::context::Answer::nothing();
        },
    };
    let reply_id = match &reply {
        Some(reply) => quote!(::core::option::Option::Some(<#reply as #actors::RingMessage>::TYPE_ID)),
        None => quote!(::core::option::Option::None),
    };
    let members = quote! {
        #native

        /// What runs this handler on each backend.
        pub fn handler() -> #actors::Handler {
            unsafe fn native(ctx: &mut #actors::Context, state: *mut u8, type_id: u32, payload: &[u32; 16]) -> bool {
                // SAFETY: the caller's promise is that of `NativeHandler`.
                let state = unsafe { &mut *state.cast::<#state>() };
                let answer = #dispatch(ctx, state, type_id, *payload);
                ctx.answer(answer)
            }
            #actors::Handler {
                name: #text,
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
            let mut all = ::std::vec![#actors::handler::Takes::of::<#message>(#reply_id)];
            #(all.extend(#also::takes());)*
            all
        }
    };
    let sibling = describe::sibling(&function, &definition, &members, &facade);
    let quiet = output::quiet();
    Ok(quote! {
        #[allow(dead_code)]
        #function
        #sibling

        #[doc(hidden)]
        #quiet
        #[::perpetua::device]
        #visibility fn #dispatch(ctx: &mut #actors::Context, state: &mut #state, type_id: u32, payload: [u32; 16]) -> #actors::context::Answer {
            if type_id == #message::__PERPETUA_TYPE_ID {
                #call
            }
            #({
                let answer = #others(ctx, state, type_id, payload);
                if answer.known != 0 {
                    return answer;
                }
            })*
            #actors::context::Answer::none()
        }

        #actors::__resident_kernel!([#visibility] #resident, [#state], #dispatch);
        #actors::__batched_kernel!([#visibility] #batched, [#state], #dispatch);
    })
}
