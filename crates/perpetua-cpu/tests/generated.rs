//! Generated kernels: that they verify, print and read back, and contain everything that they are to contain.

// Tests may unwrap: a failed expectation is the report.
#![cfg(feature = "testing")]
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};

use perpetua_cpu::interp::{InterpError, RaceMode};
use perpetua_cpu::testing::*;
use perpetua_ir::ir::{Kernel, Op, ParamKind, Scalar};
use perpetua_ir::pass::checks::make_explicit;
use perpetua_ir::pass::{Sums, expand_library};
use perpetua_ir::verify::{Facts, verify};

fn make(config: &Config, seed: u64) -> Case {
    let tape = tape(seed, config.statements * 30);
    generate(config, &mut Choices::new(&tape)).unwrap()
}

fn configs() -> [Config; 4] {
    [
        Config::default(),
        Config::full(),
        Config {
            faults: true,
            ..Config::full()
        },
        Config {
            floats: false,
            small: false,
            shared: false,
            atomics: false,
            buffers: 1,
            ..Config::default()
        },
    ]
}

#[test]
fn they_verify() {
    for config in configs() {
        for seed in 0..500 {
            let case = make(&config, seed);
            if let Err(errors) = verify(case.kernel.clone()) {
                panic!("seed {seed} of {config:?}:\n{errors}\n{}", case.kernel);
            }
            for (i, param) in case.kernel.params.iter().enumerate() {
                let (ParamKind::Buffer { element: ty, .. } | ParamKind::Value(ty)) = &param.kind;
                assert_eq!(case.args[i].len() % ty.size() as usize, 0, "seed {seed}");
            }
            assert_eq!(case.args.len(), case.kernel.params.len(), "seed {seed}");
        }
    }
}

#[test]
fn they_print_and_read_back() {
    for config in configs() {
        for seed in 0..200 {
            let kernel = make(&config, seed).kernel;
            let text = kernel.to_string();
            let read: Result<Kernel, _> = text.parse();
            assert_eq!(read.as_ref(), Ok(&kernel), "seed {seed}:\n{text}");
        }
    }
}

#[test]
fn they_need_no_more_than_they_may() {
    for seed in 0..300 {
        let facts = Facts::of(&make(&Config::default(), seed).kernel);
        assert_eq!(facts.capabilities(), &BTreeMap::new(), "seed {seed}");
    }
}

#[test]
fn they_contain_everything() {
    let mut all: BTreeMap<&str, usize> = BTreeMap::new();
    let mut types = BTreeSet::new();
    for seed in 0..500 {
        let kernel = make(&Config::full(), seed).kernel;
        for (name, count) in histogram(&kernel) {
            *all.entry(name).or_default() += count;
        }
        for param in &kernel.params {
            let (ParamKind::Buffer { element: ty, .. } | ParamKind::Value(ty)) = &param.kind;
            types.extend(ty.leaves().into_iter().map(|(s, _)| s));
        }
    }
    println!("{all:#?}");
    let missing: Vec<&str> = wanted().filter(|name| !all.contains_key(name)).collect();
    assert_eq!(missing, [""; 0]);
    assert_eq!(types, BTreeSet::from(Scalar::ALL));
}

/// Every name that a histogram can have, but for what generated kernels never contain.
fn wanted() -> impl Iterator<Item = &'static str> {
    use perpetua_ir::ops::{BinaryOp, TernaryOp, UnaryOp};
    let operators = UnaryOp::ALL.iter().map(|op| op.name());
    let operators = operators.chain(BinaryOp::ALL.iter().map(|op| op.name()));
    let operators = operators.chain(TernaryOp::ALL.iter().map(|op| op.name()));
    operators.chain([
        "if",
        "switch",
        "loop",
        "block",
        "break",
        "continue",
        "return",
        "barrier",
        "fence",
        "call",
        "const",
        "zero",
        "param",
        "builtin",
        "cast",
        "bitcast",
        "compose",
        "extract",
        "insert",
        "len",
        "load buffer",
        "load shared",
        "load local",
        "load constant",
        "load atomic",
        "store buffer",
        "store shared",
        "store local",
        "store atomic",
        "atomic add",
        "atomic sub",
        "atomic min",
        "atomic max",
        "atomic and",
        "atomic or",
        "atomic xor",
        "atomic exchange",
        "compare exchange",
        "subgroup shuffle",
        "subgroup vote",
        "subgroup reduce",
        "subgroup scan",
    ])
}

#[test]
fn an_empty_tape_gives_a_small_kernel() {
    let case = generate(&Config::full(), &mut Choices::new(&[])).unwrap();
    assert!(verify(case.kernel.clone()).is_ok());
    let statements: usize = histogram(&case.kernel).values().sum();
    assert!(statements < 60, "{}", case.kernel);
}

/// A stand-in for a bug in a renderer: whatever has a `copysign` and a loop fails.
fn fails(case: &Case) -> bool {
    let mut found = (false, false);
    case.kernel.body.block.walk(&mut |stmt| match &stmt.inst {
        perpetua_ir::ir::Inst::Let(_, Op::Binary(op, ..)) => found.0 |= op.name() == "copysign",
        perpetua_ir::ir::Inst::Loop(_) => found.1 = true,
        _ => {}
    });
    found == (true, true)
}

#[test]
fn what_fails_shrinks() {
    let config = Config::full();
    let mut sizes = Vec::new();
    for seed in 0..200 {
        let tape = tape(seed, config.statements * 30);
        let case = generate(&config, &mut Choices::new(&tape)).unwrap();
        if !fails(&case) {
            continue;
        }
        let before: usize = histogram(&case.kernel).values().sum();
        let (_, small) = minimise_tape(&config, &tape, 500, fails).unwrap();
        assert!(fails(&small));
        let middle: usize = histogram(&small.kernel).values().sum();
        let small = minimise_kernel(&small, 500, fails);
        assert!(fails(&small) && verify(small.kernel.clone()).is_ok());
        assert!(!small.kernel.to_string().contains("unused"), "{}", small.kernel);
        let after: usize = histogram(&small.kernel).values().sum();
        sizes.push((before, middle, after));
    }
    println!("{sizes:?}");
    assert!(sizes.len() > 5);
    assert!(sizes.iter().all(|(_, _, after)| *after < 60), "{sizes:?}");
}

/// Changed bytes of a kernel's text never make the parser or the verifier panic.
#[test]
fn damaged_text_does_no_harm() {
    let mut random = Random::new(1);
    let (mut read, mut right) = (0, 0);
    for seed in 0..300 {
        let text = make(&Config::full(), seed).kernel.to_string();
        for _ in 0..10 {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..1 + random.bits() % 3 {
                let at = random.bits() as usize % bytes.len().max(1);
                match random.bits() % 4 {
                    0 if bytes.len() > 1 => {
                        bytes.remove(at);
                    }
                    1 => bytes[at] = b" \n{}()%$@.,:0179eE-x"[random.bits() as usize % 20],
                    2 => {
                        let from = random.bits() as usize % bytes.len();
                        bytes[at] = bytes[from];
                    }
                    _ => bytes.truncate(at.max(1)),
                }
            }
            let text = String::from_utf8_lossy(&bytes);
            if let Ok(kernel) = text.parse::<Kernel>() {
                read += 1;
                assert_eq!(
                    kernel.to_string().parse::<Kernel>().as_ref(),
                    Ok(&kernel),
                    "{text}"
                );
                right += usize::from(verify(kernel).is_ok());
            }
        }
    }
    println!("{read} of 3000 were kernels, {right} right ones");
    assert!(read > 100 && right > 10);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn as_a_strategy(case in cases(Config::full())) {
        proptest::prop_assert!(verify(case.kernel.clone()).is_ok());
        let read: Result<Kernel, _> = case.kernel.to_string().parse();
        proptest::prop_assert_eq!(read, Ok(case.kernel));
    }
}

/// What the interpreter leaves in a case's buffers.
fn run(case: &Case, subgroup_size: u32, races: RaceMode) -> Result<Vec<Vec<u8>>, InterpError> {
    let kernel = verify(case.kernel.clone()).unwrap_or_else(|e| panic!("{e}"));
    interpret(&kernel, case, subgroup_size, races)
}

#[test]
fn they_have_one_result() {
    let mut idle = 0;
    for config in [Config::default(), Config::full()] {
        for seed in 0..40 {
            let case = make(&config, seed);
            let watched = run(&case, 32, RaceMode::Detect);
            let one = run(&case, 32, RaceMode::Off);
            let other = run(&case, 8, RaceMode::Off);
            for result in [&watched, &one, &other] {
                if let Err(e) = result {
                    panic!("seed {seed}: {e}\n{}", case.kernel);
                }
            }
            let (one, other, watched) = (one.unwrap(), other.unwrap(), watched.unwrap());
            assert_eq!(
                mismatches(&case.kernel, &one, &other, 5),
                [],
                "seed {seed}\n{}",
                case.kernel
            );
            assert_eq!(
                mismatches(&case.kernel, &one, &watched, 5),
                [],
                "seed {seed}\n{}",
                case.kernel
            );
            idle += usize::from(one == case.args);
        }
    }
    assert!(idle < 4, "{idle} of 80 do nothing");
}

/// The passes that renderers rely on keep what kernels do, and what they make verifies.
#[test]
fn passes_keep_the_meaning() {
    // The interpreter need not compute library operators to the library's bits: their tests look after that.
    let full = Config {
        library: false,
        ..Config::full()
    };
    for config in [Config::default(), full] {
        for seed in 0..25 {
            let case = make(&config, seed);
            let verified = verify(case.kernel.clone()).unwrap();
            let expected = run(&case, 32, RaceMode::Off).unwrap();
            let explicit = make_explicit(&verified).kernel().clone();
            for (pass, kernel) in [
                ("explicit checks", explicit),
                ("library", expand_library(case.kernel.clone(), Sums::Rearranged)),
                (
                    "library of sums as written",
                    expand_library(case.kernel.clone(), Sums::AsWritten),
                ),
            ] {
                if let Err(errors) = verify(kernel.clone()) {
                    panic!("{pass}, seed {seed}: {errors}\n{kernel}");
                }
                let changed = Case {
                    kernel,
                    ..case.clone()
                };
                let found = run(&changed, 32, RaceMode::Off).unwrap();
                assert_eq!(
                    mismatches(&case.kernel, &expected, &found, 5),
                    [],
                    "{pass}, seed {seed}\n{}\n{}",
                    case.kernel,
                    changed.kernel
                );
            }
        }
    }
}

/// Where faults are allowed, some happen, nothing worse, and the same with explicit checks.
#[test]
fn some_fault_where_they_may() {
    let config = Config {
        faults: true,
        library: false,
        ..Config::full()
    };
    let mut faults = 0;
    for seed in 0..60 {
        let case = make(&config, seed);
        let verified = verify(case.kernel.clone()).unwrap();
        let explicit = Case {
            kernel: make_explicit(&verified).kernel().clone(),
            ..case.clone()
        };
        match (run(&case, 32, RaceMode::Off), run(&explicit, 32, RaceMode::Off)) {
            (Ok(one), Ok(other)) => assert_eq!(mismatches(&case.kernel, &one, &other, 5), [], "seed {seed}"),
            (Err(InterpError::Fault(one)), Err(InterpError::Fault(other))) => {
                faults += 1;
                assert_eq!(
                    (one.site.kind, one.site.line),
                    (other.site.kind, other.site.line),
                    "seed {seed}"
                );
            }
            (one, other) => panic!("seed {seed}: {:?}, explicit {:?}", one.err(), other.err()),
        }
    }
    assert!((6..55).contains(&faults), "{faults} of 60 fault");
}
