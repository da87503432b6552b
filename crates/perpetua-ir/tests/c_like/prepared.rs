//! The passes in front of the writer, against the interpreter: a kernel prepared for a target computes what it did
//! before.

use perpetua_cpu::interp::{Arg, BufferRef, InterpError, Interpreter, LaunchConfig};
use perpetua_cpu::testing::{Case, Choices, Config, generate, mismatches, tape};
use perpetua_ir::back::prepared::{Dialect, prepare};
use perpetua_ir::ir::{
    Access, Axis, Builtin, Effect, Inst, Kernel, KernelBuilder, LocalId, Op, ParamKind, Place, Scalar, Stmt,
    Value,
};
use perpetua_ir::ops::eval::{eval_binary, eval_cast, eval_ternary};
use perpetua_ir::ops::{BinaryOp, TernaryOp};
use perpetua_ir::pass::Operation;
use perpetua_ir::verify::verify;

/// Kernels for each target.
const COUNT: u64 = 150;

/// What a launch leaves in the arguments; `None` if it faults.
fn launch(interpreter: &Interpreter, case: &Case) -> Option<Vec<Vec<u8>>> {
    const ALIGN: usize = 256;
    let mut memory: Vec<Vec<u8>> = case.args.iter().map(|a| vec![0; a.len() + ALIGN]).collect();
    let mut slices: Vec<&mut [u8]> = Vec::new();
    for (memory, arg) in memory.iter_mut().zip(&case.args) {
        let start = memory.as_ptr().align_offset(ALIGN);
        let slice = &mut memory[start..start + arg.len()];
        slice.copy_from_slice(arg);
        slices.push(slice);
    }
    let args: Vec<Arg<'_>> = slices
        .iter_mut()
        .zip(&case.kernel.params)
        .map(|(bytes, param)| match param.kind {
            ParamKind::Buffer { .. } => Arg::Buffer(BufferRef::from_slice(bytes)),
            ParamKind::Value(_) => Arg::Value(bytes),
        })
        .collect();
    let launched = interpreter.launch(&LaunchConfig {
        dynamic_shared_bytes: case.dynamic_shared,
        ..LaunchConfig::new(case.grid, case.block, &args)
    });
    match launched {
        Ok(()) => Some(slices.into_iter().map(|s| s.to_vec()).collect()),
        Err(InterpError::Fault(_)) => None,
        Err(e) => panic!("{e}\n{}", case.kernel),
    }
}

/// Stores zeros in every variable at the start. A flag that stands for an exit hides from the verifier what the exit
/// assigned.
fn assign_all(kernel: &mut Kernel) {
    let functions = kernel.functions.iter_mut().map(|f| &mut f.body);
    for body in functions.chain([&mut kernel.body]) {
        let mut start = Vec::new();
        for (i, local) in body.locals.iter().enumerate() {
            let zero = Value(body.values.len() as u32);
            body.values.push(local.ty.clone());
            let place = Place::local(LocalId(i as u32));
            start.push(Inst::Let(zero, Op::Zero(local.ty.clone())));
            start.push(Inst::Do(Effect::Store(place, zero, None)));
        }
        let start = start.into_iter().map(|inst| Stmt { line: 0, inst });
        body.block.0.splice(0..0, start);
    }
}

fn check(config: &Config, own: fn(&Operation) -> bool, dialect: Dialect) {
    for seed in 0..COUNT {
        let tape = tape(seed, config.statements * 30);
        let case = generate(config, &mut Choices::new(&tape)).unwrap();
        let verified = verify(case.kernel.clone()).unwrap();
        let prepared = prepare(&verified, &own, dialect);
        let text = prepared.kernel.to_string();
        let context = || format!("seed {seed}\n{}\nprepared:\n{text}", case.kernel);
        for body in prepared
            .kernel
            .functions
            .iter()
            .map(|f| &f.body)
            .chain([&prepared.kernel.body])
        {
            body.block.walk(&mut |stmt| {
                // Nothing reaches beyond the innermost loop, and the labelled body of a counting one.
                assert!(
                    !matches!(stmt.inst, Inst::Break(d) | Inst::Continue(d) if d > 1),
                    "{}",
                    context()
                );
            });
        }
        let mut kernel = prepared.kernel;
        assign_all(&mut kernel);
        let after = verify(kernel).unwrap_or_else(|e| panic!("{e}\n{}", context()));
        let before = launch(&Interpreter::new(&verified).unwrap(), &case);
        let after = launch(&Interpreter::with_sites(&after, &prepared.faults).unwrap(), &case);
        let (before, after) = match (before, after) {
            (Some(before), Some(after)) => (before, after),
            (before, after) => {
                assert_eq!(before.is_none(), after.is_none(), "{}", context());
                continue;
            }
        };
        let wrong = mismatches(&case.kernel, &before, &after, 5);
        assert!(wrong.is_empty(), "{wrong:?}\n{}", context());
    }
}

fn all(_: &Operation) -> bool {
    true
}

fn without_fma(operation: &Operation) -> bool {
    !matches!(operation, Operation::Ternary(TernaryOp::Fma, _))
}

/// Rows of three operands, one behind the other: all threes of numbers at the edges, and sums in which the product nearly cancels.
fn rows(s: Scalar) -> Vec<u64> {
    let (mantissa, bias) = if s == Scalar::F64 {
        (52, 1023u64)
    } else {
        (23, 127)
    };
    let (sign, one) = (1u64 << (s.bits() - 1), bias << mantissa);
    let edges = [
        0,
        1,
        (1 << mantissa) - 1,
        1 << mantissa,
        (1 << mantissa) + 1,
        one,
        one + 1,
        one - 1,
        (bias / 2) << mantissa,
        ((bias / 2 + 12) << mantissa) + 12345,
        ((2 * bias) << mantissa) + 7,
        ((2 * bias + 1) << mantissa) - 1,
        (2 * bias + 1) << mantissa,
        ((2 * bias + 1) << mantissa) + 5,
    ];
    let signed = edges
        .iter()
        .flat_map(|bits| [*bits, bits | sign])
        .collect::<Vec<u64>>();
    let mut rows = Vec::new();
    for x in &signed {
        for y in &signed {
            rows.extend(signed.iter().flat_map(|z| [*x, *y, *z]));
        }
    }
    let mut state = 7u64;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) ^ (state << 40)
    };
    let infinity = (2 * bias + 1) << mantissa;
    for i in 0..6_000 {
        let mut number = |spread: u64| {
            let exponent = bias - spread / 2 + random() % spread.max(1);
            (random() & sign) | exponent << mantissa | random() & ((1 << mantissa) - 1)
        };
        let spread = [2, 30, bias, 2 * bias - 2][i % 4];
        let (x, y) = (number(spread), number(spread));
        let product = eval_binary(BinaryOp::Mul, s, x, y).unwrap() ^ sign;
        let z = match i % 3 {
            0 => number(spread),
            // Some steps beside the product, or far below it.
            _ if product & (sign - 1) < infinity => product.wrapping_add(random() % 5).wrapping_sub(2),
            _ => number(2),
        };
        rows.extend([x, y, z]);
    }
    rows
}

#[test]
fn fma_by_integers_rounds_once() {
    for s in [Scalar::F32, Scalar::F64] {
        let rows = rows(s);
        let lanes = rows.len() as u32 / 3;
        let mut k = KernelBuilder::new("rows");
        let (x, y) = (
            k.buffer("x", s.into(), Access::Read),
            k.buffer("y", s.into(), Access::ReadWrite),
        );
        let [block, size, lane] = [
            Builtin::BlockIdx(Axis::X),
            Builtin::BlockDim(Axis::X),
            Builtin::ThreadIdx(Axis::X),
        ]
        .map(|builtin| k.builtin(builtin));
        let start = k.binary(BinaryOp::Mul, block, size).unwrap();
        let lane = k.binary(BinaryOp::Add, start, lane).unwrap();
        let three = k.u32(3);
        let first = k.binary(BinaryOp::Mul, lane, three).unwrap();
        let operands = [0, 1, 2].map(|i| {
            let i = k.u32(i);
            let at = k.binary(BinaryOp::Add, first, i).unwrap();
            k.load(Place::element(x, at)).unwrap()
        });
        let [a, b, c] = operands;
        let result = k.ternary(TernaryOp::Fma, a, b, c).unwrap();
        k.store(Place::element(y, lane), result).unwrap();
        let verified = verify(k.finish()).unwrap();
        let prepared = prepare(&verified, &without_fma, Dialect::Wgsl);
        prepared.kernel.functions.iter().for_each(|function| {
            function.body.block.walk(&mut |stmt| {
                assert!(!matches!(
                    stmt.inst,
                    Inst::Let(_, Op::Ternary(TernaryOp::Fma, ..))
                ));
            });
        });
        let kernel = verify(prepared.kernel).unwrap_or_else(|error| panic!("{error}"));
        let size = s.size() as usize;
        let mut bytes: Vec<u8> = rows
            .iter()
            .flat_map(|bits| bits.to_le_bytes()[..size].to_vec())
            .collect();
        let mut found = vec![0u8; lanes as usize * size];
        Interpreter::with_sites(&kernel, &prepared.faults)
            .unwrap()
            .launch(&LaunchConfig::new(
                [lanes, 1, 1],
                [1, 1, 1],
                &[
                    Arg::Buffer(BufferRef::from_slice(&mut bytes)),
                    Arg::Buffer(BufferRef::from_slice(&mut found)),
                ],
            ))
            .unwrap();
        for (row, found) in rows.chunks(3).zip(found.chunks(size)) {
            let expected = eval_ternary(TernaryOp::Fma, s, row[0], row[1], row[2]);
            let mut word = [0; 8];
            word[..size].copy_from_slice(found);
            let found = u64::from_le_bytes(word);
            let is_nan = |bits| f64::from_bits(eval_cast(s, Scalar::F64, bits)).is_nan();
            assert!(
                found == expected || is_nan(found) && is_nan(expected),
                "{s} {row:x?}: {found:x}, not {expected:x}"
            );
        }
    }
}

/// Library operators are computed by std here and by the library there, for now to other last bits.
fn config(faults: bool) -> Config {
    Config {
        library: false,
        faults,
        ..Config::full()
    }
}

#[test]
fn preparing_for_wgsl_keeps_the_meaning() {
    check(&config(false), all, Dialect::Wgsl);
    check(&config(true), all, Dialect::Wgsl);
    check(&config(false), without_fma, Dialect::Wgsl);
}

#[test]
fn preparing_for_msl_keeps_the_meaning() {
    check(&config(false), all, Dialect::Msl);
}

#[test]
fn preparing_for_cuda_c_keeps_the_meaning() {
    check(&config(false), all, Dialect::CudaC);
}
