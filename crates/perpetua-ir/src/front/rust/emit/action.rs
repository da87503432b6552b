//! Assignments and `unreachable!()`.

use perpetua_syntax::BinaryOp as SyntaxOp;

use super::value::{Binding, Slot};
use super::{Emitter, Result};
use crate::front::rust::infer::tree::{Expr, ExprKind};
use crate::ir::{Effect, FaultKind};

impl Emitter<'_> {
    pub(super) fn assign(&mut self, place: &Expr, value: &Expr, line: u32) -> Result<()> {
        if self.ty(&place.ty).is_unit() {
            self.expr(value)?;
            return Ok(());
        }
        if let ExprKind::Local(id) = &place.kind
            && let Some(Binding::Kept(slot)) = self.scope.bindings.get(id.0 as usize)
        {
            let slot = slot.clone();
            let val = self.expr(value)?;
            self.at(line);
            return self.put(&slot, &val, line);
        }
        if let ExprKind::Index(base, index) = &place.kind
            && let ExprKind::Local(id) = &base.kind
            && let Some(Binding::Kept(Slot::Tuple(slots))) = self.scope.bindings.get(id.0 as usize)
        {
            let slots = slots.clone();
            let (val, index) = (self.expr(value)?, self.value(index)?);
            self.at(line);
            return self.put_at(index, &slots, &val, line);
        }
        self.not_kept(place)?;
        let value = self.value(value)?;
        let place = self.src(place)?;
        self.at(line);
        self.store_at(&place, value, line)
    }

    pub(super) fn compound_assign(
        &mut self,
        op: SyntaxOp,
        place: &Expr,
        value: &Expr,
        line: u32,
    ) -> Result<()> {
        // Of scalars, Rust computes the right side first.
        let value = self.value(value)?;
        self.not_kept(place)?;
        let place = self.src(place)?;
        self.at(line);
        let old = self.load(&place, line)?;
        let old = self.value_of(&old, line)?;
        let new = self.operator(op, old, value, line)?;
        self.store_at(&place, new, line)
    }

    pub(super) fn unreachable(&mut self, line: u32) -> Result<()> {
        let done = self.k.effect(Effect::fault(FaultKind::Unreachable, Vec::new()));
        self.typed(line, done)
    }
}
