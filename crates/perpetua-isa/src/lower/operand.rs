//! Operands: values, and places in memory.

use perpetua_ir::ir::{Base, KernelBuilder, Place, Scalar, TypeError, Value};
use perpetua_ir::ops::BinaryOp;

use super::emitter::{Emitter, Result};
use super::values;
use crate::instruction::{Index, Operand, Place as At};
use crate::program::MemoryKind;
use crate::verify::{Holds, index_type, predicate_slot};

impl Emitter<'_> {
    /// A value that an instruction reads.
    pub(super) fn operand(&mut self, operand: &Operand, ty: Scalar) -> Result<Value> {
        match *operand {
            Operand::Register(r) => self.slot(usize::from(r), ty),
            Operand::Predicate(p) => self.slot(predicate_slot(p), ty),
            Operand::Immediate(bits) => Ok(self.k.constant(ty, bits)),
            Operand::Special(special) => self.special(special, ty),
            Operand::Parameter(i) => self.parameter(i),
            Operand::Length(memory) => {
                let fixed = match self
                    .verified
                    .program()
                    .memories
                    .get(usize::from(memory))
                    .map(|m| &m.kind)
                {
                    Some(MemoryKind::Shared { len }) => Some(u64::from(*len)),
                    Some(MemoryKind::Constants(data)) => Some(data.len() as u64),
                    _ => None,
                };
                let base = self.base(memory)?;
                values::length(&mut self.k, base, fixed, ty)
            }
            Operand::Place(_)
            | Operand::Label(_)
            | Operand::Routine(_)
            | Operand::Count(_)
            | Operand::Pool(_) => Err(TypeError::Invalid("an operand that is no value".into())),
        }
    }

    fn parameter(&self, i: u16) -> Result<Value> {
        let value = self.parameters.get(usize::from(i)).copied();
        value.ok_or_else(|| TypeError::Invalid("the program has no such parameter".into()))
    }

    pub(super) fn base(&self, memory: u16) -> Result<Base> {
        let base = self.bases.get(usize::from(memory)).copied();
        base.ok_or_else(|| TypeError::Invalid("the program has no such memory".into()))
    }

    /// Where an element lies; `holds`: what registers hold.
    pub(super) fn address(&mut self, place: &At, holds: &[Holds]) -> Result<Address> {
        let base = self.base(place.memory)?;
        let parts = [place.first, place.second];
        let named = parts
            .into_iter()
            .flatten()
            .find_map(|part| index_type(self.verified.program(), part, holds));
        let ty = named.unwrap_or(self.wide);
        let mut index = None;
        for part in parts.into_iter().flatten() {
            let value = self.index(part, ty)?;
            index = Some(match index {
                None => value,
                Some(first) => self.k.binary(BinaryOp::Add, first, value)?,
            });
        }
        let ty = match index {
            None if place.offset > i64::from(u32::MAX) => Scalar::U64,
            _ => ty,
        };
        let offset = |k: &mut KernelBuilder| {
            let bits = place.offset as u64 & (u64::MAX >> (64 - ty.bits()));
            k.constant(ty, bits)
        };
        let index = match index {
            None => offset(&mut self.k),
            Some(index) if place.offset == 0 => index,
            Some(index) => {
                let offset = offset(&mut self.k);
                self.k.binary(BinaryOp::Add, index, offset)?
            }
        };
        Ok(Address { base, index, ty })
    }

    /// A varying part of an index, at the index's type.
    pub(super) fn index(&mut self, part: Index, ty: Scalar) -> Result<Value> {
        match part {
            Index::Register(r) => self.slot(usize::from(r), ty),
            Index::Parameter(i) => self.parameter(i),
            Index::Special(special) => {
                let wide = if ty.size() == 8 { Scalar::U64 } else { Scalar::U32 };
                let value = self.special(special, wide)?;
                match wide == ty {
                    true => Ok(value),
                    false => self.k.cast(ty, value),
                }
            }
        }
    }

    /// The place so many elements further on.
    pub(super) fn further(&mut self, at: &Address, elements: Value) -> Result<Place> {
        let elements = match at.ty {
            Scalar::U32 => elements,
            ty => self.k.cast(ty, elements)?,
        };
        let index = self.k.binary(BinaryOp::Add, at.index, elements)?;
        Ok(Place::element(at.base, index))
    }
}

/// An element's base and index, with the index's type.
pub(super) struct Address {
    base: Base,
    index: Value,
    ty: Scalar,
}

impl Address {
    pub(super) fn place(&self) -> Place {
        Place::element(self.base, self.index)
    }
}
