//! What a declaration by itself must be, for the assembler and the verifier.

use perpetua_ir::ir::Scalar;
use perpetua_ir::plain::plain;
use perpetua_ir::verify::{MAX_BLOCK_LANES, MAX_SHARED_BYTES};

use crate::fault::Fault;
use crate::names::is_reserved;
use crate::program::{Memory, MemoryKind, Parameter, is_name};

/// Most instructions of a program, and most when its calls are written out.
pub const MAX_INSTRUCTIONS: usize = 1 << 14;
/// Most memories, parameters, routines, and labels of a routine.
pub const MAX_DECLARATIONS: usize = 1 << 12;

type Result = std::result::Result<(), Fault>;

/// A name by itself.
pub(crate) fn name(what: &'static str, name: &str) -> Result {
    match is_name(name) {
        true => Ok(()),
        false => Err(wrong_name(
            what,
            name,
            "a name is made of ASCII letters, digits and `_`, no digit first, at most 255 of them",
        )),
    }
}

/// A name that another has.
pub(crate) fn taken(what: &'static str, name: &str) -> Fault {
    wrong_name(what, name, "that is the name of another")
}

/// Lanes of a block.
pub(crate) fn block(block: [u32; 3]) -> Result {
    if block.contains(&0) {
        return Err(empty("a block", "lane along each axis"));
    }
    let lanes = block
        .iter()
        .fold(1u64, |lanes, n| lanes.saturating_mul((*n).into()));
    limit("lanes of a block", lanes, MAX_BLOCK_LANES)
}

/// Memory of a block, of all declarations together.
pub(crate) fn shared(memories: &[Memory]) -> Result {
    let bytes = memories.iter().map(|memory| match memory.kind {
        MemoryKind::Shared { len } => u64::from(len) * u64::from(memory.element.size()),
        _ => 0,
    });
    limit("bytes of shared memory", bytes.sum(), MAX_SHARED_BYTES)
}

/// That there is no more of something than can be.
pub(crate) fn limit(what: &'static str, found: u64, limit: u64) -> Result {
    match found <= limit {
        true => Ok(()),
        false => Err(Fault::Limit { what, found, limit }),
    }
}

/// A parameter by itself.
pub(crate) fn parameter(parameter: &Parameter) -> Result {
    operand_name(&parameter.name)?;
    match parameter.ty {
        Scalar::Bool => Err(wrong_type(&parameter.name, "an integer or a float", "pred")),
        _ => Ok(()),
    }
}

/// A memory by itself.
pub(crate) fn memory(memory: &Memory) -> Result {
    operand_name(&memory.name)?;
    let element = memory.element;
    if element == Scalar::Bool {
        return Err(wrong_type(
            &memory.name,
            "elements that are integers or floats",
            "pred",
        ));
    }
    match &memory.kind {
        MemoryKind::Pool { .. } if element != Scalar::U32 => Err(wrong_type(
            &memory.name,
            "elements of u32, as a pool",
            element.name(),
        )),
        MemoryKind::Shared { len: 0 } => Err(empty(&format!("`{}`", memory.name), "element")),
        MemoryKind::Constants(data) if data.is_empty() => {
            Err(empty(&format!("`{}`", memory.name), "element"))
        }
        MemoryKind::Constants(data) if data.len() as u64 > MAX_SHARED_BYTES / u64::from(element.size()) => {
            limit(
                "bytes of a table of constants",
                data.len() as u64 * u64::from(element.size()),
                MAX_SHARED_BYTES,
            )
        }
        MemoryKind::Constants(data) => match data.iter().find(|bits| !fits(**bits, element)) {
            Some(bad) => {
                let expected = format!("elements of {} bits", element.bits());
                Err(wrong_type(&memory.name, &expected, &format!("{bad:#x}")))
            }
            None => Ok(()),
        },
        MemoryKind::Buffer { .. } | MemoryKind::Pool { .. } | MemoryKind::Shared { .. } => Ok(()),
    }
}

/// Whether bits of a constant are those of a value of the type.
pub(crate) fn fits(bits: u64, ty: Scalar) -> bool {
    match ty.bits() {
        64 => true,
        width => bits >> width == 0,
    }
}

// A name that stands where registers and constants do.
fn operand_name(text: &str) -> Result {
    let what = "a memory or parameter";
    name(what, text)?;
    match is_reserved(text) {
        true => Err(wrong_name(
            what,
            text,
            "that is a register, a predicate or a constant",
        )),
        false => Ok(()),
    }
}

/// A name that cannot be.
pub(crate) fn wrong_name(what: &'static str, name: &str, why: &'static str) -> Fault {
    Fault::Name {
        what,
        name: plain(&name.chars().take(64).collect::<String>()).into_owned(),
        why,
    }
}

fn wrong_type(name: &str, expected: &str, found: &str) -> Fault {
    Fault::Declared {
        name: name.into(),
        expected: expected.into(),
        found: found.into(),
    }
}

fn empty(what: &str, of: &'static str) -> Fault {
    Fault::Empty {
        what: what.into(),
        of,
    }
}
