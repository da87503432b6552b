//! Whether the functions of a chain do more than compute: then they are called for every item for which Rust calls them, also for one that is
//! skipped.

use syn::visit::Visit;

use super::{Chain, Source};
use crate::parse::chain::{Item, Step};
use crate::parse::path::single_name;
use crate::parse::reader::{Reader, name_of};

impl Reader {
    /// Whether functions that belong to a chain's items may do more than compute.
    pub(super) fn acts(&self, chain: &Chain) -> bool {
        let of_items = match &chain.source {
            Source::Items(item, _) => self.item_acts(item),
            Source::Range(_) => false,
        };
        of_items || chain.steps.iter().any(|step| self.step_acts(step))
    }

    fn item_acts(&self, item: &Item) -> bool {
        item.steps().iter().any(|step| self.step_acts(step)) || item.parts().any(|item| self.item_acts(item))
    }

    fn step_acts(&self, step: &Step) -> bool {
        match step {
            Step::Called(_) | Step::With(_, _, true) => true,
            Step::With(_, _, false) => false,
            Step::Zip(_, item, ..) => self.item_acts(item),
            step => step.function().is_some_and(|f| {
                let mut acts = Acts {
                    reader: self,
                    found: false,
                    state: None,
                };
                if let (Step::Scan(..), syn::Expr::Closure(closure)) = (step, f)
                    && let Some(syn::Pat::Ident(state)) = closure.inputs.first()
                {
                    acts.state = Some(state.ident.clone());
                }
                acts.visit_expr(f);
                acts.found
            }),
        }
    }
}

impl Chain {
    /// Whether it is the numbers of a range from the first to the last.
    pub(super) fn is_upward(&self) -> bool {
        self.steps.is_empty() && matches!(&self.source, Source::Range(range) if range.adaptors.is_empty())
    }
}

impl Reader {
    /// Whether nothing is done with items: no function of the user's makes them, and each is known by its place, which it is made to be.
    pub(super) fn is_plain(&mut self, chain: &mut Chain) -> bool {
        let plain = chain.steps.is_empty()
            && match &chain.source {
                Source::Range(_) => true,
                Source::Items(item, _) => is_plain(item),
            };
        if plain {
            self.indexed_source(chain);
        }
        plain
    }
}

fn is_plain(item: &Item) -> bool {
    // What a loop asks of a value may be a user's `next`.
    !matches!(item, Item::Changed(..) | Item::Element(_)) && item.parts().all(is_plain)
}

/// Finds what changes, prints or panics by itself: assignments, `&mut`, macros, atomics, what changes its receiver, and calls that are given a name which is a `&mut`.
struct Acts<'a> {
    reader: &'a Reader,
    found: bool,
    /// The state of a `scan`, which its function may change.
    state: Option<syn::Ident>,
}

impl Acts<'_> {
    /// Whether it is the name of a `&mut`, which a call may change something through.
    fn is_mutable_ref(&self, value: &syn::Expr) -> bool {
        matches!(value, syn::Expr::Path(path) if single_name(&path.path).is_some_and(|name| self.reader.is_mutable_ref(&name)))
    }

    /// Whether it is the state, as in `*state = 1`.
    fn is_state(&self, place: &syn::Expr) -> bool {
        match place {
            syn::Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Deref(_)) => self.is_state(&unary.expr),
            syn::Expr::Field(field) => self.is_state(&field.base),
            syn::Expr::Path(path) => self.state.as_ref().is_some_and(|state| path.path.is_ident(state)),
            _ => false,
        }
    }
}

impl Visit<'_> for Acts<'_> {
    fn visit_expr_call(&mut self, call: &syn::ExprCall) {
        self.found |= call.args.iter().any(|arg| self.is_mutable_ref(arg));
        syn::visit::visit_expr_call(self, call);
    }

    fn visit_expr_assign(&mut self, assign: &syn::ExprAssign) {
        self.found |= !self.is_state(&assign.left);
        syn::visit::visit_expr_assign(self, assign);
    }

    fn visit_expr_binary(&mut self, binary: &syn::ExprBinary) {
        use syn::BinOp::{
            AddAssign, BitAndAssign, BitOrAssign, BitXorAssign, DivAssign, MulAssign, RemAssign, ShlAssign,
            ShrAssign, SubAssign,
        };
        let assigns = matches!(
            binary.op,
            AddAssign(_)
                | SubAssign(_)
                | MulAssign(_)
                | DivAssign(_)
                | RemAssign(_)
                | BitXorAssign(_)
                | BitAndAssign(_)
                | BitOrAssign(_)
                | ShlAssign(_)
                | ShrAssign(_)
        );
        self.found |= assigns && !self.is_state(&binary.left);
        syn::visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_reference(&mut self, reference: &syn::ExprReference) {
        self.found |= reference.mutability.is_some();
        syn::visit::visit_expr_reference(self, reference);
    }

    fn visit_macro(&mut self, called: &syn::Macro) {
        self.found |= !called.path.is_ident("matches");
    }

    fn visit_expr_method_call(&mut self, call: &syn::ExprMethodCall) {
        let name = name_of(&call.method);
        let changes = [
            "fetch_",
            "compare_exchange",
            "store",
            "swap",
            "replace",
            "take",
            "insert",
            "get_or_insert",
            "sort",
            "fill",
            "copy_",
            "next",
            "write",
            "set",
            "expect",
            "unwrap",
        ];
        // Numbers have a method of this name that only computes.
        self.found |= changes.iter().any(|known| name.starts_with(known)) && name != "swap_bytes";
        let reads = [
            "len", "is_empty", "get", "first", "last", "iter", "contains", "chunks", "windows", "to_bits",
        ];
        let given = self.is_mutable_ref(&call.receiver) && !reads.contains(&name.as_str());
        self.found |= given || call.args.iter().any(|arg| self.is_mutable_ref(arg));
        syn::visit::visit_expr_method_call(self, call);
    }
}
