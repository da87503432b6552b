//! Exponentials and hyperbolic functions. Method: reduction by powers of two and a polynomial (J.-M. Muller,
//! Elementary Functions, chapter 11); coefficients are least-maximum fits made for the reduced ranges.

use super::logarithm::{LN_2, ln, ln_1p};
use super::real::{Condition, Real, Word, polynomial, scale};

pub(super) const LOG2_E: f32 = std::f32::consts::LOG2_E;

/// `(r, k)` with `x = r + k ln 2` and `|r| <= ln 2 / 2`.
#[inline(always)]
fn reduce<R: Real>(x: R) -> (R, R::Int) {
    let (k, whole) = (x * x.lit(LOG2_E)).nearest_int();
    let r = (-k).fma(x.lit(LN_2[0]), x);
    ((-k).fma(x.lit(LN_2[1]), r), whole)
}

/// `exp(r) - 1 - r` over `r²`, for `|r| <= ln 2 / 2`.
#[inline(always)]
fn tail<R: Real>(r: R) -> R {
    polynomial(
        r,
        &[
            0.5,
            0.166_666_67,
            0.041_666_34,
            0.008_333_273,
            0.001_394_208,
            0.000_199_141_02,
        ],
    )
}

/// `exp(r)` for `|r| <= ln 2 / 2`.
#[inline(always)]
pub(super) fn exp_near<R: Real>(r: R) -> R {
    (r * r).fma(tail(r), r) + r.lit(1.0)
}

#[inline(always)]
pub(super) fn exp<R: Real>(x: R) -> R {
    let x = x.limit(-104.0, 89.0);
    let (r, k) = reduce(x);
    scale(exp_near(r), k)
}

/// Half of `exp(x)`, which overflows later, for `x >= 0`.
#[inline(always)]
fn exp_half<R: Real>(x: R) -> R {
    let (r, k) = reduce(x.limit(0.0, 91.0));
    scale(exp_near(r), k.sub(x.int(1)))
}

#[inline(always)]
pub(super) fn exp2<R: Real>(x: R) -> R {
    let x = x.limit(-151.0, 129.0);
    let (k, whole) = x.nearest_int();
    let r = x - k;
    let c = [
        0.693_147_2,
        0.240_226_5,
        0.055_503_242,
        0.009_618_004,
        0.001_340_165_1,
        0.000_154_765_21,
    ];
    let p = polynomial(r, &c).fma(r, x.lit(1.0));
    scale(p, whole)
}

#[inline(always)]
pub(super) fn exp_m1<R: Real>(x: R) -> R {
    let full = x;
    let x = x.limit(-20.0, 89.0);
    let (r, k) = reduce(x);
    // 2^k (e + 1) - 1 with e = exp(r) - 1; below, 2^k is split so that 2^128 does not overflow.
    let e = (r * r).fma(tail(r), r);
    let half = k.shr(x.int(1));
    let power = |k: R::Int| k.add(x.int(127)).shl(x.int(23)).to_bits();
    let (a, b) = (power(half), power(k.sub(half)));
    let large = k.lt(x.int(64)).not();
    let small = e.fma(a * b, a * b - x.lit(1.0));
    let big = (e + x.lit(1.0)) * a * b;
    let y = large.select(big, small);
    // Keeps the sign of zero and the last bit of tiny arguments.
    full.abs().lt(x.lit(1e-9)).select(full, y)
}

#[inline(always)]
pub(super) fn sinh<R: Real>(x: R) -> R {
    let a = x.abs();
    let t = x * x;
    let c = [
        0.166_666_67,
        0.008_333_333,
        0.000_198_412_98,
        2.755_185e-6,
        2.553_943_5e-8,
    ];
    let near = (t * x).fma(polynomial(t, &c), x);
    let e = exp_half(a);
    let far = e - x.lit(0.25) / e;
    a.gt(x.lit(1.0)).select(far.copysign(x), near)
}

#[inline(always)]
pub(super) fn cosh<R: Real>(x: R) -> R {
    let e = exp_half(x.abs());
    e + x.lit(0.25) / e
}

#[inline(always)]
pub(super) fn tanh<R: Real>(x: R) -> R {
    let a = x.abs();
    let t = x * x;
    let c = [
        -0.333_333_3,
        0.133_332_48,
        -0.053_952_463,
        0.021_734_376,
        -0.008_266_932,
        0.002_230_918_7,
    ];
    let near = (t * x).fma(polynomial(t, &c), x);
    let e = exp((a * x.lit(2.0)).limit(0.0, 40.0));
    let far = x.lit(1.0) - x.lit(2.0) / (e + x.lit(1.0));
    a.gt(x.lit(0.6)).select(far, near).copysign(x)
}

#[inline(always)]
pub(super) fn asinh<R: Real>(x: R) -> R {
    let a = x.abs();
    let huge = a.gt(x.lit(1e9));
    let b = huge.select(x.lit(1.0), a);
    let middle = ln_1p(b + b * b / (x.lit(1.0) + (b.fma(b, x.lit(1.0))).sqrt()));
    let far = ln(a) + x.lit(std::f32::consts::LN_2);
    let y = huge.select(far, middle).copysign(x);
    a.lt(x.lit(1e-4)).select(x, y)
}

#[inline(always)]
pub(super) fn acosh<R: Real>(x: R) -> R {
    let huge = x.gt(x.lit(1e9));
    let t = huge.select(x.lit(1.0), x) - x.lit(1.0);
    let middle = ln_1p(t + (t.fma(t, t + t)).sqrt());
    let y = huge.select(ln(x) + x.lit(std::f32::consts::LN_2), middle);
    x.lt(x.lit(1.0)).select(x.lit(f32::NAN), y)
}

#[inline(always)]
pub(super) fn atanh<R: Real>(x: R) -> R {
    let a = x.abs();
    let y = x.lit(0.5) * ln_1p((a + a) / (x.lit(1.0) - a));
    a.lt(x.lit(1e-4))
        .select(x.fma(x * x * x.lit(1.0 / 3.0), x), y.copysign(x))
}
