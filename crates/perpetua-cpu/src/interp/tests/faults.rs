//! Faults: what is reported, what still happens, and that nothing hangs.

use super::*;
use crate::eval::eval_cast;
use perpetua_ir::fault::{Fault, FaultSite};
use perpetua_ir::front::rust::{kernels_in_file, lower};
use perpetua_ir::pass::checks::make_explicit;

fn fault(result: Result<(), InterpError>) -> Fault {
    match result {
        Err(InterpError::Fault(fault)) => *fault,
        other => panic!("expected a fault, found {other:?}"),
    }
}

/// `out[t] = data[t] + 1` after a store before; lanes past `data` fault in between.
#[test]
fn the_lanes_that_fault_stop_and_the_others_go_on() {
    let kernel = kernel("half", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let data = k.buffer("data", Type::U32, Access::Read);
        let (t, seven) = (thread(k), k.u32(7));
        k.store(Place::element(out, t), seven)?;
        k.set_line(12);
        let v = k.load(Place::element(data, t))?;
        let one = k.u32(1);
        let v = k.binary(BinaryOp::Add, v, one)?;
        k.store(Place::element(out, t), v)
    });
    for lanes in [8u32, 64, 100, 256] {
        let half = lanes / 2;
        let mut buffers = [vec![0; lanes as usize], (0..half).collect()];
        let fault = fault(Run::of(&kernel, 1, lanes).on(&mut buffers));
        let expect: Vec<u32> = (0..lanes).map(|t| if t < half { t + 1 } else { 7 }).collect();
        assert_eq!(buffers[0], expect);
        assert_eq!(
            fault,
            Fault {
                kernel: "half".into(),
                source: "test.rs".into(),
                site: FaultSite::new(
                    FaultKind::IndexOutOfBounds,
                    12,
                    "data",
                    vec![Scalar::U32, Scalar::U64],
                ),
                block: [0; 3],
                thread: [half, 0, 0],
                operands: [half.into(), half.into(), 0, 0],
            }
        );
    }
}

/// Lanes whose indices grow so fast that their sum comes back: those in between are outside, though the first and the last are not.
#[test]
fn indices_that_wrap_around_in_64_bits_fault() {
    for step in [0x4000_0000_0000_0000u64, 0x4000_0000_0000_0001, u64::MAX / 4 + 2] {
        let kernel = kernel("wraps", |k| {
            let out = k.buffer("out", Type::U32, Access::ReadWrite);
            let data = k.buffer("data", Type::U32, Access::Read);
            let t = thread(k);
            let wide = k.cast(Scalar::U64, t)?;
            let step = k.constant(Scalar::U64, step);
            let at = k.binary(BinaryOp::Mul, wide, step)?;
            let v = k.load(Place::element(data, at))?;
            k.store(Place::element(out, t), v)
        });
        let mut buffers = [vec![0; 5], vec![9; 8]];
        let fault = fault(Run::of(&kernel, 1, 5).on(&mut buffers));
        assert_eq!((fault.thread, fault.operands[0]), ([1, 0, 0], step), "{step:#x}");
        assert_eq!(buffers[0][0], 9);
    }
}

#[test]
fn negative_indices_read_as_such() {
    let kernel = kernel("negative", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let t = thread(k);
        let t = k.cast(Scalar::I32, t)?;
        let two = k.i32(2);
        let i = k.binary(BinaryOp::Sub, t, two)?;
        let v = k.u32(1);
        k.set_line(3);
        k.store(Place::element(out, i), v)
    });
    let mut buffers = [vec![0; 4]];
    let fault = fault(Run::of(&kernel, 1, 4).on(&mut buffers));
    assert_eq!(buffers[0], [1, 1, 0, 0]);
    assert_eq!(
        fault.to_string(),
        "index out of bounds: the length of `out` is 4 but the index is -2 (kernel `negative`, test.rs:3, block (0, 0, \
         0), lane (0, 0, 0))"
    );
}

#[test]
fn a_negative_constant_is_no_large_index() {
    let kernel = kernel("negative", |k| {
        let tile = k.shared("tile", Type::array(Type::U32, 256));
        // As unsigned bits it would be 239.
        let i = k.constant(Scalar::I8, 0xef);
        k.load(Place::element(tile, i)).map(|_| ())
    });
    let fault = fault(Run::of(&kernel, 1, 1).on(&mut []));
    assert_eq!(fault.operands, [-17i64 as u64, 256, 0, 0]);
}

/// Each lane adds `data[turn * (t + 1)]` until it falls off the end.
#[test]
fn loops_end_for_lanes_that_fault_in_the_middle() {
    let kernel = kernel("middle", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let data = k.buffer("data", Type::U32, Access::Read);
        let turn = k.local("turn", Type::U32);
        let (t, zero, one) = (thread(k), k.u32(0), k.u32(1));
        let step = k.binary(BinaryOp::Add, t, one)?;
        k.store(Place::local(turn), zero)?;
        k.loop_(|k| {
            let (n, most) = (k.load(Place::local(turn))?, k.u32(4));
            let done = k.binary(BinaryOp::Ge, n, most)?;
            k.if_(done, |k| {
                k.break_(0);
                Ok(())
            })?;
            let at = k.binary(BinaryOp::Mul, n, step)?;
            let v = k.load(Place::element(data, at))?;
            let sum = k.load(Place::element(out, t))?;
            let sum = k.binary(BinaryOp::Add, sum, v)?;
            k.store(Place::element(out, t), sum)?;
            let next = k.binary(BinaryOp::Add, n, one)?;
            k.store(Place::local(turn), next)
        })
    });
    let mut buffers = [vec![0; 6], vec![1, 10, 100, 1000, 10000, 100000, 1000000]];
    let fault = fault(Run::of(&kernel, 1, 6).on(&mut buffers));
    assert_eq!(buffers[0], [1111, 1010101, 1001001, 10001, 100001, 1000001]);
    // Lanes 3 to 5 fall off at turn 2, lane 2 at turn 3; the first to do so is reported.
    assert_eq!((fault.thread, fault.operands), ([3, 0, 0], [8, 7, 0, 0]));
}

/// In each of three turns, between barriers, a lane passes what it reads to the lane opposite.
fn exchange() -> Verified {
    kernel("barrier", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let data = k.buffer("data", Type::U32, Access::Read);
        let tile = k.shared("tile", Type::array(Type::U32, 8));
        let turn = k.local("turn", Type::U32);
        let (t, zero, one) = (thread(k), k.u32(0), k.u32(1));
        k.store(Place::local(turn), zero)?;
        k.loop_(|k| {
            let v = k.load(Place::element(data, t))?;
            k.store(Place::element(tile, t), v)?;
            k.effect(DeviceOp::Barrier.into())?;
            let seven = k.u32(7);
            let other = k.binary(BinaryOp::Sub, seven, t)?;
            let v = k.load(Place::element(tile, other))?;
            let hundred = k.u32(100);
            let v = k.binary(BinaryOp::Add, v, hundred)?;
            k.store(Place::element(out, t), v)?;
            k.effect(DeviceOp::Barrier.into())?;
            let n = k.load(Place::local(turn))?;
            let n = k.binary(BinaryOp::Add, n, one)?;
            k.store(Place::local(turn), n)?;
            let most = k.u32(3);
            let done = k.binary(BinaryOp::Ge, n, most)?;
            k.if_(done, |k| {
                k.break_(0);
                Ok(())
            })
        })
    })
}

/// Lanes 4 and up fault before the barrier, which the others pass; the dead lanes' words stay as they were.
#[test]
fn dead_lanes_count_as_arrived() {
    let kernel = exchange();
    let mut buffers = [vec![0; 8], vec![1, 2, 3, 4]];
    let fault = fault(Run::of(&kernel, 1, 8).on(&mut buffers));
    assert_eq!(buffers[0], [100, 100, 100, 100, 0, 0, 0, 0]);
    assert_eq!(fault.thread, [4, 0, 0]);
}

#[test]
fn divisions_fault_as_in_rust() {
    for op in [BinaryOp::Div, BinaryOp::Rem] {
        for s in [Scalar::I8, Scalar::I32, Scalar::I64, Scalar::U16, Scalar::U32] {
            let min = if s.is_signed_int() {
                1u64 << (s.bits() - 1)
            } else {
                9
            };
            let minus_one = u64::MAX >> (64 - s.bits());
            for (a, b) in [(7, 2), (7, 0), (min, minus_one)] {
                let kernel = kernel("divide", |k| {
                    let out = k.buffer("out", Type::U32, Access::ReadWrite);
                    let t = thread(k);
                    k.set_line(4);
                    // Not a constant to the interpreter.
                    let zero = k.cast(s, t)?;
                    let (a, b) = (k.constant(s, a), k.constant(s, b));
                    let (a, b) = (
                        k.binary(BinaryOp::Add, a, zero)?,
                        k.binary(BinaryOp::Add, b, zero)?,
                    );
                    let v = k.binary(op, a, b)?;
                    let v = k.cast(Scalar::U32, v)?;
                    k.store(Place::element(out, t), v)
                });
                let mut buffers = [vec![99]];
                let result = Run::of(&kernel, 1, 1).on(&mut buffers);
                let expect = crate::eval::eval_binary(op, s, a, b);
                match expect {
                    Ok(bits) => {
                        assert_eq!(result, Ok(()));
                        assert_eq!(u64::from(buffers[0][0]), eval_cast(s, Scalar::U32, bits));
                    }
                    Err(kind) => {
                        let fault = fault(result);
                        let subject = if op == BinaryOp::Div {
                            "division"
                        } else {
                            "remainder"
                        };
                        assert_eq!((fault.site.kind, fault.site.subject.as_str()), (kind, subject));
                        let wide = if s.is_signed_int() {
                            Scalar::I64
                        } else {
                            Scalar::U64
                        };
                        assert_eq!(fault.operands[0], eval_cast(s, wide, a));
                        assert_eq!(fault.site.line, 4);
                        assert_eq!(buffers[0], [99]);
                    }
                }
            }
        }
    }
}

/// A device function faults for some lanes; what the caller does next does not happen there.
#[test]
fn a_fault_in_a_function_ends_the_lane() {
    let kernel = kernel("callee", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let pick = k.function("pick", vec![("i".into(), Type::U32)], Some(Type::U32), |k| {
            let local = k.local("table", Type::array(Type::U32, 3));
            let five = k.u32(5);
            let table = k.op(Op::Compose(Type::array(Type::U32, 3), vec![five; 3]))?;
            k.store(Place::local(local), table)?;
            k.set_line(21);
            let v = k.load(Place::local(local).step(Step::Index(Value(0))))?;
            k.push(Inst::Return(Some(v)));
            Ok(())
        })?;
        let t = thread(k);
        let v = k.op(Op::Call(pick, vec![t]))?;
        k.store(Place::element(out, t), v)?;
        let one = k.u32(1);
        let zero = k.u32(0);
        k.op(Op::Atomic(
            AtomicOp::Add,
            Place::element(out, zero),
            one,
            Sync::RELAXED,
        ))?;
        Ok(())
    });
    let mut buffers = [vec![0; 5]];
    let fault = fault(Run::of(&kernel, 1, 5).on(&mut buffers));
    assert_eq!(buffers[0], [5 + 3, 5, 5, 0, 0]);
    assert_eq!(
        (fault.site.line, fault.site.subject.as_str(), fault.operands),
        (21, "table", [3, 3, 0, 0])
    );
    assert_eq!(fault.site.operands, [Scalar::U32, Scalar::U32]);
}

#[test]
fn an_unknown_enum_value_ends_the_lane() {
    let kernel = kernel("unreachable", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let t = thread(k);
        let default = k.block(|k| {
            k.set_line(8);
            k.effect(Effect::fault(FaultKind::UnreachableEnum, vec![t]))
        })?;
        let known = k.block(|_| Ok::<(), TypeError>(()))?;
        k.push(Inst::Switch {
            selector: t,
            cases: vec![(vec![0, 1, 3], known)],
            default,
        });
        let one = k.u32(1);
        k.store(Place::element(out, t), one)
    });
    let mut buffers = [vec![0; 5]];
    let fault = fault(Run::of(&kernel, 1, 5).on(&mut buffers));
    assert_eq!(buffers[0], [1, 1, 0, 1, 0]);
    assert_eq!(
        (fault.site.kind, fault.site.line),
        (FaultKind::UnreachableEnum, 8)
    );
    assert_eq!((fault.thread, fault.operands), ([2, 0, 0], [2, 0, 0, 0]));
}

/// Every lane of blocks 2 and up faults; the lowest is reported, and the rest of the grid runs, on one thread
/// and on several.
#[test]
fn the_lowest_block_reports() {
    let kernel = kernel("groups", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let few = k.buffer("few", Type::U32, Access::ReadWrite);
        let (b, i, one) = (block(k), k.global_id(Axis::X)?, k.u32(1));
        let two = k.u32(2);
        let b = k.binary(BinaryOp::Min, b, two)?;
        k.store(Place::element(out, i), one)?;
        k.store(Place::element(few, b), one)
    });
    for threads in [1, 3] {
        let (mut out, mut few) = (vec![0u32; 400], vec![0u32; 2]);
        let args = [
            Arg::Buffer(BufferRef::from_slice(&mut out)),
            Arg::Buffer(BufferRef::from_slice(&mut few)),
        ];
        let config = LaunchConfig {
            parallel: Parallel::Threads(std::num::NonZero::new(threads).unwrap()),
            ..LaunchConfig::new([100, 1, 1], [4, 1, 1], &args)
        };
        let fault = fault(Interpreter::new(&kernel).unwrap().launch(&config));
        assert_eq!((fault.block, fault.thread), ([2, 0, 0], [0; 3]));
        assert_eq!(out, [1; 400]);
        assert_eq!(few, [1; 2]);
    }
}

/// Checks that are off are made all the same.
#[test]
fn unchecked_kernels_fault_too() {
    let kernel = kernel("off", |k| {
        k.kernel_mut().checks = Checks::Off;
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let (t, one) = (thread(k), k.u32(1));
        k.store(Place::element(out, t), one)
    });
    let mut buffers = [vec![0; 3]];
    assert_eq!(
        fault(Run::of(&kernel, 1, 4).on(&mut buffers)).operands[..2],
        [3, 3]
    );
    assert_eq!(buffers[0], [1; 3]);
}

/// Random kernels whose checks have been made explicit give the same memory, and a fault of the same lanes.
#[test]
fn explicit_checks_mean_the_same() {
    for seed in 0..200 {
        let made = generate::kernel(seed).unwrap();
        let explicit = make_explicit(&verify(made.clone()).unwrap());
        let sites = explicit.faults().to_vec();
        let kernel = verify(explicit.kernel().clone()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let data: Vec<u32> = (0..13u32).map(|i| i * 77_777).collect();
        let words = (2 * 7 * generate::WORDS) as usize;
        let mut expected = [vec![0; words], data.clone()];
        let faults = lanewise::run(&made, (2, 7), &mut expected, &[77]);
        let [mut out, mut data] = [vec![0u32; words], data];
        let value = 77u32.to_ne_bytes();
        let args = [
            Arg::Buffer(BufferRef::from_slice(&mut out)),
            Arg::Buffer(BufferRef::from_slice(&mut data)),
            Arg::Value(&value),
        ];
        let config = LaunchConfig::new([2, 1, 1], [7, 1, 1], &args);
        match Interpreter::with_sites(&kernel, &sites).unwrap().launch(&config) {
            Ok(()) => assert!(
                faults.is_empty(),
                "seed {seed}: no fault, expected one of {faults:?}"
            ),
            Err(InterpError::Fault(fault)) => {
                assert!(
                    lanewise::among(&fault, &faults),
                    "seed {seed}: {fault}, expected one of {faults:?}"
                );
            }
            Err(other) => panic!("seed {seed}: {other}"),
        }
        assert_eq!(out, expected[0], "seed {seed}");
    }
}

/// Kernels with barriers whose checks have been made explicit keep dead lanes walking: what the living write is the
/// same, and so is the fault.
#[test]
fn explicit_checks_pass_barriers() {
    for (kernel, lanes, len) in [
        (exchange(), 8, 4),
        (exchange(), 8, 0),
        (exchange(), 8, 8),
        (control::tree_sum(false), 64, 64),
        (control::tree_sum(false), 64, 50),
        (control::tree_sum(false), 64, 0),
    ] {
        let explicit = make_explicit(&kernel);
        let made = verify(explicit.kernel().clone()).unwrap_or_else(|e| panic!("{e}"));
        let launch = |interpreter: Interpreter| {
            let (mut out, mut data) = (vec![0u32; lanes], (1..=len).collect::<Vec<u32>>());
            let args = [
                Arg::Buffer(BufferRef::from_slice(&mut out)),
                Arg::Buffer(BufferRef::from_slice(&mut data)),
            ];
            let config = LaunchConfig {
                step_budget: Some(1 << 20),
                ..LaunchConfig::new([1; 3], [lanes as u32, 1, 1], &args)
            };
            (interpreter.launch(&config), out)
        };
        let implicit = launch(Interpreter::new(&kernel).unwrap());
        let explicit = launch(Interpreter::with_sites(&made, explicit.faults()).unwrap());
        assert_eq!(implicit.0.is_ok(), len as usize >= lanes);
        assert_eq!(implicit, explicit, "{} with {len} elements", kernel.kernel().name);
    }
}

/// Lanes that wait in a loop with barriers for what others write: where one of those is dead, all of its block end. In the kernel as it
/// is and with explicit checks.
#[test]
fn a_block_ends_with_a_lane_that_others_wait_for() {
    let text = "
#[kernel]
fn waits(x: &[u32], out: &mut [u32], beyond: u32) {
    let turns = shared_array::<[u32; 2]>();
    let t = local_id_x() as u32;
    if t == 0 { turns[0] = 0; turns[1] = 0; }
    sync_threads();
    let v = x[if t == beyond { 1000 } else { t as usize }];
    if t == 13 { turns[0] = 3 + v; turns[1] = 4; }
    sync_threads();
    let first = turns[0];
    sync_threads();
    let second = turns[1];
    sync_threads();
    let mut k = 0u32;
    loop {
        k += 1;
        sync_threads();
        if k == first + second { break; }
    }
    out[global_id_x()] = k;
}";
    let found = kernels_in_file(text, "waits.rs").unwrap().remove(0);
    let implicit = verify(lower(&found.function, &found.how).unwrap()).unwrap();
    let explicit = make_explicit(&implicit);
    let told = |kernel: &Kernel| kernel.shared.iter().any(|var| var.name == "a_lane_is_dead");
    assert!(told(explicit.kernel()), "{}", explicit.kernel());
    assert!(!told(make_explicit(&control::tree_sum(false)).kernel()));
    let launch = |interpreter: &Interpreter, beyond: u32| {
        let (mut out, mut data) = ([0u32; 128], [2u32; 64]);
        let value = beyond.to_ne_bytes();
        let args = [
            Arg::Buffer(BufferRef::from_slice(&mut data)),
            Arg::Buffer(BufferRef::from_slice(&mut out)),
            Arg::Value(&value),
        ];
        let config = LaunchConfig {
            step_budget: Some(1 << 16),
            ..LaunchConfig::new([2, 1, 1], [64, 1, 1], &args)
        };
        let done = interpreter.launch(&config);
        (done, out)
    };
    let made = verify(explicit.kernel().clone()).unwrap();
    for interpreter in [
        Interpreter::new(&implicit).unwrap(),
        Interpreter::with_sites(&made, explicit.faults()).unwrap(),
    ] {
        let (done, out) = launch(&interpreter, 64);
        assert_eq!((done, out), (Ok(()), [9; 128]));
        for beyond in [0, 13, 63] {
            let fault = fault(launch(&interpreter, beyond).0);
            assert_eq!((fault.block, fault.thread), ([0; 3], [beyond, 0, 0]));
        }
    }
}
