//! The error function and the logarithm of the gamma function, by the methods of f32's, in sums of two.

use super::super::real::{Condition, Real};
use super::super::special::{Steps, steps};
use super::exponential::exp_two;
use super::logarithm::ln_two;
use super::{Two, polynomial, scale};

/// 2/√π.
const SLOPE: Two<f64> = Two(std::f64::consts::FRAC_2_SQRT_PI, 1.533_545_961_316_588e-17);
/// `erf x / x - 2/√π` over `x²`, in powers of `x²`, for `|x| <= 1`.
const ERF: [f64; 12] = [
    -0.37612638903183754,
    0.11283791670955111,
    -0.026866170645123838,
    0.005223977625303518,
    -0.0008548327010033328,
    0.00012055332214716276,
    -1.4925622504489842e-05,
    1.6461446656928561e-06,
    -1.6355118610877705e-07,
    1.4692484859133263e-08,
    -1.1500357159785296e-09,
    6.174097221305255e-11,
];
/// `(1 + 2x) exp(x²) erfc x - 1` in powers of `(x - 4) / (x + 4)`, for `x` from 0.5 to 27.3.
const ERFC: [f64; 22] = [
    0.2329951186255525,
    -0.13962111684056253,
    0.015379652102619166,
    0.06809705425469513,
    -0.1010390660362627,
    0.09373283499827136,
    -0.06633036581338696,
    0.03716751553853768,
    -0.01619773404100221,
    0.005031969971599235,
    -0.0007577734292305736,
    -0.00019925668628231047,
    0.0001506224113199895,
    -2.4399097113238747e-05,
    -1.1224509485290038e-05,
    5.708937230004636e-06,
    2.992011484165939e-07,
    -8.230236181628612e-07,
    6.734000863671706e-08,
    1.0608598334165835e-07,
    -1.2342331626174369e-08,
    -1.062761963742751e-08,
];
/// `ln Γ(y)` over `(y - 1) (y - 2)`, in powers of `y - 2`, for `y` from 1 to 3.
const BETWEEN: [f64; 28] = [
    0.42278433509846713,
    -0.10031730167435392,
    0.03296500062115691,
    -0.012384192193371805,
    0.004998641164627129,
    -0.0021081308339216706,
    0.0009153769240386907,
    -0.0004057073983775151,
    0.0001825526153982638,
    -8.309511477709561e-05,
    3.816907658276081e-05,
    -1.7661767658452517e-05,
    8.221234475942905e-06,
    -3.846858091533014e-06,
    1.8113906873056685e-06,
    -8.54560908975883e-07,
    3.958940459367468e-07,
    -1.878442644643758e-07,
    1.042041826608264e-07,
    -4.9827532071170234e-08,
    5.910565853507869e-09,
    -2.7296358592514825e-09,
    1.6194359237484174e-08,
    -7.842557720538356e-09,
    -4.312495770350818e-09,
    2.0986002157033107e-09,
    1.5746606982777302e-09,
    -7.639292345836201e-10,
];
/// `ln √2π - 1/2`.
const STIRLING: Two<f64> = Two(0.4189385332046727, 1.672_820_965_058_541_3e-17);
/// What follows in Stirling's series over `1/x`, in powers of `1/x²`, from 8 on.
const SERIES: [f64; 8] = [
    0.08333333333333333,
    -0.0027777777777776747,
    0.0007936507935117282,
    -0.0005952380234291254,
    0.0008417325268022405,
    -0.001914965912162907,
    0.0062081367662297935,
    -0.020855820837463117,
];
/// `sin πr / r` in powers of `r²`, for `|r| <= 1/2`.
const SINE: [f64; 10] = [
    3.141592653589793,
    -5.16771278004997,
    2.5501640398773455,
    -0.5992645293207869,
    0.08214588661099356,
    -0.007370430943702136,
    0.0004663027874593273,
    -2.1915250301851375e-05,
    7.94853903737232e-07,
    -2.228371216069697e-08,
];

/// `erf x` for `|x| <= 1`.
#[inline(always)]
fn erf_near<R: Real>(x: R) -> Two<R> {
    let t = x * x;
    let Two(high, low) = Two::product(x, x.wide(SLOPE.0));
    let small = t.fma(polynomial(t, &ERF), x.wide(SLOPE.1));
    Two::ordered(high, x.fma(small, low))
}

/// `erfc a` for `a >= 0.5`.
#[inline(always)]
fn erfc_far<R: Real>(a: R) -> R {
    let (one, four, most) = (a.lit(1.0), a.lit(4.0), a.lit(27.3));
    let a = a.lt(most).select(a, most);
    let p = polynomial((a - four) / (a + four), &ERFC);
    let rest = Two::ordered(one, p).over(Two::sum(one, a + a));
    let (power, k) = exp_two(Two::product(a, -a));
    scale(power.times(rest).rounded(), k)
}

#[inline(always)]
pub(in super::super) fn erf<R: Real>(x: R) -> R {
    let a = x.abs();
    let far = (x.lit(1.0) - erfc_far(a)).copysign(x);
    // A tiny product's second part would be lost.
    let near = a
        .lt(x.wide(1e-200))
        .select(x * x.wide(SLOPE.0), erf_near(x).rounded());
    a.lt(x.lit(1.0)).select(near, far)
}

#[inline(always)]
pub(in super::super) fn erfc<R: Real>(x: R) -> R {
    let far = erfc_far(x.abs());
    let below = x.lit(2.0) - far;
    let middle = Two(x.lit(1.0), x.lit(0.0)).plus(erf_near(x).negated()).rounded();
    let y = x.lt(x.lit(0.5)).select(middle, far);
    x.lt(x.lit(-1.0)).select(below, y)
}

/// `ln Γ(a)` for `a > 0`.
#[inline(always)]
fn lgamma_positive<R: Real>(a: R) -> Two<R> {
    let Steps {
        small,
        large,
        to_one,
        to_two,
        log_of,
    } = steps(a);
    let (one, zero) = (a.lit(1.0), a.lit(0.0));
    let between = Two::product(to_one, to_two).scaled(polynomial(to_two, &BETWEEN));
    let log = ln_two(log_of);
    let near = Two::select(small, log.negated(), log).plus(between);
    let inverse = one / a;
    let rest = STIRLING
        .at(a)
        .plus(Two(polynomial(inverse * inverse, &SERIES) * inverse, zero));
    let far = Two::sum(a, a.lit(-0.5))
        .times(log.plus(Two(-one, zero)))
        .plus(rest);
    Two::select(large, far, near)
}

#[inline(always)]
pub(in super::super) fn lgamma<R: Real>(x: R) -> R {
    let (zero, inf) = (x.lit(0.0), x.lit(f32::INFINITY));
    let a = x.abs();
    // Where Γ(a) is 1 / a, and where the logarithm is more than a float holds.
    let tiny = a.lt(x.lit(1e-30));
    let huge = a.gt(x.wide(2.5563481638716906e305));
    let b = tiny.or(huge).select(x.lit(1.5), a);
    let positive = lgamma_positive(b);
    let r = (b - b.nearest()).abs();
    let whole = r.eq(zero);
    let over = polynomial(r * r, &SINE) * x.wide(std::f64::consts::FRAC_1_PI);
    let sine = b * over * whole.select(x.lit(1.0), r);
    let mirrored = ln_two(sine).plus(positive).negated().rounded();
    let mirrored = whole.select(inf, mirrored);
    let y = x.lt(zero).select(mirrored, positive.rounded());
    let y = tiny.select(-ln_two(a.eq(zero).select(x.lit(1.0), a)).rounded(), y);
    huge.or(a.eq(zero)).select(inf, y)
}
