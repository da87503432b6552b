//! A handler: its signature, what its sends become in the kernel language, and the function that calls it with a packet's words.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::visit::Visit;
use syn::visit_mut::VisitMut;

use super::reach::{Reaches, Sends, is_view};

/// How a handler is written.
pub const USAGE: &str = "a handler is written `fn name(ctx: &mut Context, state: &mut State, message: Message) -> Reply`, or without a reply";

/// A function marked `#[ring_kernel]`.
#[derive(Clone)]
pub struct Handler {
    /// The function, in whose body `ctx.send(to, message)` and its kin are calls that a kernel can make.
    pub function: syn::ItemFn,
    /// The handlers of further types of message, as `also(f, g)` names them.
    pub also: Vec<syn::Path>,
    /// The state's type.
    pub state: syn::Type,
    /// The message's type.
    pub message: syn::Type,
    /// The reply's type, where there is one.
    pub reply: Option<syn::Type>,
    /// Whether it reaches messages' vectors: then it takes the arena and its message's block, too.
    pub vectors: bool,
    /// Words that a message from the host brings beside its vectors, where that is said.
    pub room: Option<syn::Expr>,
    /// Whether several lanes run it together (`group`).
    pub group: bool,
    /// Which version of its state it keeps (`version = 2`), else 1.
    pub version: syn::Expr,
}

impl Handler {
    /// Reads a handler; `options` is what stands in the attribute's parentheses.
    ///
    /// # Errors
    /// It is not written as [`USAGE`] says, or the options are others.
    pub fn read(options: TokenStream, mut function: syn::ItemFn) -> syn::Result<Handler> {
        let Options {
            also,
            room,
            group,
            version,
        } = Options::read(options)?;
        let Parts {
            context,
            state,
            message,
            reply,
        } = parts(&function.sig)?;
        let mut reaches = Reaches(&context, false);
        reaches.visit_block(&function.block);
        let views = is_view(&message) || reply.as_ref().is_some_and(is_view);
        let vectors = room.is_some() || reaches.1 || views;
        let mut sends = Sends {
            context: &context,
            vectors,
            group,
            error: None,
        };
        sends.visit_block_mut(&mut function.block);
        if let Some(error) = sends.error {
            return Err(error);
        }
        if group {
            // What its lanes wait with goes into it as an argument more.
            function
                .sig
                .inputs
                .push(syn::parse_quote!(perpetua_phases: &mut [u32; 32]));
        }
        if vectors {
            let arena: syn::FnArg = syn::parse_quote!(perpetua_arena: &mut [u32]);
            let block: syn::FnArg = syn::parse_quote!(perpetua_block: &mut ::perpetua::actors::span::Block);
            function.sig.inputs.extend([arena, block]);
        }
        Ok(Handler {
            function,
            also,
            state,
            message,
            reply,
            vectors,
            room,
            group,
            version: version.unwrap_or_else(|| syn::parse_quote!(1)),
        })
    }

    /// Which of the functions of [`Handler::dispatch`] the kernels around the handler call, and what they name arena and block.
    #[must_use]
    pub fn program(&self) -> (syn::Ident, Option<TokenStream>) {
        let name = &self.function.sig.ident;
        match self.vectors {
            true => (Handler::part(name, "arena_dispatch"), Some(quote!(arena block))),
            false => (Handler::part(name, "dispatch"), None),
        }
    }

    /// The name of what is made of the handler: `part` is `dispatch`, `arena_dispatch`, `resident` or `batched`.
    #[must_use]
    pub fn part(name: &syn::Ident, part: &str) -> syn::Ident {
        format_ident!("__perpetua_{part}_{name}")
    }

    /// The `#[device]` functions that read the message, call the handler, or else those named in `also`, and give the answer's words: as
    /// a handler without vectors calls it, and as one with vectors does.
    #[must_use]
    pub fn dispatch(&self) -> [TokenStream; 2] {
        let (own, visibility) = (&self.function.sig.ident, &self.function.vis);
        let (message, state) = (&self.message, &self.state);
        let actors = quote!(::perpetua::actors);
        let [dispatch, arena_dispatch] = ["dispatch", "arena_dispatch"].map(|part| Handler::part(own, part));
        let part = if self.vectors {
            "arena_dispatch"
        } else {
            "dispatch"
        };
        let others = self.also.iter().map(|path| {
            let mut path = path.clone();
            if let Some(last) = path.segments.last_mut() {
                last.ident = Handler::part(&last.ident, part);
            }
            path
        });
        // What a handler of vectors has beside the others' arguments.
        let further = self.vectors.then(|| quote!(, arena, block));
        let waits = self.group.then(|| quote!(, phases));
        let call = match &self.reply {
            Some(reply) => {
                let answer = match self.vectors {
                    true => quote!(block.answer(
                        #reply::__PERPETUA_TYPE_ID,
                        #reply::__PERPETUA_WORDS,
                        #reply::__PERPETUA_SPANS,
                        answer.__perpetua_words(),
                    )),
                    false => quote!(#actors::context::Answer::of(
                        #reply::__PERPETUA_TYPE_ID,
                        #reply::__PERPETUA_WORDS,
                        answer.__perpetua_words(),
                    )),
                };
                quote! {
                    let answer: #reply = #own(ctx, state, #message::__perpetua_read(payload) #waits #further);
                    return #answer;
                }
            }
            None => quote! {
                #own(ctx, state, #message::__perpetua_read(payload) #waits #further);
                return #actors::context::Answer::nothing();
            },
        };
        let body = quote! {
            if type_id == #message::__PERPETUA_TYPE_ID {
                #call
            }
            #({
                let answer = #others(ctx, state, type_id, payload, phases #further);
                if answer.known != 0 {
                    return answer;
                }
            })*
            #actors::context::Answer::none()
        };
        // The macros refuse that one without vectors calls one with.
        let (plain, with_arena) = match self.vectors {
            true => (quote!(#actors::context::Answer::none()), body),
            false => (body, quote!(#dispatch(ctx, state, type_id, payload, phases))),
        };
        let plain = quote! {
            #[::perpetua::device]
            #visibility fn #dispatch(ctx: &mut #actors::Context, state: &mut #state, type_id: u32, payload: [u32; 16], phases: &mut [u32; 32]) -> #actors::context::Answer {
                #plain
            }
        };
        let with_arena = quote! {
            #[::perpetua::device]
            #visibility fn #arena_dispatch(
                ctx: &mut #actors::Context,
                state: &mut #state,
                type_id: u32,
                payload: [u32; 16],
                phases: &mut [u32; 32],
                arena: &mut [u32],
                block: &mut #actors::span::Block,
            ) -> #actors::context::Answer {
                #with_arena
            }
        };
        [plain, with_arena]
    }
}

/// What is said of a handler beside its code.
#[derive(Default)]
struct Options {
    /// The handlers of further types of message.
    also: Vec<syn::Path>,
    /// Words that a message from the host brings beside its vectors, for `ctx.alloc`.
    room: Option<syn::Expr>,
    /// Several lanes run the handler together.
    group: bool,
    /// Which version of its state it keeps.
    version: Option<syn::Expr>,
}

impl Options {
    fn read(options: TokenStream) -> syn::Result<Options> {
        let mut read = Options::default();
        let entries = Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated.parse2(options)?;
        for entry in entries {
            match &entry {
                syn::Meta::List(list) if list.path.is_ident("also") => {
                    let paths = Punctuated::<syn::Path, syn::Token![,]>::parse_terminated;
                    read.also.extend(list.parse_args_with(paths)?);
                }
                syn::Meta::NameValue(pair) if pair.path.is_ident("room") => {
                    read.room = Some(pair.value.clone())
                }
                syn::Meta::NameValue(pair) if pair.path.is_ident("version") => {
                    read.version = Some(pair.value.clone())
                }
                syn::Meta::Path(path) if path.is_ident("group") => read.group = true,
                other => {
                    let message = "`#[ring_kernel]` takes `also(f, g)`: further handlers of the same state, for other messages; `room = 64`: words for `ctx.alloc` that a message from the host brings; `version = 2`: which version of its state it keeps; or `group`: several lanes run the handler together";
                    return Err(syn::Error::new_spanned(other, message));
                }
            }
        }
        Ok(read)
    }
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
                syn::Type::Path(path)
                    if path
                        .path
                        .segments
                        .last()
                        .is_some_and(|last| !last.arguments.is_none()) =>
                {
                    return Err(syn::Error::new_spanned(
                        ty,
                        "an answer is a message, whose type has no arguments. To answer sometimes, return nothing and call `ctx.reply(answer)`",
                    ));
                }
                ty => Some(ty.clone()),
            },
        },
    })
}
