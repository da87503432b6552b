//! Statements for instructions. A register's value is known along straight code; what crosses its borders lies in a variable.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use perpetua_ir::ir::{
    Access as BufferAccess, Base, Effect, Inst, Kernel, KernelBuilder, LocalId, Op, Place, Scalar, Sync,
    Type, TypeError, Value,
};
use perpetua_ir::ops::{BinaryOp, DeviceOp, TernaryOp, UnaryOp};

use super::structure::{Node, Structure, falls};
use super::{reduce, values};
use crate::instruction::{Guard, Index, Instruction, Operand, PRESET, Place as At, Special};
use crate::opcode::{Meaning, Slot};
use crate::program::MemoryKind;
use crate::verify::{
    Access, Block, Exit, Goal, Holds, Verified, Where, accesses, predicate_slot, state_after,
};

type Result<T = ()> = std::result::Result<T, TypeError>;

/// Registers, by slot and type, that live in variables.
pub(super) type Crossing = BTreeSet<(usize, Scalar)>;

/// Writes the kernel; `None` for what crosses: to find that out, which is the second result.
pub(super) fn emit(
    verified: &Verified,
    structure: &Structure,
    pointer_width: u32,
    crossing: Option<&Crossing>,
) -> Result<(Kernel, Crossing)> {
    let mut emitter = Emitter::new(verified, pointer_width, crossing);
    emitter.presets()?;
    match structure {
        Structure::Nested(nodes) => emitter.nodes(nodes)?,
        Structure::Dispatched => emitter.dispatch()?,
    }
    Ok((emitter.k.finish(), emitter.missed))
}

/// Values that slots have, with their types.
type Known = HashMap<usize, (Scalar, Value)>;

// What can be left, innermost last.
#[derive(PartialEq)]
enum Frame {
    Loop(usize),
    Labeled(usize),
}

struct Emitter<'a> {
    k: KernelBuilder,
    verified: &'a Verified,
    bases: Vec<Base>,
    parameters: Vec<Value>,
    scratch: BTreeMap<Scalar, Base>,
    crossing: Option<&'a Crossing>,
    missed: Crossing,
    locals: BTreeMap<(usize, Scalar), LocalId>,
    known: Known,
    frames: Vec<Frame>,
    // Type of indices whose parts have none of their own.
    wide: Scalar,
    // Presets that no instruction writes.
    constant_presets: HashMap<usize, Special>,
}

impl<'a> Emitter<'a> {
    fn new(verified: &'a Verified, pointer_width: u32, crossing: Option<&'a Crossing>) -> Emitter<'a> {
        let program = verified.program();
        let mut k = KernelBuilder::new(program.name.as_str());
        k.kernel_mut().block_size = program.block;
        k.kernel_mut().pointer_width = pointer_width;
        k.set_source(match program.source.is_empty() {
            true => program.name.as_str(),
            false => program.source.as_str(),
        });
        let mut bases = Vec::new();
        for memory in &program.memories {
            let name = memory.name.as_str();
            let element: Type = memory.element.into();
            bases.push(match &memory.kind {
                MemoryKind::Buffer { writable: false, .. } => k.buffer(name, element, BufferAccess::Read),
                MemoryKind::Buffer { writable: true, .. } => k.buffer(name, element, BufferAccess::ReadWrite),
                MemoryKind::Shared { len } => k.shared(name, Type::array(element, *len)),
                MemoryKind::Constants(data) => {
                    let constants = &mut k.kernel_mut().constants;
                    constants.push(perpetua_ir::ir::ConstTable {
                        name: name.into(),
                        element: memory.element,
                        data: data.clone(),
                    });
                    Base::Constant(constants.len() as u32 - 1)
                }
            });
        }
        let parameters = program.parameters.iter();
        let parameters = parameters
            .map(|p| k.param(p.name.as_str(), p.ty.into()))
            .collect();
        let written = written(verified.flow.blocks.iter());
        Emitter {
            k,
            verified,
            bases,
            parameters,
            scratch: BTreeMap::new(),
            crossing,
            missed: Crossing::new(),
            locals: BTreeMap::new(),
            known: Known::new(),
            frames: Vec::new(),
            wide: if pointer_width == 64 {
                Scalar::U64
            } else {
                Scalar::U32
            },
            constant_presets: PRESET
                .into_iter()
                .map(|(register, _, special)| (usize::from(register), special))
                .filter(|(slot, _)| !written.contains(slot))
                .collect(),
        }
    }

    // Registers that hold something at the start, where the program writes them, too.
    fn presets(&mut self) -> Result {
        for (register, ty, special) in PRESET {
            let slot = usize::from(register);
            if !self.constant_presets.contains_key(&slot) {
                let value = values::special(&mut self.k, special, ty)?;
                self.write(slot, ty, value)?;
            }
        }
        Ok(())
    }

    // Control flow.

    fn nodes(&mut self, nodes: &[Node]) -> Result {
        for node in nodes {
            match node {
                Node::Block(block) => self.block(*block)?,
                Node::If(block, acting, other) => self.condition(*block, acting, other)?,
                Node::Loop(block, body) => {
                    let changed = self.written_in(body);
                    self.known.retain(|slot, _| !changed.contains(slot));
                    let inner = self.framed(Frame::Loop(*block), body)?;
                    self.k.push(Inst::Loop(inner));
                }
                Node::Labeled(block, body) => {
                    let changed = self.written_in(body);
                    let inner = self.framed(Frame::Labeled(*block), body)?;
                    self.k.push(Inst::Labeled(inner));
                    self.known.retain(|slot, _| !changed.contains(slot));
                }
                Node::Break(block) => {
                    let depth = self.depth(&Frame::Labeled(*block))?;
                    self.k.push(Inst::Break(depth));
                }
                Node::Continue(block) => {
                    let depth = self.depth(&Frame::Loop(*block))?;
                    self.k.push(Inst::Continue(depth));
                }
                Node::End => self.k.push(Inst::Return(None)),
            }
        }
        Ok(())
    }

    fn framed(&mut self, frame: Frame, body: &[Node]) -> Result<perpetua_ir::ir::Block> {
        self.frames.push(frame);
        let inner = self.inner(|emitter| emitter.nodes(body))?;
        self.frames.pop();
        Ok(inner)
    }

    // A block of its own, after which what was known before is known again.
    fn inner(&mut self, write: impl FnOnce(&mut Self) -> Result) -> Result<perpetua_ir::ir::Block> {
        let known = self.known.clone();
        self.k.open_block();
        let done = write(self);
        let block = self.k.close_block();
        self.known = known;
        done.map(|()| block)
    }

    fn depth(&self, frame: &Frame) -> Result<u32> {
        let at = self.frames.iter().rev().position(|open| open == frame);
        at.map(|at| at as u32)
            .ok_or_else(|| TypeError::Invalid("a branch leads out of the program's structure".into()))
    }

    fn condition(&mut self, block: usize, acting: &[Node], other: &[Node]) -> Result {
        let exit = self.exit(block)?;
        let condition = self.exit_condition(exit)?;
        let acts = self.inner(|emitter| {
            emitter.count_down(exit)?;
            emitter.nodes(acting)
        })?;
        let not = self.inner(|emitter| emitter.nodes(other))?;
        self.k.push(Inst::If(condition, acts, not));
        let mut changed = BTreeSet::new();
        for branch in [acting, other] {
            if falls(branch) {
                changed.extend(self.written_in(branch));
            }
        }
        if let (Exit::Count(register, ..), true) = (exit, falls(acting)) {
            changed.insert(usize::from(register));
        }
        self.known.retain(|slot, _| !changed.contains(slot));
        Ok(())
    }

    fn exit(&self, block: usize) -> Result<Exit> {
        self.flow_block(block).map(|block| block.exit)
    }

    fn flow_block(&self, block: usize) -> Result<&'a Block> {
        let found = self.verified.flow.blocks.get(block);
        found.ok_or_else(|| TypeError::Invalid("the program has no such block".into()))
    }

    // Whether lanes go to the exit's first goal.
    fn exit_condition(&mut self, exit: Exit) -> Result<Value> {
        match exit {
            Exit::If(guard, ..) => self.guard(guard),
            Exit::Count(register, ..) => {
                let count = self.slot(usize::from(register), Scalar::U32)?;
                let zero = self.k.u32(0);
                self.k.binary(BinaryOp::Gt, count, zero)
            }
            Exit::To(_) => Ok(self.k.bool(true)),
        }
    }

    fn count_down(&mut self, exit: Exit) -> Result {
        let Exit::Count(register, ..) = exit else {
            return Ok(());
        };
        let slot = usize::from(register);
        let count = self.slot(slot, Scalar::U32)?;
        let one = self.k.u32(1);
        let less = self.k.binary(BinaryOp::Sub, count, one)?;
        self.write(slot, Scalar::U32, less)
    }

    // A loop around a choice of blocks.
    fn dispatch(&mut self) -> Result {
        for (slot, ty) in self.crossing.into_iter().flatten().copied() {
            let local = self.local(slot, ty);
            let zero = self.k.op(Op::Zero(ty.into()))?;
            // What presets have written stays.
            if !self.known.contains_key(&slot) {
                self.k.store(Place::local(local), zero)?;
            }
        }
        self.known.clear();
        let next = self.k.local("next_block", Type::U32);
        let first = self.k.u32(0);
        self.k.store(Place::local(next), first)?;
        self.k.open_block();
        let selector = self.k.load(Place::local(next))?;
        let mut cases = Vec::new();
        for number in 0..self.verified.flow.blocks.len() {
            let case = self.inner(|emitter| emitter.case(number, next))?;
            cases.push((vec![number as u64], case));
        }
        let default = perpetua_ir::ir::Block(vec![perpetua_ir::ir::Stmt {
            line: 0,
            inst: Inst::Return(None),
        }]);
        self.k.push(Inst::Switch {
            selector,
            cases,
            default,
        });
        let body = self.k.close_block();
        self.k.push(Inst::Loop(body));
        Ok(())
    }

    fn case(&mut self, number: usize, next: LocalId) -> Result {
        self.block(number)?;
        let exit = self.exit(number)?;
        let go = |emitter: &mut Self, goal: Goal| match goal {
            Goal::End => {
                emitter.k.push(Inst::Return(None));
                Ok(())
            }
            Goal::Block(block) => {
                let block = emitter.k.u32(block as u32);
                emitter.k.store(Place::local(next), block)
            }
        };
        let (Exit::If(_, a, b) | Exit::Count(_, a, b)) = exit else {
            let Exit::To(goal) = exit else { return Ok(()) };
            return go(self, goal);
        };
        let condition = self.exit_condition(exit)?;
        let acts = self.inner(|emitter| {
            emitter.count_down(exit)?;
            go(emitter, a)
        })?;
        let not = self.inner(|emitter| go(emitter, b))?;
        self.k.push(Inst::If(condition, acts, not));
        Ok(())
    }

    // Slots that the blocks of a part of the tree write.
    fn written_in(&self, nodes: &[Node]) -> BTreeSet<usize> {
        let mut blocks = Vec::new();
        collect(nodes, &mut blocks);
        written(
            blocks
                .iter()
                .filter_map(|block| self.verified.flow.blocks.get(*block)),
        )
    }

    // Registers.

    fn local(&mut self, slot: usize, ty: Scalar) -> LocalId {
        let k = &mut self.k;
        *self.locals.entry((slot, ty)).or_insert_with(|| {
            let name = match slot.checked_sub(predicate_slot(0)) {
                Some(predicate) => format!("p{predicate}"),
                None => format!("r{slot}"),
            };
            k.local(name, ty.into())
        })
    }

    fn slot(&mut self, slot: usize, ty: Scalar) -> Result<Value> {
        if let Some((known, value)) = self.known.get(&slot)
            && *known == ty
        {
            return Ok(*value);
        }
        let value = if let Some(special) = self.constant_presets.get(&slot) {
            values::special(&mut self.k, *special, ty)?
        } else if self
            .crossing
            .is_some_and(|crossing| crossing.contains(&(slot, ty)))
        {
            let local = self.local(slot, ty);
            self.k.load(Place::local(local))?
        } else {
            self.missed.insert((slot, ty));
            self.k.op(Op::Zero(ty.into()))?
        };
        self.known.insert(slot, (ty, value));
        Ok(value)
    }

    fn write(&mut self, slot: usize, ty: Scalar, value: Value) -> Result {
        self.known.insert(slot, (ty, value));
        if self
            .crossing
            .is_some_and(|crossing| crossing.contains(&(slot, ty)))
        {
            let local = self.local(slot, ty);
            self.k.store(Place::local(local), value)?;
        }
        Ok(())
    }

    fn guard(&mut self, guard: Guard) -> Result<Value> {
        let value = self.slot(predicate_slot(guard.predicate), Scalar::Bool)?;
        match guard.negated {
            true => self.k.unary(UnaryOp::Not, value),
            false => Ok(value),
        }
    }

    // Instructions.

    fn block(&mut self, number: usize) -> Result {
        let block = self.flow_block(number)?;
        let verified = self.verified;
        let origins = verified.flow.origins.get(number).map_or(&[][..], Vec::as_slice);
        let mut holds = block.holds.clone();
        for (instruction, at) in block.code.iter().zip(origins) {
            self.line(*at);
            match instruction.guard {
                None => self.instruction(instruction, &holds)?,
                Some(guard) => self.guarded(guard, instruction, &holds)?,
            }
            state_after(&mut holds, instruction);
        }
        self.line(block.exit_at);
        Ok(())
    }

    fn line(&mut self, (routine, i): Where) {
        let routine = self.verified.program().routines.get(routine);
        let line = routine.and_then(|routine| routine.lines.get(i)).copied();
        self.k.set_line(line.unwrap_or(i as u32 + 1));
    }

    fn guarded(&mut self, guard: Guard, instruction: &Instruction, holds: &[Holds]) -> Result {
        let condition = self.guard(guard)?;
        let writes = written_by(instruction);
        // Where the guard does not act the register's variable stays what it is: so it has one, which holds its value by now.
        for (slot, ty) in &writes {
            self.missed.insert((*slot, *ty));
        }
        let acts = self.inner(|emitter| emitter.instruction(instruction, holds))?;
        self.k
            .push(Inst::If(condition, acts, perpetua_ir::ir::Block::default()));
        for (slot, _) in writes {
            self.known.remove(&slot);
        }
        Ok(())
    }

    fn instruction(&mut self, instruction: &Instruction, holds: &[Holds]) -> Result {
        let (own, from) = (instruction.ty, instruction.from);
        let row = instruction.opcode.row();
        let mut read = Vec::new();
        let mut places = Vec::new();
        let mut target = None;
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
                (Slot::Place(..), Operand::Place(place)) => places.push(self.address(place, holds)?),
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
        let k = &mut self.k;
        *self
            .scratch
            .entry(ty)
            .or_insert_with(|| k.shared(format!("reduced_{ty}"), Type::array(ty.into(), reduce::MAX_LANES)))
    }

    // Runs code for each number below a count.
    fn each(&mut self, count: Value, run: impl FnOnce(&mut Self, Value) -> Result) -> Result {
        let next = self.k.local("next", Type::U32);
        let zero = self.k.u32(0);
        self.k.store(Place::local(next), zero)?;
        let body = self.inner(|emitter| {
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

    // Operands.

    fn operand(&mut self, operand: &Operand, ty: Scalar) -> Result<Value> {
        match *operand {
            Operand::Register(r) => self.slot(usize::from(r), ty),
            Operand::Predicate(p) => self.slot(predicate_slot(p), ty),
            Operand::Immediate(bits) => Ok(self.k.constant(ty, bits)),
            Operand::Special(special) => values::special(&mut self.k, special, ty),
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
            Operand::Place(_) | Operand::Label(_) | Operand::Routine(_) | Operand::Count(_) => {
                Err(TypeError::Invalid("an operand that is no value".into()))
            }
        }
    }

    fn parameter(&self, i: u16) -> Result<Value> {
        let value = self.parameters.get(usize::from(i)).copied();
        value.ok_or_else(|| TypeError::Invalid("the program has no such parameter".into()))
    }

    fn base(&self, memory: u16) -> Result<Base> {
        let base = self.bases.get(usize::from(memory)).copied();
        base.ok_or_else(|| TypeError::Invalid("the program has no such memory".into()))
    }

    fn address(&mut self, place: &At, holds: &[Holds]) -> Result<Address> {
        let base = self.base(place.memory)?;
        let parts = [place.first, place.second];
        let named = parts
            .into_iter()
            .flatten()
            .find_map(|part| self.index_type(part, holds));
        let ty = named.unwrap_or(self.wide);
        let mut index = None;
        for part in parts.into_iter().flatten() {
            let value = match part {
                Index::Register(r) => self.slot(usize::from(r), ty)?,
                Index::Parameter(i) => self.parameter(i)?,
                Index::Special(special) => {
                    let wide = if ty.size() == 8 { Scalar::U64 } else { Scalar::U32 };
                    let value = values::special(&mut self.k, special, wide)?;
                    match wide == ty {
                        true => value,
                        false => self.k.cast(ty, value)?,
                    }
                }
            };
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

    fn index_type(&self, part: Index, holds: &[Holds]) -> Option<Scalar> {
        match part {
            Index::Register(r) => match holds.get(usize::from(r)) {
                Some(Holds::Value(ty)) => Some(*ty),
                _ => None,
            },
            Index::Parameter(i) => self
                .verified
                .program()
                .parameters
                .get(usize::from(i))
                .map(|p| p.ty),
            Index::Special(_) => None,
        }
    }

    // The place so many elements further on.
    fn further(&mut self, at: &Address, elements: Value) -> Result<Place> {
        let elements = match at.ty {
            Scalar::U32 => elements,
            ty => self.k.cast(ty, elements)?,
        };
        let index = self.k.binary(BinaryOp::Add, at.index, elements)?;
        Ok(Place::element(at.base, index))
    }
}

/// An element's base and index, with the index's type.
struct Address {
    base: Base,
    index: Value,
    ty: Scalar,
}

impl Address {
    fn place(&self) -> Place {
        Place::element(self.base, self.index)
    }
}

fn collect(nodes: &[Node], blocks: &mut Vec<usize>) {
    for node in nodes {
        match node {
            Node::Block(block) => blocks.push(*block),
            Node::If(_, a, b) => {
                collect(a, blocks);
                collect(b, blocks);
            }
            Node::Loop(_, body) | Node::Labeled(_, body) => collect(body, blocks),
            Node::Break(_) | Node::Continue(_) | Node::End => {}
        }
    }
}

fn written<'a>(blocks: impl Iterator<Item = &'a Block>) -> BTreeSet<usize> {
    let mut slots = BTreeSet::new();
    for block in blocks {
        slots.extend(block.code.iter().flat_map(written_by).map(|(slot, _)| slot));
        if let Exit::Count(register, ..) = block.exit {
            slots.insert(usize::from(register));
        }
    }
    slots
}

fn written_by(instruction: &Instruction) -> Vec<(usize, Scalar)> {
    let slot = |access| match access {
        Access::Write(p, Scalar::Bool) => Some((predicate_slot(p), Scalar::Bool)),
        Access::Write(r, ty) => Some((usize::from(r), ty)),
        Access::Read(..) | Access::Index(_) => None,
    };
    accesses(instruction).into_iter().filter_map(slot).collect()
}
