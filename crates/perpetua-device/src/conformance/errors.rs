//! Cells of errors: what is refused, and that the error names it.

use perpetua_ir::ir::{Access, AtomicOp, Axis, KernelBuilder, Op, Place, Sync, Type, TypeError};
use perpetua_ir::verify::verify;

use super::kernels::{self, compile};
use super::{Cell, Check, Failure, fails, open_again, same};
use crate::args;
use crate::device::Device;
use crate::dim::LaunchConfig;
use crate::error::Error;
use crate::signature::KernelArg;
use crate::source::{CompileOptions, KernelSource};

pub(super) fn cells() -> Vec<Cell> {
    vec![
        Cell::new("errors/no such device", no_such_device),
        Cell::new("errors/copies that do not fit", copies),
        Cell::new("errors/things of another device", other_device),
        Cell::new("errors/arguments", arguments),
        Cell::new("errors/shapes", shapes),
        Cell::new("errors/clusters", clusters),
        Cell::new("errors/buffers that must not change", constant_buffers),
        Cell::new("errors/sources", sources),
        Cell::new("errors/invalid values read back", invalid_values),
    ]
}

fn no_such_device(device: &Device) -> Check {
    fails("device 9999", Device::new(device.backend(), 9999), |e| {
        matches!(e, Error::DeviceNotFound { index: 9999, .. })
    })
}

fn copies(device: &Device) -> Check {
    let (a, b) = (device.zeros::<u32>(10)?, device.zeros::<u32>(11)?);
    let is_size = |e: &Error| {
        let expect = |from, to| matches!(e, Error::SizeMismatch { source_len, destination_len, .. } if (*source_len, *destination_len) == (from, to));
        expect(36, 40) || expect(44, 40)
    };
    fails("writing 9 to 10", a.write(&[0; 9]), is_size)?;
    fails("copying 11 to 10", a.copy_from(&b), is_size)?;
    let mut short = [0u8; 36];
    let read = device.default_stream().inner().read_blocking(a.ptr(), &mut short);
    fails("reading 40 bytes to 36", read, |e| {
        matches!(e, Error::SizeMismatch { .. })
    })?;
    let overlap = b.slice(1..)?.copy_from(&b.slice(..10)?);
    fails("overlapping places", overlap, |e| {
        matches!(e, Error::InvalidState { .. })
    })?;
    same("afterwards", a.read()?, vec![0; 10])
}

fn other_device(device: &Device) -> Check {
    let other = open_again(device)?;
    let (own, foreign) = (device.zeros::<u32>(4)?, other.zeros::<u32>(4)?);
    let is_wrong = |e: &Error| matches!(e, Error::WrongDevice { .. });
    fails("copy from another", own.copy_from(&foreign), is_wrong)?;
    fails(
        "copy to another",
        device.default_stream().copy(&own, &foreign),
        is_wrong,
    )?;
    fails("fill", device.default_stream().fill(&foreign, 1), is_wrong)?;
    fails(
        "write",
        device.default_stream().write(&foreign, &[0; 4]),
        is_wrong,
    )?;
    fails("read", device.default_stream().read(&foreign), is_wrong)?;
    let stream = other.create_stream()?;
    fails("event", device.default_stream().wait(&stream.record()?), is_wrong)?;
    let graph = stream.capture(|_| Ok(()))?;
    fails("graph", device.default_stream().launch_graph(&graph), is_wrong)?;
    let (kernel, one) = (kernels::index(device)?, LaunchConfig::new(1, 1));
    fails("argument", device.launch(&kernel, one, args![&foreign]), is_wrong)?;
    fails("kernel", other.launch(&kernel, one, args![&foreign]), is_wrong)
}

fn arguments(device: &Device) -> Check {
    let kernel = kernels::affine(device)?;
    let (x, f) = (device.zeros::<u32>(4)?, device.zeros::<f32>(4)?);
    let pinned = device.pin(&[0u32; 4])?;
    let launch = |args: &[KernelArg<'_>]| device.launch(&kernel, LaunchConfig::new(1, 1), args);
    let at =
        |index: usize| move |e: &Error| matches!(e, Error::ArgumentMismatch { index: i, .. } if *i == index);
    let is_count = |e: &Error| matches!(e, Error::ArgumentCount { expected: 4, .. });
    fails("none", launch(&[]), is_count)?;
    fails("too few", launch(args![&x, &x, 1u32]), is_count)?;
    fails("too many", launch(args![&x, &x, 1u32, 1u32, 1u32]), is_count)?;
    fails("a value for a buffer", launch(args![&x, 1u32, 1u32, 1u32]), at(1))?;
    fails("a buffer for a value", launch(args![&x, &x, &x, 1u32]), at(2))?;
    fails("another element", launch(args![&f, &x, 1u32, 1u32]), at(0))?;
    fails("another value", launch(args![&x, &x, 1u32, 1.0f32]), at(3))?;
    fails("a wider value", launch(args![&x, &x, 1u32, 1u64]), at(3))?;
    drop(pinned);
    Ok(device.synchronize()?)
}

fn shapes(device: &Device) -> Check {
    let kernel = kernels::index(device)?;
    let out = device.zeros::<u32>(4)?;
    let limits = device.info().limits;
    let launch = |config: LaunchConfig| device.launch(&kernel, config, args![&out]);
    let is_limit = |e: &Error| matches!(e, Error::LaunchLimit { .. });
    let is_empty = |e: &Error| matches!(e, Error::EmptyBlock { .. });
    fails(
        "an empty block",
        launch(LaunchConfig::new(1, (4, 0, 1))),
        is_empty,
    )?;
    let [x, y, z] = limits.max_block;
    for (what, block) in [
        ("too long in x", (x + 1, 1, 1)),
        ("too long in y", (1, y + 1, 1)),
        ("too long in z", (1, 1, z + 1)),
        ("too many lanes", (x, y, z)),
    ] {
        if (block.0 as u64 * block.1 as u64).saturating_mul(block.2 as u64)
            > limits.max_threads_per_block.into()
        {
            fails(what, launch(LaunchConfig::new(1, block)), is_limit)?;
        }
    }
    for (axis, limit) in limits.max_grid.into_iter().enumerate() {
        let Some(beyond) = limit.checked_add(1) else {
            continue;
        };
        let mut grid = [1; 3];
        grid[axis] = beyond;
        fails("too large a grid", launch(LaunchConfig::new(grid, 1)), is_limit)?;
    }
    let shared = LaunchConfig::new(1, 1).with_shared_bytes(limits.shared_bytes_per_block + 1);
    fails("too much shared memory", launch(shared), is_limit)?;
    let fixed = compile(device, "fixed_block", |k| {
        k.kernel_mut().block_size = Some([8, 2, 1]);
        let out = k.buffer("out", Type::U32, Access::ReadWrite);
        let zero = k.u32(0);
        let place = Place::element(out, zero);
        k.op(Op::Atomic(AtomicOp::Max, place, zero, Sync::RELAXED))
            .map(drop)
    })?;
    let wrong = device.launch(&fixed, LaunchConfig::new(1, 16), args![&out]);
    fails("another block size", wrong, |e| {
        matches!(
            e,
            Error::BlockSize {
                needed: [8, 2, 1],
                found: [16, 1, 1],
                ..
            }
        )
    })?;
    device.launch(&fixed, LaunchConfig::new(1, (8, 2)), args![&out])?;
    Ok(device.synchronize()?)
}

fn sources(device: &Device) -> Check {
    let options = CompileOptions::default();
    // No backend takes all of these; what one takes, it must find wrong.
    for source in [
        KernelSource::CudaC("this is no CUDA C"),
        KernelSource::Ptx("this is no PTX"),
        KernelSource::Wgsl("this is no WGSL"),
    ] {
        let what = source.kind();
        fails(what, device.compile(&source, &options).map(drop), |e| match e {
            Error::SourceUnsupported { backend, given, .. } => *backend == device.backend() && *given == what,
            Error::Compile { backend, log, .. } => *backend == device.backend() && !log.is_empty(),
            _ => false,
        })?;
    }
    let is_frontend = |e: &Error| matches!(e, Error::Frontend { .. });
    let text = "kernel wrong(out: buffer<u32, read_write>) {\n  store out[%0], %0\n}\n";
    fails(
        "IR text",
        device
            .compile(&KernelSource::IrText("kernel"), &options)
            .map(drop),
        is_frontend,
    )?;
    fails(
        "unsound IR",
        device.compile(&KernelSource::IrText(text), &options).map(drop),
        is_frontend,
    )?;
    let empty = verify(perpetua_ir::ir::Kernel::new("empty")).map_err(|e| Failure(e.to_string()))?;
    let module = device.compile(&KernelSource::Ir(&empty), &options)?;
    same("names", module.names(), vec!["empty".to_owned()])?;
    fails(
        "another name",
        module.kernel("full").map(drop),
        |e| matches!(e, Error::FunctionNotFound { name, available } if name == "full" && available == &["empty"]),
    )?;
    // A backend may compile a second entry point for large grids, which is none of the user's.
    let mut k = KernelBuilder::new("fill");
    let built = wide(&mut k);
    let fill = verify(k.finish()).map_err(|e| Failure(e.to_string()))?;
    built.map_err(|e| Failure(e.to_string()))?;
    let module = device.compile(&KernelSource::Ir(&fill), &options)?;
    fails(
        "a name of the backend's own",
        module.kernel("fill_wide").map(drop),
        |e| matches!(e, Error::FunctionNotFound { available, .. } if available == &["fill"]),
    )
}

/// A kernel of one store a lane.
fn wide(k: &mut KernelBuilder) -> Result<(), TypeError> {
    let out = k.buffer("out", Type::U32, Access::ReadWrite);
    let i = k.global_id(Axis::X)?;
    let one = k.u32(1);
    k.store(Place::element(out, i), one)
}

fn clusters(device: &Device) -> Check {
    let (kernel, out) = (kernels::index(device)?, device.zeros::<u32>(4)?);
    let limits = device.info().limits;
    let launch = |grid: u32, cluster: (u32, u32, u32)| {
        device.launch(
            &kernel,
            LaunchConfig::new(grid, 1).with_cluster(cluster),
            args![&out],
        )
    };
    if limits.max_cluster <= 1 {
        return fails(
            "a device without clusters",
            launch(2, (2, 1, 1)),
            |e| matches!(e, Error::Unsupported { backend, .. } if *backend == device.backend()),
        );
    }
    let is_cluster = |e: &Error| matches!(e, Error::Cluster { kernel, .. } if kernel == "index");
    fails("half a cluster", launch(3, (2, 1, 1)), is_cluster)?;
    fails("a cluster with nothing in it", launch(2, (1, 0, 1)), is_cluster)?;
    let beyond = limits.max_cluster + 1;
    fails(
        "too large a cluster",
        launch(beyond, (beyond, 1, 1)),
        |e| matches!(e, Error::LaunchLimit { limit, .. } if *limit == u64::from(limits.max_cluster)),
    )
}

fn constant_buffers(device: &Device) -> Check {
    let kernel = kernels::gated_barrier(device)?;
    let x = device.zeros::<u32>(96)?;
    let (low, high, middle) = (x.slice(..32)?, x.slice(64..)?, x.slice(16..48)?);
    let one = LaunchConfig::new(1, 32);
    for (what, on, out) in [("the same", &low, &low), ("in part", &low, &middle)] {
        fails(what, device.launch(&kernel, one, args![on, out]), |e| {
            let text = e.to_string();
            let named = [
                "`gated_barrier`",
                "argument 0 (`on: &[u32]`)",
                "argument 1 (`out: &mut [u32]`)",
            ];
            matches!(
                e,
                Error::ConstantOverlaps {
                    constant: 0,
                    stored: 1,
                    ..
                }
            ) && named.iter().all(|part| text.contains(part))
        })?;
    }
    device.launch(&kernel, one, args![&low, &high])?;
    let computes = super::Need::Compute.missing(device).is_none();
    let expect = if computes { (0..32).collect() } else { vec![0; 32] };
    same("apart", high.read()?, expect)?;
    same("untouched", low.read()?, vec![0; 32])
}

fn invalid_values(device: &Device) -> Check {
    let flags = device.upload(&[true, false, true])?;
    flags.cast::<u8>()?.slice(1..2)?.fill(2)?;
    fails("a bool of 2", flags.read(), |e| {
        matches!(e, Error::InvalidValue { element: 1, .. })
    })?;
    flags.fill(true)?;
    same("afterwards", flags.read()?, vec![true; 3])
}
