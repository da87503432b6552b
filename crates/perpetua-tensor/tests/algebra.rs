//! Linear algebra: what decompositions are made of gives the matrix again, batches and types, what is refused and why.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "what fails in a helper fails a test"
)]

mod common;

use common::devices;
use perpetua_device::{BackendKind, Device};
use perpetua_tensor::{DType, MatrixNorm, Tensor, compile, no_grad};

fn cpu() -> Device {
    Device::new(BackendKind::Cpu, 0).expect("the CPU")
}

fn numbers(shape: &[usize], dtype: DType, device: &Device) -> Tensor {
    let count: usize = shape.iter().product();
    let values: Vec<f64> = (0..count)
        .map(|i| ((i * 389 + 11) % 1009) as f64 / 512.0 - 1.0)
        .collect();
    Tensor::from_slice(&values, shape, device).cast(dtype)
}

fn read(x: &Tensor) -> Vec<f64> {
    x.cast(DType::F64)
        .to_vec::<f64>()
        .unwrap_or_else(|error| panic!("{error}"))
}

fn near(what: &str, found: &Tensor, expected: &Tensor) {
    let bound = match found.dtype() {
        DType::F64 => 1e-11,
        DType::F32 => 2e-4,
        _ => 5e-2,
    };
    assert_eq!(
        (found.shape(), found.dtype()),
        (expected.shape(), expected.dtype()),
        "{what}"
    );
    let expected = read(expected);
    let size = expected.iter().fold(1.0f64, |size, x| size.max(x.abs()));
    for (place, (found, expected)) in read(found).iter().zip(&expected).enumerate() {
        assert!(
            (found - expected).abs() <= bound * size,
            "{what}: element {place} is {found}, expected {expected}"
        );
    }
}

#[test]
fn parts_give_the_matrix_again() {
    let device = cpu();
    for dtype in [DType::F64, DType::F32, DType::BF16] {
        for shape in [
            &[3usize, 3][..],
            &[5, 3],
            &[3, 5],
            &[1, 1],
            &[2, 2, 7, 4],
            &[4, 40, 40],
            &[0, 3],
            &[3, 0],
            &[2, 0, 0],
        ] {
            // An inverse of rounded numbers is no better than their condition.
            if dtype == DType::BF16 && shape.contains(&40) {
                continue;
            }
            let x = numbers(shape, dtype, &device);
            let what = format!("{x:?}");
            let of = |a: &Tensor, b: &Tensor| a.matmul(b);
            let [.., m, n] = *shape else { unreachable!() };
            let k = m.min(n);
            let eye = |n: usize| {
                let shape = [&shape[..shape.len() - 2], &[n, n]].concat();
                Tensor::eye(n, n, dtype, &device).expand(shape)
            };

            let (p, l, u) = x.lu();
            let ones = Tensor::eye(m, k, dtype, &device).expand(l.shape());
            near(&what, &of(&p, &of(&l, &u)), &x);
            near(&what, &l.tril(-1), &(&l - &ones));
            near(&what, &u.triu(0), &u);
            near(&what, &of(&p.transpose(), &p), &eye(m));

            let (q, r) = x.qr();
            near(&what, &of(&q, &r), &x);
            near(&what, &of(&q.transpose(), &q), &eye(k));
            near(&what, &r.triu(0), &r);
            let (q, r) = x.qr_complete();
            near(&what, &of(&q, &r), &x);
            near(&what, &of(&q.transpose(), &q), &eye(m));

            let (u, s, v) = x.svd();
            near(&what, &of(&(&u * s.expand_dims(-2)), &v), &x);
            near(&what, &of(&u.transpose(), &u), &eye(k));
            near(&what, &of(&v, &v.transpose()), &eye(k));
            assert!(read(&s.diff(-1)).iter().all(|step| *step <= 0.0), "{what}");

            let inverse = x.pinv(None);
            near(&what, &of(&of(&x, &inverse), &x), &x);
            if m != n {
                continue;
            }
            let symmetric = (&x + x.transpose()) * 0.5;
            let (w, v) = symmetric.eigh();
            near(&what, &of(&(&v * w.expand_dims(-2)), &v.transpose()), &symmetric);
            assert!(read(&w.diff(-1)).iter().all(|step| *step >= 0.0), "{what}");
            // The upper triangle is not read.
            near(&what, &symmetric.tril(0).eigvalsh(), &w);

            let positive = of(&x, &x.transpose()) + eye(n);
            let l = positive.cholesky();
            near(&what, &of(&l, &l.transpose()), &positive);
            near(&what, &l.tril(0), &l);

            near(&what, &of(&positive, &positive.solve(&x)), &x);
            near(&what, &of(&positive, &positive.inv()), &eye(n));
            let (sign, log) = x.slogdet();
            near(&what, &(sign * log.exp()), &x.det());
        }
    }
}

#[test]
fn known_numbers() {
    let device = cpu();
    let of = |values: &[f64], shape: &[usize]| Tensor::from_slice(values, shape, &device);
    let x = of(&[0.0, 2.0, 1.0, 1.0, 0.0, 3.0, 4.0, 5.0, 0.0], &[3, 3]);
    near("det", &x.det(), &of(&[29.0], &[]));
    near(
        "det of exchanges",
        &of(&[0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0], &[2, 2, 2]).det(),
        &of(&[-1.0, 1.0], &[2]),
    );
    let singular = of(&[1.0, 2.0, 2.0, 4.0], &[2, 2]);
    near("det", &singular.det(), &of(&[0.0], &[]));
    assert_eq!(read(&singular.slogdet().0), [0.0]);
    assert_eq!(read(&singular.slogdet().1), [f64::NEG_INFINITY]);
    let rank = |x: &Tensor| x.matrix_rank(None).to_vec::<i32>().expect("ranks");
    assert_eq!(rank(&singular), [1]);
    assert_eq!(rank(&x), [3]);
    assert_eq!(rank(&of(&[0.0; 6], &[2, 3])), [0]);
    assert_eq!(rank(&of(&[], &[0, 3])), [0]);
    assert_eq!(
        singular.matrix_rank(Some(2.0)).to_vec::<i32>().expect("ranks"),
        [0]
    );
    near(
        "vectors",
        &x.solve(&of(&[3.0, 4.0, 9.0], &[3])),
        &of(&[1.0; 3], &[3]),
    );
    // A matrix for many right sides, and many for one.
    let many = numbers(&[4, 3, 2], DType::F64, &device);
    near("many", &x.matmul(x.solve(&many)), &many);
    let several = x.expand([4, 3, 3]) + numbers(&[4, 1, 1], DType::F64, &device);
    near("many", &several.matmul(several.solve(&x)), &x.expand([4, 3, 3]));
    // A line through points.
    let points = of(&[0.0, 1.0, 1.0, 1.0, 2.0, 1.0, 3.0, 1.0], &[4, 2]);
    let heights = of(&[-1.0, 0.2, 0.9, 2.1], &[4]);
    near("line", &points.lstsq(&heights), &of(&[1.0, -0.95], &[2]));
    let y = of(&[1.0, -2.0, 3.0, 4.0], &[2, 2]);
    for (norm, expected) in [
        (MatrixNorm::Frobenius, 30f64.sqrt()),
        (MatrixNorm::Nuclear, 50f64.sqrt()),
        (MatrixNorm::Spectral, (50f64.sqrt() + 10f64.sqrt()) / 2.0),
        (MatrixNorm::SmallestSpectral, (50f64.sqrt() - 10f64.sqrt()) / 2.0),
        (MatrixNorm::Columns, 6.0),
        (MatrixNorm::SmallestColumns, 4.0),
        (MatrixNorm::Rows, 7.0),
        (MatrixNorm::SmallestRows, 3.0),
    ] {
        near(
            &format!("{norm:?}"),
            &y.matrix_norm_of(norm),
            &of(&[expected], &[]),
        );
    }
}

#[test]
fn what_cannot_be_computed_is_an_error() {
    let device = cpu();
    let refused = |y: &Tensor, words: &[&str]| {
        let error = y.realize().expect_err(words[0]).to_string();
        for word in words {
            assert!(error.contains(word), "{error}: {word}");
        }
    };
    let of = |values: &[f64], shape: &[usize]| Tensor::from_slice(values, shape, &device);
    let two = of(&[1.0, 0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 4.0], &[2, 2, 2]);
    refused(
        &two.inv(),
        &[
            "algebra.rs:",
            "`solve` of f64[2, 2, 2]",
            "matrix 1 is singular",
            "pinv",
        ],
    );
    refused(
        &(two.cholesky()),
        &["`cholesky`", "matrix 1 is not positive definite"],
    );
    let bad = of(&[1.0, 0.0, f64::NAN, 1.0], &[2, 2]);
    for y in [
        bad.det(),
        bad.lu().1,
        bad.qr().0,
        bad.cholesky(),
        bad.svdvals(),
        bad.eigvalsh(),
        bad.inv(),
        bad.pinv(None),
    ] {
        refused(&y, &["of matrix 0, element [1, 0] is NaN", "only finite ones"]);
    }
    refused(&of(&[1.0, 2.0], &[1, 2]).det(), &["square matrices"]);
    refused(&of(&[1.0, 2.0], &[2]).svdvals(), &["at least two axes"]);
    refused(
        &of(&[1.0], &[1, 1]).solve(&of(&[1.0, 2.0], &[2])),
        &["as many rows as the first"],
    );
    // Where a determinant is 0 it has a gradient; a logarithm has none.
    let x = of(&[1.0, 2.0, 2.0, 4.0], &[2, 2]).tracked();
    let slope = x.det().grad(&[&x]).expect("cofactors").remove(0);
    near("cofactors", &slope, &of(&[4.0, -2.0, -2.0, 1.0], &[2, 2]));
    let slope = x.slogdet().1.grad(&[&x]).expect("recorded").remove(0);
    refused(&slope, &["is singular"]);
    let error = x.qr_complete().0.sum(..).grad(&[&x]).expect_err("none");
    assert!(
        error.to_string().contains("`qr_complete` has no gradient"),
        "{error}"
    );
    // Equal eigenvalues have gradients, their vectors none that is a number.
    let x = of(&[1.0, 0.0, 0.0, 1.0], &[2, 2]).tracked();
    let slope = x.eigvalsh().square().sum(..).grad(&[&x]).expect("2 x").remove(0);
    near("equal eigenvalues", &slope, &of(&[2.0, 0.0, 0.0, 2.0], &[2, 2]));
    let corner = of(&[1.0, 0.0, 0.0, 0.0], &[2, 2]);
    let slope = (x.eigh().1 * (1.0 - corner))
        .sum(..)
        .grad(&[&x])
        .expect("recorded");
    assert!(read(&slope[0]).iter().any(|x| !x.is_finite()));
}

#[test]
fn gpu_tensors_are_moved_by_name() {
    for device in devices() {
        let x = Tensor::from_slice(&[2.0f32, 0.0, 0.0, 4.0], [2, 2], &device);
        if device.backend() == BackendKind::Cpu {
            assert_eq!(x.inv().to_vec::<f32>().expect("there"), [0.5, 0.0, 0.0, 0.25]);
            continue;
        }
        let error = x.inv().check().expect_err("elsewhere").to_string();
        assert!(
            error.contains("on the CPU alone") && error.contains("`to`"),
            "{error}"
        );
        let there = x.to(&cpu()).expect("a copy").inv().to(&device).expect("a copy");
        assert_eq!(there.to_vec::<f32>().expect("there"), [0.5, 0.0, 0.0, 0.25]);
    }
}

#[test]
fn compiled_functions_compute_on_the_host() {
    let device = cpu();
    // Enough kernels that all else of it would be captured.
    let step = compile(|x| {
        let y = (0..4).fold(x[0].clone(), |y, _| y.matmul(&x[0]).sin());
        Ok(vec![
            (y + Tensor::eye(3, 3, DType::F64, x[0].device()) * 4.0).inv(),
        ])
    });
    for n in 1..6 {
        let x = numbers(&[3, 3], DType::F64, &device) * f64::from(n);
        let y = (0..4).fold(x.clone(), |y, _| y.matmul(&x).sin());
        let expected = (y + Tensor::eye(3, 3, DType::F64, &device) * 4.0).inv();
        near("inverse", &step.call(&[&x]).expect("a result")[0], &expected);
    }
    assert!(!no_grad(|| numbers(&[3, 3], DType::F64, &device).tracked().inv()).is_tracked());
}
