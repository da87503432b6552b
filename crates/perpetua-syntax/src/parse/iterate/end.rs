//! What ends a chain of iterators and gives a value: `sum`, `fold`, `any` and their kin.

use super::item::{binary, declare, method, not, pair, when};
use super::{Source, number};
use crate::ast::{BinaryOp, Expr, ExprKind, Line, PatternKind, Stmt, Type, TypeMember, UnaryOp, Variant};
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
        let (name, line) = (name_of(&call.method), line_of(call.method.span()));
        let args: Vec<&syn::Expr> = call.args.iter().collect();
        let ty = match call.turbofish.as_ref().and_then(|fish| fish.args.first()) {
            Some(syn::GenericArgument::Type(ty)) => Some(self.read_type(ty)),
            _ => None,
        };
        let all = self.fresh("result");
        let result = || local(&all, line);
        let store = |value: Expr| {
            let (place, value) = (Box::new(local(&all, line)), Box::new(value));
            statement(expr(line, ExprKind::Assign { place, value }))
        };
        let only = |stmt: Stmt| block(line, vec![stmt], None);
        let usize_zero = number(line, 0);
        let none = || some(line, None);
        let boolean = |value: bool| expr(line, ExprKind::Bool(value));
        // Never run: it says of what type the result is, before a closure asks.
        let typed = |value: Expr| {
            let (place, value) = (Box::new(result()), Box::new(value));
            when(boolean(false), ExprKind::Assign { place, value })
        };
        let mut last = None;
        // What the result is before the first item, and what each item does.
        let mut chain = self.read_iterable(&call.receiver);
        match (name.as_str(), &args[..]) {
            ("next", []) => return Some(self.read_pick(chain, Some(number(line, 0)), true)),
            ("next_back", []) if chain.stands.is_some() && chain.steps.is_empty() => {
                return Some(self.read_back(chain));
            }
            // What comes next is computed here and once more by `next`, which is the same where nothing of it changes.
            ("peek", []) if !self.changes(&chain) && self.copy_state(&mut chain).is_some() => {
                let item = self.read_pick(chain, Some(number(line, 0)), false);
                let item = method(expr(line, item), "as_ref", Vec::new());
                return Some(item.kind);
            }
            ("len", []) if chain.steps.iter().all(Step::keeps_length) => {
                self.by_places(&mut chain);
                if self.indexed(&mut chain).is_some()
                    && let Source::Items(_, count) = &chain.source
                {
                    let block = block(line, chain.setup, Some(count.clone()));
                    return Some(ExprKind::Block { label: None, block });
                }
            }
            ("count", []) if !chain.advances && self.is_plain(&mut chain) => {
                if let Source::Items(_, count) = &chain.source {
                    let block = block(line, chain.setup, Some(count.clone()));
                    return Some(ExprKind::Block { label: None, block });
                }
            }
            // A range's first number is its least one.
            ("min", []) if chain.is_upward() => {
                return Some(self.read_pick(chain, Some(number(line, 0)), false));
            }
            ("max", []) if chain.is_upward() => return Some(self.read_pick(chain, None, false)),
            ("nth", [n]) => {
                let n = self.read_expr(n);
                return Some(self.read_pick(chain, Some(n), true));
            }
            ("last", []) => {
                let goes_on = chain.advances;
                return Some(self.read_pick(chain, None, goes_on));
            }
            ("remainder" | "into_remainder", []) if chain.remainder.is_some() => {
                return self.read_remainder(chain, name != "remainder");
            }
            ("any" | "all" | "position" | "find" | "find_map", _) => chain.advances = chain.stands.is_some(),
            _ => {}
        }
        let (first, (mut stmts, looped)) = match (name.as_str(), &args[..]) {
            ("for_each", [f]) => {
                let looped = self.read_loop(chain, None, |reader, item| {
                    only(statement(reader.apply(f, vec![item])))
                });
                (expr(line, ExprKind::Tuple(Vec::new())), looped)
            }
            ("fold", [init, f]) => {
                let init = self.read_expr(init);
                let looped = self.read_loop(chain, None, |reader, item| {
                    only(store(reader.apply(f, vec![result(), item])))
                });
                (init, looped)
            }
            ("sum" | "product", []) => {
                let (op, via) = if name == "sum" {
                    (BinaryOp::Add, "Sum")
                } else {
                    (BinaryOp::Mul, "Product")
                };
                let member = TypeMember {
                    ty: ty.unwrap_or(Type::Infer),
                    via: Some(via.to_owned()),
                    name: name.clone(),
                };
                let start = ExprKind::TypeCall {
                    member: Box::new(member),
                    args: Vec::new(),
                };
                let looped = self.read_loop(chain, None, |_, item| {
                    let (place, value) = (Box::new(result()), Box::new(item));
                    only(statement(expr(
                        line,
                        ExprKind::CompoundAssign { op, place, value },
                    )))
                });
                (expr(line, start), looped)
            }
            ("count", []) => {
                let looped = self.read_loop(chain, None, |_, item| {
                    let (op, place) = (BinaryOp::Add, Box::new(result()));
                    let value = Box::new(number(line, 1));
                    let one = expr(line, ExprKind::CompoundAssign { op, place, value });
                    block(line, vec![statement(item), statement(one)], None)
                });
                (usize_zero, looped)
            }
            ("any" | "all", [f]) => {
                let any = name == "any";
                let looped = self.read_loop(chain, None, |reader, item| {
                    let holds = reader.apply(f, vec![item]);
                    let found = if any { holds } else { not(holds) };
                    let then = block(
                        line,
                        vec![store(boolean(any)), statement(expr(line, reader.leave()))],
                        None,
                    );
                    only(when(
                        found,
                        ExprKind::Block {
                            label: None,
                            block: then,
                        },
                    ))
                });
                (boolean(!any), looped)
            }
            ("position", [f]) => {
                let mut chain = chain;
                let at = self.counter(&mut chain);
                let looped = self.read_loop(chain, None, |reader, item| {
                    let found = reader.apply(f, vec![item]);
                    let then = vec![
                        store(some(line, Some(local(&at, line)))),
                        statement(expr(line, reader.leave())),
                    ];
                    let then = block(line, then, None);
                    let (op, place) = (BinaryOp::Add, Box::new(local(&at, line)));
                    let value = Box::new(number(line, 1));
                    let one = expr(line, ExprKind::CompoundAssign { op, place, value });
                    let stop = when(
                        found,
                        ExprKind::Block {
                            label: None,
                            block: then,
                        },
                    );
                    block(line, vec![stop, statement(one)], None)
                });
                (none(), looped)
            }
            ("find", [f]) => {
                let item_name = self.fresh("item");
                let looped = self.read_loop(chain, None, |reader, item| {
                    let operand = Box::new(local(&item_name, line));
                    let op = UnaryOp::Ref;
                    let found = reader.apply(f, vec![expr(line, ExprKind::Unary { op, operand })]);
                    let value = some(line, Some(local(&item_name, line)));
                    let then = block(
                        line,
                        vec![store(value), statement(expr(line, reader.leave()))],
                        None,
                    );
                    let stop = when(
                        found,
                        ExprKind::Block {
                            label: None,
                            block: then,
                        },
                    );
                    block(line, vec![declare(&item_name, item, false), stop], None)
                });
                (none(), looped)
            }
            ("find_map", [f]) => {
                let looped = self.read_loop(chain, None, |reader, item| {
                    let found = store(reader.apply(f, vec![item]));
                    let some = method(result(), "is_some", Vec::new());
                    block(line, vec![found, when(some, reader.leave())], None)
                });
                (none(), looped)
            }
            ("min_by_key" | "max_by_key", [f]) => {
                let (item_name, key) = (self.fresh("item"), self.fresh("key"));
                let (best, keyed) = (self.fresh("best"), self.fresh("keyed"));
                let looped = self.read_loop(chain, None, |reader, item| {
                    let (op, operand) = (UnaryOp::Ref, Box::new(local(&item_name, line)));
                    let keys = reader.apply(f, vec![expr(line, ExprKind::Unary { op, operand })]);
                    let field = |of: &str, index| {
                        let base = Box::new(local(of, line));
                        expr(line, ExprKind::TupleField { base, index })
                    };
                    // Of equals, the first is the least and the last the greatest.
                    let op = if name == "min_by_key" {
                        BinaryOp::Lt
                    } else {
                        BinaryOp::Ge
                    };
                    let better = binary(op, local(&key, line), field(&best, 0));
                    let new = || pair(line, local(&key, line), local(&item_name, line));
                    let block_of = |value| block(line, Vec::new(), Some(value));
                    let kept = ExprKind::Block {
                        label: None,
                        block: block_of(local(&best, line)),
                    };
                    let kind = ExprKind::If {
                        cond: Box::new(better),
                        then: block_of(new()),
                        otherwise: Some(Box::new(expr(line, kept))),
                    };
                    let better = some(line, Some(expr(line, kind)));
                    let choose = chosen(line, result(), &best, better, some(line, Some(new())));
                    let stmts = vec![
                        declare(&item_name, item, false),
                        declare(&key, keys, false),
                        typed(some(line, Some(new()))),
                        store(choose),
                    ];
                    block(line, stmts, None)
                });
                let value = ExprKind::TupleField {
                    base: Box::new(local(&keyed, line)),
                    index: 1,
                };
                let value = some(line, Some(expr(line, value)));
                last = Some(chosen(line, result(), &keyed, value, none()));
                (none(), looped)
            }
            ("min" | "max", []) | ("reduce" | "min_by" | "max_by", [_]) => {
                let (item_name, best) = (self.fresh("item"), self.fresh("best"));
                let looped = self.read_loop(chain, None, |reader, item| {
                    let (a, b) = (local(&best, line), local(&item_name, line));
                    let value = match &args[..] {
                        [f] if name == "reduce" => reader.apply(f, vec![a, b]),
                        [f] => {
                            let shared = |operand: &Expr| {
                                let (op, operand) = (UnaryOp::Ref, Box::new(operand.clone()));
                                expr(line, ExprKind::Unary { op, operand })
                            };
                            let order = reader.apply(f, vec![shared(&a), shared(&b)]);
                            // Of equals, the first is the least and the last the greatest.
                            let (then, otherwise) = if name == "min_by" { (b, a) } else { (a, b) };
                            let body = |value| block(line, Vec::new(), Some(value));
                            let otherwise = ExprKind::Block {
                                label: None,
                                block: body(otherwise),
                            };
                            let kind = ExprKind::If {
                                cond: Box::new(method(order, "is_gt", Vec::new())),
                                then: body(then),
                                otherwise: Some(Box::new(expr(line, otherwise))),
                            };
                            expr(line, kind)
                        }
                        _ => {
                            let member = Box::new(TypeMember {
                                ty: Type::Infer,
                                via: Some("Ord".to_owned()),
                                name: name.clone(),
                            });
                            // Of equals, `min` gives the first and `max` the second.
                            let args = vec![a, b];
                            expr(line, ExprKind::TypeCall { member, args })
                        }
                    };
                    let better = some(line, Some(value));
                    let alone = some(line, Some(local(&item_name, line)));
                    let choose = chosen(line, result(), &best, better, alone.clone());
                    block(
                        line,
                        vec![declare(&item_name, item, false), typed(alone), store(choose)],
                        None,
                    )
                });
                (none(), looped)
            }
            _ => {
                self.refuse_named(&call.method, Refusal::Iterator, &name);
                return Some(ExprKind::Tuple(Vec::new()));
            }
        };
        // What a `fold` starts with is computed behind what it goes over.
        let at = if name == "fold" { stmts.len() } else { 0 };
        stmts.insert(at, declare(&all, first, true));
        stmts.push(statement(looped));
        Some(ExprKind::Block {
            label: None,
            block: block(line, stmts, Some(last.unwrap_or_else(result))),
        })
    }
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
