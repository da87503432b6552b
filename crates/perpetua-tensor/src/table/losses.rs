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
    bce_loss(x, expected: &Tensor) "mean(maximum(x, 0) - x y + log1p(exp(-|x|)))" "Binary cross entropy: of the probabilities sigmoid(x), where `expected` has those that should be." {
        (x.softplus() - x * expected).mean(..)
    }
    cross_entropy(x, classes: &Tensor) "mean(-log_softmax(x)[class])" "Cross entropy: of the probabilities softmax(x) along the last axis, where `classes` has the index that should be. NaN if an index is not there." {
        let at = here(Location::caller());
        let Some((&n, front)) = x.shape().split_last() else {
            return x.refuse("cross_entropy", &[classes], "the last axis has the classes' scores: it takes at least one", at);
        };
        if classes.shape() != front || classes.dtype().is_float() || classes.dtype() == DType::Bool {
            let rule = format!("the classes must be integers in the shape {front:?}, one for each row of scores");
            return x.refuse("cross_entropy", &[classes], rule, at);
        }
        let is_there = classes.greater_equal(0).logical_and(classes.less(n as i64));
        let loss = -classes.one_hot(n).select(x.log_softmax(-1), 0.0).sum(-1);
        is_there.select(loss, f64::NAN).mean(..)
    }
}
