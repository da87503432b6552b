//! Pools in kernels: blocks are taken, given back, read and written. `crate::pool` has the layout, and the reason why blocks are disjoint.

use perpetua_ir::ir::{
    AtomicOp, Base, Effect, FaultKind, Inst, LocalId, Op, Place, Scalar, Sync, Type, TypeError, Value,
};
use perpetua_ir::ops::BinaryOp::{
    Add, And, Div, Eq, Ge, Gt, Le, Lt, Max, Min, Mul, Ne, Or, Rem, Shl, Shr, Sub, Xor,
};

use super::emitter::{Emitter, Result};
use super::values;
use crate::instruction::{Place as At, Special};
use crate::pool::{
    ADDED_UNITS, BYTES, FIRST, FREED, GENERATION_SHIFT, IN_USE, LAST_GENERATION, MAX_ROWS, ROW, ROWS, SIZE,
    STATE, UNIT, UNIT_WORDS, UNITS,
};

/// A block of a pool, as an access needs it.
struct Block {
    first: Value,
    bytes: Value,
}

impl Emitter<'_> {
    fn table(&self, pool: u16) -> Result<Base> {
        let table = self.tables.get(&pool).copied();
        table.ok_or_else(|| TypeError::Invalid("the program has no such pool".into()))
    }

    // Where a word of a row lies, `at` being the row's first.
    fn word(&mut self, table: Base, at: Value, word: u32) -> Result<Place> {
        let word = self.k.u32(word);
        let at = self.k.binary(Add, at, word)?;
        Ok(Place::element(table, at))
    }

    fn look(&mut self, place: Place) -> Result<Value> {
        self.k.op(Op::Load(place, Some(Sync::RELAXED)))
    }

    fn put(&mut self, place: Place, value: Value) -> Result {
        self.k.effect(Effect::Store(place, value, Some(Sync::RELAXED)))
    }

    fn rmw(&mut self, op: AtomicOp, place: Place, value: Value) -> Result<Value> {
        self.k.op(Op::Atomic(op, place, value, Sync::RELAXED))
    }

    fn exchange(&mut self, place: Place, expected: Value, new: Value) -> Result<Value> {
        self.k.op(Op::CompareExchange {
            place,
            expected,
            new,
            sync: Sync::RELAXED,
        })
    }

    fn when(&mut self, condition: Value, then: impl FnOnce(&mut Self) -> Result) -> Result {
        let then = self.inner(then)?;
        self.k
            .push(Inst::If(condition, then, perpetua_ir::ir::Block::default()));
        Ok(())
    }

    // A loop that pays for its turns where there is a budget.
    fn turns(&mut self, body: impl FnOnce(&mut Self) -> Result) -> Result {
        let body = self.inner(|emitter| {
            emitter.charge(1, false)?;
            body(emitter)
        })?;
        self.k.push(Inst::Loop(body));
        Ok(())
    }

    fn leave_when(&mut self, condition: Value) -> Result {
        self.when(condition, |emitter| {
            emitter.k.break_(0);
            Ok(())
        })
    }

    fn variable(&mut self, name: &str, value: u32) -> Result<LocalId> {
        let local = self.k.local(name, Type::U32);
        let value = self.k.u32(value);
        self.k.store(Place::local(local), value)?;
        Ok(local)
    }

    fn get(&mut self, local: LocalId) -> Result<Value> {
        self.k.load(Place::local(local))
    }

    fn fault_when(&mut self, condition: Value, kind: FaultKind, operands: Vec<Value>) -> Result {
        self.when(condition, |emitter| {
            emitter.k.effect(Effect::Fault(kind, operands))
        })
    }

    /// Takes a block; gives its handle.
    pub(super) fn pool_alloc(&mut self, pool: u16, bytes: Value) -> Result<Value> {
        let (words, table) = (self.base(pool)?, self.table(pool)?);
        let handle = self.variable("handle", 0)?;
        let [zero, one, last, four] = [0, 1, UNIT - 1, UNIT.trailing_zeros()].map(|n| self.k.u32(n));
        // Units, rounded up without overflow; one at least.
        let whole = self.k.binary(Shr, bytes, four)?;
        let rest = self.k.binary(And, bytes, last)?;
        let rest = self.k.binary(Min, rest, one)?;
        let units = self.k.binary(Add, whole, rest)?;
        let units = self.k.binary(Max, units, one)?;
        let freed = Place::element(table, self.k.u32(FREED));
        let any = self.look(freed)?;
        let any = self.k.binary(Ne, any, zero)?;
        self.when(any, |emitter| {
            emitter.take_freed(words, table, handle, units, bytes)
        })?;
        let none = self.get(handle)?;
        let none = self.k.binary(Eq, none, zero)?;
        self.when(none, |emitter| {
            emitter.take_new(words, table, handle, units, bytes)
        })?;
        let got = self.get(handle)?;
        let none = self.k.binary(Eq, got, zero)?;
        self.fault_when(none, FaultKind::PoolExhausted, vec![bytes])?;
        Ok(got)
    }

    // Looks once through the rows for a block that was given back and has the right size.
    fn take_freed(
        &mut self,
        words: Base,
        table: Base,
        handle: LocalId,
        units: Value,
        bytes: Value,
    ) -> Result {
        let rows = self.rows_in_use(table)?;
        let turn = self.variable("turn", 0)?;
        let row = self.k.local("row", Type::U32);
        // Lanes begin at different rows.
        let lane = values::special(&mut self.k, Special::GlobalId, Scalar::U32)?;
        let one = self.k.u32(1);
        let least = self.k.binary(Max, rows, one)?;
        let begin = self.k.binary(Rem, lane, least)?;
        self.k.store(Place::local(row), begin)?;
        self.turns(|emitter| {
            let turns = emitter.get(turn)?;
            let done = emitter.k.binary(Ge, turns, rows)?;
            emitter.leave_when(done)?;
            let one = emitter.k.u32(1);
            let before = emitter.get(row)?;
            let number = emitter.k.binary(Add, before, one)?;
            emitter.try_freed(words, table, handle, number, units, bytes)?;
            let got = emitter.get(handle)?;
            let zero = emitter.k.u32(0);
            let got = emitter.k.binary(Ne, got, zero)?;
            emitter.leave_when(got)?;
            let next = emitter.k.binary(Rem, number, rows)?;
            emitter.k.store(Place::local(row), next)?;
            let turns = emitter.k.binary(Add, turns, one)?;
            emitter.k.store(Place::local(turn), turns)
        })
    }

    // How many rows have been in use; more may have been asked for.
    fn rows_in_use(&mut self, table: Base) -> Result<Value> {
        let most = self.most_rows(table)?;
        let rows = Place::element(table, self.k.u32(ROWS));
        let rows = self.look(rows)?;
        self.k.binary(Min, rows, most)
    }

    fn most_rows(&mut self, table: Base) -> Result<Value> {
        let len = self.k.op(Op::Len(table, Scalar::U32))?;
        let [row, one] = [ROW, 1].map(|n| self.k.u32(n));
        let rows = self.k.binary(Div, len, row)?;
        self.k.binary(Sub, rows, one)
    }

    fn try_freed(
        &mut self,
        words: Base,
        table: Base,
        handle: LocalId,
        number: Value,
        units: Value,
        bytes: Value,
    ) -> Result {
        let [row, zero, in_use] = [ROW, 0, IN_USE].map(|n| self.k.u32(n));
        let at = self.k.binary(Mul, number, row)?;
        let state = Place::element(table, at);
        let seen = self.look(state.clone())?;
        let was = self.k.binary(Ne, seen, zero)?;
        let is_free = self.k.binary(Lt, seen, in_use)?;
        let is_free = self.k.binary(And, was, is_free)?;
        self.when(is_free, |emitter| {
            let size = emitter.word(table, at, SIZE)?;
            let size = emitter.look(size)?;
            // Not more than twice what is asked for.
            let fits = emitter.k.binary(Ge, size, units)?;
            let over = emitter.k.binary(Sub, size, units)?;
            let near = emitter.k.binary(Le, over, units)?;
            let fits = emitter.k.binary(And, fits, near)?;
            emitter.when(fits, |emitter| {
                let [shift, last, one] = [GENERATION_SHIFT, LAST_GENERATION, 1].map(|n| emitter.k.u32(n));
                let generation = emitter.k.binary(Shr, seen, shift)?;
                let generation = emitter.k.binary(Rem, generation, last)?;
                let generation = emitter.k.binary(Add, generation, one)?;
                let generation = emitter.k.binary(Shl, generation, shift)?;
                let taken = emitter.k.binary(Or, generation, number)?;
                let taken = emitter.k.binary(Or, taken, in_use)?;
                let found = emitter.exchange(state, seen, taken)?;
                let mine = emitter.k.binary(Eq, found, seen)?;
                emitter.when(mine, |emitter| {
                    let one = emitter.k.u32(1);
                    let freed = Place::element(table, emitter.k.u32(FREED));
                    emitter.rmw(AtomicOp::Sub, freed, one)?;
                    let size = emitter.word(table, at, BYTES)?;
                    emitter.put(size, bytes)?;
                    let first = emitter.word(table, at, FIRST)?;
                    let first = emitter.look(first)?;
                    emitter.zero_units(words, first, units)?;
                    emitter.k.store(Place::local(handle), taken)
                })
            })
        })
    }

    fn zero_units(&mut self, words: Base, first: Value, units: Value) -> Result {
        let end = self.k.binary(Add, first, units)?;
        let next = self.k.local("next", Type::U32);
        self.k.store(Place::local(next), first)?;
        self.turns(|emitter| {
            let unit = emitter.get(next)?;
            let done = emitter.k.binary(Ge, unit, end)?;
            emitter.leave_when(done)?;
            let [zero, one, scale] = [0, 1, UNIT_WORDS].map(|n| emitter.k.u32(n));
            let start = emitter.k.binary(Mul, unit, scale)?;
            for i in 0..UNIT_WORDS {
                let i = emitter.k.u32(i);
                let at = emitter.k.binary(Add, start, i)?;
                emitter.k.store(Place::element(words, at), zero)?;
            }
            let unit = emitter.k.binary(Add, unit, one)?;
            emitter.k.store(Place::local(next), unit)
        })
    }

    // Storage that no block has had, and a row.
    fn take_new(&mut self, words: Base, table: Base, handle: LocalId, units: Value, bytes: Value) -> Result {
        const NONE: u32 = u32::MAX;
        let len = self.k.op(Op::Len(words, Scalar::U32))?;
        let scale = self.k.u32(UNIT_WORDS);
        let all = self.k.binary(Div, len, scale)?;
        let first = self.variable("first", NONE)?;
        let counter = Place::element(table, self.k.u32(UNITS));
        let added = self.k.u32(ADDED_UNITS);
        let small = self.k.binary(Le, units, added)?;
        let small = {
            let counter = counter.clone();
            self.when(small, move |emitter| {
                let seen = emitter.look(counter.clone())?;
                let room = emitter.room(seen, units, all)?;
                emitter.when(room, |emitter| {
                    let old = emitter.rmw(AtomicOp::Add, counter, units)?;
                    let room = emitter.room(old, units, all)?;
                    emitter.when(room, |emitter| emitter.k.store(Place::local(first), old))
                })
            })?;
            small
        };
        let large = self.k.unary(perpetua_ir::ops::UnaryOp::Not, small)?;
        self.when(large, |emitter| {
            emitter.turns(|emitter| {
                let seen = emitter.look(counter.clone())?;
                let room = emitter.room(seen, units, all)?;
                let full = emitter.k.unary(perpetua_ir::ops::UnaryOp::Not, room)?;
                emitter.leave_when(full)?;
                let end = emitter.k.binary(Add, seen, units)?;
                let found = emitter.exchange(counter, seen, end)?;
                let mine = emitter.k.binary(Eq, found, seen)?;
                emitter.when(mine, |emitter| {
                    emitter.k.store(Place::local(first), seen)?;
                    emitter.k.break_(0);
                    Ok(())
                })
            })
        })?;
        let got = self.get(first)?;
        let none = self.k.u32(NONE);
        let stored = self.k.binary(Ne, got, none)?;
        self.when(stored, |emitter| {
            emitter.new_row(table, handle, got, units, bytes)
        })
    }

    // Whether a run of units fits behind so many.
    fn room(&mut self, used: Value, units: Value, all: Value) -> Result<Value> {
        let used = self.k.binary(Min, used, all)?;
        let left = self.k.binary(Sub, all, used)?;
        self.k.binary(Le, units, left)
    }

    fn new_row(&mut self, table: Base, handle: LocalId, first: Value, units: Value, bytes: Value) -> Result {
        let most = self.most_rows(table)?;
        let one = self.k.u32(1);
        let counter = Place::element(table, self.k.u32(ROWS));
        let seen = self.look(counter.clone())?;
        let room = self.k.binary(Lt, seen, most)?;
        self.when(room, |emitter| {
            let old = emitter.rmw(AtomicOp::Add, counter, one)?;
            let mine = emitter.k.binary(Lt, old, most)?;
            emitter.when(mine, |emitter| {
                let [row, one, new] = [ROW, 1, IN_USE | 1 << GENERATION_SHIFT].map(|n| emitter.k.u32(n));
                let number = emitter.k.binary(Add, old, one)?;
                let at = emitter.k.binary(Mul, number, row)?;
                for (word, value) in [(FIRST, first), (SIZE, units), (BYTES, bytes)] {
                    let place = emitter.word(table, at, word)?;
                    emitter.put(place, value)?;
                }
                let made = emitter.k.binary(Or, number, new)?;
                let state = emitter.word(table, at, STATE)?;
                emitter.put(state, made)?;
                emitter.k.store(Place::local(handle), made)
            })
        })
    }

    // The first word of a handle's row; a handle that names none is a fault.
    fn row(&mut self, table: Base, handle: Value) -> Result<Value> {
        let rows = self.rows_in_use(table)?;
        let [mask, row, in_use, zero] = [MAX_ROWS - 1, ROW, IN_USE, 0].map(|n| self.k.u32(n));
        let number = self.k.binary(And, handle, mask)?;
        let none = self.k.binary(Eq, number, zero)?;
        let beyond = self.k.binary(Gt, number, rows)?;
        let unused = self.k.binary(Lt, handle, in_use)?;
        let bad = self.k.binary(Or, none, beyond)?;
        let bad = self.k.binary(Or, bad, unused)?;
        self.fault_when(bad, FaultKind::NoPoolBlock, vec![handle])?;
        self.k.binary(Mul, number, row)
    }

    /// Gives a block back.
    pub(super) fn pool_free(&mut self, pool: u16, handle: Value) -> Result {
        let table = self.table(pool)?;
        let at = self.row(table, handle)?;
        let unused = self.k.u32(!IN_USE);
        let free = self.k.binary(And, handle, unused)?;
        let found = self.exchange(Place::element(table, at), handle, free)?;
        let bad = self.k.binary(Ne, found, handle)?;
        self.fault_when(bad, FaultKind::NoPoolBlock, vec![handle])?;
        let one = self.k.u32(1);
        let freed = Place::element(table, self.k.u32(FREED));
        self.rmw(AtomicOp::Add, freed, one).map(|_| ())
    }

    fn pool_block(&mut self, table: Base, handle: Value) -> Result<Block> {
        let at = self.row(table, handle)?;
        let state = self.look(Place::element(table, at))?;
        let bad = self.k.binary(Ne, state, handle)?;
        self.fault_when(bad, FaultKind::NoPoolBlock, vec![handle])?;
        let first = self.word(table, at, FIRST)?;
        let bytes = self.word(table, at, BYTES)?;
        Ok(Block {
            first: self.look(first)?,
            bytes: self.look(bytes)?,
        })
    }

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
                self.k
                    .binary(perpetua_ir::ops::BinaryOp::SaturatingAdd, part, offset)?
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
