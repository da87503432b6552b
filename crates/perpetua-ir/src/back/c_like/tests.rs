//! The passes in front of the writer, against the interpreter: a kernel prepared for a target computes what it did
//! before.

#![cfg(feature = "testing")]

use super::super::{cuda_c, msl, wgsl};
use super::prepare;
use crate::interp::{Arg, BufferRef, InterpError, Interpreter, LaunchConfig};
use crate::ir::{Effect, Inst, Kernel, LocalId, Op, ParamKind, Place, Stmt, Value};
use crate::pass::Operation;
use crate::testing::{Case, Choices, Config, generate, mismatches, tape};
use crate::verify::verify;

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

fn check(config: &Config, native: &dyn Fn(&Operation) -> bool) {
    for seed in 0..COUNT {
        let tape = tape(seed, config.statements * 30);
        let case = generate(config, &mut Choices::new(&tape)).unwrap();
        let verified = verify(case.kernel.clone()).unwrap();
        let prepared = prepare(&verified, native, true);
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
    check(&config(false), &wgsl::native);
    check(&config(true), &wgsl::native);
}

#[test]
fn preparing_for_msl_keeps_the_meaning() {
    check(&config(false), &msl::native);
}

#[test]
fn preparing_for_cuda_c_keeps_the_meaning() {
    check(&config(false), &|operation| cuda_c::native(operation, false));
}
