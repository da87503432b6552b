//! The conformance suite on GPU backends, and whether its generated kernels find bugs that are planted in what the
//! renderers wrote; and what kernels print. wgpu always runs (a software adapter will do); CUDA is reported as ignored where there is none.

use std::error::Error;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cudarc::driver::sys;
use libtest_mimic::{Arguments, Failed, Trial};
use perpetua_cpu::testing::Config;
use perpetua_device::{AdapterType, BackendKind, Device, LaunchConfig, MemoryKind, args, conformance};
use perpetua_ir::ir::{Access, Axis, Effect, KernelBuilder, Place, PrintFormat, PrintPiece, Scalar, Type};
use perpetua_ir::ops::BinaryOp;
use perpetua_ir::verify::verify;

/// Kernels among which a planted bug must show.
const SEEDS: u64 = 300;

/// Runs the cells whose name contains what `PERPETUA_CELLS` says on each device of a backend.
fn passes(kind: BackendKind, index: usize) -> Result<(), Failed> {
    let device = Device::new(kind, index)?;
    let mut report = conformance::Report::default();
    let part = std::env::var("PERPETUA_CELLS").unwrap_or_default();
    conformance::run_matching(&device, &part, &mut report);
    println!("{device:?}\n{report}");
    if report.passed() {
        Ok(())
    } else {
        Err(report.to_string().into())
    }
}

/// A bug that a renderer could have, as a change of what it wrote. None changes what memory is accessed: indices are
/// checked by comparisons that no bug touches.
struct Bug {
    name: &'static str,
    backend: BackendKind,
    /// Makes a race, which need not show where lanes are stepped together.
    races: bool,
    plant: fn(&str) -> String,
}

const BUGS: [Bug; 6] = [
    Bug {
        name: "no barriers in WGSL",
        backend: BackendKind::Wgpu,
        races: true,
        // Either would make lanes meet.
        plant: |text| {
            text.replace("workgroupBarrier();", "")
                .replace("storageBarrier();", "")
        },
    },
    Bug {
        name: "shifts masked to the wrong width in WGSL",
        backend: BackendKind::Wgpu,
        races: false,
        plant: |text| text.replace("& 31u)", "& 15u)"),
    },
    Bug {
        name: "at most read as less in WGSL",
        backend: BackendKind::Wgpu,
        races: false,
        plant: |text| text.replace(" <= ", " < "),
    },
    Bug {
        name: "no barriers in PTX",
        backend: BackendKind::Cuda,
        races: false,
        plant: |text| text.replace("bar.sync 0;", ""),
    },
    Bug {
        name: "shifts masked to the wrong width in PTX",
        backend: BackendKind::Cuda,
        races: false,
        plant: |text| text.replace(", 31;", ", 15;"),
    },
    Bug {
        name: "signed compared as unsigned in PTX",
        backend: BackendKind::Cuda,
        races: false,
        plant: |text| {
            ["lt", "le", "gt"].iter().fold(text.to_owned(), |text, op| {
                text.replace(&format!("setp.{op}.s32"), &format!("setp.{op}.u32"))
            })
        },
    },
];

impl Bug {
    /// Runs generated kernels with the bug in them: one must differ, and come back shrunk.
    fn is_found(&self) -> Result<(), Failed> {
        let device = Device::new(self.backend, 0)?;
        // SAFETY: no bug changes which memory is accessed, as `Bug` promises.
        unsafe { device.rewrite_kernels_for_test(self.plant)? };
        let config = Config {
            floats: false,
            ..Config::default()
        };
        match conformance::fuzz(&device, &config, 0..SEEDS) {
            Ok(_) => Err(format!("{SEEDS} kernels did not show it").into()),
            Err(found) if found.0.contains("\nkernel generated(") && found.0.contains("expected") => {
                println!("{}, found by {}", self.name, found.0);
                Ok(())
            }
            Err(other) => Err(format!("failed in another way: {}", other.0).into()),
        }
    }
}

/// What the raw driver gave, and whether it has it back.
struct Theirs {
    address: u64,
    stream: sys::CUstream,
    freed: Arc<AtomicBool>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Theirs {}
// SAFETY: as above.
unsafe impl Sync for Theirs {}

impl Drop for Theirs {
    fn drop(&mut self) {
        // SAFETY: both came from the driver and are given back once; nobody uses them any more.
        let codes = unsafe {
            [
                sys::cuMemFree_v2(self.address),
                sys::cuStreamDestroy_v2(self.stream),
            ]
        };
        let is_freed = codes == [sys::CUresult::CUDA_SUCCESS; 2];
        // Relaxed: the test reads it on the same thread, or after waiting.
        self.freed.store(is_freed, Ordering::Relaxed);
    }
}

fn driver(code: sys::CUresult) -> Result<(), Failed> {
    match code {
        sys::CUresult::CUDA_SUCCESS => Ok(()),
        other => Err(format!("the driver says {other:?}").into()),
    }
}

/// Memory and a stream of the raw driver's: a kernel of ours runs on them, between copies of the driver's, in order.
fn adopts() -> Result<(), Failed> {
    const LEN: usize = 1 << 20;
    let device = Device::new(BackendKind::Cuda, 0)?;
    let (mut handle, mut context) = (0, std::ptr::null_mut());
    let mut theirs = Theirs {
        address: 0,
        stream: std::ptr::null_mut(),
        freed: Arc::default(),
    };
    let mut values: Vec<u32> = (0..LEN as u32).collect();
    // SAFETY: pointers are writable; the context, which the device keeps, is made current before what needs it; memory and
    // vector have `LEN` words.
    unsafe {
        driver(sys::cuDeviceGet(&raw mut handle, 0))?;
        driver(sys::cuDevicePrimaryCtxRetain(&raw mut context, handle))?;
        driver(sys::cuCtxSetCurrent(context))?;
        driver(sys::cuMemAlloc_v2(&raw mut theirs.address, LEN * 4))?;
        driver(sys::cuStreamCreate(&raw mut theirs.stream, 1))?;
        driver(sys::cuMemcpyHtoDAsync_v2(
            theirs.address,
            values.as_ptr().cast(),
            LEN * 4,
            theirs.stream,
        ))?;
    }
    let (address, stream, freed) = (theirs.address, theirs.stream, Arc::clone(&theirs.freed));
    let theirs = Arc::new(theirs);
    let mut k = KernelBuilder::new("double");
    let x = k.buffer("x", Type::U32, Access::ReadWrite);
    let i = k.global_id(Axis::X)?;
    let v = k.load(Place::element(x, i))?;
    let v = k.binary(BinaryOp::Add, v, v)?;
    k.store(Place::element(x, i), v)?;
    let double = device.compile_ir(&verify(k.finish())?)?;
    // SAFETY: `theirs` keeps both; all work goes to their stream.
    let (buffer, ours) = unsafe {
        (
            device.adopt::<u32>(address, LEN, Arc::clone(&theirs))?,
            device.adopt_stream(stream.expose_provenance() as u64, theirs)?,
        )
    };
    let before = device.pool_stats(MemoryKind::Device);
    ours.launch(&double, LaunchConfig::linear(LEN, 256), args![&buffer])?;
    let graph =
        ours.capture(|stream| stream.launch(&double, LaunchConfig::linear(LEN, 256), args![&buffer]))?;
    graph.launch(&ours)?;
    // SAFETY: as above. The copy is behind our work, since the stream is one.
    unsafe {
        driver(sys::cuMemcpyDtoHAsync_v2(
            values.as_mut_ptr().cast(),
            address,
            LEN * 4,
            stream,
        ))?;
        driver(sys::cuStreamSynchronize(stream))?;
    }
    let wrong = values.iter().enumerate().find(|(i, v)| **v != 4 * *i as u32);
    if let Some((i, value)) = wrong {
        return Err(format!("element {i} is {value}").into());
    }
    if device.pool_stats(MemoryKind::Device).in_use != before.in_use {
        return Err("the pool counts adopted memory".into());
    }
    // Both leave while work is in flight, which keeps the memory.
    for _ in 0..100 {
        graph.launch(&ours)?;
    }
    drop((buffer, graph));
    ours.synchronize()?;
    if freed.load(Ordering::Relaxed) {
        return Err("the stream, which is adopted too, keeps the owner".into());
    }
    drop(ours);
    if !freed.load(Ordering::Relaxed) {
        return Err("the owner was not dropped, or could not free".into());
    }
    // SAFETY: each of these fails.
    let errors = unsafe {
        [
            device
                .adopt::<u32>(values.as_ptr().expose_provenance() as u64, LEN, ())
                .map(drop),
            device.adopt_stream(2, ()).map(drop),
        ]
    };
    for error in errors {
        if !matches!(error, Err(perpetua_device::Error::InvalidState { .. })) {
            return Err(format!("expected an error of state: {error:?}").into());
        }
    }
    // SAFETY: retained above.
    unsafe { driver(sys::cuDevicePrimaryCtxRelease_v2(handle)) }
}

/// Names the backend on which this program, started by itself, is to print and do nothing else.
const PRINTS_ON: &str = "PERPETUA_PRINTS_ON";

/// A kernel that prints two lines, as one lane.
fn print_on(kind: BackendKind) -> Result<(), Box<dyn Error>> {
    let mut k = KernelBuilder::new("prints");
    let args = vec![
        k.constant(Scalar::F32, (-1.5f32).to_bits().into()),
        k.constant(Scalar::U32, 254),
        k.constant(Scalar::I64, -42i64 as u64),
        k.constant(Scalar::Bool, 1),
    ];
    let formats = ["+9.3", "#06x", "<5", "?"];
    let mut pieces = vec![PrintPiece::Text("plain, 100%".into())];
    k.effect(Effect::Print(pieces.clone(), Vec::new()))?;
    for format in formats {
        let format: PrintFormat = format.parse().map_err(|_| "a format")?;
        pieces.extend([PrintPiece::Text(", ".into()), PrintPiece::Arg(format)]);
    }
    k.effect(Effect::Print(pieces, args))?;
    let device = Device::new(kind, 0)?;
    let kernel = device.compile_ir(&verify(k.finish())?)?;
    device.launch(&kernel, LaunchConfig::new(1, 1), &[])?;
    // Nobody holds the kernel any more; what it printed still has to come.
    drop(kernel);
    device.set_module_limit(1);
    device.compile_ir(&verify(KernelBuilder::new("another").finish())?)?;
    device.synchronize()?;
    Ok(())
}

/// Starts this program again, to see what [`print_on`] prints.
fn prints(kind: BackendKind) -> Result<(), Failed> {
    let output = Command::new(std::env::current_exe()?)
        .env(PRINTS_ON, kind.name())
        .output()?;
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    let expect = format!(
        "plain, 100%\nplain, 100%, {:+9.3}, {:#06x}, {:<5}, {:?}\n",
        -1.5f32, 254, -42, true
    );
    match *out == *expect {
        true => Ok(()),
        false => Err(format!("printed {out:?} instead of {expect:?}; {err}").into()),
    }
}

/// Vulkan's driver tells as many multiprocessors as CUDA's, of a device that both have.
fn multiprocessors() -> Result<(), Failed> {
    let cuda = Device::new(BackendKind::Cuda, 0)?;
    let found = (0..).map_while(|index| Device::new(BackendKind::Wgpu, index).ok());
    for device in found.filter(|device| device.info().vendor == "NVIDIA") {
        let counts = (device.info().multiprocessors, cuda.info().multiprocessors);
        let is_vulkan = device.info().details.iter().any(|(_, value)| value == "vulkan");
        // The extension is as old as this capability.
        let tells = is_vulkan && cuda.info().compute_capability >= Some((7, 5));
        let is_right = match device.info().name == cuda.info().name && tells {
            true => counts.0 == counts.1,
            false => is_vulkan || counts.0.is_none(),
        };
        if !is_right {
            return Err(format!("{device:?}: {counts:?}").into());
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    if let Ok(kind) = std::env::var(PRINTS_ON) {
        let kind = BackendKind::from_name(&kind).ok_or_else(|| format!("no backend is called {kind}").into());
        return match kind.and_then(print_on) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    let mut arguments = Arguments::from_args();
    // One after another: a cell that loses its device takes the others in this process with it.
    arguments.test_threads.get_or_insert(1);
    let cuda = Device::new(BackendKind::Cuda, 0);
    if let Err(error) = &cuda {
        eprintln!("no CUDA device: {error}");
    }
    let trial = |name: String, kind: BackendKind, run: fn(usize) -> Result<(), Failed>, n: usize| {
        let trial = Trial::test(name, move || run(n));
        match (kind, &cuda) {
            (BackendKind::Cuda, Err(_)) => trial.with_kind("needs CUDA").with_ignored_flag(true),
            _ => trial,
        }
    };
    let mut trials = Vec::new();
    let software = Device::new(BackendKind::Wgpu, 0).is_ok_and(|d| d.info().adapter_type == AdapterType::Cpu);
    for (n, bug) in BUGS.iter().enumerate() {
        let name = format!("planted: {}", bug.name);
        let trial = trial(name, bug.backend, |n| BUGS[n].is_found(), n);
        trials.push(match bug.races && !software {
            true => trial
                .with_kind("needs a software adapter")
                .with_ignored_flag(true),
            false => trial,
        });
    }
    trials.push(trial(
        "wgpu".into(),
        BackendKind::Wgpu,
        |n| passes(BackendKind::Wgpu, n),
        0,
    ));
    // Before the cells, of which one loses the device for this process.
    trials.push(trial(
        "multiprocessors: vulkan".into(),
        BackendKind::Cuda,
        |_| multiprocessors(),
        0,
    ));
    trials.push(trial("adopts: cuda".into(), BackendKind::Cuda, |_| adopts(), 0));
    trials.push(trial(
        "cuda".into(),
        BackendKind::Cuda,
        |n| passes(BackendKind::Cuda, n),
        0,
    ));
    for (name, kind) in [
        ("prints: cpu", BackendKind::Cpu),
        ("prints: cuda", BackendKind::Cuda),
    ] {
        let run = match kind {
            BackendKind::Cpu => |_| prints(BackendKind::Cpu),
            _ => |_| prints(BackendKind::Cuda),
        };
        trials.push(trial(name.into(), kind, run, 0));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
