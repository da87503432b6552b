//! Iterators: a chain from `iter`, `chunks_exact`, a range and their kin to what ends it is a `for` over indices. The tree has
//! that loop, so that nothing behind the reader knows chains. No iterator is ever a value; one that a `let` binds is what it
//! goes over, and a position where it is `mut`.

mod bound;
mod compare;
mod effect;
mod end;
mod forms;
mod index;
mod item;
mod late;
mod mentioned;
mod names;
mod pick;
mod turn;

use super::Refusal;
use super::chain::{Item, Step};
use super::expr::{peel, usize_literal as number};
use super::reader::{Reader, line_of, name_of};
use super::sugar::{block, expr, local, most, statement};
use crate::ast::{BinaryOp, Expr, ExprKind, INDEXED, Line, PrintPiece, Range, RangeAdaptor, Stmt};
use crate::nesting::Level;
use bound::{Stand, beside};
use item::{binary, declare, method, when};
pub use names::{ADAPTORS, ENDS, FUNCTIONS, SOURCES};
use syn::spanned::Spanned;

/// What the loop counts.
#[expect(clippy::large_enum_variant, reason = "a chain has one")]
enum Source {
    /// Its own values.
    Range(Range),
    /// Indices below a number.
    Items(Item, Expr),
}

/// A chain without its end.
pub(super) struct Chain {
    line: Line,
    setup: Vec<Stmt>,
    source: Source,
    steps: Vec<Step>,
    /// Whether items may be values, which are looked at where they are named.
    owned: bool,
    /// Whether it may be an iterator of the user's, which gives one item after the other, whatever it is asked for.
    unknown: bool,
    /// Of `chunks_exact` without more: the slice, and how many of its elements are in no chunk.
    remainder: Option<(String, Expr)>,
    /// Where a bound iterator stands.
    stands: Option<Stand>,
    /// Whether it goes on from there.
    advances: bool,
    /// Whether it may give `&mut` to what it goes over.
    lends: bool,
}

/// What Rust says of `step_by(0)`.
const NO_STEP: &str = "assertion failed: step != 0";

/// Whether it is `(&mut it).into_iter()`, which goes on in what it names.
fn goes_on(value: &syn::Expr) -> bool {
    match peel(value) {
        syn::Expr::MethodCall(call) if call.method == "into_iter" => goes_on(&call.receiver),
        value => matches!(value, syn::Expr::Reference(reference) if reference.mutability.is_some()),
    }
}

/// Statements that only what knows its items by their places takes.
fn asked_by_places(item: &Item, line: Line) -> impl Iterator<Item = Stmt> {
    let mut names = Vec::new();
    item.bases(&mut names);
    let asked = move |name| statement(method(local(name, line), INDEXED, Vec::new()));
    names.into_iter().map(asked)
}

fn is_adaptor(name: &str) -> bool {
    ADAPTORS.contains(&name)
}

impl Chain {
    /// Without an item.
    fn empty(line: Line) -> Chain {
        Chain {
            line,
            setup: Vec::new(),
            source: Source::Items(Item::Count(number(line, 0)), number(line, 0)),
            steps: Vec::new(),
            owned: false,
            unknown: false,
            remainder: None,
            stands: None,
            advances: false,
            lends: false,
        }
    }

    /// Gives the value a name in front of the loop.
    fn name(&mut self, reader: &mut Reader, what: &str, value: Expr) -> Expr {
        let (name, line) = (reader.fresh(what), value.line);
        self.setup.push(declare(&name, value, false));
        local(&name, line)
    }

    /// The same for a number that may not be 0; where it is, there is a fault with the text of Rust's panic, where a text is given.
    fn positive(&mut self, reader: &mut Reader, what: &str, value: Expr, text: Option<&str>) -> Expr {
        let is_known = matches!(&value.kind, ExprKind::Int { value, .. } if *value > 0);
        let value = self.name(reader, what, value);
        if let (Some(text), false) = (text, is_known) {
            let none = binary(BinaryOp::Eq, value.clone(), number(value.line, 0));
            let fault = ExprKind::Panic {
                pieces: vec![PrintPiece::Text(text.to_owned())],
                args: Vec::new(),
            };
            self.setup.push(when(none, fault));
        }
        value
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
    /// Whether an expression is a chain: a method of iterators on a range, on `iter` or its kin, or on a chain.
    pub(super) fn is_chain(&self, call: &syn::ExprMethodCall) -> bool {
        self.is_source(call) || is_adaptor(&name_of(&call.method)) && self.starts_chain(&call.receiver)
    }

    fn starts_chain(&self, value: &syn::Expr) -> bool {
        match peel(value) {
            syn::Expr::Range(_) => true,
            syn::Expr::MethodCall(call) => self.is_chain(call),
            syn::Expr::Call(call) => forms::source(call).is_some(),
            syn::Expr::Reference(reference) => self.bound_iterator(&reference.expr).is_some(),
            other => self.bound_iterator(other).is_some(),
        }
    }

    /// Whether a method makes an iterator of a slice or an array.
    fn is_source(&self, call: &syn::ExprMethodCall) -> bool {
        match name_of(&call.method).as_str() {
            "iter" | "iter_mut" => call.args.is_empty(),
            "into_iter" => call.args.is_empty() && !self.starts_chain(&call.receiver),
            name => SOURCES.contains(&name) && call.args.len() == 1,
        }
    }

    /// A name that no other of the reader's own has, and none of the user's.
    pub(super) fn fresh(&mut self, what: &str) -> String {
        self.names += 1;
        format!("{what} {}", self.names)
    }

    /// What a `for` loop or `zip` takes that is no plain range: a chain, a slice, an array.
    fn read_iterable(&mut self, value: &syn::Expr) -> Chain {
        let mut chain = Chain::empty(line_of(value.span()));
        self.read_chain(value, &mut chain);
        chain
    }

    /// The items of a value.
    fn items_of(&mut self, value: Expr) -> Chain {
        let mut chain = Chain::empty(value.line);
        chain.owned = true;
        self.elements(value, "into_iter", &mut chain);
        chain
    }

    fn read_chain(&mut self, value: &syn::Expr, chain: &mut Chain) {
        let Some(_level) = Level::enter() else {
            return self.refuse(value, Refusal::TooDeep);
        };
        match peel(value) {
            syn::Expr::Range(range) if range.start.is_some() => {
                chain.owned = true;
                chain.source = match (&range.start, &range.end) {
                    (Some(start), None) => {
                        let start = self.read_expr(start);
                        let start = chain.name(self, "start", start);
                        Source::Items(Item::Count(start), most(chain.line))
                    }
                    _ => {
                        let mut range = self.read_range(value);
                        // What is behind it may change what its ends are computed from.
                        for end in [&mut range.start, &mut range.end] {
                            self.name_unsteady(chain, end);
                        }
                        Source::Range(range)
                    }
                };
            }
            syn::Expr::MethodCall(call) if self.is_source(call) => self.read_source(call, chain),
            syn::Expr::MethodCall(call) if self.is_chain(call) => {
                self.read_chain(&call.receiver, chain);
                self.read_adaptor(call, chain);
            }
            syn::Expr::Call(call) if let Some(source) = forms::source(call) => {
                self.read_made(&source, chain);
            }
            syn::Expr::Reference(reference) if self.bound_iterator(&reference.expr).is_some() => {
                self.read_chain(&reference.expr, chain);
                chain.advances = true;
            }
            other if let Some(bound) = self.bound_iterator(other) => self.read_bound(other, &bound, chain),
            other if let Some(read) = self.read_late_items(other) => *chain = read,
            other => {
                chain.owned = true;
                let base = self.read_expr(other);
                self.elements(base, "into_iter", chain);
            }
        }
    }

    /// Gives a value a name in front of the loop, where it may not stay the same.
    fn name_unsteady(&mut self, chain: &mut Chain, value: &mut Expr) {
        if !self.stays(value, true) {
            let unnamed = std::mem::replace(value, number(chain.line, 0));
            *value = chain.name(self, "end", unnamed);
        }
    }

    fn elements(&mut self, base: Expr, how: &str, chain: &mut Chain) {
        let (name, line) = (self.fresh("items"), chain.line);
        chain
            .setup
            .push(declare(&name, method(base, how, Vec::new()), false));
        let count = method(local(&name, line), "len", Vec::new());
        let count = chain.name(self, "count", count);
        chain.unknown = how == "into_iter";
        chain.lends = how != "iter";
        chain.source = Source::Items(Item::Element(name), count);
    }

    /// Notes that items are asked for by their places, or that what they come from is: an iterator of the user's refuses that.
    fn by_places(&mut self, chain: &mut Chain) {
        if let (true, Source::Items(item, _)) = (chain.unknown, &chain.source) {
            chain.setup.extend(asked_by_places(item, chain.line));
        }
    }

    fn read_source(&mut self, call: &syn::ExprMethodCall, chain: &mut Chain) {
        let name = name_of(&call.method);
        let line = line_of(call.method.span());
        let base = self.read_expr(&call.receiver);
        chain.owned = name == "into_iter";
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
        let width = chain.positive(
            self,
            "width",
            width,
            (name == "windows").then_some("window size must be non-zero"),
        );
        chain.items(|item, len| match item {
            Item::Element(base) => {
                let (step, count) = match name.as_str() {
                    "windows" => {
                        let beyond = binary(BinaryOp::Add, len, number(line, 1));
                        let count = method(beyond, "saturating_sub", vec![width.clone()]);
                        (number(line, 1), count)
                    }
                    "chunks" | "chunks_mut" | "rchunks" | "rchunks_mut" => {
                        (width.clone(), method(len, "div_ceil", vec![width.clone()]))
                    }
                    _ => (width.clone(), binary(BinaryOp::Div, len, width.clone())),
                };
                let (end, back) = (None, name.starts_with('r'));
                (
                    Item::Part {
                        base,
                        step,
                        width,
                        end,
                        back,
                    },
                    count,
                )
            }
            other => (other, len),
        });
        // How many there are is named, and a last chunk that is shorter ends with the slice.
        let (back, exact) = (name.starts_with('r'), name.contains("exact"));
        let short = name.contains("chunks") && !exact || back;
        let Source::Items(Item::Part { base, end, width, .. }, count) = &mut chain.source else {
            return;
        };
        if exact && !back {
            chain.remainder = Some((base.clone(), width.clone()));
        }
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
    fn read_adaptor(&mut self, call: &syn::ExprMethodCall, chain: &mut Chain) {
        let (name, line) = (name_of(&call.method), line_of(call.method.span()));
        // Where each item stands in order, by itself.
        let usual = chain.steps.is_empty() && !chain.advances && !self.acts(chain);
        chain.remainder = None;
        match (name.as_str(), call.args.first()) {
            ("copied" | "cloned", None) => chain.steps.push(Step::Copied),
            ("into_iter" | "peekable", None) => {}
            ("clone", None) if self.copy_state(chain).is_some() => {
                (chain.stands, chain.advances) = (None, false);
            }
            ("cycle", None) if let Some(()) = self.indexed(chain) => {
                self.by_places(chain);
                self.count_once(chain);
                chain.items(|item, count| {
                    let some = binary(BinaryOp::Ne, count.clone(), number(line, 0));
                    let [most, none] =
                        [most(line), number(line, 0)].map(|value| block(line, Vec::new(), Some(value)));
                    let none = ExprKind::Block {
                        label: None,
                        block: none,
                    };
                    let all = ExprKind::If {
                        cond: Box::new(some),
                        then: most,
                        otherwise: Some(Box::new(expr(line, none))),
                    };
                    (Item::Cycle(Box::new(item), count), expr(line, all))
                });
                self.count_once(chain);
            }
            ("by_ref", None) => chain.advances = chain.stands.is_some(),
            ("map", Some(f)) => chain.steps.push(Step::Map(f.clone())),
            ("filter", Some(f)) => chain.steps.push(Step::Filter(f.clone())),
            ("filter_map", Some(f)) => chain.steps.push(Step::FilterMap(f.clone())),
            ("take_while", Some(f)) => chain.steps.push(Step::TakeWhile(f.clone(), None)),
            ("map_while", Some(f)) => chain.steps.push(Step::MapWhile(f.clone())),
            ("skip_while", Some(f)) => {
                let skips = self.fresh("skips");
                let yes = expr(line, ExprKind::Bool(true));
                chain.setup.push(declare(&skips, yes, true));
                chain.steps.push(Step::SkipWhile(skips, f.clone()));
            }
            ("scan", Some(state)) if let Some(f) = call.args.iter().nth(1) => {
                let (name, state) = (self.fresh("state"), self.read_expr(state));
                chain.setup.push(declare(&name, state, true));
                chain.steps.push(Step::Scan(name, f.clone()));
            }
            ("flat_map", Some(f)) => chain.steps.push(Step::Flat(Some(f.clone()), None)),
            ("flatten", None) => chain.steps.push(Step::Flat(None, None)),
            ("inspect", Some(f)) => chain.steps.push(Step::Inspect(f.clone())),
            ("rev", None) if chain.steps.iter().all(Step::is_alone) => {
                self.by_places(chain);
                self.adapt(chain, RangeAdaptor::Rev);
                if let Some(mut stand) = chain.stands.take() {
                    stand.back = match stand.back {
                        None => Some(chain.name(self, "end", stand.count.clone())),
                        Some(_) => None,
                    };
                    chain.stands = Some(stand);
                }
            }
            ("step_by", Some(step)) => {
                let step = self.read_expr(step);
                if usual && !chain.unknown {
                    return self.adapt(chain, RangeAdaptor::StepBy(Box::new(step)));
                }
                let step = chain.positive(self, "step", step, Some(NO_STEP));
                let counter = self.counter(chain);
                chain.steps.push(Step::Every(counter, step));
            }
            ("zip", Some(other)) if !chain.advances => {
                let mut other = self.read_beside(other);
                match (self.indexed(chain), self.indexed(&mut other)) {
                    (Some(()), Some(())) => {
                        // Of the first one, an item more is asked for than there are pairs.
                        if goes_on(&call.receiver) {
                            self.by_places(chain);
                        }
                        chain.owned |= other.owned;
                        chain.unknown |= other.unknown;
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
                    (None, Some(())) => self.zip_counted(chain, other, false),
                    (Some(()), None) if !other.advances => {
                        std::mem::swap(chain, &mut other);
                        self.zip_counted(chain, other, true);
                    }
                    // The second one waits for each item of the first, which is its state.
                    _ if !other.advances && self.may_pause(&mut other) => {
                        let acts = self.acts(&other);
                        let other = self.waiting(other, chain, call.method.span());
                        chain.steps.extend(beside(other, acts));
                    }
                    _ => self.refuse_named(&call.method, Refusal::IteratorOrder, &name),
                }
            }
            ("chain", Some(other)) if !chain.advances => {
                let mut other = self.read_beside(other);
                let indexed = (self.indexed(chain), self.indexed(&mut other));
                let (Some(()), Some(())) = indexed else {
                    return self.refuse_named(&call.method, Refusal::IteratorOrder, &name);
                };
                self.by_places(chain);
                self.by_places(&mut other);
                self.count_once(chain);
                chain.owned |= other.owned;
                chain.unknown |= other.unknown;
                chain.setup.append(&mut other.setup);
                let Source::Items(second, more) = other.source else {
                    return;
                };
                chain.items(|item, count| {
                    let both = binary(BinaryOp::Add, count.clone(), more);
                    (Item::Chain(Box::new(item), count, Box::new(second)), both)
                });
                self.count_once(chain);
            }
            ("enumerate", None) => match self.indexed(chain) {
                Some(()) => chain.items(|item, count| (Item::Enumerate(Box::new(item)), count)),
                None => {
                    let counter = self.counter(chain);
                    chain.steps.push(Step::Enumerate(counter));
                }
            },
            ("skip", Some(n)) => {
                let n = self.read_expr(n);
                let n = chain.name(self, "skipped", n);
                self.indexed_source(chain);
                match &chain.source {
                    Source::Items(..) if usual && !chain.unknown => {
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
                self.indexed_source(chain);
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
            ("rev" | "zip" | "chain", _) => {
                self.refuse_named(&call.method, Refusal::IteratorOrder, &name);
            }
            _ => self.refuse_named(&call.method, Refusal::Iterator, &name),
        }
    }
}
