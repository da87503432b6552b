//! Which instruction does what on vectors. Whether AVX2 has it, [`Vop::in_avx2`](super::Vop::in_avx2) says.

use super::{Pp, Vop};
use perpetua_ir::ir::Scalar;
use perpetua_ir::ops::{BinaryOp, UnaryOp};

/// Instructions that the emitter names.
pub(in super::super) mod op {
    use super::{Pp, Vop};

    macro_rules! instructions {
        ($($name:ident $pp:ident $map:literal $w:literal $opcode:literal;)*) => {
            $(pub(in super::super::super) const $name: Vop = Vop(Pp::$pp, $map, $w, $opcode);)*
        };
    }

    instructions! {
        PAND P66 1 false 0xDB;
        PXOR P66 1 false 0xEF;
        PMOVQD PF3 2 false 0x35;
        PMOVSXDQ P66 2 false 0x25;
    }
}

/// Prefix and W of an instruction on floats.
fn float(wide: bool, map: u8, opcode: u8) -> Vop {
    Vop(if wide { Pp::P66 } else { Pp::None }, map, wide, opcode)
}

pub(in super::super) fn binary(operator: BinaryOp, s: Scalar) -> Option<Vop> {
    use BinaryOp::*;
    let wide = s.size() == 8;
    if matches!(s, Scalar::F32 | Scalar::F64) {
        let opcode = match operator {
            Add => 0x58,
            Mul => 0x59,
            Sub => 0x5C,
            Min => 0x5D,
            Div => 0x5E,
            Max => 0x5F,
            _ => return None,
        };
        return Some(float(wide, 1, opcode));
    }
    let (map, opcode) = match operator {
        Add => (1, if wide { 0xD4 } else { 0xFE }),
        Sub => (1, if wide { 0xFB } else { 0xFA }),
        And => (1, 0xDB),
        Or => (1, 0xEB),
        Xor => (1, 0xEF),
        Mul => (2, 0x40),
        Min => (2, if s.is_signed_int() { 0x39 } else { 0x3B }),
        Max => (2, if s.is_signed_int() { 0x3D } else { 0x3F }),
        Shl => (2, 0x47),
        Shr => (2, if s.is_signed_int() { 0x46 } else { 0x45 }),
        RotateLeft => (2, 0x15),
        RotateRight => (2, 0x14),
        _ => return None,
    };
    Some(Vop(Pp::P66, map, wide, opcode))
}

/// With the number behind the instruction, where there is one.
pub(in super::super) fn unary(operator: UnaryOp, s: Scalar) -> Option<(Vop, Option<u8>)> {
    use UnaryOp::*;
    let wide = s.size() == 8;
    let way = match operator {
        Sqrt => return Some((float(wide, 1, 0x51), None)),
        LeadingZeros => return Some((Vop(Pp::P66, 2, wide, 0x44), None)),
        Abs => return Some((Vop(Pp::P66, 2, wide, if wide { 0x1F } else { 0x1E }), None)),
        RoundTiesEven => 0,
        Floor => 1,
        Ceil => 2,
        Trunc => 3,
        _ => return None,
    };
    let round = Vop(Pp::P66, 3, wide, if wide { 0x09 } else { 0x08 });
    Some((round, Some(8 | way)))
}

/// A shift by a number: the instruction, and the extension of its opcode.
pub(in super::super) fn shift(operator: BinaryOp, s: Scalar) -> (Vop, u8) {
    let wide = s.size() == 8;
    let (opcode, which) = match operator {
        BinaryOp::Shr if s.is_signed_int() => (0x72, 4),
        BinaryOp::Shr => (if wide { 0x73 } else { 0x72 }, 2),
        _ => (if wide { 0x73 } else { 0x72 }, 6),
    };
    (Vop(Pp::P66, 1, wide, opcode), which)
}

/// Comparisons as AVX-512 numbers them.
pub(in super::super) fn compare(operator: BinaryOp, s: Scalar) -> (Vop, u8) {
    use BinaryOp::*;
    let number = match operator {
        Eq => 0,
        Lt => 1,
        Le => 2,
        Ge => 5,
        Gt => 6,
        _ => 4,
    };
    let wide = s.size() == 8;
    if matches!(s, Scalar::F32 | Scalar::F64) {
        // Those that hold of no NaN.
        let number = if number > 4 { number + 8 } else { number };
        return (float(wide, 1, 0xC2), number);
    }
    let opcode = if s.is_signed_int() { 0x1F } else { 0x1E };
    (Vop(Pp::P66, 3, wide, opcode), number)
}

/// Conversions: of one vector where sizes are equal, else from half a vector, or to it.
pub(in super::super) fn convert(from: Scalar, to: Scalar) -> Option<Vop> {
    use Scalar::*;
    Some(match (from, to) {
        (U64, U32) => op::PMOVQD,
        (I32, I64) => op::PMOVSXDQ,
        (U32, U64) => Vop(Pp::P66, 2, false, 0x35),
        (F32, F64) => Vop(Pp::None, 1, false, 0x5A),
        (F64, F32) => Vop(Pp::P66, 1, true, 0x5A),
        (I32, F32) => Vop(Pp::None, 1, false, 0x5B),
        (U32, F32) => Vop(Pp::PF2, 1, false, 0x7A),
        (I32, F64) => Vop(Pp::PF3, 1, false, 0xE6),
        (U32, F64) => Vop(Pp::PF3, 1, false, 0x7A),
        (I64, F32) => Vop(Pp::None, 1, true, 0x5B),
        (U64, F32) => Vop(Pp::PF2, 1, true, 0x7A),
        (I64, F64) => Vop(Pp::PF3, 1, true, 0xE6),
        (U64, F64) => Vop(Pp::PF3, 1, true, 0x7A),
        (F32, I32) => Vop(Pp::PF3, 1, false, 0x5B),
        (F32, U32) => Vop(Pp::None, 1, false, 0x78),
        (F64, I32) => Vop(Pp::P66, 1, true, 0xE6),
        (F64, U32) => Vop(Pp::None, 1, true, 0x78),
        (F64, U64) => Vop(Pp::P66, 1, true, 0x78),
        _ => return None,
    })
}
