//! One meaning of names. The tree knows names by their text, and what is proven is proven of the tree; rustc tells a name that a
//! `macro_rules!` wrote from one that its caller wrote. In a native body all names of a function are its own, so that they mean what
//! they mean to the tree.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use syn::visit_mut::VisitMut;

/// A function's parameters and body, in which names that are equal are the same.
pub(super) fn unified(sig: &syn::Signature, block: &syn::Block) -> (syn::Signature, syn::Block) {
    let (mut sig, mut block) = (sig.clone(), block.clone());
    let mut names = Names(sig.ident.span());
    sig.inputs
        .iter_mut()
        .for_each(|input| names.visit_fn_arg_mut(input));
    names.visit_block_mut(&mut block);
    (sig, block)
}

/// Names are resolved where this span is.
struct Names(Span);

impl Names {
    fn resolve(&self, name: &mut Ident) {
        // Keywords are where they are: `self` is one with its parameter, `$crate` with the macro.
        let keyword = ["self", "Self", "crate", "super", "$crate"];
        if keyword.iter().all(|keyword| name != keyword) {
            name.set_span(name.span().resolved_at(self.0));
        }
    }

    fn tokens(&self, tokens: TokenStream) -> TokenStream {
        let one = |tree| match tree {
            TokenTree::Ident(mut name) => {
                self.resolve(&mut name);
                TokenTree::Ident(name)
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), self.tokens(group.stream()));
                inner.set_span(group.span());
                TokenTree::Group(inner)
            }
            other => other,
        };
        tokens.into_iter().map(one).collect()
    }
}

impl VisitMut for Names {
    fn visit_ident_mut(&mut self, name: &mut Ident) {
        self.resolve(name);
    }

    fn visit_lifetime_mut(&mut self, label: &mut syn::Lifetime) {
        label.apostrophe = label.apostrophe.resolved_at(self.0);
        self.resolve(&mut label.ident);
    }

    fn visit_macro_mut(&mut self, called: &mut syn::Macro) {
        called.tokens = self.tokens(std::mem::take(&mut called.tokens));
    }
}
