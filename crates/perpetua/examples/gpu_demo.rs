//! Tensors on a GPU under libtorch-rust's names; what to do where there is none. `cargo run --features tensor --example gpu_demo`

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use perpetua::device::future::block_on;
use perpetua::tensor::gpu::{GpuDevice, GpuTensor};

async fn demo(device: Arc<GpuDevice>) -> Result<(), Box<dyn Error>> {
    println!("✅ {} ({})", device.info().name, device.info().adapter_type);
    let a = GpuTensor::from_slice(&[1.0, -2.0, 3.0, 4.0], &[2, 2], Arc::clone(&device))?;
    let b = GpuTensor::from_slice(&[5.0, 6.0, 7.0, 8.0], &[2, 2], device)?;
    println!("a + b      {:?}", a.add(&b).await?.try_to_vec().await?);
    println!("a * b      {:?}", a.mul(&b).await?.try_to_vec().await?);
    println!("a @ b      {:?}", a.matmul(&b).await?.try_to_vec().await?);
    println!("relu(a)    {:?}", a.relu().await?.try_to_vec().await?);
    println!("sigmoid(a) {:?}", a.sigmoid().await?.try_to_vec().await?);
    Ok(())
}

fn main() -> ExitCode {
    match block_on(GpuDevice::new()) {
        Ok(device) => match block_on(demo(Arc::new(device))) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        },
        Err(error) => {
            println!("❌ Failed to initialize GPU device: {error}\n");
            println!("📋 GPU Requirements:");
            println!("   - This demo requires a GPU with WebGPU support (Vulkan, Metal, or DX12)");
            println!("   - In headless/CI environments, GPU hardware may not be available.");
            println!("   - In browser environments (via WASM), WebGPU will be available.");
            ExitCode::SUCCESS
        }
    }
}
