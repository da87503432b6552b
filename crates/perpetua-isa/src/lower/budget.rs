//! What untrusted programs are held to: loops end, and shared memory holds nobody else's values.

use perpetua_ir::ir::{Effect, FaultKind, Inst, Op, Place, Type, Value};
use perpetua_ir::ops::BinaryOp;

use super::emitter::{Budget, Emitter, Result};
use super::reduce::barrier;
use super::values::lane_of_block;
use crate::program::MemoryKind;

impl Emitter<'_> {
    /// Loops may run so many instructions from here on.
    pub(super) fn set_budget(&mut self, instructions: u32) -> Result {
        let mut budget = |name: &str| {
            let left = self.k.local(name, Type::U32);
            let instructions = self.k.u32(instructions);
            self.k.store(Place::local(left), instructions)?;
            Ok(left)
        };
        self.budget = Some(Budget {
            lane: budget("lane_budget")?,
            block: budget("block_budget")?,
            instructions,
        });
        Ok(())
    }

    /// Takes from a budget what a turn of a loop costs; a fault where it is used up. Where lanes meet in the loop, its budget is one
    /// that all lanes of the block use up together, and they leave together: a lane that faults alone has to come to the meetings.
    pub(super) fn charge(&mut self, cost: u32, meets: bool) -> Result {
        match cost {
            0 => Ok(()),
            _ => {
                let cost = self.k.u32(cost);
                self.charge_value(cost, meets)
            }
        }
    }

    /// The same where the lane computes what it costs.
    pub(super) fn charge_value(&mut self, cost: Value, meets: bool) -> Result {
        let Some(budgets) = self.budget else {
            return Ok(());
        };
        let budget = if meets { budgets.block } else { budgets.lane };
        let left = self.k.load(Place::local(budget))?;
        let over = self.k.binary(BinaryOp::Lt, left, cost)?;
        self.k.if_(over, |k| {
            let instructions = k.u32(budgets.instructions);
            k.effect(Effect::fault(FaultKind::BudgetSpent, vec![instructions]))?;
            if meets {
                k.push(Inst::Return(None));
            }
            Ok(())
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
