//! What hologram has beside its plain instructions: the Atlas group as macros, later additions as programs of the library.

#![allow(clippy::expect_used, clippy::panic)]

mod common;

use common::{bind, executors, missing, numbers, upload};
use perpetua_ir::back::Capability;
use perpetua_isa::{Arguments, Assembler, Executor, LaunchConfig, Program, library};

fn program(text: &str) -> Program {
    Assembler::new()
        .assemble("atlas.pasm", text)
        .unwrap_or_else(|error| panic!("{error}"))
}

const CLASSES: &str = "\
.include \"atlas\"
.buffer out: u32
.const nbr_start: u32 = 0, 3, 3, 5, 5
.const nbr: u32 = 4, 5, 6, 7, 8
    atlas_start
    setge.u32 p0, r252, 96
@p0 exit
    mul.u32 r0, r252, 8
    clsget r1
    stg.u32 out[r0], r1
    clsset r252
    clsget r1
    mirror r2, r1
    stg.u32 out[r0 + 1], r2
    unitytest p1, 0.5
    sel.u32 r1, p1, 1, 0
    stg.u32 out[r0 + 2], r1
    phaseadv 700
    phaseadv r252
    phaseget r1
    stg.u32 out[r0 + 3], r1
    boundmap r252, 7, 9, r1
    stg.u32 out[r0 + 4], r1
    rem.u32 r3, r252, 4
    nbrcount r3, r1
    stg.u32 out[r0 + 5], r1
    nbrget r3, 1, r1
    stg.u32 out[r0 + 6], r1
    clsof r1, r3, 2, 5
    stg.u32 out[r0 + 7], r1
";

#[test]
fn classes_phases_and_neighbours() {
    for executor in executors() {
        let out = executor.allocate_buffer(4 * 8 * 96).expect("memory");
        let program = bind(program(CLASSES), &[("out", out)]);
        executor
            .execute_program(&program, &LaunchConfig::new(1, 128))
            .expect("a launch");
        let found = executor.read_buffer::<u32>(out, 0, 8 * 96).expect("a read");
        let mut mirrored = [false; 96];
        for (class, found) in (0..96u32).zip(found.chunks(8)) {
            let mirror = class / 6 * 6 + (class % 6 + 3) % 6;
            mirrored[mirror as usize] = true;
            let (count, second) = [(3, 5), (0, 0), (2, 8), (0, 0)][class as usize % 4];
            let expected = [
                0,
                mirror,
                u32::from(class == 1 || class == 4),
                (700 + class) % 768,
                class * 12288 + 7 * 256 + 9,
                count,
                second,
                24 * (class % 4) + 8 * 2 + 5,
            ];
            assert_eq!(found, expected, "class {class}");
        }
        assert!(mirrored.iter().all(|there| *there));
    }
}

#[test]
fn residues_accumulate() {
    let text = ".include \"atlas\"\n.buffer residues: f64\n resaccum 5, 0.25\n mov.u32 r1, 7\n mov.f64 r2, 1.5\n resaccum r1, r2\n resaccum 5, r2\n";
    for executor in executors() {
        let residues = executor.allocate_buffer(8 * 96 * 3).expect("memory");
        let program = bind(program(text), &[("residues", residues)]);
        let done = executor.execute_program(&program, &LaunchConfig::new(1, 3));
        if let Some(lacks) = missing(&executor, &program) {
            assert_eq!(lacks, Capability::Float64, "{:?}", executor.device());
            assert!(done.expect_err("no f64").to_string().contains("f64"));
            continue;
        }
        done.expect("a launch");
        let found = executor.read_buffer::<f64>(residues, 0, 96 * 3).expect("a read");
        for (i, value) in found.iter().enumerate() {
            let expected = match i % 96 {
                5 => 1.75,
                7 => 1.5,
                _ => 0.0,
            };
            assert_eq!(*value, expected, "{i}");
        }
    }
}

#[test]
fn names_without_an_instruction_say_what_to_use() {
    for (text, part) in [
        ("ClsGet r0", ".include \"atlas\""),
        ("PHASEADV 3", ".include \"atlas\""),
        ("LayerNorm r0, r1", "atlas_group_norm_f32"),
        ("GroupNorm r0", "atlas_group_norm_f32"),
        ("BatchNorm r0", "atlas_batch_norm_f32"),
        ("Conv2d r0", "atlas_conv2d_f32"),
        ("NearestUpsample2d r0", "atlas_nearest_upsample2d_f32"),
        ("Gemm r0", "atlas_gemm_f32"),
        ("ParallelMap r0", "atlas_exp_f32"),
        ("ParallelMapBinary r0", "atlas_add_f32"),
        ("ParallelReduce r0", "atlas_reduce_add_f32"),
    ] {
        let error = Assembler::new().assemble("x", text).expect_err(text).to_string();
        assert!(error.contains(part), "{error}");
        let name = text.split(' ').next().unwrap_or_default();
        // What is a program is found by this name, too.
        match library(name) {
            Ok(program) => assert_eq!(program.name, part, "{name}"),
            Err(error) => {
                let is_macro = part.starts_with(".include");
                assert!(is_macro || name.starts_with("ParallelMap"), "{error}");
                assert!(error.to_string().contains(part), "{error}");
            }
        }
    }
}

fn run(
    executor: &Executor,
    name: &str,
    inputs: &[(&str, &[f32])],
    (out, len): (&str, usize),
    config: LaunchConfig,
    arguments: &Arguments,
) -> Vec<f32> {
    let mut handles: Vec<(&str, u64)> = inputs
        .iter()
        .map(|(name, values)| (*name, upload(executor, values)))
        .collect();
    let known = handles.iter().find(|(name, _)| *name == out).copied();
    let (_, result) = known.unwrap_or_else(|| {
        let made = (out, executor.allocate_buffer(4 * len).expect("memory"));
        handles.push(made);
        made
    });
    let program = bind(library(name).expect("there"), &handles);
    executor
        .execute(&program, &config, arguments)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let found = executor.read_buffer(result, 0, len);
    found.unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn near(what: &str, found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let away = (f64::from(*found) - expected).abs();
        assert!(away < 1e-4, "{what}, {i}: {found}, not {expected}");
    }
}

#[test]
fn products() {
    for executor in executors() {
        let (m, n, k) = (37, 21, 30);
        let (a, b, c) = (numbers(m * k, 1), numbers(k * n, 2), numbers(m * n, 3));
        let arguments = Arguments::new()
            .with("m", m as u32)
            .with("n", n as u32)
            .with("k", k as u32)
            .with("alpha", 0.5f32)
            .with("beta", 2.0f32);
        let inputs: [(&str, &[f32]); 3] = [("a", &a), ("b", &b), ("c", &c)];
        let config = LaunchConfig::tiled(n as u32, m as u32, (16, 16));
        let found = run(
            &executor,
            "atlas_gemm_f32",
            &inputs,
            ("c", m * n),
            config,
            &arguments,
        );
        let expected: Vec<f64> = (0..m * n)
            .map(|i| {
                let (row, column) = (i / n, i % n);
                let sum: f64 = (0..k)
                    .map(|j| f64::from(a[row * k + j]) * f64::from(b[j * n + column]))
                    .sum();
                0.5 * sum + 2.0 * f64::from(c[i])
            })
            .collect();
        near("gemm", &found, &expected);
    }
}

fn normal(values: &[f32], mean: f64, variance: f64, gamma: f32, beta: f32) -> impl Iterator<Item = f64> {
    let scale = f64::from(gamma) / (variance + 1e-5).sqrt();
    values
        .iter()
        .map(move |x| (f64::from(*x) - mean) * scale + f64::from(beta))
}

#[test]
fn norms() {
    for executor in executors() {
        let eps = Arguments::new().with("eps", 1e-5f32);
        // Two samples of two groups of three channels of 50 elements.
        let (samples, groups, channels, size) = (2, 2, 3, 50);
        let x = numbers(samples * groups * channels * size, 4);
        let (gamma, beta) = (numbers(groups * channels, 5), numbers(groups * channels, 6));
        let inputs: [(&str, &[f32]); 3] = [("x", &x), ("gamma", &gamma), ("beta", &beta)];
        let arguments = eps
            .clone()
            .with("groups", groups as u32)
            .with("channels", channels as u32)
            .with("size", size as u32);
        let config = LaunchConfig::new((samples * groups) as u32, 64);
        let found = run(
            &executor,
            "atlas_group_norm_f32",
            &inputs,
            ("y", x.len()),
            config,
            &arguments,
        );
        let mut expected = Vec::new();
        for (i, group) in x.chunks(channels * size).enumerate() {
            let count = group.len() as f64;
            let mean = group.iter().map(|x| f64::from(*x)).sum::<f64>() / count;
            let variance = group.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / count;
            for (channel, values) in group.chunks(size).enumerate() {
                let c = i % groups * channels + channel;
                expected.extend(normal(values, mean, variance, gamma[c], beta[c]));
            }
        }
        near("group norm", &found, &expected);

        // Channels of 50, six a sample, by a mean and a variance that are given.
        let (mean, variance) = (numbers(6, 7), numbers(6, 8));
        let variance: Vec<f32> = variance.into_iter().map(|v| v.abs() + 0.5).collect();
        let mut inputs = inputs.to_vec();
        inputs.extend([("mean", mean.as_slice()), ("variance", variance.as_slice())]);
        let arguments = eps.with("size", size as u32);
        let config = LaunchConfig::linear(x.len(), 64);
        let found = run(
            &executor,
            "atlas_batch_norm_f32",
            &inputs,
            ("y", x.len()),
            config,
            &arguments,
        );
        let channel = |(i, values): (usize, &[f32])| {
            let c = i % 6;
            normal(values, mean[c].into(), variance[c].into(), gamma[c], beta[c]).collect::<Vec<f64>>()
        };
        let expected: Vec<f64> = x.chunks(size).enumerate().flat_map(channel).collect();
        near("batch norm", &found, &expected);
    }
}

#[test]
fn pictures() {
    for executor in executors() {
        let (inputs, outputs, height, width, kh, kw, stride, pad) = (2, 3, 7, 9, 3, 2, 2, 1);
        let rows = (height + 2 * pad - kh) / stride + 1;
        let columns = (width + 2 * pad - kw) / stride + 1;
        let x = numbers(inputs * height * width, 9);
        let w = numbers(outputs * inputs * kh * kw, 10);
        let bias = numbers(outputs, 11);
        let arguments = [
            ("inputs", inputs),
            ("height", height),
            ("width", width),
            ("kh", kh),
            ("kw", kw),
            ("stride", stride),
            ("pad", pad),
        ];
        let arguments = arguments
            .into_iter()
            .fold(Arguments::new(), |all, (name, value)| {
                all.with(name, value as u32)
            });
        let len = outputs * rows * columns;
        let buffers: [(&str, &[f32]); 3] = [("x", &x), ("w", &w), ("bias", &bias)];
        let config = LaunchConfig::linear(len, 64);
        let found = run(
            &executor,
            "atlas_conv2d_f32",
            &buffers,
            ("y", len),
            config,
            &arguments,
        );
        let mut expected = Vec::new();
        for (o, row, column) in (0..len).map(|i| (i / columns / rows, i / columns % rows, i % columns)) {
            let mut sum = f64::from(bias[o]);
            for (i, j, k) in (0..inputs * kh * kw).map(|n| (n / kw / kh, n / kw % kh, n % kw)) {
                let (y, z) = (row * stride + j, column * stride + k);
                if (pad..height + pad).contains(&y) && (pad..width + pad).contains(&z) {
                    let at = (i * height + y - pad) * width + z - pad;
                    sum += f64::from(x[at]) * f64::from(w[((o * inputs + i) * kh + j) * kw + k]);
                }
            }
            expected.push(sum);
        }
        near("conv2d", &found, &expected);

        let arguments = Arguments::new()
            .with("height", height as u32)
            .with("width", width as u32)
            .with("scale", 3u32);
        let config = LaunchConfig::linear(x.len() * 9, 64);
        let found = run(
            &executor,
            "atlas_nearest_upsample2d_f32",
            &buffers[..1],
            ("y", x.len() * 9),
            config,
            &arguments,
        );
        let element = |i: usize| {
            let (picture, row, column) = (
                i / 9 / width / height,
                i / 3 / width % (3 * height),
                i % (3 * width),
            );
            f64::from(x[(picture * height + row / 3) * width + column / 3])
        };
        let expected: Vec<f64> = (0..x.len() * 9).map(element).collect();
        near("upsample", &found, &expected);
    }
}
