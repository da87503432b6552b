//! Pools in kernels: blocks are taken, given back and found (`element` reads and writes them). `crate::pool` has the layout, and the reason why
//! blocks are disjoint.

use perpetua_ir::ir::{
    AtomicOp, Base, Effect, FaultKind, Inst, LocalId, MemOrder, Op, Place, Scalar, Scope, Sync, Type,
    TypeError, Value,
};
use perpetua_ir::ops::BinaryOp::{
    Add, And, Div, Eq, Ge, Gt, Le, Lt, Max, Min, Mul, Ne, Or, Rem, Shl, Shr, Sub, Xor,
};
use perpetua_ir::ops::UnaryOp;

use super::emitter::{Emitter, Result};
use crate::instruction::Special;
use crate::pool::{
    ADDED_UNITS, BUSY, BYTES, FIRST, FREED, IN_USE, MAX_ROWS, MIX, ROW, ROWS, SECRET, SIZE, SPREAD, STATE,
    STEP_SHIFT, TAG_MASK, TAG_SHIFT, UNIT, UNIT_WORDS, UNITS,
};

/// A block of a pool, as an access needs it.
pub(super) struct Block {
    pub(super) first: Value,
    pub(super) bytes: Value,
}

impl Emitter<'_> {
    pub(super) fn table(&self, pool: u16) -> Result<Base> {
        let table = self.tables.get(&pool).copied();
        table.ok_or_else(|| TypeError::Invalid("the program has no such pool".into()))
    }

    // Where a word of a row lies, `at` being the row's first.
    fn word(&mut self, table: Base, at: Value, word: u32) -> Result<Place> {
        let word = self.k.u32(word);
        let at = self.k.binary(Add, at, word)?;
        Ok(Place::element(table, at))
    }

    // An order as the device has it.
    fn sync(&self, order: MemOrder) -> Sync {
        match self.is_ordered {
            true => Sync {
                order,
                scope: Scope::Device,
            },
            false => Sync::RELAXED,
        }
    }

    pub(super) fn look(&mut self, place: Place) -> Result<Value> {
        self.k.op(Op::Load(place, Some(Sync::RELAXED)))
    }

    fn put(&mut self, place: Place, value: Value) -> Result {
        self.k.effect(Effect::Store(place, value, Some(Sync::RELAXED)))
    }

    // Release: pairs with the Acquire in `pool_block`.
    fn publish(&mut self, state: Place, handle: Value) -> Result {
        let sync = self.sync(MemOrder::Release);
        self.k.effect(Effect::Store(state, handle, Some(sync)))
    }

    pub(super) fn rmw(&mut self, op: AtomicOp, place: Place, value: Value) -> Result<Value> {
        self.k.op(Op::Atomic(op, place, value, Sync::RELAXED))
    }

    fn exchange(&mut self, place: Place, expected: Value, new: Value, order: MemOrder) -> Result<Value> {
        let sync = self.sync(order);
        self.k.op(Op::CompareExchange {
            place,
            expected,
            new,
            sync,
        })
    }

    // A row's first tag, and the odd step from one of its tags to the next: of its number and the pool's secret.
    fn keys(&mut self, table: Base, number: Value) -> Result<(Value, Value)> {
        let secret = Place::element(table, self.k.u32(SECRET));
        let secret = self.look(secret)?;
        let spread = self.k.u32(SPREAD);
        let spread = self.k.binary(Mul, number, spread)?;
        let mut mixed = self.k.binary(Xor, secret, spread)?;
        for (shift, factor) in MIX {
            let shift = self.k.u32(shift);
            let shifted = self.k.binary(Shr, mixed, shift)?;
            mixed = self.k.binary(Xor, mixed, shifted)?;
            if let Some(factor) = factor {
                let factor = self.k.u32(factor);
                mixed = self.k.binary(Mul, mixed, factor)?;
            }
        }
        let [mask, shift, one] = [TAG_MASK, STEP_SHIFT, 1].map(|n| self.k.u32(n));
        let first = self.k.binary(And, mixed, mask)?;
        let step = self.k.binary(Shr, mixed, shift)?;
        Ok((first, self.k.binary(Or, step, one)?))
    }

    fn handle(&mut self, number: Value, tag: Value) -> Result<Value> {
        let [shift, in_use] = [TAG_SHIFT, IN_USE].map(|n| self.k.u32(n));
        let tag = self.k.binary(Shl, tag, shift)?;
        let handle = self.k.binary(Or, tag, number)?;
        self.k.binary(Or, handle, in_use)
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

    pub(super) fn fault_when(&mut self, condition: Value, kind: FaultKind, operands: Vec<Value>) -> Result {
        self.when(condition, |emitter| {
            emitter.k.effect(Effect::Fault(kind, "span".into(), operands))
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
        let lane = self.special(Special::GlobalId, Scalar::U32)?;
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
            let [size, first] = [SIZE, FIRST].map(|word| emitter.word(table, at, word));
            let (size, first) = (emitter.look(size?)?, emitter.look(first?)?);
            // Not more than twice what is asked for. Words that have not arrived are 0.
            let fits = emitter.k.binary(Ge, size, units)?;
            let over = emitter.k.binary(Sub, size, units)?;
            let near = emitter.k.binary(Le, over, units)?;
            let fits = emitter.k.binary(And, fits, near)?;
            let zero = emitter.k.u32(0);
            let is_there = emitter.k.binary(Ne, first, zero)?;
            let fits = emitter.k.binary(And, fits, is_there)?;
            emitter.when(fits, |emitter| {
                let busy = emitter.k.u32(BUSY);
                // Paid for before the row is taken: a lane whose budget ends then would keep it for ever.
                emitter.charge_value(units, false)?;
                // Acquire: pairs with the Release in `pool_free`.
                let found = emitter.exchange(state.clone(), seen, busy, MemOrder::AcqRel)?;
                let mine = emitter.k.binary(Eq, found, seen)?;
                emitter.when(mine, |emitter| {
                    let one = emitter.k.u32(1);
                    let freed = Place::element(table, emitter.k.u32(FREED));
                    emitter.rmw(AtomicOp::Sub, freed, one)?;
                    let size = emitter.word(table, at, BYTES)?;
                    emitter.put(size, bytes)?;
                    let first = emitter.k.binary(Sub, first, one)?;
                    emitter.zero_units(words, first, units)?;
                    let (first_tag, step) = emitter.keys(table, number)?;
                    let [shift, mask] = [TAG_SHIFT, TAG_MASK].map(|n| emitter.k.u32(n));
                    let tag = emitter.k.binary(Shr, seen, shift)?;
                    let count = emitter.k.binary(Xor, tag, first_tag)?;
                    let count = emitter.k.binary(Add, count, step)?;
                    let count = emitter.k.binary(And, count, mask)?;
                    let tag = emitter.k.binary(Xor, count, first_tag)?;
                    let taken = emitter.handle(number, tag)?;
                    emitter.publish(state, taken)?;
                    emitter.k.store(Place::local(handle), taken)
                })
            })
        })
    }

    fn zero_units(&mut self, words: Base, first: Value, units: Value) -> Result {
        let end = self.k.binary(Add, first, units)?;
        let next = self.k.local("next", Type::U32);
        self.k.store(Place::local(next), first)?;
        let body = self.inner(|emitter| {
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
        })?;
        self.k.push(Inst::Loop(body));
        Ok(())
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
                    let old = emitter.rmw(AtomicOp::Add, counter.clone(), units)?;
                    let room = emitter.room(old, units, all)?;
                    let full = emitter.k.unary(UnaryOp::Not, room)?;
                    emitter.when(room, |emitter| emitter.k.store(Place::local(first), old))?;
                    // This addition was the one that went beyond the end.
                    let before = emitter.k.binary(Lt, old, all)?;
                    let beyond = emitter.k.binary(And, before, full)?;
                    emitter.when(beyond, |emitter| emitter.put(counter, old))
                })
            })?;
            small
        };
        let large = self.k.unary(UnaryOp::Not, small)?;
        self.when(large, |emitter| {
            emitter.turns(|emitter| {
                let seen = emitter.look(counter.clone())?;
                let room = emitter.room(seen, units, all)?;
                let full = emitter.k.unary(UnaryOp::Not, room)?;
                emitter.leave_when(full)?;
                let end = emitter.k.binary(Add, seen, units)?;
                let found = emitter.exchange(counter, seen, end, MemOrder::Relaxed)?;
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
                let [row, one] = [ROW, 1].map(|n| emitter.k.u32(n));
                let number = emitter.k.binary(Add, old, one)?;
                let at = emitter.k.binary(Mul, number, row)?;
                let first = emitter.k.binary(Add, first, one)?;
                for (word, value) in [(FIRST, first), (SIZE, units), (BYTES, bytes)] {
                    let place = emitter.word(table, at, word)?;
                    emitter.put(place, value)?;
                }
                let (tag, _) = emitter.keys(table, number)?;
                let made = emitter.handle(number, tag)?;
                let state = emitter.word(table, at, STATE)?;
                emitter.publish(state, made)?;
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
        // Release: pairs with the Acquire in `try_freed`.
        let found = self.exchange(Place::element(table, at), handle, free, MemOrder::AcqRel)?;
        let bad = self.k.binary(Ne, found, handle)?;
        self.fault_when(bad, FaultKind::NoPoolBlock, vec![handle])?;
        let one = self.k.u32(1);
        let freed = Place::element(table, self.k.u32(FREED));
        self.rmw(AtomicOp::Add, freed, one).map(|_| ())
    }

    pub(super) fn pool_block(&mut self, table: Base, handle: Value) -> Result<Block> {
        let at = self.row(table, handle)?;
        // Acquire: pairs with the Release in `publish`.
        let acquire = self.sync(MemOrder::Acquire);
        let state = self.k.op(Op::Load(Place::element(table, at), Some(acquire)))?;
        let [first, bytes] = [FIRST, BYTES].map(|word| self.word(table, at, word));
        let (first, bytes) = (self.look(first?)?, self.look(bytes?)?);
        let [zero, one] = [0, 1].map(|n| self.k.u32(n));
        let bad = self.k.binary(Ne, state, handle)?;
        let missing = self.k.binary(Eq, first, zero)?;
        let bad = self.k.binary(Or, bad, missing)?;
        self.fault_when(bad, FaultKind::NoPoolBlock, vec![handle])?;
        Ok(Block {
            first: self.k.binary(Sub, first, one)?,
            bytes,
        })
    }
}
