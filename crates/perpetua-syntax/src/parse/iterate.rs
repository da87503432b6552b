//! Iterators: a chain from `iter`, `chunks_exact`, a range and their kin to what ends it is a `for` over indices. The tree has
//! that loop, so that nothing behind the reader knows chains. No iterator is ever a value.

mod end;
mod item;
mod turn;

use super::Refusal;
use super::expr::{peel, usize_literal as number};
use super::reader::{Reader, line_of, name_of};
use super::sugar::{block, expr, local};
use crate::ast::{BinaryOp, Expr, ExprKind, Line, Range, RangeAdaptor, Scalar, Stmt, Type, TypeMember};
use crate::nesting::Level;
use item::{Item, binary, declare, method};
use syn::spanned::Spanned;

/// What is done with each item before the next is looked at.
enum Step<'a> {
    Map(&'a syn::Expr),
    Filter(&'a syn::Expr),
    FilterMap(&'a syn::Expr),
    TakeWhile(&'a syn::Expr),
    Inspect(&'a syn::Expr),
    Copied,
    /// With the counter's name.
    Enumerate(String),
    Skip(String, Expr),
    Take(String, Expr),
}

/// What the loop counts.
#[expect(clippy::large_enum_variant, reason = "a chain has one")]
enum Source {
    /// Its own values.
    Range(Range),
    /// Indices below a number.
    Items(Item, Expr),
}

/// A chain without its end.
pub(super) struct Chain<'a> {
    line: Line,
    setup: Vec<Stmt>,
    source: Source,
    steps: Vec<Step<'a>>,
}

/// Whether an expression is a chain: a method of iterators on a range, on `iter` or its kin, or on a chain.
pub(super) fn is_chain(call: &syn::ExprMethodCall) -> bool {
    is_source(call) || is_adaptor(&name_of(&call.method)) && starts_chain(&call.receiver)
}

fn starts_chain(value: &syn::Expr) -> bool {
    match peel(value) {
        syn::Expr::Range(_) => true,
        syn::Expr::MethodCall(call) => is_chain(call),
        _ => false,
    }
}

/// Whether a method makes an iterator of a slice or an array.
fn is_source(call: &syn::ExprMethodCall) -> bool {
    match name_of(&call.method).as_str() {
        "iter" | "iter_mut" => call.args.is_empty(),
        "into_iter" => call.args.is_empty() && !starts_chain(&call.receiver),
        "chunks" | "chunks_mut" | "chunks_exact" | "chunks_exact_mut" | "windows" => call.args.len() == 1,
        _ => false,
    }
}

fn is_adaptor(name: &str) -> bool {
    matches!(
        name,
        "enumerate"
            | "zip"
            | "rev"
            | "step_by"
            | "skip"
            | "take"
            | "map"
            | "filter"
            | "filter_map"
            | "take_while"
            | "inspect"
            | "copied"
            | "cloned"
            | "into_iter"
            | "by_ref"
    )
}

impl<'a> Chain<'a> {
    /// Gives the value a name in front of the loop.
    fn name(&mut self, reader: &mut Reader, what: &str, value: Expr) -> Expr {
        let (name, line) = (reader.fresh(what), value.line);
        self.setup.push(declare(&name, value, false));
        local(&name, line)
    }

    /// Changes the item and how many there are.
    fn items(&mut self, change: impl FnOnce(Item, Expr) -> (Item, Expr)) {
        let line = self.line;
        let nothing = Source::Items(Item::Count(number(line, 0)), number(line, 0));
        let Source::Items(item, count) = std::mem::replace(&mut self.source, nothing) else {
            return;
        };
        let (item, count) = change(item, count);
        self.source = Source::Items(item, count);
    }
}

impl Reader {
    /// A name that no other of the reader's own has, and none of the user's.
    pub(super) fn fresh(&mut self, what: &str) -> String {
        self.names += 1;
        format!("{what} {}", self.names)
    }

    /// What a `for` loop or `zip` takes that is no plain range: a chain, a slice, an array.
    fn read_iterable<'a>(&mut self, value: &'a syn::Expr) -> Chain<'a> {
        let line = line_of(value.span());
        let mut chain = Chain {
            line,
            setup: Vec::new(),
            source: Source::Items(Item::Count(number(line, 0)), number(line, 0)),
            steps: Vec::new(),
        };
        self.read_chain(value, &mut chain);
        chain
    }

    fn read_chain<'a>(&mut self, value: &'a syn::Expr, chain: &mut Chain<'a>) {
        let Some(_level) = Level::enter() else {
            return self.refuse(value, Refusal::TooDeep);
        };
        match peel(value) {
            syn::Expr::Range(range) if range.start.is_some() => {
                chain.source = match (&range.start, &range.end) {
                    (Some(start), None) => {
                        let start = self.read_expr(start);
                        let start = chain.name(self, "start", start);
                        let most = TypeMember {
                            ty: Type::Scalar(Scalar::Usize),
                            via: None,
                            name: "MAX".to_owned(),
                        };
                        let most = expr(chain.line, ExprKind::TypeConst(Box::new(most)));
                        Source::Items(Item::Count(start), most)
                    }
                    _ => Source::Range(self.read_range(value)),
                };
            }
            syn::Expr::MethodCall(call) if is_source(call) => self.read_source(call, chain),
            syn::Expr::MethodCall(call) if is_chain(call) => {
                self.read_chain(&call.receiver, chain);
                self.read_adaptor(call, chain);
            }
            other => {
                let base = self.read_expr(other);
                self.elements(base, "into_iter", chain);
            }
        }
    }

    fn elements(&mut self, base: Expr, how: &str, chain: &mut Chain<'_>) {
        let (name, line) = (self.fresh("items"), chain.line);
        chain
            .setup
            .push(declare(&name, method(base, how, Vec::new()), false));
        let count = method(local(&name, line), "len", Vec::new());
        let count = chain.name(self, "count", count);
        chain.source = Source::Items(Item::Element(name), count);
    }

    fn read_source<'a>(&mut self, call: &'a syn::ExprMethodCall, chain: &mut Chain<'a>) {
        let name = name_of(&call.method);
        let line = line_of(call.method.span());
        let base = self.read_expr(&call.receiver);
        let Some(width) = call.args.first() else {
            return self.elements(base, &name, chain);
        };
        let how = if name.ends_with("_mut") {
            "iter_mut"
        } else {
            "iter"
        };
        let width = self.read_expr(width);
        self.elements(base, how, chain);
        let width = chain.name(self, "width", width);
        chain.items(|item, len| match item {
            Item::Element(base) => {
                let (step, count) = match name.as_str() {
                    "windows" => {
                        let beyond = binary(BinaryOp::Add, len, number(line, 1));
                        let count = method(beyond, "saturating_sub", vec![width.clone()]);
                        (number(line, 1), count)
                    }
                    "chunks" | "chunks_mut" => (width.clone(), method(len, "div_ceil", vec![width.clone()])),
                    _ => (width.clone(), binary(BinaryOp::Div, len, width.clone())),
                };
                let end = None;
                (
                    Item::Part {
                        base,
                        step,
                        width,
                        end,
                    },
                    count,
                )
            }
            other => (other, len),
        });
        // How many there are is named, and a last chunk that is shorter ends with the slice.
        let short = name.starts_with("chunks") && !name.contains("exact");
        let Source::Items(Item::Part { base, end, .. }, count) = &mut chain.source else {
            return;
        };
        let (base, count_name) = (base.clone(), self.fresh("count"));
        let given = std::mem::replace(count, local(&count_name, line));
        let beyond = short.then(|| self.fresh("end"));
        end.clone_from(&beyond);
        chain.setup.push(declare(&count_name, given, false));
        if let Some(beyond) = beyond {
            let len = method(local(&base, line), "len", Vec::new());
            chain.setup.push(declare(&beyond, len, false));
        }
    }

    /// An adaptor behind the chain that was read.
    fn read_adaptor<'a>(&mut self, call: &'a syn::ExprMethodCall, chain: &mut Chain<'a>) {
        let (name, line) = (name_of(&call.method), line_of(call.method.span()));
        let usual = chain.steps.is_empty();
        match (name.as_str(), call.args.first()) {
            ("copied" | "cloned", None) => chain.steps.push(Step::Copied),
            ("into_iter" | "by_ref", None) => {}
            ("map", Some(f)) => chain.steps.push(Step::Map(f)),
            ("filter", Some(f)) => chain.steps.push(Step::Filter(f)),
            ("filter_map", Some(f)) => chain.steps.push(Step::FilterMap(f)),
            ("take_while", Some(f)) => chain.steps.push(Step::TakeWhile(f)),
            ("inspect", Some(f)) => chain.steps.push(Step::Inspect(f)),
            ("rev", None) if usual => match &mut chain.source {
                Source::Range(range) => range.adaptors.push(RangeAdaptor::Rev),
                Source::Items(..) => chain.items(|item, count| {
                    let last = method(count.clone(), "wrapping_sub", vec![number(line, 1)]);
                    (Item::Rev(Box::new(item), last), count)
                }),
            },
            ("step_by", Some(step)) if usual => {
                let step = self.read_expr(step);
                if let Source::Range(range) = &mut chain.source {
                    return range.adaptors.push(RangeAdaptor::StepBy(Box::new(step)));
                }
                let step = chain.name(self, "step", step);
                chain.items(|item, count| {
                    let count = method(count, "div_ceil", vec![step.clone()]);
                    (Item::From(Box::new(item), number(line, 0), step), count)
                });
                self.count_once(chain);
            }
            ("zip", Some(other)) if usual => {
                let mut other = self.read_iterable(other);
                let (Some(()), Some(()), true) = (
                    self.indexed(chain),
                    self.indexed(&mut other),
                    other.steps.is_empty(),
                ) else {
                    return self.refuse_named(&call.method, Refusal::IteratorOrder, &name);
                };
                chain.setup.append(&mut other.setup);
                let Source::Items(second, least) = other.source else {
                    return;
                };
                chain.items(|item, count| {
                    let count = method(count, "min", vec![least]);
                    (Item::Zip(Box::new(item), Box::new(second)), count)
                });
                self.count_once(chain);
            }
            ("enumerate", None) => match &chain.source {
                Source::Items(..) if usual => {
                    chain.items(|item, count| (Item::Enumerate(Box::new(item)), count));
                }
                _ => {
                    let counter = self.counter(chain);
                    chain.steps.push(Step::Enumerate(counter));
                }
            },
            ("skip", Some(n)) => {
                let n = self.read_expr(n);
                let n = chain.name(self, "skipped", n);
                match &chain.source {
                    Source::Items(..) if usual => {
                        chain.items(|item, count| {
                            let left = method(count, "saturating_sub", vec![n.clone()]);
                            (Item::From(Box::new(item), n, number(line, 1)), left)
                        });
                        self.count_once(chain);
                    }
                    _ => {
                        let counter = self.counter(chain);
                        chain.steps.push(Step::Skip(counter, n));
                    }
                }
            }
            ("take", Some(n)) => {
                let n = self.read_expr(n);
                let n = chain.name(self, "taken", n);
                match &chain.source {
                    Source::Items(..) if usual => {
                        chain.items(|item, count| (item, method(count, "min", vec![n])));
                        self.count_once(chain);
                    }
                    _ => {
                        let counter = self.counter(chain);
                        chain.steps.push(Step::Take(counter, n));
                    }
                }
            }
            ("rev" | "step_by" | "zip", _) => {
                self.refuse_named(&call.method, Refusal::IteratorOrder, &name);
            }
            _ => self.refuse_named(&call.method, Refusal::Iterator, &name),
        }
    }

    /// Computes in front of the loop how many there are.
    fn count_once(&mut self, chain: &mut Chain<'_>) {
        if let Source::Items(_, count) = &mut chain.source {
            let name = self.fresh("count");
            let value = std::mem::replace(count, local(&name, chain.line));
            chain.setup.push(declare(&name, value, false));
        }
    }

    /// A counter in front of the loop.
    fn counter(&mut self, chain: &mut Chain<'_>) -> String {
        let name = self.fresh("counter");
        chain.setup.push(declare(&name, number(chain.line, 0), true));
        name
    }

    /// Makes a range's values items by index; `None` where it has adaptors of its own.
    fn indexed(&mut self, chain: &mut Chain<'_>) -> Option<()> {
        let Source::Range(range) = &mut chain.source else {
            return Some(());
        };
        if !range.adaptors.is_empty() || range.inclusive {
            return None;
        }
        let (start, end) = (range.start.clone(), range.end.clone());
        let start = chain.name(self, "start", start);
        let end = chain.name(self, "end", end);
        let line = chain.line;
        let some = binary(BinaryOp::Lt, start.clone(), end.clone());
        let zero = expr(
            line,
            ExprKind::Int {
                value: 0,
                suffix: None,
            },
        );
        let none = ExprKind::Block {
            label: None,
            block: block(line, Vec::new(), Some(zero)),
        };
        let way = ExprKind::If {
            cond: Box::new(some),
            then: block(line, Vec::new(), Some(binary(BinaryOp::Sub, end, start.clone()))),
            otherwise: Some(Box::new(expr(line, none))),
        };
        let count = ExprKind::Cast {
            value: Box::new(expr(line, way)),
            ty: Type::Scalar(Scalar::Usize),
        };
        chain.source = Source::Items(Item::Count(start), expr(chain.line, count));
        self.count_once(chain);
        Some(())
    }
}
