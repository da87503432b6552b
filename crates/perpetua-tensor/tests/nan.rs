//! NaN in comparisons and choices, fused in every way: no compiler on the way to a device may take it for a number.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "what fails in a helper fails a test"
)]

mod common;

use common::{devices, difference, has, values};
use perpetua_tensor::{DType, Tensor};

type Way = (&'static str, fn(&Tensor, &Tensor) -> Tensor);

const WAYS: &[Way] = &[
    ("less", |x, y| x.less(y)),
    ("less_equal", |x, y| x.less_equal(y)),
    ("greater", |x, y| x.greater(y)),
    ("greater_equal", |x, y| x.greater_equal(y)),
    ("equal", |x, y| x.equal(y)),
    ("not_equal", |x, y| x.not_equal(y)),
    ("not less", |x, y| x.less(y).logical_not()),
    ("not less_equal", |x, y| x.less_equal(y).logical_not()),
    ("not greater", |x, y| x.greater(y).logical_not()),
    ("not greater_equal", |x, y| x.greater_equal(y).logical_not()),
    ("not equal", |x, y| x.equal(y).logical_not()),
    ("not not_equal", |x, y| x.not_equal(y).logical_not()),
    ("neither less nor greater", |x, y| {
        x.less(y).logical_or(x.greater(y)).logical_not()
    }),
    ("less or not", |x, y| x.less(y).logical_or(x.greater_equal(y))),
    ("unlike itself", |x, _| x.not_equal(x)),
    ("like itself", |x, _| x.equal(x)),
    ("at most itself", |x, _| x.less_equal(x)),
    ("the smaller by less", |x, y| x.less(y).select(x, y)),
    ("the smaller by less, turned", |x, y| {
        x.less(y).logical_not().select(x, y)
    }),
    ("the larger by less", |x, y| x.less(y).select(y, x)),
    ("the larger by greater", |x, y| x.greater(y).select(x, y)),
    ("the larger by greater_equal", |x, y| {
        x.greater_equal(y).select(x, y)
    }),
    ("the smaller by less_equal", |x, y| x.less_equal(y).select(y, x)),
    ("by equality", |x, y| x.equal(y).select(x, y)),
    ("by inequality", |x, y| x.not_equal(y).select(x, y)),
    ("no NaN", |x, _| x.not_equal(x).select(0.0, x)),
    ("at least a number", |x, _| x.greater(1.0).select(x, 1.0)),
    ("at least a number, turned", |x, _| x.less(1.0).select(1.0, x)),
    ("at most a number", |x, _| x.less(1.0).select(x, 1.0)),
    ("above zero", |x, _| x.greater(0.0).select(x, 0.0)),
    ("not above zero", |x, _| {
        x.greater(0.0).logical_not().select(0.0, x)
    }),
    ("not below a number", |x, _| x.less(0.5).logical_not()),
    ("maximum", |x, y| x.maximum(y)),
    ("minimum", |x, y| x.minimum(y)),
    ("fmax", |x, y| x.fmax(y)),
    ("fmin", |x, y| x.fmin(y)),
    ("relu", |x, _| x.relu()),
    ("clip", |x, _| x.clip(-1.0, 1.0)),
    ("clip by tensors", |x, y| x.maximum(y).minimum(x)),
    ("sign", |x, _| x.sign()),
    ("abs", |x, _| x.abs()),
    ("leaky relu", |x, _| x.leaky_relu(0.1)),
    ("isnan", |x, _| x.isnan()),
    ("max", |x, _| x.max(1)),
    ("min", |x, _| x.min(1)),
    ("max of columns", |x, _| x.max(0)),
    ("max of all", |x, _| x.max(..)),
    ("nanmax", |x, _| x.nanmax(1)),
    ("nansum", |x, _| {
        x.isnan().logical_or(x.isinf()).select(0.0, x).sum(1)
    }),
    ("argmax", |x, _| x.argmax(1)),
    ("argmin", |x, _| x.argmin(1)),
    ("sort", |x, _| x.sort(1, false)),
    ("argsort", |x, _| x.argsort(1, true)),
    ("cummax", |x, _| x.cummax(1)),
    ("cummin", |x, _| x.cummin(1)),
    ("hardtanh of a sum", |x, y| (x + y).clip(-1.0, 1.0)),
    ("an extreme of what was chosen", |x, y| {
        x.less(y).select(x, y).max(1)
    }),
];

#[test]
fn no_comparison_takes_nan_for_a_number() {
    let mut wrong = Vec::new();
    for device in devices() {
        // Rows of one length for a lane, and of one for a block. `bf16` computes as `f16` does, in `f32`.
        for (dtype, lengths) in [
            (DType::F32, &[37, 130][..]),
            (DType::F16, &[37]),
            (DType::F64, &[37]),
        ] {
            if !has(&device, dtype) {
                continue;
            }
            for &columns in lengths {
                // More than one in eight is NaN.
                let nan = |seed| {
                    let x = values(dtype, &[6, columns], seed, &device);
                    let some = values(DType::F32, &[6, columns], seed + 5, &device).greater(7.0);
                    let x = some.select(Tensor::full([1], f64::NAN, dtype, &device), x);
                    x.realize().expect("values");
                    x
                };
                let (x, y) = (nan(1), nan(2));
                for (name, way) in WAYS {
                    let what = format!("{name}, {dtype}, {columns} columns, {:?}", device.backend());
                    // As they are, and behind and before other operators of the same kernel.
                    for fused in [false, true] {
                        let found = match fused {
                            false => way(&x, &y),
                            true => way(&(&x * 2.0), &(-&y)) + 0,
                        };
                        let difference = difference(&found);
                        wrong.extend(difference.map(|text| format!("{what}, fused: {fused}: {text}")));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
