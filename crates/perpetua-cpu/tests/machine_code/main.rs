//! Machine code against the interpreter: generated kernels at every width that this processor has, faults, barriers.

// Tests may unwrap: a failed expectation is the report.
#![cfg(all(feature = "testing", machine_code))]
#![allow(clippy::unwrap_used, clippy::panic)]

mod bugs;
#[cfg(unix)]
mod checks;
mod conditions;
mod runs;
mod subgroups;

use perpetua_cpu::interp::RaceMode;
use perpetua_cpu::interp::{Arg, BufferRef, InterpError, Interpreter, LaunchConfig, MachineCode};
use perpetua_cpu::interp::{Refusal, Width};
use perpetua_cpu::testing::*;
use perpetua_ir::ir::*;
use perpetua_ir::ops::{BinaryOp, TernaryOp};
use perpetua_ir::pass::{Sums, expand_library};
use perpetua_ir::verify::{Verified, verify};

/// How many seeds each configuration has.
fn seeds() -> u64 {
    std::env::var("PERPETUA_SEEDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(300)
}

/// Runs a case both ways; what differs, `None` where there is no code.
fn compare(case: &Case, width: Width) -> Result<Option<String>, Refusal> {
    compare_changed(case, width, &|_| {})
}

fn compare_changed(case: &Case, width: Width, change: &dyn Fn(&mut [u8])) -> Result<Option<String>, Refusal> {
    // Library operators are functions of the kernel here, so that the interpreter computes the same.
    let kernel = verify(expand_library(case.kernel.clone(), Sums::Rearranged)).unwrap();
    let code = changed(&kernel, width, change)?;
    let expected = interpret(&kernel, case, 32, RaceMode::Off);
    let found = run_case(&code, case, 32, RaceMode::Off);
    Ok(match (expected, found) {
        (Ok(expected), Ok(found)) => {
            let wrong = mismatches(&case.kernel, &expected, &found, 3);
            (!wrong.is_empty()).then(|| wrong.iter().map(|m| format!("{m}\n")).collect())
        }
        (Err(InterpError::Deadline { .. }), _) => None,
        // Which of a block's faults is the first is told by turns of loops where it has several gangs, and these may differ.
        (Err(InterpError::Fault(expected)), Err(InterpError::Fault(found)))
            if case.block[0] > width.lanes() || case.block[1] * case.block[2] > 1 =>
        {
            let same = expected.block == found.block && expected.kernel == found.kernel;
            (!same).then(|| format!("expected {expected}\nfound {found}"))
        }
        (expected, found) => {
            let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
            (expected != found).then(|| format!("expected {expected}\nfound {found}"))
        }
    })
}

/// Runs generated kernels; small ones first, so that what fails can be read.
fn generated(name: &str, config: &Config) {
    let mut refused = std::collections::BTreeMap::<String, usize>::new();
    let mut ran = 0;
    for statements in [3, 8, config.statements] {
        let config = Config {
            statements,
            ..config.clone()
        };
        for seed in 0..seeds() {
            let tape = tape(seed, config.statements * 30);
            let case = generate(&config, &mut Choices::new(&tape)).unwrap();
            for width in Width::detect() {
                if std::env::var("PERPETUA_VERBOSE").is_ok() {
                    eprintln!("{name} {statements} {seed} {width:?}");
                }
                match compare(&case, *width) {
                    Ok(None) => ran += 1,
                    Ok(Some(wrong)) => panic!(
                        "seed {seed}, {statements} statements, {width:?}, grid {:?}, block {:?}:\n{wrong}\n{}",
                        case.grid, case.block, case.kernel
                    ),
                    Err(reason) => *refused.entry(reason.to_string()).or_default() += 1,
                }
            }
        }
    }
    println!("{name}: {ran} runs, refused: {refused:?}");
    assert!(Width::detect().is_empty() || ran > 0);
}

#[test]
fn generated_by_default() {
    generated("default", &Config::default());
}

#[test]
fn generated_without_groups() {
    let config = Config {
        shared: false,
        atomics: false,
        small: false,
        buffers: 2,
        ..Config::default()
    };
    generated("alone", &config);
}

#[test]
fn generated_with_everything() {
    generated("everything", &Config::full());
}

#[test]
fn generated_with_faults() {
    let config = Config {
        faults: true,
        ..Config::default()
    };
    generated("faults", &config);
}

/// Code that calls the host meets a panic there, and passes it on.
#[test]
fn a_printer_may_panic() {
    let mut k = KernelBuilder::new("talks");
    let x = k.builtin(Builtin::ThreadIdx(Axis::X));
    let piece = PrintPiece::Text("here".into());
    k.effect(Effect::Print(vec![piece], vec![])).unwrap();
    let out = k.buffer("out", Type::U32, Access::ReadWrite);
    k.store(Place::element(out, x), x).unwrap();
    let kernel = verify(k.finish()).unwrap();
    for width in Width::detect() {
        let code = compiled(&kernel, *width).unwrap();
        let mut data = vec![7u32; 40];
        let args = [Arg::Buffer(BufferRef::from_slice(&mut data))];
        let print = |_: &perpetua_cpu::interp::Printed<'_>| panic!("no more paper");
        let mut config = LaunchConfig::new([1, 1, 1], [40, 1, 1], &args);
        config.print = Some(&print);
        let launch = std::panic::AssertUnwindSafe(|| code.launch(&config));
        assert!(std::panic::catch_unwind(launch).is_err());
        let lines = std::sync::atomic::AtomicU32::new(0);
        let print = |_: &perpetua_cpu::interp::Printed<'_>| {
            lines.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        };
        config.print = Some(&print);
        code.launch(&config).unwrap();
        assert_eq!(lines.into_inner(), 40);
        assert_eq!(data[39], 39);
    }
}

/// A loop without end stops when the budget is spent, or somebody cancels.
#[test]
fn loops_without_end_stop() {
    let mut k = KernelBuilder::new("hangs");
    let out = k.buffer("out", Type::U32, Access::ReadWrite);
    k.loop_(|k| {
        let zero = k.u32(0);
        let v = k.load(Place::element(out, zero))?;
        let one = k.u32(1);
        let stop = k.binary(BinaryOp::Eq, v, one)?;
        k.if_(stop, |k| {
            k.break_(0);
            Ok(())
        })
    })
    .unwrap();
    let kernel = verify(k.finish()).unwrap();
    for width in Width::detect() {
        let code = compiled(&kernel, *width).unwrap();
        let mut data = vec![0u32; 1];
        let args = [Arg::Buffer(BufferRef::from_slice(&mut data))];
        let mut config = LaunchConfig::new([1, 1, 1], [40, 1, 1], &args);
        config.step_budget = Some(1 << 20);
        assert!(matches!(code.launch(&config), Err(InterpError::Deadline { .. })));
        let cancel = std::sync::atomic::AtomicBool::new(true);
        config.step_budget = None;
        config.cancel = Some(&cancel);
        assert!(matches!(code.launch(&config), Err(InterpError::Cancelled { .. })));
    }
}

/// Blocks that wait for others give these their turn, on one thread.
#[test]
fn groups_that_wait_let_others_run() {
    let mut k = KernelBuilder::new("waits");
    let flags = k.buffer("flags", Type::U32, Access::ReadWrite);
    let block = k.builtin(Builtin::BlockIdx(Axis::X));
    let (zero, one) = (k.u32(0), k.u32(1));
    let first = k.binary(BinaryOp::Eq, block, zero).unwrap();
    k.if_else(
        first,
        |k| {
            k.loop_(|k| {
                let place = Place::element(flags, one);
                let v = k.op(Op::Load(place, Some(Sync::RELAXED)))?;
                let stop = k.binary(BinaryOp::Eq, v, one)?;
                k.if_(stop, |k| {
                    k.break_(0);
                    Ok(())
                })
            })?;
            k.effect(Effect::Store(
                Place::element(flags, zero),
                one,
                Some(Sync::RELAXED),
            ))
        },
        |k| {
            k.effect(Effect::Store(
                Place::element(flags, one),
                one,
                Some(Sync::RELAXED),
            ))
        },
    )
    .unwrap();
    let kernel = verify(k.finish()).unwrap();
    for width in Width::detect() {
        let code = compiled(&kernel, *width).unwrap();
        let mut flags = vec![0u32; 2];
        let args = [Arg::Buffer(BufferRef::from_slice(&mut flags))];
        code.launch(&LaunchConfig::new([2, 1, 1], [40, 1, 1], &args))
            .unwrap();
        assert_eq!(flags, [1, 1]);
    }
}

/// An interpreter that runs machine code.
fn compiled(kernel: &Verified, width: Width) -> Result<Interpreter, Refusal> {
    changed(kernel, width, &|_| {})
}

/// The same, with the code's bytes changed.
fn changed(kernel: &Verified, width: Width, change: &dyn Fn(&mut [u8])) -> Result<Interpreter, Refusal> {
    let code = MachineCode::generate(kernel, width)?;
    let mut memory = memmap2::MmapMut::map_anon(code.bytes().len()).unwrap();
    memory.copy_from_slice(code.bytes());
    change(&mut memory);
    let memory = memory.make_exec().unwrap();
    let mut interpreter = Interpreter::new(kernel).unwrap();
    let entry = memory.as_ptr();
    // SAFETY: the memory is a copy of the code, is kept, and the processor has the width. (Where tests change it, they put one
    // operation on vectors or masks in place of another, or an early end; indices are compared as before, but for those of `checks`,
    // whose processes touch nothing else.)
    unsafe { interpreter.install(code, entry, Box::new(memory)) };
    Ok(interpreter)
}

#[test]
fn saxpy() {
    let mut k = KernelBuilder::new("saxpy");
    let a = k.param("a", Type::F32);
    let x = k.buffer("x", Type::F32, Access::Read);
    let y = k.buffer("y", Type::F32, Access::ReadWrite);
    let i = k.global_id(Axis::X).unwrap();
    let n = k.op(Op::Len(y, Scalar::U32)).unwrap();
    let inside = k.binary(BinaryOp::Lt, i, n).unwrap();
    k.if_(inside, |k| {
        let v = k.load(Place::element(x, i))?;
        let w = k.load(Place::element(y, i))?;
        let v = k.binary(BinaryOp::Mul, a, v)?;
        let w = k.binary(BinaryOp::Add, w, v)?;
        k.store(Place::element(y, i), w)
    })
    .unwrap();
    let kernel = verify(k.finish()).unwrap();
    for width in Width::detect() {
        let code = compiled(&kernel, *width).unwrap();
        if let Ok(path) = std::env::var("DUMP_CODE") {
            let code = MachineCode::generate(&kernel, *width).unwrap();
            std::fs::write(path, code.bytes()).unwrap();
        }
        let mut x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        let mut y = vec![1f32; 1000];
        let a = 2f32.to_ne_bytes();
        let args = [
            Arg::Value(&a),
            Arg::Buffer(BufferRef::from_slice(&mut x)),
            Arg::Buffer(BufferRef::from_slice(&mut y)),
        ];
        code.launch(&LaunchConfig::new([4, 1, 1], [256, 1, 1], &args))
            .unwrap();
        for (i, y) in y.iter().enumerate() {
            assert_eq!(*y, 1.0 + 2.0 * i as f32, "{i} {width:?}");
        }
    }
}
