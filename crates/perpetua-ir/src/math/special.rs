//! The error function and the logarithm of the gamma function. Methods: `(1 + 2x) exp(x²) erfc x` as one polynomial in
//! `(x - 2) / (x + 2)` (Shepherd and Laframboise, Mathematics of Computation 36, 1981), and Stirling's series from 8 on, to
//! which smaller arguments come by `Γ(x + 1) = x Γ(x)` and negative ones by reflection. Coefficients are least-maximum fits.

use super::exponential::{LOG2_E, exp_near};
use super::logarithm::{LN_2, ln};
use super::real::{Condition, Real, polynomial, scale};

/// `erf x` for `|x| <= 1`.
#[inline(always)]
fn erf_near<R: Real>(x: R) -> R {
    let c = [
        0.128_379_17,
        -0.376_126_26,
        0.112_835_94,
        -0.026_854_211,
        0.005_189_087_2,
        -0.000_801_686_43,
        7.875_875e-5,
    ];
    polynomial(x * x, &c).fma(x, x)
}

/// `erfc a` for `a >= 0.5`.
#[inline(always)]
fn erfc_far<R: Real>(a: R) -> R {
    let (one, two, most) = (a.lit(1.0), a.lit(2.0), a.lit(10.6));
    let a = a.lt(most).select(a, most);
    let c = [
        0.276_978_37,
        -0.092_763_774,
        -0.166_030_91,
        0.164_049,
        -0.054_209_996,
        -0.008_007_739,
        0.008_653_784,
        0.001_153_061_4,
        -0.001_258_458_2,
        -0.000_232_805_13,
    ];
    let p = polynomial((a - two) / (a + two), &c);
    let rest = (p + one) / (a + a + one);
    // exp(-a²), with the square in two parts: that of the first 12 bits is exact, and so is the first difference.
    let (high, low) = a.halves();
    let k = (-(a * a) * a.lit(LOG2_E)).nearest();
    let r = (-k).fma(a.lit(LN_2[0]), -(high * high));
    let r = (-k).fma(a.lit(LN_2[1]), r) - low * (a + high);
    scale(exp_near(r) * rest, k.to_int())
}

#[inline(always)]
pub(super) fn erf<R: Real>(x: R) -> R {
    let a = x.abs();
    let far = (x.lit(1.0) - erfc_far(a)).copysign(x);
    a.lt(x.lit(1.0)).select(erf_near(x), far)
}

#[inline(always)]
pub(super) fn erfc<R: Real>(x: R) -> R {
    let far = erfc_far(x.abs());
    let below = x.lit(2.0) - far;
    let middle = x.lit(1.0) - erf_near(x);
    let y = x.lt(x.lit(0.5)).select(middle, far);
    x.lt(x.lit(-1.0)).select(below, y)
}

/// `ln Γ(y)` over `(y - 1) (y - 2)`, in powers of `y - 2`, for `y` from 1 to 3.
const BETWEEN: [f32; 13] = [
    0.422_784_33,
    -0.100_317_28,
    0.032_964_99,
    -0.012_384_944,
    0.004_998_996,
    -0.002_102_242_3,
    0.000_912_594_5,
    -0.000_425_154_14,
    0.000_191_739_69,
    -5.283_973_6e-5,
    2.388_160_6e-5,
    -3.858_047_4e-5,
    1.809_151_4e-5,
];

/// Of what `ln Γ(a)` for `a > 0` is made.
pub(super) struct Steps<R: Real> {
    /// Whether `a < 1`, where a logarithm is taken away, not added.
    pub(super) small: R::Cond,
    /// Whether Stirling's series holds.
    pub(super) large: R::Cond,
    /// The distances of the argument between 1 and 3 to 1 and to 2, which are the zeros.
    pub(super) to_one: R,
    pub(super) to_two: R,
    /// Whose logarithm it is.
    pub(super) log_of: R,
}

/// The steps to an argument between 1 and 3.
#[inline(always)]
pub(super) fn steps<R: Real>(a: R) -> Steps<R> {
    let (one, two) = (a.lit(1.0), a.lit(2.0));
    let (small, large) = (a.lt(one), a.lt(a.lit(8.0)).not());
    // Down to [2, 3), with the product of what Γ lost.
    let (mut y, mut factor) = (a, one);
    for _ in 0..5 {
        let down = y.lt(a.lit(3.0)).not();
        let less = y - one;
        y = down.select(less, y);
        factor = down.select(factor * less, factor);
    }
    // Below 1 it is ln Γ(a + 1) - ln a; the differences to the zeros stay exact.
    Steps {
        small,
        large,
        to_one: small.select(a, y - one),
        to_two: small.select(a - one, y - two),
        log_of: large.select(a, small.select(a, factor)),
    }
}

/// `ln Γ(a)` for `a > 0`.
#[inline(always)]
fn lgamma_positive<R: Real>(a: R) -> R {
    let Steps {
        small,
        large,
        to_one,
        to_two,
        log_of,
    } = steps(a);
    let one = a.lit(1.0);
    let between = to_one * to_two * polynomial(to_two, &BETWEEN);
    let log = ln(log_of);
    let near = small.select(between - log, between + log);
    let inverse = one / a;
    let series = [0.083_333_336, -0.002_777_698_4, 0.000_780_034_7];
    let rest = polynomial(inverse * inverse, &series).fma(inverse, a.lit(0.418_938_53));
    let far = (a - a.lit(0.5)).fma(log - one, rest);
    large.select(far, near)
}

/// `|sin πa|` over the distance from `a` to the nearest integer, and that distance.
#[inline(always)]
fn sine<R: Real>(a: R) -> (R, R) {
    let r = (a - a.nearest()).abs();
    let c = [
        3.141_592_7,
        -5.167_712_7,
        2.550_163_3,
        -0.599_252_16,
        0.082_050_35,
        -0.007_028_304,
    ];
    (polynomial(r * r, &c), r)
}

#[inline(always)]
pub(super) fn lgamma<R: Real>(x: R) -> R {
    let (zero, inf) = (x.lit(0.0), x.lit(f32::INFINITY));
    let a = x.abs();
    // Where Γ(a) is 1 / a, and the sum of the gamma function's logarithm is more than a float holds.
    let tiny = a.lt(x.lit(1e-9));
    let huge = a.gt(x.lit(4.085_003_5e36));
    let b = tiny.or(huge).select(x.lit(1.5), a);
    let positive = lgamma_positive(b);
    let (over, distance) = sine(b);
    // At an integer the logarithm is that of 0.
    let mirrored = -ln(b * over * x.lit(std::f32::consts::FRAC_1_PI) * distance) - positive;
    let y = x.lt(zero).select(mirrored, positive);
    let y = tiny.select(-ln(a), y);
    huge.select(inf, y)
}
