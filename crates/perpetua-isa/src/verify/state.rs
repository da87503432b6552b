//! What a lane's slots hold between two instructions. Knows no blocks.

use perpetua_ir::ir::Scalar;
use smallvec::SmallVec;

use super::accesses::{Access, accesses};
use crate::instruction::{Guard, Instruction, PREDICATES, REGISTERS};

/// Slots of a lane's state: registers, then predicates.
pub(crate) const REGISTER_SLOTS: usize = REGISTERS + PREDICATES;

/// A predicate's slot.
pub(crate) fn predicate_slot(predicate: u8) -> usize {
    REGISTERS + usize::from(predicate)
}

/// The slot of a register, or of a predicate where the type is `bool`.
pub(crate) fn slot(register: u8, ty: Scalar) -> usize {
    match ty {
        Scalar::Bool => predicate_slot(register),
        _ => usize::from(register),
    }
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Nothing that every way here has written.
    Nothing,
    /// A value of this type.
    Value(Scalar),
    /// Values of different types, by the way taken.
    Mixed,
}

impl Holds {
    /// What a slot holds where two ways meet.
    pub(super) fn or(self, other: Holds) -> Holds {
        match (self, other) {
            (a, b) if a == b => a,
            (Holds::Nothing, _) | (_, Holds::Nothing) => Holds::Nothing,
            _ => Holds::Mixed,
        }
    }

    /// What it holds after a write. Where the write may be kept from happening, what was there may stay.
    pub(super) fn after(self, write: Write) -> Holds {
        match write.may_fail {
            true => self.or(Holds::Value(write.ty)),
            false => Holds::Value(write.ty),
        }
    }
}

/// A write to a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    pub(super) slot: usize,
    pub(super) ty: Scalar,
    /// Whether a guard may keep it from happening, and no earlier write with the opposite guard makes up for that.
    may_fail: bool,
}

/// Guarded writes along straight code whose opposites may follow: `@p0 mov.u32 r0, 1` and `@!p0 mov.u32 r0, 2` write r0 together.
#[derive(Clone, Debug, Default)]
pub(super) struct Halves(Vec<(usize, Scalar, Guard)>);

impl Halves {
    /// What an instruction writes.
    pub(super) fn writes(&mut self, instruction: &Instruction) -> SmallVec<[Write; 2]> {
        let mut writes = SmallVec::new();
        for access in accesses(instruction) {
            let Access::Write(register, ty) = access else {
                continue;
            };
            let slot = slot(register, ty);
            let may_fail = instruction.guard.is_some_and(|guard| {
                let opposite = Guard {
                    negated: !guard.negated,
                    ..guard
                };
                !self.0.contains(&(slot, ty, opposite))
            });
            self.0.retain(|(other, ..)| *other != slot);
            if let (Some(guard), true) = (instruction.guard, may_fail) {
                self.0.push((slot, ty, guard));
            }
            // Of a predicate that changes, nothing is the opposite any more.
            self.0
                .retain(|(.., guard)| predicate_slot(guard.predicate) != slot);
            writes.push(Write { slot, ty, may_fail });
        }
        writes
    }
}

/// What all slots hold at a place in straight code.
#[derive(Clone, Debug)]
pub(crate) struct State {
    holds: Vec<Holds>,
    halves: Halves,
}

impl State {
    /// Where a block begins.
    pub(crate) fn new(holds: &[Holds]) -> State {
        State {
            holds: holds.to_vec(),
            halves: Halves::default(),
        }
    }

    /// What the slots hold.
    pub(crate) fn holds(&self) -> &[Holds] {
        &self.holds
    }

    /// What a guarded instruction may leave without a value of the type that it writes.
    pub(crate) fn left_open(&self, instruction: &Instruction) -> Vec<(usize, Scalar)> {
        let writes = self.halves.clone().writes(instruction).into_iter();
        let open = writes
            .filter(|write| write.may_fail && self.holds.get(write.slot) != Some(&Holds::Value(write.ty)));
        open.map(|write| (write.slot, write.ty)).collect()
    }

    /// Goes on behind an instruction.
    pub(crate) fn pass(&mut self, instruction: &Instruction) {
        for write in self.halves.writes(instruction) {
            if let Some(holds) = self.holds.get_mut(write.slot) {
                *holds = holds.after(write);
            }
        }
    }
}
