//! What operators mean on integers and `bool`: wrapping, masked shifts, faults at division.
//!
//! Where signedness makes no difference, signed types take the unsigned code.

use super::map::Map;
use crate::ir::Scalar;
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

macro_rules! by_unsigned {
    ($s:expr, $m:ident, $($args:tt)*) => {
        match $s.to_unsigned() {
            Scalar::Bool | Scalar::U8 => $m!(u8, i8, $($args)*),
            Scalar::U16 => $m!(u16, i16, $($args)*),
            Scalar::U32 => $m!(u32, i32, $($args)*),
            _ => $m!(u64, i64, $($args)*),
        }
    };
}

macro_rules! by_type {
    ($s:expr, $m:ident, $($args:tt)*) => {
        match $s {
            Scalar::I8 => $m!(i8, u8, i16, $($args)*),
            Scalar::I16 => $m!(i16, u16, i32, $($args)*),
            Scalar::I32 => $m!(i32, u32, i64, $($args)*),
            Scalar::I64 => $m!(i64, u64, i128, $($args)*),
            Scalar::Bool | Scalar::U8 => $m!(u8, u8, u16, $($args)*),
            Scalar::U16 => $m!(u16, u16, u32, $($args)*),
            Scalar::U32 => $m!(u32, u32, u64, $($args)*),
            _ => $m!(u64, u64, u128, $($args)*),
        }
    };
}

macro_rules! unary_of {
    ($u:ty, $i:ty, $op:ident, $x:ident) => {
        match $op {
            UnaryOp::Neg => $x.map1::<$u, $u>(|x| x.wrapping_neg()),
            UnaryOp::Not => $x.map1::<$u, $u>(|x| !x),
            UnaryOp::Abs => $x.map1::<$i, $i>(|x| x.wrapping_abs()),
            UnaryOp::Signum => $x.map1::<$i, $i>(|x| x.signum()),
            UnaryOp::CountOnes => $x.map1::<$u, u32>(|x| x.count_ones()),
            UnaryOp::LeadingZeros => $x.map1::<$u, u32>(|x| x.leading_zeros()),
            UnaryOp::TrailingZeros => $x.map1::<$u, u32>(|x| x.trailing_zeros()),
            UnaryOp::ReverseBits => $x.map1::<$u, $u>(|x| x.reverse_bits()),
            UnaryOp::SwapBytes => $x.map1::<$u, $u>(|x| x.swap_bytes()),
            _ => {}
        }
    };
}

#[inline(always)]
pub(super) fn unary(op: UnaryOp, s: Scalar, x: impl Map) {
    if s == Scalar::Bool {
        return x.map1::<u8, u8>(|x| x ^ 1);
    }
    by_unsigned!(s, unary_of, op, x)
}

/// Operators whose bits do not depend on signedness. Shift amounts have the type of the first operand.
macro_rules! agnostic_of {
    ($u:ty, $i:ty, $op:ident, $x:ident) => {
        match $op {
            BinaryOp::Add => $x.map2::<$u, $u, $u>(|x, y| x.wrapping_add(y)),
            BinaryOp::Sub => $x.map2::<$u, $u, $u>(|x, y| x.wrapping_sub(y)),
            BinaryOp::Mul => $x.map2::<$u, $u, $u>(|x, y| x.wrapping_mul(y)),
            BinaryOp::And => $x.map2::<$u, $u, $u>(|x, y| x & y),
            BinaryOp::Or => $x.map2::<$u, $u, $u>(|x, y| x | y),
            BinaryOp::Xor => $x.map2::<$u, $u, $u>(|x, y| x ^ y),
            BinaryOp::Shl => $x.map2::<$u, $u, $u>(|x, y| x.wrapping_shl(y as u32)),
            BinaryOp::RotateLeft => $x.map2::<$u, $u, $u>(|x, y| x.rotate_left(y as u32 % <$u>::BITS)),
            BinaryOp::RotateRight => $x.map2::<$u, $u, $u>(|x, y| x.rotate_right(y as u32 % <$u>::BITS)),
            BinaryOp::Eq => $x.map2::<$u, $u, u8>(|x, y| u8::from(x == y)),
            BinaryOp::Ne => $x.map2::<$u, $u, u8>(|x, y| u8::from(x != y)),
            _ => {}
        }
    };
}

/// Operators that tell signed from unsigned.
macro_rules! typed_of {
    ($t:ty, $u:ty, $wide:ty, $op:ident, $x:ident) => {
        match $op {
            BinaryOp::Div => $x.map2::<$t, $t, $t>(|x, y| x.checked_div(y).unwrap_or(0)),
            BinaryOp::Rem => $x.map2::<$t, $t, $t>(|x, y| x.checked_rem(y).unwrap_or(0)),
            BinaryOp::Min => $x.map2::<$t, $t, $t>(|x, y| x.min(y)),
            BinaryOp::Max => $x.map2::<$t, $t, $t>(|x, y| x.max(y)),
            BinaryOp::Shr => $x.map2::<$t, $t, $t>(|x, y| x.wrapping_shr(y as u32)),
            BinaryOp::Lt => $x.map2::<$t, $t, u8>(|x, y| u8::from(x < y)),
            BinaryOp::Le => $x.map2::<$t, $t, u8>(|x, y| u8::from(x <= y)),
            BinaryOp::Gt => $x.map2::<$t, $t, u8>(|x, y| u8::from(x > y)),
            BinaryOp::Ge => $x.map2::<$t, $t, u8>(|x, y| u8::from(x >= y)),
            BinaryOp::MulHigh => {
                $x.map2::<$t, $t, $t>(|x, y| ((<$wide>::from(x) * <$wide>::from(y)) >> <$t>::BITS) as $t)
            }
            BinaryOp::SaturatingAdd => $x.map2::<$t, $t, $t>(|x, y| x.saturating_add(y)),
            BinaryOp::SaturatingSub => $x.map2::<$t, $t, $t>(|x, y| x.saturating_sub(y)),
            BinaryOp::AbsDiff => $x.map2::<$t, $t, $u>(|x, y| x.abs_diff(y)),
            _ => {}
        }
    };
}

#[inline(always)]
pub(super) fn binary(op: BinaryOp, s: Scalar, x: impl Map) {
    use BinaryOp::*;
    match op {
        Add | Sub | Mul | And | Or | Xor | Shl | RotateLeft | RotateRight | Eq | Ne => {
            by_unsigned!(s, agnostic_of, op, x)
        }
        _ => by_type!(s, typed_of, op, x),
    }
}

macro_rules! clamp_of {
    ($t:ty, $u:ty, $wide:ty, $x:ident) => {
        $x.map3::<$t, $t, $t, $t>(|x, y, z| x.max(y).min(z))
    };
}

#[inline(always)]
pub(super) fn ternary(op: TernaryOp, s: Scalar, x: impl Map) {
    if op == TernaryOp::Clamp {
        by_type!(s, clamp_of, x)
    }
}
