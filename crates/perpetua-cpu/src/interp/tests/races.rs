//! The race detector: planted races are found and named, correct programs pass.

use super::*;

const ACQUIRE: Sync = Sync {
    order: MemOrder::Acquire,
    scope: Scope::Device,
};
const RELEASE: Sync = Sync {
    order: MemOrder::Release,
    scope: Scope::Device,
};
const BOTH: Sync = Sync {
    order: MemOrder::AcqRel,
    scope: Scope::Device,
};

/// What a launch with two buffers, `out` of 64 words and `aux` of 64, came to: `""` or the race in few words.
fn found(grid: u32, lanes: u32, build: impl FnOnce(&mut KernelBuilder, Base, Base) -> Built) -> String {
    let kernel = kernel("k", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let aux = k.buffer("aux", Type::U32, Access::ReadWrite);
        build(k, out, aux)
    });
    let mut buffers = [vec![0; 64], vec![0; 64]];
    match Run::of(&kernel, grid, lanes).watched().on(&mut buffers) {
        Ok(()) => String::new(),
        Err(InterpError::Race(race)) => {
            let side = |a: RacingAccess| format!("{} {}:{} line {}", a.kind, a.block[0], a.thread[0], a.line);
            format!(
                "{}[{}]: {}, {}",
                race.subject,
                race.element,
                side(race.first),
                side(race.second)
            )
        }
        Err(other) => panic!("{other}"),
    }
}

fn add(k: &mut KernelBuilder, at: Place, sync: Sync) -> std::result::Result<Value, TypeError> {
    let one = k.u32(1);
    k.op(Op::Atomic(AtomicOp::Add, at, one, sync))
}

fn at(k: &mut KernelBuilder, base: Base, i: u32) -> Place {
    let i = k.u32(i);
    Place::element(base, i)
}

#[test]
fn two_lanes_that_write_one_word_race() {
    // In one statement, also when both write the same.
    let same = |k: &mut KernelBuilder, out: Base, _: Base| {
        k.set_line(3);
        let (to, one) = (at(k, out, 5), k.u32(1));
        k.store(to, one)
    };
    assert_eq!(found(1, 2, same), "out[5]: store 0:0 line 3, store 0:1 line 3");
    assert_eq!(found(1, 1, same), "");
    assert_eq!(found(2, 1, same), "out[5]: store 0:0 line 3, store 1:0 line 3");
    // One atomic, the other not.
    let mixed = |k: &mut KernelBuilder, out: Base, _: Base| {
        let t = thread(k);
        k.set_line(4);
        let to = at(k, out, 0);
        let t1 = to.clone();
        if_eq(k, t, 0, |k| add(k, t1, Sync::RELAXED).map(drop))?;
        k.set_line(5);
        if_eq(k, t, 1, |k| k.load(to).map(drop))
    };
    assert_eq!(
        found(1, 2, mixed),
        "out[0]: atomic read-modify-write 0:0 line 4, load 0:1 line 5"
    );
    assert_eq!(found(4, 33, |k, out, _| add_zero(k, out)), "");
}

fn add_zero(k: &mut KernelBuilder, out: Base) -> Built {
    let to = at(k, out, 0);
    add(k, to, Sync::RELAXED).map(drop)
}

/// Reads and atomics by many, then a write by one.
#[test]
fn one_of_many_is_enough() {
    for (turns, expect) in [
        (0, "out[0]: load 0:0 line 1, store 2:3 line 9"),
        (1, "out[0]: atomic read-modify-write 0:0 line 1, store 2:3 line 9"),
    ] {
        let race = found(3, 4, |k, out, _| {
            k.set_line(1);
            let from = at(k, out, 0);
            match turns {
                0 => drop(k.load(from)?),
                _ => drop(add(k, from, Sync::RELAXED)?),
            }
            k.effect(DeviceOp::Barrier.into())?;
            let i = k.global_id(Axis::X)?;
            k.set_line(9);
            if_eq(k, i, 11, |k| {
                let (to, one) = (at(k, out, 0), k.u32(1));
                k.store(to, one)
            })
        });
        assert_eq!(race, expect);
    }
    // One lane of the same group is known across its barrier: no race.
    let single = found(1, 4, |k, out, _| {
        let from = at(k, out, 0);
        k.load(from)?;
        k.effect(DeviceOp::Barrier.into())?;
        let t = thread(k);
        if_eq(k, t, 3, |k| {
            let (to, one) = (at(k, out, 0), k.u32(1));
            k.store(to, one)
        })
    });
    assert_eq!(single, "");
}

/// Neighbours exchange through shared memory, with and without the barrier.
fn exchange(barrier: bool, again: bool) -> String {
    found(2, 8, |k, out, _| {
        let tile = k.shared("tile", Type::array(Type::U32, 8));
        let t = thread(k);
        k.set_line(2);
        k.store(Place::element(tile, t), t)?;
        if barrier {
            k.effect(DeviceOp::Barrier.into())?;
        }
        let seven = k.u32(7);
        let other = k.binary(BinaryOp::Sub, seven, t)?;
        k.set_line(4);
        let v = k.load(Place::element(tile, other))?;
        if again {
            // The next turn's store comes too early for lanes that still read.
            k.set_line(6);
            k.store(Place::element(tile, t), v)?;
        }
        let i = k.global_id(Axis::X)?;
        k.store(Place::element(out, i), v)
    })
}

#[test]
fn shared_memory_needs_its_barriers() {
    assert_eq!(exchange(true, false), "");
    assert_eq!(
        exchange(false, false),
        "tile[7]: store 0:7 line 2, load 0:0 line 4"
    );
    assert_eq!(exchange(true, true), "tile[0]: load 0:7 line 4, store 0:0 line 6");
    assert_eq!(
        Run::of(&control::tree_sum(true), 1, 8)
            .watched()
            .on(&mut [vec![0; 1], vec![1; 8]])
            .map_err(|e| matches!(e, InterpError::Fault(_))),
        Err(true),
        "no dynamic memory was given"
    );
}

/// Sub-word elements have no part in each other; overlapping ones do.
#[test]
fn bytes_race_for_themselves_alone() {
    let kernel = |stride: u32| {
        kernel("bytes", |k| {
            let out = k.buffer("out", Scalar::U8.into(), Access::ReadWrite);
            let t = thread(k);
            let by = k.u32(stride);
            let i = k.binary(BinaryOp::Shr, t, by)?;
            let v = k.cast(Scalar::U8, t)?;
            k.store(Place::element(out, i), v)
        })
    };
    for (stride, races) in [(0, false), (1, true)] {
        let mut buffers = [vec![0; 4]];
        let result = Run::of(&kernel(stride), 1, 16).watched().on(&mut buffers);
        match result {
            Ok(()) => assert!(!races),
            Err(InterpError::Race(race)) => {
                assert!(races);
                assert_eq!((race.element, race.byte, race.space), (0, 0, Space::Global));
                assert_eq!(
                    race.to_string(),
                    "race for `out`[0] in kernel `bytes`: store by lane (0, 0, 0) of block (0, 0, 0), and then, with \
                     no order between them, store by lane (1, 0, 0) of block (0, 0, 0)"
                );
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// Group 0 writes data and raises a flag, group 1 sees the flag and reads.
fn message(store: Sync, load: Sync, fences: (bool, bool)) -> String {
    found(2, 1, |k, out, aux| {
        let (b, zero, one) = (block(k), k.u32(0), k.u32(1));
        let (data, flag) = (Place::element(out, zero), Place::element(aux, zero));
        if_eq(k, b, 0, |k| {
            k.set_line(1);
            k.store(data.clone(), one)?;
            if fences.0 {
                k.effect(DeviceOp::Fence(Scope::Device).into())?;
            }
            k.effect(Effect::Store(flag.clone(), one, Some(store)))
        })?;
        if_eq(k, b, 1, |k| {
            k.loop_(|k| {
                let v = k.op(Op::Load(flag.clone(), Some(load)))?;
                let up = k.binary(BinaryOp::Ne, v, zero)?;
                k.if_(up, |k| {
                    k.break_(0);
                    Ok(())
                })
            })?;
            if fences.1 {
                k.effect(DeviceOp::Fence(Scope::Device).into())?;
            }
            k.set_line(2);
            k.load(data).map(drop)
        })
    })
}

#[test]
fn messages_pass_by_release_and_acquire() {
    const R: Sync = Sync::RELAXED;
    let narrow = |order| sync(order, Scope::Block);
    let race = "out[0]: store 0:0 line 1, load 1:0 line 2";
    for (store, load, fences, expect) in [
        (RELEASE, ACQUIRE, (false, false), ""),
        (sync(MemOrder::SeqCst, Scope::System), ACQUIRE, (false, false), ""),
        (R, R, (true, true), ""),
        (RELEASE, R, (false, true), ""),
        (R, ACQUIRE, (true, false), ""),
        (R, R, (false, false), race),
        (R, R, (true, false), race),
        (R, R, (false, true), race),
        (RELEASE, R, (false, false), race),
        (R, ACQUIRE, (false, false), race),
    ] {
        assert_eq!(
            message(store, load, fences),
            expect,
            "{store:?} {load:?} {fences:?}"
        );
    }
    // Atomic at a scope that does not hold both is not atomic to the other.
    let race = message(
        narrow(MemOrder::Release),
        narrow(MemOrder::Acquire),
        (false, false),
    );
    assert_eq!(race, "aux[0]: atomic store 0:0 line 1, atomic load 1:0 line 1");
}

/// Every group writes its part and counts itself; the last to count reads all parts. The classical pattern.
fn last_one_sums(fence: bool, add_order: Sync, lanes_write: bool) -> String {
    found(5, 4, |k, out, aux| {
        let last = k.shared("last", Type::U32);
        let whole = Place {
            base: last,
            path: Vec::new(),
        };
        let (t, b) = (thread(k), block(k));
        let four = k.u32(4);
        let first = k.binary(BinaryOp::Mul, b, four)?;
        let own = k.binary(BinaryOp::Add, first, t)?;
        k.set_line(1);
        if lanes_write {
            k.store(Place::element(out, own), t)?;
            if fence {
                k.effect(DeviceOp::Fence(Scope::Device).into())?;
            }
            k.effect(DeviceOp::Barrier.into())?;
        }
        if_eq(k, t, 0, |k| {
            if !lanes_write {
                k.store(Place::element(out, first), t)?;
                if fence {
                    k.effect(DeviceOp::Fence(Scope::Device).into())?;
                }
            }
            let counter = at(k, aux, 0);
            let n = add(k, counter, add_order)?;
            k.store(whole.clone(), n)
        })?;
        k.effect(DeviceOp::Barrier.into())?;
        let n = k.load(whole)?;
        k.set_line(2);
        if_eq(k, n, 4, |k| {
            for group in 0..5 {
                let start = k.u32(4 * group);
                let from = if lanes_write {
                    k.binary(BinaryOp::Add, start, t)?
                } else {
                    start
                };
                k.load(Place::element(out, from))?;
            }
            Ok(())
        })
    })
}

#[test]
fn the_last_group_may_read_what_all_have_fenced_and_counted() {
    for lanes_write in [false, true] {
        assert_eq!(last_one_sums(true, Sync::RELAXED, lanes_write), "");
        assert_eq!(last_one_sums(false, BOTH, lanes_write), "");
        assert_eq!(last_one_sums(true, BOTH, lanes_write), "");
        assert_eq!(
            last_one_sums(false, Sync::RELAXED, lanes_write),
            "out[0]: store 0:0 line 1, load 4:0 line 2"
        );
        // Released to its own group alone.
        assert_eq!(
            last_one_sums(false, sync(MemOrder::AcqRel, Scope::Block), lanes_write)
                .split(':')
                .next(),
            Some("aux[0]")
        );
    }
}

/// Groups take tickets and serve in order; what the lock guards is plain.
#[test]
fn a_lock_guards_plain_accesses() {
    for (unlock, expect) in [
        (RELEASE, ""),
        (Sync::RELAXED, "out[0]: load 0:0 line 5, store 1:0 line 6"),
    ] {
        let race = found(4, 1, |k, out, aux| {
            let (zero, one) = (k.u32(0), k.u32(1));
            let (tickets, serving) = (Place::element(aux, zero), Place::element(aux, one));
            let mine = add(k, tickets, Sync::RELAXED)?;
            k.loop_(|k| {
                let now = k.op(Op::Load(serving.clone(), Some(ACQUIRE)))?;
                let turn = k.binary(BinaryOp::Eq, now, mine)?;
                k.if_(turn, |k| {
                    k.break_(0);
                    Ok(())
                })
            })?;
            let sum = Place::element(out, zero);
            let v = k.binary(BinaryOp::Add, mine, one)?;
            k.set_line(6);
            k.store(sum.clone(), v)?;
            k.set_line(5);
            k.load(sum)?;
            let next = k.binary(BinaryOp::Add, mine, one)?;
            k.effect(Effect::Store(serving, next, Some(unlock)))
        });
        // The store before it is what the next group meets; it is kept for it stands for the load.
        let expect = if expect.is_empty() {
            ""
        } else {
            "out[0]: store 0:0 line 6, store 1:0 line 6"
        };
        assert_eq!(race, expect);
    }
}

/// Knowledge goes from group to group to group, and is not made up.
#[test]
fn order_is_transitive() {
    for (second, expect) in [
        (RELEASE, ""),
        (Sync::RELAXED, "out[0]: store 0:0 line 1, load 2:0 line 2"),
    ] {
        let race = found(3, 1, |k, out, aux| {
            let (b, one) = (block(k), k.u32(1));
            let data = at(k, out, 0);
            let wait = |k: &mut KernelBuilder, flag: u32| -> Built {
                let flag = at(k, aux, flag);
                let zero = k.u32(0);
                k.loop_(|k| {
                    let v = k.op(Op::Load(flag, Some(ACQUIRE)))?;
                    let up = k.binary(BinaryOp::Ne, v, zero)?;
                    k.if_(up, |k| {
                        k.break_(0);
                        Ok(())
                    })
                })
            };
            if_eq(k, b, 0, |k| {
                k.set_line(1);
                k.store(data.clone(), one)?;
                let flag = at(k, aux, 0);
                k.effect(Effect::Store(flag, one, Some(RELEASE)))
            })?;
            if_eq(k, b, 1, |k| {
                wait(k, 0)?;
                let flag = at(k, aux, 1);
                k.effect(Effect::Store(flag, one, Some(second)))
            })?;
            if_eq(k, b, 2, |k| {
                wait(k, 1)?;
                k.set_line(2);
                k.load(data).map(drop)
            })
        });
        assert_eq!(race, expect);
    }
}

/// Lanes of one group order themselves by atomics, without a barrier.
#[test]
fn lanes_of_a_group_may_release_to_each_other() {
    for (order, expect) in [
        (MemOrder::AcqRel, ""),
        (MemOrder::Relaxed, "out[0]: store 0:0 line 1, load 0:1 line 2"),
    ] {
        let race = found(1, 3, |k, out, _| {
            let flag = k.shared("flag", Type::U32);
            let flag = Place {
                base: flag,
                path: Vec::new(),
            };
            let (t, one) = (thread(k), k.u32(1));
            let data = at(k, out, 0);
            if_eq(k, t, 0, |k| {
                k.set_line(1);
                k.store(data.clone(), one)?;
                add(k, flag.clone(), sync(order, Scope::Block)).map(drop)
            })?;
            if_eq(k, t, 1, |k| {
                let n = add(k, flag, sync(order, Scope::Block))?;
                k.set_line(2);
                if_eq(k, n, 1, |k| k.load(data).map(drop))
            })
        });
        assert_eq!(race, expect);
    }
}

/// Two buffers over one memory are one memory.
#[test]
fn aliases_race_too() {
    let kernel = kernel("alias", |k| {
        let to = k.buffer("to", Type::U32, Access::ReadWrite);
        let from = k.buffer("from", Type::U32, Access::Read);
        let (b, one) = (block(k), k.u32(1));
        let v = k.load(Place::element(from, b))?;
        let v = k.binary(BinaryOp::Add, v, one)?;
        k.store(Place::element(to, b), v)
    });
    let mut words = [0u32; 6];
    let whole = BufferRef::from_slice(&mut words);
    // SAFETY: words `skip` to `skip + 4` of `words`.
    let part = |skip: usize| unsafe { BufferRef::from_raw(whole.ptr.add(4 * skip), 16) };
    for (skip, expect) in [(0, None), (1, Some(1)), (2, Some(2))] {
        let args = [Arg::Buffer(part(skip)), Arg::Buffer(part(0))];
        let config = LaunchConfig {
            races: RaceMode::Detect,
            ..LaunchConfig::new([4, 1, 1], [1; 3], &args)
        };
        let race = match Interpreter::new(&kernel).unwrap().launch(&config) {
            Ok(()) => None,
            Err(InterpError::Race(race)) => {
                assert_eq!(race.subject, "from");
                Some(race.element)
            }
            Err(other) => panic!("{other}"),
        };
        assert_eq!(race, expect);
    }
}
