//! Rows of operators along axes that are recorded as others: means, softmax, the place of an extreme.

use std::panic::Location;

use super::composed::composed;
use crate::dtype::DType;
use crate::host::RUN;
use crate::node::Tensor;
use crate::order::Reduction;
use crate::place::here;
use crate::shape::{Axes, Shape};

composed! {
    mean(x, axes: impl Into<Axes>) "sum(x) / n" "The mean along axes; of integers in f32, of half floats summed in f32." {
        mean(x, &axes.into(), false)
    }
    mean_keep(x, axes: impl Into<Axes>) "sum_keep(x) / n" "The mean along axes, which stay with extent 1." {
        mean(x, &axes.into(), true)
    }
    var(x, axes: impl Into<Axes>) "mean((x - mean(x))^2)" "The variance along axes, of all there is (divided by n)." {
        let axes = axes.into();
        let distance = x - mean(x, &axes, true);
        mean(&(&distance * &distance), &axes, false)
    }
    std(x, axes: impl Into<Axes>) "sqrt(var(x))" "The standard deviation along axes." { x.var(axes).sqrt() }
    any(x, axes: impl Into<Axes>) "max(x != 0)" "Whether one along axes is true; not of none." {
        x.cast(DType::Bool).sum(axes).not_equal(0)
    }
    count_nonzero(x, axes: impl Into<Axes>) "sum(x != 0)" "How many along axes are not zero, as `i32`." { x.cast(DType::Bool).sum(axes) }
    all(x, axes: impl Into<Axes>) "sum(x != 0) == n" "Whether all along axes are true; also of none." {
        let axes = axes.into();
        let n: usize = axes.of(x.rank()).map_or(0, |axes| axes.iter().map(|axis| x.shape()[*axis]).product());
        match i32::try_from(n) {
            Ok(n) => x.cast(DType::Bool).sum(axes).equal(n),
            // More than sums count.
            Err(_) => x.logical_not().any(axes).invert(),
        }
    }
    softmax(x, axes: impl Into<Axes>) "e = exp(x - max(x)); e / sum(e)" "Exponentials divided by their sum along axes." {
        let axes = axes.into();
        let e = (x - x.real(Location::caller()).max_keep(axes.clone())).exp();
        &e / e.sum_keep(axes)
    }
    log_softmax(x, axes: impl Into<Axes>) "d = x - max(x); d - log(sum(exp(d)))" "The logarithm of softmax." {
        let axes = axes.into();
        let distance = x - x.real(Location::caller()).max_keep(axes.clone());
        let sum = distance.exp().sum_keep(axes);
        distance - sum.log()
    }
    logsumexp(x, axes: impl Into<Axes>) "m = max(x); m + log(sum(exp(x - m)))" "The logarithm of the sum of exponentials along axes." {
        let axes = axes.into();
        let x = x.real(Location::caller());
        let largest = x.max_keep(axes.clone());
        let sum = (&x - &largest).exp().sum_keep(axes.clone());
        (largest + sum.log()).squeeze(axes)
    }
    argmax(x, axis: isize) "min(where((x == max(x)) | isnan(x), coordinates, n))" "The index of the first of the largest along an axis, as `i32`; of the first NaN if there is one." {
        place_of(Reduction::Max, x, axis)
    }
    cumsum(x, axis: isize) "in runs of 256 x + x moved by 1, by 2, by 4, ..; then each + all runs before" "Sums of all elements up to each along an axis, in the type of `sum`." { cumulative("cumsum", Reduction::Sum, x, axis) }
    cumprod(x, axis: isize) "as cumsum, by products" "Products of all elements up to each along an axis, in the type of `prod`." { cumulative("cumprod", Reduction::Product, x, axis) }
    cummax(x, axis: isize) "as cumsum, by maximum" "The largest of all elements up to each along an axis; NaN from the first NaN on." { cumulative("cummax", Reduction::Max, x, axis) }
    cummin(x, axis: isize) "as cumsum, by minimum" "The smallest of all elements up to each along an axis; NaN from the first NaN on." { cumulative("cummin", Reduction::Min, x, axis) }
    cumulative_sum(x, axis: isize) "cumsum" "As `cumsum`, with the array API's name." { x.cumsum(axis) }
    cumulative_prod(x, axis: isize) "cumprod" "As `cumprod`, with the array API's name." { x.cumprod(axis) }
    nansum(x, axes: impl Into<Axes>) "sum(where(isnan(x), 0, x))" "The sum along axes of what is no NaN." { present(x, Reduction::Sum).sum(axes) }
    nanprod(x, axes: impl Into<Axes>) "prod(where(isnan(x), 1, x))" "The product along axes of what is no NaN." { present(x, Reduction::Product).prod(axes) }
    nanmax(x, axes: impl Into<Axes>) "max(where(isnan(x), -inf, x)), NaN where nothing else is" "The largest along axes of what is no NaN; NaN of nothing." { present_extreme(x, Reduction::Max, axes.into()) }
    nanmin(x, axes: impl Into<Axes>) "min(where(isnan(x), inf, x)), NaN where nothing else is" "The smallest along axes of what is no NaN; NaN of nothing." { present_extreme(x, Reduction::Min, axes.into()) }
    nanmean(x, axes: impl Into<Axes>) "nansum(x) / sum(not isnan(x))" "The mean along axes of what is no NaN; NaN of nothing." {
        let (axes, x) = (axes.into(), x.real(Location::caller()));
        let count = x.isnan().invert().cast(x.dtype()).sum(axes.clone());
        present(&x, Reduction::Sum).sum(axes) / count
    }
    nanvar(x, axes: impl Into<Axes>) "nanmean((x - nanmean(x))^2)" "The variance along axes of what is no NaN (divided by its number); NaN of nothing." {
        let (axes, x) = (axes.into(), x.real(Location::caller()));
        let count = x.isnan().invert().cast(x.dtype()).sum_keep(axes.clone());
        let mean = present(&x, Reduction::Sum).sum_keep(axes.clone()) / &count;
        let distance = x.isnan().select(0.0, &x - mean);
        (distance.square().sum_keep(axes.clone()) / count).squeeze(axes)
    }
    argmin(x, axis: isize) "min(where((x == min(x)) | isnan(x), coordinates, n))" "The index of the first of the smallest along an axis, as `i32`; of the first NaN if there is one." {
        place_of(Reduction::Min, x, axis)
    }
}

// Half floats in f32.
fn cumulative(name: &'static str, how: Reduction, x: &Tensor, axis: isize) -> Tensor {
    let at = here(Location::caller());
    let axis = match Axes::from(axis).of(x.rank()) {
        Ok(axes) => axes[0],
        Err(rule) => return x.refuse(name, &[], rule, at),
    };
    let is_extreme = matches!(how, Reduction::Max | Reduction::Min);
    if is_extreme && x.dtype() == DType::Bool {
        return x.refuse(name, &[], "bool has no order: cast it", at);
    }
    if x.dtype().is_byte_float() {
        return x.for_storage(name, at);
    }
    let all = x.cast(how.accumulator(x.dtype())).moveaxis(axis as isize, -1);
    let done = all.cumulative_on_host(how, at);
    let done = done.unwrap_or_else(|| cumulative_rows(&all, how, at));
    done.moveaxis(-1, axis as isize).cast(how.result(x.dtype()))
}

// In runs twice as many elements are combined at each step; then each run with all before it.
fn cumulative_rows(x: &Tensor, how: Reduction, at: &'static Location<'static>) -> Tensor {
    let (axis, n) = (x.rank() - 1, x.shape()[x.rank() - 1]);
    let identity = how.identity(x.dtype());
    let meet = |before: &Tensor, own: &Tensor| match how {
        Reduction::Sum => before + own,
        Reduction::Product => before * own,
        Reduction::Max => before.maximum(own),
        Reduction::Min => before.minimum(own),
    };
    // What lies behind, and in front of that so many elements that change nothing.
    let moved = |x: &Tensor, by: usize| {
        let mut starts: Shape = x.shape().iter().map(|_| 0).collect();
        let steps: Shape = x.shape().iter().map(|_| 1).collect();
        let last = x.rank() - 1;
        starts[last] = by;
        x.part_of(last, ..(x.shape()[last] - by) as isize)
            .padded(starts, steps, x.shape(), identity, at)
    };
    if n <= RUN {
        let mut all = x.clone();
        let mut by = 1;
        while by < n {
            all = meet(&moved(&all, by), &all);
            by *= 2;
        }
        return all;
    }
    let runs = n.div_ceil(RUN);
    let mut shape: Shape = x.shape().into();
    shape[axis] = runs * RUN;
    let (starts, steps) = shape.iter().map(|_| (0, 1)).unzip();
    let filled = x.padded(starts, steps, &shape, identity, at);
    let whole = shape.clone();
    shape[axis] = runs;
    shape.push(RUN);
    let within = cumulative_rows(&filled.reshaped(&shape, at), how, at);
    let ends = within.part_of(axis + 1, RUN as isize - 1..).squeeze(-1);
    let before = moved(&cumulative_rows(&ends, how, at), 1).expand_dims(-1);
    let all = meet(&before, &within);
    all.reshaped(&whole, at).part_of(axis, ..n as isize)
}

// Bool is compared as numbers.
fn place_of(how: Reduction, x: &Tensor, axis: isize) -> Tensor {
    let at = here(Location::caller());
    let name = if how == Reduction::Max { "argmax" } else { "argmin" };
    let axes = Axes::from(axis);
    let place = match axes.of(x.rank()) {
        Ok(found) => found[0],
        Err(rule) => return x.refuse(name, &[], rule, at),
    };
    let x = match x.dtype() {
        DType::Bool => x.cast(DType::U8),
        _ => x.clone(),
    };
    if let Some(found) = x.place_on_host(how == Reduction::Max, place) {
        return found;
    }
    let is_it = x.equal(x.reduce(how, &axes, true, at));
    let is_it = match x.dtype().is_float() {
        true => is_it.logical_or(x.isnan()),
        false => is_it,
    };
    let index = Tensor::coordinates(x.shape(), place, x.device());
    is_it.select(&index, i32::MAX).min(axis)
}

// With what changes no combination in the place of NaN.
fn present(x: &Tensor, how: Reduction) -> Tensor {
    match x.dtype().is_float() {
        false => x.clone(),
        true => {
            let neutral = match how {
                Reduction::Sum => 0.0,
                Reduction::Product => 1.0,
                Reduction::Max => f64::NEG_INFINITY,
                Reduction::Min => f64::INFINITY,
            };
            x.isnan().select(neutral, x)
        }
    }
}

fn present_extreme(x: &Tensor, how: Reduction, axes: Axes) -> Tensor {
    let found = present(x, how).reduce(how, &axes, false, here(Location::caller()));
    match x.dtype().is_float() && x.error().is_none() {
        true => x.isnan().all(axes).select(f64::NAN, found),
        false => found,
    }
}

fn mean(x: &Tensor, axes: &Axes, keep: bool) -> Tensor {
    let at = here(Location::caller());
    let n: usize = match axes.of(x.rank()) {
        Ok(axes) => axes.iter().map(|axis| x.shape()[*axis]).product(),
        // The sum refuses them.
        Err(_) => 1,
    };
    let x = x.real(at);
    x.reduce(Reduction::Sum, axes, keep, at) / n as f64
}
