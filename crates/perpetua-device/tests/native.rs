//! A native kernel on the CPU backend, through the API that programs use.
#![cfg(feature = "cpu")]

use std::ops::Range;
use std::sync::Arc;

use perpetua_device::native::{Footprint, NativeArg, NativeKernel, NativeLaunch, PreparedLaunch, Sharing};
use perpetua_device::*;
use perpetua_ir::fault::{Fault, FaultSite};
use perpetua_ir::ir::{Access, FaultKind, Param, ParamKind, Scalar, Type};

fn buffer(name: &str, access: Access) -> Param {
    Param {
        name: name.into(),
        kind: ParamKind::Buffer {
            element: Type::F32,
            access,
        },
    }
}

fn signature() -> Signature {
    let scale = Param {
        name: "scale".into(),
        kind: ParamKind::Value(Type::F32),
    };
    Signature::new("scale", vec![buffer("x", Access::ReadWrite), scale])
}

// x[i] *= scale, faulting at the first index beyond the buffer when scale is NaN.
struct Scale {
    x: usize,
    len: usize,
    scale: f32,
    grid: Dim3,
    block: Dim3,
}

// SAFETY: it says nothing of what it accesses.
unsafe impl PreparedLaunch for Scale {
    fn slabs(&self) -> u64 {
        self.grid.count()
    }

    fn footprints(&self) -> Option<&[Footprint]> {
        None
    }

    unsafe fn run(&self, blocks: Range<u64>, _: Sharing) -> Result<(), Box<Fault>> {
        let Scale {
            x, len, scale, block, ..
        } = *self;
        let lanes = block.count();
        for i in blocks.start * lanes..blocks.end * lanes {
            if (i as usize) < len {
                let x = std::ptr::with_exposed_provenance_mut::<f32>(x);
                // SAFETY: the index is inside the buffer, and each lane has its own.
                unsafe { *x.add(i as usize) *= scale };
            } else if scale.is_nan() {
                return Err(Box::new(Fault {
                    kernel: "scale".into(),
                    source: "native.rs".into(),
                    site: FaultSite::new(FaultKind::IndexOutOfBounds, 7, "x", vec![Scalar::U64; 2]),
                    block: [(i / lanes) as u32, 0, 0],
                    thread: [(i % lanes) as u32, 0, 0],
                    operands: [i, len as u64, 0, 0],
                }));
            }
        }
        Ok(())
    }
}

fn prepare(launch: &NativeLaunch<'_>, args: &[NativeArg<'_>]) -> Option<Arc<dyn PreparedLaunch>> {
    let (x, len) = args[0].as_buffer()?;
    Some(Arc::new(Scale {
        x: x.expose_provenance(),
        len,
        scale: args[1].as_value::<f32>()?,
        grid: launch.grid,
        block: launch.block,
    }))
}

const SCALE: NativeKernel = NativeKernel {
    name: "scale",
    signature,
    prepare,
};

fn open() -> Result<(Device, Kernel)> {
    let device = Device::new(BackendKind::Cpu, 0)?;
    let module = device.compile(&KernelSource::Native(&SCALE, None), &CompileOptions::default())?;
    let kernel = module.only()?;
    Ok((device, kernel))
}

#[test]
fn small_and_large_launches_compute_in_order() -> Result<()> {
    let (device, kernel) = open()?;
    for len in [0usize, 1, 1000, 100_003] {
        let values: Vec<f32> = (0..len).map(|i| i as f32).collect();
        let x = device.upload(&values)?;
        for _ in 0..3 {
            device.launch(&kernel, LaunchConfig::linear(len, 64), args![&x, 2.0f32])?;
        }
        let expect: Vec<f32> = values.iter().map(|v| v * 8.0).collect();
        assert_eq!(x.read()?, expect);
    }
    Ok(())
}

#[test]
fn wrong_arguments_are_named() -> Result<()> {
    let (device, kernel) = open()?;
    let x = device.zeros::<f32>(8)?;
    let u = device.zeros::<u32>(8)?;
    let check = |args: &[KernelArg<'_>], expect: &str| {
        let found = device.launch(&kernel, LaunchConfig::linear(8, 8), args);
        assert_eq!(found.map_err(|e| e.to_string()), Err(expect.to_owned()));
    };
    check(
        args![&x],
        "kernel `scale(x: &mut [f32], scale: f32)` takes 2 arguments, 1 given",
    );
    check(
        args![&u, 1.0f32],
        "argument 0 of kernel `scale` is a buffer of u32, but the parameter is `x: &mut [f32]`: make the buffer with the parameter's element type",
    );
    check(
        args![&x, 1.0f64],
        "argument 1 of kernel `scale` is a value of type f64, but the parameter is `scale: f32`: give the number its type, as in `1.0f32` or `n as u32`",
    );
    check(
        args![1.0f32, &x],
        "argument 0 of kernel `scale` is a value of type f32, but the parameter is `x: &mut [f32]`: pass a buffer by reference, as `&buffer`",
    );
    Ok(())
}

#[test]
fn a_fault_comes_with_the_next_read_and_only_once() -> Result<()> {
    let (device, kernel) = open()?;
    for len in [8usize, 50_000] {
        let x = device.zeros::<f32>(len)?;
        device.launch(&kernel, LaunchConfig::linear(len + 1, 8), args![&x, f32::NAN])?;
        let error = x.read().expect_err("the launch faulted");
        let text = format!(
            "index out of bounds: the length of `x` is {len} but the index is {len} (kernel `scale`, native.rs:7, block ({}, 0, 0), lane (0, 0, 0))",
            len / 8
        );
        assert_eq!(error.to_string(), text);
        x.read()?;
    }
    Ok(())
}
