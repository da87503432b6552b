//! The locals that a chain's functions mention: what they mean must not change between the `let` of an iterator and its use.

use super::{Chain, Source};
use crate::parse::chain::{Item, Step};
use crate::parse::path::single_name;
use crate::parse::reader::{Reader, name_of};
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;

/// Finds the names that functions mention, and those that they bind themselves.
struct Locals<'a> {
    reader: &'a Reader,
    found: &'a mut Vec<(String, Option<usize>)>,
    own: Vec<String>,
}

impl Locals<'_> {
    fn add(&mut self, name: String) {
        let place = self.reader.place_of(&name);
        self.found.push((name, place));
    }

    fn add_tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => self.add(name_of(&ident)),
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
}

impl Visit<'_> for Locals<'_> {
    fn visit_expr_path(&mut self, path: &syn::ExprPath) {
        if let Some(name) = single_name(&path.path) {
            self.add(name);
        }
    }

    fn visit_pat_ident(&mut self, pattern: &syn::PatIdent) {
        self.own.push(name_of(&pattern.ident));
        syn::visit::visit_pat_ident(self, pattern);
    }

    fn visit_macro(&mut self, call: &syn::Macro) {
        self.add_tokens(call.tokens.clone());
    }
}

impl Chain {
    /// The names that its functions mention, each with its place among the locals if it is one.
    pub(super) fn name_locals(&self, reader: &Reader, found: &mut Vec<(String, Option<usize>)>) {
        let mut locals = Locals {
            reader,
            found,
            own: Vec::new(),
        };
        if let Source::Items(item, _) = &self.source {
            name_item(item, &mut locals);
        }
        self.steps.iter().for_each(|step| name_step(step, &mut locals));
        let own = locals.own;
        // What is no local here and bound in the functions themselves is theirs.
        found.retain(|(name, place)| place.is_some() || !own.contains(name));
    }
}

fn name_item(item: &Item, locals: &mut Locals<'_>) {
    match item {
        Item::Changed(inner, changed) => {
            name_item(inner, locals);
            changed.iter().for_each(|step| name_step(step, locals));
        }
        Item::Cycle(inner, _) | Item::Enumerate(inner) | Item::From(inner, ..) | Item::Rev(inner, _) => {
            name_item(inner, locals);
        }
        Item::Zip(one, other) | Item::Chain(one, _, other) => {
            name_item(one, locals);
            name_item(other, locals);
        }
        Item::Element(_) | Item::Part { .. } | Item::Count(_) | Item::Same(_) => {}
    }
}

fn name_step(step: &Step, locals: &mut Locals<'_>) {
    match step {
        Step::Map(f)
        | Step::Filter(f)
        | Step::FilterMap(f)
        | Step::TakeWhile(f)
        | Step::MapWhile(f)
        | Step::SkipWhile(_, f)
        | Step::Scan(_, f)
        | Step::Inspect(f)
        | Step::Flat(Some(f)) => locals.visit_expr(f),
        Step::Called(name) => locals.add(name.clone()),
        Step::Zip(_, item, ..) => name_item(item, locals),
        Step::Copied
        | Step::Flat(None)
        | Step::Enumerate(_)
        | Step::Skip(..)
        | Step::Take(..)
        | Step::Until(..)
        | Step::Leaving(_)
        | Step::Every(..) => {}
    }
}
