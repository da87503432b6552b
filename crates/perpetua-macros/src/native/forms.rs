//! Forms of the language that native bodies lack: a function with one of them runs as machine code.

use syn::visit::Visit;

/// Whether the function has such a form.
pub(super) fn lacks(sig: &syn::Signature, body: &syn::Block) -> bool {
    let mut found = Found(false);
    found.0 = sig
        .inputs
        .iter()
        .any(|input| matches!(input, syn::FnArg::Typed(typed) if !matches!(*typed.pat, syn::Pat::Ident(_))));
    found.visit_block(body);
    found.0
}

struct Found(bool);

impl<'ast> Visit<'ast> for Found {
    fn visit_pat(&mut self, pat: &'ast syn::Pat) {
        self.0 |= match pat {
            syn::Pat::Struct(_)
            | syn::Pat::TupleStruct(_)
            | syn::Pat::Slice(_)
            | syn::Pat::Reference(_)
            | syn::Pat::Rest(_) => true,
            syn::Pat::Ident(ident) => ident.subpat.is_some() || ident.by_ref.is_some(),
            _ => false,
        };
        syn::visit::visit_pat(self, pat);
    }

    fn visit_item(&mut self, _: &'ast syn::Item) {
        self.0 = true;
    }

    fn visit_local_init(&mut self, init: &'ast syn::LocalInit) {
        self.0 |= init.diverge.is_some() || is_range(&init.expr);
        syn::visit::visit_local_init(self, init);
    }

    fn visit_expr(&mut self, expr: &'ast syn::Expr) {
        self.0 |= match expr {
            syn::Expr::Let(_) | syn::Expr::Closure(_) | syn::Expr::Const(_) => true,
            syn::Expr::Lit(lit) => matches!(lit.lit, syn::Lit::ByteStr(_)),
            syn::Expr::Call(call) => match &*call.func {
                syn::Expr::Path(path) => {
                    let names: Vec<String> = path.path.segments.iter().map(|s| s.ident.to_string()).collect();
                    matches!(&names[..], [.., module, _] if module == "mem" || module == "cmp" || module == "array")
                }
                _ => false,
            },
            syn::Expr::Reference(reference) => !is_place(&reference.expr),
            syn::Expr::ForLoop(looped) => !is_range(&looped.expr),
            syn::Expr::Index(index) => matches!(*index.index, syn::Expr::Range(_)),
            syn::Expr::MethodCall(call) => {
                let name = call.method.to_string();
                matches!(
                    name.as_str(),
                    "iter" | "iter_mut" | "into_iter" | "windows" | "split_at" | "split_at_mut" | "try_into"
                ) || name.contains("chunks")
                    || name.starts_with("sort")
                    || is_range(&call.receiver) && name != "rev" && name != "step_by"
            }
            syn::Expr::Assign(assign) => matches!(
                *assign.left,
                syn::Expr::Tuple(_) | syn::Expr::Array(_) | syn::Expr::Struct(_) | syn::Expr::Infer(_)
            ),
            _ => false,
        };
        syn::visit::visit_expr(self, expr);
    }
}

/// Whether an expression is a range, perhaps with `rev` and `step_by`.
fn is_range(value: &syn::Expr) -> bool {
    match value {
        syn::Expr::Range(_) => true,
        syn::Expr::Paren(inner) => is_range(&inner.expr),
        syn::Expr::Group(inner) => is_range(&inner.expr),
        syn::Expr::MethodCall(call) => {
            (call.method == "rev" || call.method == "step_by") && is_range(&call.receiver)
        }
        _ => false,
    }
}

/// Whether an expression names a place.
fn is_place(value: &syn::Expr) -> bool {
    match value {
        syn::Expr::Paren(inner) => is_place(&inner.expr),
        syn::Expr::Group(inner) => is_place(&inner.expr),
        syn::Expr::Path(_) | syn::Expr::Index(_) | syn::Expr::Field(_) => true,
        syn::Expr::Unary(unary) => matches!(unary.op, syn::UnOp::Deref(_)),
        _ => false,
    }
}
