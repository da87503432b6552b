//! Generated kernels through every C-like target.

use crate::{metal, naga_and_tint, nvrtc, verified, wgsl_targets};
use perpetua_ir::back::{ArgsLayout, CudaAbi, Target, render};
use perpetua_ir::ir::ParamKind;
use perpetua_ir::testing::{Case, Choices, Config, generate, tape};
use perpetua_vendor_tools::msl::MslLaunch;

/// Kernels of each kind.
const COUNT: u64 = 12;

fn make(config: &Config, seed: u64) -> Case {
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

/// Runs them too: what is undefined in C++ is found where it happens.
#[test]
fn msl_runs() {
    let config = Config {
        float64: false,
        atomic64: false,
        ordering: false,
        ..Config::full()
    };
    for faults in [false, true] {
        run(&config, faults, |seed, case| {
            let source = render(&verified(case.kernel.clone()), &Target::Msl).unwrap();
            let Some(program) = metal(&format!("seed {seed}"), &source.entry, &source.text) else {
                return;
            };
            let launch = MslLaunch {
                threadgroup_bytes: case.dynamic_shared,
                ..MslLaunch::new(case.grid, case.block)
            };
            let run = program.run_launch(&launch, &mut buffers(case));
            run.unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}\n{}", source.text, case.kernel));
        });
    }
}
