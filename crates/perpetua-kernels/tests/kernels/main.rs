//! Each kernel of the library against `f64` on the host: random shapes, pitches and options, NaN and infinities, outputs poisoned before and
//! their surroundings looked at afterwards. The CPU and wgpu always run (a software adapter will do); CUDA is reported as ignored
//! where there is none. `PERPETUA_SEEDS` sets how many cases a test tries.

// What the macros write names the facade, whose kernel language is this crate's.
extern crate perpetua_language as perpetua;

mod attention;
mod attention_gradients;
mod builder;
mod decode;
mod errors;
mod gemm;
mod gradients;
mod grouped;
mod harness;
mod joined;
mod moving;
mod pointwise;
mod quant;
mod reduce;
mod remarks;
mod rows;
mod selecting;
mod tuned;

use std::process::ExitCode;

use harness::Case;
use libtest_mimic::{Arguments, Failed, Trial};
use perpetua_device::{BackendKind, Device};

/// A test: its name, how many cases it tries where nobody says, and a case.
type Test = (&'static str, u64, fn(&mut Case) -> Result<(), Failed>);

const TESTS: [Test; 46] = [
    ("gemm, naive", 60, gemm::naive),
    ("gemm, tiled", 120, gemm::tiled),
    ("gemm, tensor cores", 120, gemm::tensor_core),
    ("gemm, thin", 80, gemm::thin),
    ("gemm, grouped", 30, grouped::grouped),
    ("gemm, staged, places", 1, gemm::staged_places),
    ("gemm, staged", 40, gemm::staged),
    ("gemm, staged, factors", 80, gemm::staged_factors),
    ("gemm, staged, batched", 60, gemm::batched),
    (
        "gemm, staged, joined columns and scaled integers",
        40,
        joined::joined,
    ),
    ("gemm, staged, joined columns refused", 1, joined::refused),
    ("gemm, tuned", 1, tuned::tuned),
    ("softmax", 60, rows::softmax),
    ("layer norm", 60, rows::layer_norm),
    ("RMS norm", 60, rows::rms_norm),
    ("RMS norm of a sum", 15, gradients::rms_norm_of_sum),
    ("cross entropy and its gradient", 40, gradients::cross_entropy),
    ("softmax, gradient", 20, gradients::softmax),
    ("layer norm, gradients", 25, gradients::layer_norm),
    ("RMS norm, gradients", 25, gradients::rms_norm),
    ("gradients by differences", 50, gradients::differences),
    ("dequantize", 30, quant::dequantize),
    ("quantize", 40, quant::quantize),
    ("formats as gguf reads them", 1, quant::as_gguf),
    ("quantized product with a vector", 30, quant::gemv),
    ("quantized product", 30, quant::gemm),
    ("attention", 80, attention::attention),
    ("attention, in stages", 40, attention::in_stages),
    ("attention, gradients", 15, attention_gradients::attention),
    (
        "attention, gradients by tensor cores",
        15,
        attention_gradients::tensor_cores,
    ),
    (
        "attention, gradients in stages",
        12,
        attention_gradients::in_stages,
    ),
    (
        "attention, gradients by differences",
        20,
        attention_gradients::differences,
    ),
    ("attention to pages", 30, decode::paged),
    ("attention to pages, in stages", 8, decode::in_stages),
    ("transpose", 60, moving::transpose),
    ("gather", 60, moving::gather),
    ("embedding, gradient", 40, moving::embedding_backward),
    ("argmax", 60, selecting::argmax),
    ("top k", 40, selecting::top_k),
    ("rotary embedding", 50, pointwise::rotary),
    ("random numbers", 20, pointwise::random),
    ("dropout", 30, pointwise::dropout),
    ("reductions", 150, reduce::reduce),
    ("PTX of single instructions", 1, builder::saxpy),
    ("remarks of the driver", 1, remarks::remarks),
    ("errors", 1, errors::errors),
];

fn run(kind: BackendKind, (_, cases, test): Test) -> Result<(), Failed> {
    let device = Device::new(kind, 0)?;
    let asked = std::env::var("PERPETUA_SEEDS").ok().and_then(|n| n.parse().ok());
    // A software adapter takes seconds to compile what a case may be the first to ask for.
    let fewer = if kind == BackendKind::Wgpu { 5 } else { 1 };
    let cases = asked.unwrap_or(cases.div_ceil(fewer));
    for seed in 0..cases {
        let mut case = Case::new(&device, seed);
        test(&mut case)
            .map_err(|e| Failed::from(format!("case {seed}: {}", e.message().unwrap_or("failed"))))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(1);
    let has_cuda = Device::new(BackendKind::Cuda, 0).is_ok();
    let mut trials = Vec::new();
    for kind in [BackendKind::Cpu, BackendKind::Wgpu, BackendKind::Cuda] {
        for test in TESTS {
            let trial = Trial::test(format!("{}: {}", kind.name(), test.0), move || run(kind, test));
            let is_left_out = kind == BackendKind::Cuda && !has_cuda;
            trials.push(trial.with_ignored_flag(is_left_out));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
