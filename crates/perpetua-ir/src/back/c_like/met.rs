//! Loads that give all lanes of a block one value, for dialects that must be told.

use super::writer::Writer;
use crate::ir::{Inst, Op, Stmt};

impl<'m> Writer<'m> {
    /// Writes one of [`Block::met_loads`](crate::ir::Block::met_loads) as such, where it can; says whether it did.
    pub(super) fn load_met(&mut self, stmt: &'m Stmt) -> bool {
        let Inst::Let(v, Op::Load(place, None)) = &stmt.inst else {
            return false;
        };
        let mut constant = true;
        place.operands(&mut |v| {
            let definition = self.definitions.get(v.0 as usize).copied().flatten();
            constant &= matches!(definition, Some(Op::Const(..)));
        });
        if !constant || self.uses.is_dead(stmt, &self.m.effects) {
            return false;
        }
        let spot = self.spot(place);
        let Some(e) = self.d.load_met(self, &spot) else {
            return false;
        };
        self.line = stmt.line;
        self.declare(self.uses.range(stmt).start, &stmt.inst);
        self.settle(*v, e);
        true
    }
}
