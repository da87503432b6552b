//! What is known about integer values at the present point of a body: value numbers, bounds and comparisons that
//! hold there. Proves checks superfluous; knows nothing of how checks are written.
//!
//! A number stands for a mathematical value, so `i` and `i as u64` share one when the cast keeps the value. Facts
//! are scoped: they are rolled back at the end of the block in which they were learned. A variable's content is
//! forgotten where control flow joins or repeats.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::ir::{Axis, Base, Block, Builtin, Effect, Inst, LocalId, Op, Place, Scalar, Step, Type, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

use super::found::Proof;

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

    /// What proves `0 <= a < b`.
    pub(super) fn in_bounds(&self, a: Number, b: Number) -> Option<Proof> {
        self.less_known(a, b, DEPTH)
            .filter(|_| self.non_negative(a, DEPTH))
    }

    /// What proves that a value is not zero.
    pub(super) fn non_zero(&self, n: Number) -> Option<Proof> {
        match self.keys.get(n as usize) {
            Some(Key::Int(c)) => (*c != 0).then_some(Proof::Constant),
            _ => self.facts.get(&Fact::NonZero(n)).copied(),
        }
    }

    fn is_non_zero(&self, n: Number) -> bool {
        self.non_zero(n).is_some()
    }

    /// Whether a value is proven not to be negative.
    pub(super) fn is_non_negative(&self, n: Number) -> bool {
        self.non_negative(n, DEPTH)
    }

    fn less_known(&self, a: Number, b: Number, depth: u32) -> Option<Proof> {
        if let Some(shown) = self.facts.get(&Fact::Less(a, b)) {
            return Some(*shown);
        }
        if let Some(Key::Int(limit)) = self.keys.get(b as usize)
            && let Some(most) = self.greatest(a, depth).filter(|most| most < limit)
        {
            return Some(Proof::AtMost(most));
        }
        if depth == 0 {
            return None;
        }
        let below = |x: Number| {
            let less = || self.less_known(x, b, depth - 1);
            self.non_negative(x, depth - 1).then(less).flatten()
        };
        match self.keys.get(a as usize) {
            Some(Key::Binary(BinaryOp::Min | BinaryOp::And, s, x, y)) if s.is_unsigned_int() => {
                below(*x).or_else(|| below(*y))
            }
            Some(Key::Binary(BinaryOp::Rem, s, x, y)) if s.is_unsigned_int() => {
                let remainder = (*y == b && self.is_non_zero(*y)).then_some(Proof::Remainder);
                remainder.or_else(|| below(*x))
            }
            Some(Key::Binary(BinaryOp::Div | BinaryOp::Shr, s, x, _)) if s.is_unsigned_int() => below(*x),
            // x - 1 is below x unless x is zero.
            Some(Key::Binary(BinaryOp::Sub, s, x, y)) if s.is_int() && self.is_int(*y, 1) => {
                below(*x).filter(|_| self.is_non_zero(*x))
            }
            Some(Key::Cast(from, to, x)) if from.is_unsigned_int() && to.is_unsigned_int() => below(*x),
            Some(Key::Select(_, x, y)) => below(*x).and_then(|_| below(*y)),
            _ => None,
        }
    }

    fn non_negative(&self, n: Number, depth: u32) -> bool {
        if let Some(Key::Int(c)) = self.keys.get(n as usize) {
            return *c >= 0;
        }
        if self
            .scalars
            .get(n as usize)
            .copied()
            .flatten()
            .is_some_and(|s| s.is_unsigned_int() || s == Scalar::Bool)
            || self.facts.contains_key(&Fact::NonNegative(n))
        {
            return true;
        }
        if depth == 0 {
            return false;
        }
        match self.keys.get(n as usize) {
            Some(Key::Binary(BinaryOp::And, _, x, y)) => {
                self.non_negative(*x, depth - 1) || self.non_negative(*y, depth - 1)
            }
            Some(Key::Binary(BinaryOp::Max, _, x, y)) => {
                self.non_negative(*x, depth - 1) || self.non_negative(*y, depth - 1)
            }
            Some(Key::Binary(BinaryOp::Min, _, x, y)) => {
                self.non_negative(*x, depth - 1) && self.non_negative(*y, depth - 1)
            }
            Some(Key::Binary(BinaryOp::Rem | BinaryOp::Shr, _, x, _)) => self.non_negative(*x, depth - 1),
            Some(Key::Select(_, x, y)) => {
                self.non_negative(*x, depth - 1) && self.non_negative(*y, depth - 1)
            }
            // x - 1 of a positive x.
            Some(Key::Binary(BinaryOp::Sub, _, x, y)) if self.is_int(*y, 1) => {
                self.non_negative(*x, depth - 1) && self.is_non_zero(*x)
            }
            _ => false,
        }
    }

    fn block_extent(&self, axis: Axis) -> Option<i128> {
        let size = self.block_size?;
        Some(i128::from(size[axis as usize]))
    }

    /// An upper bound of a value, itself included.
    fn greatest(&self, n: Number, depth: u32) -> Option<i128> {
        let scalar = self.scalars.get(n as usize).copied().flatten();
        let by_type = scalar.filter(|s| s.is_int() || *s == Scalar::Bool).map(greatest);
        let learned = self.bounds.get(&n).copied();
        let by_key = if depth == 0 {
            None
        } else {
            let most = |x: &Number| self.greatest(*x, depth - 1);
            let non_negative = |x: &Number| self.non_negative(*x, depth - 1);
            let fits = |v: i128| by_type.is_some_and(|t| v <= t).then_some(v);
            match self.keys.get(n as usize) {
                Some(Key::Int(c)) => Some(*c),
                Some(Key::Builtin(Builtin::ThreadIdx(axis))) => self.block_extent(*axis).map(|e| e - 1),
                Some(Key::Binary(BinaryOp::And, _, x, y)) => {
                    let by = |x: &Number| most(x).filter(|_| non_negative(x));
                    smaller(by(x), by(y))
                }
                Some(Key::Binary(BinaryOp::Min, s, x, y)) if s.is_int() => smaller(most(x), most(y)),
                Some(Key::Binary(BinaryOp::Max, s, x, y)) if s.is_int() => {
                    most(x).and_then(|a| most(y).map(|b| a.max(b)))
                }
                Some(Key::Binary(BinaryOp::Rem, _, x, y)) => match self.keys.get(*y as usize) {
                    Some(Key::Int(c)) if *c > 0 => smaller(Some(*c - 1), most(x).filter(|m| *m >= 0)),
                    _ => None,
                },
                Some(Key::Binary(BinaryOp::Div, _, x, y)) => match self.keys.get(*y as usize) {
                    Some(Key::Int(c)) if *c > 0 && non_negative(x) => most(x).map(|m| m / c),
                    _ => None,
                },
                Some(Key::Binary(BinaryOp::Shr, s, x, y)) if non_negative(x) => {
                    match self.keys.get(*y as usize) {
                        Some(Key::Int(c)) if *c >= 0 => most(x).map(|m| m >> (c % i128::from(s.bits()))),
                        _ => most(x),
                    }
                }
                Some(Key::Binary(BinaryOp::Shl, s, x, y)) if non_negative(x) => {
                    match self.keys.get(*y as usize) {
                        Some(Key::Int(c)) if *c >= 0 => most(x)
                            .and_then(|m| m.checked_shl((c % i128::from(s.bits())) as u32))
                            .and_then(fits),
                        _ => None,
                    }
                }
                Some(Key::Binary(BinaryOp::Add, _, x, y)) if non_negative(x) && non_negative(y) => {
                    most(x).and_then(|a| most(y).and_then(|b| fits(a + b)))
                }
                Some(Key::Binary(BinaryOp::Mul, _, x, y)) if non_negative(x) && non_negative(y) => {
                    most(x).and_then(|a| most(y).and_then(|b| a.checked_mul(b)).and_then(fits))
                }
                // x - 1 of a positive x.
                Some(Key::Binary(BinaryOp::Sub, _, x, y))
                    if self.is_int(*y, 1) && non_negative(x) && self.is_non_zero(*x) =>
                {
                    most(x).map(|m| m - 1)
                }
                Some(Key::Select(_, x, y)) => most(x).and_then(|a| most(y).map(|b| a.max(b))),
                Some(Key::Cast(from, to, x)) if from.is_unsigned_int() && to.is_unsigned_int() => most(x),
                _ => None,
            }
        };
        smaller(smaller(by_type, learned), by_key)
    }

    /// Whether a cast of `n` gives the same mathematical value.
    fn keeps_value(&self, from: Scalar, to: Scalar, n: Number) -> bool {
        let from_int = from.is_int() || from == Scalar::Bool;
        if !from_int || !to.is_int() {
            return false;
        }
        let low = least(from) >= least(to) || self.non_negative(n, DEPTH);
        let high =
            greatest(from) <= greatest(to) || self.greatest(n, DEPTH).is_some_and(|m| m <= greatest(to));
        low && high
    }
}

fn smaller(a: Option<i128>, b: Option<i128>) -> Option<i128> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, None) => a,
        (None, b) => b,
    }
}

fn least(s: Scalar) -> i128 {
    if s.is_signed_int() {
        -(1i128 << (s.bits() - 1))
    } else {
        0
    }
}

fn greatest(s: Scalar) -> i128 {
    if s.is_signed_int() {
        (1i128 << (s.bits() - 1)) - 1
    } else {
        (1i128 << s.bits()) - 1
    }
}

/// The integer that these bits are at this type.
fn integer(s: Scalar, bits: u64) -> i128 {
    let bits = i128::from(bits);
    if s.is_signed_int() && bits >> (s.bits() - 1) & 1 == 1 {
        bits - (1i128 << s.bits())
    } else {
        bits
    }
}
