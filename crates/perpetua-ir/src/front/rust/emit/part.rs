//! Parts of slices and arrays: a place, from where, and how much.

use std::sync::Arc;

use super::value::{Binding, Chosen, Part, Slot, Src, Val};
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
                self.check_below(last, all, self.k.name_of(whole.base).into(), line)?;
                let end = self.binary(BinaryOp::Add, last, one, line)?;
                self.check_ordered(start, end, self.up_to_end(&whole), line)?;
                self.binary(BinaryOp::Sub, end, start, line)?
            }
            (_, end) => {
                let name = self.k.name_of(whole.base).to_owned();
                let subject = match end {
                    Some(end) => {
                        self.check_ordered(end, all, name.into(), line)?;
                        self.up_to_end(&whole)
                    }
                    None => name.into(),
                };
                let end = end.unwrap_or(all);
                self.check_ordered(start, end, subject, line)?;
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

    /// A fault unless `index < length` in the memory of this name.
    pub(super) fn check_below(
        &mut self,
        index: Value,
        length: Value,
        subject: Arc<str>,
        line: u32,
    ) -> Result<()> {
        self.check(BinaryOp::Ge, index, length, subject, line)
    }

    /// What a range's start is an index into.
    fn up_to_end(&self, whole: &Place) -> Arc<str> {
        format!("{}[..end]", self.k.name_of(whole.base)).into()
    }

    /// A fault unless `start <= end`.
    fn check_ordered(&mut self, start: Value, end: Value, subject: Arc<str>, line: u32) -> Result<()> {
        if self.known(start) == Some(0) || start == end {
            return Ok(());
        }
        self.check(BinaryOp::Gt, start, end, subject, line)
    }

    fn check(&mut self, bad: BinaryOp, a: Value, b: Value, subject: Arc<str>, line: u32) -> Result<()> {
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
                .effect(Effect::Fault(FaultKind::IndexOutOfBounds, subject, vec![a, b]));
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

    /// Keeps what a local holds that changes and has references in it: `None` where it has none.
    pub(super) fn keep(&mut self, id: tree::LocalId, val: &Val, line: u32) -> Result<Option<Slot>> {
        let f = self.scope.f.clone();
        let Some(local) = f.locals.get(id.0 as usize).filter(|local| local.assigned) else {
            return Ok(None);
        };
        let ty = self.local_type(id);
        if !holds_reference(&ty) {
            return Ok(None);
        }
        let name = super::types::identifier(&local.name);
        let slot = self.slot(&local.ty, &name, line)?;
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

    /// A slot for references of which run time says what they mean, all zeros until then.
    pub(super) fn chosen_slot(&mut self, part: bool, line: u32) -> Result<Slot> {
        let usize_scalar = self.usize_scalar();
        let names = if part {
            ["start", "count"]
        } else {
            ["index", "second"]
        };
        let locals = names.map(|name| self.k.local(name, usize_scalar.into()));
        let slot = match part {
            true => Slot::Part(Chosen::default(), locals),
            false => Slot::Place(Chosen::default(), locals),
        };
        self.clear(&slot, line)?;
        Ok(slot)
    }

    /// Makes a kept reference mean another part of the same slice.
    pub(super) fn move_part(
        &mut self,
        whole: &Chosen,
        ends: [LocalId; 2],
        val: &Val,
        line: u32,
    ) -> Result<()> {
        if is_never(val) {
            return Ok(());
        }
        let part = self.part_of(val, line)?;
        // Indices would be those of one lane's way to here.
        let fixed = part.whole.path.iter().all(|step| matches!(step, Step::Field(_)));
        let same = *whole.borrow_mut().get_or_insert_with(|| part.whole.clone()) == part.whole;
        if !fixed || !same {
            return Err(self.chosen_place(line));
        }
        for (local, value) in ends.into_iter().zip([part.start, part.len]) {
            self.store(&Place::local(local), value, line)?;
        }
        Ok(())
    }

    /// The part that a kept reference means now.
    pub(super) fn kept_part(&mut self, whole: &Chosen, ends: [LocalId; 2], line: u32) -> Result<Val> {
        let Some(whole) = whole.borrow().clone() else {
            return Err(self.chosen_place(line));
        };
        let [start, len] = self.loaded(ends, line)?;
        Ok(Val::Ref(Src::Part(Part { whole, start, len })))
    }

    /// Makes a kept `&mut T` mean another place that differs by indices alone.
    pub(super) fn move_place(
        &mut self,
        common: &Chosen,
        indices: [LocalId; 2],
        val: &Val,
        line: u32,
    ) -> Result<()> {
        if is_never(val) {
            return Ok(());
        }
        let Val::Ref(Src::Place(place)) = val else {
            return Err(self.chosen_place(line));
        };
        let same = same_but_indices(common.borrow_mut().get_or_insert_with(|| place.clone()), place);
        let usize_scalar = self.usize_scalar().into();
        let mut stored = 0;
        for step in &place.path {
            if let Step::Index(index) = step {
                let fits = *self.typed(line, self.k.type_of(*index))? == usize_scalar;
                match indices.get(stored).filter(|_| fits) {
                    Some(local) => self.store(&Place::local(*local), *index, line)?,
                    None => return Err(self.chosen_place(line)),
                }
                stored += 1;
            }
        }
        if same {
            Ok(())
        } else {
            Err(self.chosen_place(line))
        }
    }

    /// The place that a kept `&mut T` means now.
    pub(super) fn kept_place(&mut self, common: &Chosen, indices: [LocalId; 2], line: u32) -> Result<Val> {
        let Some(mut place) = common.borrow().clone() else {
            return Err(self.chosen_place(line));
        };
        let mut loaded = self.loaded(indices, line)?.into_iter();
        for step in &mut place.path {
            if let Step::Index(index) = step
                && let Some(value) = loaded.next()
            {
                *index = value;
            }
        }
        Ok(Val::Ref(Src::Place(place)))
    }

    fn loaded(&mut self, locals: [LocalId; 2], line: u32) -> Result<[Value; 2]> {
        let [a, b] = locals.map(|local| {
            let val = self.load(&Src::Place(Place::local(local)), line)?;
            self.value_of(&val, line)
        });
        Ok([a?, b?])
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

/// Whether it is what an end gives that nobody comes to, or a reference that nobody looks at.
fn is_never(val: &Val) -> bool {
    match val {
        Val::Tuple(none) => none.is_empty(),
        Val::Ref(Src::Val(of)) => is_never(of),
        _ => false,
    }
}

/// Whether two places differ by indices alone.
fn same_but_indices(a: &Place, b: &Place) -> bool {
    let same = |(a, b): (&Step, &Step)| match (a, b) {
        (Step::Index(_), Step::Index(_)) => true,
        (a, b) => a == b,
    };
    a.base == b.base && a.path.len() == b.path.len() && a.path.iter().zip(&b.path).all(same)
}

/// Whether values of the type have references in them.
pub(super) fn holds_reference(ty: &Ty) -> bool {
    match ty {
        Ty::Ref(..) => true,
        Ty::Tuple(parts) => parts.iter().any(holds_reference),
        _ => false,
    }
}
