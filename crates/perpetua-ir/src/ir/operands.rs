//! The values that statements read. Knows the shape of operations, not their types or meaning.

use super::{Effect, Inst, Op, Place, Step, Value};

/// Writes one visitor twice: over `&Value` by copy, and over `&mut Value`.
macro_rules! visitors {
    ($name:ident, [$($mut:tt)?], $value:ty, $pass:ident) => {
        impl Place {
            /// Calls `visit` on every index value of the path, outermost first.
            pub fn $name(&$($mut)? self, visit: &mut dyn FnMut($value)) {
                for step in &$($mut)? self.path {
                    if let Step::Index(v) = step {
                        visit($pass!(v));
                    }
                }
            }
        }

        impl Op {
            /// Calls `visit` on every value that the operation reads, indices of places included, in order.
            pub fn $name(&$($mut)? self, visit: &mut dyn FnMut($value)) {
                match self {
                    Op::Const(..) | Op::Zero(_) | Op::Param(_) | Op::Builtin(_) | Op::Len(..) => {}
                    Op::Unary(_, a) | Op::Cast(_, a) | Op::Bitcast(_, a) | Op::Extract(a, _) => visit($pass!(a)),
                    Op::Binary(_, a, b) | Op::Insert(a, _, b) => {
                        visit($pass!(a));
                        visit($pass!(b));
                    }
                    Op::Ternary(_, a, b, c) => {
                        visit($pass!(a));
                        visit($pass!(b));
                        visit($pass!(c));
                    }
                    Op::Compose(_, parts) | Op::Call(_, parts) | Op::Device(_, parts) => {
                        for v in parts {
                            visit($pass!(v));
                        }
                    }
                    Op::Load(place, _) => place.$name(visit),
                    Op::Atomic(_, place, v, _) => {
                        place.$name(visit);
                        visit($pass!(v));
                    }
                    Op::CompareExchange { place, expected, new, .. } => {
                        place.$name(visit);
                        visit($pass!(expected));
                        visit($pass!(new));
                    }
                }
            }
        }

        impl Effect {
            /// Calls `visit` on every value that the effect reads, indices of places included, in order.
            pub fn $name(&$($mut)? self, visit: &mut dyn FnMut($value)) {
                match self {
                    Effect::Store(place, v, _) => {
                        place.$name(visit);
                        visit($pass!(v));
                    }
                    Effect::Device(_, args)
                    | Effect::Print(_, args)
                    | Effect::Fault(.., args)
                    | Effect::Panic(_, args) => {
                        for v in args {
                            visit($pass!(v));
                        }
                    }
                }
            }
        }

        impl Inst {
            /// Calls `visit` on every value that the statement itself reads (not what is inside its blocks).
            pub fn $name(&$($mut)? self, visit: &mut dyn FnMut($value)) {
                match self {
                    Inst::Let(_, op) => op.$name(visit),
                    Inst::Do(effect) => effect.$name(visit),
                    Inst::If(v, ..) | Inst::Switch { selector: v, .. } | Inst::Return(Some(v)) => visit($pass!(v)),
                    Inst::Loop(_) | Inst::Labeled(_) | Inst::Break(_) | Inst::Continue(_) | Inst::Return(None) => {}
                }
            }
        }
    };
}

macro_rules! copied {
    ($v:ident) => {
        *$v
    };
}

macro_rules! itself {
    ($v:ident) => {
        $v
    };
}

visitors!(operands, [], Value, copied);
visitors!(operands_mut, [mut], &mut Value, itself);

impl Op {
    /// The place that the operation reads or changes, if it touches memory.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Op::Load(place, _) | Op::Atomic(_, place, ..) | Op::CompareExchange { place, .. } => Some(place),
            _ => None,
        }
    }

    /// The place that the operation reads or changes, to change it.
    pub fn place_mut(&mut self) -> Option<&mut Place> {
        match self {
            Op::Load(place, _) | Op::Atomic(_, place, ..) | Op::CompareExchange { place, .. } => Some(place),
            _ => None,
        }
    }
}

impl Effect {
    /// The place that the effect changes, to change it.
    pub fn place_mut(&mut self) -> Option<&mut Place> {
        match self {
            Effect::Store(place, ..) => Some(place),
            _ => None,
        }
    }
}

impl Inst {
    /// Whether control never passes on to the statement after this one: `break`, `continue` and `return`.
    pub fn is_terminator(&self) -> bool {
        matches!(self, Inst::Break(_) | Inst::Continue(_) | Inst::Return(_))
    }
}
