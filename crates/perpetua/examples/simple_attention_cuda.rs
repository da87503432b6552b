//! Attention in three launches on an NVIDIA GPU, with its matrix of scores in memory: a product, a softmax, a product; then a layer norm.
//!
//! `cargo run --release --example simple_attention_cuda --features kernels`; without a GPU it says what is missing. `-- cpu` runs it on the host.

use std::process::ExitCode;

use perpetua::args;
use perpetua::device::{BackendKind, Device};
use perpetua::kernels::{GemmKernel, Kernel, LayerNormKernel, SoftmaxKernel, reference};

const ROWS: usize = 128;
const COLUMNS: usize = 64;

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
    let name = std::env::args().nth(1).unwrap_or("cuda".into());
    let kind = BackendKind::from_name(&name)
        .ok_or_else(|| format!("`{name}` is no backend: take cpu, cuda, wgpu or auto"))?;
    let device = Device::new(kind, 0)?;
    let stream = device.default_stream();
    println!(
        "{ROWS} queries and keys of {COLUMNS} columns on {}",
        device.info().name
    );

    let numbers = |seed: usize| -> Vec<f32> {
        (0..ROWS * COLUMNS)
            .map(|i| ((i * seed) as f32 * 0.618).sin())
            .collect()
    };
    let host = [numbers(1), numbers(2), numbers(3)];
    let [q, k, v] = [
        device.upload(&host[0])?,
        device.upload(&host[1])?,
        device.upload(&host[2])?,
    ];
    let scores = device.zeros::<f32>(ROWS * ROWS)?;
    let mean = device.zeros::<f32>(ROWS * COLUMNS)?;
    let normal = device.zeros::<f32>(ROWS * COLUMNS)?;
    let (weight, bias) = (device.full(COLUMNS, 1.0f32)?, device.zeros::<f32>(COLUMNS)?);

    let scale = 1.0 / (COLUMNS as f32).sqrt();
    GemmKernel::tiled(ROWS, ROWS, COLUMNS, 64)
        .with_transposed(false, true)
        .with_scales(scale, 0.0)
        .launch(&stream, args![&q, &k, &scores])?;
    SoftmaxKernel::new(ROWS, ROWS).launch(&stream, args![&scores, &scores])?;
    GemmKernel::tiled(ROWS, COLUMNS, ROWS, 64).launch(&stream, args![&scores, &v, &mean])?;
    LayerNormKernel::new(ROWS, COLUMNS, 1e-5).launch(&stream, args![&mean, &weight, &bias, &normal])?;

    let [q, k, v] = host.map(|all| all.into_iter().map(f64::from).collect::<Vec<f64>>());
    let mut worst = 0.0f64;
    for (query, found) in q.chunks(COLUMNS).zip(mean.read()?.chunks(COLUMNS)) {
        let expected = reference::attention(query, &k, &v, |_, product| f64::from(scale) * product);
        let off = expected.iter().zip(found).map(|(x, y)| (x - f64::from(*y)).abs());
        worst = off.fold(worst, f64::max);
    }
    println!("off by at most {worst:.1e} of the reference in f64");
    let first = &normal.read()?[..4];
    println!("the first row, normalised, begins with {first:.3?}");
    if worst > 1e-5 {
        return Err("that is too far".into());
    }
    Ok(())
}
