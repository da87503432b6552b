//! What the host computes of large tensors of the CPU, against kernels: in the same bits.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "what fails in a helper fails a test"
)]

mod common;

use common::values;
use perpetua_device::{BackendKind, Device};
use perpetua_tensor::testing::realize_unfused;
use perpetua_tensor::{DType, Slice, Statistics, Tensor, s};

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
fn small_rows_are_accumulated_as_each_by_itself() {
    let device = cpu();
    let x = values(DType::F32, &[40_001, 7], 3, &device);
    let nan_as_one = |x: &Tensor| x.isnan().select(f32::NAN, x).to_vec::<f32>().expect("floats");
    let expected: Vec<u32> = x
        .to_vec::<f32>()
        .expect("floats")
        .chunks(7)
        .flat_map(|row| {
            // Each meets the one before it, then the one two before, then four before.
            let mut own = row.to_vec();
            for by in [1, 2, 4] {
                let before = own.clone();
                (0..7).for_each(|at| own[at] += if at < by { 0.0 } else { before[at - by] });
            }
            own.into_iter()
                .map(|x| if x.is_nan() { f32::NAN } else { x }.to_bits())
        })
        .collect();
    let found: Vec<u32> = nan_as_one(&x.cumsum(1)).iter().map(|x| x.to_bits()).collect();
    assert_eq!(found, expected);
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
    let cases: [(&[usize], &[isize]); 14] = [
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
        // So large that threads share them.
        (&[700, 530], &[0]),
        (&[700, 530], &[1]),
        // Of small rows a thread has many at a time.
        (&[9001, 5, 9], &[1]),
        (&[40_001, 11], &[1]),
    ];
    for dtype in types {
        let mut all = cases
            .map(|(shape, axes)| (values(dtype, shape, 3, &device), axes))
            .to_vec();
        if dtype.is_float() {
            // Zeros of both signs are left.
            let numbers = all.clone().into_iter().map(|(x, axes)| {
                let x = x.isnan().select(x.full_like(-0.0), &x);
                x.realize().expect("values");
                (x, axes)
            });
            all.extend(numbers);
        }
        for (x, axes) in all {
            let shape = x.shape();
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
        for shape in [
            &[300usize, 70][..],
            &[20_001],
            &[3, 20_001],
            &[5, 40, 100],
            &[700, 530],
        ] {
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

/// A view of a view, by random numbers.
fn viewed(x: Tensor, mut random: impl FnMut(usize) -> usize) -> Tensor {
    let (rank, axis) = (x.rank(), random(x.rank()));
    let n = x.shape()[axis];
    match random(9) {
        0 if rank < 4 => x.expand_dims(axis as isize),
        0 => x.flatten(),
        1 => {
            let mut shape = x.shape().to_vec();
            let (a, b) = [(2, n / 2), (3, n / 3), (n, 1)][random(3)];
            shape.splice(axis..=axis, if a * b == n { vec![a, b] } else { vec![n] });
            x.reshape(shape.iter().map(|n| *n as isize).collect::<Vec<_>>())
        }
        2 => x.moveaxis(axis as isize, random(rank) as isize),
        3 => x.flip(axis as isize),
        4 => {
            let mut slices = vec![Slice::every(1); rank];
            let step = [1, 2, -1, -3][random(4)];
            let first = random(n / 4 + 1) as isize;
            slices[axis] = Slice::from(if step > 0 { first } else { -1 - first }..).step(step);
            x.slice(slices)
        }
        5 => {
            let mut widths = vec![(0, 0); rank];
            widths[axis] = (random(4), random(4));
            x.pad(widths, 7.0)
        }
        6 => x.tile(1 + random(3), axis as isize),
        7 => x.concat(&[&x.flip(axis as isize), &x], axis as isize),
        _ => x.roll(random(n + 1) as isize, axis as isize),
    }
}

#[test]
fn views_that_the_host_copies_are_those_that_kernels_compute() {
    let device = cpu();
    let mut state = 1u64;
    let mut random = |n: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n.max(1)
    };
    let types = [
        DType::U8,
        DType::F16,
        DType::I32,
        DType::F32,
        DType::F64,
        DType::Bool,
    ];
    for turn in 0..120 {
        let dtype = types[turn % types.len()];
        let x = values(
            dtype,
            [&[36, 600][..], &[20, 30, 42], &[24_000]][random(3)],
            turn,
            &device,
        );
        x.realize().expect("values");
        let mut view = x;
        for _ in 0..1 + random(5) {
            let next = viewed(view.clone(), &mut random);
            // Neither too small for the host nor too large for a test.
            if (16_384..200_000).contains(&next.len()) {
                view = next;
            }
        }
        let computed = view.flip(0).flip(0);
        realize_unfused(&[&computed]).expect("kernels");
        view.realize().expect("a copy");
        let bits = |x: &Tensor| perpetua_tensor::testing::bits(x).unwrap_or_else(|error| panic!("{error}"));
        assert!(bits(&view) == bits(&computed), "{turn}: {view:?}");
    }
}

#[test]
fn views_of_what_is_known_take_no_kernel() {
    let device = cpu();
    let x = values(DType::F32, &[200, 300], 1, &device);
    let y = values(DType::F32, &[200, 300], 2, &device);
    Tensor::realize_all(&[&x, &y]).expect("values");
    let compiled = || Statistics::of(&device).compiled;
    let before = compiled();
    let views = [
        x.transpose(),
        x.flip([0, 1]),
        x.slice(s![..;-2, 1..]),
        x.concat(&[&y, &x], 1),
        x.concat(&[&y], 0).pad([(1, 2), (0, 3)], 1.0),
        x.roll(70, 1),
        x.tile(3, 0),
        x.repeat(2, 1),
        x.broadcast_to(&[5, 200, 300]),
    ];
    for view in &views {
        view.realize().expect("a copy");
    }
    assert_eq!(compiled(), before);
    // What is more than a view takes one.
    (x.transpose() * 2.0).realize().expect("a product");
    assert_eq!(compiled(), before + 1);
}
