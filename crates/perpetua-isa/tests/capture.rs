//! Kernels as programs: what is captured does what the kernel does, and what programs have nothing equal to is named.

#![allow(clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use perpetua_cpu::interp::RaceMode;
use perpetua_cpu::testing::{Case, Choices, Config, generate, interpret, mismatches, tape};
use perpetua_ir::front::rust::{kernels_in_file, lower as lower_kernel};
use perpetua_ir::ir::{
    Access, Axis, Base, DeviceOp, Effect, KernelBuilder, MemOrder, Op, ParamKind, Place, Scalar, Scope, Step,
    Sync, Type, TypeError,
};
use perpetua_ir::ops::BinaryOp;
use perpetua_ir::verify::verify as verify_kernel;
use perpetua_isa::lower::{Options, lower};
use perpetua_isa::verify::verify;
use perpetua_isa::{Error, Program, capture};

// The case of the program that a kernel was captured as: buffers first, and each number of a value by itself.
fn of_program(case: &Case, kernel: perpetua_ir::ir::Kernel) -> Case {
    let is_buffer = |i: &usize| matches!(case.kernel.params[*i].kind, ParamKind::Buffer { .. });
    let arguments = order(case, is_buffer).into_iter().flat_map(|i| {
        let bytes = &case.args[i];
        match &case.kernel.params[i].kind {
            ParamKind::Buffer { .. } => vec![bytes.clone()],
            ParamKind::Value(ty) => {
                let numbers = ty.leaves().into_iter();
                numbers
                    .map(|(ty, at)| bytes[at as usize..][..ty.size() as usize].to_vec())
                    .collect()
            }
        }
    });
    Case {
        kernel,
        args: arguments.collect(),
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
    let expected = Case {
        args: expected,
        ..case.clone()
    };
    let expected = of_program(&expected, lowered.kernel().clone()).args;
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
            "flags",
            refused(|k, _| {
                k.buffer("flags", Type::BOOL, Access::Read);
                Ok(())
            }),
            "refused: the buffer `flags` of bool",
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
            refused(|k, _| k.effect(Effect::fault(perpetua_ir::ir::FaultKind::Unreachable, Vec::new()))),
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

// A kernel of Rust's text, as a program and as it is, on the same arguments.
fn same_as_text(text: &str, args: Vec<Vec<u8>>) -> Program {
    let found = kernels_in_file(text, "k.rs").unwrap_or_else(|error| panic!("{error}"));
    let kernel = lower_kernel(&found[0].function, &found[0].how).unwrap_or_else(|error| panic!("{error}"));
    let case = Case {
        kernel: kernel.clone(),
        args,
        grid: [2, 1, 1],
        block: [64, 1, 1],
        dynamic_shared: 0,
    };
    let mut tally = Tally::default();
    same(&case, &mut tally);
    assert_eq!(tally.captured, 1, "{:?}", tally.refused);
    capture(&verify_kernel(kernel).expect("a kernel")).expect("a program")
}

#[test]
fn parameters_of_several_numbers_are_several_parameters() {
    let text = "
#[derive(GpuType, Clone, Copy)]
#[repr(C)]
struct View { zoom: f32, on: bool, at: [i32; 2] }

#[kernel]
fn look(out: &mut [f32], view: View, twice: bool, n: u32) {
    let i = global_id_x();
    let mut v = view.zoom * n as f32 + (view.at[0] - view.at[1]) as f32;
    if view.on { v += 0.5; }
    if twice { v *= 2.0; }
    if i < out.len() { out[i] = v; }
}";
    let mut view = 1.5f32.to_le_bytes().to_vec();
    view.extend([1, 0, 0, 0]);
    view.extend(7i32.to_le_bytes());
    view.extend((-2i32).to_le_bytes());
    for twice in [0, 1] {
        let args = vec![
            vec![0; 4 * 128],
            view.clone(),
            vec![twice],
            3u32.to_le_bytes().to_vec(),
        ];
        let program = same_as_text(text, args);
        let names: Vec<String> = program
            .parameters
            .iter()
            .map(|p| format!("{} {}", p.name, p.ty))
            .collect();
        assert_eq!(
            names,
            [
                "view_zoom f32",
                "view_on u8",
                "view_at_0 i32",
                "view_at_1 i32",
                "twice u8",
                "n u32"
            ]
        );
    }
}

/// What decides whether all lanes come to a barrier crosses from block to block as what differs between lanes does, perhaps in one
/// register after the other.
#[test]
fn barriers_may_depend_on_what_shares_a_register() {
    let text = "
#[kernel]
fn shares(out: &mut [u32], meet: bool, n: u32) {
    let tile = shared_array::<[u32; 64]>();
    let t = local_id_x() as u32;
    let odd = t % 2 == 1;
    let mut v = t;
    if t > 5 { v += 1; }
    if odd { v += 10; }
    if t < 3 { v += 2; }
    let many = n > 3;
    if t > 9 { v ^= 1; }
    tile[t as usize] = v;
    if many {
        sync_threads();
        v = tile[63 - t as usize];
    }
    if t == 7 { v += 3; }
    if meet {
        sync_threads();
        tile[t as usize] = v;
        sync_threads();
        v += tile[t as usize ^ 1];
    }
    out[global_id_x()] = v;
}";
    for (meet, n) in [(0, 2u32), (1, 2), (0, 9), (1, 9)] {
        let args = vec![vec![0; 4 * 128], vec![meet], n.to_le_bytes().to_vec()];
        same_as_text(text, args);
    }
}
