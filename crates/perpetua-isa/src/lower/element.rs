//! Elements of pools' blocks: read and written. Storage is words, in which narrow elements share one and wide ones have two.

use perpetua_ir::ir::{AtomicOp, Base, FaultKind, Op, Place, Scalar, TypeError, Value};
use perpetua_ir::ops::BinaryOp::{Add, And, Ge, Mul, Or, SaturatingAdd, Shl, Shr, Xor};

use super::emitter::{Emitter, Result};
use crate::instruction::Place as At;
use crate::pool::UNIT_WORDS;

impl Emitter<'_> {
    // The word in which an element begins, and the bit in it.
    fn pool_place(&mut self, at: &At, ty: Scalar) -> Result<(Base, Value, Value)> {
        let (words, table) = (self.base(at.memory)?, self.table(at.memory)?);
        let missing = || TypeError::Invalid("an access to a pool without a handle".into());
        let handle = self.index(at.first.ok_or_else(missing)?, Scalar::U32)?;
        let offset = self.k.u32(at.offset as u32);
        let index = match at.second {
            None => offset,
            Some(part) => {
                let part = self.index(part, Scalar::U32)?;
                // Where the sum would wrap it is the largest index: no block has that many elements.
                self.k.binary(SaturatingAdd, part, offset)?
            }
        };
        let block = self.pool_block(table, handle)?;
        let shift = self.k.u32(ty.size().trailing_zeros());
        let len = self.k.binary(Shr, block.bytes, shift)?;
        let outside = self.k.binary(Ge, index, len)?;
        self.fault_when(outside, FaultKind::IndexOutOfBounds, vec![index, len])?;
        let scale = self.k.u32(UNIT_WORDS);
        let start = self.k.binary(Mul, block.first, scale)?;
        // Elements of a word: words lie so many bits away.
        let (word, bit) = match ty.size() {
            8 => {
                let two = self.k.u32(2);
                (self.k.binary(Mul, index, two)?, self.k.u32(0))
            }
            4 => (index, self.k.u32(0)),
            size => {
                let (in_word, bits) = (4 / size, 8 * size);
                let [shift, mask, bits] =
                    [in_word.trailing_zeros(), in_word - 1, bits].map(|n| self.k.u32(n));
                let place = self.k.binary(And, index, mask)?;
                (
                    self.k.binary(Shr, index, shift)?,
                    self.k.binary(Mul, place, bits)?,
                )
            }
        };
        Ok((words, self.k.binary(Add, start, word)?, bit))
    }

    /// An element of a block.
    pub(super) fn pool_load(&mut self, at: &At, ty: Scalar) -> Result<Value> {
        let (words, word, bit) = self.pool_place(at, ty)?;
        let low = self.k.load(Place::element(words, word))?;
        let bits = match ty.size() {
            8 => {
                let one = self.k.u32(1);
                let next = self.k.binary(Add, word, one)?;
                let high = self.k.load(Place::element(words, next))?;
                let [low, high] = [self.k.cast(Scalar::U64, low)?, self.k.cast(Scalar::U64, high)?];
                let width = self.k.u32(32);
                let high = self.k.binary(Shl, high, width)?;
                self.k.binary(Or, low, high)?
            }
            4 => low,
            _ => {
                let bits = self.k.binary(Shr, low, bit)?;
                self.k.cast(ty.to_unsigned(), bits)?
            }
        };
        match ty == ty.to_unsigned() {
            true => Ok(bits),
            false => self.k.op(Op::Bitcast(ty, bits)),
        }
    }

    /// Replaces an element of a block.
    pub(super) fn pool_store(&mut self, at: &At, ty: Scalar, value: Value) -> Result {
        let (words, word, bit) = self.pool_place(at, ty)?;
        let bits = match ty == ty.to_unsigned() {
            true => value,
            false => self.k.op(Op::Bitcast(ty.to_unsigned(), value))?,
        };
        match ty.size() {
            8 => {
                let [width, one] = [32, 1].map(|n| self.k.u32(n));
                let high = self.k.binary(Shr, bits, width)?;
                let low = self.k.cast(Scalar::U32, bits)?;
                let high = self.k.cast(Scalar::U32, high)?;
                let next = self.k.binary(Add, word, one)?;
                self.k.store(Place::element(words, word), low)?;
                self.k.store(Place::element(words, next), high)
            }
            4 => self.k.store(Place::element(words, word), bits),
            size => {
                // Other lanes may store to the word's other elements: what changes is changed in one step.
                let bits = self.k.cast(Scalar::U32, bits)?;
                let bits = self.k.binary(Shl, bits, bit)?;
                let mask = self.k.u32((1 << (8 * size)) - 1);
                let mask = self.k.binary(Shl, mask, bit)?;
                let place = Place::element(words, word);
                let old = self.look(place.clone())?;
                let old = self.k.binary(And, old, mask)?;
                let change = self.k.binary(Xor, old, bits)?;
                self.rmw(AtomicOp::Xor, place, change).map(|_| ())
            }
        }
    }
}
