//! What lanes do together: atomics, fences, subgroups, printing.

use crate::{Built, assemble, build, golden};
use perpetua_ir::ir::*;
use perpetua_ir::ops::BinaryOp::{Add, And, Eq, Ge, Lt};

const ORDERS: [MemOrder; 5] = [
    MemOrder::Relaxed,
    MemOrder::Acquire,
    MemOrder::Release,
    MemOrder::AcqRel,
    MemOrder::SeqCst,
];
const SCOPES: [Scope; 3] = [Scope::Block, Scope::Device, Scope::System];

/// Every atomic operation on global and shared memory of one type, with all orders and scopes.
fn atomics_on(s: Scalar) -> Kernel {
    build(&format!("atomics_{s}"), |k| {
        let y = k.buffer("y", s.into(), Access::ReadWrite);
        let t = k.shared("t", Type::array(s.into(), 64));
        let i = k.global_id(Axis::X)?;
        let v = k.load(Place::element(y, i))?;
        for base in [y, t] {
            let at = Place::element(base, i);
            for order in ORDERS {
                for scope in SCOPES {
                    let sync = Sync { order, scope };
                    for op in AtomicOp::ALL {
                        let bitwise = matches!(op, AtomicOp::And | AtomicOp::Or | AtomicOp::Xor);
                        if !(bitwise && s.is_float()) {
                            let old = k.op(Op::Atomic(op, at.clone(), v, sync))?;
                            k.store(Place::element(y, i), old)?;
                        }
                    }
                    if s.is_int() {
                        let old = k.op(Op::CompareExchange {
                            place: at.clone(),
                            expected: v,
                            new: v,
                            sync,
                        })?;
                        k.store(Place::element(y, i), old)?;
                    }
                    if !matches!(order, MemOrder::Release | MemOrder::AcqRel) {
                        let v = k.op(Op::Load(at.clone(), Some(sync)))?;
                        k.store(Place::element(y, i), v)?;
                    }
                    if !matches!(order, MemOrder::Acquire | MemOrder::AcqRel) {
                        k.effect(Effect::Store(at.clone(), v, Some(sync)))?;
                    }
                }
            }
        }
        SCOPES
            .iter()
            .try_for_each(|s| k.effect(DeviceOp::Fence(*s).into()))
    })
}

#[test]
fn atomics_assemble_on_every_type() {
    for s in [
        Scalar::I32,
        Scalar::U32,
        Scalar::I64,
        Scalar::U64,
        Scalar::F32,
        Scalar::F64,
    ] {
        assemble(atomics_on(s));
    }
}

#[test]
fn atomics_look_as_they_should() {
    golden(build("atomics", |k| {
        let y = k.buffer("y", Type::F32, Access::ReadWrite);
        let n = k.buffer("n", Type::U32, Access::ReadWrite);
        let one = k.f32(1.0);
        let zero = k.u32(0);
        let at = Place::element(y, zero);
        let sync = Sync {
            order: MemOrder::AcqRel,
            scope: Scope::Device,
        };
        k.op(Op::Atomic(AtomicOp::Add, at.clone(), one, Sync::RELAXED))?;
        k.op(Op::Atomic(AtomicOp::Min, at.clone(), one, sync))?;
        let total = Sync {
            order: MemOrder::SeqCst,
            scope: Scope::System,
        };
        let v = k.op(Op::Load(Place::element(n, zero), Some(total)))?;
        k.op(Op::Atomic(AtomicOp::Sub, Place::element(n, zero), v, total))?;
        k.effect(Effect::Store(Place::element(n, zero), v, Some(total)))
    }));
}

/// Every subgroup operation on one type.
fn subgroup_on(k: &mut KernelBuilder, s: Scalar) -> Built {
    let y = k.buffer(format!("y_{s}"), s.into(), Access::ReadWrite);
    let i = k.global_id(Axis::X)?;
    let lane = k.builtin(Builtin::SubgroupLane);
    let v = k.load(Place::element(y, i))?;
    let mut all = vec![
        (SubgroupOp::Shuffle, Some(lane)),
        (SubgroupOp::ShuffleUp, Some(lane)),
        (SubgroupOp::ShuffleDown, Some(lane)),
        (SubgroupOp::ShuffleXor, Some(lane)),
        (SubgroupOp::BroadcastFirst, None),
    ];
    for op in ReduceOp::ALL {
        if s.is_int() || !matches!(op, ReduceOp::And | ReduceOp::Or | ReduceOp::Xor) {
            all.push((SubgroupOp::Reduce(op), None));
            all.push((SubgroupOp::InclusiveScan(op), None));
            all.push((SubgroupOp::ExclusiveScan(op), None));
        }
    }
    for (op, arg) in all {
        let r = k.op(Op::subgroup(op, v, arg))?;
        k.store(Place::element(y, i), r)?;
    }
    Ok(())
}

#[test]
fn subgroup_operations_assemble_on_every_type() {
    for s in [
        Scalar::I32,
        Scalar::U32,
        Scalar::I64,
        Scalar::U64,
        Scalar::F32,
        Scalar::F64,
    ] {
        assemble(build(&format!("subgroup_{s}"), |k| subgroup_on(k, s)));
    }
}

#[test]
fn masks_follow_control_flow() {
    golden(build("masks", |k| {
        let y = k.buffer("y", Type::U32, Access::ReadWrite);
        let n = k.param("n", Type::U32);
        let i = k.global_id(Axis::X)?;
        let outside = k.binary(Ge, i, n)?;
        k.if_(outside, |k| {
            k.push(Inst::Return(None));
            Ok(())
        })?;
        let lane = k.builtin(Builtin::SubgroupLane);
        let sum = |k: &mut KernelBuilder| -> Built {
            let v = k.op(Op::subgroup(SubgroupOp::Reduce(ReduceOp::Add), lane, None))?;
            k.store(Place::element(y, i), v)
        };
        let one = k.u32(1);
        let bit = k.binary(And, lane, one)?;
        let odd = k.binary(Eq, bit, one)?;
        k.if_else(odd, sum, |k| {
            let v = k.op(Op::subgroup(SubgroupOp::Ballot, odd, None))?;
            let v = k.op(Op::Extract(v, 0))?;
            k.store(Place::element(y, i), v)
        })?;
        sum(k)?;
        let j = k.local("j", Type::U32);
        k.store(Place::local(j), lane)?;
        k.loop_(|k| {
            let at = k.load(Place::local(j))?;
            let done = k.binary(Ge, at, n)?;
            k.if_(done, |k| {
                k.break_(0);
                Ok(())
            })?;
            sum(k)?;
            let low = k.binary(Lt, at, lane)?;
            let any = k.op(Op::subgroup(SubgroupOp::Any, low, None))?;
            k.if_(any, sum)?;
            let next = k.binary(Add, at, one)?;
            k.store(Place::local(j), next)
        })?;
        sum(k)
    }));
}

#[test]
fn printing_fills_the_ring() {
    golden(build("printing", |k| {
        let args: Vec<Value> = Scalar::ALL
            .into_iter()
            .map(|s| k.param(format!("p_{s}"), s.into()))
            .collect();
        let pieces = |n: usize| vec![PrintPiece::Arg(Default::default()); n];
        k.set_line(3);
        k.effect(Effect::Print(vec![PrintPiece::Text("here".into())], Vec::new()))?;
        k.set_line(4);
        k.effect(Effect::Print(pieces(args.len()), args))
    }));
}
