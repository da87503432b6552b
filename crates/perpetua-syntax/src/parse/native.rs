//! Forms of the language that native bodies lack: a function with one of them runs as machine code.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::Visit;

use crate::{Intrinsic, IntrinsicGroup};

/// The function of the language that a call names.
#[must_use]
pub fn intrinsic_of(path: &syn::Path) -> Option<Intrinsic> {
    let (first, last) = (path.segments.first()?, path.segments.last()?);
    (path.segments.len() == 1 || first.ident == "perpetua").then_some(())?;
    Intrinsic::lookup(&last.ident.to_string()).map(|(intrinsic, _)| intrinsic)
}

/// The first such form of a function, as it is said, and where it stands.
#[must_use]
pub fn lacks_native(sig: &syn::Signature, body: &syn::Block) -> Option<(&'static str, Span)> {
    let mut found = Found {
        first: None,
        slices: Vec::new(),
    };
    for input in &sig.inputs {
        if let syn::FnArg::Typed(typed) = input
            && !matches!(*typed.pat, syn::Pat::Ident(_))
        {
            found.note("patterns as parameters", typed);
        }
        if let syn::FnArg::Typed(typed) = input
            && let (syn::Pat::Ident(name), syn::Type::Reference(of)) = (&*typed.pat, &*typed.ty)
            && matches!(*of.elem, syn::Type::Slice(_))
        {
            found.slices.push(&name.ident);
        }
    }
    found.visit_block(body);
    found.first
}

struct Found<'a> {
    first: Option<(&'static str, Span)>,
    /// Parameters that are slices.
    slices: Vec<&'a syn::Ident>,
}

impl Found<'_> {
    fn note(&mut self, what: &'static str, at: &impl Spanned) {
        self.first.get_or_insert_with(|| (what, at.span()));
    }

    /// What native code lacks of a function of the language, called so.
    fn lacks(&self, intrinsic: Intrinsic, call: &syn::ExprCall) -> Option<&'static str> {
        match intrinsic.group() {
            IntrinsicGroup::Index | IntrinsicGroup::CudaIndex => None,
            IntrinsicGroup::Atomic => match call.args.first() {
                Some(syn::Expr::Reference(reference)) => match &*reference.expr {
                    syn::Expr::Index(index) => match &*index.expr {
                        syn::Expr::Path(path) => {
                            let is_buffer = self.slices.iter().any(|name| path.path.is_ident(*name));
                            is_buffer.then_some("atomic operations on buffers")
                        }
                        _ => None,
                    },
                    _ => None,
                },
                _ => None,
            },
            IntrinsicGroup::Sync => Some("barriers and fences"),
            IntrinsicGroup::Shared => Some("shared memory"),
            IntrinsicGroup::Subgroup => Some("operations of subgroups"),
            IntrinsicGroup::Fast => Some("fast arithmetic"),
            IntrinsicGroup::Resident => Some("what resident kernels have"),
        }
    }
}

impl<'ast> Visit<'ast> for Found<'_> {
    fn visit_pat(&mut self, pat: &'ast syn::Pat) {
        match pat {
            syn::Pat::Struct(_) | syn::Pat::TupleStruct(_) => {
                self.note("patterns of structs and variants", pat)
            }
            syn::Pat::Slice(_) => self.note("patterns of elements", pat),
            syn::Pat::Reference(_) => self.note("patterns of references", pat),
            syn::Pat::Rest(_) => self.note("`..` in patterns", pat),
            syn::Pat::Ident(ident) if ident.subpat.is_some() => self.note("`@` in patterns", pat),
            syn::Pat::Ident(ident) if ident.by_ref.is_some() => self.note("`ref`", pat),
            _ => {}
        }
        syn::visit::visit_pat(self, pat);
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        let name = mac.path.segments.last().map(|segment| segment.ident.to_string());
        match name.as_deref() {
            Some("gpu_println") => {}
            Some("unreachable") if mac.tokens.is_empty() => {}
            _ => self.note("assertions, panics with a message and other macros", mac),
        }
    }

    fn visit_item(&mut self, item: &'ast syn::Item) {
        self.note("items inside functions", item);
    }

    fn visit_local_init(&mut self, init: &'ast syn::LocalInit) {
        if init.diverge.is_some() {
            self.note("`let … else`", &init.expr);
        }
        if is_range(&init.expr) {
            self.note("ranges as values", &init.expr);
        }
        syn::visit::visit_local_init(self, init);
    }

    fn visit_expr(&mut self, expr: &'ast syn::Expr) {
        match expr {
            syn::Expr::Let(_) => self.note("`if let` and `while let`", expr),
            syn::Expr::Closure(_) => self.note("closures", expr),
            syn::Expr::Const(_) => self.note("`const` blocks", expr),
            syn::Expr::Lit(lit) if matches!(lit.lit, syn::Lit::ByteStr(_)) => self.note("byte strings", expr),
            syn::Expr::Call(call) => {
                if let syn::Expr::Path(path) = &*call.func
                    && let Some(what) =
                        intrinsic_of(&path.path).and_then(|intrinsic| self.lacks(intrinsic, call))
                {
                    self.note(what, expr);
                }
                if let syn::Expr::Path(path) = &*call.func
                    && let module = path.path.segments.iter().rev().nth(1)
                    && (super::is_reverse(&path.path)
                        || module.is_some_and(|m| matches!(&*m.ident.to_string(), "mem" | "cmp" | "array")))
                {
                    self.note("functions of `mem`, `cmp` and `array`", expr);
                }
            }
            syn::Expr::Reference(reference) if !is_place(&reference.expr) => {
                self.note("references to values", expr);
            }
            syn::Expr::ForLoop(looped) if !is_range(&looped.expr) => {
                self.note("`for` over anything but a range", &looped.expr);
            }
            syn::Expr::Index(index) if matches!(*index.index, syn::Expr::Range(_)) => {
                self.note("parts of slices", expr);
            }
            syn::Expr::MethodCall(call) => {
                let name = call.method.to_string();
                if matches!(
                    name.as_str(),
                    "iter" | "iter_mut" | "into_iter" | "windows" | "split_at" | "split_at_mut" | "try_into"
                ) || name.contains("chunk")
                    || name.starts_with("sort")
                    || name.starts_with("select_nth")
                    || name.starts_with("strip_")
                    || matches!(
                        name.as_str(),
                        "split_at_checked" | "copy_within" | "swap_with_slice"
                    )
                    || is_range(&call.receiver) && name != "rev" && name != "step_by"
                {
                    self.note("iterators and parts of slices", expr);
                }
            }
            syn::Expr::Assign(assign) => {
                if matches!(
                    *assign.left,
                    syn::Expr::Tuple(_) | syn::Expr::Array(_) | syn::Expr::Struct(_) | syn::Expr::Infer(_)
                ) {
                    self.note("assignments to patterns", expr);
                }
            }
            _ => {}
        }
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
