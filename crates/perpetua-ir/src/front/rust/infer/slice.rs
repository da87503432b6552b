//! Slices and arrays: their methods, their parts, and what loops over them look at.

use std::collections::HashMap;
use std::rc::Rc;

use perpetua_syntax as syntax;
use perpetua_syntax::BinaryOp;

use super::methods;
use super::slice_code::{Seek, SortBy};
use super::tree::{Block, Expr, ExprKind, PartEnd};
use super::ty::{Kind, Ty};
use super::written::Writer;
use super::{Checker, Result};

/// The methods of slices and arrays that are no iterators, each as it is written.
pub(crate) const METHODS: &[&str] = &[
    "len()",
    "is_empty()",
    "get(i)",
    "get_mut(i)",
    "first()",
    "first_mut()",
    "last()",
    "last_mut()",
    "split_at(mid)",
    "split_at_mut(mid)",
    "split_first()",
    "split_first_mut()",
    "split_last()",
    "split_last_mut()",
    "swap(i, j)",
    "fill(value)",
    "reverse()",
    "rotate_left(n)",
    "rotate_right(n)",
    "contains(&value)",
    "starts_with(&other)",
    "ends_with(&other)",
    "binary_search(&value)",
    "binary_search_by(f)",
    "binary_search_by_key(&key, f)",
    "partition_point(f)",
    "is_sorted()",
    "is_sorted_by(f)",
    "is_sorted_by_key(f)",
    "sort()",
    "sort_by(f)",
    "sort_by_key(f)",
    "sort_unstable()",
    "sort_unstable_by(f)",
    "sort_unstable_by_key(f)",
    "select_nth_unstable(i)",
    "select_nth_unstable_by(i, f)",
    "select_nth_unstable_by_key(i, f)",
    "first_chunk()",
    "last_chunk()",
    "split_at_checked(mid)",
    "strip_prefix(&other)",
    "strip_suffix(&other)",
    "fill_with(f)",
    "swap_with_slice(&mut other)",
    "copy_within(range, to)",
    "copy_from_slice(&other)",
    "clone_from_slice(&other)",
    "try_into()",
    "as_slice()",
    "as_mut_slice()",
    "map(f)",
    "min(other)",
    "max(other)",
    "clone()",
];

/// Their names, for an error.
fn listed() -> String {
    let names = METHODS.iter().filter_map(|method| method.split('(').next());
    names
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

impl Checker<'_> {
    /// A method of a slice or an array.
    pub(super) fn slice_method(
        &mut self,
        receiver: Expr,
        name: &str,
        args: &[syntax::Expr],
        hint: Option<&Ty>,
        line: u32,
    ) -> Result<Expr> {
        // Whether the receiver is a reference, and whether one to change what it refers to.
        let mut through = None;
        let mut at = self.types.shallow(&receiver.ty);
        while let Ty::Ref(mutable, target) = at {
            through = Some(mutable && through.unwrap_or(true));
            at = self.types.shallow(&target);
        }
        let place = self.deref_all(receiver);
        let element = match self.types.shallow(&place.ty) {
            Ty::Array(element, _) | Ty::Slice(element) => (*element).clone(),
            _ => Ty::unit(),
        };
        let len = |place: Expr| Expr {
            line,
            ty: Ty::USIZE,
            kind: ExprKind::LenOf(Box::new(place)),
        };
        match (name, args) {
            ("get" | "get_mut", [_]) | ("first" | "last" | "first_mut" | "last_mut", []) => {
                match self.element_option(place, name, args, line)? {
                    Some(found) => Ok(found),
                    None => Err(self.error(line, format!("`{name}` works on slices and arrays"), "")),
                }
            }
            ("contains", [value]) => {
                let place = self.borrow(place, false, line)?;
                let value = self.expr(value, None)?;
                self.written(place, Some(value), &Writer(line).contains(), None, line)
            }
            ("copy_from_slice" | "clone_from_slice", [from]) => {
                let place = self.lent(place, true, line)?;
                let from = self.expr(from, None)?;
                self.written(place, Some(from), &Writer(line).copy(), None, line)
            }
            ("split_first" | "split_last" | "split_first_mut" | "split_last_mut", []) => {
                let mutable = name.ends_with("_mut");
                let place = self.lent(place, mutable, line)?;
                let first = name.starts_with("split_first");
                self.written(place, None, &Writer(line).split_end(first), None, line)
            }
            ("starts_with" | "ends_with", [other]) => {
                let place = self.borrow(place, false, line)?;
                let other = self.expr(other, None)?;
                let other = self.deref_all(other);
                let other = self.borrow(other, false, line)?;
                let body = Writer(line).at_end(name == "starts_with");
                self.written(place, Some(other), &body, None, line)
            }
            ("rotate_left" | "rotate_right", [by]) => {
                let place = self.lent(place, true, line)?;
                let by = self.expr_as(by, &Ty::USIZE)?;
                let body = Writer(line).rotate(name == "rotate_left");
                self.written(place, Some(by), &body, None, line)
            }
            ("binary_search", [value]) => {
                let place = self.borrow(place, false, line)?;
                let value = self.expr(value, None)?;
                self.written(place, Some(value), &Writer(line).search(&Seek::Value), None, line)
            }
            ("partition_point" | "binary_search_by", [function]) => {
                let place = self.borrow(place, false, line)?;
                let by = match name {
                    "partition_point" => Seek::Point(function),
                    _ => Seek::By(function),
                };
                self.written(place, None, &Writer(line).search(&by), None, line)
            }
            ("binary_search_by_key", [key, function]) => {
                let place = self.borrow(place, false, line)?;
                let key = self.expr(key, None)?;
                let body = Writer(line).search(&Seek::Key(function));
                self.written(place, Some(key), &body, None, line)
            }
            ("is_sorted", []) | ("is_sorted_by" | "is_sorted_by_key", [_]) => {
                let place = self.borrow(place, false, line)?;
                let by = match args.first() {
                    None => SortBy::Order,
                    Some(function) if name.ends_with("key") => SortBy::Key(function),
                    Some(function) => SortBy::Compare(function),
                };
                self.written(place, None, &Writer(line).is_sorted(&by), None, line)
            }
            ("select_nth_unstable", [_])
            | ("select_nth_unstable_by" | "select_nth_unstable_by_key", [_, _]) => {
                let place = self.lent(place, true, line)?;
                let at = match args.first() {
                    Some(at) => Some(self.expr_as(at, &Ty::USIZE)?),
                    None => None,
                };
                let by = match args.get(1) {
                    None => SortBy::Order,
                    Some(function) if name.ends_with("key") => SortBy::Key(function),
                    Some(function) => SortBy::Compare(function),
                };
                self.written(place, at, &Writer(line).select(&by), None, line)
            }
            ("split_at_checked", [mid]) => {
                let place = self.borrow(place, false, line)?;
                let mid = self.expr_as(mid, &Ty::USIZE)?;
                self.written(place, Some(mid), &Writer(line).split_checked(), None, line)
            }
            ("strip_prefix" | "strip_suffix", [other]) => {
                let place = self.borrow(place, false, line)?;
                let other = self.expr(other, None)?;
                let other = self.deref_all(other);
                let other = self.borrow(other, false, line)?;
                let body = Writer(line).strip(name == "strip_prefix");
                self.written(place, Some(other), &body, None, line)
            }
            ("fill_with", [function]) => {
                let place = self.lent(place, true, line)?;
                self.written(place, None, &Writer(line).fill_with(function), None, line)
            }
            ("swap_with_slice", [other]) => {
                let place = self.lent(place, true, line)?;
                let other = self.expr(other, None)?;
                self.written(place, Some(other), &Writer(line).swap_all(), None, line)
            }
            ("sort" | "sort_unstable", []) if matches!(element, Ty::Scalar(s) if s.is_float()) => {
                let shown = self.show(&element);
                Err(self.error(
                    line,
                    format!("`{shown}` has no total order"),
                    format!("write `{name}_by(|a, b| a.total_cmp(b))`"),
                ))
            }
            ("sort" | "sort_unstable", [])
            | ("sort_by" | "sort_by_key" | "sort_unstable_by" | "sort_unstable_by_key", [_]) => {
                let place = self.lent(place, true, line)?;
                let how = match args.first() {
                    None => SortBy::Order,
                    Some(function) if name.ends_with("key") => SortBy::Key(function),
                    Some(function) => SortBy::Compare(function),
                };
                self.written(place, None, &Writer(line).sort(&how), None, line)
            }
            ("reverse", []) => {
                let place = self.lent(place, true, line)?;
                self.written(place, None, &Writer(line).reverse(), None, line)
            }
            ("map", [function]) if let Ty::Array(_, len) = self.types.shallow(&place.ty) => {
                let (w, len) = (Writer(line), self.len_expr(len, line));
                let body = w.mapped(&len, function, |index| w.of_receiver(index));
                self.written(place, None, &body, None, line)
            }
            ("try_into", []) => {
                let to = match hint.map(|hint| self.types.shallow(hint)) {
                    Some(Ty::Result(to, _)) => (*to).clone(),
                    _ => self.types.var(Kind::General),
                };
                let to = match self.types.shallow(&to) {
                    Ty::Var(_) => Ty::Array(Rc::new(element), self.types.len_var()),
                    to => to,
                };
                self.try_array(place, &to, line)
            }
            (syntax::INDEXED, []) => Ok(self.make(line, Ty::unit(), ExprKind::Tuple(Vec::new()))),
            ("len", []) => Ok(len(place)),
            ("is_empty", []) => Ok(Expr {
                line,
                ty: Ty::BOOL,
                kind: ExprKind::Binary(
                    syntax::BinaryOp::Eq,
                    Box::new(len(place)),
                    Box::new(Expr {
                        line,
                        ty: Ty::USIZE,
                        kind: ExprKind::Int(0),
                    }),
                ),
            }),
            ("clone", []) if matches!(self.types.shallow(&place.ty), Ty::Array(..)) => Ok(place),
            ("iter" | "as_slice", []) => self.borrow(place, false, line),
            ("iter_mut" | "as_mut_slice", []) => self.borrow(place, true, line),
            ("into_iter", []) => match through {
                Some(mutable) => self.borrow(place, mutable, line),
                None => Ok(place),
            },
            (syntax::ELEMENT, [index]) => {
                let index = Box::new(self.expr_as(index, &Ty::USIZE)?);
                self.indexed(&place);
                let item = self.make(line, element, ExprKind::Element(Box::new(place), index));
                Ok(self.referred(item, through))
            }
            (syntax::PART, [start, len]) => {
                let (start, len) = (self.expr_as(start, &Ty::USIZE)?, self.expr_as(len, &Ty::USIZE)?);
                let part = self.part(place, &element, (start, Some(len)), PartEnd::Len, line);
                Ok(self.referred(part, through))
            }
            (syntax::SLICE | syntax::SLICE_TO, [start, end @ ..]) => {
                let start = self.expr_as(start, &Ty::USIZE)?;
                let end = match end.first() {
                    Some(end) => Some(self.expr_as(end, &Ty::USIZE)?),
                    None => None,
                };
                let how = if name == syntax::SLICE {
                    PartEnd::Behind
                } else {
                    PartEnd::Last
                };
                Ok(self.part(place, &element, (start, end), how, line))
            }
            ("split_at" | "split_at_mut", [mid]) => self.split_at(place, &element, name, mid, line),
            ("swap", [_, _]) => {
                self.assigned(&place)?;
                self.indexed(&place);
                let mut args = self.usize_args(args)?;
                let (b, a) = (args.pop(), args.pop());
                match (a, b) {
                    (Some(a), Some(b)) => Ok(Expr {
                        line,
                        ty: Ty::unit(),
                        kind: ExprKind::Swap(Box::new(place), Box::new(a), Box::new(b)),
                    }),
                    _ => Err(self.error(line, "`swap` takes two indices", "")),
                }
            }
            ("fill", [value]) => {
                self.assigned(&place)?;
                self.indexed(&place);
                let value = self.expr_as(value, &element)?;
                Ok(Expr {
                    line,
                    ty: Ty::unit(),
                    kind: ExprKind::Fill(Box::new(place), Box::new(value)),
                })
            }
            _ => {
                let shown = self.show(&place.ty);
                let remedy = match methods::instead(name) {
                    Some(instead) => instead.to_owned(),
                    None => format!("slices and arrays have {}, and iterators", listed()),
                };
                Err(self.error(
                    line,
                    format!("`{shown}` has no method `{name}` in kernels"),
                    remedy,
                ))
            }
        }
    }

    /// A reference to the place where the receiver was one.
    fn referred(&self, place: Expr, through: Option<bool>) -> Expr {
        match through {
            Some(mutable) => {
                let ty = Ty::Ref(mutable, Rc::new(place.ty.clone()));
                self.make(place.line, ty, ExprKind::Ref(Box::new(place)))
            }
            None => place,
        }
    }

    /// A part of a place.
    pub(super) fn part(
        &mut self,
        place: Expr,
        element: &Ty,
        (start, end): (Expr, Option<Expr>),
        how: PartEnd,
        line: u32,
    ) -> Expr {
        self.indexed(&place);
        let kind = ExprKind::Part(Box::new(place), Box::new(start), end.map(Box::new), how);
        self.make(line, Ty::Slice(Rc::new(element.clone())), kind)
    }

    /// `x.split_at(mid)`: both parts.
    fn split_at(
        &mut self,
        place: Expr,
        element: &Ty,
        name: &str,
        mid: &syntax::Expr,
        line: u32,
    ) -> Result<Expr> {
        let mutable = name == "split_at_mut";
        let mid = self.expr_as(mid, &Ty::USIZE)?;
        let mut before = Vec::new();
        self.scopes.push(HashMap::new());
        let all = self.borrow(place, mutable, line)?;
        let all = self.eager(all, &mut before, line);
        let mid = self.eager(mid, &mut before, line);
        self.scopes.pop();
        let (ExprKind::Local(all), ExprKind::Local(mid)) = (all.kind, mid.kind) else {
            return Err(self.error(line, format!("`{name}` works on slices and arrays"), ""));
        };
        let mut half = |start: Expr, end: Option<Expr>| {
            let all = self.local(all, line);
            let all = self.deref(all);
            let part = self.part(all, element, (start, end), PartEnd::Behind, line);
            self.referred(part, Some(mutable))
        };
        let zero = Expr {
            line,
            ty: Ty::USIZE,
            kind: ExprKind::Int(0),
        };
        let at = |ty: Ty| Expr {
            line,
            ty,
            kind: ExprKind::Local(mid),
        };
        let parts = vec![half(zero, Some(at(Ty::USIZE))), half(at(Ty::USIZE), None)];
        let ty = Ty::Tuple(parts.iter().map(|part| part.ty.clone()).collect());
        let value = self.make(line, ty.clone(), ExprKind::Tuple(parts));
        let block = Block {
            stmts: before,
            value: Some(Box::new(value)),
        };
        Ok(self.make(line, ty, ExprKind::Block(None, block)))
    }

    /// `x.get(i)`, `x.first()`, `x.last()`: a reference to an element, which is looked at only where there is one.
    pub(super) fn element_option(
        &mut self,
        place: Expr,
        name: &str,
        args: &[syntax::Expr],
        line: u32,
    ) -> Result<Option<Expr>> {
        let element = match self.types.shallow(&place.ty) {
            Ty::Array(element, _) | Ty::Slice(element) => (*element).clone(),
            _ => return Ok(None),
        };
        let index = match (name, args) {
            ("get" | "get_mut", [index]) => {
                let index = self.expr(index, Some(&Ty::USIZE))?;
                if let Some(range) = self.range_of(&self.peeled(&index.ty)) {
                    return self
                        .option_of_range(place, name == "get_mut", index, range)
                        .map(Some);
                }
                Some(self.coerce(index, &Ty::USIZE)?)
            }
            ("first" | "last" | "first_mut" | "last_mut", []) => None,
            _ => return Ok(None),
        };
        let mutable = name.ends_with("_mut");
        if mutable {
            self.assigned(&place)?;
        }
        let mut before = Vec::new();
        self.scopes.push(HashMap::new());
        let place = self.borrow(place, mutable, line)?;
        let place = self.eager(place, &mut before, line);
        let ExprKind::Local(all) = place.kind else {
            return Ok(None);
        };
        let target = |c: &mut Self| {
            let local = c.local(all, line);
            c.deref(local)
        };
        let whole = target(self);
        let len = self.make(line, Ty::USIZE, ExprKind::LenOf(Box::new(whole)));
        let int = |c: &Self, n: u128| c.make(line, Ty::USIZE, ExprKind::Int(n));
        let index = match (name, index) {
            ("last" | "last_mut", _) => {
                let one = int(self, 1);
                // Wraps where there is none, and is then beyond the end.
                self.make(
                    line,
                    Ty::USIZE,
                    ExprKind::Binary(BinaryOp::Sub, Box::new(len), Box::new(one)),
                )
            }
            (_, Some(index)) => index,
            (_, None) => int(self, 0),
        };
        let index = self.eager(index, &mut before, line);
        let ExprKind::Local(at) = index.kind else {
            return Ok(None);
        };
        self.scopes.pop();
        let whole = target(self);
        let len = self.make(line, Ty::USIZE, ExprKind::LenOf(Box::new(whole)));
        let at_index = self.local(at, line);
        let fits = self.make(
            line,
            Ty::BOOL,
            ExprKind::Binary(BinaryOp::Lt, Box::new(at_index), Box::new(len)),
        );
        let (whole, at_index) = (target(self), self.local(at, line));
        let found = self.make(
            line,
            element.clone(),
            ExprKind::Element(Box::new(whole), Box::new(at_index)),
        );
        let reference = Ty::Ref(mutable, Rc::new(element));
        let found = self.make(line, reference.clone(), ExprKind::Ref(Box::new(found)));
        let ty = Ty::Option(Rc::new(reference));
        let value = self.make(line, ty.clone(), ExprKind::Tuple(vec![fits, found]));
        let block = Block {
            stmts: before,
            value: Some(Box::new(value)),
        };
        Ok(Some(self.make(line, ty, ExprKind::Block(None, block))))
    }
}
