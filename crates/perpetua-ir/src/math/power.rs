//! Powers and roots.

use super::exponential::exp_near;
use super::logarithm::log2_sum;
use super::real::{Condition, Real, Word, scale};

/// `x` to the `y`, with the special cases of IEEE 754's `pow`.
#[inline(always)]
pub(super) fn pow<R: Real>(x: R, y: R) -> R {
    let zero = x.lit(0.0);
    let a = x.abs();
    let (high, low) = log2_sum(a);
    // y log2|x| in two parts. A huge exponent would overflow to NaN on the way, and decides the result anyway.
    let limit = x.lit(1e30);
    let z = y.abs().gt(limit).select(limit.copysign(y), y);
    let ((h1, h2), (z1, z2)) = (high.halves(), z.halves());
    let p = h1 * z1;
    let p_low = h1 * z2 + (h2 * z + low * z);
    // Beyond this all is 0 or infinite.
    let far = x.lit(250.0);
    let ordinary = p.abs().lt(far);
    let p = ordinary.select(p, far.copysign(p));
    let p_low = ordinary.select(p_low, zero);
    // 2^p: the integer part apart, the fraction through exp.
    let whole = (p + p_low).nearest();
    let fraction = (p - whole) + p_low;
    let m = exp_near(fraction * x.lit(std::f32::consts::LN_2));
    let value = scale(m, whole.to_int());
    special_cases(x, y, a, value, x.lit(16_777_216.0))
}

/// `value`, which is `a` to the `y`, also where `y` is infinite, as IEEE 754 wants it for `x`, of which `a` is the magnitude: signs, zeros, infinities, NaN. A `y` from
/// `odd_below` on is an even number, if it is one at all.
#[inline(always)]
pub(super) fn special_cases<R: Real>(x: R, y: R, a: R, value: R, odd_below: R) -> R {
    let (one, zero, inf) = (x.lit(1.0), x.lit(0.0), x.lit(f32::INFINITY));
    let integer = y.trunc().eq(y).and(y.abs().lt(inf));
    let halved = y * x.lit(0.5);
    let odd = integer
        .and(halved.trunc().eq(halved).not())
        .and(y.abs().lt(odd_below));
    let negative = x.bits().lt(x.int(0));
    // Zero, infinite or ordinary base; then the sign; then what overrides all.
    let y_negative = y.lt(zero);
    let value = a.eq(zero).select(y_negative.select(inf, zero), value);
    let value = a.eq(inf).select(y_negative.select(zero, inf), value);
    let value = negative.and(odd).select(-value, value);
    let undefined = x.lt(zero).and(integer.not()).and(y.abs().lt(inf)).and(a.lt(inf));
    let value = undefined
        .or(x.is_nan())
        .or(y.is_nan())
        .select(x.lit(f32::NAN), value);
    y.eq(zero).or(x.eq(one)).select(one, value)
}

#[inline(always)]
pub(super) fn cbrt<R: Real>(x: R) -> R {
    let a = x.abs();
    // Scaled by 2^48, so that not even the differences below are subnormal.
    let tiny = a.lt(x.lit(1e-26));
    let huge = a.gt(x.lit(1e30));
    let b = tiny.select(
        a * x.lit(281_474_976_710_656.0),
        huge.select(a * x.lit(5.960_464_5e-8), a),
    );
    // The inverse root, without divisions. A third of the exponent, by a multiplication, is good to 3 bits, a step by a polynomial that was fitted to that
    // (L. Moroz and others, Fast calculation of cube root and inverse cube root, 2021) to 15, and one of Newton's to 23.
    let third = b.bits().mul_high_unsigned(x.int(0x5555_5556));
    let r = x.int(0x548c_39cb).sub(third).to_bits();
    let c = (b * r) * (r * r);
    let r = r * c.fma(
        c.fma(x.lit(0.509_381_83), x.lit(-1.250_952_4)),
        x.lit(1.752_319_7),
    );
    let s = r * r;
    let c = (-b).fma(s * r, x.lit(1.0));
    let third = x.lit(1.0 / 3.0);
    let r = (r * c).fma(third, r);
    // The root, and what its cube leaves.
    let s = r * r;
    let t = b * s;
    let residue = (-t).fma(t * t, b);
    let t = (residue * third).fma(s, t);
    let y = tiny
        .select(t * x.lit(1.525_878_9e-5), huge.select(t * x.lit(256.0), t))
        .copysign(x);
    let plain = x.eq(x.lit(0.0)).or(a.lt(x.lit(f32::INFINITY)).not());
    plain.select(x, y)
}

#[inline(always)]
pub(super) fn hypot<R: Real>(x: R, y: R) -> R {
    let (ax, ay) = (x.abs(), y.abs());
    let swap = ax.lt(ay);
    let (large, small) = (swap.select(ay, ax), swap.select(ax, ay));
    // Scaled by powers of two, so that squares neither overflow nor vanish.
    let huge = large.gt(x.lit(1e18));
    let tiny = large.lt(x.lit(1e-18));
    let (down, up) = (x.lit(1.262_177_4e-29), x.lit(7.922_816e28));
    let one = x.lit(1.0);
    let factor = huge.select(down, tiny.select(up, one));
    let back = huge.select(up, tiny.select(down, one));
    let (l, s) = (large * factor, small * factor);
    let value = l.fma(l, s * s).sqrt() * back;
    let inf = x.lit(f32::INFINITY);
    let value = x.is_nan().or(y.is_nan()).select(x.lit(f32::NAN), value);
    ax.eq(inf).or(ay.eq(inf)).select(inf, value)
}
