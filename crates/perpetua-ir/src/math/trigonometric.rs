//! Circular functions and their inverses. Method: reduction to `[-π/4, π/4]`, by a π/2 in short parts for
//! ordinary arguments and by Payne and Hanek's (M. Payne, R. Hanek, SIGNUM Newsletter 18(1), 1983) for large ones, then
//! polynomials.

use super::real::{Condition, Real, Word, polynomial};

/// π/2 in two parts.
const HALF_PI: [f32; 2] = [1.570_796_4, -4.371_138_8e-8];
/// π/2 in four parts; the first three have 13 bits each, so that their products with integers up to 2^11 are exact.
const HALF_PI_SHORT: [f32; 4] = [1.570_800_8, -4.440_546e-6, -1.390_799_3e-8, -1.074_634_6e-12];
/// π/2 in two parts, of which the first has 12 bits.
const HALF_PI_HALVES: [f32; 2] = [1.570_800_8, -4.454_455e-6];
/// 2/π as a binary fraction, in 32-bit words.
const TWO_OVER_PI: [u32; 7] = [
    0xa2f9_836e,
    0x4e44_1529,
    0xfc27_57d1,
    0xf534_ddc0,
    0xdb62_9599,
    0x3c43_9041,
    0xfe51_63ab,
];
/// Above this more than 2^11 quarter turns may have to go.
const LARGE: f32 = 3_200.0;

/// `(r, k)` with `x = r + k π/2`, `|r| <= π/4`; `k` modulo 4 counts.
#[inline(always)]
fn reduce<R: Real>(x: R) -> (R, R::Int) {
    x.abs().lt(x.lit(LARGE)).branch(
        || {
            let k = (x * x.lit(std::f32::consts::FRAC_2_PI)).nearest();
            let [a, b, c, d] = HALF_PI_SHORT.map(|part| k * x.lit(part));
            // The first difference is exact; what the next two lose goes with the last part.
            let far = x - a;
            let near = far - b;
            let r = near - c;
            let lost = ((far - near) - b) + ((near - r) - c);
            (r + (lost - d), k.to_int())
        },
        || reduce_large(x),
    )
}

/// Payne and Hanek's reduction: the few words of `x · 2/π` that matter.
#[inline(always)]
fn reduce_large<R: Real>(x: R) -> (R, R::Int) {
    let int = |v: u32| x.int(v as i32);
    let bits = x.bits();
    // |x| = mantissa · 2^(e - 30), with 24 significant bits at the top of the word.
    let e = bits.shr(int(23)).and(int(0xff)).sub(int(128));
    let mantissa = bits.shl(int(8)).or(int(0x8000_0000));
    // The product with all of 2/π, least significant word first.
    let mut words = Vec::with_capacity(8);
    let mut carry = int(0);
    for w in TWO_OVER_PI.iter().rev() {
        let low = mantissa.mul(int(*w)).add(carry);
        let overflow = low.lt_unsigned(carry).select_int(int(1), int(0));
        carry = mantissa.mul_high_unsigned(int(*w)).add(overflow);
        words.push(low);
    }
    words.push(carry);
    words.reverse();
    // The words are a binary fraction to be multiplied by 2^(e + 2): e bits stand above the two that count quarter turns.
    let skip = e.shr_unsigned(int(5));
    let mut picked = [words[0], words[1], words[2]];
    for (n, _) in words.iter().enumerate().skip(1).take(words.len() - 3) {
        let here = skip.eq(int(n as u32));
        for (i, p) in picked.iter_mut().enumerate() {
            *p = here.select_int(words[n + i], *p);
        }
    }
    let shift = e.and(int(31));
    // A shift by 32 is not defined: shift by one and then by 31 - s instead.
    let join = |a: R::Int, b: R::Int| {
        a.shl(shift)
            .or(b.shr_unsigned(int(1)).shr_unsigned(int(31).sub(shift)))
    };
    let high = join(picked[0], picked[1]);
    let low = join(picked[1], picked[2]);
    // The top two bits are the quarter; round to the nearest by the third.
    let quarter = high.shr_unsigned(int(30));
    let round = high.shr_unsigned(int(29)).and(int(1));
    let quarter = quarter.add(round);
    // The fraction of a quarter turn, signed, with 62 bits.
    let high = high.shl(int(2)).or(low.shr_unsigned(int(30)));
    let low = low.shl(int(2));
    let negative = round.eq(int(1));
    let flipped = low.xor(int(u32::MAX)).add(int(1));
    let borrow = flipped.eq(int(0)).select_int(int(1), int(0));
    let mirrored = high.xor(int(u32::MAX)).add(borrow);
    let (high, low) = (
        negative.select_int(mirrored, high),
        negative.select_int(flipped, low),
    );
    // Exact pieces, smallest first.
    let top = high.and(int(0xffff_0000)).to_real_unsigned() * x.lit(2.328_306_4e-10);
    let rest = high.and(int(0xffff)).to_real_unsigned() * x.lit(2.328_306_4e-10);
    let last = low.to_real_unsigned() * x.lit(5.421_011e-20);
    let sum = rest + last;
    let fraction = top + sum;
    let fraction_low = (top - fraction) + sum;
    let (f, f_low) = fraction.halves();
    let [half_pi, half_pi_low] = HALF_PI_HALVES.map(|part| x.lit(part));
    let r_low = f * half_pi_low + (f_low + fraction_low) * x.lit(HALF_PI[0]);
    let r = f * half_pi + r_low;
    let r = negative.select(-r, r);
    let below = x.lt(x.lit(0.0));
    let r = below.select(-r, r);
    let quarter = below.select_int(int(0).sub(quarter), quarter);
    let finite = x.abs().lt(x.lit(f32::INFINITY));
    (finite.select(r, x.lit(f32::NAN)), quarter)
}

#[inline(always)]
fn sin_near<R: Real>(r: R) -> R {
    let t = r * r;
    let p = polynomial(
        t,
        &[-0.166_666_67, 0.008_333_329, -0.000_198_392_56, 2.717_564_7e-6],
    );
    (t * r).fma(p, r)
}

#[inline(always)]
fn cos_near<R: Real>(r: R) -> R {
    let t = r * r;
    let p = polynomial(
        t,
        &[0.041_666_668, -0.001_388_888_3, 2.479_943_8e-5, -2.720_332_8e-7],
    );
    (t * t).fma(p, t.fma(r.lit(-0.5), r.lit(1.0)))
}

/// `sin(r + k π/2)`.
#[inline(always)]
fn by_quarter<R: Real>(r: R, k: R::Int) -> R {
    let odd = k.and(r.int(1)).eq(r.int(1));
    let y = odd.select(cos_near(r), sin_near(r));
    k.and(r.int(2)).eq(r.int(2)).select(-y, y)
}

#[inline(always)]
pub(super) fn sin<R: Real>(x: R) -> R {
    let (r, k) = reduce(x);
    let y = by_quarter(r, k);
    // Keeps the sign of zero.
    x.eq(x.lit(0.0)).select(x, y)
}

#[inline(always)]
pub(super) fn cos<R: Real>(x: R) -> R {
    let (r, k) = reduce(x);
    by_quarter(r, k.add(x.int(1)))
}

#[inline(always)]
pub(super) fn tan<R: Real>(x: R) -> R {
    let (r, k) = reduce(x);
    let (s, c) = (sin_near(r), cos_near(r));
    let odd = k.and(x.int(1)).eq(x.int(1));
    let y = odd.select(-c, s) / odd.select(s, c);
    x.eq(x.lit(0.0)).select(x, y)
}

/// `atan t - t` over `t³`, as a polynomial in `t²`, for `0 <= t <= 1`.
const ATAN: [f32; 9] = [
    -0.333_332_99,
    0.199_985_49,
    -0.142_642_45,
    0.109_522_08,
    -0.084_035_22,
    0.057_958_875,
    -0.031_179_15,
    0.010_915_314,
    -0.001_793_780_5,
];

/// `atan(a)` for `a >= 0`, from `t = a` or, when `inverted`, `t = 1/a`.
#[inline(always)]
fn atan_unit<R: Real>(t: R, inverted: R::Cond) -> R {
    let s = t * t;
    let p = polynomial(s, &ATAN) * s;
    let y = p.fma(t, t);
    let flipped = t.lit(HALF_PI[0]) - (p.fma(t, t - t.lit(HALF_PI[1])));
    inverted.select(flipped, y)
}

#[inline(always)]
pub(super) fn atan<R: Real>(x: R) -> R {
    let a = x.abs();
    let inverted = a.gt(x.lit(1.0));
    let t = inverted.select(x.lit(1.0) / a, a);
    atan_unit(t, inverted).copysign(x)
}

/// Angle of the point (`x`, `y`), as C's `atan2(y, x)`.
#[inline(always)]
pub(super) fn atan2<R: Real>(y: R, x: R) -> R {
    let (ay, ax) = (y.abs(), x.abs());
    let inf = y.lit(f32::INFINITY);
    let steep = ay.gt(ax);
    let (small, large) = (steep.select(ax, ay), steep.select(ay, ax));
    // 0/0 is 0 here and inf/inf is 1.
    let both_inf = small.eq(inf);
    // Powers of two keep tiny arguments from losing bits and huge ones' quotient in range.
    let tiny = large.lt(y.lit(1e-30));
    let up = y.lit(1.329_228e36);
    let (small, large) = (tiny.select(small * up, small), tiny.select(large * up, large));
    let t = small / large;
    let t = both_inf.select(y.lit(1.0), t);
    let t = large.eq(y.lit(0.0)).select(y.lit(0.0), t);
    let angle = atan_unit(t, steep);
    let behind = x.bits().lt(y.int(0));
    let mirrored = y.lit(std::f32::consts::PI) - (angle - y.lit(-8.742_278e-8));
    let angle = behind.select(mirrored, angle).copysign(y);
    x.is_nan().or(y.is_nan()).select(x.lit(f32::NAN), angle)
}

/// `asin(x) - x` over `x³`, as a polynomial in `x²`, for `|x| <= 1/2`.
const ASIN: [f32; 6] = [
    0.166_666_6,
    0.075_005_42,
    0.044_509_362,
    0.031_873_673,
    0.014_180_225,
    0.037_890_97,
];

#[inline(always)]
pub(super) fn asin<R: Real>(x: R) -> R {
    let a = x.abs();
    let far = a.gt(x.lit(0.5));
    let z = far.select((x.lit(1.0) - a) * x.lit(0.5), x * x);
    let s = far.select(z.sqrt(), a);
    let y = (s * z).fma(polynomial(z, &ASIN), s);
    let flipped = x.lit(HALF_PI[0]) - (y + y - x.lit(HALF_PI[1]));
    far.select(flipped, y).copysign(x)
}

#[inline(always)]
pub(super) fn acos<R: Real>(x: R) -> R {
    let a = x.abs();
    let far = a.gt(x.lit(0.5));
    let z = far.select((x.lit(1.0) - a) * x.lit(0.5), x * x);
    let s = far.select(z.sqrt(), a);
    let y = (s * z).fma(polynomial(z, &ASIN), s);
    let negative = x.lt(x.lit(0.0));
    let pi = x.lit(std::f32::consts::PI);
    let twice = y + y;
    let far_value = negative.select(pi - (twice - x.lit(-8.742_278e-8)), twice);
    let near = x.lit(HALF_PI[0]) - (y.copysign(x) - x.lit(HALF_PI[1]));
    far.select(far_value, near)
}
