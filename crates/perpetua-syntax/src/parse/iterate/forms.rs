//! Iterators that are others written shortly: functions of `std::iter`, and ends such as `rfold` and `try_fold`. Each becomes
//! the longer form as tokens, which are read instead.

use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::visit::Visit;

use super::{Chain, Source, most};
use crate::parse::chain::Item;
use crate::parse::expr::peel;
use crate::parse::path::segment_names;
use crate::parse::reader::{Reader, name_of};

/// A function of `std::iter`.
pub(super) enum Made {
    /// The same iterator by methods.
    Chain(Box<syn::Expr>),
    /// One value again and again, or so many times.
    Same(Box<syn::Expr>, Option<Box<syn::Expr>>),
}

/// What `iter::zip(a, b)` and its kin make.
pub(super) fn source(call: &syn::ExprCall) -> Option<Made> {
    let syn::Expr::Path(path) = &*call.func else {
        return None;
    };
    let names = segment_names(&path.path);
    let [.., module, name] = &names[..] else {
        return None;
    };
    if module != "iter" {
        return None;
    }
    let span = call.span();
    let tokens = match (name.as_str(), &call.args.iter().collect::<Vec<_>>()[..]) {
        ("zip", [a, b]) => quote_spanned! { span=> (#a).into_iter().zip(#b) },
        ("once", [value]) => quote_spanned! { span=> [#value].into_iter() },
        ("repeat", [value]) => return Some(Made::Same(Box::new((*value).clone()), None)),
        ("repeat_n", [value, count]) => {
            let [value, count] = [*value, *count].map(|value| Box::new(value.clone()));
            return Some(Made::Same(value, Some(count)));
        }
        ("repeat_with", [f]) => quote_spanned! { span=> (0usize..).map(|_| (#f)()) },
        ("from_fn", [f]) => quote_spanned! { span=> (0usize..).map_while(|_| (#f)()) },
        ("successors", [first, f]) => quote_spanned! { span=>
            (0usize..).scan(#first, |__state, _| match *__state {
                Some(__now) => {
                    *__state = (#f)(&__now);
                    Some(__now)
                }
                None => None,
            })
        },
        _ => return None,
    };
    syn::parse2(tokens).ok().map(Box::new).map(Made::Chain)
}

impl Reader {
    pub(super) fn read_made(&mut self, made: &Made, chain: &mut Chain) {
        match made {
            Made::Chain(longer) => self.read_chain(longer, chain),
            Made::Same(value, count) => {
                let value = self.read_expr(value);
                let value = chain.name(self, "value", value);
                let count = match count {
                    Some(count) => {
                        let count: syn::Expr = syn::parse_quote!({ let __count: usize = #count; __count });
                        self.read_expr(&count)
                    }
                    None => most(chain.line),
                };
                let count = chain.name(self, "count", count);
                chain.owned = true;
                chain.source = Source::Items(Item::Same(value), count);
            }
        }
    }

    /// Whether it is a named iterator, or one behind it.
    fn goes_on(&self, on: &syn::Expr) -> bool {
        match peel(on) {
            syn::Expr::MethodCall(call) => self.goes_on(&call.receiver),
            syn::Expr::Reference(reference) => self.goes_on(&reference.expr),
            on => self.bound_iterator(on).is_some(),
        }
    }

    /// The longer form of a method that ends a chain; `None` where it has none.
    pub(super) fn longer_end(&self, call: &syn::ExprMethodCall) -> Option<syn::Expr> {
        let (on, span) = (&call.receiver, call.method.span());
        let bound = self.bound_iterator(on).filter(|bound| bound.position.is_some());
        let goes_on = bound.is_some();
        // From the back of one that goes on.
        let back = match &bound {
            Some(_) => quote_spanned!(span=> #on.by_ref().rev()),
            None => quote_spanned!(span=> #on.rev()),
        };
        let name = name_of(&call.method);
        let range = match peel(on) {
            syn::Expr::Range(syn::ExprRange {
                start: Some(start),
                end: Some(end),
                limits,
                ..
            }) => Some(match limits {
                syn::RangeLimits::HalfOpen(_) => (start, end, quote_spanned!(span=> <)),
                syn::RangeLimits::Closed(_) => (start, end, quote_spanned!(span=> <=)),
            }),
            _ => None,
        };
        let tokens = match (name.as_str(), &call.args.iter().collect::<Vec<_>>()[..]) {
            ("rfold", [first, f]) => quote_spanned! { span=> #on.rev().fold(#first, #f) },
            ("rfind", [f]) => quote_spanned! { span=> #back.find(#f) },
            ("next_back", []) if bound.is_none_or(|bound| !bound.steps.is_empty()) => {
                quote_spanned! { span=> #back.next() }
            }
            ("nth_back", [n]) => quote_spanned! { span=> #back.nth(#n) },
            ("rposition", [f]) if !goes_on => quote_spanned! { span=>
                #on.enumerate().rev().find_map(|(__at, __item)| if (#f)(__item) { Some(__at) } else { None })
            },
            // Behind a `?` or `return` in front of it, it would be left in place of the function.
            ("try_fold", [first, _]) if leaves(on) || leaves(first) => return None,
            ("try_for_each", [_]) if leaves(on) => return None,
            ("try_fold", [first, f]) => {
                // What it goes over is computed before what it starts with.
                let (named, items) = match is_literal(first) || self.goes_on(on) {
                    true => (None, quote_spanned!(span=> #on.by_ref())),
                    false => (
                        Some(quote_spanned!(span=> let __items = (#on).into_iter();)),
                        quote_spanned!(span=> __items),
                    ),
                };
                quote_spanned! { span=>
                (|| {
                    #named
                    let mut __all = #first;
                    for __item in #items {
                        __all = (#f)(__all, __item)?;
                    }
                    <_ as Try>::from_output(__all)
                })()
                }
            }
            ("try_for_each", [f]) => quote_spanned! { span=>
                (|| {
                    for __item in #on.by_ref() {
                        (#f)(__item)?;
                    }
                    <_ as Try>::from_output(())
                })()
            },
            ("next_if", [f]) if goes_on => quote_spanned! { span=>
                if (match #on.peek() { Some(__item) => (#f)(__item), None => false }) { #on.next() } else { None }
            },
            ("next_if_eq", [value]) if goes_on => quote_spanned! { span=>
                {
                    let __value = #value;
                    if (match #on.peek() { Some(__item) => __item == __value, None => false }) { #on.next() } else { None }
                }
            },
            ("is_sorted", []) => quote_spanned! { span=> #on.is_sorted_by(|__a, __b| *__a <= *__b) },
            ("is_sorted_by_key", [f]) => {
                quote_spanned! { span=> #on.map(#f).is_sorted_by(|__a, __b| *__a <= *__b) }
            }
            ("is_sorted_by", [f]) => quote_spanned! { span=> {
                let mut __before = None;
                #on.all(|__item| {
                    let __last = __before;
                    __before = Some(__item);
                    match __last {
                        Some(__last) => (#f)(&__last, &__item),
                        None => true,
                    }
                })
            }},
            ("is_empty", []) if range.is_some() => {
                let (start, end, holds) = range?;
                quote_spanned!(span=> { let (__start, __end) = (#start, #end); !(__start #holds __end) })
            }
            ("is_empty", []) => quote_spanned! { span=> #on.len() == 0 },
            _ => return None,
        };
        syn::parse2(tokens).ok()
    }
}

/// Whether it is the same wherever it stands.
fn is_literal(value: &syn::Expr) -> bool {
    match peel(value) {
        syn::Expr::Lit(_) => true,
        syn::Expr::Unary(unary) => is_literal(&unary.expr),
        syn::Expr::Tuple(tuple) => tuple.elems.iter().all(is_literal),
        _ => false,
    }
}

/// Whether evaluating it may leave the function around it.
fn leaves(value: &syn::Expr) -> bool {
    struct Leaves(bool);
    impl Visit<'_> for Leaves {
        fn visit_expr_try(&mut self, _: &syn::ExprTry) {
            self.0 = true;
        }

        fn visit_expr_return(&mut self, _: &syn::ExprReturn) {
            self.0 = true;
        }

        fn visit_expr_closure(&mut self, _: &syn::ExprClosure) {}
    }
    let mut found = Leaves(false);
    found.visit_expr(value);
    found.0
}
