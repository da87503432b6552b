//! `next`, `nth`, `last`, `remainder`: one item of a chain. An item that lies in memory is not looked at before its user does:
//! the option is a reference and whether it is there.

use super::bound::Stand;
use super::item::{binary, declare, method, when};
use super::{Chain, Source, number};
use crate::ast::{BinaryOp, Expr, ExprKind, PICK, SLICE, Stmt, UnaryOp, Variant};
use crate::parse::chain::Step;
use crate::parse::reader::Reader;
use crate::parse::sugar::{block, expr, local, statement};

impl Reader {
    /// The item number `n` of those that are left (`None`: the last one), as an `Option`; `goes_on`: a bound iterator stands behind it then.
    pub(super) fn read_pick(&mut self, mut chain: Chain, n: Option<Expr>, goes_on: bool) -> ExprKind {
        let line = chain.line;
        chain.advances = goes_on && chain.stands.is_some();
        let simple = |step: &Step| matches!(step, Step::Map(_) | Step::Copied);
        // Functions are called for what comes before, too.
        let is_first = matches!(&n, Some(n) if matches!(n.kind, ExprKind::Int { value: 0, .. }));
        let backward = chain.advances && chain.stands.as_ref().is_some_and(|stand| stand.back.is_some());
        if !is_first && !backward && chain.owned && self.is_plain(&mut chain) {
            return self.read_value_pick(chain, n);
        }
        let acts = !is_first && self.acts(&chain);
        if acts
            || backward
            || chain.owned
            || !chain.steps.iter().all(simple)
            || matches!(chain.source, Source::Range(_))
        {
            return self.read_loop_pick(chain, n);
        }
        let Source::Items(item, count) = chain.source else {
            return ExprKind::Tuple(Vec::new());
        };
        let mut stmts = chain.setup;
        let at = self.fresh("at");
        let index = n.unwrap_or_else(|| method(count.clone(), "wrapping_sub", vec![number(line, 1)]));
        stmts.push(declare(&at, index, false));
        let there = binary(BinaryOp::Lt, local(&at, line), count.clone());
        let reached = method(count, "min", vec![local(&at, line)]);
        if let Some(stand) = chain.stands.filter(|_| chain.advances) {
            stmts.push(stand.moved(reached));
        }
        let item = item.at(self, &at, line, &mut stmts);
        let mut value = method(item, PICK, vec![there]);
        for step in chain.steps {
            value = match step {
                Step::Map(f) => {
                    let f = self.read_expr(&f);
                    method(value, "map", vec![f])
                }
                _ => method(value, "copied", Vec::new()),
            };
        }
        ExprKind::Block {
            label: None,
            block: block(line, stmts, Some(value)),
        }
    }

    /// `next_back` of a bound iterator, which has one fewer then.
    pub(super) fn read_back(&mut self, chain: Chain) -> ExprKind {
        let line = chain.line;
        let Some(Stand { position, .. }) = &chain.stands else {
            return ExprKind::Tuple(Vec::new());
        };
        let Some(bound) = self.standing_at(position) else {
            return ExprKind::Tuple(Vec::new());
        };
        let there = self.fresh("there");
        let left = binary(BinaryOp::Lt, local(position, line), bound.count.clone());
        let mut stmts = vec![declare(&there, left, false)];
        if bound.unknown {
            stmts.extend(super::asked_by_places(&bound.item, line));
        }
        let fewer = method(bound.count.clone(), "wrapping_sub", vec![number(line, 1)]);
        let (place, value) = (Box::new(bound.count), Box::new(fewer));
        stmts.push(when(
            local(&there, line),
            ExprKind::Assign {
                place: place.clone(),
                value,
            },
        ));
        let at = self.fresh("at");
        stmts.push(declare(&at, *place, false));
        let mut inner = Vec::new();
        let item = bound.item.at(self, &at, line, &mut inner);
        if !bound.owned {
            stmts.extend(inner);
            let value = method(item, PICK, vec![local(&there, line)]);
            return ExprKind::Block {
                label: None,
                block: block(line, stmts, Some(value)),
            };
        }
        let value = some_where(local(&there, line), inner, item);
        ExprKind::Block {
            label: None,
            block: block(line, stmts, Some(value)),
        }
    }

    /// The item number `n`, or the last one, of a chain whose items nothing is done with: none is looked at before it.
    fn read_value_pick(&mut self, chain: Chain, n: Option<Expr>) -> ExprKind {
        let line = chain.line;
        let Source::Items(item, count) = chain.source else {
            return ExprKind::Tuple(Vec::new());
        };
        let (mut stmts, at) = (chain.setup, self.fresh("at"));
        let index = n.unwrap_or_else(|| method(count.clone(), "wrapping_sub", vec![number(line, 1)]));
        stmts.push(declare(&at, index, false));
        let there = binary(BinaryOp::Lt, local(&at, line), count.clone());
        if let Some(stand) = chain.stands.filter(|_| chain.advances) {
            let reached = method(count, "min", vec![local(&at, line)]);
            stmts.push(stand.moved(reached));
        }
        let mut inner = Vec::new();
        let item = item.at(self, &at, line, &mut inner);
        let value = some_where(there, inner, item);
        ExprKind::Block {
            label: None,
            block: block(line, stmts, Some(value)),
        }
    }

    /// By a loop: where items are values, or which are left depends on them.
    fn read_loop_pick(&mut self, mut chain: Chain, n: Option<Expr>) -> ExprKind {
        let (line, all) = (chain.line, self.fresh("result"));
        let first = n.is_some();
        if let Some(n) = n {
            let n = chain.name(self, "skipped", n);
            let counter = self.counter(&mut chain);
            chain.steps.push(Step::Skip(counter, n));
        }
        let (mut stmts, looped) = self.read_loop(chain, None, |reader, item| {
            let payload = Some(Box::new(item));
            let value = expr(
                line,
                ExprKind::Variant {
                    variant: Variant::Some,
                    payload,
                },
            );
            let (place, value) = (Box::new(local(&all, line)), Box::new(value));
            let mut stmts = vec![statement(expr(line, ExprKind::Assign { place, value }))];
            if first {
                stmts.push(statement(expr(line, reader.leave())));
            }
            block(line, stmts, None)
        });
        let none = ExprKind::Variant {
            variant: Variant::None,
            payload: None,
        };
        stmts.insert(0, declare(&all, expr(line, none), true));
        stmts.push(statement(looped));
        ExprKind::Block {
            label: None,
            block: block(line, stmts, Some(local(&all, line))),
        }
    }

    /// `remainder` of `chunks_exact`: the elements that fill no chunk; `None` of other chains.
    pub(super) fn read_remainder(&mut self, chain: Chain, mutable: bool) -> Option<ExprKind> {
        let (base, width) = chain.remainder?;
        let line = chain.line;
        let len = || method(local(&base, line), "len", Vec::new());
        let left = binary(BinaryOp::Rem, len(), width);
        let start = binary(BinaryOp::Sub, len(), left);
        let part = method(local(&base, line), SLICE, vec![start]);
        let op = if mutable { UnaryOp::RefMut } else { UnaryOp::Ref };
        let operand = Box::new(part);
        let value = expr(line, ExprKind::Unary { op, operand });
        Some(ExprKind::Block {
            label: None,
            block: block(line, chain.setup, Some(value)),
        })
    }
}

/// `Some(item)` where `there` holds, computed by `stmts`, else `None`.
fn some_where(there: Expr, stmts: Vec<Stmt>, item: Expr) -> Expr {
    let line = there.line;
    let some = ExprKind::Variant {
        variant: Variant::Some,
        payload: Some(Box::new(item)),
    };
    let none = ExprKind::Variant {
        variant: Variant::None,
        payload: None,
    };
    let none = ExprKind::Block {
        label: None,
        block: block(line, Vec::new(), Some(expr(line, none))),
    };
    let kind = ExprKind::If {
        cond: Box::new(there),
        then: block(line, stmts, Some(expr(line, some))),
        otherwise: Some(Box::new(expr(line, none))),
    };
    expr(line, kind)
}
