//! Machine code beside the interpreter, on one thread: nanoseconds a lane, and the time from verified IR to what runs (an
//! interpreter's program; machine code in executable memory). The kernel `long` has a hundred lines.
//! `cargo bench -p perpetua-cpu --features machine-code --bench machine_code`; with `-- --interpreter` the interpreter alone,
//! with a part of a name those kernels alone.

// A benchmark may unwrap: a failed expectation ends it.
#![allow(clippy::unwrap_used)]

#[cfg(machine_code)]
fn main() {
    imp::main();
}

#[cfg(not(machine_code))]
fn main() {
    println!("there is no machine code for this kind of processor");
}

#[cfg(machine_code)]
mod imp {
    use std::time::{Duration, Instant};

    use perpetua_cpu::interp::Width;
    use perpetua_cpu::interp::{Arg, BufferRef, Interpreter, LaunchConfig, MachineCode, Parallel};
    use perpetua_ir::front::rust::*;
    use perpetua_ir::verify::{Verified, verify};

    const SOURCES: [(&str, &str); 12] = [
        (
            "relu",
            "fn relu(x: &[f32], y: &mut [f32], n: usize, b: f32) { let i = global_id_x(); \
             if i < y.len() { y[i] = (2.0 * x[i] + b).max(0.0); } }",
        ),
        (
            "saxpy",
            "fn saxpy(x: &[f32], y: &mut [f32], n: usize, a: f32) { let i = global_id_x(); \
             if i < y.len() { y[i] += a * x[i]; } }",
        ),
        (
            "gelu",
            "fn gelu(x: &[f32], y: &mut [f32], n: usize, a: f32) { let i = global_id_x(); \
             if i < y.len() { let v = x[i]; \
             y[i] = 0.5 * v * (1.0 + (0.797_884_6 * (v + 0.044_715 * v * v * v)).tanh()); } }",
        ),
        (
            "stencil",
            "fn stencil(x: &[f32], y: &mut [f32], n: usize, a: f32) { \
             let i = global_id_x(); let j = global_id_y(); \
             if i > 0 && j > 0 && i < n - 1 && j < n - 1 { let p = j * n + i; \
             y[p] = a * (x[p - 1] + x[p + 1] + x[p - n] + x[p + n] + x[p]); } }",
        ),
        (
            "mandelbrot",
            "fn mandelbrot(x: &[f32], y: &mut [f32], n: usize, a: f32) { \
             let i = global_id_x(); let j = global_id_y(); \
             if i < n && j < n { let cx = i as f32 * a - 2.0; let cy = j as f32 * a - 1.0; \
             let mut zx = 0.0f32; let mut zy = 0.0f32; let mut k = 0u32; \
             while k < 100 && zx * zx + zy * zy < 4.0 { \
             let t = zx * zx - zy * zy + cx; zy = 2.0 * zx * zy + cy; zx = t; k += 1; } \
             y[j * n + i] = k as f32; } }",
        ),
        (
            "nbody",
            "fn nbody(x: &[f32], y: &mut [f32], n: usize, a: f32) { let i = global_id_x(); \
             if i < y.len() { let p = x[i]; let q = x[i + 1]; let r = x[i + 2]; let mut f = 0.0f32; \
             for j in 0..1024usize { let u = x[3 * j] - p; let v = x[3 * j + 1] - q; let w = x[3 * j + 2] - r; \
             let d = u * u + v * v + w * w + a; let s = 1.0 / d.sqrt(); f += u * s * s * s; } y[i] = f; } }",
        ),
        (
            "matmul",
            "fn matmul(x: &[f32], y: &mut [f32], n: usize, a: f32) { \
             let row = global_id_y(); let column = global_id_x(); \
             if row < n && column < n { let mut sum = 0.0f32; \
             for k in 0..n { sum += x[row * n + k] * x[k * n + column]; } y[row * n + column] = sum; } }",
        ),
        (
            "softmax",
            "fn softmax(x: &[f32], y: &mut [f32], n: usize, a: f32) { let i = global_id_x(); \
             if i < n { let mut top = x[i]; for k in 0..n { top = top.max(x[k * n + i]); } let mut sum = 0.0f32; \
             for k in 0..n { sum += (x[k * n + i] - top).exp(); } \
             for k in 0..n { y[k * n + i] = (x[k * n + i] - top).exp() / sum; } } }",
        ),
        (
            "reduction",
            "fn reduction(x: &[f32], y: &mut [f32], n: usize, a: f32) { \
             let part = shared_array::<[f32; 256]>(); let t = local_id_x(); \
             part[t] = x[global_id_x()]; sync_threads(); let mut s = 128usize; \
             while s > 0 { if t < s { part[t] += part[t + s]; } sync_threads(); s /= 2; } \
             if t == 0 { y[global_id_x() / 256] = part[0]; } }",
        ),
        (
            "tiled",
            "fn tiled(x: &[f32], y: &mut [f32], n: usize, a: f32) { \
             let s = shared_array::<[[f32; 16]; 16]>(); let t = shared_array::<[[f32; 16]; 16]>(); \
             let tx = local_id_x(); let ty = local_id_y(); let row = global_id_y(); let column = global_id_x(); \
             let mut sum = 0.0f32; let mut k = 0usize; \
             while k < n { s[ty][tx] = x[row * n + k + tx]; t[ty][tx] = x[(k + ty) * n + column]; sync_threads(); \
             for j in 0..16usize { sum += s[ty][j] * t[j][tx]; } sync_threads(); k += 16; } \
             y[row * n + column] = sum; }",
        ),
        (
            "transpose",
            "fn transpose(x: &[f32], y: &mut [f32], n: usize, a: f32) { \
             let s = shared_array::<[[f32; 17]; 16]>(); \
             let tx = local_id_x(); let ty = local_id_y(); \
             s[ty][tx] = x[global_id_y() * n + global_id_x()]; sync_threads(); \
             let column = global_id_y() - ty + tx; let row = global_id_x() - tx + ty; \
             y[row * n + column] = s[tx][ty]; }",
        ),
        (
            "histogram",
            "fn histogram(x: &[f32], y: &mut [f32], n: usize, a: f32) { \
             let bins = shared_array::<[u32; 256]>(); let t = local_id_x(); \
             bins[t] = 0; sync_threads(); let v = (x[global_id_x()] * 25.0 + 125.0) as u32 & 255; \
             atomic_add(&mut bins[v as usize], 1); sync_threads(); \
             if bins[t] > 0 { y[t] = bins[t] as f32; } }",
        ),
    ];

    /// A kernel of a hundred lines: reads, arithmetic, choices and short loops, twelve times over.
    fn long() -> String {
        let mut text = String::from(
            "fn long(x: &[f32], y: &mut [f32], n: usize, a: f32) {\nlet i = global_id_x();\nlet mut sum = 0.0f32;\n",
        );
        for k in 0..12 {
            text += &format!(
                "let p{k} = x[i + {k}] * a + sum;\n\
                 let q{k} = p{k}.max(x[i + {}]).sqrt();\n\
                 let mut v{k} = q{k} - 0.5 * p{k};\n\
                 let mut turns{k} = {k}u32;\n\
                 while turns{k} < 14 && v{k} < 3.0 {{\nv{k} = v{k} * 1.25 + q{k};\nturns{k} += 1; }}\n\
                 sum += if v{k} > p{k} {{ v{k} - p{k} }} else {{ turns{k} as f32 }};\n",
                k + 64
            );
        }
        text + "y[i] = sum;\n}"
    }

    fn kernel(source: &str) -> Result<Verified, Box<dyn std::error::Error>> {
        let text = format!("#[kernel]\n{source}");
        let kernel = kernels_in_file(&text, "bench.rs")?.pop().ok_or("no kernel")?;
        Ok(verify(lower(&kernel.function, &kernel.how)?)?)
    }

    fn best(mut f: impl FnMut()) -> f64 {
        let (mut best, start) = (f64::MAX, Instant::now());
        while start.elapsed() < Duration::from_millis(700) {
            let t = Instant::now();
            f();
            best = best.min(t.elapsed().as_secs_f64());
        }
        best
    }

    /// The kernel's program with machine code in executable memory.
    fn compiled(kernel: &Verified, width: Width) -> Interpreter {
        let code = MachineCode::generate(kernel, width).unwrap();
        let mut memory = memmap2::MmapMut::map_anon(code.bytes().len()).unwrap();
        memory.copy_from_slice(code.bytes());
        let memory = memory.make_exec().unwrap();
        let entry = memory.as_ptr();
        let mut fast = Interpreter::new(kernel).unwrap();
        // SAFETY: the memory is a copy of the code, is kept, and the processor has the width.
        unsafe { fast.install(code, entry, Box::new(memory)) };
        fast
    }

    /// Four million floats, two threads: what memory gives.
    fn streams(fast: &Interpreter, plain: &Interpreter) {
        let mut x: Vec<f32> = (0..4 << 20).map(|i| (i % 1000) as f32 * 0.01 - 5.0).collect();
        let mut y = vec![0f32; 4 << 20];
        let (n, a) = (512u64.to_ne_bytes(), 0.004f32.to_ne_bytes());
        let args = [
            Arg::Buffer(BufferRef::from_slice(&mut x)),
            Arg::Buffer(BufferRef::from_slice(&mut y)),
            Arg::Value(&n),
            Arg::Value(&a),
        ];
        let mut config = LaunchConfig::new([(4 << 20) / 256, 1, 1], [256, 1, 1], &args);
        config.parallel = Parallel::Threads(2.try_into().unwrap());
        let rate = |took: f64| 8.0 * (4 << 20) as f64 / took / 1e9;
        let slow = rate(best(|| plain.launch(&config).unwrap()));
        let quick = rate(best(|| fast.launch(&config).unwrap()));
        print!("  4 Mi floats, two threads: {slow:.1} and {quick:.1} GB/s");
    }

    pub(super) fn main() {
        let widths = match std::env::args().any(|a| a == "--interpreter") {
            true => &[],
            false => Width::detect(),
        };
        let only = std::env::args().skip(1).find(|a| !a.starts_with('-'));
        let long = long();
        for (name, source) in SOURCES.into_iter().chain([("long", &*long)]) {
            if only.as_ref().is_some_and(|o| !name.contains(o.as_str())) {
                continue;
            }
            let kernel = match kernel(source) {
                Ok(kernel) => kernel,
                Err(error) => {
                    println!("{name}: {error}");
                    continue;
                }
            };
            // A megabyte or so: what caches hold, so that code is measured and not memory.
            let side = 512usize;
            let lanes = side * side;
            let flat = matches!(
                name,
                "relu" | "saxpy" | "gelu" | "nbody" | "reduction" | "histogram" | "long"
            );
            let (grid, block) = match name {
                "softmax" => ([2, 1, 1], [256, 1, 1]),
                "tiled" | "transpose" => ([32, 32, 1], [16, 16, 1]),
                _ if flat => ([(lanes / 256) as u32, 1, 1], [256, 1, 1]),
                _ => ([16, 64, 1], [32, 8, 1]),
            };
            let mut x: Vec<f32> = (0..lanes + 4096)
                .map(|i| (i % 1000) as f32 * 0.01 - 5.0)
                .collect();
            let mut y = vec![0f32; lanes];
            let n = (side as u64).to_ne_bytes();
            let a = 0.004f32.to_ne_bytes();
            let args = [
                Arg::Buffer(BufferRef::from_slice(&mut x)),
                Arg::Buffer(BufferRef::from_slice(&mut y)),
                Arg::Value(&n),
                Arg::Value(&a),
            ];
            let config = LaunchConfig::new(grid, block, &args);
            let plain = Interpreter::new(&kernel).unwrap();
            let slow = best(|| plain.launch(&config).unwrap());
            let micros = |seconds: f64| seconds * 1e6;
            let made = micros(best(|| drop(Interpreter::new(&kernel).unwrap())));
            print!(
                "{name:12} interpreter {:8.3} ns ({made:.0} us)",
                slow * 1e9 / lanes as f64
            );
            for width in widths {
                let code = match MachineCode::generate(&kernel, *width) {
                    Ok(code) => code,
                    Err(reason) => {
                        print!("  {reason}");
                        continue;
                    }
                };
                if let Ok(folder) = std::env::var("DUMP_CODE") {
                    std::fs::write(format!("{folder}/{name}{}.bin", width.lanes()), code.bytes()).unwrap();
                }
                let (calls, bytes) = (code.calls(), code.bytes().len());
                let made = micros(best(|| drop(compiled(&kernel, *width))));
                let fast = compiled(&kernel, *width);
                let quick = best(|| fast.launch(&config).unwrap());
                print!(
                    "  {:?} {:8.3} ns ({:.1} x; {made:.0} us, {bytes} bytes)",
                    width,
                    quick * 1e9 / lanes as f64,
                    slow / quick,
                );
                if *width == Width::Sixteen && matches!(name, "relu" | "saxpy" | "gelu") {
                    streams(&fast, &plain);
                }
                if !calls.is_empty() && *width == Width::Sixteen {
                    print!("  by the host: {calls:?}");
                }
            }
            println!();
        }
    }
}
