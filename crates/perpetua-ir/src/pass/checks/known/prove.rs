//! What follows from what is known: bounds of a value by its operands. Learns nothing.

use super::{DEPTH, Fact, Key, Known, Number, Proof};
use crate::ir::{Axis, Builtin, Scalar};
use crate::ops::BinaryOp;

impl Known {
    /// What proves `0 <= a < b`.
    pub(in crate::pass::checks) fn in_bounds(&self, a: Number, b: Number) -> Option<Proof> {
        self.less_known(a, b, DEPTH)
            .filter(|_| self.non_negative(a, DEPTH))
    }

    /// What proves that a value is not zero.
    pub(in crate::pass::checks) fn non_zero(&self, n: Number) -> Option<Proof> {
        match self.keys.get(n as usize) {
            Some(Key::Int(c)) => (*c != 0).then_some(Proof::Constant),
            _ => self.facts.get(&Fact::NonZero(n)).copied(),
        }
    }

    fn is_non_zero(&self, n: Number) -> bool {
        self.non_zero(n).is_some()
    }

    /// Whether a value is proven not to be negative.
    pub(in crate::pass::checks) fn is_non_negative(&self, n: Number) -> bool {
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

    pub(super) fn non_negative(&self, n: Number, depth: u32) -> bool {
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

    pub(super) fn block_extent(&self, axis: Axis) -> Option<i128> {
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
    pub(super) fn keeps_value(&self, from: Scalar, to: Scalar, n: Number) -> bool {
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

pub(super) fn least(s: Scalar) -> i128 {
    if s.is_signed_int() {
        -(1i128 << (s.bits() - 1))
    } else {
        0
    }
}

pub(super) fn greatest(s: Scalar) -> i128 {
    if s.is_signed_int() {
        (1i128 << (s.bits() - 1)) - 1
    } else {
        (1i128 << s.bits()) - 1
    }
}

/// The integer that these bits are at this type.
pub(super) fn integer(s: Scalar, bits: u64) -> i128 {
    let bits = i128::from(bits);
    if s.is_signed_int() && bits >> (s.bits() - 1) & 1 == 1 {
        bits - (1i128 << s.bits())
    } else {
        bits
    }
}
