//! Exponential and hyperbolic functions: `exp(x) = 2^k exp(r)`, `|r| <= ln(2) / 2`, by Taylor's series.

use super::super::real::{Condition, Real, Word};
use super::{LN_2, LN_2_WHOLE, Two, polynomial, power_of_two, scale};

/// `1/2!`, `1/3!`, …
const TAIL: [f64; 13] = {
    let mut c = [0.5; 13];
    let (mut i, mut factorial) = (1, 2.0);
    while i < 13 {
        factorial *= (i + 2) as f64;
        c[i] = 1.0 / factorial;
        i += 1;
    }
    c
};

/// `exp(r) - 1` for `|r| <= 0.35`.
#[inline(always)]
fn near_one<R: Real>(Two(r, low): Two<R>) -> Two<R> {
    let small = low + low * r;
    Two::ordered(r, (r * r).fma(polynomial(r, &TAIL), small))
}

/// `exp(x) - 1 = 2^k (1 + e) - 1`: `e` and `k`. `|x| < 2000`.
#[inline(always)]
pub(super) fn reduced<R: Real>(Two(x, low): Two<R>) -> (Two<R>, R::Int) {
    let (k, whole) = (x * x.wide(std::f64::consts::LOG2_E)).nearest_int();
    let r = (-k).fma(x.wide(LN_2[0]), x);
    let rest = (-k).fma(x.wide(LN_2[1]), low);
    (near_one(Two::sum(r, rest)), whole)
}

/// `exp(x)` as `2^k` times the first.
#[inline(always)]
pub(super) fn exp_two<R: Real>(x: Two<R>) -> (Two<R>, R::Int) {
    let (Two(e, low), k) = reduced(x);
    let Two(s, rest) = Two::ordered(x.0.lit(1.0), e);
    (Two::ordered(s, rest + low), k)
}

/// `exp` of a sum within ±1000.
#[inline(always)]
pub(super) fn exp_of<R: Real>(x: Two<R>) -> R {
    let (value, k) = exp_two(x);
    scale(value.rounded(), k)
}

#[inline(always)]
pub(in super::super) fn exp<R: Real>(x: R) -> R {
    exp_of(Two(x.limit(-760.0, 720.0), x.lit(0.0)))
}

#[inline(always)]
pub(in super::super) fn exp2<R: Real>(x: R) -> R {
    let x = x.limit(-1100.0, 1030.0);
    let (k, whole) = x.nearest_int();
    let f = x - k;
    let Two(e, low) = near_one(LN_2_WHOLE.at(x).times(Two(f, x.lit(0.0))));
    let Two(s, rest) = Two::ordered(x.lit(1.0), e);
    scale(s + (rest + low), whole)
}

#[inline(always)]
pub(in super::super) fn exp_m1<R: Real>(x: R) -> R {
    let full = x;
    let x = x.limit(-60.0, 709.9);
    let (Two(e, low), k) = reduced(Two(x, x.lit(0.0)));
    // 2 (2^(k-1) (1 + e) - 1/2): half of it, so that 2^1024 does not overflow.
    let half = power_of_two(x, k.sub(x.int(1)));
    let Two(s, rest) = Two::sum(half - x.lit(0.5), e * half);
    let y = (s + low.fma(half, rest)) * x.lit(2.0);
    full.abs().lt(x.lit(1e-20)).select(full, y)
}

/// `exp(|x|) / 4` as a sum, and `1 / (4 exp(|x|))`, which is 0 where it does not count. Beyond the limit four times that is infinite.
#[inline(always)]
fn quarters<R: Real>(a: R) -> (Two<R>, Two<R>) {
    let (e, k) = exp_two(Two(a.limit(0.0, 710.7), a.lit(0.0)));
    let quarter = e.scaled(power_of_two(a, k.sub(a.int(2))));
    let sixteenth = Two(a.lit(0.0625), a.lit(0.0));
    let other = sixteenth.over(quarter);
    let far = a.gt(a.lit(40.0));
    let zero = Two(a.lit(0.0), a.lit(0.0));
    (quarter, Two::select(far, zero, other))
}

/// Of `sinh(x) = x + x³ (1/3! + x²/5! + …)`, for `|x| <= 1`.
const SINH: [f64; 10] = {
    let mut c = [1.0 / 6.0; 10];
    let (mut i, mut factorial) = (1, 6.0);
    while i < 10 {
        factorial *= ((2 * i + 2) * (2 * i + 3)) as f64;
        c[i] = 1.0 / factorial;
        i += 1;
    }
    c
};

#[inline(always)]
pub(in super::super) fn sinh<R: Real>(x: R) -> R {
    let a = x.abs();
    let t = x * x;
    let near = (t * x).fma(polynomial(t, &SINH), x);
    let (quarter, other) = quarters(a);
    let far = quarter.plus(other.negated()).rounded() * x.lit(2.0);
    a.gt(x.lit(0.5)).select(far.copysign(x), near)
}

#[inline(always)]
pub(in super::super) fn cosh<R: Real>(x: R) -> R {
    let a = x.abs();
    let (quarter, other) = quarters(a);
    quarter.plus(other).rounded() * x.lit(2.0)
}

#[inline(always)]
pub(in super::super) fn tanh<R: Real>(x: R) -> R {
    let a = x.abs();
    // With e = exp(2a) - 1: e / (e + 2).
    let (Two(e, low), k) = reduced(Two((a + a).limit(0.0, 60.0), x.lit(0.0)));
    let power = power_of_two(x, k);
    let Two(s, rest) = Two::sum(power - x.lit(1.0), e * power);
    let e = Two::ordered(s, low.fma(power, rest));
    let y = e.over(e.plus(Two(x.lit(2.0), x.lit(0.0)))).rounded();
    a.lt(x.lit(1e-9)).select(x, y.copysign(x))
}
