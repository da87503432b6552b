//! What ends a chain of iterators and gives a value: `sum`, `fold`, `any` and their kin.

use std::ops::ControlFlow;

use super::item::{binary, declare, method, not, pair, when};
use super::{Chain, Source, number};
use crate::ast::{
    BinaryOp, Block, Expr, ExprKind, Line, PatternKind, Stmt, Type, TypeMember, UnaryOp, Variant,
};
use crate::parse::Refusal;
use crate::parse::chain::Step;
use crate::parse::reader::{Reader, line_of, name_of};
use crate::parse::sugar::{arm, binding, block, expr, local, statement};

impl Reader {
    /// A method's call that ends a chain; `None` where it is something else.
    pub(in crate::parse) fn read_chain_end(&mut self, call: &syn::ExprMethodCall) -> Option<ExprKind> {
        if !self.starts_chain(&call.receiver) {
            return None;
        }
        if let Some(longer) = self.longer_end(call) {
            return Some(self.read_expr(&longer).kind);
        }
        if let Some(compared) = self.read_items_compared(call) {
            return Some(compared);
        }
        let chain = self.read_iterable(&call.receiver);
        match self.read_end_at_once(call, chain) {
            ControlFlow::Break(known) => known,
            ControlFlow::Continue(chain) => Some(self.read_end_by_loop(call, chain)),
        }
    }

    /// What needs no loop of its own: one item, or how many there are; the chain where it does.
    fn read_end_at_once(
        &mut self,
        call: &syn::ExprMethodCall,
        mut chain: Chain,
    ) -> ControlFlow<Option<ExprKind>, Chain> {
        let (name, line) = (name_of(&call.method), line_of(call.method.span()));
        let first = || Some(number(line, 0));
        ControlFlow::Break(Some(
            match (name.as_str(), &call.args.iter().collect::<Vec<_>>()[..]) {
                ("next", []) => self.read_pick(chain, first(), true),
                ("next_back", []) if chain.stands.is_some() && chain.steps.is_empty() => {
                    self.read_back(chain)
                }
                // What comes next is computed here and once more by `next`, which is the same where nothing of it changes.
                ("peek", []) if !self.changes(&chain) && self.copy_state(&mut chain).is_some() => {
                    let item = self.read_pick(chain, first(), false);
                    method(expr(line, item), "as_ref", Vec::new()).kind
                }
                ("len", []) if chain.steps.iter().all(Step::keeps_length) => {
                    self.by_places(&mut chain);
                    if self.indexed(&mut chain).is_none() {
                        return ControlFlow::Continue(chain);
                    }
                    return chain.counted();
                }
                ("count", []) if !chain.advances && self.is_plain(&mut chain) => {
                    return chain.counted();
                }
                // A range's first number is its least one.
                ("min", []) if chain.is_upward() => self.read_pick(chain, first(), false),
                ("max", []) if chain.is_upward() => self.read_pick(chain, None, false),
                ("nth", [n]) => {
                    let n = self.read_expr(n);
                    self.read_pick(chain, Some(n), true)
                }
                ("last", []) => {
                    let goes_on = chain.advances;
                    self.read_pick(chain, None, goes_on)
                }
                ("remainder" | "into_remainder", []) if chain.remainder.is_some() => {
                    return ControlFlow::Break(self.read_remainder(chain, name != "remainder"));
                }
                _ => return ControlFlow::Continue(chain),
            },
        ))
    }

    /// What a loop over all items gives, or over those up to one that is searched for.
    fn read_end_by_loop(&mut self, call: &syn::ExprMethodCall, mut chain: Chain) -> ExprKind {
        let (name, line) = (name_of(&call.method), line_of(call.method.span()));
        let args: Vec<&syn::Expr> = call.args.iter().collect();
        let end = End {
            line,
            all: self.fresh("result"),
        };
        let searches = matches!(&*name, "any" | "all" | "position" | "find" | "find_map");
        if searches {
            chain.advances = chain.stands.is_some();
        }
        let mut last = None;
        // What the result is before the first item, and what each item does.
        let read = match (name.as_str(), &args[..]) {
            ("for_each", [f]) => {
                let looped = self.read_loop(chain, None, |reader, item| {
                    end.only(statement(reader.apply(f, vec![item])))
                });
                Some((expr(line, ExprKind::Tuple(Vec::new())), looped))
            }
            ("fold", [init, f]) => {
                let init = self.read_expr(init);
                let looped = self.read_loop(chain, None, |reader, item| {
                    end.only(end.store(reader.apply(f, vec![end.result(), item])))
                });
                Some((init, looped))
            }
            ("sum" | "product" | "count", []) => Some(self.read_total(call, chain, &end)),
            (_, [f]) if searches => Some(self.read_search(&name, f, chain, &end)),
            ("min_by_key" | "max_by_key", [f]) => {
                let keyed = self.fresh("keyed");
                let looped = self.read_best_by_key(&name, f, chain, &end);
                let value = ExprKind::TupleField {
                    base: Box::new(local(&keyed, line)),
                    index: 1,
                };
                let value = some(line, Some(expr(line, value)));
                last = Some(chosen(line, end.result(), &keyed, value, some(line, None)));
                Some((some(line, None), looped))
            }
            ("min" | "max", []) | ("reduce" | "min_by" | "max_by", [_]) => {
                let looped = self.read_best(&name, args.first().copied(), chain, &end);
                Some((some(line, None), looped))
            }
            _ => None,
        };
        let Some((first, (mut stmts, looped))) = read else {
            // What it would make may be what is wrong, as in `collect::<Vec<f32>>()`.
            self.read_turbofish(call);
            self.refuse_named(&call.method, Refusal::Iterator, &name);
            return ExprKind::Tuple(Vec::new());
        };
        // What a `fold` starts with is computed behind what it goes over.
        let at = if name == "fold" { stmts.len() } else { 0 };
        stmts.insert(at, declare(&end.all, first, true));
        stmts.push(statement(looped));
        ExprKind::Block {
            label: None,
            block: block(line, stmts, Some(last.unwrap_or_else(|| end.result()))),
        }
    }

    /// The type that stands behind a method's name.
    fn read_turbofish(&mut self, call: &syn::ExprMethodCall) -> Type {
        match call.turbofish.as_ref().and_then(|fish| fish.args.first()) {
            Some(syn::GenericArgument::Type(ty)) => self.read_type(ty),
            _ => Type::Infer,
        }
    }

    /// `sum`, `product`, `count`.
    fn read_total(
        &mut self,
        call: &syn::ExprMethodCall,
        chain: Chain,
        end: &End,
    ) -> (Expr, (Vec<Stmt>, Expr)) {
        let (name, line) = (name_of(&call.method), end.line);
        let (op, via) = match &*name {
            "sum" => (BinaryOp::Add, "Sum"),
            "product" => (BinaryOp::Mul, "Product"),
            _ => {
                let looped = self.read_loop(chain, None, |_, item| {
                    let one = add(&end.all, number(line, 1));
                    block(line, vec![statement(item), one], None)
                });
                return (number(line, 0), looped);
            }
        };
        let ty = self.read_turbofish(call);
        let via = Some(via.to_owned());
        let start = ExprKind::TypeCall {
            member: Box::new(TypeMember { ty, via, name }),
            args: Vec::new(),
        };
        let looped = self.read_loop(chain, None, |_, item| {
            let (place, value) = (Box::new(end.result()), Box::new(item));
            end.only(statement(expr(
                line,
                ExprKind::CompoundAssign { op, place, value },
            )))
        });
        (expr(line, start), looped)
    }

    /// `any`, `all`, `position`, `find`, `find_map`: the loop ends with the first item that is meant.
    fn read_search(
        &mut self,
        name: &str,
        f: &syn::Expr,
        mut chain: Chain,
        end: &End,
    ) -> (Expr, (Vec<Stmt>, Expr)) {
        let line = end.line;
        let boolean = |value: bool| expr(line, ExprKind::Bool(value));
        let first = match name {
            "any" => boolean(false),
            "all" => boolean(true),
            _ => some(line, None),
        };
        let looped = match name {
            "any" | "all" => self.read_loop(chain, None, |reader, item| {
                let holds = reader.apply(f, vec![item]);
                let found = if name == "any" { holds } else { not(holds) };
                end.only(end.found(reader, found, boolean(name == "any")))
            }),
            "position" => {
                let at = self.counter(&mut chain);
                self.read_loop(chain, None, |reader, item| {
                    let found = reader.apply(f, vec![item]);
                    let stop = end.found(reader, found, some(line, Some(local(&at, line))));
                    block(line, vec![stop, add(&at, number(line, 1))], None)
                })
            }
            "find" => {
                let item_name = self.fresh("item");
                self.read_loop(chain, None, |reader, item| {
                    let found = reader.apply(f, vec![shared(local(&item_name, line))]);
                    let stop = end.found(reader, found, some(line, Some(local(&item_name, line))));
                    block(line, vec![declare(&item_name, item, false), stop], None)
                })
            }
            _ => self.read_loop(chain, None, |reader, item| {
                let found = end.store(reader.apply(f, vec![item]));
                let some = method(end.result(), "is_some", Vec::new());
                block(line, vec![found, when(some, reader.leave())], None)
            }),
        };
        (first, looped)
    }

    /// `min_by_key`, `max_by_key`: the key and the item of the best one.
    fn read_best_by_key(&mut self, name: &str, f: &syn::Expr, chain: Chain, end: &End) -> (Vec<Stmt>, Expr) {
        let line = end.line;
        let (item_name, key) = (self.fresh("item"), self.fresh("key"));
        let best = self.fresh("best");
        self.read_loop(chain, None, |reader, item| {
            let keys = reader.apply(f, vec![shared(local(&item_name, line))]);
            let (base, index) = (Box::new(local(&best, line)), 0);
            let known = expr(line, ExprKind::TupleField { base, index });
            // Of equals, the first is the least and the last the greatest.
            let op = if name == "min_by_key" {
                BinaryOp::Lt
            } else {
                BinaryOp::Ge
            };
            let better = binary(op, local(&key, line), known);
            let new = || pair(line, local(&key, line), local(&item_name, line));
            let better = either(better, new(), local(&best, line));
            let better = some(line, Some(better));
            let choose = chosen(line, end.result(), &best, better, some(line, Some(new())));
            let stmts = vec![
                declare(&item_name, item, false),
                declare(&key, keys, false),
                end.typed(some(line, Some(new()))),
                end.store(choose),
            ];
            block(line, stmts, None)
        })
    }

    /// `min`, `max`, `min_by`, `max_by`, `reduce`: what is made of the items so far and the next one.
    fn read_best(&mut self, name: &str, f: Option<&syn::Expr>, chain: Chain, end: &End) -> (Vec<Stmt>, Expr) {
        let line = end.line;
        let (item_name, best) = (self.fresh("item"), self.fresh("best"));
        self.read_loop(chain, None, |reader, item| {
            let (a, b) = (local(&best, line), local(&item_name, line));
            let value = match f {
                Some(f) if name == "reduce" => reader.apply(f, vec![a, b]),
                Some(f) => {
                    let order = reader.apply(f, vec![shared(a.clone()), shared(b.clone())]);
                    // Of equals, the first is the least and the last the greatest.
                    let (then, otherwise) = if name == "min_by" { (b, a) } else { (a, b) };
                    either(method(order, "is_gt", Vec::new()), then, otherwise)
                }
                None => {
                    let member = Box::new(TypeMember {
                        ty: Type::Infer,
                        via: Some("Ord".to_owned()),
                        name: name.to_owned(),
                    });
                    // Of equals, `min` gives the first and `max` the second.
                    let args = vec![a, b];
                    expr(line, ExprKind::TypeCall { member, args })
                }
            };
            let better = some(line, Some(value));
            let alone = some(line, Some(local(&item_name, line)));
            let choose = chosen(line, end.result(), &best, better, alone.clone());
            block(
                line,
                vec![
                    declare(&item_name, item, false),
                    end.typed(alone),
                    end.store(choose),
                ],
                None,
            )
        })
    }
}

impl Chain {
    /// How many items there are, where that is known without a loop.
    fn counted(self) -> ControlFlow<Option<ExprKind>, Chain> {
        match self.source {
            Source::Items(_, count) => ControlFlow::Break(Some(ExprKind::Block {
                label: None,
                block: block(self.line, self.setup, Some(count)),
            })),
            Source::Range(_) => ControlFlow::Continue(self),
        }
    }
}

/// The end of a chain: its line, and the variable with what it gives.
struct End {
    line: Line,
    all: String,
}

impl End {
    fn result(&self) -> Expr {
        local(&self.all, self.line)
    }

    fn assign(&self, value: Expr) -> ExprKind {
        let (place, value) = (Box::new(self.result()), Box::new(value));
        ExprKind::Assign { place, value }
    }

    fn store(&self, value: Expr) -> Stmt {
        statement(expr(self.line, self.assign(value)))
    }

    /// Never run: it says of what type the result is, before a closure asks.
    fn typed(&self, value: Expr) -> Stmt {
        when(expr(self.line, ExprKind::Bool(false)), self.assign(value))
    }

    fn only(&self, stmt: Stmt) -> Block {
        block(self.line, vec![stmt], None)
    }

    /// Where it holds, `value` is the result, and the loop is left.
    fn found(&self, reader: &Reader, holds: Expr, value: Expr) -> Stmt {
        let leave = statement(expr(self.line, reader.leave()));
        let then = block(self.line, vec![self.store(value), leave], None);
        let kind = ExprKind::Block {
            label: None,
            block: then,
        };
        when(holds, kind)
    }
}

/// `&value`.
fn shared(value: Expr) -> Expr {
    let (line, op, operand) = (value.line, UnaryOp::Ref, Box::new(value));
    expr(line, ExprKind::Unary { op, operand })
}

/// `name += value`.
fn add(name: &str, value: Expr) -> Stmt {
    let line = value.line;
    let (op, place, value) = (BinaryOp::Add, Box::new(local(name, line)), Box::new(value));
    statement(expr(line, ExprKind::CompoundAssign { op, place, value }))
}

/// `if cond { then } else { otherwise }`.
fn either(cond: Expr, then: Expr, otherwise: Expr) -> Expr {
    let line = cond.line;
    let block_of = |value| block(line, Vec::new(), Some(value));
    let otherwise = ExprKind::Block {
        label: None,
        block: block_of(otherwise),
    };
    let kind = ExprKind::If {
        cond: Box::new(cond),
        then: block_of(then),
        otherwise: Some(Box::new(expr(line, otherwise))),
    };
    expr(line, kind)
}

/// `Some(value)`, or `None`.
fn some(line: Line, value: Option<Expr>) -> Expr {
    let variant = match value {
        Some(_) => Variant::Some,
        None => Variant::None,
    };
    let payload = value.map(Box::new);
    expr(line, ExprKind::Variant { variant, payload })
}

/// `match value { Some(best) => then, _ => otherwise }`.
fn chosen(line: Line, value: Expr, best: &str, then: Expr, otherwise: Expr) -> Expr {
    let scrutinee = Box::new(value);
    let kind = PatternKind::Variant {
        variant: Variant::Some,
        payload: Some(Box::new(binding(best, line))),
    };
    let arms = vec![arm(line, kind, then), arm(line, PatternKind::Wild, otherwise)];
    expr(line, ExprKind::Match { scrutinee, arms })
}
