//! What is seen to be a range, and whether it is used as a value. Must not know how either is read.

use super::expr::peel;
use super::types::range_of;
use syn::punctuated::Punctuated;
use syn::visit::Visit;

/// Methods that take an iterator as their argument.
const OF_ITERATORS: [&str; 9] = ["zip", "chain", "eq", "ne", "lt", "le", "gt", "ge", "cmp"];

/// Whether what is seen to be a range has its end; `None` of what is not seen to be one.
pub(super) fn is_closed(value: &syn::Expr) -> Option<bool> {
    let tail = |block: &syn::Block| match block.stmts.last() {
        Some(syn::Stmt::Expr(value, None)) => is_closed(value),
        _ => None,
    };
    let agree = |a: Option<bool>, b: Option<bool>| a.filter(|a| b == Some(*a));
    match peel(value) {
        syn::Expr::Range(range) if range.start.is_some() && range.end.is_some() => {
            Some(matches!(range.limits, syn::RangeLimits::Closed(_)))
        }
        syn::Expr::Block(block) if block.label.is_none() => tail(&block.block),
        syn::Expr::If(branch) => agree(
            tail(&branch.then_branch),
            is_closed(&branch.else_branch.as_ref()?.1),
        ),
        syn::Expr::Match(matched) => {
            let mut arms = matched.arms.iter().map(|arm| is_closed(&arm.body));
            let first = arms.next()?;
            arms.fold(first, agree)
        }
        _ => None,
    }
}

/// Whether a `let` names a `mut` range that is used as a value in one of the statements, not as an iterator alone: it is no place in
/// an iterator then.
pub(super) fn is_used_range(local: &syn::Local, stmts: &[syn::Stmt]) -> bool {
    let (pattern, typed) = match &local.pat {
        syn::Pat::Type(typed) => (&*typed.pat, range_of(&typed.ty).is_some()),
        pattern => (pattern, false),
    };
    let (syn::Pat::Ident(ident), Some(init)) = (pattern, &local.init) else {
        return false;
    };
    let is_range = typed || is_closed(&init.expr).is_some();
    ident.mutability.is_some() && is_range && is_used(&ident.ident, stmts)
}

/// Whether a range is used as a value.
pub(super) fn is_used(name: &syn::Ident, stmts: &[syn::Stmt]) -> bool {
    struct Used<'a>(&'a syn::Ident, bool);
    impl Used<'_> {
        fn is_it(&self, value: &syn::Expr) -> bool {
            let value = match peel(value) {
                syn::Expr::Reference(reference) => peel(&reference.expr),
                value => value,
            };
            matches!(value, syn::Expr::Path(path) if path.path.is_ident(self.0))
        }

        fn visit_unless_it<'e>(&mut self, values: impl IntoIterator<Item = &'e syn::Expr>) {
            for value in values {
                if !self.is_it(value) {
                    self.visit_expr(value);
                }
            }
        }
    }
    impl Visit<'_> for Used<'_> {
        fn visit_expr_path(&mut self, path: &syn::ExprPath) {
            self.1 |= path.path.is_ident(self.0);
        }

        fn visit_expr_method_call(&mut self, call: &syn::ExprMethodCall) {
            let of_value = ["contains", "start", "end", "is_empty", "eq", "ne"];
            self.1 |= self.is_it(&call.receiver) && of_value.iter().any(|name| call.method == name);
            self.visit_unless_it([&*call.receiver]);
            match OF_ITERATORS.iter().any(|name| call.method == name) {
                true => self.visit_unless_it(&call.args),
                false => call.args.iter().for_each(|arg| self.visit_expr(arg)),
            }
        }

        fn visit_expr_for_loop(&mut self, looped: &syn::ExprForLoop) {
            self.visit_unless_it([&*looped.expr]);
            self.visit_block(&looped.body);
        }

        fn visit_macro(&mut self, called: &syn::Macro) {
            let exprs = Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
            if let Ok(args) = called.parse_body_with(exprs) {
                args.iter().for_each(|arg| self.visit_expr(arg));
            }
        }
    }
    let mut found = Used(name, false);
    stmts.iter().for_each(|stmt| found.visit_stmt(stmt));
    found.1
}
