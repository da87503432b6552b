//! What programs that nobody trusts are held to: loops end, and memory of blocks holds nobody else's values.

use perpetua_ir::ir::{Effect, FaultKind, Op, Place, Type};
use perpetua_ir::ops::BinaryOp;

use super::emitter::{Emitter, Result};
use super::reduce::barrier;
use super::values::lane_of_block;
use crate::program::MemoryKind;

impl Emitter<'_> {
    /// Loops may run so many instructions from here on.
    pub(super) fn set_budget(&mut self, budget: u32) -> Result {
        let left = self.k.local("budget", Type::U32);
        let budget = self.k.u32(budget);
        self.k.store(Place::local(left), budget)?;
        self.budget = Some(left);
        Ok(())
    }

    /// Takes from the budget; a fault where it is used up.
    pub(super) fn charge(&mut self, cost: u32) -> Result {
        let (Some(budget), 1..) = (self.budget, cost) else {
            return Ok(());
        };
        let left = self.k.load(Place::local(budget))?;
        let cost = self.k.u32(cost);
        let over = self.k.binary(BinaryOp::Lt, left, cost)?;
        self.k.if_(over, |k| {
            k.effect(Effect::Fault(FaultKind::TimeLimit, Vec::new()))
        })?;
        let rest = self.k.binary(BinaryOp::Sub, left, cost)?;
        self.k.store(Place::local(budget), rest)
    }

    /// Lanes of a block set its memory to zero together.
    pub(super) fn zero_shared(&mut self) -> Result {
        let memories = &self.verified.program().memories;
        let shared: Vec<_> = memories
            .iter()
            .zip(self.bases.clone())
            .filter_map(|(memory, base)| match memory.kind {
                MemoryKind::Shared { len } => Some((base, memory.element, len)),
                _ => None,
            })
            .collect();
        if shared.is_empty() {
            return Ok(());
        }
        let (lane, lanes) = lane_of_block(&mut self.k)?;
        for (base, element, len) in shared {
            let next = self.k.local("next", Type::U32);
            self.k.store(Place::local(next), lane)?;
            self.k.loop_(|k| {
                let i = k.load(Place::local(next))?;
                let len = k.u32(len);
                let done = k.binary(BinaryOp::Ge, i, len)?;
                k.if_(done, |k| {
                    k.break_(0);
                    Ok(())
                })?;
                let zero = k.op(Op::Zero(element.into()))?;
                k.store(Place::element(base, i), zero)?;
                let i = k.binary(BinaryOp::Add, i, lanes)?;
                k.store(Place::local(next), i)
            })?;
        }
        barrier(&mut self.k)
    }
}
