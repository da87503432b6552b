//! What the kernels of the library reach, as a table: products in TFLOP/s, kernels over rows in GB/s that they must move at least, beside the
//! copy of as many bytes in the same run. On CUDA; on the CPU, with small shapes, where there is no GPU or where `PERPETUA_BENCH_CPU` is set.

use std::time::{Duration, Instant};

use perpetua_device::{BackendKind, Buffer, Device, GpuType, KernelArg, Stream, args};
use perpetua_ir::back::Capability;
use perpetua_kernels::{
    AttentionKernel, Element, GemmKernel, Kernel, LayerNormKernel, QuantFormat, QuantGemmKernel,
    QuantGemvKernel, QuantizeKernel, Result, RmsNormKernel, SoftmaxKernel,
};

/// Time that a row is measured for, at least.
const LONG: Duration = Duration::from_millis(200);

/// The time of one call: the best of five rounds.
fn time(stream: &Stream, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    call()?;
    stream.synchronize()?;
    let start = Instant::now();
    call()?;
    stream.synchronize()?;
    let calls =
        (LONG.as_secs_f64() / 5.0 / start.elapsed().as_secs_f64().max(1e-6)).clamp(1.0, 2000.0) as u32;
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        stream.synchronize()?;
        best = best.min(start.elapsed().as_secs_f64() / f64::from(calls));
    }
    Ok(best)
}

fn launch(stream: &Stream, kernel: &dyn Kernel, args: &[KernelArg<'_>]) -> Result<f64> {
    time(stream, || kernel.launch(stream, args))
}

/// Numbers between -1 and 1, so that no product has it easier than another.
fn numbers<T: GpuType>(device: &Device, len: usize, of: fn(f32) -> T) -> Result<Buffer<T>> {
    let mut state = 1u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        of((state >> 40) as f32 / (1 << 23) as f32 - 1.0)
    };
    let values: Vec<T> = std::iter::repeat_with(next).take(len).collect();
    Ok(device.upload(&values)?)
}

fn gemm(device: &Device, sizes: &[usize]) -> Result<()> {
    let stream = device.default_stream();
    println!("\nf32 products of n x n, TFLOP/s");
    println!(
        "{:>8} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "n", "naive", "tile 16", "tile 32", "tile 64", "tile 128"
    );
    for &n in sizes {
        let (a, b) = (numbers(device, n * n, |x| x)?, numbers(device, n * n, |x| x)?);
        let c = device.zeros::<f32>(n * n)?;
        print!("{n:>8}");
        let tiled = [16, 32, 64, 128].map(|tile| GemmKernel::tiled(n, n, n, tile));
        for (i, kernel) in [GemmKernel::naive(n, n, n)].iter().chain(&tiled).enumerate() {
            if i < 2 && n > 4096 {
                print!(" {:>9}", "");
                continue;
            }
            let seconds = launch(&stream, kernel, args![&a, &b, &c])?;
            print!(" {:>9.3}", 2.0 * (n as f64).powi(3) / seconds / 1e12);
        }
        println!();
    }
    Ok(())
}

fn tensor_cores(device: &Device, sizes: &[usize]) -> Result<()> {
    let stream = device.default_stream();
    println!(
        "\nproducts of n x n by tensor cores, TFLOP/s; rows of an odd pitch cannot be read 16 bytes at a time"
    );
    println!(
        "{:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "n", "f16", "bf16", "128 wide", "256 wide", "A^T", "B^T", "odd"
    );
    for &n in sizes {
        let pitch = n + 1;
        let f16 = numbers(device, n * n, half::f16::from_f32)?;
        let (a, b) = (
            numbers(device, n * pitch, half::bf16::from_f32)?,
            numbers(device, n * pitch, half::bf16::from_f32)?,
        );
        let c16 = device.zeros::<half::f16>(n * n)?;
        let c = device.zeros::<half::bf16>(n * n)?;
        print!("{n:>8}");
        let of_f16 = GemmKernel::tensor_core(n, n, n);
        let kernel = of_f16.with_element(Element::Bf16);
        let seconds = [
            launch(&stream, &of_f16, args![&f16, &f16, &c16])?,
            launch(&stream, &kernel, args![&a, &b, &c])?,
            launch(&stream, &kernel.with_tile_columns(128), args![&a, &b, &c])?,
            launch(&stream, &kernel.with_tile_columns(256), args![&a, &b, &c])?,
            launch(&stream, &kernel.with_transposed(true, false), args![&a, &b, &c])?,
            launch(&stream, &kernel.with_transposed(false, true), args![&a, &b, &c])?,
            launch(&stream, &kernel.with_pitches(pitch, pitch, n), args![&a, &b, &c])?,
        ];
        for seconds in seconds {
            print!(" {:>9.3}", 2.0 * (n as f64).powi(3) / seconds / 1e12);
        }
        println!();
    }
    Ok(())
}

/// The widest products, where the device has them, by what a block or two compute at a time, and by how A and B lie.
fn staged(device: &Device, sizes: &[usize]) -> Result<()> {
    let stream = device.default_stream();
    println!("\nproducts of n x n in stages, TFLOP/s");
    println!(
        "{:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "n", "f16", "bf16", "256 x 256", "128 x 256", "128 x 128", "64 x 128", "B^T", "A^T", "both", "beta 1"
    );
    for &n in sizes {
        let f16 = numbers(device, n * n, half::f16::from_f32)?;
        let bf16 = numbers(device, n * n, half::bf16::from_f32)?;
        let c16 = device.zeros::<half::f16>(n * n)?;
        let c = device.zeros::<half::bf16>(n * n)?;
        print!("{n:>8}");
        let kernel = GemmKernel::staged(n, n, n);
        let bf = kernel.with_element(Element::Bf16);
        let of_bf16 = |kernel: GemmKernel| launch(&stream, &kernel, args![&bf16, &bf16, &c]);
        let seconds = [
            launch(&stream, &kernel, args![&f16, &f16, &c16])?,
            of_bf16(bf)?,
            of_bf16(bf.with_tile(256, 256))?,
            of_bf16(bf.with_tile(128, 256))?,
            of_bf16(bf.with_tile(128, 128))?,
            of_bf16(bf.with_tile(64, 128))?,
            of_bf16(bf.with_transposed(false, true))?,
            of_bf16(bf.with_transposed(true, false))?,
            of_bf16(bf.with_transposed(true, true))?,
            of_bf16(bf.with_scales(1.0, 1.0))?,
        ];
        for seconds in seconds {
            print!(" {:>9.3}", 2.0 * (n as f64).powi(3) / seconds / 1e12);
        }
        println!();
    }
    Ok(())
}

fn rows<T: GpuType>(
    device: &Device,
    shapes: &[[usize; 2]],
    element: Element,
    of: fn(f32) -> T,
) -> Result<()> {
    let stream = device.default_stream();
    println!("\nrows of {element:?}, GB/s of one read and one write");
    println!(
        "{:>16} {:>9} {:>9} {:>12} {:>10} {:>9}",
        "shape", "softmax", "log", "layer norm", "RMS norm", "copy"
    );
    for &[rows, columns] in shapes {
        let x = numbers(device, rows * columns, of)?;
        let y = device.zeros::<T>(rows * columns)?;
        let (weight, bias) = (numbers(device, columns, of)?, numbers(device, columns, of)?);
        let bytes = 2.0 * x.bytes() as f64;
        let softmax = SoftmaxKernel::new(rows, columns).with_element(element);
        let layer = LayerNormKernel::new(rows, columns, 1e-5).with_element(element);
        let rms = RmsNormKernel::new(rows, columns, 1e-5).with_element(element);
        let seconds = [
            launch(&stream, &softmax, args![&x, &y])?,
            launch(&stream, &softmax.log(), args![&x, &y])?,
            launch(&stream, &layer, args![&x, &weight, &bias, &y])?,
            launch(&stream, &rms, args![&x, &weight, &y])?,
            time(&stream, || Ok(stream.copy(&x, &y)?))?,
        ];
        let [a, b, c, d, e] = seconds.map(|s| bytes / s / 1e9);
        println!(
            "{:>16} {a:>9.0} {b:>9.0} {c:>12.0} {d:>10.0} {e:>9.0}",
            format!("{rows} x {columns}")
        );
    }
    Ok(())
}

fn attention(device: &Device, lengths: &[usize]) -> Result<()> {
    let stream = device.default_stream();
    println!("\nattention forward, batch 2, 16 heads, TFLOP/s");
    println!(
        "{:>8} {:>5} {:>10} {:>10} {:>10} {:>10}",
        "length", "dim", "f32", "causal", "bf16", "causal"
    );
    for &n in lengths {
        for dim in [64, 128] {
            let len = 2 * 16 * n * dim;
            let full = AttentionKernel::new(2, 16, [n, n], dim);
            let work = 4.0 * 2.0 * 16.0 * (n as f64).powi(2) * dim as f64;
            let halves = numbers(device, len, half::bf16::from_f32)?;
            let halves_out = device.zeros::<half::bf16>(len)?;
            let half_args = args![&halves, &halves, &halves, &halves_out];
            let bf16 = full.with_element(Element::Bf16);
            print!("{n:>8} {dim:>5}");
            if n <= 4096 {
                let x = numbers(device, len, |x| x)?;
                let out = device.zeros::<f32>(len)?;
                let f32_args = args![&x, &x, &x, &out];
                let all = launch(&stream, &full, f32_args)?;
                let half = launch(&stream, &full.causal(), f32_args)?;
                print!(" {:>10.3} {:>10.3}", work / all / 1e12, work / 2.0 / half / 1e12);
            } else {
                print!(" {:>10} {:>10}", "", "");
            }
            let all = launch(&stream, &bf16, half_args)?;
            let half = launch(&stream, &bf16.causal(), half_args)?;
            println!(" {:>10.3} {:>10.3}", work / all / 1e12, work / 2.0 / half / 1e12);
        }
    }
    Ok(())
}

fn quantised(device: &Device, shapes: &[[usize; 2]]) -> Result<()> {
    let stream = device.default_stream();
    println!(
        "\nquantised weights: product with a vector in GB/s of weights, with a matrix of 512 rows in TFLOP/s"
    );
    println!("{:>16} {:>6} {:>9} {:>9}", "weights", "", "vector", "matrix");
    for &[n, k] in shapes {
        let w = numbers(device, n * k, |x| x)?;
        let (x, a) = (numbers(device, k, |x| x)?, numbers(device, 512 * k, |x| x)?);
        let (y, c) = (device.zeros::<f32>(n)?, device.zeros::<f32>(512 * n)?);
        for format in QuantFormat::ALL {
            let words = format.words(n * k)?;
            let blocks = device.zeros::<u32>(words)?;
            QuantizeKernel::new(format, n * k).launch(&stream, args![&w, &blocks])?;
            let vector = launch(
                &stream,
                &QuantGemvKernel::new(format, n, k),
                args![&blocks, &x, &y],
            )?;
            let matrix = launch(
                &stream,
                &QuantGemmKernel::new(format, 512, n, k),
                args![&a, &blocks, &c],
            )?;
            let bandwidth = 4.0 * words as f64 / vector / 1e9;
            let speed = 2.0 * 512.0 * (n * k) as f64 / matrix / 1e12;
            println!(
                "{:>16} {:>6} {bandwidth:>9.0} {speed:>9.3}",
                format!("{n} x {k}"),
                format!("{format:?}")
            );
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let cuda = match std::env::var_os("PERPETUA_BENCH_CPU") {
        Some(_) => None,
        None => Device::new(BackendKind::Cuda, 0).ok(),
    };
    let on_gpu = cuda.is_some();
    let device = match cuda {
        Some(device) => device,
        None => Device::new(BackendKind::Cpu, 0)?,
    };
    println!("{}", device.info().name);
    let has_stages = device.info().capabilities.contains(&Capability::Stages);
    if on_gpu {
        if has_stages {
            staged(&device, &[1024, 2048, 4096, 8192, 16384])?;
        }
        tensor_cores(&device, &[1024, 2048, 4096, 8192])?;
        gemm(&device, &[1024, 2048, 4096, 8192])?;
        let shapes = [[4096, 4096], [32768, 4096], [16384, 8192], [1024, 50257]];
        rows(&device, &shapes, Element::F32, |x| x)?;
        rows(&device, &shapes, Element::Bf16, half::bf16::from_f32)?;
        attention(&device, &[2048, 4096, 16384])?;
        quantised(&device, &[[4096, 4096], [4096, 14336]])
    } else {
        staged(&device, &[256])?;
        tensor_cores(&device, &[256])?;
        gemm(&device, &[256, 512])?;
        rows(&device, &[[512, 1024], [64, 50257]], Element::F32, |x| x)?;
        attention(&device, &[128])?;
        quantised(&device, &[[512, 1024]])
    }
}
