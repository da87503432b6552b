//! Statements for an instruction, guarded or not.

use perpetua_ir::ir::{Base, Effect, Inst, Op, Place, Scalar, Sync, Type, Value};
use perpetua_ir::ops::{BinaryOp, DeviceOp, TernaryOp};

use super::emitter::{Emitter, Result, written_by};
use super::{reduce, values};
use crate::cost::ELEMENT;
use crate::instruction::{Guard, Instruction, Operand};
use crate::opcode::{Meaning, Slot, Space};
use crate::verify::{Holds, State, Where, predicate_slot};

impl Emitter<'_> {
    /// A block's instructions, without its exit.
    pub(super) fn block(&mut self, number: usize) -> Result {
        let block = self.flow_block(number)?;
        let verified = self.verified;
        let origins = verified.flow.origins.get(number).map_or(&[][..], Vec::as_slice);
        let mut state = State::new(&block.holds);
        for (i, (instruction, at)) in block.code.iter().zip(origins).enumerate() {
            self.at = (number, i);
            self.line(*at);
            match instruction.guard {
                None => self.instruction(instruction, state.holds())?,
                Some(guard) => self.guarded(guard, instruction, &state)?,
            }
            state.pass(instruction);
        }
        self.line(block.exit_at);
        Ok(())
    }

    /// What follows stands in the line of a block's first instruction.
    pub(super) fn line_of_block(&mut self, number: usize) -> Result {
        let first = self
            .verified
            .flow
            .origins
            .get(number)
            .and_then(|origins| origins.first());
        let at = match first {
            Some(at) => *at,
            None => self.flow_block(number)?.exit_at,
        };
        self.line(at);
        Ok(())
    }

    fn line(&mut self, (routine, i): Where) {
        let routine = self.verified.program().routines.get(routine);
        let line = routine.and_then(|routine| routine.lines.get(i)).copied();
        self.k.set_line(line.unwrap_or(i as u32 + 1));
    }

    fn guarded(&mut self, guard: Guard, instruction: &Instruction, state: &State) -> Result {
        let condition = self.guard(guard)?;
        let writes = written_by(instruction);
        // Where the guard does not act the register's variable stays what it is: so it has one, which holds its value by now.
        for (slot, ty) in &writes {
            self.keep(*slot, *ty);
        }
        // Nobody reads it before the opposite guard has written, too; but a variable is read only where every path has written it.
        for (slot, ty) in state.left_open(instruction) {
            let zero = self.k.op(Op::Zero(ty.into()))?;
            self.write(slot, ty, zero)?;
        }
        let acts = self.inner(|emitter| emitter.instruction(instruction, state.holds()))?;
        self.k
            .push(Inst::If(condition, acts, perpetua_ir::ir::Block::default()));
        self.known.forget(writes.iter().map(|(slot, _)| *slot));
        Ok(())
    }

    fn instruction(&mut self, instruction: &Instruction, holds: &[Holds]) -> Result {
        let (own, from) = (instruction.ty, instruction.from);
        let row = instruction.opcode.row();
        let mut read = Vec::new();
        let mut places = Vec::new();
        let mut target = None;
        let (mut pool, mut element) = (0, None);
        for (slot, operand) in row.operands.iter().zip(&instruction.operands) {
            match (slot, operand) {
                (Slot::Write(ty), Operand::Register(r)) => {
                    target = ty.of(own, from).map(|ty| (usize::from(*r), ty))
                }
                (Slot::Write(_), Operand::Predicate(p)) => target = Some((predicate_slot(*p), Scalar::Bool)),
                (Slot::Read(ty), operand) => {
                    let ty = ty.of(own, from).unwrap_or(Scalar::Bool);
                    read.push(self.operand(operand, ty)?);
                }
                (Slot::Place(Space::Pool, _), Operand::Place(place)) => element = Some(place),
                (Slot::Place(..), Operand::Place(place)) => places.push(self.address(place, holds)?),
                (Slot::Pool, Operand::Pool(memory)) => pool = *memory,
                _ => {}
            }
        }
        let ty = own.unwrap_or(Scalar::Bool);
        let value = match (row.meaning, read.as_slice(), places.as_slice()) {
            (Meaning::Move, [a], _) => Some(*a),
            (Meaning::Unary(op), [a], _) => Some(self.k.unary(op, *a)?),
            (Meaning::Binary(op), [a, b], _) => Some(self.k.binary(op, *a, *b)?),
            (Meaning::Ternary(op), [a, b, c], _) => Some(self.k.ternary(op, *a, *b, *c)?),
            (Meaning::Activation(which), [a], _) => Some(values::activation(&mut self.k, which, ty, *a)?),
            (Meaning::Compare(op, false), [a, b], _) => Some(self.k.binary(op, *a, *b)?),
            (Meaning::Compare(op, true), [a, b], _) => {
                let a = self.k.op(Op::Bitcast(ty.to_unsigned(), *a))?;
                let b = self.k.op(Op::Bitcast(ty.to_unsigned(), *b))?;
                Some(self.k.binary(op, a, b)?)
            }
            (Meaning::Convert, [a], _) => Some(self.k.cast(ty, *a)?),
            (Meaning::Bitcast, [a], _) => Some(self.k.op(Op::Bitcast(ty, *a))?),
            (Meaning::MultiplyAdd, [a, b, c], _) => {
                let product = self.k.binary(BinaryOp::Mul, *a, *b)?;
                Some(self.k.binary(BinaryOp::Add, product, *c)?)
            }
            (Meaning::PoolAlloc, [bytes], _) => Some(self.pool_alloc(pool, *bytes)?),
            (Meaning::PoolFree, [handle], _) => {
                self.pool_free(pool, *handle)?;
                None
            }
            (Meaning::Load(Space::Pool), ..) => match element {
                Some(place) => Some(self.pool_load(place, ty)?),
                None => None,
            },
            (Meaning::Store(Space::Pool), [value], _) => {
                if let Some(place) = element {
                    self.pool_store(place, ty, *value)?;
                }
                None
            }
            (Meaning::Load(_), _, [at]) => Some(self.k.load(at.place())?),
            (Meaning::Store(_), [value], [at]) => {
                self.k.store(at.place(), *value)?;
                None
            }
            (Meaning::Atomic(op), [value], [at]) => {
                Some(self.k.op(Op::Atomic(op, at.place(), *value, Sync::RELAXED))?)
            }
            (Meaning::CompareExchange, [expected, new], [at]) => Some(self.k.op(Op::CompareExchange {
                place: at.place(),
                expected: *expected,
                new: *new,
                sync: Sync::RELAXED,
            })?),
            (Meaning::Barrier, ..) => {
                reduce::barrier(&mut self.k)?;
                None
            }
            (Meaning::Fence(scope), ..) => {
                if let Some(scope) = scope {
                    self.k.effect(Effect::from(DeviceOp::Fence(scope)))?;
                }
                None
            }
            (Meaning::Group(op), [value], _) => {
                let scratch = self.scratch(ty);
                Some(reduce::block(&mut self.k, op, scratch, *value)?)
            }
            (Meaning::Grid(op), [value], [at]) => {
                let scratch = self.scratch(ty);
                let result = reduce::block(&mut self.k, op, scratch, *value)?;
                reduce::grid(&mut self.k, op, ty, at.place(), result)?;
                None
            }
            (Meaning::Copy, [count], [to, from]) => {
                self.each(*count, |emitter, i| {
                    let from = emitter.further(from, i)?;
                    let to = emitter.further(to, i)?;
                    let value = emitter.k.load(from)?;
                    emitter.k.store(to, value)
                })?;
                None
            }
            (Meaning::Fill, [value, count], [to]) => {
                self.each(*count, |emitter, i| {
                    let to = emitter.further(to, i)?;
                    emitter.k.store(to, *value)
                })?;
                None
            }
            (Meaning::Reduce(op), ..) => {
                let [.., Operand::Register(first), Operand::Count(count)] = instruction.operands[..] else {
                    return Ok(());
                };
                let mut all = self.slot(usize::from(first), ty)?;
                for slot in (usize::from(first)..).take(count as usize).skip(1) {
                    let next = self.slot(slot, ty)?;
                    all = self.k.binary(op.binary(), all, next)?;
                }
                Some(all)
            }
            (Meaning::Tile, ..) => {
                self.tile(instruction, ty)?;
                None
            }
            _ => None,
        };
        match (target, value) {
            (Some((slot, ty)), Some(value)) => self.write(slot, ty, value),
            _ => Ok(()),
        }
    }

    fn tile(&mut self, instruction: &Instruction, ty: Scalar) -> Result {
        use Operand::{Count, Register};
        let [
            Register(d),
            Register(a),
            Register(b),
            Count(m),
            Count(n),
            Count(k),
        ] = instruction.operands[..]
        else {
            return Ok(());
        };
        let at = |first: u8, i: u32| usize::from(first) + i as usize;
        for row in 0..m {
            for column in 0..n {
                let sum = at(d, row * n + column);
                let mut value = self.slot(sum, ty)?;
                for i in 0..k {
                    let x = self.slot(at(a, row * k + i), ty)?;
                    let y = self.slot(at(b, i * n + column), ty)?;
                    value = if ty.is_float() {
                        self.k.ternary(TernaryOp::Fma, x, y, value)?
                    } else {
                        let product = self.k.binary(BinaryOp::Mul, x, y)?;
                        self.k.binary(BinaryOp::Add, value, product)?
                    };
                }
                self.write(sum, ty, value)?;
            }
        }
        Ok(())
    }

    // Memory of the block in which reductions of a type meet.
    fn scratch(&mut self, ty: Scalar) -> Base {
        let program = self.verified.program();
        let k = &mut self.k;
        *self.scratch.entry(ty).or_insert_with(|| {
            let name = program.unused_name(&format!("reduced_{ty}"));
            k.shared(name, Type::array(ty.into(), reduce::MAX_LANES))
        })
    }

    // Runs code for each number below a count.
    fn each(&mut self, count: Value, run: impl FnOnce(&mut Self, Value) -> Result) -> Result {
        let next = self.k.local("next", Type::U32);
        let zero = self.k.u32(0);
        self.k.store(Place::local(next), zero)?;
        let body = self.inner(|emitter| {
            emitter.charge(ELEMENT, false)?;
            let i = emitter.k.load(Place::local(next))?;
            let done = emitter.k.binary(BinaryOp::Ge, i, count)?;
            emitter.k.if_(done, |k| {
                k.break_(0);
                Ok(())
            })?;
            run(emitter, i)?;
            let one = emitter.k.u32(1);
            let more = emitter.k.binary(BinaryOp::Add, i, one)?;
            emitter.k.store(Place::local(next), more)
        })?;
        self.k.push(Inst::Loop(body));
        Ok(())
    }
}
