//! Iterators that a `let` binds: what they go over has names in front, and where they stand, too, where they are `mut`.

use super::item::{binary, declare, method};
use super::{Chain, Source, number};
use crate::ast::{BinaryOp, Expr, ExprKind, Line, Stmt, StructName, UnaryOp};
use crate::parse::Refusal;
use crate::parse::chain::{Bound, Item, Step};
use crate::parse::chosen::iterator_of_branches;
use crate::parse::expr::peel;
use crate::parse::path::single_name;
use crate::parse::ranges::is_closed;
use crate::parse::reader::{Reader, line_of, name_of};
use crate::parse::sugar::{expr, local, most, statement};
use crate::parse::types::range_of;
use quote::quote_spanned;
use syn::spanned::Spanned;

/// Where a bound iterator stands.
#[derive(Clone)]
pub(super) struct Stand {
    /// The variable that says at which item, and what it says in front of the loop.
    pub(super) position: String,
    pub(super) start: Expr,
    /// Whether the item at hand is made once more when the iterator goes on, since it stands within it.
    pub(super) holds: bool,
    /// The variable that says how many items there are in all, and, where the loop goes backward, what it says in front of it.
    pub(super) count: Expr,
    pub(super) back: Option<Expr>,
}

/// The next item of an iterator beside each.
pub(super) fn beside(other: syn::Ident, acts: bool) -> Option<Step> {
    let both = quote_spanned!(other.span()=> |__one| #other.next().map(|__other| (__one, __other)));
    let both = syn::parse2(both).ok()?;
    Some(Step::With(other, both, acts))
}

/// `place = value`.
pub(super) fn set(place: Expr, value: Expr) -> Stmt {
    let (line, place, value) = (place.line, Box::new(place), Box::new(value));
    statement(expr(line, ExprKind::Assign { place, value }))
}

impl Stand {
    /// At the start of the turn `index`: `position = start + index + 1`; backward: `count = back - index - 1`.
    pub(super) fn moved(&self, index: Expr) -> Stmt {
        let line = self.start.line;
        if let Some(back) = &self.back {
            let left = binary(BinaryOp::Sub, back.clone(), index);
            return set(self.count.clone(), binary(BinaryOp::Sub, left, number(line, 1)));
        }
        let at = binary(BinaryOp::Add, self.start.clone(), index);
        let value = if self.holds {
            at
        } else {
            method(at, "saturating_add", vec![number(line, 1)])
        };
        set(local(&self.position, line), value)
    }
}

/// A range of these ends as a value.
fn range_value([start, end]: [Expr; 2], closed: bool, line: Line) -> Expr {
    let fields = vec![("start".to_owned(), start), ("end".to_owned(), end)];
    let (name, base) = (StructName::Range(closed), None);
    expr(line, ExprKind::StructLiteral { name, fields, base })
}

impl Bound {
    /// A parameter that is an iterator: a function of this name gives the next item.
    pub(in crate::parse) fn called(name: &str, line: Line) -> Bound {
        Bound {
            item: Item::Count(number(line, 0)),
            count: most(line),
            steps: vec![Step::Called(name.to_owned())],
            names: Vec::new(),
            owned: true,
            unknown: false,
            remainder: None,
            position: None,
            ends: None,
        }
    }
}

impl Chain {
    /// Whether it is one loop, which what ends it leaves by itself.
    pub(super) fn is_one_loop(&self) -> bool {
        !self.steps.iter().any(|step| matches!(step, Step::Flat(..)))
    }
}

impl Reader {
    /// Makes the chain one that can stop between two items and go on later; not where functions that make items of items would be called again
    /// and give others.
    pub(super) fn may_pause(&mut self, chain: &mut Chain) -> bool {
        let last = chain
            .steps
            .iter()
            .rposition(|step| matches!(step, Step::Flat(..)));
        if let Some(last) = last {
            let again = chain.steps.get(..=last).unwrap_or_default();
            let again_alone = |step: &Step| step.is_alone() || matches!(step, Step::Flat(..));
            // What is behind a `&mut` may be another one when it is looked at again.
            let looks = |step: &Step| step.function().is_some_and(|f| !is_iter_mut(f));
            if !again.iter().all(again_alone) || chain.lends && again.iter().any(looks) || self.changes(chain)
            {
                return false;
            }
            self.by_places(chain);
        }
        let line = chain.line;
        for step in &mut chain.steps {
            let (what, value, state) = match step {
                Step::TakeWhile(_, state @ None) => ("over", ExprKind::Bool(false), state),
                Step::Flat(_, state @ None) => ("within", number(line, 0).kind, state),
                _ => continue,
            };
            let name = self.fresh(what);
            chain.setup.push(declare(&name, expr(line, value), true));
            *state = Some(name);
        }
        true
    }

    /// Gives the chain its own copy of what it counts and remembers; `None` where that is a function's.
    pub(super) fn copy_state(&mut self, chain: &mut Chain) -> Option<()> {
        self.by_places(chain);
        let mut steps = std::mem::take(&mut chain.steps);
        for step in &mut steps {
            match step {
                Step::Called(_) => return None,
                Step::Zip(_, item, ..) => chain.setup.extend(super::asked_by_places(item, chain.line)),
                Step::With(other, _, acts) => {
                    let (bound, acts) = (self.iterator(&name_of(other)).cloned()?, *acts);
                    let (mut copy, path) = (Chain::empty(chain.line), syn::parse_quote!(#other));
                    self.read_bound(&path, &bound, &mut copy);
                    self.copy_state(&mut copy)?;
                    *step = beside(self.waiting(copy, chain, other.span()), acts)?;
                }
                _ => {}
            }
            if let Some(state) = step.state() {
                let name = self.fresh("state");
                let value = local(state, chain.line);
                chain.setup.push(declare(&name, value, true));
                *state = name;
            }
        }
        chain.steps = steps;
        Some(())
    }

    /// Whether the chain's functions name a local that may change, or do more than compute.
    pub(super) fn changes(&self, chain: &Chain) -> bool {
        let mut names = Vec::new();
        chain.name_locals(self, &mut names);
        let changes = |name: &str| self.may_change(name) || self.is_mutable_ref(name);
        self.acts(chain) || names.iter().any(|(name, _)| changes(name))
    }

    /// The iterator that an expression names.
    pub(super) fn bound_iterator(&self, value: &syn::Expr) -> Option<Bound> {
        match peel(value) {
            syn::Expr::Path(path) if path.qself.is_none() => {
                self.iterator(&single_name(&path.path)?).cloned()
            }
            _ => None,
        }
    }

    /// An iterator that is an argument: a function that gives its next item; `None` of other expressions. What is computed before the
    /// call is kept for it.
    pub(in crate::parse) fn read_iterator_argument(&mut self, arg: &syn::Expr) -> Option<Expr> {
        let span = arg.span();
        let (bound, goes_on) = match arg {
            syn::Expr::Reference(reference) => (self.bound_iterator(&reference.expr), Some(&reference.expr)),
            syn::Expr::MethodCall(call) if call.method == "by_ref" => {
                (self.bound_iterator(&call.receiver), Some(&call.receiver))
            }
            other => (self.bound_iterator(other), None),
        };
        if let (Some(_), Some(iterator)) = (&bound, goes_on) {
            let next = syn::parse2(quote_spanned!(span=> || #iterator.next())).ok()?;
            return Some(self.read_expr(&next));
        }
        let is_iterator = bound.is_some()
            || match arg {
                syn::Expr::MethodCall(call) => self.is_chain(call),
                syn::Expr::Call(call) => super::forms::source(call).is_some(),
                syn::Expr::Range(range) => range.start.is_some(),
                _ => false,
            };
        if !is_iterator {
            return None;
        }
        // The ends of a range are computed once, whatever takes it.
        if let syn::Expr::Range(syn::ExprRange { end: Some(_), .. }) = arg {
            let name = self.argument_name(span);
            let stmts = self.read_bound_iterator(&syn::parse_quote!(#name), arg)?;
            self.hoisted.extend(stmts);
            return self.read_iterator_argument(&syn::parse_quote!(#name));
        }
        let ends = self.bound_range(arg);
        let name = self.argument_name(span);
        let items = syn::parse2(quote_spanned!(span=> (#arg).into_iter())).ok()?;
        let stmts = self.read_bound_iterator(&syn::parse_quote!(mut #name), &items)?;
        self.hoisted.extend(stmts);
        let next = syn::parse2(quote_spanned!(span=> || #name.next())).ok()?;
        let next = self.read_expr(&next);
        let Some((ends, closed)) = ends else {
            return Some(next);
        };
        let line = next.line;
        let (range, next) = (Box::new(range_value(ends, closed, line)), Box::new(next));
        Some(expr(line, ExprKind::RangeArgument { range, next }))
    }

    /// The value of a range behind a name; not of one that is `mut`, since it moves on.
    pub(in crate::parse) fn named_range(&self, name: &str, line: Line) -> Option<ExprKind> {
        let bound = self.iterator(name).filter(|bound| bound.position.is_none())?;
        let (ends, closed) = bound.ends.clone()?;
        Some(range_value(ends, closed, line).kind)
    }

    /// A range as a value; `None` of one that lacks an end.
    pub(in crate::parse) fn read_range_value(&mut self, range: &syn::ExprRange) -> Option<ExprKind> {
        let (Some(start), Some(end)) = (&range.start, &range.end) else {
            return None;
        };
        let line = line_of(range.limits.span());
        let closed = matches!(range.limits, syn::RangeLimits::Closed(_));
        let ends = [self.read_expr(start), self.read_expr(end)];
        Some(range_value(ends, closed, line).kind)
    }

    /// `let pattern = name.start..name.end;` of a local that is a range.
    pub(in crate::parse) fn read_ends_of(
        &mut self,
        pattern: &syn::Pat,
        name: &syn::Ident,
        closed: bool,
    ) -> Vec<Stmt> {
        let range = match closed {
            true => syn::parse_quote!(#name.start..=#name.end),
            false => syn::parse_quote!(#name.start..#name.end),
        };
        self.read_bound_iterator(pattern, &range).unwrap_or_default()
    }

    /// `let pattern = value;` of a value that is seen to be a range, by the type or by what it is made of.
    pub(in crate::parse) fn read_range_let(&mut self, local: &syn::Local) -> Option<Vec<Stmt>> {
        let init = local.init.as_ref().filter(|init| init.diverge.is_none())?;
        let value = peel(&init.expr);
        let (pattern, of) = match &local.pat {
            syn::Pat::Type(typed) => (&*typed.pat, Some(range_of(&typed.ty)?)),
            pattern => (pattern, None),
        };
        let syn::Pat::Ident(ident) = pattern else {
            return None;
        };
        if let (Some((of, _)), syn::Expr::Range(range)) = (of, value) {
            let (mut range, start) = (range.clone(), range.start.as_ref()?);
            // The start says of what type it is.
            range.start =
                Some(syn::parse_quote_spanned!(start.span()=> { let __start: #of = #start; __start }));
            return self.read_bound_iterator(pattern, &syn::Expr::Range(range));
        }
        let closed = match of {
            Some((_, closed)) => closed,
            None => is_closed(value)?,
        };
        let name = self.argument_name(ident.span());
        let (ty, init) = (of.map(|(of, _)| of), &init.expr);
        let named = match (ty, closed) {
            (None, _) => syn::parse_quote!(let #name = #init;),
            (Some(of), false) => syn::parse_quote!(let #name: Range<#of> = #init;),
            (Some(of), true) => syn::parse_quote!(let #name: RangeInclusive<#of> = #init;),
        };
        let syn::Stmt::Local(named) = named else {
            return None;
        };
        let mut stmts = vec![self.read_let(&named)];
        stmts.extend(self.read_ends_of(pattern, &name, closed));
        Some(stmts)
    }

    fn argument_name(&mut self, span: proc_macro2::Span) -> syn::Ident {
        self.names += 1;
        syn::Ident::new(&format!("__items{}", self.names), span)
    }

    /// Where the range starts and ends that an expression names, perhaps with `clone`; not where it is `mut`, since it moves on.
    pub(in crate::parse) fn bound_range(&self, value: &syn::Expr) -> Option<([Expr; 2], bool)> {
        match peel(value) {
            syn::Expr::MethodCall(call) if call.method == "clone" && call.args.is_empty() => {
                self.bound_range(&call.receiver)
            }
            syn::Expr::Reference(reference) => self.bound_range(&reference.expr),
            value => {
                let bound = self.bound_iterator(value)?;
                bound.ends.filter(|_| bound.position.is_none())
            }
        }
    }

    /// `range.start()`, `range.end()` of a range that has its end.
    pub(in crate::parse) fn bound_end(&self, call: &syn::ExprMethodCall) -> Option<ExprKind> {
        let ([start, end], true) = self.bound_range(&call.receiver)? else {
            return None;
        };
        let end = match name_of(&call.method).as_str() {
            "start" => start,
            "end" => end,
            _ => return None,
        };
        let (op, operand) = (UnaryOp::Ref, Box::new(end));
        Some(ExprKind::Unary { op, operand })
    }

    /// `let name = chain;`: statements that name what it goes over. `None` where the value is no chain.
    pub(in crate::parse) fn read_bound_iterator(
        &mut self,
        pattern: &syn::Pat,
        init: &syn::Expr,
    ) -> Option<Vec<Stmt>> {
        let syn::Pat::Ident(ident) = pattern else {
            return None;
        };
        let chosen = iterator_of_branches(init);
        let init = peel(chosen.as_ref().unwrap_or(init));
        let known = match init {
            // It goes on under another name; a range is a value.
            syn::Expr::Path(_) => {
                let bound = self.bound_iterator(init);
                bound.is_some_and(|bound| bound.ends.is_none() || bound.position.is_some())
            }
            syn::Expr::MethodCall(call) => self.is_chain(call),
            syn::Expr::Call(call) => super::forms::source(call).is_some(),
            syn::Expr::Range(range) => range.start.is_some() && range.end.is_some(),
            _ => false,
        };
        if ident.by_ref.is_some() || ident.subpat.is_some() || !known {
            return None;
        }
        let mut chain = self.read_iterable(init);
        if chain.advances && chain.stands.is_some() {
            self.error(
                init,
                "what `by_ref` takes of an iterator is no value: use it where it stands, or pass the iterator itself, `&mut it`",
            );
        }
        let ends = match (init, &chain.source) {
            (syn::Expr::Range(_), Source::Range(range)) => {
                let [start, end] = [range.start.clone(), range.end.clone()];
                let closed = range.inclusive;
                let ends = [chain.name(self, "start", start), chain.name(self, "end", end)];
                if let Source::Range(range) = &mut chain.source {
                    [range.start, range.end] = ends.clone();
                }
                Some((ends, closed))
            }
            _ => None,
        };
        let mutable = ident.mutability.is_some();
        if mutable
            && !self.may_pause(&mut chain)
            && let syn::Expr::MethodCall(call) = init
        {
            self.refuse_named(&call.method, Refusal::IteratorValue, &name_of(&call.method));
        }
        Some(self.bind_chain(&name_of(&ident.ident), mutable, chain, ends))
    }

    /// The name of the chain as an iterator of which `chain` asks one item after the other; it is made in front of the loop.
    pub(super) fn waiting(&mut self, other: Chain, chain: &mut Chain, span: proc_macro2::Span) -> syn::Ident {
        let name = self.argument_name(span);
        chain.owned = true;
        let stmts = self.bind_chain(&name.to_string(), true, other, None);
        chain.setup.extend(stmts);
        name
    }

    /// Gives a chain a name, and a place where it stands if it is `mutable`: statements that name what it goes over.
    pub(super) fn bind_chain(
        &mut self,
        name: &str,
        mutable: bool,
        mut chain: Chain,
        ends: Option<([Expr; 2], bool)>,
    ) -> Vec<Stmt> {
        let remainder = chain.remainder.take();
        // What is done with each item by itself belongs to the item; all else is done where items are asked for.
        if self.indexed(&mut chain).is_none() {
            self.indexed_source(&mut chain);
        }
        let mut names = Vec::new();
        chain.name_locals(self, &mut names);
        let count_name = self.fresh("count");
        let line = chain.line;
        let Source::Items(item, count) = chain.source else {
            return chain.setup;
        };
        chain.setup.push(declare(&count_name, count, mutable));
        let count = local(&count_name, line);
        if mutable {
            self.declare_mutable(name);
        }
        let position = mutable.then(|| {
            let position = self.fresh("position");
            chain.setup.push(declare(&position, number(chain.line, 0), true));
            position
        });
        self.declare_iterator(
            name,
            Bound {
                item,
                count,
                steps: chain.steps,
                names,
                owned: chain.owned,
                unknown: chain.unknown,
                remainder,
                position,
                ends,
            },
        );
        chain.setup
    }

    /// A chain that goes on where the iterator stands.
    pub(super) fn read_bound(&mut self, value: &syn::Expr, bound: &Bound, chain: &mut Chain) {
        let Bound {
            item,
            count,
            steps,
            names,
            owned,
            unknown,
            remainder,
            position,
            ends: _,
        } = bound.clone();
        if let Some((name, _)) = names.iter().find(|(name, at)| self.place_of(name) != *at) {
            self.error(
                value,
                format!(
                    "`{name}` means something else here than where the iterator was made: give one of the two another name"
                ),
            );
        }
        chain.remainder = remainder;
        chain.source = Source::Items(item, count);
        chain.steps = steps;
        chain.owned = owned;
        chain.unknown = unknown;
        let Some(position) = position else {
            return;
        };
        self.stand_at(position, chain);
    }

    /// Goes on where the position says.
    pub(super) fn stand_at(&mut self, position: String, chain: &mut Chain) {
        let line = chain.line;
        let Source::Items(_, count) = &chain.source else {
            return;
        };
        let count = count.clone();
        let start = chain.name(self, "start", local(&position, line));
        chain.items(|item, count| {
            let left = method(count, "saturating_sub", vec![start.clone()]);
            (Item::From(Box::new(item), start.clone(), number(line, 1)), left)
        });
        self.count_once(chain);
        chain.stands = Some(Stand {
            position,
            start,
            holds: false,
            count,
            back: None,
        });
    }
}

/// Whether a function is `|row| row.iter_mut()`.
fn is_iter_mut(f: &syn::Expr) -> bool {
    let syn::Expr::Closure(closure) = f else {
        return false;
    };
    let (Some(syn::Pat::Ident(param)), syn::Expr::MethodCall(call)) =
        (closure.inputs.first(), peel(&closure.body))
    else {
        return false;
    };
    call.method == "iter_mut"
        && matches!(&*call.receiver, syn::Expr::Path(path) if path.path.is_ident(&param.ident))
}
