//! Ranges as values: their methods, and what loops over them look at. Where the reader sees that a name is a range, it goes over the
//! ends itself; this is for the results of functions and their like.

use std::collections::HashMap;
use std::sync::Arc;

use perpetua_syntax as syntax;
use perpetua_syntax::{BinaryOp, Scalar, Type, Variant};

use super::tree::{Expr, ExprKind, LocalId, PartEnd, Pat, Stmt, StmtKind};
use super::ty::{Generic, Ty};
use super::written::{ARGUMENT, RECEIVER, Writer};
use super::{Checker, Result};
use crate::front::rust::describe::GenericStruct;

/// The methods that make steps of a range.
const STEPPING: [&str; 4] = ["rev", "step_by", "skip", "take"];

/// Methods that go on in the range.
const MOVING: [&str; 12] = [
    "by_ref",
    "nth",
    "nth_back",
    "any",
    "all",
    "find",
    "find_map",
    "position",
    "rposition",
    "try_fold",
    "try_for_each",
    "rfind",
];

/// The ends by their places among the fields.
const START: u32 = 0;
const END: u32 = 1;

impl Writer {
    fn end_of_range(self, name: &str) -> syntax::Expr {
        let (base, name) = (Box::new(self.local(RECEIVER)), name.to_owned());
        self.expr(syntax::ExprKind::Field { base, name })
    }

    fn cast(self, value: syntax::Expr, ty: Type) -> syntax::Expr {
        let value = Box::new(value);
        self.expr(syntax::ExprKind::Cast { value, ty })
    }

    /// Whether `value` is below the end of the receiver.
    fn below_end(self, value: syntax::Expr, closed: bool) -> syntax::Expr {
        let op = if closed { BinaryOp::Le } else { BinaryOp::Lt };
        self.binary(op, value, self.end_of_range("end"))
    }

    /// The receiver's first number, which leaves it.
    fn next_of_range(self) -> syntax::Expr {
        let first = "first";
        let start = || self.end_of_range("start");
        let next = self.binary(BinaryOp::Add, self.local(first), self.int(1));
        let stmts = vec![self.bind(first, start()), self.assign(start(), next)];
        let some = self.variant(Variant::Some, Some(self.local(first)));
        let none = self.block_expr(Vec::new(), Some(self.variant(Variant::None, None)));
        let left = self.below_end(start(), false);
        self.when(left, self.block(stmts, Some(some)), Some(none))
    }

    /// The receiver's last number, which leaves it.
    fn last_of_range(self) -> syntax::Expr {
        let last = "last";
        let before = self.binary(BinaryOp::Sub, self.end_of_range("end"), self.int(1));
        let stmts = vec![
            self.bind(last, before),
            self.assign(self.end_of_range("end"), self.local(last)),
        ];
        let some = self.variant(Variant::Some, Some(self.local(last)));
        let none = self.block_expr(Vec::new(), Some(self.variant(Variant::None, None)));
        let left = self.below_end(self.end_of_range("start"), false);
        self.when(left, self.block(stmts, Some(some)), Some(none))
    }

    /// How many numbers the receiver has. The way from its first to its last may be longer than their type has numbers.
    pub(super) fn length_of_range(self, closed: bool) -> syntax::Expr {
        let wide = |name: &str| self.cast(self.end_of_range(name), Type::Scalar(Scalar::Usize));
        let mut way = self.binary(BinaryOp::Sub, wide("end"), wide("start"));
        if closed {
            way = self.method(way, "saturating_add", vec![self.int(1)]);
        }
        let some = self.below_end(self.end_of_range("start"), closed);
        let none = self.block_expr(Vec::new(), Some(self.int(0)));
        self.when(some, self.block(Vec::new(), Some(way)), Some(none))
    }
}

/// The closure that gives the next number of a place.
pub(super) fn next_of(place: &syntax::Expr) -> syntax::Expr {
    let w = Writer(place.line);
    w.expr(syntax::ExprKind::Closure {
        moved: false,
        params: Vec::new(),
        ret: None,
        body: Box::new(w.method(place.clone(), "next", Vec::new())),
    })
}

impl Checker<'_> {
    /// Whether an expression is a local that holds what has a `next`: a range, or an iterator of the user's.
    pub(super) fn is_next_place(&mut self, place: &syntax::Expr) -> Result<bool> {
        let syntax::ExprKind::Local(name) = &place.kind else {
            return Ok(false);
        };
        let local = self.find(name).and_then(|id| self.locals.get(id.0 as usize));
        match local.map(|local| local.ty.clone()) {
            Some(ty) => Ok(self.range_of(&ty).is_some() || self.has_next(&ty, place.line)?),
            None => Ok(false),
        }
    }

    /// What a range goes over, and whether it has its end; `None` of what is no range.
    pub(super) fn range_of(&self, ty: &Ty) -> Option<(Ty, bool)> {
        let (of, item) = self.generic_of(ty)?;
        let closed = [false, true]
            .into_iter()
            .find(|closed| of == GenericStruct::range(*closed))?;
        Some((item, closed))
    }

    /// Of what generic struct a type is an instance, and of which type before all.
    pub(super) fn generic_of(&self, ty: &Ty) -> Option<(Arc<GenericStruct>, Ty)> {
        match self.types.shallow(ty) {
            Ty::Instance(of, args) => match args.first() {
                Some(Generic::Type(item)) => Some((of, item.clone())),
                _ => None,
            },
            Ty::Struct(desc) => {
                let (of, _) = desc.of.as_ref()?;
                Some((of.clone(), Ty::from_desc(&desc.fields.first()?.ty)))
            }
            _ => None,
        }
    }

    /// Whether a local is the reader's, whose names have spaces.
    fn is_own(&self, id: LocalId) -> bool {
        let local = self.locals.get(id.0 as usize);
        local.is_some_and(|local| local.name.contains(' '))
    }

    /// A method of a range.
    pub(super) fn range_method(
        &mut self,
        receiver: Expr,
        (item, closed): (Ty, bool),
        name: &str,
        args: &[syntax::Expr],
        line: u32,
    ) -> Result<Expr> {
        let shown = self.show(&receiver.ty);
        let w = Writer(line);
        if matches!(self.types.shallow(&receiver.ty), Ty::Ref(true, _)) {
            // A loop over `&mut range` goes on in it: the loop asks for so many items, and leaves where there is none.
            let own = matches!(&receiver.kind, ExprKind::Local(id) if self.is_own(*id));
            match (name, args) {
                (syntax::INDEXED, []) => return Err(self.not_indexed(&shown, line)),
                ("into_iter", []) if !closed => return Ok(receiver),
                ("len", []) if own => return self.expr(&w.most(Scalar::Usize), Some(&Ty::USIZE)),
                (syntax::ELEMENT, [_]) if own => {
                    let next = self.written(receiver, None, &w.next_of_range(), None, line)?;
                    return self.item_or_leave(next, line);
                }
                ("into_iter", []) => {
                    let cause = format!("a loop over `{shown}` goes on where the range stands");
                    return Err(self.error(
                        line,
                        cause,
                        "loop over the range itself, or over `*range.start()..=*range.end()`",
                    ));
                }
                _ if STEPPING.contains(&name) => {
                    return Err(self.error(
                        line,
                        format!("`{name}` of `{shown}` takes from the range that it refers to"),
                        format!(
                            "ask that range by `next` in a loop, or go over a copy: `range.clone().{name}(…)`"
                        ),
                    ));
                }
                _ => {}
            }
        }
        let range = self.deref_all(receiver);
        match (name, args) {
            (syntax::INDEXED, []) => Ok(self.make(line, Ty::unit(), ExprKind::Tuple(Vec::new()))),
            ("into_iter" | "clone", []) => Ok(range),
            ("start" | "end", []) if closed => {
                let end = if name == "start" { START } else { END };
                let end = self.make(line, item, ExprKind::Field(Box::new(range), end));
                self.borrow(end, false, line)
            }
            ("next" | "next_back", []) if !closed => {
                self.assigned(&range)?;
                let range = self.borrow(range, true, line)?;
                let body = match name {
                    "next" => w.next_of_range(),
                    _ => w.last_of_range(),
                };
                self.written(range, None, &body, None, line)
            }
            ("len", []) => self.written(range, None, &w.length_of_range(closed), Some(&Ty::USIZE), line),
            ("is_empty", []) => {
                let body = w.not(w.below_end(w.end_of_range("start"), closed));
                self.written(range, None, &body, Some(&Ty::BOOL), line)
            }
            ("contains", [value]) => {
                let value = self.expr(value, None)?;
                let value = self.deref_all(value);
                self.unify(line, &item, &value.ty)?;
                let above = w.binary(BinaryOp::Le, w.end_of_range("start"), w.local(ARGUMENT));
                let below = w.below_end(w.local(ARGUMENT), closed);
                let body = w.binary(BinaryOp::And, above, below);
                self.written(range, Some(value), &body, Some(&Ty::BOOL), line)
            }
            _ if STEPPING.contains(&name) => {
                let steps = self.steps_of_range(range, &item, closed)?;
                self.steps_method(steps, item, name, args, line)
            }
            (syntax::ELEMENT, [index]) => {
                let index = self.expr_as(index, &Ty::USIZE)?;
                let way = w.cast(w.local(ARGUMENT), Type::Infer);
                let body = w.binary(BinaryOp::Add, w.end_of_range("start"), way);
                self.written(range, Some(index), &body, Some(&item), line)
            }
            _ if closed && matches!(name, "next" | "next_back") || MOVING.contains(&name) => Err(self.error(
                line,
                format!("`{shown}` has no method `{name}` that kernels can call"),
                "it would change the range: ask for items by `next` or `next_back` of a `Range`, or loop over `&mut range`",
            )),
            _ => Err(self.error(
                line,
                format!("`{shown}` has no method `{name}` that kernels can call"),
                format!("write `.into_iter().{name}(…)`: behind `into_iter` kernels know it for an iterator"),
            )),
        }
    }

    /// The closure that gives the next item of what has a `next`.
    pub(super) fn items_by_next(&mut self, iterator: Expr) -> Result<Expr> {
        let (line, name) = (iterator.line, "the iterator");
        let w = Writer(line);
        self.scopes.push(HashMap::new());
        let id = self.declare(name, iterator.ty.clone(), true, line);
        let bind = Stmt {
            line,
            kind: StmtKind::Let(Pat::Binding(id), Some(iterator)),
        };
        let next = self.closure(&next_of(&w.local(name)), None);
        self.scopes.pop();
        Ok(self.behind_stmts(vec![bind], next?, line))
    }

    /// `base.get(range)`, or `get_mut`.
    pub(super) fn option_of_range(
        &mut self,
        base: Expr,
        mutable: bool,
        range: Expr,
        (item, closed): (Ty, bool),
    ) -> Result<Expr> {
        let line = range.line;
        self.unify(line, &Ty::USIZE, &item)?;
        let range = self.deref_all(range);
        let base = self.lent(base, mutable, line)?;
        let w = Writer(line);
        let end_of = |name: &str| {
            let (base, name) = (Box::new(w.local(ARGUMENT)), name.to_owned());
            w.expr(syntax::ExprKind::Field { base, name })
        };
        let (start, last) = (end_of("start"), end_of("end"));
        // An end beyond all numbers is beyond the slice, too.
        let end = match closed {
            true => w.method(last.clone(), "saturating_add", vec![w.int(1)]),
            false => last.clone(),
        };
        let op = if closed { BinaryOp::Lt } else { BinaryOp::Le };
        let within = w.binary(op, last, w.len(RECEIVER));
        let ordered = w.binary(BinaryOp::Le, start.clone(), end.clone());
        let len = w.method(end, "wrapping_sub", vec![start.clone()]);
        let part = w.method(w.local(RECEIVER), syntax::PART, vec![start, len]);
        let body = w.method(part, syntax::PICK, vec![w.binary(BinaryOp::And, ordered, within)]);
        self.written(base, Some(range), &body, None, line)
    }

    /// `base[range]`.
    pub(super) fn part_of_range(&mut self, base: Expr, element: &Ty, range: Expr, closed: bool) -> Expr {
        let line = range.line;
        let id = self.hidden(range.ty.clone(), line);
        let bind = Stmt {
            line,
            kind: StmtKind::Let(Pat::Binding(id), Some(range)),
        };
        let [start, end] = [START, END].map(|end| {
            let range = Box::new(self.local(id, line));
            self.make(line, Ty::USIZE, ExprKind::Field(range, end))
        });
        // The start is computed before the end.
        let start = self.behind_stmts(vec![bind], start, line);
        let how = if closed { PartEnd::Last } else { PartEnd::Behind };
        self.part(base, element, (start, Some(end)), how, line)
    }
}
