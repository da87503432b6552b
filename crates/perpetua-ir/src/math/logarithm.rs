//! Logarithms. Method: the argument as `2^e (1 + f)` with `1 + f` between √½ and √2, and a polynomial in `f`.

use super::real::{Condition, Real, Word, polynomial};

const LN_2: f32 = std::f32::consts::LN_2;
/// ln 2 less its f32 value.
const LN_2_REST: f32 = -1.904_654_2e-9;

/// Exponent and fraction: `(e, f)` with `x = 2^e (1 + f)`, for positive, finite `x`.
#[inline(always)]
fn split<R: Real>(x: R) -> (R::Int, R) {
    let tiny = x.lt(x.lit(f32::MIN_POSITIVE));
    let x = tiny.select(x * x.lit(33_554_432.0), x);
    // The bits of √½, so that the fraction ends up between √½ and √2.
    let offset = x.int(0x3f35_04f3);
    let above = x.bits().sub(offset);
    let e = above.shr(x.int(23));
    let m = x.bits().sub(e.shl(x.int(23))).to_bits();
    let e = e.sub(tiny.select_int(x.int(25), x.int(0)));
    (e, m - x.lit(1.0))
}

/// `ln(1 + f) - f` for `1 + f` between √½ and √2.
#[inline(always)]
fn tail<R: Real>(f: R) -> R {
    let c = [
        0.333_333_08,
        -0.249_999_85,
        0.200_023_89,
        -0.166_694_31,
        0.142_152_52,
        -0.123_790_26,
        0.118_946_06,
        -0.118_316_53,
        0.069_152_877,
    ];
    let s = f * f;
    (s * f).fma(polynomial(f, &c), s * f.lit(-0.5))
}

/// The logarithm `y` of `x`, but for the special values: -inf of 0, NaN of negative numbers, inf of inf.
#[inline(always)]
fn special<R: Real>(x: R, y: R) -> R {
    let y = x.eq(x.lit(f32::INFINITY)).select(x, y);
    let y = x.eq(x.lit(0.0)).select(x.lit(f32::NEG_INFINITY), y);
    x.lt(x.lit(0.0)).or(x.is_nan()).select(x.lit(f32::NAN), y)
}

#[inline(always)]
pub(super) fn ln<R: Real>(x: R) -> R {
    let (e, f) = split(x);
    let e = e.to_real();
    let t = e.fma(x.lit(LN_2_REST), tail(f)) + f;
    special(x, e.fma(x.lit(LN_2), t))
}

#[inline(always)]
pub(super) fn ln_1p<R: Real>(x: R) -> R {
    let one = x.lit(1.0);
    let u = one + x;
    let (e, f) = split(u);
    // What rounding 1 + x lost, relative to it.
    let lost = x.gt(one).select(one - (u - x), x - (u - one)) / u;
    let e_real = e.to_real();
    // Without an exponent, f is 1 + x less 1, so x itself is the better fraction.
    let same = e.eq(x.int(0));
    let (f, lost) = (same.select(x, f), same.select(x.lit(0.0), lost));
    let t = e_real.fma(x.lit(LN_2_REST), tail(f) + lost) + f;
    let y = e_real.fma(x.lit(LN_2), t);
    let y = special(u, y);
    x.abs().lt(x.lit(1e-8)).select(x, y)
}

/// `log_b x` from `1 / ln b` and `log_b 2`, each in two parts.
#[inline(always)]
fn in_base<R: Real>(x: R, inverse: [f32; 2], two: [f32; 2]) -> R {
    let (e, f) = split(x);
    let e = e.to_real();
    let q = tail(f);
    let high = f * x.lit(inverse[0]);
    let low = f.fma(x.lit(inverse[0]), -high);
    let low = q.fma(x.lit(inverse[0]), f.fma(x.lit(inverse[1]), low));
    let t = e.fma(x.lit(two[1]), low) + high;
    special(x, e.fma(x.lit(two[0]), t))
}

#[inline(always)]
pub(super) fn log2<R: Real>(x: R) -> R {
    in_base(x, [std::f32::consts::LOG2_E, 1.925_963e-8], [1.0, 0.0])
}

#[inline(always)]
pub(super) fn log10<R: Real>(x: R) -> R {
    in_base(
        x,
        [std::f32::consts::LOG10_E, -1.010_305e-8],
        [std::f32::consts::LOG10_2, -1.432_098_9e-8],
    )
}

/// `log2 x` as an unevaluated sum of two floats, for positive finite `x`: relative error near 2^-36.
#[inline(always)]
pub(super) fn log2_sum<R: Real>(x: R) -> (R, R) {
    let (e, f) = split(x);
    // ln(1 + f) = 2 atanh(s), s = f / (2 + f), with s in two parts.
    let d = f + x.lit(2.0);
    let d_low = f - (d - x.lit(2.0));
    let s = f / d;
    let s_low = ((-s).fma(d, f) - s * d_low) / d;
    let t = s * s;
    let c = [2.0 / 3.0, 0.4, 2.0 / 7.0, 2.0 / 9.0, 2.0 / 11.0, 2.0 / 13.0];
    // The cubic term matters to double precision: 2/3 s³ with its rounding errors.
    let p = polynomial(t, &c);
    let cube = t * s;
    let cube_low = s.fma(t, -cube) + s * s.fma(s, -t);
    let term = p * cube;
    let term_low = p.fma(cube, -term) + p * cube_low;
    let two_s = s + s;
    let high = two_s + term;
    let low = (two_s - high) + term + (term_low + s_low + s_low);
    // Times 1 / ln 2.
    let (l, l_low) = (x.lit(std::f32::consts::LOG2_E), x.lit(1.925_963e-8));
    let product = high * l;
    let product_low = high.fma(l, -product) + high.fma(l_low, low * l);
    let e = e.to_real();
    let sum = e + product;
    let sum_low = (e - sum) + product + product_low;
    // Where the exponent is 0 the order of magnitude is the product's.
    let none = e.eq(x.lit(0.0));
    let high = none.select(product, sum);
    let low = none.select(product_low, sum_low);
    let total = high + low;
    let rest = (high - total) + low;
    (total, rest)
}
