//! `Option` and `Result`: their variants, `?`, and their methods, each a `match` over the variants.

use std::collections::HashMap;
use std::rc::Rc;

use perpetua_syntax as syntax;
use perpetua_syntax::Variant;

use super::option_further::Met;
use super::pattern::Borrowed;
use super::tree::{Arm, Block, Expr, ExprKind, LocalId, Pat, Stmt, StmtKind};
use super::ty::{Kind, Ty};
use super::variant::variant_pat;
use super::written::Writer;
use super::{Checker, Result};

impl Checker<'_> {
    pub(super) fn make(&self, line: u32, ty: Ty, kind: ExprKind) -> Expr {
        Expr { line, ty, kind }
    }

    /// `Some(x)`, `None`, `Ok(x)`, `Err(x)`.
    pub(super) fn variant(
        &mut self,
        variant: Variant,
        payload: Option<&syntax::Expr>,
        hint: Option<&Ty>,
        line: u32,
    ) -> Result<Expr> {
        let hint = hint.map(|hint| self.types.shallow(hint));
        let (first, second) = match hint {
            Some(Ty::Option(some)) => ((*some).clone(), None),
            Some(Ty::Result(ok, err)) => ((*ok).clone(), Some((*err).clone())),
            _ => (self.types.var(Kind::General), None),
        };
        let ty = match variant {
            Variant::Some | Variant::None => Ty::Option(Rc::new(first.clone())),
            Variant::Ok | Variant::Err => {
                let second = match &second {
                    Some(err) => err.clone(),
                    None => self.types.var(Kind::General),
                };
                Ty::Result(Rc::new(first.clone()), Rc::new(second))
            }
        };
        let payload = match (payload, &ty) {
            (Some(payload), Ty::Result(_, err)) if variant == Variant::Err => {
                let err = (**err).clone();
                Some(self.expr_as(payload, &err)?)
            }
            (Some(payload), _) => Some(self.expr_as(payload, &first)?),
            (None, _) => None,
        };
        Ok(self.variant_of(variant, payload, &ty, line))
    }

    /// The pattern of a variant.
    pub(super) fn variant_pattern(
        &mut self,
        variant: Variant,
        payload: Option<&syntax::Pattern>,
        ty: &Ty,
        borrowed: Borrowed,
        line: u32,
    ) -> Result<Pat> {
        let known = match variant {
            Variant::Some | Variant::None => Ty::Option(Rc::new(self.types.var(Kind::General))),
            Variant::Ok | Variant::Err => Ty::Result(
                Rc::new(self.types.var(Kind::General)),
                Rc::new(self.types.var(Kind::General)),
            ),
        };
        self.unify(line, ty, &known)?;
        let payload = match (payload, &known) {
            (None, _) => Pat::Wild,
            (Some(payload), Ty::Result(_, err)) if variant == Variant::Err => {
                self.pattern(payload, err, borrowed)?
            }
            (Some(payload), Ty::Option(first) | Ty::Result(first, _)) => {
                self.pattern(payload, first, borrowed)?
            }
            _ => Pat::Wild,
        };
        Ok(variant_pat(variant, payload))
    }

    /// A local of the checker's own.
    pub(super) fn hidden(&mut self, ty: Ty, line: u32) -> LocalId {
        self.declare("__value", ty, false, line)
    }

    pub(super) fn local(&self, id: LocalId, line: u32) -> Expr {
        let ty = self.locals.get(id.0 as usize).map_or(Ty::Never, |l| l.ty.clone());
        self.make(line, ty, ExprKind::Local(id))
    }

    /// `match value { good(v) => then, _ => otherwise }`, of type `ty`.
    pub(super) fn branches(&self, value: Expr, arms: [(Pat, Expr); 2], ty: Ty, line: u32) -> Expr {
        let arms = arms.into_iter().map(|(pattern, body)| Arm {
            line,
            pattern,
            guard: None,
            body,
        });
        self.make(line, ty, ExprKind::Match(Box::new(value), arms.collect()))
    }

    /// `value?`.
    pub(super) fn try_expr(&mut self, value: &syntax::Expr, line: u32) -> Result<Expr> {
        let value = self.expr(value, None)?;
        let ret = self.returned();
        let ty = self.types.shallow(&value.ty);
        self.scopes.push(HashMap::new());
        let done = match &ty {
            Ty::Option(some) => {
                let outer = self.types.var(Kind::General);
                self.unify(line, &ret, &Ty::Option(Rc::new(outer)))?;
                let v = self.hidden((**some).clone(), line);
                let left = self.variant_of(Variant::None, None, &ret, line);
                let left = self.leaving(left, line);
                let good = (variant_pat(Variant::Some, Pat::Binding(v)), self.local(v, line));
                Ok(self.branches(value, [good, (Pat::Wild, left)], (**some).clone(), line))
            }
            Ty::Result(ok, err) => {
                let (outer, to) = (self.types.var(Kind::General), self.types.var(Kind::General));
                let result = Ty::Result(Rc::new(outer), Rc::new(to.clone()));
                self.unify(line, &ret, &result)?;
                let v = self.hidden((**ok).clone(), line);
                let e = self.hidden((**err).clone(), line);
                let error = self.local(e, line);
                let error = match self.types.deep(&to, false) == self.types.deep(err, false)
                    || self.types.unify(&to, err).is_ok()
                {
                    true => error,
                    false => self.into(error, Some(&to), line)?,
                };
                let left = self.variant_of(Variant::Err, Some(error), &ret, line);
                let left = self.leaving(left, line);
                let good = (variant_pat(Variant::Ok, Pat::Binding(v)), self.local(v, line));
                let bad = (variant_pat(Variant::Err, Pat::Binding(e)), left);
                Ok(self.branches(value, [good, bad], (**ok).clone(), line))
            }
            other => {
                let shown = self.show(other);
                Err(self.error(
                    line,
                    format!("`?` stands behind a `{shown}`"),
                    "it takes an `Option` or a `Result`",
                ))
            }
        };
        self.scopes.pop();
        done
    }

    /// A method of `Option` or `Result`; `None` where it is not known.
    pub(super) fn option_method(
        &mut self,
        receiver: Expr,
        name: &str,
        args: &[syntax::Expr],
        line: u32,
    ) -> Result<Option<Expr>> {
        // As an iterator of one item or none.
        match (name, args) {
            ("into_iter", []) => return Ok(Some(receiver)),
            ("iter", []) => {
                let place = self.deref_all(receiver);
                return self.borrow(place, false, line).map(Some);
            }
            ("iter_mut", []) => {
                let place = self.deref_all(receiver);
                return self.borrow(place, true, line).map(Some);
            }
            (syntax::INDEXED, []) => {
                return Ok(Some(self.make(line, Ty::unit(), ExprKind::Tuple(Vec::new()))));
            }
            (syntax::ELEMENT, [_]) => {
                let body = Writer(line).held(matches!(self.peeled(&receiver.ty), Ty::Option(_)));
                return self.written(receiver, None, &body, None, line).map(Some);
            }
            ("len", []) => {
                let body = Writer(line).held_count(matches!(self.peeled(&receiver.ty), Ty::Option(_)));
                return self.written(receiver, None, &body, None, line).map(Some);
            }
            _ => {}
        }
        let receiver = self.deref_all(receiver);
        let ty = self.types.shallow(&receiver.ty);
        if let ("take", []) | ("replace", [_]) = (name, args)
            && matches!(ty, Ty::Option(_))
        {
            let new = match args.first() {
                Some(new) => {
                    let new = self.expr(new, None)?;
                    Some(new)
                }
                None => None,
            };
            self.assigned(&receiver)?;
            let place = self.borrow(receiver, true, line)?;
            let body = Writer(line).exchange(new.is_some());
            return self.written(place, new, &body, None, line).map(Some);
        }
        let receiver = match self.option_written(receiver, &ty, (name, args), line)? {
            Ok(done) => return Ok(Some(done)),
            Err(receiver) => receiver,
        };
        let (first, second) = match &ty {
            Ty::Option(some) => ((**some).clone(), None),
            Ty::Result(ok, err) => ((**ok).clone(), Some((**err).clone())),
            _ => return Ok(None),
        };
        let (good, bad) = match second {
            None => (Variant::Some, Variant::None),
            Some(_) => (Variant::Ok, Variant::Err),
        };
        self.scopes.push(HashMap::new());
        let done = self.option_body(receiver, (name, args), (good, bad), first, second, line);
        self.scopes.pop();
        done
    }

    fn option_body(
        &mut self,
        receiver: Expr,
        (name, args): (&str, &[syntax::Expr]),
        (good, bad): (Variant, Variant),
        first: Ty,
        second: Option<Ty>,
        line: u32,
    ) -> Result<Option<Expr>> {
        let ty = receiver.ty.clone();
        let v = self.hidden(first.clone(), line);
        let value = self.local(v, line);
        let e = second.clone().map(|second| self.hidden(second, line));
        let failed = e.map(|e| self.local(e, line));
        let yes = variant_pat(good, Pat::Binding(v));
        let no = variant_pat(bad, e.map_or(Pat::Wild, Pat::Binding));
        let is = |c: &Self, b: bool| c.make(line, Ty::BOOL, ExprKind::Bool(b));
        let mut before = Vec::new();
        let (yes_value, no_value, result) = match (name, args) {
            ("is_some" | "is_ok", []) => (is(self, true), is(self, false), Ty::BOOL),
            ("is_none" | "is_err", []) => (is(self, false), is(self, true), Ty::BOOL),
            ("unwrap", []) => {
                let text = match second {
                    None => "called `Option::unwrap()` on a `None` value",
                    Some(_) => "called `Result::unwrap()` on an `Err` value",
                };
                (value, self.panic_of(text, failed, line), first)
            }
            (
                "expect",
                [
                    syntax::Expr {
                        kind: syntax::ExprKind::Panic { pieces, .. },
                        ..
                    },
                ],
            ) if let [syntax::PrintPiece::Text(text)] = &pieces[..] => {
                (value, self.panic_of(text, failed, line), first)
            }
            ("unwrap_or", [other]) => {
                let other = self.expr_as(other, &first)?;
                let other = self.eager(other, &mut before, line);
                (value, other, first)
            }
            ("unwrap_or_default", []) => match self.types.shallow(&first) {
                Ty::Scalar(_) | Ty::Var(_) => (value, self.make(line, first.clone(), ExprKind::Zero), first),
                own => {
                    let other = self.function_call(&own, None, "default", &[], &[], None, line)?;
                    (value, other, first)
                }
            },
            ("unwrap_or_else", [f]) => {
                let args = failed.into_iter().collect();
                let other = self.call_with(f, args, Some(first.clone()), line)?;
                (value, other, first)
            }
            ("map_or", [other, f]) => {
                let other = self.expr(other, None)?;
                let result = other.ty.clone();
                let other = self.eager(other, &mut before, line);
                let mapped = self.call_with(f, vec![value], Some(result.clone()), line)?;
                (mapped, other, result)
            }
            ("is_some_and" | "is_ok_and", [f]) => {
                let mapped = self.call_with(f, vec![value], Some(Ty::BOOL), line)?;
                (mapped, is(self, false), Ty::BOOL)
            }
            ("map", [f]) => {
                let mapped = self.call_with(f, vec![value], None, line)?;
                let result = match &second {
                    None => Ty::Option(Rc::new(mapped.ty.clone())),
                    Some(err) => Ty::Result(Rc::new(mapped.ty.clone()), Rc::new(err.clone())),
                };
                let yes = self.variant_of(good, Some(mapped), &result, line);
                (yes, self.variant_of(bad, failed, &result, line), result)
            }
            ("map_err", [f]) if second.is_some() => {
                let mapped = self.call_with(f, failed.into_iter().collect(), None, line)?;
                let result = Ty::Result(Rc::new(first), Rc::new(mapped.ty.clone()));
                let yes = self.variant_of(good, Some(value), &result, line);
                (yes, self.variant_of(bad, Some(mapped), &result, line), result)
            }
            ("and_then", [f]) => {
                let next = self.types.var(Kind::General);
                let result = match &second {
                    None => Ty::Option(Rc::new(next)),
                    Some(err) => Ty::Result(Rc::new(next), Rc::new(err.clone())),
                };
                let yes = self.call_with(f, vec![value], Some(result.clone()), line)?;
                (yes, self.variant_of(bad, failed, &result, line), result)
            }
            ("or", [other]) if second.is_none() => {
                let other = self.expr_as(other, &ty)?;
                let other = self.eager(other, &mut before, line);
                (self.variant_of(good, Some(value), &ty, line), other, ty)
            }
            ("ok_or", [error]) if second.is_none() => {
                let error = self.expr(error, None)?;
                let result = Ty::Result(Rc::new(first), Rc::new(error.ty.clone()));
                let error = self.eager(error, &mut before, line);
                let yes = self.variant_of(Variant::Ok, Some(value), &result, line);
                (
                    yes,
                    self.variant_of(Variant::Err, Some(error), &result, line),
                    result,
                )
            }
            ("ok", []) if second.is_some() => {
                let result = Ty::Option(Rc::new(first));
                let yes = self.variant_of(Variant::Some, Some(value), &result, line);
                (yes, self.variant_of(Variant::None, None, &result, line), result)
            }
            _ => {
                let met = Met {
                    ty,
                    good,
                    bad,
                    first,
                    second,
                    value: v,
                    error: e,
                };
                match self.option_further(met, (name, args), &mut before, line)? {
                    Some(found) => found,
                    None => return Ok(None),
                }
            }
        };
        let arms = [(yes, yes_value), (no, no_value)];
        if before.is_empty() {
            return Ok(Some(self.branches(receiver, arms, result, line)));
        }
        // The receiver is computed first, as a value of its own.
        let mut stmts = Vec::new();
        let receiver = self.eager(receiver, &mut stmts, line);
        stmts.append(&mut before);
        let chosen = self.branches(receiver, arms, result, line);
        Ok(Some(self.behind_stmts(stmts, chosen, line)))
    }

    /// A value and what is computed before it.
    pub(super) fn behind_stmts(&self, stmts: Vec<Stmt>, value: Expr, line: u32) -> Expr {
        let ty = value.ty.clone();
        let block = Block {
            stmts,
            value: Some(Box::new(value)),
        };
        self.make(line, ty, ExprKind::Block(None, block))
    }

    /// A panic with this text, and the error behind it. What conversions fail with is `()` here and has another name in Rust.
    pub(super) fn panic_of(&self, text: &str, failed: Option<Expr>, line: u32) -> Expr {
        let shown = failed.filter(|error| !self.types.shallow(&error.ty).is_unit());
        let mut pieces = vec![syntax::PrintPiece::Text(text.to_owned())];
        if shown.is_some() {
            let format = syntax::PrintFormat {
                notation: syntax::PrintNotation::Debug,
                ..syntax::PrintFormat::default()
            };
            pieces.push(syntax::PrintPiece::Text(": ".to_owned()));
            pieces.push(syntax::PrintPiece::Arg { index: 0, format });
        }
        let args = shown.into_iter().collect();
        self.make(line, Ty::Never, ExprKind::Panic(pieces, args))
    }

    /// A value that is computed before what follows.
    pub(super) fn eager(&mut self, value: Expr, before: &mut Vec<Stmt>, line: u32) -> Expr {
        let id = self.hidden(value.ty.clone(), line);
        before.push(Stmt {
            line,
            kind: StmtKind::Let(Pat::Binding(id), Some(value)),
        });
        self.local(id, line)
    }

    /// Calls what a method was given: a closure.
    pub(super) fn call_with(
        &mut self,
        function: &syntax::Expr,
        args: Vec<Expr>,
        ret: Option<Ty>,
        line: u32,
    ) -> Result<Expr> {
        let ret = ret.unwrap_or_else(|| self.types.var(Kind::General));
        let expected = (args.iter().map(|arg| arg.ty.clone()).collect(), ret.clone());
        let function = self.closure_argument(function, Some(expected))?;
        let function = self.deref_all(function);
        let Ty::Closure(closure) = self.types.shallow(&function.ty) else {
            let shown = self.show(&function.ty);
            return Err(self.error(
                line,
                format!("a closure is needed here, not a `{shown}`"),
                "write `|x| …`",
            ));
        };
        self.unify(line, &ret, &closure.ret.clone())?;
        for (arg, ty) in args.iter().zip(&closure.params) {
            self.unify(line, ty, &arg.ty)?;
        }
        Ok(self.called(function, &closure, args, line))
    }

    /// `cond.then(|| value)`, `cond.then_some(value)`.
    pub(super) fn then_some(
        &mut self,
        cond: Expr,
        name: &str,
        args: &[syntax::Expr],
        line: u32,
    ) -> Result<Expr> {
        let [arg] = args else {
            return Err(self.error(
                line,
                format!("`{name}` takes one argument, {} were given", args.len()),
                "",
            ));
        };
        let value = match name {
            "then" => self.call_with(arg, Vec::new(), None, line)?,
            _ => self.expr(arg, None)?,
        };
        let ty = Ty::Option(Rc::new(value.ty.clone()));
        // Both are evaluated, as Rust does it.
        let mut before = Vec::new();
        self.scopes.push(Default::default());
        let cond = self.eager(cond, &mut before, line);
        let value = match name {
            "then" => value,
            _ => self.eager(value, &mut before, line),
        };
        self.scopes.pop();
        let yes = Block {
            stmts: Vec::new(),
            value: Some(Box::new(self.variant_of(Variant::Some, Some(value), &ty, line))),
        };
        let no = Box::new(self.variant_of(Variant::None, None, &ty, line));
        let value = self.make(line, ty, ExprKind::If(Box::new(cond), yes, Some(no)));
        Ok(self.behind_stmts(before, value, line))
    }
}

/// The methods of options and results, each with which of the two has it: for the book.
#[cfg(all(test, feature = "transpile"))]
pub(crate) const METHODS: &[(&str, &str)] = &[
    ("is_some(), is_none()", "Option"),
    ("is_ok(), is_err()", "Result"),
    ("is_some_and(f), is_none_or(f)", "Option"),
    ("is_ok_and(f), is_err_and(f)", "Result"),
    ("unwrap(), expect(\"…\")", "both"),
    ("unwrap_or(value), unwrap_or_else(f), unwrap_or_default()", "both"),
    (
        "map(f), map_or(value, f), map_or_else(g, f), and_then(f), and(other), or(other), or_else(f)",
        "both",
    ),
    ("inspect(f), as_ref(), transpose()", "both"),
    ("xor(other), zip(other), filter(f), flatten()", "Option"),
    ("copied(), cloned()", "both"),
    ("take(), take_if(f), replace(value), insert(value)", "Option"),
    (
        "get_or_insert(value), get_or_insert_with(f), as_mut(), unzip(), min(other), max(other)",
        "Option",
    ),
    ("ok_or(error), ok_or_else(f)", "Option"),
    ("ok(), err(), map_err(f), unwrap_err()", "Result"),
];
