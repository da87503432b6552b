//! trueno-gpu's page on CUDA: PTX of a product, without a GPU.

use perpetua::kernels::{GemmKernel, Kernel};
// Changed: also used, as the page imports them.
use perpetua::ptx::{PtxKernel, PtxModule, PtxType};

#[test]
fn quick_start() {
    // Generate optimized GEMM kernel
    let kernel = GemmKernel::tiled(1024, 1024, 1024, 32);
    let ptx = kernel.emit_ptx();

    // PTX can be loaded via CUDA driver API
    println!("{}", ptx);
    assert!(ptx.contains(".visible .entry gemm_tiled"));

    let module = PtxModule::new().with(PtxKernel::build("nothing", |k| {
        let value = k.constant(1.0f32);
        assert_eq!(format!("{value:?}"), format!("{value}: {}", PtxType::F32));
    }));
    assert!(module.emit_ptx().contains(".visible .entry nothing"));
}
