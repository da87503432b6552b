//! How scalars lie in memory, and which of them move together. Must not know instructions.

use crate::ir::{Scalar, Type};

/// The greatest power of two that divides `n`, up to `most`.
pub(super) fn alignment(n: u32, most: u32) -> u32 {
    if n == 0 {
        most
    } else {
        most.min(1 << n.trailing_zeros())
    }
}

/// What the address of a variable of this type is a multiple of: large ones begin where vectors can.
pub(super) fn variable_alignment(ty: &Type) -> u32 {
    if ty.size() >= 16 { 16 } else { ty.align() }
}

/// Type of a scalar in loads and stores.
pub(super) fn memory_type(s: Scalar) -> &'static str {
    match s {
        Scalar::Bool | Scalar::U8 => "u8",
        Scalar::I8 => "s8",
        Scalar::I16 => "s16",
        Scalar::U16 | Scalar::F16 | Scalar::BF16 => "u16",
        _ if s.size() == 8 => "b64",
        _ => "b32",
    }
}

/// Splits scalars into runs that one instruction moves: first index and number.
pub(super) fn runs(leaves: &[(Scalar, u32)], align: u32) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&(s, offset)) = leaves.get(at) {
        let fits = |n: usize| {
            let bytes = s.size() * n as u32;
            let run = leaves.get(at..at + n).unwrap_or_default();
            run.len() == n
                && bytes <= 16
                && alignment(offset, align) >= bytes
                && run.iter().zip(0u32..).all(|((other, o), i)| {
                    memory_type(*other) == memory_type(s) && *o == offset + i * s.size()
                })
        };
        let n = [4, 2].into_iter().find(|n| fits(*n)).unwrap_or(1);
        out.push((at, n));
        at += n;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::StructType;
    use std::sync::Arc;

    fn check(ty: Type, align: u32, expected: &[(usize, usize)]) {
        assert_eq!(runs(&ty.leaves(), align), expected, "{ty} at {align}");
    }

    #[test]
    fn scalars_side_by_side_move_together() {
        check(Type::F32, 4, &[(0, 1)]);
        check(Type::Vector(Scalar::F32, 4), 16, &[(0, 4)]);
        check(Type::Vector(Scalar::F32, 3), 16, &[(0, 2), (2, 1)]);
        check(Type::Vector(Scalar::F64, 4), 32, &[(0, 2), (2, 2)]);
        check(Type::Vector(Scalar::U8, 4), 4, &[(0, 4)]);
        check(Type::array(Type::F32, 4), 4, &[(0, 1), (1, 1), (2, 1), (3, 1)]);
        check(Type::array(Type::F32, 4), 16, &[(0, 4)]);
        let mixed = StructType::repr_c(
            "Mixed",
            vec![
                ("a".into(), Scalar::F32.into()),
                ("b".into(), Scalar::U32.into()),
                ("c".into(), Scalar::U64.into()),
            ],
            1,
        );
        check(Type::Struct(Arc::new(mixed)), 8, &[(0, 2), (2, 1)]);
    }
}
