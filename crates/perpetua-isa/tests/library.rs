//! The library's programs that hologram lists, against plain Rust over edge values; on each backend that the build has.

#![allow(clippy::expect_used, clippy::panic)]

mod common;

use std::fmt::Debug;

use bytemuck::Pod;
use common::{bind, executors, upload};
use perpetua_cpu::testing::edge_values;
use perpetua_device::BackendKind;
use perpetua_ir::ir::Scalar;
use perpetua_isa::{Arguments, Executor, LaunchConfig, library};

// All rows of edge values, as columns.
fn columns<T: Copy, const N: usize>(edges: &[T]) -> [Vec<T>; N] {
    let count = edges.len().pow(N as u32);
    std::array::from_fn(|column| {
        let step = edges.len().pow(column as u32);
        (0..count).map(|row| edges[row / step % edges.len()]).collect()
    })
}

fn execute<T: Pod, const N: usize>(
    executor: &Executor,
    name: &str,
    columns: &[Vec<T>; N],
    len: usize,
    arguments: &Arguments,
) -> Vec<T> {
    let mut handles: Vec<(&str, u64)> = ["a", "b", "c"]
        .into_iter()
        .zip(columns)
        .map(|(input, column)| (input, upload(executor, column)))
        .collect();
    let out = executor.allocate_buffer(len * size_of::<T>()).expect("memory");
    handles.push(("out", out));
    let program = library(name).unwrap_or_else(|error| panic!("{error}"));
    executor
        .execute(
            &bind(program, &handles),
            &LaunchConfig::linear(len, 64),
            arguments,
        )
        .unwrap_or_else(|error| panic!("{name} on {:?}: {error}", executor.device()));
    let found = executor.read_buffer(out, 0, len);
    let found = found.unwrap_or_else(|error| panic!("{name} on {:?}: {error}", executor.device()));
    for (_, handle) in handles {
        executor.free_buffer(handle).expect("there");
    }
    found
}

fn floats() -> Vec<f32> {
    let bits = edge_values(Scalar::F32).into_iter();
    bits.map(|bits| f32::from_bits(bits as u32)).collect()
}

// `bound`: how many floats lie between what is right and what plain Rust gives; 0 where both are exact.
fn check_floats<const N: usize>(name: &str, bound: u64, plain: impl Fn([f32; N]) -> f32) {
    let columns: [Vec<f32>; N] = columns(&floats());
    for executor in executors() {
        // Vulkan's drivers may round otherwise, and flush.
        let loose = executor.device().backend() == BackendKind::Wgpu;
        let found = execute(&executor, name, &columns, columns[0].len(), &Arguments::new());
        for (i, found) in found.into_iter().enumerate() {
            let row: [f32; N] = std::array::from_fn(|column| columns[column][i]);
            let expected = plain(row);
            let tiny = |x: f32| x.abs() <= f32::MIN_POSITIVE && x != 0.0;
            if loose && (row.iter().any(|x| tiny(*x)) || tiny(expected)) {
                continue;
            }
            let order = |x: f32| match x.is_sign_negative() {
                true => -i64::from(x.to_bits() & 0x7fff_ffff),
                false => i64::from(x.to_bits()),
            };
            let away = order(found).abs_diff(order(expected));
            // The smaller or larger of two zeros is either.
            let chooses = ["atlas_min_f32", "atlas_max_f32", "atlas_relu_f32"].contains(&name);
            let signs = chooses || found.is_sign_negative() == expected.is_sign_negative();
            let near = away <= bound + if loose { 4 } else { 0 };
            assert!(
                found.is_nan() && expected.is_nan() || found.is_nan() == expected.is_nan() && near && signs,
                "{name} of {row:?} on {:?}: {found}, not {expected}",
                executor.device()
            );
        }
    }
}

fn check<T: Pod + Debug + PartialEq, const N: usize>(
    name: &str,
    edges: &[T],
    plain: impl Fn([T; N]) -> Option<T>,
) {
    let all: [Vec<T>; N] = columns(edges);
    let mut columns: [Vec<T>; N] = std::array::from_fn(|_| Vec::new());
    let mut expected = Vec::new();
    let rows = (0..all[0].len()).map(|i| std::array::from_fn(|column| all[column][i]));
    for row in rows.collect::<Vec<[T; N]>>() {
        // What faults is left out.
        if let Some(result) = plain(row) {
            columns.iter_mut().zip(row).for_each(|(column, x)| column.push(x));
            expected.push(result);
        }
    }
    for executor in executors() {
        let found = execute(&executor, name, &columns, expected.len(), &Arguments::new());
        let wrong = found.iter().zip(&expected).position(|(a, b)| a != b);
        if let Some(i) = wrong {
            let row: Vec<T> = columns.iter().map(|column| column[i]).collect();
            panic!("{name} of {row:?}: {:?}, not {:?}", found[i], expected[i]);
        }
    }
}

#[test]
fn two_operands_of_floats() {
    check_floats("atlas_add_f32", 0, |[a, b]| a + b);
    check_floats("atlas_sub_f32", 0, |[a, b]| a - b);
    check_floats("atlas_mul_f32", 0, |[a, b]| a * b);
    check_floats("atlas_div_f32", 0, |[a, b]| a / b);
    check_floats("atlas_min_f32", 0, |[a, b]| a.min(b));
    check_floats("atlas_max_f32", 0, |[a, b]| a.max(b));
    check_floats("atlas_pow_f32", 4, |[a, b]| a.powf(b));
}

#[test]
fn one_operand_of_floats() {
    check_floats("atlas_abs_f32", 0, |[a]| a.abs());
    check_floats("atlas_neg_f32", 0, |[a]| -a);
    check_floats("atlas_relu_f32", 0, |[a]| a.max(0.0));
    check_floats("atlas_sqrt_f32", 0, |[a]| a.sqrt());
    check_floats("atlas_rsqrt_f32", 0, |[a]| 1.0 / a.sqrt());
}

#[test]
fn transcendental_functions() {
    check_floats("atlas_exp_f32", 4, |[a]| a.exp());
    check_floats("atlas_log_f32", 4, |[a]| a.ln());
    check_floats("atlas_log2_f32", 4, |[a]| a.log2());
    check_floats("atlas_log10_f32", 4, |[a]| a.log10());
    check_floats("atlas_sin_f32", 4, |[a]| a.sin());
    check_floats("atlas_cos_f32", 4, |[a]| a.cos());
    check_floats("atlas_tan_f32", 8, |[a]| a.tan());
    check_floats("atlas_tanh_f32", 4, |[a]| a.tanh());
    check_floats("atlas_sigmoid_f32", 6, |[a]| 1.0 / (1.0 + (-a).exp()));
}

#[test]
fn three_operands() {
    let apart = |[a, b, c]: [f32; 3]| a * b + c;
    let fused = |[a, b, c]: [f32; 3]| a.mul_add(b, c);
    type Function = fn([f32; 3]) -> f32;
    let functions: [(&str, Function); 2] = [("atlas_mad_f32", apart), ("atlas_fma_f32", fused)];
    for executor in executors() {
        let probe = executor.device().info().numeric_probe.unwrap_or_default();
        // Denormals that the device flushes, and products that its driver fuses into sums, have tests of their own.
        let edges: Vec<f32> = match probe.keeps_denormals == Some(true) && probe.no_contraction == Some(true)
        {
            true => floats(),
            false => vec![0.0, 1.0, -1.5, 2.0, 50.0, -1024.0, 64.5],
        };
        let columns: [Vec<f32>; 3] = columns(&edges);
        for (name, function) in functions {
            let len = columns[0].len();
            let found = execute(&executor, name, &columns, len, &Arguments::new());
            for (i, found) in found.into_iter().enumerate() {
                let expected = function([0, 1, 2].map(|column: usize| columns[column][i]));
                let right = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
                assert!(right, "{name}: {found}, not {expected}");
            }
        }
    }
    let edges = [0, 1, -1, 7, i32::MIN, i32::MAX];
    check("atlas_mad_i32", &edges, |[a, b, c]: [i32; 3]| {
        Some(a.wrapping_mul(b).wrapping_add(c))
    });
}

#[test]
fn integers() {
    let edges: Vec<i32> = edge_values(Scalar::I32)
        .into_iter()
        .map(|bits| bits as i32)
        .collect();
    check("atlas_add_i32", &edges, |[a, b]: [i32; 2]| {
        Some(a.wrapping_add(b))
    });
    check("atlas_sub_i32", &edges, |[a, b]: [i32; 2]| {
        Some(a.wrapping_sub(b))
    });
    check("atlas_mul_i32", &edges, |[a, b]: [i32; 2]| {
        Some(a.wrapping_mul(b))
    });
    check("atlas_div_i32", &edges, |[a, b]: [i32; 2]| a.checked_div(b));
    check("atlas_rem_i32", &edges, |[a, b]: [i32; 2]| a.checked_rem(b));
    check("atlas_min_i32", &edges, |[a, b]: [i32; 2]| Some(a.min(b)));
    check("atlas_max_i32", &edges, |[a, b]: [i32; 2]| Some(a.max(b)));
    check("atlas_and_i32", &edges, |[a, b]: [i32; 2]| Some(a & b));
    check("atlas_or_i32", &edges, |[a, b]: [i32; 2]| Some(a | b));
    check("atlas_xor_i32", &edges, |[a, b]: [i32; 2]| Some(a ^ b));
    check("atlas_shl_i32", &edges, |[a, b]: [i32; 2]| {
        Some(a.wrapping_shl(b as u32))
    });
    check("atlas_shr_i32", &edges, |[a, b]: [i32; 2]| {
        Some(a.wrapping_shr(b as u32))
    });
    check("atlas_abs_i32", &edges, |[a]: [i32; 1]| Some(a.wrapping_abs()));
    check("atlas_neg_i32", &edges, |[a]: [i32; 1]| Some(a.wrapping_neg()));
    check("atlas_not_i32", &edges, |[a]: [i32; 1]| Some(!a));
    check("atlas_copy_i32", &edges, |[a]: [i32; 1]| Some(a));
}

#[test]
fn copies_and_fills() {
    for executor in executors() {
        let found = execute::<f32, 0>(
            &executor,
            "atlas_fill_f32",
            &[],
            100,
            &Arguments::new().with("value", -2.5f32),
        );
        assert_eq!(found, [-2.5; 100]);
        let bytes: [Vec<u8>; 1] = [(0..=255).collect()];
        let found = execute(&executor, "atlas_memcpy", &bytes, 256, &Arguments::new());
        assert_eq!(found, bytes[0]);
    }
}

#[test]
fn reductions() {
    let values: Vec<i32> = (0..3000).map(|i: i32| i.wrapping_mul(0x2545_f491) >> 7).collect();
    type Fold = fn(i32, i32) -> i32;
    let folds: [(&str, i32, Fold); 7] = [
        ("add", 0, i32::wrapping_add),
        ("mul", 1, i32::wrapping_mul),
        ("min", i32::MAX, Ord::min),
        ("max", i32::MIN, Ord::max),
        ("and", -1, |a, b| a & b),
        ("or", 0, |a, b| a | b),
        ("xor", 0, |a, b| a ^ b),
    ];
    for executor in executors() {
        for (op, start, fold) in folds {
            // Odd, so that products say something.
            let values: Vec<i32> = values.iter().map(|v| v | i32::from(op == "mul")).collect();
            let out = upload(&executor, &[start]);
            let handles = [("a", upload(&executor, &values)), ("out", out)];
            let program = library(&format!("atlas_reduce_{op}_i32")).expect("there");
            executor
                .execute_program(&bind(program, &handles), &LaunchConfig::new(5, 96))
                .expect("a launch");
            let found = executor.read_buffer::<i32>(out, 0, 1).expect("a read");
            assert_eq!(found, [values.iter().fold(start, |a, b| fold(a, *b))], "{op}");
        }
    }
}

#[test]
fn too_short_a_buffer_is_a_fault() {
    for executor in executors() {
        let [short, long] = [8, 64].map(|bytes| executor.allocate_buffer(bytes).expect("memory"));
        let program = library("atlas_neg_f32").expect("there");
        let program = bind(program, &[("a", short), ("out", long)]);
        executor
            .execute_program(&program, &LaunchConfig::linear(16, 32))
            .expect("a launch");
        let error = executor.synchronize().expect_err("out of bounds").to_string();
        assert!(error.contains("index out of bounds"), "{error}");
    }
}
