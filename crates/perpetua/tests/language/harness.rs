//! Runs a kernel of one input and one output as plain Rust and on devices, and compares.

use std::fmt::Debug;

use perpetua::device::{BackendKind, CompileOptions, Device, KernelSource, KernelSpec};
use perpetua::kernel::index::Lane;
use perpetua::prelude::*;
use perpetua_ir::back::{CudaAbi, Target, render};
use perpetua_vendor_tools::{MslProgram, naga, nvrtc, ptxas};

/// Lanes of a block.
const BLOCK: u32 = 32;

/// The devices of this machine that run kernels: the CPU, and those that CUDA and wgpu find.
fn devices() -> Vec<Device> {
    let mut devices = vec![Device::new(BackendKind::Cpu, 0).unwrap()];
    devices.extend(Device::new(BackendKind::Cuda, 0).ok());
    devices.extend(Device::new(BackendKind::Wgpu, 0).ok());
    devices
}

/// `host` and `kernel` are the same function; each lane of `out` is written by one lane.
pub(crate) fn check<I: GpuType, O: GpuType + Debug + PartialEq>(
    kernel: KernelFn,
    host: fn(&[I], &mut [O]),
    input: &[I],
    out: &[O],
) {
    let name = kernel.name();
    let config = LaunchConfig::linear(out.len(), BLOCK);
    let mut expected = out.to_vec();
    for lane in 0..out.len() as u32 {
        let lane = Lane {
            thread: [lane % BLOCK, 0, 0],
            block: [lane / BLOCK, 0, 0],
            block_dim: [BLOCK, 1, 1],
            grid_dim: [config.grid.x, 1, 1],
        };
        lane.run(|| host(input, &mut expected));
    }
    for device in devices() {
        let ir = kernel.verified(device.info().pointer_width());
        let ir = ir.unwrap_or_else(|e| panic!("{name}: {e}"));
        // As the device likes it; on the CPU then as machine code, and by the interpreter.
        let ways = [
            (KernelSource::Spec(&kernel), false),
            (KernelSource::Ir(&ir), false),
            (KernelSource::Ir(&ir), true),
        ];
        let count = if device.info().backend == BackendKind::Cpu {
            3
        } else {
            1
        };
        for (source, interpret) in ways.into_iter().take(count) {
            let options = CompileOptions {
                interpret,
                ..CompileOptions::default()
            };
            let compiled = device.compile(&source, &options).and_then(|module| module.only());
            let compiled = compiled.unwrap_or_else(|e| panic!("{name}: {e}"));
            let (x, y) = (device.upload(input).unwrap(), device.upload(out).unwrap());
            device
                .launch(&compiled, config, args![&x, &y])
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            let found = y.read().unwrap_or_else(|e| panic!("{name}: {e}"));
            let on = &device.info().name;
            assert_eq!(found, expected, "`{name}` on {on}, interpreted: {interpret}");
        }
    }
    renders(kernel);
}

/// Every target takes the kernel, and its tools what is written.
pub(crate) fn renders(kernel: KernelFn) {
    let name = kernel.name();
    let wide = kernel.verified(64).unwrap_or_else(|e| panic!("{name}: {e}"));
    let checked = Target::CudaC {
        abi: CudaAbi::Checked,
    };
    let text = render(&wide, &checked).unwrap_or_else(|e| panic!("{e}")).text;
    nvrtc(&text, "sm_90a")
        .required(name)
        .unwrap_or_else(|e| panic!("{e}\n{text}"));
    let text = render(&wide, &Target::Ptx { sm: 90.into() })
        .unwrap_or_else(|e| panic!("{e}"))
        .text;
    ptxas(&text, "sm_90a")
        .required(name)
        .unwrap_or_else(|e| panic!("{e}\n{text}"));
    let narrow = kernel.verified(32).unwrap_or_else(|e| panic!("{name}: {e}"));
    let wgsl = Target::Wgsl {
        capabilities: perpetua_ir::back::Capabilities::default(),
        block: [BLOCK, 1, 1],
        dynamic_shared: 0,
        distinct: false,
    };
    let text = render(&narrow, &wgsl).unwrap_or_else(|e| panic!("{e}")).text;
    naga(&text, &[])
        .required(name)
        .unwrap_or_else(|e| panic!("{e}\n{text}"));
    let msl = render(&narrow, &Target::Msl).unwrap_or_else(|e| panic!("{e}"));
    MslProgram::compile(&msl.text, &msl.entry)
        .required(name)
        .unwrap_or_else(|e| panic!("{e}\n{}", msl.text));
}

/// Numbers between -8 and 8 that have few digits, so that sums of them are exact.
pub(crate) fn floats(count: usize) -> Vec<f32> {
    (0..count)
        .map(|i| ((i * 37 + 11) % 65) as f32 * 0.25 - 8.0)
        .collect()
}
