//! Parts of slices and arrays: a place, from where, and how much.

use super::value::{Part, Src, Val};
use super::{Emitter, Result};
use crate::front::rust::error::LowerError;
use crate::front::rust::infer::tree::{Expr, ExprKind, PartEnd};
use crate::front::rust::infer::ty::Ty;
use crate::ir::{self, Effect, FaultKind, Inst, Step, Value};
use crate::ops::BinaryOp;

impl Emitter<'_> {
    /// `base[start..end]`, with both ends checked here and never again.
    pub(super) fn part_expr(
        &mut self,
        base: &Expr,
        start: &Expr,
        end: Option<&Expr>,
        how: PartEnd,
        line: u32,
    ) -> Result<Src> {
        let (array, ty) = (self.src(base)?, self.ty(&base.ty));
        let start = self.value(start)?;
        let end = match end {
            Some(end) => Some(self.value(end)?),
            None => None,
        };
        self.at(line);
        let (whole, first, all) = match array {
            Src::Place(place) => {
                let all = self.length(&Src::Place(place.clone()), &ty, line)?;
                (place, None, all)
            }
            Src::Part(part) => (part.whole, Some(part.start), part.len),
            Src::Val(val) => {
                let place = self.spill(&val, line)?;
                let all = self.length(&Src::Place(place.clone()), &ty, line)?;
                (place, None, all)
            }
            Src::Constant(name, value) => {
                let place = self.constant_place(&name, &value, line)?;
                let all = self.length(&Src::Constant(name, value), &ty, line)?;
                (place, None, all)
            }
        };
        let usize_scalar = self.usize_scalar();
        let one = self.constant(usize_scalar, 1);
        let len = match (how, end) {
            (PartEnd::Len, Some(len)) => len,
            (PartEnd::Last, Some(last)) => {
                self.check_below(last, all, line)?;
                let end = self.binary(BinaryOp::Add, last, one, line)?;
                self.check_ordered(start, end, line)?;
                self.binary(BinaryOp::Sub, end, start, line)?
            }
            (_, end) => {
                if let Some(end) = end {
                    self.check_ordered(end, all, line)?;
                }
                let end = end.unwrap_or(all);
                self.check_ordered(start, end, line)?;
                self.binary(BinaryOp::Sub, end, start, line)?
            }
        };
        let start = match first {
            Some(first) => self.binary(BinaryOp::Add, first, start, line)?,
            None => start,
        };
        Ok(Src::Part(Part { whole, start, len }))
    }

    /// An element at an index that lies in the part.
    pub(super) fn part_element(&mut self, part: &Part, index: Value, line: u32) -> Result<Src> {
        let index = self.binary(BinaryOp::Add, part.start, index, line)?;
        Ok(Src::Place(part.whole.clone().step(Step::Index(index))))
    }

    /// A fault unless `index < length`.
    pub(super) fn check_below(&mut self, index: Value, length: Value, line: u32) -> Result<()> {
        self.check(BinaryOp::Ge, index, length, line)
    }

    /// A fault unless `start <= end`.
    fn check_ordered(&mut self, start: Value, end: Value, line: u32) -> Result<()> {
        if self.known(start) == Some(0) || start == end {
            return Ok(());
        }
        self.check(BinaryOp::Gt, start, end, line)
    }

    fn check(&mut self, bad: BinaryOp, a: Value, b: Value, line: u32) -> Result<()> {
        if self.unchecked {
            return Ok(());
        }
        let bad = self.binary(bad, a, b, line)?;
        if self.is(bad, false) {
            return Ok(());
        }
        let fault = self.branch(|this| {
            let done = this
                .k
                .effect(Effect::Fault(FaultKind::IndexOutOfBounds, vec![a, b]));
            this.typed(line, done)?;
            Ok(Val::unit())
        })?;
        self.k.push(Inst::If(bad, fault.block, ir::Block::default()));
        Ok(())
    }

    pub(super) fn part_as_value(&self, line: u32) -> LowerError {
        self.error(
            line,
            "which part of a slice is meant is chosen at run time",
            "choose its ends instead, and take the part behind that",
        )
    }

    /// What a sum or a product starts with.
    pub(super) fn identity(&mut self, product: bool, e: &Expr) -> Result<Val> {
        let make = |kind| Expr {
            line: e.line,
            ty: e.ty.clone(),
            kind,
        };
        match self.ty(&e.ty) {
            Ty::Scalar(s) if s.is_float() && product => self.expr(&make(ExprKind::Float("1".into()))),
            // As Rust has it: a sum of negative zeros is one.
            Ty::Scalar(s) if s.is_float() => {
                let zero = Box::new(make(ExprKind::Float("0".into())));
                self.expr(&make(ExprKind::Neg(zero)))
            }
            Ty::Scalar(s) if s.is_integer() => self.expr(&make(ExprKind::Int(u128::from(product)))),
            other => {
                let shown = crate::front::rust::infer::ty::show(&other);
                Err(self.error(
                    e.line,
                    format!("a sum or product of `{shown}` has nothing to start with"),
                    "sum numbers, or write `fold`",
                ))
            }
        }
    }
}
