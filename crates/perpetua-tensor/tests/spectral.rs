//! Fourier transforms of many lengths against their definition, and operators whose shape depends on values.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "what fails in a helper fails a test"
)]

mod common;

use common::{devices, has};
use perpetua_device::{BackendKind, Device};
use perpetua_tensor::{DType, Slice, Tensor, compile};

fn numbers(n: usize) -> Vec<f64> {
    (0..n)
        .map(|i| ((i * 389 + 11) % 1009) as f64 / 512.0 - 1.0)
        .collect()
}

fn on(values: &[f64], shape: &[usize], dtype: DType, device: &Device) -> Tensor {
    match dtype {
        DType::F64 => Tensor::from_slice(values, shape, device),
        _ => {
            let narrow: Vec<f32> = values.iter().map(|x| *x as f32).collect();
            Tensor::from_slice(&narrow, shape, device)
        }
    }
}

fn read(x: &Tensor) -> Vec<f64> {
    match x.dtype() {
        DType::F64 => x.to_vec::<f64>().expect("floats"),
        _ => x
            .to_vec::<f32>()
            .expect("floats")
            .into_iter()
            .map(f64::from)
            .collect(),
    }
}

/// The definition, of pairs.
fn transform(x: &[f64], back: bool) -> Vec<f64> {
    let n = x.len() / 2;
    let sign = if back { 1.0 } else { -1.0 };
    let mut all = vec![0.0; 2 * n];
    for k in 0..n {
        for j in 0..n {
            let (sin, cos) = (sign * std::f64::consts::TAU * (j * k % n) as f64 / n as f64).sin_cos();
            all[2 * k] += x[2 * j] * cos - x[2 * j + 1] * sin;
            all[2 * k + 1] += x[2 * j] * sin + x[2 * j + 1] * cos;
        }
    }
    all
}

fn near(what: &str, found: &[f64], expected: &[f64], bound: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let size = expected.iter().fold(1e-30f64, |size, x| size.max(x.abs()));
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!(
            (a - b).abs() <= bound * size,
            "{what}: element {i} is {a}, expected {b}"
        );
    }
}

#[test]
fn transforms_of_any_length_are_their_definition() {
    // Products, stages of several radices, primes by convolution, and both.
    const LENGTHS: [usize; 22] = [
        1, 2, 3, 4, 5, 7, 16, 31, 33, 37, 48, 61, 64, 67, 74, 96, 101, 210, 243, 360, 514, 1021,
    ];
    for device in devices() {
        for (dtype, bound) in [(DType::F32, 2e-6), (DType::F64, 1e-13)] {
            if !has(&device, dtype) {
                continue;
            }
            for n in LENGTHS
                .into_iter()
                .filter(|n| device.backend() == BackendKind::Cpu || [5, 33, 67, 96].contains(n))
            {
                let what = format!("{n} of {dtype} on {device:?}");
                let values = numbers(2 * n);
                let x = on(&values, &[n, 2], dtype, &device);
                let there = x.fft(0);
                near(&what, &read(&there), &transform(&values, false), bound);
                near(&what, &read(&there.ifft(0)), &values, 4.0 * bound);
                let scaled: Vec<f64> = transform(&values, true).iter().map(|x| x / n as f64).collect();
                near(&what, &read(&x.ifft(-1)), &scaled, bound);
                // Of real numbers.
                let real = on(&values[..n], &[n], dtype, &device);
                let pairs: Vec<f64> = values[..n].iter().flat_map(|x| [*x, 0.0]).collect();
                let half = real.rfft(0);
                near(
                    &what,
                    &read(&half),
                    &transform(&pairs, false)[..2 * (n / 2 + 1)],
                    bound,
                );
                near(&what, &read(&half.irfft(n, 0)), &values[..n], 4.0 * bound);
                // What is its own mirror, conjugated, has real numbers.
                let mirror = real.ihfft(0);
                let back: Vec<f64> = transform(&pairs, true).iter().map(|x| x / n as f64).collect();
                near(&what, &read(&mirror), &back[..2 * (n / 2 + 1)], bound);
                near(&what, &read(&mirror.hfft(n, 0)), &values[..n], 4.0 * bound);
            }
        }
    }
}

#[test]
fn transforms_go_along_any_axis_and_are_refused_with_a_reason() {
    let device = Device::new(BackendKind::Cpu, 0).expect("the CPU");
    let values = numbers(3 * 4 * 5 * 2);
    let x = on(&values, &[3, 4, 5, 2], DType::F64, &device);
    let along = x.fft(1);
    for (a, c) in (0..3).flat_map(|a| (0..5).map(move |c| (a, c))) {
        let at = |b: usize| ((a * 4 + b) * 5 + c) * 2;
        let line: Vec<f64> = (0..4).flat_map(|b| [values[at(b)], values[at(b) + 1]]).collect();
        let all = read(&along);
        let found: Vec<f64> = (0..4).flat_map(|b| [all[at(b)], all[at(b) + 1]]).collect();
        near("along the second axis", &found, &transform(&line, false), 1e-13);
    }
    near(
        "several axes",
        &read(&x.fftn(&[0, 2, 1]).ifftn(&[1, 0, 2])),
        &values,
        1e-13,
    );
    near(
        "several axes",
        &read(&x.fftn(&[0, 1])),
        &read(&x.fft(1).fft(0)),
        1e-13,
    );
    let real = on(&values[..60], &[3, 4, 5], DType::F64, &device);
    let some = real.rfftn(&[0, 2]);
    let all = real.stack(&[&real.zeros_like()], -1).fftn(&[0, 2]);
    near(
        "real numbers",
        &read(&some),
        &read(&all.slice([Slice::from(..), Slice::from(..), Slice::from(..3)])),
        1e-13,
    );
    near(
        "real numbers",
        &read(&some.irfftn(5, &[0, 2])),
        &values[..60],
        1e-13,
    );
    let half = on(&values, &[3, 4, 5, 2], DType::F64, &device).cast(DType::F16);
    assert_eq!(
        (half.fft(0).dtype(), half.fft(0).shape()),
        (DType::F16, &[3, 4, 5, 2][..])
    );
    assert_eq!(x.slice([(..0isize).into()]).fft(0).shape(), [0, 4, 5, 2]);
    let refused = |y: Tensor, words: &str| {
        let text = y.check().expect_err(words).to_string();
        assert!(text.contains(words), "{text}");
    };
    refused(x.sum(-1).fft(0), "complex numbers are pairs");
    refused(x.fft(3), "axis 3");
    refused(x.irfft(9, 0), "9 numbers are 5 pairs");
    assert_eq!(
        read(&on(&[1.0, 2.0, 3.0, 4.0, 5.0], &[5], DType::F64, &device).fftshift(0)),
        [4.0, 5.0, 1.0, 2.0, 3.0]
    );
    let moved = on(&[1.0, 2.0, 3.0, 4.0, 5.0], &[5], DType::F64, &device);
    assert_eq!(read(&moved.fftshift(0).ifftshift(0)), read(&moved));
    assert_eq!(
        Tensor::fftfreq(5, 0.5, &device).to_vec::<f32>().expect("floats"),
        [0.0, 0.4, 0.8, -0.8, -0.4]
    );
    assert_eq!(
        Tensor::rfftfreq(4, 1.0, &device).to_vec::<f32>().expect("floats"),
        [0.0, 0.25, 0.5]
    );
}

#[test]
fn shapes_may_depend_on_values() {
    for device in devices() {
        let x = Tensor::from_slice(&[0.0f32, 3.0, -1.0, 0.0, 3.0, 7.0], [2, 3], &device);
        let ints = |x: &Tensor| x.to_vec::<i32>().expect("integers");
        let floats = |x: &Tensor| x.to_vec::<f32>().expect("floats");
        assert_eq!(ints(&x.flatnonzero().expect("indices")), [1, 2, 4, 5]);
        let along = x.nonzero().expect("indices");
        assert_eq!(
            (ints(&along[0]), ints(&along[1])),
            (vec![0, 0, 1, 1], vec![1, 2, 1, 2])
        );
        let chosen = x.masked_select(&x.greater(0.0)).expect("elements");
        assert_eq!(floats(&chosen), [3.0, 3.0, 7.0]);
        let unique = x.unique().expect("elements");
        assert_eq!(floats(&unique.values), [-1.0, 0.0, 3.0, 7.0]);
        assert_eq!(ints(&unique.indices), [2, 0, 1, 5]);
        assert_eq!(
            (ints(&unique.inverse), unique.inverse.shape()),
            (vec![1, 2, 0, 1, 2, 3], &[2, 3][..])
        );
        assert_eq!(ints(&unique.counts), [1, 2, 2, 1]);
        // None, one, all, each NaN by itself.
        let none = Tensor::zeros([3], DType::F32, &device);
        assert_eq!(none.flatnonzero().expect("indices").shape(), [0]);
        assert_eq!(
            none.masked_select(&none.greater(1.0)).expect("elements").shape(),
            [0]
        );
        assert_eq!(ints(&none.unique().expect("elements").counts), [3]);
        let empty = none.slice([(..0isize).into()]);
        assert_eq!(
            (
                empty.nonzero().expect("indices").len(),
                empty.unique().expect("elements").values.len()
            ),
            (1, 0)
        );
        let nan = Tensor::from_slice(&[f32::NAN, 1.0, f32::NAN], [3], &device);
        let unique = nan.unique().expect("elements");
        assert_eq!(ints(&unique.counts), [1, 1, 1]);
        assert_eq!(ints(&unique.indices), [1, 0, 2]);
        // Gradients go through what was chosen.
        let w = x.tracked();
        let sum = w
            .masked_select(&x.greater(0.0))
            .expect("elements")
            .square()
            .sum(..);
        assert_eq!(
            floats(&sum.grad(&[&w]).expect("a gradient")[0]),
            [0.0, 6.0, 0.0, 0.0, 6.0, 14.0]
        );
        let inside = compile(|x| Ok(vec![x[0].flatnonzero()?]));
        assert!(
            inside
                .call(&[&x])
                .expect_err("no values")
                .to_string()
                .contains("no values yet")
        );
    }
    let device = Device::new(BackendKind::Cpu, 0).expect("the CPU");
    let long = Tensor::arange(0, 5000, 1, &device).remainder(7).not_equal(3);
    let found = long
        .flatnonzero()
        .expect("indices")
        .to_vec::<i32>()
        .expect("integers");
    let expected: Vec<i32> = (0..5000).filter(|i| i % 7 != 3).collect();
    assert_eq!(found, expected);
}
