//! Attention in one launch on an NVIDIA GPU, without its matrix of scores in memory: full and causal, in `f32` and `bf16`, with its speed.
//!
//! `cargo run --release --example flash_attention_cuda --features kernels`; without a GPU it says what is missing. `-- cpu` runs a small one
//! on the host.

use std::process::ExitCode;
use std::time::Instant;

use perpetua::args;
use perpetua::device::{BackendKind, Device};
use perpetua::kernels::{AttentionKernel, Element, Kernel, reference};
use perpetua::prelude::bf16;

const HEADS: usize = 16;
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
    let length = if device.backend() == BackendKind::Cuda {
        2048
    } else {
        64
    };
    let stream = device.default_stream();
    println!("{HEADS} heads of {length} x {COLUMNS} on {}", device.info().name);

    let numbers = |seed: usize| -> Vec<f32> {
        (0..HEADS * length * COLUMNS)
            .map(|i| ((i * seed % 9973) as f32 * 0.618).sin())
            .collect()
    };
    let host = [numbers(1), numbers(2), numbers(3)];
    let attention = AttentionKernel::new(1, HEADS, [length; 2], COLUMNS);
    for (what, kernel) in [("full", attention), ("causal", attention.causal())] {
        let [q, k, v] = [
            device.upload(&host[0])?,
            device.upload(&host[1])?,
            device.upload(&host[2])?,
        ];
        let out = device.zeros::<f32>(q.len())?;
        kernel.launch(&stream, args![&q, &k, &v, &out])?;
        let out = out.read()?;
        // Some rows of the last head.
        let from = (HEADS - 1) * length * COLUMNS;
        let head = |all: &[f32]| all[from..].iter().copied().map(f64::from).collect::<Vec<f64>>();
        let [q_head, k_head, v_head] = [head(&host[0]), head(&host[1]), head(&host[2])];
        let mut worst = 0.0f64;
        for row in [0, 1, length / 2, length - 1] {
            let seen = if what == "full" { length } else { row + 1 } * COLUMNS;
            let at = row * COLUMNS..(row + 1) * COLUMNS;
            let expected = reference::attention(
                &q_head[at.clone()],
                &k_head[..seen],
                &v_head[..seen],
                |_, product| 0.125 * product,
            );
            let off = expected
                .iter()
                .zip(&out[from..][at])
                .map(|(x, y)| (x - f64::from(*y)).abs());
            worst = off.fold(worst, f64::max);
        }

        let halves = [0, 1, 2].map(|i| host[i].iter().copied().map(bf16::from_f32).collect::<Vec<bf16>>());
        let [q, k, v] = [
            device.upload(&halves[0])?,
            device.upload(&halves[1])?,
            device.upload(&halves[2])?,
        ];
        let half_out = device.zeros::<bf16>(q.len())?;
        let kernel = kernel.with_element(Element::Bf16);
        // The first launch compiles.
        kernel.launch(&stream, args![&q, &k, &v, &half_out])?;
        stream.synchronize()?;
        let start = Instant::now();
        kernel.launch(&stream, args![&q, &k, &v, &half_out])?;
        stream.synchronize()?;
        let work = 4.0 * (HEADS * length * length * COLUMNS) as f64 / if what == "full" { 1.0 } else { 2.0 };
        let speed = work / start.elapsed().as_secs_f64() / 1e9;
        println!("{what}: off by at most {worst:.1e} in f32; bf16: {speed:.1} GFLOP/s");
        if worst > 1e-4 {
            return Err("that is too far".into());
        }
    }
    Ok(())
}
