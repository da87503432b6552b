//! Checks what a program declares: each declaration by itself, then all together.

use std::collections::HashSet;

use super::{MAX_DECLARATIONS, MAX_INSTRUCTIONS, Where, Wrong};
use crate::declaration::{block, limit, memory, name, parameter, shared, taken, wrong_name};
use crate::fault::Fault;
use crate::program::{Program, Routine};

/// Longest name of a file that lines refer to.
const MAX_SOURCE: u64 = 1 << 12;

type Result<E = Fault> = std::result::Result<(), E>;

pub(super) fn declarations(program: &Program) -> Result<Wrong> {
    name("a program", &program.name)?;
    let own = program.routines.first();
    if own.is_none_or(|own| !own.name.is_empty()) {
        let name = own.map(|own| own.name.as_str()).unwrap_or_default();
        let why = "it is there and has no name";
        return Err(wrong_name("the program's own code, the first routine,", name, why).into());
    }
    limit(
        "bytes of the name of the file",
        program.source.len() as u64,
        MAX_SOURCE,
    )?;
    if program.source.contains(char::is_control) {
        let why = "it has characters that are not printed";
        return Err(wrong_name("the file of the program", &program.source, why).into());
    }
    program.block.map_or(Ok(()), block)?;
    declared("memories", program.memories.len())?;
    declared("parameters", program.parameters.len())?;
    declared("routines", program.routines.len())?;
    let most = MAX_INSTRUCTIONS as u64;
    limit("instructions", program.len() as u64, most).map_err(|fault| {
        match instruction(program, MAX_INSTRUCTIONS) {
            Some(at) => Wrong::at(at, fault),
            None => fault.into(),
        }
    })?;
    let memories = program.memories.iter().map(|memory| memory.name.as_str());
    let parameters = program.parameters.iter().map(|parameter| parameter.name.as_str());
    unique("a memory or parameter", memories.chain(parameters))?;
    program.memories.iter().try_for_each(memory)?;
    program.parameters.iter().try_for_each(parameter)?;
    shared(&program.memories)?;
    let routines = program.routines.iter().map(|routine| routine.name.as_str());
    unique("a routine", routines.skip(1))?;
    for routine in &program.routines {
        declared("labels of a routine", routine.labels.len())?;
        unique("a label", routine.labels.iter().map(|label| label.name.as_str()))?;
        let (lines, code) = (routine.lines.len() as u64, routine.code.len() as u64);
        limit("lines of instructions", lines, code)?;
        let end = routine.code.len();
        if let Some(label) = routine.labels.iter().find(|label| label.at as usize > end) {
            return Err(Fault::Limit {
                what: "instruction of a label",
                found: label.at.into(),
                limit: end as u64,
            }
            .into());
        }
    }
    Ok(())
}

fn unique<'a>(what: &'static str, mut names: impl Iterator<Item = &'a str>) -> Result {
    let mut seen = HashSet::new();
    names.try_for_each(|found| {
        name(what, found)?;
        match seen.insert(found) {
            true => Ok(()),
            false => Err(taken(what, found)),
        }
    })
}

fn declared(what: &'static str, found: usize) -> Result {
    limit(what, found as u64, MAX_DECLARATIONS as u64)
}

// Where an instruction stands, by its number in the program.
fn instruction(program: &Program, mut number: usize) -> Option<Where> {
    for (routine, Routine { code, .. }) in program.routines.iter().enumerate() {
        match number.checked_sub(code.len()) {
            None => return Some((routine, number)),
            Some(rest) => number = rest,
        }
    }
    None
}
