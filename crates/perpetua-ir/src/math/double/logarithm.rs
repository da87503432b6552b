//! Logarithms and inverse hyperbolic functions: `x = 2^k m`, `ln m = 2 atanh((m - 1) / (m + 1))`, in sums of two.

use super::super::real::{Condition, Real, Word};
use super::{LN_2, LN_2_WHOLE, Two, polynomial};

/// The bits of the root of a half.
const ROOT_OF_HALF: i64 = 0x3fe6_a09e_667f_3bcd;
/// 2/5, 2/7, …
const TAIL: [f64; 12] = {
    let mut c = [0.4; 12];
    let mut i = 1;
    while i < 12 {
        c[i] = 2.0 / (2 * i + 5) as f64;
        i += 1;
    }
    c
};
const TWO_THIRDS: Two<f64> = Two(2.0 / 3.0, 3.700_743_415_417_188e-17);
const LOG2_E: Two<f64> = Two(std::f64::consts::LOG2_E, 2.035_527_374_093_103_3e-17);
const LOG10_E: Two<f64> = Two(std::f64::consts::LOG10_E, 1.098_319_650_216_765e-17);

/// The logarithm of a finite number above zero, to about 65 bits: of `m`, and `k`.
#[inline(always)]
fn parts<R: Real>(x: R) -> (Two<R>, R) {
    let tiny = x.lt(x.wide(f64::MIN_POSITIVE));
    let bits = tiny.select(x * x.wide(18_014_398_509_481_984.0), x).bits();
    let k = bits.sub(x.word(ROOT_OF_HALF)).shr(x.int(52));
    let m = bits.sub(k.shl(x.int(52))).to_bits();
    let k = tiny.select_int(k.sub(x.int(54)), k).to_real();
    let one = x.lit(1.0);
    let zero = x.lit(0.0);
    let s = Two(m - one, zero).over(Two::sum(m, one));
    let z = s.times(s);
    let cube = s.times(z).times(TWO_THIRDS.at(x));
    let tail = s.0 * (z.0 * z.0) * polynomial(z.0, &TAIL);
    let Two(high, rest) = Two::ordered(s.0 + s.0, cube.0);
    (Two::ordered(high, rest + (s.1 + s.1 + (cube.1 + tail))), k)
}

/// The natural logarithm of a finite number above zero.
#[inline(always)]
pub(super) fn ln_two<R: Real>(x: R) -> Two<R> {
    let (m, k) = parts(x);
    let Two(high, rest) = Two::sum(k * x.wide(LN_2[0]), m.0);
    let low = k.fma(x.wide(LN_2[2]), m.1);
    let Two(far, near) = Two::product(k, x.wide(LN_2[1]));
    let Two(high, more) = Two::sum(high, far);
    Two::ordered(high, rest + more + (near + low))
}

/// Of a sum above zero.
#[inline(always)]
fn ln_of<R: Real>(x: Two<R>) -> Two<R> {
    let Two(high, low) = ln_two(x.0);
    let Two(high, rest) = Two::sum(high, x.1 / x.0);
    Two::ordered(high, rest + low)
}

/// What a logarithm gives at zero, infinity and below zero.
#[inline(always)]
fn bounded<R: Real>(x: R, y: R) -> R {
    let inf = x.lit(f32::INFINITY);
    let zero = x.lit(0.0);
    let y = x.eq(inf).select(inf, y);
    let y = x.eq(zero).select(-inf, y);
    x.lt(zero).select(x.lit(f32::NAN), y)
}

#[inline(always)]
pub(in super::super) fn ln<R: Real>(x: R) -> R {
    bounded(x, ln_two(x).rounded())
}

#[inline(always)]
pub(in super::super) fn log2<R: Real>(x: R) -> R {
    let (m, k) = parts(x);
    let m = m.times(LOG2_E.at(x));
    let Two(high, rest) = Two::sum(k, m.0);
    bounded(x, high + (rest + m.1))
}

#[inline(always)]
pub(in super::super) fn log10<R: Real>(x: R) -> R {
    bounded(x, ln_two(x).times(LOG10_E.at(x)).rounded())
}

#[inline(always)]
pub(in super::super) fn ln_1p<R: Real>(x: R) -> R {
    let one = x.lit(1.0);
    let y = ln_of(Two::sum(one, x)).rounded();
    let inf = x.lit(f32::INFINITY);
    let y = x.eq(inf).select(inf, y);
    let y = x.eq(-one).select(-inf, y);
    let y = x.lt(-one).select(x.lit(f32::NAN), y);
    x.abs().lt(x.lit(1e-20)).select(x, y)
}

#[inline(always)]
pub(in super::super) fn asinh<R: Real>(x: R) -> R {
    let a = x.abs();
    let (one, zero) = (x.lit(1.0), x.lit(0.0));
    let huge = a.gt(x.lit(1e18));
    let b = huge.select(one, a);
    let root = Two::product(b, b).plus(Two(one, zero)).root();
    let middle = ln_of(root.plus(Two(b, zero)));
    let far = ln_two(a).plus(LN_2_WHOLE.at(x));
    let y = Two::select(huge, far, middle).rounded();
    let y = a.eq(x.lit(f32::INFINITY)).select(a, y).copysign(x);
    let tiny = (x * x * x).fma(x.wide(-1.0 / 6.0), x);
    let y = a.lt(x.lit(1e-6)).select(tiny, y);
    a.lt(x.lit(1e-20)).select(x, y)
}

#[inline(always)]
pub(in super::super) fn acosh<R: Real>(x: R) -> R {
    let (one, zero) = (x.lit(1.0), x.lit(0.0));
    let huge = x.gt(x.lit(1e18));
    let b = huge.select(x.lit(2.0), x);
    let square = Two::product(b, b).plus(Two(-one, zero));
    // At 1 the root's correction would divide by zero.
    let root = Two::select(b.gt(one), square.root(), Two(zero, zero));
    let middle = ln_of(root.plus(Two(b, zero)));
    let far = ln_two(x).plus(LN_2_WHOLE.at(x));
    let y = Two::select(huge, far, middle).rounded();
    let inf = x.lit(f32::INFINITY);
    let y = x.eq(inf).select(inf, y);
    x.lt(one).select(x.lit(f32::NAN), x.eq(one).select(zero, y))
}

#[inline(always)]
pub(in super::super) fn atanh<R: Real>(x: R) -> R {
    let a = x.abs();
    let one = x.lit(1.0);
    let y = ln_of(Two::sum(one, a).over(Two::sum(one, -a))).rounded() * x.lit(0.5);
    let tiny = (x * x * x).fma(x.wide(1.0 / 3.0), x);
    let y = a.lt(x.lit(1e-6)).select(tiny, y.copysign(x));
    let y = a.lt(x.lit(1e-20)).select(x, y);
    let y = a.eq(one).select(x.lit(f32::INFINITY).copysign(x), y);
    a.gt(one).select(x.lit(f32::NAN), y)
}
