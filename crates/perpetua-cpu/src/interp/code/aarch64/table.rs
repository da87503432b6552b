//! Which instruction does what on vectors of such scalars. What is not here, the host does.

use super::encode::{vector, wide};
use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::{BinaryOp, UnaryOp};

/// The instruction, or of those that take several the one that does the work.
pub(in super::super) fn binary(operator: BinaryOp, s: Scalar) -> Option<u32> {
    use BinaryOp::*;
    let (w, signed) = (s.size() == 8, s.is_signed_int());
    let word = match (s, operator) {
        (_, And) => return Some(vector::AND),
        (_, Or) => return Some(vector::ORR),
        (_, Xor) => return Some(vector::EOR),
        (Scalar::F32 | Scalar::F64, _) => match operator {
            Add => vector::FADD,
            Sub => vector::FSUB,
            Mul => vector::FMUL,
            Div => vector::FDIV,
            // A comparison, and then a choice.
            Min | Max => vector::FCMGT,
            _ => return None,
        },
        (_, Add) => vector::ADD,
        (_, Sub) => vector::SUB,
        (_, Shl) => vector::USHL,
        (_, Shr) if signed => vector::SSHL,
        (_, Shr) => vector::USHL,
        (_, Mul) if !w => vector::MUL,
        (_, Min) if !w => {
            if signed {
                vector::SMIN
            } else {
                vector::UMIN
            }
        }
        (_, Max) if !w => {
            if signed {
                vector::SMAX
            } else {
                vector::UMAX
            }
        }
        _ => return None,
    };
    Some(wide(word, w))
}

pub(in super::super) fn unary(operator: UnaryOp, s: Scalar) -> Option<u32> {
    use UnaryOp::*;
    let w = s.size() == 8;
    let word = match operator {
        Sqrt => vector::FSQRT,
        RoundTiesEven => vector::FRINTN,
        Floor => vector::FRINTM,
        Ceil => vector::FRINTP,
        Trunc => vector::FRINTZ,
        Abs => vector::ABS,
        LeadingZeros if !w => vector::CLZ,
        _ => return None,
    };
    Some(wide(word, w))
}

/// Conversions: of one vector where sizes are equal, else the first step of those from half a vector, or to it.
pub(in super::super) fn convert(from: Scalar, to: Scalar) -> Option<u32> {
    use Scalar::*;
    Some(match (from, to) {
        (U64, U32) => vector::UZP1,
        (I32, I64 | F64) => vector::SXTL,
        (U32, U64 | F64) => vector::UXTL,
        (F32, F64) => vector::FCVTL,
        (F64, F32) => vector::FCVTN,
        (I32, F32) => vector::SCVTF,
        (U32, F32) => vector::UCVTF,
        (I64, F64) => wide(vector::SCVTF, true),
        (U64, F64) => wide(vector::UCVTF, true),
        (F32, I32) => vector::FCVTZS,
        (F32, U32) => vector::FCVTZU,
        (F64, I64 | I32) => wide(vector::FCVTZS, true),
        (F64, U64 | U32) => wide(vector::FCVTZU, true),
        _ => return None,
    })
}
