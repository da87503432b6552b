//! The examples of the kernel library: each runs to its end on the CPU; those for NVIDIA GPUs say what is missing where there is none.

#![cfg(feature = "kernels")]
// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::panic)]

mod example_program;

use std::process::Command;

use example_program::program;
use perpetua::device::{BackendKind, Device};

/// Runs an example; its output has these lines' parts.
fn check(name: &str, arguments: &[&str], expected: &[&str]) {
    let output = Command::new(program(name)).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}:\n{text}{errors}");
    for part in expected {
        assert!(text.contains(part), "{name}: no `{part}` in\n{text}");
    }
}

#[test]
fn on_the_cpu() {
    check("ptx_quickstart", &[], &["gemm_tiled", "softmax", ".target sm_90"]);
    check("fused_gemm", &[], &["130 x 70 x 104", "off by at most"]);
    check("gemm_kernel", &[], &["tiles of 128", "all products agree"]);
    check(
        "q4k_gemm",
        &[],
        &["36864 bytes instead of 262144", "outputs are off by"],
    );
    check("simple_attention_cuda", &["cpu"], &["off by at most"]);
    check(
        "flash_attention_cuda",
        &["cpu"],
        &["full: off by", "causal: off by"],
    );
}

#[test]
fn without_a_gpu() {
    let Err(error) = Device::new(BackendKind::Cuda, 0) else {
        for name in ["simple_attention_cuda", "flash_attention_cuda", "cuda_monitor"] {
            check(name, &[], &[]);
        }
        return;
    };
    for name in ["simple_attention_cuda", "flash_attention_cuda", "cuda_monitor"] {
        let output = Command::new(program(name)).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && errors.contains(&format!("error: {error}")),
            "{name}: {errors}"
        );
    }
}
