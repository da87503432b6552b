//! Iterators that a `let` binds: what they go over has names in front, and where they stand, too, where they are `mut`.

use super::item::{binary, declare, method};
use super::{Chain, Source, number};
use crate::ast::{BinaryOp, Expr, ExprKind, Stmt};
use crate::parse::Refusal;
use crate::parse::chain::{Bound, Item, Step};
use crate::parse::expr::peel;
use crate::parse::path::single_name;
use crate::parse::reader::{Reader, name_of};
use crate::parse::sugar::{expr, local, statement};

/// `position = start + index + 1`.
pub(super) fn moved(position: &str, start: Expr, index: Expr) -> Stmt {
    let line = start.line;
    let value = method(
        binary(BinaryOp::Add, start, index),
        "saturating_add",
        vec![number(line, 1)],
    );
    let (place, value) = (Box::new(local(position, line)), Box::new(value));
    statement(expr(line, ExprKind::Assign { place, value }))
}

impl Reader {
    /// The iterator that an expression names.
    pub(super) fn bound_iterator(&self, value: &syn::Expr) -> Option<Bound> {
        match peel(value) {
            syn::Expr::Path(path) if path.qself.is_none() => {
                self.iterator(&single_name(&path.path)?).cloned()
            }
            _ => None,
        }
    }

    /// `let name = chain;`: statements that name what it goes over. `None` where the value is no chain.
    pub(in crate::parse) fn read_bound_iterator(
        &mut self,
        pattern: &syn::Pat,
        init: &syn::Expr,
    ) -> Option<Vec<Stmt>> {
        let (syn::Pat::Ident(ident), syn::Expr::MethodCall(call)) = (pattern, peel(init)) else {
            return None;
        };
        if ident.by_ref.is_some() || ident.subpat.is_some() || !self.is_chain(call) {
            return None;
        }
        let mut chain = self.read_iterable(init);
        let remainder = chain.remainder.take();
        let copied = chain.steps.iter().all(|step| matches!(step, Step::Copied));
        if !copied || self.indexed(&mut chain).is_none() {
            self.refuse_named(&call.method, Refusal::IteratorValue, &name_of(&call.method));
        }
        self.count_once(&mut chain);
        let Source::Items(item, count) = chain.source else {
            return Some(chain.setup);
        };
        let name = name_of(&ident.ident);
        let position = ident.mutability.is_some().then(|| {
            let position = self.fresh("position");
            chain.setup.push(declare(&position, number(chain.line, 0), true));
            position
        });
        self.declare_iterator(
            &name,
            Bound {
                item,
                count,
                remainder,
                position,
            },
        );
        Some(chain.setup)
    }

    /// A chain that goes on where the iterator stands.
    pub(super) fn read_bound(&mut self, bound: &Bound, chain: &mut Chain) {
        let Bound {
            item,
            count,
            remainder,
            position,
        } = bound.clone();
        chain.remainder = remainder;
        chain.source = Source::Items(item, count);
        let Some(position) = position else {
            return;
        };
        let line = chain.line;
        let start = chain.name(self, "start", local(&position, line));
        chain.items(|item, count| {
            let left = method(count, "saturating_sub", vec![start.clone()]);
            (Item::From(Box::new(item), start.clone(), number(line, 1)), left)
        });
        self.count_once(chain);
        chain.stands = Some((position, start));
    }
}
