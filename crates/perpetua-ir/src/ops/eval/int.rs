//! What operators mean on integers and `bool`: wrapping, masked shifts, faults at division.
//!
//! Where signedness makes no difference, signed types take the unsigned code.

use super::lanes::{Line, map1, map2, map3};
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
    ($u:ty, $i:ty, $op:ident, $m:ident, $a:ident, $out:ident) => {
        match $op {
            UnaryOp::Neg => map1::<$u, $u>($m, $a, $out, |x| x.wrapping_neg()),
            UnaryOp::Not => map1::<$u, $u>($m, $a, $out, |x| !x),
            UnaryOp::Abs => map1::<$i, $i>($m, $a, $out, |x| x.wrapping_abs()),
            UnaryOp::Signum => map1::<$i, $i>($m, $a, $out, |x| x.signum()),
            UnaryOp::CountOnes => map1::<$u, u32>($m, $a, $out, |x| x.count_ones()),
            UnaryOp::LeadingZeros => map1::<$u, u32>($m, $a, $out, |x| x.leading_zeros()),
            UnaryOp::TrailingZeros => map1::<$u, u32>($m, $a, $out, |x| x.trailing_zeros()),
            UnaryOp::ReverseBits => map1::<$u, $u>($m, $a, $out, |x| x.reverse_bits()),
            UnaryOp::SwapBytes => map1::<$u, $u>($m, $a, $out, |x| x.swap_bytes()),
            _ => {}
        }
    };
}

#[inline(always)]
pub(super) fn unary(op: UnaryOp, s: Scalar, m: &[u64], a: &[Line], out: &mut [Line]) {
    if s == Scalar::Bool {
        return map1::<u8, u8>(m, a, out, |x| x ^ 1);
    }
    by_unsigned!(s, unary_of, op, m, a, out)
}

/// Operators whose bits do not depend on signedness. Shift amounts have the type of the first operand.
macro_rules! agnostic_of {
    ($u:ty, $i:ty, $op:ident, $m:ident, $a:ident, $b:ident, $out:ident) => {
        match $op {
            BinaryOp::Add => map2::<$u, $u, $u>($m, $a, $b, $out, |x, y| x.wrapping_add(y)),
            BinaryOp::Sub => map2::<$u, $u, $u>($m, $a, $b, $out, |x, y| x.wrapping_sub(y)),
            BinaryOp::Mul => map2::<$u, $u, $u>($m, $a, $b, $out, |x, y| x.wrapping_mul(y)),
            BinaryOp::And => map2::<$u, $u, $u>($m, $a, $b, $out, |x, y| x & y),
            BinaryOp::Or => map2::<$u, $u, $u>($m, $a, $b, $out, |x, y| x | y),
            BinaryOp::Xor => map2::<$u, $u, $u>($m, $a, $b, $out, |x, y| x ^ y),
            BinaryOp::Shl => map2::<$u, $u, $u>($m, $a, $b, $out, |x, y| x.wrapping_shl(y as u32)),
            BinaryOp::RotateLeft => {
                map2::<$u, $u, $u>($m, $a, $b, $out, |x, y| x.rotate_left(y as u32 % <$u>::BITS))
            }
            BinaryOp::RotateRight => {
                map2::<$u, $u, $u>($m, $a, $b, $out, |x, y| x.rotate_right(y as u32 % <$u>::BITS))
            }
            BinaryOp::Eq => map2::<$u, $u, u8>($m, $a, $b, $out, |x, y| u8::from(x == y)),
            BinaryOp::Ne => map2::<$u, $u, u8>($m, $a, $b, $out, |x, y| u8::from(x != y)),
            _ => {}
        }
    };
}

/// Operators that tell signed from unsigned.
macro_rules! typed_of {
    ($t:ty, $u:ty, $wide:ty, $op:ident, $m:ident, $a:ident, $b:ident, $out:ident) => {
        match $op {
            BinaryOp::Div => map2::<$t, $t, $t>($m, $a, $b, $out, |x, y| x.checked_div(y).unwrap_or(0)),
            BinaryOp::Rem => map2::<$t, $t, $t>($m, $a, $b, $out, |x, y| x.checked_rem(y).unwrap_or(0)),
            BinaryOp::Min => map2::<$t, $t, $t>($m, $a, $b, $out, |x, y| x.min(y)),
            BinaryOp::Max => map2::<$t, $t, $t>($m, $a, $b, $out, |x, y| x.max(y)),
            BinaryOp::Shr => map2::<$t, $t, $t>($m, $a, $b, $out, |x, y| x.wrapping_shr(y as u32)),
            BinaryOp::Lt => map2::<$t, $t, u8>($m, $a, $b, $out, |x, y| u8::from(x < y)),
            BinaryOp::Le => map2::<$t, $t, u8>($m, $a, $b, $out, |x, y| u8::from(x <= y)),
            BinaryOp::Gt => map2::<$t, $t, u8>($m, $a, $b, $out, |x, y| u8::from(x > y)),
            BinaryOp::Ge => map2::<$t, $t, u8>($m, $a, $b, $out, |x, y| u8::from(x >= y)),
            BinaryOp::MulHigh => map2::<$t, $t, $t>($m, $a, $b, $out, |x, y| {
                ((<$wide>::from(x) * <$wide>::from(y)) >> <$t>::BITS) as $t
            }),
            BinaryOp::SaturatingAdd => map2::<$t, $t, $t>($m, $a, $b, $out, |x, y| x.saturating_add(y)),
            BinaryOp::SaturatingSub => map2::<$t, $t, $t>($m, $a, $b, $out, |x, y| x.saturating_sub(y)),
            BinaryOp::AbsDiff => map2::<$t, $t, $u>($m, $a, $b, $out, |x, y| x.abs_diff(y)),
            _ => {}
        }
    };
}

#[inline(always)]
pub(super) fn binary(op: BinaryOp, s: Scalar, m: &[u64], a: &[Line], b: &[Line], out: &mut [Line]) {
    use BinaryOp::*;
    match op {
        Add | Sub | Mul | And | Or | Xor | Shl | RotateLeft | RotateRight | Eq | Ne => {
            by_unsigned!(s, agnostic_of, op, m, a, b, out)
        }
        _ => by_type!(s, typed_of, op, m, a, b, out),
    }
}

macro_rules! clamp_of {
    ($t:ty, $u:ty, $wide:ty, $m:ident, $abc:ident, $out:ident) => {
        map3::<$t, $t, $t, $t>($m, $abc, $out, |x, y, z| x.max(y).min(z))
    };
}

#[inline(always)]
pub(super) fn ternary(
    op: TernaryOp,
    s: Scalar,
    m: &[u64],
    abc: (&[Line], &[Line], &[Line]),
    out: &mut [Line],
) {
    if op == TernaryOp::Clamp {
        by_type!(s, clamp_of, m, abc, out)
    }
}

macro_rules! suspect_of {
    ($t:ty, $u:ty, $wide:ty, $m:ident, $a:ident, $b:ident) => {{
        let mut any = false;
        let words = super::lanes::view::<$t>($a)
            .iter()
            .zip(super::lanes::view::<$t>($b));
        for (m, (a, b)) in $m.iter().zip(words) {
            if *m != 0 {
                let mut bad = false;
                for i in 0..super::lanes::WORD {
                    bad |= b[i] == 0 || (<$t>::MIN != 0 && b[i] == !0 && a[i] == <$t>::MIN);
                }
                any |= bad;
            }
        }
        any
    }};
}

/// Whether any lane of a word that the mask touches divides by zero or overflows; lanes outside the mask count too,
/// so a true answer needs a closer look.
#[inline(always)]
pub(super) fn division_suspect(s: Scalar, m: &[u64], a: &[Line], b: &[Line]) -> bool {
    by_type!(s, suspect_of, m, a, b)
}
