//! Which registers an instruction reads and writes, and at which types. Expects operands that fit the opcode's row.

use perpetua_ir::ir::Scalar;
use smallvec::{SmallVec, smallvec};

use crate::instruction::{Guard, Index, Instruction, Operand};
use crate::opcode::{Meaning, Slot, Space};

/// An access to a register or, where the type is `bool`, to a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// A value of this type is read.
    Read(u8, Scalar),
    /// An integer of any type is read.
    Index(u8),
    /// A value of this type is written.
    Write(u8, Scalar),
}

/// All accesses: what is read, then what is written.
pub(crate) fn accesses(instruction: &Instruction) -> SmallVec<[Access; 8]> {
    let mut reads = SmallVec::new();
    let mut writes = SmallVec::<[Access; 2]>::new();
    if let Some(Guard { predicate, .. }) = instruction.guard {
        reads.push(Access::Read(predicate, Scalar::Bool));
    }
    let row = instruction.opcode.row();
    // Few have runs of registers.
    let has_runs = row
        .operands
        .iter()
        .any(|slot| matches!(slot, Slot::Run | Slot::Sums));
    let runs = if has_runs {
        lengths(instruction)
    } else {
        SmallVec::new()
    };
    let mut runs = runs.into_iter();
    let (own, from) = (instruction.ty, instruction.from);
    for (slot, operand) in row.operands.iter().zip(&instruction.operands) {
        match (*slot, *operand) {
            (Slot::Write(ty), Operand::Register(r) | Operand::Predicate(r)) => {
                let Some(ty) = ty.of(own, from) else { continue };
                // A loop's count is read, too.
                if row.meaning == Meaning::Loop {
                    reads.push(Access::Read(r, ty));
                }
                writes.push(Access::Write(r, ty));
            }
            (Slot::Read(ty), Operand::Register(r) | Operand::Predicate(r)) => {
                reads.extend(ty.of(own, from).map(|ty| Access::Read(r, ty)));
            }
            (Slot::Place(..), Operand::Place(place)) => {
                let pool = matches!(slot, Slot::Place(Space::Pool, _));
                for part in [place.first, place.second].into_iter().flatten() {
                    match part {
                        // A handle, or an index of a block.
                        Index::Register(r) if pool => reads.push(Access::Read(r, Scalar::U32)),
                        Index::Register(r) => reads.push(Access::Index(r)),
                        Index::Special(_) | Index::Parameter(_) => {}
                    }
                }
            }
            (Slot::Run | Slot::Sums, Operand::Register(first)) => {
                let (Some(ty), Some(len)) = (own, runs.next()) else {
                    continue;
                };
                let registers = (first..=u8::MAX).take(len as usize);
                for r in registers {
                    reads.push(Access::Read(r, ty));
                    if *slot == Slot::Sums {
                        writes.push(Access::Write(r, ty));
                    }
                }
            }
            _ => {}
        }
    }
    reads.extend(writes);
    reads
}

/// How long each run of registers is, in the order of the operands.
pub(crate) fn lengths(instruction: &Instruction) -> SmallVec<[u32; 4]> {
    let counts: SmallVec<[u32; 4]> = instruction
        .operands
        .iter()
        .filter_map(|operand| match operand {
            Operand::Count(n) => Some(*n),
            _ => None,
        })
        .collect();
    match (instruction.opcode.meaning(), counts.as_slice()) {
        (Meaning::Tile, [m, n, k]) => {
            smallvec![m.saturating_mul(*n), m.saturating_mul(*k), k.saturating_mul(*n)]
        }
        _ => counts,
    }
}
