//! What an instruction is called: opcode and types. Knows no operands.

use perpetua_ir::ir::Scalar;
use perpetua_ir::nearest::nearest;

use super::ptx;
use crate::hologram::hint;
use crate::opcode::Opcode;

/// The types, for messages.
pub(super) const TYPES: &str = "i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64";

/// A type's name in the text form.
pub(crate) fn scalar(name: &str) -> Option<Scalar> {
    match name {
        "pred" => Some(Scalar::Bool),
        "bool" => None,
        _ => Scalar::from_name(name),
    }
}

/// Opcode and types of a mnemonic.
pub(super) fn mnemonic(word: &str) -> Option<(Opcode, Option<Scalar>, Option<Scalar>)> {
    let word = word.to_ascii_lowercase();
    let named = |name: &str| Opcode::from_name(name).or_else(|| Opcode::from_name(&name.replace('.', "_")));
    if let Some(opcode) = named(&word) {
        return Some((opcode, None, None));
    }
    let (rest, last) = word.rsplit_once('.')?;
    let last = scalar(last)?;
    if let Some(opcode) = named(rest) {
        return Some((opcode, Some(last), None));
    }
    let (rest, first) = rest.rsplit_once('.')?;
    let first = scalar(first)?;
    Some((named(rest)?, Some(first), Some(last)))
}

/// What somebody may have meant who wrote what is not an instruction.
pub(super) fn meant(word: &str) -> Option<String> {
    let stem = word.split('.').next().unwrap_or(word);
    let known = || hint(stem).map(String::from).or_else(|| ptx::hint(word));
    let found = Opcode::from_name(&stem.to_ascii_lowercase());
    let is_typed = found.is_some_and(|opcode| opcode.row().types.is_some());
    known().or_else(|| match (is_typed, stem == word) {
        (true, false) => Some(format!("`{stem}` is one, and behind it stands a type: {TYPES}")),
        _ => nearest(stem, Opcode::all().map(|opcode| opcode.row().name.as_str())),
    })
}
