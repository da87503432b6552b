//! Inverse circular functions: all are the angle of a point, whose quotient is taken as a sum of two.

use super::super::real::{Condition, Real, Word};
use super::{HALF_PI, Two, polynomial, power_of_two};

const QUARTER_PI: Two<f64> = Two(std::f64::consts::FRAC_PI_4, 3.061_616_997_868_383e-17);
const PI: Two<f64> = Two(std::f64::consts::PI, 1.224_646_799_147_353_2e-16);

/// `atan t - t` over `t³`, as a polynomial in `t²`, for `|t| <= √2 - 1`; within 2^-64.
const ATAN: [f64; 13] = [
    -0.3333333333333333,
    0.19999999999999993,
    -0.14285714285711518,
    0.11111111110754596,
    -0.09090909067001965,
    0.07692306735718386,
    -0.06666642013802822,
    0.058819251621304865,
    -0.05258040671813287,
    0.0471938939437893,
    -0.04104413490203404,
    0.030635176368469387,
    -0.013917695219229849,
];

/// The angle of a point with these coordinates, which are not negative and not both zero or infinite.
#[inline(always)]
fn angle<R: Real>(y: Two<R>, x: Two<R>) -> Two<R> {
    let one = y.0;
    let steep = y.0.gt(x.0);
    let small = Two::select(steep, x, y);
    let large = Two::select(steep, y, x);
    // Above tan(π/8): from π/4 on.
    let oblique = small.0.gt(large.0 * one.wide(0.414_213_562_373_095_03));
    let over = Two::select(oblique, small.plus(large.negated()), small);
    let under = Two::select(oblique, small.plus(large), large);
    let Two(t, low) = over.over(under);
    let square = t * t;
    // low / (1 + t²), to first order.
    let small = (t * square).fma(polynomial(square, &ATAN), (-low).fma(square, low));
    let zero = Two(one.lit(0.0), one.lit(0.0));
    let base = Two::select(oblique, QUARTER_PI.at(one), zero);
    let near = base.plus(Two::ordered(t, small));
    let mirrored = HALF_PI.at(one).plus(near.negated());
    Two::select(steep, mirrored, near)
}

#[inline(always)]
pub(in super::super) fn atan<R: Real>(x: R) -> R {
    let a = x.abs();
    let (one, zero) = (x.lit(1.0), x.lit(0.0));
    // Beyond, nothing of a quotient counts.
    let far = a.gt(x.lit(1e20));
    let y = angle(Two(far.select(one, a), zero), Two(one, zero)).rounded();
    let y = far.select(x.wide(HALF_PI.0), y).copysign(x);
    a.lt(x.lit(1e-9)).select(x, y)
}

/// Angle of the point (`x`, `y`), as C's `atan2(y, x)`.
#[inline(always)]
pub(in super::super) fn atan2<R: Real>(y: R, x: R) -> R {
    let (ay, ax) = (y.abs(), x.abs());
    let (zero, one, inf) = (y.lit(0.0), y.lit(1.0), y.lit(f32::INFINITY));
    let steep = ay.gt(ax);
    let large = steep.select(ay, ax);
    // Inf/inf is 1 here, and what is beside infinity is 0; 0/0 is 0.
    let infinite = large.eq(inf);
    let unit = |v: R| v.eq(inf).select(one, zero);
    let (ay, ax) = (infinite.select(unit(ay), ay), infinite.select(unit(ax), ax));
    let none = large.eq(zero);
    let ax = none.select(one, ax);
    // Powers of two keep tiny arguments from losing bits and huge ones' sum in range.
    let (tiny, huge) = (
        large.lt(y.wide(1e-140)),
        large.gt(y.wide(1e150)).and(infinite.not()),
    );
    let (down, up) = (power_of_two(y, y.int(-600)), power_of_two(y, y.int(600)));
    let factor = none.select(one, huge.select(down, tiny.select(up, one)));
    let found = angle(Two(ay * factor, zero), Two(ax * factor, zero));
    let behind = x.bits().lt(y.int(0));
    let mirrored = PI.at(y).plus(found.negated());
    let value = Two::select(behind, mirrored, found).rounded().copysign(y);
    // A tiny quotient is rounded once, also where it is subnormal.
    let slight = (ay / ax).lt(y.lit(1e-20)).and(behind.not());
    let value = slight.select((ay / ax).copysign(y), value);
    x.is_nan().or(y.is_nan()).select(y.lit(f32::NAN), value)
}

/// `√(1 - x²)` for `|x| <= 1`.
#[inline(always)]
fn beside<R: Real>(x: R) -> Two<R> {
    let one = x.lit(1.0);
    let square = Two::sum(one, x).times(Two::sum(one, -x));
    let zero = Two(x.lit(0.0), x.lit(0.0));
    Two::select(x.abs().lt(one), square.root(), zero)
}

#[inline(always)]
pub(in super::super) fn asin<R: Real>(x: R) -> R {
    let a = x.abs();
    let y = angle(Two(a, x.lit(0.0)), beside(a)).rounded().copysign(x);
    let y = a.lt(x.lit(1e-9)).select(x, y);
    a.gt(x.lit(1.0)).select(x.lit(f32::NAN), y)
}

#[inline(always)]
pub(in super::super) fn acos<R: Real>(x: R) -> R {
    let a = x.abs();
    let found = angle(beside(a), Two(a, x.lit(0.0)));
    let mirrored = PI.at(x).plus(found.negated());
    let y = Two::select(x.lt(x.lit(0.0)), mirrored, found).rounded();
    a.gt(x.lit(1.0)).select(x.lit(f32::NAN), y)
}
