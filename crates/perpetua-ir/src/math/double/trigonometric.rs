//! Circular functions: reduction to `[-π/4, π/4]`, by a π/2 in parts for ordinary arguments and by Payne and Hanek's
//! method (SIGNUM Newsletter 18(1), 1983) for large ones, then Taylor's series.

use super::super::real::{Condition, Real, Word};
use super::{HALF_PI, Two, polynomial};

/// π/2's third part.
const HALF_PI_THIRD: f64 = -1.497_384_904_859_169_8e-33;
/// Above this more than 2^29 quarter turns may have to go.
const LARGE: f64 = 8e8;
/// 2/π as a binary fraction, in 64-bit words behind one of zeros.
const TWO_OVER_PI: [u64; 20] = [
    0,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];
/// Of `sin(r) = r + r³ (-1/3! + r²/5! - …)`.
const SIN: [f64; 8] = series(2);
/// Of `cos(r) = 1 - r²/2 + r⁴ (1/4! - r²/6! + …)`.
const COS: [f64; 8] = series(3);

/// `±1/(n+1)!`, `∓1/(n+3)!`, …, the first negative where `n` is even.
const fn series(n: u32) -> [f64; 8] {
    let mut c = [0.0; 8];
    let mut i = 0;
    let mut factorial = if n == 2 { -6.0 } else { 24.0 };
    let mut last = n + 1;
    while i < 8 {
        c[i] = 1.0 / factorial;
        factorial *= -(((last + 1) * (last + 2)) as f64);
        last += 2;
        i += 1;
    }
    c
}

/// `(r, k)` with `x = r + k π/2`, `|r| <= π/4`; `k` modulo 4 counts.
#[inline(always)]
fn reduce<R: Real>(x: R) -> (Two<R>, R::Int) {
    let large = x.abs().lt(x.wide(LARGE)).not();
    let k = (x * x.wide(std::f64::consts::FRAC_2_PI)).nearest();
    let k = large.select(x.lit(0.0), k);
    // The first difference is exact.
    let r = (-k).fma(x.wide(HALF_PI.0), large.select(x.lit(0.0), x));
    let Two(p, p_low) = Two::product(k, x.wide(HALF_PI.1));
    let Two(high, rest) = Two::sum(r, -p);
    let low = k.fma(x.wide(-HALF_PI_THIRD), rest - p_low);
    let near = Two::ordered(high, low);
    // A branch gives one float and one integer, so the quarter lies in the second part's last bits.
    let packed =
        |Two(high, low): Two<R>, quarter: R::Int| (high, low.bits().and(x.int(-4)).or(quarter.and(x.int(3))));
    let (high, rest) = large.branch(
        || {
            let (far, quarter) = reduce_large(x);
            packed(far, quarter)
        },
        || packed(near, k.to_int()),
    );
    (Two(high, rest.and(x.int(-4)).to_bits()), rest.and(x.int(3)))
}

/// Payne and Hanek's reduction: the 192 bits of `x · 2/π` that matter.
#[inline(always)]
fn reduce_large<R: Real>(x: R) -> (Two<R>, R::Int) {
    let int = |v: u64| x.word(v as i64);
    let bits = x.bits();
    // |x| = mantissa · 2^e.
    let e = bits.shr(x.int(52)).and(x.int(0x7ff)).sub(x.int(1075));
    let mantissa = bits.and(int((1 << 52) - 1)).or(int(1 << 52));
    // Bits of 2/π in front of this one make multiples of four quarter turns.
    let first = e.add(x.int(62));
    let skip = first.shr_unsigned(x.int(6));
    let mut picked = [0, 1, 2, 3].map(|i| int(TWO_OVER_PI[i]));
    for n in 1..TWO_OVER_PI.len() - 3 {
        let here = skip.eq(x.int(n as i32));
        for (i, p) in picked.iter_mut().enumerate() {
            *p = here.select_int(int(TWO_OVER_PI[n + i]), *p);
        }
    }
    let shift = first.and(x.int(63));
    // A shift by 64 is not defined: shift by one and then by 63 - s instead.
    let join = |a: R::Int, b: R::Int| {
        let rest = b.shr_unsigned(x.int(1)).shr_unsigned(x.int(63).sub(shift));
        a.shl(shift).or(rest)
    };
    let [w0, w1, w2] = [0, 1, 2].map(|i| join(picked[i], picked[i + 1]));
    // The product's lower 192 bits: a fraction of four quarter turns.
    let carried = |sum: R::Int, part: R::Int| sum.lt_unsigned(part).select_int(x.int(1), x.int(0));
    let middle_low = mantissa.mul_high_unsigned(w2);
    let middle = mantissa.mul(w1).add(middle_low);
    let high = mantissa
        .mul(w0)
        .add(mantissa.mul_high_unsigned(w1))
        .add(carried(middle, middle_low));
    let low = mantissa.mul(w2);
    // The top two bits are the quarter; round to the nearest by the third.
    let round = high.shr_unsigned(x.int(61)).and(x.int(1));
    let quarter = high.shr_unsigned(x.int(62)).add(round);
    // The fraction of a quarter turn with 128 bits, mirrored where it is above a half.
    let top = high.shl(x.int(2)).or(middle.shr_unsigned(x.int(62)));
    let rest = middle.shl(x.int(2)).or(low.shr_unsigned(x.int(62)));
    let negative = round.eq(x.int(1));
    let flip = negative.select_int(x.int(-1), x.int(0));
    let (top, rest) = (top.xor(flip), rest.xor(flip));
    // Exact pieces of 32 bits, largest first.
    let half = |word: R::Int| (word.shr_unsigned(x.int(32)), word.and(int(0xffff_ffff)));
    let (a, b) = half(top);
    let (c, d) = half(rest);
    let piece = |word: R::Int, scale: f64| word.to_real() * x.wide(scale);
    let (a, b) = (piece(a, 2f64.powi(-32)), piece(b, 2f64.powi(-64)));
    let (c, d) = (piece(c, 2f64.powi(-96)), piece(d, 2f64.powi(-128)));
    let fraction = Two::ordered(a, b).plus(Two::ordered(c, d));
    let Two(r, r_low) = fraction.times(HALF_PI.at(x));
    let below = x.lt(x.lit(0.0));
    let signed = |v: R| {
        let v = negative.select(-v, v);
        below.select(-v, v)
    };
    let finite = x.abs().lt(x.lit(f32::INFINITY));
    let r = finite.select(signed(r), x.lit(f32::NAN));
    let quarter = below.select_int(x.int(0).sub(quarter), quarter);
    (Two(r, signed(r_low)), quarter)
}

#[inline(always)]
fn sin_near<R: Real>(Two(r, low): Two<R>) -> Two<R> {
    let t = r * r;
    // low · cos(r), to first order.
    let small = t.fma(low * r.lit(-0.5), low);
    Two::ordered(r, (t * r).fma(polynomial(t, &SIN), small))
}

#[inline(always)]
fn cos_near<R: Real>(Two(r, low): Two<R>) -> Two<R> {
    let Two(t, t_low) = Two::product(r, r);
    let half = t.lit(-0.5);
    let Two(one, rest) = Two::ordered(r.lit(1.0), t * half);
    let small = (t_low * half) - r * low;
    Two::ordered(one, rest + (t * t).fma(polynomial(t, &COS), small))
}

/// `sin(r + k π/2)`.
#[inline(always)]
fn by_quarter<R: Real>(r: Two<R>, k: R::Int) -> R {
    let odd = k.and(r.0.int(1)).eq(r.0.int(1));
    let y = Two::select(odd, cos_near(r), sin_near(r)).rounded();
    k.and(r.0.int(2)).eq(r.0.int(2)).select(-y, y)
}

#[inline(always)]
pub(in super::super) fn sin<R: Real>(x: R) -> R {
    let (r, k) = reduce(x);
    let y = by_quarter(r, k);
    // Keeps the sign of zero.
    x.eq(x.lit(0.0)).select(x, y)
}

#[inline(always)]
pub(in super::super) fn cos<R: Real>(x: R) -> R {
    let (r, k) = reduce(x);
    by_quarter(r, k.add(x.int(1)))
}

#[inline(always)]
pub(in super::super) fn tan<R: Real>(x: R) -> R {
    let (r, k) = reduce(x);
    let (s, c) = (sin_near(r), cos_near(r));
    let odd = k.and(x.int(1)).eq(x.int(1));
    let over = Two::select(odd, c.negated(), s);
    let under = Two::select(odd, s, c);
    let y = over.over(under).rounded();
    x.eq(x.lit(0.0)).select(x, y)
}
