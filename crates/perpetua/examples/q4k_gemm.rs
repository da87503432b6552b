//! A layer whose weights are quantised to Q4_K: how large they are, how far off, and what the product with them gives.
//!
//! `cargo run --release --example q4k_gemm --features kernels` needs no GPU; `-- cuda` or `-- wgpu` behind it runs it there.

use std::process::ExitCode;

use perpetua::args;
use perpetua::device::{BackendKind, Device};
use perpetua::kernels::{DequantizeKernel, GemmKernel, Kernel, QuantFormat, QuantGemmKernel, QuantizeKernel};

const OUTPUTS: usize = 128;
const INPUTS: usize = 512;
const TOKENS: usize = 40;

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
    let stream = device.default_stream();
    println!("{OUTPUTS} x {INPUTS} weights on {}", device.info().name);

    // Numbers between -1 and 1 without a pattern.
    let number = |i: usize| scatter(i as u32) as i32 as f32 / 2.0f32.powi(31);
    let weights: Vec<f32> = (0..OUTPUTS * INPUTS).map(|i| 0.1 * number(i)).collect();
    let inputs: Vec<f32> = (0..TOKENS * INPUTS).map(|i| number(i + 1_000_003)).collect();
    let (w, a) = (device.upload(&weights)?, device.upload(&inputs)?);

    let format = QuantFormat::Q4K;
    let blocks = device.zeros::<u32>(format.words(weights.len())?)?;
    QuantizeKernel::new(format, weights.len()).launch(&stream, args![&w, &blocks])?;
    println!("{} bytes instead of {}", blocks.bytes(), w.bytes());

    let back = device.zeros::<f32>(weights.len())?;
    DequantizeKernel::new(format, weights.len()).launch(&stream, args![&blocks, &back])?;
    let off = root_mean_square(back.read()?.iter().zip(&weights).map(|(x, y)| x - y));
    let size = root_mean_square(weights.iter().copied());
    println!("weights are off by {:.1}% of their size", 100.0 * off / size);

    let (quantised, exact) = (
        device.zeros::<f32>(TOKENS * OUTPUTS)?,
        device.zeros::<f32>(TOKENS * OUTPUTS)?,
    );
    QuantGemmKernel::new(format, TOKENS, OUTPUTS, INPUTS).launch(&stream, args![&a, &blocks, &quantised])?;
    GemmKernel::tiled(TOKENS, OUTPUTS, INPUTS, 64)
        .with_transposed(false, true)
        .launch(&stream, args![&a, &w, &exact])?;
    let (quantised, exact) = (quantised.read()?, exact.read()?);
    let off = root_mean_square(quantised.iter().zip(&exact).map(|(x, y)| x - y));
    let share = off / root_mean_square(exact.iter().copied());
    println!("outputs are off by {:.1}% of theirs", 100.0 * share);
    if share > 0.2 {
        return Err("that is more than four bits a weight explain".into());
    }
    Ok(())
}

fn root_mean_square(numbers: impl Iterator<Item = f32>) -> f32 {
    let (sum, count) = numbers.fold((0.0, 0), |(sum, count), x| (sum + x * x, count + 1));
    (sum / count.max(1) as f32).sqrt()
}

/// The bits of a number, scattered.
fn scatter(x: u32) -> u32 {
    let x = (x ^ x >> 16).wrapping_mul(0x7feb_352d);
    let x = (x ^ x >> 15).wrapping_mul(0x846c_a68b);
    x ^ x >> 16
}
