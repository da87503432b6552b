//! Every operator on every backend against plain evaluation: over types, shapes, broadcasts, views, empty and scalar tensors, NaN and
//! infinities; and what rules refuse.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "what fails in a helper fails a test"
)]

mod common;

use common::{check, devices, has, values};
use perpetua_device::{BackendKind, Device};
use perpetua_ir::ops::BinaryOp;
use perpetua_tensor::table::{self, Meaning, functions};
use perpetua_tensor::testing::evaluate;
use perpetua_tensor::{DType, Random, Slice, Tensor};

fn cpu() -> Device {
    Device::new(BackendKind::Cpu, 0).expect("the CPU")
}

/// Every row of one and of two operands by its name, as a method of this crate's table.
macro_rules! named {
    ($name:expr, $x:expr, [$($unary:ident)*]) => {
        match $name { $(stringify!($unary) => Some(functions::$unary($x)),)* _ => None }
    };
    ($name:expr, $x:expr, $y:expr, [$($binary:ident)*]) => {
        match $name { $(stringify!($binary) => Some(functions::$binary($x, $y)),)* _ => None }
    };
}

fn one(name: &str, x: &Tensor) -> Option<Tensor> {
    named!(name, x, [negative invert abs floor ceil trunc round sqrt rsqrt reciprocal exp exp2 expm1 log log1p log2 log10 sin cos tan
        asin acos atan sinh cosh tanh asinh acosh atanh cbrt erf erfc lgamma isnan isinf isfinite signbit square sign logical_not relu sigmoid silu
        softplus gelu])
}

fn two(name: &str, x: &Tensor, y: &Tensor) -> Option<Tensor> {
    named!(name, x, y, [add subtract multiply divide divide_toward_zero fmod fmin fmax bitwise_and bitwise_or bitwise_xor logical_and
        logical_or logical_xor left_shift right_shift equal not_equal less less_equal greater greater_equal copysign pow atan2 hypot
        maximum minimum remainder floor_divide logaddexp])
}

const TYPES: [DType; 7] = [
    DType::F32,
    DType::I32,
    DType::U8,
    DType::Bool,
    DType::F16,
    DType::BF16,
    DType::F64,
];

#[test]
fn each_operator_of_one_operand_computes_what_its_row_says() {
    for device in devices() {
        for row in table::primitives().filter(|row| matches!(row.meaning, Meaning::Unary(_))) {
            for dtype in TYPES.into_iter().filter(|dtype| has(&device, *dtype)) {
                let x = values(dtype, &[3, 7], 1, &device);
                let result =
                    one(row.name, &x).unwrap_or_else(|| panic!("{} is not among the tested", row.name));
                match result.check() {
                    Ok(()) => check(row.name, &result),
                    Err(error) => assert!(error.to_string().contains("it is defined for"), "{error}"),
                }
            }
        }
        for name in [
            "square",
            "sign",
            "relu",
            "sigmoid",
            "silu",
            "softplus",
            "gelu",
            "logical_not",
        ] {
            check(
                name,
                &one(name, &values(DType::F32, &[23], 2, &device)).expect(name),
            );
        }
    }
}

#[test]
fn each_operator_of_two_operands_computes_what_its_row_says() {
    for device in devices() {
        for row in table::primitives().filter(|row| matches!(row.meaning, Meaning::Binary(_))) {
            for dtype in TYPES.into_iter().filter(|dtype| has(&device, *dtype)) {
                let x = values(dtype, &[4, 1, 3], 1, &device);
                let mut y = values(dtype, &[2, 1], 2, &device);
                if let Meaning::Binary(BinaryOp::Div | BinaryOp::Rem) = row.meaning
                    && !dtype.is_float()
                {
                    // Zeros are faults.
                    y = y.equal(0).select(2, &y).cast(dtype);
                }
                let result =
                    two(row.name, &x, &y).unwrap_or_else(|| panic!("{} is not among the tested", row.name));
                match result.check() {
                    Ok(()) => check(row.name, &result),
                    Err(error) => assert!(error.to_string().contains("it is defined for"), "{error}"),
                }
            }
        }
        for name in ["maximum", "minimum", "remainder", "floor_divide", "logaddexp"] {
            let (x, y) = (
                values(DType::F32, &[23], 2, &device),
                values(DType::F32, &[23], 5, &device),
            );
            check(name, &two(name, &x, &y).expect(name));
        }
    }
}

#[test]
fn every_composed_operator_is_tested() {
    let device = cpu();
    let x = Tensor::from_slice(&[0.5f32, 2.0, -1.0, 3.0], [2, 2], &device);
    let y = Tensor::from_slice(&[2.0f32, -2.0, 1.5, 0.5], [2, 2], &device);
    let classes = Tensor::from_slice(&[1i32, 0], [2], &device);
    let with_more = [
        ("clip", x.clip(0.0, 1.0)),
        ("leaky_relu", x.leaky_relu(0.1)),
        ("elu", x.elu(1.5)),
        ("mean", x.mean(0)),
        ("mean_keep", x.mean_keep(..)),
        ("var", x.var(1)),
        ("std", x.std(..)),
        ("any", x.greater(1.0).any(0)),
        ("all", x.greater(0.0).all(..)),
        ("softmax", x.softmax(-1)),
        ("log_softmax", x.log_softmax(-1)),
        ("logsumexp", x.logsumexp(0)),
        ("argmax", x.argmax(1)),
        ("argmin", x.argmin(-2)),
        ("one_hot", classes.one_hot(3)),
        ("index_select", x.index_select(1, &classes)),
        ("embedding", x.embedding(&classes)),
        ("scatter", x.scatter(0, &classes.expand_dims(1), &y)),
        ("scatter_add", x.scatter_add(0, &classes.expand_dims(1), &y)),
        ("scatter_max", x.scatter_max(1, &classes.expand_dims(0), &y)),
        ("scatter_min", x.scatter_min(1, &classes.expand_dims(0), &y)),
        ("index_add", x.index_add(0, &classes, &y)),
        ("masked_fill", x.masked_fill(&x.greater(1.0), 7.0)),
        ("argsort", x.argsort(1, false)),
        ("sort", x.sort(0, true)),
        ("topk", x.topk(1, 1).0),
        (
            "searchsorted",
            x.reshape([-1]).sort(0, false).searchsorted(&y, true),
        ),
        ("cumsum", x.cumsum(1)),
        ("cumprod", x.cumprod(0)),
        ("cummax", x.cummax(1)),
        ("cummin", x.cummin(0)),
        ("concat", x.concat(&[&y], 1)),
        ("stack", x.stack(&[&y], 0)),
        ("split", x.split(&[1, 1], 0).remove(1)),
        ("roll", x.roll(1, 1)),
        ("tile", x.tile(3, 0)),
        ("tril", x.tril(0)),
        ("triu", x.triu(0)),
        ("diff", x.diff(1)),
        ("einsum", x.einsum(&[&y], "ij,kj->ik")),
        ("mse_loss", x.mse_loss(&y)),
        ("l1_loss", x.l1_loss(&y)),
        ("huber_loss", x.huber_loss(&y, 1.0)),
        ("bce_loss", x.bce_loss(&y)),
        ("cross_entropy", x.cross_entropy(&classes)),
        ("relu", x.relu()),
        ("square", x.square()),
        ("sign", x.sign()),
        ("positive", x.positive()),
        ("flatten", x.flatten()),
        ("count_nonzero", x.count_nonzero(1)),
        ("take", x.take(&classes, 1)),
        ("take_along_axis", x.take_along_axis(&classes.expand_dims(0), 1)),
        ("isin", x.isin(&y.flatten())),
        ("fft", x.fft(0)),
        ("ifft", x.ifft(0)),
        ("fftn", x.fftn(&[0])),
        ("ifftn", x.ifftn(&[0])),
        ("rfft", x.rfft(1)),
        ("irfft", x.irfft(3, 0)),
        ("fftshift", x.fftshift(..)),
        ("ifftshift", x.ifftshift(0)),
        ("scatter_mul", x.scatter_mul(0, &classes.expand_dims(1), &y)),
        ("bincount", classes.bincount(3)),
        ("permute_dims", x.permute_dims([1, 0])),
        ("matrix_transpose", x.matrix_transpose()),
        ("broadcast_to", x.broadcast_to(&[3, 2, 2])),
        ("rot90", x.rot90(-1)),
        ("astype", x.astype(DType::I32)),
        ("bitwise_invert", classes.bitwise_invert()),
        ("bitwise_left_shift", classes.bitwise_left_shift(3)),
        ("bitwise_right_shift", classes.bitwise_right_shift(&classes)),
        ("broadcast_arrays", x.broadcast_arrays(&[&y.sum(0)]).remove(1)),
        (
            "meshgrid",
            x.flatten().meshgrid(&[&y.sum(0), &y.sum(1)], false).remove(0),
        ),
        ("assign", x.assign(&[Slice::from(..), Slice::every(-2)], 7.0)),
        ("add_", x.add_(&y)),
        ("sub_", x.sub_(1.5)),
        ("mul_", x.mul_(y.sum(0))),
        ("div_", x.div_(&y)),
        ("copy_", x.copy_(&y.sum(0))),
        ("fill_", x.fill_(2.5)),
        ("zero_", x.zero_()),
        ("conj", x.conj()),
        ("rfftn", x.rfftn(&[0, 1])),
        ("irfftn", x.reshape([2, 1, 2]).irfftn(2, &[1, 0])),
        ("hfft", x.hfft(3, 0)),
        ("ihfft", x.ihfft(1)),
        ("zeros_like", x.zeros_like()),
        ("ones_like", x.ones_like()),
        ("full_like", x.full_like(2.5)),
        ("matrix_norm", x.matrix_norm()),
        ("nansum", x.sqrt().nansum(0)),
        ("nanprod", x.sqrt().nanprod(1)),
        ("nanmax", x.sqrt().nanmax(0)),
        ("nanmin", x.sqrt().nanmin(..)),
        ("nanmean", x.sqrt().nanmean(1)),
        ("nanvar", x.sqrt().nanvar(0)),
        ("cumulative_sum", x.cumulative_sum(1)),
        ("cumulative_prod", x.cumulative_prod(0)),
    ];
    for row in table::composed() {
        let found = with_more
            .iter()
            .find(|(name, _)| *name == row.name)
            .map(|(_, tensor)| tensor.clone());
        let tensor = found
            .or_else(|| one(row.name, &x))
            .or_else(|| two(row.name, &x, &y));
        match tensor {
            Some(tensor) => check(row.name, &tensor),
            // Linear algebra is tested against itself (`algebra.rs`).
            None if include_str!("algebra/cases.rs").contains(&format!("\"{}\" =>", row.name)) => {}
            // Or it is a case of `torch.rs`, whose name begins with it.
            None => assert!(
                include_str!("torch/golden.txt")
                    .lines()
                    .any(|line| line.starts_with(row.name)),
                "{} is not among the tested",
                row.name
            ),
        }
    }
}

/// What NumPy says of the same, by hand.
#[test]
fn compositions_mean_what_numpy_means() {
    let device = cpu();
    let x = Tensor::from_slice(&[1.0f32, f32::NAN, -2.0, 7.5], [4], &device);
    let y = Tensor::from_slice(&[3.0f32, 1.0, f32::NAN, -2.0], [4], &device);
    let text = |tensor: Tensor| tensor.to_string();
    assert_eq!(text(x.maximum(&y)), "[3.  nan nan 7.5]");
    assert_eq!(text(x.minimum(&y)), "[ 1. nan nan -2.]");
    assert_eq!(text(x.relu()), "[1.  nan 0.  7.5]");
    assert_eq!(text(x.remainder(&y)), "[ 1.   nan  nan -0.5]");
    assert_eq!(text(x.floor_divide(&y)), "[ 0. nan nan -4.]");
    let i = Tensor::from_slice(&[7i32, -7, 7, -7], [4], &device);
    let j = Tensor::from_slice(&[2i32, 2, -2, -2], [4], &device);
    assert_eq!(text(i.remainder(&j)), "[ 1  1 -1 -1]");
    assert_eq!(text(i.floor_divide(&j)), "[ 3 -4 -4  3]");
    assert_eq!(text(i.divide(&j)), "[ 3.5 -3.5 -3.5  3.5]");
    assert_eq!(text(i.sign()), "[ 1 -1  1 -1]");
    assert_eq!(text(Tensor::arange(5, -2, -3, &device)), "[ 5  2 -1]");
    assert_eq!(
        text(Tensor::linspace(0.0, 1.0, 5, &device)),
        "[0.   0.25 0.5  0.75 1.  ]"
    );
    assert_eq!(
        text(Tensor::eye(2, 3, DType::I32, &device)),
        "[[1 0 0]\n [0 1 0]]"
    );
    assert_eq!(text(Tensor::arange(0, 4, 1, &device).mean(..)), "1.5");
    assert_eq!(
        text(Tensor::from_slice(&[1.0f32, 2.0, 3.0, 6.0], [4], &device).var(..)),
        "3.5"
    );
    let gone = Tensor::from_slice(&[f32::NAN, f32::NAN, 3.0, f32::NAN, -1.0, 5.0], [3, 2], &device);
    assert_eq!(text(gone.nansum(1)), "[0. 3. 4.]");
    assert_eq!(text(gone.nanprod(0)), "[-3.  5.]");
    assert_eq!(text(gone.nanmax(1)), "[nan  3.  5.]");
    assert_eq!(text(gone.nanmin(1)), "[nan  3. -1.]");
    assert_eq!(text(gone.nanmean(1)), "[nan  3.  2.]");
    assert_eq!(text(gone.nanvar(1)), "[nan  0.  9.]");
    assert_eq!(text(gone.cast(DType::I32).nanmax(..)), "5");
    let square = Tensor::from_slice(&[1i32, 2, 3, 4], [2, 2], &device);
    assert_eq!(text(square.rot90(1)), "[[2 4]\n [1 3]]");
    assert_eq!(text(square.rot90(-1)), "[[3 1]\n [4 2]]");
    assert_eq!(text(square.bincount(6)), "[0 1 1 1 1 0]");
    assert_eq!(text(x.isnan().any(..)), "True");
    assert_eq!(text(x.isnan().all(0)), "False");
    assert_eq!(text(x.argmax(0)), "1");
    let ties = Tensor::from_slice(&[3i32, 5, 5, 3], [4], &device);
    assert_eq!(
        (text(ties.argmax(0)), text(ties.argmin(-1))),
        ("1".into(), "0".into())
    );
    assert_eq!(text(ties.greater(4).argmax(0)), "1");
    assert_eq!(
        text(
            Tensor::from_slice(&[1i64, -1], [2], &device)
                .one_hot(2)
                .cast(DType::I8)
        ),
        "[[0 1]\n [0 0]]"
    );
    let scores = Tensor::from_slice(&[1.0f32, 1.0, 0.0, f32::NEG_INFINITY], [2, 2], &device);
    let of = |classes: &[u8]| text(scores.cross_entropy(&Tensor::from_slice(classes, [2], &device)) * 2.0);
    assert_eq!((of(&[1, 0]), of(&[1, 2])), ("0.6931472".into(), "nan".into()));
}

#[test]
fn numbers_take_the_tensors_type_where_their_kind_allows() {
    let device = cpu();
    let check = |tensor: Tensor, dtype: DType| assert_eq!(tensor.dtype(), dtype, "{tensor:?}");
    let small = Tensor::from_slice(&[1i8, 2], [2], &device);
    check(&small + 1, DType::I8);
    check(&small + 0.5, DType::F32);
    check(&small / 2, DType::F32);
    check(small.cast(DType::F16) * 2.0, DType::F16);
    check(small.cast(DType::Bool).cast(DType::Bool).select(1, 0), DType::I32);
    check(small.sum(..), DType::I32);
    check(small.cast(DType::F16).sum(..), DType::F16);
    let error = (&small + 300).check().expect_err("300 is no i8");
    assert!(
        error
            .to_string()
            .contains("300 is no i8, which holds -128 to 127"),
        "{error}"
    );
}

#[test]
fn views_lead_to_their_elements() {
    for device in devices() {
        let x = values(DType::F32, &[4, 5, 6], 3, &device);
        check("permute", &x.permute([2, 0, 1]));
        check(
            "transpose of a part",
            &x.slice([Slice::from(1..3), Slice::every(2)]).transpose(),
        );
        check(
            "backwards",
            &x.slice([
                Slice::every(-1),
                Slice::from(..),
                Slice {
                    start: Some(-2),
                    end: Some(0),
                    ..Slice::every(-2)
                },
            ]),
        );
        check("reshape of a permuted", &x.permute([1, 2, 0]).reshape([6, -1]));
        check(
            "index",
            &x.slice([Slice::from(-1), Slice::from(2)]).squeeze([0, 1]),
        );
        check("repeated", &x.slice([Slice::from(0)]).expand([3, 5, 6]));
        check("padded", &x.pad([(1, 0), (0, 2), (3, 1)], 7.5));
        check(
            "padded part",
            &x.slice([Slice::from(1..2)])
                .pad([(2, 2), (0, 0), (1, 1)], -1.0)
                .flip(..),
        );
        check("flip of flip", &x.flip([0, 2]).flip(0));
        check(
            "steps beyond the end",
            &x.slice([Slice::every(1 << 40), Slice::every(isize::MIN)]),
        );
        check(
            "sum through views",
            &x.permute([2, 0, 1]).slice([Slice::every(2)]).sum([0, 2]),
        );
        check("eye", &Tensor::eye(3, 4, DType::F32, &device));
        check("empty", &x.slice([Slice::from(2..2)]).exp());
        check(
            "padded empty",
            &x.slice([Slice::from(2..2)]).pad([(1, 1), (0, 0), (0, 0)], 2.0),
        );
        check(
            "scalar",
            &x.slice([Slice::from(0), Slice::from(0), Slice::from(0)])
                .reshape([]),
        );
    }
}

#[test]
fn combinations_meet_in_their_order() {
    for device in devices() {
        for shape in [
            &[5usize][..],
            &[64],
            &[65],
            &[300],
            &[3, 1000],
            &[1000, 3],
            &[9000, 2, 3],
            &[2, 1, 70],
            &[0, 4],
            &[1],
        ] {
            let x = values(DType::F32, shape, 4, &device);
            for axes in [
                &[0isize][..],
                &[-1],
                &(0..shape.len() as isize).collect::<Vec<_>>(),
            ] {
                check(&format!("sum of {shape:?} along {axes:?}"), &x.sum(axes));
                if !x.is_empty() {
                    check("max", &x.max(axes));
                    check("min", &x.min_keep(axes));
                    check("prod", &(&x * 0.1).prod(axes));
                }
            }
        }
        for dtype in TYPES.into_iter().filter(|dtype| has(&device, *dtype)) {
            check("sum", &values(dtype, &[2, 129], 5, &device).sum(1));
            if dtype != DType::Bool {
                check("max", &values(dtype, &[2, 129], 5, &device).max(1));
            }
        }
    }
}

#[test]
fn products_are_summed_along_the_inner_axis() {
    for device in devices() {
        let cases: [(&[usize], &[usize]); 13] = [
            (&[3, 4], &[4, 5]),
            (&[17, 33], &[33, 16]),
            (&[64, 20], &[20, 70]),
            (&[48, 33], &[33, 48]),
            (&[130, 17], &[17, 65]),
            (&[2, 50, 16], &[16, 100]),
            (&[2, 3, 4], &[4, 5]),
            (&[2, 1, 3, 4], &[3, 4, 2]),
            (&[4], &[4, 5]),
            (&[3, 4], &[4]),
            (&[4], &[4]),
            (&[3, 0], &[0, 2]),
            (&[1, 1], &[1, 1]),
        ];
        for (left, right) in cases {
            let finite = |x: Tensor| x.isfinite().select(&x, 0.5);
            let (a, b) = (
                finite(values(DType::F32, left, 1, &device)),
                finite(values(DType::F32, right, 2, &device)),
            );
            check(&format!("matmul {left:?} {right:?}"), &a.matmul(&b));
            check("with neighbours", &(a.matmul(&b) * 2.0 + 1.0).relu());
        }
        let x = values(DType::I32, &[20, 20], 3, &device);
        check("of integers, transposed", &x.matmul(x.transpose()));
        let half = values(DType::BF16, &[5, 40], 3, &device);
        check("of half floats", &half.matmul(half.transpose()));
    }
}

#[test]
fn random_numbers_are_the_same_everywhere() {
    let mut all = Vec::new();
    for device in devices() {
        let random = Random::new(42, &device);
        let (uniform, normal) = (random.uniform([50, 7]), random.normal([33]));
        check("uniform", &uniform);
        check("normal", &normal);
        check(
            "of a part",
            &random.bits([8, 8]).slice([Slice::every(3)]).transpose(),
        );
        check("integers", &random.integers(-3, 4, [100]));
        // In kernels, and, of more numbers, on the CPU by the host.
        let orders = [300, 5000].map(|count| random.permutation(count).to_vec::<i32>().expect("an order"));
        for order in &orders {
            let mut places: Vec<i32> = order.clone();
            places.sort_unstable();
            assert!(places.into_iter().eq(0..order.len() as i32) && !order.is_sorted());
        }
        all.push((uniform.to_vec::<f32>().expect("floats"), orders));
    }
    assert!(all.iter().all(|numbers| *numbers == all[0]));
    assert!(all[0].0.iter().all(|x| (0.0..1.0).contains(x)));
    // What the library Random123 gives for a counter and a key of zeros.
    assert_eq!(
        Random::new(0, &cpu()).bits([1]).to_vec::<u32>().expect("bits"),
        [0x6627_e8d5]
    );
}

#[test]
fn errors_say_what_where_and_why() {
    let device = cpu();
    let x = Tensor::ones([2, 3], DType::F32, &device);
    let wrong = &x + Tensor::ones([4], DType::F32, &device);
    let line = line!() - 1;
    // What is made of it has no value either, and the same reason.
    let error = wrong
        .exp()
        .sum(..)
        .to_vec::<f32>()
        .expect_err("shapes do not meet");
    let text = error.to_string();
    assert!(
        text.contains(&format!(
            "operators.rs:{line}: `add` of f32[2, 3] and f32[4]: shapes"
        )),
        "{text}"
    );
    let check = |tensor: Tensor, expect: &str| {
        let text = tensor.check().expect_err(expect).to_string();
        assert!(text.contains(expect), "{text}");
    };
    check(
        x.reshape([4, -1]),
        "`reshape` of f32[2, 3]: 6 elements do not fill the shape [4, -1]",
    );
    check(x.sum(2), "`sum` of f32[2, 3]: axis 2 is not there");
    check(
        x.matmul(&x),
        "`matmul` of f32[2, 3] and f32[2, 3]: the last extent of the first (3)",
    );
    check(x.slice([Slice::every(0)]), "a step must not be 0");
    for index in [2, -3, isize::MAX, isize::MIN] {
        let expect = format!("the index {index} is not among the 2 places of its axis");
        check(x.slice([Slice::from(index)]), &expect);
    }
    check(
        x.cross_entropy(&x),
        "`cross_entropy` of f32[2, 3] and f32[2, 3]: the classes must be integers in the shape [2]",
    );
    check(x.argmax(2), "`argmax` of f32[2, 3]: axis 2 is not there");
    check(
        Tensor::from_slice(&[1u8], [2], &device),
        "the shape [2] has 2 elements",
    );
    check(
        x.bitwise_and(1),
        "`bitwise_and` of f32[2, 3] and f32[2, 3]: it is defined for",
    );
    check(x.slice([Slice::from(0..0)]).max(0), "no elements have no extreme");
    check(x.select(1.0, 0.0), "the condition must be bool");
    let error = x.to_vec::<i32>().expect_err("they are floats");
    assert!(error.to_string().contains("not i32"), "{error}");
    let faults = Tensor::arange(0, 3, 1, &device).divide_toward_zero(Tensor::zeros([3], DType::I32, &device));
    let error = faults.to_vec::<i32>().expect_err("divisions by zero");
    assert!(error.to_string().contains("divide_toward_zero"), "{error}");
    assert!(evaluate(&Tensor::arange(0, 3, 1, &device)).is_ok_and(|bits| bits == [0, 1, 2]));
}
