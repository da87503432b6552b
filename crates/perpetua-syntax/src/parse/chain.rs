//! What iterators are made of, as data: what they give at an index, and what is done with it.

use crate::ast::Expr;

/// What is done with each item before the next is looked at.
#[derive(Clone)]
pub(super) enum Step {
    Map(syn::Expr),
    Filter(syn::Expr),
    FilterMap(syn::Expr),
    /// Of an iterator that may stop between two items, with the name of whether it has ended.
    TakeWhile(syn::Expr, Option<String>),
    MapWhile(syn::Expr),
    /// What the function of this name gives, until it gives none.
    Called(String),
    /// With the name of whether it still skips.
    SkipWhile(String, syn::Expr),
    /// With the state's name.
    Scan(String, syn::Expr),
    Inspect(syn::Expr),
    Copied,
    /// The items of what a function gives, or of the item itself. Of an iterator that may stop between two items, with the name of where
    /// it stands within the item at hand, which is made again when it goes on.
    Flat(Option<syn::Expr>, Option<String>),
    /// With the counter's name.
    Enumerate(String),
    Skip(String, Expr),
    Take(String, Expr),
    /// The counter of a `take` behind this loop: when it has so many, no item is asked for any more.
    Until(String, Expr),
    /// What is behind it ends the loop of this label: it belongs to all loops of a chain, of which what is in front is one.
    Leaving(String),
    /// One of so many, the first one to begin with, with the counter's name.
    Every(String, Expr),
    /// With the counter's name, the other iterator's item at it, how many there are, and whether the other is asked first.
    Zip(String, Box<Item>, Expr, bool),
    /// The next item of the named iterator beside each, which a closure puts together; whether that one does more than compute.
    With(syn::Ident, syn::Expr, bool),
}

impl Step {
    /// Whether it makes one item of each, by itself.
    pub(super) fn is_each(&self) -> bool {
        matches!(self, Step::Map(_) | Step::Inspect(_) | Step::Copied)
    }

    /// Whether there are as many items behind it as in front.
    pub(super) fn keeps_length(&self) -> bool {
        self.is_each() || matches!(self, Step::Enumerate(_))
    }

    /// The name of the variable in front of the loop in which it counts or remembers.
    pub(super) fn state(&mut self) -> Option<&mut String> {
        match self {
            Step::SkipWhile(state, _)
            | Step::Scan(state, _)
            | Step::Enumerate(state)
            | Step::Skip(state, _)
            | Step::Take(state, _)
            | Step::Every(state, _)
            | Step::Zip(state, ..) => Some(state),
            Step::TakeWhile(_, state) | Step::Flat(_, state) => state.as_mut(),
            _ => None,
        }
    }

    /// The user's function that it calls.
    pub(super) fn function(&self) -> Option<&syn::Expr> {
        match self {
            Step::Map(f)
            | Step::Filter(f)
            | Step::FilterMap(f)
            | Step::TakeWhile(f, _)
            | Step::MapWhile(f)
            | Step::SkipWhile(_, f)
            | Step::Scan(_, f)
            | Step::Inspect(f)
            | Step::With(_, f, _) => Some(f),
            Step::Flat(f, _) => f.as_ref(),
            _ => None,
        }
    }

    /// Whether it looks at each item by itself, so that their order does not matter to it.
    pub(super) fn is_alone(&self) -> bool {
        self.is_each() || matches!(self, Step::Filter(_) | Step::FilterMap(_))
    }
}

/// What an iterator gives at an index.
#[derive(Clone)]
pub(super) enum Item {
    /// An element of the slice that the local holds.
    Element(String),
    /// Elements from `index * step` to `width` elements further, but not beyond `end` where there is one; `back`: counted from
    /// `end` to the front.
    Part {
        base: String,
        step: Expr,
        width: Expr,
        end: Option<String>,
        back: bool,
    },
    /// `start + index`.
    Count(Expr),
    /// One value, whatever the index.
    Same(Expr),
    /// Those of so many, again and again.
    Cycle(Box<Item>, Expr),
    Enumerate(Box<Item>),
    Zip(Box<Item>, Box<Item>),
    /// At `first + index * step`.
    From(Box<Item>, Expr, Expr),
    /// At `last - index`.
    Rev(Box<Item>, Expr),
    /// The first's items, as many as there are, and then the second's.
    Chain(Box<Item>, Expr, Box<Item>),
    /// With what is done to each by itself.
    Changed(Box<Item>, Vec<Step>),
}

impl Item {
    /// The items of which it is made.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Item> {
        let (one, other) = match self {
            Item::Cycle(inner, _)
            | Item::Enumerate(inner)
            | Item::From(inner, ..)
            | Item::Rev(inner, _)
            | Item::Changed(inner, _) => (Some(inner), None),
            Item::Zip(one, other) | Item::Chain(one, _, other) => (Some(one), Some(other)),
            Item::Element(_) | Item::Part { .. } | Item::Count(_) | Item::Same(_) => (None, None),
        };
        one.into_iter().chain(other).map(|item| &**item)
    }

    /// What is done to each by itself.
    pub(super) fn steps(&self) -> &[Step] {
        match self {
            Item::Changed(_, steps) => steps,
            _ => &[],
        }
    }
}

/// An iterator behind a name.
#[derive(Clone)]
pub(super) struct Bound {
    pub(super) item: Item,
    pub(super) count: Expr,
    /// What is done with each item, and what the names in it mean: each with its place among the locals.
    pub(super) steps: Vec<Step>,
    pub(super) names: Vec<(String, Option<usize>)>,
    pub(super) owned: bool,
    pub(super) unknown: bool,
    pub(super) remainder: Option<(String, Expr)>,
    pub(super) position: Option<String>,
    /// Of a range: where it starts and ends, and whether it has its end.
    pub(super) ends: Option<([Expr; 2], bool)>,
}
