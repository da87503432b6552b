//! The flat program of the interpreter, read back as a tree of constructs over values that are defined once, and
//! variables. Functions stand where they are called. Knows nothing of lanes or machines.

mod read;
mod simplify;

pub(super) use read::read;

use std::collections::HashMap;

use crate::interp::program::{AtomicAct, Code, Fill, Mask, Pc, Program, Reg};
use perpetua_ir::ir::{AtomicOp, Checks, DeviceOp, Scalar};
use perpetua_ir::ops::Gives;
use perpetua_ir::ops::{BinaryOp, TernaryOp, UnaryOp};

/// A value or variable, by index into [`Tree::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct V(pub(super) u32);

/// What a value is.
#[derive(Clone, Debug)]
pub(super) struct ValueInfo {
    /// Size of the scalar in bytes.
    pub(super) size: u32,
    /// Whether it is a `bool`.
    pub(super) bool: bool,
    /// Filled in by the launch: its number among the fills.
    pub(super) fill: Option<u32>,
    /// An element of an array of a lane that is reached by indices: the array, and its number there.
    pub(super) array: Option<(u32, u32)>,
    /// Written by assignments, in some lanes at a time.
    pub(super) variable: bool,
}

/// What an access to shared memory does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessKind {
    Load,
    Store,
    /// Atomic on one scalar.
    Atomic(Scalar, AtomicKind, perpetua_ir::ir::MemOrder),
    /// Four words at once.
    Words {
        stores: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicKind {
    Load,
    Store,
    Update(AtomicOp),
    CompareExchange,
}

/// An operation.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Unary(UnaryOp, Scalar, V),
    Binary(BinaryOp, Scalar, V, V),
    /// With the number of its first fault site.
    Divide(BinaryOp, Scalar, V, V, u32),
    Ternary(TernaryOp, Scalar, V, V, V),
    Cast(Scalar, Scalar, V),
    Move(V),
    Access {
        access: u32,
        kind: AccessKind,
        index: Vec<V>,
        values: Vec<V>,
    },
    PrivateLoad {
        place: u32,
        array: u32,
        index: Vec<V>,
    },
    PrivateStore {
        place: u32,
        array: u32,
        index: Vec<V>,
        values: Vec<V>,
    },
    Barrier,
    /// An exchange among the lanes of a subgroup; the type of what is exchanged.
    Exchange(DeviceOp, Scalar, Vec<V>),
    Fence,
    Clock,
    Print(u32, Vec<V>),
    Fault(u32, Vec<V>),
}

/// What lanes that leave a construct do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    Break,
    Continue,
}

/// A construct that lanes leave by name.
pub(super) type Frame = u32;

/// A piece of a tree. Positions count operations and ends of constructs in order of the text.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Op {
        pc: Pc,
        at: u32,
        act: Act,
        outs: Vec<V>,
    },
    If {
        at: u32,
        end: u32,
        condition: V,
        then: Vec<Node>,
        otherwise: Vec<Node>,
    },
    Switch {
        at: u32,
        end: u32,
        selector: V,
        size: u32,
        cases: Vec<(Vec<u64>, Vec<Node>)>,
        default: Vec<Node>,
    },
    Loop {
        at: u32,
        end: u32,
        frame: Frame,
        body: Vec<Node>,
    },
    Labeled {
        at: u32,
        end: u32,
        frame: Frame,
        body: Vec<Node>,
    },
    /// The kernel's own end where there is no frame.
    Leave {
        frame: Option<Frame>,
        how: Leaving,
    },
}

/// A kernel as a tree.
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) values: Vec<ValueInfo>,
    pub(super) frames: u32,
    /// Operations of the flat program that lanes choose by, by the positions of their constructs.
    pub(super) choices: HashMap<u32, Pc>,
    /// Arrays that are reached by indices: their elements.
    pub(super) arrays: Vec<Vec<V>>,
    /// Operations in all.
    pub(super) count: u32,
    /// Whether gangs wait for each other.
    pub(super) meets: bool,
    /// Whether it has exchanges among the lanes of subgroups.
    pub(super) exchanges: bool,
}

/// Calls `visit` on all nodes, those inside others too, in order.
pub(super) fn walk<'a>(nodes: &'a [Node], visit: &mut dyn FnMut(&'a Node)) {
    for node in nodes {
        visit(node);
        match node {
            Node::If { then, otherwise, .. } => {
                walk(then, visit);
                walk(otherwise, visit);
            }
            Node::Switch { cases, default, .. } => {
                cases.iter().for_each(|(_, body)| walk(body, visit));
                walk(default, visit);
            }
            Node::Loop { body, .. } | Node::Labeled { body, .. } => walk(body, visit),
            Node::Op { .. } | Node::Leave { .. } => {}
        }
    }
}

impl Act {
    /// Calls `visit` on each value that it reads.
    fn each_read(&mut self, visit: &mut dyn FnMut(&mut V)) {
        match self {
            Act::Unary(_, _, a) | Act::Cast(_, _, a) | Act::Move(a) => visit(a),
            Act::Binary(_, _, a, b) | Act::Divide(_, _, a, b, _) => [a, b].into_iter().for_each(visit),
            Act::Ternary(_, _, a, b, c) => [a, b, c].into_iter().for_each(visit),
            Act::Access { index, values, .. } | Act::PrivateStore { index, values, .. } => {
                index.iter_mut().chain(values).for_each(visit);
            }
            Act::PrivateLoad { index: all, .. }
            | Act::Print(_, all)
            | Act::Fault(_, all)
            | Act::Exchange(_, _, all) => {
                all.iter_mut().for_each(visit);
            }
            Act::Barrier | Act::Fence | Act::Clock => {}
        }
    }

    /// The values that it reads.
    pub(super) fn reads(&self) -> Vec<V> {
        match self {
            Act::Unary(_, _, a) | Act::Cast(_, _, a) | Act::Move(a) => vec![*a],
            Act::Binary(_, _, a, b) | Act::Divide(_, _, a, b, _) => vec![*a, *b],
            Act::Ternary(_, _, a, b, c) => vec![*a, *b, *c],
            Act::Access { index, values, .. } | Act::PrivateStore { index, values, .. } => {
                index.iter().chain(values).copied().collect()
            }
            Act::PrivateLoad { index, .. } => index.clone(),
            Act::Print(_, args) | Act::Fault(_, args) | Act::Exchange(_, _, args) => args.clone(),
            Act::Barrier | Act::Fence | Act::Clock => Vec::new(),
        }
    }
}

impl Tree {
    /// How often values are read.
    pub(super) fn reads(&self) -> Vec<u32> {
        let mut reads = vec![0; self.values.len()];
        walk(&self.nodes, &mut |node| match node {
            Node::Op { act, .. } => act.reads().iter().for_each(|v| reads[v.0 as usize] += 1),
            Node::If { condition: v, .. } | Node::Switch { selector: v, .. } => reads[v.0 as usize] += 1,
            Node::Loop { .. } | Node::Labeled { .. } | Node::Leave { .. } => {}
        });
        reads
    }

    /// Finds whether gangs meet.
    fn find_meetings(&mut self) {
        let (mut meets, mut exchanges) = (false, false);
        walk(&self.nodes, &mut |node| {
            if let Node::Op { act, .. } = node {
                exchanges |= matches!(act, Act::Exchange(..));
                meets |= matches!(act, Act::Exchange(..) | Act::Barrier);
            }
        });
        (self.meets, self.exchanges) = (meets, exchanges);
    }

    /// Finds the values that are `bool`s. (Registers say sizes alone; whoever uses a value as what it is not converts it.)
    fn bools(&mut self) {
        use crate::eval::result_scalar;
        let nodes = std::mem::take(&mut self.nodes);
        let mut moves = Vec::new();
        let values = &mut self.values;
        walk(&nodes, &mut |node| {
            let Node::Op { act, outs, .. } = node else { return };
            let result = match act {
                Act::Unary(op, s, _) => result_scalar(op.row().result, *s),
                Act::Binary(op, s, ..) | Act::Divide(op, s, ..) => result_scalar(op.row().result, *s),
                Act::Ternary(_, s, ..) => *s,
                Act::Cast(_, to, _) => *to,
                Act::Exchange(op, s, _) => match op.row().gives {
                    Gives::First => *s,
                    Gives::Exactly(s) => s,
                    Gives::Nothing | Gives::Array(..) => return,
                },
                Act::Move(from) => {
                    moves.push((*from, outs[0]));
                    return;
                }
                _ => return,
            };
            if result == Scalar::Bool {
                values[outs[0].0 as usize].bool = true;
            }
        });
        loop {
            let mut changed = false;
            for (from, to) in &moves {
                let of = values[from.0 as usize].bool;
                let to = &mut values[to.0 as usize];
                changed |= of && !to.bool && to.array.is_none();
                to.bool |= of && to.array.is_none();
            }
            if !changed {
                break;
            }
        }
        self.nodes = nodes;
    }
}
