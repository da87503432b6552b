//! Forms of the language that native bodies lack: a function with one of them runs as machine code.

use syn::visit::Visit;

/// Whether the body has such a form.
pub(super) fn lacks(body: &syn::Block) -> bool {
    let mut found = Found(false);
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
            syn::Pat::Ident(ident) => ident.subpat.is_some(),
            _ => false,
        };
        syn::visit::visit_pat(self, pat);
    }

    fn visit_local_init(&mut self, init: &'ast syn::LocalInit) {
        self.0 |= init.diverge.is_some();
        syn::visit::visit_local_init(self, init);
    }

    fn visit_expr(&mut self, expr: &'ast syn::Expr) {
        self.0 |= match expr {
            syn::Expr::Let(_) | syn::Expr::Closure(_) => true,
            syn::Expr::Assign(assign) => matches!(
                *assign.left,
                syn::Expr::Tuple(_) | syn::Expr::Array(_) | syn::Expr::Struct(_) | syn::Expr::Infer(_)
            ),
            _ => false,
        };
        syn::visit::visit_expr(self, expr);
    }
}
