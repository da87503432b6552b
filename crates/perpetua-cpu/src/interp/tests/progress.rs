//! Blocks that wait for each other get on, and what hangs is ended by its budget.

use super::*;

/// The first block waits for the last one to raise a flag, twice as long as any turn.
#[test]
fn a_block_may_wait_for_a_later_one() {
    let kernel = kernel("relay", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let (b, zero, one) = (block(k), k.u32(0), k.u32(1));
        let flag = Place::element(out, zero);
        let last = k.builtin(Builtin::GridDim(Axis::X));
        let last = k.binary(BinaryOp::Sub, last, one)?;
        let is_last = k.binary(BinaryOp::Eq, b, last)?;
        k.if_(is_last, |k| {
            let data = k.u32(42);
            k.store(Place::element(out, one), data)?;
            k.effect(Effect::Store(
                flag.clone(),
                one,
                Some(sync(MemOrder::Release, Scope::Device)),
            ))
        })?;
        if_eq(k, b, 0, |k| {
            k.loop_(|k| {
                let v = k.op(Op::Load(
                    flag.clone(),
                    Some(sync(MemOrder::Acquire, Scope::Device)),
                ))?;
                let up = k.binary(BinaryOp::Ne, v, zero)?;
                k.if_(up, |k| {
                    k.break_(0);
                    Ok(())
                })
            })?;
            let v = k.load(Place::element(out, one))?;
            let two = k.u32(2);
            k.store(Place::element(out, two), v)
        })
    });
    for races in [RaceMode::Off, RaceMode::Detect] {
        let run = Run {
            races,
            ..Run::of(&kernel, 5, 1)
        };
        assert_eq!(run.gives(3).unwrap(), [1, 42, 42]);
    }
}

/// A barrier over the whole grid, made of one counter: all blocks must be in progress together.
#[test]
fn a_grid_wide_barrier_can_be_built() {
    const GROUPS: u32 = 40;
    let kernel = kernel("grid_barrier", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let (t, b) = (thread(k), block(k));
        let (zero, one) = (k.u32(0), k.u32(1));
        let counter = Place::element(out, zero);
        if_eq(k, t, 0, |k| {
            let at = k.binary(BinaryOp::Add, b, one)?;
            let v = k.binary(BinaryOp::Mul, at, at)?;
            k.store(Place::element(out, at), v)?;
            let order = sync(MemOrder::AcqRel, Scope::Device);
            k.op(Op::Atomic(AtomicOp::Add, counter.clone(), one, order))?;
            k.loop_(|k| {
                let order = sync(MemOrder::Acquire, Scope::Device);
                let v = k.op(Op::Load(counter.clone(), Some(order)))?;
                let all = k.u32(GROUPS);
                let here = k.binary(BinaryOp::Eq, v, all)?;
                k.if_(here, |k| {
                    k.break_(0);
                    Ok(())
                })
            })
        })?;
        k.effect(DeviceOp::Barrier.into())?;
        // Every lane reads what the next group wrote before the barrier.
        let groups = k.u32(GROUPS);
        let next = k.binary(BinaryOp::Add, b, one)?;
        let next = k.binary(BinaryOp::Rem, next, groups)?;
        let next = k.binary(BinaryOp::Add, next, one)?;
        let v = k.load(Place::element(out, next))?;
        let i = k.global_id(Axis::X)?;
        let far = k.u32(GROUPS + 1);
        let at = k.binary(BinaryOp::Add, i, far)?;
        k.store(Place::element(out, at), v)
    });
    for races in [RaceMode::Off, RaceMode::Detect] {
        let run = Run {
            races,
            ..Run::of(&kernel, GROUPS, 3)
        };
        let out = run.gives((GROUPS + 1 + 3 * GROUPS) as usize).unwrap();
        for i in 0..3 * GROUPS {
            let next = (i / 3 + 1) % GROUPS + 1;
            assert_eq!(out[(GROUPS + 1 + i) as usize], next * next);
        }
    }
}

#[test]
fn endless_loops_end_with_the_budget() {
    let endless = kernel("endless", |k| k.loop_(|_| Ok(())));
    // Lane 1 waits for lane 0, which waits behind it in lockstep.
    let lockstep = kernel("lockstep", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let (t, zero) = (thread(k), k.u32(0));
        let flag = Place::element(out, zero);
        if_eq(k, t, 1, |k| {
            k.loop_(|k| {
                let v = k.op(Op::Load(flag.clone(), Some(Sync::RELAXED)))?;
                let up = k.binary(BinaryOp::Ne, v, zero)?;
                k.if_(up, |k| {
                    k.break_(0);
                    Ok(())
                })
            })
        })?;
        let one = k.u32(1);
        k.effect(Effect::Store(flag, one, Some(Sync::RELAXED)))
    });
    for (kernel, buffers) in [(&endless, &mut [][..]), (&lockstep, &mut [vec![0]][..])] {
        let run = Run {
            budget: Some(100_000),
            ..Run::of(kernel, 3, 2)
        };
        let name = kernel.kernel().name.clone();
        assert_eq!(
            run.on(buffers),
            Err(InterpError::Deadline {
                kernel: name,
                budget: 100_000
            })
        );
    }
    // What ends in time is not disturbed.
    let mut buffers = [vec![0; 3], (0..768).collect()];
    let sums = control::tree_sum(false);
    let run = Run {
        budget: Some(2_000),
        ..Run::of(&sums, 3, 256)
    };
    run.on(&mut buffers).unwrap();
}
