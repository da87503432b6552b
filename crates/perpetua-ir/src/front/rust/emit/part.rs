//! Parts of slices and arrays: a place, from where, and how much.

use super::value::{Binding, Part, Slot, Src, Val};
use super::{Emitter, Result};
use crate::front::rust::error::LowerError;
use crate::front::rust::infer::tree::{self, Expr, ExprKind, PartEnd};
use crate::front::rust::infer::ty::Ty;
use crate::ir::{self, Effect, FaultKind, Inst, LocalId, Place, Step, Value};
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

    /// The part that a reference to a slice means.
    fn part_of(&mut self, val: &Val, line: u32) -> Result<Part> {
        match val {
            Val::Ref(Src::Part(part)) => Ok(part.clone()),
            Val::Ref(src @ Src::Place(whole)) => {
                let len = self.length(src, &Ty::unit(), line)?;
                let usize_scalar = self.usize_scalar();
                let start = self.constant(usize_scalar, 0);
                let whole = whole.clone();
                Ok(Part { whole, start, len })
            }
            _ => Err(self.chosen_place(line)),
        }
    }

    /// Variables for where a part starts and how much it is.
    fn ends(&mut self) -> [LocalId; 2] {
        let usize_scalar = self.usize_scalar();
        ["start", "count"].map(|name| self.k.local(name, usize_scalar.into()))
    }

    /// Keeps what a local holds that changes and has references in it: `None` where it has none.
    pub(super) fn keep(&mut self, id: tree::LocalId, val: &Val, line: u32) -> Result<Option<Slot>> {
        let f = self.scope.f.clone();
        let Some(local) = f.locals.get(id.0 as usize).filter(|local| local.assigned) else {
            return Ok(None);
        };
        let ty = self.local_type(id);
        let slot = match self.part_slot(&ty, val) {
            Some(slot) => slot,
            None if holds_reference(&ty) => {
                let name = super::types::identifier(&local.name);
                self.slot(&local.ty, &name, line)?
            }
            None => return Ok(None),
        };
        self.put(&slot, val, line)?;
        Ok(Some(slot))
    }

    /// Refuses a store into a part of what is kept whole.
    pub(super) fn not_kept(&self, place: &Expr) -> Result<()> {
        let mut at = place;
        while let ExprKind::Field(base, _) | ExprKind::Index(base, _) = &at.kind {
            at = base;
        }
        match &at.kind {
            ExprKind::Local(id)
                if matches!(self.scope.bindings.get(id.0 as usize), Some(Binding::Kept(_))) =>
            {
                Err(self.chosen_place(place.line))
            }
            _ => Ok(()),
        }
    }

    /// A slot for references to parts of the slice that `val` is a part of; `None` where it is none.
    pub(super) fn part_slot(&mut self, ty: &Ty, val: &Val) -> Option<Slot> {
        let whole = match val {
            Val::Ref(Src::Part(part)) => &part.whole,
            Val::Ref(Src::Place(whole)) => whole,
            _ => return None,
        };
        let fixed = whole.path.iter().all(|step| matches!(step, Step::Field(_)));
        let whole = whole.clone();
        (is_slice(ty) && fixed).then(|| Slot::Part(whole, self.ends()))
    }

    /// Makes a kept reference mean another part of the same slice.
    pub(super) fn move_part(
        &mut self,
        whole: &Place,
        ends: [LocalId; 2],
        val: &Val,
        line: u32,
    ) -> Result<()> {
        let part = self.part_of(val, line)?;
        if part.whole != *whole {
            return Err(self.chosen_place(line));
        }
        for (local, value) in ends.into_iter().zip([part.start, part.len]) {
            self.store(&Place::local(local), value, line)?;
        }
        Ok(())
    }

    /// The part that a kept reference means now.
    pub(super) fn kept_part(&mut self, whole: Place, ends: [LocalId; 2], line: u32) -> Result<Val> {
        let mut loaded = Vec::with_capacity(2);
        for local in ends {
            let val = self.load(&Src::Place(Place::local(local)), line)?;
            loaded.push(self.value_of(&val, line)?);
        }
        match loaded[..] {
            [start, len] => Ok(Val::Ref(Src::Part(Part { whole, start, len }))),
            _ => Err(self.chosen_place(line)),
        }
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

/// Whether the type is that of a reference to a slice.
fn is_slice(ty: &Ty) -> bool {
    matches!(ty, Ty::Ref(_, target) if matches!(**target, Ty::Slice(_)))
}

/// Whether values of the type have references to single values in them.
pub(super) fn holds_reference(ty: &Ty) -> bool {
    match ty {
        Ty::Ref(false, target) => !matches!(**target, Ty::Slice(_)),
        Ty::Tuple(parts) => parts.iter().any(holds_reference),
        _ => false,
    }
}
