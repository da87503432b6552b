//! How fast the interpreter is: nanoseconds for each operation of each lane, on one thread. `cargo bench -p perpetua-ir`.

use std::time::{Duration, Instant};

use perpetua_cpu::interp::{Arg, BufferRef, Interpreter, LaunchConfig};
use perpetua_ir::ir::*;
use perpetua_ir::ops::{BinaryOp, TernaryOp, UnaryOp};
use perpetua_ir::verify::verify;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Statements that a lane executes.
struct Bench {
    kernel: Kernel,
    operations: u64,
}

/// `y[i] = a * x[i] + y[i]` where `i` is below the length.
fn saxpy() -> Result<Bench> {
    let mut k = KernelBuilder::new("saxpy");
    let y = k.buffer("y", Type::F32, Access::ReadWrite);
    let x = k.buffer("x", Type::F32, Access::Read);
    let a = k.param("a", Type::F32);
    let i = k.global_id(Axis::X)?;
    let n = k.op(Op::Len(y, Scalar::U32))?;
    let inside = k.binary(BinaryOp::Lt, i, n)?;
    k.if_(inside, |k| {
        let (u, v) = (k.load(Place::element(x, i))?, k.load(Place::element(y, i))?);
        let u = k.binary(BinaryOp::Mul, a, u)?;
        let v = k.binary(BinaryOp::Add, u, v)?;
        k.store(Place::element(y, i), v)
    })?;
    Ok(Bench {
        kernel: k.finish(),
        // Two for the index, comparison, branch, two loads, two operators, store.
        operations: 9,
    })
}

/// The five-point mean of a square grid of `width`, its inside alone.
fn stencil(width: u32) -> Result<Bench> {
    let mut k = KernelBuilder::new("stencil");
    let out = k.buffer("out", Type::F32, Access::ReadWrite);
    let from = k.buffer("from", Type::F32, Access::Read);
    let (x, y) = (k.global_id(Axis::X)?, k.global_id(Axis::Y)?);
    let (one, last, w) = (k.u32(1), k.u32(width - 1), k.u32(width));
    let mut inside = k.binary(BinaryOp::Ge, x, one)?;
    for (a, op, b) in [
        (x, BinaryOp::Lt, last),
        (y, BinaryOp::Ge, one),
        (y, BinaryOp::Lt, last),
    ] {
        let c = k.binary(op, a, b)?;
        inside = k.binary(BinaryOp::And, inside, c)?;
    }
    k.if_(inside, |k| {
        let row = k.binary(BinaryOp::Mul, y, w)?;
        let here = k.binary(BinaryOp::Add, row, x)?;
        let mut sum = k.load(Place::element(from, here))?;
        for (op, by) in [
            (BinaryOp::Sub, one),
            (BinaryOp::Add, one),
            (BinaryOp::Sub, w),
            (BinaryOp::Add, w),
        ] {
            let at = k.binary(op, here, by)?;
            let v = k.load(Place::element(from, at))?;
            sum = k.binary(BinaryOp::Add, sum, v)?;
        }
        let fifth = k.f32(0.2);
        let mean = k.binary(BinaryOp::Mul, sum, fifth)?;
        k.store(Place::element(out, here), mean)
    })?;
    Ok(Bench {
        kernel: k.finish(),
        // Indices 4, comparisons 7, branch, inside: 2 + 1 + 4 * 3 + 2.
        operations: 4 + 7 + 1 + 17,
    })
}

/// Escape times of 64 turns at most: lanes leave the loop one by one.
fn mandelbrot(width: u32) -> Result<Bench> {
    let mut k = KernelBuilder::new("mandelbrot");
    let out = k.buffer("out", Type::F32, Access::ReadWrite);
    k.buffer("unused", Type::F32, Access::Read);
    let (x, y) = (k.global_id(Axis::X)?, k.global_id(Axis::Y)?);
    let w = k.u32(width);
    let row = k.binary(BinaryOp::Mul, y, w)?;
    let here = k.binary(BinaryOp::Add, row, x)?;
    let (scale, left, top) = (k.f32(3.0 / width as f32), k.f32(-2.0), k.f32(-1.5));
    let (x, y) = (k.cast(Scalar::F32, x)?, k.cast(Scalar::F32, y)?);
    let cx = k.ternary(TernaryOp::Fma, x, scale, left)?;
    let cy = k.ternary(TernaryOp::Fma, y, scale, top)?;
    let [zx, zy, turns] =
        [("zx", Type::F32), ("zy", Type::F32), ("turns", Type::U32)].map(|(n, ty)| k.local(n, ty));
    let (zero, none) = (k.f32(0.0), k.u32(0));
    k.store(Place::local(zx), zero)?;
    k.store(Place::local(zy), zero)?;
    k.store(Place::local(turns), none)?;
    k.loop_(|k| {
        let n = k.load(Place::local(turns))?;
        let (a, b) = (k.load(Place::local(zx))?, k.load(Place::local(zy))?);
        let aa = k.binary(BinaryOp::Mul, a, a)?;
        let bb = k.binary(BinaryOp::Mul, b, b)?;
        let size = k.binary(BinaryOp::Add, aa, bb)?;
        let (four, most) = (k.f32(4.0), k.u32(64));
        let out = k.binary(BinaryOp::Gt, size, four)?;
        let spent = k.binary(BinaryOp::Ge, n, most)?;
        let done = k.binary(BinaryOp::Or, out, spent)?;
        k.if_(done, |k| {
            k.break_(0);
            Ok(())
        })?;
        let ab = k.binary(BinaryOp::Mul, a, b)?;
        let ab = k.binary(BinaryOp::Add, ab, ab)?;
        let next = k.binary(BinaryOp::Add, ab, cy)?;
        k.store(Place::local(zy), next)?;
        let next = k.binary(BinaryOp::Sub, aa, bb)?;
        let next = k.binary(BinaryOp::Add, next, cx)?;
        k.store(Place::local(zx), next)?;
        let one = k.u32(1);
        let n = k.binary(BinaryOp::Add, n, one)?;
        k.store(Place::local(turns), n)
    })?;
    let n = k.load(Place::local(turns))?;
    let n = k.cast(Scalar::F32, n)?;
    k.store(Place::element(out, here), n)?;
    Ok(Bench {
        kernel: k.finish(),
        // Of a lane that stays for all turns, loads of variables not counted.
        operations: 64 * 17,
    })
}

/// A block sums its elements by halves in shared memory.
fn tree_sum() -> Result<Bench> {
    let mut k = KernelBuilder::new("tree_sum");
    let out = k.buffer("out", Type::F32, Access::ReadWrite);
    let data = k.buffer("data", Type::F32, Access::Read);
    let tile = k.shared("tile", Type::array(Type::F32, 256));
    let (t, i) = (k.builtin(Builtin::ThreadIdx(Axis::X)), k.global_id(Axis::X)?);
    let v = k.load(Place::element(data, i))?;
    k.store(Place::element(tile, t), v)?;
    k.effect(DeviceOp::Barrier.into())?;
    for half in [128, 64, 32, 16, 8, 4, 2, 1] {
        let h = k.u32(half);
        let adds = k.binary(BinaryOp::Lt, t, h)?;
        k.if_(adds, |k| {
            let other = k.binary(BinaryOp::Add, t, h)?;
            let (a, b) = (
                k.load(Place::element(tile, t))?,
                k.load(Place::element(tile, other))?,
            );
            let sum = k.binary(BinaryOp::Add, a, b)?;
            k.store(Place::element(tile, t), sum)
        })?;
        k.effect(DeviceOp::Barrier.into())?;
    }
    let zero = k.u32(0);
    let first = k.binary(BinaryOp::Eq, t, zero)?;
    k.if_(first, |k| {
        let sum = k.load(Place::element(tile, zero))?;
        let b = k.builtin(Builtin::BlockIdx(Axis::X));
        k.store(Place::element(out, b), sum)
    })?;
    Ok(Bench {
        kernel: k.finish(),
        // Every lane: index, load, store, barrier, eight comparisons, branches and barriers.
        operations: 5 + 3 * 8,
    })
}

/// A transcendental of every lane.
fn library(op: UnaryOp) -> Result<Bench> {
    let mut k = KernelBuilder::new(op.name());
    let out = k.buffer("out", Type::F32, Access::ReadWrite);
    let from = k.buffer("from", Type::F32, Access::Read);
    let i = k.global_id(Axis::X)?;
    let v = k.load(Place::element(from, i))?;
    let v = k.unary(op, v)?;
    k.store(Place::element(out, i), v)?;
    Ok(Bench {
        kernel: k.finish(),
        operations: 5,
    })
}

fn measure(bench: &Bench, grid: [u32; 3], block: [u32; 3], values: &[f32], n: usize) -> Result<()> {
    let started = Instant::now();
    let kernel = verify(bench.kernel.clone())?;
    let verified = started.elapsed();
    let started = Instant::now();
    let interpreter = Interpreter::new(&kernel)?;
    let prepared = started.elapsed();
    let mut out = vec![0f32; n];
    let mut from: Vec<f32> = (0..n).map(|i| (i % 1000) as f32 * 0.5).collect();
    let values: Vec<[u8; 4]> = values.iter().map(|v| v.to_ne_bytes()).collect();
    let mut args = vec![
        Arg::Buffer(BufferRef::from_slice(&mut out)),
        Arg::Buffer(BufferRef::from_slice(&mut from)),
    ];
    args.extend(values.iter().map(|v| Arg::Value(v)));
    let config = LaunchConfig::new(grid, block, &args);
    let mut best = f64::INFINITY;
    // The best of many: others may share the machine.
    let end = Instant::now() + Duration::from_millis(700);
    while Instant::now() < end {
        let started = Instant::now();
        interpreter.launch(&config)?;
        best = best.min(started.elapsed().as_secs_f64());
    }
    let lanes: u64 = grid.iter().chain(&block).map(|n| u64::from(*n)).product();
    let one = best * 1e9 / lanes as f64;
    println!(
        "{:12} {grid:?} x {block:?}: {:9.1} us, {one:7.3} ns a lane, {:6.4} ns a lane and operation ({} operations); \
         verified in {verified:.1?}, prepared in {prepared:.1?}",
        bench.kernel.name,
        best * 1e6,
        one / bench.operations as f64,
        bench.operations
    );
    Ok(())
}

fn main() -> Result<()> {
    let only = std::env::args()
        .nth(1)
        .filter(|a| !a.starts_with('-'))
        .unwrap_or_default();
    let run = |bench: Bench, grid: [u32; 3], block: [u32; 3], values: &[f32], n: usize| {
        if bench.kernel.name.contains(&only) {
            measure(&bench, grid, block, values, n)
        } else {
            Ok(())
        }
    };
    run(saxpy()?, [1, 1, 1], [32, 1, 1], &[2.0], 32)?;
    run(saxpy()?, [64, 1, 1], [256, 1, 1], &[2.0], 1 << 14)?;
    run(saxpy()?, [4096, 1, 1], [256, 1, 1], &[2.0], 1 << 20)?;
    run(saxpy()?, [1024, 1, 1], [1024, 1, 1], &[2.0], 1 << 20)?;
    run(stencil(128)?, [1, 128, 1], [128, 1, 1], &[], 1 << 14)?;
    run(stencil(128)?, [8, 8, 1], [16, 16, 1], &[], 1 << 14)?;
    run(stencil(1024)?, [4, 1024, 1], [256, 1, 1], &[], 1 << 20)?;
    run(stencil(1024)?, [64, 64, 1], [16, 16, 1], &[], 1 << 20)?;
    run(mandelbrot(128)?, [1, 128, 1], [128, 1, 1], &[], 1 << 14)?;
    run(mandelbrot(128)?, [8, 8, 1], [16, 16, 1], &[], 1 << 14)?;
    for op in [UnaryOp::Exp, UnaryOp::Ln, UnaryOp::Sin, UnaryOp::Tanh] {
        run(library(op)?, [64, 1, 1], [256, 1, 1], &[], 1 << 14)?;
    }
    run(tree_sum()?, [64, 1, 1], [256, 1, 1], &[], 1 << 14)
}
