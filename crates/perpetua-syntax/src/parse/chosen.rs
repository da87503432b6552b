//! What branches choose that is no value: functions by their names, and iterators. Which one is chosen where the branches stand, and
//! what is done with it branches by that.

use std::collections::HashSet;

use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::visit::Visit;

use super::Refusal;
use super::expr::peel;
use super::path::single_name;
use super::reader::{Reader, name_of};
use crate::ast::Stmt;

impl Reader {
    /// `let f: fn(A) -> B = match …;`: statements that choose and that name the closure which calls what was chosen; `None` of other variables.
    pub(super) fn read_chosen_function(&mut self, local: &syn::Local) -> Option<Vec<Stmt>> {
        let syn::Pat::Type(typed) = &local.pat else {
            return None;
        };
        let (syn::Pat::Ident(name), syn::Type::BareFn(of)) = (&*typed.pat, &*typed.ty) else {
            return None;
        };
        let init = local.init.as_ref().filter(|init| init.diverge.is_none())?;
        let (mut which, mut functions) = (peel(&init.expr).clone(), Vec::new());
        let branches = matches!(which, syn::Expr::Match(_) | syn::Expr::If(_));
        let plain = name.by_ref.is_none() && name.mutability.is_none() && name.subpat.is_none();
        let number = &mut |tail: &mut syn::Expr| self.number_function(tail, &mut functions);
        if !branches || !plain || !each_tail(&mut which, number) {
            return None;
        }
        let declared = Declared::of(&init.expr);
        if let Some(function) = functions.iter().find(|function| declared.may_be(function)) {
            self.refuse_named(function, Refusal::BranchFunction, "");
        }
        let (last, others) = functions.split_last()?;
        self.names += 1;
        let (span, name) = (local.let_token.span(), &name.ident);
        let number = format_ident!("__which{}", self.names, span = span);
        let params: Vec<_> = (0..of.inputs.len())
            .map(|at| format_ident!("__given{at}"))
            .collect();
        let (types, ret) = (of.inputs.iter().map(|input| &input.ty), &of.output);
        let ret = match ret {
            syn::ReturnType::Default => quote!(-> ()),
            ret => quote!(#ret),
        };
        let given = quote!(#(#params),*);
        let numbers = (0..others.len()).map(|at| syn::LitInt::new(&format!("{at}u32"), span));
        let number_of = syn::parse2(quote!(let #number: u32 = #which;));
        let called = syn::parse2(quote! {
            let #name = |#(#params: #types),*| #ret {
                match #number {
                    #(#numbers => #others(#given),)*
                    _ => #last(#given),
                }
            };
        });
        let stmts = [number_of.ok()?, called.ok()?]
            .into_iter()
            .map(|stmt| match stmt {
                syn::Stmt::Local(local) => Some(self.read_let(&local)),
                _ => None,
            });
        stmts.collect()
    }

    /// Puts a number in the place of a function that a branch names; whether it is one.
    fn number_function(&self, tail: &mut syn::Expr, functions: &mut Vec<syn::ExprPath>) -> bool {
        match tail {
            syn::Expr::Path(path) if self.is_function(path) => {
                let number = syn::LitInt::new(&format!("{}u32", functions.len()), path.span());
                functions.push(path.clone());
                *tail = syn::Expr::Lit(syn::ExprLit {
                    attrs: Vec::new(),
                    lit: number.into(),
                });
                true
            }
            _ => false,
        }
    }
}

/// What is declared within a value.
#[derive(Default)]
struct Declared {
    names: HashSet<String>,
    /// Any name may stand for it.
    items: bool,
}

impl Declared {
    fn of(value: &syn::Expr) -> Self {
        let mut found = Self::default();
        found.visit_expr(value);
        found
    }

    fn may_be(&self, function: &syn::ExprPath) -> bool {
        self.items || single_name(&function.path).is_some_and(|name| self.names.contains(&name))
    }
}

impl Visit<'_> for Declared {
    fn visit_pat_ident(&mut self, pattern: &syn::PatIdent) {
        self.names.insert(name_of(&pattern.ident));
        syn::visit::visit_pat_ident(self, pattern);
    }

    fn visit_item(&mut self, _: &syn::Item) {
        self.items = true;
    }
}

/// Changes what each branch of a value gives that does not leave; whether all are seen and `change` takes them.
fn each_tail(value: &mut syn::Expr, change: &mut dyn FnMut(&mut syn::Expr) -> bool) -> bool {
    fn of_block(block: &mut syn::Block, change: &mut dyn FnMut(&mut syn::Expr) -> bool) -> bool {
        match block.stmts.last_mut() {
            Some(syn::Stmt::Expr(value, None)) => each_tail(value, change),
            Some(syn::Stmt::Expr(value, Some(_))) => leaves(value),
            _ => false,
        }
    }
    match value {
        syn::Expr::Paren(inner) => each_tail(&mut inner.expr, change),
        syn::Expr::Group(inner) => each_tail(&mut inner.expr, change),
        syn::Expr::Block(inner) if inner.label.is_none() => of_block(&mut inner.block, change),
        syn::Expr::If(choice) => {
            let otherwise = choice.else_branch.as_mut().map(|(_, otherwise)| otherwise);
            of_block(&mut choice.then_branch, change)
                && otherwise.is_some_and(|otherwise| each_tail(otherwise, change))
        }
        syn::Expr::Match(choice) => {
            let mut arms = choice.arms.iter_mut();
            arms.all(|arm| each_tail(&mut arm.body, change))
        }
        tail => leaves(tail) || change(tail),
    }
}

/// Whether a value is none, since it goes elsewhere.
fn leaves(value: &syn::Expr) -> bool {
    matches!(
        value,
        syn::Expr::Return(_) | syn::Expr::Break(_) | syn::Expr::Continue(_)
    )
}

/// `if c { a.iter() } else { b.iter() }` as the iterator of what is chosen, `(if c { &a[..] } else { &b[..] }).iter()`; `None` of others.
pub(super) fn iterator_of_branches(value: &syn::Expr) -> Option<syn::Expr> {
    let mut chosen = match peel(value) {
        branches @ (syn::Expr::Match(_) | syn::Expr::If(_)) => branches.clone(),
        _ => return None,
    };
    let mut whole = |tail: &mut syn::Expr| match tail {
        syn::Expr::MethodCall(call) if call.method == "iter" && call.args.is_empty() => {
            let of = &call.receiver;
            *tail = syn::parse_quote_spanned!(call.method.span()=> &#of[..]);
            true
        }
        _ => false,
    };
    each_tail(&mut chosen, &mut whole).then(|| syn::parse_quote_spanned!(value.span()=> (#chosen).iter()))
}
