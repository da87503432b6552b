//! Products that the kernel library computes, against sums in f64; fused and unfused to the bit; and what says that it computes them.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "what fails in a helper fails a test"
)]

mod common;

use common::devices;
use perpetua_device::{BackendKind, Device};
use perpetua_tensor::testing::{attention_by_library, bits, realize_by_library};
use perpetua_tensor::{DType, Tensor, vmap};

fn numbers(shape: &[usize], seed: usize, dtype: DType, device: &Device) -> Tensor {
    let n: usize = shape.iter().product();
    let all: Vec<f32> = (0..n)
        .map(|i| ((i * 389 + seed * 101 + 11) % 1009) as f32 / 256.0 - 2.0)
        .collect();
    Tensor::from_slice(&all, shape, device).cast(dtype)
}

fn wide(x: &Tensor) -> Vec<f64> {
    let all = x.cast(DType::F32).to_vec::<f32>().expect("floats");
    all.into_iter().map(f64::from).collect()
}

/// Types, and how far one rounding of each is off; sums in `f32` are off by up to 2^-24 of all magnitudes for each term more.
const TYPES: [(DType, f64); 3] = [
    (DType::F32, 1e-7),
    (DType::F16, 1.0 / 1024.0),
    (DType::BF16, 1.0 / 128.0),
];

/// A product of `[batch, m, k]` and `[batch, k, n]`, whose elements are given by their places.
fn holds(
    what: &str,
    [batch, m, n, k]: [usize; 4],
    bound: f64,
    found: &Tensor,
    a: impl Fn(usize, usize, usize) -> f64,
    b: impl Fn(usize, usize, usize) -> f64,
) {
    let found = wide(found);
    assert_eq!(found.len(), batch * m * n, "{what}");
    for (at, found) in found.iter().enumerate() {
        let (layer, row, column) = (at / (m * n), at / n % m, at % n);
        let terms = (0..k).map(|i| a(layer, row, i) * b(layer, i, column));
        let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
        assert!(
            (found - sum).abs() <= (bound + k as f64 * f64::from(f32::EPSILON) / 2.0) * size + 1e-6,
            "{what}: element {at} is {found}, expected {sum}"
        );
    }
}

/// The same by the library, fused and not; `expected`: how many operations it takes.
fn both(what: &str, expected: usize, make: impl Fn() -> Tensor) -> Tensor {
    let [fused, apart] = [true, false].map(|fuses| {
        let tensor = make();
        let count = realize_by_library(&[&tensor], fuses).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(count, expected, "{what}, fused: {fuses}");
        tensor
    });
    assert_eq!(bits(&fused).expect(what), bits(&apart).expect(what), "{what}");
    fused
}

#[test]
fn products_of_every_layout_are_the_librarys() {
    for device in devices() {
        if device.backend() == BackendKind::Wgpu {
            continue;
        }
        for (dtype, bound) in TYPES {
            let of = |shape: &[usize], seed| {
                let x = numbers(shape, seed, dtype, &device);
                x.realize().expect("a value");
                x
            };
            let (m, n, k) = (40, 72, 33);
            let (a, b) = (of(&[m, k], 1), of(&[k, n], 2));
            let (at, bt) = (of(&[k, m], 1), of(&[n, k], 2));
            let [wa, wb, wat, wbt] = [&a, &b, &at, &bt].map(wide);
            let what = |name: &str| format!("{name} of {dtype} on {device:?}");
            let size = [1, m, n, k];
            let check = |name: &str, make: &dyn Fn() -> Tensor, turned: [bool; 2]| {
                let left = |_, row: usize, i: usize| {
                    if turned[0] {
                        wat[i * m + row]
                    } else {
                        wa[row * k + i]
                    }
                };
                let right = |_, i: usize, column: usize| {
                    if turned[1] {
                        wbt[column * k + i]
                    } else {
                        wb[i * n + column]
                    }
                };
                holds(&what(name), size, bound, &both(&what(name), 1, make), left, right);
            };
            check("as stored", &|| a.matmul(&b), [false, false]);
            check("left turned", &|| at.transpose().matmul(&b), [true, false]);
            check("right turned", &|| a.matmul(bt.transpose()), [false, true]);
            check(
                "both turned",
                &|| at.transpose().matmul(bt.transpose()),
                [true, true],
            );
            // What is computed before and behind has kernels of its own.
            let found = both(&what("a chain"), 1, || {
                ((&a + 1).matmul(b.negative()) * 0.5).relu()
            });
            let rounded = wide(&(&a + 1));
            let exact = |row: usize, column: usize| -> f64 {
                (0..k).map(|i| -rounded[row * k + i] * wb[i * n + column]).sum()
            };
            for (place, found) in wide(&found).into_iter().enumerate() {
                let expected = (exact(place / n, place % n) * 0.5).max(0.0);
                assert!(
                    (found - expected).abs() <= (bound + 2e-6) * 200.0,
                    "{found}, {expected}"
                );
            }
        }
    }
}

#[test]
fn many_products_are_one_launch_where_there_are_stages() {
    for device in devices() {
        if device.backend() == BackendKind::Wgpu {
            continue;
        }
        let (dtype, bound) = (DType::BF16, 1.0 / 128.0);
        let of = |shape: &[usize], seed| {
            let x = numbers(shape, seed, dtype, &device);
            x.realize().expect("a value");
            x
        };
        let (batch, m, n, k) = (3, 20, 24, 16);
        let (a, b, one) = (of(&[batch, m, k], 1), of(&[batch, n, k], 2), of(&[k, n], 3));
        let [wa, wb, w1] = [&a, &b, &one].map(wide);
        let left = |layer: usize, row: usize, i: usize| wa[(layer * m + row) * k + i];
        let size = [batch, m, n, k];
        let found = both("each its own", 1, || a.matmul(b.transpose()));
        let own = |layer: usize, i: usize, column: usize| wb[(layer * n + column) * k + i];
        holds("each its own", size, bound, &found, left, own);
        let shared = |_, i: usize, column: usize| w1[i * n + column];
        let found = both("one for all", 1, || a.matmul(&one));
        holds("one for all", size, bound, &found, left, shared);
        let found = both("one for all, repeated", 1, || {
            a.matmul(one.reshape([1, k as isize, n as isize]))
        });
        holds("one for all, repeated", size, bound, &found, left, shared);
    }
}

#[test]
fn gradients_go_through_the_librarys_products() {
    for device in devices() {
        if device.backend() == BackendKind::Wgpu {
            continue;
        }
        let gradients = |by_library: bool| {
            let x = numbers(&[5, 8, 16], 1, DType::F16, &device).detach();
            let w = numbers(&[16, 24], 2, DType::F16, &device).tracked();
            let loss = x.matmul(&w).relu().cast(DType::F32).sum(..);
            let gradient = loss.grad(&[&w]).expect("a gradient").remove(0);
            if by_library {
                assert_eq!(realize_by_library(&[&gradient], true).expect("a value"), 2);
            }
            wide(&gradient)
        };
        for (found, expected) in gradients(true).into_iter().zip(gradients(false)) {
            assert!((found - expected).abs() <= 0.1, "{found}, {expected}");
        }
    }
}

#[test]
fn types_and_shapes_decide_and_explanations_say_so() {
    for device in devices() {
        let text = |dtype, n: usize| {
            let x = Tensor::ones([n, n], dtype, &device);
            x.matmul(&x).relu().explain().expect("no error").to_string()
        };
        let is_taken = device.backend() == BackendKind::Cuda;
        assert_eq!(text(DType::BF16, 512).contains("of the kernel library"), is_taken);
        assert_eq!(text(DType::F32, 512).contains("of the kernel library"), is_taken);
        // Small ones fuse.
        for dtype in [DType::BF16, DType::F32] {
            assert!(!text(dtype, 48).contains("of the kernel library"));
        }
        assert!(!text(DType::I32, 512).contains("of the kernel library"));
    }
}

#[test]
fn large_products_are_right_where_the_library_computes_them() {
    for device in devices() {
        if device.backend() != BackendKind::Cuda {
            continue;
        }
        for (dtype, bound) in TYPES {
            let (m, n, k) = (512, 640, 512);
            let (a, b) = (
                numbers(&[m, k], 1, dtype, &device),
                numbers(&[n, k], 2, dtype, &device),
            );
            let product = a.matmul(b.transpose());
            let (wa, wb) = (wide(&a), wide(&b));
            let left = |_, row: usize, i: usize| wa[row * k + i];
            let right = |_, i: usize, column: usize| wb[column * k + i];
            holds(&format!("{dtype}"), [1, m, n, k], bound, &product, left, right);
        }
    }
}

#[test]
fn attention_of_the_library_is_that_of_its_formula_with_its_gradients() {
    for device in devices() {
        if device.backend() == BackendKind::Wgpu {
            continue;
        }
        for causal in [false, true] {
            let bound = 0.02;
            let variables = || {
                let of = |shape: &[usize], seed| (numbers(shape, seed, DType::F16, &device) * 0.5).tracked();
                [
                    of(&[2, 3, 8, 16], 1),
                    of(&[2, 3, 10, 16], 2),
                    of(&[2, 3, 10, 16], 3),
                ]
            };
            let by = |library: bool| {
                let [q, k, v] = &variables();
                let out = match (library, causal) {
                    (true, _) => attention_by_library([q, k, v], causal).expect("it takes these"),
                    (false, true) => q.causal_attention(k, v),
                    (false, false) => q.attention(k, v, None),
                };
                let loss = out.cast(DType::F32).square().sum(..);
                let gradients = loss.grad(&[q, k, v]).expect("gradients");
                let mut all = wide(&out);
                gradients.iter().for_each(|gradient| all.extend(wide(gradient)));
                all
            };
            for (found, expected) in by(true).into_iter().zip(by(false)) {
                assert!(
                    (found - expected).abs() <= bound * (1.0 + expected.abs()),
                    "{found}, {expected}"
                );
            }
        }
        // Each example by itself, as all at once.
        let of = |seed| numbers(&[2, 4, 16], seed, DType::F32, &device);
        let (q, k, v) = (of(1), of(2), of(3));
        let each = vmap(
            |x| Ok(attention_by_library([&x[0], &x[1], &x[2]], true).expect("it takes these")),
            &[&q, &k, &v],
        );
        let all = attention_by_library([&q, &k, &v], true).expect("it takes these");
        assert_eq!(wide(&each.expect("attention")), wide(&all));
    }
}
