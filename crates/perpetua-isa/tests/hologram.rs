//! The Rust samples of hologram's document on its backends, as they stand there, and what they do here.

#![allow(clippy::expect_used, clippy::panic, unused_variables)]

// The samples name hologram's crate.
extern crate perpetua_isa as hologram_core;

use perpetua_isa::{Result, library};

// "Basic Usage"
#[rustfmt::skip]
fn basic_usage() -> Result<()> {
    use hologram_core::{Executor, BackendType};

    // CPU backend (always available)
    let exec_cpu = Executor::new_with_backend(BackendType::Cpu)?;

    // Metal backend (Apple Silicon only)
    let exec_metal = Executor::new_with_backend(BackendType::Metal)?;

    // CUDA backend (requires 'cuda' feature + NVIDIA GPU)
    let exec_cuda = Executor::new_with_backend(BackendType::Cuda)?;
    Ok(())
}

// "Automatic Backend Selection"
fn automatic_backend_selection() -> Result<()> {
    use hologram_core::Executor;

    // Automatically selects best available backend:
    // 1. Metal (if on Apple Silicon)
    // 2. CUDA (if NVIDIA GPU available and 'cuda' feature enabled)
    // 3. CPU (fallback)
    let exec = Executor::new_auto()?;
    Ok(())
}

// "Clear Error Messages": three statements that each fail, here one by one.
#[rustfmt::skip]
fn metal_on_non_apple_platform() -> Result<()> {
    use hologram_core::{Executor, BackendType};

    // Metal on non-Apple platform
    Executor::new_with_backend(BackendType::Metal)?;
    // Error: "Metal backend only available on Apple platforms"
    Ok(())
}

#[rustfmt::skip]
fn cuda_without_feature_flag_or_gpu() -> Result<()> {
    use hologram_core::{Executor, BackendType};

    // CUDA without feature flag
    Executor::new_with_backend(BackendType::Cuda)?;
    // Error: "CUDA backend requires 'cuda' feature to be enabled"

    // CUDA without GPU
    Executor::new_with_backend(BackendType::Cuda)?;
    // Error: "CUDA device not found or initialization failed: ..."
    Ok(())
}

fn program_execution() -> Result<()> {
    let backend = perpetua_isa::new_executor()?;
    let out = backend.allocate_buffer(4)?;
    let program = library("atlas_copy_f32")?;
    let program = program.with_buffer("a", out).expect("a");
    let program = program.with_buffer("out", out).expect("out");
    let config = perpetua_isa::LaunchConfig::linear(1, 64);

    // Unsupported program pattern
    backend.execute_program(&program, &config)?;
    // Error: "Metal/CUDA program execution not yet implemented. Infrastructure complete, kernel dispatch pending."
    backend.synchronize()
}

#[test]
fn samples_do_what_they_say() {
    automatic_backend_selection().expect("some backend is there");
    // What hologram left open runs.
    program_execution().expect("a run");
    if !cfg!(target_vendor = "apple") {
        let text = "Metal backend only available on Apple platforms";
        assert_eq!(
            metal_on_non_apple_platform().expect_err("no Metal").to_string(),
            text
        );
        // The first backend that is not there ends it.
        assert_eq!(basic_usage().expect_err("no Metal").to_string(), text);
    }
    if let Err(error) = cuda_without_feature_flag_or_gpu() {
        let expected = match cfg!(feature = "cuda") {
            true => "CUDA device not found or initialization failed: ",
            false => "CUDA backend requires 'cuda' feature to be enabled",
        };
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

#[test]
fn every_kernel_that_it_lists_is_there() {
    let kernels = "\
        atlas_add_f32 atlas_sub_f32 atlas_mul_f32 atlas_div_f32 atlas_min_f32 atlas_max_f32 atlas_abs_f32 atlas_neg_f32 \
        atlas_relu_f32 atlas_sqrt_f32 atlas_exp_f32 atlas_log_f32 atlas_sigmoid_f32 atlas_tanh_f32 atlas_mad_f32 atlas_add_i32 \
        atlas_sub_i32 atlas_mul_i32 atlas_div_i32 atlas_memcpy atlas_fill_f32";
    for kernel in kernels.split(' ') {
        assert!(library(kernel).is_ok(), "{kernel}");
    }
}
