//! Cells of control flow: kernels that take it to its limits, and kernels that fault in hard places. Each is compared with
//! the interpreter; a fault must come from the kernel, line and lane that the interpreter gives, with its operands.

use perpetua_cpu::interp::{InterpError, RaceMode};
use perpetua_cpu::testing::{Case, Random, interpret, random_bytes};
use perpetua_ir::fault::Fault;
use perpetua_ir::front::rust::{Instantiation, kernels_in_file, lower};
use perpetua_ir::ir::{FaultKind, Kernel, ParamKind, Scalar, Type};
use perpetua_ir::verify::verify;

use super::generated::{SUBGROUP, compare, run};
use super::{Cell, Check, Failure, Need, same};
use crate::device::Device;
use crate::error::Error;

const PROGRAMS: &str = include_str!("programs/control.rs");
const FAULTS: &str = include_str!("programs/faults.rs");
const TURNS: &str = include_str!("programs/turns.rs");

const KERNELS: [&str; 12] = [
    "labels",
    "valued",
    "arms",
    "short_circuit",
    "deep",
    "limits",
    "wrapping",
    "barriers",
    "returns",
    "calls",
    "by_turns",
    "counted",
];

const PLACES: [&str; 9] = [
    "nested_loops",
    "long_loop",
    "before_barrier",
    "loop_with_barriers",
    "open_loop_with_barriers",
    "in_function",
    "in_conditions",
    "loop_that_waits_for_all",
    "before_loop_that_asks",
];

/// Kernels of [`TURNS`].
const LONG: [&str; 5] = ["one", "nested", "returns", "in_a_function", "barriers"];

/// The launch of every kernel here.
const GRID: [u32; 3] = [3, 1, 1];
const BLOCK: [u32; 3] = [64, 1, 1];
const LANES: usize = 192;

/// Random inputs that each kernel of [`PROGRAMS`] is run on.
const ROUNDS: u64 = 3;

/// Each kind of fault, as an expression of type `u32` that faults where `bad` holds.
const KINDS: [(FaultKind, &str); 6] = [
    (
        FaultKind::IndexOutOfBounds,
        "x[if bad { 1000 + t as usize } else { t as usize }]",
    ),
    (
        FaultKind::DivisionByZero,
        "((100 + t) / (if bad { 0 } else { 1 }))",
    ),
    (
        FaultKind::DivisionOverflow,
        "((i32::MIN % (if bad { -1 } else { 3 })) as u32)",
    ),
    (
        FaultKind::UnreachableEnum,
        "(match e[bad as usize] { Turn::Left => 10 + t, Turn::Right => 20 })",
    ),
    (
        FaultKind::Unreachable,
        "(if bad { unreachable!() } else { 30 + t })",
    ),
    (
        FaultKind::ZeroStep,
        "({ let mut n = t; for i in (0..9u32).step_by(if bad { 0 } else { 4 }) { n += i; } n })",
    ),
];

pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for kernel in KERNELS {
        cells.push(Cell::new(format!("control/{kernel}"), move |d| {
            agrees(d, PROGRAMS, kernel)
        }));
    }
    cells.push(Cell::new("control/many checks".to_owned(), |d| {
        agrees(d, &many_checks(), "many_checks")
    }));
    for (kind, expression) in KINDS {
        for place in PLACES {
            let name = format!("control/{} in {place}", kind.name());
            cells.push(Cell::new(name, move |d| faults(d, kind, expression, place)));
        }
    }
    for kernel in LONG {
        cells.push(Cell::new(format!("control/many turns, {kernel}"), move |d| {
            takes_all_turns(d, kernel)
        }));
    }
    cells.into_iter().map(|c| c.needs(Need::Compute)).collect()
}

// A kernel of a text, for a device.
pub(super) fn kernel(device: &Device, text: &str, file: &str, name: &str) -> Result<Kernel, Failure> {
    let wrong = |what: String| Failure(format!("kernel `{name}`: {what}"));
    let kernels = kernels_in_file(text, file).map_err(|e| wrong(e.to_string()))?;
    let found = kernels.into_iter().find(|kernel| kernel.name == name);
    let found = found.ok_or_else(|| wrong("it is not in the text".into()))?;
    let how = Instantiation {
        pointer_width: device.info().pointer_width(),
        ..found.how
    };
    lower(&found.function, &how).map_err(|e| wrong(e.to_string()))
}

// Straight code with more accesses to check than any program of these cells.
fn many_checks() -> String {
    let accesses: String = (0..200)
        .map(|k| format!("    sum = sum.wrapping_mul(5) ^ x[((sum ^ {k}) % 191) as usize];\n"))
        .collect();
    format!(
        "#[kernel]\nfn many_checks(x: &[u32], y: &mut [u32]) {{\n    let i = global_id_x();\n    let mut sum = x[i];\n{accesses}    y[i] = sum;\n}}\n"
    )
}

fn agrees(device: &Device, text: &str, name: &str) -> Check {
    let kernel = kernel(device, text, "control.rs", name)?;
    for round in 0..ROUNDS {
        let mut random = Random::new(round);
        let args = kernel.params.iter().map(|param| match &param.kind {
            ParamKind::Buffer { element, .. } => random_bytes(element, LANES, &mut random),
            ParamKind::Value(ty) => random_bytes(ty, 1, &mut random),
        });
        let case = Case {
            args: args.collect(),
            kernel: kernel.clone(),
            grid: GRID,
            block: BLOCK,
            dynamic_shared: 0,
        };
        match compare(device, &case) {
            Ok(None) => {}
            Ok(Some(fault)) => return Err(Failure(format!("round {round}: {fault}"))),
            Err(why) => return Err(Failure(format!("round {round}: {}", why.text))),
        }
    }
    Ok(())
}

// A launch of a faulting kernel in which only lane `only` faults, or every odd one if that is `u32::MAX`.
fn case(kernel: &Kernel, only: u32) -> Case {
    let args = kernel.params.iter().map(|param| match &param.kind {
        ParamKind::Buffer {
            element: Type::Scalar(Scalar::U8),
            ..
        } => vec![0, 7],
        ParamKind::Buffer { element, .. } => vec![0; LANES * element.size() as usize],
        ParamKind::Value(_) => only.to_le_bytes().to_vec(),
    });
    Case {
        args: args.collect(),
        kernel: kernel.clone(),
        grid: GRID,
        block: BLOCK,
        dynamic_shared: 0,
    }
}

// The fault that the interpreter reports when only lane `only` may fault.
fn expected(kernel: &Kernel, only: u32) -> Result<Fault, Failure> {
    let verified = verify(kernel.clone()).map_err(|e| Failure(e.to_string()))?;
    match interpret(&verified, &case(kernel, only), SUBGROUP, RaceMode::Off) {
        Err(InterpError::Fault(fault)) => Ok(*fault),
        Err(other) => Err(Failure(format!("the interpreter refuses the kernel: {other}"))),
        Ok(_) => Err(Failure(format!("lane {only} does not fault in the interpreter"))),
    }
}

fn faults(device: &Device, kind: FaultKind, expression: &str, place: &str) -> Check {
    let text = FAULTS.replace("FAULT", expression);
    let kernel = kernel(device, &text, "faults.rs", place)?;
    // Every odd lane, one lane of them, one that is even, none.
    for only in [u32::MAX, 77, 128] {
        let what = format!("faulting lane {}", only as i32);
        let found = match run(device, &case(&kernel, only)) {
            Err(Error::Fault(fault)) => *fault,
            Err(other) => return Err(Failure(format!("{what}: the wrong error: {other}"))),
            Ok(_) => return Err(Failure(format!("{what}: no fault was reported"))),
        };
        // Which of many lanes is reported, nobody promises: the interpreter tells what that one says alone.
        let lane = found.block[0] * BLOCK[0] + found.thread[0];
        let right = match only {
            u32::MAX => lane % 2 == 1,
            one => lane == one,
        };
        if !right {
            return Err(Failure(format!("{what}: lane {lane} is reported: {found}")));
        }
        same(&what, &found, &expected(&kernel, lane)?)?;
        same(&format!("{what}: kind"), found.site.kind, kind)?;
    }
    let none = run(device, &case(&kernel, LANES as u32));
    none.map(drop)
        .map_err(|e| Failure(format!("no lane faults: {e}")))
}

// Loops take all their turns, or, where the driver is known to end them, the launch says so.
fn takes_all_turns(device: &Device, name: &str) -> Check {
    let kernel = kernel(device, TURNS, "turns.rs", name)?;
    let allowed = device.info().limits.max_loop_turns;
    for turns in [1000u32, 80_000] {
        let case = Case {
            args: vec![turns.to_le_bytes().to_vec(), vec![0; LANES * 4]],
            kernel: kernel.clone(),
            grid: GRID,
            block: BLOCK,
            dynamic_shared: 0,
        };
        match run(device, &case) {
            Err(Error::Fault(fault))
                if fault.site.kind == FaultKind::LoopCut && allowed.is_some_and(|n| n < turns) => {}
            Err(other) => return Err(Failure(format!("{turns} turns: {other}"))),
            Ok(buffers) => {
                let words = |out: &Vec<u8>| {
                    out.chunks_exact(4)
                        .map(|w| [w[0], w[1], w[2], w[3]])
                        .map(u32::from_le_bytes)
                        .collect()
                };
                let counted: Option<Vec<u32>> = buffers.last().map(words);
                same(&format!("{turns} turns"), counted, Some(vec![turns; LANES]))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_of_the_texts_has_its_cells() {
        let check = |text: &str, names: &[&str]| {
            let kernels = kernels_in_file(text, "text.rs").unwrap();
            let found: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
            assert_eq!(found, names);
        };
        check(PROGRAMS, &KERNELS);
        check(&FAULTS.replace("FAULT", "1"), &PLACES);
        check(TURNS, &LONG);
    }
}
