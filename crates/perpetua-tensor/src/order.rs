//! Combinations along axes: which there are, and in what order elements meet.
//!
//! The order depends on the shape alone, so that a result has the same bits on every device, fused or not. Must not know tensors.

use perpetua_ir::ir::ReduceOp;
use perpetua_ir::ops::BinaryOp;
use perpetua_ir::ops::eval::reduce_identity;

use crate::dtype::{DType, accumulator, summed};

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
        reduce_identity(self.operator(), dtype)
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

impl Order {
    /// The order for a shape and the axes that go.
    pub(crate) fn of(shape: &[usize], axes: &[usize]) -> Order {
        let along: usize = axes.iter().map(|axis| shape[*axis]).product();
        let rest: usize = shape.iter().product::<usize>().checked_div(along).unwrap_or(0);
        let last_stays = shape.last().is_some_and(|n| *n > 1) && !axes.contains(&(shape.len() - 1));
        match along <= SHORT || (last_stays && rest >= 8192 && along <= 4096) {
            true => Order::Serial,
            false => Order::Lanes,
        }
    }
}
