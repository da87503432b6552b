//! The state of a kernel being written. A register's value is known along straight code; what crosses its borders lies in a variable.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use perpetua_ir::ir::{
    Access as BufferAccess, Axis, Base, ConstTable, Kernel, KernelBuilder, LocalId, Place, Scalar, Type,
    TypeError, Value,
};
use perpetua_ir::ops::UnaryOp;
use smallvec::SmallVec;

use super::webs::{Slots, Uses, Webs};
use super::{Options, unread, values};
use crate::instruction::{Guard, Instruction, PRESET, Special};
use crate::program::MemoryKind;
use crate::verify::{self, Access, Block, REGISTER_SLOTS, Verified, accesses, predicate_slot};

pub(super) type Result<T = ()> = std::result::Result<T, TypeError>;

/// Values that slots have, with their types.
#[derive(Clone)]
pub(super) struct Known([Option<(Scalar, Value)>; REGISTER_SLOTS]);

impl Known {
    pub(super) fn get(&self, slot: usize) -> Option<(Scalar, Value)> {
        self.0.get(slot).copied().flatten()
    }

    fn insert(&mut self, slot: usize, value: (Scalar, Value)) {
        if let Some(place) = self.0.get_mut(slot) {
            *place = Some(value);
        }
    }

    pub(super) fn forget(&mut self, slots: impl IntoIterator<Item = usize>) {
        for slot in slots {
            if let Some(place) = self.0.get_mut(slot) {
                *place = None;
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.0 = [None; REGISTER_SLOTS];
    }
}

/// What can be left.
#[derive(PartialEq)]
pub(super) enum Frame {
    Loop(usize),
    Labeled(usize),
}

/// How many instructions are left to run in loops.
#[derive(Clone, Copy)]
pub(super) struct Budget {
    pub(super) lane: LocalId,
    /// In loops in which the lanes of a block meet.
    pub(super) block: LocalId,
    /// What both begin with.
    pub(super) instructions: u32,
}

/// A kernel being written.
pub(super) struct Emitter<'a> {
    pub(super) k: KernelBuilder,
    pub(super) verified: &'a Verified,
    pub(super) bases: Vec<Base>,
    /// Tables of the pools' blocks, by the pools' numbers.
    pub(super) tables: HashMap<u16, Base>,
    pub(super) parameters: Vec<Value>,
    /// Where the launch lies in the grid, if the grid runs in parts.
    part: Option<values::Part>,
    pub(super) scratch: BTreeMap<Scalar, Base>,
    pub(super) uses: Uses,
    /// The variables of registers; `None`: each has one, whatever it holds.
    webs: Option<Webs>,
    /// The block and the instruction in it that are being written.
    pub(super) at: (usize, usize),
    /// Variables, by number and type, that are read.
    crossing: BTreeSet<(u32, Scalar)>,
    locals: BTreeMap<(u32, Scalar), LocalId>,
    pub(super) known: Known,
    pub(super) frames: Vec<Frame>,
    // How many instructions are left to run in loops, where that is counted.
    pub(super) budget: Option<Budget>,
    /// What loops cost that are paid for at once, by their heads.
    pub(super) counted: HashMap<usize, u32>,
    /// Whether atomics can be ordered.
    pub(super) is_ordered: bool,
    // Type of indices whose parts have none of their own.
    pub(super) wide: Scalar,
    // Presets that no instruction writes.
    constant_presets: HashMap<usize, Special>,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(verified: &'a Verified, options: Options) -> Emitter<'a> {
        let Options {
            pointer_width,
            is_ordered,
            ..
        } = options;
        let program = verified.program();
        let mut k = KernelBuilder::new(program.name.as_str());
        k.kernel_mut().block_size = program.block;
        k.kernel_mut().pointer_width = pointer_width;
        k.set_source(match program.source.is_empty() {
            true => program.name.as_str(),
            false => program.source.as_str(),
        });
        let mut bases = Vec::new();
        let mut tables = HashMap::new();
        for (number, memory) in program.memories.iter().enumerate() {
            let name = memory.name.as_str();
            let element: Type = memory.element.into();
            bases.push(match &memory.kind {
                MemoryKind::Buffer { writable: false, .. } => k.buffer(name, element, BufferAccess::Read),
                MemoryKind::Buffer { writable: true, .. } => k.buffer(name, element, BufferAccess::ReadWrite),
                MemoryKind::Shared { len } => k.shared(name, Type::array(element, *len)),
                MemoryKind::Constants(data) => {
                    let constants = &mut k.kernel_mut().constants;
                    constants.push(ConstTable {
                        name: name.into(),
                        element: memory.element,
                        data: data.clone(),
                    });
                    Base::Constant(constants.len() as u32 - 1)
                }
                MemoryKind::Pool { .. } => {
                    let words = k.buffer(name, element.clone(), BufferAccess::ReadWrite);
                    let table = program.unused_name(&format!("{name}_table"));
                    tables.insert(number as u16, k.buffer(table, element, BufferAccess::ReadWrite));
                    words
                }
            });
        }
        let parameters = program.parameters.iter();
        let parameters = parameters
            .map(|p| k.param(p.name.as_str(), p.ty.into()))
            .collect();
        let part = options.in_parts.then(|| {
            let mut each = |name: &str| {
                let named = |axis: Axis| program.unused_name(&format!("{name}_{}", axis.name()));
                Axis::ALL.map(|axis| k.param(named(axis), Type::U32))
            };
            values::Part {
                first: each("first_block"),
                grid: each("whole_grid"),
            }
        });
        let uses = Uses::of(&verified.flow.blocks);
        let mut written = Slots::default();
        (0..verified.flow.blocks.len()).for_each(|block| written.add(uses.written(block)));
        Emitter {
            k,
            verified,
            bases,
            tables,
            parameters,
            part,
            scratch: BTreeMap::new(),
            uses,
            webs: None,
            at: (0, 0),
            crossing: BTreeSet::new(),
            locals: BTreeMap::new(),
            known: Known([None; REGISTER_SLOTS]),
            frames: Vec::new(),
            budget: None,
            counted: HashMap::new(),
            is_ordered,
            wide: if pointer_width == 64 {
                Scalar::U64
            } else {
                Scalar::U32
            },
            constant_presets: PRESET
                .into_iter()
                .map(|(register, _, special)| (usize::from(register), special))
                .filter(|(slot, _)| !written.contains(*slot))
                .collect(),
        }
    }

    // Registers that hold something at the start, where the program writes them, too.
    pub(super) fn presets(&mut self) -> Result {
        for (register, ty, special) in PRESET {
            let slot = usize::from(register);
            if !self.constant_presets.contains_key(&slot) {
                let value = self.special(special, ty)?;
                self.known.insert(slot, (ty, value));
                let variable = match &self.webs {
                    Some(webs) => webs.read(0, slot),
                    None => slot as u32,
                };
                self.store(variable, slot, ty, value)?;
            }
        }
        Ok(())
    }

    // A block of its own, after which what was known before is known again.
    pub(super) fn inner(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result,
    ) -> Result<perpetua_ir::ir::Block> {
        let known = self.known.clone();
        self.k.open_block();
        let done = write(self);
        let block = self.k.close_block();
        self.known = known;
        done.map(|()| block)
    }

    pub(super) fn flow_block(&self, block: usize) -> Result<&'a Block> {
        let found = self.verified.flow.blocks.get(block);
        found.ok_or_else(|| TypeError::Invalid("the program has no such block".into()))
    }

    /// Values of a register that never meet lie in variables of their own from now on.
    pub(super) fn use_webs(&mut self) {
        self.webs = Some(Webs::new(&self.verified.flow.blocks, &self.uses));
    }

    fn local(&mut self, variable: u32, slot: usize, ty: Scalar) -> LocalId {
        let k = &mut self.k;
        *self.locals.entry((variable, ty)).or_insert_with(|| {
            let name = match slot.checked_sub(predicate_slot(0)) {
                Some(predicate) => format!("p{predicate}"),
                None => format!("r{slot}"),
            };
            k.local(name, ty.into())
        })
    }

    pub(super) fn slot(&mut self, slot: usize, ty: Scalar) -> Result<Value> {
        if let Some((known, value)) = self.known.get(slot)
            && known == ty
        {
            return Ok(value);
        }
        let value = if let Some(special) = self.constant_presets.get(&slot).copied() {
            self.special(special, ty)?
        } else {
            let variable = self.keep(slot, ty);
            let local = self.local(variable, slot, ty);
            self.k.load(Place::local(local))?
        };
        self.known.insert(slot, (ty, value));
        Ok(value)
    }

    pub(super) fn write(&mut self, slot: usize, ty: Scalar, value: Value) -> Result {
        self.known.insert(slot, (ty, value));
        let (block, i) = self.at;
        let variable = match &self.webs {
            Some(webs) => webs.written(block, i, slot),
            None => Some(slot as u32),
        };
        variable.map_or(Ok(()), |variable| self.store(variable, slot, ty, value))
    }

    fn store(&mut self, variable: u32, slot: usize, ty: Scalar, value: Value) -> Result {
        let local = self.local(variable, slot, ty);
        self.k.store(Place::local(local), value)
    }

    /// What the launch supplies.
    pub(super) fn special(&mut self, special: Special, ty: Scalar) -> Result<Value> {
        values::special(&mut self.k, self.part, special, ty)
    }

    /// A register's variable is needed here, whether or not anything more reads it; its number.
    pub(super) fn keep(&mut self, slot: usize, ty: Scalar) -> u32 {
        let variable = match &self.webs {
            Some(webs) => webs.read(self.at.0, slot),
            None => slot as u32,
        };
        self.crossing.insert((variable, ty));
        variable
    }

    /// The kernel, without the variables of registers that nothing has read there.
    pub(super) fn finish(self) -> Kernel {
        let crossing = self.crossing;
        let unread = self
            .locals
            .into_iter()
            .filter(|(register, _)| !crossing.contains(register));
        let unread = unread.map(|(_, local)| local).collect();
        let mut kernel = self.k.finish();
        unread::remove(&mut kernel.body, &unread);
        kernel
    }

    pub(super) fn guard(&mut self, guard: Guard) -> Result<Value> {
        let value = self.slot(predicate_slot(guard.predicate), Scalar::Bool)?;
        match guard.negated {
            true => self.k.unary(UnaryOp::Not, value),
            false => Ok(value),
        }
    }
}

/// Slots that an instruction writes, with their types.
pub(super) fn written_by(instruction: &Instruction) -> SmallVec<[(usize, Scalar); 2]> {
    let slot = |access| match access {
        Access::Write(register, ty) => Some((verify::slot(register, ty), ty)),
        Access::Read(..) | Access::Index(_) => None,
    };
    accesses(instruction).into_iter().filter_map(slot).collect()
}
