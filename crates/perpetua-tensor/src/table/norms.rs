//! Rows of norms, distances and attention.

use std::panic::Location;

use super::composed::composed;
use crate::dtype::DType;
use crate::library::{Use, attention};
use crate::node::Tensor;
use crate::place::here;
use crate::shape::Axes;

composed! {
    layer_norm(x, axes: impl Into<Axes>, epsilon: f64) "(x - mean(x)) rsqrt(var(x) + epsilon)" "With mean 0 and variance 1 along axes; a weight and a bias are a product and a sum behind it, in the same kernel." {
        let axes = axes.into();
        let x = x.real(Location::caller());
        let distance = &x - x.mean_keep(axes.clone());
        &distance * (distance.square().mean_keep(axes) + epsilon).rsqrt()
    }
    rms_norm(x, axes: impl Into<Axes>, epsilon: f64) "x rsqrt(mean(x^2) + epsilon)" "With a mean square of 1 along axes." {
        let x = x.real(Location::caller());
        &x * (x.square().mean_keep(axes) + epsilon).rsqrt()
    }
    group_norm(x, groups: usize, epsilon: f64) "layer_norm of each group" "With mean 0 and variance 1 over each of so many groups of channels (axis 1) and all that lies behind." {
        let at = here(Location::caller());
        if x.rank() < 2 || groups == 0 || !x.shape()[1].is_multiple_of(groups) {
            return x.refuse("group_norm", &[], format!("axis 1 must be there, and divide into {groups} groups"), at);
        }
        let rest: usize = x.shape()[1..].iter().product();
        let grouped = x.reshaped(&[x.shape()[0], groups, rest / groups], at);
        grouped.layer_norm(-1, epsilon).reshaped(x.shape(), at)
    }
    batch_norm(x, mean: &Tensor, variance: &Tensor, epsilon: f64) "(x - mean) rsqrt(variance + epsilon)" "With a mean and a variance of each channel (axis 1), which are given: those of this batch (`x.mean([0, 2, 3])`), or running ones." {
        let at = here(Location::caller());
        let fits = |of: &Tensor| x.rank() >= 2 && of.shape() == &x.shape()[1..2];
        if !(fits(mean) && fits(variance)) {
            return x.refuse("batch_norm", &[mean, variance], "mean and variance have one number for each of the channels of axis 1", at);
        }
        let mut shape = vec![1; x.rank() - 1];
        shape[0] = x.shape()[1];
        let scale = (variance.real(at) + epsilon).rsqrt().reshaped(&shape, at);
        (x - mean.reshaped(&shape, at)) * scale
    }
    normalize(x, axis: isize, epsilon: f64) "x / maximum(vector_norm(x), epsilon)" "With length 1 along an axis; what is shorter than `epsilon` stays shorter." {
        let x = x.real(Location::caller());
        let length = x.square().sum_keep(axis).sqrt();
        &x / length.maximum(epsilon)
    }
    vector_norm(x, axes: impl Into<Axes>) "sqrt(sum(x^2))" "The Euclidean length along axes." { x.real(Location::caller()).square().sum(axes).sqrt() }
    matrix_norm(x) "sqrt(sum(x^2))" "The Frobenius norm of the matrices of the last two axes." { x.vector_norm([-2, -1]) }
    vecdot(x, y: impl Into<crate::Operand>, axis: isize) "sum(x y)" "The sum of products along an axis." { (x * y).sum(axis) }
    cosine_similarity(x, y: &Tensor, axis: isize, epsilon: f64) "vecdot(x, y) / (maximum(|x|, epsilon) maximum(|y|, epsilon))" "The cosine of the angle between two vectors along an axis." {
        let length = |of: &Tensor| of.vector_norm(axis).maximum(epsilon);
        x.vecdot(y, axis) / (length(x) * length(y))
    }
    attention(x, keys: &Tensor, values: &Tensor, mask: Option<&Tensor>) "softmax(x keys^T / sqrt(n) + mask) values" "Scaled dot product attention of queries: `[.., queries, n]` with keys `[.., m, n]` and values `[.., m, k]`. A mask is added to the scores, or, of `bool`, says which count; a row of which none counts is NaN." {
        let Some(n) = x.shape().last().filter(|_| x.error().is_none()) else {
            return x.refuse("attention", &[keys, values], "queries have at least one axis", here(Location::caller()));
        };
        if let Some(found) = mask.is_none().then(|| attention([x, keys, values], false, Use::Sooner)).flatten() {
            return found;
        }
        let scores = x.matmul(keys.transpose()) * (1.0 / (*n as f64).sqrt());
        let scores = match mask {
            None => scores,
            Some(mask) if mask.dtype() == DType::Bool => mask.select(scores, f64::NEG_INFINITY),
            Some(mask) => scores + mask,
        };
        scores.softmax(-1).matmul(values)
    }
    causal_attention(x, keys: &Tensor, values: &Tensor) "attention(keys, values, column <= row + keys - queries)" "The same where a query sees the keys up to its own place, counted from the end." {
        if let Some(found) = attention([x, keys, values], true, Use::Sooner) {
            return found;
        }
        let (&[.., queries, n], &[.., m, _]) = (x.shape(), keys.shape()) else {
            return x.refuse("causal_attention", &[keys, values], "queries and keys have at least two axes", here(Location::caller()));
        };
        let scores = x.matmul(keys.transpose()) * (1.0 / (n as f64).sqrt());
        match (scores.shape(), queries, m) {
            (&[.., rows, columns], queries, m) if rows == queries && columns == m => scores.seen().softmax(-1).matmul(values),
            _ => scores,
        }
    }
}
