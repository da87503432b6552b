//! What is wgpu's own: text kernels, parts of buffers that bindings cannot start at, host memory behind the queue, faults
//! of reads that nobody takes, the numeric probe. Software Vulkan will do.

use std::error::Error as StdError;

use perpetua_device::future::block_on;
use perpetua_device::wgpu::interop;
use perpetua_device::{
    BackendKind, CompileOptions, Device, Error, GpuBackend, Kernel, KernelSource, LaunchConfig, MemoryKind,
    WgpuBackend, args,
};

type Outcome = Result<(), Box<dyn StdError>>;

const TEXT: &str = "
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform> values: array<vec4<u32>, 1>;
@compute @workgroup_size(64) fn affine(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&y) { y[id.x] = x[id.x] * values[0].x + values[0].y; }
}
@compute @workgroup_size(1) fn first(@builtin(global_invocation_id) id: vec3<u32>) { x[0] = 7u; }
";

fn open() -> Result<Device, Error> {
    Device::new(BackendKind::Wgpu, 0)
}

fn text(device: &Device, name: &str) -> Result<Kernel, Error> {
    device
        .compile(&KernelSource::Wgsl(TEXT), &CompileOptions::default())?
        .kernel(name)
}

#[test]
fn adapters_are_listed_and_described() -> Outcome {
    let backend = WgpuBackend::new_blocking()?;
    assert!(backend.device_count() > 0);
    for i in 0..backend.device_count() {
        let info = backend.device_info(i)?;
        assert_eq!((info.backend, info.index), (BackendKind::Wgpu, i));
        assert!(!info.name.is_empty() && info.limits.max_buffers > 0);
        assert!(
            info.multiprocessors.is_none() || info.vendor == "NVIDIA",
            "{info:?}"
        );
    }
    let missing = backend.device_info(99).map(drop);
    assert!(matches!(missing, Err(Error::DeviceNotFound { index: 99, .. })));
    Ok(())
}

/// Whether or not there is a display, drivers are not made to look for one where a session has no folder for its sockets.
#[test]
#[cfg(target_os = "linux")]
fn opening_says_nothing() -> Outcome {
    for display in [None, Some("wayland-0")] {
        let mut again = std::process::Command::new(std::env::current_exe()?);
        again.args(["--exact", "adapters_are_listed_and_described"]);
        for name in ["XDG_RUNTIME_DIR", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"] {
            again.env_remove(name);
        }
        again.envs(display.map(|name| ("WAYLAND_DISPLAY", name)));
        let output = again.output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && !said.contains("XDG_RUNTIME_DIR"),
            "{said}"
        );
    }
    Ok(())
}

#[test]
fn a_buffer_of_somebody_elses_is_used_as_it_is() -> Outcome {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter = block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()))?;
    let open = || block_on(adapter.request_device(&interop::device_descriptor(&adapter)));
    let (wgpu_device, queue) = open()?;
    let device = block_on(interop::adopt(&adapter, &wgpu_device, &queue))?;
    let all = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    let create = |on: &wgpu::Device, size: u64, usage| {
        on.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage,
            mapped_at_creation: false,
        })
    };
    let theirs = create(&wgpu_device, 400, all);
    queue.write_buffer(&theirs, 0, &[1; 400]);
    let before = device.pool_stats(MemoryKind::Device);
    let ours = interop::adopt_buffer::<u32>(&device, &theirs)?;
    assert_eq!(device.pool_stats(MemoryKind::Device), before);
    assert_eq!(ours.read()?, [0x0101_0101; 100]);
    let x = device.full(100, 3u32)?;
    let affine = text(&device, "affine")?;
    // SAFETY: the text has these two buffers and values.
    unsafe {
        device.default_stream().launch_unchecked(
            &affine,
            LaunchConfig::linear(100, 64),
            args![&x, &ours, 2u32, 1u32],
        )?;
    }
    assert_eq!(ours.read()?, [7; 100]);
    drop(ours);
    queue.write_buffer(&theirs, 0, &[2; 400]);
    assert_eq!(interop::adopt_buffer::<u8>(&device, &theirs)?.read()?, [2; 400]);
    let (other, _) = open()?;
    let refused = |buffer: wgpu::Buffer| interop::adopt_buffer::<u32>(&device, &buffer).map(drop);
    let wrong = refused(create(&other, 400, all));
    assert!(matches!(wrong, Err(Error::WrongDevice { .. })), "{wrong:?}");
    let unusable = refused(create(&wgpu_device, 400, wgpu::BufferUsages::STORAGE));
    assert!(
        matches!(unusable, Err(Error::InvalidState { .. })),
        "{unusable:?}"
    );
    let foreign = interop::adopt_buffer::<u32>(&Device::new(BackendKind::Null, 0)?, &theirs).map(drop);
    assert!(matches!(foreign, Err(Error::WrongDevice { .. })), "{foreign:?}");
    Ok(())
}

#[test]
fn the_probe_has_measured_the_arithmetic() -> Outcome {
    let device = open()?;
    let probe = device.info().numeric_probe.as_ref().ok_or("no probe")?;
    let found = [
        probe.no_contraction,
        probe.keeps_denormals,
        probe.exact_fma,
        probe.exact_division,
        probe.exact_sqrt,
    ];
    assert!(found.iter().all(Option::is_some), "{probe:?}");
    Ok(())
}

#[test]
fn text_takes_buffers_and_then_values() -> Outcome {
    let device = open()?;
    let affine = text(&device, "affine")?;
    let x = device.upload(&(0..1000u32).collect::<Vec<_>>())?;
    let y = device.zeros::<u32>(1000)?;
    let stream = device.default_stream();
    // SAFETY: two buffers and two words, as the text has them; it stays inside `y`, which is as long as `x`.
    unsafe { stream.launch_unchecked(&affine, LaunchConfig::linear(1000, 64), args![&x, &y, 3u32, 5u32])? };
    let expect: Vec<u32> = (0..1000).map(|i| 3 * i + 5).collect();
    assert_eq!(y.read()?, expect);
    Ok(())
}

#[test]
fn text_with_wrong_arguments_is_an_error() -> Outcome {
    let device = open()?;
    let (affine, x) = (text(&device, "affine")?, device.zeros::<u32>(1000)?);
    let stream = device.default_stream();
    let check = |args: &[_], is_right: fn(&Error) -> bool| {
        // SAFETY: refused before anything runs.
        let launched = unsafe { stream.launch_unchecked(&affine, LaunchConfig::new(1, 64), args) };
        assert!(launched.as_ref().is_err_and(is_right), "{launched:?}");
    };
    check(args![&x], |e| matches!(e, Error::Driver { .. }));
    let odd = x.slice(1..)?;
    check(args![&odd, &x, 1u32, 1u32], |e| {
        matches!(e, Error::Alignment { found: 4, .. })
    });
    // The stream is none the worse for it.
    assert_eq!(x.read()?, [0; 1000]);
    let missing = text(&device, "second").map(drop);
    assert!(
        matches!(missing, Err(Error::FunctionNotFound { .. })),
        "{missing:?}"
    );
    text(&device, "first")?;
    Ok(())
}

#[test]
fn a_fault_outlives_the_read_that_nobody_takes() -> Outcome {
    let device = open()?;
    let source = "kernel far(out: buffer<u32, read_write>) source \"far.ir\" {\n  \
        %0: u32 = thread_idx.x @2\n  store out[%0], %0 @3\n}\n";
    let far = device
        .compile(&KernelSource::IrText(source), &CompileOptions::default())?
        .kernel("far")?;
    let out = device.zeros::<u32>(8)?;
    device.launch(&far, LaunchConfig::new(1, 9), args![&out])?;
    drop(out.read_async());
    let next = device.synchronize();
    assert!(matches!(&next, Err(Error::Fault(_))), "{next:?}");
    device.synchronize()?;
    assert_eq!(out.read()?, (0..8).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn host_memory_keeps_its_turn() -> Outcome {
    let device = open()?;
    let stream = device.create_stream()?;
    let (a, b) = (device.alloc::<u8>(100_003)?, device.zeros::<u8>(100_003)?);
    let host = device.context().allocate(100_003, MemoryKind::Pinned)?;
    device.synchronize()?;
    for round in 1..20u8 {
        stream.fill(&a, round)?;
        // Through host memory and back, without waiting in between.
        stream.inner().copy(a.ptr(), &host)?;
        stream.inner().copy(&host, b.ptr())?;
        stream.inner().fill(&host, &[0])?;
        assert_eq!(stream.read(&b)?, vec![round; 100_003]);
    }
    // The same over two streams, in the order that an event gives.
    let other = device.create_stream()?;
    stream.fill(&a, 77)?;
    stream.inner().copy(a.ptr(), &host)?;
    other.wait(&stream.record()?)?;
    other.inner().copy(&host, b.ptr())?;
    assert_eq!(other.read(&b)?, vec![77; 100_003]);
    Ok(())
}

#[test]
fn two_hundred_reads_in_flight_all_end() -> Outcome {
    let device = open()?;
    let buffer = device.full(10_000, 5u8)?;
    let reads: Vec<_> = (0..200).map(|_| buffer.read_async()).collect();
    for read in reads {
        let bytes = perpetua_device::future::block_on(read)?;
        assert_eq!(bytes, [5; 10_000]);
    }
    Ok(())
}

#[test]
fn trimming_keeps_kernels_working() -> Outcome {
    let device = open()?;
    let affine = text(&device, "affine")?;
    for round in 0..3u32 {
        let (x, y) = (device.full(256, round)?, device.zeros::<u32>(256)?);
        // SAFETY: as the text demands; see above.
        unsafe {
            let config = LaunchConfig::linear(256, 64);
            device
                .default_stream()
                .launch_unchecked(&affine, config, args![&x, &y, 2u32, 1u32])?;
        }
        assert_eq!(y.read()?, [2 * round + 1; 256]);
        drop((x, y));
        device.trim(0)?;
        assert_eq!(device.pool_stats(MemoryKind::Device).reserved, 0);
    }
    Ok(())
}
