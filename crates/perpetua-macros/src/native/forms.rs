//! Forms of the language that native bodies lack: a function with one of them runs as machine code.

use std::collections::HashSet;

use perpetua_syntax::Scalar;
use syn::visit::Visit;

/// Whether the function has such a form.
pub(super) fn lacks(sig: &syn::Signature, body: &syn::Block) -> bool {
    let mut own = Own::of(sig);
    own.visit_block(body);
    if own.computes {
        return true;
    }
    let mut found = Found(false);
    found.0 = sig
        .inputs
        .iter()
        .any(|input| matches!(input, syn::FnArg::Typed(typed) if !matches!(*typed.pat, syn::Pat::Ident(_))));
    found.visit_block(body);
    found.0
}

/// Finds operators of the user's own types, as far as names tell types: their functions are plain Rust, and native arithmetic has
/// numbers only.
struct Own {
    /// Parameters and locals that are of such types, or slices and arrays of them.
    names: HashSet<String>,
    /// The function's type parameters.
    generics: HashSet<String>,
    computes: bool,
}

impl Own {
    fn of(sig: &syn::Signature) -> Own {
        let mut own = Own {
            names: HashSet::new(),
            generics: sig
                .generics
                .type_params()
                .map(|param| param.ident.to_string())
                .collect(),
            computes: false,
        };
        for input in &sig.inputs {
            if let syn::FnArg::Typed(typed) = input
                && own.is_own(&typed.ty)
            {
                own.declare(&typed.pat);
            }
        }
        own
    }

    fn declare(&mut self, pattern: &syn::Pat) {
        match pattern {
            syn::Pat::Ident(ident) => {
                self.names.insert(ident.ident.to_string());
            }
            syn::Pat::Type(typed) => self.declare(&typed.pat),
            _ => {}
        }
    }

    fn is_own(&self, ty: &syn::Type) -> bool {
        match ty {
            syn::Type::Reference(reference) => self.is_own(&reference.elem),
            syn::Type::Slice(slice) => self.is_own(&slice.elem),
            syn::Type::Array(array) => self.is_own(&array.elem),
            syn::Type::Path(path) => path.path.segments.last().is_some_and(|last| {
                let name = last.ident.to_string();
                Scalar::from_name(&name).is_none() && !self.generics.contains(&name) && name != "GridPos"
            }),
            _ => false,
        }
    }

    /// Whether a value is of such a type, or an array of them.
    fn gives(&self, value: &syn::Expr) -> bool {
        match value {
            syn::Expr::Paren(inner) => self.gives(&inner.expr),
            syn::Expr::Group(inner) => self.gives(&inner.expr),
            syn::Expr::Unary(unary) => self.gives(&unary.expr),
            syn::Expr::Index(index) => self.gives(&index.expr),
            syn::Expr::Repeat(repeat) => self.gives(&repeat.expr),
            syn::Expr::Array(array) => array.elems.first().is_some_and(|first| self.gives(first)),
            syn::Expr::Binary(binary) => self.gives(&binary.left) || self.gives(&binary.right),
            syn::Expr::Struct(_) => true,
            syn::Expr::Path(path) => path
                .path
                .get_ident()
                .is_some_and(|name| self.names.contains(&name.to_string())),
            _ => false,
        }
    }
}

impl<'ast> Visit<'ast> for Own {
    fn visit_local(&mut self, local: &'ast syn::Local) {
        let typed = matches!(&local.pat, syn::Pat::Type(typed) if self.is_own(&typed.ty));
        if typed || local.init.as_ref().is_some_and(|init| self.gives(&init.expr)) {
            self.declare(&local.pat);
        }
        syn::visit::visit_local(self, local);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        use syn::BinOp;
        let compares = matches!(
            binary.op,
            BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_)
        );
        self.computes |= !compares && (self.gives(&binary.left) || self.gives(&binary.right));
        syn::visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        self.computes |= matches!(unary.op, syn::UnOp::Neg(_)) && self.gives(&unary.expr);
        syn::visit::visit_expr_unary(self, unary);
    }
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
