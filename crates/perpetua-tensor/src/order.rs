//! Combinations along axes: which there are, and in what order elements meet.
//!
//! The order depends on the shape alone, so that a result has the same bits on every device, fused or not. Must not know tensors.

use perpetua_ir::ir::ReduceOp;
use perpetua_ir::ops::BinaryOp;
use perpetua_ir::ops::eval::reduce_identity;

use crate::dtype::{DType, accumulator, summed};
use crate::shape::count;

/// How elements are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reduction {
    Sum,
    Product,
    Max,
    Min,
}

impl Reduction {
    /// As the IR's.
    fn operator(self) -> ReduceOp {
        match self {
            Reduction::Sum => ReduceOp::Add,
            Reduction::Product => ReduceOp::Mul,
            Reduction::Max => ReduceOp::Max,
            Reduction::Min => ReduceOp::Min,
        }
    }

    /// The operator on two values, but for NaN, and for extremes whether the first is taken.
    pub(crate) fn binary(self) -> (BinaryOp, Option<BinaryOp>) {
        let takes_first = match self {
            Reduction::Max => Some(BinaryOp::Ge),
            Reduction::Min => Some(BinaryOp::Le),
            _ => None,
        };
        (self.operator().binary(), takes_first)
    }

    /// What leaves the other value as it is: its bits.
    pub(crate) fn identity(self, dtype: DType) -> u64 {
        reduce_identity(self.operator(), dtype.stored())
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Reduction::Sum => "sum",
            Reduction::Product => "prod",
            Reduction::Max => "max",
            Reduction::Min => "min",
        }
    }

    /// The type in which it is computed.
    pub(crate) fn accumulator(self, dtype: DType) -> DType {
        match self {
            Reduction::Sum | Reduction::Product => accumulator(dtype),
            Reduction::Max | Reduction::Min => dtype,
        }
    }

    /// The type that it gives.
    pub(crate) fn result(self, dtype: DType) -> DType {
        match self {
            Reduction::Sum | Reduction::Product => summed(dtype),
            Reduction::Max | Reduction::Min => dtype,
        }
    }
}

/// In what order elements meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Order {
    /// One after the other.
    Serial,
    /// [`LANES`] partial results, of every [`LANES`]-th element each, which then meet in pairs: the first half with the second, until one
    /// is left.
    Lanes,
}

/// Partial results of [`Order::Lanes`].
pub(crate) const LANES: usize = 256;
/// Up to so many elements meet one after the other.
const SHORT: usize = 64;

/// Rows of so many elements are combined in parts if there are few of them.
const LONG: usize = 16_384;
/// Fewer rows than these are few.
const FEW: usize = 256;
/// So many parts, in all rows together, keep a large device busy.
const PARTS: usize = 2048;
/// Rows whose elements lie apart are combined one after the other, by so many lanes.
const ABREAST: usize = 8192;
/// Elements of a part, at least.
const PART: usize = 64;

/// How a combination is made in two: first of parts of an axis, then of the parts' results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) axis: usize,
    /// Elements of the axis that a part has; the last one may have fewer.
    pub(crate) len: usize,
    /// How many there are.
    pub(crate) count: usize,
}

impl Parts {
    /// For a shape and the axes that go; `None` where it is made at once.
    pub(crate) fn of(shape: &[usize], axes: &[usize]) -> Option<Parts> {
        let along = axes.iter().map(|axis| shape[*axis]).product::<usize>();
        let rows = count(shape).checked_div(along)?;
        let (&last, _) = shape.split_last()?;
        let last_stays = last >= 16 && !axes.contains(&(shape.len() - 1));
        let wanted = if last_stays && rows < ABREAST && along >= 16 * PART {
            ABREAST.div_ceil(rows).min(along / PART)
        } else if rows < FEW && along >= LONG {
            (PARTS / rows).min(along / 4096)
        } else {
            return None;
        };
        let axis = axes.iter().copied().max_by_key(|axis| shape[*axis])?;
        let len = shape[axis].div_ceil(wanted.clamp(1, shape[axis]));
        let count = shape[axis].div_ceil(len);
        (count > 1).then_some(Parts { axis, len, count })
    }
}

impl Order {
    /// The order for a shape and the axes that go.
    pub(crate) fn of(shape: &[usize], axes: &[usize]) -> Order {
        let along: usize = axes.iter().map(|axis| shape[*axis]).product();
        let rest: usize = shape.iter().product::<usize>().checked_div(along).unwrap_or(0);
        let last_stays = shape.last().is_some_and(|n| *n > 1) && !axes.contains(&(shape.len() - 1));
        match along <= SHORT || (last_stays && rest >= ABREAST && along <= 4096) {
            true => Order::Serial,
            false => Order::Lanes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_long_rows_are_cut() {
        let parts =
            |shape: &[usize], axes: &[usize]| Parts::of(shape, axes).map(|p| (p.axis, p.len, p.count));
        assert_eq!(parts(&[16_383], &[0]), None);
        assert_eq!(parts(&[20_000], &[0]), Some((0, 5000, 4)));
        assert_eq!(parts(&[1 << 26], &[0]), Some((0, 1 << 15, 2048)));
        assert_eq!(parts(&[4096, 4096], &[1]), None);
        assert_eq!(parts(&[3, 100_001], &[1]), Some((1, 4167, 24)));
        assert_eq!(parts(&[1000, 64, 100], &[0, 1, 2]), Some((0, 1, 1000)));
        // The last axis stays: lanes beside each other read elements beside each other.
        assert_eq!(parts(&[8192, 768], &[0]), Some((0, 745, 11)));
        assert_eq!(parts(&[500, 768], &[0]), None);
        assert_eq!(parts(&[0, 768], &[0]), None);
        assert_eq!(parts(&[], &[]), None);
    }
}
