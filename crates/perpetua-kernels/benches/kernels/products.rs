//! Products of what C does not hold, and of odd shapes.

use perpetua_device::{Device, KernelArg, args};
use perpetua_kernels::{E4m3, E5m2, Element, Factors, GemmKernel, GroupedGemmKernel, Result};

use super::{launch, numbers};

/// Products of what C does not hold, by what a block or two compute at a time. B is stored transposed, as hardware takes it, but in the last column.
pub(super) fn factors(device: &Device, sizes: &[usize]) -> Result<()> {
    let stream = device.create_stream()?;
    println!("\nproducts of n x n of other factors in stages, TFLOP/s (of i8: 10^12 operations/s)");
    println!(
        "{:>8} {:>18} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "n", "", "chosen", "256 x 256", "128 x 256", "256 x 128", "128 x 128", "64 x 128", "B"
    );
    for &n in sizes {
        let e4m3 = numbers(device, n * n, E4m3::from_f32)?;
        let e5m2 = numbers(device, n * n, E5m2::from_f32)?;
        let i8s = numbers(device, n * n, |x| (x * 127.0) as i8)?;
        let f32s = numbers(device, n * n, |x| x)?;
        let bf16 = device.zeros::<half::bf16>(n * n)?;
        let (c, ints) = (device.zeros::<f32>(n * n)?, device.zeros::<i32>(n * n)?);
        let of_bytes = GemmKernel::staged(n, n, n).with_element(Element::Bf16);
        let kernel = |factors| of_bytes.with_factors(factors).with_transposed(false, true);
        let e4m3_args = args![&e4m3, &e4m3, &bf16];
        let all: [(&str, GemmKernel, &[KernelArg<'_>]); 7] = [
            ("e4m3 to bf16", kernel(Factors::E4m3), e4m3_args),
            ("promoted", kernel(Factors::E4m3).with_promoted_sums(), e4m3_args),
            ("e5m2 to bf16", kernel(Factors::E5m2), args![&e5m2, &e5m2, &bf16]),
            (
                "e4m3 to f32",
                kernel(Factors::E4m3).with_element(Element::F32),
                args![&e4m3, &e4m3, &c],
            ),
            ("i8", kernel(Factors::I8), args![&i8s, &i8s, &ints]),
            ("tf32", kernel(Factors::Tf32), args![&f32s, &f32s, &c]),
            (
                "3xtf32",
                kernel(Factors::Tf32).with_3xtf32(),
                args![&f32s, &f32s, &c],
            ),
        ];
        for (name, kernel, args) in all {
            print!("{n:>8} {name:>18}");
            let promoted = name == "promoted";
            let chosen = [
                Some(kernel),
                (!promoted).then(|| kernel.with_tile(256, 256)),
                (!promoted).then(|| kernel.with_tile(128, 256)),
                promoted.then(|| kernel.with_tile(256, 128)),
                Some(kernel.with_tile(128, 128)),
                Some(kernel.with_tile(64, 128)),
                Some(kernel.with_transposed(false, false)),
            ];
            for kernel in chosen {
                match kernel {
                    Some(kernel) => {
                        let seconds = launch(&stream, &kernel, args)?;
                        print!(" {:>9.3}", 2.0 * (n as f64).powi(3) / seconds / 1e12);
                    }
                    None => print!(" {:>9}", ""),
                }
            }
            println!();
        }
    }
    Ok(())
}

/// Products of bf16 of the shapes that programs have, and of those that hardware does not like.
pub(super) fn shapes(device: &Device, shapes: &[[usize; 3]]) -> Result<()> {
    let stream = device.create_stream()?;
    println!("\nproducts of bf16, m x n x k, microseconds");
    println!(
        "{:>20} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "shape", "B", "B^T", "staged", "1 slice", "TFLOP/s"
    );
    for &[m, n, k] in shapes {
        let a = numbers(device, m * k, half::bf16::from_f32)?;
        let b = numbers(device, k * n, half::bf16::from_f32)?;
        let c = device.zeros::<half::bf16>(m * n)?;
        let kernel = GemmKernel::tensor_core(m, n, k).with_element(Element::Bf16);
        let staged = GemmKernel::staged(m, n, k).with_element(Element::Bf16);
        let args = args![&a, &b, &c];
        let seconds = [
            launch(&stream, &kernel, args)?,
            launch(&stream, &kernel.with_transposed(false, true), args)?,
            launch(&stream, &staged, args)?,
            launch(&stream, &staged.with_slices(1), args)?,
        ];
        let [plain, transposed, in_stages, whole] = seconds.map(|s| s * 1e6);
        let speed = 2.0 * (m * n * k) as f64 / seconds[0] / 1e12;
        println!(
            "{:>20} {plain:>9.1} {transposed:>9.1} {in_stages:>9.1} {whole:>9.1} {speed:>9.3}",
            format!("{m} x {n} x {k}")
        );
    }
    Ok(())
}

/// Those of the tables of PyTorch.
pub(super) const ODD: [[usize; 3]; 22] = [
    [1, 4096, 4096],
    [4, 4096, 4096],
    [16, 4096, 4096],
    [64, 4096, 4096],
    [128, 4096, 11008],
    [17, 1000, 333],
    [33, 65, 4097],
    [255, 255, 255],
    [512, 512, 8192],
    [1000, 1000, 1000],
    [4096, 128, 4096],
    [4096, 4096, 128],
    [8192, 64, 8192],
    [100, 30000, 256],
    [30000, 100, 256],
    [2048, 2048, 65536],
    [3000, 5000, 700],
    [777, 3333, 1111],
    [4096, 11008, 4096],
    [2049, 2049, 2049],
    [1024, 1024, 1024],
    [2048, 2048, 2048],
];

/// Products of few rows, of bf16 and f32, in GB/s of the other factor.
pub(super) fn thin(device: &Device, shapes: &[[usize; 2]]) -> Result<()> {
    let stream = device.create_stream()?;
    println!("\nproducts of few rows, GB/s of B, which is k x n");
    println!(
        "{:>14} {:>5} {:>9} {:>9} {:>9} {:>9}",
        "n x k", "rows", "bf16", "B^T", "f32", "B^T"
    );
    for &[n, k] in shapes {
        let b16 = numbers(device, n * k, half::bf16::from_f32)?;
        let b32 = numbers(device, n * k, |x| x)?;
        for m in [1, 2, 4, 8, 16] {
            let a16 = numbers(device, m * k, half::bf16::from_f32)?;
            let a32 = numbers(device, m * k, |x| x)?;
            let (c16, c32) = (device.zeros::<half::bf16>(m * n)?, device.zeros::<f32>(m * n)?);
            let (plain, half) = (
                GemmKernel::thin(m, n, k),
                GemmKernel::tensor_core(m, n, k).with_element(Element::Bf16),
            );
            let seconds = [
                launch(&stream, &half, args![&a16, &b16, &c16])?,
                launch(
                    &stream,
                    &half.with_transposed(false, true),
                    args![&a16, &b16, &c16],
                )?,
                launch(&stream, &plain, args![&a32, &b32, &c32])?,
                launch(
                    &stream,
                    &plain.with_transposed(false, true),
                    args![&a32, &b32, &c32],
                )?,
            ];
            let bytes = [2.0, 2.0, 4.0, 4.0];
            print!("{:>14} {m:>5}", format!("{n} x {k}"));
            for (seconds, bytes) in seconds.iter().zip(bytes) {
                print!(" {:>9.0}", bytes * (n * k) as f64 / seconds / 1e9);
            }
            println!();
        }
    }
    Ok(())
}

/// Products of groups of rows, of bf16, as many each, and as many together but most in one group: `[groups, rows, n, k]`.
pub(super) fn grouped(device: &Device, shapes: &[[usize; 4]]) -> Result<()> {
    let stream = device.create_stream()?;
    println!("\nproducts of groups of rows, bf16, TFLOP/s");
    println!(
        "{:>8} {:>8} {:>14} {:>9} {:>9} {:>9}",
        "groups", "rows", "n x k", "even", "B^T", "uneven"
    );
    for &[groups, rows, n, k] in shapes {
        let a = numbers(device, rows * k, half::bf16::from_f32)?;
        let b = numbers(device, groups * n * k, half::bf16::from_f32)?;
        let c = device.zeros::<half::bf16>(rows * n)?;
        let even: Vec<u32> = (0..=groups).map(|i| (rows * i / groups) as u32).collect();
        let uneven: Vec<u32> = (0..=groups)
            .map(|i| if i == groups { rows } else { i })
            .map(|x| x as u32)
            .collect();
        let (even, uneven) = (device.upload(&even)?, device.upload(&uneven)?);
        let kernel = GroupedGemmKernel::new(groups, rows, n, k).with_element(Element::Bf16);
        let seconds = [
            launch(&stream, &kernel, args![&a, &b, &even, &c])?,
            launch(&stream, &kernel.with_transposed(true), args![&a, &b, &even, &c])?,
            launch(&stream, &kernel, args![&a, &b, &uneven, &c])?,
        ];
        print!("{groups:>8} {rows:>8} {:>14}", format!("{n} x {k}"));
        for seconds in seconds {
            print!(" {:>9.3}", 2.0 * (rows * n * k) as f64 / seconds / 1e12);
        }
        println!();
    }
    Ok(())
}
