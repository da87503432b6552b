//! Runs a kernel of one input and one output as plain Rust and on devices, and compares.

use std::fmt::Debug;

#[cfg(debug_assertions)]
use perpetua::device::native::{NativeArg, NativeLaunch};
use perpetua::device::{BackendKind, CompileOptions, Device, KernelSource, KernelSpec};
use perpetua::kernel::index::Lane;
use perpetua::prelude::*;
use perpetua_ir::back::{CudaAbi, Target, render};
use perpetua_ir::ops::Capability;
use perpetua_vendor_tools::{MslProgram, naga, nvrtc, ptxas};

/// Lanes of a block.
const BLOCK: u32 = 32;

/// The devices of this machine that run kernels: the CPU, and those that CUDA and wgpu find.
pub(crate) fn devices() -> Vec<Device> {
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
    let expected = alone(host, input, out);
    on_devices(kernel, input, out, |found, on| {
        let found = found.unwrap_or_else(|e| panic!("`{name}` on {on}: {e}"));
        let differ = found
            .iter()
            .zip(&expected)
            .position(|(found, expected)| found != expected);
        let pair = differ.map(|i| (i, &found[i], &expected[i]));
        assert_eq!(pair, None, "`{name}` on {on}: lane, found, expected");
    });
    renders(kernel);
}

/// What the lanes write in plain Rust.
fn alone<I: GpuType, O: GpuType>(host: fn(&[I], &mut [O]), input: &[I], out: &[O]) -> Vec<O> {
    let mut expected = out.to_vec();
    for lane in lanes(out.len()) {
        lane.run(|| host(input, &mut expected));
    }
    expected
}

/// As [`check`], of a kernel with functions of f64, which WGSL refuses: `compare` looks at what a device wrote and what plain Rust did.
pub(crate) fn near<I: GpuType, O: GpuType>(
    kernel: KernelFn,
    host: fn(&[I], &mut [O]),
    input: &[I],
    out: &[O],
    compare: impl Fn(&[O], &[O]),
) {
    let name = kernel.name();
    let expected = alone(host, input, out);
    on_devices(kernel, input, out, |found, on| match found {
        Ok(found) => compare(&found, &expected),
        Err(e) => {
            let text = e.to_string();
            assert!(
                text.contains("functions of f64") && on.contains("wgpu"),
                "`{name}` on {on}: {text}"
            );
        }
    });
}

/// As [`check`], where lane `at` of `host` panics and no other does: every device finds a fault there, with the text of the panic.
pub(crate) fn panics<I: GpuType, O: GpuType + Debug + PartialEq>(
    kernel: KernelFn,
    host: fn(&[I], &mut [O]),
    input: &[I],
    out: &[O],
    at: usize,
) {
    let mut expected = out.to_vec();
    let mut texts = Vec::new();
    for (i, lane) in lanes(out.len()).enumerate() {
        let run = std::panic::AssertUnwindSafe(|| lane.run(|| host(input, &mut expected)));
        if let Err(payload) = std::panic::catch_unwind(run) {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or(payload.downcast_ref::<&str>().copied()).unwrap();
            texts.push((i, text.trim_start_matches("internal error: ").to_owned()));
        }
    }
    let [(lane, text)] = &texts[..] else {
        panic!("these lanes panic: {texts:?}");
    };
    assert_eq!(*lane, at);
    let thread = lane % BLOCK as usize;
    let block = lane / BLOCK as usize;
    on_devices(kernel, input, out, |found, on| {
        let fault = found.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(fault.contains(text.as_str()), "{on}: {fault:?} is not {text:?}");
        let place = format!("block ({block}, 0, 0), lane ({thread}, 0, 0))");
        assert!(fault.contains(&place), "{on}: {fault:?} is not at {place:?}");
    });
    renders(kernel);
}

/// The lanes of a launch with an output of this length.
fn lanes(len: usize) -> impl Iterator<Item = Lane> {
    let grid = LaunchConfig::linear(len, BLOCK).grid.x;
    (0..len as u32).map(move |lane| Lane {
        thread: [lane % BLOCK, 0, 0],
        block: [lane / BLOCK, 0, 0],
        block_dim: [BLOCK, 1, 1],
        grid_dim: [grid, 1, 1],
    })
}

/// Lanes of native code do what its proofs rely on.
#[cfg(debug_assertions)]
fn audit<I: GpuType, O: GpuType>(kernel: KernelFn, config: LaunchConfig, input: &[I], out: &[O]) {
    fn buffer<T: GpuType>(values: &[T]) -> NativeArg<'_> {
        NativeArg::Buffer {
            ptr: values.as_ptr().cast_mut().cast(),
            len: values.len(),
        }
    }
    let launch = NativeLaunch {
        grid: config.grid,
        block: config.block,
        shared_bytes: 0,
        overlaps: &[],
    };
    if let Some(Err(wrong)) = kernel.audit(&launch, &[buffer(input), buffer(out)]) {
        panic!("`{}`: {wrong}", kernel.name());
    }
}

/// Launches the kernel on each device, in each way that the device has, and says what came of it.
pub(crate) fn on_devices<I: GpuType, O: GpuType>(
    kernel: KernelFn,
    input: &[I],
    out: &[O],
    found: impl Fn(perpetua::device::Result<Vec<O>>, &str),
) {
    let name = kernel.name();
    let config = LaunchConfig::linear(out.len(), BLOCK);
    #[cfg(debug_assertions)]
    audit(kernel, config, input, out);
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
            let on = format!(
                "{} ({:?}), interpreted: {interpret}",
                device.info().name,
                device.info().backend
            )
            .to_lowercase();
            let compiled = match compiled {
                Ok(compiled) => compiled,
                Err(e) => {
                    found(Err(e), &on);
                    continue;
                }
            };
            let (x, y) = (device.upload(input).unwrap(), device.upload(out).unwrap());
            let launched = device.launch(&compiled, config, args![&x, &y]);
            found(launched.and_then(|()| y.read()), &on);
        }
    }
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
    let wide = narrow.facts().capabilities().contains_key(&Capability::Int64);
    let (capabilities, known): (_, &[&str]) = match wide {
        true => ([Capability::Int64].into(), &["shader_int64"]),
        false => (Default::default(), &[]),
    };
    let wgsl = Target::Wgsl {
        capabilities,
        block: [BLOCK, 1, 1],
        dynamic_shared: 0,
        distinct: false,
        exact_fma: true,
    };
    let text = render(&narrow, &wgsl).unwrap_or_else(|e| panic!("{e}")).text;
    naga(&text, known)
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
