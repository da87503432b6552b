//! Orders: `cmp` and `partial_cmp` of scalars, what `Ordering` can do, and comparisons of types that say their order by
//! `partial_cmp`.

use std::cmp::Ordering;
use std::rc::Rc;

use perpetua_syntax as syntax;
use perpetua_syntax::{BinaryOp, Scalar, Variant};

use super::methods;
use super::tree::{Arm, Block, Expr, ExprKind, Pat};
pub(super) use super::ty::ordering;
use super::ty::{Kind, Ty, show};
use super::variant::variant_pat;
use super::{Checker, Result};
use crate::front::rust::error::LowerError;
use crate::front::rust::gpu_type::GpuConst;

/// The orderings, from and to, for which a comparison or a method of `Ordering` holds; for all others where the flag is set.
fn holds(name: &str) -> Option<(Ordering, Ordering, bool)> {
    use Ordering::{Equal, Greater, Less};
    Some(match name {
        "is_lt" | "<" => (Less, Less, true),
        "is_le" | "<=" => (Less, Equal, true),
        "is_gt" | ">" => (Greater, Greater, true),
        "is_ge" | ">=" => (Equal, Greater, true),
        "is_eq" => (Equal, Equal, true),
        "is_ne" => (Equal, Equal, false),
        _ => return None,
    })
}

fn range(from: Ordering, to: Ordering) -> Pat {
    Pat::Range(Some(from as i128), Some(to as i128))
}

impl Checker<'_> {
    fn ordered(&self, which: Ordering, line: u32) -> Expr {
        let kind = ExprKind::Constant(Rc::from("Ordering"), Rc::new(which.to_const()));
        self.make(line, ordering(), kind)
    }

    /// `a.cmp(&b)` and `a.partial_cmp(&b)`.
    pub(super) fn order_method(
        &mut self,
        scalar: Scalar,
        first: Expr,
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
        let second = self.expr(arg, None)?;
        let second = self.deref_all(second);
        self.unify(line, &first.ty.clone(), &second.ty.clone())?;
        self.order(scalar, (first, second), name, line)
    }

    /// `a.total_cmp(&b)` of floats: the order of integers made of their bits.
    pub(super) fn total_order(
        &mut self,
        scalar: Scalar,
        first: Expr,
        args: &[syntax::Expr],
        line: u32,
    ) -> Result<Expr> {
        let Ok(key) = methods::lookup(scalar, "total order") else {
            return Err(self.error(line, "floats alone have a total order", ""));
        };
        let mut keys = vec![first];
        for arg in args {
            let arg = self.expr(arg, None)?;
            let arg = self.deref_all(arg);
            self.unify(line, &Ty::Scalar(scalar), &arg.ty.clone())?;
            keys.push(arg);
        }
        let mut keys = keys
            .into_iter()
            .map(|v| self.make(line, key.result.clone(), ExprKind::Method(key.method, vec![v])));
        let (Some(first), Some(second)) = (keys.next(), keys.next()) else {
            return Err(self.error(line, "`total_cmp` compares two values", ""));
        };
        drop(keys);
        self.order(Scalar::I64, (first, second), "cmp", line)
    }

    pub(super) fn order(
        &mut self,
        scalar: Scalar,
        (first, second): (Expr, Expr),
        name: &str,
        line: u32,
    ) -> Result<Expr> {
        let partial = name == "partial_cmp";
        let mut before = Vec::new();
        self.scopes.push(Default::default());
        let first = self.eager(first, &mut before, line);
        let second = self.eager(second, &mut before, line);
        self.scopes.pop();
        let (ExprKind::Local(a), ExprKind::Local(b)) = (first.kind, second.kind) else {
            return Err(self.error(line, format!("`{name}` compares two values"), ""));
        };
        let ty = match partial {
            true => Ty::Option(Rc::new(ordering())),
            false => ordering(),
        };
        let given = |c: &Self, which| match partial {
            true => c.variant_of(Variant::Some, Some(c.ordered(which, line)), &ty, line),
            false => c.ordered(which, line),
        };
        let choose = |c: &Self, op, then: Expr, otherwise: Expr| {
            let (a, b) = (Box::new(c.local(a, line)), Box::new(c.local(b, line)));
            let cond = c.make(line, Ty::BOOL, ExprKind::Binary(op, a, b));
            let then = Block {
                stmts: Vec::new(),
                value: Some(Box::new(then)),
            };
            let kind = ExprKind::If(Box::new(cond), then, Some(Box::new(otherwise)));
            c.make(line, ty.clone(), kind)
        };
        let mut last = given(self, Ordering::Equal);
        if scalar.is_float() {
            let none = self.variant_of(Variant::None, None, &ty, line);
            last = choose(self, BinaryOp::Eq, last, none);
        }
        let last = choose(self, BinaryOp::Gt, given(self, Ordering::Greater), last);
        let value = choose(self, BinaryOp::Lt, given(self, Ordering::Less), last);
        Ok(self.behind_stmts(before, value, line))
    }

    /// Of a receiver whose type is not known.
    pub(super) fn ambiguous(&self, ty: &Ty, name: &str, line: u32) -> LowerError {
        let (shown, example) = match self.types.kind(ty) {
            Some(Kind::Int) => ("{integer}", "i32"),
            Some(Kind::Float) => ("{float}", "f32"),
            _ => {
                return self.error(
                    line,
                    format!("the type of the receiver of `{name}` is not known here"),
                    "give the variable a type",
                );
            }
        };
        self.error(
            line,
            format!("can't call method `{name}` on ambiguous numeric type `{shown}`"),
            format!("specify a type, as in `1_{example}` or `let x: {example}`"),
        )
    }

    /// `a < b` and its kin, of what `partial_cmp` gives.
    pub(super) fn by_order(&self, op: BinaryOp, order: Expr, line: u32) -> Expr {
        let (from, to, _) = holds(op.symbol()).unwrap_or((Ordering::Less, Ordering::Less, true));
        let yes = variant_pat(Variant::Some, range(from, to));
        let is = |b: bool| self.make(line, Ty::BOOL, ExprKind::Bool(b));
        self.branches(order, [(yes, is(true)), (Pat::Wild, is(false))], Ty::BOOL, line)
    }

    /// `Reverse(value)`: a value of the same type that compares the other way round. rustc lets nobody take it for the value.
    pub(super) fn reversed(&mut self, value: Expr, line: u32) -> Result<Expr> {
        let value = self.deref_all(value);
        match self.types.shallow(&value.ty) {
            Ty::Scalar(scalar) if scalar.is_integer() || scalar == Scalar::Bool => {
                let ty = value.ty.clone();
                Ok(self.make(line, ty, ExprKind::Not(Box::new(value))))
            }
            Ty::Tuple(parts) => {
                let mut before = Vec::new();
                self.scopes.push(Default::default());
                let whole = self.eager(value, &mut before, line);
                let (ty, ExprKind::Local(whole)) = (whole.ty, whole.kind) else {
                    return Err(self.error(line, "`Reverse` takes one value", ""));
                };
                let mut turned = Vec::new();
                for (index, part) in (0u32..).zip(parts.iter()) {
                    let kind = ExprKind::Field(Box::new(self.local(whole, line)), index);
                    let part = self.make(line, part.clone(), kind);
                    turned.push(self.reversed(part, line)?);
                }
                self.scopes.pop();
                let tuple = self.make(line, ty, ExprKind::Tuple(turned));
                Ok(self.behind_stmts(before, tuple, line))
            }
            other => Err(self.error(
                line,
                format!("`Reverse` of `{}` is outside the kernel language", show(&other)),
                "it takes integers, `bool`s and tuples of them; else compare the other way round: `sort_by(|a, b| b.cmp(a))`",
            )),
        }
    }

    /// A method of `Ordering`.
    pub(super) fn ordering_method(
        &mut self,
        receiver: Expr,
        name: &str,
        args: &[syntax::Expr],
        line: u32,
    ) -> Result<Expr> {
        let (mut before, mut receiver) = (Vec::new(), self.deref_all(receiver));
        let arms = match (holds(name), name, args) {
            (Some((from, to, value)), _, []) => {
                let is = |b: bool| self.make(line, Ty::BOOL, ExprKind::Bool(b));
                vec![(range(from, to), is(value)), (Pat::Wild, is(!value))]
            }
            (_, "reverse", []) => [Ordering::Less, Ordering::Equal, Ordering::Greater]
                .map(|which| (range(which, which), self.ordered(which.reverse(), line)))
                .into(),
            (_, "then", [other]) => {
                let other = self.expr_as(other, &ordering())?;
                self.scopes.push(Default::default());
                receiver = self.eager(receiver, &mut before, line);
                let other = self.eager(other, &mut before, line);
                self.scopes.pop();
                let own = |which| (range(which, which), self.ordered(which, line));
                let equal = (range(Ordering::Equal, Ordering::Equal), other);
                vec![own(Ordering::Less), equal, own(Ordering::Greater)]
            }
            (_, "then_with", [f]) => {
                let other = self.call_with(f, Vec::new(), Some(ordering()), line)?;
                let own = |which| (range(which, which), self.ordered(which, line));
                let equal = (range(Ordering::Equal, Ordering::Equal), other);
                vec![own(Ordering::Less), equal, own(Ordering::Greater)]
            }
            _ => {
                return Err(self.error(
                    line,
                    format!("`Ordering` has no method `{name}` in kernels"),
                    "it has `is_lt` and its kin, `reverse`, `then` and `then_with`; else write `match`",
                ));
            }
        };
        let ty = arms.first().map_or(Ty::Never, |(_, body)| body.ty.clone());
        let arms = arms.into_iter().map(|(pattern, body)| Arm {
            line,
            pattern,
            guard: None,
            body,
        });
        let kind = ExprKind::Match(Box::new(receiver), arms.collect());
        let value = self.make(line, ty, kind);
        Ok(match before.is_empty() {
            true => value,
            false => self.behind_stmts(before, value, line),
        })
    }
}
