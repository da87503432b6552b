//! What gives values: operators as instructions; constants, parameters and what the launch supplies as operands.

use perpetua_ir::ir::{Base, Builtin, Op, Place, Scalar, Step, Type, Value};
use perpetua_ir::ops::{BinaryOp, Result as Gives, Second, TernaryOp};

use super::Capture;
use crate::builder::draft::{Arg, Part, result};
use crate::error::Result;
use crate::instruction::{Index, Operand, Special};
use crate::opcode::Opcode;

/// Where a place lies.
enum Found {
    /// In registers: the first leaf, and the type.
    Local(u32, usize, Type),
    /// In a memory, with the opcodes that load and store.
    Memory(Arg, Scalar, &'static str, &'static str),
}

impl Capture<'_> {
    fn type_of(&self, value: Value) -> Result<Type> {
        match self.kernel.body.values.get(value.0 as usize) {
            Some(ty) => Ok(ty.clone()),
            None => self.refuse(
                "a value without a type",
                "the kernel's verifier lets none through",
            ),
        }
    }

    pub(super) fn scalar_of(&self, value: Value) -> Result<Scalar> {
        let ty = self.type_of(value)?;
        match ty.as_scalar() {
            Some(ty) => Ok(ty),
            None => self.refuse(
                format!("an operator on {ty}"),
                "operators of programs take scalars",
            ),
        }
    }

    fn components(&self, value: Value) -> Result<&[Arg]> {
        match self.values.get(&value.0) {
            Some(components) => Ok(components),
            None => self.refuse(
                "a value from elsewhere",
                "the kernel's verifier lets none through",
            ),
        }
    }

    /// A scalar.
    pub(super) fn one(&self, value: Value) -> Result<Arg> {
        match self.components(value)? {
            [one] => Ok(*one),
            _ => self.refuse(
                "an operator on a value of several components",
                "operators of programs take scalars",
            ),
        }
    }

    /// The components of what an operation gives.
    pub(super) fn value(&mut self, value: Value, op: &Op) -> Result<Vec<Arg>> {
        Ok(match op {
            Op::Const(_, bits) => vec![Self::immediate(*bits)],
            Op::Zero(ty) => vec![Self::immediate(0); ty.leaf_count()],
            Op::Param(i) => self.parameter(*i)?,
            Op::Builtin(builtin) => vec![Arg::Other(Operand::Special(special(*builtin)))],
            Op::Unary(op, a) => {
                let ty = self.scalar_of(*a)?;
                let args = vec![self.one(*a)?];
                self.computed(op.name(), ty, None, args)?
            }
            Op::Binary(op, a, b) => self.binary(*op, *a, *b)?,
            Op::Ternary(TernaryOp::Select, condition, a, b) => {
                let condition = self.one(*condition)?;
                let types = self.type_of(*a)?.leaves();
                let pairs: Vec<(Arg, Arg)> = {
                    let (a, b) = (self.components(*a)?, self.components(*b)?);
                    a.iter().copied().zip(b.iter().copied()).collect()
                };
                let mut all = Vec::new();
                for ((a, b), (ty, _)) in pairs.into_iter().zip(types) {
                    all.extend(self.computed("select", ty, None, vec![condition, a, b])?);
                }
                all
            }
            Op::Ternary(op, a, b, c) => {
                let ty = self.scalar_of(*a)?;
                let args = vec![self.one(*a)?, self.one(*b)?, self.one(*c)?];
                self.computed(op.name(), ty, None, args)?
            }
            Op::Cast(to, a) | Op::Bitcast(to, a) => {
                let from = self.scalar_of(*a)?;
                let a = self.one(*a)?;
                if from == *to {
                    return Ok(vec![a]);
                }
                let a = self.in_register(a, from)?;
                let name = match op {
                    Op::Cast(..) => "cvt",
                    _ => "bitcast",
                };
                self.computed(name, *to, Some(from), vec![Arg::Register(a)])?
            }
            Op::Compose(_, parts) => {
                let mut all = Vec::new();
                for part in parts {
                    all.extend_from_slice(self.components(*part)?);
                }
                all
            }
            Op::Extract(aggregate, index) => {
                let ty = self.type_of(*aggregate)?;
                let count = ty.component(*index).map_or(0, |ty| ty.leaf_count());
                let all = self.components(*aggregate)?.iter();
                all.skip(ty.leaf_start(*index)).take(count).copied().collect()
            }
            Op::Insert(aggregate, index, component) => {
                let start = self.type_of(*aggregate)?.leaf_start(*index);
                let mut all = self.components(*aggregate)?.to_vec();
                let new = self.components(*component)?;
                for (old, new) in all.iter_mut().skip(start).zip(new) {
                    *old = *new;
                }
                all
            }
            Op::Load(place, None) => self.load(place)?,
            Op::Load(_, Some(_)) => {
                return self.refuse(
                    "an ordered load",
                    "loads of programs are plain: use `atom_add` of 0",
                );
            }
            Op::Len(base, _) => {
                let memory = match base {
                    Base::Buffer(i) => self.buffers.get(i),
                    Base::Shared(i) => self.shared.get(i),
                    Base::Local(_) | Base::Constant(_) => None,
                };
                match memory {
                    Some(memory) => vec![Arg::Other(Operand::Length(*memory))],
                    None => return self.refuse("a length", "programs know those of memories"),
                }
            }
            Op::Atomic(op, place, value, sync) => {
                self.relaxed(*sync)?;
                let ty = self.scalar_of(*value)?;
                let args = vec![self.memory(place)?, self.one(*value)?];
                self.computed(&format!("atom_{}", op.name()), ty, None, args)?
            }
            Op::CompareExchange {
                place,
                expected,
                new,
                sync,
            } => {
                self.relaxed(*sync)?;
                let ty = self.scalar_of(*new)?;
                let args = vec![self.memory(place)?, self.one(*expected)?, self.one(*new)?];
                self.computed("atom_cas", ty, None, args)?
            }
            Op::Device(op, _) => return self.device(*op),
            Op::Call(..) => {
                let ty = self.type_of(value)?;
                return self.refuse(format!("a call that gives {ty}"), "calls are written out before");
            }
        })
    }

    fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Result<Vec<Arg>> {
        let row = op.row();
        let ty = self.scalar_of(a)?;
        let left = self.one(a)?;
        let mut right = self.one(b)?;
        let from = self.scalar_of(b)?;
        if row.second == Second::Amount && from != Scalar::U32 {
            // The low bits count alone.
            let amount = self.in_register(right, from)?;
            let all = self.computed("cvt", Scalar::U32, Some(from), vec![Arg::Register(amount)])?;
            right = all.first().copied().unwrap_or(right);
        }
        match row.result {
            Gives::Bool => self.computed(&format!("set{}", row.name), ty, None, vec![left, right]),
            _ => self.computed(row.name, ty, None, vec![left, right]),
        }
    }

    pub(super) fn computed(
        &mut self,
        name: &str,
        ty: Scalar,
        from: Option<Scalar>,
        mut args: Vec<Arg>,
    ) -> Result<Vec<Arg>> {
        let gives = Opcode::from_name(name).and_then(|opcode| result(opcode, ty));
        let register = Arg::Register(self.draft.register(gives.unwrap_or(ty)));
        args.insert(0, register);
        self.emit(name, None, Some(ty), from, args)?;
        Ok(vec![register])
    }

    fn load(&mut self, place: &Place) -> Result<Vec<Arg>> {
        match self.find(place)? {
            Found::Local(local, start, ty) => {
                let registers = self.registers(local, start, &ty);
                let mut all = Vec::new();
                for (register, (ty, _)) in registers.into_iter().zip(ty.leaves()) {
                    all.extend(self.computed("mov", ty, None, vec![Arg::Register(register)])?);
                }
                Ok(all)
            }
            Found::Memory(at, ty, load, _) => self.computed(load, ty, None, vec![at]),
        }
    }

    pub(super) fn store(&mut self, place: &Place, value: Value) -> Result<()> {
        let values = self.components(value)?.to_vec();
        match self.find(place)? {
            Found::Local(local, start, ty) => {
                let registers = self.registers(local, start, &ty);
                for ((register, (ty, _)), value) in registers.into_iter().zip(ty.leaves()).zip(values) {
                    let args = vec![Arg::Register(register), value];
                    self.emit("mov", None, Some(ty), None, args)?;
                }
                Ok(())
            }
            Found::Memory(at, ty, _, store) => {
                let value = self.one(value)?;
                self.emit(store, None, Some(ty), None, vec![at, value])
            }
        }
    }

    // A place that is no variable's.
    fn memory(&mut self, place: &Place) -> Result<Arg> {
        match self.find(place)? {
            Found::Memory(at, ..) => Ok(at),
            Found::Local(..) => self.refuse("an atomic access to a variable", "it is in a memory"),
        }
    }

    fn registers(&self, local: u32, start: usize, ty: &Type) -> Vec<u32> {
        let all = self.locals.get(&local).into_iter().flatten();
        all.skip(start).take(ty.leaf_count()).copied().collect()
    }

    fn find(&mut self, place: &Place) -> Result<Found> {
        let (memory, load, store) = match place.base {
            Base::Local(local) => {
                let index = local.0 as usize;
                let Some(mut ty) = self.kernel.body.locals.get(index).map(|local| local.ty.clone()) else {
                    return self.refuse(
                        "a variable from elsewhere",
                        "the kernel's verifier lets none through",
                    );
                };
                let mut start = 0;
                for step in &place.path {
                    let component = match *step {
                        Step::Field(index) => Some(index),
                        Step::Index(index) => match self.one(index)? {
                            Arg::Other(Operand::Immediate(bits)) => u32::try_from(bits).ok(),
                            _ => None,
                        },
                    };
                    let Some((component, inner)) = component.and_then(|i| Some((i, ty.component(i)?))) else {
                        return self.refuse(
                            "an array of a lane's own with an index that varies",
                            "registers have no index: use memory of the block, or a buffer",
                        );
                    };
                    start += ty.leaf_start(component);
                    ty = inner;
                }
                return Ok(Found::Local(local.0, start, ty));
            }
            Base::Buffer(i) => (self.buffers.get(&i), "ldg", "stg"),
            Base::Shared(i) => (self.shared.get(&i), "lds", "sts"),
            Base::Constant(i) => (self.constants.get(&i), "ldc", "stg"),
        };
        let Some(memory) = memory.copied() else {
            return self.refuse(
                "a memory from elsewhere",
                "the kernel's verifier lets none through",
            );
        };
        let element = self.program.memories.get(usize::from(memory));
        let element = element.map_or(Scalar::U32, |memory| memory.element);
        let (first, offset) = match place.path.as_slice() {
            [] => (None, 0),
            [Step::Field(index)] => (None, i64::from(*index)),
            [Step::Index(index)] => {
                let ty = self.scalar_of(*index)?;
                match self.one(*index)? {
                    Arg::Other(Operand::Immediate(bits)) => match i64::try_from(bits) {
                        // A negative one is a large one here, and out of bounds as that.
                        Ok(offset) => (None, offset),
                        Err(_) => {
                            return self.refuse("a constant index out of bounds", "no memory is so long");
                        }
                    },
                    Arg::Other(Operand::Special(special)) => (Some(Part::Other(Index::Special(special))), 0),
                    Arg::Other(Operand::Parameter(number)) => {
                        (Some(Part::Other(Index::Parameter(number))), 0)
                    }
                    arg => (Some(Part::Register(self.in_register(arg, ty)?)), 0),
                }
            }
            _ => {
                return self.refuse(
                    "an element of an element",
                    "memories of programs hold scalars: compute one index",
                );
            }
        };
        let at = Arg::Place {
            memory,
            first,
            second: None,
            offset,
        };
        Ok(Found::Memory(at, element, load, store))
    }
}

fn special(builtin: Builtin) -> Special {
    match builtin {
        Builtin::ThreadIdx(axis) => Special::ThreadIdx(axis),
        Builtin::BlockIdx(axis) => Special::BlockIdx(axis),
        Builtin::BlockDim(axis) => Special::BlockDim(axis),
        Builtin::GridDim(axis) => Special::GridDim(axis),
        Builtin::SubgroupLane => Special::SubgroupLane,
        Builtin::SubgroupSize => Special::SubgroupSize,
    }
}
