//! Control flow that random lanes do not have: barriers, and lanes that work together across them.

use super::*;

/// Sums `data` by halves in shared memory: `out[block]` of each block.
pub(super) fn tree_sum(dynamic: bool) -> Verified {
    kernel("tree_sum", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let data = k.buffer("data", Type::U32, Access::Read);
        let tile = if dynamic {
            k.dynamic_shared("tile", Type::U32)
        } else {
            k.shared("tile", Type::array(Type::U32, 256))
        };
        let (t, i) = (thread(k), k.global_id(Axis::X)?);
        let v = k.load(Place::element(data, i))?;
        k.store(Place::element(tile, t), v)?;
        k.effect(DeviceOp::Barrier.into())?;
        let half = k.local("half", Type::U32);
        let dim = k.builtin(Builtin::BlockDim(Axis::X));
        let one = k.u32(1);
        let first = k.binary(BinaryOp::Shr, dim, one)?;
        k.store(Place::local(half), first)?;
        k.loop_(|k| {
            let h = k.load(Place::local(half))?;
            let zero = k.u32(0);
            let done = k.binary(BinaryOp::Eq, h, zero)?;
            k.if_(done, |k| {
                k.break_(0);
                Ok(())
            })?;
            let adds = k.binary(BinaryOp::Lt, t, h)?;
            k.if_(adds, |k| {
                let other = k.binary(BinaryOp::Add, t, h)?;
                let a = k.load(Place::element(tile, t))?;
                let b = k.load(Place::element(tile, other))?;
                let sum = k.binary(BinaryOp::Add, a, b)?;
                k.store(Place::element(tile, t), sum)
            })?;
            k.effect(DeviceOp::Barrier.into())?;
            let next = k.binary(BinaryOp::Shr, h, one)?;
            k.store(Place::local(half), next)
        })?;
        if_eq(k, t, 0, |k| {
            let zero = k.u32(0);
            let sum = k.load(Place::element(tile, zero))?;
            let b = block(k);
            k.store(Place::element(out, b), sum)
        })
    })
}

#[test]
fn blocks_sum_across_barriers() {
    for dynamic in [false, true] {
        let kernel = tree_sum(dynamic);
        for block in [1u32, 2, 32, 64, 128, 256] {
            let n = 3 * block;
            let data: Vec<u32> = (0..n).map(|i| i * i + 1).collect();
            let expect: Vec<u32> = data
                .chunks(block as usize)
                .map(|chunk| chunk.iter().sum())
                .collect();
            let mut buffers = [vec![0; 3], data];
            let run = Run {
                dynamic: if dynamic { 4 * block } else { 0 },
                ..Run::of(&kernel, 3, block).watched()
            };
            run.on(&mut buffers).unwrap();
            assert_eq!(buffers[0], expect, "{block} lanes, dynamic {dynamic}");
        }
    }
}

/// A kernel whose checks count as explicit, so that the verifier lets barriers stand anywhere.
fn unchecked(build: impl FnOnce(&mut KernelBuilder) -> Built) -> Verified {
    kernel("divergent", |k| {
        k.kernel_mut().checks = Checks::Explicit;
        build(k)
    })
}

#[test]
fn a_barrier_that_some_lanes_miss_is_an_error() {
    let branch = unchecked(|k| {
        let t = thread(k);
        let three = k.u32(3);
        let few = k.binary(BinaryOp::Lt, t, three)?;
        k.set_line(5);
        k.if_(few, |k| k.effect(DeviceOp::Barrier.into()))
    });
    let returned = unchecked(|k| {
        let t = thread(k);
        if_eq(k, t, 7, |k| {
            k.push(Inst::Return(None));
            Ok(())
        })?;
        k.set_line(9);
        k.effect(DeviceOp::Barrier.into())
    });
    for (kernel, line, missing, arrived) in [(&branch, 5, 3, 3), (&returned, 9, 7, 7)] {
        let error = Run::of(kernel, 2, 8).on(&mut []).unwrap_err();
        let expect = InterpError::DivergentBarrier {
            kernel: "divergent".into(),
            line,
            block: [0; 3],
            missing: [missing, 0, 0],
            arrived,
            lanes: 8,
        };
        assert_eq!(error, expect);
        assert!(error.to_string().contains(&format!("line {line}")), "{error}");
    }
}

/// Lanes leave nested loops and blocks at different depths; each writes down its way.
#[test]
fn lanes_leave_by_different_ways() {
    let kernel = kernel("ways", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let t = thread(k);
        let way = k.local("way", Type::U32);
        let zero = k.u32(0);
        k.store(Place::local(way), zero)?;
        let add = |k: &mut KernelBuilder, n: u32| {
            let (w, n) = (k.load(Place::local(way))?, k.u32(n));
            let w = k.binary(BinaryOp::Add, w, n)?;
            k.store(Place::local(way), w)
        };
        let outer = k.block(|k| {
            let middle = k.block(|k| {
                let inner = k.block(|k| {
                    for depth in 0..3 {
                        if_eq(k, t, depth, |k| {
                            k.break_(depth);
                            Ok(())
                        })?;
                    }
                    if_eq(k, t, 3, |k| {
                        add(k, 1000)?;
                        let (w, most) = (k.load(Place::local(way))?, k.u32(5000));
                        let more = k.binary(BinaryOp::Lt, w, most)?;
                        k.if_(more, |k| {
                            k.push(Inst::Continue(1));
                            Ok(())
                        })
                    })?;
                    if_eq(k, t, 4, |k| {
                        k.push(Inst::Return(None));
                        Ok(())
                    })?;
                    add(k, 1)
                })?;
                k.push(Inst::Labeled(inner));
                add(k, 10)?;
                k.break_(0);
                Ok(())
            })?;
            k.push(Inst::Loop(middle));
            add(k, 100)
        })?;
        k.push(Inst::Labeled(outer));
        let w = k.load(Place::local(way))?;
        let one = k.u32(1);
        let w = k.binary(BinaryOp::Add, w, one)?;
        k.store(Place::element(out, t), w)
    });
    // Lane 0 leaves the inner block, 1 the loop, 2 the outer block, 3 turns four times, 4 returns.
    assert_eq!(
        Run::of(&kernel, 1, 6).gives(6).unwrap(),
        [111, 101, 1, 5112, 0, 112]
    );
}
