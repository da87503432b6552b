//! Whether values have the types that are expected, by the coercions that Rust has, and what is said where they have not.

use perpetua_syntax as syntax;

use super::tree::{Expr, ExprKind};
use super::ty::{Kind, Mismatch, Ty};
use super::{Checker, Result};
use crate::front::rust::error::LowerError;

/// An error that is this expression's, unless a part of it was blamed before. That of another function stands in other lines.
pub(super) fn standing(error: LowerError, expr: &syntax::Expr) -> LowerError {
    let place = expr.place.start as usize..expr.place.end as usize;
    match error.place.is_empty() && error.line == expr.line {
        true => LowerError { place, ..error },
        false => error,
    }
}

impl Checker<'_> {
    pub(super) fn mismatch(&self, line: u32, expected: &Ty, found: &Ty) -> LowerError {
        let (e, f) = (self.show(expected), self.show(found));
        let scalar = |ty: &Ty| matches!(self.types.shallow(ty), Ty::Scalar(s) if s != syntax::Scalar::Bool);
        let remedy = if scalar(expected) && scalar(found) {
            format!("convert with `as {e}`")
        } else {
            String::new()
        };
        self.error(
            line,
            format!("mismatched types: expected `{e}`, found `{f}`"),
            remedy,
        )
    }

    pub(super) fn unify(&mut self, line: u32, expected: &Ty, found: &Ty) -> Result<()> {
        match self.types.unify(expected, found) {
            Ok(()) => Ok(()),
            Err(Mismatch) => Err(self.mismatch(line, expected, found)),
        }
    }

    /// That a value is not of the expected type. An integer's digits become a float by a point.
    pub(super) fn unfit(&self, value: &Expr, expected: &Ty) -> LowerError {
        let error = self.mismatch(value.line, expected, &value.ty);
        let is_open = matches!(self.types.kind(&value.ty), Some(Kind::Int | Kind::Float));
        let remedy = match (&value.kind, self.types.shallow(expected)) {
            (ExprKind::Int(digits), _) if is_open && self.is_float(expected) => format!("write `{digits}.0`"),
            (_, Ty::Scalar(to)) if is_open && to != syntax::Scalar::Bool => {
                format!("convert with `as {}`", to.name())
            }
            _ => return error,
        };
        LowerError { remedy, ..error }
    }

    fn is_float(&self, ty: &Ty) -> bool {
        matches!(self.types.shallow(ty), Ty::Scalar(s) if s.is_float())
            || self.types.kind(ty) == Some(Kind::Float)
    }

    /// Both sides of an operator must be of one type; what differs is the right one, or digits that could be a float's.
    pub(super) fn unify_sides(
        &mut self,
        left: (&syntax::Expr, &Expr),
        right: (&syntax::Expr, &Expr),
    ) -> Result<()> {
        if self.types.unify(&left.1.ty, &right.1.ty).is_ok() {
            return Ok(());
        }
        let is_digits = matches!(left.1.kind, ExprKind::Int(_)) && self.is_float(&right.1.ty);
        let ((wrong, value), (_, other)) = if is_digits { (left, right) } else { (right, left) };
        Err(standing(self.unfit(value, &other.ty), wrong))
    }

    /// Makes the expression one of the expected type, by the coercions that Rust has.
    pub(super) fn coerce(&mut self, expr: Expr, expected: &Ty) -> Result<Expr> {
        let (want, have) = (self.types.shallow(expected), self.types.shallow(&expr.ty));
        let line = expr.line;
        match (&want, &have) {
            (_, Ty::Never) => Ok(expr),
            // A constant that is a reference in Rust arrives as what it refers to.
            (Ty::Ref(false, _), Ty::Array(..)) if matches!(expr.kind, ExprKind::Constant(..)) => {
                let borrowed = self.borrow(expr, false, line)?;
                self.coerce(borrowed, expected)
            }
            (Ty::Ref(want_mut, want_target), Ty::Ref(have_mut, have_target)) => {
                if *want_mut && !*have_mut {
                    return Err(self.unfit(&expr, expected));
                }
                let wt = self.types.shallow(want_target);
                let ht = self.types.shallow(have_target);
                match (&wt, &ht) {
                    (Ty::Slice(w), Ty::Array(h, _)) => {
                        if self.types.unify(w, h).is_err() {
                            return Err(self.unfit(&expr, expected));
                        }
                    }
                    // `&&T` where `&T` is expected.
                    (_, Ty::Ref(..)) if !matches!(wt, Ty::Ref(..) | Ty::Var(_)) => {
                        let inner = self.deref(expr);
                        return self.coerce(inner, expected);
                    }
                    _ => {
                        if self.types.unify(&wt, &ht).is_err() {
                            return Err(self.unfit(&expr, expected));
                        }
                        if want_mut == have_mut {
                            return Ok(expr);
                        }
                    }
                }
                Ok(Expr {
                    line,
                    ty: want,
                    kind: ExprKind::Reborrow(Box::new(expr)),
                })
            }
            _ => {
                if self.types.unify(expected, &expr.ty).is_err() {
                    return Err(self.unfit(&expr, expected));
                }
                Ok(expr)
            }
        }
    }

    /// A reference to a place, which what is `mutable` may change.
    pub(super) fn lent(&mut self, place: Expr, mutable: bool, line: u32) -> Result<Expr> {
        if mutable {
            self.assigned(&place)?;
        }
        self.borrow(place, mutable, line)
    }

    /// `*expr` for an expression that is a reference; others as they are.
    pub(super) fn deref(&mut self, expr: Expr) -> Expr {
        match self.types.shallow(&expr.ty) {
            Ty::Ref(_, target) => Expr {
                line: expr.line,
                ty: (*target).clone(),
                kind: ExprKind::Deref(Box::new(expr)),
            },
            _ => expr,
        }
    }

    /// Dereferences as often as it goes.
    pub(super) fn deref_all(&mut self, mut expr: Expr) -> Expr {
        while matches!(self.types.shallow(&expr.ty), Ty::Ref(..)) {
            expr = self.deref(expr);
        }
        expr
    }

    /// The value that an operator computes with.
    pub(super) fn operand(&mut self, expr: Expr) -> Expr {
        if matches!(self.types.shallow(&expr.ty), Ty::Ref(..)) {
            self.program.calls_host.set(true);
        }
        self.deref_all(expr)
    }

    /// Checks an expression that must have this type.
    /// Where a reference to a slice is expected, what all branches become: one may be an array.
    pub(super) fn slice_wanted(&self, hint: Option<&Ty>) -> Option<Ty> {
        let hint = self.types.shallow(hint?);
        match &hint {
            Ty::Ref(_, target) if matches!(self.types.shallow(target), Ty::Slice(_)) => Some(hint),
            _ => None,
        }
    }

    pub(super) fn expr_as(&mut self, expr: &syntax::Expr, expected: &Ty) -> Result<Expr> {
        let checked = self.expr(expr, Some(expected))?;
        self.coerce(checked, expected)
            .map_err(|error| standing(error, expr))
    }
}
