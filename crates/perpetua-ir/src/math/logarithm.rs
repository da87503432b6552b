//! Logarithms. Method: the argument as `2^e (1 + f)` with `1 + f` between √½ and √2, and a polynomial in `f`.

use super::real::{Condition, Real, Word, polynomial};

/// ln 2 in two parts; the first has 16 bits, so that its product with a small integer is exact.
pub(super) const LN_2: [f32; 2] = [0.693_145_75, 1.428_606_8e-6];

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
    let t = e.fma(x.lit(LN_2[1]), tail(f)) + f;
    special(x, e * x.lit(LN_2[0]) + t)
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
    let t = e_real.fma(x.lit(LN_2[1]), tail(f) + lost) + f;
    let y = e_real * x.lit(LN_2[0]) + t;
    let y = special(u, y);
    x.abs().lt(x.lit(1e-8)).select(x, y)
}

/// `log_b x` from `1 / ln b`, the first of its parts with 12 bits, and `log_b 2`, the first with 16.
#[inline(always)]
fn in_base<R: Real>(x: R, inverse: [f32; 2], two: [f32; 2]) -> R {
    let (e, f) = split(x);
    let e = e.to_real();
    let whole = x.lit(inverse[0] + inverse[1]);
    let (f1, f2) = f.halves();
    let low = f.fma(x.lit(inverse[1]), f2 * x.lit(inverse[0]));
    let low = tail(f).fma(whole, low);
    let t = e.fma(x.lit(two[1]), low) + f1 * x.lit(inverse[0]);
    special(x, e * x.lit(two[0]) + t)
}

#[inline(always)]
pub(super) fn log2<R: Real>(x: R) -> R {
    in_base(x, [1.442_871_1, -1.760_528_5e-4], [1.0, 0.0])
}

#[inline(always)]
pub(super) fn log10<R: Real>(x: R) -> R {
    in_base(x, [0.434_326_17, -3.168_997e-5], [0.301_025_39, 4.605_039e-6])
}

/// 2 / ln 2 in two parts, of which the first has 12 bits.
const TWO_LOG2_E: [f32; 2] = [2.885_742_2, -3.521_057e-4];

/// `log2 x` as an unevaluated sum of two floats, for positive finite `x`: relative error near 2^-29. The first has 22
/// bits at most.
#[inline(always)]
pub(super) fn log2_sum<R: Real>(x: R) -> (R, R) {
    let (e, f) = split(x);
    // log2(1 + f) = 2 / ln 2 · atanh s, where s = f / (2 + f) = s1 + s2, s1 with 12 bits.
    let inverse = x.lit(1.0) / (f + x.lit(2.0));
    let s = f * inverse;
    let (s1, _) = s.halves();
    // What s1 leaves of f: f - s1 (2 + f). All products and the first difference are exact.
    let (f1, f2) = f.halves();
    let s2 = (((f - (s1 + s1)) - s1 * f1) - s1 * f2) * inverse;
    let [two, two_low] = TWO_LOG2_E.map(|part| x.lit(part));
    let linear = s1 * two;
    // The rest is small enough for one part.
    let t = s * s;
    let rest = t
        * s
        * polynomial(
            t,
            &[
                0.961_796_7,
                0.577_078_04,
                0.412_198_57,
                0.320_598_9,
                0.262_308_18,
                0.221_953_08,
            ],
        );
    let low = s.fma(two_low, s2 * two);
    let (fraction, _) = (linear + rest).halves();
    let low = ((linear - fraction) + rest) + low;
    // Beside an exponent, 14 bits after the point go into the first part, so that it is exact.
    let e = e.to_real();
    let grid = (fraction * x.lit(16_384.0)).nearest() * x.lit(6.103_515_6e-5);
    let first = e.eq(x.lit(0.0)).select(fraction, grid);
    (e + first, low + (fraction - first))
}
