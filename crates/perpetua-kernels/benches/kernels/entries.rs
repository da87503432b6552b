//! What goes beside products: transposes, rows of tables, selections, rotary embeddings, random numbers, reductions.

use half::bf16;
use perpetua_device::{Device, args};
use perpetua_kernels::{
    ArgmaxKernel, DropoutKernel, Element, EmbeddingBackwardKernel, GatherKernel, Kernel, RandomKernel,
    ReduceKernel, Result, RotaryKernel, TopKKernel, TransposeKernel,
};

use super::{launch, numbers, time};

/// In GB/s of what must be read and written, and in microseconds. `part` of the sizes, for devices that are slow.
pub(super) fn entries(device: &Device, part: usize) -> Result<()> {
    let stream = device.create_stream()?;
    println!("\nbeside products, GB/s of what must be read and written");
    println!("{:>44} {:>9} {:>11}", "", "GB/s", "us");
    let row = |name: &str, bytes: f64, seconds: f64| {
        println!(
            "{name:>44} {:>9.0} {:>11.1}",
            bytes / seconds / 1e9,
            seconds * 1e6
        );
    };
    let (rows, columns) = (16384 / part, 8192 / part);
    let len = rows * columns;
    let size = |bytes: usize| (len * bytes) as f64;
    let x = numbers(device, len, |x| x)?;
    let half = numbers(device, len, bf16::from_f32)?;
    let (y, half_y) = (device.zeros::<f32>(len)?, device.zeros::<bf16>(len)?);
    let seconds = time(&stream, || Ok(stream.copy(&x, &y)?))?;
    row(&format!("copy of {rows} x {columns} f32"), 2.0 * size(4), seconds);
    let run = |kernel: &dyn Kernel, args: &[perpetua_device::KernelArg<'_>]| launch(&stream, kernel, args);

    row(
        "transpose, f32",
        2.0 * size(4),
        run(&TransposeKernel::of::<f32>(rows, columns), args![&x, &y])?,
    );
    let kernel = TransposeKernel::of::<bf16>(rows, columns);
    row(
        "transpose, bf16",
        2.0 * size(2),
        run(&kernel, args![&half, &half_y])?,
    );

    for (axes, name) in [(&[0usize, 1][..], "all"), (&[1], "of rows"), (&[0], "of columns")] {
        let kernel = ReduceKernel::sum(&[rows, columns], axes);
        row(&format!("sum {name}, f32"), size(4), run(&kernel, args![&x, &y])?);
        let kernel = kernel.with_element(Element::Bf16);
        row(
            &format!("sum {name}, bf16"),
            size(2),
            run(&kernel, args![&half, &half_y])?,
        );
    }
    let kernel = ReduceKernel::max(&[rows / 64, 64, columns], &[0, 2]);
    row(
        "max of the outer and the inner axis, f32",
        size(4),
        run(&kernel, args![&x, &y])?,
    );

    let kernel = RandomKernel::uniform(len, 1, 2);
    row("uniform numbers, f32", size(4), run(&kernel, args![&y])?);
    let kernel = RandomKernel::normal(len, 1, 2);
    row("normal numbers, f32", size(4), run(&kernel, args![&y])?);
    row(
        "dropout, f32",
        2.0 * size(4),
        run(&DropoutKernel::new(len, 0.1, 1, 2), args![&x, &y])?,
    );
    let kernel = DropoutKernel::new(len, 0.1, 1, 2).with_element(Element::Bf16);
    row(
        "dropout, bf16",
        2.0 * size(2),
        run(&kernel, args![&half, &half_y])?,
    );

    // Rows of 64 of a table, in no order.
    let count = len / 64;
    let indices: Vec<u32> = (0..count as u64)
        .map(|i| (i * 0x9E37_79B1 % count as u64) as u32)
        .collect();
    let indices = device.upload(&indices)?;
    let kernel = GatherKernel::of::<f32>([count, 64], count);
    row(
        "gather of rows of 64 f32",
        2.0 * size(4),
        run(&kernel, args![&x, &indices, &y])?,
    );

    let (tokens, heads) = (rows / 2, columns / 256);
    let taken = tokens * heads * 128;
    let positions = device.upload(&(0..tokens as u32).collect::<Vec<u32>>())?;
    let kernel = RotaryKernel::new(tokens, heads, 128).with_element(Element::Bf16);
    let rates = device.upload(&kernel.rates(10_000.0))?;
    let rotary_args = args![&half, &positions, &rates, &half_y];
    row(
        "rotary, bf16, halves",
        4.0 * taken as f64,
        run(&kernel, rotary_args)?,
    );
    row(
        "rotary, bf16, neighbours",
        4.0 * taken as f64,
        run(&kernel.interleaved(), rotary_args)?,
    );

    let (of_loss, words) = (1024 / part, 50257 / part);
    let indices = device.zeros::<u32>(64 * of_loss)?;
    let read = |bytes: usize| (of_loss * words * bytes) as f64;
    let scores = numbers(device, of_loss * words, |x| x)?;
    let half_scores = numbers(device, of_loss * words, bf16::from_f32)?;
    let kernel = ArgmaxKernel::new(of_loss, words);
    row(
        &format!("argmax of {of_loss} x {words} f32"),
        read(4),
        run(&kernel, args![&scores, &indices])?,
    );
    let kernel = kernel.with_element(Element::Bf16);
    row(
        "the same of bf16",
        read(2),
        run(&kernel, args![&half_scores, &indices])?,
    );
    let kernel = TopKKernel::new(of_loss, words, 50);
    row(
        "top 50 of them, f32",
        read(4),
        run(&kernel, args![&scores, &y, &indices])?,
    );
    let kernel = kernel.with_element(Element::Bf16);
    row(
        "top 50 of them, bf16",
        read(2),
        run(&kernel, args![&half_scores, &half_y, &indices])?,
    );

    // The gradient of a vocabulary's table, of which most rows have no token.
    let (tokens, wide) = (8192 / part, 2048 / part);
    let indices: Vec<u32> = (0..tokens).map(|i| (i * i % words) as u32).collect();
    let indices = device.upload(&indices)?;
    let kernel = EmbeddingBackwardKernel::new([words, wide], tokens).with_element(Element::Bf16);
    let table = device.zeros::<bf16>(words * wide)?;
    let bytes = 2.0 * ((words + tokens) * wide) as f64;
    row(
        &format!("gradient of a table of {words} x {wide} bf16"),
        bytes,
        run(&kernel, args![&half, &indices, &table])?,
    );
    Ok(())
}
