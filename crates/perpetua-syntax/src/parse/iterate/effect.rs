//! Whether the functions of a chain do more than compute: then they are called for every item for which Rust calls them, also for one that is
//! skipped.

use super::{Chain, Source};
use crate::parse::chain::{Item, Step};
use crate::parse::effects::Effects;
use crate::parse::reader::Reader;

impl Reader {
    /// Whether functions that belong to a chain's items may do more than compute.
    pub(super) fn acts(&self, chain: &Chain) -> bool {
        chain.has_step(&|step| self.step_acts(step))
    }

    fn step_acts(&self, step: &Step) -> bool {
        match step {
            Step::Called(_) | Step::With(_, _, true) => true,
            Step::With(_, _, false) => false,
            Step::Zip(_, item, ..) => has_step(item, &|step| self.step_acts(step)),
            step => step.function().is_some_and(|f| {
                let state = match (step, f) {
                    (Step::Scan(..), syn::Expr::Closure(closure)) => match closure.inputs.first() {
                        Some(syn::Pat::Ident(state)) => Some(&state.ident),
                        _ => None,
                    },
                    _ => None,
                };
                Effects::of_function(self, f, state).acts
            }),
        }
    }

    /// Whether functions that belong to a chain's items may end the lane with a fault.
    pub(super) fn may_fault(&self, chain: &Chain) -> bool {
        let faults = |step: &Step| {
            let effects = step.function().map(|f| Effects::of_function(self, f, None));
            effects.is_some_and(|effects| effects.acts || effects.calls || effects.faults)
        };
        chain.has_step(&faults)
    }

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

/// Whether what is done to an item has such a step.
fn has_step(item: &Item, fits: &dyn Fn(&Step) -> bool) -> bool {
    item.steps().iter().any(fits) || item.parts().any(|item| has_step(item, fits))
}

impl Chain {
    fn has_step(&self, fits: &dyn Fn(&Step) -> bool) -> bool {
        let of_items = match &self.source {
            Source::Items(item, _) => has_step(item, fits),
            Source::Range(_) => false,
        };
        of_items || self.steps.iter().any(fits)
    }

    /// Whether it is the numbers of a range from the first to the last.
    pub(super) fn is_upward(&self) -> bool {
        self.steps.is_empty() && matches!(&self.source, Source::Range(range) if range.adaptors.is_empty())
    }
}

fn is_plain(item: &Item) -> bool {
    // What a loop asks of a value may be a user's `next`.
    !matches!(item, Item::Changed(..) | Item::Element(_)) && item.parts().all(is_plain)
}
