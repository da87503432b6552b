//! The CUDA backend's host side on a driver without a device (`driver.c`), whose streams do nothing until somebody waits: what
//! lacks an order comes in the wrong one, and code that goes too early ends the program.
#![cfg(all(feature = "cuda", feature = "conformance", target_os = "linux"))]

use std::error::Error;
use std::path::Path;
use std::process::Command;

use perpetua_device::fault::FaultRegistry;
use perpetua_device::*;
use perpetua_ir::ir::{Access, KernelBuilder, Place, Type};
use perpetua_ir::verify::{Verified, verify};

type Check = std::result::Result<(), Box<dyn Error>>;

/// Says to this program, started by itself, that the driver is the mock.
const MOCKED: &str = "PERPETUA_MOCKED";

/// Starts this program again with the mock as its driver, to run one of its tests there; gives whether this is there.
fn is_mocked(test: &str) -> std::result::Result<bool, Box<dyn Error>> {
    if std::env::var_os(MOCKED).is_some() {
        return Ok(true);
    }
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&dir)?;
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mock_driver/driver.c");
    let library = dir.join("libcuda.so");
    // Rust links programs with it here, so it is there.
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-w", "-o"])
        .arg(&library)
        .arg(source)
        .status()?;
    assert!(built.success(), "cc made no driver of {source}");
    let output = Command::new(std::env::current_exe()?)
        .args(["--exact", test, "--nocapture"])
        .env(MOCKED, "1")
        .env("PERPETUA_CACHE", "off")
        .env("LD_LIBRARY_PATH", &dir)
        .output()?;
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{}: {}", output.status, text.join("\n"));
    Ok(false)
}

/// How many modules the mock has loaded.
fn loaded() -> std::result::Result<i32, Box<dyn Error>> {
    // SAFETY: the library is the mock, whose function this is; it takes nothing and gives an int.
    unsafe {
        let count = cudarc::driver::sys::culib().get::<unsafe extern "C" fn() -> i32>(b"mock_loaded")?;
        Ok(count())
    }
}

/// `x[0] = n`, which can fault.
fn numbered(n: u32) -> std::result::Result<Verified, Box<dyn Error>> {
    let mut k = KernelBuilder::new(format!("numbered_{n}"));
    let x = k.buffer("x", Type::U32, Access::ReadWrite);
    let (zero, value) = (k.u32(0), k.u32(n));
    k.store(Place::element(x, zero), value)?;
    Ok(verify(k.finish())?)
}

/// A launch of the four parameters that such a kernel has, as `driver.c` wants it.
fn plain() -> LaunchConfig {
    LaunchConfig::new(1, 4)
}

/// The same that faults.
fn faulty() -> LaunchConfig {
    LaunchConfig::new(7, 4)
}

/// A device that keeps one module.
fn device() -> Result<Device> {
    let device = Device::new(BackendKind::Cuda, 0)?;
    device.set_module_limit(1);
    Ok(device)
}

/// Compiles kernels that nobody holds, so that others go.
fn push_out(device: &Device, from: u32) -> Check {
    for n in from..from + 3 {
        device.compile_ir(&numbered(n)?)?;
    }
    Ok(())
}

fn is_of(found: Result<()>, n: u32) {
    let kernel = match &found {
        Err(perpetua_device::Error::Fault(fault)) => Some(fault.kernel.clone()),
        _ => None,
    };
    assert_eq!(kernel, Some(format!("numbered_{n}")), "{found:?}");
}

#[test]
fn cells_of_memory_and_streams() -> Check {
    if !is_mocked("cells_of_memory_and_streams")? {
        return Ok(());
    }
    let device = Device::new(BackendKind::Cuda, 0)?;
    let mut report = conformance::Report::default();
    for part in ["memory/", "streams/", "graphs/"] {
        conformance::run_matching(&device, part, &mut report);
    }
    assert!(report.passed(), "{report}");
    Ok(())
}

#[test]
fn code_goes_when_its_launches_have_ended() -> Check {
    if !is_mocked("code_goes_when_its_launches_have_ended")? {
        return Ok(());
    }
    let (device, registered) = (device()?, FaultRegistry::global().len());
    let (stream, x) = (device.create_stream()?, device.zeros::<u32>(1)?);
    // Nobody ever waits for the stream itself.
    for n in 0..100 {
        stream.launch(&device.compile_ir(&numbered(n)?)?, plain(), args![&x])?;
        stream.record()?.synchronize()?;
        assert!(loaded()? <= 3, "{} modules are loaded", loaded()?);
    }
    assert!(FaultRegistry::global().len() <= registered + 3);
    // What has not run stays: the mock would end the program.
    for n in 0..20 {
        stream.launch(&device.compile_ir(&numbered(n)?)?, plain(), args![&x])?;
    }
    assert!(loaded()? >= 20);
    stream.record()?.synchronize()?;
    push_out(&device, 30)?;
    assert!(loaded()? <= 3);
    // A stream that goes while its work is in flight.
    stream.launch(&device.compile_ir(&numbered(50)?)?, plain(), args![&x])?;
    drop(stream);
    push_out(&device, 60)?;
    // And all the rest, with a launch of the default stream's in flight.
    device.launch(&device.compile_ir(&numbered(70)?)?, plain(), args![&x])?;
    drop((x, device));
    assert_eq!(loaded()?, 0);
    Ok(())
}

#[test]
fn faults_outlive_their_kernels_and_graphs() -> Check {
    if !is_mocked("faults_outlive_their_kernels_and_graphs")? {
        return Ok(());
    }
    let device = device()?;
    let (stream, x) = (device.create_stream()?, device.zeros::<u32>(1)?);
    stream.launch(&device.compile_ir(&numbered(1)?)?, faulty(), args![&x])?;
    stream.record()?.synchronize()?;
    push_out(&device, 10)?;
    assert!(loaded()? <= 2);
    is_of(stream.synchronize(), 1);
    stream.synchronize()?;
    // A graph's kernel: the graph goes while its launches are in flight.
    let kernel = device.compile_ir(&numbered(2)?)?;
    let graph = stream.capture(|stream| stream.launch(&kernel, faulty(), args![&x]))?;
    drop(kernel);
    push_out(&device, 20)?;
    for _ in 0..3 {
        graph.launch(&stream)?;
    }
    drop(graph);
    push_out(&device, 30)?;
    is_of(stream.synchronize(), 2);
    stream.synchronize()?;
    push_out(&device, 40)?;
    assert!(loaded()? <= 2);
    // Many graphs on a stream that only events are asked about.
    for n in 100..300 {
        let kernel = device.compile_ir(&numbered(n)?)?;
        let graph = stream.capture(|stream| stream.launch(&kernel, plain(), args![&x]))?;
        graph.launch(&stream)?;
        stream.record()?.synchronize()?;
    }
    push_out(&device, 400)?;
    assert!(loaded()? <= 3, "{} modules are loaded", loaded()?);
    Ok(())
}

#[test]
fn room_for_blocks_counts_their_stages() -> Check {
    if !is_mocked("room_for_blocks_counts_their_stages")? {
        return Ok(());
    }
    let (left, right) = ("along(64, a, n, n, n)", "along(64, a, n, n, n)");
    let text = format!(
        "kernel k(a: buffer<f16, read>, n: u64) block_size(256, 1, 1) stages(6, f16, {left}, {right}) {{\n}}\n"
    );
    let kernel = device()?.compile_ir(&verify(text.parse()?)?)?;
    // Six stages of 16 KiB: two blocks of 227 KiB.
    assert_eq!(kernel.blocks_per_multiprocessor(256, 0)?, Some(2));
    assert_eq!(kernel.blocks_per_multiprocessor(256, 100 << 10)?, Some(1));
    Ok(())
}
