//! The kernels whose WGSL the library shows as text: compared with what the renderer writes, or written if `PERPETUA_BLESS` is 1; and handed to a
//! device as text.

#![allow(clippy::expect_used, clippy::panic)]

use std::path::Path;

use perpetua_device::{BackendKind, CompileOptions, Device, KernelSource};
use perpetua_tensor::Tensor;
use perpetua_tensor::gpu::shaders;
use perpetua_tensor::testing::wgsl;

fn rendered(name: &str) -> String {
    let device = Device::new(BackendKind::Cpu, 0).expect("the CPU");
    let x = Tensor::from_slice(&[1.0f32; 6], [2, 3], &device);
    let y = Tensor::from_slice(&[2.0f32; 6], [2, 3], &device);
    let tensor = match name {
        "elementwise_add" => x.add(&y),
        "elementwise_mul" => x.multiply(&y),
        "elementwise_sub" => x.subtract(&y),
        "elementwise_div" => x.divide(&y),
        "relu" => x.relu(),
        "sigmoid" => x.sigmoid(),
        "matmul_simple" => x.matmul(Tensor::from_slice(&[2.0f32; 12], [3, 4], &device)),
        other => panic!("{other} is no shader of the table"),
    };
    let texts = wgsl(&tensor).expect("WGSL has all that these need");
    assert_eq!(texts.len(), 1, "{name} is one kernel");
    texts.concat()
}

#[test]
fn the_texts_are_what_the_renderer_writes() {
    for (name, text) in shaders::ALL {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/gpu/shaders/{name}.wgsl"));
        let new = rendered(name);
        if std::env::var_os("PERPETUA_BLESS").is_some_and(|v| v == "1") {
            std::fs::write(&path, new).expect("a file of the source tree");
        } else {
            assert!(
                text.replace("\r\n", "\n") == new,
                "{name} is old: run `cargo xtask golden --bless`"
            );
        }
    }
}

#[test]
fn a_device_takes_the_texts() {
    let device = Device::new(BackendKind::Wgpu, 0).expect("an adapter, in software at least");
    for (name, text) in shaders::ALL {
        let module = device.compile(&KernelSource::Wgsl(text), &CompileOptions::default());
        module.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
