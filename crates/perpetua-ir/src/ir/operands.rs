//! The values that statements read. Knows the shape of operations, not their types or meaning.

use super::kernel::{Effect, Inst, Op, Place, Step, Value};

impl Place {
    /// Calls `visit` on every index value of the path, outermost first.
    pub fn operands(&self, visit: &mut dyn FnMut(Value)) {
        for step in &self.path {
            if let Step::Index(v) = step {
                visit(*v);
            }
        }
    }
}

impl Op {
    /// Calls `visit` on every value that the operation reads, indices of places included, in order.
    pub fn operands(&self, visit: &mut dyn FnMut(Value)) {
        match self {
            Op::Const(..) | Op::Zero(_) | Op::Param(_) | Op::Builtin(_) | Op::Len(..) | Op::IsDead => {}
            Op::Unary(_, a) | Op::Cast(_, a) | Op::Bitcast(_, a) | Op::Extract(a, _) => visit(*a),
            Op::Binary(_, a, b) | Op::Insert(a, _, b) => {
                visit(*a);
                visit(*b);
            }
            Op::Ternary(_, a, b, c) => {
                visit(*a);
                visit(*b);
                visit(*c);
            }
            Op::Compose(_, parts) | Op::Call(_, parts) => parts.iter().copied().for_each(visit),
            Op::Load(place, _) => place.operands(visit),
            Op::Atomic(_, place, v, _) => {
                place.operands(visit);
                visit(*v);
            }
            Op::CompareExchange {
                place, expected, new, ..
            } => {
                place.operands(visit);
                visit(*expected);
                visit(*new);
            }
            Op::Subgroup(_, v, arg) => {
                visit(*v);
                arg.iter().copied().for_each(visit);
            }
        }
    }

    /// The place that the operation reads or changes, if it touches memory.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Op::Load(place, _) | Op::Atomic(_, place, ..) | Op::CompareExchange { place, .. } => Some(place),
            _ => None,
        }
    }
}

impl Effect {
    /// Calls `visit` on every value that the effect reads, indices of places included, in order.
    pub fn operands(&self, visit: &mut dyn FnMut(Value)) {
        match self {
            Effect::Store(place, v, _) => {
                place.operands(visit);
                visit(*v);
            }
            Effect::Barrier | Effect::Fence(_) => {}
            Effect::Print(_, args) | Effect::Fault(_, args) => args.iter().copied().for_each(visit),
        }
    }
}

impl Inst {
    /// Calls `visit` on every value that the statement itself reads (not what is inside its blocks).
    pub fn operands(&self, visit: &mut dyn FnMut(Value)) {
        match self {
            Inst::Let(_, op) => op.operands(visit),
            Inst::Do(effect) => effect.operands(visit),
            Inst::If(v, ..) | Inst::Switch { selector: v, .. } | Inst::Return(Some(v)) => visit(*v),
            Inst::Loop(_) | Inst::Labeled(_) | Inst::Break(_) | Inst::Continue(_) | Inst::Return(None) => {}
        }
    }

    /// Whether control never passes on to the statement after this one: `break`, `continue` and `return`.
    pub fn is_terminator(&self) -> bool {
        matches!(self, Inst::Break(_) | Inst::Continue(_) | Inst::Return(_))
    }
}
