//! The functions of f64. Method: sums of two numbers wherever one would round away what counts, made with exact fused
//! multiply-adds, which every target with f64 math has; so the last rounding is nearly the only one.

mod exponential;
mod inverse;
mod logarithm;
mod power;
mod special;
#[cfg(test)]
mod tests;
mod trigonometric;

pub(super) use exponential::{cosh, exp, exp_m1, exp2, sinh, tanh};
pub(super) use inverse::{acos, asin, atan, atan2};
pub(super) use logarithm::{acosh, asinh, atanh, ln, ln_1p, log2, log10};
pub(super) use power::{cbrt, hypot, pow};
pub(super) use special::{erf, erfc, lgamma};
pub(super) use trigonometric::{cos, sin, tan};

use super::real::{Condition, Real, Word};

/// ln 2 in three parts; the first has 32 zero bits at its end, so that its products with exponents are exact.
const LN_2: [f64; 3] = [
    0.6931467056274414,
    4.749_325_039_031_672_6e-7,
    -2.340_793_886_567_823_4e-23,
];
/// ln 2 in two parts.
const LN_2_WHOLE: Two<f64> = Two(std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17);
/// π/2 in two parts.
const HALF_PI: Two<f64> = Two(std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17);

/// A number as the sum of two, of which the second is at most half a last place of the first.
#[derive(Clone, Copy)]
struct Two<R>(R, R);

impl Two<f64> {
    /// As constants beside `x`.
    #[inline(always)]
    fn at<R: Real>(self, x: R) -> Two<R> {
        Two(x.wide(self.0), x.wide(self.1))
    }
}

impl<R: Real> Two<R> {
    /// The sum of any two numbers.
    #[inline(always)]
    fn sum(a: R, b: R) -> Two<R> {
        let s = a + b;
        let of_b = s - a;
        Two(s, (a - (s - of_b)) + (b - of_b))
    }
    /// The sum of two numbers of which the first is the larger.
    #[inline(always)]
    fn ordered(a: R, b: R) -> Two<R> {
        let s = a + b;
        Two(s, b - (s - a))
    }
    #[inline(always)]
    fn product(a: R, b: R) -> Two<R> {
        let p = a * b;
        Two(p, a.fma(b, -p))
    }
    #[inline(always)]
    fn plus(self, other: Two<R>) -> Two<R> {
        let Two(s, e) = Two::sum(self.0, other.0);
        Two::ordered(s, e + (self.1 + other.1))
    }
    #[inline(always)]
    fn negated(self) -> Two<R> {
        Two(-self.0, -self.1)
    }
    #[inline(always)]
    fn times(self, other: Two<R>) -> Two<R> {
        let Two(p, e) = Two::product(self.0, other.0);
        Two::ordered(p, e + self.0.fma(other.1, self.1 * other.0))
    }
    #[inline(always)]
    fn scaled(self, by: R) -> Two<R> {
        Two(self.0 * by, self.1 * by)
    }
    #[inline(always)]
    fn over(self, other: Two<R>) -> Two<R> {
        let q = self.0 / other.0;
        let rest = (-q).fma(other.0, self.0) + (self.1 - q * other.1);
        Two::ordered(q, rest / other.0)
    }
    /// The root of a number above zero.
    #[inline(always)]
    fn root(self) -> Two<R> {
        let r = self.0.sqrt();
        let rest = (-r).fma(r, self.0) + self.1;
        Two::ordered(r, rest / (r + r))
    }
    /// The number, rounded.
    #[inline(always)]
    fn rounded(self) -> R {
        self.0 + self.1
    }
    #[inline(always)]
    fn select(which: R::Cond, a: Two<R>, b: Two<R>) -> Two<R> {
        Two(which.select(a.0, b.0), which.select(a.1, b.1))
    }
}

/// `c[0] + x c[1] + x² c[2] + …`, by Horner's rule with fused steps.
#[inline(always)]
fn polynomial<R: Real>(x: R, c: &[f64]) -> R {
    let mut rest = c.iter().rev();
    let last = x.wide(rest.next().copied().unwrap_or(0.0));
    rest.fold(last, |sum, c| sum.fma(x, x.wide(*c)))
}

/// `2^k` for normal powers.
#[inline(always)]
fn power_of_two<R: Real>(x: R, k: R::Int) -> R {
    k.add(x.int(1023)).shl(x.int(52)).to_bits()
}

/// `x * 2^k` for `k` in -2044 ..= 2046, rounded once where `x` is normal.
#[inline(always)]
fn scale<R: Real>(x: R, k: R::Int) -> R {
    let half = k.shr(x.int(1));
    x * power_of_two(x, half) * power_of_two(x, k.sub(half))
}
