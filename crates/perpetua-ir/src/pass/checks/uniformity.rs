//! Which values, variables and statements are the same for all lanes of a work-group. A may-analysis without regard
//! to order within one body, by the verifier's rules: what barriers need to be uniform is so here. Of buffers only those
//! are constant that every launch keeps so, which the verifier has told. Knows nothing of faults.

use crate::ir::{Base, Block, Body, Builtin, Effect, Inst, LocalId, Op, Place, Value};

/// The analysis's result for one body.
pub(super) struct Uniformity {
    /// Whether each value may differ between the lanes of a work-group.
    values: Vec<bool>,
    /// Likewise each variable.
    locals: Vec<bool>,
    /// By number of the statement in pre-order: whether lanes may come to it apart.
    flow: Vec<bool>,
    /// By number of a loop statement: whether lanes may leave it apart.
    exits: Vec<bool>,
}

/// An escape from a block: level of the construct that it leaves or continues (0: the body), whether it stands in
/// divergent flow, whether it continues.
type Escape = (usize, bool, bool);

impl Uniformity {
    /// `constant`: [`Verified::constant_buffers`](crate::verify::Verified::constant_buffers).
    pub(super) fn of(constant: &[u32], body: &Body) -> Uniformity {
        let mut count = 0;
        body.block.walk(&mut |_| count += 1);
        let mut this = Uniformity {
            values: vec![false; body.values.len()],
            locals: vec![false; body.locals.len()],
            flow: vec![false; count],
            exits: vec![false; count],
        };
        loop {
            let mut walk = Walk {
                constant,
                state: &mut this,
                at: 0,
                changed: false,
            };
            walk.block(&body.block, 0, false);
            if !walk.changed {
                return this;
            }
        }
    }

    /// Whether a value is the same for all lanes that compute it together.
    pub(super) fn value(&self, v: Value) -> bool {
        self.values.get(v.0 as usize).is_none_or(|divergent| !divergent)
    }

    /// Whether a variable is the same for all lanes at all times.
    pub(super) fn local(&self, id: LocalId) -> bool {
        self.locals.get(id.0 as usize).is_none_or(|divergent| !divergent)
    }

    /// Whether all lanes of a group come to this statement together.
    pub(super) fn flow(&self, statement: usize) -> bool {
        self.flow.get(statement).is_none_or(|divergent| !divergent)
    }
}

struct Walk<'a> {
    constant: &'a [u32],
    state: &'a mut Uniformity,
    at: usize,
    changed: bool,
}

impl Walk<'_> {
    fn raise(slot: Option<&mut bool>, flags: bool, changed: &mut bool) {
        if let Some(slot) = slot {
            *changed |= *slot | flags != *slot;
            *slot |= flags;
        }
    }

    fn place(&self, place: &Place) -> bool {
        let base = match place.base {
            Base::Local(id) => self.state.locals.get(id.0 as usize).copied().unwrap_or(false),
            Base::Shared(_) => true,
            Base::Buffer(i) => !self.constant.contains(&i),
            Base::Constant(_) => false,
        };
        let mut flags = base;
        place.operands(&mut |v| flags |= self.value(v));
        flags
    }

    fn value(&self, v: Value) -> bool {
        self.state.values.get(v.0 as usize).copied().unwrap_or(false)
    }

    fn op(&self, op: &Op) -> bool {
        let mut of_operands = false;
        op.operands(&mut |v| of_operands |= self.value(v));
        of_operands
            | match op {
                Op::Builtin(Builtin::ThreadIdx(_) | Builtin::SubgroupLane)
                | Op::IsDead
                | Op::Clock
                | Op::CatchFault(_) => true,
                Op::Load(place, None) => self.place(place),
                Op::Load(_, Some(_)) | Op::Atomic(..) | Op::CompareExchange { .. } | Op::Subgroup(..) => true,
                _ => false,
            }
    }

    fn block(&mut self, block: &Block, level: usize, flow: bool) -> Vec<Escape> {
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
                    let known = self.state.exits.get(at).copied().unwrap_or(false);
                    let mut left = self.block(body, level + 1, flow | known);
                    let exits = left
                        .iter()
                        .filter(|(to, _, again)| !(*again && *to == level + 1))
                        .any(|e| e.1);
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
            flow |= left.iter().any(|e| e.1);
            escapes.extend(left);
        }
        escapes
    }
}
