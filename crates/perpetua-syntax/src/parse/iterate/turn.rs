//! The loop that a chain is, and what one turn of it does.

use super::bound::{Stand, set};
use super::item::{CONTINUE, binary, declare, method, not, pair, when};
use super::{Chain, Source, number};
use crate::ast::{BinaryOp, Block, Expr, ExprKind, PathUsage, Range, Stmt, StmtKind, UnaryOp};
use crate::parse::Refusal;
use crate::parse::chain::Step;
use crate::parse::expr::peel;
use crate::parse::library::{is_reverse, reversed};
use crate::parse::path::{closure_of_method, single_name, starts_upper, variant_of};
use crate::parse::reader::{Reader, line_of, name_of};
use crate::parse::sugar::{binding, block, expr, local, statement};
use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::Visit;

/// What a loop does with each item.
type Body<'a> = Box<dyn FnOnce(&mut Reader, Expr) -> Block + 'a>;

/// Finds a local that may change and is named.
struct Named<'a> {
    reader: &'a Reader,
    changing: Option<String>,
}

impl Visit<'_> for Named<'_> {
    fn visit_expr_path(&mut self, path: &syn::ExprPath) {
        let name = single_name(&path.path).filter(|name| self.reader.may_change(name));
        self.changing = self.changing.take().or(name);
    }

    fn visit_macro(&mut self, call: &syn::Macro) {
        self.look_at(call.tokens.clone());
    }
}

impl Named<'_> {
    fn look_at(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    let name = Some(name_of(&ident)).filter(|name| self.reader.may_change(name));
                    self.changing = self.changing.take().or(name);
                }
                TokenTree::Group(group) => self.look_at(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
}

impl Reader {
    /// The loop over a chain; `body` gets each item.
    pub(super) fn read_loop(
        &mut self,
        chain: Chain,
        label: Option<String>,
        body: impl FnOnce(&mut Self, Expr) -> Block,
    ) -> (Vec<Stmt>, Expr) {
        let own = label.clone();
        self.in_loop(own.as_ref(), |reader| {
            reader.read_turns(chain, label, Box::new(body))
        })
    }

    /// A loop in a loop, which goes over the items of each item of `outer`.
    fn read_two_loops(
        &mut self,
        outer: Chain,
        (function, within): (Option<&syn::Expr>, Option<String>),
        steps: Vec<Step>,
        label: Option<String>,
        body: Body<'_>,
    ) -> (Vec<Stmt>, Expr) {
        let (line, own_label) = (outer.line, self.fresh("outer"));
        let outer_label = own_label.clone();
        let stands = outer.stands.clone();
        let turn: Body<'_> = Box::new(|reader, item| {
            reader.scoped(|reader| {
                let mut stmts = Vec::new();
                let mut inner = match function.map(peel) {
                    Some(syn::Expr::Closure(closure)) if closure.inputs.len() == 1 => {
                        for pattern in &closure.inputs {
                            let pattern = match pattern {
                                syn::Pat::Type(typed) => &*typed.pat,
                                pattern => pattern,
                            };
                            stmts.push(Stmt {
                                line,
                                kind: StmtKind::Let {
                                    pattern: reader.read_let_pattern(pattern),
                                    ty: None,
                                    init: Some(item.clone()),
                                },
                            });
                        }
                        reader.refuse_move(closure);
                        reader.read_beside(&closure.body)
                    }
                    Some(function) => {
                        let items = reader.apply(function, vec![item]);
                        reader.items_of(items)
                    }
                    None => reader.items_of(item),
                };
                // The loops around, where this one is within those of a chain already.
                let all = reader.leaves().unwrap_or(outer_label);
                if let Some(within) = &within {
                    reader.stand_within(within, function, &mut inner);
                }
                inner.steps.push(Step::Leaving(all.clone()));
                inner.steps.extend(steps);
                let (setup, looped) =
                    reader.in_one_of(label.clone(), all, |reader| reader.read_turns(inner, label, body));
                stmts.extend(setup);
                stmts.push(statement(looped));
                // The next item is looked at from its start.
                if let Some(within) = within {
                    stmts.push(set(local(&within, line), number(line, 0)));
                    stmts.extend(stands.map(|stand| {
                        let position = local(&stand.position, line);
                        let behind = method(position.clone(), "saturating_add", vec![number(line, 1)]);
                        set(position, behind)
                    }));
                }
                block(line, stmts, None)
            })
        });
        self.read_turns(outer, Some(own_label), turn)
    }

    /// Goes over what is left of the items that an item of a stopped iterator gives.
    fn stand_within(&mut self, within: &str, function: Option<&syn::Expr>, inner: &mut Chain) {
        let alone = inner.stands.is_none() && inner.steps.iter().all(Step::is_alone);
        match function {
            Some(function) if !alone => self.refuse_named(function, Refusal::IteratorValue, "flat_map"),
            _ => {
                self.by_places(inner);
                self.indexed_source(inner);
                self.stand_at(within.to_owned(), inner);
                inner.advances = true;
            }
        }
    }

    fn read_turns(&mut self, chain: Chain, label: Option<String>, body: Body<'_>) -> (Vec<Stmt>, Expr) {
        let stands = chain.stands.filter(|_| chain.advances);
        let Chain {
            line,
            setup,
            source,
            steps,
            unknown,
            ..
        } = chain;
        if let Some(at) = steps.iter().position(|step| matches!(step, Step::Flat(..))) {
            let mut steps = steps.into_iter();
            let mut before: Vec<Step> = steps.by_ref().take(at).collect();
            // When all are there, the next one's items are not asked for.
            let ends = steps.clone().filter_map(|step| match step {
                Step::Take(counter, n) | Step::Zip(counter, _, n, true) => Some(Step::Until(counter, n)),
                _ => None,
            });
            before.extend(ends);
            let (function, within) = match steps.next() {
                Some(Step::Flat(function, within)) => (function, within),
                _ => (None, None),
            };
            let holds = within.is_some();
            let stands = stands.map(|stand| Stand { holds, ..stand });
            let outer = Chain {
                line,
                setup,
                source,
                steps: before,
                owned: true,
                unknown,
                remainder: None,
                stands,
                advances: true,
                lends: false,
            };
            let flat = (function.as_ref(), within);
            return self.read_two_loops(outer, flat, steps.collect(), label, body);
        }
        let (index, mut stmts) = (self.fresh("index"), Vec::new());
        if let Some(stand) = stands {
            stmts.push(stand.moved(local(&index, line)));
        }
        let (range, item) = match source {
            Source::Range(range) => (range, local(&index, line)),
            Source::Items(item, end) => {
                let range = Range {
                    start: number(line, 0),
                    end,
                    inclusive: false,
                    adaptors: Vec::new(),
                };
                let item = item.at(self, &index, line, &mut stmts);
                (range, item)
            }
        };
        let item = self.read_steps(steps, item, &mut stmts);
        let body = body(self, item);
        stmts.extend(body.stmts);
        let body = Block { stmts, ..body };
        let kind = ExprKind::For {
            label,
            pattern: binding(&index, line),
            range: Box::new(range),
            body,
        };
        (setup, expr(line, kind))
    }

    pub(super) fn read_steps(&mut self, steps: Vec<Step>, mut item: Expr, stmts: &mut Vec<Stmt>) -> Expr {
        // What stops the loop looks before an item is made.
        let mut label = self.leaves();
        for step in &steps {
            if let Step::Leaving(all) = step {
                label = Some(all.clone());
            }
            let full = match step {
                Step::Take(counter, n) | Step::Zip(counter, _, n, true) | Step::Until(counter, n) => {
                    binary(BinaryOp::Ge, local(counter, n.line), n.clone())
                }
                Step::TakeWhile(_, Some(over)) => local(over, item.line),
                _ => continue,
            };
            let (label, value) = (label.clone(), None);
            stmts.insert(0, when(full, ExprKind::Break { label, value }));
        }
        for step in steps {
            let line = item.line;
            let one = |counter: &str| {
                let place = Box::new(local(counter, line));
                let (op, value) = (BinaryOp::Add, Box::new(number(line, 1)));
                statement(expr(line, ExprKind::CompoundAssign { op, place, value }))
            };
            if let Step::Until(..) = &step {
                continue;
            }
            if let Step::Leaving(all) = step {
                self.leave_by(all);
                continue;
            }
            if let Step::Map(f) = &step {
                item = self.apply(f, vec![item]);
                continue;
            }
            let name = self.fresh("item");
            if let Step::Called(function) = &step {
                let kind = ExprKind::CallLocal {
                    name: function.clone(),
                    args: Vec::new(),
                };
                stmts.push(declare(&name, expr(line, kind), false));
                stmts.push(when(
                    method(local(&name, line), "is_none", Vec::new()),
                    self.leave(),
                ));
                item = method(local(&name, line), "unwrap", Vec::new());
                continue;
            }
            if let Step::FilterMap(f) | Step::MapWhile(f) | Step::Scan(_, f) | Step::With(_, f, _) = &step {
                let args = match &step {
                    Step::Scan(state, _) => {
                        let (op, operand) = (UnaryOp::RefMut, Box::new(local(state, line)));
                        vec![expr(line, ExprKind::Unary { op, operand }), item]
                    }
                    _ => vec![item],
                };
                let mapped = self.apply(f, args);
                let otherwise = match step {
                    Step::FilterMap(_) => CONTINUE,
                    _ => self.leave(),
                };
                stmts.push(declare(&name, mapped, false));
                stmts.push(when(method(local(&name, line), "is_none", Vec::new()), otherwise));
                item = method(local(&name, line), "unwrap", Vec::new());
                continue;
            }
            stmts.push(declare(&name, item, false));
            let value = || local(&name, line);
            item = match &step {
                Step::Filter(f) | Step::TakeWhile(f, _) | Step::Inspect(f) | Step::SkipWhile(_, f) => {
                    let operand = Box::new(value());
                    let op = UnaryOp::Ref;
                    let done = self.apply(f, vec![expr(line, ExprKind::Unary { op, operand })]);
                    let acted = match &step {
                        Step::SkipWhile(skips, _) => {
                            let and = binary(BinaryOp::And, local(skips, line), done);
                            stmts.push(when(and, CONTINUE));
                            let (place, value) = (local(skips, line), expr(line, ExprKind::Bool(false)));
                            let (place, value) = (Box::new(place), Box::new(value));
                            statement(expr(line, ExprKind::Assign { place, value }))
                        }
                        Step::Filter(_) => when(not(done), CONTINUE),
                        Step::TakeWhile(_, over) => {
                            let yes = expr(line, ExprKind::Bool(true));
                            let over = over.as_ref().map(|over| set(local(over, line), yes));
                            let left = statement(expr(line, self.leave()));
                            let block = block(line, over.into_iter().chain([left]).collect(), None);
                            when(not(done), ExprKind::Block { label: None, block })
                        }
                        _ => statement(done),
                    };
                    stmts.push(acted);
                    value()
                }
                Step::Enumerate(counter) => {
                    let numbered = self.fresh("item");
                    stmts.push(declare(
                        &numbered,
                        pair(line, local(counter, line), value()),
                        false,
                    ));
                    stmts.push(one(counter));
                    local(&numbered, line)
                }
                Step::Skip(counter, n) => {
                    let early = binary(BinaryOp::Lt, local(counter, line), n.clone());
                    let then = block(line, vec![one(counter), statement(expr(line, CONTINUE))], None);
                    stmts.push(when(
                        early,
                        ExprKind::Block {
                            label: None,
                            block: then,
                        },
                    ));
                    value()
                }
                Step::Take(counter, _) => {
                    stmts.push(one(counter));
                    value()
                }
                Step::Every(counter, step) => {
                    let number = self.fresh("number");
                    stmts.push(declare(&number, local(counter, line), false));
                    stmts.push(one(counter));
                    let rest = binary(BinaryOp::Rem, local(&number, line), step.clone());
                    stmts.push(when(binary(BinaryOp::Ne, rest, super::number(line, 0)), CONTINUE));
                    value()
                }
                Step::Zip(counter, other, count, first) => {
                    if !first {
                        let full = binary(BinaryOp::Ge, local(counter, line), count.clone());
                        stmts.push(when(full, self.leave()));
                    }
                    let other = other.at(self, counter, line, stmts);
                    let both = if *first {
                        [other, value()]
                    } else {
                        [value(), other]
                    };
                    let zipped = self.fresh("item");
                    let [a, b] = both;
                    stmts.push(declare(&zipped, pair(line, a, b), false));
                    stmts.push(one(counter));
                    local(&zipped, line)
                }
                Step::Copied => {
                    let operand = Box::new(value());
                    expr(
                        line,
                        ExprKind::Unary {
                            op: UnaryOp::Deref,
                            operand,
                        },
                    )
                }
                Step::Map(_)
                | Step::FilterMap(_)
                | Step::MapWhile(_)
                | Step::Called(_)
                | Step::Scan(..)
                | Step::Until(..)
                | Step::Leaving(_)
                | Step::With(..)
                | Step::Flat(..) => value(),
            };
        }
        item
    }

    /// Calls what a method of iterators was given: a closure, or a function by its name.
    pub(in crate::parse) fn apply(&mut self, function: &syn::Expr, args: Vec<Expr>) -> Expr {
        let line = line_of(function.span());
        if let syn::Expr::Path(path) = peel(function)
            && let Some(named) = self.named_function(&path.path)
        {
            return self.apply(&syn::Expr::Path(named), args);
        }
        if let syn::Expr::Path(path) = peel(function)
            && let Some(closure) = closure_of_method(path)
        {
            return self.apply(&closure, args);
        }
        let kind = match peel(function) {
            syn::Expr::Path(path) if let Some(qself) = &path.qself => ExprKind::TypeCall {
                member: Box::new(self.qualified_member(qself, &path.path)),
                args,
            },
            syn::Expr::Path(path) => match single_name(&path.path) {
                Some(name) if self.is_local(&name) => ExprKind::CallLocal { name, args },
                _ if let (Some(variant), 1) = (variant_of(&path.path), args.len()) => ExprKind::Variant {
                    variant,
                    payload: args.into_iter().next().map(Box::new),
                },
                _ if is_reverse(&path.path) && args.len() == 1 => args
                    .into_iter()
                    .next()
                    .map_or(ExprKind::Tuple(Vec::new()), reversed),
                _ if path
                    .path
                    .segments
                    .last()
                    .is_some_and(|last| starts_upper(&name_of(&last.ident))) =>
                {
                    self.construct(&path.path, args)
                }
                _ => match self.called_member(&path.path) {
                    Some(member) => ExprKind::TypeCall {
                        member: Box::new(member),
                        args,
                    },
                    None => ExprKind::Call {
                        callee: self.path(&path.path, PathUsage::Call),
                        args,
                    },
                },
            },
            other => {
                if let syn::Expr::Closure(closure) = other {
                    self.refuse_move(closure);
                }
                ExprKind::Apply {
                    function: Box::new(self.read_expr(other)),
                    args,
                }
            }
        };
        expr(line, kind)
    }

    /// Refuses to move what changes into a closure: it would change a copy.
    fn refuse_move(&mut self, closure: &syn::ExprClosure) {
        let Some(moved) = &closure.capture else { return };
        let mut named = Named {
            reader: self,
            changing: None,
        };
        named.visit_expr(&closure.body);
        if let Some(name) = named.changing {
            self.refuse_named(moved, Refusal::IteratorMove, &name);
        }
    }

    /// `for` over what is no plain range.
    pub(in crate::parse) fn read_for_chain(
        &mut self,
        expr: &syn::ExprForLoop,
        label: Option<String>,
    ) -> ExprKind {
        let is_plain = std::mem::take(&mut self.plain);
        if let (false, Some(late)) = (is_plain, self.read_late_for(expr, label.as_ref())) {
            return late;
        }
        self.plain = is_plain;
        let chain = self.read_iterable(&expr.expr);
        let line = chain.line;
        let (mut stmts, looped) = self.read_loop(chain, label, |reader, item| {
            reader.scoped(|reader| {
                let pattern = reader.read_let_pattern(&expr.pat);
                let body = reader.read_block(&expr.body);
                let end = body.end_line;
                let bind = Stmt {
                    line,
                    kind: StmtKind::Let {
                        pattern,
                        ty: None,
                        init: Some(item),
                    },
                };
                let body = ExprKind::Block {
                    label: None,
                    block: body,
                };
                block(end, vec![bind, statement(Expr::new(end, body))], None)
            })
        });
        stmts.push(statement(looped));
        ExprKind::Block {
            label: None,
            block: block(line, stmts, None),
        }
    }
}
