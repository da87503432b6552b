//! Reductions by block and by grid. The order of a block's is that of a tree over its lanes' numbers: the same everywhere.

use perpetua_ir::ir::{
    AtomicOp, Base, DeviceOp, Effect, Inst, KernelBuilder, LocalId, Op, Place, ReduceOp, Scalar, Sync, Type,
    TypeError, Value,
};
use perpetua_ir::ops::BinaryOp;

use super::values::{float, lane_of_block};

type Result<T> = std::result::Result<T, TypeError>;

/// Most lanes of a block that reduces: as many as any device runs. One more meets a fault.
pub(crate) const MAX_LANES: u32 = 1024;

/// The result in all lanes. `scratch`: [`MAX_LANES`] elements of the value's type.
pub(super) fn block(k: &mut KernelBuilder, op: ReduceOp, scratch: Base, value: Value) -> Result<Value> {
    let (lane, lanes) = lane_of_block(k)?;
    k.store(Place::element(scratch, lane), value)?;
    // How many values are left, the first in front.
    let left = k.local("left", Type::U32);
    k.store(Place::local(left), lanes)?;
    k.loop_(|k| {
        let count = k.load(Place::local(left))?;
        let one = k.u32(1);
        let done = k.binary(BinaryOp::Le, count, one)?;
        k.if_(done, |k| {
            k.break_(0);
            Ok(())
        })?;
        barrier(k)?;
        let pairs = k.binary(BinaryOp::Shr, count, one)?;
        let rest = k.binary(BinaryOp::Sub, count, pairs)?;
        let takes_part = k.binary(BinaryOp::Lt, lane, pairs)?;
        k.if_(takes_part, |k| {
            let other = k.binary(BinaryOp::Add, lane, rest)?;
            let mine = k.load(Place::element(scratch, lane))?;
            let other = k.load(Place::element(scratch, other))?;
            let both = k.binary(op.binary(), mine, other)?;
            k.store(Place::element(scratch, lane), both)
        })?;
        k.store(Place::local(left), rest)
    })?;
    // Between two barriers it is known to be the same for all.
    barrier(k)?;
    let zero = k.u32(0);
    let result = k.load(Place::element(scratch, zero))?;
    // Nobody writes the next reduction's values before all have read this one's.
    barrier(k)?;
    Ok(result)
}

/// Brings a block's result to an element of a buffer: one lane does, in one atomic step.
pub(super) fn grid(
    k: &mut KernelBuilder,
    op: ReduceOp,
    ty: Scalar,
    place: Place,
    result: Value,
) -> Result<()> {
    let (lane, _) = lane_of_block(k)?;
    let zero = k.u32(0);
    let first = k.binary(BinaryOp::Eq, lane, zero)?;
    let known = match op {
        ReduceOp::Add => Some(AtomicOp::Add),
        ReduceOp::Min => Some(AtomicOp::Min),
        ReduceOp::Max => Some(AtomicOp::Max),
        ReduceOp::And => Some(AtomicOp::And),
        ReduceOp::Or => Some(AtomicOp::Or),
        ReduceOp::Xor => Some(AtomicOp::Xor),
        ReduceOp::Mul => None,
    };
    let held = k.local("held", ty.into());
    k.if_(first, |k| match known {
        Some(op) => k.op(Op::Atomic(op, place, result, Sync::RELAXED)).map(|_| ()),
        None if ty.is_float() => float_product(k, ty, held, place, result),
        None => product(k, held, place, result),
    })
}

// No device multiplies atomically: the product takes the element's place while that is what it was made of.
fn product(k: &mut KernelBuilder, old: LocalId, place: Place, factor: Value) -> Result<()> {
    let now = k.op(Op::Load(place.clone(), Some(Sync::RELAXED)))?;
    k.store(Place::local(old), now)?;
    k.loop_(|k| {
        let expected = k.load(Place::local(old))?;
        let new = k.binary(BinaryOp::Mul, expected, factor)?;
        let found = k.op(Op::CompareExchange {
            place,
            expected,
            new,
            sync: Sync::RELAXED,
        })?;
        let done = k.binary(BinaryOp::Eq, found, expected)?;
        k.if_(done, |k| {
            k.break_(0);
            Ok(())
        })?;
        k.store(Place::local(old), found)
    })
}

// Of floats, which no device compares and exchanges by their values, nor all by their bits. A lane takes what is there and leaves 1, puts
// the product back, and goes on with what it has displaced, until that is 1: the product of the element and of what lanes hold stays the same,
// but for rounding. A lane displaces something else only if another has put its product there meanwhile, and is done: so some lane
// always comes to its end.
fn float_product(
    k: &mut KernelBuilder,
    ty: Scalar,
    held: LocalId,
    place: Place,
    factor: Value,
) -> Result<()> {
    let one = float(k, ty, 1.0);
    k.store(Place::local(held), factor)?;
    k.loop_(|k| {
        let exchange = |k: &mut KernelBuilder, value| {
            k.op(Op::Atomic(
                AtomicOp::Exchange,
                place.clone(),
                value,
                Sync::RELAXED,
            ))
        };
        let taken = exchange(k, one)?;
        let mine = k.load(Place::local(held))?;
        let both = k.binary(BinaryOp::Mul, taken, mine)?;
        let displaced = exchange(k, both)?;
        let done = k.binary(BinaryOp::Eq, displaced, one)?;
        k.if_(done, |k| {
            k.break_(0);
            Ok(())
        })?;
        k.store(Place::local(held), displaced)
    })
}

/// All lanes of the block meet.
pub(super) fn barrier(k: &mut KernelBuilder) -> Result<()> {
    k.push(Inst::Do(Effect::from(DeviceOp::Barrier)));
    Ok(())
}
