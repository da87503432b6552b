//! What is known about integer values at the present point of a body: value numbers, bounds and comparisons that
//! hold there. Proves checks superfluous; knows nothing of how checks are written.
//!
//! A number stands for a mathematical value, so `i` and `i as u64` share one when the cast keeps the value. Facts
//! are scoped: they are rolled back at the end of the block in which they were learned. A variable's content is
//! forgotten where control flow joins or repeats.

mod prove;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::ir::{Base, Block, Builtin, Effect, Inst, LocalId, Op, Place, Scalar, Step, Type, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

use super::found::Proof;
use prove::{greatest, integer, least};

/// A value number.
pub(super) type Number = u32;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// A constant integer or `bool`.
    Int(i128),
    /// Something of which nothing is known.
    Opaque(u32),
    Len(Base, Scalar),
    Builtin(Builtin),
    Param(u32),
    Unary(UnaryOp, Scalar, Number),
    Binary(BinaryOp, Scalar, Number, Number),
    Select(Number, Number, Number),
    Cast(Scalar, Scalar, Number),
    Extract(Number, u32),
    /// Part of a variable: the number of its whole content and the path.
    Part(Number, Vec<PathKey>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PathKey {
    Field(u32),
    Index(Number),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Fact {
    Less(Number, Number),
    NonNegative(Number),
    NonZero(Number),
}

enum Undo {
    Fact(Fact),
    Bound(Number, Option<i128>),
}

/// The number of what each variable holds.
pub(super) type Contents = Vec<Number>;

const UNKNOWN: Number = Number::MAX;

/// How deep proofs follow operands.
const DEPTH: u32 = 8;

pub(super) struct Known {
    block_size: Option<[u32; 3]>,
    /// Types of the source's values; parameters of functions have no definition that tells.
    types: Vec<Option<Scalar>>,
    keys: Vec<Key>,
    /// The scalar type of each number, where it is a scalar.
    scalars: Vec<Option<Scalar>>,
    table: HashMap<Key, Number>,
    /// By value, and by variable; [`UNKNOWN`] where nothing was noted.
    values: Vec<Number>,
    contents: Contents,
    /// With what has shown them.
    facts: HashMap<Fact, Proof>,
    /// Inclusive upper bounds learned from comparisons with constants.
    bounds: HashMap<Number, i128>,
    log: Vec<Undo>,
    /// What shows the facts that are learned now.
    shown: Proof,
}

impl Known {
    /// Knows nothing yet of a body with values of these types and so many variables.
    pub(super) fn new(block_size: Option<[u32; 3]>, types: &[Type], locals: usize) -> Known {
        Known {
            types: types.iter().map(Type::as_scalar).collect(),
            block_size,
            keys: Vec::new(),
            scalars: Vec::new(),
            table: HashMap::new(),
            values: vec![UNKNOWN; types.len()],
            contents: vec![UNKNOWN; locals],
            facts: HashMap::new(),
            shown: Proof::Compared(0),
            bounds: HashMap::new(),
            log: Vec::new(),
        }
    }

    fn number(&mut self, key: Key, scalar: Option<Scalar>) -> Number {
        if let Some(n) = self.table.get(&key) {
            return *n;
        }
        let n = self.keys.len() as Number;
        self.keys.push(key.clone());
        self.scalars.push(scalar);
        self.table.insert(key, n);
        n
    }

    fn opaque(&mut self, scalar: Option<Scalar>) -> Number {
        let id = self.keys.len() as u32;
        self.number(Key::Opaque(id), scalar)
    }

    pub(super) fn int(&mut self, value: i128) -> Number {
        self.number(Key::Int(value), None)
    }

    pub(super) fn len(&mut self, base: Base) -> Number {
        self.number(Key::Len(base, Scalar::U64), Some(Scalar::U64))
    }

    pub(super) fn of(&mut self, v: Value) -> Number {
        match self.values.get(v.0 as usize) {
            Some(n) if *n != UNKNOWN => *n,
            _ => {
                let n = self.opaque(self.types.get(v.0 as usize).copied().flatten());
                self.note(v, n);
                n
            }
        }
    }

    fn note(&mut self, v: Value, n: Number) {
        let at = v.0 as usize;
        // The pass adds values as it goes.
        if at >= self.values.len() {
            self.values.resize(at + 1, UNKNOWN);
        }
        if let Some(slot) = self.values.get_mut(at) {
            *slot = n;
        }
    }

    fn hold(&mut self, id: LocalId, n: Number) {
        if let Some(slot) = self.contents.get_mut(id.0 as usize) {
            *slot = n;
        }
    }

    /// The constant that a value is, if it is one.
    pub(super) fn constant(&mut self, v: Value) -> Option<i128> {
        let n = self.of(v);
        match self.keys.get(n as usize) {
            Some(Key::Int(c)) => Some(*c),
            _ => None,
        }
    }

    /// Notes what `v` is.
    pub(super) fn define(&mut self, v: Value, op: &Op, types: &[Type]) {
        let scalar = types.get(v.0 as usize).and_then(Type::as_scalar);
        let type_of = |v: &Value| types.get(v.0 as usize).and_then(Type::as_scalar);
        let n = match op {
            Op::Const(s, bits) if s.is_int() || *s == Scalar::Bool => self.int(integer(*s, *bits)),
            Op::Zero(Type::Scalar(s)) if s.is_int() || *s == Scalar::Bool => self.int(0),
            Op::Param(i) => self.number(Key::Param(*i), scalar),
            Op::Builtin(Builtin::BlockDim(axis)) if self.block_size.is_some() => {
                let size = self.block_extent(*axis).unwrap_or(0);
                self.int(size)
            }
            Op::Builtin(b) => self.number(Key::Builtin(*b), scalar),
            Op::Len(base, s) => self.number(Key::Len(*base, *s), scalar),
            Op::Unary(op, a) => match type_of(a) {
                Some(s) => {
                    let a = self.of(*a);
                    self.number(Key::Unary(*op, s, a), scalar)
                }
                None => self.opaque(scalar),
            },
            Op::Binary(op, a, b) => match type_of(a) {
                Some(s) => {
                    let (a, b) = (self.of(*a), self.of(*b));
                    self.binary(*op, s, a, b, scalar)
                }
                None => self.opaque(scalar),
            },
            Op::Ternary(TernaryOp::Select, c, a, b) => {
                let (c, a, b) = (self.of(*c), self.of(*a), self.of(*b));
                self.number(Key::Select(c, a, b), scalar)
            }
            Op::Cast(to, a) => match type_of(a) {
                Some(from) => {
                    let a = self.of(*a);
                    if self.keeps_value(from, *to, a) {
                        a
                    } else {
                        self.number(Key::Cast(from, *to, a), scalar)
                    }
                }
                None => self.opaque(scalar),
            },
            Op::Extract(a, i) => {
                let a = self.of(*a);
                self.number(Key::Extract(a, *i), scalar)
            }
            Op::Load(place, None) => self.load(place, scalar),
            _ => self.opaque(scalar),
        };
        self.note(v, n);
    }

    /// Notes that nothing is known of `v`.
    pub(super) fn define_opaque(&mut self, v: Value, types: &[Type]) {
        let scalar = types.get(v.0 as usize).and_then(Type::as_scalar);
        let n = self.opaque(scalar);
        self.note(v, n);
    }

    fn binary(&mut self, op: BinaryOp, s: Scalar, a: Number, b: Number, scalar: Option<Scalar>) -> Number {
        // Constant arithmetic that cannot wrap; enough for strides and offsets.
        if let (Some(Key::Int(x)), Some(Key::Int(y)), true) =
            (self.keys.get(a as usize), self.keys.get(b as usize), s.is_int())
        {
            let folded = match op {
                BinaryOp::Add => x.checked_add(*y),
                BinaryOp::Sub => x.checked_sub(*y),
                BinaryOp::Mul => x.checked_mul(*y),
                _ => None,
            };
            if let Some(c) = folded.filter(|c| *c >= least(s) && *c <= greatest(s)) {
                return self.int(c);
            }
        }
        self.number(Key::Binary(op, s, a, b), scalar)
    }

    fn load(&mut self, place: &Place, scalar: Option<Scalar>) -> Number {
        let Base::Local(id) = place.base else {
            return self.opaque(scalar);
        };
        let whole = match self.contents.get(id.0 as usize) {
            Some(n) if *n != UNKNOWN => *n,
            _ => {
                let n = self.opaque(if place.path.is_empty() { scalar } else { None });
                self.hold(id, n);
                n
            }
        };
        if place.path.is_empty() {
            return whole;
        }
        let path = place
            .path
            .iter()
            .map(|step| match step {
                Step::Field(i) => PathKey::Field(*i),
                Step::Index(v) => PathKey::Index(self.of(*v)),
            })
            .collect();
        self.number(Key::Part(whole, path), scalar)
    }

    /// Notes a store.
    pub(super) fn store(&mut self, place: &Place, v: Value) {
        if let Base::Local(id) = place.base {
            let n = if place.path.is_empty() {
                self.of(v)
            } else {
                self.opaque(None)
            };
            self.hold(id, n);
        }
    }

    /// Forgets the variables that `block` stores to.
    pub(super) fn forget_stored(&mut self, block: &Block) {
        block.walk(&mut |stmt| {
            if let Inst::Do(Effect::Store(place, ..)) = &stmt.inst
                && let Base::Local(id) = place.base
            {
                self.hold(id, UNKNOWN);
            }
        });
    }

    /// Contents of the variables now, to join with another branch's.
    pub(super) fn contents(&self) -> Contents {
        self.contents.clone()
    }

    pub(super) fn set_contents(&mut self, contents: Contents) {
        self.contents = contents;
    }

    /// Joins the contents after a branch on `cond`: where the branches differ, a `bool` may still be a short-circuit
    /// `cond && b` or `cond || b`.
    pub(super) fn join(&mut self, cond: Value, then: Contents, otherwise: &Contents) {
        let cond = self.of(cond);
        self.contents = then;
        for (i, &b) in otherwise.iter().enumerate() {
            let a = self.contents.get(i).copied().unwrap_or(UNKNOWN);
            if a == b {
                continue;
            }
            let joined = if a != UNKNOWN && b != UNKNOWN && self.is_bool(a) && self.is_bool(b) {
                self.number(Key::Select(cond, a, b), Some(Scalar::Bool))
            } else {
                UNKNOWN
            };
            self.hold(LocalId(i as u32), joined);
        }
    }

    fn is_bool(&self, n: Number) -> bool {
        self.scalars.get(n as usize).copied().flatten() == Some(Scalar::Bool)
            || self.is_int(n, 0)
            || self.is_int(n, 1)
    }

    /// A mark for [`Known::roll_back`].
    pub(super) fn mark(&self) -> usize {
        self.log.len()
    }

    /// Forgets the facts learned since the mark.
    pub(super) fn roll_back(&mut self, mark: usize) {
        while self.log.len() > mark {
            match self.log.pop() {
                Some(Undo::Fact(fact)) => {
                    self.facts.remove(&fact);
                }
                Some(Undo::Bound(n, Some(old))) => {
                    self.bounds.insert(n, old);
                }
                Some(Undo::Bound(n, None)) => {
                    self.bounds.remove(&n);
                }
                None => break,
            }
        }
    }

    fn learn(&mut self, fact: Fact) {
        if let Entry::Vacant(entry) = self.facts.entry(fact) {
            entry.insert(self.shown);
            self.log.push(Undo::Fact(fact));
        }
    }

    /// Learns that a condition holds, or that it does not; by a statement in this line.
    pub(super) fn assume(&mut self, cond: Value, holds: bool, line: u32) {
        self.shown = Proof::Compared(line);
        let cond = self.of(cond);
        self.assume_number(cond, holds, DEPTH);
    }

    fn assume_number(&mut self, cond: Number, holds: bool, depth: u32) {
        let Some(key) = self.keys.get(cond as usize).cloned() else {
            return;
        };
        if depth == 0 {
            return;
        }
        match key {
            Key::Unary(UnaryOp::Not, Scalar::Bool, a) => self.assume_number(a, !holds, depth - 1),
            Key::Binary(BinaryOp::And, Scalar::Bool, a, b) if holds => {
                self.assume_number(a, true, depth - 1);
                self.assume_number(b, true, depth - 1);
            }
            Key::Binary(BinaryOp::Or, Scalar::Bool, a, b) if !holds => {
                self.assume_number(a, false, depth - 1);
                self.assume_number(b, false, depth - 1);
            }
            Key::Select(c, a, b) => {
                // `c ? a : b` holds and `b` cannot hold: so `c` and `a` hold; and so on.
                let impossible = |n: Number| match self.keys.get(n as usize) {
                    Some(Key::Int(v)) => (*v != 0) != holds,
                    _ => false,
                };
                if impossible(b) {
                    self.assume_number(c, true, depth - 1);
                    self.assume_number(a, holds, depth - 1);
                } else if impossible(a) {
                    self.assume_number(c, false, depth - 1);
                    self.assume_number(b, holds, depth - 1);
                }
            }
            Key::Binary(op, s, a, b) if s.is_int() => match (op, holds) {
                (BinaryOp::Lt, true) | (BinaryOp::Ge, false) => self.less(a, b, depth),
                (BinaryOp::Gt, true) | (BinaryOp::Le, false) => self.less(b, a, depth),
                (BinaryOp::Le, true) | (BinaryOp::Gt, false) => self.at_most(a, b),
                (BinaryOp::Ge, true) | (BinaryOp::Lt, false) => self.at_most(b, a),
                (BinaryOp::Ne, true) | (BinaryOp::Eq, false) => {
                    if self.is_int(b, 0) {
                        self.learn(Fact::NonZero(a));
                    } else if self.is_int(a, 0) {
                        self.learn(Fact::NonZero(b));
                    }
                }
                (BinaryOp::Eq, true) | (BinaryOp::Ne, false) => {
                    self.at_most(a, b);
                    self.at_most(b, a);
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn is_int(&self, n: Number, value: i128) -> bool {
        matches!(self.keys.get(n as usize), Some(Key::Int(v)) if *v == value)
    }

    fn at_most(&mut self, a: Number, b: Number) {
        if let Some(Key::Int(c)) = self.keys.get(a as usize) {
            let c = *c;
            if c >= 0 {
                self.learn(Fact::NonNegative(b));
            }
            if c >= 1 {
                self.learn(Fact::NonZero(b));
            }
        }
        if let Some(Key::Int(c)) = self.keys.get(b as usize) {
            let c = *c;
            self.bound(a, c);
            if c < 0 {
                self.learn(Fact::NonZero(a));
            }
        }
    }

    fn bound(&mut self, n: Number, most: i128) {
        let old = self.bounds.get(&n).copied();
        if old.is_none_or(|old| most < old) {
            self.bounds.insert(n, most);
            self.log.push(Undo::Bound(n, old));
        }
    }

    fn less(&mut self, a: Number, b: Number, depth: u32) {
        self.learn(Fact::Less(a, b));
        let non_negative = self.non_negative(a, depth);
        if non_negative {
            self.learn(Fact::NonNegative(b));
            self.learn(Fact::NonZero(b));
        }
        match self.keys.get(b as usize).cloned() {
            Some(Key::Int(c)) => self.bound(a, c - 1),
            // A length counted in 32 bits is not above the length.
            Some(Key::Len(base, Scalar::U32)) => {
                let len = self.len(base);
                self.learn(Fact::Less(a, len));
            }
            // Nor is a truncated unsigned value above the value.
            Some(Key::Cast(from, to, x)) if from.is_unsigned_int() && to.is_unsigned_int() && depth > 0 => {
                self.less(a, x, depth - 1);
            }
            Some(Key::Binary(BinaryOp::Min, _, x, y)) if depth > 0 => {
                self.less(a, x, depth - 1);
                self.less(a, y, depth - 1);
            }
            _ => {}
        }
        if let Some(Key::Int(c)) = self.keys.get(a as usize) {
            let c = *c;
            if c >= -1 {
                self.learn(Fact::NonNegative(b));
            }
            if c >= 0 {
                self.learn(Fact::NonZero(b));
            }
        }
    }

    /// Learns that `a < b`, as a check in this line just established it of a non-negative `a`.
    pub(super) fn learn_in_bounds(&mut self, a: Number, b: Number, line: u32) {
        self.shown = Proof::Checked(line);
        self.learn(Fact::NonNegative(a));
        self.less(a, b, DEPTH);
    }

    /// Learns that a divisor is not zero, by a check in this line.
    pub(super) fn learn_non_zero(&mut self, n: Number, line: u32) {
        self.shown = Proof::Checked(line);
        self.learn(Fact::NonZero(n));
    }
}
