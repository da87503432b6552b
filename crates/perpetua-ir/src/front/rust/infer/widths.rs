//! Scalar types of one width: the integers beside a float, and what the IR has for each.

use perpetua_syntax::Scalar;

use crate::ir;

/// The unsigned integer of the same width.
pub(crate) fn unsigned(s: Scalar) -> Scalar {
    match s {
        Scalar::Bool => Scalar::Bool,
        Scalar::I8 | Scalar::U8 => Scalar::U8,
        Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::Bf16 => Scalar::U16,
        Scalar::I32 | Scalar::U32 | Scalar::F32 => Scalar::U32,
        Scalar::I64 | Scalar::U64 | Scalar::F64 => Scalar::U64,
        Scalar::Isize | Scalar::Usize => Scalar::Usize,
    }
}

/// The signed integer of the same width.
pub(crate) fn signed(s: Scalar) -> Scalar {
    match unsigned(s) {
        Scalar::U8 => Scalar::I8,
        Scalar::U16 => Scalar::I16,
        Scalar::U32 => Scalar::I32,
        Scalar::U64 => Scalar::I64,
        Scalar::Usize => Scalar::Isize,
        other => other,
    }
}

/// The scalar of the IR, for a pointer width in bits.
pub(crate) fn ir_scalar(s: Scalar, width: u32) -> ir::Scalar {
    match s {
        Scalar::Bool => ir::Scalar::Bool,
        Scalar::I8 => ir::Scalar::I8,
        Scalar::I16 => ir::Scalar::I16,
        Scalar::I32 => ir::Scalar::I32,
        Scalar::I64 => ir::Scalar::I64,
        Scalar::U8 => ir::Scalar::U8,
        Scalar::U16 => ir::Scalar::U16,
        Scalar::U32 => ir::Scalar::U32,
        Scalar::U64 => ir::Scalar::U64,
        Scalar::F16 => ir::Scalar::F16,
        Scalar::Bf16 => ir::Scalar::BF16,
        Scalar::F32 => ir::Scalar::F32,
        Scalar::F64 => ir::Scalar::F64,
        Scalar::Isize if width == 32 => ir::Scalar::I32,
        Scalar::Isize => ir::Scalar::I64,
        Scalar::Usize if width == 32 => ir::Scalar::U32,
        Scalar::Usize => ir::Scalar::U64,
    }
}
