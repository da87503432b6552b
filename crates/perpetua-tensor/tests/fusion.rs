//! Fused equals unfused to the bit: on graphs written out here, and on random ones; how many kernels there are, and how many are compiled.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "what fails in a helper fails a test"
)]

mod common;

use common::{check, devices, values};
use perpetua_device::{BackendKind, Device};
use perpetua_tensor::testing::{bits, realize_unfused};
use perpetua_tensor::{DType, Random, Slice, Statistics, Stay, Tensor, vmap};
use proptest::prelude::*;

fn cpu() -> Device {
    Device::new(BackendKind::Cpu, 0).expect("the CPU")
}

/// The number of kernels that a tensor takes.
fn kernels(tensor: &Tensor) -> usize {
    tensor.explain().expect("no operation is refused").kernels.len()
}

fn layer_norm(x: &Tensor) -> Tensor {
    let distance = x - x.mean_keep(-1);
    let variance = (&distance * &distance).mean_keep(-1);
    distance * (variance + 1e-5).rsqrt()
}

#[test]
fn chains_and_rows_are_one_kernel() {
    let device = cpu();
    let x = values(DType::F32, &[6, 500], 1, &device);
    let b = values(DType::F32, &[500], 2, &device);
    let cases = [
        ("a chain", ((&x * 2.0 + &b).relu() - 1.0).tanh(), 1),
        (
            "a combination with neighbours",
            ((&x * 2.0).sum(-1) + 1.0).relu(),
            1,
        ),
        ("softmax", x.softmax(-1), 1),
        ("softmax of a transposed", x.transpose().softmax(0), 1),
        ("layer norm", layer_norm(&x), 1),
        (
            "cross entropy by row",
            -x.log_softmax(-1).slice([Slice::from(..), Slice::from(3)]),
            1,
        ),
        (
            "a product with neighbours",
            (x.matmul(x.transpose()) * 0.5 + 1.0).relu(),
            1,
        ),
        ("two combinations", x.sum(0).sum(..), 2),
    ];
    for (name, tensor, expected) in cases {
        assert_eq!(
            kernels(&tensor),
            expected,
            "{name}:\n{}",
            tensor.explain().expect(name)
        );
        check(name, &tensor);
    }
}

#[test]
fn an_explanation_says_why_results_are_stored() {
    let device = cpu();
    let x = Tensor::ones([8, 8], DType::F32, &device);
    let dear = x.exp().sin();
    let explanation = (dear.sum(0) + dear.max(1))
        .explain()
        .expect("it can be explained");
    let text = explanation.to_string();
    assert!(
        explanation.kernels.iter().any(|(_, stay)| *stay == Stay::Shared),
        "{text}"
    );
    assert!(
        text.contains("fusion.rs:") && text.contains("sin f32[8, 8]"),
        "{text}"
    );
}

#[test]
fn another_number_or_size_compiles_nothing() {
    // A device of its own: others compile for theirs.
    let device = cpu();
    let step = |n: usize, by: f64| {
        let x = Tensor::arange(0, 2 * n as i32, 1, &device)
            .cast(DType::F32)
            .reshape([n as isize, 2]);
        ((x * by + 1.0).softmax(0).sum(-1) * by)
            .to_vec::<f32>()
            .expect("a value")
    };
    step(40, 0.5);
    let before = Statistics::of(&device).compiled;
    for n in 41..60 {
        step(n, n as f64);
    }
    let after = Statistics::of(&device);
    assert_eq!(after.compiled, before);
    assert!(after.launched >= 20);
}

#[test]
fn a_graph_may_be_a_million_operations_deep() {
    let device = cpu();
    let x = Tensor::zeros([1], DType::F32, &device);
    // Of an example nothing is computed on the way.
    let million = |x: &[Tensor]| {
        drop((0..1_000_000).fold(x[0].clone(), |x, _| x.negative()));
        Ok(x[0].clone())
    };
    vmap(million, &[&x]).expect("the example itself");
    let mut waiting = x.clone();
    for _ in 0..20_000 {
        waiting = waiting.negative();
    }
    // What waits is bounded: most was computed on the way.
    let kernels = waiting.explain().expect("no error").kernels;
    assert!(
        kernels.len() < 25 && Statistics::of(&device).launched > 80,
        "{}",
        kernels.len()
    );
    assert_eq!(waiting.to_vec::<f32>().expect("a value"), [0.0]);
    let begin = x.tracked();
    let kept = (0..10_000).fold(begin.clone(), |x, _| x.negative());
    let gradient = kept.sum(..).grad(&[&begin]).expect("a gradient").remove(0);
    assert_eq!(gradient.to_vec::<f32>().expect("a value"), [1.0]);
}

#[test]
fn a_compiled_function_is_recorded_once_and_has_the_same_bits() {
    for device in devices() {
        let recorded = std::cell::Cell::new(0);
        let shift = values(DType::F32, &[6], 7, &device).isfinite().cast(DType::F32);
        let function = |x: &[Tensor]| {
            recorded.set(recorded.get() + 1);
            let loss = |w: &[Tensor]| (x[0].matmul(&w[0]) + &shift).log_softmax(-1).square().mean(..);
            let gradient = perpetua_tensor::grad(loss, &[&x[1]])?.remove(0);
            Ok(vec![
                &x[1] - &gradient * 0.1,
                gradient.sort(0, false),
                shift.clone(),
                x[0].clone(),
                gradient.slice([Slice::from(0..0)]),
            ])
        };
        let compiled = perpetua_tensor::compile(function);
        for (turn, rows) in [8usize, 8, 9, 8, 9].into_iter().enumerate() {
            let x = values(DType::F32, &[rows, 4], turn, &device);
            let x = x.isfinite().select(&x, 0.5);
            let w = Tensor::linspace(-1.0, 1.0 + turn as f64, 24, &device).reshape([4, 6]);
            let found = compiled.call(&[&x, &w]).expect("a step");
            let expected = function(&[x, w]).expect("a step");
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found.shape(), expected.shape());
                assert_eq!(
                    bits(found).expect("a value"),
                    bits(expected).expect("a value"),
                    "turn {turn} on {device:?}"
                );
            }
        }
        // Two shapes were captured; the other calls are the test's own.
        assert_eq!(recorded.get(), 2 + 5);
        let compiles = Statistics::of(&device).compiled;
        let [x, w] = [[8, 4], [4, 6]].map(|shape| Tensor::ones(shape, DType::F32, &device));
        compiled.call(&[&x, &w]).expect("a step");
        assert!(
            Statistics::of(&device).compiled <= compiles + 1,
            "only the ones themselves"
        );
    }
    let device = cpu();
    let x = Tensor::ones([2], DType::F32, &device);
    let refused = |function: fn(&[Tensor]) -> perpetua_tensor::Result<Vec<Tensor>>, expect: &str| {
        let error = perpetua_tensor::compile(function)
            .call(&[&x])
            .expect_err(expect)
            .to_string();
        assert!(error.contains(expect), "{error}");
    };
    refused(
        |x| Ok(vec![&x[0] * x[0].to_vec::<f32>()?[0]]),
        "there are no values yet",
    );
    refused(
        |x| Ok(vec![&x[0] + Random::new(1, x[0].device()).uniform([2])]),
        "make them outside",
    );
    refused(|x| Ok(vec![x[0].reshape([3])]), "do not fill");
    let wide = perpetua_tensor::compile(|x| Ok(vec![&x[0] * 2.0]));
    for n in 1..20 {
        let doubled = wide
            .call(&[&Tensor::ones([n], DType::F32, &device)])
            .expect("twice");
        assert_eq!(doubled[0].to_vec::<f32>().expect("floats"), vec![2.0; n]);
    }
}

#[test]
fn kernels_that_nobody_used_for_long_go() {
    let device = cpu();
    let x = Tensor::from_slice(&[1.0f32, -2.0, 3.0], [3], &device);
    // Eleven bits of which operator comes next.
    let of = |bits: usize| -> Tensor {
        let next = |x: Tensor, bit: usize| {
            if bits >> bit & 1 == 0 {
                x.abs()
            } else {
                x.negative()
            }
        };
        (0..11).fold(x.clone(), next)
    };
    let compiled = |bits| {
        let before = Statistics::of(&device).compiled;
        of(bits).realize().expect("a value");
        Statistics::of(&device).compiled - before
    };
    let all: u64 = (0..1500).map(compiled).sum();
    assert_eq!(all, 1500);
    assert_eq!((compiled(1499), compiled(0)), (0, 1));
    check("compiled again", &of(3));
}

#[test]
fn a_long_chain_is_cut_and_computed() {
    let device = cpu();
    let mut x = Tensor::from_slice(&[1.0f32, 2.0], [2], &device);
    for i in 0..1000 {
        x = &x + f64::from(i % 7) - 3.0;
    }
    assert!(kernels(&x) >= 10, "{}", kernels(&x));
    check("a long chain", &x);
}

#[test]
fn many_inputs_respect_what_the_device_binds() {
    for device in devices() {
        let mut sum = values(DType::F32, &[100], 0, &device).isfinite().cast(DType::F32);
        for i in 1..40 {
            sum = sum + values(DType::F32, &[100], i, &device).isfinite().cast(DType::F32);
        }
        check("forty inputs", &sum);
    }
}

#[test]
fn few_long_rows_are_combined_in_parts() {
    for device in devices() {
        let long = values(DType::F32, &[3, 50_001], 1, &device);
        let long = long.isfinite().select(&long, 0.25);
        check("sum of long rows", &long.sum(1));
        check("a chain on both sides", &((&long * 2.0).sum(..) + 1.0).tanh());
        check("max", &values(DType::F32, &[20_000], 2, &device).max(0));
        check("a product of few that are not one", &(&long * 1e-9 + 1.0).prod(1));
        check("softmax", &long.softmax(1));
        let columns = values(DType::F16, &[5000, 20], 3, &device);
        check("sum of columns", &columns.isfinite().select(&columns, 0.5).sum(0));
        check("of bool", &values(DType::Bool, &[40_000], 4, &device).sum(..));
        check(
            "mean of all axes",
            &values(DType::I32, &[200, 3, 100], 5, &device).mean(..),
        );
    }
    let device = cpu();
    let ones = Tensor::ones([1 << 20], DType::F32, &device);
    assert_eq!(kernels(&ones.sum(..)), 2);
    // Elements of a part are summed in 256 lanes, parts' results in their order.
    let place = |i: usize| (i % 1000) as f32 * 0.37 - 100.0;
    let numbers: Vec<f32> = (0..20_000).map(place).collect();
    let halve = |mut lanes: Vec<f32>| {
        while lanes.len() > 1 {
            let half = lanes.len() / 2;
            lanes = (0..half).map(|i| lanes[i] + lanes[i + half]).collect();
        }
        lanes[0]
    };
    let part = |part: &[f32]| {
        let lane = |lane: usize| part.iter().skip(lane).step_by(256).fold(0.0f32, |a, b| a + b);
        halve((0..256).map(lane).collect())
    };
    let expected = numbers.chunks(5000).map(part).fold(0.0f32, |a, b| a + b);
    let found = Tensor::from_slice(&numbers, [20_000], &device).sum(..);
    assert_eq!(found.to_vec::<f32>().expect("a sum"), [expected]);
}

#[test]
fn what_meets_its_own_views_is_not_computed_a_million_times() {
    let device = cpu();
    let mut x = values(DType::F32, &[64], 1, &device).isfinite().cast(DType::F32);
    for _ in 0..30 {
        x = (&x + x.flip(0)) * 0.5;
    }
    let explanation = x.explain().expect("it can be explained");
    assert!(
        explanation.kernels.iter().any(|(_, stay)| *stay == Stay::Often),
        "{explanation}"
    );
    check("thirty flips", &x);
}

/// One step of a random graph: an operation and what it takes.
#[derive(Clone, Debug)]
enum Grow {
    Unary(u8, usize),
    Binary(u8, usize, usize),
    View(u8, usize),
    Reduce(u8, usize),
    Random(u64),
}

fn grow() -> impl Strategy<Value = Grow> {
    prop_oneof![
        3 => (any::<u8>(), any::<usize>()).prop_map(|(op, x)| Grow::Unary(op, x)),
        4 => (any::<u8>(), any::<usize>(), any::<usize>()).prop_map(|(op, x, y)| Grow::Binary(op, x, y)),
        3 => (any::<u8>(), any::<usize>()).prop_map(|(op, x)| Grow::View(op, x)),
        2 => (any::<u8>(), any::<usize>()).prop_map(|(op, x)| Grow::Reduce(op, x)),
        1 => any::<u64>().prop_map(Grow::Random),
    ]
}

/// The tensors of a random graph; all have the shape of the first, or are brought back to it.
fn graph(steps: &[Grow], shape: &[usize; 2], device: &Device) -> Vec<Tensor> {
    let mut all = vec![
        Tensor::linspace(-2.0, 3.0, shape[0] * shape[1], device)
            .reshape([shape[0] as isize, shape[1] as isize]),
        Tensor::coordinates(shape, 1, device).cast(DType::F32) * 0.25,
    ];
    let back = |x: Tensor| x.expand(shape);
    for step in steps {
        let pick = |i: usize| all[i % all.len()].clone();
        let next = match step {
            Grow::Unary(op, x) => match op % 8 {
                0 => pick(*x).negative(),
                1 => pick(*x).abs(),
                2 => pick(*x).tanh(),
                3 => pick(*x).sin(),
                4 => pick(*x).floor(),
                5 => pick(*x).sigmoid(),
                6 => pick(*x).cast(DType::I32).cast(DType::F32),
                _ => pick(*x).cast(DType::F16).cast(DType::F32),
            },
            Grow::Binary(op, x, y) => match op % 6 {
                0 => pick(*x) + pick(*y),
                1 => pick(*x) - pick(*y),
                2 => pick(*x) * pick(*y),
                3 => pick(*x).maximum(pick(*y)),
                4 => pick(*x).greater(pick(*y)).select(pick(*x), 0.5),
                _ => pick(*x).matmul(pick(*y).transpose()).matmul(pick(*y)) * 0.01,
            },
            Grow::View(op, x) => match op % 5 {
                0 => pick(*x).flip(0),
                1 => pick(*x)
                    .transpose()
                    .reshape([shape[0] as isize, shape[1] as isize]),
                2 => back(pick(*x).slice([Slice::from(0)])),
                3 => pick(*x)
                    .slice([Slice::from(..), Slice::every(2)])
                    .pad([(0, 0), (0, shape[1] / 2)], 1.0),
                _ => pick(*x)
                    .pad([(1, 0), (0, 1)], 0.0)
                    .slice([Slice::from(..-1), Slice::from(1..)]),
            },
            Grow::Reduce(op, x) => match op % 5 {
                0 => back(pick(*x).sum_keep(1)),
                1 => back(pick(*x).max_keep(0)),
                2 => pick(*x).softmax(1),
                3 => back(pick(*x).mean_keep(..)),
                _ => layer_norm(&pick(*x)),
            },
            Grow::Random(seed) => Random::new(*seed, device).uniform(shape),
        };
        all.push(next);
    }
    all
}

fn fused_equals_unfused(device: &Device, cases: u32, longest: usize) {
    let mut config = ProptestConfig::with_cases(cases);
    config.failure_persistence = None;
    let strategy = (
        proptest::collection::vec(grow(), 5..longest),
        1usize..6,
        prop_oneof![1usize..9, 60usize..140],
    );
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let outcome = runner.run(&strategy, |(steps, rows, columns)| {
        let shape = [rows, columns];
        let last = |all: Vec<Tensor>| all.into_iter().rev().take(2).collect::<Vec<_>>();
        let (fused, apart) = (
            last(graph(&steps, &shape, device)),
            last(graph(&steps, &shape, device)),
        );
        realize_unfused(&apart.iter().collect::<Vec<_>>()).expect("unfused");
        Tensor::realize_all(&fused.iter().collect::<Vec<_>>()).expect("fused");
        for (fused, apart) in fused.iter().zip(&apart) {
            let same = bits(fused)
                .expect("fused")
                .into_iter()
                .zip(bits(apart).expect("unfused"));
            for (place, (fused, apart)) in same.enumerate() {
                let nan = |bits: u64| f32::from_bits(bits as u32).is_nan();
                prop_assert!(
                    fused == apart || nan(fused) && nan(apart),
                    "element {place}: {fused:#x}, unfused {apart:#x}"
                );
            }
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{device:?}: {error}"));
}

#[test]
fn random_graphs_have_the_same_bits_fused_and_unfused() {
    for device in devices() {
        // Some drivers of Vulkan make one operation of a product and a sum where they meet in a kernel; WGSL cannot forbid it.
        let probe = device.info().numeric_probe;
        if probe.is_some_and(|probe| probe.no_contraction == Some(false)) {
            eprintln!("skipped on {device:?}: its driver contracts products and sums");
            continue;
        }
        let (cases, longest) = if device.backend() == BackendKind::Cpu {
            (60, 40)
        } else {
            (15, 20)
        };
        fused_equals_unfused(&device, cases, longest);
    }
}

#[test]
fn random_graphs_equal_plain_evaluation() {
    let mut config = ProptestConfig::with_cases(60);
    config.failure_persistence = None;
    let strategy = (
        proptest::collection::vec(grow(), 5..25),
        1usize..6,
        prop_oneof![1usize..9, 60usize..140],
    );
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let device = cpu();
    let outcome = runner.run(&strategy, |(steps, rows, columns)| {
        if let Some(last) = graph(&steps, &[rows, columns], &device).last() {
            check("a random graph", last);
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}
