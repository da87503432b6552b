//! PTX and CUDA C through NVIDIA's assembler and compiler: what is right passes, what is wrong is refused.

use perpetua_vendor_tools::{ToolResult, nvdisasm, nvrtc, nvrtc_with, ptxas};

const PTX: &str = r"
.version 6.3
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 p, .param .f32 s)
{
    .reg .u64 %rd<4>;
    .reg .u32 %r<2>;
    .reg .f32 %f<3>;
    ld.param.u64 %rd0, [p];
    ld.param.f32 %f0, [s];
    cvta.to.global.u64 %rd1, %rd0;
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %rd2, %r0, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.f32 %f1, [%rd3];
    mul.rn.f32 %f2, %f1, %f0;
    st.global.f32 [%rd3], %f2;
    ret;
}
";

const CUDA_C: &str = r#"
extern "C" __global__ void axpy(float* y, const float* x, float a) {
    y[threadIdx.x] = a * x[threadIdx.x] + y[threadIdx.x];
}
"#;

#[test]
fn ptx_is_assembled_for_old_and_new_devices() {
    for arch in ["sm_70", "sm_75", "sm_80", "sm_90a"] {
        let Some(assembled) = ptxas(PTX, arch).required(arch).unwrap() else {
            continue;
        };
        let [usage] = &assembled.usage[..] else {
            panic!("one function expected: {}", assembled.log)
        };
        assert_eq!(usage.name, "scale", "{arch}");
        assert!((4..=16).contains(&usage.registers), "{arch}: {usage:?}");
        assert_eq!(
            (usage.spill_store_bytes, usage.spill_load_bytes),
            (0, 0),
            "{arch}"
        );
        assert!(assembled.cubin.starts_with(b"\x7fELF"), "{arch}");
    }
}

#[test]
fn wrong_ptx_is_refused_with_its_line() {
    let wrong = PTX.replace("mul.rn.f32 %f2, %f1, %f0;", "mul.rn.f32 %f2, %r0, %f0;");
    let result = ptxas(&wrong, "sm_80");
    if let ToolResult::Accepted(_) = result {
        panic!("an integer register is no f32 operand");
    }
    if let Some(log) = result.rejection() {
        assert!(log.contains("line 17"), "{log}");
    }
    let _ = ptxas("", "sm_1").rejection().is_none_or(|log| !log.is_empty());
}

#[test]
fn an_old_module_version_is_a_bound() {
    let newer = PTX.replace(".version 6.3", ".version 9.1");
    let result = ptxas(&newer, "sm_80");
    assert!(
        !matches!(result, ToolResult::Accepted(_)),
        "driver 580 reads PTX up to 9.0"
    );
}

#[test]
fn machine_code_can_be_read() {
    let Some(assembled) = ptxas(PTX, "sm_90a").required("scale").unwrap() else {
        return;
    };
    let Some(text) = nvdisasm(&assembled.cubin).required("scale").unwrap() else {
        return;
    };
    assert!(text.contains("FMUL"), "{text}");
}

#[test]
fn cuda_c_is_compiled_without_contraction() {
    for arch in ["sm_75", "sm_80", "sm_90a"] {
        let Some(compiled) = nvrtc(CUDA_C, arch).required(arch).unwrap() else {
            return;
        };
        assert!(compiled.cubin.starts_with(b"\x7fELF"), "{arch}");
        assert!(
            compiled.ptx.contains("mul.rn.f32") && !compiled.ptx.contains("fma.rn.f32"),
            "{}",
            compiled.ptx
        );
    }
    let Some(contracted) = nvrtc_with(CUDA_C, "sm_80", &["--fmad=true"])
        .required("contracted")
        .unwrap()
    else {
        return;
    };
    assert!(contracted.ptx.contains("fma.rn.f32"), "{}", contracted.ptx);
}

#[test]
fn wrong_cuda_c_is_refused_with_its_line() {
    let check = |source: &str, options: &[&str], expected: &str| match nvrtc_with(source, "sm_80", options) {
        ToolResult::Accepted(_) => panic!("accepted: {source}"),
        ToolResult::Rejected { log } => assert!(log.contains(expected), "{log}"),
        ToolResult::Missing(missing) => eprintln!("ignored: {missing}"),
    };
    check("__global__ void k() {\n  undeclared = 1;\n}", &[], "module.cu(2)");
    check(CUDA_C, &["--no-such-option"], "no-such-option");
    check("a\0b", &[], "NUL");
}
