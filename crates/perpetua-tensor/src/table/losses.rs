//! Rows of losses: how far what a network gives is from what it should give, as one number.

use std::panic::Location;

use super::composed::composed;
use crate::dtype::DType;
use crate::node::Tensor;
use crate::operand::Operand;
use crate::place::here;

composed! {
    mse_loss(x, expected: impl Into<Operand>) "mean((x - y)^2)" "The mean of the squared distances." {
        (x - expected).square().mean(..)
    }
    l1_loss(x, expected: impl Into<Operand>) "mean(|x - y|)" "The mean of the distances." { (x - expected).abs().mean(..) }
    huber_loss(x, expected: impl Into<Operand>, delta: f64) "d = |x - y|; mean(where(d < delta, d^2 / 2, delta (d - delta / 2)))" "The mean of the distances, of short ones squared." {
        let distance = (x - expected).abs();
        let (near, far) = (distance.square() * 0.5, (&distance - delta * 0.5) * delta);
        distance.less(delta).select(near, far).mean(..)
    }
    smooth_l1_loss(x, expected: impl Into<Operand>, beta: f64) "d = |x - y|; mean(where(d < beta, d^2 / (2 beta), d - beta / 2))" "The mean of the distances, of short ones squared; `huber_loss` divided by `beta`." {
        x.huber_loss(expected, beta) / beta
    }
    kl_div(x, expected: &Tensor) "sum(y (log(y) - x)) / examples" "How far the distributions whose logarithms are `x` are from those expected, along all but the first axis, on average over that; where 0 is expected it is 0." {
        let examples = x.shape().first().copied().unwrap_or(1);
        let terms = expected * (expected.log() - x);
        expected.equal(0).select(0.0, terms).sum(..) / examples as f64
    }
    nll_loss(x, classes: &Tensor) "mean(-x[class])" "Of logarithms of probabilities along the last axis the mean of those of the classes that should be, with the other sign. NaN if an index is not there." {
        let at = here(Location::caller());
        match x.shape().split_last() {
            Some((n, front)) if classes.shape() == front && !classes.dtype().is_float() && classes.dtype() != DType::Bool => {
                let is_there = classes.greater_equal(0).logical_and(classes.less(*n as i64));
                let taken = classes.one_hot(*n).select(-x, 0.0).sum(-1);
                is_there.select(taken, f64::NAN).mean(..)
            }
            _ => x.refuse("nll_loss", &[classes], "the classes must be integers, one for each row along the last axis", at),
        }
    }
    bce_loss(x, expected: &Tensor) "mean(maximum(x, 0) - x y + log1p(exp(-|x|)))" "Binary cross entropy: of the probabilities sigmoid(x), where `expected` has those that should be." {
        (x.softplus() - x * expected).mean(..)
    }
    cross_entropy(x, classes: &Tensor) "mean(-log_softmax(x)[class])" "Cross entropy: of the probabilities softmax(x) along the last axis, where `classes` has the index that should be. NaN if an index is not there." {
        let at = here(Location::caller());
        let Some((_, front)) = x.shape().split_last() else {
            return x.refuse("cross_entropy", &[classes], "the last axis has the classes' scores: it takes at least one", at);
        };
        if classes.shape() != front || classes.dtype().is_float() || classes.dtype() == DType::Bool {
            let rule = format!("the classes must be integers in the shape {front:?}, one for each row of scores");
            return x.refuse("cross_entropy", &[classes], rule, at);
        }
        x.log_softmax(-1).nll_loss(classes)
    }
}
