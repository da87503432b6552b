//! Control flow, device functions, faults.

use crate::{Built, assemble, build, golden};
use perpetua_ir::ir::*;
use perpetua_ir::ops::BinaryOp::{Add, Div, Eq, Ge, Lt, Mul, Rem, Sub};
use perpetua_ir::ops::UnaryOp;

#[test]
fn a_streaming_kernel_keeps_one_check() {
    let usage = golden(build("saxpy", |k| {
        k.set_source("src/kernels.rs");
        let x = k.buffer("x", Type::F32, Access::Read);
        let y = k.buffer("y", Type::F32, Access::ReadWrite);
        let a = k.param("a", Type::F32);
        k.set_line(4);
        let i = k.global_id(Axis::X)?;
        let i = k.cast(Scalar::U64, i)?;
        let n = k.op(Op::Len(y, Scalar::U64))?;
        k.set_line(5);
        let inside = k.binary(Lt, i, n)?;
        k.if_(inside, |k| {
            k.set_line(6);
            let u = k.load(Place::element(x, i))?;
            let v = k.load(Place::element(y, i))?;
            let u = k.binary(Mul, a, u)?;
            let v = k.binary(Add, u, v)?;
            k.store(Place::element(y, i), v)
        })
    }));
    if let Some(usage) = usage {
        assert!(usage.registers <= 24, "{usage:?}");
        assert_eq!((usage.stack_bytes, usage.spill_store_bytes), (0, 0));
    }
}

/// `while i < n`, with nested loops, labelled breaks, continue, a switch and returns.
fn torture(k: &mut KernelBuilder) -> Built {
    let y = k.buffer("y", Type::U32, Access::ReadWrite);
    let n = k.param("n", Type::U32);
    let signed = k.param("signed", Scalar::I8.into());
    let wide = k.param("wide", Scalar::I64.into());
    let i = k.local("i", Type::U32);
    let sum = k.local("sum", Type::U32);
    let zero = k.u32(0);
    let one = k.u32(1);
    k.store(Place::local(i), zero)?;
    k.store(Place::local(sum), zero)?;
    let add = |k: &mut KernelBuilder, to: LocalId, v: Value| -> Built {
        let old = k.load(Place::local(to))?;
        let new = k.binary(Add, old, v)?;
        k.store(Place::local(to), new)
    };
    k.loop_(|k| {
        let at = k.load(Place::local(i))?;
        let done = k.binary(Ge, at, n)?;
        k.if_(done, |k| {
            k.break_(0);
            Ok(())
        })?;
        add(k, i, one)?;
        let labelled = k.block(|k| {
            let three = k.u32(3);
            let r = k.binary(Rem, at, three)?;
            let skip = k.binary(Eq, r, one)?;
            k.if_else(
                skip,
                |k| {
                    k.break_(0);
                    Ok(())
                },
                |k| {
                    let eleven = k.u32(11);
                    let far = k.binary(Ge, at, eleven)?;
                    k.if_(far, |k| {
                        k.push(Inst::Continue(1));
                        Ok(())
                    })
                },
            )?;
            let hundred = k.u32(100);
            let out = k.binary(Ge, at, hundred)?;
            k.if_else(
                out,
                |k| {
                    k.push(Inst::Return(None));
                    Ok(())
                },
                |k| add(k, sum, r),
            )
        })?;
        k.push(Inst::Labeled(labelled));
        let mut cases = Vec::new();
        for label in 0..10u64 {
            let block = k.block(|k| {
                if label == 4 {
                    k.break_(0);
                    return Ok(());
                }
                let v = k.u32(label as u32 * 7);
                add(k, sum, v)
            })?;
            cases.push((vec![label, 0x80 + label], block));
        }
        let default = k.block(|k| add(k, sum, one))?;
        k.push(Inst::Switch {
            selector: signed,
            cases,
            default,
        });
        let minus = k.block(|k| add(k, sum, one))?;
        k.push(Inst::Switch {
            selector: wide,
            cases: vec![(vec![u64::MAX, 1 << 63], minus)],
            default: Block::default(),
        });
        let yes = k.bool(true);
        let never = k.unary(UnaryOp::Not, yes)?;
        k.if_(never, |k| {
            k.push(Inst::Continue(0));
            Ok(())
        })
    })?;
    let total = k.load(Place::local(sum))?;
    k.store(Place::element(y, n), total)
}

#[test]
fn control_flow_assembles() {
    golden(build("torture", torture));
}

#[test]
fn functions_are_inlined() {
    golden(build("functions", |k| {
        let y = k.buffer("y", Type::F32, Access::ReadWrite);
        let pair = Type::tuple(vec![Type::F32, Type::BOOL]);
        let quotient = {
            let params = vec![("a".into(), Type::U32), ("b".into(), Type::U32)];
            k.function("quotient", params, Some(Type::U32), |k| {
                k.set_line(10);
                let q = k.binary(Div, Value(0), Value(1))?;
                k.push(Inst::Return(Some(q)));
                Ok::<(), TypeError>(())
            })?
        };
        let early = {
            let params = vec![("x".into(), Type::F32), ("n".into(), Type::U32)];
            let result = pair.clone();
            k.function("early", params, Some(pair), move |k| {
                k.set_line(20);
                let zero = k.f32(0.0);
                let negative = k.binary(Lt, Value(0), zero)?;
                k.if_(negative, |k| {
                    let no = k.bool(false);
                    let v = k.op(Op::Compose(result.clone(), vec![zero, no]))?;
                    k.push(Inst::Return(Some(v)));
                    Ok(())
                })?;
                let q = k.call(quotient, vec![Value(1), Value(1)])?.expect("a value");
                let q = k.cast(Scalar::F32, q)?;
                let v = k.binary(Sub, Value(0), q)?;
                let yes = k.bool(true);
                let v = k.op(Op::Compose(result.clone(), vec![v, yes]))?;
                k.push(Inst::Return(Some(v)));
                Ok::<(), TypeError>(())
            })?
        };
        k.set_line(30);
        let i = k.global_id(Axis::X)?;
        let v = k.load(Place::element(y, i))?;
        let got = k.call(early, vec![v, i])?.expect("a value");
        let (v, flag) = (k.op(Op::Extract(got, 0))?, k.op(Op::Extract(got, 1))?);
        k.if_(flag, |k| k.store(Place::element(y, i), v))
    }));
}

#[test]
fn library_functions_assemble() {
    assemble(build("library", |k| {
        let y = k.buffer("y", Type::F32, Access::ReadWrite);
        let i = k.global_id(Axis::X)?;
        let v = k.load(Place::element(y, i))?;
        let v = k.unary(UnaryOp::Sin, v)?;
        let v = k.unary(UnaryOp::Exp, v)?;
        let v = k.binary(Rem, v, v)?;
        k.store(Place::element(y, i), v)
    }));
}

/// A group's sum, with faults possible before, between and after barriers.
#[test]
fn dead_lanes_walk_to_barriers() {
    golden(build("group_sum", |k| {
        k.kernel_mut().block_size = Some([256, 1, 1]);
        let x = k.buffer("x", Type::F32, Access::Read);
        let y = k.buffer("y", Type::F32, Access::ReadWrite);
        let tile = k.shared("tile", Type::array(Type::F32, 256));
        let lane = k.builtin(Builtin::ThreadIdx(Axis::X));
        let i = k.global_id(Axis::X)?;
        let v = k.load(Place::element(x, i))?;
        k.store(Place::element(tile, lane), v)?;
        k.effect(DeviceOp::Barrier.into())?;
        let stride = k.local("stride", Type::U32);
        let half = k.u32(128);
        k.store(Place::local(stride), half)?;
        k.loop_(|k| {
            let s = k.load(Place::local(stride))?;
            let zero = k.u32(0);
            let done = k.binary(Eq, s, zero)?;
            k.if_(done, |k| {
                k.break_(0);
                Ok(())
            })?;
            let low = k.binary(Lt, lane, s)?;
            k.if_(low, |k| {
                let far = k.binary(Add, lane, s)?;
                let u = k.load(Place::element(tile, far))?;
                let v = k.load(Place::element(tile, lane))?;
                let v = k.binary(Add, u, v)?;
                k.store(Place::element(tile, lane), v)
            })?;
            k.effect(DeviceOp::Barrier.into())?;
            let two = k.u32(2);
            let s = k.binary(Div, s, two)?;
            k.store(Place::local(stride), s)
        })?;
        let zero = k.u32(0);
        let first = k.binary(Eq, lane, zero)?;
        k.if_(first, |k| {
            let v = k.load(Place::element(tile, zero))?;
            let group = k.builtin(Builtin::BlockIdx(Axis::X));
            k.store(Place::element(y, group), v)
        })
    }));
}

#[test]
fn fault_sites_are_numbered_as_they_stand() {
    let (source, _) = assemble(build("sites", |k| {
        let y = k.buffer("y", Scalar::I32.into(), Access::ReadWrite);
        let f = k.function(
            "third",
            vec![("a".into(), Type::I32), ("b".into(), Type::I32)],
            Some(Type::I32),
            |k| {
                let v = k.binary(Rem, Value(0), Value(1))?;
                k.push(Inst::Return(Some(v)));
                Ok::<(), TypeError>(())
            },
        )?;
        let i = k.param("i", Type::I32);
        let a = k.load(Place::element(y, i))?;
        let b = k.call(f, vec![a, i])?.expect("a value");
        let c = k.call(f, vec![b, a])?.expect("a value");
        k.store(Place::element(y, i), c)?;
        let never = k.bool(false);
        k.if_(never, |k| {
            k.effect(Effect::Fault(FaultKind::UnreachableEnum, "Mode".into(), vec![i]))
        })?;
        k.load(Place::element(y, c)).map(|_| ())
    }));
    let subjects: Vec<_> = source.faults.iter().map(|f| f.subject.as_str()).collect();
    assert_eq!(subjects, ["remainder", "remainder", "y", "Mode", "y"]);
    let numbers: Vec<u32> = source
        .text
        .lines()
        .filter_map(|l| l.strip_prefix("\tmov.b32 %r"))
        .filter_map(|l| l.split_once(", ")?.1.trim_end_matches(';').parse().ok())
        .collect();
    // Rare code lies in the order in which it was left out of the way: the first `y`, both sites of each
    // inlined call, the last `y`.
    assert_eq!(numbers, [2, 0, 1, 0, 1, 4]);
}
