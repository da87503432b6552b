//! The example programs, against plain Rust; on each backend that the build has, with equal results to the bit. Not compared with one another are sums of floats that
//! blocks add up in any order, and floats of devices whose own probe says that they round otherwise than IEEE 754.

#![allow(clippy::expect_used, clippy::panic)]

mod common;

use std::fmt::Debug;

use common::{bind, computes_exactly, executors, numbers, upload};
use perpetua_isa::{Arguments, Assembler, Executor, LaunchConfig, Program};

macro_rules! program {
    ($name:literal) => {
        Assembler::new()
            .assemble(
                concat!($name, ".pasm"),
                include_str!(concat!("../programs/", $name, ".pasm")),
            )
            .unwrap_or_else(|error| panic!("{error}"))
    };
}

/// What a result's bits depend on.
#[derive(Clone, Copy)]
enum Of {
    /// Integers, comparisons, moves and `fma`: they are the same on all devices.
    Exact,
    /// Sums, products, quotients and roots of floats, too: where the device's probe finds that they are IEEE 754's.
    Floats,
    /// Functions such as `exp`, too: where it finds the same of the device's own `fma`.
    Functions,
}

/// The results of all backends, which must be equal to the bit.
struct Results<T>(Of, Vec<(String, Vec<T>)>);

impl<T: bytemuck::Pod + Debug> Results<T> {
    fn new(of: Of) -> Results<T> {
        Results(of, Vec::new())
    }

    fn add(&mut self, executor: &Executor, found: &[T]) {
        let probe = executor.device().info().numeric_probe.unwrap_or_default();
        let is_known = match self.0 {
            Of::Exact => true,
            Of::Floats => computes_exactly(executor),
            Of::Functions => probe.is_exact(),
        };
        if !is_known {
            println!("not compared to the bit: {:?}, {probe:?}", executor.device());
            return;
        }
        let device = format!("{:?}", executor.device());
        if let Some((first, expected)) = self.1.first() {
            for (i, (a, b)) in expected.iter().zip(found).enumerate() {
                let is_same = bytemuck::bytes_of(a) == bytemuck::bytes_of(b);
                assert!(is_same, "element {i}: {a:?} on {first}, {b:?} on {device}");
            }
        }
        self.1.push((device, found.to_vec()));
    }
}

fn run(executor: &Executor, program: &Program, config: LaunchConfig, arguments: &Arguments) {
    if let Err(error) = executor.execute(program, &config, arguments) {
        panic!("{} on {:?}: {error}", program.name, executor.device());
    }
    executor
        .synchronize()
        .unwrap_or_else(|error| panic!("{} on {:?}: {error}", program.name, executor.device()));
}

#[test]
fn saxpy() {
    let mut results = Results::new(Of::Exact);
    for executor in executors() {
        let (x, y) = (numbers(1000, 1), numbers(1000, 2));
        let handles = [("x", upload(&executor, &x)), ("y", upload(&executor, &y))];
        let program = bind(program!("saxpy"), &handles);
        run(
            &executor,
            &program,
            LaunchConfig::linear(1000, 128),
            &Arguments::new().with("a", 2.5f32),
        );
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 2.5f32.mul_add(*x, *y)).collect();
        let found = executor.read_buffer::<f32>(handles[1].1, 0, 1000).unwrap();
        assert_eq!(found, expected);
        results.add(&executor, &found);
    }
}

#[test]
fn dot() {
    let mut results = Results::new(Of::Floats);
    for executor in executors() {
        let (x, y) = (numbers(5000, 3), numbers(5000, 4));
        let expected: f64 = x.iter().zip(&y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
        // Blocks add up in any order; of one block the bits are known.
        for blocks in [7, 1] {
            let out = upload(&executor, &[0f32]);
            let handles = [
                ("x", upload(&executor, &x)),
                ("y", upload(&executor, &y)),
                ("out", out),
            ];
            let program = bind(program!("dot"), &handles);
            run(
                &executor,
                &program,
                LaunchConfig::new(blocks, 96),
                &Arguments::new(),
            );
            let found = executor.read_buffer::<f32>(out, 0, 1).unwrap();
            assert!(
                (f64::from(found[0]) - expected).abs() < 1e-3,
                "{found:?} is not {expected}"
            );
            if blocks == 1 {
                results.add(&executor, &found);
            }
        }
    }
}

#[test]
fn softmax() {
    let mut results = Results::new(Of::Functions);
    for executor in executors() {
        let (rows, columns) = (5, 300);
        let x = numbers(rows * columns, 5);
        let y = executor.allocate_buffer(4 * rows * columns).unwrap();
        let program = bind(program!("softmax"), &[("x", upload(&executor, &x)), ("y", y)]);
        let columns_argument = Arguments::new().with("columns", columns as u32);
        run(
            &executor,
            &program,
            LaunchConfig::new(rows as u32, 64),
            &columns_argument,
        );
        let found = executor.read_buffer::<f32>(y, 0, rows * columns).unwrap();
        results.add(&executor, &found);
        for (x, y) in x.chunks(columns).zip(found.chunks(columns)) {
            let highest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f32 = x.iter().map(|x| (x - highest).exp()).sum();
            for (x, y) in x.iter().zip(y) {
                let expected = (x - highest).exp() / sum;
                assert!((y - expected).abs() < 1e-6, "{y} is not {expected}");
            }
        }
    }
}

#[test]
fn matmul() {
    let mut results = Results::new(Of::Exact);
    for executor in executors() {
        let n = 45;
        let (a, b) = (numbers(n * n, 6), numbers(n * n, 7));
        let c = executor.allocate_buffer(4 * n * n).unwrap();
        let handles = [
            ("a", upload(&executor, &a)),
            ("b", upload(&executor, &b)),
            ("c", c),
        ];
        let program = bind(program!("matmul"), &handles);
        let config = LaunchConfig::tiled(n as u32, n as u32, (16, 16));
        run(&executor, &program, config, &Arguments::new().with("n", n as u32));
        let found = executor.read_buffer::<f32>(c, 0, n * n).unwrap();
        results.add(&executor, &found);
        for (i, found) in found.iter().enumerate() {
            let product = |k: usize| f64::from(a[i / n * n + k]) * f64::from(b[k * n + i % n]);
            let expected: f64 = (0..n).map(product).sum();
            assert!(
                (f64::from(*found) - expected).abs() < 1e-4,
                "{i}: {found} is not {expected}"
            );
        }
    }
}

#[test]
fn histogram() {
    for executor in executors() {
        let data: Vec<u8> = (0..10_000u32).map(|i| ((i * i) >> 3) as u8).collect();
        let bins = executor.allocate_buffer(4 * 256).unwrap();
        let program = bind(
            program!("histogram"),
            &[("data", upload(&executor, &data)), ("bins", bins)],
        );
        run(&executor, &program, LaunchConfig::new(3, 64), &Arguments::new());
        let mut expected = vec![0u32; 256];
        data.iter().for_each(|value| expected[usize::from(*value)] += 1);
        assert_eq!(executor.read_buffer::<u32>(bins, 0, 256).unwrap(), expected);
    }
}

#[test]
fn scan() {
    for executor in executors() {
        // Parts that end in the middle of 256, and blocks that have nothing to do.
        for (len, blocks) in [(1, 1), (256, 2), (700, 1), (5000, 3)] {
            let x: Vec<u32> = (0..len).map(|i| i * 7 % 13).collect();
            let y = executor.allocate_buffer(4 * x.len()).unwrap();
            let program = bind(program!("scan"), &[("x", upload(&executor, &x)), ("y", y)]);
            run(
                &executor,
                &program,
                LaunchConfig::new(blocks, 256),
                &Arguments::new(),
            );
            let sums = x.iter().scan(0, |sum, x| {
                *sum += x;
                Some(*sum)
            });
            let expected: Vec<u32> = sums.collect();
            assert_eq!(executor.read_buffer::<u32>(y, 0, x.len()).unwrap(), expected);
        }
    }
}

#[test]
fn nbody() {
    let mut results = [(); 3].map(|()| Results::new(Of::Floats));
    for executor in executors() {
        let count = 100;
        let [px, py, pz] = [8, 9, 10].map(|seed| numbers(count, seed));
        let m: Vec<f32> = numbers(count, 11).into_iter().map(f32::abs).collect();
        let [ax, ay, az] = [0; 3].map(|_| executor.allocate_buffer(4 * count).unwrap());
        let inputs =
            [("px", &px), ("py", &py), ("pz", &pz), ("m", &m)].map(|(n, v)| (n, upload(&executor, v)));
        let program = bind(
            bind(program!("nbody"), &inputs),
            &[("ax", ax), ("ay", ay), ("az", az)],
        );
        run(
            &executor,
            &program,
            LaunchConfig::linear(count, 32),
            &Arguments::new().with("eps", 0.1f32),
        );
        for (axis, (handle, p)) in [(ax, &px), (ay, &py), (az, &pz)].into_iter().enumerate() {
            let found = executor.read_buffer::<f32>(handle, 0, count).unwrap();
            results[axis].add(&executor, &found);
            for i in 0..count {
                let pull = |j: usize| {
                    let d = [px[j] - px[i], py[j] - py[i], pz[j] - pz[i]].map(f64::from);
                    let square = d.iter().map(|d| d * d).sum::<f64>() + 0.01;
                    f64::from(p[j] - p[i]) * f64::from(m[j]) / square.powf(1.5)
                };
                let expected: f64 = (0..count).map(pull).sum();
                let near = (f64::from(found[i]) - expected).abs() < 1e-3 * expected.abs().max(1.0);
                assert!(near, "{axis}, {i}: {} is not {expected}", found[i]);
            }
        }
    }
}

#[test]
fn mandelbrot() {
    let mut pictures = Vec::new();
    let mut results = Results::new(Of::Floats);
    for executor in executors() {
        let (width, height) = (64u32, 48u32);
        let out = executor.allocate_buffer(4 * (width * height) as usize).unwrap();
        let program = bind(program!("mandelbrot"), &[("out", out)]);
        let arguments = Arguments::new()
            .with("width", width)
            .with("left", -2.0f32)
            .with("top", -1.125f32)
            .with("step", 3.0f32 / 64.0)
            .with("most", 50u32);
        run(
            &executor,
            &program,
            LaunchConfig::linear((width * height) as usize, 64),
            &arguments,
        );
        let picture = executor
            .read_buffer::<u32>(out, 0, (width * height) as usize)
            .unwrap();
        results.add(&executor, &picture);
        pictures.push((picture, computes_exactly(&executor)));
    }
    let mut expected = Vec::new();
    for i in 0..64 * 48u32 {
        let (cx, cy) = ((i % 64) as f32, (i / 64) as f32);
        let (cx, cy) = (cx.mul_add(3.0 / 64.0, -2.0), cy.mul_add(3.0 / 64.0, -1.125));
        let (mut x, mut y, mut steps) = (0f32, 0f32, 0);
        while steps < 50 && x * x + y * y <= 4.0 {
            (x, y) = (x * x - y * y + cx, (x * y).mul_add(2.0, cy));
            steps += 1;
        }
        expected.push(steps);
    }
    for (picture, is_exact) in pictures {
        let differing = picture.iter().zip(&expected).filter(|(a, b)| a != b).count();
        // Some drivers of Vulkan fuse products into sums.
        let most = if is_exact { 0 } else { 29 };
        assert!(differing <= most, "{differing} of 3072 points differ");
        assert_eq!(picture[24 * 64 + 40], 50, "the middle stays");
    }
}

#[test]
fn sort() {
    for executor in executors() {
        for (len, blocks) in [(1, 1), (2, 1), (511, 2), (1300, 1), (4097, 3)] {
            let x: Vec<i32> = numbers(len, 12).into_iter().map(|x| (x * 1e6) as i32).collect();
            let handle = upload(&executor, &x);
            let program = bind(program!("sort"), &[("x", handle)]);
            run(
                &executor,
                &program,
                LaunchConfig::new(blocks, 256),
                &Arguments::new(),
            );
            let mut expected = x;
            expected.sort_unstable();
            assert_eq!(executor.read_buffer::<i32>(handle, 0, len).unwrap(), expected);
        }
    }
}

#[test]
fn forms_are_exact() {
    let programs = [
        program!("saxpy"),
        program!("dot"),
        program!("softmax"),
        program!("matmul"),
        program!("histogram"),
        program!("scan"),
        program!("nbody"),
        program!("mandelbrot"),
        program!("sort"),
    ];
    for program in programs {
        assert_eq!(Program::decode(&program.encode()).as_ref(), Ok(&program));
        let text = program.to_string();
        let again: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(again.stripped(), program.stripped());
    }
}
