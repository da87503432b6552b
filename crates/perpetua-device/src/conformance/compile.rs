//! Cells of compiling: as futures, by several at once, errors; and modules that a device lets go of while their work runs.

use std::sync::Arc;

use perpetua_ir::ir::{Access, Checks, Kernel, KernelBuilder, Place, Scalar, Type};
use perpetua_ir::ops::BinaryOp;
use perpetua_ir::verify::{Verified, verify};

use super::kernels::{FAULT_LINE, SOURCE};
use super::{Cell, Check, Failure, Need, fails, open_again, same};
use crate::args;
use crate::device::Device;
use crate::dim::LaunchConfig;
use crate::error::Error;
use crate::fault::FaultRegistry;
use crate::future::block_on;
use crate::kernel::Module;
use crate::source::{CompileOptions, KernelSource};

pub(super) fn cells() -> Vec<Cell> {
    vec![
        Cell::new("compile/as a future", as_future).needs(Need::Compute),
        Cell::new("compile/several ask at once", at_once),
        Cell::new("compile/futures that are dropped", dropped),
        Cell::new("compile/errors", errors),
        Cell::new("compile/more kernels than are kept", many),
        Cell::new("compile/faults of kernels that are gone", faults_of_gone).needs(Need::Compute),
        Cell::new("compile/graphs of kernels that are gone", graphs_of_gone).needs(Need::Compute),
    ]
}

/// `out[i] = 1000 / d + n` in lane `i`, which faults where `d` is zero. Each `n` is a kernel of its own.
fn numbered(n: u32) -> Result<Verified, Failure> {
    let mut k = KernelBuilder::new(format!("numbered_{n}"));
    k.set_source(SOURCE);
    k.set_line(FAULT_LINE);
    let out = k.buffer("out", Type::U32, Access::ReadWrite);
    let d = k.param("d", Type::U32);
    let mut build = || {
        let thousand = k.constant(Scalar::U32, 1000);
        let quotient = k.binary(BinaryOp::Div, thousand, d)?;
        let own = k.constant(Scalar::U32, n.into());
        let sum = k.binary(BinaryOp::Add, quotient, own)?;
        let zero = k.u32(0);
        k.store(Place::element(out, zero), sum)
    };
    build().map_err(|e| Failure(e.to_string()))?;
    verify(k.finish()).map_err(|e| Failure(e.to_string()))
}

const ONE: fn() -> LaunchConfig = || LaunchConfig::new(1, 1);

fn as_future(device: &Device) -> Check {
    let options = CompileOptions {
        no_disk_cache: true,
        block: Some(crate::dim::Dim3::ONE),
        ..CompileOptions::default()
    };
    let kernel = numbered(1)?;
    let module = block_on(device.compile_async(&KernelSource::Ir(&kernel), &options))?;
    let out = device.zeros::<u32>(1)?;
    device.launch(&module.only()?, ONE(), args![&out, 10u32])?;
    same("out", out.read()?, vec![101])?;
    let text = kernel.kernel().to_string();
    let module = block_on(device.compile_async(&KernelSource::IrText(&text), &options))?;
    device.launch(&module.only()?, ONE(), args![&out, 100u32])?;
    same("out, from text", out.read()?, vec![11])
}

fn at_once(device: &Device) -> Check {
    let device = open_again(device)?;
    let kernel = numbered(2)?;
    let options = CompileOptions {
        no_disk_cache: true,
        ..CompileOptions::default()
    };
    let source = KernelSource::Ir(&kernel);
    let ask = |i: usize| match i % 2 {
        0 => block_on(device.compile_async(&source, &options)),
        _ => device.compile(&source, &options),
    };
    let modules: Vec<crate::Result<Module>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|i| scope.spawn(move || ask(i))).collect();
        let joined = threads.into_iter().map(|t| t.join());
        joined.flatten().collect()
    });
    same("answers", modules.len(), 8)?;
    let modules = modules.into_iter().collect::<crate::Result<Vec<_>>>()?;
    let is_one = |m: &Module| Arc::ptr_eq(m.compiled(), modules[0].compiled());
    same("all have one module", modules.iter().all(is_one), true)?;
    same("modules", device.module_count(), 1)
}

fn dropped(device: &Device) -> Check {
    let device = open_again(device)?;
    let options = CompileOptions::default();
    let kernel = numbered(3)?;
    let source = KernelSource::Ir(&kernel);
    let (first, second) = (
        device.compile_async(&source, &options),
        device.compile_async(&source, &options),
    );
    drop(first);
    let module = block_on(second)?;
    same("names", module.names(), vec!["numbered_3".to_owned()])?;
    let kernel = numbered(4)?;
    let source = KernelSource::Ir(&kernel);
    drop(device.compile_async(&source, &options));
    let module = device.compile(&source, &options)?;
    same("names", module.names(), vec!["numbered_4".to_owned()])?;
    same("modules", device.module_count(), 2)
}

fn errors(device: &Device) -> Check {
    let options = CompileOptions::default();
    let text = |e: Result<Module, Error>| e.map(drop).map_err(|e| e.to_string());
    for source in [
        KernelSource::CudaC("this is no CUDA C"),
        KernelSource::Ptx("this is no PTX"),
        KernelSource::Wgsl("this is no WGSL"),
        KernelSource::IrText("this is no kernel"),
    ] {
        let (now, later) = (
            device.compile(&source, &options),
            block_on(device.compile_async(&source, &options)),
        );
        fails(source.kind(), now.as_ref().map(drop), |_| true)?;
        same(source.kind(), text(later), text(now))?;
    }
    let mut unchecked = Kernel::new("unchecked");
    unchecked.checks = Checks::Off;
    let unchecked = verify(unchecked).map_err(|e| Failure(e.to_string()))?;
    let asked = block_on(device.compile_async(&KernelSource::Ir(&unchecked), &options));
    fails("without checks", asked, |e| {
        matches!(e, Error::ChecksLeftOut { .. })
    })
}

/// Compiles so many more kernels and lets them go, on a device that keeps one module.
fn push_out(device: &Device, from: u32, count: u32) -> Check {
    let options = CompileOptions {
        no_disk_cache: true,
        ..CompileOptions::default()
    };
    for n in from..from + count {
        device.compile(&KernelSource::Ir(&numbered(n)?), &options)?;
    }
    same("modules", device.module_count(), 1)
}

fn many(device: &Device) -> Check {
    const COUNT: u32 = 200;
    let device = open_again(device)?;
    let kept = device.compile_ir(&numbered(1000)?)?;
    device.set_module_limit(1);
    let before = FaultRegistry::global().len();
    push_out(&device, 1001, COUNT)?;
    let after = FaultRegistry::global().len();
    // Others in this process compile, too.
    if after > before + COUNT as usize / 2 {
        let told =
            format!("{before} kernels had site numbers before, {after} after {COUNT} more that nobody holds");
        return Err(Failure(told));
    }
    // A kernel that somebody holds stays.
    let out = device.zeros::<u32>(1)?;
    device.launch(&kept, ONE(), args![&out, 10u32])?;
    device.synchronize()?;
    same("name", kept.name(), "numbered_1000")
}

/// Checks that a fault is that of the kernel `numbered_n`.
fn is_of(what: &str, found: crate::Result<()>, n: u32) -> Check {
    match found {
        Err(Error::Fault(fault)) => {
            same(what, fault.kernel.clone(), format!("numbered_{n}"))?;
            same(what, fault.site.line, FAULT_LINE)
        }
        Err(error) => Err(Failure(format!("{what}: the wrong error: {error}"))),
        Ok(()) => Err(Failure(format!("{what}: no fault was reported"))),
    }
}

fn faults_of_gone(device: &Device) -> Check {
    let device = open_again(device)?;
    device.set_module_limit(1);
    let out = device.zeros::<u32>(1)?;
    let streams = [device.create_stream()?, device.create_stream()?];
    for round in 0..3 {
        let n = 2000 + round * 100;
        for (i, stream) in streams.iter().enumerate() {
            let kernel = device.compile_ir(&numbered(n + i as u32)?)?;
            stream.launch(&kernel, ONE(), args![&out, 0u32])?;
        }
        // Nobody holds the kernels now but the streams, whose faults nobody has looked for.
        push_out(&device, n + 10, 20)?;
        for (i, stream) in streams.iter().enumerate() {
            is_of("a kernel that is gone", stream.synchronize(), n + i as u32)?;
            stream.synchronize()?;
        }
    }
    Ok(())
}

fn graphs_of_gone(device: &Device) -> Check {
    let device = open_again(device)?;
    device.set_module_limit(1);
    let out = device.zeros::<u32>(1)?;
    // The zeros come from another stream.
    device.synchronize()?;
    let stream = device.create_stream()?;
    let graph = |n: u32, d: u32| -> Result<_, Failure> {
        let kernel = device.compile_ir(&numbered(n)?)?;
        Ok(stream.capture(|s| s.launch(&kernel, ONE(), args![&out, d]))?)
    };
    let (sound, faulty) = (graph(3000, 10)?, graph(3001, 0)?);
    push_out(&device, 3010, 20)?;
    for _ in 0..2 {
        stream.launch_graph(&sound)?;
        stream.synchronize()?;
        same("out", out.read()?, vec![3100])?;
        stream.launch_graph(&faulty)?;
        is_of("a graph's kernel that is gone", stream.synchronize(), 3001)?;
    }
    // The graph goes while its launch may run.
    stream.launch_graph(&faulty)?;
    drop((sound, faulty));
    push_out(&device, 3030, 20)?;
    is_of("a kernel and a graph that are gone", stream.synchronize(), 3001)?;
    stream.synchronize()?;
    Ok(())
}
