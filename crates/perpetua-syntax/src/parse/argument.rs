//! Arguments of calls, among them functions by their names. Must not know what is called.

use syn::spanned::Spanned;

use super::expr::peel;
use super::path::{closure_of_method, single_name, starts_upper, variant_of};
use super::reader::{Reader, line_of, name_of};
use super::sugar::block;
use crate::ast::{Expr, ExprKind, Line, Stmt, Variant};

/// A call and what is computed before it.
pub(super) fn behind(before: Vec<Stmt>, call: ExprKind, line: Line) -> ExprKind {
    if before.is_empty() {
        return call;
    }
    ExprKind::Block {
        label: None,
        block: block(line, before, Some(Expr::new(line, call))),
    }
}

impl Reader {
    pub(super) fn read_arguments(&mut self, call: &syn::ExprCall) -> Vec<Expr> {
        self.read_in_order(None, call.args.iter(), |reader, _, arg| {
            reader.read_argument(arg, false)
        })
    }

    /// An argument; a name like a function's is one, and so is a constructor's where nothing but a function is taken.
    pub(super) fn read_argument(&mut self, arg: &syn::Expr, function: bool) -> Expr {
        let inner = peel(arg);
        if !function && let Some(iterator) = self.read_iterator_argument(inner) {
            return iterator;
        }
        let syn::Expr::Path(path) = inner else {
            return self.read_expr(arg);
        };
        if let Some(closure) = closure_of_method(path) {
            return self.read_expr(&closure);
        }
        if let Some(named) = self.named_function(&path.path) {
            return self.read_argument(&syn::Expr::Path(named), function);
        }
        let variant = variant_of(&path.path).filter(|variant| *variant != Variant::None);
        let is_function = function || variant.is_some() || self.is_function(path);
        if !is_function || self.is_value(path) {
            return self.read_expr(arg);
        }
        let line = line_of(arg.span());
        let call = match variant {
            Some(variant) => Expr::new(
                line,
                ExprKind::Variant {
                    variant,
                    payload: None,
                },
            ),
            None => self.apply(inner, Vec::new()),
        };
        Expr::new(line, ExprKind::Function(Box::new(call)))
    }

    fn is_value(&self, path: &syn::ExprPath) -> bool {
        let is_value =
            |name: String| name == "self" || self.is_local(&name) || self.const_param(&name).is_some();
        single_name(&path.path).is_some_and(is_value)
    }

    /// Whether a name is like a function's.
    pub(super) fn is_function(&self, path: &syn::ExprPath) -> bool {
        let last = path.path.segments.last();
        !self.is_value(path) && last.is_some_and(|last| !starts_upper(&name_of(&last.ident)))
    }

    /// `let f = function;`: from here on, `f` is that function. Whether it is this.
    pub(super) fn read_named_function(&mut self, local: &syn::Local) -> bool {
        let pattern = match &local.pat {
            syn::Pat::Type(typed) => match (&*typed.pat, &*typed.ty) {
                (pattern, syn::Type::BareFn(_)) => pattern,
                _ => return false,
            },
            pattern => pattern,
        };
        let (syn::Pat::Ident(ident), Some(init)) = (pattern, &local.init) else {
            return false;
        };
        let syn::Expr::Path(path) = peel(&init.expr) else {
            return false;
        };
        let plain = ident.by_ref.is_none() && ident.mutability.is_none() && ident.subpat.is_none();
        let same = single_name(&path.path).is_some_and(|name| name == name_of(&ident.ident));
        if !plain || same || init.diverge.is_some() || !self.is_function(path) {
            return false;
        }
        self.declare_function(&name_of(&ident.ident), path.clone());
        true
    }

    /// An argument of a method.
    pub(super) fn read_method_argument(&mut self, method: &str, index: usize, arg: &syn::Expr) -> Expr {
        let function = matches!(
            (method, index),
            (
                "map"
                    | "and_then"
                    | "filter"
                    | "is_some_and"
                    | "is_none_or"
                    | "is_ok_and"
                    | "map_err"
                    | "inspect"
                    | "partition_point"
                    | "sort_by_key"
                    | "sort_unstable_by_key"
                    | "sort_by"
                    | "sort_unstable_by"
                    | "binary_search_by"
                    | "is_sorted_by"
                    | "is_sorted_by_key"
                    | "fill_with"
                    | "get_or_insert_with"
                    | "take_if"
                    | "is_err_and",
                0
            ) | (
                "map_or"
                    | "map_or_else"
                    | "binary_search_by_key"
                    | "select_nth_unstable_by"
                    | "select_nth_unstable_by_key",
                1
            )
        );
        self.read_argument(arg, function)
    }
}
