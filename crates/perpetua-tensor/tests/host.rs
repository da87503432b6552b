//! What the host computes of large tensors of the CPU, against kernels: in the same bits.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "what fails in a helper fails a test"
)]

mod common;

use common::values;
use perpetua_device::{BackendKind, Device};
use perpetua_tensor::{DType, Slice, Tensor};

fn cpu() -> Device {
    Device::new(BackendKind::Cpu, 0).expect("the CPU")
}

#[test]
fn the_host_gives_the_bits_of_kernels() {
    let device = cpu();
    let bits = |x: &Tensor| perpetua_tensor::testing::bits(x).unwrap_or_else(|error| panic!("{error}"));
    let is_nan = |x: &Tensor| match x.dtype().is_float() {
        true => bits(&x.isnan()),
        false => vec![0; x.len()],
    };
    const TYPES: [DType; 13] = [
        DType::Bool,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ];
    for dtype in TYPES {
        // Together they are large, each row is not.
        let x = values(dtype, &[3, 1501], 5, &device);
        let each = |f: &dyn Fn(&Tensor) -> Tensor| -> (Vec<u64>, Vec<u64>) {
            let rows = (0..3).map(|row| f(&x.slice([Slice::from(row)])));
            let rows: Vec<Tensor> = rows.collect();
            (
                rows.iter().flat_map(bits).collect(),
                rows.iter().flat_map(is_nan).collect(),
            )
        };
        for descending in [false, true] {
            let all = bits(&x.argsort(1, descending));
            assert_eq!(all, each(&|x| x.argsort(1, descending)).0, "{dtype}");
            let turned = bits(&x.transpose().argsort(0, descending).transpose());
            assert_eq!(all, turned, "{dtype}");
        }
        if dtype == DType::Bool {
            continue;
        }
        let ways: [fn(&Tensor) -> Tensor; 4] = [
            |x| x.cumsum(1),
            |x| x.cumprod(1),
            |x| x.cummax(1),
            |x| x.cummin(1),
        ];
        for (which, way) in ways.into_iter().enumerate() {
            let all = way(&x);
            let (expected, nan) = each(&way);
            for (place, (found, expected)) in bits(&all).into_iter().zip(expected).enumerate() {
                assert!(
                    found == expected || nan[place] == 1 && is_nan(&all)[place] == 1,
                    "{dtype}, {which}, {place}: {found:#x}, {expected:#x}"
                );
            }
        }
    }
}

#[test]
fn the_host_combines_in_the_order_of_kernels() {
    let device = cpu();
    let bits = |x: &Tensor| perpetua_tensor::testing::bits(x).unwrap_or_else(|error| panic!("{error}"));
    let types = [
        DType::F32,
        DType::F64,
        DType::I32,
        DType::U32,
        DType::I64,
        DType::U64,
        DType::Bool,
    ];
    let cases: [(&[usize], &[isize]); 10] = [
        (&[20_000], &[0]),
        (&[3, 20_001], &[1]),
        (&[2000, 17], &[0]),
        (&[300, 70], &[0]),
        (&[300, 70], &[1]),
        (&[50, 400], &[0, 1]),
        (&[40, 50, 10], &[1]),
        (&[40, 50, 10], &[0, 1]),
        (&[40, 50, 10], &[1, 2]),
        (&[40, 50, 10], &[0, 2]),
    ];
    for dtype in types {
        for (shape, axes) in cases {
            let x = values(dtype, shape, 3, &device);
            // The same elements, which are not known yet.
            let same = x.flip(0).flip(0);
            let ways: [fn(&Tensor, &[isize]) -> Tensor; 4] = [
                |x, axes| x.sum(axes),
                |x, axes| x.prod(axes),
                |x, axes| x.max(axes),
                |x, axes| x.min(axes),
            ];
            for (which, way) in ways
                .into_iter()
                .enumerate()
                .take(if dtype == DType::Bool { 2 } else { 4 })
            {
                let (host, kernel) = (way(&x, axes), way(&same, axes));
                assert_eq!((host.shape(), host.dtype()), (kernel.shape(), kernel.dtype()));
                let is_nan = match dtype.is_float() {
                    true => bits(&host.isnan().logical_and(kernel.isnan())),
                    false => vec![0; host.len()],
                };
                for (place, (found, expected)) in bits(&host).into_iter().zip(bits(&kernel)).enumerate() {
                    assert!(
                        found == expected || is_nan[place] == 1,
                        "{dtype}{shape:?} along {axes:?}, {which}: element {place} is {found:#x}, expected {expected:#x}"
                    );
                }
            }
        }
    }
    let x = values(DType::F64, &[20_000], 3, &device)
        .isfinite()
        .select(1.5, 2.0)
        .cast(DType::F64)
        .tracked();
    x.realize().expect("numbers");
    let slope = x.sum(..).square().grad(&[&x]).expect("2 sum").remove(0);
    let twice = 2.0 * x.sum(..).to_vec::<f64>().expect("a sum")[0];
    assert!(
        slope
            .to_vec::<f64>()
            .expect("slopes")
            .iter()
            .all(|slope| *slope == twice)
    );
}

#[test]
fn the_host_finds_the_places_that_kernels_find() {
    let device = cpu();
    let zeros = Tensor::full([7, 1003], -0.0, DType::F32, &device);
    for dtype in [DType::F32, DType::F64, DType::I32, DType::U8] {
        let numbers = values(dtype, &[7, 1003], 3, &device);
        let finite = match dtype.is_float() {
            true => numbers
                .isnan()
                .select(Tensor::full([1], 0.5, dtype, &device), &numbers),
            false => numbers.clone(),
        };
        // Zeros of both signs, of which the first one counts.
        let signed = Tensor::coordinates([7, 1003], 1, &device)
            .greater(5)
            .select(0.0, &zeros)
            .cast(dtype);
        for x in [numbers, finite, signed] {
            x.realize().expect("values");
            let same = x.flip(0).flip(0);
            let places = |x: &Tensor| [x.argmax(1), x.argmin(1)].map(|x| x.to_vec::<i32>().expect("places"));
            assert_eq!(places(&x), places(&same), "{dtype}");
        }
    }
}

#[test]
fn the_host_sums_products_in_the_order_of_kernels() {
    let device = cpu();
    for dtype in [DType::F32, DType::F64] {
        for shape in [&[300usize, 70][..], &[20_001], &[3, 20_001], &[5, 40, 100]] {
            let known = |shape: &[usize], seed| {
                let x = values(dtype, shape, seed, &device);
                let x = x.isfinite().select(&x, Tensor::full([1], 0.1, dtype, &device)) + 0.3;
                x.realize().expect("values");
                x
            };
            let row = &shape[shape.len() - 1..];
            let (x, y, v) = (known(shape, 3), known(shape, 4), known(row, 5));
            let anew = |x: &Tensor| x.flip(0).flip(0);
            let bits =
                |x: &Tensor| perpetua_tensor::testing::bits(x).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(
                bits(&(&x * &y).sum(-1)),
                bits(&(anew(&x) * &y).sum(-1)),
                "{dtype}{shape:?}"
            );
            assert_eq!(
                bits(&x.matmul(&v)),
                bits(&anew(&x).matmul(&v)),
                "{dtype}{shape:?}"
            );
            let all: Vec<isize> = (0..shape.len() as isize).collect();
            assert_eq!(
                bits(&(&v * &x).sum(&all[..])),
                bits(&(&v * anew(&x)).sum(&all[..])),
                "{dtype}{shape:?}"
            );
        }
    }
    let m = Tensor::linspace(0.0, 1.0, 20_000, &device)
        .reshape([200, 100])
        .tracked();
    let v = Tensor::linspace(-1.0, 1.0, 100, &device).tracked();
    Tensor::realize_all(&[&m, &v]).expect("values");
    let slopes = m.matmul(&v).sum(..).grad(&[&m, &v]).expect("gradients");
    assert_eq!(
        slopes[0].slice([Slice::from(7)]).to_vec::<f32>(),
        v.to_vec::<f32>()
    );
    assert_eq!(
        slopes[1].to_vec::<f32>(),
        m.detach().flip(0).flip(0).sum(0).to_vec::<f32>()
    );
}
