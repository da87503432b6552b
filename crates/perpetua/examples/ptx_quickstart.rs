//! PTX without a GPU: kernels of the library as text that the CUDA driver takes.
//!
//! `cargo run --example ptx_quickstart --features kernels`

use perpetua::kernels::{GemmKernel, Kernel, LayerNormKernel, SoftmaxKernel};

fn main() {
    let product = GemmKernel::tiled(1024, 1024, 1024, 32);
    let softmax = SoftmaxKernel::new(4096, 4096);
    let norm = LayerNormKernel::new(4096, 768, 1e-5);
    let all: [&dyn Kernel; 3] = [&product, &softmax, &norm];
    for kernel in all {
        let ptx = kernel.emit_ptx();
        let lines = ptx.lines().count();
        let products = ptx.matches("fma.rn.f32").count();
        println!(
            "// {}: {lines} lines, {products} fused multiply-adds",
            kernel.name()
        );
    }
    println!("{}", product.emit_ptx());
}
