//! Runs of blocks: what happens in the middle of one is told as if blocks ran one by one.

use super::*;

/// Rows of a grid and parts of them, blocks of one row and of several, with lanes to spare.
const SHAPES: [([u32; 3], [u32; 3]); 5] = [
    ([500, 1, 1], [40, 1, 1]),
    ([7, 60, 1], [16, 4, 1]),
    ([1, 300, 2], [5, 7, 2]),
    ([3, 5, 40], [64, 1, 1]),
    ([2000, 1, 1], [16, 1, 1]),
];

/// The number of a lane in the grid, and of its block.
fn numbers(k: &mut KernelBuilder) -> [Value; 2] {
    let mut number = |axes: [(Builtin, Builtin); 3]| {
        let mut sum = k.u32(0);
        for (index, size) in axes.into_iter().rev() {
            let (size, index) = (k.builtin(size), k.builtin(index));
            let scaled = k.binary(BinaryOp::Mul, sum, size).unwrap();
            sum = k.binary(BinaryOp::Add, scaled, index).unwrap();
        }
        sum
    };
    let along = |f: fn(Axis) -> (Builtin, Builtin)| [Axis::X, Axis::Y, Axis::Z].map(f);
    let lane = number(along(|a| (Builtin::ThreadIdx(a), Builtin::BlockDim(a))));
    let block = number(along(|a| (Builtin::BlockIdx(a), Builtin::GridDim(a))));
    let mut lanes = k.u32(1);
    for axis in [Axis::X, Axis::Y, Axis::Z] {
        let size = k.builtin(Builtin::BlockDim(axis));
        lanes = k.binary(BinaryOp::Mul, lanes, size).unwrap();
    }
    let start = k.binary(BinaryOp::Mul, block, lanes).unwrap();
    [k.binary(BinaryOp::Add, start, lane).unwrap(), block]
}

/// Each lane writes its number; some of a few blocks reach beyond the end. `meets`: behind a barrier.
fn faulty(meets: bool) -> Verified {
    let mut k = KernelBuilder::new("faulty");
    let out = k.buffer("out", Type::U32, Access::ReadWrite);
    let [number, block] = numbers(&mut k);
    if meets {
        k.effect(DeviceOp::Barrier.into()).unwrap();
    }
    let (seven, hundred) = (k.u32(7), k.u32(100));
    let rest = k.binary(BinaryOp::Rem, block, hundred).unwrap();
    let bad = k.binary(BinaryOp::Eq, rest, seven).unwrap();
    let x = k.builtin(Builtin::ThreadIdx(Axis::X));
    let three = k.u32(3);
    let third = k.binary(BinaryOp::Eq, x, three).unwrap();
    let bad = k.binary(BinaryOp::And, bad, third).unwrap();
    let beyond = k.u32(1 << 30);
    let index = k.ternary(TernaryOp::Select, bad, beyond, number).unwrap();
    k.store(Place::element(out, index), number).unwrap();
    verify(k.finish()).unwrap()
}

/// The same, of a kernel whose blocks can run side by side as one: it knows its lanes' indices in the grid alone.
fn faulty_side_by_side() -> Verified {
    let mut k = KernelBuilder::new("faulty");
    let out = k.buffer("out", Type::U32, Access::ReadWrite);
    let mut number = k.u32(0);
    for axis in [Axis::Z, Axis::Y, Axis::X] {
        let [block, size, thread, grid] = [
            Builtin::BlockIdx(axis),
            Builtin::BlockDim(axis),
            Builtin::ThreadIdx(axis),
            Builtin::GridDim(axis),
        ]
        .map(|builtin| k.builtin(builtin));
        let start = k.binary(BinaryOp::Mul, block, size).unwrap();
        let index = k.binary(BinaryOp::Add, start, thread).unwrap();
        let lanes = k.binary(BinaryOp::Mul, grid, size).unwrap();
        let scaled = k.binary(BinaryOp::Mul, number, lanes).unwrap();
        number = k.binary(BinaryOp::Add, scaled, index).unwrap();
    }
    let (all, one) = (k.u32(1000), k.u32(707));
    let rest = k.binary(BinaryOp::Rem, number, all).unwrap();
    let bad = k.binary(BinaryOp::Eq, rest, one).unwrap();
    let beyond = k.u32(1 << 30);
    let index = k.ternary(TernaryOp::Select, bad, beyond, number).unwrap();
    k.store(Place::element(out, index), number).unwrap();
    verify(k.finish()).unwrap()
}

/// A fault names its kernel, line, block and lane; of several that of the lowest block; and all other lanes do what they do.
#[test]
fn faults_in_the_middle_of_a_run_name_their_block_and_lane() {
    for kernel in [faulty(false), faulty(true), faulty_side_by_side()] {
        let plain = Interpreter::new(&kernel).unwrap();
        for width in Width::detect() {
            let code = compiled(&kernel, *width).unwrap();
            for (grid, block) in SHAPES {
                let count = grid.iter().chain(&block).product::<u32>() as usize;
                let run = |of: &Interpreter| {
                    let mut out = vec![u32::MAX; count];
                    let args = [Arg::Buffer(BufferRef::from_slice(&mut out))];
                    let result = of.launch(&LaunchConfig::new(grid, block, &args));
                    (format!("{:?}", result.unwrap_err()), out)
                };
                let (expected, found) = (run(&plain), run(&code));
                assert!(expected.0.contains("Fault"), "{}", expected.0);
                assert!(
                    expected == found,
                    "{width:?} {grid:?} {block:?}:\n{}\n{}",
                    expected.0,
                    found.0
                );
            }
        }
    }
}

/// Whoever cancels a launch without loops, or gives it too small a budget, stops it between runs.
#[test]
fn runs_are_stopped() {
    let mut k = KernelBuilder::new("writes");
    let out = k.buffer("out", Type::U32, Access::ReadWrite);
    let [number, _] = numbers(&mut k);
    k.store(Place::element(out, number), number).unwrap();
    let kernel = verify(k.finish()).unwrap();
    for width in Width::detect() {
        let code = compiled(&kernel, *width).unwrap();
        let mut out = vec![0u32; 1 << 16];
        let args = [Arg::Buffer(BufferRef::from_slice(&mut out))];
        let mut config = LaunchConfig::new([1 << 12, 1, 1], [16, 1, 1], &args);
        config.step_budget = Some(100);
        assert!(matches!(code.launch(&config), Err(InterpError::Deadline { .. })));
        let cancel = std::sync::atomic::AtomicBool::new(true);
        config.step_budget = None;
        config.cancel = Some(&cancel);
        assert!(matches!(code.launch(&config), Err(InterpError::Cancelled { .. })));
        config.cancel = None;
        code.launch(&config).unwrap();
        assert!(out.iter().enumerate().all(|(i, v)| *v == i as u32));
    }
}

/// Each block but the last waits for the one behind it, on one thread: so each pauses, and none keeps the next from starting.
#[test]
fn a_pause_lets_the_next_block_of_the_grid_start() {
    let mut k = KernelBuilder::new("waits");
    let flags = k.buffer("flags", Type::U32, Access::ReadWrite);
    let block = k.builtin(Builtin::BlockIdx(Axis::X));
    let one = k.u32(1);
    let next = k.binary(BinaryOp::Add, block, one).unwrap();
    k.loop_(|k| {
        let v = k.op(Op::Load(Place::element(flags, next), Some(Sync::RELAXED)))?;
        let stop = k.binary(BinaryOp::Eq, v, one)?;
        k.if_(stop, |k| {
            k.break_(0);
            Ok(())
        })
    })
    .unwrap();
    k.effect(Effect::Store(
        Place::element(flags, block),
        one,
        Some(Sync::RELAXED),
    ))
    .unwrap();
    let kernel = verify(k.finish()).unwrap();
    for width in Width::detect() {
        let code = compiled(&kernel, *width).unwrap();
        let mut flags = vec![0u32; 41];
        flags[40] = 1;
        let args = [Arg::Buffer(BufferRef::from_slice(&mut flags))];
        code.launch(&LaunchConfig::new([40, 1, 1], [20, 1, 1], &args))
            .unwrap();
        assert!(flags.iter().all(|flag| *flag == 1), "{flags:?}");
    }
}
