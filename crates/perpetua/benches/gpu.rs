//! What GPUs reach, as a table: bandwidth of checked kernels, cost of launches, graphs, copies, first use. Each row
//! stands beside what the driver itself gives in the same run. A backend that is not there is reported and left out.

use std::hint::black_box;
use std::time::{Duration, Instant};

use perpetua::device::{BackendKind, Device, KernelSpec, LaunchConfig, Result, Stream};
use perpetua::prelude::*;

/// One read and one write an element.
#[kernel]
fn stream_scale(x: &[f32], y: &mut [f32], a: f32) {
    let i = global_id_x();
    if i < y.len() {
        y[i] = a * x[i];
    }
}

/// The same, four elements a lane: four loads in flight before the first is used, as a GPU with this much bandwidth needs.
#[kernel]
fn stream_scale_4(x: &[f32], y: &mut [f32], a: f32) {
    let step = local_size();
    let i = group_id_x() * step * 4 + local_id_x();
    if i + 3 * step < y.len() {
        let v0 = x[i];
        let v1 = x[i + step];
        let v2 = x[i + 2 * step];
        let v3 = x[i + 3 * step];
        y[i] = a * v0;
        y[i + step] = a * v1;
        y[i + 2 * step] = a * v2;
        y[i + 3 * step] = a * v3;
    } else {
        let mut j = i;
        while j < y.len() && j <= i + 3 * step {
            y[j] = a * x[j];
            j += step;
        }
    }
}

/// The same, eight elements a lane.
#[kernel]
fn stream_scale_8(x: &[f32], y: &mut [f32], a: f32) {
    let step = local_size();
    let i = group_id_x() * step * 8 + local_id_x();
    if i + 7 * step < y.len() {
        let v0 = x[i];
        let v1 = x[i + step];
        let v2 = x[i + 2 * step];
        let v3 = x[i + 3 * step];
        let v4 = x[i + 4 * step];
        let v5 = x[i + 5 * step];
        let v6 = x[i + 6 * step];
        let v7 = x[i + 7 * step];
        y[i] = a * v0;
        y[i + step] = a * v1;
        y[i + 2 * step] = a * v2;
        y[i + 3 * step] = a * v3;
        y[i + 4 * step] = a * v4;
        y[i + 5 * step] = a * v5;
        y[i + 6 * step] = a * v6;
        y[i + 7 * step] = a * v7;
    } else {
        let mut j = i;
        while j < y.len() && j <= i + 7 * step {
            y[j] = a * x[j];
            j += step;
        }
    }
}

/// Four numbers that lie together.
#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Four {
    a: f32,
    b: f32,
    c: f32,
    d: f32,
}

/// `v` times `a`.
#[device]
fn scaled(v: Four, a: f32) -> Four {
    Four {
        a: a * v.a,
        b: a * v.b,
        c: a * v.c,
        d: a * v.d,
    }
}

/// The same with two times four elements that lie together a lane.
#[kernel]
fn stream_scale_structs(x: &[Four], y: &mut [Four], a: f32) {
    let step = local_size();
    let i = group_id_x() * step * 2 + local_id_x();
    if i + step < y.len() {
        let v0 = x[i];
        let v1 = x[i + step];
        y[i] = scaled(v0, a);
        y[i + step] = scaled(v1, a);
    } else if i < y.len() {
        y[i] = scaled(x[i], a);
    }
}

/// Lanes per block in x.
#[device]
fn local_size() -> usize {
    block_dim_x() as usize
}

/// Nothing, with the arguments of a small kernel.
#[kernel]
fn nothing(x: &[f32], y: &mut [f32], a: f32) {
    let i = global_id_x();
    if i > 1_000_000_000 {
        y[0] = a + x[0];
    }
}

/// About sixty lines of ordinary code, for the time of a first use.
#[kernel]
fn sixty_lines(image: &[f32], out: &mut [f32], width: u32, height: u32, sigma: f32) {
    let w = width as usize;
    let h = height as usize;
    let x = global_id_x();
    let y = global_id_y();
    if x >= w || y >= h {
        return;
    }
    let mut sum = 0.0;
    let mut weight = 0.0;
    let center = image[y * w + x];
    for dy in 0..5usize {
        for dx in 0..5usize {
            let sy = (y + dy).max(2) - 2;
            let sx = (x + dx).max(2) - 2;
            if sx >= w || sy >= h {
                continue;
            }
            let v = image[sy * w + sx];
            let d = v - center;
            let distance = (dx * dx + dy * dy) as f32;
            let k = (-(d * d) / (2.0 * sigma * sigma) - distance * 0.1).exp();
            sum += k * v;
            weight += k;
        }
    }
    let mut result = sum / weight;
    let class = if result < 0.25 {
        0
    } else if result < 0.5 {
        1
    } else {
        2
    };
    match class {
        0 => result *= 0.5,
        1 => {
            let mut steps = 0;
            while result < 0.4 && steps < 8 {
                result += 0.05;
                steps += 1;
            }
        }
        _ => {
            let t = (result - 0.5) * 2.0;
            result = 0.5 + 0.5 * t.sqrt();
        }
    }
    let bits = result.to_bits();
    let noise = ((bits ^ (x as u32).wrapping_mul(0x9e37_79b9)) >> 16) & 0xff;
    let dither = noise as f32 / 255.0 - 0.5;
    let shaped = (result + dither / 256.0).clamp(0.0, 1.0);
    out[y * w + x] = shaped;
}

/// Median of several runs of `f`.
fn median(runs: usize, mut f: impl FnMut() -> Result<Duration>) -> Result<Duration> {
    let mut times = (0..runs).map(|_| f()).collect::<Result<Vec<_>>>()?;
    times.sort();
    Ok(times[times.len() / 2])
}

/// Wall time of `n` turns of `work` with the stream drained before and after.
fn drained(stream: &Stream, n: u32, mut work: impl FnMut() -> Result<()>) -> Result<Duration> {
    stream.synchronize()?;
    let start = Instant::now();
    for _ in 0..n {
        work()?;
    }
    stream.synchronize()?;
    Ok(start.elapsed() / n)
}

fn row(backend: BackendKind, name: &str, value: String) {
    println!("summary: {backend:<6} {name:<58} {value}");
}

fn bandwidth(bytes: u64, time: Duration) -> String {
    format!("{:.0} GB/s", bytes as f64 / time.as_secs_f64() * 1e-9)
}

fn micros(time: Duration) -> String {
    format!("{:.2} us", time.as_secs_f64() * 1e6)
}

fn streaming(device: &Device) -> Result<()> {
    let kind = device.backend();
    let stream = device.default_stream();
    let largest = device.info().limits.max_buffer_bytes;
    let n = (largest / 4).min(32_768 * 4096) as usize;
    let host: Vec<f32> = (0..n).map(|i| (i % 1000) as f32 * 0.25).collect();
    let (x, y) = (device.upload(&host)?, device.zeros::<f32>(n)?);
    drop(host);
    let bytes = 2 * 4 * n as u64;
    let copy = median(5, || drained(&stream, 40, || stream.copy(&x, &y)))?;
    row(
        kind,
        &format!("device copy, {} MiB each way", n / 262_144),
        bandwidth(bytes, copy),
    );
    let kernels = [
        ("one element a lane", stream_scale::kernel(), 1),
        ("four elements a lane", stream_scale_4::kernel(), 4),
        ("eight elements a lane", stream_scale_8::kernel(), 8),
    ];
    let in_structs = stream_scale_structs::kernel();
    let (quads, results) = (x.cast::<Four>()?, y.cast::<Four>()?);
    for block in [128, 256, 512] {
        let config = LaunchConfig::linear(n.div_ceil(8), block);
        let time = median(5, || {
            drained(&stream, 40, || {
                stream.launch(&in_structs, config, args![&quads, &results, 1.5f32])
            })
        })?;
        row(
            kind,
            &format!("checked #[kernel] y = a x, two structs of four a lane, block {block}"),
            bandwidth(bytes, time),
        );
    }
    for (name, kernel, each) in kernels {
        for block in [128, 256, 512] {
            let config = LaunchConfig::linear(n.div_ceil(each), block);
            let time = median(5, || {
                drained(&stream, 40, || {
                    stream.launch(&kernel, config, args![&x, &y, 1.5f32])
                })
            })?;
            row(
                kind,
                &format!("checked #[kernel] y = a x, {name}, block {block}"),
                bandwidth(bytes, time),
            );
        }
        let right = y
            .slice(..1000)?
            .read()?
            .iter()
            .enumerate()
            .all(|(i, v)| *v == i as f32 * 0.25 * 1.5);
        if !right {
            row(kind, name, "WRONG RESULT".into());
        }
    }
    Ok(())
}

fn launches(device: &Device) -> Result<()> {
    let kind = device.backend();
    let stream = device.default_stream();
    let (x, y) = (device.zeros::<f32>(256)?, device.zeros::<f32>(256)?);
    let kernel = device.kernel(&nothing::kernel())?;
    let config = LaunchConfig::linear(256, 256);
    let launch = |stream: &Stream| stream.launch(&kernel, config, args![&x, &y, 1.0f32]);
    // Issue time alone: fewer launches than the driver queues before it blocks.
    let issue = median(21, || {
        stream.synchronize()?;
        let start = Instant::now();
        for _ in 0..500 {
            launch(&stream)?;
        }
        let issued = start.elapsed() / 500;
        stream.synchronize()?;
        Ok(issued)
    })?;
    row(kind, "launch, issue time", micros(issue));
    let through = median(9, || drained(&stream, 2000, || launch(&stream)))?;
    row(kind, "launch, back to back", micros(through));
    let graph = stream.capture(|s| (0..1000).try_for_each(|_| launch(s)))?;
    let replay = median(9, || drained(&stream, 5, || graph.launch(&stream)))? / 1000;
    row(kind, "launch in a graph of 1000, replayed", micros(replay));
    let small = median(101, || {
        let start = Instant::now();
        launch(&stream)?;
        black_box(y.read()?);
        Ok(start.elapsed())
    })?;
    row(kind, "one dispatch with 1 KiB read back", micros(small));
    Ok(())
}

fn copies(device: &Device) -> Result<()> {
    let kind = device.backend();
    let stream = device.default_stream();
    const N: usize = 256 << 20;
    let pinned = device.pin(&vec![1u8; N])?;
    let buffer = device.zeros::<u8>(N)?;
    let up = median(5, || drained(&stream, 4, || pinned.copy_to(&stream, &buffer)))?;
    row(kind, "pinned host to device", bandwidth(N as u64, up));
    let mut back = Some(pinned);
    let down = median(5, || {
        stream.synchronize()?;
        let start = Instant::now();
        if let Some(pinned) = back.take() {
            back = Some(pinned.read_from(&stream, &buffer)?.wait()?);
        }
        Ok(start.elapsed())
    })?;
    row(kind, "device to pinned host", bandwidth(N as u64, down));
    Ok(())
}

fn first_use(device: &Device) -> Result<()> {
    let kind = device.backend();
    let spec = sixty_lines::kernel();
    let start = Instant::now();
    let verified = spec.verified(64)?;
    row(
        kind,
        "60-line kernel: lowering and verification, first time",
        micros(start.elapsed()),
    );
    let start = Instant::now();
    let rendered = perpetua_ir::back::ptx::render(&verified, 90).map(|s| s.text.len());
    row(
        kind,
        &format!(
            "60-line kernel: PTX ({} bytes), first time",
            rendered.unwrap_or(0)
        ),
        micros(start.elapsed()),
    );
    let start = Instant::now();
    black_box(device.kernel(&spec)?);
    row(
        kind,
        "60-line kernel: compile or load (driver or disk cache)",
        micros(start.elapsed()),
    );
    let again = Device::new(kind, 0)?;
    let start = Instant::now();
    black_box(again.kernel(&sixty_lines::kernel())?);
    row(
        kind,
        "60-line kernel: from the disk cache, machine code included",
        micros(start.elapsed()),
    );
    Ok(())
}

fn main() -> Result<()> {
    for kind in [BackendKind::Cuda, BackendKind::Wgpu] {
        let device = match Device::new(kind, 0) {
            Ok(device) => device,
            Err(error) => {
                println!("summary: {kind:<6} skipped: {error}");
                continue;
            }
        };
        println!("{device:?}");
        type Part = fn(&Device) -> Result<()>;
        let parts: [(&str, Part); 4] = [
            ("first use", first_use),
            ("launches", launches),
            ("copies", copies),
            ("streaming", streaming),
        ];
        for (name, part) in parts {
            if let Err(error) = part(&device) {
                row(kind, name, format!("failed: {error}"));
            }
        }
    }
    #[cfg(feature = "cuda")]
    raw::run();
    Ok(())
}

/// The same through the driver alone, for the rows above to stand beside.
#[cfg(feature = "cuda")]
mod raw {
    use std::ffi::c_void;
    use std::time::Instant;

    use cudarc::driver::sys;

    const PTX: &std::ffi::CStr = c".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry nothing(.param .u64 a, .param .u64 b, .param .f32 c)\n{\nret;\n}\n";

    fn ok(code: sys::CUresult) -> Option<()> {
        (code == sys::CUresult::CUDA_SUCCESS).then_some(())
    }

    pub(super) fn run() {
        // SAFETY: plain driver calls in the order that the driver demands, each checked; pointers are to locals that
        // outlive the calls.
        if unsafe { sys::is_culib_present() } && unsafe { measure() }.is_none() {
            println!("summary: driver  a driver call failed");
        }
    }

    unsafe fn measure() -> Option<()> {
        // SAFETY: see `run`.
        unsafe {
            ok(sys::cuInit(0))?;
            let (mut device, mut context, mut module) = (0, std::ptr::null_mut(), std::ptr::null_mut());
            let (mut function, mut stream) = (std::ptr::null_mut(), std::ptr::null_mut());
            ok(sys::cuDeviceGet(&raw mut device, 0))?;
            ok(sys::cuDevicePrimaryCtxRetain(&raw mut context, device))?;
            ok(sys::cuCtxSetCurrent(context))?;
            ok(sys::cuModuleLoadData(&raw mut module, PTX.as_ptr().cast()))?;
            ok(sys::cuModuleGetFunction(
                &raw mut function,
                module,
                c"nothing".as_ptr(),
            ))?;
            ok(sys::cuStreamCreate(&raw mut stream, 1))?;
            let (mut a, mut b, mut c) = (0u64, 0u64, 1.0f32);
            let mut params: [*mut c_void; 3] =
                [(&raw mut a).cast(), (&raw mut b).cast(), (&raw mut c).cast()];
            let mut launch = || {
                let p = params.as_mut_ptr();
                ok(sys::cuLaunchKernel(
                    function,
                    1,
                    1,
                    1,
                    256,
                    1,
                    1,
                    0,
                    stream,
                    p,
                    std::ptr::null_mut(),
                ))
            };
            let mut times = Vec::new();
            for _ in 0..21 {
                ok(sys::cuStreamSynchronize(stream))?;
                let start = Instant::now();
                for _ in 0..500 {
                    launch()?;
                }
                times.push(start.elapsed() / 500);
            }
            times.sort();
            println!(
                "summary: driver {:<58} {:.2} us",
                "launch, issue time",
                times[10].as_secs_f64() * 1e6
            );
            ok(sys::cuStreamSynchronize(stream))?;
            let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
            ok(sys::cuStreamBeginCapture_v2(stream, mode))?;
            for _ in 0..1000 {
                launch()?;
            }
            let (mut graph, mut exec) = (std::ptr::null_mut(), std::ptr::null_mut());
            ok(sys::cuStreamEndCapture(stream, &raw mut graph))?;
            ok(sys::cuGraphInstantiateWithFlags(&raw mut exec, graph, 0))?;
            let mut times = Vec::new();
            for _ in 0..9 {
                ok(sys::cuStreamSynchronize(stream))?;
                let start = Instant::now();
                for _ in 0..5 {
                    ok(sys::cuGraphLaunch(exec, stream))?;
                }
                ok(sys::cuStreamSynchronize(stream))?;
                times.push(start.elapsed() / 5000);
            }
            times.sort();
            let name = "launch in a graph of 1000, replayed";
            println!(
                "summary: driver {name:<58} {:.2} us",
                times[4].as_secs_f64() * 1e6
            );
            Some(())
        }
    }
}
