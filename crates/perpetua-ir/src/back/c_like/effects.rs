//! What operations and functions do besides giving a value: what they read, what they write, what they need from their
//! surroundings. Decides what may move and what functions are passed behind the scenes.

use std::collections::BTreeSet;

use super::expr::Reads;
use crate::back::Capability;
use crate::ir::{Base, Block, Builtin, DeviceOp, Effect, Inst, Kernel, MemOrder, Op, Place};
use crate::ops::Orders;

/// What a function does to memory, calls included. Its own variables do not count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    pub(crate) reads: Reads,
    pub(crate) writes: Reads,
    /// Does something beyond memory, or must stay where it is among the lanes: barriers, subgroup operations, printing.
    pub(crate) acts: bool,
}

/// Everything, for what orders all memory.
fn all_shared_memory() -> Reads {
    Reads {
        buffers: true,
        shared: true,
        ..Reads::default()
    }
}

fn base_reads(base: Base) -> Reads {
    match base {
        Base::Buffer(_) => Reads {
            buffers: true,
            ..Reads::default()
        },
        Base::Shared(_) => Reads {
            shared: true,
            ..Reads::default()
        },
        Base::Local(id) => Reads {
            locals: vec![id.0],
            ..Reads::default()
        },
        Base::Constant(_) => Reads::default(),
    }
}

/// What an operation reads itself (not its operands).
pub(crate) fn op_reads(op: &Op, functions: &[Effects]) -> Reads {
    match op {
        Op::Load(place, _) => base_reads(place.base),
        Op::Call(f, _) => functions
            .get(*f as usize)
            .map(|e| e.reads.clone())
            .unwrap_or_default(),
        Op::Device(op, _) => Reads {
            dead: matches!(op.row().orders, Orders::ReadsFault | Orders::TakesFault),
            ..Reads::default()
        },
        _ => Reads::default(),
    }
}

/// What an operation of the device writes, or orders so that reads must not pass it.
fn device_writes(op: DeviceOp) -> Reads {
    match op.row().orders {
        Orders::Memory => all_shared_memory(),
        Orders::TakesFault => Reads {
            dead: true,
            ..Reads::default()
        },
        Orders::Nothing | Orders::ReadsFault => Reads::default(),
    }
}

/// What an operation writes, or orders so that reads must not pass it.
pub(crate) fn op_writes(op: &Op, functions: &[Effects]) -> Reads {
    match op {
        Op::Load(_, Some(sync)) if sync.order != MemOrder::Relaxed => all_shared_memory(),
        Op::Atomic(_, place, _, sync) | Op::CompareExchange { place, sync, .. } => {
            if sync.order == MemOrder::Relaxed {
                base_reads(place.base)
            } else {
                all_shared_memory()
            }
        }
        Op::Call(f, _) => functions
            .get(*f as usize)
            .map(|e| e.writes.clone())
            .unwrap_or_default(),
        Op::Device(op, _) => device_writes(*op),
        _ => Reads::default(),
    }
}

fn effect_writes(effect: &Effect) -> Reads {
    match effect {
        Effect::Store(place, _, sync) => match sync {
            Some(s) if s.order != MemOrder::Relaxed => all_shared_memory(),
            _ => base_reads(place.base),
        },
        Effect::Device(op, _) => device_writes(*op),
        Effect::Print(..) => Reads::default(),
        Effect::Fault(..) | Effect::Panic(..) => Reads {
            dead: true,
            ..Reads::default()
        },
    }
}

/// Whether the operation does nothing but give its value.
pub(crate) fn is_pure(op: &Op, functions: &[Effects]) -> bool {
    match op {
        Op::Load(_, sync) => sync.is_none(),
        Op::Atomic(..) | Op::CompareExchange { .. } => false,
        Op::Device(op, _) => op.row().pure,
        Op::Call(f, _) => functions
            .get(*f as usize)
            .is_some_and(|e| !e.acts && e.writes.is_empty()),
        _ => true,
    }
}

/// What a statement writes, blocks inside it included.
pub(crate) fn writes(inst: &Inst, functions: &[Effects]) -> Reads {
    let mut out = match inst {
        Inst::Let(_, op) => op_writes(op, functions),
        Inst::Do(effect) => effect_writes(effect),
        _ => Reads::default(),
    };
    for b in inst.blocks() {
        b.walk(&mut |stmt| match &stmt.inst {
            Inst::Let(_, op) => out.add(&op_writes(op, functions)),
            Inst::Do(effect) => out.add(&effect_writes(effect)),
            _ => {}
        });
    }
    out
}

/// The effects of every function of a kernel, in order.
pub(crate) fn of_functions(kernel: &Kernel) -> Vec<Effects> {
    let mut all: Vec<Effects> = Vec::with_capacity(kernel.functions.len());
    for f in &kernel.functions {
        let mut e = Effects::default();
        f.body.block.walk(&mut |stmt| {
            let w = writes(&stmt.inst, &all);
            e.writes.add(&w);
            match &stmt.inst {
                Inst::Let(_, op) => {
                    e.reads.add(&op_reads(op, &all));
                    e.acts |= match op {
                        Op::Load(_, sync) => sync.is_some(),
                        Op::Device(op, _) => !op.row().pure,
                        _ => false,
                    };
                    if let Op::Call(f, _) = op {
                        e.acts |= all.get(*f as usize).is_some_and(|e| e.acts);
                    }
                }
                Inst::Do(effect) => {
                    e.acts |= !matches!(effect, Effect::Store(..) | Effect::Fault(..) | Effect::Panic(..));
                }
                _ => {}
            }
        });
        e.reads.locals.clear();
        e.writes.locals.clear();
        all.push(e);
    }
    all
}

/// What code takes from its surroundings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Buffer parameters whose elements are touched.
    pub(crate) buffers: BTreeSet<u32>,
    /// Buffer parameters whose lengths are asked for.
    pub(crate) lengths: BTreeSet<u32>,
    /// Value parameters.
    pub(crate) params: BTreeSet<u32>,
    /// Number of elements of the dynamic one.
    pub(crate) shared_length: bool,
    pub(crate) thread_idx: bool,
    pub(crate) block_idx: bool,
    pub(crate) block_dim: bool,
    pub(crate) grid_dim: bool,
    pub(crate) lane: bool,
    pub(crate) subgroup_size: bool,
    /// Reads or sets the lane's fault flag.
    pub(crate) dead: bool,
    /// Reports faults.
    pub(crate) fault: bool,
    /// Prints.
    pub(crate) print: bool,
}

impl Needs {
    fn add(&mut self, other: &Needs) {
        self.buffers.extend(&other.buffers);
        self.lengths.extend(&other.lengths);
        self.params.extend(&other.params);
        self.shared_length |= other.shared_length;
        self.thread_idx |= other.thread_idx;
        self.block_idx |= other.block_idx;
        self.block_dim |= other.block_dim;
        self.grid_dim |= other.grid_dim;
        self.lane |= other.lane;
        self.subgroup_size |= other.subgroup_size;
        self.dead |= other.dead;
        self.fault |= other.fault;
        self.print |= other.print;
    }

    fn place(&mut self, place: &Place) {
        match place.base {
            Base::Buffer(i) => {
                self.buffers.insert(i);
            }
            Base::Shared(_) | Base::Local(_) | Base::Constant(_) => {}
        }
    }

    fn op(&mut self, op: &Op) {
        if let Some(place) = op.place() {
            self.place(place);
        }
        match op {
            Op::Param(i) => {
                self.params.insert(*i);
            }
            Op::Len(Base::Buffer(i), _) => {
                self.lengths.insert(*i);
            }
            Op::Len(..) => self.shared_length = true,
            Op::Builtin(b) => match b {
                Builtin::ThreadIdx(_) => self.thread_idx = true,
                Builtin::BlockIdx(_) => self.block_idx = true,
                Builtin::BlockDim(_) => self.block_dim = true,
                Builtin::GridDim(_) => self.grid_dim = true,
                Builtin::SubgroupLane => self.lane = true,
                Builtin::SubgroupSize => self.subgroup_size = true,
            },
            Op::Device(op, _) => self.device(*op),
            _ => {}
        }
    }

    fn device(&mut self, op: DeviceOp) {
        let row = op.row();
        // Shuffles reckon with lanes; what they need beyond that is the dialect's.
        if row.needs == Some(Capability::Subgroups) {
            self.lane = true;
            self.subgroup_size = true;
        }
        self.dead |= row.orders == Orders::ReadsFault;
    }

    fn effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Store(place, ..) => self.place(place),
            Effect::Fault(..) | Effect::Panic(..) => {
                self.fault = true;
                self.thread_idx = true;
                self.block_idx = true;
            }
            Effect::Print(..) => self.print = true,
            Effect::Device(op, _) => self.device(*op),
        }
    }

    /// Where somebody asks whether the lane is dead, what reports a fault must say so.
    fn marking_dead(mut self, asked: bool) -> Needs {
        self.dead |= asked && self.fault;
        self
    }

    /// What `block` itself needs, calls not counted.
    fn direct(block: &Block) -> Needs {
        let mut needs = Needs::default();
        block.walk(&mut |stmt| match &stmt.inst {
            Inst::Let(_, op) => needs.op(op),
            Inst::Do(effect) => needs.effect(effect),
            _ => {}
        });
        needs
    }

    /// What `block` needs, given the needs of the functions that it may call. `asked`: whether the kernel asks for
    /// dead lanes anywhere.
    pub(crate) fn of(block: &Block, functions: &[Needs], asked: bool) -> Needs {
        let mut needs = Needs::direct(block);
        block.walk(&mut |stmt| {
            if let Inst::Let(_, Op::Call(f, _)) = &stmt.inst
                && let Some(called) = functions.get(*f as usize)
            {
                needs.add(called);
            }
        });
        needs.marking_dead(asked)
    }

    /// The needs of every function of a kernel, in order.
    pub(crate) fn of_functions(kernel: &Kernel, asked: bool) -> Vec<Needs> {
        let mut all = Vec::with_capacity(kernel.functions.len());
        for f in &kernel.functions {
            let needs = Needs::of(&f.body.block, &all, asked);
            all.push(needs);
        }
        all
    }
}
