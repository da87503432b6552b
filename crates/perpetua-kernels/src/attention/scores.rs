//! What scores are made of, beside products of queries and keys. Must not know who weighs them.

use perpetua::prelude::*;

/// A score that stays between `-cap` and `cap`, by the hyperbolic tangent; both times the binary logarithm of e, as `2^x` has it.
#[device]
pub(super) fn capped(score: f32, cap: f32) -> f32 {
    // tanh(x) = 1 - 2 / (e^2x + 1), of which e^2x is 2^(2 score / cap log2 e): what scores are multiplied with is the same for all.
    let power = fast_exp2(score * (2.0 * std::f32::consts::LOG2_E / cap));
    cap - 2.0 * cap / (power + 1.0)
}
