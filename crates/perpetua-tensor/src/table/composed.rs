//! How rows of operators that are recorded as others become methods and functions, and the rows that compute each element by itself. A row
//! has the composition; its kernel, gradient and bounds follow.

use std::panic::Location;

use crate::dtype::DType;
use crate::node::Tensor;
use crate::place::here;

/// Rows, and what they are: methods, free functions, documentation.
macro_rules! composed {
    ($($name:ident($x:ident $(, $argument:ident: $ty:ty)*) $(-> [$result:ty])? $formula:literal $doc:literal $body:block)*) => {
        pub(super) const ROWS: &[$crate::table::Composed] = &[$($crate::table::Composed {
            name: stringify!($name),
            formula: $formula,
            doc: $doc,
        }),*];

        impl $crate::node::Tensor { $(
            #[doc = $doc]
            ///
            #[doc = concat!("Composed: `", $formula, "`.")]
            #[track_caller]
            pub fn $name(&self $(, $argument: $ty)*) -> composed!(@result $($result)?) {
                let $x = self;
                $crate::place::inside(here!(), || $body)
            }
        )* }

        pub(super) mod functions {
            #[allow(unused_imports, reason = "rows of some tables have operands alone")]
            use super::*;
            $(
                #[doc = $doc]
                #[track_caller]
                pub fn $name(x: &$crate::node::Tensor $(, $argument: $ty)*) -> composed!(@result $($result)?) {
                    x.$name($($argument),*)
                }
            )*
        }
    };
    (@result) => { $crate::node::Tensor };
    (@result $result:ty) => { $result };
}
pub(super) use composed;

composed! {
    square(x) "x * x" "The square." { x * x }
    sign(x) "where(x > 0, 1, where(x < 0, -1, x))" "1, -1, or the operand if it is zero or NaN." {
        let (above, below) = (x.greater(0), x.less(0));
        let rest = below.select(-1, x);
        above.select(1, rest)
    }
    logical_not(x) "x == 0" "Whether it is zero." { x.cast(DType::Bool).invert() }
    maximum(x, y: impl Into<crate::Operand>) "where((x >= y) | isnan(x), x, y)" "The larger; NaN if one is NaN." {
        extreme("maximum", x, &y.into(), Tensor::greater_equal)
    }
    minimum(x, y: impl Into<crate::Operand>) "where((x <= y) | isnan(x), x, y)" "The smaller; NaN if one is NaN." {
        extreme("minimum", x, &y.into(), Tensor::less_equal)
    }
    clip(x, low: impl Into<crate::Operand>, high: impl Into<crate::Operand>) "minimum(maximum(x, low), high)" "Brought into a range; NaN stays." {
        x.maximum(low).minimum(high)
    }
    remainder(x, y: impl Into<crate::Operand>) "r = fmod(x, y); where((r != 0) & ((r < 0) != (y < 0)), r + y, r)" "The remainder with the divisor's sign, as in Python." {
        let (x, y) = x.meet("remainder", &y.into(), Location::caller());
        let r = x.fmod(&y);
        let differs = r.not_equal(0).logical_and(r.less(0).not_equal(y.less(0)));
        let turned = &r + &y;
        differs.select(turned, r)
    }
    floor_divide(x, y: impl Into<crate::Operand>) "(x - remainder(x, y)) / y, rounded" "The quotient rounded down. An integer divided by zero is a fault." {
        let (x, y) = x.meet("floor_divide", &y.into(), Location::caller());
        let whole = (&x - x.remainder(&y)).divide_toward_zero(&y);
        if whole.dtype().is_float() { whole.round() } else { whole }
    }
    logaddexp(x, y: impl Into<crate::Operand>) "m = maximum(x, y); m + log1p(exp(-|x - y|))" "log(exp(x) + exp(y)) without overflow." {
        let (x, y) = x.meet("logaddexp", &y.into(), Location::caller());
        let (x, y) = (x.real(Location::caller()), y.real(Location::caller()));
        let larger = x.maximum(&y);
        // Equal infinities have no difference.
        let distance = x.equal(&y).select(0.0, (&x - &y).abs());
        larger + (-distance).exp().log1p()
    }
    positive(x) "x" "The operand." { x.clone() }
    relu(x) "where(x > 0 | isnan(x), x, 0)" "The operand if it is above zero, else 0; NaN stays." { x.maximum(0) }
    leaky_relu(x, slope: f64) "where(x > 0, x, slope * x)" "Below zero with a slope." {
        let steep = x * slope;
        x.greater(0).select(x, steep)
    }
    elu(x, alpha: f64) "where(x > 0, x, alpha * expm1(x))" "Below zero towards -alpha." {
        let below = x.minimum(0).expm1() * alpha;
        x.greater(0).select(x, below)
    }
    sigmoid(x) "1 / (1 + exp(-x))" "The logistic function." { ((-x).exp() + 1.0).reciprocal() }
    silu(x) "x * sigmoid(x)" "The operand times its logistic function; also called swish." { x * x.sigmoid() }
    relu6(x) "minimum(relu(x), 6)" "The operand between 0 and 6." { x.relu().minimum(6) }
    hardtanh(x) "clip(x, -1, 1)" "The operand between -1 and 1." { x.clip(-1, 1) }
    hardsigmoid(x) "relu6(x + 3) / 6" "A straight line for the logistic function." { (x + 3).relu6() / 6.0 }
    hardswish(x) "x hardsigmoid(x)" "The operand times that." { x * x.hardsigmoid() }
    log_sigmoid(x) "-softplus(-x)" "The logarithm of the logistic function." { -(-x).softplus() }
    mish(x) "x tanh(softplus(x))" "A smooth relu." { x * x.softplus().tanh() }
    selu(x) "1.0507.. elu(x, 1.6732..)" "The exponential linear unit that keeps mean and variance." { x.elu(1.673_263_242_354_377_2) * 1.050_700_987_355_480_5 }
    softsign(x) "x / (1 + |x|)" "Towards -1 and 1, slowly." { x / (x.abs() + 1) }
    softplus(x) "maximum(x, 0) + log1p(exp(-|x|))" "log(1 + exp(x)) without overflow." {
        x.maximum(0) + (-x.abs()).exp().log1p()
    }
    gelu_erf(x) "x (1 + erf(x / sqrt(2))) / 2" "The Gaussian error linear unit itself." { x * 0.5 * ((x * std::f64::consts::FRAC_1_SQRT_2).erf() + 1.0) }
    gelu(x) "0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))" "The Gaussian error linear unit, by its usual approximation." {
        let inner = (x + x * x * x * 0.044715) * (2.0 / std::f64::consts::PI).sqrt();
        x * 0.5 * (inner.tanh() + 1.0)
    }
}

fn extreme(
    name: &'static str,
    x: &Tensor,
    y: &crate::Operand,
    first: fn(&Tensor, crate::Operand) -> Tensor,
) -> Tensor {
    let at = here(Location::caller());
    let (x, y) = x.meet(name, y, at);
    let takes = first(&x, (&y).into());
    let takes = match x.dtype().is_float() {
        true => takes.logical_or(x.isnan()),
        false => takes,
    };
    takes.select(x, y)
}
