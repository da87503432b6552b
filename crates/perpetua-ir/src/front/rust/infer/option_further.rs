//! Further methods of `Option` and `Result`.

use std::rc::Rc;

use perpetua_syntax as syntax;
use perpetua_syntax::Variant;

use super::tree::{Block, Expr, ExprKind, LocalId, Pat, Stmt, StmtKind};
use super::ty::{Kind, Ty};
use super::variant::variant_pat;
use super::written::Writer;
use super::{Checker, Result};

/// What a method is called on.
pub(super) struct Met {
    pub(super) ty: Ty,
    /// The variant that holds a value, and the other.
    pub(super) good: Variant,
    pub(super) bad: Variant,
    /// What the first holds, and the other of a `Result`.
    pub(super) first: Ty,
    pub(super) second: Option<Ty>,
    /// The locals that hold them where they are.
    pub(super) value: LocalId,
    pub(super) error: Option<LocalId>,
}

impl Checker<'_> {
    /// A method that is code in the language, or the receiver where it is none.
    pub(super) fn option_written(
        &mut self,
        receiver: Expr,
        ty: &Ty,
        (name, args): (&str, &[syntax::Expr]),
        line: u32,
    ) -> Result<std::result::Result<Expr, Expr>> {
        let w = Writer(line);
        if let ("min" | "max", [other], Ty::Option(_)) = (name, args, ty) {
            return self.extreme(receiver, name, other, line).map(Ok);
        }
        let function = args
            .first()
            .filter(|_| matches!(name, "get_or_insert_with" | "take_if" | "is_err_and"));
        if let Ty::Option(inner) = ty
            && let Some(body) = w.option_place(name, function)
        {
            let new = match args.first() {
                Some(new) if function.is_none() => Some(self.expr_as(new, inner)?),
                _ => None,
            };
            self.assigned(&receiver)?;
            let place = self.borrow(receiver, true, line)?;
            return self.written(place, new, &body, None, line).map(Ok);
        }
        match w.option_value(name, matches!(ty, Ty::Option(_)), function) {
            Some(body) => self.written(receiver, None, &body, None, line).map(Ok),
            None => Ok(Err(receiver)),
        }
    }

    /// What a method gives of each variant, and of what type; `None` where it is not known.
    pub(super) fn option_further(
        &mut self,
        met: Met,
        (name, args): (&str, &[syntax::Expr]),
        before: &mut Vec<Stmt>,
        line: u32,
    ) -> Result<Option<(Expr, Expr, Ty)>> {
        let Met {
            ty,
            good,
            bad,
            first,
            second,
            value: v,
            error: e,
        } = met;
        let value = self.local(v, line);
        let failed = e.map(|e| self.local(e, line));
        let is = |c: &Self, b: bool| c.make(line, Ty::BOOL, ExprKind::Bool(b));
        Ok(Some(match (name, args) {
            ("is_none_or", [f]) if second.is_none() => {
                let mapped = self.call_with(f, vec![value], Some(Ty::BOOL), line)?;
                (mapped, is(self, true), Ty::BOOL)
            }
            ("map_or_else", [g, f]) => {
                let other = self.call_with(g, failed.into_iter().collect(), None, line)?;
                let result = other.ty.clone();
                let mapped = self.call_with(f, vec![value], Some(result.clone()), line)?;
                (mapped, other, result)
            }
            ("copied" | "cloned", []) => {
                let copy = self.deref(value);
                let of = Rc::new(copy.ty.clone());
                let result = match &second {
                    None => Ty::Option(of),
                    Some(err) => Ty::Result(of, Rc::new(err.clone())),
                };
                let yes = self.variant_of(good, Some(copy), &result, line);
                (yes, self.variant_of(bad, failed, &result, line), result)
            }
            ("and", [other]) => {
                let next = Rc::new(self.types.var(Kind::General));
                let result = match &second {
                    None => Ty::Option(next),
                    Some(err) => Ty::Result(next, Rc::new(err.clone())),
                };
                let other = self.expr_as(other, &result)?;
                let other = self.eager(other, before, line);
                (other, self.variant_of(bad, failed, &result, line), result)
            }
            ("or", [other]) if second.is_some() => {
                let result = Ty::Result(Rc::new(first), Rc::new(self.types.var(Kind::General)));
                let other = self.expr_as(other, &result)?;
                let other = self.eager(other, before, line);
                (self.variant_of(good, Some(value), &result, line), other, result)
            }
            ("or_else", [f]) => {
                let result = match &second {
                    None => ty,
                    Some(_) => Ty::Result(Rc::new(first), Rc::new(self.types.var(Kind::General))),
                };
                let other = self.call_with(f, failed.into_iter().collect(), Some(result.clone()), line)?;
                (self.variant_of(good, Some(value), &result, line), other, result)
            }
            ("ok_or_else", [f]) if second.is_none() => {
                let error = self.call_with(f, Vec::new(), None, line)?;
                let result = Ty::Result(Rc::new(first), Rc::new(error.ty.clone()));
                let yes = self.variant_of(Variant::Ok, Some(value), &result, line);
                let no = self.variant_of(Variant::Err, Some(error), &result, line);
                (yes, no, result)
            }
            ("filter", [f]) if second.is_none() => {
                let shared = self.borrow(value, false, line)?;
                let holds = self.call_with(f, vec![shared], Some(Ty::BOOL), line)?;
                let value = self.local(v, line);
                let kept = self.make(line, ty.clone(), ExprKind::Tuple(vec![holds, value]));
                (kept, self.variant_of(bad, None, &ty, line), ty)
            }
            ("flatten", []) if second.is_none() && matches!(self.types.shallow(&first), Ty::Option(_)) => {
                (value, self.variant_of(bad, None, &first, line), first)
            }
            ("zip" | "xor", [other]) if second.is_none() => {
                let inner = match name {
                    "xor" => first.clone(),
                    _ => self.types.var(Kind::General),
                };
                let other = self.expr_as(other, &Ty::Option(Rc::new(inner.clone())))?;
                let other = self.eager(other, before, line);
                let w = self.hidden(inner.clone(), line);
                let some = variant_pat(Variant::Some, Pat::Binding(w));
                let none = |c: &Self, of: &Ty| c.variant_of(Variant::None, None, of, line);
                if name == "xor" {
                    let kept = self.variant_of(Variant::Some, Some(value), &ty, line);
                    let same = ExprKind::Local(match other.kind {
                        ExprKind::Local(id) => id,
                        _ => v,
                    });
                    let again = self.make(line, other.ty.clone(), same);
                    let gone = none(self, &ty);
                    let arms = [(some, gone), (Pat::Wild, kept)];
                    (self.branches(other, arms, ty.clone(), line), again, ty)
                } else {
                    let pair = vec![value, self.local(w, line)];
                    let pair_ty = Ty::Tuple([first, inner].into());
                    let pair = self.make(line, pair_ty.clone(), ExprKind::Tuple(pair));
                    let result = Ty::Option(Rc::new(pair_ty));
                    let both = self.variant_of(Variant::Some, Some(pair), &result, line);
                    let arms = [(some, both), (Pat::Wild, none(self, &result))];
                    (
                        self.branches(other, arms, result.clone(), line),
                        none(self, &result),
                        result,
                    )
                }
            }
            ("inspect", [f]) => {
                let shared = self.borrow(value, false, line)?;
                let seen = self.call_with(f, vec![shared], Some(Ty::unit()), line)?;
                let value = self.local(v, line);
                let kept = self.variant_of(good, Some(value), &ty, line);
                let block = Block {
                    stmts: vec![Stmt {
                        line,
                        kind: StmtKind::Expr(seen),
                    }],
                    value: Some(Box::new(kept)),
                };
                let kept = self.make(line, ty.clone(), ExprKind::Block(None, block));
                (kept, self.variant_of(bad, failed, &ty, line), ty)
            }
            ("as_ref", []) => {
                let shared = self.borrow(value, false, line)?;
                let failed = match failed {
                    Some(failed) => Some(self.borrow(failed, false, line)?),
                    None => None,
                };
                let result = match &failed {
                    None => Ty::Option(Rc::new(shared.ty.clone())),
                    Some(failed) => Ty::Result(Rc::new(shared.ty.clone()), Rc::new(failed.ty.clone())),
                };
                let yes = self.variant_of(good, Some(shared), &result, line);
                (yes, self.variant_of(bad, failed, &result, line), result)
            }
            ("err", []) if let Some(error) = &second => {
                let result = Ty::Option(Rc::new(error.clone()));
                let no = self.variant_of(Variant::Some, failed, &result, line);
                (self.variant_of(Variant::None, None, &result, line), no, result)
            }
            ("unwrap_err", []) if let (Some(error), Some(failed)) = (&second, e) => {
                let text = "called `Result::unwrap_err()` on an `Ok` value";
                let failed = self.local(failed, line);
                (self.panic_of(text, Some(value), line), failed, error.clone())
            }
            _ => return Ok(None),
        }))
    }
}
