//! Parts of slices and arrays: a place, from where, and how much.

use std::sync::Arc;

use super::tidy::WHICH;
use super::value::is_stored;
use super::value::{Binding, Chosen, Meant, Part, Slot, Src, Val};
use super::{Emitter, Result};
use crate::front::rust::describe::{ConstValue, TypeDesc};
use crate::front::rust::error::LowerError;
use crate::front::rust::infer::constant_expr;
use crate::front::rust::infer::tree::{self, Expr, ExprKind, PartEnd};
use crate::front::rust::infer::ty::{Ty, show};
use crate::ir::{self, Base, Effect, FaultKind, Inst, LocalId, Place, Scalar, Step, Value};
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
        let array = match array {
            Src::Val(val) => Src::Place(self.spill(&val, line)?),
            array => array,
        };
        let (name, all) = (self.name_of(&array), self.length(&array, &ty, line)?);
        let usize_scalar = self.usize_scalar();
        let one = self.constant(usize_scalar, 1);
        let len = match (how, end) {
            (PartEnd::Len, Some(len)) => len,
            (PartEnd::Last, Some(last)) => {
                self.check_below(last, all, name.clone(), line)?;
                let end = self.binary(BinaryOp::Add, last, one, line)?;
                self.check_ordered(start, end, up_to_end(&name), line)?;
                self.binary(BinaryOp::Sub, end, start, line)?
            }
            (_, end) => {
                let subject = match end {
                    Some(end) => {
                        self.check_ordered(end, all, name.clone(), line)?;
                        up_to_end(&name)
                    }
                    None => name,
                };
                let end = end.unwrap_or(all);
                self.check_ordered(start, end, subject, line)?;
                self.binary(BinaryOp::Sub, end, start, line)?
            }
        };
        self.cut(&array, start, len, line)
    }

    /// The part of a slice or an array from `start` on that has `len` elements, which are there.
    pub(super) fn cut(&mut self, array: &Src, start: Value, len: Value, line: u32) -> Result<Src> {
        let (whole, start) = match array {
            Src::Place(place) => (place.clone(), start),
            Src::Part(part) => (
                part.whole.clone(),
                self.binary(BinaryOp::Add, part.start, start, line)?,
            ),
            Src::Val(val) => (self.spill(val, line)?, start),
            Src::Constant(name, value) => (self.constant_place(name, value, line)?, start),
            Src::OneOf(which, all) => {
                return self.one_of(*which, all, |this, src| this.cut(src, start, len, line));
            }
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
        let usize_scalar = self.usize_scalar();
        let start = self.constant(usize_scalar, 0);
        let whole = match val {
            Val::Ref(Src::Part(part)) => return Ok(part.clone()),
            Val::Ref(Src::Place(whole)) => whole.clone(),
            Val::Ref(Src::Constant(name, value)) => self.constant_place(name, value, line)?,
            _ => return Err(self.chosen_place(line)),
        };
        let len = self.length(&Src::Place(whole.clone()), &Ty::unit(), line)?;
        Ok(Part { whole, start, len })
    }

    /// `&[]`: no element of a table of one, since memory has nothing without a size.
    pub(super) fn empty_part(&mut self, of: &TypeDesc, line: u32) -> Result<Part> {
        let one = ConstValue::Array(of.clone(), vec![of.zero()]);
        let (whole, usize_scalar) = (self.constant_place("empty", &one, line)?, self.usize_scalar());
        let [start, len] = [self.constant(usize_scalar, 0); 2];
        Ok(Part { whole, start, len })
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
        // A literal, or what nobody changes, lies in a variable: here, since all uses are behind it.
        match (&slot, val) {
            (Slot::Part(..), Val::Ref(Src::Val(of))) => {
                let whole = self.spill(of, line)?;
                self.put(&slot, &Val::Ref(Src::Place(whole)), line)?;
            }
            _ => self.put(&slot, val, line)?,
        }
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
        let [first, second] = names.map(|name| self.k.local(name, usize_scalar.into()));
        let locals = [first, second, self.k.local(WHICH, Scalar::U32.into())];
        let meant = self.meant();
        let slot = match part {
            true => Slot::Part(meant, locals),
            false => Slot::Place(meant, locals),
        };
        self.clear(&slot, line)?;
        Ok(slot)
    }

    /// What a new slot's references mean: as far as it is known.
    pub(super) fn meant(&mut self) -> Chosen {
        let number = self.chosen;
        self.chosen += 1;
        let own = self.meanings.iter().filter(|(slot, _)| *slot == number);
        let places = own.map(|(_, place)| place.clone()).collect();
        let read = false;
        Chosen::new(Meant { number, places, read }.into())
    }

    /// Makes a kept reference mean another part of a slice.
    pub(super) fn move_part(
        &mut self,
        meant: &Chosen,
        [start, len, which]: [LocalId; 3],
        val: &Val,
        line: u32,
    ) -> Result<()> {
        if is_never(val) {
            return Ok(());
        }
        // Where nothing lies does not matter: it needs no place of its own.
        let known = meant.borrow().places.first().cloned();
        let mut part = self.part_of(val, line)?;
        if let (Some(0), Some(whole)) = (self.known(part.len), known) {
            (part.whole, part.start) = (whole, part.len);
        }
        // Indices would be those of one lane's way to here.
        let fixed = part.whole.path.iter().all(|step| matches!(step, Step::Field(_)));
        if !fixed {
            return Err(self.chosen_place(line));
        }
        self.put_number(meant, which, &part.whole, line)?;
        for (local, value) in [(start, part.start), (len, part.len)] {
            self.store(&Place::local(local), value, line)?;
        }
        Ok(())
    }

    /// Says which of the places that a slot's references may mean this is.
    pub(super) fn put_number(
        &mut self,
        meant: &Chosen,
        which: LocalId,
        place: &Place,
        line: u32,
    ) -> Result<()> {
        let number = {
            let mut meant = meant.borrow_mut();
            let known = meant
                .places
                .iter()
                .position(|known| same_but_indices(known, place));
            known.or_else(|| {
                let new = (!meant.read).then_some(meant.places.len());
                meant.places.extend(new.map(|_| place.clone()));
                new
            })
        };
        let Some(number) = number else {
            if matches!(place.base, Base::Buffer(_) | Base::Shared(_)) {
                self.meanings.push((meant.borrow().number, place.clone()));
            }
            return Err(self.chosen_place(line));
        };
        let number = self.constant(Scalar::U32, number as u64);
        self.store(&Place::local(which), number, line)
    }

    /// A kept reference: what `make` makes of each of the places that it may mean.
    fn kept_reference(
        &mut self,
        meant: &Chosen,
        which: LocalId,
        line: u32,
        make: impl Fn(Place) -> Src,
    ) -> Result<Val> {
        let places = {
            let mut meant = meant.borrow_mut();
            meant.read = true;
            meant.places.clone()
        };
        match &places[..] {
            [] => Err(self.chosen_place(line)),
            [only] => Ok(Val::Ref(make(only.clone()))),
            _ => {
                let which = self.read(&Place::local(which), line)?;
                Ok(Val::Ref(Src::OneOf(
                    which,
                    places.into_iter().map(make).collect(),
                )))
            }
        }
    }

    /// The part that a kept reference means now.
    pub(super) fn kept_part(
        &mut self,
        meant: &Chosen,
        [start, len, which]: [LocalId; 3],
        line: u32,
    ) -> Result<Val> {
        let [start, len] = self.loaded([start, len], line)?;
        self.kept_reference(meant, which, line, |whole| Src::Part(Part { whole, start, len }))
    }

    /// Makes a kept `&mut T` mean another place.
    pub(super) fn move_place(
        &mut self,
        meant: &Chosen,
        [first, second, which]: [LocalId; 3],
        val: &Val,
        line: u32,
    ) -> Result<()> {
        if is_never(val) {
            return Ok(());
        }
        let place = match val {
            Val::Ref(Src::Place(place)) => place,
            // Of an `Err`, say: what is looked at lies in memory.
            Val::Ref(Src::Val(of)) if is_stored(of) => return Ok(()),
            _ => return Err(self.chosen_place(line)),
        };
        self.put_number(meant, which, place, line)?;
        let usize_scalar = self.usize_scalar().into();
        let mut locals = [first, second].into_iter();
        for step in &place.path {
            if let Step::Index(index) = step {
                let fits = *self.typed(line, self.k.type_of(*index))? == usize_scalar;
                match locals.next().filter(|_| fits) {
                    Some(local) => self.store(&Place::local(local), *index, line)?,
                    None => return Err(self.chosen_place(line)),
                }
            }
        }
        Ok(())
    }

    /// The place that a kept `&mut T` means now.
    pub(super) fn kept_place(
        &mut self,
        meant: &Chosen,
        [first, second, which]: [LocalId; 3],
        line: u32,
    ) -> Result<Val> {
        let loaded = self.loaded([first, second], line)?;
        self.kept_reference(meant, which, line, |mut place| {
            let indices = place.path.iter_mut().filter_map(|step| match step {
                Step::Index(index) => Some(index),
                _ => None,
            });
            for (index, now) in indices.zip(loaded) {
                *index = now;
            }
            Src::Place(place)
        })
    }

    fn loaded(&mut self, locals: [LocalId; 2], line: u32) -> Result<[Value; 2]> {
        let [a, b] = locals.map(|local| self.read(&Place::local(local), line));
        Ok([a?, b?])
    }

    pub(super) fn part_as_value(&self, line: u32) -> LowerError {
        self.error(
            line,
            "which part of a slice is meant is chosen at run time",
            "choose its ends instead, and take the part behind that",
        )
    }

    /// The `Default` of a type that is known by now.
    pub(super) fn default_value(&mut self, e: &Expr) -> Result<Val> {
        let ty = self.ty(&e.ty);
        match ty.to_desc().and_then(|desc| desc.default()) {
            Some(value) => self.expr(&constant_expr("default()", value, e.line)),
            None => Err(self.error(
                e.line,
                format!("a part of `{}` has no `Default` that kernels know", show(&ty)),
                "write out its value, or `derive(Default)` on the part's type",
            )),
        }
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
                let shown = show(&other);
                Err(self.error(
                    e.line,
                    format!("a sum or product of `{shown}` has nothing to start with"),
                    "sum numbers, or write `fold`",
                ))
            }
        }
    }
}

/// What a range's start is an index into.
fn up_to_end(name: &str) -> Arc<str> {
    format!("{name}[..end]").into()
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
        Ty::Array(element, _) => holds_reference(element),
        _ => false,
    }
}
