//! Powers and roots.

use super::super::power::special_cases;
use super::super::real::{Condition, Real, Word};
use super::exponential::exp_of;
use super::logarithm::ln_two;
use super::{Two, power_of_two};

/// `x` to the `y`, with the special cases of IEEE 754's `pow`.
#[inline(always)]
pub(in super::super) fn pow<R: Real>(x: R, y: R) -> R {
    let (one, zero, inf) = (x.lit(1.0), x.lit(0.0), x.lit(f32::INFINITY));
    let a = x.abs();
    let ordinary = a.gt(zero).and(a.lt(inf));
    let Two(high, low) = ln_two(ordinary.select(a, one));
    // A huge exponent would overflow to NaN on the way, and decides the result anyway.
    let limit = x.lit(1e25);
    let z = y.abs().gt(limit).select(limit.copysign(y), y);
    let Two(p, rest) = Two::product(high, z);
    let far = x.lit(1000.0);
    let within = p.abs().lt(far);
    let p = within.select(p, far.copysign(p));
    let rest = within.select(low.fma(z, rest), zero);
    let value = exp_of(Two::ordered(p, rest));
    special_cases(x, y, a, value, x.wide(9_007_199_254_740_992.0))
}

#[inline(always)]
pub(in super::super) fn cbrt<R: Real>(x: R) -> R {
    let a = x.abs();
    // Scaled by 2^±300, so that no cube is subnormal or overflows.
    let (tiny, huge) = (a.lt(x.wide(1e-200)), a.gt(x.wide(1e200)));
    let (down, up) = (power_of_two(x, x.int(-300)), power_of_two(x, x.int(300)));
    let b = tiny.select(a * up, huge.select(a * down, a));
    // A third of the exponent, by a multiplication, is good to 5 bits; Halley's steps triple them.
    let third = b.bits().mul_high_unsigned(x.word(0x5555_5555_5555_5556));
    let guess = third.add(x.word(0x2a9f_7893_782d_a1ce)).to_bits();
    let step = |t: R| {
        let cube = t * t * t;
        t - t * ((cube - b) / (cube + cube + b))
    };
    let t = step(step(step(guess)));
    // One Newton step with the cube's error taken along.
    let square = Two::product(t, t);
    let Two(cube, low) = square.times(Two(t, x.lit(0.0)));
    let t = t + ((b - cube) - low) / (x.lit(3.0) * square.0);
    let (root_down, root_up) = (power_of_two(x, x.int(-100)), power_of_two(x, x.int(100)));
    let y = tiny
        .select(t * root_down, huge.select(t * root_up, t))
        .copysign(x);
    let plain = x.eq(x.lit(0.0)).or(a.lt(x.lit(f32::INFINITY)).not());
    plain.select(x, y)
}

#[inline(always)]
pub(in super::super) fn hypot<R: Real>(x: R, y: R) -> R {
    let (ax, ay) = (x.abs(), y.abs());
    let swap = ax.lt(ay);
    let (large, small) = (swap.select(ay, ax), swap.select(ax, ay));
    // Scaled by powers of two, so that squares neither overflow nor vanish.
    let (huge, tiny) = (large.gt(x.wide(1e150)), large.lt(x.wide(1e-140)));
    let (down, up) = (power_of_two(x, x.int(-600)), power_of_two(x, x.int(600)));
    let one = x.lit(1.0);
    let factor = huge.select(down, tiny.select(up, one));
    let back = huge.select(up, tiny.select(down, one));
    let (l, s) = (large * factor, small * factor);
    let square = Two::product(l, l).plus(Two::product(s, s));
    let value = large.eq(x.lit(0.0)).select(large, square.root().rounded() * back);
    let inf = x.lit(f32::INFINITY);
    let value = x.is_nan().or(y.is_nan()).select(x.lit(f32::NAN), value);
    ax.eq(inf).or(ay.eq(inf)).select(inf, value)
}
