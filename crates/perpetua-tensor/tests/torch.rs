//! Operators and their gradients against what PyTorch computes (`torch/golden.py` has written that, once).

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "what fails in a helper fails a test"
)]

mod common;

use perpetua_device::Device;
use perpetua_tensor::{DType, Tensor, Window};

/// The same numbers as the script's.
fn numbers(shape: &[usize], seed: i64, device: &Device) -> Tensor {
    let n: usize = shape.iter().product();
    let number = |i: i64| ((i * 389 + seed * 101 + 11) % 1009 - 504) as f32 / 128.0;
    let all: Vec<f32> = (0..n as i64).map(number).collect();
    Tensor::from_slice(&all, shape, device)
}

fn integers(shape: &[usize], seed: i32, below: i32, device: &Device) -> Tensor {
    let n: usize = shape.iter().product();
    let all: Vec<i32> = (0..n as i32)
        .map(|i| (i * 389 + seed * 101 + 11) % 1009 % below)
        .collect();
    Tensor::from_slice(&all, shape, device)
}

fn window() -> Window {
    Window::new()
}

/// What a case of the script computes, of its operands.
fn case(name: &str, x: &[Tensor]) -> Tensor {
    let device = x[0].device();
    let index = |shape: &[usize], below| integers(shape, 3, below, device);
    let a = &x[0];
    let b = || &x[1];
    match name {
        "unfold" => a.unfold(1, 4, 3),
        "conv1d" => a.conv1d(b(), &window().stride(2).padding(1).dilation(2).groups(2)),
        "conv2d" => a.conv2d(b(), &window()),
        "conv2d_all" => {
            let window = window().stride([2, 1]).padding([1, 2]);
            a.conv2d(b(), &window.dilation([2, 1]).groups(2))
        }
        "conv2d_depthwise" => a.conv2d(b(), &window().padding(1).groups(3)),
        "conv2d_far" => a.conv2d(b(), &window().stride(5)),
        "conv3d" => a.conv3d(b(), &window().stride([1, 2, 1]).padding(1)),
        "conv_transpose1d" => {
            let window = window().stride(3).padding(1).output_padding(2);
            a.conv_transpose1d(b(), &window.groups(2).dilation(2))
        }
        "conv_transpose2d" => {
            let window = window().stride([2, 1]).padding([1, 0]);
            a.conv_transpose2d(b(), &window.output_padding([1, 0]))
        }
        "conv_transpose2d_inside" => a.conv_transpose2d(b(), &window().padding(3)),
        "max_pool1d" => a.max_pool1d(3, &window().stride(2).padding(1)),
        "max_pool2d" => a.max_pool2d([3, 2], &window().padding([1, 0]).dilation([1, 2])),
        "avg_pool1d" => a.avg_pool1d(4, &window()),
        "avg_pool2d" => a.avg_pool2d(3, &window().stride(2).padding(1)),
        "interpolate_nearest_1" => a.interpolate_nearest(&[8]),
        "interpolate_nearest_2" => a.interpolate_nearest(&[7, 3]),
        "interpolate_linear_up" => a.interpolate_linear(&[7, 9]),
        "interpolate_linear_down" => a.interpolate_linear(&[3, 2]),
        "layer_norm" => a.layer_norm(-1, 1e-5),
        "layer_norm_2" => a.layer_norm([1, 2], 1e-3),
        "rms_norm" => a.rms_norm(-1, 1e-5),
        "group_norm" => a.group_norm(3, 1e-5),
        "batch_norm" => a.batch_norm(&a.mean([0, 2]), &a.var([0, 2]), 1e-5),
        "normalize" => a.normalize(0, 1e-12),
        "vector_norm" => a.vector_norm(1),
        "cosine_similarity" => a.cosine_similarity(b(), 1, 1e-8),
        "attention" => a.attention(b(), &x[2], None),
        "attention_causal" => {
            let mask = Tensor::ones([3, 5], DType::F32, device).tril(2).cast(DType::Bool);
            a.attention(b(), &x[2], Some(&mask))
        }
        "causal_attention" => a.causal_attention(b(), &x[2]),
        "attention_bias" => a.attention(b(), &x[2], Some(&x[3])),
        "relu6" => (a * 3).relu6(),
        "hardtanh" => a.hardtanh(),
        "hardsigmoid" => a.hardsigmoid(),
        "hardswish" => a.hardswish(),
        "log_sigmoid" => a.log_sigmoid(),
        "mish" => a.mish(),
        "selu" => a.selu(),
        "softsign" => a.softsign(),
        "gelu_erf" => a.gelu_erf(),
        "gelu" => a.gelu(),
        "silu" => a.silu(),
        "sigmoid" => a.sigmoid(),
        "softplus" => a.softplus(),
        "elu" => a.elu(1.5),
        "leaky_relu" => a.leaky_relu(0.1),
        "softmax" => a.softmax(0),
        "log_softmax" => a.log_softmax(1),
        "logsumexp" => a.logsumexp(1),
        "repeat" => a.repeat(3, 1),
        "moveaxis" => a.moveaxis(0, 2),
        "swapaxes" => a.swapaxes(0, 2),
        "unstack" => a.unstack(1).swap_remove(2),
        "diagonal" => a.diagonal(0),
        "diagonal_above" => a.diagonal(2),
        "diagonal_below" => a.diagonal(-1),
        "trace" => a.trace(),
        "outer" => a.outer(b()),
        "cross" => a.cross(b()),
        "matrix_power" => a.matrix_power(3),
        "tensordot" => a.tensordot(b(), 2),
        "vecdot" => a.vecdot(b(), 1),
        "glu" => a.glu(1),
        "cumsum" => a.cumsum(1),
        "cumprod" => a.cumprod(1),
        "roll" => a.roll(2, 1),
        "tile" => a.tile(3, 1),
        "tril" => a.tril(-1),
        "triu" => a.triu(1),
        "diff" => a.diff(0),
        "var" => a.var(1),
        "std" => a.std(0),
        "prod" => a.prod(1),
        "max" => a.max(1),
        "min" => a.min(0),
        "einsum_1" => a.einsum(&[b()], "bij,jk->bik"),
        "einsum_2" => a.einsum(&[b(), &x[2]], "ij,j,ik->k"),
        "einsum_3" => a.einsum(&[], "ii->i"),
        "matmul" => a.matmul(b()),
        "remainder" => a.remainder(b()),
        "fmod" => a.fmod(b()),
        "maximum" => a.maximum(b()),
        "minimum" => a.minimum(b()),
        "logaddexp" => a.logaddexp(b()),
        "atan2" => a.atan2(b()),
        "hypot" => a.hypot(b()),
        "copysign" => a.copysign(b()),
        "clip" => a.clip(-1, 2),
        "sort" => a.sort(1, true),
        "topk" => a.topk(3, 1).0,
        "gather" => a.gather(1, &index(&[4, 3], 5)),
        "index_select" => a.index_select(0, &index(&[6], 4)),
        "embedding" => a.embedding(&index(&[2, 4], 7)),
        "scatter_add" => a.scatter_add(1, &index(&[4, 6], 5), b()),
        "scatter_max" => a.scatter_max(1, &index(&[4, 6], 5), b()),
        "mse_loss" => a.mse_loss(b()),
        "l1_loss" => a.l1_loss(b()),
        "huber_loss" => a.huber_loss(b(), 1.5),
        "smooth_l1_loss" => a.smooth_l1_loss(b(), 1.5),
        "kl_div" => a.log_softmax(1).kl_div(&b().softmax(1)),
        "nll_loss" => a.nll_loss(&index(&[3], 5)),
        "bce_loss" => a.bce_loss(&b().sigmoid()),
        "cross_entropy" => a.cross_entropy(&index(&[3], 5)),
        _ => panic!("no case `{name}` here"),
    }
}

struct Golden {
    shape: Vec<usize>,
    values: Vec<f32>,
}

/// The script's lines: of each case its result and its operands' gradients.
fn golden() -> Vec<(&'static str, Golden, Vec<Golden>)> {
    let mut cases: Vec<(&str, Golden, Vec<Golden>)> = Vec::new();
    for line in include_str!("torch/golden.txt").lines() {
        let [name, what, shape, values] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not a line of the script's: {line}");
        };
        let extents = shape.split(',').filter(|extent| *extent != "-");
        let found = Golden {
            shape: extents.map(|n| n.parse().expect("an extent")).collect(),
            values: values.split(' ').map(|x| x.parse().expect("a number")).collect(),
        };
        match what {
            "out" => cases.push((name, found, Vec::new())),
            _ => cases.last_mut().expect("its result").2.push(found),
        }
    }
    cases
}

fn compare(what: &str, found: &Tensor, expected: &Golden) {
    assert_eq!(found.shape(), expected.shape, "{what}");
    let found = found
        .to_vec::<f32>()
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let size = expected.values.iter().fold(0.0f32, |size, x| size.max(x.abs()));
    for (i, (found, expected)) in found.iter().zip(&expected.values).enumerate() {
        // Both are rounded at each of a few operations, here and there in another order.
        let bound = 2e-5 * expected.abs() + 4e-6 * size + 1e-6;
        assert!(
            (found - expected).abs() <= bound,
            "{what}: element {i} is {found}, expected {expected}"
        );
    }
}

#[test]
fn operators_and_gradients_are_those_of_pytorch() {
    let cases = golden();
    for device in common::devices() {
        on(&device, &cases);
    }
}

fn on(device: &Device, cases: &[(&str, Golden, Vec<Golden>)]) {
    for (name, expected, gradients) in cases {
        let shapes = gradients.iter().map(|gradient| &gradient.shape);
        let operands: Vec<Tensor> = (1..)
            .zip(shapes)
            .map(|(seed, shape)| numbers(shape, seed, device).tracked())
            .collect();
        let out = case(name, &operands);
        compare(name, &out, expected);
        let weight = numbers(&expected.shape, 9, device);
        let sum = (&out * weight).sum(..);
        for (i, (operand, expected)) in operands.iter().zip(gradients).enumerate() {
            let what = format!("{name}, the gradient by operand {i}");
            match sum.grad(&[operand]) {
                Ok(found) => compare(&what, &found[0], expected),
                // What PyTorch says is 0 everywhere may have none here.
                Err(error) => assert!(expected.values.iter().all(|x| *x == 0.0), "{what}: {error}"),
            }
        }
    }
}

#[test]
fn windows_that_lead_nowhere_are_refused() {
    let device = Device::new(perpetua_device::BackendKind::Cpu, 0).expect("the CPU");
    let (x, w) = (numbers(&[1, 1, 6], 1, &device), numbers(&[1, 1, 3], 2, &device));
    let refused = |tensor: Tensor, words: &str| {
        let error = tensor.check().expect_err("it is refused").to_string();
        assert!(error.contains(words), "{error}");
    };
    refused(x.unfold(2, 7, 1), "a window spans 7 elements of 6");
    refused(x.conv1d(&w, &window().dilation(usize::MAX)), "a window spans");
    refused(x.conv1d(&w, &window().stride(0)), "at least 1");
    refused(x.conv1d(&w, &window().groups(2)), "2 groups of 1 channels");
    refused(x.interpolate_nearest(&[usize::MAX]), "their product is at most");
    // One window, however far the next.
    assert_eq!(x.unfold(2, 3, usize::MAX).shape(), [1, 1, 1, 3]);
    assert_eq!(x.conv1d(&w, &window().stride(usize::MAX)).shape(), [1, 1, 1]);
}
