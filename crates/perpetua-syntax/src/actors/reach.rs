//! What a handler does through its context, as calls that a kernel can make.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::visit_mut::VisitMut;

/// Whether a type is called like what `#[derive(RingMessage)]` makes of a message with vectors.
pub(super) fn is_view(ty: &syn::Type) -> bool {
    let syn::Type::Path(path) = ty else { return false };
    let last = path.path.segments.last();
    last.is_some_and(|last| last.ident.to_string().ends_with("View"))
}

/// Writes what a handler does through its context as what a kernel can do: `ctx.send(to, message)`, `ctx.reply(message)` and
/// `ctx.publish(topic, message)` with the message as words; in a handler for groups `ctx.sync()` with what lanes wait with; in a handler of vectors also `ctx.get(span, i)`,
/// `ctx.set(span, i, value)`, `ctx.alloc::<T>(len)` and `ctx.room()`, with the block that the message brought.
pub(super) struct Sends<'a> {
    pub(super) context: &'a syn::Ident,
    pub(super) vectors: bool,
    pub(super) group: bool,
    pub(super) error: Option<syn::Error>,
}

impl Sends<'_> {
    fn fixed(&mut self, call: &syn::ExprMethodCall, args: &[&syn::Expr]) -> Option<TokenStream> {
        let (context, span) = (self.context, call.span());
        let words = quote_spanned!(span=>
            sent.__perpetua_type_id(), sent.__perpetua_word_count(), sent.__perpetua_words());
        Some(match (call.method.to_string().as_str(), args) {
            ("send", [to, message]) => {
                quote_spanned!(span=> { let sent_to = #to; let sent = #message; #context.send_words(sent_to, #words) })
            }
            ("publish", [topic, message]) => {
                quote_spanned!(span=> { let sent_to = #topic; let sent = #message; #context.publish_words(sent_to, #words) })
            }
            ("reply", [message]) => {
                quote_spanned!(span=> { let sent = #message; #context.reply_words(#words) })
            }
            ("sync", []) if self.group => quote_spanned!(span=> #context.sync_group(perpetua_phases)),
            ("sync", []) => {
                let alone = "one lane runs this handler, and has nobody to wait for: write `#[ring_kernel(group)]`, or leave this out";
                self.error = Some(syn::Error::new(span, alone));
                return None;
            }
            _ => return None,
        })
    }

    fn vectors(&mut self, call: &syn::ExprMethodCall, args: &[&syn::Expr]) -> Option<TokenStream> {
        let (context, span) = (self.context, call.span());
        let (arena, block) = (format_ident!("perpetua_arena"), format_ident!("perpetua_block"));
        let words = quote_spanned!(span=>
            sent.__perpetua_type_id(), sent.__perpetua_word_count(), sent.__perpetua_spans(), sent.__perpetua_words());
        Some(match (call.method.to_string().as_str(), args) {
            ("send", [to, message]) => {
                quote_spanned!(span=> { let sent_to = #to; let sent = #message; #block.post(#context, sent_to, 0u32, #words) })
            }
            ("publish", [topic, message]) => {
                quote_spanned!(span=> { let sent_to = #topic; let sent = #message; #block.post(#context, sent_to, 3u32, #words) })
            }
            ("reply", [message]) => {
                quote_spanned!(span=> { let sent = #message; #block.reply(#context, #words) })
            }
            ("get", [vector, index]) => {
                quote_spanned!(span=> { let perpetua_index = #index; let perpetua_vector = #vector; perpetua_vector.__perpetua_get(#arena, #block, perpetua_index) })
            }
            ("set", [vector, index, value]) => {
                quote_spanned!(span=> { let perpetua_index = #index; let perpetua_value = #value; let perpetua_vector = #vector; perpetua_vector.__perpetua_set(#arena, #block, perpetua_index, perpetua_value) })
            }
            ("room", []) => quote_spanned!(span=> #block.room()),
            ("alloc", [len]) => {
                let element = call
                    .turbofish
                    .as_ref()
                    .map(|generics| generics.args.to_token_stream().to_string());
                let vector = match element.as_deref() {
                    Some("f32") => quote!(SpanF32),
                    Some("u32") => quote!(SpanU32),
                    Some("i32") => quote!(SpanI32),
                    _ => {
                        let message =
                            "`alloc` makes vectors of `f32`, `u32` or `i32`: write `ctx.alloc::<f32>(len)`";
                        self.error = Some(syn::Error::new_spanned(call, message));
                        return None;
                    }
                };
                quote_spanned!(span=> { let perpetua_len = #len; ::perpetua::actors::span::#vector::__perpetua_alloc(#arena, #block, perpetua_len) })
            }
            _ => return self.fixed(call, args),
        })
    }
}

impl VisitMut for Sends<'_> {
    fn visit_expr_mut(&mut self, expr: &mut syn::Expr) {
        syn::visit_mut::visit_expr_mut(self, expr);
        let syn::Expr::MethodCall(call) = expr else { return };
        let on_context = matches!(&*call.receiver, syn::Expr::Path(path) if path.path.is_ident(self.context));
        if !on_context {
            return;
        }
        let args: Vec<&syn::Expr> = call.args.iter().collect();
        let written = match self.vectors {
            true => self.vectors(call, &args),
            false => self.fixed(call, &args),
        };
        if let Some(Ok(written)) = written.map(syn::parse2) {
            *expr = written;
        }
    }
}

/// Whether a handler reaches into its message's block.
pub(super) struct Reaches<'a>(pub(super) &'a syn::Ident, pub(super) bool);

impl<'ast> Visit<'ast> for Reaches<'_> {
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let on_context = matches!(&*call.receiver, syn::Expr::Path(path) if path.path.is_ident(self.0));
        self.1 |= on_context
            && ["get", "set", "alloc", "room"]
                .iter()
                .any(|name| call.method == name);
        syn::visit::visit_expr_method_call(self, call);
    }
}
