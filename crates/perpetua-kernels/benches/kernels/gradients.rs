//! What training and decoding ask for: gradients of rows and of attention, cross entropy, attention to pages.

use perpetua_device::{Buffer, Device, GpuType, args};
use perpetua_kernels::{
    AttentionKernel, CrossEntropyBackwardKernel, CrossEntropyKernel, Element, LayerNormBackwardKernel,
    PagedAttentionKernel, Pages, Reduction, Result, RmsNormBackwardKernel, RmsNormKernel,
    SoftmaxBackwardKernel,
};

use super::{launch, numbers, time};

/// Kernels over rows, in GB/s of what they must read and write: cross entropy one matrix, its gradient two, the others three, the norm of a sum four; gradients of norms also by kernels that read rows once.
pub(super) fn rows<T: GpuType>(
    device: &Device,
    shapes: &[[usize; 2]],
    element: Element,
    of: fn(f32) -> T,
) -> Result<()> {
    let stream = device.create_stream()?;
    println!("\nrows of {element:?}, GB/s of what must be read and written");
    println!(
        "{:>16} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "shape",
        "loss",
        "gradient",
        "softmax",
        "log",
        "layer norm",
        "once",
        "RMS norm",
        "once",
        "of a sum",
        "copy"
    );
    for &[rows, columns] in shapes {
        let [x, dy] = [
            numbers(device, rows * columns, of)?,
            numbers(device, rows * columns, of)?,
        ];
        let [y, sum] = [
            device.zeros::<T>(rows * columns)?,
            device.zeros::<T>(rows * columns)?,
        ];
        let weight = numbers(device, columns, of)?;
        let [dweight, dbias] = [device.zeros::<T>(columns)?, device.zeros::<T>(columns)?];
        let labels: Vec<i32> = (0..rows).map(|row| (row * 7919 % columns) as i32).collect();
        let labels = device.upload(&labels)?;
        let [losses, logs] = [device.zeros::<f32>(rows)?, device.zeros::<f32>(rows)?];
        let (total, slope) = (device.zeros::<f32>(2)?, device.full(1, 1.0f32)?);
        let loss = CrossEntropyKernel::new(rows, columns)
            .with_element(element)
            .with_reduction(Reduction::Mean);
        let of_loss = CrossEntropyBackwardKernel::new(rows, columns)
            .with_element(element)
            .with_reduction(Reduction::Mean);
        let softmax = SoftmaxBackwardKernel::new(rows, columns).with_element(element);
        let layer = LayerNormBackwardKernel::new(rows, columns, 1e-5).with_element(element);
        let rms = RmsNormBackwardKernel::new(rows, columns, 1e-5).with_element(element);
        let of_sum = RmsNormKernel::new(rows, columns, 1e-5)
            .with_element(element)
            .with_residual();
        let matrix = x.bytes() as f64;
        let all = [
            (
                1.0,
                launch(&stream, &loss, args![&x, &labels, &losses, &logs, &total])?,
            ),
            (
                2.0,
                launch(&stream, &of_loss, args![&x, &labels, &logs, &slope, &total, &y])?,
            ),
            (3.0, launch(&stream, &softmax, args![&x, &dy, &y])?),
            (3.0, launch(&stream, &softmax.log(), args![&x, &dy, &y])?),
            (
                3.0,
                launch(&stream, &layer, args![&x, &weight, &dy, &y, &dweight, &dbias])?,
            ),
            (
                3.0,
                launch(
                    &stream,
                    &layer.reading_once(true),
                    args![&x, &weight, &dy, &y, &dweight, &dbias],
                )?,
            ),
            (3.0, launch(&stream, &rms, args![&x, &weight, &dy, &y, &dweight])?),
            (
                3.0,
                launch(
                    &stream,
                    &rms.reading_once(true),
                    args![&x, &weight, &dy, &y, &dweight],
                )?,
            ),
            (4.0, launch(&stream, &of_sum, args![&x, &dy, &weight, &sum, &y])?),
            (2.0, time(&stream, || Ok(stream.copy(&x, &y)?))?),
        ];
        let [a, b, c, d, e, f, g, h, i, j] = all.map(|(matrices, seconds)| matrices * matrix / seconds / 1e9);
        println!(
            "{:>16} {a:>9.0} {b:>9.0} {c:>9.0} {d:>9.0} {e:>10.0} {f:>9.0} {g:>9.0} {h:>9.0} {i:>9.0} {j:>9.0}",
            format!("{rows} x {columns}")
        );
    }
    Ok(())
}

/// Attention forward and backward: the work of both is 3.5 times that of forward, however often a kernel computes something again.
pub(super) fn attention(device: &Device, shapes: &[[usize; 2]]) -> Result<()> {
    let stream = device.create_stream()?;
    println!(
        "\nattention of bf16, batch 2, 16 heads, TFLOP/s: gradients, and forward and gradients together"
    );
    println!(
        "{:>8} {:>5} {:>7} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "length", "dim", "", "forward", "gradients", "together", "atomic", "together"
    );
    for &[n, dim] in shapes {
        let len = 2 * 16 * n * dim;
        let x = numbers(device, len, half::bf16::from_f32)?;
        let halves = || -> Result<Buffer<half::bf16>> { Ok(device.zeros::<half::bf16>(len)?) };
        let (out, dq, dk, dv) = (halves()?, halves()?, halves()?, halves()?);
        let logs = device.zeros::<f32>(2 * 16 * n)?;
        let full = AttentionKernel::new(2, 16, [n, n], dim)
            .with_element(Element::Bf16)
            .with_logs();
        for (name, kernel, part) in [("full", full, 1.0), ("causal", full.causal(), 0.5)] {
            let work = 4.0 * 2.0 * 16.0 * (n * n * dim) as f64 * part;
            let forward = launch(&stream, &kernel, args![&x, &x, &x, &out, &logs])?;
            let args = args![&x, &x, &x, &out, &logs, &x, &dq, &dk, &dv];
            let backward = launch(&stream, &kernel.backward(), args)?;
            let atomic = launch(&stream, &kernel.backward().with_atomic_sums(), args)?;
            let speed = |work: f64, seconds: f64| work / seconds / 1e12;
            println!(
                "{n:>8} {dim:>5} {name:>7} {:>10.3} {:>10.3} {:>10.3} {:>10.3} {:>10.3}",
                speed(work, forward),
                speed(2.5 * work, backward),
                speed(3.5 * work, forward + backward),
                speed(2.5 * work, atomic),
                speed(3.5 * work, forward + atomic)
            );
        }
    }
    Ok(())
}

/// One query an entry against keys in pages, in GB/s of keys and values; `[batch, keys, keys of a page]`, 32 heads on 8 of 128 columns.
pub(super) fn decode(device: &Device, shapes: &[[usize; 3]]) -> Result<()> {
    let stream = device.create_stream()?;
    println!("\nattention to pages, bf16, 32 heads on 8 of 128 columns, GB/s of keys and values");
    println!(
        "{:>6} {:>8} {:>6} {:>10} {:>10}",
        "batch", "keys", "page", "GB/s", "us"
    );
    for &[batch, keys, rows] in shapes {
        let of_entry = keys.div_ceil(rows);
        let count = batch * of_entry;
        let pages = Pages {
            count,
            rows,
            of_entry,
        };
        let len = count * rows * 8 * 128;
        let few = numbers(device, 1 << 20, half::bf16::from_f32)?;
        let [k, v] = [device.zeros::<half::bf16>(len)?, device.zeros::<half::bf16>(len)?];
        for buffer in [&k, &v] {
            for from in (0..len).step_by(1 << 20) {
                let to = (from + (1 << 20)).min(len);
                stream.copy(&few.slice(0..to - from)?, &buffer.slice(from..to)?)?;
            }
        }
        let q = numbers(device, batch * 32 * 128, half::bf16::from_f32)?;
        let out = device.zeros::<half::bf16>(batch * 32 * 128)?;
        // Pages of an entry lie apart from each other.
        let table: Vec<u32> = (0..count)
            .map(|i| (i % of_entry * batch + i / of_entry) as u32)
            .collect();
        let (table, lengths) = (device.upload(&table)?, device.full(batch, keys as u32)?);
        let kernel = PagedAttentionKernel::new(batch, 32, 128, pages)
            .with_key_heads(8)
            .with_element(Element::Bf16);
        let seconds = launch(&stream, &kernel, args![&q, &k, &v, &table, &lengths, &out])?;
        let bytes = 2.0 * 2.0 * (batch * keys * 8 * 128) as f64;
        println!(
            "{batch:>6} {keys:>8} {rows:>6} {:>10.0} {:>10.1}",
            bytes / seconds / 1e9,
            seconds * 1e6
        );
    }
    Ok(())
}
