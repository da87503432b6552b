//! Which values, variables and statements are the same for all lanes of a work-group, and which depend on memory
//! that lanes share. A may-analysis without regard to order within one body; knows nothing of faults.

use crate::ir::{
    Access, Base, Block, Body, Builtin, Effect, Inst, Kernel, LocalId, Op, Param, ParamKind, Place, Value,
};

/// Properties that spread from operands to results.
pub(super) type Flags = u8;
/// May differ between the lanes of a work-group.
pub(super) const DIVERGENT: Flags = 1;
/// May depend on memory that lanes write.
pub(super) const MEMORY: Flags = 2;

/// The analysis's result for one body.
pub(super) struct Uniformity {
    values: Vec<Flags>,
    locals: Vec<Flags>,
    /// By number of the statement in pre-order: flags of the control flow that it stands in.
    flow: Vec<Flags>,
    /// By number of a loop statement: flags of the conditions on which lanes leave it.
    exits: Vec<Flags>,
}

/// An escape from a block: level of the construct that it leaves or continues (0: the body), flags of the control
/// flow that it stands in, whether it continues.
type Escape = (usize, Flags, bool);

impl Uniformity {
    pub(super) fn of(kernel: &Kernel, body: &Body) -> Uniformity {
        let mut count = 0;
        body.block.walk(&mut |_| count += 1);
        let mut this = Uniformity {
            values: vec![0; body.values.len()],
            locals: vec![0; body.locals.len()],
            flow: vec![0; count],
            exits: vec![0; count],
        };
        loop {
            let mut walk = Walk {
                params: &kernel.params,
                state: &mut this,
                at: 0,
                changed: false,
            };
            walk.block(&body.block, 0, 0);
            if !walk.changed {
                return this;
            }
        }
    }

    /// Whether a value is the same for all lanes that compute it together.
    pub(super) fn value(&self, v: Value) -> bool {
        self.values.get(v.0 as usize).is_none_or(|f| f & DIVERGENT == 0)
    }

    /// Whether a variable is the same for all lanes at all times.
    pub(super) fn local(&self, id: LocalId) -> bool {
        self.locals.get(id.0 as usize).is_none_or(|f| f & DIVERGENT == 0)
    }

    /// Whether all lanes of a group come to this statement together.
    pub(super) fn flow(&self, statement: usize) -> bool {
        self.flow.get(statement).is_none_or(|f| f & DIVERGENT == 0)
    }

    /// Whether leaving this loop may depend on what lanes write to memory.
    pub(super) fn exit_depends_on_memory(&self, statement: usize) -> bool {
        self.exits.get(statement).is_some_and(|f| f & MEMORY != 0)
    }
}

struct Walk<'a> {
    params: &'a [Param],
    state: &'a mut Uniformity,
    at: usize,
    changed: bool,
}

impl Walk<'_> {
    fn raise(slot: Option<&mut Flags>, flags: Flags, changed: &mut bool) {
        if let Some(slot) = slot {
            *changed |= *slot | flags != *slot;
            *slot |= flags;
        }
    }

    fn place(&self, place: &Place) -> Flags {
        let base = match place.base {
            Base::Local(id) => self.state.locals.get(id.0 as usize).copied().unwrap_or(0),
            Base::Shared(_) => MEMORY,
            Base::Buffer(i) => match self.params.get(i as usize).map(|p| &p.kind) {
                Some(ParamKind::Buffer {
                    access: Access::Read, ..
                }) => 0,
                _ => MEMORY,
            },
            Base::Constant(_) => 0,
        };
        let mut flags = base;
        place.operands(&mut |v| flags |= self.value(v));
        flags
    }

    fn value(&self, v: Value) -> Flags {
        self.state.values.get(v.0 as usize).copied().unwrap_or(0)
    }

    fn op(&self, op: &Op) -> Flags {
        let mut of_operands = 0;
        op.operands(&mut |v| of_operands |= self.value(v));
        of_operands
            | match op {
                Op::Builtin(Builtin::ThreadIdx(_) | Builtin::SubgroupLane) | Op::IsDead => DIVERGENT,
                Op::Load(place, None) => self.place(place),
                Op::Load(_, Some(_)) | Op::Atomic(..) | Op::CompareExchange { .. } => DIVERGENT | MEMORY,
                Op::Subgroup(..) => DIVERGENT,
                _ => 0,
            }
    }

    fn block(&mut self, block: &Block, level: usize, flow: Flags) -> Vec<Escape> {
        let mut flow = flow;
        let mut escapes = Vec::new();
        for stmt in &block.0 {
            let at = self.at;
            self.at += 1;
            Self::raise(self.state.flow.get_mut(at), flow, &mut self.changed);
            let left = match &stmt.inst {
                Inst::Let(v, op) => {
                    let flags = self.op(op);
                    Self::raise(self.state.values.get_mut(v.0 as usize), flags, &mut self.changed);
                    Vec::new()
                }
                Inst::Do(Effect::Store(place, v, _)) => {
                    if let Base::Local(id) = place.base {
                        let flags = self.value(*v) | self.place(place) | flow;
                        Self::raise(self.state.locals.get_mut(id.0 as usize), flags, &mut self.changed);
                    }
                    Vec::new()
                }
                Inst::Do(_) => Vec::new(),
                Inst::If(cond, a, b) => {
                    let inner = flow | self.value(*cond);
                    let mut left = self.block(a, level, inner);
                    left.extend(self.block(b, level, inner));
                    left
                }
                Inst::Switch {
                    selector,
                    cases,
                    default,
                } => {
                    let inner = flow | self.value(*selector);
                    let mut left = Vec::new();
                    for (_, case) in cases {
                        left.extend(self.block(case, level, inner));
                    }
                    left.extend(self.block(default, level, inner));
                    left
                }
                Inst::Loop(body) => {
                    let known = self.state.exits.get(at).copied().unwrap_or(0);
                    let mut left = self.block(body, level + 1, flow | known);
                    let exits = left
                        .iter()
                        .filter(|(to, _, again)| !(*again && *to == level + 1))
                        .fold(0, |f, e| f | e.1);
                    Self::raise(self.state.exits.get_mut(at), exits, &mut self.changed);
                    left.retain(|(to, _, _)| *to <= level);
                    left
                }
                Inst::Labeled(body) => {
                    let mut left = self.block(body, level + 1, flow);
                    left.retain(|(to, _, _)| *to <= level);
                    left
                }
                Inst::Break(depth) => vec![(level.saturating_sub(*depth as usize), flow, false)],
                Inst::Continue(depth) => vec![(level.saturating_sub(*depth as usize), flow, true)],
                Inst::Return(_) => vec![(0, flow, false)],
            };
            // Lanes that left make what follows divergent if not all of them did.
            flow |= left.iter().fold(0, |f, e| f | e.1);
            escapes.extend(left);
        }
        escapes
    }
}
