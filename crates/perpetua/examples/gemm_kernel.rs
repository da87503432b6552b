//! The library's matrix products against each other: how fast each is, that they agree, and how much PTX they are.
//!
//! `cargo run --release --example gemm_kernel --features kernels` needs no GPU; `-- cuda` or `-- wgpu` behind it runs the products there.

use std::process::ExitCode;
use std::time::Instant;

use perpetua::args;
use perpetua::device::{BackendKind, Device};
use perpetua::kernels::{GemmKernel, Kernel};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or("cpu".into());
    let kind = BackendKind::from_name(&name)
        .ok_or_else(|| format!("`{name}` is no backend: take cpu, cuda, wgpu or auto"))?;
    let device = Device::new(kind, 0)?;
    let n = if device.backend() == BackendKind::Cuda {
        4096
    } else {
        256
    };
    println!("C = A B with {n} x {n} matrices of f32 on {}", device.info().name);

    let numbers = |seed: usize| (0..n * n).map(move |i| ((i * seed) % 17) as f32 - 8.0);
    let a = device.upload(&numbers(31).collect::<Vec<f32>>())?;
    let b = device.upload(&numbers(7).collect::<Vec<f32>>())?;
    let stream = device.default_stream();
    let mut first: Option<Vec<f32>> = None;
    let kernels = [
        GemmKernel::naive(n, n, n),
        GemmKernel::tiled(n, n, n, 32),
        GemmKernel::tiled(n, n, n, 128),
    ];
    for kernel in kernels {
        let c = device.zeros::<f32>(n * n)?;
        // The first launch compiles.
        kernel.launch(&stream, args![&a, &b, &c])?;
        stream.synchronize()?;
        let start = Instant::now();
        kernel.launch(&stream, args![&a, &b, &c])?;
        stream.synchronize()?;
        let speed = 2.0 * (n * n * n) as f64 / start.elapsed().as_secs_f64() / 1e9;
        let tile = kernel
            .tile()
            .map_or("no tiles".into(), |tile| format!("tiles of {tile}"));
        let lines = kernel.emit_ptx().lines().count();
        println!(
            "{}, {tile}: {speed:.1} GFLOP/s; {lines} lines of PTX",
            kernel.name()
        );
        // Small integers: every order of summation gives the same.
        let c = c.read()?;
        match &first {
            Some(first) if *first != c => return Err("the products differ".into()),
            Some(_) => {}
            None => first = Some(c),
        }
    }
    println!("all products agree");
    Ok(())
}
