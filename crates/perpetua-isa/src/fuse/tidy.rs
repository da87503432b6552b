//! Takes out of straight code what nothing needs: copies of registers, and values that nobody reads. Knows no programs.

use std::collections::{HashMap, HashSet};

use perpetua_ir::ops::BinaryOp;

use crate::builder::draft::{Arg, Draft, Line, Part};
use crate::opcode::{Meaning, Slot};

/// Of code without labels, in which lanes at most end.
pub(super) fn tidy(draft: &mut Draft) {
    read_originals(&mut draft.lines);
    let mut read = HashSet::new();
    let mut kept = Vec::with_capacity(draft.lines.len());
    for line in std::mem::take(&mut draft.lines).into_iter().rev() {
        if is_pure(&line) && target(&line).is_some_and(|register| !read.contains(&register)) {
            continue;
        }
        if let (Some(register), None) = (target(&line), line.guard) {
            read.remove(&register);
        }
        line.registers(|register, is_written| {
            if !is_written {
                read.insert(register);
            }
        });
        kept.push(line);
    }
    kept.reverse();
    draft.lines = kept;
}

// Reads what was copied where that still is.
fn read_originals(lines: &mut [Line]) {
    let mut copies: HashMap<u32, u32> = HashMap::new();
    for line in lines {
        let original = |register: u32| copies.get(&register).copied().unwrap_or(register);
        line.guard = line
            .guard
            .map(|(register, negated)| (original(register), negated));
        for (slot, arg) in line.opcode.row().operands.iter().zip(&mut line.args) {
            match arg {
                Arg::Register(register) if !matches!(slot, Slot::Write(_)) => *register = original(*register),
                Arg::Place { first, second, .. } => {
                    for part in [first, second].into_iter().flatten() {
                        if let Part::Register(register) = part {
                            *register = original(*register);
                        }
                    }
                }
                _ => {}
            }
        }
        let Some(written) = target(line) else { continue };
        copies.retain(|copy, original| *copy != written && *original != written);
        if let (Meaning::Move, None, [_, Arg::Register(from)]) =
            (line.opcode.meaning(), line.guard, line.args.as_slice())
            && *from != written
        {
            copies.insert(written, *from);
        }
    }
}

// The register that a line writes.
fn target(line: &Line) -> Option<u32> {
    let slots = line.opcode.row().operands.iter();
    slots.zip(&line.args).find_map(|(slot, arg)| match (slot, arg) {
        (Slot::Write(_), Arg::Register(register)) => Some(*register),
        _ => None,
    })
}

// Whether a line does nothing but give a value: no access to memory, no fault.
fn is_pure(line: &Line) -> bool {
    let meaning = line.opcode.meaning();
    match meaning {
        Meaning::Binary(BinaryOp::Div | BinaryOp::Rem) => line.ty.is_some_and(|ty| ty.is_float()),
        _ => meaning.is_value(),
    }
}
