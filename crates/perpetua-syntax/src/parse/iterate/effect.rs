//! Whether the functions of a chain do more than compute: then they are called for every item for which Rust calls them, also for one that is
//! skipped.

use syn::visit::Visit;

use super::{Chain, Source};
use crate::parse::chain::{Item, Step};
use crate::parse::reader::{Reader, name_of};

impl Chain {
    /// Whether functions that belong to its items may do more than compute.
    pub(super) fn acts(&self) -> bool {
        matches!(&self.source, Source::Items(item, _) if item_acts(item)) || self.steps.iter().any(step_acts)
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
    match item {
        Item::Changed(..) => false,
        Item::Cycle(inner, _) | Item::Enumerate(inner) | Item::From(inner, ..) | Item::Rev(inner, _) => {
            is_plain(inner)
        }
        Item::Zip(one, other) | Item::Chain(one, _, other) => is_plain(one) && is_plain(other),
        // What a loop asks of a value may be a user's `next`.
        Item::Element(_) => false,
        Item::Part { .. } | Item::Count(_) | Item::Same(_) => true,
    }
}

fn item_acts(item: &Item) -> bool {
    match item {
        Item::Changed(inner, steps) => item_acts(inner) || steps.iter().any(step_acts),
        Item::Cycle(inner, _) | Item::Enumerate(inner) | Item::From(inner, ..) | Item::Rev(inner, _) => {
            item_acts(inner)
        }
        Item::Zip(one, other) | Item::Chain(one, _, other) => item_acts(one) || item_acts(other),
        Item::Element(_) | Item::Part { .. } | Item::Count(_) | Item::Same(_) => false,
    }
}

fn step_acts(step: &Step) -> bool {
    match step {
        Step::Map(f)
        | Step::Filter(f)
        | Step::FilterMap(f)
        | Step::TakeWhile(f)
        | Step::MapWhile(f)
        | Step::SkipWhile(_, f)
        | Step::Scan(_, f)
        | Step::Inspect(f)
        | Step::Flat(Some(f)) => {
            let mut acts = Acts(false);
            acts.visit_expr(f);
            acts.0
        }
        Step::Zip(_, item, ..) => item_acts(item),
        Step::Called(_) => true,
        Step::Copied
        | Step::Flat(None)
        | Step::Enumerate(_)
        | Step::Skip(..)
        | Step::Take(..)
        | Step::Until(..)
        | Step::Leaving(_)
        | Step::Every(..) => false,
    }
}

/// Finds what changes, prints or panics by itself: assignments, `&mut`, macros, atomics and what changes its receiver.
struct Acts(bool);

impl Visit<'_> for Acts {
    fn visit_expr_assign(&mut self, _: &syn::ExprAssign) {
        self.0 = true;
    }

    fn visit_expr_binary(&mut self, binary: &syn::ExprBinary) {
        use syn::BinOp::{
            AddAssign, BitAndAssign, BitOrAssign, BitXorAssign, DivAssign, MulAssign, RemAssign, ShlAssign,
            ShrAssign, SubAssign,
        };
        self.0 |= matches!(
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
        syn::visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_reference(&mut self, reference: &syn::ExprReference) {
        self.0 |= reference.mutability.is_some();
        syn::visit::visit_expr_reference(self, reference);
    }

    fn visit_macro(&mut self, called: &syn::Macro) {
        self.0 |= !called.path.is_ident("matches");
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
        self.0 |= changes.iter().any(|known| name.starts_with(known)) && name != "swap_bytes";
        syn::visit::visit_expr_method_call(self, call);
    }
}
