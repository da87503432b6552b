//! Every operator with a gradient against finite differences, in f64 where the device has it; gradients of gradients; what has none.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "what fails in a helper fails a test"
)]

#[cfg(feature = "linalg")]
#[path = "algebra/cases.rs"]
mod algebra;
#[cfg(not(feature = "linalg"))]
mod algebra {
    pub(crate) fn composed(_: &str, _: &perpetua_tensor::Tensor) -> Option<perpetua_tensor::Tensor> {
        None
    }
}
mod common;

use common::{devices, has};
use perpetua_device::{BackendKind, Device};
use perpetua_ir::ops::UnaryOp;
use perpetua_tensor::table::{self, Meaning};
use perpetua_tensor::{DType, Slice, Tensor, checkpoint, grad, jvp, vjp, vmap};

fn cpu() -> Device {
    Device::new(BackendKind::Cpu, 0).expect("the CPU")
}

/// Where a function of one operand is smooth.
fn place(op: UnaryOp) -> [f64; 4] {
    match op {
        UnaryOp::Acosh => [1.5, 2.0, 3.25, 1.2],
        UnaryOp::Asin | UnaryOp::Acos | UnaryOp::Atanh => [-0.7, -0.2, 0.3, 0.8],
        UnaryOp::Sqrt | UnaryOp::Rsqrt | UnaryOp::Ln | UnaryOp::Ln1p | UnaryOp::Log2 | UnaryOp::Log10 => {
            [0.4, 1.3, 2.0, 5.0]
        }
        _ => [-1.3, 0.4, 0.9, 2.3],
    }
}

/// A gradient against differences of the function at both sides, weighted so that elements count differently.
fn check(name: &str, device: &Device, at: &[f64], f: impl Fn(&Tensor) -> Tensor) {
    let exact = has(device, DType::F64);
    let dtype = if exact { DType::F64 } else { DType::F32 };
    let number = |y: &Tensor| -> f64 {
        let y = y.cast(DType::F64);
        y.to_vec::<f64>()
            .unwrap_or_else(|error| panic!("{name}: {error}"))[0]
    };
    let variable = |at: &[f64]| match exact {
        true => Tensor::from_slice(at, [at.len()], device),
        false => Tensor::from_slice(
            &at.iter().map(|x| *x as f32).collect::<Vec<_>>(),
            [at.len()],
            device,
        ),
    };
    let total = |x: &Tensor| -> Tensor {
        let y = f(x);
        let weights = Tensor::linspace(0.5, 1.5, y.len(), device)
            .cast(dtype)
            .reshape(y.shape().iter().map(|n| *n as isize).collect::<Vec<_>>());
        (y * weights).sum(..)
    };
    let value = |x: &Tensor| match exact {
        true => number(&total(x)),
        false => f64::from(
            total(x)
                .to_vec::<f32>()
                .unwrap_or_else(|error| panic!("{name}: {error}"))[0],
        ),
    };
    let x = variable(at).tracked();
    let gradient = total(&x)
        .grad(&[&x])
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let found: Vec<f64> = match exact {
        true => gradient[0].to_vec::<f64>().expect(name),
        false => gradient[0]
            .to_vec::<f32>()
            .expect(name)
            .into_iter()
            .map(f64::from)
            .collect(),
    };
    let (step, bound) = if exact { (1e-5, 1e-6) } else { (1e-2, 2e-2) };
    for i in 0..at.len() {
        let moved = |by: f64| {
            let mut at = at.to_vec();
            at[i] += by;
            value(&variable(&at))
        };
        let expected = (moved(step) - moved(-step)) / (2.0 * step);
        assert!(
            (found[i] - expected).abs() <= bound * (1.0 + expected.abs()),
            "{name} on {device:?}: the derivative by element {i} is {}, differences say {expected}",
            found[i]
        );
    }
    if exact && device.backend() == BackendKind::Cpu {
        transformed(name, device, at, &found, total, &f);
    }
}

/// The same forwards, and for three examples at once.
fn transformed(
    name: &str,
    device: &Device,
    at: &[f64],
    gradient: &[f64],
    total: impl Fn(&Tensor) -> Tensor,
    f: impl Fn(&Tensor) -> Tensor,
) {
    let same = |what: &str, found: f64, expected: f64| {
        let is_near = (found - expected).abs() <= 1e-9 * (1.0 + expected.abs());
        assert!(
            is_near || found == expected || found.is_nan() && expected.is_nan(),
            "{what} of {name}: {found}, expected {expected}"
        );
    };
    let vector = |values: &[f64]| Tensor::from_slice(values, [values.len()], device);
    let by: Vec<f64> = (0..at.len()).map(|i| 0.3 - 0.2 * i as f64).collect();
    let (_, change) = jvp(|x| total(&x[0]), &[&vector(at)], &[&vector(&by)]).expect(name);
    let expected = gradient.iter().zip(&by).map(|(g, v)| g * v).sum();
    same("jvp", change.to_vec::<f64>().expect(name)[0], expected);
    let examples: Vec<f64> = (0..3)
        .flat_map(|i| at.iter().map(move |x| x * (1.0 + 0.01 * f64::from(i))))
        .collect();
    let all = Tensor::from_slice(&examples, [3, at.len()], device);
    let mapped =
        vmap(|x| Ok(f(&x[0]).cast(DType::F64)), &[&all]).unwrap_or_else(|error| panic!("{name}: {error}"));
    let apart = examples
        .chunks(at.len())
        .flat_map(|one| f(&vector(one)).cast(DType::F64).to_vec::<f64>().expect(name));
    let mapped = mapped
        .to_vec::<f64>()
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(mapped.len(), 3 * f(&vector(at)).len());
    for (found, expected) in mapped.into_iter().zip(apart) {
        same("vmap", found, expected);
    }
    let each = vmap(|x| Ok(grad(|x| total(&x[0]), &[&x[0]])?.remove(0)), &[&all])
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    for (found, expected) in each.to_vec::<f64>().expect(name).into_iter().zip(gradient) {
        same("vmap of grad", found, *expected);
    }
}

#[test]
fn every_differentiable_row_has_the_derivative_of_differences() {
    for device in devices() {
        for row in table::primitives().filter(|row| !row.gradient().is_empty()) {
            match row.meaning {
                Meaning::Unary(op) => check(row.name, &device, &place(op), |x| unary(row.name, x)),
                Meaning::Binary(_) => check(row.name, &device, &[0.7, 2.3, 1.9, 0.4, 1.1, 2.6], |x| {
                    let (a, b) = (x.slice([Slice::from(..3)]), x.slice([Slice::from(3..)]));
                    binary(row.name, &a, &b)
                }),
                Meaning::Own(_) => check(row.name, &device, &[0.7, 2.3, -1.9, 0.4, 1.1, 2.6], |x| {
                    own(row.name, x)
                }),
            }
        }
    }
}

#[test]
fn every_composed_row_has_the_derivative_of_differences() {
    let at = [0.7, 2.3, -1.9, 0.4, 1.1, 2.6];
    let rows = |device: Device| table::composed().map(move |row| (device.clone(), row));
    for (device, row) in devices().into_iter().flat_map(rows) {
        // In `f32` differences are too coarse for what is made of so many operations.
        let exact = has(&device, DType::F64);
        let x = match exact {
            true => Tensor::from_slice(&at, [at.len()], &device),
            false => Tensor::from_slice(&at.map(|x| x as f32), [at.len()], &device),
        };
        if let Some(found) = composed(row.name, &x) {
            let is_of_matrices = || algebra::composed(row.name, &x).is_some();
            match found.check() {
                Ok(()) if exact => check(row.name, &device, &at, |x| composed(row.name, x).expect(row.name)),
                Ok(()) => {}
                // Some functions of matrices are the host's, and refused elsewhere.
                Err(_) if device.backend() != BackendKind::Cpu && is_of_matrices() => {}
                Err(error) => panic!("{} on {device:?}: {error}", row.name),
            }
            continue;
        }
        // Or PyTorch's derivative is known (`torch.rs`).
        let mut cases = include_str!("torch/golden.txt").lines();
        let is_case = cases.any(|line| line.starts_with(row.name) && line.contains("\td0\t"));
        assert!(is_case, "{} is not among the tested", row.name);
    }
}

fn unary(name: &str, x: &Tensor) -> Tensor {
    macro_rules! named {
        ($($name:ident)*) => { match name { $(stringify!($name) => x.$name(),)* other => panic!("{other} is not among the tested") } };
    }
    named!(negative abs floor ceil trunc round sqrt rsqrt reciprocal exp exp2 expm1 log log1p log2 log10 sin cos tan asin acos atan sinh
        cosh tanh asinh acosh atanh cbrt erf erfc)
}

fn binary(name: &str, x: &Tensor, y: &Tensor) -> Tensor {
    macro_rules! named {
        ($($name:ident)*) => { match name { $(stringify!($name) => x.$name(y),)* other => panic!("{other} is not among the tested") } };
    }
    named!(add subtract multiply divide divide_toward_zero fmod fmin fmax copysign pow atan2 hypot)
}

fn own(name: &str, x: &Tensor) -> Tensor {
    let matrix = x.reshape([2, 3]);
    match name {
        "sum" => matrix.sum(0),
        "prod" => matrix.prod(1),
        "max" => matrix.max(1),
        "min" => matrix.min(..),
        "where" => matrix.greater(0.5).select(&matrix, matrix.square()),
        // Differences are lost in a narrower type: there is a test of its own.
        "cast" | "tracked" => matrix.square(),
        "reshape" => matrix.square(),
        "permute" => matrix.transpose(),
        "expand" => matrix.sum_keep(0).expand([4, 3]),
        "slice" => matrix.slice([Slice::every(-1), Slice::every(2)]),
        "flip" => matrix.flip(1),
        "pad" => matrix.pad([(1, 0), (2, 1)], 3.0),
        "matmul" => matrix.matmul(matrix.transpose()),
        "gather" => {
            let index = Tensor::from_slice(&[2i32, -2, 0, 0, 1, 1, -1, 2], [2, 4], x.device());
            let rows = Tensor::from_slice(&[1i32, 1, 0], [3, 1], x.device());
            matrix.square().gather(1, &index).sum_keep(1) + matrix.gather(0, &rows).sum(0).sum(..)
        }
        "with_hook" => matrix.square().with_hook(|gradient| gradient.clone()),
        "checkpoint" => checkpoint(
            |x| Ok(x[0].square().sin() * &x[1]),
            &[&matrix, &x.cast(DType::I32).reshape([2, 3])],
        )
        .expect("a value"),
        // Tested in `functions.rs`: it computes in `f32`.
        "function" => matrix.square(),
        "segments" => {
            let places = Tensor::from_slice(&[1i32, 0, 1, 1, 3, 0], [6], x.device());
            let zeros = Tensor::zeros([4], x.dtype(), x.device());
            let low = (&zeros - 9.0).cast(x.dtype());
            zeros.index_add(0, &places, &x.square()) + low.scatter_max(0, &places, x)
        }
        other => panic!("{other} is not among the tested"),
    }
}

fn composed(name: &str, x: &Tensor) -> Option<Tensor> {
    macro_rules! named {
        ($($name:ident($($argument:expr),*))*) => {
            match name { $(stringify!($name) => x.$name($($argument),*),)* _ => return None }
        };
    }
    let y = || x.flip(0).abs() + 0.3;
    Some(match name {
        // Of bool: they have no gradient, and end it.
        "logical_not" => x.logical_not().select(0.0, x),
        "any" => x.greater(0.0).any(0).select(x.square(), 0.0),
        "all" => x.greater(0.0).all(0).select(0.0, x),
        "count_nonzero" => x.count_nonzero(..).equal(0).select(0.0, x),
        "isin" => x.isin(&x.detach()).select(x.square(), 0.0),
        "take" => x.take(&index(&[5, 1, 1], x), 0),
        "take_along_axis" => x.take_along_axis(&index(&[5, 1, 1], x), 0),
        "argmax" => x.argmax(0).equal(0).select(0.0, x),
        "argmin" => x.argmin(0).equal(0).select(0.0, x),
        "one_hot" => x.cast(DType::I32).one_hot(3).select(x.expand_dims(1), 0.0),
        "argsort" => x.argsort(0, false).equal(0).select(0.0, x),
        "searchsorted" => x
            .detach()
            .sort(0, false)
            .searchsorted(&x.detach(), true)
            .equal(0)
            .select(0.0, x),
        "fft" => x.reshape([3, 2]).square().fft(0),
        "ifft" => x.reshape([3, 2]).square().ifft(-1),
        "fftn" => x.reshape([1, 3, 2]).square().fftn(&[0, 1]),
        "ifftn" => x.reshape([3, 1, 2]).square().ifftn(&[0, 1]),
        "rfft" => x.square().rfft(0),
        "irfft" => x.reshape([3, 2]).square().irfft(5, 0),
        "fftshift" => x.square().fftshift(0),
        "ifftshift" => x.reshape([2, 3]).square().ifftshift([0, 1]),
        "scatter_mul" => x.scatter_mul(
            0,
            &index(&[5, 1, 1], x),
            &Tensor::linspace(0.5, 2.0, 3, x.device()).cast(x.dtype()),
        ),
        "bincount" => x
            .cast(DType::I32)
            .abs()
            .bincount(4)
            .slice([Slice::from(3)])
            .equal(9)
            .select(0.0, x),
        "permute_dims" => x.reshape([2, 3]).permute_dims([1, 0]),
        "matrix_transpose" => x.reshape([2, 3]).matrix_transpose(),
        "broadcast_to" => x.square().broadcast_to(&[2, 6]),
        "rot90" => x.reshape([2, 3]).rot90(1).square(),
        "astype" => x.astype(DType::F64).square(),
        "bitwise_invert" => x.cast(DType::I32).bitwise_invert().equal(9).select(0.0, x),
        "bitwise_left_shift" => x.cast(DType::I32).bitwise_left_shift(2).equal(9).select(0.0, x),
        "bitwise_right_shift" => x.cast(DType::I32).bitwise_right_shift(2).equal(9).select(0.0, x),
        "broadcast_arrays" => x.broadcast_arrays(&[&x.square().expand_dims(1)]).remove(1),
        "meshgrid" => {
            let grid = x.square().meshgrid(&[x], true);
            &grid[0] * &grid[1]
        }
        "assign" => x
            .square()
            .assign(&[Slice::every(-2)], x.slice([Slice::from(..3)]).exp()),
        "add_" => x.square().add_(x),
        "sub_" => x.square().sub_(x),
        "mul_" => x.square().mul_(x),
        "div_" => x.square().div_(x),
        "copy_" => x.reshape([2, 3]).copy_(&x.square().slice([Slice::from(..3)])),
        "fill_" => x * x.fill_(3.0),
        "zero_" => x + x.zero_(),
        "conj" => x.reshape([3, 2]).square().conj(),
        "rfftn" => x.reshape([2, 3]).square().rfftn(&[0, 1]),
        "irfftn" => x.reshape([1, 3, 2]).square().irfftn(4, &[0, 1]),
        "hfft" => x.reshape([3, 2]).square().hfft(5, 0),
        "ihfft" => x.square().ihfft(0),
        "zeros_like" => x + x.zeros_like(),
        "ones_like" => x * x.ones_like(),
        "full_like" => x * x.full_like(3.0),
        "matrix_norm" => x.reshape([2, 3]).matrix_norm(),
        "nansum" => with_nan(x).nansum(0),
        "nanprod" => with_nan(x).nanprod(0),
        "nanmax" => with_nan(x).nanmax(0),
        "nanmin" => with_nan(x).nanmin(0),
        "nanmean" => with_nan(x).nanmean(0),
        "nanvar" => with_nan(x).nanvar(0),
        "index_select" => x.index_select(0, &index(&[5, 1, 1], x)),
        "embedding" => x.reshape([3, 2]).embedding(&index(&[2, 0, 2], x)),
        "scatter" => x.scatter(0, &index(&[5, 1, 1], x), &(x.square().slice([Slice::from(..3)]))),
        "scatter_add" => x.scatter_add(0, &index(&[5, 1, 1], x), &(x.square().slice([Slice::from(..3)]))),
        "scatter_max" => x.scatter_max(0, &index(&[5, 1, 1], x), &(x.square().slice([Slice::from(..3)]))),
        "scatter_min" => x.scatter_min(0, &index(&[5, 1, 1], x), &(x.square().slice([Slice::from(..3)]))),
        "index_add" => x.reshape([3, 2]).index_add(
            0,
            &index(&[0, 2], x),
            &x.square().reshape([3, 2]).slice([Slice::from(1..)]),
        ),
        "topk" => x.topk(3, 0).0,
        "split" => x.split(&[2, 4], 0).remove(1).square(),
        "masked_fill" => x.masked_fill(&x.greater(1.0), 7.0),
        "tril" => x.reshape([2, 3]).tril(0),
        "triu" => x.reshape([2, 3]).triu(1),
        "concat" => x.concat(&[&y()], 0),
        "stack" => x.stack(&[&y()], 1),
        "einsum" => x.reshape([2, 3]).einsum(&[&y().reshape([3, 2])], "ij,ji->j"),
        "cross_entropy" => {
            let classes = Tensor::from_slice(&[2u8, 0], [2], x.device());
            x.reshape([2, 3]).cross_entropy(&classes)
        }
        _ if algebra::composed(name, x).is_some() => return algebra::composed(name, x),
        _ => {
            named!(positive() flatten() square() sign() maximum(y()) minimum(y()) clip(-1.0, 2.0) remainder(y()) floor_divide(y()) logaddexp(y()) relu()
            leaky_relu(0.1) elu(1.5) sigmoid() silu() softplus() gelu() mean(0) mean_keep(..) var(..) std(0) softmax(0)
            log_softmax(0) logsumexp(0) sort(0, true) cumsum(0) cumprod(0) cummax(0) cummin(0) cumulative_sum(0) cumulative_prod(0) roll(2, 0) tile(2, 0) diff(0) mse_loss(y()) l1_loss(y()) huber_loss(y(), 1.0) bce_loss(&y()))
        }
    })
}

// With a NaN in front.
fn with_nan(x: &Tensor) -> Tensor {
    x.square().pad([(1, 0)], f64::NAN)
}

fn index(places: &[i32], x: &Tensor) -> Tensor {
    Tensor::from_slice(places, [places.len()], x.device())
}

#[test]
fn a_product_with_zeros_has_a_gradient() {
    let device = cpu();
    let check = |values: &[f32], expected: &[f32]| {
        let x = Tensor::from_slice(values, [values.len()], &device).tracked();
        let gradient = x.prod(..).grad(&[&x]).expect("a gradient");
        assert_eq!(gradient[0].to_vec::<f32>().expect("floats"), expected);
    };
    check(&[2.0, 3.0, 4.0], &[12.0, 8.0, 6.0]);
    check(&[2.0, 0.0, 4.0], &[0.0, 8.0, 0.0]);
    check(&[0.0, 0.0, 4.0], &[0.0, 0.0, 0.0]);
}

#[test]
fn a_cast_hands_its_gradient_back() {
    let device = cpu();
    let x = Tensor::from_slice(&[2.0f64, -1.0], [2], &device).tracked();
    let gradient = x
        .cast(DType::F32)
        .square()
        .sum(..)
        .grad(&[&x])
        .expect("2 x")
        .remove(0);
    assert_eq!(gradient.to_vec::<f64>().expect("as wide as x"), [4.0, -2.0]);
}

#[test]
fn gradients_have_gradients() {
    let device = cpu();
    let x = Tensor::from_slice(&[2.0f64, -1.0], [2], &device).tracked();
    let first = (&x * &x * &x).sum(..).grad_tracked(&[&x]).expect("3 x^2");
    let second = first[0].sum(..).grad(&[&x]).expect("6 x");
    assert_eq!(second[0].to_vec::<f64>().expect("floats"), [12.0, -6.0]);
}

#[test]
fn transformations_nest() {
    let device = cpu();
    let x = Tensor::from_slice(&[2.0f64, -1.0], [2], &device);
    let cube = |x: &[Tensor]| (&x[0] * &x[0] * &x[0]).sum(..);
    let numbers = |tensor: &Tensor| tensor.to_vec::<f64>().expect("floats");
    let second = grad(|x| grad(cube, &[&x[0]]).expect("3 x^2").remove(0).sum(..), &[&x]).expect("6 x");
    assert_eq!(numbers(&second[0]), [12.0, -6.0]);
    // A Hessian's product with a vector: forwards over backwards.
    let v = Tensor::from_slice(&[1.0f64, 10.0], [2], &device);
    let (first, product) =
        jvp(|x| grad(cube, &[&x[0]]).expect("3 x^2").remove(0), &[&x], &[&v]).expect("6 x v");
    assert_eq!(
        (numbers(&first), numbers(&product)),
        (vec![12.0, 3.0], vec![12.0, -60.0])
    );
    let (value, back) = vjp(
        |x| x[0].einsum(&[&x[1]], "i,j->ij"),
        &[&x, &v],
        &Tensor::ones([2, 2], DType::F64, &device),
    )
    .expect("sums");
    assert_eq!(
        (numbers(&value), numbers(&back[0]), numbers(&back[1])),
        (vec![2.0, 20.0, -1.0, -10.0], vec![11.0, 11.0], vec![1.0, 1.0])
    );
    // A whole Jacobian, a row a unit vector.
    let rows = vmap(
        |unit| Ok(jvp(|x| x[0].square(), &[&x], &[&unit[0]])?.1),
        &[&Tensor::eye(2, 2, DType::F64, &device)],
    );
    assert_eq!(numbers(&rows.expect("a diagonal")), [4.0, 0.0, 0.0, -2.0]);
    // Of what is made of one another, each by itself.
    let w = x.tracked();
    let apart = grad(|x| (&x[0] * &x[1]).sum(..), &[&w, &(&w * 2.0)]).expect("the other");
    assert_eq!(
        (numbers(&apart[0]), numbers(&apart[1])),
        (vec![4.0, -2.0], vec![2.0, -1.0])
    );
    // Gradients go through what is mapped.
    let total = vmap(|x| Ok(x[0].square()), &[&w]).expect("squares").sum(..);
    assert_eq!(numbers(&total.grad(&[&w]).expect("2 x")[0]), [4.0, -2.0]);
    let error = vmap(|x| Ok(&x[0] * x[0].to_vec::<f64>()?[0]), &[&x]).expect_err("there is no value");
    assert!(
        error
            .to_string()
            .contains("inside a function that `vmap` or `compile` takes"),
        "{error}"
    );
    let error = vmap(
        |x| Ok(&x[0] + &x[1]),
        &[&x, &Tensor::ones([3], DType::F64, &device)],
    )
    .expect_err("2 and 3");
    assert!(error.to_string().contains("each as many"), "{error}");
    let error = vjp(|x| x[0].square(), &[&x], &Tensor::ones([3], DType::F64, &device)).expect_err("2 and 3");
    assert!(error.to_string().contains("the same shape"), "{error}");
    let error = jvp(|x| x[0].square(), &[&x], &[]).expect_err("no tangent");
    assert!(error.to_string().contains("0 tangents for 1 operands"), "{error}");
}

#[test]
fn backward_adds_up_until_cleared() {
    let device = cpu();
    let w = Tensor::from_slice(&[1.0f32, 2.0], [2], &device).tracked();
    for _ in 0..2 {
        (&w * 3.0).sum(..).backward().expect("a gradient");
    }
    let gradient = w.gradient().expect("it was asked for");
    assert_eq!(gradient.to_vec::<f32>().expect("floats"), [6.0, 6.0]);
    w.clear_gradient();
    assert!(w.gradient().is_none());
}

#[test]
fn what_has_no_gradient_is_an_error() {
    let device = cpu();
    let x = Tensor::from_slice(&[1.0f32, 2.0], [2], &device);
    let check = |y: &Tensor, by: &Tensor, expect: &str| {
        let text = y.grad(&[by]).expect_err(expect).to_string();
        assert!(text.contains(expect) && text.contains("gradients.rs:"), "{text}");
    };
    let w = x.tracked();
    check(&x.sum(..), &x, "nothing that it is made of is tracked");
    check(&w.sum(..), &x, "it is not tracked");
    check(&(&w * 2.0), &w, "gradients are asked of one number");
    check(
        &w.greater(1.0).cast(DType::F32).sum(..),
        &w,
        "such as comparisons",
    );
    check(&w.sum(..), &x.tracked(), "the result is not made of it");
    check(&w.detach().sum(..), &w, "nothing that it is made of is tracked");
}

#[test]
fn the_gradient_of_a_long_step_is_one_element() {
    let device = cpu();
    let x = Tensor::ones([3], DType::F32, &device).tracked();
    let part = x.slice([Slice::every(1 << 32)]);
    let gradient = (part * 2.0).sum(..).grad(&[&x]).expect("a gradient");
    assert_eq!(gradient[0].to_vec::<f32>().expect("floats"), [2.0, 0.0, 0.0]);
}

#[test]
fn combinations_in_parts_have_the_gradients_of_others() {
    let device = cpu();
    let x = Tensor::ones([20_000], DType::F32, &device).tracked();
    let of = |y: Tensor| {
        y.grad(&[&x]).expect("a gradient")[0]
            .to_vec::<f32>()
            .expect("floats")
    };
    assert!(of((&x * &x).sum(..)).iter().all(|g| *g == 2.0));
    // Shared by all that are the maximum, in whatever part they lie.
    assert!(of(x.max(0)).iter().all(|g| *g == 1.0 / 20_000.0));
    let second = (&x * &x * &x)
        .sum(..)
        .grad_tracked(&[&x])
        .expect("3 x^2")
        .remove(0);
    assert_eq!(of(second.sum(..))[7], 6.0);
}

#[test]
fn a_step_forgets_the_ones_before() {
    let device = cpu();
    let mut w = Tensor::from_slice(&[4.0f32], [1], &device).tracked();
    for _ in 0..50 {
        let loss = (&w * &w).sum(..);
        let gradient = loss.grad(&[&w]).expect("2 w").remove(0);
        w = (&w - gradient * 0.1).detach().tracked();
        w.realize().expect("a value");
    }
    let end = w.to_vec::<f32>().expect("floats")[0];
    assert!((end - 4.0 * 0.8f32.powi(50)).abs() < 1e-7, "{end}");
    // One kernel from what is known, however many steps there were.
    assert_eq!((&w * 2.0).explain().expect("no error").kernels.len(), 1);
}
