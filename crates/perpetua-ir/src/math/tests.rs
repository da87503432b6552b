//! The library against f64 results, and its IR form against its native form.

use super::*;
use crate::ops::Exactness;

/// Floats spread over all exponents and signs, and the values where things change.
fn samples(step: u32) -> Vec<f32> {
    let mut out: Vec<f32> = (0..u32::MAX / step).map(|i| f32::from_bits(i * step)).collect();
    for v in [
        0.0, 0.5, 1.0, 2.0, 0.6, 40.0, 88.72, 88.73, 103.9, 127.0, 128.0, 149.0, 150.0, 48_000.0, 1e-8, 1e9,
    ] {
        let bits = f32::to_bits(v);
        for b in bits.saturating_sub(3)..=bits + 3 {
            out.extend([f32::from_bits(b), -f32::from_bits(b)]);
        }
    }
    out.extend((-2000..2000).map(|i| i as f32 * 0.01));
    out.extend([
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MIN_POSITIVE,
        f32::MAX,
        f32::MIN,
    ]);
    out
}

/// What the host has.
pub(super) fn exact(op: UnaryOp, x: f64) -> f64 {
    match op {
        UnaryOp::Exp => x.exp(),
        UnaryOp::Exp2 => x.exp2(),
        UnaryOp::ExpM1 => x.exp_m1(),
        UnaryOp::Ln => x.ln(),
        UnaryOp::Ln1p => x.ln_1p(),
        UnaryOp::Log2 => x.log2(),
        UnaryOp::Log10 => x.log10(),
        UnaryOp::Sin => x.sin(),
        UnaryOp::Cos => x.cos(),
        UnaryOp::Tan => x.tan(),
        UnaryOp::Asin => x.asin(),
        UnaryOp::Acos => x.acos(),
        UnaryOp::Atan => x.atan(),
        UnaryOp::Sinh => x.sinh(),
        UnaryOp::Cosh => x.cosh(),
        UnaryOp::Tanh => x.tanh(),
        UnaryOp::Asinh => x.asinh(),
        UnaryOp::Acosh => x.acosh(),
        UnaryOp::Atanh => x.atanh(),
        UnaryOp::Cbrt => x.cbrt(),
        // The host has none of these; those of f64 are compared with known values.
        UnaryOp::Erf | UnaryOp::Erfc | UnaryOp::Lgamma => eval_unary_wide(op, x).unwrap(),
        other => panic!("{other:?} is not in the library"),
    }
}

/// Error of `got` in units in the last place of the f32 nearest to `magnitude`.
fn ulps(got: f32, want: f64, magnitude: f64) -> f64 {
    if want.is_nan() || got.is_nan() {
        return if want.is_nan() && got.is_nan() {
            0.0
        } else {
            f64::INFINITY
        };
    }
    let magnitude = (magnitude as f32).clamp(f32::MIN_POSITIVE, f32::MAX);
    let unit = 2f64.powf(f64::from(magnitude).log2().floor() - 23.0);
    // Infinity counts as the next step of the ladder past the largest finite float.
    let beyond = f64::from(f32::MAX) + 2f64.powi(104);
    (f64::from(got).clamp(-beyond, beyond) - want.clamp(-beyond, beyond)).abs() / unit
}

fn bound(e: Exactness) -> f64 {
    match e {
        Exactness::Exact => 0.5,
        e => e.ulps(Scalar::F32).into(),
    }
}

/// In whose last places the table counts an operator's errors.
pub(super) fn magnitude(op: UnaryOp, x: f64, want: f64) -> f64 {
    match op {
        UnaryOp::Lgamma if x < 0.0 => 2.0 * want.abs().max(exact(op, 1.0 - x)),
        _ => want.abs(),
    }
}

/// The worst error of an operator of one operand, and where.
fn worst_unary(op: UnaryOp, xs: &[f32], eval: &dyn Fn(f32) -> f32) -> (f64, f32) {
    let mut worst = (0.0f64, 0.0f32);
    for &x in xs {
        let want = exact(op, x.into());
        let e = ulps(eval(x), want, magnitude(op, x.into(), want));
        if e > worst.0 {
            worst = (e, x);
        }
    }
    worst
}

/// The worst error of an operator of two operands, and where.
fn worst_binary(op: BinaryOp, values: &[f32], eval: &dyn Fn(f32, f32) -> f32) -> (f64, f32, f32) {
    let mut worst = (0.0f64, 0.0f32, 0.0f32);
    for &x in values {
        for &y in values {
            let (a, b) = (f64::from(x), f64::from(y));
            let want = match op {
                BinaryOp::Pow => a.powf(b),
                BinaryOp::Atan2 => a.atan2(b),
                _ => a.hypot(b),
            };
            let e = ulps(eval(x, y), want, want.abs());
            if e > worst.0 {
                worst = (e, x, y);
            }
        }
    }
    worst
}

/// Fewer steps than this make the test of every function more thorough.
fn step(usual: u32) -> u32 {
    let asked = std::env::var("PERPETUA_MATH_STEP").ok();
    asked.and_then(|s| s.parse().ok()).unwrap_or(usual)
}

#[test]
fn unary_functions_stay_within_the_tables_bound() {
    let xs = samples(step(40_009));
    let mut failures = String::new();
    for &op in UnaryOp::ALL.iter().filter(|op| eval_unary(**op, 0.0).is_some()) {
        let (e, x) = worst_unary(op, &xs, &|x| eval_unary(op, x).unwrap());
        println!("{:8} worst {e:.3} ulp at {x:e}", op.name());
        if e > bound(op.row().exactness) {
            failures += &format!("{}({x:e}): {e} ulp\n", op.name());
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

const BINARY: [BinaryOp; 3] = [BinaryOp::Pow, BinaryOp::Atan2, BinaryOp::Hypot];

/// Pairs of these are the operands of functions of two: one in `thin` of the usual values, and some more.
fn binary_samples(thin: usize) -> Vec<f32> {
    let mut values: Vec<f32> = samples(9_000_011).into_iter().step_by(thin).collect();
    values.extend((-40..40).map(|i| i as f32 * 0.25));
    // Powers with large results of bases close to 1 are where a logarithm's last bits count.
    values.extend((0..50u32).map(|i| f32::from_bits(0x3f7f_f000 + i * 137)));
    values
}

#[test]
fn binary_functions_stay_within_the_tables_bound() {
    let values = binary_samples(3);
    let mut failures = String::new();
    for op in BINARY {
        let (e, x, y) = worst_binary(op, &values, &|x, y| eval_binary(op, x, y).unwrap());
        println!("{:8} worst {e:.3} ulp at {x:e}, {y:e}", op.name());
        if e > bound(op.row().exactness) {
            failures += &format!("{}({x:e}, {y:e}): {e} ulp\n", op.name());
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

fn within_bounds_with<L: models::Liberty>() {
    let (xs, pairs) = (samples(step(400_009)), binary_samples(17));
    let mut failures = String::new();
    let num = models::Num::<L>::new;
    for &op in UnaryOp::ALL.iter().filter(|op| eval_unary(**op, 0.0).is_some()) {
        let (e, x) = worst_unary(op, &xs, &|x| unary(op, num(x)).unwrap().value());
        println!("{}: {:8} worst {e:.3} ulp at {x:e}", L::NAME, op.name());
        if e > bound(op.row().exactness) {
            failures += &format!("{}: {}({x:e}): {e} ulp\n", L::NAME, op.name());
        }
    }
    for op in BINARY {
        let eval = |x, y| binary(op, num(x), num(y)).unwrap().value();
        let (e, x, y) = worst_binary(op, &pairs, &eval);
        println!("{}: {:8} worst {e:.3} ulp at {x:e}, {y:e}", L::NAME, op.name());
        if e > bound(op.row().exactness) {
            failures += &format!("{}: {}({x:e}, {y:e}): {e} ulp\n", L::NAME, op.name());
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn fma_in_two_roundings_keeps_the_bounds() {
    within_bounds_with::<models::TwoRoundings>();
}

#[test]
fn fused_products_keep_the_bounds() {
    within_bounds_with::<models::FusedLeft>();
    within_bounds_with::<models::FusedRight>();
    within_bounds_with::<models::Mixed>();
}

#[test]
fn sums_that_a_compiler_cancels_keep_the_bounds() {
    within_bounds_with::<models::Cancels>();
}

#[test]
fn signs_of_zero_are_kept() {
    for op in [
        UnaryOp::Sin,
        UnaryOp::Tan,
        UnaryOp::Asin,
        UnaryOp::Atan,
        UnaryOp::Sinh,
        UnaryOp::Tanh,
        UnaryOp::Asinh,
        UnaryOp::Erf,
    ] {
        for x in [0.0f32, -0.0] {
            assert_eq!(eval_unary(op, x).unwrap().to_bits(), x.to_bits(), "{op:?}");
        }
    }
    for op in [UnaryOp::Atanh, UnaryOp::ExpM1, UnaryOp::Ln1p, UnaryOp::Cbrt] {
        assert_eq!(
            eval_unary(op, -0.0).unwrap().to_bits(),
            (-0.0f32).to_bits(),
            "{op:?}"
        );
    }
}

#[test]
fn every_library_operator_has_an_ir_function() {
    use crate::ops::Spelling;
    for &op in UnaryOp::ALL {
        let library = op.row().cuda == Spelling::Library;
        for s in [Scalar::F32, Scalar::F64] {
            for sums in [Sums::AsWritten, Sums::Rearranged] {
                assert_eq!(
                    function(LibraryOp::Unary(op, s), sums).is_some(),
                    library,
                    "{op:?}"
                );
            }
        }
    }
    for &op in BinaryOp::ALL {
        let library = op.row().cuda == Spelling::Library;
        for s in [Scalar::F32, Scalar::F64] {
            for sums in [Sums::AsWritten, Sums::Rearranged] {
                assert_eq!(
                    function(LibraryOp::Binary(op, s), sums).is_some(),
                    library,
                    "{op:?}"
                );
            }
        }
    }
}
