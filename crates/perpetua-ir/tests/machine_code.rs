//! Machine code against the interpreter: generated kernels at every width that this processor has, faults, barriers.

// Tests may unwrap: a failed expectation is the report.
#![cfg(all(feature = "testing", feature = "machine-code", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::panic)]

use perpetua_ir::interp::RaceMode;
use perpetua_ir::interp::{Arg, BufferRef, InterpError, Interpreter, LaunchConfig, MachineCode};
use perpetua_ir::interp::{Refusal, Width};
use perpetua_ir::ir::*;
use perpetua_ir::ops::BinaryOp;
use perpetua_ir::pass::expand_library;
use perpetua_ir::testing::*;
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
    let kernel = verify(expand_library(case.kernel.clone())).unwrap();
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

/// Puts bytes in place of others wherever these stand; `None` stands for any.
fn replace(code: &mut [u8], from: &[Option<u8>], at: usize, to: u8) {
    for start in 0..code.len().saturating_sub(from.len()) {
        let window = &code[start..start + from.len()];
        if window.iter().zip(from).all(|(b, f)| f.is_none_or(|f| f == *b)) {
            code[start + at] = to;
        }
    }
}

/// Bugs of the kinds that a generator has are found by generated kernels: so the comparison compares something.
#[test]
fn planted_bugs_are_found() {
    let any = None;
    type Bug = (&'static str, Vec<Option<u8>>, usize, u8);
    let bugs: [Bug; 6] = [
        (
            "code that does nothing",
            [0x53, 0x55, 0x41, 0x54].map(Some).to_vec(),
            0,
            0xC3,
        ),
        (
            "lanes of the other branch stay (a mask is taken for its complement)",
            vec![Some(0xC4), any, any, Some(0x42), any],
            3,
            0x41,
        ),
        (
            "lanes that join are lost",
            vec![Some(0xC4), any, Some(0x74), Some(0x45), any],
            3,
            0x41,
        ),
        (
            "a sum is a difference",
            vec![Some(0x62), any, any, any, Some(0xFE)],
            4,
            0xFA,
        ),
        (
            "a bitwise and is an or",
            vec![Some(0x62), any, any, any, Some(0xDB)],
            4,
            0xEB,
        ),
        (
            "a choice is the greater one",
            vec![Some(0x62), any, any, any, Some(0x64)],
            4,
            0x3D,
        ),
    ];
    // The same without mask registers, where lanes lie in halves of vectors besides.
    let narrow: [Bug; 7] = [
        bugs[0].clone(),
        (
            "lanes of the other branch stay (a mask is taken for its complement)",
            vec![Some(0xC4), any, any, Some(0xDF), any],
            3,
            0xDB,
        ),
        (
            "lanes that join are lost",
            vec![Some(0xC4), any, any, Some(0xEB), any],
            3,
            0xDB,
        ),
        (
            "a sum is a difference",
            vec![Some(0xC4), any, any, Some(0xFE), any],
            3,
            0xFA,
        ),
        (
            "a mask counts for lanes in pairs",
            vec![Some(0xC4), any, any, Some(0x4A), any],
            3,
            0x4B,
        ),
        (
            "halves of lanes are in a wrong order",
            vec![Some(0xC4), any, any, Some(0x38), any, Some(0x01)],
            5,
            0x00,
        ),
        (
            "a register is lost over a call (it is saved as another)",
            vec![Some(0xC4), Some(0x41), Some(0x7D), Some(0x7F), Some(0x86)],
            4,
            0x8E,
        ),
    ];
    for width in Width::detect() {
        let bugs: &[Bug] = match width {
            Width::EightAvx2 => &narrow,
            _ => &bugs,
        };
        for (name, from, at, to) in bugs {
            let found = (0..400u64).any(|seed| {
                let config = Config {
                    statements: 20,
                    ..Config::default()
                };
                let tape = tape(seed, config.statements * 30);
                let case = generate(&config, &mut Choices::new(&tape)).unwrap();
                let plant = |code: &mut [u8]| replace(code, from, *at, *to);
                matches!(compare_changed(&case, *width, &plant), Ok(Some(_)))
            });
            assert!(found, "nothing finds: {name} ({width:?})");
        }
    }
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
        let print = |_: &perpetua_ir::interp::Printed<'_>| panic!("no more paper");
        let mut config = LaunchConfig::new([1, 1, 1], [40, 1, 1], &args);
        config.print = Some(&print);
        let launch = std::panic::AssertUnwindSafe(|| code.launch(&config));
        assert!(std::panic::catch_unwind(launch).is_err());
        let lines = std::sync::atomic::AtomicU32::new(0);
        let print = |_: &perpetua_ir::interp::Printed<'_>| {
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

/// Every operation of subgroups, in loops and branches that lanes and whole gangs take differently, over blocks of several shapes.
#[test]
fn subgroup_operations_equal_the_interpreters() {
    use ReduceOp::*;
    let mut ops: Vec<SubgroupOp> = vec![
        SubgroupOp::Shuffle,
        SubgroupOp::ShuffleUp,
        SubgroupOp::ShuffleDown,
        SubgroupOp::ShuffleXor,
        SubgroupOp::BroadcastFirst,
        SubgroupOp::Any,
        SubgroupOp::All,
        SubgroupOp::Ballot,
    ];
    for op in [Add, Mul, Min, Max, And, Or, Xor] {
        ops.extend([
            SubgroupOp::Reduce(op),
            SubgroupOp::InclusiveScan(op),
            SubgroupOp::ExclusiveScan(op),
        ]);
    }
    let scalars = [Scalar::U32, Scalar::I32, Scalar::F32, Scalar::I64, Scalar::F64];
    let shapes = [[64, 1, 1], [40, 1, 1], [24, 3, 1], [5, 7, 3], [1, 33, 1]];
    for op in ops {
        for s in scalars {
            let bits = matches!(
                op,
                SubgroupOp::Reduce(And | Or | Xor)
                    | SubgroupOp::InclusiveScan(And | Or | Xor)
                    | SubgroupOp::ExclusiveScan(And | Or | Xor)
            );
            if bits && !s.is_int() {
                continue;
            }
            let kernel = verify(exchanging(op, s)).unwrap();
            for width in Width::detect() {
                let code = compiled(&kernel, *width).unwrap();
                let plain = Interpreter::new(&kernel).unwrap();
                for block in shapes {
                    for subgroup in [32, 8, 64] {
                        let run = |of: &Interpreter| {
                            let mut data: Vec<u64> = (0..2 * 256u64)
                                .map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15))
                                .collect();
                            let mut out = vec![0u64; 2 * 256];
                            let args = [
                                Arg::Buffer(BufferRef::from_slice(&mut data)),
                                Arg::Buffer(BufferRef::from_slice(&mut out)),
                            ];
                            let mut config = LaunchConfig::new([2, 1, 1], block, &args);
                            config.subgroup_size = subgroup;
                            of.launch(&config).unwrap();
                            out
                        };
                        let (expected, found) = (run(&plain), run(&code));
                        assert_eq!(
                            expected,
                            found,
                            "{op:?} of {s}, {width:?}, {block:?}, {subgroup}\n{}",
                            kernel.kernel()
                        );
                    }
                }
            }
        }
    }
}

/// A kernel that exchanges in loops of different lengths, in both arms of a branch, and behind them.
fn exchanging(op: SubgroupOp, s: Scalar) -> Kernel {
    let mut k = KernelBuilder::new("exchanges");
    let input = k.buffer("input", Type::U64, Access::Read);
    let out = k.buffer("out", Type::U64, Access::ReadWrite);
    let [x, y, z] = [Axis::X, Axis::Y, Axis::Z].map(|a| k.builtin(Builtin::ThreadIdx(a)));
    let [w, h] = [Axis::X, Axis::Y].map(|a| k.builtin(Builtin::BlockDim(a)));
    let z = k.binary(BinaryOp::Mul, z, h).unwrap();
    let y = k.binary(BinaryOp::Add, y, z).unwrap();
    let y = k.binary(BinaryOp::Mul, y, w).unwrap();
    let lane = k.binary(BinaryOp::Add, x, y).unwrap();
    let block = k.builtin(Builtin::BlockIdx(Axis::X));
    let start = k.u32(256);
    let start = k.binary(BinaryOp::Mul, block, start).unwrap();
    let index = k.binary(BinaryOp::Add, start, lane).unwrap();
    let word = k.load(Place::element(input, index)).unwrap();
    let vote = matches!(op, SubgroupOp::Any | SubgroupOp::All | SubgroupOp::Ballot);
    let shuffles = matches!(
        op,
        SubgroupOp::Shuffle | SubgroupOp::ShuffleUp | SubgroupOp::ShuffleDown | SubgroupOp::ShuffleXor
    );
    let sum = k.local("sum", Type::U64);
    k.store(Place::local(sum), word).unwrap();
    // What lanes exchange is made of what they have; what they get is added to it.
    let exchange = |k: &mut KernelBuilder| {
        let old = k.load(Place::local(sum))?;
        let value = match s {
            _ if vote => {
                let three = k.constant(Scalar::U64, 3);
                let low = k.binary(BinaryOp::And, old, three)?;
                let zero = k.constant(Scalar::U64, 0);
                k.binary(BinaryOp::Ne, low, zero)?
            }
            // Small whole numbers: of other bits some are NaN, whose payloads may differ.
            _ if !s.is_int() => {
                let low = k.cast(Scalar::U8, old)?;
                k.cast(s, low)?
            }
            _ => k.cast(s, old)?,
        };
        let arg = match shuffles {
            true => {
                let arg = k.cast(Scalar::U32, old)?;
                let few = k.u32(40);
                Some(k.binary(BinaryOp::Rem, arg, few)?)
            }
            false => None,
        };
        let got = k.op(Op::subgroup(op, value, arg))?;
        let got = match op {
            SubgroupOp::Ballot => k.op(Op::Extract(got, 0))?,
            _ => got,
        };
        let got = k.cast(Scalar::U64, got)?;
        let factor = k.constant(Scalar::U64, 0x2545_F491_4F6C_DD1D);
        let old = k.binary(BinaryOp::Mul, old, factor)?;
        let new = k.binary(BinaryOp::Add, old, got)?;
        k.store(Place::local(sum), new)
    };
    exchange(&mut k).unwrap();
    let turn = k.local("turn", Type::U32);
    let zero = k.u32(0);
    k.store(Place::local(turn), zero).unwrap();
    k.loop_(|k| {
        let n = k.load(Place::local(turn))?;
        let few = k.u32(5);
        let most = k.binary(BinaryOp::Rem, lane, few)?;
        let row = k.u32(16);
        let row = k.binary(BinaryOp::Div, lane, row)?;
        let most = k.binary(BinaryOp::Add, most, row)?;
        let over = k.binary(BinaryOp::Gt, n, most)?;
        k.if_(over, |k| {
            k.break_(0);
            Ok(())
        })?;
        let one = k.u32(1);
        let next = k.binary(BinaryOp::Add, n, one)?;
        k.store(Place::local(turn), next)?;
        let odd = k.binary(BinaryOp::And, lane, one)?;
        let odd = k.binary(BinaryOp::Eq, odd, one)?;
        k.if_else(
            odd,
            |k| exchange(k),
            |k| {
                exchange(k)?;
                let many = k.u32(20);
                let some = k.binary(BinaryOp::Lt, lane, many)?;
                k.if_(some, |k| exchange(k))
            },
        )
    })
    .unwrap();
    exchange(&mut k).unwrap();
    let sum = k.load(Place::local(sum)).unwrap();
    k.store(Place::element(out, index), sum).unwrap();
    k.finish()
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
    // operation on vectors or masks in place of another, or an early end; indices are compared as before.)
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
