//! Functions of the standard library that are forms written shortly: `mem::swap`, `cmp::min`, `array::from_fn`, `contains` of ranges.

use super::expr::peel;
use super::path::segment_names;
use super::reader::{Reader, line_of, name_of};
use super::sugar::{binding, block, expr, local, statement};
use crate::ast::{
    BinaryOp, Expr, ExprKind, GenericArg, Line, MEASURED, REVERSED, Stmt, StmtKind, Type, TypeMember, UnaryOp,
};
use quote::quote_spanned;
use syn::spanned::Spanned;

/// The functions: module, name, arguments.
pub const STD_FUNCTIONS: &[(&str, &str, &[&str])] = &[
    ("mem", "swap", &["&mut a", "&mut b"]),
    ("mem", "replace", &["&mut place", "value"]),
    ("mem", "take", &["&mut place"]),
    ("mem", "size_of", &[]),
    ("mem", "align_of", &[]),
    ("cmp", "min", &["a", "b"]),
    ("cmp", "max", &["a", "b"]),
    ("cmp", "Reverse", &["key"]),
    ("array", "from_fn", &["f"]),
];

/// The struct of the standard library that turns an order round. It is known by its name alone, too: rustc is asked whether a user's
/// name means it.
pub const REVERSE: &str = "Reverse";

/// Whether a path is that struct's.
#[must_use]
pub fn is_reverse(path: &syn::Path) -> bool {
    match &segment_names(path)[..] {
        [.., module, name] => module == "cmp" && name == REVERSE,
        [name] => name == REVERSE,
        [] => false,
    }
}

/// `Reverse(value)`.
pub(super) fn reversed(value: Expr) -> ExprKind {
    ExprKind::MethodCall {
        receiver: Box::new(value),
        name: REVERSED.to_owned(),
        generics: Vec::new(),
        args: Vec::new(),
    }
}

/// `x.copy_within(a..b, to)` as a loop, backwards where it goes up; `None` of other calls.
pub(super) fn copied_within(call: &syn::ExprMethodCall) -> Option<syn::Expr> {
    let ("copy_within", [range, to]) = (
        name_of(&call.method).as_str(),
        &call.args.iter().collect::<Vec<_>>()[..],
    ) else {
        return None;
    };
    let syn::Expr::Range(range) = peel(range) else {
        return None;
    };
    let (on, span) = (&call.receiver, call.method.span());
    let start = match &range.start {
        Some(start) => quote_spanned!(span=> #start),
        None => quote_spanned!(span=> 0usize),
    };
    let end = match (&range.end, &range.limits) {
        (None, _) => quote_spanned!(span=> __all.len()),
        (Some(end), syn::RangeLimits::HalfOpen(_)) => quote_spanned!(span=> #end),
        (Some(last), syn::RangeLimits::Closed(_)) => quote_spanned!(span=> (#last) + 1),
    };
    let tokens = quote_spanned! { span=> {
        let __all = #on.as_mut_slice();
        let (__from, __end, __to): (usize, usize, usize) = (#start, #end, #to);
        let __len = __all[__from..__end].len();
        let _ = __all[__to..][..__len].len();
        for __at in 0..__len {
            let __at = if __to <= __from { __at } else { __len - 1 - __at };
            __all[__to + __at] = __all[__from + __at];
        }
    }};
    syn::parse2(tokens).ok()
}

impl Reader {
    /// `x.get(r)` of a range with a name, with its ends; `None` of other calls.
    pub(super) fn part_by_name(&self, call: &syn::ExprMethodCall) -> Option<syn::Expr> {
        let (Some(arg), "get" | "get_mut") = (call.args.first(), name_of(&call.method).as_str()) else {
            return None;
        };
        let (_, closed) = self.bound_range(arg)?;
        let mut longer = call.clone();
        longer.args.clear();
        longer.args.push(match closed {
            true => syn::parse_quote!(*#arg.start()..=*#arg.end()),
            false => syn::parse_quote!(#arg.start..#arg.end),
        });
        Some(syn::Expr::MethodCall(longer))
    }

    /// One of [`STD_FUNCTIONS`]; `None` where it is none of them.
    pub(super) fn read_std_call(
        &mut self,
        path: &syn::Path,
        args: &syn::punctuated::Punctuated<syn::Expr, syn::Token![,]>,
    ) -> Option<ExprKind> {
        let names = segment_names(path);
        let line = line_of(path.span());
        let (module, name) = match &names[..] {
            [.., module, name] => (module.as_str(), name.as_str()),
            [_] if is_reverse(path) => ("cmp", REVERSE),
            [name] if matches!(name.as_str(), "size_of" | "align_of") => ("mem", name.as_str()),
            _ => return None,
        };
        let known = |row: &&(&str, &str, &[&str])| (row.0, row.1, row.2.len()) == (module, name, args.len());
        STD_FUNCTIONS.iter().find(known)?;
        if let "size_of" | "align_of" = name {
            let last = path.segments.last()?;
            let Some(GenericArg::Type(ty)) = self.read_path_args(&last.arguments).into_iter().next() else {
                self.error(path, format!("`{name}` measures a type: write `{name}::<f32>()`"));
                return Some(ExprKind::Tuple(Vec::new()));
            };
            let member = TypeMember {
                ty,
                via: Some(MEASURED.to_owned()),
                name: name.to_owned(),
            };
            return Some(ExprKind::TypeConst(Box::new(member)));
        }
        if let (("array", "from_fn"), Some(function)) = ((module, name), args.first()) {
            // `from_fn::<T, N, _>` says how many.
            let generics = path
                .segments
                .last()
                .map(|last| self.read_path_args(&last.arguments));
            let ty = match generics.unwrap_or_default().into_iter().nth(1) {
                Some(GenericArg::Const(len)) => Type::Array {
                    element: Box::new(Type::Infer),
                    len: Box::new(len),
                },
                _ => Type::Infer,
            };
            let member = TypeMember {
                ty,
                via: Some(module.to_owned()),
                name: name.to_owned(),
            };
            return Some(ExprKind::TypeCall {
                member: Box::new(member),
                args: vec![self.read_argument(function, true)],
            });
        }
        let read =
            |reader: &mut Self| -> Vec<Expr> { args.iter().map(|arg| reader.read_expr(arg)).collect() };
        match (module, name) {
            ("cmp", REVERSE) => read(self).pop().map(reversed),
            ("cmp", "min" | "max") => {
                let mut args = read(self);
                let second = args.pop()?;
                Some(ExprKind::MethodCall {
                    receiver: Box::new(args.pop()?),
                    name: name.to_owned(),
                    generics: Vec::new(),
                    args: vec![second],
                })
            }
            ("mem", "swap" | "replace" | "take") => {
                let mut stmts = Vec::new();
                let mut bind = |reader: &mut Self, value: Expr| {
                    let name = reader.fresh("place");
                    stmts.push(Stmt {
                        line,
                        kind: StmtKind::Let {
                            pattern: binding(&name, line),
                            ty: None,
                            init: Some(value),
                        },
                    });
                    name
                };
                let at = |name: &String| {
                    let operand = Box::new(local(name, line));
                    let op = UnaryOp::Deref;
                    expr(line, ExprKind::Unary { op, operand })
                };
                let mut args = read(self).into_iter();
                let first = bind(self, args.next()?);
                let second = args.next().map(|second| bind(self, second));
                let old = bind(self, at(&first));
                let swaps = name == "swap";
                let new = match &second {
                    Some(second) if swaps => at(second),
                    Some(second) => local(second, line),
                    None => default_value(line),
                };
                let mut store = |place: Expr, value: Expr| {
                    let (place, value) = (Box::new(place), Box::new(value));
                    stmts.push(statement(expr(line, ExprKind::Assign { place, value })));
                };
                store(at(&first), new);
                if let Some(second) = second.filter(|_| swaps) {
                    store(at(&second), local(&old, line));
                }
                let value = (!swaps).then(|| local(&old, line));
                Some(ExprKind::Block {
                    label: None,
                    block: block(line, stmts, value),
                })
            }
            _ => None,
        }
    }

    /// `(a..b).contains(&x)` compares `x` with both ends.
    pub(super) fn read_contains(
        &mut self,
        parts: [Option<Expr>; 2],
        closed: bool,
        value: &syn::Expr,
    ) -> ExprKind {
        let line = line_of(value.span());
        let (mut stmts, mut holds) = (Vec::new(), Vec::new());
        let mut name = |reader: &mut Self, value: Expr| {
            let name = reader.fresh("part");
            stmts.push(Stmt {
                line,
                kind: StmtKind::Let {
                    pattern: binding(&name, line),
                    ty: None,
                    init: Some(value),
                },
            });
            local(&name, line)
        };
        let [start, end] = parts.map(|part| part.map(|part| name(self, part)));
        let value = match peel(value) {
            syn::Expr::Reference(reference) => self.read_expr(&reference.expr),
            value => self.read_expr(value),
        };
        let value = name(self, value);
        let compare = |op, left: Expr, right: Expr| {
            let (left, right) = (Box::new(left), Box::new(right));
            expr(line, ExprKind::Binary { op, left, right })
        };
        if let Some(start) = start {
            holds.push(compare(BinaryOp::Le, start, value.clone()));
        }
        if let Some(end) = end {
            let op = if closed { BinaryOp::Le } else { BinaryOp::Lt };
            holds.push(compare(op, value, end));
        }
        let all = holds.into_iter().reduce(|a, b| compare(BinaryOp::And, a, b));
        let all = all.unwrap_or_else(|| expr(line, ExprKind::Bool(true)));
        ExprKind::Block {
            label: None,
            block: block(line, stmts, Some(all)),
        }
    }
}

/// `Default::default()`, of the type that is expected there.
fn default_value(line: Line) -> Expr {
    let member = TypeMember {
        ty: Type::Infer,
        via: Some("Default".to_owned()),
        name: "default".to_owned(),
    };
    let kind = ExprKind::TypeCall {
        member: Box::new(member),
        args: Vec::new(),
    };
    expr(line, kind)
}
