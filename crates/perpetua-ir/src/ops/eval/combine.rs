//! Combining two scalars without the detour over lanes: what atomics and reductions do once for each lane.

use crate::ir::Scalar;
use crate::ops::BinaryOp;

use super::eval_binary;

macro_rules! int {
    ($t:ty, $u:ty, $op:expr, $a:expr, $b:expr) => {{
        let (a, b) = ($a as $t, $b as $t);
        let result = match $op {
            BinaryOp::Add => a.wrapping_add(b),
            BinaryOp::Sub => a.wrapping_sub(b),
            BinaryOp::Mul => a.wrapping_mul(b),
            BinaryOp::Min => a.min(b),
            _ => a.max(b),
        };
        u64::from(result as $u)
    }};
}

macro_rules! float {
    ($t:ty, $u:ty, $op:expr, $a:expr, $b:expr) => {{
        let (a, b) = (<$t>::from_bits($a as $u), <$t>::from_bits($b as $u));
        let result = match $op {
            BinaryOp::Add => a + b,
            BinaryOp::Sub => a - b,
            BinaryOp::Mul => a * b,
            BinaryOp::Min if a < b || b.is_nan() => a,
            BinaryOp::Max if a > b || b.is_nan() => a,
            _ => b,
        };
        u64::from(result.to_bits())
    }};
}

/// As [`eval_binary`] for an operator that cannot fault; quick for sums, products, minima, maxima and bit operations
/// of 32- and 64-bit numbers.
pub(crate) fn combine(op: BinaryOp, s: Scalar, a: u64, b: u64) -> u64 {
    match (op, s) {
        (BinaryOp::And, _) => a & b,
        (BinaryOp::Or, _) => a | b,
        (BinaryOp::Xor, _) => a ^ b,
        (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max, _)
            if s.size() >= 4 =>
        {
            match s {
                Scalar::I32 => int!(i32, u32, op, a, b),
                Scalar::U32 => int!(u32, u32, op, a, b),
                Scalar::I64 => int!(i64, u64, op, a, b),
                Scalar::U64 => int!(u64, u64, op, a, b),
                Scalar::F32 => float!(f32, u32, op, a, b),
                _ => float!(f64, u64, op, a, b),
            }
        }
        _ => eval_binary(op, s, a, b).unwrap_or(a),
    }
}
