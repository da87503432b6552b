//! Buffers, constant tables and variables. Lanes share buffers in three ways only: reading what nobody writes,
//! owning slots, and atomics whose order does not matter.

use super::{Generator, Result, Variable, lanes};
use crate::testing::choices::Random;
use crate::testing::inputs::random_bytes;
use perpetua_ir::ir::*;

/// How lanes use a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// All read.
    Input,
    /// Each lane has this many elements of its own.
    Own(usize),
    /// Each lane has one element of its own and reaches it by atomics too.
    OwnAtomic,
    /// All change it by atomics, `ELEMENTS_A_GROUP` elements for each group of operations that commute.
    Accumulate,
}

/// A buffer parameter.
pub(super) struct Memory {
    base: Base,
    element: Type,
    used: Use,
    elements: usize,
}

/// Operations that give one result in any order, in groups that may be mixed on one element.
const COMMUTING: [&[AtomicOp]; 6] = [
    &[AtomicOp::Add, AtomicOp::Sub],
    &[AtomicOp::Min],
    &[AtomicOp::Max],
    &[AtomicOp::And],
    &[AtomicOp::Or],
    &[AtomicOp::Xor],
];

const ELEMENTS_A_GROUP: usize = 4;

/// Most constant tables of a kernel.
const TABLES: u32 = 3;

impl Generator<'_, '_> {
    /// A buffer that fits, made if there is none and the limit allows.
    fn memory(&mut self, k: &mut KernelBuilder, element: &Type, used: Use) -> Option<usize> {
        let known = |m: &Memory| {
            m.element == *element && std::mem::discriminant(&m.used) == std::mem::discriminant(&used)
        };
        if let Some(i) = self.memories.iter().position(known) {
            return Some(i);
        }
        if self.memories.len() >= self.config.buffers.max(1) {
            return None;
        }
        let all = (self.grid.iter().product::<u32>() * lanes(self.block)) as usize;
        let (name, access, elements) = match used {
            Use::Input => ("in", Access::Read, 1 + self.choices.below(19)),
            Use::Own(n) => ("out", Access::ReadWrite, all * n),
            Use::OwnAtomic => ("own", Access::ReadWrite, all),
            Use::Accumulate => ("acc", Access::ReadWrite, COMMUTING.len() * ELEMENTS_A_GROUP),
        };
        let name = format!("{name}{}", self.memories.len());
        let base = k.buffer(name, element.clone(), access);
        self.counts.push(elements);
        self.memories.push(Memory {
            base,
            element: element.clone(),
            used,
            elements,
        });
        Some(self.memories.len() - 1)
    }

    /// Makes sure that lanes own slots of this type, if the limit on buffers allows.
    pub(super) fn own_memory(&mut self, k: &mut KernelBuilder, element: &Type) -> Option<usize> {
        let slots = 1 + self.choices.below(3);
        self.memory(k, element, Use::Own(slots))
    }

    /// A few steps from a place of type `ty` into its components.
    fn descend(&mut self, k: &mut KernelBuilder, place: Place, ty: Type) -> Result<(Place, Type)> {
        let (mut place, mut ty) = (place, ty);
        while ty.component_count() > 0 && self.choices.chance(2, 3) {
            let n = ty.component_count() as usize;
            let i = self.choices.below(n) as u32;
            let step = match &ty {
                Type::Array(..) if self.choices.chance(2, 3) => Step::Index(self.index(k, n)?),
                _ => Step::Field(i),
            };
            place = place.step(step);
            ty = ty.component(i).unwrap_or(Type::U32);
        }
        Ok((place, ty))
    }

    /// A place among the slots that the lane owns.
    fn own_place(&mut self, k: &mut KernelBuilder, memory: usize) -> Result<Option<Place>> {
        let (Some(entry), Some(memory)) = (self.body.entry, self.memories.get(memory)) else {
            return Ok(None);
        };
        let base = memory.base;
        let mut at = entry.slot;
        if let Use::Own(n) = memory.used {
            let slots = self.number(k, n as u32)?;
            let slot = self.choices.below(n) as u32;
            let slot = self.number(k, slot)?;
            at = self.emit(k, Op::Binary(perpetua_ir::ops::BinaryOp::Mul, at, slots))?;
            at = self.emit(k, Op::Binary(perpetua_ir::ops::BinaryOp::Add, at, slot))?;
        }
        Ok(Some(Place::element(base, at)))
    }

    /// Stores a whole value to a slot that the lane owns.
    pub(super) fn store_own(&mut self, k: &mut KernelBuilder, ty: &Type, v: Value) -> Result<()> {
        match self.own_memory(k, ty) {
            Some(memory) => match self.own_place(k, memory)? {
                Some(place) => k.store(place, v),
                None => Ok(()),
            },
            None => self.mix(k, v, ty),
        }
    }

    /// A statement that reaches a buffer.
    pub(super) fn buffer(&mut self, k: &mut KernelBuilder) -> Result<()> {
        match self.choices.below(if self.config.atomics { 6 } else { 4 }) {
            0 => {
                let ty = self.any_type();
                let v = self.operand(k, &ty)?;
                self.store_own(k, &ty, v)
            }
            1 => self.load_input(k),
            2 | 3 => {
                let ty = self.any_type();
                let Some(memory) = self.own_memory(k, &ty) else {
                    return Ok(());
                };
                let Some(place) = self.own_place(k, memory)? else {
                    return Ok(());
                };
                let (place, part) = self.descend(k, place, ty)?;
                if self.choices.chance(1, 2) {
                    let v = self.operand(k, &part)?;
                    k.store(place, v)
                } else {
                    self.define(k, Op::Load(place, None)).map(|_| ())
                }
            }
            4 => self.accumulate(k),
            _ => self.own_atomic(k),
        }
    }

    /// Changes one scalar deep in an aggregate of the lane's, then a copy of the aggregate array by array, and stores that back.
    pub(super) fn rework(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let mut ty = self.any_type();
        for _ in 0..3 {
            if matches!(ty, Type::Struct(_) | Type::Array(..)) {
                break;
            }
            ty = self.any_type();
        }
        let cost = ty.leaf_count() as u64 + 1;
        if !self.affords(cost * 4) {
            return Ok(());
        }
        let Some(memory) = self.own_memory(k, &ty) else {
            return Ok(());
        };
        let Some(whole) = self.own_place(k, memory)? else {
            return Ok(());
        };
        let (part, inner) = self.descend(k, whole.clone(), ty.clone())?;
        if let Some(s) = inner.as_scalar().filter(|s| s.is_int()) {
            let old = self.emit(k, Op::Load(part.clone(), None))?;
            let seven = self.emit(k, Op::Const(s, 7))?;
            let new = self.emit(k, Op::Binary(perpetua_ir::ops::BinaryOp::Add, old, seven))?;
            k.store(part, new)?;
        }
        let v = self.emit(k, Op::Load(whole.clone(), None))?;
        let copy = self.declare(k, ty.clone(), false);
        k.store(Place::local(copy), v)?;
        let arrays: Vec<(Place, Type)> = match &ty {
            Type::Struct(_) => (0..ty.component_count())
                .filter_map(|i| Some((Place::local(copy).step(Step::Field(i)), ty.component(i)?)))
                .collect(),
            _ => vec![(Place::local(copy), ty.clone())],
        };
        for (place, ty) in arrays {
            if matches!(ty, Type::Array(..)) {
                self.each_element(k, place, &ty)?;
            }
        }
        let v = self.emit(k, Op::Load(Place::local(copy), None))?;
        k.store(whole, v)
    }

    /// Loads from, or asks the length of, a buffer that nobody writes.
    fn load_input(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let ty = self.any_type();
        let Some(memory) = self.memory(k, &ty, Use::Input).and_then(|i| self.memories.get(i)) else {
            return Ok(());
        };
        let (base, elements) = (memory.base, memory.elements);
        if self.choices.chance(1, 8) {
            let wide = self.scalars.contains(&Scalar::U64) && self.choices.chance(1, 2);
            let s = if wide { Scalar::U64 } else { Scalar::U32 };
            return self.define(k, Op::Len(base, s)).map(|_| ());
        }
        let at = self.index(k, elements)?;
        let (place, _) = self.descend(k, Place::element(base, at), ty)?;
        self.define(k, Op::Load(place, None)).map(|_| ())
    }

    /// A type for atomics, floats only where every lane has its own.
    fn atomic_scalar(&mut self, floats: bool) -> Option<Scalar> {
        let wide = self.config.atomic64;
        self.scalar_where(|s| {
            (s.is_int() || floats && s.is_float()) && (s.size() == 4 || wide && s.size() == 8)
        })
    }

    fn order(&mut self) -> Sync {
        if !self.config.ordering {
            return Sync::RELAXED;
        }
        let orders = [
            MemOrder::Relaxed,
            MemOrder::AcqRel,
            MemOrder::SeqCst,
            MemOrder::Acquire,
            MemOrder::Release,
        ];
        Sync {
            order: self.choices.pick(&orders).copied().unwrap_or(MemOrder::Relaxed),
            scope: *self
                .choices
                .pick(&[Scope::Device, Scope::System, Scope::Block])
                .unwrap_or(&Scope::Device),
        }
    }

    /// An atomic on memory that all lanes change; what it gives depends on the order and is not used.
    fn accumulate(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let Some(s) = self.atomic_scalar(false) else {
            return Ok(());
        };
        let memory = self.memory(k, &s.into(), Use::Accumulate);
        let Some(base) = memory.and_then(|i| self.memories.get(i)).map(|m| m.base) else {
            return Ok(());
        };
        let group = self.choices.below(COMMUTING.len());
        let ops = COMMUTING.get(group).copied().unwrap_or(&[AtomicOp::Add]);
        let op = self.choices.pick(ops).copied().unwrap_or(AtomicOp::Add);
        let v = self.operand(k, &s.into())?;
        // Not through `index`: with faults allowed that may leave its group.
        let at = self.operand(k, &Type::U32)?;
        let mask = self.number(k, ELEMENTS_A_GROUP as u32 - 1)?;
        let at = self.emit(k, Op::Binary(perpetua_ir::ops::BinaryOp::And, at, mask))?;
        let first = self.number(k, (group * ELEMENTS_A_GROUP) as u32)?;
        let at = self.emit(k, Op::Binary(perpetua_ir::ops::BinaryOp::Add, at, first))?;
        let sync = self.order();
        // The order between groups is not fixed, so the scope must reach them all.
        let sync = match sync.scope {
            Scope::Block => Sync::RELAXED,
            _ => sync,
        };
        self.emit(k, Op::Atomic(op, Place::element(base, at), v, sync))?;
        Ok(())
    }

    /// An atomic on the lane's own element, whose result is used.
    fn own_atomic(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let Some(s) = self.atomic_scalar(true) else {
            return Ok(());
        };
        let ty = Type::from(s);
        let Some(memory) = self.memory(k, &ty, Use::OwnAtomic) else {
            return Ok(());
        };
        let Some(place) = self.own_place(k, memory)? else {
            return Ok(());
        };
        let v = self.operand(k, &ty)?;
        let sync = self.order();
        let op = match self.choices.below(6) {
            0 => {
                let sync = loadable(sync);
                Op::Load(place, Some(sync))
            }
            1 => {
                let sync = Sync {
                    order: match sync.order {
                        MemOrder::Acquire | MemOrder::AcqRel => MemOrder::Release,
                        other => other,
                    },
                    ..sync
                };
                return k.effect(Effect::Store(place, v, Some(sync)));
            }
            2 if s.is_int() => {
                let expected = self.operand(k, &ty)?;
                let new = v;
                Op::CompareExchange {
                    place,
                    expected,
                    new,
                    sync,
                }
            }
            3 => Op::Load(place, None),
            _ => {
                let all: Vec<AtomicOp> = AtomicOp::ALL
                    .into_iter()
                    .filter(|op| {
                        // Of floats, minimum and maximum may give either zero.
                        s.is_int() || matches!(op, AtomicOp::Add | AtomicOp::Sub | AtomicOp::Exchange)
                    })
                    .collect();
                let op = self.choices.pick(&all).copied().unwrap_or(AtomicOp::Add);
                let sums = s.is_float() && op != AtomicOp::Exchange;
                let v = if sums { self.summand(k, s, &place)? } else { v };
                Op::Atomic(op, place, v, sync)
            }
        };
        self.define(k, op).map(|_| ())
    }

    /// An operand for an atomic sum of floats at a place that is given a whole number first: of whole numbers, no sum is
    /// subnormal. CUDA's atomics on global memory take subnormal numbers for zeros, whatever the mode (PTX ISA, `atom`).
    fn summand(&mut self, k: &mut KernelBuilder, s: Scalar, place: &Place) -> Result<Value> {
        let first = self.operand(k, &Type::I32)?;
        let first = self.emit(k, Op::Cast(s, first))?;
        k.effect(Effect::Store(place.clone(), first, None))?;
        let v = self.operand(k, &Type::I32)?;
        self.emit(k, Op::Cast(s, v))
    }

    /// Loads from a constant table.
    pub(super) fn load_table(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let tables = &mut k.kernel_mut().constants;
        if self.tables < TABLES && (tables.is_empty() || self.choices.chance(1, 4)) {
            let element = self.any_scalar();
            let length = 1 + self.choices.below(9);
            let seed = u64::from(self.choices.number());
            let bytes = random_bytes(&element.into(), length, &mut Random::new(seed));
            let data = bytes
                .chunks_exact(element.size() as usize)
                .map(|b| b.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b)))
                .collect();
            tables.push(ConstTable {
                name: format!("TABLE{}", self.tables),
                element,
                data,
            });
            self.tables += 1;
        }
        let i = self.choices.below(tables.len());
        let length = tables.get(i).map_or(1, |t| t.data.len());
        let at = self.index(k, length)?;
        let place = Place::element(Base::Constant(i as u32), at);
        self.define(k, Op::Load(place, None)).map(|_| ())
    }

    /// Declares, reads or writes a variable.
    pub(super) fn variable(&mut self, k: &mut KernelBuilder) -> Result<()> {
        let mix = self.body.entry.map(|e| e.mix);
        let choice = self.choices.below(4);
        let known: Vec<Variable> = self
            .body
            .variables
            .iter()
            .rev()
            .filter(|v| Some(v.id) != mix)
            .cloned()
            .collect();
        let chosen = self.choices.pick(&known).cloned();
        match (choice, chosen) {
            (1, Some(variable)) => {
                let (place, _) = self.descend(k, Place::local(variable.id), variable.ty)?;
                self.define(k, Op::Load(place, None)).map(|_| ())
            }
            (2 | 3, Some(variable)) if !variable.uniform => {
                let (place, ty) = self.descend(k, Place::local(variable.id), variable.ty)?;
                let v = self.operand(k, &ty)?;
                k.store(place, v)
            }
            (2 | 3, Some(variable)) if self.body.context.uniform => {
                let v = self.uniform_operand(k, &variable.ty)?;
                k.store(Place::local(variable.id), v)
            }
            _ => {
                let ty = self.any_type();
                let uniform = self.body.context.uniform && self.choices.chance(1, 3);
                let v = if uniform {
                    self.uniform_operand(k, &ty)?
                } else {
                    self.operand(k, &ty)?
                };
                let id = self.declare(k, ty, uniform);
                k.store(Place::local(id), v)
            }
        }
    }

    /// Declares a variable that the caller assigns at once.
    pub(super) fn declare(&mut self, k: &mut KernelBuilder, ty: Type, uniform: bool) -> LocalId {
        let name = format!("v{}", self.body.variables.len());
        let id = k.local(name, ty.clone());
        self.body.variables.push(Variable { id, ty, uniform });
        id
    }
}

/// The order of a load that goes with a read-modify-write's.
fn loadable(sync: Sync) -> Sync {
    Sync {
        order: match sync.order {
            MemOrder::Release | MemOrder::AcqRel => MemOrder::Acquire,
            other => other,
        },
        ..sync
    }
}
