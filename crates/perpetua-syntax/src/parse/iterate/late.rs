//! Ends of iterators behind what is not seen to be one, such as a call that gives a range: the tree has the method and the loop, and
//! the type of what is gone over chooses.

use super::item::method;
use super::{Chain, Source, is_adaptor};
use crate::ast::{Expr, ExprKind, ITERATED, LACKS, OWN};
use crate::parse::chain::Step;
use crate::parse::expr::peel;
use crate::parse::reader::{Reader, line_of, name_of};
use crate::parse::sugar::{local, statement};
use syn::spanned::Spanned;

/// The ends that take the iterator, and hardly are methods of anything else, with how many arguments they have.
const TAKING: [(&str, usize); 14] = [
    ("for_each", 1),
    ("sum", 0),
    ("product", 0),
    ("fold", 2),
    ("rfold", 2),
    ("reduce", 1),
    ("count", 0),
    ("last", 0),
    ("min", 0),
    ("max", 0),
    ("min_by", 1),
    ("max_by", 1),
    ("min_by_key", 1),
    ("max_by_key", 1),
];

/// Those that go on in it.
const MOVING: [&str; 7] = ["any", "all", "find", "find_map", "position", "rfind", "nth"];

/// How deep such ends may stand in each other's closures, each of which is read twice.
const DEEPEST: u32 = 2;

impl Reader {
    /// A method that may be an end behind an iterator, which its type says.
    pub(in crate::parse) fn read_late_end(&mut self, call: &syn::ExprMethodCall) -> ExprKind {
        let Some((head, first, chain)) = self.read_late(call) else {
            return self.read_plain_method(call);
        };
        let line = line_of(call.method.span());
        self.late += 1;
        let plain = self.read_plain_method(call);
        self.late -= 1;
        iterated(head, &first, chain, Expr::new(line, plain))
    }

    /// A loop over what may be an iterator, with adaptors behind it; `None` of other loops.
    pub(super) fn read_late_for(
        &mut self,
        looped: &syn::ExprForLoop,
        label: Option<&String>,
    ) -> Option<ExprKind> {
        if self.late >= DEEPEST || self.starts_chain(&looped.expr) {
            return None;
        }
        let mut longer = looped.clone();
        let (head, Some(mut first)) = replace_head(&mut longer.expr)? else {
            return None;
        };
        // A range in steps is gone over as the value that it is.
        if only(&looped.expr, &STEPS) {
            first = format!("{OWN}{first}");
        }
        let line = line_of(looped.for_token.span);
        self.late += 1;
        let read = self.unless_refused(|reader| {
            let head = reader.read_expr(&head);
            let chain = reader.read_for_chain(&longer, label.cloned());
            Some((head, Expr::new(line, chain)))
        });
        let all = read.map(|(head, chain)| {
            self.plain = true;
            let plain = self.read_for_chain(looped, label.cloned());
            iterated(head, &first, chain, Expr::new(line, plain))
        });
        self.late -= 1;
        all
    }

    /// What is gone over, and the loop over it; `None` of other calls, and of what is outside the language as an iterator.
    fn read_late(&mut self, call: &syn::ExprMethodCall) -> Option<(Expr, String, Expr)> {
        let (name, args) = (name_of(&call.method), call.args.len());
        let moving = args == 1 && MOVING.contains(&name.as_str());
        if self.late >= DEEPEST || !moving && !TAKING.contains(&(name.as_str(), args)) {
            return None;
        }
        let mut chain = call.clone();
        let (head, first) = replace_head(&mut chain.receiver)?;
        let place = match &head {
            syn::Expr::Call(_) | syn::Expr::MethodCall(_) => false,
            syn::Expr::Path(_) | syn::Expr::Field(_) | syn::Expr::Index(_) => true,
            _ => return None,
        };
        if place && moving && first.is_none() {
            return None;
        }
        let first = first.unwrap_or(name);
        self.late += 1;
        let read = self.unless_refused(|reader| {
            reader.scoped(|reader| {
                let head = reader.read_expr(&head);
                let read = reader.read_chain_end(&chain)?;
                Some((head, first, Expr::new(line_of(call.method.span()), read)))
            })
        });
        self.late -= 1;
        read
    }

    /// What `zip`, `chain` and comparisons take, and what `flat_map` goes over, of which not all may be asked for.
    pub(super) fn read_beside(&mut self, other: &syn::Expr) -> Chain {
        let outer = std::mem::replace(&mut self.beside, true);
        let chain = self.read_iterable(other);
        self.beside = outer;
        chain
    }

    /// The items of what may be an iterator, with adaptors behind it that a loop goes through; `None` of other values. Of an `Option` it means the
    /// same, and of an array, whose `map` runs for all its elements beforehand, where nothing is changed.
    pub(super) fn read_late_items(&mut self, value: &syn::Expr) -> Option<Chain> {
        // A range in steps is gone over as the value that it is, unless `take` is its only step.
        if std::mem::take(&mut self.plain) || only(value, &STEPS) && !only(value, &["take"]) {
            return None;
        }
        let mut longer = value.clone();
        let (head, Some(first)) = replace_head(&mut longer)? else {
            return None;
        };
        // Of these the type is seen: their methods run at once.
        let is_some =
            |call: &syn::ExprCall| matches!(&*call.func, syn::Expr::Path(path) if path.path.is_ident("Some"));
        match &head {
            syn::Expr::Array(_) | syn::Expr::Repeat(_) | syn::Expr::Macro(_) => return None,
            syn::Expr::Call(call) if is_some(call) => return None,
            _ => {}
        }
        let mut chain = self.unless_refused(|reader| Some(reader.read_iterable(&longer)))?;
        // An `Option`'s method runs at once, and an iterator's for what is asked for: what may end the lane runs as in Rust, or is refused.
        let at_once = self.beside && self.may_fault(&chain);
        if at_once && gives_option(&head) {
            return None;
        }
        // Behind what stands in front of it in a `zip`, it is not the source.
        let behind = |step: &Step| matches!(step, Step::Zip(_, _, _, true));
        if self.changes(&chain) || chain.steps.iter().any(behind) {
            return None;
        }
        if let Source::Items(item, _) = &chain.source {
            let mut bases = Vec::new();
            item.bases(&mut bases);
            let (line, base) = (chain.line, local(bases.first()?, chain.line));
            let at_once = at_once.then(|| Expr::new(chain.line, ExprKind::Bool(true)));
            let lacks = method(base, &format!("{LACKS}{first}"), at_once.into_iter().collect());
            chain.setup.push(statement(Expr::new(line, lacks.kind)));
        }
        Some(chain)
    }

    /// What is read, where nothing of it is refused: what is refused of an iterator may be a method of another type.
    fn unless_refused<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let errors = self.errors.take();
        let read = read(self);
        let refused = std::mem::replace(&mut self.errors, errors);
        read.filter(|_| refused.is_none())
    }
}

/// What holds where the type of `head` is an iterator, and elsewhere.
fn iterated(head: Expr, first: &str, items: Expr, plain: Expr) -> ExprKind {
    ExprKind::MethodCall {
        receiver: Box::new(head),
        name: format!("{ITERATED}{first}"),
        generics: Vec::new(),
        args: vec![items, plain],
    }
}

/// Whether it is an adaptor's call, but for `clone`, which other values have, too.
fn is_adapted(on: &syn::Expr) -> bool {
    matches!(on, syn::Expr::MethodCall(call) if is_adaptor(&name_of(&call.method)) && call.method != "clone")
}

/// Whether it is seen to be an `Option`.
fn gives_option(head: &syn::Expr) -> bool {
    let syn::Expr::MethodCall(call) = head else {
        return false;
    };
    let name = name_of(&call.method);
    let known = [
        "get",
        "get_mut",
        "first",
        "last",
        "first_mut",
        "last_mut",
        "ok",
        "err",
        "next",
        "nth",
        "position",
        "find",
        "then",
        "then_some",
    ];
    known.contains(&&*name) || name.starts_with("checked_")
}

/// The adaptors that ranges have as values.
const STEPS: [&str; 4] = ["rev", "step_by", "skip", "take"];

/// Whether there is no adaptor but these.
fn only(on: &syn::Expr, these: &[&str]) -> bool {
    match on {
        syn::Expr::MethodCall(call) if is_adapted(on) => {
            these.iter().any(|name| call.method == name) && only(&call.receiver, these)
        }
        _ => true,
    }
}

/// Makes what is at the head of a chain an iterator, and gives it, with the first adaptor behind it.
fn replace_head(on: &mut syn::Expr) -> Option<(syn::Expr, Option<String>)> {
    if is_adapted(on)
        && let syn::Expr::MethodCall(inner) = on
    {
        if inner.method == "by_ref" {
            return None;
        }
        let (head, first) = replace_head(&mut inner.receiver)?;
        return Some((head, first.or(Some(name_of(&inner.method)))));
    }
    let head = peel(on).clone();
    *on = syn::parse2(quote::quote_spanned!(head.span()=> (#head).into_iter())).ok()?;
    Some((head, None))
}
