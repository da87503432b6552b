//! Checks what a program declares: each declaration by itself, then all together.

use std::collections::HashSet;

use super::{MAX_DECLARATIONS, MAX_INSTRUCTIONS};
use crate::declaration::{block, memory, name, parameter, taken, wrong_name};
use crate::fault::Fault;
use crate::program::{MemoryKind, Program};

type Result = std::result::Result<(), Fault>;

pub(super) fn declarations(program: &Program) -> Result {
    name("a program", &program.name)?;
    let own = program.routines.first();
    if own.is_none_or(|own| !own.name.is_empty()) {
        let name = own.map(|own| own.name.as_str()).unwrap_or_default();
        let why = "it is there and has no name";
        return Err(wrong_name(
            "the program's own code, the first routine,",
            name,
            why,
        ));
    }
    program.block.map_or(Ok(()), block)?;
    limit("memories", program.memories.len(), MAX_DECLARATIONS)?;
    limit("parameters", program.parameters.len(), MAX_DECLARATIONS)?;
    limit("routines", program.routines.len(), MAX_DECLARATIONS)?;
    limit("instructions", program.len(), MAX_INSTRUCTIONS)?;
    let memories = program.memories.iter().map(|memory| memory.name.as_str());
    let parameters = program.parameters.iter().map(|parameter| parameter.name.as_str());
    unique("a memory or parameter", memories.chain(parameters))?;
    program.memories.iter().try_for_each(memory)?;
    program.parameters.iter().try_for_each(parameter)?;
    let shared = program.memories.iter().map(|memory| match memory.kind {
        MemoryKind::Shared { len } => u64::from(len) * u64::from(memory.element.size()),
        _ => 0,
    });
    limit(
        "bytes of shared memory",
        shared.sum::<u64>() as usize,
        perpetua_ir::verify::MAX_SHARED_BYTES as usize,
    )?;
    let routines = program.routines.iter().map(|routine| routine.name.as_str());
    unique("a routine", routines.skip(1))?;
    for routine in &program.routines {
        limit("labels", routine.labels.len(), MAX_DECLARATIONS)?;
        unique("a label", routine.labels.iter().map(|label| label.name.as_str()))?;
        let end = routine.code.len();
        if let Some(label) = routine.labels.iter().find(|label| label.at as usize > end) {
            return Err(Fault::Limit {
                what: "instruction of a label",
                found: label.at.into(),
                limit: end as u64,
            });
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

fn limit(what: &'static str, found: usize, most: usize) -> Result {
    match found <= most {
        true => Ok(()),
        false => Err(Fault::Limit {
            what,
            found: found as u64,
            limit: most as u64,
        }),
    }
}
