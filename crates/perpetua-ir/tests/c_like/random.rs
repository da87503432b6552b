//! Generated kernels through every C-like target.

use crate::{metal, naga_and_tint, nvrtc, verified, wgsl_targets};
use perpetua_cpu::interp::{Arg, BufferRef, InterpError, Interpreter, LaunchConfig};
use perpetua_cpu::testing::{Case, Choices, Config, generate, minimise_kernel, mismatches, tape};
use perpetua_ir::back::{ArgsLayout, CudaAbi, Target, render};
use perpetua_ir::ir::ParamKind;
use perpetua_vendor_tools::MslProgram;
use perpetua_vendor_tools::msl::{LaneOrder, MslLaunch};

/// Kernels of each kind.
const COUNT: u64 = 100;

pub(crate) fn make(config: &Config, seed: u64) -> Case {
    let tape = tape(seed, config.statements * 30);
    generate(config, &mut Choices::new(&tape)).unwrap()
}

fn wgsl(case: &Case, target: &Target) -> Target {
    let Target::Wgsl { capabilities, .. } = target else {
        return target.clone();
    };
    Target::Wgsl {
        capabilities: capabilities.clone(),
        block: case.block,
        dynamic_shared: case.dynamic_shared,
        distinct: false,
        exact_fma: true,
    }
}

fn run(config: &Config, faults: bool, f: impl Fn(u64, &Case)) {
    let config = Config {
        faults,
        ..config.clone()
    };
    for seed in 0..COUNT {
        f(seed, &make(&config, seed));
    }
}

#[test]
fn cuda_c_compiles() {
    for faults in [false, true] {
        run(&Config::full(), faults, |seed, case| {
            let kernel = verified(case.kernel.clone());
            let target = Target::CudaC {
                abi: CudaAbi::Checked,
            };
            let source = render(&kernel, &target).unwrap();
            nvrtc(&format!("seed {seed}"), &source.text, &["sm_75"]);
        });
    }
}

#[test]
fn wgsl_compiles() {
    let [browser, naga] = wgsl_targets();
    let with_64 = Config {
        ordering: false,
        ..Config::full()
    };
    for faults in [false, true] {
        run(&Config::default(), faults, |seed, case| {
            let mut kernel = case.kernel.clone();
            kernel.pointer_width = 32;
            let source = render(&verified(kernel), &wgsl(case, &browser)).unwrap();
            naga_and_tint(&format!("seed {seed}"), &source.text);
        });
        run(&with_64, faults, |seed, case| {
            let source = render(&verified(case.kernel.clone()), &wgsl(case, &naga)).unwrap();
            naga_and_tint(&format!("seed {seed}"), &source.text);
        });
    }
}

/// The buffers of an MSL launch of a case, hidden ones included.
fn buffers(case: &Case) -> Vec<Vec<u8>> {
    let kernel = &case.kernel;
    let layout = ArgsLayout::of(kernel);
    let mut args = vec![0u8; layout.words as usize * 4];
    let mut put = |word: u32, bytes: &[u8]| {
        let at = word as usize * 4;
        args[at..at + bytes.len()].copy_from_slice(bytes);
    };
    for (axis, n) in case.grid.iter().enumerate() {
        put(ArgsLayout::GRID + axis as u32, &n.to_le_bytes());
    }
    let mut buffers = Vec::new();
    for (i, (param, bytes)) in kernel.params.iter().zip(&case.args).enumerate() {
        match &param.kind {
            ParamKind::Buffer { .. } => {
                put(
                    layout.params[i],
                    &(case.elements(i).unwrap() as u32).to_le_bytes(),
                );
                buffers.push(bytes.clone());
            }
            ParamKind::Value(_) => put(layout.params[i], bytes),
        }
    }
    if let Some(word) = layout.dynamic_shared {
        put(word, &case.dynamic_shared.to_le_bytes());
    }
    buffers.push(args);
    buffers.push(vec![0; 64]);
    buffers
}

/// What the interpreter leaves in the buffers; `None` if it reports a fault.
fn reference(case: &Case) -> Option<Vec<Vec<u8>>> {
    // Buffers are aligned for any element.
    const ALIGN: usize = 256;
    let mut memory: Vec<Vec<u8>> = case.args.iter().map(|a| vec![0; a.len() + ALIGN]).collect();
    let mut slices: Vec<&mut [u8]> = Vec::new();
    for (memory, arg) in memory.iter_mut().zip(&case.args) {
        let start = memory.as_ptr().align_offset(ALIGN);
        let slice = &mut memory[start..start + arg.len()];
        slice.copy_from_slice(arg);
        slices.push(slice);
    }
    let kinds = case.kernel.params.iter().map(|p| &p.kind);
    let args: Vec<Arg<'_>> = slices
        .iter_mut()
        .zip(kinds)
        .map(|(bytes, kind)| match kind {
            ParamKind::Buffer { .. } => Arg::Buffer(BufferRef::from_slice(bytes)),
            ParamKind::Value(_) => Arg::Value(bytes),
        })
        .collect();
    let interpreter = Interpreter::new(&verified(case.kernel.clone())).unwrap();
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

/// Runs them too: what is undefined in C++ is found where it happens, and the numbers are the interpreter's.
#[test]
fn msl_runs_as_the_interpreter() {
    let config = Config {
        float64: false,
        atomic64: false,
        library: false,
        ordering: false,
        ..Config::full()
    };
    let both: &[LaneOrder] = &[LaneOrder::Ascending, LaneOrder::Descending];
    for (faults, orders) in [(false, both), (true, &both[..1])] {
        run(&config, faults, |seed, case| {
            if difference(case, orders).is_none() {
                return;
            }
            let smallest = minimise_kernel(case, 200, |case| difference(case, orders).is_some());
            let source = render(&verified(smallest.kernel.clone()), &Target::Msl).unwrap();
            panic!(
                "seed {seed}: {}\n{}\n{}",
                difference(&smallest, orders).unwrap_or_default(),
                source.text,
                smallest.kernel
            );
        });
    }
}

/// What a run of a case on MSL, its lanes in one of `orders`, does otherwise than the interpreter.
fn difference(case: &Case, orders: &[LaneOrder]) -> Option<String> {
    let source = render(&verified(case.kernel.clone()), &Target::Msl).unwrap();
    // Compiling takes nearly all of the time.
    let program = metal(&source.entry, &source.entry, &source.text)?;
    let expected = reference(case);
    orders
        .iter()
        .find_map(|order| run_difference(case, &program, expected.as_deref(), *order))
}

fn run_difference(
    case: &Case,
    program: &MslProgram,
    expected: Option<&[Vec<u8>]>,
    order: LaneOrder,
) -> Option<String> {
    let launch = MslLaunch {
        threadgroup_bytes: case.dynamic_shared,
        order,
        ..MslLaunch::new(case.grid, case.block)
    };
    let mut buffers = buffers(case);
    if let Err(e) = program.run_launch(&launch, &mut buffers) {
        return Some(e.to_string());
    }
    let faulted = buffers.last().unwrap()[0] != 0;
    let Some(expected) = expected else {
        return (!faulted).then(|| "no fault is reported".into());
    };
    if faulted {
        return Some("a fault is reported".into());
    }
    // Only buffers are compared; values keep their places.
    let mut left = buffers.into_iter();
    let params = case.kernel.params.iter().zip(&case.args);
    let found: Vec<Vec<u8>> = params
        .map(|(p, arg)| match p.kind {
            ParamKind::Buffer { .. } => left.next().unwrap(),
            ParamKind::Value(_) => arg.clone(),
        })
        .collect();
    let wrong = mismatches(&case.kernel, expected, &found, 5);
    let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
    (!wrong.is_empty()).then(|| wrong.join("\n"))
}

/// Kernels whose functions once ended in a choice that WGSL did not see to be one.
#[test]
fn wgsl_sees_every_return() {
    let integers = Config {
        floats: false,
        ..Config::default()
    };
    let wide = Config {
        int64: true,
        ..integers.clone()
    };
    let lone = Config {
        faults: true,
        lanes: 1,
        ..integers
    };
    let [_, naga] = wgsl_targets();
    for (config, seed) in [(lone, 10_000_156), (wide, 3_000_369)] {
        let case = make(&config, seed);
        let source = render(&verified(case.kernel.clone()), &wgsl(&case, &naga)).unwrap();
        naga_and_tint(&format!("seed {seed}"), &source.text);
    }
}
