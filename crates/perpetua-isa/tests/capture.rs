//! Kernels as programs: what is captured does what the kernel does, and what programs have nothing equal to is named.

#![allow(clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use perpetua_ir::interp::RaceMode;
use perpetua_ir::ir::{
    Access, Axis, Base, DeviceOp, Effect, KernelBuilder, MemOrder, Op, ParamKind, Place, Scalar, Scope, Step,
    Sync, Type, TypeError,
};
use perpetua_ir::ops::BinaryOp;
use perpetua_ir::testing::{Case, Choices, Config, generate, interpret, mismatches, tape};
use perpetua_ir::verify::verify as verify_kernel;
use perpetua_isa::lower::{Options, lower};
use perpetua_isa::verify::verify;
use perpetua_isa::{Error, Program, capture};

// The case of the program that a kernel was captured as: buffers first.
fn of_program(case: &Case, kernel: perpetua_ir::ir::Kernel) -> Case {
    let is_buffer = |i: &usize| matches!(case.kernel.params[*i].kind, ParamKind::Buffer { .. });
    let order = order(case, is_buffer);
    Case {
        kernel,
        args: order.iter().map(|i| case.args[*i].clone()).collect(),
        ..case.clone()
    }
}

fn order(case: &Case, is_buffer: impl Fn(&usize) -> bool) -> Vec<usize> {
    let (buffers, values): (Vec<usize>, Vec<usize>) = (0..case.args.len()).partition(is_buffer);
    buffers.into_iter().chain(values).collect()
}

/// How many generated kernels are captured, and why others are not.
#[derive(Default)]
struct Tally {
    captured: usize,
    refused: BTreeMap<&'static str, usize>,
}

fn same(case: &Case, tally: &mut Tally) {
    let kernel = verify_kernel(case.kernel.clone()).expect("a kernel");
    let program = match capture(&kernel) {
        Ok(program) => program,
        Err(Error::Capture(error)) => {
            assert!(!error.what.is_empty() && error.kernel == case.kernel.name);
            *tally.refused.entry(error.why).or_default() += 1;
            return;
        }
        Err(error) => panic!("{error}\n{}", kernel.kernel()),
    };
    // All its forms are one.
    assert!(
        Program::decode(&program.encode()).as_ref() == Ok(&program),
        "{program}"
    );
    let text = program.to_string();
    let again: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(again.stripped() == program.clone().stripped(), "{text}");

    let lowered = verify(&program).and_then(|verified| lower(&verified, Options::default()));
    let lowered = lowered.unwrap_or_else(|error| panic!("{error}\n{program}"));
    let expected = interpret(&kernel, case, 32, RaceMode::Off).expect("a run");
    let own = of_program(case, lowered.kernel().clone());
    let found = interpret(&lowered, &own, 32, RaceMode::Off);
    let found = found.unwrap_or_else(|error| panic!("{error}\n{program}"));
    let is_buffer = |i: &usize| matches!(case.kernel.params[*i].kind, ParamKind::Buffer { .. });
    let expected: Vec<Vec<u8>> = order(case, is_buffer)
        .into_iter()
        .map(|i| expected[i].clone())
        .collect();
    let wrong = mismatches(lowered.kernel(), &expected, &found, 3);
    assert!(wrong.is_empty(), "{wrong:?}\n{}\n{program}", kernel.kernel());
    tally.captured += 1;
}

fn generated(config: &Config, seeds: std::ops::Range<u64>) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let tape = tape(seed, 4000);
        let case = generate(config, &mut Choices::new(&tape)).expect("a case");
        same(&case, &mut tally);
    }
    tally
}

#[test]
fn generated_kernels_run_equal() {
    let config = Config {
        int64: true,
        float64: true,
        library: true,
        atomic64: true,
        buffers: 3,
        ..Config::default()
    };
    for (statements, seeds, least) in [(8, 0..400, 150), (40, 400..500, 20)] {
        let config = Config {
            statements,
            ..config.clone()
        };
        let tally = generated(&config, seeds);
        eprintln!("captured {}; refused {:#?}", tally.captured, tally.refused);
        assert!(tally.captured >= least, "{}", tally.captured);
    }
}

type Built = Result<(), TypeError>;

fn refused(build: impl FnOnce(&mut KernelBuilder, Base) -> Built) -> String {
    let mut k = KernelBuilder::new("refused");
    k.set_source("refused.rs");
    k.set_line(7);
    let x = k.buffer("x", Type::U32, Access::ReadWrite);
    build(&mut k, x).expect("well typed");
    let kernel = verify_kernel(k.finish()).expect("a kernel");
    match capture(&kernel) {
        Err(Error::Capture(error)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_has_no_equal_is_named() {
    let acquire = Sync {
        order: MemOrder::Acquire,
        scope: Scope::System,
    };
    let cases = [
        (
            "a buffer",
            refused(|k, _| {
                k.buffer("pairs", Type::array(Type::F32, 2), Access::Read);
                Ok(())
            }),
            "the buffer `pairs` of [f32; 2]",
        ),
        (
            "a flag",
            refused(|k, _| {
                k.param("flag", Type::BOOL);
                Ok(())
            }),
            "the parameter `flag` of bool",
        ),
        (
            "dynamic memory",
            refused(|k, _| {
                k.dynamic_shared("room", Type::F32);
                Ok(())
            }),
            "the shared variable `room`",
        ),
        (
            "order",
            refused(|k, x| {
                let zero = k.u32(0);
                k.op(Op::Load(Place::element(x, zero), Some(acquire)))?;
                Ok(())
            }),
            "line 7: an ordered load",
        ),
        (
            "a clock",
            refused(|k, _| k.op(Op::Device(DeviceOp::Clock, Vec::new())).map(|_| ())),
            "clock",
        ),
        (
            "a fault",
            refused(|k, _| k.effect(Effect::Fault(perpetua_ir::ir::FaultKind::Unreachable, Vec::new()))),
            "the fault `unreachable`",
        ),
        (
            "an array",
            refused(|k, x| {
                let own = k.local("own", Type::array(Type::U32, 4));
                let zero = k.op(Op::Zero(Type::array(Type::U32, 4)))?;
                k.store(Place::local(own), zero)?;
                let i = k.global_id(Axis::X)?;
                let v = k.load(Place::local(own).step(Step::Index(i)))?;
                let at = k.u32(0);
                k.store(Place::element(x, at), v)
            }),
            "with an index that varies",
        ),
        (
            "too much at once",
            refused(|k, x| {
                let mut all = Vec::new();
                for i in 0..300 {
                    let at = k.u32(i);
                    all.push(k.load(Place::element(x, at))?);
                }
                let mut sum = k.u32(0);
                for v in all.into_iter().rev() {
                    sum = k.binary(BinaryOp::Add, sum, v)?;
                }
                let at = k.u32(0);
                k.store(Place::element(x, at), sum)
            }),
            "more than 252 registers",
        ),
    ];
    for (what, message, part) in cases {
        assert!(message.contains(part), "{what}: {message}");
    }
}

#[test]
fn names_that_are_registers_get_another() {
    let mut k = KernelBuilder::new("named");
    let x = k.buffer("r1", Type::F32, Access::ReadWrite);
    let a = k.param("p3", Scalar::F32.into());
    let zero = k.u32(0);
    k.store(Place::element(x, zero), a).expect("typed");
    let program = capture(&verify_kernel(k.finish()).expect("a kernel")).expect("a program");
    assert_eq!(program.memories[0].name, "r1_");
    assert_eq!(program.parameters[0].name, "p3_");
}
