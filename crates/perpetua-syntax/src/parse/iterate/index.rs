//! Chains whose items are known by their indices, and those that go beside others.

use super::item::{binary, declare, method};
use super::{Chain, NO_STEP, Source, number};
use crate::ast::{BinaryOp, ExprKind, Range, RangeAdaptor, Scalar, Type};
use crate::parse::chain::{Item, Step};
use crate::parse::reader::Reader;
use crate::parse::sugar::{block, expr, local};

impl Reader {
    /// Computes in front of the loop how many there are.
    pub(super) fn count_once(&mut self, chain: &mut Chain) {
        if let Source::Items(_, count) = &mut chain.source {
            let name = self.fresh("count");
            let value = std::mem::replace(count, local(&name, chain.line));
            chain.setup.push(declare(&name, value, false));
        }
    }

    /// A counter in front of the loop.
    pub(super) fn counter(&mut self, chain: &mut Chain) -> String {
        let name = self.fresh("counter");
        chain.setup.push(declare(&name, number(chain.line, 0), true));
        name
    }

    /// Goes over `counted` beside the chain, whose items are not known by their indices; `first`: its items stand in front.
    pub(super) fn zip_counted(&mut self, chain: &mut Chain, mut counted: Chain, first: bool) {
        // What stands in front is computed in front.
        if first {
            counted.setup.append(&mut chain.setup);
            chain.setup = counted.setup;
        } else {
            chain.setup.append(&mut counted.setup);
        }
        let Source::Items(item, count) = counted.source else {
            return;
        };
        // What ends by itself would end the innermost of several loops.
        if counted.unknown && !chain.is_one_loop() {
            chain.setup.extend(super::asked_by_places(&item, chain.line));
        }
        let (count, counter) = (chain.name(self, "count", count), self.counter(chain));
        chain.owned = true;
        chain.steps.push(Step::Zip(counter, Box::new(item), count, first));
    }

    /// Makes all of it items by index, with what is done to each by itself; `None` where one item depends on others.
    pub(super) fn indexed(&mut self, chain: &mut Chain) -> Option<()> {
        self.indexed_source(chain);
        if chain.advances || !chain.steps.iter().all(Step::is_each) {
            return None;
        }
        let steps = std::mem::take(&mut chain.steps);
        if !steps.is_empty() {
            // Nobody may compute it at an index that there is not.
            chain.owned = true;
            chain.items(|item, count| (Item::Changed(Box::new(item), steps), count));
        }
        Some(())
    }

    /// Makes the numbers of a range items by index.
    pub(super) fn indexed_source(&mut self, chain: &mut Chain) {
        let Source::Range(range) = &mut chain.source else {
            return;
        };
        let Range {
            start,
            end,
            inclusive,
            adaptors,
        } = range.clone();
        let start = chain.name(self, "start", start);
        let end = chain.name(self, "end", end);
        let line = chain.line;
        let op = if inclusive { BinaryOp::Le } else { BinaryOp::Lt };
        let some = binary(op, start.clone(), end.clone());
        let none = ExprKind::Block {
            label: None,
            block: block(line, Vec::new(), Some(number(line, 0))),
        };
        // The way from the first to the last may be longer than their type has numbers.
        let [first, last] = [start.clone(), end].map(|end| {
            let (value, ty) = (Box::new(end), Type::Scalar(Scalar::Usize));
            expr(line, ExprKind::Cast { value, ty })
        });
        let mut way = binary(BinaryOp::Sub, last, first);
        if inclusive {
            way = method(way, "saturating_add", vec![number(line, 1)]);
        }
        let count = ExprKind::If {
            cond: Box::new(some),
            then: block(line, Vec::new(), Some(way)),
            otherwise: Some(Box::new(expr(line, none))),
        };
        chain.source = Source::Items(Item::Count(start), expr(line, count));
        self.count_once(chain);
        for adaptor in adaptors {
            self.adapt(chain, adaptor);
        }
    }

    /// The other way round, or with steps between.
    pub(super) fn adapt(&mut self, chain: &mut Chain, adaptor: RangeAdaptor) {
        let line = chain.line;
        match (&mut chain.source, adaptor) {
            (Source::Range(range), RangeAdaptor::Rev) => range.adaptors.push(RangeAdaptor::Rev),
            (Source::Range(_), RangeAdaptor::StepBy(mut step)) => {
                self.name_unsteady(chain, &mut step);
                if let Source::Range(range) = &mut chain.source {
                    range.adaptors.push(RangeAdaptor::StepBy(step));
                }
            }
            (Source::Items(..), RangeAdaptor::Rev) => chain.items(|item, count| {
                let last = method(count.clone(), "wrapping_sub", vec![number(line, 1)]);
                (Item::Rev(Box::new(item), last), count)
            }),
            (Source::Items(..), RangeAdaptor::StepBy(step)) => {
                let step = chain.positive(self, "step", *step, Some(NO_STEP));
                chain.items(|item, count| {
                    let count = method(count, "div_ceil", vec![step.clone()]);
                    (Item::From(Box::new(item), number(line, 0), step), count)
                });
                self.count_once(chain);
            }
        }
    }
}
