//! Numbers as their bytes: what they are worth, and how far apart two are. Must not know arrays.

use half::{bf16, f16};
use perpetua_ir::ir::Scalar;

fn bits(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    let len = bytes.len().min(8);
    wide[..len].copy_from_slice(&bytes[..len]);
    u64::from_le_bytes(wide)
}

/// A signed integer of so many bits.
fn extended(bits: u64, width: u32) -> i64 {
    let unused = 64 - width;
    (bits << unused) as i64 >> unused
}

/// A number's value; of 64-bit integers the nearest.
pub(crate) fn number(ty: Scalar, bytes: &[u8]) -> f64 {
    let bits = bits(bytes);
    match ty {
        Scalar::F16 => f16::from_bits(bits as u16).to_f64(),
        Scalar::BF16 => bf16::from_bits(bits as u16).to_f64(),
        Scalar::F32 => f32::from_bits(bits as u32).into(),
        Scalar::F64 => f64::from_bits(bits),
        _ if ty.is_signed_int() => extended(bits, ty.bits()) as f64,
        _ => bits as f64,
    }
}

/// Whether two integers are equal, also where one has fewer bits.
pub(crate) fn is_same(ty: Scalar, bytes: &[u8], other: Scalar, others: &[u8]) -> bool {
    let value = |ty: Scalar, bytes| match ty.is_signed_int() {
        true => i128::from(extended(bits(bytes), ty.bits())),
        false => i128::from(bits(bytes)),
    };
    value(ty, bytes) == value(other, others)
}

/// How many floats of the type lie from one to the other: none between equal ones and between two that are no numbers.
pub(crate) fn steps_between(ty: Scalar, a: &[u8], b: &[u8]) -> u64 {
    match (number(ty, a).is_nan(), number(ty, b).is_nan()) {
        (true, true) => return 0,
        (false, false) => {}
        _ => return u64::MAX,
    }
    // Negative floats count backwards; both zeros are one place.
    let place = |bytes| {
        let signed = extended(bits(bytes), ty.bits());
        let magnitude = i128::from(signed & (i64::MAX >> (64 - ty.bits())));
        if signed < 0 { -magnitude } else { magnitude }
    };
    u64::try_from((place(a) - place(b)).abs()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_their_type() {
        assert_eq!(number(Scalar::F32, &1.5f32.to_le_bytes()), 1.5);
        assert_eq!(number(Scalar::F16, &f16::from_f32(-2.0).to_le_bytes()), -2.0);
        assert_eq!(number(Scalar::I8, &[255]), -1.0);
        assert_eq!(number(Scalar::U16, &[255, 255]), 65535.0);
        assert!(is_same(
            Scalar::U64,
            &7u64.to_le_bytes(),
            Scalar::U32,
            &7u32.to_le_bytes()
        ));
        assert!(!is_same(
            Scalar::I64,
            &(-1i64).to_le_bytes(),
            Scalar::U32,
            &u32::MAX.to_le_bytes()
        ));
    }

    #[test]
    fn floats_are_counted_between_two() {
        let check = |a: f32, b: f32, expect: u64| {
            assert_eq!(
                steps_between(Scalar::F32, &a.to_le_bytes(), &b.to_le_bytes()),
                expect,
                "{a} {b}"
            );
        };
        check(1.0, 1.0, 0);
        check(1.0, 1.0 + f32::EPSILON, 1);
        check(0.0, -0.0, 0);
        check(f32::from_bits(1), -f32::from_bits(1), 2);
        check(f32::NAN, f32::NAN, 0);
        check(f32::NAN, 1.0, u64::MAX);
        check(f32::MAX, f32::INFINITY, 1);
    }
}
