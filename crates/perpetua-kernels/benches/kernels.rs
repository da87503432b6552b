//! What the kernels of the library reach, as a table: products in TFLOP/s, kernels over rows in GB/s that they must move at least, beside the
//! copy of as many bytes in the same run; all tables, or those whose names are given. On CUDA; on the CPU, with small shapes, where there is no GPU or where `PERPETUA_BENCH_CPU` is set.

use std::time::Duration;

use perpetua_device::{BackendKind, Device, GpuType, KernelArg, Stream, args};
use perpetua_ir::back::Capability;
use perpetua_kernels::measure::{numbers, seconds_a_call};
use perpetua_kernels::{
    AttentionKernel, Element, GemmKernel, Kernel, LayerNormKernel, QuantFormat, QuantGemmKernel,
    QuantGemvKernel, QuantizeKernel, Result, RmsNormKernel, SoftmaxKernel,
};

#[path = "kernels/entries.rs"]
mod entries;
#[path = "kernels/gradients.rs"]
mod gradients;
#[path = "kernels/products.rs"]
mod products;

/// Time that a row is measured for, at least.
const LONG: Duration = Duration::from_millis(200);

/// The time of one call.
fn time(stream: &Stream, call: impl FnMut() -> Result<()>) -> Result<f64> {
    seconds_a_call(stream, LONG, call)
}

fn launch(stream: &Stream, kernel: &dyn Kernel, args: &[KernelArg<'_>]) -> Result<f64> {
    time(stream, || kernel.launch(stream, args))
}

fn gemm(device: &Device, sizes: &[usize]) -> Result<()> {
    let stream = device.create_stream()?;
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
    let stream = device.create_stream()?;
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
    let stream = device.create_stream()?;
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
    let stream = device.create_stream()?;
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
    let stream = device.create_stream()?;
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

/// Attention in stages of what programs ask for beside full and causal: windows, bounds, slopes, keys that are no multiple of a stage, heads of 256 columns.
fn attention_kinds(device: &Device, lengths: &[usize]) -> Result<()> {
    let stream = device.create_stream()?;
    println!("\nattention forward, bf16, batch 2, 16 heads, TFLOP/s of what is seen");
    println!(
        "{:>8} {:>5} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "length", "dim", "full", "causal", "1000 keys", "capped", "slopes", "odd keys"
    );
    for &n in lengths {
        for dim in [64, 128, 256] {
            let len = 2 * 16 * n * dim;
            let halves = numbers(device, len, half::bf16::from_f32)?;
            let out = device.zeros::<half::bf16>(len)?;
            let slopes = numbers(device, 16, |x| 0.01 * x)?;
            let args = args![&halves, &halves, &halves, &out];
            let with_slopes = args![&halves, &halves, &halves, &slopes, &out];
            let full = AttentionKernel::new(2, 16, [n, n], dim).with_element(Element::Bf16);
            let odd = AttentionKernel::new(2, 16, [n, n - 57], dim).with_element(Element::Bf16);
            let causal = full.causal();
            let of = |keys: usize| 4.0 * 2.0 * 16.0 * n as f64 * keys as f64 * dim as f64;
            let rows: [(AttentionKernel, &[KernelArg<'_>], f64); 6] = [
                (full, args, of(n)),
                (causal, args, of(n) / 2.0),
                (causal.with_window(1000), args, of(n.min(1000))),
                (causal.with_soft_cap(30.0), args, of(n) / 2.0),
                (causal.with_slopes(), with_slopes, of(n) / 2.0),
                (odd, args, of(n - 57)),
            ];
            print!("{n:>8} {dim:>5}");
            for (kernel, args, work) in rows {
                print!(" {:>10.3}", work / launch(&stream, &kernel, args)? / 1e12);
            }
            println!();
        }
    }
    Ok(())
}

fn quantised(device: &Device, shapes: &[[usize; 2]]) -> Result<()> {
    let stream = device.create_stream()?;
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
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let is_asked = |name: &str| asked.is_empty() || asked.iter().any(|asked| asked == name);
    let has_stages = !on_gpu || device.info().capabilities.contains(&Capability::Stages);
    let sizes = |gpu: &'static [usize], cpu: &'static [usize]| if on_gpu { gpu } else { cpu };
    if is_asked("factors") && has_stages {
        products::factors(&device, sizes(&[1024, 2048, 4096, 8192, 16384], &[256]))?;
    }
    if is_asked("shapes") && has_stages {
        products::shapes(&device, if on_gpu { &products::ODD } else { &[[100, 60, 33]] })?;
    }
    if is_asked("thin") {
        let shapes: &[[usize; 2]] = match on_gpu {
            true => &[[4096, 4096], [14336, 4096], [4096, 14336], [1024, 65536]],
            false => &[[128, 100]],
        };
        products::thin(&device, shapes)?;
    }
    if is_asked("grouped") {
        let shapes: &[[usize; 4]] = match on_gpu {
            true => &[[8, 8192, 4096, 4096], [64, 8192, 2048, 2048]],
            false => &[[3, 100, 64, 64]],
        };
        products::grouped(&device, shapes)?;
    }
    if is_asked("staged") && has_stages {
        staged(&device, sizes(&[1024, 2048, 4096, 8192, 16384], &[256]))?;
    }
    if is_asked("tensor_cores") {
        tensor_cores(&device, sizes(&[1024, 2048, 4096, 8192], &[256]))?;
    }
    if is_asked("gemm") {
        gemm(&device, sizes(&[1024, 2048, 4096, 8192], &[256, 512]))?;
    }
    if is_asked("entries") {
        entries::entries(&device, if on_gpu { 1 } else { 32 })?;
    }
    if is_asked("rows") {
        let shapes: &[[usize; 2]] = match on_gpu {
            true => &[[4096, 4096], [32768, 4096], [16384, 8192], [1024, 50257]],
            false => &[[512, 1024], [64, 50257]],
        };
        rows(&device, shapes, Element::F32, |x| x)?;
        if on_gpu {
            rows(&device, shapes, Element::Bf16, half::bf16::from_f32)?;
        }
    }
    if is_asked("gradients") {
        let shapes: &[[usize; 2]] = match on_gpu {
            true => &[[4096, 4096], [32768, 4096], [16384, 8192], [1024, 50257]],
            false => &[[64, 1024]],
        };
        gradients::rows(&device, shapes, Element::F32, |x| x)?;
        gradients::rows(&device, shapes, Element::Bf16, half::bf16::from_f32)?;
    }
    if is_asked("attention_gradients") {
        let shapes: &[[usize; 2]] = match on_gpu {
            true => &[[2048, 128], [4096, 64], [4096, 128], [16384, 128]],
            false => &[[64, 64]],
        };
        gradients::attention(&device, shapes)?;
    }
    if is_asked("decode") {
        let shapes: &[[usize; 3]] = match on_gpu {
            true => &[[64, 8192, 16], [64, 8192, 256], [1, 8192, 16], [8, 2000, 16]],
            false => &[[2, 100, 16]],
        };
        gradients::decode(&device, shapes)?;
    }
    if is_asked("attention") {
        attention(&device, sizes(&[2048, 4096, 16384], &[128]))?;
    }
    if is_asked("attention_kinds") {
        attention_kinds(&device, sizes(&[4096, 16384], &[128]))?;
    }
    if is_asked("quantised") {
        let shapes: &[[usize; 2]] = match on_gpu {
            true => &[[4096, 4096], [4096, 14336]],
            false => &[[512, 1024]],
        };
        quantised(&device, shapes)?;
    }
    Ok(())
}
