//! Rust sources (`tests/in/*.rs`) through the front end, the verifier and every renderer, against goldens in
//! `tests/out/rust` and through the vendors' tools. `PERPETUA_BLESS=1` writes the goldens anew.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed expectation is the report"
)]

use std::fs;
use std::path::{Path, PathBuf};

use perpetua_ir::back::{Capability, CudaAbi, RenderError, Target, render};
use perpetua_ir::front::rust::{FunctionDef, Instantiation, StencilConfig, kernels_in_file, lower};
use perpetua_ir::ir::{Access, Base, Checks, KernelBuilder, Place, Type, TypeError};
use perpetua_ir::ops::BinaryOp;
use perpetua_ir::transpile::{
    transpile, transpile_device_function, transpile_global_kernel, transpile_stencil_kernel,
};
use perpetua_ir::verify::{Verified, verify};
use perpetua_vendor_tools::{MslProgram, naga, nvrtc, ptxas};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn compare(name: &str, text: &str) {
    let path = folder("out/rust").join(name);
    if std::env::var_os("PERPETUA_BLESS").is_some_and(|v| v == "1") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        return;
    }
    let old = fs::read_to_string(&path)
        .unwrap_or_default()
        .replace("\r\n", "\n");
    assert_eq!(
        text,
        old,
        "{}: run with PERPETUA_BLESS=1 to accept",
        path.display()
    );
}

/// The kernels of `tests/in/*.rs`, stencils once without a tile and once with one.
fn kernels() -> Vec<(String, FunctionDef, StencilConfig)> {
    let mut found = Vec::new();
    let mut files: Vec<PathBuf> = fs::read_dir(folder("in"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "rs"))
        .collect();
    files.sort();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).unwrap();
        for kernel in kernels_in_file(&text, &name).unwrap_or_else(|e| panic!("{e}")) {
            let tree = kernel.function.tree().unwrap();
            if tree.kind == perpetua_syntax::FunctionKind::Stencil {
                let tiled = format!("{}_tiled", kernel.name);
                let config = StencilConfig::new(&tiled).with_tile_size(16, 16);
                found.push((tiled, kernel.function.clone(), config));
            }
            found.push((kernel.name, kernel.function, kernel.how.stencil));
        }
    }
    found
}

fn lowered(def: &FunctionDef, stencil: &StencilConfig, pointer_width: u32, checks: Checks) -> Verified {
    let how = Instantiation {
        pointer_width,
        checks,
        stencil: stencil.clone(),
        ..Instantiation::default()
    };
    let kernel = lower(def, &how).unwrap_or_else(|e| panic!("{e}"));
    let text = kernel.to_string();
    verify(kernel).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn wgsl() -> Target {
    Target::Wgsl {
        capabilities: [Capability::Subgroups].into_iter().collect(),
        block: [16, 16, 1],
        dynamic_shared: 0,
        distinct: false,
        exact_fma: true,
    }
}

// Conditions within each other, in lines that count up to 1000.
fn nested(k: &mut KernelBuilder, x: Base, deep: u32) -> Result<(), TypeError> {
    k.set_line(1000 - deep);
    let at = k.u32(deep);
    if deep == 0 {
        return k.store(Place::element(x, at), at);
    }
    let value = k.load(Place::element(x, at))?;
    let is = k.binary(BinaryOp::Gt, value, at)?;
    k.if_(is, |k| nested(k, x, deep - 1))
}

// WGSL allows 127 braces within each other: what naga would say of more names neither kernel nor line.
#[test]
fn too_many_braces_are_an_error_at_the_deepest_line() {
    let rendered = |deep: u32| {
        let mut k = KernelBuilder::new("deep");
        let x = k.buffer("x", Type::U32, Access::ReadWrite);
        nested(&mut k, x, deep).unwrap();
        let mut kernel = k.finish();
        kernel.checks = Checks::Off;
        render(&verify(kernel).unwrap(), &wgsl())
    };
    assert_eq!(rendered(126).unwrap().text.matches("if (").count(), 127);
    let error = rendered(127).unwrap_err().to_string();
    assert_eq!(
        error,
        "kernel `deep` (line 1000): WGSL cannot express loops and conditions that come to 128 braces within each other, 127 are allowed: \
         move the inner ones to a function"
    );
}

#[test]
fn every_target_takes_every_kernel() {
    for (name, def, stencil) in kernels() {
        let wide = lowered(&def, &stencil, 64, Checks::On);
        compare(&format!("{name}.ir"), &wide.kernel().to_string());

        let plain = lowered(&def, &stencil, 64, Checks::Off);
        match render(&plain, &Target::CudaC { abi: CudaAbi::Plain }) {
            Ok(source) => {
                compare(&format!("{name}.plain.cu"), &source.text);
                compile(&name, &source.text);
            }
            // What asks for a length has no plain form.
            Err(error) => {
                assert!(matches!(error, RenderError::Unsupported { .. }), "{error}");
                assert!(wide.kernel().to_string().contains(" = len "), "{name}: {error}");
            }
        }
        let checked = Target::CudaC {
            abi: CudaAbi::Checked,
        };
        compile(
            &name,
            &render(&wide, &checked).unwrap_or_else(|e| panic!("{e}")).text,
        );
        for (sm, arch) in [(70, "sm_70"), (90, "sm_90a")] {
            let ptx = render(&wide, &Target::Ptx { sm: sm.into() }).unwrap_or_else(|e| panic!("{e}"));
            ptxas(&ptx.text, arch)
                .required(&name)
                .unwrap_or_else(|e| panic!("{e}\n{}", ptx.text));
        }
        let narrow = lowered(&def, &stencil, 32, Checks::On);
        let text = render(&narrow, &wgsl()).unwrap_or_else(|e| panic!("{e}")).text;
        naga(&text, &[])
            .required(&name)
            .unwrap_or_else(|e| panic!("{e}\n{text}"));
        let msl = render(&narrow, &Target::Msl).unwrap_or_else(|e| panic!("{e}"));
        MslProgram::compile(&msl.text, &msl.entry)
            .required(&name)
            .unwrap_or_else(|e| panic!("{e}\n{}", msl.text));
    }
}

fn compile(name: &str, text: &str) {
    for arch in ["sm_75", "sm_90a"] {
        nvrtc(text, arch)
            .required(name)
            .unwrap_or_else(|e| panic!("{e}\n{text}"));
    }
}

#[test]
fn items_become_the_signatures_that_the_documents_show() {
    let kernel: syn::ItemFn = syn::parse_quote! {
        fn vector_scale(data: &mut [f32], scale: f32, n: i32) {
            let idx = block_idx_x() * block_dim_x() + thread_idx_x();
            if idx >= n { return; }
            data[idx as usize] = data[idx as usize] * scale;
        }
    };
    let text = transpile_global_kernel(&kernel).unwrap();
    let signature = "extern \"C\" __global__ void vector_scale(float* data, float scale, int n)";
    assert!(text.contains(signature), "{text}");
    compile("vector_scale", &text);

    let switch: syn::ItemFn = syn::parse_quote! {
        fn choose(x: &[i32], out: &mut [i32]) {
            let i = thread_idx_x() as usize;
            out[i] = match x[i] { 0 => 5, 1 | 2 => 7, _ => -1 };
        }
    };
    let text = transpile_global_kernel(&switch).unwrap();
    assert!(text.contains("switch (") && text.contains("case 2:"), "{text}");
    compile("choose", &text);

    let stencil: syn::ItemFn = syn::parse_quote! {
        fn laplacian(input: &[f32], output: &mut [f32], pos: GridPos) {
            let lap = pos.north(input) + pos.south(input)
                    + pos.east(input) + pos.west(input)
                    - 4.0 * input[pos.idx()];
            output[pos.idx()] = lap;
        }
    };
    let config = StencilConfig::new("laplacian")
        .with_tile_size(16, 16)
        .with_halo(1);
    let text = transpile_stencil_kernel(&stencil, &config).unwrap();
    assert!(text.contains("__shared__ float input_tile[18][18];"), "{text}");
    let signature = "laplacian(const float* input, float* output, unsigned int width, unsigned int height)";
    assert!(text.contains(signature), "{text}");
    compile("laplacian", &text);

    let device: syn::ItemFn = syn::parse_quote! {
        fn smooth(x: f32, k: i32) -> f32 {
            if k < 0 { return 0.0; }
            x * x * (3.0 - 2.0 * x)
        }
    };
    let text = transpile_device_function(&device).unwrap();
    assert!(
        text.starts_with("__device__ float smooth(float x, int k)\n{"),
        "{text}"
    );
    assert!(!text.contains("__global__"), "{text}");
    compile("smooth", &text);

    let ptx = transpile(&kernel, &Target::Ptx { sm: 75.into() }).unwrap();
    assert_eq!(ptx.entry, "vector_scale");
    ptxas(&ptx.text, "sm_75")
        .required("vector_scale")
        .unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn items_that_cannot_be_transpiled_say_why() {
    let check = |item: syn::ItemFn, expected: &str| {
        let found = transpile_global_kernel(&item).unwrap_err().to_string();
        assert!(found.ends_with(expected), "{found}");
    };
    check(
        syn::parse_quote! { fn k(x: &mut [f32]) { x[0] = WIDTH; } },
        "`WIDTH` leads out of `k`, which is all there is: pass it as a parameter, or use `#[kernel]`, or put both into one file and use `emit`",
    );
    check(
        syn::parse_quote! { fn k(x: &mut [f32]) { x[0] = x.iter().collect(); } },
        "the iterator method `collect` is outside the kernel language: end with `for`, `sum`, `product`, `fold`, `reduce`, `min`, `max`, `any`, `all`, `position`, `find`, `find_map`, `count`, `next`, `nth`, `last`, `min_by_key`, `max_by_key` or `for_each`; write other loops out",
    );
    check(
        syn::parse_quote! { fn k(x: &mut [f32]) { let a: f32; if x[0] > 0.0 { a = 1.0; } x[0] = a; } },
        "local variable `a` is read before every path has written it: give it a value where it begins",
    );
    let device: syn::ItemFn = syn::parse_quote! { fn f(x: &[f32]) -> f32 { x[0] } };
    assert_eq!(
        transpile_device_function(&device)
            .unwrap_err()
            .to_string()
            .split(": ")
            .nth(1),
        Some("`f` takes or gives references, or synchronises")
    );
}
