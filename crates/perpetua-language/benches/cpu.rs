//! What the CPU reaches: an empty kernel from launch to result; a streaming kernel and a 5-point stencil beside the
//! same loops written by hand with rayon; and kernels whose lanes loop as long as arguments say, as machine code beside their native
//! bodies. Each pair is measured in turns, so that both see the same machine; the ratio of the two best times is the figure
//! (1.00: as fast as by hand, or as native code). A part of a name as argument chooses.

use std::hint::black_box;
use std::time::{Duration, Instant};

use multiversion::multiversion;
use perpetua::device::{
    BackendKind, Buffer, CompileOptions, Device, Kernel, KernelArg, KernelSource, KernelSpec, Result,
};
use perpetua::prelude::*;
use rayon::prelude::*;

#[kernel]
fn empty(out: &mut [u32]) {
    out[0] = 1;
}

#[kernel]
fn stream_scale(x: &[f32], y: &mut [f32], a: f32) {
    let i = global_id_x();
    if i < y.len() {
        y[i] = a * x[i];
    }
}

/// CUDA's idiom, with `i32` indices.
#[kernel]
fn wave_step(p: &[f32], q: &mut [f32], c: f32, width: i32, height: i32) {
    let x = block_idx_x() * block_dim_x() + thread_idx_x();
    let y = block_idx_y() * block_dim_y() + thread_idx_y();
    if x < 1 || x >= width - 1 || y < 1 || y >= height - 1 {
        return;
    }
    let i = (y * width + x) as usize;
    let w = width as usize;
    let around = p[i - 1] + p[i + 1] + p[i - w] + p[i + w];
    q[i] = 2.0 * p[i] - q[i] + c * (around - 4.0 * p[i]);
}

#[kernel]
fn wave_stencil(p: &[f32], q: &mut [f32], c: f32, pos: GridPos) {
    let i = pos.idx();
    let around = pos.west(p) + pos.east(p) + pos.north(p) + pos.south(p);
    q[i] = 2.0 * p[i] - q[i] + c * (around - 4.0 * p[i]);
}

/// A row a lane.
#[kernel]
fn softmax(x: &[f32], y: &mut [f32], columns: u32) {
    let n = columns as usize;
    let at = global_id_x() * n;
    if at + n <= y.len() && n > 0 {
        let mut most = x[at];
        for i in 1..n {
            most = most.max(x[at + i]);
        }
        let mut sum = 0.0;
        for i in 0..n {
            sum += (x[at + i] - most).exp();
        }
        for i in 0..n {
            y[at + i] = (x[at + i] - most).exp() / sum;
        }
    }
}

/// A row a lane.
#[kernel]
fn matrix_vector(a: &[f32], x: &[f32], y: &mut [f32], columns: u32) {
    let (row, n) = (global_id_x(), columns as usize);
    if row < y.len() {
        let mut sum = 0.0;
        for i in 0..n {
            sum += a[row * n + i] * x[i];
        }
        y[row] = sum;
    }
}

/// A column a lane.
#[kernel]
fn column_sums(x: &[f32], y: &mut [f32], width: u32, rows: u32) {
    let (column, w) = (global_id_x(), width as usize);
    if column < w {
        let mut sum = 0.0;
        for row in 0..rows as usize {
            sum += x[row * w + column];
            y[row * w + column] = sum;
        }
    }
}

/// A cell a lane.
#[kernel]
fn convolution(x: &[f32], weights: &[f32], y: &mut [f32], width: u32, height: u32, radius: u32) {
    let (column, row) = (global_id_x(), global_id_y());
    let (w, h, r) = (width as usize, height as usize, radius as usize);
    if column >= r && column + r < w && row >= r && row + r < h {
        let mut sum = 0.0;
        for down in 0..2 * r + 1 {
            for right in 0..2 * r + 1 {
                let weight = weights[down * (2 * r + 1) + right];
                sum += weight * x[(row + down - r) * w + column + right - r];
            }
        }
        y[row * w + column] = sum;
    }
}

/// By hand: the loop over a part of the buffers, compiled for the same levels of SIMD.
#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512cd+avx512dq+avx512vl+avx2+fma",
    "x86_64+avx2+fma"
))]
fn scale_by_hand(x: &[f32], y: &mut [f32], a: f32) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = a * x;
    }
}

/// By hand: one row; `north`, `here` and `south` are rows of `p`.
#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512cd+avx512dq+avx512vl+avx2+fma",
    "x86_64+avx2+fma"
))]
fn wave_row_by_hand(north: &[f32], here: &[f32], south: &[f32], q: &mut [f32], c: f32) {
    let n = q.len();
    let (north, here, south) = (&north[..n], &here[..n], &south[..n]);
    for i in 1..n - 1 {
        let around = here[i - 1] + here[i + 1] + north[i] + south[i];
        q[i] = 2.0 * here[i] - q[i] + c * (around - 4.0 * here[i]);
    }
}

fn stream_by_hand(x: &[f32], y: &mut [f32], a: f32) {
    let part = x.len().div_ceil(rayon::current_num_threads() * 4);
    y.par_chunks_mut(part)
        .zip(x.par_chunks(part))
        .for_each(|(y, x)| scale_by_hand(x, y, a));
}

fn wave_by_hand(p: &[f32], q: &mut [f32], c: f32, width: usize) {
    let height = q.len() / width;
    q.par_chunks_mut(width)
        .enumerate()
        .skip(1)
        .take(height - 2)
        .with_min_len(16)
        .for_each(|(y, q)| {
            let row = |y: usize| &p[y * width..(y + 1) * width];
            wave_row_by_hand(row(y - 1), row(y), row(y + 1), q, c);
        });
}

/// The best times of the two, run in turns.
fn in_turns(mut ours: impl FnMut(), mut theirs: impl FnMut()) -> (Duration, Duration) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let time = |f: &mut dyn FnMut()| {
        let start = Instant::now();
        f();
        start.elapsed()
    };
    for round in 0..60 {
        let (first, second) = (time(&mut ours), time(&mut theirs));
        if round >= 10 {
            a.push(first);
            b.push(second);
        }
    }
    a.sort_unstable();
    b.sort_unstable();
    (a[0], b[0])
}

fn report(name: &str, beside: &str, (ours, theirs): (Duration, Duration), bytes: usize) {
    let gigabytes = |time: Duration| bytes as f64 / time.as_secs_f64() / 1e9;
    println!(
        "{name:32} {:9.1} us {:6.1} GB/s | {beside} {:9.1} us {:6.1} GB/s | ratio {:.2}",
        ours.as_secs_f64() * 1e6,
        gigabytes(ours),
        theirs.as_secs_f64() * 1e6,
        gigabytes(theirs),
        theirs.as_secs_f64() / ours.as_secs_f64(),
    );
}

fn upload(device: &Device, count: usize) -> Result<(Vec<f32>, Buffer<f32>)> {
    let values: Vec<f32> = (0..count).map(|i| (i % 1000) as f32 / 1000.0).collect();
    let buffer = device.upload(&values)?;
    Ok((values, buffer))
}

fn against_hand(device: &Device) -> Result<()> {
    for count in [1 << 16, 1 << 20, 1 << 25] {
        let (x_host, x) = upload(device, count)?;
        let (mut y_host, y) = upload(device, count)?;
        let config = LaunchConfig::linear(count, 256);
        let times = in_turns(
            || {
                let launched = device.launch(&stream_scale::kernel(), config, args![&x, &y, 1.5f32]);
                black_box(launched.and_then(|()| device.synchronize())).ok();
            },
            || stream_by_hand(&x_host, black_box(&mut y_host), 1.5),
        );
        report(&format!("stream, {count} f32"), "by hand", times, count * 8);
    }
    for size in [256usize, 1024, 4096] {
        let count = size * size;
        let (p_host, p) = upload(device, count)?;
        let (mut q_host, q) = upload(device, count)?;
        let (n, m) = (size as i32, size as u32);
        let config = LaunchConfig::tiled(m, m, (16, 16));
        let times = in_turns(
            || {
                let args = args![&p, &q, 0.1f32, n, n];
                let launched = device.launch(&wave_step::kernel(), config, args);
                black_box(launched.and_then(|()| device.synchronize())).ok();
            },
            || wave_by_hand(&p_host, black_box(&mut q_host), 0.1, size),
        );
        report(
            &format!("5-point stencil, {size} x {size}"),
            "by hand",
            times,
            count * 12,
        );
        let times = in_turns(
            || {
                let args = args![&p, &q, 0.1f32, m, m];
                let launched = device.launch(&wave_stencil::kernel(), config, args);
                black_box(launched.and_then(|()| device.synchronize())).ok();
            },
            || wave_by_hand(&p_host, black_box(&mut q_host), 0.1, size),
        );
        report(
            &format!("  the same with GridPos, {size}"),
            "by hand",
            times,
            count * 12,
        );
    }
    Ok(())
}

/// A kernel as machine code, and its native body.
fn beside_native(
    device: &Device,
    (name, kernel): (&str, KernelFn),
    config: LaunchConfig,
    bytes: usize,
    args: &[KernelArg<'_>],
) -> Result<()> {
    let verified = kernel.verified(usize::BITS)?;
    let Some(native) = kernel.native() else {
        println!("{name}: it has no native body");
        return Ok(());
    };
    let compile = |source| device.compile(&source, &CompileOptions::default())?.only();
    let code = compile(KernelSource::Ir(&verified))?;
    let native = compile(KernelSource::Native(&native, Some(&verified)))?;
    let run = |kernel: &Kernel| {
        let launched = device.launch(kernel, config, args);
        black_box(launched.and_then(|()| device.synchronize())).ok();
    };
    let times = in_turns(|| run(&code), || run(&native));
    report(name, "native ", times, bytes);
    Ok(())
}

/// Kernels whose lanes loop as long as arguments say.
fn long_loops(device: &Device) -> Result<()> {
    let count = 1 << 22;
    let (_, x) = upload(device, count)?;
    let (_, y) = upload(device, count)?;
    for columns in [64u32, 1024] {
        let rows = count / columns as usize;
        let lanes = LaunchConfig::linear(rows, 64);
        let name = format!("softmax of rows of {columns}");
        let softmax = (&*name, softmax::kernel());
        beside_native(device, softmax, lanes, count * 8, args![&x, &y, columns])?;
        let name = format!("matrix, {columns} columns, by vector");
        let product = (&*name, matrix_vector::kernel());
        let sums = y.slice(..rows)?;
        beside_native(device, product, lanes, count * 4, args![&x, &y, &sums, columns])?;
    }
    let side = 2048u32;
    let name = ("sums of 2048 columns", column_sums::kernel());
    let lanes = LaunchConfig::linear(side as usize, 64);
    beside_native(device, name, lanes, count * 8, args![&x, &y, side, side])?;
    for radius in [1u32, 3, 8] {
        let (_, weights) = upload(device, 17 * 17)?;
        let name = format!("convolution, radius {radius}");
        let convolution = (&*name, convolution::kernel());
        let config = LaunchConfig::tiled(side, side, (64, 4));
        let args = args![&x, &weights, &y, side, side, radius];
        beside_native(device, convolution, config, count * 8, args)?;
    }
    Ok(())
}

/// The median time of a call, of a thousand after a hundred.
fn median(name: &str, mut call: impl FnMut() -> Result<()>) -> Result<()> {
    let mut times = Vec::new();
    for round in 0..1_100 {
        let start = Instant::now();
        call()?;
        if round >= 100 {
            times.push(start.elapsed());
        }
    }
    times.sort_unstable();
    let median = times[times.len() / 2].as_secs_f64() * 1e6;
    println!("{name:32} {median:9.2} us");
    Ok(())
}

fn empty_launches(device: &Device) -> Result<()> {
    let out = device.zeros::<u32>(1)?;
    let launch = || device.launch(&empty::kernel(), LaunchConfig::new(1, 1), args![&out]);
    median("empty kernel, to synchronised", || {
        launch()?;
        device.synchronize()
    })?;
    median("empty kernel, to result read", || {
        launch()?;
        out.read().map(drop)
    })
}

/// What measures and prints.
type Part = fn(&Device) -> Result<()>;

fn main() -> Result<()> {
    let device = Device::new(BackendKind::Cpu, 0)?;
    // Cargo adds arguments of its own.
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let is_wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| name.contains(wanted));
    let parts: [(&str, Part); 3] = [
        ("by hand", against_hand),
        ("long loops", long_loops),
        ("empty launches", empty_launches),
    ];
    let mut parts = parts.iter().filter(|(name, _)| is_wanted(name));
    parts.try_for_each(|(_, part)| part(&device))
}
