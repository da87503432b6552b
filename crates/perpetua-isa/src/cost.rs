//! What instructions weigh in a budget: how many plain ones they come to. Where that depends on values or on other lanes, at the most:
//! a block of 1,024 lanes, a subgroup's lanes that all change one element. Knows no device.

use std::collections::HashMap;
use std::sync::LazyLock;

use perpetua_ir::ir::Scalar;
use perpetua_ir::math::{LibraryOp, Sums, function};
use perpetua_ir::ops::{BinaryOp, UnaryOp};

use crate::instruction::{Instruction, Operand};
use crate::opcode::{Activation, Meaning, Space};

/// A meeting of all lanes of a block, and a fence.
const MEETING: u64 = 16;
/// Ten levels of a tree, with a meeting and eight instructions each, and what stands around them.
const GROUP: u64 = 10 * (MEETING + 8) + 2 * MEETING;
/// The lanes of a subgroup, one after the other.
const ATOMIC: u64 = 32;
/// An element of `copy` and `fill`, which checks its indices and counts.
pub(crate) const ELEMENT: u32 = 8;
/// A bit of a remainder's long division.
const OF_A_BIT: u64 = 12;

// Statements of the math library's functions; they have no loops, but for the remainder.
static LIBRARY: LazyLock<HashMap<LibraryOp, u64>> = LazyLock::new(|| {
    let both = [Scalar::F32, Scalar::F64];
    let unary = UnaryOp::ALL
        .iter()
        .map(|op| both.map(|ty| LibraryOp::Unary(*op, ty)));
    let binary = BinaryOp::ALL
        .iter()
        .map(|op| both.map(|ty| LibraryOp::Binary(*op, ty)));
    let statements = |op: LibraryOp| {
        let mut count = 0;
        function(op, Sums::Rearranged)?
            .body
            .block
            .walk(&mut |_| count += 1);
        Some((op, count))
    };
    unary.chain(binary).flatten().filter_map(statements).collect()
});

/// What an instruction weighs.
pub(crate) fn cost(instruction: &Instruction) -> u64 {
    let counts = instruction.operands.iter().filter_map(|operand| match operand {
        Operand::Count(count) => Some(u64::from(*count)),
        _ => None,
    });
    let one = of(
        instruction.opcode.meaning(),
        instruction.ty.unwrap_or(Scalar::U32),
    );
    counts.fold(one, u64::saturating_mul)
}

/// What one of these weighs, at a type; of tiles and runs of registers, for each operation.
pub(crate) fn of(meaning: Meaning, ty: Scalar) -> u64 {
    // Half floats are computed by way of f32, which has eight bits less of exponent or sixteen of fraction to be rounded away.
    let (computed, plain) = match ty {
        Scalar::F16 | Scalar::BF16 => (Scalar::F32, 4),
        ty => (ty, 1),
    };
    let library = |op| LIBRARY.get(&op).map_or(plain, |count| plain + count);
    let by_type = |narrow: u64, wide: u64| if ty.bits() == 64 { wide } else { narrow };
    match meaning {
        Meaning::Unary(UnaryOp::Sqrt | UnaryOp::Rsqrt | UnaryOp::Recip) => plain + by_type(8, 32),
        Meaning::Unary(op) => library(LibraryOp::Unary(op, computed)),
        // The exponents' difference in bits, and the fraction's.
        Meaning::Binary(BinaryOp::Rem) if ty.is_float() => plain + OF_A_BIT * by_type(277, 2098),
        Meaning::Binary(BinaryOp::Div) if ty.is_float() => plain + by_type(8, 32),
        Meaning::Binary(BinaryOp::Div | BinaryOp::Rem) => by_type(16, 64),
        Meaning::Binary(op) => library(LibraryOp::Binary(op, computed)),
        Meaning::Activation(which) => {
            let parts: &[UnaryOp] = match which {
                Activation::Relu | Activation::Softsign | Activation::HardSigmoid => &[],
                Activation::Sigmoid | Activation::Silu => &[UnaryOp::Exp],
                Activation::Gelu => &[UnaryOp::Tanh],
                Activation::Softplus => &[UnaryOp::Exp, UnaryOp::Ln1p],
                Activation::Elu => &[UnaryOp::ExpM1],
            };
            let parts = parts.iter().map(|op| library(LibraryOp::Unary(*op, computed)));
            parts.fold(plain * 10 + by_type(8, 32), u64::saturating_add)
        }
        Meaning::Ternary(_) | Meaning::MultiplyAdd | Meaning::Reduce(_) | Meaning::Tile => plain,
        Meaning::Barrier | Meaning::Fence(Some(_)) => MEETING,
        Meaning::Group(_) => GROUP,
        Meaning::Grid(_) => GROUP + ATOMIC,
        Meaning::Atomic(_) | Meaning::CompareExchange => ATOMIC,
        Meaning::Copy | Meaning::Fill => ELEMENT.into(),
        Meaning::PoolAlloc => 64 + ATOMIC,
        Meaning::PoolFree => 16 + ATOMIC,
        Meaning::Load(Space::Pool) | Meaning::Store(Space::Pool) => 16,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opcode::Opcode;

    fn at(name: &str, ty: Scalar) -> u64 {
        of(Opcode::from_name(name).expect(name).meaning(), ty)
    }

    #[test]
    fn what_is_many_instructions_weighs_many() {
        assert_eq!(
            (
                at("add", Scalar::F32),
                at("mov", Scalar::U64),
                at("ldg", Scalar::F32)
            ),
            (1, 1, 1)
        );
        assert!(at("add", Scalar::F16) > 1);
        // Each operator that the math library computes has its own weight.
        for op in UnaryOp::ALL {
            for ty in [Scalar::F32, Scalar::F64] {
                if let Some(function) = function(LibraryOp::Unary(*op, ty), Sums::Rearranged) {
                    let mut count = 0;
                    function.body.block.walk(&mut |_| count += 1);
                    assert!(count > 0 && of(Meaning::Unary(*op), ty) > count, "{op:?} of {ty}");
                }
            }
        }
        assert!(at("exp", Scalar::F32) >= 10);
        assert!(at("pow", Scalar::F64) > at("pow", Scalar::F32) && at("pow", Scalar::F32) > 100);
        assert!(at("gelu", Scalar::F32) > at("tanh", Scalar::F32));
        assert!(at("rem", Scalar::F64) > 20_000);
        assert!(at("grid_add", Scalar::U32) > at("group_add", Scalar::U32));
        assert!(at("group_add", Scalar::U32) > 10 * at("bar", Scalar::U32));
    }
}
