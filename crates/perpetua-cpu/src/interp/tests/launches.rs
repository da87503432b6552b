//! What launches refuse, pass on and report: arguments, shapes, prints, threads.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::*;

/// `out[i] = i` in all dimensions, `i` the lane's number in the grid.
fn number() -> Verified {
    kernel("number", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let mut at = k.u32(0);
        for axis in [Axis::Z, Axis::Y, Axis::X] {
            let (grid, dim) = (
                k.builtin(Builtin::GridDim(axis)),
                k.builtin(Builtin::BlockDim(axis)),
            );
            let width = k.binary(BinaryOp::Mul, grid, dim)?;
            let i = k.global_id(axis)?;
            at = k.binary(BinaryOp::Mul, at, width)?;
            at = k.binary(BinaryOp::Add, at, i)?;
        }
        let ten = k.u32(10);
        let v = k.binary(BinaryOp::Add, at, ten)?;
        k.store(Place::element(out, at), v)
    })
}

#[test]
fn all_dimensions_are_covered_once_on_any_number_of_threads() {
    let kernel = number();
    let interpreter = Interpreter::new(&kernel).unwrap();
    let own = |f: &(dyn Fn() + std::marker::Sync)| {
        std::thread::scope(|s| (0..3).for_each(|_| drop(s.spawn(f))));
    };
    let ways = [
        Parallel::Off,
        Parallel::Threads(NonZero::new(4).unwrap()),
        Parallel::Spread(&own),
    ];
    for parallel in ways {
        for (grid, block) in [
            ([3, 4, 5], [7, 3, 2]),
            ([1, 1, 1], [1, 1, 1]),
            ([2, 1, 9], [65, 1, 1]),
        ] {
            let n: u32 = grid.iter().chain(&block).product();
            let mut out = vec![0u32; n as usize];
            let args = [Arg::Buffer(BufferRef::from_slice(&mut out))];
            let config = LaunchConfig {
                parallel,
                ..LaunchConfig::new(grid, block, &args)
            };
            interpreter.launch(&config).unwrap();
            assert_eq!(out, (10..n + 10).collect::<Vec<u32>>(), "{grid:?} {block:?}");
        }
    }
    let args = [Arg::Buffer(BufferRef::empty())];
    interpreter
        .launch(&LaunchConfig::new([0, 1, 1], [1, 1, 1], &args))
        .unwrap();
}

#[test]
fn a_part_of_the_blocks_runs_alone() {
    let kernel = number();
    let interpreter = Interpreter::new(&kernel).unwrap();
    let (grid, block) = ([3, 2, 2], [4, 1, 1]);
    for (first, count) in [(0, 12), (5, 3), (11, 9), (4, 0), (12, 1), (u64::MAX, u64::MAX)] {
        let mut out = vec![0u32; 48];
        let args = [Arg::Buffer(BufferRef::from_slice(&mut out))];
        let config = LaunchConfig {
            blocks: Some((first, count)),
            ..LaunchConfig::new(grid, block, &args)
        };
        interpreter.launch(&config).unwrap();
        // The lanes of a block follow one another, as its block does the one before.
        let runs = |i: u64| i / 4 >= first && i / 4 - first < count;
        let expect: Vec<u32> = (0..48).map(|i| if runs(i.into()) { i + 10 } else { 0 }).collect();
        assert_eq!(out, expect, "{first} {count}");
    }
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    let fixed = kernel("fixed", |k| {
        k.kernel_mut().block_size = Some([8, 1, 1]);
        k.buffer("data", Type::U64, Access::Read);
        k.param("scale", Type::F32);
        Ok(())
    });
    let mut words = [0u32; 5];
    let whole = BufferRef::from_slice(&mut words);
    // SAFETY: bytes 4 to 20 of `words`, which outlives the launches.
    let odd = unsafe {
        BufferRef::from_raw(
            whole
                .ptr
                .wrapping_add(if whole.ptr.addr().is_multiple_of(8) { 4 } else { 0 }),
            16,
        )
    };
    let (data, scale) = (Arg::Buffer(BufferRef::empty()), Arg::Value(&[0; 4]));
    let check = |args: &[Arg<'_>], change: &dyn Fn(&mut LaunchConfig<'_>), expect: &str| {
        let mut config = LaunchConfig::new([1, 1, 1], [8, 1, 1], args);
        change(&mut config);
        let error = Interpreter::new(&fixed)
            .unwrap()
            .launch(&config)
            .map_err(|e| e.to_string());
        let error = error.err().unwrap_or_default();
        assert!(error.contains(expect), "{error:?} has no {expect:?}");
    };
    let same: &dyn Fn(&mut LaunchConfig<'_>) = &|_| {};
    check(
        &[data],
        same,
        "argument 1 (`scale`) of kernel `fixed`: 1 arguments are given, the kernel takes 2",
    );
    check(
        &[scale, scale],
        same,
        "argument 0 (`data`) of kernel `fixed`: a value is given, the parameter is a buffer",
    );
    check(&[data, data], same, "a buffer is given, the parameter is a value");
    check(
        &[data, Arg::Value(&[0; 3])],
        same,
        "3 bytes are given, the value has 4",
    );
    check(&[Arg::Buffer(odd), scale], same, "is not a multiple of 8");
    check(
        &[data, scale],
        &|c| c.block = [4, 1, 1],
        "the block is [4, 1, 1], the kernel fixes it at [8, 1, 1]",
    );
    check(&[data, scale], &|c| c.block = [0, 1, 1], "has 0 lanes");
    check(&[data, scale], &|c| c.block = [u32::MAX; 3], "at most 65536");
    check(
        &[data, scale],
        &|c| c.subgroup_size = 12,
        "subgroups of 12 lanes are not possible",
    );
    check(&[data, scale], &|c| c.grid = [u32::MAX; 3], "too many blocks");
    check(&[data, scale], same, "");
}

#[test]
fn prints_come_in_lane_order() {
    let kernel = kernel("print", |k| {
        let t = thread(k);
        let (b, half) = (block(k), k.f32(1.5));
        let two = k.u32(2);
        let low = k.binary(BinaryOp::Lt, t, two)?;
        let minus = k.constant(Scalar::I8, 0xff);
        k.set_line(6);
        k.if_(low, |k| {
            let text = |t: &str| PrintPiece::Text(t.into());
            let pieces = vec![
                text("lane "),
                PrintPiece::Arg(Default::default()),
                text(" of "),
                PrintPiece::Arg(Default::default()),
                text(": "),
                PrintPiece::Arg(Default::default()),
                text(" "),
                PrintPiece::Arg(Default::default()),
                text(" "),
                PrintPiece::Arg(Default::default()),
            ];
            k.effect(Effect::Print(pieces, vec![t, b, half, low, minus]))
        })
    });
    let lines = Mutex::new(Vec::new());
    let sink = |p: &Printed<'_>| {
        lines
            .lock()
            .unwrap()
            .push((p.text.to_string(), p.line, p.block[0], p.thread[0]))
    };
    let config = LaunchConfig {
        print: Some(&sink),
        ..LaunchConfig::new([2, 1, 1], [4, 1, 1], &[])
    };
    Interpreter::new(&kernel).unwrap().launch(&config).unwrap();
    let line = |b: u32, t: u32| (format!("lane {t} of {b}: 1.5 true -1"), 6, b, t);
    assert_eq!(
        lines.into_inner().unwrap(),
        [line(0, 0), line(0, 1), line(1, 0), line(1, 1)]
    );
}

#[test]
fn aggregates_are_passed_by_their_bytes() {
    let ty = Type::tuple(vec![
        Scalar::U8.into(),
        Type::BOOL,
        Type::Vector(Scalar::F32, 2),
        Scalar::I64.into(),
    ]);
    let kernel = kernel("value", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let v = k.param("v", ty.clone());
        let mut parts = vec![k.op(Op::Extract(v, 0))?];
        let flag = k.op(Op::Extract(v, 1))?;
        parts.push(flag);
        let pair = k.op(Op::Extract(v, 2))?;
        let second = k.op(Op::Extract(pair, 1))?;
        parts.push(k.op(Op::Bitcast(Scalar::U32, second))?);
        parts.push(k.op(Op::Extract(v, 3))?);
        for (i, part) in parts.into_iter().enumerate() {
            let at = k.u32(i as u32);
            let part = k.cast(Scalar::U32, part)?;
            k.store(Place::element(out, at), part)?;
        }
        Ok(())
    });
    let mut bytes = [0xaau8; 24];
    // Any byte but zero is true.
    (bytes[0], bytes[1]) = (200, 2);
    bytes[12..16].copy_from_slice(&2.5f32.to_ne_bytes());
    bytes[16..].copy_from_slice(&(-2i64).to_ne_bytes());
    let mut out = [0u32; 4];
    let args = [Arg::Buffer(BufferRef::from_slice(&mut out)), Arg::Value(&bytes)];
    Interpreter::new(&kernel)
        .unwrap()
        .launch(&LaunchConfig::new([1; 3], [1; 3], &args))
        .unwrap();
    assert_eq!(out, [200, 1, 2.5f32.to_bits(), 0xffff_fffe]);
}

/// Lanes on several threads count together, and one cancels the rest.
#[test]
fn atomics_hold_between_threads_and_cancelling_stops() {
    let count = kernel("count", |k| {
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let (zero, one) = (k.u32(0), k.u32(1));
        k.op(Op::Atomic(
            AtomicOp::Add,
            Place::element(out, zero),
            one,
            Sync::RELAXED,
        ))?;
        let half = k.f32(0.5);
        let at = Place::element(Base::Buffer(1), zero);
        k.buffer("sum", Type::F32, Access::ReadWrite);
        k.op(Op::Atomic(AtomicOp::Add, at, half, Sync::RELAXED))?;
        Ok(())
    });
    let (mut out, mut sum) = ([0u32], [0f32]);
    let args = [
        Arg::Buffer(BufferRef::from_slice(&mut out)),
        Arg::Buffer(BufferRef::from_slice(&mut sum)),
    ];
    let config = LaunchConfig {
        parallel: Parallel::Threads(NonZero::new(2).unwrap()),
        ..LaunchConfig::new([1000, 1, 1], [30, 1, 1], &args)
    };
    Interpreter::new(&count).unwrap().launch(&config).unwrap();
    assert_eq!((out, sum), ([30_000], [15_000.0]));

    let forever = kernel("forever", |k| k.loop_(|_| Ok(())));
    let (cancel, turns) = (AtomicBool::new(false), AtomicU32::new(0));
    let config = LaunchConfig {
        cancel: Some(&cancel),
        ..LaunchConfig::new([1; 3], [1; 3], &[])
    };
    std::thread::scope(|s| {
        s.spawn(|| {
            turns.fetch_add(1, Ordering::Relaxed);
            cancel.store(true, Ordering::Relaxed);
        });
        let error = Interpreter::new(&forever).unwrap().launch(&config).unwrap_err();
        assert_eq!(
            error,
            InterpError::Cancelled {
                kernel: "forever".into()
            }
        );
    });
    assert_eq!(turns.into_inner(), 1);
}
