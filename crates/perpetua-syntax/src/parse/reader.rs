//! The reader's state: errors found so far, names in scope, and the table of paths.

use super::chain::Bound;
use super::{Read, Refusal};
use crate::ast::{
    COMPUTED_LENGTH, Expr, ExprKind, Generic, Line, PathId, PathRef, PathUsage, Scalar, Stmt, Type,
};
use crate::standard::operator_functions;
use proc_macro2::Span;
use quote::ToTokens;
use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use syn::ext::IdentExt;
use syn::spanned::Spanned;

/// What bounds a type parameter.
#[derive(Default)]
pub(super) struct Bounds {
    /// Each as written.
    pub(super) text: Vec<String>,
    /// Parameters and result of `Fn(A) -> B` and its kin.
    pub(super) call: Option<(Vec<Type>, Option<Type>)>,
}

/// Reads one item. Its methods never fail: they note the error and go on with a stand-in, so that all errors
/// come out at once; [`Reader::finish`] gives the tree only where there were none.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) errors: Option<syn::Error>,
    /// Locals in scope, innermost last.
    locals: Vec<String>,
    /// How many of the locals in scope have a name.
    named: HashMap<String, u32>,
    pub(super) generics: Vec<Generic>,
    /// Whether `Self` is not known before the lowering: in a trait's default method.
    pub(super) any_self: bool,
    /// The types that the block of the function which is read has: what `Self::Output` is there, whatever other traits have.
    pub(super) own_types: HashMap<String, syn::Type>,
    /// The name of the function that is read, where it is no method.
    pub(super) function: Option<String>,
    /// The name of the method that is read, where it is a type's own.
    pub(super) method: Option<String>,
    paths: Vec<PathRef>,
    path_tokens: Vec<syn::Path>,
    lengths: Vec<(syn::Ident, syn::Expr)>,
    path_ids: HashMap<(PathUsage, String), PathId>,
    /// The iterators in scope, each with its place among the locals.
    iterators: Vec<(usize, Bound)>,
    /// The functions that `let` gave a name, each with its place among the locals.
    functions: Vec<(usize, syn::ExprPath)>,
    /// The numbers of a kernel's conditions.
    pub(super) conditions: super::Conditions,
    /// The loop that a `break` without a label leaves, where it is not the innermost.
    leaves: Option<String>,
    /// Labels of the user's whose `break` leaves another loop.
    outer_labels: Vec<(String, String)>,
    /// Names of locals that were declared `mut`, wherever.
    mutables: HashSet<String>,
    /// Names of locals that are `&mut`.
    mutable_refs: HashSet<String>,
    /// Whether the pattern that is read has a name with `ref`.
    pub(super) by_ref: bool,
    /// The scalars of which the dynamic shared memory was said to be.
    pub(super) dynamic: Option<Scalar>,
    /// What is computed before the call that is read.
    pub(super) hoisted: Vec<Stmt>,
    /// How many ends of iterators it is in that are read as methods, too.
    pub(super) late: u32,
    /// Whether the loop that is read goes over what is no iterator by its type.
    pub(super) plain: bool,
    /// Whether it is an argument of `zip` or `chain` that is read.
    pub(super) beside: bool,
    /// How many names of its own it has made.
    pub(super) names: u32,
}

/// The name of an identifier, without `r#`.
pub(super) fn name_of(ident: &syn::Ident) -> String {
    ident.unraw().to_string()
}

/// The line of a span.
pub(super) fn line_of(span: Span) -> Line {
    Line::try_from(span.start().line).unwrap_or(Line::MAX)
}

impl Reader {
    /// Notes an error over all of `tokens`.
    pub(super) fn error(&mut self, tokens: &impl ToTokens, message: impl Display) {
        let error = syn::Error::new_spanned(tokens, message);
        match &mut self.errors {
            Some(errors) => errors.combine(error),
            None => self.errors = Some(error),
        }
    }

    /// Notes that `tokens` are outside the language.
    pub(super) fn refuse(&mut self, tokens: &impl ToTokens, refusal: Refusal) {
        self.refuse_named(tokens, refusal, "");
    }

    /// Notes that `tokens`, something called `name`, are outside the language.
    pub(super) fn refuse_named(&mut self, tokens: &impl ToTokens, refusal: Refusal, name: &str) {
        self.error(tokens, refusal.message(name));
    }

    /// The tree, made from the table of paths, where no error was noted.
    pub(super) fn finish<T>(self, tree: impl FnOnce(Vec<PathRef>) -> T) -> syn::Result<Read<T>> {
        match self.errors {
            Some(errors) => Err(errors),
            None => Ok(Read {
                tree: tree(self.paths),
                paths: self.path_tokens,
                lengths: self.lengths,
            }),
        }
    }

    /// The length of an array. What calls a function is left to rustc, under a name of its own.
    pub(super) fn read_length(&mut self, len: &syn::Expr) -> Expr {
        #[derive(Default)]
        struct Calls(bool);
        impl syn::visit::Visit<'_> for Calls {
            fn visit_expr_call(&mut self, _: &syn::ExprCall) {
                self.0 = true;
            }
        }
        let mut calls = Calls::default();
        syn::visit::visit_expr(&mut calls, len);
        if !calls.0 {
            return self.read_expr(len);
        }
        let name = format!("{COMPUTED_LENGTH}{}", self.lengths.len());
        let name = syn::Ident::new(&name, len.span());
        self.lengths.push((name.clone(), len.clone()));
        let path = syn::ExprPath {
            attrs: Vec::new(),
            qself: None,
            path: name.into(),
        };
        let value = self.read_path_value(&path);
        Expr::new(line_of(len.span()), value)
    }

    /// The names of the locals in scope.
    pub(super) fn locals_in_scope(&self) -> Vec<String> {
        self.locals.clone()
    }

    /// Reads with a scope of its own: locals declared meanwhile are gone afterwards.
    pub(super) fn scoped<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let mark = self.locals.len();
        let result = read(self);
        self.iterators.retain(|(at, _)| *at < mark);
        self.functions.retain(|(at, _)| *at < mark);
        for name in self.locals.drain(mark..) {
            self.named.entry(name).and_modify(|count| *count -= 1);
        }
        result
    }

    /// Declares a local in the innermost scope.
    pub(super) fn declare(&mut self, name: &str) {
        self.locals.push(name.to_owned());
        *self.named.entry(name.to_owned()).or_insert(0) += 1;
    }

    /// Notes that a local of this name may change.
    pub(super) fn declare_mutable(&mut self, name: &str) {
        self.mutables.insert(name.to_owned());
    }

    /// Whether a local of this name may change.
    pub(super) fn may_change(&self, name: &str) -> bool {
        self.is_local(name) && self.mutables.contains(name)
    }

    /// Reads the body of a loop of this label: a `break` with it, or without one, leaves this loop.
    pub(super) fn in_loop<T>(&mut self, label: Option<&String>, read: impl FnOnce(&mut Self) -> T) -> T {
        let mark = self.outer_labels.len();
        self.outer_labels
            .extend(label.map(|label| (label.clone(), label.clone())));
        let before = self.leaves.take();
        let result = read(self);
        self.leaves = before;
        self.outer_labels.truncate(mark);
        result
    }

    /// The same of a loop within the loop `all`, which the user wrote as one called `label`.
    pub(super) fn in_one_of<T>(
        &mut self,
        label: Option<String>,
        all: String,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let mark = self.outer_labels.len();
        // The outermost of the loops is what the label is of.
        let known = |label: &String| self.outer_labels.iter().rev().find(|(known, _)| known == label);
        let label = label.filter(|label| known(label).is_none_or(|(_, left)| left == label));
        self.outer_labels.extend(label.map(|label| (label, all)));
        let result = self.in_loop(None, read);
        self.outer_labels.truncate(mark);
        result
    }

    /// The label of the loop that a `break` without one leaves, where it is not the innermost.
    pub(super) fn leaves(&self) -> Option<String> {
        self.leaves.clone()
    }

    /// From here on, a `break` without a label leaves this loop.
    pub(super) fn leave_by(&mut self, label: String) {
        self.leaves = Some(label);
    }

    /// The label of the loop that a `break` with this label leaves.
    pub(super) fn left(&self, label: Option<String>) -> Option<String> {
        let Some(label) = label else {
            return self.leaves.clone();
        };
        let outer = self.outer_labels.iter().rev().find(|(user, _)| *user == label);
        Some(outer.map_or(label, |(_, outer)| outer.clone()))
    }

    /// `break`.
    pub(super) fn leave(&self) -> ExprKind {
        let (label, value) = (self.leaves.clone(), None);
        ExprKind::Break { label, value }
    }

    /// Declares a name for an iterator.
    pub(super) fn declare_iterator(&mut self, name: &str, bound: Bound) {
        self.iterators.push((self.locals.len(), bound));
        self.declare(name);
    }

    /// The iterator that a name means here.
    pub(super) fn iterator(&self, name: &str) -> Option<&Bound> {
        if self.iterators.is_empty() {
            return None;
        }
        let at = self.locals.iter().rposition(|local| local == name)?;
        self.iterators
            .iter()
            .find_map(|(place, bound)| (*place == at).then_some(bound))
    }

    /// Notes that a local of this name is a `&mut`.
    pub(super) fn declare_mutable_ref(&mut self, name: &str) {
        self.mutable_refs.insert(name.to_owned());
    }

    /// Whether a local of this name is a `&mut`.
    pub(super) fn is_mutable_ref(&self, name: &str) -> bool {
        name == "self" || self.is_local(name) && self.mutable_refs.contains(name)
    }

    /// Declares a name for a function.
    pub(super) fn declare_function(&mut self, name: &str, function: syn::ExprPath) {
        self.functions.push((self.locals.len(), function));
        self.declare(name);
    }

    /// The function that a path means here, where `let` gave it that name.
    pub(super) fn named_function(&mut self, path: &syn::Path) -> Option<syn::ExprPath> {
        if self.functions.is_empty() {
            return None;
        }
        let at = self.place_of(&name_of(path.get_ident()?))?;
        let (_, function) = self.functions.iter().find(|(place, _)| *place == at)?;
        let function = function.clone();
        if let Some(name) = function
            .path
            .get_ident()
            .map(name_of)
            .filter(|name| self.is_local(name))
        {
            let text = "means something else here than where the function got its name: give one of the two another name";
            self.error(path, format!("`{name}` {text}"));
            return None;
        }
        Some(function)
    }

    /// The iterator whose position has this name.
    pub(super) fn standing_at(&self, position: &str) -> Option<Bound> {
        let stands = |bound: &&Bound| bound.position.as_deref() == Some(position);
        self.iterators
            .iter()
            .map(|(_, bound)| bound)
            .find(stands)
            .cloned()
    }

    /// The place among the locals of what a name means here.
    pub(super) fn place_of(&self, name: &str) -> Option<usize> {
        self.locals.iter().rposition(|local| local == name)
    }

    /// Whether `name` is a local here.
    pub(super) fn is_local(&self, name: &str) -> bool {
        self.named.get(name).is_some_and(|count| *count > 0)
    }

    /// The index of a type parameter.
    pub(super) fn type_param(&self, name: &str) -> Option<u32> {
        self.generic(name, |generic| matches!(generic, Generic::Type { .. }))
    }

    /// Whether a type parameter is bound by `Iterator`.
    pub(super) fn is_iterator_param(&self, index: u32) -> bool {
        let generic = self.generics.get(index as usize);
        generic.is_some_and(|generic| match generic {
            Generic::Type {
                bounds,
                call: Some((params, Some(Type::Option(_)))),
                ..
            } => params.is_empty() && bounds.iter().any(|bound| bound.contains("Iterator <")),
            _ => false,
        })
    }

    /// The index of an argument's `impl Trait`, which becomes a type parameter of that name.
    pub(super) fn implicit_param(&mut self, bounds: Bounds) -> u32 {
        let index = u32::try_from(self.generics.len()).unwrap_or(u32::MAX);
        self.generics.push(Generic::Type {
            name: format!("impl {}", bounds.text.join(" + ")),
            bounds: bounds.text,
            call: bounds.call,
        });
        index
    }

    /// Whether `name::function` is a trait's: of one that bounds a parameter, or of the standard library.
    pub(super) fn is_trait(&self, name: &str, function: &str) -> bool {
        operator_functions(name).contains(&function)
            || self
                .generics
                .iter()
                .any(|generic| generic.traits().any(|known| known == name))
    }

    /// The index of a const parameter.
    pub(super) fn const_param(&self, name: &str) -> Option<u32> {
        self.generic(name, |generic| matches!(generic, Generic::Const { .. }))
    }

    fn generic(&self, name: &str, fits: impl Fn(&Generic) -> bool) -> Option<u32> {
        let index = self
            .generics
            .iter()
            .position(|generic| generic.name() == name && fits(generic))?;
        u32::try_from(index).ok()
    }

    /// The entry of `path` used as `usage`; made by `read` at its first use.
    pub(super) fn intern(
        &mut self,
        path: &syn::Path,
        usage: PathUsage,
        read: impl FnOnce(&mut Self) -> PathRef,
    ) -> PathId {
        // Printing tokens is slow inside a macro, and a single name is the common case.
        let text = match path.get_ident() {
            Some(ident) => name_of(ident),
            None => path.to_token_stream().to_string(),
        };
        let key = (usage, text);
        if let Some(&id) = self.path_ids.get(&key) {
            return id;
        }
        let entry = read(self);
        let id = PathId(u32::try_from(self.paths.len()).unwrap_or(u32::MAX));
        self.paths.push(entry);
        self.path_tokens.push(path.clone());
        self.path_ids.insert(key, id);
        id
    }
}

/// What stands for an expression that was refused.
pub(super) fn stand_in(span: Span) -> Expr {
    Expr::new(line_of(span), ExprKind::Tuple(Vec::new()))
}
