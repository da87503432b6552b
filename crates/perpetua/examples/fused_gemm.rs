//! A matrix product of one's own, with what follows it: `c = gelu(a bᵀ + bias)` in one kernel, by tensor cores in stages.
//!
//! `cargo run --release --example fused_gemm --features kernels` runs it in the interpreter; `-- cuda` on a GPU of compute capability 9.0.

use std::process::ExitCode;
use std::time::Duration;

use perpetua::device::{BackendKind, Device};
use perpetua::kernels::measure::seconds_a_call;
use perpetua::prelude::*;

#[device]
fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x * x * x)).tanh())
}

/// A block of three teams: one fills stages, each of the two others multiplies 64 rows of them.
#[kernel(block_size = 384, interpret)]
fn fused(m: usize, n: usize, k: usize, a: &[bf16], b: &[bf16], bias: &[f32], c: &mut [bf16]) {
    stage_factors::<[[[bf16; 64]; 128]; 6], [[[bf16; 64]; 128]; 6]>(a, m, k, k, b, n, k, k);
    let (top, left) = (group_id_x() * 128, group_id_y() * 128);
    if is_producer() {
        for i in 0..k.div_ceil(64) {
            fill_stage(top as u32, left as u32, (i * 64) as u32);
        }
    } else {
        let mut sums = [[[0.0f32; 2]; 2]; 16];
        for _i in 0..k.div_ceil(64) {
            sums = multiply_stage(sums);
        }
        let lane = local_id_x() - 128;
        let (first, over) = (top + lane / 32 * 16 + lane % 32 / 4, left + lane % 4 * 2);
        for i in 0..64 {
            let (row, column) = (first + i / 2 % 2 * 8, over + i / 4 * 8 + i % 2);
            if row < m && column < n {
                c[row * n + column] = bf16::from_f32(gelu(sums[i / 4][i / 2 % 2][i % 2] + bias[column]));
            }
        }
    }
}

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
    let kind = BackendKind::from_name(&name).ok_or("the backend is cpu or cuda")?;
    let device = Device::new(kind, 0)?;
    let (m, n, k) = if device.info().on_host {
        (130, 70, 104)
    } else {
        (4096, 4096, 4096)
    };
    let numbers = |seed: usize, len| (0..len).map(move |i| ((i * seed) % 17) as f32 * 0.125 - 1.0);
    let (a, b) = (
        numbers(31, m * k).map(bf16::from_f32),
        numbers(7, n * k).map(bf16::from_f32),
    );
    let (a, b) = (a.collect::<Vec<_>>(), b.collect::<Vec<_>>());
    let bias: Vec<f32> = numbers(3, n).collect();
    let (x, y, z) = (device.upload(&a)?, device.upload(&b)?, device.upload(&bias)?);
    let (c, stream, kernel) = (
        device.zeros::<bf16>(m * n)?,
        device.create_stream()?,
        fused::kernel(),
    );
    let config = LaunchConfig::new((m.div_ceil(128) as u32, n.div_ceil(128) as u32), 384);
    let call = || Ok(stream.launch(&kernel, config, args![m, n, k, &x, &y, &z, &c])?);
    let seconds = seconds_a_call(&stream, Duration::from_millis(200), call)?;
    let (found, mut off) = (c.read()?, 0.0f32);
    for at in (0..m * n).step_by(m * n / 1000) {
        let (row, column) = (&a[at / n * k..][..k], &b[at % n * k..][..k]);
        let sum: f32 = row.iter().zip(column).map(|(a, b)| a.to_f32() * b.to_f32()).sum();
        let expected = gelu(sum + bias[at % n]);
        off = off.max((found[at].to_f32() - expected).abs() / expected.abs().max(1.0));
    }
    let speed = 2.0 * (m * n) as f64 * k as f64 / seconds / 1e12;
    println!(
        "{m} x {n} x {k} on {}: off by at most {off:.1e}, {speed:.6} TFLOP/s",
        device.info().name
    );
    match off < 0.01 {
        true => Ok(()),
        false => Err("the product is wrong".into()),
    }
}
