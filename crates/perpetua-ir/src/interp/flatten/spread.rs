//! How values differ from lane to lane, as far as operations tell: what makes neighbouring lanes access neighbouring
//! elements. Variables and memory are not followed; what comes from there is looked at when it is used.

use super::super::program::Spread;
use super::Context;
use crate::ir::{Axis, Builtin, Op, Value};
use crate::ops::BinaryOp;

impl Context<'_> {
    pub(super) fn spread(&self, v: Value) -> Spread {
        self.spreads.get(v.0 as usize).copied().unwrap_or(Spread::Any)
    }

    fn is_int(&self, v: Value) -> bool {
        self.declarations.scalar(v, "operand").is_ok_and(|s| s.is_int())
    }

    /// What all of these values have in common.
    fn common(&self, values: &[Value]) -> Spread {
        let all = |of: &[Spread]| values.iter().all(|v| of.contains(&self.spread(*v)));
        if all(&[Spread::Uniform]) {
            Spread::Uniform
        } else if all(&[Spread::Uniform, Spread::Row]) {
            Spread::Row
        } else {
            Spread::Any
        }
    }

    /// How the result of an operation differs between lanes.
    pub(super) fn spread_of(&self, op: &Op) -> Spread {
        match op {
            Op::Const(..) | Op::Zero(_) | Op::Param(_) | Op::Len(..) => Spread::Uniform,
            Op::Builtin(b) => match b {
                Builtin::ThreadIdx(Axis::X) => Spread::Ascending,
                Builtin::ThreadIdx(_) => Spread::Row,
                Builtin::SubgroupLane => Spread::Any,
                Builtin::BlockIdx(_) | Builtin::BlockDim(_) | Builtin::GridDim(_) | Builtin::SubgroupSize => {
                    Spread::Uniform
                }
            },
            Op::Binary(BinaryOp::Add, a, b) if self.is_int(*a) => match (self.spread(*a), self.spread(*b)) {
                (Spread::Ascending, Spread::Uniform | Spread::Row)
                | (Spread::Uniform | Spread::Row, Spread::Ascending) => Spread::Ascending,
                _ => self.common(&[*a, *b]),
            },
            Op::Binary(BinaryOp::Sub, a, b) if self.is_int(*a) => match (self.spread(*a), self.spread(*b)) {
                (Spread::Ascending, Spread::Uniform | Spread::Row) => Spread::Ascending,
                _ => self.common(&[*a, *b]),
            },
            // A cast to a wider type may show where the narrower one wrapped: who relies on it looks at both ends.
            Op::Cast(to, a) | Op::Bitcast(to, a)
                if self.spread(*a) == Spread::Ascending && to.is_int() && self.is_int(*a) =>
            {
                Spread::Ascending
            }
            Op::Unary(_, a) | Op::Cast(_, a) | Op::Bitcast(_, a) => self.common(&[*a]),
            Op::Binary(_, a, b) => self.common(&[*a, *b]),
            Op::Ternary(_, a, b, c) => self.common(&[*a, *b, *c]),
            _ => Spread::Any,
        }
    }
}
