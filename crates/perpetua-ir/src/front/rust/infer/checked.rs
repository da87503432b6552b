//! `checked_add` and its kin of integers, and what other methods are that are code in the language.

use std::collections::HashMap;
use std::rc::Rc;

use perpetua_syntax as syntax;
use perpetua_syntax::{BinaryOp, Scalar};

use super::methods;
use super::tree::{Block, Expr, ExprKind, Pat, Stmt, StmtKind};
use super::ty::Ty;
use super::written::{ARGUMENT, RECEIVER, Writer};
use super::{Checker, Result};

impl Checker<'_> {
    /// `a.checked_add(b)` and its kin.
    pub(super) fn checked(
        &mut self,
        scalar: Scalar,
        receiver: Expr,
        name: &str,
        args: &[syntax::Expr],
        line: u32,
    ) -> Result<Expr> {
        let op = name.trim_start_matches("checked_");
        let overflowing = methods::lookup(scalar, &format!("overflowing_{op}"));
        let by_overflow = |known: &methods::Signature| {
            known.args.len() == args.len() && !matches!(known.method, methods::Method::Written(_))
        };
        let Some(signature) = overflowing.ok().filter(by_overflow) else {
            return self.guarded(scalar, receiver, op, args, line);
        };
        let own = Ty::Scalar(scalar);
        let mut operands = vec![receiver];
        for (arg, ty) in args.iter().zip(&signature.args) {
            operands.push(self.expr_as(arg, ty)?);
        }
        let pair = self.make(
            line,
            signature.result.clone(),
            ExprKind::Method(signature.method, operands),
        );
        let mut before = Vec::new();
        self.scopes.push(HashMap::new());
        let pair = self.eager(pair, &mut before, line);
        self.scopes.pop();
        let ExprKind::Local(id) = pair.kind else {
            return Err(self.error(line, format!("`{name}` gives no value"), ""));
        };
        let of =
            |c: &Self, ty: Ty, at: u32| c.make(line, ty, ExprKind::Field(Box::new(c.local(id, line)), at));
        let over = of(self, Ty::BOOL, 1);
        let fits = self.make(line, Ty::BOOL, ExprKind::Not(Box::new(over)));
        let value = of(self, own.clone(), 0);
        let ty = Ty::Option(Rc::new(own));
        let value = self.make(line, ty.clone(), ExprKind::Tuple(vec![fits, value]));
        let block = Block {
            stmts: before,
            value: Some(Box::new(value)),
        };
        Ok(self.make(line, ty, ExprKind::Block(None, block)))
    }

    /// `checked_op` as a test before the operation.
    fn guarded(
        &mut self,
        scalar: Scalar,
        receiver: Expr,
        op: &str,
        args: &[syntax::Expr],
        line: u32,
    ) -> Result<Expr> {
        let ir = methods::num(scalar, 64);
        let w = Writer(line);
        let (own, other) = (w.local(RECEIVER), w.local(ARGUMENT));
        let binary = |op| w.binary(op, w.local(RECEIVER), w.local(ARGUMENT));
        let body = match (op, args.len()) {
            ("div", 1) => w.some_if(w.divides(ir.is_signed_int()), binary(BinaryOp::Div)),
            ("rem", 1) => w.some_if(w.divides(ir.is_signed_int()), binary(BinaryOp::Rem)),
            ("div_euclid" | "rem_euclid", 1) => {
                let value = w.method(own, op, vec![other]);
                w.some_if(w.divides(ir.is_signed_int()), value)
            }
            ("shl", 1) => w.some_if(w.shifts(ir.bits()), binary(BinaryOp::Shl)),
            ("shr", 1) => w.some_if(w.shifts(ir.bits()), binary(BinaryOp::Shr)),
            ("ilog2" | "ilog10", 0) => {
                let value = w.method(own, op, Vec::new());
                w.some_if(w.to_zero(BinaryOp::Gt), value)
            }
            ("abs", 0) if ir.is_signed_int() => {
                // Of MIN it is negative.
                let value = w.method(own.clone(), "wrapping_abs", Vec::new());
                let positive = w.method(value.clone(), "is_negative", Vec::new());
                w.some_if(w.not(positive), value)
            }
            ("next_power_of_two", 0) if ir.is_unsigned_int() => {
                let power = w.method(own.clone(), op, Vec::new());
                let fits = w.binary(BinaryOp::Ge, power.clone(), own);
                w.some_if(fits, power)
            }
            _ => {
                let cause = format!("`{}` has no method `checked_{op}`", scalar.name());
                return Err(self.error(line, cause, ""));
            }
        };
        let argument = match (op, args) {
            (_, []) => None,
            ("shl" | "shr", [arg, ..]) => Some(self.expr_as(arg, &Ty::U32)?),
            (_, [arg, ..]) => Some(self.expr_as(arg, &Ty::Scalar(scalar))?),
        };
        self.written(receiver, argument, &body, None, line)
    }

    /// An expression over a receiver and an argument, which are computed before it.
    pub(super) fn written(
        &mut self,
        receiver: Expr,
        argument: Option<Expr>,
        body: &syntax::Expr,
        hint: Option<&Ty>,
        line: u32,
    ) -> Result<Expr> {
        self.scopes.push(HashMap::new());
        let mut stmts = Vec::new();
        for (name, value) in [(RECEIVER, Some(receiver)), (ARGUMENT, argument)] {
            if let Some(value) = value {
                let id = self.declare(name, value.ty.clone(), false, line);
                stmts.push(Stmt {
                    line,
                    kind: StmtKind::Let(Pat::Binding(id), Some(value)),
                });
            }
        }
        let value = self.expr(body, hint);
        self.scopes.pop();
        let value = value?;
        let ty = value.ty.clone();
        let block = Block {
            stmts,
            value: Some(Box::new(value)),
        };
        Ok(self.make(line, ty, ExprKind::Block(None, block)))
    }
}
