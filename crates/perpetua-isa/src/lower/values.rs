//! Values of operands: constants, what the launch supplies, indices, functions made of several operators.

use perpetua_ir::ir::{Axis, Base, Builtin, KernelBuilder, Op, Scalar, TypeError, Value};
use perpetua_ir::ops::eval::float_bits;
use perpetua_ir::ops::{BinaryOp, TernaryOp, UnaryOp};

use crate::instruction::Special;
use crate::opcode::Activation;

type Result<T> = std::result::Result<T, TypeError>;

/// A float constant of a type.
pub(super) fn float(k: &mut KernelBuilder, ty: Scalar, value: f64) -> Value {
    k.constant(ty, float_bits(ty, value))
}

/// Where a launch lies in the whole grid, of which it is a part.
#[derive(Clone, Copy)]
pub(super) struct Part {
    /// The number of its first block, along x, y, z.
    pub(super) first: [Value; 3],
    /// Blocks of the whole grid.
    pub(super) grid: [Value; 3],
}

impl Part {
    fn of(values: &[Value; 3], axis: Axis) -> Value {
        values[axis as usize]
    }
}

/// What the launch supplies, as `u32` or `u64`; of the whole grid where it runs in parts.
pub(super) fn special(
    k: &mut KernelBuilder,
    grid: Option<Part>,
    special: Special,
    ty: Scalar,
) -> Result<Value> {
    let builtin = |k: &mut KernelBuilder, builtin: Builtin| match (grid, builtin) {
        (Some(part), Builtin::GridDim(axis)) => Ok(Part::of(&part.grid, axis)),
        (Some(part), Builtin::BlockIdx(axis)) => {
            let block = k.builtin(builtin);
            k.binary(BinaryOp::Add, block, Part::of(&part.first, axis))
        }
        _ => Ok(k.builtin(builtin)),
    };
    let wide = |k: &mut KernelBuilder, value| match ty {
        Scalar::U32 => Ok(value),
        _ => k.cast(ty, value),
    };
    if let Some(known) = special.builtin() {
        let value = builtin(k, known)?;
        return wide(k, value);
    }
    let mut part = |kind: fn(Axis) -> Builtin| {
        let value = builtin(k, kind(Axis::X))?;
        wide(k, value)
    };
    let (block, dim, thread) = (
        part(Builtin::BlockIdx)?,
        part(Builtin::BlockDim)?,
        part(Builtin::ThreadIdx)?,
    );
    let start = k.binary(BinaryOp::Mul, block, dim)?;
    k.binary(BinaryOp::Add, start, thread)
}

/// The number of this lane in its block, and the number of lanes.
pub(super) fn lane_of_block(k: &mut KernelBuilder) -> Result<(Value, Value)> {
    let [mut lane, mut lanes] =
        [Builtin::ThreadIdx(Axis::Z), Builtin::BlockDim(Axis::Z)].map(|b| k.builtin(b));
    for axis in [Axis::Y, Axis::X] {
        let dim = k.builtin(Builtin::BlockDim(axis));
        let thread = k.builtin(Builtin::ThreadIdx(axis));
        let start = k.binary(BinaryOp::Mul, lane, dim)?;
        lane = k.binary(BinaryOp::Add, start, thread)?;
        lanes = k.binary(BinaryOp::Mul, lanes, dim)?;
    }
    Ok((lane, lanes))
}

/// The length of a memory.
pub(super) fn length(k: &mut KernelBuilder, base: Base, fixed: Option<u64>, ty: Scalar) -> Result<Value> {
    match fixed {
        Some(len) => Ok(k.constant(ty, len)),
        None => k.op(Op::Len(base, ty)),
    }
}

/// A function made of several operators.
pub(super) fn activation(k: &mut KernelBuilder, which: Activation, ty: Scalar, x: Value) -> Result<Value> {
    use BinaryOp::{Add, Div, Ge, Max, Mul};
    use UnaryOp::{Abs, Exp, ExpM1, Ln1p, Neg, Recip, Tanh};
    let zero = float(k, ty, 0.0);
    let one = float(k, ty, 1.0);
    match which {
        Activation::Relu => k.binary(Max, x, zero),
        Activation::Sigmoid => {
            let minus = k.unary(Neg, x)?;
            let power = k.unary(Exp, minus)?;
            let below = k.binary(Add, one, power)?;
            k.unary(Recip, below)
        }
        Activation::Silu => {
            let share = activation(k, Activation::Sigmoid, ty, x)?;
            k.binary(Mul, x, share)
        }
        Activation::Gelu => {
            let [scale, cubic, half] = [0.797_884_560_8, 0.044_715, 0.5].map(|value| float(k, ty, value));
            let square = k.binary(Mul, x, x)?;
            let cube = k.binary(Mul, square, x)?;
            let inner = k.ternary(TernaryOp::Fma, cubic, cube, x)?;
            let inner = k.binary(Mul, scale, inner)?;
            let inner = k.unary(Tanh, inner)?;
            let share = k.binary(Add, one, inner)?;
            let halved = k.binary(Mul, half, x)?;
            k.binary(Mul, halved, share)
        }
        Activation::Softplus => {
            let magnitude = k.unary(Abs, x)?;
            let minus = k.unary(Neg, magnitude)?;
            let power = k.unary(Exp, minus)?;
            let rest = k.unary(Ln1p, power)?;
            let above = k.binary(Max, x, zero)?;
            k.binary(Add, above, rest)
        }
        Activation::Softsign => {
            let magnitude = k.unary(Abs, x)?;
            let below = k.binary(Add, one, magnitude)?;
            k.binary(Div, x, below)
        }
        Activation::Elu => {
            let above = k.binary(Ge, x, zero)?;
            let below = k.unary(ExpM1, x)?;
            k.ternary(TernaryOp::Select, above, x, below)
        }
        Activation::HardSigmoid => {
            let [slope, middle] = [1.0 / 6.0, 0.5].map(|value| float(k, ty, value));
            let line = k.ternary(TernaryOp::Fma, x, slope, middle)?;
            k.ternary(TernaryOp::Clamp, line, zero, one)
        }
    }
}
