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
    /// The parameters of the closures in which it looks.
    params: Vec<String>,
}

impl Locals<'_> {
    fn add(&mut self, name: String) {
        if self.params.contains(&name) {
            return;
        }
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

    fn visit_expr_closure(&mut self, closure: &syn::ExprClosure) {
        let (own, before) = (std::mem::take(&mut self.own), self.params.len());
        closure.inputs.iter().for_each(|input| self.visit_pat(input));
        self.params.append(&mut self.own);
        self.own = own;
        self.visit_expr(&closure.body);
        self.params.truncate(before);
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
            params: Vec::new(),
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
    item.steps().iter().for_each(|step| name_step(step, locals));
    item.parts().for_each(|part| name_item(part, locals));
}

fn name_step(step: &Step, locals: &mut Locals<'_>) {
    match step {
        Step::Called(name) => locals.add(name.clone()),
        Step::Zip(_, item, ..) => name_item(item, locals),
        // The other iterator goes on with this one: what its functions mention counts.
        Step::With(other, ..) => {
            let other = locals.reader.iterator(&name_of(other));
            locals
                .found
                .extend(other.iter().flat_map(|other| other.names.clone()));
        }
        step => step.function().into_iter().for_each(|f| locals.visit_expr(f)),
    }
}
