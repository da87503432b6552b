//! What the rows are measured against: Rust's own operators on floats, arithmetic in `i128` for integers.

use half::{bf16, f16};
use proptest::prelude::*;

use super::super::*;

pub(super) const INTS: [Scalar; 8] = [
    Scalar::I8,
    Scalar::I16,
    Scalar::I32,
    Scalar::I64,
    Scalar::U8,
    Scalar::U16,
    Scalar::U32,
    Scalar::U64,
];

pub(super) fn all_ones(s: Scalar) -> u64 {
    u64::MAX >> (64 - s.bits())
}

/// The mathematical value of an integer's bits.
pub(super) fn value(s: Scalar, bits: u64) -> i128 {
    let bits = bits & all_ones(s);
    if s.is_signed_int() && bits >> (s.bits() - 1) == 1 {
        i128::from(bits) - (1i128 << s.bits())
    } else {
        i128::from(bits)
    }
}

pub(super) fn wrap(s: Scalar, v: i128) -> u64 {
    v as u64 & all_ones(s)
}

fn clamp(s: Scalar, v: i128) -> i128 {
    let n = s.bits();
    if s.is_signed_int() {
        v.clamp(-(1i128 << (n - 1)), (1i128 << (n - 1)) - 1)
    } else {
        v.clamp(0, (1i128 << n) - 1)
    }
}

/// Bits that matter: ends of ranges, signs, small numbers, patterns.
pub(super) fn edge_bits(s: Scalar) -> Vec<u64> {
    let all = all_ones(s);
    let top = 1u64 << (s.bits() - 1);
    let mut bits = vec![
        0,
        1,
        2,
        3,
        7,
        100,
        all,
        all - 1,
        top,
        top - 1,
        top + 1,
        0x5555_5555_5555_5555,
        0x1234_5678_9abc_def0,
    ];
    if s.is_float() {
        let f = [
            0.5,
            1.0,
            1.5,
            2.5,
            -0.5,
            -1.5,
            -2.5,
            0.1,
            -3.7,
            1e-3,
            255.0,
            256.5,
            65504.0,
            65520.0,
            2147483647.0,
            4294967296.0,
            -2147483648.0,
            9.3e18,
            -9.3e18,
            1e30,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            1e-45,
            1e-40,
            5e-324,
            6e-8,
        ];
        bits.extend(f.iter().map(|&x| match s {
            Scalar::F16 => u64::from(f16::from_f32(x as f32).to_bits()),
            Scalar::BF16 => u64::from(bf16::from_f32(x as f32).to_bits()),
            Scalar::F32 => u64::from((x as f32).to_bits()),
            _ => x.to_bits(),
        }));
    }
    bits.into_iter().map(|b| b & all).collect()
}

pub(super) fn any_bits(s: Scalar) -> impl Strategy<Value = u64> {
    prop_oneof![
        proptest::sample::select(edge_bits(s)),
        any::<u64>().prop_map(move |b| b & all_ones(s))
    ]
}

pub(super) fn int_unary(op: UnaryOp, s: Scalar, a: u64) -> u64 {
    let (x, n) = (value(s, a), s.bits());
    match op {
        UnaryOp::Neg => wrap(s, -x),
        UnaryOp::Not => !a & all_ones(s),
        UnaryOp::Abs => wrap(s, x.abs()),
        UnaryOp::Signum => wrap(s, x.signum()),
        UnaryOp::CountOnes => (0..n).filter(|i| a >> i & 1 == 1).count() as u64,
        UnaryOp::LeadingZeros => (0..n).rev().take_while(|i| a >> i & 1 == 0).count() as u64,
        UnaryOp::TrailingZeros => (0..n).take_while(|i| a >> i & 1 == 0).count() as u64,
        UnaryOp::ReverseBits => (0..n).fold(0, |r, i| r | (a >> i & 1) << (n - 1 - i)),
        UnaryOp::SwapBytes => (0..n / 8).fold(0, |r, i| r | (a >> (8 * i) & 0xff) << (n - 8 - 8 * i)),
        _ => panic!("{op:?} is not an integer operator"),
    }
}

pub(super) fn int_binary(op: BinaryOp, s: Scalar, a: u64, b: u64) -> Result<u64, FaultKind> {
    let (x, y, n) = (value(s, a), value(s, b), s.bits());
    let shift = (b % u64::from(n)) as u32;
    Ok(match op {
        BinaryOp::Add => wrap(s, x + y),
        BinaryOp::Sub => wrap(s, x - y),
        BinaryOp::Mul => wrap(s, x.wrapping_mul(y)),
        BinaryOp::Div | BinaryOp::Rem if y == 0 => return Err(FaultKind::DivisionByZero),
        BinaryOp::Div | BinaryOp::Rem if clamp(s, x / y) != x / y => return Err(FaultKind::DivisionOverflow),
        BinaryOp::Div => wrap(s, x / y),
        BinaryOp::Rem => wrap(s, x % y),
        BinaryOp::Min => wrap(s, x.min(y)),
        BinaryOp::Max => wrap(s, x.max(y)),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl => wrap(s, x << shift),
        BinaryOp::Shr => wrap(s, x >> shift),
        BinaryOp::RotateLeft => (a << shift | a.checked_shr(n - shift).unwrap_or(0)) & all_ones(s),
        BinaryOp::RotateRight => (a >> shift | a.checked_shl(n - shift).unwrap_or(0)) & all_ones(s),
        BinaryOp::Eq => (x == y).into(),
        BinaryOp::Ne => (x != y).into(),
        BinaryOp::Lt => (x < y).into(),
        BinaryOp::Le => (x <= y).into(),
        BinaryOp::Gt => (x > y).into(),
        BinaryOp::Ge => (x >= y).into(),
        // The product of two 64-bit unsigned numbers may pass i128, its bits do not.
        BinaryOp::MulHigh if s == Scalar::U64 => ((x as u128).wrapping_mul(y as u128) >> 64) as u64,
        BinaryOp::MulHigh => wrap(s, (x * y) >> n),
        BinaryOp::SaturatingAdd => wrap(s, clamp(s, x + y)),
        BinaryOp::SaturatingSub => wrap(s, clamp(s, x - y)),
        BinaryOp::AbsDiff => wrap(s, (x - y).abs()),
        _ => panic!("{op:?} is not an integer operator"),
    })
}

macro_rules! float_reference {
    ($unary:ident, $binary:ident, $t:ty, $from:expr, $to:expr, $of:expr) => {
        /// By Rust's operators on the wider type where the narrow one has none.
        pub(super) fn $unary(op: UnaryOp, a: u64) -> u64 {
            let x = $from(a);
            match op {
                UnaryOp::Neg => $to(-x),
                UnaryOp::Abs => $to(x.abs()),
                UnaryOp::Signum => $to(x.signum()),
                UnaryOp::Floor => $to(x.floor()),
                UnaryOp::Ceil => $to(x.ceil()),
                UnaryOp::Trunc => $to(x.trunc()),
                UnaryOp::Round => $to(x.round()),
                UnaryOp::RoundTiesEven => $to(x.round_ties_even()),
                UnaryOp::Fract => $to(x.fract()),
                UnaryOp::Sqrt => $to(x.sqrt()),
                UnaryOp::Rsqrt => $to(x.sqrt().recip()),
                UnaryOp::Recip => $to(x.recip()),
                UnaryOp::ToDegrees => $to(x.to_degrees()),
                UnaryOp::ToRadians => $to(x.to_radians()),
                UnaryOp::IsNan => x.is_nan().into(),
                UnaryOp::IsInfinite => x.is_infinite().into(),
                UnaryOp::IsFinite => x.is_finite().into(),
                UnaryOp::IsSignNegative => x.is_sign_negative().into(),
                _ => panic!("{op:?} is not a float operator"),
            }
        }

        pub(super) fn $binary(op: BinaryOp, a: u64, b: u64) -> u64 {
            let (x, y) = ($from(a), $from(b));
            match op {
                BinaryOp::Add => $to(x + y),
                BinaryOp::Sub => $to(x - y),
                BinaryOp::Mul => $to(x * y),
                BinaryOp::Div => $to(x / y),
                BinaryOp::Rem => $to(x % y),
                BinaryOp::Min => $to(x.min(y)),
                BinaryOp::Max => $to(x.max(y)),
                BinaryOp::Copysign => $to(x.copysign(y)),
                BinaryOp::Eq => (x == y).into(),
                BinaryOp::Ne => (x != y).into(),
                BinaryOp::Lt => (x < y).into(),
                BinaryOp::Le => (x <= y).into(),
                BinaryOp::Gt => (x > y).into(),
                BinaryOp::Ge => (x >= y).into(),
                _ => panic!("{op:?} is not a float operator"),
            }
        }
    };
}

float_reference!(
    unary_f32,
    binary_f32,
    f32,
    |a: u64| f32::from_bits(a as u32),
    |x: f32| u64::from(x.to_bits()),
    f32
);
float_reference!(unary_f64, binary_f64, f64, f64::from_bits, f64::to_bits, f64);
float_reference!(
    unary_f16,
    binary_f16,
    f16,
    |a: u64| f16::from_bits(a as u16).to_f32(),
    |x: f32| u64::from(f16::from_f32(x).to_bits()),
    f16
);
float_reference!(
    unary_bf16,
    binary_bf16,
    bf16,
    |a: u64| bf16::from_bits(a as u16).to_f32(),
    |x: f32| u64::from(bf16::from_f32(x).to_bits()),
    bf16
);

pub(super) fn as_f64(s: Scalar, bits: u64) -> f64 {
    match s {
        Scalar::F16 => f16::from_bits(bits as u16).to_f64(),
        Scalar::BF16 => bf16::from_bits(bits as u16).to_f64(),
        Scalar::F32 => f32::from_bits(bits as u32).into(),
        _ => f64::from_bits(bits),
    }
}

/// Equal bits; or both NaN; or, when `zeros`, both zero.
pub(super) fn same(s: Scalar, a: u64, b: u64, zeros: bool) -> bool {
    a == b
        || s.is_float() && {
            let (x, y) = (as_f64(s, a), as_f64(s, b));
            x.is_nan() && y.is_nan() || zeros && x == 0.0 && y == 0.0
        }
}
